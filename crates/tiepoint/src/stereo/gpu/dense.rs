//! Maps for other libraries: without padding, with a chosen value for pixels without a disparity.

use super::lanes::{GROUP, covering, for_maps, launch};
use crate::Result;
use crate::device::gpu::{Buffer, Commands};
use crate::image::gpu::{GpuImage, Plane};
use crate::stereo::GpuStereoResult;
use tiepoint_gpu::KernelSource;

tiepoint_gpu::kernel! {
    unsafe kernel dense(groups) = Dense {
        write to: f32 [plane.pixels(1)],
        read map (plane: Plane): f32 [plane.numbers(1)],
    } {
        nothing: f32,
        across: i32,
    }
}

pub(crate) fn source() -> KernelSource {
    for_maps("dense").kernel::<Dense<'_>>(GROUP).text(include_str!("dense.cl"))
}

impl GpuStereoResult {
    /// One of the maps in the form that other programs expect: rows without gaps, with `nothing`, such as NaN, in place
    /// of [`INVALID`](crate::stereo::INVALID).
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory) when the device's memory is too small,
    /// [`Error::Device`](crate::Error::Device) when it fails.
    pub fn dense(map: &GpuImage<f32>, nothing: f32) -> Result<Buffer<f32>> {
        let (gpu, mut commands) = (map.gpu(), Commands::new());
        // The last row of another program's image may be short.
        let map = &map.aligned(&mut commands)?;
        let to = gpu.buffer(map.size().area() * map.channels())?;
        let (across, groups) = covering(map.size(), 1);
        let arguments = Dense { to: &to, map: map.laid(), nothing, across };
        launch(&mut commands, &gpu.program(&source())?, groups, arguments)?;
        gpu.run(&commands)?;
        Ok(to)
    }
}
