//! `stereo` and `evaluate disparity`.

use super::*;
use tiepoint::options::Named;
use tiepoint::stereo::{
    Cost,
    files::{self, DisparityReading},
};
use tiepoint::synth::{StereoPair, StereoScene, StereoSceneOptions};

fn signed() -> DisparityReading {
    DisparityReading::default().with_signed(true)
}

/// A pair of files and the truth about it.
struct Rig {
    left: String,
    right: String,
    truth: [String; 2],
    pair: StereoPair,
}

impl Folder {
    fn stereo(&self, name: &str, options: &StereoSceneOptions) -> Rig {
        let pair: StereoPair = StereoScene::new(options).unwrap().render(&Cpu::sequential());
        let image =
            |side: &str, image: &Image<u8>| self.write(&format!("{name}{side}.png"), &image.clone().into());
        let truth = [("left", &pair.truth_left), ("right", &pair.truth_right)].map(|(side, map)| {
            let path = self.at(&format!("{name}{side}.pfm"));
            files::write(&path, map.view()).unwrap();
            path
        });
        Rig { left: image("l", &pair.left), right: image("r", &pair.right), truth, pair }
    }
}

fn scene(disparities: [f64; 2]) -> StereoSceneOptions {
    let options = StereoSceneOptions::default().with_size(Size::new(200, 150)).with_disparities(disparities);
    options.with_surfaces(5).with_seed(2)
}

#[test]
fn progress_is_for_terminals() {
    let folder = Folder::new("progress");
    let size = Size::new(1400, 1000);
    let rig = folder.stereo("", &scene([2.0, 24.0]).with_size(size));
    let map = folder.at("d.pfm");
    // Long enough to be worth a number.
    let run = [
        "stereo",
        &rig.left,
        &rig.right,
        "--disparities",
        "512",
        "--paths",
        "16",
        "--threads",
        "1",
        "-o",
        &map,
    ];
    let piped = tiepoint(&run);
    assert!(piped.status.success() && piped.stderr.is_empty(), "no terminal: {piped:?}");
    // As on a terminal, where the system has the means to pretend one.
    let on_terminal = |more: &str| {
        let line = [&[env!("CARGO_BIN_EXE_tiepoint")], &run[..]].concat().join(" ");
        let mut script = Command::new("script");
        script.args(["-qec", &format!("{line} {more}"), "/dev/null"]);
        // Nothing is drawn on a terminal that cannot move its cursor.
        let pretended = script.env("TERM", "xterm").env_remove("NO_COLOR").output();
        pretended.ok().filter(|o| o.status.success()).map(|o| String::from_utf8(o.stdout).unwrap())
    };
    let Some(shown) = on_terminal("").filter(|_| cfg!(target_os = "linux")) else {
        eprintln!("skipped: there is no script(1) to pretend a terminal");
        return;
    };
    assert!(shown.contains(" %  1/1 "), "a number within the pair: {shown:?}");
    let last = shown.rfind('\r').unwrap();
    assert!(shown[last..].ends_with("\x1b[2K"), "the line is wiped: {shown:?}");
    for quiet in ["--quiet", "--json"] {
        assert!(!on_terminal(quiet).unwrap().contains(" %  "), "{quiet}");
    }
}

