//! Filling of invalid pixels from the valid ones around them (after Hirschmüller, PAMI 2008, section 2.5.3).
//!
//! From an invalid pixel one looks along eight rays, straight and diagonal, for the nearest valid pixel of each.
//! - A pixel with valid pixels on one side of its row only takes the nearest of these: it lies in the margin that
//!   the other view does not show, and the surface beside it goes on.
//! - An occlusion takes the second lowest of the disparities found: it belongs to the background, and the lowest may
//!   be an error.
//! - A mismatch takes the third lowest. The paper's median fills small holes of the background from the objects
//!   before it; on images with ground truth it was the worse choice.
//!
//! Where fewer were found the highest of them is taken; a pixel that finds none stays [`INVALID`].
//!
//! **Numbers.** Selection only: results are values of the input. Whatever is not finite is invalid.

use super::INVALID;
use crate::{Error, Result, device::Cpu, image::Image};
use fearless_simd::{Simd, dispatch};
use fearless_simd_macros::simd;

/// Fills the invalid pixels of `disparity`. `occluded` tells which of them are occlusions (see
/// [`check::occluded`](super::check::occluded)); without it all are.
///
/// # Errors
/// [`Error::Image`] for an empty map or several channels, [`Error::Mismatch`] when the sizes differ.
pub fn fill(disparity: &mut Image<f32>, occluded: Option<&Image<bool>>, cpu: &Cpu) -> Result<()> {
    disparity.view().require_grey()?;
    if let Some(other) = occluded.map(Image::size).filter(|&s| s != disparity.size()) {
        let size = disparity.size();
        return Err(Error::Mismatch(format!(
            "the disparities are {size}, the occlusions {other}: expected one size"
        )));
    }
    let _stage = cpu.stage("fill");
    let map = &*disparity;
    // One task looks upwards while the other looks downwards.
    let sweeps = cpu.map(2, |i| dispatch!(cpu.level(), simd => sweep(simd, map, i == 0)));
    let width = disparity.size().width;
    cpu.for_chunks(disparity.data_mut(), width, |y, row| {
        let rays = [sweeps[0].row(y), sweeps[1].row(y)];
        fill_row(row, rays, occluded.map(|o| o.row(y)));
    });
    Ok(())
}

/// What the invalid pixels see along the three rays to one side, row by row.
struct Sweep {
    found: Vec<[f32; 3]>,
    /// Where the pixels of row y lie in `found`.
    rows: Vec<std::ops::Range<usize>>,
}

impl Sweep {
    fn row(&self, y: usize) -> &[[f32; 3]] {
        &self.found[self.rows[y].clone()]
    }
}

/// Looks up or down from every invalid pixel.
#[simd]
fn sweep<S: Simd>(_: S, map: &Image<f32>, upwards: bool) -> Sweep {
    let (width, height) = (map.size().width, map.size().height);
    // What each pixel of the row before would see, itself included; one pixel wider than the image at both ends.
    let mut before: [Vec<f32>; 3] = std::array::from_fn(|_| vec![INVALID; width + 2]);
    let mut here = before.clone();
    let mut sweep = Sweep { found: Vec::new(), rows: vec![0..0; height] };
    for i in 0..height {
        let y = if upwards { i } else { height - 1 - i };
        let row = map.row(y);
        let start = sweep.found.len();
        let seen: [&[f32]; 3] = std::array::from_fn(|ray| &before[ray][ray..ray + width]);
        for (x, _) in row.iter().enumerate().filter(|(_, v)| !v.is_finite()) {
            sweep.found.push([seen[0][x], seen[1][x], seen[2][x]]);
        }
        sweep.rows[y] = start..sweep.found.len();
        for (here, seen) in here.iter_mut().zip(seen) {
            for ((here, &v), &seen) in here[1..=width].iter_mut().zip(row).zip(seen) {
                *here = if v.is_finite() { v } else { seen };
            }
        }
        std::mem::swap(&mut before, &mut here);
    }
    sweep
}

