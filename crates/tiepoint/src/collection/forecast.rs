//! A forecast of the time and disk space that the work ahead takes.
//!
//! The rates are measured ones (`docs/collections.md`), on the cautious side: a photograph or a pair may well take half
//! as long. The speed at which this CPU matches is measured on the spot. The time for pairs follows from the number of
//! features that are compared: those found so far, and for photographs still to be searched the most that may be found.

use super::features::State;
use super::matches::{CHOSEN, CLOSURE};
use super::pairs::read_list;
use super::record::Found;
use super::round::Round;
use super::{Collection, PairChoice, PairSet, Shard};
use crate::Result;
use crate::device::{Cpu, Processor};
use crate::feature::select::Keep;
use crate::feature::sift::DIMENSION;
use crate::feature::{Descriptors, Features, Keypoint};
use crate::image::Size;
use crate::matching::match_features;
use crate::numeric::Random;
use crate::register::Modality;
use std::sync::Arc;
use std::time::Instant;

/// Seconds of one core for a million pixels: if it reads and searches, and if it only reads and a GPU searches.
const SEARCH: [f64; 2] = [0.4, 0.02];
/// The time of a search with domain-size pooling, over the time without.
const POOLED: f64 = 3.0;
/// Seconds for a pair of 8192 features each, on a GPU beside 16 cores.
const MATCH_ON_GPU: f64 = 0.000_15;
/// The number of features for which [`MATCH_ON_GPU`] holds.
const FEATURES: f64 = 8192.0;
/// A forecast for up to this many photographs does not wait for a GPU: they take little time without one.
const FEW: usize = 100;
/// Features that are matched to measure the speed of a CPU.
const SAMPLE: usize = 512;
/// The time of a pair including its verification, over the time of matching alone.
const WITH_VERIFICATION: f64 = 1.3;
/// Seconds of a core for a pair that is tried by structure, and for reading its photographs.
const STRUCTURE: f64 = 2.0;
/// Microseconds of a core to compare the largest features of a pair, over their number squared: 330 µs for 512.
const TOP_SCALE: f64 = 330.0 / (512.0 * 512.0);
/// Features of a photograph, over the limit of positions when whole levels are kept: 1.2 to 1.9 on photographs.
const PER_POSITION: f64 = 1.9;
/// The most features without a limit: of a photograph of any size, and for each pixel of a large one.
const UNLIMITED: [f64; 2] = [20_000.0, 0.012];
/// Bytes of a feature in the work folder, and in a database.
const FEATURE: [f64; 2] = [151.0, 152.0];
/// Bytes of a match of a verified pair, in the work folder and in a database.
const MATCH: [f64; 2] = [8.2, 16.2];
/// Matches of a verified pair, over the features of one of its photographs: 0.1 to 0.4.
const MATCHED: f64 = 0.4;
/// Verified pairs for each photograph, where a pair is counted once.
const PARTNERS: f64 = 25.0;
/// Bytes of an empty database and of the entries, without features and matches, of a photograph and a pair, rounded up.
const DATABASE: [f64; 3] = [200_000.0, 10_000.0, 6000.0];
/// Bytes of a file for each pixel: of a JPEG, and of any other.
const PIXEL: [f64; 2] = [0.3, 2.0];

/// An upper estimate of what the work ahead takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Forecast {
    /// Photographs that are to be searched.
    pub photographs: usize,
    /// Features of the photographs: those found so far, and for photographs not yet searched the most that may be
    /// found.
    pub features: u64,
    /// Pairs that are to be matched, without those that the closure has yet to suggest.
    pub pairs: u64,
    /// Seconds for features and pairs.
    pub seconds: f64,
    /// Bytes that are to be written into the work folder.
    pub work_bytes: u64,
    /// Bytes of the database of the finished collection.
    pub database_bytes: u64,
}

struct Rates {
    cpu: Cpu,
    gpus: usize,
}

impl Rates {
    /// The rates of open devices: a forecast of little work waits for no GPU. Without one it is an upper limit.
    fn of(processors: &[Processor], collection: &Collection) -> Self {
        let waits = collection.photographs().len() > FEW;
        let is_there =
            |p: &&Processor| if waits { p.gpu().is_some() } else { matches!(p.gpu_now(), Ok(Some(_))) };
        let cpu = processors.first().map_or_else(Cpu::sequential, |p| p.cpu.clone());
        Self { cpu, gpus: processors.iter().filter(is_there).count() }
    }

