//! Pairs in flight: images are copied to a device and maps are copied back while the device works on other pairs.

use super::plan::{Plan, PlanInput};
use crate::device::Cpu;
use crate::device::gpu::{Buffer, Commands, Gpu, Graph, Pinned};
use crate::image::gpu::{AnyGpuStack, GpuStack, Staging};
use crate::image::{ByPixel, Image};
use crate::stereo::{Maps, Reason, StereoResult};
use crate::{Error, Result, by_pixel};
use std::sync::{Arc, Mutex};
use tiepoint_gpu::{Element, Mark, Transfer, lock};

/// Numbers that are copied to a buffer by way of other memory of the device, which is filled while the work on the
/// previous pair still reads the buffer.
#[derive(Debug)]
struct Feed<T: Element> {
    sent: Staging<T>,
    to: Buffer<T>,
}

impl<T: Element> Feed<T> {
    /// Copies the numbers that were sent to their buffer, or to another of the same size.
    fn arrive_at(&self, commands: &mut Commands, to: &Buffer<T>) -> Result<()> {
        Ok(commands.copy((self.sent.to(), 0), (to, 0), to.len())?)
    }
}

/// The feed of an image of any type of pixel.
type AnyFeed = ByPixel<Feed<u8>, Feed<u16>, Feed<f32>>;

/// Copies of maps on the device, which are read back while the next maps are computed.
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

    /// Host memory for these maps.
    fn room(&self) -> Result<HostMap<T>> {
        Ok(HostMap { host: self.kept.gpu().pinned(self.kept.len())?, like: self.from.clone() })
    }

    fn send(&self, commands: &mut Commands, to: &mut HostMap<T>) -> Result<()> {
        Ok(commands.download(&self.kept, &mut to.host)?)
    }
}

/// Maps in host memory that the device writes directly.
#[derive(Debug)]
struct HostMap<T: Element> {
    host: Pinned<T>,
    /// Maps on the device with the same layout.
    like: GpuStack<T>,
}

impl<T: Element> HostMap<T> {
    /// Map `i`. Waits until the queue has reached `arrived`.
    fn map<U: Copy + Default + Send>(
        &self,
        i: usize,
        arrived: &Mark,
        cpu: &Cpu,
        value: impl Fn(T) -> U + Sync,
    ) -> Result<Image<U>> {
        let step = self.like.step();
        #[expect(unsafe_code, reason = "memory that the device writes")]
        // SAFETY: maps are sent here once before they are taken, by commands that `Slot::start` runs once.
        let numbers = unsafe { self.host.numbers_at(arrived, i * step..(i + 1) * step) }?;
        self.like.packed(numbers, value, cpu)
    }
}

type HostMaps = Maps<HostMap<f32>, HostMap<u8>>;

/// Host memory for maps that can be used again.
type Spare = Arc<Mutex<Vec<HostMaps>>>;

/// Maps of pairs that are being copied to the host, whose memory is used again when the last handle is dropped.
#[derive(Debug)]
struct Arrival {
    /// `None` only while it is dropped.
    maps: Option<HostMaps>,
    arrived: Mark,
    spare: Spare,
}

impl Drop for Arrival {
    fn drop(&mut self) {
        lock(&self.spare).extend(self.maps.take());
    }
}

/// The result of a pair that is being copied to the host.
#[derive(Debug)]
pub(in crate::stereo) struct Arriving {
    arrival: Arc<Arrival>,
    /// The index of the pair in its set.
    i: usize,
}

impl Arriving {
    /// Waits for the maps.
    pub(in crate::stereo) fn wait(&self, cpu: &Cpu) -> Result<StereoResult> {
        let (i, arrived) = (self.i, &self.arrival.arrived);
        let gone = || Error::Mismatch("the maps of a pair were given away".into());
        let maps = self.arrival.maps.as_ref().ok_or_else(gone)?;
        maps.try_map(|m| m.map(i, arrived, cpu, |v| v), |m| m.map(i, arrived, cpu, reason))
    }
}

/// The memory through which one set of pairs goes to a plan and its maps come back.
#[derive(Debug)]
pub(super) struct Slot {
    gpu: Gpu,
    images: Vec<AnyFeed>,
    tables: Vec<Feed<u8>>,
    maps: Maps<Kept<f32>, Kept<u8>>,
    /// The learning from a pair, if the cost learns, which runs beside the work on the previous pair.
    learning: Option<Graph>,
    /// All work from the copying of the images to the plan's inputs to the copying of its maps.
    work: Graph,
    /// A mark after the last use of the sent data, whose memory is then free.
    free: Mark,
    last: Option<Transfer>,
    spare: Spare,
}

