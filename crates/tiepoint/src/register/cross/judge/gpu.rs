//! [Cells](super::cells) on a GPU: the CPU's bits.

use super::{AROUND, BINS, CELL, COUNTED, COUNTS, Cell, LANES, cells_of};
use crate::Result;
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::image::Size;
use crate::image::gpu::{GpuImage, Plane};
use tiepoint_gpu::{KernelSource, Program};

/// The places at which a cell is compared: its own, and one for each displacement.
const PLACES: usize = 1 + AROUND.len();
/// The rows of lanes of a group.
const ROWS: u32 = 19;
/// Words of a cell: `less`, `others` and the bits of `strength`.
const WORDS: usize = 3;

tiepoint_gpu::kernel! {
    /// A group for each cell.
    unsafe kernel compare(groups) = Compare {
        write cells: u32 [groups[0] * groups[1] * WORDS as i128],
        read a (plane: Plane): f32 [plane.numbers(1)],
        read b: f32 [plane.numbers(1)],
    } {
        /// n, to compare at every nth of the displacements.
        every: i32,
    }
}

pub(crate) fn source() -> KernelSource {
    KernelSource::new("judge")
        .define("BINS", BINS)
        .define("LANES", LANES)
        .define("COUNTS", COUNTS)
        .define("CELL", CELL)
        .define("PLACES", PLACES)
        .define("ROWS", ROWS)
        .define("WORDS", WORDS)
        .define_f32("OWN_COUNTED", COUNTED[0] * (CELL * CELL) as f32)
        .define_f32("COUNTED", COUNTED[1] * (CELL * CELL) as f32)
        .table_i32("AROUND", AROUND.as_flattened())
        .structure::<Plane>()
        .kernel::<Compare<'_>>([LANES as u32, ROWS])
        .text(include_str!("judge.cl"))
}

/// The comparison of two pictures of one size.
pub(in super::super) struct GpuCells {
    program: Program,
    words: Buffer<u32>,
    of: Size,
}

impl GpuCells {
    /// For channels of this size.
    pub(in super::super) fn new(gpu: &Gpu, size: Size) -> Result<Self> {
        let of = cells_of(size);
        Ok(Self { program: gpu.program(&source())?, words: gpu.buffer((of.area() * WORDS).max(1))?, of })
    }

    /// The cells by every `n`th of the displacements. B begins at the start of `b`, and has the size of A.
    pub(in super::super) fn compare(
        &self,
        a: &GpuImage<f32>,
        b: &Buffer<f32>,
        n: usize,
    ) -> Result<Vec<Cell>> {
        if self.of.is_empty() {
            return Ok(vec![]);
        }
        let mut commands = Commands::new();
        commands.stage("judge");
        let compare = Compare { cells: &self.words, a: a.laid(), b, every: n as i32 };
        let groups = [self.of.width, self.of.height, 1];
        commands.launch(&self.program.kernel::<Compare<'_>>()?, groups, compare)?;
        a.gpu().run(&commands)?;
        let words = self.words.first(self.of.area() * WORDS)?;
        let cell = |&[less, others, strength]: &[u32; WORDS]| Cell {
            less,
            others,
            strength: f32::from_bits(strength),
        };
        Ok(words.as_chunks().0.iter().map(cell).collect())
    }
}
