//! `tiepoint demo`: synthetic scenes through all of it, with pictures and a page that shows them.

mod page;
mod stereo;

use super::evaluate::Scores;
use super::filter::magnitude;
use super::matched_pair::lines;
use crate::arguments::demo::DemoArguments;
use crate::context::Context;
use crate::draw::{Blend, Canvas, keypoints, overlay, side_by_side};
use crate::failure::{Failure, Outcome};
use crate::output::{Clock, Part};
use serde_json::{Value, json};
use std::path::Path;
use tiepoint::feature::{Detector, Features, sift::SiftOptions, surf::SurfOptions};
use tiepoint::filter::any::{self, Gradient};
use tiepoint::filter::gauss::GaussOptions;
use tiepoint::filter::hessian::HessianOptions;
use tiepoint::filter::sobel::SobelOptions;
use tiepoint::geometry::warp::WarpOptions;
use tiepoint::image::{self, AnyImage, Size};
use tiepoint::register::{TieOptions, TiePoints, Warped, tie_points, warp_onto};
use tiepoint::synth::{Scene, SceneOptions, viewpoint};

/// A scene of the demo.
#[derive(Clone, Copy, Debug)]
struct DemoScene {
    /// Its part of file names.
    name: &'static str,
    title: &'static str,
    options: SceneOptions,
}

/// The results of one detector on one scene.
#[derive(Debug)]
struct Score {
    scene: &'static str,
    detector: &'static str,
    features: [usize; 2],
    tie: TiePoints,
    scores: Scores,
    seconds: f64,
}

const SIZE: Size = Size::new(800, 600);

fn scenes(seed: u64) -> Outcome<[DemoScene; 3]> {
    let plain = SceneOptions::default().with_size(SIZE).with_seed(seed);
    let scene = |name, title, view| {
        let options = plain.with_moving_from_reference(view);
        DemoScene { name, title, options }
    };
    let turned = viewpoint(SIZE, 0.61, 1.3, [0.0; 2], [20.0, -15.0])?;
    let tilted = viewpoint(SIZE, -0.15, 0.95, [0.35, 0.1], [-10.0, 8.0])?;
    let poor = viewpoint(SIZE, 0.12, 0.85, [0.05, -0.1], [30.0, 12.0])?;
    let mut poor = scene("poor", "Dark, blurred and noisy", poor);
    poor.options =
        poor.options.with_blur(1.5).with_noise(0.03).with_gain(0.45).with_bias(0.05).with_seed(seed + 1);
    Ok([
        scene("turned", "Turned by 35° and nearer", turned),
        scene("tilted", "Seen at a slant", tilted),
        poor,
    ])
}

