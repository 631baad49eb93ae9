//! The GPU's stages against the CPU's: the scale space against the reference, points against the streamed form.

use super::detect_tests::PRESETS;
use super::plan::{GpuLevels, OctavePlan, Plan};
use crate::device::Cpu;
use crate::device::gpu::{Commands, Gpu, all};
use crate::feature::DescriptorKind;
use crate::feature::Keypoint;
use crate::feature::gpu::GpuKeypoints;
use crate::feature::sift::extrema::gpu::{GpuExtrema, Masks};
use crate::feature::sift::scale_space::gpu::{GpuBase, GpuScaleSpace};
use crate::feature::sift::{SiftOptions, SiftPreset, reference, tests::photo, tests::scene};
use crate::feature::{WORDS, from_words};
use crate::image::gpu::{GpuImage, GpuPixel};
use crate::image::testing::assert_same;
use crate::image::{Image, ImageView, Size};
use crate::numeric::Random;
use tiepoint_gpu::KernelSource;

/// Every preset, with and without a doubled first octave.
fn presets() -> Vec<SiftOptions> {
    let options = PRESETS.map(|p| SiftOptions { contrast: 0.01, ..SiftOptions::preset(p) });
    options.into_iter().flat_map(|o| [-1, 0].map(|first_octave| SiftOptions { first_octave, ..o })).collect()
}

fn noise<T: GpuPixel>(size: Size, seed: u32) -> Image<T> {
    let mut random = Random::new(seed.into());
    Image::from_fn(size, |_, _| T::from_f32(random.unit() as f32 * T::WHITE))
}

pub(super) fn scale_space<T: GpuPixel>(
    gpu: &Gpu,
    images: &[Image<T>],
    options: &SiftOptions,
    commands: &mut Commands,
) -> GpuLevels {
    let base = GpuBase::<T>::new(gpu, options).unwrap();
    let plan = Plan::new(images[0].size(), images.len(), options).unwrap();
    let levels = GpuLevels::new(gpu, plan).unwrap();
    for (i, image) in images.iter().enumerate() {
        let image = GpuImage::upload(gpu, image.view()).unwrap();
        base.record(commands, &image, i, &levels).unwrap();
    }
    GpuScaleSpace::new(gpu, options).unwrap().record(commands, &levels).unwrap();
    levels
}

/// Level `l` of an octave of image `i`, among all values of the levels.
pub(super) fn level_of(
    values: &[f32],
    plan: &Plan,
    i: usize,
    (octave, l): (&OctavePlan, usize),
) -> Image<f32> {
    let first = i * plan.image_stride + octave.offset + l * octave.level_len();
    let values = &values[first..][..octave.level_len()];
    ImageView::new(values, octave.size, 1, octave.pitch).unwrap().to_image()
}

fn levels_agree<T: GpuPixel>(gpu: &Gpu, images: &[Image<T>], options: &SiftOptions) {
    let mut commands = Commands::new();
    let levels = scale_space(gpu, images, options, &mut commands);
    gpu.run(&commands).unwrap();
    let found = levels.values.to_vec().unwrap();
    let plan = levels.plan;
    for (i, image) in images.iter().enumerate() {
        let expected = reference::octaves(image.view(), options);
        assert_eq!(expected.len(), plan.octaves.len(), "octaves of {}", plan.input);
        for (octave, expected) in plan.octaves.iter().zip(&expected) {
            let number = octave.number;
            assert_eq!(number, expected.number, "octave of {}", plan.input);
            for (l, expected) in expected.gaussians.iter().enumerate() {
                assert_eq!(expected.size(), octave.size, "octave {number} of {}", plan.input);
                let level = level_of(&found, &plan, i, (octave, l));
                let what = format_args!("octave {number}, level {l}, image {i} of {}", plan.input);
                assert_same(&level, expected, format_args!("{what}, {options:?}, {gpu:?}"));
            }
        }
    }
}

