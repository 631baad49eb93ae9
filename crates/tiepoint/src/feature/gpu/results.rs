//! The way of features from a device's lists to the host's memory.

use super::{GpuDescriptors, GpuFeatures, WORDS, from_words};
use crate::device::Cpu;
use crate::device::gpu::{Buffer, Commands, Gpu, Pinned};
use crate::feature::{Descriptors, Features, Keypoint};
use crate::image::Size;
use crate::{Error, Result};
use tiepoint_gpu::{Element, Mark};

/// What a search of some images of one size leaves in the device's memory.
#[derive(Clone, Debug)]
pub(crate) struct Lists<'d> {
    /// How many there are in every image: more than `capacity` where that was too small, and not all are there.
    pub(crate) counts: &'d Buffer<u32>,
    /// In their total order; those of image i begin at number i · `capacity`.
    pub(crate) keypoints: &'d Buffer<u32>,
    pub(crate) descriptors: &'d GpuDescriptors,
    pub(crate) dimension: usize,
    pub(crate) capacity: usize,
    /// Of the images.
    pub(crate) size: Size,
}

impl Lists<'_> {
    fn images(&self) -> usize {
        self.counts.len()
    }

    /// The first `count` features of the first image in memory of their own.
    ///
    /// # Errors
    /// [`Error::Device`] when it is too small.
    pub(crate) fn keep(&self, count: usize) -> Result<GpuFeatures> {
        let gpu = self.keypoints.gpu();
        let mut commands = Commands::new();
        let keypoints = first_of(self.keypoints, count * WORDS, &mut commands)?;
        let values = count * self.dimension;
        let descriptors = match self.descriptors {
            GpuDescriptors::U8(all) => GpuDescriptors::U8(first_of(all, values, &mut commands)?),
            GpuDescriptors::F32(all) => GpuDescriptors::F32(first_of(all, values, &mut commands)?),
        };
        gpu.run(&commands)?;
        let count = gpu.upload(&[count as u32])?;
        Ok(GpuFeatures { count, keypoints, descriptors, dimension: self.dimension, image: self.size })
    }
}

/// A buffer that will hold the first numbers of another.
fn first_of<T: Element>(all: &Buffer<T>, len: usize, commands: &mut Commands) -> Result<Buffer<T>> {
    let first = all.gpu().buffer(len)?;
    commands.copy((all, 0), (&first, 0), len)?;
    Ok(first)
}

/// Where results arrive on the host: as many features of an image as are expected come along with the counts, so that
/// the host waits once.
#[derive(Debug)]
pub(crate) struct Results {
    counts: Pinned<u32>,
    keypoints: Pinned<u32>,
    bytes: Pinned<u8>,
    floats: Pinned<f32>,
    /// Features of an image that there is room for.
    room: usize,
    /// Features of an image that are on their way: a few more than the images before had.
    expected: usize,
    /// Of the lists they come from.
    capacity: usize,
    /// After all of them.
    arrived: Option<Mark>,
}

impl Results {
    pub(crate) fn new(gpu: &Gpu) -> Result<Self> {
        Ok(Self {
            counts: gpu.pinned(0)?,
            keypoints: gpu.pinned(0)?,
            bytes: gpu.pinned(0)?,
            floats: gpu.pinned(0)?,
            room: 0,
            expected: 0,
            capacity: 0,
            arrived: None,
        })
    }

    /// Sends the counts and the expected features of all images on their way.
    pub(crate) fn fetch(&mut self, lists: &Lists<'_>) -> Result<()> {
        let gpu = lists.keypoints.gpu();
        self.reserve(gpu, lists)?;
        self.capacity = lists.capacity;
        let mut commands = Commands::new();
        commands.stage("features to the host");
        commands.download(lists.counts, &mut self.counts)?;
        for i in 0..lists.images() {
            let (from, to) = (i * lists.capacity, i * self.room);
            let words = (&mut self.keypoints, to * WORDS);
            commands.download_part((lists.keypoints, from * WORDS), words, self.expected * WORDS)?;
            let (from, to) = (from * lists.dimension, to * lists.dimension);
            let values = self.expected * lists.dimension;
            match lists.descriptors {
                GpuDescriptors::U8(all) => {
                    commands.download_part((all, from), (&mut self.bytes, to), values)?;
                }
                GpuDescriptors::F32(all) => {
                    commands.download_part((all, from), (&mut self.floats, to), values)?;
                }
            }
        }
        gpu.run(&commands)?;
        self.arrived = Some(gpu.mark()?);
        Ok(())
    }

