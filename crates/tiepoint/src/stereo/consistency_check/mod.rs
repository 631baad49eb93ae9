//! Consistency of the two views (Hirschmüller, PAMI 2008, section 2.4), and the pixels of the left view that are hidden
//! in the right one (section 2.5.3).
//!
//! Pixel x of one view with disparity d corresponds to pixel x − d (left to right) or x + d (right to left) of the
//! other, with d rounded to the nearest whole number, ties to even. It is kept if that pixel exists and its disparity
//! differs from d by at most the limit; otherwise it becomes [`INVALID`].
//!
//! **Occlusion or mismatch.** A left pixel x is *occluded* if no surface of the right view covers it: if no right pixel
//! x′ has a disparity within [`SURFACE`] of x − x′. An invalid pixel that is not occluded has a counterpart, but was
//! not matched with it: a *mismatch*.
//!
//! **Numbers.** Disparities are subtracted in f32. Values that are not finite are invalid and agree with
//! nothing.

pub(crate) mod gpu;

use super::{INVALID, View};
use crate::device::{Cpu, dispatch};
use crate::image::{Image, ImageView, ImageViewMut};
use crate::{Error, Result};
use fearless_simd::Simd;
use fearless_simd_macros::simd;

/// A surface of the right view covers the left pixels that are at most this far from where it lies, in pixels.
pub const SURFACE: f32 = 1.0;

/// Rows of one task.
const BAND: usize = 16;

/// Invalidates the pixels of `map`, the disparities of `view`, that `other`, those of the other view, does not confirm
/// to within `max_difference` pixels.
///
/// # Errors
/// [`Error::Mismatch`] when the maps differ in size, [`Error::Image`] for an empty map or several channels,
/// [`Error::Option`] when the limit is negative or not finite.
pub fn check(
    map: ImageViewMut<'_, f32>,
    other: ImageView<'_, f32>,
    view: View,
    max_difference: f32,
    cpu: &Cpu,
) -> Result<()> {
    map.view().require_grey()?;
    other.require_grey()?;
    if map.size() != other.size() {
        let (a, b) = (map.size(), other.size());
        return Err(Error::Mismatch(format!("the views' disparity maps are {a} and {b}: expected one size")));
    }
    if !(max_difference >= 0.0 && max_difference.is_finite()) {
        return Err(Error::option("max_difference", max_difference, "pixels, 0 or more"));
    }
    let _stage = cpu.stage("check");
    let sign = view.sign();
    cpu.for_bands(map, BAND, |start, band| {
        for i in 0..band.size().height {
            let (row, other) = (band.row_mut(i), other.row(start + i));
            dispatch!(cpu.level(), simd => check_row(simd, row, other, sign, max_difference));
        }
    })
}

/// Shifts are rounded a block at a time, in vectors.
#[simd]
fn check_row<S: Simd>(_: S, row: &mut [f32], other: &[f32], sign: f32, limit: f32) {
    let mut shifts = [0_i32; 64];
    for (block, row) in row.chunks_mut(shifts.len()).enumerate() {
        for (shift, d) in shifts.iter_mut().zip(&*row) {
            *shift = (sign * d).round_ties_even() as i32;
        }
        let first = (block * shifts.len()) as i64;
        for ((x, d), shift) in (first..).zip(row).zip(shifts) {
            let found = other.get((x - i64::from(shift)) as usize).copied().unwrap_or(INVALID);
            *d = if (found - *d).abs() <= limit { *d } else { INVALID };
        }
    }
}

/// The pixels of the left view that are occluded: true where no surface of the right view covers the pixel. `right`
/// holds the disparities of the right view, in pixels.
///
/// # Errors
/// [`Error::Image`] for an empty map or several channels.
pub fn occluded(right: ImageView<'_, f32>, cpu: &Cpu) -> Result<Image<bool>> {
    right.require_grey()?;
    let _stage = cpu.stage("occlusion");
    let mut out = Image::filled(right.size(), 1, true);
    let width = right.size().width;
    cpu.try_for_chunks(out.data_mut(), width * BAND, |band, rows| {
        for (i, out) in rows.chunks_mut(width).enumerate() {
            let right = right.row(band * BAND + i);
            dispatch!(cpu.level(), simd => uncover(simd, right, out));
        }
    })?;
    Ok(out)
}

