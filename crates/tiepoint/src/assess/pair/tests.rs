//! Verdicts on pairs of synthetic pictures and matches.

use super::*;
use crate::device::{Cpu, Processor};
use crate::geometry::Fundamental;
use crate::image::{AnyImage, Image};
use crate::numeric::Random;
use crate::register::{RegisterInput, RegisterOptions, tie_images};
use crate::synth::Texture;

/// A picture whose pixels show the texture at the points to which `back` maps them.
fn picture(back: impl Fn([f64; 2]) -> [f64; 2]) -> AnyImage {
    picture_seen(back, |_, grey| grey)
}

/// As [`picture`], with grey values that `seen` computes from a pixel's position and the grey of the texture.
fn picture_seen(back: impl Fn([f64; 2]) -> [f64; 2], seen: impl Fn([f64; 2], f64) -> f64) -> AnyImage {
    Image::from_fn(Size::new(480, 360), |x, y| {
        let place = [x as f64, y as f64];
        let [u, v] = back(place);
        seen(place, 255.0 * Texture::new(1).at(u, v, 1.0)) as u8
    })
    .into()
}

const GOOD: [Verdict; 1] = [Verdict::Good];
const POOR: [Verdict; 1] = [Verdict::Poor];
const NOT_GOOD: [Verdict; 2] = [Verdict::Doubtful, Verdict::Poor];

/// The assessment of two pictures, whose verdict must be one of those expected.
fn assessed(a: &AnyImage, b: &AnyImage, kind: ModelKind, expected: &[Verdict]) -> Assessment {
    let processor = Processor::from(Cpu::with_threads(2).unwrap());
    let options = RegisterOptions::default();
    let options = RegisterOptions { tie: options.tie.with_model(Some(kind)), ..options };
    let (features, tied) = tie_images([RegisterInput::from(a), b.into()], &options, &processor).unwrap();
    let tie = tied.tie;
    let keypoints = features.each_ref().map(|of| of.keypoints.as_slice());
    let evidence =
        PairEvidence::of(keypoints, features.each_ref().map(|of| of.image), &tie, &options.tie).unwrap();
    let found = evidence.assess();
    assert!(expected.contains(&found.verdict), "{kind}, not {expected:?}: {found}: {evidence:?}");
    found
}

#[test]
fn a_plane_is_good_and_relief_under_a_homography_poor() {
    let truth = Homography::new([[0.93, -0.2, 45.0], [0.18, 0.9, -12.0], [1e-4, -1e-4, 1.0]]).unwrap();
    let flat = picture(|p| p);
    assessed(&flat, &picture(|p| truth.apply(p).unwrap()), ModelKind::Homography, &GOOD);
    // A ridge: every row moves by up to 30 px, most in the middle.
    let ridge = |[x, y]: [f64; 2]| [x + 30.0 * (1.0 - ((x - 240.0) / 240.0).powi(2)), y];
    let relief = picture(ridge);
    let poor = assessed(&flat, &relief, ModelKind::Homography, &POOR);
    let next = poor.reasons[0].next.as_deref().unwrap_or_default();
    assert!(next.contains("--model fundamental"), "the next command: {next}");
    // Steps of 4 px, which leave most matches within the threshold.
    let steps = picture(|[x, y]| [x + if ((x / 80.0) as u32).is_multiple_of(2) { 2.0 } else { -2.0 }, y]);
    let shallow = assessed(&flat, &steps, ModelKind::Homography, &NOT_GOOD);
    assert_eq!(shallow.reasons[0].measure, "residuals", "{shallow}");
    // A slope that gets steeper to the right, where a third without texture, such as water, has no inliers to show it.
    let part_blank = |back: fn([f64; 2]) -> [f64; 2]| {
        picture_seen(back, |[x, _], grey| if x < 320.0 { grey } else { 128.0 })
    };
    let rising = |[x, y]: [f64; 2]| [x + 30.0 * ((x - 160.0) / 320.0).powi(3), y];
    assessed(&part_blank(|p| p), &part_blank(rising), ModelKind::Homography, &NOT_GOOD);
    // An affine map cannot follow it either, and is extrapolated as far.
    let hidden = assessed(&part_blank(|p| p), &part_blank(rising), ModelKind::Affine, &NOT_GOOD);
    let mut next = hidden.reasons.iter().filter_map(|reason| reason.next.as_deref());
    assert!(next.all(|next| !next.contains("--model affine")), "the model it has already: {hidden:?}");
    for kind in [ModelKind::Homography, ModelKind::Affine, ModelKind::Similarity] {
        assessed(&part_blank(|p| p), &part_blank(|p| p), kind, &GOOD);
    }
    // Flat on the left, rising to the right, where a third is some 50 px off: a valley beside a mountain from above.
    let slope = picture(|[x, y]| [x + 50.0 * ((x - 160.0) / 200.0).clamp(0.0, 1.0), y]);
    assessed(&flat, &slope, ModelKind::Homography, &POOR);
    assessed(&flat, &relief, ModelKind::Fundamental, &GOOD);
}

