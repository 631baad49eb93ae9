//! Dense stereo as a whole on every device, against the CPU.

use super::{GpuStereoResult, bands};
use crate::Error;
use crate::device::gpu::{Gpu, all};
use crate::device::{Cpu, Processor};
use crate::geometry::calibration::{Camera, Distortion};
use crate::geometry::rectify::RectifiedView;
use crate::geometry::warp::WarpOptions;
use crate::image::gpu::{AnyGpuImage, GpuImage};
use crate::image::testing::assert_same;
use crate::image::{AnyImage, AnyView, Image, Made, Pixels, Size};
use crate::options::Named;
use crate::stereo::cost::tests::costs;
use crate::stereo::pair::Pictures;
use crate::stereo::testing::SIZES;
use crate::stereo::{
    CensusWindow, Cost, Masks, Paths, Penalties, RightView, Stereo, StereoOptions, StereoResult,
    StereoStream, Subpixel,
};
use crate::synth::{Random, Texture};

/// A noisy pair with disparities of `shift` and twice that; `kind` chooses pixel type and channels.
fn pair(random: &mut Random, size: Size, shift: i64, kind: u64) -> [AnyImage; 2] {
    let wide = Texture::new(random.bits() % 1000)
        .image::<u8>(Size::new(size.width + 64, size.height), &Cpu::sequential());
    let mut noise = Random::new(random.bits());
    let mut image = |from: i64| {
        Image::from_fn(size, |x, y| {
            // The lower half has twice the disparity.
            let at = x as i64 + 32 + from * if y > size.height / 2 { 2 } else { 1 };
            let value = wide.row(y)[at.clamp(0, size.width as i64 + 63) as usize];
            value.saturating_add((noise.bits() % 9) as u8)
        })
    };
    let colour = |numbers| AnyImage::U8(Image::from_vec(numbers, size, 3).unwrap());
    [(0, image(0)), (1, image(shift))].map(|(i, grey)| match kind {
        0 => AnyImage::U16(Image::from_fn(size, |x, y| u16::from(grey.row(y)[x]) * 13 + (x % 3) as u16)),
        1 => AnyImage::F32(Image::from_fn(size, |x, y| match (x * 7 + y * 3) % 97 {
            0 => f32::NAN,
            _ => f32::from(grey.row(y)[x]) / 200.0,
        })),
        2 => colour(grey.data().iter().flat_map(|&v| [v, v / 2 + 60, 255 - v]).collect()),
        4 => {
            let wide = |v: u8| [u16::from(v) * 9, u16::from(v / 2) * 16, 4000 - u16::from(v), 77];
            let colours = grey.data().iter().flat_map(|&v| wide(v)).collect();
            AnyImage::U16(Image::from_vec(colours, size, 4).unwrap())
        }
        5 => {
            let colours = grey.data().iter().map(|&v| f32::from(v)).flat_map(|v| [v, 300.0 - v, v / 2.0]);
            let holed = colours.enumerate().map(|(i, v)| if i % 211 == 7 { f32::INFINITY } else { v });
            AnyImage::F32(Image::from_vec(holed.collect(), size, 3).unwrap())
        }
        // Colour beside grey, on either side.
        6 | 7 if i == kind - 6 => {
            let colours = grey.data().iter().enumerate();
            colour(colours.flat_map(|(i, &v)| [v / 2 + (i % 3) as u8, 255 - v / 3, v]).collect())
        }
        _ => AnyImage::U8(grey),
    })
}

/// Random values of all options; few numbers of disparities, because each compiles its own program.
fn options(random: &mut Random, cost: Cost) -> StereoOptions {
    let mut below = |n: usize| (random.bits() % n as u64) as usize;
    let disparities = [1, 20, 66][below(3)];
    let stated = |p1, p2, p2_least, gradient| Some(Penalties { p1, p2, p2_least, gradient });
    let penalties =
        [None, stated(0, 0, 0, 1), stated(5, 60, 60, 1), stated(200, 1900, 300, 9), stated(7, 31, 20, 30)];
    let penalties = penalties[below(5)];
    let options = StereoOptions {
        min_disparity: [0, 0, 0, -7, 5, -40, 300][below(7)],
        disparities,
        cost,
        iterations: [None, Some(2)][below(2)].filter(|_| cost == Cost::MutualInformation),
        paths: Paths::ALL[below(Paths::ALL.len())].value,
        uniqueness: [0, 0, 5, 100][below(4)],
        subpixel: Subpixel::ALL[below(Subpixel::ALL.len())].value,
        right_view: RightView::ALL[below(RightView::ALL.len())].value,
        max_difference: [1.0, 0.0, 2.5][below(3)],
        speckle_size: [50, 0, 7][below(3)],
        speckle_difference: [2.0, 0.5][below(2)],
        median: [5, 0, 3][below(3)],
        fill: below(2) == 1,
        right: below(2) == 1,
        confidence: below(2) == 1,
        reasons: below(2) == 1,
        ..StereoOptions::default()
    };
    penalties.map_or(options, |penalties| options.with_penalties(penalties))
}

