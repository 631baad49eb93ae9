//! Copies of images on a device: to another pitch, into a stack, with left and right exchanged.

use super::lanes::{GROUP, covering, pixel_a_lane};
use crate::{
    Result,
    device::gpu::{Commands, Gpu},
    image::{
        Size,
        gpu::{GpuPixel, GpuStack, Plane},
    },
};
use tiepoint_gpu::{Kernel, KernelSource};

tiepoint_gpu::kernel! {
    /// Images copied to where others lie.
    unsafe kernel arrange(groups) = Arrange<T: GpuPixel> {
        write to: T [to_plane.numbers(first + groups[2])],
        read from: T [from_plane.numbers(groups[2])],
    } {
        to_plane: Plane,
        /// Of the same rows and columns, with a pitch of its own.
        from_plane: Plane,
        /// The image of the stack that the first one goes to.
        first: i32,
        channels: i32,
        /// Not 0: left and right are exchanged.
        mirrored: i32,
        /// Groups beside each other.
        across: i32,
    }
}

fn source<T: GpuPixel>() -> KernelSource {
    pixel_a_lane(KernelSource::new("arrange"))
        .structure::<Plane>()
        .kernel::<Arrange<'_, T>>(GROUP)
        .text(include_str!("arrange.cl"))
}

/// Copies images of one type of pixel.
#[derive(Clone, Debug)]
pub(super) struct GpuArrange<T: GpuPixel>(Kernel<Arrange<'static, T>>);

impl<T: GpuPixel> GpuArrange<T> {
    pub(super) fn new(gpu: &Gpu) -> Result<Self> {
        Ok(Self(gpu.program(&source::<T>())?.kernel::<Arrange<'_, T>>()?))
    }

    /// Puts a copy of some images into a list: the first of them becomes image `first` of a stack of the same shape.
    pub(super) fn copy(
        &self,
        commands: &mut Commands,
        from: &GpuStack<T>,
        (to, first): (&GpuStack<T>, usize),
    ) -> Result<()> {
        self.record(commands, from, (to, first), false)
    }

    /// Puts the making of mirrored images into a list.
    pub(super) fn mirrored(&self, commands: &mut Commands, from: &GpuStack<T>) -> Result<GpuStack<T>> {
        let to = GpuStack::new(from.gpu(), from.size(), from.channels(), from.count())?;
        self.record(commands, from, (&to, 0), true)?;
        Ok(to)
    }

    fn record(
        &self,
        commands: &mut Commands,
        from: &GpuStack<T>,
        (to, first): (&GpuStack<T>, usize),
        mirrored: bool,
    ) -> Result<()> {
        let Size { width, height } = from.size();
        let (across, groups) = covering(Size::new(width * from.channels(), height), from.count());
        let arguments = Arrange {
            to: to.buffer(),
            from: from.buffer(),
            to_plane: to.plane(),
            from_plane: from.plane(),
            first: first as i32,
            channels: from.channels() as i32,
            mirrored: mirrored.into(),
            across,
        };
        Ok(commands.launch(&self.0, groups, arguments)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        device::gpu::{all, compiles_everywhere},
        image::Image,
        stereo::pair::mirrored,
    };

    #[test]
    fn images_are_mirrored_and_stacked() {
        for gpu in all() {
            for (width, height, channels) in [(1, 1, 1), (33, 9, 1), (7, 40, 3), (65, 2, 4)] {
                let size = Size::new(width, height);
                let image = |seed: usize| {
                    let data = (0..width * height * channels).map(|i| (i * 7 + seed) as u16).collect();
                    Image::from_vec(data, size, channels).unwrap()
                };
                let (arrange, mut commands) = (GpuArrange::<u16>::new(gpu).unwrap(), Commands::new());
                let [one, two] = [image(0), image(5)];
                let from = GpuStack::upload(gpu, &[one.view(), two.view()]).unwrap();
                let exchanged = arrange.mirrored(&mut commands, &from).unwrap();
                let stack = GpuStack::new(gpu, size, channels, 3).unwrap();
                arrange.copy(&mut commands, &from, (&stack, 1)).unwrap();
                gpu.run(&commands).unwrap();
                assert_eq!(exchanged.download(1).unwrap(), mirrored(&two), "{gpu:?}, {size}");
                assert_eq!(stack.download(1).unwrap(), one, "{gpu:?}, {size}");
                assert_eq!(stack.download(2).unwrap(), two, "{gpu:?}, {size}");
            }
        }
    }

    #[test]
    fn kernels_compile_for_every_card() {
        compiles_everywhere(&[source::<u8>(), source::<u16>(), source::<f32>()]);
    }
}
