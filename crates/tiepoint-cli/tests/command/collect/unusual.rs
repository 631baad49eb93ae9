//! Photographs with absurd camera data, hidden, transparent, too large or unreadable.

use super::*;

pub(crate) fn with_exif(folder: &Folder, name: &str, exif: &[u8]) {
    let size = Size::new(240, 180);
    folder.texture(name, size, 4);
    let plain = std::fs::read(folder.at(name)).unwrap();
    std::fs::write(folder.at(name), with_exif_chunk(&plain, exif)).unwrap();
}

/// Inserts camera data into the bytes of a PNG.
pub(crate) fn with_exif_chunk(plain: &[u8], exif: &[u8]) -> Vec<u8> {
    let mut chunk = b"eXIf".to_vec();
    chunk.extend_from_slice(exif);
    let checksum = !chunk.iter().fold(!0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg()))
    });
    // The signature and the header take 33 bytes.
    let length = (exif.len() as u32).to_be_bytes();
    [&plain[..33], &length, &chunk, &checksum.to_be_bytes(), &plain[33..]].concat()
}

/// A field of a TIFF: tag, type, count, value.
type Field = (u16, u16, u32, u32);

/// A TIFF of lists of fields, none of which names another as the next, and the numbers `behind` after them.
pub(crate) fn tiff(lists: &[&[Field]], behind: &[u32]) -> Vec<u8> {
    let mut bytes = b"II*\0\x08\0\0\0".to_vec();
    for fields in lists {
        bytes.extend_from_slice(&(fields.len() as u16).to_le_bytes());
        for (tag, kind, count, value) in *fields {
            bytes.extend_from_slice(&[*tag, *kind].map(u16::to_le_bytes).concat());
            bytes.extend_from_slice(&[*count, *value].map(u32::to_le_bytes).concat());
        }
        bytes.extend_from_slice(&[0; 4]);
    }
    behind.iter().for_each(|n| bytes.extend_from_slice(&n.to_le_bytes()));
    bytes
}

/// Camera data: a list that points to a second one at offset `list`, which has one field, and the numbers `behind` it.
pub(crate) fn exif(list: u32, field: Field, behind: &[u32]) -> Vec<u8> {
    tiff(&[&[(0x8769, 4, 1, list)], &[field]], behind)
}

/// Camera data with a GPS position at 100 m: latitude north, longitude east, fractions of degrees, minutes, seconds.
pub(crate) fn position(latitude: [u32; 6], longitude: [u32; 6]) -> Vec<u8> {
    let (north, east) = (u32::from(b'N'), u32::from(b'E'));
    // The second list lies behind the header and the first one; its five fields end where the numbers begin.
    let (second, numbers) = (8 + 18, 8 + 18 + 6 + 5 * 12);
    let places = [(2, 5, 3, numbers), (4, 5, 3, numbers + 24), (6, 5, 1, numbers + 48)];
    let fields = [(1, 2, 2, north), places[0], (3, 2, 2, east), places[1], places[2]];
    tiff(&[&[(0x8825, 4, 1, second)], &fields], &[&latitude[..], &longitude, &[100, 1]].concat())
}

