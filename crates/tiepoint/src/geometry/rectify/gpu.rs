//! Rectification of pictures in a device's memory.

use super::{Inverse, RectifiedView};
use crate::Result;
use crate::device::Processor;
use crate::geometry::warp::{GpuMap, NUMBERS, WarpOptions, coverage_pixels, warp_pixels};
use crate::image::{Made, MadeMask, Pixels};

impl GpuMap for Inverse {
    const TEXT: &'static str = include_str!("rectify.h");

    fn numbers(&self) -> [f64; NUMBERS] {
        let RectifiedView { camera, focal, principal: [x, y], .. } = self.view;
        let (lens, [back, view]) = (camera.distortion, [self.back.as_flattened(), &[focal, x, y]]);
        let lens = [lens.k1, lens.k2, lens.p1, lens.p2, lens.k3, self.reach];
        let all = back.iter().chain(view).chain(&camera.focal).chain(&camera.principal).chain(&lens);
        let mut numbers = [0.0; NUMBERS];
        numbers.iter_mut().zip(all).for_each(|(to, from)| *to = *from);
        numbers
    }
}

impl RectifiedView {
    /// [`warp`](Self::warp) of a picture of any type. One on a GPU is warped there, and the result stays there; one in
    /// the host's memory is warped by the processor's GPU if that supports it, otherwise by its CPU. The bits are
    /// the same, except those of a NaN. Raw frames of two cameras become disparities without leaving the device:
    ///
    /// ```no_run
    /// use tiepoint::device::Device;
    /// use tiepoint::geometry::calibration::StereoCalibration;
    /// use tiepoint::geometry::rectify::{Rectification, RectifyOptions};
    /// use tiepoint::geometry::warp::WarpOptions;
    /// use tiepoint::image::{Image, Pixels, Size, gpu::GpuImage};
    /// use tiepoint::stereo::{Stereo, StereoOptions};
    ///
    /// let rig = StereoCalibration::read(&["cameras.yml"])?;
    /// let size = Size::new(1280, 720);
    /// let Rectification { left, right, .. } = Rectification::new(&rig, [size; 2], &RectifyOptions::default())?;
    /// let processor = Device::Cuda(0).open(4)?;
    /// let stereo = Stereo::new(StereoOptions::default())?;
    /// let gpu = processor.gpu().ok_or_else(|| tiepoint::Error::Image("no GPU".into()))?;
    /// let frame = GpuImage::upload(gpu, Image::filled(size, 3, 0_u8).view())?;
    /// let options = WarpOptions::default();
    /// let pair = [left.warp_with(&frame, &options, &processor)?, right.warp_with(&frame, &options, &processor)?];
    /// let valid = [left.coverage_with(&frame, &processor)?, right.coverage_with(&frame, &processor)?];
    /// let [left, right] = pair.each_ref().map(Pixels::from);
    /// let [left_valid, right_valid] = valid.each_ref().map(Pixels::from);
    /// let disparities = stereo.compute_on_device(left, right, [Some(left_valid), Some(right_valid)], &processor)?;
    /// # Ok::<(), tiepoint::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`warp`](Self::warp); on a device also [`Error::Unsupported`](crate::Error::Unsupported) where it lacks f64 and
    /// [`Error::Memory`](crate::Error::Memory) where its memory is too small.
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
    use crate::geometry::calibration::{Camera, Distortion};
    use crate::geometry::warp::{self, Interpolation};
    use crate::image::gpu::{AnyGpuImage, GpuImage, GpuPixel};
    use crate::image::testing::assert_same;
    use crate::image::{AnyImage, Image, Size};
    use crate::numeric::Random;
    use crate::options::Named;

    /// Views with and without distortion, rotated little and far, with a lens that folds, and outside the picture.
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

    fn twins<T: GpuPixel>(channels: usize, fill: f32) {
        let (cpu, mut random) = (Cpu::sequential(), Random::new(41));
        for (n, input) in [Size::new(83, 61), Size::new(1, 1), Size::new(40, 1)].into_iter().enumerate() {
            let mut number = || T::from_f32((random.bits() % 256) as f32 / 255.0 * T::WHITE);
            let picture =
                Image::from_vec((0..input.area() * channels).map(|_| number()).collect(), input, channels);
            let picture = picture.unwrap();
            for gpu in all().iter().filter(|gpu| gpu.info().has_f64) {
                let there = AnyGpuImage::from(GpuImage::upload(gpu, picture.view()).unwrap());
                for (i, view) in views(input).into_iter().enumerate() {
                    let kinds = Interpolation::ALL;
                    let interpolation = kinds[(n + i) % kinds.len()].value;
                    let options = WarpOptions { interpolation, fill };
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
    fn pictures_of_other_sizes_are_refused() {
        let view = &views(Size::new(83, 61))[5];
        let refused = |picture: Pixels<'_>| {
            let (options, processor) = (WarpOptions::default(), Processor::from(Cpu::sequential()));
            let refused = view.warp_with(picture, &options, &processor).unwrap_err().to_string();
            assert!(refused.contains("82x61"), "{refused}");
        };
        let other = Image::<u8>::new(Size::new(82, 61));
        refused((&other).into());
        all().iter().for_each(|gpu| refused((&GpuImage::upload(gpu, other.view()).unwrap()).into()));
    }

    pub(crate) fn kernel_sources() -> Vec<tiepoint_gpu::KernelSource> {
        vec![
            warp::map_source::<u8, Inverse>(Interpolation::Bicubic, 3),
            warp::map_source::<f32, Inverse>(Interpolation::Lanczos3, 1),
        ]
    }
}
