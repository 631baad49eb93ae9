//! Aggregation in bands of rows, for pairs whose sums exceed a device's memory.
//!
//! A first downward pass over all bands but the last keeps the paths that enter each next band as that band's
//! checkpoint. Then, from the bottom up, all paths of each band are computed: downward paths start from its checkpoint,
//! upward paths from those that leave the band below. Paths cross the borders of bands, so the sums are those of the
//! whole image; the downward pass is computed twice.

use super::{Design, GpuAggregation, GpuAggregationInput, P2Planes, Walk, words_of_view};
use crate::Result;
use crate::device::gpu::{Buffer, Commands};
use crate::image::Size;
use crate::image::gpu::GpuStack;

/// Bands of one height, with the memory for one of them.
#[derive(Debug)]
pub(in crate::stereo) struct GpuBands<'a> {
    aggregation: &'a GpuAggregation<'a>,
    descriptors: [Buffer<u32>; 2],
    p2_penalties: P2Planes,
    pub(in crate::stereo) sums: Buffer<u32>,
    /// The paths that enter a band and those that leave it: downward paths first, then upward ones.
    entering: Buffer<u32>,
    leaving: Buffer<u32>,
}

/// The bytes of memory for `bands` bands of the size in `input`, whose descriptors are made from `margin` more rows.
pub(in crate::stereo) fn band_bytes(
    input: &GpuAggregationInput<'_>,
    (bands, margin): (usize, usize),
) -> Result<u64> {
    let design = Design::of(input)?;
    let Size { width, height } = input.size;
    let made = (height + margin) * words_of_view(&design.steps, input.planes());
    // The current band's entering and leaving paths in both passes, and a checkpoint of one pass for each border.
    let checkpoints = (bands + 3) * design.checkpoint_words(1);
    let words = (width as u64).saturating_mul((made + checkpoints) as u64);
    Ok(input.bytes()?.saturating_add(words.saturating_mul(4)))
}

impl<'a> GpuBands<'a> {
    /// Memory for the largest band. The aggregation must be one of bands.
    pub(in crate::stereo) fn new(aggregation: &'a GpuAggregation<'a>) -> Result<Self> {
        let GpuAggregation { input, design, .. } = aggregation;
        let GpuAggregationInput { gpu, size, .. } = *input;
        let descriptors = || gpu.buffer(size.area() * input.planes());
        let checkpoint = || gpu.buffer(2 * design.checkpoint_words(size.width).max(1));
        let bands = Self {
            aggregation,
            descriptors: [descriptors()?, descriptors()?],
            p2_penalties: P2Planes::new(gpu, size.area(), &design.steps)?,
            sums: aggregation.sums(size, 1)?,
            entering: checkpoint()?,
            leaving: checkpoint()?,
        };
        // The values before a path enters the image do not matter, but must be ones that paths can have.
        let mut commands = Commands::new();
        commands.zero(&bands.entering)?;
        commands.zero(&bands.leaving)?;
        gpu.run(&commands)?;
        Ok(bands)
    }

    pub(in crate::stereo) fn descriptors(&self) -> (&Buffer<u32>, &Buffer<u32>) {
        (&self.descriptors[0], &self.descriptors[1])
    }

    /// Records the loading of a band of `rows` rows, from row `from` on, of both views' descriptors and the left grey.
    pub(in crate::stereo) fn load(
        &self,
        commands: &mut Commands,
        descriptors: [&Buffer<u32>; 2],
        grey: &GpuStack<u8>,
        (from, rows): (usize, usize),
    ) -> Result<()> {
        let Size { width, .. } = grey.size();
        let copy = |commands: &mut Commands, made: &Buffer<u32>, kept: &Buffer<u32>, planes: usize| {
            (0..planes).try_for_each(|plane| {
                let at = plane * grey.size().area() + from * width;
                commands.copy((made, at), (kept, plane * rows * width), rows * width)
            })
        };
        let made = self.aggregation.p2_penalties(commands, grey)?;
        for (made, kept) in descriptors.into_iter().zip(&self.descriptors) {
            copy(commands, made, kept, self.aggregation.input.planes())?;
        }
        copy(commands, &made.horizontal, &self.p2_penalties.horizontal, 2)?;
        copy(commands, &made.vertical, &self.p2_penalties.vertical, 2 * self.aggregation.design.steps.len())?;
        Ok(())
    }

    fn walk(&self, size: Size) -> Walk<'_> {
        let Self { p2_penalties, sums, .. } = self;
        Walk { size, images: 1, views: self.descriptors(), p2_penalties, sums }
    }

    /// Records the downward pass over a band. Returns the checkpoint of the next band: the paths that enter it.
    pub(in crate::stereo) fn record_down(&self, commands: &mut Commands, size: Size) -> Result<Buffer<u32>> {
        let paths = (&self.entering, &self.leaving);
        commands.stage("aggregate");
        commands.append(self.aggregation.row_to_row(&self.walk(size), 1, paths)?)?;
        let half = self.leaving.len() / 2;
        let checkpoint = self.aggregation.input.gpu.buffer(half)?;
        commands.copy((&self.leaving, 0), (&checkpoint, 0), half)?;
        commands.copy((&self.leaving, 0), (&self.entering, 0), half)?;
        Ok(checkpoint)
    }

    /// Records all paths of a band, after those of the band below it. The first band has no checkpoint.
    pub(in crate::stereo) fn record(
        &self,
        commands: &mut Commands,
        size: Size,
        checkpoint: Option<&Buffer<u32>>,
    ) -> Result<()> {
        let (walk, half) = (self.walk(size), self.leaving.len() / 2);
        if let Some(paths) = checkpoint {
            commands.copy((paths, 0), (&self.entering, 0), half)?;
        }
        let (aggregation, paths) = (self.aggregation, (&self.entering, &self.leaving));
        commands.stage("aggregate");
        let row_to_row = aggregation.row_to_row(&walk, aggregation.design.passes, paths)?;
        commands.together(aggregation.along_rows(&walk)?, row_to_row)?;
        commands.copy((&self.leaving, half), (&self.entering, half), half)?;
        Ok(())
    }
}
