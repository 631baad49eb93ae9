//! The options of dense stereo and their defaults.

use super::speckle::SpeckleOptions;
use super::{CensusWindow, Cost};
use crate::options::{named, options};
use crate::{Error, Result};

named! {
    /// The directions along which costs are aggregated.
    pub enum Paths as "paths" {
        "4": Four, "Left, right, up, down";
        /// One sweep over the image.
        "5": Five, "From the left, upper left, above, upper right and the right";
        #[default]
        "8": Eight, "The four and the diagonals";
        "16": Sixteen, "The eight and the knight's moves";
    }
}

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

named! {
    /// How a sub-pixel disparity is found from the sums at the best disparity and beside it.
    pub enum Subpixel as "subpixel" {
        "off": Off, "Whole disparities";
        "parabola": Parabola, "The lowest point of a parabola";
        /// Suits costs that grow linearly, and is less biased towards whole disparities (Shimizu and Okutomi 2001).
        #[default]
        "equiangular": Equiangular, "Where two lines of equal and opposite slope meet";
    }
}

named! {
    /// What the disparities of the left view are checked against.
    pub enum RightView as "right_view" {
        "off": Off, "Nothing";
        /// The sums are read along their diagonals, in next to no time.
        #[default]
        "diagonal": Diagonal, "The right view that follows from the left one's sums";
        "aggregated": Aggregated, "A right view aggregated for itself, in twice the time";
    }
}

/// The penalties for a change of disparity from one pixel of a path to the next.
///
/// P2 may fall at edges of the image: with Δ the absolute difference of the 8-bit grey values of the two pixels, it
/// is `max(p2_least, p2 · gradient / max(gradient, Δ))`, rounded down (Hirschmüller 2008, eq. 13, the quotient
/// limited to 1 for small differences).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Penalties {
    /// For a change by one. In units of the cost; not above `p2_least`.
    pub p1: u16,
    /// For a larger change, where the image is smooth.
    pub p2: u16,
    /// The least value of P2. If equal to `p2`, P2 does not fall.
    pub p2_least: u16,
    /// The difference of 8-bit grey above which P2 falls, 1 to 255.
    pub gradient: u8,
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

    pub(super) fn check(&self) -> Result<()> {
        let Self { p1, p2, p2_least, .. } = *self;
        if !(p1 <= p2_least && p2_least <= p2) {
            let found = format!("{p1}, {p2_least}, {p2}");
            return Err(Error::option("p1, p2_least, p2", found, "each not above the next"));
        }
        Ok(())
    }
}

options! {
    /// Semi-Global Matching of rectified pairs (Hirschmüller, PAMI 2008).
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct StereoOptions {
        /// The number of whole disparities that are searched.
        disparities / with_disparities: usize = 128 => 1..=4096, unit "N";
        /// The least disparity searched: left (x, y) shows what right (x - d, y) shows.
        min_disparity / with_min_disparity: i32 = 0 => -32768..=32767, unit "D";
        /// The cost by which pixels are compared.
        cost / with_cost: Cost = Cost::AdCensus;
        /// Cost census: the window of pixels that are compared with its centre; by default 5x5.
        census_window / with_census_window: Option<CensusWindow> = None, unit "WINDOW";
        /// Cost mi: learn mutual information only at full size, this many times, first from disparity 0; by default
        /// from coarse to fine.
        ///
        /// From coarse to fine: on images halved up to four times, from the coarsest to the finest, once at each level
        /// but three times at the coarsest (Hirschmüller 2008, section 2.1). The finest level is half the size, or the
        /// smallest with 120 000 pixels, for which four directions suffice. Learning takes about a third of a run, for
        /// large pictures a twentieth. The CUDA program of 2010 learnt three times at full size.
        iterations / with_iterations: Option<u8> = None => 1..=100, unit "N";
        /// The number of directions along which costs are aggregated.
        paths / with_paths: Paths = Paths::Eight;
        /// Penalty of a change of disparity by one along a path, in units of the cost; by default 14 for ad-census, 10
        /// for census 5x5 and ad, 12 for mi. The defaults of P2 and least P2 are adjusted if they would contradict it.
        ///
        /// See [`Penalties`] for this and the next three.
        p1 / with_p1: Option<u16> = None => 0..=4000, unit "P";
        /// Penalty of a larger change, where the image is smooth; by default 39, and more with larger census
        /// windows; not below P1.
        p2 / with_p2: Option<u16> = None => 0..=4000, unit "P";
        /// P2 falls at edges of the image, but not below this; if equal to P2, it does not fall; by default 18 for
        /// ad-census, 14 for census 5x5, ad and mi. Between P1 and P2.
        p2_least / with_p2_least: Option<u16> = None => 0..=4000, unit "P";
        /// Difference of 8-bit grey, from pixel to pixel, beyond which P2 falls; by default 4.
        gradient / with_gradient: Option<u8> = None => 1..=255, unit "G";
        /// By how many percent the best sum must be below all others except its neighbours'; otherwise the pixel is
        /// invalid.
        uniqueness / with_uniqueness: u8 = 0 => 0..=100, unit "PERCENT";
        /// How fractions of disparities are found.
        subpixel / with_subpixel: Subpixel = Subpixel::Equiangular;
        /// The right view against which the left one is checked.
        right_view / with_right_view: RightView = RightView::Diagonal;
        /// The most pixels by which the two views' disparities may differ.
        max_difference / with_max_difference: f32 = 1.0 => 0.0.., unit "PX";
        /// Remove regions of fewer pixels; 0 removes none.
        speckle_size / with_speckle_size: usize = 50, unit "N";
        /// The most by which neighbours in one region may differ.
        speckle_difference / with_speckle_difference: f32 = 2.0 => 0.0.., unit "PX";
        /// Side of the last median filter; 0: no median filter at all, and edges are not moved.
        ///
        /// Unless it is 0, both views are also filtered by a 3×3 median before the left-right check.
        median / with_median: usize = 5 => [0, 3, 5], unit "N";
        /// Move disparity edges to colour edges: near a jump of disparities each pixel takes the side that neighbours
        /// of similar colour vote for. Neighbours whose red, green and blue differ by this much or more in total do not
        /// vote; 0 leaves edges where they are.
        ///
        /// Paths carry disparities some pixels beyond an edge. In grey pictures the difference counts three times. If
        /// `median` is 0, edges are not moved.
        edges / with_edges: u16 = 90 => 0..=765, unit "D";
        /// Fill invalid pixels that hold data: occlusions from the background, mismatches from all around (Hirschmüller
        /// 2008, section 2.5.3). Their confidence is 0.
        fill / with_fill: bool = false;
        /// The most memory to use besides images and results; none: no limit. The result does not depend on it.
        ///
        /// At least half of it is for sums and paths. An image that needs more is computed in groups of rows, in up to
        /// 1.7 times the time. The first call takes at most 128 MiB for sums and paths if that is possible, because the
        /// system needs more time to clear more memory; later calls use as much as is allowed.
        memory / with_memory: Option<u64> = Some(1 << 30) => 1.., unit "BYTES";
        /// About the most GPU memory to use; by default all that is free. A larger pair is computed there in bands of
        /// rows, with the same result.
        device_memory / with_device_memory: Option<u64> = None => 1.., unit "BYTES";
        /// Also give the disparities of the right view.
        right / with_right: bool = false, flag "-";
        /// Also give a confidence from 0 to 1.
        confidence / with_confidence: bool = false, flag "-";
        /// Also give the reason why each pixel was made invalid.
        reasons / with_reasons: bool = false, flag "-";
    }
    check this {
        match (this.census_window, this.iterations) {
            (Some(window), _) if !matches!(this.cost, Cost::Census(_)) => {
                Err(Error::option("census_window", window, "none unless the cost is census"))
            }
            (_, Some(iterations)) if this.cost != Cost::MutualInformation => {
                Err(Error::option("iterations", iterations, "none unless the cost is mi"))
            }
            _ => this.penalties().check(),
        }
    }
}

