//! Where a database goes: what may be in the way, and the file that takes its place when it is finished.

use crate::schema::APPLICATION;
use rusqlite::{Connection, OpenFlags};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tiepoint::files::{self, remove_unfinished_beside};
use tiepoint::{Error, Result};

/// Files that `SQLite` keeps beside a database that is in use, or was not closed.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Fails where `path` cannot take a database: a file is there that was not written here, unless it is to be replaced;
/// or it is in use.
pub(crate) fn check(path: &Path, replace: bool) -> Result<()> {
    match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::io(path, e)),
        Ok(found) if !found.is_file() => {
            return Err(Error::format(path, "is no file; name a file for the database"));
        }
        Ok(_) => {}
    }
    if replace {
        return Ok(());
    }
    let in_use = BESIDE.iter().map(|end| with_end(path, end)).find(|beside| beside.exists());
    if let Some(beside) = in_use {
        return Err(Error::format(
            path,
            format!(
                "is in use, or was not closed: there is {}; name another file, or replace it",
                beside.display()
            ),
        ));
    }
    if !is_ours(path) {
        return Err(Error::format(
            path,
            "is there and was not written by tiepoint; name another file, or replace it",
        ));
    }
    Ok(())
}

fn is_ours(path: &Path) -> bool {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let application = Connection::open_with_flags(path, flags)
        .and_then(|database| database.query_row("PRAGMA application_id", [], |row| row.get::<_, i32>(0)));
    application.is_ok_and(|id| id == APPLICATION)
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    PathBuf::from(name)
}

/// An empty file beside the place, removed unless it takes the place.
#[derive(Debug)]
pub(crate) struct Unfinished(files::Unfinished);

impl Unfinished {
    pub(crate) fn beside(path: &Path) -> Result<Self> {
        remove_unfinished_beside(path)?;
        files::Unfinished::beside(path).map(Self)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Renames the finished file. What `SQLite` kept beside an older one would be taken for that of the new one, and
    /// goes.
    pub(crate) fn take_place(self, path: &Path) -> Result<()> {
        for end in BESIDE {
            let beside = with_end(path, end);
            match fs::remove_file(&beside) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(Error::io(beside, e)),
                _ => {}
            }
        }
        self.0.take_place(path)
    }
}
