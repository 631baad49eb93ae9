//! `.npy`, an array of NumPy: (height, width) or (height, width, channels). Booleans, integers and floats of up to 64 bits
//! are read, by rows or by columns; the pixel types are written.

use super::{
    AnyView, FileImage, ImageView, Pixel, Size,
    rows::{Request, Rows, Source, zeros},
    write::{push_row, write_rows},
};
use crate::files::Fault;
use crate::numeric::half;
use std::io::{self, Cursor, Write};

/// The longest header that is read, in bytes.
const LONGEST: usize = 1 << 16;

/// The text before the values.
fn text_of_header(source: &mut impl io::Read) -> Result<String, Fault> {
    let mut start = [0; 8];
    source.read_exact(&mut start)?;
    let mut length = [0; 4];
    source.read_exact(&mut length[..if start[6] == 1 { 2 } else { 4 }])?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST {
        return Err(format!("the header of the array has {length} bytes: expected at most {LONGEST}").into());
    }
    let mut header = vec![0; length];
    source.read_exact(&mut header)?;
    Ok(String::from_utf8_lossy(&header).into_owned())
}

/// GDAL's name of the type of the values, if they are 16-bit integers with a sign.
pub(super) fn signed_kind(mut source: impl io::Read) -> Result<Option<&'static str>, Fault> {
    let header = text_of_header(&mut source)?;
    Ok(parse_header(&header)?.kind.ends_with("i2").then_some("Int16"))
}

pub(super) fn read(mut source: impl Source, request: &Request<'_>) -> Result<FileImage, Fault> {
    let header = text_of_header(&mut source)?;
    let Header { kind, shape, by_columns } = parse_header(&header)?;
    let (size, channels) = match shape[..] {
        [height, width] => (Size::new(width, height), 1),
        [_, _, _] if has_channels_first(&shape) => {
            return Err(format!(
                "the array has the shape {shape:?}, with its channels first: expected (height, width, channels); \
                 numpy.moveaxis(array, 0, -1) turns it"
            )
            .into());
        }
        [height, width, channels] if channels > 0 => (Size::new(width, height), channels),
        _ => {
            return Err(format!(
                "the array has the shape {shape:?}: expected (height, width) or (height, width, channels)"
            )
            .into());
        }
    };
    if by_columns {
        let width = kind.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<usize>().unwrap_or(1);
        let bytes = size.area().saturating_mul(channels.saturating_mul(width));
        request.plausible(size, bytes as u64, 1)?;
        request.affordable(size, bytes.checked_mul(2))?;
        let mut values = zeros(bytes)?;
        source.read_exact(&mut values)?;
        return values_of(Cursor::new(by_rows(&values, &shape, width)), request, kind, (size, channels));
    }
    values_of(source, request, kind, (size, channels))
}

/// Whether these seem to be the channels, rows and columns of a picture, as in `PyTorch`, rather than few rows of pixels with
/// many channels. No picture is as narrow as others have bands.
fn has_channels_first(shape: &[usize]) -> bool {
    matches!(shape, [1..=4, _, channels] if *channels > 16)
}

/// Why `view` cannot be written, if it cannot.
pub(super) fn check(view: &AnyView<'_>) -> Result<(), String> {
    let (Size { width, height }, channels) = (view.size(), view.channels());
    match has_channels_first(&[height, width, channels]) {
        true => Err(format!(
            "an array of {height} rows and {channels} channels would be read as one with its channels first; .tif holds it"
        )),
        false => Ok(()),
    }
}

fn values_of(
    source: impl Source,
    request: &Request<'_>,
    kind: &str,
    (size, channels): (Size, usize),
) -> Result<FileImage, Fault> {
    let big = kind.starts_with('>');
    match kind.trim_start_matches(['<', '>', '|', '=']) {
        "u1" => collect::<u8, 1>(source, request, (size, channels), big, |[v]| v),
        "b1" => collect::<u8, 1>(source, request, (size, channels), big, |[v]| 255 * u8::from(v != 0)),
        "u2" => collect::<u16, 2>(source, request, (size, channels), big, u16::from_le_bytes),
        "i1" => collect::<f32, 1>(source, request, (size, channels), big, |[v]| f32::from(v as i8)),
        "i2" => collect::<f32, 2>(source, request, (size, channels), big, |v| i16::from_le_bytes(v).into()),
        "i4" => collect::<f32, 4>(source, request, (size, channels), big, |v| i32::from_le_bytes(v) as f32),
        "u4" => collect::<f32, 4>(source, request, (size, channels), big, |v| u32::from_le_bytes(v) as f32),
        "i8" => collect::<f32, 8>(source, request, (size, channels), big, |v| i64::from_le_bytes(v) as f32),
        "u8" => collect::<f32, 8>(source, request, (size, channels), big, |v| u64::from_le_bytes(v) as f32),
        "f2" => collect::<f32, 2>(source, request, (size, channels), big, |v| half(u16::from_le_bytes(v))),
        "f4" => collect::<f32, 4>(source, request, (size, channels), big, f32::from_le_bytes),
        "f8" => collect::<f32, 8>(source, request, (size, channels), big, |v| f64::from_le_bytes(v) as f32),
        _ => Err(format!("the array holds {kind}: expected whole numbers or floats of up to 64 bits; .astype(\"float32\") converts").into()),
    }
}

