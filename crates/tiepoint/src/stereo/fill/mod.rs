//! Filling of invalid pixels from the valid ones around them (after Hirschmüller, PAMI 2008, section 2.5.3).
//!
//! Along each of eight rays from an invalid pixel, horizontal, vertical and diagonal, the nearest valid pixel is found.
//! - A pixel with valid pixels on only one side in its row takes the value of the nearest: it lies in the margin that
//!   the other view does not show, and is assumed to continue the surface beside it.
//! - An occlusion takes the second lowest of the disparities found: it belongs to the background, and the
//!   lowest may be an error.
//! - A mismatch takes the third lowest. The paper takes the median, which fills small holes in the background
//!   with the disparities of objects in front of it; on images with ground truth the errors were greater.
//!
//! If fewer are found, the highest of them is taken; a pixel for which none is found stays [`INVALID`].
//!
//! **Numbers.** Results are values of the input. Values that are not finite are invalid.

pub(crate) mod gpu;

use super::INVALID;
use crate::device::{Cpu, dispatch};
use crate::image::{ImageView, ImageViewMut, Size};
use crate::{Error, Result};
use fearless_simd::Simd;
use fearless_simd::prelude::*;
use fearless_simd_macros::simd;
use std::ops::Range;

/// Fills the invalid pixels of `disparity`. `occluded` marks the occlusions among them (see
/// [`consistency_check::occluded`](super::consistency_check::occluded)); without it all count as occlusions.
///
/// # Errors
/// [`Error::Image`] for an empty map or several channels, [`Error::Mismatch`] when the sizes differ.
pub fn fill(
    disparity: ImageViewMut<'_, f32>,
    occluded: Option<ImageView<'_, bool>>,
    cpu: &Cpu,
) -> Result<()> {
    disparity.view().require_grey()?;
    if let Some(other) = occluded.map(|o| o.size()).filter(|&s| s != disparity.size()) {
        let size = disparity.size();
        return Err(Error::Mismatch(format!(
            "the disparities are {size}, the occlusions {other}: expected one size"
        )));
    }
    let _stage = cpu.stage("fill");
    let map = disparity.view();
    let gaps = cpu.map(map.size().height, |y| gaps(map.row(y)));
    // One task follows the rays upwards, the other downwards.
    let rays = cpu.try_map(2, |i| Ok(dispatch!(cpu.level(), simd => look(simd, map, &gaps, i == 0))))?;
    cpu.for_bands(disparity, 1, |y, row| {
        let (rays, occluded) = ([rays[0].row(y), rays[1].row(y)], occluded.map(|o| o.row(y)));
        dispatch!(cpu.level(), simd => fill_row(simd, row.row_mut(0), &gaps[y], rays, occluded));
    })
}

/// The runs of invalid pixels of a row.
fn gaps(row: &[f32]) -> Vec<Range<usize>> {
    let mut gaps = Vec::new();
    let mut x = 0;
    while let Some(n) = row[x..].iter().position(|v| !v.is_finite()) {
        let start = x + n;
        x = row[start..].iter().position(|v| v.is_finite()).map_or(row.len(), |n| start + n);
        gaps.push(start..x);
    }
    gaps
}

/// The nearest valid values along the three rays upwards, or downwards, from the invalid pixels.
struct Rays {
    found: [Vec<f32>; 3],
    /// The range of `found` that holds the invalid pixels of row y.
    rows: Vec<Range<usize>>,
}

impl Rays {
    fn row(&self, y: usize) -> [&[f32]; 3] {
        self.found.each_ref().map(|f| &f[self.rows[y].clone()])
    }
}

/// Follows the three rays upwards, or downwards, from every invalid pixel.
#[simd]
fn look<S: Simd>(simd: S, map: ImageView<'_, f32>, gaps: &[Vec<Range<usize>>], upwards: bool) -> Rays {
    let Size { width, height } = map.size();
    // The previous row's disparities or, where there are none, what its rays found; padded by a pixel at both ends.
    let mut before = [vec![INVALID; width + 2], vec![INVALID; width + 2], vec![INVALID; width + 2]];
    let mut here = before.clone();
    let count = gaps.iter().flatten().map(Range::len).sum();
    let found = std::array::from_fn(|_| Vec::with_capacity(count));
    let mut rays = Rays { found, rows: vec![0..0; height] };
    for i in 0..height {
        let y = if upwards { i } else { height - 1 - i };
        let start = rays.found[0].len();
        for (ray, found) in rays.found.iter_mut().enumerate() {
            for gap in &gaps[y] {
                found.extend_from_slice(&before[ray][gap.start + ray..gap.end + ray]);
            }
        }
        rays.rows[y] = start..rays.found[0].len();
        for (ray, (here, before)) in here.iter_mut().zip(&before).enumerate() {
            show(simd, map.row(y), &before[ray..], &mut here[1..=width]);
        }
        std::mem::swap(&mut before, &mut here);
    }
    rays
}

