//! [Extrema](super) of all layers on a GPU, [refined](crate::feature::surf::refine): one launch. The order of the
//! keypoints is that of the device's threads; see [`GpuOrder`](crate::feature::order::GpuOrder).

use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::feature::gpu::GpuKeypoints;
use crate::feature::surf::gpu::layers::{DeviceLayers, Layers, ROWS_PER_LANE, TILE};
use crate::feature::surf::{SurfOptions, SurfPreset};
use crate::image::Size;
use crate::{Result, feature};
use tiepoint_gpu::{Kernel, KernelSource, Positional, arguments};

/// Finds and refines extrema.
#[derive(Debug)]
pub(in crate::feature::surf) struct GpuExtrema {
    kernel: Kernel,
    threshold: f32,
}

impl GpuExtrema {
    pub(in crate::feature::surf) fn source(options: &SurfOptions) -> KernelSource {
        feature::for_kernels(KernelSource::new("SURF, extrema"))
            .define("OPENCV", u8::from(options.preset == SurfPreset::OpenCv))
            .define("TILE_X", TILE[0])
            .define("TILE_Y", TILE[1])
            .define("ROWS_PER_LANE", ROWS_PER_LANE)
            .define_f32("SCALE_PER_SIZE", 1.2 / 9.0)
            .text(include_str!("extrema.cl"))
    }

    pub(in crate::feature::surf) fn new(gpu: &Gpu, options: &SurfOptions) -> Result<Self> {
        let kernel = gpu.program(&Self::source(options))?.untyped_kernel("search", TILE)?;
        Ok(Self { kernel, threshold: options.threshold })
    }

    /// Counts and writes the keypoints of all layers, in any order and without angles; `mask` is one image's, and its
    /// pitch.
    pub(in crate::feature::surf) fn record(
        &self,
        commands: &mut Commands,
        responses: &Buffer<f32>,
        table: &DeviceLayers,
        mask: Option<(&Buffer<u8>, usize)>,
        size: Size,
        found: &GpuKeypoints,
    ) -> Result<()> {
        commands.stage("extrema");
        commands.zero(&found.counts)?;
        let Layers { len, searched, .. } = &table.layers;
        // A kernel without a mask does not look at the one that it is given.
        let mask_pitch = mask.map_or(0, |m| m.1 as i32);
        let mask = mask.map_or_else(|| Positional::from(&found.counts), |m| Positional::from(m.0));
        let mut arguments = arguments![&found.keypoints, &found.counts, responses, &table.searched];
        arguments.push(mask);
        arguments.extend(arguments![
            searched.layers as i32,
            found.capacity as u32,
            self.threshold,
            mask_pitch,
            size.width as i32,
            size.height as i32,
            *len as u64
        ]);
        let groups = [searched.groups, 1, found.counts.len()];
        Ok(commands.launch_untyped(&self.kernel, groups, arguments)?)
    }
}
