//! Endless textures: a grey value for every point of the plane.
//!
//! A texture is fractal value noise (lattice spacings 4 to 256) under three layers of shapes. A shape stays inside its
//! cell of a lattice: soft blobs, discs, rectangles, triangles, and strokes that meet in corners as in letters. The
//! grey value at a point depends on the width of the pixel that shows it: edges are ramps of that width and finer noise
//! fades out, so that there is no aliasing at any resolution.

use super::Random;
use crate::device::Cpu;
use crate::image::{Image, Pixel, Size};
use crate::options::named;

named! {
    /// What a texture is made of.
    pub enum TextureKind as "texture" {
        #[default]
        "mixed": Mixed, "Noise under every kind of shape";
        "noise": Noise, "Fractal noise alone";
        /// What a blob detector finds most exactly.
        "blobs": Blobs, "Soft round blobs on mid grey";
        /// Sharp edges and corners.
        "shapes": Shapes, "Discs, polygons and strokes on mid grey";
    }
}

/// An endless grey texture; a pure function of its seed.
#[derive(Clone, Copy, Debug)]
pub struct Texture {
    seed: u64,
    kind: TextureKind,
}

/// Lattice spacings of the noise, in texture units.
const NOISE: [f64; 7] = [256.0, 128.0, 64.0, 32.0, 16.0, 8.0, 4.0];
/// Lattice spacings of the shapes, in texture units, painted in this order. Not multiples of each other, so
/// that cells do not line up.
const SHAPES: [f64; 3] = [89.0, 37.0, 17.0];

impl Texture {
    /// The mixed texture of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self::of_kind(TextureKind::Mixed, seed)
    }

    /// A texture of the kind asked for.
    pub const fn of_kind(kind: TextureKind, seed: u64) -> Self {
        Self { seed, kind }
    }

    /// Brightness in \[0, 1\] at (x, y), seen by a pixel `width` texture units wide.
    pub fn at(&self, x: f64, y: f64, width: f64) -> f64 {
        Sampler::new(*self).at(x, y, width)
    }

    /// Writes the pixels (x0 + i, y), one texture unit apart, from black at 0 to white at 1.
    pub fn row<T: Pixel>(&self, x0: usize, y: usize, out: &mut [T]) {
        let mut sampler = Sampler::new(*self);
        for (i, o) in out.iter_mut().enumerate() {
            *o = T::from_f32(sampler.at((x0 + i) as f64, y as f64, 1.0) as f32 * T::WHITE);
        }
    }

    /// The window of the texture from (0, 0), one pixel to a texture unit.
    pub fn image<T: Pixel>(&self, size: Size, cpu: &Cpu) -> Image<T> {
        self.strip(0, size, cpu)
    }

    /// The window of the texture from (0, y): a strip of an image that need not exist as a whole.
    pub fn strip<T: Pixel>(&self, y: usize, size: Size, cpu: &Cpu) -> Image<T> {
        let mut image = Image::new(size);
        cpu.for_chunks(image.data_mut(), size.width, |i, row| self.row(0, y + i, row));
        image
    }

    /// The random values of one octave at the corners of the cell of (x0, y0).
    fn corners(&self, octave: u64, x0: f64, y0: f64) -> [f64; 4] {
        [(0, 0), (1, 0), (0, 1), (1, 1)]
            .map(|(i, j)| Random::at(self.seed, 16 + octave, x0 as i64 + i, y0 as i64 + j).range(-1.0, 1.0))
    }
}

/// A texture that remembers the cells of the last point, so that neighbouring points take a fifth of the time.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    texture: Texture,
    /// For each octave of the noise, the last cell and the values at its corners.
    noise: [([f64; 2], [f64; 4]); NOISE.len()],
    shapes: [Shape; SHAPES.len()],
}

/// The shape in one cell of a layer.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// The cell; NaN before the first.
    cell: [f64; 2],
    /// What it is; below 16 the cell is empty.
    kind: u64,
    /// In texture units.
    centre: [f64; 2],
    reach: f64,
    shade: f64,
    /// Cosine and sine of its angle.
    direction: [f64; 2],
}

const NOWHERE: [f64; 2] = [f64::NAN; 2];

