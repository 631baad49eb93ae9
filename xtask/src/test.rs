//! `cargo xtask test`: runs every test that this machine can run, and prints a line about those that it cannot.

use crate::prepare::{self, Variables};
use crate::{
    Result, claims, cluster, data_folder, emulated, opencl, python_package, python_site, report, succeed,
    told,
};
use fearless_simd::Level;
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
    // A failing program must not hide the results of the others.
    let mut all = vec!["test", "--workspace", "--no-fail-fast"];
    all.extend(arguments.iter().map(String::as_str));
    cargo(&all, &data, prepared.variables.clone())?;
    claims::check(&listed(&["--workspace"], &data, &prepared.variables)?)?;
    if let (Some(variables), []) = (prepared.rusticl, arguments) {
        on_rusticl(&data, &variables)?;
    }
    if let (Some(packages), []) = (&prepared.python, arguments) {
        let package = python_package::test(packages, prepared.browser, &prepared.variables)?;
        if let Some(site) = &prepared.site {
            python_site::build(&package, site)?;
        }
    }
    if let (Some(packages), []) = (&prepared.cluster, arguments) {
        cluster::test(packages, &prepared.variables)?;
    }
    if prepared.browser && arguments.is_empty() {
        report::test(&data)?;
    }
    println!("all tests passed");
    Ok(())
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

fn command(arguments: &[&str], data: &Path, variables: Variables) -> Command {
    let mut cargo = crate::cargo(arguments);
    cargo.envs(variables);
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
