use super::*;
use crate::device::gpu::{Commands, all};
use crate::device::tests::every_cpu;
use crate::image::{AnyView, Image, Made};
use crate::synth::{Scene, SceneOptions, Sensor, viewpoint};

fn picture(size: Size, seed: u64) -> Image<u8> {
    let options = SceneOptions::default().with_size(size).with_seed(seed);
    Scene::render(&options, &Cpu::sequential()).unwrap().reference
}

/// With a corner cut off, as where a picture was turned.
fn cut_off(mut image: Image<u8>, by: usize) -> Image<u8> {
    let size = image.size();
    (0..size.height.min(by)).for_each(|y| image.row_mut(y)[..(by - y).min(size.width)].fill(0));
    image
}

fn found(image: &Image<u8>, cpu: &Cpu) -> Vec<Features> {
    let intensity = Intensity::of(AnyView::from(image), None, image.size(), cpu).unwrap();
    let [levels] = StructureFinder::new(&cpu.clone().into()).levels(&[(&intensity, 0..9)], 2.0).unwrap();
    levels.into_iter().map(|level| level.on_host().unwrap().into_owned()).collect()
}

/// The intensity of a picture, and whether it has void; what counts is compared with the plain form.
fn intensity_and_void(image: &Image<u8>) -> (Intensity, bool) {
    let intensity = Intensity::of(AnyView::from(image), None, image.size(), &Cpu::sequential()).unwrap();
    let void = reference::void(&intensity.grey);
    let counts = Image::from_fn(image.size(), |x, y| if void.row(y)[x] { 0.0 } else { 1.0 });
    assert_eq!(intensity.counts, counts, "{}: what counts", image.size());
    (intensity, void.data().iter().any(|v| *v))
}

fn bytes(features: &Features) -> Vec<&[u8]> {
    let Descriptors::U8(bytes) = &features.descriptors else { panic!("bytes") };
    bytes.chunks_exact(features.dimension).collect()
}

#[test]
fn every_stage_equals_its_plain_form() {
    let [small, wide, high] = [[97, 61], [96, 128], [49, 201]].map(|[w, h]| Size::new(w, h));
    for (size, cut, darker) in
        [(small, 0, 1.0), (wide, 50, 1.0), (high, 30, 1.0), (small, 0, 0.08), (wide, 50, 0.08)]
    {
        let mut image = cut_off(picture(size, 3), cut);
        image.data_mut().iter_mut().for_each(|v| *v = (f32::from(*v) * darker).round() as u8);
        let (intensity, has_void) = intensity_and_void(&image);
        assert_eq!(has_void, cut > 0, "{size}, {darker}: there is void where a corner is cut off");
        if darker < 1.0 {
            continue;
        }
        let expected = reference::channels(&intensity);
        let corners_expected = reference::corners(&expected, 60);
        assert!(corners_expected.len() > 20, "{} corners in {size}", corners_expected.len());
        let bytes_expected = reference::descriptors(&expected, &corners_expected);
        for (cpu, name) in every_cpu() {
            let channels = Channels::of(&intensity, &cpu).unwrap();
            assert_eq!(channels.lanes, expected.lanes, "{size}, {name}: channels");
            assert_eq!(channels.strength, expected.strength, "{size}, {name}: strength");
            let corners = corners::corners(&channels, 60, &cpu).unwrap();
            assert_eq!(corners, corners_expected, "{size}, {name}: corners");
            let half = halved_lanes(&channels, &cpu).unwrap();
            let bytes = polar::describe(&half, &corners, &cpu).unwrap();
            assert_eq!(bytes, bytes_expected, "{size}, {name}: descriptors");
        }
    }
}