fn fill_row(row: &mut [f32], rays: [&[[f32; 3]]; 2], occluded: Option<&[bool]>) {
    let (mut x, mut left, mut pixels) = (0, INVALID, rays[0].iter().zip(rays[1]));
    while x < row.len() {
        if row[x].is_finite() {
            left = row[x];
            x += 1;
            continue;
        }
        let gap = row[x..].iter().position(|v| v.is_finite()).map_or(row.len(), |n| x + n);
        let right = row.get(gap).copied().unwrap_or(INVALID);
        let margin = left.is_finite() != right.is_finite();
        for ((at, v), (up, down)) in (x..gap).zip(&mut row[x..gap]).zip(&mut pixels) {
            let background = occluded.is_none_or(|o| o[at]);
            *v = if margin { left.min(right) } else { choose([left, right], up, down, background) };
        }
        x = gap;
    }
}

/// The second lowest (background) or third lowest of the values found.
fn choose(sides: [f32; 2], up: &[f32; 3], down: &[f32; 3], background: bool) -> f32 {
    let [mut first, mut second, mut third] = [INVALID; 3];
    for &v in sides.iter().chain(up).chain(down) {
        third = third.min(second.max(v));
        second = second.min(first.max(v));
        first = first.min(v);
    }
    if third.is_finite() && !background {
        third
    } else if second.is_finite() {
        second
    } else {
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        image::Size,
        stereo::testing::{bits, cpus, maps},
    };

    const RAYS: [(i64, i64); 8] = [(-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (1, -1), (-1, 1), (1, 1)];

    fn reference(map: &Image<f32>, occluded: Option<&Image<bool>>) -> Image<f32> {
        let inside = |x: i64, y: i64| {
            let Size { width, height } = map.size();
            x >= 0 && y >= 0 && x < width as i64 && y < height as i64
        };
        let nearest = |x: usize, y: usize, (dx, dy): (i64, i64)| {
            let at = |i: i64| (x as i64 + i * dx, y as i64 + i * dy);
            let ray = (1..).map(at).take_while(|&(x, y)| inside(x, y));
            ray.map(|(x, y)| map.row(y as usize)[x as usize]).find(|v| v.is_finite())
        };
        Image::from_fn(map.size(), |x, y| {
            if map.row(y)[x].is_finite() {
                return map.row(y)[x];
            }
            let mut found: Vec<f32> = RAYS.iter().filter_map(|&ray| nearest(x, y, ray)).collect();
            found.sort_by(f32::total_cmp);
            let rank = if occluded.is_none_or(|o| o.row(y)[x]) { 1 } else { 2 };
            match (nearest(x, y, RAYS[0]), nearest(x, y, RAYS[1])) {
                (Some(side), None) | (None, Some(side)) => side,
                _ if found.is_empty() => INVALID,
                _ => found[rank.min(found.len() - 1)],
            }
        })
    }

    #[test]
    fn equals_looking_along_rays() {
        for mut map in maps() {
            // Signs of zero: the order of equal values is not defined.
            map.data_mut().iter_mut().for_each(|v| *v += 0.0);
            let occluded = Image::from_fn(map.size(), |x, y| (x / 3 + y) % 2 == 0);
            for occluded in [None, Some(&occluded)] {
                let expected = bits(&reference(&map, occluded));
                for cpu in cpus() {
                    let mut found = map.clone();
                    fill(&mut found, occluded, &cpu).unwrap();
                    assert_eq!(bits(&found), expected, "{}", map.size());
                }
            }
        }
    }

    #[test]
    fn occlusions_take_the_background() {
        // Background 2 to the left, foreground 9 to the right, a hidden strip between.
        let truth = |x: usize| if x < 16 { 2.0 } else { 9.0 };
        let size = Size::new(24, 9);
        let mut map = Image::from_fn(size, |x, _| if (12..16).contains(&x) { INVALID } else { truth(x) });
        fill(&mut map, None, &Cpu::sequential()).unwrap();
        assert_eq!(map, Image::from_fn(size, |x, _| truth(x)));
    }

    #[test]
    fn nothing_valid_stays_nothing() {
        let mut map = Image::filled(Size::new(5, 4), 1, INVALID);
        fill(&mut map, None, &Cpu::sequential()).unwrap();
        assert!(map.data().iter().all(|&v| v == INVALID), "no value is made up");
    }
}
