//! The command line. It uses the public API of the library and nothing else.
//!
//! Results go to standard output, everything else to standard error.

mod acquire;
mod args;
mod config;
mod demo;
mod duration;
mod ending;
mod exit;
mod extend;
mod fleet;
mod init;
mod inspect;
mod output;
mod release;
#[cfg(target_os = "linux")]
mod run;
mod signals;
mod testbed;

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

use args::{Cli, Command};
use exit::{Exit, Failure};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ending::usage(&error),
    };
    log(&cli);
    // One thread: the commands wait for a few sockets, and start in a few milliseconds.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return ending::end(&cli.global, Err(Failure::other(format!("no runtime: {error}")))),
    };
    ending::end(&cli.global, runtime.block_on(obey(&cli)))
}

async fn obey(cli: &Cli) -> Result<Exit, Failure> {
    let global = &cli.global;
    match &cli.command {
        #[cfg(target_os = "linux")]
        Command::Run(args) => Ok(run::run(global, args).await),
        #[cfg(target_os = "linux")]
        Command::RunCommand(args) => run::launch::run(args),
        #[cfg(target_os = "linux")]
        Command::RunWarden => run::warden::stand(),
        Command::Acquire(args) => acquire::run(global, args).await,
        Command::Extend(args) => extend::run(global, args).await,
        Command::Release(args) => release::run(global, args).await,
        Command::Inspect(args) => inspect::run(global, args).await,
        Command::Init => init::run(global).await,
        Command::Testbed(command) => testbed::run(global, command).await,
        Command::Demo(args) => demo::run(global, args).await,
        Command::DemoWorker(args) => demo::worker::run(global, args).await,
    }
}

/// What the library has to say, on standard error. Its events name masters by address and never hold a password.
fn log(cli: &Cli) {
    let global = &cli.global;
    let level = match (global.quiet, global.verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::INFO,
        (false, _) => LevelFilter::DEBUG,
    };
    let of_locks = if tells_of_its_lock(cli) && global.verbose == 0 { LevelFilter::OFF } else { level };
    let shown = Targets::new().with_default(level).with_target("quorlock::client::events", of_locks);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_target(false)
        .without_time();
    tracing_subscriber::registry().with(lines.with_filter(shown)).init();
}

/// A run has its own words for what becomes of its lock.
fn tells_of_its_lock(cli: &Cli) -> bool {
    #[cfg(target_os = "linux")]
    return matches!(cli.command, Command::Run(_));
    #[cfg(not(target_os = "linux"))]
    false
}
