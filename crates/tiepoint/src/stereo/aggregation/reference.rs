//! The formula of cost aggregation, one direction and one pixel at a time.

use crate::image::{Image, Size};
use crate::stereo::{Paths, Penalties};

/// All directions, as steps from p − r to p.
fn directions(paths: Paths) -> Vec<(isize, isize)> {
    let rays = [(1, 0), (0, 1), (1, 1), (-1, 1), (2, 1), (-2, 1), (1, 2), (-1, 2)];
    let both = |n: usize| rays[..n].iter().flat_map(|&(x, y)| [(x, y), (-x, -y)]).collect();
    match paths {
        Paths::Four => both(2),
        Paths::Five => vec![(1, 0), (-1, 0), (1, 1), (0, 1), (-1, 1)],
        Paths::Eight => both(4),
        Paths::Sixteen => both(8),
    }
}

/// S(p, d) of all pixels, row by row, disparities innermost.
pub(super) fn sums(costs: &Image<u16>, grey: &Image<u8>, penalties: &Penalties, paths: Paths) -> Vec<u16> {
    let (Size { width, height }, disparities) = (costs.size(), costs.channels());
    let at = |x: usize, y: usize| (y * width + x) * disparities;
    let mut sums = vec![0_u16; width * height * disparities];
    for (dx, dy) in directions(paths) {
        let mut path = vec![0_u32; sums.len()];
        // An order in which p − r always comes before p.
        let rows: Vec<usize> = if dy >= 0 { (0..height).collect() } else { (0..height).rev().collect() };
        let columns: Vec<usize> = if dx >= 0 { (0..width).collect() } else { (0..width).rev().collect() };
        for &y in &rows {
            for &x in &columns {
                let before = x.checked_add_signed(-dx).zip(y.checked_add_signed(-dy));
                let before = before.filter(|&(x, y)| x < width && y < height);
                for d in 0..disparities {
                    let mut value = u32::from(costs.data()[at(x, y) + d]);
                    if let Some((bx, by)) = before {
                        let last = &path[at(bx, by)..][..disparities];
                        let least = last.iter().min().copied().unwrap_or(0);
                        let delta = grey.row(y)[x].abs_diff(grey.row(by)[bx]);
                        let p2 = u32::from(penalties.table()[usize::from(delta)]);
                        let mut best = last[d].min(least + p2);
                        if d > 0 {
                            best = best.min(last[d - 1] + u32::from(penalties.p1));
                        }
                        if d + 1 < disparities {
                            best = best.min(last[d + 1] + u32::from(penalties.p1));
                        }
                        value += best - least;
                    }
                    path[at(x, y) + d] = value;
                    sums[at(x, y) + d] += value as u16;
                }
            }
        }
    }
    sums
}
