//! Every stage on every device against the CPU's, and whole searches.

use super::SiftPipeline;
use super::bisect::stages_of;
use crate::device::Cpu;
use crate::device::gpu::all;
use crate::feature::select::Selection;
use crate::feature::sift::scale_space::gpu::GpuBase;
use crate::feature::sift::tests::scene;
use crate::feature::sift::{self, SiftOptions, SiftPreset, describe, extrema, orient, scale_space};
use crate::feature::testing::{
    self, Twin, agree, batches_give_what_single_images_give, selections, serves_any_image,
};
use crate::feature::{DescriptorKind, Features};
use crate::image::{self, Image, ImageView, Pixel, Size};
use tiepoint_gpu::KernelSource;

pub(super) const PRESETS: [SiftPreset; 3] = [SiftPreset::Default, SiftPreset::OpenCv, SiftPreset::VlFeat];

/// Every preset, with and without a doubled first octave.
pub(crate) fn presets() -> Vec<SiftOptions> {
    let options = PRESETS.map(|p| SiftOptions { contrast: 0.01, ..SiftOptions::preset(p) });
    options.into_iter().flat_map(|o| [-1, 0].map(|first_octave| SiftOptions { first_octave, ..o })).collect()
}

/// Options with narrow and wide Gaussians, with octaves that overlap in one launch or not, and with every form of
/// descriptors.
fn variants() -> Vec<SiftOptions> {
    let [base, opencv, vlfeat] =
        PRESETS.map(|preset| SiftOptions { contrast: 0.01, ..SiftOptions::preset(preset) });
    vec![
        SiftOptions { root: true, ..base },
        SiftOptions { descriptors: DescriptorKind::F32, ..base },
        SiftOptions { descriptors: DescriptorKind::F32, root: true, first_octave: 0, ..base },
        SiftOptions { descriptors: DescriptorKind::F32, ..opencv },
        SiftOptions { descriptors: DescriptorKind::None, levels: 2, ..opencv },
        SiftOptions { levels: 1, ..base },
        SiftOptions { levels: 1, sigma: 4.0, ..vlfeat },
        SiftOptions { levels: 1, sigma: 4.0, first_octave: 0, ..base },
        SiftOptions { levels: 2, ..base },
        SiftOptions { levels: 5, ..base },
        SiftOptions { levels: 8, octaves: Some(2), ..base },
        SiftOptions { sigma: 2.3, input_sigma: 1.1, edge: 5.0, ..base },
        SiftOptions { contrast: 0.0, edge: 1e4, ..base },
    ]
}

/// The image in 16 bits with more detail, and as floats of which some are below 0.
pub(super) fn deep_and_float(image: &Image<u8>) -> (Image<u16>, Image<f32>) {
    let deep = Image::from_fn(image.size(), |x, y| u16::from(image.row(y)[x]) * 200 + x as u16);
    let float = Image::from_fn(image.size(), |x, y| f32::from(image.row(y)[x]) * 0.005 - 0.01);
    (deep, float)
}

/// Every stage alone, on the CPU's results of the stages before it.
#[test]
fn stages_equal_the_cpu() {
    let (wide, image, cpu) = (scene(Size::new(231, 75), 3), scene(Size::new(97, 83), 7), Cpu::sequential());
    let (deep, float) = deep_and_float(&image);
    for gpu in all() {
        for options in presets() {
            let what = format!("{gpu:?}, {options:?}");
            stages_of(wide.view(), &options, gpu, &cpu).assert_equal(&what);
            stages_of(deep.view(), &options, gpu, &cpu).assert_equal(&what);
            stages_of(float.view(), &options, gpu, &cpu).assert_equal(&what);
        }
        for options in variants() {
            stages_of(image.view(), &options, gpu, &cpu).assert_equal(&format!("{gpu:?}, {options:?}"));
        }
    }
}

impl Twin for SiftPipeline {
    fn on_cpu<T: Pixel>(
        image: ImageView<'_, T>,
        options: &SiftOptions,
        mask: Option<ImageView<'_, u8>>,
    ) -> Features {
        sift::detect(image, options, mask, &Cpu::sequential()).unwrap()
    }
}

