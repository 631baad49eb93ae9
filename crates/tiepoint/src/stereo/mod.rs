//! Dense stereo by Semi-Global Matching: a disparity for every pixel of a rectified pair.
//!
//! **The method.** How unlike a left pixel and a right one of its row are is told by a [matching cost](cost): census,
//! absolute difference, mutual information, or the caller's own. One pixel alone says little, so costs are gathered
//! along straight paths from 4, 5, 8 or 16 sides, where a change of disparity costs P1 when it is by one and P2 when
//! it is larger, less at edges of the image (`aggregate`). Each pixel takes the disparity with the least sum, between
//! whole ones where two lines through the sums meet; the right view follows from the same sums along their diagonals
//! (`select`). Then (`refine`) both views pass a [`median`] of 3×3, what they do not agree on is dropped ([`check`]),
//! so are regions too small to be a surface ([`speckle`]), a last median follows and, if wanted, what is invalid is
//! filled ([`fill`]). Disparities become [`depth`] and [points](cloud), and go to [`files`].
//!
//! Sources: H. Hirschmüller, *Stereo Processing by Semiglobal Matching and Mutual Information*, PAMI 30, 2008;
//! R. Zabih, J. Woodfill, *Non-parametric local transforms for computing visual correspondence*, ECCV 1994.
//!
//! **Memory.** A forward and a backward sweep keep one sum for each pixel and disparity, a byte or two, and nothing
//! else of that size. Where [`StereoOptions::memory`] does not allow that, groups of rows are worked on one after the
//! other and paths are handed from group to group: the result has the same bits.
//!
//! **Numbers.** Costs, paths and sums are integers, so no order matters. Mutual information is learnt in f64 in a
//! stated order; a disparity between whole ones is one quotient and one sum in f32; what follows compares and
//! selects. The result is the same for every thread count, SIMD level and limit of memory.
//!
//! **Verified.** Costs and sums equal plain scalar references in every bit. Against ground truth: percent of the
//! non-occluded pixels (both truths agree within 1 px, where there are two) off by more than 1 px, invalid pixels first
//! filled with the smaller of their nearest valid neighbours in the row; 16, 32, 64, 80 and 128 disparities.
//!
//! | | tsukuba | sawtooth | cones | art | wood2 |
//! |---|---:|---:|---:|---:|---:|
//! | default options | 4.86 | 0.97 | 2.99 | 7.26 | 0.76 |
//! | OpenCV 5, the better mode | 5.67 | 3.21 | 5.34 | 9.87 | 1.49 |
//! | the same, `preFilterCap` 0 | 5.26 | 2.68 | 4.80 | 9.00 | 1.56 |
//!
//! OpenCV: `StereoSGBM` in `MODE_HH` and `MODE_SGBM_3WAY` on colour, block 3, P1 72, P2 288, uniqueness 0, speckles
//! 100/2, `preFilterCap` 63, images padded on the left.
//!
//! **Conventions of the output.** The left image is the reference: `left(x, y)` shows what `right(x − d, y)` shows.
//! Disparities are in pixels, of either sign; the first searched is [`StereoOptions::min_disparity`]. A pixel without
//! one holds [`INVALID`]: it has no data, is hidden from the right camera, or was not confirmed by its view. The right
//! view's disparities have the same sign: `right(x, y)` shows what `left(x + d, y)` shows.

mod aggregation;
pub mod cloud;
pub mod consistency_check;
pub mod cost;
pub mod depth;
pub mod files;
pub mod fill;
pub mod median;
mod options;
mod pair;
mod refinement;
pub mod speckle;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod winner_takes_all;

pub use options::{Cost, Learning, Paths, Penalties, RightView, StereoOptions, Subpixel};

pub use cost::{CensusWindow, MatchingCost};

use crate::{
    Error, Result,
    device::Cpu,
    image::{AnyImage, Image},
};
use aggregation::{AggregationOutput, Workspace, aggregate};
use cost::Table;
use cost::mutual_information::{Colour, learn};
use pair::Pair;

/// The disparity of a pixel that has none.
pub const INVALID: f32 = f32::INFINITY;

/// What dense stereo finds.
#[derive(Clone, Debug, PartialEq)]
pub struct StereoResult {
    /// Disparities of the left view in pixels, [`INVALID`] where there is none.
    pub disparity: Image<f32>,
    /// Disparities of the right view, if asked for: `right(x, y)` shows what `left(x + d, y)` shows.
    pub right: Option<Image<f32>>,
    /// How distinct the best sum is, from 0 (not at all) to 1, if asked for; 0 where there is no disparity.
    pub confidence: Option<Image<f32>>,
}

/// Dense stereo with its memory, kept between pairs of one size.
#[derive(Debug)]
pub struct Stereo {
    options: StereoOptions,
    workspace: Workspace,
}

/// Which pixels hold data: 0 where they do not. Pixels that are not finite never do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Masks<'a> {
    /// Of the left image.
    pub left: Option<&'a Image<u8>>,
    /// Of the right image.
    pub right: Option<&'a Image<u8>>,
}

