//! Features and matches of other programs.

use super::*;
use std::collections::HashSet;
use tiepoint::collection::{Collection, PhotographFeatures};
use tiepoint::feature::{Descriptors, Features, files};
use tiepoint::matching::files::{MatchFormat, MatchSides, read_matches, read_matches_of};

/// The SIFT features in the work folder by name of photograph, with descriptors of `width` floats.
fn floats(work: &Path, width: usize) -> Vec<(String, Features)> {
    let collection = Collection::open(work).unwrap();
    let of = |i: usize| {
        let PhotographFeatures::Found(found) = collection.features(i).unwrap() else { panic!("found") };
        let Descriptors::U8(bytes) = &found.descriptors else { panic!("bytes") };
        let values = bytes.chunks_exact(128).flat_map(|d| &d[..width]).map(|v| f32::from(*v) / 300.0);
        let descriptors = Descriptors::F32(values.collect());
        let features = Features { descriptors, dimension: width, ..found };
        (collection.photographs()[i].name.clone(), features)
    };
    (0..collection.photographs().len()).map(of).collect()
}

/// Writes features as `given/NAME.npz`.
fn give(folder: &Folder, all: &[(String, Features)]) {
    folder.make("given/sub folder");
    all.iter().for_each(|(name, f)| files::write(folder.at(&format!("given/{name}.npz")), f).unwrap());
}

/// The matches of all pairs of a table, by numbers of images.
fn matches_of(database: &Path, table: &str) -> Vec<([usize; 2], Vec<[u32; 2]>)> {
    let database = open(database);
    let mut statement =
        database.prepare(&format!("SELECT pair_id, data FROM {table} ORDER BY pair_id")).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get::<_, usize>(0)?, row.get::<_, Vec<u8>>(1)?)));
    let pairs = |(id, data): (usize, Vec<u8>)| {
        let words: Vec<u32> = data.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect();
        ([id / 2_147_483_647 - 1, id % 2_147_483_647 - 1], words.as_chunks().0.to_vec())
    };
    rows.unwrap().map(|row| pairs(row.unwrap())).collect()
}

/// For each descriptor of A the nearest of B, its distance and that of the second nearest, by a plain loop.
fn nearest(a: &Features, b: &Features) -> Vec<(u32, f64, f64)> {
    let (Descriptors::F32(va), Descriptors::F32(vb)) = (&a.descriptors, &b.descriptors) else {
        panic!("floats")
    };
    let distance = |p: &[f32], q: &[f32]| {
        p.iter().zip(q).map(|(x, y)| f64::from(x - y) * f64::from(x - y)).sum::<f64>().sqrt()
    };
    let of = |p: &[f32]| {
        let mut best = (0, f64::INFINITY, f64::INFINITY);
        for (i, q) in (0..).zip(vb.chunks_exact(b.dimension)) {
            match distance(p, q) {
                d if d < best.1 => best = (i, d, best.1),
                d => best.2 = best.2.min(d),
            }
        }
        best
    };
    va.chunks_exact(a.dimension).map(of).collect()
}

