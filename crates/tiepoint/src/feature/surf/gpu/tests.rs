//! SURF on every device against the CPU, stage by stage and as a whole: equal in every bit.

use super::super::describe::Square;
use super::super::integral::{Integral, Sums, Total};
use super::super::orient::Disc;
use super::super::response::Job;
use super::super::stream::inner;
use super::super::tests::{PRESETS, selections, texture, to_u8, to_u16};
use super::super::{Surf, SurfOptions, SurfPreset, extrema, plan, refine};
use super::GpuSurf;
use super::layers::{self, DeviceLayers, Layers};
use crate::Error;
use crate::device::Cpu;
use crate::device::gpu::{Commands, Gpu, all, compiles_everywhere};
use crate::feature::Features;
use crate::feature::gpu::{AT_A_TIME, GpuKeypoints, Pixels, beside};
use crate::feature::surf::describe::gpu::GpuDescribe;
use crate::feature::surf::extrema::gpu::GpuExtrema;
use crate::feature::surf::orient::gpu::GpuOrient;
use crate::feature::surf::response::gpu::GpuResponse;
use crate::feature::{DescriptorKind, Keypoint};
use crate::feature::{WORDS, from_words, to_words};
use crate::filter::integral::{GpuIntegral, GpuSum};
use crate::image::gpu::{GpuImage, GpuPixel};
use crate::image::{Image, ImageView, Size, testing::photograph};

fn assert_same(found: &Features, expected: &Features, what: &str) {
    assert_eq!(found.len(), expected.len(), "number of features, {what}");
    for (i, (f, e)) in found.keypoints.iter().zip(&expected.keypoints).enumerate() {
        assert_eq!(f, e, "keypoint {i}, {what}");
    }
    assert!(found == expected, "descriptors, {what}");
}

/// One image on every device against the CPU; returns the number of features.
fn compare<T: GpuPixel>(image: &Image<T>, options: SurfOptions, mask: Option<&Image<u8>>) -> usize
where
    for<'a> Pixels<'a>: From<&'a GpuImage<T>>,
{
    let cpu = Cpu::sequential();
    let expected = Surf::new(options).unwrap().detect(image.view(), mask.map(Image::view), &cpu).unwrap();
    for gpu in all() {
        let on_device = GpuImage::upload(gpu, image.view()).unwrap();
        let mask = mask.map(Image::view);
        let surf = GpuSurf::new(&beside(gpu), options).unwrap();
        let what = format!("{gpu:?}: {} {} {options:?}", T::NAME, image.size());
        assert_same(&surf.detect(&on_device, mask).unwrap(), &expected, &what);
        // Now the features come along with their number.
        assert_same(&surf.detect(&on_device, mask).unwrap(), &expected, &format!("{what}, again"));
        let kept = surf.detect_on_device(&on_device, mask.map(Into::into)).unwrap();
        assert_same(&kept.download().unwrap(), &expected, &format!("{what}, on the device"));
    }
    expected.len()
}

#[test]
fn presets_equal_the_cpu() {
    let image = texture(Size::new(301, 277), 1);
    for preset in PRESETS {
        let options = SurfOptions { threshold: preset.threshold * 0.1, ..preset };
        assert!(compare(&to_u8(&image), options, None) > 100, "features of {preset:?}");
        compare(&to_u16(&image), options, None);
        compare(&image, options, None);
    }
}

#[test]
fn variants_equal_the_cpu() {
    let image = to_u8(&texture(Size::new(170, 203), 2));
    for preset in PRESETS {
        let preset = SurfOptions { threshold: preset.threshold * 0.1, ..preset };
        let variants = [
            SurfOptions { upright: true, ..preset },
            SurfOptions { extended: true, ..preset },
            SurfOptions { descriptors: DescriptorKind::None, step: 2, ..preset },
            SurfOptions { intervals: 3, octaves: Some(2), step: 4, threshold: 0.0, ..preset },
            SurfOptions { intervals: 8, octaves: Some(6), step: 1, ..preset },
        ];
        let selections = [selections(&preset, 7), selections(&preset, 0)].concat();
        for options in variants.into_iter().chain(selections) {
            compare(&image, options, None);
        }
    }
}

#[test]
fn masks_equal_the_cpu() {
    let image = texture(Size::new(240, 200), 5);
    let mask = Image::from_fn(image.size(), |x, y| u8::from((x / 20 + y / 30) % 3 > 0));
    let all = compare(&image, SurfOptions::default(), None);
    let some = compare(&image, SurfOptions::default(), Some(&mask));
    assert!(some > 10 && some < all, "{some} of {all} features under the mask");
}

