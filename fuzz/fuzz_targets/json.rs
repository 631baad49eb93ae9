#![no_main]

use tiepoint::feature::files::{FeatureFormat, parse};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = parse(data, FeatureFormat::Json, "fuzz");
});
