//! `calib.txt` of the Middlebury stereo data: lines of `key=value`.
//!
//! `cam0=[f 0 cx; 0 f cy; 0 0 1]`, `cam1` likewise, `doffs` = cx₁ − cx₀, `baseline`, `width`, `height`,
//! `ndisp` (a bound on the disparities, which start at 0), `vmin` and `vmax` (their exact range). Unknown
//! keys are skipped.

use super::document::{Entry, Matrix, Parsed, Value, number};

pub(super) fn parse(text: &str) -> Parsed<Vec<Entry>> {
    let lines = text.lines().enumerate().map(|(i, l)| (i + 1, l.trim()));
    lines.filter(|(_, l)| !l.is_empty() && !l.starts_with('#')).map(|(i, l)| entry(l, i)).collect()
}

fn entry(text: &str, line: usize) -> Parsed<Entry> {
    let shown = || text.chars().take(40).collect::<String>();
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| format!("line {line}: expected key=value, found {:?}", shown()))?;
    let (key, value) = (key.trim(), value.trim());
    let value = match value.strip_prefix('[') {
        Some(rest) => {
            let inside = rest.strip_suffix(']').ok_or_else(|| format!("line {line}: {key} has no end ]"))?;
            Value::Matrix(matrix(inside, key, line)?)
        }
        None => value.parse().ok().filter(|v: &f64| v.is_finite()).map_or(Value::Other, Value::Number),
    };
    Ok(Entry { key: key.into(), value, line })
}

fn matrix(text: &str, key: &str, line: usize) -> Parsed<Matrix> {
    let mut data = vec![];
    let (mut rows, mut columns) = (0, 0);
    for row in text.split(';') {
        let before = data.len();
        for word in row.split([' ', ',', '\t']).filter(|w| !w.is_empty()) {
            data.push(number(word, key, line)?);
        }
        let n = data.len() - before;
        if n == 0 || (rows > 0 && n != columns) {
            return Err(format!("line {line}: the rows of {key} are not of one length"));
        }
        (rows, columns) = (rows + 1, n);
    }
    Ok(Matrix { rows, columns, data })
}
