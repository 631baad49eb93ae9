//! `cargo xtask wheel`: the Python package as it is published, a wheel and a source distribution in
//! `target/python/dist`.
//!
//! The wheel is linked by zig against the glibc of manylinux2014, so that it installs on any Linux of the last ten
//! years, and keeps to Python's stable interface: one wheel for 3.11 and newer. Both are checked here, and the tests
//! run on the installed wheel. The source distribution is installed and compiled too, which makes this too slow for CI.

use crate::python_package::{self, python};
use crate::{Result, at, cargo, kernels, pip, prepare, remove, succeed, told, workspace};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TOOLS: [&str; 4] = ["maturin==1.16.0", "ziglang==0.17.1", "auditwheel==6.8.2", "abi3audit==0.0.26"];

const LARGEST: u64 = 15_000_000;

/// Builds both, checks them, and runs the tests on the wheel.
pub(crate) fn wheel() -> Result<()> {
    let folder = workspace().join("target/python");
    let tools = pip::unpack(&TOOLS, &[], &folder.join("tools"))?;
    let dist = folder.join("dist");
    remove(&dist)?;
    fs::create_dir_all(&dist).map_err(at(&dist))?;
    let out = dist.to_string_lossy().into_owned();
    let build =
        ["build", "--release", "--locked", "--zig", "--compatibility", "manylinux2014", "--out", &out];
    succeed(maturin(&tools)?.args(build).env(kernels::VARIABLE, kernels::compile()?))?;
    let wheel = only(&dist, "whl")?;
    let size = fs::metadata(&wheel).map_err(at(&wheel))?.len();
    if size > LARGEST {
        return Err(format!("{} has {size} bytes, more than {LARGEST}", wheel.display()));
    }
    succeed(python(&[&tools], &["auditwheel", "show"])?.arg(&wheel))?;
    succeed(python(&[&tools], &["abi3audit", "--strict"])?.arg(&wheel))?;
    let packages = python_package::prepare()?;
    let installed = folder.join("installed");
    remove(&installed)?;
    pip::unpack(&[&wheel.to_string_lossy()], &["--no-deps"], &installed)?;
    succeed(&mut python(&[&installed, &packages], &["pytest", "--quiet", "-p", "no:cacheprovider"])?)?;
    succeed(maturin(&tools)?.args(["sdist", "--out", &out]))?;
    let sdist = only(&dist, "gz")?;
    lock(&sdist)?;
    compile(&sdist, &folder.join("from-sources"), &packages)?;
    println!("{} ({size} bytes)\n{}", wheel.display(), sdist.display());
    Ok(())
}

/// Maturin, which finds zig as a module of Python.
fn maturin(tools: &Path) -> Result<Command> {
    let programs = tools.join("bin");
    let mut maturin = Command::new(programs.join("maturin"));
    let path = prepare::before_others(&programs, "PATH")?;
    maturin.current_dir(workspace()).env("PYTHONPATH", tools).env("PATH", path);
    Ok(maturin)
}

fn only(folder: &Path, extension: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).map_err(at(folder))?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let found = paths.find(|path| path.extension().is_some_and(|e| e == extension));
    found.ok_or_else(|| format!("{} holds no .{extension}", folder.display()))
}

/// Installs the source distribution into a folder of its own, by its lock file, and runs the tests of features on it.
fn compile(sdist: &Path, folder: &Path, packages: &Path) -> Result<()> {
    remove(folder)?;
    let mut pip = Command::new("python3");
    pip.current_dir(workspace()).args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]);
    pip.arg(folder).arg(sdist).env("MATURIN_PEP517_ARGS", "--locked").env("PIP_ROOT_USER_ACTION", "ignore");
    succeed(&mut pip)?;
    let tests =
        ["pytest", "--quiet", "-p", "no:cacheprovider", "crates/tiepoint-python/tests/test_features.py"];
    succeed(&mut python(&[folder, packages], &tests)?)
}

/// Fits the lock file of a source distribution to it. Maturin leaves out the members of the workspace that the
/// package does not need, but not their entries in the lock file, so that `--locked` would fail.
fn lock(sdist: &Path) -> Result<()> {
    let folder = sdist.with_extension("").with_extension("");
    let home = sdist.parent().unwrap_or(sdist);
    let tar = |arguments: &[&str]| {
        let mut tar = Command::new("tar");
        tar.current_dir(home).args(arguments);
        succeed(&mut tar)
    };
    let (archive, name) = (sdist.to_string_lossy(), folder.file_name().unwrap_or_default().to_string_lossy());
    tar(&["--extract", "--gzip", "--file", &archive])?;
    for mode in ["--offline", "--locked"] {
        told(cargo(&["metadata", "--format-version", "1", mode]).current_dir(&folder))?;
    }
    let alike = ["--owner=0", "--group=0", "--sort=name", "--mtime=1980-01-01"];
    tar(&[&["--create", "--gzip"][..], &alike, &["--file", &archive, &name]].concat())?;
    remove(&folder)
}
