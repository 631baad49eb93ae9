//! Detectors of features: options, images of the host and of a device.

use crate::device::{Device, device_of};
use crate::errors::{raised, wrong_option};
use crate::features::Features;
use crate::fork::{Detached, OfProcess};
use crate::image::{Input, image_shape, mask, mask_view, vector};
use crate::options::Options;
use crate::picture::mask_there;
use crate::tensor::{Place, Tensor, gpu_for, place};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use tiepoint::by_pixel;
use tiepoint::device::Processor;
use tiepoint::feature::Detector;
use tiepoint::feature::gpu::GpuFeatures;
use tiepoint::feature::sift::{Sift, SiftOptions};
use tiepoint::feature::surf::SurfOptions;
use tiepoint::image::gpu::{AnyGpuImage, GpuImage};
use tiepoint::image::{Image, Mask, Pixels, Prepared, Range, prepare, prepare_on_device};

fn detector(kind: &str, options: &Bound<'_, PyDict>) -> PyResult<Detector> {
    // Options that are None follow from the preset.
    let given = PyDict::new(options.py());
    for (name, value) in options.iter().filter(|(_, value)| !value.is_none()) {
        given.set_item(name, value)?;
    }
    let preset = given.get_item("preset")?;
    let detector = match kind {
        "sift" => Detector::Sift(SiftOptions::default().with(&given)?),
        "surf" => {
            let preset = preset.as_ref().map(crate::options::named).transpose()?;
            Detector::Surf(SurfOptions::preset(preset.unwrap_or_default()).with(&given)?)
        }
        other => return Err(wrong_option(&format!("option detector is {other}: expected sift or surf"))),
    };
    detector.check().map_err(raised)?;
    Ok(detector)
}

/// A detector on a device, which keeps its memory from image to image. Threads may share it.
#[pyclass(frozen, module = "tiepoint._core")]
pub(crate) struct Finder {
    pub(crate) detector: Detector,
    pub(crate) range: Range,
    pub(crate) device: Py<Device>,
    opened: OfProcess<tiepoint::feature::Finder>,
}

#[pymethods]
impl Finder {
    #[new]
    fn new(
        py: Python<'_>,
        kind: &str,
        options: &Bound<'_, PyDict>,
        range: Option<(f32, f32)>,
        device: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let detector = detector(kind, options)?;
        // The values that become black and white; None for automatic.
        let range = range.map_or(Range::Auto, |(low, high)| Range::Between(low, high));
        range.check().map_err(raised)?;
        Ok(Self { detector, range, device: device_of(py, device)?, opened: OfProcess::default() })
    }

    /// The options, including those from the preset.
    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match &self.detector {
            Detector::Sift(options) => options.shown(py),
            Detector::Surf(options) => options.shown(py),
        }
    }

    #[pyo3(signature = (image, mask = None))]
    fn detect(
        &self,
        py: Python<'_>,
        image: &Bound<'_, PyAny>,
        mask: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Features> {
        if let Place::Cuda(id) = place(image, "the image")? {
            return self.detect_there(py, (image, id), mask);
        }
        let (image, mask) = (Input::of(image, "the image")?, self::mask(mask)?);
        self.device.get().run_sized(py, image.view().size().area(), |processor| {
            let finder = self.finder(processor)?;
            let ready = prepare(image.view(), mask_view(mask.as_ref()), self.range, &processor.cpu)?;
            let found = finder.detect(ready.image.view(), ready.mask.view())?;
            Ok(Features::new(found).with_mask(ready.mask.view()))
        })
    }

    /// Features at the places of given ones, and the rows of the given ones that could be described.
    fn describe<'py>(
        &self,
        py: Python<'py>,
        image: &Bound<'py, PyAny>,
        given: &Bound<'py, Features>,
    ) -> PyResult<(Features, Bound<'py, PyAny>)> {
        let Detector::Sift(options) = self.detector else {
            return Err(wrong_option("given keypoints are described by SIFT alone"));
        };
        let (image, given) = (Input::of(image, "the image")?, given.get().found(py)?);
        let (found, rows) = self.device.get().run(py, |processor| {
            let ready = prepare(image.view(), Mask::All, self.range, &processor.cpu)?;
            let sift = Sift::new(options)?;
            let (found, rows) =
                by_pixel!(ready.image.view(), image => sift.describe(image, &given.keypoints, &processor.cpu))?;
            Ok((Features::new(found).with_mask(ready.mask.view()), rows))
        })?;
        Ok((found, vector(py, rows.into_iter().map(|row| row as i64).collect())))
    }

    /// The features of several images, which a GPU searches together if they have one size and type.
    fn detect_together(&self, py: Python<'_>, images: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Features>> {
        let places = images.iter().map(|image| place(image, "an image")).collect::<PyResult<Vec<_>>>()?;
        if places.iter().any(|place| matches!(place, Place::Cuda(_))) {
            return images.iter().map(|image| self.detect(py, image, None)).collect();
        }
        let images = images.iter().map(|image| Input::of(image, "an image")).collect::<PyResult<Vec<_>>>()?;
        self.device.get().run(py, |processor| {
            let finder = self.finder(processor)?;
            let ready = images.iter().map(|i| prepare(i.view(), Mask::All, self.range, &processor.cpu));
            let ready = ready.collect::<tiepoint::Result<Vec<_>>>()?;
            if ready.iter().any(|r| r.mask.view().is_some()) {
                let found = |r: &Prepared<'_>| {
                    let found = finder.detect(r.image.view(), r.mask.view())?;
                    Ok(Features::new(found).with_mask(r.mask.view()))
                };
                return ready.iter().map(found).collect();
            }
            let found = finder.detect_batch(ready.iter().map(|r| r.image.view())).into_iter();
            found.map(|found| Ok(Features::new(found?))).collect()
        })
    }
}

