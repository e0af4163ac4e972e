//! Lives of the protocol's machine.
#![no_main]

#[path = "../lives.rs"]
mod lives;

libfuzzer_sys::fuzz_target!(|data: &[u8]| lives::live(data));