    /// Seconds for each comparison of two features.
    fn matching(&self, collection: &Collection) -> Result<f64> {
        if self.gpus > 0 {
            return Ok(MATCH_ON_GPU / (FEATURES * FEATURES) / self.gpus as f64);
        }
        let processor = Processor::from(Cpu::sequential().ending_with(&self.cpu));
        let floats = collection.options().features.given.is_some();
        // Features that match nothing, with SIFT's bytes or with as many floats, as features of others mostly have.
        let samples = [1, 2].map(|seed| {
            let mut random = Random::new(seed);
            let values: Vec<u8> = (0..SAMPLE * DIMENSION).map(|_| (random.bits() % 64) as u8).collect();
            let nowhere = Keypoint { scale: 1.0, sign: 1, ..Keypoint::default() };
            let descriptors = match floats {
                true => Descriptors::F32(values.into_iter().map(f32::from).collect()),
                false => Descriptors::U8(values),
            };
            let (keypoints, image) = (vec![nowhere; SAMPLE], Size::new(1, 1));
            Features { keypoints, descriptors, dimension: DIMENSION, image }
        });
        let run = || -> Result<f64> {
            let began = Instant::now();
            match_features(&samples[0], &samples[1], &collection.options().matching, &processor)?;
            Ok(began.elapsed().as_secs_f64())
        };
        // The shorter time counts: at the start of the first run the core may still run at a low clock rate.
        let measured = run()?.min(run()?);
        Ok(WITH_VERIFICATION * measured / (SAMPLE * SAMPLE) as f64 / self.cpu.threads() as f64)
    }
}

