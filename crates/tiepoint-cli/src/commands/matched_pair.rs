//! Two pictures with their features, matches and model: what `match`, `register`, `rectify` and `evaluate` begin with.

use super::features::read_and_find;
use crate::arguments::detector::DetectorArguments;
use crate::arguments::matching::MatchingArguments;
use crate::context::Context;
use crate::draw::{Canvas, Tie, side_by_side};
use crate::failure::Outcome;
use crate::input::Picture;
use crate::output::{Clock, Part, joined};
use serde_json::{Value, json};
use std::path::Path;
use tiepoint::feature::files::MatchRow;
use tiepoint::feature::{Features, Finder};
use tiepoint::image::{self, Image};
use tiepoint::matching::Match;
use tiepoint::options::Named;
use tiepoint::register::{TiePicture, TiePoints, TiedPictures, tie_pictures, tie_points};

/// How a pair is searched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairSearch<'a> {
    pub(crate) detector: &'a DetectorArguments,
    pub(crate) matching: &'a MatchingArguments,
}

/// Two pictures with their features, and what found these.
#[derive(Debug)]
pub(crate) struct FoundPair {
    pub(crate) pictures: [Picture; 2],
    pub(crate) features: [Features; 2],
    finder: Finder,
}

impl FoundPair {
    /// The pictures with the features that their matches name.
    pub(crate) fn tied(self, TiedPictures { features, tie, views }: TiedPictures) -> MatchedPair {
        MatchedPair { pictures: self.pictures, features, tie, views }
    }

    /// The pictures with matches of their own features.
    pub(crate) fn with(self, tie: TiePoints) -> MatchedPair {
        MatchedPair { pictures: self.pictures, features: self.features, tie, views: 1 }
    }
}

/// Two pictures, their features and what ties them together.
#[derive(Debug)]
pub(crate) struct MatchedPair {
    pub(crate) pictures: [Picture; 2],
    pub(crate) features: [Features; 2],
    pub(crate) tie: TiePoints,
    /// Views of each picture that were matched.
    pub(crate) views: usize,
}

impl PairSearch<'_> {
    /// Reads both images, finds and matches their features, and verifies the matches.
    pub(crate) fn run(
        &self,
        paths: [&Path; 2],
        colour: bool,
        clock: &mut Clock,
        context: &Context,
    ) -> Outcome<MatchedPair> {
        let found = self.find(paths, colour, clock, context)?;
        let tied = self.tie(&found, clock, context)?;
        Ok(found.tied(tied))
    }

    /// Reads both images and finds their features.
    pub(crate) fn find(
        &self,
        paths: [&Path; 2],
        colour: bool,
        clock: &mut Clock,
        context: &Context,
    ) -> Outcome<FoundPair> {
        self.matching.options()?;
        let finder = self.detector.detector()?.open(&context.processor)?;
        let masks = [self.detector.mask.as_deref(), self.matching.mask_b.as_deref()];
        let progress = &context.progress;
        let mut one = |i: usize, finder: &Finder| {
            progress.say(&format!("features of {}", paths[i].display()));
            read_and_find(paths[i], colour, self.detector, masks[i], finder, clock, context)
        };
        let (picture_a, a) = one(0, &finder)?;
        let (picture_b, b) = one(1, &finder)?;
        Ok(FoundPair { pictures: [picture_a, picture_b], features: [a, b], finder })
    }

    /// Matches features, and verifies the matches; by simulated views where they must help.
    pub(crate) fn tie(
        &self,
        found: &FoundPair,
        clock: &mut Clock,
        context: &Context,
    ) -> Outcome<TiedPictures> {
        let (options, views) = (self.matching.options()?, self.matching.views);
        context.progress.say("matching");
        let pictures = [0, 1].map(|i| TiePicture {
            image: found.pictures[i].image.view(),
            mask: found.pictures[i].mask.as_ref().map(Image::view),
            features: found.features[i].clone(),
        });
        let tied = clock.time(Part::Compute, || {
            tie_pictures(pictures, &found.finder, &options, views, &context.processor)
        });
        context.print_notes();
        let tied = tied?;
        if tied.views > 1 {
            context.explain(&format!("matched by {} simulated views of each image", tied.views));
        }
        Ok(tied)
    }

    /// The matches that nothing has verified.
    pub(crate) fn unverified(&self, [a, b]: &[Features; 2], context: &Context) -> Outcome<TiePoints> {
        Ok(tie_points(a, b, &self.matching.options()?.with_model(None), &context.processor)?)
    }
}

/// The points of the matches in A and in B.
pub(crate) fn points(a: &Features, b: &Features, tie: &TiePoints) -> Vec<([f64; 2], [f64; 2])> {
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
    let ends = points(a, b, tie).into_iter().zip(agreeing(tie));
    ends.map(|((a, b), inlier)| Tie { a, b, inlier }).collect()
}

impl MatchedPair {
    /// For people.
    pub(crate) fn summary(&self) -> String {
        let [a, b] = &self.features;
        let counts = format!("{} and {} features, {} matches", a.len(), b.len(), self.tie.matches.len());
        match &self.tie.b_from_a {
            Some(m) => {
                let (n, model) = (self.tie.inliers.len(), m.kind().phrase());
                format!("{counts}, {n} agree on {model} to {:.2} px", self.tie.rms_px)
            }
            None => counts,
        }
    }

    /// For programs.
    pub(crate) fn describe(&self, search: &PairSearch<'_>, context: &Context) -> Value {
        let counts = json!({
            "detector": search.detector.detector.name(),
            "preset": search.detector.preset_name(),
            "features": self.features.each_ref().map(Features::len),
            "matches": self.tie.matches.len(),
            "inliers": self.tie.inliers.len(),
            "views": self.views,
        });
        let model = match &self.tie.b_from_a {
            Some(model) => json!({
                "model": model.kind().name(),
                "matrix": model.matrix().as_flattened(),
                "rms_px": self.tie.rms_px,
            }),
            None => json!({ "model": "none" }),
        };
        let device = json!({ "device": context.take_device(), "threads": context.processor.cpu.threads() });
        joined([counts, model, device])
    }

    /// The matches as files hold them.
    pub(crate) fn rows(&self) -> Vec<MatchRow> {
        let [a, b] = &self.features;
        let row = |(m, inlier): (&Match, bool)| {
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
        let picture = side_by_side(canvas(a)?, canvas(b)?, &lines(fa, fb, &self.tie))?;
        Ok(image::write(path, &picture.into_image())?)
    }
}
