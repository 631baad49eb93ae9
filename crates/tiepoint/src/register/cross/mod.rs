//! Registration of pictures from different sensors, whose brightness cannot be compared, by their structure
//! ([`crate::feature::structure`]).
//!
//! 1. **Search** (`search`): corners of one picture at every scale and turn are matched with those of the other, by
//!    mutual nearest neighbours. At the right scale and turn many matches have the same shift. The similarities on
//!    which matches in the most places agree, grown to more general maps where these explain clearly more, go on to the
//!    next step. Where their map is in doubt, A is searched once more, turned by half of the angle between two turns.
//! 2. **Alignment** (`align`): both pictures are brought to the grid of the coarser one. In windows all over it,
//!    Gauss–Newton steps move the channels of one onto those of the other, which gives displacements with their
//!    information. A map is fitted to these (`geometry::weighted`), from a similarity to the model asked for.
//! 3. **Judgement** (`judge`): if the map is wrong, the structure around a place agrees no better there than when it is
//!    displaced. This is counted over the whole picture, not over the matches that led to the map.
//! 4. **Full size** (`full_size`): if the pictures were shrunk for the search, an accepted map is aligned once more, at the
//!    original size.
//!
//! [`Alternatives`] says whether another map fits as well: how many places agree on the best hypothesis that contradicts the
//! map, and whether the structure repeats itself (`repeats`).

pub(crate) mod align;
mod full_size;
pub(crate) mod judge;
mod repeats;
mod search;
#[cfg(test)]
mod tests;

use super::tie::{AMBIGUOUS, TieOptions, determined, rival};
use super::{Alternatives, TiePoints};
use crate::device::{Cpu, Processor};
use crate::feature::structure::{Intensity, Level, Own, StructureFinder, TURNS, described};
use crate::feature::{Features, Keypoint};
use crate::geometry::estimate::degenerate::ON_A_PLANE;
use crate::geometry::estimate::{estimate, refine, residuals};
use crate::geometry::{Affine, Correspondence, Homography, Model, ModelKind, Similarity};
use crate::image::{AnyView, Image, ImageView, Size};
use crate::matching::{Guide, Match, MatchOptions, match_features};
use crate::numeric::length;
use crate::{Error, Result};
use align::{Aligned, Frame, Place};
use repeats::Repetition;
use search::Hypothesis;

/// The most pixels with which a picture is searched; larger pictures are shrunk.
const MOST_PIXELS: f64 = 1_048_576.0;
/// Pictures of fewer pixels than the square of [`SMALL`] are enlarged to a side of about twice that, by an integer of
/// at most [`MOST_ENLARGED`]: at their own size they have too few corners and windows.
const SMALL: f64 = 128.0;
const MOST_ENLARGED: f64 = 4.0;
/// The widest range of scales.
const WIDEST: f64 = 16.0;
/// Pictures with a shorter side, in pixels, are not searched.
const LEAST_SIDE: usize = 48;
/// How far from its predicted place a corner is searched for, in pixels of the coarser picture: where depth may
/// displace it (epipolar geometry), and where only the prediction is inexact (two sensors: corners are less alike).
const REACH: [f64; 2] = [16.0, 5.0];
/// Corners farther than this from where the map says lie off its plane, in pixels of the coarser picture; nearer ones
/// may just be inexact. The scene is flat unless at least [`LEAST_OFF`] of the corners that obey an epipolar geometry
/// lie off the plane: 2 to 3 % do on planes, 18 to 64 % in scenes with depth (`docs/notebook/structure.md`).
const OFF_A_PLANE: f64 = 3.0;
const LEAST_OFF: f64 = 0.1;
/// The two rounds of the search: how many levels of each picture are matched, and the most hypotheses that are aligned
/// and judged. Most pictures of one scene differ in scale by less than the first two levels. If they differ by more, or
/// doubt remains, the second round matches all levels: an alignment that starts at another scale is less exact.
const ROUNDS: [(usize, usize); 2] = [(2, 1), (usize::MAX, 2)];

