//! The Gaussian scale space, streamed in bands of rows (Lowe §3).
//!
//! With S levels an octave has S + 3 Gaussian images. Level k has σ(k) = σ₀·2^(k/S); it is made from level k
//! − 1 by a Gaussian of σ = √(σ(k)² − σ(k−1)²), cut at a radius of about 4σ, vertically first, then
//! horizontally. Level S, every second pixel and row, is level 0 of the next octave. The first level 0 is the
//! doubled image (or the image itself) blurred from the σ it has to σ₀.
//!
//! A row of a level depends only on rows of the level before, not on the band that it was computed in.

pub(crate) mod gpu;

use crate::Result;
use crate::device::{Cpu, dispatch};
use crate::feature::sift::refine::REACH;
use crate::feature::sift::{SiftOptions, SiftPreset};
use crate::filter::gauss::rows::{ROWS, horizontal, vertical, vertical_rows};
use crate::image::{Border, ImageView, Pixel, Size};
use crate::numeric::exp_f64;
use fearless_simd::Simd;
use fearless_simd_macros::simd;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut, Range};

/// Rows of the first octave in a band. Any number gives the same result: with fewer rows, threads wait for each other;
/// with more, memory grows (`docs/notebook/features.md`).
const BAND: usize = 64;

const ROWS_PER_TASK: usize = 8;

/// Columns blurred vertically at a time, so that the rows under the window stay in the first-level cache.
const STRIP: usize = 256;

/// A row of a level, aligned to cache lines.
#[derive(Debug)]
struct Row {
    values: Vec<f32>,
    start: usize,
    width: usize,
}

impl Row {
    fn new(width: usize) -> Self {
        /// Values in a cache line. Another line is added so that rows whose length is a power of two do not
        /// compete for the same cache set.
        const LINE: usize = 16;
        let values = vec![0.0; width + 2 * LINE];
        let start = values.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        Self { values, start, width }
    }
}

impl Deref for Row {
    type Target = [f32];

    #[inline(always)]
    fn deref(&self) -> &[f32] {
        &self.values[self.start..self.start + self.width]
    }
}

impl DerefMut for Row {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.values[self.start..self.start + self.width]
    }
}

/// One image of the pyramid, of which the rows `first..end()` are in memory.
#[derive(Debug, Default)]
pub(super) struct Level {
    first: usize,
    rows: VecDeque<Row>,
    spare: Vec<Row>,
}

impl Level {
    /// One past the last row computed.
    fn end(&self) -> usize {
        self.first + self.rows.len()
    }

    /// Row `y`, which must be in memory.
    #[inline(always)]
    pub(super) fn row(&self, y: usize) -> &[f32] {
        &self.rows[y - self.first]
    }

    /// `n` rows of `width`, to be filled and then appended to those in memory.
    fn take(&mut self, n: usize, width: usize) -> Vec<Row> {
        (0..n).map(|_| self.spare.pop().unwrap_or_else(|| Row::new(width))).collect()
    }

    fn forget_before(&mut self, y: usize) {
        while self.first < y
            && let Some(row) = self.rows.pop_front()
        {
            self.spare.push(row);
            self.first += 1;
        }
    }

    fn clear(&mut self) {
        self.forget_before(usize::MAX);
        self.first = 0;
    }
}

/// The rows of an octave that later stages can process. Extrema are searched and refined at once, while their rows are
/// in the cache, and described when all rows around them are in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ready {
    /// Rows in which extrema can now be searched; every row occurs once.
    pub(super) search: Range<usize>,
    /// Points above this row can be described.
    pub(super) describe: usize,
}

/// σ in pixels of the input image for one pixel of the octave of this number.
pub(super) fn pixel(number: i8) -> f32 {
    if number < 0 { 0.5 } else { (1_u32 << number) as f32 }
}

