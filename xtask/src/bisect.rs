//! `cargo xtask bisect IMAGE` and `cargo xtask bisect LEFT RIGHT`: which stage of a detector, or of dense stereo,
//! differs on a GPU from the CPU.
//!
//! A unit test of the library does the work (`crates/tiepoint/src/bisect.rs`), because the stages are private to it.

use crate::{Result, prepare, workspace};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TEST: &str = "bisect::every_stage_is_that_of_the_cpu";
const USAGE: &str = "usage: cargo xtask bisect IMAGE [--device cuda:N|opencl:N] [--detector sift|surf]
       cargo xtask bisect LEFT RIGHT [--device cuda:N|opencl:N] [--cost NAME] [--disparities N]";

#[derive(Debug, Default)]
struct Asked<'a> {
    images: Vec<&'a str>,
    device: Option<&'a str>,
    detector: Option<&'a str>,
    cost: Option<&'a str>,
    disparities: Option<&'a str>,
}

impl<'a> Asked<'a> {
    fn of(arguments: &'a [String]) -> Result<Self> {
        let mut asked = Self::default();
        let mut arguments = arguments.iter().map(String::as_str);
        while let Some(argument) = arguments.next() {
            let place = match argument {
                "--device" => &mut asked.device,
                "--detector" => &mut asked.detector,
                "--cost" => &mut asked.cost,
                "--disparities" => &mut asked.disparities,
                image if !image.starts_with('-') => {
                    asked.images.push(image);
                    continue;
                }
                _ => return Err(USAGE.into()),
            };
            *place = Some(arguments.next().filter(|_| place.is_none()).ok_or(USAGE)?);
        }
        let of_stereo = asked.cost.is_some() || asked.disparities.is_some();
        let sound = match asked.images.len() {
            1 => !of_stereo && asked.detector.is_none_or(|d| ["sift", "surf"].contains(&d)),
            2 => {
                asked.detector.is_none()
                    && asked.disparities.is_none_or(|n| n.parse::<u16>().is_ok_and(|n| n > 0))
            }
            _ => false,
        };
        if sound { Ok(asked) } else { Err(USAGE.into()) }
    }

    /// The variables that the test reads.
    fn variables(&self) -> Result<Vec<(&'static str, PathBuf)>> {
        let file = |image: &&str| Path::new(image).canonicalize().map_err(|e| format!("{image}: {e}"));
        let files = self.images.iter().map(file).collect::<std::result::Result<Vec<_>, _>>()?;
        let words = [
            ("TIEPOINT_BISECT_DEVICE", self.device),
            ("TIEPOINT_BISECT_DETECTOR", self.detector),
            ("TIEPOINT_BISECT_COST", self.cost),
            ("TIEPOINT_BISECT_DISPARITIES", self.disparities),
        ];
        let words = words.map(|(name, value)| (name, PathBuf::from(value.unwrap_or_default())));
        Ok(["TIEPOINT_BISECT", "TIEPOINT_BISECT_RIGHT"].into_iter().zip(files).chain(words).collect())
    }
}

/// Prints a line for every stage; fails when one differs.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let variables = Asked::of(arguments)?.variables()?;
    let mut test = Command::new(env!("CARGO"));
    test.current_dir(workspace()).envs(prepare::prepare()?.variables).env("RUST_BACKTRACE", "0");
    test.args(["test", "--quiet", "--package", "tiepoint", "--lib", "--", "--exact", TEST, "--nocapture"]);
    test.envs(variables);
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
