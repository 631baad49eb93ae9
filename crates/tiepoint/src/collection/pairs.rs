//! The third stage: which pairs of photographs are matched.
//!
//! All pairs are never listed. Other sets are: in `pairs.bin`, sorted.

use super::record::{self, Fields, Found, Kind, fingerprint};
use super::{Collection, PairChoice, Photograph, Shard};
use crate::device::Cpu;
use crate::{Error, Result};
use std::collections::HashMap;
use std::path::Path;

/// Pairs of photographs, by their indices, the smaller first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairSet {
    /// Every pair.
    All,
    /// These, sorted, each once.
    List(Vec<[u32; 2]>),
}

/// The pairs of two blocks that belong to a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TilePlan {
    /// The blocks, the smaller first.
    pub(super) blocks: [usize; 2],
    pub(super) pairs: Vec<[u32; 2]>,
}

impl PairSet {
    /// A list of pairs in any order, of which some may occur twice or join a photograph with itself.
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

    /// How many pairs these are of so many photographs.
    pub fn count(&self, photographs: usize) -> u64 {
        match self {
            Self::All => photographs as u64 * (photographs as u64).saturating_sub(1) / 2,
            Self::List(pairs) => pairs.len() as u64,
        }
    }

    /// Blocks that have pairs with each other: the tiles, in the order in which they are worked on. Along a row of
    /// tiles one new block is needed for each; the next row goes back the other way.
    pub(super) fn tiles(&self, photographs: usize, block: usize) -> Vec<[usize; 2]> {
        let blocks = photographs.div_ceil(block);
        let mut tiles: Vec<[usize; 2]> = match self {
            Self::All => (0..blocks).flat_map(|row| (row..blocks).map(move |column| [row, column])).collect(),
            Self::List(pairs) => pairs.iter().map(|pair| pair.map(|i| i as usize / block)).collect(),
        };
        let turned =
            |&[row, column]: &[usize; 2]| (row, if row % 2 == 0 { column } else { usize::MAX - column });
        tiles.sort_unstable_by_key(turned);
        tiles.dedup();
        // A block with itself has no pair where it holds one photograph.
        tiles.retain(|[row, column]| row != column || block.min(photographs - row * block) > 1);
        tiles
    }

    /// The pairs of a tile, in their order.
    pub(super) fn plan(&self, blocks: [usize; 2], photographs: usize, block: usize) -> TilePlan {
        let range = |b: usize| (b * block) as u32..((b + 1) * block).min(photographs) as u32;
        let (rows, columns) = (range(blocks[0]), range(blocks[1]));
        let pairs = match self {
            Self::All => {
                rows.flat_map(|a| columns.clone().filter(move |b| *b > a).map(move |b| [a, b])).collect()
            }
            Self::List(pairs) => {
                let of_row =
                    pairs.partition_point(|p| p[0] < rows.start)..pairs.partition_point(|p| p[0] < rows.end);
                pairs[of_row].iter().filter(|p| columns.contains(&p[1])).copied().collect()
            }
        };
        TilePlan { blocks, pairs }
    }
}

impl Collection {
    /// Chooses the pairs, unless that was done. A part of the work counts where photographs have to be compared for it
    /// (top-scale): the last part to finish writes the choice, the others return `None`.
    ///
    /// # Errors
    /// [`Error::Format`] for a list that does not fit the collection, or when features are missing that are needed;
    /// [`Error::Mismatch`] when no photograph records its position, where positions are asked for; [`Error::Io`].
    pub fn choose_pairs(&self, shard: Shard, cpu: &Cpu) -> Result<Option<PairSet>> {
        if let Found::Whole(pairs) = self.chosen()? {
            return Ok(Some(pairs));
        }
        let (options, photographs) = (&self.options().pairs, self.photographs());
        let pairs = match options.choice {
            PairChoice::Exhaustive => PairSet::All,
            PairChoice::Auto if photographs.len() <= options.exhaustive_up_to as usize => PairSet::All,
            PairChoice::Sequence => sequence(photographs.len(), options.overlap),
            PairChoice::Gps => near(photographs, options.neighbours as usize, options.max_metres)?,
            PairChoice::List => match &options.list {
                Some(list) => listed(list, photographs)?,
                None => return Err(Error::option("list", "missing", "a file of pairs")),
            },
            PairChoice::TopScale => match self.top_scale(shard, cpu)? {
                Some(pairs) => PairSet::list(pairs),
                None => return Ok(None),
            },
            PairChoice::Auto => match self.top_scale(shard, cpu)? {
                Some(mut pairs) => {
                    // Photographs without positions add none.
                    if let Ok(PairSet::List(near)) =
                        near(photographs, options.neighbours as usize, options.max_metres)
                    {
                        pairs.extend(near);
                    }
                    PairSet::list(pairs)
                }
                None => return Ok(None),
            },
        };
        self.write_pairs(&self.pairs_path(), self.choice_fingerprint(), &pairs)?;
        Ok(Some(pairs))
    }

