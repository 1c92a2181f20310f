#!/bin/sh
# The inner loop: formatting, lints, and the tests that need neither an MPI nor a network.
set -eu
cd "$(dirname "$0")/.."
. scripts/suite.sh
# Ranks of fake jobs hand over to each other, so that a processor is free now and then.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$(($(nproc) * 2))}"
# What stands in a module `long` is for `make test`.
suite lint scripts/lint.sh
{
    # shellcheck disable=SC2046
    suite core cargo test --no-fail-fast --locked --workspace $(tests_of crates/polycast-core) -- --skip long::
    # shellcheck disable=SC2046
    suite simulations cargo test --no-fail-fast --locked --workspace $(tests_of crates/polycast-sim crates/polycast-study) -- --skip long::
} &
beside=$!
trap 'kill "$beside" 2>/dev/null || true' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
suite units cargo test --no-fail-fast --workspace --locked --lib --bins -- --skip long::
suite tool cargo test --no-fail-fast --locked --workspace --test tool
wait "$beside"
total
