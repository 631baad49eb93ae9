//! The range of an image's values: exact percentiles, by counting.
//!
//! 16-bit values are counted in one pass, with a counter for each value. Floats are counted by a 32-bit key that sorts
//! as they do (see `key`), in two passes, because a counter for each key would take too much memory. The first pass
//! counts the upper 16 bits of the keys and finds the least and the greatest value; the second counts the lower 16 bits
//! of the keys whose upper bits are those of a percentile. Counts are integers, so the threads change nothing.

use crate::Result;
use crate::device::Cpu;
use crate::image::{ImageView, Pixel};
use std::ops::Range;

/// At either end one value in this many is ignored. An extreme that more pixels hold marks no data or saturation.
const IGNORED: u64 = 100;

/// How far the percentiles are moved apart at either end, as a share of their distance.
const WIDENED: f32 = 0.25;

/// Black and white of [`Range::Auto`](super::Range) of 16 bits; `None` for an image that is flat, empty or masked away.
pub(super) fn of_levels(
    image: ImageView<'_, u16>,
    mask: Option<ImageView<'_, u8>>,
    cpu: &Cpu,
) -> Result<Option<[f32; 2]>> {
    let values = Values { image, mask, cpu };
    let count = |rows| {
        let mut of_level = vec![0_u64; 1 << 16];
        values.each(rows, |v, counts| of_level[usize::from(v)] += u64::from(counts));
        of_level
    };
    let of_level = values.counted(count, summed).unwrap_or_default();
    let is_held = |n: &u64| *n > 0;
    let ends = of_level.iter().position(is_held).zip(of_level.iter().rposition(is_held));
    let Some((least, greatest)) = ends else { return Ok(None) };
    let counted = of_level.iter().sum();
    let ends = [least, greatest].map(|level| End { key: level as u32, count: of_level[level] });
    between_marks(counted, ends, |ranks| Ok(ranks.map(|rank| place(&of_level, rank).0 as f32)))
}

/// The values of an image, counted by their keys: on the CPU (floats) or on a GPU.
pub(super) trait Counted {
    /// The counts of the upper half of the keys.
    fn upper(&self) -> Result<Upper>;

    /// For each of these upper halves, how many keys have it with each lower half: four times 2¹⁶ counts.
    fn lower(&self, upper: [usize; 4]) -> Result<Vec<u64>>;
}

/// Black and white as [`of_levels`], from values counted by their keys.
pub(super) fn of_counted(values: &impl Counted) -> Result<Option<[f32; 2]>> {
    let upper = values.upper()?;
    let counted = upper.of_bin.iter().sum();
    between_marks(counted, upper.ends, |ranks| at_ranks(values, ranks, &upper.of_bin))
}

/// Black and white of `counted` values with these extremes; `at` gives the values at four ascending ranks.
fn between_marks(
    counted: u64,
    [least, greatest]: [End; 2],
    at: impl Fn([u64; 4]) -> Result<[f32; 4]>,
) -> Result<Option<[f32; 2]>> {
    if counted == 0 || least.key == greatest.key {
        return Ok(None);
    }
    let mark = |end: End| if end.count > counted / IGNORED { end.count } else { 0 };
    let between = |below: u64, above: u64| {
        let Some(last) = (counted - above).checked_sub(1).filter(|last| *last >= below) else {
            return Ok(None);
        };
        let first = below;
        let ignored = (last - first) / IGNORED;
        let ranks = [first, first + ignored, last - ignored, last];
        let [least, low, high, greatest] = at(ranks)?.map(f64::from);
        let widened = f64::from(WIDENED) * (high - low);
        let ends = [(low - widened).max(least) as f32, (high + widened).min(greatest) as f32];
        Ok((ends[0] < ends[1]).then_some(ends))
    };
    // Without the marks all values may be equal, or none may be left: then the marks count as values.
    match (mark(least), mark(greatest)) {
        (0, 0) => between(0, 0),
        (below, above) => match between(below, above)? {
            None => between(0, 0),
            ends => Ok(ends),
        },
    }
}

/// The values at four ascending ranks.
fn at_ranks(values: &impl Counted, ranks: [u64; 4], upper: &[u64]) -> Result<[f32; 4]> {
    let found = ranks.map(|rank| place(upper, rank));
    let lower = values.lower(found.map(|(bin, _)| bin))?;
    Ok(std::array::from_fn(|i| {
        let (bin, rank) = found[i];
        value((bin << 16 | place(&lower[i << 16..(i + 1) << 16], rank).0) as u32)
    }))
}

/// Counts by the upper half of the keys.
#[derive(Clone)]
pub(super) struct Upper {
    pub(super) of_bin: Vec<u64>,
    /// The least and the greatest value.
    pub(super) ends: [End; 2],
}

/// The key of an extreme value, and how many pixels hold it.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) key: u32,
    pub(super) count: u64,
}

