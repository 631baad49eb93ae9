//! 3×3 matrices, row-major.

pub(super) type Mat3 = [[f64; 3]; 3];

pub(super) const IDENTITY: Mat3 = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

pub(super) fn product(a: &Mat3, b: &Mat3) -> Mat3 {
    std::array::from_fn(|i| {
        std::array::from_fn(|j| a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j])
    })
}

pub(super) fn transpose(m: &Mat3) -> Mat3 {
    std::array::from_fn(|i| std::array::from_fn(|j| m[j][i]))
}

pub(super) fn times(m: &Mat3, v: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|i| m[i][0] * v[0] + m[i][1] * v[1] + m[i][2] * v[2])
}

pub(crate) fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(super) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// The vector of length 1 in the direction of `v`.
pub(crate) fn direction<const N: usize>(v: [f64; N]) -> [f64; N] {
    let length = v.iter().map(|x| x * x).sum::<f64>().sqrt();
    v.map(|x| x / length)
}

/// [v]× with [v]× w = v × w.
pub(super) fn skew([x, y, z]: [f64; 3]) -> Mat3 {
    [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]
}

/// The rotation about `a` by 2 atan(|a| / 2).
pub(super) fn cayley(a: [f64; 3]) -> Mat3 {
    let v = a.map(|x| 0.5 * x);
    let (s, by) = (skew(v), 2.0 / (1.0 + dot(v, v)));
    let squared = product(&s, &s);
    std::array::from_fn(|i| {
        std::array::from_fn(|j| f64::from(u8::from(i == j)) + by * (s[i][j] + squared[i][j]))
    })
}

/// The transposed cofactors: m⁻¹ · det m.
pub(super) fn adjugate(m: &Mat3) -> Mat3 {
    transpose(&[cross(m[1], m[2]), cross(m[2], m[0]), cross(m[0], m[1])])
}

pub(super) fn determinant(m: &Mat3) -> f64 {
    dot(m[0], cross(m[1], m[2]))
}

/// The inverse, or `None` when the matrix is singular to working precision or not finite.
pub(super) fn inverse(m: &Mat3) -> Option<Mat3> {
    let det = determinant(m);
    // Hadamard: |det| is at most the product of the rows' lengths; far below it the matrix is singular.
    let bound = m.iter().map(|r| dot(*r, *r).sqrt()).product::<f64>();
    let regular = det.abs() > bound * 1e-14 && bound.is_finite();
    regular.then(|| adjugate(m).map(|r| r.map(|v| v / det)))
}

/// Row by row.
pub(crate) fn flat(m: &Mat3) -> [f64; 9] {
    let [[a, b, c], [d, e, f], [g, h, i]] = *m;
    [a, b, c, d, e, f, g, h, i]
}

/// The matrix of these rows.
pub(super) fn of_flat([a, b, c, d, e, f, g, h, i]: [f64; 9]) -> Mat3 {
    [[a, b, c], [d, e, f], [g, h, i]]
}

pub(super) fn is_finite(m: &Mat3) -> bool {
    m.iter().flatten().all(|v| v.is_finite())
}

/// The matrix divided by its Frobenius norm.
pub(super) fn unit(m: &Mat3) -> Option<Mat3> {
    let norm = m.iter().flatten().map(|v| v * v).sum::<f64>().sqrt();
    (norm > 0.0 && norm.is_finite()).then(|| m.map(|r| r.map(|v| v / norm)))
}

/// Three rows of three numbers, each in the shortest form that reads back to the same bits.
pub(super) fn fmt(m: &Mat3, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    let [a, b, c] = m.map(|[x, y, z]| format!("{x:>22} {y:>22} {z:>22}"));
    write!(f, "{a}\n{b}\n{c}")
}
