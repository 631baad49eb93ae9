//! `stereo` and `evaluate disparity`.

use super::*;
use tiepoint::image::{Compression, Known};
use tiepoint::options::Named;
use tiepoint::stereo::Cost;
use tiepoint::stereo::files::{self, DisparityReading};
use tiepoint::synth::{StereoPair, StereoScene, StereoSceneOptions};

impl Folder {
    /// Writes a pair, NAMEl.png and NAMEr.png, and its true disparities, NAMEleft.pfm and NAMEright.pfm.
    pub(super) fn stereo(&self, name: &str, options: &StereoSceneOptions) -> StereoPair {
        let pair: StereoPair = StereoScene::new(options).unwrap().render(&Cpu::sequential());
        for (side, image) in [("l", &pair.left), ("r", &pair.right)] {
            self.write(&format!("{name}{side}.png"), image.clone());
        }
        for (side, map) in [("left", &pair.truth_left), ("right", &pair.truth_right)] {
            files::write(self.at(&format!("{name}{side}.pfm")), map.view(), Compression::None).unwrap();
        }
        pair
    }

    /// The disparities in a file, of either sign.
    fn disparities(&self, name: &str) -> Image<f32> {
        files::read(self.at(name), &DisparityReading::default().with_signed(Some(true))).unwrap()
    }
}

fn scene(disparities: [f64; 2]) -> StereoSceneOptions {
    let options = StereoSceneOptions::default().with_size(Size::new(200, 150)).with_disparities(disparities);
    options.with_surfaces(5).with_seed(2)
}

