//! Two runs on one page: what two saved pages of one kind have in common, and where they differ.
//!
//! A page holds its pictures, data and figures, so a comparison needs nothing else. Of the mark-up of a page only
//! pictures are taken, as base 64; everything else is read from its JSON and written anew.

use crate::Detail;
use crate::block;
use crate::collection::place_of;
use crate::matches::{self, KeypointMatch};
use crate::page::{Kind, Render, Report, Section, View, counted};
use crate::picture::Embedded;
use crate::still;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use tiepoint::feature::Keypoint;
use tiepoint::image::Size;
use tiepoint::matching::Match;
use tiepoint::{Error, Result};

/// Two matches are the same if both ends lie this near, in pixels.
const SAME: f32 = 1.0;
/// Disparities differ from here on, in pixels.
const DIFFERENT: f32 = 1.0;
/// The largest page that is read.
const LARGEST: u64 = 1 << 30;

/// A match, disparity or pair that both runs have, only the one before, or only the one after: the numbers of the script.
const BOTH: u8 = 0;
const LOST: u8 = 1;
const GAINED: u8 = 2;

/// What is read from a page.
#[derive(Debug)]
struct SavedPage {
    name: String,
    title: String,
    made: String,
    figures: Value,
    views: Vec<Value>,
    /// The address of each picture, by its id.
    pictures: HashMap<String, String>,
}

/// A view of a page that was read, and its still picture.
#[derive(Clone, Debug)]
pub struct SavedView {
    pub(crate) kind: Kind,
    still: String,
    data: Value,
}

impl Render for SavedView {
    fn render(&self, _: &str, _: Detail) -> Result<(String, Value)> {
        Ok((self.still.clone(), self.data.clone()))
    }
}

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
        if before.views.len() != after.views.len() {
            return Err(Error::Mismatch(format!(
                "{} has {} views, {} has {}: expected two pages of one command",
                before.name,
                before.views.len(),
                after.name,
                after.views.len()
            )));
        }
        let mut section = Section::new("");
        let mut views = vec![];
        let mut said = vec![];
        for (i, (a, b)) in before.views.iter().zip(&after.views).enumerate() {
            let compared = Compared::of([(&before, a), (&after, b)], &format!("view{i}"))?;
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
        let title = if before.title == after.title { format!("{}: {title}", before.title) } else { title };
        let made = |page: &SavedPage| format!("{}\n{}", page.name, page.made);
        let section = section.command(made(&before)).command(made(&after));
        let described = json!({
            "before": before.figures, "after": after.figures, "views": views,
        });
        Ok(Self { report: Report::new(title, &said).section(section), described, said })
    }
}

impl SavedPage {
    fn read(path: &Path) -> Result<Self> {
        let name =
            path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
        let failed = |e| Error::io(path.display().to_string(), e);
        let bytes = fs::metadata(path).map_err(failed)?.len();
        let foreign = |what: &str| {
            Error::Mismatch(format!(
                "{}: {what}: expected a page that --report of this version has written",
                path.display()
            ))
        };
        if bytes > LARGEST {
            return Err(foreign(&format!("{bytes} bytes")));
        }
        let text = fs::read(path).map_err(failed)?;
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
        let figures = data
            .get_mut("figures")
            .map(Value::take)
            .ok_or_else(|| foreign("an older page, without figures"))?;
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
        Ok(Self {
            title: between("<h1><bdi>", "</bdi>").map(plain).unwrap_or_default(),
            made: between("<h2>How this was made</h2>\n<pre class=\"command\">", "</pre>")
                .map(plain)
                .unwrap_or_default(),
            name,
            figures,
            views,
            pictures,
        })
    }

