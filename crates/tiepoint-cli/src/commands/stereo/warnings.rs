//! Warnings about poor disparities: the likeliest cause, and what to do.

use super::Computed;
use crate::failure::Outcome;
use tiepoint::device::Cpu;
use tiepoint::stereo::halving::suitable_halvings;
use tiepoint::stereo::survey::Survey;

/// Where a smaller share of the pixels with data has a disparity, the warning names a cause.
const FEW_VALID: f64 = 1.0 / 3.0;

/// Where a smaller share has one, tie points show whether the range is too short.
const MANY_MISSING: f64 = 0.7;

/// Where a larger share of the disparities lies at the end of the range, the range is too short.
const MANY_AT_END: f64 = 0.05;

/// The end of the range, as a share of it.
const END: f64 = 0.02;

/// Fewer features in a picture than this are little texture.
const FEW_FEATURES: usize = 100;

/// The warnings about a result.
pub(super) fn of(computed: &Computed, measured: bool, cpu: &Cpu) -> Outcome<Vec<String>> {
    let Computed { ready, found, .. } = computed;
    let (least, count) = (ready.options.min_disparity, ready.options.disparities);
    let mut warnings = Vec::new();
    let with_data = match &ready.sides[0].mask {
        Some(mask) => mask.data().iter().filter(|m| **m != 0).count(),
        None => found.disparity.data().len(),
    };
    let end = f64::from(least) + count as f64 - 1.0 - (END * count as f64).max(1.0);
    let valid = found.disparity.data().iter().filter(|d| d.is_finite());
    let (valid, at_end) =
        valid.fold((0, 0), |(all, at_end), d| (all + 1, at_end + usize::from(f64::from(*d) > end)));
    let share = valid as f64 / with_data.max(1) as f64;
    let few = share < FEW_VALID && with_data > 0;
    let missing = share < MANY_MISSING && with_data > 0;
    let many_at_end = at_end as f64 > MANY_AT_END * valid as f64 && count < 4096;
    let survey = match ready.survey {
        None if missing || many_at_end => ready.survey_at_size(cpu)?,
        Some(_) => ready.survey_at_size(cpu)?,
        None => None,
    };
    let rows = survey.filter(Survey::rows_differ).and_then(|survey| survey.rows_px);
    if let Some(px) = rows {
        warnings.push(format!(
            "the rows of the two pictures do not agree: tie points differ by {px:.1} px. With --rectify, or by \
             `tiepoint rectify`, they do"
        ));
    } else if let Some(survey) = survey.filter(|survey| measured && survey.disparities.is_none()) {
        warnings.push(format!(
            "{} tie points are too few to tell the range: {count} disparities from {least} on are searched; \
             --disparities and --min-disparity say which",
            survey.ties
        ));
    }
    let wanted = survey.and_then(|survey| survey.search(None));
    let outside = wanted.filter(|(first, n)| {
        let last = i64::from(least) + count as i64;
        // Tie points' range has a margin of its own.
        i64::from(*first) + (*n as i64) > last + last / 8 || i64::from(*first) < i64::from(least) - 2
    });
    let which = |(first, n): (i32, usize)| match first {
        0 if least == 0 => format!("--disparities {n}"),
        first => format!("--min-disparity {first} --disparities {n}"),
    };
    let too_short = rows.is_none() && (many_at_end || (missing && outside.is_some()));
    if too_short && !(many_at_end && outside.is_none() && wanted.is_some()) {
        let percent = 100.0 * at_end as f64 / valid.max(1) as f64;
        let way = match outside {
            Some(wanted) => format!("tie points ask for {}", which(wanted)),
            None => format!("try --disparities {}", (2 * count).min(4096)),
        };
        warnings.push(match many_at_end {
            true => format!("{percent:.1} % of the disparities lie at the end of the range: {way}"),
            false => {
                let percent = 100.0 * share;
                format!("the range is too short, {percent:.1} % of the pixels have a disparity: {way}")
            }
        });
    }
    if few {
        let percent = 100.0 * share;
        let cause = cause(computed, survey.as_ref(), rows.is_some(), outside.is_some(), cpu)?;
        warnings.push(format!("only {percent:.1} % of the pixels with data have a disparity: {cause}"));
    }
    Ok(warnings)
}

/// The likeliest cause of few disparities.
fn cause(
    computed: &Computed,
    survey: Option<&Survey>,
    rows_differ: bool,
    too_short: bool,
    cpu: &Cpu,
) -> Outcome<String> {
    if rows_differ {
        return Ok("what corresponds does not lie in one row".into());
    }
    if too_short {
        return Ok("the range that was searched does not hold what tie points show".into());
    }
    if let Some(survey) = survey {
        let [a, b] = survey.features;
        if a.min(b) < FEW_FEATURES {
            return Ok(format!("the pictures have little texture ({a} and {b} features)"));
        }
        if survey.rows_px.is_none() {
            return Ok(format!(
                "hardly any feature has a partner ({} tie points of {a} and {b} features): the pictures show different \
                 things, from places too far apart, or texture that repeats",
                survey.ties
            ));
        }
    }
    let ready = &computed.ready;
    let halvings = suitable_halvings(&ready.sides, &ready.options, cpu)?;
    Ok(match halvings {
        0 if ready.is_rectified_here() => {
            "the scene is flat, has little texture or texture that repeats, or was seen from places too far apart".into()
        }
        0 => "surfaces have little texture, or texture that repeats".into(),
        n => {
            let all = ready.halvings + n;
            format!("the pictures are larger than their texture is fine; --halve {all} suits them")
        }
    })
}