#[test]
fn progress_is_for_terminals() {
    let folder = Folder::new("progress");
    folder.stereo("", &scene([2.0, 24.0]).with_size(Size::new(1000, 700)));
    // Long enough that progress is shown.
    let run = "stereo l.png r.png --disparities 512 --paths 16 --threads 1 -o d.pfm";
    assert_eq!(folder.notes(run), "", "no terminal");
    // script(1) runs a command as on a terminal, where the system has it.
    let on_terminal = |more: &str| {
        let line = format!("{} {run} {more}", env!("CARGO_BIN_EXE_tiepoint"));
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).current_dir(&folder.0);
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
fn stereo_finds_the_truth_and_reports_figures() {
    let folder = Folder::new("stereo");
    let pair = folder.stereo("", &scene([2.0, 24.0]));
    let run = "stereo l.png r.png --disparities 32 --json";
    let more = "-o d.pfm --output-right r.pfm --confidence c.tif --preview p.png";
    let json = folder.works(format!("{run} {more}"));
    assert_eq!(json.lines().count(), 1, "one object");
    for (key, expected) in [("width", 200.0), ("height", 150.0), ("disparities", 32.0), ("paths", 8.0)] {
        assert_eq!(number(&json, key), expected, "{key} in {json}");
    }
    assert!((0.7..=1.0).contains(&number(&json, "valid")), "{json}");
    let seconds = value(&json, "seconds");
    for key in ["total", "read", "compute", "write"] {
        assert!(number(seconds, key) > 0.0, "{key} in {seconds}");
    }
    folder.works(format!("{run} -o d.tif"));
    folder.works(format!("{run} -o d.png"));
    let found = folder.disparities("d.pfm");
    assert_eq!(found, folder.disparities("d.tif"), "TIFF holds the same");
    for (a, b) in found.data().iter().zip(folder.disparities("d.png").data()) {
        let steps = if *a > 0.0 { (a * 256.0).round_ties_even() / 256.0 } else { 1.0 / 256.0 };
        assert!(a == b && !a.is_finite() || steps == *b, "PNG holds {b} for {a}");
    }
    let drawn = folder.image("p.png").size();
    assert!(drawn.width == 200 && drawn.height > 150, "the picture and its scale");

    let score = |arguments: &str| folder.works(format!("evaluate disparity {arguments} --json"));
    let json = score("d.pfm left.pfm --truth-right right.pfm");
    assert!(number(&json, "bad") < 0.08 && number(&json, "epe") < 0.3, "{json}");
    let filled = score("d.pfm left.pfm --truth-right right.pfm --fill --threshold 1,3");
    assert!(number(&filled, "bad") <= number(&json, "bad"), "{filled}");
    assert_eq!(number(&filled, "density"), number(&json, "density"), "before filling");
    assert!(numbers(&filled, "bad_at")[1] <= number(&filled, "bad"), "{filled}");
    let json = score("r.pfm right.pfm");
    assert!(number(&json, "bad_of_valid") < 0.1, "the right view, occlusions included: {json}");
    let same = score("left.pfm left.pfm");
    let all = ["bad", "epe", "pixels", "density"].map(|key| number(&same, key));
    assert_eq!(all, [0.0, 0.0, 30_000.0, 1.0], "the truth itself, all of it");
    folder.write("mask.png", Image::from_fn(Size::new(200, 150), |x, _| u8::from(x < 50)));
    assert_eq!(number(&score("left.pfm left.pfm --mask mask.png"), "pixels"), 7500.0, "a quarter");
    let eighth = Image::from_fn(Size::new(200, 150), |x, y| (pair.truth_left.row(y)[x] * 8.0) as u8);
    folder.write("eighth.png", eighth);
    assert!(number(&score("left.pfm eighth.png --scale 8"), "epe") < 0.125, "8-bit truth");
    let hint = folder.notes("evaluate disparity left.pfm eighth.png");
    assert!(hint.contains("a scale of 8"), "{hint}");
    let hint = folder.notes("evaluate disparity eighth.png left.pfm");
    assert!(hint.contains("disparities found stored as a multiple, at a scale of 8"), "{hint}");
    folder.write("negative.tif", Image::from_fn(Size::new(200, 150), |x, y| -pair.truth_left.row(y)[x]));
    let hint = folder.notes("evaluate disparity negative.tif left.pfm");
    assert!(hint.contains("opposite sign"), "{hint}");
}

#[test]
fn like_mgm_takes_the_lines_of_s2p() {
    let folder = Folder::new("mgm");
    let pair = folder.stereo("", &scene([2.0, 24.0]));
    for (name, image) in [("l.tif", &pair.left), ("r.tif", &pair.right)] {
        let hole = |x: usize, y: usize| (60..70).contains(&x) && (40..80).contains(&y);
        let value = |x, y| if hole(x, y) { f32::NAN } else { f32::from(image.row(y)[x]) * 3.5 };
        folder.write(name, Image::from_fn(image.size(), value));
    }
    folder.works(
        "stereo l.tif r.tif --disparities 28 --cost census --speckle-size 25 --median 5 --confidence ours.tif -o ours.pfm \
         --output-right right.pfm",
    );
    let line = "-r -27 -R -0.25 -s vfit -t census -O 8 -confidence_consensusL c.tif l.tif r.tif d.tif cost.tif back.tif";
    let environment = [("MEDIAN", "1"), ("CENSUS_NCC_WIN", "5"), ("TSGM", "3"), ("OMP_NUM_THREADS", "1")];
    let [_, told] = succeeds(folder.tiepoint(format!("stereo --like mgm {line}")).envs(environment));
    assert!(told.contains("cost.tif"), "{told}");
    let offsets = folder.disparities("ours.pfm");
    let minus = Image::from_fn(offsets.size(), |x, y| match offsets.row(y)[x] {
        d if d.is_finite() => 0.0 - d,
        d => d,
    });
    assert_eq!(folder.disparities("d.tif"), minus, "the other sign");
    assert!(folder.disparities("d.tif").data().iter().any(|d| *d < -1.0), "disparities of mgm are negative");
    assert_eq!(folder.disparities("back.tif"), folder.disparities("right.pfm"), "back");
    assert_eq!(folder.image("c.tif"), folder.image("ours.tif"), "confidence");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tiepoint"), folder.at("mgm_multi")).unwrap();
        let mut link = Command::new(folder.at("mgm_multi"));
        let line = line.replace("d.tif", "e.tif");
        link.args(["-S", "6"]).args(line.split(' ')).envs(environment).current_dir(&folder.0);
        let [_, told] = succeeds(&mut link);
        assert!(told.contains("-S 6"), "{told}");
        assert_eq!(folder.disparities("e.tif"), minus, "by its name");
    }
    folder.refuses("stereo l.png r.png --disparities 28 --offsets -o d.png", 2, &["d.png", "-27"]);
    folder.refuses("stereo --like mgm l.tif r.tif", 2, &["LEFT RIGHT DISPARITY"]);
}

#[test]
fn negative_disparities() {
    let folder = Folder::new("negative");
    folder.stereo("", &scene([-20.0, -3.0]));
    let run = "stereo l.png r.png --min-disparity -24 --disparities 24 -o";
    folder.works(format!("{run} d.tif"));
    let score = "evaluate disparity d.tif left.pfm --truth-right right.pfm --json";
    let json = folder.works(format!("{score} --signed"));
    assert!(number(&json, "bad") < 0.1, "{json}");
    // Several values of 0 and below are no mark of unknown pixels, and beside others that are marked one is none.
    assert_eq!(number(&folder.works(score), "pixels"), number(&json, "pixels"));
    let size = Size::new(200, 150);
    let told = |rest: f32| {
        folder.write("t.tif", Image::from_fn(size, |x, _| if x < 120 { -9.0 } else { rest }));
        let done = folder.tiepoint("evaluate disparity t.tif t.tif --json").output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        (
            number(&String::from_utf8(done.stdout).unwrap(), "pixels"),
            said.contains("taken for unknown: --signed"),
        )
    };
    assert_eq!([told(f32::NAN), told(4.0)], [(18_000.0, false), (12_000.0, true)]);
    folder.refuses(format!("{run} d.png"), 2, &["d.png", ".pfm"]);
}

