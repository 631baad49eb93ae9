//! The search on a GPU that has f64: `consensus.cl`, a work group a pair. What it finds is what the CPU finds, bit for
//! bit: the same samples, matches judged by the same operations, sums in the same order.

use super::improve::{EPIPOLAR, LANES, TRANSFER};
use super::{Budget, Found, FoundAll, Kind, Prepared, SHARES, five_point};
use crate::Result;
use crate::device::Cpu;
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::geometry::matrix::flat;
use tiepoint_gpu::KernelSource;

/// 64-bit words of what is found of a pair, and numbers that a pair has.
const FOUND: usize = 19;
const NUMBERS: usize = 19;

/// Matches of the pairs that are searched together, unless one has more: 44 bytes each on the device.
const MOST_MATCHES: usize = 1 << 21;
/// And pairs.
const MOST_PAIRS: usize = 1 << 11;

tiepoint_gpu::kernel! {
    /// The search for one kind of model, a group a pair.
    unsafe kernel search_consensus(groups) = Search {
        write found: u64 as Found [groups[0] * FOUND as i128],
        /// Models to start from; without inliers none.
        read starts: u64 as Found [groups[0] * FOUND as i128],
        read pairs: u32 as Pair [groups[0] * 4],
        read keys: u64 [groups[0]],
        read all_numbers: u64 as f64 [groups[0] * NUMBERS as i128],
        read all_places: u64 as f64 [matches * 4],
        read order: u32 [matches],
        read until: u64 [matches],
        read budget: u32 [SHARES as i128 + 1],
    } {
        /// Of all pairs.
        matches: u64,
    }
}

/// The kernel for one kind of model. Registers bound to seven groups a multiprocessor made unrelated pairs of known focal
/// lengths 1.4 times slower on an H200 (2026-11-22).
pub(in crate::geometry::two_view) fn source(kind: Kind) -> KernelSource {
    let (number, sums) = match kind {
        Kind::Homography => (0, TRANSFER),
        Kind::Fundamental => (1, EPIPOLAR),
        Kind::Essential => (2, EPIPOLAR),
    };
    let start = KernelSource::new("two-view consensus")
        .define("HOMOGRAPHY", 0)
        .define("FUNDAMENTAL", 1)
        .define("ESSENTIAL", 2)
        .define("KIND", number)
        .define("ROWS", kind.sample())
        .define("LANES", LANES)
        .define("SUMS", sums)
        .define("SHARES", SHARES)
        .define("SMALLEST", format_args!("{:e}", f64::MIN_POSITIVE))
        .text(include_str!("../../matrix.h"))
        .text(include_str!("../../linear.h"));
    let solver = match kind {
        Kind::Homography => start,
        Kind::Fundamental => start.text(include_str!("../../estimate/seven_point.h")),
        Kind::Essential => five_point::for_kernels(start)
            .text(include_str!("../../estimate/seven_point.h"))
            .text(include_str!("five_point.h")),
    };
    solver
        .text(include_str!("agreement.h"))
        .text(include_str!("improve.h"))
        .kernel::<Search<'_>>([LANES as u32, 1])
        .text(include_str!("consensus.cl"))
}

/// Searches for every kind of model in every pair, as the CPU does in each.
///
/// # Errors
/// [`crate::Error::Unsupported`] by a device without f64, [`crate::Error::Memory`] by one with too little memory.
pub(in crate::geometry::two_view) fn search_all(
    gpu: &Gpu,
    prepared: &[&Prepared],
    budget: &Budget,
    cpu: &Cpu,
) -> Result<Vec<FoundAll>> {
    gpu.require_f64()?;
    let mut parts = Vec::new();
    let mut rest = prepared;
    while !rest.is_empty() {
        let mut matches = 0;
        let fits = |p: &&&Prepared| {
            matches += p.len();
            matches <= MOST_MATCHES
        };
        let count = rest.iter().take(MOST_PAIRS).take_while(fits).count().max(1);
        let (part, later) = rest.split_at(count);
        parts.push(part);
        rest = later;
    }
    // One thread uploads a part while the device searches another's.
    let found = cpu.map(parts.len(), |i| Part::new(gpu, parts[i], budget, cpu)?.search());
    Ok(found.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Pairs that are searched together.
struct Part<'p> {
    gpu: &'p Gpu,
    prepared: &'p [&'p Prepared],
    budget: &'p Budget,
    cpu: &'p Cpu,
    /// Where the matches of each pair begin, and how many there are.
    firsts: Vec<usize>,
    matches: usize,
    places: Buffer<u64>,
    order: Buffer<u32>,
}

