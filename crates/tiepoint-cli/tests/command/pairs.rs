//! `match`, `register` and `evaluate homography`.

use super::*;
use std::collections::HashSet;
use tiepoint::synth::{Random, Scene, SceneOptions, Sensor, viewpoint};

#[test]
fn matches_are_written_as_other_programs_read_them() {
    let folder = Folder::with("match-formats", Folder::scene);
    folder.works("match a.png b.png -o m.csv");
    let mut inliers: Vec<Vec<String>> = folder
        .text("m.csv")
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>())
        .filter(|row| row[6] == "1")
        .collect();
    // A feature with two directions has two rows.
    let (all, mut seen) = (inliers.len(), HashSet::new());
    inliers.retain(|row| seen.insert(row[..4].to_vec()));
    assert!(30 < inliers.len() && inliers.len() < all, "{all}");
    for (line, file, columns) in [
        ("-o run-a__b.txt --format asp", "run-a__b.txt", &[0, 1, 3, 4][..]),
        ("-o sift_matches.txt --format s2p", "sift_matches.txt", &[0, 1, 2, 3]),
        ("-o Homol --format micmac", "Homol/Pastisa.png/b.png.txt", &[0, 1, 2, 3]),
        ("-o Homol --format micmac", "Homol/Pastisb.png/a.png.txt", &[2, 3, 0, 1]),
    ] {
        folder.works(format!("match a.png b.png {line}"));
        let text = folder.text(file);
        assert_eq!(text.lines().count(), inliers.len(), "{file}");
        for (line, row) in text.lines().zip(&inliers) {
            let words: Vec<_> = line.split(' ').collect();
            let found: Vec<_> = columns.iter().map(|&i| words[i]).collect();
            assert_eq!(found, row[..4].iter().map(String::as_str).collect::<Vec<_>>(), "{file}: {line}");
        }
    }
    folder.works("match a.png b.png -o a.points");
    assert_eq!(folder.text("a.points").lines().count(), 1 + inliers.len(), "QGIS");
    folder.refuses("match a.png b.png -o a.pts", 2, &["a.pts", ".points"]);
    folder.refuses("match a.png b.png --format asp", 2, &["--output"]);
}

/// Each format comes back byte for byte, and all give the same registration.
#[test]
fn matches_of_a_file_are_verified_in_place_of_a_search() {
    let folder = Folder::new("match-given");
    let truth = folder.scene();
    folder.put("inverse.txt", truth.inverse().unwrap().to_string());
    folder.put("few.txt", "1 2 3 4\n5 6 7 9\n");
    folder.texture("small.png", Size::new(80, 60), 1);
    folder.texture("other.png", SIZE, 2);
    let mut registered: Vec<Vec<u8>> = vec![];
    for (output, format, file) in [
        ("run-b__a.txt", "asp", "run-b__a.txt"),
        ("sift_matches.txt", "s2p", "sift_matches.txt"),
        ("Homol", "micmac", "Homol/Pastisb.png/a.png.txt"),
        ("b.points", "qgis", "b.points"),
    ] {
        folder.works(format!("match b.png a.png -o {output} --format {format}"));
        let written = folder.read(file);
        folder.remove(file);
        // The name of a file of MicMac says which image is the first, and so does that of ASP.
        let given = if format == "micmac" { "given/Pastisb.png/a.png.txt" } else { "given.txt" };
        folder.make("given/Pastisb.png");
        folder.put(given, &written);
        let said = folder
            .works(format!("match b.png a.png --matches {given} --model none -o {output} --format {format}"));
        assert!(said.contains(" matches"), "{said}");
        assert!(folder.read(file) == written, "{format}: another file");
        // b on a and a on b: MOVING is the second image of the command, and what control points place.
        if format == "s2p" {
            let exchanged = |line: &str| {
                let words: Vec<&str> = line.split(' ').collect();
                [&words[2..], &words[..2]].concat().join(" ") + "\n"
            };
            folder.put(file, folder.text(file).lines().map(exchanged).collect::<String>());
        }
        let on_a = if format == "micmac" { "given" } else { file };
        let json = folder.works(format!("register a.png b.png --matches {on_a} -o r.png --json"));
        assert!(json.contains("\"detector\":null"), "{json}");
        registered.push(folder.read("r.png"));
        let json =
            folder.works(format!("evaluate homography b.png a.png inverse.txt --matches {given} --json"));
        assert!(number(&json, "corner_error") < 0.5, "{format}: {json}");
        assert_eq!(value(&json, "angle_median"), "null", "given matches have no direction: {json}");
        assert_eq!(value(&json, "scale_repeatability"), "null", "nor a scale: {json}");
    }
    assert!(registered.iter().all(|picture| *picture == registered[0]), "one answer for all formats");
    for (line, code, words) in [
        ("match a.png b.png --matches b.points --ratio 0.7", 2, &["--matches", "search"][..]),
        ("match a.png b.png --matches b.points --detector surf", 2, &["--matches", "search"]),
        ("match a.png b.png --matches b.points -o m.txt", 2, &["COLMAP", "--format"]),
        ("match a.png b.png --matches inverse.txt", 1, &["inverse.txt", "holds no places of matches"]),
        ("match a.png other.png --matches given", 1, &["Pastisa.png"]),
        ("match small.png a.png --matches b.points", 1, &["outside of small.png"]),
        ("match a.png b.png --matches few.txt", 1, &["2 matches in few.txt", "--model"]),
    ] {
        folder.refuses(line, code, words);
    }
}

