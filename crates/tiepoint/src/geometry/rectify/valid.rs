//! The crop to the pixels that are valid in both views.
//!
//! Both views keep the same columns and rows, so disparities do not change. The crop is the largest rectangle without
//! an invalid pixel; if several are equally large, the one that ends first, row by row. In each row, every column has a
//! height, the number of valid pixels in succession that end there. A rectangle that ends in this row is as high as the
//! lowest column that it covers, and extends to the nearest lower ones on either side. A stack of columns of rising
//! height finds these in one pass.

use super::Rectification;
use crate::device::Cpu;
use crate::image::{Image, Rect, Size};
use crate::{Error, Result};

/// The reason why there is no such crop.
pub(super) const NOTHING_VALID: &str =
    "no rectangle is valid in both pictures; leave the crop to valid pixels out";

impl Rectification {
    /// Crops both views to the largest rectangle in which every pixel of both is valid. The scale does not change.
    ///
    /// # Errors
    /// [`Error::Degenerate`] when no pixel is valid in both, [`Error::Memory`] when a view is too large to be
    /// held.
    pub fn crop_to_valid(&mut self, cpu: &Cpu) -> Result<()> {
        // After a crop places are rounded differently, so a pixel on the very edge of a picture may then lie outside.
        loop {
            let mut valid = self.left.coverage(cpu)?;
            let right = self.right.coverage(cpu)?;
            valid.data_mut().iter_mut().zip(right.data()).for_each(|(v, r)| *v &= r);
            let kept = largest(&valid);
            if kept.size.is_empty() {
                return Err(Error::Degenerate { model: "rectification", reason: NOTHING_VALID });
            }
            if kept.size == valid.size() {
                return Ok(());
            }
            for view in [&mut self.left, &mut self.right] {
                view.size = kept.size;
                view.principal[0] -= kept.x as f64;
                view.principal[1] -= kept.y as f64;
            }
        }
    }
}

/// The largest rectangle of pixels that are not 0.
fn largest(valid: &Image<u8>) -> Rect {
    let Size { width, height } = valid.size();
    let mut best = Rect::default();
    let mut heights = vec![0; width];
    // Columns at which a rectangle may begin, each with its height; both increase along the list.
    let mut open: Vec<(usize, usize)> = Vec::new();
    for y in 0..height {
        heights.iter_mut().zip(valid.row(y)).for_each(|(h, v)| *h = if *v == 0 { 0 } else { *h + 1 });
        for (x, h) in heights.iter().copied().chain([0]).enumerate() {
            let mut start = x;
            while let Some((first, high)) = open.pop_if(|(_, high)| *high >= h) {
                let size = Size::new(x - first, high);
                if size.area() > best.size.area() {
                    best = Rect { x: first, y: y + 1 - high, size };
                }
                start = first;
            }
            if h > 0 {
                open.push((start, h));
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Random;

    /// The area of the largest rectangle without a 0, by trying every rectangle.
    fn exhaustive(valid: &Image<u8>) -> usize {
        let Size { width, height } = valid.size();
        let mut best = 0;
        for (x, y) in (0..height).flat_map(|y| (0..width).map(move |x| (x, y))) {
            for (right, bottom) in (y..height).flat_map(|b| (x..width).map(move |r| (r, b))) {
                if (y..=bottom).all(|y| valid.row(y)[x..=right].iter().all(|v| *v != 0)) {
                    best = best.max((right + 1 - x) * (bottom + 1 - y));
                }
            }
        }
        best
    }

    #[test]
    fn no_rectangle_is_larger() {
        let mut random = Random::new(5);
        let mut random = |n: usize| random.below(n);
        for round in 0..300 {
            let size = match round {
                0 => Size::new(1, 1),
                1 => Size::new(9, 1),
                2 => Size::new(1, 9),
                _ => Size::new(1 + random(9), 1 + random(9)),
            };
            let holes = 2 + random(9);
            let valid = Image::from_fn(size, |_, _| if random(holes) == 0 { 0 } else { 255 });
            let found = largest(&valid);
            assert_eq!(found.size.area(), exhaustive(&valid), "{round}: {found:?} of {valid:?}");
            let rows = found.y..found.y + found.size.height;
            let full = |y: usize| valid.row(y)[found.x..found.x + found.size.width].iter().all(|v| *v == 255);
            assert!(rows.into_iter().all(full), "{round}: {found:?} has holes");
        }
        assert!(largest(&Image::new(Size::new(4, 3))).size.is_empty(), "nothing is valid");
    }
}
