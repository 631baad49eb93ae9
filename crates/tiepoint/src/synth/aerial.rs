//! A block of aerial photographs over textured terrain, with exact cameras.
//!
//! The terrain is z = h(x, y), smooth value noise; its brightness is a [`Texture`] of (x, y). The cameras fly in
//! strips, look down, and are turned and tilted a little at random: a point X of the ground is seen at K R (X − C),
//! with focal length and principal point in pixels, no distortion, and pixel centres at integers. A pixel shows the
//! ground that its ray meets. The point is found by the iteration z ← h(the ray at height z), whose steps shrink by the
//! slope of the terrain times that of the ray; nothing is resampled. Lengths are in metres, z points up, and y falls
//! down the image.

use super::texture::Sampler;
use super::{Random, Texture};
use crate::device::Cpu;
use crate::geometry::{cross, direction};
use crate::image::{Image, Pixel, Size};
use crate::options::{Above, options};
use crate::{Error, Result};

options! {
    /// A flight and its terrain.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct AerialOptions {
        /// Number of photographs, in as many strips as make the block about square.
        photographs / with_photographs: usize = 20 => 1..=1_000_000;
        /// Focal length as a multiple of the image's longer side.
        focal / with_focal: f64 = 1.0 => 0.3..=10.0;
        /// Flying height over the mean terrain in metres.
        height / with_height: f64 = 100.0 => Above(0.0), unit "M";
        /// Share of a photograph that the next one in its strip shows too.
        overlap / with_overlap: f64 = 0.7 => 0.0..=0.999, unit "SHARE";
        /// Share of a photograph that the next strip shows too.
        side_overlap / with_side_overlap: f64 = 0.5 => 0.0..=0.999, unit "SHARE";
        /// Greatest height of the terrain over its mean, as a share of the flying height.
        relief / with_relief: f64 = 0.1 => 0.0..=0.2, unit "SHARE";
        /// Greatest tilt of a camera, as its tangent; headings vary by as much.
        tilt / with_tilt: f64 = 0.05 => 0.0..=0.2;
        /// Standard deviation of the noise, from 0 (black) to 1 (white).
        noise / with_noise: f64 = 0.01 => 0.0..=1.0;
        /// Seed of everything.
        seed / with_seed: u64 = 0;
    }
    besides {
        /// Size of a photograph in pixels, neither side 0. Default 800×600.
        size / with_size: Size = Size::new(800, 600);
    }
    check this {
        match this.size.is_empty() {
            true => Err(Error::option("size", this.size, "no side of 0")),
            false => Ok(()),
        }
    }
}

/// The camera of one photograph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AerialCamera {
    /// Its position, in metres.
    pub centre: [f64; 3],
    /// Its axes in the world, row by row: x to the right, y down in the image, z along the view.
    pub rotation: [[f64; 3]; 3],
    /// Focal length in pixels.
    pub focal_px: f64,
    /// Principal point, in pixels.
    pub principal: [f64; 2],
}

/// The photographs of a flight, drawn one at a time.
#[derive(Clone, Debug)]
pub struct AerialBlock {
    options: AerialOptions,
    cameras: Vec<AerialCamera>,
    texture: Texture,
    /// The size on the ground of a pixel in the middle of a photograph, in metres.
    pixel: f64,
}

/// Spacing of the lattice of terrain heights, as a share of the flying height.
const SPACING: f64 = 0.5;

impl AerialBlock {
    /// Plans the flight.
    ///
    /// # Errors
    /// As [`AerialOptions::check`].
    pub fn new(options: AerialOptions) -> Result<Self> {
        options.check()?;
        let (width, height) = (options.size.width as f64, options.size.height as f64);
        let focal_px = options.focal * width.max(height);
        let pixel = options.height / focal_px;
        let in_strip = ((options.photographs as f64).sqrt().ceil() as usize).max(1);
        let step = [width * pixel * (1.0 - options.overlap), height * pixel * (1.0 - options.side_overlap)];
        let camera = |i: usize| {
            let mut random = Random::at(options.seed, 1, i as i64, 0);
            let mut small = || random.range(-options.tilt, options.tilt);
            let [across, along, heading] = [small(), small(), small()];
            let [dx, dy, dz] = [small(), small(), small()].map(|d| 0.5 * d * options.height);
            let place = [(i % in_strip) as f64 * step[0] + dx, (i / in_strip) as f64 * step[1] + dy];
            AerialCamera {
                centre: [place[0], place[1], options.height + dz],
                rotation: looking([across, along], heading),
                focal_px,
                principal: [(width - 1.0) / 2.0, (height - 1.0) / 2.0],
            }
        };
        let cameras = (0..options.photographs).map(camera).collect();
        Ok(Self { options, cameras, texture: Texture::new(options.seed ^ 0x61_65_72_69), pixel })
    }

