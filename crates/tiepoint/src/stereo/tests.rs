//! Dense stereo as a whole, on scenes with known disparities.

use super::{
    CensusWindow, Cost, INVALID, Masks, Paths, Reason, RightView, Stereo, StereoOptions, StereoResult, View,
};
use crate::Result;
use crate::device::Cpu;
use crate::device::progress::tests::told;
use crate::device::tests::every_cpu;
use crate::evaluate::{DisparityScoring, disparity_score};
use crate::image::testing::assert_same;
use crate::image::{AnyImage, AnyView, Image, Size};
use crate::options::Named;
use crate::synth::stereo::{Scenery, StereoPair, StereoScene, StereoSceneOptions};
use crate::synth::{Photometry, Texture};

/// A texture with detail of every size, and the same shifted to the left by `shift` pixels.
fn shifted(size: Size, shift: usize, seed: u64) -> [Image<u8>; 2] {
    let wide = Texture::new(seed).image(Size::new(size.width + shift, size.height), &Cpu::sequential());
    let cut = |from: usize| Image::from_fn(size, |x, y| wide.row(y)[x + from]);
    [cut(0), cut(shift)]
}

fn compute(options: StereoOptions, pair: &[Image<u8>; 2], masks: Masks<'_>, cpu: &Cpu) -> StereoResult {
    try_compute(options, pair.each_ref().map(AnyView::from), masks, cpu).unwrap()
}

