//! The second stage: the features of every photograph, a file each.
//!
//! On a CPU every thread reads and searches photographs of its own. With GPUs the threads read, and every GPU has a
//! thread that feeds it with what is ready, several photographs of one size at a time. No more photographs are in
//! memory than twice the threads and a batch for each GPU.

use super::folder::Collection;
use super::record::{self, Fields, Found, Kind};
use super::workers::{Job, Stop, for_each_of, side_by_side};
use super::{Photograph, Shard};
use crate::device::{Cpu, Processor};
use crate::feature::sift::DIMENSION;
use crate::feature::{Descriptors, Detector, Features, Finder, Keypoint};
use crate::files::{Disk, remove_unfinished};
use crate::filter::shrink::shrink;
use crate::image::{self, AnyImage, Image, ImageView, Pixel, Range, ReadOptions, Size};
use crate::{Error, Result, for_any_view};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Mutex, PoisonError};

/// What a file of features holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stored {
    /// Hash of the photograph's file.
    pub(super) content: u64,
    /// The features, or why the photograph cannot be read.
    pub(super) outcome: std::result::Result<Features, String>,
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
    /// Photographs that cannot be read, and why, in their order.
    pub unreadable: Vec<(String, String)>,
}

/// Bytes of a keypoint in a file.
const KEYPOINT: usize = 23;
/// Photographs that a GPU searches at a time: always as many, because it keeps memory for one number.
const BATCH: usize = 8;

/// Hash of a file's content.
pub(super) fn content_hash(bytes: &[u8]) -> u64 {
    record::fingerprint([bytes])
}

impl Collection {
    /// Finds the features of the photographs of a part of the work, of those that have none yet or whose file is
    /// damaged. Photographs that could not be read are tried again. The work runs on the threads of the first processor
    /// and on the GPUs of all.
    ///
    /// # Errors
    /// [`Error::Option`] for a limit of 0; [`Error::Io`] when a file cannot be written; [`Error::Mismatch`] when a
    /// photograph was changed since the scan; [`Error::Device`] when a GPU fails.
    pub fn extract(&self, shard: Shard, processors: &[Processor]) -> Result<Extracted> {
        self.limits().check()?;
        let cpu = processors.first().map_or_else(Cpu::sequential, |p| p.cpu.clone());
        let mine: Vec<usize> = (0..self.photographs().len()).filter(|i| shard.has(*i)).collect();
        let is_there =
            cpu.map(mine.len(), |i| Ok(self.stored(mine[i])?.whole().is_some_and(|s| s.outcome.is_ok())));
        let is_there = is_there.into_iter().collect::<Result<Vec<bool>>>()?;
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
            disk: Disk::meanwhile(self.syncs()),
        };
        if !todo.is_empty() {
            stage.run(&cpu, processors)?;
        }
        stage.disk.finish()?;
        let mut unreadable = stage.unreadable.into_inner().unwrap_or_else(PoisonError::into_inner);
        unreadable.sort();
        let reasons = unreadable.into_iter().map(|(i, reason)| (self.photographs()[i].name.clone(), reason));
        let unreadable: Vec<_> = reasons.collect();
        Ok(Extracted {
            searched: todo.len() - unreadable.len(),
            present: mine.len() - todo.len(),
            unreadable,
        })
    }

    /// What is known of the photograph of this index (its number less one).
    ///
    /// # Errors
    /// [`Error::Io`] when its file cannot be read, [`Error::Format`] when it is damaged.
    pub fn features(&self, index: usize) -> Result<PhotographFeatures> {
        let path = self.features_path(index);
        Ok(match self.stored(index)? {
            Found::Missing => PhotographFeatures::Missing,
            stored => match stored.or_made_by("features", &path)?.outcome {
                Ok(features) => PhotographFeatures::Found(features),
                Err(reason) => PhotographFeatures::Unreadable(reason),
            },
        })
    }

    /// Takes features that were found elsewhere for the photograph of this index (its number less one), in pixels of
    /// the photograph: [`extract`](Self::extract) then finds it done. What stood there is replaced.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for descriptors that are not 128 bytes for each keypoint, and for an index that is no
    /// photograph's; [`Error::Io`].
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
        let path = self.path_of(index);
        let bytes = std::fs::read(&path).map_err(|e| Error::io(&path, e))?;
        let stored = Stored { content: content_hash(&bytes), outcome: Ok(features.clone()) };
        self.write_features(&Disk::at_once(self.syncs()), index, &stored)
    }

    fn write_features(&self, disk: &Disk, index: usize, stored: &Stored) -> Result<()> {
        let made_from = self.features_fingerprint(&self.photographs()[index]);
        record::write(disk, &self.features_path(index), Kind::Features, made_from, &[&encode(stored)])
    }

    pub(super) fn stored(&self, index: usize) -> Result<Found<Stored>> {
        read(&self.features_path(index), self.features_fingerprint(&self.photographs()[index]))
    }

    /// The mask of a photograph.
    fn mask_path(&self, photograph: &Photograph) -> Option<PathBuf> {
        let folder = self.options().features.masks.as_ref()?;
        let appended = folder.join(format!("{}.png", photograph.name));
        let replaced = folder.join(&photograph.name).with_extension("png");
        [appended, replaced].into_iter().find(|path| path.exists())
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
    /// Where features are written to.
    disk: Disk,
}

