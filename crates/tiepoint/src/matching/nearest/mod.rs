//! The exact two nearest neighbours of every descriptor, from A in B and from B in A, in one pass.
//!
//! Every product a·b is computed once, in tiles of 6 × 64, and updates the best neighbours of its row and of
//! its column; the n·m products are never stored. Each thread takes a run of A and keeps its own column results, which
//! are merged by (distance, index), so that any number of threads gives the result of a sequential search. The
//! nearest of equally near neighbours is the one with the smaller index.
//!
//! After the first few hundred columns hardly any distance is below the limits (the second-best distances so far); a
//! tile then takes only its products, one comparison for every 16 distances, and a branch.

pub(super) mod gpu;

use super::product::{COLUMNS, Distance, Element, LANES, Line, ROWS, Tile};
use crate::Result;
use crate::device::{Cpu, Level, dispatch};
use fearless_simd::Simd;

/// The index that stands for no neighbour.
pub(super) const NONE: u32 = u32::MAX;

/// The nearest neighbour so far and the distance of the second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Best<T> {
    pub(super) first: T,
    pub(super) second: T,
    pub(super) index: u32,
}

impl<T: Distance> Best<T> {
    pub(super) const NONE: Self = Self { first: T::FAR, second: T::FAR, index: NONE };

    /// Updates the best by another neighbour. Indices must come in ascending order.
    #[inline(always)]
    pub(super) fn offer(&mut self, distance: T, index: u32) {
        if distance < self.first {
            *self = Self { first: distance, second: self.first, index };
        } else if distance < self.second {
            self.second = distance;
        }
    }

    /// The best of two disjoint sets of neighbours.
    pub(super) fn merge(self, other: Self) -> Self {
        let other_first = other.first < self.first || (other.first == self.first && other.index < self.index);
        let (near, far) = if other_first { (other, self) } else { (self, other) };
        let second = if far.first < near.second { far.first } else { near.second };
        Self { second, ..near }
    }
}

/// [`Best`] for each column of a panel, as a structure of arrays.
#[derive(Clone, Debug)]
struct Columns<T> {
    first: Line<T>,
    second: Line<T>,
    index: [u32; COLUMNS],
}

impl<T: Distance> Columns<T> {
    fn new() -> Self {
        Self { first: Line([T::FAR; COLUMNS]), second: Line([T::FAR; COLUMNS]), index: [NONE; COLUMNS] }
    }

    #[inline(always)]
    fn offer(&mut self, j: usize, distance: T, index: u32) {
        if distance < self.first.0[j] {
            (self.second.0[j], self.first.0[j], self.index[j]) = (self.first.0[j], distance, index);
        } else if distance < self.second.0[j] {
            self.second.0[j] = distance;
        }
    }

    fn best(&self, j: usize) -> Best<T> {
        Best { first: self.first.0[j], second: self.second.0[j], index: self.index[j] }
    }
}

/// The descriptors of B, packed into panels.
struct Panels<T> {
    /// The number of words in a descriptor, and of lines in a panel.
    words: usize,
    lines: Vec<Line<T>>,
    norms: Vec<Line<T>>,
}

impl<T: Distance> Panels<T> {
    fn pack<E: Element<Sum = T>>(level: Level, values: &[E], dimension: usize, cpu: &Cpu) -> Self {
        let per_word = E::per_word(level);
        let words = dimension.div_ceil(per_word);
        let panels = (values.len() / dimension).div_ceil(COLUMNS);
        let mut lines = vec![Line([T::default(); COLUMNS]); panels * words];
        let mut norms = vec![Line([T::default(); COLUMNS]); panels];
        cpu.for_chunks(&mut lines, words, |p, panel| {
            let start = p * COLUMNS * dimension;
            for (j, descriptor) in values[start..].chunks_exact(dimension).take(COLUMNS).enumerate() {
                for (line, part) in panel.iter_mut().zip(descriptor.chunks(per_word)) {
                    line.0[j] = E::words(level, part)[1];
                }
            }
        });
        for (i, descriptor) in values.chunks_exact(dimension).enumerate() {
            norms[i / COLUMNS].0[i % COLUMNS] = E::norms(level, descriptor)[1];
        }
        Self { words, lines, norms }
    }
}

/// Six packed descriptors of A and the best neighbours found for each so far.
struct Strip<T> {
    words: Vec<[T; ROWS]>,
    norms: [T; ROWS],
    best: [Best<T>; ROWS],
    rows: usize,
}

