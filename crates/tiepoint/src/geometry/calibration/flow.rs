//! Values in braces and brackets: the JSON of OpenCV's `FileStorage`, YAML that a program dumped in flow style, and such parts
//! of other YAML. A map with rows and data is a matrix; a list of numbers is a row, a list of such rows a matrix. Anything
//! else is stepped over.

use super::document::{Entry, MatrixParts, Parsed, Value, finite, shortened};

/// How deep braces and brackets may be nested; calibrations have three levels.
const DEEPEST: usize = 32;

/// A value; words and keys come with their line.
enum Node<'a> {
    Word(&'a str, usize),
    List(Vec<Self>),
    Map(Vec<(&'a str, usize, Self)>),
}

/// The entries of a file that begins with a brace. Text after `---`, such as ROS's next message, is not read.
pub(super) fn parse(text: &str) -> Parsed<Vec<Entry>> {
    let Node::Map(parts) = whole(text, 1)? else { return Err("expected { and a key".into()) };
    let entry =
        |(key, line, node)| Ok(Entry { key: String::from(key), value: of_node(key, node, line)?, line });
    parts.into_iter().map(entry).collect()
}

/// The value of a key whose text begins in this line.
pub(super) fn value(key: &str, text: &str, line: usize) -> Parsed<Value> {
    of_node(key, whole(text, line)?, line)
}

/// The words of the list of a key, with their lines.
pub(super) fn words<'a>(key: &str, text: &'a str, line: usize) -> Parsed<Vec<(&'a str, usize)>> {
    match whole(text, line)? {
        Node::List(items) => Ok(items.iter().map(Node::word).collect()),
        Node::Word(..) | Node::Map(_) => Err(format!("line {line}: data of {key}: expected [")),
    }
}

fn whole(text: &str, line: usize) -> Parsed<Node<'_>> {
    let mut reader = Reader { rest: text, line };
    let node = reader.node(0)?;
    reader.skip();
    match reader.rest {
        rest if rest.is_empty() || rest.starts_with("---") => Ok(node),
        rest => {
            let end = if text.trim_start().starts_with('[') { ']' } else { '}' };
            Err(format!("line {}: {:?} after the {end}", reader.line, shortened(rest)))
        }
    }
}

