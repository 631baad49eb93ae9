use super::*;
use crate::device::progress::tests::told;
use crate::device::tests::{every_cpu, processors};
use crate::image::testing::assert_same;
use crate::numeric::Random;
use proptest::prelude::*;

pub(super) const ALL: [Interpolation; 4] =
    [Interpolation::Nearest, Interpolation::Bilinear, Interpolation::Bicubic, Interpolation::Lanczos3];

fn options(interpolation: Interpolation, fill: f32) -> WarpOptions {
    WarpOptions { interpolation, fill }
}

fn noise(size: Size, channels: usize) -> Image<u8> {
    let mut random = Random::new(7);
    let next = |_| (random.bits() >> 56) as u8;
    Image::from_vec((0..size.area() * channels).map(next).collect(), size, channels).unwrap()
}

fn shift(x: f64, y: f64) -> Homography {
    Homography::new([[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]]).unwrap()
}

/// The definition, pixel by pixel, with the kernel's own weights.
fn reference(input: &Image<u8>, map: &Homography, size: Size, kind: Interpolation, fill: u8) -> Image<u8> {
    let weights = Weights::new(kind);
    let taps = kind.taps();
    let mut out = Image::filled(size, input.channels(), fill);
    let (w, h) = (input.size().width as isize, input.size().height as isize);
    for y in 0..size.height {
        for x in 0..size.width {
            let m = map.matrix();
            let row = |i: usize| m[i][0] * x as f64 + (m[i][1] * y as f64 + m[i][2]);
            let (u, v) = (row(0) / row(2), row(1) / row(2));
            let hit = row(2) > 1e-12 && u >= -0.5 && v >= -0.5 && u < w as f64 - 0.5 && v < h as f64 - 0.5;
            if !hit {
                continue;
            }
            let whole = |p: f64| if taps == 1 { (p + 0.5).floor() } else { p.floor() };
            let both = [u, v].map(|p| {
                let fraction = (p - whole(p)) as f32;
                match kind {
                    Interpolation::Nearest => [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
                    Interpolation::Bilinear => [1.0 - fraction, fraction, 0.0, 0.0, 0.0, 0.0],
                    _ => weights.at::<6>(fraction),
                }
            });
            let start = |p: f64| whole(p) as isize - (taps as isize - 1) / 2;
            for c in 0..input.channels() {
                let mut sum = 0.0_f32;
                for j in 0..taps {
                    let line = input.row((start(v) + j as isize).clamp(0, h - 1) as usize);
                    let mut along = 0.0_f32;
                    for i in 0..taps {
                        let at = (start(u) + i as isize).clamp(0, w - 1) as usize;
                        let p = f32::from(line[at * input.channels() + c]);
                        along = if i == 0 { both[0][0] * p } else { both[0][i].mul_add(p, along) };
                    }
                    sum = if j == 0 { both[1][0] * along } else { both[1][j].mul_add(along, sum) };
                }
                let channels = input.channels();
                out.row_mut(y)[x * channels + c] = u8::from_f32(sum);
            }
        }
    }
    out
}

#[test]
fn identity_and_whole_shifts_move_pixels() {
    let cpu = Cpu::sequential().into();
    for channels in 1..=4 {
        let image = noise(Size::new(9, 7), channels);
        for kind in ALL {
            let same = warp(image.view(), &shift(0.0, 0.0), image.size(), &options(kind, 0.0), &cpu).unwrap();
            assert_eq!(same, image, "{kind:?}");
            let moved =
                warp(image.view(), &shift(2.0, -1.0), image.size(), &options(kind, 99.0), &cpu).unwrap();
            assert_eq!(moved.row(3)[..channels], image.row(2)[2 * channels..3 * channels], "{kind:?}");
            assert!(moved.row(0).iter().all(|&v| v == 99), "above the input");
        }
    }
}

#[test]
fn half_way_between_two_pixels() {
    let image = Image::from_vec(vec![10.0_f32, 20.0, 40.0, 80.0], Size::new(4, 1), 1).unwrap();
    let at = |kind| {
        let (options, cpu) = (options(kind, 0.0), Cpu::sequential().into());
        warp(image.view(), &shift(1.5, 0.0), Size::new(1, 1), &options, &cpu).unwrap().data()[0]
    };
    assert_eq!(at(Interpolation::Nearest), 40.0, "the pixel after");
    assert_eq!(at(Interpolation::Bilinear), 30.0, "mean");
    assert_eq!(at(Interpolation::Bicubic), (-10.0 + 9.0 * 20.0 + 9.0 * 40.0 - 80.0) / 16.0, "Keys");
    assert!((at(Interpolation::Lanczos3) - 27.4).abs() < 1.0, "{}", at(Interpolation::Lanczos3));
}

#[test]
fn coverage_and_fill_agree() {
    let cpu = Cpu::sequential().into();
    let image = Image::filled(Size::new(20, 10), 1, 5_u8);
    let map = Homography::new([[0.9, 0.3, -4.0], [-0.2, 1.1, 2.0], [0.01, -0.02, 1.0]]).unwrap();
    let size = Size::new(60, 70);
    let warped = warp(image.view(), &map, size, &options(Interpolation::Bilinear, 0.0), &cpu).unwrap();
    let covered = coverage(image.size(), &map, size, &cpu).unwrap();
    assert!(warped.data().iter().zip(covered.data()).all(|(&v, &c)| (v == 5) == (c == 255)), "same pixels");
    assert!(covered.data().contains(&0) && covered.data().contains(&255), "both kinds");
}

#[test]
fn wrong_input_is_an_error_on_every_device() {
    let cpu = Cpu::sequential();
    let (map, options) = (shift(0.0, 0.0), WarpOptions::default());
    for processor in processors(&cpu) {
        let warped = |image: &Image<u8>, size| warp(image.view(), &map, size, &options, &processor);
        let (empty, one) = (Image::new(Size::new(0, 4)), Image::new(Size::new(1, 1)));
        assert!(matches!(warped(&empty, Size::new(3, 3)), Err(Error::Image(_))), "empty input");
        for huge in [Size::new(usize::MAX, 2), Size::new(1 << 31, 1 << 31)] {
            let found = coverage(one.size(), &map, huge, &processor);
            for error in [warped(&one, huge).unwrap_err(), found.unwrap_err()] {
                assert!(matches!(error, Error::Image(_) | Error::Memory { .. }), "{error:?}");
            }
        }
        assert!(warped(&one, Size::new(0, 3)).unwrap().data().is_empty(), "an empty output is none");
        let covered = coverage(one.size(), &map, Size::new(3, 0), &processor).unwrap();
        assert!(covered.data().is_empty(), "coverage of an empty output");
        let wrong = options.with_fill(256.0);
        let found = warp(one.view(), &map, one.size(), &wrong, &processor);
        assert!(matches!(found, Err(Error::Option { name: "fill", .. })), "{found:?}");
    }
    for (fill, fits) in [(0.5, [false, true]), (f32::NAN, [false, true]), (255.0, [true; 2])] {
        let options = options.with_fill(fill);
        assert_eq!([options.check_fill::<u8>().is_ok(), options.check_fill::<f32>().is_ok()], fits, "{fill}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn equals_the_reference_everywhere(
        width in 1_usize..24, height in 1_usize..24, channels in 1_usize..=4, kind in 0_usize..ALL.len(),
        h in proptest::array::uniform8(-0.5_f64..0.5),
    ) {
        let image = noise(Size::new(width, height), channels);
        let map = [
            [1.0 + h[0], h[1], 10.0 * h[2]],
            [h[3], 1.0 + h[4], 10.0 * h[5]],
            [0.05 * h[6], 0.05 * h[7], 1.0],
        ];
        prop_assume!(Homography::new(map).is_ok());
        let map = Homography::new(map).unwrap();
        let size = Size::new(height + 17, width + 19);
        let expected = reference(&image, &map, size, ALL[kind], 77);
        for (cpu, name) in every_cpu() {
            let found = warp(image.view(), &map, size, &options(ALL[kind], 77.0), &cpu.into()).unwrap();
            assert_same(&found, &expected, format_args!("{:?} {name}", ALL[kind]));
        }
    }
}

#[test]
fn windows_of_whole_tiles_equal_the_reference() {
    let turned = [[0.0, 1.0, -3.2], [-1.0, 0.0, 140.7], [0.0, 0.0, 1.0]];
    let gentle = [[0.98, -0.05, 6.0], [0.04, 0.99, -4.0], [4e-5, -3e-5, 1.0]];
    let [half, third] = [2.0, 3.1].map(|s| [[s, 0.4, -5.0], [-0.3, s, 3.0], [0.0, 1e-4, 1.0]]);
    let flipped = [[-0.9, 0.1, 140.0], [0.2, -1.1, 120.0], [0.0, 0.0, 1.0]];
    for (map, channels) in [turned, gentle, half, third, flipped].into_iter().zip([1, 1, 3, 1, 4]) {
        let (image, map) = (noise(Size::new(150, 140), channels), Homography::new(map).unwrap());
        let size = Size::new(170, 50);
        for kind in ALL {
            let expected = reference(&image, &map, size, kind, 3);
            for level in Cpu::levels() {
                let cpu = Cpu::sequential().at_level(level).unwrap();
                let mut found = Image::filled(size, channels, 200);
                warp_into(image.view(), &map, &options(kind, 3.0), &cpu, found.view_mut()).unwrap();
                assert_same(&found, &expected, format_args!("{map:?} {kind:?} {level:?}"));
            }
        }
    }
}

#[test]
fn progress_is_told_of_rows() {
    let (image, map) = (noise(Size::new(20, 20), 1), shift(2.0, 3.0));
    for threads in [1, 5] {
        let (cpu, size) = (Cpu::with_threads(threads).unwrap(), Size::new(30, 100));
        let warp =
            |cpu: &Cpu| warp(image.view(), &map, size, &WarpOptions::default(), &cpu.clone().into()).unwrap();
        assert!(told(&cpu, 6, warp).iter().all(|p| p.task == "warp" && p.total == 100), "rows of the output");
    }
}