fn try_compute(
    options: StereoOptions,
    [left, right]: [AnyView<'_>; 2],
    masks: Masks<'_>,
    cpu: &Cpu,
) -> Result<StereoResult> {
    Stereo::new(options)?.compute(left, right, masks, &cpu.clone().into())
}

/// The share of disparities within `limit` of `shift`, among the pixels whose match is inside the right image.
fn right_share(found: &Image<f32>, shift: usize, limit: f32) -> f64 {
    let Size { width, height } = found.size();
    let seen = (0..height).flat_map(|y| &found.row(y)[shift..]);
    let good = seen.filter(|&&d| (d - shift as f32).abs() <= limit).count();
    good as f64 / ((width - shift) * height) as f64
}

#[test]
fn a_shift_is_found_by_every_cost_and_path() {
    let pair = shifted(Size::new(240, 120), 9, 5);
    // An inverted right image, as from another kind of camera.
    let inverted = [pair[0].clone(), Image::from_fn(pair[1].size(), |x, y| 255 - pair[1].row(y)[x])];
    let cpu = Cpu::with_threads(2).unwrap();
    for paths in Paths::ALL.iter().map(|choice| choice.value) {
        for right_view in RightView::ALL.iter().map(|choice| choice.value) {
            for cost in Cost::ALL.iter().map(|choice| choice.value) {
                let options =
                    StereoOptions { disparities: 24, cost, paths, right_view, ..Default::default() };
                let found = compute(options, &pair, Masks::default(), &cpu).disparity;
                let share = right_share(&found, 9, 0.5);
                // A cost table learnt from such a small pair is coarse, and single pixels are ambiguous.
                let least = if cost == Cost::MutualInformation { 0.8 } else { 0.97 };
                assert!(share > least, "{paths:?}, {right_view:?}, {cost:?}: {share}");
            }
        }
    }
    for iterations in [None, Some(3)] {
        let cost = Cost::MutualInformation;
        let options = StereoOptions { disparities: 24, cost, iterations, ..Default::default() };
        let share = right_share(&compute(options, &inverted, Masks::default(), &cpu).disparity, 9, 0.5);
        assert!(share > 0.8, "inverted, {iterations:?}: {share}");
    }
}

#[test]
fn negative_disparities_and_the_right_view() {
    let [left, right] = shifted(Size::new(90, 40), 6, 6);
    let cpu = Cpu::sequential();
    let options = StereoOptions {
        min_disparity: -10,
        disparities: 12,
        right: true,
        confidence: true,
        ..Default::default()
    };
    let found = compute(options, &[right, left], Masks::default(), &cpu);
    let inner = |image: &Image<f32>, value: f32| {
        let pixels = (2..38).flat_map(|y| image.row(y)[12..78].to_vec());
        pixels.filter(|d| (d - value).abs() <= 0.5).count()
    };
    assert!(inner(&found.disparity, -6.0) > 36 * 64, "left: {}", inner(&found.disparity, -6.0));
    assert!(inner(found.right.as_ref().unwrap(), -6.0) > 36 * 64, "right");
    let confidence = found.confidence.unwrap();
    for (c, d) in confidence.data().iter().zip(found.disparity.data()) {
        assert!((0.0..=1.0).contains(c), "confidence {c}");
        assert!(d.is_finite() || *c == 0.0, "confidence {c} where nothing was found");
    }
    assert!(inner(&confidence, 0.6) > 36 * 40, "a random texture is distinct: {}", inner(&confidence, 0.6));
}

#[test]
fn pixels_without_data_have_no_disparity_and_do_not_affect_others() {
    let size = Size::new(100, 50);
    let pair = shifted(size, 7, 7);
    let hole = |x: usize, y: usize| (40..60).contains(&x) && (20..30).contains(&y);
    let mask = Image::from_fn(size, |x, y| if hole(x, y) { 0 } else { 255 });
    let options = StereoOptions { disparities: 16, median: 0, ..Default::default() };
    let found = compute(options, &pair, Masks { left: Some(mask.view()), right: None }, &Cpu::sequential());
    // A hole in the right image: nothing there can be matched.
    let beyond = compute(options, &pair, Masks { left: None, right: Some(mask.view()) }, &Cpu::sequential());
    for view in [View::Left, View::Right] {
        let mut masks = [None, None];
        masks[view.index()] = Some(mask.view());
        let options = options.with_fill(true).with_right(true).with_confidence(true);
        let masks = Masks { left: masks[0], right: masks[1] };
        let filled = compute(options, &pair, masks, &Cpu::sequential());
        let maps = [&filled.disparity, filled.right.as_ref().unwrap()];
        for (i, map) in maps.into_iter().enumerate() {
            for (at, d) in map.data().iter().enumerate() {
                let is_hidden = i == view.index() && hole(at % 100, at / 100);
                assert_eq!(d.is_finite(), !is_hidden, "filled, masked {view:?}, map {i}, pixel {at}");
            }
        }
        let found = compute(options.with_fill(false), &pair, masks, &Cpu::sequential());
        assert!(filled.confidence == found.confidence, "a disparity that was filled in has no confidence");
    }
    let inner = (22..28).flat_map(|y| beyond.disparity.row(y)[50..65].to_vec());
    assert_eq!(inner.filter(|d| d.is_finite()).count(), 0, "matches in the right image's hole");
    let floats = pair
        .clone()
        .map(|i| Image::from_fn(size, |x, y| if hole(x, y) { f32::NAN } else { f32::from(i.row(y)[x]) }));
    let views = [AnyView::from(&floats[0]), AnyView::from(&pair[1])];
    let nan = try_compute(options, views, Masks::default(), &Cpu::sequential());
    for disparity in [found.disparity, nan.unwrap().disparity] {
        for y in 0..50 {
            for x in 0..100 {
                assert!(!hole(x, y) || disparity.row(y)[x] == INVALID, "a disparity in the hole at {x}, {y}");
            }
        }
        let whole = right_share(&disparity, 7, 0.5);
        assert!(whole > 0.93, "outside the hole: {whole}");
    }
}

#[test]
fn a_right_pixel_with_only_masked_candidates_has_no_disparity() {
    let size = Size::new(90, 12);
    let pair = shifted(size, 2, 7);
    let mask = Image::from_fn(size, |x, _| u8::from(!(30..50).contains(&x)));
    let masks = Masks { left: Some(mask.view()), right: None };
    let options =
        StereoOptions { disparities: 5, median: 0, speckle_size: 0, right: true, ..Default::default() };
    let options = options.with_right_view(RightView::Off);
    let right = compute(options, &pair, masks, &Cpu::sequential()).right.unwrap();
    for y in 0..size.height {
        // Right pixel x is compared with left pixels x to x + 4.
        assert!(right.row(y)[30..46].iter().all(|&d| d == INVALID), "row {y}: {:?}", &right.row(y)[30..46]);
        assert!(right.row(y)[46..86].iter().all(|d| (0.0..5.0).contains(d)), "row {y}");
    }
}

#[test]
fn one_answer_for_threads_levels_and_memory() {
    let pair = shifted(Size::new(150, 70), 11, 8);
    for cost in Cost::ALL.iter().map(|choice| choice.value) {
        let options =
            StereoOptions { disparities: 40, cost, confidence: true, reasons: true, ..Default::default() };
        let expected = compute(options, &pair, Masks::default(), &Cpu::sequential());
        for (cpu, name) in every_cpu() {
            for memory in [None, Some(1_000_000)] {
                let found = compute(StereoOptions { memory, ..options }, &pair, Masks::default(), &cpu);
                let what = format!("{cost:?}, {name}, {memory:?}");
                assert_same(&found.disparity, &expected.disparity, &what);
                assert!(found == expected, "{what}: all but disparities");
            }
        }
    }
}

#[test]
fn progress_is_told_band_by_band_and_of_every_iteration() {
    let pair = shifted(Size::new(150, 120), 11, 8);
    let tinted = pair[0].data().iter().flat_map(|&v| [v, 255 - v, v / 2]).collect();
    let tinted = Image::from_vec(tinted, pair[0].size(), 3);
    let colour = [AnyImage::U8(tinted.unwrap()), pair[1].clone().into()];
    let pair = pair.map(AnyImage::U8);
    let base = StereoOptions { disparities: 24, ..Default::default() };
    let (cost, bands) = (Cost::MutualInformation, 2 * 120 / 8);
    for (options, pair, least) in [
        (base, &pair, bands),
        // 64 disparities take the same memory with vectors of any length.
        (StereoOptions { disparities: 64, memory: Some(1_000_000), ..base }, &pair, bands + 4),
        (StereoOptions { right_view: RightView::Aggregated, ..base }, &pair, 2 * bands),
        (StereoOptions { cost, ..base }, &pair, 2 * bands),
        (StereoOptions { cost, iterations: Some(3), ..base }, &pair, 3 * bands),
        (StereoOptions { cost, ..base }, &colour, 3 * bands),
    ] {
        for threads in [1, 2, 5] {
            let cpu = Cpu::with_threads(threads).unwrap();
            let told = told(&cpu, least, |cpu| {
                try_compute(options, pair.each_ref().map(AnyView::from), Masks::default(), cpu).unwrap()
            });
            assert!(told.iter().all(|p| p.task == "stereo"), "one task");
            let jump = told.iter().zip(&told[1..]).map(|(a, b)| b.share() - a.share()).fold(0.0, f64::max);
            assert!(jump < 0.2, "{options:?}: {jump} of the work at once");
        }
    }
}

#[test]
fn inputs_that_cannot_be_computed_are_errors() {
    let cpu = Cpu::sequential();
    let image = |w, h| AnyImage::U8(Image::filled(Size::new(w, h), 1, 7));
    let with = |options, sizes: [(usize, usize); 2], masks: Masks<'_>| {
        let images = sizes.map(|(w, h)| image(w, h));
        try_compute(options, images.each_ref().map(AnyView::from), masks, &cpu)
    };
    let (default, whole) = (StereoOptions::default(), Masks::default());
    let unequal = with(default, [(5, 4), (5, 5)], whole);
    assert!(unequal.unwrap_err().to_string().contains("one size"), "sizes differ");
    let mask = Image::filled(Size::new(4, 4), 1, 1);
    let masks = Masks { left: Some(mask.view()), right: None };
    assert!(with(default, [(5, 4); 2], masks).is_err(), "mask of another size");
    assert!(with(default, [(0, 4); 2], whole).is_err(), "empty");
    let tight = with(default.with_memory(Some(10_000)), [(500, 400); 2], whole);
    assert!(tight.unwrap_err().to_string().contains("more than the limit of 10000"), "too little memory");
    // Constant images, more disparities than columns, a single pixel: any result will do, but no error.
    for (w, h) in [(1, 1), (3, 2), (40, 30)] {
        for cost in Cost::ALL.iter().map(|choice| choice.value) {
            let options = StereoOptions { cost, disparities: 300, fill: true, ..Default::default() };
            let found = with(options, [(w, h); 2], whole);
            assert_eq!(found.unwrap().disparity.size(), Size::new(w, h), "constant, {w}x{h}, {cost:?}");
        }
    }
    for options in [
        StereoOptions { disparities: 0, ..Default::default() },
        StereoOptions { disparities: 5000, ..Default::default() },
        StereoOptions { min_disparity: 40_000, ..Default::default() },
        StereoOptions { median: 4, ..Default::default() },
        StereoOptions { max_difference: f32::NAN, ..Default::default() },
        StereoOptions { uniqueness: 101, ..Default::default() },
    ] {
        assert!(Stereo::new(options).is_err(), "{options:?}");
    }
}

