//! The interface that both drivers implement. Everything that differs between CUDA and OpenCL is behind it.

use crate::commands::Command;
use crate::foreign::private;
use crate::{Error, Info, Result};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// Memory of the device: the driver's own handle of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw(pub(crate) u64);

/// A kernel as an opaque object; the driver that made it downcasts it by [`own`].
pub(crate) type DriverKernel = dyn Any + Send + Sync;

pub(crate) trait DriverProgram: Debug + Send + Sync {
    /// The kernel of this name, which is checked to allow groups of this size.
    fn kernel(&self, name: &str, group: [u32; 2]) -> Result<Arc<DriverKernel>>;
}

/// Commands that were prepared to be run repeatedly.
pub(crate) trait DriverGraph: Any + Debug + Send + Sync {
    fn launch(&self) -> Result<()>;
}

/// A point in the queue whose time is recorded.
pub(crate) type DriverMark = dyn Any + Send + Sync;

/// Work beside the queue, each kind in its own queue: the bus carries both directions at once while kernels run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    ToDevice,
    ToHost,
    /// Kernels, with a higher priority than those of the queue.
    Kernels,
}

impl Side {
    pub(crate) const COUNT: usize = 3;
}

/// Work for the queue of a [`Side`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work<'a> {
    Commands(&'a [Command]),
    Graph(&'a dyn DriverGraph),
}

/// One device with its queue, which runs commands in order, and one more queue for each [`Side`].
pub(crate) trait Driver: Debug + Send + Sync {
    fn info(&self) -> &Info;

    /// Whether the driver promises f32 arithmetic by IEEE 754, with denormals; otherwise opening tests it (`ieee.rs`).
    fn promises_ieee(&self) -> bool {
        true
    }

    /// Whether groups go on while others wait, and loops run to their end; otherwise opening tests it (`trial.rs`).
    fn promises_progress(&self) -> bool {
        true
    }

    fn allocate(&self, bytes: usize) -> Result<Raw>;
    fn free(&self, memory: Raw);
    fn free_bytes(&self) -> Option<u64>;

    /// Pinned host memory, which the device reads and writes by itself; its content is undefined.
    fn allocate_host(&self, bytes: usize) -> Result<*mut u8>;
    fn free_host(&self, memory: *mut u8);

    /// The part of a compiled program's key in the cache that is not its source: device, compiler, options.
    fn binary_key(&self) -> String;
    /// The program and its binary for the cache on disk, which is empty where the driver itself keeps what it compiled.
    fn compile(&self, name: &str, source: &str) -> Result<(Arc<dyn DriverProgram>, Vec<u8>)>;
    /// The packaged binary of a program (`packaged.rs`), for [`load`](Self::load).
    fn packaged(&self, _source: &str) -> Option<Vec<u8>> {
        None
    }
    fn load(&self, name: &str, binary: &[u8]) -> Result<Arc<dyn DriverProgram>>;

    fn write(&self, to: Raw, offset: usize, from: &[u8]) -> Result<()>;
    fn read(&self, from: Raw, offset: usize, to: &mut [u8]) -> Result<()>;
    /// Runs work beside the queue, once all marks in `after` have been reached. Returns the point after it.
    fn beside(&self, side: Side, work: Work<'_>, after: &[&DriverMark]) -> Result<Arc<DriverMark>>;
    /// Makes work that is put into the queue from now on wait for a mark.
    fn hold(&self, mark: &DriverMark) -> Result<()>;
    fn enqueue(&self, command: &Command) -> Result<()>;
    fn mark(&self) -> Result<Arc<DriverMark>>;
    fn wait(&self, mark: &DriverMark) -> Result<()>;
    fn seconds_between(&self, start: &DriverMark, end: &DriverMark) -> Result<f64>;
    /// `None` if the driver can only run the commands one by one.
    fn graph(&self, _commands: &[Command]) -> Result<Option<Arc<dyn DriverGraph>>> {
        Ok(None)
    }
    /// Records two lists as graphs. The second runs [beside](Side::Kernels) the first.
    fn graphs_beside(&self, _lists: [&[Command]; 2]) -> Result<Option<[Arc<dyn DriverGraph>; 2]>> {
        Ok(None)
    }
    fn finish(&self) -> Result<()>;
    /// Waits for the queue and for those of all sides.
    fn finish_all(&self) -> Result<()>;

    fn is_done(&self, mark: &DriverMark) -> Result<bool>;
    /// The point after all work that this process has given the device so far, in any stream. With OpenCL, whose
    /// handles are of no use to other libraries, this and the five functions below are [`Error::Unsupported`].
    fn mark_everything(&self) -> Result<Arc<DriverMark>> {
        Err(private(self.info()))
    }
    /// The queue's handle, for other libraries in this process.
    fn stream(&self) -> Result<u64> {
        Err(private(self.info()))
    }
    fn address(&self, _memory: Raw) -> Result<u64> {
        Err(private(self.info()))
    }
    /// Memory of another library on this device; an error where the address lies elsewhere.
    fn foreign(&self, _address: u64, _bytes: usize) -> Result<Raw> {
        Err(private(self.info()))
    }
    /// Makes work that is put into the queue from now on wait for the work that is in another library's stream now.
    fn wait_for(&self, _stream: u64) -> Result<()> {
        Err(private(self.info()))
    }
    /// Makes work that is put into another library's stream from now on wait for the work that is in the queue now.
    fn signal(&self, _stream: u64) -> Result<()> {
        Err(private(self.info()))
    }
}

/// A kernel, mark or graph as the driver's own type; an error if another driver made it.
pub(crate) fn own<T: Any>(object: &dyn Any) -> Result<&T> {
    object.downcast_ref().ok_or_else(foreign)
}

pub(crate) fn foreign() -> Error {
    Error::Usage("a kernel or mark of one device was given to another".into())
}
