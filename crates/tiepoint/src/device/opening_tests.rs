//! Work that begins while a GPU is being opened gives the CPU's result, whenever the GPU is open.

use super::cpu::Driver;
use super::gpu::all;
use super::handing_over_tests::{Call, collection_files, detected, matched, of_pairs, of_stream};
use super::opening::Opening;
use super::{Cancel, Cpu, Processor};
use crate::Error;
use crate::synth::Random;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Runs a call on the CPU, then beside every GPU that is open after a random part of the time that the CPU takes, or a
/// little later; so it is open before the work, during it, or only after it.
fn at_any_moment((what, call): &Call<'_, impl PartialEq>) {
    let cpu = Cpu::with_threads(2).unwrap();
    let begin = Instant::now();
    let wanted = call(&cpu.clone().into());
    let took = begin.elapsed();
    let mut random = Random::new(what.len() as u64);
    for gpu in all() {
        assert!(call(&Processor::with_gpu(cpu.clone(), gpu.clone())) == wanted, "{what} on {gpu:?}");
        let mut helped = 0;
        for round in 0..8 {
            let delay = if round == 0 { Duration::ZERO } else { took * random.below(130) as u32 / 100 };
            let opened = gpu.clone();
            let processor = Processor::opening(cpu.clone(), "the GPU".into(), move || {
                sleep(delay);
                Some(opened)
            });
            // The delay counts from now.
            let _ = std::thread::spawn({
                let processor = processor.clone();
                move || processor.gpu().is_some()
            });
            if round == 0 {
                processor.gpu();
            }
            assert!(call(&processor) == wanted, "{what} on {gpu:?}, open after {delay:?}");
            assert_eq!(processor.take_notes(), Vec::<String>::new(), "{what}: notes");
            helped += usize::from(processor.take_computed().len() > usize::from(round > 0));
        }
        assert!(helped > 0, "{what} on {gpu:?}: it computed in none of 8 runs");
    }
}

#[test]
fn a_gpu_that_opens_during_the_work_changes_nothing() {
    at_any_moment(&detected());
    at_any_moment(&matched());
    at_any_moment(&of_stream());
    at_any_moment(&of_pairs());
    at_any_moment(&collection_files("opening"));
}

/// A processor whose GPU is being opened until the second value is dropped; then there is none.
fn stuck(cpu: Cpu) -> (Processor, impl Sized) {
    let (end, wait) = channel::<()>();
    let processor = Processor::opening(cpu, "the GPU".into(), move || {
        let _ = wait.recv();
        None
    });
    (processor, end)
}

#[test]
fn nothing_waits_for_a_gpu_that_takes_long_to_open() {
    let cpu = Cpu::with_threads(2).unwrap();
    let (processor, end) = stuck(cpu.clone());
    let (_, call) = of_pairs();
    assert!(call(&processor) == call(&cpu.into()), "the CPU's result");
    assert!(processor.take_not_ready() > 0, "it is recorded that the GPU was not ready");
    assert_eq!(processor.take_computed(), ["cpu"]);
    assert!(processor.may_have_gpu() && processor.gpu_now().is_err(), "it is not known yet");
    drop(end);
    assert!(processor.gpu().is_none() && !processor.may_have_gpu(), "no GPU could be opened");
    assert!(call(&processor) == call(&processor.clone().without_gpu()), "as without one");
    assert_eq!(processor.take_not_ready(), 0, "nothing is waited for any more");
}

#[test]
fn threads_are_left_to_a_driver_while_it_starts() {
    for (threads, cores, left) in [(16, 16, 4), (14, 16, 2), (12, 16, 0), (8, 8, 2), (7, 7, 0), (2, 64, 0)] {
        let driver = Arc::new(Driver::beside(threads, cores));
        let cpu = Cpu::with_threads(threads).unwrap().beside(driver.clone());
        assert_eq!(cpu.threads_at_work(), threads, "{threads} of {cores}: it does not start yet");
        driver.starts.store(true, Ordering::Relaxed);
        assert_eq!(cpu.threads_at_work(), threads - left, "{threads} of {cores}");
        assert!(cpu.is_beside_start() && cpu.threads_beside_start() == threads - left);
        assert_eq!(cpu.map(40, |i| i), (0..40).collect::<Vec<_>>());
    }
    let (driver, (end, wait)) = (Arc::new(Driver::default()), channel::<()>());
    let opening = Opening::begin("the GPU".into(), driver.clone(), move || wait.recv().ok().and(None));
    opening.hurry();
    while !driver.starts.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(1));
    }
    drop(end);
    assert!(opening.wait().is_none() && !driver.starts.load(Ordering::Relaxed));
}