#[test]
fn given_features_and_matches_give_the_result_of_a_plain_search() {
    let folder = Folder::with("collect-given", photographs);
    collected(&folder, "sift", "--keep scale --max-features 300");
    let all = floats(&folder.at("sift work"), 96);
    give(&folder, &all);
    let given = collected(&folder, "given", "--features given --threads 1 --max-distance 1.5");
    assert_eq!(
        collected(&folder, "two", "--features given --threads 2 --max-distance 1.5"),
        given,
        "two threads"
    );
    let database = folder.at("given.db");
    let verified = count(&database, VERIFIED);
    assert!(verified >= 10, "{verified} pairs are verified");
    assert_eq!(count(&database, "SELECT count(*) FROM descriptors WHERE type = -1 AND cols = 384"), 6);
    for (pair, found) in matches_of(&database, "matches") {
        let [a, b] = pair.map(|i| &all[i].1);
        let (forth, back) = (nearest(a, b), nearest(b, a));
        let accepted = forth.iter().enumerate().filter(|(i, (j, d, second))| {
            *d < 0.77 * second && *d <= 1.5 && back[*j as usize].0 as usize == *i
        });
        let expected: Vec<[u32; 2]> = accepted.map(|(i, (j, ..))| [i as u32, *j]).collect();
        assert_eq!(found, expected, "{pair:?}");
    }
    // With the cosine metric, the length of descriptors does not matter.
    let cosine = collected(&folder, "cosine", "--features given --metric cosine --max-distance none");
    let longer = |(name, features): &(String, Features)| {
        let Descriptors::F32(values) = &features.descriptors else { panic!("floats") };
        let descriptors = Descriptors::F32(values.iter().map(|v| 4.0 * v).collect());
        (name.clone(), Features { descriptors, ..features.clone() })
    };
    give(&folder, &all.iter().map(longer).collect::<Vec<_>>());
    let again = collected(&folder, "longer", "--features given --metric cosine --max-distance none");
    assert_eq!(again, cosine, "descriptors of other lengths");

    // Only the matches, in other orders and some twice.
    give(&folder, &all);
    let (mut text, mut turned) = (String::new(), String::new());
    for (pair, found) in matches_of(&database, "matches") {
        let [a, b] = pair.map(|i| &all[i].0);
        text += &format!("{a}\t{b}\n");
        turned = format!("\n{turned}");
        let rows: String = found.iter().map(|[i, j]| format!("{i} {j}\n")).collect();
        let back: String = found.iter().rev().chain(&found[..3]).map(|[i, j]| format!("{j} {i}\n")).collect();
        text += &format!("{rows}\n");
        turned = format!("{b}\t{a}\n{back}{turned}");
    }
    folder.put("matches.txt", text);
    folder.put("turned.txt", turned);
    let matched = collected(&folder, "matched", "--features given --matches matches.txt");
    let pairs = matches_of(&folder.at("matched.db"), "matches");
    assert_eq!(pairs, matches_of(&database, "matches"), "the matches that were given, each verified");
    assert_eq!(matched, given, "and the inliers and models of those that were searched");
    assert_eq!(
        collected(&folder, "matched", "--features given --matches turned.txt"),
        matched,
        "in another order"
    );
    folder.put("matched work/given.bin", "damaged");
    assert_eq!(collected(&folder, "matched", "--features given --matches turned.txt"), matched, "read again");
    // Pairs whose matches change are verified again.
    let [a, b] = pairs[0].0.map(|i| &all[i].0);
    folder.put("matches.txt", format!("{a}\t{b}\n0 0\n"));
    collected(&folder, "matched", "--features given --matches matches.txt");
    assert_eq!(count(&folder.at("matched.db"), VERIFIED), 0, "a single match");
}

#[test]
fn no_distance_is_too_small_for_unit_vectors() {
    let folder = Folder::with("collect-given-near", photographs);
    collected(&folder, "sift", "--keep scale --max-features 100");
    let of_length = |wanted: f32| {
        let all = floats(&folder.at("sift work"), 128).into_iter().map(|(name, features)| {
            let Descriptors::F32(values) = &features.descriptors else { panic!("floats") };
            let of_length = |d: &[f32]| {
                let length = d.iter().map(|v| v * v).sum::<f32>().sqrt();
                d.iter().map(|v| v / length * wanted).collect::<Vec<_>>()
            };
            let values = values.chunks_exact(128).flat_map(of_length).collect();
            (name, Features { descriptors: Descriptors::F32(values), ..features })
        });
        give(&folder, &all.collect::<Vec<_>>());
    };
    let run = "collect images --features given --device cpu --output";
    of_length(1.0);
    let said = folder.notes(format!("{run} near.db --max-distance 0.05"));
    assert!(!said.contains("left out"), "{said}");
    of_length(30.0);
    folder.refuses(format!("{run} long.db"), 1, &["descriptors of length 30", "--metric cosine"]);
}

