//! Images of Python as views of the library, and images of the library as arrays.
//!
//! Every object that NumPy can read without a copy is taken: its own arrays, DLPack in the host's memory, the buffer
//! protocol, `__array_interface__`, `__array__`. An image is (height, width) or (height, width, channels) of `uint8`,
//! `uint16` or `float32`; `_arrays.py` converts other numbers, and reports what is not an image. The pixels of a row
//! must be contiguous; rows may be any distance apart. Every other layout is copied.
//!
//! The memory is read while the interpreter's lock is released. If another thread writes into an image meanwhile, the
//! result mixes old and new pixels, as with any array shared between threads.

use crate::device_array::DeviceArray;
use crate::errors::wrong_image;
use crate::tensor::{Place, place};
use numpy::{
    Element, PyArray1, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use tiepoint::by_pixel;
use tiepoint::image::{AnyImage, AnyView, Image, ImageView, PixelKind, Size};

/// An image of the caller: its memory, kept alive by its array.
pub(crate) struct Input {
    _array: Py<PyUntypedArray>,
    data: *const u8,
    kind: PixelKind,
    size: Size,
    channels: usize,
    /// Elements from row to row.
    stride: usize,
}

// SAFETY: the memory is only read, and the array that owns it is kept.
#[expect(unsafe_code, reason = "a pointer into memory that the array keeps")]
unsafe impl Send for Input {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "a pointer into memory that the array keeps")]
unsafe impl Sync for Input {}

impl Input {
    /// The image that an object holds; `what` names it in errors.
    pub(crate) fn of(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Self> {
        Self::shaped(object, what, image_shape)
    }

    pub(crate) fn shaped(object: &Bound<'_, PyAny>, what: &str, shape: Shape) -> PyResult<Self> {
        Self::of_array(&array("image", object, what)?, what, shape)
    }

    fn of_array(array: &Bound<'_, PyUntypedArray>, what: &str, shape: Shape) -> PyResult<Self> {
        let Some(kind) = kind(array) else {
            return Self::of_array(&converted("image", array.as_any(), what)?, what, shape);
        };
        let (size, channels) = shape(array.shape(), what)?;
        let Some(stride) = row_stride(array, kind) else {
            // Not `ascontiguousarray`, which does not copy an array of unaligned elements.
            let packed = array.call_method1("copy", ("C",))?;
            return Self::of_array(packed.cast::<PyUntypedArray>()?, what, shape);
        };
        Ok(Self { data: start(array, kind)?, _array: array.clone().unbind(), kind, size, channels, stride })
    }

    pub(crate) fn view(&self) -> AnyView<'_> {
        by_pixel!(make self.kind, self.typed())
    }

    #[expect(unsafe_code, reason = "the array's memory as a slice")]
    fn typed<T: Copy + Default>(&self) -> ImageView<'_, T> {
        let (row, height) = (self.size.width * self.channels, self.size.height);
        let length = if row == 0 || height == 0 { 0 } else { (height - 1) * self.stride + row };
        // SAFETY: by its shape and strides the array has these elements, aligned and of this type; `self._array` keeps
        // them. The module's documentation tells what happens if others write them meanwhile.
        let data = match length {
            0 => &[],
            _ => unsafe { std::slice::from_raw_parts(self.data.cast::<T>(), length) },
        };
        ImageView::new(data, self.size, self.channels, self.stride.max(row))
            .unwrap_or_else(|_| unreachable!("the length follows from size and stride"))
    }

    /// The floats of an image of one channel.
    pub(crate) fn floats(&self, what: &str) -> PyResult<ImageView<'_, f32>> {
        match self.view() {
            AnyView::F32(view) if view.channels() == 1 => Ok(view),
            _ => Err(wrong_image(&format!("{what}: expected (height, width) of float32"))),
        }
    }
}

/// A function that gives size and channels of an array of this shape; the text names the array in errors.
pub(crate) type Shape = fn(&[usize], &str) -> PyResult<(Size, usize)>;

/// Size and disparities of a cost volume of this shape: an image with a channel for each disparity.
pub(crate) fn volume_shape(shape: &[usize], what: &str) -> PyResult<(Size, usize)> {
    match *shape {
        [height, width, disparities] if disparities > 0 => Ok((Size::new(width, height), disparities)),
        _ => Err(wrong_image(&format!(
            "{what} has the shape {shape:?}: expected (height, width, disparities)"
        ))),
    }
}

