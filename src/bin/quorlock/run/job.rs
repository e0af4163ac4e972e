//! The command, running: its process group from the first process to the last.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use nix::errno::Errno;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid, dup2_stdin, dup2_stdout, getpid};
use quorlock::protocol::time::Moment;
use tokio::signal::unix::{self, SignalKind};

use super::group;
use super::signals;
use super::terminal::{self, Terminal};
use super::warden::{OURSELVES, Warden};
use crate::exit::Exit;

/// A command in a process group of its own, not begun until it is [released](Self::begin).
pub(super) struct Job {
    leader: Pid,
    process: Child,
    warden: Warden,
    /// Whether the warden was found to be gone.
    unwatched: bool,
    children: unix::Signal,
    terminal: Option<Terminal>,
    /// How the leader ended. It stays unasked for until its group is empty, so that the group's number stays ours.
    ended: Option<Exit>,
}

/// What happened to the leader, or to the warden.
pub(super) enum Change {
    Stopped(Signal),
    Ended(Exit),
    Unwatched,
}

impl Job {
    /// Puts the launcher into a group of its own, where it waits.
    ///
    /// The thread that calls this must live as long as we do: with it, says Linux, the launcher's parent ends.
    pub(super) async fn prepare(command: &[OsString], environment: &[(&str, OsString)]) -> io::Result<Self> {
        // What of the command is left alone comes to us, so that we see it end.
        set_child_subreaper(true)?;
        let children = unix::signal(SignalKind::child())?;
        let warden = Warden::hire()?;
        let process = Command::new(OURSELVES)
            .arg0("quorlock")
            .args(["run-command", "--parent", &getpid().to_string(), "--"])
            .args(command)
            .env_remove("QUORLOCK_MASTERS")
            // That of another lock, under which this command may run.
            .env_remove("QUORLOCK_FENCE")
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .spawn()?;
        let leader = Pid::from_raw(i32::try_from(process.id()).map_err(io::Error::other)?);
        let mut job = Self {
            leader,
            process,
            warden,
            unwatched: false,
            children,
            terminal: Terminal::open(),
            ended: None,
        };
        loop {
            match job.change()? {
                Some(Change::Stopped(Signal::SIGSTOP)) => return Ok(job),
                Some(Change::Ended(_)) => {
                    let _ = job.process.wait();
                    return Err(io::Error::other("what was to become the command ended before"));
                }
                Some(Change::Stopped(_) | Change::Unwatched) | None => {}
            }
            job.stirs().await;
        }
    }

    pub(super) const fn leader(&self) -> Pid {
        self.leader
    }

    /// Lets it run, until then. Keeps nothing open that is the command's: who reads what it writes must see its end.
    pub(super) async fn begin(&mut self, deadline: Moment) -> io::Result<()> {
        self.warden.appoint(self.leader, deadline).await?;
        let leader = self.leader;
        if let Some(terminal) = self.terminal.as_mut().filter(|terminal| terminal.is_for_the_command_alone())
        {
            terminal.lend(leader);
        }
        self.signal(Signal::SIGCONT)?;
        let nothing = File::options().read(true).write(true).open("/dev/null")?;
        dup2_stdin(&nothing)?;
        Ok(dup2_stdout(&nothing)?)
    }

    pub(super) fn never_begin(self) {
        let _ = self.signal(Signal::SIGKILL);
        self.close();
    }

    /// Until when it may run. Whether that is later than was known.
    pub(super) fn may_run_until(&mut self, deadline: Moment) -> bool {
        // A warden that is gone is reported by its end.
        self.warden.tell(deadline).unwrap_or(false)
    }

    /// Sends all of the group a signal. No error if nobody is left.
    pub(super) fn signal(&self, signal: Signal) -> io::Result<()> {
        match killpg(self.leader, signal) {
            Err(Errno::ESRCH) => Ok(()),
            sent => Ok(sent?),
        }
    }

    /// Returns when something may have become of one of our children.
    pub(super) async fn stirs(&mut self) {
        self.children.recv().await;
    }

    /// What became of the leader since the last look. Whatever else ended with us as its parent is buried.
    pub(super) fn change(&mut self) -> io::Result<Option<Change>> {
        if !self.unwatched && self.warden.is_gone() {
            self.unwatched = true;
            return Ok(Some(Change::Unwatched));
        }
        if self.ended.is_some() {
            return Ok(None);
        }
        match waitid(Id::Pid(self.leader), WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG) {
            Ok(WaitStatus::Stopped(_, signal)) => return Ok(Some(Change::Stopped(signal))),
            // ECHILD: what has ended will never stop.
            Ok(_) | Err(Errno::ECHILD) => {}
            Err(error) => return Err(error.into()),
        }
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        let ended = loop {
            let status = waitid(Id::All, look)?;
            match status.pid() {
                // The next look finds it.
                Some(warden) if warden.as_raw().unsigned_abs() == self.warden.pid() => return Ok(None),
                Some(other) if other != self.leader => bury(other),
                Some(_) => break status,
                None => return Ok(None),
            }
        };
        self.ended = Some(match ended {
            WaitStatus::Signaled(_, signal, _) => signals::exit(signal),
            WaitStatus::Exited(_, code) => Exit::Code(u8::try_from(code).unwrap_or(u8::MAX)),
            _ => return Ok(None),
        });
        Ok(self.ended.map(Change::Ended))
    }

    pub(super) const fn ended(&self) -> Option<Exit> {
        self.ended
    }

    /// How many processes of the group live on. Those that left it are not seen.
    pub(super) fn left(&self) -> usize {
        let members = group::members(self.leader);
        let (over, alive): (Vec<_>, Vec<_>) = members.into_iter().partition(group::Process::is_zombie);
        for process in over.iter().filter(|process| process.parent == getpid() && process.pid != self.leader)
        {
            bury(process.pid);
        }
        alive.len()
    }

    /// The command is stopped. Whoever sits at the terminal sees us stop with it, as they would see the command alone.
    /// Whether we did stop, and go on now.
    pub(super) fn stopped(&mut self, by: Signal, before_we_stop: impl FnOnce()) -> io::Result<bool> {
        let leader = self.leader;
        let Some(terminal) = &mut self.terminal else { return Ok(false) };
        let asks = matches!(by, Signal::SIGTTIN | Signal::SIGTTOU);
        if asks && terminal.is_ours() {
            terminal.lend(leader);
            self.signal(Signal::SIGCONT)?;
            return Ok(false);
        }
        if terminal::is_a_shells_job() {
            terminal.take_back(leader);
            before_we_stop();
            terminal::stop_ourselves();
            return Ok(true);
        }
        if by == Signal::SIGTSTP {
            // Nobody is there to continue it.
            self.signal(Signal::SIGCONT)?;
        }
        Ok(false)
    }

    /// Somebody continued us, and so the command.
    pub(super) fn go_on(&mut self) -> io::Result<()> {
        let leader = self.leader;
        if let Some(terminal) = &mut self.terminal {
            terminal.lend_again(leader);
        }
        self.signal(Signal::SIGCONT)
    }

    /// Nobody of the group is left.
    pub(super) fn close(mut self) {
        if let Some(terminal) = &self.terminal {
            terminal.take_back(self.leader);
            if matches!(self.ended, Some(Exit::Signal(_))) {
                terminal.mend();
            }
        }
        // As long as the leader is not asked for, the group's number is nobody else's.
        self.warden.dismiss();
        let _ = self.process.wait();
    }
}

fn bury(process: Pid) {
    let _ = waitid(Id::Pid(process), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG);
}
