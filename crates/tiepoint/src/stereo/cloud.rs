//! Coloured points from disparities, and the PLY files that hold them.
//!
//! A pixel (x, y) of the left view with a depth Z ([`depth`](super::depth)) is the point ((x − cx) Z / f, (y
//! − cy) Z / f, Z): x right, y down, z forward from the left camera, in the unit of the baseline; f64,
//! rounded to f32. Pixels without depth, and points that are not finite, are left out; the others are in the order of
//! the rows.
//!
//! PLY: `float x y z`, `uchar red green blue`, little-endian binary or text. 16-bit and float colours
//! become [shades](Shades); grey is written as three equal channels, alpha is left out.

use super::depth::check;
use crate::files::{Fault, write_atomically};
use crate::geometry::calibration::RectifiedCalibration;
use crate::image::{AnyView, ImageView, Shades};
use crate::options::{Above, OrInfinite, options};
use crate::{Error, Result, by_pixel};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

/// How a PLY file holds its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlyFormat {
    /// Little-endian binary, 15 bytes a point.
    #[default]
    Binary,
    /// Text.
    Ascii,
}

options! {
    /// Which points to keep, and how to write them.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct CloudOptions {
        /// Greatest depth of a point, in the unit of the baseline; infinite keeps all.
        max_depth / with_max_depth: f64 = f64::INFINITY => OrInfinite(Above(0.0)), unit "Z";
    }
    besides {
        /// Binary or text. Default binary.
        format / with_format: PlyFormat = PlyFormat::default();
    }
}

/// A point and its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// x, y, z.
    pub place: [f32; 3],
    /// Red, green, blue.
    pub colour: [u8; 3],
}

/// Disparities with the data that turn them into coloured points.
struct ColouredDisparity<'a> {
    disparity: ImageView<'a, f32>,
    colours: AnyView<'a>,
    shades: Shades,
    pair: &'a RectifiedCalibration,
    max_depth: f64,
}

impl<'a> ColouredDisparity<'a> {
    fn new(
        disparity: ImageView<'a, f32>,
        colours: AnyView<'a>,
        pair: &'a RectifiedCalibration,
        options: &CloudOptions,
    ) -> Result<Self> {
        options.check()?;
        check(disparity, pair)?;
        if colours.size() != disparity.size() {
            let (found, expected) = (colours.size(), disparity.size());
            return Err(Error::Mismatch(format!("the colours are {found}, the disparities {expected}")));
        }
        Ok(Self { disparity, colours, shades: Shades::of(colours, None), pair, max_depth: options.max_depth })
    }

    fn place(&self, x: usize, y: usize) -> Option<[f32; 3]> {
        let z = self.pair.depth(f64::from(self.disparity.row(y)[x])).filter(|z| *z <= self.max_depth)?;
        let [cx, cy] = self.pair.principal;
        let across = (x as f64 - cx) * z / self.pair.focal;
        let down = (y as f64 - cy) * z / self.pair.focal;
        let place = [across as f32, down as f32, z as f32];
        place.iter().all(|v| v.is_finite()).then_some(place)
    }

    fn row(&self, y: usize) -> impl Iterator<Item = Point> + '_ {
        let width = self.disparity.size().width;
        (0..width).filter_map(move |x| Some(Point { place: self.place(x, y)?, colour: self.colour(x, y) }))
    }

    fn colour(&self, x: usize, y: usize) -> [u8; 3] {
        by_pixel!(self.colours, image => {
            let channels = image.channels();
            let pixel = &image.row(y)[x * channels..(x + 1) * channels];
            let at = if channels < 3 { [0; 3] } else { [0, 1, 2] };
            at.map(|c| self.shades.byte(pixel[c]))
        })
    }
}

/// When the depth limit is found from the points themselves, the farthest one in this many is assumed to be wrong.
const WRONG: usize = 50;

