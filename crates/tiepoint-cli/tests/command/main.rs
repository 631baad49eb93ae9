//! The built command, as a user runs it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "tests compare with the C library's functions")]

mod changes;
mod collect;
#[cfg(target_os = "linux")]
mod drivers;
#[cfg(target_os = "linux")]
mod flags;
mod inputs;
#[cfg(unix)]
mod interrupts;
mod manual;
#[cfg(target_os = "linux")]
mod platform;
#[cfg(target_os = "linux")]
mod power_cut;
mod ranges;
mod rectify;
mod report;
mod stereo;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tiepoint::device::Cpu;
use tiepoint::evaluate::corner_error;
use tiepoint::geometry::Homography;
use tiepoint::image::{self, AnyImage, Image, ReadOptions, Size};
use tiepoint::synth::{Scene, SceneOptions, Texture, viewpoint};

const SIZE: Size = Size::new(320, 240);

/// A folder of its own for each test, removed when it ends well.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tiepoint-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn at(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A synthetic image.
    fn texture(&self, name: &str, size: Size, seed: u64) -> String {
        let image: Image<u8> = Texture::new(seed).image(size, &Cpu::sequential());
        self.write(name, &image.into())
    }

    fn write(&self, name: &str, image: &AnyImage) -> String {
        let path = self.at(name);
        image::write(&path, image).unwrap();
        path
    }

    /// Two images, and the truth from the first to the second.
    fn scene(&self) -> (String, String, Homography) {
        let b_from_a = viewpoint(SIZE, 0.2, 1.1, [0.08, 0.0], [6.0, -4.0]).unwrap();
        let options = SceneOptions::default().with_size(SIZE).with_moving_from_reference(b_from_a);
        let options = options.with_seed(3).with_noise(0.01);
        let scene = Scene::<u8>::render(&options, &Cpu::sequential()).unwrap();
        let paths =
            [("a.png", scene.reference), ("b.png", scene.moving)].map(|(n, i)| self.write(n, &i.into()));
        let [a, b] = paths;
        (a, b, b_from_a)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

fn tiepoint(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tiepoint")).args(arguments).output().unwrap()
}

/// Runs the command, which must succeed, and gives what it printed.
fn works(arguments: &[&str]) -> String {
    let output = tiepoint(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {:?}: {stderr}", output.status.code());
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the command, which must fail with this code and a message.
fn fails(arguments: &[&str], code: i32) -> String {
    let output = tiepoint(arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
    assert!(stderr.starts_with("tiepoint: ") && !stderr.contains("panicked"), "{arguments:?}: {stderr}");
    stderr
}

/// The text of a key's value in a JSON object.
fn value<'a>(json: &'a str, key: &str) -> &'a str {
    let found = json.split_once(&format!("\"{key}\":"));
    let rest = found.unwrap_or_else(|| panic!("no {key} in {json}")).1;
    match rest.as_bytes()[0] {
        b'[' => &rest[..=rest.find(']').unwrap()],
        b'{' => &rest[..=rest.find('}').unwrap()],
        _ => &rest[..rest.find([',', '}']).unwrap()],
    }
}

fn number(json: &str, key: &str) -> f64 {
    value(json, key).parse().unwrap_or_else(|_| panic!("{key} is no number in {json}"))
}

fn numbers(json: &str, key: &str) -> Vec<f64> {
    value(json, key).trim_matches(['[', ']']).split(',').map(|v| v.parse().unwrap()).collect()
}

fn matrix(json: &str) -> Homography {
    let m = numbers(json, "matrix");
    assert_eq!(m.len(), 9, "{json}");
    Homography::new(std::array::from_fn(|i| [m[3 * i], m[3 * i + 1], m[3 * i + 2]])).unwrap()
}

#[test]
fn detect_reports_and_writes() {
    let folder = Folder::new("detect");
    let image = folder.texture("a.png", SIZE, 1);
    for detector in ["sift", "surf"] {
        let (csv, png) = (folder.at("k.csv"), folder.at("k.png"));
        let json = works(&["detect", &image, "--detector", detector, "--json", "-o", &csv, "--draw", &png]);
        assert_eq!(json.lines().count(), 1, "one object");
        assert_eq!((number(&json, "width"), number(&json, "height")), (320.0, 240.0), "{json}");
        for key in ["image", "detector", "device"] {
            assert!(value(&json, key).starts_with('"'), "{key} in {json}");
        }
        let seconds = value(&json, "seconds");
        let [total, read, compute, write] = ["total", "read", "compute", "write"].map(|k| number(seconds, k));
        assert!(read > 0.0 && compute > 0.0 && write > 0.0 && total >= read + compute + write, "{seconds}");
        let text = std::fs::read_to_string(&csv).unwrap();
        assert!(text.starts_with("x,y,scale,angle,response,sign,octave,layer,d0,d1,"), "header");
        let features = number(&json, "features");
        assert!(features > 100.0, "{features} {detector} features of a rich texture");
        assert_eq!(text.lines().count() as f64, features + 1.0, "a line a feature");
        let drawn = image::read(&png, &ReadOptions::default()).unwrap();
        assert_eq!((drawn.size(), drawn.channels()), (SIZE, 3), "the picture");
    }
}

#[test]
fn threads_do_not_change_a_byte() {
    let folder = Folder::new("threads");
    let (a, b, _) = folder.scene();
    for detector in ["sift", "surf"] {
        let run = |threads: &str| {
            let (features, matches, warped) = (folder.at("k.csv"), folder.at("m.csv"), folder.at("r.tif"));
            works(&["detect", &a, "--detector", detector, "--threads", threads, "-o", &features]);
            works(&["match", &a, &b, "--detector", detector, "--threads", threads, "-o", &matches]);
            works(&["register", &a, &b, "--detector", detector, "--threads", threads, "-o", &warped]);
            [features, matches, warped].map(|p| std::fs::read(p).unwrap())
        };
        let one = run("1");
        assert!(one == run("2"), "{detector}: 2 threads");
        assert!(one == run("5"), "{detector}: 5 threads");
    }
}

#[test]
fn match_and_register_find_the_truth() {
    let folder = Folder::new("match");
    let (a, b, truth) = folder.scene();
    for detector in ["sift", "surf"] {
        let (csv, png) = (folder.at("m.csv"), folder.at("m.png"));
        let json = works(&["match", &a, &b, "--detector", detector, "--json", "-o", &csv, "--draw", &png]);
        let error = corner_error(&matrix(&json), &truth, SIZE);
        assert!(error < 0.5, "{detector}: corner error {error}");
        let text = std::fs::read_to_string(&csv).unwrap();
        assert!(text.starts_with("ax,ay,bx,by,distance,ratio,inlier,a,b\n"), "header");
        assert_eq!(text.lines().count() as f64, number(&json, "matches") + 1.0, "a line a match");
        let inliers = text.lines().skip(1).filter(|l| l.split(',').nth(6) == Some("1")).count();
        assert_eq!(inliers as f64, number(&json, "inliers"), "inliers");
        assert!(
            image::read(&png, &ReadOptions::default()).unwrap().size().width > 2 * SIZE.width,
            "two images"
        );

        // The matrix leads from MOVING to REFERENCE.
        let (warped, overlay) = (folder.at("r.png"), folder.at("o.png"));
        let json = works(&[
            "register",
            &b,
            &a,
            "--detector",
            detector,
            "--json",
            "-o",
            &warped,
            "--overlay",
            &overlay,
        ]);
        let error = corner_error(&matrix(&json), &truth, SIZE);
        assert!(error < 0.5, "{detector}: corner error {error}");
        let found = image::read(&warped, &ReadOptions::default()).unwrap();
        let (AnyImage::U8(found), AnyImage::U8(wanted)) =
            (found, image::read(&b, &ReadOptions::default()).unwrap())
        else {
            panic!("8-bit in, 8-bit out")
        };
        let middle = |i: &Image<u8>| (100..140).flat_map(|y| i.row(y)[140..180].to_vec()).collect::<Vec<_>>();
        let off =
            middle(&found).iter().zip(middle(&wanted)).map(|(p, q)| f64::from(p.abs_diff(q))).sum::<f64>();
        assert!(off / 1600.0 < 8.0, "{detector}: mean difference of grey values {}", off / 1600.0);
    }
}

#[test]
fn models_and_scores() {
    let folder = Folder::new("models");
    let (a, b, truth) = folder.scene();
    let message = fails(&["match", &a, &b, "--model", "fundamental"], 1);
    assert!(message.contains("plane"), "a plane has no epipolar geometry: {message}");
    for model in ["affine", "similarity"] {
        let json = works(&["match", &a, &b, "--model", model, "--json", "--inlier-distance", "5"]);
        assert_eq!(value(&json, "model"), format!("\"{model}\""), "{json}");
    }
    let json = works(&["match", &a, &b, "--model", "none", "--json"]);
    assert_eq!(number(&json, "matches"), number(&json, "inliers"), "nothing is verified");
    assert!(!json.contains("matrix"), "no model: {json}");

    let file = folder.at("truth.txt");
    std::fs::write(&file, truth.to_string()).unwrap();
    let json = works(&["evaluate", "homography", &a, &b, &file, "--json"]);
    assert!(number(&json, "corner_error") < 0.5, "{json}");
    let accuracy = numbers(&json, "matching_accuracy");
    assert!(accuracy.len() == 10 && accuracy[2] > 0.9 && accuracy.is_sorted(), "{accuracy:?}");
    let json = works(&["evaluate", "homography", &file, &file, "--size", "320x240", "--json"]);
    assert_eq!(number(&json, "corner_error"), 0.0, "the truth against itself");
    let found = folder.at("found.json");
    std::fs::write(&found, works(&["match", &a, &b, "--json"])).unwrap();
    let json = works(&["evaluate", "homography", &found, &file, "--size", "320x240", "--json"]);
    assert!(number(&json, "corner_error") < 0.5, "a found matrix: {json}");
}

#[test]
fn many_images_in_one_call() {
    let folder = Folder::new("many");
    let images: Vec<_> = [(320, 240), (200, 150), (320, 240)]
        .into_iter()
        .enumerate()
        .map(|(i, (w, h))| folder.texture(&format!("{i}.png"), Size::new(w, h), i as u64))
        .collect();
    let alone = |image: &str| {
        let path = folder.at("alone.csv");
        works(&["detect", image, "-o", &path]);
        std::fs::read(path).unwrap()
    };
    let wanted: Vec<_> = images.iter().map(|i| alone(i)).collect();
    let list = folder.at("list.txt");
    std::fs::write(&list, format!("# frames\n{}\n\n{}\n{}\n", images[0], images[1], images[2])).unwrap();
    std::fs::create_dir(folder.at("out")).unwrap();
    let (pattern, listed) = (folder.at("out/{}.csv"), format!("@{list}"));
    for arguments in [vec!["--list", &list, "-o", &pattern], vec![&listed, "-o", &pattern]] {
        let json = works(&[&["detect", "--json"], &arguments[..]].concat());
        assert_eq!(json.lines().count(), 3, "an object an image");
        for (i, wanted) in wanted.iter().enumerate() {
            let path = folder.at(&format!("out/{i}.csv"));
            assert!(std::fs::read(&path).unwrap() == *wanted, "image {i}: as if alone");
            std::fs::remove_file(path).unwrap();
        }
    }
    // One bad image is told of and the others are done.
    let bad = folder.at("bad.png");
    std::fs::write(&bad, "no image").unwrap();
    let message = fails(&["detect", &images[0], &bad, &images[1], "-o", &folder.at("out")], 1);
    assert!(message.contains("bad.png") && message.contains("1 of 3"), "{message}");
    assert!(Path::new(&folder.at("out/1.csv")).exists(), "the image after the bad one");
    assert!(fails(&["detect", &images[0], &images[1], "-o", &list], 2).contains("{}"), "one file for two");
}

#[test]
fn what_is_read_ahead_changes_nothing() {
    let folder = Folder::new("ahead");
    let mut images: Vec<_> = (0..8)
        .map(|i| folder.texture(&format!("{i}.png"), if i == 3 { Size::new(90, 70) } else { SIZE }, i))
        .collect();
    let bad = folder.at("bad.pgm");
    std::fs::write(&bad, "no image").unwrap();
    images.insert(5, bad);
    images.push(folder.at("absent.png"));
    std::fs::create_dir(folder.at("out")).unwrap();
    let out = folder.at("out/");
    let run = |device: &str, threads: &str| {
        let images = images.iter().map(String::as_str);
        let more = ["--device", device, "--threads", threads, "-o", &out];
        let output = tiepoint(&["detect"].into_iter().chain(images).chain(more).collect::<Vec<_>>());
        let [said, told] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        // All but the time.
        let said: Vec<_> = said.lines().map(|line| line.rsplit_once(',').unwrap().0.to_owned()).collect();
        let files = (0..8).map(|i| std::fs::read(folder.at(&format!("out/{i}.csv"))).unwrap());
        (output.status.code(), said, told, files.collect::<Vec<_>>())
    };
    let wanted = run("cpu", "1");
    assert_eq!((wanted.0, wanted.1.len()), (Some(1), 8), "eight good images");
    let has_gpu = works(&["devices"]).contains("opencl:0 ");
    for device in ["cpu", "opencl"].iter().take(1 + usize::from(has_gpu)) {
        for threads in ["1", "2", "5"] {
            assert!(run(device, threads) == wanted, "{device}, {threads} threads");
        }
    }
}

#[test]
fn options_reach_the_detector() {
    let folder = Folder::new("options");
    let image = folder.texture("a.png", SIZE, 5);
    let count = |more: &[&str]| number(&works(&[&["detect", &image, "--json"], more].concat()), "features");
    let all = count(&[]);
    for keep in ["scale", "response"] {
        assert_eq!(count(&["--max-features", "50", "--keep", keep]), 50.0, "the first by {keep}");
    }
    assert_eq!(count(&["--max-features", "50", "--even"]), 50.0, "spread");
    assert!(count(&["--first-octave", "0"]) < all, "no doubling");
    assert!(count(&["--contrast", "0.1"]) < all, "contrast");
    assert!(count(&["--edge", "2"]) < all, "edge");
    assert!(count(&["--octaves", "1"]) < all, "octaves");
    let surf = count(&["--detector", "surf"]);
    assert!(count(&["--detector", "surf", "--threshold", "0.01"]) < surf, "threshold");
    for preset in ["opensurf", "opencv"] {
        assert!(count(&["--detector", "surf", "--preset", preset]) > 0.0, "{preset}");
    }
    let width = |more: &[&str]| {
        let csv = folder.at("k.csv");
        works(&[&["detect", &image, "-o", &csv], more].concat());
        std::fs::read_to_string(csv).unwrap().lines().next().unwrap().split(',').count() - 8
    };
    assert_eq!(width(&[]), 128, "sift");
    assert_eq!(width(&["--detector", "surf"]), 64, "surf");
    assert_eq!(width(&["--detector", "surf", "--extended"]), 128, "extended");
    assert_eq!(width(&["--descriptors", "none"]), 0, "none");
}

#[test]
fn masks_and_holes() {
    let folder = Folder::new("masks");
    let image = folder.texture("a.png", SIZE, 5);
    let mask = Image::from_fn(SIZE, |x, _| if x < 160 { 0_u8 } else { 9 });
    let mask = folder.write("mask.png", &mask.into());
    let csv = folder.at("k.csv");
    let places = || -> Vec<[f32; 2]> {
        let text = std::fs::read_to_string(&csv).unwrap();
        let place = |l: &str| {
            let mut v = l.split(',').map(|v| v.parse().unwrap());
            [v.next().unwrap(), v.next().unwrap()]
        };
        text.lines().skip(1).map(place).collect()
    };
    for detector in ["sift", "surf"] {
        works(&["detect", &image, "--detector", detector, "--mask", &mask, "-o", &csv]);
        assert!(
            !places().is_empty() && places().iter().all(|p| p[0] >= 159.5),
            "{detector}: left half masked"
        );
    }
    let opaque = image::read(&image, &Default::default()).unwrap();
    let shown = Image::from_fn(SIZE, |x, _| if x < 160 { 0_u8 } else { 255 });
    let half = folder.write("half.png", &image::with_alpha(&opaque, &shown).unwrap());
    for drawn in [&[][..], &["--draw", &folder.at("drawn.png")]] {
        works(&[&["detect", &half, "-o", &csv], drawn].concat());
        assert!(!places().is_empty() && places().iter().all(|p| p[0] >= 164.5), "left half transparent");
    }
    let mut metres: Image<f32> = Texture::new(5).image(SIZE, &Cpu::sequential());
    metres.data_mut().iter_mut().for_each(|v| *v = 100.0 + 80.0 * *v);
    for y in 100..120 {
        metres.row_mut(y)[150..170].fill(f32::NAN);
    }
    let metres = folder.write("dem.tif", &metres.into());
    for detector in ["sift", "surf"] {
        works(&["detect", &metres, "--detector", detector, "-o", &csv]);
        let near = |p: &[f32; 2]| (146.0..174.0).contains(&p[0]) && (96.0..124.0).contains(&p[1]);
        assert!(places().len() > 50 && !places().iter().any(near), "{detector}: nothing at the hole");
    }
    let twelve: Image<u8> = Texture::new(5).image(SIZE, &Cpu::sequential());
    let twelve = Image::from_fn(SIZE, |x, y| u16::from(twelve.row(y)[x]) * 16);
    let twelve = folder.write("twelve.png", &twelve.into());
    assert!(number(&works(&["detect", &twelve, "--json"]), "features") > 100.0, "12 of 16 bits");
    let small = folder.texture("small.png", Size::new(9, 9), 1);
    assert!(fails(&["detect", &image, "--mask", &small], 1).contains("mask"), "another size");
    let missing = folder.at("no.png");
    assert!(fails(&["detect", &image, "--mask", &missing], 1).contains("no.png"), "no such mask");
    assert!(fails(&["match", &image, &image, "--mask-b", &missing], 1).contains("no.png"), "no such mask");
}

#[test]
fn register_masks_reference_by_mask_and_moving_by_mask_b() {
    let folder = Folder::new("register-masks");
    let (reference, moving, _) = folder.scene();
    let mask = Image::from_fn(SIZE, |x, _| if x < 100 { 0_u8 } else { 255 });
    let mask = folder.write("mask.png", &mask.into());
    // Of MOVING and of REFERENCE.
    let features = |more: &[&str]| -> [f64; 2] {
        let arguments = ["register", &reference, &moving, "--views", "1", "--json"];
        numbers(&works(&[&arguments[..], more].concat()), "features").try_into().unwrap()
    };
    let all = features(&[]);
    let (first, second) = (features(&["--mask", &mask]), features(&["--mask-b", &mask]));
    assert!(first[0] == all[0] && first[1] < all[1], "--mask is REFERENCE's: {first:?} of {all:?}");
    assert!(second[0] < all[0] && second[1] == all[1], "--mask-b is MOVING's: {second:?} of {all:?}");
    assert_eq!(features(&["--mask", &mask, "--mask-b", &mask]), [second[0], first[1]], "each its own");
}

#[test]
fn filters_write_images() {
    let folder = Folder::new("filters");
    let image = folder.texture("a.png", SIZE, 5);
    let (png, tif) = (folder.at("f.png"), folder.at("f.tif"));
    for more in [
        &["--sigma", "2"][..],
        &["--size", "5"],
        &["--size", "9", "--power-of-two"],
        &["--border", "reflect"],
    ] {
        works(&[&["filter", "gauss", &image, &png], more].concat());
        assert_eq!(image::read(&png, &ReadOptions::default()).unwrap().size(), SIZE, "gauss {more:?}");
    }
    works(&["filter", "sobel", &image, &png]);
    works(&["filter", "sobel", &image, &tif, "--part", "gx"]);
    let AnyImage::F32(gx) = image::read(&tif, &ReadOptions::default()).unwrap() else { panic!("floats") };
    assert!(gx.data().iter().any(|v| *v < 0.0), "derivatives keep their sign");
    fails(&["filter", "sobel", &image, &png, "--part", "gx"], 2);
    let blobs = folder.at("blobs.csv");
    works(&["filter", "hessian", &image, &png, "--blobs", &blobs]);
    assert!(std::fs::read_to_string(&blobs).unwrap().lines().count() > 50, "blobs of a rich texture");
    works(&["filter", "hessian", &image, &tif]);
    let read = |path: &str| image::read(path, &ReadOptions::default()).unwrap();
    works(&["filter", "convolve", &image, &png, "--kernel", "0,0,0;0,1,0;0,0,0"]);
    assert_eq!(read(&png), read(&image), "the kernel that changes nothing");
    works(&["filter", "convolve", &image, &tif, "--kernel", "-1,0,1;-2,0,2;-1,0,1", "--float"]);
    let AnyImage::F32(own) = read(&tif) else { panic!("floats") };
    assert_eq!(own, gx, "Sobel as a kernel");
    for kernel in ["1,2;3", "a", "", "1,-1"] {
        fails(&["filter", "convolve", &image, &png, "--normalise", "--kernel", kernel], 2);
    }
}

#[test]
fn wrong_usage_is_told_with_code_2() {
    let folder = Folder::new("usage");
    let image = folder.texture("a.png", SIZE, 5);
    let out = folder.at("out.csv");
    for arguments in [
        &["detect"][..],
        &["nonsense"],
        &["detect", &image, "--threads", "0"],
        &["detect", &image, "--threads", "-1"],
        &["detect", &image, "--device", "cuda:99"],
        &["detect", &image, "--device", "toaster"],
        &["detect", &image, "--preset", "best"],
        &["detect", &image, "--detector", "surf", "--contrast", "0.1"],
        &["detect", &image, "--threshold", "0.1"],
        &["detect", &image, "--contrast", "-1"],
        &["detect", &image, "--contrast", "nan"],
        &["detect", &image, "--levels", "0"],
        &["detect", &image, "--range", "5:2"],
        &["detect", &image, "-o", "/nonexistent/x.csv"],
        &["detect", &image, "-o", &folder.at("x.unknown")],
        &["detect", &image, "--draw", &folder.at("x.csv")],
        &["match", &image],
        &["match", &image, &image, "--ratio", "0", "-o", &out],
        &["match", &image, &image, "--inlier-distance", "nan", "-o", &out],
        &["rectify", &image, &image, "--calibration", &image, "--inlier-distance", "0"],
        &["match", &image, &image, "--model", "magic", "-o", &out],
        &["register", &image, &image, "--model", "fundamental"],
        &["filter", "gauss", &image, &folder.at("g.png"), "--sigma", "-1"],
        &["filter", "gauss", &image, &folder.at("g.png"), "--size", "4"],
        &["bench", "--size", "0x5"],
        &["evaluate", "homography", &image, &image],
        &["stereo", &image],
    ] {
        fails(arguments, 2);
    }
    assert_eq!(folder.files(), ["a.png"], "nothing was written");
    let names = |arguments: &[&str], flag: &str| {
        let message = fails(&[arguments, &[&image, &image]].concat(), 2);
        assert!(message.contains(flag), "no {flag:?} in {message}");
    };
    names(&["detect", "--contrast", "-1"], "--contrast is -1: expected");
    names(&["match", "--inlier-distance", "-1"], "--inlier-distance is -1: expected");
    names(&["stereo", "--p1", "30", "--p2", "20"], "--p1, --p2-least, --p2 are 30, 20, 20: expected");
}

#[test]
fn hostile_files_get_an_answer_or_a_message() {
    let folder = Folder::new("hostile");
    let good = folder.texture("good.png", SIZE, 5);
    let bytes = std::fs::read(&good).unwrap();
    let raw = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.at(name), bytes).unwrap();
        folder.at(name)
    };
    let flipped: Vec<u8> =
        bytes.iter().enumerate().map(|(i, b)| if i % 97 == 60 { b ^ 0x55 } else { *b }).collect();
    // A PGM header that promises more than any machine has.
    let broken = [
        raw("empty.png", b""),
        raw("text.png", b"not an image"),
        raw("cut.png", &bytes[..bytes.len() / 2]),
        raw("flip.png", &flipped),
        raw("huge.pgm", b"P5\n2147483647 2147483647\n255\n\0\0"),
        raw("zero.pgm", b"P5\n0 0\n255\n"),
        folder.at("absent.png"),
        folder.0.to_str().unwrap().to_owned(),
    ];
    let mut holes = Image::filled(SIZE, 1, f32::NAN);
    holes.row_mut(3)[5] = f32::INFINITY;
    let odd = [
        folder.write("one.png", &Image::<u8>::new(Size::new(1, 1)).into()),
        folder.write("row.png", &Image::<u8>::new(Size::new(500, 1)).into()),
        folder.write("column.png", &Image::<u8>::new(Size::new(1, 500)).into()),
        folder.write("black.png", &Image::<u8>::new(SIZE).into()),
        folder.write("white.png", &Image::filled(SIZE, 1, u16::MAX).into()),
        folder.write("holes.tif", &holes.into()),
    ];
    let out = Folder::new("hostile-out");
    let (csv, png) = (out.at("o.csv"), out.at("o.png"));
    for (path, sound) in broken.iter().map(|p| (p, false)).chain(odd.iter().map(|p| (p, true))) {
        for arguments in [
            &["detect", path, "-o", &csv][..],
            &["detect", path, "--detector", "surf", "-o", &csv],
            &["match", path, &good, "-o", &csv],
            &["register", &good, path, "-o", &png],
            &["filter", "gauss", path, &png],
            &["filter", "sobel", path, &png],
        ] {
            let code = tiepoint(arguments).status.code();
            if code == Some(0) {
                assert!(sound, "{arguments:?} took a broken file");
                out.files().iter().for_each(|f| std::fs::remove_file(out.at(f)).unwrap());
                continue;
            }
            fails(arguments, 1);
            assert!(!sound || !matches!(arguments[0], "detect" | "filter"), "{arguments:?} is possible");
            assert!(out.files().is_empty(), "{arguments:?} left {:?}", out.files());
        }
    }
}