/// A photograph of the shared data, or a synthetic one where the data are absent.
pub(super) fn photograph(name: &str, size: Size) -> Image<u8> {
    let Some(image) = image::testing::photograph(name) else { return scene(size, 11) };
    let (x, y) = ((image.size().width - size.width) / 2, (image.size().height - size.height) / 2);
    Image::from_fn(size, |i, j| image.row(y + j)[x + i])
}

#[test]
fn features_are_those_of_the_cpu_for_every_size_and_preset() {
    let sizes =
        [(1, 1), (1, 40), (40, 1), (6, 5), (7, 12), (11, 11), (33, 17), (96, 71), (131, 60), (300, 140)];
    for gpu in all() {
        for (i, (width, height)) in sizes.into_iter().enumerate() {
            let image = scene(Size::new(width, height), i as u64 + 1);
            for options in presets() {
                agree::<SiftPipeline, _>(gpu, &image, &options, None);
            }
        }
    }
}

#[test]
fn features_are_those_of_the_cpu_for_every_option_and_pixel() {
    let image = scene(Size::new(61, 53), 7);
    let (deep, float) = deep_and_float(&image);
    let base = SiftOptions { contrast: 0.01, ..SiftOptions::default() };
    let mut options = variants();
    options.extend([
        SiftOptions { upright: true, ..base },
        SiftOptions { descriptors: DescriptorKind::None, upright: true, ..base },
    ]);
    options.extend([10, 0].map(|n| selections(n, |selection| SiftOptions { selection, ..base })).concat());
    for gpu in all() {
        for options in &options {
            agree::<SiftPipeline, _>(gpu, &image, options, None);
        }
        assert!(agree::<SiftPipeline, _>(gpu, &deep, &base, None).len() > 40, "enough to compare");
        assert!(agree::<SiftPipeline, _>(gpu, &float, &base, None).len() > 40, "enough to compare");
    }
}

#[test]
fn a_detector_serves_any_image() {
    serves_any_image::<SiftPipeline>(scene, &SiftOptions::default().with_contrast(0.005));
}

#[test]
fn batches_of_bytes_and_floats_give_what_single_images_give() {
    let options = SiftOptions::default();
    batches_give_what_single_images_give::<SiftPipeline>(scene, &options.with_contrast(0.005));
    let spread = options.with_selection(Selection::largest(30).with_even(true));
    let floats = spread.with_descriptors(DescriptorKind::F32);
    batches_give_what_single_images_give::<SiftPipeline>(scene, &floats);
}

#[test]
fn photographs_have_the_features_of_the_cpu() {
    let size = Size::new(300, 220);
    let names = ["pairs/cudasift/left.pgm", "homography/graf/img1.png", "photos/building.jpg"];
    let parts = names.map(|name| photograph(name, size));
    for gpu in all() {
        for (image, preset) in parts.iter().zip(PRESETS) {
            let found = agree::<SiftPipeline, _>(gpu, image, &SiftOptions::preset(preset), None);
            assert!(found.len() > 100, "{} features are too few to compare", found.len());
        }
    }
}

#[test]
fn wrong_input_is_an_error() {
    let options = SiftOptions::default();
    testing::wrong_input_is_an_error::<SiftPipeline>(options, options.with_levels(0));
}

pub(crate) fn kernel_sources() -> Vec<KernelSource> {
    let typical = PRESETS.map(SiftOptions::preset);
    let floats = SiftOptions { root: true, descriptors: DescriptorKind::F32, ..typical[0] };
    let many = SiftOptions { levels: 8, ..typical[1] };
    let vlfeat = SiftOptions { first_octave: 0, ..typical[2] };
    let mut sources = vec![
        GpuBase::<u8>::source(&typical[0]),
        GpuBase::<u16>::source(&many),
        GpuBase::<f32>::source(&vlfeat),
    ];
    sources.extend([typical[0], many, vlfeat].map(|o| extrema::gpu::source(&o)));
    sources.extend(typical.map(|o| orient::gpu::source(&o)));
    sources.extend([typical[0], floats].map(|o| describe::gpu::source(&o)));
    sources.extend(scale_space::gpu::sources(&typical[0]));
    sources.extend(scale_space::gpu::sources(&SiftOptions { levels: 1, sigma: 4.0, ..vlfeat }));
    sources
}
