//! The folder of a collection: its options, its photographs, and where everything lies in it.

use super::camera::{Camera, cameras};
use super::record::{Found, content, fingerprint};
use super::scan::{self, Listing, Photograph, Scanned};
use super::{CollectionOptions, features};
use crate::device::Cpu;
use crate::files::{Disk, remove_unfinished, write_atomically};
use crate::image::{ReadOptions, Size};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The version of what a work folder holds.
const FORMAT: u32 = 1;
const OPTIONS: &str = "collection.json";
const IMAGES: &str = "images.json";

#[derive(Serialize, Deserialize)]
struct Head {
    format: u32,
    options: Value,
}

/// Many photographs and what is known of them so far, in a folder.
#[derive(Clone, Debug)]
pub struct Collection {
    folder: PathBuf,
    options: CollectionOptions,
    listing: Listing,
    /// Of the options of features, which every file of features carries.
    features: u64,
    /// How large photographs and masks may be.
    limits: ReadOptions,
    /// Whether results are brought to the disk before they count as done.
    sync: bool,
}

impl Collection {
    /// Makes the folder `work` or opens it again, and brings its list of photographs up to date: image files among
    /// `images` and in the folders among them. This is the stage `scan`.
    ///
    /// # Errors
    /// As [`CollectionOptions::check`]; [`Error::Mismatch`] when the folder was made with other options, when a
    /// photograph has changed or is no longer there, or when there is none; [`Error::Format`] for a folder that holds
    /// something else; [`Error::Io`].
    pub fn scan(
        work: impl Into<PathBuf>,
        images: &[PathBuf],
        options: &CollectionOptions,
        cpu: &Cpu,
    ) -> Result<(Self, Scanned)> {
        options.check()?;
        let work = work.into();
        let is_new = prepare(&work, options)?;
        remove_unfinished(&work, 1)?;
        let (now, refused) = scan::list(images, cpu)?;
        if now.photographs.is_empty() {
            return Err(Error::Mismatch(format!(
                "there is no image in {}; JPEG, PNG, TIFF, PNM and PFM are read",
                now.root.display()
            )));
        }
        let mut collection = Self::new(work, options.clone(), Listing::default());
        if is_new {
            Disk::at_once(true).make_folder(&collection.folder)?;
            let head = Head { format: FORMAT, options: value_of(options)? };
            write_json(&collection.folder.join(OPTIONS), &head)?;
        } else if let Some(listing) = read_json::<Listing>(&collection.folder.join(IMAGES))? {
            collection.listing = listing;
        }
        let before = std::mem::take(&mut collection.listing);
        let (listing, added) = scan::update(before.clone(), now, |i, path| {
            collection.is_unchanged(i, &before.photographs[i], path)
        })?;
        if listing != before {
            write_json(&collection.folder.join(IMAGES), &listing)?;
        }
        collection.listing = listing;
        let photographs = collection.photographs().len();
        Ok((collection, Scanned { photographs, added, refused }))
    }

    /// Opens a folder that [`scan`](Self::scan) made.
    ///
    /// # Errors
    /// [`Error::Format`] when it is none, or of another version; [`Error::Io`].
    pub fn open(work: impl Into<PathBuf>) -> Result<Self> {
        let folder = work.into();
        let path = folder.join(OPTIONS);
        let head: Head = read_json(&path)?.ok_or_else(|| {
            Error::format(&folder, "is no work folder of a collection; run the stage `scan` first")
        })?;
        check_format(&path, head.format)?;
        let options: CollectionOptions =
            serde_json::from_value(head.options).map_err(|e| Error::format(&path, e.to_string()))?;
        options.check()?;
        let images = folder.join(IMAGES);
        let listing = read_json(&images)?
            .ok_or_else(|| Error::format(&images, "is not there; run the stage `scan` again"))?;
        Ok(Self::new(folder, options, listing))
    }

    fn new(folder: PathBuf, options: CollectionOptions, listing: Listing) -> Self {
        let features = fingerprint([b"features".as_slice(), text_of(&options.features).as_bytes()]);
        Self { folder, options, listing, features, limits: ReadOptions::default(), sync: true }
    }

    /// The same with other limits for photographs and masks that are read. The folder does not record them:
    /// [`extract`](Self::extract) tries those again that were too large before.
    #[must_use]
    pub fn with_limits(self, limits: ReadOptions) -> Self {
        Self { limits, ..self }
    }

    /// How large photographs and masks may be that are read.
    pub fn limits(&self) -> &ReadOptions {
        &self.limits
    }

    /// The same, with or without bringing what stages make to the disk (`fsync`) before they end. Default true. Without
    /// it a power cut may take results along that a stage has called done; what it leaves is made again where it is
    /// damaged, and a killed program loses nothing either way.
    #[must_use]
    pub fn with_sync(self, sync: bool) -> Self {
        Self { sync, ..self }
    }

    /// Whether what stages make is brought to the disk before they end.
    pub fn syncs(&self) -> bool {
        self.sync
    }

    /// Whether a photograph whose file was touched holds what its features were found in; so it does without features.
    fn is_unchanged(&self, index: usize, photograph: &Photograph, path: &Path) -> Result<bool> {
        let stored = features::read(&self.features_path(index), self.features_fingerprint(photograph))?;
        let Some(stored) = stored.whole() else { return Ok(true) };
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        Ok(features::content_hash(&bytes) == stored.content)
    }

    /// The work folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder below which the photographs lie.
    pub fn root(&self) -> &Path {
        &self.listing.root
    }

