//! Warping on a device.

use super::kernel::{PHASES, Weights};
use super::{Homography, Interpolation};
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::image::Size;
use crate::image::gpu::{self, GpuImage, GpuPixel, GpuStack, Plane};
use crate::{Error, Result};
use std::marker::PhantomData;
use tiepoint_gpu::{Kernel, KernelSource};

/// A [`Map`](super::Map) that kernels can compute, too.
pub trait GpuMap {
    /// The source of the kernel's function `place` for this map.
    const TEXT: &'static str;

    /// The numbers of the map that `place` takes.
    fn numbers(&self) -> [f64; NUMBERS];
}

/// Numbers of a map, as many as the longest map has.
pub(crate) const NUMBERS: usize = 22;

impl GpuMap for Homography {
    const TEXT: &'static str = include_str!("homography.h");

    fn numbers(&self) -> [f64; NUMBERS] {
        let mut numbers = [0.0; NUMBERS];
        numbers[..9].copy_from_slice(self.sided().as_flattened());
        numbers
    }
}

/// [`warp()`](super::warp()) for images of one pixel type and number of channels, compiled for a device that has f64;
/// the same bits, except for those of a NaN. `M` is the kind of map.
#[derive(Clone, Debug)]
pub struct GpuWarp<T: GpuPixel, M = Homography> {
    gpu: Gpu,
    warp: Kernel<Warp<'static, T>>,
    coverage: Kernel<Coverage<'static>>,
    weights: Buffer<f32>,
    channels: usize,
    map: PhantomData<M>,
}

tiepoint_gpu::kernel! {
    /// Warps images by one map.
    unsafe kernel warp(groups) = Warp<T: GpuPixel> {
        write to (to_plane: Plane): T [to_plane.numbers(groups[2])],
        read from (from_plane: Plane): T [from_plane.numbers(groups[2])],
        /// Rows of weights, one a phase.
        read table: f32 as f32x4 [weights],
    } {
        map: [f64; NUMBERS],
        fill: f32,
        weights: u32,
        across: i32,
    }

    /// 255 where the input of this size lies under a map, 0 elsewhere.
    unsafe kernel coverage(groups) = Coverage {
        write to (to_plane: Plane): u8 [to_plane.numbers(groups[2])],
    } {
        map: [f64; NUMBERS],
        width: i32,
        height: i32,
        across: i32,
    }
}

/// Lanes of a group. They make a patch of the output, so that its input is a patch, too.
const GROUP: [u32; 2] = [32, 8];

/// Weights of a row of the table: whole vectors.
fn weights_a_row(interpolation: Interpolation) -> usize {
    interpolation.taps().next_multiple_of(4)
}

pub(crate) fn source<T: GpuPixel, M: GpuMap>(interpolation: Interpolation, channels: usize) -> KernelSource {
    gpu::for_kernels::<T>(KernelSource::new("warp"))
        .define("GROUP_WIDTH", GROUP[0])
        .define("GROUP_HEIGHT", GROUP[1])
        .define("TAPS", interpolation.taps())
        .define("WEIGHTS", weights_a_row(interpolation))
        .define_f32("PHASES", PHASES as f32)
        .define("CHANNELS", channels)
        .structure::<Plane>()
        .kernel::<Warp<'_, T>>(GROUP)
        .kernel::<Coverage<'_>>(GROUP)
        .text(M::TEXT)
        .text(include_str!("warp.cl"))
}

/// The number of groups side by side, and of all groups.
fn groups(size: Size) -> [usize; 2] {
    let across = size.width.div_ceil(GROUP[0] as usize);
    [across, across * size.height.div_ceil(GROUP[1] as usize)]
}

impl<T: GpuPixel, M: GpuMap> GpuWarp<T, M> {
    /// Compiles the kernels.
    ///
    /// # Errors
    /// [`Error::Unsupported`] by a device without f64, [`Error::Device`] when it fails.
    pub fn new(gpu: &Gpu, interpolation: Interpolation, channels: usize) -> Result<Self> {
        gpu.require_f64()?;
        let program = gpu.program(&source::<T, M>(interpolation, channels))?;
        let weights = Weights::new(interpolation);
        let len = weights_a_row(interpolation);
        let mut weights: Vec<f32> = weights.table.iter().flat_map(|row| row[..len].to_vec()).collect();
        weights.resize(weights.len().max(4), 0.0);
        Ok(Self {
            gpu: gpu.clone(),
            warp: program.kernel::<Warp<'_, T>>()?,
            coverage: program.kernel::<Coverage<'_>>()?,
            weights: gpu.upload(&weights)?,
            channels,
            map: PhantomData,
        })
    }

