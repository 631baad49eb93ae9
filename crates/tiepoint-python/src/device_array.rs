//! Results in a device's memory, as arrays for other programs.

use crate::dlpack::{self, CPU, CUDA, DataType, Exported, consumer_stream};
use crate::errors::{raised, wrong_image};
use crate::fork::Detached;
use crate::image::{image_shape, shaped};
use crate::tensor::name_of;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tiepoint::by_pixel;
use tiepoint::device::gpu::{Api, Buffer, Commands, Element, ForeignStream, Gpu};
use tiepoint::image::Size;
use tiepoint::image::gpu::{AnyGpuImage, GpuImage};

#[derive(Clone)]
pub(crate) enum Numbers {
    I8(Buffer<i8>),
    I64(Buffer<i64>),
    U8(Buffer<u8>),
    U16(Buffer<u16>),
    F32(Buffer<f32>),
}

/// Evaluates one expression for the buffer, whatever its type of number.
macro_rules! for_numbers {
    ($numbers:expr, $buffer:ident => $body:expr) => {
        match $numbers {
            Numbers::I8($buffer) => $body,
            Numbers::I64($buffer) => $body,
            Numbers::U8($buffer) => $body,
            Numbers::U16($buffer) => $body,
            Numbers::F32($buffer) => $body,
        }
    };
}

macro_rules! numbers_from {
    ($($element:ty => $kind:ident),*) => { $(
        impl From<Buffer<$element>> for Numbers {
            fn from(buffer: Buffer<$element>) -> Self {
                Self::$kind(buffer)
            }
        }
    )* };
}

numbers_from!(i8 => I8, i64 => I64, u8 => U8, u16 => U16, f32 => F32);

impl Numbers {
    fn dtype(&self) -> DataType {
        match self {
            Self::I8(_) => DataType::I8,
            Self::I64(_) => DataType::I64,
            Self::U8(_) => DataType::U8,
            Self::U16(_) => DataType::U16,
            Self::F32(_) => DataType::F32,
        }
    }

    fn gpu(&self) -> &Gpu {
        for_numbers!(self, buffer => buffer.gpu())
    }
}

/// A result in the memory of a GPU: read-only, without gaps.
///
/// It supports DLPack (1.1) and, on CUDA, the CUDA array interface (3): ``torch.from_dlpack(array)``,
/// ``cupy.from_dlpack(array)`` and ``jax.numpy.from_dlpack(array)`` share the same memory, in the order of their
/// streams. That memory is not reused until the last of these arrays is gone and their work on it has finished.
/// ``numpy()`` copies it to the host.
#[pyclass(frozen, module = "tiepoint")]
pub(crate) struct DeviceArray {
    numbers: Detached<Numbers>,
    shape: Vec<usize>,
    /// The process that opened the device.
    process: u32,
}

impl DeviceArray {
    /// An array of this shape over the first numbers of the buffer, which may be longer.
    pub(crate) fn new(numbers: Numbers, shape: Vec<usize>) -> Self {
        Self { numbers: Detached::new(numbers), shape, process: std::process::id() }
    }

    /// An array of an image. If its rows have gaps, it is a copy on the device without gaps.
    pub(crate) fn of_image(py: Python<'_>, image: &AnyGpuImage) -> PyResult<Self> {
        let (Size { width, height }, channels) = (image.size(), image.channels());
        let numbers = py.detach(|| by_pixel!(image, image => image.without_gaps().map(Numbers::from)));
        let mut shape = vec![height, width];
        shape.extend((channels > 1).then_some(channels));
        Ok(Self::new(numbers.map_err(raised)?, shape))
    }

    /// The array as an image; `what` names it in errors.
    pub(crate) fn image(&self, what: &str) -> PyResult<AnyGpuImage> {
        self.gpu()?;
        let (size, channels) = image_shape(&self.shape, what)?;
        let made = match (*self.numbers).clone() {
            Numbers::U8(buffer) => GpuImage::over(buffer, size, channels).map(AnyGpuImage::from),
            Numbers::U16(buffer) => GpuImage::over(buffer, size, channels).map(AnyGpuImage::from),
            Numbers::F32(buffer) => GpuImage::over(buffer, size, channels).map(AnyGpuImage::from),
            Numbers::I8(_) | Numbers::I64(_) => {
                let kind = name_of(self.numbers.dtype());
                let message = format!("{what} holds {kind}: expected uint8, uint16 or float32");
                return Err(wrong_image(&message));
            }
        };
        made.map_err(raised)
    }

    fn gpu(&self) -> PyResult<&Gpu> {
        match self.process == std::process::id() {
            true => Ok(self.numbers.gpu()),
            false => Err(raised(crate::fork::forked(&self.device()))),
        }
    }

    /// The CUDA device, for a program that shares its memory.
    fn cuda(&self) -> PyResult<&Gpu> {
        let gpu = self.gpu()?;
        match gpu.info().api {
            Api::Cuda => Ok(gpu),
            Api::OpenCl => Err(PyBufferError::new_err(format!(
                "memory of {} is shared with no other program: .numpy() copies it to the host",
                self.device()
            ))),
        }
    }

    /// The capsule of a copy in the host's memory.
    fn on_host<'py>(
        &self,
        py: Python<'py>,
        max_version: Option<(i64, i64)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(PyBufferError::new_err("an array on a GPU comes to the host by a copy alone"));
        }
        let named = dict!(py, { "max_version": max_version });
        self.numpy(py)?.call_method("__dlpack__", (), Some(&named))
    }
}

fn copy<T: Element>(buffer: &Buffer<T>) -> tiepoint::Result<Buffer<T>> {
    let copy = buffer.gpu().buffer(buffer.len())?;
    let mut commands = Commands::new();
    commands.copy((buffer, 0), (&copy, 0), buffer.len())?;
    buffer.gpu().run(&commands)?;
    Ok(copy)
}

