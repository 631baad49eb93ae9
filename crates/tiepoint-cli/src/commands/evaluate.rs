//! `tiepoint evaluate`: scores against ground truth.

use super::matched_pair::{MatchedPair, PairSearch};
use super::report::{self, file_name};
use crate::arguments::evaluate::{EvaluateArguments, EvaluateDisparity, EvaluateHomography, HomographyFiles};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::input::{Kept, Reader};
use crate::output::{Clock, Part, joined};
use serde_json::{Value, json};
use std::path::Path;
use tiepoint::evaluate::ground_truth::read_homography;
use tiepoint::evaluate::{
    Repeatability, RepeatabilityOptions, angle_error, corner_error, disparity_notes, disparity_score,
    matching_accuracy, non_occluded, position_error, repeatability,
};
use tiepoint::geometry::Homography;
use tiepoint::image::{Image, Size};
use tiepoint::numeric::length;
use tiepoint::stereo::files::{self, DisparityReading};
use tiepoint_report::{DisparityView, MatchesView, Section, View, counted};

pub(crate) fn run(evaluate: &EvaluateArguments, context: &Context) -> Outcome {
    match evaluate {
        EvaluateArguments::Disparity(arguments) => disparity(arguments, context),
        EvaluateArguments::Homography(arguments) => match arguments.files()? {
            HomographyFiles::Images { a, b, truth } => images(arguments, [a, b], truth, context),
            HomographyFiles::Matrices { found, truth, size } => {
                matrices(arguments, [found, truth], size, context)
            }
        },
    }
}

fn matrices(
    arguments: &EvaluateHomography,
    [found, truth]: [&Path; 2],
    size: Size,
    context: &Context,
) -> Outcome {
    let maps = [read_homography(found)?, read_homography(truth)?];
    let error = corner_error(&maps[0], &maps[1], size);
    report::write(&arguments.pair.report, || {
        let title = format!("{} against {}", file_name(found), file_name(truth));
        let (right, bottom) = (size.width as f64 - 1.0, size.height as f64 - 1.0);
        let corners = [[0.0, 0.0], [right, 0.0], [right, bottom], [0.0, bottom]];
        let off = |section: Section<'static>, corner: [f64; 2]| {
            let off = maps[0].apply(corner).zip(maps[1].apply(corner));
            let off = off.map_or(f64::INFINITY, |(p, q)| length([p[0] - q[0], p[1] - q[1]]));
            section.tile(format!("corner {}, {}", corner[0], corner[1]), format!("{off:.3} px"))
        };
        let section = Section::new("How far corners are off").tile("on average", format!("{error:.3} px"));
        let section = corners.into_iter().fold(section, off).figures(json!({ "corner_error": error }));
        (
            title,
            format!("The corners of an image of {size} are off by {error:.3} px on average."),
            vec![section],
        )
    })?;
    context.say(&format!("corner error  {error:.3} px"));
    note_direction(&maps[0], &maps[1], (size, error), context);
    context.report(|| json!({ "corner_error": error }));
    Ok(())
}

/// Prints a note if one matrix seems to map A to B and the other B to A.
fn note_direction(found: &Homography, truth: &Homography, (size, error): (Size, f64), context: &Context) {
    let inverted = found.inverse().map(|found| corner_error(&found, truth, size));
    if let Some(inverted) = inverted.filter(|inverted| 10.0 * inverted < error) {
        context.note(&format!(
            "the inverse of FOUND is only {inverted:.3} px off: one matrix seems to map A to B and the other B to A. \
             `register A B` writes B to A, `match A B` writes A to B"
        ));
    }
}