    /// The output of `size` whose pixel (x, y) shows the input at `map`(x, y); places without input get `fill`.
    ///
    /// # Errors
    /// [`Error::Image`] when the image has other channels than the plan was made for or the output has no pixel,
    /// [`Error::Device`] when the device's memory is too small.
    pub fn warp(&self, image: &GpuImage<T>, map: &M, size: Size, fill: T) -> Result<GpuImage<T>> {
        let out = GpuImage::with_channels(&self.gpu, size, self.channels)?;
        let mut commands = Commands::new();
        let (from, to) = (GpuStack::of(image, &mut commands)?, GpuStack::result(&out)?);
        self.record_batch(&mut commands, &from, map, fill, &to)?;
        self.gpu.run(&commands)?;
        Ok(out)
    }

    /// Puts the work of [`warp`](Self::warp) into a list, for all images of a stack through one map.
    ///
    /// # Errors
    /// As [`warp`](Self::warp), and [`Error::Image`] when the stacks differ in number.
    pub fn record_batch(
        &self,
        commands: &mut Commands,
        from: &GpuStack<T>,
        map: &M,
        fill: T,
        to: &GpuStack<T>,
    ) -> Result<()> {
        if [from.channels(), to.channels(), to.count()] != [self.channels, self.channels, from.count()] {
            return Err(Error::Image(format!(
                "warp: this plan is for {} channels; given are {} images with {} and, for the result, {} with {}",
                self.channels,
                from.count(),
                from.channels(),
                to.count(),
                to.channels(),
            )));
        }
        let [across, all] = groups(to.size());
        let arguments = Warp {
            to: to.laid(),
            from: from.laid(),
            table: &self.weights,
            map: map.numbers(),
            fill: fill.to_f32(),
            weights: self.weights.len() as u32,
            across: across as i32,
        };
        commands.stage("warp");
        Ok(commands.launch(&self.warp, [all, 1, to.count()], arguments)?)
    }

    /// 255 where [`warp`](Self::warp) finds input, 0 elsewhere.
    ///
    /// # Errors
    /// As [`warp`](Self::warp).
    pub fn coverage(&self, input: Size, map: &M, size: Size) -> Result<GpuImage<u8>> {
        let out = GpuImage::new(&self.gpu, size)?;
        if input.width.max(input.height) >= 1 << 30 {
            return Err(Error::Image(format!("coverage of {input}")));
        }
        let [across, all] = groups(out.size());
        let [width, height, across] = [input.width, input.height, across].map(|n| n as i32);
        let arguments = Coverage { to: out.laid(), map: map.numbers(), width, height, across };
        let mut commands = Commands::new();
        commands.stage("coverage");
        commands.launch(&self.coverage, [all, 1, 1], arguments)?;
        self.gpu.run(&commands)?;
        Ok(out)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::device::gpu::all;
    use crate::device::{Cpu, Processor};
    use crate::filter::gpu::testing::images;
    use crate::geometry::warp::tests::ALL;
    use crate::geometry::warp::{WarpOptions, coverage, warp};
    use crate::geometry::{Affine, Similarity};
    use crate::image::testing::assert_same;
    use crate::numeric::Random;

    /// The devices with f64; asserts that others refuse to warp.
    fn with_f64() -> impl Iterator<Item = &'static Gpu> {
        all().iter().filter(|gpu| {
            let refused = GpuWarp::<u8>::new(gpu, Interpolation::Bilinear, 1);
            let unsupported = matches!(refused, Err(Error::Unsupported { .. }));
            assert_eq!(unsupported, !gpu.info().has_f64, "{gpu:?}");
            gpu.info().has_f64
        })
    }

