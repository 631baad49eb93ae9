//! Many photographs that were matched pair by pair: which of them match, and how strongly.

use crate::page::{Render, rows_of_table};
use crate::picture::{Embedded, embed};
use crate::{Detail, Picture, Rgb, VIRIDIS, block, colour_at, still};
use html_escape::encode_text as text;
use serde_json::{Value, json};
use std::collections::HashMap;
use tiepoint::image::{AnyView, Size};
use tiepoint::{Error, Result};

/// A photograph of a collection.
#[derive(Clone, Debug)]
pub struct CollectionImage<'a> {
    /// Its name, such as its file: any text.
    pub name: String,
    /// Its size in pixels, in which matches are given; empty where it could not be read.
    pub size: Size,
    /// The whole photograph, at any size.
    pub thumbnail: Option<AnyView<'a>>,
    /// The number of features, where that is known.
    pub features: Option<usize>,
    /// Why it could not be used.
    pub problem: Option<String>,
}

/// Two photographs that show the same thing.
#[derive(Clone, Debug)]
pub struct CollectionPair<'a> {
    /// The index of the first photograph.
    pub a: usize,
    /// The index of the second, another one.
    pub b: usize,
    /// How many matches there were.
    pub matches: u32,
    /// How many of them the geometry confirms.
    pub inliers: u32,
    /// The kind of geometry, in a word or two.
    pub configuration: &'a str,
    /// The places of all or some inliers: x and y in A, x and y in B.
    pub ends: Vec<[f32; 4]>,
}

/// The pairs that were tried. Pairs with a result count as tried, even if they are not named.
#[derive(Clone, Copy, Debug)]
pub enum Tried<'a> {
    /// All pairs of photographs.
    All,
    /// All pairs except those that contain one of these photographs, by index.
    Without(&'a [usize]),
    /// These pairs, by index.
    These(&'a [[usize; 2]]),
}

/// Photographs and the pairs among them.
#[derive(Clone, Debug)]
pub struct CollectionView<'a> {
    /// The photographs, in the order in which they are to be shown.
    pub images: Vec<CollectionImage<'a>>,
    /// The pairs with a result.
    pub pairs: Vec<CollectionPair<'a>>,
    /// The pairs that were tried.
    pub tried: Tried<'a>,
    /// The text below the view. May be empty.
    pub caption: String,
}

/// The most photographs: the table of tried pairs grows with the square of their number.
const MOST_IMAGES: usize = 32_768;
/// The longest side of a thumbnail, pixels, at full detail.
const THUMBNAIL: usize = 1280;
/// A thumbnail below this many pixels shows nothing.
const LEAST_THUMBNAIL: usize = 16;
/// As many lines take the bytes of one match on a page of matches, so the limit of matches allows this many lines each.
const LINES: usize = 6;
/// Rows and columns of the matrix in the still picture, at full detail.
const STILL: usize = 240;
/// The side of the still matrix, and of the sheet of thumbnails beside it.
const SIDE: f64 = 1000.0;
/// Rows of a table for readers without JavaScript.
const ROWS: usize = 50;

/// The colour of pairs that were tried without a result.
const TRIED: Rgb = [58, 65, 78];

/// The index of a pair of different photographs among all pairs of `count`: the upper triangle, row by row.
pub(crate) fn place_of(a: usize, b: usize, count: usize) -> usize {
    let (a, b) = (a.min(b), a.max(b));
    a * (2 * count - a - 1) / 2 + (b - a - 1)
}

/// The distinct texts in the order of their first occurrence, and for each text its index among these.
pub(crate) fn numbered<'t>(texts: impl Iterator<Item = &'t str>) -> (Vec<&'t str>, Vec<u32>) {
    let (mut names, mut numbers) = (Vec::new(), HashMap::new());
    let number = |text| {
        *numbers.entry(text).or_insert_with(|| {
            names.push(text);
            names.len() as u32 - 1
        })
    };
    let all = texts.map(number).collect();
    (names, all)
}

impl Render for CollectionView<'_> {
    fn render(&self, id: &str, detail: Detail) -> Result<(String, Value)> {
        self.check().map_err(Error::Mismatch)?;
        let thumbnails = self.thumbnails(id, detail)?;
        let mut pairs: Vec<&CollectionPair<'_>> = self.pairs.iter().collect();
        pairs.sort_by_key(|p| (std::cmp::Reverse(p.inliers), p.a, p.b));
        // Both limits shrink by the same factor, so lines shrink as the area of thumbnails does.
        let lines = lines_each(&pairs, detail.matches * LINES * detail.longest / Detail::MOST.longest);
        let still = format!("{}{}", self.still(&thumbnails, detail), self.still_figures(&pairs));
        let mut data = json!({
            "view": "collection",
            "images": self.images.iter().zip(&thumbnails).map(described).collect::<Vec<_>>(),
            "thumbnails_of": self.images.iter().filter(|i| i.thumbnail.is_some()).count(),
            "tried": self.tried_bits(&pairs)?,
        });
        self.add_pairs(&mut data, &pairs, lines)?;
        Ok((still, data))
    }
}

