#![no_main]

#[path = "../image.rs"]
mod image;

libfuzzer_sys::fuzz_target!(|data: &[u8]| image::decode(&[0xff, 0xd8, 0xff], data));
