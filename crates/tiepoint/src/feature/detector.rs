//! A detector by name and options, on any device.

use super::Features;
use super::sift::{GpuSift, Sift, SiftOptions};
use super::surf::{GpuSurf, Surf, SurfOptions};
use crate::device::Processor;
use crate::for_any_image;
use crate::image::{AnyImage, ImageView};
use crate::{Error, Result};

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
    /// [`Error::Option`] names the first that is out of range.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Sift(options) => options.check(),
            Self::Surf(options) => options.check(),
        }
    }

    /// A finder of these features on the processor's GPU, or on its CPU where it has none.
    ///
    /// # Errors
    /// As [`check`](Self::check), and [`Error::Device`] when the GPU refuses the kernels.
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

/// Runs one generic expression for views of several images, whichever type of pixel all of them have.
macro_rules! for_views {
    ($images:expr, $views:ident => $body:expr) => {
        match $images.first() {
            None => Ok(Vec::new()),
            Some(AnyImage::U8(_)) => for_views!($images, U8, $views => $body),
            Some(AnyImage::U16(_)) => for_views!($images, U16, $views => $body),
            Some(AnyImage::F32(_)) => for_views!($images, F32, $views => $body),
        }
    };
    ($images:expr, $type:ident, $views:ident => $body:expr) => {{
        let views = $images.iter().map(|image| match image {
            AnyImage::$type(image) => Ok(image.view()),
            _ => Err(Error::Mismatch("the images of a batch have several types of pixel: one is needed".into())),
        });
        views.collect::<Result<Vec<_>>>().and_then(|$views| $body)
    }};
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
    /// As [`Sift::detect`] and [`Surf::detect`]; [`Error::Memory`] when the image is too large for the
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

    /// The features of several grey images of one size and one type of pixel, which a GPU searches together. They are
    /// those of [`detect`](Self::detect).
    ///
    /// # Errors
    /// As [`detect`](Self::detect), and [`Error::Mismatch`] when a GPU is given several sizes or types.
    pub fn detect_many(&mut self, images: &[&AnyImage], processor: &Processor) -> Result<Vec<Features>> {
        let found = match &mut self.0 {
            Form::Sift(_) | Form::Surf(_) => {
                return images.iter().map(|image| self.detect(image, None, processor)).collect();
            }
            Form::GpuSift(sift) => for_views!(images, views => sift.detect_views(&views)),
            Form::GpuSurf(surf) => for_views!(images, views => surf.detect_views(&views)),
        };
        processor.collect_times();
        found
    }

    /// Takes features that are no longer needed: see [`GpuSift::recycle`]. On a CPU they are dropped.
    pub fn recycle(&mut self, features: impl IntoIterator<Item = Features>) {
        match &mut self.0 {
            Form::Sift(_) | Form::Surf(_) => features.into_iter().for_each(drop),
            Form::GpuSift(sift) => sift.recycle(features),
            Form::GpuSurf(surf) => surf.recycle(features),
        }
    }

    /// In how many parts the last image was searched for want of the GPU's memory; 1 is the whole.
    pub fn parts(&self) -> usize {
        match &self.0 {
            Form::GpuSift(sift) => sift.parts(),
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Cpu;
    use crate::device::gpu::all;
    use crate::device::progress::tests::told;
    use crate::image::{Image, Size};
    use crate::synth::Texture;

    #[test]
    fn many_are_what_each_alone_is() {
        let cpu = Cpu::with_threads(2).unwrap();
        let texture = |seed| AnyImage::from(Texture::new(seed).image::<u8>(Size::new(120, 90), &cpu));
        let images: Vec<AnyImage> = (0..5).map(texture).collect();
        let images: Vec<&AnyImage> = images.iter().collect();
        let float = AnyImage::from(Image::<f32>::new(Size::new(120, 90)));
        let gpus = all().iter().map(|gpu| Processor::with_gpu(cpu.clone(), gpu.clone()));
        for processor in gpus.chain([cpu.clone().into()]) {
            for detector in [Detector::default(), Detector::Surf(SurfOptions::default())] {
                let mut finder = detector.open(&processor).unwrap();
                assert!(finder.detect_many(&[], &processor).unwrap().is_empty(), "none of none");
                let alone = |image: &&AnyImage| detector.detect(image, None, &processor).unwrap();
                let wanted: Vec<Features> = images.iter().map(alone).collect();
                assert!(wanted.iter().all(|found| found.len() > 20), "features of a rich texture");
                for _ in 0..2 {
                    let found = finder.detect_many(&images, &processor).unwrap();
                    assert_eq!(found, wanted, "{detector:?}");
                    finder.recycle(found);
                }
                if processor.gpu.is_some() {
                    told(&cpu, 2, |cpu| {
                        let observed = processor.clone().with_cpu(cpu.clone());
                        detector.open(&observed).unwrap().detect_many(&images, &observed).unwrap()
                    });
                }
                let mixed = finder.detect_many(&[images[0], &float], &processor);
                let refused = matches!(mixed, Err(Error::Mismatch(_)));
                assert_eq!(refused, processor.gpu.is_some(), "two types of pixel");
            }
        }
    }
}
