//! How a search is divided into work groups: the Rust side of `regions.h`.

use crate::device::gpu::Buffer;
use crate::feature::gpu::GpuFeatures;
use crate::feature::{WORDS, for_kernels};
use crate::matching::nearest::gpu::Form;
use crate::matching::{dimensions_differ, kinds_differ};
use tiepoint_gpu::KernelSource;

/// Words of the result of a row: nearest distance, second distance, index.
pub(crate) const FOUND: usize = 3;

/// The kind of search that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SearchKind {
    pub(crate) form: Form,
    pub(crate) floats: bool,
    pub(crate) dimension: usize,
}

impl SearchKind {
    /// Fails unless sides of these kinds can be compared.
    pub(crate) fn check_against(self, other: Self) -> crate::Result<()> {
        match self {
            _ if self.floats != other.floats => Err(kinds_differ()),
            _ if self.dimension != other.dimension => Err(dimensions_differ(self.dimension, other.dimension)),
            _ => Ok(()),
        }
    }

    /// Words of a packed descriptor.
    pub(crate) fn words(self) -> usize {
        // A multiple of the chunks of local memory and of the fragments of the tensor cores.
        self.dimension.div_ceil(if self.floats { 1 } else { 4 }).next_multiple_of(16)
    }

    /// The source of kernels that do not depend on the dimension.
    pub(crate) fn rows(self, name: &'static str) -> KernelSource {
        self.common(name).structure::<Side>().structure::<Cut>().text(include_str!("regions.h"))
    }

    /// The source of kernels that read descriptors.
    pub(crate) fn descriptors(self, name: &'static str) -> KernelSource {
        self.common(name)
            .define("VALUE", if self.floats { "f32" } else { "u8" })
            .define("DIMENSION", self.dimension)
            .define("WORDS", self.words())
            .structure::<Side>()
            .structure::<Cut>()
            .text(include_str!("regions.h"))
    }

    fn common(self, name: &'static str) -> KernelSource {
        for_kernels(KernelSource::new(name))
            .define("FLOATS", u8::from(self.floats))
            .define("BLOCK", self.form.block())
            .define("TILE", self.form.tile())
    }
}

tiepoint_gpu::kernel_struct! {
    /// How a side is packed, and from how many features. A row is a packed descriptor.
    pub(crate) struct Side {
        /// The number of features for which there is room.
        capacity: u32,
        /// Values of a descriptor.
        dimension: u32,
        /// Words of a row.
        words: u32,
        /// Rows that a work group searches for.
        block: u32,
        /// Rows in memory.
        rows: u32,
    }
}

impl Side {
    pub(crate) fn new(features: &GpuFeatures, kind: SearchKind) -> Self {
        let (capacity, block) = (features.capacity() as u32, kind.form.block());
        let (dimension, words) = (kind.dimension as u32, kind.words() as u32);
        // Bright and dark features each begin at a new block.
        Self { capacity, dimension, words, block, rows: capacity.next_multiple_of(block) + block }
    }

    /// The number of blocks of rows.
    pub(crate) fn blocks(self) -> usize {
        (self.rows / self.block) as usize
    }
}

/// Extents of buffers.
impl Side {
    pub(crate) fn rows(self) -> i128 {
        i128::from(self.rows)
    }

    /// Words of all rows.
    pub(crate) fn packed(self) -> i128 {
        i128::from(self.rows) * i128::from(self.words)
    }

    /// Words of the keypoints.
    pub(crate) fn keypoints(self) -> i128 {
        i128::from(self.capacity) * WORDS as i128
    }

    /// Values of the descriptors.
    pub(crate) fn values(self) -> i128 {
        i128::from(self.capacity) * i128::from(self.dimension)
    }
}

tiepoint_gpu::kernel_struct! {
    pub(crate) struct Cut {
        a: Side,
        b: Side,
        /// About how many groups the search is divided into.
        parts: u32,
        /// The regions with queries: those of both sides ([`Cut::BOTH`]), or of A alone ([`Cut::FORTH`]).
        queries: u32,
    }
}

impl Cut {
    /// From A to B and from B to A.
    pub(crate) const BOTH: u32 = 4;
    /// From A to B.
    pub(crate) const FORTH: u32 = 2;

    /// The sides with queries.
    fn sides(self) -> impl Iterator<Item = Side> {
        [self.a, self.b].into_iter().take(self.queries as usize / 2)
    }

    /// The number of blocks of queries.
    pub(crate) fn blocks(self) -> usize {
        self.sides().map(Side::blocks).sum()
    }

    /// The number of groups of a search: `parts`, but at least one for each block.
    pub(crate) fn groups(self) -> usize {
        self.blocks().max(self.parts as usize)
    }

    /// Words of the results of this many groups.
    pub(crate) fn found(self, groups: i128) -> i128 {
        groups * i128::from(self.a.block) * FOUND as i128
    }

    /// Words of the result.
    pub(crate) fn result(self) -> i128 {
        self.sides().map(|side| i128::from(side.capacity)).sum::<i128>() * FOUND as i128
    }
}

/// The rows of a side, valid once the commands recorded so far have run. A clone is the same memory.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    pub(crate) side: Side,
    /// The index of each row's feature.
    pub(crate) order: Buffer<u32>,
    /// The numbers of bright and of dark features.
    pub(crate) regions: Buffer<u32>,
}
