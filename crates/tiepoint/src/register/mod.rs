//! Registration: images → features → matches → model → warped image.
//!
//! [`tie_points`] goes from features to a model: it matches by ratio and mutual nearest neighbours, estimates the
//! model, searches again near what the model predicts with a weaker ratio (repeated structure elsewhere no longer
//! competes), and refines the model on the new matches. [`register()`] goes all the way from two images to one warped
//! onto the other: [`locate`], then [`warp_onto`].

pub(crate) mod cross;
mod tie;
mod views;

pub(crate) use cross::{CORNERS_WITHIN, Structure, corner_matches};
pub(crate) use tie::{AMBIGUOUS, LIKE, rival};
pub use tie::{
    Alternatives, Rematch, TieOptions, TiePoints, hidden_parts, tie_given, tie_points, tie_points_on_device,
};
pub use views::{
    Modality, TiePicture, TiedPictures, Views, features_to_tie, tie_pictures, tie_pictures_on_device,
};

use crate::device::Processor;
use crate::feature::{Detector, Features};
use crate::geometry::warp::{WarpOptions, coverage_pixels, warp_pixels};
use crate::geometry::{Model, ModelKind};
use crate::image::{
    AnyImage, AnyView, Image, ImageView, Made, MadeMask, Pixels, Range, Size, prepare, spread_colours,
};
use crate::options::{Named, options};
use crate::{Error, Result, by_pixel};

options! {
    /// How to register.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct RegisterOptions {
        /// Whether one sensor made both pictures; automatic: structure is tried if features do not suffice.
        modality / with_modality: Modality = Modality::Auto;
    }
    tables {
        /// Matching and model. Default a homography; with a fundamental matrix, or none, [`register()`] returns an
        /// error.
        tie / with_tie: TieOptions = TieOptions::default();
        /// How MOVING is warped. Default bicubic, black where it has no input.
        warp / with_warp: WarpOptions = WarpOptions::default();
    }
    besides {
        /// The features to find. Default SIFT.
        detector / with_detector: Detector = Detector::default();
        /// Which values of the images are black and white. Default automatic.
        range / with_range: Range = Range::Auto;
        /// Simulated views. Default automatic: where the pictures as they are do not suffice.
        views / with_views: Views = Views::Auto;
    }
    check this {
        this.detector.check()?;
        this.range.check()?;
        this.views.check()?;
        match this.tie.model {
            Some(kind) if !kind.is_epipolar() => Ok(()),
            None | Some(_) => Err(Error::option(
                "model",
                this.tie.model.map_or("none", ModelKind::name),
                "homography, affine, similarity, rigid or translation: only these map points to points, as a warp needs",
            )),
        }
    }
}

/// An image to register, of any size and 1 to 4 channels, and which of its pixels count.
#[derive(Clone, Copy, Debug)]
pub struct RegisterInput<'a> {
    /// The image.
    pub image: AnyView<'a>,
    /// A mask of the image's size: features are found where it is not 0, and never near transparent pixels. `None`
    /// for everywhere.
    pub mask: Option<ImageView<'a, u8>>,
}

impl<'a, I: Into<AnyView<'a>>> From<I> for RegisterInput<'a> {
    /// The whole image.
    fn from(image: I) -> Self {
        Self { image: image.into(), mask: None }
    }
}

/// An image warped onto another.
#[derive(Clone, Debug, PartialEq)]
pub struct Registration {
    /// Where it lies.
    pub location: Location,
    /// MOVING on the pixels of REFERENCE.
    pub warped: Warped,
}

/// An image resampled on the pixels of another.
#[derive(Clone, Debug, PartialEq)]
pub struct Warped<I = AnyImage, C = Image<u8>> {
    /// The image, with its own pixel type and channels, and with the fill value where it has no input.
    pub image: I,
    /// 255 where the image has input, 0 elsewhere. Pixels of it that are NaN or that a mask hides count as input.
    pub covered: C,
}

/// A warped image in the memory of the image that was warped, the host's or a device's.
pub type WarpedPixels = Warped<Made, MadeMask>;

impl WarpedPixels {
    /// Both in the host's memory.
    ///
    /// # Errors
    /// [`Error::Device`] when the device failed.
    pub fn into_host(self) -> Result<Warped> {
        Ok(Warped { image: self.image.into_host()?, covered: self.covered.into_host()? })
    }
}

/// Where an image lies on another.
#[derive(Clone, Debug, PartialEq)]
pub struct Location {
    /// The features of MOVING and of REFERENCE.
    pub features: [Features; 2],
    /// Tie points; A is MOVING, B is REFERENCE.
    pub tie: TiePoints,
    /// The model from MOVING to REFERENCE.
    pub reference_from_moving: Model,
}

/// Finds where `moving` lies on `reference` and warps it there. A mask of `moving` says where features are found; what it
/// hides is warped, too, and a NaN spreads to the pixels that are interpolated from it. For pictures with pixels without
/// data call [`locate`], then [`FileImage::resampled`](crate::image::FileImage::resampled) with [`warp_onto`].
///
/// # Errors
/// As [`locate`] and [`warp_onto`].
pub fn register<'a>(
    reference: impl Into<RegisterInput<'a>>,
    moving: impl Into<RegisterInput<'a>>,
    options: &RegisterOptions,
    processor: &Processor,
) -> Result<Registration> {
    let (reference, moving) = (reference.into(), moving.into());
    let location = located([reference, moving], options, processor)?;
    let size = reference.image.size();
    let spread = spread_colours(moving.image);
    let image = spread.as_ref().map_or(moving.image, AnyImage::view);
    let model = &location.reference_from_moving;
    let warped = warp_onto(image, size, model, &options.warp, processor)?.into_host()?;
    Ok(Registration { location, warped })
}

