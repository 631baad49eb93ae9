//! JPEG: grey and colour, baseline and progressive; CMYK becomes RGB.

use super::{
    AnyView, FileImage, Image, Rect, Size, orientation,
    rows::{Channels, Request, Source, zeros},
};
use crate::device::Cpu;
use crate::files::Fault;
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use std::io;
use zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions};
use zune_jpeg::{JpegDecoder, errors::DecodeErrors};

/// The quality of written files, from 1 to 100.
const QUALITY: u8 = 92;

/// The most pixels that one byte can code: a block of 64 takes at least one bit.
const RATIO: u64 = 512;

impl From<DecodeErrors> for Fault {
    fn from(e: DecodeErrors) -> Self {
        Self::Bad(format!("damaged or unsupported JPEG: {e:?}"))
    }
}

pub(super) fn read(source: impl Source, request: &Request<'_>) -> Result<FileImage, Fault> {
    let mut bytes = request.bytes(source)?;
    let progressive = check_frame(&bytes)?;
    let end = end(&bytes);
    // Other data may follow the picture: a phone's video, a second picture, a maker's notes.
    match end {
        Some(end) if progressive => bytes.truncate(end),
        Some(end) => bytes.truncate(end - END.len()),
        None if progressive => return Err("the JPEG has no end marker; it is truncated".into()),
        None => {}
    }
    let orientation = orientation::of_jpeg(&bytes);
    let options =
        DecoderOptions::default().set_max_width(1 << 16).set_max_height(1 << 16).set_strict_mode(true);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes.as_slice()), options);
    decoder.decode_headers()?;
    let info = decoder.info().ok_or("the JPEG has no header")?;
    let size = Size::new(usize::from(info.width), usize::from(info.height));
    let channels = match decoder.input_colorspace() {
        Some(ColorSpace::Luma) => 1,
        _ => 3,
    };
    request.plausible(size, size.area() as u64, RATIO)?;
    // A progressive file keeps all its coefficients, 16 bits each, until the last scan.
    let decoding = if progressive { 3 * channels } else { channels };
    let held = decoding.max(channels + usize::from(request.channels != Channels::All));
    request.affordable(size, size.area().checked_mul(held))?;
    let out = if channels == 1 { ColorSpace::Luma } else { ColorSpace::RGB };
    decoder.set_options(options.jpeg_set_out_colorspace(out));
    request.begin::<u8>(size)?;
    let mut pixels: Vec<u8> = zeros(size.area() * channels)?;
    let decoded = decoder.decode_into(&mut pixels);
    drop(decoder);
    match (progressive, end, decoded) {
        (true, _, decoded) => decoded?,
        // The end marker was cut off: at one, the decoder would fill up missing data with zeros; without, it fails
        // unless only bits of the last row of blocks are missing.
        (false, Some(_), Ok(())) => {}
        // It may also fail on a complete picture, if the last row takes hardly any bytes.
        (false, ..) => {
            let options = options.jpeg_set_out_colorspace(out);
            bytes.extend(END);
            JpegDecoder::new_with_options(ZCursor::new(bytes.as_slice()), options)
                .decode_into(&mut pixels)?;
            check_whole(bytes, options, &pixels)?;
        }
    }
    let decoded = FileImage::whole(pixels, size, request.layout(channels), request)?;
    Ok(FileImage { orientation, ..decoded })
}

/// Rows of an interval between two restart markers, which depends on no other (ITU-T T.81, E.1.4).
const ROWS: usize = 32;
/// Intervals that are in memory at a time.
const AT_ONCE: usize = 64;

