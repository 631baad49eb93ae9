//! How right SURF is: blobs of known position and size, and turned and scaled photographs.

use super::{tests::texture, *};
use crate::{
    feature::{Descriptors, Keypoint},
    image::{Image, Size, testing::photograph},
};

/// A photograph as grey, or texture where the shared data are absent.
fn photo(name: &str) -> Image<f32> {
    let Some(image) = photograph(name) else { return texture(Size::new(600, 500), 11) };
    let data = image.data().iter().map(|v| f32::from(*v) / 255.0).collect();
    Image::from_vec(data, image.size(), 1).unwrap()
}

/// A rotation by an angle and a scaling, from the centre of one image to that of another.
#[derive(Clone, Copy)]
struct Turn {
    angle: f64,
    scale: f64,
    from: [f64; 2],
    to: [f64; 2],
}

impl Turn {
    fn of(size: Size, degrees: f64, scale: f64) -> (Self, Size) {
        let angle = degrees.to_radians();
        let (w, h) = (size.width as f64, size.height as f64);
        let (c, s) = (angle.cos().abs(), angle.sin().abs());
        let side = |a: f64, b: f64| ((a * c + b * s) * scale).round() as usize;
        let turned = Size::new(side(w, h), side(h, w));
        let centre = |s: Size| [(s.width as f64 - 1.0) / 2.0, (s.height as f64 - 1.0) / 2.0];
        (Self { angle, scale, from: centre(size), to: centre(turned) }, turned)
    }

    fn forth(&self, x: f64, y: f64) -> [f64; 2] {
        let (c, s) = (self.angle.cos() * self.scale, self.angle.sin() * self.scale);
        let (x, y) = (x - self.from[0], y - self.from[1]);
        [c * x - s * y + self.to[0], s * x + c * y + self.to[1]]
    }

    fn back(&self, x: f64, y: f64) -> [f64; 2] {
        let (c, s) = (self.angle.cos() / self.scale, self.angle.sin() / self.scale);
        let (x, y) = (x - self.to[0], y - self.to[1]);
        [c * x + s * y + self.from[0], c * y - s * x + self.from[1]]
    }
}

/// The image under a turn, bilinear, grey beyond its edge.
fn turned(image: &Image<f32>, degrees: f64, scale: f64) -> (Image<f32>, Turn) {
    let (turn, size) = Turn::of(image.size(), degrees, scale);
    let (w, h) = (image.size().width as f64, image.size().height as f64);
    let at = |x: usize, y: usize| {
        let [x, y] = turn.back(x as f64, y as f64);
        if x < 0.0 || y < 0.0 || x > w - 1.0 || y > h - 1.0 {
            return 0.5;
        }
        let (i, j) = (x.min(w - 1.001) as usize, y.min(h - 1.001) as usize);
        let (a, b) = ((x - i as f64) as f32, (y - j as f64) as f32);
        let row = |j: usize| image.row(j)[i] * (1.0 - a) + image.row(j)[i + 1] * a;
        row(j) * (1.0 - b) + row(j + 1) * b
    };
    (Image::from_fn(size, at), turn)
}

/// Where a keypoint must lie after a turn; `None` when too near to an edge of the image to be judged.
fn expected(k: &Keypoint, size: Size, turn: &Turn) -> Option<[f64; 2]> {
    let margin = 25.0 + 10.0 * k.scale;
    let inside = |v: f32, n: usize| v > margin && v < n as f32 - margin;
    (inside(k.x, size.width) && inside(k.y, size.height)).then(|| turn.forth(f64::from(k.x), f64::from(k.y)))
}

/// The share of features that are found again within 1.5 px · scale of their position, at about their scale.
fn kept(image: &Image<f32>, options: &SurfOptions, degrees: f64) -> f64 {
    let cpu = Cpu::sequential();
    let (other, turn) = turned(image, degrees, 1.0);
    let first = detect(image.view(), options, None, &cpu).unwrap();
    let second = detect(other.view(), options, None, &cpu).unwrap();
    let (mut all, mut found) = (0, 0);
    for k in &first.keypoints {
        let Some([x, y]) = expected(k, image.size(), &turn) else { continue };
        all += 1;
        found += usize::from(second.keypoints.iter().any(|n| {
            let d = (f64::from(n.x) - x).hypot(f64::from(n.y) - y);
            d < 1.5_f64.max(0.5 * f64::from(k.scale)) && (n.scale / k.scale).ln().abs() < 0.25
        }));
    }
    assert!(all > 100, "{all} features are too few to judge");
    f64::from(found as u32) / f64::from(all)
}

/// The share of nearest neighbours that pass the ratio 0.8 and lie where they must, and how many pass.
fn correct(image: &Image<f32>, options: &SurfOptions, degrees: f64, scale: f64) -> (f64, usize) {
    let cpu = Cpu::sequential();
    let (other, turn) = turned(image, degrees, scale);
    let first = detect(image.view(), options, None, &cpu).unwrap();
    let second = detect(other.view(), options, None, &cpu).unwrap();
    let (Descriptors::F32(a), Descriptors::F32(b)) = (&first.descriptors, &second.descriptors) else {
        panic!("SURF descriptors are floats")
    };
    let dimension = options.dimension();
    let (mut all, mut right) = (0, 0);
    for (k, a) in first.keypoints.iter().zip(a.chunks_exact(dimension)) {
        let Some([x, y]) = expected(k, image.size(), &turn) else { continue };
        let (mut best, mut next, mut nearest) = (f32::MAX, f32::MAX, 0);
        for (i, b) in b.chunks_exact(dimension).enumerate() {
            let d = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
            if d < best {
                (next, best, nearest) = (best, d, i);
            } else if d < next {
                next = d;
            }
        }
        if best.sqrt() < 0.8 * next.sqrt() {
            all += 1;
            let n = &second.keypoints[nearest];
            let d = (f64::from(n.x) - x).hypot(f64::from(n.y) - y);
            right += usize::from(d < 3.0_f64.max(f64::from(k.scale) * 0.7));
        }
    }
    (f64::from(right as u32) / f64::from(all.max(1)), right)
}

