//! Verdicts: whether a result is good, doubtful or poor, and why.
//!
//! Some figures look good even for a wrong result: the residual of inliers never exceeds the threshold that made them
//! inliers, and a picture warped by a wrong map still covers the other. So verdicts use other figures. Each [`Reason`]
//! holds a measured number, the value expected of a good result and, if it is not good, what to do next. The verdict is
//! that of the worst reason. Nothing here changes a result.
//!
//! - [`PairEvidence`]: tie points and their model.
//! - [`StereoEvidence`]: a disparity map.
//! - [`CollectionEvidence`]: the verified pairs of many photographs.
//!
//! The limits are constants with the measurements that led to them: `docs/verdicts.md` shows them on pairs with truth.

mod collection;
mod deviations;
mod pair;
mod reach;
mod stereo;

pub use collection::{CollectionEvidence, PairCounts};
pub use pair::{Cell, PairEvidence};
pub use stereo::{AT_END, StereoEvidence, VALID};

use crate::error::counted;
use crate::geometry::rectify::{Agreement, SAME_DEPTH};
use serde::Serialize;

/// How far a result can be believed, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every figure is in the range of right results.
    Good,
    /// A figure is unusual: look at the result before you use it.
    Doubtful,
    /// A figure is in the range of wrong results.
    Poor,
}

impl Verdict {
    /// Its name: `good`, `doubtful` or `poor`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Doubtful => "doubtful",
            Self::Poor => "poor",
        }
    }

    /// The verdict on a number that is doubtful from the first limit up, and poor from the second up.
    fn above(value: f64, [doubtful, poor]: [f64; 2]) -> Self {
        match value {
            v if v >= poor => Self::Poor,
            v if v >= doubtful => Self::Doubtful,
            _ => Self::Good,
        }
    }

    /// The verdict on a number that is doubtful below the first limit, and poor below the second.
    fn below(value: f64, [doubtful, poor]: [f64; 2]) -> Self {
        match value {
            v if v < poor => Self::Poor,
            v if v < doubtful => Self::Doubtful,
            _ => Self::Good,
        }
    }
}

/// One number behind a verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reason {
    /// A key of one or two words that names what was measured.
    pub measure: &'static str,
    /// The number.
    pub value: f64,
    /// The value or range of a good result, in words.
    pub expected: String,
    /// The verdict on this number alone.
    pub verdict: Verdict,
    /// A clause with the number, for users.
    pub text: String,
    /// What to do about it, where it is not good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Reason {
    /// A share that is doubtful from the first limit on, and poor from the second.
    fn share_above(measure: &'static str, value: f64, limits: [f64; 2], text: String, next: &str) -> Self {
        let (expected, verdict) = (format!("below {}", percent(limits[0])), Verdict::above(value, limits));
        Self { measure, value, expected, verdict, text, next: Some(next.into()) }
    }

    /// A share that is doubtful below the first limit, and poor below the second.
    fn share_below(measure: &'static str, value: f64, limits: [f64; 2], text: String, next: &str) -> Self {
        let (expected, verdict) = (format!("{} or more", percent(limits[0])), Verdict::below(value, limits));
        Self { measure, value, expected, verdict, text, next: Some(next.into()) }
    }
}

/// A verdict with its reasons.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Assessment {
    /// The verdict of the worst reason; good without reasons.
    pub verdict: Verdict,
    /// The worst first.
    pub reasons: Vec<Reason>,
}

impl Assessment {
    /// For a pair without a model: what was wrong, and what to do next.
    pub fn none(wrong: &str, next: &str) -> Self {
        Self::of(vec![Reason {
            measure: "model",
            value: 0.0,
            expected: "a model that more matches agree on than chance could explain".into(),
            verdict: Verdict::Poor,
            text: wrong.into(),
            next: Some(next.into()),
        }])
    }

    /// The assessment of a rectified pair: the reasons of its model's assessment `of_model`, if any, and the difference
    /// of the rows of its tie points. `doffs`, in pixels, is added to disparities before depth is computed from them.
    pub fn of_rows(of_model: Option<Self>, agreement: &Agreement, doffs: f64) -> Self {
        let doubts = agreement.doubts(doffs);
        let (points, px) = (counted(agreement.points), agreement.rms_vertical_px);
        let agree = format!("the rows of {points} tie points differ by {px:.2} px");
        let rows = Reason {
            measure: "rows",
            value: agreement.rms_vertical_px,
            expected: "rows that agree, and a scene before the cameras".into(),
            verdict: if doubts.is_empty() { Verdict::Good } else { Verdict::Poor },
            text: if doubts.is_empty() { agree } else { doubts.join("; ") },
            next: None,
        };
        let reasons = of_model.map_or_else(Vec::new, |found| found.reasons);
        Self::of(reasons.into_iter().chain([rows]).collect()).with(Self::of_depth(agreement).as_ref())
    }

    /// For a pair rectified by tie points: that depth is uncertain, if other lens parameters fit the tie points as well
    /// and change depth by [`SAME_DEPTH`] or more; otherwise `None`.
    pub fn of_depth(agreement: &Agreement) -> Option<Self> {
        let reason = |text| Reason {
            measure: "depth",
            value: agreement.uncertainty_of_depth(),
            expected: format!("below {SAME_DEPTH}"),
            verdict: Verdict::Doubtful,
            text,
            next: None,
        };
        Some(Self::of(vec![reason(agreement.depth_doubt()?)]))
    }

    /// This assessment with the reasons of another; of equally bad reasons its own come first.
    pub fn with(self, other: Option<&Self>) -> Self {
        let others = other.into_iter().flat_map(|of| of.reasons.clone());
        Self::of(self.reasons.into_iter().chain(others).collect())
    }

    /// The assessment by these reasons, the most important first. Next steps of good reasons are dropped.
    fn of(mut reasons: Vec<Reason>) -> Self {
        let good = reasons.iter_mut().filter(|reason| reason.verdict == Verdict::Good);
        good.for_each(|reason| reason.next = None);
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.verdict));
        let verdict = reasons.first().map_or(Verdict::Good, |reason| reason.verdict);
        Self { verdict, reasons }
    }
}

impl std::fmt::Display for Assessment {
    /// The verdict, the reasons that led to it (the first three of a good result), and the first next step.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.verdict.name())?;
        let told = self.reasons.iter().filter(|reason| reason.verdict == self.verdict);
        let most = if self.verdict == Verdict::Good { 3 } else { usize::MAX };
        for (i, reason) in told.take(most).enumerate() {
            write!(f, "{} {}", if i == 0 { ":" } else { ";" }, reason.text)?;
        }
        let next = self.reasons.iter().find_map(|reason| reason.next.as_deref());
        next.map_or(Ok(()), |next| write!(f, ". {next}"))
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
