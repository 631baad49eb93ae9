//! Whether tie points and their model can be believed.
//!
//! Inliers are near the model by definition, so they cannot show that it is wrong. The following can:
//!
//! - **First matches**, found without a model: how many agree with it, and how many of the others are right. A wrong
//!   match lies anywhere, with any scale and turn of its features. So a rejected match with the model's scale and turn,
//!   not far from the predicted point, whose neighbours deviate as it does, is likely right, and the model is wrong
//!   there: depth displaces points by a few per cent of the picture. They are counted in 3 × 3 parts of A.
//! - **Residuals** of the first matches near a map: noise differs from match to match, but depth displaces neighbours
//!   in the same way, even where it is too small to make matches outliers ([`deviations`](super::deviations)).
//! - **Chance.** Wrong matches are spread evenly about the predicted point, so their number within the threshold
//!   follows from the number of matches in a ring just outside it.
//! - **Scale and turn** of the inliers, which the model did not use.
//! - **Number and spread** of the inliers over the nine parts. Inliers at the same points, such as a row that a file
//!   holds twice, count once.
//! - **Unmoved** pictures: if nothing moved, there are inliers wherever there are features. A caption, frame or logo on
//!   pictures of different things gives inliers only on itself.
//! - **Parallax**: if most inliers lie on a plane, an epipolar geometry needs others off that plane, which deviate from
//!   it as their neighbours do. Wrong matches of a repeated pattern on the plane obey an epipolar geometry, too, but
//!   their neighbours lie on the plane.
//! - **Reach**: in parts without inliers a map is extrapolated. The residuals that neighbours have in common grow there
//!   as the variance of a least-squares fit does ([`reach`](super::reach)).
//!
//! Pictures that were tied by their structure have no first search, and their places have no scale or turn. The share
//! of the places that agree replaces the first matches. It hardly reveals a wrong map, because the map was fitted to
//! the same places. What reveals one are other maps that fit as well: the number of places of the search that agree on
//! another map, and structure that repeats itself.

#[cfg(test)]
mod tests;

use super::deviations::{Deviation, Deviations};
use super::reach::{amplification, amplification_of_noise};
use super::{Assessment, Reason, Verdict, percent};
use crate::device::Cpu;
use crate::error::counted;
use crate::feature::Keypoint;
use crate::geometry::estimate::{estimate, residuals};
use crate::geometry::{Correspondence, Homography, Model, ModelKind, RobustOptions};
use crate::image::Size;
use crate::matching::Match;
use crate::numeric::{length, median, sin_cos};
use crate::register::{AMBIGUOUS, Alternatives, LIKE, TieOptions, TiePoints, rival};
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// Rejected first matches count against the model if they are off by more than this many thresholds. Right matches of
/// large features are off by less, and by default the second search reaches this far.
const FAR: f64 = 2.0;
/// Rejected first matches count against the model if they are off by at most this share of the longer side: depth
/// displaces points by less, and few wrong matches are that near.
const NEAR: f64 = 0.125;
/// The residual that neighbours have in common counts only if it, or the reach, is at least this share of the
/// threshold: lenses bend pictures by less.
const BENT: f64 = 1.0 / 3.0;
/// The inner edge of the ring, in thresholds. Hardly any right match is further out.
const RING: f64 = 1.2;
/// The outer edge where there was no second search.
const OUTER: f64 = 2.0;
/// Fewer matches than this in a part of the picture say nothing about the model there.
const TELLING: usize = 8;
/// The fewest inliers with which a part supports the model.
const SUPPORTED: usize = 3;

// Limits from which a number is doubtful, and poor; "below" marks those where small numbers are bad. On pairs with
// truth (`docs/verdicts.md`) the numbers of nearly all right models are good.

