use super::*;
use crate::assess::{Assessment, Verdict};
use crate::device::tests::every_cpu;
use crate::feature::{Features, sift};
use crate::geometry::calibration::Distortion;
use crate::geometry::matrix::IDENTITY;
use crate::geometry::warp::Interpolation;
use crate::geometry::{Correspondence, Fundamental, ModelKind, RobustOptions};
use crate::image::testing::{photograph, shared};
use crate::register::{Rematch, TieOptions, tie_points};

struct Random(u64);

impl Random {
    /// Uniform from −1 to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

fn bilinear() -> WarpOptions {
    WarpOptions::default().with_interpolation(Interpolation::Bilinear)
}

/// A rotation about x, then y, then z, by angles in radians.
fn turn(x: f64, y: f64, z: f64) -> [[f64; 3]; 3] {
    let (sx, cx, sy, cy, sz, cz) = (x.sin(), x.cos(), y.sin(), y.cos(), z.sin(), z.cos());
    let rx = [[1.0, 0.0, 0.0], [0.0, cx, -sx], [0.0, sx, cx]];
    let ry = [[cy, 0.0, sy], [0.0, 1.0, 0.0], [-sy, 0.0, cy]];
    let rz = [[cz, -sz, 0.0], [sz, cz, 0.0], [0.0, 0.0, 1.0]];
    product(&rz, &product(&ry, &rx))
}

const SIZE: Size = Size::new(640, 480);

fn rig(rotation: [[f64; 3]; 3], translation: [f64; 3], lenses: [Distortion; 2]) -> StereoCalibration {
    let [left, right] = lenses.map(|distortion| Camera { distortion, ..Camera::centred(600.0, SIZE) });
    StereoCalibration { cameras: [left, right], sizes: [Some(SIZE); 2], rotation, translation, stored: None }
}

/// Random points that both cameras see: as pixels of both, and in the left camera's coordinates.
fn scene(rig: &StereoCalibration, n: usize, noise: f64) -> (Vec<Correspondence>, Vec<[f64; 3]>) {
    let mut random = Random(7);
    let (mut pairs, mut points) = (vec![], vec![]);
    let inside = |p: [f64; 2]| p[0] >= 0.0 && p[1] >= 0.0 && p[0] <= 639.0 && p[1] <= 479.0;
    while pairs.len() < n {
        let z = 7.0 + 3.0 * random.next();
        let point = [0.5 * z * random.next(), 0.4 * z * random.next(), z];
        let moved = times(&rig.rotation, point);
        let other: [f64; 3] = std::array::from_fn(|i| moved[i] + rig.translation[i]);
        let [mut a, mut b] = [(0, point), (1, other)]
            .map(|(i, p): (usize, [f64; 3])| rig.cameras[i].pixel([p[0] / p[2], p[1] / p[2]]));
        if other[2] > 0.0 && inside(a) && inside(b) {
            a.iter_mut().chain(&mut b).for_each(|v| *v += noise * random.next());
            pairs.push(Correspondence { a, b, quality: 0.0 });
            points.push(point);
        }
    }
    (pairs, points)
}

fn rectified(rig: &StereoCalibration) -> Result<Rectification> {
    Rectification::new(rig, [SIZE; 2], &RectifyOptions::default())
}

/// Whether every pixel of a view shows the picture.
fn is_full(view: &RectifiedView, cpu: &Cpu) -> bool {
    view.coverage(cpu).unwrap().data().iter().all(|v| *v == 255)
}

const LENSES: [Distortion; 2] = [
    Distortion { k1: -0.28, k2: 0.04, p1: 1.2e-3, p2: -1e-4, k3: 0.1 },
    Distortion { k1: -0.3, k2: 0.14, p1: -5e-4, p2: 1e-4, k3: -0.05 },
];

#[test]
fn rows_and_depths_of_a_known_scene() {
    let rigs = [
        rig(turn(0.02, -0.05, 0.03), [-1.0, 0.1, -0.05], LENSES),
        rig(turn(-0.1, 0.2, -0.3), [-1.0, -0.4, 0.2], [Distortion::default(); 2]),
        // Cameras one above the other: rectified pictures are rotated by a quarter turn.
        rig(turn(0.03, 0.0, 0.01), [0.0, -1.0, 0.05], LENSES),
    ];
    for (i, rig) in rigs.iter().enumerate() {
        for frame in [OutputFrame::Input, OutputFrame::Fit, OutputFrame::All] {
            for principal in [Principal::Shared, Principal::Own] {
                let options = RectifyOptions { frame, principal };
                let found = Rectification::new(rig, [SIZE; 2], &options).unwrap();
                let (pairs, points) = scene(rig, 200, 0.0);
                let agreement = found.agreement(&pairs).unwrap();
                assert!(agreement.rms_vertical_px < 1e-8, "rig {i}, {options:?}: {agreement:?}");
                let calibration = found.calibration();
                for (pair, point) in pairs.iter().zip(points) {
                    let (a, b) = (found.left.place(pair.a).unwrap(), found.right.place(pair.b).unwrap());
                    let depth = times(&found.left.rotation, point)[2];
                    let z = calibration.depth(a[0] - b[0]).unwrap();
                    assert!((z / depth - 1.0).abs() < 1e-8, "rig {i}: depth {z}, expected {depth}");
                    let source = found.left.source(a).unwrap();
                    let off = (source[0] - pair.a[0]).abs().max((source[1] - pair.a[1]).abs());
                    assert!(off < 1e-7, "and back: {off}");
                }
            }
        }
    }
}

#[test]
fn a_rectified_rig_leaves_the_pictures_unchanged() {
    let straight = rig(IDENTITY, [-0.1, 0.0, 0.0], [Distortion::default(); 2]);
    let found = rectified(&straight).unwrap();
    assert_eq!((found.left.focal, found.left.principal, found.left.size), (600.0, [319.5, 239.5], SIZE));
    let picture = Image::from_fn(SIZE, |x, y| (x * 7 + y * 13) as u8);
    let cpu = Cpu::sequential();
    let same = found.right.warp(picture.view(), &bilinear(), &cpu).unwrap();
    assert_eq!(same, picture, "the picture itself");
    assert!(is_full(&found.right, &cpu), "all of it");
}

#[test]
fn the_frame_holds_valid_pixels_only_or_all_pixels() {
    let rig = rig(turn(0.02, -0.05, 0.06), [-1.0, 0.1, -0.05], LENSES);
    let cpu = Cpu::sequential();
    let with = |frame| {
        Rectification::new(&rig, [SIZE; 2], &RectifyOptions { frame, ..RectifyOptions::default() }).unwrap()
    };
    let valid = with(OutputFrame::Valid);
    assert!(is_full(&valid.left, &cpu) && is_full(&valid.right, &cpu), "no black pixel");
    let all = with(OutputFrame::All);
    for view in [&all.left, &all.right] {
        for corner in [[0.0, 0.0], [639.0, 0.0], [0.0, 479.0], [639.0, 479.0]] {
            let [x, y] = view.place(corner).unwrap();
            assert!((-1e-6..639.001).contains(&x) && (-1e-6..479.001).contains(&y), "{corner:?} at {x}, {y}");
        }
    }
    assert!(all.left.focal < valid.left.focal, "smaller to show more");
}

#[test]
fn warping_is_the_same_everywhere_and_equals_single_places() {
    let rig = rig(turn(0.05, -0.1, 0.2), [-1.0, 0.3, -0.1], LENSES);
    let found = rectified(&rig).unwrap();
    let view = &found.left;
    let inverse = Inverse::of(view);
    let picture = Image::from_fn(SIZE, |x, y| ((x * x + 31 * y * y) % 251) as u8);
    let mut results = vec![];
    for (cpu, name) in every_cpu() {
        results.push(view.warp(picture.view(), &WarpOptions::default().with_fill(9.0), &cpu).unwrap());
        let (mut u, mut v) = ([0.0; 640], [0.0; 640]);
        for y in [0, 77, 479] {
            inverse.part(0, f64::from(y), &mut u, &mut v, cpu.level());
            for x in 0..640 {
                match view.source([x as f64, f64::from(y)]) {
                    Some(place) => assert_eq!([u[x], v[x]], place, "{x}, {y} at {name}"),
                    None => assert!(u[x].is_nan(), "{x}, {y} has no source"),
                }
            }
        }
    }
    assert!(results.windows(2).all(|w| w[0] == w[1]), "one answer");
    let wrong = Image::<u8>::new(Size::new(3, 3));
    assert!(view.warp(wrong.view(), &bilinear(), &Cpu::sequential()).is_err(), "another size");
}

#[test]
fn rigs_that_cannot_be_rectified_are_errors() {
    let none = [Distortion::default(); 2];
    let refused = |rig: &StereoCalibration, sizes| {
        Rectification::new(rig, sizes, &RectifyOptions::default()).unwrap_err().to_string()
    };
    let forward = rig(IDENTITY, [-0.1, 0.0, -1.0], none);
    assert!(refused(&forward, [SIZE; 2]).contains("forward"), "an epipole in the picture");
    let exchanged = rig(turn(0.1, 0.0, 0.0), [1.0, 0.2, 0.0], none);
    assert!(!Rectification::in_order(&exchanged), "order");
    assert!(refused(&exchanged, [SIZE; 2]).contains("exchange"), "order");
    assert!(rectified(&exchanged.exchanged()).is_ok(), "exchanged pictures are named");
    let sound = rig(IDENTITY, [-1.0, 0.0, 0.0], none);
    assert!(refused(&sound, [SIZE, Size::new(641, 480)]).contains("641x480"), "another size");
    assert!(refused(&sound, [SIZE, Size::new(0, 480)]).contains("empty"), "no pixels");
    let nowhere = StereoCalibration { translation: [0.0; 3], ..sound.clone() };
    assert!(refused(&nowhere, [SIZE; 2]).contains("apart"), "one place");
    let mirrored =
        StereoCalibration { rotation: [[-1.0, 0.0, 0.0], IDENTITY[1], IDENTITY[2]], ..sound.clone() };
    assert!(refused(&mirrored, [SIZE; 2]).contains("rotation"), "a mirror");
    let apart = rig(turn(1.2, 0.0, 0.0), [-1.0, 0.0, 0.0], none);
    assert!(refused(&apart, [SIZE; 2]).contains("share no row"), "looking up and down");
    let folding = rig(IDENTITY, [-1.0, 0.0, 0.0], [Distortion { k1: -3.0, ..Distortion::default() }; 2]);
    assert!(refused(&folding, [SIZE; 2]).contains("folds"), "a lens that is none");
    assert!(Rectification::stored(&sound, [SIZE; 2]).is_err(), "nothing stored");
}

#[test]
fn pictures_of_one_pixel() {
    let one = Size::new(1, 1);
    let camera = Camera::centred(1.0, one);
    let rig = StereoCalibration {
        cameras: [camera; 2],
        sizes: [None; 2],
        rotation: IDENTITY,
        translation: [-1.0, 0.0, 0.0],
        stored: None,
    };
    for frame in [OutputFrame::Input, OutputFrame::Fit, OutputFrame::Valid, OutputFrame::All] {
        // A point has no extent to fill a frame with.
        let options = RectifyOptions { frame, ..RectifyOptions::default() };
        assert!(Rectification::new(&rig, [one; 2], &options).is_err(), "{frame:?}");
    }
}

fn poses() -> [([[f64; 3]; 3], [f64; 3]); 3] {
    [
        (turn(0.02, 0.15, 0.05), [-1.0, 0.1, -0.05]),
        (turn(-0.1, -0.2, 0.3), [-1.0, 0.5, 0.3]),
        (turn(0.05, -0.1, 0.0), [1.0, 0.3, 0.1]),
    ]
}

/// Rectifies a pair from its tie points, with `OutputFrame::Fit`.
fn fitted(
    truth: &StereoCalibration,
    pairs: &[Correspondence],
    options: &SelfCalibrationOptions,
) -> Result<FromTiePoints> {
    from_tie_points(&ties(truth, pairs), [SIZE; 2], options, OutputFrame::Fit, &Cpu::sequential())
}

fn ties(truth: &StereoCalibration, pairs: &[Correspondence]) -> EpipolarTies {
    EpipolarTies { fundamental: fundamental(truth), inliers: pairs.to_vec(), first: vec![] }
}

fn fundamental(rig: &StereoCalibration) -> Fundamental {
    let [a, b] = rig.cameras.map(|c| matrix::inverse(&c.matrix()).unwrap());
    let e = product(&matrix::skew(rig.translation), &rig.rotation);
    Fundamental::new(product(&transpose(&b), &product(&e, &a))).unwrap()
}

#[test]
fn cameras_come_back_from_tie_points() {
    let none = [Distortion::default(); 2];
    for (rotation, translation) in poses() {
        let truth = rig(rotation, translation, none);
        let (pairs, _) = scene(&truth, 400, 0.0);
        let options = SelfCalibrationOptions::default();
        let found = self_calibrate(&ties(&truth, &pairs), [SIZE; 2], &options).unwrap();
        assert!(found.rms_px < 0.05, "{}", found.rms_px);
        let known = SelfCalibrationOptions::default().with_focal(Some(600.0));
        let found = self_calibrate(&ties(&truth, &pairs), [SIZE; 2], &known).unwrap();
        assert!(found.rms_px < 1e-4, "{}", found.rms_px);
        let direction = truth.translation.map(|t| t / truth.baseline());
        let off = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off(&found.calibration.translation, &direction) < 1e-4, "direction");
        assert!(off(found.calibration.rotation.as_flattened(), rotation.as_flattened()) < 1e-4, "rotation");
        let rectified = fitted(&truth, &pairs, &known).unwrap();
        assert_eq!(rectified.exchanged, translation[0] > 0.0, "order");
        assert!(rectified.agreement.rms_vertical_px < 1e-3, "{:?}", rectified.agreement);
        let turned = |p: &Correspondence| Correspondence { a: p.b, b: p.a, quality: 0.0 };
        let pairs: Vec<_> = pairs.iter().map(|p| if rectified.exchanged { turned(p) } else { *p }).collect();
        let [low, high] = rectified.agreement.disparities;
        let pair = &rectified.rectification;
        let disparity =
            |p: &Correspondence| pair.left.place(p.a).unwrap()[0] - pair.right.place(p.b).unwrap()[0];
        let within = pairs.iter().filter(|p| (low..=high).contains(&disparity(p))).count();
        assert!(within >= 388, "{within} of 400 within {low} to {high}");
        assert_eq!(low, 0.0, "disparities begin at 0");
    }
}