/// A volume of absolute differences without a limit.
#[test]
fn a_volume_suits_its_penalties() {
    let [left, right] = &shifted(Size::new(200, 60), 9, 5);
    let difference =
        |x: usize, y: usize, d: usize| left.row(y)[x].abs_diff(right.row(y)[x.saturating_sub(d)]);
    let places = (0..60).flat_map(|y| (0..200).map(move |x| (x, y)));
    let costs = places.flat_map(|(x, y)| (0..24).map(move |d| difference(x, y, d))).collect();
    let costs = Image::from_vec(costs, left.size(), 24).unwrap();
    let processor = Cpu::with_threads(2).unwrap().into();
    let compute = |options: StereoOptions| {
        let pair = [left.into(), right.into()];
        Stereo::new(options)?.optimize(((&costs).into(), None), pair, Masks::default(), &processor)
    };
    let options = StereoOptions::default().with_disparities(24);
    let found = compute(options).unwrap();
    assert!(right_share(&found.disparity, 9, 0.5) > 0.97, "{}", right_share(&found.disparity, 9, 0.5));
    let others = compute(options.with_penalties(Cost::default().penalties())).unwrap();
    assert!(others != found, "those of the options come first");
    let refused = compute(options.with_right_view(RightView::Aggregated)).unwrap_err().to_string();
    assert!(refused.contains("cost volume"), "{refused}");
}

