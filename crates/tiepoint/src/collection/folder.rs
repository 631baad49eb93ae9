//! The folder of a collection: its options, its photographs, and the paths of its files.

use super::camera::{Camera, cameras};
use super::record::{Found, Kind, Made, content, fingerprint, is_ours, read_json, write_json};
use super::scan::{self, FileVersion, Listing, Photograph, Scanned};
use super::{CollectionOptions, FeatureOptions, PairOptions, Shard};
use super::{features, matches, pairs, structure, top_scale};
use crate::device::Cpu;
use crate::files::{
    Disk, folder_of, if_there, read_within, remove_unfinished, waits_for_disk, write_atomically,
};
use crate::image::{ReadOptions, Size};
use crate::options::{Field, Named, OptionTable};
use crate::register::Modality;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The version of the format of a work folder.
const FORMAT: u32 = 2;
const OPTIONS: &str = "collection.json";
const IMAGES: &str = "images.json";
const FEATURES: &str = "features";
/// Recorded in place of the path of given features, because only their content matters.
const GIVEN: &str = "given";
/// A scan that waits longer than this for another one says so.
const SOON: Duration = Duration::from_secs(2);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Head {
    format: u32,
    /// The versions of the stages at the last scan.
    stages: Value,
    /// Photographs in a block.
    block: u32,
    options: Value,
}

/// A folder with the results so far for a set of photographs.
#[derive(Clone, Debug)]
pub struct Collection {
    folder: PathBuf,
    options: CollectionOptions,
    block: u32,
    listing: Listing,
    /// The index of the photograph of each slot.
    at_slot: Vec<Option<u32>>,
    /// The fingerprint of the options of features, from which that of every file of features follows.
    features: u64,
    limits: ReadOptions,
    sync: bool,
}

impl Collection {
    /// Makes the folder `work`, or opens it if it exists, and brings its list of photographs up to date. The
    /// photographs are the image files among `images` and in the folders among them. This is the stage `scan`, the only
    /// one that looks for changes: photographs that came, went or were replaced, masks, the list of pairs. The options
    /// of pairs, matching and geometry may differ from those of an earlier scan: results that depend on them are then
    /// made again. A list of pairs that can be read only once (`/dev/stdin`) is kept in the folder.
    ///
    /// # Errors
    /// As [`CollectionOptions::check`]; [`Error::Mismatch`] when the folder was made with other options of features or
    /// another block, when there are no photographs, or when pairs are chosen by position and no photograph records
    /// one; [`Error::Format`] for a list of pairs that does not fit the photographs, and for a folder that holds
    /// something else; [`Error::Io`].
    pub fn scan(
        work: impl Into<PathBuf>,
        images: &[PathBuf],
        options: &CollectionOptions,
        cpu: &Cpu,
    ) -> Result<(Self, Scanned)> {
        options.check()?;
        let work = work.into();
        prepare(&work, options)?;
        let options = &with_kept_list(options, &work)?;
        let (mut now, mut scanned) = scan::list(images, &options.features, cpu)?;
        if now.photographs.is_empty() {
            let left_out = scanned.refused.first();
            let left_out = left_out.map(|(path, reason)| format!(" ({}: {reason})", path.display()));
            return Err(Error::Mismatch(format!(
                "there is no image in {}{}; JPEG, PNG, TIFF, JPEG 2000, JPEG XL, WebP, BMP, GIF, PNM and PFM are read",
                now.root.display(),
                left_out.unwrap_or_default()
            )));
        }
        now.list = pairs::check(&options.pairs, &now.photographs, &mut scanned)?;
        Disk::at_once(true).make_folder(&work)?;
        let _alone = lock(&work, cpu)?;
        let head = prepare(&work, options)?;
        remove_unfinished(&work, 1)?;
        let before = read_json::<Listing>(&work.join(IMAGES))?.whole().unwrap_or_default();
        let [added, removed] = scan::keep_slots(&before, &mut now);
        let by_count = || if now.photographs.len() <= 20_000 { 64 } else { 256 };
        let block = head.as_ref().map(|head| head.block).or(options.block).unwrap_or_else(by_count);
        if let Some(head) = &head {
            (scanned.changed_options, scanned.rematches) = changed_options(&head.options, options)?;
        }
        let mut collection = Self::new(work, options.clone(), block, now);
        collection.read_touched(cpu)?;
        let stages = json!({
            "features": features::VERSION, "pairs": pairs::VERSION,
            "top_scale": top_scale::VERSION, "match": matches::VERSION,
        });
        let now = Head { format: FORMAT, stages, block, options: value_of(options)? };
        if head.is_none_or(|head| head != now) {
            write_json(&collection.folder.join(OPTIONS), &now)?;
        }
        if collection.listing != before {
            write_json(&collection.folder.join(IMAGES), &collection.listing)?;
        }
        let photographs = collection.photographs();
        (scanned.photographs, scanned.added, scanned.removed) = (photographs.len(), added, removed);
        let beside = photographs.iter().filter(|p| p.beside.is_some()).count();
        scanned.masked = if options.features.masks.is_some() { beside } else { 0 };
        scanned.positions = photographs.iter().filter(|p| p.metadata.position.is_some()).count();
        Ok((collection, scanned))
    }

