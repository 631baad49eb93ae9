//! Compiles the kernels that a package holds, for `cargo xtask kernels`: those that calls with default options
//! ask a card for, for every generation of cards. NVRTC does it; no card is needed.
//!
//! ```text
//! LD_LIBRARY_PATH=target/nvrtc/nvidia/cuda_nvrtc/lib cargo run -p tiepoint --example cuda_kernels -- cuda.kernels
//! ```
//!
//! Numbers after the file are the only generations: `90` for the H100 and H200.

#![expect(clippy::print_stdout, reason = "a program's answer")]

use rayon::prelude::*;
use std::collections::BTreeMap;
use std::error::Error;
use tiepoint::device::gpu::Gpu;
use tiepoint::device::{Cpu, Processor};
use tiepoint::feature::surf::SurfOptions;
use tiepoint::feature::{Descriptors, Detector, Features, Keypoint};
use tiepoint::geometry::two_view::{TwoViewOptions, Verifier};
use tiepoint::geometry::warp::{WarpOptions, warp};
use tiepoint::geometry::{Fundamental, Homography, Model};
use tiepoint::image::{AnyImage, Image, PixelKind, Size};
use tiepoint::matching::{Guide, MatchOptions, match_features};
use tiepoint::register::{Modality, RegisterOptions, tie_images};
use tiepoint::stereo::{Masks, Stereo, StereoOptions};
use tiepoint::synth::Random;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Generations of cards. Binaries of each also run on its later cards: those of 80 on 86 and 89.
const GENERATIONS: [u32; 5] = [75, 80, 90, 100, 120];

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: cuda_kernels FILE [CAPABILITY...]")?;
    let given = arguments.map(|given| given.parse()).collect::<Result<Vec<u32>, _>>()?;
    let generations = if given.is_empty() { GENERATIONS.to_vec() } else { given };
    let mut wanted = Vec::new();
    for &capability in &generations {
        let asked = asked_of(capability)?;
        println!("sm_{capability}: {} programs", asked.len());
        for (source, name) in &asked {
            wanted.push((name.clone(), source.clone(), format!("sm_{capability}")));
        }
        if generations.last() == Some(&capability) {
            // For cards to come.
            wanted.extend(
                asked.into_iter().map(|(source, name)| (name, source, format!("compute_{capability}"))),
            );
        }
    }
    let programs = compile_all(&wanted)?;
    let file = tiepoint_gpu::packaged(&programs)?;
    let mut bytes = BTreeMap::<&str, usize>::new();
    programs
        .iter()
        .for_each(|(_, architecture, binary)| *bytes.entry(architecture).or_default() += binary.len());
    bytes.iter().for_each(|(architecture, bytes)| println!("{architecture}: {bytes} bytes"));
    println!("{path}: {} programs, {} bytes", programs.len(), file.len());
    Ok(std::fs::write(path, file)?)
}

/// Compiles on all cores. The programs come in the order in which they were asked for.
fn compile_all(wanted: &[(String, String, String)]) -> Outcome<Vec<(String, String, Vec<u8>)>> {
    let compiled = wanted.par_iter().map(|(name, source, architecture)| {
        let binary = tiepoint_gpu::compile_text_for_cuda(name, source, architecture)?;
        Ok((source.clone(), architecture.clone(), binary))
    });
    Ok(compiled.collect::<tiepoint_gpu::Result<_>>()?)
}

/// The sources, with their names, that calls ask a card of this capability for.
fn asked_of(capability: u32) -> Outcome<BTreeMap<String, String>> {
    let (gpu, asked) = Gpu::dry(capability)?;
    let processor = &Processor::with_gpu(Cpu::sequential(), gpu);
    let bytes = Image::<u8>::new(Size::new(400, 300));
    let words = Image::<u16>::new(Size::new(400, 300));
    let alike: Vec<AnyImage> = (0..20).map(|_| AnyImage::from(bytes.clone())).collect();
    for detector in [Detector::default(), Detector::Surf(SurfOptions::default())] {
        let finder = detector.open(processor)?;
        finder.detect(&bytes, None)?;
        finder.detect(&bytes, Some(bytes.view()))?;
        finder.detect(&words, None)?;
        finder.reserve_for_two(bytes.size(), PixelKind::U8);
        for found in finder.detect_pair([(&alike[0]).into(), (&alike[1]).into()], [None; 2]) {
            found?;
        }
        for found in finder.detect_batch(&alike) {
            found?;
        }
    }
    let guide = |b_from_a: Model| Guide { b_from_a, radius: 3.0 };
    let model = [[0.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]];
    let guides = [
        None,
        Some(guide(Model::Homography(Homography::default()))),
        Some(guide(Model::Fundamental(Fundamental::new(model)?))),
    ];
    let sift = features(400, Descriptors::U8(vec![1; 128 * 400]), 128);
    let surf = features(400, Descriptors::F32(vec![0.1; 64 * 400]), 64);
    for features in [sift, surf] {
        for guide in guides {
            let options = MatchOptions::default().with_guide(guide);
            match_features(&features, &features, &options, processor)?;
        }
    }
    // Pictures of different sensors, whose structure a card finds and matches.
    let structure = features(400, Descriptors::U8(vec![1; 216 * 400]), 216);
    match_features(&structure, &structure, &MatchOptions::default(), processor)?;
    let cross = RegisterOptions::default().with_modality(Modality::Cross);
    let unlike = tie_images([(&bytes).into(), (&bytes).into()], &cross, processor);
    if unlike.as_ref().err().map(tiepoint::Error::kind) != Some(tiepoint::ErrorKind::Degenerate) {
        return Err(format!("empty pictures agree: {unlike:?}").into());
    }
    Verifier::new(&TwoViewOptions::default(), processor)?.reserve(64, 10_000);
    let (to, options) = (Size::new(300, 200), WarpOptions::default());
    warp(bytes.view(), &Homography::default(), to, &options, processor)?;
    warp(Image::<u8>::filled(to, 3, 0).view(), &Homography::default(), to, &options, processor)?;
    warp(words.view(), &Homography::default(), to, &options, processor)?;
    for disparities in [64, 128, 192, 256] {
        let stereo = Stereo::new(StereoOptions::default().with_disparities(disparities))?;
        stereo.compute((&bytes).into(), (&bytes).into(), Masks::default(), processor)?;
        stereo.compute((&words).into(), (&words).into(), Masks::default(), processor)?;
        let colour = Image::<u8>::filled(bytes.size(), 3, 0);
        stereo.compute((&colour).into(), (&colour).into(), Masks::default(), processor)?;
        let masks = Masks { left: Some(bytes.view()), right: Some(bytes.view()) };
        stereo.compute((&bytes).into(), (&bytes).into(), masks, processor)?;
    }
    let notes = processor.take_notes();
    if !notes.is_empty() {
        return Err(format!("the CPU did what a card should: {}", notes.join("; ")).into());
    }
    let asked = asked.lock().map_err(|e| e.to_string())?;
    Ok(asked.clone())
}

fn features(count: usize, descriptors: Descriptors, dimension: usize) -> Features {
    let mut random = Random::new(1);
    let mut keypoint = || Keypoint {
        x: random.range(0.0, 400.0) as f32,
        y: random.range(0.0, 300.0) as f32,
        scale: 2.0,
        response: 1.0,
        sign: 1,
        layer: 1,
        ..Keypoint::default()
    };
    let keypoints = (0..count).map(|_| keypoint()).collect();
    Features { keypoints, descriptors, dimension, image: Size::new(400, 300) }
}