/// One octave: the rows in memory of its S + 3 Gaussian levels.
#[derive(Debug)]
pub(super) struct Octave {
    /// Number of the octave; −1 is the doubled image.
    pub(super) number: i8,
    pub(super) size: Size,
    /// Gaussian levels, finest first.
    pub(super) levels: Vec<Level>,
    /// First row not yet searched for extrema.
    searched: usize,
    /// First row whose points are not yet described.
    described: usize,
    /// Rows above and below a point that its description may read.
    reach: usize,
    /// Levels in which points are described.
    described_in: Range<usize>,
    /// Rows of level 0 that are collected before they are processed.
    band: usize,
}

impl Octave {
    /// DoG of layer `i` at (x, y): level i + 1 less level i.
    #[inline(always)]
    pub(super) fn dog(&self, i: usize, x: usize, y: usize) -> f32 {
        self.levels[i + 1].row(y)[x] - self.levels[i].row(y)[x]
    }

    /// Computes every row of levels 1.. that level 0 allows; returns the rows that later stages can now
    /// process.
    fn advance(&mut self, taps: &[Vec<f32>], border: Border, cpu: &Cpu) -> Ready {
        let height = self.size.height;
        for k in 1..self.levels.len() {
            let (below, above) = self.levels.split_at_mut(k);
            blur(&below[k - 1], &mut above[0], self.size, &taps[k - 1], border, cpu);
        }
        let last = self.levels.last().map_or(0, Level::end);
        let end = |margin: usize| if last == height { height } else { last.saturating_sub(margin) };
        let search = self.searched..end(REACH).max(self.searched);
        self.searched = search.end;
        self.described = end(self.reach);
        Ready { search, describe: self.described }
    }

    /// Releases the rows that no search, description or blur will read again.
    fn forget(&mut self, taps: &[Vec<f32>]) {
        let searched = self.searched.saturating_sub(REACH);
        let described = self.described.min(searched).saturating_sub(self.reach);
        // Nothing is blurred from the last level.
        let blurred =
            self.levels[1..].iter().zip(taps).map(|(next, taps)| next.end().saturating_sub(taps.len() - 1));
        let blurred: Vec<usize> = blurred.chain([usize::MAX]).collect();
        for (k, (level, blurred)) in self.levels.iter_mut().zip(blurred).enumerate() {
            let read = if self.described_in.contains(&k) { described } else { searched };
            level.forget_before(read.min(blurred));
        }
    }

    /// Copies every second pixel and row from the new rows of the level that this octave is made from.
    fn receive(&mut self, source: &Level) {
        let end = source.end().div_ceil(2).min(self.size.height);
        let first = self.levels[0].end();
        let mut rows = self.levels[0].take(end.saturating_sub(first), self.size.width);
        for (i, row) in rows.iter_mut().enumerate() {
            let every = source.row(2 * (first + i)).iter().step_by(2);
            row.iter_mut().zip(every).for_each(|(out, v)| *out = *v);
        }
        self.levels[0].rows.extend(rows);
    }

    /// Whether level 0 has enough new rows to be processed, or is complete.
    fn is_due(&self) -> bool {
        let end = self.levels[0].end();
        end == self.size.height || end >= self.levels[1].end() + self.band
    }
}

/// The sizes of the octaves, finest first: always the first one, and further ones while there is room for an
/// extremum.
pub(super) fn octave_sizes(input: Size, options: &SiftOptions) -> Vec<Size> {
    let Size { width, height } = input;
    let first = if options.first_octave < 0 { Size::new(width * 2, height * 2) } else { input };
    let most = usize::from(options.octaves.unwrap_or(u8::MAX));
    let half = |size: &Size| Some(Size::new(size.width / 2, size.height / 2));
    let room = |size: &Size| size.width.min(size.height) > 2 * options.border();
    let further = std::iter::successors(half(&first), half).take_while(room);
    std::iter::once(first).chain(further).take(most).collect()
}

/// How pixels beyond the edge of a level are read.
pub(super) fn border(options: &SiftOptions) -> Border {
    if options.preset == SiftPreset::VlFeat { Border::Clamp } else { Border::Reflect }
}

