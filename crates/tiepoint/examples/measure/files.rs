//! All threads read pairs and write maps without computing anything; `docs/benchmarks.md` compares `tiepoint stereo` with
//! it. LEFT, RIGHT and OUTPUT have the number of the pair in the place of `%`; MAP is the disparity map that is written for
//! each.

use crate::timing::{Arguments, Outcome};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tiepoint::image::{self, Compression, ReadOptions};
use tiepoint::stereo::files::{self, DisparityReading};

pub(crate) fn run(arguments: &Arguments) -> Outcome<()> {
    let [left, right, map, output, pairs, threads] = arguments.words() else {
        return Err("usage: measure files LEFT RIGHT MAP OUTPUT PAIRS THREADS".into());
    };
    let (pairs, threads): (usize, usize) = (pairs.parse()?, threads.parse()?);
    let map = files::read(map, &DisparityReading::default())?;
    let next = AtomicUsize::new(0);
    let name = |pattern: &str, i: usize| pattern.replace('%', &format!("{i:02}"));
    let work = || -> tiepoint::Result<()> {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= pairs {
                return Ok(());
            }
            // Both images of a pair are in memory at the same time, as in the command.
            let pair = [left, right].map(|side| image::read(name(side, i), &ReadOptions::default()));
            pair.into_iter().collect::<Result<Vec<_>, _>>()?;
            files::write(name(output, i), map.view(), Compression::None)?;
        }
    };
    let start = Instant::now();
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        all.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|e| resume_unwind(e)))
    })?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{pairs} pairs in {seconds:.3} s: {:.1} pairs/s by {threads} threads", pairs as f64 / seconds);
    Ok(())
}
