use super::document::{Matrix, Value};
use super::*;
use crate::image::testing::shared;
use std::path::PathBuf;

const YAML: &str = r#"%YAML:1.0
---
calibration_time: "Tue 21 Nov 2026"
image_width: 640
image_height: 480
images:
   - "left01.jpg"
   - "right01.jpg"
M1: !!opencv-matrix
   rows: 3
   cols: 3
   dt: d
   data: [ 533.5, 0., 342.5, 0.,
       534.25, 234.75, 0., 0., 1. ]
D1: !!opencv-matrix
   rows: 1
   cols: 5
   dt: d
   data: [ -2.5e-01, 3.0e-02, 1.0e-03, -1.25e-04, 0.125 ]
M2: !!opencv-matrix
   rows: 3
   cols: 3
   dt: d
   data: [ 537., 0., 327.5, 0., 536.5, 249.5, 0., 0., 1. ]
D2: !!opencv-matrix
   rows: 4
   cols: 1
   dt: d
   data: [ -0.3, 0.14, 0., 0. ]
R: !!opencv-matrix
   rows: 3
   cols: 3
   dt: d
   data: [ 1., 0., 0., 0., 1., 0., 0., 0., 1. ]
T: !!opencv-matrix
   rows: 3
   cols: 1
   dt: d
   data: [ -3.5, 0.25, 0. ]
"#;

const XML: &str = r#"<?xml version="1.0"?>
<!-- as FileStorage writes it -->
<opencv_storage>
<calibration_time>"Tue 21 Nov 2026"</calibration_time>
<image_width>640</image_width>
<image_height>480</image_height>
<images>
  "left01.jpg"
  <_>nested</_></images>
<M1 type_id="opencv-matrix">
  <rows>3</rows>
  <cols>3</cols>
  <dt>d</dt>
  <data>
    533.5 0. 342.5 0.
    534.25 234.75 0. 0. 1.</data></M1>
<D1 type_id="opencv-matrix"><rows>1</rows><cols>5</cols><dt>d</dt>
  <data>-2.5e-01 3.0e-02 1.0e-03 -1.25e-04 0.125</data></D1>
<M2 type_id="opencv-matrix"><rows>3</rows><cols>3</cols><dt>d</dt>
  <data>537. 0. 327.5 0. 536.5 249.5 0. 0. 1.</data></M2>
<D2 type_id="opencv-matrix"><rows>4</rows><cols>1</cols><dt>d</dt><data>-0.3 0.14 0. 0.</data></D2>
<R type_id="opencv-matrix"><rows>3</rows><cols>3</cols><dt>d</dt><data>1. 0. 0. 0. 1. 0. 0. 0. 1.</data></R>
<T type_id="opencv-matrix"><rows>3</rows><cols>1</cols><dt>d</dt><data>-3.5 0.25 0.</data></T>
</opencv_storage>
"#;

const MIDDLEBURY: &str = "cam0=[3997.684 0 1176.728; 0 3997.684 1011.728; 0 0 1]
cam1=[3997.684 0 1307.839; 0 3997.684 1011.728; 0 0 1]
doffs=131.111
baseline=193.001
width=2964
height=1988
ndisp=280
isint=0
vmin=31
vmax=257
dyavg=0.918
dymax=1.516
";

fn truth() -> StereoCalibration {
    let left = Camera {
        focal: [533.5, 534.25],
        principal: [342.5, 234.75],
        distortion: Distortion::from_opencv([-0.25, 0.03, 1e-3, -1.25e-4, 0.125]),
    };
    let distortion = Distortion { k1: -0.3, k2: 0.14, ..Distortion::default() };
    let right = Camera { focal: [537.0, 536.5], principal: [327.5, 249.5], distortion };
    StereoCalibration {
        cameras: [left, right],
        sizes: [Some(Size::new(640, 480)); 2],
        rotation: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        translation: [-3.5, 0.25, 0.0],
        stored: None,
    }
}

/// The rig of files with these texts, which errors call `c.yml`.
fn rig_of(texts: &[&str]) -> Result<StereoCalibration> {
    let documents: Vec<_> = texts.iter().map(|t| Document::parse(t, Path::new("c.yml")).unwrap()).collect();
    opencv::stereo(&documents)
}

fn refusal(text: &str) -> String {
    let message = StereoCalibration::parse(text, "c.yml").unwrap_err().to_string();
    assert!(message.starts_with("c.yml: "), "{message}");
    message
}

fn rectified_refusal(text: &str) -> String {
    let message = RectifiedCalibration::parse(text, "calib.txt").unwrap_err().to_string();
    assert!(message.starts_with("calib.txt: "), "{message}");
    message
}

/// Checks that each change to a text is refused with a message that has the last word.
fn changes_are_refused(text: &str, refusal: impl Fn(&str) -> String, changes: &[(&str, &str, &str)]) {
    for (from, to, word) in changes {
        assert!(text.contains(from), "{from}");
        let message = refusal(&text.replacen(from, to, 1));
        assert!(message.contains(word), "{from} → {to}: {message}");
    }
}

/// Reads every beginning of a text, which must not panic.
fn read_cut_off(text: &str) {
    for end in 0..text.len() {
        let _ = StereoCalibration::parse(&text[..end], "cut");
        let _ = RectifiedCalibration::parse(&text[..end], "cut");
    }
}

