//! PNM: bitmaps, greymaps and pixmaps (P1 to P6, text and binary) and PAM (P7), 8 and 16 bits.
//!
//! Values are scaled so that the file's maximum becomes white.

use super::{
    FileImage, ImageView, Pixel, PixelKind, Size,
    png::push_levels,
    rows::{Request, Rows, Source, zeros},
    write::write_rows,
};
use crate::files::Fault;
use std::io::{self, Write};

/// Reads the words of a PNM or PFM header. White space separates them; `#` starts a comment to the end of the line.
pub(super) struct Header<'a, S> {
    source: &'a mut S,
    /// The byte that was read last.
    last: Option<u8>,
}

impl<'a, S: Source> Header<'a, S> {
    pub(super) fn new(source: &'a mut S) -> Self {
        Self { source, last: None }
    }

    fn byte(&mut self) -> Result<Option<u8>, Fault> {
        let byte = self.source.fill_buf()?.first().copied();
        self.source.consume(usize::from(byte.is_some()));
        self.last = byte;
        Ok(byte)
    }

    /// Skips the rest of the header's last line if that ends with blanks or CR LF. Such bytes may also be pixels: then
    /// the file holds no more than these `bytes` bytes.
    pub(super) fn end(&mut self, bytes: u64, file_len: u64) -> Result<(), Fault> {
        while self.last != Some(b'\n')
            && self.source.fill_buf()?.first().is_some_and(|next| b" \t\r\n".contains(next))
            && self.source.stream_position()?.saturating_add(bytes) < file_len
        {
            self.byte()?;
        }
        Ok(())
    }

    /// The second letter of the file, after the first; the caller has checked both.
    pub(super) fn magic(&mut self) -> Result<u8, Fault> {
        self.byte()?;
        Ok(self.byte()?.unwrap_or_default())
    }

    /// The next byte that is neither white space nor part of a comment.
    fn solid(&mut self) -> Result<u8, Fault> {
        let mut comment = false;
        while let Some(byte) = self.byte()? {
            match byte {
                b'\n' | b'\r' => comment = false,
                b'#' => comment = true,
                b if comment || b.is_ascii_whitespace() => {}
                b => return Ok(b),
            }
        }
        Err(Fault::Io(io::ErrorKind::UnexpectedEof.into()))
    }

    /// The next word; the one byte of white space that ends it is read, too.
    pub(super) fn word(&mut self) -> Result<String, Fault> {
        let mut word = String::from(char::from(self.solid()?));
        while let Some(byte) = self.byte()? {
            if byte.is_ascii_whitespace() {
                break;
            }
            if byte == b'#' {
                while !matches!(self.byte()?, None | Some(b'\n' | b'\r')) {}
                break;
            }
            if word.len() >= 64 {
                return Err("a word of the header is longer than any number".into());
            }
            word.push(char::from(byte));
        }
        Ok(word)
    }

    /// The next word as a whole number.
    pub(super) fn number(&mut self, name: &str) -> Result<usize, Fault> {
        let word = self.word()?;
        let number =
            word.parse::<u32>().map_err(|_| format!("{name}: expected a whole number, found {word:?}"))?;
        Ok(number as usize)
    }
}

/// The coding of the values after the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    /// The digits 0 and 1 as text; 1 is black.
    TextBits,
    /// Numbers as text.
    Text,
    /// Eight pixels a byte, rows padded to whole bytes; 1 is black.
    Bits,
    /// One or two bytes a value, the high byte first.
    Binary,
}

pub(super) fn read(mut source: impl Source, request: &Request<'_>) -> Result<FileImage, Fault> {
    let mut header = Header::new(&mut source);
    let magic = header.magic()?;
    let (size, channels, maximum, coding) = match magic {
        b'7' => pam(&mut header)?,
        _ => {
            let size = Size::new(header.number("width")?, header.number("height")?);
            let bits = matches!(magic, b'1' | b'4');
            let maximum = if bits { 1 } else { header.number("maximum value")? };
            let channels = if matches!(magic, b'3' | b'6') { 3 } else { 1 };
            let coding = match magic {
                b'1' => Coding::TextBits,
                b'2' | b'3' => Coding::Text,
                b'4' => Coding::Bits,
                _ => Coding::Binary,
            };
            (size, channels, maximum, coding)
        }
    };
    if !(1..=65535).contains(&maximum) {
        return Err(format!("the maximum value is {maximum}: expected 1 to 65535").into());
    }
    let values = (size.area() as u64).saturating_mul(channels as u64);
    let bytes = values.saturating_mul(if maximum > 255 { 2 } else { 1 });
    match coding {
        Coding::TextBits | Coding::Text => {}
        Coding::Bits => header
            .end((size.width.div_ceil(8) as u64).saturating_mul(size.height as u64), request.file_len)?,
        Coding::Binary => header.end(bytes, request.file_len)?,
    }
    request.plausible(size, bytes, if coding == Coding::Bits { 8 } else { 1 })?;
    let maximum = maximum as u16;
    let read = if maximum > 255 {
        let request = &request.stretched(Some(maximum), 65535.0);
        collect(source, request, size, channels, coding, |v| scaled(v, maximum, 65535))
    } else {
        let request = &request.stretched(Some(maximum), 255.0);
        collect(source, request, size, channels, coding, |v| scaled(v, maximum, 255).map(|v| v as u8))
    };
    Ok(FileImage { white: Some(maximum).filter(|white| ![255, 65535].contains(white)), ..read? })
}

