//! `tiepoint stereo`: disparities of rectified pairs.

mod pairs;

use super::report::{self, file_name};
use crate::arguments::report::check_page;
use crate::arguments::stereo::StereoArguments;
use crate::context::Context;
use crate::draw::{disparity, usual_range};
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::output::{self, Clock, Part};
use pairs::Pair;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tiepoint::geometry::calibration::RectifiedCalibration;
use tiepoint::image::{self, AnyImage, Image, Pixel, Range, ReadOptions};
use tiepoint::options::Named;
use tiepoint::stereo::cloud::{CloudOptions, write_ply};
use tiepoint::stereo::depth::depth;
use tiepoint::stereo::files::{self, DisparityFormat};
use tiepoint::stereo::{Masks, Stereo, StereoOptions, StereoResult};
use tiepoint_report::{DisparityView, Picture, View};

pub(crate) fn run(arguments: &StereoArguments, context: &Context) -> Outcome {
    let calibration = arguments.calibration.as_deref().map(RectifiedCalibration::read).transpose()?;
    let mut options = arguments.search.options(calibration.and_then(|c| c.range))?;
    options.right = arguments.output_right.is_some();
    options.confidence = arguments.confidence.is_some() || arguments.report.wanted();
    options.reasons = arguments.report.wanted();
    let pairs = pairs::pairs(&arguments.images, arguments.list.as_deref())?;
    let jobs = jobs(arguments, &pairs)?;
    check_paths(arguments, &jobs, &options)?;
    let results = ResultOptions::of(arguments, calibration)?;
    let stereo = Stereo::new(options)?;
    let mut failed = 0;
    for (i, job) in jobs.iter().enumerate() {
        let (left, right) = (job.pair.left.display(), job.pair.right.display());
        context.progress.say(&format!("{}/{} {left} {right}", i + 1, jobs.len()));
        match job.run(arguments, &results, &stereo, context) {
            Ok(()) => {}
            // One bad pair does not stop the others.
            Err(failure @ Failure::Work(_)) if jobs.len() > 1 => {
                context.complain(&failure);
                failed += 1;
            }
            Err(other) => return Err(other),
        }
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure::work(format!("{failed} of {} pairs failed", jobs.len()))),
    }
}

/// One pair and where its results go.
#[derive(Debug)]
struct Job<'a> {
    pair: &'a Pair,
    output: Option<PathBuf>,
    right: Option<PathBuf>,
    confidence: Option<PathBuf>,
    preview: Option<PathBuf>,
    depth: Option<PathBuf>,
    cloud: Option<PathBuf>,
    report: Option<PathBuf>,
}

/// What the results of every pair look like.
#[derive(Debug)]
struct ResultOptions {
    colours: Range,
    calibration: Option<RectifiedCalibration>,
    cloud: CloudOptions,
}

impl ResultOptions {
    fn of(arguments: &StereoArguments, calibration: Option<RectifiedCalibration>) -> Outcome<Self> {
        let needs_depth = arguments.depth.is_some() || arguments.cloud.is_some();
        if let Some(calibration) = calibration.filter(|_| needs_depth) {
            calibration.check_metric().map_err(|e| Failure::usage(format!("--depth, --cloud: {e}")))?;
        }
        Ok(Self { colours: arguments.preview_range, calibration, cloud: arguments.cloud_options()? })
    }
}

fn jobs<'a>(arguments: &StereoArguments, pairs: &'a [Pair]) -> Outcome<Vec<Job<'a>>> {
    let paths = |given: &Option<String>, extension| -> Outcome<Vec<Option<PathBuf>>> {
        match given {
            Some(given) => Ok(pairs::paths(given, pairs, extension)?.into_iter().map(Some).collect()),
            None => Ok(vec![None; pairs.len()]),
        }
    };
    let mut outputs = pairs::outputs(arguments.output.as_deref(), pairs)?;
    let mut rights = paths(&arguments.output_right, "pfm")?;
    let mut confidences = paths(&arguments.confidence, "tif")?;
    let mut previews = paths(&arguments.preview, "png")?;
    let mut depths = paths(&arguments.depth, "tif")?;
    let mut clouds = paths(&arguments.cloud, "ply")?;
    let mut reports = paths(&report_pattern(arguments)?, "html")?;
    let take = |(i, pair): (usize, &'a Pair)| Job {
        pair,
        output: outputs[i].take(),
        right: rights[i].take(),
        confidence: confidences[i].take(),
        preview: previews[i].take(),
        depth: depths[i].take(),
        cloud: clouds[i].take(),
        report: reports[i].take(),
    };
    Ok(pairs.iter().enumerate().map(take).collect())
}

/// Where reports go, as the other results are named.
fn report_pattern(arguments: &StereoArguments) -> Outcome<Option<String>> {
    let Some(path) = &arguments.report.report else { return Ok(None) };
    let text =
        path.to_str().ok_or_else(|| Failure::usage(format!("{}: the name is no text", path.display())));
    text.map(|text| Some(text.to_owned()))
}

