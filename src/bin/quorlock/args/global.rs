//! What all commands understand.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::duration;

/// What all commands understand, before or after their name.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The masters, five as a rule, the same for every client of a fleet.
    ///
    /// Other users of this machine see a command's arguments in `ps`: give URLs with passwords by the environment
    /// or by --config.
    #[arg(
        long,
        global = true,
        value_name = "URL,URL,…",
        value_delimiter = ',',
        env = "QUORLOCK_MASTERS",
        hide_env_values = true
    )]
    pub(crate) masters: Vec<String>,
    /// A TOML file with any of: masters, user, password, master_timeout, max_ttl, min_votes, label (and with TLS: ca,
    /// client_certificate, client_key). Options win over it.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// How long one master may take to answer [default: 500ms].
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) master_timeout: Option<Duration>,
    /// The fleet's longest ttl, the same for every client [default: 60s].
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) max_ttl: Option<Duration>,
    /// Needs more votes than the majority, the same for every client.
    #[arg(long, global = true, value_name = "VOTES")]
    pub(crate) min_votes: Option<usize>,
    /// The readable part of holder ids [default: host:pid].
    #[arg(long, global = true, value_name = "TEXT")]
    pub(crate) label: Option<String>,
    /// Prints one JSON object instead of text.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Says nothing on standard error but errors.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Says more on standard error; twice for everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}
