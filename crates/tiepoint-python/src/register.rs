//! Registration: an image warped onto another.

use crate::errors::{raised, wrong_image, wrong_option};
use crate::finder::Finder;
use crate::matching::tie_options;
use crate::options::Options;
use crate::picture::{Picture, made, with_spread_colours};
use crate::tied::{Masks, Tied};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tiepoint::by_pixel;
use tiepoint::geometry::ModelKind;
use tiepoint::geometry::warp::WarpOptions;
use tiepoint::options::Named;
use tiepoint::register::{Modality, RegisterOptions, Views, fineness, warp_onto};

/// A registration with its options, which are checked before a device is opened.
#[pyclass(frozen, module = "tiepoint._core")]
pub(crate) struct Register {
    options: RegisterOptions,
}

#[pymethods]
impl Register {
    #[new]
    fn new(
        model: &str,
        matching: &Bound<'_, PyDict>,
        robust: &Bound<'_, PyDict>,
        rematch: Option<&Bound<'_, PyDict>>,
        views: Option<usize>,
        sensors: (&str, f64),
        warp: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let (modality, scale_range) = sensors;
        if ModelKind::from_name(model).is_err() {
            return Err(wrong_option(&format!(
                "option model is {model}: expected homography, affine, similarity, rigid or translation"
            )));
        }
        let options = RegisterOptions::default()
            .with_tie(tie_options(Some(model), matching, robust, rematch)?.with_scale_range(scale_range))
            .with_views(views.map_or(Views::Auto, Views::Count))
            .with_modality(Modality::from_name(modality).map_err(raised)?)
            .with_warp(WarpOptions::default().with(warp)?);
        options.check().map_err(raised)?;
        Ok(Self { options })
    }

    /// MOVING warped onto FIXED, with the tie points from MOVING to FIXED and the features of both.
    fn run<'py>(
        &self,
        finder: &Bound<'py, Finder>,
        fixed: &Bound<'py, PyAny>,
        moving: &Bound<'py, PyAny>,
        masks: Masks<'py>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (py, finder) = (finder.py(), finder.get());
        let device = Some(finder.device.bind(py).as_any());
        let [fixed, moving] = [
            Picture::of(fixed, device, "the fixed image")?,
            Picture::of(moving, device, "the moving image")?,
        ];
        by_pixel!(type moving.pixels().pixel(), T => self.options.warp.check_fill::<T>()).map_err(raised)?;
        let [mask_fixed, mask_moving] = masks;
        let names = ["The moving image", "The fixed image"];
        let tied = Tied::of(py, finder, names, [&moving, &fixed], &[mask_moving, mask_fixed], &self.options)?;
        let model = tied.tie.b_from_a.ok_or_else(|| wrong_image("the tie points have no model"))?;
        let (size, finer) = (fixed.size(), fineness(&model, moving.size()));
        let warped = moving.run(py, device, size.area(), |moving, p| {
            with_spread_colours(moving, |moving| warp_onto(moving, size, &model, &self.options.warp, p))
        })?;
        let result = dict!(py, {
            "warped": made(py, warped.image)?,
            "covered": made(py, warped.covered.into())?,
            "finer": finer,
        });
        tied.into_dict(&result, finder)?;
        Ok(result)
    }
}
