//! `tiepoint collect` follows its inputs: whatever changes between two runs, the database is that of a fresh run.

use super::collect::{VERIFIED, all_files, content, count, exif, position, with_exif_chunk};
use super::*;
use std::collections::BTreeMap;
#[cfg(unix)]
use std::os::unix::{fs::PermissionsExt, process::CommandExt};
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};
use tiepoint::collection::{
    Collection, CollectionOptions, FeatureOptions, PairChoice, PairOptions, PhotographFeatures,
};
use tiepoint::options::Named;
use tiepoint::synth::Random;

const SMALL: Size = Size::new(96, 72);

/// The bytes of small photographs: `views` views of each of `scenes` scenes.
pub(super) fn pool(folder: &Folder, scenes: u64, views: u32) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for scene in 0..scenes {
        for i in 0..views {
            let at = f64::from(i);
            folder.write(
                "one.png",
                view(SMALL, 20 + scene, 0.03 * at, 1.0 + 0.01 * at, [0.02, 0.0], [1.5 * at, -1.0]),
            );
            let plain = folder.read("one.png");
            all.push(match i % 3 {
                // A focal length, on which two-view geometry depends.
                0 => with_exif_chunk(&plain, &exif(26, (0xa405, 3, 1, 30 + 5 * i), &[])),
                // A position, some metres further north for each.
                1 => {
                    with_exif_chunk(&plain, &position([48, 1, 0, 1, 20 * i, 100], [48, 1, 0, 1, 20 * i, 100]))
                }
                _ => plain,
            });
        }
    }
    folder.remove("one.png");
    all
}

/// Photographs, masks and a list of pairs that change, and the options of the runs.
struct World {
    folder: Folder,
    pool: Vec<Vec<u8>>,
    options: CollectionOptions,
    program: PathBuf,
    runs: u32,
    /// Files that were damaged since the last run.
    damaged: u32,
}

impl World {
    fn new(test: &str, scenes: u64, views: u32) -> Self {
        let folder = Folder::new(test);
        let pool = pool(&folder, scenes, views);
        let world = Self {
            program: program(&folder),
            folder,
            pool,
            options: CollectionOptions::default().with_block(Some(4)),
            runs: 0,
            damaged: 0,
        };
        ["images/sub", "masks/sub"].iter().for_each(|inner| world.folder.make(inner));
        world
    }

    fn photograph(&self, name: &str) -> PathBuf {
        self.folder.at("images").join(name)
    }

    fn put(&self, name: &str, number: usize) {
        std::fs::write(self.photograph(name), &self.pool[number % self.pool.len()]).unwrap();
    }

    fn list(&self, pairs: &[(&str, &str)]) -> PathBuf {
        let path = self.folder.at("list.txt");
        let lines: String = pairs.iter().map(|(a, b)| format!("{a}\t{b}\n")).collect();
        std::fs::write(&path, lines).unwrap();
        path
    }

    /// The command with all stages in the folder `name`, to the database of this name.
    fn command(&self, name: &str) -> Command {
        let pairs = &self.options.pairs;
        let which = match &pairs.list {
            Some(list) => list.display().to_string(),
            None => pairs.choice.to_string(),
        };
        let line = format!("collect images --output {name}.db --work {name} --pairs {which} --block 4");
        let mut command = Command::new(&self.program);
        command.args(line.split_whitespace()).args(["--device", "cpu", "--threads", "2"]);
        command.current_dir(&self.folder.0);
        #[cfg(unix)]
        if self.program.starts_with(&self.folder.0) {
            command.uid(NOBODY).gid(NOBODY);
        }
        let numbers = [
            ("--overlap", pairs.overlap.to_string()),
            ("--neighbours", pairs.neighbours.to_string()),
            ("--top-matches", pairs.top_matches.to_string()),
            ("--top-partners", pairs.top_partners.to_string()),
            ("--exhaustive-up-to", pairs.exhaustive_up_to.to_string()),
            ("--ratio", self.options.matching.ratio.unwrap().to_string()),
            ("--inlier-distance", self.options.two_view.threshold_px.to_string()),
        ];
        numbers.iter().for_each(|(name, value)| _ = command.args([*name, value]));
        if !pairs.closure {
            command.arg("--no-closure");
        }
        if let Some(masks) = &self.options.features.masks {
            command.arg("--masks").arg(masks);
        }
        command
    }

    /// Runs all stages. The error is the message of the command.
    fn collect(&self, name: &str) -> Result<(), String> {
        let (code, [_, said]) = ran(self.command(name).arg("--quiet"));
        match code {
            Some(0) => Ok(()),
            Some(1) if !said.contains("panicked") => Err(said),
            other => panic!("{other:?}: {said}"),
        }
    }

