//! Two images of one plane, and the homography between them.
//!
//! Both images are drawn from the same continuous texture, so that the truth holds exactly: neither is
//! resampled from the other. A pixel of the moving image is the mean of a grid of samples spread over the
//! quadrilateral that it covers in the reference.

use super::{Random, Texture, TextureKind};
use crate::device::Cpu;
use crate::evaluate::plane::{apply, denominator, inverse, jacobian};
use crate::image::{Image, Pixel, Size};
use crate::{Error, Result};

/// What to draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SceneOptions {
    /// Size of both images in pixels. Default 640×480.
    pub size: Size,
    /// Maps points of the reference to the moving image; row by row. Default: the identity.
    pub homography: [f64; 9],
    /// What the plane looks like. Default: mixed.
    pub texture: TextureKind,
    /// Seed of texture and noise. Default 0.
    pub seed: u64,
    /// Standard deviation, in pixels, of a Gaussian blur of the moving image. Default 0.
    pub blur: f64,
    /// Standard deviation of the noise in either image, on the scale from 0 (black) to 1 (white). Default 0.
    pub noise: f64,
    /// The moving image's contrast: v becomes gain · v + bias. Default 1.
    pub gain: f64,
    /// The moving image's brightness. Default 0.
    pub bias: f64,
}

impl Default for SceneOptions {
    fn default() -> Self {
        Self {
            size: Size::new(640, 480),
            homography: [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
            texture: TextureKind::Mixed,
            seed: 0,
            blur: 0.0,
            noise: 0.0,
            gain: 1.0,
            bias: 0.0,
        }
    }
}

impl SceneOptions {
    /// Checks every field.
    ///
    /// # Errors
    /// [`Error::Option`] naming the first field outside its range.
    pub fn check(&self) -> Result<()> {
        let within = |name, v: f64, low: f64, high: f64, expected| match (low..=high).contains(&v) {
            true => Ok(()),
            false => Err(Error::option(name, v, expected)),
        };
        within("blur", self.blur, 0.0, 100.0, "0 to 100 pixels")?;
        within("noise", self.noise, 0.0, 1.0, "0 to 1")?;
        within("gain", self.gain, -100.0, 100.0, "-100 to 100")?;
        within("bias", self.bias, -100.0, 100.0, "-100 to 100")?;
        if self.size.is_empty() || self.size.area() > 1 << 32 {
            return Err(Error::option("size", self.size, "1 to 2^32 pixels"));
        }
        let wrong = || {
            let expected = "an invertible matrix that sends no point of the moving image to infinity";
            Error::option("homography", format!("{:?}", self.homography), expected)
        };
        let back = inverse(&self.homography).ok_or_else(wrong)?;
        let (w, h) = (self.size.width as f64, self.size.height as f64);
        let corners = [[-0.5, -0.5], [w, -0.5], [w, h], [-0.5, h]].map(|p| denominator(&back, p));
        // Of one sign at the corners, the denominator is of that sign on all of the image.
        let side = corners[0].signum();
        corners.iter().all(|d| d * side > 1e-9).then_some(()).ok_or_else(wrong)
    }
}

/// Two images and the homography between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene<T = u8> {
    /// The plane seen straight on, one pixel to a texture unit.
    pub reference: Image<T>,
    /// The plane seen through the homography.
    pub moving: Image<T>,
    /// Maps points of the reference to the moving image; row by row.
    pub homography: [f64; 9],
}

impl<T: Pixel> Scene<T> {
    /// Draws both images.
    ///
    /// # Errors
    /// As [`SceneOptions::check`].
    pub fn render(options: &SceneOptions, cpu: &Cpu) -> Result<Self> {
        options.check()?;
        const IDENTITY: [f64; 9] = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
        let back = inverse(&options.homography).unwrap_or(IDENTITY);
        let plain = SceneOptions { gain: 1.0, bias: 0.0, blur: 0.0, ..*options };
        Ok(Self {
            reference: draw(&plain, &IDENTITY, 1, cpu),
            moving: draw(options, &back, 2, cpu),
            homography: options.homography,
        })
    }
}

