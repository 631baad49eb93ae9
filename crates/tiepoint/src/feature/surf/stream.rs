//! The search band by band: every stage works on the rows that the stage before it has completed.
//!
//! A band is 64 image rows, whatever the number of threads. After a band each octave computes the response
//! rows whose largest filter ends in it and searches the rows that now have a neighbour below; keypoints
//! whose square now ends above the last row are described. In wide images responses are computed and searched
//! a few rows at a time, while they are in the cache. The rings keep only the rows that can still be read.

use super::describe::Square;
use super::integral::{Integral, Total};
use super::orient::{Direction, Disc};
use super::plan::{self, Octave};
use super::refine::{self, Sample};
use super::response::ResponseRows;
use super::{SurfOptions, extrema};
use crate::Result;
use crate::device::{Cpu, dispatch};
use crate::feature::{Descriptors, Features, Keypoint};
use crate::image::{ImageView, Pixel, Size};
use fearless_simd::Simd;
use fearless_simd_macros::simd;
use std::ops::Range;

pub(super) const BAND: usize = 64;

/// Image rows whose responses are computed before they are searched: about 2¹⁷ pixels, which stay in the cache.
fn slice(size: Size) -> usize {
    ((1 << 17) / size.width).clamp(8, BAND)
}

const ROWS_A_TASK: usize = 16;

const GROUP: usize = 16;

/// The options, and the tables that depend only on them.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) options: SurfOptions,
    octaves: Vec<Octave>,
    disc: Disc,
    square: Square,
    /// Image rows that any stage may need above or below its own.
    reach: usize,
}

impl Tables {
    pub(super) fn new(options: SurfOptions) -> Self {
        let octaves = plan::octaves(&options);
        let square = Square::new(&options);
        let reach = |o: &Octave| {
            let [above, below] = o.reach();
            let square = square.reach(o.largest_scale()) as usize;
            square.max(above.max(below) + 2 * o.step)
        };
        let reach = octaves.iter().map(reach).max().unwrap_or(0);
        Self { options, octaves, disc: Disc::new(options.preset), square, reach }
    }
}

/// A ring of the latest rows of one layer's responses.
#[derive(Debug, Default)]
struct Ring {
    data: Vec<f32>,
    width: usize,
    height: usize,
}

impl Ring {
    fn start(&mut self, width: usize, height: usize) {
        if (self.width, self.height) != (width, height) {
            *self = Self { data: vec![0.0; width * height], width, height };
        }
    }

    fn row(&self, row: usize) -> &[f32] {
        &self.data[row % self.height * self.width..][..self.width]
    }

    fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.data[row % self.height * self.width..][..self.width]
    }

    /// The rows of a range, cut into pieces that are contiguous in the ring.
    fn pieces(&mut self, rows: Range<usize>) -> Vec<(Range<usize>, &mut [f32])> {
        if rows.is_empty() || self.width == 0 {
            return vec![];
        }
        // The range may pass the end of the ring once.
        let (first, width) = (rows.start % self.height, self.width);
        let to_end = rows.len().min(self.height - first);
        let (wrapped, straight) = self.data.split_at_mut(first * width);
        let parts = [
            (rows.start, &mut straight[..to_end * width]),
            (rows.start + to_end, &mut wrapped[..(rows.len() - to_end) * width]),
        ];
        let cut = |(start, part): (usize, _)| {
            <[f32]>::chunks_mut(part, ROWS_A_TASK * width).enumerate().map(move |(i, piece)| {
                let start = start + i * ROWS_A_TASK;
                (start..start + piece.len() / width, piece)
            })
        };
        parts.into_iter().flat_map(cut).collect()
    }
}

#[derive(Debug, Default)]
struct OctaveRows {
    layers: Vec<Ring>,
    /// Sample rows below this one have responses.
    ready: usize,
    /// Sample rows below this one have been searched.
    searched: usize,
}

/// The memory that is kept from band to band and from image to image.
#[derive(Debug, Default)]
pub(super) struct Buffers<A> {
    integral: Integral<A>,
    octaves: Vec<OctaveRows>,
    /// Keypoints whose square reaches below the last row.
    waiting: Vec<Keypoint>,
}

