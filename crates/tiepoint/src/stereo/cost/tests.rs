//! Every cost against its formula.

use super::{AD_LIMIT, CensusWindow, CostRow, CostSource, Costs, Table};
use crate::{
    device::{Cpu, dispatch},
    image::{AnyImage, Image, Size},
    stereo::{aggregation::Value, pair::Grey},
    synth::Random,
};
use fearless_simd::{Simd, prelude::*};

#[inline(always)]
fn row<S: Simd, T: Value>(simd: S, costs: &Costs<'_>, y: usize) -> Vec<Vec<T>> {
    let padded = costs.disparities.next_multiple_of(S::u8s::LEN);
    let mut line = CostRow::default();
    costs.line(y, padded, &mut line);
    let mut at = |x| {
        let mut out = vec![T::MAX; padded];
        costs.at(simd, &mut line, x, y, &mut out);
        out.truncate(costs.disparities);
        out
    };
    (0..costs.size.width).map(&mut at).collect()
}

/// The right column that stands for x − d.
fn column(costs: &Costs<'_>, x: usize, i: usize) -> usize {
    let d = i64::from(costs.min_disparity) + i as i64;
    (x as i64 - d).clamp(0, costs.size.width as i64 - 1) as usize
}

fn check(costs: &Costs<'_>, formula: impl Fn(usize, usize, usize) -> u16, what: &str) {
    for level in Cpu::levels() {
        let cpu = Cpu::sequential().at_level(level).unwrap();
        for y in 0..costs.size.height {
            let bytes: Vec<Vec<u8>> = dispatch!(cpu.level(), simd => row(simd, costs, y));
            let words: Vec<Vec<u16>> = dispatch!(cpu.level(), simd => row(simd, costs, y));
            for x in 0..costs.size.width {
                let expected: Vec<u16> = (0..costs.disparities)
                    .map(|i| {
                        let hole = |m: Option<&Image<u8>>, x: usize| m.is_some_and(|m| m.row(y)[x] == 0);
                        if hole(costs.left_mask, x) {
                            0
                        } else if hole(costs.right_mask, column(costs, x, i)) {
                            costs.greatest
                        } else {
                            formula(x, column(costs, x, i), y)
                        }
                    })
                    .collect();
                assert_eq!(words[x], expected, "{what}, {level:?}, pixel {x}, {y}");
                let narrow: Vec<u16> = bytes[x].iter().map(|&c| u16::from(c)).collect();
                assert_eq!(narrow, expected, "bytes: {what}, {level:?}, pixel {x}, {y}");
            }
        }
    }
}

struct Scene {
    images: [Image<u16>; 2],
    bytes: [Image<u8>; 2],
    masks: [Option<Image<u8>>; 2],
}

fn scene(random: &mut Random, size: Size, holes: bool) -> Scene {
    let mut deep = || Image::from_fn(size, |_, _| (random.bits() % 40) as u16);
    let images = [deep(), deep()];
    let mut byte = || Image::from_fn(size, |_, _| random.bits() as u8);
    let bytes = [byte(), byte()];
    let mut mask = || holes.then(|| Image::from_fn(size, |_, _| (random.bits() % 5) as u8));
    Scene { images, bytes, masks: [mask(), mask()] }
}

#[test]
fn costs_are_their_formulas() {
    let mut random = Random::new(3);
    let cases =
        [(1, 1, 1, 0), (9, 1, 3, -4), (1, 6, 20, 2), (37, 5, 33, -9), (70, 3, 64, 5), (20, 2, 65, 40)];
    for (n, (width, height, disparities, min_disparity)) in cases.into_iter().enumerate() {
        let size = Size::new(width, height);
        let Scene { images, bytes, masks } = scene(&mut random, size, n % 2 == 1);
        let greys = images.clone().map(|i| Grey::new(&AnyImage::U16(i), &Cpu::sequential()).unwrap());
        let with = |source, greatest| Costs {
            source,
            size,
            min_disparity,
            disparities,
            greatest,
            left_mask: masks[0].as_ref(),
            right_mask: masks[1].as_ref(),
        };
        for window in
            [CensusWindow::Five, CensusWindow::Seven, CensusWindow::NineBySeven, CensusWindow::Symmetric]
        {
            let source = CostSource::Census { window, left: &greys[0], right: &greys[1] };
            let formula = |x, other, y| hamming(&images, window, x, other, y);
            check(&with(source, window.bits().into()), formula, &format!("case {n}, {window:?}"));
        }
        let [left, right] = &bytes;
        let difference = |x: usize, other: usize, y: usize| {
            left.row(y)[x].abs_diff(right.row(y)[other]).min(AD_LIMIT).into()
        };
        check(
            &with(CostSource::Absolute { left, right }, AD_LIMIT.into()),
            difference,
            &format!("case {n}, AD"),
        );
        let zero = Image::new(size);
        let table = Table::learn([left, right], (&zero, 1), None, &Cpu::sequential());
        let entry = |x: usize, other: usize, y: usize| {
            u16::from(table.row(left.row(y)[x])[usize::from(right.row(y)[other])])
        };
        let source = CostSource::Information { left, right, table: &table };
        check(&with(source, super::MI_LIMIT.into()), entry, &format!("case {n}, MI"));
    }
}

/// Comparisons that differ, one by one.
fn hamming(images: &[Image<u16>; 2], window: CensusWindow, x: usize, other: usize, y: usize) -> u16 {
    let (rx, ry) = window.radius();
    let (rx, ry) = (rx as i64, ry as i64);
    let value = |image: &Image<u16>, x: i64, y: i64| {
        let Size { width, height } = image.size();
        image.row(y.clamp(0, height as i64 - 1) as usize)[x.clamp(0, width as i64 - 1) as usize]
    };
    let darker = |image: &Image<u16>, x: usize, dx: i64, dy: i64| {
        let (x, y) = (x as i64, y as i64);
        let against = match window {
            CensusWindow::Symmetric => value(image, x - dx, y - dy),
            _ => value(image, x, y),
        };
        value(image, x + dx, y + dy) < against
    };
    let mut differing = 0;
    for dy in -ry..=ry {
        for dx in -rx..=rx {
            let second = (dy, dx) > (0, 0);
            if (dx, dy) == (0, 0) || (window == CensusWindow::Symmetric && second) {
                continue;
            }
            differing += u16::from(darker(&images[0], x, dx, dy) != darker(&images[1], other, dx, dy));
        }
    }
    differing
}
