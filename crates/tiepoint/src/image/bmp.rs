//! BMP: palettes of 1, 2, 4 and 8 bits, also run-length encoded, and colours of 16, 24 and 32 bits, with alpha if the
//! file has a mask for it. A palette of greys gives one channel.
//!
//! The headers are Microsoft's `BITMAPCOREHEADER` (12 bytes) and `BITMAPINFOHEADER` (40) with what later versions append.

use super::{
    FileImage, Size,
    rows::{Request, Source, reserve, zeros},
};
use crate::files::Fault;
use std::ops::Range;

pub(super) fn read(source: impl Source, request: &Request<'_>) -> Result<FileImage, Fault> {
    let bytes = request.bytes(source)?;
    let Header { size, upwards, bits, in_runs, palette, colours, start } = Header::of(&bytes)?;
    let grey = palette.iter().all(|[r, g, b]| r == g && g == b);
    let direct: Option<Vec<Field>> =
        (bits > 8).then(|| colours.into_iter().filter(|f| f.mask != 0).collect());
    let channels = direct.as_ref().map_or(if grey { 1 } else { 3 }, Vec::len);
    request.affordable(size, size.area().checked_mul(channels + 1))?;
    request.begin::<u8>(size)?;
    let body = bytes.get(start..).unwrap_or_default();
    let runs = in_runs.then(|| unpacked(body, size, bits)).transpose()?;
    // Runs have been unpacked to one byte per pixel.
    let (body, bits, stride) = match &runs {
        Some(indices) => (indices.as_slice(), 8, size.width),
        None => (body, bits, (size.width * bits).div_ceil(32) * 4),
    };
    let row_len = (size.width * bits).div_ceil(8);
    if body.len() < stride * (size.height - 1) + row_len {
        return Err(format!(
            "the BMP has {} bytes of pixels, too few for {size}: it is truncated",
            body.len()
        )
        .into());
    }
    let mut pixels: Vec<u8> = reserve(size.area() * channels)?;
    for y in 0..size.height {
        let row = &body[stride * if upwards { size.height - 1 - y } else { y }..][..row_len];
        if let Some(fields) = &direct {
            let values = row.chunks_exact(bits / 8).map(little_endian);
            pixels.extend(values.flat_map(|value| fields.iter().map(move |field| field.of(value))));
            continue;
        }
        for x in 0..size.width {
            let index = (row[x * bits / 8] >> (8 - bits - x * bits % 8)) & (0xff >> (8 - bits));
            let colour = palette
                .get(usize::from(index))
                .ok_or_else(|| format!("damaged BMP: colour {index} of a palette of {}", palette.len()))?;
            pixels.extend_from_slice(&colour[..channels]);
        }
    }
    // Programs that write no alpha leave zeros there.
    if channels == 4 && pixels.iter().skip(3).step_by(4).all(|alpha| *alpha == 0) {
        pixels.iter_mut().skip(3).step_by(4).for_each(|alpha| *alpha = 255);
    }
    FileImage::whole(pixels, size, request.layout(channels), request)
}

fn little_endian(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |value, byte| (value << 8) | u32::from(*byte))
}

/// Where the bits of a channel lie in a value.
#[derive(Clone, Copy, Debug, Default)]
struct Field {
    mask: u32,
    shift: u32,
    most: u64,
}

impl Field {
    fn new(mask: u32) -> Result<Self, Fault> {
        let shift = mask.trailing_zeros() % 32;
        let most = u64::from(mask >> shift);
        if most & (most + 1) != 0 {
            return Err(
                format!("damaged BMP: the bits of a channel, {mask:#x}, do not lie side by side").into()
            );
        }
        Ok(Self { mask, shift, most })
    }

    /// The channel on the scale of 8 bits.
    fn of(self, value: u32) -> u8 {
        let value = u64::from((value & self.mask) >> self.shift);
        if self.most == 255 { value as u8 } else { ((value * 255 + self.most / 2) / self.most) as u8 }
    }
}

#[derive(Debug)]
struct Header {
    size: Size,
    /// Whether the first row in the file is the last of the picture.
    upwards: bool,
    /// Bits of a pixel.
    bits: usize,
    /// Run-length encoded: runs of equal and of different indices.
    in_runs: bool,
    /// Red, green and blue of every index; empty where pixels are colours.
    palette: Vec<[u8; 3]>,
    /// Red, green, blue and alpha of pixels that are colours.
    colours: [Field; 4],
    /// Where the pixels begin.
    start: usize,
}

