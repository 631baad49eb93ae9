//! Focal length, principal points and size of the rectified pair.
//!
//! The outline of each picture, undistorted and turned, is projected onto the plane Z = 1. Its bounding box is the
//! *outer* box; the *inner* box is bounded by the innermost points of its four sides, so that a picture that is hardly
//! turned fills it. Boxes are in units of the focal length.

use super::valid::NOTHING_VALID;
use super::{RectifiedView, RectifyOptions};
use crate::geometry::calibration::Camera;
use crate::geometry::matrix::{Mat3, determinant, times};
use crate::image::Size;
use crate::options::named;
use crate::{Error, Result};

named! {
    /// Which part of the pictures the rectified pair shows.
    pub enum OutputFrame as "frame" {
        #[default]
        "input": Input, "Size and scale of the input, centred on what both see";
        /// The size follows.
        "fit": Fit, "Scale of the input, all columns, the rows that both see";
        "valid": Valid, "Only pixels that are valid in both. With a calibration the size of the input, scaled; without, the scale of the input and the largest rectangle";
        "all": All, "Size of the input, scaled until nothing is cut off";
    }
}

named! {
    /// Where the principal points lie.
    pub enum Principal as "principal" {
        #[default]
        "shared": Shared, "One principal point: disparities are above 0, and 0 is infinitely far";
        /// This wastes little of views that converge; `doffs` holds the difference.
        "own": Own, "Each view centred by itself";
    }
}

#[derive(Clone, Copy, Debug)]
struct Turned {
    camera: Camera,
    rotation: Mat3,
    input: Size,
}

/// `[low, high]`, empty when low ≥ high.
type Span = [f64; 2];

fn both([a, b]: [Span; 2]) -> Span {
    [a[0].max(b[0]), a[1].min(b[1])]
}

fn either([a, b]: [Span; 2]) -> Span {
    [a[0].min(b[0]), a[1].max(b[1])]
}

fn middle([low, high]: Span) -> f64 {
    0.5 * (low + high)
}

fn length([low, high]: Span) -> f64 {
    high - low
}

/// The number of places along a side of the outline.
const STEPS: usize = 48;

/// Least cosine between a ray and the rectified axis; below it the epipole is in or near the picture.
const LEAST_COSINE: f64 = 0.1;

/// The most pixels of an output, as a multiple of those of the input.
const LARGEST: f64 = 4.0;

impl Turned {
    fn place(&self, pixel: [f64; 2]) -> Result<Option<[f64; 2]>> {
        let Some([x, y]) = self.camera.ray(pixel) else { return Ok(None) };
        let [p, q, r] = times(&self.rotation, [x, y, 1.0]);
        if r <= LEAST_COSINE * (p * p + q * q + r * r).sqrt() {
            return Err(Error::Degenerate {
                model: "rectification",
                reason: "one camera lies in, or close to, the other's picture (its epipole), as when moving \
                         forward; such a pair cannot be turned into rows",
            });
        }
        Ok(Some([p / r, q / r]))
    }

    /// The outer box, or the inner one.
    fn bounds(&self, inner: bool) -> Result<[Span; 2]> {
        let (w, h) = (self.input.width as f64 - 1.0, self.input.height as f64 - 1.0);
        let at = |i: usize| i as f64 / STEPS as f64;
        let side = |from: [f64; 2], to: [f64; 2]| -> Result<Vec<[f64; 2]>> {
            let pixel = |t: f64| [from[0] + t * (to[0] - from[0]), from[1] + t * (to[1] - from[1])];
            let places = (0..=STEPS).map(|i| self.place(pixel(at(i))));
            places.filter_map(Result::transpose).collect()
        };
        let (top, bottom) = (side([0.0, 0.0], [w, 0.0])?, side([0.0, h], [w, h])?);
        let (left, right) = (side([0.0, 0.0], [0.0, h])?, side([w, 0.0], [w, h])?);
        let sides = [&top, &bottom, &left, &right];
        if sides.iter().any(|s| 2 * s.len() < STEPS) {
            return Err(Error::Mismatch(
                "the lens distortion folds back inside the picture: the calibration does not describe its edges".into(),
            ));
        }
        let none = [f64::INFINITY, f64::NEG_INFINITY];
        let span = |s: &[[f64; 2]], c: usize| s.iter().fold(none, |all, p| either([all, [p[c]; 2]]));
        if !inner {
            return Ok([0, 1].map(|c| sides.iter().fold(none, |all, s| either([all, span(s, c)]))));
        }
        // If a picture is turned by 90°, its left and right sides become the top and bottom.
        let mut across = [&left, &right];
        let mut down = [&top, &bottom];
        if self.rotation[0][0].abs() < self.rotation[0][1].abs() {
            (across, down) = (down, across);
        }
        let between = |pair: [&Vec<[f64; 2]>; 2], c: usize| {
            let ends = pair.map(|s| span(s, c));
            let [first, last] = if middle(ends[0]) <= middle(ends[1]) { ends } else { [ends[1], ends[0]] };
            [first[1], last[0]]
        };
        Ok([between(across, 0), between(down, 1)])
    }

