//! The second stage: the features of every photograph, in one file for each.

mod file;
mod given;
mod search;

use super::folder::{Collection, unchanged_content};
use super::record::{self, Found, fingerprint};
use super::scan::{FileVersion, with_reasons};
use super::{PairChoice, Shard};
use crate::device::{Cpu, Processor};
use crate::feature::Features;
use crate::files::Disk;
use crate::image::{self, Metadata, Size};
use crate::{Error, Result};
use file::Readable;
pub(super) use file::{Known, Origin, decode_body, decode_head, encode};
use search::Extraction;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The version of what this stage computes. When it changes, all features are made again.
pub(super) const VERSION: u32 = 2;

/// The state of a photograph, for the stages that follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It has features. The key is a hash of all that its pairs depend on: name, features, size and focal length.
    Found {
        known: Known,
        key: u64,
    },
    Unreadable(String),
    /// It is still to be searched. If there is a file of features that cannot be used: why.
    Missing(Option<String>),
}

impl State {
    /// The key of a photograph that has features.
    pub(super) fn key(&self) -> Option<u64> {
        match self {
            Self::Found { key, .. } => Some(*key),
            Self::Unreadable(_) | Self::Missing(_) => None,
        }
    }

    pub(super) fn is_unreadable(&self) -> bool {
        matches!(self, Self::Unreadable(_))
    }

    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Missing(_))
    }

    /// What is known of the features that are there.
    pub(super) fn known(&self) -> Option<&Known> {
        match self {
            Self::Found { known, .. } => Some(known),
            Self::Unreadable(_) | Self::Missing(_) => None,
        }
    }

    /// The number of features that are there.
    pub(super) fn count(&self) -> usize {
        self.known().map_or(0, |known| known.count)
    }
}

/// The result of this stage for one photograph.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PhotographFeatures {
    /// Its features, in pixels of the photograph.
    Found(Features),
    /// It cannot be read, for this reason.
    Unreadable(String),
    /// It has not been searched yet.
    Missing,
}

/// What a run of this stage did.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Extracted {
    /// Photographs that were searched in this run.
    pub searched: usize,
    /// Photographs whose features were there before.
    pub present: usize,
    /// Photographs that cannot be read and are left out, with the reasons, in their order.
    #[serde(serialize_with = "with_reasons")]
    pub unreadable: Vec<(String, String)>,
    /// How many photographs of all parts so far cannot be read.
    #[serde(skip)]
    pub all_unreadable: usize,
    /// If there is a folder of masks, the photographs of this part that have no mask in it, in their order.
    pub without_mask: Vec<String>,
    /// Photographs that the system failed to read or that have changed since the scan, with the reasons. They must be
    /// tried again: stages that need them do not start without them.
    #[serde(serialize_with = "with_reasons")]
    pub failed: Vec<(String, String)>,
    /// Photographs for which features were given in this run, and which are not stored upright.
    #[serde(skip)]
    pub turned: Vec<String>,
    /// Whether photographs of this run were searched for SIFT features.
    #[serde(skip)]
    pub(super) by_sift: bool,
}

impl Collection {
    /// Finds the features of those photographs in a part of the work that have no features yet, have changed since, or
    /// whose file of features is damaged. Photographs that could not be read are tried again. The work runs on the
    /// threads of the first processor and on the GPUs of all.
    ///
    /// # Errors
    /// [`Error::Option`] for a limit of 0; [`Error::Mismatch`] when a photograph would have to be searched, and the features
    /// of another were imported; [`Error::Io`] when a file cannot be written; [`Error::Device`] when a GPU fails.
    pub fn extract(&self, shard: Shard, processors: &[Processor]) -> Result<Extracted> {
        self.limits().check()?;
        let cpu = processors.first().map_or_else(Cpu::sequential, |p| p.cpu.clone());
        let mine: Vec<usize> = (0..self.photographs().len()).filter(|i| shard.has(*i)).collect();
        let is_there = cpu.try_map(mine.len(), |i| Ok(self.state(mine[i])?.key().is_some()))?;
        let todo: Vec<usize> =
            mine.iter().zip(&is_there).filter(|(_, there)| !**there).map(|(i, _)| *i).collect();
        self.check_not_imported(&todo, &cpu)?;
        if !todo.is_empty() && !self.root().is_dir() {
            return Err(Error::format(self.root(), NO_ROOT));
        }
        self.remove_unfinished(shard, "features", todo.iter().map(|&i| self.features_path(i)))?;
        let found = Extraction::run(self, &todo, &cpu, processors)?;
        let all_unreadable = match shard == Shard::ALL {
            true => found.unreadable.len(),
            false => self.states(&cpu)?.iter().filter(|state| state.is_unreadable()).count(),
        };
        let (present, without_mask) = (mine.len() - todo.len(), self.without_mask(&mine));
        Ok(Extracted { present, without_mask, all_unreadable, ..found })
    }

