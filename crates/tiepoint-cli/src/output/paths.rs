//! The names of results.

use crate::failure::{Failure, Outcome};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use tiepoint::image;

/// The result file for each of `images`, if one is `given`: a file for one image, a folder or a pattern with {} for
/// several. Two images must not share a file.
pub(crate) fn output_paths(
    given: Option<&str>,
    images: &[PathBuf],
    extension: &str,
) -> Outcome<Vec<Option<PathBuf>>> {
    let Some(given) = given else { return Ok(vec![None; images.len()]) };
    let folder = given.ends_with(['/', std::path::MAIN_SEPARATOR]) || Path::new(given).is_dir();
    let path_of = |image: &PathBuf| match folder {
        true => Path::new(given).join(fill(&format!("{{}}.{extension}"), image)),
        false => fill(given, image),
    };
    if images.len() > 1 && !folder && !given.contains("{}") {
        return Err(Failure::usage(format!(
            "{given} is one file for {} images: name a folder, or a pattern with {{}} such as out/{{}}.{extension}",
            images.len()
        )));
    }
    let paths: Vec<PathBuf> = images.iter().map(path_of).collect();
    let mut seen = HashMap::new();
    for (image, path) in images.iter().zip(&paths) {
        if let Some(other) = seen.insert(path, image) {
            return Err(Failure::usage(format!(
                "{} and {} would both be written to {}: rename one, or make two calls",
                Path::display(other),
                image.display(),
                path.display()
            )));
        }
    }
    Ok(paths.into_iter().map(Some).collect())
}

/// {} in `pattern` replaced by the name of `image` without folder and extension.
pub(crate) fn fill(pattern: &str, image: &Path) -> PathBuf {
    pattern.replace("{}", &image.file_stem().unwrap_or_default().to_string_lossy()).into()
}

/// Fails if a file cannot be written because its folder does not exist.
pub(super) fn check_folder(path: &Path) -> Outcome {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.is_dir() {
        return Err(Failure::usage(format!("{}: is a folder; name a file", path.display())));
    }
    if folder.is_dir() {
        return Ok(());
    }
    Err(Failure::usage(format!("{}: its folder does not exist; make it first", path.display())))
}

/// Fails unless the extension is one of a picture.
pub(crate) fn check_image(path: &Path) -> Outcome {
    image::OutputFormat::of(path).map(drop).map_err(Failure::usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_several_images() {
        let images = ["a/one.png", "b/two.jpg"].map(PathBuf::from);
        let paths = |given, images: &[PathBuf]| output_paths(Some(given), images, "csv");
        let some = |path: &str| Some(PathBuf::from(path));
        assert_eq!(paths("out/{}.sift", &images).unwrap(), ["out/one.sift", "out/two.sift"].map(some));
        assert_eq!(paths("out/", &images).unwrap(), ["out/one.csv", "out/two.csv"].map(some), "a folder");
        assert_eq!(paths("k.csv", &images[..1]).unwrap(), [some("k.csv")], "one file");
        assert!(paths("k.csv", &images).is_err(), "one file for two");
        let twice = ["a/one.png", "b/one.png"].map(PathBuf::from);
        assert!(paths("out/", &twice).is_err(), "two images, one name");
    }
}
