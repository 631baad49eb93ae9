//! `tiepoint collect`: the same database however the work was cut, killed and damaged.

use super::*;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use std::hash::{DefaultHasher, Hasher};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tiepoint::synth::Random;

/// Photographs of one plane from several places, and one of another.
pub(super) fn photographs(folder: &Folder) -> String {
    let size = Size::new(240, 180);
    let images = folder.at("images");
    std::fs::create_dir_all(folder.at("images/sub folder")).unwrap();
    for i in 0..5_u32 {
        let (angle, shift) = (0.05 + 0.02 * f64::from(i), 3.0 * f64::from(i));
        let moving =
            viewpoint(size, angle, 1.0 + 0.02 * f64::from(i), [0.04, 0.01 * f64::from(i)], [shift, -2.0])
                .unwrap();
        let options = SceneOptions::default().with_size(size).with_moving_from_reference(moving).with_seed(4);
        let scene = Scene::<u8>::render(&options, &Cpu::sequential()).unwrap();
        let name =
            ["images/b ä.png", "images/a.png", "images/sub folder/a.png", "images/c.png", "images/d.png"]
                [i as usize];
        folder.write(name, &scene.moving.into());
    }
    folder.texture("images/other.png", size, 99);
    images
}

/// A hash over the rows of every table, sorted.
pub(super) fn content(database: &str) -> u64 {
    let database = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
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

pub(super) fn count(database: &str, sql: &str) -> i64 {
    let database = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    database.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Collects with these further arguments, and gives the content of the database.
fn collected(folder: &Folder, name: &str, more: &[&str]) -> u64 {
    let (images, work, database) =
        (folder.at("images"), folder.at(&format!("{name} work")), folder.at(&format!("{name}.db")));
    let arguments =
        ["collect", &images, "--output", &database, "--work", &work, "--block", "2", "--device", "cpu"];
    works(&[&arguments[..], more].concat());
    content(&database)
}

#[test]
fn one_database_for_threads_and_shards() {
    let folder = Folder::new("collect-same");
    let images = photographs(&folder);
    let whole = collected(&folder, "whole", &["--threads", "1"]);
    assert_eq!(collected(&folder, "two", &["--threads", "2"]), whole, "two threads");
    assert_eq!(collected(&folder, "whole", &["--threads", "2"]), whole, "again, with all there");
    assert_eq!(collected(&folder, "large blocks", &["--threads", "2"]), whole, "in a new folder");
    // What was found: every pair of the plane, none of the other picture.
    let database = folder.at("whole.db");
    let number = |sql| count(&database, sql);
    assert_eq!(number("SELECT count(*) FROM images"), 6);
    assert_eq!(number("SELECT count(*) FROM cameras"), 6, "without camera data one each");
    assert_eq!(number("SELECT count(*) FROM two_view_geometries WHERE rows >= 15"), 10, "pairs of five");
    assert_eq!(
        number("SELECT count(*) FROM images WHERE name IN ('a.png', 'sub folder/a.png', 'b ä.png')"),
        3
    );
    assert_eq!(
        number("SELECT count(*) FROM two_view_geometries WHERE F IS NULL AND H IS NULL"),
        0,
        "with a model"
    );
    assert_eq!(number("PRAGMA user_version"), 4_010_100);
    assert_eq!(
        number(
            "SELECT count(*) FROM matches m JOIN two_view_geometries t USING (pair_id) WHERE t.rows > m.rows"
        ),
        0
    );
    // Eight parts, one after the other, in any order.
    let work = folder.at("parts");
    works(&["collect", "scan", &images, "--work", &work, "--block", "2"]);
    for stage in ["features", "pairs", "match"] {
        for part in [3, 7, 0, 1, 2, 6, 5, 4] {
            works(&["collect", stage, "--work", &work, "--shard", &format!("{part}/8"), "--device", "cpu"]);
        }
    }
    let status = works(&["collect", "status", "--work", &work, "--json"]);
    assert_eq!(value(&status, "complete"), "true", "{status}");
    let parts = folder.at("parts.db");
    works(&["collect", "export", "--work", &work, "--output", &parts]);
    assert_eq!(content(&parts), whole, "eight parts");
}

#[test]
fn killed_at_any_time_and_started_again() {
    let folder = Folder::new("collect-killed");
    let images = photographs(&folder);
    let start = Instant::now();
    let whole = collected(&folder, "whole", &["--threads", "2"]);
    let whole_takes = start.elapsed();
    let (work, database) = (folder.at("work"), folder.at("killed.db"));
    let run = ["collect", &images, "--output", &database, "--work", &work, "--block", "2", "--device", "cpu"];
    let (mut random, mut kills) = (Random::new(14), 0);
    while kills < 20 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tiepoint"))
            .args(run)
            .args(["--threads", "2"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let moment = Instant::now() + whole_takes.mul_f64(random.unit());
        let ended = loop {
            match child.try_wait().unwrap() {
                None if Instant::now() < moment => std::thread::sleep(Duration::from_millis(1)),
                ended => break ended,
            }
        };
        if let Some(status) = ended {
            // It was through: the next one begins anew.
            assert!(status.success(), "started again after {kills} kills");
            assert_eq!(content(&database), whole, "the same content after {kills} kills");
            std::fs::remove_dir_all(&work).unwrap();
            std::fs::remove_file(&database).unwrap();
        } else {
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
        }
    }
    works(&run);
    assert_eq!(content(&database), whole, "the same content");
    assert_eq!(unfinished(Path::new(&folder.at(""))), Vec::<PathBuf>::new(), "nothing unfinished is left");
}

/// The unfinished files in a folder and those within.
pub(super) fn unfinished(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(unfinished(&entry.path()));
        } else if entry.file_name().to_string_lossy().ends_with(".part") {
            found.push(entry.path());
        }
    }
    found
}

#[test]
fn a_gpu_and_the_cpu_make_one_database() {
    if !works(&["devices"]).contains("opencl:0 ") {
        println!("SKIPPED: no OpenCL device (PoCL would do: pocl-opencl-icd)");
        return;
    }
    let folder = Folder::new("collect-gpu");
    std::fs::create_dir(folder.at("images")).unwrap();
    let size = Size::new(200, 150);
    // Enough pairs for the GPU to verify them, of tiles of three by three photographs, and one picture apart.
    for i in 0..10_u32 {
        let (angle, shift) = (0.02 * f64::from(i), 2.0 * f64::from(i));
        let moving = viewpoint(size, angle, 1.0, [0.03, 0.005 * f64::from(i)], [shift, -1.0]).unwrap();
        let options = SceneOptions::default().with_size(size).with_moving_from_reference(moving).with_seed(6);
        let scene = Scene::<u8>::render(&options, &Cpu::sequential()).unwrap();
        folder.write(&format!("images/{i}.png"), &scene.moving.into());
    }
    folder.texture("images/other.png", size, 98);
    let on = |device: &str| {
        let (work, database) = (folder.at(&format!("{device} work")), folder.at(&format!("{device}.db")));
        let images = folder.at("images");
        let arguments = ["collect", &images, "--output", &database, "--work", &work, "--block", "3"];
        let told = works(&[&arguments[..], &["--device", device, "--json"]].concat());
        (content(&database), told)
    };
    let (expected, _) = on("cpu");
    let verified = count(&folder.at("cpu.db"), "SELECT count(*) FROM two_view_geometries WHERE rows >= 15");
    assert!(verified >= 40, "{verified} pairs are verified");
    let (found, told) = on("opencl");
    assert!(told.contains(r#""device":"opencl:0""#), "what computed: {told}");
    assert_eq!(found, expected, "the rows of every table");
}

/// A PNG with these camera data.
pub(super) fn with_exif(folder: &Folder, name: &str, exif: &[u8]) {
    let size = Size::new(240, 180);
    folder.texture(name, size, 4);
    let plain = std::fs::read(folder.at(name)).unwrap();
    std::fs::write(folder.at(name), with_exif_chunk(&plain, exif)).unwrap();
}

/// The bytes of a PNG with these camera data.
pub(super) fn with_exif_chunk(plain: &[u8], exif: &[u8]) -> Vec<u8> {
    let mut chunk = b"eXIf".to_vec();
    chunk.extend_from_slice(exif);
    let checksum = !chunk.iter().fold(!0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg()))
    });
    // The signature and the header take 33 bytes.
    let length = (exif.len() as u32).to_be_bytes();
    [&plain[..33], &length, &chunk, &checksum.to_be_bytes(), &plain[33..]].concat()
}

