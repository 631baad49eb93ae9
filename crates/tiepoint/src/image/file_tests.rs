//! Image files: round trips, damage and hostile headers.

use super::*;
use crate::device::{Cpu, Processor};
use crate::files::tests::Folder;
use crate::geometry::warp::{Interpolation, WarpOptions};
use crate::geometry::{Homography, Model};
use crate::register::warp_onto;
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::{fs, path::PathBuf};

/// A file in a folder that no other test uses; the folder is removed on drop.
fn scratch(extension: &str) -> (Folder, PathBuf) {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let folder = Folder::new(&format!("image-{}", NEXT.fetch_add(1, Relaxed)));
    let file = folder.join("a").with_extension(extension);
    (folder, file)
}

/// Pseudo-random bits for element `i`.
fn noise(i: usize) -> u64 {
    let x = (i as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32
}

fn image_of(kind: usize, size: Size, channels: usize) -> AnyImage {
    let n = size.area() * channels;
    match kind {
        0 => Image::from_vec((0..n).map(|i| noise(i) as u8).collect(), size, channels).unwrap().into(),
        1 => Image::from_vec((0..n).map(|i| noise(i) as u16).collect(), size, channels).unwrap().into(),
        _ => Image::from_vec((0..n).map(|i| noise(i) as f32 / 4e9).collect(), size, channels).unwrap().into(),
    }
}

fn written<'a>(extension: &str, image: impl Into<AnyView<'a>>) -> Vec<u8> {
    let (_folder, file) = scratch(extension);
    write(&file, image).unwrap();
    fs::read(&file).unwrap()
}

fn decoded(bytes: &[u8]) -> Result<AnyImage> {
    decode(bytes, "test", &ReadOptions::default())
}

fn file_of(bytes: &[u8]) -> FileImage {
    decode_file(bytes, "test", &ReadOptions::default()).unwrap()
}

/// How many pixels a file hides.
fn hidden(file: &FileImage) -> usize {
    file.shown.as_ref().map_or(0, |shown| shown.data().iter().filter(|v| **v == 0).count())
}

fn floats(image: AnyImage) -> Image<f32> {
    let AnyImage::F32(image) = image else { panic!("{:?} in place of floats", image.view().pixel()) };
    image
}

fn grey_of(image: &AnyImage) -> AnyImage {
    grey(image, &Cpu::sequential()).unwrap().into_image()
}

fn warped(image: &AnyImage, by: Homography, options: &WarpOptions) -> Result<(AnyImage, Image<u8>)> {
    let cpu = Processor::from(Cpu::sequential());
    let found = warp_onto(image, image.size(), &Model::Homography(by), options, &cpu)?.into_host()?;
    Ok((found.image, found.covered))
}

/// Near infrared beside three colours would hide what is dark in it.
#[test]
fn bands_none_of_which_is_alpha_are_not_written_where_the_last_would_be() {
    for (channels, kind) in [(2, 0), (4, 0), (4, 1), (4, 2)] {
        let image = image_of(kind, Size::new(5, 4), channels);
        let layout = Layout { alpha: None, ..Layout::usual(channels) };
        for extension in ["png", "pam", "exr"] {
            let (_folder, file) = scratch(extension);
            let told = write_known(&file, &image, &Known { layout: Some(layout), ..Known::default() });
            assert!(matches!(told, Err(Error::Format { .. })), "{channels}, {extension}: {told:?}");
            assert!(!file.exists(), "{extension}");
            write_known(&file, &image, &Known::default()).unwrap();
        }
    }
}

#[test]
fn the_header_tells_size_and_type() {
    for extension in ["png", "tif", "pfm"] {
        for kind in 0..3 {
            let image = image_of(kind, Size::new(37, 23), 1);
            let (_folder, file) = scratch(extension);
            write(&file, &image).unwrap();
            let whole = read(&file, &ReadOptions::default()).unwrap();
            let shape = read_shape(&file, &ReadOptions::default()).unwrap();
            assert_eq!(shape, (whole.size(), whole.view().pixel()), "{extension}, {kind}");
            let narrow = ReadOptions::default().with_max_pixels(100);
            assert!(read_shape(&file, &narrow).is_err(), "{extension}, {kind}: above the limit");
        }
    }
    assert!(read_shape("no such file.png", &ReadOptions::default()).is_err(), "there is none");
}

/// `image` as a format of 8 and 16 bits stores it.
fn levelled(image: &AnyImage) -> AnyImage {
    let AnyImage::F32(i) = image else { return image.clone() };
    let data = i.data().iter().map(|v| v.level() as u16).collect();
    Image::from_vec(data, i.size(), i.channels()).unwrap().into()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn round_trips(width in 1_usize..40, height in 1_usize..40, kind in 0_usize..3, channels in 1_usize..5) {
        let image = image_of(kind, Size::new(width, height), channels);
        let grey = grey_of(&image);
        for (extension, expected) in [("tif", image.clone()), ("png", levelled(&image)), ("pam", levelled(&image))] {
            let bytes = written(extension, &image);
            prop_assert_eq!(&decoded(&bytes).unwrap(), &expected, "{}", extension);
            let by_rows = decode_grey_alpha(&bytes, "test", &ReadOptions::default()).unwrap().image;
            prop_assert_eq!(alpha_mask(&by_rows), alpha_mask(&expected), "{}: what shows", extension);
            prop_assert_eq!(grey_of(&by_rows), grey_of(&expected), "{} as grey", extension);
        }
        prop_assert_eq!(decoded(&written("pgm", &grey)).unwrap(), levelled(&grey), "pgm");
        if kind == 2 {
            prop_assert_eq!(&decoded(&written("pfm", &grey)).unwrap(), &grey, "pfm");
        }
        if channels == 3 {
            prop_assert_eq!(decoded(&written("ppm", &image)).unwrap(), levelled(&image), "ppm");
            if kind == 2 {
                prop_assert_eq!(decoded(&written("pfm", &image)).unwrap(), image, "pfm in colour");
            }
        }
    }
}

/// The samples' grey: (9x + 5y) mod 256.
fn sample_grey(x: usize, y: usize) -> u8 {
    (9 * x + 5 * y) as u8
}

