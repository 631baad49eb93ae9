//! Many pairs of images searched side by side on a GPU, with the kernels of `estimate::gpu`: uploads, searches, and
//! their results.

use super::prepared::{Budgets, FoundAll, KINDS, Prepared};
use crate::Result;
use crate::device::Cpu;
use crate::device::gpu::{Buffer, Commands, Element, Gpu, Pinned};
use crate::geometry::ModelKind;
use crate::geometry::estimate::gpu::{FOUND, NUMBERS, Search, read, source};
use crate::geometry::matrix::flat;
use tiepoint_gpu::{Kernel, Mark};

/// The most matches of the pairs that are searched together, unless one pair has more: 60 bytes each on the device and
/// on the host.
const MOST_MATCHES: usize = 1 << 21;
/// The most pairs that are searched together.
const MOST_PAIRS: usize = 1 << 11;

/// Pairs in groups that are searched together.
pub(super) fn parts<'p>(prepared: &'p [&'p Prepared]) -> Vec<&'p [&'p Prepared]> {
    let (mut parts, mut rest) = (Vec::new(), prepared);
    while !rest.is_empty() {
        let mut matches = 0;
        let fits = |p: &&&Prepared| {
            matches += p.len();
            matches <= MOST_MATCHES
        };
        let count = rest.iter().take(MOST_PAIRS).take_while(fits).count().max(1);
        parts.extend(rest.split_off(..count));
    }
    parts
}

/// Numbers to be copied to the device.
#[derive(Debug)]
struct Upload<T: Element> {
    host: Pinned<T>,
    device: Buffer<T>,
}

impl<T: Element> Upload<T> {
    fn new(gpu: &Gpu, len: usize) -> Result<Self> {
        Ok(Self { host: gpu.pinned(len)?, device: gpu.buffer(len)? })
    }

    /// The numbers in the host's memory. Waits until the queue has reached `done`, after the last search.
    fn host(&mut self, done: &Mark) -> Result<&mut [T]> {
        #[expect(unsafe_code, reason = "memory that the device reads")]
        // SAFETY: uploads are recorded and run by `GpuVerifier::search` alone, before `done`.
        Ok(unsafe { self.host.numbers_mut_after(done) }?)
    }

    fn record(&self, commands: &mut Commands, len: usize) -> Result<()> {
        Ok(commands.upload_first(&self.host, &self.device, len)?)
    }
}

/// The kernel of the search for one kind of model, and the memory that it reads and writes on the device.
#[derive(Debug)]
struct OfKind {
    kind: ModelKind,
    kernel: Kernel<Search<'static>>,
    budget: Buffer<u32>,
    pairs: Upload<u32>,
    keys: Upload<u64>,
    until: Upload<u64>,
    found: Buffer<u64>,
}

/// The search for all kinds of model on a GPU. Its memory grows as needed and is kept for the next pairs.
#[derive(Debug)]
pub(super) struct GpuVerifier {
    gpu: Gpu,
    kinds: [OfKind; 3],
    /// The numbers of pairs and of matches that fit.
    pairs: usize,
    matches: usize,
    places: Upload<u64>,
    order: Upload<u32>,
    numbers: Upload<u64>,
    /// Models without inliers, for searches that start from no model.
    none: Buffer<u64>,
    /// What was found, kind by kind.
    found: Pinned<u64>,
    /// A mark after the last search.
    done: Mark,
}

/// A pair's part of the host memory that is uploaded.
struct Slots<'s> {
    prepared: &'s Prepared,
    first: usize,
    places: &'s mut [u64],
    order: &'s mut [u32],
    numbers: &'s mut [u64],
    kinds: [KindSlots<'s>; 3],
}

/// The part of it for one kind of model.
struct KindSlots<'s> {
    kind: ModelKind,
    pair: &'s mut [u32],
    key: &'s mut u64,
    until: &'s mut [u64],
}

