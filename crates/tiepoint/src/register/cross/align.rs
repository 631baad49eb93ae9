//! Alignment of two pictures to a fraction of a pixel.
//!
//! Both pictures are brought to the grid of the coarser one. Their channels at half the size are smoothed by σ and
//! divided by their length plus 0.3. In every block of 6 × 6 (12 pixels of the picture), with B warped by the map D
//! found so far,
//!
//! ```text
//! g = ½ ∇(a + b),   H = Σ g gᵀ,   r = Σ g (a − b),   e = Σ (a − b)²        over pixels and six bins
//! ```
//!
//! are summed. A window is 5 × 5 blocks with binomial weights. Its displacement is H⁻¹ r with the information H / e,
//! and the map fitted to all windows is the next D (Lucas and Kanade 1981, with the symmetric gradient of Benhimane and
//! Malis 2004). That is repeated for σ = 4, 3 and 2 pixels.

use super::search::Hypothesis;
use crate::Result;
use crate::device::{Cpu, Processor, dispatch};
use crate::feature::structure::lanes::{BINS, COUNTS, LANES, Lane, between, pixels};
use crate::feature::structure::{Intensity, StructureFinder};
use crate::filter::gauss::{GaussOptions, gauss};
use crate::geometry::warp::{Interpolation, WarpOptions, warp};
use crate::geometry::weighted::{Measured, WeightedFit, cost, fit};
use crate::geometry::{Homography, ModelKind};
use crate::image::{Image, Size};
use fearless_simd::Simd;

/// Side of a block, in pixels at half the size.
const BLOCK: usize = 6;
/// Weights of the blocks of a window along an axis.
const WINDOW: [f64; 5] = [1.0, 4.0, 6.0, 4.0, 1.0];
/// Added to the length of a pixel's bins before they are divided by it, so that weak structure stays weak.
const WEAK: f32 = 0.3;
/// The share of a window, by weight, that must count.
const COUNTED: f64 = 0.4;
/// The farthest that a window moves in one pass, in pixels at half the size.
const FARTHEST: f64 = 3.0;
/// The fewest windows to which a map is fitted.
const LEAST_WINDOWS: usize = 8;
/// σ in pixels of the picture, and the number of fits at that σ.
const PASSES: [(f64, usize); 3] = [(4.0, 2), (3.0, 3), (2.0, 6)];
/// In this many passes at the end, a more general map than a similarity may be fitted.
const EVIDENT: usize = 4;
/// The number of overlapping windows that together hold as much information as one independent window: (Σ w)² / Σ w²
/// along both axes.
const OVERLAP: f64 = 13.4;

/// Both pictures on one grid.
#[derive(Debug)]
pub(super) struct Frame {
    /// Channels at half the size.
    pub(super) lanes: [Image<f32>; 2],
    /// The maps from pixels of A and of B to those of the grid.
    pub(super) from: [Homography; 2],
}

/// A place in A, the corresponding place in B, and the standard deviation of the latter in pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) a: [f64; 2],
    pub(super) b: [f64; 2],
    pub(super) deviation: f64,
}

/// Two aligned pictures.
#[derive(Debug)]
pub(super) struct Aligned {
    /// Between pixels at the sizes at which the pictures are searched.
    pub(super) b_from_a: Homography,
    pub(super) places: Vec<Place>,
    /// The channels of A, and those of B warped onto them.
    pub(super) lanes: [Image<f32>; 2],
}

impl Frame {
    /// Of two pictures, each with its own channels at half its size.
    pub(super) fn of(
        pictures: [(&Intensity, &Image<f32>); 2],
        hypothesis: &Hypothesis,
        finder: &StructureFinder<'_>,
    ) -> Result<Self> {
        let (intensity, cpu) = (pictures.map(|(intensity, _)| intensity), &finder.processor.cpu);
        let ([c, s], [x, y]) = (hypothesis.turn, hypothesis.shift);
        let b_from_a = Homography::new([[c, -s, x], [s, c, y], [0.0, 0.0, 1.0]])?;
        let inverse = b_from_a.inverse().unwrap_or_default();
        let scale = hypothesis.scale();
        let one = Homography::default();
        // The finer picture is resampled on the grid of the coarser one.
        let (from, size) = match scale >= 1.0 {
            true => ([one, inverse], intensity[0].size()),
            false => ([b_from_a, one], intensity[1].size()),
        };
        let moved = usize::from(scale >= 1.0);
        let back = if moved == 1 { b_from_a } else { inverse };
        let mut lanes = pictures.map(|(_, lanes)| lanes.clone());
        lanes[moved] = finder.halved_channels(&laid(intensity[moved], &back, size, cpu)?)?;
        Ok(Self { lanes, from })
    }

