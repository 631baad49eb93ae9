//! Images that lie in the host's memory or in a device's.

use super::gpu::{AnyGpuImage, GpuImage};
use super::{AnyCow, AnyImage, AnyView, Image, Pixel, PixelKind, Size};
use crate::device::gpu::Gpu;
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
    /// The pixels in the host's memory; those on a device are downloaded.
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

    /// Fails unless this is a grey image in the host's memory or on `gpu`.
    pub(crate) fn require_grey_on(&self, gpu: &Gpu) -> Result<()> {
        if self.size().is_empty() {
            return Err(Error::Image(format!("the image is empty ({})", self.size())));
        }
        if self.channels() != 1 {
            return Err(Error::Image(format!(
                "expected one channel, found {}; make it grey first",
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

    /// Fails unless `other` can be in one batch with this image.
    pub(crate) fn goes_with(&self, other: &Self) -> Result<()> {
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

/// An image computed from [`Pixels`], in the same memory: the host's or the device's.
#[derive(Clone, Debug)]
pub enum Made<I = AnyImage, G = AnyGpuImage> {
    /// In the host's memory.
    Host(I),
    /// In a device's memory. The work that computes it may still be in the device's queue.
    Device(G),
}

/// A mask computed from [`Pixels`], in the same memory.
pub type MadeMask = Made<Image<u8>, GpuImage<u8>>;

impl Made {
    /// The image in the host's memory; one on a device is downloaded.
    ///
    /// # Errors
    /// [`Error::Device`] when the device failed.
    pub fn into_host(self) -> Result<AnyImage> {
        match self {
            Self::Host(image) => Ok(image),
            Self::Device(image) => image.download(),
        }
    }
}

impl MadeMask {
    /// The mask in the host's memory; one on a device is downloaded.
    ///
    /// # Errors
    /// [`Error::Device`] when the device failed.
    pub fn into_host(self) -> Result<Image<u8>> {
        match self {
            Self::Host(mask) => Ok(mask),
            Self::Device(mask) => mask.download(),
        }
    }
}

impl From<MadeMask> for Made {
    fn from(mask: MadeMask) -> Self {
        match mask {
            MadeMask::Host(mask) => Self::Host(mask.into()),
            MadeMask::Device(mask) => Self::Device(mask.into()),
        }
    }
}

impl<'a, I, G: Clone + Into<AnyGpuImage>> From<&'a Made<I, G>> for Pixels<'a>
where
    &'a I: Into<AnyView<'a>>,
{
    fn from(made: &'a Made<I, G>) -> Self {
        match made {
            Made::Host(image) => Self::Host(image.into()),
            Made::Device(image) => Self::Device(image.clone().into()),
        }
    }
}

impl<'a, V: Into<AnyView<'a>>> From<V> for Pixels<'a> {
    fn from(view: V) -> Self {
        Self::Host(view.into())
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

impl<T: Pixel> From<&GpuImage<T>> for Pixels<'_> {
    fn from(image: &GpuImage<T>) -> Self {
        Self::Device(image.into())
    }
}
