//! A picture laid on another by two runs, and the disparities of two runs.

use super::saved::{SavedPage, SavedView};
use super::{Compared, same_size};
use crate::block;
use crate::page::{DISPARITY, REGISTRATION};
use crate::picture::Embedded;
use crate::still;
use serde_json::{Value, json};
use tiepoint::image::Size;
use tiepoint::{Error, Result};

/// Disparities that differ by more than this many pixels count as different.
const DIFFERENT: f32 = 1.0;

pub(super) fn registration_of(pages: [(&SavedPage, &Value); 2], id: &str) -> Result<Compared> {
    same_size(pages, "reference")?;
    let [(before, a), (after, b)] = pages;
    let named = |page: &SavedPage, view: &Value, run: &str, side: &str| -> Result<Embedded> {
        let mut picture = page.picture(&view["warped"], &format!("{id}-{side}"))?;
        picture.described["name"] = format!("{} ({run})", picture.text("name")).into();
        Ok(picture)
    };
    let [old, new] = [named(before, a, "before", "a")?, named(after, b, "after", "b")?];
    let Size { width, height } = new.size;
    let gap = width as f64 * 1.02;
    let content = still::image(&old, 0.0, "") + &still::image(&new, gap, "");
    let still =
        still::svg(gap + width as f64, height as f64, "The registered picture, before and after", &content);
    let mut data = b.clone();
    (data["reference"], data["warped"]) = (old.described, new.described);
    data["before"] = true.into();
    let covered = |page: &SavedPage, view: &Value| {
        let bytes = block::read_u8s(&view["covered"]);
        let bytes = bytes.ok_or_else(|| page.fault("what is covered cannot be read"))?;
        Ok::<_, Error>(bytes.iter().filter(|b| **b != 0).count() as f64 / bytes.len().max(1) as f64)
    };
    let [old, new] = [covered(before, a)?, covered(after, b)?].map(|share| format!("{:.1} %", 100.0 * share));
    let view = SavedView { kind: &REGISTRATION, still, data };
    let said = format!("covered before: {old}; after: {new}");
    let tiles = vec![("covered before", old), ("covered after", new)];
    Ok(Compared { view, tiles, described: json!({ "view": "registration" }), said })
}

pub(super) fn disparity_of(pages: [(&SavedPage, &Value); 2], id: &str) -> Result<Compared> {
    same_size(pages, "")?;
    let [(before, a), (after, b)] = pages;
    if a["step"] != b["step"] {
        return Err(Error::Mismatch(format!(
            "{} holds one pixel in {}, {} one in {}: give both the same --report-limit",
            before.name, a["step"], after.name, b["step"]
        )));
    }
    let map = |page: &SavedPage, view: &Value| {
        let [columns, rows] = ["columns", "rows"].map(|key| view[key].as_u64().map(|n| n as usize));
        let found = columns.zip(rows).and_then(|(c, r)| block::read_map(&view["disparity"], c, r));
        found.ok_or_else(|| page.fault("the disparities cannot be read"))
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
            let picture = after.picture(&b[key], &format!("{id}-{suffix}"))?;
            (width, height) = (picture.size.width as f64, picture.size.height as f64);
            content += &still::image(&picture, 0.0, more);
            data[key] = picture.described;
        }
    }
    let still = still::svg(width, height, "The left picture", &content);
    let described =
        json!({ "view": "disparity", "both": both, "different": other, "gained": gained, "lost": lost });
    let shares = [both, other, gained, lost].map(|share| format!("{:.1} %", 100.0 * share));
    let [both, other, gained, lost] = &shares;
    let said = format!(
        "disparities in both runs: {both} of the pixels, {other} differ by more than a pixel; only after: {gained}; only before: {lost}"
    );
    let names = ["valid in both", "differ by more than 1 px", "only after", "only before"];
    let tiles = names.into_iter().zip(shares).collect();
    Ok(Compared { view: SavedView { kind: &DISPARITY, still, data }, tiles, described, said })
}
