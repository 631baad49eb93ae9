//! `tiepoint demo`: everything on photographs and synthetic scenes, and a page that shows the results.

mod aerial;
mod photographs;
mod sensors;
mod stereo;

use super::evaluate::Scores;
use super::filter::magnitude;
use super::matched_pair::MatchedPair;
use super::report::{self, matches_view};
use crate::arguments::demo::DemoArguments;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output::{Clock, Part};
use photographs::{Bookshelf, Coffee};
use serde_json::{Value, json};
use std::path::Path;
use tiepoint::feature::{Detector, Features, sift::SiftOptions, surf::SurfOptions};
use tiepoint::filter::any::{self, Gradient};
use tiepoint::filter::gauss::GaussOptions;
use tiepoint::filter::hessian::HessianOptions;
use tiepoint::geometry::Homography;
use tiepoint::image::{self, AnyImage, Border, Image, Size};
use tiepoint::options::Named;
use tiepoint::register::{TieOptions, TiePoints};
use tiepoint::synth::{Photometry, Scene, SceneOptions, viewpoint};
use tiepoint_report::{DEFAULT_LIMIT, MatchesView, Rgb, Section, View, colour_at, counted};

#[derive(Clone, Copy, Debug)]
struct DemoScene {
    /// Its part of file names.
    name: &'static str,
    title: &'static str,
    options: SceneOptions,
}

/// The result of one detector on one scene.
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

/// The name of the scene whose matches the page shows.
const SHOWN: &str = "tilted";

fn scenes(seed: u64) -> Outcome<[DemoScene; 3]> {
    let plain = SceneOptions::default().with_size(SIZE).with_seed(seed);
    let scene = |name, title, view| {
        let options = plain.with_moving_from_reference(view);
        DemoScene { name, title, options }
    };
    let turned = viewpoint(SIZE, 0.61, 1.3, [0.0; 2], [20.0, -15.0])?;
    let tilted = viewpoint(SIZE, -0.15, 0.95, [0.35, 0.1], [-10.0, 8.0])?;
    let poor = viewpoint(SIZE, 0.12, 0.85, [0.05, -0.1], [30.0, 12.0])?;
    let dim = Photometry::default().with_gain(0.45).with_bias(0.05);
    let mut poor = scene("poor", "Dark, blurred and noisy", poor);
    poor.options = poor.options.with_blur(1.5).with_noise(0.03).with_moving(dim).with_seed(seed + 1);
    Ok([
        scene("turned", "Turned by 35° and nearer", turned),
        scene("tilted", "Seen at a slant", tilted),
        poor,
    ])
}

pub(crate) fn run(arguments: &DemoArguments, context: &Context) -> Outcome {
    if let Some(photographs) = arguments.aerial {
        return aerial::run(photographs.into(), arguments, context);
    }
    let folder = &arguments.folder;
    std::fs::create_dir_all(folder).map_err(|e| Failure::work(format!("{}: {e}", folder.display())))?;
    photographs::check_folder(folder)?;
    let mut clock = Clock::start(&context.processor.cpu);
    let bookshelf = Bookshelf::compute(folder, context)?;
    let coffee = Coffee::compute(folder, context)?;
    let (mut outcomes, mut shown) = (Vec::new(), None);
    let scenes = scenes(arguments.seed)?;
    context.say(&format!(
        "{:<8}{:<6}{:>12}{:>9}{:>9}{:>21}{:>14}{:>10}",
        "scene", "", "features", "matches", "inliers", "correct within 3 px", "corner error", "ms"
    ));
    for (i, scene) in scenes.iter().enumerate() {
        context.progress.say(&format!("drawing {}", scene.title));
        let rendered = Scene::<u8>::render(&scene.options, &context.processor.cpu)?;
        let pair = [rendered.reference, rendered.moving].map(AnyImage::U8);
        for (image, which) in pair.iter().zip(["a", "b"]) {
            image::write(folder.join(format!("{}-{which}.png", scene.name)), image)?;
        }
        for detector in [Detector::Sift(SiftOptions::default()), Detector::Surf(SurfOptions::default())] {
            let name = detector.kind().name();
            let before = clock.compute();
            let options = TieOptions::default();
            let mut found = photographs::matched(pair.clone(), &detector, &options, context, &mut clock)?;
            let seconds = clock.compute() - before;
            let scores = Scores::of(&found, &rendered.moving_from_reference)?;
            let features = found.features.each_ref().map(Features::len);
            let tie = found.tie.clone();
            let outcome = Score { scene: scene.name, detector: name, features, tie, scores, seconds };
            context.say(&outcome.line());
            outcomes.push(outcome);
            if (scene.name, name) == (SHOWN, "sift") {
                for picture in &mut found.pictures {
                    *picture = crate::input::Picture::of(tinted(picture.grey()), picture.grey().clone());
                }
                shown = Some((found, rendered.moving_from_reference));
            }
        }
        if i == 0 {
            filters(&pair[0], folder, context)?;
        }
    }
    let sensors = sensors::run(folder, arguments.seed, context)?;
    let depth = clock.time(Part::Compute, || stereo::run(folder, arguments.seed, context))?;
    context.say(&depth.line());
    let path = folder.join("index.html");
    let mut sections = bookshelf.sections();
    sections.push(coffee.section());
    sections.extend(shown.as_ref().map(|(pair, truth)| scored(&scenes, &outcomes, pair, *truth)));
    sections.push(sensors::section(&sensors));
    sections.push(depth.section());
    let cpu = &context.processor.cpu;
    let lead = format!(
        "What corresponds in two pictures, how sure that is, and how deep the scene is. Computed on {} threads ({}).",
        cpu.threads(),
        cpu.level_name()
    );
    let title = "Two pictures of the same thing".to_owned();
    clock.time(Part::Write, || report::write_to(&path, DEFAULT_LIMIT, (title, lead, sections)))?;
    context.say(&format!("open {}", path.display()));
    context.report(|| {
        json!({
            "page": path.display().to_string(),
            "scenes": outcomes.iter().map(Score::describe).collect::<Vec<_>>(),
            "sensors": sensors.iter().map(sensors::Seen::describe).collect::<Vec<_>>(),
            "stereo": depth.describe(),
            "seconds": clock.seconds(&context.processor.cpu),
        })
    });
    Ok(())
}

