#![no_main]

#[path = "../calibration.rs"]
mod calibration;

libfuzzer_sys::fuzz_target!(|data: &[u8]| calibration::read("<", data));