/// Dark pixels around a whole are void; those between small things are their background.
#[test]
fn the_background_of_small_things_is_no_void() {
    let size = Size::new(160, 120);
    let on_black = |shows: &dyn Fn(usize, usize) -> bool| {
        intensity_and_void(&Image::from_fn(size, |x, y| if shows(x, y) { 200_u8 } else { 0 })).1
    };
    let within = |x: usize, y: usize, radius: usize| x * x + y * y < radius * radius;
    assert!(on_black(&|x, y| within(x.abs_diff(80), y.abs_diff(60), 40)), "a round picture");
    assert!(on_black(&|x, y| (20..140).contains(&x) && y > 30), "a frame");
    assert!(
        !on_black(&|x, y| within((x % 40).abs_diff(20), (y % 40).abs_diff(20), 16)),
        "twelve large things"
    );
    assert!(!on_black(&|x, y| (x + y) % 50 < 6), "lines");
}

/// Levels lie a third of an octave apart or less, and end where a picture would be too small.
#[test]
fn levels_reach_as_far_as_asked() {
    let image = picture(Size::new(120, 96), 4);
    let intensity = Intensity::of(AnyView::from(&image), None, image.size(), &Cpu::sequential()).unwrap();
    for (range, expected) in [(1.0, &[1.0][..]), (1.5, &[1.0, 0.816, 0.667]), (2.0, &[1.0, 0.794, 0.63, 0.5])]
    {
        let pictures = [(&intensity, 0..2), (&intensity, 2..usize::MAX)];
        let found = StructureFinder::new(&Cpu::sequential().into()).levels(&pictures, range).unwrap();
        let scales: Vec<f64> =
            found.iter().flatten().map(|level| (level.scale * 1e3).round() / 1e3).collect();
        assert_eq!(scales, expected, "{range}");
    }
    let [mut all] =
        StructureFinder::new(&Cpu::sequential().into()).levels(&[(&intensity, 0..99)], 16.0).unwrap();
    assert_eq!(all.pop().unwrap().scale, 0.25, "24 pixels are the least");
}

/// A quarter turn of the picture turns its corners, and permutes their descriptors.
#[test]
fn a_quarter_turn_permutes_descriptors() {
    let size = Size::new(128, 128);
    let image = picture(size, 1);
    let last = size.height - 1;
    let quarter = Image::from_fn(size, |x, y| image.row(last - x)[y]);
    let cpu = Cpu::sequential();
    let (upright, lying) = (&found(&image, &cpu)[0], &found(&quarter, &cpu)[0]);
    let expected = turned(upright, TURNS / 4);
    let mut same = 0;
    for (k, of_k) in upright.keypoints.iter().zip(bytes(&expected)) {
        let at = [last as f32 - k.y, k.x];
        let near = |other: &Keypoint| (other.x - at[0]).abs() + (other.y - at[1]).abs() < 0.02;
        if let Some(i) = lying.keypoints.iter().position(near) {
            same += 1;
            let differs = of_k.iter().zip(bytes(lying)[i]).map(|(a, b)| a.abs_diff(*b)).max();
            assert!(differs <= Some(2), "a byte at ({}, {}) differs by {differs:?}", k.x, k.y);
        }
    }
    assert!(upright.len() > 50 && 10 * same > 9 * upright.len(), "{same} of {}", upright.len());
}

#[test]
fn nothing_is_found_near_a_border_that_shows_nothing() {
    let size = Size::new(160, 120);
    let image = cut_off(picture(size, 2), 70);
    let corners = found(&image, &Cpu::sequential()).swap_remove(0).keypoints;
    assert!(corners.len() > 50, "{}", corners.len());
    for k in corners {
        assert!(k.x + k.y > 70.0 + 5.0, "({}, {}) lies at the cut", k.x, k.y);
    }
}

/// A mask that hides a part.
fn masked(size: Size) -> Image<u8> {
    Image::from_fn(size, |x, y| if 3 * x + y > 150 && x + 2 * y < 140 { 0 } else { 255 })
}

