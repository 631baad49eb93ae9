//! Features as arrays, and the finders of them.

use crate::device::{Device, device_of};
use crate::errors::{raised, wrong_image, wrong_option};
use crate::image::{Counting, Input, mask, rows, table, values, vector};
use crate::options::Options;
use numpy::ndarray::ArrayView2;
use numpy::{Element, PyArray2, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use std::sync::{Arc, Mutex, PoisonError};
use tiepoint::device::{Cpu, Processor};
use tiepoint::feature::sift::SiftOptions;
use tiepoint::feature::surf::SurfOptions;
use tiepoint::feature::{Descriptors, Detector, Keypoint};
use tiepoint::image::{
    AnyCow, AnyView, ImageView, Prepared, Range, Size, alpha_mask, grey, prepare, without_margin,
};

/// What a detector found in one image: arrays, one row a feature, in the detector's total order.
///
/// All arrays are read-only. Descriptors are the detector's own memory; the others are made at their first use.
#[pyclass(frozen, module = "tiepoint")]
pub(crate) struct Features {
    found: tiepoint::feature::Features,
    columns: Columns,
}

/// A column, once it has been asked for.
type Column = PyOnceLock<Py<PyAny>>;

/// The columns.
struct Columns {
    xy: Column,
    scale: Column,
    angle: Column,
    response: Column,
    sign: Column,
    octave: Column,
    layer: Column,
}

impl Features {
    pub(crate) fn new(found: tiepoint::feature::Features) -> Self {
        let [xy, scale, angle, response, sign, octave, layer] = std::array::from_fn(|_| Column::new());
        Self { found, columns: Columns { xy, scale, angle, response, sign, octave, layer } }
    }

    /// The library's features.
    pub(crate) fn found(&self) -> &tiepoint::feature::Features {
        &self.found
    }

    fn column<T: Element>(
        &self,
        py: Python<'_>,
        kept: &Column,
        value: impl Fn(&Keypoint) -> T,
    ) -> PyResult<Py<PyAny>> {
        let made = kept
            .get_or_try_init(py, || read_only(vector(py, self.found.keypoints.iter().map(value).collect())));
        Ok(made?.clone_ref(py))
    }
}

/// The array, which nobody may write any more.
fn read_only(array: Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    array.getattr("flags")?.setattr("writeable", false)?;
    Ok(array.unbind())
}

/// Descriptors as an array over memory that `owner` keeps.
#[expect(unsafe_code, reason = "an array over memory that another object owns")]
fn over<'py, T: Element>(
    owner: &Bound<'py, Features>,
    values: &[T],
    shape: (usize, usize),
) -> PyResult<Bound<'py, PyAny>> {
    let view = ArrayView2::from_shape(shape, values).map_err(|e| wrong_image(&e.to_string()))?;
    // SAFETY: the owner is frozen and never changes or moves its descriptors; the array keeps it, and is read-only.
    let array = unsafe { PyArray2::borrow_from_array(&view, owner.clone().into_any()) };
    read_only(array.into_any()).map(|array| array.into_bound(owner.py()))
}

