//! `tiepoint detect`: keypoints and descriptors of images.

use crate::arguments::detect::DetectArguments;
use crate::arguments::detector::{DetectorArguments, Finder};
use crate::context::Context;
use crate::draw::{Canvas, keypoints};
use crate::failure::{Failure, Outcome};
use crate::input::{self, Picture};
use crate::output::{Clock, Object, Part, Spent};
use crate::prefetch::{Ahead, Line, Reach, Weight};
use std::path::{Path, PathBuf};
use std::thread;
use tiepoint::device::Cpu;
use tiepoint::feature::{Features, files};
use tiepoint::image;

pub(crate) fn run(arguments: &DetectArguments, context: &Context) -> Outcome {
    let images = input::expand(&arguments.images, arguments.list.as_deref())?;
    let places = |given: &Option<String>, extension| {
        given.as_deref().map(|g| input::outputs(g, &images, extension)).transpose()
    };
    let (outputs, drawings) = (places(&arguments.output, "csv")?, places(&arguments.draw, "png")?);
    for path in outputs.iter().flatten() {
        files::FeatureFormat::of(path).map_err(|e| Failure::usage(e.to_string()))?;
        input::writable(path)?;
    }
    drawings.iter().flatten().try_for_each(|p| input::writable_image(p))?;
    let finder = arguments.detector.open(context)?;
    let at = |places: &Option<Vec<PathBuf>>, i: usize| places.as_ref().map(|p| p[i].clone());
    let tasks = images.iter().enumerate().map(|(i, path)| Task {
        number: i + 1,
        path,
        output: at(&outputs, i),
        drawing: at(&drawings, i),
    });
    let tasks: Vec<Task<'_>> = tasks.collect();
    match search(&tasks, finder, &arguments.detector, context)? {
        0 => Ok(()),
        failed => Err(Failure::work(format!("{failed} of {} images failed", images.len()))),
    }
}

/// Reads one image of one or two for a detector and finds its features.
pub(crate) fn features(
    path: &Path,
    colour: bool,
    arguments: &DetectorArguments,
    mask: Option<&str>,
    finder: &mut Finder,
    clock: &mut Clock,
    context: &Context,
) -> Outcome<(Picture, Features)> {
    let mask = mask.map(|m| PathBuf::from(input::fill(m, path)));
    let cpu = &context.processor.cpu;
    let picture = Picture::read(path, colour, mask.as_deref(), arguments.range, clock, cpu)?;
    let found = clock.time(Part::Compute, || finder.detect(&picture, &mut || Ok(()), context));
    Ok((picture, found.map_err(|failure| about(path, failure))?))
}

/// A failure that does not know the file it is about.
fn about(path: &Path, failure: Failure) -> Failure {
    match failure {
        Failure::Work(message) => Failure::work(format!("{}: {message}", path.display())),
        other => other,
    }
}

/// Threads that read, and images that are yet to be written: more do not make a device wait less.
const BESIDE: usize = 32;

/// Images that a GPU searches together: always as many, as it keeps memory for one number.
const TOGETHER: usize = 16;

/// Searches the images, and tells how many failed. With several threads the next are read beside the search; with a GPU
/// those that wait are searched together, and those before are written beside it too. What is said and written is what it
/// would be one after the other.
fn search(
    tasks: &[Task<'_>],
    mut finder: Finder,
    arguments: &DetectorArguments,
    context: &Context,
) -> Outcome<usize> {
    let cpu = &context.processor.cpu;
    let (threads, has_gpu) = (cpu.threads().min(BESIDE), context.processor.gpu.is_some());
    let beside = threads > 1 && tasks.len() > 1;
    let unwritten = if beside && has_gpu { threads } else { 0 };
    let reach = match has_gpu {
        true => Reach { pieces: 2 * threads, together: threads.min(TOGETHER) },
        false => Reach { pieces: threads, together: 1 },
    };
    let read = |i: usize| {
        // With stages of its own: those of several images would be taken for each other's.
        let cpu = if beside { Cpu::sequential() } else { cpu.clone() }.profiled();
        tasks[i].read(arguments, &cpu)
    };
    thread::scope(|scope| {
        let scope = Some(scope).filter(|_| beside);
        let mut ahead = Ahead::new(tasks.len(), &read, scope, reach);
        let mut reports = Reports {
            writing: Line::new(scope),
            spare: Vec::new(),
            of: tasks.len(),
            failed: 0,
            arguments,
            context,
        };
        loop {
            let images = ahead.next(|a, b| a.goes_with(b, &finder, context));
            let Some(first) = images.first() else { break };
            let Task { number, path, .. } = first.task;
            context.progress.say(&format!("{number}/{} {}", tasks.len(), path.display()));
            images.iter().for_each(|image| context.add_stages(&image.spent.stages));
            match together(&images, &mut finder, context) {
                Some((found, spent)) => images.into_iter().zip(found).for_each(|(image, features)| {
                    reports.write(image.with(|_| Ok((features, spent.clone()))));
                }),
                None => images.into_iter().for_each(|image| {
                    let found = image.with(|picture| alone(picture, &mut finder, &mut reports, context));
                    reports.write(found);
                }),
            }
            reports.until(unwritten)?;
            finder.recycle(reports.spare.drain(..));
        }
        reports.until(0)?;
        Ok(reports.failed)
    })
}

/// The features of several images, and what each took; `None` when each is to be searched alone.
fn together(images: &[Read<'_>], finder: &mut Finder, context: &Context) -> Option<(Vec<Features>, Spent)> {
    let pictures: Vec<&Picture> = images.iter().filter_map(|image| image.picture.as_ref().ok()).collect();
    if pictures.len() < 2 {
        return None;
    }
    let mut clock = Clock::start(&context.processor.cpu);
    let found = clock.time(Part::Compute, || finder.detect_together(&pictures, context))?;
    Some((found, clock.spent(&context.processor.cpu).share(pictures.len())))
}

/// The features of one image, and what it took. Before something is said about it, what is left to say of others is.
fn alone<'scope, 'a: 'scope>(
    picture: &Picture,
    finder: &mut Finder,
    reports: &mut Reports<'scope, '_, 'a>,
    context: &Context,
) -> Outcome<(Features, Spent)> {
    let mut clock = Clock::start(&context.processor.cpu);
    let mut before = || reports.until(0);
    let features = clock.time(Part::Compute, || finder.detect(picture, &mut before, context))?;
    Ok((features, clock.spent(&context.processor.cpu)))
}

/// One image and where its results go.
struct Task<'a> {
    number: usize,
    path: &'a Path,
    output: Option<PathBuf>,
    drawing: Option<PathBuf>,
}

