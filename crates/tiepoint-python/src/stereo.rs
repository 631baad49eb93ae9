//! Dense stereo: disparities, depth, points.

use crate::device::{Device, bytes, device_of};
use crate::errors::{raised, wrong_option};
use crate::files::calibration_of;
use crate::image::{Counting, Input, mask, output, rows};
use crate::options::{Options, census_window};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tiepoint::image::{AnyView, Image, ImageView, Pixel, alpha_mask};
use tiepoint::stereo::{Cost, INVALID, Masks, Penalties, StereoOptions, cloud};

/// Dense stereo with its options and working memory. Threads may share it.
#[pyclass(frozen, module = "tiepoint._core")]
pub(crate) struct Stereo {
    stereo: tiepoint::stereo::Stereo,
    device: Py<Device>,
}

#[pymethods]
impl Stereo {
    /// `penalties` are P1, P2, the least P2 and the gradient, each as given or None; `memory` is None for the device's
    /// limit.
    #[new]
    fn new(
        options: &Bound<'_, PyDict>,
        window: Option<&Bound<'_, PyAny>>,
        penalties: (Option<u16>, Option<u16>, Option<u16>, Option<u8>),
        memory: Option<&Bound<'_, PyAny>>,
        device: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let device = device_of(options.py(), device)?;
        let mut options = StereoOptions::default().with(options)?;
        if let Some(window) = window {
            options.cost = match options.cost {
                Cost::Census(_) => Cost::Census(census_window(window)?),
                other => {
                    return Err(wrong_option(&format!(
                        "option census_window belongs to the cost census, not {other}"
                    )));
                }
            };
        }
        let (p1, p2, p2_least, gradient) = penalties;
        let suiting = options.cost.penalties();
        options.penalties = Some(suiting.replaced(p1, p2, p2_least, gradient));
        options.memory = match (memory, device.get().limit()) {
            (Some(given), _) if given.str()? == "unlimited" => None,
            (Some(given), _) => Some(bytes(given)?),
            (None, Some(limit)) => Some(limit),
            (None, None) => options.memory,
        };
        let stereo = tiepoint::stereo::Stereo::new(options).map_err(raised)?;
        Ok(Self { stereo, device })
    }

    /// The options, the penalties included.
    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let shown = self.stereo.options().shown(py)?;
        let Penalties { p1, p2, p2_least, gradient } = self.stereo.options().penalties();
        shown.set_item("p1", p1)?;
        shown.set_item("p2", p2)?;
        shown.set_item("p2_least", p2_least)?;
        shown.set_item("gradient", gradient)?;
        Ok(shown)
    }

    /// The disparities of a rectified pair, NaN where there are none.
    #[pyo3(signature = (left, right, mask_left = None, mask_right = None, no_data = None))]
    fn compute<'py>(
        &self,
        py: Python<'py>,
        left: &Bound<'py, PyAny>,
        right: &Bound<'py, PyAny>,
        mask_left: Option<&Bound<'py, PyAny>>,
        mask_right: Option<&Bound<'py, PyAny>>,
        no_data: Option<f32>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (left, right) = (Input::of(left, "the left image")?, Input::of(right, "the right image")?);
        let (mask_left, mask_right) = (mask(mask_left)?, mask(mask_right)?);
        let found = self.device.get().run(py, |processor| {
            let a = held(&left, mask_left.as_ref(), no_data);
            let b = held(&right, mask_right.as_ref(), no_data);
            let masks = Masks { left: a.view(), right: b.view() };
            self.stereo.compute(left.view(), right.view(), masks, processor)
        })?;
        let result = PyDict::new(py);
        result.set_item("disparity", output(py, with_nan(found.disparity))?)?;
        result.set_item("right", found.right.map(|right| output(py, with_nan(right))).transpose()?)?;
        result.set_item("confidence", found.confidence.map(|c| output(py, c)).transpose()?)?;
        let reasons = found.reasons.map(|reasons| {
            let size = reasons.size();
            let values = reasons.into_vec().into_iter().map(|reason| reason as u8).collect();
            output(py, Image::from_vec(values, size, 1).map_err(raised)?)
        });
        result.set_item("reasons", reasons.transpose()?)?;
        Ok(result)
    }
}

/// Where a view holds data: where its mask says so, its alpha is not 0, and not all channels are `no_data`.
fn held<'a>(image: &Input, mask: Option<&'a Input>, no_data: Option<f32>) -> Counting<'a> {
    let holes = no_data.map(|value| match image.view() {
        AnyView::U8(view) => holding(view, value),
        AnyView::U16(view) => holding(view, value),
        AnyView::F32(view) => holding(view, value),
    });
    Counting::new(mask).and(holes).and(alpha_mask(image.view()))
}

/// 0 where all channels are `no_data`, 255 elsewhere.
fn holding<T: Pixel>(view: ImageView<'_, T>, no_data: f32) -> Image<u8> {
    let n = view.channels();
    let any = |x: usize, y: usize| view.row(y)[x * n..(x + 1) * n].iter().any(|v| v.to_f32() != no_data);
    Image::from_fn(view.size(), |x, y| 255 * u8::from(any(x, y)))
}

/// NaN where there is no disparity.
pub(crate) fn with_nan(mut disparity: Image<f32>) -> Image<f32> {
    disparity.data_mut().iter_mut().filter(|d| **d == INVALID).for_each(|d| *d = f32::NAN);
    disparity
}

/// Depth along the optical axis in the unit of the baseline, NaN where there is none.
#[pyfunction]
pub(crate) fn depth<'py>(
    py: Python<'py>,
    device: Option<&Bound<'py, PyAny>>,
    disparity: &Bound<'py, PyAny>,
    calibration: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let disparity = Input::of(disparity, "the disparity map")?;
    let calibration = calibration_of(calibration)?;
    let map = disparity.floats("the disparity map")?;
    let found = device_of(py, device)?
        .get()
        .run(py, |processor| tiepoint::stereo::depth::depth(map, &calibration, &processor.cpu))?;
    output(py, with_nan(found))
}

/// Points of all pixels that have a depth, (N, 3) float32, and their colours, (N, 3) uint8.
#[pyfunction]
#[pyo3(signature = (disparity, colours, calibration, max_depth = f64::INFINITY))]
pub(crate) fn points<'py>(
    py: Python<'py>,
    disparity: &Bound<'py, PyAny>,
    colours: &Bound<'py, PyAny>,
    calibration: &Bound<'py, PyDict>,
    max_depth: f64,
) -> PyResult<[Bound<'py, PyAny>; 2]> {
    let (disparity, colours) = (Input::of(disparity, "the disparity map")?, Input::of(colours, "the image")?);
    let calibration = calibration_of(calibration)?;
    let map = disparity.floats("the disparity map")?;
    let options = cloud::CloudOptions::default().with_max_depth(max_depth);
    let found = py.detach(|| cloud::points(map, colours.view(), &calibration, &options)).map_err(raised)?;
    let (places, colours) = found.into_iter().map(|point| (point.place, point.colour)).unzip();
    Ok([rows(py, places)?, rows(py, colours)?])
}