/// The share of the right first matches that the model rejects.
const REJECTED: [f64; 2] = [0.12, 0.3];
/// The number of parts of the picture where the model rejects more right matches than it accepts.
const MISFIT: [f64; 2] = [1.0, 2.0];
/// The share of the residuals that neighbours have in common.
const COMMON: [f64; 2] = [0.7, 0.85];
/// The share of the first matches that agree with a map; below.
const AGREEING: [f64; 2] = [0.15, 0.02];
/// The share of first matches that agree with an epipolar geometry; below. Many lie in the band along a line by chance.
const AGREEING_BAND: [f64; 2] = [0.3, 0.1];
/// The share of inliers that are expected by chance.
const CHANCE: [f64; 2] = [0.2, 0.5];
/// The share of the inliers whose scale or turn contradicts the model.
const CONTRARY: [f64; 2] = [0.2, 0.5];
/// The number of inliers; below. A homography gets up to seven by chance (`false_alarms` refuses models that chance
/// explains); fewer than some tens do not show whether neighbours deviate in the same way.
const INLIERS: [f64; 2] = [40.0, 8.0];
/// The share of the parts seen in both pictures that support the model; below.
const SPREAD: [f64; 2] = [0.6, 0.3];
/// How far a map is likely off where no inlier is near, in thresholds.
const REACH: [f64; 2] = [1.0, 2.0];
/// The share of the places tied by structure, or of the given matches, that agree; below.
const PLACES: [f64; 2] = [0.9, 0.6];
/// The share of the corners matched by structure near a map that agree with an epipolar geometry; below. Most corners
/// look different to two sensors: in 14 right pairs 0.21 to 0.45 agreed.
const CORNERS: [f64; 2] = [0.2, 0.1];
/// The places that agree on another map, as a share of those that agree on this one.
const RIVAL: [f64; 2] = [AMBIGUOUS, 1.0];
/// The number of first matches that agree with a rival map (this map displaced, or a similarity), as a share of those
/// that agree with this map.
const DISPLACED: [f64; 2] = [0.25, 1.0];
/// The fewest matches of a rival map.
const SEVERAL: usize = 5;
/// The least distance between the places that the two maps predict for a match of the rival, in pixels.
const ELSEWHERE: f64 = 16.0;
/// The most matches, and the most samples, by which a rival similarity is estimated.
const SEEN: usize = 1000;
const SAMPLES: usize = 500;
/// If the map moves nothing: the share of the cells with features that have an inlier; below. Two pictures of one scene, one
/// much darker, have 0.7.
const UNMOVED: [f64; 2] = [0.7, 0.0];
/// The same if the map only shifts the picture. Right pairs, with noise and other light, have 0.72 to 0.97. A caption
/// or logo at different places of two pictures of different things has 0.29 to 0.58, and up to 0.83 if it fills half of
/// the overlap.
const SHIFTED: [f64; 2] = [0.6, 0.0];
/// A map only shifts the picture if its derivatives differ from those of a translation by less than this.
const UPRIGHT: f64 = 0.1;
/// The agreement of structure if the map moves nothing; below.
const UNLIKE: [f64; 2] = [LIKE, 0.0];
/// The correlation of grey values if structure says that nothing moved. Pictures of two sensors have −0.2 to 0.34.
const IN_COMMON: [f64; 2] = [0.35, f64::INFINITY];
/// The share of the inliers that did not move; above. A map between resting dust and a scene that moved by a pixel or
/// two has 0.3 to 0.6.
const STAYED: [f64; 2] = [0.2, f64::INFINITY];
/// An inlier did not move if its motion is below the first number times its residual, and this is above the second
/// (px).
const STAYS: [f64; 2] = [1.0 / 3.0, 0.2];
/// The share of the inliers off the plane whose neighbours deviate as they do; below. On planes it is 0 to 0.1, in
/// scenes with depth 0.37 or more. It counts if at least the share [`ON_PLANE`] of the inliers lies on one plane.
const PARALLAX: [f64; 2] = [0.25, 0.1];
const ON_PLANE: f64 = 0.75;
/// The number of places on which the halves of a picture agree, less [`BY_CHANCE`], as a share of the places that agree
/// on the map. Right pairs have at most 0.19, two parts of one facade at least 0.57.
const HALVES: [f64; 2] = [0.35, 1.0];
/// Halves that show different things agree on 6 to 19 places by chance.
const BY_CHANCE: usize = 12;
/// The share of the ninths of the overlap in which structure agrees by chance alone, though it agrees elsewhere. One of
/// 40 right pairs of two sensors had such a ninth; maps right in the middle and off by 12 to 57 px at an edge had 1 to
/// 3.
const PARTS_BY_CHANCE: [f64; 2] = [0.05, 0.5];
/// The correlation of structure with itself displaced.
const REPEATS: [f64; 2] = [0.6, 0.9];

/// What to do about right matches that a map cannot follow.
const DEPTH: &str = "Depth in the scene? A map from picture to picture cannot follow it: `tiepoint match A B --model \
                     fundamental`, then `tiepoint rectify A B`";
/// What to do if only captions and frames may agree.
const CAPTIONS: &str =
    "Captions, a frame or a logo on pictures of different things? Mask them (`--mask`, `--mask-b`)";
/// What to do if nothing moved, but the pictures agree only in part.
const FIXED: &str = "Captions, a frame, dust or hot pixels on pictures of different things? Mask them (`--mask`, `--mask-b`). If two \
                     sensors made the pictures, `--modality cross`";
/// What to do if some of the inliers do not move with the others.
const STAYING: &str = "Dust, hot pixels or a caption on a scene that moved a little? Mask them (`--mask`, `--mask-b`), or take a smaller \
                       `--inlier-distance`";
/// What to do if many inliers are due to chance.
const FEWER: &str = "Leave out weak matches (`--ratio 0.7`, `--no-rematch`)";

/// What to do where another map may be right.
const LOOK: &str = "Do both pictures show the same place? Look at one laid on the other (`tiepoint register --overlay`), \
                    or crop them to what occurs once";

/// What to do where a map may be right only in a part.
const ONLY_A_PART: &str = "Look at one laid on the other (`tiepoint register --overlay`): do edges continue there? If not, crop both \
                          to the part in which they do, or first remove lens distortion and known perspective";

