#!/bin/sh
# What this process does for one cycle of acquire and release, counted by valgrind, and not changed by a noisy machine: instructions,
# and bytes and blocks of heap.
#   sh benches/instructions.sh [ARM…]        (arms as in `cargo bench --bench acquire -- --help`; quorlock and fred unless given)
# Two runs of different length; their difference leaves out starting, connecting and warming up.
# Where the bytes come from: `valgrind --tool=dhat PROGRAM --only A --blocks 1 --filter quorlock --cycles 300`, and dh_view.html.
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

count() { # TOOL ARM WORKLOAD CYCLES → what is left of the tool's own words: instructions, or bytes and blocks
    valgrind --tool="$1" "--$1-out-file=$work/out" --log-file="$work/log" \
        "$program" --only "$3" --blocks 1 --filter "$2" --cycles "$4" >/dev/null || { cat "$work/log" >&2; exit 1; }
    sed -n 's/,//g; s/.*Collected : \([0-9]*\).*/\1/p; s/.*Total: *\([0-9]*\) bytes in \([0-9]*\) blocks.*/\1 \2/p' "$work/log"
}

each() { # WORKLOAD ARM TASKS FEW MANY RUNS
    for tool in callgrind dhat; do
        few=$(count $tool "$2" "$1" "$4")
        many=$(count $tool "$2" "$1" "$5")
        echo "$few $many" | awk -v cycles=$(($3 * $6 * ($5 - $4))) '
            NF == 2 { printf "%d instructions", ($2 - $1) / cycles; next }
            NF == 4 { printf ", %.1f KB in %.1f blocks\n", ($3 - $1) / cycles / 1000, ($4 - $2) / cycles; next }
            { print "valgrind said something else: " $0; exit 1 }'
    done
}

for arm; do
    # A block is each slice twice. One task warms up as many cycles, 64 tasks one cycle each.
    printf '%s, one task: ' "$arm"
    each A "$arm" 1 200 600 3
    printf '%s, 64 tasks: ' "$arm"
    each B "$arm" 64 8 40 2
done
