#!/bin/sh
# What a whole job of 200 broadcasts each of twelve sizes takes with polycast, trials and all, beside the MPI below: jobs by turns, after
# `make build`. Prints the seconds of each and the ratio of the medians.
#   measurements/whole_job.sh [HOSTS [RATE [JOBS [CALLS]]]]     RATE as `polycast lab run --rate` takes it; 10gbit is more than this machine carries
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
hosts=${1:-4} rate=${2:-10gbit} jobs=${3:-5} calls=${4:-200}
polycast=${TOOL:-${CARGO_TARGET_DIR:-$root/target}/tool/polycast}
export POLYCAST_LIBDIR="${POLYCAST_LIBDIR:-$root/build/lib/polycast}"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${MPICC:-mpicc}" -std=c17 -O2 -Wall -Wextra "$root/measurements/whole_job.c" -o "$folder/whole_job"
set -- lab run -n "$hosts" --hosts "$hosts" --rate "$rate" --burst 64KiB
for job in $(seq "$jobs"); do
    "$polycast" "$@" -- "$folder/whole_job" "$calls" | grep '^[0-9]' >>"$folder/stock"
    "$polycast" "$@" --polycast --env POLYCAST_CACHE=off -- "$folder/whole_job" "$calls" | grep '^[0-9]' >>"$folder/polycast"
    echo "job $job: stock $(tail -1 "$folder/stock") s, polycast $(tail -1 "$folder/polycast") s"
done
median() { sort -n "$1" | awk '{ times[NR] = $1 } END { print (times[int((NR + 1) / 2)] + times[int(NR / 2) + 1]) / 2 }'; }
echo "$(median "$folder/stock") $(median "$folder/polycast")" |
    awk '{ printf "medians: stock %s s, polycast %s s: %.2f times the speed of stock\n", $1, $2, $1 / $2 }'
