#!/bin/sh
# Formatting and lints.
set -eu
cd "$(dirname "$0")/.."
cargo fmt --all -- --check
# Files that a macro declares, which cargo fmt does not see.
rustfmt --edition 2024 --check crates/polycast-core/src/algorithm/*/*.rs crates/polycast-runtime/src/operation/*.rs
# Not git's list, for what `make dist` packs is no checkout.
find bench crates doors examples include measurements packaging tests -name '*.[ch]' -exec clang-format --dry-run --Werror {} +
cargo clippy --workspace --all-targets --locked -- -D warnings
# The jobs compile the programs of tests/mpi; nothing but a person runs the benchmarks.
mpicc.openmpi -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only -Iinclude measurements/*.c
