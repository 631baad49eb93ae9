//! The total order of keypoints on a GPU.

use crate::Result;
use crate::device::gpu::{Buffer, Commands};
use crate::feature::gpu::GpuKeypoints;
use crate::feature::select::Selection;
use crate::feature::{WORDS, for_kernels};
use tiepoint_gpu::KernelSource;

tiepoint_gpu::kernel! {
    /// Sorts runs, one group for each; the second dimension is the image.
    unsafe kernel sort_runs(groups) = SortRuns {
        write order: u64 [groups[1] * capacity],
        read keypoints: u32 as Keypoint [groups[1] * capacity * WORDS as i128],
        read counts: u32 [groups[1]],
    } {
        capacity: u32,
    }

    /// Merges sorted runs of `size`, a power of two, with one lane for each keypoint; the second dimension is the
    /// image.
    unsafe kernel merge_runs(groups) = MergeRuns {
        write to: u64 [groups[1] * capacity],
        read from: u64 [groups[1] * capacity],
        read keypoints: u32 as Keypoint [groups[1] * capacity * WORDS as i128],
        read counts: u32 [groups[1]],
    } {
        capacity: u32,
        size: u32,
    }
}

/// Places in a table of levels: see `slot_of` in order.cl.
const LEVEL_SLOTS: usize = 32 * 16;

tiepoint_gpu::kernel! {
    /// Counts the keypoints and the positions of every level; the second dimension is the image.
    unsafe kernel count_levels(groups) = CountLevels {
        write levels: u32 [groups[1] * 2 * LEVEL_SLOTS as i128],
        read order: u64 [groups[1] * capacity],
        read keypoints: u32 as Keypoint [groups[1] * capacity * WORDS as i128],
        read counts: u32 [groups[1]],
    } {
        capacity: u32,
    }

    /// Reduces the count to the keypoints of the coarsest levels.
    unsafe kernel keep_levels(groups) = KeepLevels {
        write counts: u32 [groups[1]],
        read levels: u32 [groups[1] * 2 * LEVEL_SLOTS as i128],
        read order: u64 [groups[1] * capacity],
        read keypoints: u32 as Keypoint [groups[1] * capacity * WORDS as i128],
    } {
        capacity: u32,
        /// The least number of positions that the kept levels must have together.
        positions: u32,
    }
}

const GROUP: u32 = 256;
/// Keypoints of a first run.
const RUN: usize = 512;
/// Runs that are merged at a time.
const WAYS: usize = 8;

pub(crate) fn source(selection: Selection) -> KernelSource {
    let whole_levels = selection.positions_of_levels().is_some();
    let source = KernelSource::new("order")
        .define("GROUP", GROUP)
        .define("RUN", RUN)
        .define("WAYS", WAYS)
        .define("RANK_KEY(k)", selection.rank().key)
        .define("LEVEL_SLOTS", if whole_levels { LEVEL_SLOTS } else { 0 });
    let mut source =
        for_kernels(source).kernel::<SortRuns<'_>>([GROUP, 1]).kernel::<MergeRuns<'_>>([GROUP, 1]);
    if whole_levels {
        source = source.kernel::<CountLevels<'_>>([GROUP, 1]).kernel::<KeepLevels<'_>>([32, 1]);
    }
    source.text(include_str!("order.cl"))
}

