//! Filters, the demo, and messages of all commands for wrong arguments and broken files.

use super::*;

#[test]
fn filters_write_images() {
    let folder = Folder::new("filters");
    folder.texture("a.png", SIZE, 5);
    for more in ["--sigma 2", "--size 5", "--size 9 --power-of-two", "--border reflect"] {
        folder.works(format!("filter gauss a.png f.png {more}"));
        assert_eq!(folder.image("f.png").size(), SIZE, "gauss {more}");
    }
    folder.works("filter sobel a.png f.png");
    folder.works("filter sobel a.png f.tif --part gx");
    let gx = folder.floats("f.tif");
    assert!(gx.data().iter().any(|v| *v < 0.0), "derivatives keep their sign");
    folder.fails("filter sobel a.png f.png --part gx", 2);
    folder.works("filter hessian a.png f.png --blobs blobs.csv");
    assert!(folder.text("blobs.csv").lines().count() > 50, "blobs of a rich texture");
    folder.works("filter hessian a.png f.tif");
    folder.works("filter convolve a.png f.png --kernel 0,0,0;0,1,0;0,0,0");
    assert_eq!(folder.image("f.png"), folder.image("a.png"), "the kernel that changes nothing");
    folder.works("filter convolve a.png f.tif --kernel -1,0,1;-2,0,2;-1,0,1 --float");
    assert_eq!(folder.floats("f.tif"), gx, "Sobel as a kernel");
    for kernel in ["1,2;3", "a", "", "1,-1", "1,,2", ",1,2", "1,2,", "1;;2"] {
        folder.fails(format!("filter convolve a.png f.png --normalise --kernel={kernel}"), 2);
    }
}

#[test]
fn filters_keep_alpha_bands_and_pixels_without_data() {
    let folder = Folder::new("filters-kept");
    folder.texture("a.png", SIZE, 5);
    let grey = folder.bytes("a.png");
    let shown = Image::from_fn(SIZE, |x, _| if x < 250 { 255 } else { 0 });
    folder.write("clear.png", image::with_alpha(&grey, &shown).unwrap());
    let opaque = Image::filled(SIZE, 1, 255);
    folder.write("opaque.png", image::with_alpha(&grey, &opaque).unwrap());
    for (line, output) in [
        ("gauss", "o.png"),
        ("sobel", "o.png"),
        ("sobel --part gx", "o.tif"),
        ("convolve --kernel=-1,0,1", "o.png"),
        ("convolve --kernel=-1,0,1 --float", "o.tif"),
    ] {
        for (input, mask) in [("clear.png", Some(&shown)), ("opaque.png", None)] {
            let (filter, rest) = line.split_once(' ').unwrap_or((line, ""));
            folder.works(format!("filter {filter} {input} {output} {rest}"));
            assert_eq!(image::alpha_mask(&folder.image(output)).as_ref(), mask, "{line} of {input}");
        }
    }
    assert!(folder.notes("filter gauss clear.png o.png").contains("transparent pixels"));
    // Four bands of which none is alpha, and a no-data value.
    let bands = Image::from_fn(SIZE, |x, y| grey.row(y)[x]);
    let bands =
        Image::from_vec(bands.data().iter().flat_map(|v| [*v, 9, 90, 200]).collect(), SIZE, 4).unwrap();
    let layout = image::Layout { alpha: None, ..image::Layout::usual(4) };
    let about = image::Known { layout: Some(layout), ..image::Known::default() };
    image::write_known(folder.at("bands.tif"), &bands, &about).unwrap();
    folder.works("filter gauss bands.tif o.tif");
    let read = image::read_file(folder.at("o.tif"), &ReadOptions::default()).unwrap();
    assert_eq!((read.layout, read.image.channels()), (layout, 4));
    folder.works("filter gauss bands.tif o.tif --band 3");
    assert_eq!(folder.bytes("o.tif"), Image::filled(SIZE, 1, 90), "the band that was asked for");
    let marked = Image::from_fn(SIZE, |x, y| if x < 250 { f32::from(grey.row(y)[x]) } else { -9999.0 });
    let about = image::Known { no_data: Some(-9999.0), ..image::Known::default() };
    image::write_known(folder.at("dem.tif"), &marked, &about).unwrap();
    folder.works("filter gauss dem.tif o.tif");
    let read = image::read_file(folder.at("o.tif"), &ReadOptions::default()).unwrap();
    assert_eq!((read.no_data, read.shown.as_ref()), (Some(-9999.0), Some(&shown)));
    // Integers hold no NaN: a mask beside the file does.
    folder.works("filter hessian dem.tif o.png");
    let read = image::read_file(folder.at("o.png"), &ReadOptions::default()).unwrap();
    assert_eq!(read.shown.as_ref(), Some(&shown), "a mask beside the file");
    let hole = Image::from_fn(SIZE, |x, _| if x < 250 { 0.5_f32 } else { f32::NAN });
    image::write_known(folder.at("hole.png"), &hole, &image::Known::default()).unwrap();
    let read = image::read_file(folder.at("hole.png"), &ReadOptions::default()).unwrap();
    assert_eq!(read.shown.as_ref(), Some(&shown), "NaN");
    // A world file beside another format.
    folder.put("a.pgw", "0.5\n0\n0\n-0.5\n500000.25\n4599999.75\n");
    folder.works("filter gauss a.png w.png");
    let place = |name: &str| image::read_georeference(folder.at(name)).unwrap().unwrap().transform();
    assert_eq!(place("w.png"), place("a.png"));
}

