//! The C library of the platform has no part in any result: glibc, musl and those of other systems round the
//! logarithm, sine and power each in its own way.

use super::collect::with_exif;
use super::drivers::stand_in;
use super::*;
use tiepoint::synth::{StereoPair, StereoScene, StereoSceneOptions};

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
    let [library, called] = ["libmath.so", "called"].map(|name| folder.at(name));
    std::fs::write(&library, stand_in("math")).unwrap();
    let with_stand_in = |program: &Path, arguments: &[&str]| {
        let mut command = Command::new(program);
        let output =
            command.args(arguments).env("LD_PRELOAD", &library).env("STAND_IN", &called).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        std::fs::read_to_string(&called).unwrap_or_default()
    };
    let this_test = ["--exact", "platform::no_result_depends_on_the_c_library"];
    assert!(
        with_stand_in(&std::env::current_exe().unwrap(), &this_test).contains("exp\n"),
        "it would be seen"
    );
    std::fs::remove_file(&called).unwrap();

    let (a, b, truth) = folder.scene();
    let pair: StereoPair = StereoScene::new(&StereoSceneOptions::default().with_size(SIZE).with_surfaces(5))
        .unwrap()
        .render(&Cpu::sequential());
    let (left, right) = (folder.write("l.png", &pair.left.into()), folder.write("r.png", &pair.right.into()));
    let true_matrix = folder.at("truth.txt");
    std::fs::write(
        &true_matrix,
        truth.matrix().as_flattened().iter().map(|v| format!("{v} ")).collect::<String>(),
    )
    .unwrap();
    std::fs::create_dir(folder.at("images")).unwrap();
    for i in 0..4 {
        with_exif(&folder, &format!("images/{i}.png"), &at(3600 + i, 7200 + 2 * i));
    }
    let [csv, png, tif, pfm, html] =
        ["o.csv", "o.png", "o.tif", "o.pfm", "o.html"].map(|name| folder.at(name));
    let [left_out, right_out, database] = ["ol.png", "or.png", "o.db"].map(|name| folder.at(name));
    let [images, work] = ["images", "work"].map(|name| folder.at(name));
    for arguments in [
        &["detect", &a, "--output", &csv, "--draw", &png][..],
        &["detect", &a, "--detector", "surf"],
        &["match", &left, &right, "--model", "fundamental"],
        &["match", &a, &b, "--model", "homography", "--views", "5", "--report", &html],
        &["register", &a, &b, "--output", &png, "--interpolation", "lanczos", "--model", "affine"],
        &["register", &a, &b, "--output", &png, "--model", "similarity", "--json"],
        &["rectify", &left, &right, "--output-left", &left_out, "--output-right", &right_out, "--draw", &png],
        &[
            "rectify",
            &left,
            &right,
            "--focal",
            "300",
            "--output-left",
            &left_out,
            "--output-right",
            &right_out,
        ],
        &["stereo", &left, &right, "--cost", "mi", "--output", &pfm, "--preview", &png, "--report", &html],
        &["evaluate", "homography", &a, &b, &true_matrix],
        &["filter", "gauss", &a, &tif, "--sigma", "2"],
        &["filter", "hessian", &a, &tif],
        &["collect", &images, "--pairs", "gps", "--work", &work, "--output", &database, "--report", &html],
        &["demo", &folder.at("aerial"), "--aerial", "2", "--size", "200x150"],
    ] {
        let functions = with_stand_in(
            Path::new(env!("CARGO_BIN_EXE_tiepoint")),
            &[arguments, &["--device", "cpu"]].concat(),
        );
        assert_eq!(functions, "", "functions of the C library that {arguments:?} calls");
    }
}
