//! The search of photographs for features.
//!
//! On a CPU every thread reads and searches photographs of its own. With GPUs the threads read, every GPU has a thread
//! that feeds it with several photographs of one size at a time, and up to four threads write. Queues of fixed length
//! between them bound the photographs in memory: about three for each thread and two batches for each GPU.
//!
//! Where CPU and GPU share the work, the CPU searches alone until a GPU is open and its kernels are compiled. Searches
//! that are unfinished then are cancelled, and their photographs queued for the GPU. Afterwards a thread searches a
//! photograph itself if, at the speeds measured so far, it will finish before the GPU has emptied its queue.

use super::file::{Origin, Readable};
use super::given::Given;
use super::{CHANGED, Collection, Extracted, Sources};
use crate::collection::workers::{Job, Pace, Stop, for_each_of, side_by_side};
use crate::device::{Cancel, Computing, Cpu, Processor};
use crate::feature::sift::Sift;
use crate::feature::{Descriptors, Detector, Features, Finder, Keypoint};
use crate::files::Disk;
use crate::filter::shrink::shrink;
use crate::image::{self, AnyImage, Image, Mask, Prepared, Range, Size};
use crate::register::{Modality, Structure};
use crate::{Error, ErrorKind, Result, by_pixel};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tiepoint_gpu::lock;

/// Photographs that a GPU searches at a time: a fixed number, because the memory it keeps fits batches of one length.
const BATCH: usize = 8;

/// The interval at which threads check whether a GPU is open.
const LOOK: Duration = Duration::from_millis(5);

/// The time that compiled kernels take to load while other work runs.
const LOADED: Duration = Duration::from_millis(200);

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
    /// Photographs that must be tried again, and why.
    failed: Mutex<Vec<(usize, String)>>,
    /// Photographs with given features that are not stored upright.
    turned: Mutex<Vec<usize>>,
    /// Writes the files of features.
    disk: Disk,
}

