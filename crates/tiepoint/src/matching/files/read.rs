//! Tie points of files, told by what is in them.

use super::{MatchRow, npz};
use crate::matching::Match;
use crate::{Error, Result};
use serde::Deserialize;
use std::path::Path;
use std::str::FromStr;

/// Tie points as a file holds them. What it does not say is the number of the row (indices), 0 (distance), NaN (ratio),
/// 1 (scales) and true (inlier).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadMatches {
    /// The names of both images.
    pub names: Option<[String; 2]>,
    /// The matches, in the order of the file.
    pub rows: Vec<MatchRow>,
}

/// The fault of a line, without its number.
type Parsed<T> = std::result::Result<T, String>;

/// Reads a line with its number among those of matches.
type Row = fn(&str, u32) -> Parsed<MatchRow>;

/// Reads what [`write_matches`](super::write_matches) writes, and the same of other programs: CSV, JSON, NPZ, text with
/// uncertainties of the Ames Stereo Pipeline (6 numbers a line), a file of MicMac's `Homol` (5), `sift_matches.txt` of
/// s2p (4), ground control points of QGIS that lie on pixels of a picture. A file without lines holds no matches.
///
/// # Errors
/// [`Error::Io`] when the file cannot be read; [`Error::Format`] when it holds anything else, such as COLMAP's indices,
/// which are no places.
pub fn read_matches(path: impl AsRef<Path>) -> Result<ReadMatches> {
    let path = path.as_ref();
    if let Some(read) = npz::read_file(path)? {
        return Ok(read);
    }
    let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
    of_text(&text).map_err(|reason| Error::format(path, reason))
}

/// The same of the text of a file.
fn of_text(text: &str) -> Parsed<ReadMatches> {
    if text.trim_start().starts_with('{') {
        return json(text);
    }
    let lines = || (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
    let Some((_, first)) = lines().find(|(_, line)| !line.starts_with('#')) else {
        return Ok(ReadMatches::default());
    };
    let (row, header): (Row, bool) = match first {
        _ if first.starts_with("ax,ay,bx,by,") => (csv, true),
        _ if first.starts_with("mapX,mapY,") => (qgis, true),
        _ => match first.split_ascii_whitespace().count() {
            4 => (s2p, false),
            5 => (micmac, false),
            6 => (asp, false),
            _ => return Err(UNKNOWN.into()),
        },
    };
    if let Some((number, line)) = lines().find(|(_, line)| line.starts_with("#CRS") && !line.ends_with(':')) {
        return Err(format!("line {number}: {line:?}: its places are on a map, and no pixels of a picture"));
    }
    let rows = lines().filter(|(_, line)| !line.starts_with('#')).skip(usize::from(header));
    let row = |(index, (number, line))| row(line, index).map_err(|reason| format!("line {number}: {reason}"));
    Ok(ReadMatches { names: None, rows: (0..).zip(rows).map(row).collect::<Parsed<_>>()? })
}

const UNKNOWN: &str = "holds no places of matches: expected CSV or JSON of this program, points of QGIS, or lines of 4 (s2p), 5 \
                       (MicMac) or 6 numbers (ASP); indices of features (COLMAP, hloc) go to `collect --matches`";

/// The numbers of a line, which must be so many and finite.
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

/// A row of places alone.
fn places(index: u32, [ax, ay, bx, by]: [f32; 4]) -> MatchRow {
    let pair = Match { a: index, b: index, distance: 0.0, ratio: f32::NAN };
    MatchRow { pair, a_xy: [ax, ay], b_xy: [bx, by], scales: [1.0; 2], inlier: true }
}

fn s2p(line: &str, index: u32) -> Parsed<MatchRow> {
    Ok(places(index, words(line)?))
}

fn micmac(line: &str, index: u32) -> Parsed<MatchRow> {
    let [ax, ay, bx, by, _weight] = words(line)?;
    Ok(places(index, [ax, ay, bx, by]))
}

fn asp(line: &str, index: u32) -> Parsed<MatchRow> {
    let [ax, ay, a, bx, by, b] = words(line)?;
    if a <= 0.0 || b <= 0.0 {
        return Err(format!("{line:?}: expected uncertainties above 0"));
    }
    Ok(MatchRow { scales: [a, b], ..places(index, [ax, ay, bx, by]) })
}

fn qgis(line: &str, index: u32) -> Parsed<MatchRow> {
    let [bx, by, ax, ay, enabled] = numbers::<f64, 5>(&mut line.split(',').take(5), line)?;
    // From the corner of the first pixel, and upwards.
    let row = places(index, [ax - 0.5, -0.5 - ay, bx - 0.5, -0.5 - by].map(|v| v as f32));
    Ok(MatchRow { inlier: enabled != 0.0, ..row })
}

fn csv(line: &str, _: u32) -> Parsed<MatchRow> {
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
    let Stored { images, matches } = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let row = |StoredMatch { ax, ay, bx, by, distance, ratio, inlier, a, b }| {
        let [distance, ratio] = [distance, ratio].map(|number| number.unwrap_or(f32::NAN));
        let pair = Match { a, b, distance, ratio };
        MatchRow { pair, a_xy: [ax, ay], b_xy: [bx, by], scales: [1.0; 2], inlier }
    };
    Ok(ReadMatches { names: Some(images), rows: matches.into_iter().map(row).collect() })
}

#[cfg(test)]
mod tests {
    use super::super::{MatchFormat, write_matches};
    use super::*;
    use crate::files::tests::Folder;
    use crate::numeric::Random;
    use crate::options::Named;

    /// Every format gives back each bit that it holds.
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
        for format in MatchFormat::ALL.iter().map(|choice| choice.value) {
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
                assert_eq!(read.names.is_some(), format == MatchFormat::Json, "{format}");
            }
        }
    }

    #[test]
    fn files_of_others_are_read_and_what_is_none_is_refused() {
        let first = |text: &str| of_text(text).unwrap().rows[0];
        let row = first("# of another program\n1e2 5 7.25 8\n");
        assert_eq!((row.a_xy, row.b_xy), ([100.0, 5.0], [7.25, 8.0]));
        let row = first("#CRS: \nmapX,mapY,pixelX,pixelY,enable\n0.5,-0.5,3.5,-2.5,0\n");
        assert_eq!((row.a_xy, row.b_xy, row.inlier), ([3.0, 2.0], [0.0, 0.0], false));
        for empty in ["", "\n \n", "# nothing\n"] {
            assert_eq!(of_text(empty).unwrap(), ReadMatches::default());
        }
        for (text, why) in [
            ("1 2 3\n", "holds no places"),
            ("a.jpg b.jpg\n1 2\n\n", "holds no places"),
            ("1 2 3 4\n1 2 3\n", "line 2"),
            ("1 2 3 4\n1 2 3 4 5\n", "line 2"),
            ("1 2 nan 4\n", "expected 4 numbers"),
            ("1 2 1 4 5 0\n", "above 0"),
            ("#CRS: EPSG:32632\nmapX,mapY,sourceX,sourceY,enable\n500000,5000000,1,-1,1\n", "on a map"),
            ("mapX,mapY,sourceX,sourceY,enable\n1,2,3\n", "line 2"),
            ("ax,ay,bx,by,distance,ratio,inlier,a,b\n1,2,3,4,5,6,1,8\n", "line 2"),
            ("{\"images\":[\"a\"],\"matches\":[]}", "invalid length"),
            ("{", "EOF"),
        ] {
            let refused = of_text(text).unwrap_err();
            assert!(refused.contains(why), "{text:?}: {refused}");
        }
    }
}
