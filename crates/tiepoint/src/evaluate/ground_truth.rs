//! Ground truth from files: homographies.

use crate::files::read_text;
use crate::geometry::Homography;
use crate::{Error, Result};
use std::path::Path;

/// The homography in the file at `path`, as nine numbers row by row: in OpenCV XML or YAML that holds one matrix
/// (`<data>…</data>` or `data: […]`), as `"matrix"` in JSON (what `tiepoint match` prints by `--json` or writes), or in
/// plain text (the `H1to2p` files of the Oxford sequences).
///
/// # Errors
/// [`Error::Io`] when the file cannot be read, [`Error::Format`] when it does not hold nine finite numbers
/// that make an invertible matrix.
pub fn read_homography(path: impl AsRef<Path>) -> Result<Homography> {
    let path = path.as_ref();
    parse_homography(&read_text(path, "the nine numbers of a homography")?, path)
}

/// The homography in `text`, the content of such a file; errors call it `name`.
///
/// # Errors
/// As [`read_homography`].
pub fn parse_homography(text: &str, name: impl AsRef<Path>) -> Result<Homography> {
    numbers(text).map_err(|reason| Error::format(name.as_ref(), reason))
}

fn numbers(text: &str) -> std::result::Result<Homography, String> {
    let text = text.trim_start_matches('\u{feff}');
    let inside = |open: &str, close: &str| Some(text.split_once(open)?.1.split_once(close)?.0);
    let xml = inside("<data>", "</data>");
    if xml.is_none() && text.contains("<opencv_storage>") {
        return Err("the OpenCV XML has no complete <data>".into());
    }
    let yaml = || inside("data:", "]")?.split_once('[').map(|(_, d)| d);
    let stored = xml.or_else(yaml);
    let opens = |line: &&str| line.trim_start().starts_with("data:");
    let matrices = text.matches("<data>").count().max(text.lines().filter(opens).count());
    if stored.is_some() && matrices > 1 {
        return Err(format!("{matrices} matrices, expected a file with one"));
    }
    let json = if stored.is_none() { of_json(text)? } else { None };
    let written = json.or_else(|| printed(text).filter(|_| stored.is_none()));
    // `repr` of NumPy's array has its name around the numbers, and their type behind them.
    let named = text.trim().strip_prefix("array(").and_then(|rest| rest.rsplit_once("]]"));
    let text = named.map_or(text, |(matrix, _)| matrix);
    let data = stored.or(written.as_deref()).unwrap_or(text);
    let number = |word: &str| {
        let number = word.parse::<f64>().ok().filter(|v| v.is_finite());
        number.ok_or_else(|| format!("{word:?} is not a finite number"))
    };
    let numbers = words(data).map(number).collect::<std::result::Result<Vec<f64>, String>>()?;
    let [a, b, c, d, e, f, g, h, i] = numbers[..] else {
        return Err(format!("{} numbers, expected the 9 of a homography", numbers.len()));
    };
    let found = Homography::new([[a, b, c], [d, e, f], [g, h, i]]);
    found.map_err(|e| format!("the matrix cannot be inverted: {e}"))
}

/// The words of a text. NumPy's has brackets around rows, which are dropped.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || ",;[]".contains(c)).filter(|w| !w.is_empty())
}

/// The numbers of `"matrix"` in JSON, in one list or row by row; an error for fundamental and essential matrices.
fn of_json(text: &str) -> std::result::Result<Option<String>, String> {
    let Ok(all) = serde_json::from_str::<serde_json::Value>(text) else { return Ok(None) };
    if let Some(model @ ("fundamental" | "essential")) = all["model"].as_str() {
        return Err(format!(
            "holds a {model} matrix: expected a homography; match with `--model homography`"
        ));
    }
    let Some(matrix) = all["matrix"].as_array() else { return Ok(None) };
    let numbers = matrix.iter().flat_map(|v| v.as_array().map_or(std::slice::from_ref(v), Vec::as_slice));
    Ok(Some(numbers.map(ToString::to_string).collect::<Vec<_>>().join(" ")))
}

