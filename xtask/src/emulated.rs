//! `cargo xtask test --arm` and `--windows`: tests built for another machine and run on this one, in QEMU and in Wine.
//!
//! Where rustup has the target's standard library, Debian's cross compiler and emulator are all that is needed.
//! Elsewhere root (for `chroot`) builds them in a folder with Debian unstable, whose Rust has that library or its source.

use crate::{Result, at, cargo, debian, succeed, told, workspace};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// What differs from machine to machine.
pub(crate) struct Machine {
    pub(crate) flag: &'static str,
    name: &'static str,
    target: &'static str,
    /// Debian's packages that build its programs and run them.
    cross: &'static [&'static str],
    emulator: &'static str,
    /// Debian's packages of Rust: compilers, the target's standard library or its source, and a linker for build scripts.
    rust: &'static [&'static str],
    /// Debian's architecture whose packages hold that library. Without one, Debian's source is compiled with the tests.
    foreign: Option<&'static str>,
    variables: &'static [&'static str],
    tested: &'static [&'static str],
}

/// Tests that are left out, by their names: GPUs do not depend on the CPU's instructions, and Wine has no driver.
const LEFT_OUT: [&str; 2] = ["gpu", "bisect"];

pub(crate) const MACHINES: [Machine; 2] = [
    Machine {
        flag: "--arm",
        name: "64-bit ARM",
        target: "aarch64-unknown-linux-gnu",
        cross: &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user"],
        emulator: "qemu-aarch64",
        rust: &["cargo", "rustc", "libstd-rust-dev:arm64", "gcc", "libc6-dev"],
        foreign: Some("arm64"),
        variables: &[
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc",
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64 -L /usr/aarch64-linux-gnu",
        ],
        tested: &["--package", "tiepoint", "--lib"],
    },
    Machine {
        flag: "--windows",
        name: "Windows",
        target: "x86_64-pc-windows-gnu",
        // Wine below version 10 lacks bcryptprimitives.dll and starts nothing.
        cross: &["gcc-mingw-w64-x86-64-win32", "wine", "wine64"],
        emulator: "wine",
        rust: &["cargo", "rustc", "rust-src", "gcc", "libc6-dev"],
        foreign: None,
        variables: &[
            "CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc",
            "CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine",
            "WINEDEBUG=-all",
            // Otherwise Wine makes no file whose name is not ASCII.
            "LC_ALL=C.UTF-8",
            // Building the standard library needs an option that stable compilers do not offer.
            "RUSTC_BOOTSTRAP=1",
        ],
        tested: &["--package", "tiepoint", "--package", "tiepoint-cli"],
    },
];

/// Runs cargo in the folder, with the workspace and the registry bound into it in a mount namespace that ends with it.
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

impl Machine {
    /// Runs the tests whose names contain one of `names`; all tests if there are none.
    pub(crate) fn test(&self, names: &[String]) -> Result<()> {
        let began = Instant::now();
        let left_out = LEFT_OUT.iter().flat_map(|name| ["--skip", name]);
        let harness: Vec<&str> = names.iter().map(String::as_str).chain(left_out).collect();
        let mut command = match self.rustup_has_target() {
            true => {
                debian::need(self.emulator, self.cross)?;
                let mut command = Command::new("env");
                command.args(self.variables).args([env!("CARGO"), "test"]).current_dir(workspace());
                command
            }
            false => {
                let mut command = self.in_debian_unstable(&self.debian_unstable()?)?;
                command.args(["test", "--offline", "--manifest-path", "/tiepoint/Cargo.toml"]);
                command.args(self.foreign.is_none().then_some("-Zbuild-std=std,panic_unwind,test"));
                command
            }
        };
        command.args(["--no-fail-fast", "--target", self.target]).args(self.tested).arg("--").args(harness);
        succeed(&mut command)?;
        let seconds = began.elapsed().as_secs();
        println!("tests for {} passed after {seconds} s of building and running", self.name);
        println!("left out: tests whose names contain {}", LEFT_OUT.join(" or "));
        Ok(())
    }

    fn rustup_has_target(&self) -> bool {
        let asked = told(Command::new("rustc").args(["--print", "target-libdir", "--target", self.target]));
        asked.is_ok_and(|o| std::fs::read_dir(o.trim()).is_ok_and(|mut files| files.next().is_some()))
    }

    /// The folder with Debian unstable below the target folder, made if missing.
    fn debian_unstable(&self) -> Result<PathBuf> {
        let wanted = format!("{} needs its standard library: rustup target add {}", self.name, self.target);
        if !debian::is_root() {
            return Err(format!("{wanted} (or root, which can fetch that of Debian unstable)"));
        }
        debian::need("debootstrap", &["debootstrap"]).map_err(|e| format!("{wanted}, or: {e}"))?;
        let folder = workspace().join("target/emulated/debian");
        let done = folder.join(format!("tiepoint-is-ready{}", self.flag));
        if !done.exists() {
            println!("Debian unstable with Rust for {} into {} (2 GB)", self.name, folder.display());
            std::fs::create_dir_all(&folder).map_err(at(&folder))?;
            if !folder.join("usr/bin/apt-get").exists() {
                succeed(Command::new("debootstrap").args(["--variant=minbase", "unstable"]).arg(&folder))?;
            }
            let inside = |arguments: &[&str]| {
                let mut command = Command::new("chroot");
                command.arg(&folder).args(["/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]);
                succeed(command.arg("DEBIAN_FRONTEND=noninteractive").args(arguments))
            };
            if let Some(architecture) = self.foreign {
                inside(&["dpkg", "--add-architecture", architecture])?;
            }
            // A mirror of unstable may be weeks old and its lists expired; packages are signed nevertheless.
            inside(&["apt-get", "--quiet=2", "--option=Acquire::Check-Valid-Until=false", "update"])?;
            let install = ["apt-get", "--quiet=2", "install", "--yes", "--no-install-recommends"];
            inside(&[&install[..], self.cross, self.rust].concat())?;
            std::fs::write(&done, "").map_err(at(&done))?;
        }
        folder.canonicalize().map_err(at(&folder))
    }

    /// Cargo of that folder, on the workspace as `/tiepoint` and the crates that the host's cargo fetched.
    fn in_debian_unstable(&self, root: &Path) -> Result<Command> {
        let fetch = ["fetch", "--quiet", "--locked", "--target", self.target];
        succeed(&mut cargo(&fetch))?;
        if self.foreign.is_none() {
            // The vendored dependencies beside the standard library would also replace the registry for our own crates.
            let library = root.join("usr/lib/rustlib/src/rust/library");
            let (copies, aside) = (library.join("vendor"), library.join("vendor-aside"));
            if copies.exists() {
                std::fs::rename(&copies, &aside).map_err(at(&copies))?;
            }
            let mut fetch = cargo(&["fetch", "--quiet", "--locked", "--manifest-path"]);
            succeed(fetch.arg(library.join("Cargo.toml")).env("RUSTC_BOOTSTRAP", "1"))?;
        }
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
        let workspace = workspace().canonicalize().map_err(|e| format!("the workspace: {e}"))?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", ENTER, "sh"]).arg(root).arg(workspace);
        command.arg(home.ok_or("no home folder")?.join("registry")).args(self.variables);
        command.args(["CARGO_TARGET_DIR=/tiepoint/target/emulated/build", "cargo"]);
        Ok(command)
    }
}
