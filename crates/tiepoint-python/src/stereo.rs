//! Dense stereo: disparities, depth, points.

use crate::call::abandonable;
use crate::device::{Device, device_of, run_on};
use crate::device_array::{DeviceArray, Numbers};
use crate::errors::{raised, wrong_image, wrong_option};
use crate::features::device_array;
use crate::files::calibration_of;
use crate::fork::Detached;
use crate::image::{Input, mask, mask_view, output, rows, volume_shape};
use crate::matching::{Assessed, assessed};
use crate::options::Options;
use crate::picture::{Picture, mask_on_host};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, PoisonError};
use tiepoint::assess::StereoEvidence;
use tiepoint::device::Processor;
use tiepoint::image::gpu::{AnyGpuImage, GpuImage};
use tiepoint::image::{AnyCow, AnyView, Image, Mask};
use tiepoint::stereo::halving::Side;
use tiepoint::stereo::survey::survey;
use tiepoint::stereo::{GpuStereoResult, INVALID, Masks, Reason, StereoOptions, StereoResult, cloud};

#[pyclass(frozen, module = "tiepoint._core")]
pub(crate) struct Stereo {
    stereo: tiepoint::stereo::Stereo,
    device: Py<Device>,
}

#[pymethods]
impl Stereo {
    #[new]
    fn new(options: &Bound<'_, PyDict>, device: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let py = options.py();
        let mut options = StereoOptions::default().with(options)?;
        options.check().map_err(raised)?;
        let device = device_of(py, device)?;
        if let Some(limit) = device.get().memory() {
            options.memory = Some(options.memory.map_or(limit, |memory| memory.min(limit)));
        }
        let stereo = tiepoint::stereo::Stereo::new(options).map_err(raised)?;
        Ok(Self { stereo, device })
    }

    /// The options, including the penalties.
    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let options = self.stereo.options();
        options.with_penalties(options.penalties()).shown(py)
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
        let device = Some(self.device.bind(py).as_any());
        let left = Picture::of(left, device, "the left image")?;
        let right = Picture::of(right, device, "the right image")?;
        let (mask_left, mask_right) = (mask_on_host(mask_left, device)?, mask_on_host(mask_right, device)?);
        self.maps(py, &[left, right], [mask_left.as_ref(), mask_right.as_ref()], no_data, None)
    }

    /// The disparities from a cost volume, or with `sums` its sums over the paths; `given` are both images, then masks.
    fn optimize<'py>(
        &self,
        py: Python<'py>,
        cost: &Bound<'py, PyAny>,
        scale: Option<f32>,
        given: [Option<Bound<'py, PyAny>>; 4],
        sums: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let device = Some(self.device.bind(py).as_any());
        let [left, right, mask_left, mask_right] = given;
        let image = |image: Option<Bound<'py, PyAny>>, what| {
            Picture::of(&image.unwrap_or_else(|| py.None().into_bound(py)), device, what)
        };
        let (left, right) = (image(left, "the left image")?, image(right, "the right image")?);
        let mask = |mask: Option<Bound<'py, PyAny>>| mask_on_host(mask.as_ref(), device);
        let (mask_left, mask_right) = (mask(mask_left)?, mask(mask_right)?);
        if sums {
            let cost = Input::shaped(cost, "the cost volume", volume_shape)?;
            let (left, right) = (left.on_host(py)?, right.on_host(py)?);
            let sums = self.device.get().run_sized(py, left.view().size().area(), |processor| {
                let a = held(left.view(), mask_left.as_ref(), None)?;
                let b = held(right.view(), mask_right.as_ref(), None)?;
                let masks = Masks { left: a.view(), right: b.view() };
                self.stereo.aggregate((cost.view(), scale), [left.view(), right.view()], masks, processor)
            })?;
            return output(py, sums);
        }
        let cost = Picture::shaped(cost, device, "the cost volume", volume_shape)?;
        let masks = [mask_left.as_ref(), mask_right.as_ref()];
        self.maps(py, &[left, right], masks, None, Some((&cost, scale))).map(Bound::into_any)
    }
}

