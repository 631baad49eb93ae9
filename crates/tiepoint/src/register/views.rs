//! Tie points of two pictures, from their structure or from simulated views if their own features do not suffice.
//!
//! Pictures from viewpoints far apart, or of two sensors, may have too few matches that agree. Then structure (`cross`)
//! is tried first, because it is faster than simulated views. If structure agrees beyond doubt, the pictures differ by
//! nearly a similarity, so no view has to be simulated. Otherwise simulated views are tried. If these do not suffice
//! either, an agreement of structure that is not beyond doubt is accepted.
//!
//! Every view of A is matched with every view of B (Morel, Yu 2009, section 5); the ratio is to the second neighbour
//! within the same pair of views. All matches are then taken in order of distance, and a match is dropped if an earlier
//! one has a point in the same square of 2 × 2 pixels of either picture, so that a match found in several views counts
//! once. All else is as for the pictures' own features.

use super::cross;
use super::tie::{LIKE, TieOptions, TiePoints, no_model, tie_found, tie_on_device, tie_points_by};
use crate::device::{Cpu, Processor};
use crate::feature::gpu::GpuFeatures;
use crate::feature::views::{MOST_VIEWS, concatenated};
use crate::feature::{Features, Finder, FoundFeatures};
use crate::geometry::estimate::degenerate::ON_A_PLANE;
use crate::geometry::{ModelKind, Similarity};
use crate::image::{AnyView, ImageView, PixelKind};
use crate::matching::{Match, MatchOptions, match_features};
use crate::options::named;
use crate::{Error, Result};
use std::collections::HashSet;

/// How many views of each picture are matched, real and simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Views {
    /// Only the picture itself; [`Views::AUTO`] views if too few matches agree on a model and structure does not agree
    /// beyond doubt.
    #[default]
    Auto,
    /// This many views, 1 to 43; 1 is the picture itself.
    Count(usize),
}

impl Views {
    /// The number of views that are matched when the picture alone does not suffice: tilts up to 2 of both pictures.
    /// Measured in `docs/notebook/matching.md`.
    pub const AUTO: usize = 10;

    /// Checks the number.
    ///
    /// # Errors
    /// [`Error::Option`] unless it is 1 to 43.
    pub fn check(self) -> Result<()> {
        match self {
            Self::Count(n) if !(1..=MOST_VIEWS).contains(&n) => Err(Error::option("views", n, "1 to 43")),
            Self::Auto | Self::Count(_) => Ok(()),
        }
    }
}

named! {
    /// Whether one sensor made both pictures.
    pub enum Modality as "modality" {
        #[default]
        "auto": Auto, "First as same, then as cross if too little agrees";
        "same": Same, "One sensor: match features";
        "cross": Cross, "Two sensors, such as radar, infrared, maps, depth, night: match structure, which does not depend on brightness";
    }
}

/// A prepared grey picture with its mask and its features.
#[derive(Clone, Copy, Debug)]
pub struct TiePicture<'a> {
    /// One channel.
    pub image: AnyView<'a>,
    /// 0 where no keypoint may lie.
    pub mask: Option<ImageView<'a, u8>>,
    /// The features found in it by [`features_to_tie`].
    pub found: &'a FoundFeatures,
}

/// The tie points of two pictures, and how they were found.
#[derive(Clone, Debug, PartialEq)]
pub struct TiedPictures {
    /// The features to which the matches refer, if these are not the pictures' own: the features of all simulated
    /// views, one view after the other, in pixels of the picture; or places tied by structure.
    pub features: Option<[Features; 2]>,
    /// Their tie points.
    pub tie: TiePoints,
    /// The number of views of each picture that were matched.
    pub views: usize,
    /// Whether they were tied as pictures of one sensor or of two; never [`Modality::Auto`].
    pub modality: Modality,
}

