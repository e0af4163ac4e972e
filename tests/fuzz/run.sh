#!/bin/sh
# Searches with each fuzz target for a while: sh tests/fuzz/run.sh [SECONDS [TARGET...]]
# Needs cargo-fuzz (cargo install cargo-fuzz) and a C++ compiler. What is found lies in tests/fuzz/artifacts; `cargo fuzz cmin`
# keeps the corpus small. Without a nightly toolchain the stable one does: there is no unsafe code for a sanitizer to watch.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- replies urls lives settings
export RUSTC_BOOTSTRAP=1
for target in "$@"; do
    printf '== %s, %s s\n' "$target" "$seconds"
    # What it learns on the way stays outside of the corpus that is kept.
    learned=$(mktemp -d)
    trap 'rm -rf "$learned"' EXIT
    cargo fuzz run --fuzz-dir tests/fuzz --sanitizer none --release "$target" "$learned" "tests/fuzz/corpus/$target" -- \
        -max_total_time="$seconds" -max_len=512 -print_final_stats=1 -verbosity=0
    rm -rf "$learned"
done