/// A photograph that was read, ready to be searched.
struct Picture {
    index: usize,
    content: u64,
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
        self.on_gpus(cpu.threads(), &gpus)
    }

    /// The next photograph, read; none when all are taken.
    fn read_next(&self) -> Option<Result<Option<Picture>>> {
        let index = *self.todo.get(self.next.fetch_add(1, Ordering::Relaxed))?;
        Some(self.read(index))
    }

    /// A photograph, or nothing where it cannot be read, which is recorded.
    fn read(&self, index: usize) -> Result<Option<Picture>> {
        let path = self.collection.path_of(index);
        let bytes = match record::content(&path) {
            Ok(Found::Whole(bytes)) => bytes,
            Ok(Found::Missing) => {
                return self.set_aside(index, 0, "is no longer there".into()).map(|()| None);
            }
            Ok(Found::Unfit(reason)) => return self.set_aside(index, 0, reason).map(|()| None),
            Err(Error::Io { source, .. }) => {
                return self.set_aside(index, 0, source.to_string()).map(|()| None);
            }
            Err(other) => return Err(other),
        };
        let content = content_hash(&bytes);
        let photograph = &self.collection.photographs()[index];
        if bytes.len() as u64 != photograph.bytes {
            return Err(Error::Mismatch(format!(
                "{} has changed since the scan; put it back, or name another work folder",
                path.display()
            )));
        }
        match self.picture(index, content, &bytes) {
            Ok(picture) => Ok(Some(picture)),
            // The name of the file goes before; the reason stays.
            Err(Error::Format { reason, .. }) => self.set_aside(index, content, reason).map(|()| None),
            Err(other) => self.set_aside(index, content, other.to_string()).map(|()| None),
        }
    }

    fn picture(&self, index: usize, content: u64, bytes: &[u8]) -> Result<Picture> {
        let cpu = &Cpu::sequential();
        let (options, limits) = (&self.collection.options().features, self.collection.limits());
        let path = self.collection.path_of(index);
        let image = image::decode_grey(bytes, &path, limits)?;
        let size = image.size();
        let mask = self.collection.mask_path(&self.collection.photographs()[index]);
        let mask = mask.map(|path| read_mask(&path, size, limits, cpu)).transpose()?;
        let prepared = image::prepare_owned(image, mask.as_ref().map(Image::view), Range::Auto, cpu)?;
        let holes = prepared.mask;
        let image = prepared.image.into_image();
        let mask = match (mask, holes) {
            (Some(mask), Some(holes)) => Some(both(mask, &holes)),
            (mask, holes) => mask.or(holes),
        };
        let to = size.at_most(options.longest_side as usize);
        if to == size {
            return Ok(Picture { index, content, size, image, mask });
        }
        let image = for_any_view!(image.view(), view => shrink(view, to, cpu)?.into());
        // A pixel counts where all that it covers does.
        let mask = mask.map(|mask| -> Result<_> {
            let share = shrink(mask.view(), to, cpu)?;
            Ok(Image::from_fn(to, |x, y| if share.row(y)[x] == 255 { 255 } else { 0 }))
        });
        Ok(Picture { index, content, size, image, mask: mask.transpose()? })
    }

    /// Records that a photograph cannot be read.
    fn set_aside(&self, index: usize, content: u64, reason: String) -> Result<()> {
        self.write(index, &Stored { content, outcome: Err(reason.clone()) })?;
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).push((index, reason));
        Ok(())
    }

    fn keep(&self, picture: &Picture, found: Features) -> Result<()> {
        let stored = Stored { content: picture.content, outcome: Ok(picture.in_photograph(found)) };
        self.write(picture.index, &stored)
    }

    fn write(&self, index: usize, stored: &Stored) -> Result<()> {
        self.collection.write_features(&self.disk, index, stored)?;
        self.watched.advance(1);
        Ok(())
    }

    /// The features of one photograph; none where the detector cannot take it, which is recorded.
    fn found(&self, picture: &Picture, finder: &Finder) -> Result<Option<Features>> {
        match finder.detect(&picture.image, picture.mask.as_ref().map(Image::view)) {
            Ok(found) => Ok(Some(found)),
            // Of another form, or too large.
            Err(e @ (Error::Image(_) | Error::Mismatch(_) | Error::Memory { .. })) => {
                self.set_aside(picture.index, picture.content, e.to_string()).map(|()| None)
            }
            Err(other) => Err(other),
        }
    }

    /// Every thread reads and searches photographs of its own; fewer photographs than threads share the threads.
    fn on_cpu(&self, cpu: &Cpu) -> Result<()> {
        let workers = cpu.threads().min(self.todo.len());
        let threads = cpu.threads() / workers.max(1);
        let work = |stop: &Stop| -> Result<()> {
            let cpu = if threads > 1 { Cpu::with_threads(threads)? } else { Cpu::sequential() };
            let finder = self.detector.open(&cpu.into())?;
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
        side_by_side((0..workers).map(|_| Box::new(work) as _).collect())
    }

    /// Threads read, GPUs search, other threads write.
    fn on_gpus(&self, threads: usize, gpus: &[&Processor]) -> Result<()> {
        let readers = threads.min(self.todo.len()).max(1);
        let (to_search, pictures) = sync_channel(threads + BATCH * gpus.len());
        let (to_write, found) = sync_channel::<(Picture, Features)>(threads.max(2 * BATCH));
        let (pictures, found) = (Mutex::new(pictures), Mutex::new(found));
        let mut jobs: Vec<Job<'_>> = Vec::new();
        for _ in 0..readers {
            let to_search = to_search.clone();
            jobs.push(Box::new(move |stop| self.read_all(stop, &to_search)));
        }
        drop(to_search);
        for processor in gpus {
            let (pictures, to_write) = (&pictures, to_write.clone());
            jobs.push(Box::new(move |stop| {
                if let Err(error) = self.search_all(stop, processor, pictures, &to_write) {
                    stop.because(error);
                }
                for_each_of(pictures, stop, |_| Ok(()));
                Ok(())
            }));
        }
        drop(to_write);
        for _ in 0..threads.clamp(1, 4) {
            let found = &found;
            jobs.push(Box::new(move |stop| {
                for_each_of(found, stop, |(picture, features)| self.keep(&picture, features));
                Ok(())
            }));
        }
        side_by_side(jobs)
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

/// The mask in the file at `path`: 255 where the image counts.
fn read_mask(path: &Path, size: Size, limits: &ReadOptions, cpu: &Cpu) -> Result<Image<u8>> {
    let mask = image::read_grey(path, limits, cpu)?;
    if mask.size() != size {
        return Err(Error::Mismatch(format!(
            "the mask {} is {}, its image {size}",
            path.display(),
            mask.size()
        )));
    }
    fn counts<T: Pixel>(mask: ImageView<'_, T>) -> Image<u8> {
        Image::from_fn(mask.size(), |x, y| if mask.row(y)[x].to_f32() > 0.0 { 255 } else { 0 })
    }
    Ok(for_any_view!(mask.view(), view => counts(view)))
}

/// Where both masks count.
fn both(mut a: Image<u8>, b: &Image<u8>) -> Image<u8> {
    a.data_mut().iter_mut().zip(b.data()).for_each(|(a, b)| *a &= *b);
    a
}

pub(super) fn encode(stored: &Stored) -> Vec<u8> {
    let mut bytes = stored.content.to_le_bytes().to_vec();
    let features = match &stored.outcome {
        Ok(features) => features,
        Err(reason) => {
            bytes.push(0);
            bytes.extend_from_slice(reason.as_bytes());
            return bytes;
        }
    };
    let descriptors: &[u8] = match &features.descriptors {
        Descriptors::U8(values) => values,
        Descriptors::F32(_) => &[],
    };
    bytes.reserve(13 + features.len() * KEYPOINT + descriptors.len());
    bytes.push(1);
    for n in [features.image.width, features.image.height, features.len()] {
        bytes.extend_from_slice(&(n as u32).to_le_bytes());
    }
    for k in &features.keypoints {
        for v in [k.x, k.y, k.scale, k.angle, k.response] {
            bytes.extend_from_slice(&v.to_le_bytes());
        }
        bytes.extend_from_slice(&[k.sign as u8, k.octave as u8, k.layer]);
    }
    bytes.extend_from_slice(descriptors);
    bytes
}

/// Reads a file of features.
pub(super) fn read(path: &Path, made_from: u64) -> Result<Found<Stored>> {
    let decoded = record::read(path, Kind::Features, made_from)?.map(|payload| decode(&payload));
    Ok(match decoded {
        Found::Whole(None) => Found::Unfit("holds no features".into()),
        Found::Whole(Some(stored)) => Found::Whole(stored),
        Found::Missing => Found::Missing,
        Found::Unfit(reason) => Found::Unfit(reason),
    })
}

pub(super) fn decode(payload: &[u8]) -> Option<Stored> {
    let mut fields = Fields(payload);
    let content = fields.u64()?;
    if fields.u8()? == 0 {
        return Some(Stored { content, outcome: Err(String::from_utf8_lossy(fields.0).into_owned()) });
    }
    let image = Size::new(fields.u32()? as usize, fields.u32()? as usize);
    let count = fields.u32()? as usize;
    let mut keypoints = Fields(fields.take(count.checked_mul(KEYPOINT)?)?);
    let keypoints = (0..count).map(|_| keypoint(&mut keypoints)).collect::<Option<Vec<_>>>()?;
    let dimension = DIMENSION;
    if fields.0.len() != count.checked_mul(dimension)? {
        return None;
    }
    let descriptors = Descriptors::U8(fields.0.to_vec());
    Some(Stored { content, outcome: Ok(Features { keypoints, descriptors, dimension, image }) })
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
        for outcome in [Ok(features), Err("damaged".to_owned())] {
            let stored = Stored { content: 7, outcome };
            let bytes = encode(&stored);
            assert_eq!(decode(&bytes), Some(stored.clone()), "as written");
            if stored.outcome.is_ok() {
                assert!((0..bytes.len()).all(|end| decode(&bytes[..end]).is_none()), "cut off");
            }
        }
    }
}
