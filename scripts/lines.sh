#!/bin/sh
# Lines of production code at a commit, room by room: comments count; blank lines and tests do not.
#   scripts/lines.sh [COMMIT]
set -eu
cd "$(dirname "$0")/.."
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
git archive "${1:-HEAD}" | tar -x -C "$tree"
cd "$tree"
# Tests are modules behind #[cfg(test)]: the rest of the file, or a file or folder of their own.
find crates/*/src crates/*/build.rs doors include bench -type f \( -name '*.rs' -o -name '*.[ch]' \) \
    ! -name '*tests.rs' -print0 | sort -z | xargs -0 awk '
    FNR == 1 { in_tests = is_for_tests = 0 }
    is_for_tests && /^(pub(\(.*\))? )?mod .*\{/ { in_tests = 1; lines[FILENAME]-- }
    is_for_tests && /^(pub(\(.*\))? )?mod .*;/ {
        folder = FILENAME
        if (!sub("/(mod|lib|main)\\.rs$", "", folder)) sub("\\.rs$", "", folder)
        name = $NF
        sub(";", "", name)
        tests[folder "/" name ".rs"] = tests[folder "/" name] = 1
        lines[FILENAME] -= 2
    }
    { is_for_tests = /^#\[cfg\((test|all\(test.*)\)\]$/ }
    NF && !in_tests { lines[FILENAME]++ }
    END {
        for (file in lines) {
            count = split(file, folders, "/")
            path = folders[1]
            room = path ~ /crates|doors/ ? path "/" folders[2] : path
            for (at = 2; at <= count && !(path in tests); at++) path = path "/" folders[at]
            if (path in tests) continue
            of_room[room] += lines[file]
            total += lines[file]
        }
        for (room in of_room) printf "%-32s %6d\n", room, of_room[room] | "sort"
        close("sort")
        printf "%-32s %6d\n", "total", total
    }'
