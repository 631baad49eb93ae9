//! A picture and its features.

use crate::page::Render;
use crate::picture::embed;
use crate::{Detail, Picture, VIRIDIS, block, colour_at, still};
use serde_json::{Value, json};
use tiepoint::Result;
use tiepoint::feature::{Descriptors, Features, Keypoint};

/// A picture and its features.
#[derive(Clone, Debug)]
pub struct FeaturesView<'a> {
    /// The picture.
    pub picture: Picture<'a>,
    /// The features, the most important first.
    pub keypoints: &'a [Keypoint],
    /// Half the side of what a descriptor sees, in multiples of its scale.
    pub support: f32,
    /// The text below the view. May be empty.
    pub caption: String,
}

/// Half the side of a descriptor's window, in multiples of its scale: SIFT has four cells of 3σ, SURF, whose descriptors
/// alone hold negative values, four of 5σ.
pub fn support(features: &Features) -> f32 {
    let is_signed =
        matches!(&features.descriptors, Descriptors::F32(values) if values.iter().any(|v| *v < 0.0));
    if is_signed { 10.0 } else { 6.0 }
}

/// The most circles of the still picture.
const CIRCLES: usize = 400;

impl Render for FeaturesView<'_> {
    fn render(&self, id: &str, detail: Detail) -> Result<(String, Value)> {
        let picture = embed(&self.picture, &format!("{id}-a"), detail)?;
        let shown = &self.keypoints[..self.keypoints.len().min(detail.matches)];
        let (width, height) = (picture.size.width as f64, picture.size.height as f64);
        let circle = |k: &Keypoint| {
            let (x, y, r) = (k.x + 0.5, k.y + 0.5, self.support * k.scale);
            if ![x, y, r].iter().all(|v| v.is_finite()) {
                return String::new();
            }
            // From a scale of 1 to one of 32.
            let shade = still::colour(colour_at(&VIRIDIS, 0.3 + 0.14 * libm::log2f(k.scale.max(1.0))));
            format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r:.1}\" stroke=\"{shade}\"/>")
        };
        let circles: String =
            shown.iter().step_by(shown.len().div_ceil(CIRCLES).max(1)).map(circle).collect();
        let (image, line) = (still::image(&picture, 0.0, ""), width.max(height) / 700.0);
        let content = format!("{image}<g fill=\"none\" stroke-width=\"{line:.2}\">{circles}</g>");
        let column = |value: fn(&Keypoint) -> f32| block::f32s(shown.iter().map(value));
        let data = json!({
            "view": "features",
            "picture": picture.described,
            "total": self.keypoints.len(),
            "support": self.support,
            "columns": {
                "x": column(|k| k.x)?,
                "y": column(|k| k.y)?,
                "scale": column(|k| k.scale)?,
                "angle": column(|k| k.angle)?,
                "response": column(|k| k.response)?,
            },
        });
        let label = format!("{} with circles around its features", self.picture.name);
        Ok((still::svg(width, height, &label, &content), data))
    }
}
