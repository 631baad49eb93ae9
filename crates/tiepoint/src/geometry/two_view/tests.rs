use super::*;
use crate::geometry::estimate::tests::line;
use crate::numeric::Random;
use tiepoint_gpu::KernelSource;

/// Two cameras of one focal length, the second rotated about y and moved.
struct Rig {
    random: Random,
    camera: Camera,
    turn: f64,
    step: [f64; 3],
}

const SIZE: Size = Size { width: 1600, height: 1200 };

impl Rig {
    fn new(seed: u64) -> Self {
        let (random, camera) = (Random::new(seed), Camera::centred(1400.0, SIZE));
        Self { random, camera, turn: 0.12, step: [-1.0, 0.1, 0.2] }
    }

    /// The place in the second image of a point that the first image shows at `a`, at this depth.
    fn partner(&self, a: [f64; 2], depth: f64) -> [f64; 2] {
        let [x, y] = self.camera.ray(a).unwrap();
        // Cosine and sine from the tangent of the half angle, without these functions.
        let t = self.turn / 2.0;
        let (c, s) = ((1.0 - t * t) / (1.0 + t * t), 2.0 * t / (1.0 + t * t));
        let p = [c * x * depth + s * depth, y * depth, -s * x * depth + c * depth];
        let q = [p[0] + self.step[0], p[1] + self.step[1], p[2] + self.step[2]];
        self.camera.pixel([q[0] / q[2], q[1] / q[2]])
    }

    fn place(&mut self) -> [f64; 2] {
        [self.random.range(0.0, 1599.0), self.random.range(0.0, 1199.0)]
    }

    /// True matches at the depths that `depth` gives, off by up to half a pixel.
    fn matches(&mut self, n: usize, depth: impl Fn([f64; 2], f64) -> f64) -> Vec<Correspondence> {
        (0..n)
            .map(|_| {
                let a = self.place();
                let depth = depth(a, self.random.unit());
                let b = self.partner(a, depth).map(|v| v + self.random.range(-0.5, 0.5));
                Correspondence { a, b, quality: 0.0 }
            })
            .collect()
    }

    fn mixed(
        &mut self,
        right: usize,
        wrong: usize,
        depth: impl Fn([f64; 2], f64) -> f64,
    ) -> Vec<Correspondence> {
        [self.matches(right, depth), self.wrong(wrong)].concat()
    }

    fn wrong(&mut self, n: usize) -> Vec<Correspondence> {
        (0..n).map(|_| Correspondence { a: self.place(), b: self.place(), quality: 0.0 }).collect()
    }

    fn view(&self) -> ImageCamera {
        ImageCamera::new(SIZE).with_camera(self.camera)
    }
}