/// Spots with these centres and radii, moved by the map `back`, on a background `grey`.
fn spotted(
    spots: &[([f64; 2], f64)],
    back: impl Fn([f64; 2]) -> [f64; 2],
    grey: impl Fn([f64; 2]) -> f64,
    depth: f64,
) -> AnyImage {
    let at = |place: [f64; 2]| {
        let [x, y] = back(place);
        let of = spots.iter().map(|([u, v], radius)| {
            let square = ((x - u).powi(2) + (y - v).powi(2)) / (2.0 * radius * radius);
            if square < 12.0 { (-square).exp() } else { 0.0 }
        });
        (grey(place) + depth * of.sum::<f64>()).clamp(0.0, 255.0) as u8
    };
    Image::from_fn(Size::new(480, 360), |x, y| at([x as f64, y as f64])).into()
}

fn spots(count: usize, radii: [f64; 2]) -> Vec<([f64; 2], f64)> {
    let mut random = Random::new(9);
    let mut spot = || {
        let place = [random.range(-60.0, 540.0), random.range(-60.0, 420.0)];
        (place, random.range(radii[0], radii[1]))
    };
    (0..count).map(|_| spot()).collect()
}

#[test]
fn what_is_fixed_to_a_sensor_is_doubtful() {
    // Few stars that moved, and hot pixels that did not.
    let (stars, hot) = (spots(60, [1.4, 1.6]), spots(900, [0.3, 0.3]));
    let sky = |by: f64| spotted(&stars, |[x, y]| [x + by, y], |_| 12.0, 150.0);
    let heated = |by: f64| {
        let AnyImage::U8(sky) = sky(by) else { panic!("bytes") };
        spotted(&hot, |p| p.map(f64::round), |[x, y]| f64::from(sky.row(y as usize)[x as usize]), 220.0)
    };
    let found = assessed(&heated(0.0), &heated(28.0), ModelKind::Homography, &NOT_GOOD);
    assert!(found.reasons.iter().any(|r| r.measure == "fixed"), "{found}");
}

/// Dust that stays on a scene that moves by less than the threshold: the map lies between the two motions.
#[test]
fn a_map_between_two_motions_is_doubtful() {
    let dust = spots(40, [4.0, 7.0]);
    let seen = |by: [f64; 2], depth: f64| {
        let scene = |[x, y]: [f64; 2]| 140.0 + 22.0 * Texture::new(7).at(x + by[0], y + by[1], 2.0);
        spotted(&dust, |p| p, scene, depth)
    };
    let found = assessed(&seen([0.0; 2], -90.0), &seen([3.0, 2.0], -90.0), ModelKind::Translation, &NOT_GOOD);
    assert!(found.reasons.iter().any(|r| r.measure == "stayed"), "{found}");
    for by in [[0.4, 0.2], [3.0, 2.0]] {
        let moved = picture(|[x, y]| [x + by[0], y + by[1]]);
        assessed(&picture(|p| p), &moved, ModelKind::Translation, &GOOD);
    }
}

