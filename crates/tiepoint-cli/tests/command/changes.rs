//! `tiepoint collect` follows its inputs: whatever changes between two runs, the database is that of a fresh run.

use super::collect::{content, count, exif, with_exif_chunk};
use super::*;
use std::collections::BTreeMap;
use std::time::SystemTime;
use tiepoint::collection::{
    Collection, CollectionOptions, FeatureOptions, PairChoice, PairOptions, PhotographFeatures, Shard,
};
use tiepoint::device::Processor;
use tiepoint_colmap::ExportOptions;

const SMALL: Size = Size::new(96, 72);

/// The bytes of small photographs: of each of `scenes` as many views.
fn pool(folder: &Folder, scenes: u64, views: u32) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for scene in 0..scenes {
        for i in 0..views {
            let (angle, shift) = (0.03 * f64::from(i), 1.5 * f64::from(i));
            let moving = viewpoint(SMALL, angle, 1.0 + 0.01 * f64::from(i), [0.02, 0.0], [shift, -1.0]).unwrap();
            let options = SceneOptions::default().with_size(SMALL).with_seed(20 + scene);
            let options = options.with_moving_from_reference(moving);
            let scene = Scene::<u8>::render(&options, &Cpu::sequential()).unwrap();
            let path = folder.write("one.png", &scene.moving.into());
            let plain = std::fs::read(path).unwrap();
            all.push(match i % 3 {
                // A focal length, which two-view geometry follows from.
                0 => with_exif_chunk(&plain, &exif(26, (0xa405, 3, 1, 30 + 5 * i), &[])),
                1 => with_exif_chunk(&plain, &position(i)),
                _ => plain,
            });
        }
    }
    std::fs::remove_file(folder.at("one.png")).unwrap();
    all
}

/// Camera data that hold a position, some metres further north for each `i`.
fn position(i: u32) -> Vec<u8> {
    let mut bytes = b"II*\0\x08\0\0\0".to_vec();
    let mut list = |fields: &[(u16, u16, u32, u32)]| {
        bytes.extend_from_slice(&(fields.len() as u16).to_le_bytes());
        for (tag, kind, count, value) in fields {
            bytes.extend_from_slice(&[*tag, *kind].map(u16::to_le_bytes).concat());
            bytes.extend_from_slice(&[*count, *value].map(u32::to_le_bytes).concat());
        }
        bytes.extend_from_slice(&[0; 4]);
    };
    let (north, east) = (u32::from_le_bytes(*b"N\0\0\0"), u32::from_le_bytes(*b"E\0\0\0"));
    list(&[(0x8825, 4, 1, 26)]);
    // Five fields end at 26 + 2 + 60 + 4.
    list(&[(1, 2, 2, north), (2, 5, 3, 92), (3, 2, 2, east), (4, 5, 3, 92), (6, 5, 1, 92)]);
    [48, 1, 0, 1, 20 * i, 100].iter().for_each(|n: &u32| bytes.extend_from_slice(&n.to_le_bytes()));
    bytes
}

/// Photographs, masks and a list of pairs that change, and what is asked for.
struct World {
    folder: Folder,
    pool: Vec<Vec<u8>>,
    options: CollectionOptions,
    runs: u32,
}

impl World {
    fn new(test: &str, scenes: u64, views: u32) -> Self {
        let folder = Folder::new(test);
        let pool = pool(&folder, scenes, views);
        let world = Self { folder, pool, options: CollectionOptions::default().with_block(Some(4)), runs: 0 };
        ["images/sub", "masks/sub"].map(|inner| std::fs::create_dir_all(world.folder.at(inner)).unwrap());
        world
    }

    fn photograph(&self, name: &str) -> PathBuf {
        self.folder.0.join("images").join(name)
    }

    fn put(&self, name: &str, number: usize) {
        std::fs::write(self.photograph(name), &self.pool[number % self.pool.len()]).unwrap();
    }

    fn list(&self, pairs: &[(&str, &str)]) -> PathBuf {
        let path = self.folder.0.join("list.txt");
        let lines: String = pairs.iter().map(|(a, b)| format!("{a}\t{b}\n")).collect();
        std::fs::write(&path, lines).unwrap();
        path
    }

