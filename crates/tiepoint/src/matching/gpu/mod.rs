//! Matching on a GPU: the CPU's nearest neighbours, bit for bit.
//!
//! Both ways are searched alike, each with all its products; one product for both would save tensor cores, which are
//! not what the search waits for, and would need results of every column from every block of rows. On an H200 and
//! 16 000 × 16 000 × 128 bytes, one way has a floor of about 0.07 ms: 3.3·10¹⁰ multiply-adds at 0.6·10¹⁵/s take
//! 0.055 ms, 2.6·10⁸ products of three minima or maxima at 1.5·10¹³/s take 0.052 ms, and the two overlap in part.
//!
//! Memory follows n + m: descriptors packed once more, and what each work group found, whose number does not grow with
//! the features unless their blocks alone fill the card.

use super::nearest::{Best, NONE};
use super::product::Distance;
use super::{Guide, MAX_DIMENSION, Match, MatchOptions, Nearest, filtered, finished, kinds_differ};
use crate::device::gpu::{Api, Buffer, Commands, Gpu};
use crate::feature::for_kernels;
use crate::feature::gpu::{GpuDescriptors, GpuFeatures};
use crate::geometry::ModelKind;
use crate::{Error, Result};
use tiepoint_gpu::{KernelSource, Positional, Program, arguments};

/// Lanes of the groups that order features, as `rows.cl` has it.
const LANES: u32 = 256;

/// Work groups for every multiprocessor: enough that the last ones to finish cost little.
const GROUPS_A_UNIT: u32 = 16;

/// Words of a result: nearest and second distance, index.
const WORDS: usize = 3;

/// How a search is cut for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Multiply-adds, on any device.
    Portable,
    /// 8-bit products on the tensor cores of CUDA cards of capability 8.0 on.
    Tensor,
}

impl Form {
    /// Queries of a work group.
    const fn block(self) -> u32 {
        match self {
            Self::Portable => 128,
            Self::Tensor => 16 * tensor::ROW_TILES * tensor::WARPS,
        }
    }

    /// Targets that it takes at a time.
    const fn tile(self) -> u32 {
        match self {
            Self::Portable => 128,
            Self::Tensor => tensor::TILE,
        }
    }

    /// Lanes of a searching group.
    const fn lanes(self) -> u32 {
        match self {
            Self::Portable => 256,
            Self::Tensor => 32 * tensor::WARPS,
        }
    }
}

/// The cut of the search on tensor cores.
mod tensor {
    /// Most values of a descriptor: up to here the difference of a length and two products fits 24 bits.
    pub(super) const MAX_DIMENSION: usize = 128;
    /// Bits that tell a lane's targets apart.
    pub(super) const SHIFT: u32 = 8;
    /// Warps of a group.
    pub(super) const WARPS: u32 = 8;
    /// Times 16 queries a warp: a fragment of targets is used so often.
    pub(super) const ROW_TILES: u32 = 2;
    /// Targets that are fetched together.
    pub(super) const TILE: u32 = 64;
    /// Tiles on their way or in use.
    pub(super) const STAGES: u32 = 4;
    /// Groups that a multiprocessor holds, which bounds the registers of a lane.
    pub(super) const GROUPS: u32 = 2;
}

/// What kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    form: Form,
    floats: bool,
    dimension: usize,
}

impl Kind {
    /// Words of a packed descriptor.
    fn words(self) -> usize {
        // Whole chunks of local memory, and whole fragments.
        self.dimension.div_ceil(if self.floats { 1 } else { 4 }).next_multiple_of(16)
    }

    fn base(self, name: &'static str) -> KernelSource {
        for_kernels(KernelSource::new(name))
            .define("FLOATS", u8::from(self.floats))
            .define("BLOCK", self.form.block())
            .define("TILE", self.form.tile())
    }

    /// What depends on no dimension.
    fn rows_source(self) -> KernelSource {
        self.base("match rows").text(include_str!("regions.h")).text(include_str!("rows.cl"))
    }