fn other_maps(of: Alternatives, is_epipolar: bool, reasons: &mut Vec<Reason>) {
    let Alternatives { places, halves, repeats, repeats_px, parts_by_chance: [by_chance, parts] } = of;
    let text = format!("{} places of the search agree on this map, {} on another", places[0], places[1]);
    reasons.push(Reason::share_above("rival", rival(places), RIVAL, text, LOOK));
    let share = halves.saturating_sub(BY_CHANCE) as f64 / places[0].max(1) as f64;
    let text = format!(
        "{} places of the search agree on this map, {halves} on one from half of a picture to its other half",
        places[0]
    );
    reasons.push(Reason::share_above("halves", share, HALVES, text, LOOK));
    reasons.push(Reason {
        measure: "repeats",
        value: repeats,
        expected: format!("below {}", REPEATS[0]),
        verdict: Verdict::above(repeats, REPEATS),
        text: format!("the structure resembles itself {repeats_px:.0} px away (correlation {repeats:.2})"),
        next: Some(LOOK.into()),
    });
    // In a scene with depth, structure off the plane of the map by which the search was guided need not agree with it.
    if !is_epipolar {
        let text = format!("in {by_chance} of {parts} parts structure agrees no better than by chance");
        let share = by_chance as f64 / parts.max(1) as f64;
        reasons.push(Reason::share_above("parts", share, PARTS_BY_CHANCE, text, ONLY_A_PART));
    }
}

/// The largest number of these displacements in a block of 3 × 3 cells of side `side`.
fn most_alike(displacements: impl Iterator<Item = [f64; 2]>, side: f64) -> usize {
    let mut counts: HashMap<[i64; 2], usize> = HashMap::new();
    displacements.for_each(|by| *counts.entry(by.map(|v| (v / side).floor() as i64)).or_default() += 1);
    let around = |[x, y]: [i64; 2]| (-1..=1).flat_map(move |v| (-1..=1).map(move |u| [x + u, y + v]));
    let within = |at: &[i64; 2]| around(*at).filter_map(|at| counts.get(&at)).sum();
    counts.keys().map(within).max().unwrap_or(0)
}

/// About how many matches agree on a similarity, estimated from at most [`SEEN`] of them; 0 if chance could explain it.
fn on_a_similarity(pairs: Vec<Correspondence>, threshold: f64) -> usize {
    let step = pairs.len().div_ceil(SEEN).max(1);
    let seen: Vec<_> = pairs.into_iter().step_by(step).collect();
    let options = RobustOptions::default().with_threshold_px(threshold).with_max_iterations(SAMPLES);
    let found = estimate(ModelKind::Similarity, &seen, &options, &Cpu::sequential());
    found.map_or(0, |found| step * found.inliers.len())
}

/// One of nine parts of A.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cell {
    /// Inliers there.
    pub inliers: usize,
    /// Their median residual, in pixels; none without inliers.
    pub residual_px: Option<f64>,
    /// First matches (or given matches) there that agree with the model.
    pub agreeing: usize,
    /// First (or given) matches there that the model rejects but that are likely right: two thresholds to an eighth of
    /// the longer side away, with the model's scale and turn if known, and with neighbours that deviate as they do.
    pub near: usize,
    /// The median residual of these likely right matches, in pixels: how far off the model is there; none if there are
    /// fewer than eight.
    pub off_px: Option<f64>,
}

impl Cell {
    /// The number of matches that count for the model: the agreeing first (or given) matches or, if that is more, half
    /// of the inliers, because the second search adds many inliers to a right model.
    fn taken(&self) -> f64 {
        (self.agreeing as f64).max(0.5 * self.inliers as f64)
    }

    /// How far the model is off there, in pixels, if it rejects more right matches than it accepts.
    pub fn misfit_px(&self) -> Option<f64> {
        self.off_px.filter(|_| self.near as f64 > self.taken())
    }
}

