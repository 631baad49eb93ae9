//! Pixels without data are filled from those around them, so that the edges of a hole are weak: the means of squares of 2 × 2
//! pixels that hold data, and of their means, make a pyramid; from its top down, every pixel without data takes the value
//! that linear interpolation gives at its place in the next smaller image (push–pull: S. J. Gortler, R. Grzeszczuk,
//! R. Szeliski, M. F. Cohen, "The Lumigraph", SIGGRAPH 1996, section 3.4, with weights of 0 and 1).

use crate::device::Cpu;
use crate::image::{Image, Pixel, Size};

/// Whether the pixel at x and y, with this value, holds data.
type Holds<'f, T> = &'f (dyn Fn(usize, usize, T) -> bool + Sync);

/// Fills the pixels of a grey image that hold no data; with 0 if none holds any.
pub(super) fn fill<T: Pixel>(image: &mut Image<T>, holds: Holds<'_, T>, cpu: &Cpu) {
    let Size { width, height } = image.size();
    let half = Size::new(width.div_ceil(2), height.div_ceil(2));
    let mut means = Image::<f32>::new(half);
    cpu.for_chunks(means.data_mut(), half.width, |y, row| {
        for (x, mean) in row.iter_mut().enumerate() {
            let (mut sum, mut count) = (0.0_f64, 0.0);
            for v in 2 * y..height.min(2 * y + 2) {
                let values = (2 * x..width.min(2 * x + 2)).map(|u| (u, image.row(v)[u]));
                for (_, value) in values.filter(|(u, value)| holds(*u, v, *value)) {
                    (sum, count) = (sum + f64::from(value.to_f32()), count + 1.0);
                }
            }
            // NaN where none holds data.
            *mean = (sum / count) as f32;
        }
    });
    if half.area() == 1 && means.data()[0].is_nan() {
        means.data_mut()[0] = 0.0;
    } else if means.data().iter().any(|mean| mean.is_nan()) {
        fill(&mut means, &|_, _, mean: f32| !mean.is_nan(), cpu);
    }
    // The mean that holds pixel i, and its neighbour on that side on which the pixel lies.
    let beside = |i: usize, n: usize| {
        let far = if i.is_multiple_of(2) { (i / 2).saturating_sub(1) } else { (i / 2 + 1).min(n - 1) };
        [i / 2, far]
    };
    cpu.for_chunks(image.data_mut(), width, |y, row| {
        let rows = beside(y, half.height).map(|y| means.row(y));
        for (x, v) in row.iter_mut().enumerate().filter(|(x, v)| !holds(*x, y, **v)) {
            let columns = beside(x, half.width);
            let [near, far] = rows.map(|row| 0.75 * row[columns[0]] + 0.25 * row[columns[1]]);
            *v = T::from_f32(0.75 * near + 0.25 * far);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_continue_what_lies_around_them() {
        let size = Size::new(61, 47);
        let ramp = |x: usize, y: usize| 40.0 + 2.0 * x as f32 + y as f32;
        let is_hole = |x: usize, y: usize| (20..33).contains(&x) && (10..40).contains(&y) || x > 57;
        let mut image = Image::from_fn(size, |x, y| if is_hole(x, y) { 0_u8 } else { ramp(x, y) as u8 });
        let mut floats = Image::from_fn(size, |x, y| if is_hole(x, y) { f32::NAN } else { ramp(x, y) });
        for threads in [1, 3] {
            let cpu = Cpu::with_threads(threads).unwrap();
            fill(&mut image, &|x, y, _| !is_hole(x, y), &cpu);
            fill(&mut floats, &|_, _, v| v.is_finite(), &cpu);
            for y in 0..size.height {
                for x in 0..size.width {
                    let off = (floats.row(y)[x] - ramp(x, y)).abs();
                    assert!(off <= if is_hole(x, y) { 12.0 } else { 0.0 }, "{x}, {y}: {off}");
                    assert!((floats.row(y)[x] - f32::from(image.row(y)[x])).abs() <= 0.5, "{x}, {y}");
                }
            }
        }
        let mut nothing = Image::filled(Size::new(5, 3), 1, 7_u16);
        fill(&mut nothing, &|_, _, _| false, &Cpu::sequential());
        assert_eq!(nothing, Image::new(Size::new(5, 3)), "no pixel holds data");
    }
}
