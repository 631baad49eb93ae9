//! The second stage: the features of every photograph, a file each.
//!
//! On a CPU every thread reads and searches photographs of its own. With GPUs the threads read, and every GPU has a
//! thread that feeds it with what is ready, several photographs of one size at a time. No more photographs are in
//! memory than twice the threads and a batch for each GPU.

use super::Shard;
use super::folder::Collection;
use super::record::{self, Fields, Found, Kind, fingerprint};
use super::scan::FileVersion;
use super::workers::{Job, Stop, for_each_of, side_by_side};
use crate::device::{Cpu, Processor};
use crate::feature::sift::DIMENSION;
use crate::feature::{Descriptors, Detector, Features, Finder, Keypoint};
use crate::files::{Disk, remove_unfinished};
use crate::filter::shrink::shrink;
use crate::image::{self, AnyImage, Image, Mask, Prepared, Range, Size};
use crate::{Error, Result, for_any_view};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Of what this stage computes: another one makes all features again.
pub(super) const VERSION: u32 = 1;

/// The files that features were made from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Origin {
    pub(super) photograph: FileVersion,
    pub(super) mask: Option<FileVersion>,
}

/// What a file of features holds.
#[derive(Clone, Debug, PartialEq)]
struct Stored {
    origin: Origin,
    /// The features, or why the photograph cannot be read.
    outcome: std::result::Result<(Known, Features), String>,
}

/// What the head of such a file tells.
pub(super) struct Told {
    pub(super) origin: Origin,
    pub(super) outcome: std::result::Result<Known, String>,
}

/// What is known of a photograph's features without reading them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) size: Size,
    pub(super) count: usize,
    /// Hash of keypoints and descriptors.
    hash: u64,
}

/// What is known of a photograph, for stages that follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It has features. The key tells what its pairs are made from: its name, features, size, and focal length.
    Found {
        known: Known,
        key: u64,
    },
    Unreadable(String),
    /// It is still to be searched, or its features are damaged, as is told.
    Missing(Option<String>),
}

impl State {
    /// The key of a photograph that has features.
    pub(super) fn key(&self) -> Option<u64> {
        match self {
            Self::Found { key, .. } => Some(*key),
            Self::Unreadable(_) | Self::Missing(_) => None,
        }
    }
}

/// What is known of one photograph after this stage.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PhotographFeatures {
    /// Its features, in pixels of the photograph.
    Found(Features),
    /// It cannot be read, for this reason.
    Unreadable(String),
    /// It was not searched yet.
    Missing,
}

/// What a run of this stage did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extracted {
    /// Photographs that were searched now.
    pub searched: usize,
    /// Photographs whose features were there.
    pub present: usize,
    /// Photographs that are no picture that is read, and why, in their order. They are left out.
    pub unreadable: Vec<(String, String)>,
    /// Where there is a folder of masks, the photographs of this part that have none there, in their order.
    pub without_mask: Vec<String>,
    /// Photographs that the system did not give, or that have changed since the scan, and why. They are to be tried
    /// again: no stage that needs them goes on without.
    pub failed: Vec<(String, String)>,
}

/// Bytes of a keypoint in a file.
const KEYPOINT: usize = 23;
/// Photographs that a GPU searches at a time: always as many, because it keeps memory for one number.
const BATCH: usize = 8;

/// Hash of a file's content.
pub(super) fn content_hash(bytes: &[u8]) -> u64 {
    fingerprint([bytes])
}

