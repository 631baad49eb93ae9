//! What a power cut leaves, at many moments: results are whole or not there, what the command has called done is there,
//! and a collection goes on to the right database.

mod disk;

use super::collect::{content, photographs};
use super::*;
use disk::{Disk, Event, Loss, events};
use std::process::Stdio;
use std::sync::OnceLock;
use tiepoint::synth::Random;

/// The compiled recorder.
fn recorder() -> &'static [u8] {
    static COMPILED: OnceLock<Vec<u8>> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let folder = Folder::new("recorder");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/power_cut/recorder.c");
        let library = folder.at("recorder.so");
        let gcc = Command::new("gcc").args(["-shared", "-fPIC", "-O1", "-o", &library]).arg(source).output();
        let output = gcc.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::read(library).unwrap()
    })
}

/// A folder with the recorder, and the place that is recorded.
struct Recorded {
    folder: Folder,
    place: PathBuf,
    before: Vec<(PathBuf, Vec<u8>)>,
}

impl Recorded {
    fn new(test: &str) -> Self {
        let folder = Folder::new(test);
        std::fs::write(folder.at("recorder.so"), recorder()).unwrap();
        let place = folder.0.join("disk");
        std::fs::create_dir(&place).unwrap();
        Self { folder, place, before: Vec::new() }
    }

    fn at(&self, name: &str) -> String {
        self.place.join(name).to_str().unwrap().to_owned()
    }

    /// With a file that is there before.
    fn with(mut self, name: &str, content: &[u8]) -> Self {
        self.before.push((self.place.join(name), content.to_vec()));
        self
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tiepoint"));
        command.args(arguments).env("LD_PRELOAD", self.folder.at("recorder.so"));
        command
    }

    /// Runs the command, which must succeed, and gives what it did.
    fn run(&self, arguments: &[&str]) -> Vec<Event> {
        std::fs::remove_dir_all(&self.place).unwrap();
        std::fs::create_dir(&self.place).unwrap();
        self.before.iter().for_each(|(path, content)| std::fs::write(path, content).unwrap());
        let record = self.folder.0.join("record");
        let _ = std::fs::remove_file(&record);
        let mut command = self.command(arguments);
        command.env("RECORD", &record).env("RECORD_BELOW", &self.place);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        events(&record)
    }

    /// Cuts the power at many moments, and looks at what is left each time: with all that had been said by then.
    fn cut(&self, events: &[Event], mut look: impl FnMut(&str, &str)) {
        let mut random = Random::new(events.len() as u64);
        for moment in moments(events, &mut random) {
            let mut disk = Disk::with(&self.place, &self.before);
            events[..moment].iter().for_each(|event| disk.apply(event));
            let said =
                events[..moment].iter().filter(|e| e.kind == b'P').map(Event::text).collect::<String>();
            for loss in [Loss::NamesToo, Loss::BytesAlone] {
                disk.leave(&self.place, loss, &mut random);
                look(&said, &format!("cut after {moment} of {} events, {loss:?}", events.len()));
            }
        }
    }
}

/// Where to cut: right after most kinds of changes, as evenly as so many cuts can be, and at some other moments.
fn moments(events: &[Event], random: &mut Random) -> Vec<usize> {
    let most = std::env::var("TIEPOINT_POWER_CUTS").ok().and_then(|cuts| cuts.parse().ok()).unwrap_or(16);
    let changes: Vec<usize> = (1..=events.len()).filter(|i| events[i - 1].kind != b'W').collect();
    let step = changes.len().div_ceil(most).max(1);
    let mut moments: Vec<usize> = changes.iter().copied().step_by(step).collect();
    moments.extend((0..most / 4).map(|_| (random.unit() * events.len() as f64) as usize));
    moments.push(events.len());
    moments.sort_unstable();
    moments.dedup();
    moments
}

