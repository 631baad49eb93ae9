//! The search of photographs for features.
//!
//! On a CPU every thread reads and searches photographs of its own. With GPUs the threads read, every GPU has a thread
//! that feeds it with several photographs of one size at a time, and up to four threads write. Channels of fixed length
//! between them bound the photographs in memory: about three for each thread and two batches for each GPU.

use super::file::{Origin, Readable};
use super::given::Given;
use super::{Collection, Sources};
use crate::collection::workers::{Job, Stop, for_each_of, lock, side_by_side};
use crate::device::{Cpu, Processor};
use crate::feature::sift::Sift;
use crate::feature::{Descriptors, Detector, Features, Finder, Keypoint};
use crate::files::Disk;
use crate::filter::shrink::shrink;
use crate::image::{self, AnyImage, Image, Mask, Prepared, Range, Size};
use crate::register::{Modality, Structure};
use crate::{Error, Result, by_pixel};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Photographs that a GPU searches at a time. The number is fixed, because a GPU keeps memory for one number.
const BATCH: usize = 8;

/// The search of some photographs.
pub(super) struct Extraction<'c> {
    collection: &'c Collection,
    detector: Detector,
    /// Describes corners of structure, where photographs are of different sensors.
    sift: Option<Sift>,
    /// Counts the photographs that are done.
    watched: Cpu,
    /// The index in `todo` of the next photograph.
    next: AtomicUsize,
    /// The photographs to search.
    todo: &'c [usize],
    unreadable: Mutex<Vec<(usize, String)>>,
    /// Photographs that are to be tried again.
    failed: Mutex<Vec<(usize, String)>>,
    /// Writes the files of features.
    disk: Disk,
}

/// A photograph that has been read and can be searched.
struct Photograph {
    index: usize,
    origin: Origin,
    /// The size of the photograph.
    size: Size,
    /// The image that is searched, smaller than the photograph if that is large.
    image: AnyImage,
    mask: Option<Image<u8>>,
}

impl Photograph {
    /// Whether a GPU can search both in one batch.
    fn is_like(&self, other: &Self) -> bool {
        let same_type = std::mem::discriminant(&self.image) == std::mem::discriminant(&other.image);
        same_type && self.image.size() == other.image.size() && self.mask.is_none() && other.mask.is_none()
    }

    /// Its structure with the corners, in pixels of the image; `None` if it is too small.
    fn structure(&self, cpu: &Cpu) -> Result<Option<(Structure, Vec<Keypoint>)>> {
        let structure = Structure::of((self.image.view(), self.mask.as_ref().map(Image::view)), cpu)?;
        structure.map(|of| Ok((of.corners(cpu)?, of))).transpose().map(|of| of.map(|(k, of)| (of, k)))
    }

