//! Two images of one plane, and the homography between them.
//!
//! Both images are drawn from the same continuous texture and neither is resampled from the other, so the truth is
//! exact. A pixel of the moving image is the mean of a grid of samples over the quadrilateral that it covers in the
//! reference.

use super::texture::Sampler;
use super::{Photometry, Random, Texture, TextureKind};
use crate::device::Cpu;
use crate::geometry::Homography;
use crate::image::{Image, Pixel, Size};
use crate::numeric::exp_f64;
use crate::options::options;
use crate::{Error, Result};

options! {
    /// What a synthetic scene of one plane holds.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct SceneOptions {
        /// What the plane looks like.
        texture / with_texture: TextureKind = TextureKind::Mixed;
        /// Seed of texture and noise.
        seed / with_seed: u64 = 0;
        /// Standard deviation of a Gaussian blur of the moving image, in pixels.
        blur / with_blur: f64 = 0.0 => 0.0..=100.0, unit "PX";
        /// Standard deviation of the noise in either image, on the scale from 0 (black) to 1 (white).
        noise / with_noise: f64 = 0.0 => 0.0..=1.0;
    }
    besides {
        /// Size of both images in pixels. Default 640×480.
        size / with_size: Size = Size::new(640, 480);
        /// Maps points of the reference to the moving image. Default: the identity.
        moving_from_reference / with_moving_from_reference: Homography = Homography::default();
        /// How the moving image's light differs from the reference's. Default: not at all.
        moving / with_moving: Photometry = Photometry::default();
    }
    check this {
        this.moving.check()?;
        match this.size.is_empty() || this.size.area() > 1 << 32 {
            true => Err(Error::option("size", this.size, "1 to 2^32 pixels")),
            false => this.reference_from_moving().map(drop),
        }
    }
}

impl SceneOptions {
    /// The inverse of the homography, which must be defined on all of the moving image.
    fn reference_from_moving(&self) -> Result<Homography> {
        let wrong = || {
            let expected = "an invertible matrix that sends no point of the moving image to infinity";
            Error::option("moving_from_reference", format!("{:?}", self.moving_from_reference), expected)
        };
        let inverse = self.moving_from_reference.inverse().ok_or_else(wrong)?;
        let [p, q, r] = inverse.matrix()[2];
        let (w, h) = (self.size.width as f64, self.size.height as f64);
        let corners = [[-0.5, -0.5], [w, -0.5], [w, h], [-0.5, h]].map(|[x, y]| p * x + q * y + r);
        // If the denominator has the same sign at all corners, it has that sign on the whole image.
        let sign = corners[0].signum();
        corners.iter().all(|d| d * sign > 1e-9).then_some(inverse).ok_or_else(wrong)
    }
}

/// Two images and the homography between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene<T = u8> {
    /// The plane seen straight on, one pixel to a texture unit.
    pub reference: Image<T>,
    /// The plane seen through the homography.
    pub moving: Image<T>,
    /// Maps points of the reference to the moving image.
    pub moving_from_reference: Homography,
}

impl<T: Pixel> Scene<T> {
    /// Draws both images.
    ///
    /// # Errors
    /// As [`SceneOptions::check`], and [`Error::Memory`] when there is not enough memory for the images.
    pub fn render(options: &SceneOptions, cpu: &Cpu) -> Result<Self> {
        options.check()?;
        let reference_from_moving = options.reference_from_moving()?;
        let plain = SceneOptions { moving: Photometry::default(), blur: 0.0, ..*options };
        Ok(Self {
            reference: draw(&plain, &Homography::default(), 1, cpu)?,
            moving: draw(options, &reference_from_moving, 2, cpu)?,
            moving_from_reference: options.moving_from_reference,
        })
    }
}

