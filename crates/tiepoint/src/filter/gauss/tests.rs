//! The fast forms against plain sums, and against reference pictures.

use super::*;
use crate::filter::border::leaves;
use crate::filter::testing::{BORDERS, cpus, data, noise, sizes, strided};
use crate::image::Size;
use crate::image::testing::assert_same;

/// The weighted sum over the window of every element in f64, which is exact for whole numbers; `Err` with the element
/// where [`Border::Skip`] keeps it.
fn window_sums<T: Pixel>(
    view: ImageView<'_, T>,
    taps: &[f64],
    border: Border,
) -> Vec<std::result::Result<f64, T>> {
    let (size, channels) = (view.size(), view.channels());
    let radius = taps.len() as isize - 1;
    let mut out = Vec::new();
    for y in 0..size.height as isize {
        for x in 0..size.width as isize {
            for c in 0..channels {
                let mut sum = 0.0;
                for j in -radius..=radius {
                    for i in -radius..=radius {
                        let at = border.index(y + j, size.height).zip(border.index(x + i, size.width));
                        let value =
                            at.map_or(0.0, |(y, x)| f64::from(view.row(y)[x * channels + c].to_f32()));
                        sum += taps[j.unsigned_abs()] * taps[i.unsigned_abs()] * value;
                    }
                }
                let (y, x, r) = (y as usize, x as usize, radius as usize);
                let skip = border == Border::Skip && (leaves(y, r, size.height) || leaves(x, r, size.width));
                out.push(if skip { Err(view.row(y)[x * channels + c]) } else { Ok(sum) });
            }
        }
    }
    out
}

fn real_valued<T: Pixel>(view: ImageView<'_, T>, options: &GaussOptions) -> Vec<f64> {
    let taps: Vec<f64> = options.taps.to_f32(T::u8s(&[]).is_some()).into_iter().map(f64::from).collect();
    let sums = window_sums(view, &taps, options.border).into_iter();
    sums.map(|sum| sum.unwrap_or_else(|kept| f64::from(kept.to_f32()))).collect()
}

/// The contract of the integer form: exact sums, one rounding.
fn fixed_reference(view: ImageView<'_, u8>, options: &GaussOptions) -> Vec<u8> {
    let taps: Vec<f64> = options.taps.to_q8().into_iter().map(f64::from).collect();
    let sums = window_sums(view, &taps, options.border).into_iter();
    sums.map(|sum| sum.map_or_else(|kept| kept, |sum| ((sum as u32 + 32768) >> 16) as u8)).collect()
}

/// The contract of the float form: column sums in order, then row sums in order.
fn float_reference<T: Pixel>(view: ImageView<'_, T>, options: &GaussOptions) -> Vec<T> {
    let taps = options.taps.to_f32(T::u8s(&[]).is_some());
    let (size, channels) = (view.size(), view.channels());
    let ordered = |at: &dyn Fn(isize) -> f32| {
        let sides = taps.iter().enumerate().skip(1);
        sides.fold(at(0) * taps[0], |acc, (k, &t)| t.mul_add(at(-(k as isize)) + at(k as isize), acc))
    };
    let border = options.border;
    let column = |x: usize, y: isize| {
        ordered(&|j| border.index(y + j, size.height).map_or(0.0, |y| view.row(y)[x].to_f32()))
    };
    let radius = taps.len() - 1;
    let mut out = Vec::new();
    for y in 0..size.height {
        let columns: Vec<f32> = (0..size.width * channels).map(|x| column(x, y as isize)).collect();
        for i in 0..size.width * channels {
            let (x, c) = (i / channels, i % channels);
            let sum = ordered(&|k| {
                border.index(x as isize + k, size.width).map_or(0.0, |x| columns[x * channels + c])
            });
            let skip =
                border == Border::Skip && (leaves(y, radius, size.height) || leaves(x, radius, size.width));
            out.push(if skip { view.row(y)[i] } else { T::from_f32(sum) });
        }
    }
    out
}

const KERNELS: [Taps; 8] = [
    Taps::Size(1),
    Taps::Size(3),
    Taps::Size(5),
    Taps::SigmaAndSize(40.0, 3),
    Taps::PowerOfTwo(9),
    Taps::PowerOfTwo(15),
    Taps::Sigma(1.6),
    Taps::Size(35),
];

