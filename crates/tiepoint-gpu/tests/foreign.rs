//! Memory and streams of other programs. A card that is opened twice stands for two programs: each has its own stream,
//! and addresses are valid in both.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests; a skipped one says so")]
#![expect(unsafe_code, reason = "addresses and streams of others")]

mod listed;

use listed::listed;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tiepoint_gpu::{Api, Buffer, Commands, Error, ForeignStream, Gpu, Kernel, KernelSource, Mark, kernel};

/// CUDA's devices, each opened twice.
fn twice() -> Vec<[Gpu; 2]> {
    let other = |gpu: &Gpu| Gpu::open(Api::Cuda, gpu.info().index).unwrap();
    listed(&[Api::Cuda]).into_iter().map(|gpu| [other(&gpu), gpu]).collect()
}

kernel! {
    /// Adds to numbers after `steps` steps of delay.
    unsafe kernel add_late(groups) = AddLate {
        write to: u32 [n],
        read from: u32 [n],
    } {
        n: i32,
        more: u32,
        steps: i32,
    }
}

const ADD_LATE: &str = "
KERNEL(add_late) {
    i32 i = GROUP_X * 64 + LANE_X;
    if (i >= args.n) return;
    u32 state = (u32)i | 1u;
    for (i32 k = 0; k < args.steps; k++) state = state * 1664525u + 1013904223u;
    to[i] = from[i] + args.more + (state == 0u ? 1u : 0u) * 1000u;
}";

fn add_late(gpu: &Gpu) -> Kernel<AddLate<'static>> {
    let source = KernelSource::new("add late").kernel::<AddLate<'_>>([64, 1]).text(ADD_LATE);
    gpu.program(&source).unwrap().kernel::<AddLate<'_>>().unwrap()
}

/// `to` becomes `from + more`; with many `steps` it takes about a millisecond.
fn adding(to: &Buffer<u32>, from: &Buffer<u32>, more: u32, steps: i32) -> Commands {
    let (kernel, mut commands) = (add_late(to.gpu()), Commands::new());
    let arguments = AddLate { to, from, n: to.len() as i32, more, steps };
    commands.launch(&kernel, kernel.covering(to.len(), 1), arguments).unwrap();
    commands
}

const LATE: i32 = 200_000;

/// How many microseconds a queue takes to reach a mark.
fn rest(mark: &Mark, gpu: &Gpu) -> u128 {
    let waited = Instant::now();
    gpu.wait(mark).unwrap();
    waited.elapsed().as_micros()
}

/// The memory of a buffer as a buffer of another device, without a copy.
fn seen(gpu: &Gpu, buffer: &Buffer<u32>) -> Buffer<u32> {
    let (address, owner) = (buffer.share().unwrap(), buffer.clone());
    // SAFETY: the owner keeps the memory alive, and the tests order the streams.
    unsafe { gpu.foreign(address, buffer.len(), owner) }.unwrap()
}

#[test]
fn rows_are_copied_from_any_place_to_any_other() {
    for gpu in listed(&[Api::Cuda, Api::OpenCl]) {
        let numbers: Vec<u16> = (0..1000).collect();
        let from = gpu.upload(&numbers).unwrap();
        for (first, from_pitch, to_first, to_pitch, row, rows) in
            [(0, 10, 0, 64, 10, 100), (3, 17, 5, 7, 7, 20), (999, 1, 63, 1, 1, 1), (0, 5, 0, 3, 2, 0)]
        {
            let to = gpu.upload(&[7_u16; 6400]).unwrap();
            let mut commands = Commands::new();
            commands.copy_rows((&from, first, from_pitch), (&to, to_first, to_pitch), [row, rows]).unwrap();
            gpu.run(&commands).unwrap();
            let mut expected = vec![7; 6400];
            for y in 0..rows {
                let (at, to_at) = (first + y * from_pitch, to_first + y * to_pitch);
                expected[to_at..to_at + row].copy_from_slice(&numbers[at..at + row]);
            }
            assert_eq!(to.to_vec().unwrap(), expected, "{gpu:?}: {rows} rows of {row}, {from_pitch} apart");
        }
        let to = gpu.upload(&[7_u16; 100]).unwrap();
        let refused = |from_first, from_pitch, to_pitch, extent| {
            Commands::new().copy_rows((&from, from_first, from_pitch), (&to, 0, to_pitch), extent).is_err()
        };
        assert!(refused(991, 10, 10, [10, 1]), "beyond the source");
        assert!(refused(0, 10, 10, [10, 11]), "beyond the target");
        assert!(refused(0, 5, 10, [10, 2]) && refused(0, 10, 5, [10, 2]), "rows that overlap");
        assert!(refused(0, usize::MAX, 10, [10, 3]), "an offset beyond all numbers");
    }
}