impl GpuVerifier {
    pub(super) fn new(gpu: &Gpu, budgets: &Budgets) -> Result<Self> {
        let of_kind = |kind: ModelKind| -> Result<OfKind> {
            Ok(OfKind {
                kind,
                kernel: gpu.program(&source(kind))?.kernel::<Search<'_>>()?,
                budget: gpu.upload(&budgets.of(kind).table)?,
                pairs: Upload::new(gpu, 0)?,
                keys: Upload::new(gpu, 0)?,
                until: Upload::new(gpu, 0)?,
                found: gpu.buffer(0)?,
            })
        };
        let [essential, fundamental, homography] = KINDS.map(of_kind);
        Ok(Self {
            gpu: gpu.clone(),
            kinds: [essential?, fundamental?, homography?],
            pairs: 0,
            matches: 0,
            places: Upload::new(gpu, 0)?,
            order: Upload::new(gpu, 0)?,
            numbers: Upload::new(gpu, 0)?,
            none: gpu.buffer(0)?,
            found: gpu.pinned(0)?,
            done: gpu.mark()?,
        })
    }

    /// Searches for every kind of model in pairs of one of the [`parts`].
    pub(super) fn search(
        &mut self,
        prepared: &[&Prepared],
        budgets: &Budgets,
        cpu: &Cpu,
    ) -> Result<Vec<FoundAll>> {
        let (pairs, matches) = (prepared.len(), prepared.iter().map(|p| p.len()).sum());
        self.reserve(pairs, matches)?;
        cpu.for_chunks(&mut self.slots(prepared)?, 1, |_, slots| slots[0].fill(budgets));
        let calibrated = prepared.iter().any(|p| p.rays.is_some());
        let commands = self.record(pairs, matches, calibrated)?;
        self.gpu.run(&commands)?;
        self.done = self.gpu.mark()?;
        #[expect(unsafe_code, reason = "memory that the device writes")]
        // SAFETY: the commands that write this memory are run once, above.
        let words = unsafe { self.found.numbers_at(&self.done, 0..KINDS.len() * pairs * FOUND) }?;
        let of = |kind: usize, pair: usize| read(&words[(kind * pairs + pair) * FOUND..][..FOUND]);
        let all = |i: usize| {
            let [(essential, a), (fundamental, b), (homography, c)] = [0, 1, 2].map(|kind| of(kind, i));
            FoundAll { essential, fundamental, homography, iterations: a + b + c }
        };
        Ok((0..pairs).map(all).collect())
    }

    /// Makes room for this many pairs and matches, rounded up to powers of two so that few different sizes are
    /// allocated.
    pub(super) fn reserve(&mut self, pairs: usize, matches: usize) -> Result<()> {
        let gpu = &self.gpu;
        if pairs > self.pairs {
            let room = pairs.next_power_of_two();
            self.numbers = Upload::new(gpu, room * NUMBERS)?;
            self.none = gpu.buffer(room * FOUND)?;
            self.found = gpu.pinned(KINDS.len() * room * FOUND)?;
            for of in &mut self.kinds {
                (of.pairs, of.keys) = (Upload::new(gpu, room * 4)?, Upload::new(gpu, room)?);
                of.found = gpu.buffer(room * FOUND)?;
            }
            self.pairs = room;
        }
        if matches > self.matches {
            let room = matches.next_power_of_two();
            (self.places, self.order) = (Upload::new(gpu, 4 * room)?, Upload::new(gpu, room)?);
            for of in &mut self.kinds {
                of.until = Upload::new(gpu, room)?;
            }
            self.matches = room;
        }
        Ok(())
    }

