//! The HTML file.

use crate::compare::SavedView;
use crate::{
    CollectionView, DEFAULT_LIMIT, Detail, DisparityView, FeaturesView, MatchesView, RegistrationView, colour,
};
use html_escape::{encode_double_quoted_attribute, encode_text as text};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tiepoint::assess::{Assessment, Reason, Verdict};
use tiepoint::files::write_atomically;
use tiepoint::{Error, Result};

/// Nothing is fetched, nothing is sent: pictures are inside the file.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; \
                      base-uri 'none'; form-action 'none'";

const STYLE: &str = include_str!("../page/style.css");

/// The parts of the script that every view needs. They share one scope; each uses only parts before it.
const COMMON: [&str; 7] = [
    include_str!("../page/data.js"),
    include_str!("../page/colour.js"),
    include_str!("../page/element.js"),
    include_str!("../page/address.js"),
    include_str!("../page/paint.js"),
    include_str!("../page/panes.js"),
    include_str!("../page/histogram.js"),
];
const PARTS: &str = include_str!("../page/parts.js");
const MAIN: &str = include_str!("../page/main.js");

/// A page.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    title: String,
    lead: String,
    limit: usize,
    made: String,
    sections: Vec<Section<'a>>,
}

/// A part of a page.
#[derive(Clone, Debug, Default)]
pub struct Section<'a> {
    heading: String,
    assessment: Option<Assessment>,
    paragraphs: Vec<String>,
    commands: Vec<String>,
    tiles: Vec<[String; 2]>,
    table: Vec<Vec<String>>,
    figures: Option<Value>,
    views: Vec<View<'a>>,
}

