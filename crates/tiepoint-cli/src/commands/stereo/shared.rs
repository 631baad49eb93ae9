//! Divides the pairs of a list between a GPU and CPU threads, each of which computes one pair at a time.
//!
//! Results are written in the order of the pairs, and only a limited number n may wait for an earlier one. So a CPU thread
//! takes a pair if it would finish it before the GPU finishes the pairs it holds and n more; the GPU takes it if it has
//! room and would finish it before the CPU threads finish theirs and n more.
//!
//! Both speeds are measured: the CPU's first by the pairs that it computes while the GPU is being opened, the GPU's first
//! by one pair.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long `cpu_takes` waits before it checks again how long the GPU has taken for its first pair.
const MOMENT: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(super) struct Shared {
    threads: usize,
    /// The most results that wait for an earlier one.
    most: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Pairs now on the GPU, pairs finished there, and the time during which it had at least one, up to `since`.
    on_gpu: usize,
    done: usize,
    busy: Duration,
    since: Option<Instant>,
    /// Pairs that CPU threads are computing, the number that they have finished, and the thread seconds these took.
    on_cpu: usize,
    did: usize,
    seconds: f64,
}

impl State {
    fn busy(&self) -> f64 {
        (self.busy + self.since.map_or(Duration::ZERO, |since| since.elapsed())).as_secs_f64()
    }

    /// Whether the GPU finishes at most `pairs` pairs in the `seconds` that a CPU thread takes for one. Before it has
    /// finished its first pair: whether that has already taken `seconds`.
    fn is_slow(&self, seconds: f64, pairs: usize) -> bool {
        let (done, pairs) = if self.done == 0 { (1, 1) } else { (self.done, pairs) };
        seconds * done as f64 <= pairs as f64 * self.busy()
    }

    /// Whether the GPU can take one more pair and would finish it before the `threads` finish theirs and `pairs` more.
    fn has_room(&self, seconds: f64, in_flight: usize, pairs: usize, threads: usize) -> bool {
        match self.done {
            0 => self.on_gpu == 0,
            done => {
                let by_gpu = (self.on_gpu + 1) as f64 * self.busy() / done as f64;
                self.on_gpu < in_flight && by_gpu * threads as f64 <= seconds * (self.on_cpu + pairs) as f64
            }
        }
    }
}

impl Shared {
    pub(super) fn new(threads: usize, most: usize) -> Self {
        Self { threads, most, state: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a CPU thread, and not the GPU, takes the next pair, after which `left` remain. The GPU holds at most
    /// `in_flight` pairs. Waits until one of the two may take it.
    pub(super) fn cpu_takes(&self, in_flight: usize, left: usize) -> bool {
        let pairs = 1 + left.min(self.most);
        let mut state = self.lock();
        loop {
            if state.did == 0 {
                return false;
            }
            let seconds = state.seconds / state.did as f64;
            let pays = state.is_slow(seconds, state.on_gpu + pairs);
            if state.has_room(seconds, in_flight, pairs, self.threads) || state.done > 0 && !pays {
                return false;
            }
            if pays && state.on_cpu < self.threads {
                state.on_cpu += 1;
                return true;
            }
            let woken = self.changed.wait_timeout(state, MOMENT);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether the GPU has finished a pair. Until then each of its pairs is waited for, to measure its speed.
    pub(super) fn knows_gpu(&self) -> bool {
        self.lock().done > 0
    }

    /// A thread of the CPU has computed a pair that it took.
    pub(super) fn cpu_did(&self, seconds: f64) {
        let mut state = self.lock();
        state.on_cpu -= 1;
        state.did += 1;
        state.seconds += seconds;
        self.changed.notify_all();
    }

    /// All threads of the CPU have computed a pair together.
    pub(super) fn threads_did(&self, seconds: f64) {
        let mut state = self.lock();
        state.did += 1;
        state.seconds += seconds * self.threads as f64;
    }

    pub(super) fn gpu_took(&self) {
        let mut state = self.lock();
        state.on_gpu += 1;
        state.since.get_or_insert_with(Instant::now);
    }

    pub(super) fn gpu_did(&self) {
        let mut state = self.lock();
        (state.on_gpu, state.done) = (state.on_gpu - 1, state.done + 1);
        if state.on_gpu == 0 {
            let ended = state.since.take();
            state.busy += ended.map_or(Duration::ZERO, |since| since.elapsed());
        }
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// Two threads that each take `seconds` for a pair, beside a GPU that took 20 ms for its first pair and holds `on_gpu`
    /// more.
    fn shared(seconds: f64, on_gpu: usize) -> Shared {
        let busy = Duration::from_millis(20);
        let state = State { on_gpu, done: 1, busy, since: None, on_cpu: 0, did: 1, seconds };
        Shared { state: Mutex::new(state), ..Shared::new(2, 4) }
    }

    #[test]
    fn a_pair_goes_where_it_is_done_first() {
        for (seconds, on_gpu, left, expected) in [
            (0.04, 3, 9, true),
            // The GPU has room.
            (0.04, 2, 99, false),
            // It has, but two threads do five pairs before its third.
            (0.01, 2, 99, true),
            (0.01, 0, 0, true),
            // Results would wait for the thread.
            (30.0, 3, 99, false),
        ] {
            let shared = shared(seconds, on_gpu);
            assert_eq!(shared.cpu_takes(3, left), expected, "{seconds} s, {on_gpu}, {left} left");
        }
        let unknown = Shared::new(2, 4);
        (0..3).for_each(|_| unknown.gpu_took());
        assert!(!unknown.cpu_takes(3, 9), "the speed of the CPU is not known");
    }

    #[test]
    fn a_pair_waits_for_the_first_that_is_free() {
        let shared = shared(0.04, 3);
        assert!(shared.cpu_takes(3, 99) && shared.cpu_takes(3, 99), "both threads");
        thread::scope(|scope| {
            let next = scope.spawn(|| shared.cpu_takes(3, 99));
            thread::sleep(Duration::from_millis(5));
            assert!(!next.is_finished());
            shared.gpu_did();
            assert!(!next.join().unwrap(), "the GPU has room");
            let next = scope.spawn(|| shared.cpu_takes(2, 99));
            shared.cpu_did(0.04);
            assert!(next.join().unwrap(), "a thread is free");
        });
    }

    #[test]
    fn a_gpu_that_takes_long_for_its_first_pair_is_not_waited_for() {
        let shared = Shared::new(2, 4);
        shared.threads_did(0.005);
        assert!(!shared.cpu_takes(3, 9), "the GPU tries one");
        let began = Instant::now();
        shared.gpu_took();
        assert!(shared.cpu_takes(3, 9) && !shared.knows_gpu());
        assert!(began.elapsed() >= Duration::from_millis(10), "{:?}", began.elapsed());
    }
}
