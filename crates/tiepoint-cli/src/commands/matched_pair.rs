//! Two pictures with their features, matches and model, with which `match`, `register`, `rectify` and `evaluate` begin.

use crate::arguments::detector::DetectorArguments;
use crate::arguments::matching::MatchingArguments;
use crate::arguments::report::ReportArguments;
use crate::commands::report;
use crate::context::Context;
use crate::draw::{Canvas, Tie, side_by_side};
use crate::failure::{Failure, Outcome};
use crate::input::{Kept, Picture, ReadPicture, Reader};
use crate::output::{Clock, Part, fill, joined};
use serde_json::{Value, json};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;
use tiepoint::Error;
use tiepoint::assess::{Assessment, PairEvidence};
use tiepoint::feature::{Descriptors, Features, Finder, FoundFeatures, Keypoint};
use tiepoint::geometry::{Correspondence, Model, ModelKind};
use tiepoint::image::{self, Image};
use tiepoint::matching::{
    Match,
    files::{MatchFormat, MatchRow, MatchSides, ReadMatches, read_matches_of},
};
use tiepoint::options::Named;
use tiepoint::register::{
    Modality, TieOptions, TiePicture, TiePoints, TiedPictures, features_to_tie, tie_given, tie_pictures,
    tie_points,
};
use tiepoint_report::{Section, View, counted};

#[derive(Clone, Copy, Debug)]
pub(crate) struct PairSearch<'a> {
    pub(crate) detector: &'a DetectorArguments,
    pub(crate) matching: &'a MatchingArguments,
    /// The masks of A and of B.
    masks: [Option<&'a str>; 2],
    /// Whether pictures stay as they are stored, whatever their orientation.
    stored: bool,
    /// Whether A is the second image in the command line.
    exchanged: bool,
}

/// Two pictures with their features.
#[derive(Debug)]
struct FoundPair {
    pictures: [Picture; 2],
    found: [FoundFeatures; 2],
    matched: Matched,
}

#[derive(Debug)]
enum Matched {
    /// By a search with this finder.
    By(Box<Finder>),
    /// By a file: feature i of A matches feature i of B. `right` are the indices not marked as wrong.
    Given { matches: Vec<Match>, right: Vec<usize> },
}

/// Pixels by which a given place may be outside its picture.
const BEYOND: f32 = 3.0;

impl FoundPair {
    /// The pictures with matches of a file, whose places must lie in them. Control points may be anywhere on a map: those
    /// outside of B are left out.
    fn given(
        pictures: [Picture; 2],
        paths: [&Path; 2],
        mut given: ReadMatches,
        context: &Context,
    ) -> Outcome<Self> {
        let sizes = pictures.each_ref().map(|picture| picture.grey().size());
        for ((found_in, size), path) in given.sizes.iter().zip(&sizes).zip(paths) {
            if let Some(found_in) = found_in.filter(|found_in| found_in != size) {
                return Err(Failure::work(format!(
                    "--matches were found in a picture of {found_in}, and {} has {size}: match the pictures themselves, or \
                     register those that were matched",
                    path.display()
                )));
            }
        }
        let is_inside = |[x, y]: [f32; 2], side: usize| {
            let within = |v: f32, length: usize| (-BEYOND..length as f32 + BEYOND).contains(&v);
            within(x, sizes[side].width) && within(y, sizes[side].height)
        };
        if matches!(given.format, MatchFormat::Qgis | MatchFormat::Vrt) {
            let all = given.rows.len();
            given.rows.retain(|row| is_inside(row.b_xy, 1));
            let (left_out, b) = (all - given.rows.len(), paths[1].display());
            if left_out > 0 {
                context
                    .note(&format!("{left_out} of {all} control points lie outside of {b} and are left out"));
            }
        }
        given.rows.retain(|row| row.inlier || is_inside(row.a_xy, 0) && is_inside(row.b_xy, 1));
        let features = |side: usize| -> Outcome<FoundFeatures> {
            let keypoint = |row: &MatchRow| {
                let [x, y] = [row.a_xy, row.b_xy][side];
                Keypoint { x, y, scale: row.scales[side], ..Keypoint::default() }
            };
            let keypoints: Vec<Keypoint> = given.rows.iter().map(keypoint).collect();
            if let Some(k) = keypoints.iter().find(|k| !is_inside([k.x, k.y], side)) {
                return Err(Failure::work(format!(
                    "--matches has a place ({}, {}) outside of {}, which has {}: are these its matches, and is it the first or \
                     second as in the file?",
                    k.x,
                    k.y,
                    paths[side].display(),
                    sizes[side]
                )));
            }
            let (descriptors, image) = (Descriptors::U8(vec![]), sizes[side]);
            Ok(Features { keypoints, descriptors, dimension: 0, image }.into())
        };
        let found = [features(0)?, features(1)?];
        let matched = (0..).zip(&given.rows).map(|(i, row)| {
            let ratio = if row.pair.ratio.is_nan() { 1.0 } else { row.pair.ratio };
            Match { a: i, b: i, ratio, ..row.pair }
        });
        let right = (0..given.rows.len()).filter(|i| given.rows[*i].inlier).collect();
        Ok(Self { pictures, found, matched: Matched::Given { matches: matched.collect(), right } })
    }

