//! Work over very many matches in parts, which all threads share. The parts and the order of every addition depend only
//! on the number of matches.

use crate::device::Cpu;
use std::ops::Range;

/// Up to this many matches are one part.
pub(super) const ONE: usize = 16_384;
/// More matches are cut into parts of this many.
const PART: usize = 4096;

/// The results of `part` for every part of `n` matches, in their order.
pub(super) fn parts_of<T: Send>(cpu: &Cpu, n: usize, part: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    match n <= ONE {
        true => vec![part(0..n)],
        false => cpu.map(n.div_ceil(PART), |i| part(i * PART..n.min((i + 1) * PART))),
    }
}

/// Sums over the matches at `indices`, to which `add` adds one: those of the parts, added in their order.
pub(super) fn sums<const N: usize>(
    cpu: &Cpu,
    indices: &[usize],
    add: impl Fn([f64; N], usize) -> [f64; N] + Sync,
) -> [f64; N] {
    let one = |part: Range<usize>| indices[part].iter().fold([0.0; N], |sum, &i| add(sum, i));
    let parts = parts_of(cpu, indices.len(), one).into_iter();
    parts.reduce(|sum, part| std::array::from_fn(|i| sum[i] + part[i])).unwrap_or([0.0; N])
}

/// The lists of all parts as one.
pub(super) fn joined<T: Copy + Send>(
    cpu: &Cpu,
    n: usize,
    part: impl Fn(Range<usize>) -> Vec<T> + Sync,
) -> Vec<T> {
    let mut parts = parts_of(cpu, n, part);
    match parts.len() {
        1 => parts.swap_remove(0),
        _ => parts.concat(),
    }
}
