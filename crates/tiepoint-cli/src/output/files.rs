//! The files that a call reads and writes. No result may replace an input, and no two results may go to one file.

use super::paths::check_folder;
use crate::failure::{Failure, Outcome};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

#[derive(Debug, Default)]
pub(crate) struct Files {
    read: Vec<PathBuf>,
    written: Vec<PathBuf>,
}

impl Files {
    #[must_use]
    pub(crate) fn reads(mut self, paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.read.extend(paths.into_iter().map(Into::into));
        self
    }

    #[must_use]
    pub(crate) fn writes(mut self, paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.written.extend(paths.into_iter().map(Into::into));
        self
    }

    /// Fails early if a result could not be written later, because its folder does not exist. Fails if a result would
    /// replace a file that is read, whatever their names are (a link, a relative path, another case), or if two results
    /// would go to one file.
    pub(crate) fn check(&self) -> Outcome {
        self.written.iter().try_for_each(|path| check_folder(path))?;
        let mut results = HashMap::new();
        for path in &self.written {
            if let Some(place) = Place::of(path)
                && let Some(other) = results.insert(place, path)
            {
                let (path, other) = (path.display(), other.display());
                let both = if path.to_string() == other.to_string() {
                    String::new()
                } else {
                    format!(" and {other}")
                };
                return Err(Failure::usage(format!(
                    "{path}{both}: two results would both be written to it; name two files"
                )));
            }
        }
        // A picture's mask is written beside it, or removed.
        for path in &self.written {
            let mut mask = path.clone().into_os_string();
            mask.push(".msk");
            if let Some(place @ Place::Existing(_)) = Place::of(Path::new(&mask)) {
                results.insert(place, path);
            }
        }
        // If all outputs are new, which is usual, no input can be one of them.
        if !results.keys().any(|place| matches!(place, Place::Existing(_))) {
            return Ok(());
        }
        for input in &self.read {
            if let Some(output) = Place::of(input).and_then(|place| results.get(&place)) {
                let (output, input) = (output.display(), input.display());
                return Err(Failure::usage(format!(
                    "{output}: the result would replace the input {input}; name another file"
                )));
            }
        }
        Ok(())
    }
}

/// The identity of a regular file that exists or will be written: two names of one file have the same place.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Place {
    Existing(Identity),
    /// The folder, with links resolved, and the name.
    New(PathBuf),
}

impl Place {
    /// `None` for a path that is never replaced (devices, pipes, folders), and if its folder does not exist.
    fn of(path: &Path) -> Option<Self> {
        match std::fs::metadata(path) {
            Ok(found) if !found.is_file() => None,
            Ok(found) => identity(path, &found).map(Self::Existing),
            Err(_) => {
                let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
                Some(Self::New(folder.canonicalize().ok()?.join(path.file_name()?)))
            }
        }
    }
}

/// Device and inode number of a file, which are the same for all its names.
#[cfg(unix)]
type Identity = (u64, u64);

#[cfg(unix)]
fn identity(_path: &Path, found: &std::fs::Metadata) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    Some((found.dev(), found.ino()))
}

#[cfg(not(unix))]
type Identity = same_file::Handle;

#[cfg(not(unix))]
fn identity(path: &Path, _found: &std::fs::Metadata) -> Option<Identity> {
    same_file::Handle::from_path(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_known_by_all_its_names() {
        let folder = std::env::temp_dir().join(format!("tiepoint-kept-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("inner")).unwrap();
        let at = |name: &str| folder.join(name);
        let [input, other, hard, new] = ["in.png", "other.png", "hard.png", "new.png"].map(at);
        std::fs::write(&input, "a photograph").unwrap();
        std::fs::write(&other, "another").unwrap();
        let _ = std::fs::remove_file(&hard);
        std::fs::hard_link(&input, &hard).unwrap();
        let mut names = vec![input.clone(), hard.clone(), at("./in.png"), at("inner/../in.png")];
        // The same file, on a file system that ignores case.
        names.extend(Some(at("IN.PNG")).filter(|p| p.exists()));
        #[cfg(unix)]
        {
            let (link, folder_link) = (at("link.png"), at("here"));
            let _ = (std::fs::remove_file(&link), std::fs::remove_file(&folder_link));
            std::os::unix::fs::symlink("in.png", &link).unwrap();
            std::os::unix::fs::symlink(".", &folder_link).unwrap();
            names.extend([link, folder_link.join("hard.png")]);
        }
        for name in &names {
            for (read, written) in [(&input, name), (name, &input)] {
                let found = Files::default().reads([&other, read]).writes([&new, written]).check();
                let message = found.unwrap_err().to_string();
                assert!(message.contains("would replace the input"), "{read:?}, {written:?}: {message}");
            }
        }
        Files::default().reads([&input]).writes([&other, &new]).check().unwrap();
        let twice = [new.clone(), at("inner/../new.png")];
        for written in [[&new, &new], [&twice[0], &twice[1]], [&input, &hard]] {
            assert!(Files::default().writes(written).check().is_err(), "two results: {written:?}");
        }
        #[cfg(unix)]
        Files::default().reads(["/dev/null"]).writes(["/dev/null", "/dev/null"]).check().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