#[test]
fn yaml_and_xml_give_the_same_calibration() {
    assert_eq!(StereoCalibration::parse(YAML, "c.yml").unwrap(), truth(), "YAML");
    assert_eq!(StereoCalibration::parse(XML, "c.xml").unwrap(), truth(), "XML");
    let windows = YAML.replace('\n', "\r\n");
    assert_eq!(StereoCalibration::parse(&windows, "c.yml").unwrap(), truth(), "lines ending as on Windows");
    let renamed =
        [("M1:", "cameraMatrix1:"), ("D1:", "distCoeffs1:"), ("M2:", "K2:"), ("D2:", "distCoeffs2:")];
    let renamed = renamed.iter().fold(YAML.to_owned(), |text, (from, to)| text.replace(from, to));
    assert_eq!(StereoCalibration::parse(&renamed, "c.yml").unwrap(), truth(), "other names");
    let sized = YAML.replace("image_width: 640\nimage_height: 480", "imageSize: [ 640, 480 ]");
    assert_eq!(StereoCalibration::parse(&sized, "c.yml").unwrap(), truth(), "the size as a list");
}

#[test]
fn two_files_complete_each_other() {
    let (intrinsics, extrinsics) = YAML.split_at(YAML.find("R: ").unwrap());
    let extrinsics = format!("%YAML:1.0\n{extrinsics}");
    assert_eq!(rig_of(&[intrinsics, &extrinsics]).unwrap(), truth(), "in order");
    assert_eq!(rig_of(&[&extrinsics, intrinsics]).unwrap(), truth(), "in any order");
    assert!(rig_of(&[intrinsics]).unwrap_err().to_string().contains("rotation"), "half of it");
    let camera = |name: &str| {
        let from = YAML.find(&format!("M{name}:")).unwrap();
        let rest = &YAML[from..];
        let to = rest.find(if name == "1" { "M2:" } else { "R:" }).unwrap();
        let text = rest[..to].replace(&format!("M{name}:"), "camera_matrix:");
        format!("%YAML:1.0\n{}", text.replace(&format!("D{name}:"), "distortion_coefficients:"))
    };
    let (left, right) = (camera("1"), camera("2"));
    let found = rig_of(&[&left, &right, &extrinsics]).unwrap();
    assert_eq!(found.cameras, truth().cameras, "a file for each camera");
    assert!(rig_of(&[&left, &extrinsics]).unwrap_err().to_string().contains("single camera"), "one of two");
}

#[test]
fn wrong_files_are_errors_that_name_the_field() {
    let changes = [
        ("533.5, 0.,", "533.5, 2.,", "skew"),
        ("0., 0., 1. ]\nD1", "0., 0.5, 1. ]\nD1", "form"),
        ("533.5", "-1", "above 0"),
        ("533.5", ".Nan", "line 9: M1 holds a number that is not finite"),
        ("533.5", "1e999", "line 13"),
        ("533.5, 0.,", "533.5,", "8 numbers"),
        ("rows: 3", "rows: 2", "2 x 3"),
        ("rows: 3", "rows: x", "rows of M1"),
        ("rows: 3", "rows: 99999999999999999999", "rows of M1"),
        ("dt: d", "dt: \"d", "dt of M1"),
        ("dt: d", "dt: 2d", "3 x 3 x 2"),
        ("   cols: 3\n", "", "no cols"),
        ("   cols: 3\n", "   cols: 3\n   cols: 3\n", "twice"),
        ("   cols: 3\n", "   cols: 3\n   colour: 3\n", "colour"),
        ("M2:", "M1:", "already"),
        ("M2:", "N2:", "right camera"),
        ("T: ", "U: ", "translation"),
        ("-3.5, 0.25, 0.", "0., 0., 0.", "apart"),
        ("-3.5, 0.25, 0. ]", "-3.5, 0.25, 0.", "no end ]"),
        ("-3.5, 0.25, 0. ]", "-3.5, 0.25, 0. ] x", "after the ]"),
        ("data: [ 1., 0., 0., 0., 1.", "data: [ 1., 0., 0., 0., -1.", "rotation"),
        ("data: [ 1., 0., 0., 0., 1.", "data: [ 1., 0.5, 0., 0., 1.", "rotation"),
        ("-0.3, 0.14, 0., 0. ]", "-0.3, 0.14, 0. ]", "3 numbers"),
        ("image_width: 640", "image_width: 6.5", "pixels"),
        ("image_width: 640", "image_width: wide", "not a number"),
        ("image_width: 640", "nonsense", "line 4"),
    ];
    changes_are_refused(YAML, refusal, &changes);
    let rational = "rows: 8\n   cols: 1\n   dt: d\n   data: [ -0.3, 0.14, 0., 0., 0., 0., 0., 0. ]";
    let eight = YAML.replace("rows: 4\n   cols: 1\n   dt: d\n   data: [ -0.3, 0.14, 0., 0. ]", rational);
    assert_eq!(StereoCalibration::parse(&eight, "c.yml").unwrap(), truth(), "three zeros more");
    let message = refusal(&eight.replace("0., 0., 0., 0., 0., 0. ]", "0., 0., 0., 0., 0., 0.1 ]"));
    assert!(message.contains("coefficient 8 of D2"), "{message}");
    for text in ["", " \n", "hello", "9 6\nleft01.jpg\n", "<a/>", "{}", "\u{feff}"] {
        assert!(StereoCalibration::parse(text, "c.yml").is_err(), "{text:?}");
    }
}

