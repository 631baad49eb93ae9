//! Registration of pictures from different sensors, whose brightness cannot be compared, by their structure
//! ([`crate::feature::structure`]).
//!
//! 1. **Search** (`search`): corners of one picture at every scale and turn are matched with those of the other, by
//!    mutual nearest neighbours. At the right scale and turn many matches have the same shift. The similarities on
//!    which matches in the most places agree go on to the next step.
//! 2. **Alignment** (`align`): both pictures are brought to the grid of the coarser one. In windows all over it,
//!    Gauss–Newton steps move the channels of one onto those of the other, which gives displacements with their
//!    information. A map is fitted to these (`geometry::weighted`), from a similarity to the model asked for.
//! 3. **Judgement** (`judge`): if the map is wrong, the structure around a place agrees no better there than when it is
//!    displaced. This is counted over the whole picture, not over the matches that led to the map.

mod align;
mod judge;
mod search;
#[cfg(test)]
mod tests;

use super::TiePoints;
use super::tie::TieOptions;
use crate::device::{Cpu, Processor};
use crate::feature::structure::{Intensity, Level, Structure};
use crate::feature::{Descriptors, Features, Keypoint};
use crate::geometry::estimate::{refine, residuals};
use crate::geometry::{Affine, Correspondence, Homography, Model, ModelKind, Similarity};
use crate::image::{AnyView, Image, ImageView, Size};
use crate::matching::Match;
use crate::numeric::length;
use crate::{Error, Result};
use align::{Aligned, Frame};
use judge::Agreement;
use search::Hypothesis;

/// The most pixels with which a picture is searched; larger pictures are shrunk.
const MOST_PIXELS: f64 = 1_048_576.0;
/// The least side of a picture that is searched at all, in pixels.
const LEAST_SIDE: usize = 48;
/// Two rounds of the search: how many levels of each picture are matched, and the most hypotheses that are aligned and
/// judged. Most pictures of one scene differ in scale by less than the first two levels. Where that is not so, or a doubt
/// is left, the second round matches all levels: from a start at another scale the alignment is less exact.
const ROUNDS: [(usize, usize); 2] = [(2, 1), (usize::MAX, 4)];

/// Two pictures tied by their structure.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StructureTie {
    /// The places in A and B, as keypoints without descriptors.
    pub(super) features: [Features; 2],
    pub(super) tie: TiePoints,
    /// Whether no other explanation of their agreement needs to be tried.
    pub(super) beyond_doubt: bool,
}

/// One channel, and a mask of the pixels that count.
pub(super) type Picture<'a> = (AnyView<'a>, Option<ImageView<'a, u8>>);

