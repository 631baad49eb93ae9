//! Whether a disparity map can be believed.
//!
//! - **Valid pixels**, as a share of those with data: if most were rejected, many others are valid only by chance.
//! - **The end of the range**: objects that are nearer than the range get a disparity there.
//! - **Rows**: the vertical offset between the pictures, measured at the disparities or by tie points ([`Survey`]).
//! - **Fit**: whether the matched point looks more like the pixel than points beside it.
//! - **Order**: with left and right exchanged, disparities are below 0.
//! - **Beyond the range**: pixels without a disparity that match points beyond it.
//! - **Texture**: where the left picture has none, disparities are those of the surroundings.
//! - **Truth**: the error against it, if it is given.

use super::{Assessment, Reason, Verdict, percent};
use crate::device::Cpu;
use crate::evaluate::{DisparityScore, DisparityScoring, disparity_score, scale_of_truth};
use crate::image::ImageView;
use crate::stereo::halving::Side;
use crate::stereo::patches::Patches;
use crate::stereo::survey::{STEP, Survey};
use crate::{Error, Result};
use serde::Serialize;

/// The shares of the pixels with data that have a disparity, below which a map is doubtful, and poor.
pub const VALID: [f64; 2] = [0.7, 1.0 / 3.0];
/// The share of the disparities at the end of the range.
pub const AT_END: [f64; 2] = [0.05, 0.2];
/// If a smaller share of the disparities lies at the end of the range, the range is long enough, and missing disparities
/// have another cause.
const SOME_AT_END: f64 = 0.01;
/// The part of the range that counts as its end.
const END: f64 = 0.02;
/// The difference of rows, in multiples of the tolerance: doubtful above the first number, poor from the second on,
/// where no window of a matching cost contains both places.
const ROWS: [f64; 2] = [1.0, 2.0];
/// The share of the comparisons in which the matched point looks more like the pixel than a point beside it does;
/// below.
const FIT: [f64; 2] = [0.8, 0.7];
/// The share of the disparities below 0.
const BEHIND: [f64; 2] = [0.75, f64::INFINITY];
/// The share of the picture that has no disparity and looks like points beyond the range. Six pairs that were searched
/// over their whole range of disparities have 0 to 0.3 %.
const BEYOND: [f64; 2] = [0.01, f64::INFINITY];
/// The share of the disparities where the picture shows no texture.
const BARE: [f64; 2] = [0.25, 0.75];
/// 1 if both pictures are the same.
const SAME: [f64; 2] = [0.0, 0.5];
/// The share of the pixels with an error above a pixel or without a disparity. For hard scenes half is usual, even
/// without hidden pixels.
const BAD: [f64; 2] = [0.3, 0.6];

/// What was measured about a disparity map.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StereoEvidence {
    /// Pixels with data.
    pub with_data: usize,
    /// Pixels with data and a disparity.
    pub valid: usize,
    /// Pixels with a disparity at the end of the range.
    pub at_end: usize,
    /// Pixels with a disparity below 0: many mean that left and right are exchanged. None if a rectification or
    /// calibration may shift disparities.
    pub behind: Option<usize>,
    /// The least disparity that was searched.
    pub min_disparity: i32,
    /// The number of disparities that were searched.
    pub disparities: usize,
    /// The least disparity and the number of disparities that tie points call for, if the range that was searched does
    /// not contain them.
    pub wanted: Option<(i32, usize)>,
    /// Why pixels have no disparity, where that is known.
    pub cause: Option<String>,
    /// The median difference of rows, in multiples of the tolerance for rectified pairs; none if it is not known. For a
    /// pair that the command has rectified by tie points it is the mean difference of their rows.
    pub rows: Option<f64>,
    /// The share of the comparisons in which the matched point looks more like the pixel than a point beside it does:
    /// about a half if the disparities are wrong; none if it is not known.
    pub fit: Option<f64>,
    /// The share of the disparities where the left picture shows no texture; none if it is not known.
    pub bare: Option<f64>,
    /// The share of the picture that has no disparity and looks like points beyond the range that was searched; none if
    /// it is not known.
    pub beyond: Option<f64>,
    /// Whether left and right are the same picture.
    pub same: bool,
    /// The share of the pixels with a known truth that are off by more than a pixel or have no disparity.
    pub bad: Option<f64>,
    /// The mean error, in pixels.
    pub epe: Option<f64>,
    /// The factor by which the truth seems to be scaled (−1: the opposite sign), if nearly all pixels are wrong.
    pub truth_scale: Option<f32>,
}

