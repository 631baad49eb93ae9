//! The fourth stage: matches and geometry of every pair, tile by tile.
//!
//! The two photographs of a pair are matched exactly and in both directions, unless matches are given; the geometry of
//! two views tells which matches belong to one scene ([`two_view`]).
//!
//! [`two_view`]: crate::geometry::two_view

use super::features::State;
use super::folder::text_of;
use super::record::{Found, Kind, fingerprint};
use super::round::{Round, TileKind};
use super::search::Search;
use super::structure;
use super::tile::{PAIR, pair_length};
use super::work::Tiles;
use super::{Collection, MatchDevices, PairChoice, PairSet, Shard};
use crate::Result;
use crate::device::{Cpu, Processor};
use std::sync::Arc;

/// The version of what this stage computes. When it changes, all tiles are made again.
pub(super) const VERSION: u32 = 6;

/// The tiles of the chosen pairs, of the pairs that their matches suggest, and of pairs that are tried by structure.
pub(super) const CHOSEN: TileKind =
    TileKind { folder: "matches", task: "match", kind: Kind::Tile, record: PAIR, body: pair_length };
pub(super) const CLOSURE: TileKind = TileKind { folder: "closure", ..CHOSEN };
pub(super) const STRUCTURE: TileKind = TileKind { folder: "structure", task: "structure", ..CHOSEN };

/// What a run of this stage did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Matched {
    /// Tiles that were made in this run.
    pub tiles: usize,
    /// Tiles that were there before.
    pub present: usize,
    /// Pairs that were tried in this run.
    pub pairs: u64,
    /// Pairs that were tried by structure in this run.
    pub structure: u64,
    /// Pairs of this part of the work that are not tried because one of their photographs cannot be read.
    pub left_out: u64,
    /// Whether the closure, or pairs to be tried by structure, still wait for tiles of other parts of the work. Run the
    /// stage again when those are done.
    #[serde(skip)]
    pub closure_waits: bool,
}

impl Collection {
    /// Matches and verifies the pairs in a part of the work whose tiles are missing. The work runs on the threads of
    /// the first processor and on the GPUs of all.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) when features are missing or damaged, or pairs were not chosen;
    /// [`Error::Io`](crate::Error::Io); [`Error::Device`](crate::Error::Device) when a GPU fails.
    pub fn match_pairs(&self, shard: Shard, processors: &[Processor]) -> Result<Matched> {
        self.match_pairs_on(shard, &self.match_devices(processors))
    }

    /// As [`match_pairs`](Self::match_pairs), on devices that may have been prepared.
    ///
    /// # Errors
    /// As [`match_pairs`](Self::match_pairs).
    pub fn match_pairs_on(&self, shard: Shard, devices: &MatchDevices) -> Result<Matched> {
        self.match_part(shard, devices).map_err(|error| self.unless_overtaken(error))
    }

    fn match_part(&self, shard: Shard, devices: &MatchDevices) -> Result<Matched> {
        let cpu = &devices.cpu;
        let first = self.first_round(&Arc::new(self.states(cpu)?))?;
        let given = &self.given_matches()?;
        type Run<'r> = &'r dyn Fn(Search<'_, '_>, u64) -> Result<()>;
        let work = |round: &Round<'_>, run: Run<'_>| {
            let each = |tiles: &Tiles<'_>, pairs| run(Search { collection: self, given, tiles, cpu }, pairs);
            round.work(shard, cpu, |index| round.load(index), each)
        };
        let search = |round: &Round<'_>| work(round, &|search, pairs| search.run(devices, pairs));
        let mut matched = Matched::default();
        matched.add(search(&first)?);
        match self.closure_round(&first, cpu)? {
            Some(round) => matched.add(search(&round)?),
            None => matched.closure_waits = true,
        }
        match self.structure_round(&first, cpu)? {
            Some(round) => {
                let done = work(&round, &|search, pairs| search.by_structure(pairs))?;
                // Pairs that are left out were counted when features were matched.
                matched.add(Matched { structure: done.pairs, pairs: 0, left_out: 0, ..done });
            }
            None => matched.closure_waits = true,
        }
        Ok(matched)
    }