/// An interactive view of one kind of result.
#[derive(Clone, Debug)]
pub enum View<'a> {
    /// A picture and its features.
    Features(FeaturesView<'a>),
    /// Two pictures and their matches.
    Matches(MatchesView<'a>),
    /// A picture on the pixels of another.
    Registration(RegistrationView<'a>),
    /// Disparities.
    Disparity(DisparityView<'a>),
    /// Many photographs and the pairs among them.
    Collection(CollectionView<'a>),
    /// A view of two runs, from their pages.
    Compared(SavedView),
}

pub(crate) trait Render {
    /// The still picture and the data, for the figure of this id.
    fn render(&self, id: &str, detail: Detail) -> Result<(String, Value)>;
}

impl View<'_> {
    /// The view, its caption, and what kind it is.
    fn parts(&self) -> (&dyn Render, &str, &'static Kind) {
        match self {
            Self::Features(view) => (view, &view.caption, &FEATURES),
            Self::Matches(view) => (view, &view.caption, &MATCHES),
            Self::Registration(view) => (view, &view.caption, &REGISTRATION),
            Self::Disparity(view) => (view, &view.caption, &DISPARITY),
            Self::Collection(view) => (view, &view.caption, &COLLECTION),
            Self::Compared(view) => (view, "", view.kind),
        }
    }
}

/// What a page needs for the views of one kind.
#[derive(Debug)]
pub(crate) struct Kind {
    /// Its own part of the script.
    script: &'static [&'static str],
    /// How to read the view, sentence by sentence.
    reading: &'static [&'static str],
}

static FEATURES: Kind = Kind {
    script: &[include_str!("../page/features.js")],
    reading: &[
        "A circle is as large as what a descriptor sees of the picture; its line is the direction of the feature. Large \
         features come from coarse structure, small ones from fine.",
        "Features should cover what is to be matched. Where a part of the picture has none, lower the contrast \
         (`--contrast`), or brighten the picture.",
        "Clusters on leaves, water or compression blocks seldom find a partner. The histograms filter: strong features \
         are found again more often than weak ones.",
    ],
};

pub(crate) static MATCHES: Kind = Kind {
    script: &[PARTS, include_str!("../page/matches.js")],
    reading: &[
        "A line joins the same feature in both pictures. Parallel lines of even length are what a flat scene gives; \
         near things move more than far ones.",
        "Colours show how far a match is from the model: dark is near. Inliers are nearer than the threshold, by \
         definition; so a small residual alone does not show that the model is right. The verdict does.",
        "Walk through the worst matches with ←: both patches should show the same thing. Enter enlarges the match, \
         with B turned and scaled as the model says.",
        "Parts: how many inliers each ninth of A has, and their median residual. Without inliers near, the model is a \
         guess there. Red: more right matches contradict the model than agree.",
    ],
};

pub(crate) static REGISTRATION: Kind = Kind {
    script: &[PARTS, include_str!("../page/registration.js")],
    reading: &[
        "Drag the edge across contours: they continue over it where the registration is right.",
        "The difference is dark where both pictures agree; double contours mean a shift. Light that changed is bright, too.",
        "Residual arrows in one direction over a whole region are a misfit of the model, such as relief; arrows in all \
         directions are the noise of the features.",
        "Parts: how many inliers each ninth of the moving picture has, and their median residual. Red: more right \
         matches contradict the model than agree.",
    ],
};

pub(crate) static DISPARITY: Kind = Kind {
    script: &[include_str!("../page/cloud.js"), include_str!("../page/disparity.js")],
    reading: &[
        "A disparity is how many pixels farther left a point lies in the right picture. Near things have large ones.",
        "Edges of colour should lie on edges of things. Speckles and streaks are errors; black has no disparity, and \
         \"why invalid\" shows the reason.",
        "If many disparities lie at an end of the histogram, the range is too small for the scene: give a larger one.",
        "In space, flat surfaces must look flat. Click two points for their distance.",
    ],
};

pub(crate) static COLLECTION: Kind = Kind {
    script: &[
        include_str!("../page/graph.js"),
        include_str!("../page/atlas.js"),
        include_str!("../page/matrix.js"),
        include_str!("../page/network.js"),
        include_str!("../page/pair.js"),
        include_str!("../page/collection.js"),
    ],
    reading: &[
        "A square is a pair of photographs; the brighter, the more matches agree. Photographs taken in order show a \
         bright diagonal.",
        "In the graph, photographs that lie close share much. Separate groups cannot be reconstructed together; a single \
         pair that joins two groups is as good as its matches: look at it.",
        "Click a pair to see its matches. Lines that cross each other at random are wrong matches.",
    ],
};

impl<'a> Section<'a> {
    /// A section under this heading. This and all other text is without mark-up.
    pub fn new(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), ..Self::default() }
    }

    /// Adds a verdict with its reasons below the heading.
    #[must_use]
    pub fn assessed(mut self, assessment: Option<Assessment>) -> Self {
        self.assessment = assessment;
        self
    }

    /// Adds a paragraph.
    #[must_use]
    pub fn text(mut self, paragraph: impl Into<String>) -> Self {
        self.paragraphs.push(paragraph.into());
        self
    }

    /// Adds a command for the reader to try.
    #[must_use]
    pub fn command(mut self, command: impl Into<String>) -> Self {
        self.commands.push(command.into());
        self
    }

    /// Adds a large figure: its name and its value.
    #[must_use]
    pub fn tile(mut self, what: impl Into<String>, value: impl Into<String>) -> Self {
        self.tiles.push([what.into(), value.into()]);
        self
    }

    /// Adds a table below the views; its first row names the columns.
    #[must_use]
    pub fn table(mut self, rows: Vec<Vec<String>>) -> Self {
        self.table = rows;
        self
    }

    /// Adds all figures: an object, as `--json` prints it.
    #[must_use]
    pub fn figures(mut self, mut figures: Value) -> Self {
        // A page may be sent to others, so folders are left out.
        for value in figures.as_object_mut().into_iter().flat_map(|keys| keys.values_mut()) {
            let path = value.as_str().map(Path::new).filter(|path| path.is_absolute());
            if let Some(name) = path.and_then(Path::file_name) {
                *value = name.to_string_lossy().into();
            }
        }
        self.figures = Some(figures);
        self
    }

    /// Adds a view.
    #[must_use]
    pub fn view(mut self, view: View<'a>) -> Self {
        self.views.push(view);
        self
    }
}

impl<'a> Report<'a> {
    /// A page with this title, and a sentence with the result.
    pub fn new(title: impl Into<String>, lead: impl Into<String>) -> Self {
        let [title, lead] = [title.into(), lead.into()].map(|text| visible(&text));
        Self { title, lead, limit: DEFAULT_LIMIT, made: String::new(), sections: Vec::new() }
    }

