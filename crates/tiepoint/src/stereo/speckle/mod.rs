//! Removal of speckles: regions that are too small to be a surface (Hirschmüller, PAMI 2008, section 2.5.1).
//!
//! Two pixels that share an edge belong to one region when their disparities differ by at most `difference`.
//! Pixels of regions of fewer than `size` pixels become [`INVALID`].
//!
//! **Numbers.** Disparities are subtracted in f32; counts are exact for any size of image. Values that are
//! not finite belong to no region and stay as they are.
//!
//! **Algorithm.** One bit set of a row marks the pixels that belong to the region of their right neighbour, another
//! those that belong to the region of the pixel above. The first gives the runs of the row, the second the first
//! columns at which runs of two rows touch. Union-find joins the runs, in each band of rows and then across bands.

pub(crate) mod gpu;

use super::INVALID;
use crate::Result;
use crate::device::{Cpu, dispatch};
use crate::image::{ImageView, ImageViewMut};
use crate::options::options;
use fearless_simd::Simd;
use fearless_simd::prelude::*;
use fearless_simd_macros::simd;
use std::ops::Range;

options! {
    /// What counts as a speckle.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct SpeckleOptions {
        /// Regions of fewer pixels are removed; 0 or 1 removes none.
        size / with_size: usize = 50, unit "N";
        /// The greatest difference of disparities between neighbours of one region.
        difference / with_difference: f32 = 2.0 => 0.0.., unit "PX";
    }
}

/// Makes the pixels of small regions invalid.
///
/// # Errors
/// As [`SpeckleOptions::check`], and [`Error::Image`](crate::Error::Image) for an empty map or several channels.
pub fn speckle(disparity: ImageViewMut<'_, f32>, options: &SpeckleOptions, cpu: &Cpu) -> Result<()> {
    options.check()?;
    disparity.view().require_grey()?;
    if options.size < 2 {
        return Ok(());
    }
    let _stage = cpu.stage("speckle");
    let height = disparity.size().height;
    let map = disparity.view();
    let each = height.div_ceil(cpu.threads());
    let bands = cpu.try_map(height.div_ceil(each), |i| {
        Ok(Runs::new(map, i * each..((i + 1) * each).min(height), options.difference, cpu))
    })?;
    let joined = bands.into_iter().reduce(|all, band| all.append(band, map, options.difference, cpu));
    let runs = joined.unwrap_or_default();
    let small = runs.small(options.size);
    cpu.for_bands(disparity, 1, |y, row| {
        for run in runs.rows[y].clone().filter(|&run| small[run]) {
            row.row_mut(0)[runs.columns[run].clone()].fill(INVALID);
        }
    })
}

/// Runs of joined pixels of rows, and a union-find forest over them in which no run's parent comes after it.
#[derive(Default)]
struct Runs {
    columns: Vec<Range<usize>>,
    /// The runs of each row.
    rows: Vec<Range<usize>>,
    parent: Vec<usize>,
}

impl Runs {
    /// The joined runs of some rows.
    fn new(map: ImageView<'_, f32>, rows: Range<usize>, difference: f32, cpu: &Cpu) -> Self {
        let mut runs = Self::default();
        let [mut above, mut here] = [Links::new(map.size().width), Links::new(map.size().width)];
        for y in rows.clone() {
            here.read(map.row(y), difference, cpu);
            let start = runs.columns.len();
            here.runs(&mut runs.columns);
            runs.parent.extend(start..runs.columns.len());
            runs.rows.push(start..runs.columns.len());
            if y > rows.start {
                here.read_up(map, y, difference, cpu);
                runs.join_rows(y - rows.start, &here, &above);
            }
            std::mem::swap(&mut above, &mut here);
        }
        runs
    }

    /// Appends the runs of the following rows, and joins them with these.
    fn append(mut self, band: Self, map: ImageView<'_, f32>, difference: f32, cpu: &Cpu) -> Self {
        let (start, y) = (self.columns.len(), self.rows.len());
        self.columns.extend(band.columns);
        self.parent.extend(band.parent.into_iter().map(|run| start + run));
        self.rows.extend(band.rows.into_iter().map(|row| start + row.start..start + row.end));
        let [mut above, mut here] = [Links::new(map.size().width), Links::new(map.size().width)];
        above.read(map.row(y - 1), difference, cpu);
        here.read(map.row(y), difference, cpu);
        here.read_up(map, y, difference, cpu);
        self.join_rows(y, &here, &above);
        self
    }

