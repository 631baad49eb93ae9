//! Matches many pairs at a time: their searches are one list of commands, and only the matches are copied to the host.

use super::packed::GpuPacked;
use super::regions::{Cut, FOUND};
use super::rows;
use super::rule::Rule;
use super::{GpuMatcher, Match, MatchOptions};
use crate::device::gpu::{Buffer, Commands, Pinned};
use crate::matching::nearest;
use crate::{Error, Result};

/// The number of words of a match: pair, indices of its features in A and in B, distance, ratio.
const ROW: usize = 5;

tiepoint_gpu::kernel! {
    pub(super) unsafe kernel accept_matches(groups) = AcceptMatches {
        write found: u32 [capacity * ROW as i128],
        write found_count: u32 [1],
        read nearest: u32 [(capacity_a + capacity_b) * FOUND as i128],
        read count_a: u32 [1],
    } {
        /// The number of the pair, the first word of its rows.
        pair: u32,
        capacity_a: u32,
        capacity_b: u32,
        /// The number of matches that fit.
        capacity: u32,
        rule: Rule,
    }
}

/// Host memory that receives the matches of a batch. It is kept for later batches; threads that match at the same time
/// each have their own.
#[derive(Debug)]
pub(super) struct Landing {
    count: Pinned<u32>,
    /// Rows of [`ROW`] words, in any order.
    rows: Pinned<u32>,
}

impl GpuMatcher {
    /// The matches of each pair in the order of their index in A, as [`match_features`](Self::match_features) finds
    /// them. All memory besides the packed features is allocated once, for the largest pair, and kept. Several threads
    /// may call this at the same time: while one waits for its matches or sorts them, the device works for another.
    ///
    /// # Errors
    /// As [`match_features`](Self::match_features) for options, for sides of different kinds, and for a device that
    /// fails; [`Error::Mismatch`] for a guided search, whose sides are not packed, and for features packed by sign if
    /// the other side is not, or if the options do not ask for equal signs.
    pub fn match_batch(&self, pairs: &[[&GpuPacked; 2]], options: &MatchOptions) -> Result<Vec<Vec<Match>>> {
        let (found, count, mut commands) = self.record_batch(pairs, options)?;
        self.landings.with(
            || Ok(Landing { count: self.gpu.pinned(1)?, rows: self.gpu.pinned(ROW)? }),
            |landing| {
                commands.download(&count, &mut landing.count)?;
                self.gpu.run(&commands)?;
                let searched = self.gpu.mark()?;
                #[expect(unsafe_code, reason = "memory that the device writes")]
                // SAFETY: the commands that write the count are run once, before the mark.
                let rows = unsafe { landing.count.numbers_at(&searched, 0..1) }?[0] as usize;
                landing.rows.reserve(rows * ROW)?;
                let mut download = Commands::new();
                download.download_part((&found, 0), (&mut landing.rows, 0), rows * ROW)?;
                let transfer = self.gpu.download_after(download, &searched)?;
                #[expect(unsafe_code, reason = "memory that the device writes")]
                // SAFETY: as for the count; nothing else uses the landing meanwhile.
                let rows = unsafe { landing.rows.numbers_at(transfer.done(), 0..rows * ROW) }?;
                Ok(sorted(rows, pairs.len()))
            },
        )
    }

    /// The rows of all matches, their number, and the commands that write both.
    fn record_batch(
        &self,
        pairs: &[[&GpuPacked; 2]],
        options: &MatchOptions,
    ) -> Result<(Buffer<u32>, Buffer<u32>, Commands)> {
        options.check()?;
        if options.guide.is_some() {
            return Err(Error::Mismatch("a batch of pairs takes no guide".into()));
        }
        if pairs.iter().any(|[a, b]| a.by_sign != b.by_sign || a.by_sign && !options.same_sign) {
            return Err(Error::Mismatch(
                "features were packed by sign, but the other side or these options do not go by sign".into(),
            ));
        }
        let most = |size: fn(&[&GpuPacked; 2]) -> usize| pairs.iter().map(size).max().unwrap_or(0);
        let capacity: usize = pairs.iter().map(|[a, _]| a.capacity).sum();
        let cuts = pairs.iter().filter_map(|[a, b]| {
            let sides = [a.packed.as_ref()?.rows.side, b.packed.as_ref()?.rows.side];
            Some(self.cut(a.kind, sides, Cut::BOTH))
        });
        let words = cuts.map(|cut| cut.found(cut.groups() as i128) as usize).max().unwrap_or(0);
        let neighbours: Buffer<u32> = self.gpu.buffer(words)?;
        let nearest: Buffer<u32> = self.gpu.buffer(most(|[a, b]| a.capacity + b.capacity) * FOUND)?;
        let (found, count) = (self.gpu.buffer(capacity * ROW)?, self.gpu.buffer(1)?);
        let mut commands = Commands::new();
        commands.zero(&count)?;
        for (pair, [a, b]) in pairs.iter().enumerate() {
            let (Some(side_a), Some(side_b)) = (&a.packed, &b.packed) else { continue };
            a.kind.check_against(b.kind)?;
            let (kind, cut) = (a.kind, self.cut(a.kind, [side_a.rows.side, side_b.rows.side], Cut::BOTH));
            nearest::gpu::search(&mut commands, &self.search(kind)?, [side_a, side_b], cut, &neighbours)?;
            let (program, sides) = (&self.rows(kind)?, [&side_a.rows, &side_b.rows]);
            rows::merge(&mut commands, program, sides, cut, &neighbours, &nearest)?;
            commands.stage("match accept");
            let accepted = AcceptMatches {
                found: &found,
                found_count: &count,
                nearest: &nearest,
                count_a: &a.count,
                pair: pair as u32,
                capacity_a: a.capacity as u32,
                capacity_b: b.capacity as u32,
                capacity: capacity as u32,
                rule: Rule::new(options),
            };
            commands.launch(&program.kernel::<AcceptMatches<'_>>()?, rows::groups(a.capacity), accepted)?;
        }
        Ok((found, count, commands))
    }
}

/// The matches of each pair from rows in any order.
fn sorted(words: &[u32], pairs: usize) -> Vec<Vec<Match>> {
    let mut counts = vec![0; pairs];
    words.chunks_exact(ROW).for_each(|row| counts[row[0] as usize] += 1);
    let mut matches: Vec<Vec<Match>> = counts.into_iter().map(Vec::with_capacity).collect();
    for row in words.chunks_exact(ROW) {
        let (distance, ratio) = (f32::from_bits(row[3]), f32::from_bits(row[4]));
        matches[row[0] as usize].push(Match { a: row[1], b: row[2], distance, ratio });
    }
    matches.iter_mut().for_each(|of_pair| of_pair.sort_unstable_by_key(|m| m.a));
    matches
}
