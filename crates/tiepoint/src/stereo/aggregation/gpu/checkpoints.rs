//! Aggregation in bands of rows, for pairs whose sums exceed a device's memory.
//!
//! A first forward pass goes over all bands from the top and keeps, as a checkpoint, the path costs that enter each of
//! them. Then, from the bottom, each band gets a forward pass from its checkpoint and a backward pass, which goes on
//! from the band below. Paths cross the borders of bands, so the sums are those of the whole image; the forward pass is
//! computed twice.
//!
//! **The kernel begins in the middle.** Groups of rows are handed out by tickets. With a first ticket above 0 a later
//! group comes first, and takes the path costs above it from where an earlier launch left them. In memory a band lies
//! between two margins, which no group walks over: one holds the rows above the band, from which the steps of its first
//! rows come, and the other those below it, for the backward pass. A band is a multiple of four groups, so that the
//! marks of the path costs are, when it has been walked over, what they were before.
//!
//! Rows of the last band that lie beyond the image hold those of another band, or nothing: where a path enters the
//! image P2 is 0, which makes whatever came before it 0.

use super::{GpuAggregation, GpuSums, WalkInput, Walks};
use crate::{
    Result,
    device::gpu::{Buffer, Commands},
    image::{Size, gpu::GpuStack},
};

/// The mark of path costs that are of their buffer's first use, or third, and so on: see `aggregation.cl`.
const MARK: u32 = 0x8000_0000;

/// Groups after which both buffers of a boundary have been used with both marks.
const CYCLE: usize = 4;

/// Bands of one height, with the memory for one of them.
#[derive(Debug)]
pub(in crate::stereo) struct GpuBands<'a> {
    plan: &'a GpuAggregation,
    /// Of a band and its margins.
    size: Size,
    margin: usize,
    descriptors: [Buffer<u32>; 2],
    sums: GpuSums,
    walks: Vec<WalkMemory>,
}

/// The memory of some walks.
#[derive(Debug)]
struct WalkMemory {
    penalties: Buffer<u32>,
    /// Of each pass in turn.
    boundary: Buffer<u32>,
}

/// The path costs that enter a band, for each of the walks that have a forward pass.
#[derive(Debug)]
pub(in crate::stereo) struct Checkpoint(Vec<Buffer<u32>>);

/// Least common multiple.
fn common(a: usize, b: usize) -> usize {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x.max(1) * b
}

impl GpuAggregation {
    /// Rows above and below a band that lie in memory beside it.
    pub(in crate::stereo) fn margin(&self) -> usize {
        self.walks.iter().map(|walks| walks.rows).fold(1, common)
    }

    /// The rows of a band are a multiple of this.
    pub(in crate::stereo) fn band_step(&self) -> usize {
        CYCLE * self.margin()
    }

    /// Bytes of memory for a row of a band, its descriptors and penalties also while they are made.
    pub(in crate::stereo) fn row_bytes(&self, width: usize) -> u64 {
        let words = |walks: &Walks| walks.steps.steps.len();
        let penalties: usize = 2 * self.walks.iter().map(words).sum::<usize>();
        let words = self.layout.sum_words() + 2 * penalties + 4 * self.planes;
        4 * width as u64 * words as u64
    }

    /// Bytes of memory for a checkpoint, and for the path costs between bands.
    pub(in crate::stereo) fn boundary_bytes(&self, width: usize) -> [u64; 2] {
        let words = |walks: &Walks| self.boundary_bytes_of(walks, width);
        let checkpoint = self.walks.iter().filter(|walks| walks.first_pass == 0).map(words).sum::<u64>() / 2;
        [checkpoint, self.walks.iter().map(|walks| walks.passes as u64 * words(walks)).sum()]
    }

    fn boundary_bytes_of(&self, walks: &Walks, width: usize) -> u64 {
        4 * walks.boundary_words(self, width) as u64
    }
}

impl<'a> GpuBands<'a> {
    /// Memory for a band of `rows` rows, a multiple of [`band_step`](GpuAggregation::band_step).
    pub(in crate::stereo) fn new(plan: &'a GpuAggregation, width: usize, rows: usize) -> Result<Self> {
        let (gpu, margin) = (&plan.gpu, plan.margin());
        let size = Size::new(width, rows + 2 * margin);
        let walks = plan.walks.iter().map(|walks| {
            let boundary = gpu.buffer((walks.passes * walks.boundary_words(plan, width)).max(1))?;
            Ok(WalkMemory { penalties: gpu.buffer(size.area() * 2 * walks.steps.steps.len())?, boundary })
        });
        let descriptors = || gpu.buffer(size.area() * plan.planes);
        let words = gpu.buffer(super::size_of_sums(size, 1, &plan.layout)?)?;
        let bands = Self {
            plan,
            size,
            margin,
            descriptors: [descriptors()?, descriptors()?],
            sums: GpuSums { words, layout: plan.layout },
            walks: walks.collect::<Result<_>>()?,
        };
        bands.clear()?;
        Ok(bands)
    }

    /// Rows that no band loads must hold descriptors and penalties that a row can have.
    fn clear(&self) -> Result<()> {
        let mut commands = Commands::new();
        self.descriptors.iter().try_for_each(|words| commands.zero(words))?;
        self.walks.iter().try_for_each(|paths| commands.zero(&paths.penalties))?;
        Ok(self.plan.gpu.run(&commands)?)
    }

    /// Of a band and its margins.
    pub(in crate::stereo) fn size(&self) -> Size {
        self.size
    }

    pub(in crate::stereo) fn descriptors(&self) -> (&Buffer<u32>, &Buffer<u32>) {
        (&self.descriptors[0], &self.descriptors[1])
    }

    pub(in crate::stereo) fn sums(&self) -> &GpuSums {
        &self.sums
    }

