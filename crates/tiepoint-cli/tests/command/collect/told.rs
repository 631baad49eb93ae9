//! What `tiepoint collect` prints: estimates, warnings and how to go on; and that each of its tasks can be cancelled.

use super::*;
use std::io::{BufRead, BufReader, Read};
use tiepoint::collection::{Collection, CollectionOptions, PairChoice, PairOptions, Shard};
use tiepoint::device::{Cancel, Processor};
use tiepoint::{Error, Result};
use tiepoint_colmap::ExportOptions;
use tiepoint_report::CollectionPage;

/// The JSON object of a stage among those that were printed.
fn of_stage<'t>(told: &'t str, stage: &str) -> &'t str {
    let named = format!("\"stage\":\"{stage}\"");
    told.lines().find(|line| line.contains(&named)).unwrap_or_else(|| panic!("no {stage} in {told}"))
}

fn bytes(files: &[PathBuf]) -> f64 {
    files.iter().map(|path| path.metadata().unwrap().len() as f64).sum()
}

#[test]
fn an_estimate_is_never_too_low_and_leaves_out_finished_work() {
    let folder = Folder::with("collect-estimate", photographs);
    let run = "collect images --output a.db --block 2 --device cpu --json --max-features";
    for (keep, few) in [("levels", "100"), ("scale", "150")] {
        let _ = std::fs::remove_dir_all(folder.at("a.db.work"));
        let told = folder.works(format!("{run} {few} --keep {keep}"));
        let [ahead, exported] = ["estimate", "export"].map(|stage| of_stage(&told, stage));
        let work = ["features", "matches"].map(|kind| bytes(&all_files(&folder.at("a.db.work").join(kind))));
        for (key, found) in [
            ("photographs", 6.0),
            ("pairs", 15.0),
            ("features", number(exported, "keypoints")),
            ("work_bytes", work.iter().sum()),
            ("database_bytes", bytes(&[folder.at("a.db")])),
        ] {
            let told = number(ahead, key);
            assert!((found..=3.0 * found).contains(&told), "{keep}: {key} is {found}, the estimate {told}");
        }
        assert!(number(ahead, "seconds") > 0.0, "{ahead}");
    }
    // Each stage estimates only the work that is left.
    let stage = |stage: &str| folder.works(format!("collect {stage} --work a.db.work --device cpu --json"));
    let ahead = |told: &str, keys: [&str; 2]| keys.map(|key| number(of_stage(told, "estimate"), key));
    let tile = all_files(&folder.at("a.db.work/matches")).remove(0);
    std::fs::remove_file(tile).unwrap();
    let told = stage("match");
    let matched = number(of_stage(&told, "match"), "pairs");
    assert!(matched > 0.0 && matched < 15.0, "not the pairs of one tile: {told}");
    let features = number(&folder.works("collect status --work a.db.work --json"), "features");
    assert_eq!(
        ahead(&told, ["pairs", "features"]),
        [matched, features],
        "finished and remaining work: {told}"
    );
    assert_eq!(ahead(&stage("match"), ["pairs", "seconds"]), [0.0, 0.0]);
    let file = all_files(&folder.at("a.db.work/features")).remove(0);
    std::fs::remove_file(file).unwrap();
    assert_eq!(ahead(&stage("features --shard 0/1"), ["photographs", "pairs"]), [1.0, 0.0]);
    assert_eq!(ahead(&stage("features"), ["photographs", "seconds"]), [0.0, 0.0]);
}

/// All pairs of so many photographs would take days. The files are no pictures, so that the test is short.
#[test]
fn a_very_long_matching_is_announced_before_the_work() {
    let folder = Folder::new("collect-long");
    folder.make("images");
    (0..1200).for_each(|i| folder.put(&format!("images/{i}.png"), "no picture"));
    let run = "collect images --output a.db --device cpu --threads 1 --no-sync --max-features 1000000";
    for (pairs, is_told) in [("auto", true), ("exhaustive", false)] {
        let _ = std::fs::remove_dir_all(folder.at("a.db.work"));
        let said = folder.fails(format!("{run} --pairs {pairs}"), 1);
        assert!(said.contains("at most for 1200 photographs and 719400 pairs on this machine"), "{said}");
        assert_eq!(
            said.contains("--pairs auto decides by the number of photographs alone"),
            is_told,
            "{said}"
        );
        assert!(said.contains("none of the photographs can be read"), "{said}");
    }
}

