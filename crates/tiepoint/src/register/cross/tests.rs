use super::*;
use crate::assess::{PairEvidence, Verdict};
use crate::device::{SimdLevel, tests::every_cpu};
use crate::error::ErrorKind;
use crate::evaluate::corner_error;
use crate::numeric::{Random, median};
use crate::options::Named;
use crate::synth::{Scene, SceneOptions, Sensor, viewpoint};

const SIZE: Size = Size { width: 320, height: 256 };

fn scene(seed: u64) -> Scene<u8> {
    sized(seed, 1.15, SIZE)
}

fn sized(seed: u64, scale: f64, size: Size) -> Scene<u8> {
    seen_by(seed, viewpoint(size, 0.7, scale, [0.0; 2], [12.0, -7.0]).unwrap(), size)
}

fn seen_by(seed: u64, moving_from_reference: Homography, size: Size) -> Scene<u8> {
    let options = SceneOptions { size, seed, moving_from_reference, ..SceneOptions::default() };
    Scene::render(&options, &Cpu::with_threads(2).unwrap()).unwrap()
}

fn tied(a: &Image<u8>, b: &Image<u8>, kind: ModelKind, cpu: &Cpu) -> Option<StructureTie> {
    let options = TieOptions::default().with_model(Some(kind));
    tie([(a.into(), None), (b.into(), None)], &options, &cpu.clone().into()).unwrap()
}

#[test]
fn scenes_by_other_sensors_are_registered_and_unrelated_ones_refused() {
    let cpu = Cpu::with_threads(2).unwrap();
    let (one, another) = (scene(5), scene(6));
    for sensor in Sensor::ALL.iter().map(|choice| choice.value) {
        let seen = sensor.shows(&one.moving, 9);
        let kinds: &[ModelKind] = match sensor {
            Sensor::Inverted => &[ModelKind::Homography, ModelKind::Affine, ModelKind::Similarity],
            _ => &[ModelKind::Homography],
        };
        for &kind in kinds {
            let found =
                tied(&one.reference, &seen, kind, &cpu).unwrap_or_else(|| panic!("{sensor} is refused"));
            let error = error(&found, &one.moving_from_reference, SIZE);
            assert!(error < 1.5, "{sensor}: the corners of {kind:?} are off by {error} px");
            assert_eq!(found.tie.b_from_a.unwrap().kind(), kind);
            assert!(2 * found.tie.inliers.len() > found.tie.matches.len(), "{sensor}");
            assert_eq!(found.features.each_ref().map(Features::len), [found.tie.matches.len(); 2]);
            let Alternatives { places, halves, repeats, .. } = found.tie.alternatives.unwrap();
            assert!(places[0] > 2 * places[1] && repeats < 0.5, "{sensor}: {places:?}, {repeats}");
            assert!(places[0] > 3 * halves, "{sensor}: {places:?}, {halves}");
            assert_eq!(verdict(&found), Verdict::Good, "{sensor}");
        }
        assert!(
            tied(&one.reference, &seen, ModelKind::Rigid, &cpu).is_none(),
            "{sensor}: it is no rigid motion"
        );
        assert_eq!(tied(&another.reference, &seen, ModelKind::Homography, &cpu), None, "{sensor}");
    }
}

/// They are enlarged for the search: a thumbnail, and a thermal image beside a photograph of six times its resolution.
#[test]
fn small_pictures_are_registered() {
    let cpu = Cpu::with_threads(2).unwrap();
    for (size, small, turn) in [(64, 64, 0.7), (480, 80, 0.1)] {
        let (size, scale) = (Size::new(size, size), 1.1 * small as f64 / size as f64);
        let middle = |side: usize| 0.5 * (side as f64 - 1.0);
        let (sin, cos) = libm::sincos(turn);
        let [c, s] = [scale * cos, scale * sin];
        let [x, y] = [c - s, s + c].map(|by| middle(small) - middle(size.width) * by);
        let truth = Homography::new([[c, -s, x], [s, c, y], [0.0, 0.0, 1.0]]).unwrap();
        let reference = seen_by(5, Homography::default(), size).reference;
        let seen = Intensity::of((&reference).into(), None, size, &cpu).unwrap();
        let seen = seen.resampled(&truth.inverse().unwrap(), Size::new(small, small), &cpu).unwrap();
        let inverted = |x: usize, y: usize| (255.0 * (1.0 - seen.grey.row(y)[x])) as u8;
        let seen = Image::from_fn(seen.size(), inverted);
        let found = tied(&reference, &seen, ModelKind::Homography, &cpu).unwrap();
        let error = error(&found, &truth, size);
        assert!(error < 0.5, "{size:?}: the corners are off by {error} px of the small picture");
        assert_eq!(verdict(&found), Verdict::Good);
    }
}

