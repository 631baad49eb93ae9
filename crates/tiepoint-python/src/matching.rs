//! Matching: nearest neighbours, matches, tie points.

use crate::device::{Device, device_of, run_on, run_sized_on};
use crate::device_array::Numbers;
use crate::errors::{raised, spelled};
use crate::features::{Features, device_array};
use crate::geometry::{model_of, model_tuple};
use crate::image::{rows, vector};
use crate::options::Options;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tiepoint::assess::{Assessment, PairEvidence, Reason};
use tiepoint::feature::Keypoint;
use tiepoint::feature::gpu::GpuFeatures;
use tiepoint::geometry::{ModelKind, RobustOptions};
use tiepoint::image::Size;
use tiepoint::matching::{
    GpuMatcher, GpuMatches, GpuNeighbours, Guide, Match, MatchOptions, match_features as matched,
    nearest_neighbours,
};
use tiepoint::options::Named;
use tiepoint::register::{Rematch, TieOptions, TiePoints, tie_points_on_device};

/// A model by the name of its kind and its matrix.
pub(crate) type NamedModel<'py> = (String, Bound<'py, PyAny>);

/// Both sides on a GPU, and the device: the requested one, or that on which one of them lies; `None` if neither lies on
/// a GPU. Features that are already there are not copied.
fn sides_there(
    py: Python<'_>,
    device: Option<&Bound<'_, PyAny>>,
    sides: [&Bound<'_, Features>; 2],
) -> PyResult<Option<(Py<Device>, [GpuFeatures; 2])>> {
    let [a, b] = sides.map(Bound::get);
    let Some(lies) = a.device_there().or(b.device_there()) else { return Ok(None) };
    let device = match device {
        None => lies.clone_ref(py),
        given => device_of(py, given)?,
    };
    let processor = device.get().settled(py)?;
    let Some(gpu) = processor.gpu() else { return Ok(None) };
    Ok(Some((device, [a.on_gpu(py, gpu)?, b.on_gpu(py, gpu)?])))
}

/// A search on the GPU on which one of the sides lies. `None` if neither does, or the GPU lacks memory or a feature.
fn on_gpu<R: Send>(
    py: Python<'_>,
    device: Option<&Bound<'_, PyAny>>,
    sides: [&Bound<'_, Features>; 2],
    search: impl FnOnce(&GpuMatcher, [&GpuFeatures; 2]) -> tiepoint::Result<R> + Send,
) -> PyResult<Option<R>> {
    let Some((_, there)) = sides_there(py, device, sides)? else { return Ok(None) };
    match py.detach(|| search(&GpuMatcher::new(there[0].gpu()), there.each_ref())) {
        Err(error) if error.is_device_limit() => Ok(None),
        found => found.map(Some).map_err(raised),
    }
}

/// Whether both sides lie on a GPU, so that the results stay there.
fn both_there(a: &Bound<'_, Features>, b: &Bound<'_, Features>) -> bool {
    a.get().device_there().is_some() && b.get().device_there().is_some()
}

fn arrays_there<'py>(
    py: Python<'py>,
    arrays: [(Numbers, Vec<usize>); 3],
) -> PyResult<[Bound<'py, PyAny>; 3]> {
    let [a, b, c] = arrays.map(|(numbers, shape)| device_array(py, numbers, shape));
    Ok([a?, b?, c?].map(|array| array.into_bound(py)))
}

/// The amount of work, in pixels of a detector: a pair of descriptors takes a quarter of the time of a pixel.
fn work(a: &tiepoint::feature::Features, b: &tiepoint::feature::Features) -> usize {
    a.len().saturating_mul(b.len()) / 4
}

/// For each feature of A the index of its nearest neighbour in B (−1 if none), its distance, and that of the second.
#[pyfunction]
pub(crate) fn nearest<'py>(
    py: Python<'py>,
    device: Option<&Bound<'py, PyAny>>,
    a: &Bound<'py, Features>,
    b: &Bound<'py, Features>,
) -> PyResult<[Bound<'py, PyAny>; 3]> {
    if both_there(a, b)
        && let Some(found) = on_gpu(py, device, [a, b], |gpu, [a, b]| gpu.nearest_on_device(a, b))?
    {
        let GpuNeighbours { index, distance, second } = found;
        let shape = vec![index.len()];
        let [distance, second] = [distance, second].map(|column| (Numbers::F32(column), shape.clone()));
        return arrays_there(py, [(Numbers::I64(index), shape), distance, second]);
    }
    let searched = on_gpu(py, device, [a, b], |gpu, [a, b]| gpu.nearest_neighbours(a, b))?;
    let [found, _] = match searched {
        Some(found) => found,
        None => {
            let (a, b) = (a.get().found(py)?, b.get().found(py)?);
            run_sized_on(py, device, work(a, b), |processor| nearest_neighbours(a, b, processor))?
        }
    };
    let index = found.iter().map(|n| n.map_or(-1, |n| i64::from(n.index))).collect();
    let far = |value: fn(&tiepoint::matching::Nearest) -> f32| {
        found.iter().map(|n| n.as_ref().map_or(f32::INFINITY, value)).collect()
    };
    Ok([vector(py, index), vector(py, far(|n| n.distance)), vector(py, far(|n| n.second))])
}

