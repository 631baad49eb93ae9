//! The fuzz target of every reader: all programs of `Cargo.toml` are this file, and each program's name says which
//! reader it tests.

#![no_main]

mod calibration;
mod image;

use tiepoint::collection::fuzzing;
use tiepoint::evaluate::ground_truth::parse_homography;
use tiepoint::feature::files::{FeatureFormat, parse};
use tiepoint::stereo::cloud::parse_ply;

libfuzzer_sys::fuzz_target!(|data: &[u8]| read(env!("CARGO_BIN_NAME"), data));

fn read(reader: &str, data: &[u8]) {
    match reader {
        // After the bytes that identify each format.
        "bmp" => image::decode(b"BM", data),
        "exr" => image::decode(b"\x76\x2f\x31\x01", data),
        "gif" => image::decode(b"GIF8", data),
        "jpeg" => image::decode(&[0xff, 0xd8, 0xff], data),
        "jpeg2000" => image::decode(b"\xff\x4f\xff\x51", data),
        "jpegxl" => image::decode(b"\xff\x0a", data),
        "npy" => image::decode(b"\x93NUMPY\x01\0", data),
        "pfm" | "pnm" => image::decode(b"P", data),
        "png" => image::decode(b"\x89PNG\r\n\x1a\n", data),
        "tiff" => image::decode(&[], data),
        "webp" => image::decode(b"RIFF\0\x10\0\0WEBP", data),
        "calibration_json" => calibration::read("{", data),
        "calibration_txt" => calibration::read("cam0=[", data),
        "calibration_xml" => calibration::read("<", data),
        "calibration_yaml" => calibration::read("%YAML:1.0\n", data),
        "camera_data" => fuzzing::camera_data(data),
        "collection_features" => drop(fuzzing::features(data)),
        "collection_pairs" => fuzzing::pairs(data),
        "collection_tile" => fuzzing::tile(data),
        "hdf5" => fuzzing::hdf5(data),
        "georeference" => fuzzing::georeference(data),
        "colmap" => features(FeatureFormat::Colmap, data),
        "csv" => features(FeatureFormat::Csv, data),
        "json" => features(FeatureFormat::Json, data),
        "npz" => {
            features(FeatureFormat::Npz, data);
            fuzzing::match_arrays(data);
        }
        "sift" => features(FeatureFormat::Sift, data),
        "homography" => homography(data),
        "matches" => fuzzing::matches(data),
        "ply" => points(data),
        _ => panic!("reader.rs has no reader for the program {reader}"),
    }
}

fn features(format: FeatureFormat, data: &[u8]) {
    let _ = parse(data, format, "fuzz");
}

fn homography(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(h) = parse_homography(text, "fuzz") {
        assert!(h.matrix().iter().flatten().all(|v| v.is_finite()), "a matrix with NaN or infinity");
    }
}

fn points(data: &[u8]) {
    if let Ok(points) = parse_ply(data, "fuzz") {
        assert!(12 * points.len() <= data.len(), "more points than bytes");
    }
}
