//! Calibrated cameras, and the files that describe them.
//!
//! [`StereoCalibration`] describes two cameras and their relative pose, which rectification needs.
//! [`RectifiedCalibration`] describes a pair that is already rectified, and turns disparity into depth. Both are read
//! from
//! - OpenCV YAML, XML and JSON, under the names that its samples and most programs give: `M1 D1 M2 D2 R T`
//!   (`K1`, `cameraMatrix1`, `distCoeffs1`, …), `R1 R2 P1 P2 Q`, in one file or in several (intrinsics and
//!   extrinsics; or one `camera_matrix` file a camera, the left one first);
//! - ROS `camera_info`, the left camera's file and the right one's: `camera_matrix distortion_coefficients
//!   rectification_matrix projection_matrix`, or a printed message with `D K R P`, in YAML of any style. Their pose is that of
//!   the rectification, R = R₂ᵀ R₁;
//! - Kalibr's `camchain.yaml` of two cameras;
//! - KITTI `calib.txt` and `calib_cam_to_cam.txt`, of a rectified pair: `P2 P3`, or `P0 P1`;
//! - Middlebury `calib.txt`: `cam0 cam1 doffs baseline width height ndisp vmin vmax`;
//! - s2p's `disp_min_max.txt`: the range of an affine pair.
//!
//! **Conventions.** A point at X in the left camera lies at R X + T in the right one (OpenCV), so a left
//! camera that is on the left has T₀ < 0. x right, y down, z forward. Lengths keep the unit of T or
//! `baseline`.

mod camera;
mod document;
mod flow;
mod kalibr;
mod kitti;
mod middlebury;
mod opencv;
mod rectified;
mod ros;
mod s2p;
mod xml;
mod yaml;

pub use camera::{Camera, Distortion};
pub use rectified::{Projection, RectifiedCalibration};

use super::matrix::{Mat3, dot, product, times, transpose};
use crate::files::{read_within, text_of};
use crate::image::Size;
use crate::{Error, Result};
use document::Document;
use std::path::Path;

/// The most bytes of a calibration file; real ones have thousands.
pub const MAX_BYTES: u64 = 1 << 20;

/// Two cameras and their relative pose.
#[derive(Clone, Debug, PartialEq)]
pub struct StereoCalibration {
    /// The left camera, then the right.
    pub cameras: [Camera; 2],
    /// The sizes of the left and of the right images that this calibration is valid for, if the file says them.
    pub sizes: [Option<Size>; 2],
    /// R: a point X of the left camera is R X + T in the right one.
    pub rotation: [[f64; 3]; 3],
    /// T, in the caller's unit of length.
    pub translation: [f64; 3],
    /// The rectification that the file holds, if it does.
    pub stored: Option<StoredRectification>,
}

/// R1, R2, P1 and P2 of OpenCV's `stereoRectify`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoredRectification {
    /// From each camera to the rectified one.
    pub rotations: [[[f64; 3]; 3]; 2],
    /// The rectified cameras' projections.
    pub projections: [[[f64; 4]; 3]; 2],
}

impl StoredRectification {
    /// The rectified pair that the projections describe.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when they are not those of cameras side by side.
    pub fn calibration(&self) -> Result<RectifiedCalibration> {
        opencv::from_projections(&self.projections).map_err(Error::Mismatch)
    }
}

impl StereoCalibration {
    /// Reads a calibration from one file, or from several that complete each other.
    ///
    /// # Errors
    /// [`Error::Io`] when a file cannot be read, [`Error::Format`] naming the file, line and key when it is
    /// not a calibration or lacks something.
    pub fn read(paths: &[impl AsRef<Path>]) -> Result<Self> {
        let documents: Vec<Document> = paths.iter().map(|p| load(p.as_ref())).collect::<Result<_>>()?;
        opencv::stereo(&documents)
    }

    /// As [`read`](Self::read), from the contents of a file, which errors call `name`.
    ///
    /// # Errors
    /// As [`read`](Self::read), except [`Error::Io`].
    pub fn parse(text: &str, name: impl AsRef<Path>) -> Result<Self> {
        opencv::stereo(&[Document::parse(text, name.as_ref())?])
    }

    /// Checks cameras, rotation and translation.
    ///
    /// # Errors
    /// [`Error::Mismatch`] says what is wrong.
    pub fn check(&self) -> Result<()> {
        self.cameras.iter().try_for_each(Camera::check)?;
        check_rotation("R", &self.rotation).map_err(Error::Mismatch)?;
        let length = self.baseline();
        if length > 1e-12 && length < 1e12 {
            return Ok(());
        }
        Err(Error::Mismatch(format!(
            "the cameras are {length} apart: expected a translation T that is not 0"
        )))
    }

    /// The distance of the two cameras.
    pub fn baseline(&self) -> f64 {
        dot(self.translation, self.translation).sqrt()
    }

    /// The calibration with the cameras exchanged, without a stored rectification.
    #[must_use]
    pub fn exchanged(&self) -> Self {
        let rotation = transpose(&self.rotation);
        let [left, right] = self.cameras;
        Self {
            cameras: [right, left],
            sizes: [self.sizes[1], self.sizes[0]],
            translation: times(&rotation, self.translation).map(|v| -v),
            rotation,
            stored: None,
        }
    }
}

/// The contents of a file of at most [`MAX_BYTES`] of text.
fn load(path: &Path) -> Result<Document> {
    let bytes = read_within(path, MAX_BYTES, "a calibration")?;
    Document::parse(text_of(&bytes, "a calibration").map_err(|reason| Error::format(path, reason))?, path)
}

/// Fails with a reason unless `m` is a rotation to a thousandth.
fn check_rotation(name: &str, m: &Mat3) -> std::result::Result<(), String> {
    let square = product(m, &transpose(m));
    let off =
        (0..9).map(|i| (square[i / 3][i % 3] - f64::from(u8::from(i % 4 == 0))).abs()).fold(0.0, f64::max);
    let det = super::matrix::determinant(m);
    if off < 1e-3 && det > 0.0 {
        return Ok(());
    }
    Err(format!(
        "{name} is not a rotation: {name} {name}ᵀ is off the identity by {off:.3}, determinant {det:.3}"
    ))
}

#[cfg(test)]
mod tests;