impl<A: Total> Buffers<A> {
    pub(super) fn detect<T: Pixel>(
        &mut self,
        tables: &Tables,
        view: ImageView<'_, T>,
        mask: Option<ImageView<'_, u8>>,
        cpu: &Cpu,
    ) -> Result<Features> {
        let size = view.size();
        self.start(tables, size);
        let white = if T::WHITE == 255.0 { 255.0 } else { 65535.0 };
        let (mut keypoints, mut values) = (Vec::new(), Vec::new());
        while self.integral.rows() < size.height {
            let first = self.integral.rows();
            {
                let _stage = cpu.stage("integral");
                self.integral.advance(view, cpu);
            }
            let end = self.integral.rows();
            for first in (first..end).step_by(slice(size)) {
                {
                    let _stage = cpu.stage("response");
                    self.respond(tables, end.min(first + slice(size)), white, cpu);
                }
                let _stage = cpu.stage("extrema");
                self.search(tables, mask, cpu);
                cpu.check()?;
            }
            let _stage = cpu.stage("describe");
            let (more, their_values) = self.describe(tables, cpu);
            keypoints.extend(more);
            values.extend(their_values);
            cpu.advance(end - first);
            cpu.check()?;
        }
        let descriptors = Descriptors::F32(values);
        Ok(Features { keypoints, descriptors, dimension: tables.options.dimension(), image: size })
    }

    fn start(&mut self, tables: &Tables, size: Size) {
        self.integral.start(size, 2 * tables.reach + 2 * BAND);
        self.octaves.resize_with(tables.octaves.len(), OctaveRows::default);
        self.waiting.clear();
        for (o, (octave, progress)) in tables.octaves.iter().zip(&mut self.octaves).enumerate() {
            // Rows are kept for the next octave, too: it reads some of them, later, because its filters reach farther
            // down.
            let slowest = tables.octaves.get(o + 1).unwrap_or(octave);
            let kept = (slice(size) + slowest.reach()[1] + 2 * slowest.step) / octave.step + 4;
            let samples = |n: usize| n.div_ceil(octave.step);
            (progress.ready, progress.searched) = (0, 0);
            progress.layers.resize_with(octave.layers.len(), Ring::default);
            for ring in &mut progress.layers {
                ring.start(samples(size.width), kept.min(samples(size.height)));
            }
        }
    }

    /// Computes all response rows that the first `rows` image rows allow.
    fn respond(&mut self, tables: &Tables, rows: usize, white: f32, cpu: &Cpu) {
        let size = self.integral.size();
        let mut new = vec![];
        for (octave, progress) in tables.octaves.iter().zip(&mut self.octaves) {
            let below = octave.reach()[1];
            let ready = match rows {
                _ if rows == size.height => rows.div_ceil(octave.step),
                _ if rows < below => 0,
                _ => (rows - below) / octave.step + 1,
            };
            new.push(progress.ready..ready);
            progress.ready = ready;
        }
        let mut jobs = vec![];
        for ((octave, progress), new) in tables.octaves.iter().zip(&mut self.octaves).zip(&new) {
            for (layer, ring) in octave.layers.iter().zip(&mut progress.layers) {
                if layer.shared.is_some() {
                    continue;
                }
                let inside = layer.filter.inside(octave.step, size.height);
                let stride = ring.width;
                let rows = new.start.max(inside.start)..new.end.min(inside.end);
                jobs.extend(ring.pieces(rows).into_iter().map(|(rows, out)| ResponseRows {
                    filter: &layer.filter,
                    step: octave.step,
                    rows,
                    out,
                    stride,
                }));
            }
        }
        let integral = &self.integral;
        cpu.for_chunks(&mut jobs, 1, |_, jobs| {
            jobs.iter_mut().for_each(|job| job.run(integral, white, cpu.level()));
        });
        for (o, new) in new.into_iter().enumerate().skip(1) {
            let (before, this) = self.octaves.split_at_mut(o);
            // The octave before has computed these rows.
            for (layer, ring) in tables.octaves[o].layers.iter().zip(&mut this[0].layers) {
                let Some(source) = layer.shared.map(|i| &before[o - 1].layers[i]) else { continue };
                for row in new.clone() {
                    let every_second = source.row(2 * row).iter().step_by(2);
                    ring.row_mut(row).iter_mut().zip(every_second).for_each(|(to, from)| *to = *from);
                }
            }
        }
    }

