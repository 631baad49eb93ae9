//! Impossible requests are errors that name the reason.

use super::{Add, COUNT, Count, add_kernel, all, numbers_at, run};
use tiepoint_gpu::{Commands, Error, Gpu, Info, KernelSource, kernel};

/// Objects of another `Gpu::open` are refused everywhere: the same handle may mean other memory on this device.
#[test]
fn objects_of_another_device_are_refused() {
    for gpu in all() {
        let other = gpu.beside().unwrap();
        let (kernel, foreign_kernel) = (add_kernel(&gpu), add_kernel(&other));
        let [own, part, foreign] = [&gpu, &gpu, &other].map(|gpu| gpu.upload(&[1_u32; 64]).unwrap());
        let refused = |result: Result<(), Error>| match result {
            Err(Error::Usage(message)) => assert!(message.contains("made them"), "{message}"),
            unexpected => panic!("{gpu:?}: {unexpected:?}"),
        };
        let add = |sum, part| Add { sum, part, n: 64 };
        refused(Commands::new().launch(&kernel, [1, 1, 1], add(&own, &foreign)));
        refused(Commands::new().launch(&foreign_kernel, [1, 1, 1], add(&own, &part)));
        let mut commands = Commands::new();
        commands.launch(&kernel, [1, 1, 1], add(&own, &part)).unwrap();
        refused(commands.zero(&foreign));
        refused(commands.copy((&own, 0), (&foreign, 0), 64));
        let (pinned, mut foreign_pinned) = (gpu.pinned::<u32>(64).unwrap(), other.pinned::<u32>(64).unwrap());
        refused(commands.upload(&foreign_pinned, &own));
        refused(commands.download(&own, &mut foreign_pinned));
        let mut foreign_commands = Commands::new();
        foreign_commands.zero(&foreign).unwrap();
        refused(commands.append(foreign_commands.clone()));
        refused(gpu.run(&foreign_commands));
        refused(gpu.graph(foreign_commands).map(drop));
        let mark = other.mark().unwrap();
        refused(gpu.wait(&mark));
        refused(gpu.upload_beside(&pinned, &own, &mark).map(drop));
        refused(other.upload_beside(&pinned, &own, &mark).map(drop));
        refused(numbers_at(&pinned, &mark, 0..1).map(drop));
        let mut read = Commands::new();
        read.download(&foreign, &mut foreign_pinned).unwrap();
        refused(gpu.download_beside(read).map(drop));
        gpu.run(&commands).unwrap();
        assert_eq!(own.to_vec().unwrap(), [4; 64], "{gpu:?}: a refused command changed the buffer");
    }
}

#[test]
fn short_and_shared_buffers_are_refused() {
    for gpu in all() {
        let (kernel, mut commands) = (add_kernel(&gpu), Commands::new());
        let [sum, part] = [64, 63].map(|n| gpu.upload(&vec![1_u32; n]).unwrap());
        let wrong = commands.launch(&kernel, [1, 1, 1], Add { sum: &sum, part: &part, n: 64 });
        let message = wrong.unwrap_err().to_string();
        assert!(["add", "`part`", "63", "64"].iter().all(|word| message.contains(word)), "{message}");
        let message = commands.launch(&kernel, [1, 1, 1], Add { sum: &sum, part: &sum, n: 64 });
        let message = message.unwrap_err().to_string();
        assert!(message.contains("`part` is written"), "{message}");
        commands.launch(&kernel, [1, 1, 1], Add { sum: &sum, part: &part, n: 63 }).unwrap();
        assert_eq!(commands.launches(), 1, "{gpu:?}: only the last launch is valid");
    }
}

kernel! {
    unsafe kernel broken(groups) = Broken {
        write a: f32 [1],
    } {}
}

