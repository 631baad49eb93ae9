//! The five-point method (Nistér 2004): E = x X + y Y + z Z + W over the null space of the epipolar constraints, with
//! (x, y, z) from det E = 0 and 2 E Eᵀ E = tr(E Eᵀ) E.
//!
//! These ten cubics are reduced, by Householder's reflections in place of the paper's elimination, to three equations
//! linear in x, y and 1 whose coefficients are polynomials of z; their determinant is a polynomial of degree ten. Its
//! roots are found where it changes sign between the points of a grid, of z on \[−1, 1\] and of 1/z beyond. Two roots
//! within one cell are missed, which only wastes a sample. Solutions for which not all five points lie in front of both
//! cameras are left out (`seven_point`). E is the same for both directions of the baseline.

#![expect(clippy::needless_range_loop, reason = "indices of rows and columns are the notation here")]

use super::seven_point::{epipolar_row, null_space, oriented};
use crate::geometry::matrix::{Mat3, cross, of_flat, product, transpose};
use crate::geometry::real::{Real, each, negative};
use tiepoint_gpu::KernelSource;

/// The index of the product of two of x, y, z, 1 among x², xy, xz, x, y², yz, y, z², z, 1.
const QUADRATIC: [[usize; 4]; 4] = [[0, 1, 2, 3], [1, 4, 5, 6], [2, 5, 7, 8], [3, 6, 8, 9]];

/// The index of the product of one of these with x, y, z or 1 among x³, y³, x²y, xy², x²z, x², y²z, y², xyz, xy, xz²,
/// xz, x, yz², yz, y, z³, z², z, 1 (the paper's order).
const CUBIC: [[usize; 4]; 10] = [
    [0, 2, 4, 5],
    [2, 3, 8, 9],
    [4, 8, 10, 11],
    [5, 9, 11, 12],
    [3, 1, 6, 7],
    [8, 6, 13, 14],
    [9, 7, 14, 15],
    [10, 13, 16, 17],
    [11, 14, 17, 18],
    [12, 15, 18, 19],
];

pub(super) fn for_kernels(source: KernelSource) -> KernelSource {
    let table = |rows: &[[usize; 4]]| rows.iter().flatten().map(|&i| i as i32).collect::<Vec<_>>();
    source
        .define("CELLS", CELLS)
        .define("ROOT_STEPS", STEPS)
        .table_i32("QUADRATIC", &table(&QUADRATIC))
        .table_i32("CUBIC", &table(&CUBIC))
}

/// Polynomials of x, y, z: linear, quadratic and cubic.
type Linear<R> = [R; 4];
type Quadratic<R> = [R; 10];
type Cubic<R> = [R; 20];

#[inline(always)]
fn add_quadratic<R: Real>(sum: &mut Quadratic<R>, a: &Linear<R>, b: &Linear<R>) {
    for i in 0..4 {
        for j in 0..4 {
            sum[QUADRATIC[i][j]] = sum[QUADRATIC[i][j]] + a[i] * b[j];
        }
    }
}

#[inline(always)]
fn add_cubic<R: Real>(sum: &mut Cubic<R>, a: &Quadratic<R>, b: &Linear<R>) {
    for i in 0..10 {
        for j in 0..4 {
            sum[CUBIC[i][j]] = sum[CUBIC[i][j]] + a[i] * b[j];
        }
    }
}

/// The ten cubics, of E's elements.
#[inline(always)]
fn constraints<R: Real>(e: &[Linear<R>; 9], zero: R) -> [Cubic<R>; 10] {
    // Λ = E Eᵀ − ½ tr(E Eᵀ) I.
    let mut lambda = [[[zero; 10]; 3]; 3];
    for i in 0..3 {
        for j in i..3 {
            let mut sum = [zero; 10];
            for k in 0..3 {
                add_quadratic(&mut sum, &e[3 * i + k], &e[3 * j + k]);
            }
            (lambda[i][j], lambda[j][i]) = (sum, sum);
        }
    }
    for m in 0..10 {
        let half = (lambda[0][0][m] + lambda[1][1][m] + lambda[2][2][m]) * 0.5;
        for i in 0..3 {
            lambda[i][i][m] = lambda[i][i][m] - half;
        }
    }
    let mut all = [[zero; 20]; 10];
    for i in 0..3 {
        for j in 0..3 {
            for k in 0..3 {
                add_cubic(&mut all[3 * i + j], &lambda[i][k], &e[3 * k + j]);
            }
        }
    }
    // The determinant, along the first row.
    for c in 0..3 {
        let (d, f) = ((c + 1) % 3, (c + 2) % 3);
        let mut minor = [zero; 10];
        add_quadratic(&mut minor, &e[3 + d], &e[6 + f]);
        add_quadratic(&mut minor, &each(e[3 + f], negative), &e[6 + d]);
        add_cubic(&mut all[9], &minor, &e[c]);
    }
    all
}

