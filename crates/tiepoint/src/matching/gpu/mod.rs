//! Matching on a GPU: the CPU's nearest neighbours, bit for bit.
//!
//! The searches from A to B and from B to A each compute all products. To share them, every block of rows would have to
//! give results for every column, which takes more comparisons than it saves products. The time of one direction is
//! bounded by the tensor cores, with one multiply-add for each byte of a product, and by two integer operations for
//! each product beside them (`docs/notebook/matching.md`).
//!
//! Memory is proportional to n + m: a packed copy of the descriptors, and the results of each work group. The number of
//! work groups is fixed, unless there are more blocks of features.

mod batch;
mod columns;
mod packed;
pub(super) mod regions;
mod rows;
mod rule;

pub use columns::{GpuMatches, GpuNeighbours};
pub use packed::GpuPacked;

use super::guided::gpu::{lines, places};
use super::nearest::gpu::{Form, tensor};
use super::nearest::{self, Best, NONE};
use super::product::Distance;
use super::{
    Guide, MAX_DIMENSION, Match, MatchOptions, Nearest, filtered, finished, kinds_differ, matches_of_some,
};
use crate::device::Scratch;
use crate::device::gpu::{Api, Buffer, Commands, Gpu};
use crate::feature::gpu::GpuFeatures;
use crate::feature::gpu::sending::Sending;
use crate::feature::{ByValue, by_value};
use crate::{Error, Result};
use batch::Landing;
use regions::{Cut, FOUND, SearchKind, Side};
use std::sync::{Arc, Mutex};
use tiepoint_gpu::{KernelSource, Program, lock};

/// Matches features that lie on a device; see [`super::match_features`].
#[derive(Clone, Debug)]
pub struct GpuMatcher {
    gpu: Gpu,
    portable: bool,
    // Clones share programs and memory.
    rows: Arc<Programs>,
    searches: Arc<Programs>,
    landings: Arc<Scratch<Landing>>,
    sendings: Arc<Scratch<Sending>>,
}

/// The nearest neighbours of two sets of features, in a device's memory once the commands have run.
#[derive(Clone, Debug)]
pub struct GpuNearest {
    /// [`FOUND`] words for every feature that A has room for, then for B's if these were searched for, too.
    nearest: Buffer<u32>,
    /// The numbers of bright and of dark features, for A and for B.
    regions: [Buffer<u32>; 2],
    capacity_a: usize,
    floats: bool,
}

/// Fails unless every keypoint has a descriptor and their dimension can be matched.
fn check(features: &GpuFeatures) -> Result<()> {
    let (capacity, dimension) = (features.capacity(), features.dimension);
    let values = features.descriptors.values();
    if dimension > MAX_DIMENSION {
        return Err(Error::Mismatch(format!(
            "descriptors of {dimension} values: at most {MAX_DIMENSION} can be matched"
        )));
    }
    if capacity >= NONE as usize / 4 {
        let feature = format!("indices for {capacity} features; at most {} can be matched", NONE / 4 - 1);
        return Err(Error::Unsupported { device: "a GPU".into(), feature });
    }
    if dimension == 0 {
        return Err(super::without_descriptors(capacity));
    }
    if capacity.checked_mul(dimension).is_none_or(|n| n > values) {
        return Err(Error::Mismatch(format!(
            "{capacity} keypoints have {values} descriptor values: expected {dimension} of each"
        )));
    }
    Ok(())
}

impl GpuMatcher {
    /// A matcher for a device.
    pub fn new(gpu: &Gpu) -> Self {
        let (rows, searches, landings, sendings) = Default::default();
        Self { gpu: gpu.clone(), portable: false, rows, searches, landings, sendings }
    }

    /// Whether to use the kernel that runs on every device, even where there is a faster one. Default no.
    #[must_use]
    pub fn portable(self, portable: bool) -> Self {
        Self { portable, ..self }
    }

    fn form(&self, floats: bool, dimension: usize) -> Form {
        let info = self.gpu.info();
        if self.portable || floats || dimension > tensor::MAX_DIMENSION || info.api != Api::Cuda {
            return Form::Portable;
        }
        let words = SearchKind { form: Form::WarpGroups, floats, dimension }.words();
        match info.capability {
            90 if words == tensor::SHORT => Form::WarpGroups,
            80.. => Form::Tensor,
            _ => Form::Portable,
        }
    }

    /// The kind of search for two sides. Fails unless the sides can be compared.
    fn kind(&self, a: &GpuFeatures, b: &GpuFeatures, guided: bool) -> Result<SearchKind> {
        check(a)?;
        check(b)?;
        let (kind, other) = (self.kind_of(a, guided), self.kind_of(b, guided));
        kind.check_against(other)?;
        Ok(kind)
    }

