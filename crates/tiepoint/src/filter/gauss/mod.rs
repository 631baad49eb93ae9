//! Gaussian smoothing with a separable kernel.
//!
//! ```text
//! out(x, y) = Σᵢ wᵢ Σⱼ wⱼ in(x + i, y + j),   wₖ ∝ exp(−k²/2σ²) or a power of two,   Σ wₖ = 1
//! ```
//!
//! The vertical sum comes first, then the horizontal one; the border rule of the columns applies to rows of
//! vertical sums, which is the same as padding the image.
//!
//! **Numbers.** f32 and 16-bit: the order of `rows`, with one rounding to nearest even at the end for 16-bit. 8-bit with
//! up to [`FIXED_SIZE`] taps: taps in 1/256, integer sums without rounding, one rounding at the end (`bytes`); within
//! 1.5 grey levels of the real-valued result. 8-bit with more taps: as 16-bit. A NaN spreads over its window.
//!
//! **Speed.** Memory bounds the f32 form: one read and one write of the image. The 8-bit form costs two loads, a
//! widening and a multiplication a pair of taps in the vertical pass, a load and a paired product in the
//! horizontal one. The sums between the passes are one row and stay in the first-level cache.
//!
//! Source of [`Taps::PowerOfTwo`]: M. Schösau, Bachelor's thesis, Hochschule Mittweida 2019 (filters of 3, 5, 9
//! and 15 taps; three border policies).

mod bytes;
pub(crate) mod rows;
mod taps;

pub use taps::{MAX_SIZE, Taps};

use super::border::{BAND, extend, keep_ends, leaves};
use crate::{
    Result,
    device::Cpu,
    image::{Border, Image, ImageView, Pixel},
};
use fearless_simd::dispatch;

/// Most taps that 8-bit images are filtered with in integers.
pub const FIXED_SIZE: usize = 31;

/// How to smooth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GaussOptions {
    /// The weights; σ = 1.6 by default.
    pub taps: Taps,
    /// What lies beyond the edge; the edge pixel repeated by default.
    pub border: Border,
}

impl GaussOptions {
    /// Smoothing by σ pixels.
    pub fn sigma(sigma: f64) -> Self {
        Self { taps: Taps::Sigma(sigma), ..Self::default() }
    }

