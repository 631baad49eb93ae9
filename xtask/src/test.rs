//! `cargo xtask test`: every test that this machine can run, and a word on those that it cannot.

use crate::{Result, arm, data_folder, prepare, workspace};
use fearless_simd::Level;
use std::process::Command;

/// Runs unit, property, accuracy, command-line and documentation tests. `arguments` go to `cargo test`; with `--arm`
/// first, tests are built for 64-bit ARM and run in an emulator.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if let [first, rest @ ..] = arguments
        && first == "--arm"
    {
        return arm::run(rest);
    }
    let data = data_folder();
    match data.is_dir() {
        true => println!("photographs with ground truth: {}", data.display()),
        false => println!(
            "no photographs at {}: accuracy is tested on synthetic scenes alone (TIEPOINT_DATA may name them)",
            data.display()
        ),
    }
    print_levels();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(workspace()).args(["test", "--workspace"]).args(arguments).envs(prepare::prepare()?);
    if let Ok(data) = data.canonicalize() {
        cargo.env("TIEPOINT_DATA", data);
    }
    let status = cargo.status().map_err(|e| format!("cargo cannot be started: {e}"))?;
    if !status.success() {
        return Err("cargo test failed".into());
    }
    println!("all tests passed");
    Ok(())
}

/// Each fast form is compared with its reference at every SIMD level that is compiled and that this machine runs.
fn print_levels() {
    #[cfg(target_arch = "x86_64")]
    let levels = {
        let best = Level::new();
        [("baseline", true), ("AVX2", best.as_avx2().is_some()), ("AVX-512", best.as_avx512().is_some())]
    };
    #[cfg(not(target_arch = "x86_64"))]
    let levels = [("baseline", true)];
    for (name, runs) in levels {
        println!("SIMD level {name}: {}", if runs { "tested" } else { "not tested, this machine lacks it" });
    }
}
