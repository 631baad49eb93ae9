//! Many pairs at a time: their searches are one list of commands, and the matches alone travel to the host.

use super::packed::GpuPacked;
use super::regions::{FOUND, Kind};
use super::{GpuMatcher, Match, MatchOptions};
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::{Error, Result};
use tiepoint_gpu::{Kernel, KernelSource};

/// Lanes of the groups that accept matches.
const LANES: u32 = 256;
/// Words of a match: pair, features of A and of B, distance, ratio.
const ROW: usize = 5;

tiepoint_gpu::kernel! {
    /// Writes the nearest neighbours that are matches.
    unsafe kernel accept_matches(groups) = AcceptMatches {
        write found: u32 [capacity * ROW as i128],
        write found_count: u32 [1],
        read nearest: u32 [(capacity_a + capacity_b) * FOUND as i128],
        read count_a: u32 [1],
    } {
        /// What the rows of this pair begin with.
        pair: u32,
        capacity_a: u32,
        capacity_b: u32,
        /// Matches that there is room for.
        capacity: u32,
        /// 1: each must be the other's nearest.
        mutual: u32,
        /// 1: `ratio` counts.
        has_ratio: u32,
        ratio: f32,
        max_distance: f32,
    }
}

pub(super) fn source(kind: Kind) -> KernelSource {
    kind.rows("match accept")
        .define("LANES", LANES)
        .kernel::<AcceptMatches<'_>>([LANES, 1])
        .text(include_str!("accept.cl"))
}

/// The kernel that accepts matches.
#[derive(Debug)]
pub(super) struct GpuAccept(Kernel<AcceptMatches<'static>>);

impl GpuAccept {
    fn new(gpu: &Gpu, kind: Kind) -> Result<Self> {
        Ok(Self(gpu.program(&source(kind))?.kernel::<AcceptMatches<'_>>()?))
    }
}

/// Matches of many pairs on their way.
#[derive(Debug)]
pub struct GpuBatch {
    pairs: usize,
    /// Rows of [`ROW`] words, in any order.
    found: Buffer<u32>,
    count: Buffer<u32>,
}

impl GpuMatcher {
    /// The matches of each pair, as [`match_features`](Self::match_features) finds them.
    ///
    /// # Errors
    /// As [`begin_batch`](Self::begin_batch), and [`Error::Device`].
    pub fn match_batch(
        &self,
        pairs: &[[&GpuPacked; 2]],
        options: &MatchOptions,
    ) -> Result<Vec<Vec<Match>>> {
        self.begin_batch(pairs, options)?.matches()
    }

    /// Puts the search of many pairs into the queue. All memory that it needs beside the packed features is taken once, for
    /// the largest of the pairs.
    ///
    /// # Errors
    /// As [`match_features`](Self::match_features) for options and for sides of different kinds; [`Error::Mismatch`] for a
    /// guided search, whose sides are not packed, and for features that were packed for another `same_sign`.
    pub fn begin_batch(&self, pairs: &[[&GpuPacked; 2]], options: &MatchOptions) -> Result<GpuBatch> {
        options.check()?;
        if options.guide.is_some() {
            return Err(Error::Mismatch("a batch of pairs has no model to guide it".into()));
        }
        if pairs.iter().flatten().any(|side| side.by_sign != options.same_sign) {
            return Err(Error::Mismatch("features were packed for another `same_sign`".into()));
        }
        let most = |size: fn(&[&GpuPacked; 2]) -> usize| pairs.iter().map(size).max().unwrap_or(0);
        let capacity: usize = pairs.iter().map(|[a, _]| a.capacity).sum();
        let cuts = pairs.iter().filter_map(|[a, b]| {
            Some(self.cut(a.packed.as_ref()?.rows.side, b.packed.as_ref()?.rows.side))
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
            let (kind, cut) = (a.kind, self.cut(side_a.rows.side, side_b.rows.side));
            self.searches(kind)?.search(&mut commands, [side_a, side_b], cut, &neighbours)?;
            self.rows(kind)?.merge(
                &mut commands,
                [&side_a.rows, &side_b.rows],
                cut,
                &neighbours,
                &nearest,
            )?;
            commands.stage("match accept");
            let accept = AcceptMatches {
                found: &found,
                found_count: &count,
                nearest: &nearest,
                count_a: &a.count,
                pair: pair as u32,
                capacity_a: a.capacity as u32,
                capacity_b: b.capacity as u32,
                capacity: capacity as u32,
                mutual: u32::from(options.mutual),
                has_ratio: u32::from(options.ratio.is_some()),
                ratio: options.ratio.unwrap_or(1.0),
                max_distance: options.max_distance.unwrap_or(f32::INFINITY),
            };
            let kernel = self.accepts.get(kind, || GpuAccept::new(&self.gpu, kind))?;
            commands.launch(&kernel.0, [a.capacity.div_ceil(LANES as usize), 1, 1], accept)?;
        }
        self.gpu.run(&commands)?;
        Ok(GpuBatch { pairs: pairs.len(), found, count })
    }
}

impl GpuBatch {
    /// The matches of each pair in the order of their index in A, when the device has finished.
    ///
    /// # Errors
    /// [`Error::Device`] when it failed.
    pub fn matches(&self) -> Result<Vec<Vec<Match>>> {
        let mut count = [0];
        self.count.read(0, &mut count)?;
        let mut words = vec![0; count[0] as usize * ROW];
        self.found.read(0, &mut words)?;
        let mut matches = vec![Vec::new(); self.pairs];
        for row in words.chunks_exact(ROW) {
            let (distance, ratio) = (f32::from_bits(row[3]), f32::from_bits(row[4]));
            matches[row[0] as usize].push(Match { a: row[1], b: row[2], distance, ratio });
        }
        matches.iter_mut().for_each(|of_pair: &mut Vec<Match>| of_pair.sort_unstable_by_key(|m| m.a));
        Ok(matches)
    }
}