#[test]
fn demo_shows_its_accuracy() {
    let folder = Folder::new("demo");
    let json = works(&["demo", folder.0.to_str().unwrap(), "--json"]);
    for scene in json.split("\"scene\":").skip(1) {
        assert!(number(scene, "corner_error") < 0.5, "{scene}");
        assert!(number(scene, "matching_accuracy_3px") > 0.8, "{scene}");
    }
    assert_eq!(json.matches("\"scene\":").count(), 6, "three scenes, two detectors");
    let stereo = value(&json, "stereo");
    assert!(number(stereo, "bad") < 0.05 && number(stereo, "epe") < 0.3, "{stereo}");
    let page = std::fs::read_to_string(folder.at("index.html")).unwrap();
    let files = folder.files();
    for source in page.split("src=\"").skip(1).map(|s| s.split('"').next().unwrap()) {
        assert!(files.iter().any(|f| f == source), "{source} is shown but not there");
    }
    assert!(
        ["bookshelf-left.jpg", "coffee-turned.png", "stereo-left.png", "tilted-b.png"]
            .iter()
            .all(|f| files.iter().any(|g| g == f)),
        "{files:?}"
    );
    assert_eq!(page.matches("class=\"view\"").count(), 5, "five views");
}

#[test]
fn bench_devices_and_help() {
    let json = works(&["bench", "--size", "160x120", "--repeat", "1", "--json"]);
    assert!(json.contains("\"name\":\"sift\"") && json.contains("\"name\":\"surf\""), "{json}");
    assert!(works(&["devices"]).starts_with("cpu"), "devices");
    let json = works(&["devices", "--json"]);
    let auto = value(&json, "auto").trim_matches('"');
    let listed: Vec<&str> =
        json.match_indices("\"device\":").map(|(at, _)| value(&json[at..], "device")).collect();
    assert!(listed.contains(&format!("\"{auto}\"").as_str()), "auto is one of those listed: {json}");
    for command in
        ["detect", "match", "register", "rectify", "stereo", "filter", "evaluate", "bench", "devices", "demo"]
    {
        assert!(works(&[command, "--help"]).contains("Usage: tiepoint"), "help of {command}");
    }
    assert!(works(&["--version"]).starts_with("tiepoint "), "version");
}

#[test]
fn profile_and_quiet() {
    let folder = Folder::new("profile");
    let image = folder.texture("a.png", SIZE, 5);
    let output = tiepoint(&["detect", &image, "--profile", "--quiet"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.stdout.is_empty() && stderr.starts_with("stage"), "{stderr}");
    assert!(stderr.contains("extrema"), "{stderr}");
    let output = tiepoint(&["detect", &image, "--quiet"]);
    assert!(output.stdout.is_empty() && output.stderr.is_empty(), "quiet is quiet");
}
