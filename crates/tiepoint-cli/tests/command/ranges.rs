//! Pictures of 16 bits and floats that use any part of their range.

use super::*;

#[test]
fn a_picture_beyond_the_limit_is_refused_and_the_flag_named_raises_it() {
    let folder = Folder::new("limits");
    let texture: Image<f32> = Texture::new(8).image(SIZE, &Cpu::sequential());
    folder.write("a.tif", Image::from_fn(SIZE, |x, y| (900.0 + 500.0 * texture.row(y)[x]) as u16));
    let bytes = SIZE.area() * 2;
    for (line, words) in [
        (format!("detect a.tif --max-bytes {}", bytes - 1), &["153600", "raise max_bytes"][..]),
        ("match a.tif a.tif --max-pixels 9".to_owned(), &["raise max_pixels"]),
        ("stereo a.tif a.tif --max-bytes 1K --output d.pfm".to_owned(), &["raise max_bytes"]),
    ] {
        folder.refuses(line, 1, words);
    }
    folder.works("detect a.tif --output found.csv --threads 1");
    // Memory for the picture alone is enough, and its range is still stretched.
    folder.works(format!("detect a.tif --output limited.csv --threads 3 --max-bytes {bytes}"));
    let [found, limited] = ["found.csv", "limited.csv"].map(|name| folder.text(name));
    assert!(found.lines().count() > 100 && found == limited, "{} features", found.lines().count());
}

#[test]
fn squeezed_pictures_give_the_matches_of_the_original() {
    let folder = Folder::new("ranges");
    let truth = folder.scene();
    let matches = |a: &str, b: &str| {
        let json = folder.works(format!("match {a} {b} --json"));
        assert!(corner_error(&matrix(&json), &truth, SIZE) < 3.0, "{json}");
        number(&json, "inliers")
    };
    let squeezed = |path: &str, name: &str, low: f64, high: f64, no_data: f64| {
        let image = folder.bytes(path);
        let value = |x: usize, y: usize| match x + y < 40 {
            true => no_data,
            false => low + (high - low) * f64::from(image.row(y)[x]) / 255.0,
        };
        match name.ends_with("tif") {
            true => folder.write(name, Image::from_fn(SIZE, |x, y| value(x, y) as f32)),
            false => folder.write(name, Image::from_fn(SIZE, |x, y| value(x, y).round() as u16)),
        }
    };
    let original = matches("a.png", "b.png");
    assert!(original > 100.0, "{original} inliers");
    // A twentieth of the 16-bit range; the same with pixels of no data; 300 values of a sensor; ranges of floats.
    for (extension, low, high, no_data) in [
        ("png", 20_000.0, 23_277.0, 20_000.0),
        ("png", 20_000.0, 23_277.0, 0.0),
        ("png", 100.0, 420.0, 0.0),
        ("tif", 0.02, 0.07, 0.0),
        ("tif", 271.0, 304.0, -9999.0),
    ] {
        let names = ["c", "d"].map(|name| format!("{name}.{extension}"));
        for (path, name) in ["a.png", "b.png"].iter().zip(&names) {
            squeezed(path, name, low, high, no_data);
        }
        let found = matches(&names[0], &names[1]);
        assert!(found >= 0.9 * original, "{low} to {high}, {no_data}: {found} of {original} inliers");
    }
}