fn geometries(
    pairs: &[ImagePair<'_>],
    options: &TwoViewOptions,
    processor: &Processor,
) -> Result<Vec<TwoView>> {
    Verifier::new(options, processor)?.geometries(pairs)
}

/// What is found in a pair whose two images have the same size and camera.
fn try_found(matches: &[Correspondence], view: ImageCamera, options: &TwoViewOptions) -> Result<TwoView> {
    let pair = ImagePair::new(matches, view, view);
    geometries(&[pair], options, &Cpu::sequential().into()).map(|mut found| found.remove(0))
}

fn found(matches: &[Correspondence], view: ImageCamera) -> TwoView {
    try_found(matches, view, &TwoViewOptions::default()).unwrap()
}

fn anywhere(_: [f64; 2], unit: f64) -> f64 {
    4.0 + 10.0 * unit
}

fn plane([x, y]: [f64; 2], _: f64) -> f64 {
    8.0 + 0.001 * x - 0.002 * y
}

/// Most of the first `right` matches are inliers, few of the others are.
fn check_inliers(found: &TwoView, right: usize, what: &str) {
    let good = found.inliers.iter().filter(|&&i| (i as usize) < right).count();
    assert!(good >= right * 97 / 100, "{what}: {good} of {right} true matches");
    assert!(found.inliers.is_sorted(), "{what}: ascending");
}

#[test]
fn codes_are_colmaps() {
    for (code, configuration) in Configuration::ALL.iter().map(|choice| choice.value).enumerate() {
        assert_eq!(configuration.code(), code as u32);
        assert_eq!(Configuration::from_code(code as u32), Some(configuration));
    }
    assert_eq!(Configuration::from_code(8), None);
    assert_eq!(Configuration::Watermark.code(), 7);
}

#[test]
fn known_focal_lengths_make_a_scene_in_depth_calibrated_and_wrong_ones_do_not() {
    for seed in 0..8 {
        let mut rig = Rig::new(seed);
        let matches = rig.mixed(120, 100, anywhere);
        let unknown = found(&matches, ImageCamera::new(SIZE));
        assert_eq!(unknown.configuration, Configuration::Uncalibrated, "seed {seed}");
        check_inliers(&unknown, 120, "uncalibrated");
        assert!(unknown.essential.is_none() && unknown.fundamental.is_some(), "the models");
        let right = found(&matches, rig.view());
        assert_eq!(right.configuration, Configuration::Calibrated, "seed {seed}");
        check_inliers(&right, 120, "calibrated");
        // The essential matrix is in coordinates of rays.
        let e = right.essential.unwrap().matrix();
        let off = (0..20).map(|_| {
            let (a, depth) = (rig.place(), 4.0 + 10.0 * rig.random.unit());
            let (p, q) = (rig.camera.ray(a).unwrap(), rig.camera.ray(rig.partner(a, depth)).unwrap());
            let line = super::super::matrix::times(&e, [p[0], p[1], 1.0]);
            let norm = (line[0] * line[0] + line[1] * line[1]).sqrt();
            1400.0 * ((q[0] * line[0] + q[1] * line[1] + line[2]) / norm).abs()
        });
        let off = off.fold(0.0, f64::max);
        assert!(off < 2.0, "seed {seed}: {off} px off the epipolar line");
        let wrong = ImageCamera::new(SIZE).with_camera(Camera::centred(420.0, SIZE));
        let wrong = found(&matches, wrong);
        assert_eq!(wrong.configuration, Configuration::Uncalibrated, "seed {seed}: wrong focal lengths");
        assert!(wrong.inliers.len() >= 110, "seed {seed}: {} inliers", wrong.inliers.len());
    }
}

#[test]
fn a_plane_and_a_turn_are_distinguished_by_known_focal_lengths() {
    for seed in 0..8 {
        let mut rig = Rig::new(seed);
        let matches = rig.mixed(120, 60, plane);
        let unknown = found(&matches, ImageCamera::new(SIZE));
        assert_eq!(unknown.configuration, Configuration::PlanarOrPanoramic, "seed {seed}");
        check_inliers(&unknown, 120, "plane");
        let known = found(&matches, rig.view());
        assert_eq!(known.configuration, Configuration::Planar, "seed {seed}");
        let mut rig = Rig { step: [0.0; 3], ..Rig::new(seed) };
        let matches = rig.mixed(120, 60, anywhere);
        let known = found(&matches, rig.view());
        assert_eq!(known.configuration, Configuration::Panoramic, "seed {seed}");
        check_inliers(&known, 120, "turn");
    }
}

#[test]
fn wrong_matches_on_the_lines_of_a_plane_are_no_inliers_and_parallax_that_chance_does_not_explain_stays() {
    let houses = |at: [f64; 2], unit: f64| plane(at, 0.0) * (0.9 - 0.1 * unit);
    for seed in 0..8 {
        let mut rig = Rig::new(seed);
        let matches = rig.mixed(400, 400, plane);
        let cameras = [rig.view(), ImageCamera::new(SIZE)];
        for view in cameras {
            let found = found(&matches, view);
            check_inliers(&found, 400, "plane");
            let h = found.homography.unwrap();
            let off = |i: &&u32| {
                let Correspondence { a, b, .. } = matches[**i as usize];
                let [x, y] = h.apply(a).unwrap();
                libm::hypot(x - b[0], y - b[1]) > 16.0
            };
            assert_eq!(found.inliers.iter().filter(off).count(), 0, "seed {seed}: far from the plane");
        }
        let matches = [rig.matches(400, plane), rig.matches(40, houses), rig.wrong(200)].concat();
        for view in cameras {
            let found = found(&matches, view);
            assert!(!matches!(found.configuration, Configuration::Uncalibrated | Configuration::Calibrated));
            check_inliers(&found, 440, "houses on a plane");
        }
    }
}

#[test]
fn marks_at_the_borders_are_watermarks() {
    let mut random = Random::new(3);
    let matches: Vec<_> = (0..60)
        .map(|_| {
            let a = [random.range(1200.0, 1550.0), random.range(1050.0, 1180.0)];
            let b = [a[0] + 3.0 + random.range(-0.5, 0.5), a[1] + 2.0 + random.range(-0.5, 0.5)];
            Correspondence { a, b, quality: 0.0 }
        })
        .collect();
    assert_eq!(found(&matches, ImageCamera::new(SIZE)).configuration, Configuration::Watermark);
    let inwards = |p: [f64; 2]| p.map(|v| v - 500.0);
    let moved: Vec<_> =
        matches.iter().map(|m| Correspondence { a: inwards(m.a), b: inwards(m.b), ..*m }).collect();
    let inside = found(&moved, ImageCamera::new(SIZE)).configuration;
    assert_eq!(inside, Configuration::PlanarOrPanoramic, "not at the border");
    let options = TwoViewOptions::default().with_detect_watermark(false);
    let off = try_found(&matches, ImageCamera::new(SIZE), &options).unwrap();
    assert!(off.configuration.is_verified(), "not asked for");
}

#[test]
fn wrong_matches_are_degenerate_and_cost_a_bounded_number_of_samples() {
    for (n, most) in [(0, 0), (14, 0), (20, 2 * 128), (30, 2000), (60, 20_000)] {
        for seed in 0..4 {
            let mut rig = Rig::new(100 + seed);
            let found = found(&rig.wrong(n), ImageCamera::new(SIZE));
            assert_eq!(found.configuration, Configuration::Degenerate, "{n} wrong matches, seed {seed}");
            assert!(found.inliers.is_empty() && found.fundamental.is_none(), "nothing is claimed");
            assert!(found.iterations <= most, "{n}: {} samples", found.iterations);
        }
    }
}

#[test]
fn any_input_gets_a_configuration() {
    let same = vec![Correspondence { a: [5.0, 6.0], b: [7.0, 8.0], quality: 0.0 }; 50];
    let nan = vec![Correspondence { a: [f64::NAN; 2], b: [f64::INFINITY; 2], quality: 0.0 }; 50];
    for matches in [same, line(0.0), nan] {
        let camera = ImageCamera::new(SIZE).with_camera(Camera::centred(1400.0, SIZE));
        for view in [ImageCamera::new(SIZE), camera] {
            assert_eq!(found(&matches, view).configuration, Configuration::Degenerate, "{:?}", matches[1]);
        }
    }
}

#[test]
fn the_answer_depends_neither_on_threads_nor_on_other_pairs() {
    let mut rig = Rig::new(9);
    let sets = [10, 30, 80, 200].map(|n| rig.mixed(n, n, anywhere));
    let view = |key: u64| if key.is_multiple_of(2) { rig.view() } else { ImageCamera::new(SIZE) };
    let pair = |(m, key)| ImagePair::new(m, view(key), view(key)).with_key(key);
    let pairs: Vec<_> = sets.iter().map(Vec::as_slice).zip(1..).map(pair).collect();
    let options = TwoViewOptions::default();
    let expected = geometries(&pairs, &options, &Cpu::sequential().into()).unwrap();
    for threads in [2, 5] {
        let cpu = Cpu::with_threads(threads).unwrap();
        assert_eq!(geometries(&pairs, &options, &cpu.clone().into()).unwrap(), expected, "{threads}");
        let alone = geometries(&pairs[2..3], &options, &cpu.into()).unwrap();
        assert_eq!(alone[0], expected[2], "alone");
    }
}

#[test]
fn evidence_finds_what_few_samples_would_not() {
    let mut rig = Rig::new(21);
    let matches = rig.mixed(40, 120, anywhere);
    let mut random = Random::new(5);
    let evidence: Vec<_> = (0..160)
        .map(|i| match i < 40 {
            true => Evidence { scale: random.range(0.9, 1.1) as f32, turn: random.range(-0.1, 0.1) as f32 },
            false => Evidence { scale: random.range(0.1, 6.0) as f32, turn: random.range(-3.1, 3.1) as f32 },
        })
        .collect();
    let view = ImageCamera::new(SIZE);
    let pair = ImagePair::new(&matches, view, view);
    let options = TwoViewOptions::default();
    let cpu = Cpu::sequential().into();
    let with = geometries(&[pair.with_evidence(&evidence)], &options, &cpu).unwrap();
    assert_eq!(with[0].configuration, Configuration::Uncalibrated, "40 of 160");
    check_inliers(&with[0], 40, "with evidence");
    let short = pair.with_evidence(&evidence[1..]);
    let error = geometries(&[short], &options, &cpu).unwrap_err();
    assert!(error.to_string().contains("160 matches have evidence for 159"), "{error}");
}

#[test]
fn options_and_cameras_are_checked() {
    let good = TwoViewOptions::default();
    for wrong in [
        TwoViewOptions { threshold_px: 0.0, ..good },
        TwoViewOptions { confidence: 1.0, ..good },
        TwoViewOptions { max_iterations: 0, ..good },
        TwoViewOptions { min_iterations: 10_001, ..good },
        TwoViewOptions { min_inlier_ratio: 0.0, ..good },
        TwoViewOptions { min_inliers: 7, ..good },
        TwoViewOptions { max_homography_ratio: 1.1, ..good },
        TwoViewOptions { watermark_border: 0.6, ..good },
        TwoViewOptions { false_alarms: f64::NAN, ..good },
    ] {
        let found = try_found(&[], ImageCamera::new(SIZE), &wrong);
        assert!(matches!(found, Err(Error::Option { .. })), "{wrong:?}");
    }
    let view = ImageCamera::new(SIZE).with_camera(Camera::centred(-1.0, SIZE));
    let found = try_found(&[], view, &good);
    assert!(matches!(found, Err(Error::Mismatch(_))), "{found:?}");
}

/// Pairs of 20 to 900 matches for every configuration, some with evidence, some with known cameras.
fn of_every_kind() -> Vec<(Vec<Correspondence>, Vec<Evidence>, ImageCamera)> {
    let mut sets = Vec::new();
    for (seed, right, wrong) in [(1, 16, 4), (2, 40, 30), (3, 90, 60), (4, 0, 24), (5, 0, 40), (6, 500, 400)]
    {
        for known in [false, true] {
            for scene in 0..3 {
                let mut rig = Rig::new(seed);
                if scene == 2 {
                    rig.step = [0.0; 3];
                }
                let matches = rig.mixed(right, wrong, if scene == 1 { plane } else { anywhere });
                let evidence = matches.iter().enumerate().map(|(i, _)| {
                    let turn = rig.random.range(-3.0, 3.0);
                    Evidence { scale: 1.0, turn: if i < right { 0.1 } else { turn as f32 } }
                });
                let evidence = if seed % 2 == 0 { evidence.collect() } else { Vec::new() };
                sets.push((matches, evidence, if known { rig.view() } else { ImageCamera::new(SIZE) }));
            }
        }
    }
    let same = vec![Correspondence { a: [5.0, 6.0], b: [7.0, 8.0], quality: 0.0 }; 50];
    sets.extend([same, vec![]].map(|matches| (matches, vec![], ImageCamera::new(SIZE))));
    sets
}

#[test]
fn every_device_finds_what_the_cpu_finds() {
    let sets = of_every_kind();
    assert!(sets.len() >= FEWEST_FOR_GPU, "enough for a GPU");
    let pairs: Vec<_> = sets
        .iter()
        .zip(7..)
        .map(|((m, e, view), key)| ImagePair::new(m, *view, *view).with_evidence(e).with_key(key))
        .collect();
    let options = TwoViewOptions::default().with_max_iterations(1000);
    let cpu = Cpu::sequential();
    let expected = geometries(&pairs, &options, &cpu.clone().into()).unwrap();
    for configuration in [
        Configuration::Degenerate,
        Configuration::Calibrated,
        Configuration::Uncalibrated,
        Configuration::Planar,
        Configuration::Panoramic,
        Configuration::PlanarOrPanoramic,
    ] {
        assert!(expected.iter().any(|e| e.configuration == configuration), "{configuration:?} is among them");
    }
    for gpu in crate::device::gpu::all() {
        let processor = Processor::with_gpu(cpu.clone(), gpu.clone());
        let found = geometries(&pairs, &options, &processor).unwrap();
        for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(found, expected, "{gpu:?}: pair {i} of {} matches", pairs[i].matches.len());
        }
        let notes = processor.take_notes();
        assert_eq!(notes.is_empty(), gpu.info().has_f64, "{gpu:?}: {notes:?}");
    }
}

pub(crate) fn kernel_sources() -> Vec<KernelSource> {
    Verifier::sources().into()
}