#[test]
fn wrong_usage_is_an_error_with_code_2() {
    let folder = Folder::new("usage");
    folder.texture("a.png", SIZE, 5);
    for line in [
        "detect",
        "nonsense",
        "detect a.png --threads 0",
        "detect a.png --threads -1",
        "detect a.png --device cuda:99",
        "detect a.png --device toaster",
        "detect a.png --preset best",
        "detect a.png --detector surf --contrast 0.1",
        "detect a.png --threshold 0.1",
        "detect a.png --contrast nan",
        "detect a.png --levels 0",
        "detect a.png --range 5:2",
        "detect a.png -o /nonexistent/x.csv",
        "detect a.png -o x.unknown",
        "detect a.png --draw x.csv",
        "match a.png",
        "match a.png a.png --ratio 0 -o out.csv",
        "match a.png a.png --inlier-distance nan -o out.csv",
        "rectify a.png a.png --calibration a.png --inlier-distance 0",
        "match a.png a.png --model magic -o out.csv",
        "register a.png a.png --model fundamental",
        "filter gauss a.png g.png --sigma -1",
        "filter gauss a.png g.png --size 4",
        "bench --size 0x5",
        "evaluate homography a.png a.png",
        "stereo a.png",
    ] {
        folder.fails(line, 2);
    }
    assert_eq!(folder.files(), ["a.png"], "nothing was written");
    for (line, message) in [
        ("detect a.png --contrast -1", "--contrast is -1: expected"),
        ("match a.png a.png --inlier-distance -1", "--inlier-distance is -1: expected"),
        ("match a.png a.png --model none --output-model m.txt", "there is no model to write"),
        ("match a.png a.png --modality cross --ratio 0.5", "no features are matched"),
        ("register a.png a.png --modality cross --detector surf", "no features are matched"),
        ("register a.png a.png -o r.png --blend anaglyph", "--overlay"),
        ("stereo a.png a.png -o d.pfm --preview-range 1:2", "--preview "),
        ("collect . -o a.db --no-detect-watermark --watermark-border 0.2", "--watermark-border"),
        ("stereo a.png a.png --p1 30 --p2 20", "--p1, --p2-least, --p2 are 30, 20, 20: expected"),
    ] {
        folder.refuses(line, 2, &[message]);
    }
}

#[test]
fn hostile_files_get_an_answer_or_a_message() {
    let folder = Folder::new("hostile");
    folder.texture("good.png", SIZE, 5);
    let bytes = folder.read("good.png");
    let flipped: Vec<u8> =
        bytes.iter().enumerate().map(|(i, b)| if i % 97 == 60 { b ^ 0x55 } else { *b }).collect();
    let broken: [(&str, &[u8]); 6] = [
        ("empty.png", b""),
        ("text.png", b"not an image"),
        ("cut.png", &bytes[..bytes.len() / 2]),
        ("flip.png", &flipped),
        // A header whose size no machine has memory for.
        ("huge.pgm", b"P5\n2147483647 2147483647\n255\n\0\0"),
        ("zero.pgm", b"P5\n0 0\n255\n"),
    ];
    broken.iter().for_each(|(name, content)| folder.put(name, content));
    let broken = broken.iter().map(|(name, _)| (*name, false)).chain([("absent.png", false), (".", false)]);
    folder.make("out");
    let written = || std::fs::read_dir(folder.at("out")).unwrap().count();
    for (path, sound) in broken.chain(folder.odd_images().into_iter().map(|name| (name, true))) {
        for line in [
            "detect IMAGE -o out/o.csv",
            "detect IMAGE --detector surf -o out/o.csv",
            "match IMAGE good.png -o out/o.csv",
            "register good.png IMAGE -o out/o.png",
            "filter gauss IMAGE out/o.png",
            "filter sobel IMAGE out/o.png",
        ] {
            let line = line.replace("IMAGE", path);
            if ran(&mut folder.tiepoint(&line)).0 == Some(0) {
                assert!(sound, "{line}: took a broken file");
                folder.empty("out");
                continue;
            }
            folder.fails(&line, 1);
            let may_fail = line.starts_with("match") || line.starts_with("register");
            assert!(!sound || may_fail, "{line}: is possible");
            assert_eq!(written(), 0, "{line}: left something");
        }
    }
}

