//! Choosing pairs by the largest features of each photograph (Wu, "Towards Linear-Time Incremental Structure from
//! Motion", 3DV 2013, section 4): what matches among a few hundred of the largest scale tells which photographs show
//! the same thing.
//!
//! The largest [`top_features`](super::PairOptions::top_features) of every photograph are matched with those of every
//! other, exactly and both ways. A pair is suggested from [`top_matches`](super::PairOptions::top_matches) matches on,
//! and kept where it is among the [`top_partners`](super::PairOptions::top_partners) best of either photograph.

use super::folder::text_of;
use super::pairs::TilePlan;
use super::record::{self, Fields, Found, Kind, fingerprint};
use super::work::{Loaded, Tiles};
use super::workers::{Stop, side_by_side};
use super::{Collection, PairSet, Shard};
use crate::Result;
use crate::device::{Cpu, Processor};
use crate::feature::Features;
use crate::files::{Disk, remove_unfinished};
use crate::matching::match_features;
use std::sync::Arc;

/// Two photographs and how many of their largest features match.
type Suggestion = ([u32; 2], u32);

impl Collection {
    /// The pairs whose largest features match; none while parts of the work are missing that belong to others.
    pub(super) fn top_scale(&self, shard: Shard, cpu: &Cpu) -> Result<Option<Vec<[u32; 2]>>> {
        let tiles = PairSet::All.tiles(self.photographs().len(), self.block());
        let mine: Vec<[usize; 2]> =
            (0..).zip(&tiles).filter(|(i, _)| shard.has(*i)).map(|(_, tile)| *tile).collect();
        let is_there = cpu.map(mine.len(), |i| Ok(self.suggestions(mine[i])?.whole().is_some()));
        let is_there = is_there.into_iter().collect::<Result<Vec<bool>>>()?;
        let todo: Vec<[usize; 2]> =
            mine.iter().zip(&is_there).filter(|(_, there)| !**there).map(|(tile, _)| *tile).collect();
        self.suggest(&todo, cpu)?;
        let mut all = Vec::new();
        for tile in tiles {
            match self.suggestions(tile)?.whole() {
                Some(some) => all.extend(some),
                None => return Ok(None),
            }
        }
        Ok(Some(best(all, self.photographs().len(), self.options().pairs.top_partners as usize)))
    }

    fn all_pairs(&self, blocks: [usize; 2]) -> TilePlan {
        PairSet::All.plan(blocks, self.photographs().len(), self.block())
    }

    fn suggest(&self, todo: &[[usize; 2]], cpu: &Cpu) -> Result<()> {
        remove_unfinished(self.folder().join("top-scale"), 2)?;
        let plans = todo.iter().map(|tile| self.all_pairs(*tile));
        let pairs = todo.iter().map(|tile| self.all_pairs(*tile).pairs.len()).sum();
        let watched = &cpu.begin_task("top-scale", pairs);
        let (least, options) = (self.options().pairs.top_matches, &self.options().matching);
        let disk = Disk::meanwhile(self.syncs());
        let load = |index| self.load_top(index);
        let write = |plan: &TilePlan, counts: Vec<u32>| {
            let mut payload = Vec::new();
            for (pair, count) in plan.pairs.iter().zip(counts).filter(|(_, count)| *count >= least) {
                [pair[0], pair[1], count].iter().for_each(|n| payload.extend_from_slice(&n.to_le_bytes()));
            }
            let path = self.tile_path("top-scale", plan.blocks);
            record::write(
                &disk,
                &path,
                Kind::Suggestions,
                self.suggestions_fingerprint(plan.blocks),
                &[&payload],
            )
        };
        let tiles = Tiles::new(self, plans, &load, &write);
        let work = |stop: &Stop| -> Result<()> {
            let processor = Processor::from(Cpu::sequential());
            while !stop.is_set()
                && let Some(unit) = tiles.next(64)
            {
                let mut counts = Vec::new();
                for &pair in unit.pairs() {
                    counts.push(match tiles.load(&unit, pair)? {
                        [Some(a), Some(b)] => match_features(&a, &b, options, &processor)?.len() as u32,
                        _ => 0,
                    });
                }
                watched.advance(counts.len());
                tiles.finish(unit, counts)?;
            }
            Ok(())
        };
        side_by_side((0..cpu.threads()).map(|_| Box::new(work) as _).collect())?;
        drop(tiles);
        disk.finish()
    }

