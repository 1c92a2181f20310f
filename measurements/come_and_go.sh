#!/usr/bin/env bash
# What communicators cost that are made, used for one short broadcast, and freed, with polycast beside the MPI below: jobs of four ranks on
# this node by turns, after `make build`. Microseconds, medians of the jobs: a round, and its parts on rank 0.
# Usage: measurements/come_and_go.sh [MPI [JOBS [ROUNDS [BYTES [KEPT]]]]], for example: measurements/come_and_go.sh mpich 7 2000 4
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
mpi=${1:-openmpi} jobs=${2:-7} rounds=${3:-2000} bytes=${4:-4} kept=${5:-0}
library=${POLYCAST_LIBDIR:-$root/build/lib/polycast}/libpolycast-mpi.so
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
[ -e "$library" ] || { echo "$library does not exist; run \`make build\` first" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"mpicc.$mpi" -std=c17 -O2 -D_GNU_SOURCE -Wall -Wextra "$root/measurements/come_and_go.c" -o "$folder/come_and_go"

# launch with|without: prints the program's line.
launch() {
    local command=("mpiexec.$mpi" -n 4)
    if [ "$mpi" = openmpi ]; then
        command+=(--oversubscribe --mca btl_base_warn_component_unused 0)
        [ "$1" = without ] || command+=(-x "LD_PRELOAD=$library")
    else
        [ "$1" = without ] || command+=(-genv LD_PRELOAD "$library")
    fi
    "${command[@]}" "$folder/come_and_go" "$rounds" "$bytes" "$kept" | grep '^[0-9]'
}

for ((job = 0; job < jobs; job++)); do
    # The order changes: the second process finds a warmer machine.
    if ((job % 2)); then turns="without with"; else turns="with without"; fi
    for turn in $turns; do launch "$turn" >>"$folder/$turn"; done
done

# median with|without FIELD
median() {
    cut -d ' ' -f "$2" "$folder/$1" | sort -n |
        awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

printf '%s, 4 ranks, %s jobs of %s rounds, %s bytes, %s others; median us\n' "$mpi" "$jobs" "$rounds" "$bytes" "$kept"
printf '%-10s %10s %10s %8s\n' '' without with times
field=1
for part in round split broadcast free; do
    echo "$part $(median without "$field") $(median with "$field")" |
        awk '{ printf "%-10s %10.2f %10.2f %8.2f\n", $1, $2, $3, $3 / $2 }'
    field=$((field + 1))
done