/// A lens that is not found would pass for one without distortion.
#[test]
fn a_lens_under_any_name_is_found_or_missed() {
    for [one, other] in [["dist1", "dist2"], ["distCoeff1", "distCoeff2"], ["dist_coeffs_1", "dist_coeffs_2"]]
    {
        let named = YAML.replace("D1:", &format!("{one}:")).replace("D2:", &format!("{other}:"));
        assert_eq!(StereoCalibration::parse(&named, "c.yml").unwrap(), truth(), "{one}");
    }
    let unknown = YAML.replace("D1:", "lens_distort_left:").replace("D2:", "lens_distort_right:");
    assert!(refusal(&unknown).contains("lens_distort_left is no known name of a distortion"));
    let (start, end) = (YAML.find("D2:").unwrap(), YAML.find("R: ").unwrap());
    let one_sided = format!("{}{}", &YAML[..start], &YAML[end..]);
    assert!(refusal(&one_sided).contains("the right camera's distortion"), "{}", refusal(&one_sided));
    let start = one_sided.find("D1:").unwrap();
    let bare = format!("{}{}", &one_sided[..start], &one_sided[one_sided.find("M2:").unwrap()..]);
    let found = StereoCalibration::parse(&bare, "c.yml").unwrap();
    assert!(found.cameras.iter().all(|camera| camera.distortion.is_none()), "no lens at all is none");
    let fisheye = XML.replace("<images>", "<distortion_model>equidistant</distortion_model><images>");
    assert!(refusal(&fisheye).contains("the lens is equidistant"));
    let fisheye = YAML.replace("image_width", "model: Fisheye\nimage_width");
    assert!(refusal(&fisheye).contains("the lens is Fisheye:"), "{}", refusal(&fisheye));
    let unused =
        format!("{YAML}E: !!opencv-matrix\n   rows: 1\n   cols: 3\n   dt: d\n   data: [ .Nan, -.Inf, 1. ]\n");
    assert_eq!(StereoCalibration::parse(&unused, "c.yml").unwrap(), truth(), "a matrix that is not needed");
    // As OpenCV's calibration program writes it.
    let of_sample =
        |flag: u8| YAML.replace("image_width: 640\n", &format!("image_width: 640\nfisheye_model: {flag}\n"));
    assert!(refusal(&of_sample(1)).contains("the lens is fisheye_model"), "{}", refusal(&of_sample(1)));
    assert_eq!(StereoCalibration::parse(&of_sample(0), "c.yml").unwrap(), truth());
}

/// What OpenCV 5 and other programs write for the same numbers.
#[test]
fn lists_of_every_style_are_read() {
    let nd = YAML.replace(
        "D1: !!opencv-matrix\n   rows: 1\n   cols: 5\n",
        "D1: !!opencv-nd-matrix # five\n   sizes: [ 5 ]\n",
    );
    let size = "image_size: !!opencv-nd-matrix\n   sizes: [ 2 ]\n   dt: i\n   data: [ 640, 480 ]\n";
    let nd = nd.replace("image_width: 640\nimage_height: 480\n", size);
    let blocks = "M2:\n- - 537.0\n  - 0\n  - 327.5 # cx\n- - 0\n  - 536.5\n  - 249.5\n- - 0\n  - 0\n  - 1\n";
    let blocks =
        format!("{}{blocks}{}", &YAML[..YAML.find("M2:").unwrap()], &YAML[YAML.find("D2:").unwrap()..]);
    let sequence = XML.replace(
        "<image_width>640</image_width>\n<image_height>480</image_height>",
        "<image_size>\n  640 480</image_size>",
    );
    let nd_xml = XML.replace(
        r#"<D1 type_id="opencv-matrix"><rows>1</rows><cols>5</cols>"#,
        r#"<D1 type_id="opencv-nd-matrix"><sizes>5</sizes>"#,
    );
    for (text, what) in [
        (&nd, "nd-matrices"),
        (&blocks, "blocks"),
        (&sequence, "a sequence"),
        (&nd_xml, "nd-matrices of XML"),
    ] {
        assert!(text != YAML && text != XML, "{what} replace something");
        assert_eq!(StereoCalibration::parse(text, "c.yml").unwrap(), truth(), "{what}");
    }
    let flow = r#"{"D1": {"type_id": "opencv-nd-matrix", "sizes": [5], "dt": "d", "data": [-0.25, 0.03, 0.001, -0.000125, 0.125]}}"#;
    let without = YAML.replace("D1:", "unused:");
    assert_eq!(rig_of(&[&without, flow]).unwrap(), truth(), "JSON");
}

#[test]
fn files_that_contradict_each_other_are_refused() {
    let other = YAML.replace("-3.5, 0.25", "-7.0, 0.5");
    let error = rig_of(&[YAML, &other]).unwrap_err().to_string();
    assert!(error.contains("T has other numbers than T in c.yml"), "{error}");
    assert_eq!(rig_of(&[YAML, YAML]).unwrap(), truth(), "the same numbers twice");
}

#[test]
fn broken_xml_is_an_error() {
    let changes = [
        ("</M1>", "", "'M1'"),
        ("</opencv_storage>", "", "never closed"),
        ("<dt>d</dt>", "<dt>d", "'dt'"),
        ("<rows>3</rows>", "<rows>3</rows><rows>3</rows>", "twice"),
        ("<rows>3</rows>", "text<rows>3</rows>", "expected rows"),
        ("<rows>3</rows>", "<rows><a>3</a></rows>", "expected rows"),
        ("533.5", "a", "line 14"),
        ("<opencv_storage>", "<storage>", "'storage'"),
        ("<!-- as", "<!DOCTYPE", "well-formed"),
        ("<!-- as FileStorage writes it -->", "<!-- ", "well-formed"),
        ("<M1", "< M1", "well-formed"),
        ("<M1 type_id", "stray<M1 type_id", "outside"),
    ];
    changes_are_refused(XML, refusal, &changes);
    let deep = format!("<opencv_storage>{}", "<a>".repeat(100_000));
    assert!(refusal(&deep).contains("limit"), "nested without end");
    let entities = XML.replace("<!-- as FileStorage writes it -->", "<!DOCTYPE a [<!ENTITY b \"533\">]>");
    assert!(refusal(&entities).contains("DTD"), "no entities, which can grow without bound");
    let other = XML.replace("opencv_storage", "storage");
    assert!(refusal(&other).contains("opencv_storage"), "another kind of file");
}

