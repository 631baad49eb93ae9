//! Match files: `.csv`, `.json` and COLMAP's text (`.txt`).

use super::Match;
use crate::geometry::Model;
use crate::image::Size;
use crate::options::Named;
use crate::{
    Error, Result,
    files::{format_of, write_atomically},
};
use std::{
    fmt,
    io::{self, Write},
    path::Path,
};

/// One match as files hold it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatchRow {
    /// The match: indices of both features, distance and ratio.
    pub pair: Match,
    /// Position of the feature in the first image, x and y in pixels.
    pub a_xy: [f32; 2],
    /// Position of the feature in the second image, in pixels.
    pub b_xy: [f32; 2],
    /// Whether the match agrees with the estimated model; true if no model was estimated.
    pub inlier: bool,
}

/// A format of match files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchFormat {
    /// `.csv`: header and lines of `ax,ay,bx,by,distance,ratio,inlier,a,b`.
    Csv,
    /// `.json`: `{"images":[…],"matches":[{"ax":…},…]}`; a ratio that is no number is null.
    Json,
    /// `.txt`, for COLMAP's `matches_importer`: the names of both images, a line of two indices for each match, and an
    /// empty line. Only inliers are written.
    Colmap,
}

impl MatchFormat {
    /// The format that the extension of `path` names. Call it before long work, so that a wrong name is reported at
    /// once.
    ///
    /// # Errors
    /// [`Error::Format`] listing the known extensions.
    pub fn of(path: impl AsRef<Path>) -> Result<Self> {
        let known = [("csv", Self::Csv), ("json", Self::Json), ("txt", Self::Colmap)];
        format_of(path.as_ref(), &known, "a match file; use .csv, .json or .txt (COLMAP text)")
    }
}

/// The images that matches belong to. JSON stores all of these fields, COLMAP's text only the names, and CSV none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatchedImages<'a> {
    /// Their names.
    pub names: [&'a str; 2],
    /// Their sizes.
    pub sizes: Option<[Size; 2]>,
    /// The model that the inliers agree on, from the first to the second.
    pub model: Option<Model>,
}

impl<'a> From<[&'a str; 2]> for MatchedImages<'a> {
    /// Only the names.
    fn from(names: [&'a str; 2]) -> Self {
        Self { names, sizes: None, model: None }
    }
}

/// Writes matches to `path` in the format of its extension, [whole or not at all](write_atomically).
///
/// # Errors
/// [`Error::Format`] when the extension is unknown or COLMAP could not read a name (white space),
/// [`Error::Io`] when the file cannot be written.
pub fn write_matches<'a>(
    path: impl AsRef<Path>,
    images: impl Into<MatchedImages<'a>>,
    rows: &[MatchRow],
) -> Result<()> {
    let (path, images) = (path.as_ref(), images.into());
    let format = MatchFormat::of(path)?;
    let unreadable = |name: &&str| name.is_empty() || name.contains(char::is_whitespace);
    if format == MatchFormat::Colmap
        && let Some(name) = images.names.iter().find(|n| unreadable(n))
    {
        return Err(Error::format(path, format!("COLMAP's match file cannot hold the image name {name:?}")));
    }
    write_atomically(path, |out| match format {
        MatchFormat::Csv => csv(out, rows),
        MatchFormat::Json => json(out, &images, rows),
        MatchFormat::Colmap => colmap(out, images.names, rows),
    })
}

fn csv(out: &mut impl Write, rows: &[MatchRow]) -> io::Result<()> {
    writeln!(out, "ax,ay,bx,by,distance,ratio,inlier,a,b")?;
    for MatchRow { pair, a_xy: [ax, ay], b_xy: [bx, by], inlier } in rows {
        let Match { a, b, distance, ratio } = pair;
        let inlier = u8::from(*inlier);
        writeln!(out, "{ax:?},{ay:?},{bx:?},{by:?},{distance:?},{ratio:?},{inlier},{a},{b}")?;
    }
    Ok(())
}