/// Interpolated pixels, as of thermal cameras, show noise and structure at a coarser size than descriptors look at.
#[test]
fn pictures_larger_than_they_are_sharp_are_registered() {
    let (cpu, large) = (Cpu::with_threads(2).unwrap(), Size::new(800, 640));
    let enlarging = Homography::new([[2.5, 0.0, 0.75], [0.0, 2.5, 0.75], [0.0, 0.0, 1.0]]).unwrap();
    let scene = sized(5, 0.98, SIZE);
    let mut random = Random::new(3);
    let mut seen = |of: &Image<u8>| {
        let noisy = Image::from_fn(SIZE, |x, y| (f64::from(of.row(y)[x]) + 60.0 * random.normal()) as u8);
        let noisy = Intensity::of((&noisy).into(), None, SIZE, &cpu).unwrap();
        let larger = noisy.resampled(&enlarging.inverse().unwrap(), large, &cpu).unwrap();
        Image::from_fn(large, |x, y| (255.0 * larger.grey.row(y)[x]) as u8)
    };
    let (a, b) = (seen(&scene.reference), seen(&Sensor::Inverted.shows(&scene.moving, 9)));
    let found = tied(&a, &b, ModelKind::Homography, &cpu).unwrap();
    let truth = enlarging.compose(&scene.moving_from_reference.compose(&enlarging.inverse().unwrap()));
    let error = error(&found, &truth, large);
    assert!(error < 1.5, "the corners are off by {error} px");
}

/// No similarity brings the edges of such pictures close enough for the alignment.
#[test]
fn pictures_sheared_or_seen_in_perspective_are_registered() {
    let (cpu, size) = (Cpu::with_threads(2).unwrap(), Size::new(560, 420));
    let (middle, back) = ([[1.0, 0.0, -280.0], [0.0, 1.0, -210.0]], [[1.0, 0.0, 280.0], [0.0, 1.0, 210.0]]);
    let shift = |[x, y]: [[f64; 3]; 2]| Homography::new([x, y, [0.0, 0.0, 1.0]]).unwrap();
    for (shear, perspective) in [(0.12, 0.0), (0.0, 2.5e-4)] {
        let own = [[1.0, shear, 6.0], [0.0, 1.0, -4.0], [perspective, -0.7 * perspective, 1.0]];
        let truth = shift(back).compose(&Homography::new(own).unwrap().compose(&shift(middle)));
        let scene = seen_by(5, truth, size);
        for sensor in [Sensor::Speckle, Sensor::Edges] {
            let found =
                tied(&scene.reference, &sensor.shows(&scene.moving, 9), ModelKind::Homography, &cpu).unwrap();
            let error = error(&found, &truth, size);
            assert!(error < 1.5, "{sensor}, {shear}, {perspective}: the corners are off by {error} px");
        }
    }
}

/// By how many pixels a tie's map displaces the corners of a picture of this size.
fn error(found: &StructureTie, truth: &Homography, size: Size) -> f64 {
    corner_error(&found.tie.b_from_a.unwrap().homography().unwrap(), truth, size)
}

fn verdict(StructureTie { features, tie, .. }: &StructureTie) -> Verdict {
    let (keypoints, sizes) =
        (features.each_ref().map(|of| of.keypoints.as_slice()), features.each_ref().map(|of| of.image));
    PairEvidence::of(keypoints, sizes, tie, &TieOptions::default()).unwrap().assess().verdict
}

/// Panels in rows, 64 × 48 pixels each: a map that is off by some of them agrees everywhere.
#[test]
fn a_map_of_what_repeats_itself_is_called_poor() {
    let cpu = Cpu::with_threads(2).unwrap();
    let panel = scene(5).reference;
    let mut random = Random::new(3);
    let mut seen = |by: [usize; 2]| {
        Image::from_fn(SIZE, |x, y| {
            let panel = f64::from(panel.row((y + by[1]) % 48)[(x + by[0]) % 64]);
            (panel + 3.0 * random.normal()).clamp(0.0, 255.0) as u8
        })
    };
    let found = tied(&seen([0, 0]), &seen([150, 97]), ModelKind::Homography, &cpu).unwrap();
    let Alternatives { repeats, repeats_px, .. } = found.tie.alternatives.unwrap();
    let periods = (repeats_px / 16.0 - (repeats_px / 16.0).round()).abs();
    assert!(repeats > 0.9 && repeats_px >= 48.0 && periods < 0.1, "{repeats} at {repeats_px} px");
    assert_eq!(verdict(&found), Verdict::Poor);
}

