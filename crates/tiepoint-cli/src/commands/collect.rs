//! `tiepoint collect`: a folder of photographs becomes a database of verified matches, stage by stage.

use crate::arguments::collect::{
    CollectArguments, ExportArguments, OutputArguments, Stage, WholeArguments, WorkArguments,
};
use crate::arguments::report::ReportArguments;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output::{Files, check_folder};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;
use tiepoint::collection::{Collection, CollectionOptions, MatchDevices, PairSet, Shard};
use tiepoint::files::write_atomically;
use tiepoint_colmap::ExportOptions;
use tiepoint_report::CollectionPage;

pub(crate) fn run(arguments: &CollectArguments, context: &Context) -> Outcome {
    match &arguments.stage {
        None => whole(&arguments.whole, context),
        Some(Stage::Scan(a)) => scan(&a.work.work, &a.images, &a.options.options()?, context).map(drop),
        Some(Stage::Features(a)) => {
            let collection = a.part.sync.of(open(&a.part.work)?).with_limits(a.limits.options());
            features(&collection, a.part.shard, context)
        }
        Some(Stage::Pairs(a)) => choose(&a.sync.of(open(&a.work)?), a.shard, context),
        Some(Stage::Match(a)) => {
            let collection = a.sync.of(open(&a.work)?);
            match_pairs(&collection, &collection.match_devices(&context.processors()), a.shard, context)
        }
        Some(Stage::Export(a)) => export_alone(a, context),
        Some(Stage::Status(a)) => status(&open(a)?, context),
    }
}

fn open(arguments: &WorkArguments) -> Outcome<Collection> {
    Ok(Collection::open(&arguments.work)?)
}

/// All stages.
fn whole(arguments: &WholeArguments, context: &Context) -> Outcome {
    let options = arguments.options.options()?;
    let files = check_output(&arguments.output)?.reads(&arguments.images);
    files.reads(&options.pairs.list).check()?;
    let (collection, added) = scan(&arguments.work()?, &arguments.images, &options, context)?;
    let collection = exported(collection, &arguments.output)?;
    let devices = collection.match_devices(&context.processors());
    thread::scope(|scope| {
        // Of photographs that were there before, all may be matched.
        if added > 0 {
            scope.spawn(|| devices.prepare());
        }
        features(&collection, Shard::ALL, context)
    })?;
    choose(&collection, Shard::ALL, context)?;
    match_pairs(&collection, &devices, Shard::ALL, context)?;
    export(&collection, &arguments.output, context)
}

/// A stage that is timed and reported.
struct Timed<'c> {
    stage: &'static str,
    start: Instant,
    context: &'c Context,
}

impl<'c> Timed<'c> {
    fn start(stage: &'static str, context: &'c Context) -> Self {
        context.progress.say(stage);
        Self { stage, start: Instant::now(), context }
    }

    /// Says what came of the stage, to people and to programs.
    fn report(&self, said: &str, object: Value) {
        let seconds = self.start.elapsed().as_secs_f64();
        self.context.print_notes();
        self.context.say(&format!("{}: {said}, {seconds:.2} s", self.stage));
        self.context.report(|| {
            let device = json!({
                "device": self.context.take_device(),
                "threads": self.context.processor.cpu.threads(),
                "seconds": { "total": seconds },
            });
            crate::output::joined([json!({ "stage": self.stage }), object, device])
        });
    }
}

/// The collection, and how many photographs are new.
fn scan(
    work: &Path,
    images: &[PathBuf],
    options: &CollectionOptions,
    context: &Context,
) -> Outcome<(Collection, usize)> {
    let timed = Timed::start("scan", context);
    let (collection, scanned) = Collection::scan(work, images, options, &context.processor.cpu)?;
    for (path, reason) in &scanned.refused {
        context.note(&format!("{}: {reason}", path.display()));
    }
    let refused: Vec<Value> = scanned
        .refused
        .iter()
        .map(|(p, r)| json!({ "image": p.display().to_string(), "reason": r }))
        .collect();
    let root = collection.root().display();
    timed.report(
        &format!("{} photographs ({} new) below {root}", scanned.photographs, scanned.added),
        json!({
            "work": collection.folder().display().to_string(),
            "root": root.to_string(),
            "photographs": scanned.photographs,
            "added": scanned.added,
            "refused": refused,
        }),
    );
    Ok((collection, scanned.added))
}

