//! The division of images into strips for paths from row to row, and the layout of sums and paths on a device.

use super::GpuAggregationInput;
use crate::image::Size;
use crate::stereo::Paths;
use crate::stereo::aggregation::{Cross, Directions, Knight, Star};
use crate::{Error, Result};
use std::fmt::Write;
use tiepoint_gpu::{Info, KernelSource};

/// The directions of a pass that lead from row to row, as steps (dx, dy).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Steps {
    steps: Vec<(isize, usize)>,
    /// The number of rows above that steps come from.
    depth: usize,
    /// Columns by which strips lean to the left from row to row.
    skew: usize,
}

/// A direction that leads from row to row, in slots of a strip.
struct Slanting {
    step: (isize, usize),
    /// Slots that it moves to the right.
    moves: usize,
    /// The number of rows of its paths that are kept, a power of two.
    rows: usize,
}

impl Steps {
    pub(super) fn of<D: Directions<N>, const N: usize>() -> Self {
        let steps = D::STEPS[1..].to_vec();
        let leans = |&(dx, dy): &(isize, usize)| ((-dx).max(0) as usize).div_ceil(dy);
        let skew = steps.iter().map(leans).max().unwrap_or(0);
        let depth = steps.iter().map(|s| s.1).max().unwrap_or(1);
        Self { steps, depth, skew }
    }

    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// The number of rows of path costs that cross from one band of rows to the next.
    pub(super) fn crossing(&self) -> usize {
        self.steps.iter().map(|step| step.1).sum()
    }

    fn verticals(&self) -> impl Iterator<Item = Slanting> {
        self.steps.iter().map(|&step| {
            let moves = (step.0 + (self.skew * step.1) as isize) as usize;
            // A path that stays in its slot stays in registers.
            let rows = if (moves, step.1) == (0, 1) { 0 } else { (step.1 + 1).next_power_of_two() };
            Slanting { step, moves, rows }
        })
    }

    /// The number of pixels of a row whose paths cross into the next strip.
    pub(super) fn handed(&self) -> usize {
        self.verticals().map(|v| v.moves).sum()
    }

    /// The fewest slots of a strip: in one step a path must not cross more than one border between strips.
    fn fewest(&self) -> usize {
        self.verticals().map(|v| v.moves).max().unwrap_or(0).max(self.skew)
    }

    /// The number of disparities of a lane. Fewer lanes for each pixel mean fewer instructions, more lanes mean that a
    /// row takes less time. With sixteen directions there are registers for no more than 16 disparities.
    pub(super) fn disparities_of_lane(&self, disparities: usize) -> usize {
        let (lanes, most) = match (self.handed(), self.len()) {
            (0, _) => (4, 32),
            (_, ..=3) => (8, 32),
            (_, _) => (8, 16),
        };
        disparities.div_ceil(lanes).clamp(4, most)
    }

    /// The number of strips that a multiprocessor has room for.
    pub(super) fn strips_at_once(&self) -> usize {
        if self.handed() > 0 { AT_ONCE } else { WARPS_AT_ONCE }
    }

    /// For kernels: `VERTICALS(DO)`, and what all directions have in common.
    pub(super) fn for_kernels(&self, source: KernelSource, strip: usize, path_words: usize) -> KernelSource {
        let (mut verticals, mut offset, mut handed, mut in_halo) = (String::new(), 0, 0, 0);
        let mut crossing = 0;
        for (number, Slanting { step: (dx, dy), moves, rows }) in self.verticals().enumerate() {
            let _ = write!(
                verticals,
                "DO({number}, {dx}, {dy}, {moves}, {rows}, {offset}, {handed}, {in_halo}, {crossing}) "
            );
            offset += rows * strip * path_words;
            handed += moves;
            in_halo += rows * moves;
            crossing += dy;
        }
        source
            .define("VERTICALS(DO)", verticals)
            .define("PATHS", self.steps.len())
            .define("SKEW", self.skew)
            .define("DEPTH", self.depth)
            .define("HANDED", handed)
            .define("CROSSING", crossing)
            .define("RING_WORDS", offset)
            .define("HALO_WORDS", in_halo * path_words)
    }
}

/// The layout of sums and paths on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stereo) struct Layout {
    /// Lanes that exchange numbers.
    pub(super) warp: usize,
    /// Lanes of a pixel.
    pub(super) lanes: usize,
    /// Disparities of a lane.
    pub(super) per_lane: usize,
    /// Bytes of a sum: 1 or 2.
    pub(in crate::stereo) sum_bytes: usize,
    pub(in crate::stereo) parts: usize,
    pub(in crate::stereo) disparities: usize,
}

impl Layout {
    /// A layout with the fewest lanes for each pixel that leave at most `per_lane` disparities to each.
    pub(in crate::stereo) fn new(
        warp: usize,
        per_lane: usize,
        (parts, sum_bytes): (usize, usize),
        disparities: usize,
    ) -> Self {
        let lanes = disparities.div_ceil(per_lane).next_power_of_two().min(warp);
        let per_lane = match disparities.div_ceil(lanes) {
            ..=4 => 4,
            most => most.next_multiple_of(8),
        };
        Self { warp, lanes, per_lane, sum_bytes, parts, disparities }
    }

