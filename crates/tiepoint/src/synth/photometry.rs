//! How a camera or the light changes the brightness of a scene.

use crate::options::options;

options! {
    /// How a camera changes the brightness v from 0 to 1.
    ///
    /// v, or 1 − v if inverted, to the power gamma, then times gain plus bias; clamped to 0 to 1 after noise is added.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Photometry {
        /// Black and white change places.
        invert / with_invert: bool = false;
        /// The power.
        gamma / with_gamma: f64 = 1.0 => 0.01..=100.0;
        /// The contrast: a factor of the brightness.
        gain / with_gain: f64 = 1.0 => -100.0..=100.0;
        /// Added to the brightness.
        bias / with_bias: f64 = 0.0 => -100.0..=100.0;
    }
}

impl Photometry {
    pub(super) fn of(&self, v: f64) -> f64 {
        let v = if self.invert { 1.0 - v } else { v };
        let v = libm::pow(v, self.gamma);
        self.gain * v + self.bias
    }
}
