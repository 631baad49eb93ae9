//! A surface in front of two cameras, defined by its disparity on the left image.
//!
//! With (u, v) the place relative to the surface's centre, (s, t) its slope, (r, h) its reach and b its bulge, the
//! disparity is d(u, v) = d₀ + s·u + t·v − b·((u/r)² + (v/h)²): a plane when b is 0, else a dome (b > 0) or a bowl.
//! What the left image shows at x the right one shows at x − d, so the place seen at x' on the right is the root of
//! q·u² + p·u = x' − c + d(0, v) with q = b/r², p = 1 − s and c the centre's column: in closed form, exact to the
//! rounding of f64.

/// The shape of a surface's outline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Outline {
    /// Everywhere.
    #[default]
    Endless,
    /// The ellipse whose half axes are the reach.
    Ellipse,
    /// The rectangle whose half sides are the reach.
    Rectangle,
}

/// One surface of a stereo scene.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Surface {
    /// Its outline on the left image. Default: endless.
    pub(super) outline: Outline,
    /// The centre on the left image, in pixels. Default (0, 0).
    pub(super) centre: [f64; 2],
    /// Half its width and half its height, in pixels; above 0. Default (1, 1).
    pub(super) reach: [f64; 2],
    /// The disparity at the centre, in pixels. Default 0.
    pub(super) disparity: f64,
    /// The increase of the disparity from a pixel to its right and to its lower neighbour. Default (0, 0).
    pub(super) slope: [f64; 2],
    /// The drop of the disparity from the centre to the end of either half axis. Default 0.
    pub(super) bulge: f64,
    /// Brightness from 0 (black) to 1 (white) where the surface has no texture. Default: it has one.
    pub(super) plain: Option<f64>,
    /// The factors from its brightness to red, green and blue, each 0 or more. Default: 1 each, grey.
    pub(super) tint: [f64; 3],
}

impl Default for Surface {
    fn default() -> Self {
        Self {
            outline: Outline::Endless,
            centre: [0.0; 2],
            reach: [1.0; 2],
            disparity: 0.0,
            slope: [0.0; 2],
            bulge: 0.0,
            plain: None,
            tint: GREY,
        }
    }
}

const GREY: [f64; 3] = [1.0; 3];

impl Surface {
    /// The grey of its colour at a brightness: Rec. 709 luma.
    pub(super) fn grey(&self, brightness: f64) -> f64 {
        let [r, g, b] = self.tint;
        if self.tint == GREY { brightness } else { brightness * (0.2126 * r + 0.7152 * g + 0.0722 * b) }
    }

    pub(super) fn meets(&self, y: f64) -> bool {
        self.outline == Outline::Endless || (y - self.centre[1]).abs() <= self.reach[1]
    }

    /// The columns of a row of the left image, and of the right one, between which it lies, with a margin of a pixel.
    pub(super) fn columns(&self, y: f64) -> [[f64; 2]; 2] {
        if self.outline == Outline::Endless {
            return [[f64::NEG_INFINITY, f64::INFINITY]; 2];
        }
        let v = y - self.centre[1];
        let ends = [-self.reach[0], self.reach[0]];
        let left = ends.map(|u| self.centre[0] + u);
        // Points keep their order from left to right in the right image.
        let right = ends.map(|u| self.centre[0] + u - self.at(u, v));
        [left, right].map(|[a, b]| [a - 1.0, b + 1.0])
    }

    /// The disparity at (x, y) of the left image, if the surface reaches there.
    #[inline(always)]
    pub(super) fn seen_left(&self, x: f64, y: f64) -> Option<f64> {
        let (u, v) = (x - self.centre[0], y - self.centre[1]);
        self.contains(u, v).then(|| self.at(u, v))
    }

    /// The place on the left image of what the right one shows at (x, y), if the surface reaches there.
    #[inline(always)]
    pub(super) fn seen_right(&self, x: f64, y: f64) -> Option<f64> {
        let v = y - self.centre[1];
        let (p, q) = (1.0 - self.slope[0], self.bulge / (self.reach[0] * self.reach[0]));
        let t = x - self.centre[0] + self.at(0.0, v);
        // The root of the branch that faces the right camera; NaN where there is none.
        let u = 2.0 * t / (p + (p * p + 4.0 * q * t).sqrt());
        self.contains(u, v).then_some(u + self.centre[0])
    }

    #[inline(always)]
    fn at(&self, u: f64, v: f64) -> f64 {
        let plane = self.disparity + self.slope[0] * u + self.slope[1] * v;
        if self.bulge == 0.0 {
            return plane;
        }
        let (a, b) = (u / self.reach[0], v / self.reach[1]);
        plane - self.bulge * (a * a + b * b)
    }

    #[inline(always)]
    fn contains(&self, u: f64, v: f64) -> bool {
        let (a, b) = (u / self.reach[0], v / self.reach[1]);
        match self.outline {
            Outline::Endless => u.is_finite(),
            Outline::Ellipse => a * a + b * b <= 1.0,
            Outline::Rectangle => a.abs() <= 1.0 && b.abs() <= 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_views_meet_on_the_surface() {
        for (outline, slope, bulge) in [
            (Outline::Endless, [0.0, 0.0], 0.0),
            (Outline::Ellipse, [0.4, -0.2], 0.0),
            (Outline::Rectangle, [-0.3, 0.1], 9.0),
            (Outline::Ellipse, [0.2, 0.3], -12.0),
        ] {
            let surface = Surface {
                outline,
                centre: [50.0, 40.0],
                reach: [48.0, 30.0],
                disparity: -7.25,
                slope,
                bulge,
                ..Surface::default()
            };
            for (x, y) in [(50.0, 40.0), (33.0, 25.0), (80.0, 47.0)] {
                let d = surface.seen_left(x, y).unwrap();
                let back = surface.seen_right(x - d, y).unwrap();
                assert!((back - x).abs() < 1e-10, "{surface:?} at ({x}, {y}): back at {back}");
            }
            let outside = surface.seen_left(50.0, 71.0);
            assert_eq!(outside.is_some(), outline == Outline::Endless, "{outline:?} ends at its reach");
        }
    }
}