impl Collection {
    /// Finds the features of the photographs of a part of the work, of those that have none yet, that have changed since
    /// or whose file is damaged. Photographs that could not be read are tried again. The work runs on the threads of
    /// the first processor and on the GPUs of all.
    ///
    /// # Errors
    /// [`Error::Option`] for a limit of 0; [`Error::Io`] when a file cannot be written; [`Error::Device`] when a GPU
    /// fails.
    pub fn extract(&self, shard: Shard, processors: &[Processor]) -> Result<Extracted> {
        self.limits().check()?;
        let cpu = processors.first().map_or_else(Cpu::sequential, |p| p.cpu.clone());
        let mine: Vec<usize> = (0..self.photographs().len()).filter(|i| shard.has(*i)).collect();
        let is_there = cpu.try_map(mine.len(), |i| Ok(self.state(mine[i])?.key().is_some()))?;
        let todo: Vec<usize> =
            mine.iter().zip(&is_there).filter(|(_, there)| !**there).map(|(i, _)| *i).collect();
        remove_unfinished(self.folder().join("features"), 2)?;
        let stage = Stage {
            collection: self,
            detector: Detector::Sift(self.options().features.sift),
            watched: cpu.begin_task("features", todo.len()),
            next: AtomicUsize::new(0),
            todo: &todo,
            unreadable: Mutex::default(),
            failed: Mutex::default(),
            disk: Disk::meanwhile(self.syncs()),
        };
        if !todo.is_empty() {
            stage.run(&cpu, processors)?;
        }
        stage.disk.finish()?;
        let named = |reasons: Mutex<Vec<(usize, String)>>| -> Vec<_> {
            let mut reasons = reasons.into_inner().unwrap_or_else(PoisonError::into_inner);
            reasons.sort();
            reasons.into_iter().map(|(i, reason)| (self.photographs()[i].name.clone(), reason)).collect()
        };
        let (unreadable, failed) = (named(stage.unreadable), named(stage.failed));
        Ok(Extracted {
            searched: todo.len() - unreadable.len() - failed.len(),
            present: mine.len() - todo.len(),
            unreadable,
            without_mask: self.without_mask(&mine),
            failed,
        })
    }

    /// What is known of the photograph of this index (its number less one).
    ///
    /// # Errors
    /// [`Error::Io`] when its file cannot be read, [`Error::Format`] when it is damaged.
    pub fn features(&self, index: usize) -> Result<PhotographFeatures> {
        Ok(match self.stored(index)? {
            Found::Missing => PhotographFeatures::Missing,
            stored => match stored.or_made_by("features", &self.features_path(index))?.outcome {
                Ok((_, features)) => PhotographFeatures::Found(features),
                Err(reason) => PhotographFeatures::Unreadable(reason),
            },
        })
    }

    /// Takes features that were found elsewhere for the photograph of this index (its number less one), in pixels of
    /// the photograph: [`extract`](Self::extract) then finds it done. What stood there is replaced.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for descriptors that are not 128 bytes for each keypoint, for an index that is no
    /// photograph's, and for a photograph that has changed since the scan; [`Error::Io`].
    pub fn import_features(&self, index: usize, features: &Features) -> Result<()> {
        let photographs = self.photographs().len();
        if index >= photographs {
            return Err(Error::Mismatch(format!("there is no photograph {index} of {photographs}")));
        }
        let fit = match &features.descriptors {
            Descriptors::U8(values) => values.len() == features.len() * DIMENSION,
            Descriptors::F32(_) => false,
        };
        if !fit {
            return Err(Error::Mismatch(format!(
                "a collection keeps {DIMENSION} bytes of descriptor for every keypoint; these are others"
            )));
        }
        let sources = self.sources(index);
        let sources = sources.map_err(|reason| Error::format(self.path_of(index), reason))?;
        self.write_features(&Disk::at_once(self.syncs()), index, &sources.origin, &Ok(features.clone()))
    }

    fn write_features(
        &self,
        disk: &Disk,
        index: usize,
        origin: &Origin,
        outcome: &std::result::Result<Features, String>,
    ) -> Result<()> {
        let (head, body) = encode(origin, outcome);
        let made_from = self.features_fingerprint(index);
        record::write(disk, &self.features_path(index), Kind::Features, made_from, &head, &[&body])
    }

