//! Pinned host memory, which a device reads and writes directly.
#![expect(unsafe_code, reason = "the device uses the memory, which the compiler cannot know")]

use crate::buffer::{Free, Memory, bytes_of};
use crate::driver::Driver;
use crate::{DeviceId, Element, Error, Gpu, Mark, Result, lock};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Pinned memory that is free, by its size. Taking it from the driver costs more than filling it: 0.5 ms a megabyte,
/// and 0.8 ms for less than a megabyte.
#[derive(Debug, Default)]
pub(crate) struct PinnedPool {
    free: Mutex<Free<PinnedStart>>,
}

#[derive(Debug)]
struct PinnedStart(*mut u8);

// SAFETY: it is plain memory, to which only the pool has a pointer.
unsafe impl Send for PinnedStart {}

impl PinnedPool {
    /// The most bytes that are kept.
    const MOST: usize = 512 << 20;
    /// Smaller memory is not kept.
    const LEAST: usize = 4096;

    /// Keeps memory that no transfer uses any more; returns false if it is too small, or if too much is kept already.
    fn keep(&self, bytes: usize, start: *mut u8) -> bool {
        let mut free = lock(&self.free);
        let keeps = bytes >= Self::LEAST && free.bytes + bytes <= Self::MOST;
        if keeps {
            free.push(bytes, PinnedStart(start));
        }
        keeps
    }

    pub(crate) fn clear(&self, driver: &dyn Driver) {
        let free = lock(&self.free).excess(0);
        free.into_iter().for_each(|PinnedStart(start)| driver.free_host(start));
    }
}

/// Host memory that the device reads and writes directly, without a copy by the driver, for transfers that run beside
/// other work. See [`crate::Commands::upload`] and [`crate::Commands::download`].
#[derive(Debug)]
pub struct Pinned<T: Element> {
    pub(crate) memory: Arc<PinnedMemory>,
    len: usize,
    element: PhantomData<T>,
}

#[derive(Debug)]
pub(crate) struct PinnedMemory {
    gpu: Gpu,
    pub(crate) start: *mut u8,
    /// In bytes.
    len: usize,
}

// SAFETY: it is plain memory; `Pinned` reads and writes it only when the device has finished.
unsafe impl Send for PinnedMemory {}
// SAFETY: as above; writing takes `&mut Pinned`.
unsafe impl Sync for PinnedMemory {}

impl PinnedMemory {
    fn new(gpu: &Gpu, len: usize) -> Result<Self> {
        let len = if len < PinnedPool::LEAST { len.max(1) } else { Memory::rounded(len) };
        let kept = lock(&gpu.shared.pinned.free).pop(len);
        let start = match kept {
            Some(PinnedStart(start)) => start,
            None => {
                let start = gpu.driver().allocate_host(len)?;
                // SAFETY: `len` bytes from `start` were just allocated.
                unsafe {
                    start.write_bytes(0, len);
                }
                start
            }
        };
        Ok(Self { gpu: gpu.clone(), start, len })
    }

    pub(crate) fn device(&self) -> &DeviceId {
        self.gpu.id()
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        // A transfer may still be running, in any queue.
        let _ = self.gpu.driver().finish_all();
        match self.gpu.shared.pinned.keep(self.len, self.start) {
            true => self.gpu.shared.idle.freed(&self.gpu.shared),
            false => self.gpu.driver().free_host(self.start),
        }
    }
}

impl Gpu {
    /// Host memory that the device accesses directly, with undefined values.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn pinned<T: Element>(&self, len: usize) -> Result<Pinned<T>> {
        let memory = PinnedMemory::new(self, bytes_of::<T>(len)?)?;
        Ok(Pinned { memory: Arc::new(memory), len, element: PhantomData })
    }
}

impl<T: Element> Pinned<T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Makes room for this many elements. If there are fewer, new memory replaces it, without the content.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn reserve(&mut self, len: usize) -> Result<()> {
        if self.len < len {
            *self = self.memory.gpu.pinned(len.next_power_of_two())?;
        }
        Ok(())
    }

    /// The numbers. Waits until all work has finished.
    ///
    /// # Safety
    /// While they are borrowed no commands may be run that were recorded before and write here.
    ///
    /// # Errors
    /// [`Error::Driver`] when the device fails.
    pub unsafe fn numbers(&self) -> Result<&[T]> {
        self.memory.gpu.finish()?;
        // SAFETY: `len` numbers were allocated and written, and the device has finished. To record new work that writes
        // here takes a `&mut` of this object, and the caller runs none that was recorded before.
        Ok(unsafe { std::slice::from_raw_parts(self.memory.start.cast(), self.len) })
    }

    /// Some of the numbers. Waits until the queue has reached a mark.
    ///
    /// # Safety
    /// Neither work after the mark nor work that is run while they are borrowed may write them.
    ///
    /// # Errors
    /// [`Error::Usage`] beyond the end, [`Error::Driver`] when the device fails.
    pub unsafe fn numbers_at(&self, mark: &Mark, range: Range<usize>) -> Result<&[T]> {
        if range.start > range.end || range.end > self.len {
            return Err(Error::Usage(format!("the numbers {range:?} leave host memory of {}", self.len)));
        }
        self.memory.gpu.wait(mark)?;
        // SAFETY: as `numbers`, a part of them; the caller has put no work that writes here after the mark.
        Ok(unsafe { std::slice::from_raw_parts(self.memory.start.cast::<T>().add(range.start), range.len()) })
    }

    /// The numbers to be written. Waits until all work has finished.
    ///
    /// # Safety
    /// While they are borrowed no commands may be run that were recorded before and use them.
    ///
    /// # Errors
    /// [`Error::Driver`] when the device fails.
    pub unsafe fn numbers_mut(&mut self) -> Result<&mut [T]> {
        self.memory.gpu.finish()?;
        // SAFETY: as `numbers`, borrowed mutably.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.memory.start.cast(), self.len) })
    }

    /// The numbers to be written. Waits until the queue has reached a mark.
    ///
    /// # Safety
    /// Neither work after the mark nor work that is run while they are borrowed may use them.
    ///
    /// # Errors
    /// [`Error::Driver`] when the device fails.
    pub unsafe fn numbers_mut_after(&mut self, mark: &Mark) -> Result<&mut [T]> {
        self.memory.gpu.wait(mark)?;
        // SAFETY: as `numbers_at`, borrowed mutably.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.memory.start.cast(), self.len) })
    }
}

#[cfg(test)]
mod tests {
    use crate::driver::{Side, Work};
    use crate::{Api, Commands};

    /// Host memory is reused only when no queue uses it. After an error the main one may not know of others' transfers.
    #[test]
    fn host_memory_is_free_when_every_queue_is_done() {
        for gpu in crate::listed::listed(&[Api::OpenCl]) {
            let (driver, len) = (gpu.driver(), 1 << 20);
            let from = gpu.upload(&vec![7_u32; len]).unwrap();
            let mut to = gpu.pinned::<u32>(len).unwrap();
            let mut commands = Commands::new();
            for _ in 0..20 {
                commands.download(&from, &mut to).unwrap();
            }
            gpu.finish().unwrap();
            let mark = driver.beside(Side::ToHost, Work::Commands(&commands.list), &[]).unwrap();
            driver.finish_all().unwrap();
            assert!(driver.is_done(mark.as_ref()).unwrap(), "{gpu:?}: transfers are over");
        }
    }
}
