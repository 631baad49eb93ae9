//! The third stage: which pairs of photographs are matched.
//!
//! The set of all pairs is recorded as such; any other set is a sorted list in `pairs.bin`.

use super::features::{CHANGED, State};
use super::folder::text_of;
use super::record::{self, Fields, Found, Kind, fingerprint};
use super::{Collection, PairChoice, PairOptions, Photograph, Scanned, Shard, given_matches};
use crate::device::Cpu;
use crate::files::{Disk, read_text};
use crate::{Error, Result};
use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;
use std::hash::Hasher;
use std::io::Read;
use std::path::Path;
use twox_hash::XxHash3_64;

/// The version of what this stage computes. When it changes, all pairs are chosen again.
pub(super) const VERSION: u32 = 1;

/// Pairs of photographs, by their indices, the smaller index first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairSet {
    /// Every pair.
    All,
    /// These pairs, sorted, each once.
    List(Vec<[u32; 2]>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TilePairs {
    /// The blocks, the smaller first.
    pub(super) blocks: [usize; 2],
    pub(super) pairs: Vec<[u32; 2]>,
}

/// A set of pairs, divided into tiles by the blocks of their photographs.
#[derive(Clone, Debug)]
pub(super) struct TiledPairs {
    pub(super) set: PairSet,
    /// The blocks of each tile and, for a list, the index in `ordered` of its first pair.
    tiles: Vec<([u32; 2], usize)>,
    /// The pairs of a list in the order of tiles.
    ordered: Vec<[u32; 2]>,
    /// The number of each tile for the division into parts: its place among all tiles, those with the most pairs first. So
    /// parts of every Nth number differ by no more pairs than the largest tile has.
    numbers: Vec<usize>,
}

impl PairSet {
    /// The set of these pairs. They may be in any order and occur twice; pairs of a photograph with itself are dropped.
    pub(super) fn list(pairs: impl IntoIterator<Item = [u32; 2]>) -> Self {
        let ordered = pairs.into_iter().map(|[a, b]| [a.min(b), a.max(b)]);
        let mut pairs: Vec<[u32; 2]> = ordered.filter(|[a, b]| a != b).collect();
        pairs.sort_unstable();
        pairs.dedup();
        Self::List(pairs)
    }

    pub(super) fn contains(&self, pair: [u32; 2]) -> bool {
        match self {
            Self::All => true,
            Self::List(pairs) => pairs.binary_search(&pair).is_ok(),
        }
    }

    /// The number of pairs, in a collection of this many photographs.
    pub fn count(&self, photographs: usize) -> u64 {
        match self {
            Self::All => photographs as u64 * (photographs as u64).saturating_sub(1) / 2,
            Self::List(pairs) => pairs.len() as u64,
        }
    }
}

impl TiledPairs {
    /// Orders tiles as they are worked on: each in a row needs one new block, and the next row goes the opposite way.
    pub(super) fn new(set: PairSet, collection: &Collection) -> Self {
        let turned = |[row, column]: [u32; 2]| (row, if row % 2 == 0 { column } else { u32::MAX - column });
        let blocks = collection.blocks() as u32;
        // A block may have become empty, or hold a single photograph, which has no pair within the block.
        let held: Vec<usize> = (0..blocks).map(|b| photographs_of(b as usize, collection).len()).collect();
        let held = |block: u32| held[block as usize];
        let mut ordered = Vec::new();
        let mut tiles: Vec<([u32; 2], usize)> = match &set {
            PairSet::All => {
                let all = (0..blocks).flat_map(|row| (row..blocks).map(move |column| [row, column]));
                all.filter(|[row, column]| match row == column {
                    true => held(*row) > 1,
                    false => held(*row) > 0 && held(*column) > 0,
                })
                .map(|blocks| (blocks, 0))
                .collect()
            }
            PairSet::List(pairs) => {
                ordered.clone_from(pairs);
                ordered.sort_by_cached_key(|pair| turned(collection.blocks_of(*pair)));
                ordered.iter().map(|pair| collection.blocks_of(*pair)).zip(0..).collect()
            }
        };
        tiles.sort_by_key(|(blocks, _)| turned(*blocks));
        tiles.dedup_by_key(|(blocks, _)| *blocks);
        let count = |tile: usize| match (&set, tiles[tile]) {
            (PairSet::All, ([row, column], _)) if row == column => held(row) * (held(row) - 1) / 2,
            (PairSet::All, ([row, column], _)) => held(row) * held(column),
            (PairSet::List(_), (_, start)) => {
                tiles.get(tile + 1).map_or(ordered.len(), |(_, next)| *next) - start
            }
        };
        let mut largest_first: Vec<usize> = (0..tiles.len()).collect();
        largest_first.sort_by_cached_key(|tile| Reverse(count(*tile)));
        let mut numbers = vec![0; tiles.len()];
        largest_first.into_iter().zip(0..).for_each(|(tile, number)| numbers[tile] = number);
        Self { set, tiles, ordered, numbers }
    }

    /// The number by which a tile belongs to a part of the work.
    pub(super) fn number(&self, tile: usize) -> usize {
        self.numbers[tile]
    }

    /// The tiles of a part of the work, in the order in which they are worked on.
    pub(super) fn part(&self, shard: Shard) -> Vec<usize> {
        (0..self.tiles()).filter(|tile| shard.has(self.number(*tile))).collect()
    }

    pub(super) fn tiles(&self) -> usize {
        self.tiles.len()
    }

    pub(super) fn blocks(&self, tile: usize) -> [usize; 2] {
        self.tiles[tile].0.map(|block| block as usize)
    }

    pub(super) fn tile(&self, tile: usize, collection: &Collection) -> TilePairs {
        let blocks @ [row, column] = self.blocks(tile);
        let pairs = match &self.set {
            PairSet::All => {
                let [rows, columns] = blocks.map(|block| photographs_of(block, collection));
                let pairs = rows.iter().flat_map(|a| columns.iter().map(move |b| (a, b)));
                let pairs = pairs.filter(|(a, b)| row != column || a.0 < b.0);
                pairs.map(|(a, b)| [a.1.min(b.1), a.1.max(b.1)]).collect()
            }
            PairSet::List(_) => {
                let end = self.tiles.get(tile + 1).map_or(self.ordered.len(), |(_, start)| *start);
                self.ordered[self.tiles[tile].1..end].to_vec()
            }
        };
        TilePairs { blocks, pairs }
    }
}

/// The photographs of a block, each with its place in the block.
fn photographs_of(block: usize, collection: &Collection) -> Vec<(usize, u32)> {
    let places = 0..collection.block();
    places.filter_map(|place| Some((place, collection.at_place(block, place)?))).collect()
}

/// Checks the choice of pairs as far as a scan can. Returns the hash of the file of pairs or matches, if there is one.
pub(super) fn check(
    options: &PairOptions,
    photographs: &[Photograph],
    scanned: &mut Scanned,
) -> Result<Option<u64>> {
    match (options.choice, &options.list) {
        (PairChoice::List, _) => read_list(options, photographs).map(|(_, hash)| Some(hash)),
        (PairChoice::Matches, Some(path)) => {
            scanned.left_out_pairs = given_matches::read(path, &Names::of_photographs(photographs))?.left_out;
            hash_of(path).map(Some)
        }
        (PairChoice::Gps, _) if photographs.iter().all(|p| p.metadata.position.is_none()) => {
            Err(Error::Mismatch(NO_POSITION.into()))
        }
        _ => Ok(None),
    }
}

fn list_of(options: &PairOptions) -> Result<&Path> {
    options.list.as_deref().ok_or_else(|| Error::option("list", "missing", "a file of pairs"))
}

fn hash_of(path: &Path) -> Result<u64> {
    let fault = |e| Error::io(path, e);
    let (mut file, mut hash) = (std::fs::File::open(path).map_err(fault)?, XxHash3_64::with_seed(0));
    let mut bytes = vec![0; 1 << 20];
    loop {
        match file.read(&mut bytes).map_err(fault)? {
            0 => return Ok(hash.finish()),
            n => hash.write(&bytes[..n]),
        }
    }
}

/// The pairs of the list, and the hash of its text.
pub(super) fn read_list(options: &PairOptions, photographs: &[Photograph]) -> Result<(PairSet, u64)> {
    let path = list_of(options)?;
    let text = read_text(path, "two names of photographs a line")?;
    Ok((listed(&text, path, photographs)?, fingerprint([text.as_bytes()])))
}

impl Collection {
    /// Chooses the pairs, unless that has been done. `shard` matters only if photographs have to be compared for it
    /// (top-scale): the part that finishes last writes the choice, the others return `None`.
    ///
    /// # Errors
    /// [`Error::Format`] for a list that does not fit the collection or has changed since the scan, and when features
    /// that are needed are missing; [`Error::Mismatch`] when pairs are chosen by position and no photograph records
    /// one; [`Error::Io`].
    pub fn choose_pairs(&self, shard: Shard, cpu: &Cpu) -> Result<Option<PairSet>> {
        self.choose_part(shard, cpu).map_err(|error| self.unless_overtaken(error))
    }

    fn choose_part(&self, shard: Shard, cpu: &Cpu) -> Result<Option<PairSet>> {
        let states = self.states(cpu)?;
        self.check_forms(&states)?;
        if let Found::Whole(pairs) = self.chosen(&states)? {
            return Ok(Some(pairs));
        }
        let (options, photographs) = (&self.options().pairs, self.photographs());
        let pairs = match self.resolved() {
            PairChoice::Auto | PairChoice::Exhaustive => PairSet::All,
            PairChoice::Sequence => sequence(photographs, options.overlap, |i| !states[i].is_unreadable()),
            PairChoice::Gps => PairSet::list(near(photographs, options, false)?),
            PairChoice::List => {
                let (pairs, hash) = read_list(options, photographs)?;
                if self.list() != Some(hash) {
                    return Err(Error::format(list_of(options)?, CHANGED));
                }
                pairs
            }
            PairChoice::Matches => {
                let Some(path) = &options.list else { return Err(self.not_given()) };
                if self.list() != Some(hash_of(path)?) {
                    return Err(Error::format(path, CHANGED));
                }
                self.write_given(given_matches::read(path, &Names::of_photographs(photographs))?, &states)?
            }
            PairChoice::TopScale => {
                let Some(mut pairs) = self.top_scale(shard, &states, cpu)? else { return Ok(None) };
                if options.choice == PairChoice::Auto {
                    pairs.extend(near(photographs, options, true)?);
                }
                PairSet::list(pairs)
            }
        };
        self.write_pairs(&self.pairs_path(), self.choice_fingerprint(&states), &pairs)?;
        Ok(Some(pairs))
    }

    /// The recorded choice of pairs.
    pub(super) fn chosen(&self, states: &[State]) -> Result<Found<PairSet>> {
        let pairs = self.read_pairs(&self.pairs_path(), self.choice_fingerprint(states))?;
        // If the file of given matches is missing, so is the choice of their pairs.
        Ok(self.given_hash()?.and_then(|_| pairs))
    }

    /// How pairs are chosen, with `auto` resolved by the number of photographs.
    pub(super) fn resolved(&self) -> PairChoice {
        let options = &self.options().pairs;
        let few = self.photographs().len() <= options.exhaustive_up_to as usize;
        match options.choice {
            PairChoice::Auto if few => PairChoice::Exhaustive,
            PairChoice::Auto => PairChoice::TopScale,
            choice => choice,
        }
    }

    /// The fingerprint of what the choice depends on: options, names, and where used the list, positions or features.
    pub(super) fn choice_fingerprint(&self, states: &[State]) -> u64 {
        let options = PairOptions { list: None, closure: true, ..self.options().pairs.clone() };
        let choice = self.resolved();
        let mut parts = vec![VERSION.to_le_bytes().to_vec(), text_of(&(choice, options)).into_bytes()];
        parts.extend(self.photographs().iter().map(|p| p.name.as_bytes().to_vec()));
        if matches!(choice, PairChoice::List | PairChoice::Matches) {
            parts.push(self.list().unwrap_or(0).to_le_bytes().to_vec());
        }
        if choice == PairChoice::Sequence {
            // Where there are none, this adds nothing, so that choices of earlier versions stay valid.
            let unreadable = states.iter().zip(0_u32..).filter(|(state, _)| state.is_unreadable());
            parts.extend(unreadable.map(|(_, i)| i.to_le_bytes().to_vec()));
        }
        if matches!(choice, PairChoice::Gps | PairChoice::TopScale) {
            let positions = self.photographs().iter().map(|p| p.metadata.position);
            parts.push(text_of(&positions.collect::<Vec<_>>()).into_bytes());
        }
        if matches!(choice, PairChoice::Matches) {
            // Given matches name features by number, so features and their order count.
            let hashes = states.iter().map(|state| state.known().map_or(0, |known| known.hash));
            parts.push(hashes.flat_map(u64::to_le_bytes).collect());
        }
        if choice == PairChoice::TopScale {
            parts.push(self.suggestions_fingerprint().to_le_bytes().to_vec());
            let keys = states.iter().flat_map(|state| state.key().unwrap_or(0).to_le_bytes());
            parts.push(keys.collect());
        }
        fingerprint(parts.iter().map(|part| &part[..]))
    }

    pub(super) fn write_pairs(&self, path: &Path, made_from: u64, pairs: &PairSet) -> Result<()> {
        let payload = match pairs {
            PairSet::All => vec![0],
            PairSet::List(pairs) => {
                let mut payload = vec![1];
                pairs.iter().flatten().for_each(|i| payload.extend_from_slice(&i.to_le_bytes()));
                payload
            }
        };
        record::write(&Disk::at_once(self.syncs()), path, (Kind::Pairs, made_from), &[], &[&payload])
    }

    pub(super) fn read_pairs(&self, path: &Path, made_from: u64) -> Result<Found<PairSet>> {
        let count = self.photographs().len() as u32;
        let read = record::read(path, (Kind::Pairs, made_from))?;
        Ok(read.decoded("holds no pairs of these photographs", |(_, payload)| decode(&payload, count)))
    }
}

pub(super) fn decode(payload: &[u8], photographs: u32) -> Option<PairSet> {
    let mut fields = Fields(payload);
    if fields.u8()? == 0 {
        return fields.0.is_empty().then_some(PairSet::All);
    }
    let pairs = fields.pairs(fields.0.len() / 8)?;
    let sound = pairs.is_sorted() && pairs.iter().all(|[a, b]| a < b && *b < photographs);
    (sound && fields.0.is_empty()).then_some(PairSet::List(pairs))
}

/// Each photograph with the next `overlap` in the order of names, in which 2 comes before 10, and with those that
/// follow 1, 2, 4, … places later, up to 2 to the power of `overlap` − 1. Photographs that are not `there` have no place,
/// as in COLMAP, whose database lacks them.
fn sequence(photographs: &[Photograph], overlap: u32, there: impl Fn(usize) -> bool) -> PairSet {
    let mut order: Vec<u32> = (0..photographs.len() as u32).filter(|i| there(*i as usize)).collect();
    order.sort_by(|a, b| {
        let [a, b] = [a, b].map(|i| photographs[*i as usize].name.as_str());
        by_numbers(a, b).then_with(|| a.cmp(b))
    });
    let near = 1..=overlap as usize;
    let far = (0..overlap.min(32)).map(|power| 1_usize << power);
    let mut steps: Vec<usize> = near.chain(far).collect();
    steps.sort_unstable();
    steps.dedup();
    let order = &order;
    let pairs = (0..order.len()).flat_map(|i| {
        let later = steps.iter().map_while(move |step| order.get(i + step));
        later.map(move |j| [order[i], *j])
    });
    PairSet::list(pairs)
}

/// Compares two names with runs of digits as numbers.
fn by_numbers(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    while let (Some(x), Some(y)) = (a.first(), b.first()) {
        let [one, other] = [a, b].map(|name| {
            let digits = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let zeros = name[..digits].iter().take_while(|byte| **byte == b'0').count();
            (digits, &name[zeros..digits])
        });
        let order = match (one.0, other.0) {
            (0, _) | (_, 0) => x.cmp(y),
            _ => one.1.len().cmp(&other.1.len()).then_with(|| one.1.cmp(other.1)),
        };
        if order.is_ne() {
            return order;
        }
        (a, b) = (&a[one.0.max(1)..], &b[other.0.max(1)..]);
    }
    a.len().cmp(&b.len())
}

const NO_POSITION: &str = "no photograph records its position; choose pairs in another way: exhaustive, sequence, top-scale or a list";

/// Radius of the earth's sphere, in metres.
const EARTH: f64 = 6_371_000.0;

/// Each photograph with the nearest others, by longitude and latitude alone, as COLMAP does. Photographs are sorted
/// into the cells of a grid in space, so that only those in neighbouring cells are compared. Fails when no photograph
/// records its position, unless `may_be_none` is set.
fn near(photographs: &[Photograph], options: &PairOptions, may_be_none: bool) -> Result<Vec<[u32; 2]>> {
    let (neighbours, max_metres) = (options.neighbours as usize, options.max_metres);
    let placed = (0..).zip(photographs).filter_map(|(i, photograph)| {
        let at = photograph.metadata.position?;
        let (latitude, longitude) = (at.latitude.to_radians(), at.longitude.to_radians());
        let [(up, ring), (east, front)] = [latitude, longitude].map(libm::sincos);
        let ring = EARTH * ring;
        Some((i, [ring * front, ring * east, EARTH * up]))
    });
    let placed: Vec<(u32, [f64; 3])> = placed.collect();
    if placed.is_empty() && !may_be_none {
        return Err(Error::Mismatch(NO_POSITION.into()));
    }
    let cell = |p: &[f64; 3]| p.map(|v| (v / max_metres).floor() as i64);
    let mut cells: HashMap<[i64; 3], Vec<usize>> = HashMap::new();
    for (i, (_, place)) in placed.iter().enumerate() {
        cells.entry(cell(place)).or_default().push(i);
    }
    let mut pairs = Vec::new();
    for (a, place) in &placed {
        let [x, y, z] = cell(place);
        let around =
            (-1..=1).flat_map(|i| (-1..=1).flat_map(move |j| (-1..=1).map(move |k| [x + i, y + j, z + k])));
        let squared = |q: &[f64; 3]| (0..3).map(|i| (place[i] - q[i]) * (place[i] - q[i])).sum::<f64>();
        let mut others: Vec<(f64, u32)> = around
            .filter_map(|cell| cells.get(&cell))
            .flatten()
            .map(|&i| (squared(&placed[i].1), placed[i].0))
            .filter(|(distance, b)| b != a && *distance <= max_metres * max_metres)
            .collect();
        others.sort_unstable_by(|p, q| p.0.total_cmp(&q.0).then(p.1.cmp(&q.1)));
        pairs.extend(others.into_iter().take(neighbours).map(|(_, b)| [*a, b]));
    }
    Ok(pairs)
}

/// The names of photographs, with their numbers less one.
pub(super) struct Names<'p> {
    numbers: HashMap<&'p str, u32>,
    pub(super) names: Vec<&'p str>,
    /// The length of the longest, in bytes.
    longest: usize,
}