/// Both halves of a picture show the same object at two scales: another picture of it may show either half.
#[test]
fn a_picture_whose_halves_show_one_thing_is_not_good() {
    let cpu = Cpu::with_threads(2).unwrap();
    let upright = viewpoint(Size::new(200, 256), 0.0, 0.95, [0.0; 2], [4.0, -3.0]).unwrap();
    let again = seen_by(5, upright, Size::new(200, 256));
    let both = Image::from_fn(Size::new(400, 256), |x, y| match x {
        0..200 => again.reference.row(y)[x],
        _ => again.moving.row(y)[x - 200],
    });
    let found =
        tied(&both, &Sensor::Inverted.shows(&again.reference, 9), ModelKind::Homography, &cpu).unwrap();
    let Alternatives { places, halves, .. } = found.tie.alternatives.unwrap();
    assert!(10 * halves > 6 * places[0], "{places:?}, {halves}");
    assert_ne!(verdict(&found), Verdict::Good);
}

/// Cells on black, as in fluorescence, and their negative: the background is not taken for an empty border.
#[test]
fn a_scene_spread_over_a_dark_ground_is_registered() {
    let cpu = Cpu::with_threads(2).unwrap();
    let cells = |seed, [left, top]: [f64; 2]| {
        let mut random = Random::new(seed);
        let mut within = |low, high| random.range(low, high);
        let cells: Vec<_> = (0..110)
            .map(|_| [within(0.0, 360.0), within(0.0, 300.0), within(5.0, 12.0), within(60.0, 200.0)])
            .collect();
        Image::from_fn(SIZE, |x, y| {
            let at = |[u, v, radius, bright]: &[f64; 4]| {
                let far = (x as f64 + left - u).hypot(y as f64 + top - v) / radius;
                (bright * (4.0 - 4.0 * far).clamp(0.0, 1.0)) as u8
            };
            cells.iter().map(at).max().unwrap()
        })
    };
    let negative = |image: Image<u8>| Image::from_fn(SIZE, |x, y| 255 - image.row(y)[x]);
    let moved = negative(cells(1, [12.0, 7.0]));
    let found = tied(&cells(1, [0.0; 2]), &moved, ModelKind::Similarity, &cpu).unwrap();
    let truth = Homography::new([[1.0, 0.0, -12.0], [0.0, 1.0, -7.0], [0.0, 0.0, 1.0]]).unwrap();
    let error = error(&found, &truth, SIZE);
    assert!(error < 0.5, "the corners are off by {error} px");
    assert_eq!(tied(&cells(2, [0.0; 2]), &moved, ModelKind::Similarity, &cpu), None, "other cells");
}

/// A picture seen from one side: an affine map fits no better than a similarity.
#[test]
fn pure_perspective_is_found() {
    let cpu = Cpu::with_threads(2).unwrap();
    let [w, h] = [SIZE.width as f64 / 2.0, SIZE.height as f64 / 2.0];
    let shift = |x, y| Homography::new([[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]]).unwrap();
    let keystone = Homography::new([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.03 / w, 0.0, 1.0]]).unwrap();
    let truth = shift(w, h).compose(&keystone.compose(&shift(-w, -h)));
    let scene = seen_by(5, truth, SIZE);
    let seen = Sensor::Inverted.shows(&scene.moving, 9);
    let found = tied(&scene.reference, &seen, ModelKind::Homography, &cpu).unwrap();
    let error = error(&found, &truth, SIZE);
    assert!(error < 0.5, "the corners are off by {error} px");
}

/// Deviations of places are in pixels of B, whichever picture is finer.
#[test]
fn deviations_are_in_pixels_of_b() {
    let cpu = Cpu::with_threads(2).unwrap();
    let scene = sized(5, 1.7, SIZE);
    let seen = Sensor::Inverted.shows(&scene.moving, 9);
    let deviation = |a: &Image<u8>, b: &Image<u8>| {
        let found = tied(a, b, ModelKind::Similarity, &cpu).unwrap();
        median(found.features[1].keypoints.iter().map(|k| f64::from(k.scale))).unwrap()
    };
    let ratio = deviation(&scene.reference, &seen) / deviation(&seen, &scene.reference);
    assert!((1.3..2.2).contains(&ratio), "1.7 pixels of B are one of A: {ratio}");
}

