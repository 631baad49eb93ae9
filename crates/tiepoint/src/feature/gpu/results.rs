//! The way of features from a device's lists to the host's memory.

use super::{GpuDescriptors, GpuFeatures, WORDS, from_words};
use crate::device::Cpu;
use crate::device::gpu::{Buffer, Commands, Gpu, Pinned};
use crate::feature::select::Selection;
use crate::feature::{Descriptors, Features, Keypoint};
use crate::image::Size;
use crate::{Error, Result};
use std::ops::Range;
use tiepoint_gpu::{Element, Mark, Transfer};

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
/// the host waits once. Those of many images come in parcels, of which the device still makes one while another travels.
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
    /// Images in their order, and their way.
    parcels: Vec<(Range<usize>, Transfer)>,
}

/// What came of a search.
pub(crate) enum Arrival {
    All(Vec<Features>),
    /// An image has so many features, more than the lists have room for.
    BeyondCapacity(usize),
    /// There were more than had been expected, and the lists have been written again since. Next time they will be.
    Unexpected,
}

impl Arrival {
    /// The features; otherwise the images must be searched again, after room was made where it was too little.
    pub(crate) fn or_else_room(self, make_room: impl FnOnce(usize)) -> Option<Vec<Features>> {
        match self {
            Self::All(found) => Some(found),
            Self::BeyondCapacity(most) => {
                make_room(most);
                None
            }
            Self::Unexpected => None,
        }
    }
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
            parcels: Vec::new(),
        })
    }

    /// Sends the results of all images on their way, as part of the work in the queue.
    pub(crate) fn fetch(&mut self, lists: &Lists<'_>) -> Result<()> {
        self.prepare(lists)?;
        let images = 0..lists.images();
        let commands = self.downloads(lists, images.clone())?;
        self.parcels.push((images, lists.keypoints.gpu().download(commands)?));
        Ok(())
    }

    /// Forgets what came, and has room for what is expected.
    pub(crate) fn prepare(&mut self, lists: &Lists<'_>) -> Result<()> {
        let (gpu, images) = (lists.keypoints.gpu(), lists.images());
        self.parcels.clear();
        self.expected = self.expected.min(lists.capacity);
        if self.counts.len() != images || self.room < self.expected {
            let room = self.expected.next_multiple_of(KEYPOINTS);
            let values = images * room * lists.dimension;
            let (bytes, floats) = match lists.descriptors {
                GpuDescriptors::U8(_) => (values, 0),
                GpuDescriptors::F32(_) => (0, values),
            };
            self.counts = gpu.pinned(images)?;
            self.keypoints = gpu.pinned(images * room * WORDS)?;
            (self.bytes, self.floats) = (gpu.pinned(bytes)?, gpu.pinned(floats)?);
            self.room = room;
        }
        Ok(())
    }

    /// Sends the results of some images on their way beside what is put into the queue later. The parcels must have all
    /// images in their order.
    pub(crate) fn fetch_beside(&mut self, lists: &Lists<'_>, images: Range<usize>) -> Result<()> {
        let commands = self.downloads(lists, images.clone())?;
        self.parcels.push((images, lists.keypoints.gpu().download_beside(commands)?));
        Ok(())
    }

    /// Work that is put into the queue later may write the lists that parcels came from.
    pub(crate) fn hold(&self) -> Result<()> {
        self.parcels.iter().try_for_each(|(_, sent)| Ok(sent.hold()?))
    }

    /// The counts and the expected features of some images.
    fn downloads(&mut self, lists: &Lists<'_>, images: Range<usize>) -> Result<Commands> {
        let mut commands = Commands::new();
        commands.stage("features to the host");
        let counts = (&mut self.counts, images.start);
        commands.download_part((lists.counts, images.start), counts, images.len())?;
        for i in images {
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
        Ok(commands)
    }

    /// The features of every image, once they have come, and what is selected of them: the lists are in the features'
    /// order. When there are more than were expected, the rest is fetched if the lists are still what was searched
    /// (`kept`).
    pub(crate) fn arrival(
        &mut self,
        lists: &Lists<'_>,
        selection: Selection,
        kept: bool,
        cpu: &Cpu,
    ) -> Result<Arrival> {
        let (mut all, mut greatest) = (Vec::new(), 0);
        for (images, sent) in &self.parcels {
            let counts = self.counts.numbers_at(sent.done(), images.clone())?;
            greatest = counts.iter().fold(greatest, |greatest, &n| greatest.max(n as usize));
            if greatest.min(selection.most()) <= self.expected {
                all.extend(self.parcel((images, sent), counts, selection, lists, cpu)?);
            }
        }
        if greatest > lists.capacity {
            return Ok(Arrival::BeyondCapacity(greatest));
        }
        let (longest, came) = (greatest.min(selection.most()), self.expected);
        self.expected = longest + longest / 16;
        match longest <= came {
            true => Ok(Arrival::All(all)),
            false if kept => {
                self.fetch(lists)?;
                self.arrival(lists, selection, kept, cpu)
            }
            false => Ok(Arrival::Unexpected),
        }
    }

    /// The features of the images of a parcel.
    fn parcel(
        &self,
        (images, sent): (&Range<usize>, &Transfer),
        counts: &[u32],
        selection: Selection,
        lists: &Lists<'_>,
        cpu: &Cpu,
    ) -> Result<Vec<Features>> {
        let alone = Cpu::sequential();
        let count = |i: usize| (counts[i] as usize).min(selection.most());
        let within = if (0..images.len()).any(|i| count(i) >= MANY) { cpu } else { &alone };
        let image = |i: usize| {
            let found = self.image(images.start + i, count(i), sent.done(), lists, within)?;
            Ok(match selection {
                Selection::Even(_) => selection.apply(&found, within),
                Selection::All | Selection::Strongest(_) => found,
            })
        };
        cpu.map(images.len(), image).into_iter().collect()
    }

    fn image(
        &self,
        i: usize,
        count: usize,
        arrived: &Mark,
        lists: &Lists<'_>,
        cpu: &Cpu,
    ) -> Result<Features> {
        let (first, dimension) = (i * self.room, lists.dimension);
        let words = self.keypoints.numbers_at(arrived, first * WORDS..(first + self.room) * WORDS)?;
        let values = first * dimension..(first + count) * dimension;
        let descriptors = match lists.descriptors {
            GpuDescriptors::U8(_) => Descriptors::U8(copied(self.bytes.numbers_at(arrived, values)?, cpu)),
            GpuDescriptors::F32(_) => Descriptors::F32(copied(self.floats.numbers_at(arrived, values)?, cpu)),
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