/// The matrix in what `match` prints: three lines of three numbers, among lines of words.
fn printed(text: &str) -> Option<String> {
    let is_number = |word: &str| word.parse::<f64>().is_ok();
    let rows: Vec<&str> = text.lines().filter(|line| words(line).all(is_number)).collect();
    let lengths: Vec<usize> = rows.iter().map(|row| words(row).count()).filter(|n| *n > 0).collect();
    (lengths == [3; 3]).then(|| rows.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const H: [[f64; 3]; 3] = [
        [0.879_769_64, 0.312_454_38, -39.430_589],
        [-0.183_894_18, 0.938_471_98, 153.157_84],
        [1.9e-4, -1.6e-5, 1.0],
    ];

    fn parsed(text: &str) -> std::result::Result<[[f64; 3]; 3], String> {
        parse_homography(text, "test").map(|found| found.matrix()).map_err(|e| e.to_string())
    }

    #[test]
    fn every_form_is_read() {
        let matrix = H.map(|row| row.map(|v| format!("{v:e}")));
        let words = matrix.concat();
        let rows = format!("{}\n{}\n{}\n", matrix[0].join(" "), matrix[1].join("\t"), matrix[2].join("  "));
        assert_eq!(parsed(&rows), Ok(H), "text");
        assert_eq!(parsed(&words.join(",")), Ok(H), "commas");
        let printed = format!("a 1.png - b.png: 5 of 7 matches agree, 3.1 ms\n{rows}device cpu\n");
        assert_eq!(parsed(&printed), Ok(H), "as `match` prints it");
        assert!(parsed(&format!("words\n{rows}{rows}")).is_err(), "two matrices");
        assert_eq!(parsed(&format!("\u{feff}{rows}")), Ok(H), "with a byte order mark");
        let numpy = format!("[[{}]]\n", matrix.each_ref().map(|row| row.join(" ")).join("]\n ["));
        assert_eq!(parsed(&numpy), Ok(H), "as NumPy prints it");
        let [a, b, c] = matrix.each_ref().map(|row| row.join(", "));
        let repr = format!("array([[{a}],\n       [{b}],\n       [{c}]], dtype=float32)");
        assert_eq!(parsed(&repr), Ok(H), "as NumPy's repr has it");
        assert!(parsed(&format!("{repr}\n{repr}")).is_err(), "two of them");
        let xml = format!(
            "<opencv_storage><H12><rows>3</rows><dt>d</dt><data>\n{rows}</data></H12></opencv_storage>"
        );
        assert_eq!(parsed(&xml), Ok(H), "XML");
        let yaml = format!("%YAML:1.0\nH: !!opencv-matrix\n  rows: 3\n  data: [ {} ]\n", words.join(", "));
        assert_eq!(parsed(&yaml), Ok(H), "YAML");
        assert!(parsed(&(yaml.clone() + &yaml)).unwrap_err().contains("2 matrices"), "two matrices in YAML");
        let rows = matrix.map(|row| format!("[{}]", row.join(", ")));
        for matrix in [words.join(", "), rows.join(",\n")] {
            let json = format!("{{\"sizes\": [[8, 6], [8, 6]], \"matrix\": [{matrix}], \"matches\": []}}");
            assert_eq!(parsed(&json), Ok(H), "JSON: {json}");
        }
    }

    #[test]
    fn anything_else_is_an_error() {
        assert!(parsed("1 0 0 0 1 0 0 0").unwrap_err().contains("8 numbers"), "too few");
        assert!(parsed("1 0 0 0 1 0 0 0 1 0").unwrap_err().contains("10 numbers"), "too many");
        assert!(parsed("1 0 5\n0 1 7\n0 0 1\n9\n").unwrap_err().contains("10 numbers"), "one behind rows");
        for model in ["fundamental", "essential"] {
            let json = format!("{{\"model\": \"{model}\", \"matrix\": [0, 0, 5, 0, 0, 7, 1, 2, 0]}}");
            assert!(parsed(&json).unwrap_err().contains(&format!("holds a {model} matrix")), "{model}");
        }
        assert!(parsed("1 0 0 0 x 0 0 0 1").unwrap_err().contains("\"x\""), "no number");
        assert!(parsed("1 0 0 0 inf 0 0 0 1").unwrap_err().contains("finite"), "infinite");
        assert!(parsed("1 2 3 2 4 6 0 0 1").unwrap_err().contains("inverted"), "singular");
        assert!(parsed("").unwrap_err().contains("0 numbers"), "empty");
        assert!(parsed("<opencv_storage><data>1 2").unwrap_err().contains("<data>"), "truncated");
    }

    #[test]
    fn shared_ground_truth_is_read() {
        let Some(file) = crate::image::testing::shared("homography/graf/H1to2p.xml") else { return };
        let h = read_homography(file).unwrap().matrix();
        assert_eq!((h[0][0], h[1][2], h[2][2]), (8.797_696_4e-1, 1.531_578_4e2, 1.0), "graf 1-2");
    }
}