fn compute(
    options: StereoOptions,
    pair: &[AnyImage; 2],
    masks: Masks<'_>,
    processor: &Processor,
) -> StereoResult {
    let [left, right] = pair.each_ref().map(AnyView::from);
    Stereo::new(options).unwrap().compute(left, right, masks, processor).unwrap()
}

fn assert_equal(found: &StereoResult, expected: &StereoResult, what: &str) {
    assert!(found.reasons == expected.reasons, "reasons, {what}");
    assert_same(&found.disparity, &expected.disparity, format_args!("left, {what}"));
    for (name, found, expected) in
        [("right", &found.right, &expected.right), ("confidence", &found.confidence, &expected.confidence)]
    {
        assert_eq!(found.is_some(), expected.is_some(), "{name}, {what}");
        if let (Some(found), Some(expected)) = (found, expected) {
            assert_same(found, expected, format_args!("{name}, {what}"));
        }
    }
}

fn processors() -> impl Iterator<Item = (&'static Gpu, Processor)> {
    all().iter().map(|gpu| (gpu, Processor::with_gpu(Cpu::sequential(), gpu.clone())))
}

#[test]
fn disparities_are_those_of_the_cpu() {
    let mut random = Random::new(17);
    for (n, (width, height)) in SIZES.into_iter().enumerate() {
        for (c, cost) in costs().enumerate() {
            // A third of the combinations of cost and size.
            if (n + c) % 3 != 0 {
                continue;
            }
            let size = Size::new(width, height);
            let options = options(&mut random, cost);
            let shift = i64::from(options.min_disparity.clamp(-9, 9)) + 3;
            let kind = random.bits() % 9;
            let pair = pair(&mut random, size, shift, kind);
            let mut mask = |share: u64| {
                let is_given = random.bits().is_multiple_of(3);
                is_given.then(|| Image::from_fn(size, |_, _| u8::from(!random.bits().is_multiple_of(share))))
            };
            let masks = [mask(5), mask(9)];
            let [left, right] = masks.each_ref().map(|m| m.as_ref().map(Image::view));
            let masks = Masks { left, right };
            let expected = compute(options, &pair, masks, &Cpu::sequential().into());
            for (gpu, processor) in processors() {
                let what = format!("{gpu:?}, {size}, kind {kind}, {options:?}");
                let found = compute(options, &pair, masks, &processor);
                assert_eq!(processor.take_notes(), Vec::<String>::new(), "the device computes: {what}");
                assert_equal(&found, &expected, &what);
            }
        }
    }
}

#[test]
fn default_options_and_many_disparities_give_the_bits_of_the_cpu() {
    let mut random = Random::new(18);
    let all = StereoOptions::default().with_confidence(true).with_right(true);
    let costs = [Cost::default(), Cost::AbsoluteDifference].map(|cost| (cost, 3));
    let costs = costs.into_iter().chain([3, 6, 7].map(|kind| (Cost::MutualInformation, kind)));
    let default = costs.map(|(cost, kind)| (all.with_cost(cost), Size::new(230, 121), 9, kind));
    let many = [(520, Paths::Eight), (1100, Paths::Four), (4096, Paths::Five)].map(|(disparities, paths)| {
        let options = StereoOptions::default().with_disparities(disparities).with_paths(paths);
        (options, Size::new(61, 11), 4, 3)
    });
    for (options, size, shift, kind) in default.chain(many) {
        let pair = pair(&mut random, size, shift, kind);
        let expected = compute(options, &pair, Masks::default(), &Cpu::sequential().into());
        for (gpu, processor) in processors() {
            let found = compute(options, &pair, Masks::default(), &processor);
            assert_equal(&found, &expected, &format!("{gpu:?}, kind {kind}, {options:?}"));
        }
    }
}

