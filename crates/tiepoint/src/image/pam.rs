//! GDAL's metadata of a picture in `FILE.aux.xml` beside it, which GDAL prefers to those in the picture itself.

use super::tiff::bands::of_elements;
use roxmltree::{Document, Node};
use std::{fs::File, io::Read, path::Path};

/// The extension, after that of a picture.
pub(super) const EXTENSION: &str = "aux.xml";

/// Bytes of a file that are read, with room for long tables of statistics.
const MOST: u64 = 1 << 24;

/// What `find` finds in the file beside the picture at `path`. As in GDAL, a file that cannot be read counts as absent.
fn found<T>(path: &Path, find: impl FnOnce(Node<'_, '_>) -> Option<T>) -> Option<T> {
    let mut text = String::new();
    File::open(path.with_added_extension(EXTENSION)).ok()?.take(MOST).read_to_string(&mut text).ok()?;
    find(Document::parse(&text).ok()?.root_element())
}

fn text<'t>(of: Node<'t, '_>, name: &str) -> Option<&'t str> {
    of.children().find(|child| child.has_tag_name(name))?.text().map(str::trim)
}

/// The no-data value of a band, counted from 1, of the picture at `path`.
pub(super) fn no_data(path: &Path, band: usize) -> Option<f64> {
    let number = band.to_string();
    found(path, |root| {
        let mut bands = root.children().filter(|child| child.has_tag_name("PAMRasterBand"));
        text(bands.find(|band| band.attribute("band") == Some(&number))?, "NoDataValue")?.parse().ok()
    })
}

/// What it says of the bands of the picture at `path`, as [`FileImage::bands`](super::FileImage::bands) holds it.
pub(super) fn bands(path: &Path) -> Option<String> {
    found(path, of_elements)
}

/// The place of the picture at `path`, as [`Georeference::transform`](super::Georeference::transform) gives it.
pub(super) fn transform(path: &Path) -> Option<[f64; 6]> {
    found(path, |root| {
        let numbers = text(root, "GeoTransform")?.split(',').map(|number| number.trim().parse().ok());
        let [c, a, b, f, d, e] = <[f64; 6]>::try_from(numbers.collect::<Option<Vec<_>>>()?).ok()?;
        Some([a, b, c, d, e, f])
    })
}

/// Whether the file beside the picture at `path` gives the picture a place on a map.
pub(super) fn has_place(path: &Path) -> bool {
    let is_place =
        |child: Node<'_, '_>| ["SRS", "GeoTransform", "GCPList"].iter().any(|name| child.has_tag_name(*name));
    found(path, |root| root.children().find(|child| is_place(*child)).map(|_| ())).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Cpu;
    use crate::files::tests::Folder;
    use crate::image::{AnyImage, Georeference, Image, ReadOptions, Size};
    use crate::image::{other_place, read_file, read_grey_alpha, write, write_known};

    #[test]
    fn the_no_data_value_beside_a_picture_of_any_format_counts() {
        let (folder, size) = (Folder::new("pam-no-data"), Size::new(4, 1));
        let grey = Image::from_vec(vec![0_u8, 7, 9, 7], size, 1).unwrap();
        let colour: Vec<u8> = [[7, 7, 7], [7, 7, 9], [1, 2, 3], [7, 7, 7]].concat();
        let colour = Image::from_vec(colour, size, 3).unwrap();
        let beside = |path: &Path, value: &str| {
            let text = format!(
                "<PAMDataset><PAMRasterBand band=\"1\"><NoDataValue>{value}</NoDataValue></PAMRasterBand></PAMDataset>"
            );
            std::fs::write(path.with_added_extension(EXTENSION), text).unwrap();
        };
        let (options, cpu) = (ReadOptions::default(), Cpu::sequential());
        for name in ["a.png", "a.tif", "a.pgm", "a.npy", "a.exr", "a.pfm"] {
            let path = folder.join(name);
            write(&path, &grey).unwrap();
            assert!(read_file(&path, &options).unwrap().shown.is_none(), "{name}");
            beside(&path, "7.00000000000000E+00");
            let found = read_file(&path, &options).unwrap();
            assert_eq!(found.no_data, Some(7.0), "{name}");
            assert_eq!(found.shown.unwrap().data(), [255, 0, 255, 0], "{name}");
            for damaged in ["", "x", "7<"] {
                beside(&path, damaged);
                assert!(read_file(&path, &options).unwrap().shown.is_none(), "{name}: {damaged:?}");
            }
        }
        for name in ["c.png", "c.tif", "c.ppm"] {
            let path = folder.join(name);
            write(&path, &colour).unwrap();
            beside(&path, "7");
            for found in [read_file(&path, &options), read_grey_alpha(&path, &options, &cpu)] {
                assert_eq!(found.unwrap().shown.unwrap().data(), [0, 255, 255, 0], "{name}");
            }
        }
        // Few bits are stretched, and so is the value that marks no data.
        let path = folder.join("few.pgm");
        std::fs::write(&path, "P2 3 1 4 0 1 4").unwrap();
        beside(&path, "1");
        let found = read_file(&path, &options).unwrap();
        assert_eq!(
            found.image,
            AnyImage::from(Image::from_vec(vec![0_u8, 64, 255], Size::new(3, 1), 1).unwrap())
        );
        assert_eq!(found.shown.unwrap().data(), [255, 0, 255]);
    }

    #[test]
    fn scale_and_offset_beside_a_picture_hold_for_what_is_made_of_it() {
        let folder = Folder::new("pam-bands");
        let path = folder.join("a.png");
        write(&path, &Image::<u16>::new(Size::new(4, 3))).unwrap();
        let text = "<PAMDataset><PAMRasterBand band=\"1\"><Offset>-0.1</Offset><Scale>1E-4</Scale><UnitType>&lt;m</UnitType>\
                    <Histograms/></PAMRasterBand></PAMDataset>";
        std::fs::write(path.with_added_extension(EXTENSION), text).unwrap();
        let found = read_file(&path, &ReadOptions::default()).unwrap();
        let to = folder.join("b.tif");
        write_known(&to, &found.image, &found.known()).unwrap();
        let bands = read_file(&to, &ReadOptions::default()).unwrap().bands.unwrap();
        let expected = "<Scale>1E-4</Scale><Offset>-0.1</Offset><UnitType>&lt;m</UnitType>";
        assert_eq!(crate::image::tiff::bands::elements(&bands, 0), expected);
    }

    #[test]
    fn another_place_beside_a_picture_is_told() {
        let folder = Folder::new("pam-place");
        let path = folder.join("a.tif");
        let place = Georeference::of_transform([0.5, 0.0, 3e5, 0.0, -0.5, 5e6]);
        assert!(!other_place(&path, &place), "nothing is there");
        for (text, other) in [
            ("3e5, 0.5, 0, 5000000.0000000001, 0, -0.5", false),
            ("400000, 0.5, 0, 5e6, 0, -0.5", true),
            ("3e5, 0.5, 0, 5e6, 0", false),
        ] {
            let text = format!("<PAMDataset><GeoTransform>{text}</GeoTransform></PAMDataset>");
            std::fs::write(path.with_added_extension(EXTENSION), &text).unwrap();
            assert_eq!(other_place(&path, &place), other, "{text}");
        }
    }
}