/// A sample of 21x13 pixels; `pixel` gives each from its grey value and its column.
fn sample_of<T: Pixel>(channels: usize, pixel: impl Fn(u8, usize) -> Vec<T>) -> AnyImage {
    let size = Size::new(21, 13);
    let places = (0..13).flat_map(|y| (0..21).map(move |x| (x, y)));
    let data = places.flat_map(|(x, y)| pixel(sample_grey(x, y), x)).collect();
    Image::from_vec(data, size, channels).unwrap().into()
}

fn colour(g: u8, x: usize) -> Vec<u8> {
    vec![g, 255 - g, (7 * x) as u8]
}

macro_rules! sample {
    ($name:literal) => {
        include_bytes!(concat!("../../tests/samples/", $name)).as_slice()
    };
}

macro_rules! samples {
    ($($name:literal: $expected:expr,)*) => {
        vec![$(($name, sample!($name), $expected)),*]
    };
}

/// Files written by OpenCV (the compressed TIFFs and the JPEGs), GDAL and tifffile (palette.tif and the TIFFs below it),
/// Pillow, libjxl, `OpenEXR` and NumPy (the formats below those), and byte by byte after the formats' specifications.
fn exact_samples() -> Vec<(&'static str, &'static [u8], AnyImage)> {
    let rgb = sample_of(3, colour);
    let rgb16 = sample_of(3, |g, x| colour(g, x).into_iter().map(|v| u16::from(v) * 257).collect());
    let palette = |g: u8| vec![g / 16 * 17, 255 - g / 16 * 17, g / 16 * 3];
    let alpha = |g: u8| if g / 16 < 8 { g / 16 } else { 255 };
    samples! {
        "grey1.png": sample_of(1, |g, _| vec![g / 128 * 255]),
        "grey2.png": sample_of(1, |g, _| vec![g / 64 * 85]),
        "palette4.png": sample_of(3, |g, _| palette(g)),
        "palette4_alpha.png": sample_of(4, |g, _| [palette(g), vec![alpha(g)]].concat()),
        "interlaced.png": rgb.clone(),
        "interlaced16.png": rgb16.clone(),
        "bits1.tif": sample_of(1, |g, _| vec![g / 128 * 255]),
        "bits4.tif": sample_of(1, |g, _| vec![g / 16 * 17]),
        "white_is_zero.tif": sample_of(1, |g, _| vec![g]),
        "grey_alpha.tif": sample_of(2, |g, _| vec![g, 255 - g]),
        "cmyk.tif": rgb.clone(),
        "lzw.tif": rgb.clone(),
        "deflate.tif": rgb.clone(),
        "packbits.tif": rgb.clone(),
        "planar_strips.tif": rgb.clone(),
        "planar_tiled.tif": rgb.clone(),
        "tiled.tif": rgb,
        "tiled_deflate_big.tif": rgb16,
        "palette.tif": sample_of(3, |g, _| palette(g)),
        "zstd_predictor.tif": sample_of(1, |g, _| vec![u16::from(g) * 129]),
        "int16.tif": sample_of(1, |g, _| vec![f32::from(g) - 99.0]),
        "bits12.tif": sample_of(1, |g, _| vec![u16::from(g) * 16]),
        "fill_order.tif": sample_of(1, |g, _| vec![g]),
        "sparse.tif": sample_of(1, |g, x| vec![if x < 16 { g } else { 0 }]),
        "masked.tif": sample_of(1, |g, _| vec![g]),
        "colour.webp": sample_of(3, colour),
        "colour.bmp": sample_of(3, colour),
        "palette.gif": sample_of(3, |g, _| palette(g)),
        "words.j2k": sample_of(1, |g, _| vec![u16::from(g) * 16]),
        "words.jxl": sample_of(1, |g, _| vec![u16::from(g) * 257]),
        "colour.jxl": sample_of(3, colour),
        "colour.exr": sample_of(3, |g, x| colour(g, x).into_iter().map(f32::from).collect()),
        "float.exr": sample_of(1, |g, _| vec![f32::from(g) / 255.0]),
        "words.npy": sample_of(1, |g, _| vec![u16::from(g) * 129]),
        "float_predictor.tif": sample_of(1, |g, _| vec![(f64::from(g) / 255.0) as f32]),
    }
}

#[test]
fn samples_of_every_kind_are_read() {
    for (name, bytes, expected) in exact_samples() {
        assert_eq!(decoded(bytes).unwrap(), expected, "{name}");
        let by_rows = decode_grey_alpha(bytes, name, &ReadOptions::default()).unwrap().image;
        assert_eq!(grey_of(&by_rows), grey_of(&expected), "{name} as grey");
    }
}

#[test]
fn what_a_tiff_says_of_its_bands_goes_with_the_resampled_image() {
    let (_folder, file) = scratch("tif");
    let bands = "<GDALMetadata><Item name=\"SCALE\" sample=\"0\" role=\"scale\">0.01</Item></GDALMetadata>";
    let ramp = Image::from_fn(Size::new(9, 5), |x, y| (x * 100 + y) as u16);
    write_known(&file, &ramp, &Known { bands: Some(bands), ..Known::default() }).unwrap();
    let read = read_file(&file, &ReadOptions::default()).unwrap();
    assert_eq!(read.bands.as_deref(), Some(bands));
    write_known(&file, &ramp, &Known { bands: Some(bands), no_data: Some(7.0), ..Known::default() }).unwrap();
    let bytes = fs::read(&file).unwrap();
    let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let first = usize::from(word(4));
    let tags: Vec<u16> = (0..usize::from(word(first))).map(|i| word(first + 2 + 12 * i)).collect();
    assert!(tags.is_sorted() && tags.ends_with(&[42112, 42113]), "{tags:?}");
    let to = Size::new(4, 2);
    let half = read.resampled(to, |_, _| Ok((Image::filled(to, 1, 7_u16).into(), Image::filled(to, 1, 255))));
    assert_eq!(half.unwrap().known().bands, Some(bands));
}