    /// Joins the runs of row `y` with those above.
    fn join_rows(&mut self, y: usize, here: &Links, above: &Links) {
        let (mut upper, mut run) = (self.rows[y - 1].start, self.rows[y].start);
        for x in here.meetings(above) {
            while self.columns[upper].end <= x {
                upper += 1;
            }
            while self.columns[run].end <= x {
                run += 1;
            }
            let (a, b) = (self.root(upper), self.root(run));
            self.parent[a.max(b)] = a.min(b);
        }
    }

    fn root(&mut self, mut run: usize) -> usize {
        while self.parent[run] != run {
            self.parent[run] = self.parent[self.parent[run]];
            run = self.parent[run];
        }
        run
    }

    /// Which runs belong to regions of fewer pixels than `size`.
    fn small(&self, size: usize) -> Vec<bool> {
        let mut root = self.parent.clone();
        let mut pixels = vec![0_usize; root.len()];
        for (run, columns) in self.columns.iter().enumerate() {
            // The parent comes first, so its root is known.
            root[run] = root[root[run]];
            pixels[root[run]] += columns.len();
        }
        root.into_iter().map(|root| pixels[root] < size).collect()
    }
}

/// Bit sets over the pixels of a row: which have a disparity, and which are joined to a neighbour.
struct Links {
    /// The pixel has a disparity.
    valid: Vec<u64>,
    /// It is joined to the pixel on its right.
    right: Vec<u64>,
    /// It is joined to the pixel above.
    up: Vec<u64>,
    zeros: Vec<f32>,
}

impl Links {
    fn new(width: usize) -> Self {
        let [valid, right, up] = std::array::from_fn(|_| vec![0; width.div_ceil(64)]);
        Self { valid, right, up, zeros: vec![0.0; width] }
    }

    fn read(&mut self, row: &[f32], difference: f32, cpu: &Cpu) {
        dispatch!(cpu.level(), simd => near(simd, row, &self.zeros, f32::MAX, &mut self.valid));
        let last = row.len() - 1;
        dispatch!(cpu.level(), simd => near(simd, &row[..last], &row[1..], difference, &mut self.right));
    }

    fn read_up(&mut self, map: ImageView<'_, f32>, y: usize, difference: f32, cpu: &Cpu) {
        let (row, above) = (map.row(y), map.row(y - 1));
        dispatch!(cpu.level(), simd => near(simd, row, above, difference, &mut self.up));
    }

    fn runs(&self, out: &mut Vec<Range<usize>>) {
        let first = out.len();
        out.extend(ones(self.words().map(|w| self.valid[w] & !from_left(&self.right, w))).map(|x| x..x));
        let ends = ones(self.words().map(|w| self.valid[w] & !self.right[w]));
        out[first..].iter_mut().zip(ends).for_each(|(run, end)| run.end = end + 1);
    }

    /// The columns at which runs of this row and the row above touch; where two runs touch in several, only the first.
    fn meetings(&self, above: &Self) -> impl Iterator<Item = usize> {
        ones(self.words().map(|w| {
            let follows = from_left(&self.up, w) & from_left(&self.right, w) & from_left(&above.right, w);
            self.up[w] & !follows
        }))
    }

    fn words(&self) -> Range<usize> {
        0..self.valid.len()
    }
}

/// Word `w` of a bit set moved by one to the right: each pixel gets the bit of its left neighbour.
fn from_left(bits: &[u64], w: usize) -> u64 {
    let carry = if w == 0 { 0 } else { bits[w - 1] >> 63 };
    bits[w] << 1 | carry
}

/// The positions of the bits that are set, ascending.
fn ones(words: impl Iterator<Item = u64>) -> impl Iterator<Item = usize> {
    words.enumerate().flat_map(|(w, mut bits)| {
        std::iter::from_fn(move || {
            let x = 64 * w + bits.trailing_zeros() as usize;
            let some = bits != 0;
            bits &= bits.wrapping_sub(1);
            some.then_some(x)
        })
    })
}