/// The last six rows of C₁⁻¹ C₂, where C₁ are the first ten columns and C₂ the others.
#[inline(always)]
fn reduced<R: Real>(c: &mut [Cubic<R>; 10], zero: R) -> [[R; 10]; 6] {
    for k in 0..10 {
        let mut square = c[k][k] * c[k][k];
        for r in k + 1..10 {
            square = square + c[r][k] * c[r][k];
        }
        let (norm, first) = (square.root(), c[k][k]);
        let scale = first.constant(1.0) / (norm * (norm + first.magnitude()));
        let mut mirror = [zero; 10];
        mirror[k] = first + norm.with_sign(first);
        for r in k + 1..10 {
            mirror[r] = c[r][k];
        }
        for j in k..20 {
            let mut along = mirror[k] * c[k][j];
            for r in k + 1..10 {
                along = along + mirror[r] * c[r][j];
            }
            let along = along * scale;
            for r in k..10 {
                c[r][j] = c[r][j] - along * mirror[r];
            }
        }
    }
    let mut rows = [[zero; 10]; 6];
    for r in (4..10).rev() {
        for j in 0..10 {
            let mut rest = c[r][10 + j];
            for k in r + 1..10 {
                rest = rest - c[r][k] * rows[k - 4][j];
            }
            rows[r - 4][j] = rest / c[r][r];
        }
    }
    rows
}

/// Adds the product of two polynomials of z, coefficients ascending.
#[inline(always)]
fn add_product<R: Real, const A: usize, const B: usize, const C: usize>(
    sum: &mut [R; C],
    a: &[R; A],
    b: &[R; B],
) {
    for i in 0..A {
        for j in 0..B {
            sum[i + j] = sum[i + j] + a[i] * b[j];
        }
    }
}

/// p q − r s, polynomials of z.
#[inline(always)]
fn minor<R: Real>(p: &[R; 4], q: &[R; 5], r: &[R; 5], s: &[R; 4], zero: R) -> [R; 8] {
    let mut sum = [zero; 8];
    add_product(&mut sum, p, q);
    add_product(&mut sum, &each(*r, negative), s);
    sum
}

/// An equation p(z) x + q(z) y + r(z) = 0: the difference of a row of the reduced system and z times the next.
#[derive(Clone, Copy)]
pub(super) struct Equation<R> {
    x: [R; 4],
    y: [R; 4],
    one: [R; 5],
}

impl<R: Real> Equation<R> {
    #[inline(always)]
    fn new(e: &[R; 10], f: &[R; 10]) -> Self {
        let part = |at: usize| [e[at + 2], e[at + 1] - f[at + 2], e[at] - f[at + 1], -f[at]];
        Self { x: part(0), y: part(3), one: [e[9], e[8] - f[9], e[7] - f[8], e[6] - f[7], -f[6]] }
    }

    #[inline(always)]
    fn at(&self, z: R) -> [R; 3] {
        let cubic = |c: &[R; 4]| ((c[3] * z + c[2]) * z + c[1]) * z + c[0];
        let one = &self.one;
        [cubic(&self.x), cubic(&self.y), (((one[4] * z + one[3]) * z + one[2]) * z + one[1]) * z + one[0]]
    }
}

/// Five matches reduced to the null space, three equations and the polynomial of z.
#[derive(Clone, Copy)]
pub(super) struct Reduced<R> {
    space: [[R; 9]; 4],
    equations: [Equation<R>; 3],
    polynomial: [R; 11],
}

impl<R: Real> Reduced<R> {
    /// From rays (x, y, 1) in A and in B.
    #[inline(always)]
    pub(super) fn new(a: &[[R; 2]; 5], b: &[[R; 2]; 5]) -> Self {
        let zero = a[0][0].constant(0.0);
        let mut rows = [[zero; 9]; 5];
        for i in 0..5 {
            rows[i] = epipolar_row(a[i], b[i], zero.constant(1.0));
        }
        let space: [[R; 9]; 4] = null_space(&mut rows);
        let mut e = [[zero; 4]; 9];
        for i in 0..9 {
            for k in 0..4 {
                e[i][k] = space[k][i];
            }
        }
        let rows = reduced(&mut constraints(&e, zero), zero);
        let k = Equation::new(&rows[0], &rows[1]);
        let l = Equation::new(&rows[2], &rows[3]);
        let m = Equation::new(&rows[4], &rows[5]);
        let mut last = [zero; 7];
        add_product(&mut last, &l.x, &m.y);
        add_product(&mut last, &each(l.y, negative), &m.x);
        let mut polynomial = [zero; 11];
        add_product(&mut polynomial, &k.x, &minor(&l.y, &m.one, &l.one, &m.y, zero));
        add_product(&mut polynomial, &each(k.y, negative), &minor(&l.x, &m.one, &l.one, &m.x, zero));
        add_product(&mut polynomial, &k.one, &last);
        Self { space, equations: [k, l, m], polynomial }
    }

