//! Ctrl-C and SIGTERM at random moments of every long command: the command ends by the signal, prints one line at most,
//! and leaves no unfinished file.

use super::collect::{all_files, photographs, unfinished};
use super::*;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tiepoint::synth::{Random, StereoSceneOptions};

/// The longest time from signal to end: 0.2 s between looks for signals, the rest for a busy machine and its compilers.
const LIMIT: Duration = Duration::from_secs(4);

fn start(folder: &Folder, line: &str) -> Child {
    folder.tiepoint(line).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(child: &Child, name: &str) {
    Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
}

/// Runs a command that writes `outputs`, interrupts it several times, and runs it again: the results must be the same.
fn interrupted(folder: &Folder, line: &str, outputs: &[&str]) {
    folder.works(line);
    let files = |name: &&str| match folder.at(name).is_dir() {
        true => all_files(&folder.at(name)),
        false => vec![folder.at(name)],
    };
    let outputs: Vec<String> =
        outputs.iter().flat_map(files).map(|path| path.to_str().unwrap().to_owned()).collect();
    let clear = || {
        for name in &outputs {
            let _ = std::fs::remove_file(folder.at(name));
            let _ = std::fs::remove_dir_all(folder.at(&format!("{name}.work")));
        }
    };
    let contents = || outputs.iter().map(|name| folder.read(name)).collect::<Vec<_>>();
    let wanted = contents();
    clear();
    let began = Instant::now();
    folder.works(line);
    let takes = began.elapsed();
    let mut random = Random::new(line.len() as u64 + seed());
    let (mut ended, mut told, mut slowest) = (0, 0, Duration::ZERO);
    // The number of signals sent to each command. 50 take minutes.
    for trial in 0..asked_for("TIEPOINT_INTERRUPTS", 2) {
        clear();
        let (name, number) = [("-INT", 2), ("-TERM", 15)][trial as usize % 2];
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
        // There is no message if the signal came before or after the work. LLVM within PoCL handles the signal too and
        // removes the file that clang is writing; clang then reports an error.
        // On a busy machine `collect` estimates more than a minute of work, and prints the estimate.
        let expected = |line: &str| line == "1 error generated." || line.starts_with("tiepoint: about ");
        let lines: Vec<&str> = stderr.lines().filter(|line| !expected(line)).collect();
        assert!(lines.len() <= 1, "{line}: {stderr}");
        for message in lines {
            assert!(message.starts_with("tiepoint: interrupted; "), "{line}: {message}");
            told += 1;
        }
        assert_eq!(unfinished(&folder.0), Vec::<PathBuf>::new(), "{line}: an unfinished file");
        for (name, wanted) in outputs.iter().zip(&wanted) {
            let written = std::fs::read(folder.at(name));
            assert!(written.is_err() || written.unwrap() == *wanted, "{line}: {name} differs");
        }
    }
    folder.works(line);
    assert!(contents() == wanted, "{line}: other results after interrupts");
    println!("{line}: {ended} ended by the signal, {told} with a message, at most {slowest:?}");
    // A stage of a collection needs the results of the stage before.
    if !line.contains("--work") {
        clear();
    }
}

#[test]
fn a_signal_ends_a_command_that_waits_for_a_pipe() {
    let folder = Folder::new("stalled");
    folder.texture("a.png", SIZE, 1);
    for (line, name, number) in [("detect -", "-INT", 2), ("match a.png a.png --matches -", "-TERM", 15)] {
        let mut child = folder.tiepoint(line).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        // Until it reads.
        std::thread::sleep(Duration::from_millis(300));
        let sent = Instant::now();
        signal(&child, name);
        // `wait` would close the pipe.
        let stdin = child.stdin.take();
        assert_eq!(child.wait().unwrap().signal(), Some(number), "{line}");
        assert!(sent.elapsed() < LIMIT, "{line} took {:?} to end", sent.elapsed());
        drop(stdin);
    }
}

#[test]
fn a_signal_ends_every_command_by_the_signal() {
    let folder = Folder::new("interrupts");
    let truth = folder.scene();
    folder.put("truth.txt", truth.to_string());
    folder.texture("large.png", Size::new(2000, 1500), 5);
    photographs(&folder);
    // A pair for which `stereo` prints no warning.
    let scene = StereoSceneOptions::default().with_size(Size::new(400, 300)).with_disparities([4.0, 60.0]);
    folder.stereo("s", &scene.with_surfaces(12).with_seed(2));
    folder.works("stereo sl.png sr.png --output flat.pfm --device cpu");
    folder.works("collect images --output z.db --work work --block 2 --device cpu");
    folder.views();
    folder.put("list.txt", "sl.png sr.png one.pfm\nsl.png sr.png other.pfm\n");
    let rectified = "--calibration calib.txt --output-left ol.png --output-right or.png";
    for device in cpu_and(&["opencl", "cuda"]) {
        for (line, outputs) in [
            ("detect large.png --output f.npz", &["f.npz"][..]),
            ("match a.png b.png --output m.csv", &["m.csv"]),
            ("register a.png b.png --output w.png", &["w.png"]),
            ("stereo --list list.txt", &["one.pfm", "other.pfm"]),
            ("collect images --output x.db --block 2", &["x.db"]),
        ] {
            interrupted(&folder, &format!("{line} --device {device} --threads 2"), outputs);
        }
    }
    // These have no GPU form, or run the same GPU code as the commands above.
    for (line, outputs) in [
        ("stereo sl.png sr.png --output d.pfm", &["d.pfm"][..]),
        (&format!("rectify l.png r.png {rectified}"), &["ol.png", "or.png"]),
        ("filter gauss large.png g.png --sigma 30", &["g.png"]),
        ("evaluate homography a.png b.png truth.txt", &[]),
        ("evaluate disparity flat.pfm flat.pfm", &[]),
        ("bench --size 160x120 --repeat 1", &[]),
        ("demo shots --aerial 4 --size 300x200", &["shots"]),
        ("collect features --work work", &["work/features"]),
        ("collect pairs --work work", &["work/pairs.bin"]),
        ("collect match --work work", &["work/matches"]),
        ("collect export --work work --output y.db", &["y.db"]),
    ] {
        interrupted(&folder, &format!("{line} --device cpu --threads 2"), outputs);
    }
}

/// At the limit the system sends a signal, which would end a process that does not handle it.
#[test]
fn a_limit_of_the_length_of_files_is_an_error() {
    let folder = Folder::new("limited");
    folder.texture("a.png", SIZE, 1);
    let line =
        format!("ulimit -f 8; exec {} detect a.png --device cpu -o f.csv", env!("CARGO_BIN_EXE_tiepoint"));
    let (code, [_, told]) = ran(Command::new("sh").args(["-c", &line]).current_dir(&folder.0));
    assert!(code == Some(1) && told.contains("f.csv: File too large"), "{code:?}: {told}");
    assert_eq!(unfinished(&folder.0), Vec::<PathBuf>::new());
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