/// The points of several images, in order for each image.
fn points<T: GpuPixel>(
    gpu: &Gpu,
    images: &[Image<T>],
    masks: Option<&[Image<u8>]>,
    options: &SiftOptions,
    capacity: usize,
) -> Vec<(u32, Vec<Keypoint>)> {
    let mut commands = Commands::new();
    let levels = scale_space(gpu, images, options, &mut commands);
    points_of(gpu, &levels, (masks, options), capacity, commands)
}

/// The points of the levels that the commands compute, in order for each image.
pub(super) fn points_of(
    gpu: &Gpu,
    levels: &GpuLevels,
    (masks, options): (Option<&[Image<u8>]>, &SiftOptions),
    capacity: usize,
    mut commands: Commands,
) -> Vec<(u32, Vec<Keypoint>)> {
    let Size { width, height } = levels.plan.input;
    let masks =
        masks.map(|m| gpu.upload(&m.iter().flat_map(Image::data).copied().collect::<Vec<u8>>()).unwrap());
    let masks = masks.as_ref().map(|buffer| Masks { buffer, pitch: width, stride: width * height });
    let points = GpuKeypoints::new(gpu, levels.plan.images, capacity).unwrap();
    GpuExtrema::new(gpu, options).unwrap().record(&mut commands, levels, masks, &points).unwrap();
    gpu.run(&commands).unwrap();
    let (counts, words) = (points.counts.to_vec().unwrap(), points.keypoints.to_vec().unwrap());
    let of_image = counts.into_iter().zip(words.chunks_exact(capacity * WORDS));
    let sorted = of_image.map(|(count, words)| {
        let written = words.chunks_exact(WORDS).take(count as usize);
        let mut keypoints: Vec<Keypoint> = written.map(from_words).collect();
        keypoints.sort_by(Keypoint::order);
        (count, keypoints)
    });
    sorted.collect()
}

/// Compares the points of all images with the CPU's upright keypoints, and returns their number.
fn points_agree<T: GpuPixel>(
    gpu: &Gpu,
    images: &[Image<T>],
    masks: Option<&[Image<u8>]>,
    options: &SiftOptions,
) -> usize {
    let upright = SiftOptions { upright: true, descriptors: DescriptorKind::None, ..*options };
    let mut total = 0;
    let found = points(gpu, images, masks, options, 20_000);
    for (i, (image, (count, found))) in images.iter().zip(found).enumerate() {
        let mask = masks.map(|m| m[i].view());
        let expected = super::super::detect(image.view(), &upright, mask, &Cpu::sequential()).unwrap();
        let size = image.size();
        assert_eq!(count as usize, expected.len(), "image {i} of {size}, {options:?}, {gpu:?}");
        assert!(found == expected.keypoints, "other points in image {i} of {size}, {options:?}, {gpu:?}");
        total += found.len();
    }
    total
}

#[test]
fn levels_are_those_of_the_reference_for_every_size_and_preset() {
    let sizes = [(1, 1), (1, 40), (40, 1), (7, 12), (64, 64), (231, 75)];
    for gpu in all() {
        for (i, (width, height)) in sizes.into_iter().enumerate() {
            for options in presets() {
                levels_agree::<u8>(gpu, &[noise(Size::new(width, height), i as u32)], &options);
            }
        }
        let size = Size::new(90, 70);
        levels_agree(gpu, &[1, 2, 3].map(|seed| noise::<u16>(size, seed)), &SiftOptions::default());
        levels_agree(gpu, &[1, 2, 3].map(|seed| noise::<f32>(size, seed)), &SiftOptions::default());
    }
}

/// Options with narrow and wide Gaussians, and with octaves that overlap in one launch or not.
fn variants() -> [SiftOptions; 5] {
    let base = SiftOptions { contrast: 0.01, ..SiftOptions::default() };
    [
        SiftOptions { levels: 1, ..base },
        SiftOptions { levels: 2, ..base },
        SiftOptions { levels: 8, octaves: Some(2), ..base },
        SiftOptions { levels: 1, sigma: 4.0, first_octave: 0, ..base },
        SiftOptions { sigma: 2.3, input_sigma: 1.1, edge: 5.0, ..base },
    ]
}

