//! The project's own commands, `cargo xtask COMMAND`: tests, benchmarks and packages.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to people")]

#[cfg(feature = "bench")]
mod bench;
mod bisect;
mod card;
mod claims;
mod cluster;
mod debian;
mod deny;
mod emulated;
mod instruction_sets;
mod kernels;
mod nvrtc;
mod opencl;
mod opencv_python;
mod package;
mod parity;
mod pip;
mod prepare;
mod python_package;
mod python_site;
mod report;
mod test;
mod torture;
mod wheel;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "usage: cargo xtask COMMAND
  test [ARGUMENTS]   all tests; arguments of cargo test
  test --arm [NAME]  tests built for 64-bit ARM whose name contains NAME, in an emulator
  test --windows [NAME]  the same for Windows, in Wine
  part NAME          one part of all tests, such as library or python
  torture [SECONDS]  random changes, kills, interrupts and power cuts, for five minutes or SECONDS
  prepare            installs what tests need, if permitted
  bench [ROWS]       times beside OpenCV's
  parity             agreement with OpenCV's SIFT on photographs
  bisect IMAGE...    the first stage of a detector that differs on a GPU; of two images, of dense stereo
  card               packs the tests that need a card for a machine that has one: target/card.tar.xz
  deny               licences and sources of all dependencies
  options            writes the Python classes of options anew, from the library's tables
  kernels            compiled kernels for CUDA, for the wheel and the command: target/cuda.kernels
  package            the packages as they would be published, built from their own files
  python             the tests of the Python package alone, built for development
  wheel              the Python package, a wheel and a source distribution, in target/python/dist
  dist               the command for glibc 2.17 and newer, with completions and manual pages, in target/dist";

type Result<T> = std::result::Result<T, String>;
type Run = fn() -> Result<()>;

/// The profile in which everything is tested (`Cargo.toml`).
const CHECKED: &str = "checked";
/// The folder of the profile for development.
const DEVELOPMENT: &str = "debug";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let result = match arguments.next().as_deref() {
        Some("bench") => bench(&arguments.collect::<Vec<_>>()),
        Some("bisect") => bisect::run(&arguments.collect::<Vec<_>>()),
        Some("parity") => parity::run(),
        Some("card") => card::run(),
        Some("deny") => deny::run(),
        Some("dist") => package::dist(),
        Some("options") => python_package::write_options(),
        Some("kernels") => kernels::compile().map(|file| println!("{}", file.display())),
        Some("package") => package::package(&arguments.collect::<Vec<_>>()),
        Some("prepare") => prepare::prepare().map(drop),
        Some(opencl::LIST) => opencl::print_list(),
        Some("python") => python_package::run(DEVELOPMENT),
        Some("wheel") => wheel::wheel(),
        Some("part") => test::run_part(&arguments.collect::<Vec<_>>()),
        Some("torture") => torture::run(&arguments.collect::<Vec<_>>()),
        Some("test") => test::run(&arguments.collect::<Vec<_>>()),
        _ => Err(USAGE.into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(feature = "bench")]
fn bench(arguments: &[String]) -> Result<()> {
    bench::run(arguments)
}

/// Runs the same command again in an optimised build with the library, since timings of a debug build mean nothing.
#[cfg(not(feature = "bench"))]
fn bench(arguments: &[String]) -> Result<()> {
    let bench = ["run", "--quiet", "--release", "--package", "xtask", "--features", "bench", "--", "bench"];
    succeed(cargo(&bench).args(arguments))
}

fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(arguments).current_dir(workspace());
    cargo
}

fn succeed(command: &mut Command) -> Result<()> {
    let name = command.get_program().display().to_string();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name}: {status}")),
        Err(e) => Err(format!("{name}: {e}")),
    }
}

/// The stdout of a command that must succeed; if it fails, the error holds its stderr.
fn told(command: &mut Command) -> Result<String> {
    let name = command.get_program().display().to_string();
    let output = command.output().map_err(|e| format!("{name}: {e}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(format!("{name}: {}: {}", output.status, text(&output.stderr).trim())),
    }
}

/// Whether a program can be started and succeeds.
fn runs(program: impl AsRef<OsStr>, arguments: &[&str]) -> bool {
    told(Command::new(program).args(arguments)).is_ok()
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), Into::into)
}

/// Cargo's argument for the profile of a folder below the target folder: none for development.
fn profile(folder: &str) -> Option<String> {
    (folder != DEVELOPMENT).then(|| format!("--profile={folder}"))
}

/// A program as cargo has left it below the folder of a profile.
fn built(profile: &str, name: &str) -> Result<PathBuf> {
    let program = target().join(profile).join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    program.canonicalize().map_err(at(&program))
}

/// Turns an error into a message that names the file or folder.
fn at(path: &Path) -> impl Fn(std::io::Error) -> String + '_ {
    move |e| format!("{}: {e}", path.display())
}

fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(at(folder)(e)),
        _ => Ok(()),
    }
}

/// Photographs with ground truth: `TIEPOINT_DATA`, or `../shared/data` beside the workspace.
fn data_folder() -> PathBuf {
    std::env::var_os("TIEPOINT_DATA").map_or_else(|| workspace().join("../shared/data"), PathBuf::from)
}
