//! Keypoints: circles of their scales with lines in their directions; red if bright on dark, blue if dark on bright.

use super::{BLUE, Canvas, RED};
use tiepoint::feature::Keypoint;

/// Draws all keypoints in reverse order, so that the first are on top.
pub(crate) fn keypoints(canvas: &mut Canvas, keypoints: &[Keypoint]) {
    for k in keypoints.iter().rev() {
        let pen = canvas.pen(if k.sign < 0 { BLUE } else { RED });
        let (x, y, radius) = (f64::from(k.x), f64::from(k.y), f64::from(k.scale));
        let (s, c) = libm::sincos(f64::from(k.angle));
        canvas.circle([x, y], radius, pen);
        canvas.line([x, y], [x + radius * c, y + radius * s], pen);
    }
}
