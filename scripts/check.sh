#!/bin/sh
# The inner loop: formatting, lints, and the tests that need neither an MPI nor a network.
set -eu
cd "$(dirname "$0")/.."
. scripts/suite.sh
# What stands in a module `long` is for `make test`.
suite lint scripts/lint.sh
{
    suite core cargo test --no-fail-fast --locked -p polycast-core --test '*' -- --skip long::
    suite simulations cargo test --no-fail-fast --locked -p polycast-sim --test '*' -- --skip long::
    suite tool cargo test --no-fail-fast --locked -p polycast-cli --test tool
} &
beside=$!
trap 'kill "$beside" 2>/dev/null || true' EXIT INT TERM
suite units cargo test --no-fail-fast --workspace --locked --lib --bins -- --skip long::
wait "$beside"
total