impl<'p> Names<'p> {
    pub(super) fn of(names: impl IntoIterator<Item = &'p str>) -> Self {
        let names: Vec<&str> = names.into_iter().collect();
        let longest = names.iter().map(|name| name.len()).max().unwrap_or(0);
        Self { numbers: names.iter().copied().zip(0..).collect(), names, longest }
    }

    fn of_photographs(photographs: &'p [Photograph]) -> Self {
        Self::of(photographs.iter().map(|p| p.name.as_str()))
    }

    /// The two photographs that a line names, separated by a tab or a space. A number after them, such as the score of a
    /// retrieval, is skipped, as COLMAP does.
    pub(super) fn pair(&self, line: &str) -> std::result::Result<[u32; 2], String> {
        let number_of =
            |name: &str| self.numbers.get(name).or_else(|| self.numbers.get(name.trim())).copied();
        // Names may hold spaces, so any space may be the one between them.
        let both = |line: &str| {
            let last = self.longest + line.len() - line.trim_start().len();
            let mut spaces = line.match_indices([' ', '\t']).take_while(|(i, _)| *i <= last);
            spaces.find_map(|(i, _)| Some([number_of(&line[..i])?, number_of(&line[i + 1..])?]))
        };
        let scored = || {
            let (names, score) = line.trim_end().rsplit_once([' ', '\t'])?;
            score.parse::<f64>().ok().and_then(|_| both(names))
        };
        both(line).or_else(scored).ok_or_else(|| {
            let parts = line.split_once('\t').or_else(|| line.trim().split_once(' '));
            let unknown = parts.map(|(a, b)| if number_of(a).is_none() { a } else { b }.trim());
            match (unknown, self.names.first()) {
                (Some(name), Some(like)) => {
                    format!("{name:?} is no photograph of the collection, whose names are like {like:?}")
                }
                (Some(name), None) => format!("{name:?} is no photograph of the collection"),
                (None, _) => format!(
                    "{line:?}: expected two names with a space between them, or a tab where names hold spaces"
                ),
            }
        })
    }
}

