#!/bin/sh
# Whether multicast would gain as the second half of allgather and allreduce and as a barrier's release, after `make build`: see
# second_half.c and docs/decisions/0063-the-second-half.md.
#   measurements/second_half.sh [HOSTS [RATE [RANKS_PER_HOST [ROUNDS [BYTES…]]]]]
# Middle and quarters of ROUNDS rounds on the hosts of a lab, with polycast's own choices beside broadcasts by multicast.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
hosts=${1:-16} rate=${2:-100mbit} per_host=${3:-1} rounds=${4:-21}
[ $# -gt 4 ] && shift 4 || set -- 1024 8192 65536 1048576
case $rate in *gbit) burst=64KiB ;; *) burst=4KiB ;; esac
program=$(mktemp)
trap 'rm -f "$program"' EXIT
"${MPICC:-mpicc.openmpi}" -std=c17 -O2 -Wall -Wextra "$root/measurements/second_half.c" -o "$program"
"${TOOL:-${CARGO_TARGET_DIR:-$root/target}/tool/polycast}" lab run --polycast -n "$((hosts * per_host))" --ranks-per-host "$per_host" \
    --hosts "$hosts" --rate "$rate" --burst "$burst" --mpi "${MPI:-openmpi}" --env POLYCAST_TRIALS=off --env POLYCAST_CACHE=off \
    --env "POLYCAST_BCAST=${WAY:-multicast-pull}" -- "$program" "$rounds" "$@"