pub(crate) fn run(arguments: &DemoArguments, context: &Context) -> Outcome {
    let folder = &arguments.folder;
    let failed = |e: std::io::Error| Failure::work(format!("{}: {e}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut clock = Clock::start(&context.processor.cpu);
    let mut outcomes = Vec::new();
    let scenes = scenes(arguments.seed)?;
    context.say(&format!(
        "{:<8}{:<6}{:>12}{:>9}{:>9}{:>14}{:>14}{:>10}",
        "scene", "", "features", "matches", "inliers", "right to 3 px", "corner error", "ms"
    ))?;
    for (i, scene) in scenes.iter().enumerate() {
        context.progress.say(&format!("drawing {}", scene.title));
        let rendered = Scene::<u8>::render(&scene.options, &context.processor.cpu)?;
        let pair = [rendered.reference, rendered.moving].map(AnyImage::U8);
        for (image, which) in pair.iter().zip(["a", "b"]) {
            image::write(folder.join(format!("{}-{which}.png", scene.name)), image)?;
        }
        for (name, detector) in detectors() {
            let found = clock.time(Part::Compute, || Tied::of(&pair, &detector, context))?;
            clock.time(Part::Write, || found.draw(&pair, &folder.join(scene.name), name))?;
            let scores = Scores::of(&found.features, &found.tie, &rendered.moving_from_reference)?;
            let features = [found.features[0].len(), found.features[1].len()];
            let outcome = Score {
                scene: scene.name,
                detector: name,
                features,
                tie: found.tie,
                scores,
                seconds: found.seconds,
            };
            context.say(&outcome.line())?;
            outcomes.push(outcome);
        }
        if i == 0 {
            filters(&pair[0], folder, context)?;
        }
    }
    let depth = clock.time(Part::Compute, || stereo::run(folder, arguments.seed, context))?;
    context.say(&depth.line())?;
    let page = page::html(&scenes, &outcomes, &depth, &context.processor.cpu);
    let path = folder.join("index.html");
    tiepoint::files::write_atomically(&path, |out| std::io::Write::write_all(out, page.as_bytes()))?;
    context.say(&format!("open {}", path.display()))?;
    context.report(|| {
        json!({
            "page": path.display().to_string(),
            "scenes": outcomes.iter().map(Score::describe).collect::<Vec<_>>(),
            "stereo": depth.describe(),
            "seconds": clock.seconds(&context.processor.cpu),
        })
    })
}

fn detectors() -> [(&'static str, Detector); 2] {
    [("sift", Detector::Sift(SiftOptions::default())), ("surf", Detector::Surf(SurfOptions::default()))]
}

impl Score {
    fn line(&self) -> String {
        let name = if self.detector == "sift" { self.scene } else { "" };
        let features = format!("{}, {}", self.features[0], self.features[1]);
        format!(
            "{name:<8}{:<6}{features:>12}{:>9}{:>9}{:>12.1} %{:>11.3} px{:>10.1}",
            self.detector,
            self.tie.matches.len(),
            self.tie.inliers.len(),
            self.scores.matching_accuracy[2] * 100.0,
            self.scores.corner_error,
            self.seconds * 1e3,
        )
    }

    /// For programs.
    fn describe(&self) -> Value {
        json!({
            "scene": self.scene,
            "detector": self.detector,
            "features": self.features,
            "matches": self.tie.matches.len(),
            "inliers": self.tie.inliers.len(),
            "matching_accuracy_3px": self.scores.matching_accuracy[2],
            "corner_error": self.scores.corner_error,
            "compute_seconds": self.seconds,
        })
    }
}

/// Features of both images and what ties them together; A is the reference.
#[derive(Debug)]
struct Tied {
    features: [Features; 2],
    tie: TiePoints,
    /// B on the pixels of A.
    warped: Warped,
    seconds: f64,
}

impl Tied {
    fn of([a, b]: &[AnyImage; 2], detector: &Detector, context: &Context) -> Outcome<Self> {
        let start = std::time::Instant::now();
        let processor = &context.processor;
        let features = [detector.detect(a, None, processor)?, detector.detect(b, None, processor)?];
        let tie = tie_points(&features[0], &features[1], &TieOptions::default(), processor)?;
        let a_from_b = tie.b_from_a.and_then(|model| model.inverse());
        let a_from_b = a_from_b.ok_or_else(|| Failure::work("the model has no inverse"))?;
        let warped = warp_onto(b.view(), a.size(), &a_from_b, &WarpOptions::default(), processor)?;
        let seconds = start.elapsed().as_secs_f64();
        Ok(Self { features, tie, warped, seconds })
    }

    /// Pictures of the keypoints, of the matches, and of B warped onto A.
    fn draw(&self, [a, b]: &[AnyImage; 2], stem: &Path, detector: &str) -> Outcome {
        let file = |what: &str| format!("{}-{detector}-{what}.png", stem.display());
        let mut canvas = Canvas::of(a)?;
        canvas.fade(1.0, 0.75);
        let strongest = &self.features[0].keypoints[..self.features[0].len().min(400)];
        keypoints(&mut canvas, strongest);
        image::write(file("features"), &canvas.into_image())?;
        let ties = lines(&self.features[0], &self.features[1], &self.tie);
        // Enough to see the motion, few enough to follow a line.
        let step = (ties.len() / 100).max(1);
        let some: Vec<_> = ties.into_iter().step_by(step).collect();
        let matches = side_by_side(Canvas::of(a)?, Canvas::of(b)?, &some)?;
        image::write(file("matches"), &matches.into_image())?;
        let Warped { image, covered } = &self.warped;
        for (what, blend) in [("checker", Blend::Checker), ("anaglyph", Blend::Anaglyph)] {
            let picture = overlay(Canvas::of(a)?, &Canvas::of(image)?, covered, blend);
            image::write(file(what), &picture.into_image())?;
        }
        Ok(())
    }
}

/// The filters on one image.
fn filters(image: &AnyImage, folder: &Path, context: &Context) -> Outcome {
    let (image, processor) = (image.view(), &context.processor);
    let smooth = any::gauss(image, &GaussOptions::sigma(4.0), processor)?;
    let edges = any::sobel(image, Gradient::Magnitude, &SobelOptions::default(), processor)?;
    let blobs = magnitude(any::hessian(image, &HessianOptions::default(), processor)?);
    for (name, result) in [("gauss", smooth), ("sobel", edges), ("hessian", AnyImage::F32(blobs))] {
        image::write(folder.join(format!("filter-{name}.png")), &result)?;
    }
    Ok(())
}
