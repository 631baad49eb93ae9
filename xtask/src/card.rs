//! `cargo xtask card`: what needs a card, for a machine that has one and neither Rust nor a network.

use crate::{Result, claims, python_package, succeed, workspace};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Test programs: how cargo's messages name each, and its name for the script.
const PROGRAMS: [([&str; 2], &str); 4] = [
    (["crates/tiepoint/Cargo.toml", "\"kind\":[\"lib\"]"], "library"),
    (["\"name\":\"devices\"", "\"kind\":[\"test\"]"], "devices"),
    (["\"name\":\"foreign\"", "\"kind\":[\"test\"]"], "foreign"),
    (["\"name\":\"nvrtc\"", "\"kind\":[\"test\"]"], "nvrtc"),
];

/// The most bytes that the packed folder may have.
const MOST: u64 = 60 << 20;

/// Builds the programs and packs them with the script that runs them: `target/card.tar.xz`.
pub(crate) fn run() -> Result<()> {
    let folder = workspace().join("target/card");
    let failed = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|e| failed(&folder, e))?;
    }
    fs::create_dir_all(folder.join("python/tests")).map_err(|e| failed(&folder, e))?;
    let copy = |from: &Path, to: &str| fs::copy(from, folder.join(to)).map(drop).map_err(|e| failed(from, e));
    let package = python_package::lay_out()?;
    let built = built()?;
    for (words, name) in PROGRAMS {
        let program = built.lines().filter(|line| words.iter().all(|word| line.contains(word)));
        let program =
            program.filter_map(|line| line.split_once("\"executable\":\"")?.1.split_once('"')).next_back();
        let (program, _) = program.ok_or_else(|| format!("cargo has built no tests called {name}"))?;
        copy(Path::new(program), name)?;
    }
    copy(&python_package::built("tiepoint"), "tiepoint")?;
    copy(&workspace().join("xtask/card/run.sh"), "run.sh")?;
    let tests = workspace().join("crates/tiepoint-python/tests");
    for (from, to) in [(package.join("tiepoint"), "python/tiepoint"), (tests, "python/tests")] {
        python_package::copy_modules(&from, &folder.join(to))?;
    }
    fs::write(folder.join("claimed"), claims::on_a_card()?).map_err(|e| failed(&folder, e))?;
    let programs = PROGRAMS.map(|(_, name)| name);
    succeed(
        Command::new("strip")
            .args(programs)
            .args(["tiepoint", "python/tiepoint/_core.abi3.so"])
            .current_dir(&folder),
    )?;
    let revision =
        Command::new("git").args(["describe", "--always", "--dirty"]).current_dir(workspace()).output();
    let revision = revision.map_err(|e| format!("git: {e}"))?.stdout;
    fs::write(folder.join("revision"), revision).map_err(|e| failed(&folder, e))?;
    let packed = workspace().join("target/card.tar.xz");
    succeed(
        Command::new("tar").arg("-C").arg(workspace().join("target")).arg("-cJf").arg(&packed).arg("card"),
    )?;
    let bytes = fs::metadata(&packed).map_err(|e| failed(&packed, e))?.len();
    if bytes > MOST {
        return Err(format!("{} has {bytes} bytes: expected at most {MOST}", packed.display()));
    }
    println!("{}: {} MB; there: tar -xf card.tar.xz && card/run.sh", packed.display(), bytes >> 20);
    Ok(())
}

/// Builds the tests and returns cargo's messages about the programs.
fn built() -> Result<String> {
    let mut build = Command::new(env!("CARGO"));
    // Of the workspace: packages alone would be built anew, with fewer features of what they depend on.
    build.args(["test", "--no-run", "--workspace", "--lib", "--message-format=json", "--quiet"]);
    build.args(["--test", "devices", "--test", "foreign", "--test", "nvrtc"]).current_dir(workspace());
    let output = build.output().map_err(|e| format!("cargo: {e}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("the tests are not built: {}", String::from_utf8_lossy(&output.stderr))),
    }
}
