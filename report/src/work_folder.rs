//! The page of a collection's work folder: which pairs match, the graph of photographs, and the matches of each pair.
//!
//! Photographs are read again for their thumbnails. Only features at the ends of the page's lines are kept in memory.

use crate::{CollectionImage, CollectionPair, CollectionView, Report, Section, Tried, View, counted};
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use tiepoint::assess::PairCounts;
use tiepoint::by_pixel;
use tiepoint::collection::{Collection, PairSet, PhotographFeatures, Results, VerifiedPair};
use tiepoint::device::Cpu;
use tiepoint::filter::shrink::shrink;
use tiepoint::image::{self, AnyImage, Size};
use tiepoint::{Error, Result};

/// The most lines of a page, unless `FEW` lines for every pair are more.
const LINES: usize = 500_000;
/// The number of lines that every pair may have, however many pairs there are.
const FEW: usize = 4;
/// The longest side of a thumbnail, in pixels.
const THUMBNAIL: std::ops::RangeInclusive<f64> = 48.0..=1280.0;
/// Bytes of a page that a pixel of a thumbnail takes, about.
const BYTES_PER_PIXEL: f64 = 0.6;

/// The page of a finished collection.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionPage {
    /// The page.
    pub html: String,
    /// Photographs that have features, but no picture on the page, and why.
    pub without_picture: Vec<(String, String)>,
}

impl CollectionPage {
    /// The page, of at most `limit` bytes. It says how it was `made` unless that is empty, and shows `figures` if there
    /// are any. As many photographs are read at once as the CPU has threads.
    ///
    /// # Errors
    /// Those of [`Collection::results`] and [`Report::html`]; [`Error::Cancelled`] when the work of `cpu` is to end.
    pub fn new(
        collection: &Collection,
        (limit, made): (usize, &str),
        figures: Option<&Value>,
        cpu: &Cpu,
    ) -> Result<Self> {
        let results = collection.results(cpu)?;
        let cpu = &cpu.begin_task("page", 2 * results.blocks() + collection.photographs().len());
        let pairs = pairs(&results, cpu)?;
        let mut wanted = vec![Vec::new(); collection.photographs().len()];
        for Pair { pair, lines, .. } in &pairs {
            for [a, b] in lines {
                wanted[pair.a].push(*a);
                wanted[pair.b].push(*b);
            }
        }
        let longest = longest(limit, wanted.len());
        let shown = all_shown(collection, &wanted, longest, cpu)?;
        let unread: Vec<usize> = (0..shown.len()).filter(|i| shown[*i].features.is_none()).collect();
        let tried = tried(&results, &unread);
        let counts: Vec<_> = pairs.iter().map(|pair| pair.counts).collect();
        let pairs = placed(pairs, &shown);
        let inliers: u64 = pairs.iter().map(|pair| u64::from(pair.inliers)).sum();
        let (count, verified) = (shown.len(), pairs.len());
        let named = || collection.photographs().iter().map(|photograph| &photograph.name).zip(&shown);
        let images = named().map(|(name, shown)| shown.image(name)).collect();
        let those = match &tried {
            None if unread.is_empty() => Tried::All,
            None => Tried::Without(&unread),
            Some(pairs) => Tried::These(pairs),
        };
        let view = CollectionView { images, pairs, tried: those, caption: String::new() };
        let mut section = Section::new("Pairs")
            .assessed(Some(collection.evidence(unread.len(), &counts).assess()))
            .tile("photographs", counted(count))
            .tile("verified pairs", counted(verified))
            .tile("inliers", counted(inliers as usize))
            .view(View::Collection(view));
        if let Some(figures) = figures {
            section = section.figures(figures.clone());
        }
        let read = (count - unread.len()) as u64;
        let of = tried.as_ref().map_or(read * read.saturating_sub(1) / 2, |pairs| pairs.len() as u64);
        let [pairs, of] = [verified, of as usize].map(counted);
        let lead = format!("{pairs} of {of} pairs of {} photographs show the same thing", counted(count));
        let root = collection.root();
        let title = root.file_name().unwrap_or(root.as_os_str()).to_string_lossy();
        let html = Report::new(title, lead).limit(limit).made(made).section(section).html()?;
        let lost = named().filter_map(|(name, shown)| Some((name.clone(), shown.without_picture.clone()?)));
        Ok(Self { html, without_picture: lost.collect() })
    }
}

/// The longest side of thumbnails with which those of `count` photographs fill half a page of `limit` bytes.
fn longest(limit: usize, count: usize) -> usize {
    let pixels = limit as f64 / 2.0 / BYTES_PER_PIXEL / count.max(1) as f64;
    (pixels * 4.0 / 3.0).sqrt().clamp(*THUMBNAIL.start(), *THUMBNAIL.end()) as usize
}

/// The pairs that were tried, but those of photographs that could not be read; `None` where all others were tried.
fn tried(results: &Results<'_>, unread: &[usize]) -> Option<Vec<[usize; 2]>> {
    let was_read = |pair: &[usize; 2]| pair.iter().all(|i| unread.binary_search(i).is_err());
    match results.tried() {
        PairSet::All => None,
        PairSet::List(pairs) => {
            Some(pairs.iter().map(|pair| pair.map(|i| i as usize)).filter(was_read).collect())
        }
    }
}

