//! The Python package, built as `cargo test` has left the library: its tests, and its types.

use crate::prepare::Variables;
use crate::{Result, claims, pip, python_site, succeed, workspace};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// What the tests import; NumPy is all that the package needs.
const PACKAGES: [&str; 10] = [
    "numpy>=2.0",
    "opencv-contrib-python-headless==5.0.0.93",
    "pytest==9.2.0",
    "mypy==2.4.1",
    "pyright==1.1.414",
    "matplotlib==3.11.2",
    "rasterio==1.4.4",
    "xarray==2026.9.0",
    "pillow==13.0.0",
    "tifffile==2026.3.3",
];

pub(crate) fn prepare() -> Result<PathBuf> {
    let old =
        Command::new("python3").args(["-c", "import sys; sys.exit(sys.version_info < (3, 11))"]).status();
    if !old.map_err(|e| format!("python3: {e}"))?.success() {
        return Err("python3 is older than 3.11".into());
    }
    pip::unpack(&PACKAGES, &[], &workspace().join("target/python/packages"))
}

pub(crate) fn run() -> Result<()> {
    let (packages, site) = (prepare()?, python_site::prepare()?);
    let node = Command::new("node").arg("--version").output().is_ok();
    python_site::build(&test(&packages, node, &Variables::new())?, &site)
}

/// Lays the package out below the target folder, runs its tests there, compares its types with what is compiled and,
/// where there is Node, asks for a type of everything public. Returns the folder.
pub(crate) fn test(packages: &Path, node: bool, variables: &Variables) -> Result<PathBuf> {
    let started = Instant::now();
    let package = lay_out()?;
    let program = |name: &str| {
        let path = built(&format!("{name}{}", std::env::consts::EXE_SUFFIX));
        path.canonicalize().map_err(|e| format!("{}: {e}", path.display()))
    };
    let (command, quick_start) = (program("tiepoint")?, program("examples/quick_start")?);
    let run = |module: &[&str]| {
        let mut python = python(&[&package, packages], module)?;
        python.envs(variables.iter().cloned()).env("TIEPOINT", &command);
        python.env("TIEPOINT_QUICK_START", &quick_start).env("TIEPOINT_REQUIRE_COMMAND", "1");
        succeed(&mut python)
    };
    let report = workspace().join("target/python/tests.xml");
    run(&["pytest", "--quiet", "-p", "no:cacheprovider", &format!("--junit-xml={}", report.display())])?;
    claims::check_python(&report)?;
    run(&["mypy.stubtest", "tiepoint"])?;
    if node {
        run(&["pyright", "--verifytypes", "tiepoint", "--ignoreexternal"])?;
    }
    println!("the Python package: {} s", started.elapsed().as_secs());
    Ok(package)
}

/// Writes the Python classes of options anew, from the library's tables.
pub(crate) fn write_options() -> Result<()> {
    let package = workspace().join("crates/tiepoint-python");
    let path = package.join("python/tiepoint/_options.py");
    let mut write = Command::new("python3");
    write.arg(package.join("write_options.py")).arg(lay_out()?.join("tiepoint/_core.abi3.so"));
    let written = write.output().map_err(|e| format!("python3: {e}"))?;
    match written.status.success() {
        true => fs::write(&path, written.stdout).map_err(|e| format!("{}: {e}", path.display())),
        false => Err(String::from_utf8_lossy(&written.stderr).into_owned()),
    }
}

/// A module of Python that finds its packages in these folders.
pub(crate) fn python(folders: &[&Path], module: &[&str]) -> Result<Command> {
    let mut python = Command::new("python3");
    let path = std::env::join_paths(folders).map_err(|e| e.to_string())?;
    python.current_dir(workspace()).arg("-m").args(module);
    python.env("PYTHONPATH", path).env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(python)
}

/// A program or library as `cargo build` leaves it.
pub(crate) fn built(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), Into::into);
    target.join("debug").join(name)
}

/// The folder that holds the package: its modules, and the compiled one among them.
pub(crate) fn lay_out() -> Result<PathBuf> {
    let mut build = Command::new(env!("CARGO"));
    // Of the workspace: packages alone would be built anew, with fewer features of what they depend on.
    build.args(["build", "--quiet", "--workspace", "--lib", "--bins", "--example", "quick_start"]);
    succeed(build.current_dir(workspace()))?;
    let home = workspace().join("target/python/package");
    let package = home.join("tiepoint");
    let failed = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    if package.exists() {
        fs::remove_dir_all(&package).map_err(|e| failed(&package, e))?;
    }
    copy_modules(&workspace().join("crates/tiepoint-python/python/tiepoint"), &package)?;
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let compiled = built(&format!("{prefix}tiepoint_python{suffix}"));
    fs::copy(&compiled, package.join("_core.abi3.so")).map_err(|e| failed(&compiled, e))?;
    home.canonicalize().map_err(|e| failed(&home, e))
}

/// Copies a folder of modules, and those within it, into a new one.
pub(crate) fn copy_modules(from: &Path, to: &Path) -> Result<()> {
    let failed = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    fs::create_dir_all(to).map_err(|e| failed(to, e))?;
    for entry in fs::read_dir(from).map_err(|e| failed(from, e))? {
        let path = entry.map_err(|e| failed(from, e))?.path();
        let name = path.file_name().unwrap_or_default();
        match path.is_dir() {
            true if name == "__pycache__" => {}
            true => copy_modules(&path, &to.join(name))?,
            false => drop(fs::copy(&path, to.join(name)).map_err(|e| failed(&path, e))?),
        }
    }
    Ok(())
}
