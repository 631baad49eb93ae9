//! Verified tie points from two sets of features.

use crate::device::{Cpu, Processor};
use crate::error::counted;
use crate::feature::gpu::GpuFeatures;
use crate::feature::{Features, FoundFeatures, Keypoint};
use crate::geometry::estimate::{Precision, estimate, refine};
use crate::geometry::rectify::EpipolarTies;
use crate::geometry::{Correspondence, Estimate, Model, ModelKind, RobustOptions, Similarity};
use crate::image::{ImageView, Size};
use crate::matching::{GpuMatcher, Guide, Match, MatchOptions, Matcher};
use crate::numeric::length;
use crate::options::{AboveTo, options};
use crate::{Error, ErrorKind, Result};
use serde::Serialize;

options! {
    /// How to find tie points.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct TieOptions {
        /// The model that verifies the matches; none: they are not verified.
        model / with_model: Option<ModelKind> = Some(ModelKind::Homography);
        /// The largest ratio of the scales of pictures from different sensors; either may be the finer one. A wider range
        /// is searched where the sizes of the pictures differ by more.
        scale_range / with_scale_range: f64 = 2.0 => 1.0..=16.0;
    }
    tables {
        /// The first matching.
        matching / with_matching: MatchOptions = MatchOptions::default();
        /// The estimation of the model.
        robust / with_robust: RobustOptions = RobustOptions::default();
    }
    besides {
        /// The second search, near what the model predicts; `None` for none.
        rematch / with_rematch: Option<Rematch> = Some(Rematch::default());
    }
    check this {
        this.rematch.map_or(Ok(()), |rematch| rematch.check())
    }
}

options! {
    /// The search that is repeated near what the model predicts.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Rematch {
        /// Search radius about the predicted point, or half width of the band along the epipolar line, as a multiple of
        /// the threshold of an inlier.
        radius / with_radius: f64 = 2.0 => 1.0..=100.0, flag "-";
        /// Ratio among the candidates there.
        ratio / with_ratio: f32 = 0.9 => AboveTo(0.0, 1.0), flag "-", unit "SHARE";
        /// The most rounds of search and refinement.
        ///
        /// They end when a round finds the same matches as the round before.
        rounds / with_rounds: u8 = 2 => 1.., flag "-", unit "N";
    }
}

/// Matches, and which of them agree with a model.
#[derive(Clone, Debug, PartialEq)]
pub struct TiePoints {
    /// Matches in the order of their index in A.
    pub matches: Vec<Match>,
    /// The model from A to B; `None` if none was asked for.
    pub b_from_a: Option<Model>,
    /// Indices into `matches` of those that agree with the model, ascending; all without a model.
    pub inliers: Vec<usize>,
    /// Root mean square residual of the inliers, pixels; 0 without a model.
    pub rms_px: f64,
    /// The number of samples that the estimation drew.
    pub iterations: usize,
    /// The matches of the first search, before there was a model to search near; empty if pictures were tied by their
    /// structure or matches were given. If A has very many features, only a part of them was searched ([`tie_points`]).
    pub first: Vec<Match>,
    /// Evidence for other maps, if pictures were tied by their structure.
    pub alternatives: Option<Alternatives>,
    /// Set if inliers cover only a part of the pictures and lie on a similarity, or if nothing moved, and structure
    /// agrees only in part, too: the mean, over the cells, of the share of displacements at which structure agrees less
    /// than under the map; ½ by chance.
    pub unlike: Option<f64>,
    /// Set if structure finds that nothing moved and the modality is not `cross`: the mean correlation of the grey
    /// values in small cells. If it is high, something fixed to one sensor, such as dust or hot pixels, may have been
    /// matched; pictures of two sensors hardly correlate (`docs/verdicts.md`).
    pub fixed: Option<f64>,
    /// Which of the nine parts of A and of B, row by row, are masked over more than three quarters of their area.
    pub hidden: [[bool; 9]; 2],
}

