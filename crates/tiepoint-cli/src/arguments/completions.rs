//! `tiepoint completions` and `tiepoint man`.

use clap::Args;
use clap_complete::Shell;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell, whose script goes to stdout
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// The folder to fill; it is made if it does not exist
    pub(crate) folder: PathBuf,
}
