//! The options of matching and verification as flags, for the commands that match two images.

use super::values::{OrNone, named_or_none, views};
use crate::failure::Outcome;
use clap::Args;
use tiepoint::geometry::{ModelKind, RobustOptions};
use tiepoint::matching::MatchOptions;
use tiepoint::register::{Rematch, TieOptions, Views};

/// How matches are found and verified.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Matching")]
pub(crate) struct MatchingArguments {
    /// What relates the two images
    #[arg(long, value_parser = named_or_none("No verification", without_cameras), default_value_t)]
    pub(crate) model: OrNone<ModelKind>,
    /// Keep a match when its distance is below this share of the second nearest's; 1 keeps all
    #[arg(long, default_value_t = default_ratio(), value_name = "SHARE", allow_negative_numbers = true)]
    pub(crate) ratio: f32,
    /// Also keep matches of which only one side is the other's nearest
    #[arg(long)]
    pub(crate) one_way: bool,
    /// Also compare bright-on-dark features with dark-on-bright ones
    #[arg(long)]
    pub(crate) any_sign: bool,
    /// Largest distance of an inlier from the model, in pixels
    #[arg(
        long,
        value_name = "PX",
        default_value_t = RobustOptions::default().threshold_px,
        allow_negative_numbers = true
    )]
    pub(crate) inlier_distance: f64,
    /// Leave out the second search, near what the model predicts
    #[arg(long)]
    pub(crate) no_rematch: bool,
    /// Simulated views of each image to match: 1 to 43, or auto: the image as it is, and 10 views where too few of its
    /// matches agree. For viewpoints far apart
    #[arg(long, value_name = "N", default_value = "auto", value_parser = views)]
    pub(crate) views: Views,
    /// As --mask, for the second image (MOVING)
    #[arg(long, value_name = "IMAGE")]
    pub(crate) mask_b: Option<String>,
}

impl MatchingArguments {
    /// The options, checked.
    pub(crate) fn options(&self) -> Outcome<TieOptions> {
        let matching = MatchOptions::default()
            .with_ratio(Some(self.ratio).filter(|r| *r != 1.0))
            .with_mutual(!self.one_way)
            .with_same_sign(!self.any_sign);
        let options = TieOptions::default()
            .with_matching(matching)
            .with_model(self.model.0)
            .with_robust(RobustOptions::default().with_threshold_px(self.inlier_distance))
            .with_rematch((!self.no_rematch).then(Rematch::default));
        options.check()?;
        Ok(options)
    }
}

/// The ratio of the library; 1 where it has none.
pub(super) fn default_ratio() -> f32 {
    MatchOptions::default().ratio.unwrap_or(1.0)
}

/// Whether a model can be found from places alone: an essential matrix needs cameras, which `collect` reads from files.
fn without_cameras(kind: &ModelKind) -> bool {
    *kind != ModelKind::Essential
}