    /// The verdict with the reasons that are not good.
    fn verdict(&self) -> Option<String> {
        let verdict = self.figures["verdict"].as_str()?;
        let reasons = self.figures["reasons"].as_array().map_or(&[][..], Vec::as_slice);
        let told = reasons
            .iter()
            .filter(|reason| reason["verdict"] != "good")
            .filter_map(|reason| reason["text"].as_str());
        let told: Vec<&str> = told.collect();
        Some(if told.is_empty() { verdict.to_owned() } else { format!("{verdict}: {}", told.join("; ")) })
    }

    /// A picture of a view, as the page holds it; `id` is its element on the new page.
    fn picture(&self, described: &Value, id: &str) -> Result<Embedded> {
        let number = |key: &str| described[key].as_u64().map(|n| n as usize);
        let known = described["id"].as_str().and_then(|id| self.pictures.get(id));
        let (Some(width), Some(height), Some(step), Some(url)) =
            (number("width"), number("height"), number("step").filter(|s| *s > 0), known)
        else {
            return Err(Error::Mismatch(format!("{}: a picture is not in the file", self.name)));
        };
        let mut described = described.clone();
        described["id"] = id.into();
        let covers = [width, height].map(|n| n.div_ceil(step) * step);
        Ok(Embedded { described, url: url.clone(), size: Size::new(width, height), covers })
    }
}