    fn stored(&self, index: usize) -> Result<Found<Stored>> {
        let read =
            record::read(&self.features_path(index), Kind::Features, self.features_fingerprint(index))?;
        let decoded = read.map(|(head, body)| {
            let told = decode_head(&head)?;
            Some(match told.outcome {
                Ok(known) => {
                    Stored { origin: told.origin, outcome: Ok((known, decode_body(&known, &body)?)) }
                }
                Err(reason) => Stored { origin: told.origin, outcome: Err(reason) },
            })
        });
        Ok(match decoded.or_unfit("holds no features") {
            Found::Whole(stored) if !self.is_of(index, &stored.origin) => Found::Missing,
            found => found,
        })
    }

    /// The names of those of some photographs that have no mask in the folder of masks.
    fn without_mask(&self, photographs: &[usize]) -> Vec<String> {
        let all = photographs.iter().map(|&i| &self.photographs()[i]);
        let masked = self.options().features.masks.is_some();
        all.filter(|p| masked && p.mask.is_none()).map(|p| p.name.clone()).collect()
    }

    fn told(&self, index: usize) -> Result<Found<Told>> {
        let path = self.features_path(index);
        let head = record::read_head(&path, Kind::Features, self.features_fingerprint(index))?;
        Ok(head.map(|head| decode_head(&head)).or_unfit("holds no features"))
    }

    /// What the features of a photograph were made from.
    pub(super) fn origin(&self, index: usize) -> Result<Option<Origin>> {
        Ok(self.told(index)?.whole().map(|told| told.origin))
    }

    /// Whether features were made from the photograph and mask that the scan found.
    fn is_of(&self, index: usize, origin: &Origin) -> bool {
        let photograph = &self.photographs()[index];
        let same_mask = match (&origin.mask, &photograph.mask) {
            (Some(then), Some(now)) => then.is_same(now),
            (then, now) => then.is_none() && now.is_none(),
        };
        same_mask && origin.photograph.is_same(&photograph.file)
    }

    /// What is known of a photograph. Its features are not read.
    pub(super) fn state(&self, index: usize) -> Result<State> {
        Ok(match self.told(index)? {
            Found::Whole(told) if self.is_of(index, &told.origin) => match told.outcome {
                Ok(known) => State::Found { known, key: self.key(index, &known) },
                Err(reason) => State::Unreadable(reason),
            },
            Found::Whole(_) | Found::Missing => State::Missing(None),
            Found::Unfit(reason) => State::Missing(Some(reason)),
        })
    }

    /// What is known of all photographs.
    pub(super) fn states(&self, cpu: &Cpu) -> Result<Vec<State>> {
        cpu.try_map(self.photographs().len(), |i| self.state(i))
    }

    fn key(&self, index: usize, known: &Known) -> u64 {
        let photograph = &self.photographs()[index];
        let focal = photograph.metadata.focal_px(known.size).map_or(0, f64::to_bits);
        let numbers = [known.hash, known.size.width as u64, known.size.height as u64, focal];
        fingerprint([photograph.name.as_bytes(), &numbers.map(u64::to_le_bytes).concat()])
    }

    /// The features of a photograph, which are those that `states` tell of.
    pub(super) fn load(&self, index: usize, states: &[State]) -> Result<Arc<Features>> {
        let path = || self.features_path(index);
        let stored = self.stored(index)?.or_made_by("features", &path())?;
        match (stored.outcome, &states[index]) {
            (Ok((found, features)), State::Found { known, .. }) if found == *known => Ok(Arc::new(features)),
            _ => Err(Error::format(path(), "was made anew meanwhile; run this stage again")),
        }
    }

    /// A photograph and its mask as the scan found them; otherwise why they are to be tried again.
    fn sources(&self, index: usize) -> std::result::Result<Sources, String> {
        let photograph = &self.photographs()[index];
        let (bytes, file) = as_scanned(&self.path_of(index), &photograph.file)?;
        let mask = match &photograph.mask {
            None => None,
            Some(version) => {
                let path = self.mask_path(index).map_err(|e| e.to_string())?.ok_or("its mask is gone")?;
                let mask = as_scanned(&path, version);
                let (bytes, version) = mask.map_err(|e| format!("the mask {} {e}", path.display()))?;
                Some((path, bytes, version))
            }
        };
        let origin = Origin { photograph: file, mask: mask.as_ref().map(|(_, _, version)| *version) };
        Ok(Sources { photograph: bytes, mask: mask.map(|(path, bytes, _)| (path, bytes)), origin })
    }
}

