//! Small dense systems: Gaussian elimination with pivoting, eigenvectors of symmetric matrices and singular vectors by
//! Jacobi rotations. Sizes are 3 to 12, operands are well scaled (Hartley normalisation), the order of operations is
//! fixed. Only the singular vectors do not need good scaling: those of matrices between pixels are exact, too.

#![expect(clippy::needless_range_loop, reason = "indices of rows and columns are the notation here")]

use super::matrix::{Mat3, cross, direction, dot, transpose};

/// Solves a x = b for a square `a` in place, by elimination with row pivoting. `None` when a pivot vanishes.
pub(crate) fn solve<const N: usize>(a: &mut [[f64; N]; N], b: &mut [f64; N]) -> Option<[f64; N]> {
    let scale = a.iter().flatten().fold(0.0, |m: f64, v| if v.abs() > m { v.abs() } else { m });
    for c in 0..N {
        let pivot = (c + 1..N).fold(c, |best, r| if a[r][c].abs() > a[best][c].abs() { r } else { best });
        let size = a[pivot][c].abs();
        if size <= scale * 1e-15 || size.is_nan() {
            return None;
        }
        a.swap(c, pivot);
        b.swap(c, pivot);
        for r in c + 1..N {
            let f = a[r][c] / a[c][c];
            for k in c..N {
                a[r][k] -= f * a[c][k];
            }
            b[r] -= f * b[c];
        }
    }
    let mut x = [0.0; N];
    for r in (0..N).rev() {
        let rest = (r + 1..N).fold(b[r], |rest, k| rest - a[r][k] * x[k]);
        x[r] = rest / a[r][r];
    }
    x.iter().all(|v| v.is_finite()).then_some(x)
}

/// Eigenvalues and, as rows, eigenvectors of a symmetric matrix, by cyclic Jacobi rotations; ascending.
pub(super) fn eigen<const N: usize>(mut a: [[f64; N]; N]) -> ([f64; N], [[f64; N]; N]) {
    let mut v: [[f64; N]; N] = std::array::from_fn(|i| std::array::from_fn(|j| f64::from(u8::from(i == j))));
    for _sweep in 0..30 {
        let off: f64 = (0..N).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| a[i][j] * a[i][j]).sum();
        let diagonal: f64 = (0..N).map(|i| a[i][i] * a[i][i]).sum();
        if off <= diagonal * 1e-32 || off.is_nan() {
            break;
        }
        for p in 0..N {
            for q in p + 1..N {
                rotate(&mut a, &mut v, p, q);
            }
        }
    }
    let mut order: [usize; N] = std::array::from_fn(|i| i);
    order.sort_by(|&i, &j| a[i][i].total_cmp(&a[j][j]));
    (order.map(|i| a[i][i]), order.map(|i| v[i]))
}

/// One Jacobi rotation, which makes a\[p\]\[q\] zero. `v` holds the eigenvectors so far as rows.
fn rotate<const N: usize>(a: &mut [[f64; N]; N], v: &mut [[f64; N]; N], p: usize, q: usize) {
    if a[p][q] == 0.0 {
        return;
    }
    let [c, s] = rotation(a[p][p], a[p][q], a[q][q]);
    for k in 0..N {
        let (x, y) = (a[k][p], a[k][q]);
        (a[k][p], a[k][q]) = (c * x - s * y, s * x + c * y);
    }
    for k in 0..N {
        let (x, y) = (a[p][k], a[q][k]);
        (a[p][k], a[q][k]) = (c * x - s * y, s * x + c * y);
        let (x, y) = (v[p][k], v[q][k]);
        (v[p][k], v[q][k]) = (c * x - s * y, s * x + c * y);
    }
}

/// Cosine and sine of the lesser rotation that makes a symmetric 2×2 matrix diagonal; `xy` is not 0.
fn rotation(xx: f64, xy: f64, yy: f64) -> [f64; 2] {
    let theta = (yy - xx) / (2.0 * xy);
    let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let c = 1.0 / (t * t + 1.0).sqrt();
    [c, t * c]
}

/// A right singular vector v of a 3×3 matrix m, of length 1, with m v, whose length is the singular value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Singular {
    pub(super) right: [f64; 3],
    pub(super) image: [f64; 3],
}

/// Squared cosine below which two columns are perpendicular.
const PERPENDICULAR: f64 = 1e-30;

