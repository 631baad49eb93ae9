//! The verified pairs as tie points of other programs, a file for each pair.
//!
//! | format | files of a pair A.jpg and B.jpg |
//! |---|---|
//! | `asp` | `TO-A__B.txt`: TO is what `--match-files-prefix` takes |
//! | `micmac` | `TO/PastisA.jpg/B.jpg.txt` and `TO/PastisB.jpg/A.jpg.txt`: TO is the folder `Homol` |
//! | `s2p` | `TO/A__B/sift_matches.txt` |
//! | `qgis` | `TO/A__B.points`, which place A on B |
//! | `vrt` | `TO/A__B.vrt`, which places A on the map of B, or `TO/B__A.vrt` if only A lies on one; other pairs have none |
//!
//! Places are pixels as they are stored; the uncertainties of `asp` are the scales of the keypoints.
//!
//! `TO/.tiepoint`, or `TO-.tiepoint` for `asp`, lists what was written. Files that it lists are replaced, and removed where
//! they are no longer written; others are not touched.

use super::{Collection, PhotographFeatures};
use crate::assess::CollectionEvidence;
use crate::device::Cpu;
use crate::files::{if_there, remove_if_there, write_atomically};
use crate::image::{Georeference, read_georeference};
use crate::matching::Match;
use crate::matching::files::{MatchFormat, MatchRow, MatchedImages, micmac_file, write_matches};
use crate::{Error, Result};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Component, Path, PathBuf};

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct WrittenPairs {
    /// Verified pairs.
    pub pairs: u64,
    /// Their inliers.
    pub inliers: u64,
    /// How well the verified pairs connect the photographs.
    #[serde(skip)]
    pub evidence: CollectionEvidence,
}

impl Collection {
    /// Writes the inliers of every verified pair of a finished collection as files of ASP, MicMac, s2p, QGIS or GDAL.
    ///
    /// # Errors
    /// [`Error::Option`] for another format; [`Error::Mismatch`] where two photographs, or two pairs, have the same
    /// name in such files, where a file of another program would be replaced, and for GDAL where no photograph of a
    /// verified pair lies on a map; as [`results`](Self::results); [`Error::Io`] when a file cannot be written.
    pub fn write_tie_points(
        &self,
        format: MatchFormat,
        to: impl AsRef<Path>,
        cpu: &Cpu,
    ) -> Result<WrittenPairs> {
        let (to, names) = (to.as_ref(), self.file_names(format)?);
        self.check_output(to)?;
        let on_map = matches!(format, MatchFormat::Qgis | MatchFormat::Vrt);
        let results = self.results(cpu)?;
        let cpu = &cpu.begin_task("export", results.blocks());
        let mut own = OwnFiles::open(format, to)?;
        let (mut written, mut counts) = (WrittenPairs::default(), Vec::new());
        for block in 0..results.blocks() {
            // x, y and scale of the features of each photograph in the pairs of this block.
            let mut known: HashMap<usize, Vec<[f32; 3]>> = HashMap::new();
            // The places on a map of those photographs that have one.
            let mut places: HashMap<usize, Georeference> = HashMap::new();
            for pair in results.pairs_of(block)? {
                cpu.check()?;
                for side in [pair.a, pair.b] {
                    if !known.contains_key(&side)
                        && let PhotographFeatures::Found(found) = self.features(side)?
                    {
                        known.insert(side, found.keypoints.iter().map(|k| [k.x, k.y, k.scale]).collect());
                        let place = if on_map { read_georeference(self.path_of(side))? } else { None };
                        places.extend(place.filter(|of| of.transform().is_some()).map(|of| (side, of)));
                    }
                }
                counts.push(pair.counts());
                // The first image is placed on the second.
                let is_placed = [pair.a, pair.b].map(|side| places.contains_key(&side));
                let exchanged = on_map && is_placed == [true, false];
                if format == MatchFormat::Vrt && is_placed == [false; 2] {
                    continue;
                }
                let [first, second] = if exchanged { [pair.b, pair.a] } else { [pair.a, pair.b] };
                let rows = pair.inliers().filter_map(|[a, b]| {
                    let of = |side: usize, index: u32| known.get(&side)?.get(index as usize).copied();
                    let [a, b] = if exchanged { [b, a] } else { [a, b] };
                    let ([ax, ay, of_a], [bx, by, of_b]) = (of(first, a)?, of(second, b)?);
                    let pair = Match { a, b, distance: 0.0, ratio: f32::NAN };
                    let (a_xy, b_xy, scales) = ([ax, ay], [bx, by], [of_a, of_b]);
                    Some(MatchRow { pair, a_xy, b_xy, scales, inlier: true })
                });
                let (rows, sides) = (rows.collect::<Vec<_>>(), [first, second].map(|side| &*names[side]));
                let path = path_of(format, to, sides);
                if let Some(folder) = path.parent() {
                    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
                }
                match format {
                    MatchFormat::MicMac => {
                        let [a, b] = sides;
                        own.takes(micmac_file(to, [a, b]))?;
                        own.takes(micmac_file(to, [b, a]))?;
                    }
                    _ => own.takes(path.clone())?,
                }
                let source = self.path_of(first).to_string_lossy().into_owned();
                let names = if format == MatchFormat::Vrt { [&*source, sides[1]] } else { sides };
                let images =
                    MatchedImages { places: [first, second].map(|side| places.get(&side)), ..names.into() };
                write_matches(path, Some(format), images, &rows)?;
                written.pairs += 1;
                written.inliers += rows.len() as u64;
            }
            cpu.advance(1);
        }
        if written.pairs == 0 && !counts.is_empty() {
            return Err(Error::Mismatch(
                "no photograph of a verified pair lies on a map (GeoTIFF, world file): qgis places one on the pixels of the other"
                    .into(),
            ));
        }
        own.finish()?;
        written.evidence = self.evidence(self.status(cpu)?.unreadable.len(), &counts);
        Ok(written)
    }

