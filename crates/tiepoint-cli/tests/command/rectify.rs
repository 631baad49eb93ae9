//! `rectify`.

use super::collect::{exif, with_exif_chunk};
use super::*;
use tiepoint::geometry::calibration::RectifiedCalibration;
use tiepoint::geometry::warp::{Interpolation, WarpOptions, warp};
use tiepoint::synth::{StereoPair, StereoSceneOptions};

const CALIBRATION: &str = "cam0=[400 0 199.5; 0 400 149.5; 0 0 1]
cam1=[400 0 199.5; 0 400 149.5; 0 0 1]
doffs=0
baseline=0.1
width=400
height=300
";

const OUTPUTS: &str = "--output-left ol.png --output-right or.png";
const VALID: &str = "--valid-left vl.png --valid-right vr.png";

impl Folder {
    /// Writes two views with disparities of 4 to 40 pixels, `l.png` and `r.png`, and their calibration, `calib.txt`.
    pub(crate) fn views(&self) -> StereoPair {
        let options = StereoSceneOptions::default().with_size(Size::new(400, 300));
        self.put("calib.txt", CALIBRATION);
        self.stereo("", &options.with_disparities([4.0, 40.0]).with_surfaces(9).with_seed(5))
    }
}

fn size_of(json: &str) -> Size {
    Size::new(number(json, "width") as usize, number(json, "height") as usize)
}

#[test]
fn a_rectified_pair_is_left_unchanged() {
    let folder = Folder::new("rectify-known");
    let truth = folder.views();
    let line = "rectify l.png r.png --calibration calib.txt --output-calibration o.txt --json";
    let json = folder.works(format!("{line} {OUTPUTS}"));
    assert_eq!((value(&json, "calibrated"), value(&json, "exchanged")), ("true", "false"), "{json}");
    assert!(number(&json, "rms_vertical_px") < 0.3, "{json}");
    let range = number(&json, "min_disparity")..=number(&json, "max_disparity");
    let truth = truth.truth_left.data();
    let within = truth.iter().filter(|d| range.contains(&f64::from(**d))).count();
    assert!(within as f64 > 0.97 * truth.len() as f64, "{within} of {}: {json}", truth.len());
    assert!(*range.start() >= 0.0 && *range.end() < 60.0, "{json}");
    for (given, found) in [("l.png", "ol.png"), ("r.png", "or.png")] {
        assert!(folder.image(given) == folder.image(found), "{given}: pixel by pixel");
    }
    let pair = RectifiedCalibration::read(folder.at("o.txt")).unwrap();
    assert_eq!((pair.focal, pair.baseline, pair.doffs), (400.0, 0.1, 0.0), "the calibration is changed");
    // Exchanged pictures are put into the right order.
    let json = folder.works("rectify r.png l.png --json");
    assert_eq!(value(&json, "calibrated"), "false", "{json}");
}

#[test]
fn tie_points_alone_suffice() {
    let folder = Folder::with("rectify-ties", Folder::views);
    let run = format!("rectify l.png r.png {OUTPUTS} {VALID} --json");
    let json = folder.works(format!("{run} --output-calibration o.txt --draw rows.png"));
    assert!(number(&json, "rms_vertical_px") < 0.5 && number(&json, "inliers") > 100.0, "{json}");
    assert_eq!(number(&json, "min_disparity"), 0.0, "{json}");
    assert!((30.0..80.0).contains(&number(&json, "max_disparity")), "{json}");
    let size = size_of(&json);
    for name in ["ol.png", "or.png", "vl.png", "vr.png"] {
        assert_eq!(folder.image(name).size(), size, "{name}");
    }
    let pair = RectifiedCalibration::read(folder.at("o.txt")).unwrap();
    assert!(pair.size == Some(size) && (pair.baseline - 1.0).abs() < 1e-9, "{pair:?}");
    assert_eq!(folder.works("rectify l.png r.png -q"), "", "quiet");
    // The largest rectangle that is valid in both.
    let json = folder.works(format!("{run} --crop valid"));
    let size = size_of(&json);
    assert!(2 * size.area() > 400 * 300, "{json}");
    for name in ["vl.png", "vr.png"] {
        let mask = folder.bytes(name);
        assert!(mask.size() == size && mask.data().iter().all(|v| *v == 255), "{name}: all of {size}");
    }
    for name in ["ol.png", "or.png"] {
        assert_eq!(folder.image(name).size(), size, "{name}");
    }
}