/// One image: the texture seen through the map from image to texture, blurred, with photometry and noise.
fn draw<T: Pixel>(
    options: &SceneOptions,
    texture_from_image: &Homography,
    stream: u64,
    cpu: &Cpu,
) -> Result<Image<T>> {
    let Size { width, .. } = options.size;
    let texture = Texture::of_kind(options.texture, options.seed);
    let mut grey: Image<f32> = Image::try_filled(options.size, 1, 0.0)?;
    cpu.try_for_chunks(grey.data_mut(), width, |y, row| {
        let mut sampler = Sampler::new(texture);
        for (x, v) in row.iter_mut().enumerate() {
            *v = pixel(&mut sampler, texture_from_image, [x as f64, y as f64]) as f32;
        }
    })?;
    if options.blur > 0.0 {
        grey = blur(&grey, options.blur, cpu);
    }
    let mut out = Image::try_filled(options.size, 1, T::default())?;
    cpu.try_for_chunks(out.data_mut(), width, |y, row| {
        for (x, (o, &v)) in row.iter_mut().zip(grey.row(y)).enumerate() {
            let noise = Random::at(options.seed, 32 + stream, x as i64, y as i64).normal() * options.noise;
            let value = (options.moving.of(f64::from(v)) + noise).clamp(0.0, 1.0);
            *o = T::from_f32(value as f32 * T::WHITE);
        }
    })?;
    Ok(out)
}

/// The mean of samples at most a third of a texture unit apart (at most 12 to a side) over one pixel.
fn pixel(sampler: &mut Sampler, texture_from_image: &Homography, p: [f64; 2]) -> f64 {
    let j = texture_from_image.derivative(p);
    let stretch = (j[0] * j[0] + j[2] * j[2]).max(j[1] * j[1] + j[3] * j[3]).sqrt();
    let n = (3.0 * stretch).ceil().clamp(1.0, 12.0);
    let width = stretch / n;
    let offset = |i: usize| (i as f64 + 0.5) / n - 0.5;
    let mut sum = 0.0;
    for v in 0..n as usize {
        for u in 0..n as usize {
            if let Some([x, y]) = texture_from_image.apply([p[0] + offset(u), p[1] + offset(v)]) {
                sum += sampler.at(x, y, width);
            }
        }
    }
    sum / (n * n)
}