    /// The programs of a search without a guide among 8-bit descriptors.
    pub(crate) fn sources(&self, dimension: usize) -> [KernelSource; 2] {
        let kind = SearchKind { form: self.form(false, dimension), floats: false, dimension };
        [rows::source(kind), nearest::gpu::source_of(kind)]
    }

    fn kind_of(&self, features: &GpuFeatures, guided: bool) -> SearchKind {
        let (floats, dimension) = (matches!(features.descriptors, ByValue::F32(_)), features.dimension);
        let form = if guided { Form::Portable } else { self.form(floats, dimension) };
        SearchKind { form, floats, dimension }
    }

    fn cut(&self, kind: SearchKind, [a, b]: [Side; 2], queries: u32) -> Cut {
        Cut { a, b, parts: self.gpu.info().units * kind.form.groups_a_unit(), queries }
    }

    /// The program of the kernels before and after a search.
    fn rows(&self, kind: SearchKind) -> Result<Program> {
        self.rows.get(&self.gpu, kind, rows::source)
    }

    /// The program of a search among all pairs.
    fn search(&self, kind: SearchKind) -> Result<Program> {
        self.searches.get(&self.gpu, kind, nearest::gpu::source_of)
    }

    /// Adds the search for the two nearest neighbours, in both directions, to the commands; of `options` only
    /// `same_sign` and `guide` are used. The features may come from earlier commands that have not run yet: their
    /// counts are read on the device.
    ///
    /// # Errors
    /// As [`super::match_features`], for faults that are known before the commands run; [`Error::Memory`] when the
    /// device's memory is too small, [`Error::Unsupported`] for a guided search on a device without f64.
    pub fn record(
        &self,
        commands: &mut Commands,
        a: &GpuFeatures,
        b: &GpuFeatures,
        options: &MatchOptions,
    ) -> Result<GpuNearest> {
        options.check()?;
        let kind = self.kind(a, b, options.guide.is_some())?;
        let by_sign = options.same_sign && a.signed && b.signed;
        match &options.guide {
            Some(guide) if !guide.b_from_a.kind().is_epipolar() => {
                let (features, capacity_a, floats) = ([a, b], a.capacity(), kind.floats);
                let nearest = self.gpu.buffer((a.capacity() + b.capacity()) * FOUND)?;
                let regions = by_value!(
                    (&a.descriptors, &b.descriptors),
                    (a, b) => places::record(commands, kind, features, [a, b], guide, by_sign, &nearest)?,
                    else return Err(kinds_differ())
                );
                Ok(GpuNearest { nearest, regions, capacity_a, floats })
            }
            guide => self.record_rows(commands, [a, b], kind, guide.as_ref(), by_sign, Cut::BOTH),
        }
    }

    /// Adds the search for the two nearest neighbours in B of each feature of A, and not of B in A.
    pub(crate) fn record_forth(
        &self,
        commands: &mut Commands,
        sides: [&GpuFeatures; 2],
        same_sign: bool,
    ) -> Result<GpuNearest> {
        let kind = self.kind(sides[0], sides[1], false)?;
        let by_sign = same_sign && sides.iter().all(|side| side.signed);
        self.record_rows(commands, sides, kind, None, by_sign, Cut::FORTH)
    }

    /// A search of packed rows: among all pairs, or near the lines of a guide.
    fn record_rows(
        &self,
        commands: &mut Commands,
        [a, b]: [&GpuFeatures; 2],
        kind: SearchKind,
        guide: Option<&Guide>,
        by_sign: bool,
        queries: u32,
    ) -> Result<GpuNearest> {
        let program = &self.rows(kind)?;
        let row_a = rows::order(commands, program, a, kind, by_sign)?;
        let row_b = rows::order(commands, program, b, kind, by_sign)?;
        let cut = self.cut(kind, [row_a.side, row_b.side], queries);
        let result = GpuNearest {
            nearest: self.gpu.buffer(cut.result() as usize)?,
            regions: [row_a.regions.clone(), row_b.regions.clone()],
            capacity_a: a.capacity(),
            floats: kind.floats,
        };
        let found = self.gpu.buffer(cut.found(cut.groups() as i128) as usize)?;
        let rows = [row_a, row_b];
        match guide {
            Some(guide) => {
                let sides = [(a, &rows[0]), (b, &rows[1])];
                lines::record(commands, kind, cut, sides, guide, &found)?;
            }
            None => {
                let [row_a, row_b] = rows.clone();
                let program = &self.search(kind)?;
                let a = nearest::gpu::pack(commands, program, &a.descriptors, row_a)?;
                let b = nearest::gpu::pack(commands, program, &b.descriptors, row_b)?;
                nearest::gpu::search(commands, program, [&a, &b], cut, &found)?;
            }
        }
        rows::merge(commands, program, rows.each_ref(), cut, &found, &result.nearest)?;
        Ok(result)
    }