#[test]
fn a_file_cut_off_anywhere_does_not_panic() {
    [YAML, XML, MIDDLEBURY].into_iter().for_each(read_cut_off);
}

#[test]
fn middlebury() {
    let pair = RectifiedCalibration::parse(MIDDLEBURY, "calib.txt").unwrap();
    assert_eq!((pair.focal, pair.principal, pair.doffs), (3997.684, [1176.728, 1011.728], 131.111));
    assert_eq!(
        (pair.baseline, pair.size, pair.range),
        (193.001, Some(Size::new(2964, 1988)), Some([31.0, 257.0]))
    );
    let rig = StereoCalibration::parse(MIDDLEBURY, "calib.txt").unwrap();
    assert_eq!((rig.translation, rig.cameras[1].principal[0]), ([-193.001, 0.0, 0.0], 1176.728 + 131.111));
    let changes = [
        ("doffs=131.111", "doffs=13.1", "doffs is 13.1"),
        ("baseline=193.001", "", "baseline"),
        ("baseline=193.001", "baseline=-193.001", "above 0"),
        ("baseline=193.001", "baseline=wide", "not a number"),
        ("cam1=", "cam2=", "no cam1"),
        ("0 0 1]\ncam1", "0 1]\ncam1", "line 1"),
        ("0 0 1]\ncam1", "0 0 1\ncam1", "no end ]"),
        ("cam1=[3997.684", "cam1=[3990", "differ"),
        ("0 3997.684 1011.728", "0 3990 1011.728", "cam0 has the focal lengths 3997.684 and 3990"),
        ("width=2964", "width=2964\nwidth=2964", "line 6"),
        ("width=2964", "width", "key=value"),
        ("vmin=31", "vmin=300", "ascending"),
        ("width=2964", "width=-5", "pixels"),
    ];
    changes_are_refused(MIDDLEBURY, rectified_refusal, &changes);
}

#[test]
fn kalibr() {
    let camera = |f: f64| {
        format!(
            "  camera_model: pinhole\n  distortion_coeffs: [-0.25, 0.03,\n    1.0e-03, -1.25e-04]\n  distortion_model: radtan\n  \
             intrinsics: [{f}, 534.25, 342.5, 234.75]\n  resolution: [640, 480]\n  rostopic: /cam/image_raw\n"
        )
    };
    let pose = "  T_cn_cnm1:\n  - [1.0, 0.0, 0.0, -3.5]\n  - [0.0, 1.0, 0.0, 0.25]\n  - [0.0, 0.0, 1.0, 0.0]\n  - [0.0, 0.0, \
                0.0, 1.0]\n";
    let text = format!("cam0:\n  cam_overlaps: [1]\n{}cam1:\n{pose}{}", camera(533.5), camera(537.0));
    let found = StereoCalibration::parse(&text, "camchain.yaml").unwrap();
    let expected = StereoCalibration::parse(YAML, "stereo.yml").unwrap();
    let [left, right] = found.cameras;
    assert_eq!((left.focal, left.principal), (expected.cameras[0].focal, expected.cameras[0].principal));
    assert_eq!(right.focal, [537.0, 534.25]);
    assert_eq!(left.distortion, right.distortion);
    assert_ne!(left.distortion, Distortion::default());
    assert_eq!((found.sizes, found.rotation), (expected.sizes, expected.rotation));
    assert_eq!(found.translation, expected.translation);
    let commented = text.replace("pinhole", "'pinhole' # a comment").replace("cam1:", "cam1: ");
    for head in ["# left, right\n", "%YAML:1.0\n---\n", "---\n"] {
        let read = StereoCalibration::parse(&format!("{head}{commented}"), "camchain.yaml").unwrap();
        assert_eq!(read, found, "{head}");
    }
    let (first, last) = text.split_at(text.find("cam1:").unwrap());
    let half = format!("{first}{}", last.replace("[640, 480]", "[320, 240]"));
    let sizes = StereoCalibration::parse(&half, "camchain.yaml").unwrap().sizes;
    assert_eq!(sizes, [[640, 480], [320, 240]].map(|[w, h]| Some(Size::new(w, h))));
    let without = StereoCalibration::parse(&text.replace("radtan", "none"), "camchain.yaml").unwrap();
    assert_eq!(without.cameras[0].distortion, Distortion::default());
    let changes = [
        ("radtan", "equidistant", "line 6: distortion_model is equidistant: expected radtan"),
        ("pinhole", "omni", "camera_model is omni"),
        ("342.5, ", "", "line 7: intrinsics has 3 numbers"),
        ("T_cn_cnm1", "T_cam_imu", "cam1 has no T_cn_cnm1"),
        ("cam1:", "other:", "1 cameras"),
        ("cam1:", "cam0:", "cam0 was given in line 1 already"),
        (
            "  intrinsics:",
            "  intrinsics: [1, 1, 1, 1]\n  intrinsics:",
            "line 8: cam0 intrinsics was given in line 7 already",
        ),
    ];
    changes_are_refused(&text, refusal, &changes);
    let spaced = text.replace("  distortion_coeffs", "\n  # of OpenCV\n  distortion_coeffs");
    changes_are_refused(&spaced, refusal, &[("342.5, ", "", "line 9: intrinsics has 3 numbers")]);
    read_cut_off(&text);
}

