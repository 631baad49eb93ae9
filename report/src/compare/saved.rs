//! What is read from a page that was saved.

use crate::Detail;
use crate::page::{Kind, Render};
use crate::picture::Embedded;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use tiepoint::files::read_within;
use tiepoint::image::Size;
use tiepoint::{Error, Result};

/// The largest page that is read.
const LARGEST: u64 = 1 << 30;

/// What is read from a page.
#[derive(Debug)]
pub(super) struct SavedPage {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) made: String,
    pub(super) figures: Value,
    pub(super) views: Vec<Value>,
    /// The address of each picture, by its id.
    pub(super) pictures: HashMap<String, String>,
}

/// A view of a page that was read, and its still picture.
#[derive(Clone, Debug)]
pub struct SavedView {
    pub(crate) kind: &'static Kind,
    pub(super) still: String,
    pub(super) data: Value,
}

impl Render for SavedView {
    fn render(&self, _: &str, _: Detail) -> Result<(String, Value)> {
        Ok((self.still.clone(), self.data.clone()))
    }
}

impl SavedPage {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let name =
            path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
        let expected = "a page that --report of this version has written";
        let foreign =
            |what: &str| Error::Mismatch(format!("{}: {what}: expected {expected}", path.display()));
        let text = read_within(path, LARGEST, expected)?;
        let text = String::from_utf8(text).map_err(|_| foreign("not a text in UTF-8"))?;
        let between = |from: &str, to: &str| {
            let rest = &text[text.find(from)? + from.len()..];
            Some(&rest[..rest.find(to)?])
        };
        let plain = |text: &str| html_escape::decode_html_entities(text).into_owned();
        let data = between("<script type=\"application/json\" id=\"data\">", "</script>");
        let mut data: Value =
            data.and_then(|data| serde_json::from_str(data).ok()).ok_or_else(|| foreign("no data"))?;
        let Some(Value::Array(views)) = data.get_mut("views").map(Value::take) else {
            return Err(foreign("no views"));
        };
        if views.is_empty() {
            return Err(foreign("nothing to compare in it"));
        }
        if views.iter().any(|view| {
            !view["runs"].is_null() || !view["before"].is_null() || !view["pairs"]["runs"].is_null()
        }) {
            return Err(foreign("a comparison itself"));
        }
        let figures = data.get_mut("figures").map(Value::take);
        let figures = figures.ok_or_else(|| foreign("an older page, without figures"))?;
        let mut pictures = HashMap::new();
        for part in text.split("<image id=\"").skip(1) {
            let end = part.find('>').unwrap_or(part.len());
            let (Some(quote), Some(at)) = (part.find('"'), part[..end].find("href=\"")) else { continue };
            let url = &part[at + 6..];
            let url = &url[..url.find('"').unwrap_or(url.len())];
            let known = url.strip_prefix("data:image/jpeg;base64,");
            if known
                .is_some_and(|data| data.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b)))
            {
                pictures.insert(part[..quote].to_owned(), url.to_owned());
            }
        }
        let title = between("<h1><bdi>", "</bdi>").map(plain).unwrap_or_default();
        let made = between("<h2>How this was made</h2>\n<pre class=\"command\">", "</pre>");
        let made = made.map(plain).unwrap_or_default();
        Ok(Self { title, made, name, figures, views, pictures })
    }

    /// The error that something is wrong with this page.
    pub(super) fn fault(&self, what: &str) -> Error {
        Error::Mismatch(format!("{}: {what}", self.name))
    }

    /// The verdict with the reasons that are not good.
    pub(super) fn verdict(&self) -> Option<String> {
        let verdict = self.figures["verdict"].as_str()?;
        let reasons = self.figures["reasons"].as_array().map_or(&[][..], Vec::as_slice);
        let bad = reasons.iter().filter(|reason| reason["verdict"] != "good");
        let told: Vec<&str> = bad.filter_map(|reason| reason["text"].as_str()).collect();
        Some(if told.is_empty() { verdict.to_owned() } else { format!("{verdict}: {}", told.join("; ")) })
    }

    /// A picture of a view, as the page holds it; `id` is its element on the new page.
    pub(super) fn picture(&self, described: &Value, id: &str) -> Result<Embedded> {
        let number = |key: &str| described[key].as_u64().map(|n| n as usize);
        let known = described["id"].as_str().and_then(|id| self.pictures.get(id));
        let (Some(width), Some(height), Some(step), Some(url)) =
            (number("width"), number("height"), number("step").filter(|s| *s > 0), known)
        else {
            return Err(self.fault("a picture is not in the file"));
        };
        let mut described = described.clone();
        described["id"] = id.into();
        let covers = [width, height].map(|n| n.div_ceil(step) * step);
        Ok(Embedded { described, url: url.clone(), size: Size::new(width, height), covers })
    }
}