/// `value` scaled so that `maximum` becomes `white`, rounded to nearest; `None` above the maximum.
fn scaled(value: u16, maximum: u16, white: u32) -> Option<u16> {
    let (value, maximum) = (u32::from(value), u32::from(maximum));
    // The product fits: both factors are below 2¹⁶.
    (value <= maximum).then(|| match maximum == white {
        true => value as u16,
        false => ((value * white + maximum / 2) / maximum) as u16,
    })
}

/// The header of a PAM: `KEY value` lines up to `ENDHDR`.
fn pam<S: Source>(header: &mut Header<'_, S>) -> Result<(Size, usize, usize, Coding), Fault> {
    let (mut size, mut depth, mut maximum) = (Size::default(), 0, 0);
    for _ in 0..64 {
        match header.word()?.as_str() {
            "WIDTH" => size.width = header.number("WIDTH")?,
            "HEIGHT" => size.height = header.number("HEIGHT")?,
            "DEPTH" => depth = header.number("DEPTH")?,
            "MAXVAL" => maximum = header.number("MAXVAL")?,
            "TUPLTYPE" => drop(header.word()?),
            "ENDHDR" if (1..=4).contains(&depth) => return Ok((size, depth, maximum, Coding::Binary)),
            "ENDHDR" => return Err(format!("DEPTH is {depth}: expected 1 to 4").into()),
            other => return Err(format!("unknown line {other:?} in the header of a PAM").into()),
        }
    }
    Err("the header of the PAM does not end".into())
}

fn collect<T: Pixel>(
    mut source: impl Source,
    request: &Request<'_>,
    size: Size,
    channels: usize,
    coding: Coding,
    value: impl Fn(u16) -> Option<T>,
) -> Result<FileImage, Fault> {
    let mut rows = Rows::new(request, size, request.layout(channels), request.no_data)?;
    let checked = |v: u16| value(v).ok_or_else(|| Fault::Bad(format!("the value {v} is above the maximum")));
    let mut row: Vec<T> = zeros(rows.row_len())?;
    let bytes = match coding {
        Coding::Bits => size.width.div_ceil(8),
        _ => row.len() * size_of::<T>(),
    };
    let mut bytes: Vec<u8> = zeros(if coding == Coding::Text { 0 } else { bytes })?;
    for _ in 0..size.height {
        match coding {
            Coding::TextBits => {
                for v in &mut row {
                    *v = checked(match Header::new(&mut source).solid()? {
                        b'0' => 1,
                        b'1' => 0,
                        b => return Err(format!("expected 0 or 1, found {:?}", char::from(b)).into()),
                    })?;
                }
            }
            Coding::Text => {
                for v in &mut row {
                    let word = Header::new(&mut source).word()?;
                    let number = word.parse::<u16>();
                    *v = checked(number.map_err(|_| format!("expected a value, found {word:?}"))?)?;
                }
            }
            Coding::Bits => {
                source.read_exact(&mut bytes)?;
                for (x, v) in row.iter_mut().enumerate() {
                    *v = checked(u16::from(!bytes[x / 8] >> (7 - x % 8) & 1))?;
                }
            }
            Coding::Binary => {
                source.read_exact(&mut bytes)?;
                let step = size_of::<T>();
                for (v, b) in row.iter_mut().zip(bytes.chunks_exact(step)) {
                    *v = checked(b.iter().fold(0, |n, b| n << 8 | u16::from(*b)))?;
                }
            }
        }
        rows.push(&row)?;
    }
    rows.finish()
}

/// Writes 8-bit images as they are; 16-bit and float (0 to 1 over the whole range) as 16-bit.
pub(super) fn write<T: Pixel>(mut out: impl Write, view: ImageView<'_, T>, pam: bool) -> io::Result<()> {
    let (Size { width, height }, channels) = (view.size(), view.channels());
    let maximum = if T::KIND == PixelKind::U8 { 255 } else { 65535 };
    if pam {
        let kind = ["GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA"].get(channels - 1).unwrap_or(&"");
        write!(
            out,
            "P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH {channels}\nMAXVAL {maximum}\nTUPLTYPE {kind}\nENDHDR\n"
        )?;
    } else {
        write!(out, "P{}\n{width} {height}\n{maximum}\n", if channels == 3 { 6 } else { 5 })?;
    }
    write_rows(out, view, 0..height, push_levels)
}
