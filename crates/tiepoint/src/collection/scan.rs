//! The first stage: which photographs there are, and what their files say.

use super::exif::{self, Metadata};
use crate::device::Cpu;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use walkdir::WalkDir;

/// A photograph of a collection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Photograph {
    /// Its path below the collection's root, with `/` between folders: its name in a database.
    pub name: String,
    /// Length of its file.
    pub bytes: u64,
    /// When its file was last changed, in nanoseconds from 1970 on; 0 where the system does not tell.
    pub modified: u64,
    /// What its file says about the camera.
    pub metadata: Metadata,
}

/// The photographs of a collection, by number less one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Listing {
    /// The folder that names are below.
    pub(super) root: PathBuf,
    pub(super) photographs: Vec<Photograph>,
}

/// What a scan found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scanned {
    /// Photographs in all.
    pub photographs: usize,
    /// Of these, those that were not there before.
    pub added: usize,
    /// Files that are left out although they seem to be images, and why.
    pub refused: Vec<(PathBuf, String)>,
}

/// Extensions of the formats that are read.
const READ: [&str; 13] =
    ["jpg", "jpeg", "jpe", "png", "tif", "tiff", "pnm", "ppm", "pgm", "pbm", "pam", "pfm", "jfif"];
/// Extensions of images that are not.
const NOT_READ: [&str; 12] =
    ["heic", "heif", "avif", "webp", "jp2", "bmp", "gif", "dng", "cr2", "nef", "arw", "jxl"];

/// The image files among `inputs` and in the folders among them, below their common folder.
pub(super) fn list(inputs: &[PathBuf], cpu: &Cpu) -> Result<(Listing, Vec<(PathBuf, String)>)> {
    let places = inputs.iter().map(|input| Place::of(input)).collect::<Result<Vec<_>>>()?;
    let root = common_folder(places.iter().map(|place| place.folder.as_path()))
        .ok_or_else(|| Error::Mismatch("no folder of images and no image is given".into()))?;
    let (mut files, mut refused) = (BTreeMap::new(), Vec::new());
    for place in &places {
        for path in place.files()? {
            match name(&path, &root) {
                Ok(name) => _ = files.insert(name, path),
                Err(reason) => refused.push((path, reason)),
            }
        }
    }
    let files: Vec<(String, PathBuf)> = files.into_iter().collect();
    let cpu = &cpu.begin_task("scan", files.len());
    let photographs = cpu.try_map(files.len(), |i| {
        let (name, path) = &files[i];
        let photograph = photograph(name, path);
        cpu.advance(1);
        photograph
    })?;
    Ok((Listing { root, photographs }, refused))
}

fn photograph(name: &str, path: &Path) -> Result<Photograph> {
    let meta = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
    Ok(Photograph {
        name: name.to_owned(),
        bytes: meta.len(),
        modified: modified(&meta),
        metadata: exif::read(path),
    })
}

/// When a file was last changed, in nanoseconds from 1970 on.
pub(super) fn modified(meta: &std::fs::Metadata) -> u64 {
    let since = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// A file or folder of the inputs.
struct Place {
    /// The folder, or that of the file, freed from links.
    folder: PathBuf,
    /// The name of the file.
    file: Option<PathBuf>,
}

impl Place {
    fn of(input: &Path) -> Result<Self> {
        let fault = |e| Error::io(input, e);
        if std::fs::metadata(input).map_err(fault)?.is_dir() {
            return Ok(Self { folder: input.canonicalize().map_err(fault)?, file: None });
        }
        let folder = input.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = input.file_name().map(PathBuf::from);
        Ok(Self { folder: folder.canonicalize().map_err(fault)?, file })
    }

    /// The image files here: the file, whatever its extension, or all in the folder whose extension is that of an
    /// image.
    fn files(&self) -> Result<Vec<PathBuf>> {
        if let Some(file) = &self.file {
            return Ok(vec![self.folder.join(file)]);
        }
        let visible = |name: &std::ffi::OsStr| !name.to_string_lossy().starts_with('.');
        let mut files = Vec::new();
        let walk = WalkDir::new(&self.folder).follow_links(true).into_iter();
        for entry in walk.filter_entry(|entry| entry.depth() == 0 || visible(entry.file_name())) {
            let entry = entry.map_err(|e| {
                let path = e.path().unwrap_or(&self.folder).to_owned();
                Error::io(path, e.into())
            })?;
            let extension = entry.path().extension().map(|e| e.to_string_lossy().to_lowercase());
            let seems_image = extension.is_some_and(|e| READ.contains(&&*e) || NOT_READ.contains(&&*e));
            if seems_image && entry.file_type().is_file() {
                files.push(entry.into_path());
            }
        }
        Ok(files)
    }
}

/// The name of a photograph, or why it cannot be one.
fn name(path: &Path, root: &Path) -> std::result::Result<String, String> {
    let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
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

/// The deepest folder that all are in.
fn common_folder<'p>(folders: impl Iterator<Item = &'p Path>) -> Option<PathBuf> {
    folders.map(Path::to_owned).reduce(|a, b| {
        let alike = a.components().zip(b.components()).take_while(|(a, b)| a == b);
        alike.map(|(part, _)| part).collect()
    })
}

/// `before` with the photographs that `now` adds, and their number.
///
/// # Errors
/// [`Error::Mismatch`] when photographs of `before` are missing or have changed; `same` tells whether one whose time
/// has changed still holds what it held.
pub(super) fn update(
    before: Listing,
    now: Listing,
    same: impl Fn(usize, &Path) -> Result<bool>,
) -> Result<(Listing, usize)> {
    let mut found: BTreeMap<String, Photograph> =
        now.photographs.into_iter().map(|photograph| (photograph.name.clone(), photograph)).collect();
    let mut photographs = Vec::with_capacity(found.len());
    for (i, old) in before.photographs.into_iter().enumerate() {
        let Some(new) = found.remove(&old.name) else {
            return Err(Error::Mismatch(format!(
                "{} is in the work folder and not among the images given; give all of them, or another work folder",
                old.name
            )));
        };
        let changed =
            new.bytes != old.bytes || (new.modified != old.modified && !same(i, &now.root.join(&new.name))?);
        if changed {
            return Err(Error::Mismatch(format!(
                "{} has changed since the work folder was made; name another work folder, or put the image back",
                old.name
            )));
        }
        photographs.push(new);
    }
    let added = found.len();
    photographs.extend(found.into_values());
    Ok((Listing { root: now.root, photographs }, added))
}