    /// The alignment by the best map that is no more general than `kind`; `None` where the pictures determine no map.
    pub(super) fn align(&self, kind: ModelKind, cpu: &Cpu) -> Result<Option<Aligned>> {
        let _stage = cpu.stage("align");
        let mut map = Homography::default();
        for (sigma, passes) in PASSES {
            let smooth = cpu.try_map(2, |i| smoothed(&self.lanes[i], sigma, cpu))?;
            let last = sigma == PASSES[PASSES.len() - 1].0;
            let mut led = ModelKind::Similarity;
            for pass in 0..passes {
                let windows = windows(&smooth[0], &self.laid(&smooth[1], &map, cpu)?, cpu)?;
                if last && pass >= passes - EVIDENT {
                    led = evident(led, kind, &windows);
                }
                let Some(step) = step(led, &windows) else { return Ok(None) };
                map = map.compose(&step.b_from_a);
                let [[a, b, _], [c, d, _], _] = map.matrix();
                if !(0.6..1.6).contains(&(a * d - b * c)) {
                    return Ok(None);
                }
            }
            if last {
                let laid = self.laid(&smooth[1], &map, cpu)?;
                let windows = windows(&smooth[0], &laid, cpu)?;
                let Some(WeightedFit { variance, .. }) = step(led, &windows) else { return Ok(None) };
                let smooth = <[_; 2]>::try_from(smooth).unwrap_or_else(|_| unreachable!("two pictures"));
                let [of_a, _] = smooth;
                return Ok(self.aligned(&map, &windows, variance, [of_a, laid]));
            }
        }
        Ok(None)
    }

    fn aligned(
        &self,
        map: &Homography,
        windows: &[Measured],
        variance: f64,
        lanes: [Image<f32>; 2],
    ) -> Option<Aligned> {
        let half = Homography::new([[0.5, 0.0, -0.25], [0.0, 0.5, -0.25], [0.0, 0.0, 1.0]]).ok()?;
        let from = self.from.each_ref().map(|from| half.compose(from));
        let back = [from[0].inverse()?, from[1].inverse()?];
        let b_from_a = back[1].compose(&map.compose(&from[0]));
        let place = |window: &Measured| {
            let (a, b) = (back[0].apply(window.a)?, back[1].apply(map.apply(window.b)?)?);
            Some(Place { a, b, deviation: 2.0 * deviation(window.information, variance) })
        };
        let places = windows.iter().filter_map(place).collect();
        Some(Aligned { b_from_a, places, lanes })
    }

    fn laid(&self, b: &Image<f32>, map: &Homography, cpu: &Cpu) -> Result<Image<f32>> {
        laid_lanes(b, map, self.lanes[0].size(), cpu)
    }
}

/// Channels warped by `map` onto a picture of `size`. The `COUNTS` lane is 1 where all four pixels that are interpolated
/// count, else 0.
pub(super) fn laid_lanes(lanes: &Image<f32>, map: &Homography, size: Size, cpu: &Cpu) -> Result<Image<f32>> {
    let mut out = Image::try_filled(size, LANES, 0.0)?;
    cpu.try_for_chunks(out.data_mut(), size.width * LANES, |y, out| {
        dispatch!(cpu.level(), simd => lay_row(simd, lanes, map, y, out));
    })?;
    Ok(out)
}

/// The larger standard deviation of a place: the root of the larger eigenvalue of the inverse of its information.
pub(super) fn deviation([xx, xy, yy]: [f64; 3], variance: f64) -> f64 {
    let (trace, root) = (xx + yy, ((xx - yy) * (xx - yy) + 4.0 * xy * xy).sqrt());
    (variance / (0.5 * (trace - root)).max(f64::MIN_POSITIVE)).sqrt()
}

/// The map of `kind` by which the map so far is to be corrected.
pub(super) fn step(kind: ModelKind, windows: &[Measured]) -> Option<WeightedFit> {
    (windows.len() >= LEAST_WINDOWS).then(|| fit(kind, windows)).flatten()
}

