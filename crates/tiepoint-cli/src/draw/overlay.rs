//! One image over another, to show where they do not fit.

use super::{Canvas, Colour};
use tiepoint::image::Image;

/// How two images are combined in one picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Blend {
    /// Alternating squares of both; where they fit, edges continue from square to square.
    #[default]
    Checker,
    /// The reference in red, the other in cyan: grey where they fit, coloured fringes where they do not.
    Anaglyph,
    /// The mean of both.
    Mean,
}

/// Combines `moved` with `reference`, of the same size, where `valid` is not 0; where `seen` is 0, shows it alone.
pub(crate) fn overlay(
    reference: Canvas,
    seen: Option<&Image<u8>>,
    moved: &Canvas,
    valid: &Image<u8>,
    blend: Blend,
) -> Canvas {
    let size = reference.size();
    let square = (size.width.max(size.height) / 10).max(1);
    let mut out = reference;
    for y in 0..size.height.min(moved.size().height).min(valid.size().height) {
        for x in 0..size.width.min(moved.size().width).min(valid.size().width) {
            if valid.row(y)[x] != 0 {
                let (a, b) = (out.pixel(x, y), moved.pixel(x, y));
                let odd = (x / square + y / square) % 2 == 1;
                let alone = seen.is_some_and(|seen| seen.row(y)[x] == 0);
                out.set(x, y, if alone { b } else { mix(a, b, blend, odd) });
            }
        }
    }
    out
}

fn mix(a: Colour, b: Colour, blend: Blend, odd: bool) -> Colour {
    match blend {
        Blend::Checker if odd => b,
        Blend::Checker => a,
        Blend::Anaglyph => [grey(a), grey(b), grey(b)],
        Blend::Mean => [0, 1, 2].map(|i| a[i].midpoint(b[i])),
    }
}

fn grey(c: Colour) -> u8 {
    ((2126 * u32::from(c[0]) + 7152 * u32::from(c[1]) + 722 * u32::from(c[2]) + 5000) / 10000) as u8
}