/// With known focal lengths, the remaining curvature of rows determines the lens.
#[test]
fn a_lens_and_two_focal_lengths_come_back() {
    let (rotation, translation) = (turn(0.02, 0.15, 0.05), [-1.0, 0.1, -0.05]);
    for (k1, ratio) in [(-0.12, 1.0), (0.08, 1.0), (0.0, 1.3)] {
        let lens = Distortion { k1, ..Distortion::default() };
        let mut truth = rig(rotation, translation, [lens; 2]);
        truth.cameras[1].focal = truth.cameras[1].focal.map(|f| f * ratio);
        let (pairs, _) = scene(&truth, 600, 0.1);
        let options = SelfCalibrationOptions::default().with_focal(Some(600.0));
        let options = options.with_focal_right((ratio != 1.0).then_some(600.0 * ratio));
        let found = self_calibrate(&ties(&truth, &pairs), [SIZE; 2], &options).unwrap();
        for (found, focal) in found.calibration.cameras.iter().zip([600.0, 600.0 * ratio]) {
            assert!((found.focal[0] / focal - 1.0).abs() < 0.01, "{k1}: {found:?}");
            // Higher coefficients of the lens take part of k1.
            assert!((found.distortion.k1 - k1).abs() < 0.04, "{k1}: {found:?}");
        }
        let pair = fitted(&truth, &pairs, &options).unwrap();
        assert!(pair.agreement.rms_vertical_px < 0.2, "{k1}: {:?}", pair.agreement);
        assert!(ratio != 1.0 || pair.agreement.depth_doubt().is_none(), "{k1}: {:?}", pair.agreement);
    }
}

