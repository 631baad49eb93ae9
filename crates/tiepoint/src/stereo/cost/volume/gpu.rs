//! A cost volume on a device: its costs become 16-bit integers, which the aggregation reads instead of computing costs.

use super::Scaling;
use crate::Result;
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::image::gpu::{self, AnyGpuImage, GpuImage, GpuPixel, GpuStack, Plane};
use crate::image::{PixelKind, Size};
use crate::stereo::aggregation::gpu::Layout;
use crate::stereo::gpu::lanes::{GROUP, covering, launch, optional, pixel_a_lane};
use crate::stereo::{GpuMaps, INVALID};
use crate::{Error, by_pixel};
use tiepoint_gpu::KernelSource;

/// Lanes of a group that goes through rows.
const LANES: u32 = 256;

tiepoint_gpu::kernel! {
    /// Finds the least and the greatest finite cost, and which pixels have a finite cost.
    unsafe kernel measure_costs(groups) = MeasureCosts<T: GpuPixel> {
        write found: u32 [2],
        /// Rows of length 0 mean that all costs are known, as those of integer types.
        write known (known_plane: Plane): u8 [known_plane.numbers(1)],
        read costs (plane: Plane): T [plane.numbers(1)],
        /// Rows of length 0 mean that the left image has data everywhere.
        read given (given_plane: Plane): u8 [given_plane.numbers(1)],
    } {
        disparities: i32,
    }

    /// Converts costs to integers, with the costs of a pixel side by side.
    unsafe kernel whole_costs(groups) = WholeCosts<T: GpuPixel> {
        write whole: u8 [i128::from(plane.height) * width * cost_bytes] aligned 16,
        read costs (plane: Plane): T [plane.numbers(1)],
        /// Rows of length 0: the view has data everywhere.
        read left_mask (left_plane: Plane): u8 [left_plane.numbers(1)],
        read right_mask (right_plane: Plane): u8 [right_plane.numbers(1)],
    } {
        width: i32,
        /// Bytes of the costs of a pixel.
        cost_bytes: i32,
        disparities: i32,
        min_disparity: i32,
        offset: f32,
        scale: f32,
        greatest: u32,
    }

    /// Invalidates pixels at whose disparity the cost is unknown.
    unsafe kernel withdraw(groups) = Withdraw {
        write disparity (plane: Plane): f32 [plane.numbers(1)],
        /// Rows of length 0: such a map is not wanted.
        write right (right_plane: Plane): f32 [right_plane.numbers(1)],
        write confidence (confidence_plane: Plane): f32 [confidence_plane.numbers(1)],
        read whole: u8 [i128::from(plane.row) * i128::from(plane.height) * cost_bytes] aligned 16,
    } {
        cost_bytes: i32,
        disparities: i32,
        min_disparity: i32,
        across: i32,
    }
}

fn measuring<T: GpuPixel>() -> KernelSource {
    gpu::for_kernels::<T>(KernelSource::new("range of costs"))
        .define("LANES", LANES)
        .structure::<Plane>()
        .kernel::<MeasureCosts<'_, T>>([LANES, 1])
        .text(concat!(include_str!("../../../image/range/key.h"), include_str!("measure_costs.cl")))
}

fn making<T: GpuPixel>(layout: &Layout) -> KernelSource {
    let source = gpu::for_kernels::<T>(KernelSource::new("whole costs"))
        .define("LANES", LANES)
        .define_f32("INVALID", INVALID)
        .structure::<Plane>();
    pixel_a_lane(layout.for_kernels(source))
        .kernel::<WholeCosts<'_, T>>([LANES, 1])
        .kernel::<Withdraw<'_>>(GROUP)
        .text(include_str!("volume.cl"))
}

/// The caller's costs in a device's memory, and how they become integers.
#[derive(Clone, Debug)]
pub(in crate::stereo) struct GpuVolume {
    costs: AnyGpuImage,
    pub(in crate::stereo) scaling: Scaling,
}

impl GpuVolume {
    /// Measures the costs, and waits. If costs may be unknown, also returns where left pixels have data and a cost.
    pub(in crate::stereo) fn new(
        costs: &AnyGpuImage,
        scale: Option<f32>,
        given: Option<&AnyGpuImage>,
    ) -> Result<(Self, Option<GpuImage<u8>>)> {
        let gpu = costs.gpu();
        let (ends, known) = by_pixel!(costs, costs => measure(gpu, costs, given)?);
        Ok((Self { costs: costs.clone(), scaling: Scaling::new(ends, costs.pixel(), scale)? }, known))
    }

    /// The program that it needs for sums of this layout.
    pub(in crate::stereo) fn source(&self, layout: &Layout) -> KernelSource {
        by_pixel!(type self.costs.pixel(), T => making::<T>(layout))
    }