    /// The values of the polynomial of z and of that of 1/z on the grid.
    #[inline(always)]
    pub(super) fn values(&self) -> [[R; CELLS + 1]; 2] {
        let mut reversed = self.polynomial;
        reversed.reverse();
        [on_grid(&self.polynomial), on_grid(&reversed)]
    }
}

/// Cells of the grid on \[−1, 1\], and steps that narrow a cell down to a root.
const CELLS: usize = 64;
const STEPS: usize = 8;

#[inline(always)]
fn horner<R: Real>(c: &[R; 11], z: R) -> R {
    let mut sum = c[10];
    for i in (0..10).rev() {
        sum = sum * z + c[i];
    }
    sum
}

#[inline(always)]
pub(super) fn on_grid<R: Real>(c: &[R; 11]) -> [R; CELLS + 1] {
    let mut values = [c[0]; CELLS + 1];
    for (i, value) in values.iter_mut().enumerate() {
        *value = horner(c, c[0].constant(i as f64 * (2.0 / CELLS as f64) - 1.0));
    }
    values
}

/// The root in a cell of different signs, by false position, weighted so that both ends move (Illinois: Dowell, Jarratt
/// 1971).
fn root_in(c: &[f64; 11], low: [f64; 2], high: [f64; 2]) -> f64 {
    let ([mut a, mut fa], [mut b, mut fb]) = (low, high);
    let mut kept_a = false;
    let mut kept_b = false;
    let mut z = a;
    for _ in 0..STEPS {
        z = (a * fb - b * fa) / (fb - fa);
        let f = horner(c, z);
        if (f > 0.0) == (fb > 0.0) {
            (b, fb) = (z, f);
            if kept_a {
                fa *= 0.5;
            }
            (kept_a, kept_b) = (true, false);
        } else {
            (a, fa) = (z, f);
            if kept_b {
                fb *= 0.5;
            }
            (kept_a, kept_b) = (false, true);
        }
    }
    z
}

impl Reduced<f64> {
    /// The essential matrices of the sample, of norm 1. `near` and `far` are the values of the polynomial and of that
    /// of 1/z on the grid.
    pub(super) fn solutions(
        &self,
        [near, far]: [[f64; CELLS + 1]; 2],
        a: &[[f64; 2]; 5],
        b: &[[f64; 2]; 5],
    ) -> Vec<Mat3> {
        let mut found = Vec::new();
        let reversed: [f64; 11] = std::array::from_fn(|i| self.polynomial[10 - i]);
        for (values, polynomial, is_far) in [(near, &self.polynomial, false), (far, &reversed, true)] {
            for i in 0..CELLS {
                if (values[i] > 0.0) == (values[i + 1] > 0.0) {
                    continue;
                }
                let at = |i: usize| [i as f64 * (2.0 / CELLS as f64) - 1.0, values[i]];
                let root = root_in(polynomial, at(i), at(i + 1));
                let z = if is_far { 1.0 / root } else { root };
                found.extend(self.essential(z).filter(|e| oriented(e, a, b)).map(of_flat));
            }
        }
        found
    }

    /// The essential matrix of a root. x and y follow from the two equations that determine them best.
    fn essential(&self, z: f64) -> Option<[f64; 9]> {
        let [k, l, m] = self.equations.map(|equation| equation.at(z));
        let mut best = [0.0_f64; 3];
        for (p, q) in [(k, l), (k, m), (l, m)] {
            let found = cross(p, q);
            if found[2].abs() > best[2].abs() {
                best = found;
            }
        }
        let (x, y) = (best[0] / best[2], best[1] / best[2]);
        let [p, q, r, s] = &self.space;
        let e: [f64; 9] = std::array::from_fn(|i| x * p[i] + y * q[i] + z * r[i] + s[i]);
        let square = (1..9).fold(e[0] * e[0], |sum, i| sum + e[i] * e[i]);
        let norm = square.sqrt();
        // Written so that NaN gives `None`.
        (norm > 0.0 && norm < 1e12).then(|| e.map(|v| v / norm)).filter(is_essential)
    }
}

