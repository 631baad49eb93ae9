//! Files that are still being written: their temporary names, their locks, and the removal of those of killed processes.

use super::disk::{check, close, error, sync_folder};
use super::if_there;
use crate::{Error, Result};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::ops::Not;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, OnceLock};
use std::time::Duration;
use tiepoint_gpu::lock;
use walkdir::WalkDir;

/// How long a file of another machine must be unchanged before it counts as abandoned. Locks may not reach from machine
/// to machine, but a file that is being written changes within a day.
const LEFT: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest file name that is repeated in a temporary name; file systems allow 255 bytes.
const LONGEST: usize = 180;

/// A file beside its final path, `.NAME.MACHINE-PROCESS-NUMBER.part`. It is removed when this goes out of scope, unless
/// it has been moved to its path. On Unix it is locked until then: an unlocked one was left by a killed process, and
/// [`remove_unfinished`] removes it.
#[derive(Debug)]
pub struct Unfinished {
    path: PathBuf,
    target: PathBuf,
    /// The permissions of the file that is replaced.
    permissions: Option<Permissions>,
    locked: File,
    /// Whether it has been moved to its path; its temporary name may be in use again by then.
    placed: bool,
}

impl Unfinished {
    /// Creates an empty file with an unused name in the folder of `target`. The target itself need not exist; if it is
    /// a symbolic link, the file to which it points is meant.
    ///
    /// # Errors
    /// [`Error::Io`] with `target` when it cannot be created.
    pub fn beside(target: impl AsRef<Path>) -> Result<Self> {
        let target = target.as_ref();
        followed(target).and_then(Self::create).map_err(|source| Error::io(target, source))
    }

    /// The temporary path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The final path, with symbolic links resolved.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Moves the file to its final path. With `sync` the file is synced before and its folder afterwards. Without it a
    /// handle is closed before, because some file systems report only then that there was no room.
    ///
    /// # Errors
    /// [`Error::Io`] with the final path, also for errors of writing that the system reports only now.
    pub fn take_place(self, sync: bool) -> Result<()> {
        let target = self.target.clone();
        let placed = (|| {
            check()?;
            if sync { self.sync() } else { self.file().and_then(close) }?;
            check()?;
            self.rename()?;
            if sync { sync_folder(folder_of(&target)) } else { Ok(()) }
        })();
        placed.map_err(|source| error(&target, source))
    }

    pub(super) fn file(&self) -> io::Result<File> {
        self.locked.try_clone()
    }

    /// Syncs the file. This reports errors of earlier writes, even where the system writes only when a file is closed.
    pub(super) fn sync(&self) -> io::Result<()> {
        super::disk::tolerant(self.locked.sync_all())
    }

    pub(super) fn rename(mut self) -> io::Result<()> {
        if let Some(permissions) = self.permissions.take() {
            fs::set_permissions(&self.path, permissions)?;
        }
        fs::rename(&self.path, &self.target)?;
        self.placed = true;
        Ok(())
    }