/// Camera data as a TIFF: a list that points to another, at `list`, with one field (tag, type, count, value), and
/// numbers behind it.
pub(super) fn exif(list: u32, field: (u16, u16, u32, u32), behind: &[u32]) -> Vec<u8> {
    let mut bytes = b"II*\0\x08\0\0\0".to_vec();
    for (tag, kind, count, value) in [(0x8769, 4, 1, list), field] {
        bytes.extend_from_slice(&1_u16.to_le_bytes());
        bytes.extend_from_slice(&[tag, kind].map(u16::to_le_bytes).concat());
        bytes.extend_from_slice(&[count, value, 0].map(u32::to_le_bytes).concat());
    }
    behind.iter().for_each(|n| bytes.extend_from_slice(&n.to_le_bytes()));
    bytes
}

#[test]
fn absurd_camera_data_and_hostile_photographs() {
    let folder = Folder::new("collect-absurd");
    std::fs::create_dir(folder.at("images")).unwrap();
    // Focal lengths: of film 0 and 65 535; n/0, 0/0, and 4 294 967 295 mm; and one that is sound.
    let (film, lens) = (0xa405, 0x920a);
    // The second list lies behind the header and the first one, and numbers behind the second.
    let (list, behind) = (8 + 18, 8 + 2 * 18);
    let absurd = |name: &str, field, numbers: &[u32]| {
        with_exif(&folder, &format!("images/{name}.png"), &exif(list, field, numbers));
    };
    absurd("film 0", (film, 3, 1, 0), &[]);
    absurd("film 65535", (film, 3, 1, 65_535), &[]);
    absurd("film 43", (film, 3, 1, 43), &[]);
    absurd("lens 50 by 0", (lens, 5, 1, behind), &[50, 0]);
    absurd("lens 0 by 0", (lens, 5, 1, behind), &[0, 0]);
    absurd("lens huge", (lens, 5, 1, behind), &[u32::MAX, 1]);
    // Values beyond the end, more of them than there are bytes, a list that is its own successor, and noise.
    absurd("beyond", (lens, 5, 1, 0xffff_fff0), &[]);
    absurd("many", (lens, 5, u32::MAX, behind), &[1, 2]);
    with_exif(&folder, "images/itself.png", &exif(8, (film, 3, 1, 43), &[]));
    let mut random = Random::new(3);
    let noise: Vec<u8> = (0..5000).map(|_| random.bits() as u8).collect();
    with_exif(&folder, "images/noise.png", &noise);
    with_exif(&folder, "images/none.png", &[]);
    // Pictures that hold nothing, and what is no picture.
    folder.write("images/one pixel.png", &Image::<u8>::new(Size::new(1, 1)).into());
    folder.write("images/black.png", &Image::<u8>::new(Size::new(300, 200)).into());
    let mut huge = std::fs::read(folder.at("images/black.png")).unwrap();
    huge[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
    std::fs::write(folder.at("images/huge.png"), huge).unwrap();
    std::fs::create_dir(folder.at("images/folder.png")).unwrap();
    let database = folder.at("absurd.db");
    let images = folder.at("images");
    let run = ["collect", &images, "--output", &database, "--device", "cpu", "--threads", "2"];
    let output = tiepoint(&run);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("huge.png is left out"), "{said}");
    let number = |sql| count(&database, sql);
    assert_eq!(number("SELECT count(*) FROM images"), 13, "all but the huge one");
    assert_eq!(number("SELECT count(*) FROM pose_priors"), 0, "none says where it was taken");
    // The sound focal length alone is believed; the others have COLMAP's guess.
    assert_eq!(number("SELECT count(*) FROM cameras WHERE prior_focal_length = 1"), 1);
    let reader = Connection::open_with_flags(&database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut cameras =
        reader.prepare("SELECT prior_focal_length, width, height, params FROM cameras").unwrap();
    let mut rows = cameras.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let params: Vec<u8> = row.get(3).unwrap();
        let focal = f64::from_le_bytes(params[..8].try_into().unwrap());
        let sides: [u32; 2] = [row.get(1).unwrap(), row.get(2).unwrap()];
        let guess = 1.2 * f64::from(sides[0].max(sides[1]));
        let is_known: bool = row.get(0).unwrap();
        assert!(if is_known { (focal - 298.0).abs() < 2.0 } else { focal == guess }, "{focal} of {sides:?}");
    }
    // Thirteen can be matched; the huge one is in thirteen pairs, which are not tried.
    let status = works(&["collect", "status", "--work", &folder.at("absurd.db.work"), "--json"]);
    let told = ["pairs", "tried", "left_out"].map(|key| self::number(&status, key));
    assert_eq!(told, [91.0, 78.0, 13.0], "{status}");
    assert_eq!(value(&status, "complete"), "true", "{status}");
    let again = works(&["collect", "match", "--work", &folder.at("absurd.db.work"), "--json"]);
    assert_eq!(self::number(&again, "pairs"), 0.0, "all were there: {again}");
}