    /// Features found in the image, in pixels of the photograph.
    fn in_full_size(&self, mut found: Features) -> Features {
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

impl Collection {
    /// The structure of a photograph, and its corners in pixels of the photograph; `None` for one that is too small.
    pub(in crate::collection) fn structure(
        &self,
        index: usize,
        cpu: &Cpu,
    ) -> Result<Option<(Structure, Features)>> {
        let sources = self.sources(index).map_err(|reason| Error::format(self.path_of(index), reason))?;
        let photograph = self.decode(index, &sources)?;
        let Some((structure, keypoints)) = photograph.structure(cpu)? else { return Ok(None) };
        let image = photograph.image.size();
        let corners = Features { keypoints, descriptors: Descriptors::U8(vec![]), dimension: 0, image };
        Ok(Some((structure, photograph.in_full_size(corners))))
    }

    fn decode(&self, index: usize, sources: &Sources) -> Result<Photograph> {
        let cpu = &Cpu::sequential();
        // COLMAP reads pixels as they are stored, too.
        let limits = &self.limits().with_orient(false);
        let image = image::decode_grey_alpha(&sources.photograph, self.path_of(index), limits)?;
        let (size, origin) = (image.image.size(), sources.origin.clone());
        let mask = sources.beside.as_ref();
        let mask = mask.map(|(path, bytes)| Mask::decode(bytes, path, size, limits, cpu)).transpose()?;
        let Prepared { image, mask } = image.prepared(mask, Range::Auto, cpu)?;
        let (image, mask) = (image.into_image(), mask.into_image());
        let to = size.at_most(self.options().features.longest_side as usize);
        if to == size {
            return Ok(Photograph { index, origin, size, image, mask });
        }
        let image = by_pixel!(image.view(), view => shrink(view, to, cpu)?.into());
        // A pixel counts if all pixels count that it covers.
        let mask = mask.map(|mask| -> Result<_> {
            let share = shrink(mask.view(), to, cpu)?;
            Ok(Image::from_fn(to, |x, y| if share.row(y)[x] == 255 { 255 } else { 0 }))
        });
        Ok(Photograph { index, origin, size, image, mask: mask.transpose()? })
    }
}

impl<'c> Extraction<'c> {
    pub(super) fn new(collection: &'c Collection, todo: &'c [usize], cpu: &Cpu) -> Result<Self> {
        let sift = collection.options().features.sift;
        let cross = collection.options().modality == Modality::Cross;
        Ok(Self {
            collection,
            detector: Detector::Sift(sift),
            sift: cross.then(|| Sift::new(sift)).transpose()?,
            watched: cpu.begin_task("features", todo.len()),
            next: AtomicUsize::new(0),
            todo,
            unreadable: Mutex::default(),
            failed: Mutex::default(),
            disk: Disk::meanwhile(collection.syncs()),
        })
    }

    /// Searches all photographs. Returns those that cannot be read and those that are to be tried again, with reasons.
    pub(super) fn run(self, cpu: &Cpu, processors: &[Processor]) -> Result<[Vec<(String, String)>; 2]> {
        if !self.todo.is_empty() {
            self.search(cpu, processors)?;
        }
        self.disk.finish()?;
        Ok([self.unreadable, self.failed].map(|reasons| {
            let mut reasons = reasons.into_inner().unwrap_or_else(PoisonError::into_inner);
            reasons.sort();
            let named =
                |(i, reason): (usize, String)| (self.collection.photographs()[i].name.clone(), reason);
            reasons.into_iter().map(named).collect()
        }))
    }

    fn search(&self, cpu: &Cpu, processors: &[Processor]) -> Result<()> {
        if self.collection.options().features.given.is_some() {
            return self.take_given(cpu);
        }
        let gpus: Vec<&Processor> = processors.iter().filter(|p| p.may_have_gpu()).collect();
        gpus.iter().for_each(|gpu| gpu.expect_pictures(self.todo.len()));
        let mut finders = gpus.iter().map(|gpu| self.detector.open(gpu)).collect::<Result<Vec<Finder>>>()?;
        let settled = || finders.iter().map(Finder::is_settled).collect::<Result<Vec<bool>>>();
        // The search on the device gets its error again.
        let preparing = || settled().is_ok_and(|settled| settled.contains(&false));
        if preparing() {
            gpus.iter().for_each(|gpu| gpu.fall_back_not_ready());
            // Where none of them can be used, the CPU goes on.
            self.on_cpu(cpu, &|| preparing() || !gpus.iter().any(|gpu| gpu.may_have_gpu()))?;
        }
        // A GPU that was to be opened may not be there.
        finders.retain(Finder::may_have_gpu);
        match finders.is_empty() {
            _ if self.next.load(Ordering::Relaxed) >= self.todo.len() => Ok(()),
            true => self.on_cpu(cpu, &|| true),
            false => self.on_gpus(cpu, &finders),
        }
    }

    /// Reads the next photograph; `None` when all are taken.
    fn read_next(&self) -> Option<Result<Option<Photograph>>> {
        self.next_by(|index, sources| self.collection.decode(index, sources))
    }

    /// The result of `decode` for the next photograph; `None` when all are taken.
    fn next_by<T>(&self, decode: impl Fn(usize, &Sources) -> Result<T>) -> Option<Result<Option<T>>> {
        let index = *self.todo.get(self.next.fetch_add(1, Ordering::Relaxed))?;
        Some(self.read(index, decode))
    }

    /// The result of `decode` for a photograph. If that fails, records the error and returns `None`.
    fn read<T>(&self, index: usize, decode: impl Fn(usize, &Sources) -> Result<T>) -> Result<Option<T>> {
        let sources = match self.collection.sources(index) {
            Ok(sources) => sources,
            Err(reason) => {
                lock(&self.failed).push((index, reason));
                self.watched.leave_out(1);
                self.watched.advance(1);
                return Ok(None);
            }
        };
        match decode(index, &sources) {
            Ok(photograph) => Ok(Some(photograph)),
            // The reason alone: reports put the photograph's name before it.
            Err(Error::Format { reason, .. }) => {
                self.set_aside(index, &sources.origin, reason).map(|()| None)
            }
            Err(other) => self.set_aside(index, &sources.origin, other.to_string()).map(|()| None),
        }
    }

    /// Takes the features that are given for the photographs.
    fn take_given(&self, cpu: &Cpu) -> Result<()> {
        let given = Given::open(&self.collection.options().features)?;
        let work = |stop: &Stop| -> Result<()> {
            while !stop.is_set()
                && let Some(photograph) = self.next_by(|index, sources| self.given(index, sources, &given))
            {
                if let Some((index, origin, features)) = photograph? {
                    self.write(index, &origin, &Ok(features))?;
                }
            }
            Ok(())
        };
        side_by_side(cpu, (0..cpu.threads().min(self.todo.len())).map(|_| Box::new(work) as _).collect())
    }

    /// The features that are given for a photograph.
    fn given(&self, index: usize, sources: &Sources, given: &Given) -> Result<(usize, Origin, Features)> {
        let size = self.collection.size_of(index, sources)?;
        let name = &self.collection.photographs()[index].name;
        let features = given.features_of(name, sources.beside.as_ref(), size)?;
        Ok((index, sources.origin.clone(), features))
    }

    /// Records that a photograph cannot be read.
    fn set_aside(&self, index: usize, origin: &Origin, reason: String) -> Result<()> {
        self.watched.leave_out(1);
        self.write(index, origin, &Err(reason.clone()))?;
        lock(&self.unreadable).push((index, reason));
        Ok(())
    }

    fn keep(&self, photograph: &Photograph, mut found: Features) -> Result<()> {
        if let Some(sift) = &self.sift
            && let Some((_, corners)) = photograph.structure(&Cpu::sequential())?
        {
            let (image, cpu) = (photograph.image.view(), Cpu::sequential());
            let (more, _) = by_pixel!(image, view => sift.describe(view, &corners, &cpu)?);
            found.keypoints.extend(more.keypoints);
            if let (Descriptors::U8(all), Descriptors::U8(more)) = (&mut found.descriptors, more.descriptors)
            {
                all.extend(more);
            }
        }
        self.write(photograph.index, &photograph.origin, &Ok(photograph.in_full_size(found)))
    }

    fn write(&self, index: usize, origin: &Origin, outcome: &Readable<Features>) -> Result<()> {
        self.collection.write_features(&self.disk, index, origin, outcome)?;
        self.watched.advance(1);
        Ok(())
    }

    /// The features of one photograph. If the detector cannot take it, records that and returns `None`.
    fn found(&self, photograph: &Photograph, finder: &Finder) -> Result<Option<Features>> {
        match finder.detect(&photograph.image, photograph.mask.as_ref().map(Image::view)) {
            Ok(found) => Ok(Some(found)),
            // The image has an unsupported form or is too large.
            Err(e @ (Error::Image(_) | Error::Mismatch(_) | Error::Memory { .. })) => {
                self.set_aside(photograph.index, &photograph.origin, e.to_string()).map(|()| None)
            }
            Err(other) => Err(other),
        }
    }

    /// Every thread reads and searches photographs of its own, as long as `goes_on` says so. If there are fewer
    /// photographs than threads, each gets several.
    fn on_cpu(&self, cpu: &Cpu, goes_on: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        let workers = cpu.threads().min(self.todo.len());
        let threads = cpu.threads() / workers.max(1);
        let work = |stop: &Stop| -> Result<()> {
            let finder = self.detector.open(&Cpu::with_threads(threads.max(1))?.ending_with(cpu).into())?;
            while !stop.is_set()
                && goes_on()
                && let Some(photograph) = self.read_next()
            {
                if let Some(photograph) = photograph?
                    && let Some(found) = self.found(&photograph, &finder)?
                {
                    self.keep(&photograph, found)?;
                }
            }
            Ok(())
        };
        side_by_side(cpu, (0..workers).map(|_| Box::new(work) as _).collect())
    }

    /// Threads read, GPUs search, and other threads write.
    fn on_gpus(&self, cpu: &Cpu, finders: &[Finder]) -> Result<()> {
        let threads = cpu.threads();
        let readers = threads.min(self.todo.len()).max(1);
        let (to_search, photographs) = sync_channel(threads + BATCH * finders.len());
        let (to_write, found) = sync_channel::<(Photograph, Features)>(threads.max(2 * BATCH));
        // Only the receiving jobs own these ends, so that sending fails once they have ended for whatever reason.
        let (photographs, found) = (Arc::new(Mutex::new(photographs)), Arc::new(Mutex::new(found)));
        let mut jobs: Vec<Job<'_>> = Vec::new();
        for _ in 0..readers {
            let to_search = to_search.clone();
            jobs.push(Box::new(move |stop| self.read_all(stop, &to_search)));
        }
        drop(to_search);
        for finder in finders {
            let (photographs, to_write) = (photographs.clone(), to_write.clone());
            jobs.push(Box::new(move |stop| self.search_all(stop, finder, &photographs, &to_write)));
        }
        for _ in 0..threads.clamp(1, 4) {
            let found = found.clone();
            let keep = |(photograph, features): (Photograph, Features)| self.keep(&photograph, features);
            jobs.push(Box::new(move |stop| for_each_of(&found, stop, keep)));
        }
        drop((photographs, to_write, found));
        side_by_side(cpu, jobs)
    }

    /// Reads photographs until none are left or the jobs that search them have ended.
    fn read_all(&self, stop: &Stop, to_search: &SyncSender<Photograph>) -> Result<()> {
        while !stop.is_set()
            && let Some(photograph) = self.read_next()
        {
            if let Some(photograph) = photograph?
                && to_search.send(photograph).is_err()
            {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Searches photographs on one GPU as they become ready: a batch if enough alike are ready, otherwise one.
    fn search_all(
        &self,
        stop: &Stop,
        finder: &Finder,
        photographs: &Mutex<Receiver<Photograph>>,
        to_write: &SyncSender<(Photograph, Features)>,
    ) -> Result<()> {
        let mut ready: Vec<Photograph> = Vec::new();
        while !stop.is_set() && take_ready(photographs, &mut ready) {
            let alike = ready.iter().take_while(|p| ready[0].is_like(p)).count();
            if alike < BATCH || finder.parts() > 1 {
                let photograph = ready.remove(0);
                // Photographs with masks, or without enough others of their size, are searched one by one.
                if let Some(found) = self.found(&photograph, finder)?
                    && to_write.send((photograph, found)).is_err()
                {
                    return Ok(());
                }
                continue;
            }
            let batch: Vec<Photograph> = ready.drain(..BATCH).collect();
            let found = finder.detect_batch(batch.iter().map(|p| &p.image));
            for (photograph, found) in batch.into_iter().zip(found) {
                if to_write.send((photograph, found?)).is_err() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Fills `ready` up to a batch with the photographs that have been read, and waits only if it would be empty. Returns
/// false at the end.
fn take_ready(photographs: &Mutex<Receiver<Photograph>>, ready: &mut Vec<Photograph>) -> bool {
    let photographs = lock(photographs);
    if ready.is_empty() {
        ready.extend(photographs.recv().ok());
    }
    while ready.len() < BATCH {
        match photographs.try_recv() {
            Ok(photograph) => ready.push(photograph),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
        }
    }
    !ready.is_empty()
}
