//! Works through the pairs: while some are computed, the next are read and the results of earlier ones written.
//! Messages and reports come in the order of the pairs. Threads of the CPU compute pairs beside a GPU where that pays
//! ([`Shared`]).

use super::shared::Shared;
use super::{Computed, Finished, PairJob, Ready, Work};
use crate::commands::ordered::{AHEAD, Item, MOST_BESIDE, Results};
use crate::commands::report::say_page;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Clock, Part, Spent};
use crate::prefetch::{Limits, Prefetcher};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::Instant;
use tiepoint::device::Cpu;
use tiepoint::image::AnyView;
use tiepoint::stereo::{Masks, Stereo, StereoOptions, StereoResult, StereoStream};

/// The number of rows up to which small images are computed together on a GPU. With more, it would wait for files, and
/// making its memory at the start would take longer.
const ROWS: usize = 1080;

/// The most pairs that a GPU computes together.
const BATCH: usize = 8;

/// The name of the CPU in results.
const CPU: &str = "cpu";

/// Reads, computes, writes and reports the pairs; returns how many failed.
pub(super) fn run(jobs: &[PairJob<'_>], work: &Work<'_>) -> Outcome<usize> {
    let context = work.context;
    let cpu = &context.processor.cpu;
    let (threads, has_gpu) = (cpu.threads().min(MOST_BESIDE), context.processor.may_have_gpu());
    let shares = has_gpu && context.processor.opens_beside() && jobs.len() > 1;
    let parallel = shares || threads > 1 && jobs.len() > 1;
    // Without a GPU, all threads are busy with the pair that is computed.
    let beside = if has_gpu { threads } else { 1 };
    // Where CPU and GPU share the pairs, results of the faster wait for one of the slower.
    let waiting = match (parallel, shares) {
        (false, _) => 0,
        (true, false) => beside,
        (true, true) => 2 * threads + 3,
    };
    let limits = Limits { items: beside, bytes: AHEAD, batch: 1 };
    // The stages in the times of a pair that is read are those that its reader records.
    let read_next = |i: usize| {
        let item = Item { job: &jobs[i], result: Ok(()), spent: Spent::default() };
        item.then(|()| jobs[i].read(work, &context.reader(parallel)))
    };
    thread::scope(|scope| {
        let scope = Some(scope).filter(|_| parallel);
        let mut pairs = Prefetcher::new(jobs.len(), &read_next, scope, limits);
        let mut sequence = Sequence {
            stream: None,
            computing: VecDeque::new(),
            results: Results::new(jobs.len(), scope, context),
            shared: shares.then(|| Arc::new(Shared::new(threads, waiting))),
            jobs,
            work,
        };
        while let Some(item) = pairs.next_batch(|_, _| false).pop() {
            let job = item.job;
            context.progress.say(&format!("{}/{} {}", job.number, jobs.len(), job.names()));
            sequence.push(item)?;
            sequence.report(waiting)?;
        }
        sequence.take(0)?;
        sequence.report(0)?;
        Ok(sequence.results.failed)
    })
}

/// Pairs that are computed, then written, then reported, all in order.
struct Sequence<'scope, 'env, 'a, 'p> {
    /// The stream with its options. It is made with the first pair, whose size decides how many pairs are in a batch,
    /// and made again for a pair with other options.
    stream: Option<(StereoOptions, StereoStream)>,
    /// Pairs that were read, each with the name of its device and whether that is a GPU that was open; those that did not
    /// fail are in the stream.
    computing: VecDeque<Item<'a, PairJob<'p>, (Ready, String, bool)>>,
    results: Results<'scope, 'env, 'a, PairJob<'p>, Finished>,
    /// Set if CPU and GPU share the pairs.
    shared: Option<Arc<Shared>>,
    jobs: &'a [PairJob<'p>],
    work: &'a Work<'a>,
}