/// A depth limit: twice the depth below which 98 % of the points lie, in the unit of the baseline. Farther points
/// mostly come from disparities near 0 with an error of a fraction of a pixel. Infinite if no pixel has a depth.
pub fn bound_of_depth(disparity: ImageView<'_, f32>, calibration: &RectifiedCalibration) -> f64 {
    // The less the disparity, the greater the depth. The one sought is found by the upper half of its bits, then by the
    // lower half, so that no memory is needed for each pixel. `key` is in the order of disparities.
    let key = |d: f32| if d.is_sign_negative() { !d.to_bits() } else { d.to_bits() ^ 1 << 31 };
    let has_depth = |d: &&f32| calibration.depth(f64::from(**d)).is_some();
    let count = |bin: &dyn Fn(u32) -> Option<u32>| {
        let mut counts = vec![0_usize; 1 << 16];
        let values = (0..disparity.size().height).flat_map(|y| disparity.row(y)).filter(has_depth);
        values.filter_map(|d| bin(key(*d))).for_each(|bin| counts[bin as usize] += 1);
        counts
    };
    // The bin of the value at `rank`, and the rank in that bin.
    let find = |counts: &[usize], mut rank: usize| {
        let bin = counts.iter().position(|n| {
            rank < *n || {
                rank -= n;
                false
            }
        })?;
        Some((bin as u32, rank))
    };
    let upper = count(&|key| Some(key >> 16));
    let found = find(&upper, upper.iter().sum::<usize>() / WRONG).and_then(|(high, rank)| {
        let (low, _) = find(&count(&|key| (key >> 16 == high).then_some(key & 0xffff)), rank)?;
        let key = high << 16 | low;
        calibration.depth(f32::from_bits(if key >> 31 == 0 { !key } else { key ^ 1 << 31 }).into())
    });
    found.map_or(f64::INFINITY, |depth| 2.0 * depth)
}

/// The points of `disparity`, coloured by the left view, in the order of the rows.
///
/// # Errors
/// As [`write_ply`], except [`Error::Io`].
pub fn points(
    disparity: ImageView<'_, f32>,
    colours: AnyView<'_>,
    calibration: &RectifiedCalibration,
    options: &CloudOptions,
) -> Result<Vec<Point>> {
    let source = ColouredDisparity::new(disparity, colours, calibration, options)?;
    Ok((0..disparity.size().height).flat_map(|y| source.row(y)).collect())
}

/// Writes the points of `disparity`, coloured by the left view, as a PLY file; returns how many there are.
/// Needs no memory beyond its input.
///
/// # Errors
/// As [`CloudOptions::check`] and [`RectifiedCalibration::check`]; [`Error::Mismatch`] when the sizes of disparities,
/// colours and calibration differ, or the calibration is of an affine pair, which has no depth;
/// [`Error::Io`] when the file cannot be written.
pub fn write_ply(
    path: impl AsRef<Path>,
    disparity: ImageView<'_, f32>,
    colours: AnyView<'_>,
    calibration: &RectifiedCalibration,
    options: &CloudOptions,
) -> Result<u64> {
    let source = ColouredDisparity::new(disparity, colours, calibration, options)?;
    let height = disparity.size().height;
    let width = disparity.size().width;
    // The header holds the count; points are computed twice instead of being stored.
    let count = |y| (0..width).filter(|&x| source.place(x, y).is_some()).count() as u64;
    let points = (0..height).map(count).sum();
    write_atomically(path, |out| {
        writeln!(out, "ply\n{}\nelement vertex {points}", format_name(options.format))?;
        PROPERTIES.iter().chain(&["end_header"]).try_for_each(|line| writeln!(out, "{line}"))?;
        (0..height).try_for_each(|y| source.row(y).try_for_each(|p| write_point(out, options.format, &p)))
    })?;
    Ok(points)
}

const PROPERTIES: [&str; 6] = [
    "property float x",
    "property float y",
    "property float z",
    "property uchar red",
    "property uchar green",
    "property uchar blue",
];

fn format_name(format: PlyFormat) -> &'static str {
    match format {
        PlyFormat::Binary => "format binary_little_endian 1.0",
        PlyFormat::Ascii => "format ascii 1.0",
    }
}