fn twins<T: Pixel>(reference: impl Fn(ImageView<'_, T>, &GaussOptions) -> Vec<T>) {
    for (n, (size, channels)) in sizes().into_iter().enumerate() {
        let (buffer, stride) = strided::<T>(size, channels, n as u32);
        let view = ImageView::new(&buffer, size, channels, stride).unwrap();
        for (k, taps) in KERNELS.into_iter().enumerate() {
            let options = GaussOptions { taps, border: BORDERS[(n + k) % 4] };
            let expected = Image::from_vec(reference(view, &options), size, channels).unwrap();
            for cpu in cpus() {
                let found = gauss(view, &options, &cpu).unwrap();
                let what = format_args!("{size} x {channels}, {options:?}, {}", cpu.level_name());
                assert_same(&found, &expected, what);
            }
        }
    }
}

#[test]
fn every_pixel_type_equals_the_reference() {
    twins::<u8>(|view, options| match options.taps {
        Taps::Size(35) => float_reference(view, options),
        _ => fixed_reference(view, options),
    });
    twins::<u16>(float_reference);
    twins::<f32>(float_reference);
}

#[test]
fn results_are_close_to_real_numbers() {
    fn check<T: Pixel>(options: &GaussOptions, most: f64) {
        let size = Size::new(60, 44);
        let image = Image::from_vec(noise::<T>(size.area(), 3, T::WHITE), size, 1).unwrap();
        let found = gauss(image.view(), options, &Cpu::sequential()).unwrap();
        for (f, e) in found.data().iter().zip(real_valued(image.view(), options)) {
            assert!((f64::from(f.to_f32()) - e).abs() <= most, "{options:?}: {f:?}, not {e}");
        }
    }
    for border in BORDERS {
        for taps in KERNELS {
            let options = GaussOptions { taps, border };
            check::<u8>(&options, 2.0);
            check::<f32>(&options, 1e-6);
        }
    }
}

#[test]
fn flat_images_stay_flat() {
    let size = Size::new(70, 40);
    for taps in KERNELS {
        for value in [0_u8, 1, 127, 254, 255] {
            let image = Image::filled(size, 1, value);
            let found =
                gauss(image.view(), &GaussOptions { taps, border: Border::Clamp }, &Cpu::sequential());
            assert_eq!(found.unwrap(), image, "{taps:?} of {value}");
        }
    }
}

#[test]
fn zebra_is_within_two_grey_levels() {
    // The reference picture was made with a kernel cut off at 2σ and truncation to 8 bits after each pass.
    let cases = [(3.0, 13, "filters/zebra_gaussian_3.png"), (10.0, 41, "filters/zebra_gaussian_10.png")];
    for (sigma, size, name) in cases {
        let Some((source, expected)) = data("filters/zebra.png").zip(data(name)) else {
            println!("no ../shared/data here: skipped");
            return;
        };
        let options = GaussOptions { taps: Taps::SigmaAndSize(sigma, size), ..GaussOptions::default() };
        let found = gauss(source.view(), &options, &Cpu::sequential()).unwrap();
        let worst = found.data().iter().zip(expected.data()).map(|(a, b)| a.abs_diff(*b)).max();
        assert!(worst <= Some(2), "sigma {sigma}: off by {worst:?} grey levels");
    }
}

#[test]
fn empty_and_odd_inputs_get_an_answer() {
    let cpu = Cpu::sequential();
    for size in [Size::new(0, 0), Size::new(0, 5), Size::new(5, 0)] {
        let image = Image::<u8>::filled(size, 3, 0);
        assert_eq!(gauss(image.view(), &GaussOptions::default(), &cpu).unwrap().size(), size, "{size}");
    }
    let mut image = Image::filled(Size::new(40, 40), 1, 0.5_f32);
    image.data_mut()[820] = f32::NAN;
    let found = gauss(image.view(), &GaussOptions::size(5), &cpu).unwrap();
    assert_eq!(found.data().iter().filter(|v| v.is_nan()).count(), 25, "a NaN spreads over its window");
    assert!(gauss(image.view(), &GaussOptions::size(4), &cpu).is_err(), "even size");
}