#[test]
fn kitti() {
    let grey = "P0: 7.0e+02 0 600 0 0 700 180 0 0 0 1 0\nP1: 700 0 600 -3.5e+02 0 700 180 0 0 0 1 0\n";
    let colour =
        "P2: 700 0 600 42 0 700 180 0.25 0 0 1 0.003\nP3: 700 0 600 -336 0 700 180 2.5 0 0 1 0.004\n";
    let rectified = |text: &str| RectifiedCalibration::parse(text, "calib.txt").unwrap();
    let found = rectified(grey);
    assert_eq!(
        (found.focal, found.principal, found.doffs, found.baseline),
        (700.0, [600.0, 180.0], 0.0, 0.5)
    );
    assert!(refusal(grey).contains("rectified already"));
    let both = format!("{grey}{colour}R0_rect: 1 0 0 0 1 0 0 0 1\nTr: 1 2 3\n");
    assert_eq!(rectified(&both).baseline, 378.0 / 700.0, "of the colour cameras");
    let long = format!("calib_time: 09-Jan-2012 13:57:47\n{}", both.replace('P', "P_rect_0"));
    assert_eq!(rectified(&long).baseline, 378.0 / 700.0, "calib_cam_to_cam.txt");
    assert_eq!(rectified(&long).size, None);
    let sized = format!("{long}S_rect_00: 640 480\nS_rect_02: 1.242000e+03 3.750000e+02\n");
    assert_eq!(rectified(&sized).size, Some(Size::new(1242, 375)), "of the left colour camera");
    let projections = "P1: !!opencv-matrix\n   rows: 3\n   cols: 4\n   dt: d\n   data: [ 700, 0, 600, 42, 0, 700, 180, 0, 0, 0, 1, 0 ]\n\
        P2: !!opencv-matrix\n   rows: 3\n   cols: 4\n   dt: d\n   data: [ 700, 0, 600, -336, 0, 700, 180, 0, 0, 0, 1, 0 ]\n";
    assert_eq!(rectified(projections).baseline, 378.0 / 700.0, "as OpenCV writes the same");
    let changes = [
        ("-3.5e+02 0", "0", "line 2: P1 has 11 numbers"),
        ("-3.5e+02", "far", "line 2"),
        ("-3.5e+02", "3.5e+02", "baseline"),
        ("P1:", "R1:", "without P2 and P3"),
        ("P1:", "P1: 1\nP1:", "line 3: P1 was given in line 2 already"),
        ("P1:", "S_rect_00: 640 480\nS_rect_01: 320 240\nP1:", "line 3: S_rect_01 has other numbers"),
    ];
    changes_are_refused(grey, rectified_refusal, &changes);
    assert!(StereoCalibration::parse(&both, "calib.txt").is_err(), "it has no cameras to rectify");
}

#[test]
fn written_calibrations_are_read_back() {
    let pair = RectifiedCalibration {
        size: Some(Size::new(641, 480)),
        focal: 535.256167443535,
        principal: [329.197_435_429_409_44, -238.8],
        doffs: 24.349_182_802_579_207,
        baseline: 1.0 / 3.0,
        range: Some([0.0, 52.0]),
        projection: Projection::Perspective,
    };
    assert_eq!(RectifiedCalibration::parse(&pair.to_text(), "calib.txt").unwrap(), pair, "every digit");
    let bare = RectifiedCalibration { size: None, range: None, ..pair };
    assert_eq!(RectifiedCalibration::parse(&bare.to_text(), "calib.txt").unwrap(), bare, "without size");
    let folder = crate::files::tests::Folder::new("calibrations");
    for (name, doffs) in
        [("c.yml", pair.doffs), ("c.xml", pair.doffs), ("c.json", pair.doffs), ("camera_info.yaml", 0.0)]
    {
        let (path, pair) = (folder.0.join(name), RectifiedCalibration { doffs, range: None, ..pair });
        pair.write(&path).unwrap();
        let read = RectifiedCalibration::read(&path).unwrap();
        let off = [read.focal - pair.focal, read.baseline - pair.baseline, read.doffs - pair.doffs];
        assert!(off.iter().all(|v| v.abs() < 1e-12), "{name}: {read:?}");
        assert_eq!((read.size, read.principal), (pair.size, pair.principal), "{name}");
    }
    assert!(pair.write(folder.0.join("camera_info.yaml")).is_err(), "ROS has one principal point");
    for (wrong, words) in [
        (RectifiedCalibration { focal: f64::NAN, ..pair }, "the focal length is NaN: expected pixels"),
        (RectifiedCalibration { baseline: -1.0, ..pair }, "the baseline is -1: expected above 0"),
        (RectifiedCalibration { doffs: f64::INFINITY, ..pair }, "a principal point is not finite"),
        (RectifiedCalibration { range: Some([0.0, f64::NAN]), ..pair }, "range of disparities is not finite"),
    ] {
        for name in ["wrong.txt", "wrong.yml", "wrong.xml", "wrong.json"] {
            let said = wrong.write(folder.0.join(name)).unwrap_err().to_string();
            assert!(said.contains(words) && !folder.0.join(name).exists(), "{name}: {said}");
        }
    }
    let affine = RectifiedCalibration::affine(pair.size, pair.range);
    assert_eq!(RectifiedCalibration::parse(&affine.to_text(), "calib.txt").unwrap(), affine, "affine");
    assert_eq!(affine.depth(5.0), None, "no depth");
    assert!(affine.check_metric().unwrap_err().to_string().contains("no metric depth"));
    let refused = StereoCalibration::parse(&affine.to_text(), "calib.txt");
    assert!(refused.unwrap_err().to_string().contains("affine"), "no cameras");
}

