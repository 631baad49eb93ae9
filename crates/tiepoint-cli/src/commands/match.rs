//! `tiepoint match`: verified tie points of two images.

use super::detect;
use crate::arguments::detector::{DetectorArguments, Finder};
use crate::arguments::r#match::MatchArguments;
use crate::arguments::matching::{MatchingArguments, ModelName};
use crate::context::Context;
use crate::draw::{Canvas, Tie, side_by_side};
use crate::failure::{Failure, Outcome};
use crate::input::{self, Picture};
use crate::output::{Clock, Object, Part};
use std::path::Path;
use tiepoint::feature::Features;
use tiepoint::feature::files::{MatchFormat, MatchRow, write_matches};
use tiepoint::geometry::{ModelKind, RobustOptions};
use tiepoint::image;
use tiepoint::matching::{Match as Pair, MatchOptions};
use tiepoint::register::{Rematch, TieOptions, TiePoints, tie_points};

pub(crate) fn run(arguments: &MatchArguments, context: &Context) -> Outcome {
    if let Some(path) = &arguments.output {
        MatchFormat::of(path).map_err(|e| Failure::usage(e.to_string()))?;
        input::writable(path)?;
    }
    arguments.draw.as_deref().map_or(Ok(()), input::writable_image)?;
    let mut clock = Clock::start(&context.processor.cpu);
    let asked = Asked { detector: &arguments.detector, matching: &arguments.matching };
    let colour = arguments.draw.is_some();
    let found = asked.run([&arguments.a, &arguments.b], colour, &mut clock, context)?;
    clock.time(Part::Write, || -> Outcome {
        if let Some(path) = &arguments.output {
            let [a, b] = [&arguments.a, &arguments.b].map(|p| p.display().to_string());
            write_matches(path, [&a, &b], &found.rows())?;
        }
        arguments.draw.as_deref().map_or(Ok(()), |path| found.draw(path))
    })?;
    let between = format!("{} - {}", arguments.a.display(), arguments.b.display());
    context.say(&format!("{between}: {}, {:.1} ms", found.summary(), clock.compute() * 1e3))?;
    if let (false, Some(model)) = (context.json, &found.tie.b_from_a) {
        context.say(&model.to_string())?;
    }
    context.report(|| {
        let object = Object::new()
            .text("a", &arguments.a.display().to_string())
            .text("b", &arguments.b.display().to_string());
        found.describe(object, &asked, context).object("seconds", &clock.seconds(&context.processor.cpu))
    })
}

/// What the user asks of a pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) detector: &'a DetectorArguments,
    pub(crate) matching: &'a MatchingArguments,
}

/// What was found in a pair.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) pictures: [Picture; 2],
    pub(crate) features: [Features; 2],
    pub(crate) tie: TiePoints,
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

impl MatchingArguments {
    pub(crate) fn options(&self) -> Outcome<TieOptions> {
        let matching = MatchOptions {
            ratio: Some(self.ratio).filter(|r| *r != 1.0),
            mutual: !self.one_way,
            same_sign: !self.any_sign,
            ..MatchOptions::default()
        };
        let start = RobustOptions::default();
        let robust = start.with_threshold_px(self.inlier_distance.unwrap_or(start.threshold_px));
        if !(robust.threshold_px > 0.0 && robust.threshold_px.is_finite()) {
            let given = robust.threshold_px;
            return Err(Failure::usage(format!("--inlier-distance is {given}: expected pixels, above 0")));
        }
        let rematch = (!self.no_rematch).then(Rematch::default);
        let options = TieOptions::default()
            .with_matching(matching)
            .with_model(self.model.kind())
            .with_robust(robust)
            .with_rematch(rematch);
        options.check()?;
        Ok(options)
    }
}

