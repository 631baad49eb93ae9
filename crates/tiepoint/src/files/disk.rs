//! Syncing files to the disk: each at once, or many on other threads while the work that makes them continues.

use super::unfinished::{Unfinished, followed};
use super::{folder_of, if_there};
use crate::device::Cancel;
use crate::{Error, Result};
use std::cell::RefCell;
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use tiepoint_gpu::lock;

/// Threads that sync files. They mostly wait for the disk, and file systems combine syncs that overlap.
const THREADS: usize = 4;

/// Files that one thread takes at a time; their folder is synced once for all.
const TOGETHER: usize = 16;

/// Writes files and moves them to their final paths.
#[derive(Debug)]
pub(crate) struct Disk {
    sync: bool,
    queue: Option<Queue>,
    /// Folders that have been synced.
    folders: Mutex<HashSet<PathBuf>>,
}

impl Disk {
    /// [`write`](Self::write) returns when the file is at its final path and, with `sync`, synced to the disk.
    pub(crate) fn at_once(sync: bool) -> Self {
        Self { sync, queue: None, folders: Mutex::default() }
    }

    /// With `sync`, separate threads sync files and move them to their final paths; all are there when
    /// [`finish`](Self::finish) returns. Without it, as [`at_once`](Self::at_once).
    pub(crate) fn meanwhile(sync: bool) -> Self {
        Self { queue: sync.then(Queue::start), ..Self::at_once(sync) }
    }

    /// Makes a folder and its missing parents, and syncs the folders that name them.
    pub(crate) fn make_folder(&self, folder: &Path) -> Result<()> {
        if self.sync && lock(&self.folders).contains(folder) {
            return Ok(());
        }
        let missing = folder.ancestors().take_while(|ancestor| !ancestor.is_dir()).count();
        fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        if self.sync {
            // Three more than were missing, because another process may have made them a moment ago.
            for made in folder.ancestors().take(missing + 3) {
                sync_folder(made).map_err(|e| Error::io(made, e))?;
            }
            lock(&self.folders).insert(folder.to_owned());
        }
        Ok(())
    }

    /// Writes a file as [`write_atomically`](super::write_atomically) does. With a queue it reaches its final path later,
    /// and a later call returns its error.
    pub(crate) fn write(
        &self,
        path: &Path,
        content: impl FnOnce(&mut BufWriter<Opened>) -> io::Result<()>,
    ) -> Result<()> {
        let mut content = Some(content);
        self.write_by(path, &mut |out| content.take().map_or(Ok(()), |content| content(out)))
    }

    /// [`write`](Self::write), not compiled for each content.
    fn write_by(&self, path: &Path, content: &mut Content<'_>) -> Result<()> {
        let Some(unfinished) = written(path, content).map_err(|source| error(path, source))? else {
            return Ok(());
        };
        match &self.queue {
            Some(queue) => queue.add(unfinished),
            None => unfinished.take_place(self.sync),
        }
    }

    /// Waits until every file is at its final path and, with `sync`, synced to the disk.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.queue.take().map_or(Ok(()), Queue::finish)
    }
}

thread_local! {
    static CANCEL: RefCell<Option<Cancel>> = const { RefCell::new(None) };
}

/// Runs `work`; once `cancel` is set, files that this thread has not yet moved to their final paths never appear there,
/// and the calls that write them return [`Error::Cancelled`].
pub fn cancelled_by<R>(cancel: &Cancel, work: impl FnOnce() -> R) -> R {
    let before = CANCEL.replace(Some(cancel.clone()));
    let done = work();
    CANCEL.set(before);
    done
}

fn is_cancelled() -> bool {
    CANCEL.with_borrow(|cancel| cancel.as_ref().is_some_and(Cancel::is_cancelled))
}

/// Fails if this thread's work is cancelled.
pub(super) fn check() -> io::Result<()> {
    if is_cancelled() { Err(io::Error::other("cancelled")) } else { Ok(()) }
}

pub(super) fn error(path: &Path, source: io::Error) -> Error {
    if is_cancelled() { Error::Cancelled } else { Error::io(path, source) }
}

/// An open file; writing to it fails once its work is cancelled ([`cancelled_by`]).
#[derive(Debug)]
pub struct Opened(File);