impl Header {
    fn of(bytes: &[u8]) -> Result<Self, Fault> {
        let number = |at: Range<usize>| {
            bytes.get(at).map(little_endian).ok_or("the BMP ends within its header: it is truncated")
        };
        let (start, length) = (number(10..14)? as usize, number(14..18)? as usize);
        let core = length == 12;
        let (width, height, bits, coding) = match length {
            12 => (number(18..20)?, number(20..22)?, number(24..26)?, 0),
            16 => (number(18..22)?, number(22..26)?, number(28..30)?, 0),
            20..=124 => (number(18..22)?, number(22..26)?, number(28..30)?, number(30..34)?),
            _ => return Err(format!("the header of the BMP has {length} bytes: expected 12 to 124").into()),
        };
        let height = height.cast_signed();
        let size = Size::new(width as usize, height.unsigned_abs() as usize);
        // OS/2 gives the codings from 3 on other numbers.
        let (in_runs, masks) = match (coding, bits) {
            (0, 1 | 2 | 4 | 8 | 16 | 24 | 32) => (false, 0),
            (1, 8) | (2, 4) => (true, 0),
            (3, 16 | 32) if length != 64 => (false, if length >= 56 { 4 } else { 3 }),
            (6, 16 | 32) if length != 64 => (false, 4),
            _ => {
                let what = format!("BMP of {bits} bits in coding {coding}");
                return Err(format!("{what} is not read; convert it: magick IN OUT.png").into());
            }
        };
        let mut colours = match bits {
            16 => [0x7c00, 0x3e0, 0x1f, 0],
            _ => [0xff_0000, 0xff00, 0xff, 0],
        };
        for (channel, mask) in colours.iter_mut().enumerate().take(masks) {
            *mask = number(54 + 4 * channel..58 + 4 * channel)?;
        }
        if colours[..3].contains(&0) {
            return Err("damaged BMP: a colour has no bits".into());
        }
        let [r, g, b, a] = colours.map(Field::new);
        let bits = bits as usize;
        let (entry, table) = if core { (3, 26) } else { (4, 14 + length) };
        let most = if bits > 8 { 0 } else { 1 << bits };
        let used = if length < 36 { 0 } else { number(46..50)? as usize };
        let used = if used == 0 { most } else { used.min(most) };
        let table = bytes.get(table..start.min(bytes.len())).unwrap_or_default();
        let palette = table.chunks_exact(entry).take(used).map(|c| [c[2], c[1], c[0]]).collect();
        Ok(Self { size, upwards: height > 0, bits, in_runs, palette, colours: [r?, g?, b?, a?], start })
    }
}

/// The indices of runs of 4 or 8 bits, a byte each, in the order of the file. What runs skip is 0.
fn unpacked(mut coded: &[u8], size: Size, bits: usize) -> Result<Vec<u8>, Fault> {
    let mut indices: Vec<u8> = zeros(size.area())?;
    let (mut x, mut y) = (0, 0);
    let ends = || Fault::from("the BMP ends before its last row: it is truncated");
    while let [count, value, rest @ ..] = coded {
        coded = rest;
        let (count, values) = match (count, value) {
            (0, 0) => {
                (x, y) = (0, y + 1);
                continue;
            }
            (0, 1) => return Ok(indices),
            (0, 2) => {
                let [right, down, rest @ ..] = coded else { return Err(ends()) };
                (x, y, coded) = (x + usize::from(*right), y + usize::from(*down), rest);
                continue;
            }
            (0, different) => {
                let len = (usize::from(*different) * bits).div_ceil(8);
                let values = coded.get(..len).ok_or_else(ends)?;
                coded = coded.get(len.next_multiple_of(2)..).unwrap_or_default();
                (usize::from(*different), values)
            }
            (equal, _) => (usize::from(*equal), std::slice::from_ref(value)),
        };
        if x + count > size.width || y >= size.height {
            return Err(format!("damaged BMP: {count} pixels at column {x} of row {y}, of {size}").into());
        }
        for (i, index) in indices[y * size.width + x..][..count].iter_mut().enumerate() {
            let byte = values[i * bits / 8 % values.len()];
            *index = (byte >> (8 - bits - i * bits % 8)) & (0xff >> (8 - bits));
        }
        x += count;
    }
    // The mark at the end may be missing.
    if y + usize::from(x == size.width) < size.height { Err(ends()) } else { Ok(indices) }
}

#[cfg(test)]
mod tests {
    use crate::image::{AnyImage, ReadOptions, decode};

    const WIDTH: usize = 33;
    const HEIGHT: usize = 5;

