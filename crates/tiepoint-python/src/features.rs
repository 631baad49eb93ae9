//! Features as arrays, on the host and on a device.

use crate::device::{Device, device_of};
use crate::device_array::{DeviceArray, Numbers};
use crate::dlpack::DataType;
use crate::errors::{raised, wrong_image};
use crate::fork::{Detached, forked};
use crate::image::{rows, table, values, vector};
use crate::tensor::{Place, Tensor, cuda_device, gpu_for, place};
use numpy::ndarray::ArrayView2;
use numpy::{Element, PyArray2, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use std::sync::OnceLock;
use tiepoint::device::gpu::{self, Api, Buffer, Gpu};
use tiepoint::feature::gpu::{GpuColumns, GpuDescriptors, GpuFeatures};
use tiepoint::feature::{Descriptors, Keypoint};
use tiepoint::image::{ImageView, Size};
use tiepoint::register::hidden_parts;

/// The features of one image: arrays with one row for each feature, in the detector's order.
///
/// All arrays are read-only. Descriptors are the detector's own memory; every other array is made when it is first
/// read. The features of an image on a GPU stay there: each of their arrays is a `DeviceArray`, and `to` copies them to
/// the host.
#[pyclass(frozen, module = "tiepoint")]
pub(crate) struct Features {
    /// The features in the host's memory; those on a device are copied here when they are first needed.
    here: OnceLock<tiepoint::feature::Features>,
    there: Option<There>,
    columns: Columns,
    /// Which parts of the image were masked or held no data when it was searched.
    hidden: [bool; 9],
}

struct There {
    features: Detached<GpuFeatures>,
    /// Made when they are first needed.
    columns: OnceLock<GpuColumns>,
    device: Py<Device>,
    /// The process that opened the device.
    process: u32,
}

impl There {
    /// The features, unless the process has been forked since.
    fn features(&self) -> PyResult<&GpuFeatures> {
        match self.process == std::process::id() {
            true => Ok(&self.features),
            false => Err(raised(forked(&self.name()))),
        }
    }

    fn name(&self) -> String {
        name_of(self.features.gpu())
    }

    fn columns(&self, py: Python<'_>) -> PyResult<&GpuColumns> {
        let features = self.features()?;
        if self.columns.get().is_none() {
            let made = py.detach(|| features.columns()).map_err(raised)?;
            // If another thread was faster, its columns are the same.
            let _ = self.columns.set(made);
        }
        self.columns.get().ok_or_else(|| wrong_image("columns were not made"))
    }
}

/// The name of a GPU in the form that devices are named.
pub(crate) fn name_of(gpu: &Gpu) -> String {
    format!("{}:{}", gpu.info().api, gpu.info().index)
}

/// A column, made when it is first needed.
type Column = PyOnceLock<Py<PyAny>>;

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
        Self::of(OnceLock::from(found), None)
    }

    pub(crate) fn on_device(features: GpuFeatures, device: Py<Device>) -> Self {
        let (features, process) = (Detached::new(features), std::process::id());
        let there = Some(There { features, columns: OnceLock::new(), device, process });
        Self::of(OnceLock::new(), there)
    }

    fn of(here: OnceLock<tiepoint::feature::Features>, there: Option<There>) -> Self {
        let [xy, scale, angle, response, sign, octave, layer] = std::array::from_fn(|_| Column::new());
        let columns = Columns { xy, scale, angle, response, sign, octave, layer };
        Self { here, there, columns, hidden: [false; 9] }
    }

    /// A copy in the host's memory.
    fn copied(&self, py: Python<'_>) -> PyResult<Self> {
        Ok(Self::new(self.found(py)?.clone()).hiding(self.hidden))
    }

    /// The same features, of an image that was searched where `mask` is not 0.
    pub(crate) fn with_mask(self, mask: Option<ImageView<'_, u8>>) -> Self {
        self.hiding(hidden_parts(mask))
    }

    /// Those of an image of which these parts were masked.
    pub(crate) fn hiding(self, hidden: [bool; 9]) -> Self {
        Self { hidden, ..self }
    }

    /// [`TiePoints::hidden`](tiepoint::register::TiePoints::hidden).
    pub(crate) fn hidden(&self) -> [bool; 9] {
        self.hidden
    }

    /// The library's features, copied from the device if they lie on one.
    pub(crate) fn found(&self, py: Python<'_>) -> PyResult<&tiepoint::feature::Features> {
        if let (None, Some(there)) = (self.here.get(), &self.there) {
            let features = there.features()?;
            let found = py.detach(|| features.download()).map_err(raised)?;
            // If another thread was faster, its features are the same.
            let _ = self.here.set(found);
        }
        self.here()
    }

    /// The features, which lie here or were copied from the device before.
    pub(crate) fn here(&self) -> PyResult<&tiepoint::feature::Features> {
        self.here.get().ok_or_else(|| wrong_image("the features were not copied from the device"))
    }

    /// The device on which they lie, if they lie on one.
    pub(crate) fn device_there(&self) -> Option<&Py<Device>> {
        self.there.as_ref().map(|there| &there.device)
    }

    /// The features on a GPU, without a copy if they are already there.
    pub(crate) fn on_gpu(&self, py: Python<'_>, gpu: &Gpu) -> PyResult<GpuFeatures> {
        if let Some(there) = &self.there {
            // OpenCL shares memory only within one opened device.
            let features = there.features()?;
            match features.on(gpu) {
                Ok(same) => return Ok(same),
                Err(error) if gpu.info().api == Api::Cuda && there.name() == name_of(gpu) => {
                    return Err(raised(error));
                }
                Err(_) => {}
            }
        }
        let found = self.found(py)?;
        py.detach(|| GpuFeatures::upload(gpu, found)).map_err(raised)
    }

    fn len(&self) -> usize {
        match (&self.there, self.here.get()) {
            (Some(there), _) => there.features.capacity(),
            (None, here) => here.map_or(0, tiepoint::feature::Features::len),
        }
    }

    fn size(&self) -> Size {
        match (&self.there, self.here.get()) {
            (Some(there), _) => there.features.image_size(),
            (None, here) => here.map_or(Size::default(), |here| here.image),
        }
    }

    /// A column, in the memory of the device on which the features lie.
    fn column<T: Element + gpu::Element>(
        &self,
        py: Python<'_>,
        kept: &Column,
        there: impl Fn(&GpuColumns) -> &Buffer<T>,
        value: impl Fn(&Keypoint) -> T,
    ) -> PyResult<Py<PyAny>>
    where
        Numbers: From<Buffer<T>>,
    {
        let made = kept.get_or_try_init(py, || match &self.there {
            Some(device) => device_array(py, there(device.columns(py)?).clone().into(), vec![self.len()]),
            None => read_only(vector(py, self.found(py)?.keypoints.iter().map(value).collect())),
        });
        Ok(made?.clone_ref(py))
    }
}

