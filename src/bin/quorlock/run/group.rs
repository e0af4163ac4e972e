//! Who lives in a process group, as `/proc` tells it.

use std::fs;

use nix::unistd::Pid;

/// One process, as far as it matters here (proc_pid_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    pub(super) parent: Pid,
    group: Pid,
    state: u8,
    threads: u32,
}

impl Process {
    /// `pid (name) state parent group …`; the name may hold blanks and parentheses, so the last one closes it.
    fn parse(line: &str) -> Option<Self> {
        let (head, fields) = line.rsplit_once(')')?;
        let pid = head.split_once(' ')?.0.parse().ok()?;
        let mut fields = fields.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let mut number = |skip: usize| fields.nth(skip)?.parse::<i32>().ok();
        let (parent, group) = (number(0)?, number(0)?);
        let threads = number(14)?;
        Some(Self {
            pid: Pid::from_raw(pid),
            parent: Pid::from_raw(parent),
            group: Pid::from_raw(group),
            state,
            threads: threads.unsigned_abs(),
        })
    }

    /// Ended, and only waiting to be asked how. One whose first thread ended before the others looks the same, but for
    /// their number.
    pub(super) const fn is_zombie(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }
}

/// The members of a group, zombies included. Nobody, where there is no `/proc`.
pub(super) fn members(group: Pid) -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(is_number))
        // Who ended since the listing has no entry any more.
        .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok())
        .filter_map(|line| Process::parse(&line))
        .filter(|process| process.group == group)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Process {
        Process::parse(line).unwrap()
    }

    #[test]
    fn a_name_with_blanks_and_parentheses_does_not_shift_the_fields() {
        let process = parse("42 (a) b (c) S 7 41 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 100 0");
        assert_eq!((process.pid.as_raw(), process.parent.as_raw(), process.group.as_raw()), (42, 7, 41));
        assert_eq!((process.state, process.threads), (b'S', 3));
        assert_eq!(Process::parse("42 (a) S 7"), None);
    }

    #[test]
    fn a_process_whose_first_thread_ended_is_alive_as_long_as_others_run() {
        assert!(parse("42 (a) Z 7 41 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0").is_zombie());
        assert!(!parse("42 (a) Z 7 41 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 2 0 100 0").is_zombie());
    }

    #[test]
    fn this_process_is_a_member_of_its_own_group() {
        let me = nix::unistd::getpid();
        assert!(
            members(nix::unistd::getpgrp()).iter().any(|process| process.pid == me && !process.is_zombie())
        );
    }
}
