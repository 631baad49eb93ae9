//! The trait that SIFT and SURF implement for [`GpuDetector`](super::GpuDetector).

use super::results::{Lists, Recycled};
use crate::device::Cpu;
use crate::device::gpu::{Commands, Gpu};
use crate::error::ErrorKind;
use crate::feature::Features;
use crate::feature::select::Selection;
use crate::image::gpu::{AnyGpuImage, GpuImage};
use crate::image::{PixelKind, Pixels, Size};
use crate::{Error, Result};
use std::convert::Infallible;
use std::fmt::Debug;
use std::ops::Range;

/// The images that a pipeline is made for. It can be used as long as this stays the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Purpose<L> {
    pub(crate) layout: L,
    pub(crate) pixel: PixelKind,
    pub(crate) masked: bool,
    /// The number of features of an image that fit.
    pub(crate) capacity: usize,
}

/// All stages of a detector for images of one purpose: memory that is reserved once, and work that is recorded once.
pub trait Pipeline: Sized + Debug + Send {
    const NAME: &'static str;

    type Options: Copy + Debug + Send + Sync;
    /// The layout of some images of one size in memory.
    type Layout: Clone + Debug + PartialEq + Send;
    /// How an image that needs too much memory is searched.
    type Parts: Parts<Self>;

    /// Fails when an option is out of range.
    fn check(options: &Self::Options) -> Result<()>;

    fn selection(options: &Self::Options) -> Selection;

    fn layout(options: &Self::Options, size: Size, images: usize) -> Result<Self::Layout>;

    /// The number of pixels of an image in the first octave.
    fn pixels(layout: &Self::Layout) -> usize;

    /// The number of features of an image with much detail.
    fn usual_capacity(layout: &Self::Layout) -> usize;

    /// Bytes of the device's memory that a pipeline takes, images and mask included.
    fn bytes(options: &Self::Options, purpose: &Purpose<Self::Layout>) -> u64;

    fn mask_size(layout: &Self::Layout) -> Size;

    /// Compiles the programs that depend only on the options.
    fn prepare(gpu: &Gpu, cpu: &Cpu, options: &Self::Options) -> Result<()>;

    /// Reserves the memory, and records the work, which reads its mask from `mask`. The memory of `old` may be used
    /// again.
    fn new(
        core: &Core<Self>,
        purpose: Purpose<Self::Layout>,
        mask: Option<&GpuImage<u8>>,
        old: Option<Self>,
    ) -> Result<Self>;

    fn purpose(&self) -> &Purpose<Self::Layout>;

    fn launches(&self) -> usize;

    /// Queues the search of these images, without [`parcels`](Self::parcels). A mask is copied from the first to the
    /// second buffer, which the recorded work reads.
    fn begin(&self, images: &[AnyGpuImage], mask: Option<[&GpuImage<u8>; 2]>) -> Result<()>;

    /// Commands that each complete the search of some images, so that their results can be copied while others are
    /// completed; empty if [`begin`](Self::begin) does everything.
    fn parcels(&self) -> &[(Range<usize>, Commands)];

    fn lists(&self) -> Lists<'_>;
}

/// An image in parts that are searched one after the other.
pub trait Parts<P: Pipeline>: Sized + Debug + Send {
    /// Whether these parts fit such images.
    fn serves(&self, size: Size, pixel: PixelKind, masked: bool) -> bool;

    fn count(&self) -> usize;

    /// All features, before selection.
    fn detect(&mut self, image: &Pixels<'_>, mask: Option<&GpuImage<u8>>) -> Result<Features>;

    /// Parts that fit into the memory, found by trying, and the features in them; `refused` when no parts fit.
    fn fit(
        core: &Core<P>,
        image: &Pixels<'_>,
        mask: Option<&GpuImage<u8>>,
        refused: Error,
    ) -> Result<(Self, Features)>;
}

/// For detectors that search images only as a whole.
impl<P: Pipeline> Parts<P> for Infallible {
    fn serves(&self, _: Size, _: PixelKind, _: bool) -> bool {
        match *self {}
    }

    fn count(&self) -> usize {
        match *self {}
    }

    fn detect(&mut self, _: &Pixels<'_>, _: Option<&GpuImage<u8>>) -> Result<Features> {
        match *self {}
    }

    fn fit(
        _: &Core<P>,
        _: &Pixels<'_>,
        _: Option<&GpuImage<u8>>,
        refused: Error,
    ) -> Result<(Self, Features)> {
        Err(refused)
    }
}

/// The state that all searches of a detector share.
#[derive(Debug)]
pub struct Core<P: Pipeline> {
    pub(crate) gpu: Gpu,
    /// The threads that copy images and results.
    pub(crate) cpu: Cpu,
    pub(crate) options: P::Options,
    /// Bytes of the device's memory that a search may take.
    pub(crate) limit: Option<u64>,
    /// Features of an image to make room for at first; 0 for the usual number.
    pub(crate) capacity: usize,
    pub(crate) recycled: Recycled,
}

impl<P: Pipeline> Core<P> {
    pub(crate) fn new(gpu: &Gpu, cpu: &Cpu, options: P::Options) -> Result<Self> {
        P::check(&options)?;
        P::prepare(gpu, cpu, &options)?;
        Ok(Self {
            gpu: gpu.clone(),
            cpu: cpu.clone(),
            options,
            limit: None,
            capacity: 0,
            recycled: Recycled::default(),
        })
    }
}

/// Whether the error is a lack of memory, so that a smaller search may succeed.
pub(crate) fn is_of_memory(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::DeviceMemory | ErrorKind::MemoryLimit)
}
