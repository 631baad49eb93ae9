//! Times for the tables of `docs/benchmarks.md`: `cargo run --release -p tiepoint --example measure -- KIND ARGUMENTS`.
//!
//! ```text
//! detect sift|surf IMAGE 1920x1080 [cuda|opencl]   features on a GPU, of a photograph mirrored to this size
//! match N M DIMENSION u8|f32 [cuda|opencl]         the two nearest neighbours, both ways, on a GPU
//! filters [cuda|opencl]                            filters on a GPU, compared with a copy there
//! stereo 1920x1080 DISPARITIES cuda|opencl         dense stereo on a GPU, of a synthetic pair
//! cross 512x512 cuda|opencl                        registration by structure, of a scene that two sensors show
//! estimate MATCHES SHARE THREADS                   the robust estimate of a model, on one thread and on more
//! collection FOLDER PHOTOGRAPHS FEATURES [cpu|cuda|opencl] [SHARD]
//!                                                  pairs of many photographs with synthetic features
//! files LEFT RIGHT MAP OUTPUT PAIRS THREADS        the least time that the files of a sequence of pairs take
//! ```
//!
//! Each explains its options and numbers in its module. `--check` compares what a GPU finds with the CPU's, bit by bit.
#![expect(clippy::print_stdout, reason = "an example prints")]

mod collection;
mod cross;
mod detect;
mod estimate;
mod files;
mod filters;
mod matching;
mod stereo;
mod timing;

use timing::{Arguments, Outcome};

fn main() -> Outcome<()> {
    let (kind, arguments) = Arguments::of_the_program();
    match kind.as_str() {
        "detect" => detect::run(arguments),
        "match" => matching::run(arguments),
        "filters" => filters::run(arguments),
        "stereo" => stereo::run(arguments),
        "cross" => cross::run(arguments),
        "estimate" => estimate::run(&arguments),
        "collection" => collection::run(arguments),
        "files" => files::run(&arguments),
        _ => {
            Err("usage: measure detect|match|filters|stereo|cross|estimate|collection|files ARGUMENTS".into())
        }
    }
}