#[test]
fn depth_and_points_follow_from_the_calibration() {
    let folder = Folder::new("depth");
    folder.stereo("", &scene([4.0, 24.0]));
    let calibrate = |name: &str, doffs: f32, width: usize, more: &str| {
        let camera = |cx: f32| format!("[300 0 {cx}; 0 300 75; 0 0 1]");
        let cameras = format!("cam0={}\ncam1={}\n", camera(100.0), camera(100.0 + doffs));
        let rest = format!("doffs={doffs}\nbaseline=0.5\nwidth={width}\nheight=150\n{more}");
        folder.put(name, cameras + &rest);
    };
    let run = "stereo l.png r.png --calibration calib.txt -o d.pfm --json";
    let all = format!("{run} --depth z.tif --cloud c.ply");
    calibrate("calib.txt", 2.0, 200, "ndisp=32\nvmin=0\nvmax=25\n");
    let json = folder.works(&all);
    assert_eq!(number(&json, "disparities"), 26.0, "the calibration's range: {json}");
    let found = folder.disparities("d.pfm");
    for (d, z) in found.data().iter().zip(folder.floats("z.tif").data()) {
        let right = if d.is_finite() { (z * (d + 2.0) - 150.0).abs() < 0.01 } else { z.is_nan() };
        assert!(right, "disparity {d}, depth {z}");
    }
    let valid = found.data().iter().filter(|d| d.is_finite()).count() as f64;
    assert_eq!(number(&json, "points"), valid, "a point a pixel");
    let size = folder.read("c.ply").len() as f64;
    assert!((15.0 * valid..15.0 * valid + 400.0).contains(&size), "{size} bytes");
    let near = folder.works(format!("{all} --max-depth 10 --ascii"));
    assert!(number(&near, "points") < valid, "some are farther: {near}");
    let lines = folder.text("c.ply").lines().count() as f64;
    assert_eq!(lines, number(&near, "points") + 10.0, "a line a point, and a header of ten");
    let json = folder.works(format!("{run} --disparities 40"));
    assert_eq!(number(&json, "disparities"), 40.0, "as asked for");
    calibrate("range.txt", 2.0, 200, "ndisp=32\nvmin=3\nvmax=25\n");
    let range = |more: &str| {
        let json = folder.works(format!("stereo l.png r.png --calibration range.txt --json {more}"));
        [number(&json, "min_disparity"), number(&json, "disparities")]
    };
    // What a flag gives is for the size that is searched; the rest is the calibration's, of the full size.
    for (more, expected) in [
        ("", [3.0, 23.0]),
        ("--disparities 30", [3.0, 30.0]),
        ("--min-disparity 5", [5.0, 21.0]),
        ("--halve 1", [1.0, 13.0]),
        ("--halve 1 --disparities 30", [1.0, 30.0]),
        ("--halve 1 --min-disparity 5", [5.0, 9.0]),
        ("--halve 1 --min-disparity 5 --disparities 30", [5.0, 30.0]),
    ] {
        assert_eq!(range(more), expected, "{more}");
    }
    let told = folder.works("stereo l.png r.png --disparities 26 --uniqueness 100 --json");
    assert!(told.contains("--uniqueness 100 drops most of them"), "{told}");
    // Principal points of another crop: a third of the scene lies behind the cameras, without a depth.
    let mut near: Vec<f32> = found.data().iter().copied().filter(|d| d.is_finite()).collect();
    near.sort_by(f32::total_cmp);
    calibrate("crop.txt", -near[near.len() / 3], 200, "");
    let told =
        folder.works("stereo l.png r.png --disparities 26 --calibration crop.txt --depth c.tif --json");
    assert!(told.contains("does the calibration belong to these pictures"), "{told}");
    // The same cameras by options, except doffs, and in KITTI's format.
    let plain = "stereo l.png r.png --disparities 26 -o e.pfm --json";
    folder.put(
        "kitti.txt",
        "P0: 300 0 99.5 0 0 300 74.5 0 0 0 1 0\nP1: 300 0 99.5 -150 0 300 74.5 0 0 0 1 0\n",
    );
    folder.works(format!("{plain} --focal 300 --baseline 0.5 --depth y.tif --cloud y.ply --ascii"));
    folder.works(format!("{plain} --calibration kitti.txt --depth k.tif --cloud k.ply --ascii"));
    for (d, z) in folder.disparities("e.pfm").data().iter().zip(folder.floats("y.tif").data()) {
        assert!(
            if d.is_finite() { (z * d - 150.0).abs() < 0.01 } else { z.is_nan() },
            "disparity {d}, depth {z}"
        );
    }
    assert_eq!(
        folder.text("y.ply"),
        folder.text("k.ply"),
        "the principal point of options is not the middle"
    );
    assert_eq!(folder.read("y.tif"), folder.read("k.tif"));
    folder.refuses(format!("{run} --focal 300"), 2, &["--calibration"]);
    let line = "stereo r.png l.png --min-disparity -30 --disparities 32 --focal 300 --depth w.tif";
    let (_, [_, told]) = ran(&mut folder.tiepoint(line));
    assert!(told.contains("have a depth: one above 0; are left and right exchanged?"), "{told}");
    // The truth is scored without a report, too.
    folder.works("stereo l.png r.png --disparities 26 -o e.pfm");
    let json = folder.works("stereo l.png r.png --disparities 26 -o f.pfm --json --truth e.pfm");
    assert!(number(&json, "bad") < 0.3 && json.contains("\"measure\":\"truth\""), "{json}");
    folder.refuses("stereo l.png r.png --disparities 26 -o f.pfm --truth no.pfm", 1, &["no.pfm"]);
    folder.write("below.tif", Image::filled(Size::new(200, 150), 1, -9.0_f32));
    let line = "stereo l.png r.png --disparities 26 -o f.pfm --json --truth below.tif";
    assert!(folder.works(line).contains("no pixel of the truth is known"), "values below 0 are unknown");
    assert_eq!(
        number(&folder.works(format!("{line} --truth-signed")), "bad"),
        1.0,
        "and are disparities here"
    );
    let plain = "stereo l.png r.png --disparities 26";
    folder.write("small.pfm", Image::filled(Size::new(20, 15), 1, 9.0_f32));
    folder.fails(format!("{plain} -o new.pfm --truth small.pfm"), 1);
    assert!(!folder.at("new.pfm").exists(), "a call that fails writes nothing");
    folder.write("none.png", Image::filled(Size::new(200, 150), 1, 0_u8));
    for (side, mask) in [("left", "--mask"), ("right", "--mask-right")] {
        let json = folder.works(format!("{plain} {mask} none.png -o f.pfm --json"));
        assert!(json.contains(&format!("Cause: the {side} picture shows nothing")), "{json}");
    }
    let json = folder.works(format!(
        "{plain} --focal 300 --baseline 0.1 --depth-scale 40000 --depth lost.png --json --quiet"
    ));
    assert!(json.contains("depths are not held"), "among the warnings: {json}");
    let line =
        "stereo l.png r.png --disparities 26 --focal 300 --baseline 0.1 --depth-scale 1e-9 --depth z.png";
    folder.refuses(line, 1, &["holds none of the"]);
    assert!(!folder.at("z.png").exists(), "no picture of zeros");

    calibrate("calib.txt", 2.0, 201, "");
    folder.refuses(&all, 1, &["200x150", "201x150"]);
    let turned = folder.text("calib.txt").replace("width=201\nheight=150", "width=150\nheight=200");
    folder.put("calib.txt", turned);
    folder.refuses(&all, 1, &["--no-orient"]);
    folder.put("calib.txt", "cam0=[1 2");
    folder.refuses(run, 1, &["calib.txt"]);
    calibrate("calib.txt", 2.0, 200, "");
    folder.works(format!("{run} --depth z.png"));
    assert_eq!(folder.read("z.png")[24], 16, "bits of a PNG of millimetres");
    for more in
        ["--depth z.jpg", "--depth z.png --depth-scale 0", "--cloud c.obj", "--cloud c.ply --max-depth 0"]
    {
        folder.fails(format!("{run} {more}"), 2);
    }
    for more in ["--depth z.tif", "--cloud c.ply"] {
        folder.fails(format!("stereo l.png r.png {more}"), 2);
    }
}