    /// The cameras, in the order of the flight.
    pub fn cameras(&self) -> &[AerialCamera] {
        &self.cameras
    }

    /// The height of the terrain at (x, y), in metres.
    pub fn terrain(&self, x: f64, y: f64) -> f64 {
        let spacing = SPACING * self.options.height;
        let (u, v) = (x / spacing, y / spacing);
        let (i, j) = (u.floor(), v.floor());
        let smooth = |t: f64| t * t * (3.0 - 2.0 * t);
        let (s, t) = (smooth(u - i), smooth(v - j));
        let corner =
            |a: i64, b: i64| Random::at(self.options.seed, 2, i as i64 + a, j as i64 + b).range(-1.0, 1.0);
        let row = |b| corner(0, b) + (corner(1, b) - corner(0, b)) * s;
        self.options.relief * self.options.height * (row(0) + (row(1) - row(0)) * t)
    }

    /// The point of the ground that a photograph shows at a pixel, in metres.
    pub fn ground(&self, photograph: usize, [x, y]: [f64; 2]) -> [f64; 3] {
        let camera = &self.cameras[photograph];
        let ray =
            [(x - camera.principal[0]) / camera.focal_px, (y - camera.principal[1]) / camera.focal_px, 1.0];
        let direction: [f64; 3] =
            std::array::from_fn(|k| (0..3).map(|row| camera.rotation[row][k] * ray[row]).sum());
        let at = |z: f64| {
            let t = (z - camera.centre[2]) / direction[2];
            [camera.centre[0] + t * direction[0], camera.centre[1] + t * direction[1]]
        };
        let mut z = 0.0;
        for _ in 0..60 {
            let [x, y] = at(z);
            let last = std::mem::replace(&mut z, self.terrain(x, y));
            if (z - last).abs() < 1e-9 * self.options.height {
                break;
            }
        }
        let [x, y] = at(z);
        [x, y, z]
    }

    /// The pixel at which a photograph shows a point of the world; `None` outside the image or behind the camera.
    pub fn place(&self, photograph: usize, point: [f64; 3]) -> Option<[f64; 2]> {
        let camera = &self.cameras[photograph];
        let from: [f64; 3] = std::array::from_fn(|k| point[k] - camera.centre[k]);
        let [x, y, z] = camera.rotation.map(|axis| (0..3).map(|k| axis[k] * from[k]).sum::<f64>());
        let at =
            [camera.focal_px * x / z + camera.principal[0], camera.focal_px * y / z + camera.principal[1]];
        let size = [self.options.size.width, self.options.size.height].map(|n| n as f64 - 0.5);
        let inside = z > 0.0 && (0..2).all(|k| at[k] >= -0.5 && at[k] <= size[k]);
        inside.then_some(at)
    }

    /// The share of photograph `a` that `b` shows too, measured on a grid of 16 × 16 of its pixels.
    pub fn shared(&self, a: usize, b: usize) -> f64 {
        const GRID: usize = 16;
        let Size { width, height } = self.options.size;
        let place = |i: usize, n: usize| (i as f64 + 0.5) / GRID as f64 * n as f64 - 0.5;
        let seen = (0..GRID * GRID).filter(|i| {
            let pixel = [place(i % GRID, width), place(i / GRID, height)];
            self.place(b, self.ground(a, pixel)).is_some()
        });
        seen.count() as f64 / (GRID * GRID) as f64
    }

