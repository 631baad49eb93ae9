//! SURF on every device against the CPU, stage by stage and as a whole: equal in every bit.

use super::super::tests::{PRESETS, texture, to_u8, to_u16};
use super::super::{Surf, SurfOptions};
use super::*;
use crate::device::gpu::{all, compiles_everywhere};
use crate::image::{Image, Size};

fn assert_same(found: &Features, expected: &Features, what: &str) {
    assert_eq!(found.len(), expected.len(), "number of features, {what}");
    for (i, (f, e)) in found.keypoints.iter().zip(&expected.keypoints).enumerate() {
        assert_eq!(f, e, "keypoint {i}, {what}");
    }
    assert!(found == expected, "descriptors, {what}");
}

/// One image on every device against the CPU; returns the number of features.
fn compare<T: GpuPixel>(image: &Image<T>, options: SurfOptions, mask: Option<&Image<u8>>) -> usize {
    let cpu = Cpu::sequential();
    let expected = Surf::new(options).unwrap().detect(image.view(), mask.map(Image::view), &cpu).unwrap();
    for gpu in all() {
        let on_device = GpuImage::upload(gpu, image.view()).unwrap();
        let mask = mask.map(|m| GpuImage::upload(gpu, m.view()).unwrap());
        let mut surf = GpuSurf::new(gpu, options).unwrap();
        let what = format!("{gpu:?}: {} {} {options:?}", T::NAME, image.size());
        assert_same(&surf.detect(&on_device, mask.as_ref()).unwrap(), &expected, &what);
        let kept = surf.detect_on_device(&on_device, mask.as_ref()).unwrap();
        assert_same(&kept.download().unwrap(), &expected, &format!("{what}, on the device"));
    }
    expected.len()
}

#[test]
fn presets_equal_the_cpu() {
    let image = texture(Size::new(301, 277), 1);
    for preset in PRESETS {
        let options = SurfOptions { threshold: preset.threshold * 0.1, ..preset };
        assert!(compare(&to_u8(&image), options, None) > 100, "features of {preset:?}");
        compare(&to_u16(&image), options, None);
        compare(&image, options, None);
    }
}

#[test]
fn variants_equal_the_cpu() {
    let image = to_u8(&texture(Size::new(170, 203), 2));
    for preset in PRESETS {
        let preset = SurfOptions { threshold: preset.threshold * 0.1, ..preset };
        let variants = [
            SurfOptions { upright: true, ..preset },
            SurfOptions { extended: true, ..preset },
            SurfOptions { descriptors: false, step: 2, ..preset },
            SurfOptions { intervals: 3, octaves: 2, step: 4, threshold: 0.0, ..preset },
            SurfOptions { intervals: 8, octaves: 6, step: 1, ..preset },
            SurfOptions { selection: Selection::Strongest(7), ..preset },
            SurfOptions { selection: Selection::Strongest(0), ..preset },
            SurfOptions { selection: Selection::Even(9), ..preset },
        ];
        for options in variants {
            compare(&image, options, None);
        }
    }
}

#[test]
fn masks_equal_the_cpu() {
    let image = texture(Size::new(240, 200), 5);
    let mask = Image::from_fn(image.size(), |x, y| u8::from((x / 20 + y / 30) % 3 > 0));
    let all = compare(&image, SurfOptions::paper(), None);
    let some = compare(&image, SurfOptions::paper(), Some(&mask));
    assert!(some > 10 && some < all, "{some} of {all} features under the mask");
}

#[test]
fn any_size_equals_the_cpu() {
    let mut seed = 7_u32;
    let mut next = |n: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 12) % n
    };
    for i in 0..24 {
        let side = |n: u32| if n < 10 { 1 } else { n as usize };
        let size = if i == 0 { Size::new(1, 1) } else { Size::new(side(next(140)), side(next(140))) };
        let image = texture(size, next(1 << 16));
        let options = SurfOptions { threshold: 0.0, ..PRESETS[i % 3] };
        compare(&to_u8(&image), options, None);
        compare(&image, options, None);
    }
}

