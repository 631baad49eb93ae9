//! Bringing files to the disk: one at once, or many while the work that makes them goes on.

use super::unfinished::{Unfinished, folder_of, followed};
use crate::{Error, Result};
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Threads that bring files to the disk. They wait for it nearly all of the time, and a file system joins what several
/// of them ask for.
const THREADS: usize = 4;

/// Files that one of them takes at a time, with one sync of their folder.
const TOGETHER: usize = 16;

/// How files that are written come to their places.
#[derive(Debug)]
pub(crate) struct Disk {
    sync: bool,
    queue: Option<Queue>,
    /// Folders that are known to be on the disk.
    folders: Mutex<HashSet<PathBuf>>,
}

impl Disk {
    /// Each file takes its place before its writing ends; with `sync` it is on the disk then.
    pub(crate) fn at_once(sync: bool) -> Self {
        Self { sync, queue: None, folders: Mutex::default() }
    }

    /// With `sync` files are brought to the disk, and then take their places, on threads of their own; all have when
    /// [`finish`](Self::finish) returns. Without it, each takes its place at once.
    pub(crate) fn meanwhile(sync: bool) -> Self {
        Self { queue: sync.then(Queue::start), ..Self::at_once(sync) }
    }

    /// Makes a folder with those that it is in, and brings their names to the disk.
    pub(crate) fn make_folder(&self, folder: &Path) -> Result<()> {
        if self.sync && lock(&self.folders).contains(folder) {
            return Ok(());
        }
        let missing = folder.ancestors().take_while(|ancestor| !ancestor.is_dir()).count();
        fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        if self.sync {
            // More than were missing: another process may have made them a moment ago.
            for made in folder.ancestors().take(missing + 3) {
                sync_folder(made).map_err(|e| Error::io(made, e))?;
            }
            lock(&self.folders).insert(folder.to_owned());
        }
        Ok(())
    }

    /// Writes a file as [`write_atomically`](super::write_atomically) does. It may take its place later, and then an
    /// error is returned by a later call.
    pub(crate) fn write(
        &self,
        path: &Path,
        content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<()> {
        let Some(unfinished) = written(path, content).map_err(|source| Error::io(path, source))? else {
            return Ok(());
        };
        match &self.queue {
            Some(queue) => queue.add(unfinished),
            None => unfinished.take_place(self.sync),
        }
    }

    /// Waits until all that was written is at its place, and on the disk.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.queue.take().map_or(Ok(()), Queue::finish)
    }
}

/// A file that is written and not yet at its place; none where `path` is a device or a pipe, to which the content went.
fn written(
    path: &Path,
    content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<Option<Unfinished>> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory"));
        }
        Ok(found) if !found.is_file() => {
            return fill(OpenOptions::new().write(true).open(path)?, content).map(|()| None);
        }
        Ok(_) => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    let unfinished = Unfinished::create(followed(path)?)?;
    fill(unfinished.file()?, content)?;
    Ok(Some(unfinished))
}

fn fill(file: File, content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(1 << 16, file);
    content(&mut writer)?;
    writer.flush()
}

/// Brings the names in the folder of `file` to the disk: what was made, renamed or removed there.
///
/// # Errors
/// [`Error::Io`] with the folder.
pub fn sync_folder_of(file: impl AsRef<Path>) -> Result<()> {
    let folder = folder_of(file.as_ref());
    sync_folder(folder).map_err(|e| Error::io(folder, e))
}

/// Brings the names in a folder to the disk, where the system can. A folder that may be written and not read cannot be
/// synced by itself.
#[cfg(unix)]
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    match File::open(folder) {
        Ok(open) => tolerant(open.sync_all()),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(e) => Err(e),
    }
}

/// Elsewhere a folder is no file that could be synced.
#[cfg(not(unix))]
pub(super) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// A file system that has no such call keeps no promise, and is no failure.
pub(super) fn tolerant(synced: io::Result<()>) -> io::Result<()> {
    match synced {
        Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        other => other,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Written files on their way to the disk and to their places.
#[derive(Debug)]
struct Queue {
    /// None once the last was added.
    files: Option<SyncSender<Unfinished>>,
    threads: Vec<JoinHandle<()>>,
    failed: Arc<Mutex<Option<Error>>>,
}

impl Queue {
    fn start() -> Self {
        let (files, written) = sync_channel(THREADS * TOGETHER);
        let (written, failed) = (Arc::new(Mutex::new(written)), Arc::<Mutex<Option<Error>>>::default());
        let threads = (0..THREADS)
            .map(|_| {
                let (written, failed) = (written.clone(), failed.clone());
                thread::spawn(move || {
                    while let Some(files) = take(&written) {
                        if let Err(error) = place(files) {
                            lock(&failed).get_or_insert(error);
                        }
                    }
                })
            })
            .collect();
        Self { files: Some(files), threads, failed }
    }

    /// Fails with the error of a file that was added before.
    fn add(&self, file: Unfinished) -> Result<()> {
        if let Some(error) = lock(&self.failed).take() {
            return Err(error);
        }
        // The threads take files as long as there is a sender.
        let _ = self.files.as_ref().map(|files| files.send(file));
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.join();
        lock(&self.failed).take().map_or(Ok(()), Err)
    }

    fn join(&mut self) {
        self.files = None;
        for thread in self.threads.drain(..) {
            // It takes no lock that a panic could leave, and there is nothing in it to panic.
            let _ = thread.join();
        }
    }
}

/// What was written comes to its place although the work ends early.
impl Drop for Queue {
    fn drop(&mut self) {
        self.join();
    }
}

/// Waits for a file, and takes more that wait; none at the end.
fn take(written: &Mutex<Receiver<Unfinished>>) -> Option<Vec<Unfinished>> {
    let written = lock(written);
    let first = written.recv().ok()?;
    Some(std::iter::once(first).chain(written.try_iter().take(TOGETHER - 1)).collect())
}

/// Brings files to the disk, then to their places, then their names to the disk. Of several errors the first counts.
fn place(files: Vec<Unfinished>) -> Result<()> {
    let (mut folders, mut placed) = (HashSet::new(), Ok(()));
    for file in files {
        let target = file.target().to_owned();
        let moved = file.sync().and_then(|()| file.rename()).map_err(|e| Error::io(&target, e));
        folders.insert(folder_of(&target).to_owned());
        placed = placed.and(moved);
    }
    folders
        .iter()
        .fold(placed, |placed, folder| placed.and(sync_folder(folder).map_err(|e| Error::io(folder, e))))
}
