//! The options of a collection, which its folder records.

use crate::Error;
use crate::feature::DescriptorKind;
use crate::feature::select::Selection;
use crate::feature::sift::SiftOptions;
use crate::geometry::two_view::TwoViewOptions;
use crate::matching::MatchOptions;
use crate::options::{Above, OptionTable, named, options};
use crate::register::Modality;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

options! {
    /// A collection of photographs: how they are searched, which pairs are matched, and when a pair counts.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct CollectionOptions {
        /// Photographs in a block. All pairs of one block with another are a tile, which is matched and written as one
        /// piece; by default 64 photographs, and 256 from 20 001 photographs on.
        ///
        /// A tile of 64 × 64 photographs (4096 pairs) is a short piece of work. Larger blocks need fewer files and fewer bytes
        /// read for each pair. A folder keeps the block that it was made with.
        block / with_block: Option<u32> = None => 1..=4096, unit "N";
        /// Whether one sensor took all photographs. cross is for two sensors, such as a thermal and a colour camera: chosen
        /// pairs that features do not verify are then tried by structure.
        ///
        /// It takes up to 2 s of a core for each such pair, and adds up to 1500 features to each photograph.
        modality / with_modality: Modality = Modality::Same => [Modality::Same, Modality::Cross];
    }
    tables {
        /// How photographs are read and searched.
        features / with_features: FeatureOptions = FeatureOptions::default();
        /// Which pairs are matched.
        pairs / with_pairs: PairOptions = PairOptions::default();
        /// How two photographs are matched: ratio 0.77, and no match beyond a distance of 0.7, as COLMAP.
        ///
        /// Measured in `docs/notebook/collection.md`.
        matching / with_matching: MatchOptions =
            MatchOptions::default().with_ratio(Some(0.77)).with_max_distance(Some(0.7));
        /// When the matches of two photographs are of one scene: as COLMAP, but within 3 px.
        two_view / with_two_view: TwoViewOptions = TwoViewOptions::default().with_threshold_px(3.0);
    }
    check this {
        let given = this.features.given.is_some() || this.pairs.choice == PairChoice::Matches;
        let same = "same where features or matches are given, which have no corners of structure";
        match (this.matching.guide, this.modality) {
            (Some(_), _) => Err(Error::option("guide", "given", "none: a model belongs to one pair")),
            (None, Modality::Cross) if given => Err(Error::option("modality", "cross", same)),
            (None, _) => Ok(()),
        }
    }
}

options! {
    /// How photographs are read and searched for features.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct FeatureOptions {
        /// Longest side of the image that is searched; a larger photograph is shrunk to it, and its features have the
        /// coordinates of the full photograph.
        longest_side / with_longest_side: u32 = 3200 => 16.., unit "PX";
        /// A folder of masks: NAME.png for the photograph NAME, or NAME with its extension replaced by .png; features
        /// are kept where the mask is not 0.
        masks / with_masks: Option<PathBuf> = None;
        /// Use the features that another program found instead of SIFT: a folder with a file for each photograph, NAME.npz,
        /// .txt (COLMAP's), .csv, .json or .sift, or NAME with its extension replaced by one of these; or hloc's features.h5.
        given / with_given: Option<PathBuf> = None, name "features", flag "features";
        /// The distance between two descriptors of given features.
        metric / with_metric: Metric = Metric::L2;
    }
    tables {
        /// SIFT: RootSIFT, contrast 0.02 and the coarsest levels that have 8192 positions, as COLMAP keeps them: about
        /// 10 000 to 15 000 features (see [`crate::feature::select`]).
        sift / with_sift: SiftOptions = SiftOptions::default()
            .with_root(true)
            .with_contrast(0.02)
            .with_selection(Selection::levels(8192));
    }
    check this {
        let taken = Self::default().with_given(this.given.clone()).with_metric(this.metric);
        let alone =
            "no masks and no options of a search beside them: the program that found them leaves features out";
        match (this.sift.descriptors, &this.given) {
            (_, Some(_)) if *this != taken => Err(Error::option("features", "given", alone)),
            (DescriptorKind::U8, _) => Ok(()),
            (other, _) => Err(Error::option("descriptors", other, "u8, which a database holds")),
        }
    }
}

named! {
    /// How far apart two descriptors are.
    pub enum Metric as "metric" {
        #[default]
        "l2": L2, "Euclidean distance of the descriptors as they are";
        "cosine": Cosine, "The angle between them: descriptors are divided by their length";
    }
}