/// Evidence for other maps than the one by which pictures were tied by their structure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Alternatives {
    /// How many places of the search agree on this map, and on the best hypothesis of another map.
    pub places: [usize; 2],
    /// The most places on which one half of a picture agrees with its other half: the greater number of both pictures.
    pub halves: usize,
    /// The correlation of a picture's structure with itself at the displacement where it is highest; the lower of both
    /// pictures.
    pub repeats: f64,
    /// The length of this displacement, in pixels of A.
    pub repeats_px: f64,
    /// In how many ninths of the area that both pictures show structure agrees by chance alone, though it agrees
    /// elsewhere; and the number of ninths that show structure.
    pub parts_by_chance: [usize; 2],
}

/// A map is ambiguous if this share of the places that agree on it ([`Alternatives::places`]) agree on another.
pub(crate) const AMBIGUOUS: f64 = 0.6;

/// The places that agree on another map, as a share of those that agree on this one.
pub(crate) fn rival([this, another]: [usize; 2]) -> f64 {
    another as f64 / this.max(1) as f64
}

/// The least mean agreement of structure (`cross::judge`) of two pictures of one scene between which nothing moved. It
/// is 0.92 or more for one scene, 0.58 to 0.64 for two scenes with the same captions and scales, and 0.66 to 0.8 for
/// two scenes with the same frame on a third of the picture.
pub(crate) const LIKE: f64 = 0.8;
/// An inlier did not move if its points in the two pictures are at most the first number of pixels apart. A map moves
/// nothing if the share [`UNMOVING`] of its inliers did not move: matches by chance beside a caption may have moved.
const STILL: f64 = 4.0;
const UNMOVING: f64 = 0.75;

/// A map counts as a similarity if no corner of A is farther off than this share of the longer side.
const SIMILAR: f64 = 0.003;

/// A map with fewer inliers than this is weak.
const FEW: usize = 60;

/// The number of cells along each axis of a picture, and how many features a cell must have to count.
const PLACES_ACROSS: usize = 16;
const FEATURES: usize = 4;

impl TiePoints {
    /// Of the cells of a grid with features in the part that both pictures show: how many have an inlier, and how many
    /// there are, in the picture with the lower ratio. `None` without a map, or if no cell has features.
    pub(crate) fn places_agreeing(
        &self,
        keypoints: [&[Keypoint]; 2],
        sizes: [Size; 2],
    ) -> Option<[usize; 2]> {
        let map = self.b_from_a?.homography()?;
        let maps = [map, map.inverse()?];
        let counts = |side: usize| {
            let mut places = [(0, false); PLACES_ACROSS * PLACES_ACROSS];
            let Size { width, height } = sizes[1 - side];
            let is_shown = |k: &&Keypoint| {
                maps[side].apply([k.x, k.y].map(f64::from)).is_some_and(|[x, y]| {
                    (-0.5..width as f64).contains(&x) && (-0.5..height as f64).contains(&y)
                })
            };
            let place = |k: &Keypoint| k.place(sizes[side], PLACES_ACROSS);
            keypoints[side].iter().filter(is_shown).for_each(|k| places[place(k)].0 += 1);
            for &i in &self.inliers {
                let m = &self.matches[i];
                places[place(&keypoints[side][[m.a, m.b][side] as usize])].1 = true;
            }
            let with_features = || places.iter().filter(|(features, _)| *features >= FEATURES);
            [with_features().filter(|(_, agrees)| *agrees).count(), with_features().count()]
        };
        let both = [counts(0), counts(1)].into_iter();
        both.min_by_key(|[agree, all]| 1000 * agree / all.max(&1)).filter(|[_, all]| *all > 0)
    }

    /// Whether features leave no doubt about the map: at least nine in ten cells with features have an inlier, and at
    /// least half of all cells have one.
    pub(crate) fn is_certain(&self, keypoints: [&[Keypoint]; 2], sizes: [Size; 2]) -> bool {
        let places = self.places_agreeing(keypoints, sizes);
        places.is_some_and(|[agree, all]| 10 * agree >= 9 * all && 2 * agree >= PLACES_ACROSS * PLACES_ACROSS)
    }

