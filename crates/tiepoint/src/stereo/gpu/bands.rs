//! Pairs that are too large for a device, in bands of rows ([`GpuBands`]): the maps come to the host band by band,
//! where they are refined.

use crate::{
    Error, Result,
    device::{
        Cpu,
        gpu::{Commands, Gpu},
    },
    error::Shortage,
    image::{Image, Size, gpu::GpuStack},
    stereo::{
        RightView, StereoOptions, StereoResult, View,
        aggregation::gpu::{GpuAggregation, GpuAggregationInput, GpuBands},
        cost::{CostSource, gpu::CostKernel},
        pair::{
            Pair,
            gpu::{ViewShape, ViewStacks},
            mirrored,
        },
        winner_takes_all::gpu::{GpuMaps, GpuWinnerTakesAll, Selection},
    },
};
use std::ops::Range;

/// The rows above and below that a descriptor may depend on.
const REACH: usize = 8;

/// Bytes of a pixel beside the aggregation: of both views 8 bits, finer grey, colours and mask; and three maps.
const PIXEL: u64 = 2 * 9 + 12;

/// The maps of a pair before refinement, computed within so many bytes of a device's memory, and the number of bands.
pub(in crate::stereo) fn disparities(
    gpu: &Gpu,
    options: &StereoOptions,
    (pair, source): (&Pair, &dyn CostSource),
    memory: u64,
    cpu: &Cpu,
) -> Result<(StereoResult, usize)> {
    let banded = |pair, source| Banded::new(gpu, options, (pair, source), memory);
    let (mut found, bands) = banded(pair, source)?.maps(Selection::of(options), cpu)?;
    if options.right_view == RightView::Aggregated
        && let Some(source) = source.exchanged()
    {
        let exchanged = pair.exchanged();
        let (right, _) = banded(&exchanged, &*source)?.maps(Selection::of_left(options), cpu)?;
        found.right = Some(mirrored(&right.disparity));
    }
    Ok((found, bands))
}

/// A pair, its cost and the height of its bands.
struct Banded<'a> {
    gpu: &'a Gpu,
    options: &'a StereoOptions,
    pair: &'a Pair,
    cost: CostKernel,
    masked: bool,
    aggregation: GpuAggregation,
    /// Rows of a band.
    rows: usize,
}

