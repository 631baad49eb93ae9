//! The search on a GPU with f64, for homographies, fundamental and essential matrices: `search.cl`, one work group for
//! each pair of images. The results equal the CPU's bit for bit: the same samples, matches judged by the same
//! operations, sums in the same order.

use super::improve::{self, LANES};
use super::residual::{EPIPOLAR, TRANSFER};
use super::search::SHARES;
use super::{Fit, five_point};
use crate::geometry::ModelKind;
use tiepoint_gpu::KernelSource;

/// 64-bit words of the result for a pair, and numbers given for a pair: the limits of d² for a homography and for
/// epipolar geometry, and the cameras.
pub(in crate::geometry) const FOUND: usize = 19;
pub(in crate::geometry) const NUMBERS: usize = 20;

tiepoint_gpu::kernel! {
    /// The search for one kind of model, one group for each pair.
    pub(in crate::geometry) unsafe kernel search_models(groups) = Search {
        write found: u64 as Found [groups[0] * FOUND as i128],
        /// Models to start from; one without inliers stands for none.
        read starts: u64 as Found [groups[0] * FOUND as i128],
        read pairs: u32 as Pair [groups[0] * 4],
        read keys: u64 [groups[0]],
        read all_numbers: u64 as f64 [groups[0] * NUMBERS as i128],
        read all_places: u64 as f64 [matches * 4],
        read order: u32 [matches],
        read until: u64 [matches],
        read budget: u32 [SHARES as i128 + 1],
    } {
        /// Of all pairs.
        matches: u64,
    }
}

/// The kernel for one kind of model. Its registers are not bounded (`docs/notebook/matching.md`).
pub(in crate::geometry) fn source(kind: ModelKind) -> KernelSource {
    let sums = if kind.is_epipolar() { EPIPOLAR } else { TRANSFER };
    let number = match kind {
        ModelKind::Fundamental => 1,
        ModelKind::Essential => 2,
        _ => 0,
    };
    let start = KernelSource::new("robust estimation")
        .define("HOMOGRAPHY", 0)
        .define("FUNDAMENTAL", 1)
        .define("ESSENTIAL", 2)
        .define("KIND", number)
        .define("ROWS", kind.minimum())
        .define("LANES", LANES)
        .define("SUMS", sums)
        .define("SHARES", SHARES)
        .define("IMPROVING", improve::LIMITS.len())
        .define("SETTLING", improve::SETTLING)
        .define("GAIN", format_args!("{:e}", improve::GAIN))
        .define("DAMPED", format_args!("{:e}", improve::DAMPED))
        .define("MOST_DAMPED", format_args!("{:e}", improve::MOST_DAMPED))
        .define("SMALLEST", format_args!("{:e}", f64::MIN_POSITIVE))
        .text(include_str!("../matrix.h"))
        .text(include_str!("../linear.h"));
    let solver = match kind {
        ModelKind::Fundamental => start.text(include_str!("seven_point.h")),
        ModelKind::Essential => five_point::for_kernels(start)
            .text(include_str!("seven_point.h"))
            .text(include_str!("five_point.h")),
        _ => start,
    };
    solver
        .text(include_str!("residual.h"))
        .text(include_str!("step.h"))
        .kernel::<Search<'_>>([LANES as u32, 1])
        .text(include_str!("search.cl"))
}

/// The model that was found for a pair, if any, and the number of samples drawn.
pub(in crate::geometry) fn read(words: &[u64]) -> (Option<Fit>, usize) {
    let at = |first: usize| {
        std::array::from_fn(|r| std::array::from_fn(|c| f64::from_bits(words[first + 3 * r + c])))
    };
    let (inliers, drawn) = (words[FOUND - 1] as u32, (words[FOUND - 1] >> 32) as usize);
    ((inliers > 0).then(|| Fit { model: at(0), essential: at(9), inliers }), drawn)
}