/// Writes the order of the first `counts[image]` keypoints of each of several images; the lower halves of its
/// numbers are their indices. The keypoints of image i begin at i · `capacity`, and so does their order. `spare` is
/// as large as `order`; the result is in the one that is returned. If whole levels are selected, the counts become
/// those of their keypoints, unless they exceed the capacity.
pub(crate) fn record<'b>(
    commands: &mut Commands,
    selection: Selection,
    found: &GpuKeypoints,
    (order, spare): (&'b Buffer<u64>, &'b Buffer<u64>),
) -> Result<&'b Buffer<u64>> {
    let GpuKeypoints { keypoints, counts, capacity } = found;
    let (gpu, capacity) = (keypoints.gpu(), *capacity);
    let program = gpu.program(&source(selection))?;
    let groups = |of: usize| [capacity.div_ceil(of), counts.len(), 1];
    let (mut from, mut to, room) = (order, spare, capacity as u32);
    let sort = SortRuns { order: from, keypoints, counts, capacity: room };
    commands.launch(&program.kernel::<SortRuns<'_>>()?, groups(RUN), sort)?;
    let mut size = RUN;
    while size < capacity {
        let merge = MergeRuns { to, from, keypoints, counts, capacity: room, size: size as u32 };
        commands.launch(&program.kernel::<MergeRuns<'_>>()?, groups(GROUP as usize), merge)?;
        std::mem::swap(&mut from, &mut to);
        size *= WAYS;
    }
    if let Some(positions) = selection.positions_of_levels() {
        let (order, images) = (from, counts.len());
        let levels = &gpu.buffer(images * 2 * LEVEL_SLOTS)?;
        commands.zero(levels)?;
        let counting = CountLevels { levels, order, keypoints, counts, capacity: room };
        commands.launch(&program.kernel::<CountLevels<'_>>()?, groups(GROUP as usize), counting)?;
        let keeping = KeepLevels { counts, levels, order, keypoints, capacity: room, positions };
        commands.launch(&program.kernel::<KeepLevels<'_>>()?, [1, images, 1], keeping)?;
    }
    Ok(from)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::device::gpu::all;
    use crate::feature::{Keypoint, to_words};
    use crate::numeric::Random;

    /// Keypoints with many equal keys; `n` of them.
    pub(crate) fn keypoints(n: usize, seed: u32) -> Vec<Keypoint> {
        let mut random = Random::new(seed.into());
        let mut next = |n: usize| random.below(n);
        let mut keypoint = || Keypoint {
            x: next(4) as f32 - 1.0,
            y: next(5) as f32 - 0.5,
            scale: 1.0 + next(3) as f32,
            angle: next(9) as f32 * 0.5,
            response: next(20) as f32 * 0.01,
            sign: 1,
            octave: next(4) as i8 - 1,
            layer: next(3) as u8,
        };
        (0..n).map(|_| keypoint()).collect()
    }

    #[test]
    fn the_order_is_that_of_the_cpu() {
        let selections = [Selection::ALL, Selection::largest(9), Selection::levels(200)];
        for (gpu, selection) in all().iter().flat_map(|gpu| selections.map(|selection| (gpu, selection))) {
            let rank = selection.rank();
            for (capacity, counts) in [
                (1, [1, 0]),
                (300, [299, 257]),
                (1024, [512, 513]),
                (5000, [5000, 4097]),
                (33_000, [32_769, 9]),
            ] {
                let images: Vec<_> = counts.iter().map(|&n| keypoints(n, n as u32)).collect();
                let mut words = vec![0; 2 * capacity * WORDS];
                for (i, image) in images.iter().enumerate() {
                    for (k, to) in image.iter().zip(words[i * capacity * WORDS..].chunks_exact_mut(WORDS)) {
                        to.copy_from_slice(&to_words(k));
                    }
                }
                let on_device = gpu.upload(&words).unwrap();
                let counts = gpu.upload(&counts.map(|n| n as u32)).unwrap();
                let found = GpuKeypoints { keypoints: on_device, counts, capacity };
                let [a, b] = [(); 2].map(|()| gpu.buffer(2 * capacity).unwrap());
                let mut commands = Commands::new();
                let sorted = record(&mut commands, selection, &found, (&a, &b)).unwrap();
                gpu.run(&commands).unwrap();
                let sorted = sorted.to_vec().unwrap();
                for (i, image) in images.into_iter().enumerate() {
                    let found =
                        sorted[i * capacity..][..image.len()].iter().map(|&at| image[at as u32 as usize]);
                    let mut expected = image.clone();
                    expected.sort_by(|a, b| rank.compare(a, b));
                    assert!(found.eq(expected), "{gpu:?}, {}: {} of {capacity}", rank.key, image.len());
                }
            }
        }
    }

    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        [Selection::ALL, Selection::largest(1), Selection::levels(1)].map(source).into()
    }
}
