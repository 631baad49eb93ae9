//! Corners of structure: maxima of det / trace of the tensor of the strength's gradient, spread evenly.
//!
//! The strength is smoothed by σ = 0.8, its gradient's products by σ = 1.5. A maximum of 5 × 5 pixels is a corner; its
//! place is the top of a parabola through its neighbours along each axis. At most four are kept in each cell of a grid,
//! whose cells are so large that about the wanted number fits the area that counts.

use super::channels::{Channels, Rows, rows_into};
use super::intensity::near;
use super::lanes::{COUNTS, LANES};
use crate::Result;
use crate::device::{Cpu, dispatch};
use crate::feature::Keypoint;
use crate::filter::gauss::{GaussOptions, gauss};
use crate::image::{Image, Size};
use fearless_simd::Simd;

/// No corner is nearer than this to the border, or to pixels that do not count.
pub(super) const MARGIN: usize = 6;
/// The most corners in a cell.
const IN_A_CELL: usize = 4;
/// The least side of a cell.
const LEAST_CELL: f64 = 8.0;
/// The least response.
pub(super) const LEAST: f32 = 1e-5;
/// The blurs of the strength and of the products of its gradient.
pub(super) const SIGMAS: [f64; 2] = [0.8, 1.5];

/// At most `most` corners of a picture, the strongest first.
pub(super) fn corners(channels: &Channels, most: usize, cpu: &Cpu) -> Result<Vec<Keypoint>> {
    let size = channels.strength.size();
    if size.width <= 2 * MARGIN || size.height <= 2 * MARGIN {
        return Ok(vec![]);
    }
    let smooth = gauss(channels.strength.view(), &GaussOptions::sigma(SIGMAS[0]), cpu)?;
    let tensor = [0, 1, 2].map(|which| {
        let products = rows_into(size, 1, cpu, |y, out| {
            dispatch!(cpu.level(), simd => product(simd, Rows::around(&smooth, y), which, out));
        })?;
        gauss(products.view(), &GaussOptions::sigma(SIGMAS[1]), cpu)
    });
    let [xx, xy, yy] = tensor;
    let tensor = [xx?, xy?, yy?];
    let response = rows_into(size, 1, cpu, |y, out| {
        dispatch!(cpu.level(), simd => respond(simd, tensor.each_ref().map(|image| image.row(y)), out));
    })?;
    let hidden = Image::from_fn(size, |x, y| channels.lanes.row(y)[x * LANES + COUNTS] == 0.0);
    // Gradients within 3 pixels of pixels that do not count are 0 already (`channels`).
    let hidden = near(&hidden, MARGIN - 3);
    let hidden = &hidden;
    let inside = |y: usize| (MARGIN..size.width - MARGIN).filter(move |x| !hidden.row(y)[*x]);
    let area: usize = (MARGIN..size.height - MARGIN).map(|y| inside(y).count()).sum();
    let found = cpu.try_map(size.height - 2 * MARGIN, |i| {
        let y = i + MARGIN;
        Ok(inside(y)
            .filter(|x| is_peak(&response, *x, y))
            .map(|x| corner(&response, x, y))
            .collect::<Vec<_>>())
    })?;
    Ok(spread(found.into_iter().flatten().collect(), size, area, most))
}

/// At most `most` of the corners of a picture in which `area` pixels can be one: evenly spread, the strongest first.
pub(super) fn spread(mut found: Vec<Keypoint>, size: Size, area: usize, most: usize) -> Vec<Keypoint> {
    found.sort_by(Keypoint::order);
    let cell = (area as f64 * IN_A_CELL as f64 / most as f64).sqrt().max(LEAST_CELL) as f32;
    let columns = (size.width as f32 / cell) as usize + 1;
    let mut taken = vec![0; columns * ((size.height as f32 / cell) as usize + 1)];
    found.retain(|k| {
        let taken = &mut taken[(k.y.max(0.0) / cell) as usize * columns + (k.x.max(0.0) / cell) as usize];
        *taken += 1;
        *taken <= IN_A_CELL
    });
    found.truncate(most);
    found
}

/// A row of the products of the gradient's parts: xx, xy or yy.
#[inline(always)]
fn product<S: Simd>(_: S, rows: Rows<'_>, which: usize, out: &mut [f32]) {
    let mut down = vec![0.0; out.len()];
    rows.gradients(out, &mut down);
    for (out, gy) in out.iter_mut().zip(&down) {
        *out = match which {
            0 => *out * *out,
            1 => *out * gy,
            _ => gy * gy,
        };
    }
}

#[inline(always)]
fn respond<S: Simd>(_: S, [xx, xy, yy]: [&[f32]; 3], out: &mut [f32]) {
    for (((out, xx), xy), yy) in out.iter_mut().zip(xx).zip(xy).zip(yy) {
        *out = (xx * yy - xy * xy) / (xx + yy + 1e-6);
    }
}

/// Whether no neighbour of 5 × 5 is stronger, nor an earlier one as strong.
fn is_peak(response: &Image<f32>, x: usize, y: usize) -> bool {
    let row = response.row(y);
    let value = row[x];
    // The nearest neighbours first: they rule out most.
    value > LEAST
        && row[x - 1] < value
        && row[x + 1] <= value
        && (y - 2..=y + 2).all(|v| {
            let row = &response.row(v)[x - 2..=x + 2];
            row.iter()
                .enumerate()
                .all(|(i, other)| *other < value || (*other == value && (v, x + i) >= (y, x + 2)))
        })
}

fn corner(response: &Image<f32>, x: usize, y: usize) -> Keypoint {
    let row = response.row(y);
    let column = [y - 1, y, y + 1].map(|y| response.row(y)[x]);
    let at = [x as f32 + top([row[x - 1], row[x], row[x + 1]]), y as f32 + top(column)];
    keypoint(at, row[x])
}

pub(super) fn keypoint([x, y]: [f32; 2], response: f32) -> Keypoint {
    Keypoint { x, y, scale: 1.5, angle: 0.0, response, sign: 1, octave: 0, layer: 0 }
}

/// The place at which the parabola through three neighbouring values is highest.
fn top([left, middle, right]: [f32; 3]) -> f32 {
    let bend = left - 2.0 * middle + right;
    if bend < 0.0 { (0.5 * (left - right) / bend).clamp(-0.5, 0.5) } else { 0.0 }
}
