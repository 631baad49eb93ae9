//! The search among all pairs on a GPU: descriptors are packed (`pack.cl`), then multiplied (`nearest.cl`, or on tensor
//! cores `nearest.cu` and `nearest_wgmma.cu`).

use crate::Result;
use crate::device::gpu::{Buffer, Commands, Element};
use crate::feature::by_value;
use crate::feature::gpu::GpuDescriptors;
use crate::matching::gpu::regions::{Cut, Rows, SearchKind, Side};
use tiepoint_gpu::{KernelSource, Program};

/// The form of a search that suits the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Multiply-adds, on any device.
    Portable,
    /// 8-bit products on the tensor cores of CUDA cards of compute capability 8.0 or higher.
    Tensor,
    /// The same by warp groups, for rows of 128 bytes on cards of compute capability 9.0.
    WarpGroups,
}

impl Form {
    /// Queries of a work group.
    pub(crate) const fn block(self) -> u32 {
        match self {
            Self::Portable => 128,
            Self::Tensor => 16 * tensor::ROW_TILES * tensor::WARPS,
            Self::WarpGroups => 16 * tensor::WARPS,
        }
    }

    /// Targets that a work group compares at a time.
    pub(crate) const fn tile(self) -> u32 {
        match self {
            Self::Portable | Self::WarpGroups => 128,
            Self::Tensor => tensor::TILE,
        }
    }

    /// Work groups of a search for each multiprocessor: so many that little time is lost while the last ones finish.
    pub(crate) const fn groups_a_unit(self) -> u32 {
        match self {
            Self::Portable | Self::Tensor => 16,
            Self::WarpGroups => 4,
        }
    }

    const fn lanes(self) -> u32 {
        match self {
            Self::Portable => 256,
            Self::Tensor | Self::WarpGroups => 32 * tensor::WARPS,
        }
    }
}

/// How the search on tensor cores is divided.
pub(crate) mod tensor {
    /// The most values of a descriptor: up to this number a key fits 24 bits (`nearest.cu`).
    pub(crate) const MAX_DIMENSION: usize = 255;
    /// The most words of a row with which four tiles for each of two groups fit a multiprocessor. Warp groups take
    /// exactly this many.
    pub(crate) const SHORT: usize = 32;
    /// The number of bits that distinguish a lane's targets.
    pub(super) const SHIFT: u32 = 8;
    pub(super) const WARPS: u32 = 8;
    /// Runs of 16 queries that a warp compares with each fragment of targets.
    pub(super) const ROW_TILES: u32 = 2;
    /// Targets that are fetched together.
    pub(super) const TILE: u32 = 64;

    /// For rows of this many words: the number of tiles that are being fetched or in use, and the number of groups that
    /// a multiprocessor runs at the same time, which limits the registers of a lane.
    pub(super) const fn stages_and_groups(words: usize) -> (u32, u32) {
        if words > SHORT { (2, 1) } else { (4, 2) }
    }
}

tiepoint_gpu::kernel! {
    unsafe kernel pack_rows(groups) = PackRows<V: Element> {
        write packed: u32 [side.packed()] aligned 16,
        /// Squared lengths.
        write norms: u32 [side.rows()],
        read order: u32 [side.rows()],
        read regions: u32 [2],
        read descriptors: V [side.values()] aligned GpuDescriptors::ALIGNMENT,
    } {
        side: Side,
    }

    /// Finds the two nearest targets of every query among the targets of a group.
    unsafe kernel search(groups) = Search {
        write found: u32 [cut.found(groups[0])],
        read packed_a: u32 [cut.a.packed()] aligned 16,
        read packed_b: u32 [cut.b.packed()] aligned 16,
        read norms_a: u32 [cut.a.rows()],
        read norms_b: u32 [cut.b.rows()],
        read regions_a: u32 [2],
        read regions_b: u32 [2],
    } {
        cut: Cut,
    }
}

pub(crate) fn source<V: Element>(kind: SearchKind) -> KernelSource {
    let block = [kind.form.block(), 1];
    let lanes = [kind.form.lanes(), 1];
    let packed = |name, shift: u32| {
        kind.descriptors(name)
            .define("SHIFT", shift)
            .define("PANELS", u8::from(kind.form == Form::Portable))
            .define("EXCHANGED", u8::from(kind.form == Form::WarpGroups))
            .kernel::<PackRows<'_, V>>(block)
    };
    let on_tensor_cores = |name, (stages, groups): (u32, u32), search| {
        packed(name, tensor::SHIFT)
            .define("WARPS", tensor::WARPS)
            .define("ROW_TILES", tensor::ROW_TILES)
            .define("STAGES", stages)
            .kernel_resident::<Search<'_>>(lanes, groups)
            .text(include_str!("pack.cl"))
            .text(include_str!("keys.h"))
            .text(search)
    };
    match kind.form {
        Form::Portable => packed("nearest", 0)
            .kernel::<Search<'_>>(lanes)
            .text(include_str!("pack.cl"))
            .text(include_str!("nearest.cl")),
        Form::Tensor => on_tensor_cores(
            "nearest on tensor cores",
            tensor::stages_and_groups(kind.words()),
            include_str!("nearest.cu"),
        ),
        Form::WarpGroups => {
            on_tensor_cores("nearest by warp groups", (2, 2), include_str!("nearest_wgmma.cu"))
        }
    }
}

pub(crate) fn source_of(kind: SearchKind) -> KernelSource {
    if kind.floats { source::<f32>(kind) } else { source::<u8>(kind) }
}

/// A side's descriptors, packed for the search, once the commands recorded so far have run. A clone is the same memory.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    pub(crate) rows: Rows,
    packed: Buffer<u32>,
    norms: Buffer<u32>,
}

impl Packed {
    /// Bytes of the device's memory.
    pub(crate) fn bytes(&self) -> usize {
        let numbers = [&self.packed, &self.norms, &self.rows.order, &self.rows.regions];
        numbers.map(|buffer| Buffer::<u32>::taken(buffer.len())).iter().sum()
    }
}

pub(crate) fn pack(
    commands: &mut Commands,
    program: &Program,
    descriptors: &GpuDescriptors,
    rows: Rows,
) -> Result<Packed> {
    commands.stage("match pack");
    let gpu = rows.order.gpu();
    let (packed, norms) = (gpu.buffer(rows.side.packed() as usize)?, gpu.buffer(rows.side.rows() as usize)?);
    let (order, regions, side) = (&rows.order, &rows.regions, rows.side);
    let groups = [side.blocks(), 1, 1];
    by_value!(descriptors, descriptors => {
        let pack = PackRows { packed: &packed, norms: &norms, order, regions, descriptors, side };
        commands.launch(&program.kernel::<PackRows<'_, _>>()?, groups, pack)?;
    });
    Ok(Packed { rows, packed, norms })
}

/// Adds the search to the commands; its groups write their results into `found`.
pub(crate) fn search(
    commands: &mut Commands,
    program: &Program,
    [a, b]: [&Packed; 2],
    cut: Cut,
    found: &Buffer<u32>,
) -> Result<()> {
    commands.stage("match search");
    let search = Search {
        found,
        packed_a: &a.packed,
        packed_b: &b.packed,
        norms_a: &a.norms,
        norms_b: &b.norms,
        regions_a: &a.rows.regions,
        regions_b: &b.rows.regions,
        cut,
    };
    Ok(commands.launch(&program.kernel::<Search<'_>>()?, [cut.groups(), 1, 1], search)?)
}
