//! A camera moves along points in space; photographs up to four places apart share points, others have nothing in common.
//! The photographs themselves are black. `--sequence` and `--top-scale` choose pairs, `--block N` is the side of
//! a tile. Prints speed and memory.

use crate::timing::{Arguments, Outcome, all_threads};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tiepoint::collection::{Collection, CollectionOptions, PairChoice, PairOptions, Shard};
use tiepoint::device::{Device, Processor};
use tiepoint::feature::{Descriptors, Features, Keypoint};
use tiepoint::image::{Image, Size};
use tiepoint::synth::Random;
use tiepoint::{Error, Result};

/// The size that the photographs' records give.
const SIZE: Size = Size::new(4000, 3000);
/// The number of photographs that see a point.
const SEEN: usize = 5;

/// The descriptor of a point: few large values and many small ones, of length 512.
fn descriptor(point: u64) -> impl Iterator<Item = u8> {
    let mut random = Random::new(point);
    let values: [f32; 128] = std::array::from_fn(|_| (random.bits() >> 40) as f32 * (1.0 / 16_777_216.0));
    let values = values.map(|v| v * v * v);
    let length = values.iter().map(|v| v * v).sum::<f32>().sqrt();
    values.into_iter().map(move |v| (v * 512.0 / length).min(255.0) as u8)
}

/// The features of photograph `index`: `count` points, each seen in `SEEN` photographs in sequence.
fn features(index: usize, count: usize) -> Features {
    let step = count.div_ceil(SEEN);
    let mut keypoints = Vec::with_capacity(count);
    let mut values = Vec::with_capacity(128 * count);
    for point in index * step..index * step + count {
        let mut random = Random::new(point as u64 ^ 0x5eed);
        // In units of the distance that the camera moves from photograph to photograph.
        let along = point as f64 / step as f64 - index as f64;
        let (depth, height) = (random.range(0.8, 1.2), random.range(0.1, 0.9));
        let x = (along / SEEN as f64 / depth * 3000.0) as f32 + 100.0;
        let y = (height / depth * 2000.0) as f32 + 100.0;
        let sign = if random.bits() & 1 == 0 { 1 } else { -1 };
        keypoints.push(Keypoint { x, y, scale: 2.0, sign, ..Keypoint::default() });
        values.extend(descriptor(point as u64));
    }
    Features { keypoints, descriptors: Descriptors::U8(values), dimension: 128, image: SIZE }
}

/// A file for every photograph, without content.
fn pictures(folder: &Path, count: usize) -> Result<PathBuf> {
    let images = folder.join("images");
    std::fs::create_dir_all(&images).map_err(|e| Error::io(&images, e))?;
    let path = |i: usize| images.join(format!("{i:06}.png"));
    tiepoint::image::write(path(0), Image::filled(SIZE, 1, 0_u8).view())?;
    for path in (1..count).map(path).filter(|path| !path.exists()) {
        std::fs::copy(images.join("000000.png"), &path).map_err(|e| Error::io(&path, e))?;
    }
    Ok(images)
}

/// Puts the features of all photographs into the work folder, on all threads.
fn fill(collection: &Collection, count: usize) -> Result<()> {
    let photographs = (0..collection.photographs().len()).into_par_iter();
    photographs.try_for_each(|i| collection.import_features(i, &features(i, count)).map(drop))
}

/// The peak memory of this process, where the system reports it.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.map_or("unknown".into(), |peak| peak.trim().to_owned())
}

pub(crate) fn run(mut arguments: Arguments) -> Outcome<()> {
    let choice = match ["--sequence", "--top-scale"].map(|flag| arguments.flag(flag)) {
        [true, _] => PairChoice::Sequence,
        [false, true] => PairChoice::TopScale,
        [false, false] => PairChoice::Exhaustive,
    };
    let block = arguments.value("--block")?;
    let (folder, photographs) = (arguments.at(0, PathBuf::from("scale"))?, arguments.at(1, 100)?);
    let (count, shard) = (arguments.at(2, 512)?, arguments.at(4, Shard::ALL)?);
    let cpu = all_threads()?;
    let threads = cpu.threads();
    let processor = match arguments.at(3, "cpu".to_owned())?.as_str() {
        "cpu" => Processor::from(cpu),
        device => device.parse::<Device>()?.open(threads)?,
    };
    let options = CollectionOptions::default()
        .with_pairs(PairOptions::default().with_choice(choice).with_closure(false))
        .with_block(block);
    let images = pictures(&folder, photographs)?;
    let timed = |what: &str, start: Instant| {
        println!("{what}: {:.2} s, memory so far {}", start.elapsed().as_secs_f64(), memory());
    };
    let start = Instant::now();
    let (collection, _) = Collection::scan(folder.join("work"), &[images], &options, &processor.cpu)?;
    timed("scan", start);
    let start = Instant::now();
    fill(&collection, count)?;
    timed("features made and written", start);
    let start = Instant::now();
    let chosen = collection.choose_pairs(shard, &processor.cpu)?;
    timed("pairs", start);
    if chosen.is_none() {
        println!("other parts compare the rest");
        return Ok(());
    }
    let start = Instant::now();
    let matched = collection.match_pairs(shard, std::slice::from_ref(&processor))?;
    let rate = matched.pairs as f64 / start.elapsed().as_secs_f64();
    timed("match", start);
    println!("{} pairs in {} tiles, {rate:.0} pairs/s", matched.pairs, matched.tiles);
    let start = Instant::now();
    let status = collection.status(&processor.cpu)?;
    timed("status", start);
    println!("{} of {} pairs verified, {} inliers", status.verified, status.tried, status.inliers);
    Ok(())
}
