//! Arrays of other programs in the memory of a CUDA device: PyTorch's, CuPy's, JAX's, Numba's.
//!
//! There are three ways to read them. With DLPack's C interface (`exchange`) our queue waits for the producer's current
//! stream. With `__dlpack__` the producer makes our queue wait. With the CUDA array interface (version 3) our queue
//! waits for the stream that the array names. Nothing is copied. An image is as in `image`: the pixels of a row are
//! contiguous, and rows may be any distance apart; every other layout is refused with advice, because it would have to
//! be copied.

use crate::device::{Device, device_of};
use crate::device_array::{DeviceArray, Numbers};
use crate::dlpack::{self, CPU, CUDA, DataType, Imported, Taken};
use crate::errors::{raised, wrong_image};
use crate::exchange::Exchange;
use crate::image::{Shape, image_shape};
use numpy::PyUntypedArray;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use tiepoint::device::gpu::{Api, Buffer, Element, ForeignStream, Gpu};
use tiepoint::image::Size;
use tiepoint::image::gpu::{AnyGpuImage, GpuImage};

pub(crate) enum Place {
    /// In the host's memory, where NumPy can read it.
    Host,
    /// On the CUDA device of this number; `None` if the number is not known.
    Cuda(Option<u32>),
}

/// Where the numbers of an object are; `what` names it in errors.
pub(crate) fn place(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Place> {
    if object.cast::<PyUntypedArray>().is_ok() {
        return Ok(Place::Host);
    }
    let py = object.py();
    let told = match Exchange::of(object).and_then(|exchange| exchange.device(object)) {
        None if object.hasattr(intern!(py, "__dlpack_device__"))? => {
            Some(object.call_method0(intern!(py, "__dlpack_device__"))?.extract::<(i64, i64)>()?)
        }
        told => told,
    };
    if let Some((kind, id)) = told {
        return match kind {
            // Memory of the host: kDLCPU, kDLCUDAHost and kDLCUDAManaged.
            CPU | 3 | 13 => Ok(Place::Host),
            CUDA => match u32::try_from(id) {
                Ok(id) => Ok(Place::Cuda(Some(id))),
                Err(_) => {
                    Err(PyBufferError::new_err(format!("{what} lies on the CUDA device {id}: there is none")))
                }
            },
            other => Err(wrong_image(&format!(
                "{what} lies in memory that is neither the host's nor CUDA's (DLPack's device type {other}): bring it to \
                 the host first, with .cpu() or asnumpy()"
            ))),
        };
    }
    Ok(if object.hasattr("__cuda_array_interface__")? { Place::Cuda(None) } else { Place::Host })
}

/// Fails unless a device is the CUDA device on which an array lies.
pub(crate) fn gpu_for<'g>(gpu: Option<&'g Gpu>, id: Option<u32>, what: &str) -> PyResult<&'g Gpu> {
    let lies = id.map_or("a CUDA device".to_owned(), |id| format!("cuda:{id}"));
    let device = match gpu.map(|gpu| (gpu, gpu.info())) {
        Some((gpu, info)) if info.api == Api::Cuda && id.is_none_or(|id| id == info.index) => return Ok(gpu),
        Some((gpu, _)) => crate::features::name_of(gpu),
        None => "cpu".into(),
    };
    let open = id.map_or("cuda".to_owned(), |id| format!("cuda:{id}"));
    Err(wrong_image(&format!(
        "{what} lies in the memory of {lies}, and this computes on {device}: take device=\"{open}\", or bring it to the host \
         with .cpu() or asnumpy()"
    )))
}

/// The device of an array: the given one, or the CUDA device of its number.
pub(crate) fn cuda_device(
    py: Python<'_>,
    given: Option<&Bound<'_, PyAny>>,
    id: Option<u32>,
) -> PyResult<Py<Device>> {
    match given {
        Some(device) => device_of(py, Some(device)),
        None => {
            let name = PyString::new(py, &id.map_or("cuda".to_owned(), |id| format!("cuda:{id}")));
            device_of(py, Some(name.as_any()))
        }
    }
}

