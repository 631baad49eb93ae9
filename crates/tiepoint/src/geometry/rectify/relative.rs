//! Two cameras from tie points: rotation, direction of the baseline, and focal lengths.
//!
//! Places are taken relative to the middle of their picture and in units of the larger side s. Then F =
//! diag(1/f₂, 1/f₂, 1) \[t\]× R diag(1/f₁, 1/f₁, 1), f₂ = ratio · f₁: seven degrees of freedom, as many as a
//! fundamental matrix has. The error of a tie point is its Sampson distance r in pixels (Hartley, Zisserman
//! 2004, equation 11.9), and what is minimised, by Levenberg–Marquardt on reweighted squares, is Σ r²/(1 +
//! r²) (Geman and McClure 1987) + (ln f₁ − ln f̂)² · a + (ln ratio − ln ρ̂)² · b. The last two terms fix what the
//! points do not determine: focal lengths have little effect when the cameras look in the same direction.

use super::half::without_rounding;
use crate::geometry::linear::{eigen, solve};
use crate::geometry::matrix::{
    Mat3, adjugate, cayley, cross, direction, dot, is_finite, product, skew, times, transpose,
};
use crate::numeric::{exp_f64, length, median};

/// Tie points, relative and in units of s, as (a, b).
pub(super) type Ties = [([f64; 3], [f64; 3])];

const PARAMETERS: usize = 7;

/// How strongly the focal length and the ratio are held: being off by a factor e^½, or by 5 %, costs 0.25.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prior {
    pub(super) log_focal: f64,
    pub(super) focal_weight: f64,
    pub(super) log_ratio: f64,
    pub(super) ratio_weight: f64,
}

impl Prior {
    pub(super) const FOCAL_WEIGHT: f64 = 1.0;
    pub(super) const RATIO_WEIGHT: f64 = 100.0;
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Relative {
    pub(super) rotation: Mat3,
    /// Of length 1.
    pub(super) direction: [f64; 3],
    pub(super) log_focal: f64,
    pub(super) log_ratio: f64,
}

impl Relative {
    pub(super) fn focals(&self) -> [f64; 2] {
        [exp_f64(self.log_focal), exp_f64(self.log_focal + self.log_ratio)]
    }

    fn fundamental(&self) -> Mat3 {
        let [f, g] = self.focals();
        let e = product(&skew(self.direction), &self.rotation);
        let (left, right) = ([1.0 / g, 1.0 / g, 1.0], [1.0 / f, 1.0 / f, 1.0]);
        std::array::from_fn(|i| std::array::from_fn(|j| left[i] * e[i][j] * right[j]))
    }

    /// The median distance, in focal lengths, between a point in B and where it would be if the camera had only turned.
    /// For cameras side by side the depth is the baseline divided by this.
    pub(super) fn parallax(&self, ties: &Ties) -> f64 {
        let [f, g] = self.focals();
        let distance = |(a, b): &([f64; 3], [f64; 3])| {
            let [x, y, z] = times(&self.rotation, [a[0] / f, a[1] / f, 1.0]);
            length([x / z - b[0] / g, y / z - b[1] / g])
        };
        median(ties.iter().map(distance).filter(|distance| distance.is_finite())).unwrap_or(0.0)
    }

    /// The state after a step: the rotation by Cayley's map, the direction along its tangents.
    fn moved(&self, d: &[f64; PARAMETERS]) -> Self {
        let [p, q] = tangents(self.direction);
        let turned: [f64; 3] = std::array::from_fn(|i| self.direction[i] + d[3] * p[i] + d[4] * q[i]);
        Self {
            rotation: without_rounding(&product(&cayley([d[0], d[1], d[2]]), &self.rotation)),
            direction: direction(turned),
            log_focal: self.log_focal + d[5].clamp(-1.0, 1.0),
            log_ratio: self.log_ratio + d[6].clamp(-1.0, 1.0),
        }
    }

