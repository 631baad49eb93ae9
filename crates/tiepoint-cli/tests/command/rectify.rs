//! `rectify`.

use super::*;
use tiepoint::geometry::calibration::RectifiedCalibration;
use tiepoint::geometry::warp::{Interpolation, WarpOptions, warp};
use tiepoint::synth::{StereoPair, StereoScene, StereoSceneOptions};

const CALIBRATION: &str = "cam0=[400 0 199.5; 0 400 149.5; 0 0 1]
cam1=[400 0 199.5; 0 400 149.5; 0 0 1]
doffs=0
baseline=0.1
width=400
height=300
";

impl Folder {
    /// Two views with disparities of 4 to 40 pixels, and the file that says how they were taken.
    pub(crate) fn views(&self) -> ([String; 3], StereoPair) {
        let options = StereoSceneOptions::default().with_size(Size::new(400, 300));
        let options = options.with_disparities([4.0, 40.0]).with_surfaces(9).with_seed(5);
        let pair: StereoPair = StereoScene::new(&options).unwrap().render(&Cpu::sequential());
        let calibration = self.at("calib.txt");
        std::fs::write(&calibration, CALIBRATION).unwrap();
        let left = self.write("l.png", &pair.left.clone().into());
        let right = self.write("r.png", &pair.right.clone().into());
        ([left, right, calibration], pair)
    }
}

#[test]
fn a_pair_that_is_rectified_stays() {
    let folder = Folder::new("rectify-known");
    let ([left, right, calibration], truth) = folder.views();
    let [out_left, out_right, pair] = ["ol.png", "or.png", "o.txt"].map(|n| folder.at(n));
    let json = works(&[
        "rectify",
        &left,
        &right,
        "--calibration",
        &calibration,
        "--output-left",
        &out_left,
        "--output-right",
        &out_right,
        "--output-calibration",
        &pair,
        "--json",
    ]);
    assert_eq!((value(&json, "calibrated"), value(&json, "exchanged")), ("true", "false"), "{json}");
    assert!(number(&json, "rms_vertical_px") < 0.3, "{json}");
    let range = number(&json, "min_disparity")..=number(&json, "max_disparity");
    let truth = truth.truth_left.data();
    let within = truth.iter().filter(|d| range.contains(&f64::from(**d))).count();
    assert!(within as f64 > 0.97 * truth.len() as f64, "{within} of {}: {json}", truth.len());
    assert!(*range.start() >= 0.0 && *range.end() < 60.0, "{json}");
    let read = |path: &str| image::read(path, &ReadOptions::default()).unwrap();
    assert!(read(&left) == read(&out_left) && read(&right) == read(&out_right), "pixel by pixel");
    let pair = RectifiedCalibration::read(&pair).unwrap();
    assert_eq!((pair.focal, pair.baseline, pair.doffs), (400.0, 0.1, 0.0), "the calibration too");
    // The cameras in the other order are put right.
    let json = works(&["rectify", &right, &left, "--json"]);
    assert_eq!(value(&json, "calibrated"), "false", "{json}");
}