    /// The pictures with the features to which the matches refer.
    fn tied(self, tied: TiedPictures, options: &TieOptions) -> MatchedPair {
        let TiedPictures { features, tie, views, modality } = tied;
        let features = features.unwrap_or_else(|| self.found.map(|found| found.features));
        let mut pair = MatchedPair::new(self.pictures, features, tie, options);
        if let Matched::Given { matches, right } = &self.matched {
            pair.given = true;
            if let Some(evidence) = pair.evidence.as_mut().filter(|_| right.len() < matches.len()) {
                evidence.chosen = Some(right.len());
            }
        }
        MatchedPair { views, modality, ..pair }
    }
}

/// Two pictures, their features and their tie points.
#[derive(Debug)]
pub(crate) struct MatchedPair {
    pub(crate) pictures: [Picture; 2],
    pub(crate) features: [Features; 2],
    pub(crate) tie: TiePoints,
    /// Whether matches were read and not searched.
    pub(crate) given: bool,
    /// Views of each picture that were matched.
    pub(crate) views: usize,
    /// Whether the pictures were tied as pictures of one sensor or of two.
    pub(crate) modality: Modality,
    /// The evidence for or against the model; none without a model.
    pub(crate) evidence: Option<PairEvidence>,
}

impl<'a> PairSearch<'a> {
    pub(crate) fn new(detector: &'a DetectorArguments, matching: &'a MatchingArguments) -> Self {
        let masks = [detector.mask.as_deref(), matching.mask_b.as_deref()];
        Self { detector, matching, masks, stored: false, exchanged: false }
    }

    /// With `stored`, pictures are not turned upright, because COLMAP's coordinates are those of the stored pixels.
    pub(crate) fn as_stored(self, stored: bool) -> Self {
        Self { stored, ..self }
    }

    pub(crate) fn exchanged(self) -> Self {
        let [first, second] = self.masks;
        Self { masks: [second, first], exchanged: true, ..self }
    }

    /// Reads both images, finds and matches their features, and verifies the matches. If no model is found, the page,
    /// if one is asked for, shows the unverified matches.
    pub(crate) fn run(
        &self,
        paths: [&Path; 2],
        kept: [Kept; 2],
        page: &ReportArguments,
        clock: &mut Clock,
        context: &Context,
    ) -> Outcome<MatchedPair> {
        let found = self.find(paths, if page.wanted() { [Kept::Shown; 2] } else { kept }, clock, context)?;
        let options = self.matching.options()?;
        match self.tie(&found, &options, clock, context) {
            Ok(tied) => Ok(found.tied(tied, &options)),
            Err(error) => self.explain(error, found, (paths, page), clock, context),
        }
    }