#[pymethods]
impl Features {
    /// Features of other programs' arrays.
    ///
    /// Parameters
    /// ----------
    /// xy : array_like, (N, 2)
    ///     Places in pixels; the centre of the first pixel is (0, 0).
    /// scale : array_like, (N,), optional
    ///     Standard deviations in pixels; 1 if not given.
    /// angle : array_like, (N,), optional
    ///     Directions in radians from +x towards +y; 0 if not given.
    /// response, sign, octave, layer : array_like, (N,), optional
    ///     As a detector gives them; 0, 1, 0 and 0 if not given.
    /// descriptors : array_like, (N, D), optional
    ///     ``uint8`` (unit vectors times 512) or ``float32`` (unit vectors).
    /// image_size : tuple of int, optional
    ///     Width and height of the image; (0, 0) where it is not known.
    #[staticmethod]
    #[pyo3(signature = (*, xy, scale = None, angle = None, response = None, sign = None, octave = None, layer = None,
        descriptors = None, image_size = (0, 0)))]
    #[expect(clippy::too_many_arguments, reason = "the columns of a table, each by its name")]
    fn from_arrays(
        xy: &Bound<'_, PyAny>,
        scale: Option<&Bound<'_, PyAny>>,
        angle: Option<&Bound<'_, PyAny>>,
        response: Option<&Bound<'_, PyAny>>,
        sign: Option<&Bound<'_, PyAny>>,
        octave: Option<&Bound<'_, PyAny>>,
        layer: Option<&Bound<'_, PyAny>>,
        descriptors: Option<&Bound<'_, PyAny>>,
        image_size: (usize, usize),
    ) -> PyResult<Self> {
        let places = table::<f32, 2>(xy, "xy")?;
        let n = places.len();
        let (scale, angle) = (column(scale, "scale", n, 1.0_f32)?, column(angle, "angle", n, 0.0_f32)?);
        let (response, sign) = (column(response, "response", n, 0.0_f32)?, column(sign, "sign", n, 1_i8)?);
        let (octave, layer) = (column(octave, "octave", n, 0_i8)?, column(layer, "layer", n, 0_u8)?);
        let keypoint = |i: usize| Keypoint {
            x: places[i][0],
            y: places[i][1],
            scale: scale[i],
            angle: angle[i],
            response: response[i],
            sign: sign[i],
            octave: octave[i],
            layer: layer[i],
        };
        let (descriptors, dimension) = match descriptors {
            None => (Descriptors::U8(vec![]), 0),
            Some(descriptors) => read_descriptors(descriptors, n)?,
        };
        let keypoints = (0..n).map(keypoint).collect();
        let image = Size::new(image_size.0, image_size.1);
        let found = tiepoint::feature::Features { keypoints, descriptors, dimension, image };
        found.check().map_err(raised)?;
        Ok(Self::new(found))
    }

    /// Places in pixels of the image, (N, 2) float32; the centre of the first pixel is (0, 0).
    #[getter]
    fn xy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let made = self.columns.xy.get_or_try_init(py, || {
            read_only(rows(py, self.found.keypoints.iter().map(|k| [k.x, k.y]).collect())?)
        });
        Ok(made?.clone_ref(py))
    }

    /// Standard deviations of the Gaussians of the features' scales in pixels, (N,) float32.
    #[getter]
    fn scale(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.column(py, &self.columns.scale, |k| k.scale)
    }

    /// Directions in radians, 0 to 2π, from +x towards +y, (N,) float32.
    #[getter]
    fn angle(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.column(py, &self.columns.angle, |k| k.angle)
    }

    /// Strengths, (N,) float32, never negative.
    #[getter]
    fn response(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.column(py, &self.columns.response, |k| k.response)
    }

    /// 1 for bright on dark, −1 for dark on bright, (N,) int8.
    #[getter]
    fn sign(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.column(py, &self.columns.sign, |k| k.sign)
    }

    /// Octaves, (N,) int8; −1 is the image at twice its size.
    #[getter]
    fn octave(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.column(py, &self.columns.octave, |k| k.octave)
    }

    /// Layers inside the octaves, (N,) uint8.
    #[getter]
    fn layer(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.column(py, &self.columns.layer, |k| k.layer)
    }

    /// Descriptors, (N, D): uint8, unit vectors times 512, or float32, unit vectors. (N, 0) where none were asked for.
    #[getter]
    fn descriptors<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let found = &slf.get().found;
        let shape = (found.len(), found.dimension);
        match &found.descriptors {
            Descriptors::U8(values) => over(slf, values, shape),
            Descriptors::F32(values) => over(slf, values, shape),
        }
    }

    /// Width and height of the image.
    #[getter]
    fn image_size(&self) -> (usize, usize) {
        (self.found.image.width, self.found.image.height)
    }

    /// These features in the memory of a device: `"cpu"`, where they are.
    fn to(slf: Py<Self>, device: &str) -> PyResult<Py<Self>> {
        match device {
            "cpu" => Ok(slf),
            other => Err(wrong_option(&format!("option device is {other}: expected cpu"))),
        }
    }

    fn __len__(&self) -> usize {
        self.found.len()
    }

    /// The features at an index, a slice, an array of indices or a mask, as NumPy indexes a column.
    fn __getitem__(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<Self> {
        let numpy = py.import("numpy")?;
        let all = numpy.call_method1("arange", (self.found.len(),))?;
        let picked = numpy.call_method1("atleast_1d", (all.get_item(index)?,))?;
        let picked: Vec<i64> = values(&picked, "the index", None)?;
        let picked: Vec<usize> = picked.into_iter().filter_map(|i| usize::try_from(i).ok()).collect();
        self.found.subset(&picked).map(Self::new).map_err(raised)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().found == self.found)
    }

    fn __repr__(&self) -> String {
        let (found, Size { width, height }) = (&self.found, self.found.image);
        let kind = match (&found.descriptors, found.dimension) {
            (_, 0) => "none".to_owned(),
            (Descriptors::U8(_), n) => format!("{n} uint8"),
            (Descriptors::F32(_), n) => format!("{n} float32"),
        };
        format!("Features({} of {width}x{height}, descriptors: {kind})", found.len())
    }

    /// For pickle: columns and descriptors.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let columns =
            ["xy", "scale", "angle", "response", "sign", "octave", "layer", "descriptors", "image_size"];
        let columns = columns.map(|name| slf.getattr(name));
        let columns = columns.into_iter().collect::<PyResult<Vec<_>>>()?;
        Ok((py.import("tiepoint._pickle")?.getattr("features")?, PyTuple::new(py, columns)?))
    }
}

