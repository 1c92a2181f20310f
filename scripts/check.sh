#!/bin/sh
# The inner loop: formatting, lints, and the tests that need neither an MPI nor a network.
set -eu
cd "$(dirname "$0")/.."
. scripts/suite.sh
suite lint scripts/lint.sh
suite units cargo test --no-fail-fast --workspace --locked --lib --bins
suite core cargo test --no-fail-fast --locked -p polycast-core --test '*'
suite simulations cargo test --no-fail-fast --locked -p polycast-sim --test '*'
suite tool cargo test --no-fail-fast --locked -p polycast-cli --test tool
total
