//! A cost volume of the caller: the costs of every pixel at every disparity, computed beforehand.

pub(crate) mod gpu;

use super::gpu::{CostKernel, OF_VOLUME};
use super::{CensusWindow, Column, CostDefinition, CostRow, CostSource, RowLayout, Value};
use crate::device::{Cpu, Level};
use crate::image::{AnyView, Image, Pixel, PixelKind, Size};
use crate::stereo::pair::Pair;
use crate::stereo::{INVALID, Penalties, StereoOptions, StereoResult};
use crate::{Error, Result, by_pixel};

/// Float costs are scaled so that the greatest becomes this, unless the caller states a scale.
const FRACTIONS: f32 = 1023.0;

/// The greatest cost that sums have room for.
const GREATEST: f32 = 4000.0;

/// How costs become integers: less `offset`, times `scale`, rounded to even.
#[derive(Clone, Copy, Debug)]
pub(in crate::stereo) struct Scaling {
    offset: f32,
    scale: f32,
    pub(in crate::stereo) greatest: u16,
}

impl Scaling {
    /// The scaling of costs whose least and greatest finite values are `least` and `most`.
    fn new([least, most]: [f32; 2], pixel: PixelKind, scale: Option<f32>) -> Result<Self> {
        if least > most {
            return Err(Error::Image("the cost volume holds no finite cost".into()));
        }
        let offset = least.min(0.0);
        let spread = most - offset;
        let scale = match scale {
            Some(scale) if scale > 0.0 && scale.is_finite() => scale,
            Some(scale) => return Err(Error::option("scale", scale, "a positive number")),
            None if pixel == PixelKind::F32 && spread > 0.0 => FRACTIONS / spread,
            None => 1.0,
        };
        let greatest = (spread * scale).round_ties_even();
        if greatest > GREATEST {
            let expected = format!("at most {}: sums have no room for greater costs", GREATEST / spread);
            return Err(Error::option("scale", scale, expected));
        }
        Ok(Self { offset, scale, greatest: greatest as u16 })
    }

    /// The penalties of the 24-bit census, scaled in proportion to the greatest cost.
    pub(in crate::stereo) fn penalties(self) -> Penalties {
        let census = CensusWindow::Five;
        let Penalties { p1, p2, p2_least, gradient } = CostDefinition::penalties(&census);
        let (most, bits) = (u32::from(self.greatest), u32::from(census.bits()));
        let [p1, p2, p2_least] = [p1, p2, p2_least].map(|p| (u32::from(p) * most).div_ceil(bits) as u16);
        Penalties { p1, p2, p2_least, gradient }
    }
}

/// Fails unless a volume of this size and number of disparities fits the left image and the options.
pub(in crate::stereo) fn require_volume(
    (size, disparities): (Size, usize),
    left: Size,
    options: &StereoOptions,
) -> Result<()> {
    let wanted = options.disparities;
    if size != left {
        return Err(Error::Mismatch(format!("a cost volume of {size} pixels for a left image of {left}")));
    }
    if disparities != wanted {
        return Err(Error::Mismatch(format!(
            "a cost volume of {disparities} disparities where the options search {wanted}"
        )));
    }
    Ok(())
}

/// The caller's costs in the host's memory.
pub(in crate::stereo) struct CostVolume<'a> {
    costs: AnyView<'a>,
    pub(in crate::stereo) scaling: Scaling,
}

impl<'a> CostVolume<'a> {
    pub(in crate::stereo) fn new(costs: AnyView<'a>, scale: Option<f32>, cpu: &Cpu) -> Result<Self> {
        let none = [f32::INFINITY, f32::NEG_INFINITY];
        let joined = |a: [f32; 2], b: [f32; 2]| [a[0].min(b[0]), a[1].max(b[1])];
        let of_row = |y| {
            by_pixel!(costs, view => {
                let finite = view.row(y).iter().map(|c| c.to_f32()).filter(|c| c.is_finite());
                finite.fold(none, |ends, c| joined(ends, [c, c]))
            })
        };
        let ends = cpu.collect(costs.size().height, of_row).into_iter().fold(none, joined);
        Ok(Self { costs, scaling: Scaling::new(ends, costs.pixel(), scale)? })
    }