    /// All stages in the folder `name`, to the database of this name.
    fn collect(&self, name: &str) -> tiepoint::Result<()> {
        let cpu = Cpu::with_threads(2)?;
        let devices = [Processor::from(cpu.clone())];
        let images = [self.folder.0.join("images")];
        let (collection, _) = Collection::scan(self.folder.0.join(name), &images, &self.options, &cpu)?;
        collection.extract(Shard::ALL, &devices)?;
        collection.choose_pairs(Shard::ALL, &cpu)?;
        collection.match_pairs(Shard::ALL, &devices)?;
        let database = self.folder.0.join(format!("{name}.db"));
        tiepoint_colmap::export(&collection, database, &ExportOptions::default()).map(drop)
    }

    /// Goes on in the old work folder, and compares with a new one; the number of verified pairs.
    fn check(&mut self, what: &str) -> i64 {
        self.runs += 1;
        let fresh = format!("fresh{}", self.runs);
        let went = |result: tiepoint::Result<()>| result.map_err(|e| e.to_string());
        let (kept, made) = (went(self.collect("kept")), went(self.collect(&fresh)));
        let database = |name: &str| self.folder.at(&format!("{name}.db"));
        if made.is_ok() {
            assert_eq!(kept, made, "{what}: in the folder that was kept and in a fresh one");
            assert_eq!(content(&database("kept")), content(&database(&fresh)), "{what}: {}", self.folder.0.display());
        } else {
            // Both name the same photographs and reasons.
            let told = |result: Result<(), String>| result.unwrap_err().replace(&fresh, "kept");
            assert_eq!(told(kept), told(made), "{what}");
            return 0;
        }
        let verified = count(&database(&fresh), "SELECT count(*) FROM two_view_geometries");
        let _ = std::fs::remove_dir_all(self.folder.at(&fresh));
        std::fs::remove_file(database(&fresh)).unwrap();
        verified
    }

    fn with_pairs(&mut self, pairs: PairOptions) {
        self.options = self.options.clone().with_pairs(pairs);
    }
}

/// Five views of one scene.
fn five(test: &str) -> World {
    let world = World::new(test, 2, 6);
    ["b.png", "c.png", "d.png", "e.png", "f.png"].iter().zip(0..).for_each(|(name, i)| world.put(name, i));
    world
}

#[test]
fn a_photograph_that_turns_readable_or_unreadable_takes_its_own_rows_along() {
    let mut world = five("changes-readable");
    let whole = world.check("at first");
    assert_eq!(whole, 10, "all of five");
    std::fs::write(world.photograph("c.png"), &world.pool[1][..500]).unwrap();
    assert_eq!(world.check("cut off"), 6, "four are left");
    world.put("c.png", 1);
    assert_eq!(world.check("whole again"), whole);
    std::fs::remove_file(world.photograph("c.png")).unwrap();
    assert_eq!(world.check("removed"), 6);
    world.put("c.png", 1);
    world.put("a.png", 5);
    assert_eq!(world.check("two added, one of them the first by name"), 15);
    world.put("d.png", 7);
    assert_eq!(world.check("another picture in its place"), 10);
    std::fs::rename(world.photograph("a.png"), world.photograph("z.png")).unwrap();
    world.check("renamed: its pairs turn round");
}

#[test]
fn a_limit_that_is_raised_has_photographs_matched() {
    let folder = Folder::new("changes-limit");
    let world = five("changes-limit-pool");
    std::fs::rename(world.folder.at("images"), folder.at("images")).unwrap();
    let run = |work: &str, most: &str| {
        let (images, output, work) = (folder.at("images"), folder.at(&format!("{work}.db")), folder.at(work));
        let command = ["collect", &images, "--output", &output, "--work", &work, "--max-pixels", most];
        works(&[&command[..], &["--device", "cpu"]].concat());
        count(&output, "SELECT count(*) FROM two_view_geometries")
    };
    let size = Size::new(120, 90);
    folder.texture("images/large.png", size, 3);
    folder.texture("images/larger.png", size, 3);
    assert_eq!(run("kept", "7000"), 10, "without the large ones");
    assert_eq!(run("kept", "20000"), 11, "the large ones are one picture");
    run("fresh", "20000");
    assert_eq!(content(&folder.at("kept.db")), content(&folder.at("fresh.db")));
}