impl Asked<'_> {
    /// Reads both images, finds and matches their features, and verifies the matches.
    pub(crate) fn run(
        &self,
        paths: [&Path; 2],
        colour: bool,
        clock: &mut Clock,
        context: &Context,
    ) -> Outcome<Found> {
        let options = self.matching.options()?;
        let mut finder = self.detector.open(context)?;
        let masks = [self.detector.mask.as_deref(), self.matching.mask_b.as_deref()];
        let progress = &context.progress;
        let mut one = |i: usize, finder: &mut Finder| {
            progress.say(&format!("features of {}", paths[i].display()));
            detect::features(paths[i], colour, self.detector, masks[i], finder, clock, context)
        };
        let (picture_a, a) = one(0, &mut finder)?;
        let (picture_b, b) = one(1, &mut finder)?;
        progress.say("matching");
        let tie = clock.time(Part::Compute, || tie_points(&a, &b, &options, &context.processor))?;
        Ok(Found { pictures: [picture_a, picture_b], features: [a, b], tie })
    }
}

/// The places of the matches in A and in B.
pub(crate) fn places(a: &Features, b: &Features, tie: &TiePoints) -> Vec<([f64; 2], [f64; 2])> {
    let at = |f: &Features, i: u32| {
        let k = &f.keypoints[i as usize];
        [f64::from(k.x), f64::from(k.y)]
    };
    tie.matches.iter().map(|m| (at(a, m.a), at(b, m.b))).collect()
}

/// For every match whether the model agrees with it.
pub(crate) fn agreeing(tie: &TiePoints) -> Vec<bool> {
    let mut inlier = vec![false; tie.matches.len()];
    tie.inliers.iter().for_each(|&i| inlier[i] = true);
    inlier
}

/// The matches as lines of a picture.
pub(crate) fn lines(a: &Features, b: &Features, tie: &TiePoints) -> Vec<Tie> {
    let ends = places(a, b, tie).into_iter().zip(agreeing(tie));
    ends.map(|((a, b), inlier)| Tie { a, b, inlier }).collect()
}

impl Found {
    /// For people.
    pub(crate) fn summary(&self) -> String {
        let [a, b] = &self.features;
        let counts = format!("{} and {} features, {} matches", a.len(), b.len(), self.tie.matches.len());
        match &self.tie.b_from_a {
            Some(m) => {
                let (n, model) = (self.tie.inliers.len(), m.kind());
                format!("{counts}, {n} agree on a {model} to {:.2} px", self.tie.rms_px)
            }
            None => counts,
        }
    }

    /// For programs.
    pub(crate) fn describe(&self, object: Object, asked: &Asked<'_>, context: &Context) -> Object {
        let counts: Vec<f64> = self.features.iter().map(|f| f.len() as f64).collect();
        let object = object
            .text("detector", asked.detector.detector.name())
            .text("preset", asked.detector.preset_name())
            .numbers("features", &counts)
            .count("matches", self.tie.matches.len())
            .count("inliers", self.tie.inliers.len());
        let object = match &self.tie.b_from_a {
            Some(model) => object
                .text("model", &model.kind().to_string())
                .numbers("matrix", model.matrix().as_flattened())
                .number("rms_px", self.tie.rms_px),
            None => object.text("model", "none"),
        };
        object.text("device", &context.device()).count("threads", context.processor.cpu.threads())
    }

    /// The matches as files hold them.
    fn rows(&self) -> Vec<MatchRow> {
        let [a, b] = &self.features;
        let row = |(m, inlier): (&Pair, bool)| {
            let (p, q) = (&a.keypoints[m.a as usize], &b.keypoints[m.b as usize]);
            MatchRow { pair: *m, a_xy: [p.x, p.y], b_xy: [q.x, q.y], inlier }
        };
        self.tie.matches.iter().zip(agreeing(&self.tie)).map(row).collect()
    }

    /// Writes the picture of both images and their matches.
    pub(crate) fn draw(&self, path: &Path) -> Outcome {
        let [a, b] = &self.pictures;
        let canvas = |p: &Picture| Canvas::of(p.original.as_ref().unwrap_or(&p.image));
        let [fa, fb] = &self.features;
        let picture = side_by_side(canvas(a), canvas(b), &lines(fa, fb, &self.tie));
        Ok(image::write(path, &picture.into_image())?)
    }
}
