//! The input of the structure stages: grey from 0 to 1, and which pixels count.
//!
//! Pictures that were turned, cut out of a mosaic or masked by painting have a border that shows nothing, with strong
//! edges. **Void** is an area that is dark (no pixel of 5 × 5 above 10/255, nor above a tenth of the brightness that
//! 2 % of the pixels exceed), connected with the border of the picture, and at least 0.2 % of it. If the other pixels
//! are scattered over the dark area, as cells and vessels are, it is the background of the scene, and nothing is void.
//! They are taken as scattered if less than half of them are far from it, or if no connected part has half of them.

use super::channels::rows_into;
use crate::Result;
use crate::by_pixel;
use crate::device::{Cpu, Processor};
use crate::filter::gauss::{GaussOptions, gauss};
use crate::filter::shrink::{shrink, shrink_as};
use crate::geometry::Homography;
use crate::geometry::warp::{Interpolation, WarpOptions, warp};
use crate::image::{AnyView, Image, ImageView, Pixel, Size};

/// Grey from 0 to 1, and 1 where a pixel counts, 0 elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Intensity {
    pub(crate) grey: Image<f32>,
    pub(crate) counts: Image<f32>,
}

/// Void is no brighter than the first, and than the second times the brightness that the share [`BRIGHT`] exceeds.
const DARK: [f32; 2] = [10.0 / 255.0, 0.1];
const BRIGHT: f64 = 0.02;
/// Pixels from the middle of the square that must be dark to its sides.
const REACH: usize = 2;
/// The least share of the picture that can be void.
const LEAST: f64 = 0.002;

/// Void and the rest are compared on every fourth pixel along both axes; far from void is more than two of these.
const STEP: usize = 4;
const FAR: usize = 2;

/// A pixel that was interpolated counts if those that count had more than this share of the weight.
pub(super) const WHOLE: f32 = 0.999;

impl Intensity {
    /// The intensity of a picture of one channel, at `size`, which is no larger than its own.
    pub(crate) fn of(
        image: AnyView<'_>,
        mask: Option<ImageView<'_, u8>>,
        size: Size,
        cpu: &Cpu,
    ) -> Result<Self> {
        let grey = by_pixel!(image, view => unit(view, size, cpu))?;
        let counts = match mask {
            Some(mask) => {
                let shown = Image::from_fn(mask.size(), |x, y| u8::from(mask.row(y)[x] != 0));
                let mut counts = shrink_as(shown.view(), size, cpu)?;
                whole(&mut counts);
                counts
            }
            None => Image::filled(size, 1, 1.0),
        };
        let mut intensity = Self { grey, counts };
        if let Some(void) = void(&intensity.grey) {
            let counts = intensity.counts.data_mut().iter_mut().zip(void.data());
            counts.filter(|(_, void)| **void).for_each(|(counts, _)| *counts = 0.0);
        }
        Ok(intensity)
    }

    pub(crate) fn size(&self) -> Size {
        self.grey.size()
    }

    /// The same at a smaller size, or its own. A pixel counts if all pixels that it covers do.
    pub(crate) fn shrunk(&self, size: Size, cpu: &Cpu) -> Result<Self> {
        if size == self.size() {
            return Ok(self.clone());
        }
        let grey = shrink(self.grey.view(), size, cpu)?;
        let mut counts = shrink(self.counts.view(), size, cpu)?;
        whole(&mut counts);
        Ok(Self { grey, counts })
    }

    /// The picture resampled on a grid of `size`.
    pub(crate) fn resampled(&self, picture_from_grid: &Homography, size: Size, cpu: &Cpu) -> Result<Self> {
        let smooth =
            blur_before(picture_from_grid).map(|blur| gauss(self.grey.view(), &blur, cpu)).transpose()?;
        let options = WarpOptions::default().with_interpolation(Interpolation::Bilinear);
        let on_cpu = Processor::from(cpu.clone());
        let laid = |image: &Image<f32>| warp(image.view(), picture_from_grid, size, &options, &on_cpu);
        let (grey, mut counts) = (laid(smooth.as_ref().unwrap_or(&self.grey))?, laid(&self.counts)?);
        whole(&mut counts);
        Ok(Self { grey, counts })
    }
}

/// The Gaussian that is applied before a picture is resampled by a map that shrinks it; `None` where it hardly does.
pub(super) fn blur_before(picture_from_grid: &Homography) -> Option<GaussOptions> {
    let [[a, b, _], [c, d, _], _] = picture_from_grid.matrix();
    let shrinks = (a * d - b * c).abs();
    (shrinks > 1.38).then(|| GaussOptions::sigma(0.5 * (shrinks - 1.0).sqrt()))
}

/// Grey from 0 to 1, at `size`. The result is the only image of 32-bit floats that is made.
fn unit<T: Pixel>(view: ImageView<'_, T>, size: Size, cpu: &Cpu) -> Result<Image<f32>> {
    let scale = 1.0 / T::WHITE;
    if size == view.size() {
        return rows_into(size, 1, cpu, |y, out| {
            out.iter_mut().zip(view.row(y)).for_each(|(out, v)| *out = v.to_f32() * scale);
        });
    }
    let mut grey: Image<f32> = shrink_as(view, size, cpu)?;
    grey.data_mut().iter_mut().for_each(|v| *v *= scale);
    Ok(grey)
}

