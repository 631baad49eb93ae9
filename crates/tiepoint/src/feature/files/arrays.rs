//! Features from named arrays, as `.npz` and HDF5 files hold them.
//!
//! Names are ours or those of hloc and `LightGlue`. Only positions are needed: the default of the scale is 1 pixel, of
//! the angle 0, of no known sign. Behind x and y a row of positions may have two more numbers, whose meaning differs between
//! programs (R2D2, D2-Net) and which are left out. Arrays may have a first axis of one picture (`LightGlue`), whose SIFT has
//! COLMAP's places: they are half a pixel greater than ours.

use super::text::CENTRE_OF_COLMAP;
use crate::feature::{Descriptors, Features, Keypoint};
use crate::image::Size;
use crate::numeric::{half, within_a_turn};

/// An array: NumPy's name of its element type, its shape and its bytes.
#[derive(Debug)]
pub(crate) struct Array {
    pub(crate) kind: &'static str,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

/// The element types that are read, with their sizes in bytes.
const KINDS: [(&str, usize); 12] = [
    ("|u1", 1),
    ("|i1", 1),
    ("<u2", 2),
    ("<i2", 2),
    ("<u4", 4),
    ("<i4", 4),
    ("<u8", 8),
    ("<i8", 8),
    ("<f2", 2),
    ("<f4", 4),
    ("<f8", 8),
    ("|b1", 1),
];

impl Array {
    /// The array of these bytes; an error if they do not fit the type and the shape.
    pub(crate) fn new(kind: &str, shape: Vec<usize>, bytes: Vec<u8>) -> Result<Self, String> {
        let known = KINDS.into_iter().find(|(name, _)| *name == kind);
        let (kind, width) = known.ok_or_else(|| {
            format!(
                "elements of type {kind:?}, expected whole numbers or floats of up to 64 bits, little-endian"
            )
        })?;
        match shape.iter().try_fold(width, |n: usize, d| n.checked_mul(*d)) {
            Some(n) if n == bytes.len() => Ok(Self { kind, shape, bytes }),
            _ => Err(format!("{} bytes of {kind} do not make an array of {shape:?}", bytes.len())),
        }
    }

    /// The bytes of an element.
    pub(super) fn width(&self) -> usize {
        KINDS.into_iter().find(|(name, _)| *name == self.kind).map_or(1, |(_, width)| width)
    }

    /// This array without leading axes of length 1, as long as it has more than `axes` axes.
    pub(crate) fn with_axes(mut self, axes: usize) -> Self {
        while self.shape.len() > axes && self.shape[0] == 1 {
            self.shape.remove(0);
        }
        self
    }

    fn each<const N: usize, T>(&self, value: impl Fn([u8; N]) -> T) -> Vec<T> {
        self.bytes.as_chunks::<N>().0.iter().map(|b| value(*b)).collect()
    }

    /// The values as floats; those of 64 bits are rounded.
    pub(crate) fn floats(&self) -> Vec<f32> {
        match self.kind {
            "<f2" => self.each(|b| half(u16::from_le_bytes(b))),
            "<f4" => self.each(f32::from_le_bytes),
            "<f8" => self.each(|b| f64::from_le_bytes(b) as f32),
            _ => self.integers().into_iter().map(|v| v as f32).collect(),
        }
    }

    /// The values as integers; an error for floats that are none, such as NaN.
    pub(crate) fn whole(&self) -> Result<Vec<i64>, String> {
        let floats = match self.kind {
            "<f8" => self.each(f64::from_le_bytes),
            "<f2" | "<f4" => self.floats().into_iter().map(f64::from).collect(),
            _ => return Ok(self.integers()),
        };
        let whole = |v: f64| match v.fract() == 0.0 {
            true => Ok(v as i64),
            false => Err(format!("holds {v}, expected whole numbers")),
        };
        floats.into_iter().map(whole).collect()
    }

