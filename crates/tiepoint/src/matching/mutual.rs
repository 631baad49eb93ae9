//! Mutual choice: a match is kept when each feature is the other's nearest. `gpu/rule.h` is the same for kernels.

use super::{Match, Nearest};

/// Keeps mutual matches. `nearest` gives the nearest neighbour in A of a feature of B; it is called once for each
/// match, in their order.
pub(super) fn retain(matches: &mut Vec<Match>, mut nearest: impl FnMut(u32) -> Option<Nearest>) {
    matches.retain(|m| nearest(m.b).is_some_and(|n| n.index == m.a));
}