#[test]
fn tie_points_alone_do() {
    let folder = Folder::new("rectify-ties");
    let ([left, right, _], _) = folder.views();
    let names = ["ol.png", "or.png", "vl.png", "vr.png", "o.txt", "rows.png"].map(|n| folder.at(n));
    let [a, b, c, d, e, f] = names.each_ref().map(String::as_str);
    let json = works(&[
        "rectify",
        &left,
        &right,
        "--output-left",
        a,
        "--output-right",
        b,
        "--valid-left",
        c,
        "--valid-right",
        d,
        "--output-calibration",
        e,
        "--draw",
        f,
        "--json",
    ]);
    assert!(number(&json, "rms_vertical_px") < 0.5 && number(&json, "inliers") > 100.0, "{json}");
    assert_eq!(number(&json, "min_disparity"), 0.0, "{json}");
    assert!((30.0..80.0).contains(&number(&json, "max_disparity")), "{json}");
    let size = Size::new(number(&json, "width") as usize, number(&json, "height") as usize);
    for name in [a, b, c, d] {
        assert_eq!(image::read(name, &ReadOptions::default()).unwrap().size(), size, "{name}");
    }
    let pair = RectifiedCalibration::read(e).unwrap();
    assert!(pair.size == Some(size) && (pair.baseline - 1.0).abs() < 1e-9, "{pair:?}");
    assert_eq!(works(&["rectify", &left, &right, "-q"]), "", "quiet");
    // The largest rectangle that is valid in both.
    let json = works(&[
        "rectify",
        &left,
        &right,
        "--crop",
        "valid",
        "--valid-left",
        c,
        "--valid-right",
        d,
        "--output-left",
        a,
        "--output-right",
        b,
        "--json",
    ]);
    let size = Size::new(number(&json, "width") as usize, number(&json, "height") as usize);
    assert!(2 * size.area() > 400 * 300, "{json}");
    for name in [c, d] {
        let AnyImage::U8(mask) = image::read(name, &ReadOptions::default()).unwrap() else {
            panic!("8 bits")
        };
        assert!(mask.size() == size && mask.data().iter().all(|v| *v == 255), "{name}: all of {size}");
    }
    for name in [a, b] {
        assert_eq!(image::read(name, &ReadOptions::default()).unwrap().size(), size, "{name}");
    }
}

#[test]
fn rectify_refuses_with_a_reason() {
    let folder = Folder::new("rectify-refuses");
    let ([left, right, calibration], _) = folder.views();
    let black = folder.write("black.png", &Image::<u8>::new(SIZE).into());
    let broken = folder.at("broken.yml");
    std::fs::write(&broken, "%YAML:1.0\nM1: !!opencv-matrix\n   rows: 3\n").unwrap();
    let before = folder.files();
    let out = folder.at("out.png");
    let refused = |more: &[&str], code: i32, word: &str| {
        let message = fails(&[&["rectify"], more, &["--output-left", &out]].concat(), code);
        assert!(message.contains(word), "{more:?}: {message}");
        assert_eq!(folder.files(), before, "{more:?} leaves nothing");
    };
    refused(&[&left, &right, "--calibration", &broken], 1, "line 2");
    refused(&[&left, &right, "--calibration", &folder.at("absent.yml")], 1, "absent.yml");
    refused(&[&left, &black, "--calibration", &calibration], 1, "320x240");
    refused(&[&left, &right, "--stored"], 2, "--calibration");
    refused(&[&left, &right, "--stored", "--calibration", &calibration], 1, "R1");
    refused(&[&left, &right, "--focal", "-3"], 2, "focal");
    refused(&[&left, &right, "--inlier-distance", "0"], 2, "--inlier-distance");
    refused(&[&left, &right, "--draw", "x.unknown"], 2, "unknown");
    refused(&[&black, &black], 1, "matches");
    refused(&[&left, &left], 1, "");
}