    /// Adds the command or call that made the page, below the date and time of now.
    #[must_use]
    pub fn made(mut self, how: impl Into<String>) -> Self {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.made = format!("{} UTC\n{}", day_and_minute(seconds), how.into());
        self
    }

    /// Sets the limit of the file's size, in bytes.
    #[must_use]
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Adds a section.
    #[must_use]
    pub fn section(mut self, section: Section<'a>) -> Self {
        self.sections.push(section);
        self
    }

    /// The text of the file, with as much detail as the limit allows.
    ///
    /// # Errors
    /// [`Error::Image`] for an empty picture, [`Error::Mismatch`] where sizes do not fit each other, [`Error::Option`]
    /// when the limit has no room even for small pictures.
    pub fn html(&self) -> Result<String> {
        let mut detail = Detail::MOST;
        loop {
            let html = self.render(detail)?;
            let bytes = html.len();
            if bytes <= self.limit {
                return Ok(html);
            }
            let least = format!("{bytes} bytes or more: that is the page with the least of its pictures");
            detail = detail.less().ok_or_else(|| Error::option("report_limit", self.limit, least))?;
        }
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// As [`html`](Self::html), and [`Error::Io`] when the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let html = self.html()?;
        write_atomically(path, |out| out.write_all(html.as_bytes()))
    }

    fn render(&self, detail: Detail) -> Result<String> {
        let mut views = Vec::new();
        let mut sections = String::new();
        for section in &self.sections {
            sections += &section.render(&mut views, detail)?;
        }
        // A comparison reads them again.
        let figures = self.sections.iter().find_map(|section| section.figures.as_ref());
        let data = script_text(&json!({ "maps": colour::maps(), "views": views, "figures": figures }));
        let (title, lead) = (text(&self.title), text(&self.lead));
        let script = self.script();
        let made = match self.made.as_str() {
            "" => String::new(),
            how => {
                format!("<h2>How this was made</h2>\n<pre class=\"command\">{}</pre>\n", text(&visible(how)))
            }
        };
        Ok(format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"dark light\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
             <header><h1><bdi>{title}</bdi></h1><p class=\"lead\">{lead}</p>\n\
             <noscript><p class=\"lead\">Without JavaScript this page shows still pictures and all figures.</p></noscript>\
             </header>\n<main>\n{sections}</main>\n\
             <footer>{made}Made by tiepoint {version}. This file stands alone: it asks no server for anything.</footer>\n\
             <script type=\"application/json\" id=\"data\">{data}</script>\n\
             <script>\n'use strict';\n(() => {{\n{script}\n}})();\n</script>\n</body>\n</html>\n",
            version = env!("CARGO_PKG_VERSION"),
        ))
    }

    /// The parts of the script that the views of this page need.
    fn script(&self) -> String {
        let mut parts = COMMON.to_vec();
        for view in self.sections.iter().flat_map(|section| &section.views) {
            for part in view.parts().2.script {
                if !parts.contains(part) {
                    parts.push(part);
                }
            }
        }
        parts.push(MAIN);
        bare(&parts.join("\n"))
    }
}

/// A script without the indentation and the comments on lines of their own, a fifth of it.
fn bare(script: &str) -> String {
    let mut is_comment = false;
    let told = script.lines().map(str::trim_start).filter(|line| {
        let began = is_comment || line.starts_with("/*");
        is_comment = began && !line.contains("*/");
        !(line.is_empty() || line.starts_with("//") || is_comment || began && line.ends_with("*/"))
    });
    told.collect::<Vec<_>>().join("\n")
}

