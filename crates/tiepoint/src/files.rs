//! Files are written whole or not at all; and the errors of readers, before they know the name of the file.

use crate::{Error, Result};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

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
    let (file, temporary) = Temporary::beside(&target)?;
    fill(file, content)?;
    if let Some(before) = before {
        fs::set_permissions(&temporary.0, before.permissions())?;
    }
    fs::rename(&temporary.0, &target)
}

fn fill(file: File, content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(1 << 16, file);
    content(&mut writer)?;
    writer.flush()
}

/// A file that is removed when this goes out of scope. After the rename there is nothing left to remove.
struct Temporary(PathBuf);

impl Temporary {
    /// Creates a new file with an unused name in the folder of `target`.
    fn beside(target: &Path) -> io::Result<(File, Self)> {
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
                Ok(file) => return Ok((file, Self(path))),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "its folder is full of unfinished files"))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Nothing can be done about a failure here, and after a rename failing is what is expected.
        let _ = fs::remove_file(&self.0);
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
