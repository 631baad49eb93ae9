//! `tiepoint detect`: keypoints and descriptors of images.

use crate::arguments::Detect;
use crate::detector::{DetectorArguments, Finder};
use crate::draw::{Canvas, keypoints};
use crate::failure::{Failure, Outcome};
use crate::input::{self, Picture};
use crate::report::{Clock, Object, Part};
use crate::session::Session;
use std::path::{Path, PathBuf};
use tiepoint::feature::{Features, files};
use tiepoint::image;

pub(crate) fn run(arguments: &Detect, session: &Session) -> Outcome {
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
    let mut finder = arguments.detector.open(session)?;
    let mut failed = 0;
    for (i, path) in images.iter().enumerate() {
        session.progress.say(&format!("{}/{} {}", i + 1, images.len(), path.display()));
        let at = |places: &Option<Vec<PathBuf>>| places.as_ref().map(|p| p[i].clone());
        let task = Task { path, output: at(&outputs), drawing: at(&drawings) };
        match task.run(&arguments.detector, &mut finder, session) {
            Ok(()) => {}
            // One bad image does not stop the others.
            Err(Failure::Work(message)) if images.len() > 1 => {
                crate::complain(&Failure::Work(message));
                failed += 1;
            }
            Err(other) => return Err(other),
        }
    }
    if failed > 0 {
        return Err(Failure::work(format!("{failed} of {} images failed", images.len())));
    }
    Ok(())
}

/// Reads one image of one or two for a detector and finds its features.
pub(crate) fn features(
    path: &Path,
    colour: bool,
    arguments: &DetectorArguments,
    mask: Option<&str>,
    finder: &mut Finder,
    clock: &mut Clock,
    session: &Session,
) -> Outcome<(Picture, Features)> {
    let mask = mask.map(|m| PathBuf::from(input::fill(m, path)));
    let cpu = &session.processor.cpu;
    let picture = Picture::read(path, colour, mask.as_deref(), arguments.range, clock, cpu)?;
    let found = clock.time(Part::Compute, || finder.detect(&picture.image, picture.mask.as_ref(), session));
    match found {
        Ok(features) => Ok((picture, features)),
        Err(Failure::Work(message)) => Err(Failure::work(format!("{}: {message}", path.display()))),
        Err(other) => Err(other),
    }
}

/// One image and where its results go.
struct Task<'a> {
    path: &'a Path,
    output: Option<PathBuf>,
    drawing: Option<PathBuf>,
}

impl Task<'_> {
    fn run(&self, arguments: &DetectorArguments, finder: &mut Finder, session: &Session) -> Outcome {
        let cpu = &session.processor.cpu;
        let mut clock = Clock::start(cpu);
        let (colour, mask) = (self.drawing.is_some(), arguments.mask.as_deref());
        let (picture, features) = features(self.path, colour, arguments, mask, finder, &mut clock, session)?;
        clock.time(Part::Write, || self.write(&picture, &features))?;
        let name = self.path.display();
        let (n, milliseconds) = (features.len(), clock.compute() * 1e3);
        session.say(&format!("{name}: {n} features, {}, {milliseconds:.1} ms", features.image))?;
        session.report(|| {
            Object::new()
                .text("image", &name.to_string())
                .count("width", features.image.width)
                .count("height", features.image.height)
                .text("detector", arguments.detector.name())
                .text("preset", arguments.preset_name())
                .count("features", features.len())
                .text("device", &session.device())
                .count("threads", cpu.threads())
                .object("seconds", &clock.seconds(cpu))
        })
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
