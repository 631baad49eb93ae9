//! The body of the targets that read images.

use tiepoint::{device::Cpu, image};

/// Decodes `magic` followed by `data`, whole and row by row, which must agree.
pub fn decode(magic: &[u8], data: &[u8]) {
    let bytes = [magic, data].concat();
    let options = image::ReadOptions::default().with_max_pixels(1 << 22).with_max_bytes(1 << 24);
    let Ok(whole) = image::decode_file(&bytes, "fuzz", &options) else { return };
    let grey =
        |image: image::AnyImage| image::grey(&image, &Cpu::sequential()).map(image::AnyCow::into_image);
    let rows = image::decode_grey_alpha(&bytes, "fuzz", &options).and_then(|file| grey(file.image));
    match (grey(whole.into_seen().0), rows) {
        (Ok(a), Ok(b)) => assert!(same(&a, &b), "grey differs from grey by rows"),
        (Err(_), Err(_)) => {}
        (a, b) => panic!("one way fails: {:?} {:?}", a.err(), b.err()),
    }
}

fn same(a: &image::AnyImage, b: &image::AnyImage) -> bool {
    match (a, b) {
        // NaN counts as equal to NaN.
        (image::AnyImage::F32(a), image::AnyImage::F32(b)) => {
            let pairs = a.data().iter().zip(b.data());
            a.size() == b.size()
                && pairs.into_iter().all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan())
        }
        _ => a == b,
    }
}