    /// Opens a folder that [`scan`](Self::scan) made.
    ///
    /// # Errors
    /// [`Error::Format`] when `work` is no such folder, or one of another version; [`Error::Io`].
    pub fn open(work: impl Into<PathBuf>) -> Result<Self> {
        let folder = work.into();
        let path = folder.join(OPTIONS);
        let head = match read_head(&path)? {
            Found::Missing => {
                let reason = "is no work folder of a collection; run the stage `scan` first";
                return Err(Error::format(&folder, reason));
            }
            found => found.or_made_by("scan", &path)?,
        };
        let options: CollectionOptions =
            serde_json::from_value(head.options).map_err(|e| Error::format(&path, e.to_string()))?;
        options.check()?;
        let images = folder.join(IMAGES);
        let listing = read_json(&images)?.or_made_by("scan", &images)?;
        Ok(Self::new(folder, options, head.block.max(1), listing))
    }

    /// The error, or one that explains it: that another scan has meanwhile recorded other options or photographs.
    pub(super) fn unless_overtaken(&self, error: Error) -> Error {
        let options = read_head(&self.folder.join(OPTIONS)).ok().and_then(Found::whole);
        let options = options.and_then(|head| serde_json::from_value(head.options).ok());
        let listing = read_json::<Listing>(&self.folder.join(IMAGES)).ok().and_then(Found::whole);
        let other = options.is_some_and(|now: CollectionOptions| now != self.options)
            || listing.is_some_and(|now| now != self.listing);
        match error {
            Error::Format { .. } | Error::Mismatch(_) if other => Error::Mismatch(format!(
                "another scan has changed the options or the photographs of {} meanwhile",
                self.folder.display()
            )),
            error => error,
        }
    }

    fn new(folder: PathBuf, options: CollectionOptions, block: u32, listing: Listing) -> Self {
        let features = text_of(&without_paths(&options.features));
        let structure = (options.modality == Modality::Cross).then_some(structure::VERSION.to_le_bytes());
        let parts = [&features::VERSION.to_le_bytes()[..], features.as_bytes()];
        let features = fingerprint(parts.into_iter().chain(structure.as_ref().map(|version| &version[..])));
        let mut at_slot = Vec::new();
        for (i, photograph) in (0..).zip(&listing.photographs) {
            let slot = photograph.slot as usize;
            at_slot.resize(at_slot.len().max(slot + 1), None);
            at_slot[slot] = Some(i);
        }
        let (limits, sync) = (ReadOptions::default(), waits_for_disk());
        Self { folder, options, block, listing, at_slot, features, limits, sync }
    }

    /// A collection without a folder, for tests.
    #[cfg(test)]
    pub(super) fn of_photographs(options: CollectionOptions, photographs: Vec<Photograph>) -> Self {
        let block = options.block.unwrap_or(64);
        Self::new(PathBuf::new(), options, block, Listing { photographs, ..Listing::default() })
    }

    /// The same with other limits for the photographs and masks that are read. The folder does not record the limits:
    /// [`extract`](Self::extract) tries photographs again that were too large before.
    #[must_use]
    pub fn with_limits(self, limits: ReadOptions) -> Self {
        Self { limits, ..self }
    }

    /// The limits for photographs and masks that are read.
    pub fn limits(&self) -> &ReadOptions {
        &self.limits
    }

