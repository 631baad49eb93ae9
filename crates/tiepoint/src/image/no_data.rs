//! The value by which a file marks pixels that hold no data.

use super::{AnyImage, AnyView, FileImage, Image, ImageView, Layout, Pixel};
use crate::by_pixel;

/// GDAL's TIFF tag for that value, which it writes as text.
pub(super) const TAG: u16 = 42113;

/// Beyond this floats have no measurements.
const END: f32 = 3.39e38;

/// Whether a float is the no-data value. At the ends of floats it need not be the same, as in GDAL: texts lack digits.
pub(super) fn is(v: f32, no_data: f32) -> bool {
    v == no_data || v.abs().min(no_data.abs()) > END && v.signum() == no_data.signum()
}

/// A value as a pixel; `None` when an integer type cannot hold it. Floats take the nearest value.
pub(super) fn held<T: Pixel>(value: f64) -> Option<T> {
    let held = T::from_f32(value as f32);
    let exact = f64::from(held.to_f32()) == value || value.is_nan() && held.to_f32().is_nan();
    (exact || T::WHITE == 1.0).then_some(held)
}

/// The image with the no-data value in all channels of the pixels that hold no data, and in place of NaN; alpha is 0 there.
/// Without such a value floats get NaN; integers that cannot hold the value get 0. Data that were computed and have the
/// no-data value get the next one: with `apart` each channel by itself, else a pixel whose colours mark it.
pub(super) fn marked(
    mut image: AnyImage,
    valid: &Image<u8>,
    no_data: Option<f64>,
    (layout, apart): (Layout, bool),
) -> AnyImage {
    fn mark<T: Pixel>(
        image: &mut Image<T>,
        valid: &Image<u8>,
        (value, beside): (Option<T>, T),
        (layout, apart): (Layout, bool),
    ) {
        let is_alpha = |i: usize| Some(i) == layout.alpha;
        // Most rows have data everywhere.
        for y in 0..image.size().height {
            if value.is_none() && !valid.row(y).contains(&0) {
                continue;
            }
            for (pixel, valid) in image.row_mut(y).chunks_exact_mut(layout.channels).zip(valid.row(y)) {
                let fill = value.unwrap_or(T::from_f32(f32::NAN));
                if *valid == 0 {
                    let values = pixel.iter_mut().enumerate();
                    values.for_each(|(i, v)| *v = if is_alpha(i) { T::default() } else { fill });
                } else if let Some(value) = value {
                    if apart {
                        let values = pixel.iter_mut().enumerate();
                        let equal = values.filter(|(i, v)| !is_alpha(*i) && **v == value);
                        equal.for_each(|(_, v)| *v = beside);
                    } else if layout.marked(pixel, value.to_f32().into()) {
                        pixel[layout.first] = beside;
                    }
                    pixel.iter_mut().filter(|v| v.to_f32().is_nan()).for_each(|v| *v = value);
                }
            }
        }
    }
    let beside_of = no_data.unwrap_or(f64::NAN);
    by_pixel!(&mut image, i => mark(i, valid, (no_data.and_then(held), beside(beside_of)), (layout, apart)));
    image
}

/// The image in which a reader hides what `valid` hides: these pixels are transparent or, where there is no alpha, have the
/// value `no_data` in all channels. Those whose colours lack data already stay; `None` where there are no others.
pub(super) fn with_hidden(
    image: &AnyView<'_>,
    valid: &Image<u8>,
    no_data: Option<f64>,
    layout: Layout,
) -> Option<AnyImage> {
    fn hidden<T: Pixel>(
        image: ImageView<'_, T>,
        valid: &Image<u8>,
        no_data: Option<T>,
        layout: Layout,
    ) -> Option<Image<T>> {
        let is_none = |v: f32| !v.is_finite() || no_data.is_some_and(|no_data| is(v, no_data.to_f32()));
        let mut found = None;
        for y in 0..image.size().height {
            for (x, pixel) in image.row(y).chunks_exact(layout.channels).enumerate() {
                if valid.row(y)[x] == 0 && !layout.lacks(pixel, is_none) {
                    let row = found.get_or_insert_with(|| image.to_image()).row_mut(y);
                    let pixel = &mut row[x * layout.channels..][..layout.channels];
                    match layout.alpha {
                        Some(alpha) => pixel[alpha] = T::default(),
                        None => pixel.fill(no_data.unwrap_or_default()),
                    }
                }
            }
        }
        found
    }
    by_pixel!(image, image => hidden(*image, valid, no_data.and_then(held), layout).map(AnyImage::from))
}

