//! Whether the verified pairs of a collection connect its photographs.
//!
//! A reconstruction needs pairs: photographs without a pair are lost, groups without a pair between them become
//! separate models, and if a single pair joins two groups, an error of this pair distorts the whole model. Pairs with
//! very few inliers among their matches were likely verified by chance, as are pages of different text in one font.

use super::{Assessment, Reason, Verdict};
use crate::error::counted;
use serde::Serialize;

/// The share of the photographs outside the largest group.
const OUTSIDE: [f64; 2] = [0.02, 0.3];
/// The share of the photographs that match no other, and of the files that cannot be read.
const ALONE: [f64; 2] = [0.02, 0.3];
/// The number of pairs that alone join two groups.
const BRIDGES: [f64; 2] = [1.0, f64::INFINITY];

/// A verified pair is weak if a smaller share of its matches are inliers. Pages of different text in one font have 3 to
/// 6 %, photographs of one scene 50 % or more.
const WEAK: f64 = 0.1;
/// The share of the pairs that are weak.
const MANY_WEAK: [f64; 2] = [0.1, 0.5];

/// The share of the pairs whose camera only turned, which give no depth.
const TURNED: [f64; 2] = [0.5, 0.9];

/// A verified pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairCounts {
    /// The indices of its photographs.
    pub ends: [usize; 2],
    /// The number of its matches.
    pub matches: usize,
    /// How many of them agree with its model.
    pub inliers: usize,
    /// Whether the camera only turned between them.
    pub turned: bool,
}

/// What was measured about a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CollectionEvidence {
    /// Photographs.
    pub photographs: usize,
    /// Sizes of the groups of two or more photographs that pairs connect, the largest first.
    pub groups: Vec<usize>,
    /// Photographs that cannot be read.
    pub unreadable: usize,
    /// Readable photographs that match no other.
    pub alone: usize,
    /// Pairs without which a group falls into two of at least two photographs each.
    pub bridges: Vec<[usize; 2]>,
    /// Verified pairs.
    pub pairs: usize,
    /// Verified pairs in which fewer than a tenth of the matches agree.
    pub weak: usize,
    /// Verified pairs between which the camera only turned.
    pub turned: usize,
}

impl CollectionEvidence {
    /// Measures a number of photographs, some of them unreadable, and the verified pairs among them.
    pub fn of(photographs: usize, unreadable: usize, pairs: &[PairCounts]) -> Self {
        let mut neighbours = vec![vec![]; photographs];
        for (edge, &PairCounts { ends: [a, b], .. }) in pairs.iter().enumerate() {
            neighbours[a].push((b, edge));
            neighbours[b].push((a, edge));
        }
        let (mut groups, mut bridges, mut alone) = (vec![], vec![], 0);
        for (size, below) in groups_and_bridges(&neighbours) {
            match size {
                1 => alone += 1,
                _ => groups.push(size),
            }
            let joins = |(edge, part): (usize, usize)| (part.min(size - part) >= 2).then(|| pairs[edge].ends);
            bridges.extend(below.into_iter().filter_map(joins));
        }
        groups.sort_unstable_by(|p, q| q.cmp(p));
        bridges.sort_unstable();
        let is_weak = |pair: &&PairCounts| (pair.inliers as f64) < WEAK * pair.matches as f64;
        let weak = pairs.iter().filter(is_weak).count();
        let turned = pairs.iter().filter(|pair| pair.turned).count();
        // An unreadable photograph has no pair.
        let alone = alone - unreadable.min(alone);
        Self { photographs, unreadable, groups, alone, bridges, pairs: pairs.len(), weak, turned }
    }

    /// The verdict.
    pub fn assess(&self) -> Assessment {
        let read = self.photographs - self.unreadable;
        let all = read.max(1) as f64;
        let largest = self.groups.first().copied().unwrap_or(0);
        let outside = (read - largest) as f64 / all;
        let alone = self.alone as f64 / all;
        let of_pairs = |count: usize| count as f64 / self.pairs.max(1) as f64;
        let [weak, turned, pairs] = [self.weak, self.turned, self.pairs].map(counted);
        let more = "Photographs from between may join them, or more pairs (`--pairs exhaustive`), if not all were tried";
        Assessment::of(vec![
            Reason {
                measure: "groups",
                value: self.groups.len() as f64,
                expected: "one group of all photographs".into(),
                verdict: Verdict::above(outside, OUTSIDE),
                text: match (largest, self.groups.len()) {
                    (n, 1) if n == read => format!("all {} photographs are connected", counted(n)),
                    (_, 0) => "no two photographs are connected".into(),
                    (n, _) => {
                        let [n, all] = [n, read].map(counted);
                        format!("{n} of {all} photographs are in the largest connected group")
                    }
                },
                next: Some(more.into()),
            },
            Reason::share_above(
                "alone",
                alone,
                ALONE,
                match self.alone {
                    0 => "each matches another".into(),
                    1 => "1 photograph matches no other".into(),
                    n => format!("{} photographs match no other", counted(n)),
                },
                "The page lists them; blurred ones and other scenes are best left out",
            ),
            Reason {
                measure: "bridges",
                value: self.bridges.len() as f64,
                expected: "none".into(),
                verdict: Verdict::above(self.bridges.len() as f64, BRIDGES),
                text: match self.bridges.len() {
                    0 => "no pair alone joins two groups".into(),
                    1 => "one pair alone joins two groups".into(),
                    n => format!("{} pairs each join two groups alone", counted(n)),
                },
                next: Some(more.into()),
            },
            Reason::share_above(
                "weak pairs",
                of_pairs(self.weak),
                MANY_WEAK,
                format!("in {weak} of {pairs} verified pairs fewer than a tenth of the matches agree"),
                "Do they show one scene? `tiepoint match A B` judges a pair; a lower `--ratio` and more `--min-inliers` verify fewer",
            ),
            Reason::share_above(
                "turned",
                of_pairs(self.turned),
                TURNED,
                format!("in {turned} of {pairs} verified pairs the camera only turned"),
                "A reconstruction needs photographs from several places",
            ),
            Reason::share_above(
                "unreadable",
                self.unreadable as f64 / self.photographs.max(1) as f64,
                ALONE,
                match self.unreadable {
                    0 => "every file can be read".into(),
                    1 => "1 photograph cannot be read".into(),
                    n => format!("{} photographs cannot be read", counted(n)),
                },
                "Replace these files or leave them out; `tiepoint collect status` names them",
            ),
        ])
    }
}

