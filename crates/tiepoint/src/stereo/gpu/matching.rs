//! From the views of pairs to their disparities, before refinement: descriptors, sums along paths, winner takes all.

use crate::Result;
use crate::device::gpu::{Buffer, Commands};
use crate::stereo::GpuMaps;
use crate::stereo::aggregation::gpu::{GpuAggregation, GpuAggregationInput};
use crate::stereo::cost::volume::gpu::GpuVolume;
use crate::stereo::pair::gpu::ViewStacks;
use crate::stereo::winner_takes_all::gpu::{self as winner, WinnerOptions};
use tiepoint_gpu::KernelSource;

/// Matching of pairs on a device.
#[derive(Clone, Copy, Debug)]
pub(in crate::stereo) struct GpuMatching<'a> {
    pub(in crate::stereo) input: GpuAggregationInput<'a>,
    pub(in crate::stereo) selection: WinnerOptions,
    /// The costs, if the caller has computed them.
    pub(in crate::stereo) volume: Option<&'a GpuVolume>,
}

impl GpuMatching<'_> {
    /// Its programs, except those of descriptors.
    pub(in crate::stereo) fn sources(&self) -> Result<Vec<KernelSource>> {
        let (layout, paths) = self.input.sources()?;
        let mut sources = Vec::from(paths);
        sources.push(winner::source(self.input.cost, self.input.masked, &layout, self.selection));
        sources.extend(self.volume.map(|volume| volume.source(&layout)));
        Ok(sources)
    }

    /// Records the work for the left views. Returns their maps and, if the cost looks up a table, the buffer of the
    /// table. If `table` is given, which was learnt on the device, the work begins by copying it.
    pub(in crate::stereo) fn record(
        &self,
        commands: &mut Commands,
        [left, right]: [&ViewStacks; 2],
        table: Option<&Buffer<u8>>,
    ) -> Result<(GpuMaps, Option<Buffer<u8>>)> {
        let Self { input, selection, .. } = *self;
        let GpuAggregationInput { options, cost, masked, .. } = input;
        let left_words = left.describe(commands, (cost, masked))?;
        let right_words = right.describe(commands, (cost, masked))?;
        let descriptors = (&left_words, &right_words);
        let mut aggregation = GpuAggregation::new(input)?;
        if let Some(table) = table {
            commands.copy((table, 0), (&aggregation.table, 0), table.len())?;
        }
        if let Some(volume) = self.volume {
            let masks = [left.mask.as_ref(), right.mask.as_ref()];
            aggregation.table =
                volume.record(commands, aggregation.layout(), options.min_disparity, masks)?;
        }
        let sums = aggregation.record(commands, descriptors, &left.bytes)?;
        let layout = aggregation.layout();
        let program = winner::program(&input, layout, selection)?;
        let maps = winner::record(commands, &program, (&input, selection), (&sums, layout), descriptors)?;
        if let Some(volume) = self.volume {
            volume.withdraw(commands, &maps, (&aggregation.table, layout), options.min_disparity)?;
        }
        Ok((maps, (!cost.table.is_empty()).then_some(aggregation.table)))
    }
}