/// The value of each pixel for rays from the next row: its own if it is valid, otherwise the one that its ray found.
#[inline(always)]
fn show<S: Simd>(simd: S, row: &[f32], seen: &[f32], out: &mut [f32]) {
    let (lanes, limit) = (S::f32s::LEN, S::f32s::splat(simd, f32::MAX));
    let whole = row.len() / lanes * lanes;
    for x in (0..whole).step_by(lanes) {
        let v = S::f32s::from_slice(simd, &row[x..x + lanes]);
        let seen = S::f32s::from_slice(simd, &seen[x..x + lanes]);
        v.abs().simd_le(limit).select(v, seen).store_slice(&mut out[x..x + lanes]);
    }
    for x in whole..row.len() {
        out[x] = if row[x].is_finite() { row[x] } else { seen[x] };
    }
}

#[simd]
fn fill_row<S: Simd>(
    _: S,
    row: &mut [f32],
    gaps: &[Range<usize>],
    [up, down]: [[&[f32]; 3]; 2],
    occluded: Option<&[bool]>,
) {
    let mut done = 0;
    for gap in gaps {
        let left = gap.start.checked_sub(1).map_or(INVALID, |x| row[x]);
        let right = row.get(gap.end).copied().unwrap_or(INVALID);
        let row = &mut row[gap.clone()];
        let seen = done..done + row.len();
        done = seen.end;
        if left.is_finite() != right.is_finite() {
            row.fill(lower(left, right));
            continue;
        }
        let rays = [up[0], up[1], up[2], down[0], down[1], down[2]].map(|ray| &ray[seen.clone()]);
        let occluded = occluded.map(|o| &o[gap.clone()]);
        for (i, v) in row.iter_mut().enumerate() {
            *v = choose([left, right], rays, i, occluded.is_none_or(|o| o[i]));
        }
    }
}

/// The second lowest (background) or third lowest of the values found; of fewer, the highest.
#[inline(always)]
fn choose(sides: [f32; 2], rays: [&[f32]; 6], i: usize, background: bool) -> f32 {
    let (mut first, mut second) = (lower(sides[0], sides[1]), higher(sides[0], sides[1]));
    let mut third = INVALID;
    for ray in rays {
        let v = ray[i];
        third = lower(third, higher(second, v));
        second = lower(second, higher(first, v));
        first = lower(first, v);
    }
    let second = if second < INVALID { second } else { first };
    if third < INVALID && !background { third } else { second }
}

/// The lower of two values, neither of which is NaN. Unlike `f32::min` it is one instruction.
#[inline(always)]
fn lower(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

#[inline(always)]
fn higher(a: f32, b: f32) -> f32 {
    if a < b { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Image;
    use crate::image::testing::assert_same;
    use crate::stereo::testing::{after, cpus, maps};

    const RAYS: [(i64, i64); 8] = [(-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (1, -1), (-1, 1), (1, 1)];

    fn reference(map: &Image<f32>, occluded: Option<&Image<bool>>) -> Image<f32> {
        let inside = |x: i64, y: i64| {
            let Size { width, height } = map.size();
            x >= 0 && y >= 0 && x < width as i64 && y < height as i64
        };
        let nearest = |x: usize, y: usize, (dx, dy): (i64, i64)| {
            let at = |i: i64| (x as i64 + i * dx, y as i64 + i * dy);
            let ray = (1..).map(at).take_while(|&(x, y)| inside(x, y));
            ray.map(|(x, y)| map.row(y as usize)[x as usize]).find(|v| v.is_finite())
        };
        Image::from_fn(map.size(), |x, y| {
            if map.row(y)[x].is_finite() {
                return map.row(y)[x];
            }
            let mut found: Vec<f32> = RAYS.iter().filter_map(|&ray| nearest(x, y, ray)).collect();
            found.sort_by(f32::total_cmp);
            let rank = if occluded.is_none_or(|o| o.row(y)[x]) { 1 } else { 2 };
            match (nearest(x, y, RAYS[0]), nearest(x, y, RAYS[1])) {
                (Some(side), None) | (None, Some(side)) => side,
                _ if found.is_empty() => INVALID,
                _ => found[rank.min(found.len() - 1)],
            }
        })
    }

    #[test]
    fn equals_looking_along_rays() {
        for mut map in maps() {
            // Turns −0 into 0, since the order of the two is not defined.
            map.data_mut().iter_mut().for_each(|v| *v += 0.0);
            let occluded = Image::from_fn(map.size(), |x, y| (x / 3 + y) % 2 == 0);
            for occluded in [None, Some(&occluded)] {
                let expected = reference(&map, occluded);
                for cpu in cpus() {
                    let found = after(&map, |map| fill(map, occluded.map(Image::view), &cpu));
                    assert_same(&found, &expected, map.size());
                }
            }
        }
    }

    #[test]
    fn occlusions_take_the_background() {
        // Background 2 to the left, foreground 9 to the right, a hidden strip between.
        let truth = |x: usize| if x < 16 { 2.0 } else { 9.0 };
        let size = Size::new(24, 9);
        let mut map = Image::from_fn(size, |x, _| if (12..16).contains(&x) { INVALID } else { truth(x) });
        fill(map.view_mut(), None, &Cpu::sequential()).unwrap();
        assert_eq!(map, Image::from_fn(size, |x, _| truth(x)));
    }
}
