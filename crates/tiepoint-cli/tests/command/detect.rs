//! `detect`: options, masks, and many images in one call.

use super::*;

#[test]
fn detect_reports_and_writes() {
    let folder = Folder::new("detect");
    folder.texture("a.png", SIZE, 1);
    for detector in ["sift", "surf"] {
        let json = folder.works(format!("detect a.png --detector {detector} --json -o k.csv --draw k.png"));
        assert_eq!(json.lines().count(), 1, "one object");
        assert_eq!((number(&json, "width"), number(&json, "height")), (320.0, 240.0), "{json}");
        for key in ["image", "detector", "device"] {
            assert!(value(&json, key).starts_with('"'), "{key} in {json}");
        }
        let seconds = value(&json, "seconds");
        let [total, read, compute, write] = ["total", "read", "compute", "write"].map(|k| number(seconds, k));
        assert!(read > 0.0 && compute > 0.0 && write > 0.0 && total >= read + compute + write, "{seconds}");
        let text = folder.text("k.csv");
        assert!(text.starts_with("x,y,scale,angle,response,sign,octave,layer,d0,d1,"), "header");
        let features = number(&json, "features");
        assert!(features > 100.0, "{features} {detector} features of a rich texture");
        assert_eq!(text.lines().count() as f64, features + 1.0, "a line a feature");
        let drawn = folder.image("k.png");
        assert_eq!((drawn.size(), drawn.channels()), (SIZE, 3), "the picture");
    }
}

#[test]
fn many_images_in_one_call() {
    let folder = Folder::new("many");
    for (i, (width, height)) in [(320, 240), (200, 150), (320, 240)].into_iter().enumerate() {
        folder.texture(&format!("{i}.png"), Size::new(width, height), i as u64);
    }
    let alone = [0, 1, 2].map(|i| {
        folder.works(format!("detect {i}.png -o alone.csv"));
        folder.read("alone.csv")
    });
    folder.put("#2.png", folder.read("2.png"));
    folder.put("list.txt", "# frames\n0.png\n\n1.png\n#2.png\n#0.png\n");
    folder.make("out");
    for images in ["--list list.txt", "@list.txt"] {
        let json = folder.works(format!("detect {images} -o out/{{}}.csv --json"));
        assert_eq!(json.lines().count(), 3, "an object an image");
        for (i, wanted) in alone.iter().enumerate() {
            // A line that names a file is no comment.
            let name = format!("out/{}{i}.csv", if i == 2 { "#" } else { "" });
            assert!(folder.read(&name) == *wanted, "image {i}: not as when detected alone");
            folder.remove(&name);
        }
    }
    folder.put("bad.png", "no image");
    folder.refuses("detect 0.png bad.png 1.png -o out", 1, &["bad.png", "1 of 3"]);
    assert!(folder.has("out/1.csv"), "the image after the bad one");
    folder.refuses("detect 0.png 1.png -o list.txt", 2, &["{}"]);
}

#[test]
fn reading_ahead_changes_no_result() {
    let folder = Folder::new("ahead");
    for i in 0..8 {
        folder.texture(&format!("{i}.png"), if i == 3 { Size::new(90, 70) } else { SIZE }, i);
    }
    folder.put("bad.pgm", "no image");
    folder.make("out");
    let images = "0.png 1.png 2.png 3.png 4.png bad.pgm 5.png 6.png 7.png absent.png";
    let run = |device: &str, threads: u32| {
        let line = format!("detect {images} --device {device} --threads {threads} -o out/");
        let (code, [said, told]) = ran(&mut folder.tiepoint(line));
        let said: Vec<_> = said.lines().map(|line| line.rsplit_once(',').unwrap().0.to_owned()).collect();
        let files: Vec<_> = (0..8).map(|i| folder.read(&format!("out/{i}.csv"))).collect();
        (code, said, told, files)
    };
    let wanted = run("cpu", 1);
    assert_eq!((wanted.0, wanted.1.len()), (Some(1), 8), "eight good images");
    for device in cpu_and(&["opencl"]) {
        for threads in [1, 2, 5] {
            assert!(run(device, threads) == wanted, "{device}, {threads} threads");
        }
    }
}