    /// The values as integers, clamped to their range; NaN becomes 0.
    pub(crate) fn integers(&self) -> Vec<i64> {
        match self.kind {
            "|i1" => self.each(|[b]| i64::from(b as i8)),
            "<u2" => self.each(|b| u16::from_le_bytes(b).into()),
            "<i2" => self.each(|b| i16::from_le_bytes(b).into()),
            "<u4" => self.each(|b| u32::from_le_bytes(b).into()),
            "<i4" => self.each(|b| i32::from_le_bytes(b).into()),
            "<u8" => self.each(|b| i64::try_from(u64::from_le_bytes(b)).unwrap_or(i64::MAX)),
            "<i8" => self.each(i64::from_le_bytes),
            "<f2" | "<f4" | "<f8" => self.floats().into_iter().map(|v| v as i64).collect(),
            _ => self.bytes.iter().map(|b| i64::from(*b)).collect(),
        }
    }
}

/// The features in the arrays that `find` returns by name. If the array of descriptors is square and their lengths do
/// not tell whether they are rows or columns, they are what `square` says.
pub(crate) fn features<E: From<String>>(
    find: impl Fn(&str) -> Result<Option<Array>, E>,
    square: Lie,
) -> Result<Features, E> {
    let first = |names: [&'static str; 2], axes: usize| -> Result<_, E> {
        for name in names {
            if let Some(array) = find(name)? {
                return Ok(Some((name, array.with_axes(axes))));
            }
        }
        Ok(None)
    };
    let none = || "the array xy or keypoints is missing".to_owned();
    let (name, xy) = first(["xy", "keypoints"], 2)?.ok_or_else(none)?;
    let (n, wide) = match xy.shape[..] {
        [n, wide @ 2..=4] => (n, wide),
        _ => return Err(format!("{name} has the shape {:?}, expected rows of x and y", xy.shape).into()),
    };
    let xy = xy.floats();
    let (scores, centre) = match find("keypoint_scores")?.is_some() {
        true if find("oris")?.is_some() => ("keypoint_scores", CENTRE_OF_COLMAP),
        true => ("keypoint_scores", 0.0),
        false => ("scores", 0.0),
    };
    let column = |names: [&'static str; 2], default: f32| -> Result<_, E> {
        match first(names, 1)? {
            None => Ok(vec![default; n]),
            Some((_, array)) if array.shape == [n] => Ok(array.floats()),
            Some((name, array)) => {
                Err(format!("{name} has the shape {:?}, expected [{n}]", array.shape).into())
            }
        }
    };
    let (scale, angle) = (column(["scale", "scales"], 1.0)?, column(["angle", "oris"], 0.0)?);
    let response = column(["response", scores], 0.0)?;
    let whole = |name| -> Result<_, E> {
        let values = column([name, name], 0.0)?;
        match values.iter().find(|v| v.fract() != 0.0) {
            Some(v) => Err(format!("{name} holds {v}, expected whole numbers").into()),
            None => Ok(values),
        }
    };
    let (sign, octave, layer) = (whole("sign")?, whole("octave")?, whole("layer")?);
    let keypoint = |i: usize| Keypoint {
        x: xy[wide * i] - centre,
        y: xy[wide * i + 1] - centre,
        scale: scale[i],
        angle: within_a_turn(angle[i]),
        response: response[i],
        sign: sign[i] as i8,
        octave: octave[i] as i8,
        layer: layer[i] as u8,
    };
    let (descriptors, dimension) = match find("descriptors")? {
        None => (Descriptors::U8(Vec::new()), 0),
        // Our own files have rows.
        Some(array) => descriptors(&array.with_axes(2), n, (name != "xy").then_some(square))?,
    };
    let image =
        first(["image", "image_size"], 1)?.map_or(Ok(Size::default()), |(name, array)| size(name, &array))?;
    Ok(Features { keypoints: (0..n).map(keypoint).collect(), descriptors, dimension, image })
}

/// How descriptors lie in an array.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Lie {
    Rows,
    /// As hloc has them.
    Columns,
}

