//! `tiepoint detect`: keypoints and descriptors of images.
//!
//! Every image is read, searched, written and reported, in this order. With several threads the next images are read
//! while one is searched. A GPU searches several images of one type and size at once, while the results of earlier
//! images are written. Messages and reports come in the order of the images.

use super::ordered::{AHEAD, Item, MOST_BESIDE, Results};
use super::report::{file_name, say_page, write_to};
use crate::arguments::detect::DetectArguments;
use crate::arguments::detector::DetectorArguments;
use crate::arguments::report::check_page;
use crate::context::Context;
use crate::draw::{Canvas, keypoints};
use crate::failure::{Failure, Outcome};
use crate::input::{self, Kept, Picture, Reader};
use crate::output::{self, Clock, Part, Spent, joined};
use crate::prefetch::{Limits, Prefetcher};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::thread;
use tiepoint::device::Cpu;
use tiepoint::feature::files::{self, FeatureFormat};
use tiepoint::feature::{Detector, Features, Finder};
use tiepoint::image::{self, Image};
use tiepoint::options::Named;
use tiepoint_report::{FeaturesView, Section, View, counted};

pub(crate) fn run(arguments: &DetectArguments, context: &Context) -> Outcome {
    let jobs = jobs(arguments)?;
    let detector = arguments.detector.detector()?;
    match detect(&jobs, &detector, arguments, context)? {
        0 => Ok(()),
        failed => Err(Failure::work(format!("{failed} of {} images failed", jobs.len()))),
    }
}

/// One image, and the files of its results.
struct ImageJob {
    number: usize,
    path: PathBuf,
    output: Option<PathBuf>,
    drawing: Option<PathBuf>,
    page: Option<PathBuf>,
}

/// The images of the command line, after a check that their results can be written.
fn jobs(arguments: &DetectArguments) -> Outcome<Vec<ImageJob>> {
    let images = input::expand(&arguments.images, arguments.list.as_deref())?;
    let paths =
        |given: &Option<String>, extension| output::output_paths(given.as_deref(), &images, extension);
    let (outputs, drawings) = (paths(&arguments.output, "csv")?, paths(&arguments.draw, "png")?);
    let pages = paths(&arguments.report.pattern()?, "html")?;
    pages.iter().flatten().try_for_each(|path| check_page(path))?;
    for path in outputs.iter().flatten() {
        FeatureFormat::of(path).map_err(Failure::usage)?;
    }
    drawings.iter().flatten().try_for_each(|path| output::check_image(path))?;
    let masks = images.iter().filter_map(|image| arguments.detector.mask_of(image));
    let lists = arguments.images.iter().filter_map(|image| image.to_str()?.strip_prefix('@').map(Path::new));
    let lists = lists.chain(arguments.list.as_deref());
    let files = output::Files::default().reads(&images).reads(masks).reads(lists);
    files.writes(outputs.iter().chain(&drawings).chain(&pages).flatten()).check()?;
    let jobs = (1..).zip(images).zip(outputs).zip(drawings).zip(pages);
    let job = |((((number, path), output), drawing), page)| ImageJob { number, path, output, drawing, page };
    Ok(jobs.map(job).collect())
}

/// The most images that a GPU searches at once. All batches have one size, because a GPU keeps memory for one size.
const BATCH: usize = 16;

/// Reads, searches, writes and reports the images; returns how many failed.
fn detect(
    jobs: &[ImageJob],
    detector: &Detector,
    arguments: &DetectArguments,
    context: &Context,
) -> Outcome<usize> {
    let cpu = &context.processor.cpu;
    let (threads, has_gpu) = (cpu.threads().min(MOST_BESIDE), context.processor.may_have_gpu());
    let parallel = threads > 1 && jobs.len() > 1;
    let limits = match has_gpu {
        true => Limits { items: 2 * threads, bytes: AHEAD, batch: threads.min(BATCH) },
        false => Limits { items: threads, bytes: AHEAD, batch: 1 },
    };
    let unwritten = if parallel && has_gpu { threads } else { 0 };
    let read_next = |i: usize| read(&jobs[i], &arguments.detector, &context.reader(parallel));
    let threads_of_all = cpu.threads();
    // The result of an image, for `--json` and its page.
    let describe = |job: &ImageJob, found: &Found| {
        let size = found.features.image;
        json!({
            "image": job.path.display().to_string(),
            "width": size.width,
            "height": size.height,
            "detector": arguments.detector.detector.name(),
            "preset": arguments.detector.preset_name(),
            "features": found.features.len(),
            "device": found.device,
            "threads": threads_of_all,
        })
    };
    let report = |job: &ImageJob, found, spent: &Spent| report(job, found, spent, &describe, context);
    context.processor.expect_pictures(jobs.len());
    let finder = detector.open(&context.processor)?;
    thread::scope(|scope| {
        let scope = Some(scope).filter(|_| parallel);
        let mut images = Prefetcher::new(jobs.len(), &read_next, scope, limits);
        let mut results = Results::new(jobs.len(), scope, context);
        // Features that were reported, whose memory the next ones take.
        let spare = &mut Vec::new();
        loop {
            let batch = images.next_batch(|a, b| match (&a.result, &b.result) {
                (Ok(a), Ok(b)) => together(a, b, &finder, context),
                _ => false,
            });
            let Some(job) = batch.first().map(|item| item.job) else { break };
            context.progress.say(&format!("{}/{} {}", job.number, jobs.len(), job.path.display()));
            let found = search(batch, &finder, context);
            let notes = context.processor.take_notes();
            if !notes.is_empty() {
                // Notes about these images must come after the reports of the images before.
                results.report(0, |job, found, spent| spare.push(report(job, found, spent)))?;
                notes.iter().for_each(|note| context.note(note));
            }
            for item in found {
                results.push(|| {
                    let job = item.job;
                    item.then(|(picture, found)| write(job, &picture, found, arguments, &describe))
                });
            }
            results.report(unwritten, |job, found, spent| spare.push(report(job, found, spent)))?;
            finder.recycle(spare.drain(..));
        }
        results.report(0, |job, found, spent| drop(report(job, found, spent)))?;
        Ok(results.failed)
    })
}

