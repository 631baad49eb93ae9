//! Rectification: two images turned so that corresponding points lie in the same row.

use crate::device::run_on;
use crate::errors::raised;
use crate::files::{calibration_dict, rig_of};
use crate::finder::Finder;
use crate::image::rows;
use crate::matching::tie_options;
use crate::options::Options;
use crate::picture::{Picture, made, with_spread_colours};
use crate::tied::{Masks, Tied};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tiepoint::device::{Cpu, Processor};
use tiepoint::geometry::calibration::{Projection, StereoCalibration};
use tiepoint::geometry::rectify::{
    Agreement, OutputFrame, Rectification, RectifiedView, RectifyOptions, SelfCalibrationOptions, WEAK_FOCAL,
    from_tie_points,
};
use tiepoint::geometry::warp::WarpOptions;
use tiepoint::geometry::{Correspondence, ModelKind};
use tiepoint::image::{Made, PixelKind, Size};
use tiepoint::options::Named;
use tiepoint::register::{Modality, RegisterOptions, TieOptions};
use tiepoint::stereo::survey::range_to_search;

/// A rectification with its options, which are checked before a device is opened. It uses the calibrated cameras of
/// `rig` if given, otherwise cameras found from tie points.
#[pyclass(frozen, module = "tiepoint._core")]
pub(crate) struct Rectify {
    rig: Option<StereoCalibration>,
    frame: Option<OutputFrame>,
    tie: TieOptions,
    modality: Modality,
    self_calibration: SelfCalibrationOptions,
    warp: WarpOptions,
}

#[pymethods]
impl Rectify {
    #[new]
    fn new(
        rig: Option<&Bound<'_, PyDict>>,
        frame: Option<&Bound<'_, PyAny>>,
        matching: &Bound<'_, PyDict>,
        robust: &Bound<'_, PyDict>,
        sensors: (&str, f64),
        focal: Option<f64>,
        warp: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let rig = rig.map(rig_of).transpose()?;
        let model = rig.is_none().then_some(ModelKind::Fundamental.name());
        let (modality, scale_range) = sensors;
        let tie = tie_options(model, matching, robust, Some(&PyDict::new(matching.py())))?;
        let tie = tie.with_scale_range(scale_range);
        tie.check().map_err(raised)?;
        let self_calibration = SelfCalibrationOptions::default().with_focal(focal);
        self_calibration.check().map_err(raised)?;
        Ok(Self {
            rig,
            frame: frame.map(crate::options::named).transpose()?,
            tie,
            modality: Modality::from_name(modality).map_err(raised)?,
            self_calibration,
            warp: WarpOptions::default().with(warp)?,
        })
    }

    /// The rectified pair, its calibration and the tie points.
    fn run<'py>(
        &self,
        finder: &Bound<'py, Finder>,
        left: &Bound<'py, PyAny>,
        right: &Bound<'py, PyAny>,
        masks: Masks<'py>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (py, finder) = (finder.py(), finder.get());
        let device = Some(finder.device.bind(py).as_any());
        let left = Picture::of(left, device, "the left image")?;
        let right = Picture::of(right, device, "the right image")?;
        let pictures = [&left, &right];
        let options = RegisterOptions::default().with_tie(self.tie).with_modality(self.modality);
        let names = ["The left image", "The right image"];
        let tied = Tied::of(py, finder, names, pictures, &masks, &options)?;
        let found = finder.device.get().run(py, |processor| {
            let placed = self.placed(&tied, [left.size(), right.size()], &processor.cpu)?;
            Rectified::new(placed, pictures, &self.warp, processor)
        })?;
        let result = found.into_dict(py)?;
        tied.into_dict(&result, finder)?;
        Ok(result)
    }
}

/// The rectification of two images, whether they were given in reverse order, and how well rows agree.
struct Placed {
    rectification: Rectification,
    exchanged: bool,
    agreement: Option<Agreement>,
    /// Whether the focal length was found from the tie points.
    is_focal_found: bool,
}