#[test]
fn given_features_that_do_not_fit_are_reported() {
    let folder = Folder::with("collect-given-wrong", photographs);
    collected(&folder, "sift", "--keep scale --max-features 100");
    let all = floats(&folder.at("sift work"), 64);
    give(&folder, &all);
    let run = "collect images --device cpu --block 2 --features given";
    let npz = |i: usize| folder.at(&format!("given/{}.npz", all[i].0));
    let put = |i: usize, change: &dyn Fn(&mut Features)| {
        let mut features = all[i].1.clone();
        change(&mut features);
        files::write(npz(i), &features).unwrap();
    };
    std::fs::remove_file(npz(0)).unwrap();
    put(1, &|f| f.keypoints[4].x = 900.0);
    put(2, &|f| f.image = Size::new(480, 360));
    let [_, told] = succeeds(&mut folder.tiepoint(format!("{run} --output some.db")));
    for words in ["no features are given for it", "feature 4 lies at (900", "picture of 480x360"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert_eq!(count(&folder.at("some.db"), IMAGES), 3, "the others are there");
    let mut endless = all[3].1.clone();
    let Descriptors::F32(values) = &mut endless.descriptors else { panic!("floats") };
    values[64 * 9 + 1] = f32::NAN;
    let refused = Collection::open(folder.at("sift work")).unwrap().import_features(3, &endless).unwrap_err();
    assert!(refused.to_string().contains("a descriptor holds a number that is infinite or not a number"));
    put(0, &|f| *f = f.subset(&[0, 1]).unwrap());
    put(1, &|f| {
        *f = Features { descriptors: Descriptors::U8(vec![1; 128 * f.len()]), dimension: 128, ..f.clone() }
    });
    put(2, &|_| ());
    folder.refuses(format!("{run} --output some.db"), 1, &["64 floats", "128 bytes", "one kind"]);
    put(1, &|_| ());
    let (a, b) = (&all[0].0, &all[1].0);
    for (text, words) in [
        (format!("{a}\t{b}\n0 1\n5 0\n"), "which has 2"),
        (format!("{a}\t{b}\n0\n"), "line 2"),
        ("a.png\tnobody.png\n0 0\n".to_owned(), "no photograph"),
    ] {
        folder.put("matches.txt", text);
        folder.refuses(format!("{run} --output some.db --matches matches.txt"), 1, &[words]);
    }
    for (more, words) in [
        ("--contrast 0.03", "no options of a search"),
        ("--masks images", "no masks"),
        ("--pairs gps --matches matches.txt", "cannot be used with"),
        ("--pairs matches", "expected auto"),
    ] {
        folder.refuses(format!("{run} --output other.db {more}"), 2, &[words]);
    }
    folder.refuses("collect images --output h.db --device cpu --features images/a.png", 1, &["no HDF5 file"]);
}

/// The file was half old: the length of another pair of the same photograph was the one that was checked.
#[test]
fn matches_of_another_number_of_features_are_refused_for_every_pair() {
    let folder = Folder::with("collect-given-lengths", photographs);
    collected(&folder, "sift", "--keep scale --max-features 100");
    let few = |(name, found): (String, Features)| (name, found.subset(&[0, 1, 2]).unwrap());
    give(&folder, &floats(&folder.at("sift work"), 64).into_iter().map(few).collect::<Vec<_>>());
    // Written by h5py: matches0 of a.png/c.png has 2 values and that of a.png/d.png has 3.
    folder.put("m.h5", include_bytes!("../../../../tiepoint/tests/samples/hloc-lengths.h5"));
    folder.refuses(
        "collect images --device cpu --features given --output some.db --matches m.h5",
        1,
        &["matches of a.png and c.png are given for 2 features of a.png, which has 3"],
    );
}

#[test]
fn what_is_not_used_beside_given_features_and_matches_is_told() {
    let folder = Folder::with("collect-given-unused", photographs);
    let warnings = |line: String| {
        let said = folder.notes(format!("collect images --device cpu --output some.db {line}"));
        let told = said.lines().filter_map(|line| Some(line.split_once("warning: ")?.1.to_owned()));
        told.filter(|told| told.contains("no effect") || told.contains("left out")).collect::<Vec<_>>()
    };
    let search = "--ratio 0.5 --max-distance none --one-way --any-sign";
    assert_eq!(
        warnings(format!("--work w --keep scale --max-features 100 {search}")),
        [""; 0],
        "all are used"
    );
    assert_eq!(
        warnings("--work metric --metric cosine".into()),
        ["no effect without given features: metric"]
    );
    give(&folder, &floats(&folder.at("w"), 64));
    let pairs = "a.png c.png\n0 0\n\na.png gone.png\n1 1\n2 2\n\ngone.png other.png\n\n";
    folder.put("m.txt", pairs);
    let told = warnings(format!("--features given --metric cosine --matches m.txt --overlap 3 {search}"));
    let expected = [
        "2 pairs of given matches are left out, as they are not of two photographs of the collection: line 4: \"gone.png\" is no \
         photograph of the collection, whose names are like \"a.png\"",
        "no effect with pairs matches: overlap, ratio, one-way, any-sign, max-distance",
    ];
    assert_eq!(told, expected);
    let status = folder.works("collect status --work some.db.work --json");
    assert_eq!(number(&status, "tried"), 1.0, "{status}");
}

/// It was reported once for each photograph.
#[test]
fn a_damaged_file_of_all_features_ends_the_stage() {
    let folder = Folder::new("collect-given-damaged");
    folder.make("images/sub");
    for name in ["images/a.png", "images/sub/b.png"] {
        folder.write(name, Image::filled(Size::new(8, 6), 1, 7_u8));
    }
    let whole: &[u8] = include_bytes!("../../../../tiepoint/tests/samples/hloc.h5");
    let run = "collect images --device cpu --max-distance none --output some.db --features f.h5";
    folder.put("f.h5", whole);
    folder.works(run);
    assert_eq!(count(&folder.at("some.db"), "SELECT sum(rows) FROM keypoints"), 5);
    let mut refused = 0;
    for at in (0..whole.len() - 4).filter(|at| &whole[*at..][..4] == b"HEAP") {
        let mut damaged = whole.to_vec();
        damaged[at] = 0;
        folder.put("f.h5", damaged);
        let said = folder.fails(run, 1);
        assert!(
            said.matches("invalid local heap signature").count() == 1 && !said.contains("left out"),
            "{said}"
        );
        refused += 1;
    }
    assert!(refused > 1, "the file and its groups");
}

#[test]
fn verified_pairs_are_written_for_other_programs() {
    let folder = Folder::with("collect-formats", photographs);
    folder.works("collect images --output all.db --device cpu");
    let export = "collect export --work all.db.work --output Homol";
    for (more, code, why) in [
        ("--format micmac", 1, "sub folder/a.png are both a.png"),
        ("--format asp", 1, "without folders and extensions"),
        ("--format csv", 2, "asp, micmac, s2p, qgis, vrt"),
        ("--format asp --colmap 3.8", 2, "cannot be used with"),
    ] {
        folder.refuses(format!("{export} {more}"), code, &[why]);
    }
    assert!(!folder.has("Homol"), "nothing was written");
    folder.works("collect images/a.png images/c.png images/d.png --output few.db --device cpu");
    let collection = Collection::open(folder.at("few.db.work")).unwrap();
    let places = |i: usize| {
        let PhotographFeatures::Found(found) = collection.features(i).unwrap() else { panic!("found") };
        found.keypoints.iter().map(|k| ([k.x, k.y], k.scale)).collect::<Vec<_>>()
    };
    let verified = matches_of(&folder.at("few.db"), "two_view_geometries");
    assert_eq!(verified.len(), 3, "all pairs");
    for (format, to, file) in [
        ("asp", "run", "run-A__B.txt"),
        ("micmac", "Homol", "Homol/PastisA.png/B.png.txt"),
        ("s2p", "tiles", "tiles/A__B/sift_matches.txt"),
        ("qgis", "points", "points/A__B.points"),
    ] {
        let said = folder.works(format!("collect export --work few.db.work --output {to} --format {format}"));
        assert!(said.contains("3 verified pairs"), "{said}");
        for (pair, inliers) in &verified {
            let [a, b] = pair.map(places);
            let names = pair.map(|i| collection.photographs()[i].name.strip_suffix(".png").unwrap());
            let path = folder.at(&file.replace('A', names[0]).replace('B', names[1]));
            let rows = read_matches(&path).unwrap().rows;
            // Each pair of places once.
            let mut seen = HashSet::new();
            let places = inliers.iter().map(|[i, j]| (a[*i as usize], b[*j as usize]));
            let places = places.filter(|(a, b)| seen.insert([a.0, b.0].map(|xy| xy.map(f32::to_bits))));
            let places: Vec<_> = places.collect();
            assert_eq!(rows.len(), places.len(), "{path:?}");
            for (row, (a, b)) in rows.iter().zip(places) {
                assert_eq!((row.a_xy, row.b_xy), (a.0, b.0), "{path:?}");
                assert!(format != "asp" || row.scales == [a.1, b.1], "{path:?}");
            }
        }
    }
    // GDAL: a is placed on the map of d, c on that of a, none where neither lies on one.
    let maps = "collect export --work few.db.work --output maps --format vrt";
    folder.refuses(maps, 1, &["lies on a map", "qgis"]);
    folder.put("images/d.pgw", "0.5\n0\n0\n-0.5\n500000.25\n4599999.75\n");
    let said = folder.works(maps);
    assert!(said.contains("2 verified pairs"), "{said}");
    let place = image::read_georeference(folder.at("images/d.png")).unwrap().unwrap();
    let sides = MatchSides { places: [None, Some(&place)], ..MatchSides::default() };
    let (vrt, text) = ("maps/a__d.vrt", folder.text("maps/a__d.vrt"));
    let (found, expected) = (
        read_matches_of(folder.at(vrt), &sides).unwrap(),
        read_matches(folder.at("points/a__d.points")).unwrap(),
    );
    assert_eq!(found.format, MatchFormat::Vrt);
    assert_eq!(found.rows.len(), expected.rows.len());
    let near = |a: [f32; 2], b: [f32; 2]| (a[0] - b[0]).abs().max((a[1] - b[1]).abs()) < 1e-3;
    assert!(found.rows.iter().zip(&expected.rows).all(|(a, b)| a.a_xy == b.a_xy && near(a.b_xy, b.b_xy)));
    assert!(
        text.contains(&folder.at("").display().to_string()) && text.contains("a.png</SourceFilename>"),
        "{text}"
    );
    folder.put("images/a.pgw", folder.text("images/d.pgw"));
    folder.remove("images/d.pgw");
    folder.works(maps);
    assert!(
        folder.has("maps/c__a.vrt") && folder.has("maps/d__a.vrt"),
        "the picture that lies on a map stays"
    );
    folder.works("collect export --work few.db.work --output qgis --format qgis");
    assert!(folder.has("qgis/d__a.points"), "so it does in QGIS");
    // The same from photographs in one call.
    folder.works("collect images/a.png images/c.png images/d.png --output again --device cpu --format asp");
    assert_eq!(folder.read("again-a__d.txt"), folder.read("run-a__d.txt"));
    // Files that this command did not write stay; its files of pairs that no longer exist are removed.
    folder.make("mine");
    folder.put("mine/c__a.points", "edited by hand");
    let export = "collect export --work few.db.work --format qgis --output";
    folder.refuses(format!("{export} mine"), 1, &["c__a.points is there", "not written by this command"]);
    assert_eq!(folder.text("mine/c__a.points"), "edited by hand");
    folder.refuses(format!("{export} mine/c__a.points"), 2, &["is a file; name a folder"]);
    folder.works(format!("{export} points"));
    folder.works(
        "collect images/a.png images/c.png --work two.work --device cpu --format qgis --output points",
    );
    assert!(folder.has("points/c__a.points") && !folder.has("points/d__a.points"), "{:?}", folder.files());
    for (from, to) in [("a", "a"), ("c", "b__c"), ("d", "a__b"), ("other", "c")] {
        folder.make("joined");
        folder.put(&format!("joined/{to}.png"), folder.read(&format!("images/{from}.png")));
    }
    folder.refuses(
        "collect joined --device cpu --format s2p --output s2p",
        1,
        &["would share one name", "b__c"],
    );
}

#[test]
fn no_result_replaces_what_a_collection_reads() {
    let folder = Folder::with("collect-inputs", photographs);
    let images = "images/a.png images/c.png";
    folder.put("pairs.txt", "a.png c.png\n");
    folder.works(format!("collect {images} --output a.db --device cpu --pairs pairs.txt"));
    folder.make("masks");
    folder.write("masks/a.png.png", Image::filled(Size::new(240, 180), 1, 255_u8));
    let collection = Collection::open(folder.at("a.db.work")).unwrap();
    let PhotographFeatures::Found(found) = collection.features(0).unwrap() else { panic!("found") };
    folder.make("given");
    for name in ["a.png", "c.png"] {
        files::write(folder.at(&format!("given/{name}.npz")), &found).unwrap();
    }
    for line in [
        "export --work a.db.work --output b.db --pair-list pairs.txt".to_owned(),
        format!("{images} --output b.db --device cpu --masks masks --pair-list masks/a.png.png"),
        format!("{images} --output b.db --device cpu --features given --pair-list given/a.png.npz"),
    ] {
        folder.refuses(format!("collect {line}"), 2, &["would replace the input"]);
    }
    folder.put("masks/c.png.png", "no image");
    let told = folder.notes(format!("collect {images} --output m.db --device cpu --masks masks"));
    assert!(told.contains("c.png is left out: ") && told.contains("c.png.png: not an image"), "{told}");
}

#[test]
fn features_of_pictures_that_are_not_stored_upright_are_told_of() {
    let folder = Folder::new("collect-turned");
    folder.make("images");
    let photograph = view(Size::new(240, 180), 4, 0.05, 1.0, [0.0; 2], [0.0; 2]);
    for (name, orientation) in [("a.jpg", 3_u8), ("b.jpg", 6)] {
        folder.write(&format!("images/{name}"), photograph.clone());
        folder.orient(&format!("images/{name}"), orientation);
        folder.make("given");
        folder.works(format!("detect images/{name} --output given/{name}.csv --device cpu"));
    }
    let told = folder.notes("collect images --output x.db --device cpu --features given");
    assert!(told.contains("2 photographs are not stored upright, such as a.jpg"), "{told}");
    assert!(told.contains("b.jpg is left out") && told.contains("EXIF orientation 6"), "{told}");
    for name in ["a.jpg", "b.jpg"] {
        folder.works(format!("detect images/{name} --output given/{name}.csv --device cpu --no-orient"));
    }
    let told = folder.notes("collect images --output y.db --device cpu --features given");
    assert!(!told.contains("left out"), "{told}");
}
