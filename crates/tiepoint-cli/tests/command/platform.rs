//! No result depends on the platform's C library: the logarithm, sine and power of glibc, musl and others differ.

use super::collect::{position, unfinished, with_exif};
use super::drivers::stand_in;
use super::*;
use tiepoint::synth::StereoSceneOptions;

#[test]
fn no_result_depends_on_the_c_library() {
    if std::env::var_os("LD_PRELOAD").is_some() {
        // The stand-in must be in use.
        assert!(std::hint::black_box(1.0_f64).exp() > std::f64::consts::E * 1.000_000_9, "e");
        return;
    }
    let folder = Folder::new("platform");
    folder.put("libmath.so", stand_in("math"));
    let called = || std::fs::read_to_string(folder.at("called")).unwrap_or_default();
    let with_stand_in = |command: &mut Command| {
        succeeds(command.env("LD_PRELOAD", folder.at("libmath.so")).env("STAND_IN", folder.at("called")));
        called()
    };
    let this_test = ["--exact", "platform::no_result_depends_on_the_c_library"];
    let seen = with_stand_in(Command::new(std::env::current_exe().unwrap()).args(this_test));
    assert!(seen.contains("exp\n"), "a call of exp is not recorded");
    folder.remove("called");

    let truth = folder.scene();
    folder.stereo("", &StereoSceneOptions::default().with_size(SIZE).with_surfaces(5));
    folder
        .put("truth.txt", truth.matrix().as_flattened().iter().map(|v| format!("{v} ")).collect::<String>());
    folder.make("images");
    for i in 0..4 {
        with_exif(
            &folder,
            &format!("images/{i}.png"),
            &position([0, 1, 0, 1, 3600 + i, 1], [0, 1, 0, 1, 7200 + 2 * i, 1]),
        );
    }
    for line in [
        "detect a.png --output o.csv --draw o.png",
        "detect a.png --detector surf",
        "match l.png r.png --model fundamental",
        "match a.png b.png --model homography --views 5 --report o.html",
        "register a.png b.png --output o.png --interpolation lanczos --model affine",
        "register a.png b.png --output o.png --model similarity --json",
        "rectify l.png r.png --output-left ol.png --output-right or.png --draw o.png",
        "rectify l.png r.png --output-left ol.png --output-right or.png --focal 300",
        "stereo l.png r.png --cost mi --output o.pfm --preview o.png --report o.html",
        "evaluate homography a.png b.png truth.txt",
        "filter gauss a.png o.tif --sigma 2",
        "filter hessian a.png o.tif",
        "collect images --pairs gps --work work --output o.db --report o.html",
        "demo aerial --aerial 2 --size 200x150",
    ] {
        let functions = with_stand_in(&mut folder.tiepoint(format!("{line} --device cpu")));
        assert_eq!(functions, "", "functions of the C library that {line} calls");
    }
}

/// Network file systems and quotas may report that a file did not fit only when it is closed.
#[test]
fn an_error_on_closing_a_file_is_reported_and_leaves_no_unfinished_file() {
    let folder = Folder::new("platform-close");
    folder.put("libclose.so", stand_in("close"));
    folder.scene();
    folder.make("images");
    (0..2).for_each(|i| folder.texture(&format!("images/{i}.png"), SIZE, i));
    for (line, no_room) in [
        ("detect a.png --output o.csv", ".o.csv."),
        ("filter gauss a.png o.tif --sigma 2", ".o.tif."),
        ("collect images --work work --output o.db", ".features."),
        ("collect images --work work --output o.db --no-sync", ".features."),
        ("collect images --work work --output o.db --no-sync", ".tile."),
        ("collect images --work work --output o.db --no-sync", ".o.db."),
    ] {
        let mut command = folder.tiepoint(format!("{line} --device cpu"));
        command.env("LD_PRELOAD", folder.at("libclose.so")).env("NO_ROOM", no_room);
        let (code, [_, said]) = ran(&mut command);
        assert_eq!(code, Some(1), "{line}, {no_room}: {said}");
        assert!(said.contains("quota exceeded"), "{line}, {no_room}: {said}");
        assert!(["o.csv", "o.tif", "o.db"].iter().all(|name| !folder.at(name).exists()), "{line}");
        assert!(unfinished(&folder.0).is_empty(), "{line}, {no_room}");
    }
    folder.works("collect images --work work --output o.db --no-sync --device cpu");
}

#[test]
fn a_name_as_long_as_the_system_allows_is_written_and_channels_that_a_format_lacks_are_told() {
    let folder = Folder::new("platform-names");
    folder.write("a.png", Image::from_fn(Size::new(20, 10), |x, y| (x * y) as u8));
    let long = format!("{}.tif", "n".repeat(if cfg!(windows) { 120 } else { 251 }));
    folder.works(format!("filter gauss --sigma 1 a.png {long}"));
    assert!(folder.at(&long).exists());
    folder.write("colour.ppm", Image::filled(Size::new(20, 10), 3, 9_u8));
    folder.refuses("filter gauss --sigma 1 colour.ppm grey.pgm", 1, &["3 channels: expected 1", ".tif"]);
}
