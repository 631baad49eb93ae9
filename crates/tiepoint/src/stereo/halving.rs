//! A pair at half the size, and the size that suits its texture: photographs often have more pixels than detail, and
//! pixels without texture cannot be matched.

use super::pair::half_mask;
use super::{Masks, Stereo, StereoOptions};
use crate::device::{Cpu, Processor};
use crate::filter::resample::{Scaling, resample};
use crate::image::{AnyImage, Image, Rect, Size};
use crate::{Result, by_pixel};

/// The smallest size that is tried has a longer side of at least this many pixels.
const SMALLEST: usize = 300;

/// Two strips of rows are tried, at a third and at two thirds of the height. Each has the height of the picture divided by
/// the first number, but at least the second.
const STRIP: (usize, usize) = (16, 64);

/// The share of pixels with a disparity at a size that suits the texture, relative to the size with the greatest share.
const SUITABLE: f64 = 0.75;

/// An image, and a mask unless it holds data everywhere.
#[derive(Clone, Debug)]
pub struct Side {
    /// The image.
    pub image: AnyImage,
    /// Its mask: 0 where the image holds no data.
    pub mask: Option<Image<u8>>,
}

impl Side {
    /// The same at half the size.
    ///
    /// # Errors
    /// As [`resample`].
    pub fn halved(&self, cpu: &Cpu) -> Result<Self> {
        let image = by_pixel!(self.image.view(), view => resample(view, Scaling::HalveMean, cpu)?.into());
        Ok(Self { image, mask: self.mask.as_ref().map(half_mask) })
    }
}

/// Both sides of a pair at half the size.
///
/// # Errors
/// As [`Side::halved`].
pub fn halved([left, right]: &[Side; 2], cpu: &Cpu) -> Result<[Side; 2]> {
    Ok([left.halved(cpu)?, right.halved(cpu)?])
}

impl<'a> From<&'a [Side; 2]> for Masks<'a> {
    fn from(sides: &'a [Side; 2]) -> Self {
        let [left, right] = sides.each_ref().map(|side| side.mask.as_ref().map(Image::view));
        Self { left, right }
    }
}

impl StereoOptions {
    /// The options of the pair at half the size: half the disparities.
    #[must_use]
    pub fn halved(self) -> Self {
        let least = self.min_disparity.div_euclid(2);
        let last = i64::from(self.min_disparity) + self.disparities as i64;
        let disparities = (last.div_euclid(2) - i64::from(least) + 1).clamp(1, 4096) as usize;
        Self { min_disparity: least, disparities, ..self }
    }
}

/// How often to halve a pair so that its texture can be matched: the fewest times at which the share of pixels with a
/// disparity is nearly the greatest. Two strips of rows are matched at each size, from the smallest up, until the share
/// is less than three quarters of the greatest so far.
///
/// # Errors
/// As [`Stereo::compute`].
pub fn suitable_halvings(sides: &[Side; 2], options: &StereoOptions, cpu: &Cpu) -> Result<u32> {
    let mut smaller: Vec<([Side; 2], StereoOptions)> = Vec::new();
    loop {
        let (sides, options) = smaller.last().map_or((sides, options), |(sides, options)| (sides, options));
        let size = sides[0].image.size();
        if size.width.max(size.height) < 2 * SMALLEST {
            break;
        }
        let next = (halved(sides, cpu)?, options.halved());
        smaller.push(next);
    }
    let (mut best, mut found) = (0.0_f64, 0);
    let sizes =
        std::iter::once((sides, options)).chain(smaller.iter().map(|(sides, options)| (sides, options)));
    for (halvings, (sides, options)) in Vec::from_iter(sizes).into_iter().enumerate().rev() {
        let share = valid_share(sides, options, cpu)?;
        if share < SUITABLE * best {
            break;
        }
        (best, found) = (best.max(share), halvings as u32);
    }
    Ok(found)
}

/// The share of the pixels with data that have a disparity, in two strips of rows.
fn valid_share(sides: &[Side; 2], options: &StereoOptions, cpu: &Cpu) -> Result<f64> {
    let processor = Processor::from(cpu.clone());
    let stereo = Stereo::new(StereoOptions { right: false, confidence: false, reasons: false, ..*options })?;
    let size = sides[0].image.size();
    let rows = (size.height / STRIP.0).max(STRIP.1).min(size.height);
    let (mut valid, mut all) = (0_usize, 0_usize);
    for third in [1, 2] {
        let y = (third * size.height / 3).saturating_sub(rows / 2).min(size.height - rows);
        let strip = Rect { x: 0, y, size: Size::new(size.width, rows) };
        let image = |side: &Side| -> Result<AnyImage> {
            Ok(by_pixel!(side.image.view(), view => view.crop(strip)?.to_image().into()))
        };
        let (left, right) = (image(&sides[0])?, image(&sides[1])?);
        let [mask_left, mask_right] =
            sides.each_ref().map(|side| side.mask.as_ref().map(|mask| mask.view().crop(strip)).transpose());
        let masks = Masks { left: mask_left?, right: mask_right? };
        let found = stereo.compute((&left).into(), (&right).into(), masks, &processor)?;
        valid += found.disparity.data().iter().filter(|d| d.is_finite()).count();
        all += match masks.left {
            Some(mask) => (0..rows).map(|y| mask.row(y).iter().filter(|m| **m != 0).count()).sum(),
            None => strip.size.area(),
        };
    }
    Ok(valid as f64 / all.max(1) as f64)
}