/// Whether an error is one of the system, which may not happen again on the next attempt.
fn may_pass(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::HostMemory)
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
        structure.map(|of| of.corners(cpu).map(|corners| (of, corners))).transpose()
    }

    /// Features found in the image, in pixels of the photograph.
    fn in_full_size(&self, mut found: Features) -> Features {
        let searched = self.image.size();
        if searched != self.size && !searched.is_empty() {
            let Size { width, height } = self.size;
            let (fx, fy) = (width as f32 / searched.width as f32, height as f32 / searched.height as f32);
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
    pub(crate) fn structure(&self, index: usize, cpu: &Cpu) -> Result<Option<(Structure, Features)>> {
        let sources = self.sources(index).map_err(|reason| Error::format(self.path_of(index), reason))?;
        let then = self.origin(index)?.map(|origin| origin.photograph.content);
        if then.is_some_and(|content| content != sources.origin.photograph.content) {
            return Err(Error::format(self.path_of(index), CHANGED));
        }
        let photograph = self.decode(index, &sources)?;
        let Some((structure, keypoints)) = photograph.structure(cpu)? else { return Ok(None) };
        let image = photograph.image.size();
        let corners = Features::without_descriptors(keypoints, image);
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
        // A pixel counts if all pixels that it covers count.
        let mask = mask.map(|mask| -> Result<_> {
            let share = shrink(mask.view(), to, cpu)?;
            Ok(Image::from_fn(to, |x, y| if share.row(y)[x] == 255 { 255 } else { 0 }))
        });
        Ok(Photograph { index, origin, size, image, mask: mask.transpose()? })
    }
}

impl<'c> Extraction<'c> {
    /// Searches these photographs, and tells what it found of them.
    pub(super) fn run(
        collection: &'c Collection,
        todo: &'c [usize],
        cpu: &Cpu,
        processors: &[Processor],
    ) -> Result<Extracted> {
        let sift = collection.options().features.sift;
        let detector = Detector::Sift(sift);
        let cross = collection.options().modality == Modality::Cross;
        let sift = cross.then(|| Sift::new(sift)).transpose()?;
        let (watched, disk) = (cpu.begin_task("features", todo.len()), Disk::meanwhile(collection.syncs()));
        let (next, unreadable, failed, turned) = Default::default();
        let all = Self { collection, detector, sift, watched, next, todo, unreadable, failed, turned, disk };
        if !todo.is_empty() {
            all.search(cpu, processors)?;
        }
        all.disk.finish()?;
        let name = |i: usize| collection.photographs()[i].name.clone();
        let mut turned = all.turned.into_inner().unwrap_or_else(PoisonError::into_inner);
        turned.sort_unstable();
        let turned = turned.into_iter().map(name).collect();
        let [unreadable, failed] = [all.unreadable, all.failed].map(|reasons| {
            let mut reasons = reasons.into_inner().unwrap_or_else(PoisonError::into_inner);
            reasons.sort();
            reasons.into_iter().map(|(i, reason)| (name(i), reason)).collect::<Vec<_>>()
        });
        let searched = todo.len() - unreadable.len() - failed.len();
        let by_sift = searched > 0 && collection.options().features.given.is_none();
        Ok(Extracted { searched, unreadable, failed, turned, by_sift, ..Extracted::default() })
    }

    fn search(&self, cpu: &Cpu, processors: &[Processor]) -> Result<()> {
        if self.collection.options().features.given.is_some() {
            return self.take_given(cpu);
        }
        let gpus: Vec<&Processor> = processors.iter().filter(|p| p.may_have_gpu()).collect();
        gpus.iter().for_each(|gpu| gpu.expect_pictures(self.todo.len()));
        let finders = gpus.iter().map(|gpu| self.detector.open(gpu)).collect::<Result<Vec<Finder>>>()?;
        let threads = cpu.threads();
        let readers = threads.min(self.todo.len());
        let writers = if gpus.is_empty() { 0 } else { threads.clamp(1, 4) };
        let shared = &Shared::new(&gpus, readers, threads + BATCH * gpus.len());
        let (to_write, found) = sync_channel::<(Photograph, Features)>(threads.max(2 * BATCH));
        // Only the writing jobs hold the receiver, so that sending fails once they have ended for whatever reason.
        let found = Arc::new(Mutex::new(found));
        let handed_over = &cpu.inner_cancel();
        let mut jobs: Vec<Job<'_>> = Vec::new();
        for number in 0..readers {
            jobs.push(Box::new(move |stop| {
                let _reading = Reading(shared);
                if number >= cpu.threads_beside_start() {
                    self.wait_for_start(cpu, shared, stop);
                }
                // If there are fewer photographs than threads, each gets several.
                let cpu = Cpu::with_threads((threads / readers).max(1))?.ending_with(cpu);
                self.read_all(stop, &cpu, shared, handed_over.as_ref())
            }));
        }
        for (gpu, finder) in gpus.iter().zip(&finders) {
            let to_write = to_write.clone();
            // If only a GPU was requested, it is open before the first photograph is read, and does all of the work.
            let known = shared.opened(gpu, finder)?;
            jobs.push(Box::new(move |stop| {
                if known.map_or_else(|| shared.wait_for(gpu, finder, stop), Ok)? {
                    handed_over.iter().for_each(Cancel::cancel);
                    self.search_all(stop, finder, shared, &to_write)?;
                }
                Ok(())
            }));
        }
        for _ in 0..writers {
            let found = found.clone();
            let keep = |(photograph, features): (Photograph, Features)| self.keep(&photograph, features);
            jobs.push(Box::new(move |stop| for_each_of(&found, stop, keep)));
        }
        drop((to_write, found));
        side_by_side(cpu, jobs)
    }

    /// Waits while a driver starts, and then until its GPU can search, which takes a moment if its kernels are compiled.
    fn wait_for_start(&self, cpu: &Cpu, shared: &Shared<'_>, stop: &Stop) {
        let mut since = Instant::now();
        while since.elapsed() < LOADED && !shared.is_open() && self.is_left() && !stop.is_set() {
            if cpu.is_beside_start() {
                since = Instant::now();
            }
            thread::sleep(LOOK);
        }
    }

    fn is_left(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.todo.len()
    }

    /// The number of the next photograph; `None` when all are taken.
    fn next(&self) -> Option<usize> {
        self.todo.get(self.next.fetch_add(1, Ordering::Relaxed)).copied()
    }

    /// The result of `decode` for a photograph. If that fails, records the error and returns `None`; an error of the file that
    /// gives the features of all photographs is returned.
    fn read<T>(&self, index: usize, decode: impl Fn(&Sources) -> Result<T>) -> Result<Option<T>> {
        let sources = match self.collection.sources(index) {
            Ok(sources) => sources,
            Err(reason) => {
                self.postpone(index, reason);
                return Ok(None);
            }
        };
        match decode(&sources) {
            Ok(photograph) => Ok(Some(photograph)),
            Err(error) if self.collection.is_of_all(&error) => Err(error),
            Err(error) if may_pass(&error) => {
                self.postpone(index, error.to_string());
                Ok(None)
            }
            // Reports put the photograph's name before the reason, which names its mask or its features.
            Err(Error::Format { path, reason }) => {
                let name = &self.collection.photographs()[index].name;
                let is_named = path == self.collection.path_of(index) || path == Path::new(name);
                let said = is_named || reason.contains(&*path.to_string_lossy());
                let reason = if said { reason } else { format!("{}: {reason}", path.display()) };
                self.set_aside(index, &sources.origin, reason).map(|()| None)
            }
            Err(other) => self.set_aside(index, &sources.origin, other.to_string()).map(|()| None),
        }
    }

    /// Takes the features that are given for the photographs.
    fn take_given(&self, cpu: &Cpu) -> Result<()> {
        let given = Given::open(self.collection.options())?;
        let work = |stop: &Stop| -> Result<()> {
            while !stop.is_set()
                && let Some(index) = self.next()
            {
                let found = self.read(index, |sources| {
                    let name = &self.collection.photographs()[index].name;
                    let find = |size| given.features_of(name, sources.beside.as_ref(), size);
                    let (found, turned) = self.collection.given(index, sources, find)?;
                    if turned {
                        lock(&self.turned).push(index);
                    }
                    Ok((sources.origin.clone(), found?))
                })?;
                if let Some((origin, features)) = found {
                    self.write(index, &origin, &Ok(features))?;
                }
            }
            Ok(())
        };
        side_by_side(cpu, (0..cpu.threads().min(self.todo.len())).map(|_| Box::new(work) as _).collect())
    }

    /// Records that a photograph must be tried again.
    fn postpone(&self, index: usize, reason: String) {
        lock(&self.failed).push((index, reason));
        self.watched.leave_out(1);
        self.watched.advance(1);
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
            Err(error) if may_pass(&error) => {
                self.postpone(photograph.index, error.to_string());
                Ok(None)
            }
            // The image has an unsupported form or is too large.
            Err(e @ (Error::Image(_) | Error::Mismatch(_) | Error::Memory { .. })) => {
                self.set_aside(photograph.index, &photograph.origin, e.to_string()).map(|()| None)
            }
            Err(other) => Err(other),
        }
    }

    /// Reads photographs until none are left. Each goes to the GPUs, or is searched on `cpu` where that is sooner; at the
    /// end also some that wait for the GPUs. What `cpu` searches when `to_gpus` is set goes to the GPUs.
    fn read_all(&self, stop: &Stop, cpu: &Cpu, shared: &Shared<'_>, to_gpus: Option<&Cancel>) -> Result<()> {
        let to_the_end = self.detector.open(&cpu.clone().into())?;
        let until_then = to_gpus.map(|cancel| cpu.clone().cancelled_by(cancel).into());
        let until_then = until_then.map(|cpu| self.detector.open(&cpu)).transpose()?;
        while !stop.is_set()
            && let Some(index) = self.next()
        {
            let decoded = self.read(index, |sources| self.collection.decode(index, sources))?;
            let Some(photograph) = decoded else { continue };
            let Some(photograph) = shared.offer(photograph, stop) else { continue };
            let finder = until_then.as_ref().filter(|_| !shared.is_open()).unwrap_or(&to_the_end);
            match self.search_here(&photograph, finder, shared) {
                Err(Error::Cancelled) if shared.is_open() => {
                    if let Some(photograph) = shared.offer(photograph, stop) {
                        self.search_here(&photograph, &to_the_end, shared)?;
                    }
                }
                searched => searched?,
            }
        }
        while !stop.is_set()
            && let Some(photograph) = shared.take_back()
        {
            self.search_here(&photograph, &to_the_end, shared)?;
        }
        Ok(())
    }

    /// Searches a photograph on the CPU.
    fn search_here(&self, photograph: &Photograph, finder: &Finder, shared: &Shared<'_>) -> Result<()> {
        let began = Instant::now();
        let found = self.found(photograph, finder)?;
        shared.on_cpu.add(1, began.elapsed());
        shared.gpus.iter().for_each(|gpu| gpu.count_computed(Computing::Cpu));
        found.map_or(Ok(()), |found| self.keep(photograph, found))
    }

    /// Searches photographs on one GPU as they become ready: a batch if enough alike are ready, otherwise one.
    fn search_all(
        &self,
        stop: &Stop,
        finder: &Finder,
        shared: &Shared<'_>,
        to_write: &SyncSender<(Photograph, Features)>,
    ) -> Result<()> {
        let mut ready: Vec<Photograph> = Vec::new();
        while shared.take(&mut ready, stop) {
            let alike = ready.iter().take_while(|p| ready[0].is_like(p)).count();
            let began = Instant::now();
            // Photographs with masks, or without enough others of their size, are searched one by one.
            let together = if alike < BATCH || finder.parts() > 1 { 1 } else { BATCH };
            let taken: Vec<Photograph> = ready.drain(..together).collect();
            let found: Vec<_> = match &taken[..] {
                [photograph] => vec![self.found(photograph, finder)?],
                batch => {
                    let found = finder.detect_batch(batch.iter().map(|p| &p.image));
                    found.into_iter().map(|found| found.map(Some)).collect::<Result<_>>()?
                }
            };
            shared.on_gpu.add(together, began.elapsed());
            lock(&shared.state).with_gpus -= together;
            for (photograph, found) in taken.into_iter().zip(found) {
                if let Some(found) = found
                    && to_write.send((photograph, found)).is_err()
                {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// How CPU and GPUs share the photographs.
struct Shared<'p> {
    gpus: &'p [&'p Processor],
    /// The most photographs that wait for the GPUs.
    room: usize,
    state: Mutex<State>,
    /// Notified when photographs are added or taken, a GPU is open, or a thread has read its last photograph.
    changed: Condvar,
    on_cpu: Pace,
    on_gpu: Pace,
}

struct State {
    /// Photographs queued for GPUs.
    waiting: VecDeque<Photograph>,
    /// Photographs that are being searched on GPUs.
    with_gpus: usize,
    /// GPUs that are open, with their kernels compiled, and since when one is.
    open: usize,
    since: Instant,
    /// Threads that still read photographs for the queue.
    reading: usize,
}

impl<'p> Shared<'p> {
    fn new(gpus: &'p [&'p Processor], reading: usize, room: usize) -> Self {
        let waiting = VecDeque::new();
        let state = Mutex::new(State { waiting, with_gpus: 0, open: 0, since: Instant::now(), reading });
        Self { gpus, room, state, changed: Condvar::new(), on_cpu: Pace::default(), on_gpu: Pace::default() }
    }

    fn is_open(&self) -> bool {
        lock(&self.state).open > 0
    }

    /// Whether a GPU can search; `None` while it is being opened or its kernels are being compiled.
    fn opened(&self, gpu: &Processor, finder: &Finder) -> Result<Option<bool>> {
        if !finder.is_settled()? {
            return Ok(None);
        }
        let is_there = gpu.may_have_gpu();
        if is_there {
            let mut state = lock(&self.state);
            (state.open, state.since) = (state.open + 1, Instant::now());
            self.changed.notify_all();
        }
        Ok(Some(is_there))
    }

    /// Waits until a GPU can search. False if there is none, or if all photographs are done before.
    fn wait_for(&self, gpu: &Processor, finder: &Finder, stop: &Stop) -> Result<bool> {
        gpu.fall_back_not_ready();
        loop {
            if let Some(is_there) = self.opened(gpu, finder)? {
                return Ok(is_there);
            }
            if stop.is_set() || lock(&self.state).reading == 0 {
                return Ok(false);
            }
            thread::sleep(LOOK);
        }
    }

    /// Gives a photograph to the GPUs, when there is room. Returns it if a thread of the CPU would be done with it
    /// sooner. If the work is stopped, the photograph is dropped.
    fn offer(&self, photograph: Photograph, stop: &Stop) -> Option<Photograph> {
        let mut photograph = Some(photograph);
        stop.wait_for(&self.state, &self.changed, |state| {
            if !self.pays_here(state) {
                if state.waiting.len() >= self.room {
                    return None;
                }
                state.waiting.extend(photograph.take());
                self.changed.notify_all();
            }
            Some(())
        })?;
        photograph
    }

    /// The photograph that would wait longest for the GPUs, if a thread of the CPU would be done with it sooner.
    fn take_back(&self) -> Option<Photograph> {
        let mut state = lock(&self.state);
        if self.pays_here(&state) { state.waiting.pop_back() } else { None }
    }

    /// Fills `ready` up to a batch with photographs that wait for a GPU; waits only if it is empty. False at the end.
    fn take(&self, ready: &mut Vec<Photograph>, stop: &Stop) -> bool {
        let taken = stop.wait_for(&self.state, &self.changed, |state| {
            let taken = state.waiting.len().min(BATCH - ready.len());
            state.with_gpus += taken;
            ready.extend(state.waiting.drain(..taken));
            (!ready.is_empty() || state.reading == 0).then_some(())
        });
        self.changed.notify_all();
        taken.is_some() && !ready.is_empty()
    }

    /// Whether a thread of the CPU searches a photograph before the GPUs are done with those that wait for them.
    fn pays_here(&self, state: &State) -> bool {
        if state.open == 0 {
            return true;
        }
        if !self.gpus.iter().any(|gpu| gpu.hands_over()) {
            return false;
        }
        let ahead = (state.waiting.len() + state.with_gpus) as f64 / state.open as f64;
        // The first batch of a GPU may take long.
        let on_gpu = self.on_gpu.seconds().unwrap_or(state.since.elapsed().as_secs_f64() / BATCH as f64);
        self.on_cpu.seconds().is_some_and(|on_cpu| ahead * on_gpu > on_cpu)
    }
}

/// Counts a thread as one that has read its last photograph, however it ends.
struct Reading<'s>(&'s Shared<'s>);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).reading -= 1;
        self.0.changed.notify_all();
    }
}
