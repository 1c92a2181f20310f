#!/bin/sh
# The sources of this commit, and those of the crates that they use, as build/polycast-VERSION.tar.gz: they build without a network.
# What is not committed is not in it.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
changed=$(git status --porcelain)
[ -z "$changed" ] || echo "dist: what is not committed is left out" >&2
mkdir -p build
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/polycast-$version
git archive --format=tar --prefix="polycast-$version/" --output="$work/sources.tar" HEAD
time=$(git log -1 --format=%ct)
tar -C "$work" -xf "$work/sources.tar"
mkdir -p "$root/.cargo"
(
    cd "$root"
    cargo vendor --quiet --locked --versioned-dirs vendor
    cat >.cargo/config.toml <<'END'
[source.crates-io]
replace-with = "vendored-sources"

[source.vendored-sources]
directory = "vendor"
END
    # Cargo wants to see every crate of the lock file. Of those that only other systems use, more than half of the bytes, it sees no more
    # than the manifest.
    cargo tree --quiet --locked --workspace --edges all --target x86_64-unknown-linux-gnu --target aarch64-unknown-linux-gnu --prefix none --format '{p}' |
        sed 's/^\([^ ]*\) v\([^ ]*\).*/\1-\2/' | sort -u >../used
    ls vendor | sort | comm -23 - ../used | while read -r unused; do
        sed -i 's/"files":{[^}]*}/"files":{}/' "vendor/$unused/.cargo-checksum.json"
        find "vendor/$unused" -type f ! -path "vendor/$unused/Cargo.toml" ! -name .cargo-checksum.json -delete
        mkdir -p "vendor/$unused/src"
        : >"vendor/$unused/src/lib.rs"
    done
)
tar -C "$work" --sort=name --mtime="@$time" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -c "polycast-$version" | gzip -9n >build/.new
mv build/.new "build/polycast-$version.tar.gz"
echo "dist: build/polycast-$version.tar.gz"
