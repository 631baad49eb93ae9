//! Matching and verification of pairs.
//!
//! On a CPU every thread matches and verifies pairs of its own. With GPUs, several threads prepare pairs for each of
//! them. Matched pairs wait ([`Waiting`]) until there are hundreds, from any batch or tile; a GPU verifies them in
//! separate queues beside its matching. While [`Waiting`] is at least half full, threads of the CPU verify pairs, too.
//! Where CPU and GPU share the work and the CPU has more than a tenth of the GPUs' speed, its threads also match pairs
//! of their own. The result of a pair depends on nothing but the pair.

use super::Collection;
use super::devices::{MatchDevices, MatchGpu, VERIFIERS};
use super::given_matches::ByPair;
use super::tile::Outcome;
use super::verify::Candidate;
use super::waiting::{Help, Source, Waiting};
use super::work::{PairRun, Tiles};
use super::workers::{Job, Pace, Stop, side_by_side};
use crate::device::{Cpu, Processor};
use crate::feature::Features;
use crate::geometry::two_view::Verifier;
use crate::matching::{Match, given_matches, match_features};
use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// Pairs that a GPU matches at a time.
const BATCH: usize = 32;

/// Threads that feed a GPU: while it works for one, the others take its results and prepare the next pairs.
const FEEDERS: usize = 4;

/// The most threads that read ahead and send to the GPUs: several, because a send waits for earlier work in the queue.
const READERS: usize = 8;

/// A pair to be verified, with its place in a tile.
type Matched = (PairRun, Candidate);

/// The search of the pairs of some tiles.
pub(super) struct Search<'s, 't> {
    pub(super) collection: &'s Collection,
    /// Matches that are verified in place of a search.
    pub(super) given: &'s Option<ByPair>,
    pub(super) tiles: &'s Tiles<'t>,
    /// The CPU, which also tells whether the work is cancelled.
    pub(super) cpu: &'s Cpu,
}

impl Search<'_, '_> {
    /// The CPU works until the GPUs are open and their kernels compiled; they do the rest, or the CPU if there are none.
    pub(super) fn run(&self, devices: &MatchDevices, pairs: u64) -> Result<()> {
        let threads = (self.cpu.threads() as u64).min(pairs) as usize;
        if !devices.are_ready() {
            devices.fall_back_not_ready();
            // If no GPU can be used, the CPU goes on.
            let none = || devices.gpus().is_some_and(<[MatchGpu]>::is_empty);
            self.on_cpu(threads, &|| none() || !devices.are_ready())?;
        }
        match devices.gpus().unwrap_or_default() {
            _ if !self.tiles.are_left() => Ok(()),
            [] => self.on_cpu(threads, &|| true),
            gpus => self.on_gpus(gpus, pairs),
        }
    }

    /// Every thread matches and verifies pairs of its own.
    fn on_cpu(&self, threads: usize, goes_on: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        self.tiles.work_on_threads(threads, 1, goes_on, || {
            let processor = self.one_thread();
            let verifier = self.verifier(&processor)?;
            Ok(move |pair, features| self.match_here(pair, features, &processor, &verifier))
        })
    }

    fn match_here(
        &self,
        pair: [u32; 2],
        features: [Arc<Features>; 2],
        processor: &Processor,
        verifier: &Verifier,
    ) -> Result<Outcome> {
        let matches = self.match_pair(pair, &features, processor)?;
        self.collection.verify_pair(&Candidate { pair, features, matches }, verifier)
    }

    /// A processor for the calling thread.
    pub(super) fn one_thread(&self) -> Processor {
        Cpu::sequential().ending_with(self.cpu).into()
    }

    fn verifier(&self, processor: &Processor) -> Result<Verifier> {
        Verifier::new(&self.collection.options().two_view, processor)
    }

    fn match_pair(&self, pair: [u32; 2], [a, b]: &[Arc<Features>; 2], on: &Processor) -> Result<Vec<Match>> {
        match self.given {
            Some(given) => Ok(given_matches(a, b, given.get(&pair).map_or(&[], Vec::as_slice))),
            None => match_features(a, b, &self.collection.options().matching, on),
        }
    }

    /// The GPUs match and verify; threads of the CPU feed them, and help.
    fn on_gpus(&self, gpus: &[MatchGpu], pairs: u64) -> Result<()> {
        let waiting = &Waiting::new();
        let threads = self.cpu.threads();
        let helps = gpus.iter().any(|gpu| gpu.processor.hands_over());
        let (matched, on_cpu, tried) = Default::default();
        let shared = &Shared { helps, threads, pairs, matched, since: Instant::now(), on_cpu, tried };
        let mut jobs: Vec<Job<'_>> = Vec::new();
        for gpu in gpus {
            for _ in 0..FEEDERS {
                let source = waiting.source();
                jobs.push(Box::new(move |stop| self.match_all(stop, gpu, &source, shared)));
            }
            for queue in 0..VERIFIERS {
                jobs.push(Box::new(move |stop| self.verify_all(stop, gpu, queue, waiting)));
            }
        }
        let readers = if self.given.is_some() { 0 } else { READERS.min(threads) };
        for _ in 0..readers {
            jobs.push(Box::new(move |stop| self.read_ahead(stop, gpus)));
        }
        for _ in 0..threads {
            jobs.push(Box::new(move |stop| self.help(stop, waiting, shared)));
        }
        side_by_side(self.cpu, jobs)
    }

    /// Reads photographs and sends them to all GPUs before they are needed there.
    fn read_ahead(&self, stop: &Stop, gpus: &[MatchGpu]) -> Result<()> {
        self.tiles.read_ahead(stop, |index, features| {
            gpus.iter().try_for_each(|gpu| match gpu.uploaded.get(index, features) {
                // The matching of these photographs meets the same error and then runs on the CPU.
                Err(error) if error.is_device_limit() => Ok(()),
                sent => sent.map(drop),
            })
        })
    }

