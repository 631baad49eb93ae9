//! Responses of all layers on a GPU, with the bits of [the CPU's](super): one launch.

use crate::Result;
use crate::device::gpu::{Buffer, Commands};
use crate::feature::surf::gpu::layers::{COMPUTED_WORDS, DeviceLayers, Layers, ROWS_PER_LANE, TILE};
use crate::feature::surf::integral::{self, SumsPlane};
use crate::filter::integral::{GpuIntegral, GpuSum};
use tiepoint_gpu::KernelSource;

tiepoint_gpu::kernel! {
    /// The responses of all layers of all images: the third dimension.
    unsafe kernel respond(groups) = Respond<A: GpuSum> {
        write responses: f32 [groups[2] * image_responses],
        read sums: A [plane.numbers(groups[2])],
        read layers: u32 as ResponseLayer [layer_count * COMPUTED_WORDS as i128],
    } {
        image_responses: u64,
        plane: SumsPlane,
        layer_count: i32,
    }
}

pub(crate) fn source<A: GpuSum>() -> KernelSource {
    integral::for_kernels::<A>(KernelSource::new("SURF, responses"))
        .define("TILE_X", TILE[0])
        .define("TILE_Y", TILE[1])
        .define("ROWS_PER_LANE", ROWS_PER_LANE)
        .kernel::<Respond<'_, A>>(TILE)
        .text(include_str!("response.cl"))
}

pub(crate) fn record<A: GpuSum>(
    commands: &mut Commands,
    sums: &GpuIntegral<A>,
    table: &DeviceLayers,
    responses: &Buffer<f32>,
) -> Result<()> {
    let kernel = responses.gpu().program(&source::<A>())?.kernel::<Respond<'_, A>>()?;
    commands.stage("response");
    let Layers { len, computed, .. } = &table.layers;
    let arguments = Respond {
        responses,
        sums: sums.buffer(),
        layers: &table.computed,
        image_responses: *len as u64,
        plane: SumsPlane::of(sums),
        layer_count: computed.layers as i32,
    };
    Ok(commands.launch(&kernel, [computed.groups, 1, sums.images()], arguments)?)
}