/// The census costs of a pair as a volume, a channel for each disparity.
fn census_volume([left, right]: &[Image<u8>; 2], least: i32, count: usize) -> Image<u8> {
    let Size { width, height } = left.size();
    let at = |image: &Image<u8>, x: i64, y: i64| {
        image.row(y.clamp(0, height as i64 - 1) as usize)[x.clamp(0, width as i64 - 1) as usize]
    };
    let window = || (-2..=2).flat_map(|dy| (-2..=2).map(move |dx| (dx, dy)));
    let census = |image: &Image<u8>, x: i64, y: i64| -> Vec<bool> {
        window().map(|(dx, dy)| at(image, x + dx, y + dy) < at(image, x, y)).collect()
    };
    let mut costs = Vec::new();
    for y in 0..height as i64 {
        let rights: Vec<_> = (0..width as i64).map(|x| census(right, x, y)).collect();
        for x in 0..width as i64 {
            let a = census(left, x, y);
            costs.extend((0..count as i64).map(|i| {
                let b = &rights[(x - i64::from(least) - i).clamp(0, width as i64 - 1) as usize];
                a.iter().zip(b).filter(|(a, b)| a != b).count() as u8
            }));
        }
    }
    Image::from_vec(costs, left.size(), count).unwrap()
}

#[test]
fn a_volume_of_census_costs_is_stereo_by_census() {
    let pair = shifted(Size::new(90, 40), 9, 5);
    let views = pair.each_ref().map(AnyView::from);
    let (least, count) = (3, 21);
    let bytes = census_volume(&pair, least, count);
    let words = Image::from_vec(bytes.data().iter().map(|&c| u16::from(c)).collect(), bytes.size(), count);
    let floats = bytes.data().iter().map(|&c| f32::from(c) / 8.0 - 1.0).collect();
    let floats = Image::from_vec(floats, bytes.size(), count);
    let volumes: [(AnyImage, _); 3] =
        [(bytes.into(), None), (words.unwrap().into(), None), (floats.unwrap().into(), Some(8.0))];
    let census = Cost::Census(CensusWindow::Five);
    let options = StereoOptions {
        disparities: count,
        min_disparity: least,
        cost: census,
        right: true,
        confidence: true,
        reasons: true,
        uniqueness: 3,
        ..Default::default()
    };
    let options = options.with_penalties(census.penalties());
    let expected = compute(options, &pair, Masks::default(), &Cpu::sequential());
    for (volume, scale) in &volumes {
        for (cpu, name) in every_cpu() {
            let stereo = Stereo::new(options).unwrap();
            let costs = (volume.view(), *scale);
            let found = stereo.optimize(costs, views, Masks::default(), &cpu.into()).unwrap();
            assert!(found == expected, "{:?} on {name}", volume.view().pixel());
        }
    }
    // Callers that select disparities themselves take the first of the least sums.
    let plain = StereoOptions { median: 0, speckle_size: 0, ..options };
    let plain = plain.with_right_view(RightView::Off).with_subpixel(super::Subpixel::Off);
    let stereo = Stereo::new(StereoOptions { uniqueness: 0, right: false, ..plain }).unwrap();
    let processor = Cpu::sequential().into();
    let costs = (volumes[0].0.view(), None);
    let sums = stereo.aggregate(costs, views, Masks::default(), &processor).unwrap();
    let chosen = stereo.optimize(costs, views, Masks::default(), &processor).unwrap().disparity;
    for (sums, d) in sums.data().chunks_exact(count).zip(chosen.data()) {
        let best = (0..count).min_by_key(|&i| sums[i]).unwrap();
        assert_eq!(*d, (least + best as i32) as f32);
    }
}