    /// Puts the loading of rows into a list: `rows` of them go to row `to` of the band and its margins. They lie from
    /// row `from` on in the descriptors of both views, and in the grey of the left one.
    pub(in crate::stereo) fn load(
        &self,
        commands: &mut Commands,
        descriptors: [&Buffer<u32>; 2],
        grey: &GpuStack<u8>,
        (from, to, rows): (usize, usize, usize),
    ) -> Result<()> {
        let (width, from_area, area) = (self.size.width, grey.size().area(), self.size.area());
        for (made, kept) in descriptors.into_iter().zip(&self.descriptors) {
            for plane in 0..self.plan.planes {
                let (from, to) = (plane * from_area + from * width, plane * area + to * width);
                commands.copy((made, from), (kept, to), rows * width)?;
            }
        }
        for (walks, paths) in self.plan.walks.iter().zip(&self.walks) {
            let made = walks.penalties(commands, self.plan, grey)?;
            let words = walks.steps.steps.len();
            for pass in 0..2 {
                let from = (pass * from_area + from * width) * words;
                let to = (pass * area + to * width) * words;
                commands.copy((&made, from), (&paths.penalties, to), rows * width * words)?;
            }
        }
        Ok(())
    }

    /// Groups of rows of a band, after those of the margin before it.
    fn groups(&self, walks: &Walks) -> std::ops::Range<usize> {
        let first = self.margin / walks.rows;
        first..(self.size.height - self.margin) / walks.rows
    }

    /// Prepares the boundary for a pass that begins: nothing lies above its first band.
    pub(in crate::stereo) fn begin(&self, pass: usize) -> Result<()> {
        for (walks, paths) in self.plan.walks.iter().zip(&self.walks) {
            let words = walks.boundary_words(self.plan, self.size.width);
            if !(walks.first_pass..walks.first_pass + walks.passes).contains(&pass) || words == 0 {
                continue;
            }
            let first = self.groups(walks).start;
            // Marks as the group before would have left them; in the other buffer those of the use before its next.
            let is_marked = |group: usize| (group / 2).is_multiple_of(2);
            let marks = [(first - 1, is_marked(first - 1)), (first, !is_marked(first))];
            let at = (pass - walks.first_pass) * words;
            for (group, marked) in marks {
                let half = vec![if marked { MARK } else { 0 }; words / 2];
                paths.boundary.write(at + group % 2 * words / 2, &half)?;
            }
        }
        Ok(())
    }

    /// Puts the forward pass over the band into a list.
    pub(in crate::stereo) fn record_forward(&self, commands: &mut Commands) -> Result<()> {
        let forward = |(walks, _): &(&Walks, &WalkMemory)| walks.first_pass == 0;
        let all = self.plan.walks.iter().zip(&self.walks).filter(forward);
        all.into_iter().try_for_each(|(walks, paths)| self.record_passes(commands, walks, paths, 0..1))
    }

    /// Puts both passes over the band into a list.
    pub(in crate::stereo) fn record(&self, commands: &mut Commands) -> Result<()> {
        let mut all = self.plan.walks.iter().zip(&self.walks);
        all.try_for_each(|(walks, paths)| {
            let passes = walks.first_pass..walks.first_pass + walks.passes;
            self.record_passes(commands, walks, paths, passes)
        })
    }

    fn record_passes(
        &self,
        commands: &mut Commands,
        walks: &Walks,
        paths: &WalkMemory,
        passes: std::ops::Range<usize>,
    ) -> Result<()> {
        let (gpu, groups) = (&self.plan.gpu, self.groups(walks));
        let tickets = gpu.upload(&[(groups.start * passes.len()) as u32])?;
        let in_memory = self.size.height / walks.rows;
        // The group before the first counts as one that has begun to write.
        let began = |i: usize| u32::from(i % in_memory + 1 == groups.start);
        let progress: Vec<u32> = (0..in_memory * passes.len()).map(began).collect();
        let progress = gpu.upload(&progress)?;
        commands.stage("aggregate");
        let walk = WalkInput {
            descriptors: self.descriptors(),
            penalties: &paths.penalties,
            boundary: &paths.boundary,
            tickets: &tickets,
            progress: &progress,
            sums: &self.sums,
            passes,
            groups,
        };
        walks.launch(commands, self.plan, (self.size, 1), walk)
    }

    /// Where the path costs that enter a band lie in the boundary of the forward pass.
    fn entering(&self, walks: &Walks) -> (usize, usize) {
        let half = walks.boundary_words(self.plan, self.size.width) / 2;
        ((self.groups(walks).start - 1) % 2 * half, half)
    }

    /// Records a copy of the path costs that enter the next band.
    pub(in crate::stereo) fn keep(&self, commands: &mut Commands) -> Result<Checkpoint> {
        let forward = self.plan.walks.iter().zip(&self.walks).filter(|(walks, _)| walks.first_pass == 0);
        let kept = forward.map(|(walks, paths)| {
            let (at, len) = self.entering(walks);
            let kept = self.plan.gpu.buffer(len.max(1))?;
            commands.copy((&paths.boundary, at), (&kept, 0), len)?;
            Ok(kept)
        });
        Ok(Checkpoint(kept.collect::<Result<_>>()?))
    }

    /// Records the return to a checkpoint.
    pub(in crate::stereo) fn restore(&self, commands: &mut Commands, checkpoint: &Checkpoint) -> Result<()> {
        let forward = self.plan.walks.iter().zip(&self.walks).filter(|(walks, _)| walks.first_pass == 0);
        for ((walks, paths), kept) in forward.zip(&checkpoint.0) {
            let (at, len) = self.entering(walks);
            commands.copy((kept, 0), (&paths.boundary, at), len)?;
        }
        Ok(())
    }
}