/// Descriptors have one length to within this share of it.
const ONE_LENGTH: f32 = 0.02;

/// Whether descriptors are the rows or the columns of a square array: those that all have one length, if the others do
/// not.
fn lie_by_lengths(values: &[f32], n: usize) -> Option<Lie> {
    let of_one_length = |value: fn(&[f32], [usize; 3]) -> f32| {
        let of = |i| (0..n).map(move |j| value(values, [n, i, j]));
        let squared = |i| of(i).map(|v| v * v).sum::<f32>();
        let lengths = (0..n).map(|i| squared(i).sqrt());
        let [least, greatest] = lengths.fold([f32::MAX, 0.0], |[a, b], v| [a.min(v), b.max(v)]);
        greatest - least <= ONE_LENGTH * greatest
    };
    let rows = of_one_length(|values, [n, i, j]| values[n * i + j]);
    let columns = of_one_length(|values, [n, i, j]| values[n * j + i]);
    match (rows, columns) {
        (true, false) => Some(Lie::Rows),
        (false, true) => Some(Lie::Columns),
        _ => None,
    }
}

/// Descriptors of `n` features: a row each, or a column each; in a square array rows without `square`, otherwise as their
/// lengths say, or else as `square`.
fn descriptors(array: &Array, n: usize, square: Option<Lie>) -> Result<(Descriptors, usize), String> {
    let (dimension, columns) = match array.shape[..] {
        [rows, columns] if [rows, columns] == [n, n] => {
            let lie = square.map(|square| lie_by_lengths(&array.floats(), n).unwrap_or(square));
            (n, lie == Some(Lie::Columns))
        }
        [rows, dimension] if rows == n => (dimension, false),
        [dimension, columns] if columns == n => (dimension, true),
        _ => {
            return Err(format!(
                "descriptors have the shape {:?}, expected {n} rows or columns",
                array.shape
            ));
        }
    };
    fn rows<T: Copy>(values: Vec<T>, [n, dimension]: [usize; 2], columns: bool) -> Vec<T> {
        match columns {
            true => (0..n * dimension).map(|i| values[i % dimension * n + i / dimension]).collect(),
            false => values,
        }
    }
    let shape = [n, dimension];
    Ok(match array.kind {
        "|u1" => (Descriptors::U8(rows(array.bytes.clone(), shape, columns)), dimension),
        "<f2" | "<f4" | "<f8" => (Descriptors::F32(rows(array.floats(), shape, columns)), dimension),
        kind => return Err(format!("descriptors are {kind}, expected |u1 or floats")),
    })
}