/// The options of matching; near a model if `guide` gives one with a radius.
fn match_options(
    options: &Bound<'_, PyDict>,
    guide: Option<(NamedModel<'_>, f64)>,
) -> PyResult<MatchOptions> {
    let guide = guide.map(|(model, radius)| PyResult::Ok(Guide { b_from_a: model_of(&model)?, radius }));
    let options = MatchOptions::default().with(options)?.with_guide(guide.transpose()?);
    options.check().map_err(raised)?;
    Ok(options)
}

pub(crate) fn columns<'py>(py: Python<'py>, matches: &[Match]) -> PyResult<[Bound<'py, PyAny>; 3]> {
    let pairs = matches.iter().map(|m| [i64::from(m.a), i64::from(m.b)]).collect();
    let distance = matches.iter().map(|m| m.distance).collect();
    let ratio = matches.iter().map(|m| m.ratio).collect();
    Ok([rows(py, pairs)?, vector(py, distance), vector(py, ratio)])
}

#[pyfunction]
pub(crate) fn match_features<'py>(
    py: Python<'py>,
    device: Option<&Bound<'py, PyAny>>,
    a: &Bound<'py, Features>,
    b: &Bound<'py, Features>,
    options: &Bound<'py, PyDict>,
    guide: Option<(NamedModel<'py>, f64)>,
) -> PyResult<[Bound<'py, PyAny>; 3]> {
    let options = match_options(options, guide)?;
    if both_there(a, b)
        && let Some(found) = on_gpu(py, device, [a, b], |gpu, [a, b]| gpu.match_on_device(a, b, &options))?
    {
        let GpuMatches { len, pairs, distance, ratio } = found;
        let [distance, ratio] = [distance, ratio].map(|column| (Numbers::F32(column), vec![len]));
        return arrays_there(py, [(Numbers::I64(pairs), vec![len, 2]), distance, ratio]);
    }
    let searched = on_gpu(py, device, [a, b], |gpu, [a, b]| gpu.match_features(a, b, &options))?;
    let found = match searched {
        Some(found) => found,
        None => {
            let (a, b) = (a.get().found(py)?, b.get().found(py)?);
            run_sized_on(py, device, work(a, b), |processor| matched(a, b, &options, processor))?
        }
    };
    columns(py, &found)
}

/// The options of tie points: of the matching, the estimation and the second search.
pub(crate) fn tie_options(
    model: Option<&str>,
    matching: &Bound<'_, PyDict>,
    robust: &Bound<'_, PyDict>,
    rematch: Option<&Bound<'_, PyDict>>,
) -> PyResult<TieOptions> {
    let model = model.map(ModelKind::from_name).transpose().map_err(raised)?;
    let options = TieOptions::default()
        .with_matching(match_options(matching, None)?)
        .with_model(model)
        .with_robust(RobustOptions::default().with(robust)?)
        .with_rematch(rematch.map(|given| Rematch::default().with(given)).transpose()?);
    options.check().map_err(raised)?;
    Ok(options)
}