/// A verified pair, without the places of its inliers, and some of these as indices of features.
struct Pair {
    pair: CollectionPair<'static>,
    lines: Vec<[u32; 2]>,
    counts: PairCounts,
}

impl Pair {
    fn new(pair: &VerifiedPair, most: usize) -> Self {
        let (inliers, counts) = (pair.inliers().collect::<Vec<_>>(), pair.counts());
        let shown = inliers.len().min(most);
        let lines = (0..shown).map(|i| inliers[i * inliers.len() / shown]).collect();
        let [matches, inliers] = [pair.matches.len(), inliers.len()].map(|count| count as u32);
        let (a, b, configuration) = (pair.a, pair.b, pair.configuration.name());
        let pair = CollectionPair { a, b, matches, inliers, configuration, ends: Vec::new() };
        Self { pair, lines, counts }
    }
}

/// The verified pairs, with at most `LINES` lines in all or `FEW` each.
fn pairs(results: &Results<'_>, cpu: &Cpu) -> Result<Vec<Pair>> {
    let pairs_of = |block: usize| {
        cpu.check()?;
        cpu.advance(1);
        results.pairs_of(block)
    };
    let mut count = 0;
    for block in 0..results.blocks() {
        count += pairs_of(block)?.len();
    }
    let most = (LINES / count.max(1)).max(FEW);
    let mut pairs = Vec::with_capacity(count);
    for block in 0..results.blocks() {
        pairs.extend(pairs_of(block)?.iter().map(|pair| Pair::new(pair, most)));
    }
    Ok(pairs)
}

/// The thumbnail and the places of every photograph; `wanted` are the features at the ends of lines.
fn all_shown(collection: &Collection, wanted: &[Vec<u32>], longest: usize, cpu: &Cpu) -> Result<Vec<Shown>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|i| *i < wanted.len());
        let show = |i: usize| {
            cpu.check()?;
            let shown = Shown::new(collection, i, &wanted[i], longest)?;
            cpu.advance(1);
            Ok((i, shown))
        };
        std::iter::from_fn(take).map(show).collect::<Result<Vec<_>>>()
    };
    let mut all = Vec::with_capacity(wanted.len());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cpu.threads().min(wanted.len())).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            all.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok::<_, Error>(())
    })?;
    all.sort_unstable_by_key(|(i, _)| *i);
    Ok(all.into_iter().map(|(_, shown)| shown).collect())
}

#[derive(Default)]
struct Shown {
    size: Size,
    thumbnail: Option<AnyImage>,
    features: Option<usize>,
    problem: Option<String>,
    /// Why there is no thumbnail of a photograph that has features.
    without_picture: Option<String>,
    /// The places of the features at the ends of lines.
    places: Vec<[f32; 2]>,
}

impl Shown {
    fn new(collection: &Collection, index: usize, wanted: &[u32], longest: usize) -> Result<Self> {
        let mut shown = Self::default();
        match collection.features(index)? {
            PhotographFeatures::Found(features) => {
                let place = |i: &u32| features.keypoints.get(*i as usize).map(|k| [k.x, k.y]);
                shown.size = features.image;
                shown.features = Some(features.len());
                shown.places = wanted.iter().filter_map(place).collect();
            }
            PhotographFeatures::Unreadable(reason) => {
                shown.problem = Some(reason);
                return Ok(shown);
            }
            // Missing, or a state of another version.
            _ => shown.problem = Some("not searched for features".into()),
        }
        // A photograph that can no longer be read, or has changed, keeps its pairs on the page.
        match collection.check_searched(index).and_then(|()| thumbnail(collection, index, longest)) {
            Ok(image) => shown.thumbnail = Some(image),
            Err(error) => shown.without_picture = Some(error.to_string()),
        }
        Ok(shown)
    }

    fn image(&self, name: &str) -> CollectionImage<'_> {
        let (name, problem) = (name.to_owned(), self.problem.clone());
        let thumbnail = self.thumbnail.as_ref().map(AnyImage::view);
        CollectionImage { name, size: self.size, thumbnail, features: self.features, problem }
    }
}

/// The photograph, shrunk where its longer side has more than `longest` pixels.
fn thumbnail(collection: &Collection, index: usize, longest: usize) -> Result<AnyImage> {
    let image = image::read(collection.path_of(index), &collection.limits().with_orient(false))?;
    let small = image.size().at_most(longest);
    if small == image.size() {
        return Ok(image);
    }
    let cpu = Cpu::sequential();
    Ok(by_pixel!(image.view(), v => shrink(v, small, &cpu)?.into()))
}

/// The pairs for the page, with places instead of feature indices.
fn placed(pairs: Vec<Pair>, shown: &[Shown]) -> Vec<CollectionPair<'static>> {
    let mut next = vec![0; shown.len()];
    let mut take = |i: usize| {
        let place = shown[i].places.get(next[i]).copied();
        next[i] += 1;
        place
    };
    let place = |Pair { pair, lines, .. }: Pair| {
        let ends = lines.iter().filter_map(|_| {
            let (a, b) = (take(pair.a), take(pair.b));
            let ([ax, ay], [bx, by]) = (a?, b?);
            Some([ax, ay, bx, by])
        });
        CollectionPair { ends: ends.collect(), ..pair }
    };
    pairs.into_iter().map(place).collect()
}