/// Writes 8 bits, grey or colour, with colour at full resolution: for pictures that are looked at. Each interval is
/// encoded by itself as a JPEG, of which the first gives the header and all give their coded data.
pub(super) fn write(mut out: impl io::Write, view: &AnyView<'_>, cpu: Option<&Cpu>) -> io::Result<()> {
    let AnyView::U8(view) = view else { return Err(io::Error::other("a JPEG holds 8 bits")) };
    let side = |n: usize| {
        u16::try_from(n).map_err(|_| io::Error::other("a JPEG holds at most 65535 x 65535 pixels"))
    };
    side(view.size().width)?;
    let height = side(view.size().height)?;
    let interval = |i: usize| -> io::Result<Vec<u8>> {
        let (top, width) = (i * ROWS, view.size().width);
        let part = Rect { x: 0, y: top, size: Size::new(width, ROWS.min(view.size().height - top)) };
        encoded(&view.crop(part).map_err(io::Error::other)?.to_image())
    };
    let (one, count) = (Cpu::sequential(), view.size().height.div_ceil(ROWS));
    let cpu = cpu.unwrap_or(&one);
    for first in (0..count).step_by(AT_ONCE) {
        let intervals = cpu.map(AT_ONCE.min(count - first), |i| interval(first + i));
        for (i, bytes) in (first..).zip(intervals) {
            let mut bytes = bytes?;
            let [at, start] = header(&bytes).ok_or_else(|| io::Error::other("the encoder wrote no scan"))?;
            bytes[at..at + 2].copy_from_slice(&height.to_be_bytes());
            match i {
                0 => out.write_all(&bytes[..start])?,
                _ => out.write_all(&[0xff, 0xd0 + ((i - 1) % 8) as u8])?,
            }
            out.write_all(&bytes[start..bytes.len() - END.len()])?;
        }
    }
    out.write_all(&END)
}

/// A picture as a JPEG with a restart marker after every [`ROWS`] rows.
fn encoded(image: &Image<u8>) -> io::Result<Vec<u8>> {
    let Size { width, height } = image.size();
    let colour = if image.channels() == 1 { ColorType::Luma } else { ColorType::Rgb };
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, QUALITY);
    encoder.set_sampling_factor(SamplingFactor::F_1_1);
    encoder.set_restart_interval((width.div_ceil(8) * ROWS / 8) as u16);
    encoder.encode(image.data(), width as u16, height as u16, colour).map_err(io::Error::other)?;
    Ok(bytes)
}

/// Where a header that the encoder wrote holds the height, and where it ends.
fn header(bytes: &[u8]) -> Option<[usize; 2]> {
    let (mut at, mut height) = (2, 0);
    loop {
        let [_, kind, len @ ..] = *bytes.get(at..)?.first_chunk::<4>()?;
        let next = at + 2 + usize::from(u16::from_be_bytes(len));
        match kind {
            0xc0 => height = at + 5,
            0xda => return Some([height, next]),
            _ => {}
        }
        at = next;
    }
}

/// The marker that ends a picture.
const END: [u8; 2] = [0xff, 0xd9];

/// Fails if the data of a picture end too early: then bytes put before its end marker change its pixels.
fn check_whole(mut bytes: Vec<u8>, options: DecoderOptions, pixels: &[u8]) -> Result<(), Fault> {
    let end = bytes.len() - END.len();
    let mut again: Vec<u8> = zeros(pixels.len())?;
    // One of these may happen to equal the missing data, but not all.
    for fill in [0x6d, 0x92, 0xb5, 0xfe] {
        bytes.truncate(end);
        bytes.extend([fill; 64].into_iter().chain(END));
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes.as_slice()), options);
        if decoder.decode_into(&mut again).is_err() || again != pixels {
            return Err("data of the JPEG's picture are missing; it is truncated or damaged".into());
        }
    }
    Ok(())
}

/// The offset behind the picture's end marker. Segments outside of scans give their length; inside a scan, 0xff is
/// followed by 0 or by the number of a restart marker.
fn end(bytes: &[u8]) -> Option<usize> {
    let mut at = 2;
    loop {
        at += bytes.get(at..)?.iter().position(|b| *b == 0xff)?;
        at += bytes[at..].iter().position(|b| *b != 0xff)?;
        at += 1;
        match bytes[at - 1] {
            0xd9 => return Some(at),
            // Not a marker, or a marker without a segment.
            0x00 | 0x01 | 0xd0..=0xd8 => {}
            _ => at += usize::from(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?)),
        }
    }
}

