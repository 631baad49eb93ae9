//! Memory of the host into which a device writes features.

use super::results::{Lists, Recycled};
use crate::Result;
use crate::device::Cpu;
use crate::device::gpu::{Commands, Gpu, Pinned};
use crate::feature::{ByValue, Features, Keypoint, WORDS, by_value, from_words};
use std::ops::Range;
use tiepoint_gpu::{Element, Transfer};

/// Memory that the device writes. The counts are sent together with as many features of an image as are expected, so
/// that the host waits only once. The features of many images are sent in parcels: one is copied while the device
/// computes the next.
#[derive(Debug)]
pub(super) struct ReadbackSlot {
    counts: Pinned<u32>,
    keypoints: Pinned<u32>,
    values: ByValue<Pinned<u8>, Pinned<f32>>,
    /// The number of features of an image that fit.
    room: usize,
    /// The number of features of an image that are sent: a few more than the images before had.
    expected: usize,
    /// Images in their order, and their transfers.
    parcels: Vec<(Range<usize>, Transfer)>,
}

impl ReadbackSlot {
    pub(super) fn new(gpu: &Gpu) -> Result<Self> {
        Ok(Self {
            counts: gpu.pinned(0)?,
            keypoints: gpu.pinned(0)?,
            values: ByValue::U8(gpu.pinned(0)?),
            room: 0,
            expected: 0,
            parcels: Vec::new(),
        })
    }

    /// Makes room for the expected features. As long as no number is known, these are as many as the lists can hold or
    /// the selection can use.
    pub(super) fn expect(&mut self, lists: &Lists<'_>) -> Result<()> {
        if self.expected == 0 {
            self.expected = lists.found.capacity.min(lists.selection.early_limit());
        }
        self.prepare(lists)
    }

    /// Discards earlier results and makes room for the expected ones.
    pub(super) fn prepare(&mut self, lists: &Lists<'_>) -> Result<()> {
        let (gpu, images) = (lists.found.keypoints.gpu(), lists.images());
        self.parcels.clear();
        self.expected = self.expected.min(lists.found.capacity);
        if self.counts.len() != images || self.room < self.expected {
            let room = self.expected.next_multiple_of(TASK);
            let values = images * room * lists.dimension;
            self.counts = gpu.pinned(images)?;
            self.keypoints = gpu.pinned(images * room * WORDS)?;
            self.values = by_value!(map lists.descriptors, _all => gpu.pinned(values)?);
            self.room = room;
        }
        Ok(())
    }

    /// Queues the copying of the results of all images to the host.
    pub(super) fn fetch(&mut self, lists: &Lists<'_>) -> Result<()> {
        let images = 0..lists.images();
        let commands = self.downloads(lists, images.clone())?;
        self.parcels = vec![(images, lists.found.keypoints.gpu().download(commands)?)];
        Ok(())
    }

    /// Copies the results of some images, which follow those of the last call, to the host, concurrently with work
    /// that is queued later.
    pub(super) fn fetch_beside(&mut self, lists: &Lists<'_>, images: Range<usize>) -> Result<()> {
        let commands = self.downloads(lists, images.clone())?;
        self.parcels.push((images, lists.found.keypoints.gpu().download_beside(commands)?));
        Ok(())
    }

    /// Makes work that is queued later wait for these transfers, because it may overwrite the lists that they read.
    pub(super) fn hold(&self) -> Result<()> {
        self.parcels.iter().try_for_each(|(_, sent)| Ok(sent.hold()?))
    }

    fn downloads(&mut self, lists: &Lists<'_>, images: Range<usize>) -> Result<Commands> {
        let mut commands = Commands::new();
        commands.stage("features to the host");
        let counts = (&mut self.counts, images.start);
        commands.download_part((&lists.found.counts, images.start), counts, images.len())?;
        for i in images {
            let (from, to) = (i * lists.found.capacity, i * self.room);
            let words = (&mut self.keypoints, to * WORDS);
            commands.download_part((&lists.found.keypoints, from * WORDS), words, self.expected * WORDS)?;
            let (from, to) = (from * lists.dimension, to * lists.dimension);
            let len = self.expected * lists.dimension;
            by_value!(
                (lists.descriptors, &mut self.values),
                (all, values) => commands.download_part((all, from), (values, to), len)?,
                else unreachable!("room was made for values of this kind")
            );
        }
        Ok(commands)
    }

