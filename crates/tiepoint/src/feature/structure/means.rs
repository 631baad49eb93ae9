//! Local means of the pixels that count, weighted by a Gaussian of about σ = 12 pixels. They are computed on a grid of
//! a quarter of the size, and interpolated linearly between its points.

use crate::Result;
use crate::device::Cpu;
use crate::filter::gauss::{GaussOptions, gauss};
use crate::filter::shrink::shrink;
use crate::image::{Image, Size};

/// Pixels of the picture in one of the grid, along each axis.
const STEP: usize = 4;
/// In pixels of the grid.
pub(super) const SIGMA: f64 = 3.0;
/// If the pixels that count have less than this share of the Gaussian's weight, their mean is reduced towards 0.
pub(super) const LEAST: f32 = 1e-3;

pub(super) fn grid(size: Size) -> Size {
    Size::new(size.width.div_ceil(STEP), size.height.div_ceil(STEP))
}

/// The two points of the grid that a pixel lies between, and the weight of the second.
#[derive(Clone, Copy, Debug)]
struct Place {
    first: usize,
    second: usize,
    share: f32,
}

/// Means of two values.
#[derive(Debug)]
pub(super) struct Means {
    grids: Vec<Image<f32>>,
    columns: Vec<Place>,
    rows: Vec<Place>,
}

impl Means {
    /// The means of two values, which are given multiplied by their weight.
    pub(super) fn of(weighted: &[&Image<f32>; 2], weight: &Image<f32>, cpu: &Cpu) -> Result<Self> {
        let size = weight.size();
        let to = grid(size);
        let of = [weighted[0], weighted[1], weight];
        let mut grids = cpu.try_map(of.len(), |i| {
            let small = shrink(of[i].view(), to, cpu)?;
            gauss(small.view(), &GaussOptions::sigma(SIGMA), cpu)
        })?;
        let weights = grids.split_off(weighted.len());
        for grid in &mut grids {
            let points = grid.data_mut().iter_mut().zip(weights[0].data());
            points.for_each(|(mean, weight)| *mean /= weight.max(LEAST));
        }
        let places = |n: usize, m: usize| (0..n).map(|i| place(i, n, m)).collect();
        Ok(Self { columns: places(size.width, to.width), rows: places(size.height, to.height), grids })
    }

    /// Row `y` of the means of one value.
    pub(super) fn row(&self, value: usize, y: usize, out: &mut [f32]) {
        let (grid, place) = (&self.grids[value], self.rows[y]);
        let ends = grid.row(place.first).iter().zip(grid.row(place.second));
        let line: Vec<f32> = ends.map(|(a, b)| a * (1.0 - place.share) + b * place.share).collect();
        for (out, place) in out.iter_mut().zip(&self.columns) {
            *out = line[place.first] * (1.0 - place.share) + line[place.second] * place.share;
        }
    }
}

/// Where pixel `i` of `n` lies among `m` points.
fn place(i: usize, n: usize, m: usize) -> Place {
    let at = ((i as f64 + 0.5) * m as f64 / n as f64 - 0.5).clamp(0.0, (m - 1) as f64);
    let first = at as usize;
    Place { first, second: (first + 1).min(m - 1), share: (at - first as f64) as f32 }
}