/// What was measured about a pair.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairEvidence {
    /// Matches of the last search, or given ones.
    pub matches: usize,
    /// The number of given matches that their file marks as right, if it marks others as wrong.
    #[serde(skip)]
    pub chosen: Option<usize>,
    /// Inliers among them.
    pub inliers: usize,
    /// Inliers at different places of both pictures.
    #[serde(skip)]
    pub different: usize,
    /// How many of the nine parts of A have three of these or more.
    #[serde(skip)]
    pub supported: usize,
    /// Matches of the first search; 0 where pictures were tied by their structure.
    pub first: usize,
    /// Those of them, or of given matches, that agree with the model.
    pub agreeing: usize,
    /// How many inliers chance alone would give; none where the search left no ring.
    pub by_chance: Option<f64>,
    /// Inliers that contradict the model's scale or turn; none where the model or the features say nothing about these.
    pub contrary: Option<usize>,
    /// The greatest number of first matches that agree on another map: this one displaced, as where something repeats
    /// itself, or a similarity. None where the model is no map.
    pub rival: Option<usize>,
    /// The share of the places with features, of 16 × 16, in which an inlier lies: in A or in B, whichever is less; none where a
    /// quarter of the inliers moved.
    pub unmoved: Option<f64>,
    /// The same where the map moves one picture over the other, but neither turns nor scales it much: a caption that stands
    /// elsewhere on another picture.
    pub shifted: Option<f64>,
    /// [`TiePoints::unlike`].
    pub unlike: Option<f64>,
    /// [`TiePoints::fixed`].
    pub fixed: Option<f64>,
    /// The share of the inliers that did not move although the map moves them; none if the model is no map.
    pub stayed: Option<f64>,
    /// Of the inliers off the plane of most inliers, the share whose neighbours deviate from it as they do; none if the
    /// model is a map, or fewer than three quarters of the inliers lie on one plane.
    pub parallax: Option<f64>,
    /// The share of the residuals of first (or given) matches that neighbours have in common; none if the model is no
    /// map, and for few matches.
    pub common: Option<f64>,
    /// The root mean square of the common part of the residuals, in pixels.
    pub common_px: Option<f64>,
    /// The likely error of the map in the worst part that both pictures show, in pixels, from the common part of the
    /// residuals and the noise of the inliers; none if the model is no map, or too few inliers determine it.
    pub reach_px: Option<f64>,
    /// Evidence for other maps; none if pictures were not tied by their structure.
    pub alternatives: Option<Alternatives>,
    /// The residual up to which a match is an inlier, in pixels.
    #[serde(skip)]
    pub threshold_px: f64,
    /// Nine parts of A, row by row.
    pub cells: [Cell; 9],
    /// The number of parts not masked in A whose middle the map takes into a part of B that is not masked either; for
    /// an epipolar geometry, the number not masked in A.
    pub shared: usize,
    /// The model.
    #[serde(skip)]
    pub model: Model,
}