/// The factor by which pictures are shrunk to suppress what is fixed to a sensor, such as dust and hot pixels.
pub(super) const SHRINK: usize = 4;

/// Two pictures tied by their structure.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StructureTie {
    /// The places in A and B, as keypoints without descriptors.
    pub(super) features: [Features; 2],
    pub(super) tie: TiePoints,
    /// Whether structure agrees so well that no simulated views need to be tried.
    pub(super) beyond_doubt: bool,
}

impl StructureTie {
    /// [`TiePoints::moves_nothing`].
    pub(super) fn moves_nothing(&self) -> bool {
        self.tie.moves_nothing(self.features.each_ref().map(|of| of.keypoints.as_slice()))
    }

    /// Whether structure leaves no doubt about a map that moves something, and fewer than half of its places agree with
    /// the map of `other`.
    pub(super) fn refutes(&self, other: &TiePoints, options: &TieOptions) -> bool {
        let [a, b] = self.features.each_ref().map(|of| of.keypoints.as_slice());
        let places: Vec<_> =
            self.tie.inliers.iter().map(|&i| self.tie.matches[i].correspondence(a, b)).collect();
        let residuals = other.b_from_a.map(|model| residuals(&model, &places)).unwrap_or_default();
        let agreeing = residuals.iter().filter(|residual| **residual <= options.robust.threshold_px).count();
        self.beyond_doubt && !self.moves_nothing() && 2 * agreeing < places.len()
    }
}

/// One channel, and a mask of the pixels that count.
pub(super) type Picture<'a> = (AnyView<'a>, Option<ImageView<'a, u8>>);

/// A picture at the size at which it is searched.
#[derive(Debug)]
pub(crate) struct Structure {
    intensity: Intensity,
    /// Whether every pixel counts.
    counts_whole: bool,
    /// The size of the picture itself.
    full: Size,
}

impl Structure {
    /// `None` for a picture that is too small.
    pub(crate) fn of((image, mask): Picture<'_>, cpu: &Cpu) -> Result<Option<Self>> {
        let full = image.size();
        if full.width.min(full.height) < LEAST_SIDE {
            return Ok(None);
        }
        let size = searched(full);
        let own = Intensity::of(
            image,
            mask,
            Size::new(size.width.min(full.width), size.height.min(full.height)),
            cpu,
        )?;
        let from_large = if own.size() == size { None } else { onto(full, size)?.inverse() };
        let intensity = match from_large {
            Some(from_large) => own.resampled(&from_large, size, cpu)?,
            None => own,
        };
        let counts_whole = intensity.counts.data().iter().all(|counts| *counts == 1.0);
        Ok(Some(Self { intensity, counts_whole, full }))
    }

    /// The picture at half the size.
    fn halved(&self, cpu: &Cpu) -> Result<Self> {
        let Size { width, height } = self.size();
        let intensity = self.intensity.shrunk(Size::new(width / 2, height / 2), cpu)?;
        Ok(Self { intensity, ..*self })
    }

    /// Which pixels of an image of `size` count, by the nearest of the pixels that are searched.
    fn counts(&self, small_from_image: &Homography, size: Size) -> Image<f32> {
        if self.counts_whole {
            return Image::filled(size, 1, 1.0);
        }
        let Size { width, height } = self.size();
        let at = |v: f64, n: usize| v.round_ties_even().clamp(0.0, (n - 1) as f64) as usize;
        Image::from_fn(size, |x, y| {
            let [u, v] = small_from_image.apply([x as f64, y as f64]).unwrap_or_default();
            self.intensity.counts.row(at(v, height))[at(u, width)]
        })
    }

    pub(crate) fn size(&self) -> Size {
        self.intensity.size()
    }

    /// Its corners, in pixels of the picture itself. The matches of [`corner_matches`] are indices into these corners.
    pub(crate) fn corners(&self, cpu: &Cpu) -> Result<Vec<Keypoint>> {
        let processor = Processor::from(cpu.clone());
        let [levels] = StructureFinder::new(&processor).levels(&[(&self.intensity, 0..1)], 1.0)?;
        levels.first().map_or(Ok(vec![]), |level| self.in_full_pixels(level.keypoints()))
    }