impl Section<'_> {
    fn render(&self, views: &mut Vec<Value>, detail: Detail) -> Result<String> {
        let mut html = String::from("<section>\n");
        if !self.heading.is_empty() {
            html += &format!("<h2>{}</h2>\n", text(&self.heading));
        }
        html += &self.assessment.as_ref().map_or_else(String::new, verdict);
        for paragraph in &self.paragraphs {
            html += &format!("<p>{}</p>\n", text(paragraph));
        }
        for command in &self.commands {
            html += &format!("<pre class=\"command\">{}</pre>\n", text(command));
        }
        if !self.tiles.is_empty() {
            let tile = |[what, value]: &[String; 2]| {
                format!("<div><dt>{}</dt><dd>{}</dd></div>\n", text(what), text(value))
            };
            html +=
                &format!("<dl class=\"tiles\">\n{}</dl>\n", self.tiles.iter().map(tile).collect::<String>());
        }
        // Several views of one kind are explained once.
        let mut explained: Vec<&[&str]> = vec![];
        for view in &self.views {
            let id = format!("view{}", views.len());
            let (view, caption, kind) = view.parts();
            if !explained.contains(&kind.reading) {
                explained.push(kind.reading);
            }
            let (still, data) = view.render(&id, detail)?;
            let caption = match caption {
                "" => String::new(),
                caption => format!("<figcaption>{}</figcaption>", text(caption)),
            };
            html += &format!("<figure class=\"view\" id=\"{id}\">{still}{caption}</figure>\n");
            views.push(data);
        }
        if !explained.is_empty() {
            let said = explained.concat().into_iter().map(|said| format!("<li>{}</li>\n", text(said)));
            html += &format!(
                "<details class=\"reading\"><summary>How to read this page</summary>\n<ul>\n{}</ul></details>\n",
                said.collect::<String>()
            );
        }
        if let [head, rows @ ..] = &self.table[..] {
            html += &rows_of_table("Scores", head, rows);
        }
        if let Some(figures) = &self.figures {
            html += &format!(
                "<details class=\"figures\"><summary>All figures, as --json prints them</summary>\n{}</details>\n",
                table(figures)
            );
        }
        Ok(html + "</section>\n")
    }
}

/// The verdict with its first reasons, all reasons that are not good with the advice, and the others in a fold.
fn verdict(assessment: &Assessment) -> String {
    let list = |reasons: &[&Reason]| {
        let mut said = "";
        let items = reasons.iter().map(|reason| {
            // Several reasons may recommend the same.
            let next = reason.next.as_deref().filter(|next| *next != said).unwrap_or_default();
            said = reason.next.as_deref().unwrap_or_default();
            let next = if next.is_empty() { String::new() } else { format!("<br>{}", with_code(next)) };
            let (name, told, expected) = (reason.verdict.name(), text(&reason.text), text(&reason.expected));
            format!("<li class=\"{name}\">{told} <small>expected: {expected}</small>{next}</li>\n")
        });
        format!("<ul>\n{}</ul>\n", items.collect::<String>())
    };
    let (good, other): (Vec<_>, Vec<_>) =
        assessment.reasons.iter().partition(|reason| reason.verdict == Verdict::Good);
    let (word, told) = match assessment.verdict {
        Verdict::Good => {
            let first: Vec<&str> = good.iter().take(2).map(|reason| reason.text.as_str()).collect();
            ("Good", format!(": {}", text(&first.join("; "))))
        }
        Verdict::Doubtful => ("Doubtful", String::new()),
        Verdict::Poor => ("Poor", String::new()),
    };
    let name = assessment.verdict.name();
    let mut html = format!(
        "<div class=\"verdict {name}\" role=\"group\" aria-label=\"Verdict\">\n<p><b>{word}</b>{told}</p>\n"
    );
    if !other.is_empty() {
        html += &list(&other);
    }
    if !good.is_empty() {
        let fold = list(&good);
        html += &format!("<details><summary>{} measures are good</summary>\n{fold}</details>\n", good.len());
    }
    html + "</div>\n"
}

/// The text as HTML; text between backticks becomes code.
fn with_code(said: &str) -> String {
    let part = |(i, part): (usize, &str)| match i % 2 {
        0 => text(part).into_owned(),
        _ => format!("<code>{}</code>", text(part)),
    };
    said.split('`').enumerate().map(part).collect()
}

