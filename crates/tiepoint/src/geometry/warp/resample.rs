//! An image resampled at given places, tile by tile.
//!
//! The part of the input that a tile of the output shows is copied into a patch: as f32, channel by channel,
//! with edges repeated. Sixteen neighbouring pixels of the output need at most 32 columns of a few rows of
//! the patch, as long as the map shrinks less than about twice: two vectors hold a row, and a permutation of
//! them gives one tap of all sixteen. Pixels that lie farther apart, and levels without such permutations,
//! gather their taps one by one.

use super::kernel::Weights;
use super::places::{COLUMNS, Line, Map, NOWHERE};
use super::{Interpolation, ROWS};
use crate::device::{Level, dispatch};
use crate::image::{ImageView, ImageViewMut, Pixel, Size};
use fearless_simd::{Simd, f32x16, i32x16, prelude::*, u8x64, u32x16};

const LANES: usize = 16;

/// Columns of the patch that the taps of a vector of pixels may span.
const WINDOW: usize = 2 * LANES;

/// Greatest number of values in a patch: 16 for each pixel of the tile.
const MOST: usize = 16 * COLUMNS * ROWS;

/// Rows of the output that one task resamples.
pub(super) struct Resampler<'a, T> {
    input: ImageView<'a, T>,
    weights: &'a Weights,
    fill: T,
    places: [[f64; COLUMNS]; 2],
    lines: Vec<Line>,
    patch: Patch,
    /// Results of a line, channel by channel.
    values: Vec<[f32; COLUMNS]>,
}

impl<'a, T: Pixel> Resampler<'a, T> {
    pub(super) fn new(input: ImageView<'a, T>, weights: &'a Weights, fill: T) -> Self {
        let values = vec![[0.0; COLUMNS]; input.channels()];
        let (places, lines) = ([[0.0; COLUMNS]; 2], vec![Line::NOWHERE; ROWS]);
        Self { input, weights, fill, places, lines, patch: Patch::default(), values }
    }

    /// Fills `band`, the first row of which is row `y` of the output.
    pub(super) fn run(&mut self, map: &impl Map, y: usize, band: &mut ImageViewMut<'_, T>, level: Level) {
        let (channels, size) = (self.input.channels(), self.input.size());
        let row_len = band.size().width * channels;
        for first in (0..row_len).step_by(COLUMNS * channels) {
            let last = row_len.min(first + COLUMNS * channels);
            let lines = self.lines.iter_mut().enumerate().take(band.size().height);
            for (j, line) in lines {
                let at = [first / channels, y + j];
                line.find(map, at, size, self.weights.interpolation, &mut self.places, level);
            }
            let mut out: Vec<&mut [T]> = band.rows_mut().map(|r| &mut r[first..last]).collect();
            dispatch!(level, simd => match self.weights.interpolation {
                Interpolation::Nearest => tile::<_, _, 1>(simd, self, &mut out),
                Interpolation::Bilinear => tile::<_, _, 2>(simd, self, &mut out),
                Interpolation::Bicubic => tile::<_, _, 4>(simd, self, &mut out),
                Interpolation::Lanczos3 => tile::<_, _, 6>(simd, self, &mut out),
            });
        }
    }
}

/// Fills the rows of a tile whose places are known.
#[inline(always)]
fn tile<S: Simd, T: Pixel, const TAPS: usize>(simd: S, task: &mut Resampler<'_, T>, out: &mut [&mut [T]]) {
    let lines = &task.lines[..out.len()];
    let patch = if S::f32s::LEN == LANES { task.patch.load(simd, task.input, lines, TAPS) } else { None };
    for (line, out) in lines.iter().zip(out) {
        for at in (0..COLUMNS).step_by(LANES) {
            let lanes = at..at + LANES;
            let (left, top) = (&line.left[lanes.clone()], &line.top[lanes.clone()]);
            if left.iter().all(|&l| l == NOWHERE) {
                continue;
            }
            let [wx, wy] = [&line.x, &line.y].map(|f| f32x16::from_slice(simd, &f[lanes.clone()]));
            let (wx, wy) = (task.weights.of::<S, TAPS>(simd, wx), task.weights.of::<S, TAPS>(simd, wy));
            let values = task.values.iter_mut().map(|v| &mut v[lanes.clone()]).enumerate();
            let window = match patch {
                Some(patch) => Window::<S, TAPS>::new(simd, patch, left, top),
                None => None,
            };
            match window {
                Some(window) => {
                    for (c, values) in values {
                        window.sum(simd, c, [&wx, &wy]).store_slice(values);
                    }
                }
                None => {
                    for (c, values) in values {
                        gather(simd, task.input, c, [left, top], [&wx, &wy]).store_slice(values);
                    }
                }
            }
        }
        finish(task.values.len(), line, &task.values, task.fill, out);
    }
}

