//! Responses of all layers on a GPU, with the bits of [the CPU's](super): one launch.

use crate::Result;
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::feature::surf::gpu::layers::{DeviceLayers, Layers, ROWS_PER_LANE, TILE};
use crate::feature::surf::integral::{self, Sums};
use crate::filter::integral::GpuSum;
use tiepoint_gpu::{Kernel, KernelSource, arguments};

/// Computes responses.
#[derive(Debug)]
pub(in crate::feature::surf) struct GpuResponse(Kernel);

impl GpuResponse {
    pub(in crate::feature::surf) fn source<A: GpuSum>() -> KernelSource {
        integral::for_kernels::<A>(KernelSource::new("SURF, responses"))
            .define("TILE_X", TILE[0])
            .define("TILE_Y", TILE[1])
            .define("ROWS_PER_LANE", ROWS_PER_LANE)
            .text(include_str!("response.cl"))
    }

    pub(in crate::feature::surf) fn new<A: GpuSum>(gpu: &Gpu) -> Result<Self> {
        Ok(Self(gpu.program(&Self::source::<A>())?.untyped_kernel("respond", TILE)?))
    }

    /// Computes the responses of all layers of all images.
    pub(in crate::feature::surf) fn record<A: GpuSum>(
        &self,
        commands: &mut Commands,
        sums: Sums<'_, A>,
        table: &DeviceLayers,
        responses: &Buffer<f32>,
    ) -> Result<()> {
        commands.stage("response");
        let Layers { len, computed, .. } = &table.layers;
        let arguments = arguments![
            responses,
            sums.buffer(),
            &table.computed,
            computed.layers as i32,
            sums.pitch(),
            sums.origin(),
            sums.stride(),
            *len as u64
        ];
        Ok(commands.launch_untyped(&self.0, [computed.groups, 1, sums.images()], arguments)?)
    }
}