    /// The same layout of sums with more lanes a pixel, so that a lane has at most `most` disparities, where possible.
    pub(super) fn split(&self, most: usize) -> Self {
        let Self { warp, lanes, per_lane, .. } = *self;
        // A lane stores whole words.
        match per_lane > most && 2 * lanes <= warp && (per_lane.is_multiple_of(16) || per_lane == 8) {
            true => Self { lanes: 2 * lanes, per_lane: per_lane / 2, ..*self }.split(most),
            false => *self,
        }
    }

    /// The number of places of a pixel: its disparities, padded.
    pub(in crate::stereo) fn padded(&self) -> usize {
        self.lanes * self.per_lane
    }

    /// Words of the sums of all parts of a pixel.
    pub(in crate::stereo) fn sum_words(&self) -> usize {
        self.parts * self.padded() * self.sum_bytes / 4
    }

    /// Words of a path at a pixel.
    pub(super) fn path_words(&self) -> usize {
        self.padded() / 2
    }

    /// Pixels that a warp computes together.
    pub(super) fn rows_of_warp(&self) -> usize {
        self.warp / self.lanes
    }

    /// For kernels: the layout of a pixel's sums.
    pub(in crate::stereo) fn for_kernels(&self, source: KernelSource) -> KernelSource {
        source
            .define("PADDED", self.padded())
            .define("SUM_BYTES", self.sum_bytes)
            .define("PARTS", self.parts)
            .define("PARTIAL", u8::from(self.padded() > self.disparities))
    }
}

/// Along rows: the number of columns whose data are copied to local memory at a time, and the warps of a group.
pub(super) const PHASES: usize = 8;
pub(super) const WALKING: usize = 1;
/// With at most this many walks along rows for each multiprocessor, more lanes for each pixel are faster.
const FEW_WALKS: usize = 32;
/// The most slots of a strip. With fewer, more strips wait for each other; with more, a row of a strip takes longer.
pub(super) const SLOTS: usize = 32;
/// The most warps of a strip.
const WARPS: usize = 16;
/// How many rows ahead the loader of a strip copies data: the first if local memory has room for it, else the second.
const AHEAD: [usize; 2] = [4, 2];
/// The most strips on a multiprocessor at a time; the second for strips of one warp, if no path crosses columns.
const AT_ONCE: usize = 2;
const WARPS_AT_ONCE: usize = 16;
/// The number of buffers in which the strips of a pass hand paths over, in turn. Before a strip writes into one, the
/// strip `BUFFERS - 1` before it must have read it.
pub(super) const BUFFERS: usize = 8;

/// Bytes of local memory that are left unused here.
const SPARE: usize = 1 << 10;

#[derive(Clone, Copy, Debug)]
pub(super) struct Strip {
    pub(super) slots: usize,
    /// How many rows ahead the loader copies the data of a row.
    pub(super) ahead: usize,
    /// Words of local memory between the right pixels of two lanes of a pixel.
    pub(super) stride: usize,
}

impl Strip {
    /// The stride is an odd multiple of the warp's pixels, so that pixels that it reads at once lie in different banks.
    fn new(slots: usize, ahead: usize, layout: &Layout) -> Self {
        let words = slots + layout.per_lane - 1;
        let stride = match layout.warp {
            1 => words,
            _ => (words.div_ceil(layout.rows_of_warp()) | 1) * layout.rows_of_warp(),
        };
        Self { slots, ahead, stride }
    }

    /// Bytes of local memory.
    fn memory(&self, steps: &Steps, layout: &Layout, planes: usize) -> usize {
        // The paths of its own pixels, and of the pixels of the strip to its left from which paths come.
        let pixels = steps.verticals().map(|v| v.rows * (self.slots + v.moves)).sum::<usize>();
        let paths = pixels * layout.path_words();
        let staged = planes * (layout.lanes * self.stride + self.slots) + steps.steps.len() * self.slots;
        4 * (paths + (self.ahead + 1) * staged)
    }

    /// The strip with the most slots, up to `most`, that fits local memory; if no path crosses columns, a warp's slots.
    pub(super) fn fitting(
        most: usize,
        (steps, layout): (&Steps, &Layout),
        planes: usize,
        local_memory: usize,
    ) -> Option<Self> {
        let of_warp = layout.rows_of_warp();
        let room = local_memory.saturating_sub(SPARE);
        // A power of two, which suits the registers, or at most eight.
        let powers = [SLOTS, SLOTS / 2].into_iter().filter(|&slots| slots <= most);
        let slots: Vec<usize> = match steps.handed() {
            0 => vec![of_warp],
            _ => powers.chain((1..=SLOTS / 4).rev()).map(|slots| slots.next_multiple_of(of_warp)).collect(),
        };
        slots
            .into_iter()
            .flat_map(|slots| AHEAD.map(|ahead| Self::new(slots, ahead, layout)))
            .filter(|strip| strip.slots >= steps.fewest() && strip.slots <= WARPS * of_warp)
            .find(|strip| strip.memory(steps, layout, planes) <= room)
    }