/// A verdict and its reasons.
pub(crate) type Assessed<'py> = (Option<&'static str>, Vec<Bound<'py, PyDict>>);

/// The verdict and its reasons; none without a model.
pub(crate) fn assessed<'py>(py: Python<'py>, assessment: Option<&Assessment>) -> PyResult<Assessed<'py>> {
    let reason = |reason: &Reason| {
        let Reason { measure, value, expected, verdict, text, next } = reason;
        let verdict = verdict.name();
        Ok(dict!(py, {
            "measure": *measure,
            "value": *value,
            "expected": expected,
            "verdict": verdict,
            "text": text,
            "next": next.as_deref().map(|text| spelled(py, text)).transpose()?,
        }))
    };
    let reasons = assessment.iter().flat_map(|assessment| &assessment.reasons).map(reason);
    Ok((assessment.map(|assessment| assessment.verdict.name()), reasons.collect::<PyResult<_>>()?))
}

/// The fields of `TiePoints` between these keypoints of A and of B, pictures of these sizes.
pub(crate) fn tie_dict<'py>(
    py: Python<'py>,
    (keypoints, sizes): ([&[Keypoint]; 2], [Size; 2]),
    tie: &TiePoints,
    options: &TieOptions,
) -> PyResult<Bound<'py, PyDict>> {
    let [pairs, distance, ratio] = columns(py, &tie.matches)?;
    let mut agrees = vec![false; tie.matches.len()];
    tie.inliers.iter().for_each(|&i| agrees[i] = true);
    let assessment = PairEvidence::of(keypoints, sizes, tie, options).map(|evidence| evidence.assess());
    let (verdict, reasons) = assessed(py, assessment.as_ref())?;
    Ok(dict!(py, {
        "verdict": verdict,
        "reasons": reasons,
        "pairs": pairs,
        "distance": distance,
        "ratio": ratio,
        "inliers": vector(py, agrees),
        "model": tie.b_from_a.as_ref().map(|model| model_tuple(py, model)).transpose()?,
        "rms": tie.rms_px,
        "iterations": tie.iterations,
    }))
}

#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the groups of options of one call")]
pub(crate) fn tie_points<'py>(
    py: Python<'py>,
    device: Option<&Bound<'py, PyAny>>,
    a: &Bound<'py, Features>,
    b: &Bound<'py, Features>,
    model: Option<&str>,
    matching: &Bound<'py, PyDict>,
    robust: &Bound<'py, PyDict>,
    rematch: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let options = tie_options(model, matching, robust, rematch)?;
    let hidden = [a.get().hidden(), b.get().hidden()];
    if let Some((device, [a, b])) = sides_there(py, device, [a, b])? {
        let tie = device.get().run(py, |p| match tie_points_on_device(&a, &b, &options, &p.cpu) {
            Err(error) if error.is_device_limit() => Ok(None),
            tie => tie.map(Some),
        })?;
        if let Some(tie) = tie.map(|tie| TiePoints { hidden, ..tie }) {
            let [in_a, in_b] = [&a, &b].map(GpuFeatures::download_keypoints);
            let (in_a, in_b) = (in_a.map_err(raised)?, in_b.map_err(raised)?);
            return tie_dict(py, ([&in_a, &in_b], [a.image_size(), b.image_size()]), &tie, &options);
        }
    }
    let (a, b) = (a.get().found(py)?, b.get().found(py)?);
    let tie = run_on(py, device, |processor| tiepoint::register::tie_points(a, b, &options, processor))?;
    let tie = TiePoints { hidden, ..tie };
    tie_dict(py, ([&a.keypoints, &b.keypoints], [a.image, b.image]), &tie, &options)
}
