//! Reports: one HTML file that shows a result.

use crate::call::abandonable;
use crate::errors::{raised, wrong_option};
use crate::features::Features;
use crate::files::calibration_of;
use crate::geometry::{correspondences, model_of};
use crate::image::{Input, mask, mask_view, table, values};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tiepoint::assess::{self, Verdict};
use tiepoint::feature::Keypoint;
use tiepoint::geometry::Model;
use tiepoint::geometry::estimate::residuals;
use tiepoint::image::{AnyView, Image};
use tiepoint::matching::Match;
use tiepoint::stereo::Reason;
use tiepoint_report::{
    Arrow, DEFAULT_LIMIT, DisparityView, KeypointMatch, MatchesView, Picture, RegistrationView, Report,
    Section, View,
};

fn item<'py>(view: &Bound<'py, PyDict>, key: &str) -> PyResult<Bound<'py, PyAny>> {
    view.get_item(key)?.ok_or_else(|| wrong_option(&format!("the view lacks {key}")))
}

fn optional<'py>(view: &Bound<'py, PyDict>, key: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(view.get_item(key)?.filter(|value| !value.is_none()))
}

/// The contents of a view, converted from Python.
enum Shown {
    Matches {
        pictures: [(String, Input); 2],
        rows: Vec<KeypointMatch>,
        model: Option<Model>,
        support: f32,
    },
    Registration {
        reference: (String, Input),
        warped: (String, Input),
        covered: Input,
        arrows: Vec<Arrow>,
    },
    Disparity {
        pair: Option<[(String, Input); 2]>,
        disparity: Input,
        confidence: Option<Input>,
        reasons: Option<Image<Reason>>,
        truth: Option<Input>,
        calibration: Option<Box<tiepoint::geometry::calibration::RectifiedCalibration>>,
    },
}

/// The reasons for missing disparities, from their numbers.
fn reasons_of(given: &Bound<'_, PyAny>) -> PyResult<Image<Reason>> {
    let numbers = Input::of(given, "reasons")?;
    let wrong =
        || wrong_option("reasons hold numbers that name none: expected (height, width) of uint8, 0 to 5");
    let AnyView::U8(numbers) = numbers.view() else { return Err(wrong()) };
    let named = |row: usize| numbers.row(row).iter().map(|&n| Reason::ALL.get(usize::from(n)).copied());
    let reasons: Option<Vec<Reason>> = (0..numbers.size().height).flat_map(named).collect();
    Image::from_vec(reasons.ok_or_else(wrong)?, numbers.size(), 1).map_err(raised)
}