    /// Runs in the old work folder and in a new one, compares the databases, and returns the number of verified pairs.
    fn check(&mut self, what: &str) -> i64 {
        self.runs += 1;
        let fresh = format!("fresh{}", self.runs);
        let (mut kept, made) = (self.collect("kept"), self.collect(&fresh));
        // A run stops at a damaged file, and the next run continues.
        while made.is_ok() && self.damaged > 0 && kept.is_err() {
            self.damaged -= 1;
            kept = self.collect("kept");
        }
        self.damaged = 0;
        let database = |name: &str| self.folder.at(&format!("{name}.db"));
        if made.is_ok() {
            assert_eq!(kept, made, "{what}: the kept folder and a fresh one");
            assert_eq!(
                content(&database("kept")),
                content(&database(&fresh)),
                "{what}: {}",
                self.folder.0.display()
            );
        } else {
            let told = |result: Result<(), String>| result.unwrap_err().replace(&fresh, "kept");
            assert_eq!(told(kept), told(made), "{what}");
            return 0;
        }
        let verified = count(&database(&fresh), VERIFIED);
        let _ = std::fs::remove_dir_all(self.folder.at(&fresh));
        std::fs::remove_file(database(&fresh)).unwrap();
        verified
    }

    fn with_pairs(&mut self, pairs: PairOptions) {
        self.options = self.options.clone().with_pairs(pairs);
    }
}

/// The number of the account `nobody` and of its group.
#[cfg(unix)]
const NOBODY: u32 = 65_534;

/// The program. Root may read and write whatever file permissions say, so where root runs the tests this is a copy in
/// `folder` for the account `nobody`.
fn program(folder: &Folder) -> PathBuf {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_tiepoint"));
    #[cfg(unix)]
    {
        folder.put("probe", "");
        std::fs::set_permissions(folder.at("probe"), std::fs::Permissions::from_mode(0o000)).unwrap();
        let reads_all = std::fs::File::open(folder.at("probe")).is_ok();
        folder.remove("probe");
        if reads_all {
            let copy = folder.at("tiepoint");
            // Not by this process: the tests beside this one start programs, which would inherit the open copy for a
            // moment, and a program that is open for writing cannot be started.
            succeeds(Command::new("cp").arg(program).arg(&copy));
            std::os::unix::fs::chown(&folder.0, Some(NOBODY), Some(NOBODY)).unwrap();
            return copy;
        }
    }
    program
}

/// Five views of one scene.
fn five(test: &str) -> World {
    let world = World::new(test, 2, 6);
    ["b.png", "c.png", "d.png", "e.png", "f.png"].iter().zip(0..).for_each(|(name, i)| world.put(name, i));
    world
}

#[test]
fn a_photograph_that_becomes_readable_or_unreadable_changes_its_own_rows() {
    let mut world = five("changes-readable");
    let whole = world.check("at first");
    assert_eq!(whole, 10, "all pairs of five");
    std::fs::write(world.photograph("c.png"), &world.pool[1][..500]).unwrap();
    assert_eq!(world.check("cut off"), 6, "all pairs of four");
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
    world.check("renamed: the order within its pairs changes");
}

#[test]
#[cfg(unix)]
fn a_photograph_without_read_permission_is_read_again_in_each_run() {
    let mut world = five("changes-permission");
    let whole = world.check("at first");
    let permit = |world: &World, mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(world.photograph("c.png"), permissions).unwrap();
    };
    std::fs::File::open(world.photograph("c.png")).unwrap().set_modified(SystemTime::now()).unwrap();
    permit(&world, 0);
    for _ in 0..2 {
        let said = world.collect("kept").unwrap_err();
        assert!(said.contains("c.png could not be read: Permission denied"), "{said}");
    }
    world.check("the same in a fresh folder");
    permit(&world, 0o644);
    assert_eq!(world.check("permitted again"), whole);
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
fn a_sequence_follows_names_and_not_the_order_of_arrival() {
    let mut world = five("changes-sequence");
    world.with_pairs(
        PairOptions::default().with_choice(PairChoice::Sequence).with_overlap(1).with_closure(false),
    );
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
        world.folder.write(&format!("masks/{name}"), mask);
    };
    mask("b.png.png", 90);
    let masks = Some(world.folder.at("masks"));
    let with_masks = world.options.clone().with_features(FeatureOptions::default().with_masks(masks));
    mask("c.png", 96);
    world.options = with_masks;
    let masked = world.check("two masks, one of which hides all");
    assert!(masked <= 6, "{masked} pairs");
    let mask = Image::<u8>::from_fn(SMALL, |_, _| 255);
    world.folder.write("masks/c.png", mask);
    assert!(world.check("a mask that hides nothing") > masked);
    world.folder.remove("masks/b.png.png");
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
fn imported_features_have_their_pairs_matched_again() {
    let mut world = five("changes-import");
    world.check("at first");
    let collection = Collection::open(world.folder.at("kept")).unwrap();
    let PhotographFeatures::Found(few) = collection.features(1).unwrap() else { panic!("found") };
    let few = few.subset(&[0, 1, 2]).unwrap();
    collection.import_features(1, &few).unwrap();
    let beyond = [collection.features(5).map(drop), collection.check_searched(5)];
    for said in beyond.map(|found| found.unwrap_err().to_string()) {
        assert!(said.contains("there is no photograph 5 of 5"), "{said}");
    }
    world.collect("kept").unwrap();
    let database = world.folder.at("kept.db");
    assert_eq!(count(&database, "SELECT rows FROM keypoints WHERE image_id = 2"), 3, "the imported features");
    assert_eq!(count(&database, VERIFIED), 6, "no pair of the photograph with three features");
}