impl PairEvidence {
    /// Measures tie points between these keypoints of A and of B, pictures of these sizes, found with these options; `None`
    /// where they have no model.
    pub fn of(
        keypoints: [&[Keypoint]; 2],
        sizes: [Size; 2],
        tie: &TiePoints,
        options: &TieOptions,
    ) -> Option<Self> {
        let model = tie.b_from_a?;
        // Features of other programs may lack the size of their picture; it is about the extent of the keypoints.
        let extent = |keypoints: &[Keypoint], along: fn(&Keypoint) -> f32| {
            (keypoints.iter().map(along).fold(0.0, f32::max).ceil() as usize).saturating_add(1)
        };
        let [size, size_b] = [0, 1].map(|i| match sizes[i].area() {
            0 => Size::new(extent(keypoints[i], |k| k.x), extent(keypoints[i], |k| k.y)),
            _ => sizes[i],
        });
        // Places tied by structure and matches that were given have no scale or turn of their own.
        let has_descriptors = !tie.first.is_empty();
        let pair_of = |m: &Match| m.correspondence(keypoints[0], keypoints[1]);
        let residuals_of = |matches: &[Match]| {
            residuals(&model, &matches.iter().map(pair_of).collect::<Vec<Correspondence>>())
        };
        let threshold = options.robust.threshold_px;
        let homography = model.homography();
        let map = homography.filter(|_| has_descriptors);
        let known = known(keypoints);
        let contradicts =
            |m: &Match| map.as_ref().map_or([false; 2], |map| contradicts(map, keypoints, known, m));
        let contrary = |m: &Match| contradicts(m) != [false; 2];
        let place = |m: &Match| keypoints[0][m.a as usize].place(size, 3);
        let reach = NEAR * size.width.max(size.height) as f64;
        let (mut cells, mut taken, mut near) =
            ([Cell::default(); 9], [const { vec![] }; 9], [const { vec![] }; 9]);
        let last = residuals_of(&tie.matches);
        for &i in &tie.inliers {
            taken[place(&tie.matches[i])].push(last[i]);
        }
        // Common deviations of neighbours show in given matches, too. Places tied by structure were fitted already.
        let is_given = !has_descriptors && tie.alternatives.is_none();
        let measured = if is_given { &tie.matches } else { &tie.first };
        let first = residuals_of(measured);
        for (m, residual) in measured.iter().zip(&first) {
            cells[place(m)].agreeing += usize::from(*residual <= threshold);
        }
        // The first (or given) matches that are not far from a map, with their residuals.
        let (within, deviations): (Vec<_>, Vec<_>) = measured
            .iter()
            .zip(first)
            .filter(|(m, residual)| *residual <= reach && !contrary(m))
            .filter_map(|(m, residual)| {
                let Correspondence { a, b, .. } = pair_of(m);
                let [x, y] = homography.as_ref()?.apply(a)?;
                Some(((m, residual), Deviation { at: a, by: [b[0] - x, b[1] - y] }))
            })
            .unzip();
        let rival = map.map(|map| {
            let others = tie.first.iter().filter_map(|m| {
                let pair @ Correspondence { a, b, .. } = pair_of(m);
                let [x, y] = map.apply(a)?;
                let by = [b[0] - x, b[1] - y];
                (length(by) > ELSEWHERE).then_some((pair, by, contrary(m)))
            });
            let others: Vec<_> = others.collect();
            let displaced = others.iter().filter(|(.., contrary)| !contrary).map(|(_, by, _)| *by);
            let pairs = others.iter().map(|(pair, ..)| *pair).collect();
            most_alike(displaced, FAR * threshold).max(on_a_similarity(pairs, FAR * threshold))
        });
        let places = map.and_then(|_| tie.places_agreeing(keypoints, [size, size_b]));
        let places = places.map(|[agree, all]| agree as f64 / all as f64);
        let unmoved = places.filter(|_| tie.moves_nothing(keypoints));
        let is_shift = map.is_some_and(|map| {
            let [xx, xy, yx, yy] = map.derivative([size.width, size.height].map(|n| 0.5 * n as f64));
            [xx - 1.0, xy, yx, yy - 1.0].iter().all(|v| v.abs() < UPRIGHT)
        });
        let shifted = places.filter(|_| is_shift && unmoved.is_none());
        let stays = |&&i: &&usize| {
            let Correspondence { a, b, .. } = pair_of(&tie.matches[i]);
            last[i] > STAYS[1] && length([b[0] - a[0], b[1] - a[1]]) < STAYS[0] * last[i]
        };
        let staying = homography.map(|_| tie.inliers.iter().filter(stays).count() as f64);
        let stayed = staying.map(|staying| staying / tie.inliers.len().max(1) as f64);
        let deviations = Deviations::new(deviations);
        for (i, (m, residual)) in within.into_iter().enumerate() {
            if residual > FAR * threshold && deviations.is_supported(i, threshold) {
                near[place(m)].push(residual);
            }
        }
        let common = deviations.common(FAR * threshold);
        for (cell, (taken, near)) in cells.iter_mut().zip(taken.into_iter().zip(near)) {
            (cell.inliers, cell.near) = (taken.len(), near.len());
            cell.residual_px = median(taken);
            cell.off_px = median(near).filter(|_| cell.near >= TELLING);
        }
        let outer = options.rematch.map_or(OUTER, |rematch| rematch.radius);
        let by_chance = (outer > RING && has_descriptors).then(|| {
            // A circle about a point, or a band along a line.
            let area = |r: f64| if model.kind().is_epipolar() { r } else { r * r };
            let ring = last.iter().filter(|r| (RING * threshold..=outer * threshold).contains(*r)).count();
            ring as f64 / (area(outer) - area(RING))
        });
        let shown = homography.map_or([true; 9], |map| shown(&map, size, size_b, &tie.hidden[1]));
        let shown = std::array::from_fn(|i| shown[i] && !tie.hidden[0][i]);
        let inliers = different(keypoints, tie);
        let mut in_parts = [0_usize; 9];
        inliers.iter().for_each(|k| in_parts[k.place(size, 3)] += 1);
        let misfit = common.zip(amplification(model.kind(), &middles(size, &inliers), shown));
        let misfit = misfit.map(|(common, by)| common.rms_px * by);
        let places: Vec<_> = inliers.iter().map(|k| from_middle(size, k)).collect();
        // The noise along one axis.
        let noise_px = tie.rms_px * std::f64::consts::FRAC_1_SQRT_2;
        let noise = amplification_of_noise(model.kind(), &places, shown).map(|by| noise_px * by);
        Some(Self {
            matches: tie.matches.len(),
            chosen: None,
            inliers: tie.inliers.len(),
            different: inliers.len(),
            supported: in_parts.into_iter().filter(|inliers| *inliers >= SUPPORTED).count(),
            first: tie.first.len(),
            agreeing: cells.iter().map(|cell| cell.agreeing).sum(),
            by_chance,
            contrary: map
                .filter(|_| known != [false; 2])
                .map(|_| contrary_of(known[0], tie.inliers.iter().map(|&i| contradicts(&tie.matches[i])))),
            rival,
            unmoved,
            shifted,
            unlike: tie.unlike,
            fixed: tie.fixed,
            stayed,
            parallax: model.kind().is_epipolar().then(|| parallax(keypoints, tie, options)).flatten(),
            common: common.map(|common| common.share),
            common_px: common.map(|common| common.rms_px),
            reach_px: misfit.or(noise).map(|_| length([misfit, noise].map(Option::unwrap_or_default))),
            alternatives: tie.alternatives,
            threshold_px: threshold,
            cells,
            shared: shown.into_iter().filter(|shown| *shown).count(),
            model,
        })
    }

