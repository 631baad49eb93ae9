//! Matches that another program found, which are verified instead of searching.
//!
//! | file | holds |
//! |---|---|
//! | `.txt` | COLMAP's text, as `matches_importer` reads it: the names of two photographs, a line of two indices for each match, an empty line |
//! | `.h5` | hloc's: a group for each pair, named by both, with `matches0`, the feature of the second for each of the first, or −1; or an array of two indices a row in place of that group. Old versions name the group of a pair `A_B` |
//!
//! The work folder keeps them in `given.bin`: for each pair both photographs and the number of matches, then the
//! matches of all pairs, all u32. The head of the file has the hash of these bytes, on which results depend.

use super::Collection;
use super::features::State;
use super::pairs::Names;
use super::record::{self, Fields, Found, Kind, Made, fingerprint};
use crate::feature::files::arrays::Array;
use crate::feature::files::hdf5::{self, Hdf5};
use crate::files::{Disk, extension, read_text};
use crate::matching::files::{MatchSides, parse_matches};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Matches of pairs, by photographs, the smaller number first.
pub(super) type ByPair = BTreeMap<[u32; 2], Vec<[u32; 2]>>;

/// What the file in the work folder is.
const GIVEN: Made = (Kind::Given, 0);

/// Matches as a file gives them.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub(super) by_pair: ByPair,
    /// For pairs of which the file says so: how many features the first photograph has.
    features: Vec<([u32; 2], usize)>,
    /// How many pairs are left out because one of them is no photograph of the collection, and the first such name.
    pub(super) left_out: Option<(usize, String)>,
}

impl Given {
    /// Leaves out this many pairs, for this reason.
    fn leave_out(&mut self, pairs: usize, reason: impl FnOnce() -> String) {
        self.left_out.get_or_insert_with(|| (0, reason())).0 += pairs;
    }
}

/// Adds the matches of a pair, with its photographs in any order.
fn add(to: &mut ByPair, [a, b]: [u32; 2], matches: impl IntoIterator<Item = [u32; 2]>) {
    let of_pair = to.entry([a.min(b), a.max(b)]).or_default();
    of_pair.extend(matches.into_iter().map(|[i, j]| if a <= b { [i, j] } else { [j, i] }));
}

impl Collection {
    fn given_path(&self) -> PathBuf {
        self.folder().join("given.bin")
    }

    /// Stores matches of another program: for each pair both photographs (numbers less one) and for each match the
    /// indices of its features. They replace all given before, and pairs are chosen again. The collection's
    /// [choice](super::PairOptions::choice) must be `matches`, and the photographs must have features.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for another choice, photographs or features that do not exist, and a pair of a photograph
    /// with itself; [`Error::Io`]. If features are imported later, the stages that follow fail: matches name features by
    /// number and must be imported again.
    pub fn import_matches(
        &self,
        pairs: impl IntoIterator<Item = ([u32; 2], Vec<[u32; 2]>)>,
        cpu: &crate::device::Cpu,
    ) -> Result<()> {
        if self.resolved() != super::PairChoice::Matches {
            return Err(Error::Mismatch(format!(
                "this collection has pairs = {}: matches are given to one that was scanned with pairs = matches",
                self.resolved()
            )));
        }
        let (mut by_pair, count) = (ByPair::new(), self.photographs().len() as u32);
        for (pair, matches) in pairs {
            if pair[0] == pair[1] || pair.iter().any(|i| *i >= count) {
                return Err(Error::Mismatch(format!(
                    "matches are given for photographs {} and {} of {count}: expected two of them",
                    pair[0], pair[1]
                )));
            }
            add(&mut by_pair, pair, matches);
        }
        let states = self.states(cpu)?;
        let missing = |i: &&u32| states[**i as usize].is_missing();
        if let Some(first) = by_pair.keys().flatten().find(missing) {
            let name = &self.photographs()[*first as usize].name;
            return Err(Error::Mismatch(format!(
                "{name} has no features yet: import matches after the features"
            )));
        }
        let pairs = self.write_given(Given { by_pair, ..Given::default() }, &states)?;
        self.write_pairs(&self.pairs_path(), self.choice_fingerprint(&states), &pairs)
    }