#[test]
fn pixels_without_data_are_hidden() {
    let (cpu, options) = (Cpu::sequential(), ReadOptions::default());
    let shown = |file: FileImage| file.into_seen().1.map(Image::into_vec);
    let masked = sample!("masked.tif");
    let expected: Vec<u8> = (0..13).flat_map(|y| (0..21).map(move |x| if x > y { 255 } else { 0 })).collect();
    assert_eq!(shown(file_of(masked)), Some(expected.clone()), "a mask in the file");
    let grey = decode_grey_alpha(masked, "m", &options).unwrap();
    assert_eq!(shown(grey.clone()), Some(expected), "as grey");
    let prepared = grey.prepared(Mask::All, Range::Auto, &cpu).unwrap();
    let counts = prepared.mask.into_image().unwrap();
    assert_eq!((counts.row(0)[10], counts.row(0)[11]), (0, 255), "no nearer than the margin");

    let size = Size::new(40, 30);
    let ramp =
        Image::from_fn(
            size,
            |x, y| if (10..20).contains(&x) && y > 12 { 7_u16 } else { 100 + (x * y) as u16 },
        );
    let valid = Image::from_fn(size, |x, _| if x == 39 { 0_u8 } else { 255 });
    let (_folder, file) = scratch("tif");
    for (no_data, valid, zeros, compression) in [
        (Some(7.0), None, 10 * 17, Compression::None),
        (None, Some(&valid), 30, Compression::Zstd),
        (None, Some(&valid), 30, Compression::Deflate),
        (Some(-1.0), None, 0, Compression::Zstd),
    ] {
        write_known(&file, &ramp, &Known { no_data, valid, compression, ..Known::default() }).unwrap();
        let read = read_file(&file, &options).unwrap();
        assert_eq!(read.image, ramp.clone().into(), "{no_data:?}");
        assert_eq!(hidden(&read), zeros, "{no_data:?}");
    }
    let seen = |value: u16| {
        let marked = Image::from_fn(size, |x, y| if ramp.row(y)[x] == 7 { value } else { ramp.row(y)[x] });
        let known = Known { no_data: Some(value.into()), ..Known::default() };
        write_known(&file, &marked, &known).unwrap();
        read_file(&file, &options).unwrap().prepared(Mask::All, Range::Auto, &cpu).unwrap().image.into_image()
    };
    assert_eq!(seen(7), seen(60_000), "detectors do not see the values of pixels without data");
    let (_folder, file) = scratch("png");
    let beside = file.with_extension("png.msk");
    write_known(&file, &ramp, &Known { valid: Some(&valid), ..Known::default() }).unwrap();
    assert_eq!(read_file(&file, &options).unwrap().shown, Some(valid), "a mask beside the file");
    write_known(&file, &ramp, &Known::default()).unwrap();
    assert!(!beside.exists(), "a mask of an earlier file is not left");
}

/// A mask beside a picture that names a no-data value was lost in a TIFF.
#[test]
fn what_a_mask_hides_stays_hidden_in_a_tiff() {
    let (size, options) = (Size::new(6, 2), ReadOptions::default());
    let valid = Image::from_fn(size, |x, _| if x < 3 { 0_u8 } else { 255 });
    let (_folder, file) = scratch("tif");
    let written = |image: &AnyImage, no_data, layout| {
        let known = Known { no_data, layout, valid: Some(&valid), ..Known::default() };
        write_known(&file, image, &known).unwrap();
        (read_file(&file, &options).unwrap(), fs::read(&file).unwrap())
    };
    for kind in 0..3 {
        let bands = Layout { channels: 2, first: 0, colours: 1, alpha: None };
        for (channels, layout) in [(1, None), (3, None), (2, Some(bands))] {
            let image = image_of(kind, size, channels);
            for no_data in [None, Some(0.0), Some(7.0), Some(-9999.0)] {
                let (read, bytes) = written(&image, no_data, layout);
                assert_eq!(read.valid().unwrap().as_ref(), Some(&valid), "{kind}, {channels}, {no_data:?}");
                let (_, again) = written(&read.image, no_data, layout);
                assert_eq!(again, bytes, "{kind}, {channels}, {no_data:?}: nothing more");
            }
        }
        let coloured = with_alpha(&image_of(kind, size, 3), &Image::filled(size, 1, 255)).unwrap();
        let (read, _) = written(&coloured, None, None);
        assert_eq!(alpha_mask(&read.image).as_ref(), Some(&valid), "{kind}: transparent");
    }
    // Where the searched band alone lacks data, the value of the other band stays.
    let image = Image::from_fn(size, |x, _| if x < 3 { -9999.0 } else { 1.0 });
    let two = Image::from_vec(image.data().iter().flat_map(|v| [*v, 5.0]).collect(), size, 2).unwrap();
    let bands = Layout { channels: 2, first: 0, colours: 1, alpha: None };
    assert_eq!(written(&two.clone().into(), Some(-9999.0), Some(bands)).0.image, two.into());
}

#[test]
fn a_mask_or_a_layout_of_another_image_is_refused() {
    let image = image_of(0, Size::new(6, 2), 1);
    let layout = |channels, first, alpha| Layout { channels, first, colours: 1, alpha };
    for extension in ["tif", "png", "pgm", "npy", "jpg"] {
        let (_folder, file) = scratch(extension);
        for size in [Size::new(2, 2), Size::new(9, 9)] {
            let valid = Image::filled(size, 1, 0);
            let told = write_known(&file, &image, &Known { valid: Some(&valid), ..Known::default() });
            assert!(matches!(told, Err(Error::Mismatch(_))), "{extension}, {size}: {told:?}");
        }
        for wrong in [Layout::usual(3), layout(1, 5, None), layout(1, 0, Some(9))] {
            let told = write_known(&file, &image, &Known { layout: Some(wrong), ..Known::default() });
            assert!(matches!(told, Err(Error::Mismatch(_))), "{extension}, {wrong:?}: {told:?}");
        }
        assert!(!file.exists(), "{extension}");
    }
}

/// Few rows of many channels look like channels before rows.
#[test]
fn arrays_of_few_rows_are_read_back_or_not_written() {
    let (_folder, file) = scratch("npy");
    for (height, channels, holds) in
        [(3, 6, true), (1, 16, true), (4, 17, false), (5, 40, true), (4, 4, true)]
    {
        let image = image_of(1, Size::new(7, height), channels);
        match write(&file, &image) {
            Ok(()) => {
                assert_eq!(read(&file, &ReadOptions::default()).unwrap(), image, "{height}, {channels}");
            }
            Err(told) => assert!(told.to_string().contains("channels first; .tif holds it"), "{told}"),
        }
        assert_eq!(write(&file, &image).is_ok(), holds, "{height}, {channels}");
    }
}

