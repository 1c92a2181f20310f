#!/bin/sh
# The inner loop: formatting, lints, and the tests that need neither an MPI nor a network.
set -eu
cd "$(dirname "$0")/.."
. scripts/suite.sh
# What stands in a module `long` is for `make test`.
suite lint scripts/lint.sh
{
    # shellcheck disable=SC2046
    suite core cargo test --no-fail-fast --locked --workspace $(tests_of polycast-core) -- --skip long::
    # shellcheck disable=SC2046
    suite simulations cargo test --no-fail-fast --locked --workspace $(tests_of polycast-sim) -- --skip long::
    suite tool cargo test --no-fail-fast --locked --workspace --test tool
} &
beside=$!
trap 'kill "$beside" 2>/dev/null || true' EXIT INT TERM
suite units cargo test --no-fail-fast --workspace --locked --lib --bins -- --skip long::
wait "$beside"
total
