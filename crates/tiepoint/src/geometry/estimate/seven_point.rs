//! The seven-point method: F = F₁ + t F₂ over the null space of the epipolar constraints, with t from det F = 0
//! (Hartley, Zisserman 2004, section 11.1.2). Solutions are kept if (e' × b) · (F a) has one sign for all seven
//! points, as it has for points in front of both cameras (oriented epipolar constraint: Chum, Werner, Matas 2004).
//!
//! Written without a branch, for one sample or [eight](crate::geometry::real::WIDTH) side by side. Matrices are row-major.

#![expect(clippy::needless_range_loop, reason = "indices of rows and columns are the notation here")]

use crate::geometry::real::Real;

/// Unit vectors that span the null space of `rows`, by Householder's reflections; NaN where rows are exactly
/// dependent.
#[inline(always)]
pub(in crate::geometry) fn null_space<R: Real, const ROWS: usize, const NULL: usize>(
    rows: &mut [[R; 9]; ROWS],
) -> [[R; 9]; NULL] {
    let mut scales = [rows[0][0]; ROWS];
    for k in 0..ROWS {
        let mut square = rows[k][k] * rows[k][k];
        for i in k + 1..9 {
            square = square + rows[k][i] * rows[k][i];
        }
        let norm = square.root();
        let first = rows[k][k];
        scales[k] = first.constant(1.0) / (norm * (norm + first.magnitude()));
        rows[k][k] = first + norm.with_sign(first);
        let (done, rest) = rows.split_at_mut(k + 1);
        for row in rest {
            reflect(&done[k], scales[k], k, row);
        }
    }
    let zero = rows[0][0].constant(0.0);
    let mut space = [[zero; 9]; NULL];
    for (n, vector) in space.iter_mut().enumerate() {
        vector[ROWS + n] = zero.constant(1.0);
        for k in (0..ROWS).rev() {
            reflect(&rows[k], scales[k], k, vector);
        }
    }
    space
}

/// Reflects `row`; the elements before `k` do not change.
#[inline(always)]
fn reflect<R: Real>(mirror: &[R; 9], scale: R, k: usize, row: &mut [R; 9]) {
    let mut along = mirror[k] * row[k];
    for i in k + 1..9 {
        along = along + mirror[i] * row[i];
    }
    let along = along * scale;
    for i in k..9 {
        row[i] = row[i] - along * mirror[i];
    }
}

#[inline(always)]
fn determinant<R: Real>(m: &[R; 9]) -> R {
    m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6])
        + m[2] * (m[3] * m[7] - m[4] * m[6])
}

/// Newton's steps to the first root, and to polish all three.
const STEPS: usize = 20;
const POLISH: usize = 2;

/// The roots of t³ + a t² + b t + c; those that do not exist are NaN.
///
/// The first root lies beyond an extremum or the inflection, on the side given by the sign at the inflection; started
/// from farther out, Newton's method converges to it. The others are those of a quadratic.
#[inline(always)]
fn roots<R: Real>(a: R, b: R, c: R) -> [R; 3] {
    let third = 1.0 / 3.0;
    let shift = a * -third;
    // u³ + p u + q with t = u + shift.
    let p = b + shift * a;
    let q = ((shift + a) * shift + b) * shift + c;
    let zero = a.constant(0.0);
    // The outer ones of three roots lie within twice the extrema, ±√(−p/3). A single root lies within that and the
    // cube root of q, which is below (|q| + 2) / 3.
    let square = R::choose(zero.above(p), p * -third, zero);
    let only = (q * q).above(square * square * square * 4.0);
    let beyond = R::choose(only, (q.magnitude() + 2.0) * third, zero);
    let mut u = (square.root() * 2.0 + beyond).with_sign(-q);
    for _ in 0..STEPS {
        u = u - ((u * u + p) * u + q) / (u * u * 3.0 + p);
    }
    let first = u + shift;
    // t² + (a + first) t + b + first (a + first).
    let half = (a + first) * -0.5;
    let product = b + first * (a + first);
    let wing = (half * half - product).root();
    let second = half + wing.with_sign(half);
    let mut all = [first, second, product / second];
    for t in &mut all {
        for _ in 0..POLISH {
            *t = *t - (((*t + a) * *t + b) * *t + c) / ((*t * 3.0 + a * 2.0) * *t + b);
        }
    }
    all
}

/// Roots farther out are treated as infinite.
const FARTHEST: f64 = 1e6;

/// The fundamental matrices of seven matches (places in A and in B), and which of them exist.
#[inline(always)]
pub(in crate::geometry) fn seven_point<R: Real>(a: &[[R; 2]; 7], b: &[[R; 2]; 7]) -> [([R; 9], R::Mask); 3] {
    let one = a[0][0].constant(1.0);
    let mut rows = [[one; 9]; 7];
    for i in 0..7 {
        rows[i] = epipolar_row(a[i], b[i], one);
    }
    let [f, g]: [[R; 9]; 2] = null_space(&mut rows);
    // The one of greater determinant goes with t, so that the cubic has a leading term.
    let (df, dg) = (determinant(&f), determinant(&g));
    let swapped = df.magnitude().above(dg.magnitude());
    let (mut first, mut second, mut plus, mut minus) = (f, g, f, g);
    for i in 0..9 {
        first[i] = R::choose(swapped, g[i], f[i]);
        second[i] = R::choose(swapped, f[i], g[i]);
        (plus[i], minus[i]) = (first[i] + second[i], first[i] - second[i]);
    }
    let (d0, d3) = (R::choose(swapped, dg, df), R::choose(swapped, df, dg));
    // det (first + t second) at 1 and −1.
    let (plus, minus) = (determinant(&plus), determinant(&minus));
    let d2 = (plus + minus) * 0.5 - d0;
    let d1 = (plus - minus) * 0.5 - d3;
    let [r, s, t] = roots(d2 / d3, d1 / d3, d0 / d3);
    [
        solution(&first, &second, r, a, b),
        solution(&first, &second, s, a, b),
        solution(&first, &second, t, a, b),
    ]
}