/// An image that was read, or was not.
struct Read<'a> {
    task: &'a Task<'a>,
    picture: Outcome<Picture>,
    spent: Spent,
}

/// An image that was searched, or was not.
struct Found<'a> {
    task: &'a Task<'a>,
    found: Outcome<(Picture, Features)>,
    spent: Spent,
}

/// An image whose results are written, or are not.
struct Done<'a> {
    task: &'a Task<'a>,
    done: Outcome<Features>,
    spent: Spent,
}

impl Task<'_> {
    fn read(&self, arguments: &DetectorArguments, cpu: &Cpu) -> Read<'_> {
        let mut clock = Clock::start(cpu);
        let mask = arguments.mask.as_ref().map(|m| PathBuf::from(input::fill(m, self.path)));
        let (colour, mask) = (self.drawing.is_some(), mask.as_deref());
        let picture = Picture::read(self.path, colour, mask, arguments.range, &mut clock, cpu);
        Read { task: self, picture, spent: clock.spent(cpu) }
    }

    fn write(&self, picture: &Picture, features: &Features) -> Outcome {
        if let Some(path) = &self.output {
            files::write(path, features)?;
        }
        if let Some(path) = &self.drawing {
            let mut canvas = Canvas::of(picture.original.as_ref().unwrap_or(&picture.image));
            keypoints(&mut canvas, &features.keypoints);
            image::write(path, &canvas.into_image())?;
        }
        Ok(())
    }
}

impl<'a> Read<'a> {
    fn goes_with(&self, other: &Self, finder: &Finder, context: &Context) -> bool {
        let pictures = self.picture.as_ref().ok().zip(other.picture.as_ref().ok());
        pictures.is_some_and(|(a, b)| finder.takes_together(a, b, context))
    }

    /// With what `find` finds in it.
    fn with(mut self, find: impl FnOnce(&Picture) -> Outcome<(Features, Spent)>) -> Found<'a> {
        let found = self.picture.and_then(|picture| {
            let (features, spent) = find(&picture).map_err(|failure| about(self.task.path, failure))?;
            self.spent.add(&spent);
            Ok((picture, features))
        });
        Found { task: self.task, found, spent: self.spent }
    }
}

impl Weight for Read<'_> {
    fn bytes(&self) -> usize {
        self.picture.as_ref().map_or(0, Picture::bytes)
    }
}

impl<'a> Found<'a> {
    fn write(mut self) -> Done<'a> {
        let cpu = Cpu::sequential();
        let done = self.found.and_then(|(picture, features)| {
            let mut clock = Clock::start(&cpu);
            clock.time(Part::Write, || self.task.write(&picture, &features))?;
            self.spent.add(&clock.spent(&cpu));
            Ok(features)
        });
        Done { task: self.task, done, spent: self.spent }
    }
}

impl Done<'_> {
    /// Gives the features back, of which no more is wanted.
    fn report(self, arguments: &DetectorArguments, context: &Context) -> Outcome<Features> {
        let found = self.done?;
        let (size, features) = (found.image, found.len());
        let (name, milliseconds) = (self.task.path.display(), self.spent.compute * 1e3);
        context.say(&format!("{name}: {features} features, {size}, {milliseconds:.1} ms"))?;
        context.report(|| {
            Object::new()
                .text("image", &name.to_string())
                .count("width", size.width)
                .count("height", size.height)
                .text("detector", arguments.detector.name())
                .text("preset", arguments.preset_name())
                .count("features", features)
                .text("device", &context.device())
                .count("threads", context.processor.cpu.threads())
                .object("seconds", &self.spent.seconds())
        })?;
        Ok(found)
    }
}

/// What is being written, and then said in the order of the images.
struct Reports<'scope, 'env, 'a> {
    writing: Line<'scope, 'env, Done<'a>>,
    /// What was said: memory for the next.
    spare: Vec<Features>,
    of: usize,
    failed: usize,
    arguments: &'a DetectorArguments,
    context: &'a Context,
}

impl<'scope, 'a: 'scope> Reports<'scope, '_, 'a> {
    fn write(&mut self, found: Found<'a>) {
        self.writing.put(|| found.write());
    }

    /// Reports what is written, and waits until no more than `unwritten` images are not.
    fn until(&mut self, unwritten: usize) -> Outcome {
        loop {
            let waits = self.writing.len() > unwritten;
            let Some(done) = (if waits { self.writing.wait() } else { self.writing.ready() }) else {
                return Ok(());
            };
            match done.report(self.arguments, self.context) {
                // One bad image does not stop the others.
                Err(Failure::Work(message)) if self.of > 1 => {
                    crate::complain(&Failure::Work(message));
                    self.failed += 1;
                }
                other => self.spare.push(other?),
            }
        }
    }
}