#[test]
fn a_damaged_record_costs_no_features() {
    let mut world = five("changes-record");
    world.check("at first");
    let features = || -> BTreeMap<PathBuf, SystemTime> {
        let modified = |path: &PathBuf| path.metadata().unwrap().modified().unwrap();
        all_files(&world.folder.at("kept/features"))
            .into_iter()
            .map(|path| (path.clone(), modified(&path)))
            .collect()
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
            world.folder.refuses("collect export --work kept --output x.db", 1, &[name, "scan"]);
            world.collect("kept").unwrap();
        }
        std::fs::write(&path, "").unwrap();
        world.collect("kept").unwrap();
        std::fs::remove_file(&path).unwrap();
        world.collect("kept").unwrap();
    }
    assert_eq!(features(), before, "no file of features was written again");
    world.check("after all damage");
}

impl World {
    /// Empties all folders and adds some photographs.
    fn begin(&mut self, random: &mut Random) {
        for folder in ["images", "masks", "kept"] {
            let _ = std::fs::remove_dir_all(self.folder.at(folder));
        }
        ["images/sub", "masks/sub"].iter().for_each(|inner| self.folder.make(inner));
        let _ = std::fs::remove_file(self.folder.at("kept.db"));
        self.options = CollectionOptions::default().with_block(Some(4));
        self.list(&[]);
        let names: Vec<usize> = match below(random, FULL) {
            0 => (0..NAMES).collect(),
            _ => (0..5 + below(random, 5)).map(|i| 3 * i + below(random, 3)).collect(),
        };
        for i in names {
            let number = below(random, self.pool.len());
            self.put(&name(i), number);
        }
    }

    /// Makes a random change and returns its description.
    fn change(&mut self, random: &mut Random) -> String {
        // The photographs that exist, readable or not.
        let exists = |name: &String| self.photograph(name).symlink_metadata().is_ok();
        let present: Vec<String> = (0..NAMES).map(name).filter(exists).collect();
        let one = match present.len() {
            0 => name(0),
            n => present[below(random, n)].clone(),
        };
        let (path, other) = (self.photograph(&one), name(below(random, NAMES)));
        let mask = self.folder.at(&format!("masks/{one}.png"));
        let kinds: Vec<&str> = CHANGES.split_whitespace().collect();
        let kind = kinds[below(random, kinds.len())];
        match kind {
            "add" => {
                let _ = std::fs::remove_file(self.photograph(&other));
                let number = below(random, self.pool.len());
                self.put(&other, number);
            }
            "remove" => _ = std::fs::remove_file(&path),
            "replace" => {
                let _ = std::fs::remove_file(&path);
                let number = below(random, self.pool.len());
                self.put(&one, number);
            }
            "truncate" => {
                let bytes = std::fs::read(&path).unwrap_or_default();
                std::fs::write(&path, &bytes[..below(random, bytes.len() + 1)]).unwrap_or_default();
            }
            "no-picture" => std::fs::write(&path, "no picture").unwrap_or_default(),
            "dangling-link" => {
                let _ = std::fs::remove_file(&path);
                #[cfg(unix)]
                std::os::unix::fs::symlink("nowhere.png", &path).unwrap();
            }
            #[cfg(unix)]
            "chmod" => {
                if let Ok(meta) = path.metadata() {
                    let mode = if meta.permissions().mode() & 0o777 == 0 { 0o644 } else { 0 };
                    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
                }
            }
            "rename" => _ = std::fs::rename(&path, self.photograph(&other)),
            "swap" => {
                let between = self.folder.at("between");
                let moves = [
                    (&path, &between),
                    (&self.photograph(&other), &path),
                    (&between, &self.photograph(&other)),
                ];
                moves.iter().for_each(|(from, to)| _ = std::fs::rename(from, to));
            }
            "touch" => {
                if let Ok(file) = std::fs::File::open(&path) {
                    file.set_modified(SystemTime::now()).unwrap();
                }
            }
            "list" => {
                let mut some =
                    || present.get(below(random, present.len().max(1))).map_or("b.png", String::as_str);
                let pairs: Vec<_> = (0..6).map(|_| (some(), some())).collect();
                self.list(&pairs);
            }
            "mask" => {
                let (from, width) = (below(random, 96), if below(random, 8) == 0 { 50 } else { 96 });
                let size = Size::new(width, SMALL.height);
                let image = Image::from_fn(size, |x, _| if x < from { 0_u8 } else { 255 });
                image::write(&mask, &AnyImage::from(image)).unwrap();
            }
            "no-mask" => _ = std::fs::remove_file(&mask),
            "masks" => {
                let masks = self.options.features.masks.is_none().then(|| self.folder.at("masks"));
                let features = self.options.features.clone().with_masks(masks);
                self.options = self.options.clone().with_features(features);
            }
            "pairs" => {
                // The last choice is of given matches, for which there are no features here.
                let choice = PairChoice::ALL[below(random, PairChoice::ALL.len() - 1)].value;
                let list = (choice == PairChoice::List).then(|| self.folder.at("list.txt"));
                let pairs = PairOptions::default().with_choice(choice).with_list(list);
                let pairs =
                    pairs.with_overlap(1 + below(random, 3) as u32).with_closure(below(random, 2) == 0);
                let pairs = pairs.with_neighbours(1 + below(random, 3) as u32).with_top_matches(3);
                self.with_pairs(
                    pairs.with_exhaustive_up_to([5, 5000][below(random, 2)]).with_top_partners(2),
                );
            }
            "matching" => {
                let matching = self.options.matching.with_ratio(Some([0.77, 0.85][below(random, 2)]));
                let two_view = self.options.two_view.with_threshold_px([3.0, 4.0][below(random, 2)]);
                self.options = self.options.clone().with_matching(matching).with_two_view(two_view);
            }
            "kill" => self.kill(random),
            _ => self.damage(random),
        }
        kind.to_owned()
    }

