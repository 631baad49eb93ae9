//! How well tie points agree with a rectified pair: the differences of their rows, and the disparities to
//! search.
//!
//! A match that is wrong along its row obeys the epipolar geometry like a right one, and repeated structures cause many
//! such matches. The range of disparities therefore includes a tie point only if enough of its neighbours in the left
//! view have nearly its disparity. Of these, one in 500 at either end is left out, because wrong matches of repeated
//! structures can confirm each other.

use super::Rectification;
use crate::geometry::Correspondence;
use crate::numeric::median;

/// How well tie points agree with a rectification.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// Tie points that were judged.
    pub points: usize,
    /// Root mean square of the difference of rows, y in the left view less y in the right, pixels.
    pub rms_vertical_px: f64,
    /// Mean of its magnitude, pixels.
    pub mean_vertical_px: f64,
    /// The disparities that a dense search should cover: those of the tie points that their neighbours confirm,
    /// without one in 500 on either side, widened by a tenth of their range and by 2 pixels at least; whole pixels.
    pub disparities: [f64; 2],
    /// [`SelfCalibration::depths`](super::SelfCalibration::depths); 1 for cameras that are known.
    pub depths: [f64; 2],
}

/// What is said of a focal length that was found from the tie points of two pictures.
pub const WEAK_FOCAL: &str = "the focal length is weakly determined: found from two pictures alone it can be wrong by two or three times, \
                              and depth with it";

/// Depth counts as known if other lenses that fit nearly as well change it by less than this factor.
pub const SAME_DEPTH: f64 = 1.2;

/// Rows of a pair that is rectified by the right calibration differ by less, in pixels.
const RECTIFIED_PX: f64 = 2.0;

impl Agreement {
    /// By which factor depth may be off, because the lens is not known.
    pub fn uncertainty_of_depth(&self) -> f64 {
        self.depths[1].max(1.0 / self.depths[0])
    }

    /// Why depth is uncertain, in words.
    pub fn depth_doubt(&self) -> Option<String> {
        (self.uncertainty_of_depth() >= SAME_DEPTH).then(|| {
            format!(
                "depth is uncertain: with other lenses that fit the tie points as well it is {:.2} to {:.2} times as great, because the \
                 cameras are close to each other; undistort the pictures first, or give the calibration of the cameras",
                self.depths[0], self.depths[1]
            )
        })
    }

    /// Why the rectification is probably wrong, in words. `doffs` is added to disparities for depth
    /// ([`RectifiedCalibration`](crate::geometry::calibration::RectifiedCalibration)).
    pub fn doubts(&self, doffs: f64) -> Vec<String> {
        let [least, most] = self.disparities;
        let rows = (self.rms_vertical_px > RECTIFIED_PX).then(|| {
            format!(
                "the rows of {} tie points differ by {:.1} px (a rectified pair: less than {RECTIFIED_PX}); is the \
                 calibration that of these pictures, and is the left one first?",
                self.points, self.rms_vertical_px
            )
        });
        // Only if most of the range is behind: it is widened, and far points may come out slightly behind.
        let behind = (most + doffs < -0.25 * (least + doffs)).then(|| {
            format!(
                "the scene is behind the cameras (disparities {least} to {most}); are left and right exchanged?"
            )
        });
        rows.into_iter().chain(behind).collect()
    }
}

/// Tie points in a cell of the grid in which neighbours are looked up, on average.
const CELL: f64 = 4.0;

/// The share of the tie points in the surrounding 3×3 cells that must confirm a disparity.
const CONFIRMING: f64 = 0.25;

/// About the most neighbours that are compared in each of the three rows of cells.
const CROWD: usize = 64;

impl Rectification {
    /// How well tie points, in pixels of the pictures, agree; `None` if none lies in both views.
    pub fn agreement(&self, pairs: &[Correspondence]) -> Option<Agreement> {
        let places: Vec<_> = pairs.iter().filter_map(|p| self.places(p)).collect();
        let n = places.len();
        if n == 0 {
            return None;
        }
        let vertical = || places.iter().map(|(a, b)| a[1] - b[1]);
        Some(Agreement {
            points: n,
            rms_vertical_px: (vertical().map(|d| d * d).sum::<f64>() / n as f64).sqrt(),
            mean_vertical_px: vertical().map(f64::abs).sum::<f64>() / n as f64,
            disparities: widened(range(&places)),
            depths: [1.0; 2],
        })
    }

    /// The tie points whose row difference is within `tolerance` pixels of the median of all row differences. This
    /// removes outliers from matches that no epipolar geometry has verified, and keeps a shift of all of them, which a
    /// wrong calibration causes.
    pub fn near_rows(&self, pairs: &[Correspondence], tolerance: f64) -> Vec<Correspondence> {
        let off = |p: &Correspondence| self.places(p).map(|(a, b)| (*p, a[1] - b[1]));
        let all: Vec<_> = pairs.iter().filter_map(off).collect();
        let Some(median) = median(all.iter().map(|(_, d)| *d)) else { return vec![] };
        all.iter().filter(|(_, d)| (d - median).abs() <= tolerance).map(|(p, _)| *p).collect()
    }