/// Fails now where a result could not be written later, or would replace an input.
fn check_paths(arguments: &StereoArguments, jobs: &[Job<'_>], options: &StereoOptions) -> Outcome {
    for job in jobs {
        job.check(options)?;
        job.paths().try_for_each(|path| output::check_folder(path))?;
    }
    let masks = [&arguments.mask, &arguments.mask_right];
    let inputs = jobs.iter().flat_map(|job| {
        let images = [&job.pair.left, &job.pair.right];
        let masks = images.into_iter().zip(masks).filter_map(|(image, mask)| mask_of(mask.as_deref(), image));
        images.map(PathBuf::clone).into_iter().chain(masks)
    });
    let files = output::Files::default().reads(inputs).reads(&arguments.calibration).reads(&arguments.list);
    files.writes(jobs.iter().flat_map(Job::paths)).check()
}

/// The file of an image's mask.
fn mask_of(mask: Option<&str>, image: &Path) -> Option<PathBuf> {
    mask.map(|m| PathBuf::from(output::fill(m, image)))
}

impl Job<'_> {
    fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        let pictures = [&self.output, &self.right, &self.confidence, &self.preview];
        pictures.into_iter().chain([&self.depth, &self.cloud, &self.report]).flatten()
    }

    /// Fails where a format cannot hold what it is to hold.
    fn check(&self, options: &StereoOptions) -> Outcome {
        let wrong = |e: tiepoint::Error| Failure::usage(e.to_string());
        for path in self.output.iter().chain(&self.right) {
            let format = DisparityFormat::of(path).map_err(wrong)?;
            format.check_range(path, options.min_disparity, options.disparities).map_err(wrong)?;
        }
        if let Some(path) = &self.depth
            && DisparityFormat::of(path).map_err(wrong)? == DisparityFormat::Png
        {
            return Err(Failure::usage(format!("{}: depth is written as .pfm or .tif", path.display())));
        }
        let ply = |path: &&PathBuf| path.extension().is_some_and(|e| e.eq_ignore_ascii_case("ply"));
        if let Some(path) = self.cloud.as_ref().filter(|path| !ply(path)) {
            return Err(Failure::usage(format!("{}: points are written as .ply", path.display())));
        }
        self.report.as_deref().map_or(Ok(()), check_page)?;
        self.confidence.iter().chain(&self.preview).try_for_each(|p| output::check_image(p))
    }

    fn run(
        &self,
        arguments: &StereoArguments,
        results: &ResultOptions,
        stereo: &Stereo,
        context: &Context,
    ) -> Outcome {
        let cpu = &context.processor.cpu;
        let mut clock = Clock::start(cpu);
        let Pair { left, right, .. } = self.pair;
        let read = |path: &Path, mask: Option<&str>| read(path, mask, arguments.no_data, context);
        let a = clock.time(Part::Read, || read(left, arguments.mask.as_deref()))?;
        let b = clock.time(Part::Read, || read(right, arguments.mask_right.as_deref()))?;
        if let Some(size) = results.calibration.and_then(|c| c.size).filter(|s| *s != a.image.size()) {
            let (left, found) = (left.display(), a.image.size());
            return Err(Failure::work(format!("{left} is {found}, but the calibration is for {size}")));
        }
        let [left_mask, right_mask] = [&a, &b].map(|side| side.mask.as_ref().map(Image::view));
        let masks = Masks { left: left_mask, right: right_mask };
        let found = clock.time(Part::Compute, || {
            stereo.compute((&a.image).into(), (&b.image).into(), masks, &context.processor)
        });
        let found =
            found.map_err(|e| Failure::from(e).about(format!("{} {}", left.display(), right.display())))?;
        let points = clock.time(Part::Write, || self.write(&found, results, context))?;
        let size = found.disparity.size();
        let valid = found.disparity.data().iter().filter(|d| d.is_finite()).count();
        let valid = valid as f64 / size.area().max(1) as f64;
        let options = stereo.options();
        let (least, count) = (options.min_disparity, options.disparities);
        context.say(&format!(
            "{} {}: {size}, disparities {least} to {}, {:.1} % valid, {:.1} ms",
            left.display(),
            right.display(),
            i64::from(least) + count as i64 - 1,
            valid * 100.0,
            clock.compute() * 1e3
        ))?;
        let described = {
            let pair = json!({
                "left": left.display().to_string(),
                "right": right.display().to_string(),
                "width": size.width,
                "height": size.height,
                "disparities": count,
                "min_disparity": least,
                "valid": valid,
            });
            let points = points.map_or(json!({}), |n| json!({ "points": n }));
            let options = json!({
                "cost": options.cost.name(),
                "paths": options.paths.count(),
                "device": context.device(),
                "threads": cpu.threads(),
            });
            output::joined([pair, points, options])
        };
        if let Some(path) = &self.report {
            let sides = [&a, &b];
            let written = clock.clone();
            clock.time(Part::Write, || {
                self.write_report(path, arguments, results, (sides, &found), &described, &written)
            })?;
        }
        let seconds = json!({ "seconds": clock.seconds(cpu) });
        context.report(|| output::joined([described, seconds]))
    }

    /// The page of the pair.
    fn write_report(
        &self,
        path: &Path,
        arguments: &StereoArguments,
        results: &ResultOptions,
        ([left, right], found): ([&Side; 2], &StereoResult),
        described: &Value,
        clock: &Clock,
    ) -> Outcome {
        let names = [&self.pair.left, &self.pair.right].map(|path| file_name(path));
        let truth = arguments.truth.as_ref().map(|truth| PathBuf::from(output::fill(truth, &self.pair.left)));
        let reading = arguments.truth_reading()?;
        let truth = truth.map(|truth| files::read(&truth, &reading)).transpose()?;
        let title = format!("{} and {}: disparities", names[0], names[1]);
        let valid = described["valid"].as_f64().unwrap_or(0.0) * 100.0;
        let [first, second] = names;
        let view = DisparityView {
            pair: Some([Picture::new(first, &left.image), Picture::new(second, &right.image)]),
            disparity: found.disparity.view(),
            confidence: found.confidence.as_ref().map(Image::view),
            reasons: found.reasons.as_ref().map(Image::view),
            truth: truth.as_ref().map(Image::view),
            // An affine pair has no depth to show.
            calibration: results.calibration.filter(|c| c.check_metric().is_ok()),
            range: usual_range(&found.disparity),
            caption: String::new(),
        };
        let size = found.disparity.size();
        let section = report::section("Disparities", View::Disparity(view))
            .tile("size", size.to_string())
            .tile("disparities searched", described["disparities"].to_string())
            .tile("valid", format!("{valid:.1} %"))
            .tile("computed in", format!("{:.0} ms", clock.compute() * 1e3))
            .figures(described.clone());
        let lead =
            format!("{valid:.1} % of the pixels have a disparity; the view says why the others have none.");
        report::write_to(path, arguments.report.limit(), (title, lead, vec![section]))
    }

    /// Writes all that was asked for; gives the number of points of a cloud.
    fn write(
        &self,
        found: &StereoResult,
        results: &ResultOptions,
        context: &Context,
    ) -> Outcome<Option<u64>> {
        if let Some(path) = &self.output {
            files::write(path, found.disparity.view())?;
        }
        if let Some((path, right)) = self.right.as_ref().zip(found.right.as_ref()) {
            files::write(path, right.view())?;
        }
        if let Some((path, confidence)) = self.confidence.as_ref().zip(found.confidence.as_ref()) {
            image::write(path, confidence)?;
        }
        if let Some(path) = &self.preview {
            let range = match results.colours {
                Range::Between(low, high) => [low, high],
                Range::Auto => usual_range(&found.disparity),
            };
            image::write(path, &disparity(&found.disparity, range)?.into_image())?;
        }
        let Some(calibration) = &results.calibration else { return Ok(None) };
        if let Some(path) = &self.depth {
            let depth = depth(found.disparity.view(), calibration, &context.processor.cpu)?;
            files::write(path, depth.view())?;
        }
        let Some(path) = &self.cloud else { return Ok(None) };
        // Read again: nothing else needs the colours.
        let colours = image::read(&self.pair.left, &ReadOptions::default())?;
        Ok(Some(write_ply(path, found.disparity.view(), (&colours).into(), calibration, &results.cloud)?))
    }
}

