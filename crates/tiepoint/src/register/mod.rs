//! Registration: images → features → matches → model → warped picture.
//!
//! [`tie_points`] is the part between features and model, for callers that have features: match by ratio and
//! mutual choice, estimate the model, search again near what it predicts with a weaker ratio (a repeated
//! structure is no rival when it lies elsewhere), and refine the model on what was found. [`register()`] is all
//! of it, from two pictures to one laid upon the other.

mod tie;

pub use tie::{Rematch, TieOptions, TiePoints, tie_points};

use crate::device::gpu::Gpu;
use crate::device::{Cpu, Processor};
use crate::feature::{Detector, Features};
use crate::geometry::warp::{GpuWarp, Interpolation, warp};
use crate::geometry::{Model, ModelKind};
use crate::image::gpu::{GpuImage, GpuPixel};
use crate::image::{AnyImage, Image, Prepared, Range, grey, prepare};
use crate::{Error, Result};

/// How to register.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RegisterOptions {
    /// The features to find. Default SIFT.
    pub detector: Detector,
    /// Which values of the pictures are black and white. Default automatic.
    pub range: Range,
    /// Matching and model. Default a homography; a fundamental matrix, or none, registers nothing.
    pub tie: TieOptions,
    /// How pixels are interpolated. Default bilinear.
    pub interpolation: Interpolation,
}

impl RegisterOptions {
    /// Checks every option.
    ///
    /// # Errors
    /// [`Error::Option`] names the first that is out of range.
    pub fn check(&self) -> Result<()> {
        self.detector.check()?;
        self.range.check()?;
        self.tie.check()?;
        match self.tie.model {
            None | Some(ModelKind::Fundamental) => Err(Error::option(
                "model",
                self.tie.model.map_or("none", ModelKind::name),
                "homography, affine or similarity: nothing else says where a pixel goes",
            )),
            _ => Ok(()),
        }
    }
}

/// A picture laid upon another.
#[derive(Clone, Debug, PartialEq)]
pub struct Registration {
    /// Features found in MOVING and REFERENCE.
    pub features: [usize; 2],
    /// Tie points; A is MOVING, B is REFERENCE.
    pub tie: TiePoints,
    /// The model from MOVING to REFERENCE.
    pub model: Model,
    /// MOVING on the pixels of REFERENCE; black where MOVING shows nothing.
    pub warped: AnyImage,
}

/// Finds where `moving` lies on `reference` and lays it there.
///
/// # Errors
/// As [`RegisterOptions::check`], the detector, [`tie_points`] and [`warp()`]; [`Error::Image`] for more than
/// four channels.
pub fn register(
    reference: &AnyImage,
    moving: &AnyImage,
    options: &RegisterOptions,
    processor: &Processor,
) -> Result<Registration> {
    options.check()?;
    let cpu = &processor.cpu;
    let detect = |image: &AnyImage| -> Result<Features> {
        let Prepared { image, mask } = prepare(grey(image.clone(), cpu)?, options.range, cpu)?;
        let _stage = cpu.stage("detect");
        options.detector.detect(&image, mask.as_ref().map(Image::view), processor)
    };
    let (a, b) = (detect(moving)?, detect(reference)?);
    let (tie, model) = register_features(&a, &b, &options.tie, processor)?;
    let warped = lay(moving, reference, &model, options.interpolation, processor)?;
    Ok(Registration { features: [a.len(), b.len()], tie, model, warped })
}

/// The tie points and the model from MOVING to REFERENCE, from their features.
///
/// # Errors
/// As [`tie_points`]; [`Error::Option`] when the options ask for no model.
pub fn register_features(
    moving: &Features,
    reference: &Features,
    options: &TieOptions,
    processor: &Processor,
) -> Result<(TiePoints, Model)> {
    let tie = tie_points(moving, reference, options, processor)?;
    let model = tie.model.ok_or_else(|| Error::option("model", "none", "a model to register by"))?;
    Ok((tie, model))
}

/// `moving` on the pixels of `reference`, by the model from MOVING to REFERENCE; black where it shows nothing.
///
/// # Errors
/// [`Error::Degenerate`] when the model has no inverse or is no map between places, and as [`warp()`].
pub fn lay(
    moving: &AnyImage,
    reference: &AnyImage,
    model: &Model,
    interpolation: Interpolation,
    processor: &Processor,
) -> Result<AnyImage> {
    fn onto<T: GpuPixel>(
        image: &Image<T>,
        back: &crate::geometry::Homography,
        reference: &AnyImage,
        interpolation: Interpolation,
        processor: &Processor,
    ) -> Result<Image<T>> {
        let (size, fill) = (reference.size(), T::default());
        let on_gpu = |gpu: &Gpu| {
            let warp = GpuWarp::new(gpu, interpolation, image.channels())?;
            warp.warp(&GpuImage::upload(gpu, image.view())?, back, size, fill)?.download()
        };
        let on_cpu = |cpu: &Cpu| warp(image.view(), back, size, interpolation, fill, cpu);
        processor.gpu_or_cpu("warping", on_gpu, on_cpu)
    }
    let name = model.kind().name();
    let no_map =
        Error::Degenerate { model: name, reason: "it has no inverse between places, so it cannot warp" };
    let back = model.homography().and_then(|h| h.inverse()).ok_or(no_map)?;
    Ok(match moving {
        AnyImage::U8(i) => AnyImage::U8(onto(i, &back, reference, interpolation, processor)?),
        AnyImage::U16(i) => AnyImage::U16(onto(i, &back, reference, interpolation, processor)?),
        AnyImage::F32(i) => AnyImage::F32(onto(i, &back, reference, interpolation, processor)?),
    })
}

#[cfg(test)]
mod tests;
