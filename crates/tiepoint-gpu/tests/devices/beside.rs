//! Programs are compiled beside work that does not wait for them.

use super::{COUNT, Count, all};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};
use tiepoint_gpu::{Error, Gpu, KernelSource, Program};

/// Asks for a program until it is ready or does not compile; the first time it cannot be ready.
fn asked_until_known(gpu: &Gpu, source: &KernelSource) -> Result<Program, Error> {
    let first = gpu.program(source);
    assert!(matches!(first, Err(Error::NotReady { .. })), "{gpu:?} waited, or knew it: {first:?}");
    let began = Instant::now();
    loop {
        match gpu.program(source) {
            Err(Error::NotReady { .. }) => sleep(Duration::from_millis(5)),
            known => return known,
        }
        assert!(began.elapsed() < Duration::from_secs(300), "{gpu:?}: the program is never compiled");
    }
}

#[test]
fn programs_are_compiled_beside_work() {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    for gpu in all() {
        // No cache has it.
        let new = KernelSource::new("count").define("NOW", since.as_nanos()).kernel::<Count<'_>>([32, 4]);
        let leaving = gpu.handing_over();
        let source = new.clone().text(COUNT);
        assert_eq!(leaving.unknown(vec![source.clone()]).len(), 1, "not requested yet");
        asked_until_known(&leaving, &source).unwrap().kernel::<Count<'_>>().unwrap();
        assert!(gpu.unknown(vec![source]).is_empty(), "handles of a device know the same programs");
        let broken = new.text("KERNEL(count) { total[0] = nonsense; }");
        let refused = asked_until_known(&leaving, &broken);
        for refused in [refused, leaving.program(&broken)] {
            let message = refused.unwrap_err().to_string();
            assert!(message.contains("nonsense"), "{gpu:?}: the compiler's log: {message}");
        }
    }
}