/// The maps of a pair as arrays.
fn maps(py: Python<'_>, found: StereoResult) -> PyResult<Bound<'_, PyDict>> {
    let reasons = found.reasons.map(|reasons| output(py, numbers(&reasons).map_err(raised)?));
    Ok(dict!(py, {
        "disparity": output(py, with_nan(found.disparity))?,
        "right": found.right.map(|right| output(py, with_nan(right))).transpose()?,
        "confidence": found.confidence.map(|confidence| output(py, confidence)).transpose()?,
        "reasons": reasons.transpose()?,
    }))
}

/// A sequence of pairs, several of which are on a GPU at a time.
#[pyclass(frozen, module = "tiepoint._core")]
pub(crate) struct StereoStream {
    stream: Mutex<tiepoint::stereo::StereoStream>,
    device: Py<Device>,
    process: u32,
}

#[pymethods]
impl StereoStream {
    #[new]
    fn new(
        py: Python<'_>,
        stereo: &Bound<'_, Stereo>,
        in_flight: Option<usize>,
        batch: usize,
    ) -> PyResult<Self> {
        let (device, options) = (stereo.get().device.clone_ref(py), *stereo.get().stereo.options());
        let processor = device.get().opened(py)?;
        let stream = tiepoint::stereo::StereoStream::new(options, &processor).map_err(raised)?;
        let stream = stream.with_batch(batch).map_err(raised)?;
        let stream = match in_flight {
            Some(sets) => stream.with_in_flight(sets).map_err(raised)?,
            None => stream,
        };
        Ok(Self { stream: Mutex::new(stream), device, process: std::process::id() })
    }

    /// Takes the next pair, which is copied. Returns whether the stream is full, so that the oldest result should be
    /// taken.
    fn push(
        &self,
        py: Python<'_>,
        left: &Bound<'_, PyAny>,
        right: &Bound<'_, PyAny>,
        no_data: Option<f32>,
    ) -> PyResult<bool> {
        let (left, right) = (Input::of(left, "the left image")?, Input::of(right, "the right image")?);
        self.with(py, |stream, on_gpu| {
            let (a, b) = (held(left.view(), None, no_data)?, held(right.view(), None, no_data)?);
            stream.push(left.view(), right.view(), Masks { left: a.view(), right: b.view() })?;
            Ok(!on_gpu || stream.len() >= stream.in_flight())
        })
    }

    /// The maps of the oldest pair; None if there is none.
    fn pop<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.with(py, |stream, _| stream.pop())?.map(|found| maps(py, found)).transpose()
    }
}

impl StereoStream {
    /// Calls `work` with the stream, and with whether a GPU computes.
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut tiepoint::stereo::StereoStream, bool) -> tiepoint::Result<R> + Send,
    ) -> PyResult<R> {
        if self.process != std::process::id() {
            return Err(wrong_option(
                "the stream belongs to the process that this one was forked from: make one here",
            ));
        }
        let on_gpu = self.device.get().opened(py)?.may_have_gpu();
        self.device.get().run_once(py, || {
            let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut stream, on_gpu)
        })
    }
}