#[test]
fn options_reach_the_detector() {
    let folder = Folder::new("options");
    folder.texture("a.png", SIZE, 5);
    let count = |more: &str| number(&folder.works(format!("detect a.png --json {more}")), "features");
    let (all, surf) = (count(""), count("--detector surf"));
    for more in ["--keep scale", "--keep response", "--even"] {
        assert_eq!(count(&format!("--max-features 50 {more}")), 50.0, "{more}");
    }
    for fewer in ["--first-octave 0", "--contrast 0.1", "--edge 2", "--octaves 1"] {
        assert!(count(fewer) < all, "{fewer}");
    }
    assert!(count("--detector surf --threshold 0.01") < surf, "threshold");
    for preset in ["opensurf", "opencv"] {
        assert!(count(&format!("--detector surf --preset {preset}")) > 0.0, "{preset}");
    }
    for (more, width) in
        [("", 128), ("--detector surf", 64), ("--detector surf --extended", 128), ("--descriptors none", 0)]
    {
        folder.works(format!("detect a.png -o k.csv {more}"));
        let columns = folder.text("k.csv").lines().next().unwrap().split(',').count();
        assert_eq!(columns - 8, width, "{more}");
    }
}

#[test]
fn masks_and_holes() {
    let folder = Folder::new("masks");
    folder.texture("a.png", SIZE, 5);
    folder.write("mask.png", Image::from_fn(SIZE, |x, _| if x < 160 { 0_u8 } else { 9 }));
    let places = |arguments: &str| -> Vec<[f32; 2]> {
        folder.works(format!("detect {arguments} -o k.csv"));
        let place = |l: &str| {
            let mut v = l.split(',').map(|v| v.parse().unwrap());
            [v.next().unwrap(), v.next().unwrap()]
        };
        folder.text("k.csv").lines().skip(1).map(place).collect()
    };
    for detector in ["sift", "surf"] {
        let found = places(&format!("a.png --detector {detector} --mask mask.png"));
        assert!(!found.is_empty() && found.iter().all(|p| p[0] >= 159.5), "{detector}: left half masked");
    }
    let shown = Image::from_fn(SIZE, |x, _| if x < 160 { 0_u8 } else { 255 });
    folder.write("half.png", image::with_alpha(&folder.image("a.png"), &shown).unwrap());
    for drawn in ["", "--draw drawn.png"] {
        let found = places(&format!("half.png {drawn}"));
        assert!(!found.is_empty() && found.iter().all(|p| p[0] >= 164.5), "left half transparent");
    }
    let mut metres: Image<f32> = Texture::new(5).image(SIZE, &Cpu::sequential());
    metres.data_mut().iter_mut().for_each(|v| *v = 100.0 + 80.0 * *v);
    for y in 100..120 {
        metres.row_mut(y)[150..170].fill(f32::NAN);
    }
    folder.write("dem.tif", metres);
    for detector in ["sift", "surf"] {
        let found = places(&format!("dem.tif --detector {detector}"));
        let near = |p: &[f32; 2]| (146.0..174.0).contains(&p[0]) && (96.0..124.0).contains(&p[1]);
        assert!(found.len() > 50 && !found.iter().any(near), "{detector}: nothing at the hole");
    }
    let bytes = folder.bytes("a.png");
    folder.write("twelve.png", Image::from_fn(SIZE, |x, y| u16::from(bytes.row(y)[x]) * 16));
    assert!(number(&folder.works("detect twelve.png --json"), "features") > 100.0, "12 of 16 bits");
    folder.texture("small.png", Size::new(9, 9), 1);
    folder.refuses("detect a.png --mask small.png", 1, &["mask"]);
    folder.refuses("detect a.png --mask no.png", 1, &["no.png"]);
    folder.refuses("match a.png a.png --mask-b no.png", 1, &["no.png"]);
}
