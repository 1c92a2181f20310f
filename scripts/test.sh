#!/bin/sh
# Every test; `make test` has built everything before. MPI jobs mostly wait, for each other and for late ranks: the lints and
# the pure tests run beside them.
set -eu
cd "$(dirname "$0")/.."
. scripts/suite.sh
# By turns: of two that compile at a time one waits for the other, and if that is the jobs, all wait for them at the end.
suite compiling cargo test --no-run --locked -p polycast-cli --test jobs
suite jobs cargo test --no-fail-fast --locked -p polycast-cli --test jobs &
jobs=$!
trap 'kill "$jobs" 2>/dev/null || true' EXIT INT TERM
suite units cargo test --no-fail-fast --workspace --locked --lib --bins
suite tool cargo test --no-fail-fast --locked -p polycast-cli --test tool
suite core cargo test --no-fail-fast --locked -p polycast-core --test '*'
suite simulations cargo test --no-fail-fast --locked -p polycast-sim --test '*'
suite network cargo test --no-fail-fast --locked -p polycast-net -p polycast-madcap --test '*'
suite inputs cargo test --no-fail-fast --locked -p polycast-fuzz-bodies --test '*'
suite lint scripts/lint.sh
wait "$jobs"
# By itself: like some of the jobs it looks for ranks that hang.
suite soak cargo test --locked -p polycast-cli --test soak -- ROUNDS=20
total