#[test]
fn absurd_camera_data_and_hostile_photographs() {
    let folder = Folder::new("collect-absurd");
    folder.make("images");
    // The second list lies behind the header and the first one, and numbers behind the second.
    let (list, behind) = (8 + 18, 8 + 2 * 18);
    let (film, lens) = (0xa405, 0x920a);
    let mut random = Random::new(3);
    for (name, data) in [
        // Focal lengths: 0, 65 535 and a valid one for 35 mm film; n/0, 0/0, and 4 294 967 295 mm.
        ("film 0", exif(list, (film, 3, 1, 0), &[])),
        ("film 65535", exif(list, (film, 3, 1, 65_535), &[])),
        ("film 43", exif(list, (film, 3, 1, 43), &[])),
        ("lens 50 by 0", exif(list, (lens, 5, 1, behind), &[50, 0])),
        ("lens 0 by 0", exif(list, (lens, 5, 1, behind), &[0, 0])),
        ("lens huge", exif(list, (lens, 5, 1, behind), &[u32::MAX, 1])),
        // Values beyond the end, more values than there are bytes, a list that names itself as the next, and noise.
        ("beyond", exif(list, (lens, 5, 1, 0xffff_fff0), &[])),
        ("many", exif(list, (lens, 5, u32::MAX, behind), &[1, 2])),
        ("itself", exif(8, (film, 3, 1, 43), &[])),
        ("noise", (0..5000).map(|_| random.bits() as u8).collect()),
        ("none", Vec::new()),
    ] {
        with_exif(&folder, &format!("images/{name}.png"), &data);
    }
    // Pictures without features, and a file that is no picture.
    folder.write("images/one pixel.png", Image::<u8>::new(Size::new(1, 1)));
    folder.write("images/black.png", Image::<u8>::new(Size::new(300, 200)));
    let mut huge = folder.read("images/black.png");
    huge[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
    folder.put("images/huge.png", huge);
    folder.make("images/folder.png");
    let said = folder.notes("collect images --output absurd.db --device cpu --threads 2");
    assert!(said.contains("huge.png is left out"), "{said}");
    let database = &folder.at("absurd.db");
    assert_eq!(count(database, IMAGES), 13, "all but the huge one");
    assert_eq!(count(database, "SELECT count(*) FROM pose_priors"), 0, "a position from absurd camera data");
    // Only the valid focal length is used; the other cameras have COLMAP's guess.
    assert_eq!(count(database, "SELECT count(*) FROM cameras WHERE prior_focal_length = 1"), 1);
    let reader = open(database);
    let mut cameras =
        reader.prepare("SELECT prior_focal_length, width, height, params FROM cameras").unwrap();
    let mut rows = cameras.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let params: Vec<u8> = row.get(3).unwrap();
        let focal = f64::from_le_bytes(params[..8].try_into().unwrap());
        let sides: [u32; 2] = [row.get(1).unwrap(), row.get(2).unwrap()];
        let guess = 1.2 * f64::from(sides[0].max(sides[1]));
        let is_known: bool = row.get(0).unwrap();
        assert!(if is_known { (focal - 298.0).abs() < 2.0 } else { focal == guess }, "{focal} of {sides:?}");
    }
    // Thirteen photographs can be matched. The huge one is in thirteen more pairs, which are not tried.
    let status = folder.works("collect status --work absurd.db.work --json");
    let told = ["pairs", "tried", "left_out"].map(|key| number(&status, key));
    assert_eq!(told, [91.0, 78.0, 13.0], "{status}");
    assert_eq!(value(&status, "complete"), "true", "{status}");
    let again = folder.works("collect match --work absurd.db.work --json");
    assert_eq!(number(&again, "pairs"), 0.0, "matched again: {again}");
}

