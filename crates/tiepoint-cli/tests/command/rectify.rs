//! `rectify`.

use super::*;
use tiepoint::geometry::calibration::RectifiedCalibration;
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
    fn views(&self) -> ([String; 3], StereoPair) {
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