/// Whether a GPU can search two pictures at once: they must have the same type and size, no masks, and not be too
/// large.
fn together(a: &Picture, b: &Picture, finder: &Finder, context: &Context) -> bool {
    let (grey_a, grey_b) = (a.grey(), b.grey());
    let same_type = std::mem::discriminant(grey_a) == std::mem::discriminant(grey_b);
    let alike = same_type && grey_a.size() == grey_b.size() && a.mask.is_none() && b.mask.is_none();
    alike && context.processor.may_have_gpu() && finder.parts() == 1
}

/// The features of an image, and the device that found them.
struct Found {
    features: Features,
    device: String,
    /// Whether the picture is not upright in its file and was not turned.
    stored: bool,
}

/// Reads an image. The stages in its times are those that `cpu` records.
fn read<'a>(job: &'a ImageJob, arguments: &DetectorArguments, cpu: &Cpu) -> Item<'a, ImageJob, Picture> {
    // COLMAP's keypoints are of the pixels as they are stored.
    let format = job.output.as_ref().and_then(|path| FeatureFormat::of(path).ok());
    let stored = format == Some(FeatureFormat::Colmap);
    let limits = arguments.limits.options();
    let reader = Reader { limits: limits.with_orient(limits.orient && !stored), cpu };
    let mut clock = Clock::start(cpu);
    let mask = arguments.mask_of(&job.path);
    let result = reader.picture(
        &job.path,
        if job.drawing.is_some() || job.page.is_some() { Kept::Shown } else { Kept::Grey },
        mask.as_deref(),
        arguments.range,
        &mut clock,
    );
    Item { job, result, spent: clock.spent(cpu) }
}

fn search<'a>(
    batch: Vec<Item<'a, ImageJob, Picture>>,
    finder: &Finder,
    context: &Context,
) -> Vec<Item<'a, ImageJob, (Picture, Found)>> {
    batch.iter().for_each(|item| context.add_stages(&item.spent.stages));
    let pictures: Vec<&Picture> = batch.iter().filter_map(|item| item.result.as_ref().ok()).collect();
    let mut clock = Clock::start(&context.processor.cpu);
    let found = clock.time(Part::Compute, || match pictures[..] {
        // The image could not be read: its item keeps the error of reading, and this error is dropped.
        [] => vec![Err(tiepoint::Error::Cancelled)],
        [picture] => vec![finder.detect(picture.grey(), picture.mask.as_ref().map(Image::view))],
        _ => finder.detect_batch(pictures.iter().map(|picture| picture.grey())),
    });
    let spent = clock.spent(&context.processor.cpu).share(pictures.len());
    let device = context.take_device();
    let named = |(item, found): (Item<'a, ImageJob, Picture>, tiepoint::Result<Features>)| {
        let path = &item.job.path;
        item.then(|picture| {
            let features = found.map_err(|e| Failure::from(e).about(path.display()))?;
            let (device, stored) = (device.clone(), picture.stored);
            Ok(((picture, Found { features, device, stored }), spent.clone()))
        })
    };
    batch.into_iter().zip(found).map(named).collect()
}

/// Writes the results that were asked for, and returns the features.
fn write(
    job: &ImageJob,
    picture: &Picture,
    found: Found,
    arguments: &DetectArguments,
    describe: &dyn Fn(&ImageJob, &Found) -> Value,
) -> Outcome<(Found, Spent)> {
    let features = &found.features;
    let cpu = Cpu::sequential();
    let mut clock = Clock::start(&cpu);
    clock.time(Part::Write, || -> Outcome {
        if let Some(path) = &job.output {
            files::write(path, features)?;
        }
        if let Some(path) = &job.drawing {
            let mut canvas = Canvas::of(picture.seen(), None)?;
            keypoints(&mut canvas, &features.keypoints);
            image::write(path, &canvas.into_image())?;
        }
        if let Some(path) = &job.page {
            let name = file_name(&job.path);
            let view = FeaturesView {
                picture: tiepoint_report::Picture::new(name.clone(), picture.seen()),
                keypoints: &features.keypoints,
                support: tiepoint_report::support(features),
                caption: String::new(),
            };
            let section = Section::new("")
                .tile("features", counted(features.len()))
                .tile("picture", features.image.to_string())
                .figures(describe(job, &found))
                .view(View::Features(view));
            let lead = format!("{} features", counted(features.len()));
            write_to(path, arguments.report.limit(), (format!("Features of {name}"), lead, vec![section]))?;
        }
        Ok(())
    })?;
    Ok((found, clock.spent(&cpu)))
}

/// Reports one image, and returns its features so that their memory can be used again.
fn report(
    job: &ImageJob,
    found: Found,
    spent: &Spent,
    describe: &dyn Fn(&ImageJob, &Found) -> Value,
    context: &Context,
) -> Features {
    let (size, path) = (found.features.image, job.path.display());
    if found.stored {
        context.note(&format!(
            "{path}: keypoints refer to the pixels as stored, as COLMAP needs them; its orientation is not applied"
        ));
    }
    context.say(&format!(
        "{path}: {} features, {size}, {:.1} ms",
        found.features.len(),
        spent.compute() * 1e3
    ));
    job.page.iter().for_each(|page| say_page(page, context));
    context.report(|| joined([describe(job, &found), json!({ "seconds": spent.seconds() })]));
    found.features
}
