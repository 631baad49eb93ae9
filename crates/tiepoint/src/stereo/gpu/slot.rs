//! Pairs in flight: images on their way to a device, and maps on their way back, while the device works on others.

use super::plan::{Plan, bytes_of, fine_of};
use crate::{
    Result,
    device::{
        Cpu,
        gpu::{Buffer, Commands, Gpu, Graph, Pinned},
    },
    image::{Image, Size, gpu::GpuStack},
    stereo::{Reason, StereoResult, pair::Pair},
};
use tiepoint_gpu::{Element, Mark, Transfer};

/// Rows that a thread copies at a time.
const ROWS: usize = 64;

/// Numbers on their way to a buffer: host memory that the device reads by itself, and memory of the device that is
/// filled while work on the numbers before them still reads the buffer.
#[derive(Debug)]
struct Feed<T: Element> {
    host: Pinned<T>,
    sent: Buffer<T>,
    to: Buffer<T>,
    /// Numbers from the start of a row to the next.
    pitch: usize,
    /// Numbers from the start of an image to the next.
    step: usize,
}

impl<T: Element> Feed<T> {
    fn new(to: &Buffer<T>, pitch: usize, step: usize) -> Result<Self> {
        let gpu = to.gpu();
        Ok(Self { host: gpu.pinned(to.len())?, sent: gpu.buffer(to.len())?, to: to.clone(), pitch, step })
    }

    fn of_stack(stack: &GpuStack<T>) -> Result<Self> {
        Self::new(stack.buffer(), stack.pitch(), stack.step())
    }

    /// Takes image `i`, rows of `row` numbers, once the queue has come to `free`.
    fn write(&mut self, i: usize, (numbers, row): (&[T], usize), free: &Mark, cpu: &Cpu) -> Result<()> {
        let (pitch, step) = (self.pitch, self.step);
        let host = &mut self.host.numbers_mut_after(free)?[i * step..][..step];
        cpu.for_chunks(host, ROWS * pitch, |task, host| {
            let rows = numbers.chunks_exact(row).skip(task * ROWS);
            host.chunks_exact_mut(pitch).zip(rows).for_each(|(to, from)| to[..row].copy_from_slice(from));
        });
        Ok(())
    }

    fn send(&self, free: &Mark) -> Result<()> {
        Ok(self.sent.gpu().upload_beside(&self.host, &self.sent, free)?)
    }

    fn arrive(&self, commands: &mut Commands) -> Result<()> {
        Ok(commands.copy((&self.sent, 0), (&self.to, 0), self.to.len())?)
    }
}

/// All that goes to a plan.
#[derive(Debug)]
struct Feeds {
    bytes: Vec<Feed<u8>>,
    words: Vec<Feed<u16>>,
    floats: Vec<Feed<f32>>,
    tables: Vec<Feed<u8>>,
}

impl Feeds {
    fn new(plan: &Plan) -> Result<Self> {
        let (words, floats) = plan.fine();
        Ok(Self {
            bytes: plan.bytes().map(Feed::of_stack).collect::<Result<_>>()?,
            words: words.into_iter().map(Feed::of_stack).collect::<Result<_>>()?,
            floats: floats.into_iter().map(Feed::of_stack).collect::<Result<_>>()?,
            tables: plan.tables.iter().map(|t| Feed::new(t, t.len(), t.len())).collect::<Result<_>>()?,
        })
    }

    fn write(&mut self, i: usize, pair: &Pair, tables: &[Vec<u8>], free: &Mark, cpu: &Cpu) -> Result<()> {
        fn images<'a, T: Element>(
            feeds: &mut [Feed<T>],
            images: impl IntoIterator<Item = &'a Image<T>>,
            (i, free, cpu): (usize, &Mark, &Cpu),
        ) -> Result<()> {
            let mut pairs = feeds.iter_mut().zip(images);
            pairs.try_for_each(|(feed, image)| feed.write(i, (image.data(), image.row_len()), free, cpu))
        }
        let (words, floats) = fine_of(pair);
        images(&mut self.bytes, bytes_of(pair), (i, free, cpu))?;
        images(&mut self.words, words, (i, free, cpu))?;
        images(&mut self.floats, floats, (i, free, cpu))?;
        let mut tables = self.tables.iter_mut().zip(tables);
        tables.try_for_each(|(feed, table)| feed.write(0, (table, table.len()), free, cpu))
    }

    fn send(&self, free: &Mark) -> Result<()> {
        self.bytes.iter().chain(&self.tables).try_for_each(|feed| feed.send(free))?;
        self.words.iter().try_for_each(|feed| feed.send(free))?;
        self.floats.iter().try_for_each(|feed| feed.send(free))
    }

    fn arrive(&self, commands: &mut Commands) -> Result<()> {
        self.bytes.iter().chain(&self.tables).try_for_each(|feed| feed.arrive(commands))?;
        self.words.iter().try_for_each(|feed| feed.arrive(commands))?;
        self.floats.iter().try_for_each(|feed| feed.arrive(commands))
    }
}

/// Maps on their way to the host: memory of the device that keeps them while the next are made, and host memory.
#[derive(Debug)]
struct Fetch<T: Element> {
    from: GpuStack<T>,
    kept: Buffer<T>,
    host: Pinned<T>,
}

