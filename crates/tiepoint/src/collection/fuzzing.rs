//! Gives fuzz targets, and the test below, access to private readers.

#[cfg(test)]
#[path = "../../../../fuzz/calibration.rs"]
mod calibration;

use super::scan::FileVersion;
use super::{features, pairs, tile};
use crate::feature::{Descriptors, Features, Keypoint};
use crate::image::Size;
use exif::Reader;
use std::io::Cursor;

/// Bytes of the head of a file of features: with descriptors of 128 bytes, and with others.
const HEADS: [usize; 2] = [86, 91];

/// Files of a work folder, each with the target that reads it: features of both forms, a verified pair, two pairs.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let file = |descriptors, dimension| {
        let photograph = FileVersion { bytes: 7, modified: 8, changed: 9, content: Some(10) };
        let origin = features::Origin { photograph, beside: None, imported: false };
        let keypoints = vec![Keypoint { x: 1.5, y: 2.0, scale: 3.0, ..Keypoint::default() }];
        let features = Features { keypoints, descriptors, dimension, image: Size::new(640, 480) };
        let (head, body) = features::encode(&origin, &Ok(features));
        [head, body].concat()
    };
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    vec![
        ("collection_features", file(Descriptors::U8(vec![5; 128]), 128)),
        ("collection_features", file(Descriptors::F32(vec![0.5; 64]), 64)),
        (
            "collection_tile",
            [&words(&[5, 1, 0, 1, 1, 1])[..], &[2, 1], &[0; 72], &words(&[3, 4]), &[1]].concat(),
        ),
        ("collection_pairs", [&[1][..], &words(&[1, 2, 3, 4])].concat()),
    ]
}

/// Reads the head and the body of a file of features; whether they are in order.
pub fn features(payload: &[u8]) -> bool {
    let read = |length: usize| {
        let (head, body) = payload.split_at_checked(length)?;
        let known = features::decode_head(head)?.1.ok()?;
        let found = features::decode_body(&known, body)?;
        assert!(found.len() * known.form.dimension <= body.len(), "more features than bytes");
        Some(found)
    };
    HEADS.map(read).iter().any(Option::is_some)
}

/// Reads hloc's features and matches.
pub fn hdf5(file: &[u8]) {
    let storage = std::sync::Arc::new(hdf5_reader::BytesStorage::new(file.to_vec()));
    let Ok(file) = crate::feature::files::hdf5::Hdf5::of(storage) else { return };
    for first in file.members("").unwrap_or_default().0 {
        if let Ok(Some(found)) = file.features(&first) {
            assert!(found.check().is_ok(), "what is read is in order");
        }
        for second in file.members(&first).unwrap_or_default().0 {
            let matches = file.array(&format!("{first}/{second}/matches0"));
            let _ = matches.map(|matches| matches.map(|matches| matches.integers().len()));
        }
    }
}

/// Reads arrays of matches.
pub fn match_arrays(file: &[u8]) {
    if let Ok(found) = crate::matching::files::npz::read(file) {
        assert!(found.rows.len() <= 100 * file.len() + (1 << 16), "more matches than bytes");
    }
}

/// Reads the head of a tile.
pub fn tile(payload: &[u8]) {
    for (side, record) in [(4, tile::PAIR), (64, 2)] {
        let Some(head) = tile::Head::decode(payload, side, record) else { continue };
        let at = (0..side).flat_map(|a| (0..side).map(move |b| [a, b]));
        let records = at.filter_map(|at| head.record(at)).count();
        assert!(records * record <= payload.len(), "more pairs than bytes");
        let _ = head.bodies(payload, tile::pair_length);
    }
}

/// Reads a file of pairs to match.
pub fn pairs(payload: &[u8]) {
    if let Some(pairs::PairSet::List(pairs)) = pairs::decode(payload, 1000) {
        assert!(pairs.iter().all(|[a, b]| a < b && *b < 1000), "photographs that there are");
    }
}

/// Reads the camera data of a photograph.
pub fn camera_data(photograph: &[u8]) {
    let read = Reader::new().continue_on_error(true).read_from_container(&mut Cursor::new(photograph));
    let Ok(found) = read.or_else(|e| e.distill_partial_result(|_| {})) else { return };
    let metadata = crate::image::metadata_of(&found);
    for size in [Size::new(1, 1), Size::new(4000, 3000)] {
        assert!(metadata.focal_px(size).is_none_or(|px| px > 0.0 && px.is_finite()), "{metadata:?}");
    }
}

/// Reads the georeference of a GeoTIFF, and a world file.
pub fn georeference(file: &[u8]) {
    let of_world = std::str::from_utf8(file).ok().and_then(crate::image::parse_world_file);
    for place in [crate::image::georeference_of(file), of_world].into_iter().flatten() {
        let transform = place.transform();
        assert!(transform.is_none_or(|transform| transform.iter().all(|v| v.is_finite())), "{place:?}");
    }
}