impl StereoOptions {
    /// These options with all four penalties stated.
    #[must_use]
    pub fn with_penalties(self, Penalties { p1, p2, p2_least, gradient }: Penalties) -> Self {
        Self { p1: Some(p1), p2: Some(p2), p2_least: Some(p2_least), gradient: Some(gradient), ..self }
    }

    /// The penalties in force.
    pub fn penalties(&self) -> Penalties {
        self.penalties_for(self.cost.penalties())
    }

    /// The penalties in force, given the defaults `suited` for the cost. A stated penalty replaces its default, and a
    /// default that would contradict a stated penalty is changed.
    pub(super) fn penalties_for(&self, suited: Penalties) -> Penalties {
        // Penalties that are not stated are moved so that p1 ≤ p2_least ≤ p2.
        let most = [self.p2_least, self.p2].into_iter().flatten().min().unwrap_or(u16::MAX);
        let p1 = self.p1.unwrap_or_else(|| suited.p1.min(most));
        let p2 = self.p2.unwrap_or_else(|| suited.p2.max(p1).max(self.p2_least.unwrap_or(0)));
        let p2_least = self.p2_least.unwrap_or_else(|| suited.p2_least.max(p1).min(p2));
        Penalties { p1, p2, p2_least, gradient: self.gradient.unwrap_or(suited.gradient) }
    }

    /// Fails when the sums of costs up to `greatest` could exceed 16 bits.
    pub(super) fn check_sums(&self, greatest: u16) -> Result<()> {
        let p2 = self.penalties().p2;
        if self.paths.count() as u32 * (u32::from(greatest) + u32::from(p2)) > u32::from(u16::MAX) {
            let expected = "so that paths times (greatest cost + p2) is at most 65535; unless given, p2 is at least p1 and p2_least";
            return Err(Error::option("p2", p2, expected));
        }
        Ok(())
    }

    /// Whether disparities of the right view are selected from the sums of the left view.
    pub(super) fn selects_right(&self) -> bool {
        match self.right_view {
            RightView::Off => self.right,
            RightView::Diagonal => true,
            RightView::Aggregated => false,
        }
    }

    /// The same options for disparities of the left view alone.
    pub(super) fn for_left(self) -> Self {
        Self { right_view: RightView::Off, right: false, confidence: false, ..self }
    }

    /// The same options for disparities of both views alone.
    pub(super) fn for_both(self) -> Self {
        Self { right_view: RightView::Diagonal, confidence: false, ..self }
    }

    /// The difference of colours from which on a pixel has no vote about edges; 0: edges are not moved.
    pub(super) fn votes_below(&self) -> u16 {
        if self.median == 0 { 0 } else { self.edges }
    }

    pub(super) fn speckle(&self) -> SpeckleOptions {
        SpeckleOptions { size: self.speckle_size, difference: self.speckle_difference }
    }
}
