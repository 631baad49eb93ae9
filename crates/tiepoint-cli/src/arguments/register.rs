//! `tiepoint register`.

use super::detector::DetectorArguments;
use super::matching::MatchingArguments;
use super::report::ReportArguments;
use super::values::named;
use crate::draw::Blend;
use crate::failure::{Failure, Outcome};
use crate::output::{Files, check_image};
use clap::Args;
use std::path::PathBuf;
use tiepoint::geometry::ModelKind;
use tiepoint::geometry::warp::Interpolation;

#[derive(Debug, Args)]
pub(crate) struct RegisterArguments {
    /// The image that stays
    pub(crate) reference: PathBuf,
    /// The image that is warped onto it
    pub(crate) moving: PathBuf,
    /// The warped image, of the reference's size: .png .tif .pfm; a .tif keeps the reference's place on the map
    /// (GeoTIFF)
    #[arg(short, long, value_name = "IMAGE")]
    pub(crate) output: Option<PathBuf>,
    /// A picture of the warped image over the reference
    #[arg(long, value_name = "PNG")]
    pub(crate) overlay: Option<PathBuf>,
    /// How the two share the overlay
    #[arg(long, value_enum, default_value_t)]
    pub(crate) blend: Blend,
    /// A picture of both images and their matches
    #[arg(long, value_name = "PNG")]
    pub(crate) draw: Option<PathBuf>,
    /// How values between pixels are found
    #[arg(long, value_parser = named::<Interpolation>(), default_value_t)]
    pub(crate) interpolation: Interpolation,
    #[command(flatten)]
    pub(crate) report: ReportArguments,
    #[command(flatten)]
    pub(crate) matching: MatchingArguments,
    #[command(flatten)]
    pub(crate) detector: DetectorArguments,
}

impl RegisterArguments {
    /// Fails where the model cannot warp, or a result could not be written or would replace an input.
    pub(crate) fn check(&self) -> Outcome {
        if self.matching.model.0.is_none_or(ModelKind::is_epipolar) {
            return Err(Failure::usage(
                "--model: expected homography, affine, similarity, rigid or translation; nothing else says where a pixel goes",
            ));
        }
        self.report.check()?;
        let pictures = [&self.output, &self.overlay, &self.draw];
        let images = [self.reference.as_path(), self.moving.as_path()];
        let files = Files::default()
            .reads(images)
            .reads(self.detector.masks(images, self.matching.mask_b.as_deref()));
        files.writes(pictures.iter().copied().flatten()).writes(&self.report.report).check()?;
        pictures.iter().filter_map(|p| p.as_deref()).try_for_each(check_image)
    }
}