/// The part of an input that a tile shows, a plane for each channel.
#[derive(Default)]
struct Patch {
    values: Vec<f32>,
    /// From row to row, and from plane to plane.
    stride: usize,
    plane: usize,
    /// The least of the tile's `left` and `top`.
    left: i32,
    top: i32,
    /// The greatest number of rows between the places of sixteen neighbours. The loops of all vectors run
    /// over this number of rows, because a varying number would be mispredicted; the patch has that many
    /// rows more than it needs, of any value.
    span: usize,
}

impl Patch {
    /// This patch with the pixels that `lines` read; `None` where they read none, or too many.
    #[inline(always)]
    fn load<S: Simd, T: Pixel>(
        &mut self,
        simd: S,
        input: ImageView<'_, T>,
        lines: &[Line],
        taps: usize,
    ) -> Option<&Self> {
        let [left, right] = extent(simd, lines.iter().map(|l| &l.left))?;
        let [top, bottom] = extent(simd, lines.iter().map(|l| &l.top))?;
        let (width, height) = ((right - left) as usize + taps, (bottom - top) as usize + taps);
        let width = width.next_multiple_of(LANES);
        let (stride, channels, span) = (width + WINDOW, input.channels(), span(lines));
        if stride.saturating_mul(height + span) > MOST {
            return None;
        }
        (self.left, self.top, self.span) = (left, top, span);
        (self.stride, self.plane) = (stride, stride * (height + span));
        if self.values.len() < self.plane * channels {
            self.values.resize(self.plane * channels, 0.0);
        }
        let before = (taps as i32 - 1) / 2;
        for (j, y) in (top - before..).enumerate().take(height) {
            let row = input.row(y.clamp(0, input.size().height as i32 - 1) as usize);
            for c in 0..channels {
                let out = &mut self.values[c * self.plane + j * stride..][..width];
                match channels {
                    1 => bring(row, 1, c, left - before, out),
                    3 => bring(row, 3, c, left - before, out),
                    n => bring(row, n, c, left - before, out),
                }
            }
        }
        Some(self)
    }
}

/// The least and the greatest of places, if there are any.
#[inline(always)]
fn extent<'a, S: Simd>(simd: S, lines: impl Iterator<Item = &'a [i32; COLUMNS]>) -> Option<[i32; 2]> {
    let none = i32x16::splat(simd, NOWHERE);
    let (mut least, mut greatest) = (i32x16::splat(simd, i32::MAX), none);
    for places in lines {
        for places in places.chunks_exact(LANES) {
            let places = i32x16::from_slice(simd, places);
            least = places.simd_eq(none).select(least, least.min(places));
            greatest = greatest.max(places);
        }
    }
    let ends = [least.reduce_min(), greatest.reduce_max()];
    (ends[1] != NOWHERE).then_some(ends)
}

/// The greatest number of rows between the ends of sixteen neighbours.
#[inline(always)]
fn span(lines: &[Line]) -> usize {
    let neighbours = lines.iter().flat_map(|l| l.top.chunks_exact(LANES));
    let ends = neighbours.map(|t| (t[0], t[LANES - 1])).filter(|&(a, b)| a.min(b) != NOWHERE);
    ends.map(|(a, b)| a.abs_diff(b) as usize).max().unwrap_or(0)
}

/// Copies one channel of a row from pixel `first` on, repeating the pixels at its ends.
#[inline(always)]
fn bring<T: Pixel>(row: &[T], channels: usize, channel: usize, first: i32, out: &mut [f32]) {
    let width = row.len() / channels;
    let before = (-first).max(0) as usize;
    let (from, n) = (first.max(0) as usize, out.len());
    let within = before + (n - before).min(width - from);
    let pixels = row[from * channels..].chunks_exact(channels);
    out[before..within].iter_mut().zip(pixels).for_each(|(o, p)| *o = p[channel].to_f32());
    out[..before].fill(row[channel].to_f32());
    out[within..].fill(row[(width - 1) * channels + channel].to_f32());
}

/// Sixteen pixels of the output whose taps lie within [`WINDOW`] columns of a patch.
struct Window<'a, S: Simd, const TAPS: usize> {
    patch: &'a Patch,
    /// The beginning of the window's first row in a plane.
    start: usize,
    /// How far below that row the pixels' first taps lie.
    below: u32x16<S>,
    /// Which bytes of a row are the first tap.
    bytes: u32x16<S>,
}