/// Whether a point lies in the cell of side 1 that begins at `cell`. No point lies in [`NOWHERE`].
fn lies_in(cell: [f64; 2], [x, y]: [f64; 2]) -> bool {
    let [x, y] = [x - cell[0], y - cell[1]];
    (0.0..1.0).contains(&x) && (0.0..1.0).contains(&y)
}

impl Sampler {
    pub(super) fn new(texture: Texture) -> Self {
        let empty =
            Shape { cell: NOWHERE, kind: 0, centre: [0.0; 2], reach: 0.0, shade: 0.0, direction: [0.0; 2] };
        Self { texture, noise: [(NOWHERE, [0.0; 4]); NOISE.len()], shapes: [empty; SHAPES.len()] }
    }

    /// As [`Texture::at`].
    pub(super) fn at(&mut self, x: f64, y: f64, width: f64) -> f64 {
        let kind = self.texture.kind;
        let noise = matches!(kind, TextureKind::Mixed | TextureKind::Noise);
        let mut value = if noise { self.noise(x, y, width) } else { 0.5 };
        if kind != TextureKind::Noise {
            for layer in 0..SHAPES.len() {
                value = self.paint(value, layer, [x, y], width);
            }
        }
        value.clamp(0.0, 1.0)
    }

    fn noise(&mut self, x: f64, y: f64, width: f64) -> f64 {
        let mut value = 0.5;
        for (octave, &spacing) in NOISE.iter().enumerate() {
            let seen = (spacing / width - 1.0).clamp(0.0, 1.0);
            if seen > 0.0 {
                let amplitude = 0.055 * (1.0 + spacing.min(64.0) / 24.0);
                value += seen * amplitude * self.lattice(octave, x / spacing, y / spacing);
            }
        }
        value
    }

    /// Value noise in \[−1, 1\]: random values at whole points, joined by the quintic of K. Perlin, "Improving
    /// noise", 2002.
    fn lattice(&mut self, octave: usize, x: f64, y: f64) -> f64 {
        let (cell, values) = &mut self.noise[octave];
        if !lies_in(*cell, [x, y]) {
            *cell = [x.floor(), y.floor()];
            *values = self.texture.corners(octave as u64, cell[0], cell[1]);
        }
        let fade = |t: f64| t * t * t * (t * (t * 6.0 - 15.0) + 10.0);
        let (u, v) = (fade(x - cell[0]), fade(y - cell[1]));
        let mix = |a: f64, b: f64, t: f64| a + (b - a) * t;
        mix(mix(values[0], values[1], u), mix(values[2], values[3], u), v)
    }

    fn paint(&mut self, value: f64, layer: usize, p: [f64; 2], width: f64) -> f64 {
        let [x, y] = [p[0] / SHAPES[layer], p[1] / SHAPES[layer]];
        let shape = &mut self.shapes[layer];
        if !lies_in(shape.cell, [x, y]) {
            *shape = Shape::of(self.texture.seed, layer, [x.floor(), y.floor()]);
        }
        let Shape { kind, centre, reach, shade, direction: [c, s], .. } = *shape;
        if kind < 16 {
            return value;
        }
        let local = [p[0] - centre[0], p[1] - centre[1]];
        let turned = [c * local[0] + s * local[1], c * local[1] - s * local[0]];
        let all = self.texture.kind;
        let blob = all == TextureKind::Blobs || all == TextureKind::Mixed && kind < 30;
        let cover = if blob { blob_cover(local, reach) } else { shape_cover(kind, turned, reach, width) };
        value + (shade - value) * cover
    }
}

impl Shape {
    fn of(seed: u64, layer: usize, cell: [f64; 2]) -> Self {
        let spacing = SHAPES[layer];
        let mut random = Random::at(seed, layer as u64, cell[0] as i64, cell[1] as i64);
        let kind = random.bits() >> 58;
        // Centre and reach are such that the shape, its corners included, stays in its cell.
        let centre = [random.range(0.4, 0.6), random.range(0.4, 0.6)];
        let reach = spacing * random.range(0.2, 0.38);
        let dark = random.bits() & 1 == 0;
        let shade = if dark { random.range(0.02, 0.3) } else { random.range(0.7, 0.98) };
        let centre = [0, 1].map(|i| (cell[i] + centre[i]) * spacing);
        Self { cell, kind, centre, reach, shade, direction: random.direction() }
    }
}

