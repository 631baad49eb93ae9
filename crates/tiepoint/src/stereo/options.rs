//! The options of dense stereo and their defaults.

use super::{Cost, speckle::SpeckleOptions};
use crate::{
    Error, Result,
    options::{named, setters},
};

/// How many directions the costs are gathered along.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paths {
    /// Left, right, up, down.
    Four,
    /// From the left, upper left, above, upper right and the right: one sweep over the image.
    Five,
    /// The four and the diagonals.
    #[default]
    Eight,
    /// The eight and the knight's moves between them.
    Sixteen,
}

named!(Paths as "paths" {
    "4": Paths::Four, "Left, right, up, down";
    "5": Paths::Five, "From the left, upper left, above, upper right and the right";
    "8": Paths::Eight, "The four and the diagonals";
    "16": Paths::Sixteen, "The eight and the knight's moves";
});

impl Paths {
    /// Their number.
    pub const fn count(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Five => 5,
            Self::Eight => 8,
            Self::Sixteen => 16,
        }
    }
}

/// What a change of disparity from a pixel to the next costs along a path.
///
/// P2 may fall where the image has an edge: with Δ the difference of the 8-bit grey values of the two pixels, it
/// is `max(p2_least, p2 · gradient / max(gradient, Δ))`, rounded down (Hirschmüller 2008, eq. 13, the quotient
/// held at 1 for small differences).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Penalties {
    /// For a change by one. In units of the cost; not above `p2_least`.
    pub p1: u16,
    /// For a larger change, where the image is smooth.
    pub p2: u16,
    /// What P2 never falls below. Equal to `p2`: it does not fall.
    pub p2_least: u16,
    /// The difference of grey from which P2 begins to fall, 1 to 255.
    pub gradient: u8,
}

/// How the least cost is placed between whole disparities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subpixel {
    /// At the whole disparity.
    Off,
    /// At the lowest point of the parabola through three sums.
    Parabola,
    /// Where two lines of equal and opposite slope meet (Shimizu and Okutomi 2001): fits costs that grow linearly,
    /// and prefers whole disparities less.
    #[default]
    Equiangular,
}

named!(Subpixel as "subpixel" {
    "off": Subpixel::Off, "Whole disparities";
    "parabola": Subpixel::Parabola, "The lowest point of a parabola";
    "equiangular": Subpixel::Equiangular, "Where two lines of equal and opposite slope meet";
});

/// Where the disparities of the right view, which the left ones are checked against, come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RightView {
    /// None: no check.
    Off,
    /// The sums of the left view read along their diagonals; costs next to nothing.
    #[default]
    Diagonal,
    /// A second aggregation with the right image as the reference; costs as much as the first.
    Aggregated,
}

named!(RightView as "right_view" {
    "off": RightView::Off, "Nothing";
    "diagonal": RightView::Diagonal, "The right view that follows from the left one's sums";
    "aggregated": RightView::Aggregated, "A right view aggregated for itself, in twice the time";
});

/// How mutual information is learnt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Learning {
    /// On images halved up to four times, from the coarsest to the finest, once at each level but three times at the
    /// coarsest (Hirschmüller 2008, section 2.1). The finest is half the size; where a smaller one has 120 000 pixels,
    /// that one, and four directions are enough. Costs about a third of a run, of large pictures a twentieth.
    #[default]
    CoarseToFine,
    /// At full size, this many times from a disparity of zero. The CUDA program of 2010 did so three times.
    Iterations(u8),
}

/// Options of dense stereo.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct StereoOptions {
    /// The least disparity searched, in pixels; −32768 to 32767. Default 0.
    pub min_disparity: i32,
    /// How many whole disparities are searched, 1 to 4096. Default 128.
    pub disparities: usize,
    /// The matching cost. Default: census 5×5 joined with colour.
    pub cost: Cost,
    /// How mutual information is learnt; other costs ignore it. Default from coarse to fine.
    pub learning: Learning,
    /// The directions of aggregation. Default eight.
    pub paths: Paths,
    /// P1 and P2. Default: what suits the cost, [`Cost::penalties`].
    pub penalties: Option<Penalties>,
    /// By how many percent the sum of any disparity that is not next to the best must exceed the best sum, 0 to
    /// 100; where it does not the pixel is invalid. Default 0.
    pub uniqueness: u8,
    /// Default equiangular.
    pub subpixel: Subpixel,
    /// The right view of the left-right check. Default: diagonals of the same sums.
    pub right_view: RightView,
    /// By how many pixels the two views may differ. Default 1.
    pub max_difference: f32,
    /// Regions of fewer pixels than this are removed; 0: none. Default 50.
    pub speckle_size: usize,
    /// Neighbours belong to one region when their disparities differ by no more, in pixels. Default 2.
    pub speckle_difference: f32,
    /// Side of the last median filter: 0, 3 or 5. Unless it is 0 both views also pass one of 3×3 before the check.
    /// Default 5.
    pub median: usize,
    /// Fill invalid pixels, occlusions from the background and mismatches from all around (Hirschmüller 2008,
    /// section 2.5.3). Default off: what was not measured stays invalid.
    pub fill: bool,
    /// Bytes that may be used besides the images and results, at least half of it for sums and paths. An image that
    /// needs more is computed in groups of rows, with the same result, in up to 1.7 times the time. `None`: no limit.
    /// Default 1 GiB. The first call keeps to 128 MiB of sums and paths where it can, which takes less time than to
    /// have more memory cleared; later calls use what they may.
    pub memory: Option<u64>,
    /// Bytes of a GPU's memory that may be used, about; a pair that needs more is computed there in bands of rows, with
    /// the same result. `None`: what is free. Default `None`.
    pub device_memory: Option<u64>,
    /// Also give the disparities of the right view. Default off.
    pub right: bool,
    /// Also give a confidence from 0 to 1. Default off.
    pub confidence: bool,
    /// Also give the reason why each pixel was made invalid. Default no.
    pub reasons: bool,
}