#[test]
fn threads_and_memory_do_not_change_a_byte() {
    let folder = Folder::new("stereo-threads");
    folder.stereo("", &scene([2.0, 24.0]));
    let run = |more: &str| {
        let json = folder.works(format!("stereo l.png r.png --disparities 40 -o d.pfm --json {more}"));
        (folder.read("d.pfm"), value(&json, "device").to_owned())
    };
    let (one, _) = run("--threads 1");
    for more in ["--threads 2", "--threads 5", "--memory 1400K"] {
        assert!(run(more).0 == one, "{more}");
    }
    if cpu_and(&["opencl"]).len() > 1 {
        // The CPU computes pairs for which the device lacks memory.
        for (more, computed) in [("", "\"opencl:0\""), ("--device-memory 1K", "\"cpu\"")] {
            let (found, device) = run(&format!("--device opencl {more}"));
            assert_eq!(device, computed, "computed by another device: {more}");
            assert!(found == one, "the same bytes: {more}");
        }
    }
    assert!(run("--paths 4").0 != one, "four directions give the bytes of eight");
}

#[test]
fn warnings_from_tie_points_name_what_is_wrong() {
    let folder = Folder::new("stereo-survey");
    let size = Size::new(400, 300);
    let pair = folder.stereo("", &scene([4.0, 60.0]).with_size(size).with_surfaces(12));
    let range = |json: &str| [number(json, "min_disparity"), number(json, "disparities")];
    let measured = folder.works("stereo l.png r.png -o d.pfm --json");
    let found = range(&measured);
    assert!(found[0] == 0.0 && (62.0..=96.0).contains(&found[1]), "{measured}");
    assert_eq!(value(&measured, "warnings"), "[]", "{measured}");
    for more in ["auto".to_owned(), found[1].to_string(), "auto --threads 1".to_owned()] {
        folder.works(format!("stereo l.png r.png -o e.pfm --disparities {more}"));
        assert_eq!(folder.read("d.pfm"), folder.read("e.pfm"), "{more}");
    }
    // Each of several pairs has its own range.
    folder.stereo("n", &scene([-30.0, -3.0]).with_size(size).with_surfaces(12).with_seed(7));
    folder.make("out");
    let json = folder.works("stereo nl.png nr.png l.png r.png -o out/{}.pfm --json");
    let ranges: Vec<_> = json.lines().map(range).collect();
    assert!(ranges[1] == found && ranges[0][0] < -28.0, "{json}");
    assert_eq!(folder.read("out/l.pfm"), folder.read("d.pfm"), "not as when computed alone");
    // A PNG holds no disparity below 0: such a pair fails alone, and a range that only its margin takes there begins at 0.
    folder.refuses("stereo nl.png nr.png l.png r.png -o out/{}.png", 1, &["nl.png", ".pfm", "1 of 2"]);
    folder.read("out/l.png");
    folder.stereo("far", &scene([1.0, 21.0]).with_size(size).with_surfaces(12).with_seed(3));
    assert!(range(&folder.works("stereo farl.png farr.png -o d.pfm --json"))[0] < 0.0, "the margin");
    assert_eq!(range(&folder.works("stereo farl.png farr.png -o d.png --json"))[0], 0.0, "without it");
    // What was filled in is no evidence.
    let [whole, filled] =
        ["", "--fill"].map(|fill| folder.works(format!("stereo l.png r.png --disparities 32 {fill} --json")));
    assert_eq!(value(&whole, "verdict"), value(&filled, "verdict"), "{whole} {filled}");
    assert!(value(&filled, "verdict") != "\"good\"", "{filled}");
    // The range of a pair that is halved further than tie points are found is that of the pair.
    let halved = folder.works("stereo l.png r.png --halve 3 --json");
    assert!(!halved.contains("too few to tell"), "{halved}");

    let height = size.height;
    let lower = Image::from_fn(size, |x, y| pair.right.row((y + 4).min(height - 1))[x]);
    folder.write("lower.png", lower);
    folder.write("grey.png", Image::filled(size, 1, 99_u8));
    let nothing = folder.works("stereo grey.png grey.png -o e.pfm --json --disparities 32");
    assert_eq!(value(&nothing, "verdict"), "\"poor\"", "{nothing}");
    assert!(nothing.contains("lie where the left picture shows no texture"), "{nothing}");
    let other = folder.stereo("o", &scene([4.0, 60.0]).with_size(size).with_surfaces(12).with_seed(77));
    folder.write("other.png", other.right);
    for (pair, words) in [
        ("l.png lower.png", &["4.0 rows apart", "--rectify"][..]),
        ("l.png r.png --disparities 32", &["the range", &format!("--disparities {}", found[1])]),
        ("l.png grey.png", &["tie points", "little texture"]),
        ("l.png other.png", &["tie points are too few"]),
    ] {
        let said = folder.notes(format!("stereo {pair} -o d.pfm"));
        assert!(words.iter().all(|word| said.contains(word)), "{pair}: {said}");
        let json = folder.works(format!("stereo {pair} -o d.pfm --json"));
        assert!(value(&json, "warnings").len() > 20, "{pair}: {json}");
    }
    assert_eq!(folder.notes("stereo l.png r.png --disparities 64 -o d.pfm"), "", "nothing is wrong");
    assert_eq!(folder.notes("stereo l.png grey.png -o d.pfm --quiet"), "", "quiet");
}