#[test]
fn errors_say_what_was_wrong() {
    for gpu in all() {
        let api = gpu.info().api;
        let broken = gpu.program(
            &KernelSource::new("broken")
                .kernel::<Broken<'_>>([1, 1])
                .text("KERNEL(broken) { a[0] = nonsense; }"),
        );
        let message = broken.unwrap_err().to_string();
        assert!(message.contains("broken") && message.contains("nonsense"), "the compiler's log: {message}");

        let declared = KernelSource::new("count").kernel::<Count<'_>>([32, 4]);
        let program = gpu.program(&declared.clone().text(COUNT)).unwrap();
        let message = program.kernel::<Add<'_>>().unwrap_err().to_string();
        assert!(message.contains("count declares no kernel add"), "{message}");
        let program = gpu.program(&declared.kernel::<Broken<'_>>([1, 1]).text(COUNT)).unwrap();
        let message = program.kernel::<Broken<'_>>().unwrap_err().to_string();
        assert!(message.contains("broken"), "names the kernel that the text lacks: {message}");
        let (kernel, mut commands) = (program.kernel::<Count<'_>>().unwrap(), Commands::new());
        let [total, most] = [(); 2].map(|()| gpu.upload(&[0_u32]).unwrap());
        let result = commands.launch(&kernel, [1, 70_000, 1], Count::new(&total, &most, 1, 1));
        assert!(result.unwrap_err().to_string().contains("too many"), "too many groups");

        let far = Gpu::open(api, 4_000).unwrap_err().to_string();
        assert!(far.contains(&format!("{api}:4000")) && far.contains("number"), "{far}");
        let memory = gpu.info().memory as usize;
        match gpu.buffer::<f32>(memory).unwrap_err() {
            Error::Memory { asked, .. } => assert!(asked >= memory as u64 * 4, "{asked}"),
            other => panic!("{other}"),
        }
        let after = gpu.upload(&[1_u8, 2, 3]).unwrap();
        assert_eq!(after.to_vec().unwrap(), [1, 2, 3], "{gpu:?}: works on after an error");
    }
}

kernel! {
    unsafe kernel turn(groups) = Turn {
        write end: u32 [1],
    } {
        turns: u32,
    }
}

const TURN: &str = "KERNEL(turn) {
    u32 number = 7u;
    for (u32 i = 0u; i < args.turns; i++) number = number * 1664525u + 1013904223u;
    if (LANE_X == 0) end[0] = number;
}";

/// A device that silently ends loops early, as Mesa's llvmpipe does after 65 535 turns, is refused.
#[test]
fn a_loop_runs_to_its_end_or_the_device_is_refused() {
    for gpu in all() {
        let source = KernelSource::new("turn").kernel::<Turn<'_>>([32, 1]).text(TURN);
        let end = gpu.buffer::<u32>(1).unwrap();
        let runs = [1000, 65_000, 66_000, 300_000].map(|turns| {
            run(&gpu, &source, [1; 3], Turn { end: &end, turns });
            let next = |number: u32, _| number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            end.to_vec().unwrap()[0] == (0..turns).fold(7, next)
        });
        assert_eq!(runs[..2], [true; 2], "{gpu:?}: short loops");
        let Info { api, index, .. } = *gpu.info();
        match Gpu::open(api, index) {
            Ok(_) => assert_eq!(runs, [true; 4], "{gpu:?}: {runs:?}"),
            Err(refused) => {
                let message = refused.to_string();
                assert!(message.contains("loops early") && message.contains("another device"), "{message}");
                assert_eq!(runs[2..], [false; 2], "{gpu:?}: refused though long loops run");
                assert!(gpu.require_waiting().is_err(), "{gpu:?}");
            }
        }
    }
}

/// On a device without progress of all groups, kernels whose groups wait for each other are refused; all else runs.
#[test]
fn a_device_without_progress_of_groups_runs_kernels_that_do_not_wait() {
    for gpu in all() {
        let Info { api, index, .. } = *gpu.info();
        let still = Gpu::open_without_progress(api, index).unwrap();
        let refused = still.require_waiting().unwrap_err().to_string();
        let wanted = if gpu.info().has_whole_words { "go on while others wait" } else { "64-bit atomics" };
        assert!(refused.contains(wanted), "{refused}");
        assert_eq!(still.upload(&[1_u32, 2]).unwrap().to_vec().unwrap(), [1, 2], "{gpu:?}");
    }
}
