//! Work that is cancelled at any moment gives an error or the whole result, and the same objects still work.

use super::gpu::all;
use super::{Cancel, Cpu, Processor};
use crate::feature::sift::SiftOptions;
use crate::feature::surf::SurfOptions;
use crate::feature::{Detector, Features};
use crate::filter::gauss::{GaussOptions, gauss};
use crate::geometry::warp::{WarpOptions, warp};
use crate::image::{AnyView, Image, Size};
use crate::matching::{MatchOptions, match_features};
use crate::stereo::{Masks, Stereo, StereoOptions};
use crate::synth::{Random, Scene, SceneOptions, viewpoint};
use crate::{Error, Result};
use std::time::Instant;

/// Runs a call undisturbed, then cancelled at random moments, then undisturbed again.
fn at_any_moment<R: PartialEq>(what: &str, cancel: &Cancel, call: impl Fn() -> Result<R>) {
    let wanted = call().unwrap();
    let began = Instant::now();
    assert!(call().unwrap() == wanted, "{what}: the same call");
    let takes = began.elapsed();
    let mut random = Random::new(what.len() as u64);
    let mut ended = 0;
    for _ in 0..6 {
        let found = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(takes.mul_f64(random.unit()));
                cancel.cancel();
            });
            call()
        });
        cancel.reset();
        match found {
            Err(Error::Cancelled) => ended += 1,
            found => assert!(found.unwrap() == wanted, "{what}: a cancelled call gave another result"),
        }
    }
    cancel.cancel();
    assert!(matches!(call(), Err(Error::Cancelled)), "{what}: cancelled before it began");
    cancel.reset();
    assert!(call().unwrap() == wanted, "{what}: after {ended} that were cancelled");
}

#[test]
fn a_cancelled_call_is_an_error_and_the_next_call_is_right() {
    let size = Size::new(240, 180);
    let turned = viewpoint(size, 0.2, 1.1, [0.05, 0.0], [6.0, -4.0]).unwrap();
    let options = SceneOptions::default().with_size(size).with_moving_from_reference(turned);
    let Scene { reference, moving, .. } = Scene::<u8>::render(&options, &Cpu::sequential()).unwrap();
    let images: [&Image<u8>; 2] = [&reference, &moving];
    let cpus = [1, 3].map(|threads| Processor::from(Cpu::with_threads(threads).unwrap()));
    // Separate devices, so that cancelling does not reach other tests.
    let gpus = all().iter().map(|gpu| Processor::with_gpu(Cpu::sequential(), gpu.beside().unwrap()));
    for processor in cpus.into_iter().chain(gpus) {
        let cancel = Cancel::new();
        let processor = &processor.cancelled_by(&cancel);
        let on = |what: &str| format!("{what}, {:?}, {} threads", processor.gpu, processor.cpu.threads());
        let mut found: Vec<Features> = Vec::new();
        for detector in [Detector::Surf(SurfOptions::default()), Detector::Sift(SiftOptions::default())] {
            let finder = detector.open(processor).unwrap();
            let call =
                || images.map(|image| finder.detect(image.view(), None)).into_iter().collect::<Result<_>>();
            at_any_moment::<Vec<Features>>(&on("detect"), &cancel, call);
            found = call().unwrap();
        }
        at_any_moment(&on("match"), &cancel, || {
            match_features(&found[0], &found[1], &MatchOptions::default(), processor)
        });
        let stereo = Stereo::new(StereoOptions { disparities: 64, ..StereoOptions::default() }).unwrap();
        let [left, right] = images.map(|image| AnyView::from(image.view()));
        at_any_moment(&on("stereo"), &cancel, || stereo.compute(left, right, Masks::default(), processor));
        at_any_moment(&on("warp"), &cancel, || {
            warp(reference.view(), &turned, Size::new(540, 420), &WarpOptions::default(), processor)
        });
        let wide = GaussOptions::sigma(30.0);
        at_any_moment(&on("gauss"), &cancel, || gauss(reference.view(), &wide, &processor.cpu));
    }
}