/// A square without data in both pictures, told by the file in every way: by `--rectify` nothing is found in it, either.
#[test]
fn what_holds_no_data_has_no_disparity_when_rectified() {
    let folder = Folder::new("stereo-holes");
    let pair = folder.views();
    let square = |x: usize, y: usize| (120..280).contains(&x) && (90..210).contains(&y);
    let mask = Image::from_fn(pair.left.size(), |x, y| if square(x, y) { 0_u8 } else { 255 });
    for (side, picture) in [("l", &pair.left), ("r", &pair.right)] {
        let n = picture.channels();
        let mut holed = picture.clone();
        for y in 90..210 {
            holed.row_mut(y)[n * 120..n * 280].fill(0);
        }
        let floats = Image::from_fn(picture.size(), |x, y| {
            if square(x, y) { f32::NAN } else { f32::from(picture.row(y)[n * x]) }
        });
        let known = Known { no_data: Some(0.0), ..Known::default() };
        let holed = AnyImage::from(holed);
        image::write_known(folder.at(&format!("tag-{side}.tif")), &holed, &known).unwrap();
        folder.write(&format!("beside-{side}.png"), holed.clone());
        folder.write("mask.tif", mask.clone());
        std::fs::rename(folder.at("mask.tif"), folder.at(&format!("beside-{side}.png.msk"))).unwrap();
        folder.write(&format!("alpha-{side}.png"), image::with_alpha(&holed, &mask).unwrap());
        folder.write(&format!("nan-{side}.tif"), floats);
    }
    let rectify = "--rectify --halve 0 --focal 400 --json";
    for (kind, extension) in [("tag", "tif"), ("beside", "png"), ("alpha", "png"), ("nan", "tif")] {
        let images = format!("{kind}-l.{extension} {kind}-r.{extension}");
        let json = folder.works(format!("stereo {images} {rectify} -o d.pfm --depth z.tif"));
        let found = folder.disparities("d.pfm");
        let shape = [found.size().width as f64 / 2.0, found.size().height as f64 / 2.0];
        let middle =
            |x: usize, y: usize| (x as f64 - shape[0]).abs() < 50.0 && (y as f64 - shape[1]).abs() < 40.0;
        let places = (0..found.size().height).flat_map(|y| (0..found.size().width).map(move |x| (x, y)));
        let within = places.filter(|&(x, y)| middle(x, y) && found.row(y)[x].is_finite()).count();
        assert_eq!(within, 0, "{kind}: {json}");
        // What was filled has no holes, though streaks at the border are removed, and nothing else is filled.
        folder.works(format!("stereo {images} {rectify} --fill -o f.pfm --confidence c.tif"));
        let (filled, confidence) = (folder.disparities("f.pfm"), folder.floats("c.tif"));
        let both = found.data().iter().zip(filled.data()).zip(confidence.data());
        assert!(both.clone().all(|((d, f), _)| !d.is_finite() || d == f), "{kind}: what was found stays");
        assert!(both.clone().all(|((d, _), c)| d.is_finite() || *c == 0.0), "{kind}: none is trusted");
        let left = both.filter(|((_, f), _)| f.is_finite()).count();
        assert!(left as f64 > 0.7 * filled.data().len() as f64, "{kind}: {left} of {}", filled.data().len());
    }
}

