//! Ctrl-C and SIGTERM at random moments of every long command: an end by the signal, one line, whole files.

#![expect(clippy::print_stdout, reason = "how many were ended, and how fast, is the record")]

use super::collect::{photographs, unfinished};
use super::*;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tiepoint::synth::Random;

/// Signals to each command. More by hand: 50 take minutes.
fn trials() -> usize {
    std::env::var("TIEPOINT_INTERRUPTS").map_or(3, |n| n.parse().unwrap())
}

/// How long an end may take: 0.2 s from one safe point to the next, the rest for a machine that has other work, and for
/// a driver that compiles.
const LIMIT: Duration = Duration::from_secs(4);

fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tiepoint"));
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The contents of the files of these names.
fn contents(folder: &Folder, outputs: &[&str]) -> Vec<Vec<u8>> {
    outputs.iter().map(|name| std::fs::read(folder.at(name)).unwrap()).collect()
}

/// Runs a command, which writes `outputs`, and interrupts it; then it must give what it gave before.
fn interrupted(folder: &Folder, arguments: &[&str], outputs: &[&str], device: &str) {
    let arguments = [arguments, &["--device", device, "--threads", "2"]].concat();
    let clear = || {
        for name in outputs {
            let _ = std::fs::remove_file(folder.at(name));
            // Of a collection.
            let _ = std::fs::remove_dir_all(folder.at(&format!("{name}.work")));
        }
    };
    works(&arguments);
    let wanted = contents(folder, outputs);
    clear();
    let began = Instant::now();
    works(&arguments);
    let takes = began.elapsed();
    let mut random = Random::new(arguments.len() as u64);
    let (mut ended, mut told, mut slowest) = (0, 0, Duration::ZERO);
    for trial in 0..trials() {
        clear();
        let (name, number) = [("-INT", 2), ("-TERM", 15)][trial % 2];
        let mut child = start(&arguments);
        std::thread::sleep(takes.mul_f64(random.unit()));
        let sent = Instant::now();
        Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
        let status = child.wait().unwrap();
        slowest = slowest.max(sent.elapsed());
        assert!(sent.elapsed() < LIMIT, "{arguments:?} took {:?} to end", sent.elapsed());
        let mut stderr = String::new();
        std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut stderr).unwrap();
        match status.signal() {
            Some(signal) => {
                assert_eq!(signal, number, "{arguments:?}: the signal that came");
                ended += 1;
            }
            None => assert!(status.success(), "{arguments:?}: {status}: {stderr}"),
        }
        // Without a word where the signal came before the work began, or after it.
        let lines: Vec<&str> = stderr.lines().collect();
        assert!(lines.len() <= 1, "{arguments:?}: {stderr}");
        for line in lines {
            assert!(line.starts_with("tiepoint: interrupted; "), "{arguments:?}: {line}");
            told += 1;
        }
        assert_eq!(unfinished(&folder.0), Vec::<PathBuf>::new(), "{arguments:?}: half a file");
        for (name, wanted) in outputs.iter().zip(&wanted) {
            let written = std::fs::read(folder.at(name));
            assert!(written.is_err() || written.unwrap() == *wanted, "{arguments:?}: {name} is another");
        }
    }
    works(&arguments);
    assert!(contents(folder, outputs) == wanted, "{arguments:?}: other results after interrupts");
    println!(
        "{} on {device}: {ended} ended by the signal, {told} with a word, at most {slowest:?}",
        arguments[0]
    );
    clear();
}

/// The CPU, and a GPU where there is one.
fn devices() -> Vec<&'static str> {
    let listed = works(&["devices"]);
    let found = ["opencl:0", "cuda:0"].into_iter().filter(|name| listed.contains(name));
    std::iter::once("cpu").chain(found).collect()
}

#[test]
fn a_signal_ends_every_command_by_the_signal() {
    let folder = Folder::new("interrupts");
    let (a, b, _) = folder.scene();
    let large = folder.texture("large.png", Size::new(2000, 1500), 5);
    let images = photographs(&folder);
    let at = |name: &str| folder.at(name);
    let (features, matches, warped, disparity) = (at("f.npz"), at("m.csv"), at("w.png"), at("d.pfm"));
    let ([l, r, calibration], _) = folder.views();
    let (left, right, blurred, database) = (at("ol.png"), at("or.png"), at("g.png"), at("x.db"));
    for device in devices() {
        interrupted(&folder, &["detect", &large, "--output", &features], &["f.npz"], device);
        interrupted(&folder, &["match", &a, &b, "--output", &matches], &["m.csv"], device);
        interrupted(&folder, &["register", &a, &b, "--output", &warped], &["w.png"], device);
        interrupted(&folder, &["stereo", &a, &b, "--output", &disparity], &["d.pfm"], device);
        let outputs = ["--output-left", &left, "--output-right", &right];
        let rectify = [&["rectify", &l, &r, "--calibration", &calibration][..], &outputs].concat();
        interrupted(&folder, &rectify, &["ol.png", "or.png"], device);
        interrupted(&folder, &["filter", "gauss", &large, &blurred, "--sigma", "30"], &["g.png"], device);
        interrupted(&folder, &["collect", &images, "--output", &database, "--block", "2"], &["x.db"], device);
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    let folder = Folder::new("interrupted-twice");
    let large = folder.texture("large.png", Size::new(2000, 1500), 5);
    let mut child = start(&["detect", &large, "--output", &folder.at("f.npz"), "--device", "cpu"]);
    std::thread::sleep(Duration::from_millis(100));
    for _ in 0..2 {
        Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    }
    assert_eq!(child.wait().unwrap().signal(), Some(15), "by the signal");
}