    fn in_full_pixels(&self, corners: &[Keypoint]) -> Result<Vec<Keypoint>> {
        let (to_small, ratio) =
            (onto(self.full, self.size())?, self.full.width as f32 / self.size().width as f32);
        let Some(from_small) = to_small.inverse() else { return Ok(vec![]) };
        let moved = |k: &Keypoint| Keypoint { scale: k.scale * ratio, ..moved(k, &from_small) };
        Ok(corners.iter().map(moved).collect())
    }
}

/// Ties two pictures by their structure; `None` where it agrees no better than by chance.
pub(super) fn tie(
    pictures: [Picture<'_>; 2],
    options: &TieOptions,
    processor: &Processor,
) -> Result<Option<StructureTie>> {
    let cpu = &processor.cpu;
    let _stage = cpu.stage("cross");
    let structures = {
        let _stage = cpu.stage("intensity");
        cpu.try_map(2, |i| Structure::of(pictures[i], cpu))?
    };
    let [Some(a), Some(b)] = structures.as_slice() else { return Ok(None) };
    let tied = tied(pictures, [a, b], options, processor)?;
    if tied.is_some() || [a, b].into_iter().any(|of| 4.0 * SMALL * SMALL > of.size().area() as f64) {
        return Ok(tied);
    }
    // Pictures that were enlarged show structure at a smaller size alone. A second attempt must leave no doubt: without that, one
    // of a hundred pairs of unlike pictures got a map.
    let coarser = cpu.try_map(2, |i| [a, b][i].halved(cpu))?;
    let tied = self::tied(pictures, [&coarser[0], &coarser[1]], options, processor)?;
    Ok(tied.filter(|tied| tied.beyond_doubt))
}

/// [`tie`] at one size of the pictures.
fn tied(
    pictures: [Picture<'_>; 2],
    both: [&Structure; 2],
    options: &TieOptions,
    processor: &Processor,
) -> Result<Option<StructureTie>> {
    let (cpu, finder) = (&processor.cpu, StructureFinder::new(processor));
    let Some(found) = found(both, options, &finder)? else { return Ok(None) };
    let tied = || match options.model {
        Some(kind) if !kind.is_epipolar() => {
            let Some(small) = in_full_pixels(&found.aligned, both)? else { return Ok(None) };
            let full = full_size::tied(pictures, both, &small.0, kind, &finder)?;
            by_places(full.unwrap_or(small), both, kind, options, cpu)
        }
        model => by_corners(&found, both, model, options, processor).map(Some),
    };
    let (tied, alternatives) = cpu.join(tied, || found.alternatives(both[0], &finder))?;
    let beyond_doubt = found.aligned.agreement.is_beyond_doubt();
    Ok(tied.map(|(features, tie)| {
        let tie = TiePoints { alternatives: Some(alternatives), ..tie };
        StructureTie { features, tie, beyond_doubt }
    }))
}

/// How well the structure of two pictures agrees under a map: the mean of `judge`; `None` where they are too small or
/// show too little. In shrunk pictures what is fixed to a sensor, such as hot pixels and dust, counts for little.
pub(super) fn agreement(
    pictures: [Picture<'_>; 2],
    b_from_a: &Similarity,
    shrink: usize,
    processor: &Processor,
) -> Result<Option<f64>> {
    let cpu = &processor.cpu;
    let _stage = cpu.stage("agreement");
    let structures = cpu.try_map(2, |i| Structure::of(pictures[i], cpu))?;
    let [Some(a), Some(b)] = structures.as_slice() else { return Ok(None) };
    let both = [a, b];
    let along = |full: usize, size: usize| full.min(size) / shrink;
    let sizes = both
        .map(|of| Size::new(along(of.full.width, of.size().width), along(of.full.height, of.size().height)));
    if sizes.iter().any(|size| size.width.min(size.height) < LEAST_SIDE) {
        return Ok(None);
    }
    let shrunk = cpu.try_map(2, |i| both[i].intensity.shrunk(sizes[i], cpu))?;
    let (finder, intensity) = (StructureFinder::new(processor), [&shrunk[0], &shrunk[1]]);
    let levels = finder.levels(&intensity.map(|of| (of, 0..1)), 1.0)?;
    let [to_a, to_b] =
        [(a.full, sizes[0]), (b.full, sizes[1])].map(|(full, small)| small.width as f64 / full.width as f64);
    let at = |p: [f64; 2]| b_from_a.apply(p.map(|v| (v + 0.5) / to_a - 0.5)).map(|v| (v + 0.5) * to_b - 0.5);
    let (shift, beside) = (at([0.0; 2]), at([1.0, 0.0]));
    let map = Hypothesis { turn: [0, 1].map(|i| beside[i] - shift[i]), shift, cells: 0, grown: None };
    let frame = Frame::of([0, 1].map(|i| (intensity[i], &levels[i][0].own)), &map, &finder)?;
    let lanes = cpu.try_map(2, |i| frame.whole.lanes[i].on_host(cpu))?;
    let columns = judge::cells_of(lanes[0].size()).width;
    let agreement = judge::agreement(columns, |n| judge::cells([&*lanes[0], &*lanes[1]], n, cpu))?;
    // The score is 0 if too few cells could be judged.
    Ok((agreement.score != 0.0).then_some(agreement.mean))
}

/// Side of a cell in which grey values are compared, in pixels at the size at which pictures are searched.
const CELL: usize = 24;

/// The mean correlation of the grey values of two pictures without any motion, over the quarter of the cells with the
/// most contrast in both. `None` if the pictures differ in size, or are too small.
pub(super) fn grey_in_common(pictures: [Picture<'_>; 2], cpu: &Cpu) -> Result<Option<f64>> {
    let structures = cpu.try_map(2, |i| Structure::of(pictures[i], cpu))?;
    let [Some(a), Some(b)] = structures.as_slice() else { return Ok(None) };
    if a.full != b.full {
        return Ok(None);
    }
    let (both, Size { width, height }) = ([&a.intensity, &b.intensity], a.size());
    let cell = |x: usize, y: usize| {
        let rows = || (y * CELL..(y + 1) * CELL).map(|y| (y, x * CELL..(x + 1) * CELL));
        let counts = rows().all(|(y, x)| both.iter().all(|of| !of.counts.row(y)[x.clone()].contains(&0.0)));
        let grey = both.map(|of| rows().flat_map(|(y, x)| &of.grey.row(y)[x]).copied().map(f64::from));
        let [a, b] = grey.map(Iterator::collect::<Vec<f64>>);
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        let product = |p: &[f64], q: &[f64]| {
            let (p_mean, q_mean) = (mean(p), mean(q));
            p.iter().zip(q).map(|(p, q)| (p - p_mean) * (q - q_mean)).sum::<f64>()
        };
        let contrast = (product(&a, &a) * product(&b, &b)).sqrt();
        (counts && contrast > 0.0).then(|| (contrast, product(&a, &b) / contrast))
    };
    let mut cells: Vec<(f64, f64)> =
        (0..height / CELL).flat_map(|y| (0..width / CELL).filter_map(move |x| cell(x, y))).collect();
    cells.sort_by(|a, b| b.0.total_cmp(&a.0));
    let strongest = &cells[..cells.len() / 4];
    let mean = strongest.iter().map(|(_, correlation)| correlation).sum::<f64>() / strongest.len() as f64;
    Ok((!strongest.is_empty()).then_some(mean))
}

/// [`corner_matches`] lie within this many pixels of where the map says, at the size at which the coarser is searched.
pub(crate) const CORNERS_WITHIN: f64 = REACH[1];

/// Corners of two pictures that correspond; `None` where structure agrees no better than by chance.
pub(crate) fn corner_matches(pictures: [&Structure; 2], processor: &Processor) -> Result<Option<Vec<Match>>> {
    let found = found(pictures, &TieOptions::default(), &StructureFinder::new(processor))?;
    found.map(|found| found.matches(REACH[1], processor)).transpose()
}

#[derive(Debug)]
struct Found {
    frame: Frame,
    aligned: Aligned,
    /// The number of places that agree on the hypothesis of this map, and on the best hypothesis of another map.
    places: [usize; 2],
    /// The levels of each picture, the first at the size at which it is searched.
    levels: [Vec<Level>; 2],
}

impl Found {
    /// The evidence for other maps. `a` is the first picture.
    fn alternatives(&self, a: &Structure, finder: &StructureFinder<'_>) -> Result<Alternatives> {
        let (cpu, [one, other]) = (&finder.processor.cpu, &self.frame.whole.lanes);
        let repetitions = || {
            let quarters = [finder.halved(one)?, finder.halved(other)?];
            cpu.try_map(2, |i| Repetition::of(&quarters[i], cpu))
        };
        let between_halves = || repeats::between_halves([&self.levels[0], &self.levels[1]], cpu);
        let (both, halves) = cpu.join(repetitions, between_halves)?;
        // If the structure of one picture does not repeat, the map is unambiguous.
        let [one, other] = [both[0], both[1]];
        let least = if one.correlation < other.correlation { one } else { other };
        let pixel =
            a.full.width as f64 / a.size().width as f64 / full_size::spread(&self.frame.from[0], a.size());
        let Repetition { correlation, px } = least;
        Ok(Alternatives {
            places: self.places,
            halves,
            repeats: correlation,
            repeats_px: px * pixel,
            parts_by_chance: self.aligned.agreement.by_chance,
        })
    }

    /// The corners of picture `i`, in pixels at the size at which it is searched.
    fn corners(&self, i: usize) -> &[Keypoint] {
        self.levels[i].first().map_or(&[], Level::keypoints)
    }

    /// Corners within `radius` of where the map says that are each other's most alike by their descriptors, made on
    /// the common grid, where the pictures are neither turned nor scaled against each other.
    fn matches(&self, radius: f64, processor: &Processor) -> Result<Vec<Match>> {
        let (frame, cpu) = (&self.frame, &processor.cpu);
        let on_grid = cpu.try_map(2, |i| {
            let keypoints = self.corners(i).iter().map(|k| moved(k, &frame.from[i])).collect();
            described(keypoints, &*frame.whole.lanes[i].on_host(cpu)?, cpu)
        })?;
        let Some(back) = frame.from[0].inverse() else { return Ok(vec![]) };
        let b_from_a = Model::Homography(frame.from[1].compose(&self.aligned.b_from_a.compose(&back)));
        let guide = Guide { b_from_a, radius };
        let options = MatchOptions::default().with_ratio(None).with_same_sign(false);
        let options = MatchOptions { guide: Some(guide), ..options };
        match_features(&on_grid[0], &on_grid[1], &options, processor)
    }
}

/// A keypoint moved by a map.
fn moved(k: &Keypoint, map: &Homography) -> Keypoint {
    let [x, y] = map.apply([k.x, k.y].map(f64::from)).unwrap_or_default().map(|v| v as f32);
    Keypoint { x, y, ..*k }
}

/// The best alignment of two pictures; `None` where their structure agrees no better than by chance.
fn found(
    pictures: [&Structure; 2],
    options: &TieOptions,
    finder: &StructureFinder<'_>,
) -> Result<Option<Found>> {
    let cpu = &finder.processor.cpu;
    let intensity = pictures.map(|picture| &picture.intensity);
    let kind = options.model.filter(|kind| !kind.is_epipolar()).unwrap_or(ModelKind::Homography);
    let mut found: [Vec<Level>; 2] = [vec![], vec![]];
    let range = range_for(options.scale_range, pictures.map(Structure::size));
    let (mut voted, mut hypotheses, mut best) = (Vec::new(), Vec::new(), None);
    for (end, judged) in ROUNDS {
        let seen = found.each_ref().map(Vec::len);
        let more = finder.levels(&[0, 1].map(|i| (intensity[i], seen[i]..end)), range)?;
        found.iter_mut().zip(more).for_each(|(found, more)| found.extend(more));
        voted.extend(search::votes([&found[0], &found[1]], seen, TURNS, finder)?);
        hypotheses = search::hypotheses(&mut voted, kind, cpu)?;
        let pictures = [0, 1].map(|i| (intensity[i], &found[i][0].own));
        best = best_of(&hypotheses[..judged.min(hypotheses.len())], pictures, kind, finder)?;
        let least = found.each_ref().map(|levels| levels.last().map_or(1.0, |level| level.scale));
        let is_settled = |(aligned, _): &(Aligned, Frame)| {
            let [[a, b, _], [c, d, _], _] = aligned.b_from_a.matrix();
            let scale = (a * d - b * c).abs().sqrt();
            aligned.agreement.is_beyond_doubt() && (least[0]..=1.0 / least[1]).contains(&scale)
        };
        if best.as_ref().is_some_and(is_settled) {
            break;
        }
    }
    let middle = [0.5 * intensity[0].size().width as f64, 0.5 * intensity[0].size().height as f64];
    let places = |hypotheses: &[Hypothesis], (aligned, _): &(Aligned, Frame)| {
        let (like, others): (Vec<&Hypothesis>, Vec<&Hypothesis>) =
            hypotheses.iter().partition(|of| of.is_like(&aligned.b_from_a, middle));
        [like, others].map(|of| of.iter().map(|of| of.cells).max().unwrap_or(0))
    };
    let is_unclear = |best: &(Aligned, Frame)| {
        !best.0.agreement.is_beyond_doubt() || rival(places(&hypotheses, best)) >= AMBIGUOUS
    };
    // Pictures for which no map was found so far are not searched again.
    if best.as_ref().is_some_and(is_unclear) {
        let pictures = [0, 1].map(|i| (intensity[i], &found[i][0].own));
        let between = between_turns(intensity[0], &found[1], range, kind, finder)?;
        let other = best_of(&between[..between.len().min(2)], pictures, kind, finder)?;
        hypotheses.extend(between);
        let score = |(aligned, _): &(Aligned, Frame)| aligned.agreement.score;
        best = [other, best].into_iter().flatten().max_by(|a, b| score(a).total_cmp(&score(b)));
    }
    let Some(best) = best else { return Ok(None) };
    let places = places(&hypotheses, &best);
    let (aligned, frame) = best;
    Ok(Some(Found { frame, aligned, places, levels: found }))
}

/// Hypotheses with A turned by half of the angle between two turns, where descriptors at the regular turns match worst.
fn between_turns(
    a: &Intensity,
    b: &[Level],
    range: f64,
    kind: ModelKind,
    finder: &StructureFinder<'_>,
) -> Result<Vec<Hypothesis>> {
    let cpu = &finder.processor.cpu;
    let (sin, cos) = libm::sincos(std::f64::consts::PI / TURNS as f64);
    let [width, height] = [a.size().width, a.size().height].map(|n| n as f64);
    let size = Size::new((width * cos + height * sin) as usize, (width * sin + height * cos) as usize);
    let turned_from_a =
        Hypothesis { turn: [cos, sin], shift: [(height - 1.0) * sin, 0.0], cells: 0, grown: None };
    let Some(a_from_turned) = turned_from_a.homography()?.inverse() else { return Ok(vec![]) };
    let turned = a.resampled(&a_from_turned, size, cpu)?;
    let [levels] = finder.levels(&[(&turned, 0..usize::MAX)], range)?;
    let mut voted = search::votes([&levels, b], [0; 2], TURNS, finder)?;
    let found = search::hypotheses(&mut voted, kind, cpu)?;
    Ok(found.iter().map(|hypothesis| hypothesis.after(&turned_from_a)).collect())
}

/// The first hypothesis beyond doubt, aligned, or else the best; `None` if structure agrees no better than by chance.
fn best_of(
    hypotheses: &[Hypothesis],
    pictures: [(&Intensity, &Own); 2],
    kind: ModelKind,
    finder: &StructureFinder<'_>,
) -> Result<Option<(Aligned, Frame)>> {
    let cpu = &finder.processor.cpu;
    let mut best: Option<(Aligned, Frame)> = None;
    for hypothesis in hypotheses {
        cpu.check()?;
        let frame = Frame::of(pictures, hypothesis, finder)?;
        let Some(aligned) = frame.align(kind, finder.processor)? else { continue };
        let agreement = aligned.agreement;
        let better = |(other, _): &(Aligned, _)| agreement.score > other.agreement.score;
        if agreement.is_more_than_chance() && best.as_ref().is_none_or(better) {
            best = Some((aligned, frame));
            if agreement.is_beyond_doubt() {
                break;
            }
        }
    }
    Ok(best)
}

/// The range of scales that is searched: `range`, or a wider one if the sizes at which the pictures are searched differ
/// by more, because both may show the same area.
fn range_for(range: f64, sizes: [Size; 2]) -> f64 {
    let [a, b] = sizes.map(|size| searched(size).area().max(1) as f64);
    let ratio = (a / b).max(b / a).sqrt();
    // A power of two: its first levels are those of the default.
    if ratio > range { libm::exp2(libm::log2(1.25 * ratio).ceil()).clamp(range, WIDEST) } else { range }
}

/// The error for two pictures that structure does not tie, with advice.
pub(super) fn advised(mut error: Error, kind: ModelKind, sizes: [Size; 2], range: f64) -> Error {
    if let Error::NoModel { advice, .. } = &mut error
        && !kind.is_epipolar()
    {
        let range = range_for(range, sizes);
        let wider = match (2.0 * range).min(WIDEST) {
            wider if wider > range => {
                format!("`--scale-range {wider:.0}` for scales that differ by more than {range} times, ")
            }
            _ => String::new(),
        };
        *advice = format!(
            "Do both pictures show the same thing? Try {wider}\
             masks (`--mask`, `--mask-b`) for frames and captions; a scene with depth has no map from one picture to the other \
             (`match --model fundamental`, `rectify`)"
        );
    }
    error
}

/// The size at which a picture is searched.
fn searched(size: Size) -> Size {
    let side = (size.area() as f64).sqrt();
    if side < SMALL {
        let larger = (2.0 * SMALL / side.max(1.0)).round().min(MOST_ENLARGED) as usize;
        return Size::new(larger * size.width, larger * size.height);
    }
    let shrink = (size.area() as f64 / MOST_PIXELS).sqrt().max(1.0);
    Size::new((size.width as f64 / shrink) as usize, (size.height as f64 / shrink) as usize)
}

/// The map from pixels of a picture to those at the size at which it is searched.
fn onto(full: Size, small: Size) -> Result<Homography> {
    let [x, y] = [small.width as f64 / full.width as f64, small.height as f64 / full.height as f64];
    Homography::new([[x, 0.0, 0.5 * x - 0.5], [0.0, y, 0.5 * y - 0.5], [0.0, 0.0, 1.0]])
}

/// Corners that correspond, in pixels of the full pictures, and the epipolar geometry estimated from them, or none.
fn by_corners(
    found: &Found,
    pictures: [&Structure; 2],
    model: Option<ModelKind>,
    options: &TieOptions,
    processor: &Processor,
) -> Result<([Features; 2], TiePoints)> {
    let matches = found.matches(REACH[0], processor)?;
    let features = [
        Features::without_descriptors(pictures[0].in_full_pixels(found.corners(0))?, pictures[0].full),
        Features::without_descriptors(pictures[1].in_full_pixels(found.corners(1))?, pictures[1].full),
    ];
    let [a, b] = features.each_ref().map(|features| features.keypoints.as_slice());
    let tie = match model {
        None => TiePoints::without_model(matches),
        Some(kind) => {
            let pairs: Vec<Correspondence> = matches.iter().map(|m| m.correspondence(a, b)).collect();
            let estimated = estimate(kind, &pairs, &options.robust, &processor.cpu)?;
            let off = in_full_pixels(&found.aligned, pictures)?.map_or(0, |(map, _)| {
                let scale = full_size::spread(&found.aligned.b_from_a, pictures[0].size()).max(1.0);
                let pixel = scale * pictures[1].full.width as f64 / pictures[1].size().width as f64;
                let distances = residuals(&Model::Homography(map), &pairs);
                estimated.inliers.iter().filter(|i| distances[**i] > OFF_A_PLANE * pixel).count()
            });
            if (off as f64) < LEAST_OFF * estimated.inliers.len() as f64 {
                return Err(Error::Degenerate { model: kind.noun(), reason: ON_A_PLANE });
            }
            TiePoints::of(matches, estimated)
        }
    };
    Ok((features, tie))
}

/// The map and the places in pixels of the full pictures.
fn in_full_pixels(aligned: &Aligned, pictures: [&Structure; 2]) -> Result<Option<full_size::Tied>> {
    let [a, b] = pictures.map(|of| onto(of.full, of.size()));
    let to_small = [a?, b?];
    let [Some(from_a), Some(from_b)] = to_small.each_ref().map(Homography::inverse) else { return Ok(None) };
    let b_from_a = from_b.compose(&aligned.b_from_a.compose(&to_small[0]));
    let pixel = pictures[1].full.width as f64 / pictures[1].size().width as f64;
    let place = |place: &Place| {
        let (a, b) = (from_a.apply(place.a)?, from_b.apply(place.b)?);
        Some(Place { a, b, deviation: pixel * place.deviation })
    };
    Ok(Some((b_from_a, aligned.places.iter().filter_map(place).collect())))
}

/// The tie points and the model by places that correspond; `None` where no model of `kind` fits the map.
fn by_places(
    (b_from_a, found): full_size::Tied,
    pictures: [&Structure; 2],
    kind: ModelKind,
    options: &TieOptions,
    cpu: &Cpu,
) -> Result<Option<([Features; 2], TiePoints)>> {
    let mut features = pictures.map(|picture| Features::without_descriptors(vec![], picture.full));
    let (mut matches, mut pairs) = (vec![], vec![]);
    for place in found {
        let (i, Place { a, b, .. }) = (matches.len() as u32, place);
        for (features, at) in features.iter_mut().zip([a, b]) {
            let [x, y] = at.map(|v| v as f32);
            let scale = place.deviation as f32;
            features.keypoints.push(Keypoint { x, y, scale, sign: 1, ..Keypoint::default() });
        }
        pairs.push(Correspondence { a, b, quality: 0.0 });
        matches.push(Match { a: i, b: i, distance: 0.0, ratio: 0.0 });
    }
    let m = b_from_a.matrix();
    let like = |turn: [f64; 2]| Similarity::new(turn, [m[0][2], m[1][2]]);
    let turn = [0.5 * (m[0][0] + m[1][1]), 0.5 * (m[1][0] - m[0][1])];
    let model = match kind {
        ModelKind::Homography => Model::Homography(b_from_a),
        ModelKind::Affine => Model::Affine(Affine::new([m[0], m[1]])?),
        ModelKind::Similarity => Model::Similarity(like(turn)?),
        // No map was fitted for models with fewer parameters than a similarity: they are estimated from the places.
        ModelKind::Rigid | ModelKind::Translation | ModelKind::Fundamental | ModelKind::Essential => {
            let robust = options.robust.with_false_alarms(f64::INFINITY);
            let start = match kind {
                ModelKind::Translation => Model::Translation(like([1.0, 0.0])?),
                _ => Model::Rigid(like(turn.map(|v| v / length(turn)))?),
            };
            match determined(refine(&start, &pairs, &robust, cpu))? {
                Some(found) if 2 * found.inliers.len() > pairs.len() => found.b_from_a,
                _ => return Ok(None),
            }
        }
    };
    let distances = residuals(&model, &pairs);
    let inliers: Vec<usize> =
        (0..pairs.len()).filter(|i| distances[*i] <= options.robust.threshold_px).collect();
    let sum: f64 = inliers.iter().map(|i| distances[*i] * distances[*i]).sum();
    let rms_px = (sum / inliers.len().max(1) as f64).sqrt();
    let tie = TiePoints { b_from_a: Some(model), inliers, rms_px, ..TiePoints::without_model(matches) };
    Ok(Some((features, tie)))
}
