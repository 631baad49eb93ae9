//! [Cells](super::cells) on a GPU, with the same bits as on the CPU.

use super::{AROUND, BINS, CELL, COUNTED, COUNTS, Cell, LANES, cells_of};
use crate::Result;
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::image::gpu::{GpuImage, Plane};
use tiepoint_gpu::KernelSource;

/// The places at which a cell is compared: its own, and one for each displacement.
const PLACES: usize = 1 + AROUND.len();
/// The rows of lanes of a group.
const ROWS: u32 = 19;
/// Words of a cell: `less`, `others` and the bits of `strength`.
const WORDS: usize = 3;

tiepoint_gpu::kernel! {
    /// Compares cells, with a group for each.
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

/// The cells of two pictures of one size by every `n`th of the displacements. B begins at the start of `b`.
pub(in super::super) fn cells_on(
    gpu: &Gpu,
    a: &GpuImage<f32>,
    b: &Buffer<f32>,
    n: usize,
) -> Result<Vec<Cell>> {
    let of = cells_of(a.size());
    if of.is_empty() {
        return Ok(vec![]);
    }
    let (program, words) = (gpu.program(&source())?, gpu.buffer(of.area() * WORDS)?);
    let mut commands = Commands::new();
    commands.stage("judge");
    let compare = Compare { cells: &words, a: a.laid(), b, every: n as i32 };
    commands.launch(&program.kernel::<Compare<'_>>()?, [of.width, of.height, 1], compare)?;
    gpu.run(&commands)?;
    let cell =
        |&[less, others, strength]: &[u32; WORDS]| Cell { less, others, strength: f32::from_bits(strength) };
    Ok(words.first(of.area() * WORDS)?.as_chunks().0.iter().map(cell).collect())
}
