//! What is done with a collection, as it is recorded in its folder.

use crate::feature::select::Selection;
use crate::feature::sift::SiftOptions;
use crate::geometry::two_view::TwoViewOptions;
use crate::matching::MatchOptions;
use crate::options::{named, setters};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The most of what is counted for each photograph.
const MOST: u32 = 10_000;

/// All options of a collection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CollectionOptions {
    /// How photographs are read and searched.
    pub features: FeatureOptions,
    /// Which pairs are matched.
    pub pairs: PairOptions,
    /// How two photographs are matched. Default: ratio 0.77, and no match beyond a distance of 0.7, as COLMAP.
    ///
    /// On a castle's 11 photographs with as many features COLMAP's own matcher, which looks for neighbours in an index,
    /// finds 70 321 inliers and its mapper 8564 points, 40 510 observations, 0.404 px. Exact neighbours at COLMAP's 0.8
    /// and 4 px are 82 651 inliers: 9594, 45 659 and 0.437 px. At 0.77 and 3 px, with SIFT's default preset: 8934, 41
    /// 598 and 0.406 px. (November 2026.)
    pub matching: MatchOptions,
    /// When the matches of two photographs are of one scene. Default: as COLMAP, but within 3 px.
    pub two_view: TwoViewOptions,
    /// Photographs in a block, 1 to 4096; a tile is the pairs of two blocks. Default none: 64 for up to 20 000
    /// photographs, some 4000 pairs, a second on a data-centre GPU and a minute on two cores; 256 for more: fewer
    /// files, fewer bytes read for each pair. A folder keeps what it was made with.
    pub block: Option<u32>,
}

/// How photographs are read and searched for features.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FeatureOptions {
    /// SIFT. Default: RootSIFT, contrast 0.02 and the coarsest levels that have 8192 positions, as COLMAP keeps them:
    /// about 10 000 to 15 000 features (see [`crate::feature::select`]).
    ///
    /// VLFeat's conventions give COLMAP's mapper some more points of features that lie less exactly: with ratio 0.75
    /// and 4 px 8749 points at 0.415 px, with ours and 0.77 8999 at 0.412 px.
    pub sift: SiftOptions,
    /// A photograph whose longer side has more pixels is searched at this size, at least 16; its features keep their
    /// place in the photograph. Default 3200, as COLMAP.
    pub longest_side: u32,
    /// A folder of masks: `NAME.png` for the photograph NAME, or NAME with its extension replaced by `.png`; features
    /// are kept where it is not 0. Default none.
    pub masks: Option<PathBuf>,
}

/// Which pairs are matched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PairOptions {
    /// How pairs are chosen. Default auto.
    pub choice: PairChoice,
    /// Auto matches all pairs of up to so many photographs. Default 5000: 12.5 million pairs, less than an hour on a
    /// data-centre GPU. On a CPU the command's page says how long pairs take.
    pub exhaustive_up_to: u32,
    /// Sequence: how many photographs that follow are paired with each, and besides those 1, 2, 4, … places on up to
    /// 2 to the power of this. Default 10, as COLMAP.
    pub overlap: u32,
    /// GPS: how many of the nearest photographs, and how far they may be in metres. Default 50 and 100, as COLMAP.
    pub neighbours: u32,
    /// See [`neighbours`](Self::neighbours).
    pub max_metres: f64,
    /// Top-scale: how many of the largest features of each photograph are compared. Default 512.
    pub top_features: u32,
    /// Top-scale: how many mutual matches of these make a pair. Default 4.
    pub top_matches: u32,
    /// Top-scale: how many of the best partners each photograph keeps at most. Default 100.
    pub top_partners: u32,
    /// A list: the file, one pair of names a line, separated by a space, or by a tab where names hold spaces.
    pub list: Option<PathBuf>,
    /// After the chosen pairs, match those photographs too that have a verified partner in common: one round. Default
    /// true; nothing is left to do where all pairs are matched.
    pub closure: bool,
}

/// How pairs are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PairChoice {
    /// All pairs of a moderate collection; otherwise top-scale, joined with GPS where it is known.
    #[default]
    Auto,
    /// All pairs.
    Exhaustive,
    /// Neighbours in the order of names.
    Sequence,
    /// Neighbours by the cameras' positions.
    Gps,
    /// Those whose largest features match (Wu, 3DV 2013).
    TopScale,
    /// Those of a list.
    List,
}

