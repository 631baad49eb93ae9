//! Winner takes all on a device: a work group chooses the disparities of a row.

use super::super::aggregation::gpu::{GpuAggregationInput, Layout};
use super::super::cost::gpu::CostKernel;
use super::super::gpu::lanes::{launch, optional};
use super::super::{GpuMaps, INVALID, StereoOptions, subpixel};
use crate::device::gpu::{Buffer, Commands};
use crate::image::gpu::{GpuStack, Plane};
use crate::{Error, Result};
use tiepoint_gpu::{KernelSource, Program};

tiepoint_gpu::kernel! {
    unsafe kernel winner_takes_all(groups) = WinnerTakesAll {
        write disparity (plane: Plane): f32 [plane.numbers(groups[2])],
        write right (right_plane: Plane): f32 [right_plane.numbers(groups[2])],
        /// Rows of length 0 mean that no confidence is wanted.
        write confidence (confidence_plane: Plane): f32 [confidence_plane.numbers(groups[2])],
        read sums: u32 [width * height * pixel_words * groups[2]] aligned 16,
        read left: u32 [width * height * planes * groups[2]],
        read right_words: u32 [width * height * planes * groups[2]],
    } {
        width: i32,
        height: i32,
        /// Words of the sums of a pixel.
        pixel_words: i32,
        /// Planes of the descriptors.
        planes: i32,
        min_disparity: i32,
        disparities: i32,
        uniqueness: u32,
    }
}

/// Lanes of a group.
const LANES: usize = 256;

/// The number of pixels that a group computes together: as many as fit into 16 KiB of local memory with their sums.
fn pixels(layout: &Layout) -> usize {
    let most = (8192 / layout.padded()).clamp(2, LANES);
    if most.is_power_of_two() { most } else { most.next_power_of_two() / 2 }
}

/// The number of right pixels that the current and later left pixels may correspond to.
fn ring(layout: &Layout) -> usize {
    layout.padded() + pixels(layout)
}

fn source(cost: &CostKernel, masked: bool, layout: &Layout, options: &StereoOptions) -> KernelSource {
    let source = KernelSource::new("winner takes all")
        .define("WORDS", cost.planes(false))
        .define("PLANES", cost.planes(masked))
        .define("MASKED", u8::from(masked))
        .define("LANES", LANES)
        .define("PIXELS", pixels(layout))
        .define("RING", ring(layout))
        .define_f32("INVALID", INVALID)
        .define("RIGHT", u8::from(options.selects_right()))
        .define("SECOND", u8::from(options.confidence || options.uniqueness > 0));
    subpixel::for_kernels(layout.for_kernels(source), options.subpixel)
        .kernel::<WinnerTakesAll<'_>>([LANES as u32, 1])
        .text(include_str!("winner_takes_all.cl"))
}

/// The source of [`program`].
pub(in crate::stereo) fn source_for(input: &GpuAggregationInput<'_>, layout: &Layout) -> KernelSource {
    source(input.cost, input.masked, layout, &input.options)
}

/// The program for sums of this layout. Fails where its groups need more local memory than the device has.
pub(in crate::stereo) fn program(input: &GpuAggregationInput<'_>, layout: &Layout) -> Result<Program> {
    let gpu = input.gpu;
    // Words of local memory: totals with margins, least keys, right keys, second-best sums.
    let chunks = layout.padded() * layout.sum_bytes / 4;
    let of_pixel = layout.padded() / 2 + 11 + if chunks.is_multiple_of(4) { chunks / 4 } else { chunks };
    let words = pixels(layout) * of_pixel + ring(layout) + LANES;
    if words * size_of::<u32>() > gpu.info().local_memory as usize {
        let feature = format!("memory of work groups for {} disparities", layout.disparities);
        return Err(Error::Unsupported { device: gpu.info().name.clone(), feature });
    }
    Ok(gpu.program(&source_for(input, layout))?)
}

/// Records the work of the program; `left` and `right` are the descriptors of the views.
pub(in crate::stereo) fn record(
    commands: &mut Commands,
    program: &Program,
    input: &GpuAggregationInput<'_>,
    (sums, layout): (&Buffer<u32>, &Layout),
    (left, right): (&Buffer<u32>, &Buffer<u32>),
) -> Result<GpuMaps> {
    let GpuAggregationInput { gpu, cost, options, masked, size, images, .. } = *input;
    let map = || GpuStack::<f32>::new(gpu, size, 1, images);
    let maps = GpuMaps {
        disparity: map()?,
        right: options.selects_right().then(map).transpose()?,
        confidence: options.confidence.then(map).transpose()?,
        reasons: None,
    };
    let right_map = &optional(gpu, maps.right.as_ref())?;
    let confidence = &optional(gpu, maps.confidence.as_ref())?;
    let arguments = WinnerTakesAll {
        disparity: maps.disparity.laid(),
        right: right_map.into(),
        confidence: confidence.into(),
        sums,
        left,
        right_words: right,
        width: size.width as i32,
        height: size.height as i32,
        pixel_words: layout.sum_words() as i32,
        planes: cost.planes(masked) as i32,
        min_disparity: options.min_disparity,
        disparities: layout.disparities as i32,
        uniqueness: options.uniqueness.into(),
    };
    commands.stage("winner takes all");
    launch(commands, program, [size.height, 1, images], arguments)?;
    Ok(maps)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::stereo::cost::tests::kernels;
    use crate::stereo::{RightView, Subpixel};

    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        let mut sources = vec![];
        for (masked, right_view, confidence, subpixel, disparities) in [
            (false, RightView::Diagonal, false, Subpixel::Equiangular, 128),
            (true, RightView::Diagonal, true, Subpixel::Parabola, 100),
            (true, RightView::Off, true, Subpixel::Off, 16),
        ] {
            let options = StereoOptions { right_view, confidence, subpixel, ..Default::default() };
            for sum_bytes in [1, 2] {
                let layout = Layout::new(32, 8, (4, sum_bytes), disparities);
                sources.extend([source(&kernels()[0], masked, &layout, &options)]);
            }
        }
        sources
    }
}
