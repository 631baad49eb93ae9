//! `calib.txt` of the Middlebury stereo data: lines of `key=value`.
//!
//! `cam0=[f 0 cx; 0 f cy; 0 0 1]`, `cam1` likewise, `doffs` = cx₁ − cx₀, `baseline`, `width`, `height`,
//! `ndisp` (a bound on the disparities, which start at 0), `vmin` and `vmax` (their exact range). Unknown
//! keys are skipped.

use super::document::{Entry, Parsed, Value, number, shortened};

pub(super) fn parse(text: &str) -> Parsed<Vec<Entry>> {
    let lines = text.lines().enumerate().map(|(i, l)| (i + 1, l.trim()));
    lines.filter(|(_, l)| !l.is_empty() && !l.starts_with('#')).map(|(i, l)| entry(l, i)).collect()
}

fn entry(text: &str, line: usize) -> Parsed<Entry> {
    let wrong = || format!("line {line}: expected key=value, found {:?}", shortened(text));
    let (key, value) = text.split_once('=').ok_or_else(wrong)?;
    let (key, value) = (key.trim(), value.trim());
    let value = match value.strip_prefix('[') {
        Some(rest) => {
            let inside = rest.strip_suffix(']').ok_or_else(|| format!("line {line}: {key} has no end ]"))?;
            matrix(inside, key, line)?
        }
        None => Value::number_or(value, || Value::Other),
    };
    Ok(Entry { key: key.into(), value, line })
}

fn matrix(text: &str, key: &str, line: usize) -> Parsed<Value> {
    let mut rows: Vec<Vec<f64>> = vec![];
    for row in text.split(';') {
        let words = row.split([' ', ',', '\t']).filter(|w| !w.is_empty());
        let row = words.map(|word| number(word, key, line)).collect::<Parsed<Vec<_>>>()?;
        if row.is_empty() || rows.first().is_some_and(|first| first.len() != row.len()) {
            return Err(format!("line {line}: the rows of {key} are not of one length"));
        }
        rows.push(row);
    }
    Ok(Value::matrix(rows.len(), rows.concat()))
}