impl End {
    /// Adds the count of an equal value; a value further out replaces this one.
    fn meet(&mut self, other: Self, is_further: bool) {
        if other.key == self.key {
            self.count += other.count;
        } else if is_further {
            *self = other;
        }
    }
}

impl Upper {
    fn new() -> Self {
        let ends = [u32::MAX, 0].map(|key| End { key, count: 0 });
        Self { of_bin: vec![0; 1 << 16], ends }
    }

    fn meet(&mut self, [least, greatest]: [End; 2]) {
        let [low, high] = &mut self.ends;
        low.meet(least, least.key < low.key);
        high.meet(greatest, greatest.key > high.key);
    }

    fn merge(mut self, other: Self) -> Self {
        self.of_bin = summed(self.of_bin, other.of_bin);
        self.meet(other.ends);
        self
    }
}

fn summed(mut a: Vec<u64>, b: Vec<u64>) -> Vec<u64> {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
    a
}

/// An image, and which of its pixels count.
struct Values<'a, 'm, T> {
    image: ImageView<'a, T>,
    mask: Option<ImageView<'m, u8>>,
    cpu: &'m Cpu,
}

impl<T: Pixel> Values<'_, '_, T> {
    /// Calls `see` for every pixel of some rows, with whether the mask lets it count.
    fn each(&self, rows: Range<usize>, mut see: impl FnMut(T, bool)) {
        for y in rows {
            let row = self.image.row(y).iter();
            match self.mask {
                None => row.for_each(|v| see(*v, true)),
                Some(mask) => row.zip(mask.row(y)).for_each(|(v, m)| see(*v, *m != 0)),
            }
        }
    }

    /// Calls `count` for one range of rows per thread, and merges the results.
    fn counted<R: Send>(
        &self,
        count: impl Fn(Range<usize>) -> R + Sync,
        merge: impl FnMut(R, R) -> R,
    ) -> Option<R> {
        let (height, parts) = (self.image.size().height, self.cpu.threads());
        let row = |part: usize| (height as u128 * part as u128 / parts as u128) as usize;
        self.cpu.map(parts, |i| count(row(i)..row(i + 1))).into_iter().reduce(merge)
    }
}

/// A float image, with the counts of the upper half of its keys.
pub(super) struct Floats<'a, 'm> {
    values: Values<'a, 'm, f32>,
    upper: Upper,
    /// Pixels that are not finite, masked or not.
    pub(super) holes: usize,
}

impl<'a, 'm> Floats<'a, 'm> {
    pub(super) fn count(image: ImageView<'a, f32>, mask: Option<ImageView<'m, u8>>, cpu: &'m Cpu) -> Self {
        let values = Values { image, mask, cpu };
        let count = |rows| {
            let (mut upper, mut holes) = (Upper::new(), 0);
            values.each(rows, |v, counts| match v.is_finite() {
                true if counts => {
                    let key = key(v);
                    upper.of_bin[key as usize >> 16] += 1;
                    upper.meet([End { key, count: 1 }; 2]);
                }
                true => {}
                false => holes += 1,
            });
            (upper, holes)
        };
        let merged = values.counted(count, |(a, m), (b, n)| (a.merge(b), m + n));
        let (upper, holes) = merged.unwrap_or_else(|| (Upper::new(), 0));
        Self { values, upper, holes }
    }
}

impl Counted for Floats<'_, '_> {
    fn upper(&self) -> Result<Upper> {
        Ok(self.upper.clone())
    }

    fn lower(&self, upper: [usize; 4]) -> Result<Vec<u64>> {
        let count = |rows| {
            let mut lower = vec![0_u64; 4 << 16];
            self.values.each(rows, |v, counts| {
                if !(counts && v.is_finite()) {
                    return;
                }
                let key = key(v) as usize;
                for (i, bin) in upper.iter().enumerate() {
                    if key >> 16 == *bin {
                        lower[i << 16 | key & 0xffff] += 1;
                    }
                }
            });
            lower
        };
        Ok(self.values.counted(count, summed).unwrap_or_default())
    }
}

/// The bin into which a rank falls, and the rank within that bin.
fn place(counts: &[u64], mut rank: u64) -> (usize, u64) {
    for (bin, &count) in counts.iter().enumerate() {
        if rank < count {
            return (bin, rank);
        }
        rank -= count;
    }
    (counts.len() - 1, 0)
}

/// An integer that sorts as the float does: its bits, inverted if it is negative, otherwise with the sign bit set.
fn key(v: f32) -> u32 {
    // Makes −0 equal to 0.
    let bits = (v + 0.0).to_bits();
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}