    /// Whether little supports the map: fewer than [`FEW`] inliers, or inliers in less than a third of the cells with features.
    /// Pictures of two sensors give such maps by chance.
    pub(crate) fn is_weak(&self, keypoints: [&[Keypoint]; 2], sizes: [Size; 2]) -> bool {
        let places = self.places_agreeing(keypoints, sizes);
        places.is_some_and(|[agree, all]| self.inliers.len() < FEW || 3 * agree < all)
    }

    /// Whether a map between pictures with these keypoints moves nothing.
    pub(crate) fn moves_nothing(&self, [a, b]: [&[Keypoint]; 2]) -> bool {
        let stays = |&&i: &&usize| {
            let Correspondence { a, b, .. } = self.matches[i].correspondence(a, b);
            length([b[0] - a[0], b[1] - a[1]]) <= STILL
        };
        let is_map = self.b_from_a.is_some_and(|model| model.homography().is_some());
        is_map && self.inliers.iter().filter(stays).count() as f64 >= UNMOVING * self.inliers.len() as f64
    }

    /// The map as a similarity, if it nearly is one and fewer than 70 % of the cells with features have an inlier.
    /// Captions and frames that were moved, scaled or turned with pictures of different things give such maps.
    pub(crate) fn similarity_in_part(
        &self,
        keypoints: [&[Keypoint]; 2],
        sizes: [Size; 2],
    ) -> Option<Similarity> {
        let [agree, all] = self.places_agreeing(keypoints, sizes)?;
        let (map, Size { width, height }) = (self.b_from_a?.homography()?, sizes[0]);
        let (middle, ends) = ([0.5 * width as f64, 0.5 * height as f64], [width as f64, height as f64]);
        let [xx, xy, yx, yy] = map.derivative(middle);
        let turn = [0.5 * (xx + yy), 0.5 * (yx - xy)];
        let linear = Similarity::new(turn, [0.0; 2]).ok()?;
        let (from, to) = (linear.apply(middle), map.apply(middle)?);
        let found = Similarity::new(turn, [to[0] - from[0], to[1] - from[1]]).ok()?;
        let is_near = |corner: [f64; 2]| {
            let (near, [x, y]) = (found.apply(corner), map.apply(corner)?);
            Some(length([near[0] - x, near[1] - y]) <= SIMILAR * length(turn) * ends[0].max(ends[1]))
        };
        let corners = [[0.0, 0.0], [ends[0], 0.0], ends, [0.0, ends[1]]];
        let is_similar = corners.into_iter().all(|corner| is_near(corner) == Some(true));
        (10 * agree < 7 * all && is_similar).then_some(found)
    }

    /// The epipolar geometry with its matches; `None` for another model.
    pub fn epipolar(&self, [a, b]: [&[Keypoint]; 2]) -> Option<EpipolarTies> {
        let Some(Model::Fundamental(fundamental)) = self.b_from_a else { return None };
        let inliers = self.inliers.iter().map(|&i| self.matches[i].correspondence(a, b)).collect();
        let first = self.first.iter().map(|m| m.correspondence(a, b)).collect();
        Some(EpipolarTies { fundamental, inliers, first })
    }

