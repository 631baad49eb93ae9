//! What a photograph's file says about its camera, in EXIF.

use super::Size;
use crate::{Error, Result};
use exif::{Exif, In, Tag, Value};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

/// The camera data of a photograph; entries that a file lacks, or whose values are absurd, are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// The maker of the camera.
    pub make: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// The focal length.
    pub focal: Option<Focal>,
    /// The width and height of the picture as the camera took it, in pixels.
    pub taken: Option<[f64; 2]>,
    /// Where the camera was; `None` also for latitude and longitude 0, which cameras without a fix write.
    pub position: Option<Position>,
    /// The direction of gravity in the camera's frame, x right and y down in the stored pixels, from the orientation;
    /// `None` if that is missing or mirrored.
    pub gravity: Option<[f64; 3]>,
}

/// A focal length, in millimetres.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Focal {
    /// The one that gives the same view on film of 24 × 36 mm.
    Film35(f64),
    /// The lens's, with the width of the sensor.
    Lens {
        /// The focal length.
        focal: f64,
        /// The width of the sensor.
        sensor_width: f64,
    },
    /// The lens's alone. It cannot be converted to pixels, but tells one camera from another.
    LensOnly(f64),
}

/// A position from a satellite system, in WGS 84.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Position {
    /// Degrees, north positive.
    pub latitude: f64,
    /// Degrees, east positive.
    pub longitude: f64,
    /// Metres; `None` if the photograph does not record it.
    pub altitude: Option<f64>,
}

/// An image whose aspect ratio is off by more than this share from the picture taken is cropped: rounding changes less.
const CROPPED: f64 = 0.02;

/// The diagonal of film of 24 × 36 mm.
const FILM_DIAGONAL: f64 = 43.266_615_305_567_87;

impl Metadata {
    /// The focal length in pixels of an image of this size; `None` where it is unknown or absurd: below a tenth of the
    /// longer side or above a hundred times. It is also unknown if the aspect ratio is not that of the picture taken:
    /// the image was cropped, and its field of view is not the camera's.
    pub fn focal_px(&self, size: Size) -> Option<f64> {
        let (width, height) = (size.width as f64, size.height as f64);
        if self.is_cropped(size) {
            return None;
        }
        let px = match self.focal? {
            Focal::Film35(focal) => focal / FILM_DIAGONAL * (width * width + height * height).sqrt(),
            // The sensor's width belongs to the longer side, even when the camera was held upright.
            Focal::Lens { focal, sensor_width } => focal / sensor_width * width.max(height),
            Focal::LensOnly(_) => return None,
        };
        let side = width.max(height);
        Some(px).filter(|px| (0.1 * side..=100.0 * side).contains(px))
    }

    /// Whether an image of this size has another aspect ratio than the picture taken.
    pub(crate) fn is_cropped(&self, size: Size) -> bool {
        let shape = |[a, b]: [f64; 2]| a.max(b) / a.min(b);
        let now = shape([size.width as f64, size.height as f64]);
        self.taken.is_some_and(|taken| (shape(taken) / now - 1.0).abs() > CROPPED)
    }

    /// The camera data in the file at `path`. Empty where there are none, and where the file does not exist or access
    /// is denied: the stage that reads its image reports that.
    ///
    /// # Errors
    /// [`Error::Io`] for any other failure of the system, which may not happen again on the next attempt.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        read(path).map_err(|e| Error::io(path, e))
    }
}

/// The largest TIFF whose camera data are read: the reader loads the whole file.
const LARGEST_TIFF: u64 = 1 << 28;

fn read(path: &Path) -> io::Result<Metadata> {
    let tiff = path.extension().is_some_and(|e| e.to_string_lossy().to_lowercase().starts_with("tif"));
    let opened = std::fs::metadata(path).and_then(|found| match found.is_file() {
        // Opening a pipe could block for ever.
        true => File::open(path).map(|file| Some((file, found.len()))),
        false => Ok(None),
    });
    let file = match opened {
        Ok(Some((file, length))) if !tiff || length <= LARGEST_TIFF => file,
        Ok(_) => return Ok(Metadata::default()),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
            return Ok(Metadata::default());
        }
        Err(e) => return Err(e),
    };
    let read = exif::Reader::new().continue_on_error(true).read_from_container(&mut BufReader::new(file));
    match read.or_else(|e| e.distill_partial_result(|_| {})) {
        Ok(exif) => Ok(of_exif(&exif)),
        // An error of the operating system has a code; others are about the file's content.
        Err(exif::Error::Io(e)) if e.raw_os_error().is_some() => Err(e),
        Err(_) => Ok(Metadata::default()),
    }
}

