//! The text file of VLFeat's `sift` command: one line `x y scale angle d1 … d128` for each feature, no header, pixel
//! centres at integers, angles in radians from +x towards +y. VLFeat truncates 512 times the unit vector to 8 bits;
//! here it is rounded. Its eight directions turn the other way: direction o of a cell is (8 − o) mod 8 here.

use super::text::{features, read_line, write_line};
use crate::feature::Features;
use std::io::{self, Write};

pub(super) fn write(out: &mut impl Write, features: &Features, descriptors: &[u8]) -> io::Result<()> {
    let pairs = features.keypoints.iter().zip(descriptors.chunks_exact(128));
    pairs.into_iter().try_for_each(|(k, d)| {
        let mut turned = d.to_vec();
        turn(&mut turned);
        write_line(out, k, 0.0, &turned)
    })
}

/// Reverses the directions of every cell; applied twice it changes nothing.
fn turn(descriptors: &mut [u8]) {
    for cell in descriptors.as_chunks_mut::<8>().0 {
        cell[1..].reverse();
    }
}

pub(super) fn read(text: &str) -> Result<Features, String> {
    let mut descriptors = Vec::new();
    let lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty());
    let keypoints =
        lines.map(|(i, line)| read_line(line, i + 1, 0.0, &mut descriptors)).collect::<Result<_, _>>()?;
    turn(&mut descriptors);
    Ok(features(keypoints, descriptors))
}
