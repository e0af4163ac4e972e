#!/bin/sh
# The rows of the model and the mutants that take longer than CI has time for, optimised: some minutes on two cores.
#   sh tests/model/long.sh [NAME…]
set -eu
cd "$(dirname "$0")/../.."
exec cargo test --no-fail-fast --release --no-default-features --features mutants --test model --test mutants -- \
    --ignored --nocapture --test-threads 2 "$@"
