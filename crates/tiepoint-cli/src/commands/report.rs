//! The pages of `--report`, and `tiepoint report`, which compares two of them.

use super::matched_pair::MatchedPair;
use crate::arguments::report::{ComparisonArguments, ReportArguments};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output::{Clock, Files, Part, joined};
use serde_json::{Value, json};
use std::path::Path;
use tiepoint::assess::Cell;
use tiepoint::feature::Features;
use tiepoint::geometry::estimate::residuals;
use tiepoint::image::{AnyImage, Image};
use tiepoint::register::Warped;
use tiepoint::stereo::StereoResult;
use tiepoint_report::{
    Arrow, Comparison, DisparityView, KeypointMatch, MatchesView, PicturePart, RegistrationView, Report,
    Section, counted, lasted, support, usual_range,
};

/// A title, a sentence with the result, and the sections of the page.
pub(crate) type Page<'a> = (String, String, Vec<Section<'a>>);

/// Writes the page if the arguments ask for one.
pub(crate) fn write<'a>(arguments: &ReportArguments, page: impl FnOnce() -> Page<'a>) -> Outcome {
    match &arguments.report {
        Some(path) => write_to(path, arguments.limit(), page()),
        None => Ok(()),
    }
}

/// Ends the work on a pair: writes the page if one is asked for, and prints the JSON object, which is `described` with
/// the times.
pub(crate) fn finish<'a>(
    arguments: &ReportArguments,
    described: &Value,
    mut clock: Clock,
    context: &Context,
    page: impl FnOnce() -> Page<'a>,
) -> Outcome {
    clock.time(Part::Write, || write(arguments, page))?;
    arguments.report.iter().for_each(|path| say_page(path, context));
    let seconds = json!({ "seconds": clock.seconds(&context.processor.cpu) });
    context.report(|| joined([described.clone(), seconds]));
    Ok(())
}

pub(crate) fn say_page(path: &Path, context: &Context) {
    context.say(&format!("report: {}", path.display()));
}

/// Writes a page no larger than `limit` bytes.
pub(crate) fn write_to(path: &Path, limit: usize, (title, lead, sections): Page<'_>) -> Outcome {
    let report = Report::new(title, lead).limit(limit).made(how_made());
    Ok(sections.into_iter().fold(report, Report::section).write(path)?)
}

/// `tiepoint report`: compares two pages.
pub(crate) fn compare(arguments: &ComparisonArguments, context: &Context) -> Outcome {
    let [before, after] = &arguments.compare[..] else {
        return Err(Failure::usage("--compare: expected two pages"));
    };
    Files::default().reads([before, after]).writes([&arguments.output]).check()?;
    let comparison = Comparison::new(before, after)?;
    comparison.report.made(how_made()).write(&arguments.output)?;
    context.say(&comparison.said);
    say_page(&arguments.output, context);
    context.report(|| comparison.described.clone());
    Ok(())
}

/// The command without folders: a page may be sent to others.
pub(crate) fn how_made() -> String {
    let word = |word: std::ffi::OsString| {
        let word = word.to_string_lossy().into_owned();
        // For --flag=/folder/file and for /folder/file.
        let (flag, value) = word.split_once('=').map_or(("", word.as_str()), |(flag, value)| (flag, value));
        let value =
            if Path::new(value).is_absolute() { file_name(Path::new(value)) } else { value.to_owned() };
        let word = if flag.is_empty() { value } else { format!("{flag}={value}") };
        if word.contains(char::is_whitespace) { format!("'{word}'") } else { word }
    };
    let words: Vec<String> = std::env::args_os().skip(1).map(word).collect();
    format!("tiepoint {}", words.join(" "))
}

pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// The verdict and the most important figures about matches.
pub(crate) fn tiles<'a>(section: Section<'a>, pair: &MatchedPair, clock: &Clock) -> Section<'a> {
    let [a, b] = pair.features.each_ref().map(Features::len);
    let section = section
        .tile("features", format!("{} and {}", counted(a), counted(b)))
        .tile("matches", counted(pair.tie.matches.len()));
    let section = match &pair.tie.b_from_a {
        Some(_) => section
            .tile("inliers", counted(pair.tie.inliers.len()))
            .tile("root mean square", format!("{:.2} px", pair.tie.rms_px)),
        None => section,
    };
    section.tile("computed in", lasted(clock.compute())).assessed(pair.assess())
}

