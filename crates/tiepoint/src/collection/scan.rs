//! The first stage: the list of photographs, with what their files say about the camera.

use super::FeatureOptions;
use crate::device::Cpu;
use crate::files::{extension, folder_of, if_there};
use crate::image::Metadata;
use crate::{Error, Result};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;
use walkdir::WalkDir;

/// A photograph of a collection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Photograph {
    /// Its path below the collection's root, with `/` between folders, which is its name in a database.
    pub name: String,
    /// Its file.
    pub file: FileVersion,
    /// Its mask or, if features are given, its file of them; where there is one.
    #[serde(alias = "mask")]
    pub beside: Option<FileVersion>,
    /// What its file says about the camera.
    pub metadata: Metadata,
    /// Its number for the division into blocks, which it keeps while other photographs come and go.
    pub(super) slot: u32,
}

#[cfg(test)]
impl Photograph {
    pub(super) fn named(name: impl Into<String>, slot: u32) -> Self {
        let (file, metadata) = (FileVersion::default(), Metadata::default());
        Self { name: name.into(), file, beside: None, metadata, slot }
    }

    pub(super) fn all_named(names: &[&str]) -> Vec<Self> {
        (0..).zip(names).map(|(slot, name)| Self::named(*name, slot)).collect()
    }
}

/// What identifies the content of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileVersion {
    /// Its length.
    pub bytes: u64,
    /// When its content was last changed, in nanoseconds since 1970; 0 if the system does not tell.
    pub modified: u64,
    /// When anything about it was last changed, in the same unit. This also changes when another file takes its name.
    pub changed: u64,
    /// The hash of its content, if that has been read.
    pub(super) content: Option<u64>,
}

impl FileVersion {
    pub(super) fn of(meta: &std::fs::Metadata) -> Self {
        let since = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        #[cfg(unix)]
        let changed = {
            use std::os::unix::fs::MetadataExt;
            let nanoseconds = i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec());
            u64::try_from(nanoseconds).unwrap_or(0)
        };
        #[cfg(not(unix))]
        let changed = 0;
        Self { bytes: meta.len(), modified, changed, content: None }
    }

    /// Whether length and times are the same as `later`.
    pub(super) fn is_untouched(&self, later: &Self) -> bool {
        (self.bytes, self.modified, self.changed) == (later.bytes, later.modified, later.changed)
    }

    /// Whether both are known to have the same content.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.is_untouched(other) || (self.content.is_some() && self.content == other.content)
    }
}

/// The photographs of a collection, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Listing {
    /// The folder to which names are relative.
    pub(super) root: PathBuf,
    pub(super) photographs: Vec<Photograph>,
    /// Hash of the file of pairs or of given matches, if pairs are chosen by one.
    pub(super) list: Option<u64>,
    /// As [`Scanned::refused`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) refused: Vec<(String, String)>,
}

/// What a scan found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Scanned {
    /// The number of photographs.
    pub photographs: usize,
    /// Photographs that were not there before.
    pub added: usize,
    /// Photographs that were there before and no longer are.
    pub removed: usize,
    /// Photographs that have a mask.
    pub masked: usize,
    /// Photographs that record where they were taken.
    pub positions: usize,
    /// Options that are not those of the last scan, each with both values.
    pub changed_options: Vec<String>,
    /// Whether all pairs have to be matched again because of them.
    #[serde(skip)]
    pub(super) rematches: bool,
    /// Files that are left out although they seem to be images, and folders that cannot be read, with the reasons.
    #[serde(serialize_with = "with_reasons")]
    pub refused: Vec<(PathBuf, String)>,
    /// Hidden images and folders, whose names begin with a dot; they are left out.
    #[serde(skip)]
    pub hidden: Vec<PathBuf>,
    /// How many pairs of given matches are left out because they are not of two photographs, and why the first is.
    #[serde(skip)]
    pub(super) left_out_pairs: Option<(usize, String)>,
}

