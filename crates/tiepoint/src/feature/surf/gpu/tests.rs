//! SURF on every device against the CPU, stage by stage and as a whole: equal in every bit.

use super::super::tests::{presets, texture};
use super::super::{SurfOptions, SurfPreset, describe, extrema, orient, response};
use super::SurfPipeline;
use super::bisect::stages_of;
use crate::device::Cpu;
use crate::device::gpu::all;
use crate::feature::DescriptorKind;
use crate::feature::testing::{
    self, Twin, agree, batches_give_what_single_images_give, selections, serves_any_image,
};
use crate::feature::{Features, surf};
use crate::image::gpu::GpuPixel;
use crate::image::{Image, ImageView, Pixel, Size, testing::photograph};
use crate::numeric::Random;
use tiepoint_gpu::KernelSource;

impl Twin for SurfPipeline {
    fn on_cpu<T: Pixel>(
        image: ImageView<'_, T>,
        options: &SurfOptions,
        mask: Option<ImageView<'_, u8>>,
    ) -> Features {
        surf::detect(image, options, mask, &Cpu::sequential()).unwrap()
    }
}

/// Compares an image's features on every device with the CPU's, and returns their number.
fn compare<T: GpuPixel>(image: &Image<T>, options: SurfOptions) -> usize {
    for gpu in all() {
        agree::<SurfPipeline, T>(gpu, image, &options, None);
    }
    SurfPipeline::on_cpu(image.view(), &options, None).len()
}

#[test]
fn variants_equal_the_cpu() {
    let size = Size::new(118, 141);
    let image = texture::<u8>(size, 2);
    for preset in presets() {
        let preset = SurfOptions { threshold: preset.threshold * 0.1, ..preset };
        assert!(compare(&image, preset) > 50, "features of {preset:?}");
        compare(&texture::<u16>(size, 2), preset);
        compare(&texture::<f32>(size, 2), preset);
        let variants = [
            SurfOptions { upright: true, ..preset },
            SurfOptions { extended: true, ..preset },
            SurfOptions { descriptors: DescriptorKind::None, step: 2, ..preset },
            SurfOptions { intervals: 3, octaves: Some(2), step: 4, threshold: 0.0, ..preset },
            SurfOptions { intervals: 8, octaves: Some(6), step: 1, ..preset },
        ];
        let selections =
            [7, 0].map(|n| selections(n, |selection| SurfOptions { selection, ..preset })).concat();
        for options in variants.into_iter().chain(selections) {
            compare(&image, options);
        }
    }
}

#[test]
fn any_size_equals_the_cpu() {
    let mut random = Random::new(7);
    let mut next = |n: usize| random.below(n);
    for i in 0..24 {
        let side = |n: usize| if n < 10 { 1 } else { n };
        let size = if i == 0 { Size::new(1, 1) } else { Size::new(side(next(140)), side(next(140))) };
        let seed = next(1 << 16) as u64;
        let options = SurfOptions { threshold: 0.0, ..presets()[i % 3] };
        compare(&texture::<u8>(size, seed), options);
        compare(&texture::<f32>(size, seed), options);
    }
}

#[test]
fn strange_pixels_equal_the_cpu() {
    let strange = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0, 2.0, 0.5, 0.0, 1.0];
    let image = Image::from_fn(Size::new(90, 80), |x, y| strange[(x / 7 * 5 + y / 9 * 3) % 8]);
    let checks = |x: usize, y: usize| u8::from((x / 20 + y / 20).is_multiple_of(2)) * 255;
    let checks = Image::from_fn(Size::new(260, 240), checks);
    for options in presets() {
        compare(&image, options);
        compare(&checks, options);
    }
}

#[test]
fn batches_equal_single_images() {
    batches_give_what_single_images_give::<SurfPipeline>(
        texture,
        &SurfOptions::default().with_threshold(1e-4),
    );
}

#[test]
fn a_detector_serves_any_image() {
    serves_any_image::<SurfPipeline>(texture, &SurfOptions::default().with_threshold(0.0));
}

#[test]
fn wrong_input_is_an_error() {
    let options = SurfOptions::default();
    testing::wrong_input_is_an_error::<SurfPipeline>(options, options.with_octaves(Some(7)));
}

pub(crate) fn kernel_sources() -> Vec<KernelSource> {
    let mut sources = vec![];
    let extended = SurfOptions { extended: true, upright: true, ..SurfOptions::preset(SurfPreset::OpenCv) };
    let options = [SurfOptions::default(), SurfOptions::preset(SurfPreset::OpenSurf), extended];
    sources.extend([response::gpu::source::<u32>(), response::gpu::source::<u64>()]);
    sources.extend(options.map(|o| extrema::gpu::source(&o)));
    sources.extend([orient::gpu::source::<u32>(&options[0]), describe::gpu::source::<u32>(&options[0])]);
    sources.extend(options.map(|o| orient::gpu::source::<u64>(&o)));
    sources.extend(options.map(|o| describe::gpu::source::<u64>(&o)));
    sources
}

#[test]
fn photographs_equal_the_cpu() {
    let Some(photograph) = photograph("pairs/cudasift/left.pgm") else { return };
    let crop = Image::from_fn(Size::new(500, 400), |x, y| photograph.row(y + 300)[x + 400]);
    for options in presets() {
        assert!(compare(&crop, options) > 100, "features of {options:?}");
    }
}

/// Every stage alone, on the CPU's results of the stages before it.
#[test]
fn stages_equal_the_cpu() {
    let (size, cpu) = (Size::new(230, 190), Cpu::sequential());
    for gpu in all() {
        for preset in presets() {
            let options = SurfOptions { threshold: preset.threshold * 0.1, ..preset };
            let what = format!("{gpu:?}, {:?}", options.preset);
            stages_of::<u8, u32>(texture(size, 6).view(), &options, gpu, &cpu).assert_equal(&what);
            let extended = SurfOptions { extended: true, ..options };
            stages_of::<f32, u64>(texture(size, 6).view(), &extended, gpu, &cpu).assert_equal(&what);
        }
    }
}
