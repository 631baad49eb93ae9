//! Writing files whole or not at all, so that they are on the disk when they count as written; and errors of readers
//! to which the name of the file is added later.
//!
//! A file is written under a temporary name beside its path, synced and renamed, and then its folder is synced. So
//! after a kill or a power cut there is either the old file or the complete new one. A process that need not survive a
//! power cut may [leave syncing out](wait_for_disk).

mod disk;
mod unfinished;

pub(crate) use disk::Disk;
pub use disk::{Opened, cancelled_by, sync_folder_of};
pub(crate) use unfinished::folder_of;
pub use unfinished::{Unfinished, remove_unfinished, remove_unfinished_beside};

use crate::{Error, Result};
use std::fs::File;
use std::io::{self, BufWriter, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

static WAITS: AtomicBool = AtomicBool::new(true);

/// Whether this process waits until a file is on the disk before it counts as written (`fsync`). Default true. Otherwise a
/// power cut may lose or empty files that were written moments before; a killed program loses nothing either way.
pub fn wait_for_disk(waits: bool) {
    WAITS.store(waits, Ordering::Relaxed);
}

pub(crate) fn waits_for_disk() -> bool {
    WAITS.load(Ordering::Relaxed)
}

/// Writes `path` through `content`, into a temporary file beside it that is synced and renamed when complete; then its
/// folder is synced.
///
/// If anything fails, the temporary file is removed and the old file at `path` stays. A symbolic link is followed; a
/// device or a pipe (`/dev/stdout`) cannot be replaced and is written to directly. Temporary files that killed processes
/// left of `path` are removed.
///
/// # Errors
/// [`Error::Io`] with the path when the file cannot be created, written, synced or renamed.
pub fn write_atomically(
    path: impl AsRef<Path>,
    content: impl FnOnce(&mut BufWriter<Opened>) -> io::Result<()>,
) -> Result<()> {
    unfinished::remove_of_earlier_runs(path.as_ref());
    Disk::at_once(waits_for_disk()).write(path.as_ref(), content)
}

/// What was found of a file or folder; `None` if there is none.
pub(crate) fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Removes a file, if there is one.
pub(crate) fn remove_if_there(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        // No file can have a name that is too long, so there is none to remove.
        Err(e) if !matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename) => {
            Err(Error::io(path, e))
        }
        _ => Ok(()),
    }
}

/// The most bytes of text that are read from a pipe or a device, which may never end.
const MOST_PIPED: u64 = 1 << 28;

/// The bytes of a file that may have at most `most`, of a pipe or a device at most 256 MiB; - is stdin. `expected` completes
/// the error for a longer one.
///
/// # Errors
/// [`Error::Io`] when the file cannot be read, [`Error::Format`] when it is longer.
pub fn read_within(path: impl AsRef<Path>, most: u64, expected: &str) -> Result<Vec<u8>> {
    let (path, mut bytes) = (path.as_ref(), Vec::new());
    let mut read = || -> io::Result<u64> {
        let (source, is_file): (Box<dyn Read>, _) = match path == Path::new("-") {
            true => (Box::new(io::stdin()), false),
            false => {
                let file = File::open(path)?;
                let is_file = file.metadata()?.is_file();
                (Box::new(file), is_file)
            }
        };
        let most = if is_file { most } else { most.min(MOST_PIPED) };
        source.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        Ok(most)
    };
    let most = read().map_err(|e| Error::io(path, e))?;
    match bytes.len() as u64 > most {
        true => Err(Error::format(path, format!("is longer than {most} bytes: expected {expected}"))),
        false => Ok(bytes),
    }
}

/// The text of a file, read as by [`read_within`]. `expected` completes the error for a file that holds none.
///
/// # Errors
/// As [`read_within`]; [`Error::Format`] for what is no text in UTF-8.
pub fn read_text(path: impl AsRef<Path>, expected: &str) -> Result<String> {
    let bytes = read_within(&path, u64::MAX, expected)?;
    text_of(&bytes, expected).map(Into::into).map_err(|reason| Error::format(path.as_ref(), reason))
}

/// As [`read_text`], from the bytes of a file; the error is the reason without the path.
pub(crate) fn text_of<'b>(bytes: &'b [u8], expected: &str) -> std::result::Result<&'b str, String> {
    let text = match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            return Err(format!("is no text: expected {expected}, in UTF-8 and not in UTF-16"));
        }
        // The byte order mark that some editors put before UTF-8.
        [0xef, 0xbb, 0xbf, text @ ..] => text,
        text => text,
    };
    std::str::from_utf8(text).map_err(|_| format!("is no text: expected {expected}"))
}