pub(crate) fn of_exif(exif: &Exif) -> Metadata {
    Metadata {
        make: text(exif, Tag::Make),
        model: text(exif, Tag::Model),
        focal: focal(exif),
        taken: taken(exif),
        position: position(exif),
        gravity: gravity(exif),
    }
}

fn taken(exif: &Exif) -> Option<[f64; 2]> {
    let side = |tag| number(exif, tag).filter(|v| *v >= 1.0 && v.is_finite());
    Some([side(Tag::PixelXDimension)?, side(Tag::PixelYDimension)?])
}

fn focal(exif: &Exif) -> Option<Focal> {
    let positive = |v: &f64| *v > 0.0 && v.is_finite();
    if let Some(film) = number(exif, Tag::FocalLengthIn35mmFilm).filter(positive) {
        return Some(Focal::Film35(film));
    }
    let focal = number(exif, Tag::FocalLength).filter(positive)?;
    // The resolution is in pixels per this many millimetres; per inch if no unit is given.
    let unit = match number(exif, Tag::FocalPlaneResolutionUnit).unwrap_or(2.0) {
        2.0 => Some(25.4),
        3.0 => Some(10.0),
        4.0 => Some(1.0),
        5.0 => Some(0.001),
        _ => None,
    };
    let millimetres_of = |pixels, resolution: Option<f64>| {
        let pixels = number(exif, pixels).filter(positive)?;
        Some(pixels / resolution? * unit?).filter(positive)
    };
    let resolution = |tag| number(exif, tag).filter(positive);
    let [x, y] = [Tag::FocalPlaneXResolution, Tag::FocalPlaneYResolution].map(resolution);
    // Pixels are square where the resolution of one axis alone is given.
    let width = millimetres_of(Tag::PixelXDimension, x.or(y));
    let height = millimetres_of(Tag::PixelYDimension, y.or(x));
    let sensor_width = width.into_iter().chain(height).reduce(f64::max);
    Some(sensor_width.map_or(Focal::LensOnly(focal), |sensor_width| Focal::Lens { focal, sensor_width }))
}

fn position(exif: &Exif) -> Option<Position> {
    let angle = |tag, reference, negative: &str| {
        let parts = rationals(exif, tag)?;
        let [degrees, minutes, seconds] = [0, 1, 2].map(|i| parts.get(i).copied().unwrap_or(0.0));
        let angle = degrees + minutes / 60.0 + seconds / 3600.0;
        // Without a reference it is north or east, as COLMAP reads it.
        let is_negative = text(exif, reference).is_some_and(|side| side.to_uppercase() == negative);
        let sign = if is_negative { -1.0 } else { 1.0 };
        Some(sign * angle)
    };
    let latitude = angle(Tag::GPSLatitude, Tag::GPSLatitudeRef, "S")?;
    let longitude = angle(Tag::GPSLongitude, Tag::GPSLongitudeRef, "W")?;
    let height = number(exif, Tag::GPSAltitude).filter(|height| height.abs() <= 1e5);
    let below = exif.get_field(Tag::GPSAltitudeRef, In::PRIMARY).and_then(|f| f.value.get_uint(0)) == Some(1);
    let altitude = height.map(|height| if below { -height } else { height });
    // Cameras without a fix write zeros, which COLMAP leaves out, too.
    let sound = latitude.abs() <= 90.0 && longitude.abs() <= 180.0 && [latitude, longitude] != [0.0; 2];
    sound.then_some(Position { latitude, longitude, altitude })
}

/// Gravity points to the bottom, the top, the right or the left of the stored pixels.
fn gravity(exif: &Exif) -> Option<[f64; 3]> {
    match exif.get_field(Tag::Orientation, In::PRIMARY)?.value.get_uint(0)? {
        1 => Some([0.0, 1.0, 0.0]),
        3 => Some([0.0, -1.0, 0.0]),
        6 => Some([1.0, 0.0, 0.0]),
        8 => Some([-1.0, 0.0, 0.0]),
        _ => None,
    }
}

