//! Refinement on a device: the stages of mod.rs, one after the other.

use super::super::consistency_check;
use super::super::consistency_check::gpu::Marks;
use super::super::gpu::lanes::{GROUP, covering, for_maps, launch, optional};
use super::super::pair::gpu::ViewStacks;
use super::super::{GpuMaps, Reason, RightView, StereoOptions, View, edges, fill, median, speckle};
use crate::Result;
use crate::device::gpu::Commands;
use crate::image::gpu::{GpuStack, Plane};
use tiepoint_gpu::KernelSource;

tiepoint_gpu::kernel! {
    unsafe kernel drop_confidence(groups) = DropConfidence {
        write confidence (plane: Plane): f32 [plane.numbers(groups[2])],
        read disparity: f32 [plane.numbers(groups[2])],
    } {
        across: i32,
    }

    unsafe kernel note(groups) = Note {
        write reasons (reasons_plane: Plane): u8 [reasons_plane.numbers(groups[2])],
        read disparity (plane: Plane): f32 [plane.numbers(groups[2])],
        /// Rows of length 0 mean that all flags are set.
        read flags (flags_plane: Plane): u8 [flags_plane.numbers(groups[2])],
    } {
        where_set: u32,
        elsewhere: u32,
        across: i32,
    }
}

pub(crate) fn source() -> KernelSource {
    for_maps("refinement")
        .kernel::<Note<'_>>(GROUP)
        .kernel::<DropConfidence<'_>>(GROUP)
        .text(include_str!("refinement.cl"))
}

pub(in crate::stereo) fn sources(options: &StereoOptions) -> Vec<KernelSource> {
    let mut sources = vec![source(), consistency_check::gpu::source(), speckle::gpu::source()];
    sources.extend(options.fill.then(fill::gpu::source));
    sources.extend((options.votes_below() > 0).then(edges::gpu::source));
    if options.median > 0 {
        let sides: &[usize] = if options.median == 3 { &[3] } else { &[3, options.median] };
        sources.extend(sides.iter().map(|&side| median::gpu::source(side)));
    }
    sources
}

/// Records [`refine`](super::refine) of the left view, and of the right one if there is one; the same bits.
pub(in crate::stereo) fn refine(
    commands: &mut Commands,
    options: &StereoOptions,
    maps: GpuMaps,
    [left_view, right_view]: &[ViewStacks; 2],
) -> Result<GpuMaps> {
    let GpuMaps { disparity: mut left, mut right, confidence, mut reasons } = maps;
    let gpu = &left.gpu().clone();
    if options.reasons {
        let found = GpuStack::new(gpu, left.size(), 1, left.count())?;
        commands.zero(found.buffer())?;
        let mask = &optional(gpu, left_view.mask.as_ref())?;
        note(commands, &found, &left, mask, [Reason::Ambiguous, Reason::NoData])?;
        reasons = Some(found);
    }
    if options.median > 0 {
        left = median::gpu::median(commands, &left, 3)?;
        right = right.map(|right| median::gpu::median(commands, &right, 3)).transpose()?;
    }
    let mut occluded = None;
    if let Some(seen) = &right {
        let wanted = options.fill || options.reasons;
        occluded = wanted.then(|| consistency_check::gpu::occluded(commands, seen)).transpose()?;
        if options.right_view != RightView::Off {
            let limit = options.max_difference;
            let checked = consistency_check::gpu::check(commands, &left, seen, View::Left, limit)?;
            if options.right {
                right = Some(consistency_check::gpu::check(commands, seen, &left, View::Right, limit)?);
            }
            left = checked;
        }
    }
    if let Some((reasons, occluded)) = reasons.as_ref().zip(occluded.as_ref()) {
        note(commands, reasons, &left, occluded, [Reason::Occluded, Reason::Inconsistent])?;
    }
    left = finish(commands, options, left, left_view)?;
    if let Some(reasons) = &reasons {
        note(commands, reasons, &left, &optional(gpu, None)?, [Reason::Speckle; 2])?;
    }
    let finish_right = |right| finish(commands, options, right, right_view);
    right = right.filter(|_| options.right).map(finish_right).transpose()?;
    if let Some(confidence) = &confidence {
        let (across, groups) = covering(left.size(), left.count());
        let arguments = DropConfidence { confidence: confidence.laid(), disparity: left.buffer(), across };
        launch(commands, &gpu.program(&source())?, groups, arguments)?;
    }
    if options.fill {
        let [of_left, of_right] = [left_view, right_view].map(|view| view.mask.as_ref());
        left = fill::gpu::fill(commands, &left, occluded.as_ref(), of_left)?;
        right = right.map(|right| fill::gpu::fill(commands, &right, None, of_right)).transpose()?;
    }
    Ok(GpuMaps { disparity: left, right, confidence, reasons })
}

/// Records [`reason::note`](super::reason::note): one reason where a mark is set, the other where it is not.
fn note(
    commands: &mut Commands,
    reasons: &GpuStack<u8>,
    map: &GpuStack<f32>,
    flags: &Marks,
    [where_set, elsewhere]: [Reason; 2],
) -> Result<()> {
    let (across, groups) = covering(map.size(), map.count());
    let note = Note {
        reasons: reasons.laid(),
        disparity: map.laid(),
        flags: flags.into(),
        where_set: where_set as u32,
        elsewhere: elsewhere as u32,
        across,
    };
    launch(commands, &map.gpu().program(&source())?, groups, note)
}

/// Removes small regions, applies the last median and moves edges to those of the picture.
fn finish(
    commands: &mut Commands,
    options: &StereoOptions,
    mut map: GpuStack<f32>,
    view: &ViewStacks,
) -> Result<GpuStack<f32>> {
    speckle::gpu::speckle(commands, &map, &options.speckle())?;
    if options.median > 0 {
        map = median::gpu::median(commands, &map, options.median)?;
    }
    match options.votes_below() {
        0 => Ok(map),
        limit => edges::gpu::vote(commands, &map, view.colours(), limit),
    }
}