#[test]
fn files_that_cannot_name_a_no_data_value_hold_nan_in_its_place() {
    let (size, options) = (Size::new(4, 2), ReadOptions::default());
    let grey = Image::from_fn(size, |x, y| if x == 1 { -32768.0 } else { (x + y) as f32 });
    let valid = Image::from_fn(size, |x, _| if x == 1 { 0_u8 } else { 255 });
    let colour =
        Image::from_vec((0..24).map(|i| if i == 5 { -32768.0 } else { i as f32 }).collect(), size, 3);
    let colour = colour.unwrap();
    for extension in ["pfm", "npy", "exr"] {
        let (_folder, file) = scratch(extension);
        let marked = |v: f32| if v == -32768.0 { None } else { Some(v) };
        for (image, valid) in [(&grey, Some(&valid)), (&grey, None), (&colour, None)] {
            let known = Known { no_data: Some(-32768.0), valid, ..Known::default() };
            write_known(&file, image, &known).unwrap();
            let found = floats(read(&file, &options).unwrap()).into_vec();
            let found = found.into_iter().map(|v| (!v.is_nan()).then_some(v));
            assert!(found.eq(image.data().iter().map(|v| marked(*v))), "{extension}");
        }
    }
}

#[test]
fn bands_of_integers_lack_data_one_by_one_and_colours_together() {
    let size = Size::new(30, 20);
    let hole = |x: usize, y: usize| (10..16).contains(&x) && (8..14).contains(&y);
    let values = (0..20).flat_map(|y| (0..30).map(move |x| (x, y)));
    let values = values.flat_map(|(x, y)| [100, 110, if hole(x, y) { 0 } else { 120_u16 }]).collect();
    let image = Image::from_vec(values, size, 3).unwrap();
    let bands = Layout { channels: 3, first: 0, colours: 1, alpha: None };
    let half = Homography::new([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]]).unwrap();
    let resampled = |layout: Layout| {
        let file = FileImage { layout, no_data: Some(0.0), ..AnyImage::from(image.clone()).into() };
        let place = |image: &AnyImage, fill| warped(image, half, &WarpOptions::default().with_fill(fill));
        let AnyImage::U16(found) = file.resampled(size, place).unwrap().image else {
            panic!("the type stays")
        };
        found
    };
    let found = resampled(bands);
    let third = |found: &Image<u16>, is_wanted: fn(u16) -> bool| {
        let inner = (2..19).flat_map(|y| (2..29).map(move |x| found.row(y)[3 * x + 2]));
        inner.filter(|v| is_wanted(*v)).count()
    };
    assert_eq!(third(&found, |v| v != 0 && v != 120), 0, "nothing between data and no data");
    assert!((20..100).contains(&third(&found, |v| v == 0)), "the hole stays");
    assert_eq!(found.row(11)[3 * 13..][..2], [100, 110], "other bands hold data there");
    assert!(third(&resampled(Layout::usual(3)), |v| v != 0 && v != 120) > 0, "0 is a value of a colour");
    // What bicubic interpolation makes 0 beside an edge is no hole.
    let edge = (0..1800).map(|i| if i / 3 % 30 < 15 - i % 3 { 1 } else { 60_000_u16 }).collect();
    let edge = AnyImage::from(Image::from_vec(edge, size, 3).unwrap());
    let file = FileImage { layout: bands, no_data: Some(0.0), ..edge.into() };
    let options = WarpOptions::default().with_interpolation(Interpolation::Bicubic);
    let found = file.resampled(size, |image, fill| warped(image, half, &options.with_fill(fill))).unwrap();
    let AnyImage::U16(image) = &found.image else { panic!("the type stays") };
    assert!(found.shown.is_none() && !image.data().contains(&0), "each band moves aside by itself");
    // The same holds for what a filter computes, also of pixels that all hold data.
    let filtered = file.filtered(Image::filled(size, 3, 0_u16).into()).unwrap();
    assert_eq!(filtered.image, Image::filled(size, 3, 1_u16).into());
}

#[test]
fn one_colour_without_data_spoils_the_grey_of_floats_but_not_of_words() {
    let (cpu, options, size) = (Cpu::sequential(), ReadOptions::default(), Size::new(40, 30));
    let (_folder, file) = scratch("tif");
    let seen = |mark: f32, as_words: bool| {
        let value =
            |i: usize| if i.is_multiple_of(3) && i / 3 % 40 < 9 { mark } else { 100.0 + (i % 97) as f32 };
        let data: Vec<f32> = (0..size.area() * 3).map(value).collect();
        let image: AnyImage = match as_words {
            true => Image::from_vec(data.iter().map(|v| *v as u16).collect(), size, 3).unwrap().into(),
            false => Image::from_vec(data, size, 3).unwrap().into(),
        };
        write_known(&file, &image, &Known { no_data: Some(mark.into()), ..Known::default() }).unwrap();
        let [whole, grey] =
            [read_file(&file, &options), read_grey_alpha(&file, &options, &cpu)].map(|read| {
                let read = read.unwrap();
                let count = hidden(&read);
                (read.prepared(Mask::All, Range::Auto, &cpu).unwrap().image.into_image(), count)
            });
        assert_eq!(whole, grey, "{mark}");
        whole
    };
    assert_eq!(seen(-9999.0, false), seen(30_000.0, false), "its value has no influence");
    assert_eq!((seen(-9999.0, false).1, seen(0.0, true).1), (9 * 30, 0));
}

