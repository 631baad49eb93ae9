//! The least time that the files of a sequence of pairs take: all threads read pairs and write maps without computing
//! anything. `docs/benchmarks.md` compares `tiepoint stereo` with it.
//!
//! ```text
//! cargo run --release -p tiepoint --example stereo_files -- LEFT RIGHT MAP OUTPUT 100 16
//! ```
//!
//! LEFT, RIGHT and OUTPUT have the number of the pair in the place of `%`; MAP is the disparity map that is written for
//! each.

#![expect(clippy::print_stdout, reason = "an example talks to people")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tiepoint::image::{self, Compression, ReadOptions};
use tiepoint::stereo::files::{self, DisparityReading};

type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [left, right, map, output, pairs, threads] = &words[..] else {
        return Err("usage: stereo_files LEFT RIGHT MAP OUTPUT PAIRS THREADS".into());
    };
    let (pairs, threads): (usize, usize) = (pairs.parse()?, threads.parse()?);
    let map = files::read(map, &DisparityReading::default())?;
    let next = AtomicUsize::new(0);
    let name = |pattern: &str, i: usize| pattern.replace('%', &format!("{i:02}"));
    let work = || -> Outcome {
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
        all.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread fell")?)
    })?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{pairs} pairs in {seconds:.3} s: {:.1} pairs/s by {threads} threads", pairs as f64 / seconds);
    Ok(())
}