/// Serialises images that are left out, each with its reason.
pub(super) fn with_reasons<P: AsRef<Path>, S: Serializer>(
    images: &[(P, String)],
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    to.collect_seq(images.iter().map(|(image, reason)| {
        BTreeMap::from([("image", image.as_ref().display().to_string()), ("reason", reason.clone())])
    }))
}

/// Extensions of the images that a collection takes.
const READ: [&str; 21] = [
    "jpg", "jpeg", "jpe", "jfif", "png", "tif", "tiff", "webp", "jp2", "j2k", "jpf", "jpx", "jxl", "bmp",
    "gif", "pnm", "ppm", "pgm", "pbm", "pam", "pfm",
];
/// Extensions of images that a collection refuses, with a message.
const NOT_READ: [&str; 7] = ["heic", "heif", "avif", "dng", "cr2", "nef", "arw"];

/// Lists the image files among `inputs` and in the folders among them, named relative to their common folder, with
/// their masks or given features. Slots are in the order of names.
pub(super) fn list(inputs: &[PathBuf], options: &FeatureOptions, cpu: &Cpu) -> Result<(Listing, Scanned)> {
    // A single folder keeps the name that was given, because links in its path may lead elsewhere on another machine.
    // Several are resolved, to find their common folder.
    let is_plain = |path: &Path| !path.components().any(|part| part == Component::ParentDir);
    let resolve = |path: &Path| -> io::Result<PathBuf> {
        match inputs {
            [_] if is_plain(path) => Ok(std::path::absolute(path)?.components().collect()),
            _ => path.canonicalize(),
        }
    };
    let places = inputs.iter().map(|input| Place::of(input, resolve)).collect::<Result<Vec<_>>>()?;
    let root = common_folder(places.iter().map(|place| place.folder.as_path()))
        .ok_or_else(|| Error::Mismatch("no folder of images and no image is given".into()))?;
    let (mut files, mut scanned) = (BTreeMap::new(), Scanned::default());
    let masks = options.masks.as_ref().and_then(|masks| masks.canonicalize().ok());
    for place in &places {
        for path in place.files(masks.as_deref(), &mut scanned)? {
            match name(&path, &root) {
                Ok(name) => _ = files.insert(name, path),
                Err(reason) => scanned.refused.push((path, reason)),
            }
        }
    }
    let files: Vec<(String, PathBuf)> = files.into_iter().collect();
    let photographs =
        cpu.try_map_task("scan", files.len(), |i| photograph(&files[i].0, &files[i].1, options))?;
    let mut found = Vec::with_capacity(files.len());
    // The photograph to which each file of features belongs.
    let mut owners = HashMap::new();
    let is_masked = options.given.is_none() && options.masks.is_some();
    let pictures =
        files.iter().filter_map(|(_, path)| if is_masked { path.canonicalize().ok() } else { None });
    let pictures: HashSet<PathBuf> = pictures.collect();
    for ((name, path), read) in files.iter().zip(photographs) {
        match read {
            Ok((photograph, beside)) => {
                if let Some(mask) = beside.as_ref().filter(|_| is_masked)
                    && mask.canonicalize().is_ok_and(|mask| pictures.contains(&mask))
                {
                    let reason = format!(
                        "is the mask of {name} and would be a photograph, too; put masks into a folder of their own"
                    );
                    return Err(Error::format(mask, reason));
                }
                if let Some(features) = beside.filter(|_| !is_masked)
                    && let Some(other) = owners.insert(features.clone(), name)
                {
                    let reason = format!(
                        "would be the features of both {other} and {name}; put the whole names before the extension"
                    );
                    return Err(Error::format(features, reason));
                }
                found.push(Photograph { slot: found.len() as u32, ..photograph });
            }
            Err(reason) => scanned.refused.push((path.clone(), reason)),
        }
    }
    let refused = scanned.refused.iter().map(|(path, reason)| (path.display().to_string(), reason.clone()));
    Ok((Listing { root, photographs: found, list: None, refused: refused.collect() }, scanned))
}