/// One image: the texture through `back` (image to texture), blurred, with gain, bias and noise.
fn draw<T: Pixel>(options: &SceneOptions, back: &[f64; 9], stream: u64, cpu: &Cpu) -> Image<T> {
    let Size { width, .. } = options.size;
    let texture = Texture::of_kind(options.texture, options.seed);
    let mut grey: Image<f32> = Image::new(options.size);
    cpu.for_chunks(grey.data_mut(), width, |y, row| {
        for (x, v) in row.iter_mut().enumerate() {
            *v = pixel(&texture, back, [x as f64, y as f64]) as f32;
        }
    });
    if options.blur > 0.0 {
        grey = blur(&grey, options.blur, cpu);
    }
    let mut out = Image::new(options.size);
    cpu.for_chunks(out.data_mut(), width, |y, row| {
        for (x, (o, &v)) in row.iter_mut().zip(grey.row(y)).enumerate() {
            let noise = Random::at(options.seed, 32 + stream, x as i64, y as i64).normal() * options.noise;
            let value = (options.gain * f64::from(v) + options.bias + noise).clamp(0.0, 1.0);
            *o = T::from_f32(value as f32 * T::WHITE);
        }
    });
    out
}

/// The mean of samples at most a third of a texture unit apart (at most 12 to a side) over one pixel.
fn pixel(texture: &Texture, back: &[f64; 9], p: [f64; 2]) -> f64 {
    let j = jacobian(back, p);
    let stretch = (j[0] * j[0] + j[2] * j[2]).max(j[1] * j[1] + j[3] * j[3]).sqrt();
    let n = (3.0 * stretch).ceil().clamp(1.0, 12.0);
    let width = stretch / n;
    let offset = |i: usize| (i as f64 + 0.5) / n - 0.5;
    let mut sum = 0.0;
    for v in 0..n as usize {
        for u in 0..n as usize {
            let [x, y] = apply(back, [p[0] + offset(u), p[1] + offset(v)]);
            sum += texture.at(x, y, width);
        }
    }
    sum / (n * n)
}

/// A Gaussian blur in two passes, cut at 4σ, the edge repeated.
fn blur(image: &Image<f32>, sigma: f64, cpu: &Cpu) -> Image<f32> {
    let Size { width, height } = image.size();
    let radius = (4.0 * sigma).ceil() as isize;
    let weight = |i: isize| (-0.5 * (i as f64 / sigma).powi(2)).exp();
    let total: f64 = (-radius..=radius).map(weight).sum();
    let taps: Vec<f64> = (-radius..=radius).map(|i| weight(i) / total).collect();
    let clamp =
        |i: usize, k: usize, n: usize| (i as isize + k as isize - radius).clamp(0, n as isize - 1) as usize;
    let sum = |at: &dyn Fn(usize) -> f32| {
        taps.iter().enumerate().map(|(k, t)| t * f64::from(at(k))).sum::<f64>() as f32
    };
    let mut across = Image::new(image.size());
    cpu.for_chunks(across.data_mut(), width, |y, row| {
        let source = image.row(y);
        row.iter_mut().enumerate().for_each(|(x, o)| *o = sum(&|k| source[clamp(x, k, width)]));
    });
    let mut down = Image::new(image.size());
    cpu.for_chunks(down.data_mut(), width, |y, row| {
        row.iter_mut().enumerate().for_each(|(x, o)| *o = sum(&|k| across.row(clamp(y, k, height))[x]));
    });
    down
}

