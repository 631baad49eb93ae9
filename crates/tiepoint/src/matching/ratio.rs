//! The filters of distance and ratio.
//!
//! A match is kept when its distance is at most `max_distance`, and below `ratio` times the distance of the second
//! nearest (Lowe 2004, section 7.1). The second neighbour counts even where it lies close to the nearest in the image.
//! `gpu/rule.h` is the same for kernels.

use super::{Match, MatchOptions, Nearest};

/// The features whose nearest neighbour passes the filters of distance and ratio, with that neighbour.
pub(super) fn accepted(features: &[u32], nearest: &[Option<Nearest>], options: &MatchOptions) -> Vec<Match> {
    let passes = |n: &Nearest| {
        options.max_distance.is_none_or(|d| n.distance <= d)
            && options.ratio.is_none_or(|r| n.distance < r * n.second)
    };
    let nearest = features.iter().zip(nearest).filter_map(|(a, n)| Some((*a, (*n)?)));
    let kept = nearest.filter(|(_, n)| passes(n));
    kept.map(|(a, n)| Match { a, b: n.index, distance: n.distance, ratio: ratio(&n) }).collect()
}

/// Distance over the distance of the second nearest: 0 when there is no second, 1 when both are 0.
fn ratio(n: &Nearest) -> f32 {
    if n.second > 0.0 { n.distance / n.second } else { 1.0 }
}
