//! Times the search for the two nearest neighbours, both ways, on a GPU, and compares it with the CPU's:
//! `cargo run --release --example gpu_match -- 16000 16000 128 u8 cuda --check`
//!
//! `N M DIMENSION u8|f32 [cuda|opencl] [--portable] [--sign] [--check]`: so many descriptors, of unit length
//! (times 512 for bytes), a tenth of them in both images; `--portable` without tensor cores, `--sign` each
//! sign for itself, as matching does by default; `--check` holds every neighbour to the CPU's bits.
#![expect(clippy::print_stdout, reason = "an example prints")]

use tiepoint::Result;
use tiepoint::device::Cpu;
use tiepoint::device::gpu::{Api, Commands, Gpu};
use tiepoint::feature::gpu::GpuFeatures;
use tiepoint::feature::{Descriptors, Features, Keypoint};
use tiepoint::image::Size;
use tiepoint::matching::{GpuMatcher, MatchOptions, match_features, nearest_neighbours};
use tiepoint::synth::Random;

/// Descriptors of which many values are small and few large, as a SIFT descriptor's are.
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
    let mut keypoint = || Keypoint {
        x: random.range(0.0, 4000.0) as f32,
        y: random.range(0.0, 3000.0) as f32,
        scale: 2.0,
        angle: 0.0,
        response: 1.0,
        sign: if random.unit() < 0.5 { 1 } else { -1 },
        octave: 0,
        layer: 1,
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

fn main() -> Result<()> {
    let (flags, words): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|a| a.starts_with("--"));
    let number = |i: usize, otherwise| words.get(i).and_then(|w| w.parse().ok()).unwrap_or(otherwise);
    let (n, m, dimension) = (number(0, 16_000), number(1, 16_000), number(2, 128));
    let floats = words.get(3).is_some_and(|w| w == "f32");
    let api = if words.get(4).is_some_and(|w| w == "opencl") { Api::OpenCl } else { Api::Cuda };
    let has = |flag: &str| flags.iter().any(|f| f == flag);

    let mut random = Random::new(1);
    let mut rows = |count| -> Vec<_> { (0..count).map(|_| descriptor(&mut random, dimension)).collect() };
    let (a, mut b) = (rows(n), rows(m));
    for i in (0..n.min(m)).step_by(10) {
        // Exactly the same, and somewhere else once more: a tie.
        (b[m - 1 - i], b[i / 2]) = (a[i].clone(), a[i].clone());
    }
    let [a, b] = [a, b].map(|rows| features(&rows, dimension, floats, &mut random));

    let gpu = Gpu::open(api, 0)?;
    println!("{}", gpu.info());
    let matcher = GpuMatcher::new(&gpu).portable(has("--portable"));
    let [on_a, on_b] = [GpuFeatures::upload(&gpu, &a)?, GpuFeatures::upload(&gpu, &b)?];
    let options = MatchOptions::default().with_same_sign(has("--sign"));
    let mut commands = Commands::new();
    let found = matcher.record(&mut commands, &on_a, &on_b, &options)?;
    let launches = commands.launches();
    let graph = gpu.graph(commands)?;
    graph.run()?;
    gpu.finish()?;
    let mut seconds =
        (0..50).map(|_| gpu.seconds(|| graph.run())).collect::<std::result::Result<Vec<_>, _>>()?;
    seconds.sort_by(f64::total_cmp);
    let comparisons = 2.0 * n as f64 * m as f64 * if has("--sign") { 0.5 } else { 1.0 };
    println!(
        "{n} x {m} x {dimension} {}, both ways, {launches} launches: median {:.4} ms, best {:.4} ms, {:.0} G comparisons/s",
        if floats { "f32" } else { "u8" },
        seconds[25] * 1e3,
        seconds[0] * 1e3,
        comparisons / seconds[25] * 1e-9
    );
    gpu.profile(true);
    (0..20).try_for_each(|_| graph.run())?;
    for stage in gpu.take_stages() {
        println!("  {:14} {:.4} ms", stage.name, stage.seconds / stage.calls as f64 * 1e3);
    }
    if has("--check") {
        let cpu = Cpu::with_threads(std::thread::available_parallelism().map_or(1, usize::from).min(64))?;
        let cpu = cpu.into();
        let same = match has("--sign") {
            true => found.matches(&options)? == match_features(&a, &b, &options, &cpu)?,
            false => found.download()? == nearest_neighbours(&a, &b, &cpu)?,
        };
        println!("{}", if same { "the bits of the CPU" } else { "DIFFERENT from the CPU" });
        assert!(same, "the GPU's neighbours are not the CPU's");
    }
    Ok(())
}