/// The taps from the image, doubled if asked for, to level 0 of the first octave, then those from level k to
/// k + 1.
pub(super) fn taps(options: &SiftOptions) -> Vec<Vec<f32>> {
    let levels = usize::from(options.levels);
    let sigma =
        |k: usize| f64::from(options.sigma) * exp_f64(std::f64::consts::LN_2 * k as f64 / levels as f64);
    let has = f64::from(options.input_sigma) * if options.first_octave < 0 { 2.0 } else { 1.0 };
    let apart = |from: f64, to: f64| gaussian_taps((to * to - from * from).max(0.01).sqrt());
    let steps = (0..levels + 2).map(|k| apart(sigma(k), sigma(k + 1)));
    std::iter::once(apart(has, f64::from(options.sigma))).chain(steps).collect()
}

#[derive(Debug)]
pub(super) struct Pyramid {
    pub(super) input: Size,
    preset: SiftPreset,
    border: Border,
    /// The image, doubled if asked for, from which level 0 of the first octave is blurred.
    source: Level,
    /// As [`taps`] gives them.
    taps: Vec<Vec<f32>>,
    octaves: Vec<Octave>,
}

impl Pyramid {
    pub(super) fn new(input: Size, options: &SiftOptions) -> Self {
        let levels = usize::from(options.levels);
        let sizes = octave_sizes(input, options).into_iter().enumerate();
        let octaves = sizes.map(|(index, size)| Octave {
            number: options.first_octave + index as i8,
            size,
            levels: (0..levels + 3).map(|_| Level::default()).collect(),
            searched: 0,
            described: 0,
            reach: crate::feature::sift::describe::reach(options),
            // The layers that are searched.
            described_in: 1..levels + 1,
            band: (BAND << index.min(3)).min(size.height),
        });
        Self {
            input,
            preset: options.preset,
            border: border(options),
            source: Level::default(),
            taps: taps(options),
            octaves: octaves.collect(),
        }
    }

    /// Keeps the rows that points in any level of an octave need, whose description reads `reach` rows above and below.
    pub(super) fn keep_for(&mut self, octave: i8, reach: usize) {
        for octave in self.octaves.iter_mut().filter(|o| o.number == octave) {
            octave.reach = octave.reach.max(reach.min(octave.size.height));
            octave.described_in = 0..octave.levels.len();
        }
    }

    /// Rows of the first octave: the steps of [`run`](Self::run).
    pub(super) fn rows(&self) -> usize {
        self.octaves[0].size.height
    }

    /// Numbers and sizes of the octaves, finest first.
    pub(super) fn octaves(&self) -> impl Iterator<Item = (i8, Size)> {
        self.octaves.iter().map(|octave| (octave.number, octave.size))
    }

    /// Streams `image` through all octaves, and calls `search` whenever an octave has new rows.
    pub(super) fn run<T: Pixel>(
        &mut self,
        image: ImageView<'_, T>,
        cpu: &Cpu,
        mut search: impl FnMut(&Octave, &Ready) -> Result<()>,
    ) -> Result<()> {
        self.source.clear();
        for octave in &mut self.octaves {
            octave.levels.iter_mut().for_each(Level::clear);
            octave.searched = 0;
            octave.described = 0;
        }
        let size = self.octaves[0].size;
        while self.source.end() < size.height {
            let first = self.source.end();
            let stage = cpu.stage("scale space");
            self.read(image, size, cpu);
            blur(&self.source, &mut self.octaves[0].levels[0], size, &self.taps[0], self.border, cpu);
            let read_again = self.octaves[0].levels[0].end().saturating_sub(self.taps[0].len() - 1);
            self.source.forget_before(read_again);
            drop(stage);
            self.advance(cpu, &mut search)?;
            cpu.advance(self.source.end() - first);
            cpu.check()?;
        }
        Ok(())
    }