#[test]
fn rows_that_a_file_marks_as_wrong_count_for_the_verdict_alone() {
    let folder = Folder::new("matches-wrong");
    folder.scene();
    let found = folder.works("match a.png b.png --output v.csv --json");
    let again = folder.works("match a.png b.png --matches v.csv --output w.csv --json");
    assert_eq!(
        ["matches", "inliers"].map(|key| number(&again, key)),
        ["matches", "inliers"].map(|key| number(&found, key))
    );
    let columns = |file: &str| -> Vec<Vec<String>> {
        folder.text(file).lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
    };
    let places =
        |rows: &[Vec<String>]| rows.iter().map(|row| [&row[..4], &row[6..7]].concat()).collect::<Vec<_>>();
    assert_eq!(places(&columns("w.csv")), places(&columns("v.csv")), "all rows are kept");
    assert!(
        again.contains("\"verdict\":\"doubtful\"") && again.contains("that these agree says little"),
        "{again}"
    );
    // All in the left third lie elsewhere.
    let mut rows = columns("v.csv");
    for row in rows.iter_mut().filter(|row| row[0].parse::<f64>().unwrap() < 107.0) {
        row[2] = (row[2].parse::<f64>().unwrap() + 12.0).to_string();
        row[6] = "0".to_owned();
    }
    let lines: String = rows.iter().map(|row| row.join(",") + "\n").collect();
    folder.put("moved.csv", "ax,ay,bx,by,distance,ratio,inlier,a,b\n".to_owned() + &lines);
    let moved = folder.works("match a.png b.png --matches moved.csv --json");
    assert!(moved.contains("in 3 of 9 parts of the picture most of the given matches lie"), "{moved}");
}

