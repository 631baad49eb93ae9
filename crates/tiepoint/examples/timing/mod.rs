//! What the examples that time detectors on a GPU share.

use std::time::{Duration, Instant};
use tiepoint::device::gpu::Gpu;
use tiepoint::feature::Features;
use tiepoint::image::{Image, Size};

/// Of so many runs the median is taken.
const RUNS: usize = 50;

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

/// The median of what some work takes by the device's clock.
pub(crate) fn device_seconds(
    gpu: &Gpu,
    mut work: impl FnMut() -> tiepoint::Result<()>,
) -> tiepoint::Result<f64> {
    // The device's clock takes only the device's errors.
    let mut run = || work().map_err(|e| tiepoint_gpu::Error::Usage(e.to_string()));
    run()?;
    let mut seconds = (0..RUNS).map(|_| gpu.seconds(&mut run)).collect::<Result<Vec<_>, _>>()?;
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[RUNS / 2])
}

/// Prints what every stage of some work takes by the device's clock.
pub(crate) fn stages(gpu: &Gpu, mut work: impl FnMut() -> tiepoint::Result<()>) -> tiepoint::Result<()> {
    gpu.profile(true);
    gpu.take_stages();
    (0..RUNS).try_for_each(|_| work())?;
    for stage in gpu.take_stages().iter().filter(|s| s.name != "other") {
        println!("    {:22} {:.4} ms", stage.name, stage.seconds / RUNS as f64 * 1e3);
    }
    gpu.profile(false);
    Ok(())
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
