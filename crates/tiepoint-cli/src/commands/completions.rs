//! `tiepoint completions` and `tiepoint man`: the command line for shells and for the manual.

use crate::arguments::Arguments;
use crate::failure::{Failure, Outcome};
use crate::output::print_bytes;
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::Path;

pub(crate) fn run(shell: Shell) -> Outcome {
    let mut command = Arguments::command();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "tiepoint", &mut script);
    print_bytes(&script);
    Ok(())
}

/// Writes `tiepoint.1`, `tiepoint-detect.1` and so on.
pub(crate) fn write_manual(folder: &Path) -> Outcome {
    let failed = |e: std::io::Error| Failure::work(format!("{}: {e}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(Arguments::command(), folder).map_err(failed)
}