    /// The same, with or without `fsync` of all results before a stage ends; by default as this process
    /// [waits for the disk](crate::files::wait_for_disk). Without it a power cut may
    /// destroy results of a stage that has ended; damaged files are recognised and made again. A killed program loses
    /// nothing either way.
    #[must_use]
    pub fn with_sync(self, sync: bool) -> Self {
        Self { sync, ..self }
    }

    /// Whether results are brought to the disk (`fsync`) before a stage ends.
    pub fn syncs(&self) -> bool {
        self.sync
    }

    /// Reads photographs and masks whose length or times have changed since a search: the content may be the same.
    fn read_touched(&mut self, cpu: &Cpu) -> Result<()> {
        let touched = cpu.try_map(self.photographs().len(), |i| -> Result<_> {
            let photograph = &self.photographs()[i];
            let Some(origin) = self.origin(i)? else { return Ok([None, None]) };
            let is_touched =
                |(then, now): &(FileVersion, FileVersion)| now.content.is_none() && !then.is_untouched(now);
            // A file with the features of all photographs is not read for each of them.
            let beside = origin.beside.zip(photograph.beside).filter(|_| !self.is_one_file());
            let files = [Some((origin.photograph, photograph.file)), beside];
            Ok(files.map(|file| file.filter(is_touched).map(|(_, now)| now)))
        })?;
        let read: Vec<usize> =
            (0..touched.len()).filter(|i| touched[*i].iter().any(Option::is_some)).collect();
        let contents = cpu.try_map_task("read what was touched", read.len(), |at| {
            let i = read[at];
            let [photograph, beside] = touched[i];
            Ok([
                photograph.and_then(|now| unchanged_content(&self.path_of(i), &now)),
                beside.and_then(|now| unchanged_content(&self.beside_path(i).ok()??, &now)),
            ])
        })?;
        for (i, [content, beside]) in read.into_iter().zip(contents) {
            let photograph = &mut self.listing.photographs[i];
            photograph.file.content = photograph.file.content.or(content);
            if let Some(version) = &mut photograph.beside {
                version.content = version.content.or(beside);
            }
        }
        Ok(())
    }

    /// The work folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Removes the unfinished files that killed processes left in `folder`, which lies in the work folder. A part of the
    /// work looks only into the folders of the `files` that it is going to write.
    pub(super) fn remove_unfinished(
        &self,
        shard: Shard,
        folder: &str,
        files: impl Iterator<Item = PathBuf>,
    ) -> Result<()> {
        if shard == Shard::ALL {
            return remove_unfinished(self.folder.join(folder), 2).map(drop);
        }
        let folders: BTreeSet<PathBuf> = files.filter_map(|file| Some(file.parent()?.to_owned())).collect();
        folders.into_iter().try_for_each(|folder| remove_unfinished(folder, 1).map(drop))
    }

    /// Fails for a result inside of the work folder, where it could replace files of the collection.
    ///
    /// # Errors
    /// [`Error::Mismatch`].
    pub fn check_output(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        // A path that cannot be found cannot be written either, which its writer reports.
        let place = path.canonicalize().or_else(|_| folder_of(path).canonicalize());
        match place.is_ok_and(|place| self.folder.canonicalize().is_ok_and(|own| place.starts_with(own))) {
            true => Err(Error::Mismatch(format!(
                "{} lies in the work folder {}, whose files belong to the collection: name another place",
                path.display(),
                self.folder.display()
            ))),
            false => Ok(()),
        }
    }

    /// The folder that holds the photographs, directly or in folders below it.
    pub fn root(&self) -> &Path {
        &self.listing.root
    }

    /// The options of the collection.
    pub fn options(&self) -> &CollectionOptions {
        &self.options
    }

    /// Files that the last scan left out although they seem to be images, and folders that could not be read, and why.
    pub fn refused(&self) -> &[(String, String)] {
        &self.listing.refused
    }

    /// The photographs in the order of their names; a photograph's index is its number less one.
    pub fn photographs(&self) -> &[Photograph] {
        &self.listing.photographs
    }

    /// The hash of the file of pairs or of given matches at the time of the scan.
    pub(super) fn list(&self) -> Option<u64> {
        self.listing.list
    }

    /// The file of a photograph.
    ///
    /// # Panics
    /// If there is no photograph with this index.
    pub fn path_of(&self, index: usize) -> PathBuf {
        self.listing.root.join(&self.photographs()[index].name)
    }

