//! Mutual information (H. Hirschmüller, PAMI 2008, section 2.1): which values of the two images correspond is learnt
//! from the pair itself, as a table of costs.
//!
//! [`information`] makes the table from a disparity map, [`learn`] alternates between tables and maps, [`projection`]
//! chooses the grey of a colour image if the other image is grey. Each has a form for devices.
//!
//! 8-bit values are compared, each image on its own scale: the green channels of two colour images, otherwise grey.

mod information;
pub(crate) mod learn;
mod projection;

use super::gpu::{CostKernel, GpuCost};
use super::{CostDefinition, CostSource, DescriptorCost, Descriptors, Learn};
use crate::Result;
use crate::device::Cpu;
use crate::device::gpu::Gpu;
use crate::image::Image;
use crate::stereo::aggregation::Value;
use crate::stereo::pair::gpu::PictureShape;
use crate::stereo::pair::{Pair, Pictures};
use crate::stereo::{Penalties, StereoOptions, View};
use fearless_simd::Simd;
use fearless_simd::prelude::*;
use projection::ColourImage;

/// The greatest entry of the table.
const LIMIT: u8 = 24;
/// Values of 8 bits.
const VALUES: usize = 256;
const GREEN: usize = 1;

#[derive(Clone, Copy, Debug)]
pub(super) struct MutualInformation;

impl CostDefinition for MutualInformation {
    fn penalties(&self) -> Penalties {
        Penalties { p1: 12, p2: 39, p2_least: 14, gradient: 4 }
    }

    /// The green channels of two colour images: a different gamma of the channels maps green to a function of green,
    /// but does not map grey to a function of grey, and only a function can be learnt. Otherwise the grey of both,
    /// until the grey of the colour image that suits a grey one has been chosen ([`projection`]).
    fn compared(&self, pictures: &Pictures<'_>, pair: &Pair, cpu: &Cpu) -> Result<Option<[Image<u8>; 2]>> {
        if pictures.are_colour() == [true, true] {
            let [left] = pictures.channels([View::Left], &[GREEN], cpu)?;
            let [right] = pictures.channels([View::Right], &[GREEN], cpu)?;
            return Ok(Some([left, right]));
        }
        Ok(pair.on_own_scales(cpu))
    }

    fn learnt_there(
        &self,
        gpu: &Gpu,
        shapes: [PictureShape; 2],
        are_colour: &dyn Fn() -> Result<[bool; 2]>,
    ) -> Result<Option<GpuCost>> {
        if gpu.require_f64().is_err() {
            return Ok(None);
        }
        let are_colour = match shapes.iter().any(|shape| shape.may_be_colour()) {
            true => are_colour()?,
            false => [false; 2],
        };
        Ok(Some(learn::gpu::cost(are_colour)))
    }

    fn source(&self, learn: Learn<'_, '_>) -> Result<Box<dyn CostSource>> {
        let Learn { pair, pictures, options, workspace, cpu, gpu } = learn;
        let pixels = pair.size().area();
        let colour = ColourImage::of(pictures, cpu)?;
        match gpu.map(|gpu| learn::gpu::learn(gpu, pair, colour.as_ref(), options)) {
            Some(Err(error)) if !error.is_device_limit() => return Err(error),
            Some(Ok(table)) => {
                cpu.advance(self.learning_steps(pictures, options, pixels));
                return Ok(Box::new(table));
            }
            // The pair is too large for the device, or there is none.
            Some(Err(_)) | None => {}
        }
        if let Some(colour) = colour {
            let cpu = cpu.part(learn::project_steps(options, pixels));
            cpu.run(|| learn::project(pair, &colour, options, workspace, &cpu))?;
        }
        let cpu = cpu.part(learn::table_steps(options, pixels));
        Ok(Box::new(cpu.run(|| learn::table(pair, options, workspace, &cpu))?))
    }

    fn learning_steps(&self, pictures: &Pictures<'_>, options: &StereoOptions, pixels: usize) -> usize {
        let [left, right] = pictures.are_colour();
        let projecting = if left != right { learn::project_steps(options, pixels) } else { 0 };
        projecting + learn::table_steps(options, pixels)
    }
}

/// The cost of every pair of values, rows by the left value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CostTable(Vec<u8>);

impl CostTable {
    /// The costs of a left value.
    #[inline(always)]
    fn row(&self, left: u8) -> &[u8] {
        &self.0[usize::from(left) * VALUES..][..VALUES]
    }
}

impl DescriptorCost for CostTable {
    fn greatest(&self) -> u16 {
        LIMIT.into()
    }

    #[inline(always)]
    fn pixel<S: Simd, T: Value>(&self, simd: S, descriptors: &Descriptors<'_>, out: &mut [T]) {
        let (left, right) = descriptors.bytes(out.len());
        let row = self.row(left);
        let n = S::u8s::LEN;
        if n == 64 {
            // Four vectors hold the row: two look-ups in pairs of them, and a choice by the highest bit.
            let mut parts = [S::u8s::splat(simd, 0); 4];
            for (part, row) in parts.iter_mut().zip(row.chunks_exact(n)) {
                *part = S::u8s::from_slice(simd, row);
            }
            for (right, out) in right.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
                T::spread::<S>(look_up::<S>(parts, S::u8s::from_slice(simd, right)), out);
            }
            return;
        }
        let mut costs = [0_u8; 64];
        for (right, out) in right.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
            let costs = &mut costs[..n];
            costs.iter_mut().zip(right).for_each(|(c, &r)| *c = row[usize::from(r)]);
            T::spread::<S>(S::u8s::from_slice(simd, costs), out);
        }
    }

    fn exchanged(&self) -> Self {
        Self((0..self.0.len()).map(|n| self.0[(n % VALUES) * VALUES + n / VALUES]).collect())
    }

    fn kernel(&self) -> CostKernel {
        CostKernel {
            text: include_str!("mutual_information.h"),
            words: 1,
            definitions: vec![("VALUES", format!("{VALUES}u"))],
            table: self.0.clone(),
        }
    }
}

/// The entries of a row of 256 bytes, held in four vectors of 64.
#[inline(always)]
fn look_up<S: Simd>(row: [S::u8s; 4], values: S::u8s) -> S::u8s {
    let place = values & 127;
    let low = row[0].concat_swizzle_dyn(row[1], place);
    let high = row[2].concat_swizzle_dyn(row[3], place);
    values.simd_gt(127).select(high, low)
}

#[cfg(test)]
mod tests {
    use super::{CostTable, learn};
    use crate::device::Cpu;
    use crate::image::Image;
    use crate::stereo::View;
    use crate::stereo::cost::tests::check_formula;
    use crate::stereo::pair::{Pair, Pictures};

    #[test]
    fn is_its_table() {
        let learnt = |_: &Pictures<'_>, pair: &mut Pair| {
            let zero = Image::new(pair.size());
            learn::from_disparities(pair, (&zero, 1), &Cpu::sequential())
        };
        check_formula("mutual information", 1, learnt, |table: &CostTable, pair, x, other, y| {
            let [left, right] =
                [(View::Left, x), (View::Right, other)].map(|(v, x)| pair.compared(v).row(y)[x]);
            u16::from(table.row(left)[usize::from(right)])
        });
    }
}