/// Finds where `moving` lies on `reference`: [`register()`] without the warp.
///
/// # Errors
/// As [`RegisterOptions::check`], the detector and [`tie_points`]; [`Error::Image`] for more than four channels,
/// [`Error::Mismatch`] for a mask of another size than its image.
pub fn locate<'a>(
    reference: impl Into<RegisterInput<'a>>,
    moving: impl Into<RegisterInput<'a>>,
    options: &RegisterOptions,
    processor: &Processor,
) -> Result<Location> {
    located([reference.into(), moving.into()], options, processor)
}

/// [`locate`], compiled once: not for each type of input.
fn located(
    [reference, moving]: [RegisterInput<'_>; 2],
    options: &RegisterOptions,
    processor: &Processor,
) -> Result<Location> {
    options.check()?;
    by_pixel!(type moving.image.pixel(), T => options.warp.check_fill::<T>())?;
    let (features, TiedPictures { tie, .. }) = tie_images([moving, reference], options, processor)?;
    let no_model = || Error::option("model", "none", "a model to register by");
    let reference_from_moving = tie.b_from_a.ok_or_else(no_model)?;
    Ok(Location { features, tie, reference_from_moving })
}

/// The tie points of two images A and B, and the features to which they refer: [`locate`] for any model, or for none.
/// [`TiedPictures::features`] is empty.
///
/// # Errors
/// As the detector and [`tie_pictures`]; [`Error::Image`] for more than four channels, [`Error::Mismatch`] for a mask of
/// another size than its image.
pub fn tie_images(
    images: [RegisterInput<'_>; 2],
    options: &RegisterOptions,
    processor: &Processor,
) -> Result<([Features; 2], TiedPictures)> {
    let finder = options.detector.open(processor)?;
    let [a, b] = images.map(|of| prepare(of.image, of.mask, options.range, &processor.cpu));
    let (a, b) = (a?, b?);
    let (images, masks) = ([a.image.view(), b.image.view()], [a.mask.view(), b.mask.view()]);
    let stage = processor.cpu.stage("detect");
    let [found_a, found_b] = features_to_tie(&finder, images, masks, options.modality);
    let found = [found_a?, found_b?];
    drop(stage);
    let pictures = [0, 1].map(|i| TiePicture { image: images[i], mask: masks[i], found: &found[i] });
    let search = (options.views, options.modality);
    let mut tied = tie_pictures(pictures, &finder, &options.tie, search, processor)?;
    let features = tied.features.take().unwrap_or_else(|| found.map(|found| found.features));
    Ok((features, tied))
}

/// From this [`fineness`] on, fine detail of a warped picture aliases.
const FINER: f64 = 2.0;

/// How many pixels of a picture of `size` lie, along an axis, in one pixel of the picture onto which `model` maps it,
/// measured in its middle; `None` below two. From two on, a warp aliases fine detail, because it only interpolates.
pub fn fineness(model: &Model, size: Size) -> Option<f64> {
    let [a, b, c, d] = model.homography()?.derivative([0.5 * size.width as f64, 0.5 * size.height as f64]);
    Some(1.0 / (a * d - b * c).abs().sqrt()).filter(|finer| finer.is_finite() && *finer >= FINER)
}

/// `moving` resampled on the pixels of a reference of this size. An image in a device's memory is warped there, and the
/// host does not wait for the result; an image in the host's memory is warped by `processor`.
///
/// # Errors
/// [`Error::Degenerate`] when the model has no inverse or does not map points to points, and as
/// [`warp`](crate::geometry::warp::warp()). On a device also [`Error::Image`] for an output without pixels, and
/// [`Error::is_device_limit`] where it is too small or lacks f64.
pub fn warp_onto<'a>(
    moving: impl Into<Pixels<'a>>,
    reference: Size,
    reference_from_moving: &Model,
    options: &WarpOptions,
    processor: &Processor,
) -> Result<WarpedPixels> {
    warp_onto_size(&moving.into(), reference, reference_from_moving, options, processor)
}

/// [`warp_onto`], compiled once: not for each type of input.
fn warp_onto_size(
    moving: &Pixels<'_>,
    reference: Size,
    reference_from_moving: &Model,
    options: &WarpOptions,
    processor: &Processor,
) -> Result<WarpedPixels> {
    let lines =
        "the model maps points to lines: expected a map of points, such as a homography, to warp a picture";
    let map = reference_from_moving.homography().ok_or_else(|| Error::Mismatch(lines.into()))?;
    let no_inverse = Error::Degenerate {
        model: reference_from_moving.kind().noun(),
        reason: "it has no inverse, so it cannot warp",
    };
    let map = map.inverse().ok_or(no_inverse)?;
    let image = warp_pixels(moving, &map, reference, options, processor)?;
    let covered = coverage_pixels(moving, &map, reference, processor)?;
    Ok(Warped { image, covered })
}

#[cfg(test)]
mod tests;
