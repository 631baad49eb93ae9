#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tiepoint::collection::fuzzing::tile(data));
