//! A colour image on which lines and circles are drawn with smooth edges.

use super::Colour;
use crate::failure::Outcome;
use tiepoint::by_pixel;
use tiepoint::image::{AnyImage, AnyView, Image, Shades, Size};
use tiepoint::numeric::length;

#[derive(Clone, Debug)]
pub(crate) struct Canvas {
    image: Image<u8>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pen {
    pub(crate) colour: Colour,
    /// In pixels.
    pub(crate) width: f64,
    /// From 0, invisible, to 1, opaque.
    pub(crate) opacity: f64,
}

impl Canvas {
    /// A canvas of one colour; fails if there is not enough memory.
    pub(crate) fn new(size: Size, colour: Colour) -> Outcome<Self> {
        let mut image = Image::try_filled(size, 3, 0)?;
        image.data_mut().as_chunks_mut().0.fill(colour);
        Ok(Self { image })
    }

    /// A canvas that shows `image` in [`Shades`], which are chosen from the pixels where `mask` is not 0.
    pub(crate) fn of<'a>(image: impl Into<AnyView<'a>>, mask: Option<&Image<u8>>) -> Outcome<Self> {
        let image = image.into();
        let mut canvas = Self::new(image.size(), [0; 3])?;
        let shades = Shades::of(image, mask.map(Image::view));
        let source = if image.channels() < 3 { [0; 3] } else { [0, 1, 2] };
        by_pixel!(image, view => {
            for y in 0..view.size().height {
                let shown: &mut [Colour] = canvas.image.row_mut(y).as_chunks_mut().0;
                for (out, pixel) in shown.iter_mut().zip(view.row(y).chunks_exact(view.channels())) {
                    *out = source.map(|channel| shades.byte(pixel[channel]));
                }
            }
        });
        Ok(canvas)
    }

    pub(crate) fn size(&self) -> Size {
        self.image.size()
    }

    pub(crate) fn into_image(self) -> AnyImage {
        AnyImage::U8(self.image)
    }

    pub(crate) fn pixel(&self, x: usize, y: usize) -> Colour {
        self.image.row(y).as_chunks().0[x]
    }

    pub(crate) fn set(&mut self, x: usize, y: usize, colour: Colour) {
        self.image.row_mut(y).as_chunks_mut().0[x] = colour;
    }

    /// Fills a rectangle with one colour; (x, y) is its top-left pixel. Parts outside the canvas are cut off.
    pub(crate) fn rectangle(&mut self, [x, y]: [usize; 2], [width, height]: [usize; 2], colour: Colour) {
        let size = self.size();
        for j in y..(y + height).min(size.height) {
            (x..(x + width).min(size.width)).for_each(|i| self.set(i, j, colour));
        }
    }

    /// Moves every pixel towards its grey and towards black, so that lines stand out.
    pub(crate) fn fade(&mut self, saturation: f64, brightness: f64) {
        for p in self.image.data_mut().chunks_exact_mut(3) {
            let grey = 0.2126 * f64::from(p[0]) + 0.7152 * f64::from(p[1]) + 0.0722 * f64::from(p[2]);
            p.iter_mut().for_each(|v| *v = (brightness * (grey + saturation * (f64::from(*v) - grey))) as u8);
        }
    }

    /// Copies `other` to the top of this canvas, from column `x` on. Parts outside the canvas are cut off.
    pub(crate) fn paste(&mut self, other: &Self, x: usize) {
        let Size { width, height } = self.size();
        let columns = width.saturating_sub(x).min(other.size().width);
        for y in 0..height.min(other.size().height) {
            self.image.row_mut(y)[3 * x..3 * (x + columns)]
                .copy_from_slice(&other.image.row(y)[..3 * columns]);
        }
    }

    /// A pen whose width suits the size of this canvas.
    pub(crate) fn pen(&self, colour: Colour) -> Pen {
        let longer = self.size().width.max(self.size().height) as f64;
        Pen { colour, width: (longer / 1100.0).clamp(1.2, 12.0), opacity: 1.0 }
    }

    /// Mixes the pen's colour into a pixel, which may lie outside the canvas.
    fn blend(&mut self, x: i64, y: i64, pen: &Pen, cover: f64) {
        let Size { width, height } = self.size();
        if cover <= 0.0 || x < 0 || y < 0 || x >= width as i64 || y >= height as i64 {
            return;
        }
        let share = cover.min(1.0) * pen.opacity;
        let pixel: &mut Colour = &mut self.image.row_mut(y as usize).as_chunks_mut().0[x as usize];
        for (v, c) in pixel.iter_mut().zip(pen.colour) {
            *v = (f64::from(*v) + share * (f64::from(c) - f64::from(*v))).round() as u8;
        }
    }

