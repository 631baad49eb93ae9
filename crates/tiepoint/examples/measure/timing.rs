//! Arguments, images and clocks.

use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};
use tiepoint::device::Cpu;
use tiepoint::device::gpu::{Api, Gpu};
use tiepoint::feature::Features;
use tiepoint::image::{self, AnyImage, Image, Size};

pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The number of runs whose median is taken.
pub(crate) const RUNS: usize = 50;

pub(crate) struct Arguments(Vec<String>);

impl Arguments {
    /// The first argument, and those after it.
    pub(crate) fn of_the_program() -> (String, Self) {
        let mut words = std::env::args().skip(1);
        (words.next().unwrap_or_default(), Self(words.collect()))
    }

    /// Whether a flag was given. It is removed.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|word| word != name);
        self.0.len() < before
    }

    /// The value after a name, if it was given. Both are removed.
    pub(crate) fn value<T: FromStr>(&mut self, name: &str) -> Outcome<Option<T>> {
        let Some(at) = self.0.iter().position(|word| word == name) else { return Ok(None) };
        let value = self.0.get(at + 1).and_then(|v| v.parse().ok());
        let value = value.ok_or_else(|| format!("{name} needs a value of its kind"))?;
        self.0.drain(at..at + 2);
        Ok(Some(value))
    }

    pub(crate) fn words(&self) -> &[String] {
        &self.0
    }

    /// The value at a position among the words that are left.
    pub(crate) fn at<T: FromStr>(&self, at: usize, otherwise: T) -> Outcome<T> {
        let Some(word) = self.0.get(at) else { return Ok(otherwise) };
        word.parse().map_err(|_| format!("{word} is not a value of its kind").into())
    }
}

/// A size as in `1920x1080`.
pub(crate) fn parse_size(text: &str) -> Outcome<Size> {
    let (width, height) = text.split_once('x').ok_or("the size is not WIDTHxHEIGHT")?;
    Ok(Size::new(width.parse()?, height.parse()?))
}

/// Opens the first GPU of `cuda`, which is the default, or `opencl`, and says which it is.
pub(crate) fn open_gpu(api: Option<&String>) -> Outcome<Gpu> {
    let api = match api.map_or("cuda", String::as_str) {
        "cuda" => Api::Cuda,
        "opencl" => Api::OpenCl,
        other => return Err(format!("{other} is neither cuda nor opencl").into()),
    };
    let gpu = Gpu::open(api, 0)?;
    println!("{}", gpu.info());
    Ok(gpu)
}

pub(crate) fn all_threads() -> Outcome<Cpu> {
    Ok(Cpu::with_threads(std::thread::available_parallelism()?.get())?)
}

pub(crate) fn photograph(path: impl AsRef<Path>, cpu: &Cpu) -> Outcome<Image<u8>> {
    match image::read_grey(path, &Default::default(), cpu)? {
        AnyImage::U8(photograph) => Ok(photograph),
        _ => Err("the photograph must have 8 bits".into()),
    }
}

/// An image of another size, filled with the image and its mirror images.
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
    // `Gpu::seconds` takes closures that return the device's errors.
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
    let stages = gpu.take_stages();
    let all: f64 = stages.iter().map(|stage| stage.seconds).sum();
    let each = stages.iter().map(|stage| (stage.name, stage.seconds)).filter(|(name, _)| *name != "other");
    for (name, seconds) in each.chain([("all", all)]) {
        println!("    {name:22} {:.4} ms", seconds / RUNS as f64 * 1e3);
    }
    gpu.profile(false);
    Ok(())
}

pub(crate) fn milliseconds(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

/// Prints whether the CPU finds the same, and how long that takes; anything else is an error.
pub(crate) fn checked(same: impl FnOnce() -> tiepoint::Result<bool>) -> Outcome<()> {
    let start = Instant::now();
    if !same()? {
        return Err("what the GPU finds DIFFERS from what the CPU finds".into());
    }
    println!("the CPU's bits ({:.3} s there)", start.elapsed().as_secs_f64());
    Ok(())
}

pub(crate) fn compare(found: &Features, expected: &Features) {
    if found == expected {
        println!("equal to the CPU's {} features in every byte", expected.len());
        return;
    }
    let pairs = found.keypoints.iter().zip(&expected.keypoints);
    let first = pairs.enumerate().find(|(_, (a, b))| a != b);
    println!("DIFFERENT: {} features, the CPU has {}; first: {first:?}", found.len(), expected.len());
}