#[test]
fn demo_shows_its_accuracy() {
    let folder = Folder::new("demo");
    for name in ["coffee.jpg", "index.html"] {
        folder.put(name, "not from a demo");
        folder.refuses("demo .", 2, &[name, "choose another folder"]);
        std::fs::remove_file(folder.at(name)).unwrap();
    }
    let json = folder.works("demo . --json");
    for scene in json.split("\"scene\":").skip(1) {
        assert!(number(scene, "corner_error") < 0.5, "{scene}");
        assert!(number(scene, "matching_accuracy_3px") > 0.8, "{scene}");
    }
    assert_eq!(json.matches("\"scene\":").count(), 6, "three scenes, two detectors");
    for sensor in ["inverted", "folded", "speckle", "edges"] {
        let (_, seen) = json.split_once(&format!("\"sensor\":\"{sensor}\"")).unwrap();
        assert!(number(seen, "corner_error") < 1.5, "{sensor}: {seen}");
        assert!(folder.has(&format!("sensors-{sensor}.png")), "{sensor}: its picture");
    }
    let stereo = value(&json, "stereo");
    assert!(number(stereo, "bad") < 0.05 && number(stereo, "epe") < 0.3, "{stereo}");
    let page = folder.text("index.html");
    for source in page.split("src=\"").skip(1).map(|s| s.split('"').next().unwrap()) {
        assert!(folder.has(source), "{source} is printed but does not exist");
    }
    for name in ["bookshelf-left.jpg", "coffee-turned.png", "stereo-left.png", "tilted-b.png"] {
        assert!(folder.has(name), "{name} of {:?}", folder.files());
    }
    assert_eq!(page.matches("class=\"view\"").count(), 5, "five views");
}

#[test]
fn bench_devices_and_help() {
    let json = works("bench --size 160x120 --repeat 1 --json");
    assert!(json.contains("\"name\":\"sift\"") && json.contains("\"name\":\"surf\""), "{json}");
    assert!(works("devices").starts_with("cpu"), "devices");
    let json = works("devices --json");
    let auto = value(&json, "auto").trim_matches('"');
    let listed: Vec<&str> =
        json.match_indices("\"device\":").map(|(at, _)| value(&json[at..], "device")).collect();
    assert!(listed.contains(&format!("\"{auto}\"").as_str()), "auto is one of those listed: {json}");
    for command in manual::commands() {
        assert!(works(&format!("{command} --help")).contains("Usage: tiepoint"), "help of {command}");
    }
    assert!(works("--version").starts_with("tiepoint "), "version");
}

#[test]
fn profile_and_quiet() {
    let folder = Folder::new("profile");
    folder.texture("a.png", SIZE, 5);
    let [stdout, stderr] = succeeds(&mut folder.tiepoint("detect a.png --profile --quiet"));
    assert!(stdout.is_empty() && stderr.starts_with("stage") && stderr.contains("extrema"), "{stderr}");
    let said = succeeds(&mut folder.tiepoint("detect a.png --quiet"));
    assert_eq!(said, ["", ""], "quiet is quiet");
}

#[cfg(unix)]
#[test]
fn a_word_that_is_no_text_is_named() {
    use std::os::unix::ffi::OsStrExt;
    let mut command = tiepoint("detect a.png -o");
    let message = refused(command.arg(std::ffi::OsStr::from_bytes(b"\xff.csv")), 2);
    assert!(message.contains(r#""\xFF.csv""#) && !message.contains("a.png"), "{message}");
}

#[test]
fn help_of_a_command_begins_with_what_it_does() {
    let folder = Folder::new("help");
    let all = folder.works("--help");
    let commands: Vec<(&str, &str)> = all
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.trim().split_once("  "))
        .map(|(name, does)| (name, does.trim()))
        .collect();
    assert!(commands.len() > 10, "{all}");
    for (name, does) in commands.into_iter().filter(|(name, _)| *name != "help") {
        let help = folder.works(format!("{name} --help"));
        assert!(help.starts_with(does), "{name}: {}", help.lines().next().unwrap_or_default());
    }
}
