//! [Shrinking](super::shrink()) on a device, with the same bits.

use crate::Result;
use crate::device::gpu::Commands;
use crate::filter::gpu::Filter;
use crate::image::gpu::{GpuStack, Plane};
use tiepoint_gpu::KernelSource;

/// Lanes of a work group, in x and y.
const GROUP: [u32; 2] = [32, 8];

pub(crate) fn source() -> KernelSource {
    KernelSource::new("shrink")
        .define("GROUP_WIDTH", GROUP[0])
        .define("GROUP_HEIGHT", GROUP[1])
        .structure::<Plane>()
        .kernel::<Filter<'_, f32, f32>>(GROUP)
        .text(include_str!("shrink.cl"))
}

/// Records the shrinking of the one-channel images `from` to the size of `to`, which holds as many images and is no
/// larger.
///
/// # Errors
/// [`Error::Unsupported`](crate::Error::Unsupported) by a device without f64.
pub(crate) fn shrink(commands: &mut Commands, from: &GpuStack<f32>, to: &GpuStack<f32>) -> Result<()> {
    let gpu = from.gpu();
    gpu.require_f64()?;
    let kernel = gpu.program(&source())?.kernel::<Filter<'_, f32, f32>>()?;
    let [across, down, _] = kernel.covering(to.size().width, to.size().height);
    commands.stage("shrink");
    let shrink = Filter { to: to.laid(), from: from.laid(), across: across as i32 };
    Ok(commands.launch(&kernel, [across * down, 1, to.count()], shrink)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Cpu;
    use crate::device::gpu::all;
    use crate::filter::gpu::testing::images;
    use crate::filter::shrink;
    use crate::image::Size;
    use crate::image::testing::assert_same;

    #[test]
    fn images_shrink_as_on_the_cpu() {
        let divided = |n: usize, by: f64| ((n as f64 / by) as usize).max(1);
        for gpu in all() {
            for image in images::<f32>(1) {
                let full = image.size();
                for by in [1.0, 1.26, 2.0, 4.0, 7.3] {
                    let size = Size::new(divided(full.width, by), divided(full.height, by));
                    let from = GpuStack::upload(gpu, &[image.view(), image.view()]).unwrap();
                    let to = GpuStack::new(gpu, size, 1, 2).unwrap();
                    let mut commands = Commands::new();
                    shrink(&mut commands, &from, &to).unwrap();
                    gpu.run(&commands).unwrap();
                    let expected = shrink::shrink(image.view(), size, &Cpu::sequential()).unwrap();
                    for i in 0..2 {
                        let what = format!("{gpu:?}: image {i}, {full} to {size}");
                        assert_same(&to.download(i).unwrap(), &expected, what);
                    }
                }
            }
        }
    }
}