/// A number as JSON holds it: null for NaN.
struct Number(f32);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_finite() { write!(f, "{:?}", self.0) } else { f.write_str("null") }
    }
}

fn json(out: &mut impl Write, images: &MatchedImages<'_>, rows: &[MatchRow]) -> io::Result<()> {
    write!(out, "{{\"images\":{},", serde_json::to_string(&images.names)?)?;
    if let Some(sizes) = images.sizes {
        write!(out, "\"sizes\":{},", serde_json::to_string(&sizes.map(|size| [size.width, size.height]))?)?;
    }
    if let Some(model) = &images.model {
        let matrix = serde_json::to_string(&model.matrix())?;
        write!(out, "\"model\":\"{}\",\"matrix\":{matrix},", model.kind().name())?;
    }
    write!(out, "\"matches\":[")?;
    for (i, row) in rows.iter().enumerate() {
        let MatchRow { pair: Match { a, b, distance, ratio }, a_xy, b_xy, inlier } = row;
        let [ax, ay, bx, by] = [a_xy[0], a_xy[1], b_xy[0], b_xy[1]].map(Number);
        let [distance, ratio] = [*distance, *ratio].map(Number);
        let comma = if i > 0 { "," } else { "" };
        write!(out, "{comma}\n{{\"ax\":{ax},\"ay\":{ay},\"bx\":{bx},\"by\":{by},\"distance\":{distance},")?;
        write!(out, "\"ratio\":{ratio},\"inlier\":{inlier},\"a\":{a},\"b\":{b}}}")?;
    }
    writeln!(out, "\n]}}")
}

fn colmap(out: &mut impl Write, [first, second]: [&str; 2], rows: &[MatchRow]) -> io::Result<()> {
    writeln!(out, "{first} {second}")?;
    rows.iter().filter(|r| r.inlier).try_for_each(|r| writeln!(out, "{} {}", r.pair.a, r.pair.b))?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Folder;

    #[test]
    fn matches_look_as_documented() {
        let folder = Folder::new("matches");
        let path = |extension: &str| folder.join(format!("a.{extension}"));
        let pair = Match { a: 3, b: 4, distance: 12.0, ratio: f32::NAN };
        let row = MatchRow { pair, a_xy: [1.0, 2.5], b_xy: [0.1, 7.0], inlier: true };
        let rows = [row, MatchRow { pair: Match { ratio: 0.5, ..pair }, inlier: false, ..row }];
        let text = |extension: &str| {
            write_matches(path(extension), ["a \"1\".png", "b.png"], &rows)?;
            Ok::<_, Error>(std::fs::read_to_string(path(extension)).unwrap())
        };
        let csv = "ax,ay,bx,by,distance,ratio,inlier,a,b\n1.0,2.5,0.1,7.0,12.0,NaN,1,3,4\n1.0,2.5,0.1,7.0,12.0,0.5,0,3,4\n";
        assert_eq!(text("csv").unwrap(), csv, "csv");
        let json = "{\"images\":[\"a \\\"1\\\".png\",\"b.png\"],\"matches\":[\n\
                {\"ax\":1.0,\"ay\":2.5,\"bx\":0.1,\"by\":7.0,\"distance\":12.0,\"ratio\":null,\"inlier\":true,\"a\":3,\"b\":4},\n\
                {\"ax\":1.0,\"ay\":2.5,\"bx\":0.1,\"by\":7.0,\"distance\":12.0,\"ratio\":0.5,\"inlier\":false,\"a\":3,\"b\":4}\n]}\n";
        assert_eq!(text("json").unwrap(), json, "json");
        assert!(
            text("txt").unwrap_err().to_string().contains("image name"),
            "a name that COLMAP cannot read"
        );
        write_matches(path("txt"), ["a.png", "b.png"], &rows).unwrap();
        assert_eq!(std::fs::read_to_string(path("txt")).unwrap(), "a.png b.png\n3 4\n\n", "COLMAP");
        assert!(text("xyz").unwrap_err().to_string().contains(".json"), "the known extensions are listed");
    }
}