/// Numbers in a device's memory as an array for other programs.
pub(crate) fn device_array(py: Python<'_>, numbers: Numbers, shape: Vec<usize>) -> PyResult<Py<PyAny>> {
    Ok(Py::new(py, DeviceArray::new(numbers, shape))?.into_any())
}

/// The array, made read-only.
fn read_only(array: Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    array.getattr("flags")?.setattr("writeable", false)?;
    Ok(array.unbind())
}

/// Descriptors as an array over the memory of `owner`.
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
    /// Features from arrays of other programs.
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
    ///     As a detector gives them; 0 if not given. Features of sign 0 are compared with those of either sign.
    /// descriptors : array_like, (N, D), optional
    ///     ``uint8`` (unit vectors times 512) or ``float32`` (unit vectors). Descriptors on a CUDA device stay there, and
    ///     are not copied; they must not be changed as long as these features exist.
    /// image_size : tuple of int, optional
    ///     Width and height of the image; not given, or (0, 0), if they are not known.
    /// device : Device or str, optional
    ///     The CUDA device on which descriptors lie, if it is not the one named by its number. Other columns may lie
    ///     there, too, and are copied to the host.
    #[staticmethod]
    #[pyo3(signature = (*, xy, scale = None, angle = None, response = None, sign = None, octave = None, layer = None,
        descriptors = None, image_size = None, device = None))]
    #[expect(clippy::too_many_arguments, reason = "the columns of a table, each by its name")]
    fn from_arrays<'py>(
        py: Python<'py>,
        xy: &Bound<'py, PyAny>,
        scale: Option<&Bound<'py, PyAny>>,
        angle: Option<&Bound<'py, PyAny>>,
        response: Option<&Bound<'py, PyAny>>,
        sign: Option<&Bound<'py, PyAny>>,
        octave: Option<&Bound<'py, PyAny>>,
        layer: Option<&Bound<'py, PyAny>>,
        descriptors: Option<&Bound<'py, PyAny>>,
        image_size: Option<&Bound<'py, PyAny>>,
        device: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let here = |given: &Bound<'py, PyAny>, what| on_host(py, given, device, what);
        let places = table::<f32, 2>(&here(xy, "xy")?, "xy")?;
        let n = places.len();
        let column =
            |given: Option<&Bound<'py, PyAny>>, what| given.map(|given| here(given, what)).transpose();
        let scale = filled(column(scale, "scale")?, "scale", n, 1.0_f32)?;
        let angle = filled(column(angle, "angle")?, "angle", n, 0.0_f32)?;
        let response = filled(column(response, "response")?, "response", n, 0.0_f32)?;
        let sign = filled(column(sign, "sign")?, "sign", n, 0_i8)?;
        let octave = filled(column(octave, "octave")?, "octave", n, 0_i8)?;
        let layer = filled(column(layer, "layer")?, "layer", n, 0_u8)?;
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
        let keypoints: Vec<Keypoint> = (0..n).map(keypoint).collect();
        Keypoint::check(&keypoints).map_err(|reason| wrong_image(&reason))?;
        let image = image_size.map_or(Ok(Size::default()), |given| {
            let (width, height) = checker(py)?.call_method1("size", (given,))?.extract()?;
            Ok::<_, PyErr>(Size::new(width, height))
        })?;
        if let Some(descriptors) = descriptors
            && let Place::Cuda(id) = place(descriptors, "descriptors")?
        {
            let device = cuda_device(py, device, id)?;
            let processor = device.get().settled(py)?;
            let gpu = gpu_for(processor.gpu(), id, "descriptors")?;
            let there = descriptors_there(Tensor::of(descriptors, gpu, "descriptors")?, gpu, n)?;
            // Only the keypoints: their descriptors are on the device.
            let alone = Descriptors::U8(vec![]);
            let here = tiepoint::feature::Features { keypoints, descriptors: alone, dimension: 0, image };
            here.check().map_err(raised)?;
            let made = py.detach(|| GpuFeatures::with_descriptors(&here.keypoints, there, image));
            return Ok(Self::on_device(made.map_err(raised)?, device));
        }
        let (descriptors, dimension) = match descriptors {
            None => (Descriptors::U8(vec![]), 0),
            Some(descriptors) => read_descriptors(&here(descriptors, "descriptors")?, n)?,
        };
        let found = tiepoint::feature::Features { keypoints, descriptors, dimension, image };
        found.check().map_err(raised)?;
        Ok(Self::new(found))
    }

    /// Places in pixels of the image, (N, 2) float32; the centre of the first pixel is (0, 0).
    #[getter]
    fn xy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let made = self.columns.xy.get_or_try_init(py, || match &self.there {
            Some(there) => device_array(py, Numbers::F32(there.columns(py)?.xy.clone()), vec![self.len(), 2]),
            None => read_only(rows(py, self.found(py)?.keypoints.iter().map(|k| [k.x, k.y]).collect())?),
        });
        Ok(made?.clone_ref(py))
    }

    /// Standard deviations of the Gaussians of the features' scales in pixels, (N,) float32.
    #[getter]
    fn scale(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.column(py, &self.columns.scale, |there| &there.scale, |k| k.scale)
    }

    /// Directions in radians, 0 to 2π, from +x towards +y, (N,) float32.
    #[getter]
    fn angle(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.column(py, &self.columns.angle, |there| &there.angle, |k| k.angle)
    }

    /// Strengths, (N,) float32, never negative.
    #[getter]
    fn response(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.column(py, &self.columns.response, |there| &there.response, |k| k.response)
    }

    /// 1 for bright on dark, −1 for dark on bright, 0 if it is not known, (N,) int8.
    #[getter]
    fn sign(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.column(py, &self.columns.sign, |there| &there.sign, |k| k.sign)
    }

    /// Octaves, (N,) int8; −1 is the image at twice its size.
    #[getter]
    fn octave(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.column(py, &self.columns.octave, |there| &there.octave, |k| k.octave)
    }

    /// Layers inside the octaves, (N,) uint8.
    #[getter]
    fn layer(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.column(py, &self.columns.layer, |there| &there.layer, |k| k.layer)
    }

    /// Descriptors, (N, D): uint8, unit vectors times 512, or float32, unit vectors; (N, 0) if none were computed.
    #[getter]
    fn descriptors<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(there) = &slf.get().there {
            let features = there.features()?;
            let numbers = match features.descriptors() {
                GpuDescriptors::U8(bytes) => Numbers::U8(bytes.clone()),
                GpuDescriptors::F32(floats) => Numbers::F32(floats.clone()),
            };
            let shape = vec![features.capacity(), features.dimension()];
            return Ok(device_array(slf.py(), numbers, shape)?.into_bound(slf.py()));
        }
        let found = slf.get().found(slf.py())?;
        let shape = (found.len(), found.dimension);
        match &found.descriptors {
            Descriptors::U8(values) => over(slf, values, shape),
            Descriptors::F32(values) => over(slf, values, shape),
        }
    }

    /// The descriptors as unit vectors, (N, D) float32. NumPy's products of bytes overflow; products of these do not.
    fn unit<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("tiepoint._features")?.call_method1("unit", (slf,))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("tiepoint._show")?.call_method1("features_html", (slf,))
    }

    fn _repr_png_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("tiepoint._show")?.call_method1("features_png", (slf,))
    }

    /// Width and height of the image.
    #[getter]
    fn image_size(&self) -> (usize, usize) {
        (self.size().width, self.size().height)
    }

    /// The device on which the arrays lie: ``"cpu"``, ``"cuda:0"``, …
    #[getter]
    fn device(&self) -> String {
        self.there.as_ref().map_or_else(|| "cpu".into(), There::name)
    }

    /// These features in the memory of a device; the same object if they are already there.
    ///
    /// Parameters
    /// ----------
    /// device : Device or str
    ///     ``"cpu"``, ``"cuda"``, ``"cuda:1"``, …
    fn to(slf: &Bound<'_, Self>, device: &Bound<'_, PyAny>) -> PyResult<Py<Self>> {
        let (py, features) = (slf.py(), slf.get());
        let device = device_of(py, Some(device))?;
        let processor = device.get().settled(py)?;
        let moved = match (processor.gpu(), &features.there) {
            (None, None) => return Ok(slf.clone().unbind()),
            (None, Some(_)) => features.copied(py)?,
            (Some(gpu), Some(there)) if there.name() == name_of(gpu) => return Ok(slf.clone().unbind()),
            (Some(gpu), _) => Self::on_device(features.on_gpu(py, gpu)?, device),
        };
        Py::new(py, moved.hiding(features.hidden))
    }

    fn __len__(&self) -> usize {
        self.len()
    }

    /// The features at an index, a slice, an array of indices or a mask, as NumPy indexes a column.
    fn __getitem__(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<Self> {
        let numpy = py.import("numpy")?;
        let all = numpy.call_method1("arange", (self.len(),))?;
        let picked = numpy.call_method1("atleast_1d", (all.get_item(index)?,))?;
        let picked: Vec<i64> = values(&picked, "the index", None)?;
        let picked: Vec<usize> = picked.into_iter().filter_map(|i| usize::try_from(i).ok()).collect();
        let picked = self.found(py)?.subset(&picked).map_err(raised)?;
        let hidden = self.hidden;
        let Some(there) = &self.there else { return Ok(Self::new(picked).hiding(hidden)) };
        let gpu = there.features()?.gpu();
        let uploaded = py.detach(|| GpuFeatures::upload(gpu, &picked)).map_err(raised)?;
        Ok(Self::on_device(uploaded, there.device.clone_ref(py)).hiding(hidden))
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        match other.cast::<Self>() {
            Ok(other) => Ok(other.get().found(py)? == self.found(py)?),
            Err(_) => Ok(false),
        }
    }

    fn __repr__(&self) -> String {
        let Size { width, height } = self.size();
        let (floats, dimension) = match (&self.there, self.here.get()) {
            (Some(There { features, .. }), _) => {
                (matches!(features.descriptors(), GpuDescriptors::F32(_)), features.dimension())
            }
            (None, Some(found)) => (matches!(found.descriptors, Descriptors::F32(_)), found.dimension),
            (None, None) => (false, 0),
        };
        let kind = match (floats, dimension) {
            (_, 0) => "none".to_owned(),
            (false, n) => format!("{n} uint8"),
            (true, n) => format!("{n} float32"),
        };
        let place = self.there.as_ref().map_or(String::new(), |there| format!(", on {}", there.name()));
        format!("Features({} of {width}x{height}, descriptors: {kind}{place})", self.len())
    }

    #[getter]
    fn _hidden(&self) -> [bool; 9] {
        self.hidden
    }

    /// The same features, of an image of which these parts were masked.
    fn _hiding(&self, py: Python<'_>, hidden: [bool; 9]) -> PyResult<Self> {
        Ok(self.copied(py)?.hiding(hidden))
    }

    /// For pickle: columns and descriptors.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let columns = [
            "xy",
            "scale",
            "angle",
            "response",
            "sign",
            "octave",
            "layer",
            "descriptors",
            "image_size",
            "_hidden",
        ];
        let here = match slf.get().there.is_some() {
            true => Bound::new(py, slf.get().copied(py)?)?,
            false => slf.clone(),
        };
        let columns = columns.map(|name| here.getattr(name));
        let columns = columns.into_iter().collect::<PyResult<Vec<_>>>()?;
        Ok((py.import("tiepoint._pickle")?.getattr("features")?, PyTuple::new(py, columns)?))
    }
}

