//! Two pictures and their matches.

use crate::page::Render;
use crate::picture::{Embedded, embed};
use crate::{Detail, Picture, PicturePart, VIRIDIS, block, colour_at, part, still};
use serde_json::{Value, json};
use tiepoint::Result;
use tiepoint::feature::Keypoint;
use tiepoint::geometry::{Homography, Model};
use tiepoint::matching::Match;

/// One match.
#[derive(Clone, Copy, Debug)]
pub struct KeypointMatch {
    /// Indices, distance and ratio.
    pub pair: Match,
    /// The feature in A, in pixels of the picture shown.
    pub a: Keypoint,
    /// The feature in B.
    pub b: Keypoint,
    /// How far it is from the model, pixels; NaN without a model.
    pub residual: f32,
    /// Whether the model agrees with it.
    pub inlier: bool,
}

/// Two pictures and their matches.
#[derive(Clone, Debug)]
pub struct MatchesView<'a> {
    /// The first picture.
    pub a: Picture<'a>,
    /// The second picture.
    pub b: Picture<'a>,
    /// The matches.
    pub rows: Vec<KeypointMatch>,
    /// The model from A to B, for the place or line that the cursor predicts.
    pub b_from_a: Option<Model>,
    /// The true homography from A to B: matches then have an error too.
    pub truth: Option<Homography>,
    /// Half the side of what a descriptor sees, in multiples of its scale.
    pub support: f32,
    /// The name of the residual in two or three words; by default it follows from the model.
    pub residual_name: Option<&'static str>,
    /// Parts of A, with what the inliers there say. May be empty.
    pub parts: Vec<PicturePart>,
    /// The text below the view. May be empty.
    pub caption: String,
}

const LINES: usize = 120;

impl Render for MatchesView<'_> {
    fn render(&self, id: &str, detail: Detail) -> Result<(String, Value)> {
        let embedded = |picture, side| embed(picture, &format!("{id}-{side}"), detail);
        let pictures = [embedded(&self.a, "a")?, embedded(&self.b, "b")?];
        let step = self.rows.len().div_ceil(detail.matches.max(1)).max(1);
        let rows: Vec<&KeypointMatch> = self.rows.iter().step_by(step).collect();
        let still = still(&pictures, &rows);
        let [a, b] = pictures.map(|p| p.described);
        let data = json!({
            "view": "matches",
            "a": a,
            "b": b,
            "total": self.rows.len(),
            "model": self.b_from_a.map(|m| json!({ "kind": m.kind().to_string(), "matrix": m.matrix().as_flattened() })),
            "truth": self.truth.map(|t| t.matrix().as_flattened().to_vec()),
            "support": self.support,
            "parts": part::described(&self.parts),
            "residual_name": self.residual_name.unwrap_or(match self.b_from_a {
                Some(model) if model.kind().is_epipolar() => "distance from the epipolar line",
                Some(_) | None => "residual",
            }),
            "columns": columns(&rows)?,
        });
        Ok((still, data))
    }
}

/// The still picture: side by side, with lines for some of the inliers.
pub(crate) fn still([a, b]: &[Embedded; 2], rows: &[&KeypointMatch]) -> String {
    let (wa, ha) = (a.size.width as f64, a.size.height as f64);
    let (wb, hb) = (b.size.width as f64, b.size.height as f64);
    let left = wa + (wa / 64.0).clamp(1.0, 32.0);
    let longest = (left + wb).max(ha).max(hb);
    let inliers: Vec<_> = rows.iter().filter(|r| r.inlier).collect();
    let worst = inliers.iter().map(|r| r.residual).filter(|r| r.is_finite()).fold(0.0, f32::max);
    let line = |r: &&&KeypointMatch| {
        let ends = [r.a.x + 0.5, r.a.y + 0.5, r.b.x + 0.5, r.b.y + 0.5].map(f64::from);
        let [x1, y1, x2, y2] = ends;
        if !ends.iter().all(|v| v.is_finite()) {
            return String::new();
        }
        let shade = still::colour(colour_at(&VIRIDIS, 0.3 + 0.7 * r.residual / worst.max(f32::MIN_POSITIVE)));
        format!("<path d=\"M{x1:.1} {y1:.1}L{:.1} {y2:.1}\" stroke=\"{shade}\"/>", x2 + left)
    };
    let lines: String = inliers.iter().step_by(inliers.len().div_ceil(LINES).max(1)).map(line).collect();
    let (images, width) = (still::image(a, 0.0, "") + &still::image(b, left, ""), longest / 900.0);
    let content = format!("{images}<g stroke-width=\"{width:.2}\" stroke-opacity=\".8\">{lines}</g>");
    let label = format!("{} and {} side by side with lines between matches", a.text("name"), b.text("name"));
    still::svg(left + wb, ha.max(hb), &label, &content)
}

pub(crate) fn columns(rows: &[&KeypointMatch]) -> Result<Value> {
    let f32s = |value: fn(&KeypointMatch) -> f32| block::f32s(rows.iter().map(|r| value(r)));
    Ok(json!({
        "ax": f32s(|r| r.a.x)?,
        "ay": f32s(|r| r.a.y)?,
        "ascale": f32s(|r| r.a.scale)?,
        "aangle": f32s(|r| r.a.angle)?,
        "bx": f32s(|r| r.b.x)?,
        "by": f32s(|r| r.b.y)?,
        "bscale": f32s(|r| r.b.scale)?,
        "bangle": f32s(|r| r.b.angle)?,
        "distance": f32s(|r| r.pair.distance)?,
        "ratio": f32s(|r| r.pair.ratio)?,
        "residual": f32s(|r| r.residual)?,
        "inlier": block::u8s(rows.iter().map(|r| u8::from(r.inlier)))?,
        "a": block::u32s(rows.iter().map(|r| r.pair.a))?,
        "b": block::u32s(rows.iter().map(|r| r.pair.b))?,
    }))
}
