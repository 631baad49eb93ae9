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

/// The lines of `file`, or of stdin for `-`, without empty lines and those that begin with # and with no name of a file.
pub(crate) fn listed_lines(file: &Path) -> Outcome<Vec<String>> {
    let text = read_text(file, "names of images, a line each")?;
    let is_comment = |line: &str| {
        let first = line.split_whitespace().next().unwrap_or_default();
        line.starts_with('#') && ![line, first].iter().any(|name| Path::new(name).exists())
    };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !is_comment(line));
    Ok(lines.map(str::to_owned).collect())
}
