//! Images where the caller has them: in the host's memory, or on a GPU, on which their results stay.

use crate::device::{device_of, run_sized_on};
use crate::device_array::DeviceArray;
use crate::errors::{raised, wrong_image};
use crate::features::name_of;
use crate::fork::Detached;
use crate::image::{Input, Shape, any_output, image_shape, mask, mask_view};
use crate::tensor::{Place, Tensor, cuda_device, gpu_for, place};
use pyo3::prelude::*;
use tiepoint::device::gpu::Gpu;
use tiepoint::device::{Cpu, Processor};
use tiepoint::image::gpu::{AnyGpuImage, GpuImage};
use tiepoint::image::{AnyCow, Made, Pixels, Size, spread_colours};

pub(crate) enum Picture {
    Host(Input),
    There(Detached<AnyGpuImage>),
}

impl Picture {
    /// The image that an object holds; `device` is the requested one, `what` names the image in errors.
    pub(crate) fn of(
        object: &Bound<'_, PyAny>,
        device: Option<&Bound<'_, PyAny>>,
        what: &str,
    ) -> PyResult<Self> {
        Self::shaped(object, device, what, image_shape)
    }

    pub(crate) fn shaped(
        object: &Bound<'_, PyAny>,
        device: Option<&Bound<'_, PyAny>>,
        what: &str,
        shape: Shape,
    ) -> PyResult<Self> {
        let py = object.py();
        if let Ok(array) = object.cast::<DeviceArray>() {
            return Self::of_ours(array.get(), device, what);
        }
        let Place::Cuda(id) = place(object, what)? else {
            return Input::shaped(object, what, shape).map(Self::Host);
        };
        let processor = cuda_device(py, device, id)?.get().settled(py)?;
        let gpu = gpu_for(processor.gpu(), id, what)?;
        let image = Tensor::of(object, gpu, what)?.image(gpu, what, shape)?;
        Ok(Self::There(Detached::new(image)))
    }

    /// The image of a result of this package, for work on the device on which it lies.
    fn of_ours(array: &DeviceArray, device: Option<&Bound<'_, PyAny>>, what: &str) -> PyResult<Self> {
        if let Some(device) = device {
            let processor = device_of(device.py(), Some(device))?.get().settled(device.py())?;
            let (lies, asked) = (array.device(), processor.gpu().map_or("cpu".into(), name_of));
            if lies != asked {
                return Err(wrong_image(&format!(
                    "{what} lies on {lies}, and this computes on {asked}: take device=\"{lies}\", or bring it to the host \
                     with .numpy()"
                )));
            }
        }
        Ok(Self::There(Detached::new(array.image(what)?)))
    }

    pub(crate) fn size(&self) -> Size {
        self.pixels().size()
    }

    /// Runs work on the image: on the GPU that has it, otherwise on a device. `makes` is the number of pixels that come
    /// out, if there may be more than go in.
    pub(crate) fn run<R: Send>(
        &self,
        py: Python<'_>,
        device: Option<&Bound<'_, PyAny>>,
        makes: usize,
        work: impl Fn(Pixels<'_>, &Processor) -> tiepoint::Result<R> + Sync,
    ) -> PyResult<R> {
        if let Self::There(_) = self {
            let alone = Processor::from(Cpu::sequential());
            return py.detach(|| work(self.pixels(), &alone)).map_err(raised);
        }
        run_sized_on(py, device, makes.max(self.size().area()), |processor| work(self.pixels(), processor))
    }

    pub(crate) fn pixels(&self) -> Pixels<'_> {
        match self {
            Self::Host(image) => image.view().into(),
            Self::There(image) => Pixels::from(&**image),
        }
    }

    /// The image in the host's memory, copied from the GPU if it is there.
    pub(crate) fn on_host(&self, py: Python<'_>) -> PyResult<AnyCow<'_>> {
        match self {
            Self::Host(image) => Ok(AnyCow::Borrowed(image.view())),
            Self::There(image) => py.detach(|| image.download()).map(AnyCow::Owned).map_err(raised),
        }
    }
}

/// Runs a warp on pixels that are made ready for it ([`spread_colours`]).
pub(crate) fn with_spread_colours<R>(
    pixels: Pixels<'_>,
    warp: impl FnOnce(Pixels<'_>) -> tiepoint::Result<R>,
) -> tiepoint::Result<R> {
    match &pixels {
        Pixels::Host(view) => match spread_colours(*view) {
            Some(spread) => warp(spread.view().into()),
            None => warp(pixels),
        },
        Pixels::Device(image) if matches!(image.channels(), 2 | 4) => {
            match spread_colours(&image.download()?) {
                Some(spread) => warp((&AnyGpuImage::upload(image.gpu(), spread.view())?).into()),
                None => warp(pixels),
            }
        }
        Pixels::Device(_) => warp(pixels),
    }
}

/// A mask in the host's memory, copied from the GPU if it is there.
pub(crate) fn mask_on_host(
    object: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<Input>> {
    let Some(given) = object else { return Ok(None) };
    let py = given.py();
    let Place::Cuda(id) = place(given, "the mask")? else { return mask(object) };
    let processor = cuda_device(py, device, id)?.get().settled(py)?;
    let gpu = gpu_for(processor.gpu(), id, "the mask")?;
    let there = Tensor::of(given, gpu, "the mask")?.mask(gpu)?;
    mask(Some(&DeviceArray::of_image(py, &there.into())?.numpy(py)?))
}

/// A mask on a GPU, copied from the host if it is there.
pub(crate) fn mask_there(object: &Bound<'_, PyAny>, gpu: &Gpu) -> PyResult<GpuImage<u8>> {
    match place(object, "the mask")? {
        Place::Cuda(id) => {
            let gpu = gpu_for(Some(gpu), id, "the mask")?;
            Tensor::of(object, gpu, "the mask")?.mask(gpu)
        }
        Place::Host => {
            let mask = mask(Some(object))?;
            let view = mask_view(mask.as_ref()).ok_or_else(|| wrong_image("the mask holds no pixels"))?;
            GpuImage::upload(gpu, view).map_err(raised)
        }
    }
}

/// An image as an array, left where it was made.
pub(crate) fn made(py: Python<'_>, image: Made) -> PyResult<Bound<'_, PyAny>> {
    match image {
        Made::Host(image) => any_output(py, image),
        Made::Device(image) => {
            let image = Detached::new(image);
            Ok(Bound::new(py, DeviceArray::of_image(py, &image)?)?.into_any())
        }
    }
}
