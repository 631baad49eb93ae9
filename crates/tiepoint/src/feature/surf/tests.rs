//! SURF against its reference, against known blobs, and on photographs.

use super::{reference, *};
use crate::device::{progress::tests::told, tests::cpus};
use crate::feature::DescriptorKind;
use crate::feature::testing::{assert_same_features, selections};
use crate::image::{Image, Size};
use crate::synth::Texture;
use proptest::prelude::*;

/// A picture with detail of many sizes.
pub(super) fn texture<T: Pixel>(size: Size, seed: u64) -> Image<T> {
    Texture::new(seed).image(size, &Cpu::sequential())
}

/// Compares the features of the fast form on every CPU with the reference's, and returns their number.
fn compare<T: Pixel>(view: ImageView<'_, T>, options: &SurfOptions) -> usize {
    let expected = options.selection.of(&reference::detect(view, options), &Cpu::sequential());
    for cpu in cpus() {
        let found = detect(view, options, None, &cpu).unwrap();
        let what = format!("{} {options:?} {} threads {}", view.size(), cpu.threads(), cpu.level_name());
        assert_same_features(&found, &expected, &what);
    }
    expected.len()
}

pub(super) fn presets() -> [SurfOptions; 3] {
    [SurfPreset::Paper, SurfPreset::OpenSurf, SurfPreset::OpenCv].map(SurfOptions::preset)
}

/// The images are taller than any ring buffer of rows, with blobs that need many rows.
#[test]
fn tall_images_equal_the_reference() {
    let fine = texture::<u8>(Size::new(96, 1500), 3);
    let options = SurfOptions { octaves: Some(1), threshold: 1e-3, ..SurfOptions::default() };
    assert!(compare(fine.view(), &options) > 100, "features of one octave");
    let (small, size) = (texture::<u8>(Size::new(30, 360), 4), Size::new(240, 2880));
    let coarse = Image::from_fn(size, |x, y| small.row(y / 8)[x / 8]);
    let options = SurfOptions {
        threshold: 1e-4,
        step: 2,
        octaves: Some(3),
        ..SurfOptions::preset(SurfPreset::OpenSurf)
    };
    let n = compare(coarse.view(), &options);
    assert!(n > 30, "{n} coarse features");
}

#[test]
fn variants_equal_the_reference() {
    let (size, seed) = (Size::new(170, 203), 2);
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
            assert!(compare(texture::<u8>(size, seed).view(), &options) > 10, "features of {options:?}");
        }
        compare(texture::<u16>(size, seed).view(), &preset);
        compare(texture::<f32>(size, seed).view(), &preset);
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
        seed in any::<u64>(),
        preset in 0_usize..3,
    ) {
        let image = texture::<u8>(Size::new(width + gap, height), seed);
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
        let image = texture::<u16>(Size::new(width, height), seed);
        let fresh = detect(image.view(), surf.options(), None, &cpu).unwrap();
        assert_same_features(&surf.detect(image.view(), None, &cpu).unwrap(), &fresh, "16 bits");
        let image = texture::<u8>(Size::new(width, height), seed);
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
fn a_mask_keeps_a_part() {
    let image = texture::<u8>(Size::new(240, 200), 5);
    let cpu = Cpu::sequential();
    let all = detect(image.view(), &SurfOptions::default(), None, &cpu).unwrap();
    let mask = Image::from_fn(image.size(), |x, _| u8::from(x >= 120));
    let right = detect(image.view(), &SurfOptions::default(), Some(mask.view()), &cpu).unwrap();
    let indices: Vec<_> = (0..all.len()).filter(|&i| all.keypoints[i].x.round_ties_even() >= 120.0).collect();
    assert!(indices.len() > 10 && indices.len() < all.len(), "both halves have features");
    assert_same_features(&right, &all.subset(&indices).unwrap(), "right half");
}

#[test]
fn progress_is_told_band_by_band() {
    let image = texture::<f32>(Size::new(60, 500), 5);
    for threads in [1, 5] {
        let cpu = Cpu::with_threads(threads).unwrap();
        let told = told(&cpu, 7, |cpu| detect(image.view(), &SurfOptions::default(), None, cpu).unwrap());
        assert!(told.iter().all(|p| p.task == "SURF" && p.total == 500), "rows of the image");
    }
}
