//! The whole of dense stereo on every device, against the CPU.

use super::mirror_source;
use crate::{
    device::{
        Cpu, Processor,
        gpu::{Gpu, all, compiles_everywhere},
    },
    image::{AnyImage, AnyView, Image, Size, testing::assert_same},
    options::Named,
    stereo::{
        CensusWindow, Cost, Learning, Masks, MatchingCost, Paths, Penalties, RightView, Stereo,
        StereoOptions, StereoResult, Subpixel,
    },
    synth::{Random, Texture},
};

/// A pair whose disparities lie around `shift`, of the pixel type and number of channels that `kind` says, with noise.
fn pair(random: &mut Random, size: Size, shift: i64, kind: u64) -> [AnyImage; 2] {
    let wide = Texture::new(random.bits() % 1000)
        .image::<u8>(Size::new(size.width + 64, size.height), &Cpu::sequential());
    let mut noise = Random::new(random.bits());
    let mut image = |from: i64| {
        Image::from_fn(size, |x, y| {
            // The lower half lies elsewhere.
            let at = x as i64 + 32 + from * if y > size.height / 2 { 2 } else { 1 };
            let value = wide.row(y)[at.clamp(0, size.width as i64 + 63) as usize];
            value.saturating_add((noise.bits() % 9) as u8)
        })
    };
    [image(0), image(shift)].map(|grey| match kind {
        0 => AnyImage::U16(Image::from_fn(size, |x, y| u16::from(grey.row(y)[x]) * 13 + (x % 3) as u16)),
        1 => AnyImage::F32(Image::from_fn(size, |x, y| match (x * 7 + y * 3) % 97 {
            0 => f32::NAN,
            _ => f32::from(grey.row(y)[x]) / 200.0,
        })),
        2 => {
            let colours = grey.data().iter().flat_map(|&v| [v, v / 2 + 60, 255 - v]).collect();
            AnyImage::U8(Image::from_vec(colours, size, 3).unwrap())
        }
        _ => AnyImage::U8(grey),
    })
}

/// Options drawn at random, all of them; few lengths of disparities, as each is a program of its own.
fn options(random: &mut Random, cost: Cost) -> StereoOptions {
    let mut below = |n: usize| (random.bits() % n as u64) as usize;
    let disparities = [1, 4, 17, 20, 66, 68][below(6)];
    let penalties =
        [None, Some([0, 0, 0, 1]), Some([5, 60, 60, 1]), Some([200, 1900, 300, 9]), Some([7, 31, 20, 30])];
    let penalties = penalties[below(5)].map(|[p1, p2, p2_least, gradient]| Penalties {
        p1: p1 as u16,
        p2: p2 as u16,
        p2_least: p2_least as u16,
        gradient: gradient as u8,
    });
    StereoOptions {
        min_disparity: [0, 0, 0, -7, 5, -40, 300][below(7)],
        disparities,
        cost,
        learning: [Learning::CoarseToFine, Learning::Iterations(2)][below(2)],
        paths: Paths::ALL[below(Paths::ALL.len())].value,
        penalties,
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
    }
}

fn costs() -> Vec<Cost> {
    let windows = CensusWindow::ALL.iter().map(|choice| Cost::Census(choice.value));
    let others = Cost::ALL.iter().map(|choice| choice.value).filter(|cost| !matches!(cost, Cost::Census(_)));
    windows.chain(others).collect()
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

/// The devices' processors, which must do the work themselves.
fn processors() -> impl Iterator<Item = (&'static Gpu, Processor)> {
    all().iter().map(|gpu| (gpu, Processor::with_gpu(Cpu::sequential(), gpu.clone())))
}

const SIZES: [(usize, usize); 9] =
    [(1, 1), (1, 9), (40, 1), (2, 2), (3, 20), (33, 17), (64, 8), (70, 25), (97, 31)];

#[test]
fn disparities_are_those_of_the_cpu() {
    let mut random = Random::new(17);
    for round in 0..2 {
        for (n, (width, height)) in SIZES.into_iter().enumerate() {
            for (c, cost) in costs().into_iter().enumerate() {
                // Every cost at some size in each round.
                if (n + c + round) % 3 != 0 {
                    continue;
                }
                let size = Size::new(width, height);
                let options = options(&mut random, cost);
                let shift = i64::from(options.min_disparity.clamp(-9, 9)) + 3;
                let kind = random.bits() % 6;
                let pair = pair(&mut random, size, shift, kind);
                let mut mask = |share: u64| {
                    let is_given = random.bits().is_multiple_of(3);
                    is_given
                        .then(|| Image::from_fn(size, |_, _| u8::from(!random.bits().is_multiple_of(share))))
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
}

#[test]
fn default_options_give_the_bits_of_the_cpu() {
    let mut random = Random::new(18);
    for cost in [Cost::default(), Cost::AbsoluteDifference, Cost::MutualInformation] {
        let pair = pair(&mut random, Size::new(230, 121), 9, 3);
        let options = StereoOptions::default().with_cost(cost).with_confidence(true).with_right(true);
        let expected = compute(options, &pair, Masks::default(), &Cpu::sequential().into());
        for (gpu, processor) in processors() {
            let found = compute(options, &pair, Masks::default(), &processor);
            assert_equal(&found, &expected, &format!("{gpu:?}, {cost:?}"));
        }
    }
}

#[test]
fn many_disparities() {
    let mut random = Random::new(19);
    for (disparities, paths) in [(520, Paths::Eight), (1100, Paths::Four), (4096, Paths::Five)] {
        let pair = pair(&mut random, Size::new(61, 11), 4, 3);
        let options = StereoOptions::default().with_disparities(disparities).with_paths(paths);
        let expected = compute(options, &pair, Masks::default(), &Cpu::sequential().into());
        for (gpu, processor) in processors() {
            let found = compute(options, &pair, Masks::default(), &processor);
            assert_equal(&found, &expected, &format!("{gpu:?}, {disparities}"));
        }
    }
}

/// A cost that only the caller knows.
struct Own;

impl MatchingCost for Own {
    fn greatest(&self) -> u16 {
        30
    }

    fn penalties(&self) -> Penalties {
        Penalties { p1: 5, p2: 20, p2_least: 20, gradient: 1 }
    }

    fn row(&self, y: usize, columns: std::ops::Range<usize>, out: &mut [u16]) {
        for (x, out) in columns.zip(out.chunks_exact_mut(8)) {
            out.iter_mut().enumerate().for_each(|(d, out)| *out = ((x * 7 + y * 5 + d * 11) % 31) as u16);
        }
    }
}

#[test]
fn what_a_device_cannot_compute_the_cpu_does_and_says_so() {
    let pair = pair(&mut Random::new(20), Size::new(40, 20), 3, 3);
    let stereo = Stereo::new(StereoOptions::default().with_disparities(8)).unwrap();
    let run = |processor: &Processor| {
        let [left, right] = pair.each_ref().map(AnyView::from);
        stereo.compute_with(&Own, left, right, Masks::default(), processor).unwrap()
    };
    let expected = run(&Cpu::sequential().into());
    for (gpu, processor) in processors() {
        assert_equal(&run(&processor), &expected, &format!("{gpu:?}"));
        let notes = processor.take_notes();
        assert!(notes[0].contains("custom matching cost"), "{notes:?}");
    }
}

#[test]
fn kernels_compile_for_every_card() {
    compiles_everywhere(&[mirror_source()]);
}
