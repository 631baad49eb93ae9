//! What neighbouring matches have in common in their deviations from a map.
//!
//! The noise of features is independent from match to match. Depth that the map cannot follow, or any other misfit of
//! the map, displaces neighbours in the same way. Wrong matches deviate in any direction. Two measures follow:
//!
//! - a match is **supported** if several of its neighbours deviate as it does;
//! - the **share** of the deviations that neighbours have in common: the mean product of the deviations of neighbours
//!   over the mean square of all, Moran's I without subtraction of the mean (P. A. P. Moran, "Notes on continuous
//!   stochastic phenomena", Biometrika 37, 1950). It is 0 for noise, and 1 where neighbours deviate equally.
//!
//! Features closer than a few pixels may be one corner found twice, with the same noise, and are not neighbours.

use crate::matching::guided::Grid;

/// The number of nearest neighbours that may support a match.
const NEIGHBOURS: usize = 8;
/// A match is supported if this many of them deviate as it does. Fewer than one in a thousand wrong matches are
/// supported by three of eight by chance.
const SUPPORT: usize = 3;
/// The number of nearest neighbours by which the share in common is measured.
const NEAREST: usize = 3;
/// Neighbours are farther apart than this, in pixels.
const APART: f64 = 5.0;
/// About how many matches lie in a cell of the grid by which neighbours are found.
const IN_CELL: f64 = 4.0;
/// The fewest matches for which the share in common is computed.
const TELLING: usize = 50;

/// A match that is not far from where the map expects it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deviation {
    /// Its point in A.
    pub(super) at: [f64; 2],
    /// The vector from the point in B that the map predicts to the point of the match, in pixels.
    pub(super) by: [f64; 2],
}

/// The part of the deviations that neighbours have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Common {
    /// Its share of the mean square of the deviations; at least 0.
    pub(super) share: f64,
    /// Its root mean square, in pixels.
    pub(super) rms_px: f64,
}

/// Deviations and the neighbours of each.
pub(super) struct Deviations {
    all: Vec<Deviation>,
    neighbours: Vec<Vec<usize>>,
}

impl Deviations {
    pub(super) fn new(all: Vec<Deviation>) -> Self {
        let neighbours = neighbours(&all);
        Self { all, neighbours }
    }

    /// Whether neighbours of this match deviate as it does, up to `within` pixels.
    pub(super) fn is_supported(&self, i: usize, within: f64) -> bool {
        let [x, y] = self.all[i].by;
        let alike = |&&j: &&usize| {
            let by = self.all[j].by;
            squared([by[0] - x, by[1] - y]) < within * within
        };
        self.neighbours[i].iter().filter(alike).count() >= SUPPORT
    }

    /// Of the matches that deviate by more than `within` pixels, the share whose neighbours deviate as they do; 0 if no
    /// match deviates by more, `None` without matches.
    pub(super) fn supported_beyond(&self, within: f64) -> Option<f64> {
        let beyond: Vec<usize> =
            (0..self.all.len()).filter(|&i| squared(self.all[i].by) > within * within).collect();
        // Where noise is nearly as large as `within`, many neighbours are that near each other.
        let near = |i: usize| within.min(0.5 * squared(self.all[i].by).sqrt());
        let supported = beyond.iter().filter(|&&i| self.is_supported(i, near(i))).count();
        (!self.all.is_empty()).then(|| supported as f64 / beyond.len().max(1) as f64)
    }

    /// What neighbours have in common, among matches that deviate by less than `below` pixels; `None` for too few.
    pub(super) fn common(&self, below: f64) -> Option<Common> {
        let counts = |&i: &usize| squared(self.all[i].by) < below * below;
        let some: Vec<usize> = (0..self.all.len()).filter(counts).collect();
        let (mut product, mut pairs) = (0.0, 0_usize);
        for &i in &some {
            let [x, y] = self.all[i].by;
            for &j in self.neighbours[i].iter().filter(|j| counts(j)).take(NEAREST) {
                product += x * self.all[j].by[0] + y * self.all[j].by[1];
                pairs += 1;
            }
        }
        let square: f64 = some.iter().map(|&i| squared(self.all[i].by)).sum();
        (some.len() >= TELLING && pairs > 0 && square > 0.0).then(|| {
            let common = (product / pairs as f64).max(0.0);
            Common { share: common / (square / some.len() as f64), rms_px: common.sqrt() }
        })
    }
}

fn squared([x, y]: [f64; 2]) -> f64 {
    x * x + y * y
}

