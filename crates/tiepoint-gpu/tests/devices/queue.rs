//! Work, transfers and graphs keep their order, and memory keeps what was written to it.

use super::{Count, adding, all, count_kernel, numbers, numbers_at, numbers_mut};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tiepoint_gpu::{Buffer, Commands};

/// Commands that run together come after those before them and before those after, in the queue and in a graph.
#[test]
fn commands_that_run_together_keep_their_place_in_the_order() {
    const SIDES: (usize, usize) = (257, 129);
    for gpu in all() {
        let kernel = count_kernel(&gpu);
        let numbers = || [gpu.buffer::<u32>(1).unwrap(), gpu.buffer::<u32>(1).unwrap()];
        let [one, other, copies] = [numbers(), numbers(), numbers()];
        let count = |[total, most]: &[Buffer<u32>; 2], times: usize| {
            let mut commands = Commands::new();
            for _ in 0..times {
                let arguments = Count::new(total, most, SIDES.0, SIDES.1);
                commands.launch(&kernel, kernel.covering(SIDES.0, SIDES.1), arguments).unwrap();
            }
            commands
        };
        let mut commands = Commands::new();
        for buffer in one.iter().chain(&other) {
            commands.zero(buffer).unwrap();
        }
        commands.together(count(&one, 3), count(&other, 2)).unwrap();
        commands.copy((&one[0], 0), (&copies[0], 0), 1).unwrap();
        commands.copy((&other[0], 0), (&copies[1], 0), 1).unwrap();
        assert_eq!(commands.launches(), 5, "the launches of both lists");
        let graph = gpu.graph(commands.clone()).unwrap();
        for run in 0..4 {
            if run % 2 == 0 { gpu.run(&commands) } else { graph.run() }.unwrap();
            let counted = copies.each_ref().map(|copy| copy.to_vec().unwrap()[0]);
            let pixels = (SIDES.0 * SIDES.1) as u32;
            assert_eq!(counted, [3 * pixels, 2 * pixels], "{gpu:?}: run {run}");
        }
    }
}

#[test]
fn memory_is_copied_unchanged_to_and_from_devices() {
    for gpu in all() {
        let data: Vec<u16> = (0..70_001).map(|i| (i * 31) as u16).collect();
        let (buffer, copy) = (gpu.upload(&data).unwrap(), gpu.upload(&vec![7_u16; 70_001]).unwrap());
        let mut pinned = gpu.pinned::<u16>(500).unwrap();
        assert!(numbers(&pinned).iter().all(|&v| v == 0), "zeroed");
        let mut commands = Commands::new();
        commands.copy((&buffer, 17), (&copy, 3), 60_000).unwrap();
        commands.download(&copy, &mut pinned).unwrap();
        gpu.run(&commands).unwrap();
        assert_eq!(numbers(&pinned)[3..], data[17..514], "{gpu:?}: downloaded");
        let mut commands = Commands::new();
        commands.download_part((&buffer, 70_000), (&mut pinned, 499), 1).unwrap();
        commands.download_part((&buffer, 9), (&mut pinned, 1), 2).unwrap();
        gpu.run(&commands).unwrap();
        let expected = [7, data[9], data[10], data[17]];
        assert_eq!(numbers(&pinned)[..4], expected, "{gpu:?}: a part");
        assert_eq!(numbers(&pinned)[499], data[70_000], "{gpu:?}: the last");
        assert!(commands.download_part((&buffer, 70_000), (&mut pinned, 0), 2).is_err(), "beyond the buffer");
        assert!(
            commands.download_part((&buffer, 0), (&mut pinned, 499), 2).is_err(),
            "beyond the host's memory"
        );
        let found = copy.to_vec().unwrap();
        assert!(
            found[..3] == [7; 3] && found[3..60_003] == data[17..60_017] && found[60_003] == 7,
            "{gpu:?}"
        );

        numbers_mut(&mut pinned).fill(9);
        let mut commands = Commands::new();
        commands.upload(&pinned, &buffer).unwrap();
        commands.zero(&copy).unwrap();
        gpu.run(&commands).unwrap();
        let mut some = [0; 2];
        buffer.read(499, &mut some).unwrap();
        assert_eq!(some, [9, data[500]], "{gpu:?}: uploaded");
        assert!(copy.to_vec().unwrap().iter().all(|&v| v == 0), "{gpu:?}: zeroed");
        assert!(buffer.write(70_000, &[1, 2]).is_err(), "beyond the end");
        assert!(Commands::new().copy((&buffer, 0), (&copy, 2), 70_000).is_err(), "beyond the end");
        assert!(Commands::new().copy((&buffer, 0), (&buffer, 99), 100).is_err(), "onto itself");
        assert!(Commands::new().copy((&buffer, 0), (&buffer, 100), 100).is_ok(), "beside itself");
    }
}

