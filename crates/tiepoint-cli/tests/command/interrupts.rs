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

fn start(folder: &Folder, line: &str) -> Child {
    folder.tiepoint(line).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(child: &Child, name: &str) {
    Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
}

/// Runs a command, which writes `outputs`, and interrupts it; then it must give what it gave before.
fn interrupted(folder: &Folder, line: &str, outputs: &[&str]) {
    let clear = || {
        for name in outputs {
            let _ = std::fs::remove_file(folder.at(name));
            // Of a collection.
            let _ = std::fs::remove_dir_all(folder.at(&format!("{name}.work")));
        }
    };
    let contents = || outputs.iter().map(|name| folder.read(name)).collect::<Vec<_>>();
    folder.works(line);
    let wanted = contents();
    clear();
    let began = Instant::now();
    folder.works(line);
    let takes = began.elapsed();
    let mut random = Random::new(line.len() as u64);
    let (mut ended, mut told, mut slowest) = (0, 0, Duration::ZERO);
    for trial in 0..trials() {
        clear();
        let (name, number) = [("-INT", 2), ("-TERM", 15)][trial % 2];
        let mut child = start(folder, line);
        std::thread::sleep(takes.mul_f64(random.unit()));
        let sent = Instant::now();
        signal(&child, name);
        let status = child.wait().unwrap();
        slowest = slowest.max(sent.elapsed());
        assert!(sent.elapsed() < LIMIT, "{line} took {:?} to end", sent.elapsed());
        let mut stderr = String::new();
        std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut stderr).unwrap();
        match status.signal() {
            Some(signal) => {
                assert_eq!(signal, number, "{line}: the signal that came");
                ended += 1;
            }
            None => assert!(status.success(), "{line}: {status}: {stderr}"),
        }
        // Without a message where the signal came before the work began, or after it. LLVM within PoCL takes the signal
        // too, and removes the file that clang is writing; clang then counts an error.
        let lines: Vec<&str> = stderr.lines().filter(|&line| line != "1 error generated.").collect();
        assert!(lines.len() <= 1, "{line}: {stderr}");
        for message in lines {
            assert!(message.starts_with("tiepoint: interrupted; "), "{line}: {message}");
            told += 1;
        }
        assert_eq!(unfinished(&folder.0), Vec::<PathBuf>::new(), "{line}: half a file");
        for (name, wanted) in outputs.iter().zip(&wanted) {
            let written = std::fs::read(folder.at(name));
            assert!(written.is_err() || written.unwrap() == *wanted, "{line}: {name} is another");
        }
    }
    folder.works(line);
    assert!(contents() == wanted, "{line}: other results after interrupts");
    println!("{line}: {ended} ended by the signal, {told} with a message, at most {slowest:?}");
    clear();
}

/// The CPU, and a GPU where there is one.
fn devices() -> Vec<&'static str> {
    let listed = works("devices");
    let found = ["opencl:0", "cuda:0"].into_iter().filter(|name| listed.contains(name));
    std::iter::once("cpu").chain(found).collect()
}

#[test]
fn a_signal_ends_every_command_by_the_signal() {
    let folder = Folder::new("interrupts");
    folder.scene();
    folder.texture("large.png", Size::new(2000, 1500), 5);
    photographs(&folder);
    folder.views();
    let rectified = "--calibration calib.txt --output-left ol.png --output-right or.png";
    for device in devices() {
        for (line, outputs) in [
            ("detect large.png --output f.npz", &["f.npz"][..]),
            ("match a.png b.png --output m.csv", &["m.csv"]),
            ("register a.png b.png --output w.png", &["w.png"]),
            ("stereo a.png b.png --output d.pfm", &["d.pfm"]),
            (&format!("rectify l.png r.png {rectified}"), &["ol.png", "or.png"]),
            ("filter gauss large.png g.png --sigma 30", &["g.png"]),
            ("collect images --output x.db --block 2", &["x.db"]),
        ] {
            interrupted(&folder, &format!("{line} --device {device} --threads 2"), outputs);
        }
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    let folder = Folder::new("interrupted-twice");
    folder.texture("large.png", Size::new(2000, 1500), 5);
    let mut child = start(&folder, "detect large.png --output f.npz --device cpu");
    std::thread::sleep(Duration::from_millis(100));
    for _ in 0..2 {
        signal(&child, "-TERM");
    }
    assert_eq!(child.wait().unwrap().signal(), Some(15), "by the signal");
}
