//! `tiepoint collect`.

use super::limits::PhotographLimits;
use super::report::ReportArguments;
use super::streams::{is_pipe, is_stdout};
use super::table::{Given, flags};
use crate::failure::{Failure, Outcome};
use clap::builder::{StringValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};
use tiepoint::collection::{CollectionOptions, PairChoice, Shard};
use tiepoint::matching::files::MatchFormat;
use tiepoint::options::Named;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true
)]
pub(crate) struct CollectArguments {
    /// The stage to run [default: all of them]
    #[command(subcommand)]
    pub(crate) stage: Option<Stage>,
    #[command(flatten)]
    pub(crate) whole: WholeArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Stage {
    /// List the photographs, and make the work folder with the options of all stages
    Scan {
        /// Photographs, or folders of them
        #[arg(required = true, value_name = "IMAGES")]
        images: Vec<PathBuf>,
        #[command(flatten)]
        work: WorkArguments,
        #[command(flatten)]
        options: OptionArguments,
    },
    /// Find the features of every photograph
    Features {
        #[command(flatten)]
        part: PartArguments,
        #[command(flatten)]
        unreadable: UnreadableArguments,
        #[command(flatten)]
        limits: PhotographLimits,
    },
    /// Choose the pairs to match
    Pairs(PartArguments),
    /// Match every pair and verify its geometry
    Match(PartArguments),
    /// Write COLMAP's database, or tie points for other programs
    Export {
        #[command(flatten)]
        work: WorkArguments,
        #[command(flatten)]
        output: OutputArguments,
    },
    /// Show what is done and what is left
    Status {
        #[command(flatten)]
        work: WorkArguments,
        /// Divide the work into N parts and name those that are not done; --shard I/N does part I
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        parts: Option<u32>,
    },
}

impl CollectArguments {
    /// Fails if an option is out of range.
    pub(crate) fn check(&self) -> Outcome {
        match &self.stage {
            None => self.whole.options.options().map(drop),
            Some(Stage::Scan { options, .. }) => options.options().map(drop),
            Some(
                Stage::Features { .. }
                | Stage::Pairs(_)
                | Stage::Match(_)
                | Stage::Export { .. }
                | Stage::Status { .. },
            ) => Ok(()),
        }
    }
}

// All stages.
#[derive(Debug, Args)]
pub(crate) struct WholeArguments {
    /// Photographs, or folders of them
    #[arg(required = true, value_name = "IMAGES")]
    pub(crate) images: Vec<PathBuf>,
    /// The work folder; results in it are not computed again [default: OUTPUT.work]
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
pub(crate) struct WorkArguments {
    /// The work folder
    #[arg(long, value_name = "DIR")]
    pub(crate) work: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct PartArguments {
    #[command(flatten)]
    pub(crate) work: WorkArguments,
    /// Do only part I of N, with I from 0 to N - 1; N processes or machines share the work folder
    #[arg(long, value_name = "I/N", default_value_t, value_parser = StringValueParser::new().try_map(|s| s.parse::<Shard>()))]
    pub(crate) shard: Shard,
}

#[derive(Debug, Args)]
pub(crate) struct UnreadableArguments {
    /// End with an error if more than N photographs cannot be read, counting those that other parts have found so far.
    /// Unreadable photographs are always reported and left out
    #[arg(long, value_name = "N")]
    pub(crate) max_unreadable: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct OutputArguments {
    /// The database, for COLMAP 4.1 and newer (older versions need --colmap 3.8); with --format, where the files go
    // An `Option`, because the parser fills this struct even when a stage is given.
    #[arg(short, long, value_name = "DB", required = true)]
    output: Option<PathBuf>,
    /// Replace a file at DB that was not written by this command
    #[arg(long)]
    pub(crate) replace: bool,
    /// Leave descriptors out, which the mapper does not read: the file has a sixth of the size
    #[arg(long)]
    pub(crate) no_descriptors: bool,
    /// The version of COLMAP whose layout the database has. 3.8 (Debian's) cannot open newer layouts; later versions upgrade
    /// older ones
    #[arg(long, value_name = "VERSION", default_value = "4.1", value_parser = ["3.8", "4.1"])]
    pub(crate) colmap: String,
    /// Write the inliers of each verified pair for another program instead of a database. --output is then the start of the
    /// file names for asp (DB-A__B.txt), the folder Homol for micmac, and a folder for s2p, qgis and vrt (vrt: only pairs of
    /// which one photograph lies on a map)
    #[arg(long, value_parser = ["asp", "micmac", "s2p", "qgis", "vrt"], conflicts_with_all = ["replace", "no_descriptors", "colmap"])]
    format: Option<String>,
    /// Also write the verified pairs to FILE as a list of names, as COLMAP and hloc read it
    #[arg(long, value_name = "FILE")]
    pub(crate) pair_list: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArguments,
    #[command(flatten)]
    pub(crate) limits: PhotographLimits,
}

impl OutputArguments {
    pub(crate) fn output(&self) -> Outcome<&Path> {
        let output =
            self.output.as_deref().ok_or_else(|| Failure::usage("--output DB names the database"))?;
        if is_stdout(output.as_os_str()) {
            return Err(Failure::usage(
                "--output: a database cannot be written to stdout; name a file for it",
            ));
        }
        Ok(output)
    }