#[test]
fn filling_comes_after_streaks_are_removed() {
    let folder = Folder::with("stereo-streaks", Folder::views);
    folder.works("stereo l.png r.png --rectify --halve 0 --focal 400 -o d.pfm --fill");
    let found = folder.disparities("d.pfm");
    let Size { width, height } = found.size();
    let share =
        |x: usize| (0..height).filter(|&y| found.row(y)[x].is_finite()).count() as f64 / height as f64;
    let least = (width - 40..width - 7).map(share).fold(1.0, f64::min);
    assert!(least > 0.9, "beside the right border {least} of the pixels are filled");
}

#[test]
fn two_photographs_become_depth_in_one_step() {
    let folder = Folder::with("stereo-rectify", Folder::views);
    let all = "-o d.pfm --depth z.tif --cloud c.ply --baseline 0.1 --focal 400 --json";
    let guessed = folder.works("stereo l.png r.png --rectify --halve 0 --json");
    assert!(value(&guessed, "warnings").contains("--focal PX"), "{guessed}");
    let json = folder.works(format!("stereo l.png r.png --rectify --halve 0 {all}"));
    assert!(json.contains("first matches"), "the verdict on its tie points is joined: {json}");
    assert_eq!(value(&json, "focal_source"), "\"option\"", "{json}");
    assert!(number(&json, "valid") > 0.5 && number(&json, "baseline") == 0.1, "{json}");
    // The rows of a pair that was rectified here agree, so that no reason advises to rectify it.
    assert!(json.contains("the row error is") && !json.contains("rows that differ"), "{json}");
    // Disparities of 4 to 40 pixels, a focal length of 400 pixels and a baseline of 0.1.
    let depth = |name: &str| {
        let mut depth: Vec<f32> =
            folder.floats(name).data().iter().copied().filter(|z| z.is_finite()).collect();
        depth.sort_unstable_by(f32::total_cmp);
        [depth[depth.len() / 50], depth[depth.len() / 2], depth[depth.len() - 1 - depth.len() / 50]]
    };
    let whole = depth("z.tif");
    assert!(whole[0] > 0.7 && whole[2] < 14.0, "{whole:?}");
    let bounded = number(&json, "points");
    let far = folder.works(format!("stereo l.png r.png --rectify --halve 0 {all} --max-depth none"));
    assert!(number(&far, "points") >= bounded, "{far}");
    let json = folder.works(format!("stereo l.png r.png --rectify --halve 1 {all}"));
    assert_eq!(number(&json, "halvings"), 1.0, "{json}");
    assert!((numbers(&json, "camera_focal")[0] - 400.0).abs() < 1e-6, "of the photograph: {json}");
    let half = depth("z.tif");
    assert!((half[1] / whole[1] - 1.0).abs() < 0.1, "{half:?} and {whole:?}");
    folder.works(format!("stereo l.png r.png --rectify {all}"));
    for (line, word) in [
        ("--depth z.tif", "--rectify"),
        ("--baseline 2", "--rectify"),
        ("--rectify --calibration calib.txt", "--calibration"),
        ("--rectify --mask l.png", "--mask"),
        ("--halve 6", "0 to 5"),
    ] {
        folder.refuses(format!("stereo l.png r.png -o d.pfm {line}"), 2, &[word]);
    }
    folder.scene();
    folder.refuses("stereo a.png b.png --rectify -o d.pfm", 1, &["plane", "register"]);
}

