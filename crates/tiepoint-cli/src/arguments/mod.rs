//! The command line: one file for each command, and one for each group of flags that several commands share.
//!
//! Here flags become checked options of the library; the work is in [`commands`](crate::commands).

pub(crate) mod bench;
pub(crate) mod collect;
pub(crate) mod compress;
pub(crate) mod demo;
pub(crate) mod detect;
pub(crate) mod detector;
pub(crate) mod evaluate;
pub(crate) mod filter;
pub(crate) mod like;
pub(crate) mod limits;
pub(crate) mod r#match;
pub(crate) mod matching;
pub(crate) mod rectify;
pub(crate) mod register;
pub(crate) mod report;
pub(crate) mod stereo;
pub(crate) mod streams;
pub(crate) mod table;
pub(crate) mod values;

use bench::BenchArguments;
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use collect::CollectArguments;
use demo::DemoArguments;
use detect::DetectArguments;
use evaluate::EvaluateArguments;
use filter::FilterArguments;
use r#match::MatchArguments;
use rectify::RectifyArguments;
use register::RegisterArguments;
use report::ComparisonArguments;
use std::path::PathBuf;
use stereo::StereoArguments;
use values::Devices;

/// Finds the points of two pictures that show the same thing.
#[derive(Debug, Parser)]
#[command(
    name = "tiepoint",
    version,
    arg_required_else_help = true,
    infer_long_args = true,
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage. Results go to files and stdout, messages to stderr. A file \
                  named - is stdin where it is read and stdout where it is written: features and matches are then CSV, \
                  pictures PNG, disparities PFM, and messages go to stderr."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: GlobalArguments,
}

// The flags of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct GlobalArguments {
    /// Where to compute: auto, cpu, cuda[:N] or opencl[:N]. With auto and cpu+cuda[:N] (or opencl) the CPU works while
    /// the GPU is opened and its kernels are compiled for the first time. collect also takes several devices: cuda:all, or
    /// a list separated by commas
    #[arg(long, global = true, default_value = "auto", value_parser = values::devices)]
    pub(crate) device: Devices,
    /// CPU threads [default: one for every core]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Print the time of every stage on stderr
    #[arg(long, global = true)]
    pub(crate) profile: bool,
    /// Print JSON on stdout: one object on each line, for each image or pair
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Do not wait until results are on the disk (fsync): a power cut may then destroy results that were reported as done
    #[arg(long, global = true)]
    pub(crate) no_sync: bool,
    /// Print more on stderr
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// Print nothing but errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
}

/// The flags of a command are put together only if that command is called, because those of all commands take time.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Find keypoints in images and describe them
    Detect(DetectArguments),
    /// Match two images and verify the matches by a model
    Match(MatchArguments),
    /// Warp MOVING onto REFERENCE
    Register(RegisterArguments),
    /// Warp LEFT and RIGHT so that corresponding points lie in the same row
    Rectify(RectifyArguments),
    /// Compute the disparities of rectified pairs, and depth
    #[command(
        after_help = "`tiepoint stereo --like mgm …` takes the command line and the environment of mgm and mgm_multi, \
                            as s2p and ASP call them; so does a link to tiepoint named mgm or mgm_multi."
    )]
    Stereo(StereoArguments),
    /// Apply one filter to an image
    #[command(subcommand)]
    Filter(FilterArguments),
    /// Score a result against the truth
    #[command(subcommand)]
    Evaluate(EvaluateArguments),
    /// Match many photographs, and write a database for COLMAP
    Collect(CollectArguments),
    /// Compare two runs by their pages (--report): what is in both, what is in only one, and which figures differ
    Report(ComparisonArguments),
    /// Measure the time of every stage, on images or on a synthetic scene
    Bench(BenchArguments),
    /// List the devices that can compute here
    Devices,
    /// Try everything on photographs and synthetic scenes, and write pictures and an HTML page
    Demo(DemoArguments),
    /// Print a script that makes a shell complete this command's words
    Completions {
        /// The shell, whose script goes to stdout
        shell: Shell,
    },
    /// Manual pages: one for each command
    #[command(hide = true)]
    Man {
        /// The folder to fill; it is made if it does not exist
        folder: PathBuf,
    },
}

/// Names that the library's errors use for values that are not in its tables, and the flags that set them.
const OTHER_NAMES: [(&str, &str); 4] = [
    ("kernel size", "kernel"),
    ("kernel weight", "kernel"),
    ("kernel weights", "kernel"),
    ("greatest cost", "cost"),
];

/// The flag of an option of the library, without its dashes.
pub(crate) fn flag_of(option: &str) -> Option<String> {
    if let Some(flag) = table::flag_of(option) {
        return Some(flag);
    }
    let renamed = OTHER_NAMES.iter().find(|(name, _)| *name == option);
    let id = renamed.map_or(option, |(_, flag)| *flag);
    let mut command = Arguments::command();
    command.build();
    flag_in(&command, id)
}

fn flag_in(command: &clap::Command, id: &str) -> Option<String> {
    let own = command.get_arguments().find(|argument| argument.get_id() == id);
    let long = own.and_then(|argument| argument.get_long()).map(str::to_owned);
    long.or_else(|| command.get_subcommands().find_map(|inner| flag_in(inner, id)))
}
