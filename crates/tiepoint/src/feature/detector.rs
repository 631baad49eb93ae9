//! A detector by name and options.

use super::Features;
use super::sift::{self, SiftOptions};
use super::surf::{self, SurfOptions};
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

    /// The features of a grey image; none where `mask` is 0.
    ///
    /// # Errors
    /// As [`sift::detect`] and [`surf::detect`].
    pub fn detect(
        &self,
        image: &AnyImage,
        mask: Option<ImageView<'_, u8>>,
        processor: &Processor,
    ) -> Result<Features> {
        let cpu = &processor.cpu;
        match self {
            Self::Sift(options) => for_any_image!(image, view => sift::detect(view, options, mask, cpu)),
            Self::Surf(options) => for_any_image!(image, view => surf::detect(view, options, mask, cpu)),
        }
    }
}
