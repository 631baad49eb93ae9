//! Matching costs: how unlike the left pixel (x, y) and the right pixel (x − d, y) are.
//!
//! A cost is an integer from 0 to a bound that is known in advance, so that sums of costs are exact and the same on
//! every machine. If x − d lies outside the right image, the nearest column is used (as in the CUDA program of 2010
//! that this follows), which gives smaller errors than leaving the disparity out. A left pixel without data costs 0 at
//! any disparity, so that paths cross it unchanged; a right pixel without data has the greatest cost.
//!
//! Costs are not stored. Both images are turned into *descriptors*, some bytes for each pixel, and a cost is a function
//! of two descriptors. A [`CostRow`] holds the descriptors of a row of a band; those of the right row are reversed, so
//! that rising disparities lie side by side. Costs are computed for one wavefront [`Column`] at a time.
//!
//! **To add a cost**: a file in this folder with a type that implements [`CostDefinition`] (greatest cost, penalties,
//! what it compares, how it learns) and one that implements [`DescriptorCost`] (descriptors and the SIMD body; often
//! the same type), and its test; beside it a `.h` with the same for kernels ([`gpu`]); then a variant of [`Cost`] and a
//! row of the table below it (name, help). The command, the options, the tests over all costs and the benchmark read
//! that table.

mod absolute_difference;
mod ad_census;
mod census;
pub(crate) mod gpu;
pub(crate) mod mutual_information;
mod row;
#[cfg(test)]
pub(super) mod tests;
pub(crate) mod volume;

pub use census::CensusWindow;
pub(super) use row::{Column, CostRow, RowLayout};
pub(super) use volume::{CostVolume, require_volume};

use super::aggregation::{Value, Workspace};
use super::pair::gpu::PictureShape;
use super::pair::{Pair, Pictures};
use super::{Penalties, StereoOptions, View};
use crate::device::gpu::Gpu;
use crate::device::{Cpu, Level, dispatch};
use crate::image::Image;
use crate::options::{Choice, Named};
use crate::{Error, Result};
use absolute_difference::AbsoluteDifference;
use ad_census::AdCensus;
use fearless_simd::Simd;
use fearless_simd::prelude::*;
use fearless_simd_macros::simd;
use gpu::{CostKernel, GpuCost};
use mutual_information::MutualInformation;

/// How unlike a pixel of the left image and one of the right are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cost {
    /// The sum of census 5×5 and the absolute difference of the colours (of grey, if there are none), weighted so that
    /// neither dominates. The colour decides where there is no texture, the census where the light has changed.
    #[default]
    AdCensus,
    /// Hamming distance of census transforms: which neighbours are darker than the centre (Zabih and Woodfill,
    /// ECCV 1994). Not affected by gain, offset or any other increasing change of brightness.
    Census(CensusWindow),
    /// Absolute difference of 8-bit grey values, at most 24. For images of one camera in the same light.
    AbsoluteDifference,
    /// Mutual information (Hirschmüller, PAMI 2008, section 2.1): learns from the pair which grey values correspond.
    /// Withstands any mapping of brightness, inversion included. Two colour images are compared by their green
    /// channels. A grey image is compared with the weighted channels of the colour image that fit it best.
    MutualInformation,
}

/// Makes [`Named`] and the definitions of [`Cost`] from each variant's name, value in lists, definition and help.
macro_rules! cost_table {
    ($($name:literal: $variant:ident $(($parameter:ident))?, $value:expr => $definition:expr, $help:literal;)*) => {
        impl Named for Cost {
            const OPTION: &'static str = "cost";
            const EXPECTED: &'static str = concat!("one of" $(, " ", $name)*);
            const ALL: &'static [Choice<Self>] = &[$(Choice { value: $value, name: $name, help: $help }),*];

            fn name(self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)*
                }
            }
        }

        impl Cost {
            pub(super) fn definition(&self) -> &dyn CostDefinition {
                match self {
                    $(Self::$variant $(($parameter))? => $definition,)*
                }
            }
        }
    };
}

cost_table! {
    "ad-census": AdCensus, Self::AdCensus => &AdCensus,
        "Census and differences of colour: the best for most pairs";
    "census": Census(window), Self::Census(CensusWindow::Five) => window,
        "Which neighbours are darker: withstands gain, offset, gamma";
    "ad": AbsoluteDifference, Self::AbsoluteDifference => &AbsoluteDifference,
        "Absolute differences: for one camera and one light";
    "mi": MutualInformation, Self::MutualInformation => &MutualInformation,
        "Mutual information: withstands any mapping of brightness";
}