impl StereoEvidence {
    /// Measures a map of one channel for which this many disparities from `least` on were searched. Pixels where `mask`,
    /// of the map's size, is 0 have no data.
    ///
    /// # Panics
    /// For a mask with fewer rows than the map.
    pub fn of(
        disparity: ImageView<'_, f32>,
        mask: Option<ImageView<'_, u8>>,
        least: i32,
        count: usize,
    ) -> Self {
        let end = f64::from(least) + count as f64 - 1.0 - (END * count as f64).max(1.0);
        let (size, mut behind) = (disparity.size(), 0);
        let mut found = Self { min_disparity: least, disparities: count, ..Self::default() };
        for y in 0..size.height {
            found.with_data +=
                mask.map_or(size.width, |mask| mask.row(y).iter().filter(|m| **m != 0).count());
            // Sums without branches, which the compiler turns into SIMD.
            let row = disparity.row(y);
            found.valid += row.iter().map(|d| usize::from(d.is_finite())).sum::<usize>();
            let is_at_end = |d: &f32| usize::from(d.is_finite() & (f64::from(*d) > end));
            found.at_end += row.iter().map(is_at_end).sum::<usize>();
            behind += row.iter().map(|d| usize::from(d.is_finite() & (*d < 0.0))).sum::<usize>();
        }
        Self { behind: Some(behind), ..found }
    }

    /// Adds what tie points say of the range, and of rows if [the map](Self::with_patches) did not tell.
    #[must_use]
    pub fn with_survey(self, survey: &Survey) -> Self {
        let rows = self.rows.or_else(|| survey.rows_px.map(|px| px / survey.tolerance_px));
        let least = i64::from(self.min_disparity);
        let last = least + self.disparities as i64;
        let wanted = survey.search(None).filter(|(first, count)| {
            let first = i64::from(*first);
            // Some tolerance: the range of tie points includes a margin, and its length is rounded up.
            first + (*count as i64) - STEP as i64 > last + last / 8 || first < least - 2
        });
        Self { rows, wanted, ..self }
    }

    /// Adds how well the disparities fit the pictures, and the difference of rows if the map confirms that rows agree.
    /// If it does not, or the map is doubtful, tie points are needed ([`with_survey`](Self::with_survey)).
    ///
    /// # Errors
    /// [`Error::Mismatch`] for pictures or a map of two sizes, [`Error::Image`] for more than four channels.
    pub fn with_patches(self, pair: &[Side; 2], map: ImageView<'_, f32>, cpu: &Cpu) -> Result<Self> {
        let end = f64::from(self.min_disparity) + self.disparities as f64;
        let range = [self.min_disparity as f32, end as f32];
        let Patches { rows, fit, bare, beyond } = Patches::compare(pair, map, range, cpu)?;
        let is_doubtful = self.lacks_many()
            || self.ends_early()
            || fit.is_some_and(|fit| fit < FIT[0])
            || beyond.is_some_and(|beyond| beyond > BEYOND[0]);
        let same = pair[0].image == pair[1].image;
        Ok(Self { rows: rows.filter(|_| !is_doubtful), fit, bare, beyond, same, ..self })
    }

    /// Whether so many pixels with data have no disparity that the map is doubtful.
    pub fn lacks_many(&self) -> bool {
        self.valid_share() < VALID[0] && self.with_data > 0
    }

    /// Whether so many disparities lie at the end of the range that the map is doubtful.
    pub fn ends_early(&self) -> bool {
        self.at_end_share() > AT_END[0]
    }

    /// Which disparities to search, if the range was too short.
    pub fn range_advice(&self) -> String {
        let told = if self.wanted.is_some() { "tie points ask for" } else { "try" };
        match self.wanted.unwrap_or((self.min_disparity, (2 * self.disparities).min(4096))) {
            (0, count) if self.min_disparity == 0 => format!("{told} `--disparities {count}`"),
            (first, count) => format!("{told} `--min-disparity {first} --disparities {count}`"),
        }
    }

    /// Adds the errors against the truth, where `mask` is not 0.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when sizes differ, [`Error::Image`] for more than one channel.
    pub fn with_truth(
        self,
        disparity: ImageView<'_, f32>,
        truth: ImageView<'_, f32>,
        mask: Option<ImageView<'_, u8>>,
    ) -> Result<Self> {
        match disparity_score(disparity, truth, mask, &DisparityScoring::default()) {
            Ok(DisparityScore { bad, epe, .. }) => {
                let truth_scale = scale_of_truth(disparity, truth).filter(|_| bad[0] > 0.9);
                Ok(Self {
                    bad: Some(bad[0]),
                    epe: Some(epe).filter(|epe| epe.is_finite()),
                    truth_scale,
                    ..self
                })
            }
            // The truth of no pixel is known.
            Err(Error::Image(_)) if truth.size() == disparity.size() && truth.channels() == 1 => Ok(self),
            Err(error) => Err(error),
        }
    }

