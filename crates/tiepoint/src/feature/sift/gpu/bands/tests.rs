//! Searching in bands of rows against the CPU's search of the whole image.

use super::super::plan::Plan;
use super::super::tests::{PRESETS, deep_and_float, photograph, presets};
use super::cut::{Cut, Seam};
use super::{Bands, for_parts, is_of_memory};
use crate::Error;
use crate::device::gpu::{Gpu, all};
use crate::device::progress::tests::told;
use crate::device::{Cpu, Processor};
use crate::error::Shortage;
use crate::feature::gpu::beside;
use crate::feature::gpu::pipeline::{Parts, Pipeline, Purpose};
use crate::feature::gpu::search::Search;
use crate::feature::sift::describe::reach;
use crate::feature::sift::gpu::SiftPipeline;
use crate::feature::sift::refine::REACH;
use crate::feature::sift::tests::scene;
use crate::feature::sift::{self, GpuSift, SiftOptions, reference};
use crate::feature::testing::{assert_same_features, selections};
use crate::feature::{DescriptorKind, Features};
use crate::image::gpu::{GpuImage, GpuPixel};
use crate::image::{AnyView, Image, PixelKind, Pixels, Rect, Size};

/// The cuts of an image for every possible number of octaves, with bands of the least height and with bands of about
/// `step` more rows.
fn cuts(size: Size, options: &SiftOptions, step: usize) -> Vec<Cut> {
    let whole = Plan::new(size, 1, options).unwrap();
    let seams = (1..=whole.octaves.len()).map(|octaves| Seam::new(options, octaves));
    seams.flat_map(|seam| [1, step].map(|step| Cut::new(&whole, &seam, step))).flatten().collect()
}

/// A detector that searches images in the bands of `cut`.
fn cut_so(
    processor: &Processor,
    cut: &Cut,
    pixel: PixelKind,
    masked: bool,
    options: &SiftOptions,
) -> GpuSift {
    let sift = GpuSift::new(processor, *options).unwrap();
    let parts = for_parts(&sift.core).unwrap();
    let bands = Bands::new(parts, cut.clone(), pixel, masked).unwrap();
    keep(&sift, bands);
    sift
}

fn keep(sift: &GpuSift, bands: Bands) {
    let with_bands = || {
        let mut search = Search::new(sift.core.clone())?;
        search.parts = Some(Box::new(bands));
        Ok::<_, Error>(search)
    };
    sift.idle.with(with_bands, |_| Ok(())).unwrap();
}

fn of_cpu<T: GpuPixel>(image: &Image<T>, mask: Option<&Image<u8>>, options: &SiftOptions) -> Features {
    let cpu = Cpu::with_threads(2).unwrap();
    sift::detect(image.view(), options, mask.map(Image::view), &cpu).unwrap()
}

/// Compares the features of every cut into at most 16 bands with the CPU's, and returns the number of cuts.
fn agree<T: GpuPixel>(gpu: &Gpu, image: &Image<T>, mask: Option<&Image<u8>>, options: &SiftOptions) -> usize {
    let expected = of_cpu(image, mask, options);
    let mut cuts = cuts(image.size(), options, image.size().height / 3);
    cuts.retain(|cut| cut.count() <= 16);
    for cut in &cuts {
        let sift = cut_so(&beside(gpu), cut, AnyView::from(image).pixel(), mask.is_some(), options);
        let found = sift.detect(image, mask.map(Image::view)).unwrap();
        let what = format!("{gpu:?}, {}, {options:?}, {cut:?}", image.size());
        assert_same_features(&found, &expected, &what);
        assert_eq!(sift.parts(), cut.count(), "the number of bands searched");
    }
    cuts.len()
}

