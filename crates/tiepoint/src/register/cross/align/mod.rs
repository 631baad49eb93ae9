//! Alignment of two pictures to a fraction of a pixel.
//!
//! Both pictures are resampled on the grid of the coarser one. Their channels at half the size are smoothed by σ and
//! divided by their length plus 0.3. In every block of 6 × 6 pixels (12 of the picture along each axis), with B warped
//! by the map D found so far,
//!
//! ```text
//! g = ½ ∇(a + b),   H = Σ g gᵀ,   r = Σ g (a − b),   e = Σ (a − b)²        over pixels and six bins
//! ```
//!
//! are summed. A window is 5 × 5 blocks with binomial weights. Its displacement is H⁻¹ r with the information H / e,
//! and the map fitted to all windows is the next D (Lucas and Kanade 1981, with the symmetric gradient of Benhimane and
//! Malis 2004). This is repeated for σ = 4, 3 and 2 pixels, for each σ until the map converges or a number of fits is
//! reached. Neighbouring windows share most of their pixels, so for larger pictures a map is fitted to the windows at
//! every other block along each axis. At the end the windows at every block give the corresponding places.
//!
//! A GPU smooths the channels, lays B on A and sums the blocks (`gpu`); the CPU computes windows and maps of these.

pub(crate) mod gpu;

use super::full_size::spread;
use super::judge::{self, Agreement, Cell};
use super::search::Hypothesis;
use crate::Result;
use crate::device::{Cpu, Processor, dispatch};
use crate::feature::structure::lanes::{BINS, COUNTS, LANES, Lane, Lanes, between, pixels};
use crate::feature::structure::{Intensity, Own, StructureFinder};
use crate::filter::gauss::{GaussOptions, gauss};
use crate::geometry::weighted::{Measured, WeightedFit, beyond_similarity, cost, fit};
use crate::geometry::{Homography, ModelKind};
use crate::image::{Image, Size};
use crate::numeric::{length, median};
use fearless_simd::Simd;
use std::slice;

/// Side of a block, in pixels at half the size.
const BLOCK: usize = 6;
/// Sums over a block: H (xx, xy, yy), r (x, y), e, and the number of pixels that count.
const SUMS: usize = 7;
type Sums = [f64; SUMS];
/// An interpolated pixel counts if the interpolated share of counting pixels is above this.
const WHOLE: f32 = 0.999;
/// Weights of the blocks of a window along an axis.
const WINDOW: [f64; 5] = [1.0, 4.0, 6.0, 4.0, 1.0];
/// Bins are divided by their norm plus this, so that weak structure, which is mostly noise, stays weak.
const WEAK: f32 = 0.3;
/// The share of a window, by weight, that must count.
const COUNTED: f64 = 0.4;
/// The farthest that a window moves in one pass, in pixels at half the size.
const FARTHEST: f64 = 3.0;
/// The fewest windows to which a map is fitted.
const LEAST_WINDOWS: usize = 8;
/// On a grid with at least this many blocks, a map is fitted to the windows at every other block.
const MANY: usize = 400;
/// A map has converged if a fit moves no corner of the grid by more than this, in pixels.
const STILL: f64 = 0.01;

/// The passes of an alignment.
#[derive(Debug)]
pub(super) struct Passes {
    /// σ in pixels of the picture, and the most fits at that σ.
    pub(super) at: [(f64, usize); 3],
    /// In this many passes at the end, a more general map than a similarity may be fitted.
    pub(super) evident: usize,
    /// Whether cells are judged (`judge`): at the end, and after the first σ to give up what can hardly be one scene.
    pub(super) judged: bool,
}

/// The passes for pictures whose map is known to about five pixels.
const PASSES: Passes = Passes { at: [(4.0, 2), (3.0, 3), (2.0, 6)], evident: 4, judged: true };
/// How many windows, one at every block, tell as much as one without overlap: (Σ w)² / Σ w² along both axes.
const OVERLAP: f64 = 13.4;

/// Part of both pictures on one grid.
#[derive(Debug)]
pub(super) struct Patch {
    /// The position of its first pixel on the grid.
    pub(super) at: [f64; 2],
    /// Channels at half the size.
    pub(super) lanes: [Lanes; 2],
}

