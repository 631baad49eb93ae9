//! The matches of two runs.

use super::saved::{SavedPage, SavedView};
use super::{BOTH, Compared, GAINED, LOST, same_size, told};
use crate::block;
use crate::counted;
use crate::matches::{self, KeypointMatch};
use crate::page::MATCHES;
use serde_json::{Value, json};
use std::collections::HashMap;
use tiepoint::Result;
use tiepoint::feature::Keypoint;
use tiepoint::matching::Match;

/// Two matches are the same if both ends lie this near, in pixels.
const SAME: f32 = 1.0;

pub(super) fn matches_of(pages: [(&SavedPage, &Value); 2], id: &str) -> Result<Compared> {
    same_size(pages, "a")?;
    same_size(pages, "b")?;
    let [(before, a), (after, b)] = pages;
    let verified = !a["model"].is_null() || !b["model"].is_null();
    let (rows, runs) = united(rows_of(before, a)?, rows_of(after, b)?);
    let count =
        |run: u8| rows.iter().zip(&runs).filter(|(row, r)| **r == run && (row.inlier || !verified)).count();
    let [both, lost, gained] = [BOTH, LOST, GAINED].map(count);
    let picture = |side: &str| after.picture(&b[side], &format!("{id}-{side}"));
    let pictures = [picture("a")?, picture("b")?];
    let shown: Vec<&KeypointMatch> = rows.iter().collect();
    let still = matches::still(&pictures, &shown);
    let mut data = b.clone();
    let [pa, pb] = pictures.map(|p| p.described);
    (data["a"], data["b"]) = (pa, pb);
    data["columns"] = matches::columns(&shown)?;
    data["runs"] = block::u8s(runs.iter().copied())?;
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
    let described = json!({ "view": "matches", "both": both, "gained": gained, "lost": lost });
    let said = told(what, [both, lost, gained]) + note;
    let names = [if verified { "inliers of both" } else { "matches of both" }, "only after", "only before"];
    let tiles = names.into_iter().zip([both, gained, lost].map(counted)).collect();
    Ok(Compared { view: SavedView { kind: &MATCHES, still, data }, tiles, described, said })
}

const FLOATS: [&str; 11] =
    ["ax", "ay", "bx", "by", "ascale", "aangle", "bscale", "bangle", "distance", "ratio", "residual"];

fn rows_of(page: &SavedPage, view: &Value) -> Result<Vec<KeypointMatch>> {
    let columns = &view["columns"];
    let damaged = |what: &str| page.fault(&format!("the column {what} cannot be read"));
    let f32s = |key: &&str| block::read(&columns[*key], f32::from_le_bytes).ok_or_else(|| damaged(key));
    let floats = FLOATS.iter().map(f32s).collect::<Result<Vec<_>>>()?;
    let u32s = |key: &str| block::read(&columns[key], u32::from_le_bytes).ok_or_else(|| damaged(key));
    let (a, b) = (u32s("a")?, u32s("b")?);
    let inlier = block::read_u8s(&columns["inlier"]).ok_or_else(|| damaged("inlier"))?;
    let n = floats[0].len();
    if floats.iter().any(|c| c.len() != n) || a.len() != n || b.len() != n || inlier.len() != n {
        return Err(damaged("of matches"));
    }
    let keypoint = |x, y, scale, angle| Keypoint { x, y, scale, angle, ..Keypoint::default() };
    let row = |i: usize| {
        let [ax, ay, bx, by, a_scale, a_angle, b_scale, b_angle, distance, ratio, residual] =
            std::array::from_fn(|column| floats[column][i]);
        let pair = Match { a: a[i], b: b[i], distance, ratio };
        let (a, b) = (keypoint(ax, ay, a_scale, a_angle), keypoint(bx, by, b_scale, b_angle));
        KeypointMatch { pair, a, b, residual, inlier: inlier[i] != 0 }
    };
    Ok((0..n).map(row).collect())
}

/// The matches of both runs, each once, and which run has it. A match that both have is taken from the later run; but
/// if it is an inlier in only one run, it counts for that run alone.
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
        let expected = [BOTH, GAINED, LOST, GAINED, LOST];
        assert_eq!(runs, expected, "near, elsewhere in B, no longer an inlier, now one, gone");
        assert_eq!(rows.len(), 5, "each once");
        assert!(rows.iter().all(|row| row.inlier), "of the run in which it is one");
    }
}
