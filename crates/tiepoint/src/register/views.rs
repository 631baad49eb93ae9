//! Tie points of two pictures, by simulated views where the pictures as they are do not suffice.
//!
//! Where these do not suffice either, the pictures may be of different sensors: then their structure is matched (`cross`).
//!
//! Every view of A is matched with every view of B (Morel, Yu 2009, section 5), each pair with the ratio of its own
//! second neighbour. Of the matches together those of the least distance are kept first, and no two of them with an end
//! in the same square of 2 × 2 pixels: what several views show is one match. The rest is as for the pictures
//! themselves.

use super::cross;
use super::tie::{TieOptions, TiePoints, tie_found, tie_points_by, tie_points_on_device};
use crate::device::{Cpu, Processor};
use crate::feature::gpu::GpuFeatures;
use crate::feature::views::{MOST_VIEWS, concatenated};
use crate::feature::{Features, Finder, FoundFeatures};
use crate::geometry::estimate::degenerate::ON_A_PLANE;
use crate::image::{AnyView, ImageView};
use crate::matching::{Match, MatchOptions, match_features};
use crate::options::{Named, named};
use crate::{Error, Result};
use std::collections::HashSet;

/// How many views of each picture are matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Views {
    /// The picture as it is; where too few of its matches agree on a model, [`Views::AUTO`] views.
    #[default]
    Auto,
    /// So many, 1 to 43; 1 is the picture as it is.
    Count(usize),
}

impl Views {
    /// Views that follow where the picture alone does not suffice: tilts up to 2 of both pictures. On graf 1–5 and 1–6
    /// (50° and 60°) 10 views come to 2.1 and 0.7 px, 18 to 2.1 and 0.9 at one and a half times the cost; 5 miss the
    /// latter.
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
        "auto": Auto, "As same, and as cross where too little agrees";
        "same": Same, "One sensor: by features of brightness";
        "cross": Cross, "Two sensors, such as radar, infrared, maps, depth, night: by structure, whatever is bright or dark";
    }
}

/// A grey picture on the scale of its type, where it counts, and its features as it is.
#[derive(Clone, Copy, Debug)]
pub struct TiePicture<'a> {
    /// One channel.
    pub image: AnyView<'a>,
    /// 0 where no keypoint may lie.
    pub mask: Option<ImageView<'a, u8>>,
    /// The features that the finder found in it: [`Finder::detect_pair`].
    pub found: &'a FoundFeatures,
}

/// Two pictures tied together.
#[derive(Clone, Debug, PartialEq)]
pub struct TiedPictures {
    /// The features of simulated views of both, one view after the other, in the place that they have in the picture.
    /// `None` where the features of the pictures themselves were matched.
    pub features: Option<[Features; 2]>,
    /// Their tie points.
    pub tie: TiePoints,
    /// Views of each picture that were matched.
    pub views: usize,
    /// Whether they were tied as pictures of one sensor or of two: not [`Modality::Auto`].
    pub modality: Modality,
}