impl Default for StereoOptions {
    fn default() -> Self {
        Self {
            min_disparity: 0,
            disparities: 128,
            cost: Cost::default(),
            learning: Learning::default(),
            paths: Paths::default(),
            penalties: None,
            uniqueness: 0,
            subpixel: Subpixel::default(),
            right_view: RightView::default(),
            max_difference: 1.0,
            speckle_size: 50,
            speckle_difference: 2.0,
            median: 5,
            fill: false,
            memory: Some(1 << 30),
            device_memory: None,
            right: false,
            confidence: false,
            reasons: false,
        }
    }
}

impl Penalties {
    /// P2 for every difference of 8-bit grey.
    pub fn table(&self) -> [u16; 256] {
        let (p2, gradient) = (u32::from(self.p2), u32::from(self.gradient.max(1)));
        std::array::from_fn(|delta| {
            let falling = p2 * gradient / gradient.max(delta as u32);
            falling.max(u32::from(self.p2_least)) as u16
        })
    }

    /// These penalties with those given in their place; the others follow where the given ones would not let them
    /// stand.
    #[must_use]
    pub fn replaced(
        self,
        p1: Option<u16>,
        p2: Option<u16>,
        p2_least: Option<u16>,
        gradient: Option<u8>,
    ) -> Self {
        let p1 = p1.unwrap_or(self.p1);
        let p2 = p2.unwrap_or_else(|| self.p2.max(p1));
        let p2_least = p2_least.unwrap_or_else(|| self.p2_least.max(p1).min(p2));
        Self { p1, p2, p2_least, gradient: gradient.unwrap_or(self.gradient) }
    }

    /// Fails when a penalty is out of its range.
    pub(super) fn check(&self) -> Result<()> {
        let Self { p1, p2, p2_least, gradient } = *self;
        if !(p1 <= p2_least && p2_least <= p2) {
            let found = format!("{p1}, {p2_least}, {p2}");
            return Err(Error::option("p1, p2_least, p2", found, "each not above the next"));
        }
        if gradient == 0 {
            return Err(Error::option("gradient", gradient, "1 to 255 grey values"));
        }
        if p2 > 4000 {
            return Err(Error::option("p2", p2, "0 to 4000, so that the sums of 16 paths fit 16 bits"));
        }
        Ok(())
    }
}

setters!(StereoOptions {
    with_min_disparity: min_disparity = i32,
    with_disparities: disparities = usize,
    with_cost: cost = Cost,
    with_learning: learning = Learning,
    with_paths: paths = Paths,
    with_penalties: penalties = Option<Penalties>,
    with_uniqueness: uniqueness = u8,
    with_subpixel: subpixel = Subpixel,
    with_right_view: right_view = RightView,
    with_max_difference: max_difference = f32,
    with_speckle_size: speckle_size = usize,
    with_speckle_difference: speckle_difference = f32,
    with_median: median = usize,
    with_fill: fill = bool,
    with_memory: memory = Option<u64>,
    with_device_memory: device_memory = Option<u64>,
    with_right: right = bool,
    with_confidence: confidence = bool,
    with_reasons: reasons = bool,
});

impl StereoOptions {
    /// The penalties in force.
    pub fn penalties(&self) -> Penalties {
        self.penalties.unwrap_or_else(|| self.cost.penalties())
    }

    /// The options of the removal of small regions.
    pub(super) fn speckle(&self) -> SpeckleOptions {
        SpeckleOptions { size: self.speckle_size, difference: self.speckle_difference }
    }

    /// Fails when an option is out of its range.
    ///
    /// # Errors
    /// [`Error::Option`] naming the option.
    pub fn check(&self) -> Result<()> {
        if !(-32768..=32767).contains(&self.min_disparity) {
            return Err(Error::option("min_disparity", self.min_disparity, "-32768 to 32767"));
        }
        if !(1..=4096).contains(&self.disparities) {
            return Err(Error::option("disparities", self.disparities, "1 to 4096"));
        }
        self.penalties().check()?;
        if self.uniqueness > 100 {
            return Err(Error::option("uniqueness", self.uniqueness, "0 to 100 percent"));
        }
        if !(self.max_difference >= 0.0 && self.max_difference.is_finite()) {
            return Err(Error::option("max_difference", self.max_difference, "pixels, 0 or more"));
        }
        self.speckle().check()?;
        if !matches!(self.median, 0 | 3 | 5) {
            return Err(Error::option("median", self.median, "0 (none), 3 or 5"));
        }
        Ok(())
    }
}
