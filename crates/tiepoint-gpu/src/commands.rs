//! A list of work for the device: the pipeline as data.

use crate::arguments::{Block, KernelArguments};
use crate::buffer::Memory;
use crate::driver::{DriverGraph, DriverKernel, Side, Work};
use crate::pinned::PinnedMemory;
use crate::{Buffer, DeviceId, Element, Error, Gpu, Kernel, Mark, Pinned, Result};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) enum Argument {
    Buffer(Arc<Memory>),
    Values(Block),
}

/// The layout of rows, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    /// To the first row.
    pub(crate) offset: usize,
    /// From the start of a row to the start of the next.
    pub(crate) pitch: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum Command {
    Launch {
        kernel: Arc<DriverKernel>,
        groups: [u32; 3],
        group: [u32; 2],
        arguments: Vec<Argument>,
    },
    /// Sets the first bytes to zero.
    Zero {
        memory: Arc<Memory>,
        bytes: usize,
    },
    Copy {
        from: Arc<Memory>,
        from_offset: usize,
        to: Arc<Memory>,
        to_offset: usize,
        bytes: usize,
    },
    /// Rows that lie apart, all in bytes.
    CopyRows {
        from: Arc<Memory>,
        from_at: Rows,
        to: Arc<Memory>,
        to_at: Rows,
        row: usize,
        rows: usize,
    },
    Upload {
        from: Arc<PinnedMemory>,
        to: Arc<Memory>,
        bytes: usize,
    },
    Download {
        from: Arc<Memory>,
        from_offset: usize,
        to: Arc<PinnedMemory>,
        to_offset: usize,
        bytes: usize,
    },
    /// Two lists that may run at the same time.
    Together([Vec<Command>; 2]),
}

impl Command {
    fn launches(&self) -> usize {
        match self {
            Self::Launch { .. } => 1,
            Self::Together(lists) => lists.iter().flatten().map(Self::launches).sum(),
            _ => 0,
        }
    }

    fn read_by(&self, work: u64) {
        match self {
            Self::Launch { arguments, .. } => arguments.iter().for_each(|argument| match argument {
                Argument::Buffer(memory) => memory.read_by(work),
                Argument::Values(_) => {}
            }),
            Self::Copy { from, .. } | Self::CopyRows { from, .. } | Self::Download { from, .. } => {
                from.read_by(work);
            }
            Self::Together(lists) => lists.iter().flatten().for_each(|command| command.read_by(work)),
            // These write, and memory of others is never written.
            Self::Zero { .. } | Self::Upload { .. } => {}
        }
    }
}

/// Work in its order, to be run once with [`Gpu::run`] or many times as a [`Graph`].
///
/// All of it belongs to one device, that of the first kernel or memory: what another [`Gpu::open`] made is refused.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    pub(crate) list: Vec<Command>,
    /// The device of the kernels and memory in `list`; `None` as long as it is empty.
    device: Option<DeviceId>,
    /// The beginning of each stage: index into `list`, and name.
    pub(crate) stages: Vec<(usize, &'static str)>,
}

impl Commands {
    /// No work yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Commands added from now on belong to this stage, whose time a profile shows.
    pub fn stage(&mut self, name: &'static str) {
        self.stages.push((self.list.len(), name));
    }

    /// Records, for all memory of other programs that these commands use, that work of this number reads it.
    pub(crate) fn read_by(&self, work: u64) {
        self.list.iter().for_each(|command| command.read_by(work));
    }

    /// Fails for objects of another device, or of another [`Gpu::open`] of the same one.
    pub(crate) fn belongs(&mut self, device: &DeviceId) -> Result<()> {
        self.device.get_or_insert_with(|| device.clone()).check(device)
    }

    /// Fails when the commands are another device's.
    pub(crate) fn run_on(&self, device: &DeviceId) -> Result<()> {
        self.device.as_ref().map_or(Ok(()), |own| own.check(device))
    }

