//! Numbers on a picture: digits of 3 by 5 dots.

use super::{Canvas, Colour};

/// The width of a digit with the gap after it, in dots.
const PITCH: usize = 4;
pub(super) const HEIGHT: usize = 5;

/// Five rows of three dots; the highest bit is the upper left dot.
fn glyph(c: char) -> u16 {
    match c {
        '0' => 0b111_101_101_101_111,
        '1' => 0b010_110_010_010_111,
        '2' => 0b111_001_111_100_111,
        '3' => 0b111_001_111_001_111,
        '4' => 0b101_101_111_001_001,
        '5' => 0b111_100_111_001_111,
        '6' => 0b111_100_111_101_111,
        '7' => 0b111_001_010_010_010,
        '8' => 0b111_101_111_101_111,
        '9' => 0b111_101_111_001_111,
        '-' => 0b000_000_111_000_000,
        '.' => 0b000_000_000_000_010,
        _ => 0,
    }
}

/// The width of `text` in pixels, with dots of `dot` pixels.
pub(super) fn width(text: &str, dot: usize) -> usize {
    (text.len() * PITCH).saturating_sub(1) * dot
}

/// Writes `text` with its top-left corner at (x, y). Parts outside the canvas are cut off.
pub(super) fn write(canvas: &mut Canvas, text: &str, [x, y]: [usize; 2], dot: usize, colour: Colour) {
    for (i, c) in text.chars().enumerate() {
        let bits = glyph(c);
        for j in (0..15).filter(|j| bits >> (14 - j) & 1 == 1) {
            let (left, top) = (x + (i * PITCH + j % 3) * dot, y + j / 3 * dot);
            canvas.rectangle([left, top], [dot, dot], colour);
        }
    }
}