    /// The round of the chosen pairs.
    pub(super) fn first_round(&self, states: &Arc<Vec<State>>) -> Result<Round<'_>> {
        self.check_forms(states)?;
        let options = &self.options().pairs;
        let pairs = match self.chosen(states)? {
            Found::Missing | Found::Unfit(_)
                if options.choice == PairChoice::Matches && options.list.is_none() =>
            {
                return Err(self.not_given());
            }
            chosen => chosen
                .or_made_by("pairs", &self.pairs_path())
                .map_err(|error| self.unless_without_features(states, error))?,
        };
        self.round(states, pairs, CHOSEN)
    }

    pub(super) fn round(
        &self,
        states: &Arc<Vec<State>>,
        pairs: PairSet,
        tiles: TileKind,
    ) -> Result<Round<'_>> {
        let options = text_of(&(&self.options().matching, &self.options().two_view));
        let given = self.given_hash()?.or_made_by("pairs", &self.pairs_path())?.map(u64::to_le_bytes);
        let structure = (tiles.folder == STRUCTURE.folder).then_some(structure::VERSION.to_le_bytes());
        let parts = [&VERSION.to_le_bytes()[..], options.as_bytes()];
        let more = [given.as_ref().map(|hash| &hash[..]), structure.as_ref().map(|version| &version[..])];
        let made_from = fingerprint(parts.into_iter().chain(more.into_iter().flatten()));
        Ok(Round::new(self, states.clone(), pairs, tiles, made_from))
    }

    /// The round of the pairs that those of the first round suggest; `None` until the first round is finished.
    pub(super) fn closure_round(&self, first: &Round<'_>, cpu: &Cpu) -> Result<Option<Round<'_>>> {
        let round = |pairs| self.round(&first.states, pairs, CLOSURE).map(Some);
        let is_given = matches!(self.resolved(), PairChoice::List | PairChoice::Matches);
        let more = self.options().pairs.closure && !is_given;
        if first.pairs.set == PairSet::All || !more {
            return round(PairSet::list([]));
        }
        let made_from = first.fingerprint();
        if let Found::Whole(pairs) = self.read_pairs(&self.closure_path(), made_from)? {
            return round(pairs);
        }
        let Some(verified) = first.verified(cpu)? else { return Ok(None) };
        let pairs = suggested(self.photographs().len(), &verified, &first.pairs.set, cpu)?;
        self.write_pairs(&self.closure_path(), made_from, &pairs)?;
        round(pairs)
    }
}

impl Matched {
    fn add(&mut self, round: Self) {
        self.tiles += round.tiles;
        self.present += round.present;
        self.pairs += round.pairs;
        self.structure += round.structure;
        self.left_out += round.left_out;
    }
}

/// The pairs that `verified` pairs suggest, by a partner in common, and that have not been `tried`.
fn suggested(photographs: usize, verified: &[[u32; 2]], tried: &PairSet, cpu: &Cpu) -> Result<PairSet> {
    let mut partners = vec![Vec::new(); photographs];
    for &[a, b] in verified {
        partners[a as usize].push(b);
        partners[b as usize].push(a);
    }
    let of = |i: usize| -> Result<Vec<[u32; 2]>> {
        let beyond = partners[i].iter().flat_map(|&j| &partners[j as usize]).copied();
        let mut beyond: Vec<u32> = beyond.filter(|&k| k > i as u32).collect();
        beyond.sort_unstable();
        beyond.dedup();
        Ok(beyond.into_iter().map(|k| [i as u32, k]).filter(|pair| !tried.contains(*pair)).collect())
    };
    Ok(PairSet::List(cpu.try_map_task("closure", photographs, of)?.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_of_a_partner_are_suggested() {
        let cpu = Cpu::sequential();
        let verified = [[0, 1], [1, 2], [2, 3], [4, 5]];
        let found = suggested(6, &verified, &PairSet::list(verified.to_vec()), &cpu).unwrap();
        assert_eq!(found, PairSet::list(vec![[0, 2], [1, 3]]), "pairs with exactly one partner between them");
        let beyond_all = suggested(6, &verified, &PairSet::All, &cpu).unwrap();
        assert_eq!(beyond_all, PairSet::list(vec![]), "all were tried");
    }
}
