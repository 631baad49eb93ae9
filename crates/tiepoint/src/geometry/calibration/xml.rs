//! The XML that OpenCV's `FileStorage` writes, and nothing more of XML.
//!
//! Children of `<opencv_storage>` are read: `<key>number</key>` and `<key type_id="opencv-matrix">` with its
//! `<rows>`, `<cols>`, `<dt>` and `<data>`. Anything else is stepped over, as long as its tags match.

use super::document::{Entry, MatrixParts, Parsed, Value, number};

/// Tags inside tags, at most.
const MAX_DEPTH: usize = 32;

enum Token<'a> {
    Open { name: &'a str, attributes: &'a str, closed: bool },
    Close(&'a str),
    Text(&'a str),
}

/// Cuts a text into tags and what stands between them.
struct Tokens<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Tokens<'a> {
    /// The next token and the line that it starts in; `None` at the end.
    fn next(&mut self) -> Parsed<Option<(Token<'a>, usize)>> {
        loop {
            let line = self.line;
            if self.rest.is_empty() {
                return Ok(None);
            }
            let Some(tag) = self.rest.strip_prefix('<') else {
                let text = self.take(self.rest.find('<').unwrap_or(self.rest.len()), 0);
                return Ok(Some((Token::Text(text), line)));
            };
            let (end, skip) = match tag {
                t if t.starts_with("!--") => ("-->", true),
                t if t.starts_with('?') => ("?>", true),
                t if t.starts_with('!') => return Err(format!("line {line}: <! is not read")),
                _ => (">", false),
            };
            let length = self.rest.find(end).ok_or_else(|| format!("line {line}: a tag has no end {end}"))?;
            let body = &self.take(length, end.len())[1..];
            if skip {
                continue;
            }
            if let Some(name) = body.strip_prefix('/') {
                return Ok(Some((Token::Close(name.trim()), line)));
            }
            let (body, closed) = body.strip_suffix('/').map_or((body, false), |b| (b, true));
            let (name, attributes) = body.split_once(char::is_whitespace).unwrap_or((body, ""));
            if name.is_empty() {
                return Err(format!("line {line}: a tag has no name"));
            }
            return Ok(Some((Token::Open { name, attributes, closed }, line)));
        }
    }

    /// The next `length` bytes; `more` after them are dropped.
    fn take(&mut self, length: usize, more: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.line += self.rest[..length + more].matches('\n').count();
        self.rest = &rest[more..];
        taken
    }
}

/// A child of `<opencv_storage>` under way.
struct Child<'a> {
    name: &'a str,
    line: usize,
    /// Of an `opencv-matrix`.
    parts: Option<MatrixParts>,
    text: String,
    /// It has children of its own.
    nested: bool,
}

pub(super) fn parse(text: &str) -> Parsed<Vec<Entry>> {
    let mut tokens = Tokens { rest: text, line: 1 };
    let mut open: Vec<&str> = vec![];
    let mut child: Option<Child<'_>> = None;
    let mut entries = vec![];
    let mut complete = false;
    while let Some((token, line)) = tokens.next()? {
        match token {
            Token::Text(text) if open.len() < 2 => {
                if !text.trim().is_empty() {
                    return Err(format!("line {line}: text outside of any value"));
                }
            }
            Token::Text(text) => inside(&mut child, &open, text, line)?,
            Token::Open { name, .. } if open.is_empty() && (name != "opencv_storage" || complete) => {
                return Err(format!("line {line}: <{name}>, expected one <opencv_storage>"));
            }
            Token::Open { name, attributes, closed } => {
                match open.len() {
                    0 => {}
                    1 => child = Some(Child::new(name, attributes, line)),
                    MAX_DEPTH => return Err(format!("line {line}: tags are nested deeper than {MAX_DEPTH}")),
                    _ => child.iter_mut().for_each(|c| c.nested = true),
                }
                open.push(name);
                if closed {
                    close(&mut open, &mut child, &mut entries)?;
                }
            }
            Token::Close(name) => {
                if open.last() != Some(&name) {
                    return Err(format!("line {line}: </{name}> closes nothing"));
                }
                close(&mut open, &mut child, &mut entries)?;
            }
        }
        complete |= open.is_empty() && !entries.is_empty();
    }
    match open.last() {
        Some(name) => Err(format!("line {}: <{name}> is not closed; the file is truncated", tokens.line)),
        None => Ok(entries),
    }
}

impl<'a> Child<'a> {
    fn new(name: &'a str, attributes: &str, line: usize) -> Self {
        let kind = attributes.split_once("type_id").map(|(_, v)| v.trim_start_matches(['=', ' ']));
        let matrix =
            kind.is_some_and(|k| k.starts_with("\"opencv-matrix\"") || k.starts_with("'opencv-matrix'"));
        Self { name, line, parts: matrix.then(MatrixParts::default), text: String::new(), nested: false }
    }

    fn finish(self) -> Parsed<Entry> {
        let value = match self.parts {
            Some(parts) => parts.finish(self.name, self.line)?,
            None => match self.text.trim().parse::<f64>() {
                Ok(v) if v.is_finite() && !self.nested => Value::Number(v),
                _ => Value::Other,
            },
        };
        Ok(Entry { key: self.name.into(), value, line: self.line })
    }
}

/// Text inside a child, or inside a part of one.
fn inside(child: &mut Option<Child<'_>>, open: &[&str], text: &str, line: usize) -> Parsed<()> {
    let Some(child) = child else { return Ok(()) };
    let Some(parts) = &mut child.parts else {
        child.text.push_str(text);
        return Ok(());
    };
    let (name, word) = (child.name, text.trim());
    match open {
        [_, _] if word.is_empty() => Ok(()),
        [_, _, "data"] => {
            let data: Parsed<Vec<f64>> = word.split_whitespace().map(|w| number(w, name, line)).collect();
            match parts.data.replace(data?) {
                Some(_) => Err(format!("line {line}: {name} has data twice")),
                None => Ok(()),
            }
        }
        [_, _, part] => parts.take(part, word.trim_matches('"'), name, line),
        _ => Err(format!("line {line}: expected rows, cols, dt and data in {name}")),
    }
}

fn close<'a>(open: &mut Vec<&str>, child: &mut Option<Child<'a>>, entries: &mut Vec<Entry>) -> Parsed<()> {
    open.pop();
    if open.len() == 1 {
        entries.extend(child.take().map(Child::finish).transpose()?);
    }
    Ok(())
}
