use super::*;
use crate::device::Cpu;
use crate::evaluate::corner_error;
use crate::evaluate::ground_truth::read_homography;
use crate::feature::Keypoint;
use crate::feature::select::Selection;
use crate::feature::sift::SiftOptions;
use crate::feature::surf::SurfOptions;
use crate::geometry::Homography;
use crate::image::testing::shared;
use crate::image::{Pixel, ReadOptions, Size, read_grey, with_alpha};
use crate::matching::Match;
use crate::synth::Texture;

/// A texture from 0 to 1, seen through the map `back` from pixels to points of the texture.
fn drawn<T: Pixel>(size: Size, back: impl Fn([f64; 2]) -> [f64; 2]) -> Image<T> {
    Image::from_fn(size, |x, y| {
        let [u, v] = back([x as f64, y as f64]);
        T::from_f32(Texture::new(1).at(u, v, 1.0) as f32 * T::WHITE)
    })
}

fn picture(size: Size, back: impl Fn([f64; 2]) -> [f64; 2]) -> AnyImage {
    AnyImage::F32(drawn(size, back))
}

#[test]
fn a_known_homography_comes_back_and_the_pictures_coincide() {
    let size = Size::new(400, 300);
    let truth = Homography::new([[0.93, -0.2, 45.0], [0.18, 0.9, -12.0], [1e-4, -1e-4, 1.0]]).unwrap();
    let reference = picture(size, |p| p);
    // `truth` maps MOVING to REFERENCE.
    let moving = picture(size, |p| truth.apply(p).unwrap());
    let options = RegisterOptions::default().with_range(Range::Between(0.0, 1.0));
    let mut results = vec![];
    for threads in [1, 2, 5] {
        let cpu = Cpu::with_threads(threads).unwrap();
        results.push(register(&reference, &moving, &options, &cpu.into()).unwrap());
    }
    assert!(results.iter().all(|r| *r == results[0]), "the same for any number of threads");
    let found = &results[0];
    let error = corner_error(&found.location.reference_from_moving.homography().unwrap(), &truth, size);
    assert!(error < 0.3, "corners off by {error} px");
    let (AnyImage::F32(warped), AnyImage::F32(reference)) = (&found.warped.image, &reference) else {
        panic!("floats")
    };
    let covered = found.warped.covered.data();
    let inside = warped.data().iter().zip(reference.data()).zip(covered).filter(|(_, c)| **c > 0);
    let differences: Vec<f32> = inside.map(|((w, r), _)| (w - r).abs()).collect();
    let mean = differences.iter().sum::<f32>() / differences.len() as f32;
    assert!(differences.len() > 60_000 && mean < 0.005, "mean difference {mean} on {}", differences.len());
}

#[test]
fn transparent_pixels_have_no_features_and_no_influence() {
    let size = Size::new(400, 300);
    let image = |shift: f64| drawn::<u8>(size, |[x, y]| [x + shift, y]);
    let (reference, moving) = (image(0.0), AnyImage::from(image(6.0)));
    let shown = |from: usize| Image::from_fn(size, |x, _| if x < from { 0_u8 } else { 255 });
    let seen = with_alpha(&reference, &shown(150)).unwrap();
    let (options, processor) = (RegisterOptions::default(), Cpu::with_threads(2).unwrap().into());
    let found = register(&seen, &moving, &options, &processor).unwrap();
    let left = found.location.features[1].keypoints.iter().map(|k| k.x).fold(f32::INFINITY, f32::min);
    assert!((154.5..200.0).contains(&left), "nothing up to five pixels from what is transparent: {left}");
    let other = Image::from_fn(size, |x, y| if x < 150 { (x * y) as u8 } else { reference.row(y)[x] });
    let other = with_alpha(&other, &shown(150)).unwrap();
    assert!(found == register(&other, &moving, &options, &processor).unwrap(), "whatever is hidden");
    let mask = shown(155);
    // A pixel counts if neither mask nor transparency hides it.
    let both = RegisterInput { image: (&seen).into(), mask: Some(mask.view()) };
    assert!(found == register(both, &moving, &options, &processor).unwrap(), "with transparency and mask");
}

/// Compares features, matches, model and pictures, for pictures of equal and different sizes, with and without masks.
#[test]
fn every_device_registers_the_same_picture() {
    let cpu = Cpu::with_threads(2).unwrap();
    let truth = Homography::new([[0.93, -0.2, 45.0], [0.18, 0.9, -12.0], [1e-4, -1e-4, 1.0]]).unwrap();
    let reference = drawn::<u8>(Size::new(400, 300), |p| p);
    let alike = drawn::<u8>(Size::new(400, 300), |p| truth.apply(p).unwrap());
    let smaller = drawn::<u8>(Size::new(370, 290), |p| truth.apply(p).unwrap());
    let mask = Image::from_fn(Size::new(370, 290), |x, _| if x > 40 { 255_u8 } else { 0 });
    let cases = [
        RegisterInput::from(&alike),
        RegisterInput::from(&smaller),
        RegisterInput { image: (&smaller).into(), mask: Some(mask.view()) },
    ];
    let even = SiftOptions::default().with_selection(Selection::default().with_limit(Some(300)));
    for detector in [Detector::default(), Detector::Surf(SurfOptions::default()), Detector::Sift(even)] {
        let options = RegisterOptions::default().with_detector(detector);
        for (case, moving) in cases.iter().enumerate() {
            let expected = register(&reference, *moving, &options, &cpu.clone().into()).unwrap();
            let inliers = expected.location.tie.inliers.len();
            assert!(inliers > 20, "{inliers} tie points");
            for gpu in crate::device::gpu::all() {
                let processor = Processor::with_gpu(cpu.clone(), gpu.clone());
                let found = register(&reference, *moving, &options, &processor).unwrap();
                assert!(found == expected, "{gpu:?}: case {case} of {detector:?}");
            }
        }
    }
}

