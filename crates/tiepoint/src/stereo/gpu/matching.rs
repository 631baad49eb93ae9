//! From the views of pairs to their disparities, before refinement: descriptors, sums along paths, winner takes all.

use crate::Result;
use crate::device::gpu::{Buffer, Commands};
use crate::stereo::GpuMaps;
use crate::stereo::aggregation::gpu::{GpuAggregation, GpuAggregationInput};
use crate::stereo::pair::gpu::ViewStacks;
use crate::stereo::winner_takes_all::gpu as winner;
use tiepoint_gpu::KernelSource;

/// The programs of [`record`], except those of descriptors.
pub(in crate::stereo) fn sources(input: &GpuAggregationInput<'_>) -> Result<Vec<KernelSource>> {
    let (layout, paths) = input.sources()?;
    let mut sources = Vec::from(paths);
    sources.push(winner::source_for(input, &layout));
    sources.extend(input.volume.map(|volume| volume.source(&layout)));
    Ok(sources)
}

/// Records the work for the left views. Returns their maps and, if the cost looks up a table, the buffer of the table.
/// If a `table` learnt on the device is given, the work begins by copying it.
pub(in crate::stereo) fn record(
    commands: &mut Commands,
    input: GpuAggregationInput<'_>,
    [left, right]: [&ViewStacks; 2],
    table: Option<&Buffer<u8>>,
) -> Result<(GpuMaps, Option<Buffer<u8>>)> {
    let GpuAggregationInput { options, cost, masked, volume, .. } = input;
    let left_words = left.describe(commands, (cost, masked))?;
    let right_words = right.describe(commands, (cost, masked))?;
    let descriptors = (&left_words, &right_words);
    let mut aggregation = GpuAggregation::new(input)?;
    if let Some(table) = table {
        commands.copy((table, 0), (&aggregation.table, 0), table.len())?;
    }
    if let Some(volume) = volume {
        let masks = [left.mask.as_ref(), right.mask.as_ref()];
        aggregation.table = volume.record(commands, aggregation.layout(), options.min_disparity, masks)?;
    }
    let sums = aggregation.record(commands, descriptors, &left.bytes)?;
    let layout = aggregation.layout();
    let program = winner::program(&input, layout)?;
    let maps = winner::record(commands, &program, &input, (&sums, layout), descriptors)?;
    if let Some(volume) = volume {
        volume.withdraw(commands, &maps, (&aggregation.table, layout), options.min_disparity)?;
    }
    Ok((maps, (!cost.table.is_empty()).then_some(aggregation.table)))
}
