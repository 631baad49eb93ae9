#![no_main]

#[path = "../image.rs"]
mod image;

libfuzzer_sys::fuzz_target!(|data: &[u8]| image::decode(b"\x93NUMPY\x01\0", data));
