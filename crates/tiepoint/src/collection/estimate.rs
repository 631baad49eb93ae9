//! What the work ahead takes, before it begins.
//!
//! Rates are cautious ones, measured in November 2026 (`docs/collections.md`): a photograph or a pair may well take half
//! as long. How long pairs take follows from how many features are compared.

use super::features::State;
use super::{Collection, PairChoice};
use crate::Result;
use crate::device::{Cpu, Processor};

/// Seconds of a core for each million pixels that are searched: on the CPU, and where a GPU searches and the core reads.
const SEARCH: [f64; 2] = [0.4, 0.02];
/// Seconds for a pair of 8192 features each: of a core, and of a GPU with 16 cores.
const MATCH: [f64; 2] = [0.05, 0.000_15];
/// Features that these hold for.
const FEATURES: f64 = 8192.0;
/// Microseconds of a core for a pair of largest features, over the square of their number: 330 µs for 512.
const TOP_SCALE: f64 = 330.0 / (512.0 * 512.0);
/// Bytes of a feature in the work folder, and in a database.
const FEATURE: [u64; 2] = [151, 152];
/// Bytes of the verified pairs of a photograph, in the work folder and in a database: some 50 of 300 matches.
const VERIFIED: [u64; 2] = [125_000, 200_000];
/// Bytes of a file for each pixel: photographs as JPEG, and others.
const PIXEL: [f64; 2] = [0.3, 2.0];

/// What the work ahead takes at most, about.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Estimate {
    /// Photographs that are to be searched.
    pub photographs: usize,
    /// Pairs of a fresh collection that are to be matched, without those of the closure.
    pub pairs: u64,
    /// How long features and pairs take, in seconds.
    pub seconds: f64,
    /// Bytes that are to be written into the work folder.
    pub work_bytes: u64,
    /// Bytes of a database.
    pub database_bytes: u64,
}

impl Collection {
    /// What the work ahead takes on these devices: the threads of the first and the GPUs of all. Pairs are counted as if
    /// none were matched.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) when the work folder cannot be read.
    pub fn estimate(&self, processors: &[Processor]) -> Result<Estimate> {
        let cpu = processors.first().map_or_else(Cpu::sequential, |p| p.cpu.clone());
        let (threads, gpus) = (cpu.threads() as f64, processors.iter().filter(|p| p.gpu.is_some()).count());
        let on = usize::from(gpus > 0);
        let options = self.options();
        // No photograph has many more.
        let most = options.features.sift.selection.limit.map_or(20_000, |limit| limit.min(20_000));
        let side = f64::from(options.features.longest_side);
        let (mut estimate, mut millions) = (Estimate::default(), 0.0);
        for (photograph, state) in self.photographs().iter().zip(self.states(&cpu)?) {
            if matches!(state, State::Found { .. }) {
                continue;
            }
            let name = photograph.name.to_lowercase();
            let jpeg = [".jpg", ".jpeg", ".jpe", ".jfif"].iter().any(|end| name.ends_with(end));
            let pixels = photograph.file.bytes as f64 / PIXEL[usize::from(!jpeg)];
            millions += pixels.min(0.75 * side * side) / 1e6;
            estimate.photographs += 1;
        }
        let count = self.photographs().len() as u64;
        let all = count * count.saturating_sub(1) / 2;
        let choice = self.resolved();
        let each = match choice {
            PairChoice::Auto | PairChoice::Exhaustive | PairChoice::List => count,
            PairChoice::Sequence => {
                u64::from(options.pairs.overlap) + u64::from(options.pairs.overlap.min(17))
            }
            PairChoice::Gps => options.pairs.neighbours.into(),
            PairChoice::TopScale => options.pairs.top_partners.into(),
        };
        estimate.pairs = all.min(count * each);
        let share = most as f64 / FEATURES;
        let compared = match choice {
            PairChoice::TopScale => {
                let top = f64::from(options.pairs.top_features);
                all as f64 * top * top * TOP_SCALE / 1e6
            }
            _ => 0.0,
        };
        let matched = estimate.pairs as f64 * MATCH[on] * share * share;
        let matched = if gpus > 0 { matched / gpus as f64 } else { matched / threads };
        estimate.seconds = (millions * SEARCH[on] + compared) / threads + matched;
        let features = |bytes: u64| (most as u64).saturating_mul(bytes);
        let all = estimate.photographs as u64;
        estimate.work_bytes = all.saturating_mul(features(FEATURE[0])).saturating_add(count * VERIFIED[0]);
        estimate.database_bytes = count.saturating_mul(features(FEATURE[1]).saturating_add(VERIFIED[1]));
        Ok(estimate)
    }
}
