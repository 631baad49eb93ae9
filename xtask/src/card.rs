//! `cargo xtask card`: packs the tests that need a card, for a machine that has one but neither Rust nor a network.

use crate::{
    CHECKED, Result, at, built, cargo, claims, profile, python_package, remove, succeed, told, workspace,
};
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
    remove(&folder)?;
    fs::create_dir_all(folder.join("python/tests")).map_err(at(&folder))?;
    let copy = |from: &Path, to: &str| fs::copy(from, folder.join(to)).map(drop).map_err(at(from));
    let package = python_package::lay_out(CHECKED)?;
    // For the whole workspace: single packages would be built again, with fewer features of their dependencies.
    let tests = ["--lib", "--test", "devices", "--test", "foreign", "--test", "nvrtc"];
    let mut build = cargo(&["test", "--no-run", "--workspace", "--message-format=json", "--quiet"]);
    let messages = told(build.args(profile(CHECKED)).args(tests))?;
    for (words, name) in PROGRAMS {
        let program = messages.lines().filter(|line| words.iter().all(|word| line.contains(word)));
        let program =
            program.filter_map(|line| line.split_once("\"executable\":\"")?.1.split_once('"')).next_back();
        let (program, _) = program.ok_or_else(|| format!("cargo has built no tests called {name}"))?;
        copy(Path::new(program), name)?;
    }
    copy(&built(CHECKED, "tiepoint")?, "tiepoint")?;
    copy(&workspace().join("xtask/card/run.sh"), "run.sh")?;
    let tests = workspace().join("crates/tiepoint-python/tests");
    for (from, to) in [(package.join("tiepoint"), "python/tiepoint"), (tests, "python/tests")] {
        python_package::copy_modules(&from, &folder.join(to))?;
    }
    fs::write(folder.join("claimed"), claims::on_a_card()?).map_err(at(&folder))?;
    let programs = PROGRAMS.map(|(_, name)| name);
    let mut strip = Command::new("strip");
    succeed(strip.args(programs).args(["tiepoint", "python/tiepoint/_core.abi3.so"]).current_dir(&folder))?;
    let revision =
        told(Command::new("git").args(["describe", "--always", "--dirty"]).current_dir(workspace()))?;
    fs::write(folder.join("revision"), revision).map_err(at(&folder))?;
    let packed = workspace().join("target/card.tar.xz");
    succeed(
        Command::new("tar").arg("-C").arg(workspace().join("target")).arg("-cJf").arg(&packed).arg("card"),
    )?;
    let bytes = fs::metadata(&packed).map_err(at(&packed))?.len();
    if bytes > MOST {
        return Err(format!("{} has {bytes} bytes: expected at most {MOST}", packed.display()));
    }
    println!("{}: {} MB; there: tar -xf card.tar.xz && card/run.sh", packed.display(), bytes >> 20);
    Ok(())
}
