//! A list of work for the device: the pipeline as data.

use crate::buffer::{Memory, Place};
use crate::driver::{DriverGraph, DriverKernel};
use crate::{Buffer, Element, Error, Gpu, Kernel, Pinned, Result};
use std::sync::Arc;

/// An argument of a kernel.
#[derive(Clone, Debug)]
pub enum Argument {
    /// `GLOBAL T *`.
    Buffer(Handle),
    /// `i32`, `u32` or `f32`.
    Word([u8; 4]),
    /// `i64`, `u64` or `f64`.
    Long([u8; 8]),
}

/// The memory of a buffer, kept alive.
#[derive(Clone, Debug)]
pub struct Handle(pub(crate) Arc<Memory>);

impl<T: Element> From<&Buffer<T>> for Argument {
    fn from(buffer: &Buffer<T>) -> Self {
        Self::Buffer(Handle(buffer.memory.clone()))
    }
}

macro_rules! argument {
    ($($t:ty => $kind:ident),*) => {
        $(impl From<$t> for Argument {
            fn from(value: $t) -> Self {
                Self::$kind(value.to_ne_bytes())
            }
        })*
    };
}

argument!(i32 => Word, u32 => Word, f32 => Word, i64 => Long, u64 => Long, f64 => Long);

/// The arguments of a launch: `arguments![&buffer, width, 0.5_f32]`.
#[macro_export]
macro_rules! arguments {
    ($($value:expr),* $(,)?) => { vec![$($crate::Argument::from($value)),*] };
}

/// One piece of work.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    Launch {
        kernel: Arc<dyn DriverKernel>,
        groups: [u32; 3],
        group: [u32; 2],
        arguments: Vec<Argument>,
    },
    /// Zeroes in the first bytes.
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
    Upload {
        from: Arc<Place>,
        to: Arc<Memory>,
        bytes: usize,
    },
    Download {
        from: Arc<Memory>,
        from_offset: usize,
        to: Arc<Place>,
        to_offset: usize,
        bytes: usize,
    },
}

/// Work in its order, to be run once with [`Gpu::run`] or many times as a [`Graph`].
///
/// A kernel is trusted as any code of this program is: one that writes beyond its buffers is not held back.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    pub(crate) list: Vec<Command>,
    /// Where stages begin: index into `list`, name.
    pub(crate) stages: Vec<(usize, &'static str)>,
}

impl Commands {
    /// No work yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What follows belongs to this stage, whose time a profile shows.
    pub fn stage(&mut self, name: &'static str) {
        self.stages.push((self.list.len(), name));
    }

    /// Runs a kernel on `groups` work groups. Nothing happens where one of the numbers is 0.
    ///
    /// # Errors
    /// [`Error::Usage`] when the number of arguments is not the kernel's, or that of groups more than devices take.
    pub fn launch(&mut self, kernel: &Kernel, groups: [usize; 3], arguments: Vec<Argument>) -> Result<()> {
        let (expected, found) = (kernel.parameters, arguments.len());
        if expected != found {
            let name = kernel.name();
            return Err(Error::Usage(format!(
                "kernel {name} takes {expected} arguments and was given {found}"
            )));
        }
        if groups.contains(&0) {
            return Ok(());
        }
        let wrong = || Error::Usage(format!("{}: {groups:?} work groups are too many", kernel.name()));
        let most = [i32::MAX as usize, 65_535, 65_535];
        if groups.iter().zip(most).any(|(&n, most)| n > most) {
            return Err(wrong());
        }
        let groups = groups.map(|n| n as u32);
        self.list.push(Command::Launch {
            kernel: kernel.kernel.clone(),
            groups,
            group: kernel.group(),
            arguments,
        });
        Ok(())
    }

    /// Fills a buffer with zeroes.
    pub fn zero<T: Element>(&mut self, buffer: &Buffer<T>) {
        if !buffer.is_empty() {
            self.list.push(Command::Zero { memory: buffer.memory.clone(), bytes: buffer.bytes() });
        }
    }

    /// Copies `len` numbers from one place of the device to another; the two must not overlap.
    ///
    /// # Errors
    /// [`Error::Usage`] when they leave a buffer.
    pub fn copy<T: Element>(
        &mut self,
        (from, from_first): (&Buffer<T>, usize),
        (to, to_first): (&Buffer<T>, usize),
        len: usize,
    ) -> Result<()> {
        if from_first.saturating_add(len) > from.len() || to_first.saturating_add(len) > to.len() {
            return Err(Error::Usage(format!(
                "a copy of {len} numbers from {from_first} of {} to {to_first} of {} leaves a buffer",
                from.len(),
                to.len()
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

    /// Fills a buffer from host memory, which is read when the work is run.
    ///
    /// # Errors
    /// [`Error::Usage`] when the buffer is too small.
    pub fn upload<T: Element>(&mut self, from: &Pinned<T>, to: &Buffer<T>) -> Result<()> {
        Self::fits(from.len(), to.len())?;
        self.list.push(Command::Upload {
            from: from.place.clone(),
            to: to.memory.clone(),
            bytes: from.bytes(),
        });
        Ok(())
    }

    /// Reads the first numbers of a buffer into host memory, as many as it holds.
    ///
    /// # Errors
    /// [`Error::Usage`] when the buffer holds fewer.
    pub fn download<T: Element>(&mut self, from: &Buffer<T>, to: &mut Pinned<T>) -> Result<()> {
        let len = to.len();
        self.download_part((from, 0), (to, 0), len)
    }

    /// Reads `len` numbers of a buffer, from one on, into a part of host memory.
    ///
    /// # Errors
    /// [`Error::Usage`] when they leave either.
    pub fn download_part<T: Element>(
        &mut self,
        (from, from_first): (&Buffer<T>, usize),
        (to, to_first): (&mut Pinned<T>, usize),
        len: usize,
    ) -> Result<()> {
        Self::fits(from_first.saturating_add(len), from.len())?;
        Self::fits(to_first.saturating_add(len), to.len())?;
        if len > 0 {
            self.list.push(Command::Download {
                from: from.memory.clone(),
                from_offset: from_first * size_of::<T>(),
                to: to.place.clone(),
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

    /// How many kernels are launched.
    pub fn launches(&self) -> usize {
        self.list.iter().filter(|c| matches!(c, Command::Launch { .. })).count()
    }

    /// All of `other` after what is here.
    pub fn append(&mut self, other: Self) {
        let shift = self.list.len();
        self.stages.extend(other.stages.into_iter().map(|(at, name)| (at + shift, name)));
        self.list.extend(other.list);
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
    pub(crate) fn new(gpu: &Gpu, commands: Commands) -> Result<Self> {
        let graph = gpu.driver().graph(&commands.list)?;
        Ok(Self { gpu: gpu.clone(), commands, graph })
    }

    /// Puts the work into the device's queue.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn run(&self) -> Result<()> {
        match &self.graph {
            Some(graph) if !self.gpu.is_profiled() => graph.launch(),
            _ => self.gpu.run(&self.commands),
        }
    }
}