    /// The names of the photographs in files of this format, which tell them apart.
    fn file_names(&self, format: MatchFormat) -> Result<Vec<String>> {
        let whole = match format {
            MatchFormat::MicMac => true,
            MatchFormat::Asp | MatchFormat::S2p | MatchFormat::Qgis | MatchFormat::Vrt => false,
            MatchFormat::Csv | MatchFormat::Json | MatchFormat::Npz | MatchFormat::Colmap => {
                return Err(Error::option("format", format, "asp, micmac, s2p, qgis or vrt, for all pairs"));
            }
        };
        let (mut names, mut seen) = (Vec::new(), BTreeMap::new());
        for photograph in self.photographs() {
            let path = Path::new(&photograph.name);
            let name = if whole { path.file_name() } else { path.file_stem() };
            let name = name.unwrap_or_default().to_string_lossy().into_owned();
            if let Some(other) = seen.insert(name.clone(), &photograph.name) {
                return Err(Error::Mismatch(format!(
                    "{other} and {} are both {name} in files of {format}, which name photographs without folders{}: \
                     rename one of them, or collect them apart",
                    photograph.name,
                    if whole { "" } else { " and extensions" },
                )));
            }
            names.push(name);
        }
        match joined_alike(&names).filter(|_| !whole) {
            None => Ok(names),
            Some([[a, b], [c, d]]) => Err(Error::Mismatch(format!(
                "the pairs {a}, {b} and {c}, {d} would share one name in files of {format}: rename one of these photographs"
            ))),
        }
    }
}

/// Between the names of a pair.
const BETWEEN: &str = "__";

/// Two pairs of names that are the same when they are joined.
fn joined_alike(names: &[String]) -> Option<[[String; 2]; 2]> {
    let all: HashSet<&str> = names.iter().map(String::as_str).collect();
    // first + BETWEEN + second = start + BETWEEN + rest + second
    let starts =
        names.iter().flat_map(|first| first.char_indices().map(move |(i, _)| (first, first.split_at(i))));
    for (first, (start, rest)) in starts.filter(|(_, (start, _))| all.contains(start)) {
        let joined = format!("{rest}{BETWEEN}");
        let Some(rest) = joined.strip_prefix(BETWEEN) else { continue };
        if let Some(second) = names.iter().find(|second| all.contains(&*format!("{rest}{second}"))) {
            return Some([[first.clone(), second.clone()], [start.into(), format!("{rest}{second}")]]);
        }
    }
    None
}

/// The files that exports have written to one place, which a file lists.
struct OwnFiles {
    list: PathBuf,
    before: HashSet<PathBuf>,
    now: HashSet<PathBuf>,
    /// The list, to which files are added before they are written.
    open: Option<File>,
}

impl OwnFiles {
    fn open(format: MatchFormat, to: &Path) -> Result<Self> {
        let list = match format {
            MatchFormat::Asp => with_end(to, "-.tiepoint"),
            _ => to.join(".tiepoint"),
        };
        let before = listed(&list)?;
        Ok(Self { list, before, now: HashSet::new(), open: None })
    }