#[test]
fn finds_the_truth_and_says_so() {
    let folder = Folder::new("stereo");
    let rig = folder.stereo("", &scene([2.0, 24.0]));
    let names = ["d.pfm", "d.tif", "d.png", "r.pfm", "c.tif", "p.png"].map(|n| folder.at(n));
    let [pfm, tif, png, right, confidence, preview] = &names;
    let pair = ["stereo", &rig.left, &rig.right, "--disparities", "32", "--json"];
    let all = ["-o", pfm, "--output-right", right, "--confidence", confidence, "--preview", preview];
    let json = works(&[&pair[..], &all].concat());
    assert_eq!(json.lines().count(), 1, "one object");
    for (key, expected) in [("width", 200.0), ("height", 150.0), ("disparities", 32.0), ("paths", 8.0)] {
        assert_eq!(number(&json, key), expected, "{key} in {json}");
    }
    assert!((0.7..=1.0).contains(&number(&json, "valid")), "{json}");
    let seconds = value(&json, "seconds");
    for key in ["total", "read", "compute", "write"] {
        assert!(number(seconds, key) > 0.0, "{key} in {seconds}");
    }
    works(&[&pair[..], &["-o", tif]].concat());
    works(&[&pair[..], &["-o", png]].concat());
    let found = files::read(pfm, &signed()).unwrap();
    assert_eq!(found, files::read(tif, &signed()).unwrap(), "TIFF holds the same");
    for (a, b) in found.data().iter().zip(files::read(png, &signed()).unwrap().data()) {
        let steps = if *a > 0.0 { (a * 256.0).round_ties_even() / 256.0 } else { 1.0 / 256.0 };
        assert!(a == b && !a.is_finite() || steps == *b, "PNG holds {b} for {a}");
    }
    let drawn = image::read(preview, &ReadOptions::default()).unwrap();
    assert!(drawn.size().width == 200 && drawn.size().height > 150, "the picture and its scale");

    let score = |found: &str, truth: &str, more: &[&str]| {
        works(&[&["evaluate", "disparity", found, truth, "--json"], more].concat())
    };
    let [truth, truth_right] = &rig.truth;
    let json = score(pfm, truth, &["--truth-right", truth_right]);
    assert!(number(&json, "bad") < 0.08 && number(&json, "epe") < 0.3, "{json}");
    let filled = score(pfm, truth, &["--truth-right", truth_right, "--fill", "--threshold", "1,3"]);
    assert!(number(&filled, "bad") <= number(&json, "bad"), "{filled}");
    assert_eq!(number(&filled, "density"), number(&json, "density"), "before filling");
    assert!(numbers(&filled, "bad_at")[1] <= number(&filled, "bad"), "{filled}");
    let json = score(right, truth_right, &[]);
    assert!(number(&json, "bad_of_valid") < 0.1, "the right view, occlusions included: {json}");
    let same = score(truth, truth, &[]);
    assert_eq!((number(&same, "bad"), number(&same, "epe")), (0.0, 0.0), "the truth itself");
    assert_eq!((number(&same, "pixels"), number(&same, "density")), (30_000.0, 1.0), "all of it");
    let mask = folder.write("mask.png", &Image::from_fn(Size::new(200, 150), |x, _| u8::from(x < 50)).into());
    assert_eq!(number(&score(truth, truth, &["--mask", &mask]), "pixels"), 7500.0, "a quarter");
    let eighth = Image::from_fn(Size::new(200, 150), |x, y| (rig.pair.truth_left.row(y)[x] * 8.0) as u8);
    let eighth = folder.write("eighth.png", &eighth.into());
    assert!(number(&score(truth, &eighth, &["--scale", "8"]), "epe") < 0.125, "8-bit truth");
}

#[test]
fn negative_disparities() {
    let folder = Folder::new("negative");
    let rig = folder.stereo("", &scene([-20.0, -3.0]));
    let tif = folder.at("d.tif");
    let range = ["--min-disparity", "-24", "--disparities", "24"];
    works(&[&["stereo", &rig.left, &rig.right, "-o", &tif], &range[..]].concat());
    let [truth, right] = &rig.truth;
    let score = ["evaluate", "disparity", &tif, truth, "--truth-right", right, "--json"];
    let json = works(&[&score[..], &["--signed"]].concat());
    assert!(number(&json, "bad") < 0.1, "{json}");
    assert!(fails(&score, 1).contains("no pixel"), "without --signed nothing is known");
    let png = folder.at("d.png");
    let message = fails(&[&["stereo", &rig.left, &rig.right, "-o", &png], &range[..]].concat(), 2);
    assert!(message.contains("d.png") && message.contains(".pfm"), "{message}");
}

