//! All threads read pairs and write maps without computing anything; `docs/benchmarks.md` compares `tiepoint stereo` with
//! it. LEFT, RIGHT and OUTPUT have the number of the pair in the place of `%`; MAP is the disparity map that is written for
//! each.

use crate::timing::{Arguments, Outcome};
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use std::time::Instant;
use tiepoint::image::{self, Compression, ReadOptions};
use tiepoint::stereo::files::{self, DisparityReading};

pub(crate) fn run(arguments: &Arguments) -> Outcome<()> {
    let [left, right, map, output, pairs, threads] = arguments.words() else {
        return Err("usage: measure files LEFT RIGHT MAP OUTPUT PAIRS THREADS".into());
    };
    let (pairs, threads): (usize, usize) = (pairs.parse()?, threads.parse()?);
    let map = files::read(map, &DisparityReading::default())?;
    let name = |pattern: &str, i: usize| pattern.replace('%', &format!("{i:02}"));
    let work = |i: usize| -> tiepoint::Result<()> {
        // Both images of a pair are in memory at the same time, as in the command.
        let pair = [left, right].map(|side| image::read(name(side, i), &ReadOptions::default()));
        pair.into_iter().collect::<Result<Vec<_>, _>>()?;
        files::write(name(output, i), map.view(), Compression::None)
    };
    let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
    let start = Instant::now();
    pool.install(|| (0..pairs).into_par_iter().with_max_len(1).try_for_each(work))?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{pairs} pairs in {seconds:.3} s: {:.1} pairs/s by {threads} threads", pairs as f64 / seconds);
    Ok(())
}
