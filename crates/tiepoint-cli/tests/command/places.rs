//! Pictures on a map, files that are beside pictures, and matches of other pictures.

use super::*;

/// Two overlapping parts of one picture, `a.png` and `b.png`.
fn parts(folder: &Folder) {
    let picture: Image<u8> = Texture::new(4).image(Size::new(500, 240), &Cpu::sequential());
    for (name, from) in [("a.png", 0), ("b.png", 100)] {
        folder.write(name, Image::from_fn(SIZE, |x, y| picture.row(y)[x + from]));
    }
}

#[test]
fn matches_of_pictures_of_another_size_are_refused() {
    let folder = Folder::with("other-sizes", parts);
    folder.put("b.pgw", "0.5\n0\n0\n-0.5\n500000.25\n4599999.75\n");
    folder.put("other.png", folder.read("a.png"));
    let half = |name: &str| {
        let image = folder.bytes(name);
        folder.write(name, Image::from_fn(Size::new(160, 120), |x, y| image.row(2 * y)[2 * x]));
    };
    for matches in ["m.json", "m.npz", "m.vrt"] {
        folder.works(format!("match a.png b.png -o {matches}"));
    }
    folder.works("match a.png b.png --matches m.npz");
    folder.works("register b.png a.png --matches m.vrt -o o.png");
    // Its points are of a.png, on the map of b.png.
    let json = folder.works("register a.png b.png --matches m.vrt --json");
    assert!((matrix(&json).matrix()[0][2] - 100.0).abs() < 0.5, "{json}");
    folder.refuses("register b.png other.png --matches m.vrt", 1, &["control points of a.png"]);
    half("a.png");
    for line in [
        "match a.png b.png --matches m.json",
        "match a.png b.png --matches m.npz",
        "register b.png a.png --matches m.vrt -o o.png",
    ] {
        folder.refuses(line, 1, &["found in a picture of 320x240", "a.png has 160x120"]);
    }
}

#[cfg(unix)]
#[test]
fn matches_come_from_stdin() {
    let folder = Folder::with("matches-stdin", parts);
    folder.works("match a.png b.png -o m.csv");
    let mut command = folder.tiepoint("match a.png b.png --matches -");
    let [said, _] = succeeds(command.stdin(std::fs::File::open(folder.at("m.csv")).unwrap()));
    assert!(said.contains("matches for right"), "{said}");
    // From a pipe nothing can be read twice.
    let (from, to) = std::io::pipe().unwrap();
    let text = folder.read("m.csv");
    let writing = std::thread::spawn(move || std::io::Write::write_all(&mut { to }, &text));
    let mut command = folder.tiepoint("match a.png b.png --matches -");
    let [said, _] = succeeds(command.stdin(from));
    drop(writing.join());
    assert!(said.contains("matches for right"), "{said}");
}

/// Reading an endless input stops with an error before the memory is full.
#[cfg(unix)]
#[test]
fn of_a_device_without_end_only_so_much_is_read() {
    let folder = Folder::with("endless", parts);
    for line in [
        "evaluate homography /dev/zero /dev/zero --size 3x3",
        "match a.png b.png --matches /dev/zero",
        "detect --list /dev/zero -o x.csv",
        "report --compare /dev/zero a.png -o x.html",
    ] {
        folder.refuses(line, 1, &["/dev/zero: is longer than 268435456 bytes: expected"]);
    }
    folder.refuses("detect /dev/zero -o x.csv", 1, &["/dev/zero: not an image of a known format"]);
    folder.put("latin.txt", b"caf\xe9.png\n");
    folder.refuses(
        "detect --list latin.txt -o x.csv",
        1,
        &["latin.txt: is no text: expected names of images"],
    );
}

#[cfg(unix)]
#[test]
fn results_on_stdout_are_added_to_a_file_to_which_it_leads() {
    let folder = Folder::with("stdout-file", parts);
    folder.put("log", "before\n");
    for name in ["a.png", "b.png"] {
        let log = std::fs::OpenOptions::new().append(true).open(folder.at("log")).unwrap();
        let mut command = folder.tiepoint(format!("detect {name} --output - --max-features 3 --keep scale"));
        assert!(command.stdout(log).status().unwrap().success());
    }
    let lines: Vec<String> = folder.text("log").lines().map(str::to_owned).collect();
    assert_eq!((lines.len(), lines[0].as_str()), (9, "before"), "{lines:?}");
}

