//! Gives fuzz targets, and the test below, access to private readers.

use super::{features, pairs, tile};
use exif::Reader;
use std::io::Cursor;

/// Reads the head and the body of a file of features.
pub fn features(payload: &[u8]) {
    let (head, body) = payload.split_at(payload.len().min(82));
    let Some(file) = features::decode_head(head) else { return };
    let Ok(known) = file.outcome else { return };
    if let Some(found) = features::decode_body(&known, body) {
        assert!(found.len() * known.form.dimension <= body.len(), "more features than bytes");
    }
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
    for size in [crate::image::Size::new(1, 1), crate::image::Size::new(4000, 3000)] {
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
    use crate::numeric::Random;

    /// A TIFF with these entries in its first directory: tag, type, count, value.
    fn tiff(entries: &[(u16, u16, u32, u32)], tail: &[u8]) -> Vec<u8> {
        let mut bytes = b"II\x2a\0\x08\0\0\0".to_vec();
        bytes.extend((entries.len() as u16).to_le_bytes());
        for (tag, kind, count, value) in entries {
            bytes.extend(tag.to_le_bytes());
            bytes.extend(kind.to_le_bytes());
            bytes.extend(count.to_le_bytes());
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend([0; 4]);
        bytes.extend(tail);
        bytes
    }

    fn seeds() -> Vec<Vec<u8>> {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let features = [&7_u64.to_le_bytes()[..], &[1], &words(&[640, 480, 1]), &[0; 151]].concat();
        let pair = [&words(&[5, 1, 0, 1, 1, 1])[..], &[2, 1], &[0; 72], &words(&[3, 4]), &[1]].concat();
        let list = [&[1][..], &words(&[1, 2, 3, 4])].concat();
        let tags = [
            (271, 2, 4, 0x0061_6263),
            (33550, 12, 3, 70),
            (34735, 3, 4, 70),
            (37386, 5, 1, 70),
            (34665, 4, 1, 8),
        ];
        vec![
            features,
            pair,
            list,
            words(&[1, 2, 9]),
            tiff(&tags, &[1; 40]),
            b"\xff\xd8\xff\xe1\0\x10Exif\0\0".to_vec(),
            b"0.5\n0\n0\n-0.5\n300000.25\n5000000\n".to_vec(),
            b"1.5 2 3 4\n5 6 7 8e1\n".to_vec(),
            b"#CRS: EPSG:32632\nmapX,mapY,sourceX,sourceY,enable\n500010.5,4600000.25,7,-2.5,1\n".to_vec(),
            b"ax,ay,bx,by,distance,ratio,inlier,a,b\n1,2,3,4,0.5,NaN,1,7,8\n".to_vec(),
            b"<V><GCP Pixel=\"3.5\" Line=\"2.5\" X=\"500010.5\" Y=\"4600000.25\"/></V>".to_vec(),
            b"{\"images\":[\"a.tif\",\"b.tif\"],\"matches\":[]}".to_vec(),
        ]
    }

    /// A short run of the fuzz targets.
    #[test]
    fn mutated_files_of_every_reader_end_in_an_answer() {
        let (mut random, seeds) = (Random::new(26), seeds());
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
            for reader in [features, tile, pairs, camera_data, georeference, matches] {
                reader(&bytes);
            }
        }
    }
}