/// The homography of a camera that turns by `angle` (radians, from +x towards +y), comes nearer by `scale`
/// and tilts, all about the centre of an image of this size; the centre moves by `shift` pixels. `tilt` is by
/// how much the denominator changes from the centre to the right and to the lower edge: 0.2 is a strong view.
pub fn viewpoint(size: Size, angle: f64, scale: f64, tilt: [f64; 2], shift: [f64; 2]) -> [f64; 9] {
    let (cx, cy) = ((size.width as f64 - 1.0) / 2.0, (size.height as f64 - 1.0) / 2.0);
    let (px, py) = (tilt[0] / cx.max(1.0), tilt[1] / cy.max(1.0));
    let (s, c) = angle.sin_cos();
    let (s, c) = (s * scale, c * scale);
    // Rows of [R | 0; p | 1] · [1, 0, −cx; 0, 1, −cy; 0, 0, 1].
    let centred = |a: f64, b: f64, t: f64| [a, b, t - a * cx - b * cy];
    let (rx, ry, rw) = (centred(c, -s, 0.0), centred(s, c, 0.0), centred(px, py, 1.0));
    let (tx, ty) = (cx + shift[0], cy + shift[1]);
    let moved = |r: [f64; 3], t: f64| [0, 1, 2].map(|i| r[i] + t * rw[i]);
    let (rx, ry) = (moved(rx, tx), moved(ry, ty));
    let h = [rx[0], rx[1], rx[2], ry[0], ry[1], ry[2], rw[0], rw[1], rw[2]];
    h.map(|v| v / rw[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_viewpoint_keeps_its_promises() {
        let size = Size::new(101, 51);
        let h = viewpoint(size, 0.3, 2.0, [0.1, -0.2], [5.0, 7.0]);
        let [x, y] = apply(&h, [50.0, 25.0]);
        assert!((x - 55.0).abs() < 1e-9 && (y - 32.0).abs() < 1e-9, "the centre goes to ({x}, {y})");
        let j = jacobian(&h, [50.0, 25.0]);
        let turned = viewpoint(size, 0.3, 2.0, [0.0; 2], [0.0; 2]);
        assert!((turned[3].atan2(turned[0]) - 0.3).abs() < 1e-12, "angle");
        assert!((turned[0].hypot(turned[3]) - 2.0).abs() < 1e-12, "scale");
        assert!(j.iter().all(|v| v.is_finite()), "finite");
    }

    /// Warping by whole pixels must give the very same values: no other error than that of 8 bits.
    #[test]
    fn the_truth_is_exact() {
        let homography = [1.0, 0.0, 12.0, 0.0, 1.0, -5.0, 0.0, 0.0, 1.0];
        let options = SceneOptions { size: Size::new(120, 80), homography, ..Default::default() };
        let scene = Scene::<u8>::render(&options, &Cpu::sequential()).unwrap();
        for y in 5..80 {
            assert_eq!(scene.reference.row(y)[..108], scene.moving.row(y - 5)[12..], "row {y}");
        }
        let half = [1.0, 0.0, 0.5, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
        let options = SceneOptions { homography: half, texture: TextureKind::Blobs, ..options };
        let scene = Scene::<f32>::render(&options, &Cpu::sequential()).unwrap();
        let (a, b) = (scene.reference.row(40), scene.moving.row(40));
        let worst = (1..119).map(|x| ((a[x - 1] + a[x]) / 2.0 - b[x]).abs()).fold(0.0, f32::max);
        assert!(worst < 0.03, "half a pixel: {worst}");
    }

    #[test]
    fn photometry_and_threads() {
        let options = SceneOptions {
            size: Size::new(90, 70),
            homography: viewpoint(Size::new(90, 70), 0.4, 1.3, [0.1, 0.05], [3.0, 1.0]),
            blur: 1.2,
            noise: 0.02,
            gain: 0.5,
            bias: 0.25,
            ..Default::default()
        };
        let one = Scene::<u16>::render(&options, &Cpu::sequential()).unwrap();
        let five = Scene::<u16>::render(&options, &Cpu::with_threads(5).unwrap()).unwrap();
        assert_eq!(one, five, "threads");
        let (low, high) = (one.moving.data().iter().min().unwrap(), one.moving.data().iter().max().unwrap());
        assert!(*low > 9_000 && *high < 56_000, "half the contrast about the middle: {low} {high}");
    }

    #[test]
    fn nonsense_is_refused() {
        let wrong = |change: fn(&mut SceneOptions)| {
            let mut options = SceneOptions::default();
            change(&mut options);
            options.check().is_err()
        };
        assert!(wrong(|o| o.homography = [0.0; 9]), "singular");
        assert!(wrong(|o| o.homography[6] = 0.1), "the horizon crosses the image");
        assert!(wrong(|o| o.blur = f64::NAN), "NaN");
        assert!(wrong(|o| o.size = Size::new(0, 4)), "empty");
        assert!(SceneOptions::default().check().is_ok(), "the default");
    }
}