#[test]
fn a_part_reports_and_leaves_out_photographs_it_cannot_read() {
    let folder = Folder::with("collect-parts-unreadable", photographs);
    folder.put("images/0.png", "no picture");
    folder.works("collect scan images --work work");
    let stage = |stage: &str| folder.works(format!("collect {stage} --work work --device cpu --json"));
    let told = stage("features --shard 0/7");
    assert!(told.contains("0.png") && number(&told, "searched") == 0.0, "all of its photographs: {told}");
    let status = stage("status --parts 7");
    assert_eq!(numbers(&status, "missing_features"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "{status}");
    let features = "collect features --work work --device cpu --max-unreadable 0";
    folder.refuses(features, 1, &["1 of 7 photographs"]);
    // A photograph that changed since the scan is tried again, and the other results are kept.
    folder.texture("images/0.png", Size::new(240, 180), 7);
    let said = folder.fails(features, 1);
    let told = "0.png could not be read: has changed since the scan; run the stage `scan` again";
    assert!(said.contains(told) && !said.contains("run the same command"), "{said}");
    folder.works("collect scan images --work work");
    let told = stage("features");
    assert_eq!(["searched", "present"].map(|key| number(&told, key)), [1.0, 6.0], "{told}");
    stage("pairs");
    stage("match --shard 0/1");
    let status = stage("status --parts 7");
    assert!(value(&status, "complete") == "true" && value(&status, "missing_match") == "[]", "{status}");
}

#[test]
fn unreadable_photographs_of_all_parts_count_and_have_no_place_in_a_sequence() {
    let folder = Folder::new("collect-all-unreadable");
    folder.make("images");
    (1..6).for_each(|i| folder.texture(&format!("images/{i}.png"), Size::new(120, 90), i));
    ["2", "3"].iter().for_each(|i| folder.put(&format!("images/{i}.png"), "no picture"));
    folder.works("collect scan images --work work --pairs sequence --overlap 1");
    let part =
        |i| format!("collect features --work work --device cpu --max-unreadable 1 --quiet --shard {i}/2");
    let said = folder.notes(part(0));
    assert_eq!(said.lines().count(), 1, "also with --quiet: {said}");
    assert!(said.contains("3.png is left out"), "{said}");
    folder.refuses(part(1), 1, &["2.png is left out", "2 of 5 photographs"]);
    assert_eq!(number(&folder.works("collect pairs --work work --json"), "pairs"), 2.0, "1-4 and 4-5");
    folder.texture("images/2.png", Size::new(120, 90), 2);
    let told = folder.works("collect images --output a.db --work work --pairs sequence --overlap 1 --json");
    let chosen = told.lines().find(|line| line.contains("\"stage\":\"pairs\"")).unwrap();
    assert_eq!(number(chosen, "pairs"), 3.0, "2 can be read now");
}

#[test]
#[cfg(unix)]
fn broken_links_and_hidden_files_are_reported() {
    let folder = Folder::with("collect-links", photographs);
    for (target, link) in [
        ("nowhere", "lost.png"),
        ("nowhere", "notes.txt"),
        ("../disk", "more"),
        ("host.1234", ".lock"),
        ("..", "sub folder/around"),
        ("itself.png", "itself.png"),
    ] {
        std::os::unix::fs::symlink(target, folder.at("images").join(link)).unwrap();
    }
    folder.put("images/.hidden.png", "");
    let said = folder.notes("collect scan images --work work");
    let expected = [
        "lost.png: is a broken link",
        "more: is a broken link",
        "around: is a link that leads to itself",
        "itself.png: is a link that leads to itself",
        ".hidden.png",
    ];
    assert!(expected.iter().all(|told| said.contains(told)), "{said}");
    let whole = "collect images --output a.db --work work --device cpu --quiet --max-unreadable";
    folder.refuses(
        format!("{whole} 3"),
        1,
        &["lost.png: is a broken link; it is left out", "4 of 10 photographs cannot be read"],
    );
    folder.works(format!("{whole} 4"));
    let exported = folder.works("collect export --work work --output b.db --json");
    assert!(exported.contains("4 photographs cannot be read"), "the verdict counts them: {exported}");
    assert!(folder.notes("collect status --work work").contains("lost.png is left out: is a broken link"));
    assert!(!said.contains("notes.txt") && !said.contains(".lock"), "{said}");
    // On another machine the link may lead elsewhere, so its own name is recorded.
    std::os::unix::fs::symlink("images", folder.at("link")).unwrap();
    let told = folder.works("collect scan link --work linked --json");
    assert!(value(&told, "root").ends_with("/link\""), "{told}");
}

#[test]
fn a_photograph_that_has_changed_since_is_not_shown_with_its_matches() {
    let folder = Folder::with("collect-replaced", photographs);
    folder.works("collect images --output a.db --work work --device cpu");
    folder.texture("images/a.png", Size::new(300, 200), 98);
    let said = folder.notes("collect export --work work --output b.db --report page.html");
    assert!(said.contains("the page has no picture of a.png") && said.contains("has changed"), "{said}");
    assert_eq!(said.matches("has no picture").count(), 1, "{said}");
}

#[test]
fn a_photograph_that_was_only_touched_is_searched_once() {
    let folder = Folder::with("collect-touched", photographs);
    let plain = folder.read("images/a.png");
    let placed = |degrees| with_exif_chunk(&plain, &position([degrees, 1, 0, 1, 0, 1], [11, 1, 0, 1, 0, 1]));
    folder.put("images/placed.png", placed(48));
    let whole = collected(&folder, "whole", "");
    folder.works("collect scan images --work work --block 2");
    let touched = std::fs::File::options().write(true).open(folder.at("images/a.png")).unwrap();
    touched.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1)).unwrap();
    let features = || {
        let told = folder.works("collect features --work work --device cpu --json");
        ["searched", "present"].map(|key| number(&told, key))
    };
    assert_eq!((features(), features()), ([7.0, 0.0], [0.0, 7.0]));
    folder.works("collect scan images --work work --block 2");
    assert_eq!(features(), [0.0, 7.0], "after another scan");
    for stage in ["pairs", "match"] {
        folder.works(format!("collect {stage} --work work --device cpu"));
    }
    folder.works("collect export --work work --output touched.db");
    assert_eq!(content(&folder.at("touched.db")), whole);
    // Of the same length, and taken at another place.
    folder.works("collect scan images --work other");
    folder.put("images/placed.png", placed(47));
    folder.refuses(
        "collect features --work other --device cpu",
        1,
        &["placed.png", "changed since the scan"],
    );
    let scan_again = "placed.png: has changed since the scan; run the stage `scan` again";
    folder.works("collect pairs --work other");
    folder.refuses("collect match --work other --device cpu", 1, &[scan_again]);
    let said = folder.notes("collect status --work other");
    assert!(said.contains(scan_again), "{said}");
    std::fs::rename(folder.at("images"), folder.at("elsewhere")).unwrap();
    for stage in ["features", "match"] {
        let said = folder.fails(format!("collect {stage} --work other --device cpu"), 1);
        assert!(said.contains("images: this folder of photographs is not there on this machine"), "{said}");
        assert!(!said.contains("placed.png"), "{said}");
    }
}

