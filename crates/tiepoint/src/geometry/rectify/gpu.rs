//! Rectification of pictures in a device's memory.

use super::{Inverse, Rectification, RectifiedView};
use crate::Result;
use crate::device::{Processor, gpu::Gpu};
use crate::geometry::warp::{GpuMap, GpuWarp, NUMBERS, WarpOptions, coverage_pixels, warp_pixels};
use crate::image::gpu::{GpuImage, GpuPixel};
use crate::image::{Made, MadeMask, Pixels};

impl GpuMap for Inverse {
    const TEXT: &'static str = include_str!("rectify.h");

    fn numbers(&self) -> [f64; NUMBERS] {
        let ([x, y], camera, lens) = (self.principal, self.camera, self.camera.distortion);
        let [back, view] = [self.back.as_flattened(), &[self.focal, x, y]];
        let lens = [lens.k1, lens.k2, lens.p1, lens.p2, lens.k3, self.reach];
        let all = back.iter().chain(view).chain(&camera.focal).chain(&camera.principal).chain(&lens);
        let mut numbers = [0.0; NUMBERS];
        numbers.iter_mut().zip(all).for_each(|(to, from)| *to = *from);
        numbers
    }
}

/// Rectifies pictures of one pixel type and number of channels on a device that has f64, as [`RectifiedView::warp`]
/// does on the CPU: the same bits, but for those of a NaN. Made once for the frames of a pair of cameras.
///
/// ```no_run
/// use tiepoint::device::Device;
/// use tiepoint::geometry::calibration::StereoCalibration;
/// use tiepoint::geometry::rectify::{GpuRectification, Rectification, RectifyOptions};
/// use tiepoint::geometry::warp::WarpOptions;
/// use tiepoint::image::{Image, Size, gpu::GpuImage};
/// use tiepoint::stereo::{GpuMasks, GpuStereo, StereoOptions};
///
/// let rig = StereoCalibration::read(&["cameras.yml"])?;
/// let size = Size::new(1280, 720);
/// let rectification = Rectification::new(&rig, [size; 2], &RectifyOptions::default())?;
/// let processor = Device::Cuda(0).open(4)?;
/// let stereo = GpuStereo::new(&processor, StereoOptions::default())?;
/// let rectify = GpuRectification::<u8>::new(stereo.gpu(), &rectification, &WarpOptions::default(), 3)?;
/// let frame = Image::filled(size, 3, 0_u8);
/// let frames = [GpuImage::upload(stereo.gpu(), frame.view())?, GpuImage::upload(stereo.gpu(), frame.view())?];
/// let [left, right] = rectify.warp(frames.each_ref())?;
/// let [left_valid, right_valid] = rectify.valid();
/// let masks = GpuMasks::new(Some(left_valid), Some(right_valid));
/// let disparities = stereo.compute_on_device(&left, &right, masks)?;
/// # Ok::<(), tiepoint::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GpuRectification<T: GpuPixel> {
    plan: GpuWarp<T, Inverse>,
    views: [RectifiedView; 2],
    fill: T,
    valid: [GpuImage<u8>; 2],
}

impl<T: GpuPixel> GpuRectification<T> {
    /// Prepares the rectification of pictures with this many channels; `options` give the interpolation, and the
    /// value of pixels without input.
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) by a device without f64,
    /// [`Error::Memory`](crate::Error::Memory) when its memory is too small, as [`WarpOptions::check_fill`],
    /// [`Error::Device`](crate::Error::Device) when it fails.
    pub fn new(
        gpu: &Gpu,
        rectification: &Rectification,
        options: &WarpOptions,
        channels: usize,
    ) -> Result<Self> {
        let views = [rectification.left.clone(), rectification.right.clone()];
        let plan = GpuWarp::new(gpu, options.interpolation, channels)?;
        let [left, right] =
            views.each_ref().map(|view| plan.coverage(view.input, &Inverse::of(view), view.size));
        Ok(Self { plan, views, fill: options.fill_as()?, valid: [left?, right?] })
    }

    /// The rectified pictures, computed in the device's queue; the fill value where the input shows nothing.
    ///
    /// # Errors
    /// [`Error::Mismatch`](crate::Error::Mismatch) when a picture has not the size that its view was made for,
    /// [`Error::Image`](crate::Error::Image) for other channels,
    /// [`Error::Memory`](crate::Error::Memory) when the device's memory is too small.
    pub fn warp(&self, [left, right]: [&GpuImage<T>; 2]) -> Result<[GpuImage<T>; 2]> {
        let [left_view, right_view] = &self.views;
        Ok([self.warp_view(left_view, left)?, self.warp_view(right_view, right)?])
    }

    fn warp_view(&self, view: &RectifiedView, picture: &GpuImage<T>) -> Result<GpuImage<T>> {
        view.check_picture(picture.size())?;
        self.plan.warp(picture, &Inverse::of(view), view.size, self.fill)
    }

    /// 255 where a rectified picture shows its input, 0 where it is filled: of the left and of the right one.
    pub fn valid(&self) -> [&GpuImage<u8>; 2] {
        self.valid.each_ref()
    }
}