    /// Warps of a group: those that compute and, where paths cross columns, the loader and the halo warp.
    pub(super) fn warps(&self, steps: &Steps, layout: &Layout) -> usize {
        self.slots / layout.rows_of_warp() + if steps.handed() > 0 { 2 } else { 0 }
    }

    /// The number of strips of a pass.
    pub(super) fn count(&self, size: Size, steps: &Steps) -> usize {
        (size.width + steps.skew * size.height.saturating_sub(1)).div_ceil(self.slots)
    }
}

/// The layout of the aggregation of an input on a device.
#[derive(Clone, Debug)]
pub(super) struct Design {
    pub(super) steps: Steps,
    /// 1: only downwards; 2: downwards and upwards.
    pub(super) passes: usize,
    /// The layout for the paths from row to row.
    pub(super) layout: Layout,
    /// The layout for the paths along rows.
    pub(super) along: Layout,
    pub(super) strip: Strip,
}

impl Design {
    pub(super) fn of(input: &GpuAggregationInput<'_>) -> Result<Self> {
        let gpu = input.gpu;
        gpu.require_waiting()?;
        let (steps, passes) = match input.options.paths {
            Paths::Four => (Steps::of::<Cross, 2>(), 2),
            Paths::Five => (Steps::of::<Star, 4>(), 1),
            Paths::Eight => (Steps::of::<Star, 4>(), 2),
            Paths::Sixteen => (Steps::of::<Knight, 8>(), 2),
        };
        let sum_bytes = if input.far() * steps.steps.len() as u32 <= 255 { 1 } else { 2 };
        let Info { warp, units, local_memory, .. } = gpu.info();
        let planes = input.planes();
        // Narrower strips where there are few columns, so that every multiprocessor gets one.
        let columns = (passes * input.images * input.size.width).div_ceil(*units as usize);
        let most = if columns > SLOTS / 2 { SLOTS } else { SLOTS / 2 };
        let per_lane = steps.disparities_of_lane(input.options.disparities);
        let fitting = [per_lane, 16, 8, 4].into_iter().filter(|&n| n <= per_lane).find_map(|per_lane| {
            let layout =
                Layout::new(*warp as usize, per_lane, (2 + passes, sum_bytes), input.options.disparities);
            let strip = Strip::fitting(most, (&steps, &layout), planes, *local_memory as usize)?;
            Some((layout, strip))
        });
        let (layout, strip) = fitting.ok_or_else(|| Error::Unsupported {
            device: gpu.info().name.clone(),
            feature: format!(
                "memory of work groups for {} paths from row to row and {} disparities",
                steps.steps.len(),
                input.options.disparities
            ),
        })?;
        let walks = (2 * input.size.height * input.images).div_ceil(*units as usize);
        let along = layout.split(if walks > FEW_WALKS || input.options.disparities > 128 { 16 } else { 8 });
        Ok(Self { steps, passes, layout, along, strip })
    }

    /// Words of the paths of a pass that cross from a band of rows of this width to the next.
    pub(super) fn checkpoint_words(&self, width: usize) -> usize {
        width * self.steps.crossing() * self.layout.path_words()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths along rows and paths from row to row store sums in the same layout, however many disparities a lane has.
    #[test]
    fn paths_along_rows_have_the_layout_of_the_others() {
        for steps in [Steps::of::<Star, 4>(), Steps::of::<Cross, 2>(), Steps::of::<Knight, 8>()] {
            for disparities in (1..=300).chain([511, 512, 1000, 4096]) {
                for warp in [1, 32] {
                    let per_lane = steps.disparities_of_lane(disparities);
                    let layout = Layout::new(warp, per_lane, (4, 1), disparities);
                    for most in [8, 16] {
                        let along = layout.split(most);
                        assert_eq!(along.padded(), layout.padded(), "{disparities}");
                        assert!(
                            along.lanes <= warp && (along.per_lane == 4 || along.per_lane.is_multiple_of(8)),
                            "{along:?}"
                        );
                    }
                    assert!(layout.padded() >= disparities);
                }
            }
        }
    }

    /// Strips of common sizes fit into local memory and are wide enough that paths cross into the next strip only.
    #[test]
    fn strips_fit_the_local_memory_of_cards() {
        for (steps, per_lane, disparities) in [
            (Steps::of::<Star, 4>(), 16, 128),
            (Steps::of::<Star, 4>(), 32, 256),
            (Steps::of::<Star, 4>(), 32, 512),
            (Steps::of::<Cross, 2>(), 32, 512),
            (Steps::of::<Knight, 8>(), 8, 128),
        ] {
            let layout = Layout::new(32, per_lane, (4, 2), disparities);
            let strip = Strip::fitting(SLOTS, (&steps, &layout), 3, 48 << 10);
            assert!(strip.is_some_and(|strip| strip.slots >= steps.fewest()), "{steps:?} {disparities}");
        }
    }
}