#[test]
fn lists_and_sequences() {
    let folder = Folder::new("sequence");
    folder.make("out");
    for (n, width) in [(8, 120), (9, 90), (10, 120)] {
        let options = scene([1.0, 12.0]).with_size(Size::new(width, 60)).with_seed(n);
        folder.stereo(&format!("{n:03}"), &options);
    }
    let alone = ["008", "009", "010"].map(|name| {
        folder.works(format!("stereo {name}l.png {name}r.png -o alone.pfm --disparities 16"));
        folder.read("alone.pfm")
    });
    folder.put(
        "list.txt",
        "# pairs\n008l.png\t008r.png\t\n\n009l.png\t009r.png\tout/named.pfm\n010l.png\t010r.png\n",
    );
    let several = "008l.png 008r.png 009l.png 009r.png 010l.png 010r.png";
    for (arguments, names) in [
        ("%03dl.png %03dr.png -o out/d%d.pfm", ["d8", "d9", "d10"]),
        ("--list list.txt -o out", ["008l", "named", "010l"]),
        (&format!("{several} -o out/{{}}.pfm"), ["008l", "009l", "010l"]),
    ] {
        let json = folder.works(format!("stereo {arguments} --disparities 16 --json"));
        assert_eq!(json.lines().count(), 3, "{arguments}: an object a pair");
        for (name, wanted) in names.iter().zip(&alone) {
            let name = format!("out/{name}.pfm");
            assert!(folder.read(&name) == *wanted, "{arguments}: {name} as if alone");
            folder.remove(&name);
        }
    }
    // A pair that fails does not stop the others.
    let line = "stereo 008l.png 009r.png 010l.png 010r.png -o out --disparities 16";
    folder.refuses(line, 1, &["008l.png", "1 of 2"]);
    assert!(folder.has("out/010l.pfm"), "the pair after it");
    // So does one of which a picture or the truth is missing, whichever it is.
    folder.make("truth");
    folder.put("truth/008l.pfm", folder.read("out/010l.pfm"));
    let line = "stereo 008l.png 008r.png 010l.png 010r.png -o out --disparities 16";
    folder.refuses(format!("{line} --truth truth/{{}}.pfm"), 1, &["truth/010l.pfm", "1 of 2"]);
    folder.remove("009l.png");
    folder.refuses("stereo %03dl.png %03dr.png -o out/e%d.pfm --disparities 16", 1, &["009l.png", "1 of 3"]);
    assert!(folder.has("out/e8.pfm") && folder.has("out/e10.pfm"));
}