    /// Index of a pixel, of 4 bits.
    fn index(x: usize, y: usize) -> u8 {
        ((7 * x + 3 * y + x / 9 * (y / 2)) % 16) as u8
    }

    /// A file of a header, which is given without its length, a palette or masks, and pixels.
    fn file(header: &[u8], table: &[u8], body: &[u8]) -> Vec<u8> {
        let length = (header.len() + 4) as u32;
        let start = 14 + length + table.len() as u32;
        [b"BM\0\0\0\0\0\0\0\0", &start.to_le_bytes()[..], &length.to_le_bytes(), header, table, body].concat()
    }

    /// A `BITMAPINFOHEADER` without its length.
    fn info(height: i32, bits: u16, coding: u32, used: u32) -> Vec<u8> {
        let words = [coding, 0, 0, 0, used, 0].map(u32::to_le_bytes).concat();
        let [planes, bits] = [1, bits].map(u16::to_le_bytes);
        [&(WIDTH as u32).to_le_bytes()[..], &height.to_le_bytes(), &planes, &bits, &words].concat()
    }

    /// The rows from the last to the first, each made by `row` and filled up to a multiple of four bytes.
    fn rows(row: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
        let filled = |y| {
            let mut bytes = row(y);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        (0..HEIGHT).rev().flat_map(filled).collect()
    }

    /// A row of indices below 2 to the `bits`, packed.
    fn packed(y: usize, bits: usize) -> Vec<u8> {
        let mut bytes = vec![0; (WIDTH * bits).div_ceil(8)];
        for x in 0..WIDTH {
            bytes[x * bits / 8] |= (index(x, y) & (0xff >> (8 - bits))) << (8 - bits - x * bits % 8);
        }
        bytes
    }

    /// A palette of `n` greys.
    fn greys(n: u32) -> Vec<u8> {
        (0..n).map(|i| 17_u8.wrapping_mul(i as u8)).flat_map(|grey| [grey, grey, grey, 0]).collect()
    }

    fn read(bytes: &[u8]) -> crate::Result<(Vec<u8>, usize)> {
        let image = decode(bytes, "bmp", &ReadOptions::default())?;
        let AnyImage::U8(image) = image else { panic!("8 bits") };
        Ok((image.data().to_vec(), image.channels()))
    }

    fn pixels(pixel: impl Fn(u8) -> Vec<u8>) -> Vec<u8> {
        (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| index(x, y))).flat_map(pixel).collect()
    }

    #[test]
    fn indices_of_every_width_are_read() {
        for bits in [1, 2, 4, 8] {
            let bytes = rows(|y| packed(y, bits));
            let expected = pixels(|i| vec![17 * (i & (0xff >> (8 - bits)) as u8)]);
            let upright = file(&info(HEIGHT as i32, bits as u16, 0, 0), &greys(1 << bits), &bytes);
            assert_eq!(read(&upright).unwrap(), (expected.clone(), 1), "{bits} bits");
            let stride = bytes.len() / HEIGHT;
            let turned: Vec<u8> = bytes.rchunks(stride).flatten().copied().collect();
            let downwards = file(&info(-(HEIGHT as i32), bits as u16, 0, 0), &greys(1 << bits), &turned);
            assert_eq!(read(&downwards).unwrap(), (expected, 1), "{bits} bits from the top");
        }
        let core = [WIDTH as u16, HEIGHT as u16, 1, 4].map(u16::to_le_bytes).concat();
        let colours: Vec<u8> = (0..16).flat_map(|i| [i, 2 * i, 3 * i]).collect();
        let old = file(&core, &colours, &rows(|y| packed(y, 4)));
        assert_eq!(read(&old).unwrap(), (pixels(|i| vec![3 * i, 2 * i, i]), 3), "a palette of three bytes");
        let few = file(&info(HEIGHT as i32, 4, 0, 9), &greys(9), &rows(|y| packed(y, 4)));
        assert!(read(&few).unwrap_err().to_string().contains("of a palette of 9"));
    }

