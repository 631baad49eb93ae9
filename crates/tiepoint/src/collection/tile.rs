//! The file of a tile: the pairs of two blocks that were tried, what they were made from, and the result of each.
//!
//! ```text
//! head:
//!   side of a block, u32
//!   photographs of rows, then of columns: their number u32; of each its place u32 and its key u64
//!   pairs that were tried: their number u32; then of each its place u32 (row · side + column) or, where that takes
//!     fewer bytes, a bit for each of all side² places
//!   pairs that have a result: in the same form
//!   the record of each result, of fixed length
//! body: for each result as many bytes as its record says
//! ```
//!
//! The result of a pair is valid as long as the keys of both photographs are the same. So photographs may come, go and
//! change, and pairs may be chosen in another way: results that are still valid are kept.

use super::record::Fields;
use crate::assess::PairCounts;
use crate::geometry::two_view::Configuration;
use std::collections::BTreeMap;

/// Two photographs that show the same thing: their matches and the geometry between them.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedPair {
    /// The index of the first photograph.
    pub a: usize,
    /// The index of the second, which is greater.
    pub b: usize,
    /// The matches, each a feature of the first and one of the second photograph.
    pub matches: Vec<[u32; 2]>,
    /// For each match, whether it agrees with the geometry.
    pub inlier: Vec<bool>,
    /// The kind of geometry between the two views.
    pub configuration: Configuration,
    /// The fundamental matrix, row by row, with `x_bᵀ F x_a = 0` for the points of inliers.
    pub fundamental: Option<[f64; 9]>,
    /// The essential matrix, likewise for normalised points.
    pub essential: Option<[f64; 9]>,
    /// The homography from the first to the second photograph.
    pub homography: Option<[f64; 9]>,
}

impl VerifiedPair {
    /// The numbers by which a collection is judged.
    pub fn counts(&self) -> PairCounts {
        let (matches, inliers) = (self.matches.len(), self.inliers().count());
        let turned = self.configuration == Configuration::Panoramic;
        PairCounts { ends: [self.a, self.b], matches, inliers, turned }
    }

    /// The matches that agree with the geometry.
    pub fn inliers(&self) -> impl Iterator<Item = [u32; 2]> {
        self.matches.iter().zip(&self.inlier).filter(|(_, inlier)| **inlier).map(|(m, _)| *m)
    }
}

/// The result of a pair, if it has one: its record and its part of the body.
pub(super) type Outcome = Option<Vec<u8>>;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Head {
    side: usize,
    /// For rows and for columns: the keys of the photographs in the pairs that were tried.
    keys: [Vec<Option<u64>>; 2],
    /// For each place, whether its pair was tried.
    tried: Vec<bool>,
    /// Sorted places of pairs that have a result.
    found: Vec<u32>,
    records: Vec<u8>,
    /// Bytes of a record.
    record: usize,
}

impl Head {
    /// Whether the pair at this row and column was tried when its photographs had these keys.
    pub(super) fn has(&self, at: [usize; 2], keys: [u64; 2]) -> bool {
        let same = |side: usize| self.keys[side][at[side]] == Some(keys[side]);
        self.tried[self.place(at) as usize] && same(0) && same(1)
    }

    /// The result of the pair at this row and column, if it has one: its number among the results, and its record.
    pub(super) fn record(&self, at: [usize; 2]) -> Option<(usize, &[u8])> {
        let number = self.found.binary_search(&self.place(at)).ok()?;
        Some((number, &self.records[number * self.record..][..self.record]))
    }

