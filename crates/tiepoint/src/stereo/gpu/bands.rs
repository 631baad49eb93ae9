//! Pairs that are too large for a device, in bands of rows ([`GpuBands`]): the maps are copied to the host band by band
//! and refined there.

use crate::device::Cpu;
use crate::device::gpu::{Commands, Gpu};
use crate::error::Shortage;
use crate::image::Size;
use crate::stereo::aggregation::gpu::{GpuAggregation, GpuAggregationInput, GpuBands, band_bytes};
use crate::stereo::cost::CostSource;
use crate::stereo::pair::gpu::ViewStacks;
use crate::stereo::pair::{Pair, mirrored};
use crate::stereo::winner_takes_all::gpu as winner;
use crate::stereo::{RightView, StereoOptions, StereoResult, View};
use crate::{Error, Result};
use std::ops::Range;

/// More rows than a descriptor depends on, above and below.
const REACH: usize = 8;

/// The least height of a band: a path reaches over no more rows.
const LOWEST: usize = 2;

/// Bytes for each pixel besides the aggregation: 8-bit grey, finer grey, colours and mask of both views; three maps.
const PIXEL: u64 = 2 * 9 + 12;

/// The maps of a pair before refinement, computed within `memory` bytes of a device's memory, and the number of bands.
pub(in crate::stereo) fn disparities(
    gpu: &Gpu,
    options: &StereoOptions,
    (pair, source): (&Pair, &dyn CostSource),
    memory: u64,
    cpu: &Cpu,
) -> Result<(StereoResult, usize)> {
    let of = |pair: &Pair, source: &dyn CostSource, options| {
        let (cost, greatest, masked) = (&source.kernel(), source.greatest(), pair.is_masked());
        let (size, images, banded) = (pair.size(), 1, true);
        let whole =
            GpuAggregationInput { gpu, options, cost, greatest, masked, size, images, banded, volume: None };
        maps(pair, of_band(&whole, rows(&whole, memory)?), cpu)
    };
    let (mut found, bands) = of(pair, source, *options)?;
    if options.right_view == RightView::Aggregated
        && let Some(source) = source.exchanged()
    {
        let (right, _) = of(&pair.exchanged(), &*source, options.for_left())?;
        found.right = Some(mirrored(&right.disparity));
    }
    Ok((found, bands))
}

/// The maps of a pair, and the number of bands of the height in `input`.
fn maps(pair: &Pair, input: GpuAggregationInput<'_>, cpu: &Cpu) -> Result<(StereoResult, usize)> {
    let (size, aggregation) = (pair.size(), &GpuAggregation::new(input)?);
    let (bands, layout) = (&GpuBands::new(aggregation)?, aggregation.layout());
    let program = &winner::program(&input, layout)?;
    let count = size.height.div_ceil(input.size.height);
    // Records the loading of a band; returns its rows.
    let load = |commands: &mut Commands, band: usize| -> Result<Range<usize>> {
        let rows = band * input.size.height..size.height.min((band + 1) * input.size.height);
        let made = rows.start.saturating_sub(REACH)..size.height.min(rows.end + REACH);
        let mut view = |view| -> Result<_> {
            let stacks = ViewStacks::of_rows(input.gpu, pair, view, &made)?;
            let words = stacks.describe(commands, (input.cost, input.masked))?;
            Ok((stacks, words))
        };
        let (left, left_words) = view(View::Left)?;
        let (_, right_words) = view(View::Right)?;
        let place = (rows.start - made.start, rows.len());
        bands.load(commands, [&left_words, &right_words], &left.bytes, place)?;
        Ok(rows)
    };
    let mut checkpoints = Vec::new();
    for band in 0..count - 1 {
        let mut commands = Commands::new();
        let here = load(&mut commands, band)?;
        checkpoints.push(bands.record_down(&mut commands, Size::new(size.width, here.len()))?);
        input.gpu.run(&commands)?;
    }
    let mut out = StereoResult::new(size, input.options.selects_right(), input.options.confidence);
    for band in (0..count).rev() {
        let mut commands = Commands::new();
        let here = load(&mut commands, band)?;
        let of_band = of_band(&input, here.len());
        // The first band has no checkpoint.
        bands.record(&mut commands, of_band.size, checkpoints.pop().as_ref())?;
        let (sums, views) = ((&bands.sums, layout), bands.descriptors());
        let maps = winner::record(&mut commands, program, &of_band, sums, views)?;
        input.gpu.run(&commands)?;
        cpu.advance(here.len() * size.width);
        for (to, from) in out.floats_mut().zip(maps.floats()) {
            let from = from.download(0)?;
            here.clone().enumerate().for_each(|(i, y)| to.row_mut(y).copy_from_slice(from.row(i)));
        }
    }
    Ok((out, count))
}

/// The input with bands of `rows` rows in place of the image.
fn of_band<'a>(input: &GpuAggregationInput<'a>, rows: usize) -> GpuAggregationInput<'a> {
    GpuAggregationInput { size: Size::new(input.size.width, rows), ..*input }
}

/// The greatest height of bands that fit into `memory` bytes, chosen so that their heights are as equal as possible.
fn rows(input: &GpuAggregationInput<'_>, memory: u64) -> Result<usize> {
    let Size { width, height } = input.size;
    let mut least = u64::MAX;
    for bands in 1..=height.div_ceil(LOWEST) {
        let rows = height.div_ceil(bands).max(LOWEST);
        let bytes = band_bytes(&of_band(input, rows), (bands, 2 * REACH))?;
        let bytes = bytes.saturating_add(PIXEL * (width * (rows + 2 * REACH)) as u64);
        // The sizes of buffers are rounded up by at most an eighth.
        let needed = bytes.saturating_add(bytes / 8);
        if needed <= memory {
            return Ok(rows);
        }
        least = least.min(needed);
    }
    let name = input.gpu.info().name.clone();
    let shortage = match input.options.device_memory {
        Some(limit) if limit <= memory => Shortage::DeviceLimit { name, limit },
        _ => Shortage::Device { name, free: Some(memory) },
    };
    Err(Error::Memory { what: "a band of dense stereo on a GPU", needed: least, shortage })
}
