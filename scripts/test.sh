#!/bin/sh
# Every test; `make test` has built everything before. MPI jobs mostly wait, for each other and for late ranks: the lints and
# the pure tests run beside them, and leave them the processors.
set -eu
cd "$(dirname "$0")/.."
. scripts/suite.sh
# A suite that leaves the processors to MPI jobs.
beside() {
    name=$1
    shift
    suite "$name" nice -n 10 "$@"
}
# First what the jobs need, which take longest. The rest is compiled while they run, all at once: cargo compiles for one command at a time.
suite compiling-jobs cargo test --no-run --locked --workspace --test jobs
suite jobs cargo test --no-fail-fast --locked --workspace --test jobs -- --test-threads=4 &
jobs=$!
trap 'kill "$jobs" 2>/dev/null || true' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
while kill -0 "$jobs" 2>/dev/null && ! grep -q Running "$logs/jobs" 2>/dev/null; do sleep 0.1; done
beside compiling cargo test --no-run --locked --workspace --test '*' --lib --bins
beside units cargo test --no-fail-fast --workspace --locked --lib --bins
suite tool cargo test --no-fail-fast --locked --workspace --test tool
# shellcheck disable=SC2046
{
    beside core cargo test --no-fail-fast --locked --workspace $(tests_of crates/polycast-core)
    beside simulations cargo test --no-fail-fast --locked --workspace $(tests_of crates/polycast-sim crates/polycast-study)
    suite network cargo test --no-fail-fast --locked --workspace $(tests_of crates/polycast-net crates/polycast-madcap)
    beside inputs cargo test --no-fail-fast --locked --workspace $(tests_of fuzz/bodies)
}
beside lint scripts/lint.sh
wait "$jobs"
# By itself: like some of the jobs it looks for ranks that hang.
suite soak cargo test --locked --workspace --test soak -- ROUNDS=20
total
