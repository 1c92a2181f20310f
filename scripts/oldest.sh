#!/bin/sh
# Whether the oldest Rust that Cargo.toml promises (rust-version) compiles everything that is installed. It is fetched by rustup if it is missing.
set -eu
cd "$(dirname "$0")/.."
oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
rustup toolchain install "$oldest" --profile minimal
CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/oldest" cargo "+$oldest" check --locked -p polycast-runtime -p polycast-cli
