//! Local means of the pixels that count, weighted by a Gaussian of about σ = 12 pixels. They are computed on a grid of
//! a quarter of the size, and interpolated linearly between its points.

use super::channels::rows_into;
use crate::Result;
use crate::device::Cpu;
use crate::filter::gauss::{GaussOptions, gauss};
use crate::filter::shrink::shrink;
use crate::image::{Image, Size};

/// Pixels of the picture in one of the grid, along each axis.
const STEP: usize = 4;
/// In pixels of the grid.
const SIGMA: f64 = 3.0;
/// If the pixels that count have less than this share of the Gaussian's weight, their mean is reduced towards 0.
const LEAST: f32 = 1e-3;

/// The two points of the grid that a pixel lies between, and the weight of the second.
#[derive(Clone, Copy, Debug)]
struct Place {
    first: usize,
    second: usize,
    share: f32,
}

/// Means of several values.
#[derive(Debug)]
pub(super) struct Means {
    grid: Image<f32>,
    columns: Vec<Place>,
    rows: Vec<Place>,
}

impl Means {
    /// The means of all channels but the last. Those are products with the last, which is the weight.
    pub(super) fn of(weighted: &Image<f32>, cpu: &Cpu) -> Result<Self> {
        let (size, channels) = (weighted.size(), weighted.channels());
        let small = Size::new(size.width.div_ceil(STEP), size.height.div_ceil(STEP));
        let small = shrink(weighted.view(), small, cpu)?;
        let mut grid = gauss(small.view(), &GaussOptions::sigma(SIGMA), cpu)?;
        for point in grid.data_mut().chunks_exact_mut(channels) {
            let weight = point[channels - 1].max(LEAST);
            point[..channels - 1].iter_mut().for_each(|v| *v /= weight);
        }
        let places = |n: usize, m: usize| (0..n).map(|i| place(i, n, m)).collect();
        let to = grid.size();
        Ok(Self { columns: places(size.width, to.width), rows: places(size.height, to.height), grid })
    }

    /// Row `y` of the means, all channels of a pixel together; `line` is scratch.
    pub(super) fn row(&self, y: usize, line: &mut Vec<f32>, out: &mut [f32]) {
        let channels = self.grid.channels();
        let place = self.rows[y];
        let ends = self.grid.row(place.first).iter().zip(self.grid.row(place.second));
        line.clear();
        line.extend(ends.map(|(a, b)| a * (1.0 - place.share) + b * place.share));
        for (out, place) in out.chunks_exact_mut(channels).zip(&self.columns) {
            for (c, out) in out.iter_mut().enumerate() {
                let [a, b] = [place.first, place.second].map(|i| line[i * channels + c]);
                *out = a * (1.0 - place.share) + b * place.share;
            }
        }
    }
}

/// Where pixel `i` of `n` lies among `m` points.
fn place(i: usize, n: usize, m: usize) -> Place {
    let at = ((i as f64 + 0.5) * m as f64 / n as f64 - 0.5).clamp(0.0, (m - 1) as f64);
    let first = at as usize;
    Place { first, second: (first + 1).min(m - 1), share: (at - first as f64) as f32 }
}

/// An image of `channels` values a pixel, from those of one pixel.
pub(super) fn values<const N: usize>(
    size: Size,
    cpu: &Cpu,
    value: impl Fn(usize, usize) -> [f32; N] + Sync,
) -> Result<Image<f32>> {
    rows_into(size, N, cpu, |y, out| {
        out.as_chunks_mut().0.iter_mut().enumerate().for_each(|(x, out)| *out = value(x, y));
    })
}
