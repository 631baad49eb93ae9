//! Tests of costs against their formulas.

use super::gpu::CostKernel;
use super::{Column, CostRow, DescriptorCost, Learn, Value};
use crate::device::Cpu;
use crate::image::{AnyImage, AnyView, Image, Pixel, Size};
use crate::numeric::Random;
use crate::options::Named;
use crate::stereo::aggregation::{AggregationInput, Workspace};
use crate::stereo::pair::{Pair, Pictures};
use crate::stereo::{CensusWindow, Cost, Masks, StereoOptions, View};

/// Checks a cost of images with `channels` channels against `formula(cost, pair, x, other, y)` for the left pixel x and
/// the right pixel `other` of row y, over sizes, disparities, masks, pixel types, SIMD levels and both widths of the
/// values. `learn` makes the cost from a pair, whose compared images it may set.
pub(super) fn check_formula<C: DescriptorCost>(
    what: &str,
    channels: usize,
    learn: impl Fn(&Pictures<'_>, &mut Pair) -> C,
    formula: impl Fn(&C, &Pair, usize, usize, usize) -> u16,
) {
    let mut random = Random::new(3);
    let cases =
        [(1, 1, 1, 0), (9, 1, 3, -4), (1, 6, 20, 2), (37, 5, 33, -9), (70, 3, 64, 5), (20, 2, 65, 40)];
    for (n, (width, height, disparities, min_disparity)) in cases.into_iter().enumerate() {
        let (images, masks) = pictures(&mut random, Size::new(width, height), channels, n);
        let [left, right] = masks.each_ref().map(|m| m.as_ref().map(Image::view));
        let pictures =
            Pictures::new([(&images[0]).into(), (&images[1]).into()], Masks { left, right }).unwrap();
        let mut pair = Pair::new(&pictures, &Cpu::sequential()).unwrap();
        let cost = learn(&pictures, &mut pair);
        let options = StereoOptions { min_disparity, disparities, ..Default::default() };
        let input = AggregationInput::new(&cost, &pair, &options);
        check(&input, |x, other, y| formula(&cost, &pair, x, other, y), &format!("{what}, case {n}"));
    }
}

/// Two images of noise: 8 bits, 16 bits or floats, and masks for every other case.
fn pictures(
    random: &mut Random,
    size: Size,
    channels: usize,
    case: usize,
) -> ([AnyImage; 2], [Option<Image<u8>>; 2]) {
    let image = |random: &mut Random| {
        let mut noise = |values: u64| -> Vec<u64> {
            (0..size.area() * channels).map(|_| random.bits() % values).collect()
        };
        match case % 3 {
            0 => image_of(noise(40).into_iter().map(|v| v as u16), size, channels).into(),
            1 => image_of(noise(256).into_iter().map(|v| v as u8), size, channels).into(),
            _ => AnyImage::F32(image_of(noise(99).into_iter().map(|v| v as f32 / 99.0), size, channels)),
        }
    };
    let images = [image(random), image(random)];
    let mut mask = || (case % 2 == 1).then(|| Image::from_fn(size, |_, _| (random.bits() % 5) as u8));
    (images, [mask(), mask()])
}

fn image_of<T: Pixel>(values: impl Iterator<Item = T>, size: Size, channels: usize) -> Image<T> {
    Image::from_vec(values.collect(), size, channels).unwrap()
}

fn check(input: &AggregationInput<'_>, formula: impl Fn(usize, usize, usize) -> u16, what: &str) {
    let Size { width, height } = input.pair.size();
    let hole = |view, x: usize, y: usize| input.pair.mask(view).is_some_and(|m| m.row(y)[x] == 0);
    for level in Cpu::levels() {
        let cpu = Cpu::sequential().at_level(level).unwrap();
        for y in 0..height {
            let bytes: Vec<Vec<u8>> = row(input, y, &cpu);
            let words: Vec<Vec<u16>> = row(input, y, &cpu);
            for x in 0..width {
                let expected: Vec<u16> = (0..input.options.disparities)
                    // The right column nearest to x − d.
                    .map(|i| x as i64 - i64::from(input.options.min_disparity) - i as i64)
                    .map(|other| match other.clamp(0, width as i64 - 1) as usize {
                        _ if hole(View::Left, x, y) => 0,
                        other if hole(View::Right, other, y) => input.source.greatest(),
                        other => formula(x, other, y),
                    })
                    .collect();
                assert_eq!(words[x], expected, "{what}, {level:?}, pixel {x}, {y}");
                let narrow: Vec<u16> = bytes[x].iter().map(|&c| u16::from(c)).collect();
                assert_eq!(narrow, expected, "bytes: {what}, {level:?}, pixel {x}, {y}");
            }
        }
    }
}

fn row<T: Value>(input: &AggregationInput<'_>, y: usize, cpu: &Cpu) -> Vec<Vec<T>> {
    let padded = input.options.disparities.next_multiple_of(64);
    let mut row = [CostRow::default()];
    input.prepare(cpu.level(), y, padded, &mut row[0]);
    let mut at = |first| {
        let mut out = vec![T::default(); padded];
        T::column(input.source, cpu.level(), Column { first, slope: 0 }, &row, &mut out);
        out.truncate(input.options.disparities);
        out
    };
    (0..input.pair.size().width).map(&mut at).collect()
}

/// Every cost, Census with every window.
pub(in crate::stereo) fn costs() -> impl Iterator<Item = Cost> {
    let windows = CensusWindow::ALL.iter().map(|choice| Cost::Census(choice.value));
    let others = Cost::ALL.iter().map(|choice| choice.value).filter(|cost| !matches!(cost, Cost::Census(_)));
    windows.chain(others)
}

/// The kernel forms of all costs, without a table where a cost learns one.
pub(in crate::stereo) fn kernels() -> Vec<CostKernel> {
    let images = [3, 4]
        .map(|seed| crate::synth::Texture::new(seed).image::<u8>(Size::new(40, 30), &Cpu::sequential()));
    let views = images.each_ref().map(AnyView::from);
    let pictures = Pictures::new(views, Masks::default()).unwrap();
    let cpu = Cpu::sequential();
    let kernel = |cost: Cost| {
        let mut pair = Pair::new(&pictures, &cpu).unwrap();
        let options = StereoOptions::default().with_cost(cost).with_disparities(8);
        let mut workspace = Workspace::default();
        let learn = Learn {
            pair: &mut pair,
            pictures: &pictures,
            options: &options,
            workspace: &mut workspace,
            cpu: &cpu,
            gpu: None,
        };
        cost.definition().source(learn).unwrap().kernel()
    };
    costs().map(kernel).collect()
}

#[test]
fn the_table_is_sound() {
    for choice in Cost::ALL {
        let cost: Cost = choice.name.parse().unwrap();
        assert_eq!((cost, cost.name()), (choice.value, choice.name), "found by its name");
        cost.penalties().check().unwrap();
    }
}
