//! The stages of SIFT with default options on a GPU, each given what the CPU makes of the stages before it.

use super::detect_tests::{oriented_and_described, upload_levels};
use super::tests::{level_of, points_of, scale_space};
use crate::bisect::{Stages, difference_of_images};
use crate::device::Cpu;
use crate::device::gpu::{Commands, Gpu};
use crate::feature::sift::scale_space::whole;
use crate::feature::sift::{SiftOptions, detect};
use crate::feature::{DescriptorKind, Descriptors};
use crate::image::ImageView;
use crate::image::gpu::GpuPixel;

pub(crate) fn stages<T: GpuPixel>(image: ImageView<'_, T>, gpu: &Gpu, cpu: &Cpu) -> Stages {
    let (options, mut out) = (SiftOptions::default(), Stages::default());
    let octaves = whole(image, &options, cpu);
    let mut commands = Commands::new();
    let made = scale_space(gpu, &[image.to_image()], &options, &mut commands);
    gpu.run(&commands).unwrap();
    let (values, plan) = (made.values.to_vec().unwrap(), &made.plan);
    let levels = plan.octaves.iter().zip(&octaves);
    let mut levels = levels.flat_map(|(octave, levels)| levels.iter().enumerate().map(move |l| (octave, l)));
    let differs = levels.find_map(|(octave, (l, expected))| {
        let told = difference_of_images(&level_of(&values, plan, 0, (octave, l)), expected)?;
        Some(format!("octave {}, level {l}: {told}", octave.number))
    });
    out.push("scale space", differs);

    let levels = upload_levels(gpu, octaves.iter().map(|octave| &octave[..]), &options, image.size());
    let upright = SiftOptions { upright: true, descriptors: DescriptorKind::None, ..options };
    let points = detect(image, &upright, None, cpu).unwrap().keypoints;
    // Room for many points too many, so that they show as a difference.
    let capacity = 2 * points.len() + 1024;
    let found = points_of(gpu, &levels, (None, &options), capacity, Commands::new());
    out.compare_keypoints("extrema, refine", [&found[0].1, &points]);

    let expected = detect(image, &options, None, cpu).unwrap();
    assert!(!expected.is_empty(), "SIFT finds nothing to compare");
    let found = oriented_and_described(gpu, &options, &points, &levels);
    out.compare_keypoints("orient, order", [&found.keypoints, &expected.keypoints]);
    let values = [&found.descriptors, &expected.descriptors].map(|descriptors| match descriptors {
        Descriptors::U8(values) => &values[..],
        Descriptors::F32(_) => &[],
    });
    out.compare("describe", values, |&value| value);
    out
}