#[test]
fn depth_and_points() {
    let folder = Folder::new("depth");
    let rig = folder.stereo("", &scene([4.0, 24.0]));
    let calibration = folder.at("calib.txt");
    let camera = |cx: f64| format!("[300 0 {cx}; 0 300 75; 0 0 1]");
    let text = |width, more: &str| {
        let cameras = format!("cam0={}\ncam1={}\n", camera(100.0), camera(102.0));
        let rest = format!("doffs=2\nbaseline=0.5\nwidth={width}\nheight=150\n{more}");
        std::fs::write(&calibration, cameras + &rest).unwrap();
    };
    let [pfm, depth, cloud] = ["d.pfm", "z.tif", "c.ply"].map(|n| folder.at(n));
    let run = ["stereo", &rig.left, &rig.right, "--calibration", &calibration, "-o", &pfm, "--json"];
    let files = ["--depth", &depth, "--cloud", &cloud];
    text(200, "ndisp=32\nvmin=0\nvmax=25\n");
    let json = works(&[&run[..], &files].concat());
    assert_eq!(number(&json, "disparities"), 26.0, "the calibration's range: {json}");
    let found = files::read(&pfm, &signed()).unwrap();
    let AnyImage::F32(depths) = image::read(&depth, &ReadOptions::default()).unwrap() else {
        panic!("floats")
    };
    for (d, z) in found.data().iter().zip(depths.data()) {
        let right = if d.is_finite() { (z * (d + 2.0) - 150.0).abs() < 0.01 } else { z.is_nan() };
        assert!(right, "disparity {d}, depth {z}");
    }
    let valid = found.data().iter().filter(|d| d.is_finite()).count() as f64;
    assert_eq!(number(&json, "points"), valid, "a point a pixel");
    let size = std::fs::metadata(&cloud).unwrap().len() as f64;
    assert!((15.0 * valid..15.0 * valid + 400.0).contains(&size), "{size} bytes");
    let near = works(&[&run[..], &files, &["--max-depth", "10", "--ascii"]].concat());
    assert!(number(&near, "points") < valid, "some are farther: {near}");
    let text_lines = std::fs::read_to_string(&cloud).unwrap().lines().count() as f64;
    assert_eq!(text_lines, number(&near, "points") + 10.0, "a line a point, and a header of ten");
    let json = works(&[&run[..], &["--disparities", "40"]].concat());
    assert_eq!(number(&json, "disparities"), 40.0, "as asked for");

    text(201, "");
    let message = fails(&[&run[..], &files].concat(), 1);
    assert!(message.contains("200x150") && message.contains("201x150"), "{message}");
    std::fs::write(&calibration, "cam0=[1 2").unwrap();
    assert!(fails(&run, 1).contains("calib.txt"), "broken");
    for more in [
        &["stereo", &rig.left, &rig.right, "--depth", &depth][..],
        &["stereo", &rig.left, &rig.right, "--cloud", &cloud],
        &[&run[..], &["--depth", "z.png"]].concat(),
        &[&run[..], &["--cloud", "c.obj"]].concat(),
        &[&run[..], &["--cloud", "c.ply", "--max-depth", "0"]].concat(),
    ] {
        text(200, "");
        fails(more, 2);
    }
}