impl Stereo {
    /// Checks the options. Memory is taken with the first pair.
    ///
    /// # Errors
    /// As [`StereoOptions::check`].
    pub fn new(options: StereoOptions) -> Result<Self> {
        options.check()?;
        Ok(Self { options, workspace: Workspace::default() })
    }

    /// The options.
    pub fn options(&self) -> &StereoOptions {
        &self.options
    }

    /// The disparities of a rectified pair.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when images or masks differ in size, [`Error::Image`] for an empty image or more than four
    /// channels, [`Error::Memory`] when the limit of memory is too small for the width and disparities.
    pub fn compute(
        &mut self,
        left: &AnyImage,
        right: &AnyImage,
        masks: Masks<'_>,
        cpu: &Cpu,
    ) -> Result<StereoResult> {
        self.run(left, right, masks, None, cpu)
    }

    /// As [`compute`](Self::compute) with a cost of the caller's own; the images serve the gradient that P2 follows.
    ///
    /// # Errors
    /// As [`compute`](Self::compute), and [`Error::Option`] when the cost's bound is above 4000 or the right view
    /// shall be aggregated.
    pub fn compute_with(
        &mut self,
        cost: &dyn MatchingCost,
        left: &AnyImage,
        right: &AnyImage,
        masks: Masks<'_>,
        cpu: &Cpu,
    ) -> Result<StereoResult> {
        if cost.greatest() > 4000 {
            return Err(Error::option("greatest cost", cost.greatest(), "0 to 4000"));
        }
        if self.options.right_view == RightView::Aggregated {
            let expected = "diagonal or off: a cost of one's own knows the left view only";
            return Err(Error::option("right_view", "aggregated", expected));
        }
        self.run(left, right, masks, Some(cost), cpu)
    }

    fn run(
        &mut self,
        left: &AnyImage,
        right: &AnyImage,
        masks: Masks<'_>,
        own: Option<&dyn MatchingCost>,
        cpu: &Cpu,
    ) -> Result<StereoResult> {
        let Self { options, workspace } = self;
        let mut pair = Pair::new(left, right, masks, options.cost, cpu)?;
        let learns = own.is_none() && options.cost == Cost::MutualInformation;
        let colour = if learns { Colour::of(left, right, cpu)? } else { None };
        // An aggregation is as many steps as there are pixels; what follows takes little beside it.
        let step = pair.size().area();
        let projecting = colour.as_ref().map_or(0, |_| learn::project_steps(options, step));
        let learning = if learns { learn::table_steps(options, step) } else { 0 };
        let aggregations = 1 + usize::from(options.right_view == RightView::Aggregated);
        let cpu = &cpu.begin_task("stereo", projecting + learning + aggregations * step);
        if let Some(colour) = colour {
            let cpu = cpu.part(projecting);
            cpu.run(|| learn::project(&mut pair, &colour, options, workspace, &cpu))?;
        }
        let table = learns.then(|| {
            let cpu = cpu.part(learning);
            cpu.run(|| learn::table(&pair, options, workspace, &cpu))
        });
        let table = table.transpose()?;
        let input = pair.input(options, own, table.as_ref());
        if input.greatest_sum() > u32::from(u16::MAX) {
            let expected = "so that paths times (greatest cost + p2) is at most 65535";
            return Err(Error::option("p2", options.penalties().p2, expected));
        }
        let image = || Image::new(pair.size());
        let diagonal = match options.right_view {
            RightView::Off => options.right,
            RightView::Diagonal => true,
            RightView::Aggregated => false,
        };
        let mut out = StereoResult {
            disparity: image(),
            right: diagonal.then(image),
            confidence: options.confidence.then(image),
        };
        let results = AggregationOutput {
            disparity: Some(&mut out.disparity),
            right: out.right.as_mut(),
            confidence: out.confidence.as_mut(),
            sums: None,
        };
        aggregate(&input, results, workspace, &cpu.part(step))?;
        if options.right_view == RightView::Aggregated {
            out.right = Some(right_view(&pair, options, table.as_ref(), workspace, &cpu.part(step))?);
        }
        refinement::refine(&mut out, options, cpu)?;
        out.right = out.right.filter(|_| options.right);
        Ok(out)
    }
}

/// The right view by an aggregation of its own.
fn right_view(
    pair: &Pair,
    options: &StereoOptions,
    table: Option<&Table>,
    workspace: &mut Workspace,
    cpu: &Cpu,
) -> Result<Image<f32>> {
    let (pair, table) = (pair.exchanged(), table.map(Table::exchanged));
    let mut disparity = Image::new(pair.size());
    let results = AggregationOutput { disparity: Some(&mut disparity), ..AggregationOutput::default() };
    aggregate(&pair.input(options, None, table.as_ref()), results, workspace, cpu)?;
    Ok(pair::mirrored(&disparity))
}
