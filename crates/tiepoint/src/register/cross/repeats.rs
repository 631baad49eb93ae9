//! Whether the structure of a picture repeats, as that of panels in rows does: then a map that is off by a period
//! agrees as well as the right map, and no measurement of the agreement distinguishes them.
//!
//! The channels at a quarter of the size, less their means, are correlated with themselves at every displacement of up to
//! half of the picture (autocorrelation), over a sample of the pixels with the most structure: first at every other
//! displacement along each axis, then around the best of each row.
//!
//! Perspective changes the size of repeated structure, so that no displacement fits. Therefore one half of a picture is
//! also matched with the other half ([`between_halves`]).

use super::search;
use crate::Result;
use crate::device::{Cpu, dispatch};
use crate::feature::Keypoint;
use crate::feature::structure::lanes::{BINS, COUNTS, LANES, Lane, pixels};
use crate::feature::structure::{Level, StructureFinder};
use crate::geometry::ModelKind;
use crate::image::{Image, Size};
use crate::numeric::length;
use fearless_simd::Simd;

/// The width of a pixel at a quarter of the size, in pixels of the picture.
const PIXEL: f64 = 4.0;
/// The shortest displacement, in pixels at a quarter of the size: a wide edge displaced by less matches itself.
const NEAREST: f64 = 6.0;
/// The pixels that are compared.
const SAMPLE: usize = 600;
/// Only the pixels with the most structure are sampled: one in this many of those that have any.
const STRONGEST: usize = 4;

/// The displacement at which a picture resembles itself most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Repetition {
    /// The correlation there.
    pub(super) correlation: f64,
    /// Its length in pixels of the picture.
    pub(super) px: f64,
}

impl Repetition {
    /// The repetition of a picture with these channels at a quarter of its size.
    pub(super) fn of(lanes: &Image<f32>, cpu: &Cpu) -> Result<Self> {
        let size = lanes.size();
        let counts = |pixel: &Lane| pixel[COUNTS] > 0.999;
        let (mut sum, mut n) = ([0.0_f32; LANES], 0.0_f32);
        for pixel in pixels(lanes.data()).iter().filter(|pixel| counts(pixel)) {
            (0..LANES).for_each(|i| sum[i] += pixel[i]);
            n += 1.0;
        }
        let mean = sum.map(|sum| sum / n.max(1.0));
        let less_mean = |pixel: &Lane| -> Lane {
            if counts(pixel) {
                std::array::from_fn(|i| if i < BINS { pixel[i] - mean[i] } else { 0.0 })
            } else {
                [0.0; LANES]
            }
        };
        let values: Vec<Lane> = pixels(lanes.data()).iter().map(less_mean).collect();
        let squares: Vec<f32> = values.iter().map(|v| v.iter().map(|v| v * v).sum()).collect();
        // Ordered by strength, the strongest first, then by index.
        let rank = |i: usize| u64::from(!squares[i].to_bits()) << 32 | i as u64;
        let shown = || (0..squares.len()).filter(|i| squares[*i] > 0.0).map(rank);
        let mut ranks: Vec<u64> = shown().collect();
        let weakest = (ranks.len() / STRONGEST).checked_sub(1).map(|n| *ranks.select_nth_unstable(n).1);
        let strongest = shown().filter(|rank| weakest.is_some_and(|weakest| *rank <= weakest));
        let strongest: Vec<usize> = strongest.map(|rank| rank as u32 as usize).collect();
        let step = strongest.len().div_ceil(SAMPLE).max(1);
        let sample = strongest.into_iter().step_by(step);
        let sample = sample.map(|i| [(i % size.width) as i32, (i / size.width) as i32]).collect();
        let [width, height] = [size.width as i32, size.height as i32];
        let channels = Channels { values, squares, width, height, sample };
        let at = |by: [i32; 2]| {
            // The opposite displacement gives the same correlation.
            let is_far = length(by.map(f64::from)) >= NEAREST && (by[1] > 0 || by[1] == 0 && by[0] > 0);
            let inside = 2 * by[0].abs() <= width && 2 * by[1] <= height;
            let correlation = (is_far && inside)
                .then(|| dispatch!(cpu.level(), simd => channels.correlation(simd, by)))??;
            Some((Self { correlation: f64::from(correlation), px: PIXEL * length(by.map(f64::from)) }, by))
        };
        let best = |all: &mut dyn Iterator<Item = [i32; 2]>| {
            all.filter_map(at).max_by(|(a, _), (b, _)| a.correlation.total_cmp(&b.correlation))
        };
        // Every other displacement along each axis, and those around the best of each row.
        let rows = cpu.try_map(height as usize / 4 + 1, |row| {
            let dy = 2 * row as i32;
            let found = best(&mut (-width / 2..=width / 2).step_by(2).map(|dx| [dx, dy]));
            let around = |(_, [x, y]): (Self, [i32; 2])| {
                best(&mut (-1..=1).flat_map(|v| (-1..=1).map(move |u| [x + u, y + v])))
            };
            Ok(found.and_then(around))
        })?;
        let best = rows.into_iter().flatten().map(|(found, _)| found);
        let best = best.max_by(|a, b| a.correlation.total_cmp(&b.correlation));
        Ok(best.unwrap_or_default())
    }
}