/// The value next to the no-data value, for data that interpolation has given that value.
fn beside<T: Pixel>(value: f64) -> T {
    T::from_f32(match T::WHITE {
        1.0 => (value as f32).next_up(),
        most if value < f64::from(most) => (value + 1.0) as f32,
        _ => (value - 1.0) as f32,
    })
}

/// The image as floats, NaN where a channel other than `alpha` has the no-data value or is NaN; `None` without such.
pub(super) fn with_holes<T: Pixel>(
    image: ImageView<'_, T>,
    no_data: f64,
    alpha: Option<usize>,
) -> Option<Image<f32>> {
    let (value, n) = (held::<T>(no_data)?, image.channels());
    let marks =
        |(i, v): (usize, &T)| (is(v.to_f32(), value.to_f32()) || v.to_f32().is_nan()) && Some(i % n) != alpha;
    if !(0..image.size().height).any(|y| image.row(y).iter().enumerate().any(marks)) {
        return None;
    }
    let floats = |(i, v): (usize, &T)| if marks((i, v)) { f32::NAN } else { v.to_f32() };
    let data = (0..image.size().height).flat_map(|y| image.row(y).iter().enumerate().map(floats)).collect();
    Some(Image { data, size: image.size(), channels: n })
}

/// Undoes [`with_holes`]: the image in its own type, with the no-data value where the floats are NaN.
pub(super) fn without_holes<T: Pixel>(image: &Image<f32>, no_data: f64, alpha: Option<usize>) -> Image<T> {
    let (value, beside, n) = (T::from_f32(no_data as f32), beside(no_data), image.channels());
    let pixel = |(i, v): (usize, &f32)| match T::from_f32(*v) {
        _ if v.is_nan() => value,
        v if v == value && Some(i % n) != alpha => beside,
        v => v,
    };
    Image { data: image.data().iter().enumerate().map(pixel).collect(), size: image.size(), channels: n }
}

/// In floats converted from wider values, replaces a no-data value that has become infinite in 32 bits by NaN.
pub(super) fn within_floats(file: &mut FileImage) {
    let Some(value) = file.no_data.filter(|value| value.is_finite() && (*value as f32).is_infinite()) else {
        return;
    };
    if let AnyImage::F32(image) = &mut file.image {
        image.data_mut().iter_mut().filter(|v| **v == value as f32).for_each(|v| *v = f32::NAN);
        file.no_data = Some(f64::NAN);
    }
}

/// [`unnamed`] requires that one value in [`FEW`] is the mark, and that it lies beyond the others by [`APART`] ranges.
const FEW: usize = 1000;
const APART: f64 = 2.0;

