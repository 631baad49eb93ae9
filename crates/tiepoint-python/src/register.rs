//! Registration and rectification: from two images to the pair as it is wanted.

use crate::array::DeviceArray;
use crate::device::Detached;
use crate::errors::raised;
use crate::features::Features;
use crate::files::{calibration_dict, rig_of};
use crate::finder::{Finder, Ready, counting};
use crate::image::{Input, any_output, mask_view, output, rows};
use crate::matching::{tie_dict, tie_options};
use crate::options::Options;
use crate::picture::{Picture, mask_on_host};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tiepoint::device::Processor;
use tiepoint::geometry::calibration::StereoCalibration;
use tiepoint::geometry::rectify::{
    Agreement, OutputFrame, Rectification, RectifiedView, RectifyOptions, SelfCalibrationOptions,
    from_tie_points,
};
use tiepoint::geometry::warp::WarpOptions;
use tiepoint::geometry::{Correspondence, Model, ModelKind};
use tiepoint::image::gpu::AnyGpuImage;
use tiepoint::image::{AnyImage, AnyView};
use tiepoint::options::Named;
use tiepoint::register::{
    RegisterInput, RegisterOptions, TieOptions, TiePicture, TiePoints, Views, locate, tie_pictures,
    warp_onto, warp_onto_on_device,
};

fn views_of(views: Option<usize>) -> Views {
    views.map_or(Views::Auto, Views::Count)
}

/// MOVING warped onto FIXED, with the tie points from MOVING to FIXED and the features of both.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the groups of options of one call")]
pub(crate) fn register<'py>(
    py: Python<'py>,
    finder: &Bound<'py, Finder>,
    fixed: &Bound<'py, PyAny>,
    moving: &Bound<'py, PyAny>,
    masks: (Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>),
    model: &str,
    matching: &Bound<'py, PyDict>,
    robust: &Bound<'py, PyDict>,
    rematch: Option<&Bound<'py, PyDict>>,
    views: Option<usize>,
    warp: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let finder = finder.get();
    let device = Some(finder.device_object().bind(py).as_any());
    let [fixed, moving] =
        [Picture::of(fixed, device, "the fixed image")?, Picture::of(moving, device, "the moving image")?];
    let mask_fixed = mask_on_host(masks.0.as_ref(), device)?;
    let mask_moving = mask_on_host(masks.1.as_ref(), device)?;
    let options = RegisterOptions::default()
        .with_detector(finder.detector())
        .with_range(finder.range())
        .with_tie(tie_options(Some(model), matching, robust, rematch)?)
        .with_views(views_of(views))
        .with_warp(WarpOptions::default().with(warp)?);
    let (fixed_here, moving_here) = (fixed.on_host(py)?, moving.on_host(py)?);
    let found = finder.device().run(py, |processor| {
        let counting_fixed = counting(fixed_here.view(), mask_view(mask_fixed.as_ref()), &processor.cpu);
        let counting_moving = counting(moving_here.view(), mask_view(mask_moving.as_ref()), &processor.cpu);
        let fixed = RegisterInput { image: fixed_here.view(), mask: counting_fixed.view() };
        let moving = RegisterInput { image: moving_here.view(), mask: counting_moving.view() };
        locate(fixed, moving, &options, processor)
    })?;
    let (size, model) = (fixed_here.view().size(), found.reference_from_moving);
    let result = PyDict::new(py);
    match &moving {
        Picture::There(moving) => {
            let warped = py.detach(|| warp_onto_on_device(moving, size, &model, &options.warp));
            let warped = Detached::new(warped.map_err(raised)?);
            result.set_item("warped", DeviceArray::of_image(py, &warped.image)?)?;
            result.set_item("covered", DeviceArray::of_image(py, &(&warped.covered).into())?)?;
        }
        Picture::Host(moving) => {
            let warped = finder
                .device()
                .run(py, |processor| warp_onto(moving.view(), size, &model, &options.warp, processor))?;
            result.set_item("warped", any_output(py, warped.image)?)?;
            result.set_item("covered", output(py, warped.covered)?)?;
        }
    }
    let [moving, fixed] = found.features;
    result.set_item("features", (Features::new(moving), Features::new(fixed)))?;
    result.set_item("tie_points", tie_dict(py, &found.tie)?)?;
    Ok(result)
}

/// An image where it was made.
enum Made {
    Host(AnyImage),
    There(AnyGpuImage),
}