#[test]
fn opencl_shares_nothing() {
    for gpu in listed(&[Api::OpenCl]) {
        let buffer = gpu.upload(&[1_u32]).unwrap();
        let refused = [
            buffer.share().map(drop),
            gpu.wait_for(ForeignStream::LEGACY),
            gpu.signal(ForeignStream::PER_THREAD),
            gpu.stream().map(drop),
            // SAFETY: nothing is read.
            unsafe { gpu.foreign::<u32>(4096, 1, ()) }.map(drop),
        ];
        for refused in refused {
            assert!(matches!(refused, Err(Error::Unsupported { .. })), "{gpu:?}: {refused:?}");
        }
        let other = Gpu::open(Api::OpenCl, gpu.info().index).unwrap();
        assert!(buffer.on(&other).is_err(), "memory of another context");
        assert_eq!(buffer.on(&gpu).unwrap().to_vec().unwrap(), [1], "itself");
    }
}

#[test]
fn streams_wait_for_each_other() {
    for [a, b] in twice() {
        let n = 1 << 16;
        for round in 0..50 {
            let [first, second] = [&a, &b].map(|gpu| gpu.upload(&vec![round; n]).unwrap());
            let third = a.buffer::<u32>(n).unwrap();
            // `a` writes late, `b` reads that and writes late, `a` reads that; once each waits, once it is waited for.
            a.run(&adding(&third, &first, 1, LATE)).unwrap();
            let third_b = seen(&b, &third);
            match round % 2 {
                0 => b.wait_for(a.stream().unwrap()).unwrap(),
                _ => a.signal(b.stream().unwrap()).unwrap(),
            }
            b.run(&adding(&second, &third_b, 10, LATE)).unwrap();
            let last = second.on(&a).unwrap();
            let sum = a.buffer::<u32>(n).unwrap();
            a.run(&adding(&sum, &last, 100, 0)).unwrap();
            assert!(sum.to_vec().unwrap().iter().all(|&v| v == round + 111), "{a:?}: round {round}");
        }
        for stream in [ForeignStream::LEGACY, ForeignStream::PER_THREAD] {
            a.wait_for(stream).unwrap();
            a.signal(stream).unwrap();
        }
        a.finish().unwrap();
    }
}

#[test]
fn foreign_memory_is_only_read_and_kept_until_it_was_read() {
    struct Owner {
        _buffer: Buffer<u32>,
        dropped: Arc<AtomicBool>,
    }
    impl Drop for Owner {
        fn drop(&mut self) {
            self.dropped.store(true, Ordering::SeqCst);
        }
    }
    for [a, b] in twice() {
        let theirs = a.upload(&vec![5_u32; 1 << 16]).unwrap();
        let (address, dropped) = (theirs.share().unwrap(), Arc::new(AtomicBool::new(false)));
        let owner = Owner { _buffer: theirs, dropped: dropped.clone() };
        // SAFETY: the owner keeps the memory alive, and its numbers were uploaded.
        let foreign = unsafe { b.foreign::<u32>(address, 1 << 16, owner) }.unwrap();
        let out = b.buffer(1 << 16).unwrap();
        assert!(foreign.write(0, &[1]).is_err(), "written from the host");
        assert!(Commands::new().zero(&foreign).is_err(), "zeroed");
        assert!(Commands::new().copy((&out, 0), (&foreign, 0), 1).is_err(), "copied onto");
        assert!(
            Commands::new().copy_rows((&out, 0, 1), (&foreign, 0, 1), [1, 1]).is_err(),
            "rows copied onto"
        );
        let written = AddLate { to: &foreign, from: &out, n: 1, more: 0, steps: 0 };
        let message = Commands::new().launch(&add_late(&b), [1, 1, 1], written).unwrap_err().to_string();
        assert!(message.contains("only read"), "written by a kernel: {message}");
        b.run(&adding(&out, &foreign, 1, LATE)).unwrap();
        assert!(!dropped.load(Ordering::SeqCst), "in use");
        let mark = b.mark().unwrap();
        drop(foreign);
        assert!(dropped.load(Ordering::SeqCst), "given back");
        assert!(rest(&mark, &b) < 500, "memory was given back before the work had finished");
        assert_eq!(out.to_vec().unwrap(), vec![6; 1 << 16], "{b:?}");
    }
}