impl RectifiedView {
    /// [`warp`](Self::warp) of a picture of any type on the GPU that has it, where the result stays, or of one of the
    /// host's on the processor's GPU where there is one that can, otherwise on its CPU.
    ///
    /// # Errors
    /// As [`warp`](Self::warp), [`GpuRectification::new`] and [`GpuRectification::warp`].
    pub fn warp_with<'a>(
        &self,
        picture: impl Into<Pixels<'a>>,
        options: &WarpOptions,
        processor: &Processor,
    ) -> Result<Made> {
        let picture = picture.into();
        self.check_picture(picture.size())?;
        warp_pixels(&picture, &Inverse::of(self), self.size, options, processor)
    }

    /// [`coverage`](Self::coverage), in the memory in which [`warp_with`](Self::warp_with) leaves its result.
    ///
    /// # Errors
    /// As [`warp_with`](Self::warp_with).
    pub fn coverage_with<'a>(
        &self,
        picture: impl Into<Pixels<'a>>,
        processor: &Processor,
    ) -> Result<MadeMask> {
        coverage_pixels(&picture.into(), &Inverse::of(self), self.size, processor)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::device::Cpu;
    use crate::device::gpu::all;
    use crate::geometry::calibration::{Camera, Distortion, Projection};
    use crate::geometry::warp::{self, Interpolation};
    use crate::image::gpu::AnyGpuImage;
    use crate::image::testing::assert_same;
    use crate::image::{AnyImage, AnyView, Image, Size};
    use crate::numeric::Random;

    /// Views with and without distortion, rotated little and far, with a lens that folds, and beside the picture.
    fn views(input: Size) -> Vec<RectifiedView> {
        let lenses = [
            [0.0; 5],
            [-0.3, 0.12, 0.002, -0.001, -0.02],
            [-0.9, 0.0, 0.0, 0.0, 0.0],
            [0.2, -0.05, -0.01, 0.004, 0.3],
        ];
        let turns: [[[f64; 3]; 3]; 4] = [
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            [[0.96, -0.28, 0.0], [0.28, 0.96, 0.0], [0.0, 0.0, 1.0]],
            [[0.6, 0.0, 0.8], [0.0, 1.0, 0.0], [-0.8, 0.0, 0.6]],
            [[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0]],
        ];
        let (width, height) = (input.width as f64, input.height as f64);
        let view = |(i, (lens, rotation)): (usize, ([f64; 5], _))| RectifiedView {
            camera: Camera {
                focal: [0.8 * width + 1.0, 0.9 * width + 0.7],
                principal: [0.48 * width, 0.53 * height],
                distortion: Distortion::from_opencv(lens),
            },
            input,
            rotation,
            focal: 0.7 * width + 0.3 * i as f64 + 1.0,
            principal: [0.5 * width - i as f64, 0.45 * height],
            size: Size::new(70 + i, 50 - i),
        };
        let all = lenses.into_iter().flat_map(|lens| turns.map(|turn| (lens, turn)));
        all.enumerate().map(view).collect()
    }

    fn twins<T: GpuPixel>(channels: usize, fill: f32)
    where
        AnyGpuImage: From<GpuImage<T>>,
        AnyImage: From<Image<T>>,
        for<'a> AnyView<'a>: From<&'a Image<T>>,
    {
        let (cpu, mut random) = (Cpu::sequential(), Random::new(41));
        for (n, input) in [Size::new(83, 61), Size::new(1, 1), Size::new(40, 1)].into_iter().enumerate() {
            let mut number = || T::from_f32((random.bits() % 256) as f32 / 255.0 * T::WHITE);
            let picture =
                Image::from_vec((0..input.area() * channels).map(|_| number()).collect(), input, channels);
            let picture = picture.unwrap();
            for gpu in all().iter().filter(|gpu| gpu.info().has_f64) {
                let there = AnyGpuImage::from(GpuImage::upload(gpu, picture.view()).unwrap());
                for (i, view) in views(input).into_iter().enumerate() {
                    let kinds = [Interpolation::Bilinear, Interpolation::Bicubic, Interpolation::Lanczos3];
                    let options = WarpOptions { interpolation: kinds[(n + i) % 3], fill };
                    let what = format!("{gpu:?}, {input} x {channels}, view {i}");
                    let expected = view.warp(picture.view(), &options, &cpu).unwrap();
                    let expected = AnyImage::from(expected);
                    let processor = Processor::with_gpu(cpu.clone(), gpu.clone());
                    let covered = view.coverage(&cpu).unwrap();
                    for picture in [Pixels::from(&there), (&picture).into()] {
                        let found = view.warp_with(picture.clone(), &options, &processor).unwrap();
                        assert_eq!(found.into_host().unwrap(), expected, "{what}");
                        let found = view.coverage_with(picture, &processor).unwrap();
                        assert_same(&found.into_host().unwrap(), &covered, &what);
                    }
                    assert!(processor.take_notes().is_empty(), "the device does it: {what}");
                }
            }
        }
    }

    #[test]
    fn rectified_pictures_are_those_of_the_cpu() {
        twins::<u8>(3, 0.0);
        twins::<u16>(1, 999.0);
        twins::<f32>(4, 0.25);
    }

    #[test]
    fn pairs_are_rectified_and_pictures_of_other_sizes_refused() {
        let (input, cpu) = (Size::new(83, 61), Cpu::sequential());
        let views = views(input);
        let rectification = Rectification {
            left: views[5].clone(),
            right: views[9].clone(),
            baseline: 1.0,
            projection: Projection::Perspective,
        };
        let options = WarpOptions::default();
        let frame = Image::from_fn(input, |x, y| (x * 3 + y * 5) as u8);
        for gpu in all() {
            let plan = GpuRectification::<u8>::new(gpu, &rectification, &options, 1);
            if !gpu.info().has_f64 {
                assert!(plan.is_err_and(|e| e.is_device_limit()), "the CPU can: {gpu:?}");
                continue;
            }
            let plan = plan.unwrap();
            let there = GpuImage::upload(gpu, frame.view()).unwrap();
            let found = plan.warp([&there, &there]).unwrap();
            for (i, view) in [&rectification.left, &rectification.right].into_iter().enumerate() {
                let expected = view.warp(frame.view(), &options, &cpu).unwrap();
                assert_same(&found[i].download().unwrap(), &expected, format!("{gpu:?}, view {i}"));
                let valid = plan.valid()[i].download().unwrap();
                assert_same(&valid, &view.coverage(&cpu).unwrap(), format!("{gpu:?}, valid, view {i}"));
                assert!(valid.data().contains(&255) && valid.data().contains(&0), "something to see");
            }
            let other = GpuImage::<u8>::new(gpu, Size::new(82, 61)).unwrap();
            let refused = plan.warp([&there, &other]).unwrap_err();
            assert!(refused.to_string().contains("82x61"), "{refused}");
            let colours = GpuImage::<u8>::with_channels(gpu, input, 3).unwrap();
            assert!(plan.warp([&colours, &there]).is_err(), "other channels");
        }
    }

    pub(crate) fn kernel_sources() -> Vec<tiepoint_gpu::KernelSource> {
        vec![
            warp::map_source::<u8, Inverse>(Interpolation::Bicubic, 3),
            warp::map_source::<f32, Inverse>(Interpolation::Lanczos3, 1),
        ]
    }
}
