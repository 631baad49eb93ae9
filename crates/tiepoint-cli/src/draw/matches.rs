//! Matches: the two images side by side, a line for every match. Inliers are green, outliers faint.

use super::{Canvas, Colour, GREEN, ORANGE};
use crate::failure::Outcome;
use tiepoint::image::Size;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Tie {
    pub(crate) a: [f64; 2],
    pub(crate) b: [f64; 2],
    pub(crate) inlier: bool,
}

const GROUND: Colour = [24, 26, 30];

pub(crate) fn side_by_side(a: Canvas, b: Canvas, ties: &[Tie]) -> Outcome<Canvas> {
    let gap = (a.size().width / 64).clamp(4, 32);
    let left = a.size().width + gap;
    let size = Size::new(left + b.size().width, a.size().height.max(b.size().height));
    let mut canvas = Canvas::new(size, GROUND)?;
    for (mut picture, x) in [(a, 0), (b, left)] {
        picture.fade(0.35, 0.8);
        canvas.paste(&picture, x, 0);
    }
    let crowd = ties.iter().filter(|t| t.inlier).count();
    // Many opaque lines would cover the picture.
    let opacity = (48.0 / crowd.max(1) as f64).sqrt().clamp(0.2, 0.9);
    for inlier in [false, true] {
        for tie in ties.iter().filter(|t| t.inlier == inlier) {
            let mut pen = canvas.pen(if inlier { GREEN } else { ORANGE });
            pen.opacity = if inlier { opacity } else { 0.18 };
            let b = [tie.b[0] + left as f64, tie.b[1]];
            canvas.line(tie.a, b, pen);
            if inlier {
                pen.opacity = 1.0;
                let radius = 1.6 * pen.width;
                canvas.circle(tie.a, radius, pen);
                canvas.circle(b, radius, pen);
            }
        }
    }
    Ok(canvas)
}
