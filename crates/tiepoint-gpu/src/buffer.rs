//! Memory of the device.

use crate::driver::{Driver, DriverMark, Raw};
use crate::element::{bytes, bytes_mut};
use crate::foreign::Keeper;
use crate::{Commands, DeviceId, Element, Error, Gpu, Result, lock};
use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Freed memory by its size, kept for the next buffer of that size. All work runs in one queue, so memory can be reused
/// while commands that use it are still waiting: the new owner's commands come after them. Transfers in other queues
/// wait for marks. Memory whose address other libraries have is kept apart until their work with it is done.
///
/// At most half of the device's memory is kept, the pieces freed most recently. The rest goes back to the driver when
/// memory is asked for, not when it is freed, which may happen while a thread records a graph.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: Mutex<Free<Raw>>,
    lent: Mutex<Lent>,
}

/// Free pieces of memory `M`.
#[derive(Debug)]
pub(crate) struct Free<M> {
    /// By size, each with the number of its freeing, the oldest first.
    pieces: BTreeMap<usize, VecDeque<(u64, M)>>,
    pub(crate) bytes: usize,
    freed: u64,
}

impl<M> Default for Free<M> {
    fn default() -> Self {
        Self { pieces: BTreeMap::new(), bytes: 0, freed: 0 }
    }
}

impl<M> Free<M> {
    pub(crate) fn push(&mut self, bytes: usize, memory: M) {
        self.bytes += bytes;
        self.freed += 1;
        self.pieces.entry(bytes).or_default().push_back((self.freed, memory));
    }

    pub(crate) fn pop(&mut self, bytes: usize) -> Option<M> {
        let (_, memory) = self.pieces.get_mut(&bytes)?.pop_back()?;
        self.bytes -= bytes;
        Some(memory)
    }

    /// Removes the memory that was freed first until at most `most` bytes are left.
    pub(crate) fn excess(&mut self, most: usize) -> Vec<M> {
        let mut excess = Vec::new();
        while self.bytes > most {
            let oldest =
                self.pieces.iter().filter_map(|(&bytes, of_size)| Some((of_size.front()?.0, bytes))).min();
            let Some((_, bytes)) = oldest else { break };
            excess
                .extend(self.pieces.get_mut(&bytes).and_then(VecDeque::pop_front).map(|(_, memory)| memory));
            self.bytes -= bytes;
        }
        self.pieces.retain(|_, of_size| !of_size.is_empty());
        excess
    }
}

/// Memory that was freed here but may still be read by work of other libraries.
///
/// They may have put that work into any stream, so an event is recorded after everything that the device has been
/// given; when it is reached, the memory is free. The event is not recorded when memory is freed, which may happen at
/// any time, also while a thread records a graph, but when memory is asked for. Because it takes longer than most
/// calls, one event serves several pieces of memory.
#[derive(Debug, Default)]
struct Lent {
    /// Freed since the last event.
    fresh: Vec<Loan>,
    /// Freed before an event, the oldest first.
    marked: VecDeque<(Arc<DriverMark>, Vec<Loan>)>,
}

impl Lent {
    /// An event is recorded once this many bytes were freed,
    const BYTES: usize = 16 << 20;
    /// or this many pieces of memory, however small they are.
    const PIECES: usize = 64;

    /// Whether an event is due: enough was freed, or memory of another library, whose owner waits for it.
    fn is_due(&self) -> bool {
        let bytes = |loan: &Loan| match loan {
            Loan::Ours(_, bytes) => *bytes,
            Loan::Theirs(_) => Self::BYTES,
        };
        self.fresh.len() >= Self::PIECES || self.fresh.iter().map(bytes).sum::<usize>() >= Self::BYTES
    }

    /// Takes out what no work of other libraries can read any more. An event whose query fails counts as not reached.
    fn settled(&mut self, driver: &dyn Driver) -> Vec<Loan> {
        let is_done = |(mark, _): &(Arc<DriverMark>, _)| driver.is_done(mark.as_ref()).unwrap_or(false);
        let mut settled = Vec::new();
        while self.marked.front().is_some_and(is_done) {
            settled.extend(self.marked.pop_front().into_iter().flat_map(|(_, loans)| loans));
        }
        settled
    }

    /// Records an event for what was freed. If the driver fails to, the memory stays lent until a later event.
    fn mark(&mut self, driver: &dyn Driver) {
        if !self.fresh.is_empty()
            && let Ok(mark) = driver.mark_everything()
        {
            self.marked.push_back((mark, std::mem::take(&mut self.fresh)));
        }
    }
}