/// The singular vectors of a matrix, by ascending singular value. Its columns are rotated until they are perpendicular
/// (one-sided Jacobi: Hestenes 1958), because squaring the matrix would lose values below 1e-8 of the greatest, as those
/// of fundamental matrices between pixels are.
pub(super) fn singular(m: &Mat3) -> [Singular; 3] {
    let mut columns = transpose(m);
    let mut v = super::matrix::IDENTITY;
    for _sweep in 0..30 {
        let mut is_done = true;
        for (p, q) in [(0, 1), (0, 2), (1, 2)] {
            let (xx, xy, yy) =
                (dot(columns[p], columns[p]), dot(columns[p], columns[q]), dot(columns[q], columns[q]));
            if xy * xy > xx * yy * PERPENDICULAR {
                is_done = false;
                let [c, s] = rotation(xx, xy, yy);
                for k in 0..3 {
                    let (x, y) = (columns[p][k], columns[q][k]);
                    (columns[p][k], columns[q][k]) = (c * x - s * y, s * x + c * y);
                    let (x, y) = (v[p][k], v[q][k]);
                    (v[p][k], v[q][k]) = (c * x - s * y, s * x + c * y);
                }
            }
        }
        if is_done {
            break;
        }
    }
    let mut order = [0, 1, 2];
    order.sort_by(|&i, &j| dot(columns[i], columns[i]).total_cmp(&dot(columns[j], columns[j])));
    order.map(|i| Singular { right: v[i], image: columns[i] })
}

/// The rotation nearest to a matrix (Kabsch 1976).
pub(super) fn nearest_rotation(m: &Mat3) -> Mat3 {
    let [_, second, first] = singular(m);
    let (u, w) = (direction(first.image), direction(second.image));
    let (left, right) = ([u, w, cross(u, w)], [first.right, second.right, cross(first.right, second.right)]);
    std::array::from_fn(|i| std::array::from_fn(|j| (0..3).map(|k| left[k][i] * right[k][j]).sum()))
}

/// The real roots of c₃ x³ + c₂ x² + c₁ x + c₀, which may be of lower degree if leading coefficients are 0. Found by
/// bracketing between the extrema and bisection, without trigonometry.
pub(super) fn cubic_roots(c: [f64; 4]) -> impl Iterator<Item = f64> {
    let scale = c.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let value = move |x: f64| ((c[3] * x + c[2]) * x + c[1]) * x + c[0];
    // All roots lie within 1 + max |cᵢ/c₃| (Cauchy); beyond 1e9 a root is as good as infinite.
    let bound = 1.0 + (0..3).map(|i| (c[i] / c[3]).abs()).fold(0.0, f64::max);
    let bound = if bound.is_finite() { bound.min(1e9) } else { 1e9 };
    let [a, b, d] = [3.0 * c[3], 2.0 * c[2], c[1]];
    let disc = (b * b - 4.0 * a * d).max(0.0).sqrt();
    let q = -0.5 * (b + if b < 0.0 { -disc } else { disc });
    let mut cuts = [-bound, (q / a).clamp(-bound, bound), (d / q).clamp(-bound, bound), bound];
    cuts.iter_mut().for_each(|v| *v = if v.is_nan() { 0.0 } else { *v });
    cuts.sort_by(f64::total_cmp);
    let root = move |mut low: f64, mut high: f64| -> Option<f64> {
        let rising = value(low) < 0.0;
        if scale == 0.0 || (value(high) < 0.0) == rising || low >= high {
            return None;
        }
        for _ in 0..80 {
            let middle = 0.5 * (low + high);
            if (value(middle) < 0.0) == rising { low = middle } else { high = middle }
        }
        Some(0.5 * (low + high))
    };
    (0..3).filter_map(move |i| root(cuts[i], cuts[i + 1]))
}

/// The factors of terms whose sums are nearest to these values by least squares; none if they are not determined.
pub(crate) fn least_squares<const N: usize>(rows: impl Iterator<Item = ([f64; N], f64)>) -> Option<[f64; N]> {
    let (mut matrix, mut sums) = ([[0.0; N]; N], [0.0; N]);
    for (terms, value) in rows {
        for r in 0..N {
            sums[r] += terms[r] * value;
            (0..N).for_each(|c| matrix[r][c] += terms[r] * terms[c]);
        }
    }
    solve(&mut matrix, &mut sums)
}

/// z = c₀ + c₁ x + c₂ y.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plane([f64; 3]);

