//! `tiepoint match`: verified tie points of two images.

use super::detect;
use crate::arguments::{Match, Matching, ModelName};
use crate::detector::{Detector, DetectorArguments};
use crate::draw::{Canvas, Tie, side_by_side};
use crate::failure::{Failure, Outcome};
use crate::formats as files;
use crate::input::{self, Picture};
use crate::report::{Clock, Object, Part};
use crate::session::Session;
use std::path::Path;
use tiepoint::device::Cpu;
use tiepoint::feature::Features;
use tiepoint::geometry::{Correspondence, Estimate, ModelKind, RobustOptions, estimate};
use tiepoint::image;
use tiepoint::matching::{Match as Pair, MatchOptions, match_features};

pub(crate) fn run(arguments: &Match, session: &Session) -> Outcome {
    if let Some(path) = &arguments.output {
        files::check_matches(path)?;
        input::writable(path)?;
    }
    arguments.draw.as_deref().map_or(Ok(()), input::writable_image)?;
    let mut clock = Clock::start(&session.cpu);
    let asked = Asked { detector: &arguments.detector, matching: &arguments.matching };
    let colour = arguments.draw.is_some();
    let found = asked.run([&arguments.a, &arguments.b], colour, &mut clock, session)?;
    clock.time(Part::Write, || -> Outcome {
        if let Some(path) = &arguments.output {
            let [a, b] = &found.features;
            files::write_matches(path, a, b, &found.related)?;
        }
        arguments.draw.as_deref().map_or(Ok(()), |path| found.draw(path))
    })?;
    let between = format!("{} - {}", arguments.a.display(), arguments.b.display());
    session.say(&format!("{between}: {}, {:.1} ms", found.summary(), clock.compute() * 1e3))?;
    if let (false, Some(matrix)) = (session.json, found.related.matrix()) {
        matrix.chunks(3).try_for_each(|r| session.say(&format!("{:>22} {:>22} {:>22}", r[0], r[1], r[2])))?;
    }
    session.report(|| {
        let object = Object::new()
            .text("a", &arguments.a.display().to_string())
            .text("b", &arguments.b.display().to_string());
        found.describe(object, &asked, session).object("seconds", &clock.seconds(&session.cpu))
    })
}

/// What the user asks of a pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) detector: &'a DetectorArguments,
    pub(crate) matching: &'a Matching,
}

/// What was found in a pair.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) pictures: [Picture; 2],
    pub(crate) features: [Features; 2],
    pub(crate) related: Related,
}

/// The matches of two sets of features, and the model they agree on.
#[derive(Debug)]
pub(crate) struct Related {
    pub(crate) pairs: Vec<Pair>,
    /// For every pair whether the model agrees; all true without a model.
    pub(crate) inlier: Vec<bool>,
    pub(crate) estimate: Option<Estimate>,
}

impl ModelName {
    pub(crate) fn kind(self) -> Option<ModelKind> {
        match self {
            Self::Homography => Some(ModelKind::Homography),
            Self::Affine => Some(ModelKind::Affine),
            Self::Similarity => Some(ModelKind::Similarity),
            Self::Fundamental => Some(ModelKind::Fundamental),
            Self::None => None,
        }
    }
}

impl Matching {
    fn options(&self) -> Outcome<(MatchOptions, RobustOptions)> {
        let matching = MatchOptions {
            ratio: Some(self.ratio).filter(|r| *r != 1.0),
            mutual: !self.one_way,
            same_sign: !self.any_sign,
            ..MatchOptions::default()
        };
        matching.check()?;
        let start = RobustOptions::default();
        let robust =
            RobustOptions { threshold_px: self.inlier_distance.unwrap_or(start.threshold_px), ..start };
        if !(robust.threshold_px > 0.0 && robust.threshold_px.is_finite()) {
            let given = robust.threshold_px;
            return Err(Failure::usage(format!("--inlier-distance is {given}: expected pixels, above 0")));
        }
        Ok((matching, robust))
    }
}