    /// The error. If it is that there is no model, adds counts and advice, and writes a page of the unverified matches if one
    /// is asked for.
    fn explain(
        &self,
        error: Error,
        found: FoundPair,
        (paths, page): ([&Path; 2], &ReportArguments),
        clock: &Clock,
        context: &Context,
    ) -> Outcome<MatchedPair> {
        let Error::NoModel { error, mut compared, mut advice } = error else { return Err(error.into()) };
        if let (Some(file), Matched::Given { right, .. }) = (&self.matching.given, &found.matched) {
            compared = format!("{} matches in {}", counted(right.len()), file.display());
        }
        if let Some((path, nothing)) = paths
            .iter()
            .zip(&found.pictures)
            .find_map(|(path, picture)| Some((path, picture.shows_nothing()?)))
        {
            advice = format!("{} shows nothing: {nothing}", path.display());
        }
        let Some(path) = &page.report else {
            return Err(Failure::Work(format!(
                "{error} ({compared}). {advice}. --report PAGE.html shows the matches"
            )));
        };
        let tie = self.unverified(&found, context)?;
        let tied = TiedPictures { features: None, tie, views: 1, modality: Modality::Same };
        let pair = found.tied(tied, &TieOptions::default());
        report::write(page, || {
            let names = paths.map(report::file_name);
            let title = format!("{} and {}", names[0], names[1]);
            let shown = match pair.tie.matches.is_empty() {
                true => "There are no matches to show.",
                false => "The matches that are shown are not confirmed.",
            };
            let lead = format!("No model was found ({compared}). {shown}");
            let view = report::matches_view(&pair, names);
            let section = report::tiles(Section::new("Matches"), &pair, clock)
                .assessed(Some(Assessment::none(&error.to_string(), &advice)))
                .view(View::Matches(view));
            (title, lead, vec![section.figures(pair.describe(self, context))])
        })?;
        Err(Failure::Work(format!("{error} ({compared}). {advice}. {} shows the matches", path.display())))
    }