/// The most places on which one half of a picture agrees with the other, upright and at about its own scale: left and
/// right, or upper and lower. `pictures` are the levels of each. A GPU would take longer for 48 such short tasks.
pub(super) fn between_halves(pictures: [&[Level]; 2], cpu: &Cpu) -> Result<usize> {
    let _stage = cpu.stage("halves");
    let processor = cpu.clone().into();
    let finder = StructureFinder::new(&processor);
    let on_host = |levels: &[Level]| levels.iter().take(2).map(Level::to_host).collect::<Result<Vec<_>>>();
    let pictures = [on_host(pictures[0])?, on_host(pictures[1])?];
    let found = cpu.try_map(4, |i| {
        let (levels, axis) = (&pictures[i / 2], i % 2);
        let half = |second: bool| -> Result<Vec<Level>> {
            let of_level = |level: &Level| {
                let Size { width, height } = level.image();
                let middle = 0.5 * [width, height][axis] as f32;
                let is_there = |k: &Keypoint| ([k.x, k.y][axis] >= middle) == second;
                let corners = level.keypoints();
                let which: Vec<usize> = (0..corners.len()).filter(|i| is_there(&corners[*i])).collect();
                level.subset(&which)
            };
            levels.iter().map(of_level).collect()
        };
        let (one, other) = (half(false)?, half(true)?);
        let mut voted = search::votes([&one, &other], [0, 0], 1, &finder)?;
        let best = search::hypotheses(&mut voted, ModelKind::Similarity, cpu)?;
        Ok(best.first().map_or(0, |best| best.cells))
    })?;
    Ok(found.into_iter().max().unwrap_or(0))
}

/// Channels less their means, 0 where pixels do not count.
struct Channels {
    values: Vec<Lane>,
    /// The squared length of each pixel's channels.
    squares: Vec<f32>,
    width: i32,
    height: i32,
    /// The columns and rows of the sampled pixels.
    sample: Vec<[i32; 2]>,
}

impl Channels {
    /// Their correlation with themselves displaced by `by`, if at least half of the sample has a counterpart.
    #[inline(always)]
    fn correlation<S: Simd>(&self, _: S, by: [i32; 2]) -> Option<f32> {
        let (mut products, mut squares, mut counted) = ([0.0_f32; LANES], [0.0_f32; 2], 0);
        for [x, y] in &self.sample {
            let (u, v) = (x + by[0], y + by[1]);
            if u < 0 || u >= self.width || v >= self.height {
                continue;
            }
            let [p, q] = [(y * self.width + x) as usize, (v * self.width + u) as usize];
            let (a, b) = (&self.values[p], &self.values[q]);
            (0..LANES).for_each(|i| products[i] += a[i] * b[i]);
            squares = [squares[0] + self.squares[p], squares[1] + self.squares[q]];
            counted += 1;
        }
        let product: f32 = products.iter().sum();
        (2 * counted >= self.sample.len().max(1))
            .then(|| product / (squares[0] * squares[1]).sqrt().max(1e-9))
    }
}