/// Walks the header up to the first scan; true for a progressive frame.
///
/// The decoder assumes that the first component has the finest sampling and, in baseline files with one scan for each
/// component, that all are sampled alike. Some files where this does not hold make it panic, so they are refused here.
pub(super) fn check_frame(bytes: &[u8]) -> Result<bool, Fault> {
    let damaged = || Fault::from("damaged JPEG: its header does not lead to a picture");
    let mut rest = bytes.get(2..).ok_or_else(damaged)?;
    let mut frame = None;
    loop {
        let marker = rest.iter().position(|b| *b != 0xff).filter(|n| *n > 0).ok_or_else(damaged)?;
        let kind = rest[marker];
        rest = &rest[marker + 1..];
        if matches!(kind, 0x01 | 0xd0..=0xd7) {
            continue;
        }
        let len = rest.first_chunk().map_or(0, |b| usize::from(u16::from_be_bytes(*b)));
        let segment = rest.get(2..len).ok_or_else(damaged)?;
        rest = &rest[len..];
        let begins_frame = matches!(kind, 0xc0..=0xcf) && ![0xc4, 0xc8, 0xcc].contains(&kind);
        if begins_frame && frame.replace((kind, segment)).is_some() {
            return Err("damaged JPEG: a second frame before the first scan".into());
        }
        if begins_frame {
            check_kind(kind, segment.first().copied().unwrap_or(8))?;
        }
        if kind == 0xda {
            let scanned = usize::from(*segment.first().ok_or_else(damaged)?);
            let (kind, segment) = frame.ok_or_else(damaged)?;
            check_sampling(segment, kind, scanned)?;
            return Ok(kind == 0xc2);
        }
    }
}

/// Fails for a coding that the decoder does not know, with its name.
fn check_kind(kind: u8, bits: u8) -> Result<(), Fault> {
    let unread = match kind {
        0xc0..=0xc2 if bits == 8 => return Ok(()),
        0xc0..=0xc2 => format!("{bits} bits"),
        0xc3 | 0xcb => "lossless coding".to_owned(),
        0xc9.. => "arithmetic coding".to_owned(),
        _ => "hierarchical coding".to_owned(),
    };
    Err(format!(
        "JPEG with {unread} is not read; convert it: djpeg -pnm IN > OUT.pnm, or gdal_translate IN OUT.tif"
    )
    .into())
}