/// What features are made from, as it was read.
struct Sources {
    photograph: Vec<u8>,
    mask: Option<(PathBuf, Vec<u8>)>,
    origin: Origin,
}

/// The content of a file, unless it has changed since the scan.
fn as_scanned(path: &Path, scanned: &FileVersion) -> std::result::Result<(Vec<u8>, FileVersion), String> {
    let (bytes, meta) = match record::content(path) {
        Ok(Found::Whole(read)) => read,
        Ok(Found::Missing) => return Err("is no longer there".into()),
        Ok(Found::Unfit(reason)) => return Err(reason),
        Err(Error::Io { source, .. }) => return Err(source.to_string()),
        Err(other) => return Err(other.to_string()),
    };
    let version = FileVersion { content: Some(content_hash(&bytes)), ..FileVersion::of(&meta) };
    let after = std::fs::metadata(path).map_err(|e| e.to_string())?;
    let is_at_rest = bytes.len() as u64 == version.bytes && version.is_untouched(&FileVersion::of(&after));
    match is_at_rest && version.is_same(scanned) {
        true => Ok((bytes, version)),
        false => Err("has changed since the scan".into()),
    }
}

/// The stage under way.
struct Stage<'c> {
    collection: &'c Collection,
    detector: Detector,
    /// Is told of every photograph that is done.
    watched: Cpu,
    /// The next of `todo`.
    next: AtomicUsize,
    /// The photographs to search.
    todo: &'c [usize],
    unreadable: Mutex<Vec<(usize, String)>>,
    /// Those that are to be tried again.
    failed: Mutex<Vec<(usize, String)>>,
    /// Where features are written to.
    disk: Disk,
}

/// A photograph that was read, ready to be searched.
struct Picture {
    index: usize,
    origin: Origin,
    /// The size of the photograph.
    size: Size,
    /// What is searched: smaller where the photograph is large.
    image: AnyImage,
    mask: Option<Image<u8>>,
}

impl Picture {
    /// Whether a GPU can search both at a time.
    fn is_like(&self, other: &Self) -> bool {
        let same_type = std::mem::discriminant(&self.image) == std::mem::discriminant(&other.image);
        same_type && self.image.size() == other.image.size() && self.mask.is_none() && other.mask.is_none()
    }

    /// Features in pixels of the photograph.
    fn in_photograph(&self, mut found: Features) -> Features {
        let searched = self.image.size();
        if searched != self.size && !searched.is_empty() {
            let factor = |whole: usize, part: usize| whole as f32 / part as f32;
            let (fx, fy) =
                (factor(self.size.width, searched.width), factor(self.size.height, searched.height));
            for k in &mut found.keypoints {
                (k.x, k.y) = ((k.x + 0.5) * fx - 0.5, (k.y + 0.5) * fy - 0.5);
                k.scale *= (fx * fy).sqrt();
            }
        }
        Features { image: self.size, ..found }
    }
}