fn features(collection: &Collection, shard: Shard, context: &Context) -> Outcome {
    let timed = Timed::start("features", context);
    let found = collection.extract(shard, &context.processors())?;
    for (name, reason) in &found.unreadable {
        context.note(&format!("{name} is left out: {reason}"));
    }
    let unreadable: Vec<Value> =
        found.unreadable.iter().map(|(name, reason)| json!({ "image": name, "reason": reason })).collect();
    let left_out = match found.unreadable.len() {
        0 => String::new(),
        n => format!(", {n} cannot be read"),
    };
    timed.report(
        &format!("{} photographs searched, {} were there{left_out}", found.searched, found.present),
        json!({ "searched": found.searched, "present": found.present, "unreadable": unreadable }),
    );
    match found.searched + found.present {
        0 if !found.unreadable.is_empty() => Err(Failure::work("none of the photographs can be read")),
        _ => Ok(()),
    }
}

fn choose(collection: &Collection, shard: Shard, context: &Context) -> Outcome {
    let timed = Timed::start("pairs", context);
    let chosen = collection.choose_pairs(shard, &context.processor.cpu)?;
    let count = chosen.as_ref().map(|pairs| pairs.count(collection.photographs().len()));
    let said = match (count, &chosen) {
        (Some(count), Some(PairSet::All)) => format!("all {count}"),
        (Some(count), _) => format!("{count} chosen"),
        (None, _) => "this part is done, others are missing".to_owned(),
    };
    let all = matches!(chosen, Some(PairSet::All));
    timed.report(&said, json!({ "pairs": count, "exhaustive": all }));
    Ok(())
}

fn match_pairs(collection: &Collection, devices: &MatchDevices, shard: Shard, context: &Context) -> Outcome {
    let timed = Timed::start("match", context);
    let matched = collection.match_pairs_on(shard, devices)?;
    let rate = matched.pairs as f64 / timed.start.elapsed().as_secs_f64();
    let left_out = match matched.left_out {
        0 => String::new(),
        n => format!(", {n} of unreadable photographs left out"),
    };
    let waits = if matched.closure_waits { "; run it again when the other parts are done" } else { "" };
    timed.report(
        &format!(
            "{} pairs in {} tiles{left_out}, {rate:.0} pairs/s, {} tiles were there{waits}",
            matched.pairs, matched.tiles, matched.present
        ),
        json!({
            "pairs": matched.pairs,
            "left_out": matched.left_out,
            "tiles": matched.tiles,
            "present": matched.present,
            "complete": !matched.closure_waits,
        }),
    );
    Ok(())
}

fn export_alone(arguments: &ExportArguments, context: &Context) -> Outcome {
    check_output(&arguments.output)?.check()?;
    let collection = exported(open(&arguments.work)?, &arguments.output)?;
    export(&collection, &arguments.output, context)
}

/// The results, once it is known that they can be written.
fn check_output(output: &OutputArguments) -> Outcome<Files> {
    check_folder(output.output()?)?;
    output.pair_list.as_deref().map_or(Ok(()), check_folder)?;
    output.report.check()?;
    results(output)
}

fn results(output: &OutputArguments) -> Outcome<Files> {
    let more = output.pair_list.iter().chain(&output.report.report);
    Ok(Files::default().writes([output.output()?]).writes(more))
}

/// A collection as its results are made of it. None of them may be one of its photographs.
fn exported(collection: Collection, output: &OutputArguments) -> Outcome<Collection> {
    let photographs = (0..collection.photographs().len()).map(|i| collection.path_of(i));
    results(output)?.reads(photographs).check()?;
    Ok(output.sync.of(collection).with_limits(output.limits.options()))
}

