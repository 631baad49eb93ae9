//! The rotations that rectify two cameras, by square roots alone.

use crate::geometry::matrix::{Mat3, cross, direction, dot, product, times, transpose};

/// A unit quaternion (w, x, y, z) of a rotation matrix, w ≥ 0 (Shepperd 1978).
fn quaternion(m: &Mat3) -> [f64; 4] {
    let trace = m[0][0] + m[1][1] + m[2][2];
    let squares = [trace, m[0][0], m[1][1], m[2][2]];
    let largest = (0..4).fold(0, |best, i| if squares[i] > squares[best] { i } else { best });
    let [a, b, c] = [m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1]];
    let [d, e, f] = [m[1][0] + m[0][1], m[0][2] + m[2][0], m[2][1] + m[1][2]];
    let q = match largest {
        0 => [1.0 + trace, a, b, c],
        1 => [a, 1.0 + 2.0 * m[0][0] - trace, d, e],
        2 => [b, d, 1.0 + 2.0 * m[1][1] - trace, f],
        _ => [c, e, f, 1.0 + 2.0 * m[2][2] - trace],
    };
    direction(if q[0] < 0.0 { q.map(|v| -v) } else { q })
}

fn rotation([w, x, y, z]: [f64; 4]) -> Mat3 {
    [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
    ]
}

/// Removes rounding errors from a rotation matrix.
pub(super) fn without_rounding(m: &Mat3) -> Mat3 {
    rotation(quaternion(m))
}

/// The least rotation that turns the unit vector `from` into `to`; `None` when they are opposite.
fn least_turn(from: [f64; 3], to: [f64; 3]) -> Option<Mat3> {
    let [x, y, z] = cross(from, to);
    // (1 + cos, sin · axis) is twice the half angle's quaternion.
    let w = 1.0 + dot(from, to);
    (w > 1e-9).then(|| rotation(direction([w, x, y, z])))
}

/// The rotations from the left and the right camera to the rectified pair; `None` when the right camera
/// stands on the left.
pub(super) fn rectifying(r: &Mat3, t: [f64; 3]) -> Option<[Mat3; 2]> {
    let [w, x, y, z] = quaternion(r);
    let half = rotation(direction([w + 1.0, x, y, z]));
    let back = transpose(&half);
    // The left camera turns by half of R, the right one back by half: the new frames differ only by a translation.
    let between = direction(times(&back, t));
    if between[0] > 0.0 {
        return None;
    }
    let along = least_turn(between, [-1.0, 0.0, 0.0])?;
    let rotations = [product(&along, &half), product(&along, &back)];
    // Both are turned about x until the sum of their optical axes looks straight ahead.
    let [_, y, z] = [0, 1, 2].map(|i| rotations[0][i][2] + rotations[1][i][2]);
    let length = (y * y + z * z).sqrt();
    if length < 1e-9 {
        return Some(rotations);
    }
    let (s, c) = (y / length, z / length);
    let pitch = [[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]];
    Some(rotations.map(|r| product(&pitch, &r)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn far(a: &Mat3, b: &Mat3) -> f64 {
        (0..9).map(|i| (a[i / 3][i % 3] - b[i / 3][i % 3]).abs()).fold(0.0, f64::max)
    }

    proptest! {
        #[test]
        fn quaternions_come_back(q in proptest::array::uniform4(-1.0_f64..1.0)) {
            prop_assume!(q.iter().map(|v| v * v).sum::<f64>() > 1e-3);
            let m = rotation(direction(q));
            prop_assert!(far(&m, &rotation(quaternion(&m))) < 1e-12, "{:?}", m);
        }

        #[test]
        fn rectified_cameras_stand_side_by_side(
            q in proptest::array::uniform3(-0.3_f64..0.3), y in -2.0_f64..2.0, z in -2.0_f64..2.0,
        ) {
            let r = rotation(direction([1.0, q[0], q[1], q[2]]));
            let t = [-3.0, y, z];
            let Some([a, b]) = rectifying(&r, t) else { return Ok(()) };
            let identity = product(&a, &transpose(&a));
            prop_assert!(far(&identity, &[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]) < 1e-12, "a rotation");
            // X_right = R X + T, so b R aᵀ must be the identity and b T lie along −x.
            prop_assert!(far(&product(&b, &product(&r, &transpose(&a))), &identity) < 1e-12, "parallel");
            let along = times(&b, t);
            prop_assert!(along[0] < 0.0 && along[1].abs() < 1e-12 && along[2].abs() < 1e-12, "{:?}", along);
            prop_assert!((a[1][2] + b[1][2]).abs() < 1e-12, "the mean axis looks straight ahead");
        }
    }
}