    /// The parts of the body, one for each result; `None` if the body does not belong to this head.
    pub(super) fn bodies<'b>(&self, body: &'b [u8], length: fn(&[u8]) -> usize) -> Option<Vec<&'b [u8]>> {
        let mut fields = Fields(body);
        let parts = self.records.chunks_exact(self.record).map(|record| fields.take(length(record)));
        let parts: Vec<&[u8]> = parts.collect::<Option<_>>()?;
        fields.0.is_empty().then_some(parts)
    }

    fn place(&self, at: [usize; 2]) -> u32 {
        (at[0] * self.side + at[1]) as u32
    }

    /// `None` unless the bytes are the head of a tile with blocks of `side` photographs and records of `record` bytes.
    pub(super) fn decode(bytes: &[u8], side: usize, record: usize) -> Option<Self> {
        let mut fields = Fields(bytes);
        if fields.u32()? as usize != side {
            return None;
        }
        let mut keys = || -> Option<Vec<Option<u64>>> {
            let mut keys = vec![None; side];
            for _ in 0..fields.u32()? {
                let (place, key) = (fields.u32()? as usize, fields.u64()?);
                *keys.get_mut(place)? = Some(key);
            }
            Some(keys)
        };
        let keys = [keys()?, keys()?];
        let mut tried = vec![false; side * side];
        decode_places(&mut fields, side)?.iter().for_each(|place| tried[*place as usize] = true);
        let found = decode_places(&mut fields, side)?;
        let records = fields.take(found.len().checked_mul(record)?)?.to_vec();
        let sound = found.iter().all(|place| tried[*place as usize]);
        (fields.0.is_empty() && sound).then_some(Self { side, keys, tried, found, records, record })
    }
}

fn encode_places(places: &[u32], side: usize, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&(places.len() as u32).to_le_bytes());
    let length = (side * side).div_ceil(8);
    if 4 * places.len() < length {
        places.iter().for_each(|place| bytes.extend_from_slice(&place.to_le_bytes()));
        return;
    }
    let start = bytes.len();
    bytes.resize(start + length, 0);
    places.iter().for_each(|place| bytes[start + *place as usize / 8] |= 1 << (place % 8));
}

fn decode_places(fields: &mut Fields<'_>, side: usize) -> Option<Vec<u32>> {
    let (count, length) = (fields.u32()? as usize, (side * side).div_ceil(8));
    if 4 * count < length {
        let places: Vec<u32> = (0..count).map(|_| fields.u32()).collect::<Option<_>>()?;
        let sound = places.is_sorted_by(|a, b| a < b) && places.iter().all(|p| (*p as usize) < side * side);
        return sound.then_some(places);
    }
    let bits = fields.take(length)?;
    let is_set = |place: &u32| bits[*place as usize / 8] >> (place % 8) & 1 == 1;
    let places: Vec<u32> = (0..(side * side) as u32).filter(is_set).collect();
    (places.len() == count).then_some(places)
}

/// A tile that is being put together.
#[derive(Debug)]
pub(super) struct Tile<'b> {
    side: usize,
    keys: [BTreeMap<u32, u64>; 2],
    /// For each place of a pair that was tried, its result: record and part of the body.
    pairs: BTreeMap<u32, Option<[&'b [u8]; 2]>>,
}

impl<'b> Tile<'b> {
    pub(super) fn new(side: usize) -> Self {
        Self { side, keys: Default::default(), pairs: BTreeMap::new() }
    }