#[test]
fn a_hole_in_the_band_that_is_searched_is_none_in_the_others() {
    let (size, bands) = (Size::new(12, 9), Layout { channels: 3, first: 0, colours: 1, alpha: None });
    let in_hole = |x: usize, y: usize| x < 5 && y < 4;
    let value = |i: usize, hole: f32| match (i % 3, in_hole(i / 3 % 12, i / 36)) {
        (0, true) => hole,
        (band, _) => 10.0 + band as f32,
    };
    for hole in [-9999.0, f32::NAN] {
        let data: Vec<f32> = (0..size.area() * 3).map(|i| value(i, hole)).collect();
        let image = Image::from_vec(data, size, 3).unwrap();
        let shown = Image::from_fn(size, |x, y| if in_hole(x, y) && !hole.is_nan() { 0 } else { 255 });
        let file = FileImage {
            layout: bands,
            no_data: Some(-9999.0),
            shown: Some(shown),
            ..AnyImage::from(image).into()
        };
        let same = |image: &AnyImage, _: f32| Ok((image.clone(), Image::filled(size, 1, 255)));
        let found = file.resampled(size, same).unwrap();
        let image = floats(found.image);
        let expected: Vec<f32> = (0..size.area() * 3).map(|i| value(i, -9999.0)).collect();
        assert_eq!(image.data(), expected, "{hole}: only the first band lacks data, and by its value");
        let hidden = found.shown.unwrap();
        assert!((0..9).all(|y| (0..12).all(|x| (hidden.row(y)[x] == 0) == in_hole(x, y))), "{hole}");
        // A mask of the file hides all bands.
        let mut masked = file.clone();
        masked.hide_by(Some(Image::from_fn(size, |x, _| if x == 11 { 0 } else { 255 }))).unwrap();
        let image = floats(masked.resampled(size, same).unwrap().image);
        let masked = |i: usize| if i / 3 % 12 == 11 { -9999.0 } else { value(i, -9999.0) };
        assert_eq!(image.data(), (0..size.area() * 3).map(masked).collect::<Vec<_>>(), "{hole}");
    }
}

#[test]
fn values_without_data_take_no_part_in_resampling() {
    let size = Size::new(30, 20);
    let hole = |x: usize, y: usize| (10..14).contains(&x) && (8..12).contains(&y);
    let image = Image::from_fn(size, |x, y| if hole(x, y) { 60_000 } else { 1000 + x as u16 });
    let shown = Image::from_fn(size, |x, y| if hole(x, y) { 0 } else { 255_u8 });
    let blurred = |image: &AnyImage, _: f32| -> Result<(AnyImage, Image<u8>)> {
        let AnyImage::F32(i) = image else { panic!("floats carry what is hidden") };
        let at = |x: usize, y: usize| 0.5 * i.row(y)[x] + 0.5 * i.row(y)[(x + 1).min(29)];
        Ok((Image::from_fn(size, at).into(), Image::filled(size, 1, 255)))
    };
    let mut file = FileImage::from(AnyImage::from(image));
    file.shown = Some(shown);
    for (no_data, marker) in [(None, 0), (Some(60_000.0), 60_000)] {
        file.no_data = no_data;
        let placed = file.resampled(size, blurred).unwrap();
        let (AnyImage::U16(values), Some(valid)) = (&placed.image, &placed.shown) else {
            panic!("words and a mask")
        };
        for (i, (v, valid)) in values.data().iter().zip(valid.data()).enumerate() {
            let (x, y) = (i % 30, i / 30);
            let expected = hole(x, y) || hole(x + 1, y);
            assert_eq!(*valid == 0, expected, "{x}, {y}");
            assert!(if expected { *v == marker } else { (1000..1031).contains(v) }, "{x}, {y}: {v}");
        }
    }
}

/// A TIFF of one row of pixels of fewer than 8 bits.
fn tiff_of_bits(bits: u16, white: u16, no_data: &[u8; 4], pixels: [u8; 4]) -> Vec<u8> {
    let shorts =
        [(256, 32 / bits), (257, 1), (258, bits), (262, white), (273, 8), (277, 1), (278, 1), (279, 4)];
    let mut entries: Vec<_> = shorts.map(|(tag, value)| (tag, 3, 1, value.into())).to_vec();
    entries.push((42113, 2, 4, u32::from_le_bytes(*no_data)));
    testing::tiff(&pixels, &entries, &[])
}

#[test]
fn no_data_of_few_bits_is_stretched_with_the_pixels() {
    for (bits, white, text, pixels, no_data, count) in [
        (4, 1, b"5\0\0\0", [0x51, 0x25, 0xff, 0x00], Some(85.0), 2),
        (4, 0, b"5\0\0\0", [0x51, 0x25, 0xff, 0x00], Some(170.0), 2),
        (4, 1, b"255\0", [0x51, 0x25, 0xff, 0x00], None, 0),
        (2, 1, b"1\0\0\0", [0x1b, 0x55, 0xff, 0x00], Some(85.0), 5),
        (1, 1, b"1\0\0\0", [0xf0, 0x01, 0x00, 0x00], Some(255.0), 5),
        // Wide values are not inverted where white is 0, so their no-data value is not, either.
        (32, 0, b"5\0\0\0", [5, 0, 0, 0], Some(5.0), 1),
    ] {
        let read = file_of(&tiff_of_bits(bits, white, text, pixels));
        assert_eq!((read.no_data, hidden(&read)), (no_data, count), "{bits} bits, {white}");
    }
}

