//! The flags of `--report`, the page that shows a result, and `tiepoint report`.

use super::values::bytes;
use crate::failure::{Failure, Outcome};
use clap::Args;
use std::path::{Path, PathBuf};
use tiepoint_report::DEFAULT_LIMIT;

// The file of the page, and how large it may be.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ReportArguments {
    /// Write a page that shows the result: one .html file that needs only a browser, no network and no server
    #[arg(long, value_name = "HTML")]
    pub(crate) report: Option<PathBuf>,
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = bytes,
        requires = "report",
        help = format!("The most bytes of the page; pictures, maps and matches are reduced until they fit [default: {DEFAULT_LIMIT}]")
    )]
    pub(crate) report_limit: Option<u64>,
}

impl ReportArguments {
    pub(crate) fn wanted(&self) -> bool {
        self.report.is_some()
    }

    /// The name or pattern of pages as text, as other results have it.
    pub(crate) fn pattern(&self) -> Outcome<Option<String>> {
        let text = |path: &PathBuf| {
            let text = path.to_str().map(str::to_owned);
            text.ok_or_else(|| {
                Failure::usage(format!("{}: the name is not UTF-8; use another", path.display()))
            })
        };
        self.report.as_ref().map(text).transpose()
    }

    pub(crate) fn limit(&self) -> usize {
        self.report_limit.map_or(DEFAULT_LIMIT, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
    }

    pub(crate) fn check(&self) -> Outcome {
        self.report.as_deref().map_or(Ok(()), check_page)
    }
}

// `tiepoint report`.
#[derive(Debug, Args)]
pub(crate) struct ComparisonArguments {
    /// The pages of two runs of the same command, written by --report: the earlier run, then the later one
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"], required = true)]
    pub(crate) compare: Vec<PathBuf>,
    /// The page that shows both runs: one .html file that needs only a browser, no network and no server
    #[arg(short, long, value_name = "HTML")]
    pub(crate) output: PathBuf,
}

/// Fails unless the name is one of an HTML file.
pub(crate) fn check_page(path: &Path) -> Outcome {
    let named =
        path.extension().is_some_and(|e| ["html", "htm"].iter().any(|known| e.eq_ignore_ascii_case(known)));
    if !named {
        return Err(Failure::usage(format!("{}: a report is an HTML file: name it .html", path.display())));
    }
    Ok(())
}