/// A view of both runs.
struct Compared {
    view: SavedView,
    tiles: Vec<(&'static str, String)>,
    described: Value,
    said: String,
}

impl Compared {
    fn of([(before, a), (after, b)]: [(&SavedPage, &Value); 2], id: &str) -> Result<Self> {
        let kinds = [a, b].map(|view| view["view"].as_str().unwrap_or_default());
        if kinds[0] != kinds[1] {
            return Err(Error::Mismatch(format!(
                "{} shows a view of {}, {} one of {}: expected two pages of one command",
                before.name, kinds[0], after.name, kinds[1]
            )));
        }
        let pages = [(before, a), (after, b)];
        match Kind::of(a) {
            Some(Kind::Matches) => matches_of(pages, id),
            Some(Kind::Registration) => registration_of(pages, id),
            Some(Kind::Disparity) => disparity_of(pages, id),
            Some(Kind::Collection) => collection_of(pages, id),
            Some(Kind::Features) | None => Err(Error::Mismatch(format!(
                "{}: a view of {} cannot be compared: expected matches, a registration, disparities or a collection",
                before.name, kinds[0]
            ))),
        }
    }
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
    Err(Error::Mismatch(format!(
        "{} is of pictures of {}, {} of {}: expected the same pictures",
        before.name,
        told(a),
        after.name,
        told(b)
    )))
}

// ---- matches

fn matches_of(pages: [(&SavedPage, &Value); 2], id: &str) -> Result<Compared> {
    same_size(pages, "a")?;
    same_size(pages, "b")?;
    let [(before, a), (after, b)] = pages;
    let verified = !a["model"].is_null() || !b["model"].is_null();
    let (rows, runs) = united(rows_of(before, a)?, rows_of(after, b)?);
    let count =
        |run: u8| rows.iter().zip(&runs).filter(|(row, r)| **r == run && (row.inlier || !verified)).count();
    let [both, lost, gained] = [BOTH, LOST, GAINED].map(count);
    let ids = [format!("{id}-a"), format!("{id}-b")];
    let pictures = [after.picture(&b["a"], &ids[0])?, after.picture(&b["b"], &ids[1])?];
    let shown: Vec<&KeypointMatch> = rows.iter().collect();
    let names = ["a", "b"].map(|key| b[key]["name"].as_str().unwrap_or_default());
    let still = matches::still(&pictures, [&ids[0], &ids[1]], names, &shown);
    let mut data = b.clone();
    let [pa, pb] = pictures.map(|p| p.described);
    (data["a"], data["b"]) = (pa, pb);
    let failed = |e| Error::io("report", e);
    data["columns"] = matches::columns(&shown).map_err(failed)?;
    data["runs"] = block::u8s(runs.iter().copied()).map_err(failed)?;
    data["total"] = rows.len().into();
    // The pages may hold only some of the matches.
    let held = |view: &Value, rows: usize| view["total"].as_u64().is_none_or(|total| total as usize <= rows);
    let [whole_a, whole_b] =
        [(a, before), (b, after)].map(|(view, page)| rows_of(page, view).is_ok_and(|r| held(view, r.len())));
    let note = if whole_a && whole_b {
        ""
    } else {
        " (a page holds only some of its matches: give --report-limit more)"
    };
    let what = if verified { "inliers" } else { "matches" };
    Ok(Compared {
        view: SavedView { kind: Kind::Matches, still, data },
        tiles: vec![
            (if verified { "inliers of both" } else { "matches of both" }, counted(both)),
            ("only after", counted(gained)),
            ("only before", counted(lost)),
        ],
        described: json!({ "view": "matches", "both": both, "gained": gained, "lost": lost }),
        said: format!(
            "{what} in both runs: {}; only after: {}; only before: {}{note}",
            counted(both),
            counted(gained),
            counted(lost)
        ),
    })
}

fn rows_of(page: &SavedPage, view: &Value) -> Result<Vec<KeypointMatch>> {
    let columns = &view["columns"];
    let damaged = |what: &str| Error::Mismatch(format!("{}: the column {what} cannot be read", page.name));
    let f32s = |key: &str| block::read_f32s(&columns[key]).ok_or_else(|| damaged(key));
    let [ax, ay, bx, by] = ["ax", "ay", "bx", "by"].map(f32s);
    let (ax, ay, bx, by) = (ax?, ay?, bx?, by?);
    let [a_scale, a_angle, b_scale, b_angle] = ["ascale", "aangle", "bscale", "bangle"].map(f32s);
    let (a_scale, a_angle, b_scale, b_angle) = (a_scale?, a_angle?, b_scale?, b_angle?);
    let (distance, ratio, residual) = (f32s("distance")?, f32s("ratio")?, f32s("residual")?);
    let u32s = |key: &str| block::read_u32s(&columns[key]).ok_or_else(|| damaged(key));
    let (a, b) = (u32s("a")?, u32s("b")?);
    let inlier = block::read_u8s(&columns["inlier"]).ok_or_else(|| damaged("inlier"))?;
    let n = ax.len();
    let floats = [&ay, &bx, &by, &a_scale, &a_angle, &b_scale, &b_angle, &distance, &ratio, &residual];
    if floats.iter().any(|c| c.len() != n) || a.len() != n || b.len() != n || inlier.len() != n {
        return Err(damaged("of matches"));
    }
    let keypoint = |x: f32, y: f32, scale, angle| Keypoint { x, y, scale, angle, ..Keypoint::default() };
    Ok((0..n)
        .map(|i| KeypointMatch {
            pair: Match { a: a[i], b: b[i], distance: distance[i], ratio: ratio[i] },
            a: keypoint(ax[i], ay[i], a_scale[i], a_angle[i]),
            b: keypoint(bx[i], by[i], b_scale[i], b_angle[i]),
            residual: residual[i],
            inlier: inlier[i] != 0,
        })
        .collect())
}

/// The matches of both runs, each once, and which run has it: that of the run after where both have it. A match whose
/// model agrees in one run alone counts for that run.
fn united(before: Vec<KeypointMatch>, after: Vec<KeypointMatch>) -> (Vec<KeypointMatch>, Vec<u8>) {
    let cell = |x: f32, y: f32| ((x / SAME).floor() as i64, (y / SAME).floor() as i64);
    let mut places: HashMap<(i64, i64), Vec<usize>> = HashMap::new();
    for (i, row) in before.iter().enumerate() {
        places.entry(cell(row.a.x, row.a.y)).or_default().push(i);
    }
    let mut taken = vec![false; before.len()];
    let (mut rows, mut runs) = (vec![], vec![]);
    for row in after {
        let (x, y) = cell(row.a.x, row.a.y);
        let around = (x - 1..=x + 1).flat_map(|x| (y - 1..=y + 1).map(move |y| (x, y)));
        let off = |i: usize| {
            let other = &before[i];
            let far = |p: &Keypoint, q: &Keypoint| libm::hypotf(p.x - q.x, p.y - q.y);
            far(&other.a, &row.a).max(far(&other.b, &row.b))
        };
        let near = around.filter_map(|at| places.get(&at)).flatten().copied().filter(|i| !taken[*i]);
        let near = near.map(|i| (off(i), i)).filter(|(off, _)| *off <= SAME);
        let same = near.min_by(|p, q| p.0.total_cmp(&q.0).then(p.1.cmp(&q.1))).map(|(_, i)| i);
        let (kept, run) = match same {
            None => (row, GAINED),
            Some(i) => {
                taken[i] = true;
                match (before[i].inlier, row.inlier) {
                    (true, false) => (before[i], LOST),
                    (false, true) => (row, GAINED),
                    (true, true) | (false, false) => (row, BOTH),
                }
            }
        };
        rows.push(kept);
        runs.push(run);
    }
    for (row, _) in before.into_iter().zip(taken).filter(|(_, taken)| !taken) {
        rows.push(row);
        runs.push(LOST);
    }
    (rows, runs)
}

// ---- a picture on another

fn registration_of(pages: [(&SavedPage, &Value); 2], id: &str) -> Result<Compared> {
    same_size(pages, "reference")?;
    let [(before, a), (after, b)] = pages;
    let ids = [format!("{id}-a"), format!("{id}-b")];
    let named = |page: &SavedPage, view: &Value, run: &str, id: &str| -> Result<Embedded> {
        let mut picture = page.picture(&view["warped"], id)?;
        picture.described["name"] =
            format!("{}, {run}", view["warped"]["name"].as_str().unwrap_or_default()).into();
        Ok(picture)
    };
    let [old, new] = [named(before, a, "before", &ids[0])?, named(after, b, "after", &ids[1])?];
    let Size { width, height } = new.size;
    let gap = width as f64 * 1.02;
    let content =
        format!("{}{}", still::image(&old, &ids[0], 0.0, 0.0, ""), still::image(&new, &ids[1], gap, 0.0, ""));
    let still =
        still::svg(gap + width as f64, height as f64, "The registered picture, before and after", &content);
    let mut data = b.clone();
    (data["reference"], data["warped"]) = (old.described, new.described);
    let covered = |page: &SavedPage, view: &Value| {
        let bytes = block::read_u8s(&view["covered"]);
        let bytes =
            bytes.ok_or_else(|| Error::Mismatch(format!("{}: what is covered cannot be read", page.name)))?;
        Ok::<_, Error>(bytes.iter().filter(|b| **b != 0).count() as f64 / bytes.len().max(1) as f64)
    };
    let [old, new] = [covered(before, a)?, covered(after, b)?].map(|share| format!("{:.1} %", 100.0 * share));
    Ok(Compared {
        view: SavedView { kind: Kind::Registration, still, data },
        tiles: vec![("covered before", old.clone()), ("covered after", new.clone())],
        described: json!({ "view": "registration" }),
        said: format!("covered before: {old}; after: {new}"),
    })
}

// ---- disparities

fn disparity_of(pages: [(&SavedPage, &Value); 2], id: &str) -> Result<Compared> {
    same_size(pages, "")?;
    let [(before, a), (after, b)] = pages;
    if a["step"] != b["step"] {
        return Err(Error::Mismatch(format!(
            "{} holds one pixel in {}, {} one in {}: give both the same --report-limit",
            before.name, a["step"], after.name, b["step"]
        )));
    }
    let map = |page: &SavedPage, view: &Value| {
        let size = [view["columns"].as_u64(), view["rows"].as_u64()].map(|n| n.map(|n| n as usize));
        let found = size[0]
            .zip(size[1])
            .and_then(|(columns, rows)| block::read_map(&view["disparity"], columns, rows));
        found.ok_or_else(|| Error::Mismatch(format!("{}: the disparities cannot be read", page.name)))
    };
    let [old, new] = [map(before, a)?, map(after, b)?];
    let n = old.len().max(1) as f64;
    let share = |counts: &dyn Fn(f32, f32) -> bool| {
        old.iter().zip(&new).filter(|(p, q)| counts(**p, **q)).count() as f64 / n
    };
    let both = share(&|p, q| p.is_finite() && q.is_finite());
    let other = share(&|p, q| (p - q).abs() > DIFFERENT);
    let lost = share(&|p, q| p.is_finite() && !q.is_finite());
    let gained = share(&|p, q| !p.is_finite() && q.is_finite());
    let mut data = b.clone();
    data["truth"] = a["disparity"].clone();
    data["before"] = true.into();
    let mut content = String::new();
    let (mut width, mut height) = (16.0, 9.0);
    for (key, suffix, more) in [("left", "a", ""), ("right", "b", "display=\"none\"")] {
        if !b[key].is_null() {
            let id = format!("{id}-{suffix}");
            let picture = after.picture(&b[key], &id)?;
            (width, height) = (picture.size.width as f64, picture.size.height as f64);
            content += &still::image(&picture, &id, 0.0, 0.0, more);
            data[key] = picture.described;
        }
    }
    let still = still::svg(width, height, "The left picture", &content);
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    Ok(Compared {
        view: SavedView { kind: Kind::Disparity, still, data },
        tiles: vec![
            ("valid in both", percent(both)),
            ("differ by more than 1 px", percent(other)),
            ("only after", percent(gained)),
            ("only before", percent(lost)),
        ],
        described: json!({ "view": "disparity", "both": both, "different": other, "gained": gained, "lost": lost }),
        said: format!(
            "disparities in both runs: {} of the pixels, {} differ by more than a pixel; only after: {}; only before: {}",
            percent(both),
            percent(other),
            percent(gained),
            percent(lost)
        ),
    })
}

// ---- collections

/// A pair of photographs in one run.
struct SavedPair {
    matches: u32,
    inliers: u32,
    configuration: String,
    lines: Vec<u16>,
}

fn collection_of(pages: [(&SavedPage, &Value); 2], id: &str) -> Result<Compared> {
    let [(before, a), (after, b)] = pages;
    let images = |page: &SavedPage, view: &Value| {
        let list = view["images"].as_array().cloned();
        list.ok_or_else(|| Error::Mismatch(format!("{}: no photographs", page.name)))
    };
    let [mut old, mut all] = [images(before, a)?, images(after, b)?];
    let name = |image: &Value| image["name"].as_str().unwrap_or_default().to_owned();
    let mut numbers: HashMap<String, u32> =
        all.iter().enumerate().map(|(i, image)| (name(image), i as u32)).collect();
    let second: Vec<u32> = (0..all.len() as u32).collect();
    let mut owners = vec![after; all.len()];
    let mut first = vec![];
    for image in old.drain(..) {
        let number = *numbers.entry(name(&image)).or_insert_with(|| {
            all.push(image.clone());
            owners.push(before);
            all.len() as u32 - 1
        });
        first.push(number);
    }
    let mut thumbnails = String::new();
    let across = (all.len() as f64).sqrt().ceil().max(1.0);
    for (i, image) in all.iter_mut().enumerate() {
        if image["id"].is_null() {
            continue;
        }
        // A thumbnail covers the photograph, in its own pixels.
        let picture_id = format!("{id}-t{i}");
        let url = image["id"].as_str().and_then(|id| owners[i].pictures.get(id));
        let Some(url) = url else {
            image["id"] = Value::Null;
            continue;
        };
        let (x, y) = (i as f64 % across, (i as f64 / across).floor());
        thumbnails += &format!(
            "<image id=\"{picture_id}\" x=\"{x}\" y=\"{y}\" width=\"0.94\" height=\"0.94\" href=\"{url}\"/>"
        );
        image["id"] = picture_id.into();
    }
    let still = still::svg(across, across, "The photographs", &thumbnails);
    let [old, new] = [pairs_of(before, a, &first)?, pairs_of(after, b, &second)?];
    let mut keys: Vec<(u32, u32)> = old.keys().chain(new.keys()).copied().collect();
    keys.sort_unstable();
    keys.dedup();
    // The strongest first.
    let strength = |key: &(u32, u32)| new.get(key).or_else(|| old.get(key)).map_or(0, |pair| pair.inliers);
    keys.sort_by_key(|key| (std::cmp::Reverse(strength(key)), *key));
    let shown: Vec<&SavedPair> =
        keys.iter().filter_map(|key| new.get(key).or_else(|| old.get(key))).collect();
    let mut kinds = BTreeMap::new();
    for pair in &shown {
        let next = kinds.len() as u32;
        kinds.entry(pair.configuration.as_str()).or_insert(next);
    }
    let mut names: Vec<(&str, u32)> = kinds.iter().map(|(name, number)| (*name, *number)).collect();
    names.sort_by_key(|(_, number)| *number);
    let run = |key: &(u32, u32)| match (old.contains_key(key), new.contains_key(key)) {
        (true, false) => LOST,
        (false, _) => GAINED,
        (true, true) => BOTH,
    };
    let runs: Vec<u8> = keys.iter().map(run).collect();
    let failed = |e| Error::io("report", e);
    let mut data = b.clone();
    if !a["tried"].is_null() || !b["tried"].is_null() || first.len().max(second.len()) < all.len() {
        let mut tried = vec![0_u8; (all.len() * all.len().saturating_sub(1) / 2).div_ceil(8)];
        for (page, view, numbers) in [(before, a, &first), (after, b, &second)] {
            let marked = mark_tried(&mut tried, all.len(), &view["tried"], numbers);
            marked.ok_or_else(|| {
                Error::Mismatch(format!("{}: the pairs that were tried cannot be read", page.name))
            })?;
        }
        data["tried"] = block::u8s(tried.into_iter()).map_err(failed)?;
    }
    data["images"] = all.into();
    data["pairs"] = json!({
        "a": block::u32s(keys.iter().map(|key| key.0)).map_err(failed)?,
        "b": block::u32s(keys.iter().map(|key| key.1)).map_err(failed)?,
        "matches": block::u32s(shown.iter().map(|pair| pair.matches)).map_err(failed)?,
        "inliers": block::u32s(shown.iter().map(|pair| pair.inliers)).map_err(failed)?,
        "configuration": block::u32s(shown.iter().map(|pair| kinds[pair.configuration.as_str()])).map_err(failed)?,
        "lines": block::u32s(shown.iter().map(|pair| pair.lines.len() as u32 / 4)).map_err(failed)?,
        "before": block::u32s(keys.iter().map(|key| old.get(key).map_or(0, |pair| pair.inliers))).map_err(failed)?,
        "runs": block::u32s(runs.iter().map(|run| u32::from(*run))).map_err(failed)?,
    });
    data["configurations"] = names.iter().map(|(name, _)| *name).collect::<Vec<_>>().into();
    data["ends"] = block::u16s(shown.iter().flat_map(|pair| pair.lines.iter().copied())).map_err(failed)?;
    let [both, lost, gained] = [BOTH, LOST, GAINED].map(|run| runs.iter().filter(|r| **r == run).count());
    let [inliers_before, inliers_after] =
        [&old, &new].map(|pairs| pairs.values().map(|pair| u64::from(pair.inliers)).sum::<u64>());
    Ok(Compared {
        view: SavedView { kind: Kind::Collection, still, data },
        tiles: vec![
            ("pairs of both", counted(both)),
            ("pairs only after", counted(gained)),
            ("pairs only before", counted(lost)),
            ("inliers before", counted(inliers_before as usize)),
            ("inliers after", counted(inliers_after as usize)),
        ],
        described: json!({
            "view": "collection", "both": both, "gained": gained, "lost": lost,
            "inliers_before": inliers_before, "inliers_after": inliers_after,
        }),
        said: format!(
            "pairs in both runs: {}; only after: {}; only before: {}",
            counted(both),
            counted(gained),
            counted(lost)
        ),
    })
}

/// Marks the pairs that a run has tried, among those of `count` photographs; `numbers` are those of the run's photographs.
fn mark_tried(bits: &mut [u8], count: usize, tried: &Value, numbers: &[u32]) -> Option<()> {
    // Null stands for all.
    let tried = if tried.is_null() { None } else { Some(block::read_u8s(tried)?) };
    let mut at = 0_usize;
    for (i, &p) in numbers.iter().enumerate() {
        for &q in &numbers[i + 1..] {
            let is_set = |of: &Vec<u8>| of.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1);
            if p != q && tried.as_ref().is_none_or(is_set) {
                let place = place_of(p as usize, q as usize, count);
                bits[place / 8] |= 1 << (place % 8);
            }
            at += 1;
        }
    }
    Some(())
}

