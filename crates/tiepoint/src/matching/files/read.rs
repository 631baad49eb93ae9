//! Reads tie points from files; the format is recognised by the content.

use super::{MatchFormat, MatchRow, micmac_file, npz};
use crate::files::{read_within, text_of};
use crate::image::{Georeference, Size};
use crate::matching::Match;
use crate::{Error, Result};
use roxmltree::{Document, Node, ParsingOptions};
use serde::Deserialize;
use std::path::Path;
use std::str::FromStr;

/// Tie points as a file holds them. For missing values the indices are the number of the row, the distance is 0, the
/// ratio NaN, the scales 1, and the match is an inlier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadMatches {
    /// The format.
    pub format: MatchFormat,
    /// The names of both images.
    pub names: Option<[String; 2]>,
    /// Whether the file determines which image is the first, by a name or because one is placed on the other.
    pub in_order: bool,
    /// The sizes of the images in which they were found, if the file holds them.
    pub sizes: [Option<Size>; 2],
    /// The matches, in the order of the file.
    pub rows: Vec<MatchRow>,
}

/// What is known of the two images whose matches are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct MatchSides<'a> {
    /// Their names or paths. If a file names its images in the other order, its sides are exchanged; a file that names
    /// other images is refused.
    pub names: Option<[&'a str; 2]>,
    /// Their georeferences, by which map coordinates become pixels, unless the file names another coordinate system.
    pub places: [Option<&'a Georeference>; 2],
    /// Their sizes as they are stored. They decide whether the points of a QGIS file without a line `#CRS` are pixels
    /// or map coordinates: whichever lie inside.
    pub sizes: [Option<Size>; 2],
}

/// A result whose error describes the fault of a line, without its number.
type Parsed<T> = std::result::Result<T, String>;

/// Parses a line, given its index among the lines of matches.
type Row = fn(&str, u32, &Maps) -> Parsed<MatchRow>;

/// For each image the transform from pixels to map coordinates, if it is known.
type Maps = [Option<[f64; 6]>; 2];

/// Reads the formats of [`write_matches`](super::write_matches), also from other programs: CSV, JSON, NPZ, text with
/// uncertainties of the Ames Stereo Pipeline (6 numbers a line), a file of MicMac's `Homol` (5), `sift_matches.txt` of
/// s2p (4), and QGIS ground control points in pixels of a picture. A file without lines holds no matches.
///
/// # Errors
/// [`Error::Io`] when the file cannot be read; [`Error::Format`] when it holds anything else, such as COLMAP's indices
/// of features.
pub fn read_matches(path: impl AsRef<Path>) -> Result<ReadMatches> {
    read_matches_of(path, &MatchSides::default())
}

/// As [`read_matches`], of two known images: also MicMac's folder `Homol`, and ground control points of QGIS or of a
/// GDAL virtual raster in map coordinates of the second image.
///
/// # Errors
/// As [`read_matches`]; [`Error::Format`] for matches of other images, for map coordinates if the image has no
/// georeference or another coordinate system, and for QGIS points without `#CRS` that may be pixels or map coordinates.
pub fn read_matches_of(path: impl AsRef<Path>, images: &MatchSides<'_>) -> Result<ReadMatches> {
    let path = path.as_ref();
    let names = images.names.map(|names| names.map(|name| of_path(Path::new(name))));
    let within = match &names {
        Some([a, b]) if path.is_dir() => {
            let ways = [[a, b], [b, a]].map(|names| micmac_file(path, names.map(String::as_str)));
            let expected = ways[0].display();
            let missing = format!("holds no matches of {a} and {b}: expected {expected} (MicMac)");
            let found = ways.iter().find(|path| path.is_file());
            Some(found.ok_or_else(|| Error::format(path, missing))?.clone())
        }
        _ => None,
    };
    let path = within.as_deref().unwrap_or(path);
    let expected = "tie points, as text or .npz";
    let bytes = read_within(path, u64::MAX, expected)?;
    let fault = |reason| Error::format(path, reason);
    match bytes.starts_with(b"PK") {
        true => npz::read(&bytes).map_err(fault),
        false => parse_matches(text_of(&bytes, expected).map_err(fault)?, path, images),
    }
}

/// As [`read_matches_of`], of the text of the file at `path`.
///
/// # Errors
/// As [`read_matches_of`].
pub fn parse_matches(text: &str, path: impl AsRef<Path>, images: &MatchSides<'_>) -> Result<ReadMatches> {
    let path = path.as_ref();
    let names = images.names.map(|names| names.map(|name| of_path(Path::new(name))));
    let fault = |reason| Error::format(path, reason);
    let mut read = of_text(text, images, names.as_ref()).map_err(fault)?;
    if read.format == MatchFormat::MicMac {
        read.names = micmac_names(path);
    }
    let Some([a, b]) = &names else { return Ok(read) };
    let exchanged = match &read.names {
        Some(of_file) => {
            let [first, second] = of_file.each_ref().map(|name| of_path(Path::new(name)));
            let exchanged = [&first, &second] == [b, a] && a != b;
            if !exchanged && [&first, &second] != [a, b] {
                return Err(fault(format!(
                    "holds matches of {first} and {second}: expected those of {a} and {b}"
                )));
            }
            Some(exchanged)
        }
        None if read.format == MatchFormat::Asp => asp_order(path, [a, b]),
        None => None,
    };
    read.in_order |= exchanged.is_some();
    if exchanged == Some(true) {
        read.exchange();
    }
    Ok(read)
}

impl ReadMatches {
    /// Exchanges the two images.
    pub fn exchange(&mut self) {
        if let Some(names) = &mut self.names {
            names.reverse();
        }
        self.sizes.reverse();
        for MatchRow { pair, a_xy, b_xy, scales, .. } in &mut self.rows {
            (pair.a, pair.b) = (pair.b, pair.a);
            (*a_xy, *b_xy) = (*b_xy, *a_xy);
            scales.reverse();
        }
    }
}

/// The name of the file of a path.
fn of_path(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The names of the images in the path of a file of MicMac's: `Homol/PastisA/B.txt`.
fn micmac_names(path: &Path) -> Option<[String; 2]> {
    let first = path.parent()?.file_name()?.to_str()?.strip_prefix("Pastis")?;
    Some([first.to_owned(), path.file_stem()?.to_str()?.to_owned()])
}

/// Whether a file of ASP, named `PREFIX-A__B.txt` without the images' extensions, has its images in the order B, A;
/// `None` if its name does not show the order.
fn asp_order(path: &Path, names: [&str; 2]) -> Option<bool> {
    let stem = path.file_stem()?.to_str()?;
    let [a, b] = names.map(|name| Path::new(name).file_stem().and_then(|stem| stem.to_str()).unwrap_or(name));
    let is = |a: &str, b: &str| {
        let before = stem.strip_suffix(&format!("{a}__{b}"));
        before.is_some_and(|before| before.is_empty() || before.ends_with('-'))
    };
    match (is(a, b), is(b, a)) {
        (true, _) => Some(false),
        (false, true) => Some(true),
        (false, false) => None,
    }
}

/// The pixel at these map coordinates of an image.
fn pixel(map: Option<[f64; 6]>, [x, y]: [f64; 2]) -> Parsed<[f64; 2]> {
    let [a, b, c, d, e, f] = map.ok_or(ON_A_MAP)?;
    let (x, y, area) = (x - c, y - f, a * e - b * d);
    Ok([(e * x - b * y) / area - 0.5, (a * y - d * x) / area - 0.5])
}

const ON_A_MAP: &str = "its points are map coordinates, not pixels: `tiepoint match --matches` and `tiepoint register --matches` \
                        take them if the picture that stays is a GeoTIFF or has a world file";

/// The matches in the text of a file; `names` are those of the images asked for.
fn of_text(text: &str, images: &MatchSides<'_>, names: Option<&[String; 2]>) -> Parsed<ReadMatches> {
    if text.trim_start().starts_with('{') {
        return json(text);
    }
    if text.trim_start().starts_with('<') {
        return vrt(text, images, names);
    }
    let lines = || (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
    let Some((_, first)) = lines().find(|(_, line)| !line.starts_with('#')) else {
        return Ok(ReadMatches::default());
    };
    let maps = maps(images);
    let system =
        lines().find_map(|(_, line)| line.strip_prefix("#CRS")?.split_once(':')).map(|(_, of)| of.trim());
    let system = system.filter(|system| !system.is_empty());
    let (row, header, format): (Row, bool, MatchFormat) = match first {
        _ if first.starts_with("ax,ay,bx,by,") => (csv, true, MatchFormat::Csv),
        _ if first.starts_with("mapX,mapY,") => match system {
            Some(system) => {
                same_system(system, images.places[1])?;
                (qgis_on_a_map, true, MatchFormat::Qgis)
            }
            None => (qgis, true, MatchFormat::Qgis),
        },
        _ => match first.split_ascii_whitespace().count() {
            4 => (s2p, false, MatchFormat::S2p),
            5 => (micmac, false, MatchFormat::MicMac),
            6 => (asp, false, MatchFormat::Asp),
            _ if s2p(first, 0, &maps).is_ok() => (s2p, false, MatchFormat::S2p),
            _ => return Err(UNKNOWN.into()),
        },
    };
    let rows_by = |row: Row| -> Parsed<Vec<MatchRow>> {
        let rows = lines().filter(|(_, line)| !line.starts_with('#')).skip(usize::from(header));
        let parse = |(index, (number, line))| {
            row(line, index, &maps).map_err(|reason| format!("line {number}: {reason}"))
        };
        (0..).zip(rows).map(parse).collect()
    };
    let mut rows = rows_by(row);
    if format == MatchFormat::Qgis && system.is_none() && maps[1].is_some() {
        rows = inside(rows?, rows_by(qgis_on_a_map), images.sizes);
    }
    let rows = rows?;
    Ok(ReadMatches { format, in_order: format == MatchFormat::Qgis, rows, ..ReadMatches::default() })
}

/// The points of a QGIS file without a line `#CRS`: as pixels or as map coordinates, whichever lie inside the pictures.
fn inside(
    pixels: Vec<MatchRow>,
    on_map: Parsed<Vec<MatchRow>>,
    sizes: [Option<Size>; 2],
) -> Parsed<Vec<MatchRow>> {
    let within = |[x, y]: [f32; 2], size: Option<Size>| {
        let [width, height] = size.map_or([f32::INFINITY; 2], |of| [of.width as f32, of.height as f32]);
        (-0.5..=width - 0.5).contains(&x) && (-0.5..=height - 0.5).contains(&y)
    };
    // Disabled points do not count, and up to a tenth of the others may lie outside, set by mistake.
    let fit = |rows: &[MatchRow]| {
        let used = rows.iter().filter(|row| row.inlier);
        let (within, all) = used.fold((0, 0), |(within_both, all), row| {
            (within_both + usize::from(within(row.a_xy, sizes[0]) && within(row.b_xy, sizes[1])), all + 1)
        });
        10 * within >= 9 * all
    };
    let alike =
        |on_map: &[MatchRow]| pixels.iter().zip(on_map).all(|(a, b)| (a.a_xy, a.b_xy) == (b.a_xy, b.b_xy));
    match (fit(&pixels), on_map) {
        (true, Ok(on_map)) if fit(&on_map) && pixels.iter().any(|row| row.inlier) && !alike(&on_map) => {
            Err(format!(
                "has no line #CRS, and its points lie inside of the pictures both as pixels and as map coordinates: \
                 {ADVICE}"
            ))
        }
        (true, _) => Ok(pixels),
        (false, Ok(on_map)) if fit(&on_map) => Ok(on_map),
        (false, _) => Err(format!(
            "has no line #CRS, and its points lie outside of the pictures both as pixels and as map coordinates: \
             expected places on these pictures; {ADVICE}"
        )),
    }
}

const ADVICE: &str = "put the line `#CRS: EPSG:NUMBER` before map coordinates; give pixels without a place on the map as \
                   lines of x1 y1 x2 y2, from the centre of the first pixel";

/// For each image the transform from pixels to map coordinates, if it is known.
fn maps(images: &MatchSides<'_>) -> Maps {
    images.places.map(|place| place.and_then(Georeference::transform))
}

/// Fails if a file names another coordinate system than that of the image whose map coordinates it holds. Only EPSG
/// numbers are compared.
fn same_system(named: &str, place: Option<&Georeference>) -> Parsed<()> {
    match (epsg_of(named), place.and_then(Georeference::epsg)) {
        (Some(named), Some(of_place)) if named != of_place => Err(format!(
            "its points are in the coordinate system EPSG:{named}, the picture that stays is in EPSG:{of_place}: \
             expected the same; transform the points (in QGIS by a project in EPSG:{of_place}), or name that system \
             in the file if they are in it"
        )),
        _ => Ok(()),
    }
}

/// The EPSG number of a coordinate system: `EPSG:32632`, or WKT, which ends with the number of the whole system. `None`
/// for a compound system with heights, because its number differs from that of its plane.
fn epsg_of(system: &str) -> Option<u64> {
    let digits = |text: &str| text.trim().trim_matches('"').parse().ok();
    if let Some((start, number)) = system.split_once(':') {
        return start.trim().eq_ignore_ascii_case("EPSG").then(|| digits(number)).flatten();
    }
    let name = system.trim().strip_suffix("]]")?;
    let (_, last) = name.rsplit_once('[').filter(|_| !name.starts_with("COMP"))?;
    last.trim().strip_prefix("\"EPSG\",").and_then(digits)
}

const UNKNOWN: &str = "holds no places of matches: expected CSV of this program (ax,ay,bx,by,distance,ratio,inlier,a,b) or its JSON, points of QGIS, \
                       a virtual raster of GDAL with control points, or lines of 4 (s2p), 5 (MicMac) or 6 numbers (ASP); indices of features \
                       (COLMAP, hloc) go to `collect --matches`";

/// The `N` numbers of a line; more, fewer or infinite ones are an error.
fn numbers<T: FromStr + Copy + Default + Into<f64>, const N: usize>(
    words: &mut dyn Iterator<Item = &str>,
    line: &str,
) -> Parsed<[T; N]> {
    let (mut found, wrong) = ([T::default(); N], || format!("{line:?}: expected {N} numbers"));
    for number in &mut found {
        let word = words.next().and_then(|word| word.trim().parse().ok());
        *number = word.filter(|&number: &T| number.into().is_finite()).ok_or_else(wrong)?;
    }
    words.next().map_or(Ok(found), |_| Err(wrong()))
}

fn words<const N: usize>(line: &str) -> Parsed<[f32; N]> {
    numbers(&mut line.split_ascii_whitespace(), line)
}

/// A row with points only; the other values are the defaults of [`ReadMatches`].
fn places(index: u32, [ax, ay, bx, by]: [f32; 4]) -> MatchRow {
    let pair = Match { a: index, b: index, distance: 0.0, ratio: f32::NAN };
    MatchRow { pair, a_xy: [ax, ay], b_xy: [bx, by], scales: [1.0; 2], inlier: true }
}

/// Other programs have commas between the numbers, too.
fn s2p(line: &str, index: u32, _: &Maps) -> Parsed<MatchRow> {
    let words = line.split(|c: char| c == ',' || c.is_ascii_whitespace());
    Ok(places(index, numbers(&mut words.filter(|word| !word.is_empty()), line)?))
}

fn micmac(line: &str, index: u32, _: &Maps) -> Parsed<MatchRow> {
    let [ax, ay, bx, by, _weight] = words(line)?;
    Ok(places(index, [ax, ay, bx, by]))
}

fn asp(line: &str, index: u32, _: &Maps) -> Parsed<MatchRow> {
    let [ax, ay, a, bx, by, b] = words(line)?;
    if a <= 0.0 || b <= 0.0 {
        return Err(format!("{line:?}: expected uncertainties above 0"));
    }
    Ok(MatchRow { scales: [a, b], ..places(index, [ax, ay, bx, by]) })
}

fn qgis(line: &str, index: u32, _: &Maps) -> Parsed<MatchRow> {
    let [bx, by, ax, ay, enabled] = numbers::<f64, 5>(&mut line.split(',').take(5), line)?;
    control_point(upwards([ax, ay]), upwards([bx, by]), enabled, index, line)
}

/// A line of QGIS whose first point is in map coordinates of B; the second is in those of A, if A has a georeference.
fn qgis_on_a_map(line: &str, index: u32, maps: &Maps) -> Parsed<MatchRow> {
    let [bx, by, ax, ay, enabled] = numbers::<f64, 5>(&mut line.split(',').take(5), line)?;
    let a = if maps[0].is_some() { pixel(maps[0], [ax, ay])? } else { upwards([ax, ay]) };
    control_point(a, pixel(maps[1], [bx, by])?, enabled, index, line)
}

/// The pixel at coordinates of QGIS, which are measured from the corner of the first pixel, and upwards.
fn upwards([x, y]: [f64; 2]) -> [f64; 2] {
    [x - 0.5, -0.5 - y]
}

fn control_point(a: [f64; 2], b: [f64; 2], enabled: f64, index: u32, of: &str) -> Parsed<MatchRow> {
    let [ax, ay, bx, by] = [a[0], a[1], b[0], b[1]].map(|v| v as f32);
    if ![ax, ay, bx, by].iter().all(|v| v.is_finite()) {
        return Err(format!("{of:?}: expected finite pixel coordinates"));
    }
    Ok(MatchRow { inlier: enabled != 0.0, ..places(index, [ax, ay, bx, by]) })
}

/// The most XML nodes of a virtual raster: one for each control point, and some more.
const MAX_NODES: u32 = 1 << 20;

/// The ground control points of a GDAL virtual raster: pixels of its source, from the corner of the first pixel, and
/// map coordinates of the other image.
fn vrt(text: &str, images: &MatchSides<'_>, names: Option<&[String; 2]>) -> Parsed<ReadMatches> {
    let options = ParsingOptions { nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options)
        .map_err(|e| format!("holds no control points of a virtual raster of GDAL: {e}"))?;
    let named = document.descendants().filter(|node| node.has_tag_name("SourceFilename"));
    let sources: Vec<String> =
        named.filter_map(|node| Some(of_path(Path::new(node.text()?.trim())))).collect();
    let exchanged = match (names, sources.first()) {
        (Some([a, b]), Some(first)) if !sources.contains(a) => {
            let wrong = || format!("holds control points of {first}: expected those of {a} or {b}");
            sources.contains(b).then_some(true).ok_or_else(wrong)?
        }
        _ => false,
    };
    let of_map = usize::from(!exchanged);
    let map = maps(images)[of_map];
    let list = document.descendants().find(|node| node.has_tag_name("GCPList"));
    same_system(list.and_then(|list| list.attribute("Projection")).unwrap_or(""), images.places[of_map])?;
    let points = document.descendants().filter(|node| node.has_tag_name("GCP"));
    let row = |(index, node): (u32, Node<'_, '_>)| {
        let number = |name: &str| {
            let value = node.attribute(name).and_then(|text| text.trim().parse().ok());
            let expected = || format!("a GCP without a number {name}");
            value.filter(|value: &f64| value.is_finite()).ok_or_else(expected)
        };
        let a = [number("Pixel")? - 0.5, number("Line")? - 0.5];
        control_point(a, pixel(map, [number("X")?, number("Y")?])?, 1.0, index, "GCP")
    };
    let rows: Vec<MatchRow> = (0..).zip(points).map(row).collect::<Parsed<_>>()?;
    if rows.is_empty() {
        return Err("holds no ground control points (GCP)".into());
    }
    let side = |name: &str| document.root_element().attribute(name).and_then(|text| text.trim().parse().ok());
    let size = side("rasterXSize").zip(side("rasterYSize")).map(|(width, height)| Size::new(width, height));
    let mut read =
        ReadMatches { format: MatchFormat::Vrt, names: None, in_order: true, sizes: [size, None], rows };
    if exchanged {
        read.exchange();
    }
    Ok(read)
}

fn csv(line: &str, _: u32, _: &Maps) -> Parsed<MatchRow> {
    let wrong = || format!("{line:?}: expected ax,ay,bx,by,distance,ratio,inlier,a,b");
    let fields: Vec<&str> = line.split(',').collect();
    let [ax, ay, bx, by, distance, ratio, inlier, a, b] = fields[..] else { return Err(wrong()) };
    let place = places(0, numbers(&mut [ax, ay, bx, by].into_iter(), line)?);
    let number = |text: &str| text.parse::<f32>().map_err(|_| wrong());
    let index = |text: &str| text.parse::<u32>().map_err(|_| wrong());
    let pair = Match { a: index(a)?, b: index(b)?, distance: number(distance)?, ratio: number(ratio)? };
    Ok(MatchRow { pair, inlier: index(inlier)? != 0, ..place })
}

/// The parts of JSON that are read.
#[derive(Deserialize)]
struct Stored {
    images: [String; 2],
    sizes: Option<[[usize; 2]; 2]>,
    matches: Vec<StoredMatch>,
}

#[derive(Deserialize)]
struct StoredMatch {
    ax: f32,
    ay: f32,
    bx: f32,
    by: f32,
    distance: Option<f32>,
    ratio: Option<f32>,
    inlier: bool,
    a: u32,
    b: u32,
}

fn json(text: &str) -> Parsed<ReadMatches> {
    let expected = "expected `images`, two names, and `matches`, each with ax, ay, bx, by, inlier, a and b";
    let Stored { images, sizes, matches } =
        serde_json::from_str(text).map_err(|e| format!("{e}; {expected}"))?;
    let row = |StoredMatch { ax, ay, bx, by, distance, ratio, inlier, a, b }| {
        let [distance, ratio] = [distance, ratio].map(|number| number.unwrap_or(f32::NAN));
        let pair = Match { a, b, distance, ratio };
        MatchRow { pair, a_xy: [ax, ay], b_xy: [bx, by], scales: [1.0; 2], inlier }
    };
    let rows = matches.into_iter().map(row).collect();
    let sizes = [0, 1].map(|i| sizes.map(|of| Size::new(of[i][0], of[i][1])));
    Ok(ReadMatches { format: MatchFormat::Json, names: Some(images), in_order: false, sizes, rows })
}

#[cfg(test)]
mod tests {
    use super::super::{MatchFormat, write_matches};
    use super::*;
    use crate::files::tests::Folder;
    use crate::image::CoordinateSystem;
    use crate::numeric::Random;
    use crate::options::Named;

    /// Every value that a format holds is read back bit for bit.
    #[test]
    fn what_is_written_is_read_again() {
        let (folder, mut random) = (Folder::new("matches-read"), Random::new(5));
        let mut number = || (random.bits() % 9_000_000) as f32 / 1009.0 - 3.0;
        let rows: Vec<MatchRow> = (0..200)
            .map(|i| {
                let pair = Match { a: 3 * i, b: 500 - i, distance: 0.25, ratio: 0.5 };
                let [a_xy, b_xy] = [[number(), number()], [number(), number()]];
                MatchRow { pair, a_xy, b_xy, scales: [1.5 + i as f32, 0.1], inlier: i % 3 > 0 }
            })
            .collect();
        // The virtual raster needs a map: `places_on_a_map_become_pixels`.
        for format in MatchFormat::ALL.iter().map(|choice| choice.value).filter(|&of| of != MatchFormat::Vrt)
        {
            let path = folder.join(format.name());
            write_matches(&path, Some(format), ["a.tif", "b.tif"], &rows).unwrap();
            let files = match format {
                MatchFormat::MicMac => {
                    ["Pastisa.tif/b.tif.txt", "Pastisb.tif/a.tif.txt"].map(|at| path.join(at)).to_vec()
                }
                _ => vec![path],
            };
            for (exchanged, file) in files.iter().enumerate() {
                let read = read_matches(file);
                if format == MatchFormat::Colmap {
                    assert!(read.unwrap_err().to_string().contains("collect --matches"));
                    continue;
                }
                let all = matches!(format, MatchFormat::Csv | MatchFormat::Json | MatchFormat::Npz);
                let expected = rows.iter().filter(|row| all || row.inlier).zip(0..).map(|(row, index)| {
                    let bare = Match { a: index, b: index, distance: 0.0, ratio: f32::NAN };
                    let scales = if format == MatchFormat::Asp { row.scales } else { [1.0; 2] };
                    let row = MatchRow { pair: if all { row.pair } else { bare }, scales, ..*row };
                    if exchanged == 1 { MatchRow { a_xy: row.b_xy, b_xy: row.a_xy, ..row } } else { row }
                });
                let (read, expected) = (read.unwrap(), expected.collect::<Vec<_>>());
                // NaN differs from itself.
                assert_eq!(format!("{:?}", read.rows), format!("{expected:?}"), "{format}");
                let named = matches!(format, MatchFormat::Json | MatchFormat::MicMac);
                assert_eq!((read.format, read.names.is_some()), (format, named), "{format}");
            }
        }
    }

    #[test]
    fn files_of_others_are_read_and_what_is_none_is_refused() {
        let nowhere = &MatchSides::default();
        let first = |text: &str| of_text(text, nowhere, None).unwrap().rows[0];
        for text in ["# of another program\n1e2 5 7.25 8\n", "1e2,5, 7.25,8\n"] {
            let row = first(text);
            assert_eq!((row.a_xy, row.b_xy), ([100.0, 5.0], [7.25, 8.0]));
        }
        let row = first("#CRS: \nmapX,mapY,pixelX,pixelY,enable\n0.5,-0.5,3.5,-2.5,0\n");
        assert_eq!((row.a_xy, row.b_xy, row.inlier), ([3.0, 2.0], [0.0, 0.0], false));
        for empty in ["", "\n \n", "# nothing\n"] {
            assert_eq!(of_text(empty, nowhere, None).unwrap(), ReadMatches::default());
        }
        for (text, why) in [
            ("1 2 3\n", "holds no places"),
            ("a.jpg b.jpg\n1 2\n\n", "holds no places"),
            ("1 2 3 4\n1 2 3\n", "line 2"),
            ("1 2 3 4\n1 2 3 4 5\n", "line 2"),
            ("1 2 nan 4\n", "expected 4 numbers"),
            ("1 2 1 4 5 0\n", "above 0"),
            (
                "#CRS: EPSG:32632\nmapX,mapY,sourceX,sourceY,enable\n500000,5000000,1,-1,1\n",
                "are map coordinates, not pixels",
            ),
            ("mapX,mapY,sourceX,sourceY,enable\n1,2,3\n", "line 2"),
            ("ax,ay,bx,by,distance,ratio,inlier,a,b\n1,2,3,4,5,6,1,8\n", "line 2"),
            ("{\"images\":[\"a\"],\"matches\":[]}", "invalid length"),
            ("{", "EOF"),
            ("ax,ay,bx,by\n1,2,3,4\n", "(ax,ay,bx,by,distance,ratio,inlier,a,b)"),
            (
                "{\"images\":[\"a\",\"b\"],\"matches\":[{\"ax\":1,\"ay\":1,\"bx\":1,\"by\":1,\"a\":1,\"b\":1}]}",
                "each with ax, ay, bx, by, inlier, a and b",
            ),
            (
                "{\"images\":[\"a\",\"b\"],\"matches\":[{\"ax\":1e300,\"ay\":1,\"bx\":1,\"by\":1,\"inlier\":true,\"a\":1,\"b\":1}]}",
                "out of range",
            ),
            ("<VRTDataset/>", "no ground control points"),
            (
                "<VRTDataset><GCP Pixel=\"1\" Line=\"x\" X=\"1\" Y=\"1\"/></VRTDataset>",
                "without a number Line",
            ),
            (
                "<VRTDataset><GCP Pixel=\"1\" Line=\"1\" X=\"1\" Y=\"1\"/></VRTDataset>",
                "are map coordinates, not pixels",
            ),
            ("<!DOCTYPE a><VRTDataset/>", "DTD"),
            ("<", "virtual raster of GDAL: "),
        ] {
            let refused = of_text(text, nowhere, None).unwrap_err();
            assert!(refused.contains(why), "{text:?}: {refused}");
        }
    }
    /// Map coordinates become pixels of images with a georeference; other images' points are columns and rows.
    #[test]
    fn places_on_a_map_become_pixels() {
        let (turned, north) =
            ([1.5, 0.5, 500_000.0, 0.25, -2.0, 4_600_000.0], [2.0, 0.0, 10.0, 0.0, -2.0, 20.0]);
        let at = |[a, b, c, d, e, f]: [f64; 6], [x, y]: [f64; 2]| {
            let (x, y) = (x + 0.5, y + 0.5);
            (a * x + b * y + c, d * x + e * y + f)
        };
        let ((u, v), (x, y)) = (at(north, [3.0, 4.0]), at(turned, [7.25, 8.0]));
        let [north, turned] = [north, turned].map(Georeference::of_transform);
        let sides = |places| MatchSides { places, ..MatchSides::default() };
        for (places, source) in
            [([Some(&north), Some(&turned)], (u, v)), ([None, Some(&turned)], (3.5, -4.5))]
        {
            let text = format!(
                "#CRS: EPSG:32632\nmapX,mapY,sourceX,sourceY,enable\n{x},{y},{},{},1\n",
                source.0, source.1
            );
            let read = of_text(&text, &sides(places), None).unwrap();
            assert_eq!((read.rows[0].a_xy, read.rows[0].b_xy), ([3.0, 4.0], [7.25, 8.0]));
        }
        let text = format!(
            "<VRTDataset><GCPList><GCP Pixel=\"3.5\" Line=\"4.5\" X=\"{x}\" Y=\"{y}\"/></GCPList></VRTDataset>"
        );
        let read = of_text(&text, &sides([None, Some(&turned)]), None).unwrap();
        assert_eq!((read.rows[0].a_xy, read.rows[0].b_xy), ([3.0, 4.0], [7.25, 8.0]));
        // The pixels are those of the source, which may be the second image.
        let named = text.replace("<GCPList>", "<SourceFilename>x/a.tif</SourceFilename><GCPList>");
        let of =
            |a: &str, b: &str, places| of_text(&named, &sides(places), Some(&[a.to_owned(), b.to_owned()]));
        let [given, other] = [
            of("a.tif", "b.tif", [None, Some(&turned)]).unwrap(),
            of("b.tif", "a.tif", [Some(&turned), None]).unwrap(),
        ];
        assert_eq!((given.rows[0].a_xy, given.rows[0].b_xy), ([3.0, 4.0], [7.25, 8.0]));
        assert_eq!((other.rows[0].a_xy, other.rows[0].b_xy), ([7.25, 8.0], [3.0, 4.0]));
        let refused = of("c.tif", "b.tif", [None, Some(&turned)]).unwrap_err();
        assert!(refused.contains("of a.tif: expected those of c.tif or b.tif"), "{refused}");
    }

    /// Without a line `#CRS` points are pixels or map coordinates, whichever lie inside the pictures, if only one does.
    #[test]
    fn points_without_a_coordinate_system_are_what_lies_inside() {
        let place = Georeference::of_transform([2.0, 0.0, 500_000.0, 0.0, -2.0, 4_600_000.0]);
        let (near, same) = (
            Georeference::of_transform([0.5, 0.0, 0.0, 0.0, -0.5, 0.0]),
            Georeference::of_transform([1.0, 0.0, 0.0, 0.0, -1.0, 0.0]),
        );
        let size = Some(Size::new(40, 30));
        let read = |places: &[[f64; 2]], of| {
            let line = |[x, y]: &[f64; 2]| format!("{x},{y},1.5,-2.5,1\n");
            let lines: String = places.iter().map(line).collect();
            let images = MatchSides { places: [None, Some(of)], sizes: [size; 2], names: None };
            of_text(&format!("mapX,mapY,sourceX,sourceY,enable\n{lines}"), &images, None)
        };
        let first = |read: Parsed<ReadMatches>| read.map(|read| read.rows[0].b_xy);
        assert_eq!(first(read(&[[500_021.0, 4_599_981.0]], &place)), Ok([10.0, 9.0]), "on the map");
        assert_eq!(first(read(&[[10.5, -9.5]], &place)), Ok([10.0, 9.0]), "pixels");
        assert_eq!(first(read(&[[10.5, -9.5]], &same)), Ok([10.0, 9.0]), "both are the same");
        assert_eq!(read(&[], &place).unwrap().rows, []);
        for (place, xy, why) in [(&near, [10.5, -9.5], "inside"), (&place, [10.5, 9.5], "outside")] {
            let refused = read(&[xy], place).unwrap_err();
            let why = format!("no line #CRS, and its points lie {why}");
            assert!(refused.contains(&why) && refused.contains("#CRS: EPSG:"), "{refused}");
        }
        assert!(read(&[[f64::NAN; 2]], &place).unwrap_err().starts_with("line 2: "));
    }

    /// A file whose coordinate system is not that of the picture is refused, if both have EPSG numbers.
    #[test]
    fn places_in_another_coordinate_system_are_refused() {
        let utm = Some(CoordinateSystem::Plane(32632));
        let place = Georeference::new([2.0, 0.0, 0.0, 0.0, -2.0, 0.0], utm).unwrap();
        let images = MatchSides { places: [None, Some(&place)], ..MatchSides::default() };
        let plane = |number: u32| {
            format!(
                "PROJCS[\"a\",GEOGCS[\"b\",AUTHORITY[\"EPSG\",\"4326\"]],AUTHORITY[\"EPSG\",\"{number}\"]]"
            )
        };
        let points =
            |system: &str| format!("#CRS: {system}\nmapX,mapY,sourceX,sourceY,enable\n1,-2,1.5,-2.5,1\n");
        let raster = |system: &str| {
            let system = system.replace('"', "&quot;");
            format!(
                "<VRTDataset><GCPList Projection=\"{system}\"><GCP Pixel=\"1\" Line=\"1\" X=\"1\" Y=\"-1\"/></GCPList></VRTDataset>"
            )
        };
        for text in [points, raster] as [fn(&str) -> String; 2] {
            for right in [
                "EPSG:32632",
                "epsg:32632",
                &plane(32632),
                "LOCAL_CS[\"x\"]",
                &format!("COMPD_CS[{},AUTHORITY[\"EPSG\",\"7405\"]]", plane(32632)),
            ] {
                assert_eq!(
                    of_text(&text(right), &images, None).map(|read| read.rows.len()),
                    Ok(1),
                    "{right}"
                );
            }
            for wrong in ["EPSG:23032", &plane(23032), "GEOGCRS[\"WGS 84\",ID[\"EPSG\",23032]]"] {
                let refused = of_text(&text(wrong), &images, None).unwrap_err();
                assert!(refused.contains("EPSG:23032") && refused.contains("EPSG:32632"), "{refused}");
            }
        }
    }

    /// Files that determine the order of their images are read in the order of the images asked for.
    #[test]
    fn matches_come_in_the_order_of_the_images() {
        let folder = Folder::new("matches-order");
        let pair = Match { a: 0, b: 1, distance: 0.0, ratio: 0.5 };
        let row = MatchRow { pair, a_xy: [1.0, 2.0], b_xy: [3.0, 4.0], scales: [5.0, 6.0], inlier: true };
        let sides = |names| MatchSides { names: Some(names), ..MatchSides::default() };
        let (given, exchanged, others) =
            (sides(["x/a.tif", "y/b.tif"]), sides(["b.tif", "a.tif"]), sides(["a.tif", "c.tif"]));
        std::fs::write(folder.join("binary"), [0xff, 0xfe, 0]).unwrap();
        assert!(
            read_matches(folder.join("binary")).unwrap_err().to_string().contains("is no text: expected tie")
        );
        for (format, name) in
            [(MatchFormat::Json, "m"), (MatchFormat::MicMac, "Homol"), (MatchFormat::Asp, "run-a__b.txt")]
        {
            let path = folder.join(name);
            write_matches(&path, Some(format), ["a.tif", "b.tif"], &[row]).unwrap();
            let places = |sides| {
                let read = read_matches_of(&path, &sides)?;
                Ok::<_, Error>((read.in_order, read.rows[0].a_xy, read.rows[0].b_xy))
            };
            assert_eq!(places(given).unwrap(), (true, row.a_xy, row.b_xy), "{format}");
            assert_eq!(places(exchanged).unwrap(), (true, row.b_xy, row.a_xy), "{format}");
            match format {
                // ASP's file names have a free prefix, so that files of other images are not recognised.
                MatchFormat::Asp => assert_eq!(places(others).unwrap(), (false, row.a_xy, row.b_xy)),
                _ => assert!(places(others).unwrap_err().to_string().contains("a.tif and c.tif"), "{format}"),
            }
        }
        let one = read_matches_of(folder.join("Homol/Pastisb.tif/a.tif.txt"), &given).unwrap();
        assert_eq!((one.rows[0].a_xy, one.names), (row.a_xy, Some(["a.tif", "b.tif"].map(str::to_owned))));
    }
}
