//! Matches as NumPy's arrays, with the names that Python's `TiePoints` has for them: `xy_a`, `xy_b`, `pairs`, `distance`,
//! `ratio` and `inliers`, with `sizes` and `matrix` where they are known.

use super::{MatchFormat, MatchRow, MatchedImages, ReadMatches};
use crate::feature::files::{
    arrays::Array,
    npz::{Archive, array_of, write_arrays},
};
use crate::image::Size;
use crate::matching::Match;
use std::io::{self, Write};

pub(super) fn write(out: &mut impl Write, images: &MatchedImages<'_>, rows: &[MatchRow]) -> io::Result<()> {
    let n = rows.len();
    let floats = |shape: &[usize], value: fn(&MatchRow) -> Vec<f32>| {
        array_of("<f4", shape, rows.iter().flat_map(value).map(f32::to_le_bytes))
    };
    let pairs = rows.iter().flat_map(|row| [row.pair.a, row.pair.b]).map(|v| i64::from(v).to_le_bytes());
    let sizes = images.sizes.map(|sizes| {
        let sides = sizes.into_iter().flat_map(|size| [size.width, size.height]);
        ("sizes", array_of("<i8", &[2, 2], sides.map(|side| (side as i64).to_le_bytes())))
    });
    let matrix = images.model.map(|model| {
        ("matrix", array_of("<f8", &[3, 3], model.matrix().into_iter().flatten().map(f64::to_le_bytes)))
    });
    let arrays = [
        ("xy_a", floats(&[n, 2], |row| row.a_xy.to_vec())),
        ("xy_b", floats(&[n, 2], |row| row.b_xy.to_vec())),
        ("pairs", array_of("<i8", &[n, 2], pairs)),
        ("distance", floats(&[n], |row| vec![row.pair.distance])),
        ("ratio", floats(&[n], |row| vec![row.pair.ratio])),
        ("inliers", array_of("|b1", &[n], rows.iter().map(|row| [u8::from(row.inlier)]))),
    ];
    write_arrays(out, arrays.into_iter().chain(sizes).chain(matrix))
}

/// The matches in the bytes of a file. Only the points are required; other arrays default as in [`ReadMatches`].
pub(crate) fn read(bytes: &[u8]) -> Result<ReadMatches, String> {
    let archive = Archive::open(bytes)?;
    let shaped = |name: &str, shape: &[usize]| match archive.array(name)? {
        Some(array) if array.shape != shape => {
            Err(format!("{name} has the shape {:?}, expected {shape:?}", array.shape))
        }
        found => Ok(found),
    };
    let a =
        archive.array("xy_a")?.ok_or("the array xy_a is missing: expected matches, places in both images")?;
    let n = match a.shape[..] {
        [n, 2] => n,
        _ => return Err(format!("xy_a has the shape {:?}, expected rows of x and y", a.shape)),
    };
    let b = shaped("xy_b", &[n, 2])?.ok_or("the array xy_b is missing: expected places in both images")?;
    let column =
        |name, default| Ok::<_, String>(shaped(name, &[n])?.map_or(vec![default; n], |a| a.floats()));
    let (distance, ratio) = (column("distance", 0.0)?, column("ratio", f32::NAN)?);
    let inliers = shaped("inliers", &[n])?.map_or(vec![1; n], |array| array.integers());
    let pairs = shaped("pairs", &[n, 2])?.as_ref().map(Array::whole);
    let pairs = pairs.transpose().map_err(|reason| format!("pairs {reason}"))?;
    let index = |at: usize, row: usize| {
        let index = pairs.as_ref().map_or(row as i64, |pairs| pairs[at]);
        u32::try_from(index).map_err(|_| format!("row {row} of pairs: {index} is not the index of a feature"))
    };
    let (a, b) = (a.floats(), b.floats());
    let row = |i: usize| {
        let xy = |places: &[f32]| [places[2 * i], places[2 * i + 1]];
        let (a_xy, b_xy) = (xy(&a), xy(&b));
        if [a_xy, b_xy].as_flattened().iter().any(|v| !v.is_finite()) {
            return Err(format!("row {i}: {a_xy:?} and {b_xy:?}: expected finite places"));
        }
        let (first, second) = (index(2 * i, i)?, index(2 * i + 1, i)?);
        let pair = Match { a: first, b: second, distance: distance[i], ratio: ratio[i] };
        Ok(MatchRow { pair, a_xy, b_xy, scales: [1.0; 2], inlier: inliers[i] != 0 })
    };
    let rows = (0..n).map(row).collect::<Result<_, String>>()?;
    let sizes = shaped("sizes", &[2, 2])?.map(|array| array.integers());
    let sizes = [0, 2].map(|i| {
        let sizes = sizes.as_ref()?;
        Some(Size::new(usize::try_from(sizes[i]).ok()?, usize::try_from(sizes[i + 1]).ok()?))
    });
    Ok(ReadMatches { format: MatchFormat::Npz, sizes, rows, ..ReadMatches::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Given<'a> = (&'a str, &'a [usize], &'a [f32]);

    #[test]
    fn places_are_enough_and_wrong_arrays_are_named() {
        let read_of = |arrays: &[Given<'_>]| {
            let mut bytes = Vec::new();
            let array = |shape: &[usize], values: &[f32]| {
                array_of("<f4", shape, values.iter().map(|v| v.to_le_bytes()))
            };
            let arrays = arrays.iter().map(|(name, shape, values)| (*name, array(shape, values)));
            write_arrays(&mut bytes, arrays).unwrap();
            read(&bytes)
        };
        let (a, b): (Given<'_>, Given<'_>) = (("xy_a", &[1, 2], &[1.0, 2.0]), ("xy_b", &[1, 2], &[3.0, 4.0]));
        let rows = read_of(&[a, b]).unwrap().rows;
        assert_eq!(
            (rows[0].a_xy, rows[0].b_xy, rows[0].pair.b, rows[0].inlier),
            ([1.0, 2.0], [3.0, 4.0], 0, true)
        );
        for (arrays, why) in [
            (vec![b], "xy_a is missing"),
            (vec![a], "xy_b is missing"),
            (vec![a, ("xy_b", &[2, 1], &[3.0, 4.0])], "[2, 1], expected [1, 2]"),
            (vec![a, ("xy_b", &[1, 2], &[3.0, f32::NAN])], "finite"),
            (vec![a, b, ("pairs", &[1, 2], &[-1.0, 4.0])], "-1 is not the index"),
            (vec![a, b, ("pairs", &[1, 2], &[0.5, 4.0])], "pairs holds 0.5, expected whole numbers"),
            (vec![a, b, ("inliers", &[2], &[1.0, 0.0])], "inliers has the shape"),
        ] {
            let refused = read_of(&arrays).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        assert!(read(b"PK\x03\x04").unwrap_err().contains("not an .npz file"));
    }
}
