//! World files: six lines of text beside a picture that say where it lies on a map (ESRI; GDAL reads the same).
//!
//! Their numbers are A, D, B, E, C, F of x = A · column + B · row + C, y = D · column + E · row + F, where (0, 0) is the
//! **centre** of the first pixel. They name no coordinate system.

use super::Georeference;
use crate::files::read_text;
use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// The world file beside the picture at `path`. Its extension, in small letters or capitals, is the first and last
/// letter of the picture's extension and w, or the whole extension and w, or wld.
pub fn world_file(path: impl AsRef<Path>) -> Option<PathBuf> {
    let path = path.as_ref();
    let usual = new_world_file(path)?;
    let longer = format!("{}w", path.extension()?.to_str()?.to_lowercase());
    let names = [usual.extension()?.to_str()?, &longer, "wld"];
    let cases = names.iter().flat_map(|name| [name.to_string(), name.to_uppercase()]);
    cases.map(|name| path.with_extension(name)).find(|path| path.is_file())
}

/// The path of the world file that [`write_known`](super::write_known) writes for a picture at `path`.
pub fn new_world_file(path: impl AsRef<Path>) -> Option<PathBuf> {
    let path = path.as_ref();
    let extension = path.extension()?.to_str()?.to_lowercase();
    let letters = [extension.chars().next()?, extension.chars().last()?, 'w'];
    Some(path.with_extension(letters.iter().collect::<String>()))
}

/// Where the picture at `path` lies by the world file beside it; `None` without one.
pub(super) fn beside(path: &Path) -> Result<Option<Georeference>> {
    let Some(world) = world_file(path) else { return Ok(None) };
    let text = read_text(&world, "six numbers, one a line")?;
    let wrong = || {
        let commas = if text.contains(',') { "; write a point, not a comma, before fractions" } else { "" };
        let wanted = "expected six numbers, one a line, that can be inverted";
        Error::format(&world, format!("is no world file: {wanted}{commas}"))
    };
    Ok(Some(parse(&text).ok_or_else(wrong)?))
}

/// The world file for the picture at `path`, and its text.
pub(super) fn of(path: &Path, place: &Georeference) -> Result<(PathBuf, String)> {
    let known = place.transform().zip(new_world_file(path));
    let ([a, b, c, d, e, f], world) = known.ok_or_else(|| {
        Error::format(path, "no world file can hold this place on the map; use .tif or .tiff")
    })?;
    let numbers = [a, d, b, e, c + (a + b) / 2.0, f + (d + e) / 2.0];
    Ok((world, numbers.map(|number| format!("{number:?}\n")).concat()))
}

/// The place that the text of a world file gives; `None` for any other text.
pub(crate) fn parse(text: &str) -> Option<Georeference> {
    let numbers = text.split_ascii_whitespace().map(|word| word.parse::<f64>().ok());
    let [a, d, b, e, c, f] = <[f64; 6]>::try_from(numbers.collect::<Option<Vec<_>>>()?).ok()?;
    let place = Georeference::of_transform([a, b, c - (a + b) / 2.0, d, e, f - (d + e) / 2.0]);
    place.transform().map(|_| place)
}

#[cfg(test)]
mod tests {
    use crate::files::tests::Folder;
    use crate::image::{Image, Known, Size, read_georeference, write, write_known};

    #[test]
    fn a_world_file_is_the_place_of_a_picture_that_has_none() {
        let folder = Folder::new("world-file");
        let image = Image::<u8>::new(Size::new(4, 3));
        for (name, world) in [
            ("a.png", "a.pgw"),
            ("b.tif", "b.tfw"),
            ("c.jpg", "c.wld"),
            ("d.tif", "d.tifw"),
            ("e.TIF", "e.TFW"),
        ] {
            let path = folder.join(name);
            write(&path, &image).unwrap();
            assert_eq!(read_georeference(&path).unwrap(), None, "{name}");
            std::fs::write(folder.join(world), "0.5\n0.0\n0\n-0.5\n 300000.25 \n5e6\n").unwrap();
            let place = read_georeference(&path).unwrap().unwrap();
            assert_eq!(place.transform(), Some([0.5, 0.0, 300_000.0, 0.0, -0.5, 5_000_000.25]), "{name}");
            // Written beside a picture that cannot hold it, it is the same place.
            let moved = folder.join("moved.pgm");
            write_known(&moved, &image, &Known { place: Some(&place), ..Known::default() }).unwrap();
            assert_eq!(std::fs::read_to_string(folder.join("moved.pmw")).unwrap().lines().count(), 6);
            assert_eq!(read_georeference(&moved).unwrap(), Some(place.clone()), "{name}");
            // What the file itself says comes first.
            let (kept, other) = (folder.join("kept.tif"), "9\n1\n1\n9\n1\n1\n");
            write_known(&kept, &image, &Known { place: Some(&place), ..Known::default() }).unwrap();
            std::fs::write(folder.join("kept.tfw"), other).unwrap();
            assert_eq!(read_georeference(&kept).unwrap(), Some(place));
        }
        for text in ["", "1\n2\n3\n4\n5\n", "1 0 0 x 0 0", "1 0 0 1 0 0 0", "1 2 2 4 0 0", "nan 0 0 1 0 0"] {
            std::fs::write(folder.join("a.pgw"), text).unwrap();
            let refused = read_georeference(folder.join("a.png")).unwrap_err().to_string();
            assert!(refused.contains("a.pgw") && refused.contains("six numbers"), "{text:?}: {refused}");
            assert!(!refused.contains("comma"), "{text:?}: {refused}");
        }
        std::fs::write(folder.join("a.pgw"), "0,5\n0\n0\n-0,5\n300000,25\n5\n").unwrap();
        let refused = read_georeference(folder.join("a.png")).unwrap_err().to_string();
        assert!(refused.contains("a point, not a comma"), "{refused}");
    }
}