#[test]
fn a_collection_goes_on_after_a_power_cut() {
    let recorded = Recorded::new("power-collect");
    let images = photographs(&recorded.folder);
    let (database, work) = (recorded.at("a.db"), recorded.at("a.db.work"));
    let run =
        ["collect", &images, "--output", &database, "--block", "2", "--device", "cpu", "--threads", "2"];
    let events = recorded.run(&run);
    let whole = content(&database);
    recorded.cut(&events, |said, moment| {
        // What was called done is there.
        if said.contains("export:") {
            assert!(Path::new(&database).exists(), "{moment}: the database is gone");
        } else if said.contains("features:") {
            let status = works(&["collect", "status", "--work", &work, "--json"]);
            assert_eq!(value(&status, "searched"), "6", "{moment}: {status}");
            let complete = said.contains("match:").to_string();
            assert!(value(&status, "complete") == complete || complete == "false", "{moment}: {status}");
        }
        if Path::new(&database).exists() {
            assert_eq!(content(&database), whole, "{moment}: half a database");
        }
        works(&run);
        assert_eq!(content(&database), whole, "{moment}: the database of the next run");
        let left =
            walk(&recorded.place).into_iter().filter(|path| path.ends_with(".part")).collect::<Vec<_>>();
        assert!(left.is_empty(), "{moment}: {left:?}");
    });
}

/// All files below a folder.
fn walk(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| match path.is_dir() {
        true => walk(&path),
        false => vec![path.to_str().unwrap().to_owned()],
    };
    entries.flat_map(below).collect()
}

#[test]
fn results_are_whole_or_as_they_were_after_a_power_cut() {
    let inputs = Folder::new("power-inputs");
    let (a, b, _) = inputs.scene();
    let calibration = inputs.at("pair.txt");
    let camera = "[500 0 160; 0 500 120; 0 0 1]";
    let known =
        format!("cam0={camera}\ncam1={camera}\ndoffs=0\nbaseline=0.1\nwidth=320\nheight=240\nndisp=16\n");
    std::fs::write(&calibration, known).unwrap();
    let stereo = "--disparities 16 --output DISK/map.pfm --cloud DISK/points.ply --calibration";
    for (test, arguments, outputs) in [
        ("detect", format!("{a} {b} --output DISK/{{}}.csv"), &["a.csv", "b.csv"][..]),
        ("register", format!("{a} {b} --output DISK/warped.png"), &["warped.png"]),
        ("stereo", format!("{a} {b} {stereo} {calibration}"), &["map.pfm", "points.ply"]),
    ] {
        for old in [None, Some(b"what stood there before".as_slice())] {
            let mut recorded = Recorded::new(&format!("power-{test}"));
            for (output, old) in outputs.iter().flat_map(|output| old.map(|old| (output, old))) {
                recorded = recorded.with(output, old);
            }
            let placed = format!("{test} {arguments} --device cpu").replace("DISK", &recorded.at(""));
            let events = recorded.run(&placed.split(' ').collect::<Vec<_>>());
            let whole: Vec<Vec<u8>> =
                outputs.iter().map(|output| std::fs::read(recorded.at(output)).unwrap()).collect();
            recorded.cut(&events, |said, moment| {
                for (i, (output, whole)) in outputs.iter().zip(&whole).enumerate() {
                    let found = std::fs::read(recorded.at(output)).ok();
                    let found = found.as_deref();
                    let is_done = said.lines().count() > if test == "detect" { i } else { 0 };
                    assert!(
                        found == Some(whole) || (!is_done && found == old),
                        "{test}: {moment}: {output} has {:?} bytes of {}, said: {said}",
                        found.map(<[u8]>::len),
                        whole.len()
                    );
                }
            });
        }
    }
}

/// Locks that do not reach from one process to the other, as those of NFS without a lock manager do not from machine to
/// machine.
#[test]
fn processes_whose_locks_reach_nobody_share_a_work_folder() {
    let recorded = Recorded::new("power-no-locks");
    let images = photographs(&recorded.folder);
    let (database, work) = (recorded.at("whole.db"), recorded.at("work"));
    works(&["collect", &images, "--output", &database, "--block", "2", "--device", "cpu"]);
    let whole = content(&database);
    for round in 0..4 {
        let _ = std::fs::remove_dir_all(&work);
        let start = |i: usize| {
            let output = recorded.at(&format!("{i}.db"));
            let arguments = ["collect", &images, "--output", &output, "--work", &work, "--block", "2"];
            let mut command =
                recorded.command(&[&arguments[..], &["--device", "cpu", "--threads", "1"]].concat());
            command.env("NO_LOCKS", "1").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let children: Vec<_> = (0..8).map(start).collect();
        for (i, child) in children.into_iter().enumerate() {
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "round {round}, process {i}: {said}");
            assert_eq!(content(&recorded.at(&format!("{i}.db"))), whole, "round {round}, process {i}");
        }
    }
}
