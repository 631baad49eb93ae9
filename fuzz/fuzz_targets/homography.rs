#![no_main]

use tiepoint::evaluate::ground_truth::parse_homography;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(h) = parse_homography(text, "fuzz") {
        assert!(h.matrix().iter().flatten().all(|v| v.is_finite()), "a number that is none");
    }
});
