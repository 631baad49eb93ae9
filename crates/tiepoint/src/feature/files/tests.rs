//! Feature files: round trips and damage.

use super::*;
use crate::{feature::Keypoint, files::tests::Folder, image::Size};
use proptest::prelude::*;
use std::f32::consts::TAU;

fn finite() -> impl Strategy<Value = f32> {
    prop_oneof![-1e4_f32..1e4, any::<f32>().prop_filter("finite", |v| v.is_finite())]
}

fn keypoint() -> impl Strategy<Value = Keypoint> {
    let floats = [finite().boxed(), finite().boxed(), finite().boxed(), (0.0..TAU).boxed(), finite().boxed()];
    (floats, any::<i8>(), any::<i8>(), any::<u8>()).prop_map(
        |([x, y, scale, angle, response], sign, octave, layer)| Keypoint {
            x,
            y,
            scale,
            angle,
            response,
            sign,
            octave,
            layer,
        },
    )
}

fn features() -> impl Strategy<Value = Features> {
    let dimension = prop_oneof![Just(128_usize), 0_usize..5];
    let keypoints = prop::collection::vec(keypoint(), 1..5);
    (keypoints, dimension, any::<bool>(), any::<u64>()).prop_map(|(keypoints, dimension, bytes, seed)| {
        let n = keypoints.len() * dimension;
        let noise = (0..n as u64).map(|i| (seed ^ i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40);
        let descriptors = match bytes || n == 0 {
            true => Descriptors::U8(noise.map(|v| v as u8).collect()),
            false => Descriptors::F32(
                noise.map(|v| v as f32 / (1 << 24) as f32 - (seed % 2) as f32 / 2.0).collect(),
            ),
        };
        Features { keypoints, descriptors, dimension, image: Size::new(640, 480) }
    })
}

fn encoded(format: FeatureFormat, features: &Features) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out, format, features, &quantised(features).unwrap_or_default()).unwrap();
    out
}

fn decoded(format: FeatureFormat, bytes: &[u8]) -> Result<Features> {
    parse(bytes, format, "test")
}

