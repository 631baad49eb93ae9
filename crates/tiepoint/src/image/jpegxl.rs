//! JPEG XL, as a file or a bare codestream: up to 8 bits as bytes, up to 16 as words, more as floats. The first frame
//! of an animation is read.
//!
//! The decoder is built without vector instructions and gives floats, which are rounded here, so that the values of lossy
//! files are the same everywhere.

use super::{
    FileImage, Layout, Pixel, Size,
    rows::{Request, Source, reserve, zeros},
};
use crate::files::Fault;
use jxl::api::{
    AlphaMode, Event, ExtraChannel, JxlBitDepth, JxlColorType, JxlDataFormat, JxlDecoder, JxlDecoderOptions,
    JxlOutputBuffer, JxlPixelFormat, ProfileLevel,
};
use jxl::error::Error as Failed;

/// Bytes that a sample takes: in the decoder, as a float and as a pixel.
const HELD: usize = 16;

impl From<Failed> for Fault {
    fn from(e: Failed) -> Self {
        match e {
            Failed::ImageSizeTooLarge(width, height) => Self::Bad(format!(
                "{width}x{height} pixels need more memory than the limit; raise max_bytes to read it"
            )),
            e => Self::Bad(format!("damaged JPEG XL: {e}")),
        }
    }
}

pub(super) fn read(source: impl Source, request: &Request<'_>) -> Result<FileImage, Fault> {
    let bytes = request.bytes(source)?;
    let mut rest = bytes.as_slice();
    let mut options = JxlDecoderOptions::default();
    options.adjust_orientation = false;
    options.alpha_mode = AlphaMode::Unpremultiplied;
    options.high_precision = true;
    options.max_profile_level = ProfileLevel::Main10;
    options.sample_limit = usize::try_from(request.options.max_bytes / HELD as u64).ok();
    let mut decoder = JxlDecoder::new(options);
    advance(&mut decoder, &mut rest, None, |event| event == Event::BasicInfo)?;
    let info = decoder.basic_info().ok_or("damaged JPEG XL: it has no header")?.clone();
    let size = Size::new(info.size.0, info.size.1);
    let extra: Vec<ExtraChannel> = info.extra_channels.iter().map(|channel| channel.ec_type).collect();
    if extra.contains(&ExtraChannel::Black) {
        return Err("JPEG XL with CMYK is not read; convert it: djxl IN OUT.png".into());
    }
    let colours = match decoder.embedded_color_profile() {
        Some(profile) if profile.channels() == 1 => 1,
        _ => 3,
    };
    let channels = colours + extra.len();
    let alpha = extra.iter().position(|kind| *kind == ExtraChannel::Alpha).map(|i| colours + i);
    let layout = Layout { channels, first: 0, colours, alpha }.with_band(request.options.band);
    request.affordable(size, size.area().checked_mul(channels * HELD))?;
    let format = Some(JxlDataFormat::f32());
    decoder.set_pixel_format(JxlPixelFormat {
        color_type: if colours == 1 { JxlColorType::Grayscale } else { JxlColorType::Rgb },
        color_data_format: format,
        extra_channel_format: vec![format; extra.len()],
    })?;
    let of = (size, layout, colours);
    let decoded = match info.bit_depth {
        JxlBitDepth::Int { bits_per_sample: ..=8 } => {
            collect(decoder, rest, of, request, |v| u8::from_f32(v * 255.0))
        }
        JxlBitDepth::Int { bits_per_sample: bits @ 9..=16 } => {
            let most = ((1_u32 << bits) - 1) as f32;
            collect(decoder, rest, of, request, |v| u16::from_f32(v * most))
        }
        JxlBitDepth::Int { .. } | JxlBitDepth::Float { .. } => collect(decoder, rest, of, request, |v| v),
    }?;
    Ok(FileImage { orientation: info.orientation as u8, ..decoded })
}

/// The pixels of a picture whose header was read: its size, layout and the number of grey or colour channels.
fn collect<T: Pixel>(
    mut decoder: JxlDecoder,
    mut rest: &[u8],
    (size, layout, colours): (Size, Layout, usize),
    request: &Request<'_>,
    value: impl Fn(f32) -> T,
) -> Result<FileImage, Fault> {
    request.begin::<T>(size)?;
    // The colours interleaved, then each further channel by itself; the decoder requires the alignment of floats.
    let counts = [&[colours][..], &vec![1; layout.channels - colours]].concat();
    let planes = counts.iter().map(|n| zeros::<u8>(4 * n * size.area() + 4));
    let mut planes = planes.collect::<Result<Vec<_>, _>>()?;
    let starts: Vec<usize> = planes.iter().map(|plane| plane.as_ptr().align_offset(4).min(4)).collect();
    let views = planes.iter_mut().zip(&starts).zip(&counts);
    let mut buffers: Vec<JxlOutputBuffer<'_>> = views
        .map(|((plane, at), n)| {
            let row = 4 * n * size.width;
            JxlOutputBuffer::new(&mut plane[*at..at + row * size.height], size.height, row)
        })
        .collect();
    advance(&mut decoder, &mut rest, None, |event| event == Event::FrameHeader)?;
    let whole = |event| matches!(event, Event::FrameComplete { .. });
    advance(&mut decoder, &mut rest, Some(&mut buffers), whole)?;
    drop(buffers);
    drop(decoder);
    let mut pixels = reserve(size.area() * layout.channels)?;
    for at in 0..size.area() {
        for ((plane, start), n) in planes.iter().zip(&starts).zip(&counts) {
            let samples = plane[start + 4 * n * at..].as_chunks().0.iter().take(*n);
            pixels.extend(samples.map(|sample| value(f32::from_ne_bytes(*sample))));
        }
    }
    drop(planes);
    FileImage::whole(pixels, size, layout, request)
}

/// Decodes until an event for which the condition holds.
fn advance(
    decoder: &mut JxlDecoder,
    input: &mut &[u8],
    mut buffers: Option<&mut [JxlOutputBuffer<'_>]>,
    wanted: impl Fn(Event) -> bool,
) -> Result<(), Fault> {
    loop {
        match decoder.process(input, buffers.as_deref_mut(), None)? {
            event if wanted(event) => return Ok(()),
            Event::NeedMoreInput { .. } => {
                return Err("the file ends before the image does; it is truncated".into());
            }
            Event::Complete => return Err("damaged JPEG XL: it holds no picture".into()),
            Event::BasicInfo | Event::FrameHeader | Event::FrameComplete { .. } => {}
        }
    }
}
