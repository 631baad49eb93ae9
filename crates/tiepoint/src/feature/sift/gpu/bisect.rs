//! The stages of SIFT on a GPU, each given what the CPU makes of the stages before it.

use super::plan::{GpuLevels, Plan};
use crate::bisect::{Stages, difference_of_images};
use crate::device::Cpu;
use crate::device::gpu::{Commands, Gpu};
use crate::feature::gpu::{GpuDescriptors, GpuFeatures, GpuKeypoints};
use crate::feature::order;
use crate::feature::select::Selection;
use crate::feature::sift::scale_space::gpu::GpuBase;
use crate::feature::sift::scale_space::{self, whole};
use crate::feature::sift::{SiftOptions, describe, detect, extrema, orient};
use crate::feature::{ByValue, DescriptorKind, Features, Keypoint, to_words};
use crate::image::gpu::{GpuImage, GpuPixel};
use crate::image::{Image, ImageView, Size};

/// With default options.
pub(crate) fn stages<T: GpuPixel>(image: ImageView<'_, T>, gpu: &Gpu, cpu: &Cpu) -> Stages {
    stages_of(image, &SiftOptions::default(), gpu, cpu)
}

pub(super) fn stages_of<T: GpuPixel>(
    image: ImageView<'_, T>,
    options: &SiftOptions,
    gpu: &Gpu,
    cpu: &Cpu,
) -> Stages {
    let mut out = Stages::default();
    let octaves = whole(image, options, cpu);
    let plan = Plan::new(image.size(), 1, options).unwrap();
    assert_eq!(plan.octaves.len(), octaves.len(), "as many octaves as on the CPU");
    let levels = GpuLevels::new(gpu, plan).unwrap();
    let mut commands = Commands::new();
    let base = GpuBase::<T>::new(gpu, options).unwrap();
    base.record(&mut commands, &GpuImage::upload(gpu, image).unwrap(), 0, &levels).unwrap();
    scale_space::gpu::record(&mut commands, options, &levels).unwrap();
    gpu.run(&commands).unwrap();
    let values = levels.values.to_vec().unwrap();
    let both = levels.plan.octaves.iter().zip(&octaves);
    let mut both = both.flat_map(|(octave, levels)| levels.iter().enumerate().map(move |l| (octave, l)));
    let differs = both.find_map(|(octave, (l, expected))| {
        let found = &values[octave.offset + l * octave.level_len()..][..octave.level_len()];
        let found = ImageView::new(found, octave.size, 1, octave.pitch).unwrap().to_image();
        let told = difference_of_images(&found, expected)?;
        Some(format!("octave {}, level {l}: {told}", octave.number))
    });
    out.push("scale space", differs);

    upload_levels(&levels, &octaves);
    let upright = SiftOptions { upright: true, descriptors: DescriptorKind::None, ..*options };
    let points = detect(image, &upright, None, cpu).unwrap().keypoints;
    // Room for many surplus points, so that they show as a difference.
    let found = GpuKeypoints::new(gpu, 1, 2 * points.len() + 1024).unwrap();
    let mut commands = Commands::new();
    extrema::gpu::record(&mut commands, options, &levels, None, &found).unwrap();
    gpu.run(&commands).unwrap();
    let mut found = found.download();
    found.sort_by(Keypoint::order);
    out.compare_keypoints("extrema, refine", [&found, &points]);

    let expected = detect(image, options, None, cpu).unwrap();
    assert!(!expected.is_empty(), "SIFT finds nothing to compare");
    let found = oriented_and_described(options, &points, &levels);
    out.compare_keypoints("orient, order", [&found.keypoints, &expected.keypoints]);
    match (&found.descriptors, &expected.descriptors) {
        (ByValue::U8(found), ByValue::U8(expected)) => {
            out.compare("describe", [found, expected], |&value| value);
        }
        (ByValue::F32(found), ByValue::F32(expected)) => {
            out.compare("describe", [found, expected], |value| value.to_bits());
        }
        _ => unreachable!("one kind of descriptors was asked for"),
    }
    out
}

/// Overwrites the levels of one image with those of the CPU.
fn upload_levels(levels: &GpuLevels, octaves: &[Vec<Image<f32>>]) {
    let mut values = vec![f32::NAN; levels.plan.len()];
    for (to, levels) in levels.plan.octaves.iter().zip(octaves) {
        for (level, to_level) in levels.iter().zip(values[to.offset..].chunks_exact_mut(to.level_len())) {
            for (y, row) in to_level.chunks_exact_mut(to.pitch).enumerate() {
                row[..to.size.width].copy_from_slice(level.row(y));
            }
        }
    }
    levels.values.write(0, &values).unwrap();
}

fn oriented_and_described(options: &SiftOptions, points: &[Keypoint], levels: &GpuLevels) -> Features {
    let (gpu, capacity) = (levels.values.gpu(), 4 * points.len());
    let words: Vec<u32> = points.iter().flat_map(to_words).collect();
    let (keypoints, counts) = (gpu.upload(&words).unwrap(), gpu.upload(&[points.len() as u32]).unwrap());
    let points = GpuKeypoints { keypoints, counts, capacity: points.len() };
    let [features, described] = [(); 2].map(|()| GpuKeypoints::new(gpu, 1, capacity).unwrap());
    let values = capacity * options.dimension();
    let descriptors = GpuDescriptors::new(gpu, options.descriptors, values).unwrap();
    let [first, spare] = [(); 2].map(|()| gpu.buffer(capacity).unwrap());
    let mut commands = Commands::new();
    commands.zero(&features.counts).unwrap();
    orient::gpu::record(&mut commands, options, &features, &points, levels).unwrap();
    let both = (&first, &spare);
    let sorted = order::gpu::record(&mut commands, Selection::ALL, &features, both).unwrap();
    let (to, from) = ((&described, &descriptors), (&features, &features, sorted));
    describe::gpu::record(&mut commands, options, to, from, 0..1, levels).unwrap();
    gpu.run(&commands).unwrap();
    let GpuKeypoints { keypoints, counts: count, .. } = described;
    let (dimension, image, signed) = (options.dimension(), Size::new(1, 1), true);
    GpuFeatures { count, keypoints, descriptors, dimension, image, signed }.download().unwrap()
}