    /// Fails if the file is there and is not one of these.
    fn takes(&mut self, path: PathBuf) -> Result<()> {
        // Another export at the same time may have written the file since the list was read.
        if !self.before.contains(&path) && path.exists() && !listed(&self.list)?.contains(&path) {
            return Err(Error::Mismatch(format!(
                "{} is there, and was not written by this command: move it away, or choose another place",
                path.display()
            )));
        }
        if !self.before.contains(&path) {
            let failed = |e| Error::io(&self.list, e);
            std::fs::create_dir_all(folder_of(&self.list)).map_err(failed)?;
            let open = match &mut self.open {
                Some(open) => open,
                none => none
                    .insert(OpenOptions::new().create(true).append(true).open(&self.list).map_err(failed)?),
            };
            // In one piece, because another export may add its lines.
            open.write_all((line_of(&self.list, &path) + "\n").as_bytes()).map_err(failed)?;
        }
        self.now.insert(path);
        Ok(())
    }

    /// Removes what an earlier export wrote and this one did not.
    fn finish(self) -> Result<()> {
        drop(self.open);
        if self.before.is_empty() && self.now.is_empty() {
            return Ok(());
        }
        self.before.difference(&self.now).try_for_each(|stale| remove_if_there(stale))?;
        let mut lines: Vec<String> = self.now.iter().map(|path| line_of(&self.list, path) + "\n").collect();
        lines.sort();
        write_atomically(&self.list, |out| out.write_all(lines.concat().as_bytes()))
    }
}

/// The files that a list names; none if there is no list.
fn listed(list: &Path) -> Result<HashSet<PathBuf>> {
    let text = if_there(std::fs::read_to_string(list)).map_err(|e| Error::io(list, e))?.unwrap_or_default();
    // Whatever the list says, nothing outside of its folder is removed or replaced.
    let is_below =
        |line: &&str| Path::new(line).components().all(|part| matches!(part, Component::Normal(_)));
    Ok(text.lines().filter(is_below).map(|line| folder_of(list).join(line)).collect())
}

fn folder_of(list: &Path) -> &Path {
    list.parent().unwrap_or(Path::new(""))
}

/// A file as the list beside it names it.
fn line_of(list: &Path, path: &Path) -> String {
    path.strip_prefix(folder_of(list)).unwrap_or(path).to_string_lossy().into_owned()
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(end);
    path.into()
}

/// The file of a pair, or the folder `Homol`.
fn path_of(format: MatchFormat, to: &Path, [a, b]: [&str; 2]) -> PathBuf {
    use MatchFormat::{Asp, Colmap, Csv, Json, MicMac, Npz, Qgis, S2p, Vrt};
    match format {
        Asp => with_end(to, &format!("-{a}{BETWEEN}{b}.txt")),
        S2p => to.join(format!("{a}{BETWEEN}{b}")).join("sift_matches.txt"),
        Qgis => to.join(format!("{a}{BETWEEN}{b}.points")),
        Vrt => to.join(format!("{a}{BETWEEN}{b}.vrt")),
        MicMac | Csv | Json | Npz | Colmap => to.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Folder;

    #[test]
    fn files_of_another_export_at_the_same_time_are_known() {
        let folder = Folder::new("exports");
        let exports = [(), ()].map(|()| OwnFiles::open(MatchFormat::Qgis, &folder.join("to")).unwrap());
        let [path, foreign] = ["to/a__b.points", "to/theirs"].map(|name| folder.join(name));
        for mut export in exports {
            export.takes(path.clone()).unwrap();
            [&path, &foreign].iter().for_each(|path| std::fs::write(path, "").unwrap());
            assert!(export.takes(foreign.clone()).is_err());
            export.finish().unwrap();
        }
    }

    #[test]
    fn pairs_whose_joined_names_are_the_same_are_found() {
        let found =
            |names: &[&str]| joined_alike(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        for alike in [&["a", "b__c", "a__b", "c"][..], &["a", "_b", "a_", "b"], &["x", "x__x", "x__x__x"]] {
            let [one, other] = found(alike).unwrap();
            assert_eq!(one.join(BETWEEN), other.join(BETWEEN), "{alike:?}");
            assert_ne!(one, other);
        }
        for apart in [&["a", "b__c", "c"][..], &["a", "b", "a__b"], &["IMG_1", "IMG__2", "_"], &[]] {
            assert_eq!(found(apart), None, "{apart:?}");
        }
    }
}
