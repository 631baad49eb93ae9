#![no_main]

#[path = "../image.rs"]
mod image;

libfuzzer_sys::fuzz_target!(|data: &[u8]| image::decode(b"\xff\x4f\xff\x51", data));