#[simd]
fn uncover<S: Simd>(_: S, right: &[f32], out: &mut [bool]) {
    let mut spans = [[0_i32; 2]; 64];
    for (block, right) in right.chunks(spans.len()).enumerate() {
        for (span, &d) in spans.iter_mut().zip(right) {
            let d = if d.is_finite() { d } else { INVALID };
            *span = [(d - SURFACE).ceil() as i32, (d + SURFACE).floor() as i32];
        }
        let first = (block * spans.len()) as i64;
        for (x, [low, high]) in (first..).zip(&spans[..right.len()]) {
            let (low, high) = (x + i64::from(*low), x + i64::from(*high));
            // All two or three pixels in this interval.
            for place in [low, high.min(low + 1), high] {
                if let Some(out) = out.get_mut(place as usize) {
                    *out = false;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Size;
    use crate::image::testing::assert_same;
    use crate::stereo::testing::{after, cpus, maps};

    fn reference(map: &Image<f32>, other: &Image<f32>, view: View, limit: f32) -> Image<f32> {
        Image::from_fn(map.size(), |x, y| {
            let d = map.row(y)[x];
            let shift = f64::from(d).round_ties_even();
            let place = if view == View::Left { x as f64 - shift } else { x as f64 + shift };
            let inside = d.is_finite() && place >= 0.0 && place < map.size().width as f64;
            let confirmed = inside && (other.row(y)[place as usize] - d).abs() <= limit;
            if confirmed { d } else { INVALID }
        })
    }

    fn occluded_reference(right: &Image<f32>) -> Vec<bool> {
        let Size { width, height } = right.size();
        let hits = |x: usize, d: f32, xr: usize| d.is_finite() && (x as f32 - xr as f32 - d).abs() <= SURFACE;
        let occluded = |x, y: usize| !right.row(y).iter().enumerate().any(|(xr, &d)| hits(x, d, xr));
        (0..height).flat_map(|y| (0..width).map(move |x| (x, y))).map(|(x, y)| occluded(x, y)).collect()
    }

    #[test]
    fn equals_the_definition() {
        let maps = maps();
        for pair in maps.windows(2).filter(|p| p[0].size() == p[1].size()) {
            for (view, limit) in [(View::Left, 1.0), (View::Right, 0.0), (View::Left, 2.5)] {
                let expected = reference(&pair[0], &pair[1], view, limit);
                for cpu in cpus() {
                    let found = after(&pair[0], |map| check(map, pair[1].view(), view, limit, &cpu));
                    assert_same(&found, &expected, format_args!("{} {view:?} {limit}", found.size()));
                }
            }
        }
    }

    #[test]
    fn occlusions_equal_the_definition() {
        for map in maps() {
            let expected = occluded_reference(&map);
            for cpu in cpus() {
                assert_eq!(occluded(map.view(), &cpu).unwrap().data(), expected, "{}", map.size());
            }
        }
    }

    #[test]
    fn a_foreground_hides_a_strip_of_its_width() {
        // Right view: background at 2, a square at 6 from x′ = 20 to 29; left view: the square at 26 to 35.
        let right = Image::from_fn(Size::new(60, 1), |x, _| if (20..30).contains(&x) { 6.0 } else { 2.0 });
        let hidden = occluded(right.view(), &Cpu::sequential()).unwrap();
        let hidden: Vec<usize> = (0..60).filter(|&x| hidden.row(0)[x]).collect();
        // 22 to 25 are hidden beside the square, 0 and 1 are outside the right image; a surface covers one pixel more.
        assert_eq!(hidden, [0, 23, 24]);
    }

    #[test]
    fn maps_and_limits_that_do_not_fit_are_errors() {
        let (a, b) = (Image::filled(Size::new(3, 2), 1, 1.0), Image::filled(Size::new(2, 3), 1, 1.0));
        let cpu = Cpu::sequential();
        for (other, limit, why) in
            [(&b, 1.0, "sizes differ"), (&a, f32::NAN, "limit is no number"), (&a, -1.0, "limit is negative")]
        {
            assert!(check(a.clone().view_mut(), other.view(), View::Left, limit, &cpu).is_err(), "{why}");
        }
    }

    #[test]
    fn huge_disparities_are_invalid() {
        let mut map = Image::from_vec(vec![1e30, -1e30, 3e9, f32::MAX], Size::new(4, 1), 1).unwrap();
        let other = map.clone();
        check(map.view_mut(), other.view(), View::Right, 1.0, &Cpu::sequential()).unwrap();
        assert!(map.data().iter().all(|&v| v == INVALID), "{:?}", map.data());
        let hidden = occluded(other.view(), &Cpu::sequential()).unwrap();
        assert!(hidden.data().iter().all(|&o| o), "nothing is hit");
    }
}
