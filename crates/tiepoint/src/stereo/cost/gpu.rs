//! Costs on a device: the descriptors of a view, and the code by which kernels compute a cost of two of them.
//!
//! The `.h` file beside a cost's Rust form defines two functions: `descriptor_of` makes the descriptor of a pixel,
//! `cost` compares two. `view.h` describes the views that descriptors are made from.

use super::CostSource;
use super::mutual_information::learn::gpu::LearnTable;
use super::volume::gpu::GpuVolume;
use crate::Result;
use crate::device::gpu::{Buffer, Commands};
use crate::image::gpu::{self, GpuPixel, GpuStack, Plane};
use crate::stereo::gpu::lanes::{GROUP, covering, launch, optional, pixel_a_lane};
use crate::stereo::pair::gpu::{Compares, ViewStacks};
use tiepoint_gpu::KernelSource;

/// How kernels compute a cost.
#[derive(Clone, Debug)]
pub(in crate::stereo) struct CostKernel {
    /// The functions `descriptor_of` and `cost`.
    pub(super) text: &'static str,
    /// Words of a descriptor.
    pub(super) words: usize,
    /// Macros for the text.
    pub(super) definitions: Vec<(&'static str, String)>,
    /// The table that `cost` looks up, empty if it has none.
    pub(in crate::stereo) table: Vec<u8>,
}

/// How kernels get the costs of a [volume](super::volume): they read it in place of a table, without descriptors.
pub(in crate::stereo) const OF_VOLUME: CostKernel =
    CostKernel { text: "", words: 0, definitions: Vec::new(), table: Vec::new() };

impl CostKernel {
    /// The number of planes of words: those of a descriptor and, with masks, one that marks where a view has data.
    pub(in crate::stereo) fn planes(&self, masked: bool) -> usize {
        self.words + usize::from(masked)
    }

    /// For kernels: `WORDS`, `PLANES`, `MASKED` and, unless `VOLUME`, `descriptor_of` and `cost`.
    pub(in crate::stereo) fn for_kernels<T: GpuPixel>(
        &self,
        name: &'static str,
        masked: bool,
    ) -> KernelSource {
        let source = gpu::for_kernels::<T>(KernelSource::new(name))
            .define("WORDS", self.words)
            .define("PLANES", self.planes(masked))
            // Only `OF_VOLUME` has no descriptors.
            .define("VOLUME", u8::from(self.words == 0))
            .define("MASKED", u8::from(masked));
        let definitions = self.definitions.iter();
        definitions
            .fold(source, |source, (name, value)| source.define(name, value))
            .structure::<Plane>()
            .text(include_str!("view.h"))
            .text(self.text)
    }
}

/// A cost for the stages on a device.
#[derive(Clone, Debug)]
pub(in crate::stereo) struct GpuCost {
    pub(in crate::stereo) kernel: CostKernel,
    /// The kernel for the pair with its images exchanged; `None` if the cost is known for the left view only.
    pub(in crate::stereo) exchanged: Option<CostKernel>,
    pub(in crate::stereo) greatest: u16,
    /// Learns the table that the cost looks up from each pair; `None` if the table is known or there is none.
    pub(in crate::stereo) learner: Option<LearnTable>,
    /// The costs, if the caller has computed them.
    pub(in crate::stereo) volume: Option<GpuVolume>,
    /// Which part of the left and of the right picture it compares, if the device prepares them.
    pub(in crate::stereo) compares: [Compares; 2],
}

impl GpuCost {
    pub(in crate::stereo) fn of(source: &dyn CostSource) -> Self {
        let exchanged = source.exchanged().map(|source| source.kernel());
        Self::new(source.kernel(), exchanged, source.greatest())
    }

    /// A cost that compares grey, and neither learns nor reads a volume.
    pub(in crate::stereo) fn new(kernel: CostKernel, exchanged: Option<CostKernel>, greatest: u16) -> Self {
        Self { kernel, exchanged, greatest, learner: None, volume: None, compares: [Compares::Grey; 2] }
    }
}

tiepoint_gpu::kernel! {
    unsafe kernel describe(groups) = Describe<T: GpuPixel> {
        write words: u32 [i128::from(grey_plane.row) * i128::from(grey_plane.height) * planes * groups[2]],
        read grey (grey_plane: Plane): T [grey_plane.numbers(groups[2])],
        read compared (compared_plane: Plane): u8 [compared_plane.numbers(groups[2])],
        /// Rows of length 0 mean that the view has data everywhere.
        read mask (mask_plane: Plane): u8 [mask_plane.numbers(groups[2])],
    } {
        planes: i32,
        /// Differences of grey up to this may come from rounding alone.
        rounding: u32,
        across: i32,
    }
}

pub(in crate::stereo) fn source<T: GpuPixel>(cost: &CostKernel, masked: bool) -> KernelSource {
    pixel_a_lane(cost.for_kernels::<T>("descriptors", masked))
        .kernel::<Describe<'_, T>>(GROUP)
        .text(include_str!("describe.cl"))
}

/// Records the computation of a view's descriptors from this grey; returns them image by image, plane by plane.
pub(in crate::stereo) fn describe<T: GpuPixel>(
    commands: &mut Commands,
    (cost, masked): (&CostKernel, bool),
    view: &ViewStacks,
    grey: &GpuStack<T>,
) -> Result<Buffer<u32>> {
    let (gpu, size, images) = (grey.gpu(), grey.size(), grey.count());
    let (planes, compared) = (cost.planes(masked), view.compared());
    if planes == 0 {
        return Ok(gpu.buffer(1)?);
    }
    let words = gpu.buffer(size.area() * planes * images)?;
    let mask = &optional(gpu, view.mask.as_ref())?;
    let (across, groups) = covering(size, images);
    let arguments = Describe {
        words: &words,
        grey: grey.laid(),
        compared: compared.laid(),
        mask: mask.into(),
        planes: planes as i32,
        rounding: view.rounding.into(),
        across,
    };
    commands.stage("descriptors");
    launch(commands, &gpu.program(&source::<T>(cost, masked))?, groups, arguments)?;
    Ok(words)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::stereo::cost::tests::kernels;

    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        let mut sources = vec![];
        for kernel in kernels() {
            sources.extend([source::<u8>(&kernel, false), source::<u16>(&kernel, true)]);
            sources.extend([source::<f32>(&kernel, true)]);
        }
        sources.push(source::<u8>(&OF_VOLUME, true));
        sources
    }
}