impl Plane {
    /// The plane of least squares through values z at places (x, y); none if these are on a line.
    pub(crate) fn through(values: impl Iterator<Item = ([f64; 2], f64)>) -> Option<Self> {
        least_squares(values.map(|([x, y], z)| ([1.0, x, y], z))).map(Self)
    }

    pub(crate) fn at(&self, [x, y]: [f64; 2]) -> f64 {
        self.0[0] + self.0[1] * x + self.0[2] * y
    }

    /// The greatest |z| in a picture of this width and height.
    pub(crate) fn greatest(&self, [width, height]: [f64; 2]) -> f64 {
        let corners = [[0.0, 0.0], [width, 0.0], [0.0, height], [width, height]];
        corners.into_iter().fold(0.0, |most, corner| self.at(corner).abs().max(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_and_refuses() {
        let mut a = [[0.0, 2.0, 1.0], [1.0, -1.0, 3.0], [4.0, 0.5, -2.0]];
        let x = [3.0, -2.0, 0.5];
        let mut b = std::array::from_fn(|i| (0..3).map(|k| a[i][k] * x[k]).sum());
        let found = solve(&mut a, &mut b).unwrap();
        assert!(found.iter().zip(x).all(|(f, x)| (f - x).abs() < 1e-12), "{found:?}");
        assert!(solve(&mut [[1.0, 2.0], [2.0, 4.0]], &mut [1.0, 2.0]).is_none(), "singular");
        assert!(solve(&mut [[f64::NAN, 2.0], [2.0, 4.0]], &mut [1.0, 2.0]).is_none(), "not a number");
    }

    #[test]
    fn eigenvectors_are_eigenvectors() {
        let m = [[4.0, 1.0, -2.0, 0.3], [1.0, 2.0, 0.0, 1.0], [-2.0, 0.0, 3.0, -1.0], [0.3, 1.0, -1.0, -5.0]];
        let (values, vectors) = eigen(m);
        for (l, v) in values.iter().zip(vectors) {
            for i in 0..4 {
                let mv: f64 = (0..4).map(|k| m[i][k] * v[k]).sum();
                assert!((mv - l * v[i]).abs() < 1e-12, "m v = λ v");
            }
        }
        assert!(values.is_sorted(), "ascending");
    }

    #[test]
    fn singular_values_far_below_the_greatest_are_exact() {
        // Rows and columns of very different length, as those of a fundamental matrix between pixels.
        let scaled = |by: f64| {
            let m = [[0.3, -0.7, 0.2], [0.5, 0.1, -0.4], [-0.6, 0.8, 0.9]];
            let length = [by, by, 1.0];
            std::array::from_fn(|i| std::array::from_fn(|j| m[i][j] * length[i] * length[j]))
        };
        for by in [1.0, 1e-3, 1e-6, 1e-9] {
            let m: Mat3 = scaled(by);
            let found = singular(&m);
            let product = found.iter().map(|s| dot(s.image, s.image).sqrt()).product::<f64>();
            let determinant = super::super::matrix::determinant(&m).abs();
            assert!((product / determinant - 1.0).abs() < 1e-9, "{by}: {product} and {determinant}");
            assert!(found.is_sorted_by_key(|s| dot(s.image, s.image)), "{by}: ascending");
        }
        let turn = super::super::matrix::cayley([0.3, -0.2, 0.5]);
        let off = |m: &Mat3, scale: f64| {
            let found = nearest_rotation(&m.map(|row| row.map(|v| scale * v)));
            (0..9).map(|i| (found[i / 3][i % 3] - turn[i / 3][i % 3]).abs()).fold(0.0, f64::max)
        };
        assert!(off(&turn, 7.0) < 1e-14, "a multiple of a rotation");
    }

    #[test]
    fn roots_of_cubics() {
        let check = |c: [f64; 4], roots: &[f64]| {
            let found: Vec<f64> = cubic_roots(c).collect();
            assert_eq!(found.len(), roots.len(), "{c:?} gave {found:?}");
            assert!(found.iter().zip(roots).all(|(f, r)| (f - r).abs() < 1e-9), "{c:?} gave {found:?}");
        };
        check([-6.0, 11.0, -6.0, 1.0], &[1.0, 2.0, 3.0]);
        check([1.0, 1.0, 0.0, 1.0], &[-0.682_327_803_828_019_3]);
        check([-1.0, 0.0, 1.0, 0.0], &[-1.0, 1.0]);
        check([-3.0, 1.5, 0.0, 0.0], &[2.0]);
        check([0.0; 4], &[]);
    }
}
