//! Disparities, why some are missing, how far they are from the truth, and the scene in space.

use crate::page::Render;
use crate::picture::{Embedded, embed, jpeg};
use crate::{Detail, Picture, VIRIDIS, block, colour_at, still};
use serde_json::{Value, json};
use tiepoint::geometry::calibration::RectifiedCalibration;
use tiepoint::image::{Image, ImageView, Size};
use tiepoint::stereo::Reason;
use tiepoint::{Error, Result};

/// Disparities of the left view.
#[derive(Clone, Debug)]
pub struct DisparityView<'a> {
    /// The rectified pair, where there is one to show.
    pub pair: Option<[Picture<'a>; 2]>,
    /// The disparities, not finite where there are none.
    pub disparity: ImageView<'a, f32>,
    /// From 0 to 1.
    pub confidence: Option<ImageView<'a, f32>>,
    /// Why disparities are missing.
    pub reasons: Option<ImageView<'a, Reason>>,
    /// The true disparities, not finite where they are unknown.
    pub truth: Option<ImageView<'a, f32>>,
    /// The calibration, for metric depth.
    pub calibration: Option<RectifiedCalibration>,
    /// The disparities at both ends of the colour map at first.
    pub range: [f32; 2],
    /// The text below the view. May be empty.
    pub caption: String,
}

/// The range of disparities that the colours show by default: that of the valid ones without the least and the greatest
/// hundredth. 0 to 1 if there are none.
pub fn usual_range(disparity: ImageView<'_, f32>) -> [f32; 2] {
    // A million pixels are enough to estimate the hundredths.
    let Size { width, height } = disparity.size();
    let seen = (0..width * height).step_by(((width * height) >> 20).max(1));
    let seen = seen.map(|i| disparity.row(i / width)[i % width]);
    let mut valid: Vec<f32> = seen.filter(|v| v.is_finite()).collect();
    if valid.is_empty() {
        return [0.0, 1.0];
    }
    let hundredth = valid.len() / 100;
    let low = *valid.select_nth_unstable_by(hundredth, f32::total_cmp).1;
    let at = valid.len() - 1 - hundredth;
    let high = *valid.select_nth_unstable_by(at, f32::total_cmp).1;
    if low < high { [low, high] } else { [low - 0.5, low + 0.5] }
}

/// The longest side of the still picture of disparities.
const STILL: usize = 900;

const REASONS: [(Reason, &str); 6] = [
    (Reason::None, "valid"),
    (Reason::NoData, "no data"),
    (Reason::Ambiguous, "ambiguous"),
    (Reason::Occluded, "occluded"),
    (Reason::Inconsistent, "inconsistent"),
    (Reason::Speckle, "speckle"),
];

impl Render for DisparityView<'_> {
    fn render(&self, id: &str, detail: Detail) -> Result<(String, Value)> {
        let size = self.disparity.size();
        self.check()?;
        let embedded = |picture, side| embed(picture, &format!("{id}-{side}"), detail);
        let pictures = match &self.pair {
            Some([a, b]) => Some([embedded(a, "a")?, embedded(b, "b")?]),
            None => None,
        };
        let step = detail.step(size);
        let map = |image: ImageView<'_, f32>| block::map(&sampled(image, step));
        let confidence = self.confidence.map(|c| {
            let byte = |v: &f32| (255.0 * v.clamp(0.0, 1.0)).round() as u8;
            block::u8s(sampled(c, step).data().iter().map(byte))
        });
        let reasons = self.reasons.map(|r| block::u8s(sampled(r, step).data().iter().map(|r| *r as u8)));
        let data = json!({
            "view": "disparity",
            "width": size.width,
            "height": size.height,
            "step": step,
            "columns": size.width.div_ceil(step),
            "rows": size.height.div_ceil(step),
            "left": pictures.as_ref().map(|[left, _]| left.described.clone()),
            "right": pictures.as_ref().map(|[_, right]| right.described.clone()),
            "disparity": map(self.disparity)?,
            "truth": self.truth.map(map).transpose()?,
            "confidence": confidence.transpose()?,
            "reasons": reasons.transpose()?,
            "reason_names": REASONS.map(|(reason, name)| json!([reason as u8, name])),
            "counts": self.reasons.map(counts),
            "rectified": self.calibration.map(|c| json!({
                "focal": c.focal, "principal": c.principal, "doffs": c.doffs, "baseline": c.baseline
            })),
            "range": self.range,
        });
        Ok((self.still(&pictures)?, data))
    }
}

