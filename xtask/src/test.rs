//! `cargo xtask test`: runs every test that this machine can run, and prints a line about those that it cannot.

use crate::prepare::{self, Prepared, Variables};
use crate::{Result, claims, cluster, data_folder, emulated, opencl, report, succeed, told};
use fearless_simd::Level;
use std::env;
use std::panic::resume_unwind;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Runs unit, property, accuracy, command-line and documentation tests, those of the Python package and its site, of
/// the recipe for a cluster and of pages. `arguments` go to `cargo test`; with `--arm` or `--windows` first, tests are
/// built for 64-bit ARM or Windows and run in an emulator.
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
    let prepared = prepare::prepare()?;
    match arguments {
        [] => cargo_tests(&data, &prepared.variables)?,
        _ => {
            let all = ["test", "--workspace", "--no-fail-fast"].into_iter();
            let all: Vec<_> = all.chain(arguments.iter().map(String::as_str)).collect();
            cargo(&all, &data, prepared.variables.clone())?;
        }
    }
    claims::check(&listed(&["--workspace", "--tests"], &data, &prepared.variables)?)?;
    if arguments.is_empty() {
        rest(&prepared, &data)?;
    }
    println!("all tests passed");
    Ok(())
}

/// All tests of Rust. Examples are compiled by the lints.
fn cargo_tests(data: &Path, variables: &Variables) -> Result<()> {
    // A failing program must not hide the results of the others.
    let runs: [&[&str]; 2] = [&["--lib", "--bins", "--test", "*"], &["--doc"]];
    let runs = runs.map(|which| {
        cargo(&[&["test", "--workspace", "--no-fail-fast"], which].concat(), data, variables.clone())
    });
    let failed: Vec<String> = runs.into_iter().filter_map(Result::err).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

/// What `cargo test` does not run. Most of it keeps one core busy at a time, so the Python package and the site are tested
/// beside the rest.
fn rest(prepared: &Prepared, data: &Path) -> Result<()> {
    std::thread::scope(|scope| {
        let wanted = prepared.python.is_some();
        let python = wanted.then(|| scope.spawn(|| python_in_a_process(&prepared.variables)));
        let here = || {
            if let Some(variables) = &prepared.rusticl {
                on_rusticl(data, variables)?;
            }
            if let Some(packages) = &prepared.cluster {
                cluster::test(packages, &prepared.variables)?;
            }
            if prepared.browser { report::test(data) } else { Ok(()) }
        };
        let here = here();
        let python = python.map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        match (here, python.unwrap_or(Ok(()))) {
            (Err(here), Err(python)) => Err(format!("{here}; {python}")),
            (here, python) => here.and(python),
        }
    })
}

/// `cargo xtask python` in a process of its own. Its lines are printed together when it has ended.
fn python_in_a_process(variables: &Variables) -> Result<()> {
    let this = env::current_exe().map_err(|e| e.to_string())?;
    let run = Command::new(this).arg("python").envs(variables.iter().cloned()).output();
    let run = run.map_err(|e| format!("cargo xtask python: {e}"))?;
    let [out, err] = [&run.stdout, &run.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    println!("the Python package and the site, tested beside the above:\n{out}{err}");
    if run.status.success() { Ok(()) } else { Err(format!("cargo xtask python: {}", run.status)) }
}

/// The contract of the dialect and the kernels once more, on rusticl.
fn on_rusticl(data: &Path, variables: &Variables) -> Result<()> {
    println!("kernels again, on rusticl");
    let started = Instant::now();
    check_left_out(data, variables)?;
    // For the whole workspace: a package alone would be built again, with fewer features of its dependencies.
    cargo(&["test", "--workspace", "--test", "devices"], data, variables.clone())?;
    // One test at a time: with two, Mesa 22.3 ends SIFT's tests with memory faults or other features
    // (`docs/notebook/gpu.md`).
    let mut kernels = vec!["test", "--workspace", "--lib", "--", "gpu", "--test-threads", "1"];
    kernels.extend(opencl::NOT_ON_RUSTICL.iter().flat_map(|name| ["--skip", name]));
    cargo(&kernels, data, variables.clone())?;
    println!(
        "kernels on rusticl: {} s; left out: {}",
        started.elapsed().as_secs(),
        opencl::NOT_ON_RUSTICL.join(", ")
    );
    Ok(())
}

fn listed(which: &[&str], data: &Path, variables: &Variables) -> Result<String> {
    let list = [&["test"], which, &["--", "--list"]].concat();
    told(&mut command(&list, data, variables.clone())).map_err(|e| format!("{e} ({})", list.join(" ")))
}

/// Fails if a test that is left out was renamed, because it would run.
fn check_left_out(data: &Path, variables: &Variables) -> Result<()> {
    let names = listed(&["--workspace", "--lib"], data, variables)?;
    match opencl::NOT_ON_RUSTICL.iter().find(|name| !names.contains(**name)) {
        Some(name) => Err(format!("xtask/src/opencl.rs leaves {name} out on rusticl: there is no such test")),
        None => Ok(()),
    }
}

pub(crate) fn cargo(arguments: &[&str], data: &Path, variables: Variables) -> Result<()> {
    let run = succeed(&mut command(arguments, data, variables));
    run.map_err(|e| format!("{e} ({})", arguments.join(" ")))
}

/// The seed of random test cases, and its value where the caller sets none: a run of the tests is repeatable.
const SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "1");

fn command(arguments: &[&str], data: &Path, variables: Variables) -> Command {
    let mut cargo = crate::cargo(arguments);
    cargo.envs(variables);
    if env::var_os(SEED.0).is_none() {
        cargo.env(SEED.0, SEED.1);
    }
    if let Ok(data) = data.canonicalize() {
        cargo.env("TIEPOINT_DATA", data);
    }
    cargo
}

/// Each fast form is compared with its reference at every SIMD level that is compiled and that this machine
/// runs.
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