    /// Runs a kernel on `groups` work groups. Nothing happens if one of the numbers is 0.
    ///
    /// # Errors
    /// [`Error::Usage`] for too many groups, or a buffer that is short, on another device, or written and given twice.
    #[expect(clippy::needless_pass_by_value, reason = "arguments are written where they are used, once")]
    pub fn launch<A: KernelArguments>(
        &mut self,
        kernel: &Kernel<A::Static>,
        groups: [usize; 3],
        arguments: A,
    ) -> Result<()> {
        let bound = arguments.bind(groups.map(|n| n as i128))?;
        let mut list = Vec::with_capacity(bound.buffers.len() + 1);
        for (memory, _) in bound.buffers {
            self.belongs(memory.device())?;
            list.push(Argument::Buffer(memory));
        }
        if !bound.values.bytes().is_empty() {
            list.push(Argument::Values(bound.values));
        }
        self.belongs(&kernel.device)?;
        if groups.contains(&0) {
            return Ok(());
        }
        let most = [i32::MAX as usize, 65_535, 65_535];
        if groups.iter().zip(most).any(|(&n, most)| n > most) {
            return Err(Error::Usage(format!(
                "{}: {groups:?} work groups are too many: expected at most {most:?}",
                kernel.name()
            )));
        }
        self.list.push(Command::Launch {
            kernel: kernel.kernel.clone(),
            groups: groups.map(|n| n as u32),
            group: kernel.group(),
            arguments: list,
        });
        Ok(())
    }

    /// Fills a buffer with zeroes.
    ///
    /// # Errors
    /// [`Error::Usage`] when it lies on another device than the commands before.
    pub fn zero<T: Element>(&mut self, buffer: &Buffer<T>) -> Result<()> {
        self.belongs(buffer.memory.device())?;
        buffer.memory.check_writable()?;
        if !buffer.is_empty() {
            self.list.push(Command::Zero { memory: buffer.memory.clone(), bytes: buffer.bytes() });
        }
        Ok(())
    }

    /// Copies `len` elements. Source and destination are given as buffer and index of the first element.
    ///
    /// # Errors
    /// [`Error::Usage`] when they leave a buffer or overlap, or when a buffer lies on another device.
    pub fn copy<T: Element>(
        &mut self,
        (from, from_first): (&Buffer<T>, usize),
        (to, to_first): (&Buffer<T>, usize),
        len: usize,
    ) -> Result<()> {
        self.belongs(from.memory.device())?;
        self.belongs(to.memory.device())?;
        to.memory.check_writable()?;
        if from_first.saturating_add(len) > from.len() || to_first.saturating_add(len) > to.len() {
            return Err(Error::Usage(format!(
                "a copy of {len} numbers from {from_first} of {} to {to_first} of {} leaves a buffer",
                from.len(),
                to.len()
            )));
        }
        if Arc::ptr_eq(&from.memory, &to.memory) && from_first.abs_diff(to_first) < len {
            return Err(Error::Usage(format!(
                "a copy of {len} numbers from {from_first} to {to_first} of one buffer overlaps itself"
            )));
        }
        if len > 0 {
            self.list.push(Command::Copy {
                from: from.memory.clone(),
                from_offset: from_first * size_of::<T>(),
                to: to.memory.clone(),
                to_offset: to_first * size_of::<T>(),
                bytes: len * size_of::<T>(),
            });
        }
        Ok(())
    }

