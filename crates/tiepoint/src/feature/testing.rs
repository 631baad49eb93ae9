//! Helpers for the tests of SIFT and SURF.

use super::gpu::pipeline::Pipeline;
use super::gpu::{AT_A_TIME, GpuDetector, beside};
use super::select::Selection;
use super::{Descriptors, Features};
use crate::device::gpu::{Gpu, all};
use crate::image::gpu::{GpuImage, GpuPixel};
use crate::image::{Image, ImageView, Pixel, Pixels, Size};
use crate::{Error, Result};

/// Options with every kind of selection, of at most `n` features and with limits so large that sums and products of
/// them would overflow.
pub(crate) fn selections<O>(n: usize, with: impl Fn(Selection) -> O) -> Vec<O> {
    [n, i64::MAX as usize, usize::MAX].into_iter().flat_map(Selection::every).map(with).collect()
}

pub(crate) fn assert_same_features(found: &Features, expected: &Features, what: &str) {
    let pairs = found.keypoints.iter().zip(&expected.keypoints);
    let differs = pairs.enumerate().find(|(_, (f, e))| f != e);
    assert!(differs.is_none(), "{what}: keypoints {differs:?}");
    assert_eq!(found.len(), expected.len(), "{what}: number of features");
    assert!(found == expected, "{what}: descriptors");
}

/// A detector on a GPU, and its twin on the CPU.
pub(crate) trait Twin: Pipeline {
    fn on_cpu<T: Pixel>(
        image: ImageView<'_, T>,
        options: &Self::Options,
        mask: Option<ImageView<'_, u8>>,
    ) -> Features;
}

/// Compares the features of an image on a device with those of the CPU, which are returned.
pub(crate) fn agree<P: Twin, T: GpuPixel>(
    gpu: &Gpu,
    image: &Image<T>,
    options: &P::Options,
    mask: Option<&Image<u8>>,
) -> Features {
    let mask = mask.map(Image::view);
    let expected = P::on_cpu(image.view(), options, mask);
    let detector = GpuDetector::<P>::new(&beside(gpu), *options).unwrap();
    let on_device = GpuImage::upload(gpu, image.view()).unwrap();
    let what = format!("{gpu:?}, {} {}, {options:?}", T::NAME, image.size());
    // From the second time on, features are read together with their number.
    for _ in 0..2 {
        assert_same_features(&detector.detect(&on_device, mask).unwrap(), &expected, &what);
    }
    let kept = detector.detect_on_device(&on_device, mask.map(Into::into)).unwrap();
    assert_same_features(&kept.download().unwrap(), &expected, &format!("{what}, left on the device"));
    expected
}

/// Gives one detector images of different sizes, pixel types and numbers of features in turn.
pub(crate) fn serves_any_image<P: Twin>(scene: impl Fn(Size, u64) -> Image<u8>, options: &P::Options) {
    for gpu in all() {
        let detector = GpuDetector::<P>::new(&beside(gpu), *options).unwrap().with_capacity(9);
        for (i, (width, height)) in [(70, 50), (70, 50), (33, 90), (70, 50)].into_iter().enumerate() {
            let image = scene(Size::new(width, height), i as u64 + 1);
            let mask = Image::from_fn(image.size(), |x, _| u8::from(x < 20 * (i + 1)));
            let mask = (i % 2 == 0).then_some(mask.view());
            let expected = P::on_cpu(image.view(), options, mask);
            let on_device = GpuImage::upload(gpu, image.view()).unwrap();
            let what = format!("{gpu:?}, image {i}");
            assert_same_features(&detector.detect(&on_device, mask).unwrap(), &expected, &what);
            let found = detector.detect(image.view(), mask).unwrap();
            assert_same_features(&found, &expected, &format!("{what} from the host"));
            let found = detector.detect_on_device(&on_device, mask.map(Pixels::from)).unwrap();
            assert_same_features(&found.download().unwrap(), &expected, &format!("{what} left there"));
            let deep = Image::from_fn(image.size(), |x, y| u16::from(image.row(y)[x]) * 257);
            let expected = P::on_cpu(deep.view(), options, None);
            let found = detector.detect(deep.view(), None).unwrap();
            assert_same_features(&found, &expected, &format!("{what}, 16 bits"));
            let floats = Image::from_fn(image.size(), |x, y| f32::from(image.row(y)[x]) / 255.0);
            let expected = P::on_cpu(floats.view(), options, None);
            let found = detector.detect(floats.view(), None).unwrap();
            assert_same_features(&found, &expected, &format!("{what}, floats"));
        }
        let nothing = || Err(Error::Image("no search waits".into()));
        let capacity: Result<usize> = detector.idle.with(nothing, |search| Ok(search.capacity));
        assert!(capacity.unwrap() >= 1024, "room was made");
        assert!(detector.launches() >= 5, "five stages");
    }
}

