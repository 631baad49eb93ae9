//! Points under a homography given as nine numbers, row by row.

/// The third coordinate of the mapped point, by which the other two are divided.
pub(crate) fn denominator(h: &[f64; 9], [x, y]: [f64; 2]) -> f64 {
    h[6] * x + h[7] * y + h[8]
}

/// Where a point goes. Not finite when it goes to infinity.
pub(crate) fn apply(h: &[f64; 9], [x, y]: [f64; 2]) -> [f64; 2] {
    let w = denominator(h, [x, y]);
    [(h[0] * x + h[1] * y + h[2]) / w, (h[3] * x + h[4] * y + h[5]) / w]
}

/// The derivatives \[∂x'/∂x, ∂x'/∂y, ∂y'/∂x, ∂y'/∂y\] at a point.
pub(crate) fn jacobian(h: &[f64; 9], p: [f64; 2]) -> [f64; 4] {
    let w = denominator(h, p);
    let [x, y] = apply(h, p);
    [(h[0] - x * h[6]) / w, (h[1] - x * h[7]) / w, (h[3] - y * h[6]) / w, (h[4] - y * h[7]) / w]
}

/// The inverse, scaled to a last element of 1 where that is possible; `None` for a singular matrix.
pub(crate) fn inverse(h: &[f64; 9]) -> Option<[f64; 9]> {
    let minor = |a: usize, b: usize, c: usize, d: usize| h[a] * h[d] - h[b] * h[c];
    let adjugate = [
        minor(4, 5, 7, 8),
        minor(2, 1, 8, 7),
        minor(1, 2, 4, 5),
        minor(5, 3, 8, 6),
        minor(0, 2, 6, 8),
        minor(2, 0, 5, 3),
        minor(3, 4, 6, 7),
        minor(1, 0, 7, 6),
        minor(0, 1, 3, 4),
    ];
    let determinant = h[0] * adjugate[0] + h[1] * adjugate[3] + h[2] * adjugate[6];
    let size = h.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    let sound = determinant.is_finite() && determinant.abs() > 1e-18 * size * size * size;
    let by = if adjugate[8] == 0.0 { determinant } else { adjugate[8] };
    sound.then(|| adjugate.map(|v| v / by)).filter(|m| m.iter().all(|v| v.is_finite()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let h = [1.1, 0.2, 30.0, -0.1, 0.9, 12.0, 1e-4, -2e-4, 1.0];
        let back = inverse(&h).unwrap();
        let [x, y] = apply(&back, apply(&h, [123.0, 45.0]));
        assert!((x - 123.0).abs() < 1e-9 && (y - 45.0).abs() < 1e-9, "({x}, {y})");
        assert!(inverse(&[1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 0.0, 0.0, 1.0]).is_none(), "singular");
    }

    #[test]
    fn derivatives() {
        let h = [1.1, 0.2, 30.0, -0.1, 0.9, 12.0, 1e-3, -2e-3, 1.0];
        let (p, e) = ([20.0, 35.0], 1e-6);
        let j = jacobian(&h, p);
        for (i, step) in [[e, 0.0], [0.0, e]].into_iter().enumerate() {
            let (a, b) = (apply(&h, p), apply(&h, [p[0] + step[0], p[1] + step[1]]));
            for k in 0..2 {
                assert!((j[2 * k + i] - (b[k] - a[k]) / e).abs() < 1e-5, "derivative {k} by {i}");
            }
        }
    }
}