#[test]
fn photographs_and_pairs_left_out_without_an_error_are_warnings() {
    let folder = Folder::with("collect-warnings", photographs);
    folder.make("bad");
    for name in ["0.png", "1.png", "2.png"] {
        folder.put(&format!("bad/{name}"), "no picture");
    }
    folder.make("places");
    for i in 0..4_u32 {
        let plain = folder.read("images/c.png");
        let placed = with_exif_chunk(&plain, &position([48, 1, 0, 1, 20 * i, 100], [11, 1, 0, 1, 0, 1]));
        folder.put(&format!("places/{i}.png"), if i % 2 == 0 { placed } else { plain });
    }
    folder.put("none.txt", "");
    let no_pair = "warning: no pair is chosen";
    for (arguments, warnings) in [
        ("images", &[][..]),
        ("images/a.png images/c.png bad", &["warning: 3 of 5 photographs are left out"]),
        ("places --pairs gps", &["warning: 2 of 4 photographs record no position"]),
        (
            "images/a.png images/c.png --pairs exhaustive --overlap 2 --top-features 9",
            &["warning: no effect with pairs exhaustive: overlap, top-features"],
        ),
        ("images --pairs none.txt", &[no_pair, "warning: no two photographs"]),
        ("images/a.png images/other.png", &["warning: no two photographs were found to show the same thing"]),
    ] {
        let _ = std::fs::remove_dir_all(folder.at("a.db.work"));
        let said = folder.notes(format!("collect {arguments} --output a.db --device cpu"));
        let told: Vec<&str> = said.lines().filter(|line| line.contains("warning:")).collect();
        assert_eq!(told.len(), warnings.len(), "{arguments}: {said}");
        for (told, warning) in told.iter().zip(warnings) {
            assert!(told.starts_with(&format!("tiepoint: {warning}")), "{arguments}: {said}");
        }
    }
}

#[test]
fn options_that_are_not_those_of_the_last_scan_are_told() {
    let folder = Folder::with("collect-changed-options", photographs);
    folder.works("collect scan images --work work --pairs sequence --overlap 2 --ratio 0.6");
    let again = "collect scan images --work work";
    let told = "warning: options changed since the last scan: --ratio 0.6 → 0.77, --pairs sequence → auto, --overlap 2 → 10; \
                all pairs are matched again";
    assert!(folder.notes(again).contains(told));
    assert!(!folder.notes(again).contains("options changed"), "the same as before");
    let told = folder.works(format!("{again} --pairs exhaustive --json"));
    assert_eq!(value(&told, "changed_options"), "[\"--pairs auto → exhaustive\"]");
}

#[test]
fn a_scan_says_that_it_waits_for_another_one() {
    let folder = Folder::with("collect-waits", photographs);
    folder.works("collect scan images --work work");
    let other = std::fs::File::create(folder.at("work/.collection.json.lock")).unwrap();
    other.lock().unwrap();
    let mut scan = folder.tiepoint("collect scan images --work work");
    let mut waiting = scan.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(waiting.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "tiepoint: waiting for another scan of this work folder\n");
    drop(other);
    assert!(waiting.wait().unwrap().success());
}

