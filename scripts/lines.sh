#!/bin/sh
# Lines of production code at a commit, room by room: comments count; blank lines and tests do not.
#   scripts/lines.sh [COMMIT]
set -eu
cd "$(dirname "$0")/.."
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
git archive "${1:-HEAD}" | tar -x -C "$tree"
cd "$tree"
# Tests are files of their own, or what follows `#[cfg(test)]` and a `mod` in the next line.
find crates/*/src crates/*/build.rs doors include bench -type f \( -name '*.rs' -o -name '*.[ch]' \) \
    ! -name '*tests.rs' ! -name testing.rs ! -path '*/fake_door/*' -print0 | sort -z | xargs -0 awk '
    FNR == 1 {
        in_tests = after_test = 0
        split(FILENAME, folders, "/")
        room = folders[1] ~ /crates|doors/ ? folders[1] "/" folders[2] : folders[1]
    }
    after_test && /^(pub(\(.*\))? )?mod / { in_tests = 1; lines[room]-- }
    { after_test = /^#\[cfg\(test\)\]$/ }
    NF && !in_tests { lines[room]++ }
    END {
        for (room in lines) {
            printf "%-26s %6d\n", room, lines[room] | "sort"
            total += lines[room]
        }
        close("sort")
        printf "%-26s %6d\n", "total", total
    }'
