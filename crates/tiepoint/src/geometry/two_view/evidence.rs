//! Which matches to draw first: those whose keypoints imply the same scale and rotation as many others.
//!
//! Every match of keypoints with scale and orientation implies how B is scaled and turned relative to A. True matches
//! of a pair mostly imply about the same, wrong ones anything (the vote of Lowe 2004, section 7.3, without the place;
//! cf. "vote and verify", Schönberger, Price, Sattler, Frahm, Pollefeys 2016). Each match votes for a bin of half an
//! octave and 30°; its support is the number of votes in its bin and the eight around it. Votes are whole numbers, and
//! bins are found by comparisons only.

use crate::geometry::Correspondence;

/// How B is scaled and turned relative to A, by the keypoints of one match.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Scale of the keypoint in B divided by that in A, above 0; any other value means unknown.
    pub scale: f32,
    /// Angle of the keypoint in B less that in A, radians.
    pub turn: f32,
}

/// Bins of half an octave: a ratio of scales from 1/32 to 32, the outer ones open.
const SCALES: usize = 20;
/// 2^¼.
const QUARTER_OCTAVE: f64 = 1.189_207_115_002_721;
/// Bins of 30°.
const TURNS: usize = 12;

impl Evidence {
    /// The bins of scale and turn; `None` where they are not known.
    fn bins(&self) -> Option<[usize; 2]> {
        let (scale, turn) = (f64::from(self.scale), f64::from(self.turn));
        if !(scale > 0.0 && scale.is_finite() && turn.abs() < 1e6) {
            return None;
        }
        // The edges are a quarter of an octave off the powers of √2, around which scales gather.
        let mut edge = QUARTER_OCTAVE / 32.0;
        let mut bin = 0;
        while bin + 1 < SCALES && scale >= edge {
            bin += 1;
            edge *= std::f64::consts::SQRT_2;
        }
        let circle = turn / std::f64::consts::TAU;
        let part = circle - circle.floor();
        Some([bin, ((part * TURNS as f64) as usize).min(TURNS - 1)])
    }
}

/// The support of every match; equal for all without evidence.
fn support(evidence: &[Evidence], matches: usize) -> Vec<u32> {
    let bins: Vec<_> = evidence.iter().map(Evidence::bins).collect();
    let mut votes = [[0_u32; TURNS]; SCALES];
    bins.iter().flatten().for_each(|&[s, t]| votes[s][t] += 1);
    let around = |[s, t]: [usize; 2]| -> u32 {
        let scales = s.saturating_sub(1)..=(s + 1).min(SCALES - 1);
        scales.map(|s| [TURNS - 1, 0, 1].map(|d| votes[s][(t + d) % TURNS]).iter().sum::<u32>()).sum()
    };
    match evidence.is_empty() {
        true => vec![0; matches],
        false => bins.iter().map(|b| b.map_or(0, around)).collect(),
    }
}

/// The matches at `usable`, as positions in it, best first, and whether they differ at all: by support, then quality.
pub(super) fn order(matches: &[Correspondence], evidence: &[Evidence], usable: &[usize]) -> (Vec<u32>, bool) {
    let support = support(evidence, matches.len());
    let rank = |(p, i): (u32, &usize)| (support[*i], matches[*i].quality, p);
    let mut ranks: Vec<(u32, f64, u32)> = (0..).zip(usable).map(rank).collect();
    ranks.sort_unstable_by(|(s, a, p), (t, b, q)| t.cmp(s).then(b.total_cmp(a)).then(p.cmp(q)));
    let alike = ranks.first().zip(ranks.last()).is_none_or(|(p, q)| (p.0, p.1) == (q.0, q.1));
    (ranks.iter().map(|(.., p)| *p).collect(), !alike)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_that_agree_in_scale_and_turn_come_first() {
        let matches = vec![Correspondence::default(); 60];
        // 25 matches of scale 2 and turn ±3.1 rad, which are neighbours; the rest have any scale and turn.
        let evidence: Vec<_> = (0..60_u8)
            .map(|i| match i % 12 < 5 {
                true => Evidence {
                    scale: 1.9 + 0.01 * f32::from(i % 20),
                    turn: if i % 2 == 0 { 3.1 } else { -3.1 },
                },
                false => Evidence { scale: 0.02 * f32::from(i) + 0.01, turn: 1.7 * f32::from(i) },
            })
            .collect();
        let usable: Vec<usize> = (0..60).collect();
        let (order, differ) = order(&matches, &evidence, &usable);
        assert!(differ, "not all alike");
        let first = order[..20].iter().filter(|&&p| p % 12 < 5).count();
        assert!(first >= 18, "{first} of the first 20 agree: {order:?}");
    }

    #[test]
    fn any_scale_and_turn_has_a_valid_bin_or_none() {
        for scale in [f32::NAN, 0.0, -1.0, f32::INFINITY] {
            assert_eq!(Evidence { scale, turn: 0.0 }.bins(), None, "{scale}");
        }
        assert_eq!(Evidence { scale: 1.0, turn: f32::NAN }.bins(), None, "not a number");
        for (scale, turn) in [(1e-30, -7.0), (1e30, 7.0), (1.0, -1e-9), (1.0, std::f32::consts::TAU)] {
            let [s, t] = Evidence { scale, turn }.bins().unwrap();
            assert!(s < SCALES && t < TURNS, "{scale} {turn}: {s} {t}");
        }
        let bin = |scale| Evidence { scale, turn: 0.0 }.bins().unwrap()[0];
        assert_eq!(bin(2.83) - bin(1.0), 3, "three half octaves");
    }

    #[test]
    fn without_evidence_quality_decides() {
        let quality = |quality| Correspondence { quality, ..Default::default() };
        let matches = [quality(1.0), quality(3.0), quality(2.0), quality(3.0)];
        assert_eq!(order(&matches, &[], &[0, 1, 2, 3]), (vec![1, 3, 2, 0], true));
        assert_eq!(order(&matches, &[], &[1, 3]), (vec![0, 1], false), "alike");
    }
}