    /// The same tie points, with `hidden` set from the masks of A and of B.
    pub fn with_masks(self, masks: [Option<ImageView<'_, u8>>; 2]) -> Self {
        Self { hidden: masks.map(hidden_parts), ..self }
    }

    /// Matches and the estimate from them.
    pub(super) fn of(matches: Vec<Match>, found: Estimate) -> Self {
        let Estimate { b_from_a, inliers, rms_px, iterations } = found;
        Self { b_from_a: Some(b_from_a), inliers, rms_px, iterations, ..Self::without_model(matches) }
    }

    /// Matches that no model verifies: all are inliers.
    pub(crate) fn without_model(matches: Vec<Match>) -> Self {
        let inliers = (0..matches.len()).collect();
        Self {
            matches,
            b_from_a: None,
            inliers,
            rms_px: 0.0,
            iterations: 0,
            first: vec![],
            alternatives: None,
            unlike: None,
            fixed: None,
            hidden: Default::default(),
        }
    }
}

/// Which of the nine parts of a picture, row by row, this mask of one channel hides over more than three quarters of their area
/// ([`TiePoints::hidden`]).
pub fn hidden_parts(mask: Option<ImageView<'_, u8>>) -> [bool; 9] {
    let mut counts = [(0_usize, 0_usize); 9];
    let Some(mask) = mask else { return [false; 9] };
    for y in 0..mask.size().height {
        for (x, shown) in mask.row(y).iter().enumerate() {
            let (all, seen) = &mut counts[mask.size().cell([x as f64, y as f64], 3)];
            *all += 1;
            *seen += usize::from(*shown != 0);
        }
    }
    counts.map(|(all, seen)| 4 * seen < all)
}

/// If A has at least twice this many features, the first search takes an evenly thinned part of about this many of
/// them. The search with all features is then guided by their model.
const ENOUGH: usize = 16_384;

/// Tie points between two images. Matching runs on the processor's GPU if that supports it, with the same result as on
/// the CPU. If A has 32 768 features or more and the options ask for a second search near the model, the first search
/// takes an evenly thinned part of A's features, and all only if the second search confirms no model found with that
/// part.
///
/// # Errors
/// As [`TieOptions::check`], [`Matcher`] and [`estimate()`](crate::geometry::estimate()); [`Error::Device`] when the
/// GPU fails.
pub fn tie_points(
    a: &Features,
    b: &Features,
    options: &TieOptions,
    processor: &Processor,
) -> Result<TiePoints> {
    tie_features([a, b], [None, None], options, processor, ENOUGH)
}

/// As [`tie_points`], for features that may be in a GPU's memory, too.
pub(super) fn tie_found(
    found: [&FoundFeatures; 2],
    options: &TieOptions,
    processor: &Processor,
) -> Result<TiePoints> {
    let on_device = found.map(|found| found.on_device.clone());
    tie_features(found.map(|found| &found.features), on_device, options, processor, ENOUGH)
}

/// As [`tie_points`], with `enough` in place of [`ENOUGH`].
fn tie_features(
    [a, b]: [&Features; 2],
    on_device: [Option<GpuFeatures>; 2],
    options: &TieOptions,
    processor: &Processor,
    enough: usize,
) -> Result<TiePoints> {
    options.check()?;
    let mut matcher = Matcher::new(a, b, processor)?.with_uploaded(on_device);
    let keypoints = [a.keypoints.as_slice(), &b.keypoints];
    tie_thinned(keypoints, options, &processor.cpu, enough, |matching, every| match every {
        1 => matcher.match_features(matching),
        _ => matcher.match_some(matching, every),
    })
}

/// [`tie_points`] for features in a GPU's memory. The GPU matches them there; keypoints and matches are copied to the
/// host, which estimates the model.
///
/// # Errors
/// As [`tie_points`]; [`Error::Memory`] where the GPU's memory is too small, [`Error::Unsupported`] where it lacks
/// 64-bit floats.
pub fn tie_points_on_device(
    a: &GpuFeatures,
    b: &GpuFeatures,
    options: &TieOptions,
    cpu: &Cpu,
) -> Result<TiePoints> {
    tie_on_device([a, b], options, cpu).map(|(tie, _)| tie)
}

/// As [`tie_points_on_device`], with the keypoints on the host.
pub(super) fn tie_on_device(
    [a, b]: [&GpuFeatures; 2],
    options: &TieOptions,
    cpu: &Cpu,
) -> Result<(TiePoints, [Vec<Keypoint>; 2])> {
    options.check()?;
    let matcher = GpuMatcher::new(a.gpu());
    let on_host = [a.download_keypoints()?, b.download_keypoints()?];
    let keypoints = on_host.each_ref().map(Vec::as_slice);
    let tie = tie_thinned(keypoints, options, cpu, ENOUGH, |matching, every| match every {
        1 => matcher.match_features(a, b, matching),
        _ => matcher.match_some([a, b], keypoints.map(<[_]>::len), matching, every),
    })?;
    Ok((tie, on_host))
}

/// Tie points from the matches that `search` finds; its second argument is n to search with every n-th feature of A.
/// If A has many features, the first model is found with about `enough` of them.
fn tie_thinned(
    keypoints: [&[Keypoint]; 2],
    options: &TieOptions,
    cpu: &Cpu,
    enough: usize,
    mut search: impl FnMut(&MatchOptions, usize) -> Result<Vec<Match>>,
) -> Result<TiePoints> {
    let pair = Pair { keypoints, options, cpu };
    let every = keypoints[0].len() / enough;
    if let (2.., Some(kind), Some(rematch)) = (every, options.model, options.rematch) {
        let some = search(&options.matching, every)?;
        if let Some(found) = determined(pair.estimate(Precision::Guiding, kind, &some))? {
            let first = Tied { matches: some.clone(), found };
            let (tied, rounds) =
                pair.again(Precision::Guiding, first, &rematch, |matching| search(matching, 1))?;
            if rounds > 0 {
                return Ok(TiePoints { first: some, ..TiePoints::of(tied.matches, tied.found) });
            }
        }
    }
    tie_points_by(keypoints, options, cpu, |matching| search(matching, 1))
}

/// Tie points from matches of another program: the options' model is estimated from them, and nothing else is searched.
///
/// # Errors
/// As [`tie_points`], and [`Error::Mismatch`] for a match of a keypoint that does not exist.
pub fn tie_given(
    keypoints: [&[Keypoint]; 2],
    matches: &[Match],
    options: &TieOptions,
    cpu: &Cpu,
) -> Result<TiePoints> {
    options.check()?;
    let [a, b] = keypoints.map(<[Keypoint]>::len);
    if let Some(i) = matches.iter().position(|m| m.a as usize >= a || m.b as usize >= b) {
        let Match { a: of_a, b: of_b, .. } = matches[i];
        return Err(Error::Mismatch(format!(
            "match {i} is of the keypoints {of_a} and {of_b}, but there are {a} and {b}"
        )));
    }
    let tied = tie_points_by(keypoints, &options.with_rematch(None), cpu, |_| Ok(matches.to_vec()));
    match tied {
        Ok(tied) => Ok(TiePoints { first: vec![], ..tied }),
        Err(Error::NoModel { error, .. }) => Err(Error::NoModel {
            error,
            compared: format!("{} matches were given", counted(matches.len())),
            advice: "Another `--model`, or a greater `--inlier-distance`, may agree with them".into(),
        }),
        Err(error) => Err(error),
    }
}

/// Tie points from the matches that `search` finds.
pub(super) fn tie_points_by(
    keypoints: [&[Keypoint]; 2],
    options: &TieOptions,
    cpu: &Cpu,
    mut search: impl FnMut(&MatchOptions) -> Result<Vec<Match>>,
) -> Result<TiePoints> {
    let pair = Pair { keypoints, options, cpu };
    let matches = search(&options.matching)?;
    let Some(kind) = options.model else {
        let first = matches.clone();
        return Ok(TiePoints { first, ..TiePoints::without_model(matches) });
    };
    let found = pair.estimate(Precision::Settled, kind, &matches).map_err(|error| {
        let [matches, a, b] = [matches.len(), keypoints[0].len(), keypoints[1].len()].map(counted);
        let compared = format!("{matches} matches of {a} and {b} features");
        no_model(error, kind, options.robust.threshold_px, compared)
    })?;
    let first = matches.clone();
    let tied = Tied { matches, found };
    let tied = match options.rematch {
        None => tied,
        Some(rematch) => pair.again(Precision::Settled, tied, &rematch, search)?.0,
    };
    Ok(TiePoints { first, ..TiePoints::of(tied.matches, tied.found) })
}

/// The error of an estimation with this threshold, with what was compared and with advice; other errors do not change.
pub(super) fn no_model(error: Error, kind: ModelKind, threshold_px: f64, compared: String) -> Error {
    if !matches!(error.kind(), ErrorKind::TooFewMatches | ErrorKind::Degenerate) {
        return error;
    }
    let other = match kind {
        ModelKind::Homography => "`--model affine` or `similarity` for little in common, ",
        ModelKind::Affine => "`--model similarity` for little in common, ",
        ModelKind::Rigid => "`--model similarity` for different scales, ",
        ModelKind::Translation => "`--model similarity` for different scales or turns, ",
        _ => "",
    };
    let advice = match kind {
        ModelKind::Fundamental | ModelKind::Essential => format!(
            "A flat scene, or pictures from one place, have no epipolar geometry: `register` lays one on the other. Try \
             `--contrast 0.02` for dull pictures, `--inlier-distance {}` for lenses that bend lines, or `rectify --calibration`, \
             which needs no model",
            3.0 * threshold_px
        ),
        _ => format!(
            "Try {other}`--views 43` for viewpoints far apart, `--contrast 0.02` for dull pictures; a scene with depth has no \
             map from one picture to the other (`match --model fundamental`, `rectify`)"
        ),
    };
    let advice = format!("Do both pictures show the same thing? {advice}");
    Error::NoModel { error: Box::new(error), compared, advice }
}

#[derive(Clone, Copy)]
struct Pair<'a> {
    keypoints: [&'a [Keypoint]; 2],
    options: &'a TieOptions,
    cpu: &'a Cpu,
}

/// Matches and the estimate from them.
struct Tied {
    matches: Vec<Match>,
    found: Estimate,
}

impl Pair<'_> {
    /// The places of the matches, and the options of an estimation of this precision.
    fn input(self, precision: Precision, matches: &[Match]) -> (Vec<Correspondence>, RobustOptions) {
        let [a, b] = self.keypoints;
        let places = matches.iter().map(|m| m.correspondence(a, b)).collect();
        (places, self.options.robust.with_precision(precision))
    }