    /// Searches all rows that have neighbours above and below.
    fn search(&mut self, tables: &Tables, mask: Option<ImageView<'_, u8>>, cpu: &Cpu) {
        let size = self.integral.size();
        let mut work = vec![];
        for (o, (octave, progress)) in tables.octaves.iter().zip(&mut self.octaves).enumerate() {
            let end = progress.ready.saturating_sub(1).max(progress.searched);
            for layer in 1..octave.layers.len() - 1 {
                let above = &octave.layers[layer + 1].filter;
                let [rows, columns] = [size.height, size.width].map(|n| inner(above.inside(octave.step, n)));
                let rows = rows.start.max(progress.searched)..rows.end.min(end);
                let starts = rows.clone().step_by(ROWS_A_TASK);
                work.extend(starts.map(|r| (o, layer, r..rows.end.min(r + ROWS_A_TASK), columns.clone())));
            }
            progress.searched = end;
        }
        let (octaves, options) = (&self.octaves, &tables.options);
        let found = cpu.map(work.len(), |i| {
            let (o, layer, rows, columns) = work[i].clone();
            let mut found = vec![];
            for row in rows {
                let rings = &octaves[o].layers[layer - 1..=layer + 1];
                let rows: extrema::Rows<'_> =
                    [0, 1, 2].map(|l: usize| [0, 1, 2].map(|r: usize| rings[l].row(row + r - 1)));
                extrema::search(&rows, columns.clone(), options.threshold, cpu.level(), &mut |column| {
                    let sample = Sample { octave: o, layer, row, column, response: rows[1][1][column] };
                    let offset = refine::offset(&extrema::cube(&rows, column));
                    let keypoint = refine::keypoint(options.preset, &tables.octaves[o], sample, offset);
                    found.extend(keypoint.filter(|k| k.is_shown(mask)));
                });
            }
            found
        });
        self.waiting.extend(found.into_iter().flatten());
    }

    /// The waiting keypoints whose square lies above the last row, in any order, and their descriptors one after the
    /// other.
    fn describe(&mut self, tables: &Tables, cpu: &Cpu) -> (Vec<Keypoint>, Vec<f32>) {
        let (rows, last) = (self.integral.rows(), self.integral.size().height);
        let complete = |k: &Keypoint| rows == last || k.y + tables.square.reach(k.scale) < rows as f32;
        let (ready, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(complete);
        self.waiting = waiting;
        let mut ready: Vec<Keypoint> = ready;
        // In tiles, so that the rows of windows are in the cache.
        ready.sort_by_key(|k| k.x as usize / TILE);
        let dimension = tables.options.dimension();
        let mut values = vec![0.0; ready.len() * dimension];
        // An empty slice has no chunks, so that groups without descriptors get an empty slice each.
        let mut groups: Vec<(&mut [Keypoint], &mut [f32])> = match dimension {
            0 => ready.chunks_mut(GROUP).map(|k| (k, Default::default())).collect(),
            _ => ready.chunks_mut(GROUP).zip(values.chunks_mut(GROUP * dimension)).collect(),
        };
        let (integral, level) = (&self.integral, cpu.level());
        cpu.for_chunks(&mut groups, 1, |_, groups| {
            for (keypoints, values) in groups {
                dispatch!(level, simd => describe_at(simd, tables, integral, keypoints, values));
            }
        });
        (ready, values)
    }
}

/// Width in pixels of a tile, whose keypoints are described one after the other.
const TILE: usize = 512;

/// A range without its first and last index.
pub(super) fn inner(range: Range<usize>) -> Range<usize> {
    range.start + 1..range.end.saturating_sub(1)
}

#[simd]
fn describe_at<S: Simd, A: Total>(
    _: S,
    tables: &Tables,
    integral: &Integral<A>,
    keypoints: &mut [Keypoint],
    values: &mut [f32],
) {
    let (options, dimension) = (&tables.options, tables.options.dimension());
    for (i, k) in keypoints.iter_mut().enumerate() {
        let direction = match options.upright {
            true => Direction::upright(options.preset),
            false => tables.disc.direction(integral, k),
        };
        k.angle = direction.angle;
        if dimension > 0 {
            tables.square.describe(integral, k, direction, &mut values[i * dimension..][..dimension]);
        }
    }
}