/// The text with codes for characters that are invisible or turn the direction of writing: no name looks like another.
pub(crate) fn visible(text: &str) -> String {
    let turns =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let shown = |c: char| match c {
        '\n' => "\n".to_owned(),
        c if c.is_control() || turns(c) => format!("\u{27e8}U+{:04X}\u{27e9}", u32::from(c)),
        c => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// The date and the time of day of a moment in seconds since the beginning of 1970.
fn day_and_minute(seconds: u64) -> String {
    let moment = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string();
    // As in 2026-11-25T16:43:10Z.
    format!("{} {}", &moment[..10], &moment[11..16])
}

/// A time for people.
pub fn lasted(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 100.0 => format!("{s:.1} s"),
        s => format!("{s:.0} s"),
    }
}

/// A table that scrolls within the page; `label` describes it for screen readers.
pub(crate) fn rows_of_table(label: &str, head: &[String], rows: &[Vec<String>]) -> String {
    let is_number = |row: &Vec<String>, i: usize| {
        let cell = row.get(i).map(|cell| cell.replace(',', ""));
        cell.is_some_and(|cell| cell.split(' ').next().is_some_and(|word| word.parse::<f64>().is_ok()))
    };
    let cells = |row: &[String], name: &str| {
        let cell = |(i, value): (usize, &String)| {
            let class = if rows.iter().any(|row| is_number(row, i)) { "" } else { " class=\"words\"" };
            format!("<{name}{class}>{}</{}>", text(value), &name[..2])
        };
        format!("<tr>{}</tr>\n", row.iter().enumerate().map(cell).collect::<String>())
    };
    let head = cells(head, "th scope=\"col\"");
    let rows: String = rows.iter().map(|row| cells(row, "td")).collect();
    format!(
        "<div class=\"scroll scores\" tabindex=\"0\" role=\"group\" aria-label=\"{}\"><table>\n<thead>{head}</thead>\n<tbody>{rows}</tbody>\n</table></div>\n",
        encode_double_quoted_attribute(label)
    )
}

fn table(figures: &Value) -> String {
    let Value::Object(keys) = figures else { return format!("<pre>{}</pre>", text(&figures.to_string())) };
    let row = |(key, value): (&String, &Value)| {
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", text(key), text(&shown))
    };
    format!("<div class=\"scroll\"><table>\n{}</table></div>\n", keys.iter().map(row).collect::<String>())
}

/// JSON that is safe inside a script element: without `<`, which could end the element or open a comment.
fn script_text(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counted;

    #[test]
    fn text_from_outside_is_text() {
        let hostile = "</script><!--<b title=\"x\">&amp;\u{2028}";
        let section = Section::new(hostile).text(hostile).command(hostile).tile(hostile, hostile);
        let section = section.figures(json!({ hostile: hostile })).table(vec![vec![hostile.into()]; 2]);
        let page = Report::new(hostile, hostile).section(section).html().unwrap();
        assert!(!page.contains("<b ") && !page.contains("<!--<b"), "text became mark-up");
        assert_eq!(page.matches("</script>").count(), 2, "data and script end once each");
        let data = script_text(&json!([hostile]));
        assert!(!data.contains('<') && !data.contains('\u{2028}'), "{data}");
        let back: Value = serde_json::from_str(&data).unwrap();
        assert_eq!(back[0], hostile, "the script reads what was written");
    }

    #[test]
    fn a_script_loses_its_comments_alone() {
        let script = "// @ts-check\n/** Of\n * two lines. */\nconst a = [\n  1, // one\n];\n\n  /** @type {A} */\n  let b = 2 /* two */ * 3;\n  /** a cast */ (b);\n";
        assert_eq!(bare(script), "const a = [\n1, // one\n];\nlet b = 2 /* two */ * 3;\n/** a cast */ (b);");
    }

    #[test]
    fn names_show_what_they_are_and_numbers_are_for_people() {
        assert_eq!(visible("a\u{202e}gpj.\u{7}b"), "a⟨U+202E⟩gpj.⟨U+0007⟩b", "nothing is turned or unseen");
        let page = Report::new("on\u{202e}", "").section(Section::new("x")).html().unwrap();
        assert!(
            page.contains("<title>on⟨U+202E⟩</title>") && page.contains("<h1><bdi>on⟨"),
            "in the title, too"
        );
        let numbers = [0, 12, 999, 1000, 22545, 1_000_000].map(counted);
        assert_eq!(numbers, ["0", "12", "999", "1,000", "22,545", "1,000,000"], "thousands apart");
        assert_eq!([0.885, 4.885, 180.4].map(lasted), ["885 ms", "4.9 s", "180 s"], "times");
        assert_eq!(day_and_minute(1_709_251_199), "2024-02-29 23:59", "cut, not rounded");
    }

    #[test]
    fn a_page_that_cannot_be_small_enough_is_refused() {
        let error = Report::new("a", "b").limit(1000).html().unwrap_err().to_string();
        assert!(error.contains("report_limit") && error.contains("1000"), "{error}");
    }
}