/// Whether a file of this name is the process's standard output, which has no extension to tell a format.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("/dev/stdout")
}

/// The extension in lower case, empty if there is none.
pub(crate) fn extension(path: &Path) -> String {
    path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default()
}

/// The format whose extension `path` has, for standard output the first of `known`. The error calls such files `what`.
pub(crate) fn format_of<F: Copy>(path: &Path, known: &[(&str, F)], what: &str) -> Result<F> {
    let extension = extension(path);
    let is_known = |(name, _): &&(&str, F)| *name == extension || (extension.is_empty() && is_stdout(path));
    let found = known.iter().find(is_known).map(|(_, format)| *format);
    found.ok_or_else(|| Error::format(path, format!("{extension:?} is not the extension of {what}")))
}

/// Why a file could not be read. The name of the file is added later.
#[derive(Debug)]
pub(crate) enum Fault {
    Io(io::Error),
    Bad(String),
}

impl Fault {
    /// The error with the name of the file. `end` completes "the file ends before" for a truncated file.
    pub(crate) fn at(self, path: &Path, end: &str) -> Error {
        match self {
            Self::Io(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                Error::format(path, format!("the file ends before {end}; it is truncated"))
            }
            // An attempt to seek to an offset that no file can have.
            Self::Io(e) if e.kind() == io::ErrorKind::InvalidInput => {
                Error::format(path, "refers to data at a place that no file has; it is damaged")
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
pub(crate) mod tests {
    use super::*;
    use crate::device::Cancel;
    use std::fs;
    use std::io::Write;
    use std::path::PathBuf;
    #[cfg(target_os = "linux")]
    use std::time::{Duration, SystemTime};

    /// A folder for one test, removed with its contents at the end. No other test may use the same `name`.
    pub(crate) struct Folder(pub(crate) PathBuf);

    impl Folder {
        pub(crate) fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("tiepoint-files-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        pub(crate) fn join(&self, name: impl AsRef<Path>) -> PathBuf {
            self.0.join(name)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
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
    fn cancelled_files_never_appear() {
        let folder = Folder::new("cancelled");
        let path = folder.0.join("a.txt");
        write_atomically(&path, |w| w.write_all(b"old")).unwrap();
        // Before the first byte, between two, and behind the last one.
        for moment in 0..3 {
            let cancel = Cancel::new();
            let at = |m| {
                if m == moment {
                    cancel.cancel();
                }
            };
            let found = cancelled_by(&cancel, || {
                write_atomically(&path, |w| {
                    at(0);
                    w.write_all(&[0; 1 << 20])?;
                    at(1);
                    w.write_all(&[0; 1 << 20])?;
                    at(2);
                    Ok(())
                })
            });
            assert!(matches!(found, Err(Error::Cancelled)), "{moment}: {found:?}");
            assert_eq!(folder.names(), ["a.txt"], "nothing else is left");
            assert_eq!(fs::read(&path).unwrap(), b"old", "{moment}: the old file stands");
        }
        write_atomically(&path, |w| w.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new", "files written afterwards are not cancelled");
    }

    /// The name that an unfinished file would have if another machine or process wrote it.
    #[cfg(target_os = "linux")]
    fn name_by(file: &Unfinished, machine: Option<&str>, process: u32) -> PathBuf {
        let name = file.path().file_name().unwrap().to_str().unwrap();
        let (start, numbers) = name.strip_suffix(".part").unwrap().rsplit_once('.').unwrap();
        let own = numbers.split('-').next().unwrap();
        file.path().with_file_name(format!("{start}.{}-{process}-7.part", machine.unwrap_or(own)))
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn only_files_that_killed_processes_left_are_removed() {
        let folder = Folder::new("left");
        let inner = folder.0.join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let dead = child.id();
        child.wait().unwrap();
        let others = ["mine.part", ".mine.part", ".mine.12.part", ".12-x.part", ".mine.12-3.part"];
        for name in others {
            fs::write(folder.0.join(name), b"kept").unwrap();
        }
        let (outer, held) = (folder.0.join("a.tile"), Unfinished::beside(inner.join("c.tile")).unwrap());
        let left = [name_by(&Unfinished::beside(outer).unwrap(), None, dead), name_by(&held, None, dead)];
        left.iter().for_each(|path| fs::write(path, b"half").unwrap());
        assert_eq!(remove_unfinished(&folder.0, 1).unwrap(), 1, "the folder without those below");
        assert!(!left[0].exists() && left[1].exists());
        assert_eq!(remove_unfinished(&folder.0, usize::MAX).unwrap(), 1, "with the folders below");
        assert!(held.path().exists() && !left[1].exists(), "a file that is being written was removed");
        assert_eq!(folder.names().len(), others.len() + 1, "files with other names were removed");
        let long = inner.join("x".repeat(250));
        for target in [inner.join("c.tile"), long.clone()] {
            let own = Unfinished::beside(&target).unwrap();
            let [mine, other] = [target.clone(), inner.join("d.c.tile")]
                .map(|target| name_by(&Unfinished::beside(target).unwrap(), None, dead));
            [&mine, &other].iter().for_each(|path| fs::write(path, b"half").unwrap());
            match target == long {
                true => write_atomically(&target, |_| Ok(())).unwrap(),
                false => assert_eq!(remove_unfinished_beside(&target).unwrap(), 1, "of one file"),
            }
            assert!(other.exists() && !mine.exists() && own.path().exists(), "not of another");
            fs::remove_file(other).unwrap();
        }
        drop(held);
        assert_eq!(remove_unfinished(folder.0.join("no such"), 1).unwrap(), 0, "no folder");
    }

    /// If locks do not work between processes, a file without a lock may still be written by another one.
    #[test]
    #[cfg(target_os = "linux")]
    fn files_that_another_process_or_machine_may_be_writing_stay() {
        let folder = Folder::new("neighbour");
        let mine = Unfinished::beside(folder.0.join("a.tile")).unwrap();
        let alive = name_by(&mine, None, std::os::unix::process::parent_id());
        let elsewhere = name_by(&mine, Some("0123456789abcdef"), 4_000_000_000);
        [&alive, &elsewhere].iter().for_each(|path| fs::write(path, b"half").unwrap());
        assert_eq!(remove_unfinished(&folder.0, 1).unwrap(), 0, "both may still be written");
        let days_ago = SystemTime::now() - Duration::from_secs(48 * 60 * 60);
        for path in [&alive, &elsewhere] {
            File::options().write(true).open(path).unwrap().set_modified(days_ago).unwrap();
        }
        assert_eq!(remove_unfinished(&folder.0, 1).unwrap(), 1, "untouched for two days");
        assert!(alive.exists() && !elsewhere.exists(), "the file of a living process was removed");
    }

    #[test]
    fn files_written_in_the_background_are_complete_and_errors_reported() {
        let folder = Folder::new("meanwhile");
        for sync in [false, true] {
            let disk = Disk::meanwhile(sync);
            let inner = folder.0.join(format!("a/{sync}"));
            disk.make_folder(&inner).unwrap();
            std::thread::scope(|scope| {
                for t in 0..3_u8 {
                    let (disk, inner) = (&disk, &inner);
                    scope.spawn(move || {
                        for i in 0..100 {
                            disk.write(&inner.join(format!("{t}-{i}")), |out| out.write_all(&[t, i]))
                                .unwrap();
                        }
                    });
                }
            });
            disk.finish().unwrap();
            for (t, i) in (0..3).flat_map(|t| (0..100).map(move |i| (t, i))) {
                assert_eq!(fs::read(inner.join(format!("{t}-{i}"))).unwrap(), [t, i]);
            }
            assert_eq!(fs::read_dir(&inner).unwrap().count(), 300, "and nothing else");
        }
        // A folder appears where the file is to go.
        let (disk, path) = (Disk::meanwhile(true), folder.0.join("b"));
        let failed = disk.write(&path, |out| {
            fs::create_dir(&path)?;
            out.write_all(b"too late")
        });
        let failed = failed.and(disk.finish()).unwrap_err().to_string();
        assert!(failed.contains("b: "), "{failed}");
        assert_eq!(folder.names(), ["a", "b"], "nothing is left");
    }

    // Windows refuses one of two replacements of a file at once.
    #[cfg(unix)]
    #[test]
    fn writing_and_removing_unfinished_files_do_not_conflict() {
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
        fs::remove_file(&real).unwrap();
        write_atomically(&link, |w| w.write_all(b"again")).unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"again", "what a link leads to may be new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "the link is one still");
        std::os::unix::fs::symlink("circle", folder.0.join("circle")).unwrap();
        assert!(write_atomically(folder.0.join("circle"), |_| Ok(())).is_err(), "a link to itself");
        write_atomically("/dev/null", |w| w.write_all(b"gone")).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file(), "a device is not replaced");
    }
}
