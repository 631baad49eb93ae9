//! Repeatability: the share of keypoints that are found again in the other image.
//!
//! After Mikolajczyk et al., "A comparison of affine region detectors", 2005: only keypoints in the part that both
//! images show count, and each may correspond once; keypoints that differ only in their direction are one. Here two
//! keypoints correspond if each is the other's nearest and their distance is within a limit; with `scale_ratio`, only
//! keypoints of similar scale are compared.

use crate::feature::Keypoint;
use crate::geometry::Homography;
use crate::image::Size;
use crate::numeric::length;
use crate::options::{AboveTo, OrInfinite, options};
use crate::{Error, Result};
use std::collections::{HashMap, HashSet};

options! {
    /// When two keypoints correspond.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct RepeatabilityOptions {
        /// Largest distance in pixels of B; 1, 2 and 3 are usual.
        distance / with_distance: f64 = 3.0 => AboveTo(0.0, 1000.0), unit "PX";
        /// Largest ratio of the scales, either way; if infinite, scales are not compared.
        ///
        /// A's scale is carried to B by the square root of the truth's change of area. √2 is half an octave and about
        /// the overlap of 0.6 that the curves of Mikolajczyk et al. are drawn for.
        scale_ratio / with_scale_ratio: f64 = f64::INFINITY => OrInfinite(1.0..);
    }
}

/// How many keypoints are found again.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Repeatability {
    /// Keypoints of A that lie in B, those of several directions once.
    pub a: usize,
    /// Keypoints of B that lie in A, those of several directions once.
    pub b: usize,
    /// Pairs that correspond.
    pub pairs: usize,
    /// pairs / min(a, b), or 0 when either is empty.
    pub share: f64,
}

#[derive(Clone, Copy)]
struct Seen {
    at: [f64; 2],
    scale: f64,
}

/// Repeatability of keypoints `a` in an image of `sizes[0]` and `b` in one of `sizes[1]`, given the true map
/// between the images.
///
/// # Errors
/// As [`RepeatabilityOptions::check`]; [`Error::Degenerate`] for a truth that has no inverse.
pub fn repeatability(
    a: &[Keypoint],
    b: &[Keypoint],
    sizes: [Size; 2],
    b_from_a: &Homography,
    options: &RepeatabilityOptions,
) -> Result<Repeatability> {
    options.check()?;
    let singular = Error::Degenerate { model: "homography", reason: "the true map has no inverse" };
    let a_from_b = b_from_a.inverse().ok_or(singular)?;
    let a = distinct(a.iter().filter_map(|k| carried(k, b_from_a, sizes[1])));
    let shown = b.iter().filter(|k| carried(k, &a_from_b, sizes[0]).is_some());
    let b = distinct(shown.map(|k| Seen { at: [k.x, k.y].map(f64::from), scale: f64::from(k.scale) }));
    let (to_b, to_a) = (nearest(&a, &b, options), nearest(&b, &a, options));
    let mutual = |&(i, j): &(usize, &Option<usize>)| j.is_some_and(|j| to_a[j] == Some(i));
    let pairs = to_b.iter().enumerate().filter(mutual).count();
    let fewer = a.len().min(b.len());
    let share = if fewer == 0 { 0.0 } else { pairs as f64 / fewer as f64 };
    Ok(Repeatability { a: a.len(), b: b.len(), pairs, share })
}

/// The first keypoint of those with the same place and scale.
fn distinct(all: impl Iterator<Item = Seen>) -> Vec<Seen> {
    let mut met = HashSet::new();
    all.filter(|k| met.insert([k.at[0], k.at[1], k.scale].map(f64::to_bits))).collect()
}