/// Checks the sampling factors in a frame header; the first scan has `scanned` of its components.
fn check_sampling(frame: &[u8], kind: u8, scanned: usize) -> Result<(), Fault> {
    let parts = frame.get(6..).unwrap_or_default().chunks_exact(3);
    let factors: Vec<_> = parts.map(|c| (c[1] >> 4, c[1] & 15)).collect();
    let Some(&(h, v)) = factors.first() else {
        return Err("damaged JPEG: a frame without components".into());
    };
    let divides = |n: u8, of: u8| n > 0 && of.is_multiple_of(n);
    if factors.len() > 1 && !factors.iter().all(|f| divides(f.0, h) && divides(f.1, v)) {
        return Err(format!("JPEG with the sampling factors {factors:?} is not read; convert it").into());
    }
    if kind != 0xc2 && scanned < factors.len() && factors.iter().any(|f| *f != (1, 1)) {
        return Err("JPEG with subsampled colour in scans of its own is not read; convert it".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file put together from intervals equals the one that the encoder writes as a whole with restart markers.
    #[test]
    fn intervals_make_one_picture() {
        for (size, channels) in [(Size::new(83, 300), 3), (Size::new(40, 65), 1), (Size::new(9, 3), 3)] {
            let pixels = (0..size.area() * channels).map(|i| (i * i / 97) as u8).collect();
            let picture = Image::from_vec(pixels, size, channels).unwrap();
            let whole = encoded(&picture).unwrap();
            for cpu in [None, Some(&Cpu::with_threads(3).unwrap())] {
                let mut found = Vec::new();
                write(&mut found, &(&picture).into(), cpu).unwrap();
                assert!(found == whole, "{size}, {channels} channels, {cpu:?}");
            }
        }
    }

    /// The header of a frame of `kind` with these sampling factors, and of a scan of `scanned` components.
    fn header(kind: u8, factors: &[u8], scanned: u8) -> Vec<u8> {
        let mut bytes = vec![0xff, 0xd8, 0xff, 0xfe, 0, 4, 0xff, 0xd9, 0xff, 0xff, kind, 0];
        bytes.extend([8 + 3 * factors.len() as u8, 8, 0, 16, 0, 16, factors.len() as u8]);
        bytes.extend(factors.iter().enumerate().flat_map(|(i, f)| [i as u8, *f, 0]));
        bytes.extend([0xff, 0xda, 0, 3, scanned]);
        bytes
    }

    #[test]
    fn the_end_of_a_picture_is_found_before_other_data() {
        let picture =
            [header(0xc0, &[0x11], 1), vec![0x12, 0xff, 0x00, 0xff, 0xd3, 0x34, 0xff, 0xff, 0xd9]].concat();
        for after in [&b""[..], b"SEFT\xff\xda\x00", b"\xff\xd8\xff\xd9", b"\xff"] {
            let file = [&picture, after].concat();
            assert_eq!(end(&file), Some(picture.len()), "{after:x?} behind the picture");
        }
        assert!((0..picture.len()).all(|cut| end(&picture[..cut]).is_none()), "cut off");
    }

    #[test]
    fn kinds_of_coding_are_refused_by_name() {
        for (kind, bits, name) in [(0xc3, 8, "lossless"), (0xc9, 8, "arithmetic"), (0xc1, 12, "12 bits")] {
            let mut file = header(kind, &[0x11], 1);
            let at = file.iter().rposition(|b| *b == kind).unwrap() + 3;
            file[at] = bits;
            let Err(Fault::Bad(said)) = check_frame(&file) else { panic!("{name} is not refused") };
            assert!(said.contains(name) && said.contains("djpeg"), "{said}");
        }
    }

    #[test]
    fn frames_that_the_decoder_cannot_handle_are_refused() {
        let check = |kind, factors: &[u8], scanned| check_frame(&header(kind, factors, scanned));
        for factors in [[0x11, 0x11, 0x11], [0x22, 0x11, 0x11], [0x21, 0x21, 0x11]] {
            assert!(matches!(check(0xc0, &factors, 3), Ok(false)), "{factors:x?}");
            assert!(matches!(check(0xc2, &factors, 1), Ok(true)), "{factors:x?}, progressive");
        }
        assert!(check(0xc0, &[0x22], 1).is_ok(), "factors mean nothing to one component");
        assert!(check(0xc0, &[0x11, 0x11, 0x11], 1).is_ok(), "a scan for each");
        assert!(check(0xc0, &[0x22, 0x11, 0x11], 1).is_err(), "a scan for each, of different sizes");
        assert!(check(0xc0, &[0x11, 0x11, 0x41], 3).is_err(), "finer than the first");
        assert!(check(0xc0, &[0x21, 0x12, 0x11], 3).is_err(), "finer in y");
        assert!(check(0xc0, &[0x11, 0x10, 0x11], 3).is_err(), "zero");
        assert!(check(0xc0, &[], 0).is_err(), "no component");
        let good = header(0xc0, &[0x11], 1);
        assert!((0..good.len()).all(|end| check_frame(&good[..end]).is_err()), "cut off");
    }
}
