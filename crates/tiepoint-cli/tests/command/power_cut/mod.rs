//! Power cuts at many moments: each result is whole or absent, what the command has reported as done is there, and the
//! next run of a collection gives the right database.

mod disk;
mod faults;

use super::collect::{content, photographs, unfinished};
use super::*;
use disk::{Disk, Event, Loss, events};
use std::process::Stdio;
use std::sync::OnceLock;
use tiepoint::synth::Random;

fn recorder() -> &'static [u8] {
    static COMPILED: OnceLock<Vec<u8>> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let folder = Folder::new("recorder");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/power_cut/recorder.c");
        let library = folder.at("recorder.so");
        let mut gcc = Command::new("gcc");
        succeeds(gcc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source));
        std::fs::read(library).unwrap()
    })
}

/// A folder with the recorder, and the folder `place` whose changes are recorded.
struct Recorded {
    folder: Folder,
    place: PathBuf,
    before: Vec<(PathBuf, Vec<u8>)>,
}

impl Recorded {
    fn new(test: &str) -> Self {
        let folder = Folder::new(test);
        folder.put("recorder.so", recorder());
        folder.make("disk");
        let place = folder.at("disk");
        Self { folder, place, before: Vec::new() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.join(name)
    }

    /// Adds a file that exists before the command runs.
    fn with(mut self, name: &str, content: &[u8]) -> Self {
        self.before.push((self.at(name), content.to_vec()));
        self
    }

    fn tiepoint(&self, line: &str) -> Command {
        let mut command = self.folder.tiepoint(line);
        command.env("LD_PRELOAD", self.folder.at("recorder.so"));
        command
    }

    /// Runs the command, which must succeed, and returns its changes to files.
    fn run(&self, line: &str) -> Vec<Event> {
        self.folder.empty("disk");
        self.before.iter().for_each(|(path, content)| std::fs::write(path, content).unwrap());
        let record = self.folder.at("record");
        let _ = std::fs::remove_file(&record);
        succeeds(self.tiepoint(line).env("RECORD", &record).env("RECORD_BELOW", &self.place));
        events(&record)
    }

    /// Cuts the power at many moments and calls `look` for each, with what was printed by then and the moment's name.
    fn cut(&self, events: &[Event], mut look: impl FnMut(&str, &str)) {
        let mut random = Random::new(events.len() as u64 + seed());
        let mut cuts = 0;
        for moment in moments(events, &mut random) {
            let mut disk = Disk::with(&self.place, &self.before);
            events[..moment].iter().for_each(|event| disk.apply(event));
            let said =
                events[..moment].iter().filter(|e| e.kind == b'P').map(Event::text).collect::<String>();
            for loss in [Loss::NamesToo, Loss::BytesAlone] {
                cuts += 1;
                disk.leave(&self.place, loss, &mut random);
                look(&said, &format!("cut after {moment} of {} events, {loss:?}", events.len()));
            }
        }
        println!("{cuts} power cuts within {} events", events.len());
    }
}

/// The events after which to cut: changes other than writes, evenly spread; some at random; and the last.
fn moments(events: &[Event], random: &mut Random) -> Vec<usize> {
    let most = asked_for("TIEPOINT_POWER_CUTS", 16) as usize;
    let changes: Vec<usize> = (1..=events.len()).filter(|i| events[i - 1].kind != b'W').collect();
    let step = changes.len().div_ceil(most).max(1);
    let mut moments: Vec<usize> =
        changes.iter().copied().skip(seed() as usize % step).step_by(step).collect();
    moments.extend((0..most / 4).map(|_| (random.unit() * events.len() as f64) as usize));
    moments.push(events.len());
    moments.sort_unstable();
    moments.dedup();
    moments
}

#[test]
fn a_collection_goes_on_after_a_power_cut() {
    let recorded = Recorded::new("power-collect");
    photographs(&recorded.folder);
    let (folder, database) = (&recorded.folder, recorded.at("a.db"));
    let run = "collect images --output disk/a.db --block 2 --device cpu --threads 2";
    let events = recorded.run(run);
    let whole = content(&database);
    recorded.cut(&events, |said, moment| {
        // What the command has reported as done must be there.
        if said.contains("export:") {
            assert!(database.exists(), "{moment}: the database is gone");
        } else if said.contains("features:") {
            let status = folder.works("collect status --work disk/a.db.work --json");
            assert_eq!(value(&status, "searched"), "6", "{moment}: {status}");
            let complete = said.contains("match:").to_string();
            assert!(value(&status, "complete") == complete || complete == "false", "{moment}: {status}");
        }
        if database.exists() {
            assert_eq!(content(&database), whole, "{moment}: half a database");
        }
        folder.works(run);
        assert_eq!(content(&database), whole, "{moment}: the database of the next run");
        assert_eq!(unfinished(&recorded.place), Vec::<PathBuf>::new(), "{moment}");
    });
}

#[test]
fn results_are_whole_or_as_they_were_after_a_power_cut() {
    let inputs = Folder::new("power-inputs");
    inputs.scene();
    let camera = "[500 0 160; 0 500 120; 0 0 1]";
    let known =
        format!("cam0={camera}\ncam1={camera}\ndoffs=0\nbaseline=0.1\nwidth=320\nheight=240\nndisp=16\n");
    inputs.put("pair.txt", known);
    let stereo = "--disparities 16 --output disk/map.pfm --cloud disk/points.ply --calibration pair.txt";
    for (test, arguments, outputs) in [
        ("detect", "--output disk/{}.csv", &["a.csv", "b.csv"][..]),
        ("register", "--output disk/warped.png", &["warped.png"]),
        ("stereo", stereo, &["map.pfm", "points.ply"]),
    ] {
        for old in [None, Some(b"what stood there before".as_slice())] {
            let mut recorded = Recorded::new(&format!("power-{test}"));
            for (output, old) in outputs.iter().flat_map(|output| old.map(|old| (output, old))) {
                recorded = recorded.with(output, old);
            }
            for name in ["a.png", "b.png", "pair.txt"] {
                recorded.folder.put(name, inputs.read(name));
            }
            let line = format!("{test} a.png b.png {arguments} --device cpu");
            let events = recorded.run(&line);
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

/// Locks without effect on other processes, as on NFS without a lock manager from machine to machine.
#[test]
fn processes_without_working_locks_share_a_work_folder() {
    let recorded = Recorded::new("power-no-locks");
    let folder = &recorded.folder;
    photographs(folder);
    folder.works("collect images --output whole.db --block 2 --device cpu");
    let whole = content(&folder.at("whole.db"));
    for round in 0..4 {
        let _ = std::fs::remove_dir_all(recorded.at("work"));
        let start = |i: usize| {
            let line = format!("collect images --output disk/{i}.db --work disk/work --block 2");
            let mut command = recorded.tiepoint(&format!("{line} --device cpu --threads 1"));
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
