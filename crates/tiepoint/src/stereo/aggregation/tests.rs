//! Aggregated sums and the selection from them against the formula.

use super::{AggregationInput, Workspace, aggregate, reference};
use crate::device::Cpu;
use crate::device::tests::every_cpu;
use crate::image::testing::assert_same;
use crate::image::{Image, Size};
use crate::numeric::Random;
use crate::stereo::cost::CostVolume;
use crate::stereo::testing::{SIZES, pair_of};
use crate::stereo::{INVALID, Paths, Penalties, StereoOptions, StereoResult, Subpixel};

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { costs, greatest, penalties, paths, .. } = self;
        let (size, disparities) = (costs.size(), costs.channels());
        write!(f, "{size}, {disparities} disparities, costs to {greatest}, {penalties:?}, {paths:?}")
    }
}

struct Case {
    /// Random costs without spatial structure, a channel for each disparity.
    costs: Image<u16>,
    greatest: u16,
    penalties: Penalties,
    paths: Paths,
    grey: Image<u8>,
}

impl Case {
    fn random(random: &mut Random, size: Size) -> Self {
        let mut below = |n: usize| (random.bits() % n as u64) as usize;
        let disparities = [1, 2, 5, 16, 31, 64, 65, 130][below(8)];
        let greatest = [0, 5, 24, 60, 200, 255, 1000][below(7)];
        let p2 = [0, 7, 38, 90, 400][below(5)];
        let least = below(p2 + 1);
        let penalties = Penalties {
            p1: below(least + 1) as u16,
            p2: p2 as u16,
            p2_least: least as u16,
            gradient: 1 + below(40) as u8,
        };
        let paths = [Paths::Four, Paths::Five, Paths::Eight, Paths::Sixteen][below(4)];
        let mut noise = Random::new(below(1 << 30) as u64);
        let costs = (0..size.area() * disparities).map(|_| noise.below(greatest + 1) as u16).collect();
        let costs = Image::from_vec(costs, size, disparities).unwrap();
        let grey = Image::from_fn(size, |_, _| below(256) as u8);
        Self { costs, greatest: greatest as u16, penalties, paths, grey }
    }

    fn found(&self, memory: Option<u64>, cpu: &Cpu) -> crate::Result<(Vec<u16>, StereoResult)> {
        let (size, disparities) = (self.costs.size(), self.costs.channels());
        let pair = pair_of([&self.grey, &self.grey]);
        let options = StereoOptions::default()
            .with_disparities(disparities)
            .with_paths(self.paths)
            .with_subpixel(Subpixel::Off)
            .with_memory(memory)
            .with_penalties(self.penalties);
        let cost = CostVolume::of_integers(&self.costs, self.greatest);
        let input = AggregationInput::new(&cost, &pair, &options);
        let mut sums = vec![0; size.area() * disparities];
        let mut maps = StereoResult::new(size, true, false);
        aggregate(&input, (&mut maps, Some(&mut sums)), &mut Workspace::default(), cpu)?;
        Ok((sums, maps))
    }
}

#[test]
fn sums_are_the_formula_s() {
    let mut random = Random::new(7);
    for round in 0..6 {
        for (width, height) in SIZES {
            let case = Case::random(&mut random, Size::new(width, height));
            let expected = reference::sums(&case.costs, &case.grey, &case.penalties, case.paths);
            for (cpu, name) in every_cpu() {
                let (sums, maps) = case.found(None, &cpu).unwrap();
                let what = format!("round {round}, {name}, {case:?}");
                let wrong = sums.iter().zip(&expected).position(|(a, b)| a != b);
                assert_eq!(wrong, None, "first wrong sum: {what}");
                check_selection(&case, &sums, &maps, &what);
            }
        }
    }
}

/// Checks the selection in both views against a search for the least sums.
fn check_selection(case: &Case, sums: &[u16], maps: &StereoResult, what: &str) {
    let (size, disparities) = (case.costs.size(), case.costs.channels());
    let sum = |x: usize, y: usize, d: usize| sums[(y * size.width + x) * disparities + d];
    let right = maps.right.as_ref().unwrap();
    for y in 0..size.height {
        for x in 0..size.width {
            let best = (0..disparities).min_by_key(|&d| sum(x, y, d)).unwrap();
            assert_eq!(maps.disparity.row(y)[x], best as f32, "left {x}, {y}: {what}");
            let reach = (0..disparities).filter(|d| x + d < size.width);
            let best = reach.min_by_key(|&d| sum(x + d, y, d));
            let expected = best.map_or(INVALID, |d| d as f32);
            assert_eq!(right.row(y)[x], expected, "right {x}, {y}: {what}");
        }
    }
}

#[test]
fn groups_of_rows_change_nothing() {
    let mut random = Random::new(8);
    let mut cut = 0;
    for (width, height) in SIZES {
        for _ in 0..8 {
            let case = Case::random(&mut random, Size::new(width, height));
            let (whole_sums, whole) = case.found(None, &Cpu::sequential()).unwrap();
            for memory in [100_000, 200_000, 400_000, 800_000, 1_600_000] {
                for threads in [1, 2, 5] {
                    let cpu = Cpu::with_threads(threads).unwrap();
                    if let Ok((sums, found)) = case.found(Some(memory), &cpu) {
                        let what = format!("{width}x{height}, {memory} bytes, {threads} threads, {case:?}");
                        let wrong = sums.iter().zip(&whole_sums).position(|(a, b)| a != b);
                        assert_eq!(wrong, None, "first wrong sum: {what}");
                        assert_same(&found.disparity, &whole.disparity, &what);
                        assert!(found == whole, "the right view: {what}");
                        cut += 1;
                    }
                }
            }
        }
    }
    assert!(cut > 100, "too few cases fitted their limit: {cut}");
}