/// A photograph, and the file of its own that gives its features or masks it, if there is one; or why it is left out.
fn photograph(
    name: &str,
    path: &Path,
    options: &FeatureOptions,
) -> Result<std::result::Result<(Photograph, Option<PathBuf>), String>> {
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(e) => return refusal(path, e).map(Err),
    };
    let metadata = Metadata::read(path)?;
    let (beside, version) = beside(options, name)?.unzip();
    let file = FileVersion::of(&meta);
    let photograph = Photograph { name: name.to_owned(), file, beside: version, metadata, slot: 0 };
    let is_own = beside != options.given;
    Ok(Ok((photograph, beside.filter(|_| is_own))))
}

/// The system's error ELOOP, for links that lead to each other.
const LOOP: i32 = if cfg!(target_os = "linux") { 40 } else { 62 };
const IN_A_CIRCLE: &str = "is a link that leads to itself";

/// Why a file or folder is left out, for errors that would be the same next time; others may pass and are returned.
fn refusal(path: &Path, error: io::Error) -> Result<String> {
    match error.kind() {
        io::ErrorKind::NotFound => Ok("is a broken link".into()),
        _ if error.raw_os_error() == Some(LOOP) => Ok(IN_A_CIRCLE.into()),
        io::ErrorKind::PermissionDenied => Ok(error.to_string()),
        _ => Err(Error::io(path, error)),
    }
}

/// Extensions of files of features that are given, in the order in which they are looked for.
pub(super) const GIVEN: [&str; 5] = ["npz", "txt", "csv", "json", "sift"];

/// The file from which, besides its own, the features of the photograph `name` are made: its mask or its given
/// features. A mask is `NAME.png`, or `name` with its extension replaced by `png`. Given features are named likewise,
/// with their extensions, or are one file for all photographs.
pub(super) fn beside(options: &FeatureOptions, name: &str) -> Result<Option<(PathBuf, FileVersion)>> {
    let (folder, extensions) = match (&options.given, &options.masks) {
        (Some(given), _) if given.is_dir() => (given, &GIVEN[..]),
        (Some(file), _) => {
            let version = std::fs::metadata(file).map_err(|e| Error::io(file, e))?;
            return Ok(Some((file.clone(), FileVersion::of(&version))));
        }
        (None, Some(masks)) => (masks, &["png"][..]),
        (None, None) => return Ok(None),
    };
    for extension in extensions {
        for path in [folder.join(format!("{name}.{extension}")), folder.join(name).with_extension(extension)]
        {
            if let Some(meta) = if_there(std::fs::metadata(&path)).map_err(|e| Error::io(&path, e))? {
                return Ok(Some((path, FileVersion::of(&meta))));
            }
        }
    }
    Ok(None)
}

/// A file or folder of the inputs.
struct Place {
    /// The folder, or the folder that holds the file.
    folder: PathBuf,
    /// The name of the file, if the input is a file.
    file: Option<PathBuf>,
}

impl Place {
    fn of(input: &Path, resolve: impl Fn(&Path) -> io::Result<PathBuf>) -> Result<Self> {
        let fault = |e| Error::io(input, e);
        if std::fs::metadata(input).map_err(fault)?.is_dir() {
            return Ok(Self { folder: resolve(input).map_err(fault)?, file: None });
        }
        let file = input.file_name().map(PathBuf::from);
        Ok(Self { folder: resolve(folder_of(input)).map_err(fault)?, file })
    }

