//! The search that a known model restricts, on a GPU that has f64: `guided.cl`.

use crate::Result;
use crate::device::gpu::{Buffer, Commands, Element};
use crate::geometry::ModelKind;
use crate::matching::Guide;
use crate::matching::gpu::regions::{Cut, Kind, Ordered};
use tiepoint_gpu::KernelSource;

/// Numbers of what the test needs of a row.
const NUMBERS: usize = 4;

tiepoint_gpu::kernel! {
    /// What the test needs of every row, in f64 and in f32.
    unsafe kernel predict(groups) = Predict {
        write places: u64 as Place [cut.rows() * NUMBERS as i128],
        write rough: f32 as f32x4 [cut.rows() * NUMBERS as i128],
        read order: u32 [cut.rows()],
        read regions: u32 [4],
        read keypoints_a: u32 as Keypoint [cut.keypoints()[0]],
        read keypoints_b: u32 as Keypoint [cut.keypoints()[1]],
    } {
        /// Row by row.
        model: [f64; 9],
        radius: f64,
        cut: Cut,
    }
}

tiepoint_gpu::kernel! {
    /// Finds the two nearest targets of every query among those targets of a group that the model allows.
    unsafe kernel search_guided(groups) = SearchGuided<V: Element> {
        write found: u32 [cut.found(groups[0])],
        read places: u64 as Place [cut.rows() * NUMBERS as i128],
        read rough: f32 as f32x4 [cut.rows() * NUMBERS as i128],
        read order: u32 [cut.rows()],
        read regions: u32 [4],
        read a: V [cut.values()[0]],
        read b: V [cut.values()[1]],
    } {
        cut: Cut,
    }
}

pub(in crate::matching) fn source<V: Element>(kind: Kind, model: ModelKind) -> KernelSource {
    let model = match model {
        ModelKind::Homography => 0,
        ModelKind::Affine | ModelKind::Similarity => 1,
        ModelKind::Fundamental => 2,
    };
    let block = [kind.form.block(), 1];
    kind.descriptors("guided")
        .define("MODEL", model)
        .kernel::<Predict<'_>>(block)
        .kernel::<SearchGuided<'_, V>>(block)
        .text(include_str!("guided.cl"))
}

/// Adds the search to the commands; gives what its groups find.
///
/// # Errors
/// [`crate::Error::Unsupported`] on a device without f64.
pub(in crate::matching) fn record<V: Element>(
    commands: &mut Commands,
    rows: &Ordered<'_>,
    [keypoints_a, keypoints_b]: [&Buffer<u32>; 2],
    [a, b]: [&Buffer<V>; 2],
    guide: &Guide,
) -> Result<Buffer<u32>> {
    let (gpu, cut, order, regions) = (rows.gpu, rows.cut, &rows.order, rows.regions);
    gpu.require_f64()?;
    let program = gpu.program(&source::<V>(rows.kind, guide.b_from_a.kind()))?;
    let places = &gpu.buffer::<u64>(order.len() * NUMBERS)?;
    let rough = &gpu.buffer::<f32>(order.len() * NUMBERS)?;
    let [[m0, m1, m2], [m3, m4, m5], [m6, m7, m8]] = guide.b_from_a.matrix();
    let (model, radius) = ([m0, m1, m2, m3, m4, m5, m6, m7, m8], guide.radius);
    let predict = Predict { places, rough, order, regions, keypoints_a, keypoints_b, model, radius, cut };
    commands.launch(&program.kernel::<Predict<'_>>()?, [rows.blocks(), 1, 1], predict)?;
    commands.stage("match search");
    let found = rows.found()?;
    let search = SearchGuided { found: &found, places, rough, order, regions, a, b, cut };
    commands.launch(&program.kernel::<SearchGuided<'_, V>>()?, [rows.groups(), 1, 1], search)?;
    Ok(found)
}
