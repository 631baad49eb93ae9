//! `tiepoint collect`: from a folder of photographs to a database of verified matches, stage by stage.

use crate::arguments::collect::{
    CollectArguments, OutputArguments, Stage, UnreadableArguments, WholeArguments, WorkArguments,
};
use crate::arguments::report::ReportArguments;
use crate::commands::report::how_made;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output::{Files, joined, size, span};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;
use tiepoint::collection::{
    Collection, CollectionOptions, Extracted, Forecast, MatchDevices, PairChoice, PairSet, Scanned, Shard,
};
use tiepoint::files::write_atomically;
use tiepoint::matching::files::MatchFormat;
use tiepoint_colmap::ExportOptions;
use tiepoint_report::CollectionPage;

pub(crate) fn run(arguments: &CollectArguments, context: &Context) -> Outcome {
    match &arguments.stage {
        None => whole(&arguments.whole, context),
        Some(Stage::Scan { images, work, options }) => {
            scan(&work.work, images, &options.options()?, context).map(drop)
        }
        Some(Stage::Features { part, unreadable, limits }) => {
            let collection = open(&part.work)?.with_limits(limits.options());
            let found = features_of_part(&collection, part.shard, context);
            go_on(found.and_then(|found| unreadable.check(&found, &collection)), true)
        }
        Some(Stage::Pairs(a)) => go_on(choose(&open(&a.work)?, a.shard, context), true),
        Some(Stage::Match(a)) => {
            let collection = open(&a.work)?;
            go_on(match_part(&collection, a.shard, context), true)
        }
        Some(Stage::Export { work, output }) => {
            results(output)?.check()?;
            let collection = exported(open(work)?, output)?;
            export(&collection, output, || Ok(()), context)
        }
        Some(Stage::Status { work, parts }) => status(&open(work)?, *parts, context),
    }
}

fn open(arguments: &WorkArguments) -> Outcome<Collection> {
    Ok(Collection::open(&arguments.work)?)
}

fn features_of_part(collection: &Collection, shard: Shard, context: &Context) -> Outcome<Extracted> {
    let ahead = collection.forecast_features(shard, &context.processors())?;
    announce(&ahead, collection, None, context);
    features(collection, shard, context)
}

fn match_part(collection: &Collection, shard: Shard, context: &Context) -> Outcome {
    let ahead = collection.forecast_matches(shard, &context.processors())?;
    announce(&ahead, collection, None, context);
    match_pairs(collection, &collection.match_devices(&context.processors()), shard, context)
}

/// The same failure, with a hint on how to go on, unless it says that another stage has to be run first.
fn go_on<T>(outcome: Outcome<T>, one_stage: bool) -> Outcome<T> {
    outcome.map_err(|failure| match failure {
        Failure::Work(message) => {
            let told = one_stage && message.contains("run the stage `");
            let how = if told { "" } else { "; run the same command to go on" };
            Failure::Work(format!("{message}\ntiepoint: what is done is kept{how}"))
        }
        other => other,
    })
}

fn whole(arguments: &WholeArguments, context: &Context) -> Outcome {
    let options = arguments.options.options()?;
    results(&arguments.output)?.reads(&arguments.images).reads(inputs(&options)).check()?;
    if arguments.output.format()?.is_none() {
        tiepoint_colmap::check_place(arguments.output.output()?, &database_options(&arguments.output))?;
    }
    let (collection, scanned) = scan(&arguments.work()?, &arguments.images, &options, context)?;
    let collection = exported(collection, &arguments.output)?;
    go_on(after_scan(&collection, &scanned, arguments, context), false)
}