impl<'a> Banded<'a> {
    fn new(
        gpu: &'a Gpu,
        options: &'a StereoOptions,
        (pair, source): (&'a Pair, &dyn CostSource),
        memory: u64,
    ) -> Result<Self> {
        let cost = CostKernel::of(source, gpu)?;
        let masked = ViewShape::of(pair).iter().any(|view| view.masked);
        let input = GpuAggregationInput::of(options, (pair.size(), 1), source.greatest(), masked);
        let aggregation = GpuAggregation::new(gpu, &cost, &input)?;
        let rows = rows(&aggregation, pair.size(), memory).map_err(|needed| {
            let name = gpu.info().name.clone();
            let shortage = match options.device_memory {
                Some(limit) if limit <= memory => Shortage::DeviceLimit { name, limit },
                _ => Shortage::Device { name, free: Some(memory) },
            };
            Error::Memory { what: "a band of dense stereo on a GPU", needed, shortage }
        })?;
        Ok(Self { gpu, options, pair, cost, masked, aggregation, rows })
    }

    fn maps(&self, selection: Selection, cpu: &Cpu) -> Result<(StereoResult, usize)> {
        let (size, rows) = (self.pair.size(), self.rows);
        let bands = &GpuBands::new(&self.aggregation, size.width, rows)?;
        let winner = GpuWinnerTakesAll::new(
            self.gpu,
            (&self.cost, self.masked),
            self.aggregation.layout(),
            self.options.min_disparity,
            selection,
        )?;
        let count = size.height.div_ceil(rows);
        let mut checkpoints = Vec::new();
        bands.begin(0)?;
        for band in 0..count - 1 {
            let mut commands = Commands::new();
            self.load(&mut commands, bands, band)?;
            bands.record_forward(&mut commands)?;
            checkpoints.push(bands.keep(&mut commands)?);
            self.gpu.run(&commands)?;
        }
        bands.begin(1)?;
        let mut out: Option<StereoResult> = None;
        for band in (0..count).rev() {
            let mut commands = Commands::new();
            match checkpoints.pop() {
                Some(checkpoint) => bands.restore(&mut commands, &checkpoint)?,
                None => bands.begin(0)?,
            }
            self.load(&mut commands, bands, band)?;
            bands.record(&mut commands)?;
            let maps = winner.record(&mut commands, bands.sums(), bands.descriptors(), (bands.size(), 1))?;
            self.gpu.run(&commands)?;
            let here = band * rows..size.height.min((band + 1) * rows);
            cpu.advance(here.len() * size.width);
            let out = out.get_or_insert_with(|| room(&maps, size));
            take(out, &maps, here, self.aggregation.margin())?;
        }
        let empty = || Error::Image("the left image is empty".into());
        Ok((out.ok_or_else(empty)?, count))
    }

    /// Records the loading of a band and of the rows in its margins.
    fn load(&self, commands: &mut Commands, bands: &GpuBands<'_>, band: usize) -> Result<()> {
        let (height, margin) = (self.pair.size().height, self.aggregation.margin());
        let start = band * self.rows;
        let kept = start.saturating_sub(margin)..height.min(start + self.rows + margin);
        let made = kept.start.saturating_sub(REACH)..height.min(kept.end + REACH);
        let mut view = |view| -> Result<_> {
            let stacks = ViewStacks::of_rows(self.gpu, self.pair, view, &made)?;
            let words = stacks.describe(commands, (&self.cost, self.masked))?;
            Ok((stacks, words))
        };
        let (left, left_words) = view(View::Left)?;
        let (_, right_words) = view(View::Right)?;
        let rows = (kept.start - made.start, kept.start + margin - start, kept.len());
        bands.load(commands, [&left_words, &right_words], &left.bytes, rows)
    }
}

/// The most rows of a band within `memory` bytes; an error is the bytes that the lowest band needs.
fn rows(aggregation: &GpuAggregation, size: Size, memory: u64) -> std::result::Result<usize, u64> {
    let (step, beside) = (aggregation.band_step(), 2 * (aggregation.margin() + REACH));
    let [checkpoint, boundary] = aggregation.boundary_bytes(size.width);
    let row = aggregation.row_bytes(size.width) + PIXEL * size.width as u64;
    let needed = |rows: usize| {
        let checkpoints = (size.height.div_ceil(rows) - 1) as u64;
        let bytes = row.saturating_mul((rows + beside) as u64);
        let bytes = bytes.saturating_add(boundary).saturating_add(checkpoint.saturating_mul(checkpoints));
        // Buffers are rounded up, by an eighth at most.
        bytes.saturating_add(bytes / 8)
    };
    let steps = 1..=size.height.div_ceil(step);
    let fitting = steps.clone().rev().map(|n| n * step).find(|&rows| needed(rows) <= memory);
    fitting.ok_or_else(|| steps.map(|n| needed(n * step)).min().unwrap_or(u64::MAX))
}

/// Empty images for the maps of the whole pair.
fn room(maps: &GpuMaps, size: Size) -> StereoResult {
    let image = |_: &GpuStack<f32>| Image::new(size);
    StereoResult {
        disparity: image(&maps.disparity),
        right: maps.right.as_ref().map(image),
        confidence: maps.confidence.as_ref().map(image),
        reasons: None,
    }
}

/// Copies the rows of a band, which begin at row `first` of its maps.
fn take(out: &mut StereoResult, maps: &GpuMaps, rows: Range<usize>, first: usize) -> Result<()> {
    let pairs = [
        (Some(&mut out.disparity), Some(&maps.disparity)),
        (out.right.as_mut(), maps.right.as_ref()),
        (out.confidence.as_mut(), maps.confidence.as_ref()),
    ];
    for (to, from) in pairs {
        let Some((to, from)) = to.zip(from) else { continue };
        let from = from.download(0)?;
        for (y, row) in rows.clone().zip(first..) {
            to.row_mut(y).copy_from_slice(from.row(row));
        }
    }
    Ok(())
}
