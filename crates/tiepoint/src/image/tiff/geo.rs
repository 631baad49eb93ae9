//! Where a picture lies on a map: the tags of GeoTIFF (OGC 19-008r4), copied from file to file unchanged.

use super::write::{Field, FieldType};
use crate::files::Fault;
use crate::image::rows::Source;
use ::tiff::decoder::Decoder;
use ::tiff::decoder::ifd::Value;
use ::tiff::tags::Tag;

/// Tags whose values are numbers: `ModelPixelScale`, `ModelTiepoint`, `ModelTransformation`, `GeoDoubleParams`.
const DOUBLES: [u16; 4] = [33550, 33922, 34264, 34736];
/// `GeoKeyDirectory`.
const KEYS: u16 = 34735;
/// `GeoAsciiParams`.
const TEXT: u16 = 34737;

/// Where the pixels of an image lie on a map, as a GeoTIFF says it. It holds for every image with the same pixel grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Georeference {
    /// By ascending tag.
    fields: Vec<Field>,
}

impl Georeference {
    /// The entries for the directory of a file.
    pub(super) fn fields(&self) -> &[Field] {
        &self.fields
    }
}

/// The georeference of the first image of a TIFF; `None` where it has none.
pub(in crate::image) fn read(source: impl Source) -> Result<Option<Georeference>, Fault> {
    let mut decoder = Decoder::new(source)?;
    let mut fields = Vec::new();
    let mut find = |tag: u16, kind: FieldType, values: fn(Value) -> ::tiff::TiffResult<Vec<u64>>| {
        if let Some(found) = decoder.find_tag(Tag::from_u16_exhaustive(tag))? {
            fields.push(Field { tag, kind, values: values(found)? });
        }
        Ok::<_, Fault>(())
    };
    for tag in DOUBLES {
        find(tag, FieldType::Double, |v| Ok(v.into_f64_vec()?.into_iter().map(f64::to_bits).collect()))?;
    }
    find(KEYS, FieldType::Short, |v| Ok(v.into_u16_vec()?.into_iter().map(u64::from).collect()))?;
    find(TEXT, FieldType::Ascii, |v| Ok(v.into_string()?.bytes().chain([0]).map(u64::from).collect()))?;
    fields.sort_by_key(|field| field.tag);
    Ok((!fields.is_empty()).then_some(Georeference { fields }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use crate::files::tests::Folder;
    use crate::image::{Image, Known, ReadOptions, Size, read, read_georeference, write, write_known};
    use ::tiff::encoder::{TiffEncoder, TiffKind, colortype::Gray8};
    use std::io::Cursor;

    /// A file with every tag, written by the `tiff` crate.
    fn made<K: TiffKind>(mut encoder: TiffEncoder<Cursor<&mut Vec<u8>>, K>) {
        let mut image = encoder.new_image::<Gray8>(4, 3).unwrap();
        let mut tag = |tag, values: &[f64]| {
            image.encoder().write_tag(Tag::from_u16_exhaustive(tag), values).unwrap();
        };
        tag(33550, &[0.5, 0.5, 0.0]);
        tag(33922, &[0.0, 0.0, 0.0, 300_000.0, 5_000_000.0, 0.0]);
        tag(34264, &[f64::MIN_POSITIVE; 16]);
        tag(34736, &[6_378_137.0]);
        image.encoder().write_tag(Tag::GeoKeyDirectoryTag, &[1_u16, 1, 0, 1, 1024, 0, 1, 1][..]).unwrap();
        image.encoder().write_tag(Tag::GeoAsciiParamsTag, "WGS 84 / UTM zone 33N|").unwrap();
        image.write_data(&[7; 12]).unwrap();
    }

    #[test]
    fn tags_go_from_file_to_file() {
        let folder = Folder::new("geo-tags");
        let [from, to] = ["from.tif", "to.tif"].map(|name| folder.join(name));
        let (mut plain, mut big) = (Vec::new(), Vec::new());
        made(TiffEncoder::new(Cursor::new(&mut plain)).unwrap());
        made(TiffEncoder::new_big(Cursor::new(&mut big)).unwrap());
        for file in [plain, big] {
            std::fs::write(&from, file).unwrap();
            let place = read_georeference(&from).unwrap().unwrap();
            let tags: Vec<u16> = place.fields().iter().map(|field| field.tag).collect();
            assert_eq!(tags, [33550, 33922, 34264, 34735, 34736, 34737]);
            let image = Image::from_fn(Size::new(5, 9), |x, y| (x * y) as f32 * 0.1);
            write_known(&to, &image, &Known { place: Some(&place), ..Known::default() }).unwrap();
            assert_eq!(read_georeference(&to).unwrap().unwrap(), place);
            assert_eq!(read(&to, &ReadOptions::default()).unwrap(), image.clone().into());
            let text: String = place.fields()[5].values.iter().map(|&v| char::from(v as u8)).collect();
            assert_eq!(text, "WGS 84 / UTM zone 33N|\0");
        }
    }

    #[test]
    fn files_without_georeference_and_formats_that_cannot_hold_one() {
        let folder = Folder::new("geo-none");
        let path = |name: &str| folder.join(name);
        let image = Image::<u8>::new(Size::new(4, 3));
        for name in ["without.tif", "without.png"] {
            write(path(name), &image).unwrap();
            assert_eq!(read_georeference(path(name)).unwrap(), None);
        }
        let mut file = Vec::new();
        made(TiffEncoder::new(Cursor::new(&mut file)).unwrap());
        std::fs::write(path("with.tif"), &file).unwrap();
        let place = read_georeference(path("with.tif")).unwrap().unwrap();
        let refused =
            write_known(path("with.png"), &image, &Known { place: Some(&place), ..Known::default() });
        assert!(matches!(refused, Err(Error::Format { .. })), "{refused:?}");
        assert!(!path("with.png").exists());
        assert!(matches!(read_georeference(path("missing.tif")), Err(Error::Io { .. })));
        for end in [4, 7, 20, file.len() - 9] {
            std::fs::write(path("cut.tif"), &file[..end]).unwrap();
            let cut = read_georeference(path("cut.tif"));
            assert!(matches!(cut, Err(Error::Format { .. })), "{end} of {} bytes: {cut:?}", file.len());
        }
    }
}