/// A square before a wall, seen by cameras that are close to each other: a lens and a turn explain the tie points as well.
#[test]
fn depths_that_the_unknown_lens_changes_are_told() {
    let lens = Distortion { k1: -0.2, ..Distortion::default() };
    let truth = rig(turn(0.0, 0.0, 0.0), [-0.2, 0.0, 0.0], [lens; 2]);
    let mut random = Random(5);
    let pairs: Vec<_> = (0..600)
        .map(|_| {
            let [u, v] = [0.5 * random.next(), 0.4 * random.next()];
            let z = if u.abs().max(v.abs()) < 0.2 { 3.0 } else { 5.0 / (1.0 - 0.15 * u - 0.1 * v) };
            let [a, b] =
                [u, u - 0.2 / z].map(|u| truth.cameras[0].pixel([u, v]).map(|x| x + 0.1 * random.next()));
            Correspondence { a, b, quality: 0.0 }
        })
        .collect();
    let found = fitted(&truth, &pairs, &SelfCalibrationOptions::default().with_focal(Some(600.0))).unwrap();
    let told = found.agreement.depth_doubt().unwrap_or_default();
    assert!(told.contains("undistort the pictures first"), "{:?}", found.agreement);
    let of_rows = Assessment::of_rows(None, &found.agreement, 0.0);
    assert!(of_rows.verdict == Verdict::Doubtful && of_rows.reasons[0].measure == "depth", "{of_rows}");
    let unknown = fitted(&truth, &pairs, &SelfCalibrationOptions::default());
    assert!(
        unknown.is_err() || unknown.unwrap().agreement.depths == [1.0; 2],
        "no focal length: no word on depth"
    );
}

