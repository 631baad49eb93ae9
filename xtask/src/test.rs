//! `cargo xtask test`: runs every test that this machine can run, and prints a line about those that it cannot.

use crate::prepare::{self, Prepared, Variables};
use crate::{
    CHECKED, DEVELOPMENT, Result, Run, at, claims, cluster, data_folder, emulated, opencl, profile,
    python_package, report, succeed, target, told,
};
use fearless_simd::Level;
use std::env;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Runs Rust's tests, those of the Python package and its site, of the recipe for a cluster and of pages, in the profile
/// [`CHECKED`]. `arguments` go to `cargo test`, whose programs are then built for development; with `--arm` or `--windows`
/// first, tests are built for 64-bit ARM or Windows and run in an emulator.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if let [first, rest @ ..] = arguments
        && let Some(machine) = emulated::MACHINES.iter().find(|machine| machine.flag == first)
    {
        return machine.test(rest);
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
    let (prepared, folder) = match arguments {
        [] => {
            // Cargo replaces this program while its parts run.
            let this = target().join(format!("xtask-parts{}", env::consts::EXE_SUFFIX));
            let copied = env::current_exe().and_then(|program| std::fs::copy(program, &this));
            copied.map_err(at(&this))?;
            let prepared = prepare_while_building()?;
            run_parts(&this, &prepared)?;
            (prepared, CHECKED)
        }
        _ => {
            let prepared = prepare::prepare()?;
            let which: Vec<&str> = arguments.iter().map(String::as_str).collect();
            tests(DEVELOPMENT, &which, prepared.variables.clone())?;
            (prepared, DEVELOPMENT)
        }
    };
    claims::check(&listed(folder, &["--workspace", "--tests"], &prepared.variables)?)?;
    println!("all tests passed");
    Ok(())
}

/// Rust's tests but those of documentation. Examples are compiled by the lints.
const PROGRAMS: [&str; 4] = ["--lib", "--bins", "--test", "*"];

/// Installs what tests need, mostly downloads, while cargo builds the programs; an error of that shows when they run.
fn prepare_while_building() -> Result<Prepared> {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let build = [&["test", "--workspace", "--no-run"], &PROGRAMS[..]].concat();
            let _ = succeed(crate::cargo(&build).args(profile(CHECKED)));
        });
        prepare::prepare()
    })
}

/// The parts of all tests (`cargo xtask part NAME`): pages first, because they wait, then the longest; others fill gaps.
const PARTS: [(&str, Run); 8] = [
    ("pages", report::test),
    ("python", || python_package::run(CHECKED)),
    ("library", || tests(CHECKED, &["--lib", "--", "--skip", STEREO], vec![])),
    ("programs", || tests(CHECKED, &PROGRAMS[1..], vec![])),
    ("rusticl", on_rusticl),
    ("stereo", || tests(CHECKED, &["--lib", "--", STEREO], vec![])),
    ("cluster", cluster::test),
    ("documentation", || tests(CHECKED, &["--doc"], vec![])),
];

/// Rust's tests that the arguments name, in the profile of `folder`. A program that fails does not hide other results.
fn tests(folder: &str, which: &[&str], variables: Variables) -> Result<()> {
    cargo(folder, &[&["test", "--workspace", "--no-fail-fast"], which].concat(), variables)
}

/// Tests of the library whose names contain this are a part of their own, because most of their time passes in PoCL's
/// compiler, which compiles one program at a time in a process.
const STEREO: &str = "stereo::";

pub(crate) fn run_part(arguments: &[String]) -> Result<()> {
    let name = arguments.first().map_or("", String::as_str);
    match PARTS.iter().find(|(part, _)| *part == name) {
        Some((_, run)) => run(),
        None => Err(format!("there is no part {name:?}; parts: {}", PARTS.map(|(part, _)| part).join(", "))),
    }
}