impl Collection {
    /// Estimates what is left of all stages on these devices: the threads of the first and the GPUs of all.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) when the work folder cannot be read; [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn forecast(&self, processors: &[Processor]) -> Result<Forecast> {
        let rates = Rates::of(processors, self);
        let states = self.states(&rates.cpu)?;
        let all: Vec<usize> = (0..states.len()).collect();
        let search = self.search_ahead(&all, &states, &rates);
        let counts: Vec<f64> = all.iter().map(|&i| self.most(i, &states[i])).collect();
        let matching = self.matching_ahead(Shard::ALL, states, &rates)?;
        let features: f64 = counts.iter().sum();
        let (photographs, [verified, matches]) =
            (counts.len() as f64, verified_at_most(self.pairs_in_all()?, &counts));
        let [base, photograph, pair] = DATABASE;
        let database = base + photographs * photograph + verified * pair + features * FEATURE[1];
        let (pairs, seconds) = (matching.pairs, search.seconds + matching.seconds);
        let work_bytes = search.work_bytes.saturating_add(matching.work_bytes);
        let database_bytes = (database + verified * matches * MATCH[1]) as u64;
        Ok(Forecast { pairs, seconds, work_bytes, database_bytes, ..search })
    }

    /// As [`forecast`](Self::forecast), for a part of the stage `features`.
    ///
    /// # Errors
    /// As [`forecast`](Self::forecast).
    pub fn forecast_features(&self, shard: Shard, processors: &[Processor]) -> Result<Forecast> {
        let rates = Rates::of(processors, self);
        let mine: Vec<usize> = (0..self.photographs().len()).filter(|i| shard.has(*i)).collect();
        let states = rates.cpu.try_map(mine.len(), |i| self.state(mine[i]))?;
        Ok(self.search_ahead(&mine, &states, &rates))
    }

    /// As [`forecast`](Self::forecast), for a part of the stage `match`.
    ///
    /// # Errors
    /// As [`forecast`](Self::forecast).
    pub fn forecast_matches(&self, shard: Shard, processors: &[Processor]) -> Result<Forecast> {
        let rates = Rates::of(processors, self);
        self.matching_ahead(shard, self.states(&rates.cpu)?, &rates)
    }

    fn search_ahead(&self, photographs: &[usize], states: &[State], rates: &Rates) -> Forecast {
        let todo = photographs.iter().zip(states).filter(|(_, state)| state.is_missing());
        let todo: Vec<usize> = todo.map(|(i, _)| *i).collect();
        let millions = todo.iter().map(|&i| self.pixels(i)).sum::<f64>() / 1e6;
        let searches = if self.options().features.sift.domain_size_pooling { POOLED } else { 1.0 };
        let found: f64 = todo.iter().map(|&i| self.at_most(i)).sum();
        let all: f64 = photographs.iter().zip(states).map(|(i, state)| self.most(*i, state)).sum();
        let seconds =
            millions * searches * (SEARCH[usize::from(rates.gpus > 0)] / rates.cpu.threads() as f64);
        let work_bytes = (found * FEATURE[0]) as u64 + 300 * todo.len() as u64;
        let (photographs, features) = (todo.len(), all as u64);
        Forecast { photographs, features, seconds, work_bytes, ..Forecast::default() }
    }

    /// Estimates the pairs of a part of the work that are not matched yet.
    fn matching_ahead(&self, shard: Shard, states: Vec<State>, rates: &Rates) -> Result<Forecast> {
        let counts: Vec<f64> = states.iter().enumerate().map(|(i, state)| self.most(i, state)).collect();
        let counts = &counts[..];
        let features: f64 = counts.iter().sum();
        let states = Arc::new(states);
        let (mut pairs, mut products, mut seconds) = (0, 0.0, 0.0);
        let mut structure = None;
        match self.chosen(&states)? {
            Found::Whole(chosen) => {
                let first = self.round(&states, chosen, CHOSEN)?;
                let ahead = self.structure_round(&first, &rates.cpu)?;
                let ahead = ahead.map(|round| round_ahead(&round, shard, counts, &rates.cpu)).transpose()?;
                structure = ahead.map(|(pairs, _)| pairs);
                let mut rounds = vec![first];
                if let Found::Whole(more) = self.read_pairs(&self.closure_path(), rounds[0].fingerprint())? {
                    rounds.push(self.round(&states, more, CLOSURE)?);
                }
                for round in rounds {
                    let (count, product) = round_ahead(&round, shard, counts, &rates.cpu)?;
                    pairs += count;
                    products += product;
                }
            }
            Found::Missing | Found::Unfit(_) => {
                let share = shard.share();
                pairs = (self.pairs_in_all()? as f64 * share).ceil() as u64;
                let mean = features / counts.len().max(1) as f64;
                products = pairs as f64 * mean * mean;
                if self.resolved() == PairChoice::TopScale {
                    let top = f64::from(self.options().pairs.top_features);
                    let all = PairSet::All.count(counts.len()) as f64 * share;
                    seconds = all * top * top * TOP_SCALE / 1e6 / rates.cpu.threads() as f64;
                }
            }
        }
        if pairs > 0 && self.resolved() != PairChoice::Matches {
            seconds += products * rates.matching(self)?;
        }
        if self.options().modality == Modality::Cross {
            // Before features are matched, any pair may have to be tried.
            seconds += structure.unwrap_or(pairs) as f64 * STRUCTURE / rates.cpu.threads() as f64;
        }
        let [verified, matches] = verified_at_most(pairs, counts);
        let work_bytes = (verified * matches * MATCH[0]) as u64 + 300 * pairs.min(1000);
        Ok(Forecast { features: features as u64, pairs, seconds, work_bytes, ..Forecast::default() })
    }

    /// The most pairs that are chosen in a collection that has none yet, without those of the closure.
    fn pairs_in_all(&self) -> Result<u64> {
        let (options, count) = (&self.options().pairs, self.photographs().len() as u64);
        let each = match self.resolved() {
            PairChoice::List => {
                return Ok(read_list(options, self.photographs())?.0.count(self.photographs().len()));
            }
            PairChoice::Auto | PairChoice::Exhaustive | PairChoice::Matches => count,
            PairChoice::Sequence => u64::from(options.overlap) + u64::from(options.overlap.min(17)),
            PairChoice::Gps => options.neighbours.into(),
            PairChoice::TopScale => options.top_partners.into(),
        };
        Ok(PairSet::All.count(self.photographs().len()).min(count * each))
    }

    /// The number of features of a photograph, or the most that it may have.
    fn most(&self, index: usize, state: &State) -> f64 {
        if state.is_missing() { self.at_most(index) } else { state.count() as f64 }
    }

    /// The most features that may be found in a photograph.
    fn at_most(&self, index: usize) -> f64 {
        let [any, pixel] = UNLIMITED;
        let all = any.max(pixel * self.pixels(index));
        let selection = &self.options().features.sift.selection;
        match (selection.limit, selection.keep) {
            (None, _) => all,
            (Some(limit), Keep::Levels) => all.min(PER_POSITION * limit as f64),
            (Some(limit), Keep::Scale | Keep::Response) => all.min(limit as f64),
        }
    }

    /// The pixels of a photograph that are searched, estimated from the length of its file.
    fn pixels(&self, index: usize) -> f64 {
        let photograph = &self.photographs()[index];
        let name = photograph.name.to_lowercase();
        let jpeg = [".jpg", ".jpeg", ".jpe", ".jfif"].iter().any(|end| name.ends_with(end));
        let side = f64::from(self.options().features.longest_side);
        (photograph.file.bytes as f64 / PIXEL[usize::from(!jpeg)]).min(0.75 * side * side)
    }
}

/// The most verified pairs among `pairs` tried, and the most matches of one on average, for these counts of features.
fn verified_at_most(pairs: u64, counts: &[f64]) -> [f64; 2] {
    let matches = MATCHED * counts.iter().sum::<f64>() / counts.len().max(1) as f64;
    [(pairs as f64).min(PARTNERS * counts.len() as f64), matches]
}

/// The number of pairs in a part of a round that are not tried yet, and of comparisons of two features for them.
fn round_ahead(round: &Round<'_>, shard: Shard, counts: &[f64], cpu: &Cpu) -> Result<(u64, f64)> {
    let mine = round.pairs.part(shard);
    let ahead = round.statuses(&mine, cpu, |status| {
        let product = |[a, b]: &[u32; 2]| counts[*a as usize] * counts[*b as usize];
        (status.todo.len() as u64, status.todo.iter().map(product).sum::<f64>())
    })?;
    Ok(ahead.iter().fold((0, 0.0), |(pairs, products), (n, product)| (pairs + n, products + product)))
}
