//! A rectified pair: what turns disparity into depth.

use super::document::{Document, Syntax};
use super::{load, opencv};
use crate::files::write_atomically;
use crate::image::Size;
use crate::{Error, Result};
use std::io::Write;
use std::path::Path;

/// How the cameras of a rectified pair project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Projection {
    /// Through a centre: disparity tells depth.
    #[default]
    Perspective,
    /// Along parallel rays, as telephoto, aerial and satellite cameras nearly do: rows correspond, and disparity grows
    /// with height, but at an unknown rate from an unknown level. It tells no metric depth.
    Affine,
}

/// Two cameras side by side with parallel axes and one focal length, whose rows correspond.
///
/// A point at depth Z appears in the left image at x and in the right one at x − d, with
/// **Z = baseline · focal / (d + doffs)** and doffs = cx₁ − cx₀, the right camera's less the left's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RectifiedCalibration {
    /// Pixels of the images, if the file says.
    pub size: Option<Size>,
    /// Focal length of both cameras, pixels.
    pub focal: f64,
    /// Principal point of the left camera, pixels.
    pub principal: [f64; 2],
    /// cx of the right camera less that of the left, pixels.
    pub doffs: f64,
    /// Distance of the cameras; its unit is that of the depth.
    pub baseline: f64,
    /// The least and greatest disparity to be expected, if known.
    pub range: Option<[f64; 2]>,
    /// How the cameras project. Of an affine pair only size and range mean anything.
    pub projection: Projection,
}

impl RectifiedCalibration {
    /// Reads Middlebury `calib.txt`, or `P1` and `P2`, or `Q`, from OpenCV YAML or XML.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) when the file cannot be read, [`Error::Format`](crate::Error::Format)
    /// naming the file, line and key when it is not a calibration of a rectified pair.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        Self::of(&load(path.as_ref())?)
    }

    /// As [`read`](Self::read), from the contents of a file; `name` stands for it in errors.
    ///
    /// # Errors
    /// As [`read`](Self::read), without the reading.
    pub fn parse(text: &str, name: impl AsRef<Path>) -> Result<Self> {
        Self::of(&Document::parse(text, name.as_ref())?)
    }

    fn of(document: &Document) -> Result<Self> {
        match document.syntax {
            Syntax::Middlebury => opencv::middlebury(document),
            Syntax::Yaml | Syntax::Xml => opencv::rectified(document),
        }
    }

    /// A pair of affine cameras.
    pub const fn affine(size: Option<Size>, range: Option<[f64; 2]>) -> Self {
        let (focal, principal, doffs, baseline) = (1.0, [0.0; 2], 0.0, 1.0);
        Self { size, focal, principal, doffs, baseline, range, projection: Projection::Affine }
    }

    /// Fails for a pair that tells no depth.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for an affine pair.
    pub fn check_metric(&self) -> Result<()> {
        match self.projection {
            Projection::Perspective => Ok(()),
            Projection::Affine => Err(Error::Mismatch(
                "the pair was rectified without perspective (affine cameras): its disparities tell no metric depth; \
                 give the calibration of perspective cameras"
                    .into(),
            )),
        }
    }

    /// Z for a disparity; `None` at infinity, behind the cameras, and for an affine pair.
    #[inline(always)]
    pub fn depth(&self, disparity: f64) -> Option<f64> {
        let sum = disparity + self.doffs;
        let told = sum > 0.0 && sum < f64::INFINITY && self.projection == Projection::Perspective;
        told.then(|| self.baseline * self.focal / sum)
    }

    /// OpenCV's Q: Q (x, y, d, 1)ᵀ ~ (X, Y, Z, 1)ᵀ.
    pub fn q(&self) -> [[f64; 4]; 4] {
        let [cx, cy] = self.principal;
        [
            [1.0, 0.0, 0.0, -cx],
            [0.0, 1.0, 0.0, -cy],
            [0.0, 0.0, 0.0, self.focal],
            [0.0, 0.0, 1.0 / self.baseline, self.doffs / self.baseline],
        ]
    }

    /// Middlebury's `calib.txt`; numbers keep every digit. An affine pair has `affine=1` in place of the cameras.
    pub fn to_text(&self) -> String {
        let (f, [cx, cy]) = (self.focal, self.principal);
        let camera = |cx: f64| format!("[{f} 0 {cx}; 0 {f} {cy}; 0 0 1]");
        let mut text = match self.projection {
            Projection::Affine => "affine=1\n".to_owned(),
            Projection::Perspective => {
                let cameras = format!("cam0={}\ncam1={}\n", camera(cx), camera(cx + self.doffs));
                cameras + &format!("doffs={}\nbaseline={}\n", self.doffs, self.baseline)
            }
        };
        if let Some(Size { width, height }) = self.size {
            text += &format!("width={width}\nheight={height}\n");
        }
        if let Some([low, high]) = self.range {
            let bound = high.max(0.0).ceil() as u32;
            text += &format!("ndisp={}\nvmin={low}\nvmax={high}\n", bound.saturating_add(1));
        }
        text
    }

    /// Writes [`to_text`](Self::to_text) to `path`, whole or not at all.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) when the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        write_atomically(path, |out| out.write_all(self.to_text().as_bytes()))
    }
}