/// Ties two pictures by their structure; `None` where it agrees no better than by chance.
pub(super) fn tie(
    pictures: [Picture<'_>; 2],
    options: &TieOptions,
    processor: &Processor,
) -> Result<Option<StructureTie>> {
    let (cpu, structure) = (&processor.cpu, Structure::new(processor));
    let _stage = cpu.stage("cross");
    let sizes = pictures.map(|(image, _)| image.size());
    if sizes.iter().any(|size| size.width.min(size.height) < LEAST_SIDE) {
        return Ok(None);
    }
    let small = sizes.map(searched);
    let intensity = cpu.try_map(2, |i| Intensity::of(pictures[i].0, pictures[i].1, small[i], cpu))?;
    let kind = options.model.unwrap_or(ModelKind::Homography);
    let mut found: [Vec<Level>; 2] = [vec![], vec![]];
    let (mut voted, mut best) = (Vec::new(), None);
    for (end, judged) in ROUNDS {
        let seen = found.each_ref().map(Vec::len);
        let more = structure.levels([0, 1].map(|i| (&intensity[i], seen[i]..end)), options.scale_range)?;
        found.iter_mut().zip(more).for_each(|(found, more)| found.extend(more));
        voted.extend(search::votes([&found[0], &found[1]], seen, &structure)?);
        let mut hypotheses = search::hypotheses(&mut voted, cpu)?;
        hypotheses.truncate(judged);
        let pictures = [0, 1].map(|i| (&intensity[i], &found[i][0].lanes));
        best = best_of(&hypotheses, pictures, kind, &structure)?;
        let least = found.each_ref().map(|levels| levels.last().map_or(1.0, |level| level.scale));
        let is_settled = |(agreement, aligned): &(Agreement, Aligned)| {
            let [[a, b, _], [c, d, _], _] = aligned.b_from_a.matrix();
            let scale = (a * d - b * c).abs().sqrt();
            agreement.is_beyond_doubt() && (least[0]..=1.0 / least[1]).contains(&scale)
        };
        if best.as_ref().is_some_and(is_settled) {
            break;
        }
    }
    let Some((agreement, aligned)) = best else { return Ok(None) };
    let tied = in_full_pixels(&aligned, [sizes, small], kind, options, cpu)?;
    Ok(tied.map(|(features, tie)| StructureTie { features, tie, beyond_doubt: agreement.is_beyond_doubt() }))
}

/// The hypothesis for which structure agrees best, aligned; `None` where it agrees no better than by chance. None after
/// the first that is beyond doubt is tried. Each picture comes with its own channels at half its size.
fn best_of(
    hypotheses: &[Hypothesis],
    pictures: [(&Intensity, &Image<f32>); 2],
    kind: ModelKind,
    structure: &Structure<'_>,
) -> Result<Option<(Agreement, Aligned)>> {
    let cpu = &structure.processor.cpu;
    let mut best: Option<(Agreement, Aligned)> = None;
    for hypothesis in hypotheses {
        cpu.check()?;
        let frame = Frame::of(pictures, hypothesis, structure)?;
        let Some(aligned) = frame.align(kind, cpu)? else { continue };
        let agreement = judge::agreement(&aligned, cpu)?;
        let better = |(other, _): &(Agreement, _)| agreement.score > other.score;
        if agreement.is_more_than_chance() && best.as_ref().is_none_or(better) {
            best = Some((agreement, aligned));
            if agreement.is_beyond_doubt() {
                break;
            }
        }
    }
    Ok(best)
}

/// The size at which a picture is searched.
fn searched(size: Size) -> Size {
    let shrink = (size.area() as f64 / MOST_PIXELS).sqrt().max(1.0);
    Size::new((size.width as f64 / shrink) as usize, (size.height as f64 / shrink) as usize)
}

/// The map from pixels of a picture to those at the size at which it is searched.
fn onto(full: Size, small: Size) -> Result<Homography> {
    let [x, y] = [small.width as f64 / full.width as f64, small.height as f64 / full.height as f64];
    Homography::new([[x, 0.0, 0.5 * x - 0.5], [0.0, y, 0.5 * y - 0.5], [0.0, 0.0, 1.0]])
}

/// The tie points and the model in pixels of the full pictures; `None` where no model of `kind` fits the map.
fn in_full_pixels(
    aligned: &Aligned,
    [sizes, small]: [[Size; 2]; 2],
    kind: ModelKind,
    options: &TieOptions,
    cpu: &Cpu,
) -> Result<Option<([Features; 2], TiePoints)>> {
    let to_small = [onto(sizes[0], small[0])?, onto(sizes[1], small[1])?];
    let [Some(from_a), Some(from_b)] = to_small.each_ref().map(Homography::inverse) else { return Ok(None) };
    let b_from_a = from_b.compose(&aligned.b_from_a.compose(&to_small[0]));
    let mut features = sizes.map(|image| Features {
        keypoints: vec![],
        descriptors: Descriptors::U8(vec![]),
        dimension: 0,
        image,
    });
    let (mut matches, mut pairs) = (vec![], vec![]);
    for place in &aligned.places {
        let (Some(a), Some(b)) = (from_a.apply(place.a), from_b.apply(place.b)) else { continue };
        let i = matches.len() as u32;
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
            match refine(&start, &pairs, &robust, cpu) {
                Ok(found) if 2 * found.inliers.len() > pairs.len() => found.b_from_a,
                Err(Error::Cancelled) => return Err(Error::Cancelled),
                Ok(_) | Err(_) => return Ok(None),
            }
        }
    };
    let distances = residuals(&model, &pairs);
    let inliers: Vec<usize> =
        (0..pairs.len()).filter(|i| distances[*i] <= options.robust.threshold_px).collect();
    let sum: f64 = inliers.iter().map(|i| distances[*i] * distances[*i]).sum();
    let rms_px = (sum / inliers.len().max(1) as f64).sqrt();
    let tie = TiePoints { matches, b_from_a: Some(model), inliers, rms_px, iterations: 0, first: vec![] };
    Ok(Some((features, tie)))
}
