//! The terminal that we were started from, if any: whose turn it is to read it, and who is stopped by Ctrl-Z.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::unix::fs::OpenOptionsExt;

use nix::fcntl::OFlag;
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{Pid, getpgid, getpgrp, getpid, getppid, getsid, tcgetpgrp, tcsetpgrp};

/// Its foreground group gets what is typed, Ctrl-C included, and that is one group at a time: either ours, or the
/// command's. Signals that come to ours we pass on; so each comes to the command once.
pub(super) struct Terminal {
    tty: File,
    /// As it was set when we came.
    attributes: Option<Termios>,
    /// Whether the command had it last.
    lent: bool,
}

impl Terminal {
    /// The controlling terminal.
    pub(super) fn open() -> Option<Self> {
        let flags = (OFlag::O_NOCTTY | OFlag::O_NONBLOCK).bits();
        let tty = OpenOptions::new().read(true).write(true).custom_flags(flags).open("/dev/tty").ok()?;
        let attributes = tcgetattr(&tty).ok();
        Some(Self { tty, attributes, lent: false })
    }

    /// Whether it is our group's turn.
    pub(super) fn is_ours(&self) -> bool {
        tcgetpgrp(&self.tty) == Ok(getpgrp())
    }

    /// Whether the command may have it from the start. In a pipeline our neighbours are in our group, and may want to
    /// read the terminal (a pager); there the command gets it only when it asks, which stops it.
    pub(super) fn is_for_the_command_alone(&self) -> bool {
        self.is_ours() && io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    pub(super) fn lend(&mut self, to: Pid) {
        self.lent = tcsetpgrp(&self.tty, to).is_ok();
    }

    /// Lends it again to who had it when all was stopped, if it is our turn.
    pub(super) fn lend_again(&mut self, to: Pid) {
        if self.lent && self.is_ours() {
            self.lend(to);
        }
    }

    pub(super) fn take_back(&self, from: Pid) {
        if tcgetpgrp(&self.tty) == Ok(from) {
            // What fails here fails for the shell too, which takes it next.
            let _ = tcsetpgrp(&self.tty, getpgrp());
        }
    }

    /// A command that was killed left it as it was set for the command: without echo, say.
    pub(super) fn mend(&self) {
        if let Some(attributes) = self.attributes.as_ref().filter(|_| self.lent && self.is_ours()) {
            let _ = tcsetattr(&self.tty, SetArg::TCSADRAIN, attributes);
        }
    }
}

/// Whether somebody is there who would continue us, were we stopped: a shell, in our session and not in our group.
pub(super) fn is_a_shells_job() -> bool {
    let parent = Some(getppid());
    getsid(parent) == getsid(None) && getpgid(parent).is_ok_and(|group| group != getpgrp())
}

/// Returns when somebody continued us.
pub(super) fn stop_ourselves() {
    let _ = kill(getpid(), Signal::SIGSTOP);
}
