#!/bin/sh
# Nanoseconds that a served broadcast of 8 KiB takes of polycast's own, after `make build`: see served_call.c.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
library=${POLYCAST_LIBDIR:-$root/build/lib/polycast}
[ -e "$library/libpolycast.so" ] || { echo "$library/libpolycast.so does not exist; run \`make build\` first" >&2; exit 1; }
program=$(mktemp)
trap 'rm -f "$program"' EXIT
"${CC:-cc}" -std=c17 -O2 -D_GNU_SOURCE -Wall -Wextra -I"$root/include" "$root/measurements/served_call.c" -L"$library" -lpolycast -Wl,-rpath,"$library" -o "$program"
"$program"