    /// Four pairs of cameras fit `essential`; this is the pair with most points in front of both.
    pub(super) fn from_essential(essential: &Mat3, ties: &Ties, log_focal: f64) -> Option<Self> {
        let square = product(essential, &transpose(essential));
        // b bᵀ = ½ tr(E Eᵀ) I − E Eᵀ (Horn 1990); b is the left null vector.
        let norm = 0.5 * (square[0][0] + square[1][1] + square[2][2]);
        let (_, vectors) = eigen(square);
        let b = vectors[0].map(|v| v * norm.sqrt());
        let cofactors = transpose(&adjugate(essential));
        let mut best: Option<(usize, Self)> = None;
        for sign in [1.0, -1.0] {
            let turned = product(&skew(b), essential);
            let r: Mat3 = std::array::from_fn(|i| {
                std::array::from_fn(|j| (cofactors[i][j] - sign * turned[i][j]) / norm)
            });
            if !is_finite(&r) {
                return None;
            }
            let rotation = orthonormal(&r)?;
            for direction in [vectors[0], vectors[0].map(|v| -v)] {
                let state = Self { rotation, direction, log_focal, log_ratio: 0.0 };
                let count = state.in_front(ties);
                if best.as_ref().is_none_or(|(c, _)| count > *c) {
                    best = Some((count, state));
                }
            }
        }
        best.filter(|(count, _)| 2 * count > ties.len()).map(|(_, state)| state)
    }

    pub(super) fn in_front(&self, ties: &Ties) -> usize {
        let [f, g] = self.focals();
        let front = |&(a, b): &([f64; 3], [f64; 3])| {
            let ray = times(&self.rotation, [a[0] / f, a[1] / f, 1.0]);
            let other = [b[0] / g, b[1] / g, 1.0];
            // z₂ b = z₁ R a + t, crossed with one ray and the other.
            let between = cross(other, ray);
            let z1 = -dot(cross(other, self.direction), between);
            let z2 = -dot(cross(ray, self.direction), between);
            z1 > 0.0 && z2 > 0.0
        };
        ties.iter().filter(|t| front(t)).count()
    }

    /// The sum that is minimised. `scale` is s.
    pub(super) fn cost(&self, ties: &Ties, scale: f64, prior: &Prior) -> f64 {
        let f = self.fundamental();
        let one = |&(a, b): &([f64; 3], [f64; 3])| {
            let r = scale * Sampson::new(&f, a, b).distance();
            r * r / (1.0 + r * r)
        };
        let off = [self.log_focal - prior.log_focal, self.log_ratio - prior.log_ratio];
        ties.iter().map(one).sum::<f64>()
            + prior.focal_weight * off[0] * off[0]
            + prior.ratio_weight * off[1] * off[1]
    }

    /// Root mean square of the Sampson distances, pixels.
    pub(super) fn rms(&self, ties: &Ties, scale: f64) -> f64 {
        let f = self.fundamental();
        let distances = ties.iter().map(|&(a, b)| Sampson::new(&f, a, b).distance());
        let sum: f64 = distances.map(|d| d * d).sum();
        scale * (sum / ties.len().max(1) as f64).sqrt()
    }

    /// The state of least cost that the search reaches from here.
    pub(super) fn refined(self, ties: &Ties, scale: f64, prior: &Prior) -> Self {
        let (mut state, mut cost) = (self, self.cost(ties, scale, prior));
        let mut damping = 1e-3;
        for _ in 0..60 {
            let (matrix, gradient) = state.normal_equations(ties, scale, prior);
            let mut gained = None;
            while damping < 1e9 && gained.is_none() {
                let mut damped = matrix;
                (0..PARAMETERS).for_each(|i| damped[i][i] += damping * (matrix[i][i] + 1e-9));
                let mut down = gradient.map(|g| -g);
                let next = solve(&mut damped, &mut down).map(|step| state.moved(&step));
                let next = next.map(|s| (s, s.cost(ties, scale, prior))).filter(|(_, c)| *c < cost);
                gained = next.map(|(s, c)| {
                    let gain = cost - c;
                    (state, cost) = (s, c);
                    gain
                });
                damping = if gained.is_some() { (damping * 0.1).max(1e-12) } else { damping * 10.0 };
            }
            if gained.is_none_or(|g| g <= 1e-10 * cost) {
                break;
            }
        }
        state
    }

