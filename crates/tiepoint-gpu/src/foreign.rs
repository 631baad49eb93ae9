//! Memory and streams of other programs in the same process: `PyTorch`, `CuPy`, JAX and others that use CUDA.
//!
//! A device is opened in CUDA's primary context, which the run-time interface uses, so that addresses and streams of
//! these programs are valid here and ours there. Work is ordered by events, without the host waiting:
//! [`Gpu::wait_for`] before memory of others is read, [`Gpu::signal`] before they read ours. OpenCL has no such
//! interface; there all of this is [`Error::Unsupported`].

use crate::buffer::{Memory, bytes_of};
use crate::{Buffer, Element, Error, Gpu, Info, Result};
use std::any::Any;

/// Keeps another library's memory alive until it is dropped.
pub(crate) type Keeper = Box<dyn Any + Send + Sync>;

/// A CUDA stream of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignStream(u64);

impl ForeignStream {
    /// The default stream, which waits for all others except those that were made not to block.
    pub const LEGACY: Self = Self(1);
    /// The calling thread's own default stream.
    pub const PER_THREAD: Self = Self(2);

    /// The stream with this handle, a `CUstream` as a number.
    ///
    /// # Safety
    /// It must be a stream of the primary context of each device that this is given to, and exist as long as this is
    /// used.
    #[expect(unsafe_code, reason = "a handle is a pointer")]
    pub const unsafe fn from_handle(handle: u64) -> Self {
        Self(handle)
    }

    /// The handle.
    pub const fn handle(self) -> u64 {
        self.0
    }
}

impl Gpu {
    /// Memory of another library as a buffer, which can only be read. Nothing is copied. `owner` keeps the memory
    /// alive. Dropping the last clone of the buffer waits for the work that reads it, then drops `owner`. Kernels may
    /// need more than the numbers' own alignment: see [`Buffer::aligned_to`].
    ///
    /// # Safety
    /// `len` numbers must lie at `address`, and must not be freed or written until `owner` is dropped, other than in
    /// streams that are ordered with this device's by [`wait_for`](Self::wait_for) and [`signal`](Self::signal).
    ///
    /// # Errors
    /// [`Error::Usage`] for an address of another device or an unaligned one, [`Error::Unsupported`] with OpenCL.
    #[expect(unsafe_code, reason = "an address says nothing of what lies there")]
    pub unsafe fn foreign<T: Element>(
        &self,
        address: u64,
        len: usize,
        owner: impl Any + Send + Sync,
    ) -> Result<Buffer<T>> {
        let bytes = bytes_of::<T>(len)?;
        if !address.is_multiple_of(align_of::<T>() as u64) {
            return Err(Error::Usage(format!(
                "the address {address:#x} is not a multiple of {}, the size of a {}",
                align_of::<T>(),
                T::NAME
            )));
        }
        self.shared.pool.settle(self.driver());
        let raw = self.driver().foreign(address, bytes)?;
        Ok(Buffer::over(Memory::foreign(self, (raw, address), bytes, Box::new(owner)), len))
    }

    /// Makes work that is put into the queue from now on wait for the work that is in `stream` now. The host does not
    /// wait.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with OpenCL, [`Error::Driver`] for a stream that is no longer there.
    pub fn wait_for(&self, stream: ForeignStream) -> Result<()> {
        self.driver().wait_for(stream.0)
    }

    /// Makes work that is put into `stream` from now on wait for the work that is in the queue now. The host does not
    /// wait.
    ///
    /// # Errors
    /// As [`wait_for`](Self::wait_for).
    pub fn signal(&self, stream: ForeignStream) -> Result<()> {
        self.driver().signal(stream.0)
    }

    /// The queue as a stream for other programs, which may make it wait for theirs. It exists as long as the device is
    /// open.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with OpenCL.
    pub fn stream(&self) -> Result<ForeignStream> {
        self.driver().stream().map(ForeignStream)
    }
}

impl<T: Element> Buffer<T> {
    /// The address, for other programs, which must not write there. They may read until the last clone of this buffer
    /// is dropped; work that they have put into their streams by then may finish later, and until it has, no other
    /// buffer gets the memory. A thread that records a CUDA graph of its own must not use this device meanwhile.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with OpenCL.
    pub fn share(&self) -> Result<u64> {
        self.memory.share()
    }

    /// The same memory for another [`Gpu`] that is the same card, without a copy. Work that is put into its queue from
    /// now on waits for the work that is in this one's queue now.
    ///
    /// # Errors
    /// [`Error::Usage`] when it is another card, [`Error::Unsupported`] with OpenCL.
    pub fn on(&self, gpu: &Gpu) -> Result<Self> {
        if self.gpu().id().check(gpu.id()).is_ok() {
            return Ok(self.clone());
        }
        let (here, there) = (self.gpu().info(), gpu.info());
        if (here.api, here.index) != (there.api, there.index) {
            return Err(Error::Usage(format!("memory of {here} cannot be used on {there}: copy it")));
        }
        gpu.wait_for(self.gpu().stream()?)?;
        let address = self.gpu().driver().address(self.memory.raw)?;
        #[expect(unsafe_code, reason = "an address says nothing of what lies there")]
        // SAFETY: the memory lies on this card, a clone keeps it, and the queue waits for what wrote it.
        unsafe {
            gpu.foreign(address, self.len(), self.clone())
        }
    }
}

/// The error of a driver that cannot share memory with other programs.
pub(crate) fn private(device: &Info) -> Error {
    Error::Unsupported {
        device: format!("{} ({})", device.name, device.api),
        feature: "memory shared with other programs",
    }
}
