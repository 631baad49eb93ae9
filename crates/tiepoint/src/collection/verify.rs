//! Whether the matches of two photographs are of one scene: the geometry of two views.

use super::camera::Camera;
use super::{Collection, VerifiedPair};
use crate::Result;
use crate::device::Processor;
use crate::feature::{Features, Keypoint};
use crate::geometry::two_view::{Evidence, ImagePair, View, two_view_geometries};
use crate::geometry::{Correspondence, calibration};
use crate::matching::Match;

impl Collection {
    /// The geometry of a pair whose matches are confirmed.
    pub(super) fn verify(
        &self,
        [i, j]: [u32; 2],
        [a, b]: [&Features; 2],
        matches: &[Match],
        processor: &Processor,
    ) -> Result<Option<VerifiedPair>> {
        let options = &self.options().two_view;
        if matches.len() < options.min_inliers {
            return Ok(None);
        }
        let sides = |m: &Match| (&a.keypoints[m.a as usize], &b.keypoints[m.b as usize]);
        let correspondences: Vec<Correspondence> =
            matches.iter().map(|m| correspondence(m, sides(m))).collect();
        let evidence: Vec<Evidence> = matches.iter().map(|m| evidence(sides(m))).collect();
        let pair = ImagePair::new(&correspondences, self.view(i, a), self.view(j, b))
            .with_evidence(&evidence)
            .with_key(u64::from(i) << 32 | u64::from(j));
        let found = two_view_geometries(&[pair], options, processor)?;
        let Some(found) = found.into_iter().find(|found| found.configuration.is_verified()) else {
            return Ok(None);
        };
        let mut inlier = vec![false; matches.len()];
        found.inliers.iter().for_each(|i| inlier[*i as usize] = true);
        Ok(Some(VerifiedPair {
            a: i as usize,
            b: j as usize,
            matches: matches.iter().map(|m| [m.a, m.b]).collect(),
            inlier,
            configuration: found.configuration,
            fundamental: found.fundamental.map(|f| flat(f.matrix())),
            essential: found.essential.map(|e| flat(e.matrix())),
            homography: found.homography.map(|h| flat(h.matrix())),
        }))
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