/// Costs of several types and ranges; some float costs are unknown, at some pixels for every disparity.
fn volume(random: &mut Random, size: Size, count: usize, kind: usize) -> AnyImage {
    let area = size.area() * count;
    let mut below = |n: u64| random.bits() % n;
    match kind {
        0 => Image::from_vec((0..area).map(|_| below(30) as u8).collect(), size, count).unwrap().into(),
        1 => Image::from_vec((0..area).map(|_| below(1000) as u16).collect(), size, count).unwrap().into(),
        _ => {
            let holes: Vec<bool> = (0..size.area()).map(|_| below(11) == 0).collect();
            let cost = |i: usize| match below(9) {
                0 => [f32::NAN, f32::INFINITY][i % 2],
                _ if holes[i / count] && i > 0 => f32::NAN,
                _ => below(777) as f32 / 97.0 - 2.0,
            };
            Image::from_vec((0..area).map(cost).collect(), size, count).unwrap().into()
        }
    }
}

#[test]
fn volumes_give_the_bits_of_the_cpu() {
    let mut random = Random::new(31);
    for (n, (width, height)) in SIZES.into_iter().cycle().take(12).enumerate() {
        let (size, kind) = (Size::new(width, height), n % 3);
        let mut options = options(&mut random, Cost::default());
        if options.right_view == RightView::Aggregated {
            options.right_view = RightView::Diagonal;
        }
        let pair = pair(&mut random, size, 3, [3, 1, 2][n / 3 % 3]);
        let costs = volume(&mut random, size, options.disparities, kind);
        let scale = [None, Some(1.5), None, Some(0.25)][n % 4];
        let mask = Image::from_fn(size, |x, y| u8::from((x * 3 + y) % 5 != n % 5));
        let masks = Masks {
            left: Some(mask.view()).filter(|_| n % 2 == 0),
            right: Some(mask.view()).filter(|_| n % 5 < 2),
        };
        let stereo = Stereo::new(options).unwrap();
        let optimize = |processor: &Processor| {
            let views = pair.each_ref().map(AnyView::from);
            stereo.optimize((costs.view(), scale), views, masks, processor)
        };
        let expected = match optimize(&Cpu::sequential().into()) {
            Ok(expected) => expected,
            Err(refused) => {
                for (gpu, processor) in processors() {
                    let found = optimize(&processor).unwrap_err();
                    assert_eq!(found.to_string(), refused.to_string(), "{gpu:?}");
                }
                continue;
            }
        };
        for (gpu, processor) in processors() {
            let what = format!("{gpu:?}, {size}, volume {kind}, {options:?}");
            let found = optimize(&processor).unwrap();
            assert_eq!(processor.take_notes(), Vec::<String>::new(), "the device computes: {what}");
            assert_equal(&found, &expected, &what);
            let [left, right] = pair.each_ref().map(|image| uploaded(gpu, image));
            let (costs, views) = (uploaded(gpu, &costs), [(&left).into(), (&right).into()]);
            let found = stereo.optimize_on_device((&costs, scale), views, masks, &processor).unwrap();
            assert_equal(&found.download().unwrap(), &expected, &format!("on the device, {what}"));
        }
    }
}

/// A volume too large for the device is aggregated by the CPU, with a note.
#[test]
fn volumes_too_large_for_a_device_go_to_the_cpu() {
    let mut random = Random::new(32);
    let size = Size::new(64, 40);
    let (pair, costs) = (pair(&mut random, size, 3, 3), volume(&mut random, size, 17, 2));
    let options =
        StereoOptions { device_memory: Some(10_000), ..StereoOptions::default().with_disparities(17) };
    let stereo = Stereo::new(options).unwrap();
    let optimize = |processor: &Processor| {
        let views = pair.each_ref().map(AnyView::from);
        stereo.optimize((costs.view(), None), views, Masks::default(), processor).unwrap()
    };
    let expected = optimize(&Cpu::sequential().into());
    for (gpu, processor) in processors() {
        assert_equal(&optimize(&processor), &expected, &format!("{gpu:?}"));
        let notes = processor.take_notes();
        assert!(notes[0].contains("cost volume"), "{notes:?}");
    }
}