#[test]
fn a_result_has_the_place_of_its_pixels() {
    let folder = Folder::with("places", parts);
    folder.put("b.pgw", "0.5\n0\n0\n-0.5\n500000.25\n4599999.75\n");
    folder.works("register b.png a.png --model translation -o o.tif");
    let place = |name: &str| image::read_georeference(folder.at(name)).unwrap().unwrap().transform();
    assert_eq!(place("o.tif"), Some([0.5, 0.0, 500000.0, 0.0, -0.5, 4600000.0]));
    // No coordinate system is known, so the file has no directory of keys, which would name one.
    assert!(!folder.read("o.tif").windows(2).any(|tag| tag == 34735_u16.to_le_bytes()));
    folder.works("register b.png a.png --model translation -o u.tif --canvas union");
    let [a, _, c, ..] = place("u.tif").unwrap();
    assert!((c - (500000.0 - 100.0 * a)).abs() <= a, "the canvas begins 100 pixels to the left: {c}");
    folder.remove("b.pgw");
    folder.put(
        "b.png.aux.xml",
        "<PAMDataset><SRS>x</SRS><GeoTransform>0, 1, 0, 0, 0, -1</GeoTransform></PAMDataset>",
    );
    let jp2: &[u8] = include_bytes!("../../../tiepoint/tests/samples/bands.jp2");
    folder.put("gml.jp2", [jp2, b"\0\0\0\x10lbl gml.data"].concat());
    for (line, reason) in [
        ("register b.png a.png -o n.tif", "b.png has its place in an .aux.xml"),
        ("match a.png b.png -o n.points", "b.png has its place in an .aux.xml"),
        ("filter gauss b.png n.tif", "b.png has its place in an .aux.xml"),
        ("filter gauss gml.jp2 n.tif --band 1", "gml.jp2 is a JPEG 2000"),
    ] {
        let told = folder.notes(line);
        assert!(told.contains(&format!("results have no place on the map: {reason}")), "{line}: {told}");
        assert!(told.contains("make a GeoTIFF of it"), "{told}");
    }
    folder.put("b.pgw", "0.5\n0\n0\n-0.5\n500000.25\n4599999.75\n");
    let told = folder.notes("register b.png a.png -o n.tif");
    assert!(told.contains("results have no coordinate system: b.png has its place in an .aux.xml"), "{told}");
}

/// GDAL and QGIS use the place in the `.aux.xml` beside a GeoTIFF.
#[test]
fn another_place_beside_a_geotiff_is_told() {
    let folder = Folder::with("other-place", parts);
    folder.put("b.pgw", "0.5\n0\n0\n-0.5\n500000.25\n4599999.75\n");
    folder.works("register b.png a.png -o map.tif");
    for (text, is_told) in
        [("500000, 0.5, 0, 4600000, 0, -0.5", false), ("7, 0.5, 0, 4600000, 0, -0.5", true)]
    {
        let text = format!("<PAMDataset><GeoTransform>{text}</GeoTransform></PAMDataset>");
        for line in
            ["register map.tif a.png -o o.tif", "match a.png map.tif -o o.vrt", "filter gauss map.tif o.tif"]
        {
            folder.put("map.tif.aux.xml", &text);
            let told = folder.notes(line);
            assert_eq!(told.contains("map.tif: its .aux.xml file"), is_told, "{line}: {told}");
        }
    }
}

#[test]
fn the_no_data_value_that_gdal_keeps_beside_a_picture_counts() {
    let folder = Folder::with("no-data-beside", parts);
    let (image, edge) = (folder.bytes("a.png"), 220);
    folder.write("m.png", Image::from_fn(SIZE, |x, y| if x < edge { image.row(y)[x].max(1) } else { 0 }));
    folder.put(
        "m.png.aux.xml",
        "<PAMDataset><PAMRasterBand band=\"1\"><NoDataValue>0</NoDataValue></PAMRasterBand></PAMDataset>",
    );
    let json = folder.works("register b.png m.png --model translation -o o.tif --json");
    let covered = number(&json, "covered");
    assert!((covered - 120.0 / 320.0).abs() < 0.01, "{json}");
}

