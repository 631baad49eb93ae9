use super::*;

fn options() -> StereoSceneOptions {
    StereoSceneOptions::default().with_size(Size::new(160, 120)).with_disparities([-6.5, 20.25]).with_seed(4)
}

fn pair<T: Pixel>(options: &StereoSceneOptions) -> StereoPair<T> {
    StereoScene::new(options).unwrap().render(&Cpu::sequential())
}

/// At whole disparities a pixel of one view is a pixel of the other, with the same value.
#[test]
fn whole_disparities_copy_pixels() {
    let flat = |disparity, centre: [f64; 2], outline| Surface {
        outline,
        centre,
        reach: [20.0, 15.0],
        disparity,
        ..Surface::default()
    };
    let surfaces = vec![
        flat(-3.0, [0.0, 0.0], Outline::Endless),
        flat(9.0, [50.0, 40.0], Outline::Ellipse),
        flat(2.0, [60.0, 50.0], Outline::Rectangle),
    ];
    let options = StereoSceneOptions { size: Size::new(110, 80), ..Default::default() };
    let scene = StereoScene { options, surfaces };
    let pair: StereoPair<f32> = scene.render(&Cpu::sequential());
    let mut seen = [0; 2];
    for y in 0..80 {
        for x in 0..110 {
            let d = pair.truth_left.row(y)[x];
            let there = x as i64 - d as i64;
            let inside = (0..110).contains(&there);
            let same = inside && pair.truth_right.row(y)[there as usize] == d;
            assert_eq!(pair.visible.row(y)[x] != 0, same, "visible at ({x}, {y})");
            seen[usize::from(same)] += 1;
            if same {
                assert_eq!(pair.left.row(y)[x], pair.right.row(y)[there as usize], "({x}, {y})");
            }
        }
    }
    assert!(seen[0] > 300 && seen[1] > 7000, "hidden and seen: {seen:?}");
}

/// Following a left disparity and then the right one, interpolated between pixels, leads back; and brightness,
/// interpolated likewise, is that of the left pixel where the picture is smooth.
#[test]
fn the_truths_agree() {
    let options = StereoSceneOptions { texture: TextureKind::Blobs, ..options() };
    let pair: StereoPair<f32> = pair(&options);
    let (mut count, mut off, mut grey) = (0_usize, 0_usize, 0.0_f64);
    for y in 0..120 {
        for x in 0..160 {
            let d = pair.truth_left.row(y)[x];
            assert!((-6.5..=20.25).contains(&d), "the disparity at ({x}, {y}) is {d}");
            let there = x as f32 - d;
            let k = there.floor() as usize;
            if pair.visible.row(y)[x] == 0 || k + 1 >= 160 {
                continue;
            }
            let (t, [a, b]) = (there - k as f32, [k, k + 1].map(|k| pair.truth_right.row(y)[k]));
            count += 1;
            // At an outline one of the neighbours belongs to another surface.
            if (a - b).abs() > 0.5 {
                continue;
            }
            off += usize::from((a + t * (b - a) - d).abs() > 0.01);
            let [p, q] = [k, k + 1].map(|k| pair.right.row(y)[k]);
            grey += f64::from((p + t * (q - p) - pair.left.row(y)[x]).abs());
        }
    }
    assert!(count > 13_000, "{count} pixels are visible in both views");
    // These few are between two surfaces of nearly equal disparities.
    assert!(1000 * off < count, "{off} of {count} do not lead back");
    let mean = grey / count as f64;
    assert!(mean < 0.005, "mean difference of brightness {mean}");
}

#[test]
fn any_rows_on_any_threads() {
    let options = StereoSceneOptions {
        noise: 0.02,
        plain: 0.5,
        right: Photometry { invert: true, gamma: 1.8, gain: 0.7, bias: 0.1 },
        ..options()
    };
    let whole: StereoPair<u16> = pair(&options);
    let scene = StereoScene::new(&options).unwrap();
    let cpu = Cpu::with_threads(5).unwrap();
    assert_eq!(whole, scene.render(&cpu), "threads");
    let part: Image<u16> = scene.image(View::Right, 70..90, &cpu);
    assert_eq!(part.data(), &whole.right.data()[70 * 160..90 * 160], "some rows");
    assert!(scene.surfaces.iter().any(|s| s.plain.is_some()), "some have no texture");
    assert!(scene.surfaces[0].plain.is_none(), "the background has");
}