    /// What the collection was made with.
    pub fn options(&self) -> &CollectionOptions {
        &self.options
    }

    /// The photographs, by number less one.
    pub fn photographs(&self) -> &[Photograph] {
        &self.listing.photographs
    }

    /// The file of a photograph.
    pub fn path_of(&self, index: usize) -> PathBuf {
        self.listing.root.join(&self.photographs()[index].name)
    }

    /// The cameras of the photographs, by number less one, and for each photograph the index of its camera. Photographs
    /// that cannot be read have `None`.
    pub fn cameras(&self, sizes: &[Option<Size>]) -> (Vec<Camera>, Vec<Option<usize>>) {
        let readable =
            self.photographs().iter().zip(sizes).filter_map(|(p, size)| Some((&p.metadata, (*size)?)));
        let (cameras, of) = cameras(readable);
        let mut of = of.into_iter();
        (cameras, sizes.iter().map(|size| size.and_then(|_| of.next())).collect())
    }

    /// Photographs in a block.
    pub(super) fn block(&self) -> usize {
        self.options.block as usize
    }

    /// The photographs of a block.
    pub(super) fn block_range(&self, block: usize) -> std::ops::Range<usize> {
        let start = block * self.block();
        start..(start + self.block()).min(self.photographs().len())
    }

    pub(super) fn features_path(&self, index: usize) -> PathBuf {
        let block = format!("{:05}", index / self.block());
        self.folder.join("features").join(block).join(format!("{:08}.features", index + 1))
    }

    pub(super) fn features_fingerprint(&self, photograph: &Photograph) -> u64 {
        fingerprint([
            &self.features.to_le_bytes()[..],
            photograph.name.as_bytes(),
            &photograph.bytes.to_le_bytes(),
        ])
    }

    pub(super) fn pairs_path(&self) -> PathBuf {
        self.folder.join("pairs.bin")
    }

    pub(super) fn closure_path(&self) -> PathBuf {
        self.folder.join("closure.bin")
    }

    /// The file of the tile of two blocks: of the chosen pairs, or of those of the closure.
    pub(super) fn tile_path(&self, folder: &str, [row, column]: [usize; 2]) -> PathBuf {
        self.folder.join(folder).join(format!("{row:05}")).join(format!("{row:05}-{column:05}.tile"))
    }
}

/// Looks at what is at `work`: true where a new folder is to be made.
fn prepare(work: &Path, options: &CollectionOptions) -> Result<bool> {
    let path = work.join(OPTIONS);
    if let Some(head) = read_json::<Head>(&path)? {
        check_format(&path, head.format)?;
        let mut changed = Vec::new();
        differences("", &head.options, &value_of(options)?, &mut changed);
        return match changed.is_empty() {
            true => Ok(false),
            false => Err(Error::Mismatch(format!(
                "{} was made with other options: {}; give the same, or another work folder",
                work.display(),
                changed.join(", ")
            ))),
        };
    }
    match std::fs::read_dir(work) {
        Ok(mut entries) => match entries.next() {
            None => Ok(true),
            // What a run that was killed right at its beginning leaves.
            Some(Ok(entry)) if entry.file_name().to_string_lossy().starts_with(&format!(".{OPTIONS}")) => {
                Ok(true)
            }
            // Another process has made it a moment ago.
            Some(_) if path.exists() => prepare(work, options),
            Some(_) => Err(Error::format(work, "holds something else; name a new folder or an empty one")),
        },
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(e) => Err(Error::io(work, e)),
    }
}

fn check_format(path: &Path, format: u32) -> Result<()> {
    match format {
        FORMAT => Ok(()),
        other => Err(Error::format(
            path,
            format!("was made by another version (format {other}, here {FORMAT}); name another work folder"),
        )),
    }
}

/// The options that differ, each with the value in the folder and that which is given.
fn differences(name: &str, old: &Value, new: &Value, changed: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in names {
                let inner = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                let value = |of: &serde_json::Map<String, Value>| of.get(key).cloned().unwrap_or(Value::Null);
                differences(&inner, &value(a), &value(b), changed);
            }
        }
        (a, b) if a != b => changed.push(format!("{name} {a} and not {b}")),
        _ => {}
    }
}

/// The options as they are recorded: by way of text, which writes 32-bit floats in their shortest form.
fn value_of(options: &CollectionOptions) -> Result<Value> {
    serde_json::to_string(options)
        .and_then(|text| serde_json::from_str(&text))
        .map_err(|e| Error::Mismatch(format!("the options cannot be recorded: {e}")))
}

/// Options as text, for a fingerprint. What cannot be written as text was refused before.
pub(super) fn text_of(options: &impl Serialize) -> String {
    serde_json::to_string(options).unwrap_or_default()
}

fn write_json(path: &Path, content: &impl Serialize) -> Result<()> {
    write_atomically(path, |out| {
        serde_json::to_writer_pretty(&mut *out, content).map_err(io::Error::other)?;
        out.write_all(b"\n")
    })
}

/// The content of a file, or nothing where there is none.
fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Option<T>> {
    let bytes = match content(path)? {
        Found::Whole(bytes) => bytes,
        Found::Missing => return Ok(None),
        Found::Unfit(reason) => {
            return Err(Error::format(path, format!("{reason}; name another work folder")));
        }
    };
    let damaged = |e| Error::format(path, format!("{e}; name another work folder"));
    serde_json::from_slice(&bytes).map(Some).map_err(damaged)
}
