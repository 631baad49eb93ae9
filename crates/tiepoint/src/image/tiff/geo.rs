//! Where a picture lies on a map: the tags of GeoTIFF (OGC 19-008r4), copied from file to file unchanged.

use super::directory::text;
use super::write::{Field, FieldType};
use crate::files::Fault;
use crate::image::rows::Source;
use crate::{Error, Result};
use ::tiff::decoder::Decoder;
use ::tiff::decoder::ifd::Value;
use ::tiff::tags::Tag;

/// Tags of doubles: `ModelPixelScale`, `ModelTiepoint`, `ModelTransformation`, `GeoDoubleParams`, `RPCCoefficient`.
const DOUBLES: [u16; 5] = [33550, 33922, 34264, 34736, 50844];
const SCALE: u16 = DOUBLES[0];
const TIE_POINTS: u16 = DOUBLES[1];
const TRANSFORMATION: u16 = DOUBLES[2];
/// A camera by rational polynomials; its third and fourth value are the line and the sample that it starts from.
const POLYNOMIALS: u16 = DOUBLES[4];
/// `GeoKeyDirectory`.
const KEYS: u16 = 34735;
/// `GeoAsciiParams`.
const TEXT: u16 = 34737;

/// The keys of the coordinate system, on a plane or on the globe.
const SYSTEMS: [u64; 2] = [3072, 2048];
/// The value of these keys, and of that of the unit, for what has no number in EPSG's list.
const USER_DEFINED: u64 = 32767;
/// The key that says which of the two counts: on a plane (1), or on the globe (2, 3).
const MODEL: u64 = 1024;
/// The key of the unit on a plane.
const UNIT: u64 = 3076;
const METRE: u64 = 9001;

/// The key that says whether places are those of a pixel's corner (1) or of its centre (2).
const RASTER_TYPE: u64 = 1025;
const CENTRE: u64 = 2;

