//! The guided search on a GPU along the lines that a fundamental matrix predicts: `lines.cl`.

use crate::Result;
use crate::device::gpu::{Buffer, Commands, Element};
use crate::feature::by_value;
use crate::feature::gpu::{GpuDescriptors, GpuFeatures};
use crate::matching::gpu::regions::{Cut, Rows, SearchKind, Side};
use crate::matching::{Guide, kinds_differ};
use tiepoint_gpu::KernelSource;

/// How many numbers of each row the test needs.
const NUMBERS: usize = 4;

tiepoint_gpu::kernel! {
    /// Computes the numbers of each row of a side that the test needs, in f64 and in f32.
    unsafe kernel predict_lines(groups) = PredictLines {
        write places: u64 as Place [side.rows() * NUMBERS as i128],
        write rough: f32 as f32x4 [side.rows() * NUMBERS as i128],
        read order: u32 [side.rows()],
        read regions: u32 [2],
        read keypoints: u32 as Keypoint [side.keypoints()],
    } {
        /// Row by row.
        model: [f64; 9],
        radius: f64,
        side: Side,
        /// 1: the side is A, whose lines the model predicts.
        predicted: u32,
    }

    /// Finds the two nearest targets of every query among the targets of a group that the model allows.
    unsafe kernel search_lines(groups) = SearchLines<V: Element> {
        write found: u32 [cut.found(groups[0])],
        read places_a: u64 as Place [cut.a.rows() * NUMBERS as i128],
        read places_b: u64 as Place [cut.b.rows() * NUMBERS as i128],
        read rough_a: f32 as f32x4 [cut.a.rows() * NUMBERS as i128],
        read rough_b: f32 as f32x4 [cut.b.rows() * NUMBERS as i128],
        read order_a: u32 [cut.a.rows()],
        read order_b: u32 [cut.b.rows()],
        read regions_a: u32 [2],
        read regions_b: u32 [2],
        read a: V [cut.a.values()] aligned GpuDescriptors::ALIGNMENT,
        read b: V [cut.b.values()] aligned GpuDescriptors::ALIGNMENT,
    } {
        cut: Cut,
    }
}

pub(crate) fn source<V: Element>(kind: SearchKind) -> KernelSource {
    let block = [kind.form.block(), 1];
    kind.descriptors("guided lines")
        .kernel::<PredictLines<'_>>(block)
        .kernel::<SearchLines<'_, V>>(block)
        .text(include_str!("../guided.h"))
        .text(include_str!("../lines.cl"))
}

/// Adds the search to the commands; its groups write their results into `found`.
pub(crate) fn record(
    commands: &mut Commands,
    kind: SearchKind,
    cut: Cut,
    sides: [(&GpuFeatures, &Rows); 2],
    guide: &Guide,
    found: &Buffer<u32>,
) -> Result<()> {
    let gpu = found.gpu();
    gpu.require_f64()?;
    let program = gpu.program(&if kind.floats { source::<f32>(kind) } else { source::<u8>(kind) })?;
    let predict = program.kernel::<PredictLines<'_>>()?;
    let [[m0, m1, m2], [m3, m4, m5], [m6, m7, m8]] = guide.b_from_a.between_pixels();
    let (model, radius) = ([m0, m1, m2, m3, m4, m5, m6, m7, m8], guide.radius);
    let mut needs = |of: usize| -> Result<_> {
        let (features, Rows { side, order, regions }) = sides[of];
        let numbers = side.rows() as usize * NUMBERS;
        let (places, rough) = (gpu.buffer::<u64>(numbers)?, gpu.buffer::<f32>(numbers)?);
        let predicted = u32::from(of == 0);
        let arguments = PredictLines {
            places: &places,
            rough: &rough,
            order,
            regions,
            keypoints: &features.keypoints,
            model,
            radius,
            side: *side,
            predicted,
        };
        commands.launch(&predict, [side.blocks(), 1, 1], arguments)?;
        Ok((places, rough))
    };
    let [(places_a, rough_a), (places_b, rough_b)] = [needs(0)?, needs(1)?];
    commands.stage("match search");
    let [(features_a, rows_a), (features_b, rows_b)] = sides;
    by_value!(
        (&features_a.descriptors, &features_b.descriptors),
        (a, b) => {
            let search = SearchLines {
                found,
                places_a: &places_a,
                places_b: &places_b,
                rough_a: &rough_a,
                rough_b: &rough_b,
                order_a: &rows_a.order,
                order_b: &rows_b.order,
                regions_a: &rows_a.regions,
                regions_b: &rows_b.regions,
                a,
                b,
                cut,
            };
            Ok(commands.launch(&program.kernel::<SearchLines<'_, _>>()?, [cut.groups(), 1, 1], search)?)
        },
        else Err(kinds_differ())
    )
}