/// Memory that other libraries may still read.
#[derive(Debug)]
enum Loan {
    /// Memory of this crate, and its bytes.
    Ours(Raw, usize),
    /// The owner of memory that another library lent to this crate and whose address was given to others.
    Theirs(Keeper),
}

impl Pool {
    fn take(&self, bytes: usize, driver: &dyn Driver) -> Option<Raw> {
        let kept = lock(&self.free).pop(bytes);
        kept.or_else(|| {
            self.settle(driver);
            lock(&self.free).pop(bytes)
        })
    }

    pub(crate) fn kept(&self) -> u64 {
        lock(&self.free).bytes as u64
    }

    /// Returns memory beyond the bound to the driver.
    fn shrink(&self, driver: &dyn Driver) -> Result<()> {
        let most = usize::try_from(driver.info().memory / 2).unwrap_or(usize::MAX);
        let excess = lock(&self.free).excess(most);
        if !excess.is_empty() {
            driver.finish_all()?;
            excess.into_iter().for_each(|memory| driver.free(memory));
        }
        Ok(())
    }

    /// Takes back lent memory that no work of other libraries can read any more.
    pub(crate) fn settle(&self, driver: &dyn Driver) {
        let mut lent = lock(&self.lent);
        if lent.is_due() {
            lent.mark(driver);
        }
        let settled = lent.settled(driver);
        // Without the lock: dropping an owner runs code of another library, which may call back.
        drop(lent);
        for loan in settled {
            match loan {
                Loan::Ours(raw, bytes) => lock(&self.free).push(bytes, raw),
                Loan::Theirs(owner) => drop(owner),
            }
        }
    }

    /// Returns everything to the driver; lent memory after the work of other libraries.
    pub(crate) fn clear(&self, driver: &dyn Driver) {
        lock(&self.lent).mark(driver);
        let marked: Vec<_> = lock(&self.lent).marked.iter().map(|(mark, _)| mark.clone()).collect();
        // A device that fails here has no work left that could use the memory.
        marked.iter().for_each(|mark| drop(driver.wait(mark.as_ref())));
        self.settle(driver);
        let free = lock(&self.free).excess(0);
        free.into_iter().for_each(|memory| driver.free(memory));
    }
}

/// A piece of the device's memory: this crate's, which returns to the pool when it is dropped, or another library's.
#[derive(Debug)]
pub(crate) struct Memory {
    gpu: Gpu,
    pub(crate) raw: Raw,
    bytes: usize,
    /// Whether other libraries have its address.
    shared: AtomicBool,
    /// The owner, if another library allocated it.
    owner: Option<Keeper>,
    /// The address of memory of another library; 0 for memory of this crate, which is aligned to everything.
    address: u64,
    /// For memory of another library, the number of the last work that reads it.
    last_read: AtomicU64,
}

impl Memory {
    /// Rounds up to a multiple of 1/16 of the next power of two, so that images of similar size can reuse memory.
    pub(crate) fn rounded(bytes: usize) -> usize {
        let step = (bytes.next_power_of_two() / 16).max(256);
        bytes.max(1).next_multiple_of(step)
    }

    fn new(gpu: &Gpu, bytes: usize) -> Result<Self> {
        let bytes = Self::rounded(bytes);
        let driver = gpu.driver();
        gpu.shared.pool.shrink(driver)?;
        let raw = match gpu.shared.pool.take(bytes, driver) {
            Some(raw) => raw,
            None => driver.allocate(bytes).or_else(|error| {
                // Memory that the pool keeps may be all that is missing.
                driver.finish()?;
                gpu.shared.pool.clear(driver);
                driver.allocate(bytes).map_err(|_| error)
            })?,
        };
        Ok(Self::of(gpu, (raw, 0), bytes, None))
    }

    /// Memory at an address of another library, which `owner` keeps.
    pub(crate) fn foreign(gpu: &Gpu, at: (Raw, u64), bytes: usize, owner: Keeper) -> Self {
        Self::of(gpu, at, bytes, Some(owner))
    }

    fn of(gpu: &Gpu, (raw, address): (Raw, u64), bytes: usize, owner: Option<Keeper>) -> Self {
        let (gpu, shared, last_read) = (gpu.clone(), AtomicBool::new(false), AtomicU64::new(0));
        Self { gpu, raw, bytes, shared, owner, address, last_read }
    }