    fn descriptors(self, name: &'static str) -> KernelSource {
        self.base(name)
            .define("VALUE", if self.floats { "f32" } else { "u8" })
            .define("DIMENSION", self.dimension)
            .define("WORDS", self.words())
            .text(include_str!("regions.h"))
    }

    fn source(self) -> KernelSource {
        match self.form {
            Form::Portable => self
                .descriptors("nearest")
                .define("SHIFT", 0)
                .define("PANELS", 1)
                .text(include_str!("../nearest/pack.cl"))
                .text(include_str!("../nearest/nearest.cl")),
            Form::Tensor => self
                .descriptors("nearest on tensor cores")
                .define("SHIFT", tensor::SHIFT)
                .define("PANELS", 0)
                .define("WARPS", tensor::WARPS)
                .define("ROW_TILES", tensor::ROW_TILES)
                .define("STAGES", tensor::STAGES)
                .define("GROUPS", tensor::GROUPS)
                .text(include_str!("../nearest/pack.cl"))
                .text(include_str!("../nearest/nearest.cu")),
        }
    }

    fn guided_source(self, model: ModelKind) -> KernelSource {
        let model = match model {
            ModelKind::Homography => 0,
            ModelKind::Affine | ModelKind::Similarity => 1,
            ModelKind::Fundamental => 2,
        };
        self.descriptors("guided").define("MODEL", model).text(include_str!("../guided/guided.cl"))
    }
}

/// Matches features that lie on a device; see [`super::match_features`].
#[derive(Clone, Debug)]
pub struct GpuMatcher {
    gpu: Gpu,
    portable: bool,
}

/// The nearest neighbours of two sets of features, on a device once the commands have run.
#[derive(Clone, Debug)]
pub struct GpuNearest {
    /// [`WORDS`] for every feature that fits A, then B.
    nearest: Buffer<u32>,
    /// How many features A and B have, bright ones and dark ones each.
    regions: Buffer<u32>,
    capacity_a: usize,
    floats: bool,
}

/// Both sides of a search, found fit for each other.
struct Pair<'f> {
    sides: [&'f GpuFeatures; 2],
    kind: Kind,
    /// Packed rows that are kept for each side.
    spans: [u32; 2],
}

impl Pair<'_> {
    fn blocks(&self) -> usize {
        (self.spans[0] + self.spans[1]) as usize / self.kind.form.block() as usize
    }

    /// Keypoints, their number and how many fit: of A, then of B.
    fn keypoints(&self) -> Vec<Positional> {
        let of = |f: &GpuFeatures| arguments![&f.keypoints, &f.count, f.capacity() as u32];
        self.sides.iter().flat_map(|f| of(f)).collect()
    }

    fn descriptors(&self) -> Vec<Positional> {
        self.sides.iter().map(|f| f.descriptors.argument()).collect()
    }
}

impl GpuDescriptors {
    fn argument(&self) -> Positional {
        match self {
            Self::U8(buffer) => buffer.into(),
            Self::F32(buffer) => buffer.into(),
        }
    }