impl<'p> Part<'p> {
    fn new(gpu: &'p Gpu, prepared: &'p [&'p Prepared], budget: &'p Budget, cpu: &'p Cpu) -> Result<Self> {
        let mut matches = 0;
        let mut firsts = Vec::with_capacity(prepared.len());
        for p in prepared {
            firsts.push(matches);
            matches += p.len();
        }
        let mut places = Vec::with_capacity(4 * matches);
        let mut order = Vec::with_capacity(matches);
        for p in prepared {
            (0..p.len()).for_each(|i| places.extend_from_slice(&p.points.places(i).map(f64::to_bits)));
            order.extend_from_slice(&p.order);
        }
        let (places, order) = (gpu.upload(&places)?, gpu.upload(&order)?);
        Ok(Self { gpu, prepared, budget, cpu, firsts, matches, places, order })
    }

    fn search(&self) -> Result<Vec<FoundAll>> {
        let all: Vec<usize> = (0..self.prepared.len()).collect();
        let known: Vec<usize> = all.iter().copied().filter(|&i| self.prepared[i].rays.is_some()).collect();
        let mut found = vec![FoundAll::default(); self.prepared.len()];
        let mut starts = vec![None; all.len()];
        for (&i, (essential, drawn)) in known.iter().zip(self.of_kind(Kind::Essential, &known, &[])?) {
            found[i].essential = essential;
            found[i].iterations += drawn;
            starts[i] = essential;
        }
        for (i, (fundamental, drawn)) in
            self.of_kind(Kind::Fundamental, &all, &starts)?.into_iter().enumerate()
        {
            found[i].fundamental = fundamental;
            found[i].iterations += drawn;
        }
        for (i, (homography, drawn)) in self.of_kind(Kind::Homography, &all, &[])?.into_iter().enumerate() {
            found[i].homography = homography;
            found[i].iterations += drawn;
        }
        Ok(found)
    }

    /// The best model of a kind, and the samples drawn, of the pairs `which`.
    fn of_kind(
        &self,
        kind: Kind,
        which: &[usize],
        starts: &[Option<Found>],
    ) -> Result<Vec<(Option<Found>, usize)>> {
        if which.is_empty() {
            return Ok(Vec::new());
        }
        let mut until = vec![0; self.matches];
        let (mut pairs, mut keys, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        let samplers = self.cpu.map(which.len(), |n| {
            let prepared = self.prepared[which[n]];
            let most = self.budget.most(kind, prepared.len());
            (most, prepared.sampler(kind, most))
        });
        for (&i, (most, sampler)) in which.iter().zip(samplers) {
            let (prepared, first) = (self.prepared[i], self.firsts[i]);
            let grades = sampler.until();
            until[first..first + grades.len()].copy_from_slice(grades);
            pairs.extend([first as u32, prepared.len() as u32, grades.len() as u32, most]);
            keys.push(sampler.key());
            numbers.push(prepared.limit().to_bits());
            let rays = prepared.rays.as_ref().map_or([0.0; 18], |rays| {
                let (a, b) = (flat(&rays.ray_from_a), flat(&rays.ray_from_b));
                std::array::from_fn(|i| if i < 9 { a[i] } else { b[i - 9] })
            });
            numbers.extend(rays.map(f64::to_bits));
        }
        let mut words = vec![0; which.len() * FOUND];
        for (words, start) in words.chunks_exact_mut(FOUND).zip(starts) {
            start.iter().for_each(|start| write(start, words));
        }
        let gpu = self.gpu;
        let found = gpu.buffer::<u64>(words.len())?;
        let search = Search {
            found: &found,
            starts: &gpu.upload(&words)?,
            pairs: &gpu.upload(&pairs)?,
            keys: &gpu.upload(&keys)?,
            all_numbers: &gpu.upload(&numbers)?,
            all_places: &self.places,
            order: &self.order,
            until: &gpu.upload(&until)?,
            budget: &gpu.upload(self.budget.table(kind))?,
            matches: self.matches as u64,
        };
        let program = gpu.program(&source(kind))?;
        let mut commands = Commands::new();
        commands.stage("verify");
        commands.launch(&program.kernel::<Search<'_>>()?, [which.len(), 1, 1], search)?;
        gpu.run(&commands)?;
        found.read(0, &mut words)?;
        Ok(words.chunks_exact(FOUND).map(|words| read(kind, words)).collect())
    }
}

fn write(found: &Found, words: &mut [u64]) {
    let values = flat(&found.model).into_iter().chain(flat(&found.essential));
    words.iter_mut().zip(values).for_each(|(word, value)| *word = value.to_bits());
    words[FOUND - 1] = u64::from(found.inliers);
}

/// What is found of a pair, if anything, and the samples drawn.
fn read(kind: Kind, words: &[u64]) -> (Option<Found>, usize) {
    let at = |first: usize| {
        std::array::from_fn(|r| std::array::from_fn(|c| f64::from_bits(words[first + 3 * r + c])))
    };
    let (inliers, drawn) = (words[FOUND - 1] as u32, (words[FOUND - 1] >> 32) as usize);
    ((inliers > 0).then(|| Found { kind, model: at(0), essential: at(9), inliers }), drawn)
}
