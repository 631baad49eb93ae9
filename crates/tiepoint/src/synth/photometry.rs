//! How a camera or the light changes the brightness of a scene.

use crate::options::setters;
use crate::{Error, Result};

/// How a camera changes the brightness v from 0 to 1: inverted to 1 − v if asked for, raised to the power gamma,
/// and then gain · v + bias, cut to 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Photometry {
    /// Black and white change places. Default no.
    pub invert: bool,
    /// The power, 0.01 to 100. Default 1.
    pub gamma: f64,
    /// The contrast, −100 to 100. Default 1.
    pub gain: f64,
    /// The brightness, −100 to 100. Default 0.
    pub bias: f64,
}

setters!(Photometry {
    with_invert: invert = bool,
    with_gamma: gamma = f64,
    with_gain: gain = f64,
    with_bias: bias = f64,
});

impl Default for Photometry {
    fn default() -> Self {
        Self { invert: false, gamma: 1.0, gain: 1.0, bias: 0.0 }
    }
}

impl Photometry {
    pub(super) fn of(&self, v: f64) -> f64 {
        let v = if self.invert { 1.0 - v } else { v };
        let v = libm::pow(v, self.gamma);
        self.gain * v + self.bias
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`Error::Option`] naming the first field outside its range.
    pub fn check(&self) -> Result<()> {
        let within = |name, v: f64, low: f64, high: f64, expected| match (low..=high).contains(&v) {
            true => Ok(()),
            false => Err(Error::option(name, v, expected)),
        };
        within("gamma", self.gamma, 0.01, 100.0, "0.01 to 100")?;
        within("gain", self.gain, -100.0, 100.0, "-100 to 100")?;
        within("bias", self.bias, -100.0, 100.0, "-100 to 100")
    }
}