    /// Copies `rows` rows of `row` numbers each. Source and destination are given as buffer, index of the first number
    /// and pitch in numbers. The two regions must not overlap.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn copy_rows<T: Element>(
        &mut self,
        (from, from_first, from_pitch): (&Buffer<T>, usize, usize),
        (to, to_first, to_pitch): (&Buffer<T>, usize, usize),
        [row, rows]: [usize; 2],
    ) -> Result<()> {
        self.belongs(from.memory.device())?;
        self.belongs(to.memory.device())?;
        to.memory.check_writable()?;
        if row == 0 || rows == 0 {
            return Ok(());
        }
        let inside = |buffer: &Buffer<T>, first: usize, pitch: usize| {
            let end = pitch.checked_mul(rows - 1).and_then(|n| n.checked_add(row)?.checked_add(first));
            pitch >= row && end.is_some_and(|end| end <= buffer.len())
        };
        if !inside(from, from_first, from_pitch) || !inside(to, to_first, to_pitch) {
            return Err(Error::Usage(format!(
                "{rows} rows of {row} numbers, {from_pitch} and {to_pitch} apart, overlap or leave a buffer: from {from_first} \
                 of {} to {to_first} of {}",
                from.len(),
                to.len()
            )));
        }
        let at = |first: usize, pitch: usize| Rows {
            offset: first * size_of::<T>(),
            pitch: pitch * size_of::<T>(),
        };
        self.list.push(Command::CopyRows {
            from: from.memory.clone(),
            from_at: at(from_first, from_pitch),
            to: to.memory.clone(),
            to_at: at(to_first, to_pitch),
            row: row * size_of::<T>(),
            rows,
        });
        Ok(())
    }

    /// Fills a buffer from host memory, which is read when the work is run.
    ///
    /// # Errors
    /// [`Error::Usage`] when the buffer is too small or something belongs to another device.
    pub fn upload<T: Element>(&mut self, from: &Pinned<T>, to: &Buffer<T>) -> Result<()> {
        self.upload_first(from, to, from.len())
    }

    /// Fills the first `len` numbers of a buffer from the first of host memory, which is read when the work is run.
    ///
    /// # Errors
    /// [`Error::Usage`] when either has fewer or something belongs to another device.
    pub fn upload_first<T: Element>(&mut self, from: &Pinned<T>, to: &Buffer<T>, len: usize) -> Result<()> {
        self.belongs(from.memory.device())?;
        self.belongs(to.memory.device())?;
        to.memory.check_writable()?;
        Self::fits(len, from.len())?;
        Self::fits(len, to.len())?;
        if len > 0 {
            self.list.push(Command::Upload {
                from: from.memory.clone(),
                to: to.memory.clone(),
                bytes: len * size_of::<T>(),
            });
        }
        Ok(())
    }

    /// Fills host memory from the start of a buffer.
    ///
    /// # Errors
    /// [`Error::Usage`] when the buffer is shorter or something belongs to another device.
    pub fn download<T: Element>(&mut self, from: &Buffer<T>, to: &mut Pinned<T>) -> Result<()> {
        let len = to.len();
        self.download_part((from, 0), (to, 0), len)
    }

    /// Reads `len` elements of a buffer, from element `from_first` on, into host memory from element `to_first` on.
    ///
    /// # Errors
    /// [`Error::Usage`] when the range exceeds either of them or something belongs to another device.
    pub fn download_part<T: Element>(
        &mut self,
        (from, from_first): (&Buffer<T>, usize),
        (to, to_first): (&mut Pinned<T>, usize),
        len: usize,
    ) -> Result<()> {
        self.belongs(from.memory.device())?;
        self.belongs(to.memory.device())?;
        Self::fits(from_first.saturating_add(len), from.len())?;
        Self::fits(to_first.saturating_add(len), to.len())?;
        if len > 0 {
            self.list.push(Command::Download {
                from: from.memory.clone(),
                from_offset: from_first * size_of::<T>(),
                to: to.memory.clone(),
                to_offset: to_first * size_of::<T>(),
                bytes: len * size_of::<T>(),
            });
        }
        Ok(())
    }

    pub(crate) fn fits(len: usize, room: usize) -> Result<()> {
        match len <= room {
            true => Ok(()),
            false => Err(Error::Usage(format!("{len} numbers do not fit into {room}"))),
        }
    }

    /// The number of kernels that are launched.
    pub fn launches(&self) -> usize {
        self.list.iter().map(Command::launches).sum()
    }

    /// Appends all commands of `other`.
    ///
    /// # Errors
    /// [`Error::Usage`] when it belongs to another device.
    pub fn append(&mut self, other: Self) -> Result<()> {
        if let Some(device) = &other.device {
            self.belongs(device)?;
        }
        let shift = self.list.len();
        self.stages.extend(other.stages.into_iter().map(|(at, name)| (at + shift, name)));
        self.list.extend(other.list);
        Ok(())
    }

    /// Appends two lists that may run at the same time, if the device can: both begin when the commands before have
    /// finished, and the commands after begin when both have. They must not write numbers that the other reads or
    /// writes. Their stages are dropped.
    ///
    /// # Errors
    /// [`Error::Usage`] when one belongs to another device.
    pub fn together(&mut self, one: Self, other: Self) -> Result<()> {
        for device in [&one.device, &other.device].into_iter().flatten() {
            self.belongs(device)?;
        }
        self.list.push(Command::Together([one.list, other.list]));
        Ok(())
    }
}