impl<T: Distance> Strip<T> {
    fn pack<E: Element<Sum = T>>(level: Level, values: &[E], dimension: usize) -> Self {
        let per_word = E::per_word(level);
        let mut words = vec![[T::default(); ROWS]; dimension.div_ceil(per_word)];
        let mut norms = [T::default(); ROWS];
        for (r, descriptor) in values.chunks_exact(dimension).enumerate() {
            norms[r] = E::norms(level, descriptor)[0];
            for (word, part) in words.iter_mut().zip(descriptor.chunks(per_word)) {
                word[r] = E::words(level, part)[0];
            }
        }
        Self { words, norms, best: [Best::NONE; ROWS], rows: values.len() / dimension }
    }

    /// Turns a tile of products into distances and updates the best neighbours of its rows and columns. `at` holds the
    /// indices of the first row and the first column; the panel has `width` columns, the others are padding.
    #[inline(always)]
    fn scan<S: Simd>(
        &mut self,
        simd: S,
        tile: &mut Tile<T>,
        at: [usize; 2],
        width: usize,
        norms: &Line<T>,
        columns: &mut Columns<T>,
    ) {
        for (r, (Line(tile), best)) in tile.iter_mut().zip(&mut self.best).enumerate().take(self.rows) {
            for start in (0..width).step_by(LANES) {
                let part = start..start + LANES;
                let values = &mut tile[part.clone()];
                let limits = &columns.second.0[part.clone()];
                let mut near = T::near(simd, values, (self.norms[r], best.second), &norms.0[part], limits);
                if width < start + LANES {
                    near &= (1 << (width - start)) - 1;
                }
                while near != 0 {
                    let j = start + near.trailing_zeros() as usize;
                    near &= near - 1;
                    best.offer(tile[j], (at[1] + j) as u32);
                    columns.offer(j, tile[j], (at[0] + r) as u32);
                }
            }
        }
    }
}

/// The best neighbours of a run of rows, and those of every column among these rows.
type Found<T> = (Vec<Best<T>>, Vec<Columns<T>>);

/// The number of strips of A that are multiplied with a panel of B while the panel stays in the first-level cache.
const STRIPS: usize = 32;

/// Compares some descriptors of A, `values`, with all of B; `first` is the index of the first of them.
fn search_run<E: Element>(
    cpu: &Cpu,
    (first, values): (usize, &[E]),
    dimension: usize,
    panels: &Panels<E::Sum>,
    count_b: usize,
) -> Result<Found<E::Sum>> {
    let level = cpu.level();
    let mut rows = Vec::with_capacity(values.len() / dimension);
    let mut columns = vec![Columns::new(); panels.norms.len()];
    let mut tile: Tile<E::Sum> = [Line([E::Sum::default(); COLUMNS]); ROWS];
    for block in values.chunks(STRIPS * ROWS * dimension) {
        let start = first + rows.len();
        let pack = |v| Strip::pack(level, v, dimension);
        let mut strips: Vec<_> = block.chunks(ROWS * dimension).map(pack).collect();
        for (p, columns) in columns.iter_mut().enumerate() {
            let panel = &panels.lines[p * panels.words..(p + 1) * panels.words];
            let width = COLUMNS.min(count_b - p * COLUMNS);
            for (s, strip) in strips.iter_mut().enumerate() {
                E::products(level, &strip.words, panel, &mut tile);
                let at = [start + s * ROWS, p * COLUMNS];
                dispatch!(level, simd => strip.scan(simd, &mut tile, at, width, &panels.norms[p], columns));
            }
        }
        rows.extend(strips.iter().flat_map(|s| &s.best[..s.rows]));
        cpu.advance(block.len() / dimension);
        cpu.check()?;
    }
    Ok((rows, columns))
}

/// The two nearest neighbours in B of every descriptor of A, and in A of every descriptor of B.
pub(super) fn search<E: Element>(
    a: &[E],
    b: &[E],
    dimension: usize,
    cpu: &Cpu,
) -> Result<[Vec<Best<E::Sum>>; 2]> {
    let (count_a, count_b) = (a.len() / dimension, b.len() / dimension);
    let cpu = &cpu.begin_task("match", count_a);
    let panels = Panels::pack(cpu.level(), b, dimension, cpu);
    let run = count_a.div_ceil(cpu.threads()).max(ROWS);
    let runs = cpu.try_map(count_a.div_ceil(run), |i| {
        let part = &a[i * run * dimension..((i + 1) * run).min(count_a) * dimension];
        search_run(cpu, (i * run, part), dimension, &panels, count_b)
    })?;
    let mut rows = Vec::with_capacity(count_a);
    let mut columns = vec![Best::NONE; count_b];
    for (part, seen) in runs {
        rows.extend(part);
        for (i, best) in columns.iter_mut().enumerate() {
            *best = best.merge(seen[i / COLUMNS].best(i % COLUMNS));
        }
    }
    Ok([rows, columns])
}
