//! [Extrema](super) of all layers on a GPU, [refined](crate::feature::surf::refine): one launch. The order of the
//! keypoints is that of the device's threads; see [`order`](crate::feature::order::gpu).

use crate::device::gpu::{Buffer, Commands};
use crate::feature::WORDS;
use crate::feature::gpu::GpuKeypoints;
use crate::feature::surf::gpu::layers::{DeviceLayers, Layers, ROWS_PER_LANE, SEARCHED_WORDS, TILE};
use crate::feature::surf::{SurfOptions, SurfPreset};
use crate::image::Size;
use crate::image::gpu::GpuImage;
use crate::{Result, feature};
use tiepoint_gpu::KernelSource;

tiepoint_gpu::kernel! {
    /// Appends the keypoints of all layers of every image (the third dimension) to its list, in any order.
    unsafe kernel search(groups) = Search {
        write keypoints: u32 as Keypoint [groups[2] * capacity * WORDS as i128],
        write counts: u32 [groups[2]],
        read responses: f32 [groups[2] * image_responses],
        read layers: u32 as SearchedLayer [layer_count * SEARCHED_WORDS as i128],
        /// The masks of all images; one number where there is none.
        read mask: u8 [groups[2] * height * mask_pitch],
    } {
        image_responses: u64,
        layer_count: i32,
        capacity: u32,
        threshold: f32,
        /// 0: there is no mask.
        mask_pitch: i32,
        width: i32,
        height: i32,
    }
}

pub(crate) fn source(options: &SurfOptions) -> KernelSource {
    feature::for_kernels(KernelSource::new("SURF, extrema"))
        .define("OPENCV", u8::from(options.preset == SurfPreset::OpenCv))
        .define("TILE_X", TILE[0])
        .define("TILE_Y", TILE[1])
        .define("ROWS_PER_LANE", ROWS_PER_LANE)
        .define_f32("SCALE_PER_SIZE", 1.2 / 9.0)
        .kernel::<Search<'_>>(TILE)
        .text(include_str!("extrema.cl"))
}

/// Counts and writes the keypoints of all layers, in any order and without angles. `mask` is the mask of
/// one image.
pub(crate) fn record(
    commands: &mut Commands,
    options: &SurfOptions,
    responses: &Buffer<f32>,
    table: &DeviceLayers,
    mask: Option<&GpuImage<u8>>,
    size: Size,
    found: &GpuKeypoints,
) -> Result<()> {
    let gpu = responses.gpu();
    let kernel = gpu.program(&source(options))?.kernel::<Search<'_>>()?;
    commands.stage("extrema");
    commands.zero(&found.counts)?;
    let Layers { len, searched, .. } = &table.layers;
    let none = gpu.upload(&[0])?;
    let arguments = Search {
        keypoints: &found.keypoints,
        counts: &found.counts,
        responses,
        layers: &table.searched,
        mask: mask.map_or(&none, GpuImage::buffer),
        image_responses: *len as u64,
        layer_count: searched.layers as i32,
        capacity: found.capacity as u32,
        threshold: options.threshold,
        mask_pitch: mask.map_or(0, GpuImage::pitch) as i32,
        width: size.width as i32,
        height: size.height as i32,
    };
    let groups = [searched.groups, 1, found.counts.len()];
    Ok(commands.launch(&kernel, groups, arguments)?)
}