#[test]
fn foreign_memory_is_given_back_at_once_when_known_to_be_read() {
    for [a, b] in twice() {
        let theirs = a.upload(&vec![5_u32; 1 << 16]).unwrap();
        let [out, other] = [(); 2].map(|()| b.buffer::<u32>(1 << 16).unwrap());
        // The queue takes no more time if giving back the memory waited for it.
        let after_a_read = || {
            let foreign = seen(&b, &theirs);
            b.run(&adding(&out, &foreign, 1, LATE)).unwrap();
            b.finish().unwrap();
            // Commands that do not read the memory are not waited for.
            b.run(&adding(&other, &out, 1, 10 * LATE)).unwrap();
            let mark = b.mark().unwrap();
            drop(foreign);
            rest(&mark, &b)
        };
        assert!((0..20).any(|_| after_a_read() > 500), "giving back always waited for later work");
        assert_eq!(other.to_vec().unwrap(), vec![7; 1 << 16], "{b:?}");
        // A graph that reads the memory may still be running.
        let after_a_graph = || {
            let foreign = seen(&b, &theirs);
            let graph = b.graph(adding(&out, &foreign, 1, 10 * LATE)).unwrap();
            graph.run().unwrap();
            b.finish().unwrap();
            graph.run().unwrap();
            let mark = b.mark().unwrap();
            drop((graph, foreign));
            rest(&mark, &b)
        };
        let finished = (0..20).filter(|_| after_a_graph() < 500).count();
        assert!(finished > 10, "memory was given back after the graph had finished in {finished} of 20");
    }
}

#[test]
fn invalid_and_host_addresses_are_refused() {
    for [a, _] in twice() {
        let pinned = a.pinned::<u32>(100).unwrap();
        #[expect(unsafe_code, reason = "memory that a device uses")]
        // SAFETY: no commands use it.
        let host = unsafe { pinned.numbers() }.unwrap().as_ptr() as u64;
        let buffer = a.upload(&[1_u32; 64]).unwrap();
        let address = buffer.share().unwrap();
        for (address, len) in [
            (0, 1),
            (8, 100),
            (host, 100),
            (0x7fff_ffff_0000, 1),
            (u64::MAX - 3, 1),
            (u64::MAX - 3, 1 << 40),
            (address, 1 << 50),
            (address + 1, 1),
        ] {
            // SAFETY: refused before anything is read.
            let refused = unsafe { a.foreign::<u32>(address, len, ()) };
            assert!(matches!(refused, Err(Error::Usage(_))), "{len} at {address:#x}: {refused:?}");
        }
        // SAFETY: a length of zero, so nothing is read.
        assert!(unsafe { a.foreign::<u32>(0, 0, ()) }.is_ok(), "no memory is valid at any address");
        assert_eq!(buffer.to_vec().unwrap(), [1; 64], "works on after errors");
    }
}

#[test]
fn shared_memory_is_not_handed_on_while_others_read_it() {
    for [a, b] in twice() {
        let n = 1 << 18;
        let (mut before, mut reused) = (HashSet::new(), 0);
        for round in 0..40_u32 {
            let out = b.buffer::<u32>(n).unwrap();
            let ours = a.upload(&vec![round; n]).unwrap();
            let address = ours.share().unwrap();
            a.signal(b.stream().unwrap()).unwrap();
            // SAFETY: shared memory is not given to another buffer while it is read.
            let theirs = unsafe { b.foreign::<u32>(address, n, ()) }.unwrap();
            b.run(&adding(&out, &theirs, 0, 10 * LATE)).unwrap();
            b.run(&adding(&out, &theirs, 1, 10 * LATE)).unwrap();
            // Our buffer is dropped while `b` reads it for another 10 ms; the next buffer must have other memory.
            drop(ours);
            let next = a.upload(&vec![99_u32; n]).unwrap();
            assert_ne!(next.share().unwrap(), address, "handed on while in use");
            assert!(out.to_vec().unwrap().iter().all(|&v| v == round + 1), "{a:?}: round {round}");
            reused += u32::from(!before.insert(address));
        }
        assert!(reused > 0, "memory was never used again after it was read");
        a.release_memory().unwrap();
    }
}

#[test]
fn graphs_are_recorded_while_others_release_memory() {
    for [a, b] in twice() {
        let buffers = [(); 2].map(|()| a.upload(&[3_u32; 4096]).unwrap());
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let letting_go = scope.spawn(|| {
                let mut rounds = 0;
                while !done.load(Ordering::SeqCst) {
                    let shared = b.upload(&[rounds; 4096]).unwrap();
                    shared.share().unwrap();
                    drop(shared);
                    rounds += 1;
                }
                rounds
            });
            for _ in 0..300 {
                let mut commands = Commands::new();
                for _ in 0..20 {
                    commands.append(adding(&buffers[0], &buffers[1], 1, 1)).unwrap();
                }
                a.graph(commands).unwrap().run().unwrap();
            }
            done.store(true, Ordering::SeqCst);
            assert!(letting_go.join().unwrap() > 10, "{a:?}");
        });
        assert_eq!(buffers[0].to_vec().unwrap(), [4; 4096], "{a:?}");
    }
}
