//! The command's program: looked for before there is a lock, so that none is taken for a typing error.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::unistd::{AccessFlags, eaccess};

use crate::exit::{Exit, Failure};

/// Where there is no `PATH`: as execvp(3).
const USUAL_PATH: &str = "/bin:/usr/bin";

/// Refuses what cannot be executed at present. What changes until it is, its execution tells.
pub(super) fn check(name: &OsStr) -> Result<(), Failure> {
    look_for(name).map_err(|error| refusal(name, &error.into()))
}

fn look_for(name: &OsStr) -> Result<(), Errno> {
    if name.as_bytes().contains(&b'/') {
        return is_executable(Path::new(name));
    }
    if name.is_empty() {
        return Err(Errno::ENOENT);
    }
    let path = env::var_os("PATH").unwrap_or_else(|| USUAL_PATH.into());
    let mut found = Err(Errno::ENOENT);
    for folder in env::split_paths(&path) {
        match is_executable(&folder.join(name)) {
            Ok(()) => return Ok(()),
            // Somewhere later there may be one that can be executed.
            Err(Errno::EACCES) => found = Err(Errno::EACCES),
            Err(_) => {}
        }
    }
    found
}

fn is_executable(path: &Path) -> Result<(), Errno> {
    eaccess(path, AccessFlags::X_OK)?;
    if path.is_dir() { Err(Errno::EACCES) } else { Ok(()) }
}

/// What the shells say, with their exit codes.
pub(super) fn refusal(name: &OsStr, error: &io::Error) -> Failure {
    let shown = name.to_string_lossy();
    if error.kind() == io::ErrorKind::NotFound {
        let text = format!("{shown}: command not found. It was not started; give its path, or correct PATH.");
        Failure::new(Exit::Code(127), "not_found", text)
    } else {
        let text = format!(
            "{shown}: cannot be executed: {error}. It was not started; make it executable (chmod +x)."
        );
        Failure::new(Exit::Code(126), "not_executable", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(name: &str) -> u8 {
        check(OsStr::new(name)).map_or_else(|failure| failure.exit.code(), |()| 0)
    }

    #[test]
    fn a_program_is_found_as_a_shell_finds_it() {
        assert_eq!(code("sh"), 0);
        assert_eq!(code("/bin/sh"), 0);
        assert_eq!(code("no-such-program-anywhere"), 127);
        assert_eq!(code("/no/such/program"), 127);
        assert_eq!(code(""), 127);
        assert_eq!(code("/etc/passwd"), 126);
        assert_eq!(code("/tmp"), 126);
        assert_eq!(code("/etc/passwd/x"), 126);
    }
}