    /// The verdict.
    pub fn assess(&self) -> Assessment {
        let inliers = self.inliers.max(1) as f64;
        let mut reasons = vec![];
        if self.first > 0 {
            self.first_matches(&mut reasons);
        } else {
            let given = self.chosen.unwrap_or(self.matches);
            let share = self.inliers as f64 / given.max(1) as f64;
            let text = format!("{} of {} places agree", counted(self.inliers), counted(given));
            let is_epipolar = self.model.kind().is_epipolar();
            let next = match self.model.kind() {
                ModelKind::Homography => DEPTH,
                ModelKind::Affine => "Try a model with more freedom (`--model homography`)",
                _ if is_epipolar => "Do both pictures show the same thing, and are the matches right?",
                _ => "Try a model with more freedom (`--model affine` or `homography`)",
            };
            let limits = if is_epipolar && self.alternatives.is_some() { CORNERS } else { PLACES };
            reasons.push(Reason::share_below("places", share, limits, text, next));
            if let Some(chosen) = self.chosen {
                let [chosen, all] = [chosen, self.matches].map(counted);
                reasons.push(Reason {
                    measure: "chosen",
                    value: share,
                    expected: "matches that no model has chosen".into(),
                    verdict: Verdict::Doubtful,
                    text: format!(
                        "the file takes {chosen} of its {all} matches for right: that these agree says little"
                    ),
                    next: Some("The verdict of the search that wrote the file counts".into()),
                });
            }
            if self.alternatives.is_none() && self.model.homography().is_some() {
                self.rejected("given", &mut reasons);
            }
            self.alike(&mut reasons);
        }
        if let Some(alternatives) = self.alternatives {
            other_maps(alternatives, self.model.kind().is_epipolar(), &mut reasons);
        }
        if let Some(expected) = self.by_chance {
            let share = expected / inliers;
            let of = percent(share);
            let [by_chance, all] = [expected.round() as usize, self.inliers].map(counted);
            let text = format!("chance alone would give {by_chance} of the {all} inliers ({of})");
            reasons.push(Reason::share_above("chance", share, CHANCE, text, FEWER));
        }
        let is_mirrored = |map: &Homography| {
            let [xx, xy, yx, yy] = map.derivative([0.0; 2]);
            xx * yy < xy * yx
        };
        if self.model.homography().as_ref().is_some_and(is_mirrored) {
            reasons.push(Reason {
                measure: "mirrored",
                value: 1.0,
                expected: "0".into(),
                verdict: Verdict::Doubtful,
                text: "the map mirrors the picture, as no camera does".into(),
                next: Some(
                    "Is one of them mirrored, such as a slide scanned from its back? Mirror it, if so".into(),
                ),
            });
        }
        if let Some(contrary) = self.contrary {
            let share = contrary as f64 / inliers;
            let text = format!("{} of the inliers contradict the model's scale or turn", percent(share));
            reasons.push(Reason::share_above("scale and turn", share, CONTRARY, text, FEWER));
        }
        for (measure, share, limits, moves) in [
            ("unmoved", self.unmoved, UNMOVED, "does not move"),
            ("shifted", self.shifted, SHIFTED, "only shifts"),
        ] {
            let Some(share) = share else { continue };
            let places = format!("{} of the places that have features", percent(share));
            let text = format!("the map {moves} the picture, and matches agree in {places}");
            reasons.push(Reason::share_below(measure, share, limits, text, CAPTIONS));
        }
        if let Some(share) = self.unlike {
            let text = format!(
                "features agree in a part of the picture, but structure agrees there by only {} (50 % by chance)",
                percent(share)
            );
            reasons.push(Reason::share_below("unlike", share, UNLIKE, text, FIXED));
        }
        if let Some(found) = self.fixed {
            let text = format!(
                "structure matches the pictures without any motion and features do not match, yet brightness agrees \
                 (correlation {}) as if one sensor had taken both",
                percent(found)
            );
            reasons.push(Reason::share_above("fixed", found, IN_COMMON, text, FIXED));
        }
        if let Some(share) = self.stayed {
            let text = format!("{} of the inliers did not move although the map moves them", percent(share));
            reasons.push(Reason::share_above("stayed", share, STAYED, text, STAYING));
        }
        if let Some(share) = self.parallax {
            let text = format!(
                "most inliers lie on one plane, and {} of the others deviate from it as their neighbours do",
                percent(share)
            );
            let next = "A plane or a turned camera determines no epipolar geometry: `--model homography`, or photographs from \
                        places farther apart";
            reasons.push(Reason::share_below("parallax", share, PARALLAX, text, next));
        }
        reasons.push(Reason {
            measure: "inliers",
            value: self.different as f64,
            expected: format!("{} or more", INLIERS[0]),
            verdict: Verdict::below(self.different as f64, INLIERS),
            text: match counted(self.inliers) {
                all if self.different == self.inliers => format!("{all} inliers"),
                all => format!("{all} inliers at {} different places", counted(self.different)),
            },
            next: Some("More features or views may help (`--contrast 0.02`, `--views 43`)".into()),
        });
        let supported = self.supported;
        let shown = self.shared.max(supported);
        let share = supported as f64 / shown.max(1) as f64;
        let text = format!("inliers in {supported} of {shown} parts that both pictures show");
        let next =
            "Where no inlier is near, the model is a guess: more features may help (`--contrast 0.02`)";
        reasons.push(Reason::share_below("spread", share, SPREAD, text, next));
        if let Some(px) = self.reach_px {
            reasons.push(Reason {
                measure: "reach",
                value: px,
                expected: format!("below {} px", REACH[0] * self.threshold_px),
                verdict: Verdict::above(px / self.threshold_px, REACH),
                text: match self.alternatives {
                    // Scatter does not show whether the places correspond at all.
                    Some(_) => format!("where places are fewest, their scatter moves the map by {px:.1} px"),
                    None => format!("where inliers are fewest, the map is likely {px:.1} px off"),
                },
                next: Some(format!(
                    "Crop to where both have features{}, or, if the scene has depth, `--model fundamental`",
                    match self.model.kind() {
                        ModelKind::Homography => ", take a model with less freedom (`--model affine`)",
                        ModelKind::Affine => ", take a model with less freedom (`--model similarity`)",
                        _ => "",
                    }
                )),
            });
        }
        Assessment::of(reasons)
    }

