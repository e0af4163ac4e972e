//! The command line about itself.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Whose page: `run`, or `testbed fault`; that of quorlock itself without.
    pub(crate) command: Vec<String>,
    /// Writes the pages of all commands into this folder instead.
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    pub(crate) dir: Option<PathBuf>,
}