    /// The result of this stage for the photograph with this index (its number less one).
    ///
    /// # Errors
    /// [`Error::Io`] when its file cannot be read, [`Error::Format`] when it is damaged, [`Error::Mismatch`] for an index
    /// without a photograph.
    pub fn features(&self, index: usize) -> Result<PhotographFeatures> {
        self.check_index(index)?;
        Ok(match self.stored(index)? {
            Found::Missing => PhotographFeatures::Missing,
            stored => match stored.or_made_by("features", &self.features_path(index))? {
                Ok((_, features)) => PhotographFeatures::Found(features),
                Err(reason) => PhotographFeatures::Unreadable(reason),
            },
        })
    }

    /// Stores features that were found elsewhere for the photograph with this index (its number less one), in pixels of
    /// the photograph. They replace any that it has, and [`extract`](Self::extract) does not search it again. They are
    /// checked as those of [`FeatureOptions::given`](super::FeatureOptions::given), with the same
    /// [warnings](Extracted::warnings). Matches that were imported before are not used any more.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for descriptors that do not belong to the keypoints or are too long, a picture of another size,
    /// places outside of the photograph, and an index without a photograph; [`Error::Format`] for a photograph that has
    /// changed since the scan or cannot be read; [`Error::Io`].
    pub fn import_features(&self, index: usize, features: &Features) -> Result<Extracted> {
        self.check_index(index)?;
        features.check()?;
        let sources = self.sources(index);
        let sources = sources.map_err(|reason| Error::format(self.path_of(index), reason))?;
        let name = &self.photographs()[index].name;
        let refused = |reason| Error::Mismatch(format!("{name}: {reason}"));
        let find = |size| given::of_photograph(features.clone(), size, self.options()).map_err(refused);
        let (found, turned) = self.given(index, &sources, find)?;
        let origin = Origin { imported: true, ..sources.origin };
        self.write_features(&Disk::at_once(self.syncs()), index, &origin, &Ok(found?))?;
        let turned = turned.then(|| name.clone()).into_iter().collect();
        Ok(Extracted { searched: 1, turned, ..Extracted::default() })
    }

    /// The features that `find` returns for the size of a photograph, and whether the photograph is not stored upright.
    fn given(
        &self,
        index: usize,
        sources: &Sources,
        find: impl FnOnce(Size) -> Result<Features>,
    ) -> Result<(Result<Features>, bool)> {
        let (size, orientation) = self.stored_size(index, sources)?;
        let mut found = find(size);
        if orientation != 1
            && let Err(error) = &mut found
            && !self.is_of_all(error)
            && let Error::Format { reason, .. } | Error::Mismatch(reason) = error
        {
            *reason += &format!(
                ". The photograph is not stored upright (EXIF orientation {orientation}), and features must be of its stored \
                 pixels: `detect --no-orient`"
            );
        }
        Ok((found, orientation != 1))
    }

    /// Whether an error is that of the file that gives the features of all photographs.
    fn is_of_all(&self, error: &Error) -> bool {
        let given = self.options().features.given.as_ref();
        self.is_one_file() && matches!(error, Error::Format { path, .. } if Some(path) == given)
    }