/// Two files as ROS's `camera_calibration` writes them.
#[test]
fn ros_files_of_two_cameras_make_a_pair() {
    let file = |turn: [f64; 9], along: f64| {
        let data = |values: &[f64]| values.iter().map(|v| format!("{v:?}")).collect::<Vec<_>>().join(", ");
        format!(
            "image_width: 640\nimage_height: 480\ncamera_name: narrow\ncamera_matrix:\n  rows: 3\n  cols: 3\n  data: [530.0, 0.0, \
             342.0, 0.0, 531.0, 235.0, 0.0, 0.0, 1.0]\ndistortion_model: plumb_bob\ndistortion_coefficients:\n  rows: 1\n  cols: \
             5\n  data: [-0.25, 0.03, 0.001, -0.0001, 0.0]\nrectification_matrix:\n  rows: 3\n  cols: 3\n  data: [{}]\n\
             projection_matrix:\n  rows: 3\n  cols: 4\n  data: [520.0, 0.0, 330.0, {along:?}, 0.0, 520.0, 240.0, 0.0, 0.0, 0.0, 1.0, \
             0.0]\n",
            data(&turn)
        )
    };
    let shifted = file([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0], 40.0);
    let rig = rig_of(&[&shifted, &file([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0], -220.0)]).unwrap();
    assert_eq!(rig.translation, [-0.5, 0.0, 0.0], "both are given in the frame of a third camera");
    assert_eq!(rig.stored.unwrap().calibration().unwrap().baseline, 0.5);
    let wide = file([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0], -220.0)
        .replace("image_width: 640", "image_width: 320");
    assert_eq!(rig_of(&[&shifted, &wide]).unwrap().sizes, [640, 320].map(|w| Some(Size::new(w, 480))));
    let (s, c) = libm::sincos(0.1);
    let left = file([c, 0.0, s, 0.0, 1.0, 0.0, -s, 0.0, c], 0.0);
    let right = file([c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0], -260.0);
    let rig = rig_of(&[&left, &right]).unwrap();
    assert_eq!((rig.sizes, rig.cameras[0].distortion.k1), ([Some(Size::new(640, 480)); 2], -0.25));
    // A point in front of both cameras. In rectified coordinates the left camera sees it half a unit further right.
    let stored = rig.stored.unwrap();
    let point = [0.3, -0.2, 4.0];
    let there = std::array::from_fn(|i| times(&rig.rotation, point)[i] + rig.translation[i]);
    let [a, b] = [times(&stored.rotations[0], point), times(&stored.rotations[1], there)];
    let off = [a[0] - b[0] - 0.5, a[1] - b[1], a[2] - b[2]];
    assert!(off.iter().all(|v| v.abs() < 1e-12), "{off:?}");
    let pair = RectifiedCalibration::parse(&right, "right.yaml").unwrap();
    assert_eq!((pair.focal, pair.baseline, pair.doffs), (520.0, 0.5, 0.0));
    assert!(rectified_refusal(&left).contains("right camera"), "the left camera's file tells no distance");
    // The same as programs dump it: the columns first and the data as lines, and in braces.
    let as_lines = |text: &String| -> String {
        let line = |line: &str| match line.strip_prefix("  data: [").and_then(|list| list.strip_suffix(']')) {
            Some(list) => format!("  data:\n  - {}\n", list.replace(", ", "\n  - ")),
            None => format!("{line}\n"),
        };
        let swapped = text.replace("  rows: 3\n  cols: 3\n", "  cols: 3\n  rows: 3\n");
        swapped.lines().map(line).collect()
    };
    let in_braces = |text: &String| {
        let open = text.replace(":\n  rows: ", ": {rows: ").replace("\n  cols: ", ", cols: ");
        open.replace("\n  data: [", ",\n  data: [").replace("]\n", "]}\n")
    };
    for dumped in [[as_lines(&left), as_lines(&right)], [in_braces(&left), in_braces(&right)]] {
        assert_eq!(rig_of(&dumped.each_ref().map(String::as_str)).unwrap(), rig, "{}", dumped[0]);
    }
    let open = in_braces(&right).replace("]}", "]");
    assert!(rectified_refusal(&open).contains("no end }"), "a brace without its end");
    // The whole file in braces, and the message as `rostopic echo` and `ros2 topic echo` print it, twice.
    let whole = |text: &String| {
        let parts = in_braces(text).trim_end().replace('\n', ",\n ").replace(",,", ",");
        format!("{{{parts}}}\n")
    };
    let list = |text: &str, key: &str| {
        let rest = &text[text.find(&format!("{key}:")).unwrap()..];
        rest[rest.find('[').unwrap() + 1..rest.find(']').unwrap()].to_owned()
    };
    let keys = ["distortion_coefficients", "camera_matrix", "rectification_matrix", "projection_matrix"];
    let lists = |text: &String| keys.map(|key| list(text, key));
    let head =
        "header:\n  stamp:\n    sec: 1\n  frame_id: 'cam: 1'\nheight: 480\nwidth: 640\ndistortion_model: ";
    let tail = "binning_x: 0\nroi:\n  x_offset: 0\n---\n";
    let first = |text: &String| {
        let rows =
            ["D", "K", "R", "P"].iter().zip(lists(text)).map(|(key, list)| format!("{key}: [{list}]\n"));
        format!("{head}\"plumb_bob\"\n{}{tail}", rows.collect::<String>()).repeat(2)
    };
    let second = |text: &String| {
        let rows = ["d", "k", "r", "p"].iter().zip(lists(text));
        let rows = rows.map(|(key, list)| format!("{key}:\n- {}\n", list.replace(", ", "\n- ")));
        format!("{head}plumb_bob\n{}{tail}", rows.collect::<String>()).repeat(2)
    };
    let line = |text: &String| {
        let rows =
            ["D", "K", "R", "P"].iter().zip(lists(text)).map(|(key, list)| format!("{key}: [{list}], "));
        let head = "{header: {stamp: {sec: 1}, frame_id: 'cam: 1'}, height: 480, width: 640, distortion_model: plumb_bob, ";
        format!("{head}{}roi: {{x_offset: 0}}}}", rows.collect::<String>())
    };
    for dumped in [&whole as &dyn Fn(&String) -> String, &first, &second, &line] {
        let texts = [&left, &right].map(dumped);
        assert_eq!(rig_of(&texts.each_ref().map(String::as_str)).unwrap(), rig, "{}", texts[0]);
        let same = RectifiedCalibration::parse(&texts[1], "right.yaml").unwrap();
        assert_eq!(same, pair, "{}", texts[1]);
        read_cut_off(&texts[1]);
        for other in ["fisheye: true", "camera_model: fisheye", "lens_model: KANNALA_BRANDT"] {
            let named = texts[1].replace("distortion_model: plumb_bob", other);
            assert!(named == texts[1] || rectified_refusal(&named).contains("the lens is "), "{named}");
        }
        let fisheye = texts[1].replace("plumb_bob", "equidistant");
        assert!(rectified_refusal(&fisheye).contains("the lens is equidistant"), "{fisheye}");
    }
    let bare = [&left, &right].map(|text| line(text).replace(&lists(text)[0], ""));
    let found = rig_of(&bare.each_ref().map(String::as_str)).unwrap();
    assert_eq!(found.cameras[1].distortion, Distortion::default(), "an empty list");
}