/// The nearest neighbours of each match, the nearest first.
fn neighbours(all: &[Deviation]) -> Vec<Vec<usize>> {
    let extent = all.iter().flat_map(|d| d.at).fold(1.0, |most: f64, v| most.max(v.abs()));
    let side = extent * (IN_CELL / all.len().max(1) as f64).sqrt();
    let grid = Grid::new(all.iter().map(|d| d.at), side);
    let nearest_of = |&Deviation { at: [x, y], .. }: &Deviation| {
        let (mut nearest, mut reach): (Vec<(f64, usize)>, f64) = (vec![], side);
        // The search window grows until every match outside it is farther away than the neighbours that were found.
        loop {
            nearest.clear();
            grid.visit([x - reach, x + reach], [y - reach, y + reach], &mut |j| {
                let j = j as usize;
                let one = (squared([all[j].at[0] - x, all[j].at[1] - y]), j);
                if one.0 <= APART * APART || nearest.get(NEIGHBOURS - 1).is_some_and(|last| one > *last) {
                    return;
                }
                nearest.truncate(NEIGHBOURS - 1);
                nearest.insert(nearest.partition_point(|other| *other < one), one);
            });
            let last = nearest.get(NEIGHBOURS - 1).map_or(f64::INFINITY, |(far, _)| *far);
            if last < reach * reach || reach > 2.0 * extent {
                return nearest.into_iter().map(|(_, j)| j).collect();
            }
            reach *= 2.0;
        }
    };
    all.iter().map(nearest_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Random;

    /// Matches over 400 × 300 pixels that deviate by `by` of their point and of two random numbers from -1 to 1.
    fn deviations(by: impl Fn([f64; 2], [f64; 2]) -> [f64; 2]) -> Vec<Deviation> {
        let mut random = Random::new(7);
        (0..300)
            .map(|_| {
                let at = [random.range(0.0, 400.0), random.range(0.0, 300.0)];
                Deviation { at, by: by(at, [random.range(-1.0, 1.0), random.range(-1.0, 1.0)]) }
            })
            .collect()
    }

    #[test]
    fn noise_has_nothing_in_common_and_relief_almost_all() {
        let noise = Deviations::new(deviations(|_, noise| noise)).common(6.0).unwrap();
        assert!(noise.share < 0.15, "noise: {noise:?}");
        let steps =
            |[x, _]: [f64; 2], [u, v]: [f64; 2]| [if x < 200.0 { -2.0 } else { 2.0 } + 0.5 * u, 0.5 * v];
        let relief = Deviations::new(deviations(steps)).common(6.0).unwrap();
        assert!(relief.share > 0.85 && (relief.rms_px - 2.0).abs() < 0.2, "relief: {relief:?}");
        assert_eq!(Deviations::new(deviations(steps)[..49].to_vec()).common(6.0), None, "too few");
    }

    #[test]
    fn a_second_plane_supports_its_matches_and_chance_does_not() {
        let plane = Deviations::new(deviations(|[x, _], [u, v]| [if x < 100.0 { 20.0 } else { 0.0 } + u, v]));
        let [left, all] = [100.0, 400.0].map(|edge| {
            let within = (0..300).filter(|&i| plane.all[i].at[0] < edge);
            within.clone().filter(|&i| plane.is_supported(i, 3.0)).count() as f64 / within.count() as f64
        });
        assert!(left > 0.8 && all > 0.8, "both planes are supported: {left}, {all}");
        let wrong = Deviations::new(deviations(|_, [u, v]| [50.0 * u, 50.0 * v]));
        let supported = (0..300).filter(|&i| wrong.is_supported(i, 3.0)).count();
        assert!(supported <= 1, "{supported} of 300 wrong matches");
    }

    #[test]
    fn neighbours_are_the_nearest_of_all() {
        let spread = deviations(|_, noise| noise);
        // Points on a grid, many of them equally far from a match or identical, and a cluster far from the others.
        let grid = spread.iter().map(|d| Deviation { at: d.at.map(|v| 4.0 * (v / 40.0).floor()), ..*d });
        let both: Vec<Deviation> = grid.chain(spread.iter().copied()).collect();
        for all in [&both[..0], &both[..5], &both[300..], &both] {
            let found = neighbours(all);
            for (i, one) in all.iter().enumerate() {
                let far = |j: usize| squared([0, 1].map(|axis| all[j].at[axis] - one.at[axis]));
                let mut others: Vec<(f64, usize)> = (0..all.len()).map(|j| (far(j), j)).collect();
                others.retain(|(far, _)| *far > APART * APART);
                others.sort_by(|a, b| a.partial_cmp(b).unwrap());
                let nearest: Vec<usize> = others.iter().take(NEIGHBOURS).map(|(_, j)| *j).collect();
                assert_eq!(found[i], nearest, "{i} of {}", all.len());
            }
        }
    }
}