#[pymethods]
impl DeviceArray {
    /// The length of each dimension.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
        pyo3::types::PyTuple::new(py, &self.shape)
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// The number of bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.size() * usize::from(self.numbers.dtype().bits / 8)
    }

    /// The type of the numbers, as a NumPy dtype.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("numpy")?.call_method1("dtype", (name_of(self.numbers.dtype()),))
    }

    /// The device: ``"cuda:0"``, ``"opencl:0"``, …
    #[getter]
    pub(crate) fn device(&self) -> String {
        crate::features::name_of(self.numbers.gpu())
    }

    /// A copy in the host's memory.
    ///
    /// Returns
    /// -------
    /// ndarray
    ///     Of the same shape and type.
    pub(crate) fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        fn of<'py, T: Element + numpy::Element>(
            py: Python<'py>,
            buffer: &Buffer<T>,
            shape: &[usize],
        ) -> PyResult<Bound<'py, PyAny>> {
            let values = py.detach(|| buffer.first(shape.iter().product())).map_err(raised)?;
            shaped(py, values, shape)
        }
        self.gpu()?;
        for_numbers!(&*self.numbers, buffer => of(py, buffer, &self.shape))
    }

    /// For ``numpy.asarray``: a copy in the host's memory.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(PyValueError::new_err("an array on a GPU becomes one of NumPy by a copy alone"));
        }
        let array = self.numpy(py)?;
        match dtype {
            Some(dtype) => array.call_method1("astype", (dtype,)),
            None => Ok(array),
        }
    }

    /// DLPack's device: (2, number) for CUDA.
    fn __dlpack_device__(&self) -> PyResult<(i64, u32)> {
        Ok((CUDA, self.cuda()?.info().index))
    }

    /// A DLPack capsule of this memory. The consumer's stream waits for the work that computes the array.
    ///
    /// Parameters
    /// ----------
    /// stream : int, optional
    ///     The consumer's CUDA stream: 1 (the default stream, also if not given), 2 (the thread's own) or a handle; −1 when
    ///     the consumer orders the work itself.
    /// max_version : tuple of int, optional
    ///     The newest version of DLPack that the consumer knows; one before 1 if not given.
    /// dl_device : tuple of int, optional
    ///     The device on which the consumer wants the array: this one, or ``(1, 0)``, the host, for a copy.
    /// copy : bool, optional
    ///     Whether the consumer wants its own copy.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(i64, i64)>,
        dl_device: Option<(i64, i64)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let gpu = self.cuda()?;
        let here = (CUDA, i64::from(gpu.info().index));
        match dl_device {
            Some(device) if device == (CPU, 0) => return self.on_host(py, max_version, copy),
            Some(device) if device != here => {
                return Err(PyBufferError::new_err(format!(
                    "the array lies on {}: it goes there or to the host, not to DLPack's device {device:?}",
                    self.device()
                )));
            }
            Some(_) | None => {}
        }
        let number = stream.map(|stream| {
            let named =
                |_| PyTypeError::new_err(format!("stream {stream} is no int: expected -1, 1, 2 or a handle"));
            stream.extract::<i64>().map_err(named)
        });
        let stream = consumer_stream(number.transpose()?)?;
        let (copied, dtype) = (copy == Some(true), self.numbers.dtype());
        let numbers = match copied {
            true => for_numbers!(&*self.numbers, buffer => self::copy(buffer).map(Numbers::from))
                .map_err(raised)?,
            false => (*self.numbers).clone(),
        };
        let address = for_numbers!(&numbers, buffer => buffer.share()).map_err(raised)?;
        if let Some(handle) = stream {
            #[expect(unsafe_code, reason = "a handle of another program")]
            // SAFETY: the consumer says that this is its stream.
            let stream = unsafe { ForeignStream::from_handle(handle) };
            gpu.signal(stream).map_err(raised)?;
        }
        let device = gpu.info().index as i32;
        let (shape, owner) = (self.shape.clone(), Box::new(numbers));
        let exported = Exported { address, device, dtype, shape, copied, owner };
        dlpack::give(py, exported, max_version.is_some_and(|(major, _)| major >= 1))
    }

    /// The CUDA array interface, version 3. The array is complete when this returns, so there is no stream to wait for.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let gpu = self.gpu()?;
        if gpu.info().api != Api::Cuda {
            let message = format!("memory of {} has no __cuda_array_interface__", self.device());
            return Err(pyo3::exceptions::PyAttributeError::new_err(message));
        }
        let address = for_numbers!(&*self.numbers, buffer => buffer.share()).map_err(raised)?;
        py.detach(|| gpu.finish()).map_err(raised)?;
        Ok(dict!(py, {
            "shape": self.shape(py)?,
            "typestr": self.dtype(py)?.getattr("str")?,
            // Not marked as read-only, because PyTorch refuses read-only arrays.
            "data": (if self.size() == 0 { 0 } else { address }, false),
            "strides": py.None(),
            "stream": py.None(),
            "version": 3,
        }))
    }

    fn __len__(&self) -> PyResult<usize> {
        self.shape
            .first()
            .copied()
            .ok_or_else(|| PyTypeError::new_err("an array without sides has no length"))
    }

    /// For pickle: as an array of NumPy.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyAny>,))> {
        Ok((py.import("numpy")?.getattr("asarray")?, (self.numpy(py)?,)))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (shape, kind) = (self.shape(py)?.repr()?, name_of(self.numbers.dtype()));
        Ok(format!("DeviceArray({shape}, {kind}, {})", self.device()))
    }
}
