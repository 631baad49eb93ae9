//! Every stage on every device against the scalar reference, and whole searches against the CPU's.

use super::super::tests::scene;
use super::super::{DIMENSION, SiftOptions, SiftPreset, reference};
use super::SiftPipeline;
use super::plan::{GpuLevels, Plan};
use crate::device::Cpu;
use crate::device::gpu::{Commands, Gpu, all};
use crate::feature::gpu::{GpuDescriptors, GpuFeatures, GpuKeypoints};
use crate::feature::order::GpuOrder;
use crate::feature::select::Selection;
use crate::feature::sift::describe::gpu::GpuDescribe;
use crate::feature::sift::orient::gpu::GpuOrient;
use crate::feature::testing::{
    self, Twin, agree, batches_give_what_single_images_give, selections, serves_any_image,
};
use crate::feature::{DescriptorKind, Features, Keypoint, sift};
use crate::feature::{WORDS, to_words};
use crate::image::{self, Image, ImageView, Pixel, Size};
use crate::numeric::Random;
use tiepoint_gpu::KernelSource;

pub(super) const PRESETS: [SiftPreset; 3] = [SiftPreset::Default, SiftPreset::OpenCv, SiftPreset::VlFeat];

/// Options that change orientation and description.
fn variants() -> Vec<SiftOptions> {
    let [default, opencv, vlfeat] =
        PRESETS.map(|preset| SiftOptions { contrast: 0.01, ..SiftOptions::preset(preset) });
    vec![
        default,
        SiftOptions { root: true, ..default },
        SiftOptions { descriptors: DescriptorKind::F32, root: true, first_octave: 0, ..default },
        SiftOptions { descriptors: DescriptorKind::F32, ..opencv },
        SiftOptions { descriptors: DescriptorKind::None, levels: 2, ..opencv },
        vlfeat,
        SiftOptions { levels: 1, sigma: 4.0, ..vlfeat },
    ]
}

/// The levels of one image in the pipeline's memory layout.
pub(super) fn upload_levels<'l>(
    gpu: &Gpu,
    octaves: impl ExactSizeIterator<Item = &'l [Image<f32>]>,
    options: &SiftOptions,
    input: Size,
) -> GpuLevels {
    let plan = Plan::new(input, 1, options).unwrap();
    assert_eq!(plan.octaves.len(), octaves.len(), "as many octaves as on the CPU");
    let mut values = vec![f32::NAN; plan.len()];
    for (to, levels) in plan.octaves.iter().zip(octaves) {
        assert_eq!(to.size, levels[0].size(), "the same octave");
        for (level, to_level) in levels.iter().zip(values[to.offset..].chunks_exact_mut(to.level_len())) {
            for (y, row) in to_level.chunks_exact_mut(to.pitch).enumerate() {
                row[..to.size.width].copy_from_slice(level.row(y));
            }
        }
    }
    GpuLevels { values: gpu.upload(&values).unwrap(), octaves: gpu.upload(&plan.table()).unwrap(), plan }
}

/// The extrema, and points at random positions and scales, also at the edges.
fn points<'o, 'p>(
    octaves: &'o [reference::Octave<'p>],
) -> Vec<(&'o reference::Octave<'p>, reference::Point)> {
    let mut random = Random::new(7);
    let mut random = move |most: f32| random.unit() as f32 * most;
    let mut points = Vec::new();
    for octave in octaves {
        points.extend(octave.points().into_iter().map(|p| (octave, p)));
        let Size { width, height } = octave.gaussians[0].size();
        let pixel = 2_f32.powi(i32::from(octave.number));
        for i in 0..10 {
            let (x, y, scale) =
                (random(width as f32 - 0.51), random(height as f32 - 0.51), 1.7 + random(1.6));
            let (number, layer) = (octave.number, 1 + i % (octave.gaussians.len() as u8 - 3));
            let keypoint =
                Keypoint { response: random(1.0), sign: 1, octave: number, layer, ..Keypoint::default() };
            let keypoint = Keypoint { x: x * pixel, y: y * pixel, scale: scale * pixel, ..keypoint };
            points.push((octave, reference::Point { keypoint, x, y, scale }));
        }
    }
    points
}

fn upload_list(gpu: &Gpu, keypoints: &[Keypoint], capacity: usize) -> GpuKeypoints {
    let mut words: Vec<u32> = keypoints.iter().flat_map(to_words).collect();
    words.resize(capacity * WORDS, 0);
    let counts = gpu.upload(&[keypoints.len() as u32]).unwrap();
    GpuKeypoints { keypoints: gpu.upload(&words).unwrap(), counts, capacity }
}

