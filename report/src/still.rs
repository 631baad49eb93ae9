//! Still pictures: SVG for readers without JavaScript, which also holds the pictures for the script.

use crate::picture::Embedded;
use html_escape::encode_double_quoted_attribute as attribute;

/// An SVG of this size, in pixels of the pictures.
pub(crate) fn svg(width: f64, height: f64, label: &str, content: &str) -> String {
    format!(
        "<svg class=\"still\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\" \
         preserveAspectRatio=\"xMidYMid meet\">{content}</svg>",
        attribute(label)
    )
}

pub(crate) fn image(picture: &Embedded, x: f64, more: &str) -> String {
    let (id, [width, height]) = (picture.text("id"), picture.covers);
    format!(
        "<image id=\"{id}\" x=\"{x}\" y=\"0\" width=\"{width}\" height=\"{height}\" \
         preserveAspectRatio=\"none\" {more} href=\"{}\"/>",
        picture.url
    )
}

pub(crate) fn colour([r, g, b]: crate::Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}
