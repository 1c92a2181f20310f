#!/bin/sh
# The sources of this commit as build/polycast-VERSION.tar.gz. What is not committed is not in it.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
[ -z "$(git status --porcelain)" ] || echo "dist: what is not committed is left out" >&2
mkdir -p build
git archive --format=tar --prefix="polycast-$version/" HEAD | gzip -9n >"build/polycast-$version.tar.gz"
echo "dist: build/polycast-$version.tar.gz"