fn of_node(key: &str, node: Node<'_>, line: usize) -> Parsed<Value> {
    let numbers =
        |words: &[Node<'_>]| words.iter().map(|node| finite(node.word().0)).collect::<Option<Vec<f64>>>();
    let has = |parts: &[(&str, usize, Node<'_>)], part: &str| parts.iter().any(|p| p.0 == part);
    let rows = match node {
        Node::Word(word, _) => return Ok(Value::number_or(word, || Value::Text(word.into()))),
        Node::Map(parts) if has(&parts, "data") && (has(&parts, "rows") || has(&parts, "sizes")) => {
            return matrix(key, parts, line);
        }
        Node::Map(_) => None,
        Node::List(words) => match numbers(&words) {
            Some(row) => Some(vec![row]),
            None => {
                words.iter().map(|row| if let Node::List(row) = row { numbers(row) } else { None }).collect()
            }
        },
    };
    let even =
        |rows: &Vec<Vec<f64>>| !rows[0].is_empty() && rows.iter().all(|row| row.len() == rows[0].len());
    let rows = rows.filter(even);
    Ok(rows.map_or(Value::Other, |rows: Vec<Vec<f64>>| Value::matrix(rows.len(), rows.concat())))
}

fn matrix(key: &str, nodes: Vec<(&str, usize, Node<'_>)>, line: usize) -> Parsed<Value> {
    let mut parts = MatrixParts::default();
    for (part, at, node) in nodes {
        match (part, node) {
            ("type_id", _) => {}
            ("data", Node::List(words)) => parts.take_data(words.iter().map(Node::word), key, at)?,
            ("sizes", Node::List(words)) => {
                let words: Vec<&str> = words.iter().map(|word| word.word().0).collect();
                parts.take("sizes", &words.join(" "), key, at)?;
            }
            (part, Node::Word(word, at)) => parts.take(part, word, key, at)?,
            _ => return Err(format!("line {at}: {part} of {key} is no number")),
        }
    }
    parts.kind.get_or_insert_with(|| "d".into());
    parts.finish(key, line)
}

impl<'a> Node<'a> {
    /// The word, with its line; for a list or a map its opening bracket, which does not parse as a number.
    fn word(&self) -> (&'a str, usize) {
        match self {
            Self::Word(word, line) => (word, *line),
            Self::List(items) => ("[", items.first().map_or(0, |item| item.word().1)),
            Self::Map(parts) => ("{", parts.first().map_or(0, |part| part.1)),
        }
    }
}

/// What is left of a text, and its line.
struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Reader<'a> {
    /// Takes the next `bytes` bytes.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    /// Steps over white space and comments.
    fn skip(&mut self) {
        loop {
            self.take(self.rest.len() - self.rest.trim_start().len());
            if !self.rest.starts_with('#') {
                return;
            }
            self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
    }

    fn node(&mut self, depth: usize) -> Parsed<Node<'a>> {
        self.skip();
        let line = self.line;
        if depth > DEEPEST {
            return Err(format!("line {line}: more than {DEEPEST} brackets within each other"));
        }
        match self.rest.chars().next() {
            Some('[') => self.items(']', |reader| reader.node(depth + 1)).map(Node::List),
            Some('{') => {
                let parts = self.items('}', |reader| {
                    let (line, key) = (reader.line, reader.word()?);
                    reader.skip();
                    if !reader.rest.starts_with(':') {
                        return Err(format!("line {line}: expected \"key: value\", found {key:?}"));
                    }
                    reader.take(1);
                    reader.skip();
                    let none = reader.rest.starts_with([',', '}']);
                    Ok((key, line, if none { Node::Word("", line) } else { reader.node(depth + 1)? }))
                });
                parts.map(Node::Map)
            }
            _ => Ok(Node::Word(self.word()?, line)),
        }
    }

    /// Reads what stands between brackets, separated by commas.
    fn items<T>(&mut self, end: char, item: impl Fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let (begun, mut separated, mut items) = (self.line, true, vec![]);
        self.take(1);
        loop {
            self.skip();
            match self.rest.chars().next() {
                Some(c) if c == end => {
                    self.take(1);
                    return Ok(items);
                }
                Some(',') => {
                    self.take(1);
                    separated = true;
                }
                Some(c) if c != ']' && c != '}' && std::mem::take(&mut separated) => items.push(item(self)?),
                Some(c) => return Err(format!("line {}: expected , or {end}, found {c:?}", self.line)),
                None => return Err(format!("line {begun}: what begins here has no end {end}")),
            }
        }
    }

    /// A word in quotes, or up to a sign that ends it.
    fn word(&mut self) -> Parsed<&'a str> {
        let line = self.line;
        if let Some(quote @ ('"' | '\'')) = self.rest.chars().next() {
            self.take(1);
            let mut escaped = false;
            let end = self.rest.find(|c| {
                let ends = c == quote && !escaped;
                escaped = c == '\\' && !escaped && quote == '"';
                ends
            });
            let word = self.take(end.ok_or_else(|| format!("line {line}: a text without its end {quote}"))?);
            self.take(1);
            return Ok(word);
        }
        let colon = |i: usize| self.rest[i + 1..].chars().next().is_none_or(char::is_whitespace);
        let ends = |(i, c): &(usize, char)| {
            matches!(c, ',' | '[' | ']' | '{' | '}' | '\n') || *c == ':' && colon(*i)
        };
        let end = self.rest.char_indices().find(ends).map_or(self.rest.len(), |(i, _)| i);
        match self.take(end).trim_end() {
            "" => Err(format!("line {line}: expected a word, found {:?}", self.rest.chars().next())),
            word => Ok(word),
        }
    }
}