#[test]
fn round_features_have_no_direction() {
    let stars = spots(260, [1.4, 3.0]);
    let (sin, cos) = 0.7_f64.sin_cos();
    let turned = |[x, y]: [f64; 2]| [cos * x - sin * y + 130.0, sin * x + cos * y - 90.0];
    let [a, b] = [spotted(&stars, |p| p, |_| 12.0, 150.0), spotted(&stars, turned, |_| 12.0, 150.0)];
    assessed(&a, &b, ModelKind::Similarity, &GOOD);
}

#[test]
fn a_frame_on_pictures_of_two_things_is_doubtful() {
    let frame = |[x, y]: [f64; 2]| !(40.0..440.0).contains(&x) || !(40.0..320.0).contains(&y);
    let framed = |by: f64| picture(|p| if frame(p) { p } else { [p[0] + by, p[1]] });
    let doubtful = assessed(&framed(0.0), &framed(3000.0), ModelKind::Homography, &NOT_GOOD);
    assert_eq!(doubtful.reasons[0].measure, "unmoved", "{doubtful}");
    let darker = picture_seen(|p| p, |_, grey| 0.4 * grey);
    assessed(&framed(0.0), &darker, ModelKind::Homography, &GOOD);
    // The picture inside the frame has no features, so inliers lie wherever there are features.
    let faint = |seed: u64| {
        picture_seen(
            |p| p,
            move |[x, y], grey| match frame([x, y]) {
                true => grey,
                false => 127.0 + 60.0 * Texture::new(seed).at(x / 12.0, y / 12.0, 2.0),
            },
        )
    };
    let unlike = assessed(&faint(5), &faint(6), ModelKind::Homography, &NOT_GOOD);
    assert!(unlike.reasons.iter().any(|r| r.measure == "unlike"), "{unlike}");
    assessed(&faint(5), &faint(5), ModelKind::Homography, &GOOD);
    // The frame is turned around with its picture.
    let turned = |by: f64| {
        picture(|[x, y]| {
            let p = [479.0 - x, 359.0 - y];
            if frame(p) { p } else { [p[0] + by, p[1]] }
        })
    };
    let unlike = assessed(&framed(0.0), &turned(3000.0), ModelKind::Homography, &NOT_GOOD);
    assert!(unlike.reasons.iter().any(|r| r.measure == "unlike"), "{unlike}");
    assessed(&framed(0.0), &turned(0.0), ModelKind::Homography, &GOOD);
    // A caption on two pictures, one of which lacks the last rows. The map may move pixels far from the caption.
    let caption = |[_, y]: [f64; 2]| y < 40.0;
    let captioned = |by: f64| picture(|p| if caption(p) { p } else { [p[0] + by, p[1]] });
    let AnyImage::U8(whole) = captioned(3000.0) else { panic!("bytes") };
    let cut = Image::from_fn(Size::new(480, 330), |x, y| whole.row(y)[x]).into();
    let doubtful = assessed(&captioned(0.0), &cut, ModelKind::Homography, &NOT_GOOD);
    assert!(
        doubtful.reasons.iter().any(|r| r.measure == "unmoved" && r.verdict != Verdict::Good),
        "{doubtful}"
    );
    // A caption at another place of another picture.
    let moved = picture(|[x, y]| match (100.0..140.0).contains(&y) {
        true => [x - 30.0, y - 100.0],
        false => [x + 3000.0, y],
    });
    let doubtful = assessed(&captioned(0.0), &moved, ModelKind::Homography, &NOT_GOOD);
    assert!(
        doubtful.reasons.iter().any(|r| r.measure == "shifted" && r.verdict != Verdict::Good),
        "{doubtful}"
    );
    assessed(&picture(|p| p), &picture(|[x, y]| [x - 60.0, y - 45.0]), ModelKind::Homography, &GOOD);
    let AnyImage::U8(same) = &darker else { panic!("bytes") };
    let cut = Image::from_fn(Size::new(480, 330), |x, y| same.row(y)[x]).into();
    assessed(&framed(0.0), &cut, ModelKind::Homography, &GOOD);
}