#[test]
fn any_size_equals_the_cpu() {
    let mut seed = 7_u32;
    let mut next = |n: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 12) % n
    };
    for i in 0..24 {
        let side = |n: u32| if n < 10 { 1 } else { n as usize };
        let size = if i == 0 { Size::new(1, 1) } else { Size::new(side(next(140)), side(next(140))) };
        let image = texture(size, next(1 << 16));
        let options = SurfOptions { threshold: 0.0, ..PRESETS[i % 3] };
        compare(&to_u8(&image), options, None);
        compare(&image, options, None);
    }
}

#[test]
fn strange_pixels_equal_the_cpu() {
    let strange = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0, 2.0, 0.5, 0.0, 1.0];
    let image = Image::from_fn(Size::new(90, 80), |x, y| strange[(x / 7 * 5 + y / 9 * 3) % 8]);
    let checks = |x: usize, y: usize| u8::from((x / 20 + y / 20).is_multiple_of(2)) * 255;
    let checks = Image::from_fn(Size::new(260, 240), checks);
    for options in PRESETS {
        compare(&image, options, None);
        compare(&checks, options, None);
    }
}

#[test]
fn batches_equal_single_images() {
    let images: Vec<_> = (1..4).map(|seed| to_u8(&texture(Size::new(200, 150), seed))).collect();
    let options = SurfOptions { threshold: 1e-4, ..SurfOptions::default() };
    let cpu = Cpu::sequential();
    for gpu in all() {
        let on_device: Vec<_> = images.iter().map(|i| GpuImage::upload(gpu, i.view()).unwrap()).collect();
        let area = images[0].size().area();
        for pixels in [AT_A_TIME, 2 * area, area] {
            let surf = GpuSurf::new(&beside(gpu), options).unwrap().with_capacity(5);
            let found = surf.detect_at_a_time(&on_device, pixels).unwrap();
            assert_eq!(found.len(), 3, "as many as were given");
            for (image, found) in images.iter().zip(found) {
                let expected = super::super::detect(image.view(), &options, None, &cpu).unwrap();
                assert_same(&found, &expected, &format!("{gpu:?}: in a batch"));
            }
        }
        let surf = GpuSurf::new(&beside(gpu), options).unwrap();
        let found = surf.detect_batch(&on_device).unwrap();
        let views: Vec<_> = images.iter().chain(&images).map(Image::view).collect();
        for number in [1, 2, 3, 5, 6, 6] {
            let from_host = surf.detect_batch(&views[..number]).unwrap();
            assert!(
                from_host.iter().eq(found.iter().cycle().take(number)),
                "{gpu:?}: {number} from the host"
            );
            surf.recycle(from_host);
        }
        let none: [&Image<u8>; 0] = [];
        assert!(surf.detect_batch(none).unwrap().is_empty(), "nothing of nothing");
    }
}

/// Room that is too small grows, and nothing is lost; then images of other kinds follow.
#[test]
fn room_grows() {
    let image = texture(Size::new(200, 190), 3);
    let options = SurfOptions { threshold: 0.0, ..SurfOptions::default() };
    let cpu = Cpu::sequential();
    let expected = super::super::detect(image.view(), &options, None, &cpu).unwrap();
    let bytes = to_u8(&image);
    let expected_bytes = super::super::detect(bytes.view(), &options, None, &cpu).unwrap();
    for gpu in all() {
        let surf = GpuSurf::new(&beside(gpu), options).unwrap().with_capacity(5);
        let floats = GpuImage::upload(gpu, image.view()).unwrap();
        let bytes = GpuImage::upload(gpu, bytes.view()).unwrap();
        for round in 0..2 {
            let found = surf.detect(&floats, None).unwrap();
            assert_same(&found, &expected, &format!("{gpu:?}: round {round}"));
            assert_same(&surf.detect(&bytes, None).unwrap(), &expected_bytes, &format!("{gpu:?}: bytes"));
        }
        assert!(surf.launches() >= 5, "five stages");
    }
}

#[test]
fn wrong_input_is_an_error() {
    for gpu in all() {
        let bad = SurfOptions { octaves: Some(7), ..SurfOptions::default() };
        assert!(matches!(GpuSurf::new(&beside(gpu), bad), Err(Error::Option { .. })), "octaves");
        let surf = GpuSurf::new(&beside(gpu), SurfOptions::default()).unwrap();
        let image = |w, h| GpuImage::<u8>::upload(gpu, Image::new(Size::new(w, h)).view()).unwrap();
        let mask = Image::<u8>::new(Size::new(9, 8));
        let masked = surf.detect(&image(9, 9), Some(mask.view()));
        assert!(matches!(masked, Err(Error::Mismatch(_))), "mask");
        assert!(matches!(surf.detect_batch(&[image(9, 9), image(8, 9)]), Err(Error::Mismatch(_))), "sizes");
        let colour = GpuImage::<u8>::with_channels(gpu, Size::new(4, 4), 3).unwrap();
        assert!(matches!(surf.detect(&colour, None), Err(Error::Image(_))), "three channels");
    }
}

