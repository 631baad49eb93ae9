//! Cost aggregation: costs summed along straight paths from several directions.
//!
//! **Formula** (Hirschmüller, PAMI 2008, eq. 13). Along a direction r, from the border of the image on,
//!
//! ```text
//! L(p, d) = C(p, d) + min( L(p−r, d), L(p−r, d−1) + P1, L(p−r, d+1) + P1, min_k L(p−r, k) + P2 ) − min_k L(p−r, k)
//! S(p, d) = Σ_r L(p, d)
//! ```
//!
//! and L = C where p − r lies outside the image. P2 may depend on the difference of grey of p and p − r
//! ([`p2_penalty`]). C and L are integers, so every order of evaluation gives the same S. The least L of a pixel is at
//! most the greatest cost, so no L exceeds the greatest cost plus P2. Depending on this bound, path costs and the sums
//! of a pass are stored as bytes or in 16 bits; the result is the same.
//!
//! **Two passes** ([`pass`]). The forward pass aggregates half of the directions, row by row from the top, and stores
//! their sum; the backward pass aggregates the others from the bottom and chooses the disparity of every pixel. Nothing
//! but that sum is stored for every pixel and disparity. Costs are computed in each pass, which takes less time than
//! storing and reading them.
//!
//! **Bands** ([`band`]). Within a pass a band of eight rows is visited column by column as a skewed wavefront, each row
//! a little behind the one above, so that the path costs of a band ([`path_ring`]) stay in the first-level cache. Bands
//! run on different threads, each behind the one before it; only the path costs of a band's last rows cross the
//! [`boundary`] to the next.
//!
//! **Memory.** With a limit the image is cut into groups of rows. A first forward pass keeps the path costs at the top
//! of every group as a checkpoint; then, from the bottom, each group gets a forward pass that stores its sums, and a
//! backward pass. Path costs cross the borders of groups, so the result is that of the whole image.

mod band;
mod boundary;
pub(crate) mod gpu;
mod memory;
mod p2_penalty;
mod pass;
mod path_ring;
mod recurrence;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

pub(super) use memory::Workspace;
pub(super) use pass::{AggregationInput, AggregationOutput, aggregate};
pub(super) use recurrence::Value;

/// The directions that a pass aggregates, as steps (dx, dy) from p − r to p, in coordinates in which the pass goes down
/// and to the right. The first step runs along the row.
trait Directions<const N: usize>: Copy + Sync {
    const STEPS: [(isize, usize); N];
    /// How many rows up a step reaches.
    const DEPTH: usize = 1;
    /// By how many columns a row stays behind the one above: more than the longest step, so that the values that a
    /// pixel reads were written at least a column earlier and have left the store buffer.
    const SKEW: usize = 2;
    /// The number of wavefront steps whose paths are kept, a power of two above the greatest age ([`path_ring`]).
    const STEPS_KEPT: usize = 4;
}

/// Along the row only: the second half of five directions.
#[derive(Clone, Copy, Default)]
struct Horizontal;
/// Along the row and down: half of four directions.
#[derive(Clone, Copy, Default)]
struct Cross;
/// With the diagonals: half of eight directions.
#[derive(Clone, Copy, Default)]
struct Star;
/// With the knight's moves: half of sixteen directions.
#[derive(Clone, Copy, Default)]
struct Knight;

impl Directions<1> for Horizontal {
    const STEPS: [(isize, usize); 1] = [(1, 0)];
}

impl Directions<2> for Cross {
    const STEPS: [(isize, usize); 2] = [(1, 0), (0, 1)];
}

impl Directions<4> for Star {
    const STEPS: [(isize, usize); 4] = [(1, 0), (1, 1), (0, 1), (-1, 1)];
}

impl Directions<8> for Knight {
    const STEPS: [(isize, usize); 8] = [(1, 0), (1, 1), (0, 1), (-1, 1), (2, 1), (-2, 1), (1, 2), (-1, 2)];
    const DEPTH: usize = 2;
    const SKEW: usize = 3;
    const STEPS_KEPT: usize = 8;
}