/// Work that is run again and again: a CUDA graph, one launch for all of it; with OpenCL the commands one by one.
///
/// A profiled device runs the commands one by one too, so that the stages can be told apart.
#[derive(Clone, Debug)]
pub struct Graph {
    gpu: Gpu,
    commands: Commands,
    graph: Option<Arc<dyn DriverGraph>>,
}

impl Graph {
    /// Queues the work.
    ///
    /// # Errors
    /// [`Error::Driver`], [`Error::Cancelled`].
    pub fn run(&self) -> Result<()> {
        match &self.graph {
            Some(graph) if !self.gpu.is_profiled() => {
                self.gpu.check_cancel()?;
                graph.launch()
            }
            _ => self.gpu.run(&self.commands),
        }
    }

    /// Runs the work on a second queue, beside the main one, after all of the marks `after`; in the main one where the
    /// device is profiled or the host waits for every launch. Calls of this function run in their order, and work that
    /// is enqueued later waits for them. What it reads and writes must be used by nothing in the queue between the last
    /// of `after` and now.
    ///
    /// # Errors
    /// [`Error::Usage`] for another device's mark, [`Error::Driver`].
    pub fn run_beside(&self, after: &[Mark]) -> Result<()> {
        let (gpu, driver) = (&self.gpu, self.gpu.driver());
        gpu.check_cancel()?;
        after.iter().try_for_each(|mark| gpu.id().check(&mark.device))?;
        let marks: Vec<_> = after.iter().map(|mark| mark.mark.as_ref()).collect();
        if gpu.is_profiled() || gpu.is_stepwise() {
            marks.iter().try_for_each(|mark| driver.hold(*mark))?;
            return self.run();
        }
        let work =
            self.graph.as_ref().map_or(Work::Commands(&self.commands.list), |g| Work::Graph(g.as_ref()));
        let done = gpu.put_beside(Side::Kernels, work, &marks)?;
        driver.hold(done.as_ref())
    }
}

impl Gpu {
    /// A graph of work that is run repeatedly.
    ///
    /// # Errors
    /// [`Error::Usage`] when the work belongs to another device, [`Error::Driver`].
    pub fn graph(&self, commands: Commands) -> Result<Graph> {
        commands.run_on(self.id())?;
        let graph = self.driver().graph(&commands.list)?;
        Ok(self.recorded(commands, graph))
    }

    /// Records two lists of commands as graphs, which can be run repeatedly. The second can
    /// [run beside](Graph::run_beside) the first: the kernels of each leave room on the device for those of the other.
    ///
    /// # Errors
    /// As [`graph`](Self::graph).
    pub fn graphs_beside(&self, lists: [Commands; 2]) -> Result<[Graph; 2]> {
        lists.iter().try_for_each(|commands| commands.run_on(self.id()))?;
        let graphs = self.driver().graphs_beside(lists.each_ref().map(|commands| &*commands.list))?;
        let [first, second] = graphs.map_or([None, None], |graphs| graphs.map(Some));
        let [one, other] = lists;
        Ok([self.recorded(one, first), self.recorded(other, second)])
    }

    fn recorded(&self, commands: Commands, graph: Option<Arc<dyn DriverGraph>>) -> Graph {
        // A graph may run at any time.
        commands.read_by(u64::MAX);
        Graph { gpu: self.clone(), commands, graph }
    }
}