/// A soft blob: (1 − d²/r²)³ inside its reach, which meets zero smoothly.
fn blob_cover(p: [f64; 2], reach: f64) -> f64 {
    let inside = (1.0 - (p[0] * p[0] + p[1] * p[1]) / (reach * reach)).max(0.0);
    inside * inside * inside
}

/// The share of a pixel that the shape covers: a ramp one pixel wide across its edge.
fn shape_cover(kind: u64, p: [f64; 2], reach: f64, width: f64) -> f64 {
    let bar = |x: f64, y: f64, w: f64, h: f64| ((p[0] - x).abs() - w).max((p[1] - y).abs() - h);
    let (arm, stroke) = (0.66 * reach, 0.2 * reach);
    let distance = match kind % 6 {
        0 => (p[0] * p[0] + p[1] * p[1]).sqrt() - reach,
        1 => bar(0.0, 0.0, 0.68 * reach, 0.68 * reach),
        2 => bar(0.0, 0.0, 0.9 * reach, 0.35 * reach),
        3 => {
            // An equilateral triangle: the largest of the distances from its three sides.
            let side = |c: f64, s: f64| c * p[0] + s * p[1] - 0.5 * reach;
            side(1.0, 0.0).max(side(-0.5, 0.866_025_403_784)).max(side(-0.5, -0.866_025_403_784))
        }
        4 => bar(-arm + stroke, 0.0, stroke, arm).min(bar(0.0, arm - stroke, arm, stroke)),
        _ => bar(0.0, 0.0, stroke, arm).min(bar(0.0, -arm + stroke, arm, stroke)),
    };
    (0.5 - distance / width).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_window_is_the_same_texture() {
        let texture = Texture::new(7);
        let whole: Image<u8> = texture.image(Size::new(150, 90), &Cpu::sequential());
        let threads: Image<u8> = texture.image(Size::new(150, 90), &Cpu::with_threads(5).unwrap());
        assert_eq!(whole, threads, "threads");
        let mut part = [0_u8; 40];
        texture.row(100, 57, &mut part);
        assert_eq!(whole.row(57)[100..140], part, "a window");
        let other: Image<u8> = Texture::new(8).image(Size::new(150, 90), &Cpu::sequential());
        assert_ne!(whole, other, "another seed");
    }

    #[test]
    fn has_contrast_and_stays_in_range() {
        for kind in [TextureKind::Mixed, TextureKind::Noise, TextureKind::Blobs, TextureKind::Shapes] {
            let image: Image<f32> = Texture::of_kind(kind, 3).image(Size::new(400, 300), &Cpu::sequential());
            let n = image.data().len() as f64;
            let mean = image.data().iter().map(|&v| f64::from(v)).sum::<f64>() / n;
            let var = image.data().iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
            assert!((0.35..0.65).contains(&mean), "{kind:?}: mean {mean}");
            assert!(var.sqrt() > 0.08, "{kind:?}: deviation {}", var.sqrt());
            assert!(image.data().iter().all(|v| (0.0..=1.0).contains(v)), "{kind:?} leaves 0 to 1");
        }
    }

    /// A pixel that is w samples wide shows about the mean of its w² samples.
    #[test]
    fn wide_pixels_do_not_alias() {
        let texture = Texture::new(5);
        let (mut sum, mut n) = (0.0, 0.0);
        for y in 0..40 {
            for x in 0..40 {
                let (x, y) = (f64::from(x) * 4.0, f64::from(y) * 4.0);
                let fine = |i: i32, j: i32| texture.at(x + f64::from(i) - 1.5, y + f64::from(j) - 1.5, 1.0);
                let mean = (0..16).map(|k| fine(k % 4, k / 4)).sum::<f64>() / 16.0;
                sum += (texture.at(x, y, 4.0) - mean).powi(2);
                n += 1.0;
            }
        }
        let rms = (sum / n).sqrt();
        assert!(rms < 0.06, "{rms}");
    }

    /// The same seed must always give the same picture, because data sets elsewhere rely on it.
    #[test]
    fn is_pinned() {
        let image: Image<u8> = Texture::new(1).image(Size::new(64, 64), &Cpu::sequential());
        let sum = image.data().iter().fold(0_u64, |h, &v| h.wrapping_mul(31).wrapping_add(u64::from(v)));
        assert_eq!(sum, PINNED, "the texture of seed 1 changed");
    }
    const PINNED: u64 = 4_010_599_596_757_985_637;
}