impl<'a, S: Simd, const TAPS: usize> Window<'a, S, TAPS> {
    /// `None` when the pixels lie too far apart, or one has no input.
    #[inline(always)]
    fn new(simd: S, patch: &'a Patch, left: &[i32], top: &[i32]) -> Option<Self> {
        // The places lie nearly on a line, so that the first or the last is the leftmost, and the uppermost;
        // the check below tests all of them.
        let (l, t) = ([left[0], left[LANES - 1]], [top[0], top[LANES - 1]]);
        let (from, upper) = (l[0].min(l[1]), t[0].min(t[1]));
        if from == NOWHERE {
            return None;
        }
        let right = (i32x16::from_slice(simd, left) - from).bitcast::<u32x16<S>>();
        let below = (i32x16::from_slice(simd, top) - upper).bitcast::<u32x16<S>>();
        let fits = right.simd_le((WINDOW - TAPS) as u32) & below.simd_le(patch.span as u32);
        let start = (upper - patch.top) as usize * patch.stride + (from - patch.left) as usize;
        let bytes = right * 0x0404_0404 + 0x0302_0100;
        if fits.all_true() { Some(Self { patch, start, below, bytes }) } else { None }
    }

    #[inline(always)]
    fn sum(&self, simd: S, channel: usize, [wx, wy]: [&[f32x16<S>; TAPS]; 2]) -> f32x16<S> {
        let start = channel * self.patch.plane + self.start;
        let mut all = f32x16::splat(simd, 0.0);
        // Sums along the rows that a pixel needs; they move up by one from row to row.
        let mut rows = [all; TAPS];
        for row in 0..TAPS - 1 {
            rows[row + 1] = self.along(simd, start, row, wx);
        }
        for below in 0..=self.patch.span {
            for i in 1..TAPS {
                rows[i - 1] = rows[i];
            }
            rows[TAPS - 1] = self.along(simd, start, below + TAPS - 1, wx);
            let mut sum = wy[0] * rows[0];
            for i in 1..TAPS {
                sum = wy[i].mul_add_precise(rows[i], sum);
            }
            all = self.below.simd_eq(below as u32).select(sum, all);
        }
        all
    }

    #[inline(always)]
    fn along(&self, simd: S, start: usize, row: usize, wx: &[f32x16<S>; TAPS]) -> f32x16<S> {
        let values = &self.patch.values[start + row * self.patch.stride..][..WINDOW];
        let [a, b] = [0, LANES].map(|i| f32x16::from_slice(simd, &values[i..i + LANES]));
        let mut sum = wx[0] * a.concat_swizzle_dyn(b, self.bytes.bitcast::<u8x64<S>>());
        for (i, &w) in wx.iter().enumerate().skip(1) {
            let bytes = self.bytes + i as u32 * 0x0404_0404;
            sum = w.mul_add_precise(a.concat_swizzle_dyn(b, bytes.bitcast::<u8x64<S>>()), sum);
        }
        sum
    }
}

/// The interpolated values of one channel, fetched pixel by pixel; arbitrary for pixels without input.
#[inline(always)]
fn gather<S: Simd, T: Pixel, const TAPS: usize>(
    simd: S,
    input: ImageView<'_, T>,
    channel: usize,
    [left, top]: [&[i32]; 2],
    [wx, wy]: [&[f32x16<S>; TAPS]; 2],
) -> f32x16<S> {
    let Size { width, height } = input.size();
    let before = (TAPS as i32 - 1) / 2;
    let clamped =
        |at: i32, i: usize, n: usize| (at.max(-1) - before + i as i32).clamp(0, n as i32 - 1) as usize;
    let mut taps = [[[0.0; LANES]; TAPS]; TAPS];
    for (lane, (&left, &top)) in left.iter().zip(top).enumerate() {
        let columns: [usize; TAPS] =
            std::array::from_fn(|i| clamped(left, i, width) * input.channels() + channel);
        for (j, taps) in taps.iter_mut().enumerate() {
            let row = input.row(clamped(top, j, height));
            taps.iter_mut().zip(columns).for_each(|(tap, x)| tap[lane] = row[x].to_f32());
        }
    }
    let mut sum = f32x16::splat(simd, -0.0);
    for (taps, &wy) in taps.iter().zip(wy) {
        let mut along = f32x16::splat(simd, -0.0);
        for (tap, &wx) in taps.iter().zip(wx) {
            along = wx.mul_add_precise(f32x16::load_array_ref(simd, tap), along);
        }
        sum = wy.mul_add_precise(along, sum);
    }
    sum
}

/// Rounds a line's values and puts them into the output.
#[inline(always)]
fn finish<T: Pixel>(channels: usize, line: &Line, values: &[[f32; COLUMNS]], fill: T, out: &mut [T]) {
    if let [values] = values {
        for ((out, &left), &v) in out.iter_mut().zip(&line.left).zip(values) {
            *out = if left == NOWHERE { fill } else { T::from_f32(v) };
        }
        return;
    }
    for (x, out) in out.chunks_exact_mut(channels).enumerate() {
        for (out, values) in out.iter_mut().zip(values) {
            *out = if line.left[x] == NOWHERE { fill } else { T::from_f32(values[x]) };
        }
    }
}
