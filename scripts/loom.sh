#!/bin/sh
# Shared memory in every order that loom finds within its bound on preemptions: no reader before a place is filled, no writer over what is
# not read, nothing of either when numbers wrap around. Takes half a minute, and as long to compile.
set -eu
cd "$(dirname "$0")/.."
export RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom"
cargo test --locked --release -p polycast-shm --lib every_order
