//! Gradients on a device.

use super::{Form, Magnitude, Sobel};
use crate::device::gpu::Gpu;
use crate::filter::gpu::{GpuFilter, LOCAL_MEMORY, Shape};
use crate::image::Border;
use crate::image::gpu::{self, GpuPixel};
use crate::{Error, Result};
use tiepoint_gpu::{Element, KernelSource};

/// The most channels: the reach of one pixel must fit a tile's margin.
const CHANNELS: usize = 32;

fn shape<T: GpuPixel>(
    border: Border,
    channels: usize,
    form: &str,
) -> Shape<impl Fn(KernelSource) -> KernelSource> {
    Shape {
        name: "sobel",
        rows: [1; 2],
        columns: [1; 2],
        channels,
        border,
        sum: if T::f32s(&[]).is_some() { "f32" } else { "i32" },
        planes: if form == <Magnitude as Form<u8>>::NAME { 2 } else { 1 },
        text: include_str!("sobel.cl"),
        definitions: move |source| {
            gpu::for_kernels::<T>(source)
                .define("READ(v)", "((MID)(v))")
                .define("SKIPPED(v)", "0")
                .define("X", 0)
                .define("Y", 1)
                .define("MAGNITUDE", 2)
                .define("FORM", form)
        },
        local_memory: LOCAL_MEMORY,
    }
}

impl<T: GpuPixel + Sobel, O: Element> GpuFilter<T, O> {
    /// [`sobel`](super::sobel()) on a device; the same bits, except for those of a NaN. Derivatives are of the
    /// gradient's type or f32. Up to 32 channels.
    ///
    /// # Errors
    /// [`Error::Image`] for more channels, [`Error::Device`] when the device refuses.
    pub fn sobel<F: Form<T>>(gpu: &Gpu, _: F, border: Border, channels: usize) -> Result<Self> {
        if channels > CHANNELS {
            return Err(Error::Image(format!("{channels} channels: Sobel on a GPU takes up to {CHANNELS}")));
        }
        Self::separable(gpu, shape::<T>(border, channels, F::NAME))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::{X, Y, sobel};
    use super::*;
    use crate::filter::gpu::testing;
    use crate::filter::testing::BORDERS;
    use crate::image::testing::Value;

    /// Tests each form with another border, beginning with number `first`.
    fn twins<T: GpuPixel + Sobel<Gradient: Element + Value>>(first: usize, channels: usize) {
        let [a, b, c] = [0, 1, 2].map(|n| BORDERS[(first + n) % 4]);
        let x = |gpu: &Gpu| GpuFilter::<T, T::Gradient>::sobel(gpu, X, a, channels);
        testing::twins(channels, x, |view, cpu| sobel(view, X, a, cpu), format_args!("x, {a:?}"));
        let y = |gpu: &Gpu| GpuFilter::<T, T::Gradient>::sobel(gpu, Y, b, channels);
        testing::twins(channels, y, |view, cpu| sobel(view, Y, b, cpu), format_args!("y, {b:?}"));
        let magnitude = |gpu: &Gpu| GpuFilter::<T, T>::sobel(gpu, Magnitude, c, channels);
        testing::twins(channels, magnitude, |v, cpu| sobel(v, Magnitude, c, cpu), format_args!("{c:?}"));
    }

    #[test]
    fn gradients_are_those_of_the_cpu() {
        twins::<u8>(0, 1);
        twins::<u16>(1, 1);
        twins::<u16>(2, 3);
        twins::<f32>(3, 1);
    }

    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        let source = |form| shape::<u16>(Border::Clamp, 1, form).source::<u16, u16>();
        let float = shape::<f32>(Border::Clamp, 3, "MAGNITUDE").source::<f32, f32>();
        vec![source("X"), source("Y"), source("MAGNITUDE"), float]
    }
}
