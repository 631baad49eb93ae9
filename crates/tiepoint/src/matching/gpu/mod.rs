//! Matching on a GPU: the CPU's nearest neighbours, bit for bit.
//!
//! Both ways are searched alike, each with all its products; one product for both would save tensor cores, which are
//! not what the search waits for, and would need results of every column from every block of rows. On an H200 and
//! 16 000 × 16 000 × 128 bytes, one way has a floor of about 0.07 ms: 3.3·10¹⁰ multiply-adds at 0.6·10¹⁵/s take
//! 0.055 ms, 2.6·10⁸ products of three minima or maxima at 1.5·10¹³/s take 0.052 ms, and the two overlap in part.
//!
//! Memory follows n + m: descriptors packed once more, and what each work group found, whose number does not grow with
//! the features unless their blocks alone fill the card.

mod batch;
pub(super) mod regions;
mod rows;

pub use batch::GpuBatch;

use super::nearest::gpu::{Form, tensor};
use super::nearest::{Best, NONE};
use super::product::Distance;
use super::{Guide, MAX_DIMENSION, Match, MatchOptions, Nearest, filtered, finished, kinds_differ};
use super::{guided, nearest};
use crate::device::gpu::{Api, Buffer, Commands, Element, Gpu};
use crate::feature::gpu::{GpuDescriptors, GpuFeatures};
use crate::{Error, Result};
use regions::{Cut, FOUND, Kind, Ordered};
use rows::GpuRows;

/// Work groups for every multiprocessor: enough that the last ones to finish cost little.
const GROUPS_A_UNIT: u32 = 16;

/// Matches features that lie on a device; see [`super::match_features`].
#[derive(Clone, Debug)]
pub struct GpuMatcher {
    gpu: Gpu,
    portable: bool,
}

/// The nearest neighbours of two sets of features, on a device once the commands have run.
#[derive(Clone, Debug)]
pub struct GpuNearest {
    /// [`FOUND`] words for every feature that fits A, then B.
    nearest: Buffer<u32>,
    /// How many features A and B have, bright ones and dark ones each.
    regions: Buffer<u32>,
    capacity_a: usize,
    floats: bool,
}

impl GpuDescriptors {
    pub(crate) fn values(&self) -> usize {
        match self {
            Self::U8(buffer) => buffer.len(),
            Self::F32(buffer) => buffer.len(),
        }
    }

    fn are_floats(&self) -> bool {
        matches!(self, Self::F32(_))
    }
}

impl GpuFeatures {
    /// Waits for all work.
    fn len(&self) -> Result<usize> {
        let mut count = [0];
        self.count.read(0, &mut count)?;
        Ok((count[0] as usize).min(self.capacity()))
    }

    /// Whether every keypoint has a descriptor.
    fn check(&self) -> Result<()> {
        let (capacity, dimension, values) = (self.capacity(), self.dimension, self.descriptors.values());
        if dimension > MAX_DIMENSION {
            return Err(Error::Mismatch(format!(
                "descriptors of {dimension} values: at most {MAX_DIMENSION} can be matched"
            )));
        }
        if capacity >= NONE as usize / 4 {
            let feature = format!("indices for {capacity} features; at most {} can be matched", NONE / 4 - 1);
            return Err(Error::Unsupported { device: "a GPU".into(), feature });
        }
        if dimension == 0 || capacity.checked_mul(dimension).is_none_or(|n| n > values) {
            return Err(Error::Mismatch(format!(
                "{capacity} keypoints have {values} descriptor values, not {dimension} each; detect with descriptors"
            )));
        }
        Ok(())
    }
}

impl GpuMatcher {
    /// A matcher for a device.
    pub fn new(gpu: &Gpu) -> Self {
        Self { gpu: gpu.clone(), portable: false }
    }

    /// Whether to use the kernel that runs on every device, even where there is a faster one. Default no.
    #[must_use]
    pub fn portable(self, portable: bool) -> Self {
        Self { portable, ..self }
    }

    fn form(&self, floats: bool, dimension: usize) -> Form {
        let info = self.gpu.info();
        let tensor = info.api == Api::Cuda && info.capability >= 80 && !self.portable;
        if tensor && !floats && dimension <= tensor::MAX_DIMENSION { Form::Tensor } else { Form::Portable }
    }

    /// What kernels a search needs, of two sides that are fit for each other.
    fn kind(&self, a: &GpuFeatures, b: &GpuFeatures, guided: bool) -> Result<Kind> {
        a.check()?;
        b.check()?;
        let floats = a.descriptors.are_floats();
        if floats != b.descriptors.are_floats() {
            return Err(kinds_differ());
        }
        if a.dimension != b.dimension {
            return Err(super::dimensions_differ(a.dimension, b.dimension));
        }
        let form = if guided { Form::Portable } else { self.form(floats, a.dimension) };
        Ok(Kind { form, floats, dimension: a.dimension })
    }

    fn cut(&self, a: &GpuFeatures, b: &GpuFeatures, kind: Kind) -> Cut {
        let block = kind.form.block();
        // Bright and dark features begin at blocks of their own.
        let span = |f: &GpuFeatures| (f.capacity() as u32).next_multiple_of(block) + block;
        Cut {
            capacity_a: a.capacity() as u32,
            capacity_b: b.capacity() as u32,
            dimension: kind.dimension as u32,
            words: kind.words() as u32,
            block,
            span: span(a),
            rows: span(a) + span(b),
            parts: self.gpu.info().units * GROUPS_A_UNIT,
        }
    }