#[test]
fn strange_pixels_equal_the_cpu() {
    let strange = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0, 2.0, 0.5, 0.0, 1.0];
    let image = Image::from_fn(Size::new(90, 80), |x, y| strange[(x / 7 * 5 + y / 9 * 3) % 8]);
    let checks = |x: usize, y: usize| u8::from((x / 20 + y / 20).is_multiple_of(2)) * 255;
    let checks = Image::from_fn(Size::new(260, 240), checks);
    for options in PRESETS {
        compare(&image, options, None);
        compare(&checks, options, None);
    }
}

#[test]
fn batches_equal_single_images() {
    let images: Vec<_> = (1..4).map(|seed| to_u8(&texture(Size::new(200, 150), seed))).collect();
    let options = SurfOptions { threshold: 1e-4, ..SurfOptions::paper() };
    let cpu = Cpu::sequential();
    for gpu in all() {
        let on_device: Vec<_> = images.iter().map(|i| GpuImage::upload(gpu, i.view()).unwrap()).collect();
        let mut surf = GpuSurf::new(gpu, options).unwrap();
        let found = surf.detect_batch(&on_device).unwrap();
        assert_eq!(found.len(), 3, "as many as were given");
        for (image, found) in images.iter().zip(found) {
            let expected = super::super::detect(image.view(), &options, None, &cpu).unwrap();
            assert_same(&found, &expected, &format!("{gpu:?}: in a batch"));
        }
        assert!(surf.detect_batch::<u8>(&[]).unwrap().is_empty(), "nothing of nothing");
    }
}

/// Room that is too small grows, and nothing is lost; then images of other kinds follow.
#[test]
fn room_grows() {
    let image = texture(Size::new(200, 190), 3);
    let options = SurfOptions { threshold: 0.0, ..SurfOptions::paper() };
    let cpu = Cpu::sequential();
    let expected = super::super::detect(image.view(), &options, None, &cpu).unwrap();
    let bytes = to_u8(&image);
    let expected_bytes = super::super::detect(bytes.view(), &options, None, &cpu).unwrap();
    for gpu in all() {
        let mut surf = GpuSurf::new(gpu, options).unwrap().with_capacity(5);
        let floats = GpuImage::upload(gpu, image.view()).unwrap();
        let bytes = GpuImage::upload(gpu, bytes.view()).unwrap();
        for round in 0..2 {
            let found = surf.detect(&floats, None).unwrap();
            assert_same(&found, &expected, &format!("{gpu:?}: round {round}"));
            assert_same(&surf.detect(&bytes, None).unwrap(), &expected_bytes, &format!("{gpu:?}: bytes"));
        }
        assert!(surf.launches() >= 5, "five stages");
    }
}

#[test]
fn wrong_input_is_an_error() {
    for gpu in all() {
        let bad = SurfOptions { octaves: 7, ..SurfOptions::paper() };
        assert!(matches!(GpuSurf::new(gpu, bad), Err(Error::Option { .. })), "octaves");
        let mut surf = GpuSurf::new(gpu, SurfOptions::paper()).unwrap();
        let image = |w, h| GpuImage::<u8>::upload(gpu, Image::new(Size::new(w, h)).view()).unwrap();
        assert!(matches!(surf.detect(&image(9, 9), Some(&image(9, 8))), Err(Error::Mismatch(_))), "mask");
        assert!(matches!(surf.detect_batch(&[image(9, 9), image(8, 9)]), Err(Error::Mismatch(_))), "sizes");
        let colour = GpuImage::<u8>::with_channels(gpu, Size::new(4, 4), 3).unwrap();
        assert!(matches!(surf.detect(&colour, None), Err(Error::Image(_))), "three channels");
    }
}

#[test]
fn kernels_compile_for_every_card() {
    let extended = SurfOptions { extended: true, upright: true, ..SurfOptions::opencv() };
    compiles_everywhere(&[
        stages::Stages::source::<u32>(&SurfOptions::paper()),
        stages::Stages::source::<u64>(&SurfOptions::opensurf()),
        stages::Stages::source::<u64>(&extended),
    ]);
}
