//! The place of a database: an existing file there, and the file that replaces it when it is finished.
//!
//! The new database is written next to its place, flushed to disk and renamed. Until then the old database is not
//! changed, nor are the files that `SQLite` keeps beside it, which hold transactions that are part of it. Before the
//! new one replaces it, `SQLite` itself closes the old one while nothing else can use it. Then everything that was
//! committed is in the database, and no file is left beside it that would be taken for a part of the new one.

use crate::schema::APPLICATION;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tiepoint::files::{self, remove_unfinished_beside};
use tiepoint::{Error, Result};

/// Files that `SQLite` keeps beside a database that is in use, or was not closed.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// How long to wait for another program that uses the existing database.
const PATIENCE: Duration = Duration::from_millis(500);

/// An unfinished database. It is removed unless it is moved to its place.
#[derive(Debug)]
pub(crate) struct Unfinished {
    file: files::Unfinished,
    replace: bool,
}

impl Unfinished {
    /// Begins a database next to its place. If that is a symbolic link, the file that it leads to is replaced.
    pub(crate) fn beside(path: &Path, replace: bool) -> Result<Self> {
        match fs::metadata(path) {
            Ok(found) if !found.is_file() => {
                return Err(Error::format(path, "is no file; name a file for the database"));
            }
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(Error::io(path, e)),
            _ => {}
        }
        remove_unfinished_beside(path)?;
        let unfinished = Self { file: files::Unfinished::beside(path)?, replace };
        unfinished.old()?;
        Ok(unfinished)
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Moves it to its place, flushed to disk with `sync`.
    pub(crate) fn take_place(self, sync: bool) -> Result<()> {
        let place = self.file.target().to_owned();
        let mut old = self.old()?;
        if !beside(&place).is_empty() {
            if let Some(database) = old.take() {
                at_rest(database).map_err(|e| refusal(&place, &e))?;
                old = self.old()?;
            }
            // Without a database these files have no meaning.
            for left in beside(&place) {
                fs::remove_file(&left).map_err(|e| Error::io(left, e))?;
            }
            files::sync_folder_of(&place)?;
        }
        // Windows replaces no file that is open.
        let old = old.filter(|_| cfg!(unix));
        self.file.take_place(sync)?;
        // Locked until here: a program that uses the old database puts files beside it, which would now be the new one's.
        drop(old);
        Ok(())
    }

    /// The existing database, opened and locked; `None` for none, or for a file that may be replaced and is no database.
    fn old(&self) -> Result<Option<Connection>> {
        let path = self.file.target();
        let beside = beside(path);
        if !self.replace
            && let Some(beside) = beside.first()
        {
            let reason = format!(
                "is in use, or was not closed: there is {}; name another file, or replace it (`--replace`)",
                beside.display()
            );
            return Err(Error::format(path, reason));
        }
        // An empty file, such as one made by mktemp, would be changed if it were opened as a database.
        if !fs::metadata(path).is_ok_and(|found| found.len() > 0) {
            return Ok(None);
        }
        match locked(path) {
            Ok((_, application)) if !self.replace && application != APPLICATION => Err(foreign(path)),
            Ok((database, _)) => Ok(Some(database)),
            Err(e) if is_busy(&e) => Err(refusal(path, &e)),
            // What cannot be opened is no database, or must not be written; with files beside it, it may need repair.
            Err(e) if !beside.is_empty() => Err(Error::format(
                path,
                format!("cannot be opened ({e}), and {} belongs to it; move both away", beside[0].display()),
            )),
            Err(_) if self.replace => Ok(None),
            Err(_) => match application(path) {
                Ok(APPLICATION) => Ok(None),
                _ => Err(foreign(path)),
            },
        }
    }
}

fn foreign(path: &Path) -> Error {
    let reason = "is there and was not written by tiepoint; name another file, or replace it \
                  (`--replace`, in Python `replace=True`)";
    Error::format(path, reason)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

fn refusal(path: &Path, error: &rusqlite::Error) -> Error {
    match is_busy(error) {
        true => Error::format(path, "is in use by another program; close it there, or name another file"),
        false => Error::io(path, io::Error::other(error.to_string())),
    }
}

/// A database that no other program can use while the connection is open, and its `application_id`. Transactions of a
/// crashed program are rolled back, as `SQLite` does whenever a database is opened.
fn locked(path: &Path) -> rusqlite::Result<(Connection, i32)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags)?;
    database.busy_timeout(PATIENCE)?;
    database.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")?;
    let application = database.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    // The lock stays.
    database.execute_batch("COMMIT")?;
    Ok((database, application))
}

/// The `application_id` of a database that may only be read.
fn application(path: &Path) -> rusqlite::Result<i32> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags)?.query_row("PRAGMA application_id", [], |row| row.get(0))
}

/// Writes all committed transactions into the database and closes it; `SQLite` then removes the files beside it.
fn at_rest(database: Connection) -> rusqlite::Result<()> {
    database.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
    database.close().map_err(|(_, e)| e)
}

fn beside(path: &Path) -> Vec<PathBuf> {
    let with_end = |end| {
        let mut name = OsString::from(path);
        name.push(end);
        PathBuf::from(name)
    };
    BESIDE.map(with_end).into_iter().filter(|path| path.exists()).collect()
}