#[test]
fn a_world_file_of_another_picture_stays_and_is_told_of() {
    let folder = Folder::with("world-files", parts);
    let world = "0.5\n0\n0\n-0.5\n500000.25\n4599999.75\n";
    // b.jpg has the world file of b.jpeg.
    folder.write("b.jpeg", folder.image("b.png"));
    ["b.jgw", "o.tfw"].iter().for_each(|name| folder.put(name, world));
    folder.refuses("register b.jpeg a.png -o b.jpg", 2, &["would replace the input b.jgw"]);
    assert!(!folder.has("b.jpg") && folder.text("b.jgw") == world);
    let told = folder.notes("register b.jpeg a.png -o o.tif");
    assert!(!told.contains("o.tfw"), "its own place comes first: {told}");
    for line in [
        "register b.png a.png -o o.tif",
        "filter gauss a.png o.tif",
        "stereo a.png b.png --disparities 8 -o o.tif",
    ] {
        let told = folder.notes(line);
        assert!(told.contains("the world file o.tfw was there before"), "{line}: {told}");
    }
}

#[test]
fn what_holds_no_data_covers_nothing() {
    let folder = Folder::with("no-data", parts);
    let (image, edge) = (folder.bytes("a.png"), 220);
    let value = |x: usize, y: usize| f32::from(image.row(y)[x]) / 255.0;
    folder.write("nan.tif", Image::from_fn(SIZE, |x, y| if x < edge { value(x, y) } else { f32::NAN }));
    let shown = Image::from_fn(SIZE, |x, _| if x < edge { 255 } else { 0 });
    folder.write("clear.png", image::with_alpha(&image, &shown).unwrap());
    for moving in ["nan.tif", "clear.png"] {
        let json =
            folder.works(format!("register b.png {moving} --model translation -o {moving}.png --json"));
        let covered = number(&json, "covered");
        assert!((covered - 120.0 / 320.0).abs() < 0.01, "{moving}: {json}");
    }
    let mask = image::read_file(folder.at("nan.tif.png"), &ReadOptions::default()).unwrap().shown.unwrap();
    let share = mask.data().iter().filter(|v| **v != 0).count() as f64 / SIZE.area() as f64;
    assert!((share - 120.0 / 320.0).abs() < 0.01, "its mask is that of the data: {share}");
    // The no-data value around the picture, which neither format names.
    let known = image::Known { no_data: Some(255.0), ..image::Known::default() };
    let grey = Image::from_fn(SIZE, |x, y| image.row(y)[x].min(254));
    image::write_known(folder.at("white.tif"), &grey, &known).unwrap();
    for name in ["white.png", "white.pgm"] {
        folder.works(format!("register b.png white.tif --model translation -o {name}"));
        let read = image::read_file(folder.at(name), &ReadOptions::default()).unwrap();
        let valid = read.valid().unwrap().unwrap();
        let share = valid.data().iter().filter(|v| **v != 0).count() as f64 / SIZE.area() as f64;
        assert!((share - 220.0 / 320.0).abs() < 0.01, "{name}: {share}");
    }
}

#[test]
fn points_without_a_coordinate_system_are_placed_by_what_lies_inside() {
    let folder = Folder::with("points", parts);
    folder.put("b.pgw", "0.5\n0\n0\n-0.5\n500000.25\n4599999.75\n");
    let told = folder.notes("match a.png b.png -o pixels.points");
    assert!(told.contains("names no coordinate system, so pixels.points names none, and its mapX"), "{told}");
    let text = folder.text("pixels.points");
    let moved = |line: &str| {
        let (x, rest) = line.split_once(',').unwrap();
        let (y, rest) = rest.split_once(',').unwrap();
        let [x, y] = [x, y].map(|v| v.parse::<f64>().unwrap());
        format!("{},{},{rest}\n", 500_000.0 + 0.5 * x, 4_600_000.0 + 0.5 * y)
    };
    let head = text.lines().next().unwrap();
    folder.put("map.points", format!("{head}\n{}", text.lines().skip(1).map(moved).collect::<String>()));
    folder.put("off.points", folder.text("map.points").replace("\n500", "\n700"));
    for points in ["pixels.points", "map.points"] {
        let json =
            folder.works(format!("register b.png a.png --model translation --matches {points} --json"));
        assert!((matrix(&json).matrix()[0][2] + 100.0).abs() < 0.1, "{points}: {json}");
    }
    folder.refuses(
        "register b.png a.png --matches off.points",
        1,
        &["no line #CRS", "outside", "EPSG:NUMBER"],
    );
}