/// Braces and brackets of YAML and JSON: what is wrong is named with its line.
#[test]
fn broken_braces_are_errors() {
    let nested = "[".repeat(100_000);
    for (text, why) in [
        ("{", "line 1: what begins here has no end }"),
        ("{\na: [1, 2\n}", "line 3: expected , or ], found '}'"),
        ("{a: 1\nb: 2}", "line 2: expected , or }, found 'b'"),
        ("{a: 1} b", "\"b\" after the }"),
        ("{a: \"b}", "without its end"),
        ("{: 1}", "expected a word"),
        ("{a: {rows: 3, data: {b: 1}}}", "data of a is no number"),
        ("{a: {rows: 1, cols: 2, data: [1]}}", "a holds 1 numbers"),
        ("{a: {rows: 1, cols: 1, data: [[1]]}}", "not a finite number"),
        ("{a: 1, a: 2}", "already"),
        (&format!("{{a: {nested}"), "within each other"),
    ] {
        let refused = Document::parse(text, Path::new("c.json")).unwrap_err().to_string();
        assert!(refused.contains(why), "{text:.40}: {refused}");
    }
    let text = "{\"a\": \"{\\\"\", \"size\": [640, 480], \"m\": [[1, 2], [3, 4]], # what it is\n \"n\": null, e: , f: -1.5e1}";
    let document = Document::parse(text, Path::new("c.json")).unwrap();
    let value = |key: &str| document.find(key).unwrap().value.clone();
    assert_eq!(value("m"), Value::Matrix(Matrix { rows: 2, columns: 2, data: vec![1.0, 2.0, 3.0, 4.0] }));
    assert_eq!((value("f"), value("e")), (Value::Number(-15.0), Value::Text(String::new())));
}

/// s2p's range, with the sign that mgm's disparities have.
#[test]
fn the_range_of_s2p_is_written_and_read() {
    let folder = crate::files::tests::Folder::new("calibration-s2p");
    let path = folder.0.join("disp_min_max.txt");
    let pair = RectifiedCalibration::affine(Some(Size::new(64, 48)), Some([-3.5, 20.0]));
    pair.write(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "-20\n3.5\n");
    let read = RectifiedCalibration::read(&path).unwrap();
    assert_eq!(read, RectifiedCalibration { size: None, ..pair });
    assert!(rectified_refusal("7 -3").contains("ascending"), "the greater first");
    let refused = RectifiedCalibration::affine(None, None).write(&path).unwrap_err().to_string();
    assert!(refused.contains("unknown"), "{refused}");
}

#[test]
fn q_and_projections_agree() {
    let q = "%YAML:1.0\nQ: !!opencv-matrix\n   rows: 4\n   cols: 4\n   dt: d\n   data: [ 1., 0., 0., -336.5, 0., 1., 0., \
             -244.5, 0., 0., 0., 535., 0., 0., 0.25, 2. ]\n";
    let pair = RectifiedCalibration::parse(q, "q.yml").unwrap();
    assert_eq!((pair.focal, pair.principal, pair.baseline, pair.doffs), (535.0, [336.5, 244.5], 4.0, 8.0));
    assert_eq!(pair.q()[3], [0.0, 0.0, 0.25, 2.0], "and back");
    let twice = q.replace("1., 0., 0., -336.5, 0., 1., 0., ", "2., 0., 0., -673., 0., 2., 0., ");
    let twice = twice
        .replace("-244.5, 0., 0., 0., 535., 0., 0., 0.25, 2.", "-489., 0., 0., 0., 1070., 0., 0., 0.5, 4.");
    assert_eq!(RectifiedCalibration::parse(&twice, "q.yml").unwrap(), pair, "the same map");
    for (plain, other) in [("0., 1., 0., ", "0., -1., 0., "), ("1., 0., 0., -336.5", "2., 0., 0., -336.5")] {
        assert!(rectified_refusal(&q.replace(plain, other)).contains("Q is not"), "{other}");
    }
    let p = "%YAML:1.0\nP1: !!opencv-matrix\n   rows: 3\n   cols: 4\n   dt: d\n   data: [ 535., 0., 336.5, 0., 0., 535., \
             244.5, 0., 0., 0., 1., 0. ]\nP2: !!opencv-matrix\n   rows: 3\n   cols: 4\n   dt: d\n   data: [ 535., 0., \
             344.5, -2140., 0., 535., 244.5, 0., 0., 0., 1., 0. ]\n";
    assert_eq!(RectifiedCalibration::parse(p, "p.yml").unwrap(), pair, "P1 and P2");
    let both = format!("{p}{}", &q["%YAML:1.0\n".len()..]);
    assert_eq!(RectifiedCalibration::parse(&both, "both.yml").unwrap(), pair, "both");
    for (from, to) in
        [("535., 0., 0., 0.25", "540., 0., 0., 0.25"), ("0.25, 2.", "0.125, 1."), ("0.25, 2.", "0.25, 3.")]
    {
        assert!(rectified_refusal(&both.replace(from, to)).contains("Q contradicts P1 and P2"), "{to}");
    }
    let vertical = p.replace("344.5, -2140., 0., 535., 244.5, 0.,", "336.5, 0., 0., 535., 244.5, -2140.,");
    assert!(rectified_refusal(&vertical).contains("one above the other"), "{}", rectified_refusal(&vertical));
    assert_eq!(pair.doubt(Size::new(640, 480)), None);
    assert!(pair.doubt(Size::new(320, 240)).is_some_and(|told| told.contains("another size")), "{pair:?}");
    assert!(rectified_refusal(&p.replace("-2140.", "2140.")).contains("baseline"), "cameras exchanged");
    assert!(rectified_refusal(YAML).contains("P1"), "not rectified");
    assert!(rectified_refusal(&q.replace("0.25, 2.", "0., 2.")).contains("baseline"), "no baseline");
}

