#![no_main]

#[path = "../image.rs"]
mod image;

libfuzzer_sys::fuzz_target!(|data: &[u8]| image::decode(b"\x89PNG\r\n\x1a\n", data));
