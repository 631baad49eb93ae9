//! Two runs on one page: what two saved pages of one kind have in common, and where they differ.
//!
//! A page holds its pictures, data and figures, so a comparison needs nothing else. Only pictures are taken from
//! the mark-up of a page, as base 64; everything else is read from its JSON and written anew.

mod collection;
mod figures;
mod matches;
mod pictures;
mod saved;

pub use saved::SavedView;

use crate::counted;
use crate::page::{Report, Section, View};
use figures::{flat, rows};
use saved::SavedPage;
use serde_json::{Value, json};
use std::path::Path;
use tiepoint::{Error, Result};

/// Codes for the script: a match, disparity or pair is in both runs, only in the one before, or only in the one after.
const BOTH: u8 = 0;
const LOST: u8 = 1;
const GAINED: u8 = 2;

/// Two runs compared.
#[derive(Debug)]
pub struct Comparison {
    /// The page.
    pub report: Report<'static>,
    /// The differences of figures and views, for `--json`.
    pub described: Value,
    /// The result in a sentence.
    pub said: String,
}

impl Comparison {
    /// Compares two pages that were written by this version.
    ///
    /// # Errors
    /// [`Error::Io`] for a file that cannot be read, and [`Error::Mismatch`] for one that is no such page, and for pages
    /// that show other kinds of results, or pictures of other sizes.
    pub fn new(before: impl AsRef<Path>, after: impl AsRef<Path>) -> Result<Self> {
        let [before, after] = [SavedPage::read(before.as_ref())?, SavedPage::read(after.as_ref())?];
        let [a, b] = [&before, &after].map(|page| page.views.len());
        if a != b {
            let (before, after) = (before.name, after.name);
            let wrong = format!("{before} has {a} views, {after} has {b}: expected two pages of one command");
            return Err(Error::Mismatch(wrong));
        }
        let mut section = Section::new("");
        let mut views = vec![];
        let mut said = vec![];
        for (i, (a, b)) in before.views.iter().zip(&after.views).enumerate() {
            let compared = compared([(&before, a), (&after, b)], &format!("view{i}"))?;
            said.push(compared.said);
            section =
                compared.tiles.into_iter().fold(section, |section, (what, value)| section.tile(what, value));
            section = section.view(View::Compared(compared.view));
            views.push(compared.described);
        }
        let verdicts = [&before, &after].map(SavedPage::verdict);
        for (run, verdict) in ["Before", "After"].into_iter().zip(&verdicts) {
            if let Some(verdict) = verdict {
                section = section.text(format!("{run}: {verdict}"));
            }
        }
        let rows = rows(&flat(&before.figures), &flat(&after.figures));
        if !rows.is_empty() {
            let head = ["figure", "before", "after", "change"].map(str::to_owned).to_vec();
            section = section.table([vec![head], rows].concat());
        }
        let said = said.join("; ");
        let title = format!("{} and {}", before.name, after.name);
        let title = if before.title == after.title { format!("{}, in {title}", before.title) } else { title };
        let made = |page: &SavedPage| format!("{}\n{}", page.name, page.made);
        let section = section.command(made(&before)).command(made(&after));
        let described = json!({
            "before": before.figures, "after": after.figures, "views": views,
        });
        let mut lead = said.clone();
        if let Some(first) = lead.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        Ok(Self { report: Report::new(title, lead).section(section), described, said })
    }
}

/// A view of both runs.
struct Compared {
    view: SavedView,
    tiles: Vec<(&'static str, String)>,
    described: Value,
    said: String,
}

fn compared([(before, a), (after, b)]: [(&SavedPage, &Value); 2], id: &str) -> Result<Compared> {
    let kinds = [a, b].map(|view| view["view"].as_str().unwrap_or_default());
    if kinds[0] != kinds[1] {
        return Err(Error::Mismatch(format!(
            "{} shows a view of {}, {} one of {}: expected two pages of one command",
            before.name, kinds[0], after.name, kinds[1]
        )));
    }
    let pages = [(before, a), (after, b)];
    match kinds[0] {
        "matches" => matches::matches_of(pages, id),
        "registration" => pictures::registration_of(pages, id),
        "disparity" => pictures::disparity_of(pages, id),
        "collection" => collection::collection_of(pages, id),
        kind => Err(before.fault(&format!(
            "a view of {kind} cannot be compared: expected matches, a registration, disparities or a collection"
        ))),
    }
}

/// How many of `what` both runs have, only the one before, and only the one after.
fn told(what: &str, counts: [usize; 3]) -> String {
    let [both, lost, gained] = counts.map(counted);
    format!("{what} in both runs: {both}; only after: {gained}; only before: {lost}")
}

/// Fails unless a picture has the same size in both views.
fn same_size([(before, a), (after, b)]: [(&SavedPage, &Value); 2], key: &str) -> Result<()> {
    let size = |view: &Value| {
        let of = if key.is_empty() { view } else { &view[key] };
        [of["width"].as_u64(), of["height"].as_u64()]
    };
    if size(a) == size(b) {
        return Ok(());
    }
    let told = |view| {
        let [w, h] = size(view).map(|n| n.map_or_else(|| "?".to_owned(), |n| n.to_string()));
        format!("{w}x{h}")
    };
    let ([a, b], old, new) = ([a, b].map(told), &before.name, &after.name);
    Err(Error::Mismatch(format!("{old} is of pictures of {a}, {new} of {b}: expected the same pictures")))
}
