//! Writes seeds for every target into `corpus/`: tiny files of each kind that the library writes, and its samples.

use std::{fs, path::Path};
use tiepoint::feature::{Descriptors, Features, Keypoint, files};
use tiepoint::geometry::calibration::RectifiedCalibration;
use tiepoint::image::{self, AnyImage, Image, Size};
use tiepoint::matching::Match;
use tiepoint::matching::files::{MatchFormat, MatchRow, write_matches};
use tiepoint::options::Named;
use tiepoint::stereo::cloud::{CloudOptions, PlyFormat, write_ply};

fn main() {
    let scratch = std::env::temp_dir().join(format!("tiepoint-seeds-{}", std::process::id()));
    fs::create_dir_all(&scratch).unwrap();
    images(&scratch);
    features(&scratch);
    samples();
    for (name, text) in [
        ("text", "1 0 2\n0 1 3e1\n-1e-5 0 1"),
        ("xml", "<opencv_storage><H><data>1 0 0 0 1 0 0 0 1</data></H></opencv_storage>"),
        ("yaml", "data: [ 1., 0., 0., 0., 1., 0., 0., 0., 1. ]"),
    ] {
        seed("homography", name, text.as_bytes(), 0);
    }
    matches(&scratch);
    fs::remove_dir_all(&scratch).unwrap();
    seed("georeference", "world", b"0.5\n0\n0\n-0.5\n300000.25\n5000000\n", 0);
    calibrations();
    for (i, (target, bytes)) in tiepoint::collection::fuzzing::seeds().iter().enumerate() {
        seed(target, &i.to_string(), bytes, 0);
    }
    cloud(&std::env::temp_dir().join(format!("tiepoint-seeds-{}.ply", std::process::id())));
}

fn calibrations() {
    let parts = [
        ("M1", 3, 3, "600 0 32 0 600 24 0 0 1"),
        ("D1", 1, 5, "-0.2 0.1 0.001 -0.001 0.05"),
        ("M2", 3, 3, "600 0 31 0 601 25 0 0 1"),
        ("D2", 4, 1, "-0.2 0.1 0 0"),
        ("R", 3, 3, "1 0 0 0 1 0 0 0 1"),
        ("T", 3, 1, "-1 0.1 0"),
        ("P1", 3, 4, "600 0 32 0 0 600 24 0 0 0 1 0"),
        ("P2", 3, 4, "600 0 33 -600 0 600 24 0 0 0 1 0"),
        ("Q", 4, 4, "1 0 0 -32 0 1 0 -24 0 0 0 600 0 0 1 0"),
    ];
    let (mut yaml, mut xml) =
        (String::from("image_width: 64\nimage_height: 48\n"), String::from("opencv_storage>"));
    for (name, rows, columns, data) in parts {
        let list = data.replace(' ', ", ");
        yaml += &format!(
            "{name}: !!opencv-matrix\n   rows: {rows}\n   cols: {columns}\n   dt: d\n   data: [ {list} ]\n"
        );
        xml += &format!(
            "<{name} type_id=\"opencv-matrix\"><rows>{rows}</rows><cols>{columns}</cols><dt>d</dt>\
             <data>{data}</data></{name}>\n"
        );
    }
    let matrix = |(name, rows, cols, data): &(&str, u8, u8, &str)| {
        let list = data.replace(' ', ", ");
        format!("\"{name}\": {{\"rows\": {rows}, \"cols\": {cols}, \"dt\": \"d\", \"data\": [{list}]}}")
    };
    let json = parts.iter().map(matrix).collect::<Vec<_>>().join(", ");
    seed(
        "calibration_json",
        "all",
        format!("\"image_width\": 64, \"image_height\": 48, {json}}}").as_bytes(),
        0,
    );
    xml += "<image_width>64</image_width><image_height>48</image_height></opencv_storage>";
    seed("calibration_yaml", "all", yaml.as_bytes(), 0);
    seed("calibration_xml", "all", xml.as_bytes(), 0);
    let txt = "600 0 32; 0 600 24; 0 0 1]\ncam1=[600 0 33; 0 600 24; 0 0 1]\ndoffs=1\nbaseline=2\nwidth=64\nheight=48\n\
               ndisp=9\nvmin=1\nvmax=7\n";
    seed("calibration_txt", "all", txt.as_bytes(), 0);
}

fn matches(scratch: &Path) {
    let pair = Match { a: 1, b: 2, distance: 0.25, ratio: 0.5 };
    let row = MatchRow { pair, a_xy: [1.5, 2.25], b_xy: [30.0, 4.0], scales: [1.6, 2.5], inlier: true };
    for format in MatchFormat::ALL.iter().map(|choice| choice.value) {
        let path = scratch.join(format.name());
        write_matches(&path, Some(format), ["a.tif", "b.tif"], &[row, MatchRow { b_xy: [3.0, 1e3], ..row }])
            .unwrap();
        let path = if path.is_dir() { path.join("Pastisa.tif/b.tif.txt") } else { path };
        seed("matches", format.name(), &fs::read(path).unwrap(), 0);
    }
    let head = "mapX,mapY,sourceX,sourceY,enable";
    seed("matches", "map", format!("#CRS: EPSG:32632\n{head}\n500010.5,4600000.25,7,-2.5,1\n").as_bytes(), 0);
    let point = "<GCP Id=\"1\" Pixel=\"3.5\" Line=\"2.5\" X=\"500010.5\" Y=\"4600000.25\"/>";
    seed("matches", "vrt", format!("<VRTDataset><GCPList>{point}</GCPList></VRTDataset>").as_bytes(), 0);
}