    fn estimate(self, precision: Precision, kind: ModelKind, matches: &[Match]) -> Result<Estimate> {
        let (places, robust) = self.input(precision, matches);
        estimate(kind, &places, &robust, self.cpu)
    }

    fn refine(self, precision: Precision, start: &Model, matches: &[Match]) -> Result<Estimate> {
        let (places, robust) = self.input(precision, matches);
        refine(start, &places, &robust, self.cpu)
    }

    /// Searches near what the model predicts and refines it while the number of inliers does not fall. The result, and
    /// the number of rounds kept. Models that only lead to another search are found to the precision `guiding`.
    fn again(
        self,
        guiding: Precision,
        mut tied: Tied,
        rematch: &Rematch,
        mut search: impl FnMut(&MatchOptions) -> Result<Vec<Match>>,
    ) -> Result<(Tied, usize)> {
        let (iterations, most) = (tied.found.iterations, usize::from(rematch.rounds));
        let mut rounds = 0;
        let mut precision = guiding;
        while rounds < most {
            let start = tied.found.b_from_a;
            let radius = rematch.radius * self.options.robust.threshold_px;
            let guide = Some(Guide { b_from_a: start, radius });
            let ratio = Some(rematch.ratio);
            let matches = search(&MatchOptions { guide, ratio, mutual: true, ..self.options.matching })?;
            let settled = matches == tied.matches;
            let last = settled || rounds + 1 == most;
            let wanted = if last { Precision::Settled } else { guiding };
            let refined = determined(self.refine(wanted, &start, &matches))?;
            let no_worse = |refined: &Estimate| {
                let agreeing = refined.inliers.len();
                agreeing >= tied.found.inliers.len()
                    && !is_mostly_chance(start.kind(), rematch, matches.len(), agreeing)
            };
            let Some(found) = refined.filter(no_worse) else { break };
            tied = Tied { matches, found: Estimate { iterations, ..found } };
            (precision, rounds) = (wanted, rounds + 1);
            if settled {
                break;
            }
        }
        if rounds > 0 && precision == Precision::Guiding {
            let found = self.refine(Precision::Settled, &tied.found.b_from_a, &tied.matches)?;
            tied.found = Estimate { iterations, ..found };
        }
        Ok((tied, rounds))
    }
}

