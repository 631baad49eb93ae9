//! Colour maps whose lightness rises evenly, so that equal steps look equal, to the colour-blind too. viridis, plasma
//! and inferno are by N. Smith and S. van der Walt (2015), dedicated to the public domain under CC0.

use serde_json::{Value, json};

/// Red, green and blue.
pub type Rgb = [u8; 3];

/// Colours as they are written in style sheets: 0xrrggbb.
const fn rgb<const N: usize>(hex: [u32; N]) -> [Rgb; N] {
    let (mut out, mut i) = ([[0; 3]; N], 0);
    while i < N {
        let [_, r, g, b] = hex[i].to_be_bytes();
        out[i] = [r, g, b];
        i += 1;
    }
    out
}

/// viridis, every seventeenth of its 256 colours.
pub const VIRIDIS: [Rgb; 16] = rgb([
    0x440154, 0x481a6c, 0x472f7d, 0x414487, 0x39568c, 0x31688e, 0x2a788e, 0x23888e, 0x1f988b, 0x22a884,
    0x35b779, 0x54c568, 0x7ad151, 0xa5db36, 0xd2e21b, 0xfde725,
]);

/// plasma, ten colours.
const PLASMA: [Rgb; 10] =
    rgb([0x0d0887, 0x46039f, 0x7201a8, 0x9c179e, 0xbd3786, 0xd8576b, 0xed7953, 0xfb9f3a, 0xfdca26, 0xf0f921]);

/// inferno, ten colours.
const INFERNO: [Rgb; 10] =
    rgb([0x000004, 0x1b0c41, 0x4a0c6b, 0x781c6d, 0xa52c60, 0xcf4446, 0xed6925, 0xfb9b06, 0xf7d13d, 0xfcffa4]);

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
