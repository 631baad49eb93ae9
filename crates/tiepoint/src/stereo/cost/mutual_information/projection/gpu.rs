//! The search for a projection on a device, where its state stays. Every try is the same list of commands, which has no
//! effect once the search has ended.

use super::super::VALUES;
use super::super::information::gpu::{TALLY, information};
use super::{BETTER, Projection, STANDARDS, STEPS, TRIES, UNIT, WAYS, rows_apart};
use crate::Result;
use crate::device::gpu::{Buffer, Commands};
use crate::image::gpu::{GpuStack, Plane};
use crate::stereo::View;
use crate::stereo::gpu::lanes::{GROUP, covering, for_maps, launch, optional};
use tiepoint_gpu::{KernelSource, Program};

tiepoint_gpu::kernel! {
    unsafe kernel sample(groups) = Sample {
        write samples: u32 [2 * i128::from(grey_plane.row) * groups[1]],
        read colours (colours_plane: Plane): u8 [colours_plane.numbers(1)],
        read grey (grey_plane: Plane): u8 [grey_plane.numbers(1)],
        /// The mask of the right view; rows of length 0 mean that the view has data everywhere.
        read mask (mask_plane: Plane): u8 [mask_plane.numbers(1)],
        read disparity (disparity_plane: Plane): f32 [disparity_plane.numbers(1)],
    } {
        /// The distance between sampled rows.
        rows_apart: i32,
        /// 1 where the left view is the colour one, 0 where the right view is.
        of_left: i32,
    }

    unsafe kernel count(groups) = Count {
        write tally: u32 [TALLY as i128 * groups[1]],
        read samples: u32 [2 * pixels],
        read state: u32 [STATE as i128],
    } {
        pixels: i32,
    }

    unsafe kernel choose(groups) = Choose {
        write state: u32 [STATE as i128],
        write information: f64 [2],
        read rows: f64 [(CANDIDATES * VALUES) as i128],
        read tally: u32 [(CANDIDATES * TALLY) as i128],
    } {}

    unsafe kernel project(groups) = Project {
        write out (plane: Plane): u8 [plane.numbers(1)],
        read colours (colours_plane: Plane): u8 [colours_plane.numbers(1)],
        read state: u32 [STATE as i128],
        read information: f64 [2],
    } {
        across: i32,
    }
}

/// The number of values in the state of a search: two projections of four, the step, and whether the search is over.
const STATE: usize = 10;
/// The most projections that a try compares.
const CANDIDATES: usize = 2 * STANDARDS.len();

pub(in super::super) fn source() -> KernelSource {
    const LANES: [u32; 2] = [VALUES as u32, 1];
    let list = |numbers: Vec<usize>| {
        let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
        format!("{{ {} }}", numbers.join(", "))
    };
    let standards = STANDARDS.iter().flatten().map(|&weight| weight as usize).collect();
    for_maps("projection")
        .define("STANDARDS", list(standards))
        .define("WAYS", list(WAYS.iter().flat_map(|&(from, to)| [from, to]).collect()))
        .define("CANDIDATES", CANDIDATES)
        .define("UNIT", format!("{UNIT}u"))
        .define("FIRST_STEP", format!("{}u", STEPS[0]))
        .define("LAST_STEP", format!("{}u", STEPS[1]))
        .define("BETTER", format!("{BETTER:?}"))
        .define("TALLY", TALLY)
        .define("VALUES", VALUES)
        .kernel::<Sample<'_>>(LANES)
        .kernel::<Count<'_>>(LANES)
        .kernel::<Choose<'_>>(LANES)
        .kernel::<Project<'_>>(GROUP)
        .text(include_str!("projection.cl"))
}

/// The bytes of memory of a search, without samples.
pub(in super::super) const BYTES: u64 = {
    let numbers = size_of::<u32>() * TALLY + size_of::<f64>() * (VALUES * VALUES + 3 * VALUES);
    (CANDIDATES * numbers) as u64
};

/// The search for the projection of a pair's colour view, on a device.
pub(in super::super) struct GpuProjection {
    program: Program,
    /// The view that has colour, and its red, green and blue in 8 bits.
    view: View,
    colours: GpuStack<u8>,
    /// The state before a search; the state of the search, and the information of both its projections.
    first: Buffer<u32>,
    state: Buffer<u32>,
    information: Buffer<f64>,
}

impl GpuProjection {
    pub(in super::super) fn new(view: View, colours: &GpuStack<u8>) -> Result<Self> {
        let gpu = colours.gpu();
        let Projection { weights: [red, green, blue], .. } = Projection::LUMA;
        let luma = [red, green, blue, 0];
        Ok(Self {
            program: gpu.program(&source())?,
            view,
            colours: colours.clone(),
            first: gpu.upload(&[&luma[..], &luma, &[0, 0]].concat())?,
            state: gpu.buffer(STATE)?,
            information: gpu.buffer(2)?,
        })
    }

    /// Resets the search.
    pub(in super::super) fn begin(&self, commands: &mut Commands) -> Result<()> {
        commands.copy((&self.first, 0), (&self.state, 0), STATE)?;
        Ok(commands.zero(&self.information)?)
    }

    /// Records the search by disparities of the left view at half the size; `grey` is the other view's compared image.
    pub(in super::super) fn search(
        &self,
        commands: &mut Commands,
        (grey, right_mask): (&GpuStack<u8>, Option<&GpuStack<u8>>),
        disparity: &GpuStack<f32>,
    ) -> Result<()> {
        let size = grey.size();
        let rows = size.height.div_ceil(rows_apart(size));
        let gpu = self.colours.gpu();
        let samples = gpu.buffer::<u32>(2 * size.width * rows)?;
        let mask = &optional(gpu, right_mask)?;
        commands.stage("projection");
        self.begin(commands)?;
        launch(
            commands,
            &self.program,
            [size.width.div_ceil(VALUES), rows, 1],
            Sample {
                samples: &samples,
                colours: self.colours.laid(),
                grey: grey.laid(),
                mask: mask.into(),
                disparity: disparity.laid(),
                rows_apart: rows_apart(size) as i32,
                of_left: (self.view == View::Left).into(),
            },
        )?;
        let tally = gpu.buffer::<u32>(CANDIDATES * TALLY)?;
        let mut attempt = Commands::new();
        attempt.zero(&tally)?;
        let pixels = size.width * rows;
        let counted = Count { tally: &tally, samples: &samples, state: &self.state, pixels: pixels as i32 };
        launch(&mut attempt, &self.program, [pixels.div_ceil(VALUES), CANDIDATES, 1], counted)?;
        let rows = information(&mut attempt, &tally, CANDIDATES)?;
        let chosen =
            Choose { state: &self.state, information: &self.information, rows: &rows, tally: &tally };
        launch(&mut attempt, &self.program, [1, 1, 1], chosen)?;
        // First the standards, then neighbours of the best.
        (0..=TRIES).try_for_each(|_| Ok(commands.append(attempt.clone())?))
    }

    /// Records the computation of the values of the projection that was found.
    pub(in super::super) fn project(&self, commands: &mut Commands, out: &GpuStack<u8>) -> Result<()> {
        let (across, groups) = covering(out.size(), 1);
        let arguments = Project {
            out: out.laid(),
            colours: self.colours.laid(),
            state: &self.state,
            information: &self.information,
            across,
        };
        launch(commands, &self.program, groups, arguments)
    }
}
