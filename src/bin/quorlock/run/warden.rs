//! The warden: a second process, which kills the command's group when we cannot.
//!
//! We may be stopped, or swapped out, or killed. The warden sits in a session of its own, deaf to every signal that can be
//! blocked, and knows until when the lock is valid. It kills the group when that moment passes and nobody has named a later
//! one, and at once when we are gone. It wakes by a timer of CLOCK_BOOTTIME: a machine that was suspended wakes up to it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId as Clock, clock_gettime};
use nix::unistd::{Pid, setsid};
use quorlock::protocol::time::Moment;
use tokio::io::AsyncReadExt;

use crate::exit::{Exit, Failure};

/// Our own program, under whatever name it lies, and even if it was replaced meanwhile.
pub(super) const OURSELVES: &str = "/proc/self/exe";

/// What is still there so long after a kill gets another.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The warden as we see it. Dropping it lets it kill.
pub(super) struct Warden {
    process: Child,
    line: tokio::net::UnixStream,
    told: Moment,
}

impl Warden {
    pub(super) fn hire() -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let process = Command::new(OURSELVES)
            .arg0("quorlock")
            .arg("run-warden")
            .env_remove("QUORLOCK_MASTERS")
            .current_dir("/")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { process, line: tokio::net::UnixStream::from_std(ours)?, told: Moment::from_nanos(0) })
    }

    /// Returns when the warden watches over this group, which may live until then.
    pub(super) async fn appoint(&mut self, group: Pid, deadline: Moment) -> io::Result<()> {
        self.line.read_u8().await?;
        self.write(u64::from(group.as_raw().unsigned_abs()))?;
        self.tell(deadline).map(drop)
    }

    /// Until when the group may live. Whether that is later than it knew.
    ///
    /// # Errors
    ///
    /// If the warden is gone.
    pub(super) fn tell(&mut self, deadline: Moment) -> io::Result<bool> {
        // Less than a millisecond more is the same moment, reckoned at another one.
        let later = deadline > self.told.plus(Duration::from_millis(1));
        if later {
            self.write(deadline.as_nanos())?;
            self.told = deadline;
        }
        Ok(later)
    }

    fn write(&self, number: u64) -> io::Result<()> {
        match self.line.try_write(&number.to_le_bytes()) {
            // It reads nothing, and so it is stopped: when it goes on, it kills. What we do ourselves does not change.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            written => written.map(drop),
        }
    }

    /// Whether it ended, which it never does before us by itself.
    pub(super) fn is_gone(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(Some(_)))
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// It has nobody left to watch. Killed, since it may be stopped; and before it sees that our line is closed.
    pub(super) fn dismiss(mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `quorlock run-warden`.
pub(crate) fn stand() -> Result<Exit, Failure> {
    watch().map_err(|error| Failure::other(format!("cannot watch over the command: {error}")))?;
    Ok(Exit::Done)
}

fn watch() -> io::Result<()> {
    SigSet::all().thread_block()?;
    setsid()?;
    let mut line = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, TimerFlags::TFD_CLOEXEC)?;
    line.write_all(&[0])?;
    let group = match read(&mut line).map(i32::try_from) {
        // 0 would be our own group, and 1 everybody.
        Some(Ok(group)) if group > 1 => Pid::from_raw(group),
        _ => return Ok(()),
    };
    let mut over = false;
    loop {
        let mut ready =
            [PollFd::new(line.as_fd(), PollFlags::POLLIN), PollFd::new(timer.as_fd(), PollFlags::POLLIN)];
        poll(&mut ready, PollTimeout::NONE)?;
        let [told, rang] = ready.map(|fd| fd.any().unwrap_or(true));
        if told {
            match read(&mut line) {
                Some(deadline) if !over => set(&timer, Moment::from_nanos(deadline))?,
                Some(_) => {}
                None => {
                    end(group);
                    return Ok(());
                }
            }
        } else if rang {
            over = true;
            end(group);
            set(&timer, now().plus(AGAIN_AFTER))?;
        }
    }
}

/// A number of theirs; none when they are gone.
fn read(line: &mut UnixStream) -> Option<u64> {
    let mut number = [0; 8];
    line.read_exact(&mut number).ok().map(|()| u64::from_le_bytes(number))
}

fn end(group: Pid) {
    let _ = killpg(group, Signal::SIGKILL);
}

fn set(timer: &TimerFd, deadline: Moment) -> io::Result<()> {
    // Zero would mean never.
    let at = TimeSpec::from_duration(Duration::from_nanos(deadline.as_nanos().max(1)));
    Ok(timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?)
}

/// CLOCK_BOOTTIME, by which the library decides; its beginning, so that all is over, if it cannot be read.
pub(super) fn now() -> Moment {
    let time = clock_gettime(Clock::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from);
    Moment::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
