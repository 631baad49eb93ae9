//! How other sensors show a scene: with the same edges, but other brightness.

use super::Random;
use crate::image::Image;
use crate::options::named;

named! {
    /// The change of a scene's brightness by another sensor.
    pub enum Sensor as "sensor" {
        #[default]
        "inverted": Inverted, "Black and white change places, as warm and cold in thermal images";
        "folded": Folded, "Black and white both become white, and grey black: one brightness has two meanings";
        "speckle": Speckle, "Inverted, and multiplied by the mean of three looks of radar";
        "edges": Edges, "Dark lines where brightness changes, and white between them, as on a map";
    }
}

/// The number of looks of radar that are averaged.
const LOOKS: usize = 3;

impl Sensor {
    /// A grey picture as this sensor shows it; `seed` is that of its noise.
    pub fn shows(self, image: &Image<u8>, seed: u64) -> Image<u8> {
        let value = |x: usize, y: usize| f64::from(image.row(y)[x]);
        let shown = |x: usize, y: usize| match self {
            Self::Inverted => 255.0 - value(x, y),
            Self::Folded => (2.0 * (value(x, y) - 128.0)).abs(),
            Self::Speckle => {
                let mut random = Random::at(seed, 48, x as i64, y as i64);
                let looks: f64 = (0..LOOKS).map(|_| -libm::log(1.0 - random.unit())).sum();
                (255.0 - value(x, y)) * looks / LOOKS as f64
            }
            Self::Edges => {
                let [left, above] = [value(x.saturating_sub(1), y), value(x, y.saturating_sub(1))];
                255.0 - 3.0 * (value(x, y) - left).abs().max((value(x, y) - above).abs())
            }
        };
        Image::from_fn(image.size(), |x, y| shown(x, y).clamp(0.0, 255.0) as u8)
    }
}