fn write_point(out: &mut impl Write, format: PlyFormat, point: &Point) -> io::Result<()> {
    let ([x, y, z], [r, g, b]) = (point.place, point.colour);
    match format {
        PlyFormat::Ascii => writeln!(out, "{x} {y} {z} {r} {g} {b}"),
        PlyFormat::Binary => {
            let mut bytes = [0; 15];
            for (to, v) in bytes.chunks_exact_mut(4).zip(point.place) {
                to.copy_from_slice(&v.to_le_bytes());
            }
            bytes[12..].copy_from_slice(&point.colour);
            out.write_all(&bytes)
        }
    }
}

/// The longest line of a PLY file, in bytes.
const MAX_LINE: u64 = 512;

/// Reads a PLY file of the kind that [`write_ply`] writes: these properties in this order, nothing else.
///
/// # Errors
/// [`Error::Io`] when the file cannot be read, [`Error::Format`] when it is of another kind, truncated, or
/// goes on after its last point.
pub fn read_ply(path: impl AsRef<Path>) -> Result<Vec<Point>> {
    let path = path.as_ref();
    let file = std::fs::File::open(path).map_err(|e| Error::io(path, e))?;
    parse_ply(BufReader::new(file), path)
}

/// As [`read_ply`], from any source; errors call it `name`.
///
/// # Errors
/// As [`read_ply`].
pub fn parse_ply(mut source: impl BufRead, name: impl AsRef<Path>) -> Result<Vec<Point>> {
    parsed(&mut source).map_err(|fault| fault.at(name.as_ref(), "its last point"))
}

fn parsed(source: &mut impl BufRead) -> std::result::Result<Vec<Point>, Fault> {
    let mut line = String::new();
    expect(source, &mut line, "ply")?;
    read_line(source, &mut line)?;
    let format = [PlyFormat::Binary, PlyFormat::Ascii].into_iter().find(|f| line == format_name(*f));
    let format = format
        .ok_or_else(|| format!("{line:?}: expected format binary_little_endian 1.0 or format ascii 1.0"))?;
    read_line(source, &mut line)?;
    while line.starts_with("comment") {
        read_line(source, &mut line)?;
    }
    let count = line.strip_prefix("element vertex ").and_then(|n| n.parse::<u64>().ok());
    let count = count.ok_or_else(|| format!("{line:?}: expected element vertex and a count"))?;
    for property in PROPERTIES.into_iter().chain(["end_header"]) {
        expect(source, &mut line, property)?;
    }
    // The count is not trusted: the file may hold fewer points.
    let mut points = Vec::with_capacity(count.min(1 << 16) as usize);
    for i in 0..count {
        points.push(match format {
            PlyFormat::Binary => binary(source)?,
            PlyFormat::Ascii => {
                read_line(source, &mut line)?;
                ascii(&line).ok_or_else(|| format!("point {i} is {line:?}: expected x y z red green blue"))?
            }
        });
    }
    if source.fill_buf()?.is_empty() { Ok(points) } else { Err(format!("more after {count} points").into()) }
}

fn read_line(source: &mut impl BufRead, line: &mut String) -> std::result::Result<(), Fault> {
    let mut bytes = vec![];
    source.take(MAX_LINE).read_until(b'\n', &mut bytes)?;
    if bytes.pop() != Some(b'\n') {
        return match bytes.len() as u64 + 1 {
            MAX_LINE => Err("a line is too long: not a PLY file of points".to_owned().into()),
            _ => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        };
    }
    *line = String::from_utf8(bytes).map_err(|_| "a line is not text".to_owned())?;
    Ok(())
}

fn expect(source: &mut impl BufRead, line: &mut String, wanted: &str) -> std::result::Result<(), Fault> {
    read_line(source, line)?;
    if line == wanted { Ok(()) } else { Err(format!("{line:?}: expected {wanted}").into()) }
}