    pub(crate) fn is_aligned_to(&self, bytes: usize) -> bool {
        self.address.is_multiple_of(bytes as u64)
    }

    pub(crate) fn device(&self) -> &DeviceId {
        self.gpu.id()
    }

    /// The address for other libraries. From now on the memory counts as shared with them.
    pub(crate) fn share(&self) -> Result<u64> {
        let address = self.gpu.driver().address(self.raw)?;
        self.shared.store(true, Ordering::Relaxed);
        Ok(address)
    }

    /// Whether it belongs to others, and is only read.
    pub(crate) fn is_foreign(&self) -> bool {
        self.owner.is_some()
    }

    pub(crate) fn read_by(&self, work: u64) {
        if self.is_foreign() {
            self.last_read.fetch_max(work, Ordering::Relaxed);
        }
    }

    /// Fails for memory of others.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.is_foreign() {
            false => Ok(()),
            true => Err(Error::Usage("memory of other programs is only read, never written".into())),
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let (pool, shared) = (&self.gpu.shared.pool, self.shared.load(Ordering::Relaxed));
        match self.owner.take() {
            None if shared => lock(&pool.lent).fresh.push(Loan::Ours(self.raw, self.bytes)),
            None => {
                lock(&pool.free).push(self.bytes, self.raw);
                self.gpu.shared.idle.freed(&self.gpu.shared);
            }
            Some(owner) => {
                // Work of this crate may still read it. On an error the device has failed, and no work is left.
                if !self.gpu.shared.queue.has_done(*self.last_read.get_mut()) {
                    let _ = self.gpu.mark().and_then(|mark| self.gpu.wait(&mark));
                }
                if shared {
                    lock(&pool.lent).fresh.push(Loan::Theirs(owner));
                }
            }
        }
    }
}

/// The bytes of `len` numbers.
pub(crate) fn bytes_of<T>(len: usize) -> Result<usize> {
    let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok());
    bytes.ok_or_else(|| Error::Usage(format!("a buffer of {len} numbers exceeds memory")))
}

/// Numbers in the device's memory. Clones share the memory.
#[derive(Clone, Debug)]
pub struct Buffer<T> {
    pub(crate) memory: Arc<Memory>,
    len: usize,
    element: PhantomData<T>,
}

impl Gpu {
    /// Memory for `len` numbers, whose values are undefined.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn buffer<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        Ok(Buffer::over(Memory::new(self, bytes_of::<T>(len)?)?, len))
    }
}

impl<T: Element> Buffer<T> {
    pub(crate) fn over(memory: Memory, len: usize) -> Self {
        Self { memory: Arc::new(memory), len, element: PhantomData }
    }

    /// The elements at an address that is a multiple of `bytes`, for kernels that read that many bytes at a time: this
    /// memory if it is aligned, otherwise a copy made in the queue. Only memory of other programs can be unaligned.
    ///
    /// # Errors
    /// [`Error::Memory`], [`Error::Driver`].
    pub fn aligned_to(&self, bytes: usize) -> Result<Self> {
        if self.memory.is_aligned_to(bytes) {
            return Ok(self.clone());
        }
        let (copy, mut commands) = (self.gpu().buffer(self.len)?, Commands::new());
        commands.copy((self, 0), (&copy, 0), self.len)?;
        self.gpu().run(&commands)?;
        Ok(copy)
    }

    /// The bytes of device memory that `len` numbers take: somewhat more than they need, so that buffers of similar
    /// size can reuse the same memory.
    pub fn taken(len: usize) -> usize {
        Memory::rounded(len.saturating_mul(size_of::<T>()).min(isize::MAX as usize / 2))
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device that it lies on.
    pub fn gpu(&self) -> &Gpu {
        &self.memory.gpu
    }

    fn range(&self, first: usize, len: usize) -> Result<usize> {
        match first.checked_add(len) {
            Some(end) if end <= self.len => Ok(first * size_of::<T>()),
            _ => Err(Error::Usage(format!("{len} numbers from {first} leave a buffer of {}", self.len))),
        }
    }

    /// Writes `data` from element `first` on. The data may be changed as soon as this returns.
    ///
    /// # Errors
    /// [`Error::Usage`] beyond the end and for memory of others, [`Error::Driver`].
    pub fn write(&self, first: usize, data: &[T]) -> Result<()> {
        let offset = self.range(first, data.len())?;
        self.memory.check_writable()?;
        match data.is_empty() {
            true => Ok(()),
            false => self.gpu().driver().write(self.memory.raw, offset, bytes(data)),
        }
    }

    /// Waits for all work and reads from element `first` on.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn read(&self, first: usize, data: &mut [T]) -> Result<()> {
        let offset = self.range(first, data.len())?;
        match data.is_empty() {
            true => Ok(()),
            false => {
                let read = || self.gpu().driver().read(self.memory.raw, offset, bytes_mut(data));
                self.gpu().shared.queue.waiting(read)
            }
        }
    }

