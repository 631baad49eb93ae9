//! Structure, which pictures of different sensors have in common: where one is bright the other may be dark, but edges
//! are in the same places and have the same directions.
//!
//! 1. **Intensity** (`intensity`): grey from 0 to 1, and which pixels count. Those of a dark border do not.
//! 2. **Channels** (`channels`): brightness less its local mean, over its local deviation; gradients at two scales, each
//!    over its local mean; their directions folded to 180° and shared between six bins. No sign of contrast remains,
//!    and no unit of brightness.
//! 3. **Corners** (`corners`): where edges of several directions meet, spread evenly over the picture, to parts of a
//!    pixel.
//! 4. **Descriptor** (`polar`): the channels around a corner on three rings of twelve sectors. A turn of the picture by
//!    30° moves sectors and bins by one, which only permutes the bytes. Corners therefore need no direction, on which
//!    different sensors would not agree.
//!
//! **Numbers.** f32 without fusing, but for the filters that are called; local means are sums in the order of `shrink`
//! and `gauss`. No value depends on the threads or the SIMD level: tests compare with a plain form (`reference`).

mod channels;
mod corners;
mod intensity;
pub(crate) mod lanes;
mod means;
mod polar;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

pub(crate) use channels::{Channels, halved_lanes};
pub(crate) use intensity::Intensity;
pub(crate) use polar::{TURNS, turned};

use super::{Descriptors, Features, Keypoint};
use crate::Result;
use crate::device::Cpu;
use crate::image::{Image, Size};
use std::ops::Range;

/// The most corners of a level.
const MOST: usize = 1500;

/// A picture at one size, with its corners.
#[derive(Debug)]
pub(crate) struct Level {
    /// Its size over that of the picture.
    pub(crate) scale: f64,
    /// Corners in pixels of the picture, with their descriptors.
    pub(crate) features: Features,
    /// Its channels at half its size.
    pub(crate) lanes: Image<f32>,
}

/// The least side of a level, in pixels; a picture that is smaller has one level.
const LEAST_SIDE: f64 = 24.0;

/// The corners of a picture at its own size and at smaller ones, the last over its own by `range`: from one to the next
/// by a third of an octave or a little less. Of these levels, numbered from 0, those in `numbers`.
///
/// # Errors
/// [`Error::Cancelled`](crate::Error::Cancelled).
pub(crate) fn levels(
    intensity: &Intensity,
    range: f64,
    numbers: Range<usize>,
    cpu: &Cpu,
) -> Result<Vec<Level>> {
    let _stage = cpu.stage("structure");
    let octaves = libm::log2(range);
    let steps = (3.0 * octaves - 1e-9).ceil().max(0.0);
    let size = intensity.size();
    let scale = |i: usize| if i == 0 { 1.0 } else { libm::exp2(-octaves * i as f64 / steps) };
    let is_seen = |i: &usize| *i == 0 || size.width.min(size.height) as f64 * scale(*i) >= LEAST_SIDE;
    let end = (0..=steps as usize).take_while(is_seen).count().min(numbers.end);
    cpu.try_map(end.saturating_sub(numbers.start), |i| level(intensity, scale(numbers.start + i), cpu))
}

/// Corners with their descriptors, in pixels of a picture with these channels at half its size.
pub(crate) fn described(keypoints: Vec<Keypoint>, lanes: &Image<f32>, cpu: &Cpu) -> Result<Features> {
    let descriptors = Descriptors::U8(polar::describe(lanes, &keypoints, cpu)?);
    let Size { width, height } = lanes.size();
    Ok(Features { keypoints, descriptors, dimension: polar::LENGTH, image: Size::new(2 * width, 2 * height) })
}

fn level(intensity: &Intensity, scale: f64, cpu: &Cpu) -> Result<Level> {
    let full = intensity.size();
    let part = |n: usize| ((n as f64 * scale).round() as usize).clamp(1, n);
    let size = Size::new(part(full.width), part(full.height));
    let channels = Channels::of(&intensity.shrunk(size, cpu)?, cpu)?;
    let lanes = halved_lanes(&channels, cpu)?;
    let mut features = described(corners::corners(&channels, MOST, cpu)?, &lanes, cpu)?;
    let ratio = [full.width as f32 / size.width as f32, full.height as f32 / size.height as f32];
    for k in &mut features.keypoints {
        (k.x, k.y) = ((k.x + 0.5) * ratio[0] - 0.5, (k.y + 0.5) * ratio[1] - 0.5);
        k.scale *= ratio[0];
    }
    features.image = full;
    Ok(Level { scale, features, lanes })
}
