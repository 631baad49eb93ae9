//! The database that is written, and files that are already in its place.

use super::*;

const EXPORT: &str = "collect export --work whole.db.work --output other.db";
const REPLACE: &str = "collect export --work whole.db.work --output other.db --replace";

/// Makes the database `whole.db` of a collection and returns its content.
fn whole(folder: &Folder) -> u64 {
    photographs(folder);
    folder.works("collect images --output whole.db --block 2 --device cpu");
    content(&folder.at("whole.db"))
}

#[test]
fn a_database_in_the_way_is_kept_unless_it_is_ours() {
    let folder = Folder::new("collect-way");
    let whole = whole(&folder);
    folder.put("other.db", "somebody's");
    folder.refuses(EXPORT, 1, &["was not written by tiepoint", "--replace"]);
    assert_eq!(folder.text("other.db"), "somebody's", "untouched");
    folder.works(REPLACE);
    assert_eq!(content(&folder.at("other.db")), whole, "replaced");
    folder.put("other.db", "");
    folder.works(EXPORT);
    assert_eq!(content(&folder.at("other.db")), whole, "an empty file is none");
    let reasons: &[_] = if cfg!(windows) { &["no path on Windows"] } else { &["stdout", "name a file"] };
    folder.refuses("collect images --output - --replace", 2, reasons);
    folder.put("other.db-wal", "");
    folder.refuses(EXPORT, 1, &["is in use"]);
    folder.remove("other.db-wal");
    folder.works(EXPORT);
    assert_eq!(unfinished(&folder.0), Vec::<PathBuf>::new(), "nothing unfinished is left");
    folder.fails("collect export --work whole.db.work --output no/such/folder.db", 2);
    folder.fails("collect export --work nowhere --output other.db", 1);
}

#[test]
fn the_layout_of_colmap_3_8_holds_the_same() {
    let folder = Folder::new("collect-colmap");
    whole(&folder);
    folder.works(format!("{EXPORT} --colmap 3.8"));
    let (new, old) = (folder.at("whole.db"), folder.at("other.db"));
    for (sql, at_least) in [
        ("SELECT count(*) FROM cameras WHERE length(params) = 32", 1),
        ("SELECT sum(camera_id * image_id) FROM images WHERE name <> ''", 3),
        ("SELECT sum(rows * cols + length(data)) FROM keypoints", 1000),
        ("SELECT sum(rows * cols + length(data)) FROM descriptors", 1000),
        ("SELECT sum(rows * cols + length(data)) FROM matches", 50),
        ("SELECT sum(rows * config + length(data)) FROM two_view_geometries", 50),
    ] {
        let found = count(&old, sql);
        assert!(found == count(&new, sql) && found >= at_least, "{sql}: {found}");
    }
    let blobs =
        "length(F) = 72 AND length(E) = 72 AND length(H) = 72 AND length(qvec) = 32 AND length(tvec) = 24";
    let pairs = |condition: &str| format!("SELECT count(*) FROM two_view_geometries WHERE {condition}");
    assert_eq!(
        count(&old, pairs(blobs).as_str()),
        count(&new, pairs("rows > 0").as_str()),
        "zeros, not NULL"
    );
    assert_eq!(count(&new, pairs("qvec IS NOT NULL OR tvec IS NOT NULL").as_str()), 0);
    let tables = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'";
    assert_eq!(count(&old, tables), 6, "tables that COLMAP 3.8 does not have");
    assert_eq!(
        count(&old, "SELECT count(*) FROM pragma_table_info('images')"),
        10,
        "the priors are columns of images"
    );
    assert_eq!(count(&old, "PRAGMA user_version"), 3800);
    folder.refuses(format!("{REPLACE} --colmap 3.7"), 2, &["3.8", "4.1"]);
}

/// A database and its journals are kept until the new database is in place, and while another program uses them.
#[test]
fn a_database_in_use_is_not_replaced() {
    let folder = Folder::new("collect-in-use");
    let whole = whole(&folder);
    let path = &folder.at("other.db");
    let make = |mode: &str| {
        let other = Connection::open(path).unwrap();
        other.query_row(&format!("PRAGMA journal_mode = {mode}"), [], |_| Ok(())).unwrap();
        other.execute_batch("CREATE TABLE IF NOT EXISTS theirs (a); INSERT INTO theirs VALUES (7);").unwrap();
        other
    };
    for mode in ["WAL", "DELETE"] {
        let other = make(mode);
        other.execute_batch("BEGIN IMMEDIATE; INSERT INTO theirs VALUES (8)").unwrap();
        for line in [EXPORT, REPLACE] {
            let message = folder.fails(line, 1);
            assert!(message.contains("in use"), "{mode}: {message}");
            assert!(!message.contains("written by tiepoint"), "{mode}: {message}");
        }
        other.execute_batch("COMMIT").unwrap();
        assert_eq!(count(path, "SELECT sum(a) FROM theirs"), 15, "{mode}: nothing of it is lost");
        drop(other);
        folder.works(REPLACE);
        assert_eq!(content(path), whole, "{mode}: replaced");
        folder.remove("other.db");
    }
    // A killed program leaves its commits in the journal beside the database.
    let other = make("WAL");
    let names = ["other.db", "other.db-wal"];
    let contents = names.map(|name| folder.read(name));
    drop(other);
    names.iter().zip(contents).for_each(|(name, content)| folder.put(name, content));
    folder.refuses(EXPORT, 1, &["was not closed"]);
    assert!(folder.has("other.db-wal"), "it is left alone");
    folder.works(REPLACE);
    assert_eq!(content(path), whole, "nothing of the old one is mixed in");
    // A journal whose database is gone, or is no database.
    for database in [None, Some("no database")] {
        folder.remove("other.db");
        database.iter().for_each(|text| folder.put("other.db", text));
        folder.put("other.db-journal", "of another");
        folder.refuses(EXPORT, 1, &["other.db-journal"]);
        if database.is_none() {
            folder.works(REPLACE);
            assert_eq!(content(path), whole, "a journal without its database is removed");
        } else {
            // The file may be a damaged database that needs the journal.
            folder.refuses(REPLACE, 1, &["move both away"]);
        }
    }
}

