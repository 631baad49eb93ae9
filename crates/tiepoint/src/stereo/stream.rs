//! Many pairs one after the other, such as those of a video or of a pair of cameras.

use super::cost::gpu::GpuCost;
use super::gpu::{Flow, PlanInput, StreamResult, Work};
use super::pair::Pictures;
use super::{Masks, Stereo, StereoOptions, StereoResult};
use crate::device::{Computing, Cpu, Processor};
use crate::image::AnyView;
use crate::{Error, Result};

/// Dense stereo of many pairs, one after the other, such as those of a video or of a pair of cameras. Results come in
/// the order of the pairs, and equal those of [`Stereo::compute`], bit for bit.
///
/// On a GPU several pairs are in flight: while one is computed, the next is copied to the device and the maps of the
/// previous one are copied back. Memory is reserved with the first pair, and again if a pair has another size or pixel
/// type. A device is used better if small pairs are computed [several at a time](Self::with_batch). On the CPU each
/// pair is computed when it is pushed.
///
/// ```
/// use tiepoint::device::{Cpu, Processor};
/// use tiepoint::image::{Image, Size};
/// use tiepoint::stereo::{Masks, StereoOptions, StereoStream};
///
/// let processor = Processor::from(Cpu::sequential());
/// let mut stream = StereoStream::new(StereoOptions::default().with_disparities(16), &processor)?;
/// let frame = Image::<u8>::new(Size::new(40, 30));
/// let mut maps = 0;
/// for _ in 0..5 {
///     while stream.len() >= stream.in_flight() {
///         maps += usize::from(stream.pop()?.is_some());
///     }
///     stream.push((&frame).into(), (&frame).into(), Masks::default())?;
/// }
/// while let Some(_found) = stream.pop()? {
///     maps += 1;
/// }
/// assert_eq!(maps, 5);
/// # Ok::<(), tiepoint::Error>(())
/// ```
#[derive(Debug)]
pub struct StereoStream {
    stereo: Stereo,
    processor: Processor,
    slots: usize,
    batch: usize,
    /// The threads that copy pictures for a GPU, if they are not those of the processor.
    copying: Option<Cpu>,
    flow: Flow,
    /// Whether a pair was pushed.
    has_begun: bool,
}

/// The result of a pair of a stream, which may still be on its way from a GPU; any thread may wait for it. Until it is
/// waited for or dropped it holds host memory for its maps, so memory grows with the number of results that are kept.
#[derive(Debug)]
pub struct PendingStereo(StreamResult);

impl PendingStereo {
    /// Waits for the result.
    ///
    /// # Errors
    /// [`Error::Device`] when the device fails.
    pub fn wait(self, cpu: &Cpu) -> Result<StereoResult> {
        match self.0 {
            StreamResult::Ready(found) => Ok(found),
            StreamResult::Arriving(arriving) => arriving.wait(cpu),
        }
    }
}

/// The default number of sets in flight: one is sent, one is computed, and the maps of one are read back.
const IN_FLIGHT: usize = 3;

/// The most sets in flight, and the most pairs of a set. Memory for all of them is taken with the first pair.
const MOST: usize = 1024;

impl StereoStream {
    /// Checks the options. Memory is taken with the first pair.
    ///
    /// # Errors
    /// As [`StereoOptions::check`].
    pub fn new(options: StereoOptions, processor: &Processor) -> Result<Self> {
        Ok(Self {
            stereo: Stereo::new(options)?,
            processor: processor.clone(),
            slots: IN_FLIGHT,
            batch: 1,
            copying: None,
            flow: Flow::new(IN_FLIGHT, 1),
            has_begun: false,
        })
    }

    /// How many pairs, or sets of pairs, are on a GPU at a time: 1 to 1024, default 3.
    ///
    /// # Errors
    /// [`Error::Option`] out of range.
    pub fn with_in_flight(mut self, sets: usize) -> Result<Self> {
        match (1..=MOST).contains(&sets) {
            true => Ok(Self { slots: sets, flow: self.flow.renewed(sets, self.batch), ..self }),
            false => Err(Error::option("in_flight", sets, "1 to 1024")),
        }
    }

    /// How many pairs a GPU computes together as a set: 1 to 1024, default 1. A set is sent when it is complete, when a
    /// pair of another size or type of pixel is pushed, and when a result is taken and no set is in flight. Pairs whose
    /// cost learns from them are computed one by one.
    ///
    /// # Errors
    /// [`Error::Option`] out of range.
    pub fn with_batch(mut self, pairs: usize) -> Result<Self> {
        match (1..=MOST).contains(&pairs) {
            true => Ok(Self { batch: pairs, flow: self.flow.renewed(self.slots, pairs), ..self }),
            false => Err(Error::option("batch", pairs, "1 to 1024")),
        }
    }