/// The pairs of a page; `numbers` are those of its photographs on the new page.
fn pairs_of(page: &SavedPage, view: &Value, numbers: &[u32]) -> Result<HashMap<(u32, u32), SavedPair>> {
    let damaged = || Error::Mismatch(format!("{}: its pairs cannot be read", page.name));
    let u32s = |key: &str| block::read_u32s(&view["pairs"][key]).ok_or_else(damaged);
    let (a, b, matches, inliers) = (u32s("a")?, u32s("b")?, u32s("matches")?, u32s("inliers")?);
    let (configuration, lines) = (u32s("configuration")?, u32s("lines")?);
    let ends = block::read_u16s(&view["ends"]).ok_or_else(damaged)?;
    let columns = [&b, &matches, &inliers, &configuration, &lines];
    if columns.iter().any(|column| column.len() != a.len()) {
        return Err(damaged());
    }
    let mut rest = &ends[..];
    let mut out = HashMap::new();
    for i in 0..a.len() {
        let number = |photograph: u32| numbers.get(photograph as usize).copied().ok_or_else(damaged);
        let (p, q) = (number(a[i])?, number(b[i])?);
        let (own, left) = rest.split_at_checked(4 * lines[i] as usize).ok_or_else(damaged)?;
        rest = left;
        // The pair lies the other way round where its photographs do.
        let turned = |line: &[u16]| [line[2], line[3], line[0], line[1]];
        let own = if p < q { own.to_vec() } else { own.chunks_exact(4).flat_map(turned).collect() };
        let kind = view["configurations"][configuration[i] as usize].as_str().unwrap_or_default().to_owned();
        let pair = SavedPair { matches: matches[i], inliers: inliers[i], configuration: kind, lines: own };
        out.insert((p.min(q), p.max(q)), pair);
    }
    Ok(out)
}