/// The mask with which an image on a device was searched, in the host's memory: the one that the host made, or else the given
/// one.
pub(crate) fn searched_mask(
    made: Option<Image<u8>>,
    given: Option<&GpuImage<u8>>,
) -> tiepoint::Result<Option<Image<u8>>> {
    match made {
        None => given.map(GpuImage::download).transpose(),
        made => Ok(made),
    }
}

impl Finder {
    /// The features of an image in the memory of a CUDA device, which stay there. The mask may be on the host.
    fn detect_there(
        &self,
        py: Python<'_>,
        (image, id): (&Bound<'_, PyAny>, Option<u32>),
        mask: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Features> {
        let device = self.device.get();
        let processor = device.settled(py)?;
        let gpu = gpu_for(processor.gpu(), id, "the image")?;
        let image = Tensor::of(image, gpu, "the image")?.image(gpu, "the image", image_shape)?;
        let mask = mask.map(|mask| mask_there(mask, gpu)).transpose()?;
        // The first call compiles kernels, which Ctrl-C can interrupt.
        if !self.opened.is_made() {
            device.run(py, |processor| self.finder(processor).map(drop))?;
        }
        let given = Detached::new((image, mask));
        let (found, mask) = device.run_here(py, |processor| {
            let (found, made) = self.search_there(&given.0, given.1.as_ref(), processor)?;
            Ok((found, searched_mask(made, given.1.as_ref())?))
        })?;
        Ok(Features::on_device(found, self.device.clone_ref(py)).with_mask(mask.as_ref().map(Image::view)))
    }

    /// The steps of `detect` for an image on the host, on a device: grey, range, search. With the features comes the mask
    /// that was made on the host, if one was.
    pub(crate) fn search_there(
        &self,
        image: &AnyGpuImage,
        mask: Option<&GpuImage<u8>>,
        processor: &Processor,
    ) -> tiepoint::Result<(GpuFeatures, Option<Image<u8>>)> {
        let finder = self.finder(processor)?;
        if let Some(ready) = prepare_on_device(image, mask, self.range)? {
            return Ok((finder.detect_on_device(&ready, mask.map(Pixels::from))?, None));
        }
        // The host finds transparent pixels and holes, and fills the holes.
        let (image, mask) = (image.download()?, mask.map(GpuImage::download).transpose()?);
        let ready = prepare(image, mask, self.range, &processor.cpu)?;
        let found = finder.detect_on_device(ready.image.view(), ready.mask.view().map(Pixels::from))?;
        Ok((found, ready.mask.into_image()))
    }

    fn finder(&self, processor: &Processor) -> tiepoint::Result<Arc<tiepoint::feature::Finder>> {
        self.opened.get_or_make(|| self.detector.open(processor))
    }
}
