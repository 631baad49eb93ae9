//! Which feature every row of a search is, and whose nearest neighbours were found: `rows.cl`.

use super::regions::{Cut, Kind, Ordered};
use crate::Result;
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::feature::gpu::GpuFeatures;
use tiepoint_gpu::{Kernel, KernelSource};

/// Lanes of the groups that order features.
const LANES: u32 = 256;

tiepoint_gpu::kernel! {
    /// Counts the bright features of every run of LANES, A in the first row of groups, B in the second.
    unsafe kernel count_bright(groups) = CountBright {
        write bright: u32 [groups[0] * groups[1]],
        read keypoints_a: u32 as Keypoint [cut.keypoints()[0]],
        read keypoints_b: u32 as Keypoint [cut.keypoints()[1]],
        read count_a: u32 [1],
        read count_b: u32 [1],
    } {
        cut: Cut,
    }
}

tiepoint_gpu::kernel! {
    /// Writes which feature every row is, and the counts of the regions. Features keep their order.
    unsafe kernel order_rows(groups) = OrderRows {
        write order: u32 [cut.rows()],
        write regions: u32 [4],
        read bright: u32 [groups[0] * groups[1]],
        read keypoints_a: u32 as Keypoint [cut.keypoints()[0]],
        read keypoints_b: u32 as Keypoint [cut.keypoints()[1]],
        read count_a: u32 [1],
        read count_b: u32 [1],
    } {
        cut: Cut,
        /// 1: bright and dark features apart.
        by_sign: u32,
    }
}

tiepoint_gpu::kernel! {
    /// Merges what the groups found, one lane a row, and gives the features their own indices again.
    unsafe kernel merge_found(groups) = MergeFound {
        write nearest: u32 [cut.result()],
        read found: u32 [cut.found(cut.groups().into())],
        read order: u32 [cut.rows()],
        read regions: u32 [4],
    } {
        cut: Cut,
    }
}

pub(super) fn source(kind: Kind) -> KernelSource {
    kind.rows("match rows")
        .define("LANES", LANES)
        .kernel::<CountBright<'_>>([LANES, 1])
        .kernel::<OrderRows<'_>>([LANES, 1])
        .kernel::<MergeFound<'_>>([kind.form.block(), 1])
        .text(include_str!("rows.cl"))
}

/// The kernels for a kind of search.
pub(super) struct GpuRows {
    count_bright: Kernel<CountBright<'static>>,
    order_rows: Kernel<OrderRows<'static>>,
    merge_found: Kernel<MergeFound<'static>>,
}

impl GpuRows {
    pub(super) fn new(gpu: &Gpu, kind: Kind) -> Result<Self> {
        let program = gpu.program(&source(kind))?;
        Ok(Self {
            count_bright: program.kernel::<CountBright<'_>>()?,
            order_rows: program.kernel::<OrderRows<'_>>()?,
            merge_found: program.kernel::<MergeFound<'_>>()?,
        })
    }

    /// Orders the features of both sides, by their sign if wanted, and counts them.
    pub(super) fn order(
        &self,
        commands: &mut Commands,
        [a, b]: [&GpuFeatures; 2],
        by_sign: bool,
        rows: &Ordered<'_>,
    ) -> Result<()> {
        commands.stage("match order");
        let (keypoints_a, keypoints_b, cut) = (&a.keypoints, &b.keypoints, rows.cut);
        let (count_a, count_b) = (&a.count, &b.count);
        // One run at least: it writes that there is nothing.
        let runs = a.capacity().max(b.capacity()).div_ceil(LANES as usize).max(1);
        let bright = &rows.gpu.buffer::<u32>(2 * runs)?;
        if by_sign {
            let count = CountBright { bright, keypoints_a, keypoints_b, count_a, count_b, cut };
            commands.launch(&self.count_bright, [runs, 2, 1], count)?;
        }
        let (order, regions, by_sign) = (&rows.order, rows.regions, u32::from(by_sign));
        let order =
            OrderRows { order, regions, bright, keypoints_a, keypoints_b, count_a, count_b, cut, by_sign };
        Ok(commands.launch(&self.order_rows, [runs, 2, 1], order)?)
    }

    /// Writes the result from what the groups found.
    pub(super) fn merge(
        &self,
        commands: &mut Commands,
        rows: &Ordered<'_>,
        found: &Buffer<u32>,
        nearest: &Buffer<u32>,
    ) -> Result<()> {
        commands.stage("match merge");
        let merge = MergeFound { nearest, found, order: &rows.order, regions: rows.regions, cut: rows.cut };
        Ok(commands.launch(&self.merge_found, [rows.blocks(), 1, 1], merge)?)
    }
}
