//! Bands against the whole, which on the CPU is streamed.

use super::super::detect_tests::{PRESETS, difference, photograph};
use super::super::plan::Plan;
use super::{Bands, Cut};
use crate::Error;
use crate::device::Cpu;
use crate::device::gpu::{Gpu, all};
use crate::feature::select::Selection;
use crate::feature::sift::tests::scene;
use crate::feature::sift::{self, DescriptorKind, GpuSift, SiftOptions, SiftPreset};
use crate::image::gpu::{GpuImage, GpuPixel};
use crate::image::{Image, Size};

/// The cuts of an image with all numbers of octaves for which it has room, of bands of the least height and about
/// `step` rows more.
fn cuts(size: Size, options: &SiftOptions, step: usize) -> Vec<Cut> {
    let whole = Plan::new(size, 1, options).unwrap();
    let octaves = 1..=whole.octaves.len();
    octaves.flat_map(|o| [1, step].map(|step| Cut::new(&whole, options, o, step))).flatten().collect()
}

/// Compares the features of every cut with the CPU's; gives how many cuts there were.
fn agree<T: GpuPixel>(gpu: &Gpu, image: &Image<T>, mask: Option<&Image<u8>>, options: &SiftOptions) -> usize {
    let expected =
        sift::detect(image.view(), options, mask.map(Image::view), &Cpu::with_threads(2).unwrap()).unwrap();
    let cuts = cuts(image.size(), options, image.size().height / 3);
    for cut in &cuts {
        let mut sift = GpuSift::new(gpu, *options).unwrap();
        let bands = Bands::new::<T>(sift.for_parts().unwrap(), cut.clone(), mask.is_some()).unwrap();
        sift.bands = Some(Box::new(bands));
        let found = sift.detect_view(image.view(), mask.map(Image::view)).unwrap();
        assert!(
            found == expected,
            "{gpu:?}, {}, {options:?}, {cut:?}: {}",
            image.size(),
            difference(&found, &expected)
        );
        assert_eq!(sift.parts(), cut.count(), "it was searched in bands");
    }
    cuts.len()
}

#[test]
fn cores_cover_the_image_once_and_bands_lie_in_it() {
    let mut count = 0;
    for (height, first_octave) in [(1000, -1), (1003, -1), (777, 0), (1024, 0)] {
        let options = SiftOptions { first_octave, ..SiftOptions::default() };
        for cut in [1, 5, 64, 200].iter().flat_map(|&step| cuts(Size::new(40, height), &options, step)) {
            let parts: Vec<_> = cut.parts().collect();
            assert_eq!(parts.len(), cut.count(), "as many as were said, {cut:?}");
            let mut next = 0;
            for part in &parts {
                assert_eq!(part.taken.start, next, "no gap, {cut:?}");
                assert!(part.taken.end > next && part.first + cut.band.input.height <= height, "{cut:?}");
                next = part.taken.end;
            }
            assert_eq!(next, height, "to the end, {cut:?}");
            count += 1;
        }
    }
    assert!(count > 50, "{count} cuts");
}

#[test]
fn bands_of_every_height_give_the_features_of_the_cpu_for_every_preset() {
    for gpu in all() {
        let mut count = 0;
        for (i, (width, height)) in [(61, 140), (90, 243), (40, 471)].into_iter().enumerate() {
            let image = scene(Size::new(width, height), i as u64 + 1);
            for preset in PRESETS {
                for first_octave in [-1, 0] {
                    let options = SiftOptions { first_octave, contrast: 0.01, ..SiftOptions::preset(preset) };
                    count += agree(gpu, &image, None, &options);
                }
            }
        }
        println!("{count} cuts");
        assert!(count >= 24, "{count} cuts");
    }
}