#[test]
fn unknown_costs_are_never_chosen_and_wrong_volumes_refused() {
    let pair = shifted(Size::new(90, 40), 9, 5);
    let views = pair.each_ref().map(AnyView::from);
    let count = 16;
    let known = census_volume(&pair, 0, count);
    // A pixel without any cost, and columns where the costs of true disparities are unknown.
    let unknown = |x: usize, y: usize, i: usize| (x, y) == (50, 20) || (60..63).contains(&x) && i > 4;
    let mut floats = Image::filled(known.size(), count, 0.0);
    for (place, (to, &cost)) in floats.data_mut().iter_mut().zip(known.data()).enumerate() {
        let (pixel, i) = (place / count, place % count);
        *to = if unknown(pixel % 90, pixel / 90, i) { f32::NAN } else { f32::from(cost) };
    }
    let options = StereoOptions { disparities: count, reasons: true, median: 0, ..Default::default() };
    let optimize = |options: StereoOptions, costs: AnyView<'_>, scale| {
        let (stereo, cpu) = (Stereo::new(options)?, Cpu::with_threads(2)?);
        stereo.optimize((costs, scale), views, Masks::default(), &cpu.into())
    };
    let found = optimize(options, (&floats).into(), Some(1.0)).unwrap();
    assert_eq!(found.reasons.unwrap().row(20)[50], Reason::NoData);
    for y in 0..40 {
        for (x, d) in found.disparity.row(y).iter().enumerate().filter(|(_, d)| d.is_finite()) {
            assert!(!unknown(x, y, d.round() as usize), "({x}, {y}) has {d}");
        }
        assert!(found.disparity.row(y)[70..].iter().filter(|d| (**d - 9.0).abs() < 0.5).count() > 15, "{y}");
    }
    let scaled = optimize(options, (&floats).into(), None).unwrap().disparity;
    assert!(right_share(&scaled, 9, 0.5) > 0.9, "with an automatic scale");
    let nothing = Image::filled(known.size(), count, f32::NAN);
    for (options, costs, scale, why) in [
        (options.with_disparities(17), AnyView::from(&floats), None, "16 disparities"),
        (options, (&pair[0]).into(), None, "1 disparities"),
        (options, (&nothing).into(), None, "no finite cost"),
        (options, (&floats).into(), Some(0.0), "positive"),
        (options, (&floats).into(), Some(1000.0), "no room"),
        (options.with_right_view(RightView::Aggregated), (&floats).into(), None, "left view only"),
        (options, AnyView::from(&Image::filled(Size::new(9, 9), count, 1_u8)), None, "9x9"),
    ] {
        let refused = optimize(options, costs, scale).unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}, but {why} is wrong");
    }
}

#[test]
fn one_object_serves_several_threads() {
    let stereo = Stereo::new(StereoOptions::default().with_disparities(24)).unwrap();
    let pairs = [5, 6, 7].map(|seed| shifted(Size::new(150, 70), 9, seed));
    let compute = |pair: &[Image<u8>; 2]| {
        let [left, right] = pair.each_ref().map(AnyView::from);
        stereo.compute(left, right, Masks::default(), &Cpu::sequential().into()).unwrap()
    };
    let expected = pairs.each_ref().map(compute);
    let found = std::thread::scope(|scope| {
        let threads = pairs.each_ref().map(|pair| scope.spawn(|| compute(pair)));
        threads.map(|thread| thread.join().unwrap())
    });
    assert!(found == expected, "the same as one after the other");
}

