//! Parts of a picture: how many inliers each has, how far they are off, and where right matches contradict the model.

use serde_json::{Value, json};

/// A part of a picture.
#[derive(Clone, Copy, Debug)]
pub struct PicturePart {
    /// Its corners in the picture shown, in pixels, in order around it.
    pub corners: [[f64; 2]; 4],
    /// The number of inliers there.
    pub inliers: usize,
    /// Their median residual, in pixels; none without inliers.
    pub residual_px: Option<f64>,
    /// How far the model is off there, in pixels, where more right matches contradict it than agree.
    pub off_px: Option<f64>,
}

/// The parts for the script.
pub(crate) fn described(parts: &[PicturePart]) -> Value {
    let one = |part: &PicturePart| {
        json!({
            "corners": part.corners,
            "inliers": part.inliers,
            "residual": part.residual_px,
            "off": part.off_px,
        })
    };
    parts.iter().map(one).collect()
}
