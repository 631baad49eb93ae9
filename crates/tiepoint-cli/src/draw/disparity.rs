//! Disparities as colours, with a scale bar.

use super::{Canvas, Colour, GROUND, digits};
use crate::failure::Outcome;
use tiepoint::image::{Image, Size};
use tiepoint_report::{VIRIDIS, colour_at};

/// The longest side of a picture. A larger map is drawn with every n-th pixel only.
const LONGEST: usize = 4096;
const INK: Colour = [235; 3];

/// The map in colours from `range[0]` (dark) to `range[1]` (bright), black where invalid, above its scale bar.
pub(crate) fn disparity(map: &Image<f32>, [low, high]: [f32; 2]) -> Outcome<Canvas> {
    let Size { width, height } = map.size();
    let step = width.max(height).div_ceil(LONGEST).max(1);
    let shown = Size::new(width.div_ceil(step), height.div_ceil(step));
    let scale = 1.0 / (high - low).max(f32::MIN_POSITIVE);
    let bar = Bar::new(shown.width, [low, high]);
    let mut canvas = Canvas::new(Size::new(bar.width, shown.height + bar.height()), GROUND)?;
    for y in 0..shown.height {
        for (x, &d) in map.row(y * step).iter().step_by(step).enumerate() {
            let seen = if d.is_finite() { colour_at(&VIRIDIS, (d - low) * scale) } else { [0; 3] };
            canvas.set(x, y, seen);
        }
    }
    bar.draw(&mut canvas, shown.height);
    Ok(canvas)
}

/// The strip below the map: its colours in order, with ticks and numbers.
#[derive(Clone, Copy, Debug)]
struct Bar {
    width: usize,
    /// The size of a dot of the digits, in pixels.
    dot: usize,
    range: [f32; 2],
}

impl Bar {
    fn new(width: usize, range: [f32; 2]) -> Self {
        let width = width.max(96);
        Self { width, dot: ((width + 150) / 300).clamp(1, 8), range }
    }

    fn height(&self) -> usize {
        (3 + 6 + 3 + digits::HEIGHT + 3) * self.dot
    }

    fn margin(&self) -> usize {
        8 * self.dot
    }

    fn length(&self) -> usize {
        self.width - 2 * self.margin()
    }

    fn draw(&self, canvas: &mut Canvas, top: usize) {
        let (dot, length) = (self.dot, self.length());
        for i in 0..length {
            let t = i as f32 / (length - 1) as f32;
            canvas.rectangle([self.margin() + i, top + 3 * dot], [1, 6 * dot], colour_at(&VIRIDIS, t));
        }
        for (value, text) in self.ticks() {
            let t = (value - f64::from(self.range[0])) / f64::from(self.range[1] - self.range[0]);
            let x = self.margin() + (t * (length - 1) as f64).round() as usize;
            canvas.rectangle([x.saturating_sub(dot / 2), top + 9 * dot], [dot, 2 * dot], INK);
            let half = digits::width(&text, dot) / 2;
            let left = x.saturating_sub(half).min(self.width.saturating_sub(2 * half + dot));
            digits::write(canvas, &text, [left, top + 12 * dot], dot, INK);
        }
    }

    /// Round numbers in the range, as many as there is room for, and their texts.
    fn ticks(&self) -> Vec<(f64, String)> {
        let [low, high] = self.range.map(f64::from);
        if !(low < high && (high - low).is_finite()) {
            return Vec::new();
        }
        let tens = |n: i32| (0..n).fold(1.0, |product, _| product * 10.0);
        let mut power = libm::log10(high - low).floor() as i32 - 3;
        loop {
            for factor in [1.0, 2.0, 5.0] {
                let step = if power < 0 { factor / tens(-power) } else { factor * tens(power) };
                let first = (low / step).ceil();
                let count = ((high / step).floor() - first + 1.0).max(0.0);
                let decimals = usize::try_from(-power).unwrap_or(0);
                let write = |i: f64| format!("{:.decimals$}", (first + i) * step);
                let widest = digits::width(&write(0.0), self.dot).max(digits::width(&write(count), self.dot));
                if count * (widest + 14 * self.dot) as f64 <= self.length() as f64 || count <= 1.0 {
                    return (0..count as usize)
                        .map(|i| ((first + i as f64) * step, write(i as f64)))
                        .collect();
                }
            }
            power += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_holes() {
        let map = Image::from_fn(Size::new(120, 3), |x, y| match (x, y) {
            (_, 1) => f32::INFINITY,
            (_, 2) => f32::NAN,
            _ => x as f32 / 119.0 * 8.0 - 4.0,
        });
        let canvas = disparity(&map, [-4.0, 4.0]).unwrap();
        assert_eq!((canvas.pixel(0, 0), canvas.pixel(119, 0)), (VIRIDIS[0], VIRIDIS[15]), "the ends");
        assert_eq!((canvas.pixel(50, 1), canvas.pixel(50, 2)), ([0; 3], [0; 3]), "no disparity is black");
        assert!(canvas.size().height > 15, "the scale bar");
    }

    #[test]
    fn ticks_are_round_and_have_room() {
        let texts = |width, range| {
            let ticks = Bar::new(width, range).ticks();
            ticks.into_iter().map(|t| t.1).collect::<Vec<_>>()
        };
        assert_eq!(texts(200, [-3.2, 61.0]), ["0", "10", "20", "30", "40", "50", "60"]);
        assert_eq!(texts(300, [6.5, 7.5]).first().map(String::as_str), Some("6.5"));
        for range in [[0.0, 1e-6], [-1e9, 1e9], [f32::MIN, f32::MAX], [5.0, 5.0], [9999.0, 9999.5]] {
            for width in [1, 96, 5000] {
                assert!(texts(width, range).len() < 200, "{range:?} at {width}");
                disparity(&Image::filled(Size::new(width, 1), 1, 5.0), range).unwrap();
            }
        }
    }

    #[test]
    fn large_maps_are_reduced() {
        let map = Image::filled(Size::new(9000, 3), 1, 2.0);
        let canvas = disparity(&map, tiepoint_report::usual_range(map.view())).unwrap();
        assert_eq!(canvas.size().width, 3000, "every third pixel");
    }
}
