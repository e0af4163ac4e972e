//! What the fuzzer found worth keeping of the protocol's machine, and random lives beside it. The targets are in `fuzz/`.

use std::path::Path;

use proptest::prelude::*;

#[path = "fuzz/lives.rs"]
mod lives;

#[test]
fn what_the_fuzzer_kept_of_lives_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus/lives");
    let files: Vec<_> = std::fs::read_dir(folder).expect("the corpus").flatten().collect();
    assert!(files.len() >= 5);
    for file in files {
        println!("{}", file.path().display());
        lives::live(&std::fs::read(file.path()).expect("readable"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4_096) })]

    #[test]
    fn whatever_masters_say_the_machine_keeps_its_word(data in prop::collection::vec(any::<u8>(), 0..300)) {
        lives::live(&data);
    }
}