    /// Where a tie point lies in both views.
    fn places(&self, pair: &Correspondence) -> Option<([f64; 2], [f64; 2])> {
        let places = (self.left.place(pair.a)?, self.right.place(pair.b)?);
        let near = |p: [f64; 2]| p.iter().all(|v| v.abs() < 1e9);
        (near(places.0) && near(places.1)).then_some(places)
    }
}

/// One in this many tie points is left out at either end of the range.
const LEFT_OUT: usize = 500;

/// The range of the disparities that neighbours confirm, or of all where none is confirmed. There is at least one tie
/// point.
fn range(places: &[([f64; 2], [f64; 2])]) -> [f64; 2] {
    confirmed_range(places).unwrap_or_else(|| ends(places.iter().map(|(a, b)| a[0] - b[0]).collect()))
}

/// The range of the disparities that neighbours confirm, if there are any.
pub(crate) fn confirmed_range(places: &[([f64; 2], [f64; 2])]) -> Option<[f64; 2]> {
    let ties = places.iter().map(|(a, b)| (*a, a[0] - b[0])).collect();
    Some(confirmed(ties)).filter(|confirmed| !confirmed.is_empty()).map(ends)
}

/// The least and the greatest of disparities, some left out on either side.
fn ends(mut disparities: Vec<f64>) -> [f64; 2] {
    disparities.sort_unstable_by(f64::total_cmp);
    let out = disparities.len() / LEFT_OUT;
    [disparities[out], disparities[disparities.len() - 1 - out]]
}

/// The disparities that a dense search should cover where tie points have this range.
pub(crate) fn widened([low, high]: [f64; 2]) -> [f64; 2] {
    let margin = (0.1 * (high - low)).max(2.0);
    [(low - margin).floor(), (high + margin).ceil()]
}

/// The disparities of those tie points, given by place in A and disparity, of which at least three neighbours and the
/// share [`CONFIRMING`] of all have nearly the same disparity.
fn confirmed(mut ties: Vec<([f64; 2], f64)>) -> Vec<f64> {
    let span = |c: usize| {
        let low = ties.iter().map(|(place, _)| place[c]).fold(f64::INFINITY, f64::min);
        (low, ties.iter().map(|(place, _)| place[c]).fold(low, f64::max) - low)
    };
    let ((left, width), (top, height)) = (span(0), span(1));
    let area = width.max(1.0) * height.max(1.0);
    let side = (area * CELL / ties.len() as f64).sqrt().max(width.max(height) / 4096.0).max(1.0);
    let tolerance = 2.0 + 0.25 * side;
    let cell = |([x, y], _): &([f64; 2], f64)| (((y - top) / side) as usize, ((x - left) / side) as usize);
    ties.sort_by_key(cell);
    let keys: &[(usize, usize)] = &ties.iter().map(cell).collect::<Vec<_>>();
    let around = |(row, column): (usize, usize)| {
        let rows = row.saturating_sub(1)..=row + 1;
        rows.flat_map(move |r| {
            let from = keys.partition_point(|k| *k < (r, column.saturating_sub(1)));
            let to = keys.partition_point(|k| *k <= (r, column + 1));
            // In a crowded cell only some are compared.
            (from..to).step_by((to - from) / CROWD + 1)
        })
    };
    let agrees = |tie: &&([f64; 2], f64)| {
        let (mut all, mut same) = (0_usize, 0_usize);
        for i in around(cell(tie)) {
            all += 1;
            same += usize::from((ties[i].1 - tie.1).abs() <= tolerance);
        }
        // `same` and `all` include the tie point itself.
        same > 3 && same as f64 > CONFIRMING * all as f64
    };
    ties.iter().filter(agrees).map(|(_, disparity)| *disparity).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isolated_disparities_do_not_count() {
        let mut places = vec![];
        for i in 0..900 {
            let (x, y) = (f64::from(i % 30) * 20.0, f64::from(i / 30) * 15.0);
            let d = if x < 300.0 { 10.0 + 0.02 * y } else { 60.0 };
            places.push(([x, y], [x - d, y]));
        }
        let clean = range(&places);
        assert!(clean[0] < 10.6 && clean[1] == 60.0, "a slope and a step: {clean:?}");
        // A few wrong matches, as of a repeated structure, with like disparities.
        let mut repeated = places.clone();
        repeated.extend((0..4).map(|i| ([300.0 + f64::from(i), 0.0], [900.0 + f64::from(i), 0.0])));
        let [low, high] = range(&repeated);
        assert!(low > 9.0 && high < 61.0, "{low} to {high}");
        // One match in eight is wrong.
        for i in (0..900).step_by(8) {
            places[i].1[0] += f64::from((i * 7919) as u32 % 800) - 400.0;
        }
        let [low, high] = range(&places);
        // Cells of 40 pixels separate disparities that differ by 12.
        assert!((low - 10.0).abs() < 12.5 && (high - 60.0).abs() < 12.5, "{low} to {high}");
        assert_eq!(range(&places[1..2]), [10.0, 10.0], "one alone");
    }

    #[test]
    fn many_matches_in_one_place_give_one_disparity() {
        let places = vec![([1e8, -1e8], [1e8 - 5.0, -1e8]); 300];
        assert_eq!(range(&places), [5.0, 5.0], "a single cell");
        let mut places = places;
        places.push(([-1e8, 1e8], [-1e8, 1e8]));
        assert_eq!(range(&places), [5.0, 5.0], "the far match is isolated");
    }
}
