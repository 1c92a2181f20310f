#!/bin/sh
# Multicast over verbs beside UDP, after `make build` where libibverbs and librdmacm have their headers. First what a datagram costs against a
# device that takes no time (tests/verbs, `null`), and its tag; then 4 MiB to the hosts of a lab over the emulation, in jobs by turns.
#   measurements/verbs.sh [HOSTS [RATE [JOBS [CALLS]]]]     HOSTS 0: only the first
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
hosts=${1:-16} rate=${2:-1gbit} jobs=${3:-5} calls=${4:-15}
polycast=${TOOL:-${CARGO_TARGET_DIR:-$root/target}/tool/polycast}
export POLYCAST_LIBDIR="${POLYCAST_LIBDIR:-$root/build/lib/polycast}"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$root/tests/verbs/build.sh" "$folder"
for bytes in 1024 2048 4096; do
    "$folder/exercise" null $bytes
done
cargo run --quiet --release --locked --manifest-path "$root/Cargo.toml" -p polycast-protocol --example datagram_cost
[ "$hosts" -gt 0 ] || exit 0
"${MPICC:-mpicc}" -std=c17 -O2 -Wall -Wextra "$root/measurements/verbs.c" -o "$folder/program"
# FORM: the median of a job, in milliseconds.
job() {
    "$polycast" lab run -n "$hosts" --hosts "$hosts" --rate "$rate" --burst 64KiB --env POLYCAST_BCAST=multicast-pull --env POLYCAST_CACHE=off \
        --env POLYCAST_MULTICAST="$1" --env POLYCAST_REPORT=1 \
        --env LD_PRELOAD="$folder/libibverbs.so.1:$folder/librdmacm.so.1:$POLYCAST_LIBDIR/libpolycast-mpi.so" \
        -- "$folder/program" 4194304 "$calls" 2>"$folder/said" | grep '^[0-9]' >>"$folder/$1"
    grep -q " verbs=$2 " "$folder/said" || { cat "$folder/said" >&2; exit 1; }
}
for number in $(seq "$jobs"); do
    job ipv4 0
    job verbs "$hosts"
    echo "job $number: ipv4 $(tail -1 "$folder/ipv4") ms, verbs $(tail -1 "$folder/verbs") ms"
done
median() { sort -n "$1" | awk '{ times[NR] = $1 } END { print (times[int((NR + 1) / 2)] + times[int(NR / 2) + 1]) / 2 }'; }
echo "$(median "$folder/ipv4") $(median "$folder/verbs")" |
    awk '{ printf "medians: ipv4 %s ms, verbs %s ms: %.2f times as long\n", $1, $2, $2 / $1 }'