    /// Adds the share of the residuals that neighbouring matches have in common.
    fn alike(&self, reasons: &mut Vec<Reason>) {
        if let Some((share, px)) = self.common.zip(self.common_px) {
            let of = percent(share);
            let text = format!("neighbouring matches have {of} of their residuals in common ({px:.1} px)");
            let mut alike = Reason::share_above("residuals", share, COMMON, text, DEPTH);
            if self.reach_px.map_or(px, |reach| reach.max(px)) < BENT * self.threshold_px {
                alike.verdict = Verdict::Good;
            }
            reasons.push(alike);
        }
    }

    /// Adds how many matches a map rejects that are likely right, as neighbours deviate as they do; `which` names them.
    fn rejected(&self, which: &str, reasons: &mut Vec<Reason>) {
        let rejected: f64 = self.cells.iter().map(|cell| cell.near as f64).sum();
        let taken: f64 = self.cells.iter().map(Cell::taken).sum();
        let share = rejected / (rejected + taken).max(1.0);
        let misfit: Vec<f64> = self.cells.iter().filter_map(Cell::misfit_px).collect();
        let (low, high) =
            misfit.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), px| (low.min(*px), high.max(*px)));
        let noun = self.model.kind().noun();
        let text =
            format!("the {noun} rejects {} of the {which} matches that are likely right", percent(share));
        let mut of_all = Reason::share_above("rejected", share, REJECTED, text, DEPTH);
        if rejected < TELLING as f64 {
            // The share of a few matches says little.
            of_all.verdict = Verdict::Good;
        }
        reasons.push(of_all);
        reasons.push(Reason {
            measure: "misfit",
            value: misfit.len() as f64,
            expected: "no part of the picture".into(),
            verdict: Verdict::above(misfit.len() as f64, MISFIT),
            text: match misfit.len() {
                0 => format!("no part of the picture contradicts the {noun}"),
                1 => format!("in 1 of 9 parts of the picture most of the {which} matches lie {high:.0} px off"),
                n => format!(
                    "in {n} of 9 parts of the picture most of the {which} matches lie {low:.0} to {high:.0} px off"
                ),
            },
            next: Some(DEPTH.into()),
        });
    }

    fn first_matches(&self, reasons: &mut Vec<Reason>) {
        let is_map = self.model.homography().is_some();
        let share = self.agreeing as f64 / self.first as f64;
        let limits = if is_map { AGREEING } else { AGREEING_BAND };
        let [agreeing, first] = [self.agreeing, self.first].map(counted);
        let text = format!("{agreeing} of the {first} first matches agree ({})", percent(share));
        let next = "Do both pictures show the same thing? More views may help (`--views 43`)";
        let first = Reason::share_below("first matches", share, limits, text, next);
        if is_map {
            self.rejected("first", reasons);
            self.alike(reasons);
        }
        // This figure, the simplest, comes first if it is good, otherwise after those that contradict the model.
        reasons.insert(if first.verdict == Verdict::Good { 0 } else { reasons.len() }, first);
        if let Some(rival) = self.rival.filter(|rival| *rival >= SEVERAL) {
            let text = format!(
                "{} first matches agree on this map, {} on another",
                counted(self.agreeing),
                counted(rival)
            );
            let share = rival as f64 / self.agreeing.max(1) as f64;
            reasons.push(Reason::share_above("rival", share, DISPLACED, text, LOOK));
        }
    }
}

/// A match contradicts a map if the ratio of its features' scales differs by this factor from the map's scale there: an
/// octave; right matches on a plane differ by far less.
const SCALE: f64 = 2.0;
/// A match also contradicts a map if the rotation between its features differs by more than 45° from it; the cosine.
const TURN: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// The direction of round features, such as stars, is arbitrary, while wrong matches contradict a map both by scale and
/// by turn. So turns do not count if there are at least the first number of inliers, of which fewer than one in the
/// second number contradicts the map by its scale.
const ROUND: [usize; 2] = [20, 20];

/// The number of inliers that contradict the map by their scale or turn.
fn contrary_of(knows_scale: bool, inliers: impl Iterator<Item = [bool; 2]>) -> usize {
    let (mut all, mut by_scale, mut by_either) = (0, 0, 0);
    for [scale, turn] in inliers {
        all += 1;
        by_scale += usize::from(scale);
        by_either += usize::from(scale || turn);
    }
    if knows_scale && all >= ROUND[0] && ROUND[1] * by_scale < all { by_scale } else { by_either }
}

