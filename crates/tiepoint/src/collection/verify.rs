//! Whether the matches of two photographs are of one scene: the geometry of two views.

use super::camera::Camera;
use super::{Collection, VerifiedPair};
use crate::Result;
use crate::device::Processor;
use crate::feature::{Features, Keypoint};
use crate::geometry::two_view::{Evidence, ImagePair, TwoView, View, two_view_geometries};
use crate::geometry::{Correspondence, calibration};
use crate::matching::Match;
use std::sync::Arc;

/// A pair and its matches, to be verified.
pub(super) struct Candidate {
    pub(super) pair: [u32; 2],
    pub(super) features: [Arc<Features>; 2],
    pub(super) matches: Vec<Match>,
}

impl Candidate {
    fn sides(&self, m: &Match) -> (&Keypoint, &Keypoint) {
        let [a, b] = &self.features;
        (&a.keypoints[m.a as usize], &b.keypoints[m.b as usize])
    }

    fn key(&self) -> u64 {
        u64::from(self.pair[0]) << 32 | u64::from(self.pair[1])
    }
}

impl Collection {
    /// The geometry of every pair whose matches are confirmed.
    pub(super) fn verify(
        &self,
        candidates: &[Option<Candidate>],
        processor: &Processor,
    ) -> Result<Vec<Option<VerifiedPair>>> {
        let options = &self.options().two_view;
        let enough = |c: &&Candidate| c.matches.len() >= options.min_inliers;
        let candidate = |c: &Option<Candidate>| c.as_ref().filter(enough).is_some();
        let worth: Vec<&Candidate> = candidates.iter().flatten().filter(enough).collect();
        let matches: Vec<Vec<Correspondence>> =
            worth.iter().map(|c| c.matches.iter().map(|m| correspondence(m, c.sides(m))).collect()).collect();
        let evidence: Vec<Vec<Evidence>> =
            worth.iter().map(|c| c.matches.iter().map(|m| evidence(c.sides(m))).collect()).collect();
        let pairs: Vec<ImagePair<'_>> = worth
            .iter()
            .zip(matches.iter().zip(&evidence))
            .map(|(c, (matches, evidence))| {
                let [a, b] = [0, 1].map(|side| self.view(c.pair[side], &c.features[side]));
                ImagePair::new(matches, a, b).with_evidence(evidence).with_key(c.key())
            })
            .collect();
        let found = two_view_geometries(&pairs, options, processor)?;
        let mut verified = worth.iter().zip(found).map(|(candidate, found)| verified(candidate, &found));
        Ok(candidates.iter().map(|c| if candidate(c) { verified.next().flatten() } else { None }).collect())
    }

    /// A photograph, and its camera where the focal length is known.
    fn view(&self, index: u32, features: &Features) -> View {
        let size = features.image;
        let camera = Camera::of(&self.photographs()[index as usize].metadata, size);
        match camera.focal_known {
            true => View::new(size).with_camera(calibration::Camera::centred(camera.focal_px, size)),
            false => View::new(size),
        }
    }
}

fn verified(candidate: &Candidate, found: &TwoView) -> Option<VerifiedPair> {
    if !found.configuration.is_verified() {
        return None;
    }
    let mut inlier = vec![false; candidate.matches.len()];
    found.inliers.iter().for_each(|i| inlier[*i as usize] = true);
    Some(VerifiedPair {
        a: candidate.pair[0] as usize,
        b: candidate.pair[1] as usize,
        matches: candidate.matches.iter().map(|m| [m.a, m.b]).collect(),
        inlier,
        configuration: found.configuration,
        fundamental: found.fundamental.as_ref().map(|f| flat(f.matrix())),
        essential: found.essential.as_ref().map(|e| flat(e.matrix())),
        homography: found.homography.as_ref().map(|h| flat(h.matrix())),
    })
}

fn correspondence(found: &Match, (a, b): (&Keypoint, &Keypoint)) -> Correspondence {
    let place = |k: &Keypoint| [f64::from(k.x), f64::from(k.y)];
    Correspondence { a: place(a), b: place(b), quality: -f64::from(found.ratio) }
}

fn evidence((a, b): (&Keypoint, &Keypoint)) -> Evidence {
    Evidence { scale: b.scale / a.scale, turn: b.angle - a.angle }
}

fn flat(matrix: [[f64; 3]; 3]) -> [f64; 9] {
    std::array::from_fn(|i| matrix[i / 3][i % 3])
}