impl Stereo {
    /// The maps of a pair in the host's memory, from costs and their scale if they are given.
    fn computed(
        &self,
        [left, right]: [AnyView<'_>; 2],
        costs: Option<&(AnyCow<'_>, Option<f32>)>,
        masks: Masks<'_>,
        processor: &Processor,
    ) -> tiepoint::Result<StereoResult> {
        match costs {
            None => self.stereo.compute(left, right, masks, processor),
            Some((costs, scale)) => {
                self.stereo.optimize((costs.view(), *scale), [left, right], masks, processor)
            }
        }
    }

    /// The maps of a pair, from a volume and its scale if they are given. If an image or the volume lies on a GPU, the
    /// maps stay there.
    fn maps<'py>(
        &self,
        py: Python<'py>,
        pair: &[Picture; 2],
        masks: [Option<&Input>; 2],
        no_data: Option<f32>,
        volume: Option<(&Picture, Option<f32>)>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let on_host = || {
            let (left, right) = (pair[0].on_host(py)?, pair[1].on_host(py)?);
            let costs = volume.map(|(costs, scale)| PyResult::Ok((costs.on_host(py)?, scale)));
            PyResult::Ok((left, right, costs.transpose()?))
        };
        let costs = volume.map(|(costs, _)| costs);
        if pair.iter().chain(costs).all(|picture| matches!(picture, Picture::Host(_))) {
            let (left, right, costs) = on_host()?;
            let found = self.device.get().run_sized(py, left.view().size().area(), |processor| {
                let a = held(left.view(), masks[0], no_data)?;
                let b = held(right.view(), masks[1], no_data)?;
                let masks = Masks { left: a.view(), right: b.view() };
                self.computed([left.view(), right.view()], costs.as_ref(), masks, processor)
            })?;
            return maps(py, found);
        }
        let [mut held_left, mut held_right] = masks.map(|mask| Mask::from(mask_view(mask)));
        for (held, (picture, mask)) in
            [&mut held_left, &mut held_right].into_iter().zip(pair.iter().zip(masks))
        {
            // The host finds transparent pixels and those of the value `no_data`.
            if no_data.is_some() || matches!(picture.pixels().channels(), 2 | 4) {
                *held = self::held(picture.on_host(py)?.view(), mask, no_data).map_err(raised)?;
            }
        }
        let masks = Masks { left: held_left.view(), right: held_right.view() };
        let [left, right] = pair.each_ref().map(Picture::pixels);
        let found = self.device.get().run_here(py, |processor| {
            let (stereo, left, right) = (&self.stereo, left.clone(), right.clone());
            let found = match volume {
                None => stereo.compute_on_device(left, right, masks, processor),
                Some((costs, scale)) => {
                    stereo.optimize_on_device((costs.pixels(), scale), [left, right], masks, processor)
                }
            };
            match found {
                Err(error) if error.is_device_limit() => Ok(None),
                found => found.map(Some),
            }
        })?;
        let found = match found {
            Some(found) => found,
            // Too large for the device at once: it is computed in bands of rows or by the CPU, through the host.
            None => {
                let (left, right, costs) = on_host()?;
                self.device.get().run(py, |processor| {
                    let pair = [left.view(), right.view()];
                    uploaded(processor, &self.computed(pair, costs.as_ref(), masks, processor)?)
                })?
            }
        };
        let found = Detached::new(found);
        let size = found.disparity.size();
        let map = |map: &GpuImage<f32>, nothing: f32| {
            let packed = py.detach(|| GpuStereoResult::dense(map, nothing)).map_err(raised)?;
            device_array(py, Numbers::F32(packed), vec![size.height, size.width])
        };
        let image = |image: AnyGpuImage| DeviceArray::of_image(py, &image);
        Ok(dict!(py, {
            "disparity": map(&found.disparity, f32::NAN)?,
            "right": found.right.as_ref().map(|right| map(right, f32::NAN)).transpose()?,
            "confidence": found.confidence.as_ref().map(|map| image(map.into())).transpose()?,
            "reasons": found.reasons.as_ref().map(|map| image(map.into())).transpose()?,
        }))
    }
}

fn uploaded(processor: &Processor, found: &StereoResult) -> tiepoint::Result<GpuStereoResult> {
    let gpu = processor
        .gpu()
        .ok_or_else(|| tiepoint::Error::Image("images on a GPU, and a device without one".into()))?;
    found.try_map(
        |map| GpuImage::upload(gpu, map.view()),
        |reasons| GpuImage::upload(gpu, numbers(reasons)?.view()),
    )
}

fn numbers(reasons: &Image<Reason>) -> tiepoint::Result<Image<u8>> {
    Image::from_vec(reasons.data().iter().map(|&reason| reason as u8).collect(), reasons.size(), 1)
}

/// Where a view holds data: where its mask is not 0, its alpha is not 0, and not all channels are `no_data`.
fn held<'a>(image: AnyView<'_>, mask: Option<&'a Input>, no_data: Option<f32>) -> tiepoint::Result<Mask<'a>> {
    Mask::from(mask_view(mask)).and(Mask::of_data(image, no_data))
}

/// NaN where there is no disparity.
pub(crate) fn with_nan(mut disparity: Image<f32>) -> Image<f32> {
    disparity.data_mut().iter_mut().filter(|d| **d == INVALID).for_each(|d| *d = f32::NAN);
    disparity
}

/// Both sides of a pair from images and masks of the host, in the order left, right, left mask, right mask.
fn sides(given: [Option<Bound<'_, PyAny>>; 4], no_data: Option<f32>) -> PyResult<[Side; 2]> {
    let [left, right, mask_left, mask_right] = given;
    let side = |image: Option<Bound<'_, PyAny>>, of_side: Option<Bound<'_, PyAny>>, what| {
        let image = image.ok_or_else(|| wrong_image(&format!("{what} is missing")))?;
        let (image, of_side) = (Input::of(&image, what)?, mask(of_side.as_ref())?);
        let held = held(image.view(), of_side.as_ref(), no_data).map_err(raised)?.into_image();
        Ok::<_, PyErr>(Side { image: image.view().to_image(), mask: held })
    };
    Ok([side(left, mask_left, "the left image")?, side(right, mask_right, "the right image")?])
}

/// The least disparity to search, which may be given, and how many, by tie points of a rectified pair; none if these are too
/// few.
#[pyfunction]
pub(crate) fn range_of_pair<'py>(
    py: Python<'py>,
    device: Option<&Bound<'py, PyAny>>,
    given: [Option<Bound<'py, PyAny>>; 4],
    no_data: Option<f32>,
    least: Option<i32>,
) -> PyResult<Option<(i32, usize)>> {
    let sides = sides(given, no_data)?;
    let found = run_on(py, device, |processor| survey(&sides, &processor.cpu))?;
    Ok(found.search(least))
}

/// The verdict on a disparity map in the host's memory, and its reasons. `given` are both images and their masks,
/// `searched` the least disparity and the number of disparities.
#[pyfunction]
pub(crate) fn assess_disparities<'py>(
    py: Python<'py>,
    device: Option<&Bound<'py, PyAny>>,
    disparity: &Bound<'py, PyAny>,
    given: [Option<Bound<'py, PyAny>>; 4],
    no_data: Option<f32>,
    searched: (i32, usize),
    truth: Option<&Bound<'py, PyAny>>,
) -> PyResult<Assessed<'py>> {
    let (sides, (least, count)) = (sides(given, no_data)?, searched);
    let disparity = Input::of(disparity, "the disparity map")?;
    let truth = truth.map(|truth| Input::of(truth, "the truth")).transpose()?;
    let map = disparity.floats("the disparity map")?;
    let truth = truth.as_ref().map(|truth| truth.floats("the truth")).transpose()?;
    let found = run_on(py, device, |processor| {
        let evidence = StereoEvidence::of(map, sides[0].mask.as_ref().map(Image::view), least, count);
        let evidence = evidence.with_patches(&sides, map, &processor.cpu)?;
        let evidence = match evidence.rows {
            Some(_) => evidence,
            None => evidence.with_survey(&survey(&sides, &processor.cpu)?),
        };
        let evidence = match truth {
            Some(truth) => evidence.with_truth(map, truth, sides[0].mask.as_ref().map(Image::view))?,
            None => evidence,
        };
        // Whether a rectification or a calibration shifts the disparities is not known here.
        Ok(StereoEvidence { behind: None, ..evidence }.assess())
    })?;
    assessed(py, Some(&found))
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
    let found = run_on(py, device, |p| tiepoint::stereo::depth::depth(map, &calibration, &p.cpu))?;
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
    let options = cloud::CloudOptions::default().with_max_depth(max_depth);
    let found = abandonable(py, move || {
        let map = disparity.floats("the disparity map")?;
        cloud::points(map, colours.view(), &calibration, &options).map_err(raised)
    })??;
    let (places, colours) = found.into_iter().map(|point| (point.place, point.colour)).unzip();
    Ok([rows(py, places)?, rows(py, colours)?])
}