    /// Adds the search for the two nearest neighbours, both ways, to the commands; of `options` only `same_sign` and
    /// `guide` matter here. Both sides may come from commands before these: their numbers are read on the device.
    ///
    /// # Errors
    /// As [`super::match_features`] for what is known before; [`Error::Memory`] when the device's memory is too small,
    /// [`Error::Unsupported`] for a guided search by a device without f64.
    pub fn record(
        &self,
        commands: &mut Commands,
        a: &GpuFeatures,
        b: &GpuFeatures,
        options: &MatchOptions,
    ) -> Result<GpuNearest> {
        options.check()?;
        let kind = self.kind(a, b, options.guide.is_some())?;
        let cut = self.cut(a, b, kind);
        let result = GpuNearest {
            nearest: self.gpu.buffer((a.capacity() + b.capacity()) * FOUND)?,
            regions: self.gpu.buffer(4)?,
            capacity_a: a.capacity(),
            floats: kind.floats,
        };
        let order = self.gpu.buffer(cut.rows as usize)?;
        let rows = Ordered { gpu: &self.gpu, kind, cut, order, regions: &result.regions };
        let kernels = GpuRows::new(&self.gpu, kind)?;
        kernels.order(commands, [a, b], options.same_sign, &rows)?;
        let keypoints = [&a.keypoints, &b.keypoints];
        let found = match (&a.descriptors, &b.descriptors) {
            (GpuDescriptors::U8(a), GpuDescriptors::U8(b)) => {
                search(commands, &rows, keypoints, [a, b], options.guide)?
            }
            (GpuDescriptors::F32(a), GpuDescriptors::F32(b)) => {
                search(commands, &rows, keypoints, [a, b], options.guide)?
            }
            (GpuDescriptors::U8(_), GpuDescriptors::F32(_))
            | (GpuDescriptors::F32(_), GpuDescriptors::U8(_)) => return Err(kinds_differ()),
        };
        kernels.merge(commands, &rows, &found, &result.nearest)?;
        Ok(result)
    }

    /// The two nearest neighbours of every feature: first those of A in B, then those of B in A, as
    /// [`super::nearest_neighbours`] gives them.
    ///
    /// # Errors
    /// As [`super::nearest_neighbours`], and [`Error::Device`].
    pub fn nearest_neighbours(&self, a: &GpuFeatures, b: &GpuFeatures) -> Result<[Vec<Option<Nearest>>; 2]> {
        self.nearest(a, b, &MatchOptions { same_sign: false, ..MatchOptions::default() })
    }

    /// The matches of A with B, in the order of their index in A, as [`super::match_features`] gives them.
    ///
    /// # Errors
    /// As [`super::match_features`], and [`Error::Device`].
    pub fn match_features(
        &self,
        a: &GpuFeatures,
        b: &GpuFeatures,
        options: &MatchOptions,
    ) -> Result<Vec<Match>> {
        Ok(filtered(&self.nearest(a, b, options)?, options))
    }

    fn nearest(
        &self,
        a: &GpuFeatures,
        b: &GpuFeatures,
        options: &MatchOptions,
    ) -> Result<[Vec<Option<Nearest>>; 2]> {
        options.check()?;
        if let Err(error) = self.kind(a, b, false) {
            // Where there is nothing to compare, nothing differs.
            let counts = [a.len()?, b.len()?];
            let broken = [a, b].iter().zip(counts).any(|(f, n)| n > 0 && f.check().is_err());
            return match counts.contains(&0) && !broken {
                true => Ok(counts.map(|n| vec![None; n])),
                false => Err(error),
            };
        }
        let mut commands = Commands::new();
        let found = self.record(&mut commands, a, b, options)?;
        self.gpu.run(&commands)?;
        found.download()
    }
}

impl GpuNearest {
    /// The neighbours of A in B and of B in A, when the device has finished.
    ///
    /// # Errors
    /// [`Error::Device`] when it failed.
    pub fn download(&self) -> Result<[Vec<Option<Nearest>>; 2]> {
        let counts = self.regions.to_vec()?;
        let side = |first: usize, count: u32| -> Result<_> {
            let mut words = vec![0; count as usize * FOUND];
            self.nearest.read(first * FOUND, &mut words)?;
            Ok(words.chunks_exact(FOUND).map(|w| self.read(w)).collect())
        };
        Ok([side(0, counts[0] + counts[1])?, side(self.capacity_a, counts[2] + counts[3])?])
    }

    /// The matches, as [`super::match_features`] filters them, when the device has finished.
    ///
    /// # Errors
    /// [`Error::Device`] when it failed.
    pub fn matches(&self, options: &MatchOptions) -> Result<Vec<Match>> {
        Ok(filtered(&self.download()?, options))
    }

    fn read(&self, words: &[u32]) -> Option<Nearest> {
        fn best<T: Distance>(words: &[u32], distance: impl Fn(u32) -> T) -> Option<Nearest> {
            finished(&Best { first: distance(words[0]), second: distance(words[1]), index: words[2] })
        }
        if self.floats { best(words, f32::from_bits) } else { best(words, |w| w as i32) }
    }
}

fn search<V: Element>(
    commands: &mut Commands,
    rows: &Ordered<'_>,
    keypoints: [&Buffer<u32>; 2],
    descriptors: [&Buffer<V>; 2],
    guide: Option<Guide>,
) -> Result<Buffer<u32>> {
    match guide {
        Some(guide) => guided::gpu::record(commands, rows, keypoints, descriptors, &guide),
        None => nearest::gpu::record(commands, rows, descriptors),
    }
}

#[cfg(test)]
mod tests;