    /// Why there are no pairs where matches are imported.
    pub(super) fn not_given(&self) -> Error {
        let reason = match self.given_hash() {
            Ok(Found::Whole(_)) => {
                "pairs are those of given matches, and features have changed since: import matches again, after the features"
            }
            _ => "pairs are those of given matches, and none are given: import them after the features",
        };
        Error::Mismatch(reason.into())
    }

    /// Checks and stores given matches. Returns their pairs.
    pub(super) fn write_given(&self, given: Given, states: &[State]) -> Result<super::PairSet> {
        let Given { mut by_pair, features, .. } = given;
        for (pair, count) in features {
            if let State::Found { known, .. } = &states[pair[0] as usize]
                && known.count != count
            {
                let [a, b] = pair.map(|i| &self.photographs()[i as usize].name);
                return Err(Error::Mismatch(format!(
                    "matches of {a} and {b} are given for {count} features of {a}, which has {}: they were found for other \
                     features, which `--features` takes",
                    known.count
                )));
            }
        }
        for (pair, matches) in &mut by_pair {
            matches.sort_unstable();
            matches.dedup();
            for (side, index) in pair.iter().enumerate() {
                let most = matches.iter().map(|m| m[side]).max();
                if let (Some(most), State::Found { known, .. }) = (most, &states[*index as usize])
                    && most as usize >= known.count
                {
                    let [a, b] = pair.map(|i| &self.photographs()[i as usize].name);
                    return Err(Error::Mismatch(format!(
                        "matches of {a} and {b} name feature {most} of {}, which has {}: they were found for other features",
                        [a, b][side],
                        known.count
                    )));
                }
            }
        }
        let mut body = (by_pair.len() as u64).to_le_bytes().to_vec();
        for (pair, matches) in &by_pair {
            for n in [pair[0], pair[1], matches.len() as u32] {
                body.extend_from_slice(&n.to_le_bytes());
            }
        }
        by_pair.values().flatten().flatten().for_each(|i| body.extend_from_slice(&i.to_le_bytes()));
        let hash = fingerprint([&body[..]]).to_le_bytes();
        record::write(&Disk::at_once(self.syncs()), &self.given_path(), GIVEN, &hash, &[&body])?;
        Ok(super::PairSet::list(by_pair.into_keys()))
    }

    /// The hash of the given matches; `None` where pairs are not those of given matches.
    pub(super) fn given_hash(&self) -> Result<Found<Option<u64>>> {
        if self.resolved() != super::PairChoice::Matches {
            return Ok(Found::Whole(None));
        }
        let head = record::read_head(&self.given_path(), GIVEN)?;
        Ok(head.decoded("holds no matches", |head| Fields(&head).u64().map(Some)))
    }

    /// The given matches, where pairs are those of given matches.
    pub(super) fn given_matches(&self) -> Result<Option<ByPair>> {
        if self.resolved() != super::PairChoice::Matches {
            return Ok(None);
        }
        let path = self.given_path();
        let read = record::read(&path, GIVEN)?.decoded("holds no matches", |(_, body)| decode(&body));
        read.or_made_by("pairs", &path).map(Some)
    }
}

fn decode(body: &[u8]) -> Option<ByPair> {
    let mut fields = Fields(body);
    let count = usize::try_from(fields.u64()?).ok()?;
    let mut heads = Fields(fields.take(count.checked_mul(12)?)?);
    let mut by_pair = ByPair::new();
    for _ in 0..count {
        let (pair, matches) = ([heads.u32()?, heads.u32()?], heads.u32()? as usize);
        by_pair.insert(pair, fields.pairs(matches)?);
    }
    fields.0.is_empty().then_some(by_pair)
}

pub(super) fn read(path: &Path, names: &Names<'_>) -> Result<Given> {
    let fault = |reason: String| Error::format(path, reason);
    let given = match &*extension(path) {
        "h5" | "hdf5" => of_hloc(path, names)?,
        _ => {
            let text = read_text(path, "COLMAP's text of matches, or hloc's .h5")?;
            of_text(&text, names).map_err(fault)?
        }
    };
    match &given.left_out {
        Some((_, reason)) if given.by_pair.is_empty() => {
            Err(fault(format!("holds no matches of two photographs of the collection: {reason}")))
        }
        _ => Ok(given),
    }
}

