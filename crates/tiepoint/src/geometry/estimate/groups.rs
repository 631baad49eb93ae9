//! Items in groups: threads group chunks of them side by side, and a group is gathered from all chunks when it is
//! needed.

use crate::device::Cpu;

/// Items that a thread groups at a time.
pub(super) const CHUNK: usize = 4096;

/// Items in numbered groups.
#[derive(Clone, Debug)]
pub(super) struct Groups<T>(Vec<Chunk<T>>);

/// The items of a chunk, group by group.
#[derive(Clone, Debug)]
struct Chunk<T> {
    items: Vec<T>,
    /// Where each group ends.
    ends: Vec<usize>,
}

impl<T: Copy + Send> Groups<T> {
    /// `item` gives the group, below `groups`, and the item of each number below `n`.
    pub(super) fn new(n: usize, groups: usize, cpu: &Cpu, item: impl Fn(usize) -> (usize, T) + Sync) -> Self {
        let chunk = |c: usize| Chunk::new((c * CHUNK..n.min((c + 1) * CHUNK)).map(&item).collect(), groups);
        Self(cpu.map(n.div_ceil(CHUNK), chunk))
    }

    /// The items of a group, in the order of their numbers.
    pub(super) fn of(&self, group: usize) -> impl Iterator<Item = T> {
        self.0.iter().flat_map(move |chunk| {
            let start = if group == 0 { 0 } else { chunk.ends[group - 1] };
            chunk.items[start..chunk.ends[group]].iter().copied()
        })
    }

    /// How many items a group has.
    pub(super) fn len_of(&self, group: usize) -> usize {
        let start = |chunk: &Chunk<T>| if group == 0 { 0 } else { chunk.ends[group - 1] };
        self.0.iter().map(|chunk| chunk.ends[group] - start(chunk)).sum()
    }
}

impl<T: Copy> Chunk<T> {
    fn new(found: Vec<(usize, T)>, groups: usize) -> Self {
        let mut ends = vec![0; groups];
        found.iter().for_each(|(group, _)| ends[*group] += 1);
        let mut next = 0;
        for end in &mut ends {
            (next, *end) = (next + *end, next);
        }
        // Each now stands where its group starts, and moves to its end.
        let mut items: Vec<T> = found.iter().map(|(_, item)| *item).collect();
        for (group, item) in found {
            items[ends[group]] = item;
            ends[group] += 1;
        }
        Self { items, ends }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_in_its_group_in_order() {
        for n in [0, 1, CHUNK, 3 * CHUNK + 17] {
            for threads in [1, 3] {
                let cpu = Cpu::with_threads(threads).unwrap();
                let groups = Groups::new(n, 7, &cpu, |i| ((i * i) % 7, i as u32));
                for group in 0..7 {
                    let expected: Vec<u32> =
                        (0..n).filter(|i| (i * i) % 7 == group).map(|i| i as u32).collect();
                    assert_eq!(groups.of(group).collect::<Vec<_>>(), expected, "group {group} of {n}");
                    assert_eq!(groups.len_of(group), expected.len(), "group {group} of {n}");
                }
            }
        }
    }
}