impl Asked<'_> {
    /// Reads both images, finds and matches their features, and verifies the matches.
    pub(crate) fn run(
        &self,
        paths: [&Path; 2],
        colour: bool,
        clock: &mut Clock,
        session: &Session,
    ) -> Outcome<Found> {
        self.matching.options()?;
        let mut detector = self.detector.open()?;
        let masks = [self.detector.mask.as_deref(), self.matching.mask_b.as_deref()];
        let (cpu, progress) = (&session.cpu, &session.progress);
        let mut one = |i: usize, detector: &mut Detector| {
            progress.say(&format!("features of {}", paths[i].display()));
            detect::features(paths[i], colour, self.detector, masks[i], detector, clock, cpu)
        };
        let (picture_a, a) = one(0, &mut detector)?;
        let (picture_b, b) = one(1, &mut detector)?;
        progress.say("matching");
        let related = clock.time(Part::Compute, || relate(&a, &b, self.matching, cpu))?;
        Ok(Found { pictures: [picture_a, picture_b], features: [a, b], related })
    }
}

/// Matches two sets of features and verifies the matches.
pub(crate) fn relate(a: &Features, b: &Features, matching: &Matching, cpu: &Cpu) -> Outcome<Related> {
    let (options, robust) = matching.options()?;
    let pairs = match_features(a, b, &options, cpu)?;
    let ties = correspondences(a, b, &pairs);
    let estimate = matching.model.kind().map(|k| estimate(k, &ties, &robust, cpu)).transpose()?;
    let mut inlier = vec![estimate.is_none(); pairs.len()];
    estimate.iter().flat_map(|e| &e.inliers).for_each(|&i| inlier[i] = true);
    Ok(Related { pairs, inlier, estimate })
}

/// Where the matches lie; distinct ones are tried first.
pub(crate) fn correspondences(a: &Features, b: &Features, pairs: &[Pair]) -> Vec<Correspondence> {
    let at = |f: &Features, i: u32| {
        let k = &f.keypoints[i as usize];
        [f64::from(k.x), f64::from(k.y)]
    };
    let tie = |m: &Pair| Correspondence { a: at(a, m.a), b: at(b, m.b), quality: 1.0 - f64::from(m.ratio) };
    pairs.iter().map(tie).collect()
}

impl Related {
    /// Nine numbers, row by row.
    pub(crate) fn matrix(&self) -> Option<[f64; 9]> {
        self.estimate.as_ref().map(|e| flat(&e.model.matrix()))
    }

    pub(crate) fn inliers(&self) -> usize {
        self.inlier.iter().filter(|i| **i).count()
    }

    /// The matches as lines of a picture.
    pub(crate) fn ties(&self, a: &Features, b: &Features) -> Vec<Tie> {
        let ties = correspondences(a, b, &self.pairs);
        ties.iter().zip(&self.inlier).map(|(c, &inlier)| Tie { a: c.a, b: c.b, inlier }).collect()
    }
}

impl Found {
    /// For people.
    pub(crate) fn summary(&self) -> String {
        let [a, b] = &self.features;
        let counts = format!("{} and {} features, {} matches", a.len(), b.len(), self.related.pairs.len());
        match &self.related.estimate {
            Some(e) => {
                let (n, model) = (e.inliers.len(), e.model.kind());
                format!("{counts}, {n} agree on a {model} to {:.2} px", e.rms_px)
            }
            None => counts,
        }
    }

    /// For programs.
    pub(crate) fn describe(&self, object: Object, asked: &Asked<'_>, session: &Session) -> Object {
        let counts: Vec<f64> = self.features.iter().map(|f| f.len() as f64).collect();
        let object = object
            .text("detector", asked.detector.detector.name())
            .text("preset", asked.detector.preset_name())
            .numbers("features", &counts)
            .count("matches", self.related.pairs.len())
            .count("inliers", self.related.inliers());
        let object = match (&self.related.estimate, self.related.matrix()) {
            (Some(e), Some(matrix)) => object
                .text("model", e.model.kind().name())
                .numbers("matrix", &matrix)
                .number("rms_px", e.rms_px),
            _ => object.text("model", "none"),
        };
        object.text("device", &session.device()).count("threads", session.cpu.threads())
    }

    /// Writes the picture of both images and their matches.
    pub(crate) fn draw(&self, path: &Path) -> Outcome {
        let [a, b] = &self.pictures;
        let canvas = |p: &Picture| Canvas::of(p.original.as_ref().unwrap_or(&p.image));
        let [fa, fb] = &self.features;
        let picture = side_by_side(canvas(a), canvas(b), &self.related.ties(fa, fb));
        Ok(image::write(path, &picture.into_image())?)
    }
}

/// A 3×3 matrix row by row.
pub(crate) fn flat(m: &[[f64; 3]; 3]) -> [f64; 9] {
    [m[0][0], m[0][1], m[0][2], m[1][0], m[1][1], m[1][2], m[2][0], m[2][1], m[2][2]]
}
