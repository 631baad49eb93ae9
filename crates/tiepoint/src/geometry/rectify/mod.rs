//! Rectification: two pictures are turned so that corresponding points lie in the same row.
//!
//! If the cameras are known (`calibration`), both are turned in place, each by half of the rotation R between them
//! (Bouguet's method, as in OpenCV), then together so that the baseline runs along x and the mean of both optical axes
//! lies in the plane y = 0. No other rotations that rectify turn the pictures less. Both get one focal length f, the
//! mean of the two that keep the scale in the middle of each picture, and principal points that follow from the
//! [`OutputFrame`]. The pictures of a vertical rig come out turned by 90°.
//!
//! A pixel (x, y) of the result shows the input at the projection, lens included, of
//! Rᵢᵀ ((x − cx)/f, (y − cy)/f, 1)ᵀ. Places are f64, in the order written, without fusing; values are as in `warp`.
//!
//! Without a calibration, [`self_calibrate`] finds one from tie points. Views along parallel rays have none: they are
//! turned in their planes, scaled and shifted, by their affine epipolar geometry (`affine`).

mod affine;
mod agreement;
pub(crate) mod gpu;
mod half;
mod lens;
mod output_frame;
mod relative;
mod self_calibrate;
mod valid;

pub use agreement::{Agreement, SAME_DEPTH, WEAK_FOCAL};
pub(crate) use agreement::{confirmed_range, widened};
pub use output_frame::{OutputFrame, Principal};
pub use self_calibrate::{
    EpipolarTies, FromTiePoints, SelfCalibration, SelfCalibrationOptions, from_tie_points, self_calibrate,
};

use super::calibration::{Camera, Projection, RectifiedCalibration, StereoCalibration};
use super::matrix::{Mat3, product, times, transpose};
use super::warp::{Map, WarpOptions, coverage_by, warp_by};
use super::{Homography, matrix};
use crate::device::{Cpu, Level, dispatch};
use crate::image::{Image, ImageView, Pixel, Size};
use crate::options::options;
use crate::{Error, Result};
use fearless_simd::Simd;
use output_frame::framed;

options! {
    /// How to rectify.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct RectifyOptions {
        /// Which part of the pictures the results show, and how large.
        frame / with_frame: OutputFrame = OutputFrame::default(), flag "crop";
        /// Whether both results share their principal point.
        principal / with_principal: Principal = Principal::default();
    }
}

/// How one picture is rectified.
#[derive(Clone, Debug, PartialEq)]
pub struct RectifiedView {
    /// The camera that took the picture.
    pub camera: Camera,
    /// Size of the picture.
    pub input: Size,
    /// From this camera's axes to the rectified ones.
    pub rotation: [[f64; 3]; 3],
    /// Focal length after rectification.
    pub focal: f64,
    /// Principal point after rectification.
    pub principal: [f64; 2],
    /// Size of the result.
    pub size: Size,
}

/// A rectified pair: how each picture is warped, and the geometry of the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Rectification {
    /// The left view.
    pub left: RectifiedView,
    /// The right view.
    pub right: RectifiedView,
    /// Distance of the cameras, in the calibration's unit; without meaning for affine cameras.
    pub baseline: f64,
    /// How the cameras project.
    pub projection: Projection,
}

impl Rectification {
    /// Rectifies two cameras whose pictures have these sizes.
    ///
    /// # Errors
    /// As [`StereoCalibration::check`]; [`Error::Mismatch`] when the sizes are not the calibration's, or the
    /// left camera stands on the right; [`Error::Degenerate`] when one camera sees the other (or nearly so),
    /// when the views share no row, or when no rectangle is valid in both.
    pub fn new(rig: &StereoCalibration, sizes: [Size; 2], options: &RectifyOptions) -> Result<Self> {
        rig.check()?;
        check_sizes(rig, sizes)?;
        let rotations = half::rectifying(&rig.rotation, rig.translation)
            .ok_or_else(|| Error::Mismatch(EXCHANGED.into()))?;
        let [left, right] = framed(rig.cameras, rotations, sizes, options)?;
        Ok(Self { left, right, baseline: rig.baseline(), projection: Projection::Perspective })
    }