    /// Records the conversion to integer costs for sums of this layout, with the masks of both views: 16 bits each,
    /// those of a pixel by ascending disparity, padded as the sums are; the highest bit marks an unknown cost.
    pub(in crate::stereo) fn record(
        &self,
        commands: &mut Commands,
        layout: &Layout,
        min_disparity: i32,
        [left, right]: [Option<&GpuStack<u8>>; 2],
    ) -> Result<Buffer<u8>> {
        let (gpu, size) = (self.costs.gpu(), self.costs.size());
        let cost_bytes = 2 * layout.padded();
        let whole = gpu.buffer(size.area() * cost_bytes)?;
        let (left_mask, right_mask) = (&optional(gpu, left)?, &optional(gpu, right)?);
        let program = gpu.program(&self.source(layout))?;
        let Scaling { offset, scale, greatest } = self.scaling;
        commands.stage("whole costs");
        by_pixel!(&self.costs, costs => {
            let arguments = WholeCosts {
                whole: &whole,
                costs: costs.laid(),
                left_mask: left_mask.into(),
                right_mask: right_mask.into(),
                width: size.width as i32,
                cost_bytes: cost_bytes as i32,
                disparities: layout.disparities as i32,
                min_disparity,
                offset,
                scale,
                greatest: greatest.into(),
            };
            launch(commands, &program, gpu::groups_of_rows(gpu, size), arguments)?;
        });
        Ok(whole)
    }

    /// Records the invalidation of pixels at whose disparity these [integer costs](Self::record) are unknown.
    pub(in crate::stereo) fn withdraw(
        &self,
        commands: &mut Commands,
        maps: &GpuMaps,
        (whole, layout): (&Buffer<u8>, &Layout),
        min_disparity: i32,
    ) -> Result<()> {
        if self.costs.pixel() != PixelKind::F32 {
            return Ok(());
        }
        let gpu = self.costs.gpu();
        let right = &optional(gpu, maps.right.as_ref())?;
        let confidence = &optional(gpu, maps.confidence.as_ref())?;
        let (across, groups) = covering(maps.disparity.size(), 1);
        let arguments = Withdraw {
            disparity: maps.disparity.laid(),
            right: right.into(),
            confidence: confidence.into(),
            whole,
            cost_bytes: 2 * layout.padded() as i32,
            disparities: layout.disparities as i32,
            min_disparity,
            across,
        };
        commands.stage("unknown costs");
        launch(commands, &gpu.program(&self.source(layout))?, groups, arguments)
    }
}

type Measured = ([f32; 2], Option<GpuImage<u8>>);

/// The least and the greatest finite cost, and the mask of [`GpuVolume::new`].
fn measure<T: GpuPixel>(gpu: &Gpu, costs: &GpuImage<T>, given: Option<&AnyGpuImage>) -> Result<Measured> {
    let given = match given {
        None => None,
        Some(AnyGpuImage::U8(given)) => Some(given),
        Some(other) => {
            return Err(Error::Mismatch(format!("a mask of {:?}: expected 8 bits", other.pixel())));
        }
    };
    let (found, size): (_, Size) = (gpu.buffer::<u32>(2)?, costs.size());
    // Only float costs may be unknown.
    let known = (T::WHITE == 1.0).then(|| GpuImage::<u8>::new(gpu, size)).transpose()?;
    let (known_bytes, given) = (&gpu::optional(gpu, known.as_ref())?, &gpu::optional(gpu, given)?);
    let mut commands = Commands::new();
    commands.stage("range of costs");
    commands.zero(&found)?;
    commands.zero(&known_bytes.0)?;
    let arguments = MeasureCosts {
        found: &found,
        known: known_bytes.into(),
        costs: costs.laid(),
        given: given.into(),
        disparities: costs.channels() as i32,
    };
    launch(&mut commands, &gpu.program(&measuring::<T>())?, gpu::groups_of_rows(gpu, size), arguments)?;
    gpu.run(&commands)?;
    let found = found.to_vec()?;
    let ends = match found[1] {
        // No cost has the key 0, so nothing was found.
        0 => [f32::INFINITY, f32::NEG_INFINITY],
        most => [!found[0], most].map(crate::image::range::value_of_key),
    };
    Ok((ends, known))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        let layout = |disparities| Layout::new(32, 16, (4, 2), disparities);
        vec![
            measuring::<u8>(),
            measuring::<u16>(),
            measuring::<f32>(),
            making::<u8>(&layout(128)),
            making::<u16>(&layout(3)),
            making::<f32>(&layout(100)),
        ]
    }
}
