#!/bin/sh
# How much of an MPI_Ibcast is hidden behind computation, by Open MPI and by polycast's component of it, after `make build`: see overlap.c.
#   measurements/overlap.sh [HOSTS [RATE [BYTES [ROUNDS [SLICES [WAY…]]]]]]
# Middle and quarters of ROUNDS rounds on the hosts of a lab.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
hosts=${1:-4} rate=${2:-1gbit} bytes=${3:-1048576} rounds=${4:-40} slices=${5:-8}
[ $# -gt 5 ] && shift 5 || set -- stock chain:segment=32KiB multicast-pull
library=${POLYCAST_LIBDIR:-$root/build/lib/polycast}
program=$(mktemp)
trap 'rm -f "$program"' EXIT
"${MPICC:-mpicc.openmpi}" -std=c17 -O2 -D_GNU_SOURCE -Wall -Wextra "$root/measurements/overlap.c" -o "$program" -ldl
uptime
"${TOOL:-${CARGO_TARGET_DIR:-$root/target}/tool/polycast}" lab run -n "$hosts" --hosts "$hosts" --rate "$rate" --burst 64KiB --mpi openmpi \
    --env "OMPI_MCA_mca_base_component_path=SYS_DEFAULT:$library/openmpi" --env POLYCAST_TRIALS=off \
    -- "$program" "$bytes" "$rounds" "$slices" "$@"
