//! Writes pages of synthetic collections into a folder: photographs along a landscape that closes to a ring, and
//! difficult cases such as hostile names. The browser's tests open them.
//!
//! ```text
//! cargo run --package tiepoint-report --example collection -- FOLDER
//! ```

#![expect(clippy::disallowed_methods, reason = "only pages of the browser's tests, which nothing compares")]

use std::path::{Path, PathBuf};
use tiepoint::device::Cpu;
use tiepoint::image::{Image, Size};
use tiepoint::synth::{Random, Texture};
use tiepoint::{Error, Result};
use tiepoint_report::{
    CollectionImage, CollectionPair, CollectionView, Report, Section, Tried, View, counted,
};

/// The size of a photograph, in which matches are given.
const PHOTOGRAPH: Size = Size::new(1200, 900);
/// The largest share of the landscape that a photograph shows.
const SEEN: f32 = 0.13;

fn main() -> Result<()> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| Error::option("FOLDER", "missing", "where the pages go"))?;
    let hostile = ["</script><!--<b>", "\"quotes' & umlauts äöü", "a/folder/name with spaces.jpg"];
    let mut ring = Drawn::new(26, 360);
    ring.names[..3].iter_mut().zip(hostile).for_each(|(name, hostile)| hostile.clone_into(name));
    ring.unreadable = vec![24, 25];
    ring.write(&folder, "ring", 20_000_000)?;
    Drawn::new(300, 96).write(&folder, "three-hundred", 6_000_000)?;
    Drawn::new(2000, 48).write(&folder, "two-thousand", 8_000_000)?;
    Drawn::new(3, 480).write(&folder, "three", 20_000_000)?;
    Drawn::new(1, 480).write(&folder, "one", 20_000_000)?;
    let mut none = Drawn::new(4, 0);
    none.reach = 0.0;
    none.write(&folder, "none", 20_000_000)
}

struct Drawn {
    names: Vec<String>,
    unreadable: Vec<usize>,
    /// The width of a thumbnail; 0 without.
    width: usize,
    /// The share of the overlap in which there are matches.
    reach: f32,
}

impl Drawn {
    fn new(count: usize, width: usize) -> Self {
        let names = (0..count).map(|i| format!("IMG_{:04}.jpg", 4200 + i)).collect();
        Self { names, unreadable: vec![], width, reach: 1.0 }
    }

    /// The landscape of a photograph and the place that it shows. The last eighth have a landscape of their own.
    fn centre(&self, i: usize) -> (usize, f32) {
        let ring = self.names.len() - self.names.len() / 8;
        let step = (1.0 / ring as f32).min(self.seen() / 2.9);
        match i < ring {
            true => (0, i as f32 * step),
            false => (1, (i - ring) as f32 * step),
        }
    }

    fn seen(&self) -> f32 {
        SEEN.min(30.0 / self.names.len() as f32)
    }

    fn write(&self, folder: &Path, name: &str, limit: usize) -> Result<()> {
        let drawn: Vec<Option<Image<u8>>> = (0..self.names.len())
            .map(|i| (self.width > 0 && !self.unreadable.contains(&i)).then(|| self.photograph(i)))
            .collect();
        let image = |(i, name): (usize, &String)| {
            let bad = self.unreadable.contains(&i);
            CollectionImage {
                name: name.clone(),
                size: if bad { Size::default() } else { PHOTOGRAPH },
                thumbnail: drawn[i].as_ref().map(|d| d.view().into()),
                features: (!bad).then_some(5000 + 37 * i),
                problem: bad.then(|| "the file ends in the middle of the picture".to_owned()),
            }
        };
        let pairs = self.pairs();
        let tried: Vec<[usize; 2]> = self.tried();
        let matched = pairs.len();
        let view = CollectionView {
            images: self.names.iter().enumerate().map(image).collect(),
            pairs,
            tried: Tried::These(&tried),
            caption: "Drawn photographs along a landscape that closes to a ring.".to_owned(),
        };
        let section = Section::new("Pairs").tile("photographs", counted(self.names.len()));
        let section = section.tile("pairs", counted(matched)).view(View::Collection(view));
        let [pairs, of] = [matched, tried.len()].map(counted);
        let lead = format!("{pairs} of {of} pairs that were tried show the same thing");
        Report::new(format!("A collection: {name}"), lead)
            .limit(limit)
            .section(section)
            .write(folder.join(format!("{name}.html")))
    }

    /// Pairs of readable photographs that are at most a third of the collection apart.
    fn tried(&self) -> Vec<[usize; 2]> {
        let count = self.names.len();
        let readable = |i: &usize| !self.unreadable.contains(i);
        let near =
            |a: usize| (a + 1..count).filter(move |b| b - a <= count / 3 || b - a >= count - count / 3);
        (0..count).filter(readable).flat_map(|a| near(a).filter(readable).map(move |b| [a, b])).collect()
    }

    fn pairs(&self) -> Vec<CollectionPair<'static>> {
        let mut random = Random::new(1);
        self.tried().into_iter().filter_map(|[a, b]| self.pair(a, b, &mut random)).collect()
    }

    fn pair(&self, a: usize, b: usize, random: &mut Random) -> Option<CollectionPair<'static>> {
        let ((land_a, at_a), (land_b, at_b)) = (self.centre(a), self.centre(b));
        let apart = (at_b - at_a + 0.5).rem_euclid(1.0) - 0.5;
        let overlap = (1.0 - apart.abs() / self.seen()) * self.reach;
        if land_a != land_b || overlap < 0.1 {
            return None;
        }
        let inliers = (900.0 * overlap.powi(2) * (0.6 + 0.4 * random.unit() as f32)) as u32 + 8;
        let (w, h) = (PHOTOGRAPH.width as f32, PHOTOGRAPH.height as f32);
        let shift = apart / self.seen() * w;
        let place = |random: &mut Random| {
            let x = shift.max(0.0) + random.unit() as f32 * (w - shift.abs() - 1.0);
            let y = random.unit() as f32 * (h - 1.0);
            [x, y, x - shift, (y + 4.0 * (x / 90.0).sin()).clamp(0.0, h - 1.0)]
        };
        let ends = (0..inliers).map(|_| place(random)).collect();
        let configuration = match random.unit() as f32 {
            n if n < 0.62 => "calibrated",
            n if n < 0.85 => "planar or panoramic",
            _ => "uncalibrated",
        };
        Some(CollectionPair {
            a,
            b,
            matches: inliers + (40.0 * random.unit() as f32) as u32,
            inliers,
            configuration,
            ends,
        })
    }

    fn photograph(&self, i: usize) -> Image<u8> {
        let size = Size::new(self.width, self.width * 3 / 4);
        Texture::new(i as u64).image(size, &Cpu::sequential())
    }
}