/// A text without white space at its ends; `None` where nothing is left.
fn text(exif: &Exif, tag: Tag) -> Option<String> {
    let Value::Ascii(lines) = &exif.get_field(tag, In::PRIMARY)?.value else { return None };
    let line = String::from_utf8_lossy(lines.first()?);
    let text = line.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

/// The first number of a field.
fn number(exif: &Exif, tag: Tag) -> Option<f64> {
    let value = &exif.get_field(tag, In::PRIMARY)?.value;
    value.get_uint(0).map(f64::from).or_else(|| rationals(exif, tag)?.first().copied())
}

/// The rational numbers of a field; `None` where one is not finite.
fn rationals(exif: &Exif, tag: Tag) -> Option<Vec<f64>> {
    let Value::Rational(parts) = &exif.get_field(tag, In::PRIMARY)?.value else { return None };
    parts.iter().map(|part| Some(part.to_f64()).filter(|v| v.is_finite())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use exif::experimental::Writer;
    use exif::{Field, Rational};

    #[test]
    fn focal_lengths_in_pixels() {
        let px =
            |focal| Metadata { focal: Some(focal), ..Metadata::default() }.focal_px(Size::new(3600, 2400));
        assert!(
            (px(Focal::Film35(36.0)).unwrap() - 3600.0).abs() < 1e-6,
            "the width of the film is the image's"
        );
        let lens = Focal::Lens { focal: 5.0, sensor_width: 10.0 };
        assert_eq!(px(lens), Some(1800.0), "by the sensor");
        assert_eq!(px(Focal::LensOnly(5.0)), None, "of a sensor of unknown size");
        let taken = |taken: [f64; 2], size| {
            let of = Metadata { focal: Some(Focal::Film35(36.0)), taken: Some(taken), ..Metadata::default() };
            of.focal_px(size).map(f64::round)
        };
        assert_eq!(taken([2832.0, 2128.0], Size::new(800, 601)), Some(833.0), "reduced");
        assert_eq!(taken([2832.0, 2128.0], Size::new(601, 800)), Some(833.0), "turned upright");
        assert_eq!(taken([2832.0, 2128.0], Size::new(400, 601)), None, "cropped");
        assert_eq!(px(Focal::Film35(1e9)), None, "absurdly long");
        assert_eq!(px(Focal::Film35(1e-9)), None, "absurdly short");
    }

    fn number_of(n: u32) -> Value {
        Value::Rational(vec![Rational { num: n, denom: 1 }])
    }

    /// The camera data that these fields make.
    fn of_fields(fields: &[(Tag, Value)]) -> Metadata {
        let field =
            |(tag, value): &(Tag, Value)| Field { tag: *tag, ifd_num: In::PRIMARY, value: value.clone() };
        let fields: Vec<Field> = fields.iter().map(field).collect();
        let (mut writer, mut bytes) = (Writer::new(), io::Cursor::new(Vec::new()));
        fields.iter().for_each(|field| writer.push_field(field));
        writer.write(&mut bytes, false).unwrap();
        of_exif(&exif::Reader::new().read_raw(bytes.into_inner()).unwrap())
    }

    #[test]
    fn the_resolution_of_one_axis_is_that_of_both() {
        let (x, y) = (Tag::FocalPlaneXResolution, Tag::FocalPlaneYResolution);
        for sides in [[4000, 3000], [3000, 4000]] {
            for axes in [&[x][..], &[y], &[x, y]] {
                let mut fields = vec![
                    (Tag::FocalLength, number_of(50)),
                    (Tag::PixelXDimension, Value::Long(vec![sides[0]])),
                    (Tag::PixelYDimension, Value::Long(vec![sides[1]])),
                ];
                fields.extend(axes.iter().map(|axis| (*axis, number_of(2540))));
                let found = of_fields(&fields).focal_px(Size::new(300, 400)).unwrap();
                assert!((found - 500.0).abs() < 1e-9, "{sides:?}, {axes:?}: {found}");
            }
        }
    }

    #[test]
    fn a_position_without_a_fix_is_none_and_an_absurd_altitude_is_left_out() {
        let angle = |degrees| Value::Rational([degrees, 0, 0].map(|num| Rational { num, denom: 1 }).to_vec());
        let at = |latitude, longitude, altitude| {
            let places = [(Tag::GPSLatitude, angle(latitude)), (Tag::GPSLongitude, angle(longitude))];
            let found = of_fields(&[places.as_slice(), &[(Tag::GPSAltitude, number_of(altitude))]].concat());
            found.position.map(|p| (p.latitude, p.longitude, p.altitude))
        };
        assert_eq!(at(0, 0, 0), None);
        assert_eq!(at(0, 0, 90), None, "an altitude alone");
        assert_eq!(at(0, 7, 90), Some((0.0, 7.0, Some(90.0))), "on the equator");
        assert_eq!(at(47, 7, 4_000_000), Some((47.0, 7.0, None)));
        assert_eq!(at(91, 7, 90), None);
    }
}