/// COLMAP's text.
fn of_text(text: &str, names: &Names<'_>) -> std::result::Result<Given, String> {
    if parse_matches(text, "", &MatchSides::default()).is_ok_and(|read| !read.rows.is_empty()) {
        return Err("holds places: expected two names and lines of two numbers of features (COLMAP's text), or hloc's .h5; \
                    `tiepoint match --matches` verifies the places of one pair"
            .into());
    }
    let (mut given, mut pair) = (Given::default(), None);
    for (number, line) in (1..).zip(text.lines()) {
        let said = |reason: String| format!("line {number}: {reason}");
        match (pair, line.trim()) {
            (_, "") => pair = None,
            (None, comment) if comment.starts_with('#') && names.pair(comment).is_err() => {}
            (None, words) => match names.pair(line) {
                Ok([a, b]) if a == b => return Err(said("the two photographs are the same".into())),
                Ok(found) => {
                    add(&mut given.by_pair, found, []);
                    pair = Some(Some(found));
                }
                Err(reason) if match_of(words).is_some() || !words.contains([' ', '\t']) => {
                    return Err(said(reason));
                }
                Err(reason) => {
                    given.leave_out(1, || said(reason));
                    pair = Some(None);
                }
            },
            (Some(pair), words) => {
                let Some(found) = match_of(words) else {
                    return Err(said(format!(
                        "{words:?} is no match: expected two indices of features, or an empty line before the next pair"
                    )));
                };
                if let Some(pair) = pair {
                    add(&mut given.by_pair, pair, [found]);
                }
            }
        }
    }
    Ok(given)
}

/// The two indices in a line of a text.
fn match_of(words: &str) -> Option<[u32; 2]> {
    let mut indices = words.split_ascii_whitespace().map(|word| word.parse::<u32>().ok());
    let found = [indices.next()??, indices.next()??];
    indices.next().is_none().then_some(found)
}

/// The two photographs in a name of old versions of hloc, `A_B`; `None` for another name.
fn pair_of_old_name(
    name: &str,
    known: &BTreeMap<String, u32>,
) -> std::result::Result<Option<[u32; 2]>, String> {
    let ways = name.match_indices('_').filter_map(|(at, _)| {
        Some([*known.get(&name[..at])?, *known.get(&name[at + 1..])?]).filter(|[a, b]| a != b)
    });
    match ways.collect::<Vec<_>>()[..] {
        [] => Ok(None),
        [pair] => Ok(Some(pair)),
        _ => Err(format!("{name:?} may be several pairs of photographs: expected hloc's newer form, A/B")),
    }
}

/// Adds a pair by the feature of the second for each of the first, or −1.
fn add_row(given: &mut Given, [a, b]: [u32; 2], array: Array) -> std::result::Result<(), String> {
    let array = array.with_axes(1);
    if array.shape.len() != 1 {
        return Err(format!(
            "has the shape {:?}, expected one number for each feature of the first photograph: the feature of the second, or \
             -1",
            array.shape
        ));
    }
    let values = array.whole()?;
    given.features.push(([a, b], values.len()));
    let matches = (0..).zip(values).filter_map(|(i, j)| Some([i, u32::try_from(j).ok()?]));
    add(&mut given.by_pair, [a, b], matches);
    Ok(())
}

