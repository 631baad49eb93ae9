//! `cargo xtask bisect IMAGE`: which stage of a detector gives other features on a GPU than on the CPU.
//!
//! A unit test of the library does the work (`crates/tiepoint/src/feature/bisect.rs`), because the stages are private
//! to it.

use crate::{Result, prepare, workspace};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const TEST: &str = "feature::bisect::the_gpu_may_begin_with_any_stage";
const USAGE: &str = "usage: cargo xtask bisect IMAGE [--device cuda:N|opencl:N] [--detector sift|surf]";

/// Prints a line for every stage; fails when one differs.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (mut image, mut device, mut detector) = (None, None, None);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let (place, value) = match argument.as_str() {
            "--device" => (&mut device, arguments.next()),
            "--detector" => (&mut detector, arguments.next()),
            _ => (&mut image, Some(argument).filter(|a| !a.starts_with('-'))),
        };
        *place = Some(value.filter(|_| place.is_none()).ok_or(USAGE)?.as_str());
    }
    let image = Path::new(image.ok_or(USAGE)?);
    let image = image.canonicalize().map_err(|e| format!("{}: {e}", image.display()))?;
    if detector.is_some_and(|d| !["sift", "surf"].contains(&d)) {
        return Err(USAGE.into());
    }
    let mut test = Command::new(env!("CARGO"));
    test.current_dir(workspace()).envs(prepare::prepare()?.variables).env("RUST_BACKTRACE", "0");
    test.args(["test", "--quiet", "--package", "tiepoint", "--lib", "--", "--exact", TEST, "--nocapture"]);
    test.env("TIEPOINT_BISECT", image);
    test.env("TIEPOINT_BISECT_DEVICE", device.unwrap_or_default());
    test.env("TIEPOINT_BISECT_DETECTOR", detector.unwrap_or_default());
    let cannot = |e| format!("cargo cannot be started: {e}");
    let mut running = test.stdout(Stdio::piped()).spawn().map_err(cannot)?;
    let lines = running.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines());
    for line in lines.map_while(std::result::Result::ok) {
        if let Some((_, told)) = line.split_once("bisect: ") {
            println!("{told}");
        }
    }
    match running.wait() {
        Ok(status) if status.success() => Ok(()),
        _ => Err("the GPU's features are not the CPU's, or could not be compared".into()),
    }
}
