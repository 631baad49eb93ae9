//! Colour maps whose lightness rises evenly, so that equal steps look equal, to the colour-blind too. viridis, plasma
//! and inferno are by N. Smith and S. van der Walt (2015), dedicated to the public domain under CC0.

use serde_json::{Value, json};

/// Red, green and blue.
pub type Rgb = [u8; 3];

/// viridis, every seventeenth of its 256 colours.
pub const VIRIDIS: [Rgb; 16] = [
    [68, 1, 84],
    [72, 26, 108],
    [71, 47, 125],
    [65, 68, 135],
    [57, 86, 140],
    [49, 104, 142],
    [42, 120, 142],
    [35, 136, 142],
    [31, 152, 139],
    [34, 168, 132],
    [53, 183, 121],
    [84, 197, 104],
    [122, 209, 81],
    [165, 219, 54],
    [210, 226, 27],
    [253, 231, 37],
];

/// plasma, ten colours.
const PLASMA: [Rgb; 10] = [
    [13, 8, 135],
    [70, 3, 159],
    [114, 1, 168],
    [156, 23, 158],
    [189, 55, 134],
    [216, 87, 107],
    [237, 121, 83],
    [251, 159, 58],
    [253, 202, 38],
    [240, 249, 33],
];

/// inferno, ten colours.
const INFERNO: [Rgb; 10] = [
    [0, 0, 4],
    [27, 12, 65],
    [74, 12, 107],
    [120, 28, 109],
    [165, 44, 96],
    [207, 68, 70],
    [237, 105, 37],
    [251, 155, 6],
    [247, 209, 61],
    [252, 255, 164],
];

/// From negative to positive, through grey: the colour-blind can tell blue from orange.
const SIGNED: [Rgb; 5] = [[0, 72, 200], [110, 160, 230], [235, 235, 235], [240, 150, 90], [200, 50, 10]];

/// From black to white.
const GREY: [Rgb; 2] = [[0, 0, 0], [255, 255, 255]];

/// All maps, for the script.
pub(crate) fn maps() -> Value {
    json!({ "viridis": VIRIDIS, "plasma": PLASMA, "inferno": INFERNO, "grey": GREY, "signed": SIGNED })
}

/// The colour of a map at `t` from 0 to 1; NaN as 0.
pub fn at(map: &[Rgb], t: f32) -> Rgb {
    let last = map.len().saturating_sub(1);
    let place = t.clamp(0.0, 1.0) * last as f32;
    let i = (place as usize).min(last.saturating_sub(1));
    let (Some(a), Some(b)) = (map.get(i), map.get(i + 1)) else {
        return map.first().copied().unwrap_or_default();
    };
    let share = place - i as f32;
    std::array::from_fn(|c| (f32::from(a[c]) + (f32::from(b[c]) - f32::from(a[c])) * share).round() as u8)
}