impl Score {
    fn line(&self) -> String {
        let name = if self.detector == "sift" { self.scene } else { "" };
        let features = format!("{}, {}", self.features[0], self.features[1]);
        format!(
            "{name:<8}{:<6}{features:>12}{:>9}{:>9}{:>19.1} %{:>11.3} px{:>10.1}",
            self.detector,
            self.tie.matches.len(),
            self.tie.inliers.len(),
            self.scores.matching_accuracy[2] * 100.0,
            self.scores.corner_error,
            self.seconds * 1e3,
        )
    }

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

fn table(outcomes: &[Score]) -> Vec<Vec<String>> {
    let head = [
        "scene",
        "detector",
        "features",
        "matches",
        "inliers",
        "correct within 3 px",
        "position",
        "corner error",
        "time",
    ];
    let row = |s: &Score| {
        vec![
            s.scene.to_owned(),
            s.detector.to_owned(),
            s.features.map(counted).join(" and "),
            counted(s.tie.matches.len()),
            counted(s.tie.inliers.len()),
            format!("{:.1} %", s.scores.matching_accuracy[2] * 100.0),
            format!("{:.2} px", s.scores.position.rms),
            format!("{:.3} px", s.scores.corner_error),
            format!("{:.0} ms", s.seconds * 1e3),
        ]
    };
    std::iter::once(head.map(str::to_owned).to_vec()).chain(outcomes.iter().map(row)).collect()
}

/// The section of the page about scenes drawn by formula: their scores against the truth, and the SIFT matches of one.
fn scored<'a>(
    scenes: &[DemoScene],
    outcomes: &[Score],
    shown: &'a MatchedPair,
    truth: Homography,
) -> Section<'a> {
    let names = ["a", "b"].map(|which| format!("{SHOWN}-{which}.png"));
    let view = MatchesView { truth: Some(truth), ..matches_view(shown, names) };
    let titles: Vec<_> = scenes.iter().map(|s| format!("{}: {}", s.name, s.title.to_lowercase())).collect();
    Section::new("Scored against the truth")
        .text(
            "Pictures of one plane, drawn by formula, so that the homography between them is known exactly. What was \
             found is scored by it: the share of matches that end within 3 pixels of the true place, how far right \
             matches are from it, and how far the found homography sends the corners of the picture from where they \
             belong. Nothing was tuned to these scenes: all options are defaults.",
        )
        .text(format!("The scenes: {}.", titles.join("; ")))
        .view(View::Matches(view))
        .table(table(outcomes))
}

/// The picture in shades of brown, clay and sand, on which blue, green and yellow marks stand out.
fn tinted(image: &AnyImage) -> AnyImage {
    const STOPS: [Rgb; 5] = [[30, 18, 24], [104, 44, 40], [178, 98, 62], [226, 172, 120], [255, 240, 222]];
    let AnyImage::U8(grey) = image else { return image.clone() };
    let mut out = Image::filled(grey.size(), 3, 0);
    for (pixel, v) in out.data_mut().chunks_exact_mut(3).zip(grey.data()) {
        pixel.copy_from_slice(&colour_at(&STOPS, f32::from(*v) / 255.0));
    }
    out.into()
}

/// Applies the filters to one image and writes the results.
fn filters(image: &AnyImage, folder: &Path, context: &Context) -> Outcome {
    let (image, processor) = (image.view(), &context.processor);
    let smooth = any::gauss(image, &GaussOptions::sigma(4.0), processor)?;
    let edges = any::sobel(image, Gradient::Magnitude, Border::Clamp, processor)?;
    let blobs = magnitude(any::hessian(image, &HessianOptions::default(), processor)?.into_host()?);
    for (name, result) in [("gauss", smooth.into_host()?), ("sobel", edges.into_host()?), ("hessian", blobs)]
    {
        image::write(folder.join(format!("filter-{name}.png")), &result)?;
    }
    Ok(())
}
