//! SURF against its reference, against known blobs, and on photographs.

use super::{reference, *};
use crate::feature::DescriptorKind;
use crate::feature::select::Selection;
use crate::feature::testing::{assert_same_features, every_cpu, selections};
use crate::{
    device::progress::tests::told,
    image::{Image, Size},
};
use proptest::prelude::*;

/// Smooth noise with blobs of many sizes; the same for the same seed.
pub(super) fn texture(size: Size, seed: u32) -> Image<f32> {
    let hash = |x: i64, y: i64, octave: u32| {
        let mut h = (x as u32).wrapping_mul(0x9E37_79B1) ^ (y as u32).wrapping_mul(0x85EB_CA77);
        h = (h ^ seed.wrapping_add(octave.wrapping_mul(0xC2B2_AE3D))).wrapping_mul(0x27D4_EB2F);
        h = (h ^ (h >> 15)).wrapping_mul(0x2C1B_3C6D);
        f64::from((h ^ (h >> 13)) >> 8) / f64::from(1_u32 << 24)
    };
    let value = |x: f64, y: f64| {
        let mut sum = 0.0;
        for octave in 1..6 {
            let cell = f64::from(1 << octave);
            let (u, v) = (x / cell, y / cell);
            let (i, j) = (u.floor(), v.floor());
            let ease = |t: f64| t * t * (3.0 - 2.0 * t);
            let (a, b) = (ease(u - i), ease(v - j));
            let at = |di: f64, dj: f64| hash((i + di) as i64, (j + dj) as i64, octave);
            let top = at(0.0, 0.0) * (1.0 - a) + at(1.0, 0.0) * a;
            let bottom = at(0.0, 1.0) * (1.0 - a) + at(1.0, 1.0) * a;
            sum += (top * (1.0 - b) + bottom * b) * 0.2;
        }
        ((sum - 0.5) * 2.0 + 0.5).clamp(0.0, 1.0) as f32
    };
    Image::from_fn(size, |x, y| value(x as f64, y as f64))
}

pub(super) fn to_u8(image: &Image<f32>) -> Image<u8> {
    let data = image.data().iter().map(|v| (v * 255.0).round() as u8).collect();
    Image::from_vec(data, image.size(), 1).unwrap()
}

pub(super) fn to_u16(image: &Image<f32>) -> Image<u16> {
    let data = image.data().iter().map(|v| (v * 65535.0).round() as u16).collect();
    Image::from_vec(data, image.size(), 1).unwrap()
}

/// The fast form on every device against the reference; returns the number of features.
fn compare<T: Pixel>(view: ImageView<'_, T>, options: &SurfOptions) -> usize {
    let expected = options.selection.of(&reference::detect(view, options), &Cpu::sequential());
    for cpu in every_cpu() {
        let found = detect(view, options, None, &cpu).unwrap();
        let what = format!("{} {options:?} {} threads {}", view.size(), cpu.threads(), cpu.level_name());
        assert_same_features(&found, &expected, &what);
    }
    expected.len()
}

pub(super) fn presets() -> [SurfOptions; 3] {
    [SurfPreset::Paper, SurfPreset::OpenSurf, SurfPreset::OpenCv].map(SurfOptions::preset)
}

#[test]
fn presets_equal_the_reference() {
    let image = to_u8(&texture(Size::new(301, 277), 1));
    for preset in presets() {
        let threshold = preset.threshold * 0.1;
        let n = compare(image.view(), &SurfOptions { threshold, ..preset });
        assert!(n > 100, "{n} features of {preset:?} are too few to show anything");
    }
}

/// An image taller than any ring of rows, with blobs that need many rows.
#[test]
fn tall_images_equal_the_reference() {
    let fine = texture(Size::new(96, 1500), 3);
    let options = SurfOptions { octaves: Some(1), threshold: 1e-3, ..SurfOptions::default() };
    assert!(compare(to_u8(&fine).view(), &options) > 100, "features of one octave");
    let (small, size) = (texture(Size::new(30, 360), 4), Size::new(240, 2880));
    let coarse = Image::from_fn(size, |x, y| small.row(y / 8)[x / 8]);
    let options = SurfOptions {
        threshold: 1e-4,
        step: 2,
        octaves: Some(3),
        ..SurfOptions::preset(SurfPreset::OpenSurf)
    };
    let n = compare(to_u8(&coarse).view(), &options);
    assert!(n > 30, "{n} coarse features");
}

#[test]
fn variants_equal_the_reference() {
    let image = texture(Size::new(170, 203), 2);
    for preset in presets() {
        let preset = SurfOptions { threshold: preset.threshold * 0.1, ..preset };
        let variants = [
            SurfOptions { upright: true, ..preset },
            SurfOptions { extended: true, ..preset },
            SurfOptions { descriptors: DescriptorKind::None, step: 2, ..preset },
            SurfOptions { intervals: 3, octaves: Some(2), ..preset },
            SurfOptions { intervals: 7, octaves: Some(3), ..preset },
        ];
        for options in
            variants.into_iter().chain(selections(12, |selection| SurfOptions { selection, ..preset }))
        {
            assert!(compare(to_u8(&image).view(), &options) > 10, "features of {options:?}");
        }
        compare(to_u16(&image).view(), &preset);
        compare(image.view(), &preset);
    }
}