#[test]
#[cfg(unix)]
fn a_link_to_a_database_stays_a_link() {
    let folder = Folder::new("collect-link");
    let whole = whole(&folder);
    folder.make("far");
    std::os::unix::fs::symlink("far/real.db", folder.at("other.db")).unwrap();
    for what in ["new", "replaced"] {
        folder.works(EXPORT);
        let is_link = std::fs::symlink_metadata(folder.at("other.db")).unwrap().is_symlink();
        assert!(is_link, "{what}: no longer a link");
        assert_eq!(content(&folder.at("far/real.db")), whole, "{what}: the database that the link points to");
    }
    assert_eq!(all_files(&folder.at("far")).len(), 1, "nothing unfinished is left");
}

#[test]
fn no_two_results_of_a_collection_go_to_one_file_and_none_to_an_input() {
    let folder = Folder::with("collect-results", photographs);
    folder.put("list.txt", "a.png\tc.png\n");
    let run = "collect images --output a.db";
    for (more, why) in [
        ("--pair-list a.db", "two results"),
        ("--pair-list images/../a.db", "two results"),
        ("--pair-list a.html --report a.html", "two results"),
        ("--pairs list.txt --pair-list list.txt", "would replace the input"),
        ("--pair-list images/a.png", "would replace the input"),
    ] {
        folder.refuses(format!("{run} {more}"), 2, &[why]);
    }
    assert!(!folder.has("a.db"), "nothing was written");
    folder.works(run);
    for (path, why) in [("a.db", "two results"), ("images/a.png", "would replace the input")] {
        let line = format!("collect export --work a.db.work --output a.db --pair-list {path}");
        folder.refuses(line, 2, &[why]);
    }
    // Files of the work folder are no place for results.
    let own = all_files(&folder.at("a.db.work"));
    for path in
        ["a.db.work/images.json", "a.db.work/collection.json", "a.db.work/new.db", "a.db.work/matches/new.db"]
    {
        let lies = &["lies in the work folder"];
        folder.refuses(format!("collect export --work a.db.work --replace --output {path}"), 2, lies);
        folder.refuses(format!("collect export --work a.db.work --output b.db --pair-list {path}"), 2, lies);
    }
    assert_eq!(all_files(&folder.at("a.db.work")), own);
    folder.works("collect export --work a.db.work --output b.db");
}

/// The expected priors are those of COLMAP 4.2.1 (`pycolmap.extract_features` of photographs with each orientation).
#[test]
fn an_orientation_is_a_prior_of_gravity() {
    let folder = Folder::new("collect-gravity");
    folder.make("images");
    folder.texture("plain.png", Size::new(120, 90), 4);
    let plain = folder.read("plain.png");
    for orientation in 1..=9 {
        let data = tiff(&[&[(0x112, 3, 1, orientation)]], &[]);
        folder.put(&format!("images/{orientation}.png"), with_exif_chunk(&plain, &data));
    }
    let placed = position([48, 1, 0, 1, 0, 1], [11, 1, 0, 1, 0, 1]);
    folder.put("images/placed.png", with_exif_chunk(&plain, &placed));
    let told = folder.works("collect images --output a.db --device cpu --pairs sequence --json");
    assert!(told.lines().any(|line| line.contains(r#""positions":1"#)), "{told}");
    let database = open(&folder.at("a.db"));
    let sql = "SELECT name, position, gravity, coordinate_system FROM pose_priors
        JOIN images ON image_id = corr_data_id ORDER BY name";
    let numbers = |bytes: Vec<u8>| -> Vec<f64> {
        bytes.as_chunks::<8>().0.iter().map(|v| f64::from_le_bytes(*v)).collect()
    };
    let mut statement = database.prepare(sql).unwrap();
    let rows = statement
        .query_map([], |row| Ok((row.get(0)?, numbers(row.get(1)?), numbers(row.get(2)?), row.get(3)?)));
    let rows: Vec<(String, Vec<f64>, Vec<f64>, i32)> = rows.unwrap().map(Result::unwrap).collect();
    let expected = [
        ("1.png", [0.0, 1.0, 0.0]),
        ("3.png", [0.0, -1.0, 0.0]),
        ("6.png", [1.0, 0.0, 0.0]),
        ("8.png", [-1.0, 0.0, 0.0]),
    ];
    assert_eq!(rows.len(), expected.len() + 1, "no prior for mirrored orientations: {rows:?}");
    for ((name, place, gravity, system), (of, down)) in rows.iter().zip(expected) {
        assert_eq!((name.as_str(), &gravity[..], *system), (of, &down[..], -1));
        assert!(place.iter().all(|v| v.is_nan()), "{name}: {place:?}");
    }
    let (name, place, gravity, system) = &rows[4];
    assert_eq!((name.as_str(), &place[..2], *system), ("placed.png", &[48.0, 11.0][..], 0));
    assert!(gravity.iter().all(|v| v.is_nan()), "{gravity:?}");
}