    /// The file of a photograph's mask, or of its given features.
    pub(super) fn beside_path(&self, index: usize) -> Result<Option<PathBuf>> {
        let found = scan::beside(&self.options.features, &self.photographs()[index].name)?;
        Ok(found.map(|(path, _)| path))
    }

    /// Whether features are given in one file for all photographs.
    pub(super) fn is_one_file(&self) -> bool {
        self.options.features.given.as_ref().is_some_and(|given| !given.is_dir())
    }

    /// The cameras of photographs with these sizes, and for each photograph the index of its camera. Photographs that
    /// cannot be read have the size `None` and no camera.
    pub fn cameras(&self, sizes: &[Option<Size>]) -> (Vec<Camera>, Vec<Option<usize>>) {
        let readable =
            self.photographs().iter().zip(sizes).filter_map(|(p, size)| Some((&p.metadata, (*size)?)));
        let (cameras, of) = cameras(readable);
        let mut of = of.into_iter();
        (cameras, sizes.iter().map(|size| size.and_then(|_| of.next())).collect())
    }

    pub(super) fn block(&self) -> usize {
        self.block as usize
    }

    pub(super) fn blocks(&self) -> usize {
        self.at_slot.len().div_ceil(self.block())
    }

    /// The block of a photograph, and its place in it.
    pub(super) fn place_of(&self, index: u32) -> [usize; 2] {
        let slot = self.photographs()[index as usize].slot as usize;
        [slot / self.block(), slot % self.block()]
    }

    /// The blocks of two photographs, the smaller first: these name their tile.
    pub(super) fn blocks_of(&self, pair: [u32; 2]) -> [u32; 2] {
        let [a, b] = pair.map(|i| self.place_of(i)[0] as u32);
        [a.min(b), a.max(b)]
    }

    /// The photograph at a place of a block.
    pub(super) fn at_place(&self, block: usize, place: usize) -> Option<u32> {
        self.at_slot.get(block * self.block() + place).copied().flatten()
    }

    /// The file of a photograph's features, named after the photograph because numbers change as others come and go.
    pub(super) fn features_path(&self, index: usize) -> PathBuf {
        let name = format!("{:016x}", fingerprint([self.photographs()[index].name.as_bytes()]));
        self.folder.join(FEATURES).join(&name[..2]).join(format!("{name}.features"))
    }

    pub(super) fn features_made(&self, index: usize) -> Made {
        let name = self.photographs()[index].name.as_bytes();
        (Kind::Features, fingerprint([&self.features.to_le_bytes()[..], name]))
    }

    pub(super) fn pairs_path(&self) -> PathBuf {
        self.folder.join("pairs.bin")
    }

    pub(super) fn closure_path(&self) -> PathBuf {
        self.folder.join("closure.bin")
    }
}

/// The hash of a file's content, unless it has changed or cannot be read, which the stage that needs it reports.
pub(super) fn unchanged_content(path: &Path, found: &FileVersion) -> Option<u64> {
    let (bytes, meta) = content(path).ok()?.whole()?;
    FileVersion::of(&meta).is_untouched(found).then(|| fingerprint([&bytes[..]]))
}

/// The options without the names of files and folders, of which only the contents matter.
fn without_paths(options: &FeatureOptions) -> FeatureOptions {
    options.clone().with_masks(None).with_given(options.given.as_ref().map(|_| PathBuf::from(GIVEN)))
}

