//! Pairs that were not tried, of photographs that have a verified partner in common: one round of transitive closure.

use super::pairs::PairSet;

/// The pairs that `verified` pairs suggest and that are not among the `tried`.
pub(super) fn suggested(photographs: usize, verified: &[[u32; 2]], tried: &PairSet) -> PairSet {
    let mut partners = vec![Vec::new(); photographs];
    for &[a, b] in verified {
        partners[a as usize].push(b);
        partners[b as usize].push(a);
    }
    let mut pairs = Vec::new();
    for i in 0..photographs as u32 {
        let mut beyond: Vec<u32> = partners[i as usize]
            .iter()
            .flat_map(|&j| &partners[j as usize])
            .copied()
            .filter(|&k| k > i)
            .collect();
        beyond.sort_unstable();
        beyond.dedup();
        pairs.extend(beyond.into_iter().map(|k| [i, k]).filter(|pair| !tried.contains(*pair)));
    }
    PairSet::list(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_of_a_partner_are_suggested() {
        let verified = [[0, 1], [1, 2], [2, 3], [4, 5]];
        let found = suggested(6, &verified, &PairSet::list(verified.to_vec()));
        assert_eq!(found, PairSet::list(vec![[0, 2], [1, 3]]), "over one partner, and no further");
        assert_eq!(suggested(6, &verified, &PairSet::All), PairSet::list(vec![]), "all were tried");
    }
}