#[test]
fn kernels_compile_for_every_card() {
    let extended = SurfOptions { extended: true, upright: true, ..SurfOptions::preset(SurfPreset::OpenCv) };
    let options = [SurfOptions::default(), SurfOptions::preset(SurfPreset::OpenSurf), extended];
    compiles_everywhere(&[GpuResponse::<u32>::source(), GpuResponse::<u64>::source()]);
    compiles_everywhere(&options.map(|o| GpuExtrema::source(&o)));
    compiles_everywhere(&[GpuOrient::<u32>::source(&options[0]), GpuDescribe::<u32>::source(&options[0])]);
    compiles_everywhere(&options.map(|o| GpuOrient::<u64>::source(&o)));
    compiles_everywhere(&options.map(|o| GpuDescribe::<u64>::source(&o)));
}

#[test]
fn photographs_equal_the_cpu() {
    let Some(photograph) = photograph("pairs/cudasift/left.pgm") else { return };
    let crop = Image::from_fn(Size::new(500, 400), |x, y| photograph.row(y + 300)[x + 400]);
    for options in PRESETS {
        assert!(compare(&crop, options, None) > 100, "features of {options:?}");
    }
}

/// An image of the host's memory, twice, then one of another size and kind.
#[test]
fn views_equal_the_cpu() {
    let image = texture(Size::new(150, 130), 8);
    let wide = texture(Size::new(210, 90), 9);
    let options = SurfOptions { threshold: 1e-4, ..SurfOptions::default() };
    let cpu = Cpu::sequential();
    for gpu in all() {
        let surf = GpuSurf::new(&beside(gpu), options).unwrap();
        for image in [&image, &image, &wide] {
            let bytes = to_u8(image);
            let expected = super::super::detect(bytes.view(), &options, None, &cpu).unwrap();
            assert_same(&surf.detect(bytes.view(), None).unwrap(), &expected, "8 bits");
        }
        let expected = super::super::detect(wide.view(), &options, None, &cpu).unwrap();
        assert_same(&surf.detect(wide.view(), None).unwrap(), &expected, "floats");
    }
}

/// Every stage alone: it is given what the CPU makes of the stage before.
#[test]
fn stages_equal_the_cpu() {
    let image = texture(Size::new(230, 190), 6);
    for gpu in all() {
        for preset in PRESETS {
            let options = SurfOptions { threshold: preset.threshold * 0.1, ..preset };
            stages_alone::<u8, u32>(gpu, &to_u8(&image), &options);
            stages_alone::<f32, u64>(gpu, &image, &SurfOptions { extended: true, ..options });
        }
    }
}