    /// Difficult maps: the horizon within the output, and in its first column; a last element of 0; strong reduction.
    fn maps() -> Vec<Homography> {
        let h = |m| Homography::new(m).unwrap();
        let mut maps = vec![
            Homography::default(),
            h([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0], [0.0, 0.0, 1.0]]),
            h([[0.9, 0.3, -4.0], [-0.2, 1.1, 2.0], [0.01, -0.02, 1.0]]),
            h([[1.3, -0.3, 5.0], [0.4, 0.7, 2.5], [-0.05, 0.03, 1.0]]),
            h([[3.0, 0.1, 7.0], [0.2, 5.0, 1.0], [1.0, 0.5, 0.0]]),
            h([[17.0, 0.0, 0.25], [0.0, 13.0, 0.5], [0.0, 0.0, 1.0]]),
            Affine::new([[0.0, 1.0, 0.0], [-1.0, 0.0, 40.0]]).unwrap().into(),
            Affine::from(Similarity::new([0.8, 0.3], [3.25, -7.5]).unwrap()).into(),
        ];
        let mut random = Random::new(3);
        let mut next = |scale: f64| (random.unit() - 0.5) * scale;
        maps.extend((0..8).filter_map(|_| {
            let first = [1.0 + next(1.0), next(1.0), next(30.0)];
            let second = [next(1.0), 1.0 + next(1.0), next(30.0)];
            Homography::new([first, second, [next(0.06), next(0.06), 1.0]]).ok()
        }));
        maps
    }

    fn twins<T: GpuPixel>(channels: usize, fill: f32) {
        let (cpu, images) = (Cpu::default(), images::<T>(channels));
        let alone = Processor::from(cpu.clone());
        for gpu in all() {
            let there = Processor::with_gpu(cpu.clone(), gpu.clone());
            for kind in ALL {
                let options = WarpOptions { interpolation: kind, fill };
                for (m, map) in maps().iter().enumerate() {
                    let image = &images[m % images.len()];
                    let size = Size::new(77 + m, 60 - m);
                    let context = format!("{gpu:?}, {kind:?}, {} x {channels}, map {m}", image.size());
                    let [found, expected] =
                        [&there, &alone].map(|on| warp(image.view(), map, size, &options, on).unwrap());
                    assert_same(&found, &expected, &context);
                    let [found, expected] =
                        [&there, &alone].map(|on| coverage(image.size(), map, size, on).unwrap());
                    assert_same(&found, &expected, &context);
                }
            }
            let is_silent = there.take_notes().is_empty();
            assert_eq!(is_silent, gpu.info().has_f64, "{gpu:?}: a note where the CPU had to do it");
        }
    }

    #[test]
    fn pictures_are_those_of_the_cpu() {
        twins::<u8>(1, 77.0);
        twins::<u8>(3, 0.0);
        twins::<u16>(1, 999.0);
        twins::<f32>(1, -0.0);
        twins::<f32>(4, 0.25);
    }

    #[test]
    fn a_stack_is_warped_image_by_image() {
        let size = Size::new(50, 41);
        for gpu in with_f64() {
            let images = images::<f32>(1);
            let mut second = images[7].clone();
            second.data_mut().reverse();
            let stack = GpuStack::upload(gpu, &[images[7].view(), second.view()]).unwrap();
            let out = GpuStack::new(gpu, size, 1, 2).unwrap();
            let plan = GpuWarp::<f32>::new(gpu, Interpolation::Bicubic, 1).unwrap();
            let map = maps()[2];
            let mut commands = Commands::new();
            plan.record_batch(&mut commands, &stack, &map, 0.0, &out).unwrap();
            gpu.run(&commands).unwrap();
            for (i, image) in [&images[7], &second].into_iter().enumerate() {
                let cpu = Cpu::default().into();
                let expected = warp(image.view(), &map, size, &WarpOptions::default(), &cpu).unwrap();
                assert_same(&out.download(i).unwrap(), &expected, format!("{gpu:?}: image {i}"));
            }
            assert!(plan.warp(&GpuImage::with_channels(gpu, size, 2).unwrap(), &map, size, 0.0).is_err());
        }
    }

    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        let other = source::<f32, Homography>(Interpolation::Lanczos3, 1);
        ALL.map(|kind| source::<u8, Homography>(kind, 3)).into_iter().chain([other]).collect()
    }
}
