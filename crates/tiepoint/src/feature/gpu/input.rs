//! What a detector on a GPU takes, and how it is checked.

use crate::device::gpu::Gpu;
use crate::image::gpu::{AnyGpuImage, GpuImage, PixelKind};
use crate::image::{AnyCow, AnyImage, AnyView, Image, ImageView, Size};
use crate::{Error, Result};

/// The pixels of an image, in the host's memory or in a device's; made by `into()`.
#[derive(Clone, Debug)]
pub enum Pixels<'a> {
    /// In the host's memory.
    Host(AnyView<'a>),
    /// In a device's memory.
    Device(AnyGpuImage),
}

impl<'a> Pixels<'a> {
    /// The pixels in the host's memory, brought there from a device.
    ///
    /// # Errors
    /// [`Error::Device`] when the device failed.
    pub(crate) fn into_host(self) -> Result<AnyCow<'a>> {
        match self {
            Self::Host(view) => Ok(AnyCow::Borrowed(view)),
            Self::Device(image) => Ok(AnyCow::Owned(image.download()?)),
        }
    }
}

impl Pixels<'_> {
    /// Width and height.
    pub fn size(&self) -> Size {
        match self {
            Self::Host(view) => view.size(),
            Self::Device(image) => image.size(),
        }
    }

    /// Channels of a pixel.
    pub fn channels(&self) -> usize {
        match self {
            Self::Host(view) => view.channels(),
            Self::Device(image) => image.channels(),
        }
    }

    /// The type of pixel.
    pub fn pixel(&self) -> PixelKind {
        match self {
            Self::Host(view) => view.pixel(),
            Self::Device(image) => image.pixel(),
        }
    }

    /// Fails unless this is a grey image that lies in the host's memory or on `gpu`.
    pub(super) fn check(&self, gpu: &Gpu) -> Result<()> {
        if self.size().is_empty() {
            return Err(Error::Image(format!("the image is empty ({})", self.size())));
        }
        if self.channels() != 1 {
            return Err(Error::Image(format!(
                "expected one channel, found {}; convert with image::grey first",
                self.channels()
            )));
        }
        match self {
            Self::Device(image) if image.gpu().info() != gpu.info() => {
                Err(Error::Mismatch(format!("an image on {:?} for a detector on {gpu:?}", image.gpu())))
            }
            Self::Device(_) | Self::Host(_) => Ok(()),
        }
    }

    /// Fails unless `other` can be searched together with this image.
    pub(super) fn goes_with(&self, other: &Self) -> Result<()> {
        if self.size() != other.size() {
            let (one, other) = (self.size(), other.size());
            return Err(Error::Mismatch(format!(
                "the images of a batch are {one} and {other}: one size is needed"
            )));
        }
        if self.pixel() != other.pixel() {
            return Err(Error::Mismatch(
                "the images of a batch have several types of pixel: one is needed".into(),
            ));
        }
        Ok(())
    }
}

impl<'a> From<AnyView<'a>> for Pixels<'a> {
    fn from(view: AnyView<'a>) -> Self {
        Self::Host(view)
    }
}

impl<'a> From<&AnyView<'a>> for Pixels<'a> {
    fn from(view: &AnyView<'a>) -> Self {
        Self::Host(*view)
    }
}

impl<'a> From<&'a AnyImage> for Pixels<'a> {
    fn from(image: &'a AnyImage) -> Self {
        Self::Host(image.into())
    }
}

impl From<AnyGpuImage> for Pixels<'_> {
    fn from(image: AnyGpuImage) -> Self {
        Self::Device(image)
    }
}

impl From<&AnyGpuImage> for Pixels<'_> {
    fn from(image: &AnyGpuImage) -> Self {
        Self::Device(image.clone())
    }
}

macro_rules! conversions {
    ($($pixel:ty),*) => {$(
        impl<'a> From<ImageView<'a, $pixel>> for Pixels<'a> {
            fn from(view: ImageView<'a, $pixel>) -> Self {
                Self::Host(view.into())
            }
        }
        impl<'a> From<&ImageView<'a, $pixel>> for Pixels<'a> {
            fn from(view: &ImageView<'a, $pixel>) -> Self {
                Self::Host((*view).into())
            }
        }
        impl<'a> From<&'a Image<$pixel>> for Pixels<'a> {
            fn from(image: &'a Image<$pixel>) -> Self {
                Self::Host(image.into())
            }
        }
        impl From<&GpuImage<$pixel>> for Pixels<'_> {
            fn from(image: &GpuImage<$pixel>) -> Self {
                Self::Device(image.into())
            }
        }
    )*};
}
conversions!(u8, u16, f32);
