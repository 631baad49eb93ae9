//! Pairs in flight: images on their way to a device, and maps on their way back, while the device works on others.

use super::{
    maps::Maps,
    plan::{Plan, PlanInput},
};
use crate::{
    Error, Result,
    device::{
        Cpu,
        gpu::{Buffer, Commands, Gpu, Graph, Pinned},
    },
    image::{AnyView, Image, ImageView, Size, gpu::GpuStack},
    stereo::{Reason, StereoResult, pair::gpu::AnyStack},
};
use std::sync::{Arc, Mutex, PoisonError};
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

    /// The numbers in the host's memory, once the queue has come to `free`.
    fn numbers(&mut self, free: &Mark) -> Result<&mut [T]> {
        #[expect(unsafe_code, reason = "memory that the device reads")]
        // SAFETY: what is sent is recorded and run once, by `send`, and has been sent where the queue has come to
        // `free`.
        Ok(unsafe { self.host.numbers_mut_after(free) }?)
    }

    /// Takes image `i` once the queue has come to `free`.
    fn write(&mut self, i: usize, image: ImageView<'_, T>, free: &Mark, cpu: &Cpu) -> Result<()> {
        let (pitch, step, row) = (self.pitch, self.step, image.size().width * image.channels());
        let host = &mut self.numbers(free)?[i * step..][..step];
        cpu.for_chunks(host, ROWS * pitch, |task, host| {
            for (y, to) in (task * ROWS..).zip(host.chunks_exact_mut(pitch)) {
                to[..row].copy_from_slice(image.row(y));
            }
        });
        Ok(())
    }

    /// Takes numbers that are no image.
    fn write_table(&mut self, table: &[T], free: &Mark) -> Result<()> {
        self.numbers(free)?[..table.len()].copy_from_slice(table);
        Ok(())
    }

    fn send(&self, free: &Mark) -> Result<Mark> {
        Ok(self.sent.gpu().upload_beside(&self.host, &self.sent, free)?)
    }

    fn arrive(&self, commands: &mut Commands) -> Result<()> {
        self.arrive_at(commands, &self.to)
    }

    /// Copies what was sent to another place of this size.
    fn arrive_at(&self, commands: &mut Commands, to: &Buffer<T>) -> Result<()> {
        Ok(commands.copy((&self.sent, 0), (to, 0), self.sent.len())?)
    }
}

/// Images of any type of pixel on their way.
#[derive(Debug)]
enum AnyFeed {
    U8(Feed<u8>),
    U16(Feed<u16>),
    F32(Feed<f32>),
}

impl AnyFeed {
    fn of(stack: &AnyStack) -> Result<Self> {
        Ok(match stack {
            AnyStack::U8(stack) => Self::U8(Feed::of_stack(stack)?),
            AnyStack::U16(stack) => Self::U16(Feed::of_stack(stack)?),
            AnyStack::F32(stack) => Self::F32(Feed::of_stack(stack)?),
        })
    }

    fn write(&mut self, i: usize, image: AnyView<'_>, free: &Mark, cpu: &Cpu) -> Result<()> {
        match (self, image) {
            (Self::U8(feed), AnyView::U8(image)) => feed.write(i, image, free, cpu),
            (Self::U16(feed), AnyView::U16(image)) => feed.write(i, image, free, cpu),
            (Self::F32(feed), AnyView::F32(image)) => feed.write(i, image, free, cpu),
            (Self::U8(_) | Self::U16(_) | Self::F32(_), other) => {
                Err(Error::Mismatch(format!("an image of {:?} among others", other.pixel())))
            }
        }
    }

    fn send(&self, free: &Mark) -> Result<Mark> {
        match self {
            Self::U8(feed) => feed.send(free),
            Self::U16(feed) => feed.send(free),
            Self::F32(feed) => feed.send(free),
        }
    }

    fn arrive(&self, commands: &mut Commands) -> Result<()> {
        match self {
            Self::U8(feed) => feed.arrive(commands),
            Self::U16(feed) => feed.arrive(commands),
            Self::F32(feed) => feed.arrive(commands),
        }
    }

    fn arrive_at(&self, commands: &mut Commands, to: &AnyStack) -> Result<()> {
        match (self, to) {
            (Self::U8(feed), AnyStack::U8(to)) => feed.arrive_at(commands, to.buffer()),
            (Self::U16(feed), AnyStack::U16(to)) => feed.arrive_at(commands, to.buffer()),
            (Self::F32(feed), AnyStack::F32(to)) => feed.arrive_at(commands, to.buffer()),
            (Self::U8(_) | Self::U16(_) | Self::F32(_), _) => {
                Err(Error::Mismatch("a picture of one type for another".into()))
            }
        }
    }
}

