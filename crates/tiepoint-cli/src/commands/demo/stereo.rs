//! The stereo scene of the demo: surfaces at known disparities.

use super::SIZE;
use crate::context::Context;
use crate::draw::{disparity, usual_range};
use crate::failure::Outcome;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;
use tiepoint::evaluate::{DisparityScore, DisparityScoring, disparity_score};
use tiepoint::image::{self, AnyImage};
use tiepoint::stereo::{Masks, Stereo, StereoOptions};
use tiepoint::synth::{StereoPair, StereoScene, StereoSceneOptions};

/// What dense stereo made of it.
#[derive(Debug)]
pub(super) struct Depth {
    pub(super) score: DisparityScore,
    pub(super) seconds: f64,
}

/// Draws the scene, finds its disparities with default options, scores them where both images see the same, and
/// writes the pictures.
pub(super) fn run(folder: &Path, seed: u64, context: &Context) -> Outcome<Depth> {
    context.progress.say("stereo");
    let cpu = &context.processor.cpu;
    let drawn =
        StereoSceneOptions::default().with_size(SIZE).with_surfaces(14).with_seed(seed).with_noise(0.01);
    let scene: StereoPair = StereoScene::new(&drawn)?.render(cpu);
    let pair = [scene.left, scene.right].map(AnyImage::U8);
    let options = StereoOptions::default().with_disparities(64);
    let start = Instant::now();
    let found = Stereo::new(options)?.compute(
        (&pair[0]).into(),
        (&pair[1]).into(),
        Masks::default(),
        &context.processor,
    )?;
    let found = found.disparity;
    let seconds = start.elapsed().as_secs_f64();
    let score = disparity_score(
        found.view(),
        scene.truth_left.view(),
        Some(scene.visible.view()),
        &DisparityScoring::default(),
    )?;
    let range = usual_range(&scene.truth_left);
    let file = |what: &str| folder.join(format!("stereo-{what}.png"));
    for (what, image) in ["left", "right"].iter().zip(&pair) {
        image::write(file(what), image)?;
    }
    for (what, map) in [("found", &found), ("truth", &scene.truth_left)] {
        image::write(file(what), &disparity(map, range)?.into_image())?;
    }
    Ok(Depth { score, seconds })
}

impl Depth {
    pub(super) fn bad(&self) -> f64 {
        self.score.bad.first().copied().unwrap_or(f64::NAN)
    }

    pub(super) fn line(&self) -> String {
        let DisparityScore { epe, density, .. } = self.score;
        format!(
            "stereo  {:.1} % of what both images see has a disparity, {:.1} % is off by more than 1 px or has \
             none, mean error {epe:.3} px, {:.1} ms",
            density * 100.0,
            self.bad() * 100.0,
            self.seconds * 1e3
        )
    }

    /// For programs.
    pub(super) fn describe(&self) -> Value {
        json!({
            "bad": self.bad(),
            "density": self.score.density,
            "epe": self.score.epe,
            "compute_seconds": self.seconds,
        })
    }
}
