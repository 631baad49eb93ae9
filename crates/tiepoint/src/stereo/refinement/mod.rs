//! Refinement of the chosen disparities.
//!
//! Both views are filtered by a median of 3×3, so that single errors do not spoil the check. Pixels that the other view
//! does not confirm are dropped, then small regions that differ from their surroundings. A last median and a vote about
//! edges follow. If asked for, invalid pixels that hold data are filled.

pub(crate) mod gpu;

use super::pair::Pair;
use super::{
    Masks, Reason, RightView, StereoOptions, StereoResult, View, consistency_check, edges, median, reason,
    speckle,
};
use crate::Result;
use crate::device::Cpu;
use crate::image::{Image, ImageView, ImageViewMut};

/// Writes a map to memory of its size.
type Filter<'a> = &'a dyn Fn(ImageView<'_, f32>, ImageViewMut<'_, f32>) -> Result<()>;

/// Refines the left view of `found`, and the right one if it is there, of this pair, and drops the right one if it was not
/// asked for.
pub(super) fn refine(
    found: &mut StereoResult,
    options: &StereoOptions,
    pair: &Pair,
    cpu: &Cpu,
) -> Result<()> {
    let StereoResult { disparity, right, confidence, reasons } = found;
    let mut spare = Image::new(disparity.size());
    let mut filter = |map: &mut Image<f32>, filter: Filter<'_>| -> Result<()> {
        filter(map.view(), spare.view_mut())?;
        std::mem::swap(map, &mut spare);
        Ok(())
    };
    let smooth = |side| {
        move |from: ImageView<'_, f32>, to: ImageViewMut<'_, f32>| median::median_into(from, side, cpu, to)
    };
    if options.median > 0 {
        filter(disparity, &smooth(3))?;
        right.as_mut().map_or(Ok(()), |right| filter(right, &smooth(3)))?;
    }
    let mut occluded = None;
    if let Some(right) = right.as_mut() {
        let wanted = options.fill || reasons.is_some();
        occluded = wanted.then(|| consistency_check::occluded(right.view(), cpu)).transpose()?;
        if options.right_view != RightView::Off {
            let limit = options.max_difference;
            // If the right view is a result, it is checked against the left view before that was checked.
            let unchecked = options.right.then(|| disparity.clone());
            consistency_check::check(disparity.view_mut(), right.view(), View::Left, limit, cpu)?;
            if let Some(left) = unchecked {
                consistency_check::check(right.view_mut(), left.view(), View::Right, limit, cpu)?;
            }
        }
    }
    if let Some((reasons, occluded)) = reasons.as_mut().zip(occluded.as_ref()) {
        reason::note(reasons, disparity.view(), |x, y| match occluded.row(y)[x] {
            true => Reason::Occluded,
            false => Reason::Inconsistent,
        });
    }
    let right_map = right.as_mut().filter(|_| options.right).map(|map| (View::Right, map));
    for (view, map) in [(View::Left, &mut *disparity)].into_iter().chain(right_map) {
        speckle::speckle(map.view_mut(), &options.speckle(), cpu)?;
        if options.median > 0 {
            filter(map, &smooth(options.median))?;
        }
        if options.votes_below() > 0 {
            let colours = pair.colours(view);
            filter(map, &|from, to| edges::vote_into(from, colours, options.votes_below(), cpu, to))?;
        }
    }
    if let Some(reasons) = reasons {
        reason::note(reasons, disparity.view(), |_, _| Reason::Speckle);
    }
    if let Some(confidence) = confidence {
        let pixels = confidence.data_mut().iter_mut().zip(disparity.data());
        pixels.filter(|(_, d)| !d.is_finite()).for_each(|(c, _)| *c = 0.0);
    }
    found.right = found.right.take().filter(|_| options.right);
    if options.fill {
        let [left, right] = [View::Left, View::Right].map(|view| pair.mask(view).map(Image::view));
        found.fill_by(occluded.as_ref(), Masks { left, right }, cpu)?;
    }
    Ok(())
}
