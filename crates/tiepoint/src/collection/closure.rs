//! One round of transitive closure: two photographs with a verified partner in common are a pair to try.

use super::pairs::PairSet;
use crate::Result;
use crate::device::Cpu;

/// The pairs that `verified` pairs suggest and that have not been `tried`.
pub(super) fn suggested(
    photographs: usize,
    verified: &[[u32; 2]],
    tried: &PairSet,
    cpu: &Cpu,
) -> Result<PairSet> {
    let mut partners = vec![Vec::new(); photographs];
    for &[a, b] in verified {
        partners[a as usize].push(b);
        partners[b as usize].push(a);
    }
    let of = |i: usize| -> Result<Vec<[u32; 2]>> {
        let beyond = partners[i].iter().flat_map(|&j| &partners[j as usize]).copied();
        let mut beyond: Vec<u32> = beyond.filter(|&k| k > i as u32).collect();
        beyond.sort_unstable();
        beyond.dedup();
        Ok(beyond.into_iter().map(|k| [i as u32, k]).filter(|pair| !tried.contains(*pair)).collect())
    };
    Ok(PairSet::List(cpu.try_map_task("closure", photographs, of)?.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_of_a_partner_are_suggested() {
        let cpu = Cpu::sequential();
        let verified = [[0, 1], [1, 2], [2, 3], [4, 5]];
        let found = suggested(6, &verified, &PairSet::list(verified.to_vec()), &cpu).unwrap();
        assert_eq!(found, PairSet::list(vec![[0, 2], [1, 3]]), "pairs with exactly one partner between them");
        let beyond_all = suggested(6, &verified, &PairSet::All, &cpu).unwrap();
        assert_eq!(beyond_all, PairSet::list(vec![]), "all were tried");
    }
}
