//! Writes the seeds of every target into `corpus/`: tiny files of every kind the program writes.

use std::{fs, path::Path};
use tiepoint::{
    feature::{Descriptors, Features, Keypoint, files},
    image::{self, AnyImage, Image, Size},
};

fn main() {
    let scratch = std::env::temp_dir().join(format!("tiepoint-seeds-{}", std::process::id()));
    fs::create_dir_all(&scratch).unwrap();
    images(&scratch);
    features(&scratch);
    fs::remove_dir_all(&scratch).unwrap();
    samples();
    for (name, text) in [
        ("text", "1 0 2\n0 1 3e1\n-1e-5 0 1"),
        ("xml", "<opencv_storage><H><data>1 0 0 0 1 0 0 0 1</data></H></opencv_storage>"),
        ("yaml", "data: [ 1., 0., 0., 0., 1., 0., 0., 0., 1. ]"),
    ] {
        seed("homography", name, text.as_bytes(), 0);
    }
}

/// Puts `bytes`, less the first `skip`, into the corpus of `target`.
fn seed(target: &str, name: &str, bytes: &[u8], skip: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(name), &bytes[skip..]).unwrap();
}

fn images(scratch: &Path) {
    let size = Size::new(11, 7);
    for channels in [1, 2, 3, 4] {
        let n = size.area() * channels;
        let kinds: [AnyImage; 3] = [
            Image::from_vec((0..n).map(|i| (i * i) as u8).collect(), size, channels).unwrap().into(),
            Image::from_vec((0..n).map(|i| (i * i * i) as u16).collect(), size, channels).unwrap().into(),
            Image::from_vec((0..n).map(|i| i as f32 / n as f32).collect(), size, channels).unwrap().into(),
        ];
        for (kind, image) in kinds.iter().enumerate() {
            let magic = [
                ("png", "png", 8),
                ("tif", "tiff", 0),
                ("pam", "pnm", 1),
                ("pnm", "pnm", 1),
                ("pfm", "pfm", 1),
            ];
            for (extension, target, skip) in magic {
                let path = scratch.join(format!("{kind}-{channels}.{extension}"));
                if image::write(&path, image).is_ok() {
                    seed(target, &format!("{kind}-{channels}.{extension}"), &fs::read(&path).unwrap(), skip);
                }
            }
        }
    }
    for (name, text) in
        [("p1", "1\n# a\n3 2\n010 1 1 1"), ("p2", "2 2 2 99 1 2 3 4"), ("p3", "3 1 1 999 1 2 3")]
    {
        seed("pnm", name, text.as_bytes(), 0);
    }
    seed("pnm", "p4", b"4 9 2\n\x55\x80\xaa\x00", 0);
}

/// The library's own samples, of kinds that it does not write.
fn samples() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/tiepoint/tests/samples");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let bytes = fs::read(&path).unwrap();
        match path.extension().unwrap().to_str().unwrap() {
            "jpg" => seed("jpeg", name, &bytes, 3),
            "png" => seed("png", name, &bytes, 8),
            _ => seed("tiff", name, &bytes, 0),
        }
    }
}

fn features(scratch: &Path) {
    for dimension in [0, 2, 128] {
        let keypoints = (0..2).map(|i| {
            let v = i as f32 + 0.25;
            Keypoint { x: v, y: -v, scale: v, angle: v, response: v * 1e-9, sign: 1, octave: -1, layer: 2 }
        });
        let keypoints: Vec<_> = keypoints.collect();
        let n = keypoints.len() * dimension;
        let kinds = [
            Descriptors::U8((0..n).map(|i| (i * 37) as u8).collect()),
            Descriptors::F32((0..n).map(|i| i as f32 / 256.0).collect()),
        ];
        for (kind, descriptors) in kinds.into_iter().enumerate() {
            let features =
                Features { keypoints: keypoints.clone(), descriptors, dimension, image: Size::new(64, 48) };
            for (extension, target) in
                [("csv", "csv"), ("json", "json"), ("npz", "npz"), ("sift", "sift"), ("txt", "colmap")]
            {
                let path = scratch.join(format!("{dimension}-{kind}.{extension}"));
                if files::write(&path, &features).is_ok() {
                    let name = format!("{dimension}-{kind}.{extension}");
                    seed(target, &name, &fs::read(&path).unwrap(), 0);
                }
            }
        }
    }
}