impl Made {
    /// `picture` as a view shows it, where the picture lies.
    fn warped(
        view: &RectifiedView,
        picture: &Picture,
        warp: &WarpOptions,
        processor: &Processor,
    ) -> tiepoint::Result<Self> {
        match picture {
            Picture::There(image) => {
                let nothing = if matches!(**image, AnyGpuImage::F32(_)) { f32::NAN } else { 0.0 };
                view.warp_on_device(image, &warp.with_fill(nothing)).map(Self::There)
            }
            Picture::Host(image) => {
                let nothing = if matches!(image.view(), AnyView::F32(_)) { f32::NAN } else { 0.0 };
                view.warp_any(image.view(), &warp.with_fill(nothing), &processor.cpu).map(Self::Host)
            }
        }
    }

    /// 255 where `picture` shows something in a view.
    fn coverage(view: &RectifiedView, picture: &Picture, processor: &Processor) -> tiepoint::Result<Self> {
        match picture {
            Picture::There(image) => view.coverage_on_device(image.gpu()).map(|i| Self::There(i.into())),
            Picture::Host(_) => view.coverage(&processor.cpu).map(|i| Self::Host(i.into())),
        }
    }

    fn output(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Self::Host(image) => any_output(py, image),
            Self::There(image) => {
                let image = Detached::new(image);
                Ok(Bound::new(py, DeviceArray::of_image(py, &image)?)?.into_any())
            }
        }
    }
}

/// A rectified pair as it is handed back.
struct Rectified {
    rectification: Rectification,
    agreement: Option<Agreement>,
    exchanged: bool,
    tied: Option<Tied>,
    images: [Made; 2],
    valid: [Made; 2],
}

impl Rectified {
    fn new(
        rectification: Rectification,
        agreement: Option<Agreement>,
        exchanged: bool,
        tied: Option<Tied>,
        [left, right]: [&Picture; 2],
        warp: &WarpOptions,
        processor: &Processor,
    ) -> tiepoint::Result<Self> {
        let [a, b] = if exchanged { [right, left] } else { [left, right] };
        let Rectification { left: view_a, right: view_b, .. } = &rectification;
        let images = [Made::warped(view_a, a, warp, processor)?, Made::warped(view_b, b, warp, processor)?];
        let valid = [Made::coverage(view_a, a, processor)?, Made::coverage(view_b, b, processor)?];
        Ok(Self { rectification, agreement, exchanged, tied, images, valid })
    }

    fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let result = PyDict::new(py);
        let mut pair = self.rectification.calibration();
        pair.range = self.agreement.map(|agreement| agreement.disparities);
        result.set_item("calibration", calibration_dict(py, &pair)?)?;
        let [left, right] = self.images;
        result.set_item("left", left.output(py)?)?;
        result.set_item("right", right.output(py)?)?;
        let [left, right] = self.valid;
        result.set_item("valid_left", left.output(py)?)?;
        result.set_item("valid_right", right.output(py)?)?;
        let matrix = |view: &RectifiedView| rows(py, view.homography().map_err(raised)?.matrix().to_vec());
        result.set_item("matrix_left", matrix(&self.rectification.left)?)?;
        result.set_item("matrix_right", matrix(&self.rectification.right)?)?;
        result.set_item("exchanged", self.exchanged)?;
        result.set_item("rms_vertical", self.agreement.map(|a| a.rms_vertical_px))?;
        result.set_item("points", self.agreement.map_or(0, |a| a.points))?;
        let Some(Tied { features: [a, b], tie }) = self.tied else { return Ok(result) };
        result.set_item("tie_points", tie_dict(py, &tie)?)?;
        result.set_item("features", (Features::new(a), Features::new(b)))?;
        Ok(result)
    }
}

/// The places of matches.
fn correspondences(tied: &Tied) -> Vec<Correspondence> {
    let [a, b] = &tied.features;
    let place = |f: &tiepoint::feature::Features, i: u32| {
        let k = &f.keypoints[i as usize];
        [f64::from(k.x), f64::from(k.y)]
    };
    let pair =
        |m: &tiepoint::matching::Match| Correspondence { a: place(a, m.a), b: place(b, m.b), quality: 0.0 };
    tied.tie.matches.iter().map(pair).collect()
}

/// Features and matches of two pictures.
struct Tied {
    features: [tiepoint::feature::Features; 2],
    tie: TiePoints,
}