named!(PairChoice as "pairs" {
    "auto": Self::Auto, "All pairs of a moderate collection, otherwise top-scale joined with gps";
    "exhaustive": Self::Exhaustive, "All pairs";
    "sequence": Self::Sequence, "Neighbours in the order of names, as frames of a video";
    "gps": Self::Gps, "Neighbours by the positions that the photographs record";
    "top-scale": Self::TopScale, "Those whose largest features match";
    "list": Self::List, "Those of a file";
});

setters!(CollectionOptions {
    with_features: features = FeatureOptions,
    with_pairs: pairs = PairOptions,
    with_matching: matching = MatchOptions,
    with_two_view: two_view = TwoViewOptions,
    with_block: block = Option<u32>,
});

setters!(FeatureOptions {
    with_sift: sift = SiftOptions,
    with_longest_side: longest_side = u32,
    with_masks: masks = Option<PathBuf>,
});

setters!(PairOptions {
    with_choice: choice = PairChoice,
    with_exhaustive_up_to: exhaustive_up_to = u32,
    with_overlap: overlap = u32,
    with_neighbours: neighbours = u32,
    with_max_metres: max_metres = f64,
    with_top_features: top_features = u32,
    with_top_matches: top_matches = u32,
    with_top_partners: top_partners = u32,
    with_list: list = Option<PathBuf>,
    with_closure: closure = bool,
});

impl Default for CollectionOptions {
    fn default() -> Self {
        Self {
            features: FeatureOptions::default(),
            pairs: PairOptions::default(),
            matching: MatchOptions::default().with_ratio(Some(0.77)).with_max_distance(Some(0.7)),
            two_view: TwoViewOptions::default().with_threshold_px(3.0),
            block: None,
        }
    }
}

impl Default for FeatureOptions {
    fn default() -> Self {
        let sift = SiftOptions::default().with_root(true).with_contrast(0.02);
        Self { sift: sift.with_selection(Selection::levels(8192)), longest_side: 3200, masks: None }
    }
}

impl Default for PairOptions {
    fn default() -> Self {
        Self {
            choice: PairChoice::Auto,
            exhaustive_up_to: 5000,
            overlap: 10,
            neighbours: 50,
            max_metres: 100.0,
            top_features: 512,
            top_matches: 4,
            top_partners: 100,
            list: None,
            closure: true,
        }
    }
}

impl CollectionOptions {
    /// Checks every option.
    ///
    /// # Errors
    /// [`Error::Option`] names the first that is out of range.
    pub fn check(&self) -> Result<()> {
        self.features.check()?;
        self.pairs.check()?;
        self.matching.check()?;
        self.two_view.check()?;
        if self.matching.guide.is_some() {
            return Err(Error::option("guide", "given", "none: a model belongs to one pair"));
        }
        match self.block {
            None | Some(1..=4096) => Ok(()),
            Some(block) => Err(Error::option("block", block, "1 to 4096")),
        }
    }

    /// The block of a new folder of so many photographs.
    pub(super) fn block_of(photographs: usize) -> u32 {
        if photographs <= 20_000 { 64 } else { 256 }
    }
}

impl FeatureOptions {
    /// Checks every option.
    ///
    /// # Errors
    /// [`Error::Option`] names the first that is out of range.
    pub fn check(&self) -> Result<()> {
        self.sift.check()?;
        if self.sift.descriptors != crate::feature::DescriptorKind::U8 {
            return Err(Error::option("descriptors", self.sift.descriptors, "u8, which a database holds"));
        }
        match self.longest_side {
            16.. => Ok(()),
            side => Err(Error::option("longest_side", side, "at least 16")),
        }
    }
}

impl PairOptions {
    /// Checks every option.
    ///
    /// # Errors
    /// [`Error::Option`] names the first that is out of range.
    pub fn check(&self) -> Result<()> {
        let counts = [
            ("overlap", self.overlap),
            ("neighbours", self.neighbours),
            ("top_features", self.top_features),
            ("top_matches", self.top_matches),
            ("top_partners", self.top_partners),
        ];
        if let Some((name, value)) = counts.into_iter().find(|(_, value)| !(1..=MOST).contains(value)) {
            return Err(Error::option(name, value, "1 to 10000"));
        }
        if !(self.max_metres > 0.0 && self.max_metres.is_finite()) {
            return Err(Error::option("max_metres", self.max_metres, "above 0, in metres"));
        }
        match (self.choice == PairChoice::List, &self.list) {
            (true, None) => Err(Error::option("list", "missing", "a file of pairs")),
            (false, Some(list)) => Err(Error::option("list", list.display(), "none unless pairs are list")),
            _ => Ok(()),
        }
    }
}
