//! Which features to keep when there are more than are wanted.
//!
//! Features are put into their order of rank: by scale or by response, the greatest first, then by the total order of
//! [`Keypoint::order`]. The first `limit` of them are kept; or, with `even`, round by round the first of each cell of a
//! grid. Kept features come in this order. Without a limit all are kept, and the strongest come first.
//!
//! [`Keep::Levels`] counts positions, however many directions each has, and takes whole levels, as COLMAP does on a CPU:
//! a limit of 8192 gives about 10 000 to 15 000 features. Levels overlap in scale, so some of the features left out are
//! larger than some of those kept.
//!
//! SIFT's features selected by scale are found again more often, and more points of a scene are reconstructed from
//! them. SURF's large filters are sampled sparsely, and its features selected by response are found again more often.
//! Hence the defaults (`docs/notebook/features.md`).

use super::order::Rank;
use super::{Features, Keypoint};
use crate::Error;
use crate::device::Cpu;
use crate::image::Size;
use crate::options::{named, options};

named! {
    /// Which features come first.
    pub enum Keep as "keep" {
        /// They are found again from near and far, and are spread more widely. SIFT's default.
        #[default]
        "scale": Scale, "The largest scales";
        /// SURF's default.
        "response": Response, "The strongest, as OpenCV does";
        /// Each position counts with all its directions. The default of [collections](crate::collection), because COLMAP
        /// counts like this.
        "levels": Levels, "Whole levels, the coarsest first, until they have N positions or more, as COLMAP does";
    }
}

options! {
    /// How many features to keep and which. The default is all.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Selection {
        /// The most features to keep, each direction of a position counted as one; with keep levels, the number of
        /// positions that the kept levels must reach. Features come in the order of keep; without a limit all are kept,
        /// and the strongest come first.
        limit / with_limit: Option<usize> = None, name "max_features", unit "N";
        /// Which features are kept if there are more.
        keep / with_keep: Keep = Keep::Scale;
        /// Spread the kept features evenly over the image; not with whole levels.
        ///
        /// The cells of a square grid hold about four of the features wanted each, and round by round every cell gives
        /// its next.
        even / with_even: bool = false;
    }
    check this {
        match (this.keep, this.even) {
            (Keep::Levels, true) => {
                Err(Error::option("even", true, "false where keep is levels: these are whole"))
            }
            (Keep::Levels, false) | (Keep::Scale | Keep::Response, _) => Ok(()),
        }
    }
}

/// Which features are kept of those in their order of rank.
enum Take {
    First(usize),
    /// As many, spread over the image.
    Spread(usize),
    /// Whole levels with this many positions.
    Levels(usize),
}

impl Selection {
    /// Every feature.
    pub const ALL: Self = Self { limit: None, keep: Keep::Scale, even: false };

    /// The `n` largest.
    pub const fn largest(n: usize) -> Self {
        Self { limit: Some(n), keep: Keep::Scale, even: false }
    }

    /// The `n` strongest.
    pub const fn strongest(n: usize) -> Self {
        Self { limit: Some(n), keep: Keep::Response, even: false }
    }

    /// The coarsest levels that have `n` positions.
    pub const fn levels(n: usize) -> Self {
        Self { limit: Some(n), keep: Keep::Levels, even: false }
    }

    /// Every selection, with a limit of `n`.
    pub const fn every(n: usize) -> [Self; 6] {
        let (largest, strongest) = (Self::largest(n), Self::strongest(n));
        let (even_largest, even_strongest) =
            (Self { even: true, ..largest }, Self { even: true, ..strongest });
        [Self::ALL, largest, strongest, even_largest, even_strongest, Self::levels(n)]
    }

    /// How features are ranked.
    pub(crate) fn rank(self) -> Rank {
        match (self.limit, self.keep) {
            (None, _) | (Some(_), Keep::Response) => Rank::RESPONSE,
            (Some(_), Keep::Scale) => Rank::SCALE,
            (Some(_), Keep::Levels) => Rank::LEVEL,
        }
    }

    fn take(self) -> Take {
        match (self.limit, self.keep) {
            (None, _) => Take::First(usize::MAX),
            (Some(positions), Keep::Levels) => Take::Levels(positions),
            (Some(limit), Keep::Scale | Keep::Response) if self.even => Take::Spread(limit),
            (Some(limit), Keep::Scale | Keep::Response) => Take::First(limit),
        }
    }