enum Owner {
    Capsule(#[expect(dead_code, reason = "it is kept, and dropped")] Taken),
    Object(#[expect(dead_code, reason = "it is kept, and dropped")] Py<PyAny>),
}

pub(crate) struct Tensor {
    address: u64,
    pub(crate) dtype: DataType,
    pub(crate) shape: Vec<usize>,
    /// In elements.
    strides: Vec<i64>,
    owner: Owner,
}

impl Tensor {
    /// The array that an object on this device holds. The device's queue waits until it is complete.
    pub(crate) fn of(object: &Bound<'_, PyAny>, gpu: &Gpu, what: &str) -> PyResult<Self> {
        if let Some(exchange) = Exchange::of(object)
            && let Some((imported, stream)) = exchange.take(object, what)?
        {
            wait_for(gpu, stream)?;
            return Self::of_imported(imported, gpu, what);
        }
        if object.hasattr(intern!(object.py(), "__dlpack__"))? {
            return Self::of_dlpack(object, gpu, what);
        }
        let (tensor, stream) = interface(object, what)?;
        if let Some(handle) = stream {
            wait_for(gpu, handle)?;
        }
        Ok(tensor)
    }

    fn of_dlpack(object: &Bound<'_, PyAny>, gpu: &Gpu, what: &str) -> PyResult<Self> {
        let py = object.py();
        let stream = gpu.stream().map_err(raised)?.handle();
        let named = dict!(py, { "stream": stream, "max_version": (1, 1) });
        let capsule = match object.call_method("__dlpack__", (), Some(&named)) {
            // Producers from before version 1.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                named.del_item("max_version")?;
                object.call_method("__dlpack__", (), Some(&named))?
            }
            capsule => capsule?,
        };
        Self::of_imported(dlpack::take(&capsule, what)?, gpu, what)
    }

    fn of_imported(imported: Imported, gpu: &Gpu, what: &str) -> PyResult<Self> {
        let (kind, id) = imported.device;
        if (kind, id) != (CUDA, gpu.info().index.into()) {
            return Err(PyBufferError::new_err(format!(
                "{what}: its DLPack capsule is of device type {kind}, number {id}, its __dlpack_device__ said cuda:{}",
                gpu.info().index
            )));
        }
        Ok(imported.into())
    }

    pub(crate) fn image(self, gpu: &Gpu, what: &str, shape: Shape) -> PyResult<AnyGpuImage> {
        let layout = self.layout(what, shape)?;
        match self.dtype {
            DataType::U8 => self.typed::<u8>(gpu, layout).map(AnyGpuImage::from),
            DataType::U16 => self.typed::<u16>(gpu, layout).map(AnyGpuImage::from),
            DataType::F32 => self.typed::<f32>(gpu, layout).map(AnyGpuImage::from),
            other => Err(wrong_image(&format!(
                "{what} holds {}: expected uint8, uint16 or float32 (0 to 1, or with a range); .float() or \
                 .astype(\"float32\") converts",
                name_of(other)
            ))),
        }
    }

    pub(crate) fn mask(self, gpu: &Gpu) -> PyResult<GpuImage<u8>> {
        let layout = self.layout("the mask", image_shape)?;
        match self.dtype {
            DataType::U8 | DataType::BOOL if layout.1 == 1 => self.typed(gpu, layout),
            other => Err(wrong_image(&format!(
                "the mask holds {} in {} channels: expected (height, width) of uint8 or bool",
                name_of(other),
                layout.1
            ))),
        }
    }

    fn layout(&self, what: &str, shape: Shape) -> PyResult<(Size, usize, usize)> {
        let (size, channels) = shape(&self.shape, what)?;
        let row = size.width * channels;
        let fits = |axis: usize, wanted: usize| self.shape[axis] <= 1 || self.strides[axis] == wanted as i64;
        let packed = fits(1, channels) && (self.shape.len() == 2 || fits(2, 1));
        let pitch = if size.height <= 1 { Ok(row) } else { usize::try_from(self.strides[0]) };
        match pitch {
            Ok(pitch) if packed && pitch >= row => Ok((size, channels, pitch)),
            _ => Err(wrong_image(&format!(
                "{what} of the shape {:?} has the strides {:?}: on a GPU the pixels of a row must follow each other, and rows \
                 lie in ascending order; .contiguous() or ascontiguousarray() packs them there",
                self.shape, self.strides
            ))),
        }
    }

    #[expect(unsafe_code, reason = "an address of another program")]
    fn typed<T: Element>(self, gpu: &Gpu, layout: (Size, usize, usize)) -> PyResult<GpuImage<T>> {
        // SAFETY: the producer guarantees that these numbers are there, and keeps them for the owner; the queue waits
        // for its stream. The device is asked whether the memory is its own.
        unsafe { GpuImage::foreign(gpu, self.address, layout, self.owner) }.map_err(raised)
    }

    /// All numbers, which must be without gaps.
    #[expect(unsafe_code, reason = "an address of another program")]
    pub(crate) fn buffer<T: Element>(self, gpu: &Gpu, what: &str) -> PyResult<Buffer<T>> {
        let compact = dlpack::compact(&self.shape);
        let gap = |axis: usize| self.shape[axis] > 1 && self.strides[axis] != compact[axis];
        let len = self.shape.iter().product::<usize>();
        if len > 0 && (0..self.shape.len()).any(gap) {
            return Err(wrong_image(&format!(
                "{what} of the shape {:?} has the strides {:?}: on a GPU they must lie without gaps; .contiguous() or \
                 ascontiguousarray() packs them there",
                self.shape, self.strides
            )));
        }
        // SAFETY: as in `typed`.
        unsafe { gpu.foreign(self.address, len, self.owner) }.map_err(raised)
    }

    /// A copy of the array in the host's memory.
    pub(crate) fn into_host<'py>(
        self,
        py: Python<'py>,
        gpu: &Gpu,
        what: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let shape = self.shape.clone();
        let numbers = match self.dtype {
            DataType::I8 => Numbers::I8(self.buffer(gpu, what)?),
            DataType::U8 => Numbers::U8(self.buffer(gpu, what)?),
            DataType::F32 => Numbers::F32(self.buffer(gpu, what)?),
            other => {
                let kind = name_of(other);
                return Err(wrong_image(&format!("{what} holds {kind}: expected float32, int8 or uint8")));
            }
        };
        DeviceArray::new(numbers, shape).numpy(py)
    }
}

