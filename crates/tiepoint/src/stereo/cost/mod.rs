//! Matching costs: how unlike the left pixel (x, y) and the right pixel (x − d, y) are.
//!
//! A cost is an integer from 0 to a bound that is known ahead, so that sums of costs stay exact and are the same
//! on every machine. Where x − d lies outside the right image its nearest column stands in, which errs less than
//! leaving the disparity out.

/// The greatest absolute difference that is told from others.
pub const AD_LIMIT: u8 = 31;
/// The greatest entry of the table of mutual information.
pub const MI_LIMIT: u8 = 63;

/// The pixels that a census transform compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CensusWindow {
    /// 5×5, each with the centre: 24 bits.
    #[default]
    Five,
    /// 7×7: 48 bits.
    Seven,
    /// 9 wide, 7 high: 62 bits.
    NineBySeven,
    /// 9 wide, 7 high, pixels opposite each other compared with each other (Spangenberg et al. 2013): 31 bits.
    Symmetric,
}

impl CensusWindow {
    /// Comparisons, which is the greatest distance.
    pub const fn bits(self) -> u8 {
        match self {
            Self::Five => 24,
            Self::Seven => 48,
            Self::NineBySeven => 62,
            Self::Symmetric => 31,
        }
    }

    /// How far the window reaches left and right, up and down.
    pub const fn radius(self) -> (usize, usize) {
        match self {
            Self::Five => (2, 2),
            Self::Seven => (3, 3),
            Self::NineBySeven | Self::Symmetric => (4, 3),
        }
    }
}