/// Ties two pictures together.
///
/// # Errors
/// As [`Views::check`], [`tie_points`](super::tie_points) and [`Finder::detect_simulated`]; [`Error::Option`] for pictures
/// of two sensors that are to be related by epipolar geometry or not at all: structure alone gives no such matches.
pub fn tie_pictures(
    pictures: [TiePicture<'_>; 2],
    finder: &Finder,
    options: &TieOptions,
    (views, modality): (Views, Modality),
    processor: &Processor,
) -> Result<TiedPictures> {
    views.check()?;
    let maps = maps(options);
    let by_structure = || {
        options.check()?;
        cross::tie(pictures.map(|picture| (picture.image, picture.mask)), options, processor)
    };
    let tied_pictures = |cross::StructureTie { features, tie }| TiedPictures {
        features: Some(features),
        tie,
        views: 1,
        modality: Modality::Cross,
    };
    match modality {
        Modality::Same => tie_alike(pictures, finder, options, views, processor),
        Modality::Cross if !maps => {
            let model = options.model.map_or("none", |kind| kind.name());
            Err(Error::option(
                "model",
                model,
                "homography, affine, similarity, rigid or translation: structure tells nothing else",
            ))
        }
        Modality::Cross => by_structure()?.map(tied_pictures).ok_or(Error::Degenerate {
            model: options.model.map_or("model", |kind| kind.noun()),
            reason: "no more of their structure agrees than chance brings about",
        }),
        Modality::Auto => match tie_alike(pictures, finder, options, views, processor) {
            Err(error) if maps && lacks_support(&error) => by_structure()?.map(tied_pictures).ok_or(error),
            tied => tied,
        },
    }
}

/// Ties two pictures of one sensor together.
fn tie_alike(
    [a, b]: [TiePicture<'_>; 2],
    finder: &Finder,
    options: &TieOptions,
    views: Views,
    processor: &Processor,
) -> Result<TiedPictures> {
    let tied = |features, tie, views| TiedPictures { features, tie, views, modality: Modality::Same };
    let n = match views {
        Views::Count(n) => n,
        Views::Auto => match tie_found([a.found, b.found], options, processor) {
            Err(error)
                if lacks_support(&error) && !a.found.features.is_empty() && !b.found.features.is_empty() =>
            {
                Views::AUTO
            }
            tie => return Ok(tied(None, tie?, 1)),
        },
    };
    if n == 1 {
        return Ok(tied(None, tie_found([a.found, b.found], options, processor)?, 1));
    }
    let found = [finder.detect_simulated(a.image, a.mask, n)?, finder.detect_simulated(b.image, b.mask, n)?];
    let (features, tie) = tie_views(&found[0], &found[1], options, processor)?;
    Ok(tied(Some(features), tie, n))
}

/// [`tie_pictures`] by the features that a GPU found in the pictures as they are, which stay there. `None` where the
/// host needs the pictures: for simulated views or structure, which were asked for or may help, or because the GPU is too
/// small or too simple.
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
    let others = (views == Views::Auto && some) || (modality == Modality::Auto && maps(options));
    match tie_points_on_device(a, b, options, cpu) {
        Err(error) if error.is_device_limit() => Ok(None),
        Err(error) if others && lacks_support(&error) => Ok(None),
        tie => tie.map(Some),
    }
}

/// Whether points are to be mapped to points, which is all that structure tells.
fn maps(options: &TieOptions) -> bool {
    options.model.is_some_and(|kind| !kind.is_epipolar())
}

/// Whether too few matches are why there is no model: not the call, not a device, and not a plane, which more views
/// leave one.
fn lacks_support(error: &Error) -> bool {
    match error {
        Error::TooFewMatches { .. } => true,
        Error::Degenerate { reason, .. } => *reason != ON_A_PLANE,
        _ => false,
    }
}

/// Tie points from the features of views of two pictures, all in the pictures' own pixels. With them come the features
/// of all views of each picture, which the matches name by their index.
///
/// # Errors
/// As [`tie_points`](super::tie_points); [`Error::Mismatch`] without views, or with views of unlike descriptors.
pub fn tie_views(
    a: &[Features],
    b: &[Features],
    options: &TieOptions,
    processor: &Processor,
) -> Result<([Features; 2], TiePoints)> {
    options.check()?;
    let all = [concatenated(a)?, concatenated(b)?];
    let numbered = [a, b].map(|views| views.iter().zip(starts(views)).collect::<Vec<_>>());
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
    let tie = tie_points_by([&all[0].keypoints, &all[1].keypoints], options, &processor.cpu, search)?;
    Ok((all, tie))
}

/// The index that the first feature of each view has among all.
fn starts(views: &[Features]) -> Vec<u32> {
    let mut next = 0;
    let start = |features: &Features| {
        let start = next;
        next += features.len() as u32;
        start
    };
    views.iter().map(start).collect()
}

/// The best match of each place of either picture, in the order of their index in A.
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
    use crate::device::Cpu;
    use crate::evaluate::corner_error;
    use crate::feature::Detector;
    use crate::image::Size;
    use crate::synth::{Scene, SceneOptions, viewpoint};

    /// A plane seen from the front, and at 65° from the side.
    fn askance() -> (Scene<u8>, Size) {
        let size = Size::new(400, 300);
        let view = viewpoint(size, 0.3, 1.0, [0.0; 2], [0.0; 2]).unwrap();
        let squeezed =
            crate::geometry::Homography::new([[0.4, 0.0, 120.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).unwrap();
        let truth = squeezed.compose(&view);
        let options = SceneOptions::default().with_size(size).with_moving_from_reference(truth).with_seed(5);
        (Scene::render(&options, &Cpu::with_threads(2).unwrap()).unwrap(), size)
    }

    #[test]
    fn a_plane_seen_askance_is_found_by_views_alone_and_on_every_device() {
        let (scene, size) = askance();
        let cpu = Cpu::with_threads(2).unwrap();
        let tied = |views: Views, processor: &Processor| {
            let finder = Detector::default().open(processor).unwrap();
            let images = [(&scene.reference).into(), (&scene.moving).into()];
            let found = finder.detect_pair(images, [None; 2]).map(Result::unwrap);
            let pictures = [0, 1].map(|i| TiePicture { image: images[i], mask: None, found: &found[i] });
            tie_pictures(pictures, &finder, &TieOptions::default(), (views, Modality::Same), processor)
        };
        let processor = Processor::from(cpu.clone());
        let plain = tied(Views::Count(1), &processor);
        let found = tied(Views::Count(10), &processor).unwrap();
        let error = |tie: &TiePoints| {
            let h = tie.b_from_a.unwrap().homography().unwrap();
            corner_error(&h, &scene.moving_from_reference, size)
        };
        assert!(error(&found.tie) < 1.5, "corners off by {} px", error(&found.tie));
        let fewer = plain.as_ref().map_or(0, |p| p.tie.inliers.len());
        assert!(found.tie.inliers.len() > 2 * fewer, "{} and {fewer}", found.tie.inliers.len());
        let auto = tied(Views::Auto, &processor).unwrap();
        assert_eq!(auto.views, if plain.is_ok() { 1 } else { Views::AUTO }, "only where it must");
        let features = found.features.as_ref().unwrap();
        for m in &found.tie.matches {
            let [p, q] = [&features[0].keypoints[m.a as usize], &features[1].keypoints[m.b as usize]];
            assert!(p.x >= 0.0 && p.x < 400.0 && q.y >= 0.0 && q.y < 300.0, "in the pictures");
        }
        for gpu in crate::device::gpu::all() {
            let processor = Processor::with_gpu(cpu.clone(), gpu.clone());
            assert!(tied(Views::Count(10), &processor).unwrap() == found, "{gpu:?}");
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
                    assert!(there(Views::Count(1)).is_err(), "none were asked for");
                }
            }
            assert!(there(Views::Count(0)).is_err(), "an option");
        }
        assert!(tied(Views::Count(0), &processor).is_err() && tied(Views::Count(44), &processor).is_err());
    }
}