impl From<Imported> for Tensor {
    fn from(imported: Imported) -> Self {
        let Imported { address, dtype, shape, strides, owner, device: _ } = imported;
        Self { address, dtype, shape, strides, owner: Owner::Capsule(owner) }
    }
}

/// Makes the device's queue wait for a producer's stream.
fn wait_for(gpu: &Gpu, handle: u64) -> PyResult<()> {
    #[expect(unsafe_code, reason = "a handle of another program")]
    // SAFETY: the producer says that this is its stream.
    let stream = unsafe { ForeignStream::from_handle(handle) };
    gpu.wait_for(stream).map_err(raised)
}

/// NumPy's name of a type of number.
pub(crate) fn name_of(dtype: DataType) -> String {
    let kind = match dtype.code {
        0 => "int",
        1 => "uint",
        2 => "float",
        4 => "bfloat",
        5 => "complex",
        6 => return "bool".into(),
        other => return format!("DLPack's type {other} of {} bits", dtype.bits),
    };
    format!("{kind}{}", dtype.bits)
}

/// An array by its CUDA array interface, <https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html>, and the
/// stream whose work must end before it is complete.
fn interface(object: &Bound<'_, PyAny>, what: &str) -> PyResult<(Tensor, Option<u64>)> {
    let wrong = |why: String| PyBufferError::new_err(format!("{what}: its __cuda_array_interface__ {why}"));
    let told = object.getattr("__cuda_array_interface__")?;
    let told = told.cast::<PyDict>().map_err(|_| wrong("is no dictionary".into()))?;
    let entry = |name: &str| told.get_item(name)?.ok_or_else(|| wrong(format!("has no {name}")));
    if told.get_item("mask")?.is_some_and(|mask| !mask.is_none()) {
        return Err(wrong("has a mask: give the mask as an array of its own".into()));
    }
    let sides: Vec<i64> =
        entry("shape")?.extract().map_err(|_| wrong("has a shape that is no tuple of int".into()))?;
    let typestr: String =
        entry("typestr")?.extract().map_err(|_| wrong("has a typestr that is no str".into()))?;
    let dtype = match typestr.as_str() {
        "|u1" | "<u1" | "=u1" => DataType::U8,
        "|i1" | "<i1" | "=i1" => DataType::I8,
        "|b1" | "<b1" | "=b1" => DataType::BOOL,
        "<u2" | "=u2" => DataType::U16,
        "<f4" | "=f4" => DataType::F32,
        other => {
            return Err(wrong_image(&format!(
                "{what} holds {other}: expected uint8, uint16 or float32 of this machine's byte order"
            )));
        }
    };
    let bytes = i64::from(dtype.bits / 8);
    let shape = dlpack::shape_of(&sides, bytes as usize).map_err(wrong)?;
    let strides = match told.get_item("strides")?.filter(|strides| !strides.is_none()) {
        None => dlpack::compact(&shape),
        Some(strides) => {
            let strides: Vec<i64> =
                strides.extract().map_err(|_| wrong("has strides that are no tuple of int".into()))?;
            if strides.len() != shape.len() {
                return Err(wrong(format!("has {} strides for {} sides", strides.len(), shape.len())));
            }
            if strides.iter().any(|stride| stride % bytes != 0) {
                return Err(wrong(format!("has the strides {strides:?}, no multiples of {bytes} bytes")));
            }
            strides.into_iter().map(|stride| stride / bytes).collect()
        }
    };
    let data = entry("data")?;
    let data = data.cast::<PyTuple>().map_err(|_| wrong("has data that are no tuple".into()))?;
    let address: u64 = data.get_item(0)?.extract().map_err(|_| wrong("has no address".into()))?;
    if address == 0 && !shape.contains(&0) {
        return Err(wrong("has the address 0".into()));
    }
    let version: i64 =
        entry("version")?.extract().map_err(|_| wrong("has a version that is no int".into()))?;
    let stream = match told.get_item("stream")?.filter(|stream| !stream.is_none()) {
        // Before version 3 the interface named no stream; the default stream waits for most others.
        None if version < 3 => Some(1),
        None => None,
        Some(stream) => match stream.extract::<i64>().ok().and_then(|handle| u64::try_from(handle).ok()) {
            Some(0) => return Err(wrong("names stream 0, which may mean two streams".into())),
            Some(handle) => Some(handle),
            None => return Err(wrong(format!("names the stream {stream}: expected 1, 2 or a handle"))),
        },
    };
    let owner = Owner::Object(object.clone().unbind());
    Ok((Tensor { address, dtype, shape, strides, owner }, stream))
}

/// The description of an array on a CUDA device, checked as far as possible without the device; for tests on machines
/// without one.
#[pyfunction]
pub(crate) fn described<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let py = object.py();
    let exchanged = match Exchange::of(object) {
        Some(exchange) => exchange.take(object, "the array")?,
        None => None,
    };
    let (tensor, stream) = match exchanged {
        Some((told, stream)) => (Tensor::from(told), Some(stream)),
        None if object.hasattr("__dlpack__")? => {
            let named = dict!(py, { "max_version": (1, 1) });
            let told = dlpack::take(&object.call_method("__dlpack__", (), Some(&named))?, "the array")?;
            (told.into(), None)
        }
        None => (interface(object, "the array")?.0, None),
    };
    let (size, channels, pitch) = tensor.layout("the array", image_shape)?;
    let found = dict!(py, {
        "address": tensor.address,
        "dtype": name_of(tensor.dtype),
        "shape": (size.height, size.width, channels),
        "pitch": pitch,
    });
    if let Some(stream) = stream {
        found.set_item("stream", stream)?;
    }
    Ok(found)
}