/// Place, scale and angle of each keypoint, which are all that foreign formats keep.
fn placed(features: &Features) -> Vec<[f32; 4]> {
    features.keypoints.iter().map(|k| [k.x, k.y, k.scale, k.angle]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn own_formats_keep_everything(features in features()) {
        for format in [FeatureFormat::Json, FeatureFormat::Npz] {
            prop_assert_eq!(&decoded(format, &encoded(format, &features)).unwrap(), &features, "{:?}", format);
        }
        let unsized_features = Features { image: Size::default(), ..features };
        let csv = encoded(FeatureFormat::Csv, &unsized_features);
        prop_assert_eq!(decoded(FeatureFormat::Csv, &csv).unwrap(), unsized_features, "csv");
    }

    #[test]
    fn foreign_formats_keep_places_and_bytes(features in features()) {
        let Ok(bytes) = quantised(&features) else { return Ok(()) };
        let back = decoded(FeatureFormat::Sift, &encoded(FeatureFormat::Sift, &features)).unwrap();
        prop_assert_eq!(placed(&back), placed(&features), "VLFeat");
        prop_assert_eq!(back.descriptors, Descriptors::U8(bytes.clone()), "VLFeat");
        let back = decoded(FeatureFormat::Colmap, &encoded(FeatureFormat::Colmap, &features));
        let Ok(back) = back else { return Ok(()) };
        prop_assert_eq!(back.descriptors, Descriptors::U8(bytes), "COLMAP");
        for (a, b) in back.keypoints.iter().zip(&features.keypoints) {
            prop_assert!((a.x - b.x).abs() <= b.x.abs() * 1e-6 + 1e-6, "x {} {}", a.x, b.x);
        }
    }

    #[test]
    fn damage_is_an_error_or_features_in_order(
        features in features(),
        format in 0_usize..5,
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        end in any::<prop::sample::Index>(),
    ) {
        use FeatureFormat::{Colmap, Csv, Json, Npz, Sift};
        let format = [Csv, Json, Npz, Sift, Colmap][format];
        let mut bytes = encoded(format, &features);
        prop_assume!(!bytes.is_empty());
        for (place, value) in hits {
            let i = place.index(bytes.len());
            bytes[i] = value;
        }
        bytes.truncate(end.index(2 * bytes.len()));
        if let Ok(features) = decoded(format, &bytes) {
            prop_assert!(check(&features).is_ok(), "what is read is in order");
        }
    }
}

fn one(descriptors: Descriptors, dimension: usize) -> Features {
    let keypoint =
        Keypoint { x: 1.0, y: 2.5, scale: 1.6, angle: 0.5, response: 1e-6, sign: -1, octave: -1, layer: 3 };
    Features { keypoints: vec![keypoint], descriptors, dimension, image: Size::new(4, 3) }
}

#[test]
fn foreign_texts_may_have_decimals_and_a_byte_order_mark() {
    let line = |value: &str| format!("\u{feff}1 128\n1.5 3 1.6 0.5{}\n", format!(" {value}").repeat(128));
    let read = |text: &str| decoded(FeatureFormat::Colmap, text.as_bytes());
    for (value, byte) in [("44.000000", 44), ("44.9", 44), ("255", 255), ("0.0", 0), ("1e2", 100)] {
        let found = read(&line(value)).unwrap();
        assert_eq!(found.descriptors, Descriptors::U8(vec![byte; 128]), "{value}");
        assert_eq!([found.keypoints[0].x, found.keypoints[0].y], [1.0, 2.5]);
    }
    for (value, why) in [
        ("256", "256, expected 0 to 255"),
        ("-1", "-1, expected 0 to 255"),
        ("0.088", "below 1"),
        ("nan", "line 2: a descriptor value is \"nan\""),
    ] {
        let refused = read(&line(value)).unwrap_err().to_string();
        assert!(refused.contains(why), "{value}: {refused}");
    }
    for (format, bytes, why) in [
        (FeatureFormat::Sift, b"SIFTV4.0\x01\0\0\0\xff".as_slice(), "binary file of VisualSFM"),
        (FeatureFormat::Sift, b"\xff\0", "expected VLFeat's text"),
        (FeatureFormat::Colmap, b"\xff\xfe1\0", "not in UTF-16"),
    ] {
        let refused = decoded(format, bytes).unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn formats_look_as_documented() {
    let text = |format, f: &Features| String::from_utf8(encoded(format, f)).unwrap();
    let two = one(Descriptors::U8(vec![7, 255]), 2);
    let csv = "x,y,scale,angle,response,sign,octave,layer,d0,d1\n1.0,2.5,1.6,0.5,1e-6,-1,-1,3,7,255\n";
    assert_eq!(text(FeatureFormat::Csv, &two), csv, "csv");
    let json = "{\"image\":{\"width\":4,\"height\":3},\"dimension\":2,\"descriptors\":\"u8\",\"features\":[\n\
                {\"x\":1.0,\"y\":2.5,\"scale\":1.6,\"angle\":0.5,\"response\":1e-6,\"sign\":-1,\"octave\":-1,\
                \"layer\":3,\"descriptor\":[7,255]}\n]}\n";
    assert_eq!(text(FeatureFormat::Json, &two), json, "json");
    let sift = one(Descriptors::F32([0.0; 126].into_iter().chain([0.25, 0.6]).collect()), 128);
    let values = format!("{}128 255\n", "0 ".repeat(126));
    let turned = format!("{}255 128 0 0 0 0 0\n", "0 ".repeat(121));
    assert_eq!(text(FeatureFormat::Sift, &sift), format!("1.0 2.5 1.6 0.5 {turned}"), "VLFeat");
    assert_eq!(text(FeatureFormat::Colmap, &sift), format!("1 128\n1.5 3.0 1.6 0.5 {values}"), "COLMAP");
}

#[test]
fn what_a_format_cannot_hold_is_refused() {
    let folder = Folder::new("features-refused");
    let refused = |extension: &str, features: &Features| {
        let path = folder.join(format!("a.{extension}"));
        let error = write(&path, features).unwrap_err().to_string();
        assert!(!path.exists(), "{extension}: nothing is written");
        error
    };
    let surf = one(Descriptors::F32(vec![-0.1; 64]), 64);
    assert!(refused("sift", &surf).contains("128 values, not 64"), "dimension");
    let negative = one(Descriptors::F32(vec![-0.1; 128]), 128);
    assert!(refused("txt", &negative).contains("negative"), "sign");
    assert!(refused("xyz", &surf).contains(".npz"), "the known extensions are listed");
    let torn = one(Descriptors::U8(vec![1]), 2);
    assert!(refused("csv", &torn).contains("for each"), "lengths");
    let nan = one(Descriptors::F32(vec![f32::NAN]), 1);
    assert!(refused("csv", &nan).contains("not a number"), "NaN");
}

#[test]
fn errors_name_the_line_and_the_field() {
    use FeatureFormat::{Colmap, Csv, Json, Npz, Sift};
    let refused = |format, text: &str, why: &str| {
        let error = decoded(format, text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(why), "{format:?}: {error}");
    };
    let csv = "x,y,scale,angle,response,sign,octave,layer,d0\n";
    refused(Csv, &format!("{csv}1,2,3,4,5,1,0,0,9\n1,2,x,4,5,1,0,0,9\n"), "line 3: scale");
    refused(Csv, &format!("{csv}1,2,3,4,5,1,0,0\n"), "line 2: 0 descriptor values");
    refused(Csv, "a,b\n", "header");
    refused(Csv, "", "empty");
    refused(Csv, &format!("{csv}1,2,NaN,4,5,1,0,0,9\n"), "finite");
    refused(Sift, "1 2 3 4 5 6", "2 descriptor values, expected 128");
    refused(Colmap, "2 128\n", "promises 2");
    refused(Colmap, "2 64\n", "N 128");
    refused(Json, "{\"features\":[]}", "dimension");
    refused(Json, &"[".repeat(100), "expected");
    refused(Json, "{\"dimension\":1,\n\"descriptors\":\"u9\"}", "line 2");
    // Nested without end.
    refused(Json, &format!("{{\"a\":{}", "[".repeat(100_000)), "EOF");
    let feature = "{\"x\":1,\"y\":2,\"scale\":3,\"angle\":4,\"response\":5,\"sign\":1,\"octave\":0,\"layer\":0,\"descriptor\":[7]}";
    let file = |features: &str, kind: &str| {
        format!(
            "{{\"dimension\":1,\"unknown\":{{\"a\":[null]}},\"features\":[{features}],\"descriptors\":\"{kind}\"}}"
        )
    };
    let read = |text: &str| decoded(Json, text.as_bytes()).unwrap().descriptors;
    assert_eq!(read(&file(feature, "u8")), Descriptors::U8(vec![7]), "the kind may follow");
    assert_eq!(read(&file(feature, "f32")), Descriptors::F32(vec![7.0]), "whole floats");
    for (part, wrong, why) in [
        ("[7]", "[7,8]", "feature 0 has 2"),
        ("[7]", "[7.5]", "whole number"),
        ("\"x\":1", "\"x\":1,\"x\":1", "duplicate"),
        ("\"x\":1", "\"x\":1e99", "out of range"),
    ] {
        refused(Json, &file(&feature.replace(part, wrong), "u8"), why);
    }
    refused(Npz, "PK", "not an .npz file");
}

#[test]
fn foreign_angles_are_brought_into_one_turn() {
    let line = |angle: f32| format!("1 2 3 {angle:?}{}", " 0".repeat(128));
    for (angle, expected) in [(-1.0, TAU - 1.0), (7.0, 7.0 - TAU), (-1e-12, 0.0), (TAU, 0.0)] {
        let read = decoded(FeatureFormat::Sift, line(angle).as_bytes()).unwrap();
        assert_eq!(read.keypoints[0].angle, expected, "{angle}");
    }
}

/// An archive with all arrays of `features` deflated, as `numpy.savez_compressed` writes it.
fn compressed(features: &Features, swap: Option<(&str, &[u8])>) -> Vec<u8> {
    let plain = encoded(FeatureFormat::Npz, features);
    let plain = rawzip::ZipArchive::from_slice(&plain).unwrap();
    let mut out = Vec::new();
    let mut zip = rawzip::ZipArchiveWriter::new(&mut out);
    let mut records = plain.entries();
    while let Some(record) = records.next_entry().unwrap() {
        let name = String::from_utf8(record.file_path().as_ref().to_vec()).unwrap();
        let data = plain.get_entry(record.wayfinder()).unwrap().data();
        let data = swap.filter(|(n, _)| *n == name).map_or(data, |(_, other)| other);
        let file = zip.new_file(&name).compression_method(rawzip::CompressionMethod::DEFLATE);
        let (mut entry, config) = file.start().unwrap();
        let encoder = flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::default());
        let mut writer = config.wrap(encoder);
        writer.write_all(data).unwrap();
        let (encoder, sizes) = writer.finish().unwrap();
        encoder.finish().unwrap();
        entry.finish(sizes).unwrap();
    }
    zip.finish().unwrap();
    out
}

#[test]
fn compressed_arrays_are_read_within_bounds() {
    let features = one(Descriptors::U8((0..64).collect()), 64);
    let file = compressed(&features, None);
    assert_eq!(decoded(FeatureFormat::Npz, &file).unwrap(), features, "as numpy.savez_compressed writes it");
    let bomb = compressed(&features, Some(("xy.npy", &vec![0; 1 << 24])));
    assert!(bomb.len() < 1 << 16, "{} bytes", bomb.len());
    let refused = decoded(FeatureFormat::Npz, &bomb).unwrap_err().to_string();
    assert!(refused.contains("xy would grow"), "{refused}");
}