/// A column of `n` values, or `n` times `otherwise`.
fn filled<T: Element + Copy>(
    given: Option<Bound<'_, PyAny>>,
    what: &str,
    n: usize,
    otherwise: T,
) -> PyResult<Vec<T>> {
    given.map_or_else(|| Ok(vec![otherwise; n]), |given| values(&given, what, Some(n)))
}

/// The module that checks what is given as an array.
fn checker(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("tiepoint._arrays")
}

/// The column as an array of numbers, or a copy on the host if it lies on a CUDA device.
fn on_host<'py>(
    py: Python<'py>,
    column: &Bound<'py, PyAny>,
    device: Option<&Bound<'py, PyAny>>,
    what: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let Place::Cuda(id) = place(column, what)? else {
        return checker(py)?.call_method1("array", (column, what));
    };
    let processor = cuda_device(py, device, id)?.get().settled(py)?;
    let gpu = gpu_for(processor.gpu(), id, what)?;
    Tensor::of(column, gpu, what)?.into_host(py, gpu, what)
}

/// The number of values of each descriptor, if this shape is that of `n` descriptors.
fn dimension(shape: &[usize], n: usize) -> PyResult<usize> {
    match *shape {
        [found, dimension] if found == n => Ok(dimension),
        [found, _] => Err(wrong_image(&format!("there are {n} places, but {found} descriptors"))),
        _ => Err(wrong_image(&format!("descriptors have the shape {shape:?}: expected ({n}, D)"))),
    }
}