pub(crate) fn matches_view(pair: &MatchedPair, [a, b]: [String; 2]) -> MatchesView<'_> {
    MatchesView {
        a: tiepoint_report::Picture::new(a, pair.pictures[0].seen()),
        b: tiepoint_report::Picture::new(b, pair.pictures[1].seen()),
        rows: rows(pair),
        b_from_a: pair.tie.b_from_a,
        truth: None,
        support: support(&pair.features[0]),
        residual_name: None,
        parts: parts(pair, Some),
        caption: String::new(),
    }
}

/// The nine parts of A with what the evidence says of them; `shown` is where a place in A lies in the picture shown.
fn parts(pair: &MatchedPair, shown: impl Fn([f64; 2]) -> Option<[f64; 2]>) -> Vec<PicturePart> {
    let Some(evidence) = &pair.evidence else { return vec![] };
    let size = pair.features[0].image;
    let part = |(i, cell): (usize, &Cell)| {
        let corner = |x: usize, y: usize| {
            let at = [(x, size.width), (y, size.height)].map(|(k, n)| k as f64 / 3.0 * n as f64 - 0.5);
            shown(at)
        };
        let (x, y) = (i % 3, i / 3);
        let corners = [corner(x, y)?, corner(x + 1, y)?, corner(x + 1, y + 1)?, corner(x, y + 1)?];
        let (inliers, residual_px, off_px) = (cell.inliers, cell.residual_px, cell.misfit_px());
        Some(PicturePart { corners, inliers, residual_px, off_px })
    };
    evidence.cells.iter().enumerate().filter_map(part).collect()
}

fn rows(pair: &MatchedPair) -> Vec<KeypointMatch> {
    let ([a, b], pairs) = (&pair.features, pair.correspondences());
    let residuals = match &pair.tie.b_from_a {
        Some(model) => residuals(model, &pairs),
        None => vec![f64::NAN; pairs.len()],
    };
    let flags = residuals.into_iter().zip(pair.agreeing());
    let row = |(m, (residual, inlier)): (&tiepoint::matching::Match, (f64, bool))| KeypointMatch {
        pair: *m,
        a: a.keypoints[m.a as usize],
        b: b.keypoints[m.b as usize],
        residual: residual as f32,
        inlier,
    };
    pair.tie.matches.iter().zip(flags).map(row).collect()
}

/// The view of MOVING on `shown`, which is REFERENCE with its top-left pixel at `at`. The pair is MOVING and REFERENCE,
/// in this order.
pub(crate) fn registration_view<'a>(
    pair: &'a MatchedPair,
    warped: &'a Warped,
    (shown, at): (&'a AnyImage, [f64; 2]),
    [moving, reference]: [String; 2],
) -> RegistrationView<'a> {
    let ends = pair.points();
    let map = pair.tie.b_from_a.and_then(|model| model.homography());
    let arrow = |&i: &usize| {
        let ends = [map.as_ref()?.apply(ends[i].0)?, ends[i].1];
        let [predicted, found] = ends.map(|[x, y]| [(x + at[0]) as f32, (y + at[1]) as f32]);
        Some(Arrow { predicted, found })
    };
    RegistrationView {
        reference: tiepoint_report::Picture::new(reference, shown),
        warped: tiepoint_report::Picture::new(moving, &warped.image),
        covered: warped.covered.view(),
        arrows: pair.tie.inliers.iter().filter_map(arrow).collect(),
        parts: parts(pair, |place| Some(map.as_ref()?.apply(place)?).map(|[x, y]| [x + at[0], y + at[1]])),
        caption: String::new(),
    }
}

/// The view of disparities and of what was found with them, with colours over their usual range.
pub(crate) fn disparity_view(found: &StereoResult) -> DisparityView<'_> {
    DisparityView {
        pair: None,
        disparity: found.disparity.view(),
        confidence: found.confidence.as_ref().map(Image::view),
        reasons: found.reasons.as_ref().map(Image::view),
        truth: None,
        calibration: None,
        range: usual_range(found.disparity.view()),
        caption: String::new(),
    }
}

/// The truth where it is scored, and infinity elsewhere.
pub(crate) fn scored(truth: &Image<f32>, mask: Option<&Image<u8>>) -> Image<f32> {
    Image::from_fn(truth.size(), |x, y| match mask.is_none_or(|m| m.row(y)[x] != 0) {
        true => truth.row(y)[x],
        false => f32::INFINITY,
    })
}