#[test]
fn tie_points_that_are_not_finite_are_left_out() {
    let truth = rig(turn(0.02, 0.15, 0.05), [-1.0, 0.1, -0.05], [Distortion::default(); 2]);
    let (pairs, _) = scene(&truth, 150, 0.1);
    for options in [None, Some(600.0)].map(|focal| SelfCalibrationOptions::default().with_focal(focal)) {
        let whole = fitted(&truth, &pairs, &options).unwrap();
        for wrong in [f64::NAN, f64::INFINITY] {
            let mut pairs = pairs.clone();
            pairs.insert(70, Correspondence { a: [wrong, 5.0], ..pairs[0] });
            assert_eq!(fitted(&truth, &pairs, &options).unwrap(), whole, "{wrong}, {options:?}");
        }
    }
}

#[test]
fn noise_does_little_harm() {
    let truth = rig(turn(0.02, 0.15, 0.05), [-1.0, 0.1, -0.05], [Distortion::default(); 2]);
    let (pairs, _) = scene(&truth, 600, 0.5);
    let found = fitted(&truth, &pairs, &SelfCalibrationOptions::default()).unwrap();
    // Uniform noise of ±0.5 px in both images is 0.5 √(2/3) px between the rows.
    assert!(found.agreement.rms_vertical_px < 0.45, "{:?}", found.agreement);
}