#[test]
fn cores_cover_the_image_once_and_bands_lie_in_it() {
    let mut count = 0;
    for (height, first_octave) in [(1000, -1), (1003, -1), (777, 0), (1024, 0)] {
        let options = SiftOptions { first_octave, ..SiftOptions::default() };
        for cut in [5, 20, 64, 200].iter().flat_map(|&step| cuts(Size::new(40, height), &options, step)) {
            let parts: Vec<_> = cut.parts().collect();
            assert_eq!(parts.len(), cut.count(), "the number of parts, {cut:?}");
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

/// The image is white above the cut and black below, where a band alone would see black only. The halo must hold all
/// rows that the white part changes, and not many more.
#[test]
fn errors_at_a_cut_stay_within_the_halo() {
    for preset in PRESETS {
        for (first_octave, levels) in [(-1, 3), (0, 3), (-1, 1), (0, 2)] {
            let options =
                SiftOptions { first_octave, levels, octaves: Some(2), ..SiftOptions::preset(preset) };
            let seam = Seam::new(&options, 2);
            let image = Image::from_fn(Size::new(24, 400), |_, y| if y < 64 { 255_u8 } else { 0 });
            let mut most = 0;
            for (i, octave) in reference::octaves(image.view(), &options).iter().enumerate() {
                let level = octave.gaussians.last().unwrap();
                let cut = 64 * level.size().height / image.size().height;
                let lit = (cut..level.size().height).rfind(|&y| level.row(y)[0] != 0.0).unwrap() + 1 - cut;
                most = most.max((lit + REACH + reach(&options)) << i);
            }
            let halo = if first_octave < 0 { 2 * seam.halo } else { seam.halo };
            assert!(most <= halo && most + 8 > halo, "{most} of {halo} rows, {options:?}");
        }
    }
}

#[test]
fn the_cheapest_cut_is_taken_that_fits() {
    let options = SiftOptions::default();
    let whole = Plan::new(Size::new(40_000, 30_000), 1, &options).unwrap();
    let bytes = |cut: &Cut| 4 * (cut.band.len() + cut.rest.as_ref().map_or(0, Plan::len)) as u64;
    let mut rows = 0;
    for (gigabytes, most) in [(60, 31_000), (20, 36_000), (10, 45_000), (6, 75_000)] {
        let cut = Cut::within(&whole, &options, gigabytes << 30, bytes).unwrap();
        assert!(bytes(&cut) <= gigabytes << 30, "{gigabytes} GiB, {cut:?}");
        let more = cut.count() * cut.band.input.height;
        assert!(more >= rows && more < most, "{more} rows with {gigabytes} GiB, {rows} with more");
        rows = more;
    }
    assert!(Cut::within(&whole, &options, 100 << 20, bytes).is_none(), "too little for any");
}

#[test]
fn bands_of_every_height_give_the_features_of_the_cpu_for_every_preset() {
    for gpu in all() {
        let mut count = 0;
        for (i, (width, height)) in [(41, 112), (50, 222), (24, 447)].into_iter().enumerate() {
            let image = scene(Size::new(width, height), i as u64 + 1);
            for options in presets() {
                count += agree(gpu, &image, None, &options);
            }
        }
        assert!(count >= 24, "{count} cuts");
    }
}

#[test]
fn bands_give_the_features_of_the_cpu_for_every_option_and_pixel() {
    let image = scene(Size::new(41, 222), 7);
    let mask = Image::from_fn(image.size(), |x, y| u8::from((x / 9 + y / 7) % 3 != 0));
    let (deep, float) = deep_and_float(&image);
    let base = SiftOptions { contrast: 0.01, ..SiftOptions::default() };
    let options = [
        SiftOptions { upright: true, ..base },
        SiftOptions { descriptors: DescriptorKind::F32, root: true, ..base },
        SiftOptions { descriptors: DescriptorKind::None, ..base },
        SiftOptions { levels: 1, ..base },
        SiftOptions { levels: 5, first_octave: 0, ..base },
        SiftOptions { octaves: Some(1), ..base },
        SiftOptions { sigma: 2.3, input_sigma: 1.1, edge: 5.0, ..base },
        SiftOptions { contrast: 0.0, edge: 1e4, ..base },
    ];
    let options: Vec<SiftOptions> =
        options.into_iter().chain(selections(10, |selection| SiftOptions { selection, ..base })).collect();
    for gpu in all() {
        for (i, options) in options.iter().enumerate() {
            let mask = (i % 2 == 0).then_some(&mask);
            assert!(agree(gpu, &image, mask, options) > 0, "{options:?}");
        }
        assert!(agree(gpu, &deep, Some(&mask), &base) + agree(gpu, &float, None, &base) >= 4, "cuts");
    }
}

#[test]
fn more_features_than_bands_have_room_for_are_found() {
    let image = scene(Size::new(48, 300), 3);
    let options = SiftOptions { contrast: 0.005, ..SiftOptions::default() };
    let expected = of_cpu(&image, None, &options);
    for gpu in all() {
        for cut in cuts(image.size(), &options, 60) {
            let sift = GpuSift::new(&beside(gpu), options).unwrap();
            let parts = for_parts(&sift.core).unwrap();
            let mut bands = Bands::new(parts, cut.clone(), PixelKind::U8, false).unwrap();
            bands.band.capacity = 9;
            bands.rest.as_mut().unwrap().capacity = 1;
            keep(&sift, bands);
            let found = sift.detect(&image, None).unwrap();
            assert_same_features(&found, &expected, &format!("{gpu:?}, {cut:?}"));
        }
    }
}

/// A photograph is searched in bands down to some limit of memory, and refused below it.
#[test]
fn a_photograph_takes_no_more_memory_than_is_allowed_and_keeps_its_features() {
    let image = photograph("pairs/cudasift/left.pgm", Size::new(90, 960));
    let mask = Image::from_fn(image.size(), |x, _| u8::from(x > 20));
    let options = SiftOptions::default();
    let (expected, masked) = (of_cpu(&image, None, &options), of_cpu(&image, Some(&mask), &options));
    for gpu in all() {
        let whole = Plan::new(image.size(), 1, &options).unwrap();
        let capacity = SiftPipeline::usual_capacity(&whole);
        let purpose = Purpose { layout: whole, pixel: PixelKind::U8, masked: true, capacity };
        let needed = SiftPipeline::bytes(&options, &purpose);
        let on_device = GpuImage::upload(gpu, image.view()).unwrap();
        let mut most = 1;
        for limit in [needed, needed / 2, needed * 2 / 5] {
            let sift = GpuSift::new(&beside(gpu), options).unwrap().with_memory(limit);
            assert!(sift.detect(image.view(), None).unwrap() == expected, "{gpu:?} from the host");
            assert!(sift.detect(&on_device, None).unwrap() == expected, "{gpu:?} on the device");
            assert_eq!(sift.parts() > 1, limit < needed, "{} parts", sift.parts());
            assert!(sift.detect(&on_device, Some(mask.view())).unwrap() == masked, "{gpu:?} with a mask");
            let there = sift.detect_on_device(&on_device, Some(mask.view().into())).unwrap();
            assert!(there.download().unwrap() == masked, "{gpu:?} left there");
            let batch = sift.detect_batch(&[on_device.clone(), on_device.clone()]).unwrap();
            assert!(batch.iter().all(|found| *found == expected), "{gpu:?}, two at once");
            most = most.max(sift.parts());
        }
        assert!(most > 2, "{most} parts at most");
        let sift = GpuSift::new(&beside(gpu), options).unwrap().with_memory(needed / 9);
        let refused = sift.detect(image.view(), None);
        assert!(
            matches!(refused, Err(Error::Memory { shortage: Shortage::Limit(l), .. }) if l == needed / 9),
            "{refused:?}"
        );
        assert!(sift.enqueue(&[on_device.into()], None).is_err_and(|e| is_of_memory(&e)), "no bands here");
    }
}

#[test]
fn images_too_large_for_a_device_are_searched_in_bands() {
    let image = scene(Size::new(60, 700), 5);
    let options = SiftOptions::default();
    let expected = of_cpu(&image, None, &options);
    for gpu in all() {
        let refused = || {
            let shortage = Shortage::Device { name: "full".into(), free: None };
            Error::Memory { what: "a test", needed: 1 << 40, shortage }
        };
        let sift = GpuSift::new(&beside(gpu), options).unwrap();
        let pixels = Pixels::from(&image);
        let (bands, found) = Bands::fit(&for_parts(&sift.core).unwrap(), &pixels, None, refused()).unwrap();
        let found = options.selection.of(&found, &Cpu::sequential());
        assert_same_features(&found, &expected, &format!("{gpu:?}"));
        let parts = bands.count();
        keep(&sift, bands);
        assert!(sift.detect(image.view(), None).unwrap() == expected, "{gpu:?}, the next image");
        assert!(parts == sift.parts() && (parts > 1 || gpu.free_memory().is_some()), "{parts} parts at once");
        let small =
            image.view().crop(Rect { size: Size::new(50, 40), ..Rect::default() }).unwrap().to_image();
        assert!(sift.detect(small.view(), None).unwrap() == of_cpu(&small, None, &options), "{gpu:?}");
        assert_eq!(sift.parts(), 1, "an image of another size is searched whole");
        let other = Bands::fit(&sift.core, &Pixels::from(&small), None, refused());
        assert!(
            matches!(other.map(drop), Err(Error::Memory { needed: 1_099_511_627_776, .. })),
            "too small to cut"
        );
    }
}

#[test]
fn progress_is_reported_for_each_band() {
    let image = scene(Size::new(60, 700), 5);
    let options = SiftOptions::default();
    let cuts =
        cuts(image.size(), &options, 100).into_iter().filter(|cut| cut.rest.is_some() && cut.count() > 2);
    let cut = cuts.min_by_key(Cut::count).unwrap();
    let steps = cut.count() + 1;
    for gpu in all() {
        // Compiles the kernels first, because compiling is reported as progress too.
        cut_so(&beside(gpu), &cut, PixelKind::U8, false, &options);
        let told = told(&Cpu::sequential(), steps, |cpu| {
            let processor = beside(gpu).with_cpu(cpu.clone());
            let sift = cut_so(&processor, &cut, PixelKind::U8, false, &options);
            sift.detect(&image, None).unwrap()
        });
        assert!(told.iter().all(|p| p.task == "SIFT" && p.total == steps as u64), "{gpu:?}: {told:?}");
    }
}
