//! Verification: whether the matches of two photographs agree with the geometry of two views of one scene.

use super::Collection;
use super::camera::Camera;
use super::record::fingerprint;
use super::tile::{Outcome, VerifiedPair};
use crate::Result;
use crate::device::Cpu;
use crate::feature::Features;
use crate::geometry::two_view::{Evidence, ImageCamera, ImagePair, TwoView, Verifier};
use crate::geometry::{Correspondence, calibration, flat};
use crate::matching::Match;
use std::sync::Arc;

/// A pair and its matches, to be verified.
pub(super) struct Candidate {
    pub(super) pair: [u32; 2],
    pub(super) features: [Arc<Features>; 2],
    pub(super) matches: Vec<Match>,
}

impl Candidate {
    /// The places of the matches, and the scale and turn that each match suggests.
    fn correspondences(&self) -> (Vec<Correspondence>, Vec<Evidence>) {
        let [a, b] = self.features.each_ref().map(|features| &features.keypoints);
        // Quality is by distance: given matches have no ratio, and the same matches are to have the same inliers.
        let place = |m: &Match| Correspondence { quality: -f64::from(m.distance), ..m.correspondence(a, b) };
        let evidence = |m: &Match| {
            let (a, b) = (&a[m.a as usize], &b[m.b as usize]);
            Evidence { scale: b.scale / a.scale, turn: b.angle - a.angle }
        };
        self.matches.iter().map(|m| (place(m), evidence(m))).unzip()
    }

    fn verified(&self, found: &TwoView) -> Outcome {
        if !found.configuration.is_verified() {
            return None;
        }
        let mut inlier = vec![false; self.matches.len()];
        found.inliers.iter().for_each(|i| inlier[*i as usize] = true);
        let ([a, b], configuration) = (self.pair.map(|i| i as usize), found.configuration);
        let matches = self.matches.iter().map(|m| [m.a, m.b]).collect();
        let fundamental = found.fundamental.map(|f| flat(&f.matrix()));
        let essential = found.essential.map(|e| flat(&e.matrix()));
        let homography = found.homography.map(|h| flat(&h.matrix()));
        let pair = VerifiedPair { a, b, matches, inlier, configuration, fundamental, essential, homography };
        Some(pair.encode())
    }
}

impl Collection {
    /// Finds the geometry of every pair. Threads of `cpu` prepare the pairs for the verifier.
    pub(super) fn verify(&self, pairs: &[Candidate], verifier: &Verifier, cpu: &Cpu) -> Result<Vec<Outcome>> {
        let matched = cpu.map(pairs.len(), |i| pairs[i].correspondences());
        let images = pairs.iter().zip(&matched).map(|(c, (matches, evidence))| {
            let [a, b] = [0, 1].map(|side| self.view(c.pair[side], &c.features[side]));
            // Random samples depend on the names, because numbers change when photographs come and go.
            let key = fingerprint(c.pair.map(|i| self.photographs()[i as usize].name.as_bytes()));
            ImagePair::new(matches, a, b).with_evidence(evidence).with_key(key)
        });
        let found = verifier.geometries(&images.collect::<Vec<_>>())?;
        Ok(cpu.map(pairs.len(), |i| pairs[i].verified(&found[i])))
    }

    pub(super) fn verify_pair(&self, candidate: &Candidate, verifier: &Verifier) -> Result<Outcome> {
        let found = self.verify(std::slice::from_ref(candidate), verifier, &Cpu::sequential())?;
        Ok(found.into_iter().next().flatten())
    }

    /// The view of a photograph, with its camera if the focal length is known.
    fn view(&self, index: u32, features: &Features) -> ImageCamera {
        let size = features.image;
        let camera = Camera::of(&self.photographs()[index as usize].metadata, size);
        match camera.focal_known {
            true => ImageCamera::new(size).with_camera(calibration::Camera::centred(camera.focal_px, size)),
            false => ImageCamera::new(size),
        }
    }
}
