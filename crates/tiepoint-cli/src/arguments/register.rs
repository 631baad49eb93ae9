//! `tiepoint register`.

use super::compress::CompressArguments;
use super::matching::PairArguments;
use super::values::named;
use crate::draw::Blend;
use crate::failure::{Failure, Outcome};
use crate::output::check_image;
use clap::Args;
use std::path::PathBuf;
use tiepoint::geometry::ModelKind;
use tiepoint::geometry::warp::Interpolation;
use tiepoint::image::{self, OutputFormat};

/// The extent of the results of a registration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Extent {
    /// The pixels of the reference.
    #[default]
    Reference,
    /// Both pictures whole, as far as they reach beyond each other.
    Union,
}

#[derive(Debug, Args)]
pub(crate) struct RegisterArguments {
    /// The image that stays
    pub(crate) reference: PathBuf,
    /// The image that is warped onto it
    pub(crate) moving: PathBuf,
    /// The warped image with all its bands, of the reference's size or of --canvas: .png .tif .pfm .exr .npy .jpg .pgm
    /// .ppm .pnm .pam; a .tif keeps the reference's place on the map (GeoTIFF). Pixels without input are marked in a
    /// .tif (no-data value, NaN or a mask), NaN in floats, and 0 otherwise. If MOVING itself has pixels without data, a
    /// .png of 8 bits is transparent there, and other formats get the mask FILE.msk beside them
    #[arg(short, long, value_name = "IMAGE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tiff: CompressArguments,
    /// A picture of the warped image over the reference
    #[arg(long, value_name = "PNG")]
    pub(crate) overlay: Option<PathBuf>,
    /// The area that the results show
    #[arg(long, value_enum, default_value_t)]
    pub(crate) canvas: Extent,
    /// How the overlay shows both
    #[arg(long, requires = "overlay", value_enum, default_value_t)]
    pub(crate) blend: Blend,
    /// A picture of both images and their matches
    #[arg(long, value_name = "PNG")]
    pub(crate) draw: Option<PathBuf>,
    /// How values between pixels are interpolated
    #[arg(long, value_parser = named::<Interpolation>(), default_value_t)]
    pub(crate) interpolation: Interpolation,
    /// Write the matrix of the model to FILE as text, one row on each line. It maps MOVING to REFERENCE
    #[arg(long, value_name = "FILE")]
    pub(crate) output_model: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) pair: PairArguments,
}

impl RegisterArguments {
    /// Fails if the model cannot warp, or a result could not be written or would replace an input.
    pub(crate) fn check(&self) -> Outcome {
        if self.pair.matching.model.0.is_none_or(ModelKind::is_epipolar) {
            return Err(Failure::usage(
                "--model: expected homography, affine, similarity, rigid or translation; only these map points to \
                 points, as a warp needs",
            ));
        }
        let pictures = [&self.output, &self.overlay, &self.draw];
        let files = self.pair.files([&self.reference, &self.moving])?;
        let files = files.writes(pictures.iter().copied().flatten()).writes(&self.output_model);
        // The place of REFERENCE goes into a world file beside a picture that cannot hold it.
        let worlds = [&self.reference, &self.moving].into_iter().filter_map(image::world_file);
        let beside =
            |path: &&PathBuf| OutputFormat::of(path).is_ok_and(|format| format != OutputFormat::Tiff);
        let world = self.output.as_ref().filter(beside).and_then(image::new_world_file);
        files.reads(worlds).writes(world).check()?;
        pictures.iter().filter_map(|p| p.as_deref()).try_for_each(check_image)
    }
}