fn uploaded(gpu: &Gpu, image: &AnyImage) -> AnyGpuImage {
    AnyGpuImage::upload(gpu, image.view()).unwrap()
}

#[test]
fn images_and_maps_on_the_device_are_those_of_the_host() {
    let mut random = Random::new(21);
    for (n, cost) in costs().enumerate() {
        let options = options(&mut random, cost);
        let kinds = [0, 1, 2, 4, 5];
        for (kind, (width, height)) in [(3, (33, 17)), (kinds[n % 5], (40, 9)), (kinds[(n + 2) % 5], (1, 1))]
        {
            let size = Size::new(width, height);
            let pair = pair(&mut random, size, 3, kind);
            let mask = Image::from_fn(size, |x, y| u8::from((x * 3 + y) % 5 != n % 5));
            let masks = Masks { left: Some(mask.view()).filter(|_| n % 2 == 0), right: None };
            let expected = compute(options, &pair, masks, &Cpu::sequential().into());
            for (gpu, processor) in processors() {
                let what = format!("{gpu:?}, {size}, kind {kind}, {options:?}");
                let stereo = Stereo::new(options).unwrap();
                let [left, right] = pair.each_ref().map(|image| uploaded(gpu, image));
                // Two calls: the second reuses the memory of the first.
                let there = masks.left.map(|mask| GpuImage::upload(gpu, mask).unwrap());
                let there = [there.as_ref().map(Pixels::from), None];
                let once = stereo.compute_on_device(&left, &right, there, &processor).unwrap();
                let again = stereo.compute_on_device(&left, &pair[1], masks, &processor).unwrap();
                let dense = GpuStereoResult::dense(&once.disparity, -9.5).unwrap().to_vec().unwrap();
                let expected_dense =
                    expected.disparity.data().iter().map(|d| if d.is_finite() { *d } else { -9.5 });
                assert!(dense.into_iter().eq(expected_dense), "without gaps, {what}");
                assert_equal(&once.download().unwrap(), &expected, &what);
                assert_equal(&again.download().unwrap(), &expected, &what);
            }
        }
    }
}

/// Raw frames of two slightly rotated cameras with lens distortion are rectified and matched on the device.
#[test]
fn frames_become_disparities_on_the_device() {
    let size = Size::new(90, 60);
    let view = |turn: f64, lens: f64| RectifiedView {
        camera: Camera {
            focal: [80.0, 81.0],
            principal: [44.0, 31.0],
            distortion: Distortion::from_opencv([lens, 0.02, 0.001, 0.0, 0.0]),
        },
        input: size,
        rotation: [[turn.cos(), 0.0, turn.sin()], [0.0, 1.0, 0.0], [-turn.sin(), 0.0, turn.cos()]],
        focal: 78.0,
        principal: [45.0, 30.0],
        size: Size::new(96, 57),
    };
    let views = [view(0.03, -0.1), view(-0.02, -0.08)];
    let (cpu, warp) = (Cpu::sequential(), WarpOptions::default());
    let valid = views.each_ref().map(|view| view.coverage(&cpu).unwrap());
    let masks = Masks { left: Some(valid[0].view()), right: Some(valid[1].view()) };
    for (cost, kind) in [(Cost::default(), 2), (Cost::MutualInformation, 3)] {
        let options = StereoOptions::default().with_disparities(20).with_cost(cost).with_right(true);
        let frames = pair(&mut Random::new(25), size, 4, kind).map(|frame| match frame {
            AnyImage::U8(frame) => frame,
            other => panic!("{:?}", other.size()),
        });
        let rectified = [0, 1].map(|i| AnyImage::from(views[i].warp(frames[i].view(), &warp, &cpu).unwrap()));
        let expected = compute(options, &rectified, masks, &cpu.clone().into());
        assert!(expected.disparity.data().iter().any(|d| d.is_finite()), "something to see");
        for (gpu, processor) in processors().filter(|(gpu, _)| gpu.info().has_f64) {
            let stereo = Stereo::new(options).unwrap();
            let there = frames.each_ref().map(|frame| GpuImage::upload(gpu, frame.view()).unwrap());
            let made = [0, 1].map(|i| views[i].warp_with(&there[i], &warp, &processor).unwrap());
            let valid = [0, 1].map(|i| views[i].coverage_with(&there[i], &processor).unwrap());
            assert!(made.iter().all(|made| matches!(made, Made::Device(_))), "{gpu:?}: they stay there");
            let [left, right] = made.each_ref().map(Pixels::from);
            let [left_valid, right_valid] = valid.each_ref().map(Pixels::from);
            let masks = [Some(left_valid), Some(right_valid)];
            let found = stereo.compute_on_device(left, right, masks, &processor).unwrap();
            assert_equal(&found.download().unwrap(), &expected, &format!("{gpu:?}, {cost}"));
        }
    }
}

