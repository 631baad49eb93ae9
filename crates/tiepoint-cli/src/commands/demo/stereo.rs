//! The stereo scene of the demo: surfaces at known disparities.

use super::SIZE;
use crate::commands::report;
use crate::context::Context;
use crate::failure::Outcome;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;
use tiepoint::evaluate::{DisparityScore, DisparityScoring, disparity_score};
use tiepoint::image::{self, AnyImage, Image};
use tiepoint::stereo::{Masks, Stereo, StereoOptions, StereoResult};
use tiepoint::synth::{StereoPair, StereoScene, StereoSceneOptions};
use tiepoint_report::{DisparityView, Picture, Section, View, counted};

#[derive(Debug)]
pub(super) struct Depth {
    pub(super) score: DisparityScore,
    pub(super) seconds: f64,
    /// The left and the right picture, in colour.
    pair: [AnyImage; 2],
    found: StereoResult,
    truth: Image<f32>,
}

/// Draws the scene, finds its disparities with default options, scores them where a surface is visible in both images,
/// and writes the pictures.
pub(super) fn run(folder: &Path, seed: u64, context: &Context) -> Outcome<Depth> {
    context.progress.say("stereo");
    let cpu = &context.processor.cpu;
    let drawn =
        StereoSceneOptions::default().with_size(SIZE).with_surfaces(14).with_seed(seed).with_noise(0.01);
    let scene: StereoPair = StereoScene::new(&drawn)?.render(cpu);
    let truths = [&scene.truth_left, &scene.truth_right];
    let pair =
        [(&scene.left, truths[0]), (&scene.right, truths[1])].map(|(grey, truth)| painted(grey, truth));
    let options = StereoOptions::default().with_disparities(64).with_confidence(true).with_reasons(true);
    let start = Instant::now();
    let [left, right] = pair.each_ref().map(AnyImage::view);
    let found = Stereo::new(options)?.compute(left, right, Masks::default(), &context.processor)?;
    let seconds = start.elapsed().as_secs_f64();
    let score = disparity_score(
        found.disparity.view(),
        scene.truth_left.view(),
        Some(scene.visible.view()),
        &DisparityScoring::default(),
    )?;
    for (what, image) in ["left", "right"].iter().zip(&pair) {
        image::write(folder.join(format!("stereo-{what}.png")), image)?;
    }
    Ok(Depth { score, seconds, pair, found, truth: scene.truth_left })
}

/// The picture in colours: the hue of a surface follows from its distance, so it is the same in both views.
fn painted(grey: &Image<u8>, truth: &Image<f32>) -> AnyImage {
    let mut out = Image::filled(grey.size(), 3, 0);
    let pixels = out.data_mut().chunks_exact_mut(3).zip(grey.data().iter().zip(truth.data()));
    for (pixel, (v, d)) in pixels {
        let d = if d.is_finite() { *d } else { 0.0 };
        for (c, out) in pixel.iter_mut().enumerate() {
            // The hue goes round once in 23 pixels of disparity. It is pale, so that the texture stays visible.
            let wave = libm::cosf(d * 0.273 + c as f32 * 2.094);
            *out = (f32::from(*v) * (0.74 + 0.26 * wave)).round() as u8;
        }
    }
    out.into()
}

impl Depth {
    pub(super) fn bad(&self) -> f64 {
        self.score.bad.first().copied().unwrap_or(f64::NAN)
    }

    pub(super) fn section(&self) -> Section<'_> {
        let [left, right] = &self.pair;
        let view = DisparityView {
            pair: Some([Picture::new("stereo-left.png", left), Picture::new("stereo-right.png", right)]),
            truth: Some(self.truth.view()),
            range: tiepoint_report::usual_range(self.truth.view()),
            ..report::disparity_view(&self.found)
        };
        Section::new("Dense stereo against the truth")
            .view(View::Disparity(view))
            .text(
                "Surfaces at known distances before two cameras side by side. The disparity is by how many pixels a point \
                 lies further left in the right picture; the view tells why some pixels have none, and how far the \
                 others are from the truth.",
            )
            .tile("pixels that both see", counted(self.score.pixels))
            .tile("with a disparity", format!("{:.1} %", self.score.density * 100.0))
            .tile("off by more than 1 px or none", format!("{:.1} %", self.bad() * 100.0))
            .tile("mean error", format!("{:.2} px", self.score.epe))
            .tile("computed in", format!("{:.0} ms", self.seconds * 1e3))
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

    pub(super) fn describe(&self) -> Value {
        json!({
            "bad": self.bad(),
            "density": self.score.density,
            "epe": self.score.epe,
            "compute_seconds": self.seconds,
        })
    }
}