#[test]
fn photometry_changes_the_right_view_alone() {
    let plain: StereoPair<f32> = pair(&options());
    let right = Photometry { invert: true, gain: 0.5, bias: 0.25, ..Default::default() };
    let changed: StereoPair<f32> = pair(&StereoSceneOptions { right, ..options() });
    assert_eq!(plain.left, changed.left, "left");
    assert_eq!(plain.truth_left, changed.truth_left, "truth");
    for (a, b) in plain.right.data().iter().zip(changed.right.data()) {
        assert!((0.5 * (1.0 - a) + 0.25 - b).abs() < 1e-6, "{a} became {b}");
    }
}

#[test]
fn every_size_and_range() {
    for (width, height) in [(1, 1), (1, 40), (40, 1), (3, 2)] {
        for disparities in [[0.0, 0.0], [-300.0, 0.0], [0.0, 4000.0]] {
            let options = StereoSceneOptions::default().with_size(Size::new(width, height));
            let pair: StereoPair = pair(&options.with_disparities(disparities));
            let inside = |d: &f32| (disparities[0]..=disparities[1]).contains(&f64::from(*d));
            assert!(pair.truth_left.data().iter().all(inside), "{width}x{height}, {disparities:?}");
        }
    }
    let options = StereoSceneOptions::default();
    for (wrong, what) in [
        (options.with_size(Size::new(0, 480)), "empty"),
        (options.with_disparities([3.0, 2.0]), "upside down"),
        (options.with_disparities([4.0, f64::NAN]), "NaN"),
        (options.with_right(Photometry::default().with_gamma(0.0)), "gamma"),
        (options.with_surfaces(1001), "too many"),
    ] {
        assert!(StereoScene::new(&wrong).is_err(), "{what}");
    }
}

#[test]
fn panels_differ_in_colour_and_hardly_in_grey() {
    let options = StereoSceneOptions { scenery: Scenery::Panels, ..options() };
    let scene = StereoScene::new(&options).unwrap();
    let cpu = Cpu::with_threads(2).unwrap();
    let (grey, colour): (StereoPair<f32>, StereoPair<f32>) = (scene.render(&cpu), scene.render_colour(&cpu));
    assert_eq!((grey.left.channels(), colour.left.channels()), (1, 3), "channels");
    assert_eq!((&grey.truth_left, &grey.visible), (&colour.truth_left, &colour.visible), "one truth");
    let inside = |d: &f32| (-6.5..=20.25).contains(d);
    assert!(colour.truth_left.data().iter().all(inside), "disparities in their range");
    let (mut greys, mut reds) = ([1.0_f32, 0.0], [1.0_f32, 0.0]);
    for (i, surface) in scene.surfaces.iter().enumerate().skip(2) {
        let brightness = surface.plain.expect("panels have no texture");
        let (grey, red) = (surface.grey(brightness) as f32, (brightness * surface.tint[0]) as f32);
        greys = [greys[0].min(grey), greys[1].max(grey)];
        reds = [reds[0].min(red), reds[1].max(red)];
        assert!((0.0..=1.0).contains(&brightness), "panel {i}: {brightness}");
    }
    assert!(greys[1] - greys[0] < 0.07, "grey: {greys:?}");
    assert!(reds[1] - reds[0] > 0.25, "red: {reds:?}");
    // Colours brighter than white are clipped, which changes their luma.
    let luma = |p: &[f32]| 0.2126 * p[0] + 0.7152 * p[1] + 0.0722 * p[2];
    let pixels = colour.left.data().chunks_exact(3).zip(grey.left.data());
    let unlike = pixels.filter(|(p, g)| p.iter().all(|v| *v < 1.0) && (luma(p) - **g).abs() > 1e-5).count();
    assert_eq!(unlike, 0, "grey is the luma of the colours");
}
