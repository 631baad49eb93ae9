//! `tiepoint collect`: the same database for any division of the work, and after kills and damage.

mod database;
mod given;
mod sensors;
mod told;
mod unusual;
mod versions;

use unusual::tiff;
pub(super) use unusual::{exif, position, with_exif, with_exif_chunk};

use super::*;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use std::hash::{DefaultHasher, Hasher};
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tiepoint::synth::Random;

/// Five photographs of one plane from several places and one of another plane, in `images`.
pub(super) fn photographs(folder: &Folder) {
    let size = Size::new(240, 180);
    folder.make("images/sub folder");
    for (i, name) in ["b ä.png", "a.png", "sub folder/a.png", "c.png", "d.png"].into_iter().enumerate() {
        let i = i as f64;
        let image = view(size, 4, 0.05 + 0.02 * i, 1.0 + 0.02 * i, [0.04, 0.01 * i], [3.0 * i, -2.0]);
        folder.write(&format!("images/{name}"), image);
    }
    folder.texture("images/other.png", size, 99);
}

fn open(database: &Path) -> Connection {
    Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

/// A hash over the rows of every table, sorted.
pub(super) fn content(database: &Path) -> u64 {
    let database = open(database);
    let names = |sql: &str| -> Vec<String> {
        let mut statement = database.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let mut hash = DefaultHasher::new();
    for table in names("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name") {
        let mut statement = database.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        let mut all = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            let value = |i| match row.get_ref(i).unwrap() {
                ValueRef::Null => "null".to_owned(),
                ValueRef::Integer(n) => n.to_string(),
                ValueRef::Real(v) => v.to_bits().to_string(),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => format!("{bytes:?}"),
            };
            all.push((0..columns).map(value).collect::<Vec<_>>());
        }
        all.sort();
        hash.write(format!("{table} {all:?}").as_bytes());
    }
    hash.finish()
}

pub(super) fn count(database: &Path, sql: &str) -> i64 {
    open(database).query_row(sql, [], |row| row.get(0)).unwrap()
}

const IMAGES: &str = "SELECT count(*) FROM images";
pub(super) const VERIFIED: &str = "SELECT count(*) FROM two_view_geometries";

/// Collects `images` into the database NAME.db and the work folder "NAME work", and gives the content of the database.
fn collected(folder: &Folder, name: &str, more: &str) -> u64 {
    let line = format!("collect images --output {name}.db --block 2 --device cpu {more}");
    succeeds(folder.tiepoint(line).arg("--work").arg(format!("{name} work")));
    content(&folder.at(&format!("{name}.db")))
}

#[test]
fn one_database_for_threads_and_shards() {
    let folder = Folder::with("collect-same", photographs);
    let whole = collected(&folder, "whole", "--threads 1");
    for (name, what) in [("two", "two threads"), ("whole", "again, with nothing left to do")] {
        assert_eq!(collected(&folder, name, "--threads 2"), whole, "{what}");
    }
    // Every pair of the plane is verified, none of the other picture.
    let named = "WHERE name IN ('a.png', 'sub folder/a.png', 'b ä.png')";
    for (sql, expected) in [
        (IMAGES, 6),
        // One camera for each photograph, since they have no camera data.
        ("SELECT count(*) FROM cameras", 6),
        (&format!("{VERIFIED} WHERE rows >= 15"), 10),
        (&format!("{IMAGES} {named}"), 3),
        (&format!("{VERIFIED} WHERE F IS NULL AND H IS NULL"), 0),
        ("PRAGMA user_version", 4_010_100),
        (
            "SELECT count(*) FROM matches m JOIN two_view_geometries t USING (pair_id) WHERE t.rows > m.rows",
            0,
        ),
    ] {
        assert_eq!(count(&folder.at("whole.db"), sql), expected, "{sql}");
    }
    // Eight parts, one after the other, in an arbitrary order.
    let (found, _) = in_parts(&folder, "", &["features", "pairs", "match"], &[3, 7, 0, 1, 2, 6, 5, 4]);
    assert_eq!(found, whole, "eight parts");
}

/// Runs stages in parts, in this order, with `more` for the scan; the content of the database and the final status.
fn in_parts(folder: &Folder, more: &str, stages: &[&str], parts: &[usize]) -> (u64, String) {
    folder.works(format!("collect scan images --work parts --block 2 {more}"));
    for stage in stages {
        for part in parts {
            folder.works(format!("collect {stage} --work parts --shard {part}/{} --device cpu", parts.len()));
        }
    }
    let status = folder.works("collect status --work parts --json");
    assert_eq!(value(&status, "complete"), "true", "{status}");
    folder.works("collect export --work parts --output parts.db");
    (content(&folder.at("parts.db")), status)
}

#[test]
fn killed_at_any_time_and_started_again() {
    let folder = Folder::with("collect-killed", photographs);
    let start = Instant::now();
    let whole = collected(&folder, "whole", "--threads 2");
    let whole_takes = start.elapsed();
    let database = folder.at("killed.db");
    let run = "collect images --output killed.db --work work --block 2 --device cpu --threads 2";
    let (mut random, mut kills) = (Random::new(14 + seed()), 0);
    while kills < asked_for("TIEPOINT_KILLS", 20) {
        let mut command = folder.tiepoint(run);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let moment = Instant::now() + whole_takes.mul_f64(random.unit());
        let ended = loop {
            match child.try_wait().unwrap() {
                None if Instant::now() < moment => std::thread::sleep(Duration::from_millis(1)),
                ended => break ended,
            }
        };
        if let Some(status) = ended {
            // The run had finished: the next begins from nothing.
            assert!(status.success(), "started again after {kills} kills");
            assert_eq!(content(&database), whole, "the same content after {kills} kills");
            std::fs::remove_dir_all(folder.at("work")).unwrap();
            folder.remove("killed.db");
        } else {
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
        }
    }
    folder.works(run);
    println!("{kills} kills");
    assert_eq!(content(&database), whole, "the same content");
    assert_eq!(unfinished(&folder.0), Vec::<PathBuf>::new(), "nothing unfinished is left");
}

/// The unfinished files in a folder and those within.
pub(super) fn unfinished(folder: &Path) -> Vec<PathBuf> {
    all_files(folder).into_iter().filter(|path| path.extension().is_some_and(|e| e == "part")).collect()
}

pub(super) fn all_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(all_files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found.sort();
    found
}

#[test]
fn a_gpu_and_the_cpu_make_one_database() {
    if cpu_and(&["opencl"]).len() == 1 {
        return;
    }
    let folder = Folder::new("collect-gpu");
    folder.make("images");
    let size = Size::new(200, 150);
    // Enough pairs for the GPU to verify them, in tiles of three by three photographs, and one unrelated picture.
    for i in 0..10 {
        let at = f64::from(i);
        let image = view(size, 6, 0.02 * at, 1.0, [0.03, 0.005 * at], [2.0 * at, -1.0]);
        folder.write(&format!("images/{i}.png"), image);
    }
    folder.texture("images/other.png", size, 98);
    let on = |device: &str| {
        let line = format!("collect images --output {device}.db --block 3 --device {device} --json");
        let told = folder.works(line);
        (content(&folder.at(&format!("{device}.db"))), told)
    };
    let (expected, _) = on("cpu");
    let verified = count(&folder.at("cpu.db"), &format!("{VERIFIED} WHERE rows >= 15"));
    assert!(verified >= 40, "{verified} pairs are verified");
    let (found, told) = on("opencl");
    assert!(told.contains(r#""device":"opencl:0""#), "not computed by the GPU: {told}");
    assert_eq!(found, expected, "the rows of every table");
}

#[test]
fn damaged_and_foreign_files_are_made_again() {
    let folder = Folder::with("collect-damaged", photographs);
    let whole = collected(&folder, "whole", "");
    let tiles = all_files(&folder.at("whole work/matches"));
    let features = all_files(&folder.at("whole work/features"));
    assert_eq!((tiles.len(), features.len()), (6, 6), "blocks of two of six photographs");
    std::fs::write(&tiles[0], b"nothing").unwrap();
    let bytes = std::fs::read(&tiles[1]).unwrap();
    std::fs::write(&tiles[1], &bytes[..bytes.len() - 3]).unwrap();
    std::fs::copy(&tiles[2], &tiles[3]).unwrap();
    let work = |line: &str| {
        let mut command = folder.tiepoint(line);
        command.args(["--work", "whole work"]);
        command
    };
    let done = || number(&succeeds(&mut work("collect status --json"))[0], "tiles_done");
    assert_eq!(done(), 3.0);
    std::fs::write(&features[4], b"").unwrap();
    assert!(done() < 3.0, "tiles of photographs without features count as done: {}", done());
    let message = refused(&mut work("collect export --output new.db"), 1);
    assert!(message.contains("has no features; run the stage `features` first"), "{message}");
    assert_eq!(collected(&folder, "whole", ""), whole, "all made again");
}

#[test]
fn folders_with_other_options_or_foreign_files_are_refused() {
    let folder = Folder::with("collect-changed", photographs);
    let run = "collect images --output whole.db --device cpu";
    folder.works(format!("{run} --block 2"));
    folder.make("full");
    folder.put("full/file", "mine");
    for (more, message) in [
        ("--block 2 --contrast 0.03", "options: `--contrast 0.02` and not 0.03"),
        ("--block 2 --max-features 300", "options: `--max-features 8192` and not 300"),
        ("--block 2 --features images", "options: `--features none` and not given"),
        ("--block 3", "options: `--block 2` and not 3"),
        ("--work full", "holds something else"),
    ] {
        folder.refuses(format!("{run} {more}"), 1, &[message]);
    }
    assert_eq!(folder.text("full/file"), "mine", "changed");
}

#[test]
fn a_record_that_is_not_tiepoint_s_is_kept() {
    let folder = Folder::with("collect-foreign", photographs);
    folder.works("collect scan images --work ours");
    for work in ["full", "ours"] {
        for (name, text) in
            [("images.json", "{\"my\": \"dataset\"}"), ("collection.json", "{\n  \"a\": 1\n}\n")]
        {
            folder.make(work);
            folder.put(&format!("{work}/{name}"), text);
            folder.refuses(format!("collect scan images --work {work}"), 1, &["holds something else", name]);
            assert_eq!(folder.text(&format!("{work}/{name}")), text, "{work}");
            folder.remove(&format!("{work}/{name}"));
        }
    }
    folder.works("collect scan images --work ours");
}

#[test]
fn of_two_scans_at_once_one_is_refused() {
    let folder = Folder::with("collect-two-scans", photographs);
    for round in 0..6 {
        let scan = |contrast: &str| {
            let line = format!("collect scan images --work {round} --contrast {contrast}");
            folder.tiepoint(line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        let both = [scan("0.02"), scan("0.03")].map(|mut child| child.wait().unwrap().success());
        assert_eq!(both.iter().filter(|went| **went).count(), 1, "not exactly one scan succeeded: {both:?}");
        folder.works(format!("collect status --work {round}"));
    }
}

#[test]
fn pairs_are_chosen_in_several_ways() {
    let folder = Folder::with("collect-pairs", photographs);
    folder.put("list.txt", "a.png\tc.png\nb ä.png\tc.png\nd.png\tother.png\n");
    for (arguments, expected, what) in [
        ("list.txt --pair-list verified.txt", 2, "the pairs of the list that match, and no others"),
        ("verified.txt", 2, "the verified pairs that the run before wrote"),
        ("sequence --overlap 1 --no-closure", 3, "neighbours"),
        ("sequence --overlap 1", 5, "with the transitive closure"),
        ("sequence", 10, "six photographs in sequence"),
        ("top-scale --top-matches 3", 10, "by their largest features"),
    ] {
        let _ = std::fs::remove_dir_all(folder.at("a.db.work"));
        let said = folder.notes(format!("collect images --output a.db --device cpu --pairs {arguments}"));
        let spaced = said.contains("COLMAP and hloc cannot read lines with names that hold spaces (1)");
        assert_eq!(spaced, arguments.contains("--pair-list"), "{said}");
        assert_eq!(count(&folder.at("a.db"), VERIFIED), expected, "{what}");
    }
    // From a pipe, which has no path on Windows: the work folder keeps it for later stages.
    let (reading, mut writing) = std::io::pipe().unwrap();
    writing.write_all(&folder.read("list.txt")).unwrap();
    drop(writing);
    let list = if cfg!(windows) { "list.txt" } else { "-" };
    let line = format!("collect images --output a.db --work piped --device cpu --pairs {list}");
    let mut piped = folder.tiepoint(line);
    succeeds(piped.stdin(reading));
    assert_eq!(count(&folder.at("a.db"), VERIFIED), 2, "a list on stdin");
    folder.remove("piped/pairs.bin");
    assert!(folder.works("collect pairs --work piped").contains("3 chosen"));
    folder.make("tab");
    folder.texture("tab/a\tb.png", Size::new(60, 40), 3);
    folder.refuses("collect tab --output tab.db --pair-list tab.txt", 1, &["a\\tb.png", "holds a tab"]);
    folder.refuses("collect images --output gps.db --pairs gps", 1, &["records its position"]);
    folder.refuses("collect images --output gps.db --pairs nonsense", 2, &["expected auto"]);
}

/// The reader of stdout closes the pipe after the first line, as `head` does.
#[test]
fn a_closed_stdout_is_reported_and_does_not_stop_the_work() {
    let folder = Folder::with("collect-closed", photographs);
    let whole = collected(&folder, "whole", "");
    let (reading, writing) = std::io::pipe().unwrap();
    drop(reading);
    let mut command = folder.tiepoint("collect images --output a.db --block 2 --device cpu");
    let said = refused(command.stdout(writing), 1);
    assert!(said.contains("stdout") && said.contains("files are written"), "{said}");
    assert_eq!(content(&folder.at("a.db")), whole, "the database is complete");
    if Path::new("/dev/full").exists() {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        refused(tiepoint("--help").stdout(full), 1);
    }
}

#[test]
#[cfg(unix)]
fn folders_that_cannot_be_written() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::with("collect-read-only", photographs);
    folder.make("locked");
    let permit = |mode| {
        std::fs::set_permissions(folder.at("locked"), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    permit(0o555);
    // The superuser may write into every folder.
    if std::fs::write(folder.at("locked/probe"), "").is_err() {
        folder.refuses("collect images --output a.db --work locked/w", 1, &["locked"]);
    } else {
        println!("SKIPPED: this user may write everywhere");
    }
    permit(0o755);
    if Path::new("/dev/full").exists() {
        folder.works("collect scan images --work full");
        std::os::unix::fs::symlink("/dev/full", folder.at("full/pairs.bin")).unwrap();
        folder.refuses("collect pairs --work full", 1, &["pairs.bin"]);
    }
}
