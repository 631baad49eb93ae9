//! The part of YAML that OpenCV's `FileStorage` and ROS's `camera_info` files have.
//!
//! Entries of the outermost level are read: `key: number`, `key: [ numbers ]` and `key: !!opencv-matrix` with
//! its indented `rows`, `cols`, `dt` and `data: [ … ]`, which ROS writes without the tag and the type. Programs that dump
//! such a file write the parts in any order, the data as lines `- number`, or all of it as `key: {rows: …, data: […]}`.
//! Texts, lists and other maps are skipped.

use super::document::{Entry, Matrix, MatrixParts, Parsed, Value, number};

/// Lines that are neither blank nor a comment, with their number from 1.
struct Lines<'a> {
    all: Vec<(usize, &'a str)>,
    next: usize,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let all = text.lines().enumerate().map(|(i, l)| (i + 1, l.trim_end()));
        let spoken = |l: &str| !l.is_empty() && !l.trim_start().starts_with('#');
        Self { all: all.filter(|(_, l)| spoken(l)).collect(), next: 0 }
    }

    fn peek(&self) -> Option<(usize, &'a str)> {
        self.all.get(self.next).copied()
    }

    /// The next line if it belongs to the entry before it: indented, or an item of a list.
    fn inner(&mut self) -> Option<(usize, &'a str)> {
        let (line, text) = self.peek()?;
        let within = text.starts_with([' ', '\t']) || text == "-" || text.starts_with("- ");
        within.then(|| {
            self.next += 1;
            (line, text.trim_start())
        })
    }
}

pub(super) fn parse(text: &str) -> Parsed<Vec<Entry>> {
    let mut lines = Lines::new(text);
    let mut entries = vec![];
    while let Some((line, text)) = lines.peek() {
        lines.next += 1;
        if text.starts_with('%') || text == "---" {
            continue;
        }
        if text == "..." {
            break;
        }
        let Some((key, rest)) = text.split_once(':').filter(|(k, _)| !k.starts_with([' ', '\t', '-'])) else {
            return Err(format!("line {line}: expected \"key: value\", found {:?}", shortened(text)));
        };
        let (key, rest) = (unquoted(key.trim()), rest.trim());
        let value = value(key, rest, line, &mut lines)?;
        entries.push(Entry { key: key.into(), value, line });
    }
    Ok(entries)
}

fn value<'a>(key: &str, rest: &'a str, line: usize, lines: &mut Lines<'a>) -> Parsed<Value> {
    if rest == "!!opencv-matrix" {
        return matrix(key, line, lines, MatrixParts::default());
    }
    let untyped = MatrixParts { kind: Some("d".into()), ..MatrixParts::default() };
    let is_part =
        |text: &str| ["rows:", "cols:", "data:"].iter().any(|part| text.trim_start().starts_with(part));
    if rest.is_empty()
        && lines.peek().is_some_and(|(_, inner)| inner.starts_with([' ', '\t']) && is_part(inner))
    {
        return matrix(key, line, lines, untyped);
    }
    if let Some(parts) = rest.strip_prefix('{').filter(|parts| is_part(parts)) {
        return flow_matrix(key, parts, line, lines, untyped);
    }
    if key == "distortion_model" && !matches!(unquoted(rest), "plumb_bob" | "rational_polynomial") {
        return Err(format!("line {line}: the lens is {rest}: only plumb_bob is supported (k1 k2 p1 p2 k3)"));
    }
    if rest.starts_with('[') {
        let words = flow(key, rest, line, lines)?;
        let numbers: Parsed<Vec<f64>> = words.iter().map(|(w, l)| number(w, key, *l)).collect();
        // No calibration needs a list of anything else.
        let numbers = numbers.ok().filter(|n| !n.is_empty());
        return Ok(
            numbers.map_or(Value::Other, |data| Value::Matrix(Matrix { rows: 1, columns: data.len(), data }))
        );
    }
    let mut body = false;
    while lines.inner().is_some() {
        body = true;
    }
    Ok(match rest.parse::<f64>() {
        Ok(v) if v.is_finite() && !body => Value::Number(v),
        _ => Value::Other,
    })
}

fn matrix(key: &str, line: usize, lines: &mut Lines<'_>, mut parts: MatrixParts) -> Parsed<Value> {
    while let Some((at, text)) = lines.inner() {
        let Some((part, rest)) = text.split_once(':') else {
            return Err(format!("line {at}: expected a part of {key}, found {:?}", shortened(text)));
        };
        let rest = rest.trim();
        if part != "data" {
            parts.take(part, unquoted(rest), key, at)?;
            continue;
        }
        let words = if rest.is_empty() { items(lines) } else { flow(key, rest, at, lines)? };
        parts.take_data(words, key, at)?;
    }
    parts.finish(key, line)
}

/// The words of lines `- word`.
fn items<'a>(lines: &mut Lines<'a>) -> Vec<(&'a str, usize)> {
    let mut words = vec![];
    while let Some((line, text)) = lines.peek()
        && let Some(word) = text.trim_start().strip_prefix("- ")
    {
        lines.next += 1;
        words.push((word.trim(), line));
    }
    words
}

/// A matrix as `{rows: 3, cols: 3, data: [ … ]}`, of which `first` is what is behind the brace.
fn flow_matrix(
    key: &str,
    first: &str,
    line: usize,
    lines: &mut Lines<'_>,
    mut parts: MatrixParts,
) -> Parsed<Value> {
    let mut text = first.to_owned();
    while !text.contains('}') {
        let (_, more) = lines.inner().ok_or_else(|| format!("line {line}: {key} has no end }}"))?;
        text = format!("{text} {more}");
    }
    let (mut left, after) = text.split_once('}').unwrap_or((&text, ""));
    if !after.trim().is_empty() {
        return Err(format!("line {line}: {:?} after the }} of {key}", shortened(after)));
    }
    while let Some((part, rest)) = left.split_once(':') {
        let (part, rest) = (part.trim_matches([',', ' ']), rest.trim_start());
        let list = rest.strip_prefix('[').and_then(|list| list.split_once(']'));
        let (value, behind) = list.or_else(|| rest.split_once(',')).unwrap_or((rest, ""));
        let words = || value.split(',').map(|word| (word.trim(), line)).filter(|(word, _)| !word.is_empty());
        match part {
            "data" => parts.take_data(words(), key, line)?,
            _ => parts.take(part, unquoted(value.trim()), key, line)?,
        }
        left = behind;
    }
    parts.finish(key, line)
}

/// The words of `[ a, b, … ]`, which may continue over several lines, with the line of each.
fn flow<'a>(key: &str, first: &'a str, line: usize, lines: &mut Lines<'a>) -> Parsed<Vec<(&'a str, usize)>> {
    let Some(mut text) = first.strip_prefix('[') else {
        return Err(format!("line {line}: data of {key} begin with {:?}, expected [", shortened(first)));
    };
    let mut at = line;
    let mut words = vec![];
    loop {
        let (inside, after) = text.split_once(']').map_or((text, None), |(i, a)| (i, Some(a)));
        let found = inside.split(',').map(str::trim).filter(|w| !w.is_empty());
        words.extend(found.map(|w| (w, at)));
        match after.map(str::trim) {
            Some("") => return Ok(words),
            Some(rest) => return Err(format!("line {at}: {:?} after the ] of {key}", shortened(rest))),
            None => {}
        }
        (at, text) = lines.inner().ok_or_else(|| format!("line {at}: the list of {key} has no end ]"))?;
    }
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text)
}

/// The beginning of a text, for messages.
fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}
