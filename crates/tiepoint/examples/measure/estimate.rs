//! The share of the matches lies on a plane, to half a pixel. Half of the others lie off it by up to 40 pixels, as in a
//! photograph of relief; the rest are wrong. Every estimate must equal that of one thread.

use crate::timing::{Arguments, Outcome};
use std::time::Instant;
use tiepoint::Result;
use tiepoint::device::Cpu;
use tiepoint::geometry::{Correspondence, Estimate, Homography, ModelKind, RobustOptions, estimate};
use tiepoint::synth::Random;

const RUNS: usize = 9;

fn scene(matches: usize, share: f64) -> Result<Vec<Correspondence>> {
    let plane = Homography::new([[0.98, -0.12, 410.0], [0.11, 0.97, -230.0], [4e-6, -3e-6, 1.0]])?;
    let mut random = Random::new(7);
    let mut pair = |_| {
        let a = [random.range(0.0, 5472.0), random.range(0.0, 3648.0)];
        let [u, v] = plane.apply(a).unwrap_or(a);
        let kind = random.unit();
        let b = if kind < share {
            [u + 0.5 * random.normal(), v + 0.5 * random.normal()]
        } else if kind < 0.5 * (1.0 + share) {
            [u + random.range(-40.0, 40.0), v + random.range(-40.0, 40.0)]
        } else {
            [random.range(0.0, 5472.0), random.range(0.0, 3648.0)]
        };
        Correspondence { a, b, quality: -random.unit() }
    };
    Ok((0..matches).map(&mut pair).collect())
}

pub(crate) fn run(arguments: &Arguments) -> Outcome<()> {
    let (matches, share) = (arguments.at(0, 65_000)?, arguments.at(1, 0.5)?);
    let most = arguments.at(2, 16)?;
    for kind in [ModelKind::Homography, ModelKind::Fundamental] {
        let pairs = scene(matches, share)?;
        let options = RobustOptions::default();
        let mut expected: Option<(Result<Estimate>, f64)> = None;
        for threads in [1, 2, 4, 8, 16, 32].into_iter().filter(|t| *t <= most) {
            let cpu = Cpu::with_threads(threads)?;
            let run = || {
                let start = Instant::now();
                let found = estimate(kind, &pairs, &options, &cpu);
                (found, start.elapsed().as_secs_f64() * 1e3)
            };
            let mut runs: Vec<_> = (0..RUNS).map(|_| run()).collect();
            runs.sort_by(|p, q| p.1.total_cmp(&q.1));
            let (found, ms) = runs.swap_remove(RUNS / 2);
            let (first, alone) = expected.get_or_insert((found, ms));
            let told = match first {
                Ok(e) => format!("{} inliers, {} samples", e.inliers.len(), e.iterations),
                Err(error) => error.to_string(),
            };
            let alike = runs.iter().all(|(found, _)| format!("{found:?}") == format!("{first:?}"));
            let times = *alone / ms;
            println!("{kind} {threads:2} threads: {ms:8.2} ms, {times:5.2} times, {told}, alike: {alike}");
        }
    }
    Ok(())
}
