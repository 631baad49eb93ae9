//! Two pictures tied together, on a GPU where both lie on one, otherwise on the host.

use crate::errors::raised;
use crate::features::Features;
use crate::finder::{Finder, searched_mask};
use crate::fork::Detached;
use crate::image::mask_view;
use crate::matching::tie_dict;
use crate::picture::{Picture, mask_on_host, mask_there};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::borrow::Cow;
use tiepoint::Error;
use tiepoint::device::Cpu;
use tiepoint::feature::Keypoint;
use tiepoint::feature::gpu::GpuFeatures;
use tiepoint::geometry::Correspondence;
use tiepoint::image::{Image, Range, prepare, shows_nothing};
use tiepoint::options::Named;
use tiepoint::register::{
    Modality, RegisterInput, RegisterOptions, TieOptions, TiePoints, TiedPictures, tie_images,
    tie_pictures_on_device,
};

/// The error of two images that could not be tied, which says so if one of them shows nothing.
fn explained(
    error: Error,
    names: [&str; 2],
    images: [RegisterInput<'_>; 2],
    (range, cpu): (Range, &Cpu),
) -> Error {
    let Error::NoModel { error, compared, advice } = error else { return error };
    let nothing = names.iter().zip(images).find_map(|(name, of)| {
        let made = prepare(of.image, of.mask, range, cpu).ok()?;
        Some(format!("{name} shows nothing: {}", shows_nothing(made.image.view(), made.mask.view())?))
    });
    Error::NoModel { error, compared, advice: nothing.unwrap_or(advice) }
}

/// Masks of both images as the caller gives them.
pub(crate) type Masks<'py> = [Option<Bound<'py, PyAny>>; 2];

/// Two pictures tied together, and their features on the device on which they were found.
pub(crate) struct Tied {
    features: [Found; 2],
    pub(crate) tie: TiePoints,
    options: TieOptions,
    views: usize,
    modality: Modality,
}

enum Found {
    Here(tiepoint::feature::Features),
    There(GpuFeatures),
}

impl Tied {
    /// Two pictures tied together, on the GPU on which both lie, otherwise in the host's memory.
    pub(crate) fn of(
        py: Python<'_>,
        finder: &Finder,
        names: [&str; 2],
        pictures: [&Picture; 2],
        masks: &Masks<'_>,
        options: &RegisterOptions,
    ) -> PyResult<Self> {
        let options = options.with_detector(finder.detector).with_range(finder.range);
        if let Some(tied) = Self::there(py, finder, pictures, masks, &options)? {
            return Ok(tied);
        }
        let [a, b] = pictures.map(|picture| picture.on_host(py));
        let (a, b) = (a?, b?);
        let device = Some(finder.device.bind(py).as_any());
        let [mask_a, mask_b] = masks.each_ref().map(|mask| mask_on_host(mask.as_ref(), device));
        let (mask_a, mask_b) = (mask_a?, mask_b?);
        let (features, tied) = finder.device.get().run(py, |processor| {
            let a = RegisterInput { image: a.view(), mask: mask_view(mask_a.as_ref()) };
            let b = RegisterInput { image: b.view(), mask: mask_view(mask_b.as_ref()) };
            tie_images([a, b], &options, processor)
                .map_err(|error| explained(error, names, [a, b], (options.range, &processor.cpu)))
        })?;
        let TiedPictures { tie, views, modality, .. } = tied;
        Ok(Self { features: features.map(Found::Here), tie, options: options.tie, views, modality })
    }

    /// The same on the GPU on which both lie; `None` if they do not, or if the host is needed.
    fn there(
        py: Python<'_>,
        finder: &Finder,
        pictures: [&Picture; 2],
        masks: &Masks<'_>,
        options: &RegisterOptions,
    ) -> PyResult<Option<Self>> {
        let [Picture::There(a), Picture::There(b)] = pictures else { return Ok(None) };
        if options.modality == Modality::Cross {
            return Ok(None);
        }
        let processor = finder.device.get().settled(py)?;
        let Some(gpu) = processor.gpu().filter(|gpu| a.gpu().is(gpu) && b.gpu().is(gpu)) else {
            return Ok(None);
        };
        let [mask_a, mask_b] =
            masks.each_ref().map(|mask| mask.as_ref().map(|mask| mask_there(mask, gpu)).transpose());
        let given = Detached::new((mask_a?, mask_b?));
        let (mask_a, mask_b) = (given.0.as_ref(), given.1.as_ref());
        finder.device.get().run(py, |processor| {
            let (a, made_a) = finder.search_there(a, mask_a, processor)?;
            let (b, made_b) = finder.search_there(b, mask_b, processor)?;
            let search = (options.views, options.modality);
            let tie = tie_pictures_on_device([&a, &b], &options.tie, search, &processor.cpu)?;
            let Some(tie) = tie else { return Ok(None) };
            let masks = [searched_mask(made_a, mask_a)?, searched_mask(made_b, mask_b)?];
            let tie = tie.with_masks(masks.each_ref().map(|mask| mask.as_ref().map(Image::view)));
            let (features, options) = ([a, b].map(Found::There), options.tie);
            Ok(Some(Self { features, tie, options, views: 1, modality: Modality::Same }))
        })
    }

    /// The keypoints of both, copied from a GPU where they lie there.
    pub(crate) fn keypoints(&self) -> tiepoint::Result<[Cow<'_, [Keypoint]>; 2]> {
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
        tie.set_item("views", self.views)?;
        tie.set_item("modality", self.modality.name())?;
        result.set_item("tie_points", tie)?;
        drop((a, b));
        let [hidden_a, hidden_b] = self.tie.hidden;
        let [a, b] = self.features.map(|found| match found {
            Found::Here(features) => Features::new(features),
            Found::There(features) => Features::on_device(features, finder.device.clone_ref(py)),
        });
        result.set_item("features", (a.hiding(hidden_a), b.hiding(hidden_b)))
    }

    pub(crate) fn correspondences(&self) -> tiepoint::Result<Vec<Correspondence>> {
        let [a, b] = self.keypoints()?;
        Ok(self.tie.matches.iter().map(|m| m.correspondence(&a, &b)).collect())
    }
}