    /// A mask of the pixels with a known cost at some disparity (not 0). `None`: all pixels have one.
    pub(in crate::stereo) fn mask(&self, cpu: &Cpu) -> Option<Image<u8>> {
        let AnyView::F32(costs) = &self.costs else { return None };
        let mut mask = Image::new(costs.size());
        let (width, count) = (costs.size().width.max(1), costs.channels());
        cpu.for_chunks(mask.data_mut(), width, |y, row| {
            for (known, costs) in row.iter_mut().zip(costs.row(y).chunks_exact(count)) {
                *known = u8::from(costs.iter().any(|cost| cost.is_finite()));
            }
        });
        mask.data().contains(&0).then_some(mask)
    }

    /// Invalidates the pixels at whose disparity the cost is unknown; channel 0 holds the costs of disparity `least`.
    pub(in crate::stereo) fn withdraw(&self, found: &mut StereoResult, least: i32) {
        let AnyView::F32(costs) = &self.costs else { return };
        let count = costs.channels();
        let known = |x: i64, y: usize, d: f32| {
            let place = (d.round_ties_even() as i64 - i64::from(least)).clamp(0, count as i64 - 1) as usize;
            usize::try_from(x)
                .is_ok_and(|x| costs.row(y).get(x * count + place).is_some_and(|c| c.is_finite()))
        };
        for y in 0..costs.size().height {
            for (x, d) in found.disparity.row_mut(y).iter_mut().enumerate() {
                if d.is_finite() && !known(x as i64, y, *d) {
                    *d = INVALID;
                    if let Some(confidence) = &mut found.confidence {
                        confidence.row_mut(y)[x] = 0.0;
                    }
                }
            }
            for (x, d) in found.right.iter_mut().flat_map(|right| right.row_mut(y).iter_mut().enumerate()) {
                if d.is_finite() && !known(x as i64 + *d as i64, y, *d) {
                    *d = INVALID;
                }
            }
        }
    }

    fn column<T: Value>(&self, column: Column, rows: &[CostRow], out: &mut [T]) {
        let (count, padded) = (self.costs.channels(), out.len() / rows.len().max(1));
        let Scaling { offset, scale, greatest } = self.scaling;
        by_pixel!(self.costs, view => {
            for (r, (row, out)) in rows.iter().zip(out.chunks_exact_mut(padded.max(1))).enumerate() {
                let (x, out) = (column.x(r), &mut out[..count]);
                if row.is_hole(x) {
                    out.fill(T::default());
                    continue;
                }
                for (out, &cost) in out.iter_mut().zip(&view.row(row.y)[x * count..]) {
                    let cost = cost.to_f32();
                    // Costs that are not finite count as the greatest.
                    let whole = ((cost - offset) * scale).round_ties_even();
                    *out = T::of(if cost.is_finite() { whole as u16 } else { greatest });
                }
                row.mask(x, T::of(greatest), out);
            }
        });
    }
}

impl CostSource for CostVolume<'_> {
    fn greatest(&self) -> u16 {
        self.scaling.greatest
    }

    fn prepare(&self, _: Level, pair: &Pair, y: usize, layout: RowLayout, row: &mut CostRow) {
        row.prepare(pair, y, layout);
    }

    fn column_u8(&self, _: Level, column: Column, rows: &[CostRow], out: &mut [u8]) {
        self.column(column, rows, out);
    }

    fn column_u16(&self, _: Level, column: Column, rows: &[CostRow], out: &mut [u16]) {
        self.column(column, rows, out);
    }

    fn exchanged(&self) -> Option<Box<dyn CostSource>> {
        None
    }

    fn kernel(&self) -> CostKernel {
        OF_VOLUME
    }
}

#[cfg(test)]
impl<'a> CostVolume<'a> {
    /// A volume of integer costs from 0 to `greatest`.
    pub(in crate::stereo) fn of_integers(costs: &'a Image<u16>, greatest: u16) -> Self {
        Self { costs: costs.into(), scaling: Scaling { offset: 0.0, scale: 1.0, greatest } }
    }
}
