//! Image files: round trips, damage and hostile headers.

use super::*;
use crate::device::Cpu;
use proptest::prelude::*;
use std::{fs, path::PathBuf, sync::atomic::AtomicUsize};

/// A file name of this test's own; the file goes with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(extension: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let n = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("tiepoint-image-{}-{n}.{extension}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Bits without order: the value of element `i`.
fn noise(i: usize) -> u64 {
    let x = (i as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32
}

fn image_of(kind: usize, size: Size, channels: usize) -> AnyImage {
    let n = size.area() * channels;
    match kind {
        0 => Image::from_vec((0..n).map(|i| noise(i) as u8).collect(), size, channels).unwrap().into(),
        1 => Image::from_vec((0..n).map(|i| noise(i) as u16).collect(), size, channels).unwrap().into(),
        _ => Image::from_vec((0..n).map(|i| noise(i) as f32 / 4e9).collect(), size, channels).unwrap().into(),
    }
}

fn written(extension: &str, image: &AnyImage) -> Vec<u8> {
    let file = Scratch::new(extension);
    write(&file.0, image).unwrap();
    fs::read(&file.0).unwrap()
}

fn decoded(bytes: &[u8]) -> Result<AnyImage> {
    decode(bytes, "test", &ReadOptions::default())
}

/// What `image` becomes in a format of 8 and 16 bits.
fn levelled(image: &AnyImage) -> AnyImage {
    let AnyImage::F32(i) = image else { return image.clone() };
    let data = i.data().iter().map(|v| v.level() as u16).collect();
    Image::from_vec(data, i.size(), i.channels()).unwrap().into()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn round_trips(width in 1_usize..40, height in 1_usize..40, kind in 0_usize..3, channels in 1_usize..5) {
        let image = image_of(kind, Size::new(width, height), channels);
        let grey = grey(image.clone(), &Cpu::sequential()).unwrap();
        for (extension, expected) in [("tif", image.clone()), ("png", levelled(&image)), ("pam", levelled(&image))] {
            let bytes = written(extension, &image);
            prop_assert_eq!(&decoded(&bytes).unwrap(), &expected, "{}", extension);
            let expected_grey = super::grey(expected, &Cpu::sequential()).unwrap();
            let decoded_grey = decode_grey(&bytes, "test", &ReadOptions::default()).unwrap();
            prop_assert_eq!(decoded_grey, expected_grey, "{} as grey", extension);
        }
        prop_assert_eq!(decoded(&written("pgm", &grey)).unwrap(), levelled(&grey), "pgm");
        if kind == 2 {
            prop_assert_eq!(&decoded(&written("pfm", &grey)).unwrap(), &grey, "pfm");
        }
        if channels == 3 {
            prop_assert_eq!(decoded(&written("ppm", &image)).unwrap(), levelled(&image), "ppm");
            if kind == 2 {
                prop_assert_eq!(decoded(&written("pfm", &image)).unwrap(), image, "pfm in colour");
            }
        }
    }
}
