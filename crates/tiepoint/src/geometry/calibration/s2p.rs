//! `disp_min_max.txt` of s2p: two numbers, the least and the greatest disparity of an affine pair. s2p adds a disparity
//! to x, so the sign is the opposite of that here.

use super::document::{Entry, Value, finite};

/// The range that a text holds, with the sign that disparities have here, under the names that a `calib.txt` gives; `None`
/// if it is another file.
pub(super) fn entries(text: &str) -> Option<Vec<Entry>> {
    let numbers: Vec<f64> = text.split_whitespace().map(finite).collect::<Option<_>>()?;
    let [low, high] = numbers[..] else { return None };
    let keys = [("affine", 1.0), ("vmin", 0.0 - high), ("vmax", 0.0 - low)];
    Some(keys.map(|(key, v)| Entry { key: key.into(), value: Value::Number(v), line: 1 }).to_vec())
}

/// The text of the file of a range.
pub(super) fn text([low, high]: [f64; 2]) -> String {
    format!("{}\n{}\n", 0.0 - high, 0.0 - low)
}
