//! Inputs shared by the filters' tests.

pub(super) use crate::device::tests::cpus;
use crate::image::{Border, Image, Pixel, Size, testing::shared};
use crate::numeric::Random;

pub(super) const BORDERS: [Border; 4] = [Border::Clamp, Border::Reflect, Border::Zero, Border::Skip];

/// `n` random values from 0 to `scale`, some of them exactly 0 or `scale`.
pub(super) fn noise<T: Pixel>(n: usize, seed: u32, scale: f32) -> Vec<T> {
    let mut random = Random::new(seed.into());
    (0..n).map(|_| T::from_f32(random.range(-0.2, 1.2).clamp(0.0, 1.0) as f32 * scale)).collect()
}

/// Sizes and channel counts at the limits of vector code: single pixels, rows, columns, and around vector lengths.
pub(super) fn sizes() -> Vec<(Size, usize)> {
    let sizes =
        [(1, 1, 1), (1, 9, 1), (70, 1, 1), (2, 3, 4), (16, 5, 1), (33, 70, 1), (64, 33, 1), (67, 40, 1)];
    let more = [(131, 8, 1), (200, 3, 2), (43, 34, 3), (21, 20, 4), (300, 2, 1), (5, 67, 1), (19, 6, 5)];
    sizes.into_iter().chain(more).map(|(w, h, c)| (Size::new(w, h), c)).collect()
}

/// A noise image from black to white, in a buffer whose stride may exceed a row by a few elements.
pub(super) fn strided<T: Pixel>(size: Size, channels: usize, seed: u32) -> (Vec<T>, usize) {
    let stride = size.width * channels + (seed as usize % 3) * 5;
    (noise(stride * size.height, seed, T::WHITE), stride)
}

/// An 8-bit PNG of the shared data as grey, its luma truncated; `None` if the file is absent.
pub(super) fn data(name: &str) -> Option<Image<u8>> {
    let file = std::fs::File::open(shared(name)?).unwrap();
    let mut reader = png::Decoder::new(std::io::BufReader::new(file)).read_info().unwrap();
    let mut buffer = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut buffer).unwrap();
    let channels = info.color_type.samples();
    let grey = |p: &[u8]| match p.len() {
        1 | 2 => p[0],
        _ => ((2126 * u32::from(p[0]) + 7152 * u32::from(p[1]) + 722 * u32::from(p[2])) / 10000) as u8,
    };
    let grey = buffer[..info.buffer_size()].chunks_exact(channels).map(grey).collect();
    let size = Size::new(info.width as usize, info.height as usize);
    Some(Image::from_vec(grey, size, 1).unwrap())
}