    fn kill(&self, random: &mut Random) {
        let mut command = self.command("kept");
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(below(random, 400) as u64));
        let _ = child.kill();
        child.wait().unwrap();
    }

    fn damage(&mut self, random: &mut Random) {
        let files = all_files(&self.folder.at("kept"));
        if files.is_empty() {
            return;
        }
        self.damaged += 1;
        let path = &files[below(random, files.len())];
        let mut bytes = std::fs::read(path).unwrap();
        match (below(random, 3), bytes.len()) {
            (0, _) | (_, 0) => std::fs::remove_file(path).unwrap(),
            (1, n) => std::fs::write(path, &bytes[..below(random, n)]).unwrap(),
            (_, n) => {
                bytes[below(random, n)] ^= 1 << below(random, 8);
                std::fs::write(path, bytes).unwrap();
            }
        }
    }
}

fn below(random: &mut Random, n: usize) -> usize {
    (random.bits() % n as u64) as usize
}

/// The number of names for photographs.
const NAMES: usize = 30;

/// One sequence in this many begins with a photograph of every name.
const FULL: usize = 4;

fn name(i: usize) -> String {
    if i.is_multiple_of(5) { format!("sub/{i}.png") } else { format!("{i}.png") }
}

/// The kinds of change, picked at random. `pairs` is listed twice so that it is picked twice as often.
const CHANGES: &str = "add remove replace truncate no-picture dangling-link chmod rename swap touch list mask no-mask \
                       masks pairs pairs matching kill damage";

/// `TIEPOINT_CHANGES` is the number of random sequences, `TIEPOINT_SEED` the seed of the first.
#[test]
fn the_database_follows_random_changes() {
    let (sequences, from) = (asked_for("TIEPOINT_CHANGES", 6), seed());
    let mut world = World::new("changes-random", 3, 6);
    let (start, mut runs, mut verified, mut counts) = (Instant::now(), 0, 0, BTreeMap::<String, u32>::new());
    for sequence in from..from + sequences {
        let mut random = Random::new(1000 + sequence);
        world.begin(&mut random);
        let mut told = format!("sequence {sequence}");
        verified += world.check(&told);
        for _ in 0..3 {
            for _ in 0..1 + below(&mut random, 3) {
                let change = world.change(&mut random);
                told += &format!(", {change}");
                *counts.entry(change).or_default() += 1;
            }
            verified += world.check(&told);
            runs += 1;
        }
    }
    assert!(verified > runs / 2, "too few pairs to compare: {verified} in {runs} runs");
    println!(
        "{sequences} sequences, {runs} runs after changes, {verified} pairs, {:.0?}: {counts:?}",
        start.elapsed()
    );
}