/// Ties two pictures together.
fn tied(
    finder: &Finder,
    views: [AnyView<'_>; 2],
    masks: [Option<&Input>; 2],
    options: &TieOptions,
    processor: &Processor,
) -> tiepoint::Result<Tied> {
    let found = finder.finder(processor)?;
    let ready = |i: usize| Ready::new(views[i], mask_view(masks[i]), finder.range(), &processor.cpu);
    let (a, b) = (ready(0)?, ready(1)?);
    let (images, masks) = ([a.image.view(), b.image.view()], [a.mask(), b.mask()]);
    let features = found.detect_pair(images, masks)?;
    let pictures = [0, 1].map(|i| TiePicture { image: images[i], mask: masks[i], found: &features[i] });
    let tied = tie_pictures(pictures, &found, options, Views::Auto, processor)?;
    let features = tied.features.unwrap_or_else(|| features.map(|found| found.features));
    Ok(Tied { features, tie: tied.tie })
}

/// Two pictures turned so that what corresponds lies in the same row: by calibrated cameras where `rig` has them, else by
/// cameras found from tie points.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the groups of options of one call")]
pub(crate) fn rectify<'py>(
    py: Python<'py>,
    finder: &Bound<'py, Finder>,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
    masks: (Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>),
    rig: Option<&Bound<'py, PyDict>>,
    frame: Option<&Bound<'py, PyAny>>,
    matching: &Bound<'py, PyDict>,
    robust: &Bound<'py, PyDict>,
    focal: Option<f64>,
    warp: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let finder = finder.get();
    let device = Some(finder.device_object().bind(py).as_any());
    let left = Picture::of(left, device, "the left image")?;
    let right = Picture::of(right, device, "the right image")?;
    let mask_left = mask_on_host(masks.0.as_ref(), device)?;
    let mask_right = mask_on_host(masks.1.as_ref(), device)?;
    let (left_here, right_here) = (left.on_host(py)?, right.on_host(py)?);
    let rig = rig.map(rig_of).transpose()?;
    let frame: Option<OutputFrame> = frame.map(crate::options::named).transpose()?;
    let model = rig.is_none().then_some(ModelKind::Fundamental.name());
    let rematch = PyDict::new(py);
    let options = tie_options(model, matching, robust, Some(&rematch))?;
    let warp = WarpOptions::default().with(warp)?;
    let self_calibration = SelfCalibrationOptions::default().with_focal(focal);
    self_calibration.check().map_err(raised)?;
    let found = finder.device().run(py, |processor| {
        let views = [left_here.view(), right_here.view()];
        let tied = tied(finder, views, [mask_left.as_ref(), mask_right.as_ref()], &options, processor)?;
        let (rectification, agreement, exchanged) = match &rig {
            Some(rig) => calibrated(rig, &tied, views, frame, options.robust.threshold_px)?,
            None => {
                let fundamental = fundamental(&tied.tie)?;
                let all = correspondences(&tied);
                let inliers: Vec<_> = tied.tie.inliers.iter().map(|&i| all[i]).collect();
                let (sizes, frame) = (views.map(|v| v.size()), frame.unwrap_or(OutputFrame::Fit));
                let pair =
                    from_tie_points(&fundamental, &inliers, sizes, &self_calibration, frame, &processor.cpu)?;
                (pair.rectification, Some(pair.agreement), pair.exchanged)
            }
        };
        Rectified::new(rectification, agreement, exchanged, Some(tied), [&left, &right], &warp, processor)
    })?;
    found.into_dict(py)
}

fn fundamental(tie: &TiePoints) -> tiepoint::Result<tiepoint::geometry::Fundamental> {
    match tie.b_from_a {
        Some(Model::Fundamental(f)) => Ok(f),
        _ => Err(tiepoint::Error::Degenerate {
            model: ModelKind::Fundamental.noun(),
            reason: "the tie points gave no epipolar geometry",
        }),
    }
}

fn calibrated(
    rig: &StereoCalibration,
    tied: &Tied,
    views: [AnyView<'_>; 2],
    frame: Option<OutputFrame>,
    tolerance: f64,
) -> tiepoint::Result<(Rectification, Option<Agreement>, bool)> {
    let exchanged = !Rectification::in_order(rig);
    let [left, right] = views.map(|view| view.size());
    let sizes = if exchanged { [right, left] } else { [left, right] };
    let swapped = exchanged.then(|| rig.exchanged());
    let options = RectifyOptions::default().with_frame(frame.unwrap_or(OutputFrame::Input));
    let rectification = Rectification::new(swapped.as_ref().unwrap_or(rig), sizes, &options)?;
    let turned = |p: Correspondence| if exchanged { Correspondence { a: p.b, b: p.a, ..p } } else { p };
    let pairs: Vec<_> = correspondences(tied).into_iter().map(turned).collect();
    let agreement = rectification.agreement(&rectification.near_rows(&pairs, tolerance));
    Ok((rectification, agreement, exchanged))
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
    let left = Picture::of(left, device, "the left image")?;
    let right = Picture::of(right, device, "the right image")?;
    let (rig, warp) = (rig_of(rig)?, WarpOptions::default().with(warp)?);
    let device = crate::device::device_of(py, device)?;
    let found = device.get().run(py, |processor| {
        let rectification = Rectification::stored(&rig, [left.size(), right.size()])?;
        Rectified::new(rectification, None, false, None, [&left, &right], &warp, processor)
    })?;
    found.into_dict(py)
}