fn after_scan(
    collection: &Collection,
    scanned: &Scanned,
    arguments: &WholeArguments,
    context: &Context,
) -> Outcome {
    let ahead = collection.forecast(&context.processors())?;
    announce(&ahead, collection, Some(arguments.output.output()?), context);
    let devices = collection.match_devices(&context.processors());
    let over = AtomicBool::new(false);
    let found = thread::scope(|scope| {
        let _over = SetAtEnd(&over);
        // Without new photographs all pairs may be matched already, and nothing has to be prepared.
        if scanned.added > 0 {
            scope.spawn(|| devices.prepare(&over));
        }
        features(collection, Shard::ALL, context)
    })?;
    arguments.unreadable.check(&found, collection)?;
    if found.searched + found.present == 0 {
        return Err(Failure::work("none of the photographs can be read"));
    }
    choose(collection, Shard::ALL, context)?;
    let matching = || match_pairs(collection, &devices, Shard::ALL, context);
    export(collection, &arguments.output, matching, context)
}

/// Sets a flag when it is dropped, even during a panic.
struct SetAtEnd<'f>(&'f AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Work that is estimated to take more seconds than this is announced before it begins.
const LONG: f64 = 60.0;
/// If `--pairs auto` chooses all pairs and these take more seconds than this, the other choices are pointed out.
const VERY_LONG: f64 = 12.0 * 3600.0;

/// Prints how long the work ahead takes, and whether the disks of the work folder and of `output` have room for its
/// results.
fn announce(ahead: &Forecast, collection: &Collection, output: Option<&Path>, context: &Context) {
    let bytes = ahead.work_bytes + ahead.database_bytes;
    let places = std::iter::once(collection.folder()).chain(output);
    // Both may be on one file system, so each must have room for everything.
    let room = places.filter_map(free_bytes).min();
    context.report(|| joined([json!({ "stage": "estimate" }), json!(ahead), json!({ "free_bytes": room })]));
    let is_short = room.is_some_and(|room| room < bytes);
    if ahead.seconds > LONG || is_short {
        let free = room.map_or("unknown".into(), size);
        context.note(&format!(
            "about {} at most for {} photographs and {} pairs on this machine, and {} on disk; {free} are free{}",
            span(ahead.seconds),
            ahead.photographs,
            ahead.pairs,
            size(bytes),
            if is_short { ", which may be too little" } else { "" },
        ));
    }
    if ahead.seconds > VERY_LONG && collection.options().pairs.choice == PairChoice::Auto {
        context.note(
            "--pairs auto decides by the number of photographs alone, so that every machine writes the same database; \
             --pairs top-scale, sequence or gps matches fewer pairs and takes less time",
        );
    }
}

/// Free bytes on the disk of `path` or of its folder; `None` if the system does not report it.
fn free_bytes(path: &Path) -> Option<u64> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = if path.exists() { path } else { folder };
    fs4::available_space(place).ok()
}

impl UnreadableArguments {
    /// Fails if more photographs than allowed were left out, by the scan and by all parts so far.
    fn check(&self, found: &Extracted, collection: &Collection) -> Outcome {
        let refused = collection.refused().len();
        let (unreadable, all) = (refused + found.all_unreadable, refused + collection.photographs().len());
        match self.max_unreadable {
            Some(most) if unreadable > most => Err(Failure::work(format!(
                "{unreadable} of {all} photographs cannot be read{}, and --max-unreadable allows {most}",
                if_any(refused as u64, |n| format!(" (of these, the scan left out {n})"))
            ))),
            _ => Ok(()),
        }
    }
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
            joined([json!({ "stage": self.stage }), object, device])
        });
    }
}

fn scan(
    work: &Path,
    images: &[PathBuf],
    options: &CollectionOptions,
    context: &Context,
) -> Outcome<(Collection, Scanned)> {
    let timed = Timed::start("scan", context);
    let (collection, scanned) = Collection::scan(work, images, options, &context.processor.cpu)?;
    for (path, reason) in &scanned.refused {
        context.complain(&Failure::work(format!("{}: {reason}; it is left out", path.display())));
    }
    warn(scanned.warnings(options), context);
    let root = collection.root().display();
    timed.report(
        &format!(
            "{} photographs ({} new, {} gone) below {root}",
            scanned.photographs, scanned.added, scanned.removed
        ),
        joined([
            json!({ "work": collection.folder().display().to_string(), "root": root.to_string() }),
            json!(scanned),
            json!({ "hidden": scanned.hidden.len() }),
        ]),
    );
    Ok((collection, scanned))
}