/// Waits until no other scan of the folder runs, and locks the folder, if the file system has locks.
fn lock(work: &Path, cpu: &Cpu) -> Result<File> {
    let path = work.join(format!(".{OPTIONS}.lock"));
    let file = File::create(&path).map_err(|e| Error::io(&path, e))?;
    let (began, mut task) = (Instant::now(), None);
    while let Err(TryLockError::WouldBlock) = file.try_lock() {
        cpu.check()?;
        if task.is_none() && began.elapsed() > SOON {
            // The first of two steps reports that the task has begun.
            let begun = cpu.begin_task("wait for another scan", 2);
            begun.advance(1);
            task = Some(begun);
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(file)
}

/// The options with a list of pairs that later stages can read, too: what can be read only once is kept in the folder.
fn with_kept_list(options: &CollectionOptions, work: &Path) -> Result<CollectionOptions> {
    let mut options = options.clone();
    if let Some(list) = &mut options.pairs.list
        && (list.as_path() == Path::new("/dev/stdin")
            || fs::metadata(&*list).is_ok_and(|found| !found.is_file()))
    {
        let text = read_within(&*list, u64::MAX, "two names of photographs a line")?;
        Disk::at_once(true).make_folder(work)?;
        let kept =
            std::path::absolute(work.join(format!("{OPTIONS}.pairs"))).map_err(|e| Error::io(work, e))?;
        write_atomically(&kept, |out| out.write_all(&text))?;
        *list = kept;
    }
    Ok(options)
}

/// The options that differ from the recorded ones, and whether all pairs have to be matched again because of them.
fn changed_options(recorded: &Value, now: &CollectionOptions) -> Result<(Vec<String>, bool)> {
    // Options that an earlier version did not have are the defaults.
    let Ok(before) = serde_json::from_value::<CollectionOptions>(recorded.clone()) else {
        return Ok(Default::default());
    };
    let without_list = |options: &CollectionOptions| {
        let pairs = PairOptions { list: None, ..options.pairs.clone() };
        value_of(&options.clone().with_block(None).with_pairs(pairs))
    };
    let changed = differences("", &without_list(&before)?, &without_list(now)?, ["", " → "]);
    Ok((changed, (&before.matching, &before.two_view) != (&now.matching, &now.two_view)))
}

/// Reads the options recorded in the folder `work` and checks `options` against them; `None` if there are none yet.
fn prepare(work: &Path, options: &CollectionOptions) -> Result<Option<Head>> {
    let head = read_head(&work.join(OPTIONS))?;
    for name in [OPTIONS, IMAGES] {
        if !is_ours(&work.join(name))? {
            let reason = format!("holds something else, in {name}; name a new folder or an empty one");
            return Err(Error::format(work, reason));
        }
    }
    if let Found::Whole(head) = head {
        let recorded = &head.options;
        // Options that an earlier version did not have are the defaults.
        let before = match serde_json::from_value::<FeatureOptions>(recorded["features"].clone()) {
            Ok(before) => value_of(&without_paths(&before))?,
            Err(_) => recorded["features"].clone(),
        };
        let given = value_of(&without_paths(&options.features))?;
        let mut changed = differences("features", &before, &given, ["`", "` and not "]);
        let modality = recorded["modality"].as_str().unwrap_or(Modality::Same.name());
        if modality != options.modality.name() {
            changed.push(format!("`--modality {modality}` and not {}", options.modality));
        }
        if let Some(block) = options.block.filter(|block| *block != head.block) {
            changed.push(format!("`--block {}` and not {block}", head.block));
        }
        return match changed.is_empty() {
            true => Ok(Some(head)),
            false => Err(Error::Mismatch(format!(
                "{} was made with other options: {}; give the same, or another work folder",
                work.display(),
                changed.join(", ")
            ))),
        };
    }
    let fault = |e| Error::io(work, e);
    let Some(entries) = if_there(fs::read_dir(work)).map_err(fault)? else { return Ok(None) };
    // A folder of ours may lack a record, if a run was killed at its beginning, or have a damaged one.
    let ours =
        |name: &str| name.trim_start_matches('.').starts_with(OPTIONS) || [IMAGES, FEATURES].contains(&name);
    let names = entries.map(|entry| entry.map(|e| e.file_name().to_string_lossy().into_owned()));
    let names: Vec<String> = names.collect::<io::Result<_>>().map_err(fault)?;
    match names.is_empty() || names.iter().any(|name| ours(name)) {
        true => Ok(None),
        false => Err(Error::format(work, "holds something else; name a new folder or an empty one")),
    }
}

/// Reads the record in the file at `path`.
fn read_head(path: &Path) -> Result<Found<Head>> {
    let other = |format: &dyn std::fmt::Display| {
        let reason =
            format!("was made by another version (format {format}, here {FORMAT}); name another work folder");
        Err(Error::format(path, reason))
    };
    match read_json::<Head>(path)? {
        Found::Whole(head) if head.format != FORMAT => other(&head.format),
        Found::Unfit(reason) => {
            // The first format had no checksum.
            let text = content(path)?.whole().map(|(bytes, _)| bytes).unwrap_or_default();
            match serde_json::from_slice::<Value>(&text).ok().and_then(|v| v.get("format")?.as_u64()) {
                Some(format) if format != u64::from(FORMAT) => other(&format),
                _ => Ok(Found::Unfit(reason)),
            }
        }
        found => Ok(found),
    }
}

/// The command's options that differ, with the recorded and the given value and words before and between them.
fn differences(name: &str, old: &Value, new: &Value, words: [&str; 2]) -> Vec<String> {
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            // A value that is missing is null.
            names.into_iter().flat_map(|key| differences(key, &old[key], &new[key], words)).collect()
        }
        (a, b) if a != b => {
            let fields = CollectionOptions::default().fields();
            let field = fields.iter().find(|field| field.field == name);
            let (flag, is_off) = field.map_or((name.to_owned(), false), Field::switch);
            let shown = |value: &Value| match value {
                Value::Null => "none".to_owned(),
                Value::String(text) => text.clone(),
                Value::Bool(value) => (*value != is_off).to_string(),
                other => other.to_string(),
            };
            let [before, between] = words;
            vec![format!("{before}--{flag} {}{between}{}", shown(a), shown(b))]
        }
        _ => Vec::new(),
    }
}