#[test]
fn a_device_finds_the_bits_of_the_cpu() {
    let cpu = Cpu::with_threads(2).unwrap();
    let sizes = [(97, 61), (96, 128), (49, 201), (13, 150), (12, 40), (1, 1), (260, 129)];
    let mut pictures: Vec<(Image<u8>, Option<Image<u8>>)> = vec![];
    for (i, size) in sizes.map(|(w, h)| Size::new(w, h)).into_iter().enumerate() {
        let image = match size.area() {
            0..1000 => Image::from_fn(size, |x, y| ((x * 37 + y * 91) % 251) as u8),
            _ => cut_off(picture(size, 3), 40 * (i % 2)),
        };
        pictures.push((image, (i % 3 == 0).then(|| masked(size))));
    }
    pictures.extend([128, 0].map(|grey| (Image::filled(Size::new(80, 70), 1, grey), None)));
    let speckled = Sensor::Speckle.shows(&picture(Size::new(120, 101), 5), 7);
    pictures.push((speckled, Some(masked(Size::new(120, 101)))));
    let mut most = 0;
    for (image, mask) in &pictures {
        let size = image.size();
        let mask = mask.as_ref().map(Image::view);
        let intensity = Intensity::of(AnyView::from(image), mask, size, &cpu).unwrap();
        let of = |processor: &Processor| {
            StructureFinder::new(processor).levels(&[(&intensity, 0..2), (&intensity, 1..9)], 2.0).unwrap()
        };
        let expected = of(&cpu.clone().into());
        for gpu in all() {
            let processor = Processor::with_gpu(cpu.clone(), gpu.clone());
            let found = of(&processor);
            for map in [
                viewpoint(size, 0.4, 0.9, [0.0; 2], [2.5, -1.0]),
                viewpoint(size, 0.1, 1.9, [0.0; 2], [0.0; 2]),
            ] {
                let lanes = |processor: &Processor, level: &Level| {
                    let finder = StructureFinder::new(processor);
                    finder
                        .resampled((&intensity, &level.own), map.as_ref().unwrap(), Size::new(61, 44))
                        .unwrap()
                };
                let resampled = lanes(&processor, &found[0][0]);
                assert!(matches!(resampled, Made::Device(_)), "{gpu:?}");
                let wanted = lanes(&cpu.clone().into(), &expected[0][0]);
                let [found, wanted] = [resampled, wanted].map(|lanes| lanes.on_host(&cpu).unwrap());
                assert!(found == wanted, "{gpu:?}: {size} resampled");
            }
            assert!(processor.take_notes().is_empty(), "{gpu:?} leaves {size} to the CPU");
            for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
                let scale = expected.scale;
                assert_eq!(found.scale, scale);
                let [lanes, wanted] = [found, expected].map(|level| level.own.lanes.on_host(&cpu).unwrap());
                assert!(lanes == wanted, "{gpu:?}: channels of {size}");
                let [a, b] = [found, expected].map(|level| level.on_host().unwrap());
                assert_eq!(a.keypoints, b.keypoints, "{gpu:?}: corners of {size} at {scale}");
                assert!(a == b, "{gpu:?}: descriptors of {size} at {scale}");
                most = most.max(a.len());
            }
            assert_eq!(found.each_ref().map(Vec::len), expected.each_ref().map(Vec::len));
        }
    }
    assert!(all().is_empty() || most > 100, "{most} corners");
}

#[test]
fn a_device_turns_descriptors_as_the_cpu() {
    let cpu = Cpu::sequential();
    let image = picture(Size::new(97, 61), 3);
    let features = &found(&image, &cpu)[0];
    for gpu in all() {
        let stages = GpuStructure::new(gpu, &cpu).unwrap();
        let uploaded = GpuFeatures::upload(gpu, features).unwrap();
        for (back, count) in [(false, TURNS), (true, TURNS), (true, 2)] {
            let mut commands = Commands::new();
            let all = stages.turned(&mut commands, &uploaded, count, back).unwrap();
            gpu.run(&commands).unwrap();
            let all = by_value!(map &all.descriptors, values => values.to_vec().unwrap());
            for turns in 0..count {
                let wanted = turned(features, if back { (TURNS - turns) % TURNS } else { turns });
                let n = bytes(&wanted).concat().len();
                let Descriptors::U8(all) = &all else { panic!("bytes") };
                let found = &all[turns * n..(turns + 1) * n];
                assert!(found == bytes(&wanted).concat(), "{gpu:?}: {turns} turns, back: {back}");
            }
        }
    }
}
