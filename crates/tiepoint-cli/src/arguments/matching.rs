//! The options of matching and verification as flags, for the commands that match two images.

use crate::failure::{Failure, Outcome};
use clap::{Args, ValueEnum};
use tiepoint::geometry::{ModelKind, RobustOptions};
use tiepoint::matching::MatchOptions;
use tiepoint::register::{Rematch, TieOptions};

/// How matches are found and verified.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Matching")]
pub(crate) struct MatchingArguments {
    /// What relates the two images
    #[arg(long, value_enum, default_value_t)]
    pub(crate) model: ModelName,
    /// Keep a match when its distance is below this share of the second nearest's; 1 keeps all
    #[arg(long, default_value_t = 0.8, value_name = "SHARE", allow_negative_numbers = true)]
    pub(crate) ratio: f32,
    /// Also keep matches of which only one side is the other's nearest
    #[arg(long)]
    pub(crate) one_way: bool,
    /// Also compare bright-on-dark features with dark-on-bright ones
    #[arg(long)]
    pub(crate) any_sign: bool,
    /// Largest distance of an inlier from the model, in pixels [default: 3]
    #[arg(long, value_name = "PX", allow_negative_numbers = true)]
    pub(crate) inlier_distance: Option<f64>,
    /// Leave out the second search, near what the model predicts
    #[arg(long)]
    pub(crate) no_rematch: bool,
    /// As --mask, for the second image
    #[arg(long, value_name = "IMAGE")]
    pub(crate) mask_b: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelName {
    /// A plane, or a camera that only turns
    #[default]
    Homography,
    /// Six parameters: also shear and unequal scales
    Affine,
    /// Four parameters: turned, scaled, shifted
    Similarity,
    /// Two views of anything: epipolar geometry
    Fundamental,
    /// No verification
    None,
}

impl ModelName {
    /// `None` for no verification.
    pub(crate) fn kind(self) -> Option<ModelKind> {
        match self {
            Self::Homography => Some(ModelKind::Homography),
            Self::Affine => Some(ModelKind::Affine),
            Self::Similarity => Some(ModelKind::Similarity),
            Self::Fundamental => Some(ModelKind::Fundamental),
            Self::None => None,
        }
    }
}

impl MatchingArguments {
    /// The options, checked.
    pub(crate) fn options(&self) -> Outcome<TieOptions> {
        let matching = MatchOptions {
            ratio: Some(self.ratio).filter(|r| *r != 1.0),
            mutual: !self.one_way,
            same_sign: !self.any_sign,
            ..MatchOptions::default()
        };
        let start = RobustOptions::default();
        let robust =
            RobustOptions { threshold_px: self.inlier_distance.unwrap_or(start.threshold_px), ..start };
        if !(robust.threshold_px > 0.0 && robust.threshold_px.is_finite()) {
            let given = robust.threshold_px;
            return Err(Failure::usage(format!("--inlier-distance is {given}: expected pixels, above 0")));
        }
        let rematch = (!self.no_rematch).then(Rematch::default);
        let options = TieOptions { matching, model: self.model.kind(), robust, rematch };
        options.check()?;
        Ok(options)
    }
}