/// The features of two grey images for [`tie_pictures`], none where a mask is 0. For [`Modality::Cross`] the result is
/// empty, because only structure ties the pictures.
///
/// # Errors
/// As [`Finder::detect_pair`], for each image.
pub fn features_to_tie(
    finder: &Finder,
    images: [AnyView<'_>; 2],
    masks: [Option<ImageView<'_, u8>>; 2],
    modality: Modality,
) -> [Result<FoundFeatures>; 2] {
    match modality {
        Modality::Cross => images.map(|image| Ok(Features::without_descriptors(vec![], image.size()).into())),
        Modality::Auto | Modality::Same => finder.detect_pair(images, masks),
    }
}

/// Finds tie points of two pictures by features, structure or simulated views, as `search` asks.
///
/// # Errors
/// As [`Views::check`], [`tie_points`](super::tie_points) and [`Finder::detect_simulated`].
pub fn tie_pictures(
    pictures: [TiePicture<'_>; 2],
    finder: &Finder,
    options: &TieOptions,
    search: (Views, Modality),
    processor: &Processor,
) -> Result<TiedPictures> {
    let tied = tied(pictures, finder, options, search, processor)?;
    Ok(TiedPictures { tie: tied.tie.with_masks(pictures.map(|picture| picture.mask)), ..tied })
}

/// [`tie_pictures`] without setting [`TiePoints::hidden`].
fn tied(
    pictures: [TiePicture<'_>; 2],
    finder: &Finder,
    options: &TieOptions,
    (views, modality): (Views, Modality),
    processor: &Processor,
) -> Result<TiedPictures> {
    views.check()?;
    let [a, b] = pictures;
    let sizes = pictures.map(|picture| picture.image.size());
    let with_masks = pictures.map(|picture| (picture.image, picture.mask));
    let by_structure = || {
        options.check()?;
        cross::tie(with_masks, options, processor)
    };
    match modality {
        Modality::Cross => {
            let tied = by_structure().and_then(|tied| {
                tied.map(TiedPictures::from).ok_or(Error::Degenerate {
                    model: options.model.map_or("model", |kind| kind.noun()),
                    reason: "their structure agrees no better than chance would",
                })
            });
            let kind = options.model.unwrap_or(ModelKind::Homography);
            let threshold = options.robust.threshold_px;
            let refused = |error| no_model(error, kind, threshold, "matched by structure".into());
            tied.map_err(|error| cross::advised(refused(error), kind, sizes, options.scale_range))
        }
        Modality::Auto | Modality::Same => {
            let by_views = |n| match n {
                1 => tie_found([a.found, b.found], options, processor).map(|tie| alike(None, tie, 1)),
                n => tie_simulated(pictures, n, finder, options, processor),
            };
            let first = match views {
                Views::Auto => 1,
                Views::Count(n) => n,
            };
            let error = match by_views(first) {
                Err(error) if lacks_support(&error) => {
                    let is_deep = pictures.iter().any(|picture| picture.image.pixel() != PixelKind::U8);
                    let range = "; `--range LOW:HIGH` where few pixels are far brighter than what both show";
                    with_words(error, "", if is_deep { range } else { "" })
                }
                Ok(tied) if modality == Modality::Auto => {
                    let own = [&a.found.features, &b.found.features];
                    let [one, other] = tied.features.as_ref().map_or(own, <[Features; 2]>::each_ref);
                    let keypoints = [one.keypoints.as_slice(), &other.keypoints];
                    let is_certain = tied.tie.is_certain(keypoints, sizes);
                    if tied.tie.moves_nothing(keypoints) {
                        return confirmed(tied, is_certain, with_masks, by_structure, processor);
                    }
                    if tied.tie.is_weak(keypoints, sizes) {
                        match by_structure() {
                            Ok(Some(found)) if found.refutes(&tied.tie, options) => return Ok(found.into()),
                            Err(error) if !lacks_support(&error) => return Err(error),
                            _ => {}
                        }
                    }
                    let Some(map) = tied.tie.similarity_in_part(keypoints, sizes) else { return Ok(tied) };
                    let unlike = unlike(with_masks, &map, false, processor)?;
                    return Ok(TiedPictures { tie: TiePoints { unlike, ..tied.tie }, ..tied });
                }
                tied => return tied,
            };
            let structure = match modality {
                Modality::Auto => match by_structure() {
                    Err(error) if lacks_support(&error) => None,
                    Ok(Some(mut found)) if found.moves_nothing() => {
                        found.tie.fixed = cross::grey_in_common(with_masks, &processor.cpu)?;
                        Some(found)
                    }
                    structure => structure?,
                },
                Modality::Same | Modality::Cross => None,
            };
            let simulate =
                views == Views::Auto && !a.found.features.is_empty() && !b.found.features.is_empty();
            match structure {
                Some(found) if found.beyond_doubt || !simulate => Ok(found.into()),
                None if !simulate => Err(error),
                structure => match by_views(Views::AUTO) {
                    Err(other) if lacks_support(&other) => {
                        let (also, advice) = match modality {
                            Modality::Auto => (
                                " and their structure",
                                "; masks (`--mask`, `--mask-b`) for the margins of scans, frames and captions",
                            ),
                            Modality::Same | Modality::Cross => ("", ""),
                        };
                        let views = Views::AUTO;
                        let tried = format!("; {views} simulated views of each{also} did not help");
                        structure.map(TiedPictures::from).ok_or_else(|| with_words(error, &tried, advice))
                    }
                    tied => tied,
                },
            }
        }
    }
}

/// Checks pictures between which nothing moved by their features. Captions, frames and marks fixed to a sensor give
/// this result for pictures of different things, too; structure then decides whether the pictures agree under another
/// map, or not at all. If inliers cover the whole picture (`is_certain`), only structure at a smaller size is compared.
fn confirmed(
    tied: TiedPictures,
    is_certain: bool,
    pictures: [cross::Picture<'_>; 2],
    by_structure: impl Fn() -> Result<Option<cross::StructureTie>>,
    processor: &Processor,
) -> Result<TiedPictures> {
    let unmoved = Similarity::new([1.0, 0.0], [0.0; 2])?;
    let Some(mean) = unlike(pictures, &unmoved, is_certain, processor)? else { return Ok(tied) };
    // If inliers cover the whole picture, their map is kept but doubtful; no map by structure replaces it.
    match if is_certain { Ok(None) } else { by_structure() } {
        Ok(Some(found)) if !found.moves_nothing() => Ok(found.into()),
        Err(error) if !lacks_support(&error) => Err(error),
        _ => Ok(TiedPictures { tie: TiePoints { unlike: Some(mean), ..tied.tie }, ..tied }),
    }
}

/// How well the structure of pictures agrees under a map, if only in part. `is_certain`: features show so at full size.
fn unlike(
    pictures: [cross::Picture<'_>; 2],
    b_from_a: &Similarity,
    is_certain: bool,
    processor: &Processor,
) -> Result<Option<f64>> {
    let mut mean = cross::agreement(pictures, b_from_a, cross::SHRINK, processor)?;
    if !is_certain && mean.is_none_or(|mean| mean >= LIKE) {
        mean = cross::agreement(pictures, b_from_a, 1, processor)?;
    }
    Ok(mean.filter(|mean| *mean < LIKE))
}

/// The result for pictures of one sensor.
fn alike(features: Option<[Features; 2]>, tie: TiePoints, views: usize) -> TiedPictures {
    TiedPictures { features, tie, views, modality: Modality::Same }
}

impl From<cross::StructureTie> for TiedPictures {
    fn from(tied: cross::StructureTie) -> Self {
        Self { features: Some(tied.features), tie: tied.tie, views: 1, modality: Modality::Cross }
    }
}

/// Ties two pictures of one sensor by this many simulated views of each. The matches refer to the features of
/// all views of each picture, in the picture's own pixels.
fn tie_simulated(
    pictures: [TiePicture<'_>; 2],
    n: usize,
    finder: &Finder,
    options: &TieOptions,
    processor: &Processor,
) -> Result<TiedPictures> {
    let features = |TiePicture { image, mask, found }: TiePicture<'_>| {
        finder.detect_simulated_besides(found.features.clone(), image, mask, n)
    };
    let [a, b] = pictures.map(features);
    let views = [a?, b?];
    options.check()?;
    let all = [concatenated(&views[0])?, concatenated(&views[1])?];
    // For each view its features and the index of the first of them among those of all views.
    let numbered = views.each_ref().map(|views| {
        let starts = views.iter().scan(0, |next, features| {
            let start = *next;
            *next += features.len() as u32;
            Some((features, start))
        });
        starts.collect::<Vec<_>>()
    });
    let search = |matching: &MatchOptions| {
        let mut found = Vec::new();
        for (a, start_a) in &numbered[0] {
            for (b, start_b) in &numbered[1] {
                let matches = match_features(a, b, matching, processor)?.into_iter();
                found.extend(matches.map(|m| Match { a: start_a + m.a, b: start_b + m.b, ..m }));
            }
        }
        Ok(once_each(&all, found))
    };
    let tie = tie_points_by([&all[0].keypoints, &all[1].keypoints], options, &processor.cpu, search);
    let tie = tie.map_err(|error| with_words(error, &format!(" in {n} simulated views of each"), ""))?;
    Ok(alike(Some(all), tie, n))
}

/// The error, with words after what was compared and after what to try.
fn with_words(mut error: Error, words: &str, advised: &str) -> Error {
    if let Error::NoModel { compared, advice, .. } = &mut error {
        compared.push_str(words);
        advice.push_str(advised);
    }
    error
}

/// [`tie_pictures`] for the pictures' own features in a GPU's memory. `None` if the host has to do it with the
/// pictures, because simulated views or structure were asked for or may help, or because the GPU has too little memory
/// or lacks 64-bit floats. The caller adds the masks ([`TiePoints::with_masks`]).
///
/// # Errors
/// As [`tie_pictures`].
pub fn tie_pictures_on_device(
    [a, b]: [&GpuFeatures; 2],
    options: &TieOptions,
    (views, modality): (Views, Modality),
    cpu: &Cpu,
) -> Result<Option<TiePoints>> {
    views.check()?;
    if !matches!(views, Views::Auto | Views::Count(1)) || modality == Modality::Cross {
        return Ok(None);
    }
    let some = a.capacity() > 0 && b.capacity() > 0;
    let others = (views == Views::Auto && some) || modality == Modality::Auto;
    match tie_on_device([a, b], options, cpu) {
        Err(error) if error.is_device_limit() => Ok(None),
        Err(error) if others && lacks_support(&error) => Ok(None),
        Ok((tie, keypoints)) if modality == Modality::Auto => {
            let (of, sizes) = (keypoints.each_ref().map(Vec::as_slice), [a.image_size(), b.image_size()]);
            let settled = !tie.moves_nothing(of)
                && !tie.is_weak(of, sizes)
                && tie.similarity_in_part(of, sizes).is_none();
            Ok(settled.then_some(tie))
        }
        tied => tied.map(|(tie, _)| Some(tie)),
    }
}

/// Whether there is no model because too few matches agree, so that other matches may help. They do not help if an
/// option is wrong, a device fails, or the matches lie on a plane: those of more views lie on it, too.
fn lacks_support(error: &Error) -> bool {
    match error {
        Error::TooFewMatches { .. } => true,
        Error::Degenerate { reason, .. } => *reason != ON_A_PLANE,
        Error::NoModel { error, .. } => lacks_support(error),
        _ => false,
    }
}

/// The best match of each square of 2 × 2 pixels in either picture, in the order of the index in A.
fn once_each([a, b]: &[Features; 2], mut matches: Vec<Match>) -> Vec<Match> {
    matches.sort_by(|p, q| p.distance.total_cmp(&q.distance).then((p.a, p.b).cmp(&(q.a, q.b))));
    let square = |features: &Features, i: u32| {
        let k = &features.keypoints[i as usize];
        [(0.5 * k.x).floor() as i64, (0.5 * k.y).floor() as i64]
    };
    let (mut taken_a, mut taken_b) = (HashSet::new(), HashSet::new());
    matches.retain(|m| {
        let (at_a, at_b) = (square(a, m.a), square(b, m.b));
        let free = !taken_a.contains(&at_a) && !taken_b.contains(&at_b);
        if free {
            taken_a.insert(at_a);
            taken_b.insert(at_b);
        }
        free
    });
    matches.sort_unstable_by_key(|m| (m.a, m.b));
    matches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::corner_error;
    use crate::feature::Detector;
    use crate::geometry::Homography;
    use crate::image::Size;
    use crate::synth::{Scene, SceneOptions, viewpoint};

    #[test]
    fn a_tilted_plane_is_found_only_by_views_and_on_every_device() {
        // A plane seen from the front and at 65° to its normal.
        let (size, cpu) = (Size::new(400, 300), Cpu::with_threads(2).unwrap());
        let squeezed = Homography::new([[0.4, 0.0, 120.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).unwrap();
        let truth = squeezed.compose(&viewpoint(size, 0.3, 1.0, [0.0; 2], [0.0; 2]).unwrap());
        let options = SceneOptions::default().with_size(size).with_moving_from_reference(truth).with_seed(5);
        let scene = Scene::<u8>::render(&options, &cpu).unwrap();
        let tied_by = |modality: Modality, views: Views, processor: &Processor| {
            let finder = Detector::default().open(processor).unwrap();
            let images = [(&scene.reference).into(), (&scene.moving).into()];
            let found = finder.detect_pair(images, [None; 2]).map(Result::unwrap);
            let pictures = [0, 1].map(|i| TiePicture { image: images[i], mask: None, found: &found[i] });
            tie_pictures(pictures, &finder, &TieOptions::default(), (views, modality), processor)
        };
        let tied = |views: Views, processor: &Processor| tied_by(Modality::Same, views, processor);
        let processor = Processor::from(cpu.clone());
        let plain = tied(Views::Count(1), &processor);
        let found = tied(Views::Count(10), &processor).unwrap();
        let of_four = tied(Views::Count(4), &processor).unwrap();
        let error = |tie: &TiePoints| {
            let h = tie.b_from_a.unwrap().homography().unwrap();
            corner_error(&h, &scene.moving_from_reference, size)
        };
        assert!(error(&found.tie) < 1.5, "corners off by {} px", error(&found.tie));
        let fewer = plain.as_ref().map_or(0, |p| p.tie.inliers.len());
        assert!(found.tie.inliers.len() > 2 * fewer, "{} and {fewer}", found.tie.inliers.len());
        let auto = tied(Views::Auto, &processor).unwrap();
        assert_eq!(auto.views, if plain.is_ok() { 1 } else { Views::AUTO }, "only where needed");
        let any = tied_by(Modality::Auto, Views::Auto, &processor).unwrap();
        assert!(any == auto, "their structure does not agree beyond doubt, so views are tried");
        let features = found.features.as_ref().unwrap();
        for m in &found.tie.matches {
            let [p, q] = [&features[0].keypoints[m.a as usize], &features[1].keypoints[m.b as usize]];
            assert!(p.x >= 0.0 && p.x < 400.0 && q.y >= 0.0 && q.y < 300.0, "in the pictures");
        }
        for gpu in crate::device::gpu::all() {
            let processor = Processor::with_gpu(cpu.clone(), gpu.clone());
            assert!(tied(Views::Count(4), &processor).unwrap() == of_four, "{gpu:?}");
            let finder = Detector::default().open(&processor).unwrap();
            let [a, b] = [&scene.reference, &scene.moving]
                .map(|image| finder.detect_on_device(AnyView::from(image), None).unwrap());
            let there = |views| {
                tie_pictures_on_device([&a, &b], &TieOptions::default(), (views, Modality::Same), &cpu)
            };
            assert_eq!(there(Views::Count(10)).unwrap(), None, "views need the host");
            match &plain {
                Ok(plain) if gpu.info().has_f64 => {
                    assert_eq!(there(Views::Auto).unwrap().as_ref(), Some(&plain.tie), "{gpu:?}");
                }
                Ok(_) => assert_eq!(there(Views::Auto).unwrap(), None, "{gpu:?} lacks 64-bit floats"),
                Err(_) => {
                    assert_eq!(there(Views::Auto).unwrap(), None, "views may help");
                    assert!(there(Views::Count(1)).is_err(), "no views were asked for");
                }
            }
            assert!(there(Views::Count(0)).is_err(), "an option");
        }
        assert!(tied(Views::Count(0), &processor).is_err() && tied(Views::Count(44), &processor).is_err());
    }
}
