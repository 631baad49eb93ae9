//! The database and what is in its way.

use super::*;

const EXPORT: &str = "collect export --work whole.db.work --output other.db";
const REPLACE: &str = "collect export --work whole.db.work --output other.db --replace";

/// A collection that is done, in `whole.db`, and the content of its database.
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
    folder.refuses(EXPORT, 1, &["was not written by tiepoint"]);
    assert_eq!(folder.text("other.db"), "somebody's", "untouched");
    folder.works(REPLACE);
    assert_eq!(content(&folder.at("other.db")), whole, "replaced");
    folder.put("other.db-wal", "");
    folder.refuses(EXPORT, 1, &["is in use"]);
    folder.remove("other.db-wal");
    folder.works(EXPORT);
    assert_eq!(unfinished(&folder.0), Vec::<PathBuf>::new(), "nothing unfinished is left");
    folder.fails("collect export --work whole.db.work --output no/such/folder.db", 2);
    folder.fails("collect export --work nowhere --output other.db", 1);
}

/// A database and the files beside it belong together: they are left alone until the new database is in its place, and
/// while another program uses them.
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
    // Of a program that was killed: what it committed lies beside the database.
    let other = make("WAL");
    let names = ["other.db", "other.db-wal"];
    let contents = names.map(|name| folder.read(name));
    drop(other);
    names.iter().zip(contents).for_each(|(name, content)| folder.put(name, content));
    folder.refuses(EXPORT, 1, &["was not closed"]);
    assert!(folder.has("other.db-wal"), "it is left alone");
    folder.works(REPLACE);
    assert_eq!(content(path), whole, "nothing of the old one is mixed in");
    // And of one whose database is gone, or is none.
    for database in [None, Some("no database")] {
        folder.remove("other.db");
        database.iter().for_each(|text| folder.put("other.db", text));
        folder.put("other.db-journal", "of another");
        folder.refuses(EXPORT, 1, &["other.db-journal"]);
        if database.is_none() {
            folder.works(REPLACE);
            assert_eq!(content(path), whole, "a journal without its database is removed");
        } else {
            // It may be a database that needs the journal.
            folder.refuses(REPLACE, 1, &["move both away"]);
        }
    }
}

#[test]
#[cfg(unix)]
fn a_link_to_a_database_stays_one() {
    let folder = Folder::new("collect-link");
    let whole = whole(&folder);
    folder.make("far");
    std::os::unix::fs::symlink("far/real.db", folder.at("other.db")).unwrap();
    for what in ["new", "replaced"] {
        folder.works(EXPORT);
        let is_link = std::fs::symlink_metadata(folder.at("other.db")).unwrap().is_symlink();
        assert!(is_link, "{what}: the link is one still");
        assert_eq!(content(&folder.at("far/real.db")), whole, "{what}: where it leads to");
    }
    assert_eq!(all_files(&folder.at("far")).len(), 1, "nothing unfinished is left");
}

#[test]
fn no_two_results_of_a_collection_go_to_one_file_and_none_to_an_input() {
    let folder = Folder::new("collect-results");
    photographs(&folder);
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
}