/// Points of QGIS and GDAL on the map of the reference, which a world file beside it gives.
#[test]
fn control_points_on_a_map_register_and_a_world_file_is_kept() {
    let folder = Folder::with("match-map", Folder::scene);
    folder.works("match b.png a.png -o pixels.points");
    folder.works("register a.png b.png --matches pixels.points -o pixels.tif");
    assert_eq!(image::read_georeference(folder.at("pixels.tif")).unwrap(), None);
    folder.refuses("register a.png b.png --matches map.points -o map.tif", 1, &["map.points"]);
    let place = [0.5, 0.0, 500_000.0, 0.0, -0.5, 4_600_000.0];
    folder.put("a.pgw", "0.5\n0\n0\n-0.5\n500000.25\n4599999.75\n");
    let text = folder.text("pixels.points");
    let rows: Vec<Vec<f64>> =
        text.lines().skip(1).map(|line| line.split(',').map(|v| v.parse().unwrap()).collect()).collect();
    let (mut points, mut raster) =
        ("#CRS: EPSG:32632\nmapX,mapY,sourceX,sourceY,enable\n".to_owned(), String::new());
    for row in &rows {
        let (x, y) = (500_000.0 + row[0] / 2.0, 4_600_000.0 + row[1] / 2.0);
        points += &format!("{x},{y},{},{},1\n", row[2], row[3]);
        raster += &format!("<GCP Pixel=\"{}\" Line=\"{}\" X=\"{x}\" Y=\"{y}\"/>", row[2], -row[3]);
    }
    folder.put("off.points", points.replace(",1\n", ",0\n"));
    let switched_off = &["off.points: all of its", "points are switched off"];
    folder.refuses("register a.png b.png --matches off.points -o map.tif", 1, switched_off);
    folder.put("map.points", &points);
    folder.put("map.vrt", format!("<VRTDataset><GCPList>{raster}</GCPList></VRTDataset>"));
    for given in ["map.points", "map.vrt"] {
        folder.works(format!("register a.png b.png --matches {given} -o map.tif"));
        let found = image::read_georeference(folder.at("map.tif")).unwrap().unwrap();
        assert_eq!(found.transform(), Some(place), "{given}");
        assert_eq!(folder.bytes("map.tif"), folder.bytes("pixels.tif"), "{given}: another picture");
    }
    let said = folder.notes("register a.png b.png --matches map.points -o map.png");
    assert!(said.contains("map.png does not hold the place of a.png"), "{said}");
    let found = image::read_georeference(folder.at("map.png")).unwrap().unwrap();
    assert_eq!(found.transform(), Some(place), "its world file does");
}

#[test]
fn threads_do_not_change_a_byte() {
    let folder = Folder::with("threads", Folder::scene);
    for detector in ["sift", "surf"] {
        let run = |threads: u32| {
            let more = format!("--detector {detector} --threads {threads}");
            folder.works(format!("detect a.png -o k.csv {more}"));
            folder.works(format!("match a.png b.png -o m.csv {more}"));
            folder.works(format!("register a.png b.png -o r.tif {more}"));
            ["k.csv", "m.csv", "r.tif"].map(|name| folder.read(name))
        };
        let one = run(1);
        for threads in [2, 5] {
            assert!(one == run(threads), "{detector}: {threads} threads");
        }
    }
}