    fn slots<'s>(&'s mut self, prepared: &'s [&'s Prepared]) -> Result<Vec<Slots<'s>>> {
        let done = &self.done;
        let mut places = self.places.host(done)?;
        let mut order = self.order.host(done)?;
        let mut numbers = self.numbers.host(done)?.chunks_exact_mut(NUMBERS);
        let mut kinds = Vec::with_capacity(KINDS.len());
        for of in &mut self.kinds {
            let pairs = of.pairs.host(done)?.chunks_exact_mut(4);
            let keys = of.keys.host(done)?.iter_mut();
            kinds.push((of.kind, pairs, keys, of.until.host(done)?));
        }
        let mut slots = Vec::with_capacity(prepared.len());
        let mut first = 0;
        for &prepared in prepared {
            let len = prepared.len();
            let mut of_kinds = kinds.iter_mut().filter_map(|(kind, pairs, keys, until)| {
                let (pair, key) = (pairs.next()?, keys.next()?);
                Some(KindSlots { kind: *kind, pair, key, until: until.split_off_mut(..len)? })
            });
            let places = places.split_off_mut(..4 * len);
            let order = order.split_off_mut(..len);
            let parts = (places, order, numbers.next(), of_kinds.next(), of_kinds.next(), of_kinds.next());
            if let (Some(places), Some(order), Some(numbers), Some(e), Some(f), Some(h)) = parts {
                slots.push(Slots { prepared, first, places, order, numbers, kinds: [e, f, h] });
            }
            first += len;
        }
        Ok(slots)
    }

    fn record(&mut self, pairs: usize, matches: usize, calibrated: bool) -> Result<Commands> {
        let mut commands = Commands::new();
        commands.stage("verify");
        commands.zero(&self.none)?;
        self.places.record(&mut commands, 4 * matches)?;
        self.order.record(&mut commands, matches)?;
        self.numbers.record(&mut commands, pairs * NUMBERS)?;
        for (i, of) in self.kinds.iter().enumerate() {
            of.pairs.record(&mut commands, pairs * 4)?;
            of.keys.record(&mut commands, pairs)?;
            of.until.record(&mut commands, matches)?;
            let essential = &self.kinds[0].found;
            let search = Search {
                found: &of.found,
                starts: if of.kind == ModelKind::Fundamental && calibrated { essential } else { &self.none },
                pairs: &of.pairs.device,
                keys: &of.keys.device,
                all_numbers: &self.numbers.device,
                all_places: &self.places.device,
                order: &self.order.device,
                until: &of.until.device,
                budget: &of.budget,
                matches: matches as u64,
            };
            match of.kind == ModelKind::Essential && !calibrated {
                true => commands.zero(&of.found)?,
                false => commands.launch(&of.kernel, [pairs, 1, 1], search)?,
            }
            commands.download_part((&of.found, 0), (&mut self.found, i * pairs * FOUND), pairs * FOUND)?;
        }
        Ok(commands)
    }
}

impl Slots<'_> {
    /// Writes the data of the pair that the device reads.
    fn fill(&mut self, budgets: &Budgets) {
        let prepared = self.prepared;
        for (i, place) in self.places.chunks_exact_mut(4).enumerate() {
            place.copy_from_slice(&prepared.points.places(i).map(f64::to_bits));
        }
        self.order.copy_from_slice(&prepared.order);
        let rays = prepared.rays.as_ref().map_or([0.0; 18], |rays| {
            let (a, b) = (flat(&rays.ray_from_a), flat(&rays.ray_from_b));
            std::array::from_fn(|i| if i < 9 { a[i] } else { b[i - 9] })
        });
        let limit = |kind| prepared.judge(kind, &Cpu::sequential()).limit;
        let limits = [ModelKind::Homography, ModelKind::Fundamental].map(limit);
        self.numbers[..2].copy_from_slice(&limits.map(f64::to_bits));
        self.numbers[2..].copy_from_slice(&rays.map(f64::to_bits));
        for of in &mut self.kinds {
            if of.kind == ModelKind::Essential && prepared.rays.is_none() {
                // No samples are drawn, so no model is found.
                of.pair.copy_from_slice(&[self.first as u32, prepared.len() as u32, 0, 0]);
                *of.key = 0;
                continue;
            }
            let most = budgets.most(of.kind, prepared.len());
            let sampler = prepared.sampler(of.kind, most);
            let grades = sampler.until();
            of.until[..grades.len()].copy_from_slice(grades);
            of.pair.copy_from_slice(&[self.first as u32, prepared.len() as u32, grades.len() as u32, most]);
            *of.key = sampler.key;
        }
    }
}
