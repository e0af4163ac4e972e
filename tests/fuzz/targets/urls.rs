//! URLs of masters, and INFO.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quorlock::fuzzing::urls(data));