/// A coordinate system, by its number in EPSG's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoordinateSystem {
    /// On a plane, such as 32633, UTM zone 33N; its x and y are in the system's own unit.
    Plane(u16),
    /// On the globe, such as 4326, WGS 84; x is the longitude and y the latitude, in degrees.
    Globe(u16),
}

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

    /// The place of a picture by its [transform](Self::transform), in a coordinate system if that is known.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for a transform that is not finite or cannot be inverted, and for a number outside of 1024 to
    /// 32766, the ones that a GeoTIFF can name.
    pub fn new(transform: [f64; 6], system: Option<CoordinateSystem>) -> Result<Self> {
        let mut place = Self::of_transform(transform);
        if place.transform().is_none() {
            return Err(Error::Mismatch(format!(
                "{transform:?} is no transform from pixels to a map: expected finite numbers that can be inverted"
            )));
        }
        let Some(system) = system else { return Ok(place) };
        let (model, key, number) = match system {
            CoordinateSystem::Plane(number) => (1, SYSTEMS[0], number.into()),
            CoordinateSystem::Globe(number) => (2, SYSTEMS[1], number.into()),
        };
        if !(1024..USER_DEFINED).contains(&number) {
            return Err(Error::Mismatch(format!(
                "{number} is no coordinate system of EPSG: expected 1024 to 32766"
            )));
        }
        let values = vec![1, 1, 0, 3, MODEL, 0, 1, model, RASTER_TYPE, 0, 1, 1, key, 0, 1, number];
        place.fields.push(Field { tag: KEYS, kind: FieldType::Short, values });
        Ok(place)
    }

    /// The place of a picture without a coordinate system, by [its transform](Self::transform).
    pub(crate) fn of_transform([a, b, c, d, e, f]: [f64; 6]) -> Self {
        let doubles = |tag, values: &[f64]| {
            let values = values.iter().map(|value| value.to_bits()).collect();
            Field { tag, kind: FieldType::Double, values }
        };
        // A scale, which more programs read than a matrix, cannot express rotation.
        let fields = if b == 0.0 && d == 0.0 && a > 0.0 && e < 0.0 {
            vec![doubles(SCALE, &[a, -e, 0.0]), doubles(TIE_POINTS, &[0.0, 0.0, 0.0, c, f, 0.0])]
        } else {
            let rows = [a, b, 0.0, c, d, e, 0.0, f, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0];
            vec![doubles(TRANSFORMATION, &rows)]
        };
        Self { fields }
    }

    /// The same coordinate system with the place of another; `None` where this one has a place itself.
    pub(in crate::image) fn placed_as(&self, other: &Self) -> Option<Self> {
        if self.fields.iter().any(|field| [SCALE, TIE_POINTS, TRANSFORMATION].contains(&field.tag)) {
            return None;
        }
        let [a, b, mut c, d, e, mut f] = other.transform()?;
        if self.key(RASTER_TYPE) == Some(CENTRE) {
            (c, f) = (c + (a + b) / 2.0, f + (d + e) / 2.0);
        }
        let mut fields = Self::of_transform([a, b, c, d, e, f]).fields;
        fields.extend(self.fields.iter().cloned());
        fields.sort_by_key(|field| field.tag);
        Some(Self { fields })
    }

    /// The place of an image in which this image's first pixel is pixel `at`.
    #[must_use]
    pub fn shifted(&self, at: [f64; 2]) -> Self {
        let mut fields = self.fields.clone();
        for field in &mut fields {
            let mut values: Vec<f64> = field.values.iter().map(|bits| f64::from_bits(*bits)).collect();
            match (field.tag, &mut values[..]) {
                (TIE_POINTS, values) => values.chunks_exact_mut(6).for_each(|point| {
                    (point[0], point[1]) = (point[0] + at[0], point[1] + at[1]);
                }),
                (TRANSFORMATION, [a, b, _, c, d, e, _, f, ..]) => {
                    (*c, *f) = (*c - *a * at[0] - *b * at[1], *f - *d * at[0] - *e * at[1]);
                }
                (POLYNOMIALS, [_, _, line, sample, ..]) => {
                    (*line, *sample) = (*line + at[1], *sample + at[0]);
                }
                _ => continue,
            }
            field.values = values.into_iter().map(f64::to_bits).collect();
        }
        Self { fields }
    }

    /// The value of a key that is a number.
    fn key(&self, key: u64) -> Option<u64> {
        let keys = self.fields.iter().find(|field| field.tag == KEYS)?;
        keys.values.chunks_exact(4).skip(1).find(|entry| entry[0] == key).map(|entry| entry[3])
    }

    /// The number of the coordinate system in EPSG's list, if the file gives one.
    pub fn epsg(&self) -> Option<u64> {
        let [plane, globe] = SYSTEMS.map(|system| self.key(system));
        let system = match self.key(MODEL) {
            Some(1) => plane,
            Some(2 | 3) => globe,
            Some(_) => None,
            None => plane.or(globe),
        };
        // Another unit makes another system; of UTM zones it is known that theirs is the metre.
        let is_changed = |number| match self.key(UNIT) {
            Some(USER_DEFINED) => true,
            Some(unit) if unit != METRE => matches!(number, 25828..=25838 | 26901..=26923 | 32601..=32760),
            _ => false,
        };
        system.filter(|&number| number > 0 && number < USER_DEFINED && !is_changed(number))
    }

    fn doubles(&self, tag: u16) -> Option<Vec<f64>> {
        let field = self.fields.iter().find(|field| field.tag == tag)?;
        Some(field.values.iter().map(|bits| f64::from_bits(*bits)).collect())
    }

    /// Whether the file names a coordinate system.
    pub fn has_system(&self) -> bool {
        SYSTEMS.iter().any(|&system| self.key(system).is_some())
    }

    /// From pixels to the map, as GDAL and `affine` have it: x = a · column + b · row + c, y = d · column + e · row + f,
    /// where (0, 0) is the outer corner of the first pixel. As in GDAL, a scale comes before a matrix, counts rows downwards, and
    /// holds for the first tie point. `None` where the file has tie points alone or none, or a transform that cannot be inverted.
    pub fn transform(&self) -> Option<[f64; 6]> {
        let found = [SCALE, TIE_POINTS, TRANSFORMATION].map(|tag| self.doubles(tag).unwrap_or_default());
        let transform = match found.each_ref().map(Vec::as_slice) {
            [[sx, sy, ..], [column, row, _, x, y, _, ..], _] if *sx != 0.0 && *sy != 0.0 => {
                [*sx, 0.0, x - column * sx, 0.0, -sy.abs(), y + row * sy.abs()]
            }
            [_, _, [a, b, _, c, d, e, _, f, ..]] => [*a, *b, *c, *d, *e, *f],
            _ => return None,
        };
        let [a, b, mut c, d, e, mut f] = transform;
        if self.key(RASTER_TYPE) == Some(CENTRE) {
            (c, f) = (c - (a + b) / 2.0, f - (d + e) / 2.0);
        }
        let area = a * e - b * d;
        ([a, b, c, d, e, f, area].iter().all(|v| v.is_finite()) && area != 0.0).then_some([a, b, c, d, e, f])
    }
}