    /// Processes every octave in which enough rows wait, finest first.
    fn advance(&mut self, cpu: &Cpu, search: &mut impl FnMut(&Octave, &Ready) -> Result<()>) -> Result<()> {
        let (taps, mut rest) = (&self.taps[1..], &mut self.octaves[..]);
        while let [octave, coarser @ ..] = rest
            && octave.is_due()
        {
            let stage = cpu.stage("scale space");
            let ready = octave.advance(taps, self.border, cpu);
            if let Some(next) = coarser.first_mut() {
                next.receive(&octave.levels[taps.len() - 2]);
            }
            drop(stage);
            search(octave, &ready)?;
            octave.forget(taps);
            rest = coarser;
        }
        Ok(())
    }

    /// Reads the next band of the image, doubled if asked for, on the scale 0 to 1.
    fn read<T: Pixel>(&mut self, image: ImageView<'_, T>, size: Size, cpu: &Cpu) {
        let first = self.source.end();
        let n = BAND.min(size.height - first);
        let mut rows = self.source.take(n, size.width);
        let doubled = size != self.input;
        let preset = self.preset;
        cpu.for_chunks(&mut rows, ROWS_PER_TASK, |chunk, rows| {
            dispatch!(cpu.level(), simd => read_rows(simd, image, first + chunk * ROWS_PER_TASK, doubled, preset, rows));
        });
        self.source.rows.extend(rows);
    }
}

/// All levels of all octaves of the streamed form as whole images, for tests of later stages.
#[cfg(test)]
pub(super) fn whole<T: Pixel>(
    image: ImageView<'_, T>,
    options: &SiftOptions,
    cpu: &Cpu,
) -> Vec<Vec<crate::image::Image<f32>>> {
    use crate::image::Image;
    let mut pyramid = Pyramid::new(image.size(), options);
    let empty = |octave: &Octave| octave.levels.iter().map(|_| Image::new(octave.size)).collect();
    let mut octaves: Vec<Vec<Image<f32>>> = pyramid.octaves.iter().map(empty).collect();
    let run = pyramid.run(image, cpu, |octave, _| {
        let levels = &mut octaves[usize::from(octave.number.abs_diff(options.first_octave))];
        for (level, whole) in octave.levels.iter().zip(levels) {
            (level.first..level.end()).for_each(|y| whole.row_mut(y).copy_from_slice(level.row(y)));
        }
        Ok(())
    });
    run.unwrap();
    octaves
}

#[simd]
fn read_rows<S: Simd, T: Pixel>(
    _: S,
    image: ImageView<'_, T>,
    first: usize,
    doubled: bool,
    preset: SiftPreset,
    rows: &mut [Row],
) {
    let mut blend = vec![0.0; image.size().width];
    for (i, out) in rows.iter_mut().enumerate() {
        let y = first + i;
        if !doubled {
            out.iter_mut().zip(image.row(y)).for_each(|(out, v)| *out = v.unit());
            continue;
        }
        let last = image.size().height - 1;
        if preset == SiftPreset::OpenCv {
            // Half-pixel centres: output 2i lies a quarter pixel before input i, output 2i + 1 a quarter
            // after.
            let other = if y % 2 == 0 { (y / 2).saturating_sub(1) } else { (y / 2 + 1).min(last) };
            let (near, far) = (image.row(y / 2), image.row(other));
            for ((b, n), f) in blend.iter_mut().zip(near).zip(far) {
                *b = n.unit() * 0.75 + f.unit() * 0.25;
            }
            double_about_halves(&blend, out);
        } else {
            let (upper, lower) = (image.row(y / 2), image.row((y.div_ceil(2)).min(last)));
            for ((b, u), l) in blend.iter_mut().zip(upper).zip(lower) {
                *b = (u.unit() + l.unit()) * 0.5;
            }
            double(&blend, out);
        }
    }
}

/// out\[2i\] = in\[i\], out\[2i + 1\] = (in\[i\] + in\[i + 1\]) / 2, the last pixel repeated.
#[inline(always)]
fn double(row: &[f32], out: &mut [f32]) {
    for (pair, v) in out.chunks_exact_mut(2).zip(row.windows(2)) {
        pair[0] = v[0];
        pair[1] = (v[0] + v[1]) * 0.5;
    }
    let n = out.len();
    out[n - 2..].fill(row[row.len() - 1]);
}