    /// Only this many of the first by rank can be selected; a search need not keep the others.
    pub(crate) fn early_limit(self) -> usize {
        match self.take() {
            Take::First(limit) => limit,
            Take::Spread(_) | Take::Levels(_) => usize::MAX,
        }
    }

    /// From this many features of a part of an image on, it pays to drop those that are not selected in the part,
    /// because they are not selected in the whole image either.
    pub(crate) fn pays_from(self) -> usize {
        match self.take() {
            Take::First(limit) | Take::Levels(limit) => limit.saturating_mul(2).saturating_add(1024),
            Take::Spread(_) => usize::MAX,
        }
    }

    /// The number of positions that whole levels must have, for kernels.
    pub(crate) fn positions_of_levels(self) -> Option<u32> {
        match self.take() {
            Take::Levels(limit) => Some(u32::try_from(limit).unwrap_or(u32::MAX)),
            Take::First(_) | Take::Spread(_) => None,
        }
    }

    /// [`early_limit`](Self::early_limit) for kernels, which count in 32 bits.
    pub(crate) fn device_limit(self) -> u32 {
        u32::try_from(self.early_limit()).unwrap_or(u32::MAX)
    }

    /// Whether the host still has to apply the rule ([`of`](Self::of)) to the first [`early_limit`](Self::early_limit)
    /// features.
    pub(crate) fn is_finished_by_host(self) -> bool {
        matches!(self.take(), Take::Spread(_))
    }

    /// The selection for a part of an image, before the features of all parts are joined.
    pub(crate) fn of_part(self) -> Self {
        if self.early_limit() == usize::MAX { Self::ALL } else { self }
    }

    /// The selected ones of features that come from a detector, in their order of rank.
    pub(crate) fn of(self, found: &Features, cpu: &Cpu) -> Features {
        let rank = self.rank();
        let mut ranked: Vec<(Keypoint, usize)> = found.keypoints.iter().copied().zip(0..).collect();
        cpu.sort_by(&mut ranked, |a, b| rank.compare(&a.0, &b.0));
        let first = |n: usize| ranked.iter().take(n).map(|(_, i)| *i).collect();
        let indices: Vec<usize> = match self.take() {
            Take::First(limit) => first(limit),
            Take::Levels(positions) => first(in_levels(&ranked, positions)),
            Take::Spread(limit) => spread(&ranked, found.image, limit).map(|at| ranked[at].1).collect(),
        };
        drop(ranked);
        found.gather(&indices, cpu)
    }
}

/// The number of keypoints in the fewest whole levels that have `n` positions; the keypoints are sorted level by level.
fn in_levels(ranked: &[(Keypoint, usize)], n: usize) -> usize {
    let (mut positions, mut kept) = (0, 0);
    for level in ranked.chunk_by(|(a, _), (b, _)| (a.octave, a.layer) == (b.octave, b.layer)) {
        if positions >= n {
            break;
        }
        positions += level.chunk_by(|(a, _), (b, _)| a.is_same_position(b)).count();
        kept += level.len();
    }
    kept
}

/// Indices, ascending, of at most `n` keypoints taken round by round from the cells of a grid; keypoints come in the
/// order of their rank.
fn spread(ranked: &[(Keypoint, usize)], image: Size, n: usize) -> impl Iterator<Item = usize> {
    let (width, height) = (image.width.max(1) as f64, image.height.max(1) as f64);
    let cell = (width * height * 4.0 / n.max(1) as f64).sqrt().max(1.0);
    let columns = (width / cell).ceil() as usize;
    let mut taken_in_cell = std::collections::HashMap::<usize, usize>::new();
    // A keypoint's rank inside its cell is the round in which it is taken.
    let mut rounds: Vec<(usize, usize)> = (ranked.iter().enumerate())
        .map(|(at, (k, _))| {
            let cell_of = |v: f32| (f64::from(v.max(0.0)) / cell) as usize;
            let row_of_cells = cell_of(k.y).saturating_mul(columns);
            let round = taken_in_cell.entry(row_of_cells.saturating_add(cell_of(k.x))).or_default();
            *round += 1;
            (*round, at)
        })
        .collect();
    rounds.sort_unstable();
    rounds.truncate(n);
    let mut kept: Vec<usize> = rounds.into_iter().map(|(_, at)| at).collect();
    kept.sort_unstable();
    kept.into_iter()
}
