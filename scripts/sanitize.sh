#!/bin/sh
# The runtime's tests over the fake door, and its other unit tests, with AddressSanitizer. Stable Rust brings the sanitizer's runtime;
# RUSTC_BOOTSTRAP lets it be asked for. Leaks are no errors: after an error the runtime leaves to MPI what MPI may still read.
set -eu
cd "$(dirname "$0")/.."
host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/sanitizer"
export ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS:-}"
cargo test --locked --target "$host" -p polycast-runtime --lib