    /// The focal length that keeps the scale in the middle of the picture.
    fn focal(&self) -> f64 {
        let middle = Camera::centred(1.0, self.input).principal;
        let [fx, fy] = self.camera.focal;
        let Some([x, y]) = self.camera.ray(middle) else { return (fx * fy).sqrt() };
        // The projective map of (x, y) by M has the Jacobian determinant det M / w³; for a rotation that is 1 / w³.
        let [_, _, w] = times(&self.rotation, [x, y, 1.0]);
        let area = determinant(&self.rotation) / (w * w * w);
        (fx * fy / area.abs()).sqrt()
    }
}

/// Both views, with cameras, their rotations to the rectified axes and the sizes of their pictures known.
pub(super) fn framed(
    cameras: [Camera; 2],
    rotations: [Mat3; 2],
    sizes: [Size; 2],
    options: &RectifyOptions,
) -> Result<[RectifiedView; 2]> {
    let views = [0, 1].map(|i| Turned { camera: cameras[i], rotation: rotations[i], input: sizes[i] });
    let valid = options.frame == OutputFrame::Valid;
    let boxes = [views[0].bounds(valid)?, views[1].bounds(valid)?];
    let kept = 0.5 * (views[0].focal() + views[1].focal());
    let input = Size::new(sizes[0].width.max(sizes[1].width), sizes[0].height.max(sizes[1].height));
    let spans = |c: usize| boxes.map(|bounds| bounds[c]);
    let rows = if options.frame == OutputFrame::All { either(spans(1)) } else { both(spans(1)) };
    let (columns, width) = columns(spans(0), options);
    if !(length(rows) > 1e-9 && width > 1e-9) {
        let reason = if valid { NOTHING_VALID } else { "the pictures share no row once they are turned" };
        return Err(Error::Degenerate { model: "rectification", reason });
    }
    let fitting = |n: usize, length: f64| (n as f64 - 1.0).max(1.0) / length;
    let [by_width, by_height] = [fitting(input.width, width), fitting(input.height, length(rows))];
    let (focal, size) = match options.frame {
        OutputFrame::Input => (kept, input),
        OutputFrame::Valid => (by_width.max(by_height), input),
        OutputFrame::All => (by_width.min(by_height), input),
        OutputFrame::Fit => fit(kept, width, length(rows), input)?,
    };
    let centre = Camera::centred(1.0, size).principal;
    let principal = columns.map(|c| [centre[0] - focal * middle(c), centre[1] - focal * middle(rows)]);
    Ok([0, 1].map(|i| {
        let Turned { camera, rotation, input } = views[i];
        RectifiedView { camera, input, rotation, focal, principal: principal[i], size }
    }))
}

/// The columns that each view is centred on, and the width that holds them.
fn columns(spans: [Span; 2], options: &RectifyOptions) -> ([Span; 2], f64) {
    match (options.principal, options.frame) {
        (Principal::Own, OutputFrame::Valid) => (spans, length(spans[0]).min(length(spans[1]))),
        (Principal::Own, _) => (spans, length(spans[0]).max(length(spans[1]))),
        (Principal::Shared, OutputFrame::Valid) => ([both(spans); 2], length(both(spans))),
        (Principal::Shared, _) => ([either(spans); 2], length(either(spans))),
    }
}

/// The scale of the input, unless the size that follows is too large.
fn fit(kept: f64, width: f64, height: f64, input: Size) -> Result<(f64, Size)> {
    let area = (kept * width) * (kept * height);
    let focal = kept * (LARGEST * input.area() as f64 / area).sqrt().min(1.0);
    let pixels = |length: f64| ((focal * length).ceil() as usize).saturating_add(1);
    let size = Size::new(pixels(width), pixels(height));
    // Only rounding up can exceed the limit, if the view has hardly a row.
    if size.area() as f64 > 2.0 * LARGEST * input.area() as f64 + 1e4 {
        return Err(Error::Degenerate { model: "rectification", reason: "the pictures share hardly a row" });
    }
    Ok((focal, size))
}
