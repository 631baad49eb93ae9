//! Moves disparity edges to edges of the picture by a vote.
//!
//! Paths carry a disparity some pixels beyond the surface to which it belongs. If disparities in a window of 9×5 pixels
//! differ by more than [`JUMP`], the window is divided into two sides at the mean of its least and greatest disparity.
//! Every valid pixel votes for its side with the weight max(0, limit − Δ), where Δ is the sum of its absolute
//! differences of red, green and blue (three times that of grey) from the centre pixel. If the side opposite to the
//! centre has more votes, the centre takes the disparity of that side's pixel of greatest weight: of equals the
//! nearest, then the first.
//!
//! A slanted surface does not have two sides: if more than a quarter of a window's valid pixels lie in the middle half
//! of its range of disparities, nothing changes.
//!
//! Sources: K. Zhang, J. Lu, G. Lafruit, *Cross-based local stereo matching using orthogonal integral images*, TCSVT 19,
//! 2009 (votes for disparities); Z. Ma et al., *Constant time weighted median filtering for stereo matching and beyond*,
//! ICCV 2013 (weights by likeness of colour). New here are the two sides and the test for slanted surfaces.
//! `docs/notebook/stereo.md` has the errors with and without this vote.
//!
//! **Numbers.** Weights and votes are whole numbers, in f32 without rounding; disparities are only compared and selected.

pub(crate) mod gpu;

use super::INVALID;
use crate::Result;
use crate::device::{Cpu, dispatch};
use crate::image::{Image, ImageView, ImageViewMut};
use fearless_simd::Simd;
use fearless_simd::prelude::*;
use fearless_simd_macros::simd;

/// How far the window reaches to either side, and up and down.
const REACH: [usize; 2] = [4, 2];
const COLUMNS: usize = 2 * REACH[0] + 1;
const ROWS: usize = 2 * REACH[1] + 1;
/// Disparities that differ by more than this are of two surfaces.
const JUMP: f32 = 2.0;
/// The rank of a pixel, by which its disparity is chosen, is its weight times this less its squared distance from the
/// centre pixel. The squared distance is always smaller than this, so weight decides first and distance second.
const NEARNESS: usize = 32;
/// The colour of pixels without a vote.
const FAR: f32 = 1e6;

/// Rows that one task computes.
const BAND: usize = 64;
/// More than any vector's lanes.
const LANES_MOST: usize = 64;

/// Writes `disparity` with its edges moved to those of `picture` (one or three channels) to `out`; all have one size.
pub(super) fn vote_into(
    disparity: ImageView<'_, f32>,
    picture: &Image<u8>,
    limit: u16,
    cpu: &Cpu,
    out: ImageViewMut<'_, f32>,
) -> Result<()> {
    let _stage = cpu.stage("edges");
    cpu.for_bands(out, BAND, |start, out| {
        let padded = disparity.size().width + 2 * REACH[0] + LANES_MOST;
        let mut window: [Row; ROWS] = std::array::from_fn(|_| Row::new(padded, picture.channels()));
        let mut columns = [0; 3].map(|_| vec![0.0; padded]);
        let mut loaded = start;
        for (y, mut out) in (start..).zip(out.reborrow().bands(1)) {
            // The window begins `REACH[1]` rows above the image.
            for y in loaded..y + ROWS {
                window[y % ROWS].load(y.checked_sub(REACH[1]), disparity, picture);
            }
            loaded = y + ROWS;
            let rows = std::array::from_fn(|i| &window[(y + i) % ROWS]);
            let limit = f32::from(limit);
            dispatch!(cpu.level(), simd => vote(simd, rows, &mut columns, limit, out.row_mut(0)));
        }
    })
}

/// A row of the window, padded on both sides by pixels without a vote.
struct Row {
    disparity: Vec<f32>,
    /// Red, green and blue, or three times grey; the first is [`FAR`] without a vote.
    colours: Vec<Vec<f32>>,
}

impl Row {
    fn new(padded: usize, channels: usize) -> Self {
        Self { disparity: vec![INVALID; padded], colours: vec![vec![0.0; padded]; channels] }
    }