pub(super) fn oriented_and_described(
    gpu: &Gpu,
    options: &SiftOptions,
    points: &[Keypoint],
    levels: &GpuLevels,
) -> Features {
    let points = upload_list(gpu, points, points.len());
    let capacity = 4 * points.capacity;
    let [features, described] = [(); 2].map(|()| GpuKeypoints::new(gpu, 1, capacity).unwrap());
    let descriptors = match options.descriptors {
        DescriptorKind::F32 => GpuDescriptors::F32(gpu.buffer(capacity * DIMENSION).unwrap()),
        _ => GpuDescriptors::U8(gpu.buffer(capacity * DIMENSION).unwrap()),
    };
    let [first, spare] = [(); 2].map(|()| gpu.buffer(capacity).unwrap());
    let mut commands = Commands::new();
    commands.zero(&features.counts).unwrap();
    GpuOrient::new(gpu, options).unwrap().record(&mut commands, &features, &points, levels).unwrap();
    let order = GpuOrder::new(gpu, Selection::ALL).unwrap();
    let sorted = order.record(&mut commands, &features, (&first, &spare)).unwrap();
    GpuDescribe::new(gpu, options)
        .unwrap()
        .record(
            &mut commands,
            (&described, &descriptors),
            (&features, &features, sorted),
            (0..1, u32::MAX),
            levels,
        )
        .unwrap();
    gpu.run(&commands).unwrap();
    let dimension = if options.descriptors == DescriptorKind::None { 0 } else { DIMENSION };
    let GpuKeypoints { keypoints, counts: count, .. } = described;
    GpuFeatures { count, keypoints, descriptors, dimension, image: Size::new(1, 1) }.download().unwrap()
}

#[test]
fn orientations_and_descriptors_are_those_of_the_reference() {
    for (i, options) in variants().into_iter().enumerate() {
        let image = scene(Size::new(67 + i, 61), i as u64 + 1);
        let octaves = reference::octaves(image.view(), &options);
        let points = points(&octaves);
        let expected = points.iter().flat_map(|(octave, p)| octave.features(p)).collect();
        let expected = reference::arrange(expected, Size::new(1, 1), &options);
        assert!(expected.len() > 40, "{} features", expected.len());
        let keypoints: Vec<_> = points.iter().map(|(_, p)| p.keypoint).collect();
        for gpu in all() {
            let gaussians = octaves.iter().map(|o| &o.gaussians[..]);
            let levels = upload_levels(gpu, gaussians, &options, image.size());
            let found = oriented_and_described(gpu, &options, &keypoints, &levels);
            assert!(found.keypoints == expected.keypoints, "{gpu:?}, keypoints with {options:?}");
            assert!(found == expected, "{gpu:?}, descriptors with {options:?}");
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
    let sizes = [(1, 1), (1, 40), (40, 1), (7, 12), (33, 17), (96, 71), (131, 60)];
    for gpu in all() {
        for (i, (width, height)) in sizes.into_iter().enumerate() {
            let image = scene(Size::new(width, height), i as u64 + 1);
            for preset in PRESETS {
                for first_octave in [-1, 0] {
                    let options = SiftOptions { first_octave, contrast: 0.01, ..SiftOptions::preset(preset) };
                    agree::<SiftPipeline, _>(gpu, &image, &options, None);
                }
            }
        }
    }
}

#[test]
fn features_are_those_of_the_cpu_for_every_option_and_pixel() {
    let image = scene(Size::new(97, 83), 7);
    let deep = Image::from_fn(image.size(), |x, y| u16::from(image.row(y)[x]) * 200 + x as u16);
    let float = Image::from_fn(image.size(), |x, y| f32::from(image.row(y)[x]) * 0.005 - 0.01);
    let base = SiftOptions { contrast: 0.01, ..SiftOptions::default() };
    let options = [
        SiftOptions { root: true, ..base },
        SiftOptions { upright: true, ..base },
        SiftOptions { descriptors: DescriptorKind::F32, ..base },
        SiftOptions { descriptors: DescriptorKind::None, upright: true, ..base },
        SiftOptions { levels: 1, ..base },
        SiftOptions { levels: 5, ..base },
        SiftOptions { octaves: Some(2), ..base },
        SiftOptions { sigma: 2.3, input_sigma: 1.1, edge: 5.0, ..base },
    ];
    let selections = [10, 0].map(|n| selections(n, |selection| SiftOptions { selection, ..base })).concat();
    let options: Vec<SiftOptions> = options.into_iter().chain(selections).collect();
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
    let size = Size::new(400, 300);
    for gpu in all() {
        for name in ["pairs/cudasift/left.pgm", "homography/graf/img1.png"] {
            let image = photograph(name, size);
            assert!(
                agree::<SiftPipeline, _>(gpu, &image, &SiftOptions::default(), None).len() > 200,
                "enough to compare"
            );
        }
    }
}

#[test]
fn wrong_input_is_an_error() {
    let options = SiftOptions::default();
    testing::wrong_input_is_an_error::<SiftPipeline>(options, options.with_levels(0));
}

pub(crate) fn kernel_sources() -> Vec<KernelSource> {
    let mut sources = vec![];
    let typical = PRESETS.map(SiftOptions::preset);
    let others = SiftOptions { root: true, descriptors: DescriptorKind::F32, ..typical[0] };
    sources.extend(typical.map(|o| GpuOrient::source(&o)));
    sources.extend([typical[0], others].map(|o| GpuDescribe::source(&o)));
    sources
}