/// A column of `n` values, or `n` times `otherwise`.
fn column<T: Element + Copy>(
    given: Option<&Bound<'_, PyAny>>,
    what: &str,
    n: usize,
    otherwise: T,
) -> PyResult<Vec<T>> {
    given.map_or_else(|| Ok(vec![otherwise; n]), |given| values(given, what, Some(n)))
}

/// The descriptors of `n` features and how many values each has.
fn read_descriptors(object: &Bound<'_, PyAny>, n: usize) -> PyResult<(Descriptors, usize)> {
    let py = object.py();
    let array = py.import("numpy")?.call_method1("require", (object, py.None(), ["C", "A"]))?;
    let array = array.cast::<PyUntypedArray>()?;
    let &[found, dimension] = array.shape() else {
        return Err(wrong_image(&format!(
            "descriptors have the shape {:?}: expected ({n}, D)",
            array.shape()
        )));
    };
    if found != n {
        return Err(wrong_image(&format!("there are {n} places, but {found} descriptors")));
    }
    let any = array.as_any();
    if let Ok(bytes) = any.cast::<PyArray2<u8>>() {
        return Ok((Descriptors::U8(bytes.readonly().as_slice()?.to_vec()), dimension));
    }
    match any.cast::<PyArray2<f32>>() {
        Ok(floats) => Ok((Descriptors::F32(floats.readonly().as_slice()?.to_vec()), dimension)),
        Err(_) => Err(wrong_image(&format!(
            "descriptors hold {}: expected uint8 (unit vectors times 512) or float32 (unit vectors)",
            array.dtype()
        ))),
    }
}

/// The values that become black and white: None for automatic, or two numbers.
pub(crate) fn range_of(range: Option<(f32, f32)>) -> PyResult<Range> {
    let range = range.map_or(Range::Auto, |(low, high)| Range::Between(low, high));
    range.check().map_err(raised)?;
    Ok(range)
}

/// The detector of this name and with these options.
pub(crate) fn detector(kind: &str, options: &Bound<'_, PyDict>) -> PyResult<Detector> {
    let preset = |name: &str| options.get_item(name).ok().flatten();
    let detector = match kind {
        "sift" => Detector::Sift(SiftOptions::default().with(options)?),
        "surf" => {
            let start = match preset("preset") {
                Some(name) => SurfOptions::preset(crate::options::named(&name)?),
                None => SurfOptions::default(),
            };
            // What is None follows from the preset.
            let given = options.copy()?;
            for name in ["threshold", "intervals", "step"] {
                if given.get_item(name)?.is_some_and(|value| value.is_none()) {
                    given.del_item(name)?;
                }
            }
            Detector::Surf(start.with(&given)?)
        }
        other => return Err(wrong_option(&format!("option detector is {other}: expected sift or surf"))),
    };
    detector.check().map_err(raised)?;
    Ok(detector)
}

