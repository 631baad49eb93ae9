//! `tiepoint stereo`: disparities of rectified pairs.

mod pairs;
mod ready;
mod sequence;
mod shared;
mod warnings;

use super::report::{self, file_name};
use crate::arguments::report::check_page;
use crate::arguments::stereo::StereoArguments;
use crate::arguments::values::OrAuto;
use crate::context::Context;
use crate::draw::disparity;
use crate::failure::{Failure, Outcome};
use crate::input::Reader;
use crate::output::{self, Clock, Part, Spent, note_world_file};
use pairs::PairFiles;
use ready::{MARGIN, Ready};
use serde_json::{Value, json};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;
use tiepoint::assess::Assessment;
use tiepoint::device::Cpu;
use tiepoint::geometry::calibration::RectifiedCalibration;
use tiepoint::image::{self, Image, Mask, Range, Size};
use tiepoint::options::Named;
use tiepoint::stereo::cloud::{CloudOptions, PlyFormat, bound_of_depth, write_ply};
use tiepoint::stereo::depth::depth;
use tiepoint::stereo::files::{self, DisparityFormat};
use tiepoint::stereo::halving::Side;
use tiepoint::stereo::{StereoOptions, StereoResult};
use tiepoint_report::{DisparityView, Picture, Section, View, lasted};

pub(crate) fn run(arguments: &StereoArguments, context: &Context) -> Outcome {
    let calibration = arguments.calibration.as_deref().map(RectifiedCalibration::read).transpose()?;
    let (mut options, measured) = arguments.options(calibration.and_then(|c| c.range))?;
    options.right = arguments.output_right.is_some();
    options.confidence = arguments.confidence.is_some() || arguments.report.wanted();
    // The verdict is on what was found, not on what was filled in; and a warning tells if ambiguity dropped the most.
    options.reasons = arguments.report.wanted() || options.fill || options.uniqueness > 0;
    let pairs = pairs::pairs(&arguments.images, arguments.list.as_deref())?;
    let jobs = jobs(arguments, &pairs)?;
    check_paths(arguments, &jobs, (!measured).then_some(&options))?;
    let needs_depth = arguments.depth.is_some() || arguments.cloud.is_some();
    if let Some(calibration) = calibration.filter(|_| needs_depth) {
        calibration.check_metric().map_err(|e| Failure::usage(format!("--depth, --cloud: {e}")))?;
    }
    let work = Work { arguments, calibration, options, measured, context };
    match sequence::run(&jobs, &work)? {
        0 => Ok(()),
        failed => Err(Failure::work(format!("{failed} of {} pairs failed", jobs.len()))),
    }
}

/// What is common to the work on all pairs.
#[derive(Clone, Copy, Debug)]
struct Work<'a> {
    arguments: &'a StereoArguments,
    calibration: Option<RectifiedCalibration>,
    options: StereoOptions,
    /// Whether the disparities to search are found from tie points.
    measured: bool,
    context: &'a Context,
}

impl Work<'_> {
    /// The least disparity, if it was given.
    fn least(&self) -> Option<i32> {
        self.arguments.search.has("min_disparity").then_some(self.options.min_disparity)
    }

    /// Whether disparities are written as 16-bit PNG, which holds none below 0.
    fn writes_png(&self) -> bool {
        let mut files = [&self.arguments.output, &self.arguments.output_right].into_iter().flatten();
        files.any(|path| matches!(DisparityFormat::of(path), Ok(DisparityFormat::Png)))
    }

    /// Whether the verdict and the warnings are shown; they need tie points, which take time.
    fn is_judged(&self) -> bool {
        self.arguments.report.wanted() || !self.context.is_silent()
    }
}

/// One pair, and the files of its results.
#[derive(Debug)]
struct PairJob<'a> {
    number: usize,
    pair: &'a PairFiles,
    output: Option<PathBuf>,
    right: Option<PathBuf>,
    confidence: Option<PathBuf>,
    preview: Option<PathBuf>,
    depth: Option<PathBuf>,
    cloud: Option<PathBuf>,
    report: Option<PathBuf>,
}

fn jobs<'a>(arguments: &StereoArguments, pairs: &'a [PairFiles]) -> Outcome<Vec<PairJob<'a>>> {
    let paths = |given: &Option<String>, extension| pairs::paths(given.as_deref(), pairs, extension);
    let mut all = [
        pairs::outputs(arguments.output.as_deref(), pairs)?,
        paths(&arguments.output_right, "pfm")?,
        paths(&arguments.confidence, "tif")?,
        paths(&arguments.preview, "png")?,
        paths(&arguments.depth, "tif")?,
        paths(&arguments.cloud, "ply")?,
        paths(&arguments.report.pattern()?, "html")?,
    ];
    let job = |(i, pair): (usize, &'a PairFiles)| {
        let [output, right, confidence, preview, depth, cloud, report] =
            all.each_mut().map(|paths| paths[i].take());
        PairJob { number: i + 1, pair, output, right, confidence, preview, depth, cloud, report }
    };
    Ok(pairs.iter().enumerate().map(job).collect())
}