#[test]
fn an_edited_list_is_read_again() {
    let mut world = five("changes-list");
    let list = world.list(&[("b.png", "c.png")]);
    world.with_pairs(PairOptions::default().with_choice(PairChoice::List).with_list(Some(list)));
    assert_eq!(world.check("one pair"), 1);
    world.list(&[("b.png", "c.png"), ("d.png", "e.png")]);
    assert_eq!(world.check("a line more"), 2);
    world.list(&[("d.png", "e.png")]);
    assert_eq!(world.check("a line less"), 1);
    world.list(&[("d.png", "nobody.png")]);
    world.check("a name that is not there");
}

#[test]
fn a_sequence_goes_by_name_however_photographs_came() {
    let mut world = five("changes-sequence");
    world.with_pairs(PairOptions::default().with_choice(PairChoice::Sequence).with_overlap(1).with_closure(false));
    assert_eq!(world.check("five"), 4);
    world.put("c2.png", 5);
    assert_eq!(world.check("one between"), 5);
}

#[test]
fn masks_and_options_of_pairs_may_change() {
    let mut world = five("changes-options");
    world.check("at first");
    let mask = |name: &str, from: usize| {
        let mask = Image::from_fn(SMALL, |x, _| if x < from { 0_u8 } else { 255 });
        world.folder.write(&format!("masks/{name}"), &mask.into());
    };
    mask("b.png.png", 90);
    let masks = Some(world.folder.0.join("masks"));
    let with_masks = world.options.clone().with_features(FeatureOptions::default().with_masks(masks));
    mask("c.png", 96);
    world.options = with_masks;
    let masked = world.check("two masks, one of which hides all");
    assert!(masked <= 6, "{masked} pairs");
    let mask = Image::<u8>::from_fn(SMALL, |_, _| 255);
    world.folder.write("masks/c.png", &mask.into());
    assert!(world.check("a mask that hides nothing") > masked);
    std::fs::remove_file(world.folder.at("masks/b.png.png")).unwrap();
    assert_eq!(world.check("a mask less"), 10);
    let matching = world.options.matching.with_ratio(Some(0.9));
    world.options = world.options.clone().with_matching(matching);
    world.check("another ratio");
    for choice in [PairChoice::TopScale, PairChoice::Gps, PairChoice::Sequence, PairChoice::Exhaustive] {
        world.with_pairs(PairOptions::default().with_choice(choice).with_top_matches(3));
        world.check(&format!("{choice:?}"));
    }
}

#[test]
fn features_from_elsewhere_have_pairs_matched_again() {
    let mut world = five("changes-import");
    world.check("at first");
    let collection = Collection::open(world.folder.0.join("kept")).unwrap();
    let PhotographFeatures::Found(few) = collection.features(1).unwrap() else { panic!("found") };
    let few = few.subset(&[0, 1, 2]).unwrap();
    collection.import_features(1, &few).unwrap();
    world.collect("kept").unwrap();
    let database = world.folder.at("kept.db");
    assert_eq!(count(&database, "SELECT rows FROM keypoints WHERE image_id = 2"), 3, "those that were given");
    assert_eq!(count(&database, "SELECT count(*) FROM two_view_geometries"), 6, "none with three features");
}

#[test]
fn a_damaged_record_costs_no_features() {
    let mut world = five("changes-record");
    world.check("at first");
    let features = || -> BTreeMap<PathBuf, SystemTime> {
        let mut found = BTreeMap::new();
        for row in std::fs::read_dir(world.folder.at("kept/features")).unwrap() {
            for file in std::fs::read_dir(row.unwrap().path()).unwrap().map(Result::unwrap) {
                found.insert(file.path(), file.metadata().unwrap().modified().unwrap());
            }
        }
        found
    };
    let before = features();
    assert_eq!(before.len(), 5);
    for name in ["images.json", "collection.json"] {
        let path = world.folder.at(&format!("kept/{name}"));
        let good = std::fs::read(&path).unwrap();
        for i in (0..good.len()).step_by(good.len() / 12) {
            let mut bad = good.clone();
            bad[i] ^= 2;
            std::fs::write(&path, bad).unwrap();
            let stage = ["collect", "export", "--work", &world.folder.at("kept"), "--output", &world.folder.at("x.db")];
            let message = fails(&stage, 1);
            assert!(message.contains(name) && message.contains("scan"), "bit {i}: {message}");
            world.collect("kept").unwrap();
        }
        std::fs::write(&path, "").unwrap();
        world.collect("kept").unwrap();
        std::fs::remove_file(&path).unwrap();
        world.collect("kept").unwrap();
    }
    assert_eq!(features(), before, "the features are those that were there");
    world.check("after all damage");
}