    /// Loads row `y` of the map and the picture; `None` or a row below the image loads pixels without a vote.
    fn load(&mut self, y: Option<usize>, disparity: ImageView<'_, f32>, picture: &Image<u8>) {
        let size = disparity.size();
        self.colours[0].fill(FAR);
        let Some(y) = y.filter(|&y| y < size.height) else { return self.disparity.fill(INVALID) };
        let row = disparity.row(y);
        let inside = REACH[0]..REACH[0] + size.width;
        self.disparity[inside.clone()].copy_from_slice(row);
        let (channels, times) = (picture.channels(), 3.0 / picture.channels() as f32);
        for (c, plane) in self.colours.iter_mut().enumerate() {
            let pixels = picture.row(y)[c..].iter().step_by(channels);
            for (out, &v) in plane[inside.clone()].iter_mut().zip(pixels) {
                *out = times * f32::from(v);
            }
        }
        let colours = self.colours[0][inside].iter_mut();
        for (colour, disparity) in
            colours.zip(&mut self.disparity[REACH[0]..]).filter(|(_, d)| !d.is_finite())
        {
            (*colour, *disparity) = (FAR, INVALID);
        }
    }
}

/// Computes a row. `columns` is scratch memory for each column's least and greatest disparity and number of valid ones.
#[simd]
fn vote<S: Simd>(simd: S, rows: [&Row; ROWS], columns: &mut [Vec<f32>; 3], limit: f32, out: &mut [f32]) {
    let lanes = S::f32s::LEN;
    let splat = |v: f32| S::f32s::splat(simd, v);
    let at = |row: &[f32], x: usize| S::f32s::from_slice(simd, &row[x..x + lanes]);
    let [least, greatest, counts] = columns;
    for x in (0..out.len() + 2 * REACH[0]).step_by(lanes) {
        let (mut low, mut high, mut count) = (splat(INVALID), splat(-INVALID), splat(0.0));
        for row in rows {
            let v = at(&row.disparity, x);
            let is_valid = v.simd_lt(splat(INVALID));
            low = low.min(v);
            high = high.max(is_valid.select(v, splat(-INVALID)));
            count += is_valid.select(splat(1.0), splat(0.0));
        }
        low.store_slice(&mut least[x..x + lanes]);
        high.store_slice(&mut greatest[x..x + lanes]);
        count.store_slice(&mut counts[x..x + lanes]);
    }
    for x in (0..out.len()).step_by(lanes) {
        let centre = at(&rows[REACH[1]].disparity, x + REACH[0]);
        let (mut low, mut high) = (at(least, x), at(greatest, x));
        for column in 1..COLUMNS {
            low = low.min(at(least, x + column));
            high = high.max(at(greatest, x + column));
        }
        let mut changes = (high - low).simd_gt(splat(JUMP)) & centre.simd_lt(splat(INVALID));
        let mut chosen = centre;
        if changes.any_true() {
            let (middle, quarter) = ((low + high) * splat(0.5), (high - low) * splat(0.25));
            let own_side = centre.simd_le(middle);
            let mut count = at(counts, x);
            for column in 1..COLUMNS {
                count += at(counts, x + column);
            }
            let [mut between, mut own, mut other, mut best] = [splat(0.0); 4];
            for (r, row) in rows.into_iter().enumerate() {
                for column in 0..COLUMNS {
                    let v = at(&row.disparity, x + column);
                    let is_between = (v - middle).abs().simd_lt(quarter);
                    between += is_between.select(splat(1.0), splat(0.0));
                    let mut difference = splat(0.0);
                    for (plane, centre) in row.colours.iter().zip(&rows[REACH[1]].colours) {
                        difference += (at(plane, x + column) - at(centre, x + REACH[0])).abs();
                    }
                    let weight = (splat(limit) - difference).max(splat(0.0));
                    let is_other = v.simd_le(middle) ^ own_side;
                    let for_other = is_other.select(weight, splat(0.0));
                    other += for_other;
                    own += weight - for_other;
                    let distance = r.abs_diff(REACH[1]).pow(2) + column.abs_diff(REACH[0]).pow(2);
                    let rank = for_other * splat(NEARNESS as f32) - splat(distance as f32);
                    let is_best = rank.simd_gt(best);
                    best = is_best.select(rank, best);
                    chosen = is_best.select(v, chosen);
                }
            }
            changes = changes & other.simd_gt(own) & (between * splat(4.0)).simd_le(count);
        }
        let result = changes.select(chosen, centre);
        match out.len() - x {
            n if n < lanes => out[x..].copy_from_slice(&result.as_slice()[..n]),
            _ => result.store_slice(&mut out[x..x + lanes]),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::image::Size;
    use crate::image::testing::assert_same;
    use crate::numeric::Random;
    use crate::stereo::testing::{cpus, maps};

    pub(super) fn voted(map: &Image<f32>, picture: &Image<u8>, limit: u16, cpu: &Cpu) -> Image<f32> {
        let mut out = Image::new(map.size());
        vote_into(map.view(), picture, limit, cpu, out.view_mut()).unwrap();
        out
    }

    /// Noise with few different values, so that equal weights and equal sums occur.
    pub(super) fn picture(size: Size, channels: usize) -> Image<u8> {
        let mut random = Random::new(3);
        let values = (0..size.area() * channels).map(|_| (random.bits() % 5 * 20) as u8);
        Image::from_vec(values.collect(), size, channels).unwrap()
    }

    /// The module's description, computed pixel by pixel.
    fn reference(map: &Image<f32>, picture: &Image<u8>, limit: u16) -> Image<f32> {
        let (size, channels) = (map.size(), picture.channels());
        let colour = |x: usize, y: usize| -> [i32; 3] {
            std::array::from_fn(|c| picture.row(y)[x * channels + c.min(channels - 1)].into())
        };
        Image::from_fn(size, |x, y| {
            let centre = map.row(y)[x];
            if !centre.is_finite() {
                return INVALID;
            }
            let columns = x.saturating_sub(REACH[0])..(x + REACH[0] + 1).min(size.width);
            let rows = y.saturating_sub(REACH[1])..(y + REACH[1] + 1).min(size.height);
            let places = rows.flat_map(|y| columns.clone().map(move |x| (x, y)));
            let window: Vec<_> = places.filter(|&(x, y)| map.row(y)[x].is_finite()).collect();
            let values = || window.iter().map(|&(x, y)| map.row(y)[x]);
            let (low, high) = (values().fold(INVALID, f32::min), values().fold(-INVALID, f32::max));
            let middle = (low + high) * 0.5;
            let between = values().filter(|v| (v - middle).abs() < (high - low) * 0.25).count();
            if high - low <= JUMP || 4 * between > window.len() {
                return centre;
            }
            let (mut votes, mut best) = ([0, 0], None);
            for &(u, v) in &window {
                let of_both = colour(x, y).into_iter().zip(colour(u, v));
                let weight = i32::from(limit) - of_both.map(|(a, b)| (a - b).abs()).sum::<i32>();
                if weight <= 0 {
                    continue;
                }
                let is_other = (map.row(v)[u] <= middle) != (centre <= middle);
                votes[usize::from(is_other)] += weight;
                let distance = (u.abs_diff(x).pow(2) + v.abs_diff(y).pow(2)) as i32;
                let rank = (weight, -distance);
                if is_other && best.is_none_or(|(most, _)| rank > most) {
                    best = Some((rank, map.row(v)[u]));
                }
            }
            best.filter(|_| votes[1] > votes[0]).map_or(centre, |(_, value)| value)
        })
    }

    #[test]
    fn equals_a_count_of_votes() {
        let mut changed = 0;
        for map in maps() {
            for channels in [1, 3] {
                let picture = picture(map.size(), channels);
                for limit in [1, 90, 765] {
                    let expected = reference(&map, &picture, limit);
                    let both = map.data().iter().zip(expected.data());
                    changed += both.filter(|(a, b)| a != b && a.is_finite()).count();
                    for cpu in cpus() {
                        let what = format_args!("{} {channels} {limit} {}", map.size(), cpu.level_name());
                        assert_same(&voted(&map, &picture, limit, &cpu), &expected, what);
                    }
                }
            }
        }
        assert!(changed > 1000, "only {changed} pixels changed");
    }

    #[test]
    fn an_edge_goes_to_that_of_the_picture_and_a_slope_stays() {
        let size = Size::new(60, 20);
        let picture = Image::from_fn(size, |x, _| if x < 30 { 50_u8 } else { 120 });
        let step = |edge| Image::from_fn(size, |x, _| if x < edge { 12.0_f32 } else { 5.5 });
        let cpu = Cpu::sequential();
        for edge in [28, 29, 31, 32] {
            assert_same(&voted(&step(edge), &picture, 90, &cpu), &step(30), format_args!("edge at {edge}"));
        }
        let slope = Image::from_fn(size, |x, y| 0.4 * x as f32 + 0.3 * y as f32);
        assert_same(&voted(&slope, &picture, 90, &cpu), &slope, "a slope");
    }
}