#[test]
fn too_few_tie_points_are_an_error() {
    let truth = rig(turn(0.02, 0.15, 0.05), [-1.0, 0.1, -0.05], [Distortion::default(); 2]);
    let (pairs, _) = scene(&truth, 20, 0.0);
    let options = SelfCalibrationOptions::default();
    let [few, all] = [&pairs[..7], &pairs].map(|pairs| ties(&truth, pairs));
    assert!(self_calibrate(&few, [SIZE; 2], &options).is_err(), "seven points");
    assert!(self_calibrate(&all, [SIZE, Size::default()], &options).is_err(), "no picture");
    let repeated = ties(&truth, &[pairs[0]; 50]);
    let found = self_calibrate(&repeated, [SIZE; 2], &options);
    assert!(matches!(found, Err(Error::TooFewMatches { found: 1, .. })), "one point 50 times: {found:?}");
    let wrong = SelfCalibrationOptions::default().with_focal(Some(-1.0));
    assert!(self_calibrate(&all, [SIZE; 2], &wrong).is_err(), "a negative focal length");
    let forward = rig(IDENTITY, [-0.05, 0.0, -1.0], [Distortion::default(); 2]);
    let (pairs, _) = scene(&forward, 300, 0.0);
    let known = SelfCalibrationOptions::default().with_focal(Some(600.0));
    let error = fitted(&forward, &pairs, &known).unwrap_err();
    assert!(error.to_string().contains("forward"), "{error}");
}

