//! Refinement on a device: the stages of mod.rs, one after the other.

use super::super::{
    INVALID, RightView, StereoOptions, View,
    consistency_check::gpu::GpuConsistencyCheck,
    cost::gpu::{GROUP, covering, pixel_a_lane},
    fill::gpu::GpuFill,
    median::gpu::GpuMedian,
    speckle::gpu::GpuSpeckle,
    winner_takes_all::gpu::GpuMaps,
};
use crate::{
    Result,
    device::gpu::{Commands, Gpu},
    image::gpu::{GpuStack, Plane},
};
use tiepoint_gpu::{Kernel, KernelSource};

tiepoint_gpu::kernel! {
    /// Confidence goes where disparities went.
    unsafe kernel drop_confidence(groups) = DropConfidence {
        write confidence: f32 [plane.numbers(groups[2])],
        read disparity: f32 [plane.numbers(groups[2])],
    } {
        plane: Plane,
        /// Groups beside each other.
        across: i32,
    }
}

fn source() -> KernelSource {
    pixel_a_lane(KernelSource::new("refinement"))
        .define_f32("INVALID", INVALID)
        .structure::<Plane>()
        .kernel::<DropConfidence<'_>>(GROUP)
        .text(include_str!("refinement.cl"))
}

/// [`refine`](super::refine) on a device; the same bits.
#[derive(Clone, Debug)]
pub(in crate::stereo) struct GpuRefinement {
    options: StereoOptions,
    /// Of both views before the check, and of the result.
    medians: Option<[GpuMedian; 2]>,
    check: GpuConsistencyCheck,
    speckle: GpuSpeckle,
    fill: Option<GpuFill>,
    drop_confidence: Kernel<DropConfidence<'static>>,
}

impl GpuRefinement {
    pub(in crate::stereo) fn new(gpu: &Gpu, options: &StereoOptions) -> Result<Self> {
        let medians =
            || Ok::<_, crate::Error>([GpuMedian::new(gpu, 3)?, GpuMedian::new(gpu, options.median)?]);
        Ok(Self {
            options: *options,
            medians: (options.median > 0).then(medians).transpose()?,
            check: GpuConsistencyCheck::new(gpu)?,
            speckle: GpuSpeckle::new(gpu)?,
            fill: options.fill.then(|| GpuFill::new(gpu)).transpose()?,
            drop_confidence: gpu.program(&source())?.kernel::<DropConfidence<'_>>()?,
        })
    }

    /// Puts the refinement of the left view, and of the right one if it is there, into a list.
    pub(in crate::stereo) fn record(&self, commands: &mut Commands, maps: GpuMaps) -> Result<GpuMaps> {
        let GpuMaps { disparity: mut left, mut right, confidence } = maps;
        let options = &self.options;
        if let Some([median, _]) = &self.medians {
            left = median.record(commands, &left)?;
            right = right.map(|right| median.record(commands, &right)).transpose()?;
        }
        let mut occluded = None;
        if let Some(seen) = &right {
            occluded = options.fill.then(|| self.check.record_occluded(commands, seen)).transpose()?;
            if options.right_view != RightView::Off {
                let limit = options.max_difference;
                let checked = self.check.record(commands, &left, seen, View::Left, limit)?;
                if options.right {
                    right = Some(self.check.record(commands, seen, &left, View::Right, limit)?);
                }
                left = checked;
            }
        }
        left = self.finish(commands, left)?;
        right = right.filter(|_| options.right).map(|right| self.finish(commands, right)).transpose()?;
        if let Some(fill) = &self.fill {
            left = fill.record(commands, &left, occluded.as_ref())?;
            right = right.map(|right| fill.record(commands, &right, None)).transpose()?;
        }
        if let Some(confidence) = &confidence {
            let (across, groups) = covering(left.size(), left.count());
            let (plane, disparity) = (left.plane(), left.buffer());
            let arguments = DropConfidence { confidence: confidence.buffer(), disparity, plane, across };
            commands.launch(&self.drop_confidence, groups, arguments)?;
        }
        Ok(GpuMaps { disparity: left, right, confidence })
    }

    /// Without small regions, and smooth.
    fn finish(&self, commands: &mut Commands, map: GpuStack<f32>) -> Result<GpuStack<f32>> {
        self.speckle.record(commands, &map, &self.options.speckle())?;
        match &self.medians {
            Some([_, median]) => median.record(commands, &map),
            None => Ok(map),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::gpu::compiles_everywhere;

    #[test]
    fn kernels_compile_for_every_card() {
        compiles_everywhere(&[source()]);
    }
}