/// The percentage of visible pixels with errors above 1 px in rooms with flat coloured panels, after filling invalid
/// pixels.
fn bad_in_rooms(cost: Cost, right: Photometry, colour: bool) -> f64 {
    let cpu = Cpu::with_threads(2).unwrap();
    let bad = |seed| {
        let scene = StereoSceneOptions::default()
            .with_size(Size::new(320, 200))
            .with_disparities([2.0, 30.0])
            .with_scenery(Scenery::Panels)
            .with_surfaces(12)
            .with_noise(0.004)
            .with_right(right)
            .with_seed(seed);
        let scene = StereoScene::new(&scene).unwrap();
        let pair: StereoPair<u8> = if colour { scene.render_colour(&cpu) } else { scene.render(&cpu) };
        let options = StereoOptions::default().with_disparities(32).with_cost(cost);
        let found = try_compute(options, [(&pair.left).into(), (&pair.right).into()], Masks::default(), &cpu);
        let scoring = DisparityScoring::default().with_fill(true);
        let (truth, visible) = (pair.truth_left.view(), pair.visible.view());
        let score = disparity_score(found.unwrap().disparity.view(), truth, Some(visible), &scoring);
        100.0 * score.unwrap().bad[0]
    };
    (1..=4).map(bad).sum::<f64>() / 4.0
}

/// Colour distinguishes panels that census and grey do not distinguish, even under slightly different light.
#[test]
fn flat_coloured_panels_are_found_by_colour() {
    let census = Cost::Census(CensusWindow::Five);
    for right in [Photometry::default(), Photometry::default().with_gain(0.9).with_bias(0.02)] {
        let colour = bad_in_rooms(Cost::AdCensus, right, true);
        let grey = bad_in_rooms(Cost::AdCensus, right, false);
        let census = bad_in_rooms(census, right, true);
        let what =
            format!("bad pixels, %: census and colour {colour}, and grey {grey}, census {census}; {right:?}");
        assert!(colour < 18.0 && colour < 0.9 * grey && colour < 0.8 * census, "{what}");
    }
}

/// Gain, offset and gamma of the right camera hardly change the census, but they change the colour differences that the
/// default cost adds to it. Bad pixels grow by at most half; by absolute differences alone four pixels in five are bad.
#[test]
fn the_default_cost_withstands_other_light() {
    let cost = StereoOptions::default().cost;
    let same = bad_in_rooms(cost, Photometry::default(), true);
    let differs = bad_in_rooms(Cost::AbsoluteDifference, Photometry::default().with_gamma(1.25), true);
    let light = Photometry::default();
    for right in [
        light.with_gain(0.9).with_bias(0.02),
        light.with_gain(1.15),
        light.with_gamma(0.8),
        light.with_gamma(1.25),
        light.with_gamma(1.25).with_gain(0.9),
    ] {
        let bad = bad_in_rooms(cost, right, true);
        let what = format!("bad pixels, %: {bad}, in the same light {same}, AD {differs}; {right:?}");
        assert!(bad < 1.5 * same && bad < 0.5 * differs, "{what}");
    }
}

