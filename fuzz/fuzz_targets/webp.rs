#![no_main]

#[path = "../image.rs"]
mod image;

libfuzzer_sys::fuzz_target!(|data: &[u8]| image::decode(b"RIFF\0\x10\0\0WEBP", data));