/// The focal length comes from the file, from the user or is a weak guess; the baseline gives metres.
#[test]
fn known_focal_lengths_and_baselines_are_used_and_reported() {
    let folder = Folder::with("rectify-cameras", Folder::views);
    for name in ["l", "r"] {
        let plain = folder.read(&format!("{name}.png"));
        folder.put(&format!("{name}36.png"), with_exif_chunk(&plain, &exif(26, (0xa405, 3, 1, 36), &[])));
    }
    // 36 mm on film of 24 × 36 mm, whose diagonal is 43.27 mm; that of the picture is 500 px.
    let known = 36.0 / 43.266_615 * 500.0;
    for (line, left, right, source, word) in [
        ("l36.png r36.png", known, Some(known), "exif", ", from the camera data"),
        ("l36.png r.png", known, None, "exif", ", from the camera data"),
        ("l.png r36.png", known, None, "exif", ", from the camera data"),
        ("l36.png r36.png --focal 500", 500.0, None, "option", "focal length 500 px, as given"),
    ] {
        let json = folder.works(format!("rectify {line} --json"));
        let focal = numbers(&json, "camera_focal");
        assert!((focal[0] / left - 1.0).abs() < 1e-3, "{line}: {json}");
        assert!(right.is_none_or(|right| (focal[1] / right - 1.0).abs() < 0.02), "{line}: {json}");
        assert_eq!(value(&json, "focal_source"), format!("\"{source}\""), "{line}");
        assert!(folder.works(format!("rectify {line}")).contains(word), "{line}");
    }
    let found = folder.notes("rectify l.png r.png --baseline 2.5 --output-calibration o.txt");
    assert!(found.contains("weakly determined") && found.contains("--focal"), "{found}");
    assert_eq!(RectifiedCalibration::read(folder.at("o.txt")).unwrap().baseline, 2.5, "as given");
    for more in ["--baseline 0", "--baseline nan", "--baseline 2 --calibration calib.txt"] {
        folder.refuses(format!("rectify l.png r.png {more}"), 2, &["--baseline"]);
    }
}

#[test]
fn rectify_refuses_with_a_reason() {
    let folder = Folder::with("rectify-refuses", Folder::views);
    folder.write("black.png", Image::<u8>::new(SIZE));
    folder.put("broken.yml", "%YAML:1.0\nM1: !!opencv-matrix\n   rows: 3\n");
    let before = folder.files();
    for (arguments, code, word) in [
        ("l.png r.png --calibration broken.yml", 1, "line 2"),
        ("l.png r.png --calibration absent.yml", 1, "absent.yml"),
        ("l.png black.png --calibration calib.txt", 1, "320x240"),
        ("l.png r.png --stored", 2, "--calibration"),
        ("l.png r.png --stored --calibration calib.txt", 1, "R1"),
        ("l.png r.png --focal -3", 2, "focal"),
        ("l.png r.png --inlier-distance 0", 2, "--inlier-distance"),
        ("l.png r.png --draw x.unknown", 2, "unknown"),
        ("black.png black.png", 1, "matches"),
        ("l.png l.png", 1, ""),
    ] {
        folder.refuses(format!("rectify {arguments} --output-left out.png"), code, &[word]);
        assert_eq!(folder.files(), before, "{arguments}: left a file");
    }
}

#[test]
fn an_affine_pair_is_rectified_and_has_no_depth() {
    let folder = Folder::new("rectify-affine");
    let truth = folder.views();
    // Turned, scaled and shifted in its plane: the epipolar lines are parallel, and disparities have both signs.
    let (s, c) = (1.12 * 0.16_f64.sin(), 1.12 * 0.16_f64.cos());
    let input_from_output = Homography::new([[c, s, -30.0], [-s, c, 25.0], [0.0, 0.0, 1.0]]).unwrap();
    let options = WarpOptions::default().with_interpolation(Interpolation::Lanczos3);
    let (picture, cpu) = (truth.right.view(), Cpu::sequential());
    let turned = warp(picture, &input_from_output, picture.size(), &options, &cpu.into()).unwrap();
    folder.write("turned.png", turned);
    let json = folder.works(format!("rectify l.png turned.png {OUTPUTS} --json"));
    assert!(number(&json, "rms_vertical_px") < 0.3 && number(&json, "inliers") > 100.0, "{json}");
    // Without perspective there is no depth.
    folder.put("o.txt", "affine=1\nvmin=0\nvmax=60\n");
    let stereo = "stereo ol.png or.png --calibration o.txt";
    for result in ["--depth z.tif", "--cloud z.ply"] {
        folder.refuses(format!("{stereo} {result}"), 2, &["metric depth"]);
    }
    let json = folder.works(format!("{stereo} --output d.pfm --json"));
    assert_eq!(number(&json, "disparities"), 61.0, "{json}");
}