    /// Fails if one of these photographs would be searched, and the features of another were imported: descriptors of two
    /// kinds cannot be compared. One that cannot be read is left out as usual.
    fn check_not_imported(&self, todo: &[usize], cpu: &Cpu) -> Result<()> {
        if todo.is_empty() || self.options().features.given.is_some() {
            return Ok(());
        }
        let is_imported = |i| Ok(self.origin(i)?.is_some_and(|origin| origin.imported));
        let imported = cpu.try_map(self.photographs().len(), is_imported)?;
        let Some(other) = imported.iter().position(|imported| *imported) else { return Ok(()) };
        let is_readable =
            |i: usize| self.sources(i).is_ok_and(|sources| self.stored_size(i, &sources).is_ok());
        let Some(index) = todo.iter().copied().find(|i| is_readable(*i)) else { return Ok(()) };
        let [name, other] = [index, other].map(|i| &self.photographs()[i].name);
        Err(Error::Mismatch(format!(
            "{name} has no features, and those of {other} were imported: import features for it, too, or name another work \
             folder"
        )))
    }

    /// The size of a photograph's stored pixels, and its EXIF orientation. The whole file is decoded, because a
    /// photograph that cannot be read is left out even if it has features.
    fn stored_size(&self, index: usize, sources: &Sources) -> Result<(Size, u8)> {
        let (path, limits) = (self.path_of(index), self.limits().with_orient(false));
        let decoded = image::decode_grey_alpha(&sources.photograph, path, &limits)?;
        Ok((decoded.image.size(), decoded.orientation))
    }

    fn write_features(
        &self,
        disk: &Disk,
        index: usize,
        origin: &Origin,
        outcome: &Readable<Features>,
    ) -> Result<()> {
        let (head, body) = encode(origin, outcome);
        record::write(disk, &self.features_path(index), self.features_made(index), &head, &[&body])
    }

    fn stored(&self, index: usize) -> Result<Found<Readable<(Known, Features)>>> {
        let read = record::read(&self.features_path(index), self.features_made(index))?;
        let decoded = read.decoded(NO_FEATURES, |(head, body)| {
            let (origin, outcome) = decode_head(&head)?;
            let features = |known| Some((known, decode_body(&known, &body)?));
            Some((origin, outcome.map(features).transpose()?))
        });
        Ok(decoded.and_then(|(origin, outcome)| match self.is_of(index, &origin) {
            true => Found::Whole(outcome),
            false => Found::Missing,
        }))
    }

    /// The names of those among `photographs` that have no mask; empty if there is no folder of masks.
    fn without_mask(&self, photographs: &[usize]) -> Vec<String> {
        let all = photographs.iter().map(|&i| &self.photographs()[i]);
        let masked = self.options().features.masks.is_some();
        all.filter(|p| masked && p.beside.is_none()).map(|p| p.name.clone()).collect()
    }

    fn head(&self, index: usize) -> Result<Found<(Origin, Readable<Known>)>> {
        let head = record::read_head(&self.features_path(index), self.features_made(index))?;
        Ok(head.decoded(NO_FEATURES, |head| decode_head(&head)))
    }

    /// The files from which the features of a photograph were made.
    pub(super) fn origin(&self, index: usize) -> Result<Option<Origin>> {
        Ok(self.head(index)?.whole().map(|(origin, _)| origin))
    }

    /// Fails for an index without a photograph.
    fn check_index(&self, index: usize) -> Result<()> {
        match self.photographs().len() {
            photographs if index < photographs => Ok(()),
            photographs => Err(Error::Mismatch(format!("there is no photograph {index} of {photographs}"))),
        }
    }

    /// Checks that a photograph is still the file that was searched for features.
    ///
    /// # Errors
    /// [`Error::Format`] if it has changed since; [`Error::Io`] if it cannot be read; [`Error::Mismatch`] for an index
    /// without a photograph.
    pub fn check_searched(&self, index: usize) -> Result<()> {
        self.check_index(index)?;
        let path = self.path_of(index);
        let Some(Origin { photograph: then, .. }) = self.origin(index)? else { return Ok(()) };
        let now = FileVersion::of(&std::fs::metadata(&path).map_err(|e| Error::io(&path, e))?);
        // Photographs whose features were given were not read.
        let is_same = match then.content {
            None => now.bytes == then.bytes,
            known => now.is_untouched(&then) || known == unchanged_content(&path, &now),
        };
        if is_same { Ok(()) } else { Err(Error::format(&path, CHANGED)) }
    }

