//! The C library of the platform has no part in any result: glibc, musl and those of other systems round the
//! logarithm, sine and power each in its own way.

use super::collect::with_exif;
use super::drivers::stand_in;
use super::*;
use tiepoint::synth::StereoSceneOptions;

/// Camera data with a place on the earth, in seconds of arc, 100 m up.
fn at(latitude: u32, longitude: u32) -> Vec<u8> {
    let mut bytes = b"II*\0\x08\0\0\0".to_vec();
    let list = |bytes: &mut Vec<u8>, fields: &[[u32; 4]]| {
        bytes.extend_from_slice(&(fields.len() as u16).to_le_bytes());
        for &[tag, kind, count, value] in fields {
            bytes.extend_from_slice(&[tag as u16, kind as u16].map(u16::to_le_bytes).concat());
            bytes.extend_from_slice(&[count, value].map(u32::to_le_bytes).concat());
        }
        bytes.extend_from_slice(&[0; 4]);
    };
    // The second list lies behind the header and the first one, numbers behind the second.
    let (second, numbers) = (8 + 18, 8 + 18 + 6 + 5 * 12);
    let (north, east) = (u32::from(b'N'), u32::from(b'E'));
    list(&mut bytes, &[[0x8825, 4, 1, second]]);
    let places = [[2, 5, 3, numbers], [4, 5, 3, numbers + 24], [6, 5, 1, numbers + 48]];
    list(&mut bytes, &[[1, 2, 2, north], places[0], [3, 2, 2, east], places[1], places[2]]);
    let triples = [[0, 1, 0, 1, latitude, 1], [0, 1, 0, 1, longitude, 1], [100, 1, 0, 0, 0, 0]];
    triples.as_flattened().iter().for_each(|n| bytes.extend_from_slice(&n.to_le_bytes()));
    bytes
}

#[test]
fn no_result_depends_on_the_c_library() {
    if std::env::var_os("LD_PRELOAD").is_some() {
        // The stand-in is in force.
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
    assert!(seen.contains("exp\n"), "it would be seen");
    folder.remove("called");

    let truth = folder.scene();
    folder.stereo("", &StereoSceneOptions::default().with_size(SIZE).with_surfaces(5));
    folder
        .put("truth.txt", truth.matrix().as_flattened().iter().map(|v| format!("{v} ")).collect::<String>());
    folder.make("images");
    for i in 0..4 {
        with_exif(&folder, &format!("images/{i}.png"), &at(3600 + i, 7200 + 2 * i));
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