#[test]
fn sequences_are_the_same_however_they_are_computed() {
    let folder = Folder::new("sequence-beside");
    folder.make("out");
    for n in 0..11_u64 {
        // Another size in the middle, and images of different sizes in one pair.
        let width = if (4..7).contains(&n) { 90 } else { 120 };
        let options = scene([1.0, 12.0]).with_size(Size::new(width, 60)).with_seed(n);
        folder.stereo(&format!("{n:03}"), &options);
    }
    folder.texture("008r.png", Size::new(20, 20), 1);
    folder.put("002l.png", "no image");
    let run = |more: &str| {
        let line = format!("stereo %03dl.png %03dr.png -o out/%d.pfm --disparities 16 --json {more}");
        let (code, [json, message]) = ran(&mut folder.tiepoint(line));
        assert_eq!(code, Some(1), "{more}: {message}");
        for told in ["002l.png", "008l.png", "2 of 11 pairs failed"] {
            assert!(message.contains(told), "{more}: {message}");
        }
        let wanted = [0, 1, 3, 4, 5, 6, 7, 9, 10];
        let lefts: Vec<&str> = json.lines().map(|line| value(line, "left")).collect();
        assert_eq!(lefts, wanted.map(|n| format!("\"{n:03}l.png\"")), "in order: {json}");
        let maps = wanted.map(|n| {
            let map = folder.read(&format!("out/{n}.pfm"));
            folder.remove(&format!("out/{n}.pfm"));
            map
        });
        (maps, json)
    };
    let (one, _) = run("--threads 1 --device cpu");
    for device in cpu_and(&["opencl"]) {
        let computed = format!(r#""device":"{}""#, if device == "cpu" { "cpu" } else { "opencl:0" });
        for threads in [1, 3, 4] {
            let (maps, json) = run(&format!("--threads {threads} --device {device}"));
            assert!(maps == one, "{device}, {threads} threads");
            assert!(json.lines().all(|line| line.contains(&computed)), "{json}");
        }
        if device != "cpu" {
            let (maps, _) = run(&format!("--threads 2 --device cpu+{device}"));
            assert!(maps == one, "cpu and {device}");
        }
    }
}

#[test]
fn masks_and_no_data() {
    let folder = Folder::new("stereo-masks");
    let pair = folder.stereo("", &scene([2.0, 12.0]));
    let run = |more: &str| {
        folder.works(format!("stereo l.png r.png --disparities 16 -o d.pfm {more}"));
        folder.disparities("d.pfm")
    };
    folder.write("mask.png", Image::from_fn(Size::new(200, 150), |_, y| if y < 70 { 0_u8 } else { 1 }));
    let found = run("--mask mask.png");
    assert!(found.data()[..200 * 70].iter().all(|d| !d.is_finite()), "nothing where the mask is 0");
    assert!(found.data()[200 * 70..].iter().any(|d| d.is_finite()), "something elsewhere");
    let black = pair.left.data().iter().filter(|v| **v == 60).count();
    assert!(black > 20, "{black} pixels of that value");
    let found = run("--no-data 60");
    let held = found.data().iter().zip(pair.left.data()).filter(|(d, v)| **v == 60 && d.is_finite());
    assert_eq!(held.count(), 0, "pixels of that value hold no data");
    folder.texture("small.png", Size::new(20, 20), 1);
    folder.refuses("stereo l.png r.png --mask small.png", 1, &["20x20", "200x150"]);
}

#[test]
fn wrong_usage() {
    let folder = Folder::new("stereo-usage");
    folder.texture("a.png", Size::new(80, 60), 5);
    for more in [
        "--disparities 16 --device opencl:77",
        "--disparities 0",
        "--disparities -5",
        "--disparities 100000",
        "--disparities nan",
        "--min-disparity 40000",
        "--cost magic",
        "--cost ad --census-window 7x7",
        "--iterations 3",
        "--cost mi --iterations 0",
        "--paths 7",
        "--p1 -1",
        "--p1 30 --p2 20",
        "--p2 60000",
        "--gradient 0",
        "--uniqueness 101",
        "--median 4",
        "--max-difference nan",
        "--speckle-difference -1",
        "--memory much",
        "--memory 0",
        "--preview p.png --preview-range 5:2",
        "--preview x.pfmm",
        "--output-right d.pfm",
        "--confidence /nonexistent/c.tif",
        "--list /dev/null a.png",
        "a.png",
        "a.png a.png",
    ] {
        folder.fails(format!("stereo a.png a.png -o d.pfm {more}"), 2);
    }
    for output in ["d.jpg", "d", "no/such/folder/d.pfm", "d%d.unknown", "d.png --disparities 300"] {
        folder.fails(format!("stereo a.png a.png -o {output}"), 2);
    }
    folder.fails("stereo a.png a.png a.png", 2);
    folder.fails("stereo %d.png r%d.png", 1);
    folder.fails("stereo %d.png a.png", 2);
    for more in ["--scale 0", "--threshold -1", "--threshold x"] {
        folder.fails(format!("evaluate disparity a.png a.png {more}"), 2);
    }
    assert_eq!(folder.files(), ["a.png"], "nothing was written");
}

#[test]
fn hostile_pairs_get_an_answer_or_a_message() {
    let folder = Folder::new("stereo-hostile");
    let mut odd = folder.odd_images();
    let mut flat = Image::filled(SIZE, 1, f32::NAN);
    flat.row_mut(9)[5..100].fill(2.5);
    folder.write("flat.tif", flat);
    folder.texture("good.png", SIZE, 5);
    folder.texture("tiny.png", Size::new(9, 7), 3);
    folder.write("colour.png", Image::filled(SIZE, 3, 77_u8));
    odd.extend(["flat.tif", "tiny.png", "colour.png", "good.png"]);
    let is_clean = || std::fs::read_dir(folder.at("out")).unwrap().count() == 0;
    folder.make("out");
    for image in odd {
        let all = "-o out/d.pfm --preview out/p.png --confidence out/c.png --output-right out/r.tif";
        for cost in Cost::ALL.iter().map(|choice| choice.name) {
            folder.works(format!("stereo {image} {image} --cost {cost} {all}"));
            folder.empty("out");
        }
        let (size, line) = (folder.image(image).size(), format!("stereo good.png {image} -o out/d.pfm"));
        if size == SIZE {
            folder.works(line);
            folder.empty("out");
        } else {
            folder.refuses(line, 1, &[&size.to_string(), "320x240"]);
            assert!(is_clean(), "nothing is left");
        }
    }
    folder.put("text.png", "no image");
    for broken in ["text.png", "absent.png"] {
        folder.refuses(format!("stereo {broken} good.png -o out/d.pfm"), 1, &[broken]);
        folder.refuses(format!("stereo good.png {broken} -o out/d.pfm"), 1, &[broken]);
        folder.fails(format!("evaluate disparity {broken} good.png"), 1);
        assert!(is_clean(), "nothing is left");
    }
}