    /// All numbers.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.first(self.len)
    }

    /// The first `len` numbers.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn first(&self, len: usize) -> Result<Vec<T>> {
        let mut data = vec![T::default(); len];
        self.read(0, &mut data)?;
        Ok(data)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}

#[cfg(test)]
#[expect(unsafe_code, reason = "the promise of a test's kernel")]
mod tests {
    use super::*;
    use crate::{Api, KernelSource};

    crate::kernel! {
        unsafe kernel gather(groups) = Gather {
            write out: u32 [n],
            read bytes: u8 [4 * n] aligned 4,
        } {
            n: i32,
        }
    }

    const GATHER: &str = "KERNEL(gather) {
        i32 i = GROUP_X * 32 + LANE_X;
        if (i < args.n) out[i] = ((const GLOBAL u32 *)bytes)[i];
    }";

    /// A buffer of ours, treated as memory of another program at this address.
    fn foreign(of: &Buffer<u8>, address: u64) -> Buffer<u8> {
        let (gpu, raw) = (of.gpu(), of.memory.raw);
        Buffer::over(Memory::foreign(gpu, (raw, address), of.bytes(), Box::new(of.clone())), of.len())
    }

    #[test]
    fn unaligned_memory_is_refused_and_can_be_packed() {
        for gpu in crate::listed::listed(&[Api::OpenCl]) {
            let source = KernelSource::new("gather").kernel::<Gather<'_>>([32, 1]).text(GATHER);
            let kernel = gpu.program(&source).unwrap().kernel::<Gather<'_>>().unwrap();
            let ours = gpu.upload(&(0..40).collect::<Vec<u8>>()).unwrap();
            let out = gpu.buffer::<u32>(10).unwrap();
            let launch = |bytes: &Buffer<u8>| {
                let mut commands = Commands::new();
                commands.launch(&kernel, [1, 1, 1], Gather { out: &out, bytes, n: 10 })?;
                gpu.run(&commands)?;
                out.to_vec()
            };
            let expected = launch(&ours).unwrap();
            assert_eq!(launch(&foreign(&ours, 4096)).unwrap(), expected, "{gpu:?}: a multiple of 4");
            let odd = foreign(&ours, 4097);
            let refused = launch(&odd).unwrap_err().to_string();
            assert!(refused.contains("gather") && refused.contains("`bytes`"), "{gpu:?}: {refused}");
            assert!(refused.contains("multiple of 4 bytes"), "{gpu:?}: {refused}");
            assert_eq!(launch(&odd.aligned_to(4).unwrap()).unwrap(), expected, "{gpu:?}: packed");
            let same = foreign(&ours, 4100).aligned_to(4).unwrap();
            assert!(same.memory.is_foreign(), "{gpu:?}: aligned memory was copied");
        }
    }

    #[test]
    fn alignment_follows_the_type_in_c() {
        use crate::alignment;
        assert_eq!([alignment::<u8>("u8", &[]), alignment::<f32>("f32", &[])], [1, 4]);
        assert_eq!([alignment::<f32>("f32x4", &[]), alignment::<u64>("u64x2", &[])], [16; 2]);
        assert_eq!([alignment::<u8>("u8", &[16]), alignment::<f32>("f32x4", &[4])], [16; 2], "the wider");
        assert_eq!(alignment::<u32>("Keypoint", &[]), 4, "a struct of words");
    }

    #[test]
    fn the_pool_gives_back_what_was_freed_first() {
        let mut free = Free::default();
        for (bytes, name) in [(100, 1), (200, 2), (100, 3), (300, 4)] {
            free.push(bytes, Raw(name));
        }
        assert_eq!(free.excess(700), [], "there is room");
        assert_eq!(free.excess(600), [Raw(1)], "the oldest");
        assert_eq!(free.pop(300), Some(Raw(4)));
        assert_eq!(free.excess(150), [Raw(2)]);
        assert_eq!(free.excess(0), [Raw(3)]);
        assert_eq!((free.bytes, free.pieces.len()), (0, 0));
    }
}