fn features(collection: &Collection, shard: Shard, context: &Context) -> Outcome<Extracted> {
    let timed = Timed::start("features", context);
    let found = collection.extract(shard, &context.processors())?;
    for (name, reason) in &found.unreadable {
        context.complain(&Failure::work(format!("{name} is left out: {reason}")));
    }
    for (name, reason) in &found.failed {
        context.note(&format!("{name} is to be tried again: {reason}"));
    }
    warn(found.warnings(collection.options()), context);
    let left_out = if_any(found.unreadable.len() as u64, |n| format!(", {n} cannot be read"));
    timed.report(
        &format!("{} photographs searched, {} were there{left_out}", found.searched, found.present),
        json!(found),
    );
    match &found.failed[..] {
        [] => Ok(found),
        [(name, reason), others @ ..] => Err(Failure::work(format!(
            "{name}{} could not be read: {reason}; the others are done",
            if_any(others.len() as u64, |n| format!(" and {n} others"))
        ))),
    }
}

/// The text about a count; empty for 0.
fn if_any(n: u64, words: impl Fn(u64) -> String) -> String {
    if n == 0 { String::new() } else { words(n) }
}

fn warn(warnings: impl IntoIterator<Item = String>, context: &Context) {
    warnings.into_iter().for_each(|warning| context.note(&format!("warning: {warning}")));
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
    warn(chosen.as_ref().and_then(|pairs| pairs.warning(collection.photographs().len())), context);
    let all = matches!(chosen, Some(PairSet::All));
    timed.report(&said, json!({ "pairs": count, "exhaustive": all }));
    Ok(())
}

fn match_pairs(collection: &Collection, devices: &MatchDevices, shard: Shard, context: &Context) -> Outcome {
    let timed = Timed::start("match", context);
    let matched = collection.match_pairs_on(shard, devices)?;
    let rate = matched.pairs as f64 / timed.start.elapsed().as_secs_f64();
    let structure = if_any(matched.structure, |n| format!(", {n} of them by structure, too"));
    let left_out = if_any(matched.left_out, |n| format!(", {n} of unreadable photographs left out"));
    let waits = if matched.closure_waits { "; run it again when the other parts are done" } else { "" };
    timed.report(
        &format!(
            "{} pairs in {} tiles{structure}{left_out}, {rate:.0} pairs/s, {} tiles were there{waits}",
            matched.pairs, matched.tiles, matched.present
        ),
        joined([json!(matched), json!({ "complete": !matched.closure_waits })]),
    );
    Ok(())
}

/// The files of the results, after a check of the report's name.
fn results(output: &OutputArguments) -> Outcome<Files> {
    output.report.check()?;
    // The folder of other programs' files may be there already.
    let is_folder = output.format()?.is_some_and(|format| format != MatchFormat::Asp);
    let path = output.output()?;
    if is_folder && path.is_file() {
        return Err(Failure::usage(format!(
            "{}: is a file; name a folder for this --format",
            path.display()
        )));
    }
    let file = Some(path).filter(|_| !is_folder);
    let more = output.pair_list.iter().chain(&output.report.report);
    Ok(Files::default().writes(file).writes(more))
}

/// The files that a collection with these options reads beside its photographs.
fn inputs(options: &CollectionOptions) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut next: Vec<PathBuf> = [&options.features.given, &options.features.masks, &options.pairs.list]
        .into_iter()
        .flatten()
        .cloned()
        .collect();
    while let Some(path) = next.pop() {
        // A file or folder that cannot be read is reported by the stage that needs it. Links are not followed.
        match std::fs::read_dir(&path) {
            Ok(entries) => {
                let entries =
                    entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
                next.extend(entries.map(|entry| entry.path()));
            }
            Err(_) => files.push(path),
        }
    }
    files
}

