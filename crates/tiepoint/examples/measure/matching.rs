//! Descriptors of unit length (times 512 for bytes), a tenth of them in both images. `--portable` uses no tensor cores,
//! `--sign` searches each sign separately, as matching does by default. `--repeat` compares many runs, to find races.

use crate::timing::{Arguments, Outcome, all_threads, checked, device_seconds, open_gpu, stages};
use tiepoint::device::gpu::Commands;
use tiepoint::feature::gpu::GpuFeatures;
use tiepoint::feature::{Descriptors, Features, Keypoint};
use tiepoint::image::Size;
use tiepoint::matching::{GpuMatcher, MatchOptions, match_features, nearest_neighbours};
use tiepoint::synth::Random;

const REPEATS: usize = 20_000;

/// Descriptors with many small values and few large ones, like a SIFT descriptor.
fn descriptor(random: &mut Random, dimension: usize) -> Vec<f32> {
    let values: Vec<f32> = (0..dimension)
        .map(|_| {
            let v = random.normal().max(0.0);
            (v * v) as f32
        })
        .collect();
    let length = values.iter().map(|v| v * v).sum::<f32>().sqrt().max(1e-6);
    values.iter().map(|v| v / length).collect()
}

fn features(rows: &[Vec<f32>], dimension: usize, floats: bool, random: &mut Random) -> Features {
    let values = rows.iter().flatten();
    let mut keypoint = || {
        let [x, y] = [4000.0, 3000.0].map(|side| random.range(0.0, side) as f32);
        let sign = if random.unit() < 0.5 { 1 } else { -1 };
        Keypoint { x, y, scale: 2.0, sign, ..Keypoint::default() }
    };
    Features {
        keypoints: rows.iter().map(|_| keypoint()).collect(),
        descriptors: match floats {
            true => Descriptors::F32(values.copied().collect()),
            false => Descriptors::U8(values.map(|v| (v * 512.0).round().min(255.0) as u8).collect()),
        },
        dimension,
        image: Size::new(4000, 3000),
    }
}

pub(crate) fn run(mut arguments: Arguments) -> Outcome<()> {
    let [portable, sign, check, repeat] =
        ["--portable", "--sign", "--check", "--repeat"].map(|flag| arguments.flag(flag));
    let (n, m, dimension) = (arguments.at(0, 16_000)?, arguments.at(1, 16_000)?, arguments.at(2, 128)?);
    let floats = arguments.words().get(3).is_some_and(|word| word == "f32");

    let mut random = Random::new(1);
    let mut rows = |count| -> Vec<_> { (0..count).map(|_| descriptor(&mut random, dimension)).collect() };
    let (a, mut b) = (rows(n), rows(m));
    for i in (0..n.min(m)).step_by(10) {
        // The same descriptor in two places: a tie.
        (b[m - 1 - i], b[i / 2]) = (a[i].clone(), a[i].clone());
    }
    let [a, b] = [a, b].map(|rows| features(&rows, dimension, floats, &mut random));

    let gpu = open_gpu(arguments.words().get(4))?;
    let matcher = GpuMatcher::new(&gpu).portable(portable);
    let [on_a, on_b] = [GpuFeatures::upload(&gpu, &a)?, GpuFeatures::upload(&gpu, &b)?];
    let options = MatchOptions::default().with_same_sign(sign);
    let mut commands = Commands::new();
    let found = matcher.record(&mut commands, &on_a, &on_b, &options)?;
    let launches = commands.launches();
    let graph = gpu.graph(commands)?;
    let seconds = device_seconds(&gpu, || Ok(graph.run()?))?;
    let comparisons = 2.0 * n as f64 * m as f64 * if sign { 0.5 } else { 1.0 };
    let (kind, ms, rate) = (if floats { "f32" } else { "u8" }, seconds * 1e3, comparisons / seconds * 1e-9);
    println!(
        "{n} x {m} x {dimension} {kind}, both ways, {launches} launches: {ms:.4} ms, {rate:.0} G comparisons/s"
    );
    stages(&gpu, || Ok(graph.run()?))?;
    if repeat {
        let first = found.download()?;
        let mut differing = 0;
        for _ in 0..REPEATS {
            graph.run()?;
            differing += usize::from(found.download()? != first);
        }
        println!("{differing} of {REPEATS} runs differ from the first");
    }
    if check {
        let cpu = all_threads()?.into();
        checked(|| match sign {
            true => Ok(found.matches(&options)? == match_features(&a, &b, &options, &cpu)?),
            false => Ok(found.download()? == nearest_neighbours(&a, &b, &cpu)?),
        })?;
    }
    Ok(())
}
