//! SURF on every device against the CPU, stage by stage and as a whole: equal in every bit.

use super::super::tests::{presets, selections, texture, to_u8, to_u16};
use super::super::{Surf, SurfOptions, SurfPreset};
use super::GpuSurf;
use super::bisect::stages_of;
use crate::Error;
use crate::device::Cpu;
use crate::device::gpu::all;
use crate::feature::DescriptorKind;
use crate::feature::Features;
use crate::feature::gpu::{AT_A_TIME, Pixels, beside};
use crate::feature::surf::describe::gpu::GpuDescribe;
use crate::feature::surf::extrema::gpu::GpuExtrema;
use crate::feature::surf::orient::gpu::GpuOrient;
use crate::feature::surf::response::gpu::GpuResponse;
use crate::image::gpu::{GpuImage, GpuPixel};
use crate::image::{Image, Size, testing::photograph};
use tiepoint_gpu::KernelSource;

fn assert_same(found: &Features, expected: &Features, what: &str) {
    assert_eq!(found.len(), expected.len(), "number of features, {what}");
    for (i, (f, e)) in found.keypoints.iter().zip(&expected.keypoints).enumerate() {
        assert_eq!(f, e, "keypoint {i}, {what}");
    }
    assert!(found == expected, "descriptors, {what}");
}

/// One image on every device against the CPU; returns the number of features.
fn compare<T: GpuPixel>(image: &Image<T>, options: SurfOptions, mask: Option<&Image<u8>>) -> usize
where
    for<'a> Pixels<'a>: From<&'a GpuImage<T>>,
{
    let cpu = Cpu::sequential();
    let expected = Surf::new(options).unwrap().detect(image.view(), mask.map(Image::view), &cpu).unwrap();
    for gpu in all() {
        let on_device = GpuImage::upload(gpu, image.view()).unwrap();
        let mask = mask.map(Image::view);
        let surf = GpuSurf::new(&beside(gpu), options).unwrap();
        let what = format!("{gpu:?}: {} {} {options:?}", T::NAME, image.size());
        assert_same(&surf.detect(&on_device, mask).unwrap(), &expected, &what);
        // Now the features come along with their number.
        assert_same(&surf.detect(&on_device, mask).unwrap(), &expected, &format!("{what}, again"));
        let kept = surf.detect_on_device(&on_device, mask.map(Into::into)).unwrap();
        assert_same(&kept.download().unwrap(), &expected, &format!("{what}, on the device"));
    }
    expected.len()
}

#[test]
fn presets_equal_the_cpu() {
    let image = texture(Size::new(301, 277), 1);
    for preset in presets() {
        let options = SurfOptions { threshold: preset.threshold * 0.1, ..preset };
        assert!(compare(&to_u8(&image), options, None) > 100, "features of {preset:?}");
        compare(&to_u16(&image), options, None);
        compare(&image, options, None);
    }
}

#[test]
fn variants_equal_the_cpu() {
    let image = to_u8(&texture(Size::new(170, 203), 2));
    for preset in presets() {
        let preset = SurfOptions { threshold: preset.threshold * 0.1, ..preset };
        let variants = [
            SurfOptions { upright: true, ..preset },
            SurfOptions { extended: true, ..preset },
            SurfOptions { descriptors: DescriptorKind::None, step: 2, ..preset },
            SurfOptions { intervals: 3, octaves: Some(2), step: 4, threshold: 0.0, ..preset },
            SurfOptions { intervals: 8, octaves: Some(6), step: 1, ..preset },
        ];
        let selections = [selections(&preset, 7), selections(&preset, 0)].concat();
        for options in variants.into_iter().chain(selections) {
            compare(&image, options, None);
        }
    }
}

#[test]
fn masks_equal_the_cpu() {
    let image = texture(Size::new(240, 200), 5);
    let mask = Image::from_fn(image.size(), |x, y| u8::from((x / 20 + y / 30) % 3 > 0));
    let all = compare(&image, SurfOptions::default(), None);
    let some = compare(&image, SurfOptions::default(), Some(&mask));
    assert!(some > 10 && some < all, "{some} of {all} features under the mask");
}

