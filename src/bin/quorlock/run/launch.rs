//! `quorlock run-command`, which `quorlock run` starts in a process group of its own, and which becomes the command.
//!
//! Between fork and exec, safe Rust can do nothing; so a program of ours stands there. It asks to be killed when
//! `quorlock run` ends, and stops itself until everything around it stands: terminal and warden.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, raise};
use nix::unistd::{Pid, getppid};

use super::{program, signals};
use crate::args::RunCommand;
use crate::exit::{Exit, Failure};

/// Does not return if all goes well.
pub(crate) fn run(args: &RunCommand) -> Result<Exit, Failure> {
    let failed = |error: io::Error| Failure::other(format!("cannot prepare the command: {error}"));
    set_pdeathsig(Signal::SIGKILL).map_err(|error| failed(error.into()))?;
    if getppid() != Pid::from_raw(args.parent) {
        return Err(Failure::other("the quorlock that was to watch over the command is gone"));
    }
    // Blocked by our parent, for its own sake; the mask is the only thing that would come down to the command.
    signals::terminal_output().thread_unblock().map_err(|error| failed(error.into()))?;
    raise(Signal::SIGSTOP).map_err(|error| failed(error.into()))?;
    Err(become_command(&args.command))
}

fn become_command(command: &[OsString]) -> Failure {
    let Some((name, arguments)) = command.split_first() else { return Failure::other("no command") };
    program::refusal(name, &Command::new(name).args(arguments).exec())
}