    /// Draws a straight line with round ends.
    pub(crate) fn line(&mut self, a: [f64; 2], b: [f64; 2], pen: Pen) {
        if a.iter().chain(&b).any(|v| v.is_nan() || v.abs() > 1e9) {
            return;
        }
        let (dx, dy) = (b[0] - a[0], b[1] - a[1]);
        let squared = dx * dx + dy * dy;
        let distance = |x: f64, y: f64| {
            let t = ((x - a[0]) * dx + (y - a[1]) * dy) / squared.max(1e-12);
            let t = t.clamp(0.0, 1.0);
            length([x - a[0] - t * dx, y - a[1] - t * dy])
        };
        // Steps along the longer side. Across it the line extends √2 times its width at most, plus soft edges.
        let steep = dy.abs() > dx.abs();
        let (along, across) = if steep { (1, 0) } else { (0, 1) };
        let limit = if steep { self.size().height } else { self.size().width } as f64;
        let reach = pen.width / 2.0 + 0.5;
        let (low, high) = (a[along].min(b[along]) - reach, a[along].max(b[along]) + reach);
        let slope = (b[across] - a[across]) / (b[along] - a[along]);
        let slope = if slope.is_finite() { slope } else { 0.0 };
        for i in low.max(0.0).floor() as i64..=high.min(limit).ceil() as i64 {
            let t = (i as f64).clamp(a[along].min(b[along]), a[along].max(b[along]));
            let middle = a[across] + slope * (t - a[along]);
            let side = reach * std::f64::consts::SQRT_2 + 1.0;
            for j in (middle - side).floor() as i64..=(middle + side).ceil() as i64 {
                let (x, y) = if steep { (j, i) } else { (i, j) };
                self.blend(x, y, &pen, reach - distance(x as f64, y as f64));
            }
        }
    }

    pub(crate) fn circle(&mut self, centre: [f64; 2], radius: f64, pen: Pen) {
        let [cx, cy] = centre;
        if !(cx.abs() < 1e9 && cy.abs() < 1e9 && (0.0..1e9).contains(&radius)) {
            return;
        }
        let Size { width, height } = self.size();
        let (outer, inner) = (radius + pen.width / 2.0 + 0.5, radius - pen.width / 2.0 - 0.5);
        let rows = |v: f64, n: usize| v.clamp(-1.0, n as f64) as i64;
        for y in rows((cy - outer).floor(), height)..=rows((cy + outer).ceil(), height) {
            let dy = y as f64 - cy;
            let reach = (outer * outer - dy * dy).max(0.0).sqrt();
            let gap = if inner > 0.0 { (inner * inner - dy * dy).max(0.0).sqrt() } else { 0.0 };
            let mut span = |from: f64, to: f64| {
                for x in rows(from.floor(), width)..=rows(to.ceil(), width) {
                    let off = (length([x as f64 - cx, dy]) - radius).abs();
                    self.blend(x, y, &pen, pen.width / 2.0 + 0.5 - off);
                }
            };
            // A row crosses the circle in two arcs, unless they touch.
            if gap > 2.0 {
                span(cx - reach, cx - gap);
                span(cx + gap, cx + reach);
            } else {
                span(cx - reach, cx + reach);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pen() -> Pen {
        Pen { colour: [255; 3], width: 1.0, opacity: 1.0 }
    }

    fn ink(canvas: &Canvas) -> f64 {
        canvas.image.data().iter().map(|&v| f64::from(v)).sum::<f64>() / 255.0 / 3.0
    }

    #[test]
    fn ink_is_length_times_width() {
        for (b, length) in [([80.0, 20.0], 60.0), ([20.0, 80.0], 60.0), ([70.0, 60.0], 4100_f64.sqrt())] {
            let mut canvas = Canvas::new(Size::new(100, 100), [0; 3]).unwrap();
            canvas.line([20.0, 20.0], b, pen());
            // The round ends and soft edges add 0.8.
            assert!(
                (ink(&canvas) - length - 0.8).abs() < 0.05 * length,
                "to {b:?}: {} of {length}",
                ink(&canvas)
            );
        }
        let mut canvas = Canvas::new(Size::new(100, 100), [0; 3]).unwrap();
        canvas.circle([50.3, 49.8], 30.0, pen());
        let around = std::f64::consts::TAU * 30.0;
        assert!((ink(&canvas) - around).abs() < 0.02 * around, "{} of {around}", ink(&canvas));
    }

    #[test]
    fn drawing_outside_the_canvas_is_harmless() {
        let mut canvas = Canvas::new(Size::new(7, 5), [0; 3]).unwrap();
        canvas.line([f64::NAN, 0.0], [3.0, 3.0], pen());
        canvas.line([-1e8, -1e8], [1e8, 1e8], pen());
        canvas.circle([3.0, 2.0], f64::INFINITY, pen());
        canvas.circle([3.0, 2.0], 1e8, pen());
        canvas.circle([-50.0, 900.0], 3.0, pen());
        assert!(ink(&canvas) > 4.0, "the part of the line inside is missing");
        Canvas::new(Size::new(0, 0), [0; 3]).unwrap().line([0.0, 0.0], [1.0, 1.0], pen());
    }
}