fn disparity(arguments: &EvaluateDisparity, context: &Context) -> Outcome {
    let (scoring, reading) = (arguments.scoring()?, arguments.truth_reading()?);
    let mut clock = Clock::start(&context.processor.cpu);
    let mut read = |path: &Path, reading: DisparityReading| {
        let (map, note) = clock.time(Part::Read, || files::read_with_note(path, &reading))?;
        note.iter()
            .for_each(|note| context.note(&format!("{note}: --signed takes all values as disparities")));
        Ok::<_, Failure>(map)
    };
    let of_found = reading.with_scale(arguments.found_scale).with_signed(Some(true));
    let found = read(&arguments.found, of_found)?;
    let truth = read(&arguments.truth, reading)?;
    let right = arguments.truth_right.as_deref().map(|path| read(path, reading)).transpose()?;
    let reader = Reader { limits: arguments.limits.options(), cpu: &context.processor.cpu };
    let given = reader.mask(arguments.mask.as_deref(), truth.size())?;
    let seen = clock
        .time(Part::Compute, || right.map(|right| non_occluded(truth.view(), right.view())).transpose())?;
    let mask = given.and(seen)?.into_image();
    let score = clock.time(Part::Compute, || {
        disparity_score(found.view(), truth.view(), mask.as_ref().map(Image::view), &scoring)
    })?;
    for (t, bad) in scoring.thresholds.iter().zip(&score.bad) {
        context.say(&format!("off by more than {t} px  {:.2} %", bad * 100.0));
    }
    let epe = if score.epe.is_nan() { "none".to_owned() } else { format!("{:.3} px", score.epe) };
    context.say(&format!("mean error  {epe}"));
    context.say(&format!("density     {:.2} % of {} pixels", score.density * 100.0, score.pixels));
    disparity_notes(found.view(), truth.view(), &score).iter().for_each(|note| context.note(note));
    let first = |shares: &[f64]| shares.first().copied().unwrap_or(f64::NAN);
    let described = json!({
        "pixels": score.pixels,
        "density": score.density,
        "bad": first(&score.bad),
        "bad_of_valid": first(&score.bad_of_valid),
        "epe": score.epe,
        "thresholds": scoring.thresholds.iter().map(|t| f64::from(*t)).collect::<Vec<_>>(),
        "bad_at": score.bad,
        "device": context.take_device(),
    });
    let truth = report::scored(&truth, mask.as_ref());
    report::finish(&arguments.report, &described, clock, context, || {
        let title = format!("{} against {}", file_name(&arguments.found), file_name(&arguments.truth));
        let view = DisparityView {
            pair: None,
            disparity: found.view(),
            confidence: None,
            reasons: None,
            truth: Some(truth.view()),
            calibration: None,
            range: tiepoint_report::usual_range(truth.view()),
            caption: "The truth is shown where it is scored.".to_owned(),
        };
        let section = Section::new("Disparities").view(View::Disparity(view)).figures(described.clone());
        let bad = scoring.thresholds.iter().zip(&score.bad);
        let section = bad.fold(section, |section, (t, bad)| {
            section.tile(format!("off by more than {t} px"), format!("{:.2} %", bad * 100.0))
        });
        let section =
            section.tile("mean error", epe).tile("density", format!("{:.2} %", score.density * 100.0));
        (title, format!("{} pixels are scored.", counted(score.pixels)), vec![section])
    })
}

/// Scores detector, matching and model on two images against the true homography.
fn images(arguments: &EvaluateHomography, paths: [&Path; 2], truth: &Path, context: &Context) -> Outcome {
    let truth = read_homography(truth)?;
    let search = PairSearch::new(&arguments.pair.detector, &arguments.pair.matching);
    let mut clock = Clock::start(&context.processor.cpu);
    let pair = search.run(paths, [Kept::Grey; 2], &arguments.pair.report, &mut clock, context)?;
    let scores = clock.time(Part::Compute, || Scores::of(&pair, &truth))?;
    scores.lines().iter().for_each(|l| context.say(l));
    if let Some(found) = pair.tie.b_from_a.and_then(|model| model.homography()) {
        note_direction(&found, &truth, (pair.features[0].image, scores.corner_error), context);
    }
    let [a, b] = paths.map(|p| p.display().to_string());
    let described = joined([json!({ "a": a, "b": b }), pair.describe(&search, context), scores.describe()]);
    let before = clock.clone();
    report::finish(&arguments.pair.report, &described, clock, context, || {
        let names = paths.map(file_name);
        let title = format!("{} and {} against the truth", names[0], names[1]);
        let view = report::matches_view(&pair, names);
        let view = MatchesView { truth: Some(truth), ..view };
        let section = scores.tiles(report::tiles(Section::new("Matches"), &pair, &before));
        (title, pair.summary(), vec![section.view(View::Matches(view)).figures(described.clone())])
    })
}