/// The type of the elements, the shape, and whether the first index changes fastest (`fortran_order`).
#[derive(Debug)]
pub(crate) struct Header<'t> {
    pub(crate) kind: &'t str,
    pub(crate) shape: Vec<usize>,
    pub(crate) by_columns: bool,
}

/// What the text of a header says.
pub(crate) fn parse_header(header: &str) -> Result<Header<'_>, String> {
    let after = |key: &str| header.split_once(key).map(|(_, rest)| rest.trim_start());
    let kind = after("'descr':").and_then(|rest| rest.strip_prefix('\'')?.split_once('\''));
    let (kind, _) = kind.ok_or("the array has no type, or is one of records")?;
    let by_columns = after("'fortran_order':").is_some_and(|rest| rest.starts_with("True"));
    let shape = after("'shape':").and_then(|rest| rest.strip_prefix('(')?.split_once(')'));
    let (shape, _) = shape.ok_or("the array has no shape")?;
    let numbers = shape.split(',').map(str::trim).filter(|number| !number.is_empty());
    let numbers: Result<Vec<usize>, _> = numbers.map(str::parse).collect();
    let shape = numbers.map_err(|_| format!("the array has the shape ({shape})"))?;
    Ok(Header { kind, shape, by_columns })
}

/// The elements of `width` bytes of an array whose first index changes fastest, in the order in which the last one does.
pub(crate) fn by_rows(bytes: &[u8], shape: &[usize], width: usize) -> Vec<u8> {
    let mut rows = Vec::with_capacity(bytes.len());
    for place in 0..bytes.len() / width.max(1) {
        let (mut rest, mut at, mut step) = (place, 0, bytes.len());
        for side in shape.iter().rev() {
            step /= side;
            at += rest % side * step;
            rest /= side;
        }
        rows.extend_from_slice(&bytes[at..at + width]);
    }
    rows
}

/// Everything before the values of an array, which begin at a multiple of 64 bytes.
pub(crate) fn header(kind: &str, shape: &[usize]) -> Vec<u8> {
    let numbers: Vec<String> = shape.iter().map(usize::to_string).collect();
    let shape = numbers.join(", ") + if shape.len() == 1 { "," } else { "" };
    let text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}");
    let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend((length as u16).to_le_bytes());
    header.extend(format!("{text:width$}\n", width = length - 1).into_bytes());
    header
}

fn collect<T: Pixel, const N: usize>(
    mut source: impl Source,
    request: &Request<'_>,
    (size, channels): (Size, usize),
    big: bool,
    value: impl Fn([u8; N]) -> T,
) -> Result<FileImage, Fault> {
    let bytes = (size.area() as u64).saturating_mul((channels as u64).saturating_mul(N as u64));
    request.plausible(size, bytes, 1)?;
    let mut rows = Rows::new(request, size, request.layout(channels), request.no_data)?;
    let (mut bytes, mut row): (Vec<u8>, _) = (zeros(rows.row_len() * N)?, Vec::new());
    for _ in 0..size.height {
        source.read_exact(&mut bytes)?;
        let ordered = |mut v: [u8; N]| {
            if big {
                v.reverse();
            }
            value(v)
        };
        rows.push_from(bytes.as_chunks::<N>().0.iter().map(|v| ordered(*v)), &mut row)?;
    }
    rows.finish()
}

/// Writes every pixel type as it is.
pub(super) fn write(mut out: impl Write, view: &AnyView<'_>) -> io::Result<()> {
    match view {
        AnyView::U8(v) => rows(&mut out, "|u1", *v, |v| [v]),
        AnyView::U16(v) => rows(&mut out, "<u2", *v, u16::to_le_bytes),
        AnyView::F32(v) => rows(&mut out, "<f4", *v, f32::to_le_bytes),
    }
}

/// Writes `value` of every float.
pub(super) fn write_floats(
    mut out: impl Write,
    view: ImageView<'_, f32>,
    value: impl Fn(f32) -> f32,
) -> io::Result<()> {
    rows(&mut out, "<f4", view, |v| value(v).to_le_bytes())
}

fn rows<T: Pixel, const N: usize>(
    out: &mut impl Write,
    kind: &str,
    view: ImageView<'_, T>,
    bytes: impl Fn(T) -> [u8; N],
) -> io::Result<()> {
    let (Size { width, height }, channels) = (view.size(), view.channels());
    let shape = [height, width, channels];
    out.write_all(&header(kind, if channels == 1 { &shape[..2] } else { &shape }))?;
    write_rows(out, view, 0..height, |row, out| push_row(row, out, &bytes))
}