#[test]
fn threads_and_memory_do_not_change_a_byte() {
    let folder = Folder::new("stereo-threads");
    let rig = folder.stereo("", &scene([2.0, 24.0]));
    let out = folder.at("d.pfm");
    let run = |more: &[&str]| {
        let pair = ["stereo", &rig.left, &rig.right, "--disparities", "40", "-o", &out];
        works(&[&pair[..], more].concat());
        std::fs::read(&out).unwrap()
    };
    let one = run(&["--threads", "1"]);
    for threads in ["2", "5"] {
        assert!(run(&["--threads", threads]) == one, "{threads} threads");
    }
    assert!(run(&["--memory", "1400K"]) == one, "in groups of rows");
    if works(&["devices"]).contains("opencl:0 ") {
        let json = |more: &[&str]| works(&[&["stereo", &rig.left, &rig.right, "--json"], more].concat());
        let told = json(&["--disparities", "40", "--device", "opencl", "-o", &out]);
        assert!(told.contains(r#""device":"opencl:0""#), "what computed: {told}");
        assert!(std::fs::read(&out).unwrap() == one, "a GPU gives the same bytes");
        let little = ["--disparities", "40", "--device", "opencl", "--device-memory", "1K", "-o", &out];
        let told = json(&little);
        assert!(told.contains(r#""device":"cpu""#), "what computed: {told}");
        assert!(std::fs::read(&out).unwrap() == one, "so does the CPU in its place");
    }
    assert!(run(&["--paths", "4"]) != one, "four directions are others");
}

#[test]
fn lists_and_sequences() {
    let folder = Folder::new("sequence");
    std::fs::create_dir(folder.at("out")).unwrap();
    let mut rigs = Vec::new();
    for (n, width) in [(8, 120), (9, 90), (10, 120)] {
        let options = scene([1.0, 12.0]).with_size(Size::new(width, 60)).with_seed(n);
        rigs.push(folder.stereo(&format!("{n:03}"), &options));
    }
    let search = ["--disparities", "16"];
    let alone: Vec<_> = rigs
        .iter()
        .map(|rig| {
            let path = folder.at("alone.pfm");
            works(&[&["stereo", &rig.left, &rig.right, "-o", &path], &search[..]].concat());
            std::fs::read(path).unwrap()
        })
        .collect();
    let check = |what: &str, names: [&str; 3]| {
        for (name, wanted) in names.iter().zip(&alone) {
            let path = folder.at(&format!("out/{name}"));
            assert!(std::fs::read(&path).unwrap() == *wanted, "{what}: {name} as if alone");
            std::fs::remove_file(path).unwrap();
        }
    };
    let (left, right) = (folder.at("%03dl.png"), folder.at("%03dr.png"));
    let json =
        works(&[&["stereo", &left, &right, "-o", &folder.at("out/d%d.pfm"), "--json"], &search[..]].concat());
    assert_eq!(json.lines().count(), 3, "an object a pair");
    check("a sequence", ["d8.pfm", "d9.pfm", "d10.pfm"]);

    let list = folder.at("list.txt");
    let named = folder.at("out/named.pfm");
    let line = |rig: &Rig, more: &str| format!("{}\t{}\t{more}\n", rig.left, rig.right);
    let text = format!("# pairs\n{}\n{}{}", line(&rigs[0], ""), line(&rigs[1], &named), line(&rigs[2], ""));
    std::fs::write(&list, text).unwrap();
    works(&[&["stereo", "--list", &list, "-o", &folder.at("out")], &search[..]].concat());
    check("a list", ["008l.pfm", "named.pfm", "010l.pfm"]);

    let all: Vec<&str> = rigs.iter().flat_map(|r| [r.left.as_str(), r.right.as_str()]).collect();
    works(&[&["stereo"], &all[..], &["-o", &folder.at("out/{}.pfm")], &search].concat());
    check("several", ["008l.pfm", "009l.pfm", "010l.pfm"]);

    // A pair that cannot be done does not stop the others.
    let pairs = [&rigs[0].left, &rigs[1].right, &rigs[2].left, &rigs[2].right].map(String::as_str);
    let message = fails(&[&["stereo"], &pairs[..], &["-o", &folder.at("out")], &search].concat(), 1);
    assert!(message.contains("008l.png") && message.contains("1 of 2"), "{message}");
    assert!(Path::new(&folder.at("out/010l.pfm")).exists(), "the pair after it");
}

#[test]
fn sequences_are_the_same_however_they_are_computed() {
    let folder = Folder::new("sequence-beside");
    std::fs::create_dir(folder.at("out")).unwrap();
    for n in 0..11_u64 {
        // Another size in the middle, and images that do not go together.
        let width = if (4..7).contains(&n) { 90 } else { 120 };
        let options = scene([1.0, 12.0]).with_size(Size::new(width, 60)).with_seed(n);
        folder.stereo(&format!("{n:03}"), &options);
    }
    folder.texture("008r.png", Size::new(20, 20), 1);
    std::fs::write(folder.at("002l.png"), "no image").unwrap();
    let (left, right, out) = (folder.at("%03dl.png"), folder.at("%03dr.png"), folder.at("out/%d.pfm"));
    let run = |more: &[&str]| {
        let sequence = ["stereo", &left, &right, "-o", &out, "--disparities", "16", "--json"];
        let output = tiepoint(&[&sequence[..], more].concat());
        assert_eq!(output.status.code(), Some(1), "{more:?}: {output:?}");
        let message = String::from_utf8(output.stderr).unwrap();
        for told in ["002l.png", "008l.png", "2 of 11 pairs failed"] {
            assert!(message.contains(told), "{more:?}: {message}");
        }
        let json = String::from_utf8(output.stdout).unwrap();
        let lefts: Vec<String> = json.lines().map(|line| value(line, "left").to_owned()).collect();
        let wanted = [0, 1, 3, 4, 5, 6, 7, 9, 10];
        let named = |n: &u64| lefts.iter().filter(|l| l.contains(&format!("{n:03}l.png"))).count() == 1;
        assert!(lefts.len() == 9 && wanted.iter().all(named) && lefts.is_sorted(), "in order: {json}");
        let maps = wanted.map(|n| {
            let path = folder.at(&format!("out/{n}.pfm"));
            let map = std::fs::read(&path).unwrap();
            std::fs::remove_file(path).unwrap();
            map
        });
        (maps, json)
    };
    let (one, json) = run(&["--threads", "1", "--device", "cpu"]);
    assert!(json.lines().all(|line| line.contains(r#""device":"cpu""#)), "{json}");
    assert!(run(&["--threads", "4", "--device", "cpu"]).0 == one, "four threads");
    if works(&["devices"]).contains("opencl:0 ") {
        for threads in ["1", "3"] {
            let (maps, json) = run(&["--threads", threads, "--device", "opencl"]);
            assert!(maps == one, "on a GPU, {threads} threads");
            assert!(json.lines().all(|line| line.contains(r#""device":"opencl:0""#)), "{json}");
        }
    }
}

#[test]
fn masks_and_no_data() {
    let folder = Folder::new("stereo-masks");
    let rig = folder.stereo("", &scene([2.0, 12.0]));
    let out = folder.at("d.pfm");
    let run = |more: &[&str]| {
        let pair = ["stereo", &rig.left, &rig.right, "--disparities", "16", "-o", &out];
        works(&[&pair[..], more].concat());
        files::read(&out, &signed()).unwrap()
    };
    let mask = Image::from_fn(Size::new(200, 150), |_, y| if y < 70 { 0_u8 } else { 1 });
    let mask = folder.write("mask.png", &mask.into());
    let found = run(&["--mask", &mask]);
    assert!(found.data()[..200 * 70].iter().all(|d| !d.is_finite()), "nothing where the mask is 0");
    assert!(found.data()[200 * 70..].iter().any(|d| d.is_finite()), "something elsewhere");
    let black = rig.pair.left.data().iter().filter(|v| **v == 60).count();
    assert!(black > 20, "{black} pixels of that value");
    let found = run(&["--no-data", "60"]);
    let held = found.data().iter().zip(rig.pair.left.data()).filter(|(d, v)| **v == 60 && d.is_finite());
    assert_eq!(held.count(), 0, "pixels of that value hold no data");
    let small = folder.texture("small.png", Size::new(20, 20), 1);
    let message = fails(&["stereo", &rig.left, &rig.right, "--mask", &small], 1);
    assert!(message.contains("20x20") && message.contains("200x150"), "{message}");
}

#[test]
fn wrong_usage() {
    let folder = Folder::new("stereo-usage");
    let image = folder.texture("a.png", Size::new(80, 60), 5);
    let out = folder.at("d.pfm");
    let pair = ["stereo", &image, &image, "--disparities", "16", "-o", &out];
    fails(&[&pair[..], &["--device", "opencl:77"]].concat(), 2);
    for more in [
        &["--disparities", "0"][..],
        &["--disparities", "-5"],
        &["--disparities", "100000"],
        &["--disparities", "nan"],
        &["--min-disparity", "40000"],
        &["--cost", "magic"],
        &["--cost", "ad", "--census-window", "7x7"],
        &["--iterations", "3"],
        &["--cost", "mi", "--iterations", "0"],
        &["--paths", "7"],
        &["--p1", "-1"],
        &["--p1", "30", "--p2", "20"],
        &["--p2", "60000"],
        &["--gradient", "0"],
        &["--uniqueness", "101"],
        &["--median", "4"],
        &["--max-difference", "nan"],
        &["--speckle-difference", "-1"],
        &["--memory", "much"],
        &["--memory", "0"],
        &["--preview-range", "5:2"],
        &["--preview", "x.pfmm"],
        &["--output-right", &out],
        &["--confidence", "/nonexistent/c.tif"],
        &["--list", "/dev/null", &image],
    ] {
        fails(&[&["stereo", &image, &image, "-o", &out], more].concat(), 2);
    }
    for output in ["d.jpg", "d", "no/such/folder/d.pfm", "d%d.unknown"] {
        fails(&["stereo", &image, &image, "-o", &folder.at(output)], 2);
    }
    fails(&["stereo", &image, &image, "--disparities", "300", "-o", &folder.at("d.png")], 2);
    fails(&["stereo", &image, &image, &image], 2);
    fails(&["stereo", &image, &image, &image, &image, "-o", &out], 2);
    fails(&["stereo", &folder.at("%d.png"), &folder.at("r%d.png")], 1);
    fails(&["stereo", &folder.at("%d.png"), &image], 2);
    for more in [["--scale", "0"], ["--threshold", "-1"], ["--threshold", "x"]] {
        fails(&[&["evaluate", "disparity", &image, &image], &more[..]].concat(), 2);
    }
    assert_eq!(folder.files(), ["a.png"], "nothing was written");
}

#[test]
fn hostile_pairs_get_an_answer_or_a_message() {
    let folder = Folder::new("stereo-hostile");
    let good = folder.texture("good.png", SIZE, 5);
    let mut holes = Image::filled(SIZE, 1, f32::NAN);
    holes.row_mut(3)[5] = f32::INFINITY;
    holes.row_mut(9)[5..100].fill(2.5);
    let odd = [
        folder.write("one.png", &Image::<u8>::new(Size::new(1, 1)).into()),
        folder.write("row.png", &Image::<u8>::new(Size::new(500, 1)).into()),
        folder.write("column.png", &Image::<u8>::new(Size::new(1, 500)).into()),
        folder.write("black.png", &Image::<u8>::new(SIZE).into()),
        folder.write("white.png", &Image::filled(SIZE, 1, u16::MAX).into()),
        folder.write("colour.png", &Image::filled(SIZE, 3, 77_u8).into()),
        folder.write("holes.tif", &holes.into()),
        folder.texture("tiny.png", Size::new(9, 7), 3),
        good.clone(),
    ];
    let out = Folder::new("stereo-hostile-out");
    let (pfm, preview) = (out.at("d.pfm"), out.at("p.png"));
    let clean = || out.files().iter().for_each(|f| std::fs::remove_file(out.at(f)).unwrap());
    for image in &odd {
        for cost in Cost::ALL.iter().map(|choice| choice.name) {
            let all = ["--confidence", &out.at("c.png"), "--output-right", &out.at("r.tif")];
            let run = ["stereo", image, image, "--cost", cost, "-o", &pfm, "--preview", &preview];
            works(&[&run[..], &all].concat());
            clean();
        }
        let size = image::read(image, &ReadOptions::default()).unwrap().size();
        let arguments = ["stereo", &good, image, "-o", &pfm];
        if size == SIZE {
            works(&arguments);
            clean();
        } else {
            let message = fails(&arguments, 1);
            assert!(message.contains(&size.to_string()) && message.contains("320x240"), "{message}");
            assert!(out.files().is_empty(), "nothing is left");
        }
    }
    std::fs::write(folder.at("text.png"), "no image").unwrap();
    for broken in [folder.at("text.png"), folder.at("absent.png")] {
        assert!(fails(&["stereo", &broken, &good, "-o", &pfm], 1).contains(".png"), "named");
        fails(&["stereo", &good, &broken, "-o", &pfm], 1);
        fails(&["evaluate", "disparity", &broken, &good], 1);
        assert!(out.files().is_empty(), "nothing is left");
    }
}