    /// Matches the next pairs on one GPU until none are left.
    fn match_all(
        &self,
        stop: &Stop,
        gpu: &MatchGpu,
        source: &Source<'_, Matched>,
        shared: &Shared,
    ) -> Result<()> {
        while !stop.is_set()
            && let Some(run) = self.tiles.take(BATCH)
        {
            let load = |single: PairRun| {
                let pair = single.pairs()[0];
                let features = self.tiles.load(&single, pair)?;
                Ok((single, Candidate { pair, features, matches: Vec::new() }))
            };
            let loaded = run.singles().map(load).collect::<Result<Vec<_>>>()?;
            let found = self.matches(&loaded, gpu)?;
            shared.matched.fetch_add(found.len(), Ordering::Relaxed);
            for ((single, candidate), matches) in loaded.into_iter().zip(found) {
                let count = matches.len();
                match count < self.collection.options().two_view.min_inliers {
                    true => self.tiles.finish(single, vec![None])?,
                    false => source.add((single, Candidate { matches, ..candidate }), count, stop),
                }
            }
        }
        Ok(())
    }

    /// The matches of some pairs, from the GPU unless they are too much for it.
    fn matches(&self, pairs: &[Matched], gpu: &MatchGpu) -> Result<Vec<Vec<Match>>> {
        let on_cpu = || {
            let processor = self.one_thread();
            pairs.iter().map(|(_, c)| self.match_pair(c.pair, &c.features, &processor)).collect()
        };
        if self.given.is_some() {
            return on_cpu();
        }
        let MatchGpu { processor, uploaded, .. } = gpu;
        let on_gpu = || {
            let both = |(_, c): &Matched| uploaded.pair(c.pair, c.features.each_ref().map(|f| &**f));
            let sides = pairs.iter().map(both).collect::<Result<Vec<_>>>()?;
            let sides: Vec<_> = sides.iter().map(|[a, b]| [&**a, &**b]).collect();
            uploaded.matcher.match_batch(&sides, &uploaded.options)
        };
        let found = on_gpu().or_else(|error| match error {
            // Photographs kept on the device may have used up its memory.
            Error::Memory { .. } => {
                uploaded.kept.clear();
                on_gpu()
            }
            other => Err(other),
        });
        processor.or_on_cpu("matching", found, |_| on_cpu())
    }

    /// Verifies waiting pairs in one queue of a GPU until no more come.
    fn verify_all(&self, stop: &Stop, gpu: &MatchGpu, queue: usize, pairs: &Waiting<Matched>) -> Result<()> {
        let verifier = gpu.verifier(queue)?;
        loop {
            let (singles, candidates): (Vec<_>, Vec<_>) = pairs.take_many(stop).into_iter().unzip();
            if singles.is_empty() {
                return Ok(());
            }
            let found = self.collection.verify(&candidates, &verifier, self.cpu)?;
            drop(candidates);
            for (single, found) in singles.into_iter().zip(found) {
                self.tiles.finish(single, vec![found])?;
            }
        }
    }

    /// Verifies waiting pairs on this thread while the GPUs are behind, and matches pairs where that pays.
    fn help(&self, stop: &Stop, waiting: &Waiting<Matched>, shared: &Shared) -> Result<()> {
        let processor = self.one_thread();
        let verifier = self.verifier(&processor)?;
        while let Some(help) =
            waiting.take_one(stop, || self.tiles.are_left() && shared.matching_pays(self.tiles.taken()))
        {
            let (run, found) = match help {
                Help::Verify((run, candidate)) => (run, self.collection.verify_pair(&candidate, &verifier)?),
                Help::Match => {
                    let Some(run) = self.tiles.take(1) else { continue };
                    let (began, pair) = (Instant::now(), run.pairs()[0]);
                    let features = self.tiles.load(&run, pair)?;
                    let found = self.match_here(pair, features, &processor, &verifier)?;
                    shared.on_cpu.add(1, began.elapsed());
                    (run, found)
                }
            };
            self.tiles.finish(run, vec![found])?;
        }
        Ok(())
    }
}

/// A CPU that matches fewer pairs a second than this share of the GPUs' only prepares pairs for them.
const LEAST_CPU_SHARE: f64 = 0.1;

/// How CPU and GPUs share the pairs.
struct Shared {
    /// Whether the CPU matches, too.
    helps: bool,
    threads: usize,
    pairs: u64,
    /// Pairs that the GPUs have matched, and since when they work.
    matched: AtomicUsize,
    since: Instant,
    on_cpu: Pace,
    /// Whether a thread of the CPU has taken a pair to measure its speed.
    tried: AtomicBool,
}

impl Shared {
    /// Whether a thread of the CPU is done with a pair before the GPUs have matched all that are left after `taken` pairs.
    fn matching_pays(&self, taken: u64) -> bool {
        let left = self.pairs.saturating_sub(taken);
        if !self.helps || left == 0 {
            return false;
        }
        let Some(on_cpu) = self.on_cpu.seconds() else { return !self.tried.swap(true, Ordering::Relaxed) };
        // At the start the first batch counts as done, because it is expected at any moment.
        let matched = self.matched.load(Ordering::Relaxed).max(BATCH);
        let gpus_a_second = matched as f64 / self.since.elapsed().as_secs_f64();
        self.threads as f64 > LEAST_CPU_SHARE * gpus_a_second * on_cpu && left as f64 > gpus_a_second * on_cpu
    }
}