impl Cost {
    /// Penalties that suit the cost. With them the sums of four paths of costs up to 24 stay below 256.
    pub fn penalties(&self) -> Penalties {
        self.definition().penalties()
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Cost {
    type Err = Error;

    /// The cost of this name, with default parameters.
    fn from_str(name: &str) -> Result<Self> {
        Self::from_name(name)
    }
}

/// The data that a cost may learn from before it is computed.
pub(super) struct Learn<'a, 'p> {
    pub(super) pair: &'a mut Pair,
    pub(super) pictures: &'a Pictures<'p>,
    pub(super) options: &'a StereoOptions,
    pub(super) workspace: &'a mut Workspace,
    pub(super) cpu: &'a Cpu,
    /// The GPU, if one computes.
    pub(super) gpu: Option<&'a Gpu>,
}

/// The properties of a cost that do not depend on a pair: the definition in the table.
pub(super) trait CostDefinition {
    fn penalties(&self) -> Penalties;

    /// The images that it compares, of 8 bits and any number of channels. `None`: it compares the grey of the pair.
    fn compared(&self, pictures: &Pictures<'_>, _pair: &Pair, cpu: &Cpu) -> Result<Option<[Image<u8>; 2]>> {
        let colour = self.compares_colour() && pictures.are_colour() == [true, true];
        colour.then(|| pictures.channels([View::Left, View::Right], &[0, 1, 2], cpu)).transpose()
    }

    /// Whether it compares 8-bit colours if both pictures have colour; otherwise it compares the grey of the pair.
    fn compares_colour(&self) -> bool {
        false
    }

    /// Its source for any pair whose compared images have this many channels. `None`: it learns from each pair.
    fn known(&self, _channels: usize) -> Option<Box<dyn CostSource>> {
        None
    }

    /// The cost for a device that learns from each pair itself, for pictures of these shapes; `are_colour` returns
    /// which of them have colour. `None`: the host must learn, or there is nothing to learn.
    fn learnt_there(
        &self,
        _gpu: &Gpu,
        _shapes: [PictureShape; 2],
        _are_colour: &dyn Fn() -> Result<[bool; 2]>,
    ) -> Result<Option<GpuCost>> {
        Ok(None)
    }

    /// Its source for this pair, after learning from the pair if the cost learns.
    fn source(&self, learn: Learn<'_, '_>) -> Result<Box<dyn CostSource>> {
        let known = self.known(learn.pair.compared(View::Left).channels());
        Ok(known.unwrap_or_else(|| unreachable!("a cost that learns has its own `source`")))
    }

    /// About the steps of [`source`](Self::source), where an aggregation of the pair has `pixels` steps.
    fn learning_steps(&self, _pictures: &Pictures<'_>, _options: &StereoOptions, _pixels: usize) -> usize {
        0
    }
}

/// A cost that is a function of the descriptors of two pixels.
trait DescriptorCost: Sync + Clone + 'static {
    fn greatest(&self) -> u16;

    /// Bytes of a descriptor.
    fn planes(&self) -> usize {
        1
    }

    /// Writes the descriptors of row y of a view, plane by plane: byte p of pixel x to `out[p * width + x]`. By default
    /// these are the values of the compared image.
    fn describe(&self, _level: Level, pair: &Pair, view: View, y: usize, out: &mut [u8]) {
        out.copy_from_slice(pair.compared(view).row(y));
    }

    /// The costs of a left pixel for as many disparities as `out` has room for, a multiple of a vector's bytes.
    ///
    /// Implementations are `#[inline(always)]`: they become part of a function that is compiled for a SIMD level.
    fn pixel<S: Simd, T: Value>(&self, simd: S, descriptors: &Descriptors<'_>, out: &mut [T]);

    /// The cost with the images of the pair exchanged.
    fn exchanged(&self) -> Self {
        self.clone()
    }

    fn kernel(&self) -> CostKernel;
}

/// The descriptor of a left pixel and those of the right pixels it is compared with.
struct Descriptors<'a> {
    /// The descriptors of the left row, in planes of `width` bytes.
    left: &'a [u8],
    width: usize,
    /// The column of the left pixel.
    x: usize,
    /// The descriptors of the right row, reversed ([`RowLayout`]), in planes of `reach` bytes.
    right: &'a [u8],
    reach: usize,
    /// The index of the right pixel at the least disparity; rising disparities follow.
    start: usize,
}

impl<'a> Descriptors<'a> {
    /// For descriptors of one byte: that of the left pixel, and those of the right pixels at `len` disparities.
    #[inline(always)]
    fn bytes(&self, len: usize) -> (u8, &'a [u8]) {
        (self.left[self.x], &self.right[self.start..][..len])
    }
}

/// Some planes of the descriptors of a left pixel and of its right pixels, in the form that SIMD bodies read.
#[derive(Clone, Copy)]
struct Planes<'a, S: Simd, const N: usize> {
    simd: S,
    /// The bytes of the left pixel, each in all lanes.
    left: [S::u8s; N],
    right: [&'a [u8]; N],
}

impl<'a, S: Simd, const N: usize> Planes<'a, S, N> {
    /// The planes from `first` on, for `len` disparities.
    #[inline(always)]
    fn new(simd: S, descriptors: &Descriptors<'a>, first: usize, len: usize) -> Self {
        let Descriptors { left, width, x, right, reach, start } = *descriptors;
        let mut planes = Self { simd, left: [S::u8s::splat(simd, 0); N], right: [&right[..0]; N] };
        let (mut left, mut right) = (&left[first * width..], &right[first * reach..]);
        for p in 0..N {
            // All have one length, so that each pixel needs only one comparison.
            let (left_plane, right_plane);
            (left_plane, left) = left.split_at(width);
            (right_plane, right) = right.split_at(reach);
            planes.left[p] = S::u8s::splat(simd, left_plane[x]);
            planes.right[p] = &right_plane[start..][..len];
        }
        planes
    }