/// A Gaussian blur in two passes, cut off at 4σ, with edge pixels repeated.
fn blur(image: &Image<f32>, sigma: f64, cpu: &Cpu) -> Image<f32> {
    let Size { width, height } = image.size();
    let radius = (4.0 * sigma).ceil() as isize;
    let weight = |i: isize| exp_f64(-0.5 * (i as f64 / sigma) * (i as f64 / sigma));
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

/// The homography of a camera that turns by `angle` (radians, from +x towards +y), magnifies by `scale`
/// and tilts, all about the centre of an image of this size; the centre moves by `shift` pixels. `tilt` is the change
/// of the denominator from the centre to the right and to the lower edge: 0.2 is a strong perspective.
///
/// # Errors
/// [`Error::Degenerate`] for a scale of 0, or numbers so large that the matrix is singular.
pub fn viewpoint(size: Size, angle: f64, scale: f64, tilt: [f64; 2], shift: [f64; 2]) -> Result<Homography> {
    let (cx, cy) = ((size.width as f64 - 1.0) / 2.0, (size.height as f64 - 1.0) / 2.0);
    let (px, py) = (tilt[0] / cx.max(1.0), tilt[1] / cy.max(1.0));
    let (s, c) = libm::sincos(angle);
    let (s, c) = (s * scale, c * scale);
    // Rows of [R | 0; p | 1] · [1, 0, −cx; 0, 1, −cy; 0, 0, 1].
    let centred = |a: f64, b: f64, t: f64| [a, b, t - a * cx - b * cy];
    let (rx, ry, rw) = (centred(c, -s, 0.0), centred(s, c, 0.0), centred(px, py, 1.0));
    let (tx, ty) = (cx + shift[0], cy + shift[1]);
    let moved = |r: [f64; 3], t: f64| [0, 1, 2].map(|i| r[i] + t * rw[i]);
    let (rx, ry) = (moved(rx, tx), moved(ry, ty));
    Homography::new([rx, ry, rw].map(|row| row.map(|v| v / rw[2])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_viewpoint_has_the_angle_scale_and_centre_asked_for() {
        let size = Size::new(101, 51);
        let h = viewpoint(size, 0.3, 2.0, [0.1, -0.2], [5.0, 7.0]).unwrap();
        let [x, y] = h.apply([50.0, 25.0]).unwrap();
        assert!((x - 55.0).abs() < 1e-9 && (y - 32.0).abs() < 1e-9, "the centre goes to ({x}, {y})");
        let j = h.derivative([50.0, 25.0]);
        let [[c, _, _], [s, _, _], _] = viewpoint(size, 0.3, 2.0, [0.0; 2], [0.0; 2]).unwrap().matrix();
        assert!((s.atan2(c) - 0.3).abs() < 1e-12, "angle");
        assert!((c.hypot(s) - 2.0).abs() < 1e-12, "scale");
        assert!(j.iter().all(|v| v.is_finite()), "finite");
    }

    /// A shift by whole pixels must give the same values.
    #[test]
    fn the_truth_is_exact() {
        let shift = |x, y| Homography::new([[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]]).unwrap();
        let options = SceneOptions::default().with_size(Size::new(120, 80));
        let options = options.with_moving_from_reference(shift(12.0, -5.0));
        let scene = Scene::<u8>::render(&options, &Cpu::sequential()).unwrap();
        for y in 5..80 {
            assert_eq!(scene.reference.row(y)[..108], scene.moving.row(y - 5)[12..], "row {y}");
        }
        let options = options.with_moving_from_reference(shift(0.5, 0.0)).with_texture(TextureKind::Blobs);
        let scene = Scene::<f32>::render(&options, &Cpu::sequential()).unwrap();
        let (a, b) = (scene.reference.row(40), scene.moving.row(40));
        let worst = (1..119).map(|x| ((a[x - 1] + a[x]) / 2.0 - b[x]).abs()).fold(0.0, f32::max);
        assert!(worst < 0.03, "half a pixel: {worst}");
    }

    #[test]
    fn photometry_and_threads() {
        let size = Size::new(90, 70);
        let truth = viewpoint(size, 0.4, 1.3, [0.1, 0.05], [3.0, 1.0]).unwrap();
        let light = Photometry::default().with_gain(0.5).with_bias(0.25);
        let options = SceneOptions::default().with_size(size).with_moving_from_reference(truth);
        let options = options.with_blur(1.2).with_noise(0.02).with_moving(light);
        let one = Scene::<u16>::render(&options, &Cpu::sequential()).unwrap();
        let five = Scene::<u16>::render(&options, &Cpu::with_threads(5).unwrap()).unwrap();
        assert_eq!(one, five, "threads");
        let (low, high) = (one.moving.data().iter().min().unwrap(), one.moving.data().iter().max().unwrap());
        assert!(*low > 9_000 && *high < 56_000, "half the contrast about the middle: {low} {high}");
    }

    #[test]
    fn gamma_changes_the_moving_image_alone() {
        let plain = SceneOptions { size: Size::new(60, 40), ..Default::default() };
        let before = Scene::<f32>::render(&plain, &Cpu::sequential()).unwrap();
        let brighter = plain.with_moving(Photometry::default().with_gamma(0.5));
        let after = Scene::<f32>::render(&brighter, &Cpu::sequential()).unwrap();
        assert_eq!(before.reference, after.reference, "the reference");
        for (v, root) in before.moving.data().iter().zip(after.moving.data()) {
            assert!((v.sqrt() - root).abs() < 1e-6, "{v} became {root}");
        }
        let none = plain.with_moving(Photometry::default().with_gamma(0.0));
        assert!(matches!(none.check(), Err(Error::Option { name: "gamma", .. })), "no power of 0");
    }

    #[test]
    fn wrong_options_and_viewpoints_are_refused() {
        let options = SceneOptions::default();
        let across = Homography::new([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.1, 0.0, 1.0]]).unwrap();
        let horizon = options.with_moving_from_reference(across);
        assert!(horizon.check().is_err(), "the horizon crosses the image");
        assert!(viewpoint(Size::new(9, 9), 0.0, 0.0, [0.0; 2], [0.0; 2]).is_err(), "nothing left");
        assert!(options.with_blur(f64::NAN).check().is_err(), "NaN");
        assert!(options.with_size(Size::new(0, 4)).check().is_err(), "empty");
        assert!(options.check().is_ok(), "the default");
    }
}
