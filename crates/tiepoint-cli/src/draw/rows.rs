//! A rectified pair side by side with lines along rows: corresponding points must lie on the same line.

use super::{Canvas, GREEN};
use crate::failure::Outcome;
use tiepoint::image::Size;

pub(crate) fn rows(left: &Canvas, right: &Canvas) -> Outcome<Canvas> {
    let width = left.size().width;
    let size = Size::new(width + right.size().width, left.size().height.max(right.size().height));
    let mut canvas = Canvas::new(size, [0; 3])?;
    canvas.paste(left, 0);
    canvas.paste(right, width);
    let mut pen = canvas.pen(GREEN);
    pen.opacity = 0.7;
    let step = (size.height / 16).max(8);
    for y in (step / 2..size.height).step_by(step) {
        canvas.line([0.0, y as f64], [size.width as f64, y as f64], pen);
    }
    Ok(canvas)
}