#[test]
fn every_invalid_pixel_has_a_reason_and_the_right_one() {
    let scene = StereoSceneOptions::default().with_size(Size::new(200, 150)).with_seed(3).with_noise(0.02);
    let scene =
        StereoScene::new(&scene.with_disparities([4.0, 30.0])).unwrap().render::<u8>(&Cpu::sequential());
    let mask = Image::from_fn(Size::new(200, 150), |x, y| u8::from(x < 150 || y > 40));
    let masks = Masks { left: Some(mask.view()), right: None };
    let options = StereoOptions { disparities: 40, uniqueness: 5, reasons: true, ..Default::default() };
    let pair = [scene.left, scene.right];
    let found = compute(options, &pair, masks, &Cpu::sequential());
    let reasons = found.reasons.unwrap();
    for (reason, d) in reasons.data().iter().zip(found.disparity.data()) {
        assert_eq!(*reason == Reason::None, d.is_finite(), "{reason:?}, {d}");
    }
    let of = |wanted: Reason| reasons.data().iter().filter(|r| **r == wanted).count();
    assert_eq!(of(Reason::NoData), 50 * 41, "what the mask leaves out");
    for reason in [Reason::Ambiguous, Reason::Occluded, Reason::Inconsistent, Reason::Speckle] {
        assert!(of(reason) > 0, "no pixel of this scene is {reason:?}");
    }
    // Most pixels marked as occluded are hidden in the true scene.
    let places = (0..150).flat_map(|y| (0..200).map(move |x| (x, y)));
    let occluded: Vec<_> = places.filter(|&(x, y)| reasons.row(y)[x] == Reason::Occluded).collect();
    let right = occluded.iter().filter(|&&(x, y)| scene.visible.row(y)[x] == 0).count();
    assert!(right * 10 > occluded.len() * 7, "{right} of {} are hidden", occluded.len());
    let filled = compute(options.with_fill(true), &pair, masks, &Cpu::sequential());
    assert!(filled.reasons.unwrap() == reasons, "filling keeps the reasons");
    let plain = compute(options.with_reasons(false), &pair, masks, &Cpu::sequential());
    assert!(plain.reasons.is_none() && plain.disparity == found.disparity, "asking changes nothing else");
}

/// Pixels without data have no influence on the scale of others, and values far from 0 keep their contrast.
#[test]
fn the_scale_is_that_of_the_values_that_hold_data() {
    let (size, cpu) = (Size::new(160, 90), Cpu::with_threads(2).unwrap());
    let pair = shifted(size, 9, 6);
    let hole = |x: usize, y: usize| (60..90).contains(&x) && (30..50).contains(&y);
    let mask = Image::from_fn(size, |x, y| 255 * u8::from(!hole(x, y)));
    for cost in [Cost::AbsoluteDifference, Cost::MutualInformation, Cost::default()] {
        let options = StereoOptions { disparities: 16, cost, ..Default::default() };
        let found =
            |pair: [AnyView<'_>; 2], masks| try_compute(options, pair, masks, &cpu).unwrap().disparity;
        let floats = |i: usize, in_hole: f32| {
            Image::from_fn(size, |x, y| if hole(x, y) { in_hole } else { 1.0 + f32::from(pair[i].row(y)[x]) })
        };
        let [left, right] = [floats(0, f32::NAN), floats(1, 1.0)];
        let expected = found([(&left).into(), (&right).into()], Masks::default());
        for no_data in [-9999.0, -3.4e38] {
            let masks = Masks { left: Some(mask.view()), right: None };
            let masked = found([(&floats(0, no_data)).into(), (&right).into()], masks);
            assert_same(&masked, &expected, format!("{cost:?}, {no_data}"));
        }
        let whole = |offset: f32| {
            pair.each_ref().map(|image| Image::from_fn(size, |x, y| offset + f32::from(image.row(y)[x])))
        };
        let words =
            pair.each_ref().map(|image| Image::from_fn(size, |x, y| 30_000 + 4 * u16::from(image.row(y)[x])));
        let [kelvins, words] = [whole(1e4).map(AnyImage::from), words.map(AnyImage::from)];
        for images in [kelvins, words] {
            let share = right_share(&found(images.each_ref().map(AnyView::from), Masks::default()), 9, 0.5);
            assert!(share > 0.8, "{cost:?}, {:?}: {share}", images[0].pixel());
        }
    }
}

#[test]
fn penalties_that_are_not_given_suit_those_that_are() {
    let with = |p1, p2_least, p2| StereoOptions { p1, p2_least, p2, ..Default::default() };
    for options in [
        with(None, None, Some(5)),
        with(None, Some(100), None),
        with(Some(60), None, None),
        with(None, Some(3), None),
    ] {
        options.check().unwrap();
    }
    assert!(with(Some(9), None, Some(5)).check().is_err(), "those that are given contradict each other");
    for great in [with(Some(4001), None, None), with(None, Some(4001), None), with(None, None, Some(4001))] {
        let said = great.check().unwrap_err().to_string();
        assert!(said.contains("4001: expected 0 to 4000"), "{said}");
    }
}