/// Both pictures on one grid.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) whole: Patch,
    /// The maps from pixels of A and of B to those of the grid.
    pub(super) from: [Homography; 2],
    /// The map from points of A on the grid to points of B on the grid with which the alignment starts.
    start: Homography,
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
    /// The map between pixels of the pictures at the sizes at which they are searched.
    pub(super) b_from_a: Homography,
    pub(super) places: Vec<Place>,
    pub(super) agreement: Agreement,
}

impl Frame {
    /// The frame of two pictures.
    pub(super) fn of(
        pictures: [(&Intensity, &Own); 2],
        hypothesis: &Hypothesis,
        finder: &StructureFinder<'_>,
    ) -> Result<Self> {
        let _stage = finder.processor.cpu.stage("frame");
        let b_from_a = hypothesis.homography()?;
        let inverse = b_from_a.inverse().unwrap_or_default();
        let scale = hypothesis.scale();
        let one = Homography::default();
        // The finer picture is resampled on the grid of the coarser one.
        let (from, size) = match scale >= 1.0 {
            true => ([one, inverse], pictures[0].0.size()),
            false => ([b_from_a, one], pictures[1].0.size()),
        };
        let moved = usize::from(scale >= 1.0);
        let back = if moved == 1 { b_from_a } else { inverse };
        let mut lanes = pictures.map(|(_, own)| own.lanes.clone());
        lanes[moved] = finder.resampled(pictures[moved], &back, size)?;
        let grown = hypothesis.grown.zip(from[0].inverse());
        let start = grown.map_or(one, |(map, back)| from[1].compose(&map.compose(&back)));
        Ok(Self { whole: Patch { at: [0.0; 2], lanes }, from, start })
    }

    /// The alignment by the best map that is no more general than `kind`; `None` where the pictures determine no map.
    pub(super) fn align(&self, kind: ModelKind, processor: &Processor) -> Result<Option<Aligned>> {
        let _stage = processor.cpu.stage("align");
        let Size { width, height } = self.whole.lanes[0].size();
        let size = Size::new(2 * width, 2 * height);
        let Some(settled) =
            settled(slice::from_ref(&self.whole), size, self.start, &PASSES, kind, processor)?
        else {
            return Ok(None);
        };
        let [Some(a_from), Some(b_from)] = self.from.each_ref().map(Homography::inverse) else {
            return Ok(None);
        };
        let b_from_a = b_from.compose(&settled.map.compose(&self.from[0]));
        let places = settled.places([&a_from, &b_from], spread(&b_from, size));
        Ok(settled.agreement.map(|agreement| Aligned { b_from_a, places, agreement }))
    }
}

#[derive(Debug)]
pub(super) struct Settled {
    /// The map from A to B on their common grid.
    pub(super) map: Homography,
    windows: Vec<Measured>,
    variance: f64,
    agreement: Option<Agreement>,
}

impl Settled {
    /// Corresponding places, in pixels of A and of B, by `from_grid`. A pixel of the grid is `pixel` pixels of B wide.
    pub(super) fn places(&self, from_grid: [&Homography; 2], pixel: f64) -> Vec<Place> {
        let place = |window: &Measured| {
            let (a, b) = (from_grid[0].apply(window.a)?, from_grid[1].apply(self.map.apply(window.b)?)?);
            Some(Place { a, b, deviation: pixel * deviation(window.information, self.variance) })
        };
        self.windows.iter().filter_map(place).collect()
    }
}

/// The patches on a processor that sums their blocks.
trait Blocks {
    /// Smooths the channels by σ pixels of the picture and divides them by their length; later sums use these.
    fn smooth(&mut self, sigma: f64) -> Result<()>;

    /// The sums over the blocks of all patches, row by row, with B of each patch warped onto A by a map in its pixels.
    fn sums(&mut self, maps: &[Homography]) -> Result<Vec<Sums>>;

    /// The cells of the first patch by every `n`th of the displacements ([`judge::cells`]), with B as warped last.
    fn cells(&self, n: usize) -> Result<Vec<Cell>>;
}

/// How many blocks channels of this size have along each axis.
fn blocks_of(size: Size) -> Size {
    Size::new(size.width / BLOCK, size.height / BLOCK)
}