/// A detector on a device, which keeps its memory from image to image. Threads may share it.
#[pyclass(frozen, module = "tiepoint._core")]
pub(crate) struct Finder {
    detector: Detector,
    range: Range,
    device: Py<Device>,
    opened: Mutex<Option<(u32, Arc<tiepoint::feature::Finder>)>>,
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
        Ok(Self {
            detector: detector(kind, options)?,
            range: range_of(range)?,
            device: device_of(py, device)?,
            opened: Mutex::default(),
        })
    }

    /// The options, with those that followed from the preset.
    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match &self.detector {
            Detector::Sift(options) => options.shown(py),
            Detector::Surf(options) => options.shown(py),
        }
    }

    /// The features of an image.
    #[pyo3(signature = (image, mask = None))]
    fn detect(
        &self,
        py: Python<'_>,
        image: &Bound<'_, PyAny>,
        mask: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Features> {
        let (image, mask) = (Input::of(image, "the image")?, self::mask(mask)?);
        let found = self.device.get().run(py, |processor| {
            let finder = self.finder(processor)?;
            let ready = Ready::new(&image, mask.as_ref(), self.range, &processor.cpu)?;
            finder.detect(ready.image.view(), ready.mask())
        });
        found.map(Features::new)
    }

    /// The features of several images, which a GPU searches together where they have one size and type.
    fn detect_together(&self, py: Python<'_>, images: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Features>> {
        let images = images.iter().map(|image| Input::of(image, "an image")).collect::<PyResult<Vec<_>>>()?;
        let found: Vec<tiepoint::feature::Features> = self.device.get().run(py, |processor| {
            let finder = self.finder(processor)?;
            let ready = images.iter().map(|image| Ready::new(image, None, self.range, &processor.cpu));
            let ready = ready.collect::<tiepoint::Result<Vec<_>>>()?;
            if ready.iter().any(|r| r.mask().is_some()) {
                return ready.iter().map(|r| finder.detect(r.image.view(), r.mask())).collect();
            }
            finder.detect_batch(ready.iter().map(|r| r.image.view())).into_iter().collect()
        })?;
        Ok(found.into_iter().map(Features::new).collect())
    }
}

impl Finder {
    /// The detector of the library, opened if need be.
    pub(crate) fn finder(&self, processor: &Processor) -> tiepoint::Result<Arc<tiepoint::feature::Finder>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        match &*opened {
            Some((made, finder)) if *made == process => return Ok(finder.clone()),
            // Its threads are those of another process.
            Some(_) => std::mem::forget(opened.take()),
            None => {}
        }
        let finder = Arc::new(self.detector.open(processor)?);
        *opened = Some((process, finder.clone()));
        Ok(finder)
    }

    /// The device it works on.
    pub(crate) fn device(&self) -> &Device {
        self.device.get()
    }

    /// The values that become black and white.
    pub(crate) fn range(&self) -> Range {
        self.range
    }

    pub(crate) fn detector(&self) -> Detector {
        self.detector
    }
}

/// Where features may lie: by the caller's mask, and not near what is transparent, where the pixels below bring edges that
/// mean nothing.
pub(crate) fn counting<'a>(image: AnyView<'_>, mask: Option<&'a Input>, cpu: &Cpu) -> Counting<'a> {
    let shown = alpha_mask(image).map(|shown| without_margin(shown.view(), cpu));
    Counting::new(mask).and(shown)
}

/// An image as detectors take it: grey, on the scale of its type, and where it counts.
pub(crate) struct Ready<'a> {
    pub(crate) image: AnyCow<'a>,
    counting: Counting<'a>,
}

impl<'a> Ready<'a> {
    pub(crate) fn new(
        image: &'a Input,
        mask: Option<&'a Input>,
        range: Range,
        cpu: &Cpu,
    ) -> tiepoint::Result<Self> {
        let counting = counting(image.view(), mask, cpu);
        let grey = grey(image.view(), cpu)?;
        let Prepared { image: made, mask: valid } = prepare(grey.view(), counting.view(), range, cpu)?;
        let image = match made.into_owned() {
            Some(made) => AnyCow::Owned(made),
            None => grey,
        };
        Ok(Self { image, counting: counting.and(valid) })
    }

    /// 0 where no keypoint may lie.
    pub(crate) fn mask(&self) -> Option<ImageView<'_, u8>> {
        self.counting.view()
    }
}