/// The pair rectified from tie points, cropped to valid pixels and not cropped.
fn valid_and_fit(ties: &EpipolarTies, sizes: [Size; 2], cpu: &Cpu) -> [FromTiePoints; 2] {
    let options = SelfCalibrationOptions::default();
    [OutputFrame::Valid, OutputFrame::Fit].map(|c| from_tie_points(ties, sizes, &options, c, cpu).unwrap())
}

/// The cropped pair has no filled pixel, and a rectangle one pixel larger on any side would have one.
fn assert_tight(valid: &FromTiePoints, fit: &FromTiePoints, cpu: &Cpu) {
    let [cut, whole] = [valid, fit].map(|f| &f.rectification);
    assert!(is_full(&cut.left, cpu) && is_full(&cut.right, cpu), "no filled pixel");
    assert_eq!(valid.agreement, fit.agreement, "rows and disparities stay");
    assert_eq!(cut.left.focal, whole.left.focal, "so does the scale");
    let [x, y] = [0, 1].map(|c| (whole.left.principal[c] - cut.left.principal[c]).round() as usize);
    let Size { width, height } = cut.left.size;
    let covered = [&whole.left, &whole.right].map(|v| v.coverage(cpu).unwrap());
    let hole = |x: usize, y: usize| {
        let valid = |c: &Image<u8>| x < c.size().width && y < c.size().height && c.row(y)[x] == 255;
        !covered.iter().all(valid)
    };
    let (columns, rows) = (x..x + width, y..y + height);
    assert!(x == 0 || rows.clone().any(|y| hole(x - 1, y)), "left");
    assert!(rows.clone().any(|y| hole(x + width, y)), "right");
    assert!(y == 0 || columns.clone().any(|x| hole(x, y - 1)), "above");
    assert!(columns.clone().any(|x| hole(x, y + height)), "below");
}

#[test]
fn valid_from_tie_points() {
    let cpu = Cpu::with_threads(2).unwrap();
    for (rotation, translation) in poses() {
        let truth = rig(rotation, translation, [Distortion::default(); 2]);
        let (pairs, _) = scene(&truth, 400, 0.0);
        let [valid, fit] = valid_and_fit(&ties(&truth, &pairs), [SIZE; 2], &cpu);
        assert_tight(&valid, &fit, &cpu);
        assert!(5 * valid.rectification.left.size.area() > SIZE.area(), "{}", valid.rectification.left.size);
    }
    // Views without a common valid area.
    let mut apart = rectified(&rig(IDENTITY, [-1.0, 0.0, 0.0], [Distortion::default(); 2])).unwrap();
    apart.right.principal[0] += 640.0;
    let error = apart.crop_to_valid(&cpu).unwrap_err();
    assert!(error.to_string().contains("valid in both"), "{error}");
}

fn sift_of(name: &str, cpu: &Cpu) -> (Features, Size) {
    let image = photograph(name).unwrap();
    (sift::detect(image.view(), &sift::SiftOptions::default(), None, cpu).unwrap(), image.size())
}

