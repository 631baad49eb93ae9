//! `camchain.yaml` of Kalibr: two cameras, `cam0` and `cam1`, and the pose of the second relative to the first.
//!
//! Of each camera `intrinsics` (fx, fy, cx, cy), `distortion_model`, `distortion_coeffs`, `resolution`; of the second
//! `T_cn_cnm1`, a matrix of 4x4 that maps points of the first camera to points of the second, as R and T do here. Cameras
//! are pinholes with OpenCV's distortion (`radtan`: k1 k2 p1 p2) or none. They become `M1 D1 M2 D2 R T` of OpenCV.

use super::document::{Entry, Parsed, no_key_twice, numbers, without_comment};
use super::opencv::SECOND_SIZE;

/// The lines below the name of a camera with their numbers, and the number of the line with the name.
struct Section<'a> {
    name: &'a str,
    first: usize,
    lines: Vec<(usize, &'a str)>,
}

impl Section<'_> {
    /// The words behind a key, with the number of its line; a list may go on in the lines below.
    fn words(&self, key: &str) -> Parsed<(usize, Vec<&str>)> {
        let behind = |(_, line): &(usize, &str)| {
            line.trim_start().strip_prefix(key).is_some_and(|rest| rest.starts_with(':'))
        };
        let at = self.lines.iter().position(behind);
        let at = at.ok_or_else(|| format!("line {}: {} has no {key}", self.first, self.name))?;
        let more = self.lines[at + 1..].iter().map(|(_, line)| *line).take_while(|line| !line.contains(':'));
        let (number, line) = self.lines[at];
        let rest = line.split_once(':').map_or("", |(_, rest)| rest);
        let text = std::iter::once(rest).chain(more);
        let words = text.flat_map(|text| text.split(['[', ']', ',', ' ', '\t', '"', '\'']));
        Ok((number, words.filter(|word| !word.is_empty() && *word != "-").collect()))
    }

    fn numbers<const N: usize>(&self, key: &str) -> Parsed<(usize, [f64; N])> {
        let (line, words) = self.words(key)?;
        Ok((line, numbers(words, key, line)?))
    }

    /// Fails unless the word after a key is one of these.
    fn require(&self, key: &str, known: &[&str]) -> Parsed<()> {
        let (line, words) = self.words(key)?;
        match words[..] {
            [word] if known.contains(&word) => Ok(()),
            _ => Err(format!("line {line}: {key} is {}: expected {}", words.join(" "), known.join(" or "))),
        }
    }
}

/// Whether a file is one of Kalibr's: a line names the first camera, and only a YAML header comes before it.
pub(super) fn is_kalibr(text: &str) -> bool {
    let mut lines = text.lines().map(without_comment);
    lines.find(|line| !line.is_empty() && !line.starts_with('%') && *line != "---") == Some("cam0:")
}

pub(super) fn parse(text: &str) -> Parsed<Vec<Entry>> {
    let mut sections: Vec<Section<'_>> = vec![];
    for (i, line) in text.lines().map(without_comment).enumerate().filter(|(_, line)| !line.is_empty()) {
        match (line.strip_suffix(':').filter(|name| name.starts_with("cam")), sections.last_mut()) {
            (Some(name), _) => sections.push(Section { name, first: i + 1, lines: vec![] }),
            (None, Some(section)) => section.lines.push((i + 1, line)),
            (None, None) => {}
        }
    }
    let [left, right] = &sections[..] else {
        return Err(format!("a camchain of Kalibr of {} cameras: expected cam0 and cam1", sections.len()));
    };
    let keys = sections.iter().flat_map(|&Section { name, first, ref lines }| {
        let key =
            move |(i, line): &(usize, &str)| Some((format!("{name} {}", line.split_once(':')?.0.trim()), *i));
        std::iter::once((name.to_owned(), first)).chain(lines.iter().filter_map(key))
    });
    no_key_twice(keys)?;
    let mut entries = vec![];
    for (section, [camera, lens]) in [(left, ["M1", "D1"]), (right, ["M2", "D2"])] {
        section.require("camera_model", &["pinhole"])?;
        section.require("distortion_model", &["radtan", "none"])?;
        let (line, [fx, fy, cx, cy]) = section.numbers("intrinsics")?;
        entries.push(Entry::matrix(camera, line, 3, &[fx, 0.0, cx, 0.0, fy, cy, 0.0, 0.0, 1.0]));
        let (line, distortion) = match section.require("distortion_model", &["radtan"]) {
            Ok(()) => section.numbers("distortion_coeffs")?,
            Err(_) => (line, [0.0; 4]),
        };
        entries.push(Entry::matrix(lens, line, 1, &distortion));
    }
    for (section, key) in [(left, "image_size"), (right, SECOND_SIZE)] {
        let (line, size) = section.numbers::<2>("resolution")?;
        entries.push(Entry::matrix(key, line, 1, &size));
    }
    let (line, pose) = right.numbers::<16>("T_cn_cnm1")?;
    let rows = [&pose[..4], &pose[4..8], &pose[8..12]];
    entries.push(Entry::matrix("R", line, 3, &rows.map(|row| &row[..3]).concat()));
    entries.push(Entry::matrix("T", line, 3, &rows.map(|row| row[3])));
    Ok(entries)
}