#[test]
fn extreme_pixels_equal_the_reference() {
    let checks = |x: usize, y: usize| u8::from((x / 20 + y / 20).is_multiple_of(2)) * 255;
    let image = Image::from_fn(Size::new(260, 240), checks);
    for options in presets() {
        compare(image.view(), &options);
    }
    let strange = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0, 2.0, 0.5, 0.0, 1.0];
    let image = Image::from_fn(Size::new(90, 80), |x, y| strange[(x / 7 * 5 + y / 9 * 3) % 8]);
    compare(image.view(), &SurfOptions::default());
    for level in [0_u8, 255] {
        let flat = Image::filled(Size::new(100, 100), 1, level);
        assert_eq!(
            compare(flat.view(), &SurfOptions { threshold: 0.0, ..SurfOptions::default() }),
            0,
            "flat"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_size_equals_the_reference(
        width in prop_oneof![1_usize..140, Just(1)],
        height in prop_oneof![1_usize..140, Just(1)],
        gap in 0_usize..20,
        seed in any::<u32>(),
        preset in 0_usize..3,
    ) {
        let image = to_u8(&texture(Size::new(width + gap, height), seed));
        let view = ImageView::new(image.data(), Size::new(width, height), 1, width + gap).unwrap();
        compare(view, &SurfOptions { threshold: 0.0, ..presets()[preset] });
    }
}

#[test]
fn buffers_survive_other_images() {
    let images = [(200, 190, 1), (200, 190, 2), (80, 220, 3), (200, 190, 1)];
    let cpu = Cpu::sequential();
    let surf = Surf::new(SurfOptions::default()).unwrap();
    for (width, height, seed) in images {
        let image = texture(Size::new(width, height), seed);
        let fresh = detect(image.view(), surf.options(), None, &cpu).unwrap();
        assert_same_features(&surf.detect(image.view(), None, &cpu).unwrap(), &fresh, "16 bits");
        let image = to_u8(&image);
        let fresh = detect(image.view(), surf.options(), None, &cpu).unwrap();
        assert_same_features(&surf.detect(image.view(), None, &cpu).unwrap(), &fresh, "8 bits");
    }
}

#[test]
fn wrong_input_is_an_error() {
    let cpu = Cpu::sequential();
    let image = Image::<u8>::new(Size::new(20, 20));
    let bad = [
        SurfOptions { threshold: f32::NAN, ..SurfOptions::default() },
        SurfOptions { octaves: Some(7), ..SurfOptions::default() },
        SurfOptions { intervals: 2, ..SurfOptions::default() },
        SurfOptions { step: 3, ..SurfOptions::default() },
    ];
    for options in bad {
        assert!(
            matches!(detect(image.view(), &options, None, &cpu), Err(Error::Option { .. })),
            "{options:?}"
        );
    }
    let small = Image::<u8>::new(Size::new(19, 20));
    let mismatch = detect(image.view(), &SurfOptions::default(), Some(small.view()), &cpu);
    assert!(matches!(mismatch, Err(Error::Mismatch(_))), "mask of another size");
    let empty = Image::<u8>::new(Size::new(0, 20));
    assert!(detect(empty.view(), &SurfOptions::default(), None, &cpu).is_err(), "empty image");
}

#[test]
fn mask_and_selection_keep_a_part() {
    let image = to_u8(&texture(Size::new(240, 200), 5));
    let cpu = Cpu::sequential();
    let all = detect(image.view(), &SurfOptions::default(), None, &cpu).unwrap();
    let mask = Image::from_fn(image.size(), |x, _| u8::from(x >= 120));
    let right = detect(image.view(), &SurfOptions::default(), Some(mask.view()), &cpu).unwrap();
    let indices: Vec<_> = (0..all.len()).filter(|&i| all.keypoints[i].x.round_ties_even() >= 120.0).collect();
    assert!(indices.len() > 10 && indices.len() < all.len(), "both halves have features");
    assert_same_features(&right, &all.subset(&indices).unwrap(), "right half");
    let options = SurfOptions { selection: Selection::strongest(10), ..SurfOptions::default() };
    let ten = detect(image.view(), &options, None, &cpu).unwrap();
    assert_same_features(&ten, &all.subset(&(0..10).collect::<Vec<_>>()).unwrap(), "strongest ten");
}

#[test]
fn progress_is_told_band_by_band() {
    let image = texture(Size::new(60, 500), 5);
    for threads in [1, 5] {
        let cpu = Cpu::with_threads(threads).unwrap();
        let told = told(&cpu, 7, |cpu| detect(image.view(), &SurfOptions::default(), None, cpu).unwrap());
        assert!(told.iter().all(|p| p.task == "SURF" && p.total == 500), "rows of the image");
    }
}