/// The size of each group and its bridges, each with the size of the subtree that it leads to: a depth-first search for
/// edges whose removal disconnects a graph (Tarjan 1974), without recursion.
fn groups_and_bridges(neighbours: &[Vec<(usize, usize)>]) -> Vec<(usize, Vec<(usize, usize)>)> {
    // The order in which photographs were reached, and the earliest photograph that the descendants of each reach
    // without the edge that led to it.
    let (mut order, mut low) = (vec![usize::MAX; neighbours.len()], vec![0; neighbours.len()]);
    let (mut found, mut next) = (vec![], 0);
    for root in 0..neighbours.len() {
        if order[root] != usize::MAX {
            continue;
        }
        let (start, mut bridges) = (next, vec![]);
        // A photograph, the edge that led to it, and its next neighbour.
        let mut path = vec![(root, usize::MAX, 0)];
        while let Some((at, by, tried)) = path.last_mut() {
            let (at, by) = (*at, *by);
            if order[at] == usize::MAX {
                (order[at], low[at]) = (next, next);
                next += 1;
            }
            let Some(&(to, edge)) = neighbours[at].get(*tried) else {
                path.pop();
                if let Some(&(above, ..)) = path.last() {
                    low[above] = low[above].min(low[at]);
                    if low[at] > order[above] {
                        bridges.push((by, next - order[at]));
                    }
                }
                continue;
            };
            *tried += 1;
            if order[to] == usize::MAX {
                path.push((to, edge, 0));
            } else if edge != by {
                low[at] = low[at].min(order[to]);
            }
        }
        found.push((next - start, bridges));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_bridges_and_photographs_alone() {
        let triangle = |at: usize| [[at, at + 1], [at + 1, at + 2], [at, at + 2]];
        let two = [triangle(0), triangle(3)].concat();
        let joined = [&two[..], &[[2, 3]]].concat();
        let twice = [&joined[..], &[[0, 5]]].concat();
        let leaf = [&triangle(0)[..], &[[2, 3]]].concat();
        for (name, count, pairs, groups, alone, bridges, verdict) in [
            ("nothing", 0, vec![], vec![], 0, vec![], Verdict::Good),
            ("three alone", 3, vec![], vec![], 3, vec![], Verdict::Poor),
            ("one group", 6, twice, vec![6], 0, vec![], Verdict::Good),
            ("a bridge", 6, joined.clone(), vec![6], 0, vec![[2, 3]], Verdict::Doubtful),
            ("two groups", 6, two, vec![3, 3], 0, vec![], Verdict::Poor),
            ("a leaf is no group", 4, leaf, vec![4], 0, vec![], Verdict::Good),
            ("one alone of seven", 7, joined, vec![6], 1, vec![[2, 3]], Verdict::Doubtful),
        ] {
            let pairs: Vec<_> = pairs
                .into_iter()
                .map(|ends| PairCounts { ends, matches: 40, inliers: 30, turned: false })
                .collect();
            let found = CollectionEvidence::of(count, 0, &pairs);
            let (photographs, pairs) = (count, pairs.len());
            let expected =
                CollectionEvidence { photographs, groups, alone, bridges, pairs, ..Default::default() };
            assert_eq!(found, expected, "{name}");
            assert_eq!(found.assess().verdict, verdict, "{name}: {}", found.assess());
        }
        let pair =
            |a: usize, inliers: usize| PairCounts { ends: [a, a + 1], matches: 900, inliers, turned: false };
        for (inliers, verdict) in
            [([400; 3], Verdict::Good), ([400, 400, 30], Verdict::Doubtful), ([30; 3], Verdict::Poor)]
        {
            let pairs = [
                pair(0, inliers[0]),
                pair(1, inliers[1]),
                PairCounts { ends: [0, 2], ..pair(0, inliers[2]) },
            ];
            let found = CollectionEvidence::of(3, 0, &pairs).assess();
            assert_eq!(found.verdict, verdict, "{found}");
        }
        let turned = [0, 1].map(|a| PairCounts { turned: true, ..pair(a, 400) });
        let found = CollectionEvidence::of(3, 0, &turned).assess();
        assert_eq!((found.verdict, found.reasons[0].measure), (Verdict::Poor, "turned"), "{found}");
        let found = CollectionEvidence::of(5, 2, &[pair(0, 400), pair(1, 400)]);
        assert_eq!((found.alone, found.groups.clone()), (0, vec![3]), "two of five cannot be read");
        let reasons = found.assess().reasons;
        assert_eq!(reasons[0].measure, "unreadable", "{reasons:?}");
        assert!(reasons[1..].iter().all(|reason| reason.verdict == Verdict::Good), "{reasons:?}");
        // A chain of photographs too long for recursion.
        let line: Vec<_> =
            (0..99_999).map(|i| PairCounts { ends: [i, i + 1], ..PairCounts::default() }).collect();
        assert_eq!(CollectionEvidence::of(100_000, 0, &line).bridges.len(), 99_997, "all but both ends");
    }
}
