//! Registration of pictures of different sensors: by their structure ([`crate::feature::structure`]), where brightness
//! says nothing.
//!
//! 1. **Search** (`search`): corners of one picture at every scale and turn are matched with those of the other, each the
//!    other's nearest. A right hypothesis of scale and turn has many matches of one shift; the similarities of the
//!    most places agreeing are looked at.
//! 2. **Alignment** (`align`): both pictures on the grid of the coarser one; around every place of a grid the channels of one
//!    are moved onto those of the other by Gauss–Newton steps, which gives a displacement and its information; a map is
//!    fitted to these (`geometry::weighted`), from a similarity to the model asked for.
//! 3. **Judgement** (`judge`): by chance the structure around a place agrees no better there than when it is displaced.
//!    That is counted over the picture, with matches that no one has looked for.

mod align;
mod judge;
mod search;

use super::TiePoints;
use super::tie::TieOptions;
use crate::device::Processor;
use crate::feature::structure::{Ground, levels};
use crate::feature::{Descriptors, Features, Keypoint};
use crate::geometry::{Homography, Model, ModelKind};
use crate::image::{AnyView, ImageView, Size};
use crate::{Error, Result};
use align::{Aligned, Frame};

/// Pixels of a picture that are searched at most; larger ones are shrunk.
const MOST_PIXELS: f64 = 1_048_576.0;
/// The least side of a picture in which anything is found.
const LEAST_SIDE: usize = 48;
/// Hypotheses that are aligned and judged.
const JUDGED: usize = 4;

/// Two pictures tied by their structure.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Crossed {
    /// The places of A and B.
    pub(super) features: [Features; 2],
    pub(super) tie: TiePoints,
}

/// One channel, and where it counts.
pub(super) type Picture<'a> = (AnyView<'a>, Option<ImageView<'a, u8>>);

/// Ties two pictures by their structure; `None` where no more of it agrees than chance brings about.
pub(super) fn tie(
    pictures: [Picture<'_>; 2],
    options: &TieOptions,
    processor: &Processor,
) -> Result<Option<Crossed>> {
    let cpu = &processor.cpu;
    let _stage = cpu.stage("cross");
    let sizes = pictures.map(|(image, _)| image.size());
    if sizes.iter().any(|size| size.width.min(size.height) < LEAST_SIDE) {
        return Ok(None);
    }
    let small = sizes.map(searched);
    let ground = cpu.try_map(2, |i| Ground::of(pictures[i].0, pictures[i].1, small[i], cpu))?;
    let found = cpu.try_map(2, |i| levels(&ground[i], cpu))?;
    let hypotheses = search::hypotheses([&found[0], &found[1]], processor)?;
    let kind = options.model.unwrap_or(ModelKind::Homography);
    let mut best: Option<(f64, Aligned)> = None;
    for hypothesis in hypotheses.iter().take(JUDGED) {
        cpu.check()?;
        let frame = Frame::of([&ground[0], &ground[1]], hypothesis, cpu)?;
        let Some(aligned) = frame.align(kind, cpu)? else { continue };
        let agreement = judge::agreement(&aligned, cpu)?;
        if agreement.is_more_than_chance() && best.as_ref().is_none_or(|(score, _)| agreement.score > *score) {
            let sure = agreement.is_beyond_doubt();
            best = Some((agreement.score, aligned));
            if sure {
                break;
            }
        }
    }
    let Some((_, aligned)) = best else { return Ok(None) };
    crossed(&aligned, [sizes, small], kind, options).map(Some)
}

/// The size at which a picture is searched.
fn searched(size: Size) -> Size {
    let shrink = (size.area() as f64 / MOST_PIXELS).sqrt().max(1.0);
    Size::new((size.width as f64 / shrink) as usize, (size.height as f64 / shrink) as usize)
}

/// From pixels of a picture to those at the size that is searched.
fn onto(full: Size, small: Size) -> Result<Homography> {
    let [x, y] = [
        small.width as f64 / full.width as f64,
        small.height as f64 / full.height as f64,
    ];
    Homography::new([[x, 0.0, 0.5 * x - 0.5], [0.0, y, 0.5 * y - 0.5], [0.0, 0.0, 1.0]])
}

fn crossed(
    aligned: &Aligned,
    [sizes, small]: [[Size; 2]; 2],
    kind: ModelKind,
    options: &TieOptions,
) -> Result<Crossed> {
    let undone = || Error::Degenerate { model: kind.noun(), reason: "it has no inverse" };
    let to_small = [onto(sizes[0], small[0])?, onto(sizes[1], small[1])?];
    let to_full = [to_small[0].inverse().ok_or_else(undone)?, to_small[1].inverse().ok_or_else(undone)?];
    let b_from_a = to_full[1].compose(&aligned.b_from_a.compose(&to_small[0]));
    let mut features = sizes.map(|image| Features {
        keypoints: vec![],
        descriptors: Descriptors::U8(vec![]),
        dimension: 0,
        image,
    });
    let (mut matches, mut inliers, mut sum) = (vec![], vec![], 0.0);
    for place in &aligned.places {
        let ends = (to_full[0].apply(place.a), to_full[1].apply(place.b));
        let (Some(a), Some(b)) = ends else { continue };
        let i = matches.len() as u32;
        for (features, at) in features.iter_mut().zip([a, b]) {
            features.keypoints.push(Keypoint {
                x: at[0] as f32,
                y: at[1] as f32,
                scale: place.deviation as f32,
                angle: 0.0,
                response: 0.0,
                sign: 1,
                octave: 0,
                layer: 0,
            });
        }
        let miss = b_from_a.apply(a).map_or(f64::INFINITY, |m| crate::numeric::length([m[0] - b[0], m[1] - b[1]]));
        if miss <= options.robust.threshold_px {
            inliers.push(i as usize);
            sum += miss * miss;
        }
        matches.push(crate::matching::Match { a: i, b: i, distance: 0.0, ratio: 0.0 });
    }
    let rms_px = (sum / inliers.len().max(1) as f64).sqrt();
    let model = Model::Homography(b_from_a);
    let tie = TiePoints { matches, b_from_a: Some(model), inliers, rms_px, iterations: 0 };
    Ok(Crossed { features, tie })
}
