//! Rectified pairs with exact disparities and occlusions.
//!
//! A scene is a background with surfaces in front of it. Each has a disparity in closed form on the left image
//! ([`Surface`]) and its own texture, which is fixed to the surface. Each view shows at the centre of a pixel the
//! surface of greatest disparity there, with its texture at that point. Neither image is resampled from the other, so a
//! point that both show has the same brightness in both to the last bit, at any sub-pixel disparity. Any rows of either
//! view can be made without the rest, in grey or in colour.

mod panels;
mod surface;

pub use crate::stereo::View;
use surface::{Outline, Surface};

use super::texture::Sampler;
use super::{Photometry, Random, Texture, TextureKind};
use crate::device::Cpu;
use crate::image::{Image, Pixel, Size};
use crate::options::{named, options};
use crate::{Error, Result};
use std::ops::Range;

options! {
    /// What a synthetic stereo scene holds.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct StereoSceneOptions {
        /// Number of surfaces in front of the background.
        surfaces / with_surfaces: usize = 9 => 0..=1000;
        /// What the surfaces are.
        scenery / with_scenery: Scenery = Scenery::Shapes;
        /// What the surfaces look like.
        texture / with_texture: TextureKind = TextureKind::Mixed;
        /// The share of the surfaces in front of the background that have no texture; panels have none anyway.
        plain / with_plain: f64 = 0.0 => 0.0..=1.0, unit "SHARE";
        /// Seed of shapes, textures and noise.
        seed / with_seed: u64 = 0;
        /// Standard deviation of the noise in either image, on the scale from 0 (black) to 1 (white).
        noise / with_noise: f64 = 0.0 => 0.0..=1.0;
    }
    besides {
        /// Size of both images in pixels. Default 640×480.
        size / with_size: Size = Size::new(640, 480);
        /// The least and the greatest disparity on the left image, in pixels, each −10 000 to 10 000. Default 4 to 60.
        disparities / with_disparities: [f64; 2] = [4.0, 60.0];
        /// How the right camera differs from the left. Default: not at all.
        right / with_right: Photometry = Photometry::default();
    }
    check this {
        let [low, high] = this.disparities;
        if this.size.is_empty() || this.size.area() > 1 << 32 {
            return Err(Error::option("size", this.size, "1 to 2^32 pixels"));
        }
        match low <= high && low >= -10_000.0 && high <= 10_000.0 {
            true => this.right.check(),
            false => {
                let expected = "the least and the greatest disparity, -10000 to 10000 pixels";
                Err(Error::option("disparities", format!("{low} to {high}"), expected))
            }
        }
    }
}

named! {
    /// What the surfaces of a scene are.
    pub enum Scenery as "scenery" {
        /// In turn surfaces parallel to the image, slanted ones and domes, grey.
        #[default]
        "shapes": Shapes, "A curved background, and planes and domes in front of it";
        /// Two walls meet in a corner, every third panel is a thin upright bar. Their colours differ and their grey hardly
        /// does: the poor texture of rooms and of rendered scenes.
        "panels": Panels, "Slanted walls, flat coloured panels, thin bars";
    }
}

/// A scene in front of two cameras, of which any rows can be drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct StereoScene {
    options: StereoSceneOptions,
    surfaces: Vec<Surface>,
}

/// Both views of a scene as a whole, and the truth about them.
#[derive(Clone, Debug, PartialEq)]
pub struct StereoPair<T = u8> {
    /// The left image, of one channel or three.
    pub left: Image<T>,
    /// The right image.
    pub right: Image<T>,
    /// Disparities of the left image: what it shows at x lies at x − d on the right.
    pub truth_left: Image<f32>,
    /// Disparities of the right image: what it shows at x lies at x + d on the left.
    pub truth_right: Image<f32>,
    /// 255 where the right image shows what the left one does, 0 where it is hidden or beyond the edge.
    pub visible: Image<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Hit {
    surface: usize,
    /// Its place on the left image.
    x: f64,
    disparity: f64,
}

/// How a channel of a camera records brightness at a pixel. Channel 0 is grey, then follow red, green and blue.
fn camera<T: Pixel>(
    options: &StereoSceneOptions,
    view: View,
    channel: u64,
) -> impl Fn(f64, usize, usize) -> T {
    let (photometry, stream) = match view {
        View::Left => (Photometry::default(), 41 + 2 * channel),
        View::Right => (options.right, 42 + 2 * channel),
    };
    move |brightness, x, y| {
        let mut value = photometry.of(brightness);
        if options.noise > 0.0 {
            value += options.noise * Random::at(options.seed, stream, x as i64, y as i64).normal();
        }
        T::from_f32(value.clamp(0.0, 1.0) as f32 * T::WHITE)
    }
}

/// Some columns of a row, and the surfaces that may lie there, with their numbers.
type Span<'a> = (Range<usize>, Vec<(usize, &'a Surface)>);

