#!/bin/sh
# Instructions of this process for one cycle of acquire and release, counted by valgrind: what a noisy machine does not change.
#   sh benches/instructions.sh [ARM…]        (arms as in `cargo bench --bench acquire -- --help`; quorlock and fred unless given)
# Two runs of different length; their difference leaves out starting, connecting and warming up.
set -eu
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || { echo 'no valgrind in PATH: install it first' >&2; exit 1; }
[ $# -gt 0 ] || set -- quorlock fred

# rustix reads the clock past libc, from a page that valgrind hides.
export RUSTFLAGS="${RUSTFLAGS:-} --cfg=rustix_use_libc" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/instructions"
program=$(cargo bench -q --features testbed,peers --bench acquire --no-run --message-format json |
    sed -n 's/.*"name":"acquire".*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
[ -n "$program" ] || { echo 'cargo named no program' >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

instructions() { # ARM CYCLES
    valgrind --tool=callgrind --callgrind-out-file="$work/out" --log-file="$work/log" \
        "$program" --only A --blocks 1 --filter "$1" --cycles "$2" >/dev/null
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$work/log"
}

few=200 many=600
for arm; do
    first=$(instructions "$arm" "$few")
    second=$(instructions "$arm" "$many")
    # Warming up is as many cycles, and a block is each slice twice.
    echo "$arm: $(((second - first) / (3 * (many - few)))) instructions a cycle"
done
