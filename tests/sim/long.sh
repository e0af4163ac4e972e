#!/bin/sh
# Ten thousand seeds of the simulation, or as many as are asked for, optimised, on two cores.
#   sh tests/sim/long.sh [SEEDS]
# A seed that fails prints its story, and the command that tells it again.
set -eu
cd "$(dirname "$0")/../.."
QUORLOCK_SIM_SEEDS="${1:-10000}" exec cargo test --release --no-default-features --features memory --test sim -- \
    --nocapture --test-threads 2 whatever