#[test]
fn a_collection_whose_options_another_scan_changed_says_so() {
    let folder = Folder::with("collect-overtaken", photographs);
    let (cpu, images) = (Cpu::sequential(), [folder.at("images")]);
    let matched = |ratio: f32| {
        let mut options = CollectionOptions::default();
        options.matching.ratio = Some(ratio);
        let collection = Collection::scan(folder.at("work"), &images, &options, &cpu).unwrap().0;
        collection.extract(Shard::ALL, &[cpu.clone().into()]).unwrap();
        collection.choose_pairs(Shard::ALL, &cpu).unwrap();
        collection.match_pairs(Shard::ALL, &[cpu.clone().into()]).unwrap();
        collection
    };
    let (one, other) = (matched(0.7), matched(0.8));
    other.results(&cpu).unwrap();
    let error = one.results(&cpu).unwrap_err().to_string();
    assert!(error.starts_with("another scan has changed the options or the photographs of "), "{error}");
}

#[test]
fn the_scan_reports_pairs_that_cannot_be_chosen() {
    let folder = Folder::with("collect-scan-pairs", photographs);
    folder.put("nobody.txt", "a.png\tc.png\na.png\tnobody.png\n");
    folder.put("three.txt", "a.png\tc.png\td.png\n");
    for (pairs, words) in [
        ("gps", &["records its position"][..]),
        ("nobody.txt", &["nobody.txt", "line 2", "nobody.png"]),
        ("three.txt", &["three.txt", "line 1"]),
    ] {
        for line in ["collect images --output a.db --device cpu", "collect scan images --work a.db.work"] {
            folder.refuses(format!("{line} --pairs {pairs}"), 1, words);
            assert!(!folder.has("a.db.work/features"), "{line} --pairs {pairs}: features came first");
        }
    }
}

#[test]
#[cfg(unix)]
fn an_interrupted_or_failed_run_says_how_to_go_on() {
    use std::os::unix::process::ExitStatusExt;
    const GO_ON: &str = "run the same command to go on";
    let folder = Folder::with("collect-go-on", photographs);
    for i in 0..4 {
        folder.texture(&format!("images/large{i}.png"), Size::new(800, 600), i);
    }
    for (name, number) in [("-INT", 2), ("-TERM", 15)] {
        let mut command = folder.tiepoint("collect images --output a.db --device cpu --threads 1");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("scan:"), "{line}");
        Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(number), "not ended by the signal");
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(said.contains(&format!("interrupted; {GO_ON}")), "{name}: {said}");
    }
    // An error, in one stage and in all stages together.
    folder.works("collect scan images --work a.db.work");
    std::fs::create_dir_all(folder.at("a.db.work/pairs.bin")).unwrap();
    folder.refuses("collect images --output a.db --device cpu", 1, &["pairs.bin", GO_ON]);
    folder.refuses("collect pairs --work a.db.work", 1, &["pairs.bin", GO_ON]);
}

