//! The search restricted by a known model: a homography, affine map or similarity predicts a point in B, a
//! fundamental matrix a line. Candidates are the keypoints of B within a radius of the point or line, found with a
//! square grid; the two nearest neighbours are taken among them, and for keypoints of B among the same pairs.
//!
//! Distances follow the same contract as the full search. A keypoint whose prediction is not finite, or lies
//! beyond the horizon of a homography, has no candidates.

pub(super) mod gpu;

use super::Guide;
use super::nearest::Best;
use super::product::Element;
use crate::Result;
use crate::device::Cpu;
use crate::feature::{Features, Keypoint};
use crate::geometry::Model;
use std::ops::Range;

/// The largest number of cells of a grid. For a small radius in a large image the cells are enlarged accordingly.
const MAX_CELLS: f64 = 4.0e6;

/// Places sorted into square cells.
pub(crate) struct Grid {
    left: f64,
    top: f64,
    /// Side of a cell in pixels.
    side: f64,
    columns: usize,
    rows: usize,
    /// The start of each cell's run in `indices`, and the end of the last.
    starts: Vec<u32>,
    /// Places by cell, ascending inside each.
    indices: Vec<u32>,
}

fn place(k: &Keypoint) -> [f64; 2] {
    [f64::from(k.x), f64::from(k.y)]
}

impl Grid {
    /// Places that are not finite are left out. Cells are about `radius` wide, so that a search that far visits few.
    pub(crate) fn new(places: impl Iterator<Item = [f64; 2]> + Clone, radius: f64) -> Self {
        let finite = || places.clone().filter(|p| p[0].is_finite() && p[1].is_finite());
        let [left, top] = finite().fold([f64::INFINITY; 2], |m, p| [m[0].min(p[0]), m[1].min(p[1])]);
        let [right, bottom] = finite().fold([f64::NEG_INFINITY; 2], |m, p| [m[0].max(p[0]), m[1].max(p[1])]);
        let (width, height) = ((right - left).max(0.0) + 1.0, (bottom - top).max(0.0) + 1.0);
        let side = radius.max((width * height / MAX_CELLS).sqrt()).max(width.max(height) / MAX_CELLS);
        let (columns, rows) = ((width / side) as usize + 1, (height / side) as usize + 1);
        let mut grid = Self { left, top, side, columns, rows, starts: vec![], indices: vec![] };
        let cells: Vec<_> = places.map(|place| grid.cell(place)).collect();
        let mut order: Vec<u32> = (0..cells.len() as u32).filter(|&i| cells[i as usize].is_some()).collect();
        order.sort_by_key(|&i| cells[i as usize]);
        grid.starts = vec![0; columns * rows + 1];
        for cell in cells.into_iter().flatten() {
            grid.starts[cell + 1] += 1;
        }
        for i in 1..grid.starts.len() {
            grid.starts[i] += grid.starts[i - 1];
        }
        grid.indices = order;
        grid
    }

    /// The cell of a place; `None` outside of the grid and for NaN.
    fn cell(&self, [x, y]: [f64; 2]) -> Option<usize> {
        let (i, j) = ((x - self.left) / self.side, (y - self.top) / self.side);
        let inside = i >= 0.0 && j >= 0.0 && i < self.columns as f64 && j < self.rows as f64;
        inside.then(|| j as usize * self.columns + i as usize)
    }

    /// The columns (or rows) that an interval meets, of the `n` that begin at `origin`.
    fn range(&self, [low, high]: [f64; 2], origin: f64, n: usize) -> Range<usize> {
        let at = |v: f64| ((v - origin) / self.side).floor();
        // Casts saturate, and NaN becomes 0: the range is empty if the interval misses the grid.
        at(low).max(0.0) as usize..((at(high) + 1.0).max(0.0) as usize).min(n)
    }

    /// Calls `f` with every place in some cells of a row.
    fn visit_row(&self, row: usize, columns: Range<usize>, f: &mut impl FnMut(u32)) {
        if columns.is_empty() {
            return;
        }
        let cell = |column: usize| self.starts[row * self.columns + column] as usize;
        self.indices[cell(columns.start)..cell(columns.end)].iter().for_each(|&i| f(i));
    }

    /// Calls `f` with every place in the cells that the rectangle meets.
    pub(crate) fn visit(&self, x: [f64; 2], y: [f64; 2], f: &mut impl FnMut(u32)) {
        let columns = self.range(x, self.left, self.columns);
        self.range(y, self.top, self.rows).for_each(|row| self.visit_row(row, columns.clone(), f));
    }