impl StereoScene {
    /// The scene that follows from the options' seed.
    ///
    /// # Errors
    /// As [`StereoSceneOptions::check`].
    pub fn new(options: &StereoSceneOptions) -> Result<Self> {
        options.check()?;
        let surfaces = match options.scenery {
            Scenery::Shapes => compose(options),
            Scenery::Panels => panels::compose(options),
        };
        Ok(Self { options: *options, surfaces })
    }

    /// Both views in grey and their truth.
    pub fn render<T: Pixel>(&self, cpu: &Cpu) -> StereoPair<T> {
        self.pair(|view, rows| self.image(view, rows, cpu), cpu)
    }

    /// Both views in red, green and blue, and their truth.
    pub fn render_colour<T: Pixel>(&self, cpu: &Cpu) -> StereoPair<T> {
        self.pair(|view, rows| self.colour(view, rows, cpu), cpu)
    }

    fn pair<T: Pixel>(&self, image: impl Fn(View, Range<usize>) -> Image<T>, cpu: &Cpu) -> StereoPair<T> {
        let rows = || 0..self.options.size.height;
        StereoPair {
            left: image(View::Left, rows()),
            right: image(View::Right, rows()),
            truth_left: self.truth(View::Left, rows(), cpu),
            truth_right: self.truth(View::Right, rows(), cpu),
            visible: self.visible(View::Left, rows(), cpu),
        }
    }

    /// Some rows of a view in grey, the luma of the colours; rows beyond the image belong to a larger one.
    pub fn image<T: Pixel>(&self, view: View, rows: Range<usize>, cpu: &Cpu) -> Image<T> {
        let camera = camera(&self.options, view, 0);
        self.rows(view, rows, cpu, &self.samplers(), |samplers, hit, x, y| {
            let grey = hit.map_or(0.0, |h| self.surfaces[h.surface].grey(self.brightness(samplers, h, y)));
            camera(grey, x, y)
        })
    }

    /// Some rows of a view in red, green and blue.
    pub fn colour<T: Pixel>(&self, view: View, rows: Range<usize>, cpu: &Cpu) -> Image<T> {
        let cameras = [1, 2, 3].map(|channel| camera(&self.options, view, channel));
        let pixels = self.rows(view, rows, cpu, &self.samplers(), |samplers, hit, x, y| {
            let brightness = hit.map_or(0.0, |h| self.brightness(samplers, h, y));
            let tint = hit.map_or([0.0; 3], |h| self.surfaces[h.surface].tint);
            [0, 1, 2].map(|c| cameras[c](brightness * tint[c], x, y))
        });
        let mut image = Image::filled(pixels.size(), 3, T::default());
        image.data_mut().copy_from_slice(pixels.data().as_flattened());
        image
    }

    fn samplers(&self) -> Vec<Sampler> {
        let (kind, seed) = (self.options.texture, self.options.seed);
        let numbers = 0..self.surfaces.len() as u64;
        numbers.map(|i| Sampler::new(Texture::of_kind(kind, seed ^ (i << 40)))).collect()
    }

    fn brightness(&self, samplers: &mut [Sampler], hit: Hit, y: usize) -> f64 {
        let plain = self.surfaces[hit.surface].plain;
        plain.unwrap_or_else(|| samplers[hit.surface].at(hit.x, y as f64, 1.0))
    }

    /// The disparities of some rows of a view.
    pub fn truth(&self, view: View, rows: Range<usize>, cpu: &Cpu) -> Image<f32> {
        self.rows(view, rows, cpu, &[(); 0], |_, hit, _, _| hit.map_or(f32::INFINITY, |h| h.disparity as f32))
    }

    /// 255 in some rows of a view where the other shows the same, 0 elsewhere.
    pub fn visible(&self, view: View, rows: Range<usize>, cpu: &Cpu) -> Image<u8> {
        let end = (self.options.size.width - 1) as f64;
        let other = if view == View::Left { View::Right } else { View::Left };
        self.rows(view, rows, cpu, &[(); 0], |_, hit, _, y| {
            let Some(h) = hit else { return 0 };
            let there = if other == View::Left { h.x } else { h.x - h.disparity };
            let hidden = |(i, s): (usize, &Surface)| {
                let front = hit_of(i, s, other, there, y as f64);
                i != h.surface && front.is_some_and(|f| (f.disparity, i) > (h.disparity, h.surface))
            };
            let seen = (0.0..=end).contains(&there) && !self.surfaces.iter().enumerate().any(hidden);
            255 * u8::from(seen)
        })
    }

