//! `tiepoint collect`: the same database however the work was cut, killed and damaged.

use super::*;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use std::hash::{DefaultHasher, Hasher};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tiepoint::synth::Random;

/// Photographs of one plane from several places, and one of another.
fn photographs(folder: &Folder) -> String {
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
fn content(database: &str) -> u64 {
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

fn count(database: &str, sql: &str) -> i64 {
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
fn unfinished(folder: &Path) -> Vec<PathBuf> {
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
    let mut chunk = b"eXIf".to_vec();
    chunk.extend_from_slice(exif);
    let checksum = !chunk.iter().fold(!0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg()))
    });
    // The signature and the header take 33 bytes.
    let length = (exif.len() as u32).to_be_bytes();
    let bytes = [&plain[..33], &length, &chunk, &checksum.to_be_bytes(), &plain[33..]].concat();
    std::fs::write(folder.at(name), bytes).unwrap();
}

/// Camera data as a TIFF: a list that points to another, at `list`, with one field (tag, type, count, value), and
/// numbers behind it.
fn exif(list: u32, field: (u16, u16, u32, u32), behind: &[u32]) -> Vec<u8> {
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
    std::fs::write(&features[4], b"").unwrap();
    let status = works(&["collect", "status", "--work", &folder.at("whole work"), "--json"]);
    assert_eq!(number(&status, "tiles_done"), 3.0, "{status}");
    let message = fails(
        &["collect", "export", "--work", &folder.at("whole work"), "--output", &folder.at("new.db")],
        1,
    );
    assert!(message.contains("run the stage"), "{message}");
    assert_eq!(collected(&folder, "whole", &[]), whole, "all made again");
}

#[test]
fn what_changed_is_refused() {
    let folder = Folder::new("collect-changed");
    let images = photographs(&folder);
    collected(&folder, "whole", &[]);
    let (work, database) = (folder.at("whole work"), folder.at("whole.db"));
    let again = |more: &[&str]| {
        fails(&[&["collect", &images, "--output", &database, "--work", &work], more].concat(), 1)
    };
    let message = again(&["--block", "2", "--contrast", "0.03"]);
    assert!(message.contains("features.sift.contrast 0.02 and not 0.03"), "{message}");
    folder.texture("images/other.png", Size::new(240, 180), 98);
    let message = again(&["--block", "2"]);
    assert!(message.contains("other.png has changed"), "{message}");
    std::fs::remove_file(folder.at("images/other.png")).unwrap();
    let message = again(&["--block", "2"]);
    assert!(message.contains("other.png is in the work folder and not among the images"), "{message}");
    std::fs::create_dir(folder.at("full")).unwrap();
    std::fs::write(folder.at("full/file"), "mine").unwrap();
    let message = fails(&["collect", &images, "--output", &database, "--work", &folder.at("full")], 1);
    assert!(message.contains("holds something else"), "{message}");
    assert_eq!(std::fs::read(folder.at("full/file")).unwrap(), b"mine", "and is left alone");
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
    assert_eq!(count(&database, "SELECT image_id FROM images WHERE name = 'a.png'"), 6, "it comes last");
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

#[test]
fn one_photograph_and_none() {
    let folder = Folder::new("collect-few");
    let image = folder.texture("alone.png", Size::new(120, 90), 1);
    let database = folder.at("alone.db");
    works(&["collect", &image, "--output", &database, "--device", "cpu"]);
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
    assert_eq!(verified("list", &list, &["--no-closure"]), 2, "those of the list that match");
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