#[test]
fn damaged_and_foreign_files_are_made_again() {
    let folder = Folder::new("collect-damaged");
    photographs(&folder);
    let whole = collected(&folder, "whole", &[]);
    let tiles = |name: &str| -> Vec<PathBuf> {
        let mut found = Vec::new();
        for row in std::fs::read_dir(folder.at(name)).unwrap() {
            found.extend(std::fs::read_dir(row.unwrap().path()).unwrap().map(|e| e.unwrap().path()));
        }
        found.sort();
        found
    };
    let (all, features) = (tiles("whole work/matches"), tiles("whole work/features"));
    assert_eq!((all.len(), features.len()), (6, 6), "blocks of two of six photographs");
    std::fs::write(&all[0], b"nothing").unwrap();
    let bytes = std::fs::read(&all[1]).unwrap();
    std::fs::write(&all[1], &bytes[..bytes.len() - 3]).unwrap();
    std::fs::copy(&all[2], &all[3]).unwrap();
    let status = || works(&["collect", "status", "--work", &folder.at("whole work"), "--json"]);
    assert_eq!(number(&status(), "tiles_done"), 3.0, "{}", status());
    std::fs::write(&features[4], b"").unwrap();
    assert!(
        number(&status(), "tiles_done") < 3.0,
        "tiles of what has no features are to be made again: {}",
        status()
    );
    let message = fails(
        &["collect", "export", "--work", &folder.at("whole work"), "--output", &folder.at("new.db")],
        1,
    );
    assert!(message.contains("run the stage"), "{message}");
    assert_eq!(collected(&folder, "whole", &[]), whole, "all made again");
}