#[test]
fn transfers_run_beside_the_work_and_in_order() {
    const N: usize = 100_000;
    for gpu in all() {
        let sum = gpu.upload(&vec![0_u32; N]).unwrap();
        let parts = [(); 2].map(|()| gpu.buffer::<u32>(N).unwrap());
        let pinned = [1_u32, 20, 300, 4000, 50_000].map(|v| {
            let mut pinned = gpu.pinned::<u32>(N).unwrap();
            numbers_mut(&mut pinned).fill(v);
            pinned
        });
        let mut read = [gpu.mark().unwrap(), gpu.mark().unwrap()];
        for (i, from) in pinned.iter().enumerate() {
            let part = &parts[i % 2];
            gpu.upload_beside(from, part, &read[i % 2]).unwrap();
            gpu.run(&adding(&sum, part)).unwrap();
            read[i % 2] = gpu.mark().unwrap();
        }
        let expected = [1_u32, 20, 300, 4000, 50_000].iter().fold(0, |s, v| 3 * s + v);
        assert!(sum.to_vec().unwrap().iter().all(|&v| v == expected), "{gpu:?}: in order");
        assert!(gpu.upload_beside(&pinned[0], &gpu.buffer(N - 1).unwrap(), &read[0]).is_err(), "too small");
    }
}

/// A new buffer may get the memory of a dropped one that commands in the queue still use.
#[test]
fn transfers_into_reused_memory_wait_for_its_last_work() {
    const N: usize = 100_000;
    for gpu in all() {
        let zeroes = gpu.upload(&vec![0_u32; N]).unwrap();
        let mut other = gpu.pinned::<u32>(N).unwrap();
        numbers_mut(&mut other).fill(77);
        let mut result = gpu.pinned::<u32>(N).unwrap();
        for _ in 0..20 {
            let sum = gpu.upload(&vec![1_u32; N]).unwrap();
            let mut commands = Commands::new();
            for _ in 0..8 {
                commands.append(adding(&sum, &zeroes)).unwrap();
            }
            commands.download(&sum, &mut result).unwrap();
            gpu.run(&commands).unwrap();
            drop((sum, commands));
            let next = gpu.buffer::<u32>(N).unwrap();
            gpu.upload_beside(&other, &next, &gpu.mark().unwrap()).unwrap();
            assert!(next.to_vec().unwrap().iter().all(|&v| v == 77), "{gpu:?}: the new owner's");
            assert!(numbers(&result).iter().all(|&v| v == 6561), "{gpu:?}: the last owner's");
        }
    }
}

/// Each round's sum is computed beside the queue, which meanwhile works on the round before, and read in the queue.
#[test]
fn work_beside_the_queue_keeps_its_order() {
    const N: usize = 100_000;
    for gpu in all() {
        let (part, made) = (gpu.buffer::<u32>(N).unwrap(), gpu.upload(&vec![0_u32; N]).unwrap());
        let kept = [(); 2].map(|()| gpu.buffer::<u32>(N).unwrap());
        let sum = gpu.upload(&vec![0_u32; N]).unwrap();
        let graphs = kept.each_ref().map(|kept| {
            let mut side = adding(&made, &part);
            side.copy((&made, 0), (kept, 0), N).unwrap();
            gpu.graphs_beside([adding(&sum, kept), side]).unwrap()
        });
        let mut free = [gpu.mark().unwrap(), gpu.mark().unwrap()];
        let (mut expected, mut expected_made) = (0_u32, 0_u32);
        for round in 0..10_usize {
            let mut pinned = gpu.pinned::<u32>(N).unwrap();
            numbers_mut(&mut pinned).fill(round as u32 + 1);
            let arrived = gpu.upload_beside(&pinned, &part, &free[(round + 1) % 2]).unwrap();
            let [main, side] = &graphs[round % 2];
            side.run_beside(&[arrived, free[round % 2].clone()]).unwrap();
            main.run().unwrap();
            free[round % 2] = gpu.mark().unwrap();
            expected_made = expected_made.wrapping_mul(3).wrapping_add(round as u32 + 1);
            expected = expected.wrapping_mul(3).wrapping_add(expected_made);
        }
        assert!(sum.to_vec().unwrap().iter().all(|&v| v == expected), "{gpu:?}: in order");
    }
}