#[test]
fn pictures_that_cannot_be_read_are_left_out() {
    let folder = Folder::with("collect-unreadable", photographs);
    folder.put("images/empty.jpg", "");
    folder.put("images/text.png", "no picture");
    folder.put("images/phone.heic", "....ftypheic");
    folder.put("images/notes.txt", "not even an image's name");
    let whole = folder.read("images/c.png");
    folder.put("images/cut off.png", &whole[..whole.len() / 2]);
    let said = folder.notes("collect images --output some.db --report some.html --device cpu");
    for name in ["empty.jpg", "text.png", "cut off.png"] {
        assert!(said.contains(&format!("{name} is left out")), "{name}: {said}");
    }
    assert!(said.contains("phone.heic: heic is not read") && !said.contains("notes.txt"), "{said}");
    assert_eq!(count(&folder.at("some.db"), IMAGES), 6, "the others");
    let status = folder.works("collect status --work some.db.work --json");
    assert!(status.contains("empty.jpg") && value(&status, "complete") == "true", "{status}");
    let of = format!(" of {} pairs", value(&status, "tried"));
    assert!(folder.text("some.html").contains(&of), "the page does not count {of}: {status}");
}

#[test]
fn every_format_of_colour_pictures_is_taken() {
    let folder = Folder::new("collect-formats");
    std::fs::create_dir(folder.at("images")).unwrap();
    let samples = ["colour.webp", "words.j2k", "words.jxl", "colour.bmp", "palette.gif", "colour.jpg"];
    for name in samples {
        let from = format!("{}/../tiepoint/tests/samples/{name}", env!("CARGO_MANIFEST_DIR"));
        folder.put(&format!("images/{name}"), std::fs::read(from).unwrap());
    }
    let said = folder.notes("collect images --output some.db --device cpu");
    assert!(!said.contains("left out"), "{said}");
    assert_eq!(count(&folder.at("some.db"), IMAGES), samples.len() as i64, "{said}");
}

