//! The position of an extremum to a fraction of a pixel and level, and which extrema to keep (Lowe §4).
//!
//! With the gradient g and the Hessian H of D by central differences, x̂ = −H⁻¹g (Lowe eq. 3). While a component of x̂
//! reaches the limit, the search moves a step in that direction; an extremum that has not settled at the fifth position
//! is dropped. |D(x̂)| = |D + ½ g·x̂| must reach the contrast divided by the number of levels (eq. 4), and det > 0 and
//! tr²/det < (r + 1)²/r must hold for the 2×2 Hessian in x and y (§4.1).
//!
//! Arithmetic: f32 without fused operations, H solved by cofactors, in the order written.

use super::extrema::Candidate;
use super::scale_space::{Octave, pixel};
use super::{SiftOptions, SiftPreset};
use crate::feature::Keypoint;
use crate::numeric;

/// The number of positions that are tried; an extremum that settles at none of them is dropped.
pub(super) const MOST_MOVES: usize = 5;

/// Rows above and below an extremum that may be read.
pub(super) const REACH: usize = MOST_MOVES + 1;

/// A refined extremum: a keypoint without its angle, and where it lies in its octave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// The keypoint in the input image; its angle is still 0.
    pub(super) keypoint: Keypoint,
    pub(super) x: f32,
    pub(super) y: f32,
    /// σ in pixels of the octave.
    pub(super) scale: f32,
}

/// First and second derivatives of D at a pixel, by central differences: (x, y, layer).
struct Derivatives {
    value: f32,
    gradient: [f32; 3],
    xx: f32,
    yy: f32,
    ss: f32,
    xy: f32,
    xs: f32,
    ys: f32,
}

impl Derivatives {
    fn at(octave: &Octave, c: Candidate) -> Self {
        let d = |x: isize, y: isize, s: isize| {
            octave.dog(c.layer.wrapping_add_signed(s), c.x.wrapping_add_signed(x), c.y.wrapping_add_signed(y))
        };
        let value = d(0, 0, 0);
        let twice = value * 2.0;
        let (right, left) = (d(1, 0, 0), d(-1, 0, 0));
        let (down, up) = (d(0, 1, 0), d(0, -1, 0));
        let (above, below) = (d(0, 0, 1), d(0, 0, -1));
        Self {
            value,
            gradient: [(right - left) * 0.5, (down - up) * 0.5, (above - below) * 0.5],
            xx: (right + left) - twice,
            yy: (down + up) - twice,
            ss: (above + below) - twice,
            xy: ((d(1, 1, 0) - d(-1, 1, 0)) - (d(1, -1, 0) - d(-1, -1, 0))) * 0.25,
            xs: ((d(1, 0, 1) - d(-1, 0, 1)) - (d(1, 0, -1) - d(-1, 0, -1))) * 0.25,
            ys: ((d(0, 1, 1) - d(0, -1, 1)) - (d(0, 1, -1) - d(0, -1, -1))) * 0.25,
        }
    }

    /// x̂ = −H⁻¹g by cofactors, or `None` where H is singular.
    fn offset(&self) -> Option<[f32; 3]> {
        let Self { xx, yy, ss, xy, xs, ys, gradient: [gx, gy, gs], .. } = *self;
        let (c00, c01, c02) = (yy * ss - ys * ys, xs * ys - xy * ss, xy * ys - xs * yy);
        let (c11, c12, c22) = (xx * ss - xs * xs, xy * xs - xx * ys, xx * yy - xy * xy);
        let det = (xx * c00 + xy * c01) + xs * c02;
        let solve = |a: f32, b: f32, c: f32| -(((a * gx + b * gy) + c * gs) / det);
        let offset = [solve(c00, c01, c02), solve(c01, c11, c12), solve(c02, c12, c22)];
        offset.iter().all(|v| v.is_finite()).then_some(offset)
    }
}

/// Refines one extremum; `None` when it does not settle, is too weak, or lies on an edge.
pub(super) fn refine(octave: &Octave, start: Candidate, options: &SiftOptions) -> Option<Point> {
    let (at, derivatives, offset) = settle(octave, start, options)?;
    let Derivatives { value, gradient: [gx, gy, gs], xx, yy, xy, .. } = derivatives;
    let [dx, dy, ds] = offset;
    let response = (value + ((gx * dx + gy * dy) + gs * ds) * 0.5).abs();
    let (trace, det) = (xx + yy, xx * yy - xy * xy);
    let (r, r1) = (options.edge, options.edge + 1.0);
    if !(response >= options.least_contrast() && det > 0.0 && trace * trace * r < r1 * r1 * det) {
        return None;
    }
    let levels = f32::from(options.levels);
    let scale = options.sigma * numeric::exp((at.layer as f32 + ds) / levels * std::f32::consts::LN_2);
    let (x, y, pixel) = (at.x as f32 + dx, at.y as f32 + dy, pixel(octave.number));
    // A DoG is negative where the image is brighter than its surroundings.
    let sign = if value < 0.0 { 1 } else { -1 };
    let keypoint = Keypoint {
        x: x * pixel,
        y: y * pixel,
        scale: scale * pixel,
        angle: 0.0,
        response,
        sign,
        octave: octave.number,
        layer: at.layer as u8,
    };
    Some(Point { keypoint, x, y, scale })
}

/// Moves in position and scale until every component of the offset is below the limit. VLFeat's rule: moves in x and y
/// only; offsets below 1.5 are accepted.
fn settle(
    octave: &Octave,
    start: Candidate,
    options: &SiftOptions,
) -> Option<(Candidate, Derivatives, [f32; 3])> {
    let in_place = options.preset == SiftPreset::VlFeat;
    let mut at = start;
    for step in 1..=MOST_MOVES {
        let derivatives = Derivatives::at(octave, at);
        let offset = derivatives.offset()?;
        let [dx, dy, ds] = offset.map(|v| step_towards(v, options.settled_below()));
        let next = match in_place {
            // A step that would leave the searched part is not taken.
            true => moved(octave, at, [dx, dy, 0], options).unwrap_or(at),
            false => moved(octave, at, [dx, dy, ds], options)?,
        };
        if next == at || in_place && step == MOST_MOVES {
            let accepted = !in_place || offset.iter().all(|v| v.abs() < 1.5);
            return accepted.then_some((at, derivatives, offset));
        }
        at = next;
    }
    None
}

/// One pixel in the direction of `offset` when it is at least `limit`. Not more, because a nearly singular H
/// gives any offset, and the rows that a move can reach must be in memory.
fn step_towards(offset: f32, limit: f32) -> isize {
    match offset {
        v if v >= limit => 1,
        v if v <= -limit => -1,
        _ => 0,
    }
}

/// The candidate after a move, or `None` where it leaves the searched part of the octave.
fn moved(octave: &Octave, at: Candidate, by: [isize; 3], options: &SiftOptions) -> Option<Candidate> {
    let step = |from: usize, by: isize, low: usize, high: usize| {
        from.checked_add_signed(by).filter(|to| (low..=high).contains(to))
    };
    let border = options.border();
    Some(Candidate {
        x: step(at.x, by[0], border, octave.size.width - 1 - border)?,
        y: step(at.y, by[1], border, octave.size.height - 1 - border)?,
        layer: step(at.layer, by[2], 1, usize::from(options.levels))?,
    })
}