    /// The bytes of plane `p` of the right pixels at the c-th vector of disparities.
    #[inline(always)]
    fn right(&self, p: usize, c: usize) -> S::u8s {
        let n = S::u8s::LEN;
        S::u8s::from_slice(self.simd, &self.right[p][c * n..(c + 1) * n])
    }
}

/// Computes costs for the aggregation.
pub(super) trait CostSource: Sync {
    fn greatest(&self) -> u16;

    fn prepare(&self, level: Level, pair: &Pair, y: usize, layout: RowLayout, row: &mut CostRow);

    /// The costs of a column, as bytes; see [`Value::column`].
    fn column_u8(&self, level: Level, column: Column, rows: &[CostRow], out: &mut [u8]);

    /// The costs of a column, as 16 bits.
    fn column_u16(&self, level: Level, column: Column, rows: &[CostRow], out: &mut [u16]);

    /// The source for the pair with its images exchanged; `None` if the cost is known for the left view only.
    fn exchanged(&self) -> Option<Box<dyn CostSource>>;

    /// How kernels compute it.
    fn kernel(&self) -> CostKernel;
}

impl<C: DescriptorCost> CostSource for C {
    fn greatest(&self) -> u16 {
        DescriptorCost::greatest(self)
    }

    fn prepare(&self, level: Level, pair: &Pair, y: usize, layout: RowLayout, row: &mut CostRow) {
        let planes = self.planes();
        row.prepare(pair, y, layout);
        row.describe(planes, layout, |view, out| self.describe(level, pair, view, y, out));
    }

    fn column_u8(&self, level: Level, column: Column, rows: &[CostRow], out: &mut [u8]) {
        dispatch!(level, simd => descriptor_costs(simd, self, column, rows, out));
    }

    fn column_u16(&self, level: Level, column: Column, rows: &[CostRow], out: &mut [u16]) {
        dispatch!(level, simd => descriptor_costs(simd, self, column, rows, out));
    }

    fn exchanged(&self) -> Option<Box<dyn CostSource>> {
        Some(Box::new(DescriptorCost::exchanged(self)))
    }

    fn kernel(&self) -> CostKernel {
        DescriptorCost::kernel(self)
    }
}

/// The body of [`Value::column`], compiled once for a cost, a SIMD level and a width of the values.
#[simd]
fn descriptor_costs<S: Simd, T: Value, C: DescriptorCost>(
    simd: S,
    cost: &C,
    column: Column,
    rows: &[CostRow],
    out: &mut [T],
) {
    let n = S::u8s::LEN;
    // Common numbers of vectors as constants, so that the compiler unrolls the loops.
    match rows.first().map_or(0, CostRow::padded) {
        padded if padded == n => costs_of_rows(simd, cost, column, rows, n, out),
        padded if padded == 2 * n => costs_of_rows(simd, cost, column, rows, 2 * n, out),
        padded if padded == 4 * n => costs_of_rows(simd, cost, column, rows, 4 * n, out),
        padded => costs_of_rows(simd, cost, column, rows, padded, out),
    }
}

/// The same for `padded` disparities.
#[inline(always)]
fn costs_of_rows<S: Simd, T: Value, C: DescriptorCost>(
    simd: S,
    cost: &C,
    column: Column,
    rows: &[CostRow],
    padded: usize,
    out: &mut [T],
) {
    for (r, row) in rows.iter().enumerate() {
        let (x, out) = (column.x(r), &mut out[r * padded..][..padded]);
        if !row.is_hole(x) {
            cost.pixel(simd, &row.descriptors(x), out);
            row.mask(x, T::of(DescriptorCost::greatest(cost)), out);
        } else {
            out.fill(T::default());
        }
    }
}
