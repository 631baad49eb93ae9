//! Which images to read, and where their results go.

use crate::failure::{Failure, Outcome};
use crate::output::{Clock, Part};
use crate::prefetch::Weight;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use tiepoint::device::Cpu;
use tiepoint::image::{self, AnyCow, AnyImage, Image, Pixel, Prepared, Range, ReadOptions, Size};

/// An image ready for a detector.
#[derive(Debug)]
pub(crate) struct Picture {
    /// As in the file, if colours were asked for.
    pub(crate) original: Option<AnyImage>,
    /// Grey, on the scale of its type.
    pub(crate) image: AnyImage,
    /// 0 where no keypoint may lie.
    pub(crate) mask: Option<Image<u8>>,
}

impl Picture {
    /// Reads an image; `colour` keeps it as it is in the file too, for drawing and warping.
    pub(crate) fn read(
        path: &Path,
        colour: bool,
        mask: Option<&Path>,
        range: Range,
        clock: &mut Clock,
        cpu: &Cpu,
    ) -> Outcome<Self> {
        let options = ReadOptions::default();
        let (original, grey) = if colour {
            let original = clock.time(Part::Read, || image::read(path, &options))?;
            let grey = clock.time(Part::Compute, || image::grey(&original, cpu).map(AnyCow::into_image));
            let grey = grey.map_err(|e| at(path, &e))?;
            (Some(original), grey)
        } else {
            (None, clock.time(Part::Read, || image::read_grey(path, &options, cpu))?)
        };
        let prepared = clock.time(Part::Compute, || image::prepare(&grey, range, cpu))?;
        let Prepared { image, mask: holes } = prepared;
        let image = image.into_owned().unwrap_or(grey);
        let mask = match mask {
            Some(path) => {
                Some(with_holes(clock.time(Part::Read, || read_mask(path, image.size(), cpu))?, holes))
            }
            None => holes,
        };
        Ok(Self { original, image, mask })
    }
}

impl Weight for Picture {
    fn bytes(&self) -> usize {
        let bytes = |image: &AnyImage| match image {
            AnyImage::U8(i) => i.data().len(),
            AnyImage::U16(i) => 2 * i.data().len(),
            AnyImage::F32(i) => 4 * i.data().len(),
        };
        let mask = self.mask.as_ref().map_or(0, |m| m.data().len());
        self.original.as_ref().map_or(0, bytes) + bytes(&self.image) + mask
    }
}

/// An error of the library that does not know the file it is about.
pub(crate) fn at(path: &Path, error: &tiepoint::Error) -> Failure {
    Failure::work(format!("{}: {error}", path.display()))
}

/// The mask in the file at `path` for an image of `expected` size: not 0 where the image counts.
pub(crate) fn read_mask(path: &Path, expected: Size, cpu: &Cpu) -> Outcome<Image<u8>> {
    let mask = image::read_grey(path, &ReadOptions::default(), cpu)?;
    let found = mask.size();
    if found != expected {
        return Err(Failure::work(format!("{}: the mask is {found}, its image {expected}", path.display())));
    }
    fn allowed<T: Pixel>(mask: &Image<T>) -> Image<u8> {
        Image::from_fn(mask.size(), |x, y| if mask.row(y)[x].to_f32() > 0.0 { 255 } else { 0 })
    }
    Ok(match mask {
        AnyImage::U8(m) => m,
        AnyImage::U16(m) => allowed(&m),
        AnyImage::F32(m) => allowed(&m),
    })
}

/// `mask` where `holes` is not 0, and 0 elsewhere.
pub(crate) fn with_holes(mut mask: Image<u8>, holes: Option<Image<u8>>) -> Image<u8> {
    if let Some(holes) = holes {
        mask.data_mut().iter_mut().zip(holes.data()).filter(|(_, h)| **h == 0).for_each(|(m, _)| *m = 0);
    }
    mask
}