    /// The pairs that were chosen.
    pub(super) fn chosen(&self) -> Result<Found<PairSet>> {
        self.read_pairs(&self.pairs_path(), self.choice_fingerprint())
    }

    /// Of what the choice follows from: options, and the names and number of photographs.
    fn choice_fingerprint(&self) -> u64 {
        let names = self.photographs().iter().map(|p| p.name.as_bytes());
        let options = super::folder::text_of(&self.options().pairs);
        let top = super::folder::text_of(&(&self.options().features, &self.options().matching));
        fingerprint([b"pairs".as_slice(), options.as_bytes(), top.as_bytes()].into_iter().chain(names))
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
        record::write(path, Kind::Pairs, made_from, &[&payload])
    }

    pub(super) fn read_pairs(&self, path: &Path, made_from: u64) -> Result<Found<PairSet>> {
        let count = self.photographs().len() as u32;
        Ok(match record::read(path, Kind::Pairs, made_from)?.map(|payload| decode(&payload, count)) {
            Found::Whole(Some(pairs)) => Found::Whole(pairs),
            Found::Whole(None) => Found::Unfit("holds no pairs of these photographs".into()),
            Found::Missing => Found::Missing,
            Found::Unfit(reason) => Found::Unfit(reason),
        })
    }
}

fn decode(payload: &[u8], photographs: u32) -> Option<PairSet> {
    let mut fields = Fields(payload);
    if fields.u8()? == 0 {
        return fields.0.is_empty().then_some(PairSet::All);
    }
    let mut pairs = Vec::with_capacity(fields.0.len() / 8);
    while !fields.0.is_empty() {
        pairs.push([fields.u32()?, fields.u32()?]);
    }
    let sound = pairs.is_sorted() && pairs.iter().all(|[a, b]| a < b && *b < photographs);
    sound.then_some(PairSet::List(pairs))
}

/// Each photograph with the next `overlap`, and with those 1, 2, 4, … places on.
fn sequence(photographs: usize, overlap: u32) -> PairSet {
    let near = 1..=u64::from(overlap);
    let far = (0..overlap.min(32)).map(|power| 1_u64 << power);
    let steps: Vec<u64> = near.chain(far).collect();
    let count = photographs as u64;
    let pairs = (0..count).flat_map(|i| steps.iter().map(move |step| [i, i + step]));
    PairSet::list(pairs.filter(|[_, b]| *b < count).map(|pair| pair.map(|i| i as u32)))
}

/// Radius of the earth's sphere, in metres.
const EARTH: f64 = 6_371_000.0;

