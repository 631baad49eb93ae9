//! The rule by which kernels accept nearest neighbours as matches: `rule.h`.

use super::MatchOptions;

tiepoint_gpu::kernel_struct! {
    pub(super) struct Rule {
        /// 1: each must be the other's nearest.
        mutual: u32,
        /// 1: `ratio` counts.
        has_ratio: u32,
        ratio: f32,
        max_distance: f32,
    }
}

impl Rule {
    pub(super) fn new(options: &MatchOptions) -> Self {
        Self {
            mutual: u32::from(options.mutual),
            has_ratio: u32::from(options.ratio.is_some()),
            ratio: options.ratio.unwrap_or(1.0),
            max_distance: options.max_distance.unwrap_or(f32::INFINITY),
        }
    }
}
