//! Warnings about poor disparities: the likeliest cause, and what to do.

use super::{Computed, Work};
use crate::failure::Outcome;
use tiepoint::assess::{StereoEvidence, VALID};
use tiepoint::device::Cpu;
use tiepoint::image::Image;
use tiepoint::stereo::halving::suitable_halvings;
use tiepoint::stereo::survey::Survey;
use tiepoint::stereo::{INVALID, Reason};

/// A picture with fewer features has little texture.
const FEW_FEATURES: usize = 100;
/// A warning is given if more than this share of the disparities has no depth; a smaller share may be sky.
const WITHOUT_DEPTH: f64 = 0.2;

pub(super) const UNKNOWN_TRUTH: &str = "no pixel of the truth is known, so it scores nothing; floats of 0 and below \
                                        count as unknown unless --truth-signed is given";

/// The warnings about a result, and its figures. Tie points tell whether rows and range are right. They are searched
/// only if the result does not show it.
pub(super) fn of(computed: &Computed, work: &Work<'_>, cpu: &Cpu) -> Outcome<(Vec<String>, StereoEvidence)> {
    let Computed { ready, found, .. } = computed;
    let (least, count) = (ready.options.min_disparity, ready.options.disparities);
    let mut warnings = Vec::from_iter(ready.doubt());
    let given = ready.calibration.filter(|_| ready.rows_rectified_here().is_none());
    warnings.extend(given.and_then(|calibration| calibration.doubt(found.disparity.size())));
    let mask = ready.sides[0].mask.as_ref();
    let unfilled = found.reasons.as_ref().filter(|_| work.options.fill).map(|reasons| {
        let is_found = |x: usize, y: usize| reasons.row(y)[x] == Reason::None;
        Image::from_fn(
            reasons.size(),
            |x, y| if is_found(x, y) { found.disparity.row(y)[x] } else { INVALID },
        )
    });
    let map = unfilled.as_ref().unwrap_or(&found.disparity).view();
    let mut evidence = StereoEvidence::of(map, mask.map(Image::view), least, count);
    let (with_data, share) = (evidence.with_data, evidence.valid_share());
    let (missing, many_at_end) = (evidence.lacks_many(), evidence.ends_early() && count < 4096);
    if let Some(side) =
        ready.sides.iter().position(|side| side.mask.as_ref().is_some_and(|mask| !shows(mask)))
    {
        let side = ["left", "right"][side];
        let cause = format!("the {side} picture shows nothing: it has no data, or its mask leaves nothing");
        return Ok((vec![cause.clone()], StereoEvidence { cause: Some(cause), ..evidence }));
    }
    let measured = work.measured;
    let has_survey = ready.survey.is_some();
    if work.is_judged() {
        evidence = evidence.with_patches(&ready.sides, map, cpu)?;
    }
    let survey = match has_survey || work.is_judged() && evidence.rows.is_none() {
        true => ready.survey_at_size(cpu)?,
        false => None,
    };
    let rows = survey.filter(Survey::rows_differ).and_then(|survey| survey.rows_px);
    if let Some(px) = rows {
        warnings.push(format!(
            "the pair is not rectified: corresponding points lie {px:.1} rows apart. Use --rectify, or run \
             `tiepoint rectify` first"
        ));
    } else if let Some(survey) = ready.survey.filter(|survey| measured && survey.disparities.is_none()) {
        warnings.push(format!(
            "{} tie points are too few to tell the range: {count} disparities from {least} on are searched; \
             --disparities and --min-disparity say which",
            survey.ties
        ));
    }
    if let Some(survey) = &survey {
        evidence = evidence.with_survey(survey);
    }
    let outside = evidence.wanted.is_some();
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let is_too_short = match outside {
        true => many_at_end || missing,
        false => many_at_end && survey.and_then(|survey| survey.disparities).is_none(),
    };
    if rows.is_none() && is_too_short {
        let way = evidence.range_advice();
        warnings.push(match many_at_end {
            true => format!(
                "{} of the disparities lie at the end of the range: {way}",
                percent(evidence.at_end_share())
            ),
            false => {
                format!("the range is too short, {} of the pixels have a disparity: {way}", percent(share))
            }
        });
    }
    let needs_depth = work.arguments.depth.is_some() || work.arguments.cloud.is_some();
    if let Some(calibration) = ready.calibration.filter(|_| needs_depth) {
        let disparities = found.disparity.data().iter().map(|d| f64::from(*d));
        let with_depth = disparities.filter(|d| calibration.depth(*d).is_some()).count();
        if (with_depth as f64) < (1.0 - WITHOUT_DEPTH) * evidence.valid as f64 {
            let cause = match 2 * with_depth < evidence.valid {
                true => "are left and right exchanged?",
                false => "does the calibration belong to these pictures, or do they show much sky?",
            };
            warnings.push(format!(
                "only {with_depth} of {} pixels with a disparity have a depth: one above {}; {cause}",
                evidence.valid,
                0.0 - calibration.doffs
            ));
        }
    }
    if share < VALID[1] && with_data > 0 {
        let reasons = found.reasons.as_ref().filter(|_| ready.options.uniqueness > 0);
        let is_ambiguous = |reason: &&Reason| **reason == Reason::Ambiguous;
        let ambiguous = reasons.map_or(0, |reasons| reasons.data().iter().filter(is_ambiguous).count());
        let cause: String = match survey {
            _ if rows.is_some() => "what corresponds does not lie in one row".into(),
            _ if outside => "the range that was searched does not hold what tie points show".into(),
            Some(Survey { features: [a, b], .. }) if a.min(b) < FEW_FEATURES => {
                format!("the pictures have little texture ({a} and {b} features)")
            }
            Some(Survey { features: [a, b], ties, rows_px: None, .. }) => format!(
                "hardly any feature has a partner ({ties} tie points of {a} and {b} features): the pictures show different \
                 things, from places too far apart, or texture that repeats"
            ),
            _ if 2 * ambiguous > evidence.with_data => {
                format!("--uniqueness {} drops most of them", ready.options.uniqueness)
            }
            _ => match suitable_halvings(&ready.sides, &ready.options, cpu)? {
                0 if ready.rows_rectified_here().is_some() => {
                    "the scene is flat, has little texture or texture that repeats, or was seen from places too far apart".into()
                }
                0 => "surfaces have little texture, or texture that repeats".into(),
                n => {
                    let all = ready.halvings + n;
                    format!("the pictures are larger than they are sharp (blurred or enlarged?); use --halve {all}")
                }
            },
        };
        warnings.push(format!("only {} of the pixels with data have a disparity: {cause}", percent(share)));
        evidence.cause = Some(cause);
    }
    let rectified_here = ready.rows_rectified_here();
    let is_shifted =
        rectified_here.is_some() || ready.calibration.is_some_and(|calibration| calibration.doffs != 0.0);
    let behind = evidence.behind.filter(|_| !is_shifted);
    Ok((warnings, StereoEvidence { rows: evidence.rows.or(rectified_here), behind, ..evidence }))
}

/// Whether a mask leaves any pixel.
fn shows(mask: &Image<u8>) -> bool {
    mask.data().iter().any(|v| *v != 0)
}
