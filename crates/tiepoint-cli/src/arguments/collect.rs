//! `tiepoint collect`.

use super::limits::LimitArguments;
use super::report::ReportArguments;
use super::values::named;
use crate::failure::{Failure, Outcome};
use clap::builder::{StringValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};
use tiepoint::collection::{Collection, CollectionOptions, FeatureOptions, PairChoice, PairOptions, Shard};
use tiepoint::feature::select::{Keep, Selection};
use tiepoint::feature::sift::SiftPreset;
use tiepoint::options::Named;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true
)]
pub(crate) struct CollectArguments {
    /// One stage alone; without it all of them
    #[command(subcommand)]
    pub(crate) stage: Option<Stage>,
    #[command(flatten)]
    pub(crate) whole: WholeArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Stage {
    /// Which photographs there are: makes the work folder, with the options of all stages
    Scan(ScanArguments),
    /// Keypoints and descriptors of every photograph
    Features(FeatureArguments),
    /// Which pairs to match
    Pairs(PartArguments),
    /// Matches and geometry of every pair
    Match(PartArguments),
    /// COLMAP's database
    Export(ExportArguments),
    /// What is done and what is left
    Status(StatusArguments),
}

impl CollectArguments {
    /// Fails where an option is out of range.
    pub(crate) fn check(&self) -> Outcome {
        match &self.stage {
            None => self.whole.options.options().map(drop),
            Some(Stage::Scan(scan)) => scan.options.options().map(drop),
            Some(
                Stage::Features(_) | Stage::Pairs(_) | Stage::Match(_) | Stage::Export(_) | Stage::Status(_),
            ) => Ok(()),
        }
    }
}

/// All stages.
#[derive(Debug, Args)]
pub(crate) struct WholeArguments {
    /// Folders of photographs, and photographs
    #[arg(required = true, value_name = "IMAGES")]
    pub(crate) images: Vec<PathBuf>,
    /// The work folder; what is in it is not done again [default: OUTPUT.work]
    #[arg(long, value_name = "DIR")]
    pub(crate) work: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    #[command(flatten)]
    pub(crate) unreadable: UnreadableArguments,
    #[command(flatten)]
    pub(crate) options: OptionArguments,
}

impl WholeArguments {
    pub(crate) fn work(&self) -> Outcome<PathBuf> {
        match &self.work {
            Some(work) => Ok(work.clone()),
            None => {
                let mut work = self.output.output()?.as_os_str().to_owned();
                work.push(".work");
                Ok(work.into())
            }
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ScanArguments {
    /// Folders of photographs, and photographs
    #[arg(required = true, value_name = "IMAGES")]
    pub(crate) images: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) work: WorkArguments,
    #[command(flatten)]
    pub(crate) options: OptionArguments,
}

#[derive(Debug, Args)]
pub(crate) struct WorkArguments {
    /// The work folder
    #[arg(long, value_name = "DIR")]
    pub(crate) work: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    #[command(flatten)]
    pub(crate) work: WorkArguments,
    /// Name the parts of N that are missing: those that --shard I/N has still to do
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) parts: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct PartArguments {
    #[command(flatten)]
    pub(crate) work: WorkArguments,
    /// A part of the work: I/N, with I from 0 to N - 1. N processes or machines share the work folder
    #[arg(long, value_name = "I/N", default_value_t, value_parser = StringValueParser::new().try_map(|s| s.parse::<Shard>()))]
    pub(crate) shard: Shard,
    #[command(flatten)]
    pub(crate) sync: SyncArguments,
}

/// How results come to the disk.
#[derive(Debug, Args)]
pub(crate) struct SyncArguments {
    /// Leave it to the system when results reach the disk: a power cut may then take some along that were called done
    #[arg(long)]
    no_sync: bool,
}

impl SyncArguments {
    /// A collection whose stages write this way.
    pub(crate) fn of(&self, collection: Collection) -> Collection {
        collection.with_sync(!self.no_sync)
    }
}

#[derive(Debug, Args)]
pub(crate) struct FeatureArguments {
    #[command(flatten)]
    pub(crate) part: PartArguments,
    #[command(flatten)]
    pub(crate) unreadable: UnreadableArguments,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

#[derive(Debug, Args)]
pub(crate) struct UnreadableArguments {
    /// End with an error where more than N photographs cannot be read; without it they are named and left out
    #[arg(long, value_name = "N")]
    pub(crate) max_unreadable: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    #[command(flatten)]
    pub(crate) work: WorkArguments,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Debug, Args)]
pub(crate) struct OutputArguments {
    /// The database, for COLMAP
    // An option here, because the parser builds this beside a stage too.
    #[arg(short, long, value_name = "DB", required = true)]
    output: Option<PathBuf>,
    /// Replace a database that is in the way and was not written by this command
    #[arg(long)]
    pub(crate) replace: bool,
    /// Leave descriptors out: the mapper does not read them, and the file has a sixth of the size
    #[arg(long)]
    pub(crate) no_descriptors: bool,
    /// The verified pairs as a list of names as well, as COLMAP and hloc read it
    #[arg(long, value_name = "FILE")]
    pub(crate) pair_list: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArguments,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
    #[command(flatten)]
    pub(crate) sync: SyncArguments,
}

impl OutputArguments {
    pub(crate) fn output(&self) -> Outcome<&Path> {
        self.output.as_deref().ok_or_else(|| Failure::usage("--output DB names the database"))
    }
}

/// What a work folder records.
#[derive(Debug, Args)]
#[command(next_help_heading = "Features")]
pub(crate) struct OptionArguments {
    /// Keep N features of a photograph at most; of whole levels, those with N positions, each in all its directions
    #[arg(long, value_name = "N", default_value_t = 8192)]
    pub(crate) max_features: usize,
    /// Which features to keep
    #[arg(long, value_parser = named::<Keep>(), default_value_t = FeatureOptions::default().sift.selection.keep)]
    pub(crate) keep: Keep,
    /// Whose conventions
    #[arg(long, value_parser = named::<SiftPreset>(), default_value_t = FeatureOptions::default().sift.preset)]
    pub(crate) preset: SiftPreset,
    /// Least contrast
    #[arg(long, value_name = "C", allow_negative_numbers = true, default_value_t = FeatureOptions::default().sift.contrast)]
    pub(crate) contrast: f32,
    /// Start at the photograph's own size and not at twice it: -1 or 0
    #[arg(long, value_name = "O", allow_negative_numbers = true, default_value_t = FeatureOptions::default().sift.first_octave)]
    pub(crate) first_octave: i8,
    /// Leave the orientation out: for photographs not turned against each other
    #[arg(long)]
    pub(crate) upright: bool,
    /// Descriptors averaged over three sizes of their window (DSP-SIFT): more points, more time; on the CPU
    #[arg(long)]
    pub(crate) domain_size_pooling: bool,
    /// Longest side of the image that is searched; a larger photograph is shrunk to it
    #[arg(long, value_name = "PX", default_value_t = FeatureOptions::default().longest_side)]
    pub(crate) longest_side: u32,
    /// A folder of masks: NAME.png for the photograph NAME; features are kept where it is not 0
    #[arg(long, value_name = "DIR")]
    pub(crate) masks: Option<PathBuf>,
    /// Which pairs to match: auto, exhaustive, sequence, gps, top-scale, or a FILE with two names a line
    #[arg(long, value_name = "WHICH", default_value = "auto", help_heading = "Pairs")]
    pub(crate) pairs: PathBuf,
    /// auto: all pairs of up to N photographs
    #[arg(long, value_name = "N", default_value_t = PairOptions::default().exhaustive_up_to, help_heading = "Pairs")]
    pub(crate) exhaustive_up_to: u32,
    /// sequence: with the next N photographs, and those 1, 2, 4, … places on
    #[arg(long, value_name = "N", default_value_t = PairOptions::default().overlap, help_heading = "Pairs")]
    pub(crate) overlap: u32,
    /// gps: with the N nearest photographs
    #[arg(long, value_name = "N", default_value_t = PairOptions::default().neighbours, help_heading = "Pairs")]
    pub(crate) neighbours: u32,
    /// gps: no farther than this
    #[arg(long, value_name = "M", allow_negative_numbers = true, default_value_t = PairOptions::default().max_metres, help_heading = "Pairs")]
    pub(crate) max_metres: f64,
    /// top-scale: compare the N largest features of each photograph
    #[arg(long, value_name = "N", default_value_t = PairOptions::default().top_features, help_heading = "Pairs")]
    pub(crate) top_features: u32,
    /// top-scale: N matches of them make a pair
    #[arg(long, value_name = "N", default_value_t = PairOptions::default().top_matches, help_heading = "Pairs")]
    pub(crate) top_matches: u32,
    /// top-scale: keep the N best partners of each photograph
    #[arg(long, value_name = "N", default_value_t = PairOptions::default().top_partners, help_heading = "Pairs")]
    pub(crate) top_partners: u32,
    /// Leave out the second round, of photographs with a verified partner in common
    #[arg(long, help_heading = "Pairs")]
    pub(crate) no_closure: bool,
    /// Keep a match when its distance is below this share of the second nearest's; 1 keeps all
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, default_value_t = CollectionOptions::default().matching.ratio.unwrap_or(1.0), help_heading = "Matching")]
    pub(crate) ratio: f32,
    /// Also compare bright-on-dark features with dark-on-bright ones
    #[arg(long, help_heading = "Matching")]
    pub(crate) any_sign: bool,
    /// Largest distance of an inlier from the model, in pixels
    #[arg(long, value_name = "PX", allow_negative_numbers = true, default_value_t = CollectionOptions::default().two_view.threshold_px, help_heading = "Matching")]
    pub(crate) inlier_distance: f64,
    /// Photographs in a block: pairs are worked on, written and lost in tiles of a block with a block [default: 64; 256
    /// from 20 001 photographs on]
    #[arg(long, value_name = "N", help_heading = "Matching")]
    pub(crate) block: Option<u32>,
}

impl OptionArguments {
    /// The options, checked.
    pub(crate) fn options(&self) -> Outcome<CollectionOptions> {
        let start = CollectionOptions::default();
        let selection = Selection::default().with_limit(Some(self.max_features)).with_keep(self.keep);
        let sift = start.features.sift.with_selection(selection).with_contrast(self.contrast);
        let mut sift = sift.with_first_octave(self.first_octave).with_upright(self.upright);
        sift.domain_size_pooling = self.domain_size_pooling;
        sift.preset = self.preset;
        let features = FeatureOptions::default().with_sift(sift).with_longest_side(self.longest_side);
        let features = features.with_masks(absolute(self.masks.as_ref())?);
        let (choice, list) = self.choice()?;
        let pairs = PairOptions::default()
            .with_choice(choice)
            .with_list(absolute(list.as_ref())?)
            .with_exhaustive_up_to(self.exhaustive_up_to)
            .with_overlap(self.overlap)
            .with_neighbours(self.neighbours)
            .with_max_metres(self.max_metres)
            .with_top_features(self.top_features)
            .with_top_matches(self.top_matches)
            .with_top_partners(self.top_partners)
            .with_closure(!self.no_closure);
        let matching = start.matching.with_ratio(Some(self.ratio).filter(|r| *r != 1.0));
        let options = CollectionOptions::default()
            .with_features(features)
            .with_pairs(pairs)
            .with_matching(matching.with_same_sign(!self.any_sign))
            .with_two_view(start.two_view.with_threshold_px(self.inlier_distance))
            .with_block(self.block);
        options.check()?;
        Ok(options)
    }

    /// How pairs are chosen, and the list where they are those of one.
    fn choice(&self) -> Outcome<(PairChoice, Option<PathBuf>)> {
        let named = self.pairs.to_str().and_then(|name| PairChoice::from_name(name).ok());
        match named {
            Some(choice) if choice != PairChoice::List => Ok((choice, None)),
            _ if self.pairs.is_file() => Ok((PairChoice::List, Some(self.pairs.clone()))),
            _ => Err(Failure::usage(format!(
                "--pairs is {}: expected auto, exhaustive, sequence, gps, top-scale, or a file that is there",
                self.pairs.display()
            ))),
        }
    }
}

/// A path that means the same from any folder: the work folder records it.
fn absolute(path: Option<&PathBuf>) -> Outcome<Option<PathBuf>> {
    let canonical =
        |path: &PathBuf| path.canonicalize().map_err(|e| Failure::usage(format!("{}: {e}", path.display())));
    path.map(canonical).transpose()
}
