//! The command line. It uses the public API of the library and nothing else.
//!
//! Results go to standard output, everything else to standard error.

mod acquire;
mod args;
mod config;
mod demo;
mod doctor;
mod duration;
mod ending;
mod exit;
mod explain;
mod extend;
mod fence_floor;
mod fleet;
mod form;
mod init;
mod inspect;
mod list;
mod output;
mod release;
#[cfg(target_os = "linux")]
mod run;
mod signals;
mod table;
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
        Command::List(args) => list::run(global, args).await,
        Command::Doctor(args) => doctor::run(global, args).await,
        Command::Explain(args) => explain::run(global, args),
        Command::Init => init::run(global).await,
        Command::FenceFloor(args) => fence_floor::run(global, args).await,
        Command::Testbed(command) => testbed::run(global, command).await,
        Command::Demo(args) => demo::run(global, args).await,
        Command::DemoWorker(args) => demo::worker::run(global, args).await,
    }
}

/// What the library has to say, on standard error. Its events name masters by address and never hold a password.
fn log(cli: &Cli) {
    let global = &cli.global;
    let told = match (global.quiet, global.verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::INFO,
        (false, _) => LevelFilter::DEBUG,
    };
    let (level, of_locks) = match told_by_itself(cli) {
        _ if global.verbose > 0 => (told, told),
        Told::Nothing => (told, told),
        Told::OfItsLock => (told, LevelFilter::OFF),
        Told::InEvents => (LevelFilter::OFF, LevelFilter::OFF),
    };
    let shown = Targets::new().with_default(level).with_target("quorlock::client::events", of_locks);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(output::has_colours(&std::io::stderr()))
        .with_target(false)
        .without_time();
    tracing_subscriber::registry().with(lines.with_filter(shown)).init();
}

/// What a command tells on standard error by itself, so that the library need not.
enum Told {
    Nothing,
    OfItsLock,
    /// There must be nothing between them.
    InEvents,
}

fn told_by_itself(cli: &Cli) -> Told {
    match &cli.command {
        #[cfg(target_os = "linux")]
        Command::Run(run) if cli.global.json && run.json_fd.is_none() => Told::InEvents,
        #[cfg(target_os = "linux")]
        Command::Run(_) => Told::OfItsLock,
        _ => Told::Nothing,
    }
}