fn cloud(path: &Path) {
    let text = "%YAML:1.0\nQ: !!opencv-matrix\n   rows: 4\n   cols: 4\n   dt: d\n   \
                data: [ 1, 0, 0, -2, 0, 1, 0, -1, 0, 0, 0, 9, 0, 0, 1, 0 ]\n";
    let pair = RectifiedCalibration::parse(text, "seed").unwrap();
    let disparity = Image::from_fn(Size::new(4, 3), |x, y| (x + y) as f32);
    let colours = AnyImage::U8(Image::filled(Size::new(4, 3), 3, 77));
    for (name, format) in [("binary", PlyFormat::Binary), ("ascii", PlyFormat::Ascii)] {
        let options = CloudOptions::default().with_format(format);
        write_ply(path, disparity.view(), (&colours).into(), &pair, &options).unwrap();
        seed("ply", name, &fs::read(path).unwrap(), 0);
    }
    fs::remove_file(path).unwrap();
}

/// Writes `bytes` without the first `skip` into the corpus of `target`.
fn seed(target: &str, name: &str, bytes: &[u8], skip: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(name), &bytes[skip..]).unwrap();
}

fn images(scratch: &Path) {
    let size = Size::new(11, 7);
    for channels in [1, 2, 3, 4] {
        let n = size.area() * channels;
        let kinds: [AnyImage; 3] = [
            Image::from_vec((0..n).map(|i| (i * i) as u8).collect(), size, channels).unwrap().into(),
            Image::from_vec((0..n).map(|i| (i * i * i) as u16).collect(), size, channels).unwrap().into(),
            Image::from_vec((0..n).map(|i| i as f32 / n as f32).collect(), size, channels).unwrap().into(),
        ];
        for (kind, image) in kinds.iter().enumerate() {
            let magic = [
                ("png", "png", 8),
                ("tif", "tiff", 0),
                ("pam", "pnm", 1),
                ("pnm", "pnm", 1),
                ("pfm", "pfm", 1),
            ];
            for (extension, target, skip) in magic {
                let path = scratch.join(format!("{kind}-{channels}.{extension}"));
                if image::write(&path, image).is_ok() {
                    seed(target, &format!("{kind}-{channels}.{extension}"), &fs::read(&path).unwrap(), skip);
                }
            }
        }
    }
    for (name, text) in
        [("p1", "1\n# a\n3 2\n010 1 1 1"), ("p2", "2 2 2 99 1 2 3 4"), ("p3", "3 1 1 999 1 2 3")]
    {
        seed("pnm", name, text.as_bytes(), 0);
    }
    seed("pnm", "p4", b"4 9 2\n\x55\x80\xaa\x00", 0);
}

/// The library's own samples, of kinds that it does not write.
fn samples() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/tiepoint/tests/samples");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let bytes = fs::read(&path).unwrap();
        match path.extension().unwrap().to_str().unwrap() {
            "jpg" => seed("jpeg", name, &bytes, 3),
            "png" => seed("png", name, &bytes, 8),
            "webp" => seed("webp", name, &bytes, 12),
            "bmp" => seed("bmp", name, &bytes, 2),
            "gif" => seed("gif", name, &bytes, 4),
            "j2k" => seed("jpeg2000", name, &bytes, 4),
            "exr" => seed("exr", name, &bytes, 4),
            "jxl" => seed("jpegxl", name, &bytes, 2),
            "h5" => seed("hdf5", name, &bytes, 0),
            "npy" => seed("npy", name, &bytes, 8),
            _ => ["tiff", "georeference"].into_iter().for_each(|target| seed(target, name, &bytes, 0)),
        }
        seed("camera_data", name, &bytes, 0);
    }
}

fn features(scratch: &Path) {
    for dimension in [0, 2, 128] {
        let keypoints = (0..2).map(|i| {
            let v = i as f32 + 0.25;
            Keypoint { x: v, y: -v, scale: v, angle: v, response: v * 1e-9, sign: 1, octave: -1, layer: 2 }
        });
        let keypoints: Vec<_> = keypoints.collect();
        let n = keypoints.len() * dimension;
        let kinds = [
            Descriptors::U8((0..n).map(|i| (i * 37) as u8).collect()),
            Descriptors::F32((0..n).map(|i| i as f32 / 256.0).collect()),
        ];
        for (kind, descriptors) in kinds.into_iter().enumerate() {
            let features =
                Features { keypoints: keypoints.clone(), descriptors, dimension, image: Size::new(64, 48) };
            for (extension, target) in
                [("csv", "csv"), ("json", "json"), ("npz", "npz"), ("sift", "sift"), ("txt", "colmap")]
            {
                let path = scratch.join(format!("{dimension}-{kind}.{extension}"));
                if files::write(&path, &features).is_ok() {
                    let name = format!("{dimension}-{kind}.{extension}");
                    seed(target, &name, &fs::read(&path).unwrap(), 0);
                }
            }
        }
    }
}