impl Write for Opened {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        check()?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes the content of a file; called once.
type Content<'c> = dyn FnMut(&mut BufWriter<Opened>) -> io::Result<()> + 'c;

/// Writes a file under a temporary name; `None` if `path` is a device or a pipe, which is written to directly.
fn written(path: &Path, content: &mut Content<'_>) -> io::Result<Option<Unfinished>> {
    if let Some(stdout) = stdout(path)? {
        return fill(stdout, content).map(|()| None);
    }
    match if_there(fs::metadata(path))? {
        Some(found) if found.is_dir() => {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory"));
        }
        Some(found) if !found.is_file() => {
            return fill(OpenOptions::new().write(true).open(path)?, content).map(|()| None);
        }
        _ => {}
    }
    let unfinished = Unfinished::create(followed(path)?)?;
    fill(unfinished.file()?, content)?;
    Ok(Some(unfinished))
}

/// The process's standard output, if `path` is that: a regular file to which it is redirected must not be replaced.
#[cfg(unix)]
fn stdout(path: &Path) -> io::Result<Option<File>> {
    use std::os::fd::AsFd;
    if !super::is_stdout(path) {
        return Ok(None);
    }
    io::stdout().flush()?;
    Ok(Some(io::stdout().as_fd().try_clone_to_owned()?.into()))
}

#[cfg(not(unix))]
fn stdout(_: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

fn fill(file: File, content: &mut Content<'_>) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(1 << 16, Opened(file));
    content(&mut writer)?;
    close(writer.into_inner().map_err(IntoInnerError::into_error)?.0)
}

/// Closes a file and returns the error that `drop` would ignore: network file systems and those with quotas may report
/// only now that there is no room for what was written.
#[cfg(unix)]
#[expect(unsafe_code, reason = "the standard library ignores errors of closing")]
pub(super) fn close(file: File) -> io::Result<()> {
    // SAFETY: only this file owned the descriptor, and it has given it up.
    match unsafe { libc::close(std::os::fd::IntoRawFd::into_raw_fd(file)) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// On other systems closing reports nothing.
#[cfg(not(unix))]
pub(super) fn close(_: File) -> io::Result<()> {
    Ok(())
}

/// Syncs the names in the folder of `file` to the disk, after files there were made, renamed or removed.
///
/// # Errors
/// [`Error::Io`] with the folder.
pub fn sync_folder_of(file: impl AsRef<Path>) -> Result<()> {
    let folder = folder_of(file.as_ref());
    sync_folder(folder).map_err(|e| Error::io(folder, e))
}

/// Syncs the names in a folder. A folder that may be written but not read cannot be opened, and is not synced.
#[cfg(unix)]
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    match File::open(folder) {
        Ok(open) => tolerant(open.sync_all()),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(e) => Err(e),
    }
}

/// Other systems cannot sync a folder.
#[cfg(not(unix))]
pub(super) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Ignores the error of a file system that does not support syncing.
pub(super) fn tolerant(synced: io::Result<()>) -> io::Result<()> {
    match synced {
        Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        other => other,
    }
}

#[derive(Debug)]
struct Queue {
    /// Dropped to end the threads.
    files: Option<SyncSender<Unfinished>>,
    threads: Vec<JoinHandle<()>>,
    failed: Arc<Mutex<Option<Error>>>,
}

impl Queue {
    fn start() -> Self {
        let (files, written) = sync_channel(THREADS * TOGETHER);
        let (written, failed) = (Arc::new(Mutex::new(written)), Arc::<Mutex<Option<Error>>>::default());
        let threads = (0..THREADS).map(|_| {
            let (written, failed) = (written.clone(), failed.clone());
            thread::spawn(move || {
                while let Some(files) = take(&written) {
                    if let Err(error) = place(files) {
                        lock(&failed).get_or_insert(error);
                    }
                }
            })
        });
        Self { files: Some(files), threads: threads.collect(), failed }
    }

    /// Returns the error of an earlier file, if there is one.
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
            // The threads contain nothing that panics.
            let _ = thread.join();
        }
    }
}

/// When the work ends early, files that were written still reach their final paths.
impl Drop for Queue {
    fn drop(&mut self) {
        self.join();
    }
}

/// Waits for a file and takes those queued behind it, [`TOGETHER`] at most; `None` when the queue has ended.
fn take(written: &Mutex<Receiver<Unfinished>>) -> Option<Vec<Unfinished>> {
    let written = lock(written);
    let first = written.recv().ok()?;
    Some(std::iter::once(first).chain(written.try_iter().take(TOGETHER - 1)).collect())
}

/// Syncs files, moves them to their final paths, then syncs their folders. Returns the first of several errors.
fn place(files: Vec<Unfinished>) -> Result<()> {
    let (mut folders, mut placed) = (HashSet::new(), Ok(()));
    for file in files {
        let target = file.target().to_owned();
        let moved = file.sync().and_then(|()| file.rename()).map_err(|e| Error::io(&target, e));
        folders.insert(folder_of(&target).to_owned());
        placed = placed.and(moved);
    }
    let synced = |folder: &PathBuf| sync_folder(folder).map_err(|e| Error::io(folder, e));
    folders.iter().fold(placed, |placed, folder| placed.and(synced(folder)))
}
