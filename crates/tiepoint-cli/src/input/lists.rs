//! Lists of images, from the command line, `@FILE` and the file of `--list`.

use crate::failure::{Failure, Outcome};
use std::path::{Path, PathBuf};
use tiepoint::files::read_text;

/// The images named on the command line, in `@FILE` and in the list.
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
    let text = read_text(file, "names of images, a line each")?;
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    Ok(lines.map(str::to_owned).collect())
}
