//! Gradients on a device.

use super::Sobel;
use crate::device::gpu::Gpu;
use crate::filter::gpu::{GpuFilter, LOCAL_MEMORY, Shape};
use crate::image::Border;
use crate::image::gpu::{self, GpuPixel};
use crate::{Error, Result};
use tiepoint_gpu::{Element, KernelSource};

/// The result that is computed from the column sums; the kernel uses the same names.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::filter) enum Form {
    X,
    Y,
    Magnitude,
}

/// The most channels: a tile's margin.
const CHANNELS: usize = 32;

fn shape<T: GpuPixel>(border: Border, channels: usize, form: Form) -> Shape {
    Shape {
        rows: [1; 2],
        columns: [1; 2],
        channels,
        border,
        sum: if T::f32s(&[]).is_some() { "f32" } else { "i32" },
        planes: if form == Form::Magnitude { 2 } else { 1 },
        text: include_str!("sobel.cl"),
        local_memory: LOCAL_MEMORY,
    }
}

fn arithmetic<T: GpuPixel>(source: KernelSource, form: Form) -> KernelSource {
    gpu::for_kernels::<T>(source)
        .define("READ(v)", "((MID)(v))")
        .define("SKIPPED(v)", "0")
        .define("X", 0)
        .define("Y", 1)
        .define("MAGNITUDE", 2)
        .define("FORM", form as u8)
}

impl<T: GpuPixel, O: Element> GpuFilter<T, O> {
    pub(in crate::filter) fn sobel(gpu: &Gpu, border: Border, channels: usize, form: Form) -> Result<Self> {
        if channels > CHANNELS {
            return Err(Error::Image(format!("{channels} channels: Sobel on a GPU takes up to {CHANNELS}")));
        }
        let shape = shape::<T>(border, channels, form);
        Self::separable(gpu, "sobel", &shape, |source| arithmetic::<T>(source, form))
    }
}

impl<T: GpuPixel + Sobel<Gradient: Element>> GpuFilter<T, T::Gradient> {
    /// [`sobel::x`](super::x) on a device; the same bits, but for those of a NaN. Up to 32 channels.
    ///
    /// # Errors
    /// [`Error::Image`] for more channels, [`Error::Device`] when the device refuses.
    pub fn sobel_x(gpu: &Gpu, border: Border, channels: usize) -> Result<Self> {
        Self::sobel(gpu, border, channels, Form::X)
    }

    /// [`sobel::y`](super::y), as [`sobel_x`](Self::sobel_x).
    ///
    /// # Errors
    /// As [`sobel_x`](Self::sobel_x).
    pub fn sobel_y(gpu: &Gpu, border: Border, channels: usize) -> Result<Self> {
        Self::sobel(gpu, border, channels, Form::Y)
    }
}

impl<T: GpuPixel + Sobel> GpuFilter<T, T> {
    /// [`sobel::magnitude`](super::magnitude), as [`sobel_x`](Self::sobel_x).
    ///
    /// # Errors
    /// As [`sobel_x`](Self::sobel_x).
    pub fn sobel_magnitude(gpu: &Gpu, border: Border, channels: usize) -> Result<Self> {
        Self::sobel(gpu, border, channels, Form::Magnitude)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::device::Cpu;
    use crate::filter::gpu::testing::{self, images};
    use crate::filter::sobel;
    use crate::filter::testing::BORDERS;
    use crate::image::testing::Value;

    /// Each form with another border, the first with that of number `first`.
    fn twins<T: GpuPixel + Sobel<Gradient: Element + Value>>(first: usize, channels: usize) {
        let images = images::<T>(channels);
        let cpu = Cpu::default();
        let context = format!("{} x {channels}", T::NAME);
        let [a, b, c] = [0, 1, 2].map(|n| BORDERS[(first + n) % 4]);
        let x = |gpu: &Gpu| GpuFilter::<T, T::Gradient>::sobel_x(gpu, a, channels);
        testing::twins(&images, x, |view| sobel::x(view, a, &cpu).unwrap(), &context);
        let y = |gpu: &Gpu| GpuFilter::<T, T::Gradient>::sobel_y(gpu, b, channels);
        testing::twins(&images, y, |view| sobel::y(view, b, &cpu).unwrap(), &context);
        let magnitude = |gpu: &Gpu| GpuFilter::<T, T>::sobel_magnitude(gpu, c, channels);
        testing::twins(&images, magnitude, |view| sobel::magnitude(view, c, &cpu).unwrap(), &context);
    }

    #[test]
    fn gradients_are_those_of_the_cpu() {
        twins::<u8>(0, 1);
        twins::<u16>(1, 1);
        twins::<u16>(2, 3);
        twins::<f32>(3, 1);
    }

    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        let mut sources = vec![];
        let source = |form| {
            let shape = |channels| shape::<u16>(Border::Clamp, channels, form);
            shape(1).source::<u16, u16>("sobel", |s| arithmetic::<u16>(s, form))
        };
        sources.extend([Form::X, Form::Y, Form::Magnitude].map(source));
        let float = shape::<f32>(Border::Clamp, 3, Form::Magnitude);
        sources.extend([float.source::<f32, f32>("sobel", |s| arithmetic::<f32>(s, Form::Magnitude))]);
        sources
    }
}