impl DisparityView<'_> {
    fn check(&self) -> Result<()> {
        let size = self.disparity.size();
        let others = [
            self.confidence.map(|c| c.size()),
            self.reasons.map(|r| r.size()),
            self.truth.map(|t| t.size()),
            self.pair.as_ref().map(|[left, _]| left.image.size()),
        ];
        match others.into_iter().flatten().find(|other| *other != size) {
            Some(other) => {
                Err(Error::Mismatch(format!("the disparities are {size}, what belongs to them {other}")))
            }
            None if size.is_empty() => Err(Error::Image(format!("the disparities are empty ({size})"))),
            None => Ok(()),
        }
    }

    /// The left picture and its disparities in colours, and the hidden right picture for the script.
    fn still(&self, pictures: &Option<[Embedded; 2]>) -> Result<String> {
        let Size { width, height } = self.disparity.size();
        let step = width.max(height).div_ceil(STILL).max(1);
        let colours = self.colours(step);
        let url = format!("data:image/jpeg;base64,{}", block::base64(&jpeg(&colours)?));
        let (cw, ch) = (colours.size().width * step, colours.size().height * step);
        let gap = if pictures.is_some() { width + (width / 64).clamp(1, 32) } else { 0 };
        let [left, right] = match pictures {
            Some([a, b]) => [still::image(a, 0.0, ""), still::image(b, 0.0, "display=\"none\"")],
            None => [String::new(), String::new()],
        };
        let content = format!(
            "{left}{right}<image x=\"{gap}\" y=\"0\" width=\"{cw}\" height=\"{ch}\" preserveAspectRatio=\"none\" \
             href=\"{url}\"/>"
        );
        let label = "Disparities: dark is far, bright is near, black has none";
        Ok(still::svg((gap + width) as f64, height as f64, label, &content))
    }

    fn colours(&self, step: usize) -> Image<u8> {
        let [low, high] = self.range;
        let scale = 1.0 / (high - low).max(f32::MIN_POSITIVE);
        let small = sampled(self.disparity, step);
        let colour = |d: &f32| if d.is_finite() { colour_at(&VIRIDIS, (d - low) * scale) } else { [0; 3] };
        let mut out = Image::filled(small.size(), 3, 0);
        for (pixel, d) in out.data_mut().chunks_exact_mut(3).zip(small.data()) {
            pixel.copy_from_slice(&colour(d));
        }
        out
    }
}

/// The middle of every square of `step` pixels.
pub(crate) fn sampled<T: Copy + Default>(image: ImageView<'_, T>, step: usize) -> Image<T> {
    let Size { width, height } = image.size();
    let middle = |i: usize, most: usize| (i * step + step / 2).min(most - 1);
    Image::from_fn(Size::new(width.div_ceil(step), height.div_ceil(step)), |x, y| {
        image.row(middle(y, height))[middle(x, width)]
    })
}

fn counts(reasons: ImageView<'_, Reason>) -> Value {
    let pixels = || (0..reasons.size().height).flat_map(|y| reasons.row(y));
    let count = |reason: &Reason| pixels().filter(|r| *r == reason).count();
    Value::Object(REASONS.iter().map(|(reason, name)| ((*name).to_owned(), count(reason).into())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let map = Image::from_fn(Size::new(100, 100), |x, y| if y == 0 { 9e9 } else { x as f32 });
        assert_eq!(usual_range(map.view()), [1.0, 99.0], "the lowest and highest hundredth are left out");
        let none = Image::filled(Size::new(4, 4), 1, f32::INFINITY);
        assert_eq!(usual_range(none.view()), [0.0, 1.0], "nothing valid");
        let flat = Image::filled(Size::new(4, 4), 1, 7.0);
        assert_eq!(usual_range(flat.view()), [6.5, 7.5], "one value");
    }
}