    #[test]
    fn runs_are_read() {
        let greys = greys(16);
        for (bits, coding) in [(4, 2), (8, 1)] {
            let mut body = Vec::new();
            for y in (0..HEIGHT).rev() {
                // Ten equal pixels, five skipped, then all others as they are.
                body.extend([10, if bits == 4 { 0x12 } else { 1 }, 0, 2, 5, 0, 0, 18]);
                let mut others = match bits {
                    4 => (15..WIDTH)
                        .step_by(2)
                        .map(|x| (index(x, y) << 4) | index(x + 1, y))
                        .collect::<Vec<_>>(),
                    _ => (15..WIDTH).map(|x| index(x, y)).collect(),
                };
                others.resize(others.len().next_multiple_of(2), 0);
                body.extend(others);
                body.extend([0, 0]);
            }
            body.extend([0, 1]);
            let expected: Vec<u8> = (0..HEIGHT * WIDTH)
                .map(|at| match (at % WIDTH, bits) {
                    (x @ 0..10, 4) => 17 * (1 + (x % 2) as u8),
                    (0..10, _) => 17,
                    (10..15, _) => 0,
                    (x, _) => 17 * index(x, at / WIDTH),
                })
                .collect();
            let header = info(HEIGHT as i32, bits, coding, 16);
            assert_eq!(read(&file(&header, &greys, &body)).unwrap(), (expected, 1), "{bits} bits");
            let cut = file(&header, &greys, &body[..body.len() / 2]);
            assert!(read(&cut).unwrap_err().to_string().contains("truncated"));
            let wide = file(&header, &greys, &[30, 1, 30, 1]);
            assert!(read(&wide).unwrap_err().to_string().contains("30 pixels at column 30"));
        }
    }

    #[test]
    fn colours_of_every_width_are_read() {
        // Red, green and blue of 5, 5 and 5 or 5, 6 and 5 bits, or of 10 each.
        let masked = |masks: [u32; 4], bits: u16| {
            let masks = masks.map(u32::to_le_bytes).concat();
            [info(HEIGHT as i32, bits, 3, 0), masks, vec![0; 52]].concat()
        };
        let values = |bytes: usize, value: fn(u32) -> u32| {
            rows(|y| {
                (0..WIDTH).flat_map(|x| value(index(x, y).into()).to_le_bytes()[..bytes].to_vec()).collect()
            })
        };
        let scaled = |v: u32, most: u32| ((v * 255 + most / 2) / most) as u8;
        let plain = |bits| info(HEIGHT as i32, bits, 0, 0);
        let bytes = |i: u8| vec![3 * i, 2 * i, i];
        fn rgb(i: u32) -> u32 {
            ((3 * i) << 16) | ((2 * i) << 8) | i
        }
        for (name, header, body, expected, channels) in [
            ("24", plain(24), values(3, rgb), pixels(bytes), 3),
            ("32", plain(32), values(4, |i| (9 << 24) | rgb(i)), pixels(bytes), 3),
            (
                "15",
                plain(16),
                values(2, |i| ((2 * i) << 10) | (i << 5) | 5),
                pixels(|i| vec![scaled(2 * u32::from(i), 31), scaled(i.into(), 31), scaled(5, 31)]),
                3,
            ),
            (
                "16",
                masked([0xf800, 0x7e0, 0x1f, 0], 16),
                values(2, |i| (i << 11) | ((3 * i) << 5) | 5),
                pixels(|i| vec![scaled(i.into(), 31), scaled(3 * u32::from(i), 63), scaled(5, 31)]),
                3,
            ),
            (
                "30",
                masked([0x3ff0_0000, 0xf_fc00, 0x3ff, 0], 32),
                values(4, |i| ((60 * i) << 20) | (i << 10) | 5),
                pixels(|i| vec![scaled(60 * u32::from(i), 1023), scaled(i.into(), 1023), scaled(5, 1023)]),
                3,
            ),
            (
                "alpha",
                masked([0xff, 0xff00, 0xff_0000, 0xff00_0000], 32),
                values(4, |i| (i << 24) | rgb(i)),
                pixels(|i| vec![i, 2 * i, 3 * i, i]),
                4,
            ),
            (
                "no alpha in spite of its mask",
                masked([0xff, 0xff00, 0xff_0000, 0xff00_0000], 32),
                values(4, rgb),
                pixels(|i| vec![i, 2 * i, 3 * i, 255]),
                4,
            ),
        ] {
            let whole = file(&header, &[], &body);
            assert_eq!(read(&whole).unwrap(), (expected, channels), "{name}");
            assert!(read(&whole[..whole.len() - 9]).unwrap_err().to_string().contains("truncated"), "{name}");
        }
        for (header, why) in [
            (masked([0xff, 0xff00, 0, 0], 32), "no bits"),
            (masked([0xff, 0xff00, 0x5_0000, 0], 32), "side by side"),
            (info(HEIGHT as i32, 24, 5, 0), "24 bits in coding 5"),
            (vec![0; 2], "header of the BMP has"),
        ] {
            let refused = read(&file(&header, &[], &[0; 1000])).unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