    /// Adds a pair that was tried, the keys of its photographs, and its result.
    pub(super) fn add(&mut self, at: [usize; 2], keys: [u64; 2], found: Option<[&'b [u8]; 2]>) {
        for side in 0..2 {
            self.keys[side].insert(at[side] as u32, keys[side]);
        }
        self.pairs.insert((at[0] * self.side + at[1]) as u32, found);
    }

    /// Adds the pairs of an older tile that are still valid: those that were tried with the keys that `key` returns.
    pub(super) fn add_valid(
        &mut self,
        head: &'b Head,
        bodies: &[&'b [u8]],
        key: impl Fn(usize, usize) -> Option<u64>,
    ) {
        for place in (0..head.tried.len()).filter(|place| head.tried[*place]) {
            let at = [place / self.side, place % self.side];
            let (Some(row), Some(column)) = (key(0, at[0]), key(1, at[1])) else { continue };
            if head.has(at, [row, column]) {
                let found = head.record(at).map(|(number, record)| [record, bodies[number]]);
                self.add(at, [row, column], found);
            }
        }
    }

    /// The head, and the body in parts.
    pub(super) fn encode(&self) -> (Vec<u8>, Vec<&'b [u8]>) {
        let mut head = (self.side as u32).to_le_bytes().to_vec();
        for keys in &self.keys {
            head.extend_from_slice(&(keys.len() as u32).to_le_bytes());
            for (place, key) in keys {
                head.extend_from_slice(&place.to_le_bytes());
                head.extend_from_slice(&key.to_le_bytes());
            }
        }
        let found = || self.pairs.iter().filter_map(|(place, found)| Some((*place, (*found)?)));
        encode_places(&self.pairs.keys().copied().collect::<Vec<_>>(), self.side, &mut head);
        encode_places(&found().map(|(place, _)| place).collect::<Vec<_>>(), self.side, &mut head);
        found().for_each(|(_, [record, _])| head.extend_from_slice(record));
        (head, found().map(|(_, [_, body])| body).collect())
    }
}

/// Bytes of the record of a verified pair: number of matches u32, of inliers u32, configuration u8, models u8 (bits: F,
/// E, H). Its part of the body: those of F, E, H that there are, 9 f64 each, row by row; for each match the feature of
/// a and that of b, u32 each; for each match a bit that says whether it is an inlier.
pub(super) const PAIR: usize = 10;

/// The numbers of matches and of inliers in the record of a pair.
pub(super) fn counts(record: &[u8]) -> [u32; 2] {
    let mut fields = Fields(record);
    [0, 1].map(|_| fields.u32().unwrap_or(0))
}

/// The length of a pair's part of the body, from its record.
pub(super) fn pair_length(record: &[u8]) -> usize {
    let matches = counts(record)[0] as usize;
    let models = record.last().map_or(0, |bits| bits.count_ones()) as usize;
    models * 72 + matches * 8 + matches.div_ceil(8)
}

impl VerifiedPair {
    /// The record followed by the pair's part of the body.
    pub(super) fn encode(&self) -> Vec<u8> {
        let models = [self.fundamental, self.essential, self.homography];
        let count = self.matches.len();
        let mut bytes = Vec::with_capacity(PAIR + 3 * 72 + count * 8 + count.div_ceil(8));
        for n in [count, self.inliers().count()] {
            bytes.extend_from_slice(&(n as u32).to_le_bytes());
        }
        let bits = (0..3).filter(|i| models[*i].is_some()).fold(0, |bits, i| bits | 1 << i);
        bytes.extend_from_slice(&[self.configuration.code() as u8, bits]);
        models.iter().flatten().flatten().for_each(|v| bytes.extend_from_slice(&v.to_le_bytes()));
        self.matches.iter().flatten().for_each(|v| bytes.extend_from_slice(&v.to_le_bytes()));
        let byte = |bits: &[bool]| bits.iter().rev().fold(0_u8, |byte, bit| byte << 1 | u8::from(*bit));
        bytes.extend(self.inlier.chunks(8).map(byte));
        bytes
    }

    /// `None` unless the bytes are a pair of photographs with these numbers of features.
    pub(super) fn decode(pair: [usize; 2], features: [usize; 2], record: &[u8], body: &[u8]) -> Option<Self> {
        let [a, b] = pair;
        let mut fields = Fields(record);
        let [count, inliers] = [fields.u32()? as usize, fields.u32()? as usize];
        let configuration = Configuration::from_code(fields.u8()?.into())?;
        let bits = fields.u8()?;
        let mut fields = Fields(body);
        let mut model = |bit: u8| -> Option<Option<[f64; 9]>> {
            if bits >> bit & 1 == 0 {
                return Some(None);
            }
            let values = fields.take(72)?.as_chunks().0;
            Some(Some(std::array::from_fn(|i| f64::from_le_bytes(values[i]))))
        };
        let [fundamental, essential, homography] = [model(0)?, model(1)?, model(2)?];
        let matches = fields.pairs(count)?;
        let flags = fields.take(count.div_ceil(8))?;
        let inlier: Vec<bool> = (0..count).map(|i| flags[i / 8] >> (i % 8) & 1 == 1).collect();
        let within = matches.iter().all(|m| (m[0] as usize) < features[0] && (m[1] as usize) < features[1]);
        if !within || !fields.0.is_empty() || inlier.iter().filter(|inlier| **inlier).count() != inliers {
            return None;
        }
        Some(Self { a, b, matches, inlier, configuration, fundamental, essential, homography })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(n: u32, fundamental: Option<[f64; 9]>) -> VerifiedPair {
        let (matches, inlier) = (0..n).map(|i| ([i, 3 * i], i % 3 == 0)).unzip();
        let (configuration, homography) = (Configuration::Uncalibrated, Some([0.5; 9]));
        VerifiedPair { a: 3, b: 5, matches, inlier, configuration, fundamental, essential: None, homography }
    }

    #[test]
    fn pairs_are_read_back_unchanged() {
        for pair in [pair(17, Some([1.5; 9])), pair(8, None)] {
            let bytes = pair.encode();
            let (record, body) = bytes.split_at(PAIR);
            let n = pair.matches.len();
            let decode = |features, body| VerifiedPair::decode([3, 5], features, record, body);
            assert_eq!(decode([n, 3 * n], body), Some(pair.clone()), "as written");
            assert_eq!(decode([n - 1, 3 * n], body), None, "a feature that is not there");
            assert_eq!(decode([n, 3 * (n - 1)], body), None, "a feature that is not there");
            assert!((0..body.len()).all(|end| decode([n, 3 * n], &body[..end]).is_none()), "cut off");
            assert_eq!(pair_length(record), body.len());
            assert_eq!(counts(record), [n as u32, pair.inliers().count() as u32]);
        }
    }

    #[test]
    fn a_tile_keeps_pairs_of_unchanged_photographs() {
        for side in [4, 100] {
            let found = [pair(17, None).encode(), pair(3, None).encode()];
            let split = |bytes: &'static [u8]| bytes.split_at(PAIR);
            let found: Vec<(&[u8], &[u8])> = found.map(|bytes| split(bytes.leak())).to_vec();
            let mut tile = Tile::new(side);
            let keys = [[10, 11, 12, 13_u64], [20, 21, 22, 23]];
            for row in 0..4 {
                for column in 0..4 {
                    let outcome = (column == 3 && row < 2).then(|| [found[row].0, found[row].1]);
                    tile.add([row, column], [keys[0][row], keys[1][column]], outcome);
                }
            }
            let (head, body) = tile.encode();
            let decoded = Head::decode(&head, side, PAIR).unwrap();
            assert!(decoded.has([1, 3], [11, 23]) && !decoded.has([1, 3], [11, 24]), "by keys");
            assert_eq!(decoded.record([1, 3]), Some((1, found[1].0)));
            assert_eq!(decoded.record([1, 2]), None, "the pair has no result");
            assert!((0..head.len()).all(|end| Head::decode(&head[..end], side, PAIR).is_none()), "cut off");
            assert!(Head::decode(&head, side + 1, PAIR).is_none(), "of other blocks");
            // The photograph of the second row has changed, and that of the third column was removed.
            let mut rest = Tile::new(side);
            rest.add_valid(&decoded, &body, |of, at| match (of, at) {
                (0, 1) => Some(99),
                (1, 2) => None,
                _ => Some(keys[of][at]),
            });
            let (head, body) = rest.encode();
            let decoded = Head::decode(&head, side, PAIR).unwrap();
            assert_eq!(decoded.tried.iter().filter(|tried| **tried).count(), 9, "three rows of three");
            assert_eq!((decoded.record([0, 3]).is_some(), body.len()), (true, 1), "side {side}");
        }
    }
}
