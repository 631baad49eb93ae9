//! The XML that OpenCV's `FileStorage` writes.
//!
//! Children of `<opencv_storage>` are read: `<key>number</key>` and `<key type_id="opencv-matrix">` with its
//! `<rows>`, `<cols>`, `<dt>` and `<data>`. Other children are skipped.

use super::document::{Entry, MatrixParts, Parsed, Value, finite};
use roxmltree::{Document, Node, ParsingOptions};

/// The most elements and texts of a file; real ones have hundreds.
const MAX_NODES: u32 = 1 << 16;

pub(super) fn parse(text: &str) -> Parsed<Vec<Entry>> {
    let options = ParsingOptions { nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    let document =
        Document::parse_with_options(text, options).map_err(|e| format!("not well-formed XML: {e}"))?;
    let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
    let line_of = |node: Node<'_, '_>| starts.partition_point(|&start| start <= node.range().start);
    let root = document.root_element();
    let name = root.tag_name().name();
    if name != "opencv_storage" {
        return Err(format!("line {}: <{name}>, expected <opencv_storage>", line_of(root)));
    }
    if let Some(stray) = stray_text(root) {
        return Err(format!("line {}: text outside of any value", line_of(stray)));
    }
    root.children().filter(Node::is_element).map(|child| entry(child, &line_of)).collect()
}

/// The line that a node begins in, from 1.
type LineOf<'a> = &'a dyn Fn(Node<'_, '_>) -> usize;

/// A child of `node` that is text and not blank.
fn stray_text<'a, 'i>(node: Node<'a, 'i>) -> Option<Node<'a, 'i>> {
    node.children().find(|n| n.is_text() && n.text().is_some_and(|t| !t.trim().is_empty()))
}

fn entry(child: Node<'_, '_>, line_of: LineOf<'_>) -> Parsed<Entry> {
    let (key, line) = (child.tag_name().name(), line_of(child));
    let value = match child.attribute("type_id") {
        Some("opencv-matrix" | "opencv-nd-matrix") => matrix(child, line_of)?,
        _ => text(child).map_or(Value::Other, |text| plain(text.trim())),
    };
    Ok(Entry { key: key.into(), value, line })
}

/// A number, several of them (a sequence), or a text.
fn plain(text: &str) -> Value {
    match text.split_whitespace().map(finite).collect::<Option<Vec<f64>>>() {
        Some(row) if row.len() > 1 => Value::matrix(1, row),
        _ => Value::number_or(text, || Value::Text(text.trim_matches('"').into())),
    }
}

fn matrix(node: Node<'_, '_>, line_of: LineOf<'_>) -> Parsed<Value> {
    let key = node.tag_name().name();
    let wrong = |at: Node<'_, '_>| format!("line {}: expected rows, cols, dt and data in {key}", line_of(at));
    if let Some(stray) = stray_text(node) {
        return Err(wrong(stray));
    }
    let mut parts = MatrixParts::default();
    for part in node.children().filter(Node::is_element) {
        let (name, line) = (part.tag_name().name(), line_of(part));
        let text = text(part).ok_or_else(|| wrong(part))?;
        if name != "data" {
            parts.take(name, text.trim().trim_matches('"'), key, line)?;
            continue;
        }
        parts.take_data(text.split_whitespace().map(|word| (word, line)), key, line)?;
    }
    parts.finish(key, line_of(node))
}

/// The text of an element that holds nothing else.
fn text(node: Node<'_, '_>) -> Option<String> {
    let plain = node.children().all(|n| !n.is_element());
    plain.then(|| node.children().filter(Node::is_text).filter_map(|n| n.text()).collect())
}
