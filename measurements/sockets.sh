#!/bin/sh
# Whether broadcasts lose speed where the process has more than 1,024 connections, where another thread drains MPI's sockets (MPI_Iprobe), and where
# a socket of the program is always readable: by turns within one job in a lab, after `make build`; see sockets.c. Ends with 1 where the loss is
# beyond 5 % beyond its interval. MPICH may hang in MPI_Finalize, when all figures are there: after LIMIT seconds (600) the job is ended, and one line says so.
#   measurements/sockets.sh [HOSTS [RATE [BYTES [ROUNDS [CALLS [FORM]]]]]]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
hosts=${1:-4} rate=${2:-100mbit} bytes=${3:-65536} rounds=${4:-24} calls=${5:-20} form=${6:-chain:segment=8KiB}
polycast=${TOOL:-${CARGO_TARGET_DIR:-$root/target}/tool/polycast}
export POLYCAST_LIBDIR="${POLYCAST_LIBDIR:-$root/build/lib/polycast}"
program=$(mktemp)
trap 'rm -f "$program"' EXIT
"${MPICC:-mpicc}" -std=c17 -O2 -D_GNU_SOURCE -Wall -Wextra -pthread "$root/measurements/sockets.c" -o "$program" -lm
ulimit -n "$(ulimit -H -n)"
status=0
timeout "${LIMIT:-600}" "$polycast" lab run --mpi "${MPI:-openmpi}" -n "$hosts" --hosts "$hosts" --rate "$rate" --burst 4KiB --polycast \
    --env "POLYCAST_BCAST=$form" --env POLYCAST_TRIALS=off -- "$program" "$rounds" "$calls" "$bytes" 1100 || status=$?
if [ "$status" -eq 124 ]; then
    echo "the job was ended after ${LIMIT:-600} s; if all figures are above, it hung in MPI_Finalize, as MPICH over UCX does without polycast, too (docs/decisions/0010-goodbye.md)" >&2
fi
exit "$status"