fn size(name: &str, array: &Array) -> Result<Size, String> {
    let sides: Vec<usize> = array.integers().into_iter().map_while(|v| usize::try_from(v).ok()).collect();
    match (sides.as_slice(), array.shape.as_slice()) {
        ([width, height], [2]) => Ok(Size::new(*width, *height)),
        _ => Err(format!("{name} is {} of {:?}, expected width and height", array.kind, array.shape)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_other_programs_are_features() {
        let floats = |shape: &[usize], values: &[f32]| {
            Array::new("<f4", shape.to_vec(), values.iter().flat_map(|v| v.to_le_bytes()).collect()).unwrap()
        };
        let find = |name: &str| {
            Ok(match name {
                "keypoints" => Some(floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0])),
                "oris" => Some(floats(&[2], &[-1.0, 1.0])),
                "scores" => Some(floats(&[2], &[0.5, 0.25])),
                "descriptors" => Some(floats(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
                "image_size" => Some(Array::new(
                    "<i8",
                    vec![2],
                    [[7, 0, 0, 0, 0, 0, 0, 0], [5, 0, 0, 0, 0, 0, 0, 0]].concat(),
                )?),
                _ => None,
            })
        };
        let found = features(find, Lie::Rows).unwrap();
        assert_eq!(found.image, Size::new(7, 5));
        assert_eq!(
            (found.dimension, &found.descriptors),
            (3, &Descriptors::F32(vec![1.0, 3.0, 5.0, 2.0, 4.0, 6.0]))
        );
        for (square, values) in [(Lie::Rows, [1.0, 2.0, 3.0, 4.0]), (Lie::Columns, [1.0, 3.0, 2.0, 4.0])] {
            let square = descriptors(&floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), 2, Some(square)).unwrap();
            assert_eq!(square, (Descriptors::F32(values.to_vec()), 2), "as many values as features");
        }
        // Unit vectors as rows, and as columns.
        for (values, expected) in
            [([1.0, 0.0, 0.6, 0.8], [1.0, 0.0, 0.6, 0.8]), ([1.0, 0.6, 0.0, 0.8], [1.0, 0.0, 0.6, 0.8])]
        {
            for square in [Lie::Rows, Lie::Columns] {
                let found = descriptors(&floats(&[2, 2], &values), 2, Some(square)).unwrap();
                assert_eq!(found, (Descriptors::F32(expected.to_vec()), 2), "of one length");
            }
            let own = descriptors(&floats(&[2, 2], &values), 2, None).unwrap();
            assert_eq!(
                own,
                (Descriptors::F32(values.to_vec()), 2),
                "our own files have rows, whatever their lengths"
            );
        }
        let k = found.keypoints[0];
        assert_eq!([k.x, k.y, k.scale, k.response], [1.0, 2.0, 1.0, 0.5], "without a scale 1 pixel");
        assert_eq!((k.angle, k.sign), (within_a_turn(-1.0), 0));
        let of_lightglue = |name: &str| match name {
            "keypoint_scores" => find("scores"),
            _ => find(name),
        };
        let k = features(of_lightglue, Lie::Rows).unwrap().keypoints[0];
        assert_eq!([k.x, k.y, k.response], [0.5, 1.5, 0.5], "SIFT of LightGlue has places of COLMAP");
        let places =
            |found: Features| found.keypoints.iter().map(|k| [k.x, k.y, k.scale]).collect::<Vec<_>>();
        for (shape, values) in [
            (&[2, 3][..], &[1.0, 2.0, 9.0, 3.0, 4.0, 9.0][..]),
            (&[2, 4], &[1.0, 2.0, 9.0, 9.0, 3.0, 4.0, 9.0, 9.0]),
            (&[1, 2, 2], &[1.0, 2.0, 3.0, 4.0]),
        ] {
            let batch = shape.len() == 3;
            let other = |name: &str| match name {
                "keypoints" => Ok(Some(floats(shape, values))),
                "descriptors" if batch => Ok(Some(floats(&[1, 2, 3], &[1.0, 3.0, 5.0, 2.0, 4.0, 6.0]))),
                "scores" if batch => Ok(Some(floats(&[1, 2], &[0.5, 0.25]))),
                _ => find(name),
            };
            let other = features(other, Lie::Rows).unwrap();
            assert_eq!(other.descriptors, found.descriptors, "{shape:?}");
            assert_eq!(places(other), places(found.clone()), "{shape:?}");
        }
        for (name, array, reason) in [
            ("keypoints", floats(&[2, 5], &[0.0; 10]), "rows of x and y"),
            ("octave", floats(&[2], &[0.0, f32::NAN]), "octave holds NaN, expected whole numbers"),
            ("scores", floats(&[3], &[0.0; 3]), "expected [2]"),
            ("descriptors", floats(&[3, 3], &[0.0; 9]), "expected 2 rows or columns"),
            ("image_size", floats(&[3], &[0.0; 3]), "width and height"),
        ] {
            let other = std::cell::Cell::new(Some(array));
            let found =
                features(|asked| if asked == name { Ok(other.take()) } else { find(asked) }, Lie::Rows);
            assert!(found.as_ref().is_err_and(|e: &String| e.contains(reason)), "{name}: {found:?}");
        }
    }
}
