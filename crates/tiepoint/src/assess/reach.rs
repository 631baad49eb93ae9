//! How far a map can be off where nothing supports it.
//!
//! A map is known where its inliers are. Beyond them it is extrapolated, and a small misfit grows by a factor that
//! depends on the positions of the inliers. Neighbours in one of the nine parts of the picture have about the same
//! misfit, so each part that supports the map counts as one observation, at the centroid of its inliers. The variance
//! of the least-squares fit to these observations at a point, in units of the variance of one observation, is b (Σ
//! bᵀb)⁻¹ bᵀ, where b are the derivatives of the mapped point by the parameters of the map. The residual that
//! neighbouring inliers have in common is a misfit that a map of this kind cannot follow. It grows like the error of a
//! more general map, which could follow it. So the parameters are those of the next more general kind, if the inliers
//! determine such a map. The derivatives are taken at the identity: this is allowed because coordinates of A can be
//! chosen that differ from those of B by a map of the same kind.
//!
//! The noise of the inliers displaces the map, too, if they are few or lie close together. Here each inlier is an
//! observation of its own, and the parameters are those of the map.

use crate::geometry::ModelKind;
use crate::geometry::linear::solve;

/// The most parameters: those of a homography.
const MOST: usize = 8;

/// The number of parameters of the next more general kind of map, and of this kind; `None` for models that are no map.
fn parameters(kind: ModelKind) -> Option<[usize; 2]> {
    match kind {
        ModelKind::Translation => Some([3, 2]),
        ModelKind::Rigid => Some([4, 3]),
        ModelKind::Similarity => Some([6, 4]),
        ModelKind::Affine => Some([MOST, 6]),
        ModelKind::Homography => Some([MOST; 2]),
        ModelKind::Fundamental | ModelKind::Essential => None,
    }
}

/// The derivatives of x and of y by each parameter: two of a translation, then rotation, scale, two of an affine map,
/// and two of a homography. A kind of map with n parameters has the first n.
fn derivatives([x, y]: [f64; 2], parameters: usize) -> [[f64; MOST]; 2] {
    let mut rows = [[1.0, 0.0, -y, x, x, y, -x * x, -x * y], [0.0, 1.0, x, y, -y, x, -x * y, -y * y]];
    rows.iter_mut().for_each(|row| row[parameters..].fill(0.0));
    rows
}

/// The centre of one of nine parts, counted row by row, relative to the picture's centre, in units of a part's size.
pub(super) fn middle(part: usize) -> [f64; 2] {
    [part % 3, part / 3].map(|k| k as f64 - 1.0)
}

/// The largest standard deviation of a map at the centres of the parts that are `shown`, in multiples of that of the
/// observations at `places`, which have the coordinates of [`middle`]. `None` for a model that is no map, and if the
/// observations do not determine it.
pub(super) fn amplification(kind: ModelKind, places: &[[f64; 2]], shown: [bool; 9]) -> Option<f64> {
    parameters(kind)?.into_iter().find_map(|parameters| amplified(parameters, places, shown))
}

/// The same where each inlier is an observation of its own, for the map itself.
pub(super) fn amplification_of_noise(kind: ModelKind, inliers: &[[f64; 2]], shown: [bool; 9]) -> Option<f64> {
    amplified(parameters(kind)?[1], inliers, shown)
}

fn amplified(n: usize, places: &[[f64; 2]], shown: [bool; 9]) -> Option<f64> {
    let mut normal = [[0.0; MOST]; MOST];
    for (i, row) in normal.iter_mut().enumerate().skip(n) {
        row[i] = 1.0;
    }
    for place in places {
        for b in derivatives(*place, n) {
            for (row, p) in normal.iter_mut().zip(b) {
                row.iter_mut().zip(b).for_each(|(sum, q)| *sum += p * q);
            }
        }
    }
    let mut most = 0.0_f64;
    for part in (0..9).filter(|&part| shown[part]) {
        let rows = derivatives(middle(part), n);
        let mut variance = [[0.0; 2]; 2];
        for (column, b) in rows.into_iter().enumerate() {
            let (mut a, mut right) = (normal, b);
            let x = solve(&mut a, &mut right)?;
            for (row, b) in rows.iter().enumerate() {
                variance[row][column] = b.iter().zip(x).map(|(p, q)| p * q).sum();
            }
        }
        let [[xx, xy], [_, yy]] = variance;
        let spread = (0.25 * (xx - yy) * (xx - yy) + xy * xy).sqrt();
        most = most.max(0.5 * (xx + yy) + spread);
    }
    Some(most.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [bool; 9] = [true; 9];

    #[test]
    fn a_map_is_known_where_it_is_supported_and_less_beyond() {
        let middles = |parts: &[usize]| parts.iter().map(|&part| middle(part)).collect::<Vec<_>>();
        let of = |kind, parts: &[usize]| amplification(kind, &middles(parts), ALL);
        let whole = of(ModelKind::Homography, &[0, 1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        let corner = of(ModelKind::Homography, &[0, 1, 2, 3, 4, 6]).unwrap();
        let rows = of(ModelKind::Homography, &[0, 1, 2, 3, 4, 5]).unwrap();
        assert!(whole < 1.0 && rows > 2.0 && corner > 4.0, "{whole}, {rows}, {corner}");
        // With fewer parameters the factor is smaller. The misfit of an affine map grows as a homography's error does.
        let kinds = [ModelKind::Translation, ModelKind::Rigid, ModelKind::Similarity, ModelKind::Affine];
        let fewer = kinds.map(|kind| of(kind, &[0, 1, 2, 3, 4, 6]).unwrap());
        assert!(fewer.is_sorted() && fewer[3] == corner, "{fewer:?}");
        // A mean of six has a sixth of the variance.
        let mean = amplified(2, &middles(&[0, 1, 2, 3, 4, 6]), ALL).unwrap();
        assert!((mean - (1.0_f64 / 6.0).sqrt()).abs() < 1e-12, "{mean}");
        assert_eq!(of(ModelKind::Homography, &[0, 1, 2]), None, "points on a line determine no homography");
        assert!(of(ModelKind::Similarity, &[0, 1, 2]).is_some(), "nor an affine map, but a similarity");
        assert_eq!(of(ModelKind::Fundamental, &[0, 1, 2, 3]), None, "no map");
        // Inliers at the inner edge of a part determine the map at its centre less well.
        let edge: Vec<_> = (0..9).map(middle).map(|[x, y]| [x.min(0.6), y]).collect();
        let edge = amplification(ModelKind::Homography, &edge, ALL).unwrap();
        assert!(edge > 1.3 * whole && edge < rows, "{edge}");
    }

    #[test]
    fn what_the_other_picture_does_not_show_does_not_count() {
        let left = std::array::from_fn(|part| part % 3 < 2);
        let places: Vec<_> = (0..9).filter(|&part| left[part]).map(middle).collect();
        let [all, seen] =
            [ALL, left].map(|shown| amplification(ModelKind::Homography, &places, shown).unwrap());
        assert!(seen < 1.1 && all > 2.0 * seen, "{seen}, {all}");
    }
}
