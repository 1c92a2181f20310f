#!/bin/sh
# Formatting, lints, and the tests that need neither an MPI nor a network.
set -eu
cd "$(dirname "$0")/.."
cargo fmt --all -- --check
# shellcheck disable=SC2046
clang-format --dry-run --Werror $(git ls-files '*.c' '*.h')
cargo clippy --workspace --all-targets --locked -- -D warnings
cargo test --workspace --locked --lib --bins