/// Sets the bits where |a − b| ≤ limit and clears the others.
#[simd]
fn near<S: Simd>(simd: S, a: &[f32], b: &[f32], limit: f32, bits: &mut [u64]) {
    let (lanes, most) = (S::f32s::LEN, S::f32s::splat(simd, limit));
    let words = a.chunks(64).zip(b.chunks(64)).chain(std::iter::repeat((&a[..0], &b[..0])));
    for (word, (a, b)) in bits.iter_mut().zip(words) {
        *word = 0;
        let (mut at, mut rest) = (0, (a, b));
        while rest.0.len() >= lanes {
            let difference =
                S::f32s::from_slice(simd, &rest.0[..lanes]) - S::f32s::from_slice(simd, &rest.1[..lanes]);
            *word |= difference.abs().simd_le(most).to_bitmask() << at;
            (at, rest) = (at + lanes, (&rest.0[lanes..], &rest.1[lanes..]));
        }
        for (i, (a, b)) in rest.0.iter().zip(rest.1).enumerate() {
            *word |= u64::from((a - b).abs() <= limit) << (at + i);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::testing::assert_same;
    use crate::image::{Image, Size};
    use crate::stereo::testing::{after, cpus, maps};

    fn reference(map: &Image<f32>, options: &SpeckleOptions) -> Image<f32> {
        let (size, mut out) = (map.size(), map.clone());
        let mut seen = vec![false; size.area()];
        for start in (0..size.area()).filter(|&p| map.data()[p].is_finite()) {
            let mut region = vec![start];
            if std::mem::replace(&mut seen[start], true) {
                continue;
            }
            let mut next = 0;
            while next < region.len() {
                let (p, x) = (region[next], region[next] % size.width);
                let neighbours = [
                    (x > 0).then(|| p - 1),
                    (x + 1 < size.width).then_some(p + 1),
                    p.checked_sub(size.width),
                    Some(p + size.width).filter(|&p| p < size.area()),
                ];
                for n in neighbours.into_iter().flatten() {
                    if !seen[n] && (map.data()[p] - map.data()[n]).abs() <= options.difference {
                        seen[n] = true;
                        region.push(n);
                    }
                }
                next += 1;
            }
            if region.len() < options.size {
                region.into_iter().for_each(|p| out.data_mut()[p] = INVALID);
            }
        }
        out
    }

    #[test]
    fn equals_flooding() {
        for map in maps() {
            for (size, difference) in [(2, 0.0), (5, 0.75), (30, 1.0), (400, 2.0), (usize::MAX, 1.0)] {
                let options = SpeckleOptions { size, difference };
                let expected = reference(&map, &options);
                for cpu in cpus() {
                    let found = after(&map, |map| speckle(map, &options, &cpu));
                    assert_same(&found, &expected, format_args!("{} {options:?}", map.size()));
                }
            }
        }
    }

    #[test]
    fn squares_joined_by_a_row_are_one_region() {
        // Concentric squares joined by one row on the right: many runs stay separate until that row is reached.
        let n = 41_i64;
        let ring = |x: usize, y: usize| (x as i64 - n / 2).abs().max((y as i64 - n / 2).abs());
        let size = Size::new(n as usize, n as usize);
        let bridge = |x: usize, y: usize| y == n as usize / 2 && x > n as usize / 2;
        let mut map =
            Image::from_fn(size, |x, y| if ring(x, y) % 2 == 0 || bridge(x, y) { 4.0 } else { INVALID });
        let (before, count) = (map.clone(), map.data().iter().filter(|v| v.is_finite()).count());
        let mut options = SpeckleOptions { size: count, difference: 0.0 };
        speckle(map.view_mut(), &options, &Cpu::sequential()).unwrap();
        assert_eq!(map, before, "as many pixels as asked for");
        options.size += 1;
        speckle(map.view_mut(), &options, &Cpu::with_threads(3).unwrap()).unwrap();
        assert!(map.data().iter().all(|&v| v == INVALID), "one pixel too few");
    }

    #[test]
    fn refuses_wrong_options() {
        let mut map = Image::filled(Size::new(3, 3), 1, 1.0);
        for difference in [-1.0, f32::NAN, f32::INFINITY] {
            let options = SpeckleOptions { difference, ..SpeckleOptions::default() };
            assert!(speckle(map.view_mut(), &options, &Cpu::sequential()).is_err(), "{difference}");
        }
    }
}