    /// The rectification that the calibration file holds (R1, R2, P1, P2).
    ///
    /// # Errors
    /// [`Error::Mismatch`] when there is none, or it does not belong to cameras side by side; as
    /// [`new`](Self::new) for the sizes.
    pub fn stored(rig: &StereoCalibration, sizes: [Size; 2]) -> Result<Self> {
        rig.check()?;
        check_sizes(rig, sizes)?;
        let Some(stored) = rig.stored else {
            return Err(Error::Mismatch("the calibration holds no rectification (R1, R2, P1, P2)".into()));
        };
        let pair = stored.calibration()?;
        let [cx, cy] = pair.principal;
        let [left, right] = [(0, cx), (1, cx + pair.doffs)].map(|(i, cx)| RectifiedView {
            camera: rig.cameras[i],
            input: sizes[i],
            rotation: stored.rotations[i],
            focal: pair.focal,
            principal: [cx, cy],
            size: sizes[0],
        });
        Ok(Self { left, right, baseline: pair.baseline, projection: Projection::Perspective })
    }

    /// Whether the left camera stands on the left, as [`new`](Self::new) demands; if not, exchange the
    /// pictures and take [`StereoCalibration::exchanged`].
    pub fn in_order(rig: &StereoCalibration) -> bool {
        half::rectifying(&rig.rotation, rig.translation).is_some()
    }

    /// The pair as `tiepoint::stereo` needs it.
    pub fn calibration(&self) -> RectifiedCalibration {
        if self.projection == Projection::Affine {
            return RectifiedCalibration::affine(Some(self.left.size), None);
        }
        RectifiedCalibration {
            size: Some(self.left.size),
            focal: self.left.focal,
            principal: self.left.principal,
            doffs: self.right.principal[0] - self.left.principal[0],
            baseline: self.baseline,
            range: None,
            projection: self.projection,
        }
    }

    /// Shifts the views against each other by whole pixels, so that disparities that began at `least` begin at 0. The
    /// frame grows to the right by the shift of the left view, so that nothing is lost.
    pub fn start_at(&mut self, least: f64) {
        let least = least.floor();
        if least < 0.0 {
            self.left.principal[0] -= least;
            let width = self.left.size.width.saturating_add(-least as usize);
            (self.left.size.width, self.right.size.width) = (width, width);
        } else {
            self.right.principal[0] += least;
        }
    }
}

const EXCHANGED: &str = "the left camera stands on the right: exchange the two pictures (and their cameras)";

fn check_sizes(rig: &StereoCalibration, sizes: [Size; 2]) -> Result<()> {
    if let Some(empty) = sizes.iter().find(|s| s.is_empty()) {
        return Err(Error::Image(format!("the picture to rectify is empty ({empty})")));
    }
    let differ = |(of, size): (&Option<Size>, &Size)| of.is_some_and(|of| of != *size);
    if !rig.sizes.iter().zip(&sizes).any(differ) {
        return Ok(());
    }
    let [left, right] = sizes;
    let told = match rig.sizes {
        [Some(one), Some(other)] if one != other => format!("{one} and {other}"),
        [one, other] => one.or(other).unwrap_or_default().to_string(),
    };
    Err(Error::Mismatch(format!(
        "the calibration is for pictures of {told}, but these are {left} and {right}: calibrate anew, or scale the pictures"
    )))
}

impl RectifiedView {
    /// The place in the result of a pixel of the picture, perhaps outside of the result; `None` where the lens images
    /// nothing, or where the ray does not meet the plane of the rectified view.
    pub fn place(&self, pixel: [f64; 2]) -> Option<[f64; 2]> {
        let [x, y] = self.camera.ray(pixel)?;
        let [x, y, z] = times(&self.rotation, [x, y, 1.0]);
        (z > 0.0).then(|| [self.focal * x / z + self.principal[0], self.focal * y / z + self.principal[1]])
    }

