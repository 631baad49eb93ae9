//! The text file of COLMAP's `feature_importer`: `N 128`, then N lines of `x y scale angle d1 … d128`. COLMAP
//! puts the centre of the first pixel at (0.5, 0.5).

use super::text::{features, number, read_line, write_line};
use crate::feature::Features;
use std::io::{self, Write};

const CENTRE: f32 = 0.5;

pub(super) fn write(out: &mut impl Write, features: &Features, descriptors: &[u8]) -> io::Result<()> {
    writeln!(out, "{} 128", features.len())?;
    let pairs = features.keypoints.iter().zip(descriptors.chunks_exact(128));
    pairs.into_iter().try_for_each(|(k, d)| write_line(out, k, CENTRE, d))
}

pub(super) fn read(text: &str) -> Result<Features, String> {
    let mut lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty());
    let (_, header) = lines.next().ok_or("the file is empty; expected a first line of `N 128`")?;
    let count = match header.split_ascii_whitespace().collect::<Vec<_>>()[..] {
        [count, "128"] => number::<usize>(count, "the number of features", 1)?,
        _ => return Err(format!("the first line is {header:?}, expected `N 128`")),
    };
    let mut descriptors = Vec::new();
    let keypoints = lines
        .map(|(i, line)| read_line(line, i + 1, CENTRE, &mut descriptors))
        .collect::<Result<Vec<_>, _>>()?;
    if keypoints.len() != count {
        return Err(format!("the first line promises {count} features, but {} follow", keypoints.len()));
    }
    Ok(features(keypoints, descriptors))
}
