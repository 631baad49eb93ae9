#![no_main]

use tiepoint::stereo::cloud::parse_ply;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(points) = parse_ply(data, "fuzz") {
        assert!(12 * points.len() <= data.len(), "more points than bytes");
    }
});
