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
mod fleet;
mod form;
mod init;
mod inspect;
mod list;
mod output;
mod release;
mod signals;
mod table;
mod testbed;

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::filter::LevelFilter;

use args::{Cli, Command, Global};
use exit::{Exit, Failure};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ending::usage(&error),
    };
    log(&cli.global);
    // One thread: the commands wait for a few sockets, and start in a few milliseconds.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return ending::end(&cli.global, Err(Failure::other(format!("no runtime: {error}")))),
    };
    ending::end(&cli.global, runtime.block_on(run(&cli)))
}

async fn run(cli: &Cli) -> Result<Exit, Failure> {
    let global = &cli.global;
    match &cli.command {
        Command::Acquire(args) => acquire::run(global, args).await,
        Command::Extend(args) => extend::run(global, args).await,
        Command::Release(args) => release::run(global, args).await,
        Command::Inspect(args) => inspect::run(global, args).await,
        Command::List(args) => list::run(global, args).await,
        Command::Doctor(args) => doctor::run(global, args).await,
        Command::Explain(args) => explain::run(global, args),
        Command::Init => init::run(global).await,
        Command::Testbed(command) => testbed::run(global, command).await,
        Command::Demo(args) => demo::run(global, args).await,
        Command::DemoWorker(args) => demo::worker::run(global, args).await,
    }
}

/// What the library has to say, on standard error. Its events name masters by address and never hold a password.
fn log(global: &Global) {
    let level = match (global.quiet, global.verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::INFO,
        (false, _) => LevelFilter::DEBUG,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(output::has_colours(&std::io::stderr()))
        .with_target(false)
        .without_time()
        .init();
}
