//! The kernels before and after a search: the ordering of the rows and the merging of the groups' results (`rows.cl`),
//! and the choice of matches, for a batch (`accept.cl`) and as arrays (`columns.cl`).

use super::batch::AcceptMatches;
use super::columns::{MatchColumns, MatchFlags, NearestColumns};
use super::regions::{Cut, Rows, SearchKind, Side};
use super::rule::Rule;
use crate::Result;
use crate::device::gpu::{Buffer, Commands};
use crate::feature::gpu::GpuFeatures;
use tiepoint_gpu::{KernelSource, Program};

/// Lanes of a group in kernels with one lane for each feature.
const LANES: u32 = 256;

/// The number of groups with a lane for each of `n` features.
pub(super) fn groups(n: usize) -> [usize; 3] {
    [n.div_ceil(LANES as usize), 1, 1]
}

tiepoint_gpu::kernel! {
    unsafe kernel count_bright(groups) = CountBright {
        write bright: u32 [groups[0]],
        read keypoints: u32 as Keypoint [side.keypoints()],
        read count: u32 [1],
    } {
        side: Side,
    }

    unsafe kernel order_rows(groups) = OrderRows {
        write order: u32 [side.rows()],
        write regions: u32 [2],
        read bright: u32 [groups[0]],
        read keypoints: u32 as Keypoint [side.keypoints()],
        read count: u32 [1],
    } {
        side: Side,
        /// 1: bright and dark features apart.
        by_sign: u32,
    }

    unsafe kernel merge_found(groups) = MergeFound {
        write nearest: u32 [cut.result()],
        read found: u32 [cut.found(cut.groups() as i128)],
        read order_a: u32 [cut.a.rows()],
        read order_b: u32 [cut.b.rows()],
        read regions_a: u32 [2],
        read regions_b: u32 [2],
    } {
        cut: Cut,
    }
}

pub(super) fn source(kind: SearchKind) -> KernelSource {
    kind.rows("match rows")
        .structure::<Rule>()
        .text(include_str!("rule.h"))
        .define("LANES", LANES)
        .kernel::<CountBright<'_>>([LANES, 1])
        .kernel::<OrderRows<'_>>([LANES, 1])
        .kernel::<MergeFound<'_>>([kind.form.block(), 1])
        .kernel::<AcceptMatches<'_>>([LANES, 1])
        .kernel::<NearestColumns<'_>>([LANES, 1])
        .kernel::<MatchFlags<'_>>([LANES, 1])
        .kernel::<MatchColumns<'_>>([LANES, 1])
        .text(include_str!("rows.cl"))
        .text(include_str!("accept.cl"))
        .text(include_str!("columns.cl"))
}

/// Orders the features of a side, by sign if `by_sign`, and counts them.
pub(super) fn order(
    commands: &mut Commands,
    program: &Program,
    features: &GpuFeatures,
    kind: SearchKind,
    by_sign: bool,
) -> Result<Rows> {
    let (gpu, side) = (features.count.gpu(), Side::new(features, kind));
    commands.stage("match order");
    let rows = Rows { side, order: gpu.buffer(side.rows() as usize)?, regions: gpu.buffer(2)? };
    let (keypoints, count) = (&features.keypoints, &features.count);
    // At least one run, which writes the counts when there is no feature.
    let runs = features.capacity().div_ceil(LANES as usize).max(1);
    let bright = &gpu.buffer::<u32>(runs)?;
    if by_sign {
        let count = CountBright { bright, keypoints, count, side };
        commands.launch(&program.kernel::<CountBright<'_>>()?, [runs, 1, 1], count)?;
    }
    let (order, regions, by_sign) = (&rows.order, &rows.regions, u32::from(by_sign));
    let order = OrderRows { order, regions, bright, keypoints, count, side, by_sign };
    commands.launch(&program.kernel::<OrderRows<'_>>()?, [runs, 1, 1], order)?;
    Ok(rows)
}

pub(super) fn merge(
    commands: &mut Commands,
    program: &Program,
    [a, b]: [&Rows; 2],
    cut: Cut,
    found: &Buffer<u32>,
    nearest: &Buffer<u32>,
) -> Result<()> {
    commands.stage("match merge");
    let (order_a, order_b, regions_a, regions_b) = (&a.order, &b.order, &a.regions, &b.regions);
    let merge = MergeFound { nearest, found, order_a, order_b, regions_a, regions_b, cut };
    Ok(commands.launch(&program.kernel::<MergeFound<'_>>()?, [cut.blocks(), 1, 1], merge)?)
}