/// Options as they are recorded. They go through text, which writes 32-bit floats in their shortest form.
fn value_of(options: &impl Serialize) -> Result<Value> {
    let value = serde_json::to_string(options).and_then(|text| serde_json::from_str(&text));
    value.map_err(|e| Error::Mismatch(format!("the options cannot be recorded: {e}")))
}

/// Options as text, for a fingerprint. Options that cannot be written as text were refused before.
pub(super) fn text_of(options: &impl Serialize) -> String {
    serde_json::to_string(options).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Folder;

    #[test]
    fn options_that_changed_are_named_as_the_command_takes_them() {
        let usual = CollectionOptions::default();
        let sift = usual.features.sift;
        for (now, told) in [
            (usual.clone().with_matching(usual.matching.with_mutual(false)), "--one-way false → true"),
            (usual.clone().with_matching(usual.matching.with_same_sign(false)), "--any-sign false → true"),
            (usual.clone().with_matching(usual.matching.with_ratio(None)), "--ratio 0.77 → none"),
            (
                usual.clone().with_pairs(PairOptions::default().with_closure(false)),
                "--no-closure false → true",
            ),
            (
                usual.clone().with_two_view(usual.two_view.with_detect_watermark(false)),
                "--no-detect-watermark false → true",
            ),
            (
                usual.clone().with_features(usual.features.clone().with_sift(sift.with_root(false))),
                "--no-rootsift false → true",
            ),
            (
                usual.clone().with_features(usual.features.clone().with_sift(sift.with_upright(true))),
                "--upright false → true",
            ),
        ] {
            assert_eq!(changed_options(&value_of(&usual).unwrap(), &now).unwrap().0, [told]);
            let back = changed_options(&value_of(&now).unwrap(), &usual).unwrap().0;
            let [flag, before, _, after] = told.split(' ').collect::<Vec<_>>()[..] else { panic!("{told}") };
            assert_eq!(back, [format!("{flag} {after} → {before}")]);
        }
        let fields = usual.fields();
        let names: BTreeSet<&str> = fields.iter().map(|field| field.field).collect();
        assert_eq!(names.len(), fields.len(), "a field is found by its name");
    }

    #[test]
    fn options_that_an_older_record_lacks_are_the_defaults() {
        let folder = Folder::new("older-record");
        let options = CollectionOptions::default();
        let mut recorded = value_of(&options).unwrap();
        recorded["features"]["masks"] = "a folder".into();
        let record = |options: Value| {
            let head = Head { format: FORMAT, stages: json!({}), block: 64, options };
            write_json(&folder.join(OPTIONS), &head).unwrap();
        };
        let features = recorded["features"].as_object_mut().unwrap();
        assert!(features.remove("metric").is_some() && features.remove("longest_side").is_some());
        record(recorded.clone());
        assert!(prepare(&folder.0, &options).unwrap().is_some());
        let other = options.clone().with_features(options.features.clone().with_longest_side(100));
        let refused = prepare(&folder.0, &other).unwrap_err().to_string();
        assert!(
            refused.contains("other options: `--longest-side 3200` and not 100; give the same"),
            "{refused}"
        );
        recorded["features"]["of a later version"] = 1.into();
        record(recorded);
        assert!(
            prepare(&folder.0, &options)
                .unwrap_err()
                .to_string()
                .contains("of a later version 1` and not none")
        );
    }
}