#[test]
fn any_size_equals_the_cpu() {
    let mut seed = 7_u32;
    let mut next = |n: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 12) % n
    };
    for i in 0..24 {
        let side = |n: u32| if n < 10 { 1 } else { n as usize };
        let size = if i == 0 { Size::new(1, 1) } else { Size::new(side(next(140)), side(next(140))) };
        let image = texture(size, next(1 << 16));
        let options = SurfOptions { threshold: 0.0, ..presets()[i % 3] };
        compare(&to_u8(&image), options, None);
        compare(&image, options, None);
    }
}

#[test]
fn strange_pixels_equal_the_cpu() {
    let strange = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0, 2.0, 0.5, 0.0, 1.0];
    let image = Image::from_fn(Size::new(90, 80), |x, y| strange[(x / 7 * 5 + y / 9 * 3) % 8]);
    let checks = |x: usize, y: usize| u8::from((x / 20 + y / 20).is_multiple_of(2)) * 255;
    let checks = Image::from_fn(Size::new(260, 240), checks);
    for options in presets() {
        compare(&image, options, None);
        compare(&checks, options, None);
    }
}

#[test]
fn batches_equal_single_images() {
    let images: Vec<_> = (1..4).map(|seed| to_u8(&texture(Size::new(200, 150), seed))).collect();
    let options = SurfOptions { threshold: 1e-4, ..SurfOptions::default() };
    let cpu = Cpu::sequential();
    for gpu in all() {
        let on_device: Vec<_> = images.iter().map(|i| GpuImage::upload(gpu, i.view()).unwrap()).collect();
        let area = images[0].size().area();
        for pixels in [AT_A_TIME, 2 * area, area] {
            let surf = GpuSurf::new(&beside(gpu), options).unwrap().with_capacity(5);
            let found = surf.detect_at_a_time(&on_device, pixels).unwrap();
            assert_eq!(found.len(), 3, "as many as were given");
            for (image, found) in images.iter().zip(found) {
                let expected = super::super::detect(image.view(), &options, None, &cpu).unwrap();
                assert_same(&found, &expected, &format!("{gpu:?}: in a batch"));
            }
        }
        let surf = GpuSurf::new(&beside(gpu), options).unwrap();
        let found = surf.detect_batch(&on_device).unwrap();
        let views: Vec<_> = images.iter().chain(&images).map(Image::view).collect();
        for number in [1, 2, 3, 5, 6, 6] {
            let from_host = surf.detect_batch(&views[..number]).unwrap();
            assert!(
                from_host.iter().eq(found.iter().cycle().take(number)),
                "{gpu:?}: {number} from the host"
            );
            surf.recycle(from_host);
        }
        let none: [&Image<u8>; 0] = [];
        assert!(surf.detect_batch(none).unwrap().is_empty(), "nothing of nothing");
    }
}

/// Room that is too small grows, and nothing is lost; then images of other kinds follow.
#[test]
fn room_grows() {
    let image = texture(Size::new(200, 190), 3);
    let options = SurfOptions { threshold: 0.0, ..SurfOptions::default() };
    let cpu = Cpu::sequential();
    let expected = super::super::detect(image.view(), &options, None, &cpu).unwrap();
    let bytes = to_u8(&image);
    let expected_bytes = super::super::detect(bytes.view(), &options, None, &cpu).unwrap();
    for gpu in all() {
        let surf = GpuSurf::new(&beside(gpu), options).unwrap().with_capacity(5);
        let floats = GpuImage::upload(gpu, image.view()).unwrap();
        let bytes = GpuImage::upload(gpu, bytes.view()).unwrap();
        for round in 0..2 {
            let found = surf.detect(&floats, None).unwrap();
            assert_same(&found, &expected, &format!("{gpu:?}: round {round}"));
            assert_same(&surf.detect(&bytes, None).unwrap(), &expected_bytes, &format!("{gpu:?}: bytes"));
        }
        assert!(surf.launches() >= 5, "five stages");
    }
}

