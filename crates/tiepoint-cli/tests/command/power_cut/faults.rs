//! Passing errors of the system, and a disk that fills up at the last moment: the error names the file, the next run
//! finishes with the right result, and no finished work is lost.

use super::*;
use crate::collect::{all_files, count};
use tiepoint::synth::StereoSceneOptions;

const EIO: i32 = 5;
const EACCES: i32 = 13;
const ENOSPC: i32 = 28;

const RUN: &str = "collect images --output disk/a.db --block 2 --device cpu --threads 2 --pairs sequence --overlap 1 --masks masks";

/// Photographs with a list of pairs and a mask, and the content of their database.
fn prepared(test: &str) -> (Recorded, u64) {
    let recorded = Recorded::new(test);
    let folder = &recorded.folder;
    photographs(folder);
    folder.put("list.txt", "a.png\tc.png\nb ä.png\tc.png\nd.png\tother.png\nd.png\tc.png\n");
    folder.make("masks");
    folder.write("masks/c.png", Image::filled(Size::new(240, 180), 1, 255_u8));
    folder.works(RUN);
    let whole = content(&recorded.at("a.db"));
    (recorded, whole)
}

impl Recorded {
    /// The command, with a system call that fails with `error` for files whose name ends in `name`.
    fn failing(&self, line: &str, call: &str, name: &str, error: i32) -> Command {
        let mut command = self.tiepoint(line);
        command.env("FAIL", format!("{call} {name} {error}"));
        command
    }
}

#[test]
fn after_an_error_of_the_system_the_next_run_finishes_and_loses_nothing() {
    let (recorded, whole) = prepared("faults-read");
    let (folder, database) = (&recorded.folder, recorded.at("a.db"));
    for (call, name, error) in [
        ("read", "images/c.png", EIO),
        ("open", "images/c.png", EIO),
        ("open", "images/c.png", EACCES),
        ("read", "masks/c.png", EIO),
        ("open", "masks/c.png", EACCES),
    ] {
        recorded.folder.empty("disk");
        let said = refused(&mut recorded.failing(RUN, call, name, error), 1);
        assert!(said.contains(name.rsplit('/').next().unwrap()), "{call} {name}: {said}");
        assert!(!database.exists(), "{call} {name}: no database without a photograph that is there");
        folder.works(RUN);
        assert_eq!(content(&database), whole, "{call} {name}");
    }
    let listed = RUN.replace("sequence --overlap 1", "list.txt");
    recorded.folder.empty("disk");
    let said = refused(&mut recorded.failing(&listed, "read", "list.txt", EIO), 1);
    assert!(said.contains("list.txt") && !database.exists(), "{said}");
    recorded.folder.empty("disk");
    folder.works(RUN);
    // The files of finished work, with their times of change.
    let work = recorded.at("a.db.work");
    let made = || -> Vec<_> {
        let kinds = ["features", "matches"].map(|kind| all_files(&work.join(kind)));
        let files = kinds.into_iter().flatten();
        files.map(|path| (path.metadata().unwrap().modified().unwrap(), path)).collect()
    };
    let before = made();
    assert!(before.len() > 8, "features and tiles: {before:?}");
    for name in [".features", ".tile", "images.json", "collection.json", "pairs.bin", "closure.bin"] {
        for (call, error) in [("read", EIO), ("open", EIO), ("open", EACCES)] {
            let said = refused(&mut recorded.failing(RUN, call, name, error), 1);
            assert!(said.contains(name), "{call} {name}: {said}");
            folder.works(RUN);
            assert_eq!(content(&database), whole, "{call} {name}");
            assert_eq!(made(), before, "{call} {name}: finished work was done again");
        }
    }
}

#[test]
fn a_disk_that_fills_up_at_the_last_moment_leaves_nothing_half_done() {
    let (recorded, whole) = prepared("faults-full");
    let (folder, database) = (&recorded.folder, recorded.at("a.db"));
    for (call, name) in [
        ("fsync", ".part"),
        ("rename", ".features"),
        ("rename", ".tile"),
        ("rename", "images.json"),
        ("rename", "collection.json"),
        ("rename", "pairs.bin"),
        ("rename", "closure.bin"),
        ("rename", "a.db"),
        ("fsync", "a.db.work/matches"),
        ("fsync", "/disk"),
    ] {
        recorded.folder.empty("disk");
        let said = refused(&mut recorded.failing(RUN, call, name, ENOSPC), 1);
        assert!(said.contains("No space left"), "{call} {name}: {said}");
        assert_eq!(unfinished(&recorded.place), Vec::<PathBuf>::new(), "{call} {name}: an unfinished file");
        if database.exists() {
            assert_eq!(content(&database), whole, "{call} {name}: half a database");
        }
        folder.works(RUN);
        assert_eq!(content(&database), whole, "{call} {name}");
        assert_eq!(count(&database, "SELECT count(*) FROM images"), 6, "{call} {name}");
    }
}

/// `stereo --like mgm` never waits for the disk, because its files are intermediate results of another program.
#[test]
fn without_sync_no_command_waits_for_the_disk() {
    let recorded = Recorded::new("faults-no-sync");
    let scene = StereoSceneOptions::default().with_size(Size::new(60, 40)).with_disparities([2.0, 9.0]);
    recorded.folder.stereo("s", &scene);
    for (line, code) in [
        ("stereo sl.png sr.png --output disk/d.tif --disparities 16", 1),
        ("stereo sl.png sr.png --output disk/d.tif --disparities 16 --no-sync", 0),
        ("stereo --like mgm -r -15 -R 0 sl.png sr.png disk/d.tif", 0),
    ] {
        recorded.folder.empty("disk");
        let (found, [_, said]) = ran(&mut recorded.failing(line, "fsync", ".part", EIO));
        let is_there = recorded.at("d.tif").exists();
        assert_eq!((found, is_there), (Some(code), code == 0), "{line}: {said}");
    }
}
