//! Writes the seeds of every target into `corpus/`: tiny files of every kind the program writes.

use std::{fs, path::Path};
use tiepoint::image::{self, AnyImage, Image, Size};

fn main() {
    images();
}

/// Puts `bytes`, less the first `skip`, into the corpus of `target`.
fn seed(target: &str, name: &str, bytes: &[u8], skip: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(name), &bytes[skip..]).unwrap();
}

fn images() {
    let scratch = std::env::temp_dir().join(format!("tiepoint-seeds-{}", std::process::id()));
    fs::create_dir_all(&scratch).unwrap();
    let size = Size::new(11, 7);
    for channels in [1, 2, 3, 4] {
        let n = size.area() * channels;
        let kinds: [AnyImage; 3] = [
            Image::from_vec((0..n).map(|i| (i * i) as u8).collect(), size, channels).unwrap().into(),
            Image::from_vec((0..n).map(|i| (i * i * i) as u16).collect(), size, channels).unwrap().into(),
            Image::from_vec((0..n).map(|i| i as f32 / n as f32).collect(), size, channels).unwrap().into(),
        ];
        for (kind, image) in kinds.iter().enumerate() {
            let magic = [("png", "png", 8), ("tif", "tiff", 0), ("pam", "pnm", 1), ("pnm", "pnm", 1), ("pfm", "pfm", 1)];
            for (extension, target, skip) in magic {
                let path = scratch.join(format!("{kind}-{channels}.{extension}"));
                if image::write(&path, image).is_ok() {
                    seed(target, &format!("{kind}-{channels}.{extension}"), &fs::read(&path).unwrap(), skip);
                }
            }
        }
    }
    fs::remove_dir_all(&scratch).unwrap();
    for (name, text) in [("p1", "1\n# a\n3 2\n010 1 1 1"), ("p2", "2 2 2 99 1 2 3 4"), ("p3", "3 1 1 999 1 2 3")] {
        seed("pnm", name, text.as_bytes(), 0);
    }
    seed("pnm", "p4", b"4 9 2\n\x55\x80\xaa\x00", 0);
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/tiepoint/tests/samples");
    for name in ["grey.jpg", "colour.jpg", "progressive.jpg"] {
        seed("jpeg", name, &fs::read(samples.join(name)).unwrap(), 3);
    }
}