/// The kind of map from `led` up to `kind` that the Bayesian information criterion chooses: each kind has two
/// parameters more than the one before, and each of these must lower the sum of squares by the logarithm of the number
/// of independent windows.
pub(super) fn evident(mut led: ModelKind, kind: ModelKind, windows: &[Measured]) -> ModelKind {
    let more: &[ModelKind] = match kind {
        ModelKind::Homography => &[ModelKind::Affine, ModelKind::Homography],
        ModelKind::Affine => &[ModelKind::Affine],
        _ => &[],
    };
    let independent = (windows.len() as f64 / OVERLAP).max(2.0);
    let passed = match led {
        ModelKind::Homography => 2,
        ModelKind::Affine => 1,
        _ => 0,
    };
    for &next in more.iter().skip(passed) {
        let [Some(now), Some(then)] = [led, next].map(|kind| step(kind, windows)) else { break };
        let costs = [now.b_from_a, then.b_from_a].map(|map| cost(&map, windows, then.variance));
        if (costs[0] - costs[1]) / OVERLAP <= 2.0 * crate::numeric::ln(independent) {
            break;
        }
        led = next;
    }
    led
}

/// A picture resampled on a grid of `size`.
pub(super) fn laid(
    intensity: &Intensity,
    ground_from_grid: &Homography,
    size: Size,
    cpu: &Cpu,
) -> Result<Intensity> {
    let [[a, b, _], [c, d, _], _] = ground_from_grid.matrix();
    let shrinks = (a * d - b * c).abs();
    let smooth = match shrinks > 1.38 {
        true => Some(gauss(intensity.grey.view(), &GaussOptions::sigma(0.5 * (shrinks - 1.0).sqrt()), cpu)?),
        false => None,
    };
    let options = WarpOptions::default().with_interpolation(Interpolation::Bilinear);
    let processor = Processor::from(cpu.clone());
    let grey = warp(
        smooth.as_ref().unwrap_or(&intensity.grey).view(),
        ground_from_grid,
        size,
        &options,
        &processor,
    )?;
    let mut counts = warp(intensity.counts.view(), ground_from_grid, size, &options, &processor)?;
    counts.data_mut().iter_mut().for_each(|v| *v = f32::from(u8::from(*v > 0.999)));
    Ok(Intensity { grey, counts })
}

/// Channels smoothed by σ pixels of the picture and divided by their length.
pub(super) fn smoothed(lanes: &Image<f32>, sigma: f64, cpu: &Cpu) -> Result<Image<f32>> {
    let mut smooth = gauss(lanes.view(), &GaussOptions::sigma(0.5 * (sigma * sigma - 0.25).sqrt()), cpu)?;
    let size = smooth.size();
    cpu.try_for_chunks(smooth.data_mut(), size.width * LANES, |y, row| {
        for (pixel, of) in row.as_chunks_mut::<LANES>().0.iter_mut().zip(pixels(lanes.row(y))) {
            let length = pixel[..BINS].iter().fold(0.0, |sum, v| sum + v * v).sqrt() + WEAK;
            pixel[..BINS].iter_mut().for_each(|v| *v /= length);
            pixel[BINS] = 0.0;
            pixel[COUNTS] = f32::from(u8::from(of[COUNTS] > 0.999));
        }
    })?;
    Ok(smooth)
}

#[inline(always)]
fn lay_row<S: Simd>(_: S, b: &Image<f32>, map: &Homography, y: usize, out: &mut [f32]) {
    let m = map.matrix();
    let y = y as f64;
    for (x, out) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let x = x as f64;
        let w = m[2][0] * x + m[2][1] * y + m[2][2];
        let [u, v] = [0, 1].map(|i| ((m[i][0] * x + m[i][1] * y + m[i][2]) / w) as f32);
        let value = between(b, [u, v]);
        *out = value;
        out[COUNTS] = f32::from(u8::from(value[COUNTS] > 0.999));
    }
}

/// Sums over a block: H (xx, xy, yy), r (x, y), e, and the number of pixels that count.
type Sums = [f64; 7];