/// A value that seems to mark pixels without data, and how often it occurs: at least once in [`FEW`] values. It is
/// farther from all others than [`APART`] times their range.
pub(super) fn unnamed(values: impl Iterator<Item = f32>) -> Option<(f32, usize)> {
    // At each end: the extreme value, how often it occurs, and the next one.
    let mut ends = [(f64::INFINITY, 0_usize, f64::INFINITY); 2];
    let mut all = 0;
    for value in values.filter(|value| value.is_finite()) {
        all += 1;
        for (end, sign) in ends.iter_mut().zip([1.0, -1.0]) {
            let value = sign * f64::from(value);
            if value < end.0 {
                *end = (value, 1, end.0);
            } else if value == end.0 {
                end.1 += 1;
            } else {
                end.2 = end.2.min(value);
            }
        }
    }
    let [least, greatest] = ends;
    let mark = |(value, count, next): (f64, usize, f64), opposite: f64| {
        let range = -opposite - next;
        (count * FEW >= all && range > 0.0 && next - value > APART * range).then_some((value as f32, count))
    };
    mark(least, greatest.0).or_else(|| mark(greatest, least.0).map(|(value, count)| (-value, count)))
}

/// Hides the pixels all of whose channels are `no_data`.
pub(super) fn hide<T: Pixel>(shown: &mut Image<u8>, image: ImageView<'_, T>, no_data: f32) {
    for y in 0..image.size().height {
        let pixels = shown.row_mut(y).iter_mut().zip(image.row(y).chunks_exact(image.channels()));
        pixels.filter(|(_, p)| p.iter().all(|v| is(v.to_f32(), no_data))).for_each(|(s, _)| *s = 0);
    }
}

/// Sets all channels of a float image to NaN where the mask is 0; integers stay as they are.
pub(super) fn to_nan(image: &mut AnyImage, shown: ImageView<'_, u8>) {
    let AnyImage::F32(image) = image else { return };
    let n = image.channels();
    for y in 0..shown.size().height {
        let pixels = image.row_mut(y).chunks_exact_mut(n).zip(shown.row(y));
        pixels.filter(|(_, shown)| **shown == 0).for_each(|(pixel, _)| pixel.fill(f32::NAN));
    }
}

#[cfg(test)]
mod tests {
    use super::{is, unnamed, within_floats};
    use crate::image::{AnyImage, FileImage, Image, Size};

    #[test]
    fn a_no_data_value_beyond_floats_becomes_nan() {
        let values = vec![1.0, f32::NEG_INFINITY, f32::INFINITY];
        let image = AnyImage::from(Image::from_vec(values, Size::new(3, 1), 1).unwrap());
        let mut file = FileImage { no_data: Some(-1.797e308), ..image.into() };
        within_floats(&mut file);
        let AnyImage::F32(image) = &file.image else { panic!("floats") };
        assert!(file.no_data.unwrap().is_nan() && image.data()[1].is_nan(), "{file:?}");
        assert_eq!([image.data()[0], image.data()[2]], [1.0, f32::INFINITY], "others stay");
    }

    #[test]
    fn the_ends_of_floats_need_few_digits() {
        for (value, pixel, same) in [
            (-3.402823e38, f32::MIN, true),
            (-3.4e38, f32::MIN, true),
            (-3.4e38, -3.4e38, true),
            (3.40282e38, f32::MIN, false),
            (-9999.0, -9999.001, false),
            (0.0, f32::from_bits(1), false),
        ] {
            assert_eq!(is(pixel, value), same, "{value}, {pixel}");
        }
    }

    #[test]
    fn values_far_from_all_others_seem_to_mark_missing_data() {
        let values = |mark: f32, count: usize| {
            (0..5000 - count).map(|i| 280.0 + (i % 97) as f32 * 0.25).chain(vec![mark; count])
        };
        for mark in [-9999.0, 0.0, 32767.0, -3.4e38, f32::MAX] {
            assert_eq!(unnamed(values(mark, 60)), Some((mark, 60)), "{mark}");
            assert_eq!(unnamed(values(mark, 3)), None, "{mark}: few pixels may be outliers");
        }
        assert_eq!(unnamed(values(304.0, 600)), None, "saturated");
        assert_eq!(unnamed(values(f32::NAN, 600)), None);
        assert_eq!(unnamed([0.0, 1.0].into_iter().cycle().take(100)), None, "two values");
        assert_eq!(unnamed(std::iter::empty()), None);
    }
}
