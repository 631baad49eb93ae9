//! `cargo xtask test --arm`: the library's tests built for 64-bit ARM (NEON) and run in QEMU.
//!
//! With `rustup target add aarch64-unknown-linux-gnu`, Debian's cross compiler and emulator are all that is
//! needed. Without that target the tests are built in a folder with Debian unstable, whose Rust has a
//! standard library for arm64; that takes root, for `chroot`.

use crate::{Result, at, cargo, debian, succeed, told, workspace};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const TARGET: &str = "aarch64-unknown-linux-gnu";
/// Debian's packages that build ARM programs and run them.
const CROSS: [&str; 3] = ["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user"];
/// Rust of Debian unstable with both standard libraries, and the linker for build scripts.
const RUST: [&str; 5] = ["cargo", "rustc", "libstd-rust-dev:arm64", "gcc", "libc6-dev"];
const LINKER: &str = "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc";
const RUNNER: &str = "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64 -L /usr/aarch64-linux-gnu";

/// Tests whose names contain these are left out, because GPUs do not depend on the CPU's instructions.
const LEFT_OUT: [&str; 2] = ["gpu", "bisect"];

/// Binds the workspace and the registry's crates into the folder, in a mount namespace of its own so that nothing stays
/// mounted, and runs cargo there.
const ENTER: &str = r#"
set -e
root=$1 workspace=$2 registry=$3; shift 3
mkdir -p "$root/tiepoint" "$root/cargo/registry"
mount --bind "$workspace" "$root/tiepoint"
mount --bind "$registry" "$root/cargo/registry"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
exec chroot "$root" /usr/bin/env -i HOME=/ CARGO_HOME=/cargo PATH=/usr/bin:/bin "$@"
"#;

/// Runs the tests whose names contain one of `names`; all without any.
pub(crate) fn run(names: &[String]) -> Result<()> {
    let began = Instant::now();
    let test = ["test", "--package", "tiepoint", "--lib", "--target", TARGET];
    let left_out = LEFT_OUT.iter().flat_map(|name| ["--skip", name]);
    let harness: Vec<&str> = names.iter().map(String::as_str).chain(left_out).collect();
    let mut command = match rustup_has_target() {
        true => {
            debian::need("qemu-aarch64", &CROSS)?;
            let mut command = Command::new("env");
            command.args([LINKER, RUNNER, env!("CARGO")]).args(test).current_dir(workspace());
            command
        }
        false => {
            let mut command = in_debian_unstable(&debian_unstable()?)?;
            command.args(test).args(["--offline", "--manifest-path", "/tiepoint/Cargo.toml"]);
            command
        }
    };
    command.arg("--").args(harness);
    succeed(&mut command)?;
    println!("tests for 64-bit ARM passed after {} s of building and running", began.elapsed().as_secs());
    println!("left out: tests whose names contain {}", LEFT_OUT.join(" or "));
    Ok(())
}

fn rustup_has_target() -> bool {
    let asked = told(Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]));
    asked.is_ok_and(|o| std::fs::read_dir(o.trim()).is_ok_and(|mut files| files.next().is_some()))
}

/// The folder with Debian unstable below the target folder, made if missing.
fn debian_unstable() -> Result<PathBuf> {
    let wanted = format!("64-bit ARM needs its standard library: rustup target add {TARGET}");
    if !debian::is_root() {
        return Err(format!("{wanted} (or root, which can fetch that of Debian unstable)"));
    }
    debian::need("debootstrap", &["debootstrap"]).map_err(|e| format!("{wanted}, or: {e}"))?;
    let folder = workspace().join("target/arm/debian");
    let done = folder.join("tiepoint-is-ready");
    if !done.exists() {
        println!("Debian unstable with Rust for arm64 into {} (1.5 GB)", folder.display());
        std::fs::create_dir_all(&folder).map_err(at(&folder))?;
        if !folder.join("usr/bin/apt-get").exists() {
            succeed(Command::new("debootstrap").args(["--variant=minbase", "unstable"]).arg(&folder))?;
        }
        let inside = |arguments: &[&str]| {
            let mut command = Command::new("chroot");
            command.arg(&folder).args(["/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]);
            succeed(command.arg("DEBIAN_FRONTEND=noninteractive").args(arguments))
        };
        inside(&["dpkg", "--add-architecture", "arm64"])?;
        // A mirror of unstable may be weeks old and its lists expired; packages are signed nevertheless.
        inside(&["apt-get", "--quiet=2", "--option=Acquire::Check-Valid-Until=false", "update"])?;
        let install = ["apt-get", "--quiet=2", "install", "--yes", "--no-install-recommends"];
        inside(&[&install[..], &CROSS, &RUST].concat())?;
        std::fs::write(&done, "").map_err(at(&done))?;
    }
    folder.canonicalize().map_err(at(&folder))
}

/// Cargo of that folder, on the workspace as `/tiepoint` and the crates that the host's cargo fetched.
fn in_debian_unstable(root: &Path) -> Result<Command> {
    succeed(&mut cargo(&["fetch", "--quiet", "--locked"]))?;
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let workspace = workspace().canonicalize().map_err(|e| format!("the workspace: {e}"))?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", ENTER, "sh"]).arg(root).arg(workspace);
    command.arg(home.ok_or("no home folder")?.join("registry"));
    command.args([LINKER, RUNNER, "CARGO_TARGET_DIR=/tiepoint/target/arm/build", "cargo"]);
    Ok(command)
}