/// Computed by hand (a decimal calculator) from the formula in `camera`.
#[test]
fn distortion_table() {
    let lens = Distortion::from_opencv([-0.25, 0.03, 1e-3, -1.25e-4, 0.125]);
    for (place, expected) in [
        ([0.0, 0.0], [0.0, 0.0]),
        // r² = 0.25: 1 − 0.0625 + 0.001875 + 0.001953125 = 0.941328125.
        ([0.5, 0.0], [0.470_664_062_5 - 1.25e-4 * 0.75, 1e-3 * 0.25]),
        // r² = 0.25; 2xy = −0.24.
        (
            [0.3, -0.4],
            [0.282_398_437_5 - 0.24e-3 - 1.25e-4 * 0.43, -0.376_531_25 + 1e-3 * 0.57 + 1.25e-4 * 0.24],
        ),
        // r² = 1: 1 − 0.25 + 0.03 + 0.125 = 0.905.
        ([0.0, 1.0], [-1.25e-4, 0.905 + 3e-3]),
    ] {
        let found = lens.apply(place);
        let off = (found[0] - expected[0]).abs().max((found[1] - expected[1]).abs());
        assert!(off < 1e-15, "{place:?}: {found:?}, expected {expected:?}");
    }
}

#[test]
fn distortion_is_undone() {
    let lenses = [
        [0.0; 5],
        [-0.282, 0.0389, 0.0012, -0.0001, 0.119],
        [-0.296, 0.139, -0.0005, 0.0001, -0.049],
        [0.2, -0.1, 0.01, -0.02, 0.03],
        [-0.45, 0.2, 0.0, 0.0, 0.0],
    ];
    for coefficients in lenses {
        let lens = Distortion::from_opencv(coefficients);
        let reach = lens.reach();
        for i in -20..=20 {
            for j in -15..=15 {
                let place = [f64::from(i) * 0.04, f64::from(j) * 0.04];
                let radius = place[0] * place[0] + place[1] * place[1];
                if radius > 0.8 * reach {
                    continue;
                }
                let back = lens.undo(lens.apply(place));
                let [x, y] = back.unwrap_or_else(|| panic!("{coefficients:?} at {place:?}"));
                let off = (x - place[0]).abs().max((y - place[1]).abs());
                assert!(off < 1e-11, "{coefficients:?} at {place:?}: {off}");
            }
        }
    }
    // r (1 − r²) is greatest, 2/(3√3), at r² = 1/3.
    let folding = Distortion { k1: -1.0, ..Distortion::default() };
    assert!((folding.reach() - 1.0 / 3.0).abs() < 1e-12, "{}", folding.reach());
    assert!(folding.undo([0.39, 0.0]).is_none(), "no place goes there");
    assert!(folding.undo([0.38, 0.0]).is_some_and(|p| p[0] < 0.58), "the nearer of two");
}

#[test]
fn exchanged_twice_is_the_same() {
    let rig = StereoCalibration { rotation: [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], ..truth() };
    let other = rig.exchanged();
    assert_eq!(other.translation, [-0.25, -3.5, 0.0], "−Rᵀ T");
    assert_eq!(other.exchanged(), rig, "and back");
}

#[test]
fn real_files() {
    let Some(folder) = shared("calibration/opencv_stereo") else { return };
    let rig = StereoCalibration::read(&[folder.join("reference_calibration.yml")]).unwrap();
    assert_eq!(rig.sizes, [Some(Size::new(640, 480)); 2]);
    assert!((rig.baseline() - 3.327_261_6).abs() < 1e-6, "{}", rig.baseline());
    assert!(rig.stored.is_some(), "R1, R2, P1, P2");
    let pair = RectifiedCalibration::read(folder.join("reference_calibration.yml")).unwrap();
    assert!((pair.baseline - rig.baseline()).abs() < 1e-6, "{}", pair.baseline);
    let lacking = |name: &str| StereoCalibration::read(&[folder.join(name)]).unwrap_err().to_string();
    assert!(lacking("intrinsics.yml").contains("rotation"), "no extrinsics");
    assert!(lacking("left_intrinsics.yml").contains("single camera"), "one camera");
    assert!(lacking("stereo_calib.txt").contains("not a calibration"), "a list of images");
    assert!(lacking("stereo_calib.xml").contains("left camera"), "a list of images");
    assert!(lacking("absent.yml").contains("absent.yml"), "no file");
    assert!(StereoCalibration::read(&[&folder]).is_err(), "a folder");
    assert!(StereoCalibration::read(&[] as &[PathBuf]).is_err(), "no files");
}
