#![no_main]

use tiepoint::feature::files::{FeatureFormat, decode};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = decode(data, FeatureFormat::Npz, "fuzz");
});