#[test]
fn pictures_and_masks_that_do_not_fit_are_refused() {
    let stereo = Stereo::new(StereoOptions::default().with_disparities(8)).unwrap();
    for (gpu, processor) in processors() {
        let image = |width| GpuImage::upload(gpu, Image::<u8>::new(Size::new(width, 4)).view()).unwrap();
        let (good, other) = (image(5), gpu.beside().unwrap());
        let foreign = GpuImage::upload(&other, Image::<u8>::new(Size::new(5, 4)).view()).unwrap();
        let five = GpuImage::upload(gpu, Image::filled(Size::new(5, 4), 5, 1_u8).view()).unwrap();
        let (mask, colours) = (Image::<u8>::new(Size::new(2, 2)), Image::filled(Size::new(5, 4), 3, 1_u8));
        let none = Masks::default();
        for (left, right, masks, told) in [
            (&good, &image(6), none, "the right image is 6x4"),
            (&good, &foreign, none, "for stereo on"),
            (&good, &good, Masks { left: Some(mask.view()), ..none }, "the left mask is 2x2"),
            (&good, &good, Masks { right: Some(colours.view()), ..none }, "3 channels"),
            (&five, &good, none, "5 channels"),
        ] {
            let refused = stereo.compute_on_device(left, right, masks, &processor).unwrap_err();
            assert!(refused.to_string().contains(told), "{told}: {refused}");
        }
    }
    let image = Image::<u8>::new(Size::new(5, 4));
    let refused = stereo.compute_on_device(&image, &image, Masks::default(), &Cpu::sequential().into());
    assert!(refused.unwrap_err().to_string().contains("needs a processor with one"), "no GPU");
}

fn mask_of(mask: &Option<Image<u8>>) -> Masks<'_> {
    Masks { left: mask.as_ref().map(Image::view), right: None }
}

#[test]
fn streams_give_what_single_calls_give_in_order() {
    let mut random = Random::new(23);
    let devices = || {
        let cpus = [Cpu::sequential().into(), Cpu::with_threads(3).unwrap().into()];
        cpus.into_iter().chain(processors().map(|(_, processor)| processor))
    };
    for (cost, in_flight, batch) in [
        (Cost::Census(CensusWindow::Five), 1, 1),
        (Cost::default(), 2, 1),
        (Cost::default(), 3, 2),
        (Cost::MutualInformation, 2, 3),
        (Cost::AbsoluteDifference, 2, 5),
    ] {
        let options = options(&mut random, cost);
        // Size and pixel type change in the middle, so that some batches are incomplete.
        let pairs: Vec<_> = (0..11)
            .map(|i| {
                let size = if i < 6 { Size::new(33, 17) } else { Size::new(40, 9) };
                let kind = match i {
                    8 => 0,
                    4 | 10 => 6 + i as u64 / 5 % 2,
                    _ => 3,
                };
                let pair = pair(&mut random, size, i % 4, kind);
                (pair, (i % 5 == 3).then(|| Image::from_fn(size, |x, y| u8::from((x + y) % 7 != 0))))
            })
            .collect();
        let expected: Vec<_> = pairs
            .iter()
            .map(|(pair, mask)| compute(options, pair, mask_of(mask), &Cpu::sequential().into()))
            .collect();
        for processor in devices() {
            let what = format!("{:?}, {in_flight} in flight, {batch} together, {options:?}", processor.gpu());
            let stream = StereoStream::new(options, &processor).unwrap();
            let mut stream = stream.with_in_flight(in_flight).unwrap().with_batch(batch).unwrap();
            // Results are taken before the stream is full; with one pair in flight, each push frees the slot itself.
            let most = stream.in_flight() - usize::from(in_flight > 1);
            if batch > 1 {
                stream = stream.with_copying(&Cpu::sequential());
            }
            let mut found = Vec::new();
            for (i, (pair, mask)) in pairs.iter().enumerate() {
                let [left, right] = pair.each_ref().map(AnyView::from);
                while stream.len() > most {
                    found.extend(stream.pop().unwrap());
                }
                let wrong = Image::<u8>::new(Size::new(3, 3));
                assert!(stream.push(left, (&wrong).into(), Masks::default()).is_err(), "sizes differ");
                stream.push(left, right, mask_of(mask)).unwrap();
                assert_eq!(stream.len(), i + 1 - found.len(), "{what}");
            }
            while let Some(last) = stream.pop().unwrap() {
                found.push(last);
            }
            assert!(stream.is_empty() && found.len() == pairs.len(), "{what}");
            for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert_equal(found, expected, &format!("pair {i}, {what}"));
            }
            assert_eq!(processor.take_notes(), Vec::<String>::new(), "the device computes: {what}");
        }
    }
}

