#!/bin/sh
# Every test. `make test` has built everything and checked formatting and lints before.
set -eu
cd "$(dirname "$0")/.."
cargo test --workspace --locked