    /// Which threads copy the pictures of a pair for a GPU, by default those of the processor. If these have other
    /// work, the calling thread alone, [`Cpu::sequential`], is faster, because it need not wait for them.
    #[must_use]
    pub fn with_copying(self, cpu: &Cpu) -> Self {
        Self { copying: Some(cpu.clone()), ..self }
    }

    /// The most pairs on a GPU at a time. If the stream already has that many, [`push`](Self::push) waits for the
    /// oldest result and reads it back, unless that result was [taken](Self::pop_pending) before.
    pub fn in_flight(&self) -> usize {
        self.slots * self.batch
    }

    /// The number of pairs whose results have not been taken.
    pub fn len(&self) -> usize {
        self.flow.found.len() + self.flow.len()
    }

    /// Whether there is no result to take.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the next pair, whose images are copied. Waits for the oldest result if no more pairs may be [in
    /// flight](Self::in_flight); results that were not taken are kept.
    ///
    /// If the GPU has too little memory for the pair, the CPU computes it, and a [note](Processor::note) says so.
    ///
    /// # Errors
    /// As [`Stereo::compute`]. The pair then has no result; those of other pairs are lost only if the device failed.
    pub fn push(&mut self, left: AnyView<'_>, right: AnyView<'_>, masks: Masks<'_>) -> Result<()> {
        if std::mem::replace(&mut self.has_begun, true) {
            self.processor.expect_much_work();
        }
        if self.processor.is_opening() {
            // No pair has been sent to a device yet.
            let found = self.stereo.compute(left, right, masks, &self.processor)?;
            self.flow.found.push_back(StreamResult::Ready(found));
            return Ok(());
        }
        if self.flow.cache.is_empty()
            && let Some(of_single_pairs) = self.stereo.on_gpu.take()
        {
            self.flow.cache = of_single_pairs;
        }
        let pictures = &Pictures::new([left, right], masks)?;
        let found = match self.push_pictures(pictures) {
            Ok(true) => Ok(None),
            Ok(false) => self.push_prepared(pictures),
            Err(error) => Err(error),
        };
        self.processor.collect_times();
        self.flow.found.extend(found?.map(StreamResult::Ready));
        Ok(())
    }

    /// Sends a pair to the GPU for all work; `false` if there is none, the host must learn, or the pair is too large.
    fn push_pictures(&mut self, pictures: &Pictures<'_>) -> Result<bool> {
        let Self { stereo, processor, flow, copying, .. } = self;
        let Ok(Some(gpu)) = &processor.joining_gpu() else { return Ok(false) };
        let Some((input, cost)) = &stereo.picture_input(gpu, pictures)? else { return Ok(false) };
        let cpu = &processor.cpu;
        let work = Work { gpu, options: stereo.options(), cost, cpu };
        let pushed = flow.push(work, input, copying.as_ref().unwrap_or(cpu));
        if !matches!(pushed, Ok(false)) {
            processor.count_computed(Computing::Gpu);
        }
        pushed
    }

    /// Computes a pair that the host has prepared, or sends it to the GPU; returns its result if the CPU computed it.
    fn push_prepared(&mut self, pictures: &Pictures<'_>) -> Result<Option<StereoResult>> {
        let Self { stereo, processor, flow, copying, .. } = self;
        stereo.prepare(pictures, processor, |prepared| {
            let Ok(Some(gpu)) = &processor.joining_gpu() else {
                processor.count_computed(Computing::Cpu);
                return stereo.on_cpu(prepared).map(Some);
            };
            prepared.options.check_sums(prepared.source.greatest())?;
            let (cpu, cost) = (&prepared.cpu, &GpuCost::of(prepared.source));
            let options = stereo.options();
            let input = PlanInput::ready(options, prepared.pair, cost);
            let pushed = flow.push(Work { gpu, options, cost, cpu }, &input, copying.as_ref().unwrap_or(cpu));
            if !matches!(pushed, Ok(false)) {
                processor.count_computed(Computing::Gpu);
                return pushed.map(|_| None);
            }
            // Alone, in bands of rows or on the CPU.
            flow.finish(cpu)?;
            stereo.disparities(prepared, processor).map(Some)
        })
    }

    /// Waits for the result of the oldest pair; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Device`] when the device fails: the results of all pairs on it are lost.
    pub fn pop(&mut self) -> Result<Option<StereoResult>> {
        self.pop_pending()?.map(|found| found.wait(&self.processor.cpu)).transpose()
    }

    /// As [`pop`](Self::pop), without waiting for the result: another thread can wait for it while this one continues.
    ///
    /// # Errors
    /// As [`pop`](Self::pop).
    pub fn pop_pending(&mut self) -> Result<Option<PendingStereo>> {
        if self.flow.found.is_empty() {
            let oldest = self.flow.oldest();
            self.processor.collect_times();
            self.flow.found.extend(oldest?.into_iter().map(StreamResult::Arriving));
        }
        Ok(self.flow.found.pop_front().map(PendingStereo))
    }
}