#[test]
fn streams_check_their_numbers() {
    let stream = || StereoStream::new(StereoOptions::default(), &Cpu::sequential().into()).unwrap();
    assert!(stream().with_in_flight(0).is_err() && stream().with_batch(0).is_err(), "at least one");
    assert!(stream().with_in_flight(1025).is_err() && stream().with_batch(1025).is_err(), "not all memory");
}

/// The least device memory with which a pair is computed in bands.
fn least_memory(gpu: &Gpu, options: StereoOptions, pair: &[AnyImage; 2], masks: Masks<'_>) -> u64 {
    let pictures = Pictures::new(pair.each_ref().map(AnyView::from), masks).unwrap();
    let found = Stereo::new(options).unwrap().prepare(&pictures, &Cpu::sequential().into(), |ready| {
        match bands::disparities(gpu, &options, (ready.pair, ready.source), 0, &ready.cpu) {
            Err(Error::Memory { needed, .. }) => Ok(needed),
            other => panic!("no memory is too little: {other:?}"),
        }
    });
    found.unwrap()
}

#[test]
fn bands_of_rows_change_nothing() {
    let mut random = Random::new(24);
    for (n, cost) in costs().enumerate() {
        let size = Size::new([40, 1, 33, 7, 24][n % 5], 180 + (random.bits() % 90) as usize);
        // Each set of directions in turn.
        let paths = Paths::ALL[n % Paths::ALL.len()].value;
        let options = options(&mut random, cost).with_paths(paths).with_disparities([66, 20][n % 2]);
        let pair = pair(&mut random, size, 3, if n % 3 == 2 { n as u64 % 4 } else { 3 });
        let mask = Image::from_fn(size, |_, _| u8::from(!random.bits().is_multiple_of(6)));
        let masks = if n % 2 == 0 { mask_of(&None) } else { Masks { left: None, right: Some(mask.view()) } };
        let expected = compute(options, &pair, masks, &Cpu::sequential().into());
        for (gpu, processor) in processors() {
            let least = least_memory(gpu, options, &pair, masks);
            // Every other cost gets the least memory, the others half as much again.
            let memory = least + n as u64 % 2 * (least / 2);
            let in_bands = options.with_device_memory(Some(memory));
            let what = format!("{gpu:?}, {size}, {memory} bytes, {in_bands:?}");
            let found = compute(in_bands, &pair, masks, &processor);
            assert_equal(&found, &expected, &what);
            let notes = processor.take_notes();
            let told = notes.iter().any(|note| note.contains("bands of rows"));
            assert!(memory > least || told, "in bands: {notes:?}, {what}");
            assert!(notes.iter().all(|note| !note.contains("stereo on the CPU")), "{notes:?}, {what}");
            let options = options.with_device_memory(Some(least - 1));
            let found = compute(options, &pair, masks, &processor);
            assert_equal(&found, &expected, "on the CPU");
            let notes = processor.take_notes();
            assert!(notes[0].contains("dense stereo on the CPU"), "too little for a band: {notes:?}");
            let mut stream = StereoStream::new(options, &processor).unwrap();
            let [left, right] = pair.each_ref().map(AnyView::from);
            stream.push(left, right, masks).unwrap();
            assert_equal(&stream.pop().unwrap().unwrap(), &expected, "a stream, on the CPU");
            processor.take_notes();
            assert_eq!(processor.take_computed().last().map(String::as_str), Some("cpu"), "told");
        }
    }
}