/// The keypoint transformed by the map, if it then lies in an image of this size.
fn carried(k: &Keypoint, map: &Homography, size: Size) -> Option<Seen> {
    let p = [f64::from(k.x), f64::from(k.y)];
    let at = map.apply(p)?;
    let inside = |v: f64, n: usize| v >= -0.5 && v < n as f64 - 0.5;
    let j = map.derivative(p);
    let grown = (j[0] * j[3] - j[1] * j[2]).abs().sqrt();
    (inside(at[0], size.width) && inside(at[1], size.height))
        .then(|| Seen { at, scale: f64::from(k.scale) * grown })
}

/// For every point of `from`, the nearest of `to` that may correspond; the first of equal ones.
fn nearest(from: &[Seen], to: &[Seen], options: &RepeatabilityOptions) -> Vec<Option<usize>> {
    let cell = |p: [f64; 2]| p.map(|v| (v / options.distance).floor() as i64);
    let mut cells = HashMap::<[i64; 2], Vec<usize>>::new();
    for (i, point) in to.iter().enumerate() {
        cells.entry(cell(point.at)).or_default().push(i);
    }
    let like = |p: &Seen, q: &Seen| {
        let ratio = p.scale / q.scale;
        !options.scale_ratio.is_finite() || ratio.max(1.0 / ratio) <= options.scale_ratio
    };
    let find = |p: &Seen| {
        let [x, y] = cell(p.at);
        let around = (-1..=1).flat_map(|j| (-1..=1).map(move |i| [x + i, y + j]));
        let candidates = around.filter_map(|c| cells.get(&c)).flatten().copied();
        candidates
            .filter(|&i| like(p, &to[i]))
            .map(|i| (length([p.at[0] - to[i].at[0], p.at[1] - to[i].at[1]]), i))
            .filter(|&(d, _)| d <= options.distance)
            .min_by(|p, q| p.0.total_cmp(&q.0).then(p.1.cmp(&q.1)))
            .map(|(_, i)| i)
    };
    from.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keypoint(x: f32, y: f32, scale: f32) -> Keypoint {
        Keypoint { x, y, scale, ..Keypoint::default() }
    }

    #[test]
    fn known_shares() {
        let double = Homography::new([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]]).unwrap();
        let sizes = [Size::new(100, 100); 2];
        let a = [(10.0, 10.0), (20.0, 20.0), (30.0, 30.0), (80.0, 80.0)].map(|(x, y)| keypoint(x, y, 2.0));
        let b = [keypoint(20.5, 20.0, 4.0), keypoint(40.0, 42.5, 4.0), keypoint(60.0, 60.0, 9.0)];
        let share = |distance, scale_ratio| {
            let options = RepeatabilityOptions { distance, scale_ratio };
            repeatability(&a, &b, sizes, &double, &options).unwrap()
        };
        let all = share(3.0, f64::INFINITY);
        assert_eq!((all.a, all.b, all.pairs), (3, 3, 3), "the fourth leaves the image");
        assert_eq!(share(1.0, f64::INFINITY).pairs, 2, "one is 2.5 px away");
        assert_eq!(share(3.0, 1.5).pairs, 2, "one has another scale");
        assert!((all.share - 1.0).abs() < 1e-12, "all");
    }

    #[test]
    fn each_counts_once() {
        let found = |a: &[Keypoint], b: &[Keypoint]| {
            let sizes = [Size::new(100, 100); 2];
            repeatability(a, b, sizes, &Homography::default(), &Default::default()).unwrap()
        };
        let a = vec![keypoint(50.0, 50.0, 2.0); 5];
        let b = [keypoint(50.2, 50.0, 2.0), keypoint(90.0, 90.0, 2.0)];
        let once = found(&a, &b);
        assert_eq!((once.a, once.pairs), (1, 1), "five keypoints in one place are one");
        let turned: Vec<Keypoint> = (0..9).map(|i| Keypoint { angle: i as f32, ..b[i % 2] }).collect();
        let itself = found(&turned, &turned);
        assert_eq!((itself.a, itself.b, itself.share), (2, 2, 1.0), "a picture repeats itself");
        assert_eq!(found(&a, &[]).share, 0.0, "nothing to find");
    }
}
