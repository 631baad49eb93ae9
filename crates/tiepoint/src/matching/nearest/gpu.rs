//! The search among all pairs on a GPU: descriptors are packed (`pack.cl`), then multiplied (`nearest.cl`, or
//! `nearest.cu` on tensor cores).

use crate::Result;
use crate::device::gpu::{Buffer, Commands, Element};
use crate::matching::gpu::regions::{Cut, Kind, Ordered};
use tiepoint_gpu::KernelSource;

/// How a search is cut for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::matching) enum Form {
    /// Multiply-adds, on any device.
    Portable,
    /// 8-bit products on the tensor cores of CUDA cards of capability 8.0 on.
    Tensor,
}

impl Form {
    /// Queries of a work group.
    pub(in crate::matching) const fn block(self) -> u32 {
        match self {
            Self::Portable => 128,
            Self::Tensor => 16 * tensor::ROW_TILES * tensor::WARPS,
        }
    }

    /// Targets that it takes at a time.
    pub(in crate::matching) const fn tile(self) -> u32 {
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
pub(in crate::matching) mod tensor {
    /// Most values of a descriptor: up to here the difference of a length and two products fits 24 bits.
    pub(in crate::matching) const MAX_DIMENSION: usize = 128;
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

tiepoint_gpu::kernel! {
    /// Packs descriptors by their order, one lane a row.
    unsafe kernel pack_rows(groups) = PackRows<V: Element> {
        write packed: u32 [cut.packed()],
        /// Squared lengths.
        write norms: u32 [cut.rows()],
        read order: u32 [cut.rows()],
        read regions: u32 [4],
        read a: V [cut.values()[0]],
        read b: V [cut.values()[1]],
    } {
        cut: Cut,
    }
}

tiepoint_gpu::kernel! {
    /// Finds the two nearest targets of every query among the targets of a group.
    unsafe kernel search(groups) = Search {
        write found: u32 [cut.found(groups[0])],
        read packed: u32 [cut.packed()],
        read norms: u32 [cut.rows()],
        read regions: u32 [4],
    } {
        cut: Cut,
    }
}

pub(in crate::matching) fn source<V: Element>(kind: Kind) -> KernelSource {
    let block = [kind.form.block(), 1];
    let lanes = [kind.form.lanes(), 1];
    match kind.form {
        Form::Portable => kind
            .descriptors("nearest")
            .define("SHIFT", 0)
            .define("PANELS", 1)
            .kernel::<PackRows<'_, V>>(block)
            .kernel::<Search<'_>>(lanes)
            .text(include_str!("pack.cl"))
            .text(include_str!("nearest.cl")),
        Form::Tensor => kind
            .descriptors("nearest on tensor cores")
            .define("SHIFT", tensor::SHIFT)
            .define("PANELS", 0)
            .define("WARPS", tensor::WARPS)
            .define("ROW_TILES", tensor::ROW_TILES)
            .define("STAGES", tensor::STAGES)
            .kernel::<PackRows<'_, V>>(block)
            .kernel_resident::<Search<'_>>(lanes, tensor::GROUPS)
            .text(include_str!("pack.cl"))
            .text(include_str!("nearest.cu")),
    }
}

/// Adds the search to the commands; gives what its groups find.
pub(in crate::matching) fn record<V: Element>(
    commands: &mut Commands,
    rows: &Ordered<'_>,
    [a, b]: [&Buffer<V>; 2],
) -> Result<Buffer<u32>> {
    let (gpu, cut, regions) = (rows.gpu, rows.cut, rows.regions);
    let program = gpu.program(&source::<V>(rows.kind))?;
    commands.stage("match pack");
    let packed = &gpu.buffer::<u32>(rows.order.len() * rows.kind.words())?;
    let norms = &gpu.buffer::<u32>(rows.order.len())?;
    let pack = PackRows { packed, norms, order: &rows.order, regions, a, b, cut };
    commands.launch(&program.kernel::<PackRows<'_, V>>()?, [rows.blocks(), 1, 1], pack)?;
    commands.stage("match search");
    let found = rows.found()?;
    let search = Search { found: &found, packed, norms, regions, cut };
    commands.launch(&program.kernel::<Search<'_>>()?, [rows.groups(), 1, 1], search)?;
    Ok(found)
}