/// All that goes to a plan.
#[derive(Debug)]
struct Feeds {
    images: Vec<AnyFeed>,
    tables: Vec<Feed<u8>>,
}

impl Feeds {
    fn new(plan: &Plan) -> Result<Self> {
        Ok(Self {
            images: plan.inputs.iter().map(AnyFeed::of).collect::<Result<_>>()?,
            tables: plan.sent_tables().map(|t| Feed::new(t, t.len(), t.len())).collect::<Result<_>>()?,
        })
    }

    fn write(&mut self, i: usize, input: &PlanInput<'_>, free: &Mark, cpu: &Cpu) -> Result<()> {
        let mut images = self.images.iter_mut().zip(&input.images);
        images.try_for_each(|(feed, image)| feed.write(i, *image, free, cpu))?;
        let mut tables = self.tables.iter_mut().zip(&input.tables);
        tables.try_for_each(|(feed, table)| feed.write_table(table, free))
    }

    /// Gives the points at which all has been sent.
    fn send(&self, free: &Mark) -> Result<Vec<Mark>> {
        let images = self.images.iter().map(|feed| feed.send(free));
        images.chain(self.tables.iter().map(|feed| feed.send(free))).collect()
    }

    fn arrive(&self, commands: &mut Commands) -> Result<()> {
        self.images.iter().try_for_each(|feed| feed.arrive(commands))?;
        self.tables.iter().try_for_each(|feed| feed.arrive(commands))
    }
}

/// Maps of the device that are kept while the next are made.
#[derive(Debug)]
struct Kept<T: Element> {
    from: GpuStack<T>,
    kept: Buffer<T>,
}

impl<T: Element> Kept<T> {
    fn new(from: &GpuStack<T>) -> Result<Self> {
        Ok(Self { from: from.clone(), kept: from.gpu().buffer(from.buffer().len())? })
    }

    fn keep(&self, commands: &mut Commands) -> Result<()> {
        Ok(commands.copy((self.from.buffer(), 0), (&self.kept, 0), self.kept.len())?)
    }

    /// Host memory for them.
    fn room(&self) -> Result<HostMap<T>> {
        let (step, pitch, size) = (self.from.step(), self.from.pitch(), self.from.size());
        Ok(HostMap { host: self.kept.gpu().pinned(self.kept.len())?, step, pitch, size })
    }

    fn send(&self, commands: &mut Commands, to: &mut HostMap<T>) -> Result<()> {
        Ok(commands.download(&self.kept, &mut to.host)?)
    }
}

/// Maps in host memory that the device writes by itself.
#[derive(Debug)]
struct HostMap<T: Element> {
    host: Pinned<T>,
    /// Numbers from the start of an image to the next, and from the start of a row.
    step: usize,
    pitch: usize,
    size: Size,
}

impl<T: Element> HostMap<T> {
    /// Map `i`, once the queue has come to `arrived`.
    fn map<U: Copy + Default + Send>(
        &self,
        i: usize,
        arrived: &Mark,
        cpu: &Cpu,
        value: impl Fn(T) -> U + Sync,
    ) -> Result<Image<U>> {
        let (step, pitch, Size { width, height }) = (self.step, self.pitch, self.size);
        #[expect(unsafe_code, reason = "memory that the device writes")]
        // SAFETY: maps are sent here once before they are taken, by commands that `Slot::start` runs once.
        let numbers = unsafe { self.host.numbers_at(arrived, i * step..(i + 1) * step) }?;
        if cpu.threads() == 1 {
            // Not zeroed first.
            let mut map = Vec::with_capacity(width * height);
            let rows = numbers.chunks_exact(pitch).take(height);
            rows.for_each(|row| map.extend(row[..width].iter().map(|&number| value(number))));
            return Image::from_vec(map, self.size, 1);
        }
        let mut map = Image::new(self.size);
        cpu.for_chunks(map.data_mut(), ROWS * width, |task, rows| {
            let from = numbers.chunks_exact(pitch).skip(task * ROWS);
            for (to, from) in rows.chunks_exact_mut(width).zip(from) {
                to.iter_mut().zip(from).for_each(|(to, &from)| *to = value(from));
            }
        });
        Ok(map)
    }
}

type KeptMaps = Maps<Kept<f32>, Kept<u8>>;
type HostMaps = Maps<HostMap<f32>, HostMap<u8>>;

impl KeptMaps {
    fn keep(&self, commands: &mut Commands) -> Result<()> {
        self.floats().try_for_each(|map| map.keep(commands))?;
        self.reasons.as_ref().map_or(Ok(()), |map| map.keep(commands))
    }