/// The pairs in a file, two names a line, without empty lines and those that begin with # and name no photographs.
fn listed(text: &str, path: &Path, photographs: &[Photograph]) -> Result<PairSet> {
    let (names, mut pairs) = (Names::of_photographs(photographs), Vec::new());
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        match names.pair(line) {
            Err(_) if line.starts_with('#') => {}
            pair => pairs.push(pair.map_err(|e| Error::format(path, format!("line {number}: {e}")))?),
        }
    }
    Ok(PairSet::list(pairs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::CollectionOptions;
    use crate::image::{Metadata, Position};

    fn photographs(positions: &[Option<[f64; 2]>]) -> Vec<Photograph> {
        let at = |p: [f64; 2]| Position { latitude: p[0], longitude: p[1], altitude: None };
        let photograph = |(i, p): (u32, &Option<[f64; 2]>)| Photograph {
            metadata: Metadata { position: p.map(at), ..Metadata::default() },
            ..Photograph::named(format!("image {i}.jpg"), i)
        };
        (0..).zip(positions).map(photograph).collect()
    }

    #[test]
    fn a_line_that_names_two_photographs_is_no_comment() {
        let named = Photograph::all_named(&["#1.jpg", "#2.jpg", "b.jpg"]);
        let text = "# first pairs\n#1.jpg #2.jpg\n\n#b.jpg #2.jpg\nb.jpg #1.jpg\n";
        let set = listed(text, Path::new("pairs.txt"), &named).unwrap();
        assert_eq!(set.count(3), 2);
        assert!(listed("c.jpg #1.jpg", Path::new("pairs.txt"), &named).is_err());
    }

    #[test]
    fn a_line_may_hold_a_score_and_names_with_spaces() {
        let names = Names::of(["a.jpg", "b c.jpg", "b"]);
        for line in [
            "a.jpg b c.jpg",
            "a.jpg\tb c.jpg",
            "a.jpg b c.jpg 0.87",
            "a.jpg\tb c.jpg\t3",
            " a.jpg b c.jpg 1e-3 ",
        ] {
            assert_eq!(names.pair(line), Ok([0, 1]), "{line:?}");
        }
        for (line, unknown) in
            [("a.jpg d.jpg 0.5", "d.jpg 0.5"), ("a.jpg b word", "b word"), ("d.jpg a.jpg", "d.jpg")]
        {
            let said = names.pair(line).unwrap_err();
            assert!(said.starts_with(&format!("{unknown:?} is no photograph")), "{said}");
        }
    }

    #[test]
    fn tiles_hold_every_pair_once() {
        let some = PairSet::list([[3, 1], [1, 3], [5, 5], [6, 0], [2, 3], [4, 6]]);
        assert_eq!(some.count(7), 4, "each once, none with itself");
        for (set, count) in [(&PairSet::All, 7), (&some, 7), (&PairSet::All, 1), (&PairSet::All, 6)] {
            for (block, turned) in [(1, false), (2, true), (3, true), (100, false)] {
                let mut listing = photographs(&vec![None; count]);
                if turned {
                    // Slots need not be in the order of names, and some may be free.
                    listing.iter_mut().for_each(|p| p.slot = 2 * (count as u32 - p.slot));
                }
                let options = CollectionOptions::default().with_block(Some(block));
                let collection = Collection::of_photographs(options, listing);
                let tiled = TiledPairs::new(set.clone(), &collection);
                let tiles: Vec<TilePairs> = (0..tiled.tiles()).map(|t| tiled.tile(t, &collection)).collect();
                let of_blocks = |tile: &TilePairs| {
                    tile.pairs.iter().all(|p| collection.blocks_of(*p).map(|b| b as usize) == tile.blocks)
                };
                assert!(tiles.iter().all(of_blocks), "{set:?} in blocks of {block}");
                let mut pairs: Vec<_> = tiles.iter().flat_map(|tile| tile.pairs.clone()).collect();
                assert_eq!(pairs.len() as u64, set.count(count), "{set:?} in blocks of {block}");
                pairs.sort_unstable();
                let all = (0..count as u32).flat_map(|a| (a + 1..count as u32).map(move |b| [a, b]));
                let wanted: Vec<_> = all.filter(|pair| set.contains(*pair)).collect();
                assert_eq!(pairs, wanted, "{set:?} in blocks of {block}");
                assert!(tiles.iter().all(|tile| !tile.pairs.is_empty()), "none empty");
            }
        }
    }

    #[test]
    fn parts_have_about_as_many_pairs_each() {
        let listing = photographs(&vec![None; 500]);
        for set in [sequence(&listing, 3, |_| true), PairSet::All] {
            let options = CollectionOptions::default().with_block(Some(20));
            let collection = Collection::of_photographs(options, listing.clone());
            let tiled = TiledPairs::new(set.clone(), &collection);
            let count = |tile: usize| tiled.tile(tile, &collection).pairs.len();
            let largest = (0..tiled.tiles()).map(count).max().unwrap();
            for parts in [1, 2, 4, 7, 1000] {
                let tiles = |i| tiled.part(Shard::new(i, parts).unwrap());
                let pairs: Vec<usize> = (0..parts).map(|i| tiles(i).into_iter().map(count).sum()).collect();
                let [least, most] = [pairs.iter().min(), pairs.iter().max()].map(|n| *n.unwrap());
                assert!(most - least <= largest, "of {parts}: {pairs:?}");
                assert_eq!(pairs.iter().sum::<usize>() as u64, set.count(500), "of {parts}");
            }
        }
    }

    #[test]
    fn a_sequence_pairs_neighbours_and_powers_of_two() {
        let ten = photographs(&[None; 12]);
        let PairSet::List(pairs) = sequence(&ten[..10], 3, |_| true) else { panic!("a list") };
        let of_first: Vec<u32> = pairs.iter().filter(|p| p[0] == 0).map(|p| p[1]).collect();
        assert_eq!(of_first, [1, 2, 3, 4], "1, 2, 3 and 1, 2, 4");
        assert_eq!(sequence(&ten[..1], 3, |_| true), PairSet::List(vec![]), "one alone");
        let PairSet::List(pairs) = sequence(&ten, 1, |i| i != 5) else { panic!("a list") };
        assert!(pairs.contains(&[9, 10]) && !pairs.contains(&[1, 10]), "10 comes after 9: {pairs:?}");
        let skips = pairs.contains(&[4, 6]) && pairs.len() == 10;
        assert!(skips, "one that cannot be read has no place: {pairs:?}");
    }

    #[test]
    fn digits_count_as_numbers() {
        for (a, b) in
            [("f2", "f10"), ("f2", "f02b"), ("a/9/x", "a/10/a"), ("f", "f1"), ("f9", "g1"), ("1", "a")]
        {
            assert_eq!(by_numbers(a, b), Ordering::Less, "{a} {b}");
            assert_eq!(by_numbers(b, a), Ordering::Greater, "{b} {a}");
        }
    }

    #[test]
    fn neighbours_by_position() {
        // A ten-thousandth of a degree of latitude is 11 m.
        let steps = [0.0, 1.0, 2.0, 20.0, 20.5];
        let places: Vec<_> = steps.iter().map(|s| Some([48.0 + s * 1e-4, 11.0])).chain([None]).collect();
        let near = |places: &[_], n| {
            let options = PairOptions::default().with_neighbours(n);
            near(&photographs(places), &options, false).map(PairSet::list)
        };
        let found = near(&places, 1).unwrap();
        let nearest = PairSet::list([[0, 1], [1, 2], [3, 4]]);
        assert_eq!(found, nearest, "the nearest of each, of equals the first");
        let wide = near(&places, 10).unwrap();
        assert_eq!(wide, PairSet::list([[0, 1], [0, 2], [1, 2], [3, 4]]), "all within 100 m");
        let error = near(&[None, None], 1).unwrap_err();
        assert!(error.to_string().contains("records its position"), "{error}");
        let antimeridian = [Some([0.0, 179.9999]), Some([0.0, -179.9999])];
        assert_eq!(near(&antimeridian, 1).unwrap().count(2), 1, "across 180 degrees");
    }

    #[test]
    fn a_list_names_photographs() {
        let read = |text: &str| listed(text, Path::new("list.txt"), &photographs(&[None; 4]));
        let found = read("# pairs\n\nimage 0.jpg\timage 3.jpg\nimage 3.jpg\timage 0.jpg\n").unwrap();
        assert_eq!(found, PairSet::list([[0, 3]]), "by tab");
        let blank = Photograph::all_named(&[" a.jpg", "a.jpg", "b.jpg "]);
        let found = listed(" a.jpg\tb.jpg \na.jpg\tb.jpg \n", Path::new("list.txt"), &blank).unwrap();
        assert_eq!(found, PairSet::list([[0, 2], [1, 2]]), "with blanks at the ends of names");
        for (text, reason) in [("image", "two names"), ("image 0.jpg\tother.jpg", "no photograph")] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains("line 1") && error.contains(reason), "{error}");
        }
    }
}