    /// Reads both images, at the same time if there are threads for it, and finds their features. A GPU's memory is
    /// prepared while they are read.
    fn find(
        &self,
        paths: [&Path; 2],
        kept: [Kept; 2],
        clock: &mut Clock,
        context: &Context,
    ) -> Outcome<FoundPair> {
        self.matching.options()?;
        let detector = self.detector.detector()?;
        let cpu = &context.processor.cpu;
        let limits = self.detector.limits.options();
        let (given, modality) = (self.given(paths)?, self.matching.sensors.modality);
        let of_stored = given.as_ref().map_or(self.stored, |given| given.format.is_of_stored_pixels());
        let reader = Reader { limits: limits.with_orient(limits.orient && !self.stored && !of_stored), cpu };
        let read = |i: usize| -> Outcome<ReadPicture> {
            let mask = self.masks[i].map(|mask| fill(mask, paths[i]));
            reader.read(paths[i], kept[i], mask.as_deref())
        };
        context.progress.say(&format!("reading {} and {}", paths[0].display(), paths[1].display()));
        let (read, finder) = clock.time(Part::Read, || {
            let open = || -> Outcome<Option<Finder>> {
                if given.is_some() {
                    return Ok(None);
                }
                let finder = detector.open(&context.processor)?;
                // A file that cannot be read is reported by the thread that reads it.
                if modality != Modality::Cross
                    && let Ok((size, pixel)) = image::read_shape(paths[0], &reader.limits)
                {
                    finder.reserve_for_two(size, pixel);
                }
                Ok(Some(finder))
            };
            match cpu.threads() {
                1 => ([read(0), read(1)], open()),
                _ => thread::scope(|scope| {
                    let reading = [scope.spawn(|| read(0)), scope.spawn(|| read(1))];
                    let finder = open();
                    (reading.map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))), finder)
                }),
            }
        });
        let ([a, b], finder) = (read, finder?);
        let (a, b, range) = (a?, b?, self.detector.range);
        if given.is_none() && modality != Modality::Cross {
            context.progress.say("features of both");
        }
        let pictures = clock
            .time(Part::Compute, || -> Outcome<_> { Ok([a.ready(range, cpu)?, b.ready(range, cpu)?]) })?;
        if let Some(given) = given {
            let turned = pictures.iter().zip(paths).find(|(picture, _)| picture.stored);
            if let Some((_, path)) = turned.filter(|_| limits.orient && of_stored != self.stored) {
                return Err(Failure::work(format!(
                    "{}: its file records an orientation, and its matches are {}; give --no-orient both where the \
                     matches are searched and here",
                    path.display(),
                    match of_stored {
                        true => "those of its stored pixels, while the result is to be upright",
                        false => "those of the upright picture, while the result is of its stored pixels",
                    }
                )));
            }
            return FoundPair::given(pictures, paths, given, context);
        }
        let Some(finder) = finder else { return Err(Failure::work("nothing finds features")) };
        let images = pictures.each_ref().map(|picture| picture.grey().view());
        let masks = pictures.each_ref().map(|picture| picture.mask.as_ref().map(Image::view));
        let [a, b] = clock.time(Part::Compute, || features_to_tie(&finder, images, masks, modality));
        let named = |found: tiepoint::Result<FoundFeatures>, i: usize| {
            found.map_err(|error| Failure::from(error).about(paths[i].display()))
        };
        let found = [named(a, 0)?, named(b, 1)?];
        Ok(FoundPair { pictures, found, matched: Matched::By(Box::new(finder)) })
    }

    /// The tie points of --matches, in the order of `paths`, without those that are switched off in other programs' files.
    fn given(&self, paths: [&Path; 2]) -> Outcome<Option<ReadMatches>> {
        let Some(file) = &self.matching.given else { return Ok(None) };
        let names = paths.map(Path::to_string_lossy);
        let found = [image::read_georeference(paths[0])?, image::read_georeference(paths[1])?];
        // A picture that cannot be read is reported where it is read.
        let stored = self.detector.limits.options().with_orient(false);
        let size = |path: &Path| image::read_shape(path, &stored).ok().map(|(size, _)| size);
        let sizes = if found[1].is_some() { paths.map(size) } else { [None; 2] };
        let (names, places) = (names.each_ref().map(AsRef::as_ref), found.each_ref().map(Option::as_ref));
        let sides = MatchSides { names: Some(names), places, sizes };
        let mut read = read_matches_of(file, &sides)?;
        if self.exchanged && !read.in_order {
            read.exchange();
        }
        let all = read.rows.len();
        let none = !read.rows.iter().any(|row| row.inlier);
        // Files of this program keep the wrong rows; in others a point is switched off by hand.
        if read.format.is_of_stored_pixels() {
            read.rows.retain(|row| row.inlier);
        }
        match none && all > 0 {
            true => Err(Failure::work(format!(
                "{}: all of its {all} points are switched off (enable or inlier 0): switch on those that are to count",
                file.display()
            ))),
            false => Ok(Some(read)),
        }
    }

    /// Matches features and verifies the matches, with simulated views or by structure if need be.
    fn tie(
        &self,
        found: &FoundPair,
        options: &TieOptions,
        clock: &mut Clock,
        context: &Context,
    ) -> tiepoint::Result<TiedPictures> {
        let finder = match &found.matched {
            Matched::By(finder) => finder,
            Matched::Given { matches, right } => {
                let keypoints = found.found.each_ref().map(|of| of.features.keypoints.as_slice());
                let cpu = &context.processor.cpu;
                let given: Vec<Match> = right.iter().map(|i| matches[*i]).collect();
                let mut tie = clock.time(Part::Compute, || tie_given(keypoints, &given, options, cpu))?;
                if tie.b_from_a.is_some() {
                    // Matches that the file marks as wrong take no part in the model, but in its verdict.
                    tie.inliers.iter_mut().for_each(|i| *i = right[*i]);
                    tie.matches = matches.clone();
                }
                let masks = found.pictures.each_ref().map(|picture| picture.mask.as_ref().map(Image::view));
                let tie = tie.with_masks(masks);
                return Ok(TiedPictures { features: None, tie, views: 1, modality: Modality::Same });
            }
        };
        context.progress.say("matching");
        let pictures = [0, 1].map(|i| TiePicture {
            image: found.pictures[i].grey().view(),
            mask: found.pictures[i].mask.as_ref().map(Image::view),
            found: &found.found[i],
        });
        let views = (self.matching.views, self.matching.sensors.modality);
        let tied =
            clock.time(Part::Compute, || tie_pictures(pictures, finder, options, views, &context.processor));
        context.print_notes();
        if let Ok(tied) = &tied {
            if tied.views > 1 {
                context.explain(&format!("matched by {} simulated views of each image", tied.views));
            }
            if tied.modality == Modality::Cross {
                context.explain("matched by structure, as images of different sensors");
            }
        }
        tied
    }

    /// The matches of the pictures themselves, unverified.
    fn unverified(&self, found: &FoundPair, context: &Context) -> Outcome<TiePoints> {
        let [a, b] = found.found.each_ref().map(|found| &found.features);
        let options = self.matching.options()?.with_model(None);
        let tie = match &found.matched {
            Matched::By(_) => tie_points(a, b, &options, &context.processor)?,
            Matched::Given { matches, .. } => {
                let cpu = &context.processor.cpu;
                tie_given([&a.keypoints, &b.keypoints], matches, &options, cpu)?
            }
        };
        Ok(TiePoints { inliers: vec![], ..tie })
    }
}