/// first + t second, and whether it exists and the matches can lie in front of both cameras.
#[inline(always)]
fn solution<R: Real>(
    first: &[R; 9],
    second: &[R; 9],
    t: R,
    a: &[[R; 2]; 7],
    b: &[[R; 2]; 7],
) -> ([R; 9], R::Mask) {
    let mut model = *first;
    for i in 0..9 {
        model[i] = first[i] + t * second[i];
    }
    let near = t.constant(FARTHEST).above(t.magnitude());
    (model, near & oriented(&model, a, b))
}

/// The constraint of a match on the nine elements of a matrix.
#[inline(always)]
pub(in crate::geometry) fn epipolar_row<R: Real>([x, y]: [R; 2], [u, v]: [R; 2], one: R) -> [R; 9] {
    [u * x, u * y, u, v * x, v * y, v, x, y, one]
}

/// Whether all points can lie in front of both cameras. The epipole is a mixture of the rows of F's adjugate, which are
/// its multiples.
#[inline(always)]
pub(in crate::geometry) fn oriented<R: Real, const N: usize>(
    f: &[R; 9],
    a: &[[R; 2]; N],
    b: &[[R; 2]; N],
) -> R::Mask {
    const MIXTURE: [f64; 3] = [0.617, 0.523, 0.588];
    let adjugate = [
        [f[4] * f[8] - f[5] * f[7], f[2] * f[7] - f[1] * f[8], f[1] * f[5] - f[2] * f[4]],
        [f[5] * f[6] - f[3] * f[8], f[0] * f[8] - f[2] * f[6], f[2] * f[3] - f[0] * f[5]],
        [f[3] * f[7] - f[4] * f[6], f[1] * f[6] - f[0] * f[7], f[0] * f[4] - f[1] * f[3]],
    ];
    let mut e = adjugate[0];
    for j in 0..3 {
        e[j] = adjugate[0][j] * MIXTURE[0] + adjugate[1][j] * MIXTURE[1] + adjugate[2][j] * MIXTURE[2];
    }
    let zero = e[0].constant(0.0);
    let first = side(f, &e, a[0], b[0]);
    let (mut positive, mut negative) = (first.above(zero), zero.above(first));
    for i in 1..N {
        let s = side(f, &e, a[i], b[i]);
        positive = positive & s.above(zero);
        negative = negative & zero.above(s);
    }
    positive | negative
}

/// (e × b) · (F a).
#[inline(always)]
fn side<R: Real>(f: &[R; 9], e: &[R; 3], [x, y]: [R; 2], [u, v]: [R; 2]) -> R {
    let line = [f[0] * x + f[1] * y + f[2], f[3] * x + f[4] * y + f[5], f[6] * x + f[7] * y + f[8]];
    let toward = [e[1] - e[2] * v, e[2] * u - e[0], e[0] * v - e[1] * u];
    toward[0] * line[0] + toward[1] * line[1] + toward[2] * line[2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Random;

    #[test]
    fn roots_of_cubics() {
        let check = |roots_in: [f64; 3]| {
            let [r, s, t] = roots_in;
            let found = roots(-(r + s + t), r * s + s * t + t * r, -(r * s * t));
            for expected in roots_in {
                let near = found.iter().any(|f| (f - expected).abs() < 1e-9 * (1.0 + expected.abs()));
                assert!(near, "{roots_in:?} gave {found:?}");
            }
        };
        check([1.0, 2.0, 3.0]);
        check([-0.5, 0.25, 900.0]);
        check([-1e3, 1e-3, 0.7]);
        let mut random = Random::new(4);
        (0..200).for_each(|_| check(std::array::from_fn(|_| random.range(-3.0, 3.0))));
        let [only, none, nor] = roots(0.0, 1.0, 1.0);
        assert!(
            (only + 0.682_327_803_828_019_3).abs() < 1e-12 && none.is_nan() && nor.is_nan(),
            "one real root"
        );
    }

    #[test]
    fn null_spaces_are_orthogonal_to_the_rows_and_each_other() {
        let mut random = Random::new(9);
        let rows: [[f64; 9]; 5] = std::array::from_fn(|_| std::array::from_fn(|_| random.range(-1.0, 1.0)));
        let vectors: [[f64; 9]; 4] = null_space(&mut rows.clone());
        let dot = |a: &[f64; 9], b: &[f64; 9]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        for (i, v) in vectors.iter().enumerate() {
            assert!(rows.iter().all(|r| dot(r, v).abs() < 1e-14), "orthogonal to the rows");
            for (j, w) in vectors.iter().enumerate() {
                assert!((dot(v, w) - f64::from(u8::from(i == j))).abs() < 1e-14, "orthonormal");
            }
        }
    }
}
