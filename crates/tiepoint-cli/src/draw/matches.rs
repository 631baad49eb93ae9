//! Matches: the two images side by side with a line for every match. If there are many, only some have a line, spread
//! over A; the others are shown by their ends. Inliers are green, outliers faint.

use super::{Canvas, GREEN, GROUND, ORANGE};
use crate::failure::Outcome;
use std::collections::HashMap;
use tiepoint::image::Size;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Tie {
    pub(crate) a: [f64; 2],
    pub(crate) b: [f64; 2],
    pub(crate) inlier: bool,
}

/// The most lines of inliers, and of outliers; more would cover the pictures.
const LINES: [usize; 2] = [250, 60];

/// The number of squares along the longer side of A. Lines are taken from each square in turn.
const SQUARES: f64 = 20.0;

pub(crate) fn side_by_side(a: Canvas, b: Canvas, ties: &[Tie]) -> Outcome<Canvas> {
    let shown = a.size();
    let gap = (shown.width / 64).clamp(4, 32);
    let left = shown.width + gap;
    let size = Size::new(left + b.size().width, shown.height.max(b.size().height));
    let mut canvas = Canvas::new(size, GROUND)?;
    for (mut picture, x) in [(a, 0), (b, left)] {
        picture.fade(0.35, 0.8);
        canvas.paste(&picture, x);
    }
    for (inlier, most) in [(false, LINES[1]), (true, LINES[0])] {
        let mut pen = canvas.pen(if inlier { GREEN } else { ORANGE });
        let ordered = spread(ties.iter().filter(|tie| tie.inlier == inlier), shown);
        let (lines, points) = ordered.split_at(ordered.len().min(most));
        let right = |tie: &Tie| [tie.b[0] + left as f64, tie.b[1]];
        // Many opaque lines would cover the picture.
        let opacity = (48.0 / lines.len().max(1) as f64).sqrt().clamp(0.2, 0.9);
        pen.opacity = if inlier { opacity } else { 0.18 };
        lines.iter().for_each(|tie| canvas.line(tie.a, right(tie), pen));
        pen.opacity = if inlier { 1.0 } else { 0.18 };
        for (ties, radius) in [(points, 0.5 * pen.width), (if inlier { lines } else { &[] }, 1.6 * pen.width)]
        {
            for end in ties.iter().flat_map(|tie| [tie.a, right(tie)]) {
                canvas.circle(end, radius, pen);
            }
        }
    }
    Ok(canvas)
}

/// Orders ties so that the first are spread over A: the first of every square, then the second ones, and so on.
fn spread<'t>(ties: impl Iterator<Item = &'t Tie>, size: Size) -> Vec<&'t Tie> {
    let side = (size.width.max(size.height) as f64 / SQUARES).max(1.0);
    let mut taken: HashMap<[i64; 2], usize> = HashMap::new();
    let mut ordered: Vec<(usize, &Tie)> = ties
        .map(|tie| {
            let before = taken.entry(tie.a.map(|v| (v / side).floor() as i64)).or_default();
            *before += 1;
            (*before, tie)
        })
        .collect();
    ordered.sort_by_key(|(turn, _)| *turn);
    ordered.into_iter().map(|(_, tie)| tie).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_lines_are_spread_over_the_image() {
        // Thousands of matches in one corner, and few elsewhere.
        let at = |x: f64, y: f64| Tie { a: [x, y], b: [x, y], inlier: true };
        let crowd = (0..5000).map(|i| at(f64::from(i % 70) * 0.1, f64::from(i / 70) * 0.1));
        let few = (0..40).map(|i| at(20.0 + 10.0 * f64::from(i % 8), 20.0 + 15.0 * f64::from(i / 8)));
        let ties: Vec<Tie> = crowd.chain(few).collect();
        let ordered = spread(ties.iter(), Size::new(100, 100));
        assert_eq!(ordered.len(), ties.len(), "all of them");
        let far = ordered[..LINES[0]].iter().filter(|tie| tie.a[0] >= 20.0).count();
        assert_eq!(far, 40, "matches outside the corner that are drawn");
    }
}