    /// The largest features of a photograph.
    fn load_top(&self, index: usize) -> Result<Loaded> {
        let most = self.options().pairs.top_features as usize;
        self.load(index)?.map(|features| Ok(Arc::new(largest(&features, most)?))).transpose()
    }

    fn suggestions_fingerprint(&self, blocks: [usize; 2]) -> u64 {
        let pairs = &self.options().pairs;
        let options = text_of(&(pairs.top_features, pairs.top_matches, &self.options().matching));
        let photographs = blocks.into_iter().flat_map(|block| self.block_range(block));
        let features: Vec<u8> = photographs
            .flat_map(|i| self.features_fingerprint(&self.photographs()[i]).to_le_bytes())
            .collect();
        fingerprint([options.as_bytes(), &features])
    }

    fn suggestions(&self, blocks: [usize; 2]) -> Result<Found<Vec<Suggestion>>> {
        let path = self.tile_path("top-scale", blocks);
        let count = self.photographs().len() as u32;
        let found = record::read(&path, Kind::Suggestions, self.suggestions_fingerprint(blocks))?;
        Ok(match found.map(|payload| decode(&payload, count)) {
            Found::Whole(Some(some)) => Found::Whole(some),
            Found::Whole(None) => Found::Unfit("holds no pairs of these photographs".into()),
            Found::Missing => Found::Missing,
            Found::Unfit(reason) => Found::Unfit(reason),
        })
    }
}

pub(super) fn decode(payload: &[u8], photographs: u32) -> Option<Vec<Suggestion>> {
    let mut fields = Fields(payload);
    let mut found = Vec::with_capacity(payload.len() / 12);
    while !fields.0.is_empty() {
        let pair = [fields.u32()?, fields.u32()?];
        if pair[0] >= pair[1] || pair[1] >= photographs {
            return None;
        }
        found.push((pair, fields.u32()?));
    }
    Some(found)
}

/// The features of the largest scale; of equals the first.
fn largest(features: &Features, most: usize) -> Result<Features> {
    let mut order: Vec<usize> = (0..features.len()).collect();
    order.sort_by(|&i, &j| {
        features.keypoints[j].scale.total_cmp(&features.keypoints[i].scale).then(i.cmp(&j))
    });
    order.truncate(most);
    features.subset(&order)
}

/// The pairs that are among the best of one of their photographs: those with most matches, of equals the first.
fn best(mut suggested: Vec<Suggestion>, photographs: usize, most: usize) -> Vec<[u32; 2]> {
    suggested.sort_unstable_by_key(|(pair, count)| (std::cmp::Reverse(*count), *pair));
    let mut partners = vec![0_usize; photographs];
    let mut kept = Vec::new();
    for ([a, b], _) in suggested {
        let is_best = partners[a as usize] < most || partners[b as usize] < most;
        if is_best {
            kept.push([a, b]);
        }
        partners[a as usize] += 1;
        partners[b as usize] += 1;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_partners_of_either_are_kept() {
        let suggested = vec![([0, 1], 9), ([0, 2], 8), ([0, 3], 7), ([2, 3], 4), ([1, 3], 4)];
        let kept = best(suggested, 4, 1);
        // 0-1 is the best of both; 0-2 the best of 2, 0-3 of 3; the others are the second of both.
        assert_eq!(kept, [[0, 1], [0, 2], [0, 3]]);
    }
}