    /// As [`beside`](Self::beside), for a path without links.
    pub(super) fn create(target: PathBuf) -> io::Result<Self> {
        let Some(name) = target.file_name() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "names no file"));
        };
        let before = if_there(fs::metadata(&target))?;
        if before.is_some() {
            // A file that may not be written is not replaced either.
            OpenOptions::new().append(true).open(&target)?;
        }
        let permissions = before.map(|before| before.permissions());
        let (machine, process) = (machine().unwrap_or_default(), std::process::id());
        for attempt in 0..10_000 {
            let mut hidden = beginning(name);
            hidden.push(format!("{machine:016x}-{process}-{attempt}.part"));
            let path = target.with_file_name(hidden);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(locked) => {
                    // If the file system has no locks, unfinished files are never removed there, so an error does not
                    // matter. A lock of Windows would keep SQLite's own handle from writing the file.
                    if cfg!(unix) {
                        let _ = locked.lock();
                    }
                    // Another process that removes abandoned files may have removed this one before it was locked.
                    if is_at(&locked, &path)? {
                        return Ok(Self { path, target, permissions, locked, placed: false });
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "its folder is full of unfinished files"))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.placed {
            // Nothing can be done about a failure here.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The file to which symbolic links at `path` lead; it need not exist.
pub(super) fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = match fs::canonicalize(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => path.to_path_buf(),
        found => return found,
    };
    for _ in 0..40 {
        match fs::symlink_metadata(&path) {
            // A relative link is relative to its own folder.
            Ok(found) if found.is_symlink() => path = folder_of(&path).join(fs::read_link(&path)?),
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => return Ok(path),
        }
    }
    Err(io::Error::other("is a symbolic link that leads to itself"))
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Identifies this machine until it restarts: processes with one number see each other's locks. `None` where unknown.
fn machine() -> Option<u64> {
    static NUMBER: OnceLock<Option<u64>> = OnceLock::new();
    *NUMBER.get_or_init(|| {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        u64::from_str_radix(boot.trim().replace('-', "").get(..16)?, 16).ok()
    })
}

/// The first part of all temporary names for a file of this name.
fn beginning(name: &OsStr) -> OsString {
    let mut hidden = OsString::from(".");
    match name.len() <= LONGEST {
        true => hidden.push(name),
        false => hidden.push(format!("{:016x}", twox_hash::XxHash3_64::oneshot(name.as_encoded_bytes()))),
    }
    hidden.push(".");
    hidden
}

#[derive(Clone, Copy, Debug)]
struct Owner {
    machine: u64,
    process: u32,
}

impl Owner {
    /// The owner, from a name that [`Unfinished`] has made; `None` for other names.
    fn of(name: &OsStr) -> Option<Self> {
        let middle = name.to_str()?.strip_prefix('.')?.strip_suffix(".part")?;
        let mut numbers = middle.rsplit_once('.')?.1.split('-');
        let (machine, process, number) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        if machine.len() != 16 || !is_number || numbers.next().is_some() {
            return None;
        }
        Some(Self { machine: u64::from_str_radix(machine, 16).ok()?, process: process.parse().ok()? })
    }

    /// Whether the process may still be writing a file that seems unlocked.
    fn may_live(self, file: &File) -> io::Result<bool> {
        if machine() == Some(self.machine) {
            // A process in another container is not listed in /proc, but its lock has been respected before this.
            let another = self.process != std::process::id();
            return Ok(another && Path::new("/proc").join(self.process.to_string()).exists());
        }
        // A time in the future is from another clock, and counts as recent.
        Ok(file.metadata()?.modified()?.elapsed().is_ok_and(|untouched| untouched >= LEFT).not())
    }
}

/// Whether an open file is the one at `path`.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let Some(found) = if_there(fs::symlink_metadata(path))? else { return Ok(false) };
    let own = file.metadata()?;
    Ok((own.dev(), own.ino()) == (found.dev(), found.ino()))
}

/// Whether an open file is the one at `path`: on other systems an open file cannot be removed.
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> io::Result<bool> {
    Ok(path.exists())
}

/// Removes the unfinished files that killed processes left ([`write_atomically`](super::write_atomically),
/// [`Unfinished`]), down to `levels` levels below `folder`; 1 means only the files in it. Files that a process of this
/// machine is writing stay. A file of another machine counts as abandoned if it is unlocked and has not changed for a
/// day. Returns the number of removed files, 0 if the folder does not exist.
///
/// # Errors
/// [`Error::Io`] when a folder cannot be read or a file cannot be removed.
pub fn remove_unfinished(folder: impl AsRef<Path>, levels: usize) -> Result<usize> {
    remove_left(folder.as_ref(), levels, |_| true)
}

/// As [`remove_unfinished`], but only files that were to become `target`.
///
/// # Errors
/// As [`remove_unfinished`].
pub fn remove_unfinished_beside(target: impl AsRef<Path>) -> Result<usize> {
    let target = target.as_ref();
    let target = followed(target).map_err(|source| Error::io(target, source))?;
    let Some(name) = target.file_name() else { return Ok(0) };
    let beginning = beginning(name);
    remove_left(folder_of(&target), 1, |hidden| is_of(hidden, &beginning))
}

/// Whether a temporary name is one for the file whose temporary names have this beginning.
fn is_of(hidden: &OsStr, beginning: &OsStr) -> bool {
    let rest = hidden.as_encoded_bytes().strip_prefix(beginning.as_encoded_bytes());
    rest.is_some_and(|rest| rest.iter().filter(|byte| **byte == b'.').count() == 1)
}

/// As [`remove_unfinished_beside`], for what was in the folder when this process first wrote a file there. Errors are
/// ignored: the new file does not depend on the removal.
pub(super) fn remove_of_earlier_runs(target: &Path) {
    static FOUND: LazyLock<Mutex<HashMap<PathBuf, Vec<PathBuf>>>> = LazyLock::new(Mutex::default);
    let Ok(target) = followed(target) else { return };
    let Some(name) = target.file_name() else { return };
    let beginning = beginning(name);
    let mut found = lock(&FOUND);
    let found = found.entry(folder_of(&target).to_owned()).or_insert_with_key(|folder| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter(|entry| Owner::of(&entry.file_name()).is_some()).map(|entry| entry.path()).collect()
    });
    for path in found.iter() {
        let owner = path.file_name().filter(|name| is_of(name, &beginning)).and_then(Owner::of);
        let _ = owner.map(|owner| remove_if_left(path, owner));
    }
}

fn remove_left(folder: &Path, levels: usize, is_one: impl Fn(&OsStr) -> bool) -> Result<usize> {
    let mut removed = 0;
    for entry in WalkDir::new(folder).min_depth(1).max_depth(levels) {
        let entry = match entry {
            Ok(entry) => entry,
            // Another process has removed it in the meantime, or the folder does not exist.
            Err(e) if e.io_error().is_some_and(|e| e.kind() == io::ErrorKind::NotFound) => continue,
            Err(e) => return Err(Error::io(e.path().unwrap_or(folder).to_owned(), e.into())),
        };
        let (path, name) = (entry.path(), entry.file_name());
        if let Some(owner) = Owner::of(name).filter(|_| entry.file_type().is_file() && is_one(name)) {
            removed += usize::from(remove_if_left(path, owner).map_err(|e| Error::io(path, e))?);
        }
    }
    Ok(removed)
}

/// Removes an unfinished file that is unlocked. A file that this user may not write stays.
fn remove_if_left(path: &Path, owner: Owner) -> io::Result<bool> {
    let file = match OpenOptions::new().write(true).open(path) {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
            return Ok(false);
        }
        Err(e) => return Err(e),
    };
    match file.try_lock() {
        Ok(()) => {}
        // The file is being written, or the file system has no locks.
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return Ok(false),
    }
    // It may have been finished in the meantime, and its name used again.
    if owner.may_live(&file)? || !is_at(&file, path)? {
        return Ok(false);
    }
    Ok(if_there(fs::remove_file(path))?.is_some())
}