#[test]
fn other_features_and_folders_of_others_are_refused() {
    let folder = Folder::new("collect-changed");
    let images = photographs(&folder);
    collected(&folder, "whole", &[]);
    let (work, database) = (folder.at("whole work"), folder.at("whole.db"));
    let again = |more: &[&str]| {
        fails(&[&["collect", &images, "--output", &database, "--work", &work], more].concat(), 1)
    };
    let message = again(&["--block", "2", "--contrast", "0.03"]);
    assert!(message.contains("features.sift.contrast 0.02 and not 0.03"), "{message}");
    let message = again(&["--block", "3"]);
    assert!(message.contains("block 2 and not 3"), "{message}");
    std::fs::create_dir(folder.at("full")).unwrap();
    std::fs::write(folder.at("full/file"), "mine").unwrap();
    let message = fails(&["collect", &images, "--output", &database, "--work", &folder.at("full")], 1);
    assert!(message.contains("holds something else"), "{message}");
    assert_eq!(std::fs::read(folder.at("full/file")).unwrap(), b"mine", "and is left alone");
}

#[test]
fn what_a_part_cannot_read_is_told_and_left_out() {
    let folder = Folder::new("collect-parts-unreadable");
    let images = photographs(&folder);
    std::fs::write(folder.at("images/0.png"), "no picture").unwrap();
    let work = folder.at("work");
    works(&["collect", "scan", &images, "--work", &work]);
    let stage = |stage: &str, more: &[&str]| {
        works(&[&["collect", stage, "--work", &work, "--device", "cpu", "--json"], more].concat())
    };
    let told = stage("features", &["--shard", "0/7"]);
    assert!(told.contains("0.png") && number(&told, "searched") == 0.0, "all of its photographs: {told}");
    let status = stage("status", &["--parts", "7"]);
    assert_eq!(numbers(&status, "missing_features"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "{status}");
    let features = ["collect", "features", "--work", &work, "--device", "cpu", "--max-unreadable", "0"];
    let message = fails(&features, 1);
    assert!(message.contains("1 of 7 photographs"), "{message}");
    // What has changed since the scan is tried again, and the rest is kept.
    folder.texture("images/0.png", Size::new(240, 180), 7);
    let message = fails(&features, 1);
    assert!(message.contains("0.png") && message.contains("changed since the scan"), "{message}");
    works(&["collect", "scan", &images, "--work", &work]);
    let told = stage("features", &[]);
    assert_eq!(["searched", "present"].map(|key| number(&told, key)), [1.0, 6.0], "{told}");
    stage("pairs", &[]);
    stage("match", &["--shard", "0/1"]);
    let status = stage("status", &["--parts", "7"]);
    assert!(value(&status, "complete") == "true" && value(&status, "missing_match") == "[]", "{status}");
}

#[test]
#[cfg(unix)]
fn links_that_lead_nowhere_and_hidden_files_are_told() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new("collect-links");
    let images = photographs(&folder);
    symlink("nowhere", folder.at("images/lost.png")).unwrap();
    symlink("nowhere", folder.at("images/notes.txt")).unwrap();
    symlink("..", folder.at("images/sub folder/around")).unwrap();
    symlink("itself.png", folder.at("images/itself.png")).unwrap();
    std::fs::write(folder.at("images/.hidden.png"), "").unwrap();
    let output = tiepoint(&["collect", "scan", &images, "--work", &folder.at("work")]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    for told in
        ["lost.png: leads nowhere", "around: leads to itself", "itself.png: leads to itself", ".hidden.png"]
    {
        assert!(said.contains(told), "{told}: {said}");
    }
    assert!(!said.contains("notes.txt"), "{said}");
}

#[test]
fn of_two_scans_at_once_one_waits() {
    let folder = Folder::new("collect-two-scans");
    let images = photographs(&folder);
    for round in 0..6 {
        let work = folder.at(&format!("work {round}"));
        let scan = |contrast: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_tiepoint"));
            command.args(["collect", "scan", &images, "--work", &work, "--contrast", contrast]);
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        let both = [scan("0.02"), scan("0.03")].map(|mut child| child.wait().unwrap().success());
        assert_eq!(both.iter().filter(|went| **went).count(), 1, "the other one is refused: {both:?}");
        works(&["collect", "status", "--work", &work]);
    }
}

#[test]
fn photographs_may_be_added() {
    let folder = Folder::new("collect-added");
    let images = photographs(&folder);
    let (work, database) = (folder.at("work"), folder.at("all.db"));
    let later = folder.at("later.png");
    std::fs::rename(folder.at("images/a.png"), &later).unwrap();
    let run = || {
        works(&[
            "collect", &images, "--output", &database, "--work", &work, "--block", "2", "--device", "cpu",
        ])
    };
    run();
    assert_eq!(count(&database, "SELECT count(*) FROM two_view_geometries"), 6, "of four");
    std::fs::rename(&later, folder.at("images/a.png")).unwrap();
    run();
    assert_eq!(count(&database, "SELECT count(*) FROM two_view_geometries"), 10, "of five");
    assert_eq!(
        count(&database, "SELECT image_id FROM images WHERE name = 'a.png'"),
        1,
        "in the order of names"
    );
}

#[test]
fn pictures_that_cannot_be_read_are_left_out() {
    let folder = Folder::new("collect-unreadable");
    let images = photographs(&folder);
    std::fs::write(folder.at("images/empty.jpg"), "").unwrap();
    std::fs::write(folder.at("images/text.png"), "no picture").unwrap();
    std::fs::write(folder.at("images/phone.heic"), "....ftypheic").unwrap();
    std::fs::write(folder.at("images/notes.txt"), "not even an image's name").unwrap();
    let whole = std::fs::read(folder.at("images/c.png")).unwrap();
    std::fs::write(folder.at("images/cut off.png"), &whole[..whole.len() / 2]).unwrap();
    let (database, page) = (folder.at("some.db"), folder.at("some.html"));
    let output = tiepoint(&["collect", &images, "--output", &database, "--report", &page, "--device", "cpu"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    for name in [
        "empty.jpg is left out",
        "text.png is left out",
        "cut off.png is left out",
        "phone.heic: heic is not read",
    ] {
        assert!(said.contains(name), "{name}: {said}");
    }
    assert!(!said.contains("notes.txt"), "{said}");
    assert_eq!(count(&database, "SELECT count(*) FROM images"), 6, "the others");
    let status = works(&["collect", "status", "--work", &folder.at("some.db.work"), "--json"]);
    assert!(status.contains("empty.jpg") && value(&status, "complete") == "true", "{status}");
    let of = format!(" of {} pairs", value(&status, "tried"));
    assert!(std::fs::read_to_string(page).unwrap().contains(&of), "the page counts {of}: {status}");
}

#[test]
fn a_photograph_that_was_too_large_is_found_with_a_higher_limit() {
    let folder = Folder::new("collect-limits");
    let images = photographs(&folder);
    folder.texture("images/large.png", Size::new(300, 200), 5);
    let (work, database) = (folder.at("limited"), folder.at("limited.db"));
    let limited = |most: &str| {
        let arguments = ["collect", &images, "--work", &work, "--output", &database, "--max-pixels", most];
        let output = tiepoint(&[&arguments[..], &["--device", "cpu"]].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        said
    };
    let said = limited("50000");
    assert!(said.contains("large.png is left out") && said.contains("50000"), "{said}");
    assert_eq!(count(&database, "SELECT count(*) FROM images"), 6, "the others");
    let said = limited("60000");
    assert!(!said.contains("left out"), "{said}");
    assert_eq!(count(&database, "SELECT count(*) FROM images"), 7, "all");
    // By stages, too.
    let parts = folder.at("parts");
    works(&["collect", "scan", &images, "--work", &parts]);
    let features = ["collect", "features", "--work", &parts, "--device", "cpu", "--json", "--max-bytes"];
    assert_eq!(value(&works(&[&features[..], &["50K"]].concat()), "searched"), "6");
    assert_eq!(value(&works(&[&features[..], &["60K"]].concat()), "searched"), "1");
}

/// The least x of the keypoints of a photograph.
fn leftmost(database: &str, name: &str) -> f32 {
    let database = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let sql = "SELECT cols, data FROM keypoints JOIN images USING (image_id) WHERE name = ?";
    let rows = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let (columns, data): (usize, Vec<u8>) = database.query_row(sql, [name], rows).unwrap();
    let (values, _) = data.as_chunks::<4>();
    values.iter().step_by(columns).map(|v| f32::from_le_bytes(*v)).fold(f32::INFINITY, f32::min)
}

#[test]
fn what_is_transparent_bears_no_features_and_a_missing_mask_is_told() {
    let folder = Folder::new("collect-transparent");
    let images = photographs(&folder);
    let opaque = image::read(folder.at("images/a.png"), &Default::default()).unwrap();
    let shown = Image::from_fn(opaque.size(), |x, _| if x < 120 { 0_u8 } else { 255 });
    folder.write("images/half.png", &image::with_alpha(&opaque, &shown).unwrap());
    std::fs::create_dir(folder.at("masks")).unwrap();
    folder.write("masks/c.png", &shown.into());
    let (database, masks) = (folder.at("some.db"), folder.at("masks"));
    let arguments = ["collect", &images, "--output", &database, "--masks", &masks, "--device", "cpu"];
    let output = tiepoint(&arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(leftmost(&database, "a.png") < 100.0, "opaque, and without a mask");
    // COLMAP's first pixel has its centre at a half.
    assert!(leftmost(&database, "c.png") >= 120.0, "masked");
    assert!(leftmost(&database, "half.png") >= 125.0, "not near what is transparent");
    assert!(said.contains("6 of 7 photographs have no mask"), "{said}");
    assert!(said.contains("a.png") && !said.contains("c.png"), "by name: {said}");
    let again = works(&["collect", "features", "--work", &folder.at("some.db.work"), "--json"]);
    assert!(value(&again, "without_mask").contains("half.png"), "told again: {again}");
    let missing = folder.at("nowhere");
    let message = fails(&["collect", &images, "--output", &folder.at("b.db"), "--masks", &missing], 2);
    assert!(message.contains("nowhere"), "no such folder: {message}");
}

#[test]
fn one_photograph_and_none() {
    let folder = Folder::new("collect-few");
    let image = folder.texture("alone.png", Size::new(120, 90), 1);
    let database = folder.at("alone.db");
    let told = works(&["collect", &image, "--output", &database, "--device", "cpu", "--json"]);
    let estimate = told.lines().find(|line| line.contains(r#""stage":"estimate""#)).unwrap();
    assert_eq!(["photographs", "pairs"].map(|key| number(estimate, key)), [1.0, 0.0], "{estimate}");
    assert!(number(estimate, "database_bytes") > 1e6 && number(estimate, "free_bytes") > 0.0, "{estimate}");
    assert_eq!(count(&database, "SELECT count(*) FROM images"), 1);
    assert_eq!(count(&database, "SELECT count(*) FROM two_view_geometries"), 0);
    std::fs::create_dir(folder.at("nothing")).unwrap();
    let message = fails(&["collect", &folder.at("nothing"), "--output", &database], 1);
    assert!(message.contains("there is no image in"), "{message}");
    let message = fails(&["collect", &folder.at("missing"), "--output", &database], 1);
    assert!(message.contains("missing"), "{message}");
    std::fs::write(folder.at("bad.jpg"), "no picture").unwrap();
    let message = fails(&["collect", &folder.at("bad.jpg"), "--output", &folder.at("bad.db")], 1);
    assert!(message.contains("none of the photographs can be read"), "{message}");
}

#[test]
fn a_database_in_the_way_is_kept_unless_it_is_ours() {
    let folder = Folder::new("collect-way");
    photographs(&folder);
    let whole = collected(&folder, "whole", &[]);
    let (work, other) = (folder.at("whole work"), folder.at("other.db"));
    let export = ["collect", "export", "--work", &work, "--output", &other];
    std::fs::write(&other, "somebody's").unwrap();
    let message = fails(&export, 1);
    assert!(message.contains("was not written by tiepoint"), "{message}");
    assert_eq!(std::fs::read(&other).unwrap(), b"somebody's", "untouched");
    works(&[&export[..], &["--replace"]].concat());
    assert_eq!(content(&other), whole, "replaced");
    std::fs::write(format!("{other}-wal"), "").unwrap();
    let message = fails(&export, 1);
    assert!(message.contains("is in use"), "{message}");
    std::fs::remove_file(format!("{other}-wal")).unwrap();
    works(&export);
    let left: Vec<String> = folder.files().into_iter().filter(|name| name.contains(".part")).collect();
    assert!(left.is_empty(), "nothing unfinished is left: {left:?}");
    fails(&["collect", "export", "--work", &work, "--output", &folder.at("no/such/folder.db")], 2);
    fails(&["collect", "export", "--work", &folder.at("no work"), "--output", &other], 1);
}

/// The database in the way is part of a whole with the files that are beside it: it is left alone until the new one is
/// in its place, and while another program has it.
#[test]
fn a_database_in_use_is_not_replaced() {
    let folder = Folder::new("collect-in-use");
    photographs(&folder);
    let whole = collected(&folder, "whole", &[]);
    let (work, path) = (folder.at("whole work"), folder.at("other.db"));
    let export = ["collect", "export", "--work", &work, "--output", &path];
    let replace = [&export[..], &["--replace"]].concat();
    let make = |mode: &str| {
        let other = Connection::open(&path).unwrap();
        other.query_row(&format!("PRAGMA journal_mode = {mode}"), [], |_| Ok(())).unwrap();
        other.execute_batch("CREATE TABLE IF NOT EXISTS theirs (a); INSERT INTO theirs VALUES (7);").unwrap();
        other
    };
    for mode in ["WAL", "DELETE"] {
        let other = make(mode);
        other.execute_batch("BEGIN IMMEDIATE; INSERT INTO theirs VALUES (8)").unwrap();
        for arguments in [&export[..], &replace] {
            let message = fails(arguments, 1);
            assert!(message.contains("in use"), "{mode}: {message}");
            assert!(!message.contains("written by tiepoint"), "{mode}: {message}");
        }
        other.execute_batch("COMMIT").unwrap();
        assert_eq!(count(&path, "SELECT sum(a) FROM theirs"), 15, "{mode}: nothing of it is lost");
        drop(other);
        works(&replace);
        assert_eq!(content(&path), whole, "{mode}: replaced");
        std::fs::remove_file(&path).unwrap();
    }
    // Of a program that was killed: what it committed lies beside the database.
    let other = make("WAL");
    let (wal, kept) = (format!("{path}-wal"), folder.at("kept"));
    std::fs::copy(&path, &kept).unwrap();
    std::fs::copy(&wal, format!("{kept}-wal")).unwrap();
    drop(other);
    std::fs::rename(&kept, &path).unwrap();
    std::fs::rename(format!("{kept}-wal"), &wal).unwrap();
    let message = fails(&export, 1);
    assert!(message.contains("was not closed") && Path::new(&wal).exists(), "{message}");
    works(&replace);
    assert_eq!(content(&path), whole, "nothing of the old one is mixed in");
    // And of one whose database is gone, or is none.
    for database in [None, Some("no database")] {
        std::fs::remove_file(&path).unwrap();
        database.iter().for_each(|text| std::fs::write(&path, text).unwrap());
        std::fs::write(format!("{path}-journal"), "of another").unwrap();
        let message = fails(&export, 1);
        assert!(message.contains("other.db-journal"), "{message}");
        if database.is_none() {
            works(&replace);
            assert_eq!(content(&path), whole, "the journal of nothing goes");
        } else {
            assert!(fails(&replace, 1).contains("move both away"), "it may be a database in need");
        }
    }
}

#[test]
#[cfg(unix)]
fn a_link_to_a_database_stays_one() {
    let folder = Folder::new("collect-link");
    photographs(&folder);
    let whole = collected(&folder, "whole", &[]);
    let (work, real, link) = (folder.at("whole work"), folder.at("far/real.db"), folder.at("link.db"));
    std::fs::create_dir(folder.at("far")).unwrap();
    std::os::unix::fs::symlink("far/real.db", &link).unwrap();
    for what in ["new", "replaced"] {
        works(&["collect", "export", "--work", &work, "--output", &link]);
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink(), "{what}: the link is one still");
        assert_eq!(content(&real), whole, "{what}: where it leads to");
    }
    assert_eq!(std::fs::read_dir(folder.at("far")).unwrap().count(), 1, "nothing unfinished is left");
}

#[test]
fn no_two_results_of_a_collection_go_to_one_file_and_none_to_an_input() {
    let folder = Folder::new("collect-results");
    let images = photographs(&folder);
    let (database, list, page) = (folder.at("a.db"), folder.at("list.txt"), folder.at("a.html"));
    let photograph = folder.at("images/a.png");
    std::fs::write(&list, "a.png\tc.png\n").unwrap();
    let run = ["collect", &images, "--output", &database];
    let dotted = folder.at("images/../a.db");
    for (more, why) in [
        (&["--pair-list", &database][..], "two results"),
        (&["--pair-list", &dotted], "two results"),
        (&["--pair-list", &page, "--report", &page], "two results"),
        (&["--pairs", &list, "--pair-list", &list], "would replace the input"),
        (&["--pair-list", &photograph], "would replace the input"),
    ] {
        let message = fails(&[&run[..], more].concat(), 2);
        assert!(message.contains(why), "{more:?}: {message}");
    }
    assert!(!Path::new(&database).exists(), "nothing was written");
    works(&run);
    let work = folder.at("a.db.work");
    let export = ["collect", "export", "--work", &work, "--output", &database, "--pair-list"];
    for (path, why) in [(&database, "two results"), (&photograph, "would replace the input")] {
        let message = fails(&[&export[..], &[path]].concat(), 2);
        assert!(message.contains(why), "{message}");
    }
}

/// A program that reads the first line and closes the pipe, as `head` does.
#[test]
fn a_closed_stdout_does_not_stop_the_work_and_is_told() {
    let folder = Folder::new("collect-closed");
    let images = photographs(&folder);
    let whole = collected(&folder, "whole", &[]);
    let database = folder.at("a.db");
    let (reading, writing) = std::io::pipe().unwrap();
    drop(reading);
    let output = Command::new(env!("CARGO_BIN_EXE_tiepoint"))
        .args(["collect", &images, "--output", &database, "--block", "2", "--device", "cpu"])
        .stdout(writing)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("stdout") && said.contains("files are written"), "{said}");
    assert_eq!(content(&database), whole, "all the same");
    if Path::new("/dev/full").exists() {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output =
            Command::new(env!("CARGO_BIN_EXE_tiepoint")).arg("--help").stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "help that nobody can read");
    }
}

#[test]
fn pairs_are_chosen_in_several_ways() {
    let folder = Folder::new("collect-pairs");
    let images = photographs(&folder);
    let list = folder.at("list.txt");
    std::fs::write(&list, "a.png\tc.png\nb ä.png\tc.png\nd.png\tother.png\n").unwrap();
    let verified = |name: &str, which: &str, more: &[&str]| {
        let (database, work) = (folder.at(&format!("{name}.db")), folder.at(name));
        let arguments =
            ["collect", &images, "--output", &database, "--work", &work, "--pairs", which, "--device", "cpu"];
        works(&[&arguments[..], more].concat());
        count(&database, "SELECT count(*) FROM two_view_geometries")
    };
    let pair_list = folder.at("verified.txt");
    let more = ["--no-closure", "--pair-list", &pair_list];
    assert_eq!(verified("list", &list, &more), 2, "those of the list that match");
    assert_eq!(verified("again", &pair_list, &["--no-closure"]), 2, "the pairs it found, read back");
    assert_eq!(verified("closure", &list, &[]), 3, "and those that have a partner in common");
    assert_eq!(verified("sequence", "sequence", &[]), 10, "six in a row");
    assert_eq!(verified("top", "top-scale", &["--top-matches", "3"]), 10, "by their largest features");
    let arguments = ["collect", &images, "--output", &folder.at("gps.db"), "--pairs", "gps"];
    assert!(fails(&arguments, 1).contains("records its position"), "without positions");
    let arguments = ["collect", &images, "--output", &folder.at("gps.db"), "--pairs", "nonsense"];
    assert!(fails(&arguments, 2).contains("expected auto"), "unknown");
}

#[test]
#[cfg(unix)]
fn folders_that_cannot_be_written() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("collect-read-only");
    let images = photographs(&folder);
    let locked = folder.at("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o555)).unwrap();
    // To the superuser every folder is writable.
    if std::fs::write(format!("{locked}/probe"), "").is_err() {
        let message =
            fails(&["collect", &images, "--output", &folder.at("a.db"), "--work", &format!("{locked}/w")], 1);
        assert!(message.contains("locked"), "{message}");
    } else {
        println!("SKIPPED: this user may write everywhere");
    }
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o755)).unwrap();
    // A device that is always full.
    if Path::new("/dev/full").exists() {
        let work = folder.at("full");
        works(&["collect", "scan", &images, "--work", &work]);
        std::os::unix::fs::symlink("/dev/full", folder.at("full/pairs.bin")).unwrap();
        let message = fails(&["collect", "pairs", "--work", &work], 1);
        assert!(message.contains("pairs.bin"), "{message}");
    }
}