    /// The share of the pixels with data that have a disparity.
    pub fn valid_share(&self) -> f64 {
        self.valid as f64 / self.with_data.max(1) as f64
    }

    /// The share of the disparities at the end of the range.
    pub fn at_end_share(&self) -> f64 {
        self.at_end as f64 / self.valid.max(1) as f64
    }

    /// The verdict.
    pub fn assess(&self) -> Assessment {
        let (valid, at_end) = (self.valid_share(), self.at_end_share());
        let mut reasons = vec![];
        if let Some(bad) = self.bad {
            let average = self.epe.map_or_else(String::new, |epe| format!("; {epe:.2} px on average"));
            let share = percent(bad);
            let text = format!(
                "{share} of the pixels are off the truth by more than 1 px, or have no disparity{average}"
            );
            let next = match self.truth_scale {
                Some(-1.0) => {
                    "The truth has the opposite sign, as disparities of mgm, s2p and ASP have: negate it"
                        .into()
                }
                Some(scale) => format!("Is the truth stored as a multiple? `--truth-scale {scale}`"),
                None => "The view of the difference to the truth shows where".into(),
            };
            reasons.push(Reason::share_above("truth", bad, BAD, text, &next));
        }
        if let Some(rows) = self.rows {
            reasons.push(Reason {
                measure: "rows",
                value: rows,
                expected: "1 or less".into(),
                verdict: if rows > ROWS[0] { Verdict::above(rows, ROWS) } else { Verdict::Good },
                text: format!("the row error is {} of what a rectified pair may have", percent(rows)),
                next: Some(
                    "`tiepoint stereo --rectify`, or `tiepoint rectify` first, makes them agree".into(),
                ),
            });
        }
        if let Some(fit) = self.fit {
            let text = format!(
                "in {} of the comparisons the matched place looks more like the pixel than a place beside it",
                percent(fit)
            );
            let next = "Are left and right exchanged, or do `--min-disparity` and `--disparities` leave out what is \
                        there? Does the cost suit the pictures?";
            reasons.push(Reason::share_below("fit", fit, FIT, text, next));
        }
        let behind = self.behind.map(|behind| behind as f64 / self.valid.max(1) as f64);
        if let Some(share) = behind.filter(|share| *share >= BEHIND[0]) {
            let text = format!("{} of the disparities are below 0", percent(share));
            let next =
                "Are left and right exchanged? Or does a crop shift them? `--min-disparity` is below 0 then";
            reasons.push(Reason::share_above("order", share, BEHIND, text, next));
        }
        if self.same {
            let text = "left and right are the same picture".into();
            let next = "Which pictures did the two cameras take?";
            reasons.push(Reason::share_above("same", 1.0, SAME, text, next));
        }
        if let Some(bare) = self.bare {
            let text =
                format!("{} of the disparities lie where the left picture shows no texture", percent(bare));
            let next = "They are those of what lies around, not measured; a mask leaves such pixels out";
            reasons.push(Reason::share_above("texture", bare, BARE, text, next));
        }
        let text = format!("{} of the pixels with data have a disparity", percent(valid));
        let rows_agree = self.rows.is_some_and(|rows| rows <= ROWS[0]);
        let causes = [
            ("rows that differ (`--rectify`)", !rows_agree),
            ("pictures that overlap only in part", rows_agree),
            ("a range too short (`--disparities`)", at_end > SOME_AT_END),
            ("blurred or enlarged pictures (`--halve auto`)", true),
        ];
        let causes: Vec<_> = causes.iter().filter(|(_, open)| *open).map(|(cause, _)| *cause).collect();
        let shown = if self.wanted.is_some() { "is" } else { "may be" };
        let advice = format!("The range {shown} too short: {}", self.range_advice());
        let next = match &self.cause {
            _ if self.wanted.is_some() => advice.clone(),
            Some(cause) => format!("Cause: {cause}"),
            None => format!("Usual causes: {}", causes.join(", ")),
        };
        reasons.push(Reason::share_below("valid", valid, VALID, text, &next));
        let text = format!("{} of the disparities lie at the end of the range", percent(at_end));
        reasons.push(Reason::share_above("end of range", at_end, AT_END, text, &advice));
        if let Some(share) = self.beyond {
            let text = format!(
                "{} of the picture has no disparity and looks like places beyond the range that was searched",
                percent(share)
            );
            reasons.push(Reason::share_above("beyond the range", share, BEYOND, text, &advice));
        }
        Assessment::of(reasons)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{Image, Size};

    #[test]
    fn each_measure_has_its_verdict() {
        let size = Size::new(20, 10);
        let map = |value: fn(usize) -> f32| Image::from_fn(size, |x, _| value(x));
        let of = |found: &Image<f32>| StereoEvidence::of(found.view(), None, 0, 32);
        let most_missing = map(|x| if x < 3 { x as f32 } else { f32::INFINITY });
        let missing = of(&most_missing);
        for (name, found, expected) in [
            ("whole", map(|x| x as f32), Verdict::Good),
            ("half missing", map(|x| if x < 10 { x as f32 } else { f32::INFINITY }), Verdict::Doubtful),
            ("most missing", most_missing, Verdict::Poor),
            ("at the end", map(|_| 31.0), Verdict::Poor),
            ("exchanged", map(|x| 3.0 - x as f32), Verdict::Doubtful),
            ("far away", map(|x| x as f32 - 12.0), Verdict::Good),
        ] {
            let evidence = of(&found);
            assert_eq!(evidence.assess().verdict, expected, "{name}: {evidence:?}");
        }
        let excluded = StereoEvidence { rows: Some(0.4), ..missing.clone() }.assess().to_string();
        for (cause, open) in [("--rectify", false), ("--disparities", false), ("--halve", true)] {
            let told = format!("{cause} where rows agree and the end is empty: {excluded}");
            assert_eq!(excluded.contains(cause), open, "{told}");
        }
        let open = StereoEvidence { at_end: 20, ..missing.clone() }.assess().to_string();
        assert!(["--rectify", "--disparities", "--halve"].iter().all(|cause| open.contains(cause)), "{open}");
        let few = Survey {
            features: [190; 2],
            matches: 150,
            ties: 150,
            rows_px: Some(0.2),
            tolerance_px: 1.0,
            disparities: Some([0.0, 70.0]),
            least: Some(2.0),
        };
        let far = StereoEvidence { min_disparity: 56, ..missing.clone() };
        assert_eq!(far.range_advice(), "try `--min-disparity 56 --disparities 64`");
        let short = missing.clone().with_survey(&few);
        let shifted = StereoEvidence { min_disparity: 8, ..missing.clone() }.with_survey(&few);
        for (evidence, expected) in [
            (short, "The range is too short: tie points ask for `--disparities 96`"),
            (StereoEvidence { cause: Some("fog".into()), ..missing.clone() }, "Cause: fog"),
            (shifted, "tie points ask for `--min-disparity 0 --disparities 96`"),
            (StereoEvidence { disparities: 96, ..missing }.with_survey(&few), "Usual causes: "),
        ] {
            let told = evidence.assess().to_string();
            assert!(told.contains(expected), "{expected}: {told}");
        }
        let (found, truth) = (map(|x| x as f32), map(|x| 4.0 * x as f32));
        let evidence = of(&found);
        for (bare, expected) in [(0.2, Verdict::Good), (0.5, Verdict::Doubtful), (0.9, Verdict::Poor)] {
            assert_eq!(StereoEvidence { bare: Some(bare), ..evidence.clone() }.assess().verdict, expected);
        }
        for (beyond, expected) in [(0.003, Verdict::Good), (0.05, Verdict::Doubtful)] {
            let told = StereoEvidence { beyond: Some(beyond), ..evidence.clone() }.assess();
            assert_eq!(told.verdict, expected, "{told}");
        }
        let sides = [1, 1, 2].map(|v| Side { image: Image::filled(size, 1, v as u8).into(), mask: None });
        for (pair, expected) in [([0, 1], Verdict::Poor), ([0, 2], Verdict::Good)] {
            let pair = pair.map(|i| sides[i].clone());
            let told =
                evidence.clone().with_patches(&pair, found.view(), &Cpu::sequential()).unwrap().assess();
            assert_eq!(told.verdict, expected, "{told}");
        }
        let scored_by = |truth: &Image<f32>| evidence.clone().with_truth(found.view(), truth.view(), None);
        let scored = scored_by(&truth).unwrap();
        assert_eq!(scored.truth_scale, Some(4.0), "nearly all is off by a factor");
        assert!(scored.assess().to_string().contains("--truth-scale 4"), "{}", scored.assess());
        let other = Image::from_vec(found.data().iter().map(|d| -d).collect(), size, 1).unwrap();
        let other = scored_by(&other).unwrap();
        assert!(other.assess().to_string().contains("opposite sign"), "{}", other.assess());
        let hidden = Image::filled(size, 1, 0_u8);
        let masked = evidence.clone().with_truth(found.view(), truth.view(), Some(hidden.view())).unwrap();
        assert_eq!(masked, evidence, "no pixel counts");
        let unknown = Image::filled(size, 1, f32::INFINITY);
        assert_eq!(scored_by(&unknown).unwrap(), evidence, "no truth, no score");
        assert!(scored_by(&Image::new(Size::new(3, 3))).is_err(), "two sizes");
    }
}
