//! The signals that are for the command, and reach it through us.

use std::fs;
use std::future::poll_fn;
use std::task::Poll;

use nix::sys::signal::{SigSet, Signal};
use tokio::signal::unix::{self, SignalKind};

use crate::exit::{Exit, Failure};

/// Whoever sends these wants an end.
const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// From here on these signals do nothing to us by themselves.
pub(super) struct Signals {
    caught: Vec<(Signal, unix::Signal)>,
}

impl Signals {
    /// The signals that end the waiting; those to pass on are swallowed until there is somebody to pass them on to.
    pub(super) fn catch() -> Result<Self, Failure> {
        // A process in the background must not be stopped for giving the terminal away, nor for a word on it.
        terminal_output().thread_block().map_err(cannot)?;
        let mut signals = Self { caught: Vec::new() };
        signals.and(&ENDING)?;
        signals.and(&[Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGWINCH])?;
        Ok(signals)
    }

    /// Those with which terminals stop and continue, too: from now on they are for the command.
    pub(super) fn catch_stops(&mut self) -> Result<(), Failure> {
        self.and(&[Signal::SIGTSTP, Signal::SIGCONT])
    }

    /// What the caller had ignored stays so, for the command too: nohup(1), and jobs that a script puts in the background.
    fn and(&mut self, signals: &[Signal]) -> Result<(), Failure> {
        let ignored = ignored();
        for signal in signals.iter().filter(|signal| ignored & bit(**signal) == 0) {
            let stream = unix::signal(SignalKind::from_raw(*signal as i32)).map_err(cannot)?;
            self.caught.push((*signal, stream));
        }
        Ok(())
    }

    /// The next signal.
    ///
    /// # Cancel safety
    ///
    /// Safe: a signal that was not returned is returned the next time.
    pub(super) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (signal, stream) in &mut self.caught {
                if stream.poll_recv(context).is_ready() {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// The next signal that wants an end.
    pub(super) async fn ending(&mut self) -> Signal {
        loop {
            let signal = self.next().await;
            if is_ending(signal) {
                return signal;
            }
        }
    }

    /// What `work` comes to, or which signal ended it before. Then `work` is dropped.
    pub(super) async fn or<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Exit> {
        tokio::select! {
            biased;
            signal = self.ending() => Err(exit(signal)),
            done = work => Ok(done),
        }
    }
}

pub(super) fn terminal_output() -> SigSet {
    SigSet::from(Signal::SIGTTOU)
}

pub(super) fn is_ending(signal: Signal) -> bool {
    ENDING.contains(&signal)
}

pub(super) fn exit(signal: Signal) -> Exit {
    Exit::Signal(u8::try_from(signal as i32).unwrap_or(0))
}

const fn bit(signal: Signal) -> u64 {
    1 << (signal as i32 - 1)
}

/// The signals that this process was started to ignore.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn cannot(error: impl std::fmt::Display) -> Failure {
    Failure::other(format!("cannot catch signals: {error}"))
}
