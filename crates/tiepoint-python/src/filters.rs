//! Filters of images.

use crate::device::run_sized_on;
use crate::errors::{raised, wrong_image, wrong_option};
use crate::image::{Input, any_output, rows, shaped, vector};
use crate::options::named;
use crate::picture::{Picture, made};
use numpy::{PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use tiepoint::by_pixel;
use tiepoint::filter::any;
use tiepoint::filter::convolve::Kernel;
use tiepoint::filter::gauss::{GaussOptions, Taps};
use tiepoint::filter::hessian::HessianOptions;
use tiepoint::filter::integral::Integral;
use tiepoint::filter::resample::resample as scaled;
use tiepoint::image::{AnyView, Size};

#[pyfunction]
pub(crate) fn gauss<'py>(
    py: Python<'py>,
    device: Option<&Bound<'py, PyAny>>,
    image: &Bound<'py, PyAny>,
    sigma: Option<f64>,
    size: Option<usize>,
    power_of_two: bool,
    border: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let options =
        GaussOptions::default().with_taps(Taps::of(sigma, size, power_of_two)).with_border(named(border)?);
    options.check().map_err(raised)?;
    let image = Picture::of(image, device, "the image")?;
    made(py, image.run(py, device, 0, |image, p| any::gauss(image, &options, p))?)
}

#[pyfunction]
pub(crate) fn sobel<'py>(
    py: Python<'py>,
    device: Option<&Bound<'py, PyAny>>,
    image: &Bound<'py, PyAny>,
    part: &Bound<'py, PyAny>,
    border: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (part, border) = (named(part)?, named(border)?);
    let image = Picture::of(image, device, "the image")?;
    made(py, image.run(py, device, 0, |image, p| any::sobel(image, part, border, p))?)
}

fn hessian_options(weight: f32, threshold: f32, border: &Bound<'_, PyAny>) -> PyResult<HessianOptions> {
    let options = HessianOptions::default().with_weight(weight).with_threshold(threshold);
    let options = options.with_border(named(border)?);
    options.check().map_err(raised)?;
    Ok(options)
}

#[pyfunction]
pub(crate) fn hessian<'py>(
    py: Python<'py>,
    device: Option<&Bound<'py, PyAny>>,
    image: &Bound<'py, PyAny>,
    weight: f32,
    border: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = hessian_options(weight, HessianOptions::default().threshold, border)?;
    let image = Picture::of(image, device, "the image")?;
    made(py, image.run(py, device, 0, |image, p| any::hessian(image, &options, p))?)
}

/// Local maxima of the Hessian's determinant: places (N, 2), determinants, signs of the Laplacian.
#[pyfunction]
pub(crate) fn blobs<'py>(
    py: Python<'py>,
    device: Option<&Bound<'py, PyAny>>,
    image: &Bound<'py, PyAny>,
    weight: f32,
    threshold: f32,
    border: &Bound<'py, PyAny>,
) -> PyResult<[Bound<'py, PyAny>; 3]> {
    let options = hessian_options(weight, threshold, border)?;
    let image = Picture::of(image, device, "the image")?;
    let found = image.run(py, device, 0, |image, p| any::blobs(image, &options, p))?;
    let places = found.iter().map(|blob| [blob.x as i64, blob.y as i64]).collect();
    let response = found.iter().map(|blob| blob.response).collect();
    let laplacian = found.iter().map(|blob| blob.laplacian).collect();
    Ok([rows(py, places)?, vector(py, response), vector(py, laplacian)])
}

#[pyfunction]
pub(crate) fn convolve<'py>(
    py: Python<'py>,
    device: Option<&Bound<'py, PyAny>>,
    image: &Bound<'py, PyAny>,
    kernel: &Bound<'py, PyAny>,
    float: bool,
    border: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let array = py.import("numpy")?.call_method1("require", (kernel, "float32", ["C", "A"]))?;
    let weights = array
        .cast::<PyArray2<f32>>()
        .map_err(|_| wrong_image("the kernel: expected (rows, columns) of numbers"))?;
    let &[height, width] = weights.shape() else {
        return Err(wrong_option("the kernel: expected (rows, columns)"));
    };
    let kernel =
        Kernel::new(weights.readonly().as_slice()?.to_vec(), Size::new(width, height)).map_err(raised)?;
    let border = named(border)?;
    let image = Picture::of(image, device, "the image")?;
    let found = image.run(py, device, 0, |image, p| match float {
        true => any::convolve_f32(image, &kernel, border, p),
        false => any::convolve(image, &kernel, border, p),
    });
    made(py, found?)
}

/// Sums of all pixels above and left of each, (height + 1, width + 1).
#[pyfunction]
pub(crate) fn integral<'py>(
    py: Python<'py>,
    device: Option<&Bound<'py, PyAny>>,
    image: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let image = Input::of(image, "the image")?;
    let size = image.view().size();
    let found = run_sized_on(py, device, size.area(), |p| match image.view() {
        AnyView::U8(view) => Integral::<u64>::new(view, &p.cpu),
        AnyView::U16(view) => Integral::<u64>::new(view, &p.cpu),
        AnyView::F32(_) => {
            Err(tiepoint::Error::Image("expected uint8 or uint16, whose sums are exact".into()))
        }
    })?;
    let sums = (0..=size.height).flat_map(|y| found.row(y).iter().copied()).collect();
    shaped(py, sums, &[size.height + 1, size.width + 1])
}

/// An image at twice its size, or at half of it, of every second pixel or of the mean of four.
#[pyfunction]
pub(crate) fn resample<'py>(
    py: Python<'py>,
    device: Option<&Bound<'py, PyAny>>,
    image: &Bound<'py, PyAny>,
    how: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (image, how) = (Input::of(image, "the image")?, named(how)?);
    let found = run_sized_on(py, device, image.view().size().area(), |p| {
        Ok(by_pixel!(map image.view(), view => scaled(view, how, &p.cpu)?))
    })?;
    any_output(py, found)
}