#[test]
fn blobs_have_their_place_scale_and_sign() {
    let cpu = Cpu::sequential();
    for preset in [
        SurfOptions::default(),
        SurfOptions::preset(SurfPreset::OpenSurf),
        SurfOptions::preset(SurfPreset::OpenCv),
    ] {
        for (i, sigma) in [2.5, 4.0, 6.0, 9.0, 13.0].into_iter().enumerate() {
            for height in [0.4, -0.4] {
                let (cx, cy) = (150.0 + 0.37 * i as f64, 160.0 - 0.29 * i as f64);
                let image = Image::from_fn(Size::new(310, 320), |x, y| {
                    let r2 = (x as f64 - cx).powi(2) + (y as f64 - cy).powi(2);
                    (0.5 + height * (-r2 / (2.0 * sigma * sigma)).exp()) as f32
                });
                let found = detect(image.view(), &preset, None, &cpu).unwrap();
                let k = found.keypoints.first().expect("a blob is found");
                let off = (f64::from(k.x) - cx).hypot(f64::from(k.y) - cy);
                let ratio = f64::from(k.scale) / sigma;
                println!("{:?} σ {sigma}: off {off:.3} px, scale ratio {ratio:.3}", preset.preset);
                assert!(off < 0.1 * sigma, "{preset:?} σ {sigma}: off by {off} px");
                // Boxes of width l answer like a Gaussian wider than 0.4·l: SURF's σ is a fifth below the
                // blob's.
                assert!((0.65..0.95).contains(&ratio), "{preset:?} σ {sigma}: scale {}", k.scale);
                assert_eq!(f64::from(k.sign), height.signum(), "sign of {preset:?} σ {sigma}");
            }
        }
    }
}

#[test]
fn rotations_keep_features() {
    let image = photo("photos/building.jpg");
    // At 90° only the grid of samples moves; at 25° the boxes themselves answer differently.
    let presets = [
        (SurfOptions::default(), 0.88, 0.45),
        (SurfOptions::preset(SurfPreset::OpenSurf), 0.6, 0.45),
        (SurfOptions::preset(SurfPreset::OpenCv), 0.95, 0.35),
    ];
    for (preset, least_quarter, least_turn) in presets {
        let [quarter, turn] = [90.0, 25.0].map(|degrees| kept(&image, &preset, degrees));
        println!("{:?}: 90° keeps {quarter:.3}, 25° keeps {turn:.3}", preset.preset);
        assert!(quarter > least_quarter, "{preset:?}: 90° keeps {quarter}");
        assert!(turn > least_turn, "{preset:?}: 25° keeps {turn}");
    }
}

#[test]
fn turned_and_scaled_photos_match() {
    let image = photo("photos/astronaut.png");
    let paper = SurfOptions::default();
    let presets = [
        paper,
        SurfOptions { extended: true, ..paper },
        SurfOptions { step: 2, ..paper },
        SurfOptions::preset(SurfPreset::OpenSurf),
        SurfOptions::preset(SurfPreset::OpenCv),
    ];
    for options in presets {
        let (share, right) = correct(&image, &options, 30.0, 0.8);
        println!("{options:?}: {share:.3}, {right} right");
        assert!(share > 0.75 && right > 80, "{options:?}: {share} of the matches, {right}, are right");
        let upright = SurfOptions { upright: true, ..options };
        let (share, right) = correct(&image, &upright, 4.0, 0.9);
        println!("upright: {share:.3}, {right} right");
        assert!(share > 0.85 && right > 80, "upright {options:?}: {share}, {right} right");
    }
}

#[test]
fn directions_turn_with_the_image() {
    let image = photo("photos/building.jpg");
    let cpu = Cpu::sequential();
    let (other, turn) = turned(&image, 90.0, 1.0);
    // A quarter turn is 18 of OpenCV's bins, but ten and a half of the others'; OpenSURF rounds s as well.
    let presets = [
        (SurfOptions::default(), 0.04, 0.25),
        (SurfOptions::preset(SurfPreset::OpenSurf), 0.09, 0.55),
        (SurfOptions::preset(SurfPreset::OpenCv), 0.01, 0.05),
    ];
    for (preset, most_median, most_of_nine) in presets {
        let first = detect(image.view(), &preset, None, &cpu).unwrap();
        let second = detect(other.view(), &preset, None, &cpu).unwrap();
        let mut off = vec![];
        for k in &first.keypoints {
            let Some([x, y]) = expected(k, image.size(), &turn) else { continue };
            let near = |n: &&Keypoint| {
                (f64::from(n.x) - x).hypot(f64::from(n.y) - y) < 0.5 && (n.scale / k.scale - 1.0).abs() < 0.05
            };
            let Some(n) = second.keypoints.iter().find(near) else { continue };
            let d = f64::from(n.angle - k.angle) - turn.angle;
            off.push(
                (d + 9.0 * std::f64::consts::PI).rem_euclid(std::f64::consts::TAU) - std::f64::consts::PI,
            );
        }
        off.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let (middle, most) = (off[off.len() / 2].abs(), off[off.len() * 9 / 10].abs());
        println!("{:?}: angles off by {middle:.4} (median), {most:.4} (90 %)", preset.preset);
        assert!(middle < most_median && most < most_of_nine, "{preset:?}: angles off by {middle}, {most}");
    }
}