#[test]
fn cancelling_ends_work_while_a_gpu_is_opened() {
    let cancel = Cancel::new();
    let (processor, _end) = stuck(Cpu::with_threads(2).unwrap());
    let processor = processor.cancelled_by(&cancel);
    cancel.cancel();
    let found = processor.gpu_or_cpu("counting", |_| Ok(1), |cpu| cpu.check().map(|()| 2));
    assert!(matches!(found, Err(Error::Cancelled)), "{found:?}");
}

#[test]
fn a_gpu_gets_what_it_was_told_while_it_was_opened() {
    for gpu in all() {
        let own = gpu.beside().unwrap();
        let (opened, cancel) = (own.clone(), Cancel::new());
        let processor = Processor::opening(Cpu::sequential(), "the GPU".into(), || Some(opened));
        let processor = processor.cancelled_by(&cancel);
        processor.profile_gpu(true);
        let (told, heard) = channel();
        processor.when_open(move |has_gpu| told.send(has_gpu).unwrap());
        assert!(processor.gpu().is_some_and(|gpu| gpu.is(&own)), "the GPU that was opened");
        assert!(heard.recv().unwrap(), "told that there is a GPU");
        cancel.cancel();
        let ran = own.run(&tiepoint_gpu::Commands::new());
        assert!(matches!(ran, Err(tiepoint_gpu::Error::Cancelled)), "{ran:?}");
    }
}

#[test]
fn what_is_told_of_a_gpu_may_use_the_processor_and_may_panic() {
    let (end, wait) = channel::<()>();
    let open = move || wait.recv().ok().and(None);
    let processor = Processor::opening(Cpu::sequential(), "the GPU".into(), open);
    let (told, heard) = channel();
    let ask = || {
        let (own, told) = (processor.clone(), told.clone());
        processor.when_open(move |has_gpu| {
            told.send([has_gpu, own.gpu().is_some(), own.gpu_now().is_err()]).unwrap();
        });
        heard.recv_timeout(Duration::from_secs(60))
    };
    processor.when_open(|_| panic!("a callback may fail"));
    drop(end);
    assert_eq!(ask(), Ok([false; 3]), "when it is known");
    assert_eq!(ask(), Ok([false; 3]), "afterwards");
}

/// The CPU's side ends only when it is cancelled, so the GPU's result must end it.
#[test]
fn the_first_result_counts() {
    for gpu in all() {
        let opened = gpu.clone();
        let processor = Processor::opening(Cpu::sequential(), "the GPU".into(), || Some(opened));
        let endless = |cpu: &Cpu| loop {
            cpu.check()?;
            sleep(Duration::from_millis(1));
        };
        assert_eq!(processor.gpu_or_cpu("counting", |_| Ok(1), endless).unwrap(), 1, "the GPU's result");
        assert_eq!(processor.take_computed().len(), 1, "by the GPU alone");
    }
}

#[test]
fn a_failing_or_missing_gpu_leaves_the_work_to_the_cpu() {
    for gpu in all() {
        let opened = gpu.clone();
        let processor = Processor::opening(Cpu::sequential(), "the GPU".into(), || Some(opened));
        let (failed, wait) = channel();
        let fails = |_: &super::Gpu| -> crate::Result<i32> {
            failed.send(()).unwrap();
            Err(Error::Device { device: "card".into(), reason: "it fell off the bus".into() })
        };
        let found = processor.gpu_or_cpu("counting", fails, |_| {
            wait.recv().unwrap();
            Ok(2)
        });
        assert_eq!(found.unwrap(), 2, "the CPU's result");
        let notes = processor.take_notes();
        assert!(notes.len() == 1 && notes[0].contains("it fell off the bus"), "{notes:?}");
    }
    let panics = || -> Option<super::Gpu> { std::panic::resume_unwind(Box::new("a panic")) };
    let processor = Processor::opening(Cpu::sequential(), "the GPU".into(), panics);
    assert!(processor.gpu().is_none(), "a panic while opening leaves no GPU");
}