    fn values(&self) -> usize {
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

    fn pair<'f>(&self, a: &'f GpuFeatures, b: &'f GpuFeatures, guided: bool) -> Result<Pair<'f>> {
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
        // Bright and dark features begin at blocks of their own.
        let span = |f: &GpuFeatures| (f.capacity() as u32).next_multiple_of(form.block()) + form.block();
        let kind = Kind { form, floats, dimension: a.dimension };
        Ok(Pair { sides: [a, b], kind, spans: [span(a), span(b)] })
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
        let pair = self.pair(a, b, options.guide.is_some())?;
        if options.guide.is_some() {
            self.gpu.require_f64()?;
        }
        let (form, blocks, span) = (pair.kind.form, pair.blocks(), pair.spans[0]);
        let parts = self.gpu.info().units * GROUPS_A_UNIT;
        let groups = blocks.max(parts as usize);
        let order = self.gpu.buffer::<u32>(blocks * form.block() as usize)?;
        let found = self.gpu.buffer::<u32>(groups * form.block() as usize * WORDS)?;
        let result = GpuNearest {
            nearest: self.gpu.buffer((a.capacity() + b.capacity()) * WORDS)?,
            regions: self.gpu.buffer(4)?,
            capacity_a: a.capacity(),
            floats: pair.kind.floats,
        };
        let regions = &result.regions;
        let program = self.gpu.program(&match options.guide {
            Some(guide) => pair.kind.guided_source(guide.b_from_a.kind()),
            None => pair.kind.source(),
        })?;
        let rows = self.gpu.program(&pair.kind.rows_source())?;
        let kernel = |name, lanes| program.untyped_kernel(name, [lanes, 1]);

        commands.stage("match order");
        self.record_order(commands, &rows, &pair, options.same_sign, (&order, regions))?;
        if let Some(guide) = options.guide {
            let places = self.gpu.buffer::<u64>(order.len() * 4)?;
            let rough = self.gpu.buffer::<f32>(order.len() * 4)?;
            let mut list = arguments![&places, &rough, &order, regions, &a.keypoints, &b.keypoints, span];
            list.extend(model_arguments(&guide));
            commands.launch_untyped(&kernel("predict", form.block())?, [blocks, 1, 1], list)?;
            commands.stage("match search");
            let mut list = arguments![&found, &places, &rough, &order, regions];
            list.extend(pair.descriptors());
            list.extend(arguments![span, parts]);
            commands.launch_untyped(&kernel("search_guided", form.block())?, [groups, 1, 1], list)?;
        } else {
            commands.stage("match pack");
            let packed = self.gpu.buffer::<u32>(order.len() * pair.kind.words())?;
            let norms = self.gpu.buffer::<u32>(order.len())?;
            let mut list = arguments![&packed, &norms, &order, regions];
            list.extend(pair.descriptors());
            list.push(span.into());
            commands.launch_untyped(&kernel("pack_rows", form.block())?, [blocks, 1, 1], list)?;
            commands.stage("match search");
            let list = arguments![&found, &packed, &norms, regions, span, parts];
            commands.launch_untyped(&kernel("search", form.lanes())?, [groups, 1, 1], list)?;
        }
        commands.stage("match merge");
        let list =
            arguments![&result.nearest, &found, &order, regions, span, parts, result.capacity_a as u32];
        commands.launch_untyped(
            &rows.untyped_kernel("merge_found", [form.block(), 1])?,
            [blocks, 1, 1],
            list,
        )?;
        Ok(result)
    }

    /// Orders both sides by sign and counts.
    fn record_order(
        &self,
        commands: &mut Commands,
        rows: &Program,
        pair: &Pair<'_>,
        by_sign: bool,
        (order, regions): (&Buffer<u32>, &Buffer<u32>),
    ) -> Result<()> {
        let longest = pair.sides.iter().map(|f| f.capacity()).max().unwrap_or_default();
        // One run at least: it writes that there is nothing.
        let runs = longest.div_ceil(LANES as usize).max(1);
        let bright = self.gpu.buffer::<u32>(2 * runs)?;
        if by_sign {
            let mut list = arguments![&bright];
            list.extend(pair.keypoints());
            commands.launch_untyped(&rows.untyped_kernel("count_bright", [LANES, 1])?, [runs, 2, 1], list)?;
        }
        let mut list = arguments![order, regions, &bright];
        list.extend(pair.keypoints());
        list.extend(arguments![pair.spans[0], u32::from(by_sign)]);
        Ok(commands.launch_untyped(&rows.untyped_kernel("order_rows", [LANES, 1])?, [runs, 2, 1], list)?)
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
        if let Err(error) = self.pair(a, b, false) {
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
            let mut words = vec![0; count as usize * WORDS];
            self.nearest.read(first * WORDS, &mut words)?;
            Ok(words.chunks_exact(WORDS).map(|w| self.read(w)).collect())
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

/// The model's matrix and the radius, for `predict`.
fn model_arguments(guide: &Guide) -> Vec<Positional> {
    let numbers = guide.b_from_a.matrix().into_iter().flatten().chain([guide.radius]);
    numbers.map(|v| v.to_bits().into()).collect()
}

#[cfg(test)]
mod tests;
