//! Mirrors images on a device left to right.

use crate::Result;
use crate::device::gpu::Commands;
use crate::image::Size;
use crate::image::gpu::{GpuPixel, GpuStack, Plane};
use crate::stereo::gpu::lanes::{GROUP, covering, launch, pixel_a_lane};
use tiepoint_gpu::KernelSource;

tiepoint_gpu::kernel! {
    unsafe kernel mirror(groups) = Mirror<T: GpuPixel> {
        write to (plane: Plane): T [plane.numbers(groups[2])],
        read from: T [plane.numbers(groups[2])],
    } {
        channels: i32,
        across: i32,
    }
}

pub(crate) fn source<T: GpuPixel>() -> KernelSource {
    pixel_a_lane(KernelSource::new("mirror"))
        .structure::<Plane>()
        .kernel::<Mirror<'_, T>>(GROUP)
        .text(include_str!("mirror.cl"))
}

pub(in crate::stereo) fn mirrored<T: GpuPixel>(
    commands: &mut Commands,
    from: &GpuStack<T>,
) -> Result<GpuStack<T>> {
    let to = GpuStack::new(from.gpu(), from.size(), from.channels(), from.count())?;
    let Size { width, height } = from.size();
    let (across, groups) = covering(Size::new(width * from.channels(), height), from.count());
    let channels = from.channels() as i32;
    let arguments = Mirror { to: to.laid(), from: from.buffer(), channels, across };
    launch(commands, &from.gpu().program(&source::<T>())?, groups, arguments)?;
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::gpu::all;
    use crate::image::Image;
    use crate::stereo::pair;

    #[test]
    fn images_are_mirrored() {
        for gpu in all() {
            for (width, height, channels) in [(1, 1, 1), (33, 9, 1), (7, 40, 3), (65, 2, 4)] {
                let size = Size::new(width, height);
                let image = |seed: usize| {
                    let data = (0..width * height * channels).map(|i| (i * 7 + seed) as u16).collect();
                    Image::from_vec(data, size, channels).unwrap()
                };
                let images = [image(0), image(5)];
                let from = GpuStack::upload(gpu, &images.each_ref().map(Image::view)).unwrap();
                let mut commands = Commands::new();
                let exchanged = mirrored(&mut commands, &from).unwrap();
                gpu.run(&commands).unwrap();
                for (i, image) in images.iter().enumerate() {
                    let expected = pair::mirrored(image);
                    assert_eq!(exchanged.download(i).unwrap(), expected, "{gpu:?}, {size}, image {i}");
                }
            }
        }
    }
}
