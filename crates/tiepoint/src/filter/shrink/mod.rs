//! Shrinking an image by any factor: every pixel is the mean of the area that it covers.
//!
//! ```text
//! out(i, j) = Σ_y Σ_x w(j, y) w(i, x) in(x, y)
//! w(i, x): the share of output pixel i that input pixel x covers along one axis; they sum to 1
//! ```
//!
//! The centre of output pixel i lies at (i + ½) · n / m − ½ of the input, for n pixels that become m.
//!
//! **Numbers.** f32: rows are weighted and added from top to bottom, then the columns of the sum from left to right,
//! without fused multiply-adds; integers are rounded once.

pub(crate) mod gpu;

use crate::device::Cpu;
use crate::image::{Image, ImageView, Pixel, Size};
use crate::{Error, Result};

/// The input pixels that an output pixel covers along one axis: the index of the first, and the share of each.
struct Cover {
    first: usize,
    shares: Vec<f32>,
}

/// `image` at a smaller size, or at its own.
///
/// # Errors
/// [`Error::Image`] for an output that is larger than the image or empty where the image is not.
pub fn shrink<T: Pixel>(image: ImageView<'_, T>, size: Size, cpu: &Cpu) -> Result<Image<T>> {
    shrink_as(image, size, cpu)
}

/// [`shrink`] with output of another type; values are not rescaled.
pub(crate) fn shrink_as<T: Pixel, O: Pixel>(
    image: ImageView<'_, T>,
    size: Size,
    cpu: &Cpu,
) -> Result<Image<O>> {
    let from = image.size();
    if size.width > from.width || size.height > from.height || (size.is_empty() && !from.is_empty()) {
        return Err(Error::Image(format!("{from} pixels cannot shrink to {size}")));
    }
    let channels = image.channels();
    let mut out = Image::filled(size, channels, O::default());
    if size.is_empty() {
        return Ok(out);
    }
    let _stage = cpu.stage("shrink");
    let (columns, rows) = (covers(from.width, size.width), covers(from.height, size.height));
    cpu.try_for_chunks(out.data_mut(), size.width * channels, |j, out| {
        let mut sum = vec![0.0_f32; from.width * channels];
        for (y, &share) in (rows[j].first..).zip(&rows[j].shares) {
            sum.iter_mut().zip(image.row(y)).for_each(|(s, v)| *s += v.to_f32() * share);
        }
        for (i, out) in out.chunks_exact_mut(channels).enumerate() {
            for (c, out) in out.iter_mut().enumerate() {
                let covered = (columns[i].first..).zip(&columns[i].shares);
                let mean = covered.fold(0.0_f32, |mean, (x, &w)| mean + sum[x * channels + c] * w);
                *out = O::from_f32(mean);
            }
        }
    })?;
    Ok(out)
}

/// The input pixels, of `from`, that each of `to` output pixels covers.
fn covers(from: usize, to: usize) -> Vec<Cover> {
    let (n, m) = (from as u128, to as u128);
    // In units of 1/m of an input pixel, an output pixel is n wide and an input pixel m: all integers.
    let cover = |i: u128| {
        let (start, end) = (i * n, (i + 1) * n);
        let (first, last) = (start / m, (end - 1) / m);
        let share = |x: u128| ((end.min((x + 1) * m) - start.max(x * m)) as f64 / n as f64) as f32;
        Cover { first: first as usize, shares: (first..=last).map(share).collect() }
    };
    (0..m).map(cover).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pixel_is_the_mean_of_its_area() {
        let cpu = Cpu::with_threads(2).unwrap();
        let row = Image::from_vec(vec![0.0_f32, 1.0, 2.0, 3.0, 4.0], Size::new(5, 1), 1).unwrap();
        let found = shrink(row.view(), Size::new(2, 1), &cpu).unwrap();
        let wanted = [(0.0 + 1.0 + 0.5 * 2.0) / 2.5, (0.5 * 2.0 + 3.0 + 4.0) / 2.5];
        for (found, wanted) in found.data().iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-6, "{found} is not {wanted}");
        }
        let image = Image::from_fn(Size::new(9, 6), |x, y| (x * 20 + y * 7) as u8);
        assert_eq!(shrink(image.view(), image.size(), &cpu).unwrap(), image, "its own size");
        let thirds = shrink(image.view(), Size::new(3, 2), &cpu).unwrap();
        let centre = |i: usize, j: usize| image.row(3 * j + 1)[3 * i + 1];
        assert_eq!(thirds, Image::from_fn(Size::new(3, 2), centre), "the mean of a plane is its centre");
        let flat = Image::<u16>::filled(Size::new(31, 17), 3, 65535);
        let small = shrink(flat.view(), Size::new(7, 5), &cpu).unwrap();
        assert!(small.data().iter().all(|v| *v == 65535), "white stays white");
    }

    #[test]
    fn sizes_that_are_no_smaller_are_refused() {
        let (image, cpu) = (Image::<u8>::new(Size::new(4, 4)), Cpu::sequential());
        for size in [Size::new(5, 4), Size::new(4, 5), Size::new(0, 4)] {
            assert!(shrink(image.view(), size, &cpu).is_err(), "{size}");
        }
        let none = Image::<u8>::default();
        assert!(shrink(none.view(), Size::default(), &cpu).unwrap().size().is_empty(), "nothing of nothing");
    }
}