    /// Whether features were made from the files that the scan found.
    fn is_of(&self, index: usize, origin: &Origin) -> bool {
        let photograph = &self.photographs()[index];
        let same_beside = match (&origin.beside, &photograph.beside) {
            (Some(then), Some(now)) => then.is_same(now),
            (then, now) => then.is_none() && now.is_none(),
        };
        same_beside && origin.photograph.is_same(&photograph.file)
    }

    /// The state of a photograph, from the head of its file.
    pub(super) fn state(&self, index: usize) -> Result<State> {
        Ok(match self.head(index)? {
            Found::Whole((origin, outcome)) if self.is_of(index, &origin) => match outcome {
                Ok(known) => State::Found { known, key: self.key(index, &known) },
                Err(reason) => State::Unreadable(reason),
            },
            Found::Whole(_) | Found::Missing => State::Missing(None),
            Found::Unfit(reason) => State::Missing(Some(reason)),
        })
    }

    pub(super) fn states(&self, cpu: &Cpu) -> Result<Vec<State>> {
        cpu.try_map(self.photographs().len(), |i| self.state(i))
    }

    fn key(&self, index: usize, known: &Known) -> u64 {
        let photograph = &self.photographs()[index];
        let focal = photograph.metadata.focal_px(known.size).map_or(0, f64::to_bits);
        let numbers = [known.hash, known.size.width as u64, known.size.height as u64, focal];
        fingerprint([photograph.name.as_bytes(), &numbers.map(u64::to_le_bytes).concat()])
    }

    /// The features of a photograph. An error if they are not the ones in `states`.
    pub(super) fn load(&self, index: usize, states: &[State]) -> Result<Arc<Features>> {
        let path = || self.features_path(index);
        let stored = self.stored(index)?.or_made_by("features", &path())?;
        match (stored, &states[index]) {
            (Ok((found, features)), State::Found { known, .. }) if found == *known => Ok(Arc::new(features)),
            _ => Err(Error::format(path(), "was made anew meanwhile; run this stage again")),
        }
    }

    /// A photograph and the file beside it if they are as the scan found them; otherwise why not.
    fn sources(&self, index: usize) -> Readable<Sources> {
        let photograph = &self.photographs()[index];
        let path = self.path_of(index);
        let as_described = || Metadata::read(&path).is_ok_and(|now| now == photograph.metadata);
        let (bytes, file) = as_scanned(&path, &photograph.file, as_described)?;
        let beside = |version: &FileVersion| -> Readable<_> {
            let path = self.beside_path(index).map_err(|e| e.to_string())?;
            let path = path.ok_or("its mask, or its file of features, is gone")?;
            let read = match self.is_one_file() {
                true => unread(&path, version),
                false => as_scanned(&path, version, || true),
            };
            let (bytes, version) = read.map_err(|e| format!("{} {e}", path.display()))?;
            Ok(((path, bytes), version))
        };
        let (beside, of_beside) = photograph.beside.as_ref().map(beside).transpose()?.unzip();
        let origin = Origin { photograph: file, beside: of_beside, imported: false };
        Ok(Sources { photograph: bytes, beside, origin })
    }

    /// The photographs among these that cannot be searched without another scan, with the reasons; only the folder if
    /// that is missing. Content is read only where length or times have changed.
    pub(super) fn changed(&self, photographs: &[usize], cpu: &Cpu) -> Result<Vec<(String, String)>> {
        if !photographs.is_empty() && !self.root().is_dir() {
            return Ok(vec![(self.root().display().to_string(), NO_ROOT.into())]);
        }
        let untouched = |path: &Path, version: &FileVersion| {
            std::fs::metadata(path).is_ok_and(|now| FileVersion::of(&now).is_untouched(version))
        };
        let changed = cpu.try_map(photographs.len(), |at| {
            let (index, photograph) = (photographs[at], &self.photographs()[photographs[at]]);
            let is_same = untouched(&self.path_of(index), &photograph.file)
                && photograph.beside.is_none_or(|version| {
                    self.beside_path(index).ok().flatten().is_some_and(|path| untouched(&path, &version))
                });
            let reason = if is_same { None } else { self.sources(index).err() };
            Ok(reason.map(|reason| (photograph.name.clone(), reason)))
        })?;
        Ok(changed.into_iter().flatten().collect())
    }