/// Size and channels of an image of this shape.
pub(crate) fn image_shape(shape: &[usize], what: &str) -> PyResult<(Size, usize)> {
    match *shape {
        [height, width] => Ok((Size::new(width, height), 1)),
        // No picture has more channels than rows, and one whose channels come first has.
        [height, width, channels] if channels > 0 && (channels <= 4 || channels <= height) => {
            Ok((Size::new(width, height), channels))
        }
        [_, height, width] if width > 0 => Err(wrong_image(&format!(
            "{what} has the shape {:?}: channels come last here, so {height} x {width} pixels are wanted as \
             ({height}, {width}, {}); transpose(1, 2, 0) or permute(1, 2, 0) turns them; \
             of a stack of {} images give one at a time",
            shape, shape[0], shape[0]
        ))),
        _ => Err(wrong_image(&format!(
            "{what} has the shape {shape:?}: expected (height, width) or (height, width, channels){}",
            if shape.len() == 4 { "; a batch goes to detect_many, pair by pair to compute_many" } else { "" }
        ))),
    }
}

/// Elements from row to row, if the pixels of a row are contiguous.
fn row_stride(array: &Bound<'_, PyUntypedArray>, kind: PixelKind) -> Option<usize> {
    let (shape, strides) = (array.shape(), array.strides());
    let bytes = by_pixel!(type kind, T => size_of::<T>());
    let channels = shape.get(2).copied().unwrap_or(1);
    let fits = |axis: usize, wanted: usize| shape[axis] <= 1 || strides[axis] == wanted as isize;
    let row = shape[1] * channels * bytes;
    if shape.contains(&0) {
        return Some(row / bytes);
    }
    let packed = fits(1, channels * bytes) && (shape.len() == 2 || fits(2, bytes)) && array.is_aligned();
    let stride = if shape[0] <= 1 { row } else { usize::try_from(strides[0]).ok()? };
    (packed && stride >= row && stride.is_multiple_of(bytes)).then_some(stride / bytes)
}

fn start(array: &Bound<'_, PyUntypedArray>, kind: PixelKind) -> PyResult<*const u8> {
    let any = array.as_any();
    Ok(by_pixel!(type kind, T => any.cast::<PyArrayDyn<T>>()?.data().cast_const().cast()))
}

/// The type of the pixels, if it is one of the library's.
fn kind(array: &Bound<'_, PyUntypedArray>) -> Option<PixelKind> {
    let (py, found) = (array.py(), array.dtype());
    let kinds = [
        (numpy::dtype::<u8>(py), PixelKind::U8),
        (numpy::dtype::<u16>(py), PixelKind::U16),
        (numpy::dtype::<f32>(py), PixelKind::F32),
    ];
    kinds.into_iter().find_map(|(wanted, kind)| found.is_equiv_to(&wanted).then_some(kind))
}

/// The result of the function of `_arrays.py` for an object that must be converted.
fn converted<'py>(
    function: &str,
    object: &Bound<'py, PyAny>,
    what: &str,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let made = object.py().import("tiepoint._arrays")?.call_method1(function, (object, what))?;
    Ok(made.cast_into::<PyUntypedArray>()?)
}

/// The object as an array of NumPy, without a copy if possible.
fn array<'py>(
    function: &str,
    object: &Bound<'py, PyAny>,
    what: &str,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    if let Ok(array) = object.cast_exact::<PyUntypedArray>() {
        return Ok(array.clone());
    }
    // A result of this package on a GPU, for work on the host.
    if let Ok(array) = object.cast::<DeviceArray>() {
        return Ok(array.get().numpy(object.py())?.cast_into::<PyUntypedArray>()?);
    }
    if let Place::Cuda(id) = place(object, what)? {
        let lies = id.map_or("a CUDA device".to_owned(), |id| format!("cuda:{id}"));
        return Err(wrong_image(&format!(
            "{what} lies in the memory of {lies}, which this call does not read: bring it to the host, with .cpu(), \
             .numpy() or asnumpy()"
        )));
    }
    converted(function, object, what)
}