/// Results are read while later work runs: as part of the work in the queue, or beside it.
#[test]
fn results_are_read_while_later_work_runs() {
    const N: usize = 100_000;
    for gpu in all() {
        for is_beside in [false, true] {
            let (sum, one) = (gpu.upload(&vec![0_u32; N]).unwrap(), gpu.upload(&vec![1_u32; N]).unwrap());
            let mut results = [(); 3].map(|()| gpu.pinned::<u32>(N).unwrap());
            let mut sent = Vec::new();
            for result in &mut results {
                let add = adding(&sum, &one);
                gpu.run(&add).unwrap();
                assert!(gpu.download_beside(add).is_err(), "{gpu:?}: a kernel is no download");
                let mut read = Commands::new();
                read.download(&sum, result).unwrap();
                let transfer =
                    if is_beside { gpu.download_beside(read) } else { gpu.download(read) }.unwrap();
                // The next round writes what this one reads.
                transfer.hold().unwrap();
                sent.push(transfer);
            }
            for ((result, sent), expected) in results.iter().zip(&sent).zip([1, 4, 13]) {
                let found = numbers_at(result, sent.done(), 7..N).unwrap();
                assert_eq!(found.len(), N - 7);
                assert!(found.iter().all(|&v| v == expected), "{gpu:?}, beside {is_beside}: {expected}");
                assert!(numbers_at(result, sent.done(), 7..N + 1).is_err(), "beyond the end");
            }
        }
    }
}

#[test]
fn stages_are_timed() {
    for gpu in all() {
        let kernel = count_kernel(&gpu);
        let (total, most) = (gpu.upload(&[0_u32]).unwrap(), gpu.upload(&[0_u32]).unwrap());
        let mut commands = Commands::new();
        for name in ["first", "second"] {
            commands.stage(name);
            let arguments = Count::new(&total, &most, 2000, 2000);
            commands.launch(&kernel, kernel.covering(2000, 2000), arguments).unwrap();
        }
        // Mesa 22.3 has no clock: it answers 0 for every event.
        let has_clock = !gpu.info().name.starts_with("llvmpipe");
        gpu.profile(true);
        gpu.run(&commands).unwrap();
        gpu.graph(commands.clone()).unwrap().run().unwrap();
        let stages = gpu.take_stages();
        for name in ["first", "second"] {
            let stage = stages.iter().find(|s| s.name == name).expect("was run");
            assert!(stage.calls == 2 && (stage.seconds > 0.0) == has_clock, "{gpu:?}: {stage:?}");
        }
        gpu.profile(false);
        assert_eq!(gpu.seconds(|| gpu.run(&commands)).unwrap() > 0.0, has_clock, "{gpu:?}: some time");
        assert!(gpu.take_stages().is_empty(), "no longer profiled");
    }
}

#[test]
fn kept_memory_goes_back_when_a_device_is_idle() {
    for gpu in all().iter().map(|gpu| gpu.beside().unwrap()) {
        // What its opening left.
        gpu.release_memory().unwrap();
        gpu.keep_memory_for(Duration::from_millis(100));
        // Twice: what ended with the first memory begins again with the second.
        for bytes in [1 << 20, 1 << 21] {
            let buffer = gpu.buffer::<u8>(bytes).unwrap();
            assert_eq!(gpu.kept_memory(), 0, "{gpu:?}: it is in use");
            let freed = Instant::now();
            drop(buffer);
            let mut kept = gpu.kept_memory();
            assert!(kept >= bytes as u64 || freed.elapsed() > Duration::from_millis(100), "{gpu:?}: {kept}");
            while kept > 0 {
                assert!(freed.elapsed() < Duration::from_secs(60), "{gpu:?}: {kept} bytes are kept for ever");
                sleep(Duration::from_millis(5));
                kept = gpu.kept_memory();
            }
            assert!(freed.elapsed() >= Duration::from_millis(100), "{gpu:?}: returned while it was in use");
        }
    }
}
