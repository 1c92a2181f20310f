#!/bin/sh
# The sources of this commit as build/polycast-VERSION.tar.gz. What is not committed is not in it.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
changed=$(git status --porcelain)
[ -z "$changed" ] || echo "dist: what is not committed is left out" >&2
mkdir -p build
git archive --format=tar --prefix="polycast-$version/" --output="build/polycast-$version.tar" HEAD
gzip -9nf "build/polycast-$version.tar"
echo "dist: build/polycast-$version.tar.gz"