/// The georeference of the first image of a TIFF; `None` where it has none.
pub(in crate::image) fn read(source: impl Source) -> std::result::Result<Option<Georeference>, Fault> {
    let mut decoder = Decoder::new(source)?;
    let mut fields = Vec::new();
    let mut find = |tag: u16, kind: FieldType, values: fn(Value) -> ::tiff::TiffResult<Vec<u64>>| {
        if let Some(found) = decoder.find_tag(Tag::from_u16_exhaustive(tag))? {
            fields.push(Field { tag, kind, values: values(found)? });
        }
        Ok::<_, Fault>(())
    };
    for tag in DOUBLES {
        find(tag, FieldType::Double, |v| {
            // Some programs write floats.
            let floats = v.clone().into_f32_vec().map(|v| v.into_iter().map(f64::from).collect());
            Ok(floats.or_else(|_| v.into_f64_vec())?.into_iter().map(f64::to_bits).collect())
        })?;
    }
    find(KEYS, FieldType::Short, |v| Ok(v.into_u16_vec()?.into_iter().map(u64::from).collect()))?;
    if let Some(bytes) = text(&mut decoder, TEXT)? {
        let values = bytes.into_iter().chain([0]).map(u64::from).collect();
        fields.push(Field { tag: TEXT, kind: FieldType::Ascii, values });
    }
    fields.sort_by_key(|field| field.tag);
    Ok((!fields.is_empty()).then_some(Georeference { fields }))
}

