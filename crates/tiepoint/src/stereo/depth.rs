//! Depth from disparity: **Z = baseline · focal / (disparity + doffs)**.
//!
//! `doffs` = cx₁ − cx₀, right less left (Middlebury's convention): disparity + doffs is the disparity for equal
//! principal points in both images, and 0 is infinitely far. Disparity and focal length are in
//! pixels, Z has the unit of the baseline and is measured along the optical axis. A pixel without disparity
//! (infinite, NaN) or with disparity + doffs ≤ 0 has no depth: +∞. Computed in f64 in the order written,
//! rounded to f32.

use crate::device::Cpu;
use crate::geometry::calibration::RectifiedCalibration;
use crate::image::{Image, ImageView};
use crate::{Error, Result};

/// Rows that one task computes.
const BAND: usize = 64;

/// The depth of every pixel of the left view; +∞ where there is none.
///
/// # Errors
/// [`Error::Mismatch`] when the calibration is for images of another size, or of an affine pair, which has no depth, and
/// as [`RectifiedCalibration::check`];
/// [`Error::Image`] when the disparities have several channels.
pub fn depth(
    disparity: ImageView<'_, f32>,
    calibration: &RectifiedCalibration,
    cpu: &Cpu,
) -> Result<Image<f32>> {
    check(disparity, calibration)?;
    let _stage = cpu.stage("depth");
    let mut out = Image::new(disparity.size());
    let pair = *calibration;
    cpu.for_bands(out.view_mut(), BAND, |start, band| {
        let z = |d: f32| pair.depth(f64::from(d)).map_or(f32::INFINITY, |z| z as f32);
        for i in 0..band.size().height {
            band.row_mut(i).iter_mut().zip(disparity.row(start + i)).for_each(|(o, d)| *o = z(*d));
        }
    })?;
    Ok(out)
}

/// Fails unless disparities and calibration belong together.
pub(super) fn check(disparity: ImageView<'_, f32>, calibration: &RectifiedCalibration) -> Result<()> {
    let (found, channels) = (disparity.size(), disparity.channels());
    if channels != 1 {
        return Err(Error::Image(format!("disparities have {channels} channels, expected 1")));
    }
    calibration.check_metric()?;
    match calibration.size {
        Some(size) if size != found => Err(Error::Mismatch(format!(
            "the calibration is for images of {size}, but the disparities are {found}"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::calibration::Projection;
    use crate::image::Size;

    fn pair() -> RectifiedCalibration {
        RectifiedCalibration {
            size: Some(Size::new(3, 2)),
            focal: 3997.684,
            principal: [1176.728, 1011.728],
            doffs: 131.111,
            baseline: 193.001,
            range: None,
            projection: Projection::Perspective,
        }
    }

    #[test]
    fn the_formula_and_its_edges() {
        let values = vec![0.0, 100.0, -131.111, -200.0, f32::INFINITY, f32::NAN];
        let map = Image::from_vec(values, Size::new(3, 2), 1).unwrap();
        let found = depth(map.view(), &pair(), &Cpu::sequential()).unwrap();
        let near = |a: f32, b: f64| (f64::from(a) / b - 1.0).abs() < 1e-6;
        assert!(near(found.data()[0], 193.001 * 3997.684 / 131.111), "{}", found.data()[0]);
        assert!(near(found.data()[1], 193.001 * 3997.684 / 231.111), "{}", found.data()[1]);
        // −131.111 as f32 is not exactly −doffs, so the depth is either infinite or very large.
        assert!(found.data()[2] > 1e10, "infinitely far");
        assert_eq!(&found.data()[3..], [f32::INFINITY; 3], "behind the cameras, or no disparity");
    }

    #[test]
    fn threads_and_sizes() {
        let size = Size::new(701, 203);
        let map = Image::from_fn(size, |x, y| (x * y % 977) as f32 * 0.37);
        let unsized_pair = RectifiedCalibration { size: None, ..pair() };
        let one = depth(map.view(), &unsized_pair, &Cpu::sequential()).unwrap();
        for threads in [2, 5] {
            let cpu = Cpu::with_threads(threads).unwrap();
            assert_eq!(depth(map.view(), &unsized_pair, &cpu).unwrap(), one, "{threads} threads");
        }
        assert!(depth(map.view(), &pair(), &Cpu::sequential()).is_err(), "another size");
        let affine = RectifiedCalibration::affine(Some(size), None);
        assert!(depth(map.view(), &affine, &Cpu::sequential()).is_err(), "an affine pair");
        for baseline in [-1.0, 0.0, f64::NAN] {
            let wrong = RectifiedCalibration { baseline, ..unsized_pair };
            assert!(depth(map.view(), &wrong, &Cpu::sequential()).is_err(), "a baseline of {baseline}");
        }
        let colours = Image::filled(Size::new(3, 2), 3, 1.0_f32);
        assert!(depth(colours.view(), &pair(), &Cpu::sequential()).is_err(), "three channels");
    }
}