#[test]
fn devices_match_pictures_of_two_sensors_alike() {
    let folder = Folder::new("devices-cross");
    let size = Size::new(300, 240);
    let truth = viewpoint(size, 0.7, 1.15, [0.0; 2], [12.0, -7.0]).unwrap();
    let options = SceneOptions::default().with_size(size).with_moving_from_reference(truth).with_seed(5);
    let scene = Scene::<u8>::render(&options, &Default::default()).unwrap();
    folder.write("b.png", Sensor::Inverted.shows(&scene.moving, 9));
    folder.write("a.png", scene.reference);
    folder.write("mask.png", Image::from_fn(size, |x, _| if x < 40 { 0_u8 } else { 255 }));
    for more in ["", "--mask mask.png --scale-range 4"] {
        let run = |device: &str| {
            let json = folder.works(format!(
                "match a.png b.png -o m.csv --modality cross --json {more} --device {device}"
            ));
            assert!(json.contains(&format!(r#""device":"{device}""#)), "{device}: {json}");
            folder.read("m.csv")
        };
        let places = format!("match a.png b.png -o m.txt --modality cross {more}");
        folder.refuses(
            places,
            1,
            &["indices of the features", "their structure", "--views 1 --modality same"],
        );
        let expected = run("cpu");
        for driver in cpu_and(&["opencl", "cuda"]) {
            let device = if driver == "cpu" { driver.to_owned() } else { format!("{driver}:0") };
            assert!(run(&device) == expected, "{device} {more}");
        }
    }
}

/// A piece of A, pasted at the wrong place into the negative of another view, gives features that agree on its own place.
#[test]
fn a_map_of_few_places_yields_to_the_structure_of_the_whole() {
    let folder = Folder::new("refuted");
    let (size, [c, s]) = (Size::new(320, 256), [0.973, 0.1173]);
    let truth = Homography::new([[c, -s, 30.0], [s, c, -20.0], [0.0, 0.0, 1.0]]).unwrap();
    let options = SceneOptions::default().with_size(size).with_moving_from_reference(truth).with_seed(7);
    let Scene { reference, moving, .. } = Scene::<u8>::render(&options, &Default::default()).unwrap();
    let pasted = |x: usize, y: usize| match (150..230).contains(&x) && (120..200).contains(&y) {
        true => reference.row(y - 40)[x - 80],
        false => 255 - moving.row(y)[x],
    };
    folder.write("b.png", Image::from_fn(size, pasted));
    folder.write("a.png", reference.clone());
    assert!(folder.works("match a.png b.png --modality same --json").contains(r#""verdict":"doubtful""#));
    for driver in cpu_and(&["opencl", "cuda"]) {
        let json = folder.works(format!("match a.png b.png --json --device {driver}"));
        assert!(json.contains(r#""verdict":"good""#), "{driver}: {json}");
        let error = corner_error(&matrix(&json), &truth, size);
        assert!(error < 0.5, "{driver}: the corners are off by {error} px");
    }
}

#[test]
fn match_and_register_find_the_truth() {
    let folder = Folder::new("match");
    let truth = folder.scene();
    for detector in ["sift", "surf"] {
        let more = format!("--detector {detector} --json");
        let json = folder.works(format!("match a.png b.png -o m.csv --draw m.png {more}"));
        let error = corner_error(&matrix(&json), &truth, SIZE);
        assert!(error < 0.5, "{detector}: corner error {error}");
        let text = folder.text("m.csv");
        assert!(text.starts_with("ax,ay,bx,by,distance,ratio,inlier,a,b\n"), "header");
        assert_eq!(text.lines().count() as f64, number(&json, "matches") + 1.0, "a line a match");
        let inliers = text.lines().skip(1).filter(|l| l.split(',').nth(6) == Some("1")).count();
        assert_eq!(inliers as f64, number(&json, "inliers"), "inliers");
        assert!(folder.image("m.png").size().width > 2 * SIZE.width, "two images");

        // The matrix leads from MOVING to REFERENCE.
        let json = folder.works(format!("register b.png a.png -o r.png --overlay o.png {more}"));
        let error = corner_error(&matrix(&json), &truth, SIZE);
        assert!(error < 0.5, "{detector}: corner error {error}");
        let middle = |name| {
            let image = folder.bytes(name);
            (100..140).flat_map(|y| image.row(y)[140..180].to_vec()).collect::<Vec<_>>()
        };
        let pixels = middle("r.png").into_iter().zip(middle("b.png"));
        let off = pixels.map(|(p, q)| f64::from(p.abs_diff(q))).sum::<f64>() / 1600.0;
        assert!(off < 8.0, "{detector}: mean difference of grey values {off}");
    }
}

#[test]
fn models_and_scores() {
    let folder = Folder::new("models");
    let truth = folder.scene();
    // A plane has no epipolar geometry.
    folder.refuses("match a.png b.png --model fundamental", 1, &["plane"]);
    for model in ["affine", "similarity"] {
        let json = folder.works(format!("match a.png b.png --model {model} --json --inlier-distance 5"));
        assert_eq!(value(&json, "model"), format!("\"{model}\""), "{json}");
    }
    let json = folder.works("match a.png b.png --model none --json");
    assert_eq!(number(&json, "matches"), number(&json, "inliers"), "unverified matches were dropped");
    assert!(!json.contains("matrix"), "no model: {json}");

    folder.put("truth.txt", truth.to_string());
    let json = folder.works("evaluate homography a.png b.png truth.txt --json");
    assert!(number(&json, "corner_error") < 0.5, "{json}");
    let accuracy = numbers(&json, "matching_accuracy");
    assert!(accuracy.len() == 10 && accuracy[2] > 0.9 && accuracy.is_sorted(), "{accuracy:?}");
    assert!(number(&json, "angle_median") < 0.1 && number(&json, "scale_repeatability") > 0.3, "{json}");
    let lines = folder.works("evaluate homography a.png b.png truth.txt --model none");
    assert!(lines.contains("corner error       no map"), "{lines}");
    folder.put("found.json", folder.works("match a.png b.png --json"));
    for (found, most) in [("truth.txt", 0.0), ("found.json", 0.5)] {
        let json = folder.works(format!("evaluate homography {found} truth.txt --size 320x240 --json"));
        assert!(number(&json, "corner_error") <= most, "{found}: {json}");
    }
}

#[test]
fn register_masks_reference_by_mask_and_moving_by_mask_b() {
    let folder = Folder::with("register-masks", Folder::scene);
    folder.write("mask.png", Image::from_fn(SIZE, |x, _| if x < 100 { 0_u8 } else { 255 }));
    // The numbers of features of MOVING and of REFERENCE.
    let features = |masks: &str| -> [f64; 2] {
        let json = folder.works(format!("register a.png b.png --views 1 --json {masks}"));
        numbers(&json, "features").try_into().unwrap()
    };
    let all = features("");
    let (first, second) = (features("--mask mask.png"), features("--mask-b mask.png"));
    assert!(first[0] == all[0] && first[1] < all[1], "--mask is REFERENCE's: {first:?} of {all:?}");
    assert!(second[0] < all[0] && second[1] == all[1], "--mask-b is MOVING's: {second:?} of {all:?}");
    assert_eq!(features("--mask mask.png --mask-b mask.png"), [second[0], first[1]], "each its own");
}

#[test]
fn a_canvas_for_both_holds_both_images_whole() {
    let folder = Folder::new("register-canvas");
    let picture: Image<u8> = Texture::new(4).image(Size::new(500, 240), &Cpu::sequential());
    let part = |from: usize| Image::from_fn(SIZE, |x, y| picture.row(y)[x + from]);
    folder.write("left.png", part(0));
    folder.write("right.png", part(180));
    let run = "register left.png right.png --model translation -o r.png --overlay o.png";
    let said = folder.works(run);
    assert!(said.contains("43.") && said.contains("% of the reference covered"), "{said}");
    assert_eq!(folder.image("r.png").size(), SIZE, "the reference's pixels");
    let json = folder.works(format!("{run} --canvas union --json --report page.html"));
    let whole = folder.image("o.png").size();
    assert!(whole.width.abs_diff(500) <= 1 && whole.height.abs_diff(240) <= 1, "{whole}: {json}");
    assert!((number(&json, "covered") - 140.0 / 320.0).abs() < 0.01, "{json}");
    let overlay = folder.bytes("o.png");
    let off = |x: usize| (0..240).filter(|&y| overlay.row(y)[3 * x].abs_diff(picture.row(y)[x]) > 20).count();
    assert!(off(20) < 12 && off(480) < 12, "the ends are not shown: off by {} and {}", off(20), off(480));
    let json = folder
        .works(format!("{} --canvas union --json", run.replace("left.png right.png", "right.png left.png")));
    assert!((numbers(&json, "reference_at")[0] - 180.0).abs() <= 1.0, "{json}");
}

#[test]
fn a_refused_match_says_what_was_found_and_what_to_try() {
    let folder = Folder::new("refusals");
    folder.texture("a.png", SIZE, 1);
    // Two textures have the grid of their shapes in common, which structure finds.
    let mut random = Random::new(7);
    folder.write("noise.png", Image::from_fn(SIZE, |_, _| random.range(0.0, 256.0) as u8));
    folder.works("filter gauss noise.png b.png --sigma 1.5");
    for command in ["match", "register", "rectify"] {
        let line = format!("{command} a.png b.png --report page.html");
        folder.refuses(line, 1, &["matches of", "features", "views", "same thing", "--contrast"]);
        let page = folder.text("page.html");
        assert!(page.contains("are not confirmed") && page.contains("inliers</th><td>0</td>"), "{command}");
        folder.remove("page.html");
    }
}