    /// The two nearest neighbours of every feature: first those of A in B, then those of B in A, as
    /// [`super::nearest_neighbours`] gives them.
    ///
    /// # Errors
    /// As [`super::nearest_neighbours`], and [`Error::Device`].
    pub fn nearest_neighbours(&self, a: &GpuFeatures, b: &GpuFeatures) -> Result<[Vec<Option<Nearest>>; 2]> {
        if self.kind_unless_empty(a, b)?.is_none() {
            return Ok([a.len()?, b.len()?].map(|n| vec![None; n]));
        }
        let options = MatchOptions { same_sign: false, ..MatchOptions::default() };
        let mut commands = Commands::new();
        let found = self.record(&mut commands, a, b, &options)?;
        self.gpu.run(&commands)?;
        found.download()
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
        self.match_on_device(a, b, options)?.download()
    }

    /// The matches of [`match_features`](Self::match_features) without a guide, for one in `every` features of A;
    /// `counts` are the numbers of features of A and of B.
    pub(crate) fn match_some(
        &self,
        features: [&GpuFeatures; 2],
        counts: [usize; 2],
        options: &MatchOptions,
        every: usize,
    ) -> Result<Vec<Match>> {
        if counts.contains(&0) {
            return Ok(Vec::new());
        }
        matches_of_some(counts[0], options, every, |[of, among], indices| {
            self.nearest_of_some(features[of], indices, features[among], options.same_sign)
        })
    }

    /// The two nearest neighbours of the features at `indices` among all of `others`.
    pub(super) fn nearest_of_some(
        &self,
        features: &GpuFeatures,
        indices: &[u32],
        others: &GpuFeatures,
        same_sign: bool,
    ) -> Result<Vec<Option<Nearest>>> {
        if indices.is_empty() {
            return Ok(Vec::new());
        }
        let mut commands = Commands::new();
        let found = self.record_forth(&mut commands, [&features.gather(indices)?, others], same_sign)?;
        self.gpu.run(&commands)?;
        found.forth(indices.len())
    }

    /// As [`kind`](Self::kind); `None` if one side is empty and nothing is compared.
    fn kind_unless_empty(&self, a: &GpuFeatures, b: &GpuFeatures) -> Result<Option<SearchKind>> {
        self.kind(a, b, false).map(Some).or_else(|error| {
            let counts = [a.len()?, b.len()?];
            let broken = [a, b].iter().zip(counts).any(|(f, n)| n > 0 && check(f).is_err());
            if counts.contains(&0) && !broken { Ok(None) } else { Err(error) }
        })
    }
}

impl GpuNearest {
    /// Waits for the device and gives the neighbours of A in B and of B in A.
    ///
    /// # Errors
    /// [`Error::Device`] when it failed.
    pub fn download(&self) -> Result<[Vec<Option<Nearest>>; 2]> {
        let [a, b] = self.regions.each_ref().map(Buffer::to_vec);
        let counts = [a?, b?].map(|regions| regions.iter().map(|n| *n as usize).sum());
        Ok([self.side(0, counts[0])?, self.side(self.capacity_a, counts[1])?])
    }

    /// Waits for the device and gives the neighbours in B of the first `count` features of A.
    pub(crate) fn forth(&self, count: usize) -> Result<Vec<Option<Nearest>>> {
        self.side(0, count)
    }

    /// The neighbours of `count` features from index `first` of the result on.
    fn side(&self, first: usize, count: usize) -> Result<Vec<Option<Nearest>>> {
        let mut words = vec![0; count * FOUND];
        self.nearest.read(first * FOUND, &mut words)?;
        Ok(words.chunks_exact(FOUND).map(|w| self.read(w)).collect())
    }

    /// Waits for the device and gives the matches, filtered as [`super::match_features`] does.
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

/// Programs by the kind of search for which they were compiled.
#[derive(Debug, Default)]
struct Programs(Mutex<Vec<(SearchKind, Program)>>);

impl Programs {
    fn get(&self, gpu: &Gpu, kind: SearchKind, source: fn(SearchKind) -> KernelSource) -> Result<Program> {
        let mut known = lock(&self.0);
        if let Some((_, program)) = known.iter().find(|(of, _)| *of == kind) {
            return Ok(program.clone());
        }
        let made = gpu.program(&source(kind))?;
        known.push((kind, made.clone()));
        Ok(made)
    }
}

#[cfg(test)]
pub(crate) mod tests;
