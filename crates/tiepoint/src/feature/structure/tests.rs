use super::*;
use crate::device::{SimdLevel, tests::every_cpu};
use crate::image::{AnyView, Image};
use crate::synth::{Scene, SceneOptions};

fn picture(size: Size, seed: u64) -> Image<u8> {
    let options = SceneOptions::default().with_size(size).with_seed(seed);
    Scene::render(&options, &Cpu::sequential()).unwrap().reference
}

fn found(image: &Image<u8>, cpu: &Cpu) -> Vec<Features> {
    let intensity = Intensity::of(AnyView::from(image), None, image.size(), cpu).unwrap();
    levels(&intensity, cpu).unwrap().into_iter().map(|level| level.features).collect()
}

fn bytes(features: &Features) -> Vec<&[u8]> {
    let Descriptors::U8(bytes) = &features.descriptors else { panic!("bytes") };
    bytes.chunks_exact(features.dimension).collect()
}

#[test]
fn structure_is_the_same_for_any_threads_and_simd_level() {
    for size in [Size::new(97, 61), Size::new(160, 128), Size::new(49, 201)] {
        let image = picture(size, 3);
        let expected = found(&image, &Cpu::sequential().at_level(SimdLevel::Baseline).unwrap());
        assert!(expected[0].len() > 20, "{} corners in {size}", expected[0].len());
        for (cpu, name) in every_cpu() {
            assert_eq!(found(&image, &cpu), expected, "{size}, {name}");
        }
    }
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
        let near =
            |other: &crate::feature::Keypoint| (other.x - at[0]).abs() + (other.y - at[1]).abs() < 0.02;
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
    let mut image = picture(size, 2);
    // A black corner, as after a rotation.
    (0..size.height).for_each(|y| image.row_mut(y)[..70_usize.saturating_sub(y)].fill(0));
    let corners = found(&image, &Cpu::sequential()).swap_remove(0).keypoints;
    assert!(corners.len() > 50, "{}", corners.len());
    for k in corners {
        assert!(k.x + k.y > 70.0 + 5.0, "({}, {}) lies at the cut", k.x, k.y);
    }
}
