//! `cargo xtask bisect IMAGE` and `cargo xtask bisect LEFT RIGHT`: which stage of a detector, or of dense stereo,
//! differs on a GPU from the CPU.
//!
//! A unit test of the library does the work (`crates/tiepoint/src/bisect.rs`), because the stages are private to it.

use crate::{Result, cargo, prepare};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

const TEST: &str = "bisect::every_stage_is_that_of_the_cpu";
const USAGE: &str = "usage: cargo xtask bisect IMAGE [--device cuda:N|opencl:N] [--detector sift|surf]
       cargo xtask bisect LEFT RIGHT [--device cuda:N|opencl:N] [--cost NAME] [--disparities N]";

/// The variables that the test reads for the files.
const FILES: [&str; 2] = ["TIEPOINT_BISECT", "TIEPOINT_BISECT_RIGHT"];

/// The flags: with how many images each goes, and the variable that the test reads.
const FLAGS: [(&str, &[usize], &str); 4] = [
    ("--device", &[1, 2], "TIEPOINT_BISECT_DEVICE"),
    ("--detector", &[1], "TIEPOINT_BISECT_DETECTOR"),
    ("--cost", &[2], "TIEPOINT_BISECT_COST"),
    ("--disparities", &[2], "TIEPOINT_BISECT_DISPARITIES"),
];

fn variables(arguments: &[String]) -> Result<Vec<(&'static str, PathBuf)>> {
    let (mut images, mut flags) = (Vec::new(), Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match FLAGS.iter().find(|(flag, ..)| flag == argument) {
            Some(flag) if flags.iter().any(|(other, _)| *other == flag) => return Err(USAGE.into()),
            Some(flag) => flags.push((flag, arguments.next().ok_or(USAGE)?)),
            None if argument.starts_with('-') => return Err(USAGE.into()),
            None => images.push(Path::new(argument).canonicalize().map_err(|e| format!("{argument}: {e}"))?),
        }
    }
    let goes = |((flag, counts, _), value): &(&(&str, &[usize], _), &String)| {
        let is_good = match *flag {
            "--detector" => ["sift", "surf"].contains(&value.as_str()),
            "--disparities" => value.parse::<u16>().is_ok_and(|n| n > 0),
            _ => true,
        };
        is_good && counts.contains(&images.len())
    };
    if !(1..=2).contains(&images.len()) || !flags.iter().all(goes) {
        return Err(USAGE.into());
    }
    let flags = flags.iter().map(|((.., variable), value)| (*variable, value.into()));
    Ok(FILES.into_iter().zip(images).chain(flags).collect())
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let variables = variables(arguments)?;
    let test = ["test", "--quiet", "--package", "tiepoint", "--lib", "--", "--exact", TEST, "--nocapture"];
    let mut test = cargo(&test);
    test.envs(prepare::prepare()?.variables).env("RUST_BACKTRACE", "0").envs(variables);
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
        _ => Err("the GPU's results are not the CPU's, or could not be compared".into()),
    }
}
