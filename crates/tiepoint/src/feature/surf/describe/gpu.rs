//! Descriptors on a GPU, with the bits of [the CPU's](super).

use super::{CELLS, Square};
use crate::device::gpu::{Buffer, Commands};
use crate::feature::WORDS;
use crate::feature::gpu::GpuKeypoints;
use crate::feature::surf::SurfOptions;
use crate::feature::surf::gpu::layers::groups;
use crate::feature::surf::integral::{self, SumsPlane};
use crate::filter::integral::{GpuIntegral, GpuSum};
use crate::{Result, feature};
use tiepoint_gpu::KernelSource;

/// Lanes that describe one keypoint: as many as a descriptor has values at most.
const GROUP: u32 = 128;

tiepoint_gpu::kernel! {
    /// The descriptors of the oriented keypoints of every image: the second dimension.
    unsafe kernel describe(groups) = Describe<A: GpuSum> {
        write descriptors: f32 [groups[1] * capacity * dimension],
        read oriented: u32 as Keypoint [groups[1] * capacity * WORDS as i128],
        read directions: f32 [groups[1] * capacity * 2],
        read counts: u32 [groups[1]],
        read sums: A [plane.numbers(groups[1])],
        /// Columns, rows and weights of the square's samples, and the samples of its cells where these overlap.
        read square: f32 [square_len],
    } {
        plane: SumsPlane,
        capacity: u32,
        limit: u32,
        /// Values of a descriptor, and numbers of the square, for which the program is compiled.
        dimension: i32,
        square_len: i32,
    }
}

pub(crate) fn source<A: GpuSum>(options: &SurfOptions) -> KernelSource {
    let square = Square::new(options);
    let order: Vec<i32> = match options.extended {
        true => (0..8).collect(),
        false => square.order.map(|i| i as i32).to_vec(),
    };
    let source = feature::for_kernels(KernelSource::new("SURF, descriptors"));
    integral::for_kernels::<A>(source)
        .define("DESCRIBE_GROUP", GROUP)
        .define("CELLS", CELLS)
        .define("VALUES", order.len())
        .define("EXTENDED", u8::from(options.extended))
        .define("SAMPLES_OF_SQUARE", square.u.len())
        .define("SAMPLES_OF_CELL", square.weights.len() / CELLS)
        .define("CELLS_OVERLAP", u8::from(!square.members.is_empty()))
        .define("COLUMNS_OUTER", u8::from(square.columns_outer))
        .define_f32("TO_CORNER", square.to_corner)
        .table_i32("ORDER", &order)
        .kernel::<Describe<'_, A>>([GROUP, 1])
        .text(include_str!("describe.cl"))
}

/// Writes the descriptors of the oriented keypoints, unless the options leave descriptors out.
pub(crate) fn record<A: GpuSum>(
    commands: &mut Commands,
    options: &SurfOptions,
    sums: &GpuIntegral<A>,
    (oriented, directions): (&GpuKeypoints, &Buffer<f32>),
    descriptors: &Buffer<f32>,
) -> Result<()> {
    if options.dimension() == 0 {
        return Ok(());
    }
    let gpu = directions.gpu();
    let kernel = gpu.program(&source::<A>(options))?.kernel::<Describe<'_, A>>()?;
    let Square { u, v, weights, members, .. } = Square::new(options);
    let members = members.into_iter().map(f32::from).collect();
    let square = &gpu.upload(&[u, v, weights, members].concat())?;
    commands.stage("describe");
    let arguments = Describe {
        descriptors,
        oriented: &oriented.keypoints,
        directions,
        counts: &oriented.counts,
        sums: sums.buffer(),
        square,
        plane: SumsPlane::of(sums),
        capacity: oriented.capacity as u32,
        limit: options.selection.device_limit(),
        dimension: options.dimension() as i32,
        square_len: square.len() as i32,
    };
    Ok(commands.launch(&kernel, groups(oriented), arguments)?)
}