/// Whether chance could explain half of the inliers of a search near a model. Wrong matches are spread evenly over what
/// was searched, so the number beyond the inlier threshold tells how many wrong ones lie within it.
fn is_mostly_chance(kind: ModelKind, rematch: &Rematch, found: usize, agreeing: usize) -> bool {
    // The share of the searched area (a circle about a point, or a band along a line) that is within the threshold.
    let within =
        if kind.is_epipolar() { 1.0 / rematch.radius } else { 1.0 / (rematch.radius * rematch.radius) };
    let beyond = found.saturating_sub(agreeing) as f64;
    2.0 * beyond * within > agreeing as f64 * (1.0 - within)
}

/// The estimate, or `None` where the matches do not determine the model.
pub(super) fn determined(estimated: Result<Estimate>) -> Result<Option<Estimate>> {
    match estimated {
        Err(Error::TooFewMatches { .. } | Error::Degenerate { .. }) => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::feature::Descriptors;
    use crate::image::Size;

    /// Features on a grid that is shifted by (3, 2) px from A to B; descriptors of different pairs differ.
    fn shifted() -> [Features; 2] {
        [0.0, 1.0].map(|side| {
            let keypoints = (0..36_u8).map(|i| {
                let (x, y) = (f32::from(i % 6) * 10.0 + 3.0 * side, f32::from(i / 6) * 10.0 + 2.0 * side);
                Keypoint { x, y, scale: 2.0, sign: 1, ..Keypoint::default() }
            });
            let descriptors = (0..36 * 40).map(|at| if at % 41 == 0 { 255 } else { 0 }).collect();
            let descriptors = Descriptors::U8(descriptors);
            Features { keypoints: keypoints.collect(), descriptors, dimension: 40, image: Size::new(80, 80) }
        })
    }

    #[test]
    fn a_second_search_that_fails_is_an_error_and_one_without_matches_changes_nothing() {
        let ([a, b], options) = (shifted(), TieOptions::default());
        let cpu = Cpu::sequential();
        let processor = cpu.clone().into();
        let whole = tie_points(&a, &b, &options, &processor).unwrap();
        assert_eq!(whole.inliers.len(), 36, "all agree");
        let mut matcher = Matcher::new(&a, &b, &processor).unwrap();
        let mut with_second = |second: Result<Vec<Match>>| {
            let (mut searches, mut second) = (0, Some(second));
            let search = |matching: &MatchOptions| {
                searches += 1;
                match matching.guide {
                    None => matcher.match_features(matching),
                    Some(_) => second.take().unwrap(),
                }
            };
            let found = tie_points_by([&a.keypoints, &b.keypoints], &options, &cpu, search);
            assert_eq!(searches, 2);
            found
        };
        let lost = Error::Device { device: "card".into(), reason: "it fell off the bus".into() };
        assert_eq!(with_second(Err(lost)).unwrap_err().kind(), ErrorKind::Device, "the device's error");
        assert_eq!(with_second(Ok(vec![])).unwrap().inliers.len(), 36, "inliers of the first search");
    }

    /// As in a forest, there is a similar but wrong feature near each point that a right but inexact model predicts.
    #[test]
    fn a_second_search_with_chance_matches_keeps_the_first_result() {
        let (trees, marks) = (100_usize, 36_usize);
        let mut random = crate::numeric::Random::new(3);
        let mut unit = || random.below(1_000_001) as f32 * 1e-6;
        let [mut a, mut b] = shifted();
        let places: Vec<[f32; 2]> = (0..trees).map(|_| [78.0 * unit(), 78.0 * unit()]).collect();
        let (mut lonely, mut all) = (vec![], vec![]);
        for i in 0..marks as u32 {
            let m = Match { a: i, b: i, distance: 1.0, ratio: 0.5 };
            lonely.push(m);
            all.push(m);
        }
        let keypoint = a.keypoints[0];
        for (i, [x, y]) in places.iter().enumerate() {
            // A random point within 6 px of the predicted one.
            let (r, t) = (6.0 * unit().sqrt(), std::f32::consts::TAU * unit());
            a.keypoints.push(Keypoint { x: *x, y: *y, ..keypoint });
            b.keypoints.push(Keypoint { x: x + 3.0 + r * t.cos(), y: y + 2.0 + r * t.sin(), ..keypoint });
            let i = (marks + i) as u32;
            all.push(Match { a: i, b: i, distance: 2.0, ratio: 0.85 });
        }
        let cpu = Cpu::sequential();
        let options = TieOptions::default();
        for (step, is_kept) in [(1, false), (3, true)] {
            let first: Vec<Match> = lonely.iter().step_by(step).copied().collect();
            let second = [&first, &all[marks..]].concat();
            let search = |matching: &MatchOptions| {
                Ok(if matching.guide.is_none() { first.clone() } else { second.clone() })
            };
            let found = tie_points_by([&a.keypoints, &b.keypoints], &options, &cpu, search).unwrap();
            let (agree, matches) = (found.inliers.len(), found.matches.len());
            assert_eq!(
                matches == first.len(),
                is_kept,
                "{agree} of {matches} agree, {} at first",
                first.len()
            );
        }
    }

    /// A subset of the features finds the model; if it finds none, all features are searched.
    #[test]
    fn a_subset_of_many_features_leads_to_the_matches_of_all() {
        let ([a, b], options) = (shifted(), TieOptions::default());
        let cpu = Cpu::sequential();
        let mut processors = vec![Processor::from(cpu.clone())];
        let gpus = crate::device::gpu::all().iter().filter(|gpu| gpu.info().has_f64);
        processors.extend(gpus.map(|gpu| Processor::with_gpu(cpu.clone(), gpu.clone())));
        for processor in &processors {
            let tie = |enough| tie_features([&a, &b], [None, None], &options, processor, enough).unwrap();
            let whole = tie(a.len());
            for enough in [18, 12, 4, 1] {
                let found = tie(enough);
                assert_eq!(found.matches, whole.matches, "{processor:?}, {enough} of {}", a.len());
                assert_eq!(found.inliers, whole.inliers, "{processor:?}, {enough} of {}", a.len());
                let twelve = found.b_from_a.unwrap().homography().unwrap().apply([20.0, 30.0]).unwrap();
                assert!((twelve[0] - 23.0).abs() + (twelve[1] - 32.0).abs() < 1e-6, "{twelve:?}");
            }
        }
    }

    #[test]
    fn every_device_finds_the_same_and_notes_work_of_the_cpu() {
        let ([a, b], options) = (shifted(), TieOptions::default());
        let cpu = Cpu::sequential();
        let expected = tie_points(&a, &b, &options, &cpu.clone().into()).unwrap();
        for gpu in crate::device::gpu::all() {
            let processor = Processor::with_gpu(cpu.clone(), gpu.clone());
            assert_eq!(tie_points(&a, &b, &options, &processor).unwrap(), expected, "{gpu:?}");
            let notes = processor.take_notes();
            assert_eq!(notes.is_empty(), gpu.info().has_f64, "{gpu:?}: {notes:?}");
            let there = [&a, &b].map(|features| GpuFeatures::upload(gpu, features).unwrap());
            match tie_points_on_device(&there[0], &there[1], &options, &cpu) {
                Err(error) => assert!(error.is_device_limit() && !gpu.info().has_f64, "{gpu:?}: {error}"),
                found => assert_eq!(found.unwrap(), expected, "with features on {gpu:?}"),
            }
        }
    }
}