    /// Waits for the results; returns the greatest number of features found in an image, and the features. If more were
    /// found than expected, they are fetched again from the lists; if these may have been overwritten (not `kept`),
    /// they are `None`, and the next fetch expects enough. They are also `None` if the lists have too little room.
    pub(super) fn arrival(
        &mut self,
        lists: &Lists<'_>,
        kept: bool,
        recycled: &Recycled,
        cpu: &Cpu,
    ) -> Result<(usize, Option<Vec<Features>>)> {
        let most = lists.selection.early_limit();
        let (mut all, mut greatest) = (Vec::new(), 0);
        for (images, sent) in &self.parcels {
            #[expect(unsafe_code, reason = "memory that the device writes")]
            // SAFETY: a transfer is recorded and run once, by `fetch`, which borrows this memory mutably.
            let counts = unsafe { self.counts.numbers_at(sent.done(), images.clone()) }?;
            greatest = counts.iter().fold(greatest, |greatest, &n| greatest.max(n as usize));
            if greatest.min(most) <= self.expected {
                let counts: Vec<usize> = counts.iter().map(|&n| most.min(n as usize)).collect();
                all.extend(self.features((images, sent), &counts, lists, recycled, cpu)?);
            }
        }
        if greatest > lists.found.capacity {
            return Ok((greatest, None));
        }
        let (longest, came) = (greatest.min(most), self.expected);
        self.expected = longest + longest / 16;
        match longest <= came {
            true => Ok((greatest, Some(all))),
            false if kept => {
                self.prepare(lists)?;
                self.fetch(lists)?;
                self.arrival(lists, kept, recycled, cpu)
            }
            false => Ok((greatest, None)),
        }
    }

    fn features(
        &self,
        (images, sent): (&Range<usize>, &Transfer),
        counts: &[usize],
        lists: &Lists<'_>,
        recycled: &Recycled,
        cpu: &Cpu,
    ) -> Result<Vec<Features>> {
        let of = |len: usize| images.start * self.room * len..images.end * self.room * len;
        #[expect(unsafe_code, reason = "memory that the device writes")]
        // SAFETY: as of the counts in `arrival`.
        let (words, values) = unsafe {
            let words = self.keypoints.numbers_at(sent.done(), of(WORDS))?;
            let values =
                by_value!(map &self.values, all => all.numbers_at(sent.done(), of(lists.dimension))?);
            (words, values)
        };
        let alone = Cpu::sequential();
        let within = if counts.iter().any(|&n| n >= MANY) { cpu } else { &alone };
        let mut found = recycled.take(counts.len(), &lists.none());
        cpu.for_chunks(&mut found, 1, |i, found| {
            for found in found {
                let words = &words[i * self.room * WORDS..][..self.room * WORDS];
                take_keypoints(words, counts[i], &mut found.keypoints, within);
                let (first, len) = (i * self.room * lists.dimension, counts[i] * lists.dimension);
                by_value!(
                    (&values, &mut found.descriptors),
                    (all, to) => take_values(&all[first..][..len], to, within),
                    else unreachable!("recycled features are of the kind that is searched")
                );
                (found.dimension, found.image) = (lists.dimension, lists.size);
                if lists.selection.is_finished_by_host() {
                    *found = lists.selection.of(found, within);
                }
            }
        });
        Ok(found)
    }
}

/// From this many features of an image on, several threads copy them. For fewer, one thread copies: several would be a
/// little faster, but the pages would then lie in the caches of many cores, and the device's next transfer into them
/// would be slower by more than that.
const MANY: usize = 1 << 15;

const TASK: usize = 128;

/// The first `count` keypoints; the words are those of whole tasks.
fn take_keypoints(words: &[u32], count: usize, to: &mut Vec<Keypoint>, cpu: &Cpu) {
    let (tasks, _) = words.as_chunks::<{ TASK * WORDS }>();
    let task = |i: usize| -> [Keypoint; TASK] {
        std::array::from_fn(|k| from_words(&tasks[i][k * WORDS..][..WORDS]))
    };
    renew(to, count, task, cpu);
}

fn take_values<T: Element>(values: &[T], to: &mut Vec<T>, cpu: &Cpu) {
    let (tasks, rest) = values.as_chunks::<4096>();
    let last = || std::array::from_fn(|k| rest.get(k).copied().unwrap_or_default());
    renew(to, values.len(), |i| tasks.get(i).copied().unwrap_or_else(last), cpu);
}

/// Fills a vector with the results of tasks, in its own memory if there is enough.
// Threads write to uninitialised memory: zeroing it first takes longer than copying with one thread.
fn renew<const N: usize, T: Copy + Send>(
    to: &mut Vec<T>,
    len: usize,
    task: impl Fn(usize) -> [T; N] + Sync + Send,
    cpu: &Cpu,
) {
    let tasks = len.div_ceil(N);
    if cpu.threads() == 1 {
        to.clear();
        to.reserve(tasks * N);
        (0..tasks).for_each(|i| to.extend_from_slice(&task(i)));
    } else if to.len() < len {
        *to = cpu.collect(tasks, task).into_flattened();
    } else {
        cpu.for_chunks(&mut to[..len], N, |i, to| to.copy_from_slice(&task(i)[..to.len()]));
    }
    to.truncate(len);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_overwritten_whatever_they_held() {
        for (threads, len, held) in [1, 3].into_iter().flat_map(|threads| {
            [0, 1, 7, 8, 100].into_iter().flat_map(move |len| [0, 5, 300].map(|held| (threads, len, held)))
        }) {
            let cpu = Cpu::with_threads(threads).unwrap();
            let mut to = vec![9; held];
            renew(&mut to, len, |i| std::array::from_fn::<_, 8, _>(|k| 8 * i + k), &cpu);
            assert!(to.iter().copied().eq(0..len), "{threads} threads, {len} in place of {held}");
        }
    }
}
