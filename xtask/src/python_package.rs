//! The Python package around the library that cargo has built: its tests, and its types.

use crate::prepare::there;
use crate::{
    DEVELOPMENT, Result, at, built, cargo, claims, pip, profile, python_site, remove, runs, succeed, target,
    told, workspace,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// What the tests import; NumPy is all that the package needs.
const PACKAGES: [&str; 17] = [
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
    "imageio==2.38.1",
    "pandas==3.1.1",
    "plyfile==1.1.5",
    "pandora==1.9.0",
    "openexr==3.5.3",
    "h5py==3.16.0",
    "pycolmap==4.2.1",
];

pub(crate) fn prepare() -> Result<PathBuf> {
    told(Command::new("python3").args(["-c", "import sys; sys.exit(sys.version_info < (3, 11))"]))
        .map_err(|e| format!("python3 is absent or older than 3.11: {e}"))?;
    pip::unpack(&PACKAGES, &[], &workspace().join("target/python/packages"))
}

/// Assembles the package, as a profile builds it, below the target folder, runs its tests there, compares its types with
/// the compiled module and, if there is Node, checks that everything public has a type. Builds the site with it.
pub(crate) fn run(folder: &str) -> Result<()> {
    let packages = prepare()?;
    let site = there(python_site::prepare(), "the documentation's site is not built")?;
    let started = Instant::now();
    let package = lay_out(folder)?;
    let (command, quick_start) =
        (built(folder, "tiepoint")?, built(&format!("{folder}/examples"), "quick_start")?);
    let run = |module: &[&str]| {
        let mut python = python(&[&package, &packages], module)?;
        python.env("TIEPOINT", &command).env("TIEPOINT_QUICK_START", &quick_start);
        succeed(python.env("TIEPOINT_REQUIRE_COMMAND", "1"))
    };
    let report = workspace().join("target/python/tests.xml");
    let tested =
        run(&["pytest", "--quiet", "-p", "no:cacheprovider", &format!("--junit-xml={}", report.display())])
            .and_then(|()| claims::check_python(&report));
    // Types are checked even if a test fails.
    run(&["mypy.stubtest", "tiepoint"])?;
    if runs("node", &["--version"]) {
        run(&["pyright", "--verifytypes", "tiepoint", "--ignoreexternal"])?;
    }
    tested?;
    println!("the Python package: {} s", started.elapsed().as_secs());
    site.map_or(Ok(()), |site| python_site::build(&package, &site))
}

/// Writes the Python classes of options anew, from the library's tables.
pub(crate) fn write_options() -> Result<()> {
    let package = workspace().join("crates/tiepoint-python");
    let path = package.join("python/tiepoint/_options.py");
    let mut write = Command::new("python3");
    write.arg(package.join("write_options.py")).arg(lay_out(DEVELOPMENT)?.join("tiepoint/_core.abi3.so"));
    fs::write(&path, told(&mut write)?).map_err(at(&path))
}

/// A command that runs a Python module with packages from these folders.
pub(crate) fn python(folders: &[&Path], module: &[&str]) -> Result<Command> {
    let mut python = Command::new("python3");
    let path = std::env::join_paths(folders).map_err(|e| e.to_string())?;
    python.current_dir(workspace()).arg("-m").args(module);
    python.env("PYTHONPATH", path).env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(python)
}

/// The folder that holds the package: its modules, and the compiled one of a profile among them.
pub(crate) fn lay_out(folder: &str) -> Result<PathBuf> {
    // For the whole workspace: single packages would be built again, with fewer features of their dependencies.
    let build = ["build", "--quiet", "--workspace", "--lib", "--bins", "--example", "quick_start"];
    succeed(cargo(&build).args(profile(folder)))?;
    let home = workspace().join("target/python/package");
    let package = home.join("tiepoint");
    remove(&package)?;
    copy_modules(&workspace().join("crates/tiepoint-python/python/tiepoint"), &package)?;
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let compiled = target().join(folder).join(format!("{prefix}tiepoint_python{suffix}"));
    fs::copy(&compiled, package.join("_core.abi3.so")).map_err(at(&compiled))?;
    home.canonicalize().map_err(at(&home))
}

/// Copies a folder of modules, and those within it, into a new one.
pub(crate) fn copy_modules(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).map_err(at(to))?;
    for entry in fs::read_dir(from).map_err(at(from))? {
        let path = entry.map_err(at(from))?.path();
        let name = path.file_name().unwrap_or_default();
        match path.is_dir() {
            true if name == "__pycache__" => {}
            true => copy_modules(&path, &to.join(name))?,
            false => drop(fs::copy(&path, to.join(name)).map_err(at(&path))?),
        }
    }
    Ok(())
}