/// Each photograph with the nearest others, by longitude and latitude alone, as COLMAP does. Cells of a grid on the
/// sphere's tangent directions keep this from comparing all with all.
fn near(photographs: &[Photograph], neighbours: usize, max_metres: f64) -> Result<PairSet> {
    let placed: Vec<(u32, [f64; 3])> = (0..)
        .zip(photographs)
        .filter_map(|(i, photograph)| {
            let at = photograph.metadata.position?;
            let (latitude, longitude) = (at.latitude.to_radians(), at.longitude.to_radians());
            let [(up, ring), (east, front)] = [latitude, longitude].map(libm::sincos);
            let ring = EARTH * ring;
            Some((i, [ring * front, ring * east, EARTH * up]))
        })
        .collect();
    if placed.is_empty() {
        return Err(Error::Mismatch(
            "no photograph records its position; choose pairs in another way: exhaustive, sequence, top-scale or a list".into(),
        ));
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
    Ok(PairSet::list(pairs))
}

/// The pairs of a file: two names a line, with a tab between them or else a space. Empty lines and those that begin
/// with # are skipped.
fn listed(path: &Path, photographs: &[Photograph]) -> Result<PairSet> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
    let numbers: HashMap<&str, u32> = photographs.iter().map(|p| p.name.as_str()).zip(0..).collect();
    let mut pairs = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, l)| !l.trim().is_empty() && !l.starts_with('#'))
    {
        let wrong = |reason: String| Error::format(path, format!("line {number}: {reason}"));
        let parts = line.split_once('\t').or_else(|| line.trim().split_once(' '));
        let (a, b) = parts.ok_or_else(|| {
            wrong("expected two names with a space between them, or a tab where names hold spaces".into())
        })?;
        let number_of = |name: &str| {
            let found = numbers.get(name.trim()).copied();
            found.ok_or_else(|| wrong(format!("{:?} is no photograph of the collection", name.trim())))
        };
        pairs.push([number_of(a)?, number_of(b)?]);
    }
    Ok(PairSet::list(pairs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::{Metadata, Position};

    fn photographs(positions: &[Option<[f64; 2]>]) -> Vec<Photograph> {
        let at = |p: [f64; 2]| Position { latitude: p[0], longitude: p[1], altitude: 0.0 };
        let photograph = |(i, p): (usize, &Option<[f64; 2]>)| Photograph {
            name: format!("image {i}.jpg"),
            bytes: 1,
            modified: 0,
            metadata: Metadata { position: p.map(at), ..Metadata::default() },
        };
        positions.iter().enumerate().map(photograph).collect()
    }

    #[test]
    fn tiles_hold_every_pair_once() {
        let some = PairSet::list([[3, 1], [1, 3], [5, 5], [6, 0], [2, 3], [4, 6]]);
        assert_eq!(some.count(7), 4, "each once, none with itself");
        for (set, photographs) in [(&PairSet::All, 7), (&some, 7), (&PairSet::All, 1), (&PairSet::All, 6)] {
            for block in [1, 2, 3, 100] {
                let tiles = set.tiles(photographs, block);
                let pairs = tiles.iter().flat_map(|tile| set.plan(*tile, photographs, block).pairs);
                let mut pairs: Vec<_> = pairs.collect();
                assert_eq!(pairs.len() as u64, set.count(photographs), "{set:?} in blocks of {block}");
                pairs.sort_unstable();
                let all =
                    (0..photographs as u32).flat_map(|a| (a + 1..photographs as u32).map(move |b| [a, b]));
                let wanted: Vec<_> = all.filter(|pair| set.contains(*pair)).collect();
                assert_eq!(pairs, wanted, "{set:?} in blocks of {block}");
                assert!(
                    tiles.iter().all(|t| !set.plan(*t, photographs, block).pairs.is_empty()),
                    "none empty"
                );
            }
        }
    }

    #[test]
    fn a_sequence_pairs_neighbours_and_powers_of_two() {
        let PairSet::List(pairs) = sequence(10, 3) else { panic!("a list") };
        let of_first: Vec<u32> = pairs.iter().filter(|p| p[0] == 0).map(|p| p[1]).collect();
        assert_eq!(of_first, [1, 2, 3, 4], "1, 2, 3 and 1, 2, 4");
        assert_eq!(sequence(1, 3), PairSet::List(vec![]), "one alone");
    }

    #[test]
    fn neighbours_by_position() {
        // A ten-thousandth of a degree of latitude is 11 m.
        let steps = [0.0, 1.0, 2.0, 20.0, 20.5];
        let places: Vec<_> = steps.iter().map(|s| Some([48.0 + s * 1e-4, 11.0])).chain([None]).collect();
        let found = near(&photographs(&places), 1, 100.0).unwrap();
        assert_eq!(
            found,
            PairSet::list([[0, 1], [1, 2], [3, 4]]),
            "the nearest of each, of equals the first"
        );
        let wide = near(&photographs(&places), 10, 100.0).unwrap();
        assert_eq!(wide, PairSet::list([[0, 1], [0, 2], [1, 2], [3, 4]]), "all within 100 m");
        let error = near(&photographs(&[None, None]), 1, 100.0).unwrap_err();
        assert!(error.to_string().contains("records its position"), "{error}");
        let antimeridian = [Some([0.0, 179.9999]), Some([0.0, -179.9999])];
        assert_eq!(near(&photographs(&antimeridian), 1, 100.0).unwrap().count(2), 1, "across 180 degrees");
    }

    #[test]
    fn a_list_names_photographs() {
        let path = std::env::temp_dir().join(format!("tiepoint-pairs-{}.txt", std::process::id()));
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            listed(&path, &photographs(&[None; 4]))
        };
        let found = read("# pairs\n\nimage 0.jpg\timage 3.jpg\nimage 3.jpg\timage 0.jpg\n").unwrap();
        assert_eq!(found, PairSet::list([[0, 3]]), "by tab");
        for (text, reason) in [("image", "two names"), ("image 0.jpg\tother.jpg", "no photograph")] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains("line 1") && error.contains(reason), "{error}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