#[test]
fn real_pairs_without_calibration() {
    let Some(_) = shared("") else { return };
    for (names, limit) in [
        (["pairs/cudasift/left.pgm", "pairs/cudasift/righ.pgm"], 0.4),
        (["pairs/sceaux/100_7101.JPG", "pairs/sceaux/100_7102.JPG"], 0.49),
    ] {
        let cpu = Cpu::with_threads(2).unwrap();
        let [(a, size_a), (b, size_b)] = names.map(|name| sift_of(name, &cpu));
        let options = TieOptions {
            model: Some(ModelKind::Fundamental),
            robust: RobustOptions { threshold_px: 1.0, ..RobustOptions::default() },
            rematch: Some(Rematch::default()),
            ..TieOptions::default()
        };
        let tie = tie_points(&a, &b, &options, &cpu.clone().into()).unwrap();
        let ties = tie.epipolar([&a.keypoints, &b.keypoints]).unwrap();
        let [valid, found] = valid_and_fit(&ties, [size_a, size_b], &cpu);
        println!("{names:?}: {:?}", found.agreement);
        assert_tight(&valid, &found, &cpu);
        let kept = valid.rectification.left.size;
        // At least a third of the picture is valid in both.
        assert!(3 * kept.area() > size_a.area(), "{names:?}: {kept} of {size_a}");
        assert!(found.agreement.rms_vertical_px < limit, "{names:?}: {:?}", found.agreement);
        let [low, high] = found.agreement.disparities;
        let width = found.rectification.left.size.width as f64;
        assert!(low == 0.0 && high < 0.25 * width, "{low} to {high} of {width}");
        // No pixel grows or shrinks by more than a factor of two in each direction.
        for view in [&found.rectification.left, &found.rectification.right] {
            let h = view.homography().unwrap();
            for corner in [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.5]] {
                let p = [corner[0] * view.input.width as f64, corner[1] * view.input.height as f64];
                let at = |dx: f64, dy: f64| h.apply([p[0] + dx, p[1] + dy]).unwrap();
                let (o, x, y) = (at(0.0, 0.0), at(1.0, 0.0), at(0.0, 1.0));
                let area = (x[0] - o[0]) * (y[1] - o[1]) - (x[1] - o[1]) * (y[0] - o[0]);
                assert!((0.25..4.0).contains(&area), "{names:?}: {area} at {corner:?}");
            }
        }
    }
}

#[test]
fn real_pairs_with_calibration() {
    let Some(data) = shared("") else { return };
    let folder = data.join("calibration/opencv_stereo");
    let cpu = Cpu::with_threads(2).unwrap();
    let rig = StereoCalibration::read(&[folder.join("reference_calibration.yml")]).unwrap();
    let sizes = [Size::new(640, 480); 2];
    let own = Rectification::new(&rig, sizes, &RectifyOptions::default()).unwrap();
    let stored = Rectification::stored(&rig, sizes).unwrap();
    let (mut sums, mut n) = ([0.0; 2], 0);
    for i in [1, 4, 7, 12] {
        let [(a, _), (b, _)] =
            ["left", "right"].map(|s| sift_of(&format!("calibration/opencv_stereo/{s}{i:02}.jpg"), &cpu));
        let tie =
            tie_points(&a, &b, &TieOptions { model: None, ..TieOptions::default() }, &cpu.clone().into())
                .unwrap();
        let pairs: Vec<_> =
            tie.matches.iter().map(|m| m.correspondence(&a.keypoints, &b.keypoints)).collect();
        // The squares of a chessboard look alike: a match that is wrong by a square is off by far more than a row.
        let near = own.near_rows(&pairs, 1.0);
        assert!(near.len() > 100, "{} tie points", near.len());
        n += near.len();
        for (sum, found) in sums.iter_mut().zip([&own, &stored]) {
            *sum += found.agreement(&near).unwrap().mean_vertical_px * near.len() as f64;
        }
    }
    let [own, stored] = sums.map(|s| s / n as f64);
    println!("{n} tie points: {own:.3} px, with the file's own rectification {stored:.3} px");
    assert!(own < 0.3 && stored < 0.3, "{own} and {stored} px between rows");
}