impl MatchedPair {
    /// Pictures of one sensor, matched as they are.
    pub(crate) fn new(
        pictures: [Picture; 2],
        features: [Features; 2],
        tie: TiePoints,
        options: &TieOptions,
    ) -> Self {
        let keypoints = features.each_ref().map(|of| of.keypoints.as_slice());
        let evidence = PairEvidence::of(keypoints, features.each_ref().map(|of| of.image), &tie, options);
        Self { pictures, features, tie, given: false, views: 1, modality: Modality::Same, evidence }
    }

    pub(crate) fn points(&self) -> Vec<([f64; 2], [f64; 2])> {
        self.correspondences().into_iter().map(|pair| (pair.a, pair.b)).collect()
    }

    pub(crate) fn correspondences(&self) -> Vec<Correspondence> {
        let [a, b] = self.features.each_ref().map(|features| &features.keypoints);
        self.tie.matches.iter().map(|m| m.correspondence(a, b)).collect()
    }

    pub(crate) fn agreeing(&self) -> Vec<bool> {
        let mut inlier = vec![false; self.tie.matches.len()];
        self.tie.inliers.iter().for_each(|&i| inlier[i] = true);
        inlier
    }

    pub(crate) fn summary(&self) -> String {
        let [a, b] = &self.features;
        let all = self.tie.matches.len();
        let [in_a, in_b] = [a, b].map(|features| counted(features.len()));
        let is_map = self.tie.b_from_a.is_some_and(|model| model.homography().is_some());
        let matches = format!("{} matches", counted(all));
        let counts = match (self.given, self.modality, self.views) {
            (true, ..) => matches,
            (_, Modality::Cross, _) if is_map => format!("{} places compared by structure", counted(all)),
            (_, Modality::Cross, _) => format!("{in_a} and {in_b} corners of structure, {matches}"),
            (_, _, 1) => format!("{in_a} and {in_b} features, {matches}"),
            (_, _, views) => format!("{in_a} and {in_b} features of {views} views, {matches}"),
        };
        match &self.tie.b_from_a {
            Some(m) => {
                let (n, model) = (self.tie.inliers.len(), self.phrase(m));
                let share = 100.0 * n as f64 / all.max(1) as f64;
                format!(
                    "{counts}, {} ({share:.0} %) agree on {model} to {:.2} px",
                    counted(n),
                    self.tie.rms_px
                )
            }
            None => counts,
        }
    }

