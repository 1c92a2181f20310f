#!/bin/sh
# Messages to a rank that waits in a barrier, under the MPI alone and with polycast by turns, after `make build`: see into_waiting.c.
#   measurements/into_waiting.sh [MPI [RANKS [MESSAGES [BYTES [ROUNDS]]]]]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
mpi=${1:-openmpi} ranks=${2:-2} messages=${3:-500} bytes=${4:-1024} rounds=${5:-3}
program=$(mktemp)
trap 'rm -f "$program"' EXIT
"mpicc.$mpi" -std=c17 -O2 -Wall -Wextra "$root/measurements/into_waiting.c" -o "$program"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 POLYCAST_CACHE=off
[ "$mpi" = openmpi ] && more=--oversubscribe || more=
for turn in 1 2 3; do
    # shellcheck disable=SC2086 # none, or one word
    printf 'alone     ' && "mpirun.$mpi" $more -n "$ranks" "$program" "$messages" "$bytes" "$rounds"
    # shellcheck disable=SC2086
    printf 'polycast  ' &&
        "mpirun.$mpi" $more -n "$ranks" env "LD_PRELOAD=$root/build/lib/polycast/libpolycast-mpi.so" "$program" "$messages" "$bytes" "$rounds"
done