#[test]
fn matches_of_stored_pixels_are_told_of() {
    let folder = Folder::with("stored", parts);
    folder.write("a.jpg", folder.image("a.png"));
    folder.orient("a.jpg", 3);
    for (output, is_told) in [("m.csv", false), ("m.txt", true), ("m.points", true)] {
        let told = folder.notes(format!("match a.jpg b.png -o {output}"));
        assert_eq!(told.contains("a.jpg: matches and model are of the pixels as they are stored"), is_told);
    }
}

#[test]
fn what_gdal_keeps_beside_a_replaced_picture_goes() {
    let folder = Folder::with("beside", parts);
    let beside = ["o.tif.ovr", "o.tif.aux.xml", "o.tif.msk"];
    for output in [
        "register b.png a.png -o o.tif",
        "register b.png a.png --overlay o.tif",
        "match a.png b.png --draw o.tif",
        "detect a.png --draw o.tif",
        "filter gauss a.png o.tif",
        "stereo a.png b.png --disparities 16 -o o.tif",
        "stereo a.png b.png --disparities 16 --confidence o.tif",
        "stereo a.png b.png --disparities 16 --preview o.tif",
        "stereo a.png b.png --disparities 16 --focal 300 --baseline 1 --depth o.tif",
    ] {
        beside.iter().for_each(|name| folder.put(name, "of the picture before"));
        let told = folder.notes(format!("{output} -v"));
        assert!(!beside.iter().any(|name| folder.has(name)), "{output}: {:?}", folder.files());
        assert!(beside.iter().all(|name| told.contains(&format!("{name}: is removed"))), "{output}: {told}");
    }
}

#[test]
fn a_finer_picture_is_told_to_be_shrunk_before() {
    let folder = Folder::with("finer", parts);
    let told = folder.notes("register b.png a.png -o o.png");
    assert!(!told.contains("the resolution"), "{told}");
    let picture: Image<u8> = Texture::new(4).image(Size::new(900, 720), &Cpu::sequential());
    let mean = |x: usize, y: usize| {
        (0..9).map(|i| u32::from(picture.row(3 * y + i / 3)[3 * x + i % 3])).sum::<u32>() / 9
    };
    folder.write("s.png", Image::from_fn(Size::new(300, 240), |x, y| mean(x, y) as u8));
    folder.write("f.png", picture.clone());
    let told = folder.notes("register s.png f.png -o o.png");
    assert!(told.contains("f.png has 3.0 times the resolution of s.png"), "{told}");
}

/// A value that the file does not declare as its no-data value is resampled like others.
#[test]
fn a_value_far_from_all_others_is_told() {
    let folder = Folder::new("unnamed");
    let picture: Image<u8> = Texture::new(4).image(Size::new(300, 240), &Cpu::sequential());
    let kelvin = |x: usize, y: usize| 280.0 + 0.1 * f32::from(picture.row(y)[x]);
    folder.write("whole.pfm", Image::from_fn(picture.size(), kelvin));
    let holed = |x: usize, y: usize| if (90..140).contains(&x) && y < 60 { -9999.0 } else { kelvin(x, y) };
    folder.write("holed.pfm", Image::from_fn(picture.size(), holed));
    let told = folder.notes("register whole.pfm holed.pfm -o o.pfm");
    assert!(told.contains("holed.pfm: 3000 pixels hold -9999, far from all others"), "{told}");
    let told = folder.notes("register holed.pfm whole.pfm -o o.pfm");
    assert!(!told.contains("far from all others"), "{told}");
}

#[test]
fn a_blank_picture_is_called_one() {
    let folder = Folder::with("blank", parts);
    folder.write("grey.png", Image::filled(SIZE, 1, 90_u8));
    folder.write("none.png", Image::filled(SIZE, 1, 0_u8));
    folder.refuses("match a.png grey.png", 1, &["grey.png shows nothing: all of its pixels have one value"]);
    folder.refuses(
        "register a.png b.png --mask none.png",
        1,
        &["a.png shows nothing", "its mask leaves nothing"],
    );
}

#[test]
fn figures_without_a_right_match_are_none() {
    let folder = Folder::with("no-right-match", parts);
    folder.put("h.txt", "1 0 40\n0 1 90\n0 0 1\n");
    let line = "evaluate homography a.png b.png h.txt";
    assert!(folder.works(line).contains("position           no match within 3 px"));
    let json = folder.works(format!("{line} --json"));
    assert!(json.contains("\"position_rms\":null") && json.contains("\"position_bias\":null"), "{json}");
}
