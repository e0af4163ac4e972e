//! Any answer of a master.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quorlock::fuzzing::replies(data));