/// No camera mirrors what it sees.
#[test]
fn a_map_that_mirrors_is_doubtful() {
    let found =
        assessed(&picture(|p| p), &picture(|[x, y]| [479.0 - x, y]), ModelKind::Homography, &NOT_GOOD);
    assert_eq!(found.reasons[0].measure, "mirrored", "{found}");
}

fn keypoint([x, y]: [f64; 2]) -> Keypoint {
    Keypoint { x: x as f32, y: y as f32, ..Keypoint::default() }
}

/// As [`keypoint`], with a scale, as features have one.
fn feature(at: [f64; 2]) -> Keypoint {
    Keypoint { scale: 2.0, ..keypoint(at) }
}

fn anywhere(random: &mut Random) -> [f64; 2] {
    [random.range(0.0, 400.0), random.range(0.0, 300.0)]
}

/// Matches of keypoints with equal indices.
fn one_to_one(count: usize) -> Vec<Match> {
    (0..count as u32).map(|i| Match { a: i, b: i, distance: 1.0, ratio: 0.5 }).collect()
}

/// The evidence of tie points of two pictures of 400 × 300 pixels.
fn evidence(a: &[Keypoint], b: &[Keypoint], tie: &TiePoints) -> PairEvidence {
    PairEvidence::of([a, b], [Size::new(400, 300); 2], tie, &TieOptions::default()).unwrap()
}