/// Whether the features of both pictures have scales, and whether they have angles: if all of a picture have the same, as
/// those of detectors without scale or angle, it means nothing.
fn known(keypoints: [&[Keypoint]; 2]) -> [bool; 2] {
    let differ = |of: fn(&Keypoint) -> f32| keypoints.map(|all| all.iter().any(|k| of(k) != of(&all[0])));
    [differ(|k| k.scale), differ(|k| k.angle)].map(|differ| differ == [true; 2])
}

/// Whether the scale, and whether the turn, of the features of a match contradicts the map. What is not known does not.
fn contradicts(b_from_a: &Homography, [a, b]: [&[Keypoint]; 2], known: [bool; 2], m: &Match) -> [bool; 2] {
    let (a, b) = (&a[m.a as usize], &b[m.b as usize]);
    let [xx, xy, yx, yy] = b_from_a.derivative([a.x, a.y].map(f64::from));
    let local = (xx * yy - xy * yx).abs().sqrt();
    let ratio = f64::from(b.scale) / (f64::from(a.scale) * local);
    let [[x, y], [u, v]] = [a, b].map(|k| {
        let (sin, cos) = sin_cos(k.angle);
        [f64::from(cos), f64::from(sin)]
    });
    let predicted = [xx * x + xy * y, yx * x + yy * y];
    let cosine = (predicted[0] * u + predicted[1] * v) / length(predicted);
    let has_scale = [a, b].iter().all(|k| k.scale > 0.0 && k.scale.is_finite());
    let has_angle = [a, b].iter().all(|k| k.angle.is_finite());
    // NaN of the map contradicts.
    [
        known[0] && has_scale && !(ratio > 1.0 / SCALE && ratio < SCALE),
        known[1] && has_angle && (cosine.is_nan() || cosine <= TURN),
    ]
}

/// See [`PairEvidence::parallax`].
fn parallax([a, b]: [&[Keypoint]; 2], tie: &TiePoints, options: &TieOptions) -> Option<f64> {
    let inliers: Vec<_> = tie.inliers.iter().map(|&i| tie.matches[i].correspondence(a, b)).collect();
    let plane = estimate(ModelKind::Homography, &inliers, &options.robust, &Cpu::sequential()).ok()?;
    let is_of_most = plane.inliers.len() as f64 >= ON_PLANE * inliers.len() as f64;
    let map = plane.b_from_a.homography().filter(|_| is_of_most)?;
    let deviation =
        |p: &Correspondence| map.apply(p.a).map(|[x, y]| Deviation { at: p.a, by: [p.b[0] - x, p.b[1] - y] });
    let deviations = Deviations::new(inliers.iter().filter_map(deviation).collect());
    deviations.supported_beyond(options.robust.threshold_px)
}

/// The features of A of the inliers, without those whose place in A or in B an earlier one has.
fn different<'k>([a, b]: [&'k [Keypoint]; 2], tie: &TiePoints) -> Vec<&'k Keypoint> {
    let mut seen = [HashSet::new(), HashSet::new()];
    let ends = tie.inliers.iter().map(|&i| [&a[tie.matches[i].a as usize], &b[tie.matches[i].b as usize]]);
    let is_new = |ends: &[&Keypoint; 2]| {
        [0, 1].map(|i| seen[i].insert([ends[i].x.to_bits(), ends[i].y.to_bits()])) == [true; 2]
    };
    ends.filter(is_new).map(|[a, _]| a).collect()
}

/// Which of the nine parts of A have their middle in a part of B that no mask hides.
fn shown(b_from_a: &Homography, a: Size, b: Size, hidden: &[bool; 9]) -> [bool; 9] {
    let middle = |k: usize, length: usize| (2 * k + 1) as f64 / 6.0 * length as f64;
    let is_in_b = |[x, y]: [f64; 2]| {
        let is_inside = (0.0..b.width as f64).contains(&x) && (0.0..b.height as f64).contains(&y);
        is_inside && !hidden[b.cell([x, y], 3)]
    };
    std::array::from_fn(|i| {
        b_from_a.apply([middle(i % 3, a.width), middle(i / 3, a.height)]).is_some_and(is_in_b)
    })
}

/// The place of a feature in the coordinates of [`reach`](super::reach).
fn from_middle(size: Size, k: &Keypoint) -> [f64; 2] {
    let along = |at: f32, length: usize| 3.0 * f64::from(at) / length.max(1) as f64 - 1.5;
    [along(k.x, size.width), along(k.y, size.height)]
}

/// The centroid of the inliers in each part of a picture that supports the model, in the same coordinates.
fn middles(size: Size, inliers: &[&Keypoint]) -> Vec<[f64; 2]> {
    let mut sums = [(0_usize, [0.0; 2]); 9];
    for k in inliers {
        let ((n, sum), place) = (&mut sums[k.place(size, 3)], from_middle(size, k));
        *n += 1;
        *sum = [sum[0] + place[0], sum[1] + place[1]];
    }
    let supported = sums.into_iter().filter(|(n, _)| *n >= SUPPORTED);
    supported.map(|(n, sum)| sum.map(|sum| sum / n as f64)).collect()
}