/// out\[2i\] = in\[i − 1\] / 4 + 3 in\[i\] / 4, out\[2i + 1\] = 3 in\[i\] / 4 + in\[i + 1\] / 4, edges
/// repeated.
#[inline(always)]
fn double_about_halves(row: &[f32], out: &mut [f32]) {
    let n = row.len();
    out[0] = row[0];
    for i in 0..n - 1 {
        out[2 * i + 1] = row[i] * 0.75 + row[i + 1] * 0.25;
        out[2 * i + 2] = row[i + 1] * 0.75 + row[i] * 0.25;
    }
    out[2 * n - 1] = row[n - 1];
}

/// Centre tap and one side of a Gaussian, cut where OpenCV cuts it in float images (a width of
/// round(8σ + 1), made odd) and normalised to a sum of 1.
pub(super) fn gaussian_taps(sigma: f64) -> Vec<f32> {
    let radius = (((8.0 * sigma + 1.0).round() as usize) | 1) / 2;
    let weights: Vec<f64> =
        (0..=radius).map(|i| exp_f64(-((i * i) as f64) / (2.0 * sigma * sigma))).collect();
    let sum = weights[0] + 2.0 * weights[1..].iter().sum::<f64>();
    weights.iter().map(|w| (w / sum) as f32).collect()
}

/// Appends to `target` every row that the rows of `source` allow.
fn blur(source: &Level, target: &mut Level, size: Size, taps: &[f32], border: Border, cpu: &Cpu) {
    let radius = taps.len() - 1;
    let ready = if source.end() == size.height { size.height } else { source.end().saturating_sub(radius) };
    let first = target.end();
    let mut rows = target.take(ready.saturating_sub(first), size.width);
    cpu.for_chunks(&mut rows, ROWS_PER_TASK, |chunk, rows| {
        let y = first + chunk * ROWS_PER_TASK;
        let under: Vec<&[f32]> = (0..rows.len() + 2 * radius)
            .map(|i| (y + i) as isize - radius as isize)
            .filter_map(|y| border.index(y, size.height).map(|y| source.row(y)))
            .collect();
        dispatch!(cpu.level(), simd => blur_rows(simd, &under, taps, border, rows));
    });
    target.rows.extend(rows);
}

/// Blurs the rows whose windows are `under[i..=i + 2·radius]`.
#[simd]
fn blur_rows<S: Simd>(simd: S, under: &[&[f32]], taps: &[f32], border: Border, rows: &mut [Row]) {
    let radius = taps.len() - 1;
    let width = under[0].len();
    let padded = width + 2 * radius;
    let mut between = vec![0.0; padded * rows.len()];
    let mut strip: Vec<&[f32]> = Vec::with_capacity(under.len());
    for x in (0..width).step_by(STRIP) {
        let columns = x..(x + STRIP).min(width);
        strip.clear();
        strip.extend(under.iter().map(|row| &row[columns.clone()]));
        let out = radius + columns.start..radius + columns.end;
        for (i, rows) in between.chunks_mut(padded * ROWS).enumerate() {
            let under = &strip[i * ROWS..];
            let mut each = rows.chunks_exact_mut(padded).map(|row| &mut row[out.clone()]);
            if let [Some(a), Some(b), Some(c), Some(d)] = std::array::from_fn(|_| each.next()) {
                vertical_rows(simd, &under[..2 * radius + ROWS], taps, [a, b, c, d]);
            } else {
                for (i, row) in rows.chunks_exact_mut(padded).enumerate() {
                    vertical(simd, &under[i..=i + 2 * radius], taps, &mut row[out.clone()]);
                }
            }
        }
    }
    for (row, out) in between.chunks_exact_mut(padded).zip(rows) {
        for i in 1..=radius {
            let at = |i: isize| border.index(i, width).unwrap_or(0) + radius;
            row[radius - i] = row[at(-(i as isize))];
            row[radius + width - 1 + i] = row[at((width - 1 + i) as isize)];
        }
        horizontal(simd, row, 1, taps, out);
    }
}