/// An image, and where it holds data if not everywhere.
#[derive(Debug)]
struct Side {
    image: AnyImage,
    mask: Option<Image<u8>>,
}

fn read(path: &Path, mask: Option<&str>, no_data: Option<f32>, context: &Context) -> Outcome<Side> {
    let image = image::read(path, &ReadOptions::default())?;
    let mask = mask_of(mask, path)
        .map(|m| input::read_mask(&m, image.size(), &context.processor.cpu))
        .transpose()?;
    let holes = no_data.map(|value| match &image {
        AnyImage::U8(i) => holding(i, value),
        AnyImage::U16(i) => holding(i, value),
        AnyImage::F32(i) => holding(i, value),
    });
    let transparent = image::alpha_mask(&image);
    let mask = [holes, transparent].into_iter().fold(mask, input::both);
    Ok(Side { image, mask })
}

/// 0 where all channels are `no_data`, 255 elsewhere.
fn holding<T: Pixel>(image: &Image<T>, no_data: f32) -> Image<u8> {
    let n = image.channels();
    let pixel = |x: usize, y: usize| &image.row(y)[x * n..(x + 1) * n];
    Image::from_fn(image.size(), |x, y| 255 * u8::from(pixel(x, y).iter().any(|v| v.to_f32() != no_data)))
}