/// Fails early if a result could not be written later, or would replace an input, or the truth is missing.
fn check_paths(
    arguments: &StereoArguments,
    jobs: &[PairJob<'_>],
    options: Option<&StereoOptions>,
) -> Outcome {
    for job in jobs {
        job.check()?;
        options.map_or(Ok(()), |options| job.check_range(options, arguments.offsets))?;
    }
    let masks = [&arguments.mask, &arguments.mask_right];
    let inputs = jobs.iter().flat_map(|job| {
        let images = [&job.pair.left, &job.pair.right];
        let masks = images.into_iter().zip(masks).filter_map(|(image, mask)| file_of(mask.as_deref(), image));
        images.map(PathBuf::clone).into_iter().chain(masks).chain(job.truth(arguments))
    });
    // With several pairs, a missing truth fails only its own pair, as a missing mask does.
    for truth in jobs.iter().filter(|_| jobs.len() == 1).filter_map(|job| job.truth(arguments)) {
        std::fs::metadata(&truth).map_err(|e| tiepoint::Error::io(&truth, e))?;
    }
    let files = output::Files::default().reads(inputs).reads(&arguments.calibration).reads(&arguments.list);
    files.writes(jobs.iter().flat_map(PairJob::paths)).check()
}

/// The file that `pattern` names for an image: its mask, or the truth.
fn file_of(pattern: Option<&str>, image: &Path) -> Option<PathBuf> {
    pattern.map(|pattern| output::fill(pattern, image))
}

impl PairJob<'_> {
    fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        let pictures = [&self.output, &self.right, &self.confidence, &self.preview];
        pictures.into_iter().chain([&self.depth, &self.cloud, &self.report]).flatten()
    }

    fn truth(&self, arguments: &StereoArguments) -> Option<PathBuf> {
        file_of(arguments.truth.as_deref(), &self.pair.left)
    }

    /// Fails if a format cannot hold the disparities that are searched.
    fn check_range(&self, options: &StereoOptions, offsets: bool) -> Outcome {
        let of_left = self.output.iter().map(|path| (path, offsets));
        for (path, offsets) in of_left.chain(self.right.iter().map(|path| (path, false))) {
            let format = DisparityFormat::of(path).map_err(Failure::usage)?;
            let least = match offsets {
                true => 1 - options.min_disparity - options.disparities as i32,
                false => options.min_disparity,
            };
            format.check_range(path, least, options.disparities).map_err(Failure::usage)?;
        }
        Ok(())
    }

    /// Fails if the format of a file is not one for its content.
    fn check(&self) -> Outcome {
        let mut maps = self.output.iter().chain(&self.right).chain(&self.depth);
        maps.try_for_each(|path| DisparityFormat::of(path).map(drop).map_err(Failure::usage))?;
        let ply = |path: &&PathBuf| path.extension().is_some_and(|e| e.eq_ignore_ascii_case("ply"));
        if let Some(path) = self.cloud.as_ref().filter(|path| !ply(path)) {
            return Err(Failure::usage(format!("{}: points are written as .ply", path.display())));
        }
        self.report.as_deref().map_or(Ok(()), check_page)?;
        self.confidence.iter().chain(&self.preview).try_for_each(|p| output::check_image(p))
    }

    fn names(&self) -> String {
        format!("{} {}", self.pair.left.display(), self.pair.right.display())
    }

    /// Reads both images, with masks of the pixels that hold data, and makes them ready to be searched.
    fn read(&self, work: &Work<'_>, cpu: &Cpu) -> Outcome<(Ready, Spent)> {
        let mut clock = Clock::start(cpu);
        let (arguments, PairFiles { left, right, .. }) = (work.arguments, self.pair);
        let reader = Reader { limits: arguments.limits.options(), cpu };
        let read = |path: &Path, mask: &Option<String>| -> Outcome<Side> {
            let (image, shown) = reader.image(path)?.into_seen();
            let mask = reader.mask(file_of(mask.as_deref(), path).as_deref(), image.size())?;
            let shown = Mask::from(shown).and(Mask::of_data(&image, arguments.no_data))?;
            let shown = shown.and(Mask::of_finite(&image))?;
            // A pair that is rectified here gets the margin afterwards.
            let shown = if arguments.rectify { shown } else { shown.without_margin(MARGIN, cpu) };
            Ok(Side { mask: mask.and(shown)?.into_image(), image })
        };
        let read_right = || read(right, &arguments.mask_right);
        let [first, second] = clock.time(Part::Read, || match cpu.threads() {
            1 => [read(left, &arguments.mask), read_right()],
            _ => thread::scope(|scope| {
                let right = scope.spawn(read_right);
                [read(left, &arguments.mask), right.join().unwrap_or_else(|panic| resume_unwind(panic))]
            }),
        });
        let sides = [first?, second?];
        let calibration = work.calibration;
        if let Some(size) = calibration.and_then(|c| c.size).filter(|s| *s != sides[0].image.size()) {
            let (left, found) = (left.display(), sides[0].image.size());
            let mut wrong = format!("{left} is {found}, but the calibration is for {size}");
            if reader.limits.orient && found == Size::new(size.height, size.width) {
                wrong += "; if the file turns it by an orientation, --no-orient leaves it as it is stored";
            }
            return Err(Failure::work(wrong));
        }
        let ready = clock.time(Part::Compute, || -> Outcome<Ready> {
            let ready = match arguments.rectify {
                true => Ready::rectified(sides, self.pair, work, cpu)?,
                false => Ready::of(sides, work, cpu)?,
            };
            ready.halved(work, cpu)
        });
        let ready = ready.map_err(|failure| failure.about(self.names()))?;
        // The range was estimated for this pair alone; those of other pairs may fit the format.
        self.check_range(&ready.options, arguments.offsets).map_err(|e| Failure::work(e.to_string()))?;
        Ok((ready, clock.spent(cpu)))
    }

    /// Writes the results that were asked for. `spent` is the time until now.
    fn finish(&self, computed: &Computed, work: &Work<'_>, spent: &Spent) -> Outcome<(Finished, Spent)> {
        let cpu = &Cpu::sequential();
        let mut clock = Clock::start(cpu);
        let found = &computed.found;
        let size = found.disparity.size();
        let truth = self.truth(work.arguments);
        let reading = work.arguments.truth_reading()?;
        let read = |truth| clock.time(Part::Read, || files::read_with_note(truth, &reading));
        let (truth, note) = truth.map(read).transpose()?.unzip();
        let (mut warnings, mut evidence) = clock.time(Part::Compute, || warnings::of(computed, work, cpu))?;
        warnings.extend(
            note.flatten().map(|note| format!("{note}: --truth-signed takes all values as disparities")),
        );
        let valid = evidence.valid as f64 / size.area().max(1) as f64;
        if let Some(truth) = &truth {
            let mask = computed.ready.sides[0].mask.as_ref().map(Image::view);
            evidence = evidence.with_truth(found.disparity.view(), truth.view(), mask)?;
            if evidence.bad.is_none() {
                warnings.push(warnings::UNKNOWN_TRUTH.into());
            }
        }
        // The comparison with the truth comes first: if it fails because the sizes differ, nothing is written.
        let (points, lost) = clock.time(Part::Write, || self.write(computed, work, cpu))?;
        warnings.extend(lost);
        let assessment = evidence.assess().with(computed.ready.assessment());
        let options = &computed.ready.options;
        let pair = json!({
            "left": self.pair.left.display().to_string(),
            "right": self.pair.right.display().to_string(),
            "width": size.width,
            "height": size.height,
            "disparities": options.disparities,
            "min_disparity": options.min_disparity,
            "valid": valid,
            "halvings": computed.ready.halvings,
            "warnings": warnings,
        });
        let rectified = computed.ready.describe();
        let points = points.map_or(json!({}), |n| json!({ "points": n }));
        let searched = json!({
            "cost": options.cost.name(),
            "paths": options.paths.count(),
            "device": computed.device,
            "threads": work.context.processor.cpu.threads(),
        });
        let scores = evidence.bad.map_or(json!({}), |bad| json!({ "bad": bad, "epe": evidence.epe }));
        let described = output::joined([pair, scores, json!(assessment), rectified, points, searched]);
        if let Some(path) = &self.report {
            let results = (truth.as_ref(), assessment.clone(), spent.compute());
            clock.time(Part::Write, || self.write_report(path, work, computed, results, &described))?;
        }
        let (names, least) = (self.names(), i64::from(options.min_disparity));
        let most = least + options.disparities as i64 - 1;
        let valid = valid * 100.0;
        let summary = format!("{names}: {size}, disparities {least} to {most}, {valid:.1} % valid");
        let lines = std::iter::once(assessment.to_string()).chain(computed.ready.about()).collect();
        Ok((Finished { summary, lines, warnings, described }, clock.spent(cpu)))
    }

    fn write_report(
        &self,
        path: &Path,
        work: &Work<'_>,
        computed: &Computed,
        (truth, assessment, seconds): (Option<&Image<f32>>, Assessment, f64),
        described: &Value,
    ) -> Outcome {
        let arguments = work.arguments;
        let Computed { ready: Ready { sides: [left, right], calibration, .. }, found, .. } = computed;
        let names = [&self.pair.left, &self.pair.right].map(|path| file_name(path));
        let title = format!("{} and {}: disparities", names[0], names[1]);
        let valid = described["valid"].as_f64().unwrap_or(0.0) * 100.0;
        let [first, second] = names;
        let view = DisparityView {
            pair: Some([Picture::new(first, &left.image), Picture::new(second, &right.image)]),
            truth: truth.map(Image::view),
            // An affine pair has no depth to show.
            calibration: calibration.filter(|c| c.check_metric().is_ok()),
            ..report::disparity_view(found)
        };
        let size = found.disparity.size();
        let section = Section::new("Disparities")
            .view(View::Disparity(view))
            .tile("size", size.to_string())
            .tile("disparities searched", described["disparities"].to_string())
            .tile("valid", format!("{valid:.1} %"))
            .tile("computed in", lasted(seconds))
            .assessed(Some(assessment));
        let section = match (described["bad"].as_f64(), described["epe"].as_f64()) {
            (Some(bad), Some(epe)) => section
                .tile("off by more than 1 px, or none", format!("{:.1} %", 100.0 * bad))
                .tile("mean error", format!("{epe:.2} px")),
            _ => section,
        };
        let section = section.figures(described.clone());
        let lead =
            format!("{valid:.1} % of the pixels have a disparity; the view says why the others have none.");
        report::write_to(path, arguments.report.limit(), (title, lead, vec![section]))
    }

    /// Writes the results that were asked for. Returns the number of points if a cloud was written, and a warning about
    /// depths that the file does not hold.
    fn write(
        &self,
        computed: &Computed,
        work: &Work<'_>,
        cpu: &Cpu,
    ) -> Outcome<(Option<u64>, Option<String>)> {
        let arguments = work.arguments;
        let Computed { ready, found, .. } = computed;
        let compression = arguments.tiff.compress;
        if let Some(path) = &self.output {
            match arguments.offsets {
                true => files::write(path, offsets(&found.disparity).view(), compression)?,
                false => files::write(path, found.disparity.view(), compression)?,
            }
        }
        if let Some((path, right)) = self.right.as_ref().zip(found.right.as_ref()) {
            files::write(path, right.view(), compression)?;
        }
        if let Some((path, confidence)) = self.confidence.as_ref().zip(found.confidence.as_ref()) {
            image::write_known(path, confidence, &arguments.tiff.known())?;
        }
        if let Some(path) = &self.preview {
            let range = match arguments.preview_range {
                Range::Between(low, high) => [low, high],
                Range::Auto => tiepoint_report::usual_range(found.disparity.view()),
            };
            image::write(path, &disparity(&found.disparity, range)?.into_image())?;
        }
        let maps = [&self.output, &self.right, &self.confidence, &self.preview, &self.depth];
        maps.into_iter().flatten().for_each(|path| note_world_file(path, work.context));
        let Some(calibration) = &ready.calibration else { return Ok((None, None)) };
        let mut warning = None;
        let disparity = found.disparity.view();
        if let Some(path) = &self.depth {
            let (depth, scale) = (depth(disparity, calibration, cpu)?, arguments.depth_scale);
            let lost = files::write_depth(path, depth.view(), scale, compression)?;
            if lost > 0 {
                let (path, most) = (path.display(), 65535.0 / scale);
                warning = Some(format!(
                    "{path}: {lost} depths are not held and 0: a 16-bit PNG holds up to {most} at --depth-scale {scale}; .tif and \
                     .exr hold all"
                ));
            }
        }
        let Some(path) = &self.cloud else { return Ok((None, warning)) };
        let bound = match arguments.max_depth {
            OrAuto::Auto => bound_of_depth(disparity, calibration),
            OrAuto::Given(bound) => bound,
        };
        let format = if arguments.ascii { PlyFormat::Ascii } else { PlyFormat::Binary };
        let options = CloudOptions::default().with_format(format).with_max_depth(bound);
        let colours = (&ready.sides[0].image).into();
        Ok((Some(write_ply(path, disparity, colours, calibration, &options)?), warning))
    }
}

/// The offsets of the left image, minus its disparities: x plus the offset is the place in the right image.
fn offsets(disparity: &Image<f32>) -> Image<f32> {
    let mut offsets = disparity.clone();
    offsets.data_mut().iter_mut().filter(|d| d.is_finite()).for_each(|d| *d = 0.0 - *d);
    offsets
}

/// The result for a pair, and the device that found it.
#[derive(Debug)]
struct Computed {
    ready: Ready,
    found: StereoResult,
    device: String,
}

/// What is printed for a finished pair.
#[derive(Debug)]
struct Finished {
    /// The first line, without the time.
    summary: String,
    /// The verdict, and lines about a pair that was rectified.
    lines: Vec<String>,
    warnings: Vec<String>,
    described: Value,
}
