//! `tiepoint bench`: the time of every stage, on images or on a synthetic scene.

use crate::arguments::bench::BenchArguments;
use crate::context::Context;
use crate::failure::Outcome;
use crate::input::{Kept, Reader};
use crate::output::Clock;
use serde_json::{Map, Value, json};
use std::time::Instant;
use tiepoint::device::{Processor, Profile, StageTime};
use tiepoint::feature::{Detector, DetectorKind, sift::SiftOptions, surf::SurfOptions};
use tiepoint::filter::any;
use tiepoint::filter::gauss::GaussOptions;
use tiepoint::image::{AnyImage, Range};
use tiepoint::matching::{MatchOptions, match_features};
use tiepoint::register::{TieOptions, tie_points};
use tiepoint::synth::{Scene, SceneOptions, viewpoint};

pub(crate) fn run(arguments: &BenchArguments, context: &Context) -> Outcome {
    let repeat = usize::from(arguments.repeat);
    // Measures what a call takes when the device is open.
    context.processor.gpu();
    if arguments.images.is_empty() {
        context.progress.say("drawing a synthetic scene");
        let size = arguments.size;
        let view = viewpoint(size, 0.2, 1.1, [0.05, 0.05], [8.0, 5.0])?;
        let options =
            SceneOptions::default().with_size(size).with_moving_from_reference(view).with_noise(0.01);
        let scene = Scene::<u8>::render(&options, &context.processor.cpu)?;
        let pair = [AnyImage::U8(scene.reference), AnyImage::U8(scene.moving)];
        return measure("synthetic scene", &pair[0], Some(&pair[1]), repeat, context);
    }
    for path in &arguments.images {
        let mut clock = Clock::start(&context.processor.cpu);
        let reader = Reader { limits: arguments.limits.options(), cpu: &context.processor.cpu };
        let picture = reader.picture(path, Kept::Grey, None, Range::Auto, &mut clock)?;
        measure(&path.display().to_string(), picture.grey(), None, repeat, context)?;
    }
    Ok(())
}

#[derive(Debug)]
struct Row {
    name: &'static str,
    /// The fastest run.
    seconds: f64,
    /// What was found.
    result: String,
    stages: Vec<StageTime>,
}

/// Times everything on one image, and matching if there is a second one.
fn measure(name: &str, a: &AnyImage, b: Option<&AnyImage>, repeat: usize, context: &Context) -> Outcome {
    let detectors = [
        ("sift", Detector::Sift(SiftOptions::default())),
        ("sift, octave 0", Detector::Sift(SiftOptions::default().with_first_octave(0))),
        ("surf", Detector::Surf(SurfOptions::default())),
    ];
    let mut rows = Vec::new();
    for (name, detector) in detectors {
        context.progress.say(name);
        let (mut row, features) = fastest(name, repeat, context, |p| Ok(detector.detect(a, None, p)?))?;
        row.result = format!("{} features", features.len());
        rows.push(row);
        let Some(b) = b.filter(|_| !name.contains(',')) else { continue };
        let of_b = detector.detect(b, None, &context.processor)?;
        let (plain, verified) = match detector.kind() {
            DetectorKind::Sift => ("match sift", "tie points sift"),
            DetectorKind::Surf => ("match surf", "tie points surf"),
        };
        let options = MatchOptions::default();
        let (mut row, matches) =
            fastest(plain, repeat, context, |p| Ok(match_features(&features, &of_b, &options, p)?))?;
        row.result = format!("{} matches", matches.len());
        rows.push(row);
        let options = TieOptions::default();
        let (mut row, tie) =
            fastest(verified, repeat, context, |p| Ok(tie_points(&features, &of_b, &options, p)?))?;
        row.result = format!("{} inliers", tie.inliers.len());
        rows.push(row);
    }
    for (name, sigma) in [("gauss 1.6", 1.6), ("gauss 5", 5.0)] {
        let options = GaussOptions::sigma(sigma);
        let smooth = |p: &Processor| Ok(any::gauss(a.view(), &options, &p.cpu.clone().into())?);
        rows.push(fastest(name, repeat, context, smooth)?.0);
    }
    print(name, a, &rows, context)
}

/// The fastest of several runs, each with a profile of its own.
fn fastest<R>(
    name: &'static str,
    repeat: usize,
    context: &Context,
    work: impl Fn(&Processor) -> Outcome<R>,
) -> Outcome<(Row, R)> {
    let mut best: Option<(Row, R)> = None;
    for _ in 0..repeat.max(1) {
        let mut processor = context.processor.clone();
        processor.cpu = processor.cpu.profiled();
        let start = Instant::now();
        let result = work(&processor)?;
        let seconds = start.elapsed().as_secs_f64();
        if best.as_ref().is_none_or(|(b, _)| seconds < b.seconds) {
            let stages = processor.cpu.profile().map(Profile::stages).unwrap_or_default();
            best = Some((Row { name, seconds, result: String::new(), stages }, result));
        }
    }
    best.ok_or_else(|| crate::failure::Failure::work("nothing was run"))
}

fn print(name: &str, image: &AnyImage, rows: &[Row], context: &Context) -> Outcome {
    let size = image.size();
    let pixels = size.area() as f64;
    let threads = context.processor.cpu.threads();
    context.say(&format!("{name}, {size}, {threads} threads, {}", context.processor.cpu.level_name()));
    context.say(&format!("  {:<24}{:>10}{:>10}", "", "ms", "ns/pixel"));
    for row in rows {
        let per_pixel = row.seconds * 1e9 / pixels;
        context.say(&format!(
            "  {:<24}{:>10.2}{per_pixel:>10.2}  {}",
            row.name,
            row.seconds * 1e3,
            row.result
        ));
        // A single stage takes as long as the whole.
        for stage in row.stages.iter().filter(|_| row.stages.len() > 1) {
            context.say(&format!("    {:<22}{:>10.2}", stage.name, stage.seconds * 1e3));
        }
    }
    context.report(|| {
        json!({
            "image": name,
            "width": size.width,
            "height": size.height,
            "device": context.take_device(),
            "threads": threads,
            "simd": context.processor.cpu.level_name(),
            "runs": rows.iter().map(describe).collect::<Vec<_>>(),
        })
    });
    Ok(())
}

fn describe(row: &Row) -> Value {
    let stages = row.stages.iter().map(|stage| (stage.name, stage.seconds));
    let seconds = std::iter::once(("total", row.seconds)).chain(stages);
    let seconds: Map<String, Value> = seconds.map(|(name, s)| (name.to_owned(), s.into())).collect();
    json!({ "name": row.name, "result": row.result, "seconds": seconds })
}