/// The collection with the options of the output. Fails if a result would replace one of its inputs, or the list of
/// its photographs in its work folder, or if a list could not name its photographs.
fn exported(collection: Collection, output: &OutputArguments) -> Outcome<Collection> {
    let photographs = (0..collection.photographs().len()).map(|i| collection.path_of(i));
    let names = || collection.photographs().iter().map(|photograph| &photograph.name);
    let tab = names()
        .find(|name| name.contains('\t'))
        .map(|name| (name, "holds a tab, which separates names in a list"));
    let hash = || {
        names()
            .find(|name| name.starts_with('#'))
            .map(|name| (name, "begins with #, as comments in a list do"))
    };
    if let (Some(list), Some((name, reason))) = (&output.pair_list, tab.or_else(hash)) {
        return Err(Failure::work(format!(
            "{}: the name {name:?} {reason}; rename this photograph, or leave out --pair-list",
            list.display(),
        )));
    }
    let files = results(output)?.reads(photographs).reads(inputs(collection.options()));
    files.check()?;
    let mut written = files.written().chain([output.output()?]);
    written.try_for_each(|path| collection.check_output(path)).map_err(Failure::usage)?;
    Ok(collection.with_limits(output.limits.options()))
}

/// Exports the results after `matching`; a database takes the photographs beside it.
fn export(
    collection: &Collection,
    output: &OutputArguments,
    matching: impl FnOnce() -> Outcome,
    context: &Context,
) -> Outcome {
    let cpu = &context.processor.cpu;
    let (path, name) = (output.output()?, output.output()?.display());
    let mut timed = None;
    let matching = || -> Outcome {
        matching()?;
        timed = Some(Timed::start("export", context));
        Ok(())
    };
    let (said, described, evidence) = match output.format()? {
        Some(format) => {
            matching()?;
            let written = collection.write_tie_points(format, path, cpu)?;
            let said = format!("{} verified pairs, {} inliers", written.pairs, written.inliers);
            (said, joined([json!({ "output": name.to_string() }), json!(written)]), written.evidence)
        }
        None => {
            let options = database_options(output);
            let exported = tiepoint_colmap::export_beside(collection, path, &options, cpu, matching)?;
            warn(exported.warning(), context);
            let said = format!(
                "{} images, {} cameras, {} keypoints, {} verified pairs, {} inliers",
                exported.images, exported.cameras, exported.keypoints, exported.pairs, exported.inliers
            );
            (said, joined([json!({ "database": name.to_string() }), json!(exported)]), exported.evidence)
        }
    };
    if let Some(path) = &output.pair_list {
        write_pair_list(collection, path, context)?;
    }
    let assessment = evidence.assess();
    let described = joined([described, json!(assessment)]);
    if let Some(timed) = timed {
        timed.report(&format!("{name}: {said}"), described.clone());
    }
    context.say(&assessment.to_string());
    page(collection, &output.report, &described, context)
}

fn database_options(output: &OutputArguments) -> ExportOptions {
    ExportOptions::default()
        .with_replace(output.replace)
        .with_without_descriptors(output.no_descriptors)
        .with_old_layout(output.colmap == "3.8")
}

/// Writes the page, if one was asked for.
fn page(
    collection: &Collection,
    arguments: &ReportArguments,
    described: &Value,
    context: &Context,
) -> Outcome {
    let Some(path) = &arguments.report else { return Ok(()) };
    let timed = Timed::start("report", context);
    let cpu = &context.processor.cpu;
    let page = CollectionPage::new(collection, (arguments.limit(), &how_made()), Some(described), cpu)?;
    for (name, reason) in &page.without_picture {
        context.note(&format!("the page has no picture of {name}: {reason}"));
    }
    write_atomically(path, |out| std::io::Write::write_all(out, page.html.as_bytes()))?;
    timed.report(
        &format!("{}: {}", path.display(), size(page.html.len() as u64)),
        json!({ "page": path.display().to_string(), "bytes": page.html.len() }),
    );
    Ok(())
}

