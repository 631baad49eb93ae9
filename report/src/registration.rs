//! One picture on the pixels of another.

use crate::disparity::sampled;
use crate::page::Render;
use crate::picture::embed;
use crate::{Detail, Picture, PicturePart, block, part, still};
use serde_json::{Value, json};
use tiepoint::image::ImageView;
use tiepoint::{Error, Result};

/// Where a tie point was predicted and where it was found, in pixels of the reference.
#[derive(Clone, Copy, Debug)]
pub struct Arrow {
    /// Where the model puts the feature of MOVING.
    pub predicted: [f32; 2],
    /// Where the feature of REFERENCE lies.
    pub found: [f32; 2],
}

/// A picture warped onto another.
#[derive(Clone, Debug)]
pub struct RegistrationView<'a> {
    /// The picture that stays.
    pub reference: Picture<'a>,
    /// The other picture on the reference's pixels, of the same size.
    pub warped: Picture<'a>,
    /// Where the warped picture shows something: not 0.
    pub covered: ImageView<'a, u8>,
    /// Residuals of the inliers.
    pub arrows: Vec<Arrow>,
    /// Parts of the other picture, with corners on the reference's pixels. May be empty.
    pub parts: Vec<PicturePart>,
    /// The text below the view. May be empty.
    pub caption: String,
}

impl Render for RegistrationView<'_> {
    fn render(&self, id: &str, detail: Detail) -> Result<(String, Value)> {
        let size = self.reference.image.size();
        for other in [self.warped.image.size(), self.covered.size()] {
            if other != size {
                return Err(Error::Mismatch(format!("the reference is {size}, what lies on it {other}")));
            }
        }
        let reference = embed(&self.reference, &format!("{id}-a"), detail)?;
        let warped = embed(&self.warped, &format!("{id}-b"), detail)?;
        let covered = sampled(self.covered, detail.step(size));
        let every = self.arrows.len().div_ceil(detail.matches.max(1)).max(1);
        let arrows: Vec<&Arrow> = self.arrows.iter().step_by(every).collect();
        let column = |value: fn(&Arrow) -> f32| block::f32s(arrows.iter().map(|a| value(a)));
        let (width, height) = (size.width as f64, size.height as f64);
        let (half, line) = (width / 2.0, width / 400.0);
        let left = still::image(&reference, 0.0, "");
        let right = still::image(&warped, 0.0, &format!("clip-path=\"url(#{id}-half)\""));
        let content = format!(
            "<clipPath id=\"{id}-half\"><rect x=\"{half}\" y=\"0\" width=\"{half}\" height=\"{height}\"/></clipPath>\
             {left}{right}<path d=\"M{half} 0V{height}\" stroke=\"#fff\" stroke-width=\"{line:.2}\"/>",
        );
        let label = format!(
            "{} on the left and, on its pixels, {} on the right",
            self.reference.name, self.warped.name
        );
        let data = json!({
            "view": "registration",
            "reference": reference.described,
            "warped": warped.described,
            "covered": block::u8s(covered.data().iter().map(|v| u8::from(*v != 0)))?,
            "total": self.arrows.len(),
            "parts": part::described(&self.parts),
            "arrows": {
                "px": column(|a| a.predicted[0])?,
                "py": column(|a| a.predicted[1])?,
                "qx": column(|a| a.found[0])?,
                "qy": column(|a| a.found[1])?,
            },
        });
        Ok((still::svg(width, height, &label, &content), data))
    }
}