/// The mask that an object holds: not 0 where pixels are used.
pub(crate) fn mask(object: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Input>> {
    let Some(object) = object else { return Ok(None) };
    let mut array = array("mask", object, "the mask")?;
    if array.dtype().is_equiv_to(&numpy::dtype::<bool>(array.py())) {
        array = array.call_method1("view", ("uint8",))?.cast_into::<PyUntypedArray>()?;
    } else if kind(&array) != Some(PixelKind::U8) {
        array = converted("mask", array.as_any(), "the mask")?;
    }
    let mask = Input::of_array(&array, "the mask", image_shape)?;
    match mask.view() {
        AnyView::U8(view) if view.channels() == 1 => Ok(Some(mask)),
        _ => Err(wrong_image("the mask: expected (height, width) of numbers or bool")),
    }
}

pub(crate) fn mask_view(mask: Option<&Input>) -> Option<ImageView<'_, u8>> {
    match mask?.view() {
        AnyView::U8(view) => Some(view),
        AnyView::U16(_) | AnyView::F32(_) => None,
    }
}

/// An array over a vector's memory.
pub(crate) fn vector<T: Element>(py: Python<'_>, values: Vec<T>) -> Bound<'_, PyAny> {
    PyArray1::from_vec(py, values).into_any()
}

/// An array of rows of `N` values, over the memory of a vector.
pub(crate) fn rows<T: Element, const N: usize>(
    py: Python<'_>,
    values: Vec<[T; N]>,
) -> PyResult<Bound<'_, PyAny>> {
    let n = values.len();
    shaped(py, values.into_flattened(), &[n, N])
}

/// An array of this shape over a vector's memory.
pub(crate) fn shaped<'py, T: Element>(
    py: Python<'py>,
    values: Vec<T>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    Ok(PyArray1::from_vec(py, values).reshape(shape)?.into_any())
}

/// An image as an array over its memory: (height, width), or (height, width, channels).
pub(crate) fn output<T: Element + Copy + Default>(
    py: Python<'_>,
    image: Image<T>,
) -> PyResult<Bound<'_, PyAny>> {
    let (Size { width, height }, channels) = (image.size(), image.channels());
    match channels {
        1 => shaped(py, image.into_vec(), &[height, width]),
        _ => shaped(py, image.into_vec(), &[height, width, channels]),
    }
}

/// [`output`] of an image of any type.
pub(crate) fn any_output(py: Python<'_>, image: AnyImage) -> PyResult<Bound<'_, PyAny>> {
    by_pixel!(image, image => output(py, image))
}

/// Numbers of any kind as an array of this type, C order. Whole numbers must fit it.
fn cast<'py, T: Element>(object: &Bound<'py, PyAny>, what: &str) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    let py = object.py();
    let (numpy, kind) = (py.import("numpy")?, numpy::dtype::<T>(py));
    let made = numpy.call_method1("require", (object, &kind, ["C", "A"]))?;
    let is_whole = matches!(kind.kind(), b'i' | b'u');
    if is_whole && !numpy.call_method1("array_equal", (&made, object))?.extract::<bool>()? {
        return Err(wrong_image(&format!("{what} holds numbers that are no {kind}")));
    }
    Ok(made.cast_into::<PyArrayDyn<T>>()?)
}

/// The values of an array of one dimension; there must be `expected` if that is given.
pub(crate) fn values<T: Element + Copy>(
    object: &Bound<'_, PyAny>,
    what: &str,
    expected: Option<usize>,
) -> PyResult<Vec<T>> {
    let array = cast::<T>(object, what)?;
    if array.ndim() > 1 || expected.is_some_and(|n| n != array.len()) {
        let shape = array.shape();
        let wanted = expected.map_or("one dimension".to_owned(), |n| format!("({n},)"));
        return Err(wrong_image(&format!("{what} has the shape {shape:?}: expected {wanted}")));
    }
    Ok(array.readonly().as_slice()?.to_vec())
}

/// The rows of an array (N, M).
pub(crate) fn table<T: Element + Copy + Default, const M: usize>(
    object: &Bound<'_, PyAny>,
    what: &str,
) -> PyResult<Vec<[T; M]>> {
    let array = cast::<T>(object, what)?;
    if array.ndim() != 2 || array.shape()[1] != M {
        return Err(wrong_image(&format!("{what} has the shape {:?}: expected (N, {M})", array.shape())));
    }
    let array = array.readonly();
    let row = |row: &[T]| std::array::from_fn(|i| row[i]);
    Ok(array.as_slice()?.chunks_exact(M).map(row).collect())
}

/// A matrix of three rows and columns.
pub(crate) fn matrix(object: &Bound<'_, PyAny>, what: &str) -> PyResult<[[f64; 3]; 3]> {
    let rows = table::<f64, 3>(object, what)?;
    <[[f64; 3]; 3]>::try_from(rows)
        .map_err(|rows| wrong_image(&format!("{what} has {} rows of 3: expected 3", rows.len())))
}