#[test]
fn a_refusal_names_the_range_of_scales() {
    let (small, large) = (Size::new(160, 120), Size::new(4000, 3000));
    let refused = || Error::NoModel {
        error: Box::new(Error::Degenerate { model: "homography", reason: "" }),
        compared: String::new(),
        advice: "Look".into(),
    };
    let kind = ModelKind::Homography;
    for (error, expected) in [
        (advised(refused(), kind, [small, large], 2.0), "thing? Try masks"),
        (advised(refused(), kind, [large, large], 2.0), "Try `--scale-range 4`"),
    ] {
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
}

#[test]
fn unusual_scales_and_sizes_are_registered() {
    let cpu = Cpu::with_threads(2).unwrap();
    let (similarity, homography) = (ModelKind::Similarity, ModelKind::Homography);
    for (scale, size, kind, what) in [
        (0.6, SIZE, similarity, "a level at which the first round of the search does not look"),
        (1.7, SIZE, similarity, "another such level"),
        (
            1.15,
            Size::new(312, 264),
            homography,
            "half the size is a whole number of the cells that are judged",
        ),
    ] {
        let scene = sized(5, scale, size);
        let seen = Sensor::Inverted.shows(&scene.moving, 9);
        let found = tied(&scene.reference, &seen, kind, &cpu).unwrap_or_else(|| panic!("refused: {what}"));
        let error = error(&found, &scene.moving_from_reference, size);
        assert!(error < 1.5, "{what}: the corners are off by {error} px");
    }
}

#[test]
fn a_tie_is_the_same_for_any_threads_and_simd_level() {
    let scene = scene(5);
    let seen = Sensor::Folded.shows(&scene.moving, 9);
    let tied = |cpu: &Cpu| tied(&scene.reference, &seen, ModelKind::Homography, cpu).unwrap();
    let expected = tied(&Cpu::sequential().at_level(SimdLevel::Baseline).unwrap());
    for (cpu, name) in every_cpu() {
        assert_eq!(tied(&cpu), expected, "{name}");
    }
}

#[test]
fn blank_pictures_are_refused() {
    let cpu = Cpu::sequential();
    let scene = scene(5);
    let grey = Image::filled(SIZE, 1, 128_u8);
    let black = Image::filled(SIZE, 1, 0_u8);
    let small = Image::filled(Size::new(20, 300), 1, 9_u8);
    for nothing in [&grey, &black, &small] {
        assert_eq!(tied(&scene.reference, nothing, ModelKind::Homography, &cpu), None);
        assert_eq!(tied(nothing, &scene.reference, ModelKind::Homography, &cpu), None);
    }
}

/// If no map is asked for, corners are matched. Corners on a plane do not determine an epipolar geometry.
#[test]
fn corners_that_correspond_are_matched() {
    let cpu = Cpu::with_threads(2).unwrap();
    let scene = scene(5);
    let seen = Sensor::Inverted.shows(&scene.moving, 9);
    let tied = |a: &Image<u8>, b: &Image<u8>, model: Option<ModelKind>| {
        let options = TieOptions::default().with_model(model);
        tie([(a.into(), None), (b.into(), None)], &options, &cpu.clone().into())
    };
    let found = tied(&scene.reference, &seen, None).unwrap().unwrap();
    let (tie, [a, b]) = (&found.tie, &found.features);
    assert_eq!((tie.b_from_a, tie.inliers.len()), (None, tie.matches.len()));
    let misses = tie.matches.iter().map(|m| {
        let pair = m.correspondence(&a.keypoints, &b.keypoints);
        let [x, y] = scene.moving_from_reference.apply(pair.a).unwrap();
        length([x - pair.b[0], y - pair.b[1]])
    });
    let near = misses.filter(|miss| *miss < 3.0).count();
    assert!(near > 100 && 2 * near > tie.matches.len(), "{near} of {}", tie.matches.len());
    let flat = tied(&scene.reference, &seen, Some(ModelKind::Fundamental)).unwrap_err();
    assert_eq!(flat.kind(), ErrorKind::Degenerate, "{flat}");
}

/// Pictures that are searched at a fraction of their size are aligned at full size.
#[test]
fn large_pictures_are_aligned_at_their_own_size() {
    let size = Size::new(1300, 1000);
    let scene = sized(5, 1.15, size);
    let cpu = Cpu::with_threads(2).unwrap();
    let seen = Sensor::Folded.shows(&scene.moving, 9);
    let back = scene.moving_from_reference.inverse().unwrap();
    let cases = [(&scene.reference, &seen, scene.moving_from_reference), (&seen, &scene.reference, back)];
    for (a, b, truth) in cases {
        let found = tied(a, b, ModelKind::Homography, &cpu).unwrap();
        let error = error(&found, &truth, size);
        assert!(error < 0.2, "the corners are off by {error} px");
        assert!(found.tie.rms_px < 0.6, "places are off by {} px", found.tie.rms_px);
    }
}