/// The images named on the command line, those in @FILE and in the list.
pub(crate) fn expand(images: &[PathBuf], list: Option<&Path>) -> Outcome<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in images {
        match path.to_str().and_then(|s| s.strip_prefix('@')) {
            Some(file) => all.extend(listed(Path::new(file))?),
            None => all.push(path.clone()),
        }
    }
    if let Some(list) = list {
        all.extend(listed(list)?);
    }
    if all.is_empty() {
        return Err(Failure::usage("the list names no image"));
    }
    Ok(all)
}

fn listed(file: &Path) -> Outcome<Vec<PathBuf>> {
    Ok(listed_lines(file)?.into_iter().map(PathBuf::from).collect())
}

/// The lines of `file`, or of stdin for `-`, that are not empty and do not begin with #.
pub(crate) fn listed_lines(file: &Path) -> Outcome<Vec<String>> {
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(file)
    };
    let text = text.map_err(|e| Failure::work(format!("{}: {e}", file.display())))?;
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    Ok(lines.map(str::to_owned).collect())
}

/// Where the results of each of `images` go: FILE for one image, for several a folder or a pattern with {}.
/// Two images must not share a file.
pub(crate) fn outputs(given: &str, images: &[PathBuf], extension: &str) -> Outcome<Vec<PathBuf>> {
    let folder = given.ends_with(['/', std::path::MAIN_SEPARATOR]) || Path::new(given).is_dir();
    let place = |image: &PathBuf| {
        let stem = image.file_stem().unwrap_or_default().to_string_lossy();
        match given {
            _ if folder => Path::new(given).join(format!("{stem}.{extension}")),
            pattern => PathBuf::from(fill(pattern, image)),
        }
    };
    if images.len() > 1 && !folder && !given.contains("{}") {
        return Err(Failure::usage(format!(
            "{given} is one file for {} images: name a folder, or a pattern with {{}} such as out/{{}}.{extension}",
            images.len()
        )));
    }
    let places: Vec<PathBuf> = images.iter().map(place).collect();
    let mut seen = HashMap::new();
    for (image, place) in images.iter().zip(&places) {
        if let Some(other) = seen.insert(place, image) {
            return Err(Failure::usage(format!(
                "{} and {} would both be written to {}: rename one, or make two calls",
                Path::display(other),
                image.display(),
                place.display()
            )));
        }
    }
    Ok(places)
}

/// {} in `pattern` replaced by the name of `image` without folder and extension.
pub(crate) fn fill(pattern: &str, image: &Path) -> String {
    pattern.replace("{}", &image.file_stem().unwrap_or_default().to_string_lossy())
}

/// Fails early where a file could not be written late: its folder must be there.
pub(crate) fn writable(path: &Path) -> Outcome {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.is_dir() {
        return Ok(());
    }
    Err(Failure::usage(format!("{}: its folder does not exist; make it first", path.display())))
}

/// [`writable`], and the extension is that of a picture.
pub(crate) fn writable_image(path: &Path) -> Outcome {
    image::OutputFormat::of(path).map_err(|e| Failure::usage(e.to_string()))?;
    writable(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let images = ["a/one.png", "b/two.jpg"].map(PathBuf::from);
        let found = outputs("out/{}.sift", &images, "csv").unwrap();
        assert_eq!(found, ["out/one.sift", "out/two.sift"].map(PathBuf::from), "a pattern");
        let found = outputs("out/", &images, "csv").unwrap();
        assert_eq!(found, ["out/one.csv", "out/two.csv"].map(PathBuf::from), "a folder");
        assert_eq!(outputs("k.csv", &images[..1], "csv").unwrap(), [PathBuf::from("k.csv")], "one file");
        assert!(outputs("k.csv", &images, "csv").is_err(), "one file for two");
        let twice = ["a/one.png", "b/one.png"].map(PathBuf::from);
        assert!(outputs("out/", &twice, "csv").is_err(), "two images, one name");
    }
}