    /// The place in the picture of a pixel of the result; `None` behind the camera and beyond the lens's valid radius.
    pub fn source(&self, [x, y]: [f64; 2]) -> Option<[f64; 2]> {
        let ray = [(x - self.principal[0]) / self.focal, (y - self.principal[1]) / self.focal, 1.0];
        let [x, y, z] = times(&transpose(&self.rotation), ray);
        let place = [x / z, y / z];
        let within = z > 0.0 && place[0] * place[0] + place[1] * place[1] <= self.camera.distortion.reach();
        within.then(|| self.camera.pixel(place))
    }

    /// The homography from the undistorted picture to the result.
    ///
    /// # Errors
    /// [`Error::Degenerate`] when the numbers are so extreme that it is singular.
    pub fn homography(&self) -> Result<Homography> {
        let (f, [cx, cy]) = (self.focal, self.principal);
        let projection = [[f, 0.0, cx], [0.0, f, cy], [0.0, 0.0, 1.0]];
        let singular = Error::Degenerate { model: "homography", reason: "the camera's matrix is singular" };
        let back = matrix::inverse(&self.camera.matrix()).ok_or(singular)?;
        Homography::new(product(&projection, &product(&self.rotation, &back)))
    }

    /// Fails for a picture of another size than the view was made for.
    fn check_picture(&self, found: Size) -> Result<()> {
        if found == self.input {
            return Ok(());
        }
        Err(Error::Mismatch(format!("the picture is {found}, but the rectification is for {}", self.input)))
    }

    /// The rectified picture; the fill value where the input shows nothing.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when the picture does not have the size that this view was made for, and as
    /// [`warp`](super::warp::warp()).
    pub fn warp<T: Pixel>(
        &self,
        picture: ImageView<'_, T>,
        options: &WarpOptions,
        cpu: &Cpu,
    ) -> Result<Image<T>> {
        self.check_picture(picture.size())?;
        warp_by(picture, &Inverse::of(self), self.size, options, cpu)
    }

    /// 255 where [`warp`](Self::warp) finds input, 0 where it fills.
    ///
    /// # Errors
    /// [`Error::Memory`] when the result is too large to be held.
    pub fn coverage(&self, cpu: &Cpu) -> Result<Image<u8>> {
        coverage_by(self.input, &Inverse::of(self), self.size, cpu)
    }
}

/// The map from the result to the picture, prepared for whole rows.
#[derive(Clone, Debug)]
struct Inverse {
    view: RectifiedView,
    reach: f64,
    back: Mat3,
}

impl Inverse {
    fn of(view: &RectifiedView) -> Self {
        Self { view: view.clone(), reach: view.camera.distortion.reach(), back: transpose(&view.rotation) }
    }
}

impl Map for Inverse {
    fn part(&self, first: usize, y: f64, u: &mut [f64], v: &mut [f64], level: Level) {
        dispatch!(level, simd => sources(simd, self, first, y, u, v));
    }
}

/// [`RectifiedView::source`] for a row from pixel `first` on, by the same operations.
#[inline(always)]
fn sources<S: Simd>(_simd: S, map: &Inverse, first: usize, y: f64, us: &mut [f64], vs: &mut [f64]) {
    let RectifiedView { focal, camera, principal, .. } = map.view;
    let (reach, m) = (map.reach, map.back);
    let ray_y = (y - principal[1]) / focal;
    let n = us.len();
    let vs = &mut vs[..n];
    for i in 0..n {
        let x = f64::from((first as i32).wrapping_add(i as i32));
        let ray_x = (x - principal[0]) / focal;
        let x = m[0][0] * ray_x + m[0][1] * ray_y + m[0][2];
        let y = m[1][0] * ray_x + m[1][1] * ray_y + m[1][2];
        let z = m[2][0] * ray_x + m[2][1] * ray_y + m[2][2];
        let place = [x / z, y / z];
        let within = (z > 0.0) & (place[0] * place[0] + place[1] * place[1] <= reach);
        let [u, v] = camera.pixel(place);
        us[i] = if within { u } else { f64::NAN };
        vs[i] = v;
    }
}

#[cfg(test)]
mod tests;
