//! Two pictures tied together, on a GPU where both lie on one, otherwise on the host.

use crate::device::Detached;
use crate::errors::raised;
use crate::features::Features;
use crate::finder::Finder;
use crate::image::Input;
use crate::matching::tie_dict;
use crate::picture::{Picture, mask_on_host, mask_there};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::borrow::Cow;
use tiepoint::feature::Keypoint;
use tiepoint::feature::gpu::GpuFeatures;
use tiepoint::geometry::Correspondence;
use tiepoint::register::{Modality, TieOptions, TiePoints, Views, tie_pictures_on_device};

/// Masks of both images as the caller gives them.
pub(crate) type Masks<'py> = [Option<Bound<'py, PyAny>>; 2];

/// Two pictures tied together, and their features on the device on which they were found.
pub(crate) struct Tied {
    features: [Found; 2],
    pub(crate) tie: TiePoints,
    options: TieOptions,
}

enum Found {
    Here(tiepoint::feature::Features),
    There(GpuFeatures),
}

impl Tied {
    /// Two pictures tied together on the GPU on which both lie; `None` if they do not, or if the host is needed.
    pub(crate) fn there(
        py: Python<'_>,
        finder: &Finder,
        pictures: [&Picture; 2],
        masks: &Masks<'_>,
        (options, views): (&TieOptions, (Views, Modality)),
    ) -> PyResult<Option<Self>> {
        let [Picture::There(a), Picture::There(b)] = pictures else { return Ok(None) };
        let processor = finder.device().settled(py)?;
        let Some(gpu) = processor.gpu().filter(|gpu| a.gpu().is(gpu) && b.gpu().is(gpu)) else {
            return Ok(None);
        };
        let [mask_a, mask_b] =
            masks.each_ref().map(|mask| mask.as_ref().map(|mask| mask_there(mask, gpu)).transpose());
        let given = Detached::new((mask_a?, mask_b?));
        let (mask_a, mask_b) = (given.0.as_ref(), given.1.as_ref());
        finder.device().run(py, |processor| {
            let found = finder.finder(processor)?;
            let features = [
                finder.search_there(&found, a, mask_a, processor)?,
                finder.search_there(&found, b, mask_b, processor)?,
            ];
            let tie = tie_pictures_on_device(features.each_ref(), options, views, &processor.cpu)?;
            Ok(tie.map(|tie| Self { features: features.map(Found::There), tie, options: *options }))
        })
    }

    /// Of features in the host's memory.
    pub(crate) fn here(
        features: [tiepoint::feature::Features; 2],
        tie: TiePoints,
        options: &TieOptions,
    ) -> Self {
        Self { features: features.map(Found::Here), tie, options: *options }
    }

    /// The keypoints of both, copied from a GPU where they lie there.
    fn keypoints(&self) -> tiepoint::Result<[Cow<'_, [Keypoint]>; 2]> {
        let [a, b] = self.features.each_ref().map(|found| match found {
            Found::Here(features) => Ok(Cow::Borrowed(&features.keypoints[..])),
            Found::There(features) => features.download_keypoints().map(Cow::Owned),
        });
        Ok([a?, b?])
    }

    pub(crate) fn into_dict(self, result: &Bound<'_, PyDict>, finder: &Finder) -> PyResult<()> {
        let py = result.py();
        let [a, b] = self.keypoints().map_err(raised)?;
        let sizes = self.features.each_ref().map(|found| match found {
            Found::Here(features) => features.image,
            Found::There(features) => features.image_size(),
        });
        let tie = tie_dict(py, ([&a, &b], sizes), &self.tie, &self.options)?;
        result.set_item("tie_points", tie)?;
        drop((a, b));
        let [a, b] = self.features.map(|found| match found {
            Found::Here(features) => Features::new(features),
            Found::There(features) => Features::on_device(features, finder.device_object().clone_ref(py)),
        });
        result.set_item("features", (a, b))
    }

    pub(crate) fn correspondences(&self) -> tiepoint::Result<Vec<Correspondence>> {
        let [a, b] = self.keypoints()?;
        Ok(self.tie.matches.iter().map(|m| m.correspondence(&a, &b)).collect())
    }
}

pub(crate) fn masks_on_host(
    py: Python<'_>,
    finder: &Finder,
    [a, b]: &Masks<'_>,
) -> PyResult<[Option<Input>; 2]> {
    let device = Some(finder.device_object().bind(py).as_any());
    Ok([mask_on_host(a.as_ref(), device)?, mask_on_host(b.as_ref(), device)?])
}
