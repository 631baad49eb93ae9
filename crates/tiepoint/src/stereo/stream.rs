//! Many pairs one after the other, as of a video or of a pair of cameras.

use super::{Masks, Stereo, StereoOptions, StereoResult, gpu::Flow};
use crate::{
    Error, Result,
    device::{Computing, Processor},
    image::AnyView,
};
use std::collections::VecDeque;

/// Dense stereo of many pairs, one after the other, as of a video or of a pair of cameras. Results come in the order of
/// the pairs, and are those of [`Stereo::compute`], bit for bit.
///
/// On a GPU several pairs are in flight: while one is computed, the next travels to the device and the maps of the last one
/// back. Memory is reserved with the first pair, and again where a pair has another size or type of pixel. Small pairs
/// fill a device better [several at a time](Self::with_batch). On the CPU each pair is computed when it is pushed.
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
///     stream.push((&frame).into(), (&frame).into(), Masks::default())?;
///     while stream.len() > stream.in_flight() {
///         maps += usize::from(stream.pop()?.is_some());
///     }
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
    flow: Flow,
    /// Computed and not yet taken.
    found: VecDeque<StereoResult>,
}

/// Sets of pairs in flight unless the caller says otherwise: one that is sent, one that is computed, one that comes back.
const IN_FLIGHT: usize = 3;

/// So many pairs may be on a device at a time: their memory is taken at once.
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
            flow: Flow::new(IN_FLIGHT, 1),
            found: VecDeque::new(),
        })
    }

    /// Lets a GPU have so many pairs at a time, or sets of pairs, 1 to 1024: default 3.
    ///
    /// # Errors
    /// [`Error::Option`] out of range.
    pub fn with_in_flight(self, sets: usize) -> Result<Self> {
        match (1..=MOST).contains(&sets) {
            true => Ok(Self { slots: sets, flow: Flow::new(sets, self.batch), ..self }),
            false => Err(Error::option("in_flight", sets, "1 to 1024")),
        }
    }

    /// Lets a GPU compute sets of so many pairs together, 1 to 1024: default 1. A set is computed when it is complete, when
    /// a pair of another size or type of pixel comes, or when a result is taken that nothing else can give. Pairs whose
    /// cost learns from them are computed one by one.
    ///
    /// # Errors
    /// [`Error::Option`] out of range.
    pub fn with_batch(self, pairs: usize) -> Result<Self> {
        match (1..=MOST).contains(&pairs) {
            true => Ok(Self { batch: pairs, flow: Flow::new(self.slots, pairs), ..self }),
            false => Err(Error::option("batch", pairs, "1 to 1024")),
        }
    }

    /// The options.
    pub fn options(&self) -> &StereoOptions {
        self.stereo.options()
    }

    /// Pairs that a GPU has at a time: as long as no more were pushed than taken, [`push`](Self::push) need not wait for
    /// results.
    pub fn in_flight(&self) -> usize {
        self.slots * self.batch
    }

    /// Pairs that were pushed and whose results were not taken.
    pub fn len(&self) -> usize {
        self.found.len() + self.flow.len()
    }

    /// Whether there is nothing to take.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the next pair, which is copied. Waits for the oldest where as many are [in flight](Self::in_flight) as may be;
    /// results that are not taken are kept.
    ///
    /// Where a GPU is too small for the pair the CPU computes it, and a [note](Processor::note) says so.
    ///
    /// # Errors
    /// As [`Stereo::compute`]. The pair has then no result, and the others keep theirs unless the device failed.
    pub fn push(&mut self, left: AnyView<'_>, right: AnyView<'_>, masks: Masks<'_>) -> Result<()> {
        let Self { stereo, processor, slots, batch, flow, found } = self;
        let options = *stereo.options();
        let pair = stereo.prepare([left, right], masks, processor, |prepared| {
            let cpu = prepared.cpu.clone();
            let Some(gpu) = &processor.gpu else {
                processor.count_computed(Computing::Cpu);
                return stereo.on_cpu(prepared).map(Some);
            };
            stereo.check_sums(prepared.source.greatest(), prepared.penalties)?;
            let work = (prepared.pair, prepared.source);
            let mut pushed = flow.push(gpu, &options, work, found, &cpu);
            if *slots * *batch > 1 && pushed.as_ref().is_err_and(Error::is_device_limit) {
                // One pair at a time may fit.
                flow.finish(found, &cpu)?;
                *flow = Flow::new(1, 1);
                pushed = flow.push(gpu, &options, work, found, &cpu);
            }
            match pushed {
                Err(error) if error.is_device_limit() => {
                    // Alone, in bands of rows or on the CPU.
                    flow.finish(found, &cpu)?;
                    stereo.disparities(prepared, processor).map(Some)
                }
                pushed => {
                    processor.count_computed(Computing::Gpu);
                    pushed.map(|()| None)
                }
            }
        });
        self.processor.collect_times();
        self.found.extend(pair?);
        Ok(())
    }

    /// The result of the oldest pair, once it is there; `None` when there is none.
    ///
    /// # Errors
    /// [`Error::Device`] when the device fails: the results of all pairs that it had are lost.
    pub fn pop(&mut self) -> Result<Option<StereoResult>> {
        if self.found.is_empty() {
            let landed = self.flow.land(&mut self.found, &self.processor.cpu);
            self.processor.collect_times();
            landed?;
        }
        Ok(self.found.pop_front())
    }
}
