//! The command line's settings: the file of `--config`, durations, holder ids. No error quotes a password.
#![no_main]
#![allow(dead_code, reason = "the command line uses the rest")]

use std::path::Path;

#[path = "../../../src/bin/quorlock/config.rs"]
mod config;
#[path = "../../../src/bin/quorlock/duration.rs"]
mod duration;

/// What the settings need of it.
mod exit {
    pub(crate) struct Failure;

    impl Failure {
        pub(crate) fn config(_words: String) -> Self {
            Self
        }
    }
}

const SECRET: &str = "hunter2";

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    if let Ok(read) = duration::parse(&text) {
        let _ = (duration::show(read), duration::millis(read));
    }
    if let Ok(holder) = quorlock::HolderId::parse(&text) {
        assert!(holder.to_string().chars().all(|shown| shown.is_ascii_graphic()));
    }
    let _ = config::Config::parse(&text, Path::new(""));
    if let Err(why) = config::Config::parse(&format!("password = {text}{SECRET}"), Path::new("")) {
        assert!(text.contains(SECRET) || !why.contains(SECRET), "{text:?}: {why}");
    }
});