    fn normal_equations(
        &self,
        ties: &Ties,
        scale: f64,
        prior: &Prior,
    ) -> ([[f64; PARAMETERS]; PARAMETERS], [f64; PARAMETERS]) {
        let f = self.fundamental();
        let slopes = self.slopes();
        let mut matrix = [[0.0; PARAMETERS]; PARAMETERS];
        let mut gradient = [0.0; PARAMETERS];
        for &(a, b) in ties {
            let sampson = Sampson::new(&f, a, b);
            let r = scale * sampson.distance();
            let weight = 1.0 / ((1.0 + r * r) * (1.0 + r * r));
            let j = slopes.map(|s| scale * sampson.slope(&s, a, b));
            for p in 0..PARAMETERS {
                gradient[p] += weight * r * j[p];
                for q in 0..PARAMETERS {
                    matrix[p][q] += weight * j[p] * j[q];
                }
            }
        }
        matrix[5][5] += prior.focal_weight;
        gradient[5] += prior.focal_weight * (self.log_focal - prior.log_focal);
        matrix[6][6] += prior.ratio_weight;
        gradient[6] += prior.ratio_weight * (self.log_ratio - prior.log_ratio);
        (matrix, gradient)
    }

    /// ∂F by every parameter, by central differences.
    fn slopes(&self) -> [Mat3; PARAMETERS] {
        const H: f64 = 1e-6;
        std::array::from_fn(|k| {
            let at = |h: f64| {
                let mut step = [0.0; PARAMETERS];
                step[k] = h;
                self.moved(&step).fundamental()
            };
            let (up, down) = (at(H), at(-H));
            std::array::from_fn(|i| std::array::from_fn(|j| (up[i][j] - down[i][j]) / (2.0 * H)))
        })
    }
}

/// bᵀ F a and the length of its gradient.
struct Sampson {
    error: f64,
    line_b: [f64; 3],
    line_a: [f64; 3],
    norm: f64,
}

impl Sampson {
    fn new(f: &Mat3, a: [f64; 3], b: [f64; 3]) -> Self {
        let (line_b, line_a) = (times(f, a), times(&transpose(f), b));
        let square =
            line_b[0] * line_b[0] + line_b[1] * line_b[1] + line_a[0] * line_a[0] + line_a[1] * line_a[1];
        Self { error: dot(b, line_b), line_b, line_a, norm: square.sqrt().max(1e-150) }
    }

    fn distance(&self) -> f64 {
        self.error / self.norm
    }

    /// Its derivative when F changes by `slope`.
    fn slope(&self, slope: &Mat3, a: [f64; 3], b: [f64; 3]) -> f64 {
        let (db, da) = (times(slope, a), times(&transpose(slope), b));
        let norm = (self.line_b[0] * db[0]
            + self.line_b[1] * db[1]
            + self.line_a[0] * da[0]
            + self.line_a[1] * da[1])
            / self.norm;
        (dot(b, db) - self.distance() * norm) / self.norm
    }
}

/// Two unit vectors that are orthogonal to `v` and to each other.
fn tangents(v: [f64; 3]) -> [[f64; 3]; 2] {
    let least = (0..3).fold(0, |best, i| if v[i].abs() < v[best].abs() { i } else { best });
    let mut axis = [0.0; 3];
    axis[least] = 1.0;
    let p = direction(cross(v, axis));
    [p, cross(v, p)]
}

/// Rows made orthonormal, the first kept; `None` when they are far from those of a rotation.
fn orthonormal(m: &Mat3) -> Option<Mat3> {
    let row = |v: [f64; 3]| (dot(v, v).sqrt() > 1e-6).then(|| direction(v));
    let x = row(m[0])?;
    let along = dot(m[1], x);
    let y = row(std::array::from_fn(|i| m[1][i] - along * x[i]))?;
    Some([x, y, cross(x, y)])
}
