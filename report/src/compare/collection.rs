//! The pairs of photographs of two runs.

use super::saved::{SavedPage, SavedView};
use super::{BOTH, Compared, GAINED, LOST, told};
use crate::block;
use crate::collection::{numbered, place_of};
use crate::counted;
use crate::page::COLLECTION;
use crate::still;
use serde_json::{Value, json};
use std::collections::HashMap;
use tiepoint::Result;

/// A pair of photographs in one run.
struct SavedPair {
    matches: u32,
    inliers: u32,
    configuration: String,
    lines: Vec<u16>,
}

pub(super) fn collection_of(pages: [(&SavedPage, &Value); 2], id: &str) -> Result<Compared> {
    let [(before, a), (after, b)] = pages;
    let images = |page: &SavedPage, view: &Value| {
        let list = view["images"].as_array().cloned();
        list.ok_or_else(|| page.fault("no photographs"))
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
    let shown = |key: &(u32, u32)| new.get(key).or_else(|| old.get(key));
    keys.sort_by_key(|key| (std::cmp::Reverse(shown(key).map_or(0, |pair| pair.inliers)), *key));
    let shown: Vec<&SavedPair> = keys.iter().filter_map(shown).collect();
    let (names, kinds) = numbered(shown.iter().map(|pair| pair.configuration.as_str()));
    let run = |key: &(u32, u32)| match (old.contains_key(key), new.contains_key(key)) {
        (true, false) => LOST,
        (false, _) => GAINED,
        (true, true) => BOTH,
    };
    let runs: Vec<u8> = keys.iter().map(run).collect();
    let mut data = b.clone();
    if !a["tried"].is_null() || !b["tried"].is_null() || first.len().max(second.len()) < all.len() {
        let mut tried = vec![0_u8; (all.len() * all.len().saturating_sub(1) / 2).div_ceil(8)];
        for (page, view, numbers) in [(before, a, &first), (after, b, &second)] {
            let marked = mark_tried(&mut tried, all.len(), &view["tried"], numbers);
            marked.ok_or_else(|| page.fault("the pairs that were tried cannot be read"))?;
        }
        data["tried"] = block::u8s(tried.into_iter())?;
    }
    data["images"] = all.into();
    data["pairs"] = json!({
        "a": block::u32s(keys.iter().map(|key| key.0))?,
        "b": block::u32s(keys.iter().map(|key| key.1))?,
        "matches": block::u32s(shown.iter().map(|pair| pair.matches))?,
        "inliers": block::u32s(shown.iter().map(|pair| pair.inliers))?,
        "configuration": block::u32s(kinds.into_iter())?,
        "lines": block::u32s(shown.iter().map(|pair| pair.lines.len() as u32 / 4))?,
        "before": block::u32s(keys.iter().map(|key| old.get(key).map_or(0, |pair| pair.inliers)))?,
        "runs": block::u32s(runs.iter().map(|run| u32::from(*run)))?,
    });
    data["configurations"] = names.into();
    data["ends"] = block::u16s(shown.iter().flat_map(|pair| pair.lines.iter().copied()))?;
    let [both, lost, gained] = [BOTH, LOST, GAINED].map(|run| runs.iter().filter(|r| **r == run).count());
    let [inliers_before, inliers_after] =
        [&old, &new].map(|pairs| pairs.values().map(|pair| pair.inliers as usize).sum::<usize>());
    let described = json!({
        "view": "collection", "both": both, "gained": gained, "lost": lost,
        "inliers_before": inliers_before, "inliers_after": inliers_after,
    });
    let names = ["pairs of both", "pairs only after", "pairs only before", "inliers before", "inliers after"];
    let counts = [both, gained, lost, inliers_before, inliers_after].map(counted);
    let (tiles, said) = (names.into_iter().zip(counts).collect(), told("pairs", [both, lost, gained]));
    Ok(Compared { view: SavedView { kind: &COLLECTION, still, data }, tiles, described, said })
}

/// Marks the pairs that a run has tried, among those of `count` photographs; `numbers` are the run's own.
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

/// The pairs of a page; `numbers` are the indices of its photographs on the new page.
fn pairs_of(page: &SavedPage, view: &Value, numbers: &[u32]) -> Result<HashMap<(u32, u32), SavedPair>> {
    let damaged = || page.fault("its pairs cannot be read");
    let u32s = |key: &str| block::read(&view["pairs"][key], u32::from_le_bytes).ok_or_else(damaged);
    let (a, b, matches, inliers) = (u32s("a")?, u32s("b")?, u32s("matches")?, u32s("inliers")?);
    let (configuration, lines) = (u32s("configuration")?, u32s("lines")?);
    let ends = block::read(&view["ends"], u16::from_le_bytes).ok_or_else(damaged)?;
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
        // The ends are exchanged if the photographs are in the opposite order on the new page.
        let turned = |line: &[u16]| [line[2], line[3], line[0], line[1]];
        let own = if p < q { own.to_vec() } else { own.chunks_exact(4).flat_map(turned).collect() };
        let kind = view["configurations"][configuration[i] as usize].as_str().unwrap_or_default().to_owned();
        let pair = SavedPair { matches: matches[i], inliers: inliers[i], configuration: kind, lines: own };
        out.insert((p.min(q), p.max(q)), pair);
    }
    Ok(out)
}