options! {
    /// Which pairs of photographs are matched.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct PairOptions {
        /// How pairs are chosen.
        choice / with_choice: PairChoice = PairChoice::Auto, name "pairs", flag "pairs";
        /// Pairs auto: match all pairs if there are at most this many photographs. The choice does not depend on the
        /// device, so that the database is the same on every device.
        ///
        /// The default is 12.5 million pairs, less than an hour on a data-centre GPU and days on two cores, of which the
        /// command warns before it begins.
        exhaustive_up_to / with_exhaustive_up_to: u32 = 5000, unit "N";
        /// Pairs sequence: match each photograph with this many that follow it, and with as many at distances that double:
        /// 1, 2, 4, 8, … places after it.
        overlap / with_overlap: u32 = 10 => 1..=10_000, unit "N";
        /// Pairs gps: match each photograph with at most this many of the nearest ones.
        neighbours / with_neighbours: u32 = 50 => 1..=10_000, unit "N";
        /// Pairs gps: the greatest distance of a neighbour, in metres.
        max_metres / with_max_metres: f64 = 100.0 => Above(0.0), unit "M";
        /// Pairs top-scale: compare this many of the largest features of each photograph.
        top_features / with_top_features: u32 = 512 => 1..=10_000, unit "N";
        /// Pairs top-scale: the fewest mutual matches of these features for which a pair is chosen.
        top_matches / with_top_matches: u32 = 4 => 1..=10_000, unit "N";
        /// Pairs top-scale: keep at most this many partners of each photograph, the best ones.
        top_partners / with_top_partners: u32 = 100 => 1..=10_000, unit "N";
        /// Pairs list: the file, with one pair of names in each line, separated by a space, or by a tab if names
        /// contain spaces. Pairs matches: the file of matches, unless they are imported.
        list / with_list: Option<PathBuf> = None;
        /// After the chosen pairs, also match photographs that have a verified partner in common, in one round; not if
        /// all pairs were chosen, or a file says which.
        closure / with_closure: bool = true, without "Leave out the second round, which matches photographs that have a verified partner in common";
    }
    check this {
        match (this.choice, &this.list) {
            (PairChoice::List, None) => Err(Error::option("list", "missing", "a file of pairs")),
            (PairChoice::List | PairChoice::Matches, _) | (_, None) => Ok(()),
            (_, Some(list)) => Err(Error::option("list", list.display(), "none unless pairs are list")),
        }
    }
}

impl CollectionOptions {
    /// A warning if options are given that this choice of pairs does not read.
    pub(super) fn without_effect(&self) -> Option<String> {
        use PairChoice::{Auto, Gps, Sequence, TopScale};
        let (this, usual) = (&self.pairs, Self::default());
        // Given matches are verified, not searched for.
        let is_searched = this.choice != PairChoice::Matches;
        let search = self.matching.fields().into_iter().zip(usual.matching.fields());
        let search = search.filter(|(now, usual)| !is_searched && now.default != usual.default);
        let search = search.map(|(_, usual)| usual.switch().0);
        let usual = usual.pairs;
        let given = [
            ("exhaustive-up-to", this.exhaustive_up_to != usual.exhaustive_up_to, [Auto, Auto]),
            ("overlap", this.overlap != usual.overlap, [Sequence, Sequence]),
            ("neighbours", this.neighbours != usual.neighbours, [Auto, Gps]),
            ("max-metres", this.max_metres != usual.max_metres, [Auto, Gps]),
            ("top-features", this.top_features != usual.top_features, [Auto, TopScale]),
            ("top-matches", this.top_matches != usual.top_matches, [Auto, TopScale]),
            ("top-partners", this.top_partners != usual.top_partners, [Auto, TopScale]),
        ];
        let unread = given.iter().filter(|(_, given, readers)| *given && !readers.contains(&this.choice));
        let names = unread.map(|(name, ..)| (*name).to_owned()).chain(search).collect::<Vec<_>>().join(", ");
        (!names.is_empty()).then(|| format!("no effect with pairs {}: {names}", this.choice))
    }
}

named! {
    /// How pairs are chosen.
    pub enum PairChoice as "pairs" {
        #[default]
        "auto": Auto, "All pairs of a moderate collection, otherwise top-scale joined with gps";
        "exhaustive": Exhaustive, "All pairs";
        "sequence": Sequence, "Neighbours in the order of names, as frames of a video";
        "gps": Gps, "Neighbours by the positions that the photographs record";
        /// Source: Wu, 3DV 2013.
        "top-scale": TopScale, "Those whose largest features match";
        "list": List, "Those that a file lists";
        "matches": Matches, "Those for which matches are given, which are verified instead of a search";
    }
}
