//! Whether the matches of two photographs are of one scene.

use super::{Collection, VerifiedPair};
use crate::device::Cpu;
use crate::feature::{Features, Keypoint};
use crate::geometry::{Correspondence, Model, ModelKind, RobustOptions, estimate};
use crate::matching::Match;
use crate::{Error, Result};

/// Matches that a pair needs.
const MIN_INLIERS: usize = 15;

impl Collection {
    /// The geometry of a pair that is confirmed by enough matches.
    pub(super) fn verify(
        &self,
        pair: [u32; 2],
        [a, b]: [&Features; 2],
        matches: &[Match],
        cpu: &Cpu,
    ) -> Result<Option<VerifiedPair>> {
        if matches.len() < MIN_INLIERS {
            return Ok(None);
        }
        let place = |k: &Keypoint| [f64::from(k.x), f64::from(k.y)];
        let correspondence = |m: &Match| Correspondence {
            a: place(&a.keypoints[m.a as usize]),
            b: place(&b.keypoints[m.b as usize]),
            quality: -f64::from(m.ratio),
        };
        let pairs: Vec<Correspondence> = matches.iter().map(correspondence).collect();
        let options = RobustOptions::default().with_threshold_px(2.0).with_max_iterations(2000);
        let found = match estimate(ModelKind::Fundamental, &pairs, &options, cpu) {
            Ok(found) if found.inliers.len() >= MIN_INLIERS => found,
            Ok(_) | Err(Error::TooFewMatches { .. } | Error::Degenerate { .. }) => return Ok(None),
            Err(other) => return Err(other),
        };
        let mut inlier = vec![false; matches.len()];
        found.inliers.iter().for_each(|i| inlier[*i] = true);
        let fundamental = match found.b_from_a {
            Model::Fundamental(f) => Some(flat(f.matrix())),
            Model::Homography(_) | Model::Affine(_) | Model::Similarity(_) => None,
        };
        Ok(Some(VerifiedPair {
            a: pair[0] as usize,
            b: pair[1] as usize,
            matches: matches.iter().map(|m| [m.a, m.b]).collect(),
            inlier,
            configuration: 3,
            fundamental,
            essential: None,
            homography: None,
        }))
    }
}

fn flat(matrix: [[f64; 3]; 3]) -> [f64; 9] {
    std::array::from_fn(|i| matrix[i / 3][i % 3])
}
