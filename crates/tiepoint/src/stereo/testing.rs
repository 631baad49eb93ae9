//! Disparity maps, pairs and devices for the tests of single stages.

use super::halving::Side;
use super::pair::{Pair, Pictures};
use super::{INVALID, Masks};
use crate::Result;
use crate::device::Cpu;
use crate::device::gpu::{Commands, all};
pub(super) use crate::device::tests::cpus;
use crate::image::gpu::GpuStack;
use crate::image::testing::assert_same;
use crate::image::{Image, ImageViewMut, Size};
use crate::numeric::Random;
use crate::synth::{StereoPair, StereoScene, StereoSceneOptions};

/// Sizes around those of vectors and bands.
pub(super) const SIZES: [(usize, usize); 9] =
    [(1, 1), (1, 9), (40, 1), (2, 2), (3, 20), (33, 17), (64, 8), (70, 25), (97, 31)];

/// Maps of sizes around tiles and vectors, smooth to noise, with no, some or only invalid pixels, some NaN, −∞ or −0.
pub(super) fn maps() -> Vec<Image<f32>> {
    let mut random = Random::new(7);
    let sizes =
        [(1, 1), (1, 70), (70, 1), (2, 3), (5, 5), (33, 21), (64, 66), (129, 130), (300, 9), (17, 200)];
    let mut maps = Vec::new();
    for (w, h) in sizes {
        for (levels, invalid) in [(2, 0), (3, 20), (200, 5), (40, 60), (3, 100)] {
            maps.push(Image::from_fn(Size::new(w, h), |x, y| {
                let noise = random.bits();
                match noise % 100 {
                    n if n < invalid => INVALID,
                    _ if noise >> 8 & 0xff == 0 => {
                        [f32::NAN, f32::NEG_INFINITY, -0.0][(noise >> 20) as usize % 3]
                    }
                    _ => ((noise >> 32) % levels) as f32 * 0.75 + (x / 9 + y / 7) as f32 - 8.0,
                }
            }));
        }
    }
    maps
}

/// A map after a stage that changes it in place.
pub(super) fn after(map: &Image<f32>, stage: impl FnOnce(ImageViewMut<'_, f32>) -> Result<()>) -> Image<f32> {
    let mut out = map.clone();
    stage(out.view_mut()).unwrap();
    out
}

/// Asserts that a stage gives the CPU's bits on every device, for every map of [`maps`] twice in a stack.
pub(super) fn gpu_maps(
    stage: impl Fn(&mut Commands, &GpuStack<f32>) -> GpuStack<f32>,
    cpu: impl Fn(&Image<f32>) -> Image<f32>,
    what: &str,
) {
    for gpu in all() {
        for mut map in maps() {
            // Turns −0 into 0, since the order of the two is not defined.
            map.data_mut().iter_mut().for_each(|v| *v += 0.0);
            let stack = GpuStack::upload(gpu, &[map.view(), map.view()]).unwrap();
            let mut commands = Commands::new();
            let found = stage(&mut commands, &stack);
            gpu.run(&commands).unwrap();
            let expected = cpu(&map);
            for i in 0..2 {
                let context = format!("{gpu:?}, image {i}, {}, {what}", map.size());
                assert_same(&found.download(i).unwrap(), &expected, context);
            }
        }
    }
}

/// A scene of flat surfaces, seen by two cameras.
pub(super) fn scene(size: Size, disparities: [f64; 2], surfaces: usize, seed: u64) -> StereoPair<u8> {
    let options = StereoSceneOptions::default().with_size(size).with_disparities(disparities);
    let scene = StereoScene::new(&options.with_surfaces(surfaces).with_seed(seed)).unwrap();
    scene.render(&Cpu::sequential())
}

/// The sides of a pair without masks.
pub(super) fn sides(pair: [&Image<u8>; 2]) -> [Side; 2] {
    pair.map(|image| Side { image: image.clone().into(), mask: None })
}

/// The pair of two grey images, every pixel of which holds data.
pub(super) fn pair_of([left, right]: [&Image<u8>; 2]) -> Pair {
    let pictures = Pictures::new([left.into(), right.into()], Masks::default()).unwrap();
    Pair::new(&pictures, &Cpu::sequential()).unwrap()
}