    /// The error for a stage that needs the features of a photograph that has none.
    pub(super) fn without_features(&self, index: usize) -> Error {
        let name = &self.photographs()[index].name;
        match self.changed(&[index], &Cpu::sequential()).map(|mut changed| changed.pop()) {
            Err(error) => error,
            Ok(Some((name, reason))) => Error::format(name, reason),
            Ok(None) => Error::format(name, "has no features; run the stage `features` first"),
        }
    }

    /// The error for missing features if there are any, because that stage comes first; otherwise `missing`.
    pub(super) fn unless_without_features(&self, states: &[State], missing: Error) -> Error {
        let first = states.iter().position(State::is_missing);
        first.map_or(missing, |index| self.without_features(index))
    }

    /// Fails unless the descriptors of all photographs can be compared, or matches are given.
    pub(super) fn check_forms(&self, states: &[State]) -> Result<()> {
        if self.resolved() == PairChoice::Matches {
            return Ok(());
        }
        let known =
            self.photographs().iter().zip(states).filter_map(|(p, state)| Some((&p.name, state.known()?)));
        let mut forms = known.filter(|(_, known)| known.count > 0).map(|(name, known)| (name, known.form));
        let Some((first, form)) = forms.next() else { return Ok(()) };
        if form.dimension == 0 {
            return Err(Error::Mismatch(format!(
                "features of {first} have no descriptors to be compared: give matches, too, or others"
            )));
        }
        let Some((other, unlike)) = forms.find(|(_, other)| *other != form) else { return Ok(()) };
        Err(Error::Mismatch(format!(
            "descriptors of {first} have {form}, those of {other} {unlike}: a collection needs features of one kind"
        )))
    }
}

/// The content of the files from which features are made.
struct Sources {
    photograph: Vec<u8>,
    /// The mask, or the given features; without content if it is one file for all photographs.
    beside: Option<(PathBuf, Vec<u8>)>,
    origin: Origin,
}

/// Stands in for the content of a file that is not read; fails if the file has changed since the scan.
fn unread(path: &Path, scanned: &FileVersion) -> Readable<(Vec<u8>, FileVersion)> {
    let now = FileVersion::of(&std::fs::metadata(path).map_err(|e| e.to_string())?);
    if now.is_untouched(scanned) { Ok((Vec::new(), now)) } else { Err(CHANGED.into()) }
}

pub(super) const CHANGED: &str = "has changed since the scan; run the stage `scan` again";
const NO_FEATURES: &str = "holds no features";
const NO_ROOT: &str = "this folder of photographs is not there on this machine; give it the same path on every machine, or run \
                       the stage `scan` again";

/// The content of a file, unless it has changed since the scan. If the scan did not read the content, a file of the
/// same length for which `as_described` is true counts as unchanged although its times differ.
fn as_scanned(
    path: &Path,
    scanned: &FileVersion,
    as_described: impl FnOnce() -> bool,
) -> Readable<(Vec<u8>, FileVersion)> {
    let (bytes, meta) = match record::content(path) {
        Ok(Found::Whole(read)) => read,
        Ok(Found::Missing) => return Err("is no longer there; run the stage `scan` again".into()),
        Ok(Found::Unfit(reason)) => return Err(reason),
        Err(Error::Io { source, .. }) => return Err(source.to_string()),
        Err(other) => return Err(other.to_string()),
    };
    let version = FileVersion { content: Some(fingerprint([&bytes[..]])), ..FileVersion::of(&meta) };
    let is_same = version.is_same(scanned);
    let is_touched =
        !is_same && scanned.content.is_none() && version.bytes == scanned.bytes && as_described();
    let after = std::fs::metadata(path).map_err(|e| e.to_string())?;
    let is_at_rest = bytes.len() as u64 == version.bytes && version.is_untouched(&FileVersion::of(&after));
    match (is_at_rest, is_same, is_touched) {
        (true, true, _) => Ok((bytes, version)),
        (true, false, true) => Ok((bytes, FileVersion { content: version.content, ..*scanned })),
        _ => Err(CHANGED.into()),
    }
}