/// hloc's file, in which names have - instead of /.
fn of_hloc(path: &Path, names: &Names<'_>) -> Result<Given> {
    let fault = |reason: String| Error::format(path, reason);
    let (file, mut known) = (Hdf5::open(path)?, BTreeMap::new());
    for (name, index) in names.names.iter().zip(0..) {
        if let Some(other) = known.insert(name.replace('/', "-"), index) {
            return Err(fault(format!(
                "cannot tell {name} from {}: hloc writes - for / in their names; rename one",
                names.names[other as usize]
            )));
        }
    }
    let at = |fault: hdf5::Fault| fault.at(path);
    let array = |place: &str| {
        let found = file.array(place).map_err(at)?;
        found.ok_or_else(|| fault(format!("{place} is missing")))
    };
    let mut given = Given::default();
    for first in file.members("").map_err(at)?.0 {
        if !known.contains_key(&first)
            && let Some(pair) = pair_of_old_name(&first, &known).map_err(fault)?
        {
            let place = format!("{first}/matches0");
            let array = array(&place)?;
            add_row(&mut given, pair, array).map_err(|reason| fault(format!("{place} {reason}")))?;
            continue;
        }
        let (groups, arrays) = file.members(&first).map_err(at)?;
        let Some(a) = known.get(&first).copied() else {
            // Old versions have one pair in a group.
            let pairs =
                if arrays.iter().any(|array| array == "matches0") { 1 } else { groups.len() + arrays.len() };
            given.leave_out(pairs, || format!("{first:?} is no photograph of the collection"));
            continue;
        };
        for second in groups.iter().chain(&arrays) {
            let place = format!("{first}/{second}");
            let of_group = groups.contains(second);
            let Some(b) = known.get(second.as_str()).copied() else {
                given.leave_out(1, || format!("{place}: {second:?} is no photograph of the collection"));
                continue;
            };
            if a == b {
                return Err(fault(format!("{first} is matched with itself")));
            }
            let place = if of_group { format!("{place}/matches0") } else { place };
            let array = array(&place)?;
            let at_place = |reason: String| fault(format!("{place} {reason}"));
            if of_group {
                add_row(&mut given, [a, b], array).map_err(at_place)?;
                continue;
            }
            let values = array.whole().map_err(at_place)?;
            let pairs = match array.shape[..] {
                [_, 2] => values.as_chunks::<2>().0.iter().map(|pair| pair.map(u32::try_from)),
                _ => {
                    return Err(fault(format!(
                        "{place} has the shape {:?}, expected two indices a row",
                        array.shape
                    )));
                }
            };
            let pairs = pairs.map(|pair| match pair {
                [Ok(i), Ok(j)] => Ok([i, j]),
                _ => Err(fault(format!("{place} holds numbers that are no indices of features"))),
            });
            add(&mut given.by_pair, [a, b], pairs.collect::<Result<Vec<_>>>()?);
        }
    }
    match given.by_pair.is_empty() && given.left_out.is_none() {
        true => Err(fault("holds no matches: expected a group for each photograph, in it one for each partner, with matches0 (hloc)".into())),
        false => Ok(given),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_gives_the_matches_of_every_pair() {
        let all = ["a.jpg", "b c.jpg", "d.jpg"];
        let names = Names::of(all);
        let found = of_text("# x\nd.jpg a.jpg\n1 2\n3 4\n\na.jpg\tb c.jpg\n\n a.jpg d.jpg\n 7  8\n", &names)
            .unwrap()
            .by_pair;
        assert_eq!(found[&[0, 2]], [[2, 1], [4, 3], [7, 8]], "in the order of the photographs");
        assert_eq!(found[&[0, 1]].len(), 0, "a pair without matches");
        for (text, reason) in [
            ("a.jpg\n", "two names"),
            ("a.jpg d.jpg\n\n1 2\n", "no photograph"),
            ("a.jpg e.jpg\n1 2\na.jpg d.jpg\n", "an empty line"),
            ("a.jpg a.jpg\n", "the same"),
            ("a.jpg d.jpg\n1\n", "two indices"),
            ("a.jpg d.jpg\n1 2 3\n", "two indices"),
            ("a.jpg d.jpg\n1 -2\n", "two indices"),
        ] {
            let error = of_text(text, &names).unwrap_err();
            assert!(error.starts_with("line ") && error.contains(reason), "{text:?}: {error}");
        }
        assert!(of_text("1 2 3 4\n", &names).unwrap_err().contains("holds places"));
    }

    #[test]
    fn old_files_of_hloc_name_pairs_by_one_name() {
        let folder = crate::files::tests::Folder::new("hloc-old");
        let file = folder.join("matches.h5");
        // Written by h5py: sub-b_1.png_a.png/matches0 = [2, -1].
        std::fs::write(&file, include_bytes!("../../tests/samples/hloc-old-matches.h5")).unwrap();
        let given = read(&file, &Names::of(["a.png", "sub/b_1.png"])).unwrap();
        assert_eq!(given.by_pair[&[0, 1]], [[2, 0]]);
        assert_eq!(given.features, [([1, 0], 2)]);
        let why = |names: &[&str]| read(&file, &Names::of(names.iter().copied())).unwrap_err().to_string();
        assert!(why(&["sub-b", "1.png_a.png", "sub-b_1.png", "a.png"]).contains("several pairs"));
        assert!(why(&["a.png"]).contains("is no photograph of the collection"));
    }

    #[test]
    fn pairs_of_other_photographs_are_left_out_and_counted() {
        let folder = crate::files::tests::Folder::new("given-left-out");
        let read = |name: &str, content: &[u8], names: &[&'static str]| {
            std::fs::write(folder.join(name), content).unwrap();
            read(&folder.join(name), &Names::of(names.iter().copied()))
        };
        let text = b"a.jpg e.jpg\n1 2\n\na.jpg b.jpg\n3 4\n\ne.jpg f.jpg\n\n";
        let given = read("m.txt", text, &["a.jpg", "b.jpg"]).unwrap();
        assert_eq!(given.by_pair, ByPair::from([([0, 1], vec![[3, 4]])]));
        let (count, first) = given.left_out.unwrap();
        assert!(
            count == 2 && first.starts_with("line 1: \"e.jpg\" is no photograph of the collection"),
            "{first}"
        );
        // A group of sub/b.png with one of a.png in it.
        let matches = include_bytes!("../../tests/samples/hloc-matches.h5");
        assert!(read("m.H5", matches, &["a.png", "sub/b.png", "c.png"]).unwrap().left_out.is_none());
        for (name, content, names) in [
            ("m.txt", &text[..], ["a.jpg", "c.jpg"]),
            ("m.h5", matches, ["a.png", "c.png"]),
            ("m.h5", matches, ["sub/b.png", "c.png"]),
        ] {
            let told = read(name, content, &names).unwrap_err().to_string();
            let words = [
                "holds no matches of two photographs of the collection",
                "is no photograph of the collection",
            ];
            assert!(words.iter().all(|words| told.contains(words)), "{told}");
        }
    }

    #[test]
    fn a_row_of_hloc_holds_whole_numbers() {
        let array = |shape: &[usize], values: &[f32]| {
            let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            Array::new("<f4", shape.to_vec(), bytes).unwrap()
        };
        let mut given = Given::default();
        add_row(&mut given, [1, 0], array(&[1, 3], &[2.0, -1.0, 0.0])).unwrap();
        assert_eq!(given.by_pair[&[0, 1]], [[2, 0], [0, 2]]);
        assert_eq!(given.features, [([1, 0], 3)]);
        for (shape, values, reason) in [
            (&[2][..], [0.5, 1.0], "holds 0.5, expected whole numbers"),
            (&[2], [1.0, f32::NAN], "holds NaN, expected whole numbers"),
            (&[2], [1.0, f32::INFINITY], "holds inf, expected whole numbers"),
            (&[2, 1], [1.0, 2.0], "has the shape [2, 1], expected one number for each feature"),
        ] {
            let refused = add_row(&mut given, [1, 0], array(shape, &values)).unwrap_err();
            assert!(refused.starts_with(reason), "{refused}");
        }
    }

    #[test]
    fn stored_matches_are_read_back_unchanged() {
        let mut by_pair = ByPair::new();
        add(&mut by_pair, [4, 1], [[1, 2], [3, 4]]);
        add(&mut by_pair, [0, 1], []);
        let mut body = 2_u64.to_le_bytes().to_vec();
        let words = [0, 1, 0, 1, 4, 2, 2, 1, 4, 3_u32];
        body.extend(words.iter().flat_map(|n| n.to_le_bytes()));
        assert_eq!(decode(&body), Some(by_pair));
        assert!((0..body.len()).all(|end| decode(&body[..end]).is_none()), "cut off");
    }
}