/// Reads tie points of any program.
pub fn matches(file: &[u8]) {
    use crate::matching::files::{MatchSides, parse_matches};
    let Ok(text) = std::str::from_utf8(file) else { return };
    let place = crate::image::Georeference::of_transform([2.0, 0.5, 500_000.0, 0.0, -2.0, 4_600_000.0]);
    let (places, sizes) = ([None, Some(&place)], [None; 2]);
    let images = MatchSides { names: Some(["a.tif", "b.tif"]), places, sizes };
    if let Ok(read) = parse_matches(text, "Homol/Pastisb.tif/a.tif.txt", &images) {
        assert!(7 * read.rows.len() <= file.len(), "more matches than bytes");
        let places = read.rows.iter().flat_map(|row| [row.a_xy, row.b_xy].concat());
        assert!(places.into_iter().all(f32::is_finite), "a place with NaN or infinity");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::testing::tiff;
    use crate::numeric::Random;

    const RIG: &str = "%YAML:1.0\nM1: {rows: 3, cols: 3, dt: d, data: [600, 0, 32, 0, 600, 24, 0, 0, 1]}\n\
        D1: {rows: 1, cols: 4, dt: d, data: [-0.2, 0.1, 0, 0]}\n\
        M2: {rows: 3, cols: 3, dt: d, data: [600, 0, 31, 0, 601, 25, 0, 0, 1]}\n\
        D2: {rows: 1, cols: 4, dt: d, data: [-0.2, 0.1, 0, 0]}\n\
        R: {rows: 3, cols: 3, dt: d, data: [1, 0, 0, 0, 1, 0, 0, 0, 1]}\n\
        T: {rows: 3, cols: 1, dt: d, data: [-1, 0.1, 0]}\n";

    fn all_seeds() -> Vec<Vec<u8>> {
        let tags = [
            (271, 2, 4, 0x0061_6263),
            (33550, 12, 3, 70),
            (34735, 3, 4, 70),
            (37386, 5, 1, 70),
            (34665, 4, 1, 8),
        ];
        let others = [
            [1_u32, 2, 9].iter().flat_map(|word| word.to_le_bytes()).collect(),
            tiff(&[], &tags, &[1; 40]),
            b"\xff\xd8\xff\xe1\0\x10Exif\0\0".to_vec(),
            b"0.5\n0\n0\n-0.5\n300000.25\n5000000\n".to_vec(),
            b"1.5 2 3 4\n5 6 7 8e1\n".to_vec(),
            b"#CRS: EPSG:32632\nmapX,mapY,sourceX,sourceY,enable\n500010.5,4600000.25,7,-2.5,1\n".to_vec(),
            b"ax,ay,bx,by,distance,ratio,inlier,a,b\n1,2,3,4,0.5,NaN,1,7,8\n".to_vec(),
            b"<V><GCP Pixel=\"3.5\" Line=\"2.5\" X=\"500010.5\" Y=\"4600000.25\"/></V>".to_vec(),
            b"{\"images\":[\"a.tif\",\"b.tif\"],\"matches\":[]}".to_vec(),
            RIG.into(),
            b"cam0=[600 0 32; 0 600 24; 0 0 1]\ncam1=[600 0 33; 0 600 24; 0 0 1]\nbaseline=2\nwidth=64\nheight=48\n".to_vec(),
        ];
        seeds().into_iter().map(|(_, seed)| seed).chain(others).collect()
    }

    /// A short run of the fuzz targets.
    #[test]
    fn mutated_files_of_every_reader_end_in_an_answer() {
        let (mut random, seeds) = (Random::new(26), all_seeds());
        assert!(features(&seeds[0]) && features(&seeds[1]), "what is written is read");
        crate::geometry::calibration::StereoCalibration::parse(RIG, "a rig").unwrap();
        let mut below = |n: usize| (random.unit() * n as f64) as usize;
        for round in 0..60_000 {
            let mut bytes = seeds[round % seeds.len()].clone();
            for _ in 0..below(4) {
                match below(4) {
                    0 => bytes.truncate(below(bytes.len() + 1)),
                    1 if !bytes.is_empty() => {
                        let at = below(bytes.len());
                        bytes[at] ^= 1 << below(8);
                    }
                    2 if !bytes.is_empty() => {
                        let at = below(bytes.len());
                        bytes[at] = [0, 1, 127, 128, 255][below(5)];
                    }
                    _ => bytes.extend((0..below(9)).map(|i| (i * 31) as u8)),
                }
            }
            let _ = features(&bytes);
            for reader in [tile, pairs, camera_data, georeference, matches] {
                reader(&bytes);
            }
            calibration::read("", &bytes);
        }
    }
}
