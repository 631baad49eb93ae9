//! The files that a call reads and writes. No result may replace an input, and no two results may go to one file.

use super::explain_early;
use super::paths::check_folder;
use crate::arguments::streams::is_stdin;
use crate::failure::{Failure, Outcome};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tiepoint::image::{BESIDE, OutputFormat};

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

    pub(crate) fn written(&self) -> impl Iterator<Item = &Path> {
        self.written.iter().map(PathBuf::as_path)
    }

    /// Fails early if the folder of a result does not exist, if a result would replace a file that is read, by whatever
    /// name (a link, a relative path, another case), or if two results would go to one file.
    pub(crate) fn check(&self) -> Outcome {
        self.written.iter().try_for_each(|path| check_folder(path))?;
        if self.read.iter().filter(|path| is_stdin(path)).count() > 1 {
            return Err(Failure::usage("-: only one input can be stdin; name a file for the others"));
        }
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
        // What belongs to the picture that was there before is removed, and a mask may be written.
        for path in self.written.iter().filter(|path| OutputFormat::of(path).is_ok()) {
            for beside in BESIDE.map(|extension| path.with_added_extension(extension)) {
                if let Some(place @ Place::Existing(_)) = Place::of(&beside) {
                    let [beside, of] = [&beside, path].map(|path| path.display());
                    explain_early(&format!(
                        "{beside}: is removed, because GDAL would read it with the new {of}"
                    ));
                    results.insert(place, path);
                }
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
            Err(e) => {
                // A link may lead to a file that is new; one that leads to itself is another error.
                if e.kind() == ErrorKind::NotFound
                    && let Ok(target) = std::fs::read_link(path)
                {
                    return Self::of(&path.with_file_name("").join(target));
                }
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
        {
            let [first, second] = ["first.csv", "second.csv"].map(at);
            std::os::unix::fs::symlink("first.csv", &second).unwrap();
            assert!(Files::default().writes([&first, &second]).check().is_err(), "a link to what is new");
            std::os::unix::fs::symlink("circle", at("circle")).unwrap();
            let _ = Files::default().writes([at("circle")]).check();
            for stdin in ["-", "/dev/stdin"] {
                let twice = Files::default().reads([stdin, "/dev/stdin"]).check().unwrap_err().to_string();
                assert!(twice.contains("only one input can be stdin"), "{twice}");
            }
        }
        #[cfg(unix)]
        Files::default().reads(["/dev/null"]).writes(["/dev/null", "/dev/null"]).check().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