fn export(collection: &Collection, output: &OutputArguments, context: &Context) -> Outcome {
    let timed = Timed::start("export", context);
    let options =
        ExportOptions::default().with_replace(output.replace).with_without_descriptors(output.no_descriptors);
    let exported = tiepoint_colmap::export(collection, output.output()?, &options)?;
    if let Some(path) = &output.pair_list {
        write_pair_list(collection, path)?;
    }
    let path = output.output()?.display();
    let described = json!({
        "database": path.to_string(),
        "images": exported.images,
        "cameras": exported.cameras,
        "keypoints": exported.keypoints,
        "pairs": exported.pairs,
        "inliers": exported.inliers,
        "positions": exported.positions,
    });
    timed.report(
        &format!(
            "{path}: {} images, {} cameras, {} keypoints, {} verified pairs, {} inliers",
            exported.images, exported.cameras, exported.keypoints, exported.pairs, exported.inliers
        ),
        described.clone(),
    );
    page(collection, &output.report, &described, context)
}

/// The page, if one was asked for.
fn page(
    collection: &Collection,
    arguments: &ReportArguments,
    described: &Value,
    context: &Context,
) -> Outcome {
    let Some(path) = &arguments.report else { return Ok(()) };
    let timed = Timed::start("report", context);
    let cpu = &context.processor.cpu;
    let page = CollectionPage::new(collection, arguments.limit(), Some(described), cpu)?;
    for (name, reason) in &page.without_picture {
        context.note(&format!("the page has no picture of {name}: {reason}"));
    }
    write_atomically(path, |out| std::io::Write::write_all(out, page.html.as_bytes()))?;
    timed.report(
        &format!("{}: {:.1} MB", path.display(), page.html.len() as f64 / 1e6),
        json!({ "page": path.display().to_string(), "bytes": page.html.len() }),
    );
    Ok(())
}

/// The verified pairs as names.
fn write_pair_list(collection: &Collection, path: &Path) -> Outcome {
    let (results, photographs) = (collection.results()?, collection.photographs());
    let mut lines = String::new();
    for block in 0..results.blocks() {
        for pair in results.pairs_of(block)? {
            lines += &format!("{} {}\n", photographs[pair.a].name, photographs[pair.b].name);
        }
    }
    Ok(write_atomically(path, |out| std::io::Write::write_all(out, lines.as_bytes()))?)
}

fn status(collection: &Collection, context: &Context) -> Outcome {
    let timed = Timed::start("status", context);
    let found = collection.status(&context.processor.cpu)?;
    for line in &found.unfit {
        context.note(&format!("{line}; it will be made again"));
    }
    for (name, reason) in &found.unreadable {
        context.note(&format!("{name} is left out: {reason}"));
    }
    let left_out = match found.left_out {
        0 => String::new(),
        n => format!(" ({n} of unreadable photographs)"),
    };
    let pairs = found
        .pairs
        .map_or("not chosen".to_owned(), |pairs| format!("{} of {pairs} tried{left_out}", found.tried));
    let unreadable: Vec<Value> =
        found.unreadable.iter().map(|(name, reason)| json!({ "image": name, "reason": reason })).collect();
    timed.report(
        &format!(
            "{} of {} photographs searched ({} cannot be read), {} features; pairs {pairs}, {} verified, {} inliers; {} of {} tiles{}",
            found.searched,
            found.photographs,
            found.unreadable.len(),
            found.features,
            found.verified,
            found.inliers,
            found.tiles_done,
            found.tiles,
            if found.is_complete() { "; complete" } else { "" },
        ),
        json!({
            "photographs": found.photographs,
            "searched": found.searched,
            "features": found.features,
            "unreadable": unreadable,
            "pairs": found.pairs,
            "tried": found.tried,
            "left_out": found.left_out,
            "verified": found.verified,
            "inliers": found.inliers,
            "tiles": found.tiles,
            "tiles_done": found.tiles_done,
            "unfit": found.unfit,
            "complete": found.is_complete(),
        }),
    );
    Ok(())
}