fn blur(sigma: f64) -> GaussOptions {
    GaussOptions::sigma(0.5 * (sigma * sigma - 0.25).sqrt())
}

struct OnCpu<'a> {
    patches: &'a [Patch],
    smooth: Vec<[Image<f32>; 2]>,
    laid: Vec<Image<f32>>,
    cpu: &'a Cpu,
}

impl Blocks for OnCpu<'_> {
    fn smooth(&mut self, sigma: f64) -> Result<()> {
        let Self { patches, cpu, .. } = *self;
        let smooth = cpu.try_map(2 * patches.len(), |i| {
            smoothed(&*patches[i / 2].lanes[i % 2].on_host(cpu)?, sigma, cpu)
        })?;
        let mut images = smooth.into_iter();
        self.smooth = std::iter::from_fn(|| Some([images.next()?, images.next()?])).collect();
        Ok(())
    }

    fn sums(&mut self, maps: &[Homography]) -> Result<Vec<Sums>> {
        let Self { smooth, cpu, .. } = self;
        let found = cpu.try_map(maps.len(), |i| {
            let [a, b] = &smooth[i];
            let laid = laid_lanes(b, &maps[i], a.size(), cpu)?;
            let blocks = blocks_of(a.size());
            let mut sums = vec![[0.0; SUMS]; blocks.area()];
            cpu.try_for_chunks(&mut sums, blocks.width.max(1), |row, out| {
                dispatch!(cpu.level(), simd => block_row(simd, a, &laid, row * BLOCK, out));
            })?;
            Ok((sums, laid))
        })?;
        let (sums, laid): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        self.laid = laid;
        Ok(sums.concat())
    }

    fn cells(&self, n: usize) -> Result<Vec<Cell>> {
        let first = self.smooth.iter().zip(&self.laid).next();
        first.map_or(Ok(vec![]), |([a, _], b)| judge::cells([a, b], n, self.cpu))
    }
}

/// The map near `start`, no more general than `kind`, by which patches of a grid of `size` agree best, if there is one.
pub(super) fn settled(
    patches: &[Patch],
    size: Size,
    start: Homography,
    passes: &Passes,
    kind: ModelKind,
    processor: &Processor,
) -> Result<Option<Settled>> {
    processor.gpu_or_cpu(
        "alignment",
        |gpu| {
            let blocks = gpu::OnGpu::new(gpu, patches, &processor.cpu)?;
            settled_by(blocks, patches, size, start, passes, kind, &processor.cpu)
        },
        |cpu| {
            let blocks = OnCpu { patches, smooth: vec![], laid: vec![], cpu };
            settled_by(blocks, patches, size, start, passes, kind, cpu)
        },
    )
}

/// As [`settled`], by one way to sum blocks.
fn settled_by(
    mut blocks: impl Blocks,
    patches: &[Patch],
    size: Size,
    start: Homography,
    passes: &Passes,
    kind: ModelKind,
    cpu: &Cpu,
) -> Result<Option<Settled>> {
    let stride = if size.area() < MANY * (2 * BLOCK) * (2 * BLOCK) { 1 } else { 2 };
    let overlap = OVERLAP / (stride * stride) as f64;
    let mut map = start;
    let mut led = ModelKind::Similarity;
    for (i, &(sigma, most)) in passes.at.iter().enumerate() {
        blocks.smooth(sigma)?;
        let is_last = i + 1 == passes.at.len();
        let mut pass = 0;
        while pass < most {
            let windows = laid_windows(&mut blocks, patches, &map, stride, cpu)?;
            if passes.judged && i == 1 && pass == 0 && !judge::is_likely(cells(&blocks, cpu))? {
                return Ok(None);
            }
            let is_evident = is_last && pass + passes.evident >= most;
            let step =
                if is_evident { evident(&mut led, kind, &windows, overlap) } else { fitted(led, &windows) };
            let Some(WeightedFit { b_from_a: step, .. }) = step else { return Ok(None) };
            map = map.compose(&step);
            let ([[a, b, _], [c, d, _], _], scale) = (map.matrix(), spread(&map, size));
            if a * d - b * c <= 0.0 || !(0.6..1.6).contains(&(scale * scale)) {
                return Ok(None);
            }
            pass = match step.moves(size) <= STILL {
                true if is_last && !is_evident => most - passes.evident,
                true => most,
                false => pass + 1,
            };
        }
        if is_last {
            let windows = laid_windows(&mut blocks, patches, &map, 1, cpu)?;
            let Some(WeightedFit { variance, .. }) = fitted(led, &windows) else { return Ok(None) };
            let columns = judge::cells_of(patches[0].lanes[0].size()).width;
            let agreement = || judge::agreement(columns, cells(&blocks, cpu));
            let agreement = passes.judged.then(agreement).transpose()?;
            return Ok(Some(Settled { map, windows, variance, agreement }));
        }
    }
    Ok(None)
}