fn write_pair_list(collection: &Collection, path: &Path, context: &Context) -> Outcome {
    let cpu = &context.processor.cpu;
    let (results, photographs) = (collection.results(cpu)?, collection.photographs());
    let (mut lines, mut spaced) = (String::new(), 0_usize);
    for block in 0..results.blocks() {
        cpu.check()?;
        for pair in results.pairs_of(block)? {
            let names = [pair.a, pair.b].map(|i| photographs[i].name.as_str());
            // Names with spaces are separated by a tab, so that a line has one meaning.
            let has_space = names.concat().contains(char::is_whitespace);
            spaced += usize::from(has_space);
            lines += &format!("{}\n", names.join(if has_space { "\t" } else { " " }));
        }
    }
    let told = format!(
        "{}: COLMAP and hloc cannot read lines with names that hold spaces ({spaced})",
        path.display()
    );
    warn((spaced > 0).then_some(told), context);
    Ok(write_atomically(path, |out| std::io::Write::write_all(out, lines.as_bytes()))?)
}

fn status(collection: &Collection, parts: Option<u32>, context: &Context) -> Outcome {
    let timed = Timed::start("status", context);
    let found = collection.status(&context.processor.cpu)?;
    for line in &found.unfit {
        context.note(&format!("{line}; it will be made again"));
    }
    for (name, reason) in found.refused.iter().chain(&found.unreadable) {
        context.note(&format!("{name} is left out: {reason}"));
    }
    found.changed.iter().for_each(|(name, reason)| context.note(&format!("{name}: {reason}")));
    let left_out = if_any(found.left_out, |n| format!(" ({n} of unreadable photographs)"));
    let [missing_features, missing_pairs, missing_match] =
        [&found.missing, &found.missing_pairs, &found.missing_tiles].map(|all| missing(all, parts));
    let stages = [("features", &missing_features), ("pairs", &missing_pairs), ("match", &missing_match)];
    for (stage, missing) in stages {
        if let (Some(parts), false) = (parts, missing.is_empty()) {
            let named: Vec<String> = missing.iter().map(|part| format!("{part}/{parts}")).collect();
            context.note(&format!("missing parts of {stage}: {}", named.join(" ")));
        }
    }
    let pairs = found
        .pairs
        .map_or("not chosen".to_owned(), |pairs| format!("{} of {pairs} tried{left_out}", found.tried));
    timed.report(
        &format!(
            "{} of {} photographs searched ({} cannot be read{}), {} features; pairs {pairs}, {} verified, {} inliers; {} of {} tiles{}",
            found.searched,
            found.photographs,
            found.unreadable.len(),
            if_any(found.refused.len() as u64, |n| format!("; the scan left out {n} others")),
            found.features,
            found.verified,
            found.inliers,
            found.tiles_done,
            found.tiles,
            if found.is_complete() { "; complete" } else { "" },
        ),
        joined([
            json!(found),
            json!({
                "missing_features": missing_features,
                "missing_pairs": missing_pairs,
                "missing_match": missing_match,
                "complete": found.is_complete(),
            }),
        ]),
    );
    Ok(())
}

/// The parts, out of `parts`, to which units of work with these numbers belong; without `parts` the numbers themselves.
fn missing(units: &[usize], parts: Option<u32>) -> Vec<usize> {
    let part = |unit: &usize| parts.map_or(*unit, |parts| unit % parts as usize);
    units.iter().map(part).collect::<BTreeSet<_>>().into_iter().collect()
}