    /// Has room for what is expected.
    fn reserve(&mut self, gpu: &Gpu, lists: &Lists<'_>) -> Result<()> {
        let images = lists.images();
        self.expected = self.expected.min(lists.capacity);
        if self.counts.len() != images || self.room < self.expected {
            let room = self.expected.next_multiple_of(KEYPOINTS);
            let values = images * room * lists.dimension;
            let (bytes, floats) = match lists.descriptors {
                GpuDescriptors::U8(_) => (values, 0),
                GpuDescriptors::F32(_) => (0, values),
            };
            self.arrived = None;
            self.counts = gpu.pinned(images)?;
            self.keypoints = gpu.pinned(images * room * WORDS)?;
            (self.bytes, self.floats) = (gpu.pinned(bytes)?, gpu.pinned(floats)?);
            self.room = room;
        }
        Ok(())
    }

    fn counts(&self) -> Result<Vec<usize>> {
        let arrived = self.arrived.as_ref().ok_or_else(nothing)?;
        Ok(self.counts.numbers_at(arrived)?.iter().map(|&n| n as usize).collect())
    }

    /// The greatest of the counts when it is beyond the capacity, and what was found is not all there.
    pub(crate) fn beyond_capacity(&self) -> Result<Option<usize>> {
        Ok(self.counts()?.into_iter().max().filter(|&most| most > self.capacity))
    }

    /// The features of every image, `most` at most. When there are more than were expected, the rest is fetched if the
    /// lists are still what was searched (`kept`), and otherwise there is nothing.
    pub(crate) fn features(
        &mut self,
        lists: &Lists<'_>,
        most: usize,
        kept: bool,
        cpu: &Cpu,
    ) -> Result<Option<Vec<Features>>> {
        let found: Vec<_> = self.counts()?.into_iter().map(|n| n.min(most)).collect();
        let longest = found.iter().copied().max().unwrap_or(0);
        let came = self.expected;
        self.expected = longest + longest / 16;
        if longest > came {
            if !kept {
                return Ok(None);
            }
            self.fetch(lists)?;
        }
        let alone = Cpu::sequential();
        let within = if longest >= MANY { cpu } else { &alone };
        let images = cpu.map(found.len(), |i| self.image(i, found[i], lists, within));
        images.into_iter().collect::<Result<_>>().map(Some)
    }

    fn image(&self, i: usize, count: usize, lists: &Lists<'_>, cpu: &Cpu) -> Result<Features> {
        let arrived = self.arrived.as_ref().ok_or_else(nothing)?;
        let (first, dimension) = (i * self.room, lists.dimension);
        let words = &self.keypoints.numbers_at(arrived)?[first * WORDS..][..self.room * WORDS];
        let (first, values) = (first * dimension, count * dimension);
        let descriptors = match lists.descriptors {
            GpuDescriptors::U8(_) => {
                Descriptors::U8(copied(&self.bytes.numbers_at(arrived)?[first..][..values], cpu))
            }
            GpuDescriptors::F32(_) => {
                Descriptors::F32(copied(&self.floats.numbers_at(arrived)?[first..][..values], cpu))
            }
        };
        Ok(Features { keypoints: keypoints(words, count, cpu), descriptors, dimension, image: lists.size })
    }
}

/// For results of no search.
pub(crate) fn nothing() -> Error {
    Error::Image("no image was searched".into())
}

/// So many features of one image are worth several threads. Of fewer the device's writing is slowed down more, by pages
/// that then lie in the caches of many cores, than the copy gains.
const MANY: usize = 1 << 15;

/// Keypoints that a task turns into the host's form.
const KEYPOINTS: usize = 128;

/// The first `count` keypoints; the words are those of whole tasks.
fn keypoints(words: &[u32], count: usize, cpu: &Cpu) -> Vec<Keypoint> {
    let (tasks, _) = words.as_chunks::<{ KEYPOINTS * WORDS }>();
    let task = |i: usize| -> [Keypoint; KEYPOINTS] {
        std::array::from_fn(|k| from_words(&tasks[i][k * WORDS..][..WORDS]))
    };
    let mut keypoints = cpu.map(count.div_ceil(KEYPOINTS), task).into_flattened();
    keypoints.truncate(count);
    keypoints
}

/// A copy by all threads, each into its pages of new memory.
// 2026-11-21: into memory that was zeroed first several threads took twice as long as one.
fn copied<T: Element>(values: &[T], cpu: &Cpu) -> Vec<T> {
    const TASK: usize = 4096;
    if cpu.threads() == 1 {
        return values.to_vec();
    }
    let (tasks, rest) = values.as_chunks::<TASK>();
    let last = || std::array::from_fn(|k| rest.get(k).copied().unwrap_or_default());
    let task = |i: usize| -> [T; TASK] { tasks.get(i).copied().unwrap_or_else(last) };
    let mut copy = cpu.map(values.len().div_ceil(TASK), task).into_flattened();
    copy.truncate(values.len());
    copy
}
