//! A detector by name and options, on any device.

use super::Features;
use super::sift::{GpuSift, Sift, SiftOptions};
use super::surf::{GpuSurf, Surf, SurfOptions};
use crate::Result;
use crate::device::Processor;
use crate::for_any_image;
use crate::image::{AnyImage, ImageView};

/// Which features to find, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Detector {
    /// Lowe's SIFT.
    Sift(SiftOptions),
    /// Speeded-up robust features.
    Surf(SurfOptions),
}

impl Default for Detector {
    fn default() -> Self {
        Self::Sift(SiftOptions::default())
    }
}

impl Detector {
    /// Checks the options.
    ///
    /// # Errors
    /// [`crate::Error::Option`] names the first that is out of range.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Sift(options) => options.check(),
            Self::Surf(options) => options.check(),
        }
    }

    /// A finder of these features on the processor's GPU, or on its CPU where it has none.
    ///
    /// # Errors
    /// As [`check`](Self::check), and [`crate::Error::Device`] when the GPU refuses the kernels.
    pub fn open(&self, processor: &Processor) -> Result<Finder> {
        Ok(Finder(match (self, &processor.gpu) {
            (Self::Sift(options), None) => Form::Sift(Box::new(Sift::new(*options)?)),
            (Self::Surf(options), None) => Form::Surf(Box::new(Surf::new(*options)?)),
            (Self::Sift(options), Some(gpu)) => {
                Form::GpuSift(Box::new(GpuSift::new(gpu, *options)?.with_cpu(&processor.cpu)))
            }
            (Self::Surf(options), Some(gpu)) => {
                Form::GpuSurf(Box::new(GpuSurf::new(gpu, *options)?.with_cpu(&processor.cpu)))
            }
        }))
    }

    /// The features of a grey image; none where `mask` is 0. For several images [`open`](Self::open) once.
    ///
    /// # Errors
    /// As [`Finder::detect`].
    pub fn detect(
        &self,
        image: &AnyImage,
        mask: Option<ImageView<'_, u8>>,
        processor: &Processor,
    ) -> Result<Features> {
        self.open(processor)?.detect(image, mask, processor)
    }
}

/// A detector on the device that it was opened for, which keeps its memory from image to image. The device changes no
/// bit of the result.
#[derive(Debug)]
pub struct Finder(Form);

#[derive(Debug)]
enum Form {
    Sift(Box<Sift>),
    Surf(Box<Surf>),
    GpuSift(Box<GpuSift>),
    GpuSurf(Box<GpuSurf>),
}

impl Finder {
    /// The features of a grey image; none where `mask` is 0.
    ///
    /// # Errors
    /// As [`Sift::detect`] and [`Surf::detect`]; [`crate::Error::DeviceMemory`] when the image is too large for the
    /// GPU, for SIFT even in parts.
    pub fn detect(
        &mut self,
        image: &AnyImage,
        mask: Option<ImageView<'_, u8>>,
        processor: &Processor,
    ) -> Result<Features> {
        let cpu = &processor.cpu;
        let found = match &mut self.0 {
            Form::Sift(sift) => for_any_image!(image, view => sift.detect(view, mask, cpu)),
            Form::Surf(surf) => for_any_image!(image, view => surf.detect(view, mask, cpu)),
            Form::GpuSift(sift) => for_any_image!(image, view => sift.detect_view(view, mask)),
            Form::GpuSurf(surf) => for_any_image!(image, view => surf.detect_view(view, mask)),
        };
        processor.collect_times();
        found
    }

    /// In how many parts the last image was searched for want of the GPU's memory; 1 is the whole.
    pub fn parts(&self) -> usize {
        match &self.0 {
            Form::GpuSift(sift) => sift.parts(),
            _ => 1,
        }
    }
}
