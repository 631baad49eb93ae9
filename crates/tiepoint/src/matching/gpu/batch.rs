//! Many pairs at a time: their searches are one list of commands, and the matches alone travel to the host.

use super::regions::{FOUND, Kind};
use super::{GpuMatcher, Match, MatchOptions};
use crate::Result;
use crate::device::gpu::{Buffer, Commands};
use crate::feature::gpu::GpuFeatures;
use tiepoint_gpu::KernelSource;

/// Lanes of the groups that accept matches.
const LANES: u32 = 256;
/// Words of a match: pair, features of A and of B, distance, ratio.
const ROW: usize = 5;

tiepoint_gpu::kernel! {
    /// Writes the nearest neighbours that are matches.
    unsafe kernel accept_matches(groups) = AcceptMatches {
        write found: u32 [i128::from(capacity) * ROW as i128],
        write found_count: u32 [1],
        read nearest: u32 [(i128::from(capacity_a) + i128::from(capacity_b)) * FOUND as i128],
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
    /// As [`match_features`](Self::match_features).
    pub fn match_batch(
        &self,
        pairs: &[[&GpuFeatures; 2]],
        options: &MatchOptions,
    ) -> Result<Vec<Vec<Match>>> {
        // Sides without any feature, and sides of different kinds, are for the search of a single pair.
        let is_plain = |[a, b]: &[&GpuFeatures; 2]| {
            a.capacity() > 0 && b.capacity() > 0 && self.kind(a, b, options.guide.is_some()).is_ok()
        };
        let plain: Vec<[&GpuFeatures; 2]> = pairs.iter().copied().filter(is_plain).collect();
        let mut batch = match plain.is_empty() {
            true => Vec::new(),
            false => self.begin_batch(&plain, options)?.matches()?,
        }
        .into_iter();
        let of_pair = |pair: &[&GpuFeatures; 2]| match is_plain(pair) {
            true => Ok(batch.next().unwrap_or_default()),
            false => self.match_features(pair[0], pair[1], options),
        };
        pairs.iter().map(of_pair).collect()
    }

    /// Puts the search of many pairs into the queue. Every side has room for some feature.
    ///
    /// # Errors
    /// As [`match_features`](Self::match_features).
    pub fn begin_batch(&self, pairs: &[[&GpuFeatures; 2]], options: &MatchOptions) -> Result<GpuBatch> {
        options.check()?;
        let capacity: usize = pairs.iter().map(|[a, _]| a.capacity()).sum();
        let (found, count) = (self.gpu.buffer(capacity * ROW)?, self.gpu.buffer(1)?);
        let mut commands = Commands::new();
        commands.zero(&count)?;
        for (pair, [a, b]) in pairs.iter().enumerate() {
            let nearest = self.record(&mut commands, a, b, options)?;
            commands.stage("match accept");
            let kind = self.kind(a, b, options.guide.is_some())?;
            let kernel = self.gpu.program(&source(kind))?.kernel::<AcceptMatches<'_>>()?;
            let accept = AcceptMatches {
                found: &found,
                found_count: &count,
                nearest: &nearest.nearest,
                count_a: &a.count,
                pair: pair as u32,
                capacity_a: a.capacity() as u32,
                capacity_b: b.capacity() as u32,
                capacity: capacity as u32,
                mutual: u32::from(options.mutual),
                has_ratio: u32::from(options.ratio.is_some()),
                ratio: options.ratio.unwrap_or(1.0),
                max_distance: options.max_distance.unwrap_or(f32::INFINITY),
            };
            commands.launch(&kernel, [a.capacity().div_ceil(LANES as usize), 1, 1], accept)?;
        }
        self.gpu.run(&commands)?;
        Ok(GpuBatch { pairs: pairs.len(), found, count })
    }
}

impl GpuBatch {
    /// The matches of each pair in the order of their index in A, when the device has finished.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) when it failed.
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