    /// Calls `f(state, hit, x, y)` for every pixel of some rows of a view. Each row begins with a copy of the state.
    fn rows<T: Copy + Default + Send, S: Clone + Sync>(
        &self,
        view: View,
        rows: Range<usize>,
        cpu: &Cpu,
        start: &[S],
        f: impl Fn(&mut [S], Option<Hit>, usize, usize) -> T + Sync + Send,
    ) -> Image<T> {
        let width = self.options.size.width;
        let mut image = Image::new(Size::new(width, rows.len()));
        cpu.for_chunks(image.data_mut(), width, |i, row| {
            let y = rows.start + i;
            let mut state = start.to_vec();
            for (columns, surfaces) in self.spans(view, y) {
                for x in columns {
                    let hits = surfaces.iter().filter_map(|(i, s)| hit_of(*i, s, view, x as f64, y as f64));
                    let front = hits.reduce(|a, b| if b.disparity >= a.disparity { b } else { a });
                    row[x] = f(&mut state, front, x, y);
                }
            }
        });
        image
    }

    /// A row divided where surfaces begin and end, each part with the surfaces that may lie in it.
    fn spans(&self, view: View, y: usize) -> Vec<Span<'_>> {
        let width = self.options.size.width;
        let here: Vec<(usize, &Surface, Range<usize>)> = (self.surfaces.iter().enumerate())
            .filter(|(_, s)| s.meets(y as f64))
            .map(|(i, s)| {
                // Negative columns become 0.
                let [a, b] = s.columns(y as f64)[view as usize];
                (i, s, (a.floor() as usize).min(width)..(b.ceil() as usize).min(width))
            })
            .collect();
        let mut cuts: Vec<usize> = here.iter().flat_map(|(.., c)| [c.start, c.end]).collect();
        cuts.extend([0, width]);
        cuts.sort_unstable();
        cuts.dedup();
        let span = |c: &[usize]| {
            let inside = here.iter().filter(|(.., s)| s.start <= c[0] && c[1] <= s.end);
            (c[0]..c[1], inside.map(|(i, s, _)| (*i, *s)).collect())
        };
        cuts.windows(2).map(span).collect()
    }
}

/// The point of a surface that a view shows at (x, y).
#[inline(always)]
fn hit_of(index: usize, surface: &Surface, view: View, x: f64, y: f64) -> Option<Hit> {
    let (x, disparity) = match view {
        View::Left => (x, surface.seen_left(x, y)?),
        View::Right => {
            let left = surface.seen_right(x, y)?;
            // The difference of the two columns would lose the last bits of a small disparity.
            (left, surface.seen_left(left, y)?)
        }
    };
    Some(Hit { surface: index, x, disparity })
}

/// A background in the farthest quarter of the disparities, and surfaces in front; on the left all stay in the range.
fn compose(options: &StereoSceneOptions) -> Vec<Surface> {
    let mut random = Random::new(options.seed ^ 0x0057_e7e0);
    let [low, high] = options.disparities;
    let (w, h) = (options.size.width as f64, options.size.height as f64);
    let centre = [(w - 1.0) / 2.0, (h - 1.0) / 2.0];
    let amplitude = ((high - low) / 8.0).min(0.1 * w);
    let (across, down, bulge) =
        (random.range(-0.4, 0.4), random.range(-0.4, 0.4), random.range(-0.1, 0.1) * amplitude);
    let background = Surface {
        centre,
        reach: [w / 2.0, h / 2.0],
        disparity: low + amplitude,
        slope: [across * amplitude / (w / 2.0), down * amplitude / (h / 2.0)],
        bulge,
        ..Surface::default()
    };
    let mut surfaces = vec![background];
    surfaces.extend((0..options.surfaces).map(|i| compose_one(i, options, &mut random)));
    for surface in &mut surfaces[1..] {
        let (chance, grey) = (random.unit(), random.range(0.15, 0.85));
        surface.plain = (chance < options.plain).then_some(grey);
    }
    surfaces
}

fn compose_one(i: usize, options: &StereoSceneOptions, random: &mut Random) -> Surface {
    let [low, high] = options.disparities;
    let (w, h) = (options.size.width as f64, options.size.height as f64);
    let reach = [w, h].map(|_| (random.range(0.06, 0.2) * w.min(h)).max(0.5));
    let centre = [random.range(0.05, 0.95) * w, random.range(0.05, 0.95) * h];
    let near = low + (high - low) * random.range(0.3, 1.0);
    // The greatest difference from the centre's disparity that stays within the range and is not too steep.
    let room = (high - near).min(near - low).min(0.2 * reach[0]).max(0.0);
    let (across, down) = (random.range(-0.5, 0.5), random.range(-0.5, 0.5));
    let (slope, bulge) = match i % 3 {
        0 => ([0.0; 2], 0.0),
        1 => ([across * room / reach[0], down * room / reach[1]], 0.0),
        _ => ([0.3 * across * room / reach[0], 0.3 * down * room / reach[1]], 0.3 * room),
    };
    let outline = if random.unit() < 0.5 { Outline::Ellipse } else { Outline::Rectangle };
    Surface { outline, centre, reach, disparity: near, slope, bulge, ..Surface::default() }
}

#[cfg(test)]
mod tests;