impl Slot {
    pub(super) fn new(plan: &Plan) -> Result<Self> {
        let gpu = plan.gpu.clone();
        let image = |stack: &AnyGpuStack| {
            Ok(by_pixel!(map stack, stack => {
                let to = stack.buffer().clone();
                Feed { sent: Staging::new(stack, &gpu.buffer(to.len())?)?, to }
            }))
        };
        let images = plan.inputs.iter().map(image).collect::<Result<Vec<_>>>()?;
        let table = |to: &Buffer<u8>| {
            let sent = Staging::of_numbers(&gpu.buffer(to.len())?)?;
            Ok(Feed { sent, to: to.clone() })
        };
        // Tables that are learnt on the device are not sent.
        let tables = plan.tables.iter().filter(|_| plan.learning.is_none());
        let tables = tables.map(table).collect::<Result<Vec<_>>>()?;
        let maps = plan.maps.try_map(Kept::new, Kept::new)?;
        let mut work = Commands::new();
        work.stage("images to the device");
        images.iter().try_for_each(|feed| by_pixel!(feed, f => f.arrive_at(&mut work, &f.to)))?;
        tables.iter().try_for_each(|feed| feed.arrive_at(&mut work, &feed.to))?;
        // Learning is a separate list. Its results are kept in extra buffers, from which the work copies them.
        let learning = plan.learning.as_ref().map(|learning| -> Result<_> {
            let mut commands = Commands::new();
            for (feed, to) in images.iter().zip(&learning.inputs) {
                by_pixel!((feed, to), (feed, to) => feed.arrive_at(&mut commands, to.buffer()))?;
            }
            commands.append(learning.commands.clone())?;
            for [from, to] in &learning.learnt {
                let kept = gpu.buffer(from.len())?;
                commands.copy((from, 0), (&kept, 0), from.len())?;
                work.copy((&kept, 0), (to, 0), from.len())?;
            }
            Ok(commands)
        });
        work.append(plan.commands.clone())?;
        work.stage("maps to the host");
        maps.floats().try_for_each(|map| map.keep(&mut work))?;
        maps.reasons.iter().try_for_each(|map| map.keep(&mut work))?;
        let (learning, work) = match learning.transpose()? {
            Some(learning) => {
                let [work, learning] = gpu.graphs_beside([work, learning])?;
                (Some(learning), work)
            }
            None => (None, gpu.graph(work)?),
        };
        let (free, spare) = (gpu.mark()?, Spare::default());
        Ok(Self { gpu, images, tables, maps, learning, work, free, last: None, spare })
    }

    /// Writes pair `i` to the memory that is sent.
    pub(super) fn write(&mut self, i: usize, input: &PlanInput<'_>, cpu: &Cpu) -> Result<()> {
        for (feed, image) in self.images.iter_mut().zip(&input.images) {
            by_pixel!((feed, *image), (feed, image) => feed.sent.write(i, image, &self.free, cpu))?;
        }
        for (feed, table) in self.tables.iter_mut().zip(&input.tables) {
            feed.sent.numbers(&self.free)?[..table.len()].copy_from_slice(table);
        }
        Ok(())
    }

    /// Queues the plan's work for the pairs.
    pub(super) fn run(&mut self) -> Result<()> {
        let images = self.images.iter().map(|feed| by_pixel!(feed, feed => feed.sent.send(&self.free)));
        let tables = self.tables.iter().map(|feed| feed.sent.send(&self.free));
        // The marks at which everything has been sent.
        let sent = images.chain(tables).collect::<Result<Vec<_>>>()?;
        self.learning.as_ref().map_or(Ok(()), |learning| learning.run_beside(&sent))?;
        // The work overwrites what the last transfer reads.
        self.last.take().map_or(Ok(()), |last| last.hold())?;
        self.work.run()?;
        self.free = self.gpu.mark()?;
        Ok(())
    }

    /// Queues the plan's work and the copying of the maps to the host; returns the first `pairs` results to come.
    pub(super) fn start(&mut self, pairs: usize) -> Result<Vec<Arriving>> {
        self.run()?;
        let spare = lock(&self.spare).pop();
        let mut maps = spare.map_or_else(|| self.maps.try_map(Kept::room, Kept::room), Ok)?;
        let mut downloads = Commands::new();
        for (map, to) in self.maps.floats().zip(maps.floats_mut()) {
            map.send(&mut downloads, to)?;
        }
        for (map, to) in self.maps.reasons.iter().zip(&mut maps.reasons) {
            map.send(&mut downloads, to)?;
        }
        let transfer = self.gpu.download_beside(downloads)?;
        let arrived = self.last.insert(transfer).done().clone();
        let arrival = Arc::new(Arrival { maps: Some(maps), arrived, spare: self.spare.clone() });
        Ok((0..pairs).map(|i| Arriving { arrival: arrival.clone(), i }).collect())
    }
}

pub(super) fn reason(number: u8) -> Reason {
    Reason::ALL.get(usize::from(number)).copied().unwrap_or_default()
}