    /// Draws a photograph.
    ///
    /// # Errors
    /// [`Error::Option`] if there is no such photograph, [`Error::Memory`] when there is not enough memory.
    pub fn photograph<T: Pixel>(&self, number: usize, cpu: &Cpu) -> Result<Image<T>> {
        if number >= self.cameras.len() {
            return Err(Error::option("photograph", number, "one of the flight"));
        }
        let size = self.options.size;
        let mut image = Image::try_filled(size, 1, T::default())?;
        // One pixel is one unit of the texture, whose finest shapes measure a few units.
        let scale = 1.0 / self.pixel;
        cpu.try_for_chunks(image.data_mut(), size.width, |y, row| {
            let mut random = Random::at(self.options.seed, 3 + number as u64, 0, y as i64);
            let mut sampler = Sampler::new(self.texture);
            for (x, out) in row.iter_mut().enumerate() {
                let [east, north, _] = self.ground(number, [x as f64, y as f64]);
                let grey =
                    sampler.at(east * scale, north * scale, 1.0) + self.options.noise * random.normal();
                *out = T::from_f32(grey.clamp(0.0, 1.0) as f32 * T::WHITE);
            }
        })?;
        Ok(image)
    }
}

/// The axes of a camera that looks down, tilted by two tangents and turned by about `heading` radians.
fn looking(tilt: [f64; 2], heading: f64) -> [[f64; 3]; 3] {
    let view = direction([tilt[0], tilt[1], -1.0]);
    let down = direction(cross(view, [1.0, heading, 0.0]));
    [cross(down, view), down, view]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ground_points_of_pixels_project_back_to_them() {
        let block = AerialBlock::new(AerialOptions::default().with_photographs(9)).unwrap();
        for photograph in 0..9 {
            for pixel in [[0.0, 0.0], [799.0, 3.5], [400.25, 300.75], [12.0, 599.0]] {
                let ground = block.ground(photograph, pixel);
                let off = (ground[2] - block.terrain(ground[0], ground[1])).abs();
                assert!(off < 1e-6, "on the terrain: {ground:?}");
                let back = block.place(photograph, ground).unwrap();
                assert!((0..2).all(|k| (back[k] - pixel[k]).abs() < 1e-6), "{pixel:?} and {back:?}");
            }
        }
        let [x, y, z] = block.cameras()[4].rotation;
        let dot = |a: [f64; 3], b: [f64; 3]| (0..3).map(|k| a[k] * b[k]).sum::<f64>();
        for (a, b, wanted) in [(x, x, 1.0), (y, y, 1.0), (z, z, 1.0), (x, y, 0.0), (y, z, 0.0), (x, z, 0.0)] {
            assert!((dot(a, b) - wanted).abs() < 1e-12, "axes at right angles");
        }
    }

    #[test]
    fn neighbours_overlap_as_asked_for() {
        let options = AerialOptions::default().with_photographs(16).with_tilt(0.0).with_relief(0.0);
        let block = AerialBlock::new(options).unwrap();
        assert!((block.shared(0, 1) - 0.7).abs() < 0.04, "in a strip: {}", block.shared(0, 1));
        assert!((block.shared(0, 4) - 0.5).abs() < 0.04, "of two strips: {}", block.shared(0, 4));
        assert_eq!(block.shared(0, 15), 0.0, "far away");
    }

    #[test]
    fn photographs_show_the_same_ground_alike() {
        let options =
            AerialOptions::default().with_photographs(4).with_size(Size::new(160, 120)).with_noise(0.0);
        let block = AerialBlock::new(options).unwrap();
        let cpu = Cpu::with_threads(2).unwrap();
        let [a, b] = [0, 1].map(|i| block.photograph::<f32>(i, &cpu).unwrap());
        assert_eq!(a, block.photograph(0, &Cpu::sequential()).unwrap(), "for any threads");
        let (mut seen, mut differ) = (0, 0.0);
        for (x, y) in (0..120).flat_map(|y| (0..160).map(move |x| (x, y))) {
            let Some([u, v]) = block.place(1, block.ground(0, [x as f64, y as f64])) else { continue };
            let (i, j) = (u.round().max(0.0) as usize, v.round().max(0.0) as usize);
            seen += 1;
            differ += (a.row(y)[x] - b.row(j)[i]).abs();
        }
        assert!(seen > 160 * 120 / 2, "{seen} pixels are seen twice");
        assert!(differ / (seen as f32) < 0.06, "they differ by {}", differ / seen as f32);
        assert!(block.photograph::<u8>(4, &cpu).is_err(), "there is no fifth");
    }
}