/// The largest element of 2 E Eᵀ E − tr(E Eᵀ) E, with E of norm 1, that rounding can cause.
const ROUNDING: f64 = 1e-6;

/// Whether the two greater singular values are equal; roots of a nearly degenerate sample may give other matrices.
fn is_essential(e: &[f64; 9]) -> bool {
    let rows = of_flat(*e);
    let square = product(&rows, &transpose(&rows));
    let cube = product(&square, &rows);
    let trace = square[0][0] + square[1][1] + square[2][2];
    (0..9).all(|i| (2.0 * cube[i / 3][i % 3] - trace * e[i]).abs() <= ROUNDING)
}

impl<S: fearless_simd::Simd> Reduced<fearless_simd::f64x8<S>> {
    /// Sample `i` of eight side by side.
    pub(super) fn lane(&self, i: usize) -> Reduced<f64> {
        Reduced {
            space: self.space.map(|v| v.map(|x| x[i])),
            equations: self.equations.map(|e| Equation {
                x: e.x.map(|v| v[i]),
                y: e.y.map(|v| v[i]),
                one: e.one.map(|v| v[i]),
            }),
            polynomial: self.polynomial.map(|v| v[i]),
        }
    }
}

#[cfg(test)]
fn five_point(a: &[[f64; 2]; 5], b: &[[f64; 2]; 5]) -> Vec<Mat3> {
    let reduced = Reduced::new(a, b);
    reduced.solutions(reduced.values(), a, b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::matrix::{cayley, skew, times, unit};
    use crate::numeric::Random;

    /// The essential matrix of two random cameras, and their rays to five points in front of both.
    fn scene(random: &mut Random) -> (Mat3, [[f64; 2]; 5], [[f64; 2]; 5]) {
        let mut any = |far: f64| -> [f64; 3] { std::array::from_fn(|_| random.range(-far, far)) };
        let (rotation, step) = (cayley(any(0.4)), any(1.0));
        let mut a = [[0.0; 2]; 5];
        let mut b = [[0.0; 2]; 5];
        for i in 0..5 {
            let place = [random.range(-2.0, 2.0), random.range(-2.0, 2.0), random.range(4.0, 9.0)];
            let seen: [f64; 3] =
                std::array::from_fn(|r| (0..3).map(|c| rotation[r][c] * place[c]).sum::<f64>() + step[r]);
            a[i] = [place[0] / place[2], place[1] / place[2]];
            b[i] = [seen[0] / seen[2], seen[1] / seen[2]];
        }
        (unit(&product(&skew(step), &rotation)).unwrap(), a, b)
    }

    #[test]
    fn the_true_matrix_is_nearly_always_among_the_solutions() {
        let mut random = Random::new(11);
        let (mut hits, mut all) = (0, 0);
        for _ in 0..500 {
            let (truth, a, b) = scene(&mut random);
            let found = five_point(&a, &b);
            all += found.len();
            let off = |e: &Mat3, sign: f64| -> f64 {
                (0..9).map(|i| (e[i / 3][i % 3] - sign * truth[i / 3][i % 3]).abs()).fold(0.0, f64::max)
            };
            hits += usize::from(found.iter().any(|e| off(e, 1.0).min(off(e, -1.0)) < 1e-6));
        }
        assert!(hits >= 460, "{hits} of 500 samples");
        assert!(all < 500 * 5, "{all} solutions of 500 samples");
    }

    #[test]
    fn solutions_are_essential_and_meet_the_matches() {
        let mut random = Random::new(5);
        for _ in 0..100 {
            let (_, a, b) = scene(&mut random);
            for e in five_point(&a, &b) {
                // Singular values s, s, 0 of norm 1: E Eᵀ has the characteristic polynomial λ (λ − ½)².
                let square = product(&e, &transpose(&e));
                let trace = square[0][0] + square[1][1] + square[2][2];
                let minors = 0.5 * (trace * trace - square.iter().flatten().map(|v| v * v).sum::<f64>());
                assert!((trace - 1.0).abs() < 1e-12 && (minors - 0.25).abs() < 1e-5, "essential: {e:?}");
                for (p, q) in a.iter().zip(&b) {
                    let line = times(&e, [p[0], p[1], 1.0]);
                    assert!((q[0] * line[0] + q[1] * line[1] + line[2]).abs() < 1e-9, "meets");
                }
            }
        }
    }
}