#[test]
fn a_tiff_is_read_although_something_beside_its_pixels_is_odd() {
    let whole = tiff_of_bits(8, 1, b"5\0\0\0", [1, 5, 9, 5]);
    let changed = |tag: u16, field: &[u8]| {
        let mut file = whole.clone();
        let at = (14..).step_by(12).find(|at| file[*at..at + 2] == tag.to_le_bytes()).unwrap();
        file[at + 2..at + 2 + field.len()].copy_from_slice(field);
        file
    };
    let pixels = AnyImage::from(Image::from_vec(vec![1_u8, 5, 9, 5], Size::new(4, 1), 1).unwrap());
    let no_length = changed(279, &[3, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(file_of(&no_length).image, pixels, "a strip without a length");
    let no_zero = changed(42113, &[2, 0, 1, 0, 0, 0, b'5', 0, 0, 0]);
    assert_eq!(file_of(&no_zero).no_data, Some(5.0), "no zero");
    let comma = changed(42113, &[2, 0, 4, 0, 0, 0, b'5', b',', b'0', 0]);
    assert_eq!(file_of(&comma).no_data, Some(5.0), "a comma before fractions");
    let latin = changed(42113, &[2, 0, 4, 0, 0, 0, b'5', 0xe9, 0, 0]);
    assert_eq!(file_of(&latin).image, pixels, "Latin-1");
    let mut signed = tiff_of_bits(4, 1, b"\0\0\0\0", [0x7f, 0x80, 0x10, 0]);
    let at = signed.len() - 4 - 12;
    signed[at..].copy_from_slice(&[0x53, 1, 3, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(floats(decoded(&signed).unwrap()).data(), [7.0, -1.0, -8.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    let (_folder, file) = scratch("tif");
    fs::write(&file, changed(273, &[16, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff])).unwrap();
    assert!(matches!(read(&file, &ReadOptions::default()), Err(Error::Format { .. })), "far away");
}

#[test]
fn only_the_grey_plane_is_inverted_where_white_is_0() {
    // Two pixels: a plane of grey, a plane of alpha.
    let entries = [
        (256, 1, [2, 0]),
        (257, 1, [1, 0]),
        (258, 2, [8, 8]),
        (262, 1, [0, 0]),
        (273, 2, [8, 10]),
        (277, 1, [2, 0]),
        (278, 1, [1, 0]),
        (279, 2, [2, 2]),
        (284, 1, [2, 0]),
        (338, 1, [2, 0]),
    ];
    let file =
        testing::tiff(&[10, 200, 255, 0], &entries.map(|(tag, n, [a, b])| (tag, 3, n, a | b << 16)), &[]);
    let expected = Image::from_vec(vec![245_u8, 255, 55, 0], Size::new(2, 1), 2).unwrap();
    assert_eq!(decoded(&file).unwrap(), expected.into());
}

#[test]
fn arrays_by_columns_are_read() {
    let image = Image::from_vec((0..24).map(|i| 1000 * i).collect::<Vec<u16>>(), Size::new(4, 3), 2).unwrap();
    let mut file = npy::header("<u2", &[3, 4, 2]);
    let at = file.windows(5).position(|word| word == b"False").unwrap();
    file[at..at + 5].copy_from_slice(b"True ");
    for channel in 0..2 {
        for x in 0..4 {
            (0..3).for_each(|y| file.extend(image.row(y)[2 * x + channel].to_le_bytes()));
        }
    }
    assert_eq!(decoded(&file).unwrap(), image.into());
    assert!(decoded(&file[..file.len() - 1]).is_err(), "truncated");
}

#[test]
fn four_bands_of_jpeg_2000_are_inks_only_where_the_file_says_so() {
    let bands = include_bytes!("../../tests/samples/bands.jp2");
    let space = bands.windows(4).position(|bytes| bytes == b"colr").unwrap() + 7;
    // Grey and sRGB.
    for (number, colours) in [(17_u32, 1), (16, 3)] {
        let mut file = bands.to_vec();
        file[space..space + 4].copy_from_slice(&number.to_be_bytes());
        let read = file_of(&file);
        assert_eq!((read.layout.channels, read.layout.colours), (4, colours), "{number}");
        let AnyImage::U8(image) = &read.image else { panic!("bytes") };
        assert_eq!(image.row(2)[4 * 3..4 * 4], [32, 62, 92, 122], "{number}");
    }
    let mut inks = bands.to_vec();
    inks[space..space + 4].copy_from_slice(&12_u32.to_be_bytes());
    assert!(decoded(&inks).unwrap_err().to_string().contains("CMYK"));
}

#[test]
fn colours_of_transparent_pixels_take_no_part_in_resampling() {
    let size = Size::new(40, 30);
    let hole = |x: usize, y: usize| (10..26).contains(&x) && (8..20).contains(&y) && x + y > 20;
    let turned = Homography::new([[0.98, -0.2, 3.3], [0.2, 0.98, -2.6], [0.0, 0.0, 1.0]]).unwrap();
    let options = WarpOptions::default().with_interpolation(Interpolation::Lanczos3);
    // Near infrared before the alpha channel is in no usual layout.
    for (n, marked) in [(2, false), (4, false), (4, true), (5, false)] {
        let values = |transparent: f32| -> Vec<f32> {
            let at = |i: usize| (i % n, i / n % size.width, i / n / size.width);
            let value = |(c, x, y)| match hole(x, y) {
                true if c == n - 1 => 0.0,
                true => transparent,
                false if c == n - 1 => 1.0,
                false => 0.6 + 0.1 * c as f32 / n as f32,
            };
            (0..n * size.area()).map(|i| value(at(i))).collect()
        };
        let floats = |transparent| Image::from_vec(values(transparent), size, n).unwrap();
        let bytes = values(0.0).iter().map(|v| (255.0 * v) as u8).collect();
        let words = values(0.0).iter().map(|v| (65_535.0 * v) as u16).collect();
        let images: [AnyImage; 4] = [
            Image::from_vec(bytes, size, n).unwrap().into(),
            Image::from_vec(words, size, n).unwrap().into(),
            floats(0.0).into(),
            floats(f32::NAN).into(),
        ];
        for image in images {
            let white = by_pixel!(type image.view().pixel(), T => T::WHITE);
            let mut file = FileImage::from(image);
            file.layout.alpha = Some(n - 1);
            file.shown = marked.then(|| Image::from_fn(size, |x, y| if x + y == 60 { 0 } else { 255 }));
            let found = file.resampled(size, |image, fill| warped(image, turned, &options.with_fill(fill)));
            let found = found.unwrap().image;
            let mut seen = [0, 0];
            let mut pixel = |pixel: Vec<f32>| {
                let alpha = pixel[n - 1] / white;
                seen[usize::from(alpha < 0.9)] += usize::from(alpha > 0.0);
                let least = pixel[..n - 1].iter().fold(white, |a, b| a.min(*b)) / white;
                assert!((0.0..=1.0).contains(&alpha), "{n}, {white}: alpha {alpha}");
                assert!(alpha <= 0.0 || least > 0.5, "{n}, {white}: {least} where alpha is {alpha}");
            };
            by_pixel!(&found, image => image.data().chunks_exact(n).map(|p| p.iter().map(|v| v.to_f32()).collect()).for_each(&mut pixel));
            assert!(seen[0] > 700 && seen[1] > 50, "{n}: alpha stays smooth: {seen:?}");
        }
    }
}

#[test]
fn masks_and_alpha_channels_are_read() {
    let (cpu, options, size) = (Cpu::sequential(), ReadOptions::default(), Size::new(7, 5));
    let shown = Image::from_fn(size, |x, y| if x > y { 255_u8 } else { 0 });
    for channels in [1, 3] {
        let image =
            AnyImage::from(Image::from_vec((0..35 * channels as u8).collect(), size, channels).unwrap());
        for image in [with_alpha(&image, &shown).unwrap(), image] {
            let (_folder, file) = scratch("png");
            write(&file, &image).unwrap();
            let read = read_grey_alpha(&file, &options, &cpu).unwrap().image;
            assert_eq!(
                read.channels(),
                if image.channels() > channels { 2 } else { 1 },
                "{channels} channels"
            );
            assert_eq!(alpha_mask(&read), alpha_mask(&image), "{channels} channels: what shows");
            assert_eq!(grey_of(&read), grey_of(&image), "{channels} channels: grey");
        }
    }
    let (_folder, file) = scratch("png");
    write(&file, &Image::from_fn(size, |x, _| (x * 300) as u16)).unwrap();
    let mask = Mask::read(&file, size, &options, &cpu).unwrap().into_image();
    assert_eq!(mask, Some(Image::from_fn(size, |x, _| if x > 0 { 255 } else { 0 })), "of 16 bits");
    let floats = Image::from_vec(vec![0.0, -1.0, f32::INFINITY, f32::NAN, 0.5], Size::new(5, 1), 1).unwrap();
    let counts = Mask::of_size(&floats.into(), &file, Size::new(5, 1)).unwrap().into_image();
    assert_eq!(counts.unwrap().data(), [0, 255, 255, 0, 255], "all but 0 and NaN");
    let refused = Mask::read(&file, Size::new(5, 7), &options, &cpu).unwrap_err().to_string();
    assert!(refused.contains("the mask is 7x5, its image 5x7"), "{refused}");
}

#[test]
fn not_a_number_and_infinity_stay() {
    for (name, bytes, exact) in
        [("double.tif", sample!("double.tif"), 1e-7), ("half.tif", sample!("half.tif"), 1e-3)]
    {
        let image = floats(decoded(bytes).unwrap());
        for y in 0..13 {
            for (x, v) in image.row(y).iter().enumerate() {
                match (x, y) {
                    (3, 2) => assert!(v.is_nan(), "{name}: NaN"),
                    (5, 4) => assert_eq!(*v, f32::INFINITY, "{name}: infinity"),
                    _ => {
                        let error = (v - f32::from(sample_grey(x, y)) / 255.0).abs();
                        assert!(error < exact, "{name}: {x}, {y}");
                    }
                }
            }
        }
        let back = floats(decoded(&written("tif", &image)).unwrap());
        let bits = |i: &Image<f32>| i.data().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&back), bits(&image), "{name}: written and read back");
    }
}

#[test]
fn jpegs_come_close() {
    let rgb = sample_of(3, colour);
    // Colour subsampled to half the size bleeds over the sharp edges of the sample.
    for (name, bytes, expected, mean) in [
        ("grey.jpg", sample!("grey.jpg"), sample_of(1, |g, _| vec![g]), 4.0),
        ("colour.jpg", sample!("colour.jpg"), rgb.clone(), 8.0),
        ("jpeg.tif", sample!("jpeg.tif"), rgb.clone(), 8.0),
        ("progressive.jpg", sample!("progressive.jpg"), rgb, 30.0),
    ] {
        let (AnyImage::U8(a), AnyImage::U8(b)) = (decoded(bytes).unwrap(), expected) else {
            panic!("not 8-bit")
        };
        assert_eq!((a.size(), a.channels()), (b.size(), b.channels()), "{name}");
        let off: u32 = a.data().iter().zip(b.data()).map(|(a, b)| u32::from(a.abs_diff(*b))).sum();
        let found = off as f32 / a.data().len() as f32;
        assert!(found < mean, "{name}: off by {found} on average");
    }
}

#[test]
fn text_formats_are_scaled_to_white() {
    let read = |text: &str| decoded(text.as_bytes());
    let grey =
        |data: &[u8], w, h| AnyImage::from(Image::from_vec(data.to_vec(), Size::new(w, h), 1).unwrap());
    assert_eq!(read("P1 3 1 1 0 1").unwrap(), grey(&[0, 255, 0], 3, 1), "1 is black");
    assert_eq!(read("P1\n#c\n3 1\n101").unwrap(), grey(&[0, 255, 0], 3, 1), "digits without blanks");
    assert_eq!(read("P2 3 1 4 0 1 4").unwrap(), grey(&[0, 64, 255], 3, 1), "maximum 4");
    assert_eq!(read("P2 3 1 # c\n 255\n# c\n0 1\n#c\n255").unwrap(), grey(&[0, 1, 255], 3, 1), "comments");
    let deep = Image::from_vec(vec![0_u16, 64, 65535], Size::new(3, 1), 1).unwrap();
    assert_eq!(read("P2 3 1 1023 0 1 1023").unwrap(), deep.into(), "ten bits");
    assert!(read("P2 3 1 4 0 1 5").unwrap_err().to_string().contains("above the maximum"), "5 of 4");
    assert!(read("P2 3 1 4 0 1").unwrap_err().to_string().contains("truncated"), "two of three");
    assert!(read("P2 3 1 4 0 x 1").unwrap_err().to_string().contains("\"x\""), "no number");
    assert!(read("P2 0 1 4").unwrap_err().to_string().contains("empty"), "no pixels");
    assert!(read("P5 1 1 70000 1").unwrap_err().to_string().contains("1 to 65535"), "maximum");
    assert!(read("P5 9999 9999 255\n0").unwrap_err().to_string().contains("cannot hold"), "not there");
    assert!(read("Pf 1 1 0\n0000").unwrap_err().to_string().contains("scale"), "PFM without an order");
    assert_eq!(
        read("Pf 1 2 1\n\u{0}\u{0}\u{0}\u{0}?\u{0}\u{0}\u{0}").ok(),
        Some(Image::from_vec(vec![0.5_f32, 0.0], Size::new(1, 2), 1).unwrap().into()),
        "big-endian PFM, from the bottom up"
    );
    let pixels = |header: &str| read(&format!("{header}\u{0}\u{0}\u{0}\u{0}?\u{0}\u{0}\u{0}")).ok();
    for header in ["Pf 1 2 1 \n", "Pf\r\n1 2\r\n1\r\n", "Pf 1 2 1 \r\n"] {
        assert_eq!(pixels(header), pixels("Pf 1 2 1\n"), "{header:?}: blanks at the end of the header");
    }
}

/// A PNG that says it has `width` by `height` pixels and holds 100 zeros, deflated.
fn hollow_png(width: u32, height: u32) -> Vec<u8> {
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut chunk = |kind: &[u8], data: &[u8]| {
        let body = [kind, data].concat();
        png.extend((data.len() as u32).to_be_bytes());
        png.extend(&body);
        png.extend(crc32fast::hash(&body).to_be_bytes());
    };
    chunk(b"IHDR", &[&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 0, 0, 0, 0]].concat());
    chunk(b"IDAT", b"\x78\x9c\x63\x60\xa0\x3d\x00\x00\x00\x64\x00\x01");
    chunk(b"IEND", b"");
    png
}

#[test]
fn hostile_headers_cost_nothing() {
    let before = resident();
    for (w, h) in [(0x7fff_ffff, 0x7fff_ffff), (60_000, 60_000), (0x7fff_ffff, 1), (1, 0x7fff_ffff)] {
        let error = decoded(&hollow_png(w, h)).unwrap_err().to_string();
        assert!(error.contains("cannot hold"), "{w}x{h}: {error}");
    }
    assert!(decoded(&hollow_png(10, 10)).is_err(), "100 values do not make rows with their filters");
    let image = written("png", &image_of(0, Size::new(11, 10), 3));
    let small = ReadOptions { max_bytes: 300, ..ReadOptions::default() };
    let few = ReadOptions { max_pixels: 100, ..ReadOptions::default() };
    for (options, name) in [(&few, "max_pixels"), (&small, "max_bytes")] {
        let error = decode(&image, "a", options).unwrap_err().to_string();
        assert!(error.contains(name), "the option is named: {error}");
    }
    assert!(decode_grey_alpha(&image, "a", &small).is_ok(), "as grey it fits");
    assert!(ReadOptions { max_bytes: 0, ..small }.check().is_err(), "no limit is 0");
    if let (Some(before), Some(after)) = (before, resident()) {
        assert!(after < before + (64 << 20), "memory rose from {before} to {after} bytes");
    }
}

/// The peak memory of this process, where the system reports it.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

#[test]
fn files_that_are_no_image_are_errors() {
    let error =
        |bytes: &[u8]| decode(bytes, "some/name.png", &ReadOptions::default()).unwrap_err().to_string();
    assert_eq!(error(b""), "some/name.png: the file is empty", "empty");
    assert!(error(b"not an image").contains("PNG, JPEG, TIFF"), "text");
    assert!(read("/no/such/file.png", &ReadOptions::default()).is_err(), "absent");
    assert!(read(std::env::temp_dir(), &ReadOptions::default()).is_err(), "a folder");
    let image = image_of(0, Size::new(2, 2), 1);
    let unknown = write("a.xyz", &image).unwrap_err().to_string();
    assert!(
        unknown.contains(".xyz") || unknown.contains("\"xyz\"") && unknown.contains(".tiff"),
        "{unknown}"
    );
    assert!(write("a.pfm", &image_of(0, Size::new(2, 2), 2)).is_err(), "two channels in PFM");
    assert!(write("a.png", &image_of(0, Size::new(0, 2), 1)).is_err(), "no pixels");
}

#[test]
fn truncated_files_are_errors() {
    for (name, bytes, _) in exact_samples() {
        let half = decoded(&bytes[..bytes.len() / 2]);
        assert!(half.is_err(), "{name}");
    }
    for (name, bytes) in [("grey.jpg", sample!("grey.jpg")), ("progressive.jpg", sample!("progressive.jpg"))]
    {
        for end in [3, bytes.len() / 2, bytes.len() - 5] {
            assert!(decoded(&bytes[..end]).is_err(), "{name} cut to {end}");
        }
        // Cut off, but with an end marker; or higher than its data; or without an interval between restart markers.
        if name == "grey.jpg" {
            let closed = |part: &[u8]| [part, &[0xff, 0xd9]].concat();
            let frame = bytes.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
            let mut higher = bytes.to_vec();
            higher[frame + 5..frame + 7].copy_from_slice(&200_u16.to_be_bytes());
            let part = written("jpg", &image_of(0, Size::new(90, 100), 1));
            let at = |n: u8| part.windows(2).position(|pair| pair == [0xff, 0xd0 + n]).unwrap();
            let spliced = [&part[..at(0)], &part[at(1)..]].concat();
            assert!(decoded(&part).is_ok());
            for damaged in [closed(&bytes[..bytes.len() - 20]), closed(&part[..at(1)]), higher, spliced] {
                let said = decoded(&damaged).unwrap_err().to_string();
                assert!(said.contains("data of the JPEG's picture are missing"), "{said}");
            }
        }
        let markless = decoded(&bytes[..bytes.len() - 2]);
        let expected = decoded(bytes).ok().filter(|_| name == "grey.jpg");
        assert_eq!(markless.ok(), expected, "{name}: without its end marker");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    /// Any damage to any sample gives an image or an error.
    #[test]
    fn damage_never_panics(
        which in any::<prop::sample::Index>(),
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        end in any::<prop::sample::Index>(),
    ) {
        let mut all: Vec<_> = exact_samples().into_iter().map(|(_, bytes, _)| bytes).collect();
        all.extend([sample!("grey.jpg"), sample!("colour.jpg"), sample!("progressive.jpg"), sample!("jpeg.tif")]);
        let mut bytes = all[which.index(all.len())].to_vec();
        for (place, value) in hits {
            let i = place.index(bytes.len());
            bytes[i] = value;
        }
        bytes.truncate(end.index(4 * bytes.len()));
        let options = ReadOptions { max_pixels: 1 << 20, max_bytes: 1 << 22, ..ReadOptions::default() };
        let _ = decode(&bytes, "damaged", &options);
        let _ = decode_grey_alpha(&bytes, "damaged", &options);
    }
}