#[test]
fn wrong_input_is_an_error() {
    for gpu in all() {
        let bad = SurfOptions { octaves: Some(7), ..SurfOptions::default() };
        assert!(matches!(GpuSurf::new(&beside(gpu), bad), Err(Error::Option { .. })), "octaves");
        let surf = GpuSurf::new(&beside(gpu), SurfOptions::default()).unwrap();
        let image = |w, h| GpuImage::<u8>::upload(gpu, Image::new(Size::new(w, h)).view()).unwrap();
        let mask = Image::<u8>::new(Size::new(9, 8));
        let masked = surf.detect(&image(9, 9), Some(mask.view()));
        assert!(matches!(masked, Err(Error::Mismatch(_))), "mask");
        assert!(matches!(surf.detect_batch(&[image(9, 9), image(8, 9)]), Err(Error::Mismatch(_))), "sizes");
        let colour = GpuImage::<u8>::with_channels(gpu, Size::new(4, 4), 3).unwrap();
        assert!(matches!(surf.detect(&colour, None), Err(Error::Image(_))), "three channels");
    }
}

pub(crate) fn kernel_sources() -> Vec<KernelSource> {
    let mut sources = vec![];
    let extended = SurfOptions { extended: true, upright: true, ..SurfOptions::preset(SurfPreset::OpenCv) };
    let options = [SurfOptions::default(), SurfOptions::preset(SurfPreset::OpenSurf), extended];
    sources.extend([GpuResponse::<u32>::source(), GpuResponse::<u64>::source()]);
    sources.extend(options.map(|o| GpuExtrema::source(&o)));
    sources.extend([GpuOrient::<u32>::source(&options[0]), GpuDescribe::<u32>::source(&options[0])]);
    sources.extend(options.map(|o| GpuOrient::<u64>::source(&o)));
    sources.extend(options.map(|o| GpuDescribe::<u64>::source(&o)));
    sources
}

#[test]
fn photographs_equal_the_cpu() {
    let Some(photograph) = photograph("pairs/cudasift/left.pgm") else { return };
    let crop = Image::from_fn(Size::new(500, 400), |x, y| photograph.row(y + 300)[x + 400]);
    for options in presets() {
        assert!(compare(&crop, options, None) > 100, "features of {options:?}");
    }
}

/// An image of the host's memory, twice, then one of another size and kind.
#[test]
fn views_equal_the_cpu() {
    let image = texture(Size::new(150, 130), 8);
    let wide = texture(Size::new(210, 90), 9);
    let options = SurfOptions { threshold: 1e-4, ..SurfOptions::default() };
    let cpu = Cpu::sequential();
    for gpu in all() {
        let surf = GpuSurf::new(&beside(gpu), options).unwrap();
        for image in [&image, &image, &wide] {
            let bytes = to_u8(image);
            let expected = super::super::detect(bytes.view(), &options, None, &cpu).unwrap();
            assert_same(&surf.detect(bytes.view(), None).unwrap(), &expected, "8 bits");
        }
        let expected = super::super::detect(wide.view(), &options, None, &cpu).unwrap();
        assert_same(&surf.detect(wide.view(), None).unwrap(), &expected, "floats");
    }
}

/// Every stage alone: it is given what the CPU makes of the stage before.
#[test]
fn stages_equal_the_cpu() {
    let (image, cpu) = (texture(Size::new(230, 190), 6), Cpu::sequential());
    for gpu in all() {
        for preset in presets() {
            let options = SurfOptions { threshold: preset.threshold * 0.1, ..preset };
            let what = format!("{gpu:?}, {:?}", options.preset);
            stages_of::<u8, u32>(to_u8(&image).view(), &options, gpu, &cpu).assert_equal(&what);
            let extended = SurfOptions { extended: true, ..options };
            stages_of::<f32, u64>(image.view(), &extended, gpu, &cpu).assert_equal(&what);
        }
    }
}