impl CollectionView<'_> {
    fn check(&self) -> std::result::Result<(), String> {
        let count = self.images.len();
        if !(1..=MOST_IMAGES).contains(&count) {
            return Err(format!("{count} photographs: a page shows a collection of 1 to {MOST_IMAGES}"));
        }
        let verified = self.pairs.iter().map(|p| [p.a, p.b]);
        let (tried, without) = match self.tried {
            Tried::All => (&[][..], &[][..]),
            Tried::Without(photographs) => (&[][..], photographs),
            Tried::These(pairs) => (pairs, &[][..]),
        };
        if let Some(i) = without.iter().find(|i| **i >= count) {
            return Err(format!("the photograph {i}: expected one below {count}"));
        }
        if let Some([a, b]) =
            verified.chain(tried.iter().copied()).find(|[a, b]| a == b || *a.max(b) >= count)
        {
            return Err(format!(
                "the pair of photographs {a} and {b}: expected two different ones below {count}"
            ));
        }
        let mut seen = Vec::new();
        for p in &self.pairs {
            let of = format!("the pair of photographs {} and {}", p.a, p.b);
            if p.inliers > p.matches || p.ends.len() > p.inliers as usize {
                let (places, inliers, matches) = (p.ends.len(), p.inliers, p.matches);
                return Err(format!("{of}: {places} places of {inliers} inliers of {matches} matches"));
            }
            if !p.ends.iter().flatten().all(|v| v.is_finite()) {
                return Err(format!("{of}: a place of an inlier is not finite"));
            }
            seen.push((p.a.min(p.b), p.a.max(p.b)));
        }
        seen.sort_unstable();
        match seen.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("the pair of photographs {:?} is there twice", pair[0])),
            None => Ok(()),
        }
    }

    /// The thumbnails of the photographs that have one; empty where detail leaves no room for them.
    fn thumbnails(&self, id: &str, detail: Detail) -> Result<Vec<Option<Embedded>>> {
        let longest = |view: &AnyView<'_>| view.size().width.max(view.size().height);
        let given = self.images.iter().filter_map(|i| i.thumbnail.as_ref()).map(longest).max().unwrap_or(0);
        let longest = given.min(THUMBNAIL) * detail.longest / Detail::MOST.longest;
        let small = Detail { longest, ..detail };
        let thumbnail = |(i, image): (usize, &CollectionImage<'_>)| match image.thumbnail {
            Some(view) if longest >= LEAST_THUMBNAIL || longest >= given => {
                embed(&Picture { name: image.name.clone(), image: view }, &format!("{id}-t{i}"), small)
                    .map(Some)
            }
            Some(_) | None => Ok(None),
        };
        self.images.iter().enumerate().map(thumbnail).collect()
    }

    /// A bit for each pair of the upper triangle, row by row; nothing where all were tried.
    fn tried_bits(&self, pairs: &[&CollectionPair<'_>]) -> Result<Option<Value>> {
        if matches!(self.tried, Tried::All) {
            return Ok(None);
        }
        let n = self.images.len();
        let mut bits = vec![0_u8; (n * (n - 1) / 2).div_ceil(8)];
        let mut set = |a: usize, b: usize| {
            let place = place_of(a, b, n);
            bits[place / 8] |= 1 << (place % 8);
        };
        self.for_each_tried(&mut set);
        pairs.iter().for_each(|p| set(p.a, p.b));
        block::u8s(bits.into_iter()).map(Some)
    }

    fn for_each_tried(&self, f: &mut impl FnMut(usize, usize)) {
        let n = self.images.len();
        match self.tried {
            Tried::All => (0..n).for_each(|a| (a + 1..n).for_each(|b| f(a, b))),
            Tried::Without(photographs) => {
                let mut left = vec![true; n];
                photographs.iter().for_each(|i| left[*i] = false);
                let among: Vec<usize> = (0..n).filter(|i| left[*i]).collect();
                among.iter().enumerate().for_each(|(i, a)| among[i + 1..].iter().for_each(|b| f(*a, *b)));
            }
            Tried::These(pairs) => pairs.iter().for_each(|[a, b]| f(*a, *b)),
        }
    }

    /// The pairs, from the strongest. Each has as many lines as fit, in 65535ths of the photographs' sides.
    fn add_pairs(&self, data: &mut Value, pairs: &[&CollectionPair<'_>], lines: usize) -> Result<()> {
        let (names, numbers) = numbered(pairs.iter().map(|p| p.configuration));
        let mut ends = Vec::new();
        for p in pairs {
            let sizes = [self.images[p.a].size, self.images[p.b].size];
            let shown = p.ends.len().min(lines);
            ends.extend((0..shown).flat_map(|i| shares(p.ends[i * p.ends.len() / shown], sizes)));
        }
        let u32s = |value: &dyn Fn(&CollectionPair<'_>) -> u32| block::u32s(pairs.iter().map(|p| value(p)));
        data["pairs"] = json!({
            "a": u32s(&|p| p.a as u32)?,
            "b": u32s(&|p| p.b as u32)?,
            "matches": u32s(&|p| p.matches)?,
            "inliers": u32s(&|p| p.inliers)?,
            "configuration": block::u32s(numbers.into_iter())?,
            "lines": u32s(&|p| p.ends.len().min(lines) as u32)?,
        });
        data["configurations"] = names.into();
        data["ends"] = block::u16s(ends.into_iter())?;
        Ok(())
    }

    // ---- without JavaScript

    fn still(&self, thumbnails: &[Option<Embedded>], detail: Detail) -> String {
        let n = self.images.len();
        let blocks = n.min((STILL * detail.longest / Detail::MOST.longest).max(16));
        let across = (n as f64).sqrt().ceil();
        let cell = SIDE / across;
        let mut sheet = String::new();
        for (i, thumbnail) in thumbnails.iter().enumerate() {
            let Some(thumbnail) = thumbnail else { continue };
            let (x, y) = ((i as f64 % across) * cell + SIDE * 1.03, (i as f64 / across).floor() * cell);
            let (side, Size { width, height }) = (cell * 0.94, thumbnail.size);
            let image = still::image(thumbnail, 0.0, "");
            sheet += &format!(
                "<svg x=\"{x:.2}\" y=\"{y:.2}\" width=\"{side:.2}\" height=\"{side:.2}\" viewBox=\"0 0 {width} {height}\">{image}</svg>",
            );
        }
        let (scale, matrix) = (SIDE / blocks as f64, self.still_matrix(blocks, n.div_ceil(blocks)));
        let matrix = format!("<g transform=\"scale({scale})\">{matrix}</g>");
        let label = "Left: which pairs of photographs match, brighter where more matches agree. Right: the photographs";
        still::svg(2.03 * SIDE, SIDE, label, &format!("{matrix}{sheet}"))
    }

    /// A square for each pair, or for the strongest of `of` × `of` pairs; neighbours of one colour are one rectangle.
    fn still_matrix(&self, blocks: usize, of: usize) -> String {
        let mut cells = vec![0_u8; blocks * blocks];
        let mut raise = |a: usize, b: usize, level: u8| {
            for (x, y) in [(a / of, b / of), (b / of, a / of)] {
                let cell = &mut cells[y * blocks + x];
                *cell = level.max(*cell);
            }
        };
        self.for_each_tried(&mut |a, b| raise(a, b, 1));
        let most = self.pairs.iter().map(|p| p.inliers).max().unwrap_or(1);
        for p in &self.pairs {
            raise(p.a, p.b, 2 + (15.0 * strength(p.inliers, most)).round() as u8);
        }
        let mut paths = vec![String::new(); 18];
        for (y, row) in cells.chunks_exact(blocks).enumerate() {
            let mut x = 0;
            for run in row.chunk_by(|a, b| a == b) {
                if run[0] > 0 {
                    paths[usize::from(run[0])] += &format!("M{x} {y}h{}v1h-{}z", run.len(), run.len());
                }
                x += run.len();
            }
        }
        let colour = |level: usize| match level {
            0 | 1 => TRIED,
            level => colour_at(&VIRIDIS, 0.15 + 0.85 * (level - 2) as f32 / 15.0),
        };
        let path = |(level, d): (usize, &String)| match d.is_empty() {
            true => String::new(),
            false => format!("<path d=\"{d}\" fill=\"{}\"/>", still::colour(colour(level))),
        };
        paths.iter().enumerate().map(path).collect()
    }

    /// The strongest pairs, and the photographs that have none or could not be read.
    fn still_figures(&self, pairs: &[&CollectionPair<'_>]) -> String {
        let name = |i: usize| self.images[i].name.clone();
        let row = |p: &&CollectionPair<'_>| {
            let [inliers, matches] = [p.inliers, p.matches].map(|count| count.to_string());
            vec![name(p.a), name(p.b), inliers, matches, p.configuration.to_owned()]
        };
        let mut paired = vec![false; self.images.len()];
        pairs.iter().for_each(|p| (paired[p.a], paired[p.b]) = (true, true));
        let problem = |(i, image): (usize, &CollectionImage<'_>)| match (&image.problem, paired[i]) {
            (Some(problem), _) => Some(vec![image.name.clone(), problem.clone()]),
            (None, false) => Some(vec![image.name.clone(), "matches no other photograph".to_owned()]),
            (None, true) => None,
        };
        let problems: Vec<_> = self.images.iter().enumerate().filter_map(problem).collect();
        let strongest: Vec<_> = pairs.iter().take(ROWS).map(row).collect();
        let legend = match (pairs.first(), pairs.last()) {
            (Some(most), Some(least)) => format!(
                "Squares are pairs, of {} inliers (dark) to {} (bright); grey pairs have no verified match, the others were not tried.",
                least.inliers, most.inliers
            ),
            _ => "No two photographs show the same thing.".to_owned(),
        };
        let head = ["first", "second", "inliers", "matches", "geometry"];
        let strongest = listed("The strongest pairs", &head, &strongest, pairs.len());
        let head = ["photograph", "problem"];
        let problems = listed("Photographs with problems", &head, &problems, problems.len());
        format!("<div class=\"still-figures\"><p>{legend}</p>{strongest}{problems}</div>")
    }
}

/// The first rows of a table, and how many there are in all.
fn listed(heading: &str, head: &[&str], rows: &[Vec<String>], count: usize) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let head: Vec<String> = head.iter().map(|name| (*name).to_owned()).collect();
    let shown = rows.len().min(ROWS);
    let of = if shown < count { format!(": {shown} of {count}") } else { String::new() };
    format!("<p>{}{of}</p>{}", text(heading), rows_of_table(heading, &head, &rows[..shown]))
}

fn described((image, thumbnail): (&CollectionImage<'_>, &Option<Embedded>)) -> Value {
    let Size { width, height } = image.size;
    let covers = thumbnail.as_ref().map(|t| {
        let scale = [width as f64 / t.size.width as f64, height as f64 / t.size.height as f64];
        [scale[0] * t.covers[0] as f64, scale[1] * t.covers[1] as f64]
    });
    json!({
        "name": image.name,
        "width": width,
        "height": height,
        "features": image.features,
        "problem": image.problem,
        "id": thumbnail.as_ref().map(|t| &t.described["id"]),
        "step": thumbnail.as_ref().map(|t| &t.described["step"]),
        "covers": covers,
    })
}

/// The strength of a pair among those of at most `most` inliers, from 0 to 1, on a logarithmic scale.
fn strength(inliers: u32, most: u32) -> f32 {
    let log = |n: u32| libm::logf(1.0 + n as f32);
    log(inliers) / log(most).max(f32::MIN_POSITIVE)
}

/// The most lines a pair may have so that all pairs together have no more than `most`.
fn lines_each(pairs: &[&CollectionPair<'_>], most: usize) -> usize {
    let (mut low, mut high) = (0, pairs.iter().map(|p| p.ends.len()).max().unwrap_or(0));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match pairs.iter().map(|p| p.ends.len().min(middle)).sum::<usize>() <= most {
            true => low = middle,
            false => high = middle - 1,
        }
    }
    low
}

/// Places as 65535ths of the sides of photographs; 0 is the outer edge of the first pixel.
fn shares([ax, ay, bx, by]: [f32; 4], [a, b]: [Size; 2]) -> [u16; 4] {
    let share =
        |v: f32, side: usize| ((v + 0.5) / side.max(1) as f32 * 65535.0).round().clamp(0.0, 65535.0) as u16;
    [share(ax, a.width), share(ay, a.height), share(bx, b.width), share(by, b.height)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Report, Section, View};
    use tiepoint::image::Image;

    fn image(name: &str) -> CollectionImage<'static> {
        let (name, size) = (name.to_owned(), Size::new(400, 300));
        CollectionImage { name, size, thumbnail: None, features: Some(10), problem: None }
    }

    fn pair(a: usize, b: usize, inliers: u32) -> CollectionPair<'static> {
        let ends = (0..inliers).map(|i| [i as f32, 0.0, 399.5, 299.5]).collect();
        CollectionPair { a, b, matches: inliers + 5, inliers, configuration: "planar", ends }
    }

    fn view<'a>(images: usize, pairs: Vec<CollectionPair<'a>>, tried: Tried<'a>) -> CollectionView<'a> {
        let images = (0..images).map(|i| image(&format!("{i}.jpg"))).collect();
        CollectionView { images, pairs, tried, caption: String::new() }
    }

    #[test]
    fn lines_are_shared_evenly_among_pairs() {
        let pairs = [pair(0, 1, 90), pair(0, 2, 10), pair(1, 2, 40)];
        let pairs: Vec<_> = pairs.iter().collect();
        assert_eq!(lines_each(&pairs, 1000), 90, "all fit");
        assert_eq!(lines_each(&pairs, 70), 30, "30 + 10 + 30");
        assert_eq!(lines_each(&pairs, 2), 0, "not one of each");
        assert_eq!(lines_each(&[], 5), 0, "no pair");
    }

    #[test]
    fn photographs_and_pairs_that_do_not_fit_are_refused() {
        let refused = |view: CollectionView<'_>, part: &str| {
            let error = view.render("v", Detail::MOST).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        refused(view(0, vec![], Tried::All), "0 photographs");
        refused(view(2, vec![pair(0, 2, 3)], Tried::All), "below 2");
        refused(view(2, vec![pair(1, 1, 3)], Tried::All), "two different ones");
        refused(view(2, vec![], Tried::Without(&[2])), "photograph 2");
        refused(view(2, vec![pair(0, 1, 3), pair(1, 0, 4)], Tried::All), "twice");
        refused(view(2, vec![CollectionPair { matches: 2, ..pair(0, 1, 3) }], Tried::All), "3 inliers of 2");
        let ends = vec![[f32::NAN, 0.0, 0.0, 0.0]];
        refused(view(2, vec![CollectionPair { ends, ..pair(0, 1, 3) }], Tried::All), "not finite");
    }

    #[test]
    fn places_are_kept_to_a_65535th() {
        let size = Size::new(4000, 3000);
        assert_eq!(shares([-0.5, 2999.5, 3999.5, 1499.5], [size; 2]), [0, 65535, 65535, 32768]);
        assert_eq!(shares([-9.0, 1e9, 0.0, 0.0], [size; 2])[..2], [0, 65535], "moved to the edge");
    }

    #[test]
    fn the_data_hold_the_tried_pairs_and_list_the_strongest_first() {
        let pairs = vec![pair(2, 0, 4), pair(1, 3, 9)];
        let tried = [[0, 1], [3, 2]];
        let (still, data) = view(4, pairs, Tried::These(&tried)).render("v", Detail::MOST).unwrap();
        let column = |name: &str| block::read_u8s(&data["pairs"][name]).unwrap();
        assert_eq!(column("inliers")[..8], [9, 0, 0, 0, 4, 0, 0, 0], "strongest first");
        assert_eq!(column("a")[..4], [1, 0, 0, 0]);
        // The upper triangle of four photographs: 01 02 03 12 13 23.
        assert_eq!(block::read_u8s(&data["tried"]).unwrap(), [0b11_0011], "01, 23 and the two with a result");
        assert_eq!(block::read_u8s(&data["ends"]).unwrap().len(), 8 * 13, "all lines");
        let colour = still::colour(TRIED);
        assert!(still.contains(&format!("fill=\"{colour}\"")), "tried without result is seen");
        let (still, data) = view(2, vec![pair(0, 1, 3)], Tried::All).render("v", Detail::MOST).unwrap();
        assert!(data["tried"].is_null(), "all");
        assert!(!still.contains(&colour), "and all matched");
        let (_, data) = view(4, vec![], Tried::Without(&[3])).render("v", Detail::MOST).unwrap();
        assert_eq!(block::read_u8s(&data["tried"]).unwrap(), [0b00_1011], "01, 02 and 12");
    }

    #[test]
    fn two_thousand_photographs_fit_a_small_page() {
        let thumbnail = Image::from_fn(Size::new(64, 48), |x, y| ((3 * x) ^ (5 * y)) as u8);
        let mut collection = view(2000, vec![], Tried::All);
        collection.images.iter_mut().for_each(|i| i.thumbnail = Some(thumbnail.view().into()));
        collection.pairs = (0..1999).map(|i| pair(i, i + 1, 300)).collect();
        let section = Section::new("all").view(View::Collection(collection));
        let html = Report::new("a", "b").limit(2_000_000).section(section).html().unwrap();
        assert!(html.len() <= 2_000_000, "{}", html.len());
    }
}