fn picture(view: &Bound<'_, PyDict>, key: &str) -> PyResult<(String, Input)> {
    let (name, image): (String, Bound<'_, PyAny>) = item(view, key)?.extract()?;
    let image = Input::of(&image, &name)?;
    Ok((name, image))
}

impl Shown {
    fn of(view: &Bound<'_, PyDict>) -> PyResult<Self> {
        match item(view, "kind")?.extract::<String>()?.as_str() {
            "matches" => Self::matches(view),
            "registration" => Self::registration(view),
            "disparity" => Self::disparity(view),
            other => Err(wrong_option(&format!("there is no view {other}"))),
        }
    }

    fn matches(view: &Bound<'_, PyDict>) -> PyResult<Self> {
        let model = optional(view, "model")?.map(|model| model_of(&model.extract()?)).transpose()?;
        let (a, b) = (item(view, "features_a")?, item(view, "features_b")?);
        let py = view.py();
        let (a, b) = (a.cast::<Features>()?.get().found(py)?, b.cast::<Features>()?.get().found(py)?);
        let pairs = table::<i64, 2>(&item(view, "pairs")?, "pairs")?;
        let n = Some(pairs.len());
        let distance = values::<f32>(&item(view, "distance")?, "distance", n)?;
        let ratio = values::<f32>(&item(view, "ratio")?, "ratio", n)?;
        let inliers = values::<bool>(&item(view, "inliers")?, "inliers", n)?;
        let far = match &model {
            None => vec![f64::NAN; pairs.len()],
            Some(model) => {
                residuals(model, &correspondences(&item(view, "xy_a")?, &item(view, "xy_b")?, None)?)
            }
        };
        let keypoint = |of: &tiepoint::feature::Features, i: i64| -> PyResult<Keypoint> {
            let found = usize::try_from(i).ok().and_then(|i| of.keypoints.get(i));
            found.copied().ok_or_else(|| wrong_option(&format!("pairs name the feature {i} of {}", of.len())))
        };
        let row = |(i, [ia, ib]): (usize, &[i64; 2])| {
            let (a, b) = (keypoint(a, *ia)?, keypoint(b, *ib)?);
            let pair = Match { a: *ia as u32, b: *ib as u32, distance: distance[i], ratio: ratio[i] };
            Ok(KeypointMatch { pair, a, b, residual: far[i] as f32, inlier: inliers[i] })
        };
        let rows = pairs.iter().enumerate().map(row).collect::<PyResult<Vec<_>>>()?;
        let pictures = [picture(view, "a")?, picture(view, "b")?];
        let support = tiepoint_report::support(a);
        Ok(Self::Matches { pictures, rows, model, support })
    }

    fn registration(view: &Bound<'_, PyDict>) -> PyResult<Self> {
        let predicted = table::<f32, 2>(&item(view, "predicted")?, "predicted")?;
        let found = table::<f32, 2>(&item(view, "found")?, "found")?;
        let arrows = predicted.into_iter().zip(found).map(|(predicted, found)| Arrow { predicted, found });
        let Some(covered) = mask(Some(&item(view, "covered")?))? else {
            return Err(wrong_option("the view lacks covered"));
        };
        Ok(Self::Registration {
            reference: picture(view, "reference")?,
            warped: picture(view, "warped")?,
            covered,
            arrows: arrows.collect(),
        })
    }

    fn disparity(view: &Bound<'_, PyDict>) -> PyResult<Self> {
        let pair = match optional(view, "left")? {
            Some(_) => Some([picture(view, "left")?, picture(view, "right")?]),
            None => None,
        };
        let floats = |key: &str| optional(view, key)?.map(|map| Input::of(&map, key)).transpose();
        let Some(disparity) = floats("disparity")? else {
            return Err(wrong_option("the view lacks disparity"));
        };
        let calibration = optional(view, "calibration")?;
        let calibration =
            calibration.map(|given| calibration_of(given.cast::<PyDict>()?).map(Box::new)).transpose()?;
        Ok(Self::Disparity {
            pair,
            disparity,
            confidence: floats("confidence")?,
            reasons: optional(view, "reasons")?.map(|given| reasons_of(&given)).transpose()?,
            truth: floats("truth")?,
            calibration,
        })
    }

    fn view(&self) -> PyResult<View<'_>> {
        fn picture((name, image): &(String, Input)) -> Picture<'_> {
            Picture::new(name.clone(), image.view())
        }
        Ok(match self {
            Self::Matches { pictures: [a, b], rows, model, support } => View::Matches(MatchesView {
                a: picture(a),
                b: picture(b),
                rows: rows.clone(),
                b_from_a: *model,
                truth: None,
                support: *support,
                residual_name: None,
                parts: vec![],
                caption: String::new(),
            }),
            Self::Registration { reference, warped, covered, arrows } => {
                View::Registration(RegistrationView {
                    reference: picture(reference),
                    warped: picture(warped),
                    covered: mask_view(Some(covered))
                        .ok_or_else(|| wrong_option("the view lacks covered"))?,
                    arrows: arrows.clone(),
                    parts: vec![],
                    caption: String::new(),
                })
            }
            Self::Disparity { pair, disparity, confidence, reasons, truth, calibration } => {
                View::Disparity(DisparityView {
                    pair: pair.as_ref().map(|[l, r]| [picture(l), picture(r)]),
                    range: tiepoint_report::usual_range(disparity.floats("disparity")?),
                    disparity: disparity.floats("disparity")?,
                    confidence: confidence.as_ref().map(|c| c.floats("confidence")).transpose()?,
                    reasons: reasons.as_ref().map(Image::view),
                    truth: truth.as_ref().map(|t| t.floats("the truth")).transpose()?,
                    calibration: calibration.as_deref().copied(),
                    caption: String::new(),
                })
            }
        })
    }
}

/// A reason of a verdict, as Python has it.
fn reason_of(given: &Bound<'_, PyDict>) -> PyResult<assess::Reason> {
    let verdict: String = item(given, "verdict")?.extract()?;
    let known = [Verdict::Good, Verdict::Doubtful, Verdict::Poor].into_iter().find(|v| v.name() == verdict);
    Ok(assess::Reason {
        // The page shows the sentence alone.
        measure: "",
        value: item(given, "value")?.extract()?,
        expected: item(given, "expected")?.extract()?,
        verdict: known.ok_or_else(|| wrong_option(&format!("there is no verdict {verdict}")))?,
        text: item(given, "text")?.extract()?,
        next: optional(given, "next")?.map(|next| next.extract()).transpose()?,
    })
}

/// A heading, tiles of names and values, views, and the reasons of a verdict.
type Part<'py> = (String, Vec<(String, String)>, Vec<Bound<'py, PyDict>>, Vec<Bound<'py, PyDict>>);

/// The page: a title, a sentence, sections of a heading, tiles, views and a verdict, and how it was made.
#[pyfunction]
pub(crate) fn report(
    py: Python<'_>,
    texts: (String, String, String),
    sections: Vec<Part<'_>>,
    limit: Option<usize>,
) -> PyResult<String> {
    let (title, lead, made) = texts;
    let mut taken = Vec::new();
    for (heading, tiles, views, reasons) in sections {
        let views = views.iter().map(Shown::of).collect::<PyResult<Vec<_>>>()?;
        let reasons = reasons.iter().map(reason_of).collect::<PyResult<Vec<_>>>()?;
        let worst = reasons.iter().map(|reason| reason.verdict).max();
        taken.push((heading, tiles, views, worst.map(|verdict| assess::Assessment { verdict, reasons })));
    }
    abandonable(py, move || {
        let mut page = Report::new(title, lead).limit(limit.unwrap_or(DEFAULT_LIMIT)).made(made);
        for (heading, tiles, views, assessment) in &taken {
            let mut section = Section::new(heading.clone()).assessed(assessment.clone());
            for (what, value) in tiles {
                section = section.tile(what.clone(), value.clone());
            }
            for shown in views {
                section = section.view(shown.view()?);
            }
            page = page.section(section);
        }
        page.html().map_err(raised)
    })?
}