    /// The file, whatever its extension, or all below the folder that have that of an image, but those in `masks`.
    fn files(&self, masks: Option<&Path>, scanned: &mut Scanned) -> Result<Vec<PathBuf>> {
        if let Some(file) = &self.file {
            return Ok(vec![self.folder.join(file)]);
        }
        let mut files = Vec::new();
        let mut walk = WalkDir::new(&self.folder).follow_links(true).into_iter();
        while let Some(entry) = walk.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(e) => {
                    let path = e.path().unwrap_or(&self.folder).to_owned();
                    let code = e.io_error().and_then(io::Error::raw_os_error);
                    let is_circle = e.loop_ancestor().is_some() || code == Some(LOOP);
                    let error = io::Error::from(e);
                    let is_broken = error.kind() == io::ErrorKind::NotFound;
                    let reason = if is_circle { IN_A_CIRCLE.into() } else { refusal(&path, error)? };
                    if !is_broken || seems_image(&path) || seems_folder(&path) {
                        scanned.refused.push((path, reason));
                    }
                    continue;
                }
            };
            let (path, is_file) = (entry.path(), entry.file_type().is_file());
            let is_masks = |masks| !is_file && path.canonicalize().is_ok_and(|path| path == masks);
            if entry.depth() > 0 && masks.is_some_and(is_masks) {
                walk.skip_current_dir();
            } else if entry.depth() > 0 && entry.file_name().to_string_lossy().starts_with('.') {
                if !is_file {
                    walk.skip_current_dir();
                }
                if !is_file || seems_image(path) {
                    scanned.hidden.push(path.to_owned());
                }
            } else if is_file && seems_image(path) {
                files.push(entry.into_path());
            }
        }
        Ok(files)
    }
}

/// Whether the extension is that of an image.
fn seems_image(path: &Path) -> bool {
    let extension = extension(path);
    READ.contains(&&*extension) || NOT_READ.contains(&&*extension)
}

/// Whether a broken link may have led to a folder: its name has no extension.
fn seems_folder(link: &Path) -> bool {
    let is_hidden = link.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    !is_hidden && link.extension().is_none()
}

/// The name of a photograph, or why it cannot be one.
fn name(path: &Path, root: &Path) -> std::result::Result<String, String> {
    let extension = extension(path);
    if NOT_READ.contains(&&*extension) {
        return Err(format!("{extension} is not read; convert it to JPEG, PNG or TIFF"));
    }
    let below = path.strip_prefix(root).unwrap_or(path);
    let parts: Option<Vec<&str>> = below.components().map(|part| part.as_os_str().to_str()).collect();
    let name = parts.ok_or("its name is not Unicode, and a database holds no other; rename it")?.join("/");
    match name.contains(['\n', '\r', '\0']) {
        true => Err("its name holds a line break; rename it".into()),
        false => Ok(name),
    }
}

/// The deepest folder that contains all these folders.
fn common_folder<'p>(folders: impl Iterator<Item = &'p Path>) -> Option<PathBuf> {
    folders.map(Path::to_owned).reduce(|a, b| {
        let alike = a.components().zip(b.components()).take_while(|(a, b)| a == b);
        alike.map(|(part, _)| part).collect()
    })
}

/// Photographs of `now` that were there `before` keep their slots, and the others get free ones. Files whose length and
/// times have not changed keep the hash of their content. Returns the numbers of photographs added and removed.
pub(super) fn keep_slots(before: &Listing, now: &mut Listing) -> [usize; 2] {
    let old: HashMap<&str, &Photograph> = before.photographs.iter().map(|p| (p.name.as_str(), p)).collect();
    let mut taken = HashSet::new();
    for photograph in &mut now.photographs {
        let Some(old) = old.get(photograph.name.as_str()) else { continue };
        photograph.slot = old.slot;
        taken.insert(old.slot);
        let files = std::iter::once((&old.file, &mut photograph.file));
        for (old, new) in files.chain(old.beside.iter().zip(&mut photograph.beside)) {
            new.content = old.content.filter(|_| old.is_untouched(new));
        }
    }
    let mut free = (0..).filter(|slot| !taken.contains(slot));
    let mut added = 0;
    for photograph in now.photographs.iter_mut().filter(|p| !old.contains_key(p.name.as_str())) {
        photograph.slot = free.next().unwrap_or(u32::MAX);
        added += 1;
    }
    [added, old.len() + added - now.photographs.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn photographs_keep_their_slots_and_new_ones_fill_gaps() {
        let listing =
            |names: &[&str]| Listing { photographs: Photograph::all_named(names), ..Listing::default() };
        let mut now = listing(&["a", "c", "d", "e"]);
        assert_eq!(keep_slots(&listing(&["b", "c", "e"]), &mut now), [2, 1], "added, removed");
        let slots: Vec<u32> = now.photographs.iter().map(|p| p.slot).collect();
        assert_eq!(slots, [0, 1, 3, 2]);
    }
}
