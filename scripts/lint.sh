#!/bin/sh
# Formatting and lints.
set -eu
cd "$(dirname "$0")/.."
cargo fmt --all -- --check
# shellcheck disable=SC2046
clang-format --dry-run --Werror $(git ls-files '*.c' '*.h')
cargo clippy --workspace --all-targets --locked -- -D warnings
