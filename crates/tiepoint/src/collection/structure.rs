//! The last round of matching, in a collection of photographs of different sensors: chosen pairs that their features do
//! not verify are tried by structure (`register/cross`).
//!
//! The features of every photograph end with the corners of its structure, which SIFT describes as it does any keypoint.
//! Two photographs are aligned by their structure, which refuses a pair if chance explains the agreement. Corners that
//! then match are verified like other matches. They lie within [`CORNERS_WITHIN`] pixels of the map at the size at which
//! structure is searched, so the inlier distance is at least that many of these pixels. With a shorter one, corners
//! displaced along epipolar lines would be inliers of the epipolar geometry but not of the homography, and a plane
//! would pass for a scene with depth.

use super::Collection;
use super::matches::STRUCTURE;
use super::pairs::PairSet;
use super::recent::Recent;
use super::round::Round;
use super::search::Search;
use super::tile::Outcome;
use super::verify::Candidate;
use crate::Result;
use crate::device::{Cpu, Processor};
use crate::feature::{Features, Keypoint};
use crate::geometry::two_view::Verifier;
use crate::matching::Match;
use crate::register::{CORNERS_WITHIN, Modality, Structure, corner_matches};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The version of what structure computes: of corners, and of their matches.
pub(super) const VERSION: u32 = 5;

/// Photographs whose structure is kept, besides two for each thread. Each takes up to 8 MiB.
const KEPT: usize = 16;

/// A photograph that is ready for the search by structure.
struct Ready {
    structure: Structure,
    /// For each of its corners, the number of the feature.
    features: Vec<Option<u32>>,
}

/// Photographs that are ready; `None` for one that is too small.
type Kept = Recent<Option<Arc<Ready>>>;

impl Collection {
    /// The round of the chosen pairs that their features do not verify; `None` until the first round is finished. Without
    /// photographs of different sensors it has no pairs.
    pub(super) fn structure_round(&self, first: &Round<'_>, cpu: &Cpu) -> Result<Option<Round<'_>>> {
        let round = |pairs| self.round(&first.states, pairs, STRUCTURE).map(Some);
        if self.options().modality != Modality::Cross {
            return round(PairSet::list([]));
        }
        let Some(verified) = first.verified(cpu)? else { return Ok(None) };
        let verified: HashSet<[u32; 2]> = verified.into_iter().collect();
        let pairs = (0..first.pairs.tiles()).flat_map(|tile| first.pairs.tile(tile, self).pairs);
        round(PairSet::list(pairs.filter(|pair| !verified.contains(pair))))
    }
}

impl Search<'_, '_> {
    /// Tries the pairs by structure. Every thread of the CPU tries pairs of its own.
    pub(super) fn by_structure(&self, pairs: u64) -> Result<()> {
        let threads = (self.cpu.threads() as u64).min(pairs) as usize;
        let kept = &Kept::new((KEPT + 2 * threads) as u64, |_| 1);
        self.tiles.work_on_threads(threads, 1, &|| true, || {
            let processor = self.one_thread();
            Ok(move |pair, features| self.verified(pair, features, kept, &processor))
        })
    }

    fn verified(
        &self,
        pair: [u32; 2],
        features: [Arc<Features>; 2],
        kept: &Kept,
        processor: &Processor,
    ) -> Result<Outcome> {
        let read = |side: usize| self.read(pair[side], &features[side], &processor.cpu);
        let ready = |side: usize| kept.get(pair[side], || read(side));
        let (Some(a), Some(b)) = (ready(0)?, ready(1)?) else { return Ok(None) };
        let Some(found) = corner_matches([&a.structure, &b.structure], processor)? else { return Ok(None) };
        let numbered =
            |m: &Match| Some(Match { a: a.features[m.a as usize]?, b: b.features[m.b as usize]?, ..*m });
        let matches: Vec<Match> = found.iter().filter_map(numbered).collect();
        let options = &self.collection.options().two_view;
        let pixels = [(&a, &features[0]), (&b, &features[1])].map(|(of, features)| {
            let (searched, full) = (of.structure.size(), features.image);
            full.width.max(full.height) as f64 / searched.width.max(searched.height) as f64
        });
        let pixel = pixels[0].max(pixels[1]).max(1.0);
        let threshold = options.threshold_px.max(CORNERS_WITHIN) * pixel;
        let verifier = Verifier::new(&options.with_threshold_px(threshold), processor)?;
        self.collection.verify_pair(&Candidate { pair, features, matches }, &verifier)
    }

    /// The structure of a photograph.
    fn read(&self, index: u32, features: &Features, cpu: &Cpu) -> Result<Option<Arc<Ready>>> {
        let Some((structure, corners)) = self.collection.structure(index as usize, cpu)? else {
            return Ok(None);
        };
        let place = |k: &Keypoint| [k.x.to_bits(), k.y.to_bits()];
        let numbers: HashMap<[u32; 2], u32> = features.keypoints.iter().map(place).zip(0..).collect();
        let features = corners.keypoints.iter().map(|k| numbers.get(&place(k)).copied()).collect();
        Ok(Some(Arc::new(Ready { structure, features })))
    }
}