#[cfg(test)]
mod tests {
    use super::*;
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
        tag(33922, &[0.0, 0.0, 0.0, 300_000.0, 5_000_000.0, 0.0]);
        tag(34264, &[f64::MIN_POSITIVE; 16]);
        tag(34736, &[6_378_137.0]);
        tag(50844, &std::array::from_fn::<f64, 92, _>(|i| i as f64));
        image.encoder().write_tag(Tag::ModelPixelScaleTag, &[0.5_f32, 0.5, 0.0][..]).unwrap();
        image
            .encoder()
            .write_tag(Tag::GeoKeyDirectoryTag, &[1_u16, 1, 0, 2, 1024, 0, 1, 1, 3072, 0, 1, 32633][..])
            .unwrap();
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
            assert_eq!(tags, [33550, 33922, 34264, 34735, 34736, 34737, 50844]);
            let image = Image::from_fn(Size::new(5, 9), |x, y| (x * y) as f32 * 0.1);
            write_known(&to, &image, &Known { place: Some(&place), ..Known::default() }).unwrap();
            assert_eq!(read_georeference(&to).unwrap().unwrap(), place);
            assert_eq!(read(&to, &ReadOptions::default()).unwrap(), image.clone().into());
            let text: String = place.fields()[5].values.iter().map(|&v| char::from(v as u8)).collect();
            assert_eq!((text.as_str(), place.epsg()), ("WGS 84 / UTM zone 33N|\0", Some(32633)));
            let camera = place.shifted([3.0, 20.0]).doubles(POLYNOMIALS).unwrap();
            assert_eq!(
                (camera.len(), &camera[..5]),
                (92, &[0.0, 1.0, 22.0, 6.0, 4.0][..]),
                "of the moved pixels"
            );
        }
    }

    fn keys(raster_type: u64) -> Field {
        Field { tag: KEYS, kind: FieldType::Short, values: vec![1, 1, 0, 1, RASTER_TYPE, 0, 1, raster_type] }
    }

    #[test]
    fn a_number_is_that_of_the_kind_and_the_unit_of_the_system() {
        for (keys, number) in [
            (vec![(SYSTEMS[0], 32632)], Some(32632)),
            (vec![(MODEL, 1), (SYSTEMS[1], 4326), (SYSTEMS[0], 32632), (UNIT, METRE)], Some(32632)),
            (vec![(MODEL, 1), (SYSTEMS[0], 2263), (UNIT, 9003)], Some(2263)),
            (vec![(MODEL, 1), (SYSTEMS[0], 32632), (UNIT, 9003)], None),
            (vec![(MODEL, 1), (SYSTEMS[0], 2263), (UNIT, USER_DEFINED)], None),
            (vec![(MODEL, 1), (SYSTEMS[1], 4326)], None),
            (vec![(MODEL, 2), (SYSTEMS[1], 4326)], Some(4326)),
            (vec![(MODEL, USER_DEFINED), (SYSTEMS[1], 4326)], None),
        ] {
            let entries = keys.iter().flat_map(|(key, value)| [*key, 0, 1, *value]);
            let values = [1, 1, 0, keys.len() as u64].into_iter().chain(entries).collect();
            let place = Georeference { fields: vec![Field { tag: KEYS, kind: FieldType::Short, values }] };
            assert_eq!(place.epsg(), number, "{keys:?}");
        }
    }

    #[test]
    fn a_place_may_be_made_of_a_transform_and_a_number() {
        use CoordinateSystem::{Globe, Plane};
        let folder = Folder::new("geo-made");
        let (file, image) = (folder.join("a.tif"), Image::<u8>::new(Size::new(4, 3)));
        let transform = [0.5, 0.1, 100.0, 0.1, -0.5, 200.0];
        for (system, number) in
            [(None, None), (Some(Plane(32633)), Some(32633)), (Some(Globe(4326)), Some(4326))]
        {
            let place = Georeference::new(transform, system).unwrap();
            write_known(&file, &image, &Known { place: Some(&place), ..Known::default() }).unwrap();
            let found = read_georeference(&file).unwrap().unwrap();
            assert_eq!((found.transform(), found.epsg()), (Some(transform), number));
        }
        let flat = [1.0, 2.0, 0.0, 2.0, 4.0, 0.0];
        let endless = [1.0, 0.0, f64::NAN, 0.0, -1.0, 0.0];
        for (transform, system) in
            [(flat, None), (endless, None), (transform, Some(Plane(3))), (transform, Some(Globe(32767)))]
        {
            let refused = Georeference::new(transform, system);
            assert!(matches!(refused, Err(Error::Mismatch(_))), "{transform:?}, {system:?}: {refused:?}");
        }
    }

    #[test]
    fn a_transform_is_that_of_the_tags() {
        for transform in [[0.5, 0.0, 3e5, 0.0, -0.25, 5e6], [1.0, 0.5, -7.0, 0.25, -2.0, 9.0]] {
            let mut place = Georeference::of_transform(transform);
            assert_eq!((place.transform(), place.epsg()), (Some(transform), None));
            place.fields.push(keys(CENTRE));
            let [a, b, c, d, e, f] = transform;
            let centred = [a, b, c - (a + b) / 2.0, d, e, f - (d + e) / 2.0];
            assert_eq!(place.transform(), Some(centred), "of the pixels' centres");
            place.fields[0].values[0] = f64::NAN.to_bits();
            assert_eq!(place.transform(), None);
            assert_eq!(Georeference { fields: place.fields[1..].to_vec() }.transform(), None);
        }
        assert_eq!(Georeference::of_transform([1.0, 2.0, 0.0, 2.0, 4.0, 0.0]).transform(), None, "no area");
        // The sign of a scale, further tie points and a matrix beside it change nothing.
        let scaled = Georeference::of_transform([2.0, 0.0, 100.0, 0.0, -3.0, 500.0]);
        let mut odd = scaled.clone();
        odd.fields[0].values[1] = (-3.0_f64).to_bits();
        odd.fields[1].values.extend([4.0, 0.0, 0.0, 7.0, 8.0, 0.0].map(f64::to_bits));
        odd.fields.extend(Georeference::of_transform([1.0, 0.5, -7.0, 0.25, -2.0, 9.0]).fields);
        assert_eq!(odd.transform(), scaled.transform());
    }

    #[test]
    fn a_place_is_moved_with_the_pixels_and_may_be_beside_the_system() {
        let system = |raster_type: u64| Georeference { fields: vec![keys(raster_type)] };
        for of in [[0.5, 0.0, 100.0, 0.0, -0.5, 200.0], [0.5, 0.1, 100.0, 0.1, -0.5, 200.0]] {
            let place = Georeference::of_transform(of);
            let [a, b, c, d, e, f] = of;
            let moved = [a, b, c - 3.0 * a - 2.0 * b, d, e, f - 3.0 * d - 2.0 * e];
            let found = place.shifted([3.0, 2.0]).transform().unwrap();
            assert!(found.iter().zip(moved).all(|(found, moved)| (found - moved).abs() < 1e-9), "{found:?}");
            for raster_type in [1, CENTRE] {
                let system = system(raster_type);
                let placed = system.placed_as(&place).unwrap();
                assert_eq!(placed.transform(), Some(of), "{raster_type}");
                assert_eq!(placed.key(RASTER_TYPE), Some(raster_type));
                assert_eq!(placed.placed_as(&place), None, "it has a place");
            }
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
        let mut place = read_georeference(path("with.tif")).unwrap().unwrap();
        place.fields.retain(|field| field.tag != SCALE);
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
