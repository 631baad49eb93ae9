//! A tile: the pairs of two blocks, what came of each, and its file.
//!
//! ```text
//! tried u32, verified u32, then for each verified pair:
//!   photographs a, b u32 (indices), matches u32, inliers u32, configuration u8, models u8 (bits: F, E, H)
//!   F, E, H as far as there are, 9 f64 each, row by row
//!   matches: feature of a u32, of b u32; inliers: a bit for each match
//! ```

use super::record::Fields;
use crate::geometry::two_view::Configuration;

/// Two photographs that show the same thing: their matches and the geometry between them.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedPair {
    /// The index of the first photograph.
    pub a: usize,
    /// The index of the second, which is greater.
    pub b: usize,
    /// The matches: a feature of the first and one of the second photograph.
    pub matches: Vec<[u32; 2]>,
    /// Of each match, whether the geometry confirms it.
    pub inlier: Vec<bool>,
    /// What kind of two views these are.
    pub configuration: Configuration,
    /// The fundamental matrix, row by row, with `x_bᵀ F x_a = 0` for the points of inliers.
    pub fundamental: Option<[f64; 9]>,
    /// The essential matrix, likewise for normalised points.
    pub essential: Option<[f64; 9]>,
    /// The homography from the first to the second photograph.
    pub homography: Option<[f64; 9]>,
}

impl VerifiedPair {
    /// The matches that the geometry confirms.
    pub fn inliers(&self) -> impl Iterator<Item = [u32; 2]> {
        self.matches.iter().zip(&self.inlier).filter(|(_, inlier)| **inlier).map(|(m, _)| *m)
    }
}

/// What came of a pair.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    /// It was not tried: one of its photographs cannot be read.
    Unreadable,
    /// The photographs have nothing in common.
    Nothing,
    /// They have: the pair as it stands in the file.
    Verified(Vec<u8>),
}

impl Outcome {
    pub(super) fn verified(pair: &VerifiedPair) -> Self {
        Self::Verified(encode_pair(pair))
    }
}

/// What a tile's file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tile {
    /// Pairs that were tried: those of photographs that can be read.
    pub(super) tried: u32,
    /// Those that have something in common, in their order.
    pub(super) verified: Vec<VerifiedPair>,
}

/// The head of a tile's file, which begins with the number of pairs that were tried.
pub(super) fn head_of(outcomes: &[Outcome]) -> [[u8; 4]; 2] {
    let tried = outcomes.iter().filter(|outcome| **outcome != Outcome::Unreadable).count();
    [tried, verified_of(outcomes).count()].map(|n| (n as u32).to_le_bytes())
}

/// What follows the head: the verified pairs, in their order.
pub(super) fn verified_of(outcomes: &[Outcome]) -> impl Iterator<Item = &[u8]> {
    outcomes.iter().filter_map(|outcome| match outcome {
        Outcome::Verified(pair) => Some(&pair[..]),
        Outcome::Unreadable | Outcome::Nothing => None,
    })
}

fn encode_pair(pair: &VerifiedPair) -> Vec<u8> {
    let models = [pair.fundamental, pair.essential, pair.homography];
    let count = pair.matches.len();
    let mut bytes = Vec::with_capacity(18 + 3 * 72 + count * 8 + count.div_ceil(8));
    let inliers = pair.inlier.iter().filter(|inlier| **inlier).count();
    for n in [pair.a, pair.b, count, inliers] {
        bytes.extend_from_slice(&(n as u32).to_le_bytes());
    }
    let bits = (0..3).filter(|i| models[*i].is_some()).fold(0, |bits, i| bits | 1 << i);
    bytes.extend_from_slice(&[pair.configuration.code() as u8, bits]);
    models.iter().flatten().flatten().for_each(|v| bytes.extend_from_slice(&v.to_le_bytes()));
    pair.matches.iter().flatten().for_each(|v| bytes.extend_from_slice(&v.to_le_bytes()));
    let byte = |bits: &[bool]| bits.iter().rev().fold(0_u8, |byte, bit| byte << 1 | u8::from(*bit));
    bytes.extend(pair.inlier.chunks(8).map(byte));
    bytes
}

impl Tile {
    /// `None` where the bytes are none of a tile of so many photographs.
    pub(super) fn decode(bytes: &[u8], photographs: usize) -> Option<Self> {
        let mut fields = Fields(bytes);
        let (tried, count) = (fields.u32()?, fields.u32()?);
        let mut verified = Vec::new();
        for _ in 0..count {
            let pair = decode_pair(&mut fields)?;
            if pair.a >= pair.b || pair.b >= photographs {
                return None;
            }
            verified.push(pair);
        }
        fields.0.is_empty().then_some(Self { tried, verified })
    }
}

fn decode_pair(fields: &mut Fields<'_>) -> Option<VerifiedPair> {
    let [a, b, count, inliers] =
        [fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?].map(|n| n as usize);
    let configuration = Configuration::from_code(fields.u8()?.into())?;
    let bits = fields.u8()?;
    let mut model = |bit: u8| -> Option<Option<[f64; 9]>> {
        if bits >> bit & 1 == 0 {
            return Some(None);
        }
        let values = (0..9).map(|_| fields.f64()).collect::<Option<Vec<f64>>>()?;
        Some(values.try_into().ok())
    };
    let [fundamental, essential, homography] = [model(0)?, model(1)?, model(2)?];
    let mut rows = Fields(fields.take(count.checked_mul(8)?)?);
    let matches = (0..count).map(|_| Some([rows.u32()?, rows.u32()?])).collect::<Option<Vec<_>>>()?;
    let flags = fields.take(count.div_ceil(8))?;
    let inlier: Vec<bool> = (0..count).map(|i| flags[i / 8] >> (i % 8) & 1 == 1).collect();
    if inlier.iter().filter(|inlier| **inlier).count() != inliers {
        return None;
    }
    Some(VerifiedPair { a, b, matches, inlier, configuration, fundamental, essential, homography })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_read_as_they_were_written() {
        let pair = |a, b, n: u32, fundamental| VerifiedPair {
            a,
            b,
            matches: (0..n).map(|i| [i, 3 * i]).collect(),
            inlier: (0..n).map(|i| i % 3 == 0).collect(),
            configuration: Configuration::Uncalibrated,
            fundamental,
            essential: None,
            homography: Some([0.5; 9]),
        };
        let verified = vec![pair(0, 3, 17, Some([1.5; 9])), pair(2, 4, 8, None)];
        let mut outcomes = vec![Outcome::Nothing; 7];
        outcomes.extend(verified.iter().map(Outcome::verified));
        outcomes.push(Outcome::Unreadable);
        let mut bytes = head_of(&outcomes).concat();
        verified_of(&outcomes).for_each(|pair| bytes.extend_from_slice(pair));
        let tile = Tile { tried: 9, verified };
        assert_eq!(Tile::decode(&bytes, 5), Some(tile.clone()), "as written");
        assert_eq!(Tile::decode(&bytes, 4), None, "a photograph that is not there");
        assert!((0..bytes.len()).all(|end| Tile::decode(&bytes[..end], 5).is_none()), "cut off");
        assert_eq!(tile.verified[0].inliers().count(), 6, "those confirmed");
    }
}
