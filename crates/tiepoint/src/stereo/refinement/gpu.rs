//! Refinement on a device: the stages of mod.rs, one after the other.

use super::super::{
    INVALID, Reason, RightView, StereoOptions, View,
    consistency_check::{self, gpu::GpuConsistencyCheck},
    fill::{self, gpu::GpuFill},
    gpu::lanes::{GROUP, covering, pixel_a_lane},
    median::{self, gpu::GpuMedian},
    speckle::{self, gpu::GpuSpeckle},
    winner_takes_all::gpu::GpuMaps,
};
use crate::{
    Result,
    device::gpu::{Buffer, Commands, Gpu},
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

tiepoint_gpu::kernel! {
    /// Reasons of pixels that have become invalid.
    unsafe kernel note(groups) = Note {
        write reasons: u8 [reasons_plane.numbers(groups[2])],
        read disparity: f32 [plane.numbers(groups[2])],
        read flags: u8 [flags_plane.numbers(groups[2])],
    } {
        plane: Plane,
        reasons_plane: Plane,
        /// A row of 0 numbers: they are set everywhere.
        flags_plane: Plane,
        where_set: u32,
        elsewhere: u32,
        /// Groups beside each other.
        across: i32,
    }
}

fn source() -> KernelSource {
    pixel_a_lane(KernelSource::new("refinement"))
        .define_f32("INVALID", INVALID)
        .structure::<Plane>()
        .kernel::<Note<'_>>(GROUP)
        .kernel::<DropConfidence<'_>>(GROUP)
        .text(include_str!("refinement.cl"))
}

/// The programs of [`GpuRefinement::new`].
pub(in crate::stereo) fn sources(options: &StereoOptions) -> Vec<KernelSource> {
    let mut sources = vec![source(), consistency_check::gpu::source(), speckle::gpu::source()];
    sources.extend(options.fill.then(fill::gpu::source));
    if options.median > 0 {
        let sides: &[usize] = if options.median == 3 { &[3] } else { &[3, options.median] };
        sources.extend(sides.iter().map(|&side| median::gpu::source(side)));
    }
    sources
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
    note: Kernel<Note<'static>>,
    /// In place of flags that are set everywhere.
    nothing: Buffer<u8>,
}

/// Flags for pixels, with where they lie.
type Flags<'a> = (&'a Buffer<u8>, Plane);

impl GpuRefinement {
    pub(in crate::stereo) fn new(gpu: &Gpu, options: &StereoOptions) -> Result<Self> {
        let medians =
            || Ok::<_, crate::Error>([GpuMedian::new(gpu, 3)?, GpuMedian::new(gpu, options.median)?]);
        let program = gpu.program(&source())?;
        Ok(Self {
            options: *options,
            medians: (options.median > 0).then(medians).transpose()?,
            check: GpuConsistencyCheck::new(gpu)?,
            speckle: GpuSpeckle::new(gpu)?,
            fill: options.fill.then(|| GpuFill::new(gpu)).transpose()?,
            drop_confidence: program.kernel::<DropConfidence<'_>>()?,
            note: program.kernel::<Note<'_>>()?,
            nothing: gpu.buffer(1)?,
        })
    }

    /// Puts the refinement of the left view, and of the right one if it is there, into a list. `mask` says where the
    /// left view holds something.
    pub(in crate::stereo) fn record(
        &self,
        commands: &mut Commands,
        maps: GpuMaps,
        mask: Option<&GpuStack<u8>>,
    ) -> Result<GpuMaps> {
        let GpuMaps { disparity: mut left, mut right, confidence, mut reasons } = maps;
        let options = &self.options;
        if options.reasons {
            let found = GpuStack::new(left.gpu(), left.size(), 1, left.count())?;
            commands.zero(found.buffer())?;
            let flags = mask.map(|mask| (mask.buffer(), mask.plane()));
            self.note(commands, &found, &left, flags, [Reason::Ambiguous, Reason::NoData])?;
            reasons = Some(found);
        }
        if let Some([median, _]) = &self.medians {
            left = median.record(commands, &left)?;
            right = right.map(|right| median.record(commands, &right)).transpose()?;
        }
        let mut occluded = None;
        if let Some(seen) = &right {
            let wanted = options.fill || options.reasons;
            occluded = wanted.then(|| self.check.record_occluded(commands, seen)).transpose()?;
            if options.right_view != RightView::Off {
                let limit = options.max_difference;
                let checked = self.check.record(commands, &left, seen, View::Left, limit)?;
                if options.right {
                    right = Some(self.check.record(commands, seen, &left, View::Right, limit)?);
                }
                left = checked;
            }
        }
        if let Some((reasons, occluded)) = reasons.as_ref().zip(occluded.as_ref()) {
            let flags = Some((&occluded.hidden, left.plane()));
            self.note(commands, reasons, &left, flags, [Reason::Occluded, Reason::Inconsistent])?;
        }
        left = self.finish(commands, left)?;
        if let Some(reasons) = &reasons {
            self.note(commands, reasons, &left, None, [Reason::Speckle; 2])?;
        }
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
        Ok(GpuMaps { disparity: left, right, confidence, reasons })
    }

    /// Notes one reason where a flag is set and the other where it is not, as [`reason::note`](super::reason::note).
    fn note(
        &self,
        commands: &mut Commands,
        reasons: &GpuStack<u8>,
        map: &GpuStack<f32>,
        flags: Option<Flags<'_>>,
        [where_set, elsewhere]: [Reason; 2],
    ) -> Result<()> {
        let (flags, flags_plane) = flags.unwrap_or((&self.nothing, Plane::NONE));
        let (across, groups) = covering(map.size(), map.count());
        let note = Note {
            reasons: reasons.buffer(),
            disparity: map.buffer(),
            flags,
            plane: map.plane(),
            reasons_plane: reasons.plane(),
            flags_plane,
            where_set: where_set as u32,
            elsewhere: elsewhere as u32,
            across,
        };
        Ok(commands.launch(&self.note, groups, note)?)
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
pub(crate) mod tests {
    use super::*;

    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        vec![source()]
    }
}
