#!/bin/sh
# Every test. `make test` has built everything before.
set -eu
cd "$(dirname "$0")/.."
cargo fmt --all -- --check
# shellcheck disable=SC2046
clang-format --dry-run --Werror $(git ls-files '*.c' '*.h')
cargo clippy --workspace --all-targets --locked -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps -p polycast-core -p polycast-sim -p polycast-lab
cargo test --workspace --locked
