//! What the examples that time detectors on a GPU share.

use std::time::{Duration, Instant};
use tiepoint::feature::Features;
use tiepoint::image::{Image, Size};

/// Of so many runs the median is taken.
pub(crate) const RUNS: usize = 50;

/// The image, continued by its mirror images.
pub(crate) fn mirrored(image: &Image<u8>, size: Size) -> Image<u8> {
    let at = |i: usize, n: usize| if (i / n).is_multiple_of(2) { i % n } else { n - 1 - i % n };
    let from = image.size();
    Image::from_fn(size, |x, y| image.row(at(y, from.height))[at(x, from.width)])
}

/// The median time of some work, by the host's clock.
pub(crate) fn median(mut work: impl FnMut() -> tiepoint::Result<()>) -> tiepoint::Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        work()?;
        times.push(start.elapsed());
    }
    times.sort();
    Ok(times[RUNS / 2])
}

/// For people.
pub(crate) fn milliseconds(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

/// Says whether a GPU's features are the CPU's.
pub(crate) fn compare(found: &Features, expected: &Features) {
    if found == expected {
        println!("equal to the CPU's {} features in every byte", expected.len());
        return;
    }
    let pairs = found.keypoints.iter().zip(&expected.keypoints);
    let first = pairs.enumerate().find(|(_, (a, b))| a != b);
    println!("DIFFERENT: {} features, the CPU has {}; first: {first:?}", found.len(), expected.len());
}
