//! Slanted walls and flat coloured panels: scenes with little contrast in grey and much in colour.

use super::{Outline, Random, StereoSceneOptions, Surface};

const GREYS: [f64; 2] = [0.40, 0.46];

/// The walls of a room, farthest in their corner and nearest at the sides, and panels in front of them.
pub(super) fn compose(options: &StereoSceneOptions) -> Vec<Surface> {
    let mut random = Random::new(options.seed ^ 0x9a_7e15);
    let [low, high] = options.disparities;
    let (w, h) = (options.size.width as f64, options.size.height as f64);
    let corner = random.range(0.35, 0.65) * w;
    let slope = (0.4 * (high - low) / corner.max(w - corner)).min(0.9);
    let mut surfaces: Vec<Surface> = [-slope, slope]
        .map(|slope| Surface {
            centre: [corner, h / 2.0],
            disparity: low,
            slope: [slope, 0.0],
            tint: tint(&mut random),
            ..Surface::default()
        })
        .into();
    surfaces.extend((0..options.surfaces).map(|i| panel(i, options, &mut random)));
    surfaces
}

/// A rectangle, or every third a thin upright bar, in the nearer half of the range.
fn panel(i: usize, options: &StereoSceneOptions, random: &mut Random) -> Surface {
    let [low, high] = options.disparities;
    let (w, h) = (options.size.width as f64, options.size.height as f64);
    let side = w.min(h);
    let reach = match i % 3 {
        2 => [random.range(1.5, 4.0), random.range(0.2, 0.4) * side],
        _ => [random.range(0.06, 0.16) * side, random.range(0.06, 0.16) * side],
    };
    let disparity = low + (high - low) * random.range(0.5, 0.95);
    let room = (high - disparity).min(0.1 * (high - low));
    let slope = [0.0, random.range(-1.0, 1.0) * room / reach[1].max(1.0)];
    Surface {
        outline: Outline::Rectangle,
        centre: [random.range(0.1, 0.95) * w, random.range(0.1, 0.9) * h],
        reach: reach.map(|r| r.max(0.5)),
        disparity,
        slope,
        plain: Some(random.range(GREYS[0], GREYS[1])),
        tint: tint(random),
        ..Surface::default()
    }
}

/// A colour whose luma is that of grey.
fn tint(random: &mut Random) -> [f64; 3] {
    let (red, blue) = (random.range(0.3, 1.8), random.range(0.3, 1.8));
    [red, (1.0 - 0.2126 * red - 0.0722 * blue) / 0.7152, blue]
}
