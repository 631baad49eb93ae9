//! Dense stereo by Semi-Global Matching: a disparity for every pixel of a rectified pair.
//!
//! **Convention.** The left image is the reference: `left(x, y)` shows what `right(x − d, y)` shows. Disparities are
//! in pixels; a pixel without one holds [`INVALID`].

mod aggregate;
pub mod check;
pub mod cloud;
pub mod cost;
pub mod depth;
pub mod files;
pub mod fill;
mod learn;
pub mod median;
mod options;
mod pair;
mod refine;
mod select;
pub mod speckle;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use options::{Cost, Learning, Paths, Penalties, RightView, StereoOptions, Subpixel};

pub use cost::{CensusWindow, MatchingCost};

use crate::{
    Error, Result,
    device::Cpu,
    image::{AnyImage, Image},
};
use aggregate::{Results, Workspace, aggregate};
use cost::Table;
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
        let pair = Pair::new(left, right, masks, options.cost, cpu)?;
        let table = match (own, options.cost) {
            (None, Cost::MutualInformation) => Some(learn::table(&pair, options, workspace, cpu)?),
            _ => None,
        };
        let problem = pair.problem(options, own, table.as_ref());
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
        let results = Results {
            disparity: Some(&mut out.disparity),
            right: out.right.as_mut(),
            confidence: out.confidence.as_mut(),
            sums: None,
        };
        aggregate(&problem, results, workspace, cpu)?;
        if options.right_view == RightView::Aggregated {
            out.right = Some(right_view(&pair, options, table.as_ref(), workspace, cpu)?);
        }
        refine::refine(&mut out, options, cpu)?;
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
    let results = Results { disparity: Some(&mut disparity), ..Results::default() };
    aggregate(&pair.problem(options, None, table.as_ref()), results, workspace, cpu)?;
    Ok(pair::mirrored(&disparity))
}