fn binary(source: &mut impl Read) -> io::Result<Point> {
    let mut bytes = [0; 15];
    source.read_exact(&mut bytes)?;
    let value = |i: usize| f32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
    Ok(Point { place: [value(0), value(4), value(8)], colour: [bytes[12], bytes[13], bytes[14]] })
}

fn ascii(line: &str) -> Option<Point> {
    let mut words = line.split(' ');
    let mut place = [0.0; 3];
    for v in &mut place {
        *v = words.next()?.parse().ok()?;
    }
    let mut colour = [0; 3];
    for v in &mut colour {
        *v = words.next()?.parse().ok()?;
    }
    words.next().is_none().then_some(Point { place, colour })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Folder;
    use crate::geometry::calibration::Projection;
    use crate::image::{AnyImage, Image, Size};

    const PAIR: RectifiedCalibration = RectifiedCalibration {
        size: Some(Size::new(4, 2)),
        focal: 100.0,
        principal: [1.5, 0.5],
        doffs: 2.0,
        baseline: 0.5,
        range: None,
        projection: Projection::Perspective,
    };

    fn disparities() -> Image<f32> {
        let none = f32::INFINITY;
        Image::from_vec(vec![8.0, none, 0.0, -3.0, f32::NAN, 23.0, -2.0, 1e-30], Size::new(4, 2), 1).unwrap()
    }

    fn colours() -> AnyImage {
        Image::from_vec((0..24).map(|i| i * 10).collect::<Vec<u8>>(), Size::new(4, 2), 3).unwrap().into()
    }

    /// Z = 50 / (d + 2) by hand, for the pixels 0, 2, 5 and 7.
    fn expected() -> Vec<Point> {
        let at = |x: f32, y: f32, z: f32, c: u8| Point {
            place: [(x - 1.5) * z / 100.0, (y - 0.5) * z / 100.0, z],
            colour: [c, c + 10, c + 20],
        };
        vec![at(0.0, 0.0, 5.0, 0), at(2.0, 0.0, 25.0, 60), at(1.0, 1.0, 2.0, 150), at(3.0, 1.0, 25.0, 210)]
    }

    #[test]
    fn points_are_written_and_read_back() {
        let folder = Folder::new("cloud-there-and-back");
        let file = folder.0.join("a.ply");
        for (format, name) in [(PlyFormat::Binary, "binary"), (PlyFormat::Ascii, "ascii")] {
            let options = CloudOptions { format, ..CloudOptions::default() };
            let n = write_ply(&file, disparities().view(), (&colours()).into(), &PAIR, &options).unwrap();
            assert_eq!((n, read_ply(&file).unwrap()), (4, expected()), "{name}");
        }
        assert_eq!(bound_of_depth(disparities().view(), &PAIR), 50.0, "twice the farthest of a few");
        let mut many: Vec<f32> = (0..1000).map(|i| 3.0 + 0.001 * i as f32).collect();
        many[5..25].fill(-1.999);
        let many = Image::from_vec(many, Size::new(100, 10), 1).unwrap();
        let bound = bound_of_depth(many.view(), &PAIR);
        assert!((19.0..=20.0).contains(&bound), "few far points do not count: {bound}");
        assert_eq!(bound_of_depth(Image::filled(Size::new(2, 2), 1, f32::NAN).view(), &PAIR), f64::INFINITY);
        let mut random = crate::numeric::Random::new(4);
        for (n, range) in [(1, 3.0), (49, 3.0), (50, 1e-3), (5000, 1e4), (5000, 1e-40)] {
            let mut map: Vec<f32> = (0..n).map(|_| random.range(-range, range) as f32).collect();
            map[0] = 5.0;
            let mut depths: Vec<f64> = map.iter().filter_map(|d| PAIR.depth(f64::from(*d))).collect();
            depths.sort_by(f64::total_cmp);
            let map = Image::from_vec(map, Size::new(n, 1), 1).unwrap();
            let expected = 2.0 * depths[depths.len() - 1 - depths.len() / WRONG];
            assert_eq!(bound_of_depth(map.view(), &PAIR), expected, "{n} within {range}");
        }
        let near = CloudOptions { max_depth: 5.0, ..CloudOptions::default() };
        let near = write_ply(&file, disparities().view(), (&colours()).into(), &PAIR, &near);
        assert_eq!(near.unwrap(), 2, "not too far");
    }

    #[test]
    fn any_colours() {
        let size = Size::new(4, 2);
        let folder = Folder::new("cloud-colours");
        let file = folder.0.join("a.ply");
        let kinds: [(AnyImage, [u8; 3]); 3] = [
            (Image::filled(size, 1, 0xabcd_u16).into(), [0xab; 3]),
            (Image::filled(size, 4, 0.5_f32).into(), [128; 3]),
            (Image::filled(size, 2, f32::NAN).into(), [0; 3]),
        ];
        for (image, colour) in kinds {
            write_ply(&file, disparities().view(), (&image).into(), &PAIR, &CloudOptions::default()).unwrap();
            assert!(read_ply(&file).unwrap().iter().all(|p| p.colour == colour), "{colour:?}");
        }
    }

    #[test]
    fn inputs_that_do_not_fit_are_errors_and_leave_no_file() {
        let folder = Folder::new("cloud-refused");
        let file = folder.0.join("a.ply");
        let refused = |d: &Image<f32>, c: &AnyImage, pair: &RectifiedCalibration, o: &CloudOptions| {
            write_ply(&file, d.view(), c.into(), pair, o).is_err() && !file.exists()
        };
        let options = CloudOptions::default();
        let small = AnyImage::from(Image::<u8>::new(Size::new(3, 2)));
        assert!(refused(&disparities(), &small, &PAIR, &options), "colours of another size");
        let other = RectifiedCalibration { size: Some(Size::new(2, 4)), ..PAIR };
        assert!(refused(&disparities(), &colours(), &other, &options), "a calibration of another size");
        let behind = RectifiedCalibration { baseline: -1.0, ..PAIR };
        assert!(refused(&disparities(), &colours(), &behind, &options), "points behind the camera");
        for max_depth in [0.0, -1.0, f64::NAN] {
            let options = CloudOptions { max_depth, ..options };
            assert!(refused(&disparities(), &colours(), &PAIR, &options), "no depth at all");
        }
    }

    #[test]
    fn foreign_files_are_refused() {
        let folder = Folder::new("cloud-foreign");
        let file = folder.0.join("a.ply");
        let ascii = CloudOptions { format: PlyFormat::Ascii, ..CloudOptions::default() };
        for options in [ascii, CloudOptions::default()] {
            write_ply(&file, disparities().view(), (&colours()).into(), &PAIR, &options).unwrap();
            let bytes = std::fs::read(&file).unwrap();
            let told = |bytes: &[u8]| parse_ply(bytes, "p.ply").unwrap_err().to_string();
            for end in 0..bytes.len() {
                assert!(told(&bytes[..end]).starts_with("p.ply: "), "cut at {end}");
            }
            assert!(told(&[&bytes[..], b"\n"].concat()).contains("more"), "goes on");
        }
        write_ply(&file, disparities().view(), (&colours()).into(), &PAIR, &ascii).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        for (from, to, word) in [
            ("vertex 4", "vertex 18446744073709551615", "truncated"),
            ("vertex 4", "vertex 3", "more"),
            ("vertex 4", "vertex -4", "count"),
            ("float x", "double x", "float x"),
            ("ascii 1.0", "ascii 2.0", "format"),
            ("60 70 80", "60 70 800", "point 1"),
            ("60 70 80", "60 70", "point 1"),
        ] {
            let message = parse_ply(text.replacen(from, to, 1).as_bytes(), "p.ply").unwrap_err().to_string();
            assert!(message.contains(word), "{from} → {to}: {message}");
        }
        let long = "ply\n".to_owned() + &"x".repeat(5000);
        let message = parse_ply(long.as_bytes(), "p.ply").unwrap_err().to_string();
        assert!(message.contains("too long"), "a long line: {message}");
    }
}