    /// The format of other programs' tie points, where it is asked for.
    pub(crate) fn format(&self) -> Outcome<Option<MatchFormat>> {
        Ok(self.format.as_deref().map(MatchFormat::from_name).transpose()?)
    }
}

// The options that a work folder records.
#[derive(Debug, Args)]
pub(crate) struct OptionArguments {
    /// Which pairs to match: auto, exhaustive, sequence, gps, top-scale, or a FILE with two names on each line (-: stdin)
    #[arg(long, value_name = "WHICH", default_value = "auto", help_heading = "Collection")]
    pub(crate) pairs: PathBuf,
    /// Verify the matches in FILE instead of a search: COLMAP's text (two names, lines of two indices, an empty line) or
    /// hloc's matches.h5
    #[arg(long, value_name = "FILE", conflicts_with = "pairs", help_heading = "Collection")]
    pub(crate) matches: Option<PathBuf>,
    #[command(flatten)]
    recorded: Given<CollectionFlags>,
}

flags! {
    /// The options of a collection as flags.
    CollectionFlags: CollectionOptions, "Collection", CollectionOptions::default(), {
        const WITHOUT: &'static [&'static str] = &["choice", "list", "descriptors"];
    }
}

impl OptionArguments {
    /// The options, checked.
    pub(crate) fn options(&self) -> Outcome<CollectionOptions> {
        let mut options = self.recorded.options();
        let of_watermarks = ["watermark_border", "watermark_ratio"];
        if !options.two_view.detect_watermark && of_watermarks.iter().any(|field| self.recorded.has(field)) {
            return Err(Failure::usage(
                "--watermark-border and --watermark-ratio have no effect with --no-detect-watermark: leave them out",
            ));
        }
        options.features.masks = absolute(options.features.masks.as_ref())?;
        options.features.given = absolute(options.features.given.as_ref())?;
        let (choice, list) = self.choice()?;
        options.pairs.choice = choice;
        // The scan keeps what can be read only once.
        options.pairs.list = match list {
            Some(list) if is_pipe(list.as_os_str()) => Some(list),
            list => absolute(list.as_ref())?,
        };
        options.check()?;
        Ok(options)
    }

    /// How pairs are chosen, and the list if they are chosen by a list.
    fn choice(&self) -> Outcome<(PairChoice, Option<PathBuf>)> {
        if let Some(matches) = &self.matches {
            return Ok((PairChoice::Matches, Some(matches.clone())));
        }
        let named = self.pairs.to_str().and_then(|name| PairChoice::from_name(name).ok());
        match named {
            Some(choice) if !matches!(choice, PairChoice::List | PairChoice::Matches) => Ok((choice, None)),
            _ if self.pairs.is_file() || is_pipe(self.pairs.as_os_str()) => {
                Ok((PairChoice::List, Some(self.pairs.clone())))
            }
            _ => Err(Failure::usage(format!(
                "--pairs is {}: expected auto, exhaustive, sequence, gps, top-scale, or a file that is there",
                self.pairs.display()
            ))),
        }
    }
}

/// The path in absolute form, because the work folder records it.
fn absolute(path: Option<&PathBuf>) -> Outcome<Option<PathBuf>> {
    let canonical =
        |path: &PathBuf| path.canonicalize().map_err(|e| Failure::usage(format!("{}: {e}", path.display())));
    path.map(canonical).transpose()
}