/// Runs the parts that can run here, each a process whose lines are printed together when it has ended; one more at a time
/// than there are cores, because that of pages waits for its browser for half of its time. One that fails does not hide the
/// results of the others, and its last lines, which name the tests that failed, are printed once more at the end.
fn run_parts(this: &Path, prepared: &Prepared) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let waiting = PARTS.iter().filter_map(|(part, _)| Some((*part, prepared.variables_of(part)?)));
    let waiting = Mutex::new(waiting.collect::<Vec<_>>().into_iter());
    let failed = Mutex::new(Vec::new());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    std::thread::scope(|scope| {
        for _ in 0..PARTS.len().min(cores + 1) {
            scope.spawn(|| {
                while let Some((name, variables)) = next() {
                    if let Err(error) = in_a_process(this, name, variables, cores.div_ceil(2)) {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).push((name, error));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (name, error) in &failed {
        println!("== {name} failed, its last lines once more\n{error}");
    }
    let names: Vec<&str> = failed.iter().map(|&(name, _)| name).collect();
    if names.is_empty() { Ok(()) } else { Err(format!("failed: {}", names.join(", "))) }
}

/// How many of the last lines of a part that failed are printed again.
const LAST: usize = 60;

/// Runs a part, and prints all that it prints. The error is its last lines and how it ended.
fn in_a_process(this: &Path, name: &str, variables: &Variables, threads: usize) -> Result<()> {
    let started = Instant::now();
    let text = |e: std::io::Error| e.to_string();
    println!("{name}: begins");
    let mut part = Command::new(this);
    part.args(["part", name]).envs(variables.iter().cloned()).env("RUST_TEST_THREADS", threads.to_string());
    let (mut lines, writer) = std::io::pipe().map_err(text)?;
    part.stdout(writer.try_clone().map_err(text)?).stderr(writer);
    let mut running = part.spawn().map_err(text)?;
    // Dropped, because the reader waits as long as a writer is open in this process.
    drop(part);
    let mut printed = Vec::new();
    lines.read_to_end(&mut printed).map_err(text)?;
    let status = running.wait().map_err(text)?;
    let printed = String::from_utf8_lossy(&printed);
    println!("== {name}, {} s\n{printed}", started.elapsed().as_secs());
    if status.success() {
        return Ok(());
    }
    let lines: Vec<&str> = printed.lines().collect();
    Err(format!("{}\n{status}", lines[lines.len().saturating_sub(LAST)..].join("\n")))
}

/// The contract of the dialect and the kernels once more, on rusticl.
fn on_rusticl() -> Result<()> {
    check_left_out()?;
    // For the whole workspace: a package alone would be built again, with fewer features of its dependencies.
    cargo(CHECKED, &["test", "--workspace", "--test", "devices"], vec![])?;
    // One test at a time: with two, Mesa 22.3 ends SIFT's with memory faults or other features (`docs/notebook/gpu.md`).
    let mut kernels = vec!["test", "--workspace", "--lib", "--", "gpu", "--test-threads", "1"];
    kernels.extend(opencl::NOT_ON_RUSTICL.iter().flat_map(|name| ["--skip", name]));
    cargo(CHECKED, &kernels, vec![])?;
    println!("left out: {}", opencl::NOT_ON_RUSTICL.join(", "));
    Ok(())
}

fn listed(folder: &str, which: &[&str], variables: &Variables) -> Result<String> {
    let list = [&["test"], which, &["--", "--list"]].concat();
    told(&mut command(folder, &list, variables.clone())).map_err(|e| format!("{e} ({})", list.join(" ")))
}

/// Fails if a test that is to be left out does not exist: if it was renamed, it would run.
fn check_left_out() -> Result<()> {
    let names = listed(CHECKED, &["--workspace", "--lib"], &vec![])?;
    match opencl::NOT_ON_RUSTICL.iter().find(|name| !names.contains(**name)) {
        Some(name) => Err(format!("xtask/src/opencl.rs leaves {name} out on rusticl: there is no such test")),
        None => Ok(()),
    }
}

/// Runs `cargo test` with the arguments, on programs of a profile.
pub(crate) fn cargo(folder: &str, arguments: &[&str], variables: Variables) -> Result<()> {
    let run = succeed(&mut command(folder, arguments, variables));
    run.map_err(|e| format!("{e} ({})", arguments.join(" ")))
}

/// The seed of random test cases, and its value where the caller sets none: a run of the tests is repeatable.
const SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "1");

fn command(folder: &str, arguments: &[&str], variables: Variables) -> Command {
    let mut cargo = crate::cargo(&arguments[..1]);
    cargo.args(profile(folder)).args(&arguments[1..]).envs(variables);
    if env::var_os(SEED.0).is_none() {
        cargo.env(SEED.0, SEED.1);
    }
    if let Ok(data) = data_folder().canonicalize() {
        cargo.env("TIEPOINT_DATA", data);
    }
    cargo
}

/// Each fast form is compared with its reference at every SIMD level that is compiled and runs here.
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
