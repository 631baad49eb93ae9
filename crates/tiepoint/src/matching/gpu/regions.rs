//! How a search is cut for a device: the Rust side of `regions.h`.

use crate::device::gpu::{Buffer, Gpu};
use crate::feature::{WORDS, for_kernels};
use crate::matching::nearest::gpu::Form;
use tiepoint_gpu::KernelSource;

/// Words of what is found for a row: nearest and second distance, index.
pub(in crate::matching) const FOUND: usize = 3;

/// What kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::matching) struct Kind {
    pub(in crate::matching) form: Form,
    pub(in crate::matching) floats: bool,
    pub(in crate::matching) dimension: usize,
}

impl Kind {
    /// Words of a packed descriptor.
    pub(in crate::matching) fn words(self) -> usize {
        // Whole chunks of local memory, and whole fragments.
        self.dimension.div_ceil(if self.floats { 1 } else { 4 }).next_multiple_of(16)
    }

    /// For kernels that depend on no dimension.
    pub(in crate::matching) fn rows(self, name: &'static str) -> KernelSource {
        self.common(name).structure::<Cut>().text(include_str!("regions.h"))
    }

    /// For kernels that read descriptors.
    pub(in crate::matching) fn descriptors(self, name: &'static str) -> KernelSource {
        self.common(name)
            .define("VALUE", if self.floats { "f32" } else { "u8" })
            .define("DIMENSION", self.dimension)
            .define("WORDS", self.words())
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
    /// How a search is cut, and how large what it reads is. A row is a packed descriptor, of either side.
    pub(in crate::matching) struct Cut {
        /// Features that A has room for.
        capacity_a: u32,
        /// Features that B has room for.
        capacity_b: u32,
        /// Values of a descriptor.
        dimension: u32,
        /// Words of a row.
        words: u32,
        /// Rows that a work group searches for.
        block: u32,
        /// Rows that are kept for A; those of B follow.
        span: u32,
        /// Rows of both.
        rows: u32,
        /// Groups that shall have work.
        parts: u32,
    }
}

/// Extents of buffers.
impl Cut {
    pub(in crate::matching) fn rows(self) -> i128 {
        i128::from(self.rows)
    }

    /// Words of all rows.
    pub(in crate::matching) fn packed(self) -> i128 {
        i128::from(self.rows) * i128::from(self.words)
    }

    /// Groups of a search: as many as shall have work, and at least one a block.
    pub(in crate::matching) fn groups(self) -> u32 {
        (self.rows / self.block).max(self.parts)
    }

    /// Words of what this many groups find.
    pub(in crate::matching) fn found(self, groups: i128) -> i128 {
        groups * i128::from(self.block) * FOUND as i128
    }

    /// Words of the result.
    pub(in crate::matching) fn result(self) -> i128 {
        (i128::from(self.capacity_a) + i128::from(self.capacity_b)) * FOUND as i128
    }

    /// Words of the keypoints of A and of B.
    pub(in crate::matching) fn keypoints(self) -> [i128; 2] {
        [self.capacity_a, self.capacity_b].map(|n| i128::from(n) * WORDS as i128)
    }

    /// Values of the descriptors of A and of B.
    pub(in crate::matching) fn values(self) -> [i128; 2] {
        [self.capacity_a, self.capacity_b].map(|n| i128::from(n) * i128::from(self.dimension))
    }
}

/// A search whose rows are in their order once the commands so far have run.
pub(in crate::matching) struct Ordered<'s> {
    pub(in crate::matching) gpu: &'s Gpu,
    pub(in crate::matching) kind: Kind,
    pub(in crate::matching) cut: Cut,
    /// The feature that every row is.
    pub(in crate::matching) order: Buffer<u32>,
    /// How many rows every region has.
    pub(in crate::matching) regions: &'s Buffer<u32>,
}

impl Ordered<'_> {
    /// Groups that have a block of rows each.
    pub(in crate::matching) fn blocks(&self) -> usize {
        (self.cut.rows / self.cut.block) as usize
    }

    /// Groups of a search.
    pub(in crate::matching) fn groups(&self) -> usize {
        self.cut.groups() as usize
    }

    /// Memory for what they find.
    pub(in crate::matching) fn found(&self) -> crate::Result<Buffer<u32>> {
        Ok(self.gpu.buffer(self.groups() * self.cut.block as usize * FOUND)?)
    }
}