impl<T: Element> Fetch<T> {
    fn new(from: &GpuStack<T>) -> Result<Self> {
        let (gpu, len) = (from.gpu(), from.buffer().len());
        Ok(Self { from: from.clone(), kept: gpu.buffer(len)?, host: gpu.pinned(len)? })
    }

    fn of(from: Option<&GpuStack<T>>) -> Result<Option<Self>> {
        from.map(Self::new).transpose()
    }

    fn keep(&self, commands: &mut Commands) -> Result<()> {
        Ok(commands.copy((self.from.buffer(), 0), (&self.kept, 0), self.kept.len())?)
    }

    fn send(&mut self, commands: &mut Commands) -> Result<()> {
        Ok(commands.download(&self.kept, &mut self.host)?)
    }

    /// Map `i`, once the queue has come to `arrived`.
    fn map<U: Copy + Default + Send>(
        &self,
        i: usize,
        arrived: &Mark,
        cpu: &Cpu,
        value: impl Fn(T) -> U + Sync,
    ) -> Result<Image<U>> {
        let (step, pitch, Size { width, height }) = (self.from.step(), self.from.pitch(), self.from.size());
        let numbers = self.host.numbers_at(arrived, i * step..(i + 1) * step)?;
        let mut map = Image::new(Size::new(width, height));
        cpu.for_chunks(map.data_mut(), ROWS * width, |task, rows| {
            let from = numbers.chunks_exact(pitch).skip(task * ROWS);
            for (to, from) in rows.chunks_exact_mut(width).zip(from) {
                to.iter_mut().zip(from).for_each(|(to, &from)| *to = value(from));
            }
        });
        Ok(map)
    }
}

/// As many pairs as a plan takes, in flight or not.
#[derive(Debug)]
pub(super) struct Slot {
    gpu: Gpu,
    feeds: Feeds,
    disparity: Fetch<f32>,
    right: Option<Fetch<f32>>,
    confidence: Option<Fetch<f32>>,
    reasons: Option<Fetch<u8>>,
    /// From the arrival of the images to the keeping of the maps.
    work: Graph,
    downloads: Commands,
    /// After the last use of what was sent.
    free: Mark,
    last: Option<Transfer>,
}

impl Slot {
    pub(super) fn new(plan: &Plan) -> Result<Self> {
        let (gpu, maps, feeds) = (&plan.gpu, &plan.maps, Feeds::new(plan)?);
        let mut disparity = Fetch::new(&maps.disparity)?;
        let mut right = Fetch::of(maps.right.as_ref())?;
        let mut confidence = Fetch::of(maps.confidence.as_ref())?;
        let mut reasons = Fetch::of(maps.reasons.as_ref())?;
        let (mut work, mut downloads) = (Commands::new(), Commands::new());
        work.stage("images to the device");
        feeds.arrive(&mut work)?;
        work.append(plan.commands.clone())?;
        work.stage("maps to the host");
        for map in std::iter::once(&mut disparity).chain(&mut right).chain(&mut confidence) {
            map.keep(&mut work)?;
            map.send(&mut downloads)?;
        }
        if let Some(map) = &mut reasons {
            map.keep(&mut work)?;
            map.send(&mut downloads)?;
        }
        let (gpu, work, free) = (gpu.clone(), gpu.graph(work)?, gpu.mark()?);
        Ok(Self { gpu, feeds, disparity, right, confidence, reasons, work, downloads, free, last: None })
    }

    /// Takes pair `i`, with the tables that its costs look up.
    pub(super) fn write(&mut self, i: usize, pair: &Pair, tables: &[Vec<u8>], cpu: &Cpu) -> Result<()> {
        self.feeds.write(i, pair, tables, &self.free, cpu)
    }

    /// Sends the pairs on their way through the plan.
    pub(super) fn run(&mut self) -> Result<()> {
        self.feeds.send(&self.free)?;
        // The work overwrites what the last transfer reads.
        self.last.take().map_or(Ok(()), |last| last.hold())?;
        self.work.run()?;
        self.free = self.gpu.mark()?;
        Ok(())
    }

    /// Sends them through the plan and back; gives the point of their arrival.
    pub(super) fn start(&mut self) -> Result<Mark> {
        self.run()?;
        let transfer = self.gpu.download_beside(self.downloads.clone())?;
        Ok(self.last.insert(transfer).done().clone())
    }

    /// What was found for pair `i`, once it has arrived.
    pub(super) fn result(&self, i: usize, arrived: &Mark, cpu: &Cpu) -> Result<StereoResult> {
        let float = |map: &Fetch<f32>| map.map(i, arrived, cpu, |v| v);
        Ok(StereoResult {
            disparity: float(&self.disparity)?,
            right: self.right.as_ref().map(float).transpose()?,
            confidence: self.confidence.as_ref().map(float).transpose()?,
            reasons: self.reasons.as_ref().map(|m| m.map(i, arrived, cpu, reason)).transpose()?,
        })
    }
}

/// The reason of this number.
pub(super) fn reason(number: u8) -> Reason {
    Reason::ALL.get(usize::from(number)).copied().unwrap_or_default()
}
