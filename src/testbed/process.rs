//! One server process: who it is, its signals, its end.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde::{Deserialize, Serialize};

use crate::testbed::folder::Folder;

/// How often a state that the kernel is about to reach is looked at, and how many times.
const LOOK_EVERY: Duration = Duration::from_millis(1);
const LOOKS: u32 = 2_000;

/// Waits for its standard input to end, which it does however we end, kill -9 included; then ends the server.
///
/// A process cannot ask the kernel to die with its parent before it runs, save by code between fork and exec, which
/// is unsafe in Rust; and `prctl(PR_SET_PDEATHSIG)` follows the *thread* that spawned, which in a test or a runtime
/// ends long before the process does. A waiting shell costs one small process and has neither flaw.
const WATCHDOG: &str = r#"read -r _; kill -9 "$1" 2>/dev/null; rm -rf "$2""#;

/// A pid, and the moment at which the process that has it started: together they never mean another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pid: i32,
    /// Clock ticks since boot, from `/proc/PID/stat`.
    started: u64,
}

/// A server process, tied to us (it ends when we end) or loose (it outlives us).
#[derive(Debug)]
pub(super) struct Process {
    identity: Identity,
    tie: Option<Tie>,
}

#[derive(Debug)]
struct Tie {
    server: Child,
    watchdog: Child,
}

impl Process {
    /// Runs `command`, tied to us, in a process group of its own: Ctrl-C in the terminal is for us, not for it.
    pub(super) fn spawn(command: &mut Command, folder: &Folder) -> io::Result<Self> {
        let mut server = command.process_group(0).spawn()?;
        let started = watchdog(server.id(), folder).and_then(|watchdog| {
            let pid = i32::try_from(server.id()).map_err(io::Error::other)?;
            // Unreaped, so that even a server which ended at once has its entry still.
            let stat =
                Stat::of(pid).ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat cannot be read")))?;
            Ok((watchdog, Identity { pid, started: stat.started }))
        });
        match started {
            Ok((watchdog, identity)) => Ok(Self { identity, tie: Some(Tie { server, watchdog }) }),
            Err(error) => {
                let _ = server.kill();
                let _ = server.wait();
                Err(error)
            }
        }
    }

    /// A process of an earlier command.
    pub(super) fn adopted(identity: Identity) -> Self {
        Self { identity, tie: None }
    }

    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    pub(super) fn pid(&self) -> u32 {
        self.identity.pid.unsigned_abs()
    }

    /// Whether it runs, stopped or not.
    pub(super) fn is_alive(&self) -> bool {
        self.stat().is_some_and(|stat| !matches!(stat.state, b'Z' | b'X' | b'x'))
    }

    /// Whether it is stopped.
    pub(super) fn is_frozen(&self) -> bool {
        self.stat().is_some_and(|stat| matches!(stat.state, b'T' | b't'))
    }

    /// SIGSTOP, or SIGCONT. Returns when the process has stopped, or runs again.
    pub(super) fn set_frozen(&self, frozen: bool) -> io::Result<()> {
        self.signal(if frozen { Signal::STOP } else { Signal::CONT })?;
        self.until(|this| this.is_frozen() == frozen || !this.is_alive())
    }

    /// SIGKILL, which ends a stopped process too. Returns when it is gone.
    pub(super) fn end(&mut self) -> io::Result<()> {
        if let Some(mut tie) = self.tie.take() {
            // The watchdog first: once the server is reaped its pid may be another's.
            end_child(&mut tie.watchdog)?;
            return end_child(&mut tie.server);
        }
        if self.is_alive() {
            self.signal(Signal::KILL)?;
        }
        self.until(|this| {
            // Ours by birth, if this very process let it loose; then it is ours to reap. Otherwise an error to ignore.
            if this.stat().is_some() {
                let _ = this.kernel_pid().map(|pid| waitpid(Some(pid), WaitOptions::NOHANG));
            }
            !this.is_alive()
        })
    }

    /// Lets it outlive us.
    pub(super) fn loosen(&mut self) -> io::Result<()> {
        match self.tie.take() {
            Some(mut tie) => end_child(&mut tie.watchdog),
            None => Ok(()),
        }
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        match self.kernel_pid() {
            // Between the look and the signal a loose process could end and its pid be given anew; pids are given
            // in turn, so that all others would have to be used up in these microseconds.
            Some(pid) if self.stat().is_some() => Ok(kill_process(pid, signal)?),
            _ => {
                Err(io::Error::new(io::ErrorKind::NotFound, format!("process {} is gone", self.identity.pid)))
            }
        }
    }

    fn kernel_pid(&self) -> Option<Pid> {
        Pid::from_raw(self.identity.pid).filter(|_| self.identity.pid > 1)
    }

    fn stat(&self) -> Option<Stat> {
        Stat::of(self.identity.pid).filter(|stat| stat.started == self.identity.started)
    }

    fn until(&self, reached: impl Fn(&Self) -> bool) -> io::Result<()> {
        for _ in 0..LOOKS {
            if reached(self) {
                return Ok(());
            }
            thread::sleep(LOOK_EVERY);
        }
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("process {} did not follow a signal", self.identity.pid),
        ))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.tie.is_some() {
            let _ = self.end();
        }
    }
}

fn watchdog(server: u32, folder: &Folder) -> io::Result<Child> {
    Command::new("sh")
        .args(["-c", WATCHDOG, "quorlock-watchdog", &server.to_string()])
        .arg(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .process_group(0)
        .spawn()
}

fn end_child(child: &mut Child) -> io::Result<()> {
    // Without an effect, and no error, where it has ended already.
    child.kill()?;
    // Takes the child's standard input away first, as std does; a killed child needs no invitation.
    child.wait().map(drop)
}

/// What `/proc/PID/stat` says, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    state: u8,
    started: u64,
}

impl Stat {
    fn of(pid: i32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// `pid (name) state …`; the name may hold blanks and parentheses, so the last one closes it. The start time is
    /// field 22, which makes it the 20th from the state on (proc_pid_stat(5)).
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        Some(Self { state, started: fields.nth(18)?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_parentheses_does_not_shift_the_fields() {
        let line = "42 (a) b (c) T 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20";
        assert_eq!(Stat::parse(line), Some(Stat { state: b'T', started: 777 }));
        assert_eq!(Stat::parse("42 (a) T 1"), None);
    }

    #[test]
    fn a_pid_with_another_start_time_is_another_process_and_gets_no_signal() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let started = Stat::of(pid).unwrap().started;
        let mut other = Process::adopted(Identity { pid, started: started + 1 });
        assert!(!other.is_alive());
        assert!(other.set_frozen(true).is_err());
        other.end().unwrap();
        assert!(Process::adopted(Identity { pid, started }).is_alive(), "it was killed");
        end_child(&mut child).unwrap();
    }
}