#[test]
fn an_affine_pair_is_rectified_and_has_no_depth() {
    let folder = Folder::new("rectify-affine");
    let ([left, _, _], truth) = folder.views();
    // Turned, scaled and shifted in its plane: the epipolar lines are parallel, and disparities have both signs.
    let (s, c) = (1.12 * 0.16_f64.sin(), 1.12 * 0.16_f64.cos());
    let input_from_output = Homography::new([[c, s, -30.0], [-s, c, 25.0], [0.0, 0.0, 1.0]]).unwrap();
    let options = WarpOptions::default().with_interpolation(Interpolation::Lanczos3);
    let (picture, cpu) = (truth.right.view(), Cpu::sequential());
    let turned = warp(picture, &input_from_output, picture.size(), &options, &cpu.into()).unwrap();
    let right = folder.write("turned.png", &turned.into());
    let [out_left, out_right, pair] = ["ol.png", "or.png", "o.txt"].map(|n| folder.at(n));
    let arguments = ["rectify", &left, &right, "--output-left", &out_left, "--output-right", &out_right];
    let json = works(&[&arguments[..], &["--json"]].concat());
    assert!(number(&json, "rms_vertical_px") < 0.3 && number(&json, "inliers") > 100.0, "{json}");
    // What says that there was no perspective says that there is no depth.
    std::fs::write(&pair, "affine=1\nvmin=0\nvmax=60\n").unwrap();
    let stereo = ["stereo", &out_left, &out_right, "--calibration", &pair];
    for (flag, name) in [("--depth", "z.tif"), ("--cloud", "z.ply")] {
        let message = fails(&[&stereo[..], &[flag, &folder.at(name)]].concat(), 2);
        assert!(message.contains("metric depth"), "{message}");
    }
    let json = works(&[&stereo[..], &["--output", &folder.at("d.pfm"), "--json"]].concat());
    assert_eq!(number(&json, "disparities"), 61.0, "{json}");
}

#[test]
fn rectified_pictures_know_where_they_are_valid() {
    let folder = Folder::new("rectify-valid");
    let ([left, right, _], truth) = folder.views();
    let floats = |name: &str, image: &Image<u8>| {
        let values = image.data().iter().map(|v| f32::from(*v) / 255.0).collect();
        folder.write(name, &Image::<f32>::from_vec(values, image.size(), 1).unwrap().into())
    };
    let (fl, fr) = (floats("fl.tif", &truth.left), floats("fr.tif", &truth.right));
    let names = ["ol.png", "or.png", "vl.png", "vr.png", "o.txt", "ol.tif", "or.tif"].map(|n| folder.at(n));
    let [ol, or, vl, vr, calibration, tl, tr] = names.each_ref().map(String::as_str);
    works(&[
        "rectify",
        &left,
        &right,
        "--output-left",
        ol,
        "--output-right",
        or,
        "--valid-left",
        vl,
        "--valid-right",
        vr,
        "--output-calibration",
        calibration,
    ]);
    let masks = [vl, vr].map(|path| match image::read(path, &ReadOptions::default()).unwrap() {
        AnyImage::U8(mask) => mask,
        other => panic!("8 bits: {other:?}"),
    });
    assert!(masks.iter().any(|mask| mask.data().contains(&0)), "something lies beyond the pictures");
    for (path, mask) in [ol, or].into_iter().zip(&masks) {
        let picture = image::read(path, &ReadOptions::default()).unwrap();
        let expected = Some(mask.clone()).filter(|mask| mask.data().contains(&0));
        assert_eq!(image::alpha_mask(&picture), expected, "{path}");
    }
    // What is transparent is masked by itself.
    let [plain, masked] = ["d.pfm", "m.pfm"].map(|n| folder.at(n));
    let stereo = ["stereo", ol, or, "--calibration", calibration, "--output"];
    works(&[&stereo[..], &[&plain]].concat());
    works(&[&stereo[..], &[&masked, "--mask", vl, "--mask-right", vr]].concat());
    assert_eq!(std::fs::read(&plain).unwrap(), std::fs::read(&masked).unwrap(), "as with the masks");
    // Floats are NaN there.
    works(&["rectify", &fl, &fr, "--output-left", tl, "--output-right", tr, "--valid-left", vl]);
    let AnyImage::F32(picture) = image::read(tl, &ReadOptions::default()).unwrap() else { panic!("floats") };
    let AnyImage::U8(mask) = image::read(vl, &ReadOptions::default()).unwrap() else { panic!("8 bits") };
    let agree = picture.data().iter().zip(mask.data()).all(|(v, m)| v.is_nan() == (*m == 0));
    assert!(agree, "NaN where nothing is shown");
}