#[test]
fn nothing_to_register_is_an_error() {
    let cpu = Cpu::sequential().into();
    let black = AnyImage::U8(Image::new(Size::new(50, 40)));
    let found = register(&black, &black, &RegisterOptions::default(), &cpu);
    let said = found.unwrap_err().to_string();
    let expected = "0 matches, but a homography needs at least 4 (0 matches of 0 and 0 features). Do both pictures show the same \
                    thing? Try `--model affine` or `similarity`";
    assert!(said.starts_with(expected), "{said}");
    let tie = TieOptions { model: Some(ModelKind::Fundamental), ..Default::default() };
    let found = register(&black, &black, &RegisterOptions { tie, ..Default::default() }, &cpu);
    assert!(matches!(found, Err(Error::Option { name: "model", .. })), "{found:?}");
    let beyond = [Match { a: 0, b: 3, distance: 0.0, ratio: 0.0 }];
    let keypoints = [Keypoint::default(); 3];
    let found = tie_given([&keypoints; 2], &beyond, &TieOptions::default(), &Cpu::sequential());
    let said = found.unwrap_err().to_string();
    assert!(said.contains("match 0 is of the keypoints 0 and 3, but there are 3 and 3"), "{said}");
    for wrong in [
        Rematch { radius: 0.0, ..Default::default() },
        Rematch { ratio: 1.5, ..Default::default() },
        Rematch { rounds: 0, ..Default::default() },
    ] {
        assert!(TieOptions { rematch: Some(wrong), ..Default::default() }.check().is_err(), "{wrong:?}");
    }
}

fn tie(root: &std::path::Path, [a, b]: [&str; 2], most: usize, kind: ModelKind) -> (TiePoints, Size) {
    let processor = Processor::from(Cpu::with_threads(2).unwrap());
    let selection = if most == 0 { Selection::ALL } else { Selection::strongest(most) };
    let detector = Detector::Sift(SiftOptions { selection, ..Default::default() });
    let features = [a, b].map(|name| {
        let image = read_grey(root.join(name), &ReadOptions::default(), &processor.cpu).unwrap();
        detector.detect(&image, None, &processor).unwrap()
    });
    let options = TieOptions { model: Some(kind), ..Default::default() };
    (tie_points(&features[0], &features[1], &options, &processor).unwrap(), features[0].image)
}

#[test]
fn photographs_with_a_known_homography() {
    let Some(root) = shared("") else { return };
    // Measured corner errors are at most two thirds of these.
    for (name, worst) in
        [("boat/3", 0.3), ("graf/2", 0.8), ("graf/3", 2.0), ("graf/4", 2.0), ("leuven/4", 0.7)]
    {
        let (folder, k) = name.split_once('/').unwrap();
        let folder = root.join("homography").join(folder);
        let (found, size) = tie(&folder, ["img1.png", &format!("img{k}.png")], 2000, ModelKind::Homography);
        let truth = read_homography(folder.join(format!("H1to{k}p.xml"))).unwrap();
        let error = corner_error(&found.b_from_a.unwrap().homography().unwrap(), &truth, size);
        assert!(error < worst, "{name}: corners off by {error} px");
    }
}

#[test]
fn photographs_without_ground_truth_keep_their_inliers() {
    let Some(root) = shared("") else { return };
    // OpenCV's SIFT with RANSAC finds 79, 184, 62 and 1523 inliers, by the notes of the shared data.
    for (pair, least, kind) in [
        (["objects/box.png", "objects/box_in_scene.png"], 80, ModelKind::Homography),
        (["objects/books/java.jpg", "objects/books/frame1.jpg"], 330, ModelKind::Homography),
        (["objects/books/opengl.jpg", "objects/books/frame1.jpg"], 160, ModelKind::Homography),
        (["pairs/cudasift/left.pgm", "pairs/cudasift/righ.pgm"], 2000, ModelKind::Fundamental),
    ] {
        let (found, _) = tie(&root, pair, 0, kind);
        assert!(found.inliers.len() >= least, "{pair:?}: {} inliers", found.inliers.len());
    }
}

#[test]
fn masked_pixels_take_no_part_in_registration() {
    let size = Size::new(400, 300);
    let truth = Homography::new([[1.0, 0.0, 20.0], [0.0, 1.0, -10.0], [0.0, 0.0, 1.0]]).unwrap();
    let reference = picture(size, |p| p);
    let mut moving = picture(size, |p| truth.apply(p).unwrap());
    if let AnyImage::F32(image) = &mut moving {
        image.row_mut(7)[9] = f32::NAN;
    }
    let mask = Image::from_fn(size, |x, _| if x < 200 { 255 } else { 0 });
    let tie = TieOptions::default().with_model(Some(ModelKind::Similarity));
    let options = RegisterOptions::default().with_range(Range::Between(0.0, 1.0)).with_tie(tie);
    let processor = Processor::from(Cpu::sequential());
    let masked = RegisterInput { mask: Some(mask.view()), ..RegisterInput::from(&moving) };
    let found = register(&reference, masked, &options, &processor).unwrap();
    assert!(found.location.features[0].keypoints.iter().all(|k| k.x < 200.0), "all on the left");
    let error = corner_error(&found.location.reference_from_moving.homography().unwrap(), &truth, size);
    assert!(error < 1.0, "corners off by {error} px");
    let small = Image::<u8>::new(Size::new(3, 3));
    let masked = RegisterInput { mask: Some(small.view()), ..RegisterInput::from(&moving) };
    let refused = register(&reference, masked, &options, &processor);
    assert!(matches!(refused, Err(Error::Mismatch(_))), "a mask of another size");
}