/// All scores of one pair.
#[derive(Debug)]
pub(crate) struct Scores {
    /// At 1, 2 and 3 pixels.
    pub(crate) repeatability: [Repeatability; 3],
    /// At 3 pixels with scales within √2; none where scale and direction of the features are not known.
    pub(crate) scale_repeatability: Option<Repeatability>,
    /// At 1 to 10 pixels.
    pub(crate) matching_accuracy: [f64; 10],
    /// Infinite without a model.
    pub(crate) corner_error: f64,
    pub(crate) position: tiepoint::evaluate::PositionError,
    /// Where directions are known.
    pub(crate) angle: Option<tiepoint::evaluate::AngleError>,
}

impl Scores {
    pub(crate) fn of(pair: &MatchedPair, truth: &Homography) -> Outcome<Self> {
        let ([a, b], tie) = (&pair.features, &pair.tie);
        let sizes = [a.image, b.image];
        let share = |distance, scale_ratio| {
            let options =
                RepeatabilityOptions::default().with_distance(distance).with_scale_ratio(scale_ratio);
            repeatability(&a.keypoints, &b.keypoints, sizes, truth, &options)
        };
        let points = pair.points();
        let inliers = tie.inliers.iter().map(|&i| &tie.matches[i]);
        let angles: Vec<_> = inliers
            .map(|m| (&a.keypoints[m.a as usize], &b.keypoints[m.b as usize]))
            .map(|(p, q)| ([f64::from(p.x), f64::from(p.y)], f64::from(p.angle), f64::from(q.angle)))
            .collect();
        let any = f64::INFINITY;
        // Matches that were given, and places tied by structure, have no scale or direction.
        let has_own = !tie.first.is_empty();
        let found = tie.b_from_a.and_then(|model| model.homography());
        Ok(Self {
            repeatability: [share(1.0, any)?, share(2.0, any)?, share(3.0, any)?],
            scale_repeatability: has_own.then(|| share(3.0, std::f64::consts::SQRT_2)).transpose()?,
            matching_accuracy: matching_accuracy(&points, truth),
            corner_error: found.map_or(any, |found| corner_error(&found, truth, a.image)),
            position: position_error(&points, truth, 3.0),
            angle: has_own.then(|| angle_error(&angles, truth)),
        })
    }

    /// The most important figures.
    pub(crate) fn tiles<'a>(&self, section: Section<'a>) -> Section<'a> {
        section
            .tile("correct within 3 px", format!("{:.1} %", self.matching_accuracy[2] * 100.0))
            .tile("corner error", self.off())
            .tile(
                "localisation error (RMS)",
                match self.position.count {
                    0 => "–".into(),
                    _ => format!("{:.3} px", self.position.rms),
                },
            )
    }

    /// The corner error with its unit.
    fn off(&self) -> String {
        if self.corner_error.is_finite() { format!("{:.3} px", self.corner_error) } else { "no map".into() }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let percent = |v: &[f64]| v.iter().map(|v| format!("{:6.1}", v * 100.0)).collect::<Vec<_>>().join("");
        let repeated = self.repeatability.map(|r| r.share);
        let p = &self.position;
        vec![
            format!("repeatability      {} % at 1, 2, 3 px", percent(&repeated)),
            match &self.scale_repeatability {
                None => "  with like scale  no scale is known".into(),
                Some(of) => format!("  with like scale  {} % at 3 px", percent(&[of.share])),
            },
            format!("matching accuracy  {} % at 1 to 10 px", percent(&self.matching_accuracy)),
            match p.count {
                0 => "position           no match within 3 px".into(),
                _ => format!(
                    "position           {:.3} px rms, {:.3} median, bias ({:.3}, {:.3})",
                    p.rms, p.median, p.bias[0], p.bias[1]
                ),
            },
            match &self.angle {
                None => "angle              no direction is known".into(),
                Some(angle) if angle.count == 0 => "angle              no match within 3 px".into(),
                Some(angle) => format!("angle              {:.2}° median", angle.median.to_degrees()),
            },
            format!("corner error       {}", self.off()),
        ]
    }

    fn describe(&self) -> Value {
        json!({
            "repeatability": self.repeatability.map(|r| r.share),
            "scale_repeatability": self.scale_repeatability.as_ref().map(|of| of.share),
            "matching_accuracy": self.matching_accuracy,
            "corner_error": self.corner_error,
            "position_bias": (self.position.count > 0).then_some(self.position.bias),
            "position_rms": (self.position.count > 0).then_some(self.position.rms),
            "angle_median": self.angle.as_ref().filter(|angle| angle.count > 0).map(|angle| angle.median),
        })
    }
}
