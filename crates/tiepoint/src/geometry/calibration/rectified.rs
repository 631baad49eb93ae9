//! A rectified pair, which turns disparity into depth.

use super::document::{Document, Names};
use super::{load, opencv, s2p};
use crate::files::{extension, write_atomically};
use crate::image::Size;
use crate::{Error, Result};
use std::io::Write;
use std::path::Path;

/// How the cameras of a rectified pair project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Projection {
    /// Through a centre: depth follows from disparity.
    #[default]
    Perspective,
    /// Along parallel rays, as telephoto, aerial and satellite cameras nearly do. Rows correspond, and disparity grows
    /// with height, but the rate and the zero level are unknown, so that there is no metric depth.
    Affine,
}

/// Two cameras side by side with parallel axes and one focal length, whose rows correspond.
///
/// A point at depth Z appears in the left image at x and in the right one at x − d, with
/// **Z = baseline · focal / (d + doffs)** and doffs = cx₁ − cx₀, the right camera's less the left's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RectifiedCalibration {
    /// Size of the images, if the file says it.
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
    /// How the cameras project. For an affine pair only size and range have a meaning.
    pub projection: Projection,
}

impl RectifiedCalibration {
    /// Reads Middlebury's or KITTI's `calib.txt`; `P1` and `P2`, or `Q`, from OpenCV YAML, XML or JSON; the right camera's
    /// `camera_info` of ROS; or s2p's `disp_min_max.txt`, an affine pair of which only the range is known.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) when the file cannot be read, [`Error::Format`](crate::Error::Format)
    /// naming the file, line and key when it is not a calibration of a rectified pair.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        Self::of(&load(path.as_ref())?)
    }

    /// As [`read`](Self::read), from the contents of a file, which errors call `name`.
    ///
    /// # Errors
    /// As [`read`](Self::read), except [`Error::Io`](crate::Error::Io).
    pub fn parse(text: &str, name: impl AsRef<Path>) -> Result<Self> {
        Self::of(&Document::parse(text, name.as_ref())?)
    }

    fn of(document: &Document) -> Result<Self> {
        match document.names {
            Names::Middlebury => opencv::middlebury(document),
            Names::OpenCv | Names::Kitti => opencv::rectified(document),
        }
    }

    /// The pair at half the size, `size`: pixel i of it covers the pixels 2i and 2i + 1.
    #[must_use]
    pub fn halved(&self, size: Size) -> Self {
        Self {
            size: Some(size),
            focal: 0.5 * self.focal,
            principal: self.principal.map(|c| 0.5 * (c + 0.5) - 0.5),
            doffs: 0.5 * self.doffs,
            range: self.range.map(|range| range.map(|d| 0.5 * d)),
            ..*self
        }
    }

    /// A pair of affine cameras.
    pub const fn affine(size: Option<Size>, range: Option<[f64; 2]>) -> Self {
        let (focal, principal, doffs, baseline) = (1.0, [0.0; 2], 0.0, 1.0);
        Self { size, focal, principal, doffs, baseline, range, projection: Projection::Affine }
    }

    /// Checks that focal length and baseline are above 0, and that all numbers are finite and below 10¹²; of an affine pair
    /// the range alone. [`read`](Self::read) gives no others.
    ///
    /// # Errors
    /// [`Error::Mismatch`] naming the wrong ones.
    pub fn check(&self) -> Result<()> {
        self.wrong().map_or(Ok(()), |reason| Err(Error::Mismatch(reason)))
    }

    /// What is wrong, if anything is.
    pub(super) fn wrong(&self) -> Option<String> {
        let Self { focal, principal, doffs, baseline, range, .. } = *self;
        let (positive, sound) = (|v: f64| v > 1e-9 && v < 1e12, |v: &f64| v.abs() < 1e12);
        if !range.iter().flatten().all(sound) {
            return Some("the range of disparities is not finite, or too large".into());
        }
        match self.projection {
            Projection::Affine => None,
            _ if !positive(focal) => Some(format!("the focal length is {focal}: expected pixels, above 0")),
            _ if !positive(baseline) => Some(format!(
                "the baseline is {baseline}: expected above 0; below 0 the right camera stands on the left"
            )),
            _ if !principal.iter().chain([&doffs]).all(sound) => {
                Some("a principal point is not finite, or too large".into())
            }
            _ => None,
        }
    }

    /// Fails for a pair without metric depth.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for an affine pair, and as [`check`](Self::check).
    pub fn check_metric(&self) -> Result<()> {
        match self.projection {
            Projection::Perspective => self.check(),
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

    /// OpenCV's matrices of a rectified pair: P1, P2 and Q, with the size of the images.
    fn matrices(&self) -> [(&'static str, [usize; 2], Vec<f64>); 3] {
        let (f, [cx, cy]) = (self.focal, self.principal);
        let camera = |cx: f64, along: f64| vec![f, 0.0, cx, along, 0.0, f, cy, 0.0, 0.0, 0.0, 1.0, 0.0];
        [
            ("P1", [3, 4], camera(cx, 0.0)),
            ("P2", [3, 4], camera(cx + self.doffs, -self.baseline * f)),
            ("Q", [4, 4], self.q().concat()),
        ]
    }

    /// As `cv2.FileStorage` writes YAML.
    fn to_yaml(self) -> String {
        let mut text = "%YAML:1.0\n---\n".to_owned();
        if let Some(Size { width, height }) = self.size {
            text += &format!("image_width: {width}\nimage_height: {height}\n");
        }
        for (name, [rows, cols], data) in self.matrices() {
            let data = data.iter().map(|v| format!("{v:?}")).collect::<Vec<_>>().join(", ");
            text += &format!(
                "{name}: !!opencv-matrix\n   rows: {rows}\n   cols: {cols}\n   dt: d\n   data: [ {data} ]\n"
            );
        }
        text
    }

    /// As `cv2.FileStorage` writes XML.
    fn to_xml(self) -> String {
        let mut text = "<?xml version=\"1.0\"?>\n<opencv_storage>\n".to_owned();
        if let Some(Size { width, height }) = self.size {
            text += &format!("<image_width>{width}</image_width>\n<image_height>{height}</image_height>\n");
        }
        for (name, [rows, cols], data) in self.matrices() {
            let data = data.iter().map(|v| format!("{v:?}")).collect::<Vec<_>>().join(" ");
            text += &format!(
                "<{name} type_id=\"opencv-matrix\">\n  <rows>{rows}</rows>\n  <cols>{cols}</cols>\n  <dt>d</dt>\n  <data>{data}</data></{name}>\n"
            );
        }
        text + "</opencv_storage>\n"
    }

    /// As `cv2.FileStorage` writes JSON.
    fn to_json(self) -> String {
        let mut all = serde_json::Map::new();
        if let Some(Size { width, height }) = self.size {
            all.extend([("image_width".into(), width.into()), ("image_height".into(), height.into())]);
        }
        for (name, [rows, cols], data) in self.matrices() {
            let matrix = serde_json::json!({
                "type_id": "opencv-matrix", "rows": rows, "cols": cols, "dt": "d", "data": data,
            });
            all.insert(name.into(), matrix);
        }
        format!("{:#}\n", serde_json::Value::Object(all))
    }

    /// ROS's `camera_info` of the right camera, whose projection holds the baseline.
    fn to_ros(self, Size { width, height }: Size) -> String {
        let [_, (_, _, right), _] = self.matrices();
        let camera: Vec<f64> = right.chunks(4).flat_map(|row| row[..3].to_vec()).collect();
        let mut text = format!(
            "image_width: {width}\nimage_height: {height}\ncamera_name: right\ndistortion_model: plumb_bob\n"
        );
        for (name, [rows, cols], data) in [
            ("camera_matrix", [3, 3], camera),
            ("distortion_coefficients", [1, 5], vec![0.0; 5]),
            ("rectification_matrix", [3, 3], crate::geometry::matrix::IDENTITY.concat()),
            ("projection_matrix", [3, 4], right),
        ] {
            let data = data.iter().map(|v| format!("{v:?}")).collect::<Vec<_>>().join(", ");
            text += &format!("{name}:\n  rows: {rows}\n  cols: {cols}\n  data: [{data}]\n");
        }
        text
    }

    /// Why a calibration without a size is probably not for rectified pictures of size `of`: a principal point lies
    /// outside the pictures.
    pub fn doubt(&self, of: Size) -> Option<String> {
        let [x, y] = self.principal;
        let is_inside = |x: f64| (0.0..of.width as f64).contains(&x) && (0.0..of.height as f64).contains(&y);
        (self.size.is_none() && self.projection == Projection::Perspective && !(is_inside(x) && is_inside(x + self.doffs))).then(|| {
            format!(
                "the principal point ({x:.0}, {y:.0}) lies outside of the pictures of {of}: is the calibration for pictures of \
                 another size?"
            )
        })
    }

    /// Fails unless [`write`](Self::write) supports the name: Middlebury's `calib.txt`, OpenCV's YAML, XML or JSON, or
    /// ROS's YAML if the name contains `camera_info`, or the range alone for s2p if it contains `disp_min_max`. Only
    /// `.txt` holds an affine pair.
    ///
    /// # Errors
    /// [`Error::Format`] listing the extensions.
    pub fn check_name(path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        match extension(path).as_str() {
            "txt" | "yml" | "yaml" | "xml" | "json" => Ok(()),
            other => Err(Error::format(
                path,
                format!(
                    "{other:?} is not the extension of a calibration; use .txt (Middlebury), .yml, .yaml, .xml or .json \
                     (OpenCV), or a name such as camera_info.yaml (ROS) or disp_min_max.txt (s2p)"
                ),
            )),
        }
    }

    /// Writes the calibration to `path` in the format of its extension, whole or not at all.
    ///
    /// # Errors
    /// As [`check`](Self::check) and [`check_name`](Self::check_name); [`Error::Format`] for an affine pair in OpenCV's formats,
    /// [`Error::Io`] when the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        Self::check_name(path)?;
        self.check()?;
        let wrong = |reason: &str| Error::format(path, reason);
        let is_named = |word| path.file_name().is_some_and(|name| name.to_string_lossy().contains(word));
        let ros = is_named("camera_info");
        let text = match (extension(path).as_str(), self.projection) {
            ("txt", _) if is_named("disp_min_max") => {
                s2p::text(self.range.ok_or_else(|| wrong("the range is unknown"))?)
            }
            ("txt", _) => self.to_text(),
            (_, Projection::Affine) => {
                return Err(wrong("OpenCV's and ROS's files hold no affine cameras; write .txt"));
            }
            ("xml", _) => self.to_xml(),
            ("json", _) => self.to_json(),
            _ if ros && self.doffs != 0.0 => {
                let reason = "ROS's files hold no cameras whose principal points differ; write .txt or .yml";
                return Err(wrong(reason));
            }
            _ if ros => {
                let reason = "ROS's files hold the size of the images, which is unknown; write .txt or .yml";
                self.to_ros(self.size.ok_or_else(|| wrong(reason))?)
            }
            _ => self.to_yaml(),
        };
        write_atomically(path, |out| out.write_all(text.as_bytes()))
    }
}