/// A smaller share of structure's corners agrees with a right epipolar geometry than of places with a right map.
#[test]
fn few_places_contradict_a_map_and_not_an_epipolar_geometry_of_structure() {
    let mut random = Random::new(4);
    let places: Vec<Keypoint> = (0..300).map(|_| keypoint(anywhere(&mut random))).collect();
    let matches = one_to_one(300);
    let rows = Fundamental::new([[0.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]).unwrap();
    let alternatives = |halves: usize| Alternatives {
        places: [60, 5],
        halves,
        repeats: 0.2,
        repeats_px: 30.0,
        parts_by_chance: [0, 9],
    };
    for (model, alternatives, expected) in [
        (Model::Fundamental(rows), Some(alternatives(15)), Verdict::Good),
        (Model::Fundamental(rows), None, Verdict::Poor),
        (Model::Homography(Homography::default()), Some(alternatives(15)), Verdict::Poor),
    ] {
        let tie = TiePoints {
            b_from_a: Some(model),
            inliers: (0..100).collect(),
            alternatives,
            ..TiePoints::without_model(matches.clone())
        };
        let evidence = evidence(&places, &places, &tie);
        assert_eq!(PairEvidence { parallax: None, ..evidence }.assess().verdict, expected, "{model:?}");
    }
    let tie = |halves| TiePoints {
        b_from_a: Some(Model::Homography(Homography::default())),
        alternatives: Some(alternatives(halves)),
        ..TiePoints::without_model(matches.clone())
    };
    for (halves, expected) in [(20, Verdict::Good), (40, Verdict::Doubtful), (75, Verdict::Poor)] {
        let found = evidence(&places, &places, &tie(halves)).assess();
        assert_eq!(found.verdict, expected, "{halves} places on the other half");
    }
}

/// Given matches, inliers of a homography over a ridge of 2.5 px: all agree, but neighbours deviate in the same way.
#[test]
fn relief_is_seen_in_given_matches() {
    let mut random = Random::new(6);
    let a: Vec<Keypoint> = (0..300).map(|_| keypoint(anywhere(&mut random))).collect();
    for (height, expected) in [(0.0, Verdict::Good), (2.5, Verdict::Poor)] {
        let b: Vec<Keypoint> =
            a.iter().map(|k| Keypoint { x: k.x + height * (k.x / 40.0).sin(), ..*k }).collect();
        let b_from_a = Some(Model::Homography(Homography::default()));
        let tie = TiePoints { b_from_a, ..TiePoints::without_model(one_to_one(300)) };
        let found = evidence(&a, &b, &tie).assess();
        assert_eq!(found.verdict, expected, "{found}");
    }
}

/// Points that are given many times count once.
#[test]
fn inliers_at_one_place_count_once() {
    let mut random = Random::new(8);
    for (different, times, expected) in [
        (8, 60, Verdict::Doubtful),
        (7, 60, Verdict::Poor),
        (20, 3, Verdict::Doubtful),
        (120, 2, Verdict::Good),
    ] {
        let places: Vec<_> = (0..different).map(|_| keypoint(anywhere(&mut random))).collect();
        let a: Vec<Keypoint> = places.iter().cycle().take(different * times).copied().collect();
        let b: Vec<Keypoint> = a.iter().map(|k| Keypoint { x: k.x + 3.0, ..*k }).collect();
        let b_from_a = Some(Model::Homography(
            Homography::new([[1.0, 0.0, 3.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).unwrap(),
        ));
        let tie = TiePoints { b_from_a, ..TiePoints::without_model(one_to_one(a.len())) };
        let found = evidence(&a, &b, &tie).assess();
        let reason = found.reasons.iter().find(|reason| reason.measure == "inliers").unwrap();
        assert_eq!((reason.value, reason.verdict), (different as f64, expected), "{found}");
        assert_eq!(found.verdict == Verdict::Good, expected == Verdict::Good, "{found}");
        assert!(reason.text.ends_with(&format!(" at {different} different places")), "{}", reason.text);
    }
}

/// Some first matches agree on another map: this map displaced, as by a repeated pattern, or one that also rotates.
#[test]
fn matches_on_another_map_are_doubtful() {
    let mut random = Random::new(5);
    let places: Vec<[f64; 2]> = (0..60).map(|_| anywhere(&mut random)).collect();
    let a: Vec<Keypoint> = places.iter().copied().map(feature).collect();
    for (displaced, turned, scattered, expected) in
        [(0, false, 15, Verdict::Good), (15, false, 0, Verdict::Doubtful), (15, true, 0, Verdict::Doubtful)]
    {
        let right = 60 - displaced - scattered;
        let b: Vec<Keypoint> = (0..60)
            .map(|i| match i {
                _ if i < right => feature(places[i]),
                _ if i < right + displaced && turned => {
                    let [x, y] = places[i];
                    Keypoint { angle: 90.0, ..feature([350.0 - y, x - 30.0]) }
                }
                _ if i < right + displaced => feature([places[i][0] + 64.0, places[i][1] - 30.0]),
                _ => feature(anywhere(&mut random)),
            })
            .collect();
        let first = one_to_one(60);
        let tie = TiePoints {
            matches: first[..right].to_vec(),
            inliers: (0..right).collect(),
            b_from_a: Some(Model::Homography(Homography::default())),
            first,
            ..TiePoints::without_model(vec![])
        };
        let evidence = evidence(&a, &b, &tie);
        assert!(evidence.rival.unwrap().abs_diff(displaced) <= 2, "{:?}", evidence.rival);
        assert_eq!(evidence.assess().verdict, expected, "{}", evidence.assess());
    }
}

/// Inliers are only asked for where neither picture is masked.
/// Features of other programs may have no scale or no angle: all of them are alike, or none is a number above 0.
#[test]
fn a_scale_or_angle_that_is_not_known_contradicts_nothing() {
    let mut random = Random::new(7);
    let places: Vec<_> = (0..200).map(|_| anywhere(&mut random)).collect();
    let of = |by: f64, scale: &dyn Fn(usize) -> f32, angle: f32| -> Vec<Keypoint> {
        let feature = |(i, at): (usize, &[f64; 2])| Keypoint {
            scale: scale(i),
            angle: angle * i as f32,
            ..keypoint(at.map(|v| by * v))
        };
        places.iter().enumerate().map(feature).collect()
    };
    let half = Homography::new([[0.5, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 1.0]]).unwrap();
    let measured = |i: usize| 2.0 + 0.1 * i as f32;
    let first = one_to_one(200);
    for (a, b, contrary) in [
        (of(1.0, &|_| 1.0, 0.0), of(0.5, &|_| 1.0, 0.0), None),
        (of(1.0, &|_| f32::NAN, 0.0), of(0.5, &|_| f32::NAN, 0.0), Some(0)),
        (of(1.0, &measured, 0.0), of(0.5, &|i| 0.5 * measured(i), 0.0), Some(0)),
        (of(1.0, &measured, 0.0), of(0.5, &measured, 0.0), Some(200)),
        (of(1.0, &|_| 1.0, 0.01), of(0.5, &|_| 1.0, 0.01), Some(0)),
        (of(1.0, &|_| 1.0, 0.01), of(0.5, &|_| 1.0, 3.0), Some(150)),
    ] {
        let tie = TiePoints {
            matches: first.clone(),
            inliers: (0..200).collect(),
            b_from_a: Some(Model::Homography(half)),
            first: first.clone(),
            ..TiePoints::without_model(vec![])
        };
        let evidence = evidence(&a, &b, &tie);
        assert_eq!(evidence.contrary, contrary);
        let expected = if contrary.is_some_and(|n| n > 0) { Verdict::Poor } else { Verdict::Good };
        assert_eq!(evidence.assess().verdict, expected, "{contrary:?}: {}", evidence.assess());
    }
}

#[test]
fn masked_parts_do_not_count() {
    let size = Size::new(300, 300);
    let keypoints: Vec<Keypoint> =
        (0..90).map(|i| keypoint([f64::from(i % 10 * 10), f64::from(i / 10 * 30)])).collect();
    let b_from_a = Some(Model::Homography(Homography::default()));
    let whole = TiePoints { b_from_a, ..TiePoints::without_model(one_to_one(90)) };
    let right_is_masked = [false, true, true, false, true, true, false, true, true];
    let both = [[right_is_masked, [false; 9]], [[false; 9], right_is_masked]];
    let evidence = |size: Size, tie: &TiePoints| {
        PairEvidence::of([&keypoints, &keypoints], [size; 2], tie, &TieOptions::default()).unwrap()
    };
    let spread = |tie: &TiePoints| {
        let reasons = evidence(size, tie).assess().reasons;
        reasons.into_iter().find(|reason| reason.measure == "spread").unwrap().value
    };
    let (known, unknown) = (evidence(size, &whole), evidence(Size::new(0, 0), &whole));
    assert_eq!(
        (known.shared, unknown.cells.map(|cell| cell.inliers > 0)),
        (9, [true; 9]),
        "of no known size"
    );
    assert_eq!(spread(&whole), 3.0 / 9.0, "in the left third");
    for hidden in both {
        assert_eq!(spread(&TiePoints { hidden, ..whole.clone() }), 1.0, "{hidden:?}");
    }
}

/// 400 matches of a plane and 60 others: of a repeated pattern on the plane, or of an object in front of it.
#[test]
fn an_epipolar_geometry_of_a_plane_is_poor() {
    let mut random = Random::new(2);
    for (is_thing, expected) in [(false, 0.0..0.1), (true, 0.9..1.1)] {
        let (mut a, mut b) = (vec![], vec![]);
        for i in 0..460 {
            let place = match i < 400 || !is_thing {
                true => anywhere(&mut random),
                false => [random.range(150.0, 220.0), random.range(100.0, 170.0)],
            };
            let by = match is_thing {
                _ if i < 400 => 0.0,
                true => 14.0,
                false => random.range(10.0, 150.0),
            };
            a.push(feature(place));
            b.push(feature([0.9 * place[0] + 20.0 + by, 0.95 * place[1] + 8.0]));
        }
        let tie = TiePoints::without_model(one_to_one(460));
        let found = parallax([&a, &b], &tie, &TieOptions::default()).unwrap();
        assert!(expected.contains(&found), "a thing: {is_thing}: {found}");
    }
}

#[test]
fn without_a_model_there_is_no_verdict() {
    let tie = TiePoints::without_model(vec![]);
    let evidence = PairEvidence::of([&[], &[]], [Size::new(9, 9); 2], &tie, &TieOptions::default());
    assert_eq!(evidence, None, "no model");
}