/// 1 where a pixel counts as a whole, 0 elsewhere.
fn whole(counts: &mut Image<f32>) {
    counts.data_mut().iter_mut().for_each(|v| *v = f32::from(u8::from(*v > WHOLE)));
}

/// The brightness that the share [`BRIGHT`] of the pixels exceeds, to 1/255; 1 if [`DARK`]'s first number decides.
fn bright(grey: &Image<f32>) -> f32 {
    // If enough pixels exceed this, a tenth of the brightness is above DARK[0], and no histogram is needed.
    let enough = DARK[0] / DARK[1] + 1.0 / 255.0;
    let least = BRIGHT * grey.size().area() as f64;
    let bright_of = |values: &[f32]| values.iter().filter(|value| **value > enough).count();
    let mut found = 0;
    let is_bright = |y| {
        found += bright_of(grey.row(y));
        found as f64 > least
    };
    if (0..grey.size().height).any(is_bright) {
        return 1.0;
    }
    let mut counts = [0_usize; 256];
    grey.data().iter().for_each(|value| counts[(value * 255.0).clamp(0.0, 255.0) as usize] += 1);
    let mut brighter = 0;
    let level = counts.iter().rposition(|count| {
        brighter += count;
        brighter as f64 > least
    });
    level.unwrap_or(0) as f32 / 255.0
}

/// Which pixels show nothing; `None` where the picture has no dark border.
fn void(grey: &Image<f32>) -> Option<Image<bool>> {
    let size = grey.size();
    let (w, h) = (size.width, size.height);
    let around = |i: usize, n: usize| i.saturating_sub(REACH)..(i + REACH + 1).min(n);
    let dark = DARK[0].min(DARK[1] * bright(grey));
    let is_dark = |(x, y): (usize, usize)| {
        !around(y, h).any(|y| grey.row(y)[around(x, w)].iter().any(|value| *value > dark))
    };
    let border = (0..w).flat_map(|x| [(x, 0), (x, h - 1)]).chain((0..h).flat_map(|y| [(0, y), (w - 1, y)]));
    let starts: Vec<_> = border.filter(|at| is_dark(*at)).collect();
    if starts.is_empty() {
        return None;
    }
    let mut seen = Image::filled(size, 1, false);
    let mut void: Option<Image<bool>> = None;
    for start in starts {
        let part = connected(start, &is_dark, &mut seen);
        if part.len() as f64 >= LEAST * size.area() as f64 {
            let void = void.get_or_insert_with(|| Image::filled(size, 1, false));
            part.into_iter().for_each(|(x, y)| void.row_mut(y)[x] = true);
        }
    }
    // So far only the middles of the dark squares are marked; now all of their pixels are.
    void.map(|middles| near(&middles, REACH)).filter(|void| !is_background(void))
}

/// The pixels for which `is` holds that are connected with `start`, without those that were seen before.
fn connected(
    start: (usize, usize),
    is: &impl Fn((usize, usize)) -> bool,
    seen: &mut Image<bool>,
) -> Vec<(usize, usize)> {
    let Size { width: w, height: h } = seen.size();
    let mut part = Vec::new();
    let mut next = vec![start];
    while let Some((x, y)) = next.pop() {
        if seen.row(y)[x] || !is((x, y)) {
            continue;
        }
        seen.row_mut(y)[x] = true;
        part.push((x, y));
        next.extend((x > 0).then(|| (x - 1, y)).into_iter().chain((x + 1 < w).then_some((x + 1, y))));
        next.extend((y > 0).then(|| (x, y - 1)).into_iter().chain((y + 1 < h).then_some((x, y + 1))));
    }
    part
}

/// Whether what is dark is the background over which a scene is spread.
fn is_background(void: &Image<bool>) -> bool {
    let size = Size::new(void.size().width.div_ceil(STEP), void.size().height.div_ceil(STEP));
    let void = Image::from_fn(size, |x, y| void.row(STEP * y)[STEP * x]);
    let rest = |void: &Image<bool>| void.data().iter().filter(|void| !**void).count();
    let whole = rest(&void);
    let mut seen = void.clone();
    let mut largest = 0;
    for start in (0..size.area()).map(|i| (i % size.width, i / size.width)) {
        if !seen.row(start.1)[start.0] {
            largest = largest.max(connected(start, &|_| true, &mut seen).len());
        }
    }
    2 * rest(&near(&void, FAR)) < whole || 2 * largest < whole
}

/// Where any pixel at most `reach` away along both axes is true.
pub(super) fn near(image: &Image<bool>, reach: usize) -> Image<bool> {
    let Size { width, height } = image.size();
    let add = |out: &mut [bool], more: &[bool]| out.iter_mut().zip(more).for_each(|(out, v)| *out |= v);
    let mut rows = image.clone();
    for y in 0..height {
        for by in 1..=reach.min(width.saturating_sub(1)) {
            add(&mut rows.row_mut(y)[by..], image.row(y));
            add(rows.row_mut(y), &image.row(y)[by..]);
        }
    }
    let mut out = rows.clone();
    for y in 0..height {
        for other in (y.saturating_sub(reach)..(y + reach + 1).min(height)).filter(|other| *other != y) {
            add(out.row_mut(y), rows.row(other));
        }
    }
    out
}