impl Rectify {
    fn placed(&self, tied: &Tied, sizes: [Size; 2], cpu: &Cpu) -> tiepoint::Result<Placed> {
        let Some(rig) = &self.rig else {
            let [a, b] = tied.keypoints()?;
            let ties = tied.tie.epipolar([&a, &b]).ok_or(tiepoint::Error::Degenerate {
                model: ModelKind::Fundamental.noun(),
                reason: "the tie points gave no epipolar geometry",
            })?;
            let frame = self.frame.unwrap_or(OutputFrame::Fit);
            let pair = from_tie_points(&ties, sizes, &self.self_calibration, frame, cpu)?;
            let (rectification, exchanged) = (pair.rectification, pair.exchanged);
            let given = self.self_calibration.focal.or(self.self_calibration.focal_right);
            let is_focal_found = given.is_none() && rectification.projection == Projection::Perspective;
            return Ok(Placed { rectification, exchanged, agreement: Some(pair.agreement), is_focal_found });
        };
        let exchanged = !Rectification::in_order(rig);
        let [left, right] = sizes;
        let sizes = if exchanged { [right, left] } else { [left, right] };
        let swapped = exchanged.then(|| rig.exchanged());
        let options = RectifyOptions::default().with_frame(self.frame.unwrap_or(OutputFrame::Input));
        let rectification = Rectification::new(swapped.as_ref().unwrap_or(rig), sizes, &options)?;
        let turned = |p: Correspondence| if exchanged { Correspondence { a: p.b, b: p.a, ..p } } else { p };
        let pairs: Vec<_> = tied.correspondences()?.into_iter().map(turned).collect();
        let tolerance = self.tie.robust.threshold_px;
        let agreement = rectification.agreement(&rectification.near_rows(&pairs, tolerance));
        Ok(Placed { rectification, exchanged, agreement, is_focal_found: false })
    }
}

/// A rectified pair, to be returned.
struct Rectified {
    placed: Placed,
    images: [Made; 2],
    valid: [Made; 2],
}

impl Rectified {
    fn new(
        placed: Placed,
        [left, right]: [&Picture; 2],
        warp: &WarpOptions,
        processor: &Processor,
    ) -> tiepoint::Result<Self> {
        let [a, b] = if placed.exchanged { [right, left] } else { [left, right] };
        let Rectification { left: view_a, right: view_b, .. } = &placed.rectification;
        // Pictures on the host are warped there.
        let alone = Processor::from(processor.cpu.clone());
        let warped = |view: &RectifiedView, picture: &Picture| {
            let picture = picture.pixels();
            let nothing = if picture.pixel() == PixelKind::F32 { f32::NAN } else { 0.0 };
            with_spread_colours(picture, |picture| view.warp_with(picture, &warp.with_fill(nothing), &alone))
        };
        let valid = |view: &RectifiedView, picture: &Picture| {
            view.coverage_with(picture.pixels(), &alone).map(Made::from)
        };
        let images = [warped(view_a, a)?, warped(view_b, b)?];
        let valid = [valid(view_a, a)?, valid(view_b, b)?];
        Ok(Self { placed, images, valid })
    }

    fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let Placed { rectification, exchanged, agreement, is_focal_found } = self.placed;
        let mut pair = rectification.calibration();
        pair.range = agreement.map(|agreement| range_to_search(agreement.disparities));
        let ([left, right], [valid_left, valid_right]) = (self.images, self.valid);
        let mut doubts = agreement.map_or_else(Vec::new, |a| a.doubts(pair.doffs));
        doubts.extend(agreement.and_then(|a| a.depth_doubt()));
        doubts.extend(is_focal_found.then(|| format!("{WEAK_FOCAL}; `focal` gives it")));
        let matrix = |view: &RectifiedView| rows(py, view.homography().map_err(raised)?.matrix().to_vec());
        Ok(dict!(py, {
            "calibration": calibration_dict(py, &pair)?,
            "left": made(py, left)?,
            "right": made(py, right)?,
            "valid_left": made(py, valid_left)?,
            "valid_right": made(py, valid_right)?,
            "matrix_left": matrix(&rectification.left)?,
            "matrix_right": matrix(&rectification.right)?,
            "exchanged": exchanged,
            "rms_vertical": agreement.map(|a| a.rms_vertical_px),
            "points": agreement.map_or(0, |a| a.points),
            "doubts": doubts,
        }))
    }
}

/// Two pictures rectified as the calibration stores it (R1, R2, P1, P2), without a search for tie points.
#[pyfunction]
pub(crate) fn rectify_stored<'py>(
    py: Python<'py>,
    device: Option<&Bound<'py, PyAny>>,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
    rig: &Bound<'py, PyDict>,
    warp: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let (rig, warp) = (rig_of(rig)?, WarpOptions::default().with(warp)?);
    let left = Picture::of(left, device, "the left image")?;
    let right = Picture::of(right, device, "the right image")?;
    let found = run_on(py, device, |processor| {
        let rectification = Rectification::stored(&rig, [left.size(), right.size()])?;
        let placed = Placed { rectification, exchanged: false, agreement: None, is_focal_found: false };
        Rectified::new(placed, [&left, &right], &warp, processor)
    })?;
    found.into_dict(py)
}