// ---- figures

/// All figures by their path; of a list that is the reasons of a verdict, each number by its measure. Other lists have no
/// place in a table.
fn flat(figures: &Value) -> Vec<(String, Value)> {
    fn add(out: &mut Vec<(String, Value)>, path: &str, value: &Value) {
        let under = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        match value {
            Value::Object(object) => object.iter().for_each(|(key, value)| add(out, &under(key), value)),
            Value::Array(list) => {
                for reason in list {
                    if let Some(measure) = reason["measure"].as_str() {
                        out.push((under(measure), reason["value"].clone()));
                    }
                }
            }
            Value::Null => {}
            other => out.push((path.to_owned(), other.clone())),
        }
    }
    let mut out = vec![];
    add(&mut out, "", figures);
    out
}

/// A row for each figure, those that differ first.
fn rows(before: &[(String, Value)], after: &[(String, Value)]) -> Vec<Vec<String>> {
    let [old, new] =
        [before, after].map(|run| run.iter().map(|(k, v)| (k.as_str(), v)).collect::<HashMap<_, _>>());
    let mut keys: Vec<&str> = after.iter().map(|(key, _)| key.as_str()).collect();
    keys.extend(before.iter().map(|(key, _)| key.as_str()).filter(|key| !new.contains_key(key)));
    let text = |value: Option<&&Value>| match value {
        None => "–".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(n)) => n.as_f64().map_or_else(|| n.to_string(), number),
        Some(value) => value.to_string(),
    };
    let mut rows: Vec<Vec<String>> = keys
        .into_iter()
        .map(|key| {
            let (p, q) = (old.get(key), new.get(key));
            let change = match (p.and_then(|v| v.as_f64()), q.and_then(|v| v.as_f64())) {
                _ if p == q => "=".to_owned(),
                (Some(p), Some(q)) => format!("{}{}", if q > p { "+" } else { "" }, number(q - p)),
                _ => String::new(),
            };
            vec![key.to_owned(), text(p), text(q), change]
        })
        .collect();
    rows.sort_by_key(|row| row[3] == "=");
    rows
}

