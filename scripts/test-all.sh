#!/bin/sh
# What takes too long, or needs too much, for `make test`: the tests that are marked with "make test-all", and the documentation.
set -eu
cd "$(dirname "$0")/.."
. scripts/suite.sh
suite documentation env RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps -p polycast-units -p polycast-protocol -p polycast-core -p polycast-sim -p polycast-study -p polycast-lab
suite sanitizer scripts/sanitize.sh
suite oldest scripts/oldest.sh
suite loom scripts/loom.sh
suite fake-door env FAKE_DOOR_SEEDS=1000 cargo test --locked --workspace --lib fake_door
suite examples cargo test --workspace --locked --doc
suite portable make --no-print-directory wheel archive
suite ignored cargo test --workspace --locked --no-fail-fast -- --ignored
total