    /// Smoothing by an odd number of taps.
    pub fn size(size: usize) -> Self {
        Self { taps: Taps::Size(size), ..Self::default() }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// [`Error::Option`](crate::Error::Option) as [`Taps::check`].
    pub fn check(&self) -> Result<()> {
        self.taps.check()
    }
}

/// `view` smoothed; every channel by itself.
///
/// # Errors
/// [`Error::Option`](crate::Error::Option) for options out of range.
pub fn gauss<T: Pixel>(view: ImageView<'_, T>, options: &GaussOptions, cpu: &Cpu) -> Result<Image<T>> {
    let mut out = Image::default();
    gauss_into(view, options, cpu, &mut out)?;
    Ok(out)
}

/// [`gauss`] into an image whose memory is used again; its shape is set to that of `view`.
///
/// # Errors
/// As [`gauss`].
pub fn gauss_into<T: Pixel>(
    view: ImageView<'_, T>,
    options: &GaussOptions,
    cpu: &Cpu,
    out: &mut Image<T>,
) -> Result<()> {
    options.check()?;
    let _stage = cpu.stage("gauss");
    out.reshape(view.size(), view.channels());
    let row_len = out.row_len();
    let task = Task::new::<T>(view, options);
    cpu.for_chunks(out.data_mut(), row_len * BAND, |band, rows| {
        let first = band * BAND;
        if let Task::Bytes { taps, pairs } = &task {
            return byte_band(view, options.border, taps, pairs, first, rows, cpu);
        }
        let Task::Floats { taps } = &task else { return };
        float_band(view, options.border, taps, first, rows, cpu);
    });
    Ok(())
}

/// The taps in the form that the pixel type takes.
enum Task {
    Bytes { taps: Vec<u16>, pairs: Vec<[i16; 2]> },
    Floats { taps: Vec<f32> },
}

impl Task {
    fn new<T: Pixel>(_: ImageView<'_, T>, options: &GaussOptions) -> Self {
        let bytes = T::u8s(&[]).is_some();
        if bytes && options.taps.radius(true) <= FIXED_SIZE / 2 {
            let taps = options.taps.to_q8();
            return Self::Bytes { pairs: bytes::pairs(&taps), taps };
        }
        Self::Floats { taps: options.taps.to_f32(bytes) }
    }
}

/// Writes the rows of one band, from row `first` on, with `filter(y, row)`; rows that [`Border::Skip`] leaves
/// alone are copied.
fn each_row<T: Pixel>(
    view: ImageView<'_, T>,
    border: Border,
    radius: usize,
    first: usize,
    out: &mut [T],
    mut filter: impl FnMut(usize, &mut [T]),
) {
    let row_len = view.size().width * view.channels();
    for (i, row) in out.chunks_mut(row_len.max(1)).enumerate() {
        let y = first + i;
        let source = view.row(y);
        if border == Border::Skip && leaves(y, radius, view.size().height) {
            row.copy_from_slice(source);
            continue;
        }
        filter(y, row);
        if border == Border::Skip {
            keep_ends(row, source, radius, view.channels());
        }
    }
}

fn byte_band<T: Pixel>(
    view: ImageView<'_, T>,
    border: Border,
    taps: &[u16],
    pairs: &[[i16; 2]],
    first: usize,
    out: &mut [T],
    cpu: &Cpu,
) {
    let (channels, height) = (view.channels(), view.size().height);
    let row_len = view.size().width * channels;
    let radius = taps.len() - 1;
    let black = vec![0_u8; row_len];
    // One value more than the pixels: the last pair of taps has a zero at its end.
    let mut padded = vec![bytes::BLACK; row_len + 2 * radius * channels + 1];
    let mut rows: Vec<&[u8]> = Vec::with_capacity(2 * radius + 1);
    each_row(view, border, radius, first, out, |y, out| {
        let Some(out) = T::u8s_mut(out) else { return };
        rows.clear();
        rows.extend((0..=2 * radius).map(|k| {
            let source = border.index(y as isize + k as isize - radius as isize, height);
            source.and_then(|y| T::u8s(view.row(y))).unwrap_or(&black)
        }));
        let inside = radius * channels..radius * channels + row_len;
        dispatch!(cpu.level(), simd => bytes::vertical(simd, &rows, taps, &mut padded[inside.clone()]));
        let pixels = padded.len() - 1;
        extend(&mut padded[..pixels], radius, channels, border, bytes::BLACK);
        match channels {
            1 => dispatch!(cpu.level(), simd => bytes::horizontal(simd, &padded, pairs, out)),
            _ => {
                dispatch!(cpu.level(), simd => bytes::horizontal_channels(simd, &padded, channels, taps, out))
            }
        }
    });
}

fn float_band<T: Pixel>(
    view: ImageView<'_, T>,
    border: Border,
    taps: &[f32],
    first: usize,
    out: &mut [T],
    cpu: &Cpu,
) {
    let (channels, height) = (view.channels(), view.size().height);
    let row_len = view.size().width * channels;
    let radius = taps.len() - 1;
    let black = vec![0.0_f32; row_len];
    let mut padded = vec![0.0_f32; row_len + 2 * radius * channels];
    let mut result = vec![0.0_f32; row_len];
    let mut converted = Converted::new(2 * radius + 1);
    each_row(view, border, radius, first, out, |y, out| {
        let source = |k: usize| border.index(y as isize + k as isize - radius as isize, height);
        (0..=2 * radius).filter_map(source).for_each(|y| converted.load(y, view.row(y)));
        let rows: Vec<&[f32]> = (0..=2 * radius)
            .map(|k| source(k).map_or(&black[..], |y| converted.row(y, view.row(y))))
            .collect();
        let inside = radius * channels..radius * channels + row_len;
        dispatch!(cpu.level(), simd => rows::vertical(simd, &rows, taps, &mut padded[inside]));
        extend(&mut padded, radius, channels, border, 0.0);
        if let Some(out) = T::f32s_mut(out) {
            return dispatch!(cpu.level(), simd => rows::horizontal(simd, &padded, channels, taps, out));
        }
        dispatch!(cpu.level(), simd => rows::horizontal(simd, &padded, channels, taps, &mut result));
        out.iter_mut().zip(&result).for_each(|(o, &v)| *o = T::from_f32(v));
    });
}

/// The source rows of a window as f32: integers are converted once, f32 rows are used where they lie.
struct Converted {
    slots: Vec<(Option<usize>, Vec<f32>)>,
}

impl Converted {
    fn new(window: usize) -> Self {
        Self { slots: vec![(None, Vec::new()); window] }
    }

    /// Rows of one window have different places: they are at most `window` consecutive ones.
    fn load<T: Pixel>(&mut self, y: usize, source: &[T]) {
        let n = self.slots.len();
        let (held, row) = &mut self.slots[y % n];
        if T::f32s(source).is_none() && held.replace(y) != Some(y) {
            row.clear();
            row.extend(source.iter().map(|v| v.to_f32()));
        }
    }

    fn row<'a, T: Pixel>(&'a self, y: usize, source: &'a [T]) -> &'a [f32] {
        T::f32s(source).unwrap_or(&self.slots[y % self.slots.len()].1)
    }
}

#[cfg(test)]
mod tests;