/// The comparison of cells as a stage.
fn cells(blocks: &impl Blocks, cpu: &Cpu) -> impl Fn(usize) -> Result<Vec<Cell>> {
    |n| {
        let _stage = cpu.stage("judge");
        blocks.cells(n)
    }
}

/// The windows of all patches at every `stride`th block, in pixels of the grid, with B warped onto A by this map.
fn laid_windows(
    blocks: &mut impl Blocks,
    patches: &[Patch],
    map: &Homography,
    stride: usize,
    cpu: &Cpu,
) -> Result<Vec<Measured>> {
    let half = |i: usize| patches[i].at.map(|v| v + 0.5);
    let own = |i: usize| {
        let [x, y] = half(i);
        let from_half = Homography::new([[2.0, 0.0, x], [0.0, 2.0, y], [0.0, 0.0, 1.0]])?;
        let to_half = Homography::new([[0.5, 0.0, -0.5 * x], [0.0, 0.5, -0.5 * y], [0.0, 0.0, 1.0]])?;
        Ok(to_half.compose(&map.compose(&from_half)))
    };
    let maps = (0..patches.len()).map(own).collect::<Result<Vec<_>>>()?;
    let sums = blocks.sums(&maps)?;
    let found = cpu.try_map(patches.len(), |i| {
        let blocks = blocks_of(patches[i].lanes[0].size());
        let full = |p: [f64; 2]| [0, 1].map(|c| 2.0 * p[c] + half(i)[c]);
        let windows = windows(&sums[i * blocks.area()..][..blocks.area()], blocks, stride);
        let windows = windows.into_iter().map(|window| Measured {
            a: full(window.a),
            b: full(window.b),
            information: window.information.map(|v| 0.25 * v),
        });
        Ok(windows.collect::<Vec<_>>())
    })?;
    Ok(found.concat())
}

/// Channels warped by `map` onto a picture of `size`. `COUNTS` is 1 where all four interpolated pixels count, else 0.
fn laid_lanes(lanes: &Image<f32>, map: &Homography, size: Size, cpu: &Cpu) -> Result<Image<f32>> {
    let mut out = Image::try_filled(size, LANES, 0.0)?;
    cpu.try_for_chunks(out.data_mut(), size.width * LANES, |y, out| {
        dispatch!(cpu.level(), simd => lay_row(simd, lanes, map, y, out));
    })?;
    Ok(out)
}

/// The larger standard deviation of a place: the root of the larger eigenvalue of the inverse of its information.
fn deviation([xx, xy, yy]: [f64; 3], variance: f64) -> f64 {
    let (trace, root) = (xx + yy, ((xx - yy) * (xx - yy) + 4.0 * xy * xy).sqrt());
    (variance / (0.5 * (trace - root)).max(f64::MIN_POSITIVE)).sqrt()
}

/// The map of `kind` that corrects the map so far, fitted to the windows; `None` if there are too few.
fn fitted(kind: ModelKind, windows: &[Measured]) -> Option<WeightedFit> {
    (windows.len() >= LEAST_WINDOWS).then(|| fit(kind, windows)).flatten()
}