fn wrong_type(found: impl std::fmt::Display) -> PyErr {
    wrong_image(&format!(
        "descriptors hold {found}: expected uint8 (unit vectors times 512) or floats (unit vectors)"
    ))
}

/// The descriptors of `n` features in memory of another program, and the number of values of each.
fn descriptors_there(tensor: Tensor, gpu: &Gpu, n: usize) -> PyResult<(GpuDescriptors, usize)> {
    let dimension = dimension(&tensor.shape, n)?;
    let descriptors = match tensor.dtype {
        DataType::U8 => GpuDescriptors::U8(tensor.buffer(gpu, "descriptors")?),
        DataType::F32 => GpuDescriptors::F32(tensor.buffer(gpu, "descriptors")?),
        other => return Err(wrong_type(crate::tensor::name_of(other))),
    };
    Ok((descriptors, dimension))
}

/// The descriptors of `n` features, and the number of values of each.
fn read_descriptors(object: &Bound<'_, PyAny>, n: usize) -> PyResult<(Descriptors, usize)> {
    let py = object.py();
    let numpy = py.import("numpy")?;
    let found = numpy.call_method1("asarray", (object,))?;
    // Floats of any width and byte order.
    let is_float = found.getattr("dtype")?.getattr("kind")?.extract::<char>()? == 'f';
    let wanted = if is_float { Some("float32") } else { None };
    let array = numpy.call_method1("require", (found, wanted, ["C", "A"]))?;
    let array = array.cast::<PyUntypedArray>()?;
    let dimension = dimension(array.shape(), n)?;
    let any = array.as_any();
    if let Ok(bytes) = any.cast::<PyArray2<u8>>() {
        return Ok((Descriptors::U8(bytes.readonly().as_slice()?.to_vec()), dimension));
    }
    match any.cast::<PyArray2<f32>>() {
        Ok(floats) => Ok((Descriptors::F32(floats.readonly().as_slice()?.to_vec()), dimension)),
        Err(_) => Err(wrong_type(array.dtype())),
    }
}