/// A number with about four digits.
fn number(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{value}");
    }
    let decimals = (3 - libm::log10(value.abs()).floor() as i32).clamp(0, 9) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ax: f32, bx: f32, inlier: bool) -> KeypointMatch {
        let keypoint = |x| Keypoint { x, y: 5.0, scale: 2.0, angle: 0.0, ..Keypoint::default() };
        let pair = Match { a: 0, b: 0, distance: 1.0, ratio: 0.5 };
        KeypointMatch { pair, a: keypoint(ax), b: keypoint(bx), residual: 0.5, inlier }
    }

    #[test]
    fn a_match_is_the_same_within_a_pixel_at_both_ends() {
        let before =
            vec![row(10.0, 20.0, true), row(50.0, 60.0, true), row(80.0, 90.0, true), row(1.0, 1.0, false)];
        let after =
            vec![row(10.6, 20.4, true), row(50.0, 62.0, true), row(80.0, 90.0, false), row(1.0, 1.0, true)];
        let (rows, runs) = united(before, after);
        assert_eq!(
            runs,
            [BOTH, GAINED, LOST, GAINED, LOST],
            "near, elsewhere in B, no longer an inlier, now one, gone"
        );
        assert_eq!(rows.len(), 5, "each once");
        assert!(rows.iter().all(|row| row.inlier), "of the run in which it is one");
    }

    #[test]
    fn figures_are_compared_by_their_path() {
        let [a, b] = [
            json!({ "model": "homography", "rms_px": 0.5, "device": "cpu", "matrix": [1, 2], "reasons": [{ "measure": "chance", "value": 0.1 }] }),
            json!({ "model": "affine", "rms_px": 0.75, "device": "cpu", "reasons": [{ "measure": "chance", "value": 0.3 }], "new": 1 }),
        ];
        let expected = [
            ["model", "homography", "affine", ""],
            ["rms_px", "0.5000", "0.7500", "+0.2500"],
            ["reasons.chance", "0.1000", "0.3000", "+0.2000"],
            ["new", "–", "1", ""],
            ["device", "cpu", "cpu", "="],
        ];
        let mut found = rows(&flat(&a), &flat(&b));
        let place = |row: &Vec<String>| expected.iter().position(|other| other[0] == row[0]);
        assert_eq!(found.last().unwrap()[0], "device", "what is equal comes last");
        found.sort_by_key(place);
        assert_eq!(found, expected, "lists are left out");
    }
}
