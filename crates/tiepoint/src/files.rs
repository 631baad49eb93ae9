//! Files are written whole or not at all; and the errors of readers, before they know the name of the file.

use crate::{Error, Result};
use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};
use walkdir::WalkDir;

/// Writes `path` through `content`, into a temporary file beside it that is renamed when complete.
///
/// When anything fails the temporary file is removed and what stood at `path` before is untouched. A symbolic
/// link is followed; a device or a pipe (`/dev/stdout`) cannot be replaced and is written to directly.
///
/// # Errors
/// [`Error::Io`] with the path when the file cannot be created, written or renamed.
pub fn write_atomically(
    path: impl AsRef<Path>,
    content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<()> {
    let path = path.as_ref();
    replace(path, content).map_err(|source| Error::io(path, source))
}

fn replace(path: &Path, content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let before = match fs::metadata(path) {
        Ok(metadata) => Some(metadata),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(e),
    };
    match &before {
        Some(m) if m.is_dir() => return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory")),
        Some(m) if !m.is_file() => return fill(OpenOptions::new().write(true).open(path)?, content),
        _ => {}
    }
    // The link stays a link: its target is what is replaced.
    let target = if before.is_some() { fs::canonicalize(path)? } else { path.to_path_buf() };
    let unfinished = Unfinished::create(&target)?;
    fill(unfinished.locked.try_clone()?, content)?;
    if let Some(before) = before {
        fs::set_permissions(&unfinished.path, before.permissions())?;
    }
    unfinished.rename(&target)
}

fn fill(file: File, content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(1 << 16, file);
    content(&mut writer)?;
    writer.flush()
}

/// A file beside the place that it is to take, `.NAME.PROCESS-NUMBER.part`. It is removed when this goes out of scope,
/// unless it has taken its place. It is locked meanwhile: one that nobody holds is what a killed process left, and
/// [`remove_unfinished`] removes it.
#[derive(Debug)]
pub struct Unfinished {
    path: PathBuf,
    locked: File,
    /// Whether it has taken its place: its name may be the next one's by now.
    placed: bool,
}

impl Unfinished {
    /// Creates an empty file with an unused name in the folder of `target`.
    ///
    /// # Errors
    /// [`Error::Io`] with `target` when it cannot be created.
    pub fn beside(target: impl AsRef<Path>) -> Result<Self> {
        let target = target.as_ref();
        Self::create(target).map_err(|source| Error::io(target, source))
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the place of `target`, in the same folder.
    ///
    /// # Errors
    /// [`Error::Io`] with `target`.
    pub fn take_place(self, target: impl AsRef<Path>) -> Result<()> {
        let target = target.as_ref();
        self.rename(target).map_err(|source| Error::io(target, source))
    }

    fn rename(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.placed = true;
        Ok(())
    }

    fn create(target: &Path) -> io::Result<Self> {
        let Some(name) = target.file_name() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "names no file"));
        };
        let process = std::process::id();
        for attempt in 0..10_000 {
            let mut hidden = std::ffi::OsString::from(".");
            hidden.push(name);
            hidden.push(format!(".{process}-{attempt}.part"));
            let path = target.with_file_name(hidden);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(locked) => {
                    // Where a file system has no locks, nobody removes what is locked or not.
                    let _ = locked.lock();
                    // Somebody who removes what killed processes left may have come between.
                    if is_at(&locked, &path)? {
                        return Ok(Self { path, locked, placed: false });
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

/// Whether an open file is the one at `path`.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(e),
    };
    let own = file.metadata()?;
    Ok((own.dev(), own.ino()) == (found.dev(), found.ino()))
}

/// Whether an open file is the one at `path`: elsewhere a file that is open cannot go.
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> io::Result<bool> {
    Ok(path.exists())
}

/// Removes what killed processes left of files that they were writing ([`write_atomically`], [`Unfinished`]): in
/// `folder` and so many levels of folders in it, 1 for its own files. What a process of this or, where the file
/// system's locks reach so far, of another machine is writing stays. Returns how many were removed; a folder that is
/// not there holds none.
///
/// # Errors
/// [`Error::Io`] when a folder cannot be read or a file not removed.
pub fn remove_unfinished(folder: impl AsRef<Path>, levels: usize) -> Result<usize> {
    remove_left(folder.as_ref(), levels, is_unfinished)
}

/// As [`remove_unfinished`], of those files alone that were to become `target`.
///
/// # Errors
/// As [`remove_unfinished`].
pub fn remove_unfinished_beside(target: impl AsRef<Path>) -> Result<usize> {
    let target = target.as_ref();
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Some(name) = target.file_name() else { return Ok(0) };
    remove_left(folder, 1, |hidden| {
        let rest = hidden.as_encoded_bytes().strip_prefix(b".");
        let rest = rest.and_then(|rest| rest.strip_prefix(name.as_encoded_bytes()));
        is_unfinished(hidden)
            && rest.is_some_and(|rest| rest.iter().filter(|byte| **byte == b'.').count() == 2)
    })
}

fn remove_left(folder: &Path, levels: usize, is_one: impl Fn(&OsStr) -> bool) -> Result<usize> {
    let mut removed = 0;
    for entry in WalkDir::new(folder).min_depth(1).max_depth(levels) {
        let entry = match entry {
            Ok(entry) => entry,
            // What another process removes meanwhile, or a folder that is not there.
            Err(e) if e.io_error().is_some_and(|e| e.kind() == io::ErrorKind::NotFound) => continue,
            Err(e) => {
                let path = e.path().unwrap_or(folder).to_owned();
                return Err(Error::io(path, e.into()));
            }
        };
        if entry.file_type().is_file() && is_one(entry.file_name()) {
            removed += usize::from(remove_if_left(entry.path()).map_err(|e| Error::io(entry.path(), e))?);
        }
    }
    Ok(removed)
}

/// Whether a name is one that [`Unfinished`] gives.
fn is_unfinished(name: &OsStr) -> bool {
    let middle = name.to_str().and_then(|name| name.strip_prefix('.')?.strip_suffix(".part"));
    let numbers = middle.and_then(|middle| middle.rsplit_once('.')?.1.split_once('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

/// Removes an unfinished file that nobody holds. A file that is not this user's to write stays.
fn remove_if_left(path: &Path) -> io::Result<bool> {
    let file = match OpenOptions::new().write(true).open(path) {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
            return Ok(false);
        }
        Err(e) => return Err(e),
    };
    match file.try_lock() {
        Ok(()) => {}
        // Somebody writes it, or the file system has no locks that would tell.
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return Ok(false),
    }
    // It may have been finished meanwhile, and its name given to the next.
    if !is_at(&file, path)? {
        return Ok(false);
    }
    match fs::remove_file(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true),
    }
}

/// Why a file could not be read; the name of the file is added later.
#[derive(Debug)]
pub(crate) enum Fault {
    Io(io::Error),
    Bad(String),
}

impl Fault {
    /// The error with the name of the file. `end` names what a truncated file lacks.
    pub(crate) fn at(self, path: &Path, end: &str) -> Error {
        match self {
            Self::Io(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                Error::format(path, format!("the file ends before {end}; it is truncated"))
            }
            Self::Io(source) => Error::io(path, source),
            Self::Bad(reason) => Error::format(path, reason),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(e: io::Error) -> Self {
        Self::Io(e)
    }
}

impl From<String> for Fault {
    fn from(reason: String) -> Self {
        Self::Bad(reason)
    }
}

impl From<&str> for Fault {
    fn from(reason: &str) -> Self {
        Self::Bad(reason.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of this test's own, removed with its contents at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("tiepoint-files-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let mut names: Vec<_> = fs::read_dir(&self.0)
                .unwrap()
                .map(|e| e.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn writes_whole_files_only() {
        let folder = Folder::new("whole");
        let path = folder.0.join("a.txt");
        write_atomically(&path, |w| w.write_all(b"one")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one", "written");
        let failed = write_atomically(&path, |w| {
            w.write_all(&[0; 1 << 20])?;
            Err(io::Error::other("no more"))
        });
        assert!(failed.unwrap_err().to_string().contains("a.txt: no more"), "the path is named");
        assert_eq!(fs::read(&path).unwrap(), b"one", "the old file stands");
        write_atomically(&path, |w| w.write_all(b"two")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two", "replaced");
        assert_eq!(folder.names(), ["a.txt"], "nothing else is left");
    }

    #[test]
    fn what_killed_processes_left_is_removed_and_nothing_else() {
        let folder = Folder::new("left");
        let inner = folder.0.join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let others = ["mine.part", ".mine.part", ".mine.12.part", ".12-x.part", ".mine.12-3.part.txt"];
        for name in others {
            fs::write(folder.0.join(name), b"kept").unwrap();
        }
        let left = [folder.0.join(".a.tile.12-0.part"), inner.join(".b.tile.99-7.part")];
        left.iter().for_each(|path| fs::write(path, b"half").unwrap());
        let held = Unfinished::beside(inner.join("c.tile")).unwrap();
        assert_eq!(remove_unfinished(&folder.0, 1).unwrap(), 1, "of the folder alone");
        assert!(!left[0].exists() && left[1].exists());
        assert_eq!(remove_unfinished(&folder.0, usize::MAX).unwrap(), 1, "and below it");
        assert!(held.path().exists() && !left[1].exists(), "what is being written stays");
        assert_eq!(folder.names().len(), others.len() + 1, "and so does what has other names");
        fs::write(inner.join(".c.tile.1-0.part"), b"half").unwrap();
        fs::write(inner.join(".d.c.tile.1-0.part"), b"half").unwrap();
        assert_eq!(remove_unfinished_beside(inner.join("c.tile")).unwrap(), 1, "of one file");
        assert!(inner.join(".d.c.tile.1-0.part").exists(), "of another");
        drop(held);
        assert_eq!(remove_unfinished(folder.0.join("no such"), 1).unwrap(), 0, "no folder");
    }

    #[test]
    fn writers_and_removers_do_not_hinder_each_other() {
        let folder = Folder::new("race");
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|w| {
                    let folder = &folder;
                    scope.spawn(move || {
                        for i in 0..200_u32 {
                            let path = folder.0.join(format!("{}", (w + i) % 2));
                            write_atomically(&path, |out| out.write_all(&i.to_le_bytes())).unwrap();
                        }
                    })
                })
                .collect();
            while writers.iter().any(|writer| !writer.is_finished()) {
                remove_unfinished(&folder.0, 1).unwrap();
            }
        });
        assert_eq!(folder.names(), ["0", "1"], "all was written, nothing is left");
    }

    #[test]
    fn refuses_folders_and_missing_folders() {
        let folder = Folder::new("refuses");
        assert!(write_atomically(&folder.0, |_| Ok(())).is_err(), "a folder");
        assert!(write_atomically(folder.0.join("no/such.txt"), |_| Ok(())).is_err(), "no folder");
        assert!(write_atomically("", |_| Ok(())).is_err(), "no name");
        assert!(folder.names().is_empty(), "nothing is left");
    }

    #[cfg(unix)]
    #[test]
    fn follows_links_and_writes_to_devices() {
        let folder = Folder::new("links");
        let (real, link) = (folder.0.join("real"), folder.0.join("link"));
        fs::write(&real, b"old").unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        write_atomically(&link, |w| w.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new", "the target is replaced");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "the link is one still");
        write_atomically("/dev/null", |w| w.write_all(b"gone")).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file(), "a device is not replaced");
    }
}