/// As [`fitted`], for the kind of map from `current` up to `kind` that the Bayesian information criterion chooses;
/// `current` is set to that kind. Each kind has two parameters more than the previous one, and each parameter must
/// lower the sum of squares by the logarithm of the number of independent windows; `overlap` windows count as one. A
/// homography may be chosen where an affine map fits no better than a similarity: for a picture seen from one side.
fn evident(
    current: &mut ModelKind,
    kind: ModelKind,
    windows: &[Measured],
    overlap: f64,
) -> Option<WeightedFit> {
    let more = beyond_similarity(kind);
    let independent = (windows.len() as f64 / overlap).max(2.0);
    let passed = match current {
        ModelKind::Homography => 2,
        ModelKind::Affine => 1,
        _ => 0,
    };
    let (mut now, mut parameters) = (fitted(*current, windows)?, 0.0);
    for &next in more.iter().skip(passed) {
        parameters += 2.0;
        let Some(then) = fitted(next, windows) else { continue };
        let costs = [&now, &then].map(|of| cost(&of.b_from_a, windows, then.variance));
        if (costs[0] - costs[1]) / overlap > parameters * crate::numeric::ln(independent) {
            (*current, now, parameters) = (next, then, 0.0);
        }
    }
    Some(now)
}

/// Channels smoothed by σ pixels of the picture and divided by their length.
fn smoothed(lanes: &Image<f32>, sigma: f64, cpu: &Cpu) -> Result<Image<f32>> {
    let mut smooth = gauss(lanes.view(), &blur(sigma), cpu)?;
    let size = smooth.size();
    cpu.try_for_chunks(smooth.data_mut(), size.width * LANES, |y, row| {
        for (pixel, of) in row.as_chunks_mut::<LANES>().0.iter_mut().zip(pixels(lanes.row(y))) {
            let length = pixel[..BINS].iter().fold(0.0, |sum, v| sum + v * v).sqrt() + WEAK;
            pixel[..BINS].iter_mut().for_each(|v| *v /= length);
            pixel[BINS] = 0.0;
            pixel[COUNTS] = f32::from(u8::from(of[COUNTS] > WHOLE));
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
        out[COUNTS] = f32::from(u8::from(value[COUNTS] > WHOLE));
    }
}

/// The windows that count, at every `stride`th block. Points of B are on the grid of A, before the map is applied.
fn windows(sums: &[Sums], blocks: Size, stride: usize) -> Vec<Measured> {
    let (columns, rows) = (blocks.width, blocks.height);
    let reach = WINDOW.len() / 2;
    // Along rows first: the weighted sums, and whether any pixel counts in the middle block.
    let across = |row: usize| -> Vec<(Sums, bool)> {
        let blocks = &sums[row * columns..][..columns];
        let around = |x: usize| {
            let sums = weighted((0..WINDOW.len()).map(|i| blocks.get((x + i).wrapping_sub(reach))));
            (sums, blocks[x][6] > 0.0)
        };
        (0..columns).step_by(stride).map(around).collect()
    };
    let across: Vec<_> = (0..rows).map(across).collect();
    let mut found = Vec::new();
    for y in (0..rows).step_by(stride) {
        for (x, (_, counts)) in across[y].iter().enumerate() {
            let row = |i: usize| across.get((y + i).wrapping_sub(reach)).map(|row| &row[x].0);
            let sums = weighted((0..WINDOW.len()).map(row));
            if *counts && sums[6] > COUNTED * (BLOCK * BLOCK) as f64 {
                found.push(([x * stride, y], sums));
            }
        }
    }
    let least = 1e-3 * median(found.iter().map(|(_, sums)| sums[0] + sums[2])).unwrap_or(0.0) + 1e-9;
    found.into_iter().map(|(at, sums)| measured(at, &sums, least)).collect()
}

/// The sum of blocks along an axis with the weights of a window; missing blocks count as 0.
fn weighted<'a>(blocks: impl Iterator<Item = Option<&'a Sums>>) -> Sums {
    let mut sums = [0.0; SUMS];
    for (block, weight) in blocks.zip(WINDOW) {
        let Some(block) = block else { continue };
        sums.iter_mut().zip(block).for_each(|(sum, v)| *sum += weight / 16.0 * v);
    }
    sums
}

fn measured(at: [usize; 2], sums: &Sums, least: f64) -> Measured {
    let a = at.map(|v| (v * BLOCK) as f64 + 0.5 * (BLOCK - 1) as f64);
    let (xx, xy, yy) = (sums[0] + least, sums[1], sums[2] + least);
    let determinant = xx * yy - xy * xy;
    let d = [(yy * sums[3] - xy * sums[4]) / determinant, (xx * sums[4] - xy * sums[3]) / determinant];
    let shorter = (FARTHEST / length(d).max(1e-9)).min(1.0);
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