    /// Calls `f` with all places that may lie within `radius` of the line `a x + b y + c = 0`: those in
    /// the cells that the band around the line meets, found row by row.
    fn visit_line(&self, [a, b, c]: [f64; 3], radius: f64, f: &mut impl FnMut(u32)) {
        let norm = (a * a + b * b).sqrt();
        if !(norm > 0.0 && norm.is_finite()) {
            return;
        }
        // The interval of one axis that the band covers over an interval of the other; the whole axis if the line runs
        // along it.
        let span = |(p, q): (f64, f64), [low, high]: [f64; 2]| {
            if p == 0.0 {
                return [f64::NEG_INFINITY, f64::INFINITY];
            }
            let (u, v, reach) = (-(q * low + c) / p, -(q * high + c) / p, radius * norm / p.abs());
            [u.min(v) - reach, u.max(v) + reach]
        };
        let right = self.left + self.columns as f64 * self.side;
        for row in self.range(span((b, a), [self.left, right]), self.top, self.rows) {
            let top = self.top + row as f64 * self.side;
            let across = span((a, b), [top, top + self.side]);
            self.visit_row(row, self.range(across, self.left, self.columns), f);
        }
    }
}

/// The candidates of one keypoint, ascending.
fn candidates(grid: &Grid, b: &[Keypoint], guide: &Guide, k: &Keypoint, found: &mut Vec<u32>) {
    found.clear();
    let radius2 = guide.radius * guide.radius;
    let at = place(k);
    let (expected, line) = match &guide.b_from_a {
        Model::Fundamental(f) => (None, Some(f.line_in_b(at))),
        Model::Essential(e) => (None, Some(e.fundamental().line_in_b(at))),
        Model::Homography(h) => (h.apply(at), None),
        Model::Affine(m) => (Some(m.apply(at)), None),
        Model::Similarity(m) | Model::Rigid(m) | Model::Translation(m) => (Some(m.apply(at)), None),
    };
    if let Some([x, y]) = expected {
        let r = guide.radius;
        grid.visit([x - r, x + r], [y - r, y + r], &mut |i| {
            let [u, v] = place(&b[i as usize]);
            if (u - x) * (u - x) + (v - y) * (v - y) <= radius2 {
                found.push(i);
            }
        });
    }
    if let Some(line) = line {
        let norm2 = line[0] * line[0] + line[1] * line[1];
        grid.visit_line(line, guide.radius, &mut |i| {
            let [u, v] = place(&b[i as usize]);
            let off = line[0] * u + line[1] * v + line[2];
            if off * off <= radius2 * norm2 {
                found.push(i);
            }
        });
    }
    found.sort_unstable();
}

/// Features between two checks for cancellation.
const CHECKED: usize = 256;

/// The two nearest neighbours of every feature of A, then of B, among the pairs that `guide` allows.
pub(super) fn search<E: Element>(
    a: &Features,
    b: &Features,
    values_a: &[E],
    values_b: &[E],
    guide: &Guide,
    cpu: &Cpu,
) -> Result<[Vec<Best<E::Sum>>; 2]> {
    let grid = Grid::new(b.keypoints.iter().map(place), guide.radius);
    let dimension = a.dimension;
    let lengths: Vec<E::Sum> = values_b.chunks_exact(dimension).map(E::length).collect();
    let run = a.len().div_ceil(cpu.threads()).max(64);
    let runs = cpu.try_map(a.len().div_ceil(run), |r| {
        let mut columns = vec![Best::NONE; b.len()];
        let (mut found, mut distances) = (Vec::new(), Vec::new());
        let rows: Vec<_> = (r * run..((r + 1) * run).min(a.len()))
            .map(|i| {
                if i % CHECKED == 0 {
                    cpu.check()?;
                }
                candidates(&grid, &b.keypoints, guide, &a.keypoints[i], &mut found);
                let mut best = Best::NONE;
                let own = &values_a[i * dimension..(i + 1) * dimension];
                E::distances(cpu.level(), own, values_b, &lengths, &found, &mut distances);
                for (&j, &distance) in found.iter().zip(&distances) {
                    best.offer(distance, j);
                    columns[j as usize].offer(distance, i as u32);
                }
                Ok(best)
            })
            .collect::<Result<_>>()?;
        Ok((rows, columns))
    })?;
    let mut rows = Vec::with_capacity(a.len());
    let mut columns = vec![Best::NONE; b.len()];
    for (part, seen) in runs {
        rows.extend(part);
        columns.iter_mut().zip(seen).for_each(|(best, other)| *best = best.merge(other));
    }
    Ok([rows, columns])
}