#[test]
fn levels_and_points_are_those_of_the_cpu_for_every_option() {
    let image = scene(Size::new(97, 83), 7);
    for gpu in all() {
        let mut found = 0;
        for options in variants() {
            levels_agree(gpu, std::slice::from_ref(&image), &options);
            found += points_agree(gpu, std::slice::from_ref(&image), None, &options);
        }
        assert!(found >= 100, "{found} points were compared");
    }
}

#[test]
fn points_are_those_of_the_cpu_for_every_size_and_preset() {
    let sizes = [(1, 1), (1, 40), (40, 1), (6, 5), (11, 11), (12, 30), (33, 17), (90, 71), (300, 140)];
    for gpu in all() {
        let mut total = 0;
        for (i, (width, height)) in sizes.into_iter().enumerate() {
            let image = scene(Size::new(width, height), i as u64 + 1);
            for options in presets() {
                total += points_agree(gpu, std::slice::from_ref(&image), None, &options);
            }
        }
        assert!(total > 1000, "only {total} points were compared");
    }
}

#[test]
fn without_a_threshold_every_pixel_is_a_candidate() {
    let images = [noise::<u8>(Size::new(140, 90), 3)];
    let options = SiftOptions { contrast: 0.0, edge: 1e4, ..SiftOptions::default() };
    for gpu in all() {
        let found = points_agree(gpu, &images, None, &options);
        assert!(found > 20, "{found} points");
    }
}

#[test]
fn images_of_a_batch_do_not_mix_and_masks_leave_points_out() {
    let images = [4, 5, 6].map(|seed| scene(Size::new(130, 100), seed));
    let masks = [0, 1, 2].map(|i| Image::from_fn(images[0].size(), |x, _| u8::from((x / 40) % 3 != i)));
    let options = SiftOptions { contrast: 0.01, ..SiftOptions::default() };
    for gpu in all() {
        let all = points_agree(gpu, &images, None, &options);
        let some = points_agree(gpu, &images, Some(&masks), &options);
        assert!(0 < some && some < all, "{some} of {all} are left");
    }
}

#[test]
fn points_beyond_the_capacity_are_counted() {
    let images = [scene(Size::new(130, 100), 4)];
    let options = SiftOptions { contrast: 0.01, ..SiftOptions::default() };
    for gpu in all() {
        let every = points(gpu, &images, None, &options, 5000).remove(0);
        let few = points(gpu, &images, None, &options, 7).remove(0);
        assert!(every.0 > 7 && few.0 == every.0, "{} of {} were counted", few.0, every.0);
        assert!(few.1.len() == 7 && few.1.iter().all(|k| every.1.contains(k)), "seven of them are kept");
    }
}

#[test]
fn points_of_a_photograph_are_those_of_the_cpu() {
    let images = [photo()];
    for gpu in all() {
        for preset in PRESETS {
            let found = points_agree(gpu, &images, None, &SiftOptions::preset(preset));
            assert!(found > 300, "{found} points");
        }
    }
}

pub(crate) fn kernel_sources() -> Vec<KernelSource> {
    let default = SiftOptions::default();
    let vlfeat = SiftOptions { first_octave: 0, ..SiftOptions::preset(SiftPreset::VlFeat) };
    let many = SiftOptions { levels: 8, ..SiftOptions::preset(SiftPreset::OpenCv) };
    let mut sources = vec![
        GpuBase::<u8>::source(&default),
        GpuExtrema::source(&default),
        GpuBase::<u16>::source(&many),
        GpuExtrema::source(&many),
        GpuBase::<f32>::source(&vlfeat),
        GpuExtrema::source(&vlfeat),
    ];
    sources.extend(GpuScaleSpace::sources(&default));
    sources.extend(GpuScaleSpace::sources(&SiftOptions { levels: 1, sigma: 4.0, ..vlfeat }));
    sources
}