#[test]
fn every_task_can_be_cancelled() {
    let folder = Folder::with("collect-cancelled", photographs);
    let images = [folder.at("images")];
    let pairs = PairOptions::default().with_choice(PairChoice::Sequence).with_overlap(1);
    let options = CollectionOptions::default().with_block(Some(1)).with_pairs(pairs);
    let scan = |cpu: &Cpu| Collection::scan(folder.at("work"), &images, &options, cpu).map(|found| found.0);
    let plain = Cpu::sequential();
    let collection = scan(&plain).unwrap();
    let on = |cpu: &Cpu| [Processor::from(cpu.clone())];
    collection.extract(Shard::ALL, &on(&plain)).unwrap();
    collection.choose_pairs(Shard::ALL, &plain).unwrap();
    collection.match_pairs(Shard::ALL, &on(&plain)).unwrap();
    let scan_touched = |cpu: &Cpu| {
        for path in all_files(&images[0]) {
            let file = std::fs::File::options().write(true).open(path).unwrap();
            file.set_modified(std::time::SystemTime::now()).unwrap();
        }
        scan(cpu).map(drop)
    };
    let matching = |cpu: &Cpu| collection.match_pairs(Shard::ALL, &on(cpu)).map(drop);
    let closure = |cpu: &Cpu| {
        std::fs::remove_file(folder.at("work/closure.bin")).unwrap_or_default();
        matching(cpu)
    };
    let export = |cpu: &Cpu| {
        tiepoint_colmap::export(&collection, folder.at("a.db"), &ExportOptions::default(), cpu).map(drop)
    };
    let page = |cpu: &Cpu| CollectionPage::new(&collection, (1 << 24, ""), None, cpu).map(drop);
    type Call<'c> = &'c dyn Fn(&Cpu) -> Result<()>;
    let calls: [(&str, Call<'_>); 9] = [
        ("scan", &|cpu| scan(cpu).map(drop)),
        ("read what was touched", &scan_touched),
        ("look at tiles", &matching),
        ("look at tiles", &|cpu| collection.status(cpu).map(drop)),
        ("look at tiles", &|cpu| collection.results(cpu).map(drop)),
        ("look at tiles", &|cpu| collection.forecast(&on(cpu)).map(drop)),
        ("closure", &closure),
        ("export", &export),
        ("page", &page),
    ];
    for (task, call) in calls {
        let cancel = Cancel::new();
        let ends = cancel.clone();
        let cpu = plain.clone().cancelled_by(&cancel).observed(move |progress| {
            if progress.task == task && progress.done < progress.total {
                ends.cancel();
            }
        });
        let ended = call(&cpu);
        assert!(matches!(ended, Err(Error::Cancelled)), "{task}: {ended:?}");
        cancel.reset();
        call(&cpu.clone().observed(|_| {})).unwrap_or_else(|e| panic!("{task}, once more: {e}"));
    }
}

#[test]
fn the_status_names_the_missing_parts_of_pairs() {
    let folder = Folder::with("collect-missing-pairs", photographs);
    let missing = || {
        let said = folder.notes("collect status --work work --parts 4");
        let found = said.lines().find_map(|line| line.split_once("missing parts of pairs: "));
        found.map(|(_, parts)| parts.to_owned())
    };
    for (choice, left, then) in
        [("exhaustive", "0/4", None), ("top-scale", "0/4 1/4 2/4 3/4", Some("0/4 2/4 3/4"))]
    {
        let _ = std::fs::remove_dir_all(folder.at("work"));
        folder
            .works(format!("collect scan images --work work --block 1 --max-features 100 --pairs {choice}"));
        folder.works("collect features --work work --device cpu");
        assert_eq!(missing().as_deref(), Some(left), "{choice}");
        folder.works("collect pairs --work work --device cpu --shard 1/4");
        assert_eq!(missing().as_deref(), then, "{choice}");
        folder.works("collect pairs --work work --device cpu");
        assert_eq!(missing(), None, "{choice}");
    }
}

#[test]
fn a_part_reads_no_folders_and_tiles_that_it_does_not_need() {
    let folder = Folder::with("collect-part", photographs);
    let run = "collect images --output a.db --block 1 --device cpu --threads 1 --pairs sequence";
    folder.works(run);
    let stage =
        |line: &str| folder.works(format!("collect {line} --work a.db.work --device cpu --threads 1"));
    // An unfinished file that a killed process left in the folder of another part.
    let tiles = all_files(&folder.at("a.db.work/matches"));
    assert_eq!(tiles.len(), 15, "of six photographs");
    let ours = tiepoint::files::Unfinished::beside(&tiles[0]).unwrap().path().to_str().unwrap().to_owned();
    let left = PathBuf::from(ours.replace(&format!("-{}-", std::process::id()), "-4000000000-"));
    std::fs::write(&left, "").unwrap();
    stage("match --shard 5/15");
    assert!(left.exists(), "a part with nothing to do lists no folder");
    stage("match");
    assert!(!left.exists(), "all of the work removes it");
    // The closure has to wait for the first tile. Reading the last tile would fail, since it is a link to itself.
    folder.remove("a.db.work/closure.bin");
    std::fs::remove_file(&tiles[0]).unwrap();
    std::fs::remove_file(&tiles[14]).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&tiles[14], &tiles[14]).unwrap();
    let told = stage("match --shard 5/15");
    assert!(told.contains("run it again when the other parts are done"), "{told}");
}
