//! The options of matching and verification as flags, for the commands that match two images.

use clap::{Args, ValueEnum};

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