/// A batch gives the features of its images alone, searched all at once, two at a time and one at a time, while memory
/// on device and host grows. The middle image is blank.
pub(crate) fn batches_give_what_single_images_give<P: Twin>(
    scene: impl Fn(Size, u64) -> Image<u8>,
    options: &P::Options,
) {
    let size = Size::new(61, 48);
    let images = [scene(size, 1), Image::filled(size, 1, 77), scene(size, 2)];
    let expected = images.each_ref().map(|image| P::on_cpu(image.view(), options, None));
    assert_eq!(
        expected.each_ref().map(Features::is_empty),
        [false, true, false],
        "only a blank image has none"
    );
    let repeated = |n: usize| expected.iter().cycle().take(n);
    let area = P::pixels(&P::layout(options, size, 1).unwrap());
    for gpu in all() {
        let new = || GpuDetector::<P>::new(&beside(gpu), *options).unwrap();
        let on_device: Vec<_> = images.iter().map(|i| GpuImage::upload(gpu, i.view()).unwrap()).collect();
        for pixels in [AT_A_TIME, 2 * area, area] {
            let detector = new().with_capacity(9);
            let found = detector.detect_at_a_time(&on_device, pixels).unwrap();
            assert_eq!(found, expected, "{gpu:?}");
            // With recycled memory, some of it of another kind of descriptors.
            let other = match &found[1].descriptors {
                Descriptors::U8(_) => Descriptors::F32(vec![1.0; 9]),
                Descriptors::F32(_) => Descriptors::U8(vec![1; 9]),
            };
            let other = Features { descriptors: other, ..found[1].clone() };
            detector.recycle(found.iter().chain(&found).cloned().chain([other]));
            let again = detector.detect_at_a_time(&on_device, pixels).unwrap();
            assert_eq!(again, expected, "{gpu:?}: with room enough");
        }
        let detector = new();
        assert_eq!(detector.detect_batch(&on_device).unwrap(), expected, "{gpu:?}");
        // Recycled memory for the first parts only, so that later parts take new memory.
        let more: Vec<_> = on_device.iter().cycle().take(9).cloned().collect();
        for _ in 0..4 {
            detector.recycle(expected[..2].iter().cloned());
            let again = detector.detect_at_a_time(&more, 2 * area).unwrap();
            assert!(again.iter().eq(repeated(9)), "{gpu:?}: recycled memory for some parts");
        }
        let views: Vec<_> = images.iter().chain(&images).map(Image::view).collect();
        for number in [1, 2, 3, 5, 6, 6] {
            let narrow = new().with_capacity(9);
            let detector = if number == 5 { &narrow } else { &detector };
            let from_host = detector.detect_batch(&views[..number]).unwrap();
            assert!(from_host.iter().eq(repeated(number)), "{gpu:?}: {number} from the host");
            detector.recycle(from_host);
        }
        let none: [&Image<u8>; 0] = [];
        assert!(detector.detect_batch(none).unwrap().is_empty(), "no image, no features");
        let mixed = [Pixels::from(&on_device[0]), (&images[1]).into(), (&images[2]).into()];
        assert_eq!(detector.detect_batch(mixed).unwrap(), expected, "{gpu:?}: host and device");
    }
}

pub(crate) fn wrong_input_is_an_error<P: Twin>(options: P::Options, wrong: P::Options) {
    for gpu in all() {
        let wrong = GpuDetector::<P>::new(&beside(gpu), wrong);
        assert!(matches!(wrong, Err(Error::Option { .. })), "an option");
        let detector = GpuDetector::<P>::new(&beside(gpu), options).unwrap();
        let colour = GpuImage::<u8>::with_channels(gpu, Size::new(9, 9), 3).unwrap();
        assert!(matches!(detector.detect(&colour, None), Err(Error::Image(_))), "three channels");
        let [image, other] =
            [(9, 9), (9, 8)].map(|(w, h)| GpuImage::<u8>::new(gpu, Size::new(w, h)).unwrap());
        let mask = Image::<u8>::new(Size::new(9, 8));
        let masked = detector.detect(&image, Some(mask.view()));
        assert!(matches!(masked, Err(Error::Mismatch(_))), "another mask");
        assert!(matches!(detector.detect_batch(&[image, other]), Err(Error::Mismatch(_))), "two sizes");
        let empty = Image::<u8>::new(Size::new(0, 5));
        assert!(matches!(detector.detect(empty.view(), None), Err(Error::Image(_))), "empty");
    }
}
