//! The part of YAML that OpenCV's `FileStorage` and ROS's `camera_info` files have.
//!
//! Entries of the outermost level are read: `key: number`, `key: [ numbers ]` and `key: !!opencv-matrix` with
//! its indented `rows`, `cols`, `dt` and `data: [ … ]`, which ROS writes without the tag and the type. Programs that dump
//! such a file write the parts in any order, numbers as lines `- number`, or a part of it in braces ([`flow`]).
//! Other lists and maps are skipped, and so is what follows the first of several messages of ROS.

use super::document::{Entry, MatrixParts, Parsed, Value, finite, shortened, without_comment};
use super::flow;

/// Lines that are neither blank nor a comment, with their number from 1.
struct Lines<'a> {
    all: Vec<(usize, &'a str)>,
    next: usize,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let all = text.lines().enumerate().map(|(i, l)| (i + 1, without_comment(l)));
        Self { all: all.filter(|(_, l)| !l.is_empty()).collect(), next: 0 }
    }

    fn peek(&self) -> Option<(usize, &'a str)> {
        self.all.get(self.next).copied()
    }

    /// The next line if it continues the current entry: indented, or an item of a list.
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
        if text == "..." || text == "---" && !entries.is_empty() {
            break;
        }
        if text.starts_with('%') || text == "---" {
            continue;
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
    if matches!(rest, "!!opencv-matrix" | "!!opencv-nd-matrix") {
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
    if rest.starts_with(['[', '{']) {
        return flow::value(key, &in_brackets(rest, line, lines), line);
    }
    let (listed, rows) = if rest.is_empty() { items(lines) } else { (vec![], 0) };
    let body = std::iter::from_fn(|| lines.inner()).count() > 0;
    if !listed.is_empty() && !body {
        let numbers: Option<Vec<f64>> = listed.iter().map(|(word, _)| finite(word)).collect();
        let even = numbers.filter(|all| rows == 0 || all.len().is_multiple_of(rows));
        return Ok(even.map_or(Value::Other, |all| Value::matrix(rows.max(1), all)));
    }
    let text = || Value::Text(unquoted(rest).into());
    Ok(if body { text() } else { Value::number_or(rest, text) })
}

/// A text that begins with a bracket, with the lines that follow up to its end.
fn in_brackets(first: &str, line: usize, lines: &mut Lines<'_>) -> String {
    let depth = |text: &str| {
        let count = |brackets: [char; 2]| text.matches(brackets).count() as i64;
        count(['[', '{']) - count([']', '}'])
    };
    let (mut text, mut last, mut open) = (first.to_owned(), line, depth(first));
    while open > 0
        && let Some((at, more)) = lines.inner()
    {
        text += &"\n".repeat(at - last);
        text += more;
        (last, open) = (at, open + depth(more));
    }
    text
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
        let text = in_brackets(rest, at, lines);
        let words = if rest.is_empty() { items(lines).0 } else { flow::words(key, &text, at)? };
        parts.take_data(words, key, at)?;
    }
    parts.finish(key, line)
}

/// The words of lines `- word`, and the number of lists if they are lists within a list, each begun by `- - word`.
fn items<'a>(lines: &mut Lines<'a>) -> (Vec<(&'a str, usize)>, usize) {
    let (mut words, mut rows) = (vec![], 0);
    while let Some((line, text)) = lines.peek()
        && let Some(word) = text.trim_start().strip_prefix("- ")
    {
        lines.next += 1;
        let first = word.trim_start().strip_prefix("- ");
        rows += usize::from(first.is_some());
        words.push((first.unwrap_or(word).trim(), line));
    }
    (words, rows)
}

fn unquoted(text: &str) -> &str {
    let within = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    within('"').or_else(|| within('\'')).unwrap_or(text)
}