fn stages_alone<T: GpuPixel, A: GpuSum + Total>(gpu: &Gpu, image: &Image<T>, options: &SurfOptions) {
    let (size, cpu) = (image.size(), Cpu::sequential());
    let rows = rows_of::<T, A>(image.view(), &cpu);
    let sums = crate::filter::integral::Integral::<A>::new(image.view(), &cpu).unwrap();
    let sums = GpuIntegral::upload(gpu, &sums).unwrap();
    let octaves = plan::octaves(options);
    let white = if T::WHITE == 255.0 { 255.0 } else { 65535.0 };
    let table = DeviceLayers::upload(gpu, Layers::new(&octaves, size, white)).unwrap();
    let what = format!("{gpu:?}: {} {:?}", T::NAME, options.preset);
    let expected = responses_of(&rows, &octaves, &table.layers, white, &cpu);
    let responses = gpu.buffer(table.layers.len).unwrap();
    let mut commands = Commands::new();
    commands.zero(&responses).unwrap();
    let sums = Sums(&sums);
    let respond = GpuResponse::<A>::new(gpu).unwrap();
    respond.record(&mut commands, sums, &table, &responses).unwrap();
    gpu.run(&commands).unwrap();
    let responses_found = responses.to_vec().unwrap();
    for (o, (octave, grids)) in octaves.iter().zip(&table.layers.grids).enumerate() {
        for (l, grid) in grids.iter().enumerate().filter(|(l, _)| octave.layers[*l].shared.is_none()) {
            let layer = Size::new(grid.pitch, size.height.div_ceil(octave.step));
            let picture = |values: &[f32]| {
                Image::from_vec(values[grid.first..][..layer.area()].to_vec(), layer, 1).unwrap()
            };
            let what = format_args!("{what}: responses of octave {o}, layer {l}");
            crate::image::testing::assert_same(&picture(&responses_found), &picture(&expected), what);
        }
    }

    let capacity = 4096;
    let found = GpuKeypoints::new(gpu, 1, capacity).unwrap();
    let oriented = GpuKeypoints { keypoints: gpu.buffer(capacity * WORDS).unwrap(), ..found.clone() };
    let mut commands = Commands::new();
    let search = GpuExtrema::new(gpu, options).unwrap();
    search.record(&mut commands, &responses, &table, None, size, &found).unwrap();
    gpu.run(&commands).unwrap();
    let mut extrema = extrema_of(&octaves, &table.layers.grids, &expected, size, options);
    let count = found.counts.to_vec().unwrap()[0] as usize;
    assert_eq!(count, extrema.len(), "{what}: number of extrema");
    let words = found.keypoints.to_vec().unwrap();
    let mut on_device: Vec<_> = words.chunks_exact(WORDS).take(count).map(from_words).collect();
    on_device.sort_by(Keypoint::order);
    extrema.sort_by(Keypoint::order);
    assert!(count > 20 && on_device == extrema, "{what}: extrema");

    // In the reverse order, which need not be that of the keypoints.
    let mut reversed: Vec<u64> = (0..count as u64).rev().collect();
    reversed.resize(capacity, 0);
    let order = gpu.upload(&reversed).unwrap();
    let words: Vec<u32> = extrema.iter().flat_map(to_words).collect();
    found.keypoints.write(0, &words).unwrap();
    let directions = gpu.buffer(2 * capacity).unwrap();
    let descriptors = gpu.buffer(capacity * options.dimension()).unwrap();
    let mut commands = Commands::new();
    let orient = GpuOrient::<A>::new(gpu, options).unwrap();
    orient.record(&mut commands, sums, (&found, &order), (&oriented, &directions)).unwrap();
    let describe = GpuDescribe::<A>::new(gpu, options).unwrap();
    describe.record(&mut commands, sums, (&oriented, &directions), &descriptors).unwrap();
    gpu.run(&commands).unwrap();
    let (words, directions) = (oriented.keypoints.to_vec().unwrap(), directions.to_vec().unwrap());
    let values = descriptors.to_vec().unwrap();
    let (disc, square) = (Disc::new(options.preset), Square::new(options));
    for (i, k) in extrema.iter().rev().enumerate() {
        let direction = disc.direction(&rows, k);
        assert_eq!(
            from_words(&words[i * WORDS..]),
            Keypoint { angle: direction.angle, ..*k },
            "{what}: angle"
        );
        assert_eq!(directions[2 * i..][..2], [direction.cos, direction.sin], "{what}: direction");
        let mut expected = vec![0.0; options.dimension()];
        square.describe(&rows, k, direction, &mut expected);
        assert_eq!(values[i * expected.len()..][..expected.len()], expected, "{what}: descriptor {i}");
    }
}

/// The CPU's integral image, all rows of it.
pub(super) fn rows_of<T: GpuPixel, A: Total>(image: ImageView<'_, T>, cpu: &Cpu) -> Integral<A> {
    let mut rows = Integral::<A>::default();
    rows.start(image.size(), usize::MAX / 4);
    while rows.rows() < image.size().height {
        rows.advance(image, cpu);
    }
    rows
}

/// The CPU's responses as they lie on the device.
pub(super) fn responses_of<A: Total>(
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
            Job { filter, step, rows: inside, out, stride }.run(rows, white, cpu.level());
        }
    }
    responses
}

/// The CPU's extrema of all layers.
pub(super) fn extrema_of(
    octaves: &[plan::Octave],
    grids: &[Vec<layers::Grid>],
    responses: &[f32],
    size: Size,
    options: &SurfOptions,
) -> Vec<Keypoint> {
    let mut found = vec![];
    for (o, (octave, grids)) in octaves.iter().zip(grids).enumerate() {
        for layer in 1..octave.layers.len() - 1 {
            let largest = &octave.layers[layer + 1].filter;
            let [rows, columns] = [size.height, size.width].map(|n| inner(largest.inside(octave.step, n)));
            for row in rows {
                let sampled = [0, 1, 2].map(|l: usize| {
                    [0, 1, 2].map(|r: usize| {
                        let grid = grids[layer + l - 1];
                        let at = grid.first + ((row + r - 1) << grid.finer) * grid.pitch;
                        let samples = responses[at..at + grid.pitch].iter().step_by(1 << grid.finer);
                        samples.copied().collect::<Vec<_>>()
                    })
                });
                let rows: extrema::Rows<'_> = [0, 1, 2].map(|l| [0, 1, 2].map(|r| &sampled[l][r][..]));
                let level = Cpu::sequential().level();
                extrema::search(&rows, columns.clone(), options.threshold, level, &mut |column| {
                    let response = rows[1][1][column];
                    let sample = refine::Sample { octave: o, layer, row, column, response };
                    let offset = refine::offset(&extrema::cube(&rows, column));
                    found.extend(refine::keypoint(options.preset, octave, sample, offset));
                });
            }
        }
    }
    found
}