    /// The model with its article. Of pictures tied by structure a map may be of a simpler kind than the one asked for.
    fn phrase(&self, model: &Model) -> String {
        let (kind, [[a, b, _], [c, d, _], [g, h, _]]) = (model.kind(), model.matrix());
        let size = self.features[0].image;
        let side = size.width.max(size.height) as f64;
        // To a hundredth of a pixel.
        let is_affine = side * side * (g.abs() + h.abs()) < 0.01;
        let is_similarity = is_affine && side * ((a - d).abs() + (b + c).abs()) < 0.01;
        let simplest = match kind {
            ModelKind::Homography | ModelKind::Affine if is_similarity => ModelKind::Similarity,
            ModelKind::Homography if is_affine => ModelKind::Affine,
            _ => kind,
        };
        match simplest == kind || self.modality != Modality::Cross {
            true => kind.phrase().to_owned(),
            false => format!("{} (here {})", kind.phrase(), simplest.phrase()),
        }
    }

    pub(crate) fn assess(&self) -> Option<Assessment> {
        self.evidence.as_ref().map(PairEvidence::assess)
    }

    pub(crate) fn describe(&self, search: &PairSearch<'_>, context: &Context) -> Value {
        let counts = json!({
            "detector": (!self.given).then(|| search.detector.detector.name()),
            "preset": (!self.given).then(|| search.detector.preset_name()),
            "features": self.features.each_ref().map(Features::len),
            "matches": self.tie.matches.len(),
            "inliers": self.tie.inliers.len(),
            "views": self.views,
            "modality": self.modality.name(),
        });
        let model = match &self.tie.b_from_a {
            Some(model) => json!({
                "model": model.kind().name(),
                "matrix": model.matrix().as_flattened(),
                "rms_px": self.tie.rms_px,
            }),
            None => json!({ "model": "none" }),
        };
        let assessed = self.evidence.as_ref().map_or(json!({}), |evidence| {
            joined([json!(evidence.assess()), json!({ "evidence": evidence })])
        });
        let device = json!({ "device": context.take_device(), "threads": context.processor.cpu.threads() });
        joined([counts, model, assessed, device])
    }

    pub(crate) fn rows(&self) -> Vec<MatchRow> {
        let [a, b] = &self.features;
        let row = |(m, inlier): (&Match, bool)| {
            let (p, q) = (&a.keypoints[m.a as usize], &b.keypoints[m.b as usize]);
            let scales = [p.scale, q.scale];
            MatchRow { pair: *m, a_xy: [p.x, p.y], b_xy: [q.x, q.y], scales, inlier }
        };
        self.tie.matches.iter().zip(self.agreeing()).map(row).collect()
    }

    /// Writes, as far as they are asked for, the matrix of the model as text, one row a line, as `numpy.loadtxt` and
    /// `evaluate homography` read it, and a picture of the matches.
    pub(crate) fn write(&self, model: Option<&PathBuf>, drawing: Option<&PathBuf>) -> Outcome {
        if let Some((path, model)) = model.zip(self.tie.b_from_a) {
            let row = |row: &[f64; 3]| format!("{:?} {:?} {:?}\n", row[0], row[1], row[2]);
            let text: String = model.matrix().iter().map(row).collect();
            tiepoint::files::write_atomically(path, |out| std::io::Write::write_all(out, text.as_bytes()))?;
        }
        let Some(path) = drawing else { return Ok(()) };
        let [a, b] = &self.pictures;
        let (a, b) = (Canvas::of(a.seen(), None)?, Canvas::of(b.seen(), None)?);
        let ends = self.points().into_iter().zip(self.agreeing());
        let lines: Vec<_> = ends.map(|((a, b), inlier)| Tie { a, b, inlier }).collect();
        let picture = side_by_side(a, b, &lines)?;
        Ok(image::write(path, &picture.into_image())?)
    }
}