/// The windows that count. Places in B are those on the grid of A, before the map.
pub(super) fn windows(a: &Image<f32>, b: &Image<f32>, cpu: &Cpu) -> Result<Vec<Measured>> {
    let size = a.size();
    let (columns, rows) = (size.width / BLOCK, size.height / BLOCK);
    let blocks: Vec<Vec<Sums>> = cpu.try_map(rows, |row| {
        let mut out = vec![[0.0; 7]; columns];
        dispatch!(cpu.level(), simd => block_row(simd, a, b, row * BLOCK, &mut out));
        Ok(out)
    })?;
    let reach = WINDOW.len() / 2;
    let mut found = Vec::new();
    for y in 0..rows {
        for x in 0..columns {
            let mut sums = [0.0; 7];
            for (v, wy) in (0..WINDOW.len()).map(|i| ((y + i).wrapping_sub(reach), WINDOW[i])) {
                for (u, wx) in (0..WINDOW.len()).map(|i| ((x + i).wrapping_sub(reach), WINDOW[i])) {
                    if let Some(block) = blocks.get(v).and_then(|row| row.get(u)) {
                        sums.iter_mut().zip(block).for_each(|(sum, v)| *sum += wx * wy / 256.0 * v);
                    }
                }
            }
            if blocks[y][x][6] > 0.0 && sums[6] > COUNTED * (BLOCK * BLOCK) as f64 {
                found.push(([x, y], sums));
            }
        }
    }
    let mut traces: Vec<f64> = found.iter().map(|(_, sums)| sums[0] + sums[2]).collect();
    traces.sort_by(f64::total_cmp);
    let least = 1e-3 * traces.get(traces.len() / 2).copied().unwrap_or(0.0) + 1e-9;
    Ok(found.into_iter().map(|(at, sums)| measured(at, &sums, least)).collect())
}

fn measured(at: [usize; 2], sums: &Sums, least: f64) -> Measured {
    let a = at.map(|v| (v * BLOCK) as f64 + 0.5 * (BLOCK - 1) as f64);
    let (xx, xy, yy) = (sums[0] + least, sums[1], sums[2] + least);
    let determinant = xx * yy - xy * xy;
    let d = [(yy * sums[3] - xy * sums[4]) / determinant, (xx * sums[4] - xy * sums[3]) / determinant];
    let shorter = (FARTHEST / crate::numeric::length(d).max(1e-9)).min(1.0);
    let b = [a[0] + d[0] * shorter, a[1] + d[1] * shorter];
    let misfit = sums[5] + 1e-6;
    Measured { a, b, information: [xx / misfit, xy / misfit, yy / misfit] }
}

#[inline(always)]
fn block_row<S: Simd>(_: S, a: &Image<f32>, b: &Image<f32>, top: usize, out: &mut [Sums]) {
    let size = a.size();
    for (block, out) in out.iter_mut().enumerate() {
        let mut sums = [[0.0_f32; LANES]; 6];
        let mut counted = 0;
        for y in top.max(1)..(top + BLOCK).min(size.height - 1) {
            let rows = [y - 1, y, y + 1].map(|y| (pixels(a.row(y)), pixels(b.row(y))));
            for x in (block * BLOCK).max(1)..((block + 1) * BLOCK).min(size.width - 1) {
                let (p, q) = (&rows[1].0[x], &rows[1].1[x]);
                if p[COUNTS] * q[COUNTS] == 0.0 {
                    continue;
                }
                counted += 1;
                let both = |(a, b): (&[Lane], &[Lane]), x: usize| -> Lane {
                    std::array::from_fn(|i| a[x][i] + b[x][i])
                };
                let (left, right) = (both(rows[1], x - 1), both(rows[1], x + 1));
                let (above, below) = (both(rows[0], x), both(rows[2], x));
                for i in 0..LANES {
                    let (gx, gy) = (0.25 * (right[i] - left[i]), 0.25 * (below[i] - above[i]));
                    let e = p[i] - q[i];
                    let terms = [gx * gx, gx * gy, gy * gy, gx * e, gy * e, e * e];
                    (0..6).for_each(|k| sums[k][i] += terms[k]);
                }
            }
        }
        let total = |lanes: &Lane| lanes[..BINS].iter().fold(0.0, |sum, v| sum + f64::from(*v));
        *out = std::array::from_fn(|k| if k < 6 { total(&sums[k]) } else { f64::from(counted) });
    }
}
