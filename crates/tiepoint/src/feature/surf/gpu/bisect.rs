//! The stages of SURF on a GPU, each given what the CPU makes of the stages before it.

use super::super::describe::Square;
use super::super::integral::{Integral, Total};
use super::super::orient::Disc;
use super::super::response::ResponseRows;
use super::super::{SurfOptions, describe, detect, extrema, orient, plan, response};
use super::layers::{DeviceLayers, Layers};
use crate::bisect::Stages;
use crate::device::Cpu;
use crate::device::gpu::{Commands, Gpu};
use crate::feature::gpu::GpuKeypoints;
use crate::feature::{DescriptorKind, Keypoint, WORDS, to_words};
use crate::filter::integral::{self, GpuIntegral, GpuIntegrator, GpuSum};
use crate::image::ImageView;
use crate::image::gpu::{GpuImage, GpuPixel};

/// With default options.
pub(crate) fn stages<T: GpuPixel>(image: ImageView<'_, T>, gpu: &Gpu, cpu: &Cpu) -> Stages {
    let options = SurfOptions::default();
    match T::WHITE {
        255.0 => stages_of::<T, u32>(image, &options, gpu, cpu),
        _ => stages_of::<T, u64>(image, &options, gpu, cpu),
    }
}

pub(super) fn stages_of<T: GpuPixel, A: GpuSum + Total>(
    image: ImageView<'_, T>,
    options: &SurfOptions,
    gpu: &Gpu,
    cpu: &Cpu,
) -> Stages {
    let (size, mut out) = (image.size(), Stages::default());
    let sums = integral::Integral::<A>::new(image, cpu).unwrap();
    let on_device = GpuImage::upload(gpu, image).unwrap();
    let found = GpuIntegrator::<T, A>::new(gpu).unwrap().integral(&on_device).unwrap().download(0).unwrap();
    let values = |sums: &integral::Integral<A>| -> Vec<A> {
        (0..=size.height).flat_map(|y| sums.row(y)).copied().collect()
    };
    out.compare("integral", [&values(&found), &values(&sums)], |&sum| sum);

    let mut rows = Integral::<A>::default();
    rows.start(size, usize::MAX / 4);
    while rows.rows() < size.height {
        rows.advance(image, cpu);
    }
    let sums = &GpuIntegral::upload(gpu, &sums).unwrap();
    let octaves = plan::octaves(options);
    let white = if T::WHITE == 255.0 { 255.0 } else { 65535.0 };
    let table = DeviceLayers::upload(gpu, Layers::new(&octaves, size, white)).unwrap();
    let expected = responses_of(&rows, &octaves, &table.layers, white, cpu);
    let responses = gpu.buffer(table.layers.len).unwrap();
    let mut commands = Commands::new();
    commands.zero(&responses).unwrap();
    response::gpu::record(&mut commands, sums, &table, &responses).unwrap();
    gpu.run(&commands).unwrap();
    out.compare("response", [&responses.to_vec().unwrap(), &expected], |response| response.to_bits());

    let upright = SurfOptions { upright: true, descriptors: DescriptorKind::None, ..*options };
    let mut extrema = detect(image, &upright, None, cpu).unwrap().keypoints;
    extrema.iter_mut().for_each(|k| k.angle = 0.0);
    assert!(extrema.len() > 20, "SURF finds too little to compare");
    // Room for many surplus keypoints, so that they show as a difference.
    let capacity = 2 * extrema.len() + 1024;
    let found = GpuKeypoints::new(gpu, 1, capacity).unwrap();
    let responses = gpu.upload(&expected).unwrap();
    let mut commands = Commands::new();
    extrema::gpu::record(&mut commands, options, &responses, &table, None, size, &found).unwrap();
    gpu.run(&commands).unwrap();
    let mut on_device = found.download();
    on_device.sort_by(Keypoint::order);
    out.compare_keypoints("extrema, refine", [&on_device, &extrema]);

    // In the reverse of the expected order.
    let mut reversed: Vec<u64> = (0..extrema.len() as u64).rev().collect();
    reversed.resize(capacity, 0);
    let order = gpu.upload(&reversed).unwrap();
    let words: Vec<u32> = extrema.iter().flat_map(to_words).collect();
    found.keypoints.write(0, &words).unwrap();
    found.counts.write(0, &[extrema.len() as u32]).unwrap();
    let oriented = GpuKeypoints { keypoints: gpu.buffer(capacity * WORDS).unwrap(), ..found.clone() };
    let directions = gpu.buffer(2 * capacity).unwrap();
    let descriptors = gpu.buffer(capacity * options.dimension()).unwrap();
    let mut commands = Commands::new();
    orient::gpu::record(&mut commands, options, sums, (&found, &order), (&oriented, &directions)).unwrap();
    describe::gpu::record(&mut commands, options, sums, (&oriented, &directions), &descriptors).unwrap();
    gpu.run(&commands).unwrap();
    let (disc, square) = (Disc::new(options.preset), Square::new(options));
    let (mut keypoints, mut turns, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for k in extrema.iter().rev() {
        let direction = disc.direction(&rows, k);
        keypoints.push(Keypoint { angle: direction.angle, ..*k });
        turns.extend([direction.cos, direction.sin]);
        let mut descriptor = vec![0.0; options.dimension()];
        square.describe(&rows, k, direction, &mut descriptor);
        values.extend(descriptor);
    }
    out.compare_keypoints("orient", [&oriented.download(), &keypoints]);
    let directions = directions.to_vec().unwrap();
    out.compare("orient, cosine and sine", [&directions[..turns.len()], &turns], |turn| turn.to_bits());
    let found = descriptors.to_vec().unwrap();
    out.compare("describe", [&found[..values.len()], &values], |value| value.to_bits());
    out
}

/// The CPU's responses as they lie on the device.
fn responses_of<A: Total>(
    rows: &Integral<A>,
    octaves: &[plan::Octave],
    layers: &Layers,
    white: f32,
    cpu: &Cpu,
) -> Vec<f32> {
    let mut responses = vec![0.0; layers.len];
    for (octave, grids) in octaves.iter().zip(&layers.grids) {
        for (layer, grid) in octave.layers.iter().zip(grids).filter(|(l, _)| l.shared.is_none()) {
            let inside = layer.filter.inside(octave.step, rows.size().height);
            let (filter, step, stride) = (&layer.filter, octave.step, grid.pitch);
            let out = &mut responses[grid.first + inside.start * stride..];
            ResponseRows { filter, step, rows: inside, out, stride }.run(rows, white, cpu.level());
        }
    }
    responses
}