impl<'scope, 'a: 'scope, 'p: 'scope> Sequence<'scope, '_, 'a, 'p> {
    /// Submits a pair for computation, and passes finished pairs on to be written.
    fn push(&mut self, item: Item<'a, PairJob<'p>, Ready>) -> Outcome {
        let context = self.work.context;
        context.add_stages(&item.spent.stages);
        // If the stream were full, the push would wait for the oldest pair, and this thread would copy its maps.
        self.take(self.stream.as_ref().map_or(0, |(_, stream)| stream.in_flight() - 1))?;
        let Ok(Ready { options, sides: [left, _], .. }) = &item.result else {
            self.computing.push_back(item.then(|_| Err(Failure::work("the pair was not read"))));
            return self.take(self.stream.as_ref().map_or(0, |(_, stream)| stream.in_flight()));
        };
        if self.stream.as_ref().is_some_and(|(of, _)| of != options) {
            self.take(0)?;
            self.stream = None;
        }
        let (_, stream) = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let made = stream(*options, left.image.size().height, self.jobs.len(), self.work)?;
                none.insert((*options, made))
            }
        };
        let cpu = &context.processor.cpu;
        let (job, shared) = (item.job, self.shared.clone());
        let left = self.jobs.len() - job.number;
        if let Some(shared) = shared.as_ref().filter(|shared| shared.cpu_takes(stream.in_flight(), left)) {
            self.take(0)?;
            self.on_a_thread(item, shared.clone());
            return Ok(());
        }
        let item = item.then(|ready| {
            let [left, right] = &ready.sides;
            let masks = Masks::from(&ready.sides);
            let (mut clock, began) = (Clock::start(cpu), Instant::now());
            let is_open = context.processor.gpu_now().is_ok();
            let pushed =
                clock.time(Part::Compute, || stream.push((&left.image).into(), (&right.image).into(), masks));
            pushed.map_err(|e| Failure::from(e).about(job.names()))?;
            let device = context.take_device();
            let on_gpu = is_open && device != CPU;
            match shared {
                Some(shared) if on_gpu => shared.gpu_took(),
                Some(shared) if device == CPU => shared.threads_did(began.elapsed().as_secs_f64()),
                _ => (),
            }
            Ok(((ready, device, on_gpu), clock.spent(cpu)))
        });
        self.computing.push_back(item);
        // A CPU has already computed the pair; a GPU's first is waited for at once, so that its speed is known.
        let may_hold = self.shared.as_ref().is_none_or(|shared| shared.knows_gpu());
        let held = if may_hold && context.processor.may_have_gpu() { stream.in_flight() } else { 0 };
        self.take(held)
    }

    /// Passes pairs on to be written until no more than `held` are being computed.
    fn take(&mut self, held: usize) -> Outcome {
        let work = self.work;
        let cpu = &work.context.processor.cpu;
        let goes_on = |item: &Item<'_, PairJob<'_>, _>, stream: &Option<(StereoOptions, StereoStream)>| {
            item.result.is_err() || stream.as_ref().is_none_or(|(_, stream)| stream.len() > held)
        };
        while self.computing.front().is_some_and(|item| goes_on(item, &self.stream)) {
            let Some(item) = self.computing.pop_front() else { break };
            let stream = &mut self.stream;
            let (job, shared) = (item.job, self.shared.clone());
            let item = item.then(|(ready, device, on_gpu)| {
                let mut clock = Clock::start(cpu);
                let found =
                    clock.time(Part::Compute, || stream.as_mut().map_or(Ok(None), |(_, s)| s.pop_pending()));
                let found = found.map_err(|e| Failure::from(e).about(job.names()))?;
                let found = found.ok_or_else(|| Failure::work(format!("{}: no result came", job.names())))?;
                Ok(((ready, found, device, shared.filter(|_| on_gpu)), clock.spent(cpu)))
            });
            self.results.push(move || {
                finished(item, work, |(ready, found, device, on_gpu), alone| {
                    let found = found.wait(alone);
                    on_gpu.iter().for_each(|shared| shared.gpu_did());
                    Ok((ready, found?, device))
                })
            });
        }
        Ok(())
    }

    /// Computes a pair on the thread that writes its results.
    fn on_a_thread(&mut self, item: Item<'a, PairJob<'p>, Ready>, shared: Arc<Shared>) {
        let work = self.work;
        self.results.push(move || {
            finished(item, work, |ready: Ready, alone| {
                let began = Instant::now();
                let ([left, right], masks) = (&ready.sides, Masks::from(&ready.sides));
                let pair = [&left.image, &right.image].map(AnyView::from);
                let found = Stereo::new(ready.options)
                    .and_then(|stereo| stereo.compute(pair[0], pair[1], masks, &alone.clone().into()));
                shared.cpu_did(began.elapsed().as_secs_f64());
                Ok((ready, found?, CPU.to_owned()))
            })
        });
    }

    /// Reports pairs that are written, and waits until at most `unwritten` are still being written.
    fn report(&mut self, unwritten: usize) -> Outcome {
        let context = self.work.context;
        self.results.report(unwritten, |job, finished, spent| {
            let Finished { summary, lines, warnings, described } = finished;
            context.say(&format!("{summary}, {:.1} ms", spent.compute() * 1e3));
            lines.iter().for_each(|line| context.say(line));
            job.report.iter().for_each(|page| say_page(page, context));
            warnings.iter().for_each(|warning| context.note(&format!("{}: {warning}", job.names())));
            context.report(|| output::joined([described, json!({ "seconds": spent.seconds() })]));
        })
    }
}

/// Ends the computation of a pair on this thread and writes its results.
fn finished<'a, 'p, T>(
    item: Item<'a, PairJob<'p>, T>,
    work: &Work<'_>,
    end: impl FnOnce(T, &Cpu) -> tiepoint::Result<(Ready, StereoResult, String)>,
) -> Item<'a, PairJob<'p>, Finished> {
    let job = item.job;
    let item = item.then(|begun| {
        let alone = &Cpu::sequential();
        let mut clock = Clock::start(alone);
        let found = clock.time(Part::Compute, || end(begun, alone));
        let (ready, mut found, device) = found.map_err(|e| Failure::from(e).about(job.names()))?;
        clock.time(Part::Compute, || ready.complete(&mut found, work.options.fill, alone))?;
        Ok((Computed { ready, found, device }, clock.spent(alone)))
    });
    let spent = item.spent.clone();
    item.then(|computed| job.finish(&computed, work, &spent))
}

/// A stream for pairs with this many rows.
fn stream(options: StereoOptions, rows: usize, pairs: usize, work: &Work<'_>) -> Outcome<StereoStream> {
    // Copies are made on the calling thread: the processor's would have to wait for cores that read and write.
    let stream = StereoStream::new(options, &work.context.processor)?.with_copying(&Cpu::sequential());
    let batch = (ROWS / rows.max(1)).clamp(1, BATCH).min(pairs.max(1));
    let sets = if pairs > batch { stream.in_flight() } else { 1 };
    Ok(stream.with_in_flight(sets)?.with_batch(batch)?)
}