/// The float that has this key; the same as `value_of` in `key.h`.
pub(crate) fn value(key: u32) -> f32 {
    f32::from_bits(if key >> 31 == 1 { key & !(1 << 31) } else { !key })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{Image, Size};
    use crate::numeric::Random;

    fn reference(values: &[f32]) -> Option<[f32; 2]> {
        let mut sorted: Vec<f32> = values.iter().copied().filter(|v| v.is_finite()).collect();
        sorted.sort_by(f32::total_cmp);
        let (least, greatest) = (*sorted.first()?, *sorted.last()?);
        if least == greatest {
            return None;
        }
        let n = sorted.len();
        let held = |end: f32| sorted.iter().filter(|v| **v == end).count();
        let [below, above] = [least, greatest].map(|end| if held(end) > n / 100 { held(end) } else { 0 });
        let between = |kept: &[f32]| {
            let ignored = (kept.len() - 1) / 100;
            let [low, high] = [kept[ignored], kept[kept.len() - 1 - ignored]].map(f64::from);
            let more = 0.25 * (high - low);
            let low = (low - more).max(f64::from(kept[0])) as f32;
            let high = (high + more).min(f64::from(kept[kept.len() - 1])) as f32;
            (low < high).then_some([low, high])
        };
        let marked = Some(&sorted[below..n - above]).filter(|kept| !kept.is_empty());
        marked.and_then(between).or_else(|| between(&sorted))
    }

    #[test]
    fn ends_are_those_of_the_sorted_values_for_any_threads() {
        let mut random = Random::new(3);
        let mut random = |n: usize| random.below(n);
        let size = Size::new(61, 47);
        for round in 0..40 {
            let scale = [1.0, 1e-3, 1e30, 1e-30][round % 4];
            let offset = [0.0, 1000.0, -5.0][round % 3];
            let image = Image::from_fn(size, |_, _| match random(60) {
                0 if round > 9 => -9999.0,
                1 if round > 19 => 3e38,
                2 => [f32::NAN, f32::INFINITY, f32::NEG_INFINITY][random(3)],
                _ => offset + scale * (random(1000) + random(1000)) as f32,
            });
            let mask = Image::from_fn(size, |x, y| u8::from((x * y + round) % 7 != 0));
            let pixels = image.data().iter().zip(mask.data());
            let kept: Vec<f32> = pixels.filter(|(_, m)| **m != 0).map(|(v, _)| *v).collect();
            let levels = Image::from_fn(size, |x, y| image.row(y)[x].abs() as u16);
            let as_floats = |levels: &[u16]| levels.iter().map(|v| f32::from(*v)).collect::<Vec<_>>();
            let pixels = levels.data().iter().zip(mask.data());
            let kept_levels: Vec<u16> = pixels.filter(|(_, m)| **m != 0).map(|(v, _)| *v).collect();
            for threads in [1, 2, 5] {
                let cpu = Cpu::with_threads(threads).unwrap();
                let floats = |mask| Floats::count(image.view(), mask, &cpu);
                let case = format!("{round}, {threads} threads");
                let holes = image.data().iter().filter(|v| !v.is_finite()).count();
                assert_eq!(floats(None).holes, holes, "{case}: holes");
                assert_eq!(floats(Some(mask.view())).holes, holes, "{case}: holes, masked");
                assert_eq!(of_counted(&floats(None)).unwrap(), reference(image.data()), "{case}");
                assert_eq!(
                    of_counted(&floats(Some(mask.view()))).unwrap(),
                    reference(&kept),
                    "{case}, masked"
                );
                let found = of_levels(levels.view(), None, &cpu).unwrap();
                assert_eq!(found, reference(&as_floats(levels.data())), "{case}, 16 bits");
                let found = of_levels(levels.view(), Some(mask.view()), &cpu).unwrap();
                assert_eq!(found, reference(&as_floats(&kept_levels)), "{case}, 16 bits, masked");
            }
        }
    }

    #[test]
    fn marks_and_outliers_do_not_count() {
        let cpu = Cpu::sequential();
        let size = Size::new(100, 100);
        let at = |x: usize, y: usize| (7 * x + 13 * y) % 101;
        let image = Image::from_fn(size, |x, y| match (x, y) {
            (0..5, _) => 0_u16,
            (50, 0..20) => 60_000,
            _ => 300 + at(x, y) as u16,
        });
        let of_levels = |image: &Image<u16>| of_levels(image.view(), None, &cpu).unwrap();
        let [low, high] = of_levels(&image).unwrap();
        assert!((300.0..305.0).contains(&low) && (398.0..=430.0).contains(&high), "{low} to {high}");
        let two = Image::from_fn(size, |x, _| if x < 40 { 0_u16 } else { 65_535 });
        assert_eq!(of_levels(&two), Some([0.0, 65_535.0]), "two values");
        assert_eq!(of_levels(&Image::filled(size, 1, 9)), None, "flat");
        let empty = Image::<f32>::new(Size::new(0, 7));
        assert_eq!(of_counted(&Floats::count(empty.view(), None, &cpu)).unwrap(), None, "empty");
        assert_eq!(of_levels(&Image::new(Size::new(7, 0))), None, "empty");
        let nothing = Image::<u8>::new(size);
        assert_eq!(super::of_levels(image.view(), Some(nothing.view()), &cpu).unwrap(), None, "masked away");
    }
}