#[test]
fn a_photograph_that_was_too_large_is_found_with_a_higher_limit() {
    let folder = Folder::with("collect-limits", photographs);
    for name in ["large.png", "larger.png"] {
        folder.texture(&format!("images/{name}"), Size::new(300, 200), 5);
    }
    let collect = |name: &str, most: &str| {
        folder.notes(format!("collect images --output {name}.db --device cpu --max-pixels {most}"))
    };
    for (most, found, verified) in [("50000", 6, 10), ("60000", 8, 11)] {
        let said = collect("limited", most);
        let left_out = said.contains("large.png is left out") && said.contains("50000");
        assert_eq!((left_out, said.contains("left out")), (found == 6, found == 6), "{said}");
        let limited = folder.at("limited.db");
        assert_eq!((count(&limited, IMAGES), count(&limited, VERIFIED)), (found, verified), "{most} pixels");
    }
    collect("fresh", "60000");
    assert_eq!(content(&folder.at("limited.db")), content(&folder.at("fresh.db")), "as if found at first");
    folder.works("collect scan images --work parts");
    for (most, found) in [("50K", "6"), ("60K", "2")] {
        let line = format!("collect features --work parts --device cpu --json --max-bytes {most}");
        assert_eq!(value(&folder.works(line), "searched"), found, "{most}");
    }
}

fn leftmost(database: &Path, name: &str) -> f32 {
    let sql = "SELECT cols, data FROM keypoints JOIN images USING (image_id) WHERE name = ?";
    let rows = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let (columns, data): (usize, Vec<u8>) = open(database).query_row(sql, [name], rows).unwrap();
    let (values, _) = data.as_chunks::<4>();
    values.iter().step_by(columns).map(|v| f32::from_le_bytes(*v)).fold(f32::INFINITY, f32::min)
}

#[test]
fn transparent_pixels_have_no_features_and_a_missing_mask_is_reported() {
    let folder = Folder::with("collect-transparent", photographs);
    let opaque = folder.image("images/a.png");
    let shown = Image::from_fn(opaque.size(), |x, _| if x < 120 { 0_u8 } else { 255 });
    folder.write("images/half.png", image::with_alpha(&opaque, &shown).unwrap());
    // Masks among the photographs are no photographs.
    folder.make("images/masks");
    folder.write("images/masks/c.png", shown);
    let said = folder.notes("collect images --output some.db --masks images/masks --device cpu");
    let leftmost = |name| leftmost(&folder.at("some.db"), name);
    assert!(leftmost("a.png") < 100.0, "opaque and without a mask: features everywhere");
    // In COLMAP the centre of the first pixel is at 0.5.
    assert!(leftmost("c.png") >= 120.0, "masked");
    assert!(leftmost("half.png") >= 125.0, "not near what is transparent");
    assert!(said.contains("6 of 7 photographs have no mask"), "{said}");
    assert_eq!(said.matches("have no mask").count(), 1, "once: {said}");
    assert!(said.contains("a.png") && !said.contains("c.png"), "by name: {said}");
    let again = folder.works("collect features --work some.db.work --json");
    assert!(value(&again, "without_mask").contains("half.png"), "told again: {again}");
    folder.refuses("collect images --output b.db --masks nowhere", 2, &["nowhere"]);
    for (photographs, why) in [
        ("images", "a.png: is the mask of a.png and would be a photograph, too"),
        ("images/a.png", "of their own"),
    ] {
        folder.refuses(format!("collect {photographs} --output b.db --masks images"), 1, &[why]);
    }
}

#[test]
fn collections_of_one_photograph_and_of_none() {
    let folder = Folder::new("collect-few");
    folder.texture("alone.png", Size::new(120, 90), 1);
    let told = folder.works("collect alone.png --output alone.db --device cpu --json");
    let estimate = told.lines().find(|line| line.contains(r#""stage":"estimate""#)).unwrap();
    assert_eq!(["photographs", "pairs"].map(|key| number(estimate, key)), [1.0, 0.0], "{estimate}");
    assert!(number(estimate, "database_bytes") > 1e6 && number(estimate, "free_bytes") > 0.0, "{estimate}");
    assert_eq!([IMAGES, VERIFIED].map(|sql| count(&folder.at("alone.db"), sql)), [1, 0]);
    folder.make("nothing");
    folder.put("bad.jpg", "no picture");
    for (images, message) in [
        ("nothing", "there is no image in"),
        ("missing", "missing"),
        ("bad.jpg", "none of the photographs can be read"),
    ] {
        folder.refuses(format!("collect {images} --output {images}.db"), 1, &[message]);
    }
}
