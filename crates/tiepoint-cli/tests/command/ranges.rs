//! Pictures of 16 bits and floats, whatever part of their range they use.

use super::*;

#[test]
fn a_picture_beyond_the_limit_is_refused_and_the_flag_named_raises_it() {
    let folder = Folder::new("limits");
    let texture: Image<f32> = Texture::new(8).image(SIZE, &Cpu::sequential());
    let squeezed = Image::from_fn(SIZE, |x, y| (900.0 + 500.0 * texture.row(y)[x]) as u16);
    let picture = folder.write("sixteen.tif", &squeezed.into());
    let (at, [found, limited]) = (SIZE.area() * 2, ["found.csv", "limited.csv"].map(|name| folder.at(name)));
    let less = (at - 1).to_string();
    let refused = fails(&["detect", &picture, "--max-bytes", &less], 1);
    assert!(refused.contains(&at.to_string()) && refused.contains("raise max_bytes"), "{refused}");
    let refused = fails(&["match", &picture, &picture, "--max-pixels", "9"], 1);
    assert!(refused.contains("raise max_pixels"), "{refused}");
    let refused =
        fails(&["stereo", &picture, &picture, "--max-bytes", "1K", "--output", &folder.at("d.pfm")], 1);
    assert!(refused.contains("raise max_bytes"), "{refused}");
    works(&["detect", &picture, "--output", &found, "--threads", "1"]);
    // No more is needed than the picture takes, and its range is stretched all the same.
    works(&["detect", &picture, "--output", &limited, "--threads", "3", "--max-bytes", &at.to_string()]);
    let [found, limited] = [found, limited].map(|path| std::fs::read_to_string(path).unwrap());
    assert!(found.lines().count() > 100 && found == limited, "{} features", found.lines().count());
}

#[test]
fn squeezed_pictures_give_the_matches_of_the_original() {
    let folder = Folder::new("ranges");
    let (a, b, truth) = folder.scene();
    let matches = |a: &str, b: &str| {
        let json = works(&["match", a, b, "--json"]);
        assert!(corner_error(&matrix(&json), &truth, SIZE) < 3.0, "{json}");
        number(&json, "inliers")
    };
    let squeezed = |path: &str, name: &str, low: f64, high: f64, no_data: f64| -> String {
        let AnyImage::U8(image) = image::read(path, &ReadOptions::default()).unwrap() else {
            panic!("8 bits")
        };
        let value = |x: usize, y: usize| match x + y < 40 {
            true => no_data,
            false => low + (high - low) * f64::from(image.row(y)[x]) / 255.0,
        };
        let size = image.size();
        let squeezed: AnyImage = match name.ends_with("tif") {
            true => Image::from_fn(size, |x, y| value(x, y) as f32).into(),
            false => Image::from_fn(size, |x, y| value(x, y).round() as u16).into(),
        };
        folder.write(name, &squeezed)
    };
    let original = matches(&a, &b);
    assert!(original > 100.0, "{original} inliers");
    // A twentieth of 16 bits; the same with marks of no data; a sensor's 300 values; floats of any kind.
    for (extension, low, high, no_data) in [
        ("png", 20_000.0, 23_277.0, 20_000.0),
        ("png", 20_000.0, 23_277.0, 0.0),
        ("png", 100.0, 420.0, 0.0),
        ("tif", 0.02, 0.07, 0.0),
        ("tif", 271.0, 304.0, -9999.0),
    ] {
        let [c, d] = [(&a, "c"), (&b, "d")]
            .map(|(path, name)| squeezed(path, &format!("{name}.{extension}"), low, high, no_data));
        let found = matches(&c, &d);
        assert!(found >= 0.9 * original, "{low} to {high}, {no_data}: {found} of {original} inliers");
    }
}