#[test]
fn rectified_pictures_carry_masks_of_valid_pixels() {
    let folder = Folder::new("rectify-valid");
    let truth = folder.views();
    for (name, image) in [("fl.tif", &truth.left), ("fr.tif", &truth.right)] {
        let values = image.data().iter().map(|v| f32::from(*v) / 255.0).collect();
        folder.write(name, Image::<f32>::from_vec(values, image.size(), 1).unwrap());
    }
    folder.works(format!("rectify l.png r.png {OUTPUTS} {VALID} --output-calibration o.txt"));
    let masks = ["vl.png", "vr.png"].map(|name| folder.bytes(name));
    assert!(masks.iter().any(|mask| mask.data().contains(&0)), "something lies beyond the pictures");
    for (name, mask) in ["ol.png", "or.png"].into_iter().zip(&masks) {
        let expected = Some(mask.clone()).filter(|mask| mask.data().contains(&0));
        assert_eq!(image::alpha_mask(&folder.image(name)), expected, "{name}");
    }
    // Transparent pixels are masked without a mask given.
    let stereo = "stereo ol.png or.png --calibration o.txt --output";
    folder.works(format!("{stereo} d.pfm"));
    folder.works(format!("{stereo} m.pfm --mask vl.png --mask-right vr.png"));
    assert_eq!(folder.read("d.pfm"), folder.read("m.pfm"), "transparency and masks give different maps");
    let found = folder.floats("d.pfm");
    let held = |x: usize, y: usize| {
        (y.saturating_sub(4)..(y + 5).min(found.size().height)).all(|j| {
            masks[0].row(j)[x.saturating_sub(4)..(x + 5).min(found.size().width)].iter().all(|m| *m != 0)
        })
    };
    let beside = (0..found.size().height).flat_map(|y| (0..found.size().width).map(move |x| (x, y)));
    let beside = beside.filter(|&(x, y)| found.row(y)[x].is_finite() && !held(x, y)).count();
    assert_eq!(beside, 0, "nothing is matched beside what is transparent");
    // Floating-point pictures are NaN where nothing is shown.
    folder.works("rectify fl.tif fr.tif --output-left ol.tif --output-right or.tif --valid-left vl.png");
    let (picture, mask) = (folder.floats("ol.tif"), folder.bytes("vl.png"));
    let agree = picture.data().iter().zip(mask.data()).all(|(v, m)| v.is_nan() == (*m == 0));
    assert!(agree, "NaN where nothing is shown");
    // A picture that cannot hold NaN has the same mask.
    let mut holes = folder.floats("fl.tif");
    (100..140).for_each(|y| holes.row_mut(y)[100..160].fill(f32::NAN));
    folder.write("fl.tif", holes);
    folder.put("vl.pgw", "1\n0\n0\n-1\n0\n0\n");
    let told =
        folder.notes("rectify fl.tif fr.tif --output-left ol.png --output-right or.png --valid-left vl.png");
    assert!(told.contains("the world file vl.pgw was there before"), "{told}");
    let read = image::read_file(folder.at("ol.png"), &ReadOptions::default()).unwrap();
    assert_eq!(read.shown.unwrap(), folder.bytes("vl.png"));
}

#[test]
fn a_calibration_that_does_not_fit_is_said() {
    let folder = Folder::with("rectify-doubts", Folder::views);
    let run = |images: &str| {
        let line = format!(
            "rectify {images} --calibration calib.txt --output-left ol.tif --valid-left vl.png --json"
        );
        succeeds(&mut folder.tiepoint(line))
    };
    let [json, told] = run("l.png r.png");
    assert!(value(&json, "warnings") == "[]" && told.is_empty(), "{json}{told}");
    let [json, told] = run("r.png l.png");
    assert!(
        told.contains("are left and right exchanged?") && json.contains("behind the cameras"),
        "{json}{told}"
    );
    assert_eq!(value(&json, "verdict"), "\"poor\"", "a scene behind the cameras");
    // A hole of floats is no data in the mask either.
    let left = folder.bytes("l.png");
    let holed =
        Image::from_fn(
            left.size(),
            |x, y| if x < 200 && y < 100 { f32::NAN } else { f32::from(left.row(y)[x]) },
        );
    image::write(folder.at("l.tif"), &holed).unwrap();
    run("l.tif r.png");
    let mask = folder.bytes("vl.png");
    assert!(mask.row(50)[100] == 0 && mask.row(50)[300] == 255 && mask.row(200)[100] == 255);
}
