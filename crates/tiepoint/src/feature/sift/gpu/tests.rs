//! Every stage on every device against the scalar reference, and the whole against the CPU.

use super::super::tests::scene;
use super::super::{DIMENSION, DescriptorKind, SiftOptions, SiftPreset, reference};
use super::describe::GpuDescribe;
use super::orient::GpuOrient;
use super::plan::{GpuLevels, GpuPoints, Plan};
use crate::device::gpu::{Commands, Gpu, all, compiles_everywhere};
use crate::feature::gpu::{GpuDescriptors, GpuFeatures, GpuOrder, to_words};
use crate::feature::{Features, Keypoint};
use crate::image::Size;

const PRESETS: [SiftPreset; 3] = [SiftPreset::Default, SiftPreset::OpenCv, SiftPreset::VlFeat];

/// Options that differ in what orientation and description do.
fn variants() -> Vec<SiftOptions> {
    let of_preset = |preset| {
        let base = SiftOptions { contrast: 0.01, ..SiftOptions::preset(preset) };
        [
            base,
            SiftOptions { root: true, ..base },
            SiftOptions { descriptors: DescriptorKind::F32, ..base },
            SiftOptions { descriptors: DescriptorKind::F32, root: true, first_octave: 0, ..base },
            SiftOptions { descriptors: DescriptorKind::None, levels: 2, ..base },
            SiftOptions { levels: 1, sigma: 4.0, ..base },
        ]
    };
    PRESETS.into_iter().flat_map(of_preset).collect()
}

/// The levels of one image as the pipeline lays them.
fn upload_levels(
    gpu: &Gpu,
    octaves: &[reference::Octave<'_>],
    options: &SiftOptions,
    input: Size,
) -> GpuLevels {
    let plan = Plan::new(input, 1, options).unwrap();
    assert_eq!(plan.octaves.len(), octaves.len(), "as many octaves as on the CPU");
    let mut values = vec![f32::NAN; plan.len()];
    for (to, octave) in plan.octaves.iter().zip(octaves) {
        assert_eq!((to.number, to.size), (octave.number, octave.gaussians[0].size()), "the same octave");
        for (level, to_level) in
            octave.gaussians.iter().zip(values[to.offset..].chunks_exact_mut(to.level_len()))
        {
            for (y, row) in to_level.chunks_exact_mut(to.pitch).enumerate() {
                row[..to.size.width].copy_from_slice(level.row(y));
            }
        }
    }
    GpuLevels { values: gpu.upload(&values).unwrap(), octaves: gpu.upload(&plan.table()).unwrap(), plan }
}

/// Points that extrema gave, and some at places and scales where no extremum would be: at the edges, for instance.
fn points<'o, 'p>(
    octaves: &'o [reference::Octave<'p>],
) -> Vec<(&'o reference::Octave<'p>, reference::Point)> {
    let mut state = 7_u32;
    let mut random = move |most: f32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 * most
    };
    let mut points = Vec::new();
    for octave in octaves {
        points.extend(octave.points().into_iter().map(|p| (octave, p)));
        let Size { width, height } = octave.gaussians[0].size();
        let pixel = 2_f32.powi(i32::from(octave.number));
        for i in 0..10 {
            let (x, y, scale) =
                (random(width as f32 - 0.51), random(height as f32 - 0.51), 1.7 + random(1.6));
            let keypoint = Keypoint {
                x: x * pixel,
                y: y * pixel,
                scale: scale * pixel,
                angle: 0.0,
                response: random(1.0),
                sign: 1,
                octave: octave.number,
                layer: 1 + i % (octave.gaussians.len() as u8 - 3),
            };
            points.push((octave, reference::Point { keypoint, x, y, scale }));
        }
    }
    points
}

fn upload_list(gpu: &Gpu, keypoints: &[Keypoint]) -> GpuPoints {
    let words: Vec<u32> = keypoints.iter().flat_map(to_words).collect();
    let counts = gpu.upload(&[keypoints.len() as u32]).unwrap();
    GpuPoints { keypoints: gpu.upload(&words).unwrap(), counts, capacity: keypoints.len() }
}

fn oriented_and_described(
    gpu: &Gpu,
    options: &SiftOptions,
    points: &[Keypoint],
    levels: &GpuLevels,
) -> Features {
    let points = upload_list(gpu, points);
    let capacity = 4 * points.capacity;
    let [features, described] = [(); 2].map(|()| GpuPoints::new(gpu, 1, capacity).unwrap());
    let descriptors = match options.descriptors {
        DescriptorKind::F32 => GpuDescriptors::F32(gpu.buffer(capacity * DIMENSION).unwrap()),
        _ => GpuDescriptors::U8(gpu.buffer(capacity * DIMENSION).unwrap()),
    };
    let [indices, spare] = [(); 2].map(|()| gpu.buffer(capacity).unwrap());
    let mut commands = Commands::new();
    commands.zero(&features.counts);
    GpuOrient::new(gpu, options).unwrap().record(&mut commands, &features, &points, levels).unwrap();
    let order = GpuOrder::new(gpu).unwrap();
    let sorted = order
        .record(&mut commands, &features.keypoints, &features.counts, capacity, (&indices, &spare))
        .unwrap();
    GpuDescribe::new(gpu, options)
        .unwrap()
        .record(&mut commands, (&described, &descriptors), (&features, sorted), usize::MAX, levels)
        .unwrap();
    gpu.run(&commands).unwrap();
    let dimension = if options.descriptors == DescriptorKind::None { 0 } else { DIMENSION };
    let GpuPoints { keypoints, counts: count, .. } = described;
    GpuFeatures { count, keypoints, descriptors, dimension, image: Size::new(1, 1) }.download().unwrap()
}

#[test]
fn orientations_and_descriptors_are_those_of_the_reference() {
    for (i, options) in variants().into_iter().enumerate() {
        let image = scene(Size::new(83 + i, 61), i as u64 + 1);
        let octaves = reference::octaves(image.view(), &options);
        let points = points(&octaves);
        let expected = points.iter().flat_map(|(octave, p)| octave.features(p)).collect();
        let expected = reference::arrange(expected, Size::new(1, 1), &options);
        assert!(expected.len() > 40, "{} features", expected.len());
        let keypoints: Vec<_> = points.iter().map(|(_, p)| p.keypoint).collect();
        for gpu in all() {
            let levels = upload_levels(gpu, &octaves, &options, image.size());
            let found = oriented_and_described(gpu, &options, &keypoints, &levels);
            assert!(found.keypoints == expected.keypoints, "{gpu:?}, keypoints with {options:?}");
            assert!(found == expected, "{gpu:?}, descriptors with {options:?}");
        }
    }
}

#[test]
fn kernels_compile_for_every_card() {
    let typical = PRESETS.map(SiftOptions::preset);
    let others = SiftOptions { root: true, descriptors: DescriptorKind::F32, ..typical[0] };
    compiles_everywhere(&typical.map(|o| GpuOrient::source(&o)));
    compiles_everywhere(&[typical[0], others].map(|o| GpuDescribe::source(&o)));
}