impl Stage<'_> {
    fn run(&self, cpu: &Cpu, processors: &[Processor]) -> Result<()> {
        let gpus: Vec<&Processor> = processors.iter().filter(|p| p.gpu.is_some()).collect();
        if gpus.is_empty() {
            return self.on_cpu(cpu);
        }
        self.on_gpus(cpu, &gpus)
    }

    /// The next photograph, read; none when all are taken.
    fn read_next(&self) -> Option<Result<Option<Picture>>> {
        let index = *self.todo.get(self.next.fetch_add(1, Ordering::Relaxed))?;
        Some(self.read(index))
    }

    /// A photograph, or nothing where it cannot be read, which is recorded.
    fn read(&self, index: usize) -> Result<Option<Picture>> {
        let sources = match self.collection.sources(index) {
            Ok(sources) => sources,
            Err(reason) => {
                self.failed.lock().unwrap_or_else(PoisonError::into_inner).push((index, reason));
                self.watched.leave_out(1);
                self.watched.advance(1);
                return Ok(None);
            }
        };
        match self.picture(index, &sources) {
            Ok(picture) => Ok(Some(picture)),
            // The name of the file goes before; the reason stays.
            Err(Error::Format { reason, .. }) => {
                self.set_aside(index, &sources.origin, reason).map(|()| None)
            }
            Err(other) => self.set_aside(index, &sources.origin, other.to_string()).map(|()| None),
        }
    }

    fn picture(&self, index: usize, sources: &Sources) -> Result<Picture> {
        let cpu = &Cpu::sequential();
        let (options, limits) = (&self.collection.options().features, self.collection.limits());
        let image = image::decode_grey_alpha(&sources.photograph, self.collection.path_of(index), limits)?;
        let (size, origin) = (image.size(), sources.origin.clone());
        let mask = sources.mask.as_ref();
        let mask = mask.map(|(path, bytes)| Mask::decode(bytes, path, size, limits, cpu)).transpose()?;
        let Prepared { image, mask } = image::prepare(image, mask, Range::Auto, cpu)?;
        let (image, mask) = (image.into_image(), mask.into_image());
        let to = size.at_most(options.longest_side as usize);
        if to == size {
            return Ok(Picture { index, origin, size, image, mask });
        }
        let image = for_any_view!(image.view(), view => shrink(view, to, cpu)?.into());
        // A pixel counts where all that it covers does.
        let mask = mask.map(|mask| -> Result<_> {
            let share = shrink(mask.view(), to, cpu)?;
            Ok(Image::from_fn(to, |x, y| if share.row(y)[x] == 255 { 255 } else { 0 }))
        });
        Ok(Picture { index, origin, size, image, mask: mask.transpose()? })
    }

    /// Records that a photograph cannot be read.
    fn set_aside(&self, index: usize, origin: &Origin, reason: String) -> Result<()> {
        self.watched.leave_out(1);
        self.write(index, origin, &Err(reason.clone()))?;
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).push((index, reason));
        Ok(())
    }

    fn keep(&self, picture: &Picture, found: Features) -> Result<()> {
        self.write(picture.index, &picture.origin, &Ok(picture.in_photograph(found)))
    }

    fn write(
        &self,
        index: usize,
        origin: &Origin,
        outcome: &std::result::Result<Features, String>,
    ) -> Result<()> {
        self.collection.write_features(&self.disk, index, origin, outcome)?;
        self.watched.advance(1);
        Ok(())
    }

    /// The features of one photograph; none where the detector cannot take it, which is recorded.
    fn found(&self, picture: &Picture, finder: &Finder) -> Result<Option<Features>> {
        match finder.detect(&picture.image, picture.mask.as_ref().map(Image::view)) {
            Ok(found) => Ok(Some(found)),
            // Of another form, or too large.
            Err(e @ (Error::Image(_) | Error::Mismatch(_) | Error::Memory { .. })) => {
                self.set_aside(picture.index, &picture.origin, e.to_string()).map(|()| None)
            }
            Err(other) => Err(other),
        }
    }

    /// Every thread reads and searches photographs of its own; fewer photographs than threads share the threads.
    fn on_cpu(&self, cpu: &Cpu) -> Result<()> {
        let workers = cpu.threads().min(self.todo.len());
        let threads = cpu.threads() / workers.max(1);
        let work = |stop: &Stop| -> Result<()> {
            let finder = self.detector.open(&Cpu::with_threads(threads.max(1))?.ending_with(cpu).into())?;
            while !stop.is_set()
                && let Some(picture) = self.read_next()
            {
                if let Some(picture) = picture?
                    && let Some(found) = self.found(&picture, &finder)?
                {
                    self.keep(&picture, found)?;
                }
            }
            Ok(())
        };
        side_by_side(cpu, (0..workers).map(|_| Box::new(work) as _).collect())
    }

    /// Threads read, GPUs search, other threads write.
    fn on_gpus(&self, cpu: &Cpu, gpus: &[&Processor]) -> Result<()> {
        let threads = cpu.threads();
        let readers = threads.min(self.todo.len()).max(1);
        let (to_search, pictures) = sync_channel(threads + BATCH * gpus.len());
        let (to_write, found) = sync_channel::<(Picture, Features)>(threads.max(2 * BATCH));
        // Of the jobs that receive alone: when they have ended, whatever the reason, nobody waits to send.
        let (pictures, found) = (Arc::new(Mutex::new(pictures)), Arc::new(Mutex::new(found)));
        let mut jobs: Vec<Job<'_>> = Vec::new();
        for _ in 0..readers {
            let to_search = to_search.clone();
            jobs.push(Box::new(move |stop| self.read_all(stop, &to_search)));
        }
        drop(to_search);
        for processor in gpus {
            let (pictures, to_write) = (pictures.clone(), to_write.clone());
            jobs.push(Box::new(move |stop| self.search_all(stop, processor, &pictures, &to_write)));
        }
        for _ in 0..threads.clamp(1, 4) {
            let found = found.clone();
            let keep = |(picture, features): (Picture, Features)| self.keep(&picture, features);
            jobs.push(Box::new(move |stop| for_each_of(&found, stop, keep)));
        }
        drop((pictures, to_write, found));
        side_by_side(cpu, jobs)
    }

    /// Reads photographs until there are no more, or nobody searches them.
    fn read_all(&self, stop: &Stop, to_search: &SyncSender<Picture>) -> Result<()> {
        while !stop.is_set()
            && let Some(picture) = self.read_next()
        {
            if let Some(picture) = picture?
                && to_search.send(picture).is_err()
            {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Searches what is ready on one GPU: a batch where so many alike are ready, otherwise one.
    fn search_all(
        &self,
        stop: &Stop,
        processor: &Processor,
        pictures: &Mutex<Receiver<Picture>>,
        to_write: &SyncSender<(Picture, Features)>,
    ) -> Result<()> {
        let finder = self.detector.open(processor)?;
        let mut ready: Vec<Picture> = Vec::new();
        while !stop.is_set() && take_ready(pictures, &mut ready) {
            let alike = ready.iter().take_while(|p| ready[0].is_like(p)).count();
            if alike < BATCH || finder.parts() > 1 {
                let picture = ready.remove(0);
                // Masks, and images of a size of their own.
                if let Some(found) = self.found(&picture, &finder)?
                    && to_write.send((picture, found)).is_err()
                {
                    return Ok(());
                }
                continue;
            }
            let batch: Vec<Picture> = ready.drain(..BATCH).collect();
            let found = finder.detect_batch(batch.iter().map(|p| &p.image));
            for (picture, found) in batch.into_iter().zip(found) {
                if to_write.send((picture, found?)).is_err() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Waits for one photograph unless some are `ready`, and takes more up to a batch without waiting for long; false at
/// the end.
fn take_ready(pictures: &Mutex<Receiver<Picture>>, ready: &mut Vec<Picture>) -> bool {
    let pictures = pictures.lock().unwrap_or_else(PoisonError::into_inner);
    if ready.is_empty() {
        ready.extend(pictures.recv().ok());
    }
    while ready.len() < BATCH {
        match pictures.try_recv() {
            Ok(picture) => ready.push(picture),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
        }
    }
    !ready.is_empty()
}

/// Head and body of a file of features.
fn encode(origin: &Origin, outcome: &std::result::Result<Features, String>) -> (Vec<u8>, Vec<u8>) {
    let mut head = Vec::new();
    let mut version = |v: &FileVersion| {
        [v.bytes, v.modified, v.changed, v.content.unwrap_or(0)]
            .iter()
            .for_each(|n| head.extend_from_slice(&n.to_le_bytes()));
    };
    version(&origin.photograph);
    version(&origin.mask.unwrap_or_default());
    head.push(u8::from(origin.mask.is_some()));
    let features = match outcome {
        Ok(features) => features,
        Err(reason) => {
            head.push(0);
            head.extend_from_slice(reason.as_bytes());
            return (head, Vec::new());
        }
    };
    let descriptors: &[u8] = match &features.descriptors {
        Descriptors::U8(values) => values,
        Descriptors::F32(_) => &[],
    };
    let mut body = Vec::with_capacity(features.len() * KEYPOINT + descriptors.len());
    for k in &features.keypoints {
        for v in [k.x, k.y, k.scale, k.angle, k.response] {
            body.extend_from_slice(&v.to_le_bytes());
        }
        body.extend_from_slice(&[k.sign as u8, k.octave as u8, k.layer]);
    }
    body.extend_from_slice(descriptors);
    head.push(1);
    for n in [features.image.width, features.image.height, features.len()] {
        head.extend_from_slice(&(n as u32).to_le_bytes());
    }
    head.extend_from_slice(&content_hash(&body).to_le_bytes());
    (head, body)
}

pub(super) fn decode_head(head: &[u8]) -> Option<Told> {
    let mut fields = Fields(head);
    let mut version = || {
        let [bytes, modified, changed] = [fields.u64()?, fields.u64()?, fields.u64()?];
        Some(FileVersion { bytes, modified, changed, content: Some(fields.u64()?) })
    };
    let (photograph, mask) = (version()?, version()?);
    let mask = (fields.u8()? == 1).then_some(mask);
    let origin = Origin { photograph, mask };
    if fields.u8()? == 0 {
        return Some(Told { origin, outcome: Err(String::from_utf8_lossy(fields.0).into_owned()) });
    }
    let size = Size::new(fields.u32()? as usize, fields.u32()? as usize);
    let known = Known { size, count: fields.u32()? as usize, hash: fields.u64()? };
    fields.0.is_empty().then_some(Told { origin, outcome: Ok(known) })
}

pub(super) fn decode_body(known: &Known, body: &[u8]) -> Option<Features> {
    let mut fields = Fields(body);
    let mut keypoints = Fields(fields.take(known.count.checked_mul(KEYPOINT)?)?);
    let keypoints = (0..known.count).map(|_| keypoint(&mut keypoints)).collect::<Option<Vec<_>>>()?;
    if fields.0.len() != known.count.checked_mul(DIMENSION)? {
        return None;
    }
    let descriptors = Descriptors::U8(fields.0.to_vec());
    Some(Features { keypoints, descriptors, dimension: DIMENSION, image: known.size })
}

fn keypoint(fields: &mut Fields<'_>) -> Option<Keypoint> {
    Some(Keypoint {
        x: fields.f32()?,
        y: fields.f32()?,
        scale: fields.f32()?,
        angle: fields.f32()?,
        response: fields.f32()?,
        sign: fields.u8()? as i8,
        octave: fields.u8()? as i8,
        layer: fields.u8()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_read_as_they_were_written() {
        let keypoints = crate::feature::order::gpu::tests::keypoints(5, 1);
        let descriptors = Descriptors::U8((0..5 * 128).map(|i| i as u8).collect());
        let features = Features { keypoints, descriptors, dimension: 128, image: Size::new(70, 50) };
        let photograph = FileVersion { bytes: 1, modified: 2, changed: 3, content: Some(4) };
        for mask in [None, Some(FileVersion { bytes: 5, ..photograph })] {
            let origin = Origin { photograph, mask };
            let (head, body) = encode(&origin, &Ok(features.clone()));
            let told = decode_head(&head).unwrap();
            assert_eq!(told.origin, origin, "what they were made from");
            let known = told.outcome.unwrap();
            assert_eq!((known.size, known.count), (features.image, 5));
            assert_eq!(decode_body(&known, &body), Some(features.clone()), "as written");
            assert!((0..head.len()).all(|end| decode_head(&head[..end]).is_none()), "cut off");
            assert!((0..body.len()).all(|end| decode_body(&known, &body[..end]).is_none()), "cut off");
            let (head, body) = encode(&origin, &Err("damaged".to_owned()));
            assert_eq!(decode_head(&head).unwrap().outcome, Err("damaged".to_owned()));
            assert!(body.is_empty());
        }
    }
}