    fn send(&self, commands: &mut Commands, to: &mut HostMaps) -> Result<()> {
        self.floats().zip(to.floats_mut()).try_for_each(|(map, to)| map.send(commands, to))?;
        self.reasons.as_ref().zip(to.reasons.as_mut()).map_or(Ok(()), |(map, to)| map.send(commands, to))
    }
}

/// Host memory for maps that waits to be used again.
type Spare = Arc<Mutex<Vec<HostMaps>>>;

/// The maps of some pairs on their way to the host. Their memory is used again when the last handle to them is gone.
#[derive(Debug)]
struct Arrival {
    /// There until it is dropped.
    maps: Option<HostMaps>,
    arrived: Mark,
    spare: Spare,
}

impl Drop for Arrival {
    fn drop(&mut self) {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).extend(self.maps.take());
    }
}

/// What was found for a pair, on its way to the host.
#[derive(Debug)]
pub(in crate::stereo) struct Arriving {
    arrival: Arc<Arrival>,
    /// Its number among the pairs that go together.
    i: usize,
}

impl Arriving {
    /// The maps, once they have arrived.
    pub(in crate::stereo) fn wait(&self, cpu: &Cpu) -> Result<StereoResult> {
        let (i, arrived) = (self.i, &self.arrival.arrived);
        let gone = || Error::Mismatch("the maps of a pair were given away".into());
        let maps = self.arrival.maps.as_ref().ok_or_else(gone)?;
        let here = maps.try_map(|m| m.map(i, arrived, cpu, |v| v), |m| m.map(i, arrived, cpu, reason))?;
        Ok(here.into())
    }
}

/// As many pairs as a plan takes, in flight or not.
#[derive(Debug)]
pub(super) struct Slot {
    gpu: Gpu,
    feeds: Feeds,
    maps: KeptMaps,
    /// What is learnt from a pair, where something is: beside the work on the pair before.
    learning: Option<Graph>,
    /// From the arrival of the images to the keeping of the maps.
    work: Graph,
    /// After the last use of what was sent.
    free: Mark,
    last: Option<Transfer>,
    spare: Spare,
}

impl Slot {
    pub(super) fn new(plan: &Plan) -> Result<Self> {
        let (gpu, feeds, maps) =
            (plan.gpu.clone(), Feeds::new(plan)?, plan.maps.try_map(Kept::new, Kept::new)?);
        let mut work = Commands::new();
        work.stage("images to the device");
        feeds.arrive(&mut work)?;
        let learning = plan.learning.as_ref().map(|learning| {
            let mut arrival = Commands::new();
            for (feed, to) in feeds.images.iter().zip(&learning.inputs) {
                feed.arrive_at(&mut arrival, to)?;
            }
            learning.apart(arrival, &mut work, &gpu)
        });
        work.append(plan.commands.clone())?;
        work.stage("maps to the host");
        maps.keep(&mut work)?;
        let (learning, work) = match learning.transpose()? {
            Some(learning) => {
                let [work, learning] = gpu.graphs_beside([work, learning])?;
                (Some(learning), work)
            }
            None => (None, gpu.graph(work)?),
        };
        let free = gpu.mark()?;
        Ok(Self { gpu, feeds, maps, learning, work, free, last: None, spare: Spare::default() })
    }

    /// Takes pair `i`.
    pub(super) fn write(&mut self, i: usize, input: &PlanInput<'_>, cpu: &Cpu) -> Result<()> {
        self.feeds.write(i, input, &self.free, cpu)
    }

    /// Sends the pairs on their way through the plan.
    pub(super) fn run(&mut self) -> Result<()> {
        let sent = self.feeds.send(&self.free)?;
        self.learning.as_ref().map_or(Ok(()), |learning| learning.run_beside(&sent))?;
        // The work overwrites what the last transfer reads.
        self.last.take().map_or(Ok(()), |last| last.hold())?;
        self.work.run()?;
        self.free = self.gpu.mark()?;
        Ok(())
    }

    /// Sends them through the plan and back; gives the first so many results on their way.
    pub(super) fn start(&mut self, pairs: usize) -> Result<Vec<Arriving>> {
        self.run()?;
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut maps = spare.map_or_else(|| self.maps.try_map(Kept::room, Kept::room), Ok)?;
        let mut downloads = Commands::new();
        self.maps.send(&mut downloads, &mut maps)?;
        let transfer = self.gpu.download_beside(downloads)?;
        let arrived = self.last.insert(transfer).done().clone();
        let arrival = Arc::new(Arrival { maps: Some(maps), arrived, spare: self.spare.clone() });
        Ok((0..pairs).map(|i| Arriving { arrival: arrival.clone(), i }).collect())
    }
}

pub(super) fn reason(number: u8) -> Reason {
    Reason::ALL.get(usize::from(number)).copied().unwrap_or_default()
}
