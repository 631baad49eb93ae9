//! The plan as tables for the kernels: which responses are computed and searched, and their layout.

use crate::Result;
use crate::device::gpu::{Buffer, Gpu};
use crate::feature::gpu::GpuKeypoints;
use crate::feature::surf::{plan::Octave, stream::inner};
use crate::image::Size;
use std::ops::Range;

pub(crate) const TILE: [u32; 2] = [32, 8];

/// Responses of a lane, `TILE[1]` rows apart, so that the border around a group's samples is small compared with them.
pub(crate) const ROWS_PER_LANE: usize = 4;

/// The groups that share the keypoints of every image: enough to fill the device.
pub(crate) fn groups(found: &GpuKeypoints) -> [usize; 3] {
    const RESIDENT: usize = 16;
    let units = found.counts.gpu().info().units as usize;
    [found.capacity.min(units * RESIDENT), found.counts.len(), 1]
}

#[derive(Debug)]
pub(crate) struct DeviceLayers {
    pub computed: Buffer<u32>,
    pub searched: Buffer<u32>,
    pub layers: Layers,
}

impl DeviceLayers {
    pub(crate) fn upload(gpu: &Gpu, layers: Layers) -> Result<Self> {
        let computed = gpu.upload(&layers.computed.words)?;
        Ok(Self { computed, searched: gpu.upload(&layers.searched.words)?, layers })
    }
}

/// The responses of a layer, which may be those of an octave before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    /// Index of the first response.
    pub first: usize,
    /// Responses from row to row.
    pub pitch: usize,
    /// How many times its sampling step is halved compared with the octave's.
    pub finer: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Layers {
    /// For every octave, the grids of its layers.
    pub grids: Vec<Vec<Grid>>,
    /// Responses of an image.
    pub len: usize,
    /// For `respond` and for `search`.
    pub computed: Table,
    pub searched: Table,
}

/// Layers as words for a kernel, and the groups that they take together.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub words: Vec<u32>,
    pub layers: usize,
    pub groups: usize,
}

impl Table {
    /// Begins a layer that covers these samples; returns false if there are none.
    fn begin(&mut self, columns: &Range<usize>, rows: &Range<usize>) -> bool {
        let across = columns.len().div_ceil(TILE[0] as usize);
        let down = rows.len().div_ceil(TILE[1] as usize * ROWS_PER_LANE);
        if across * down == 0 {
            return false;
        }
        self.words.extend([self.groups as u32, across as u32]);
        self.layers += 1;
        self.groups += across * down;
        true
    }

    fn range(&mut self, range: Range<usize>) {
        self.words.extend([range.start as u32, range.end as u32]);
    }

    fn float(&mut self, value: f32) {
        self.words.push(value.to_bits());
    }

    fn grid(&mut self, Grid { first, pitch, .. }: Grid) {
        self.words.extend([pitch as u32, first as u32, (first as u64 >> 32) as u32]);
    }
}

impl Layers {
    pub(crate) fn new(octaves: &[Octave], size: Size, white: f32) -> Self {
        let mut layers = Self::default();
        for (o, octave) in octaves.iter().enumerate() {
            layers.make_room(o, octave, size);
            compute(&mut layers.computed, octave, &layers.grids[o], size, white);
            search(&mut layers.searched, (o, octave), &layers.grids[o], size);
        }
        layers
    }

    fn make_room(&mut self, o: usize, octave: &Octave, size: Size) {
        /// Responses in 128 bytes.
        const ALIGNMENT: usize = 32;
        let [width, height] = [size.width, size.height].map(|n| n.div_ceil(octave.step));
        let pitch = width.next_multiple_of(ALIGNMENT);
        let mut grids = vec![];
        for layer in &octave.layers {
            grids.push(match layer.shared {
                Some(i) => {
                    let before = self.grids[o - 1][i];
                    Grid { finer: before.finer + 1, ..before }
                }
                None => {
                    let first = self.len;
                    self.len += pitch * height;
                    Grid { first, pitch, finer: 0 }
                }
            });
        }
        self.grids.push(grids);
    }
}

pub(crate) const COMPUTED_WORDS: usize = 22;

pub(crate) const SEARCHED_WORDS: usize = 24;

/// The layers that are computed, as `ResponseLayer` of `response.cl`.
fn compute(table: &mut Table, octave: &Octave, grids: &[Grid], size: Size, white: f32) {
    for (layer, &grid) in octave.layers.iter().zip(grids) {
        let filter = &layer.filter;
        let [columns, rows] = [size.width, size.height].map(|n| filter.inside(octave.step, n));
        if layer.shared.is_some() || !table.begin(&columns, &rows) {
            continue;
        }
        table.words.push(octave.step as u32);
        let corners = [filter.outer, filter.inner, filter.across].concat();
        let corners = corners.iter().chain(&filter.diagonal);
        table.words.extend(corners.map(|&at| at as i32 as u32));
        table.float(filter.norm / white);
        table.float(filter.norm_xy / white);
        table.range(columns);
        table.range(rows);
        table.grid(grid);
    }
}

/// The layers that are searched, as `SearchedLayer` of `extrema.cl`.
fn search(table: &mut Table, (o, octave): (usize, &Octave), grids: &[Grid], size: Size) {
    for (i, three) in octave.layers.windows(3).enumerate() {
        let largest = &three[2].filter;
        let [columns, rows] = [size.width, size.height].map(|n| inner(largest.inside(octave.step, n)));
        if !table.begin(&columns, &rows) {
            continue;
        }
        table.range(columns);
        table.range(rows);
        table.words.extend([o as u32, i as u32 + 1]);
        table.float(octave.step as f32);
        table.float(octave.centre);
        let [before, own] = [0, 1].map(|l: usize| three[l].filter.size as f32);
        table.float(own);
        table.float(own - before);
        for &grid in &grids[i..i + 3] {
            table.grid(grid);
            table.words.push(grid.finer);
        }
    }
}
