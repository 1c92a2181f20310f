#!/usr/bin/env bash
# What communicators cost that are made, used for one short call, and freed, with polycast beside the MPI below: jobs of RANKS (4) ranks on
# this node by turns, after `make build`. Microseconds, medians of the jobs: a round, and its parts on rank 0. "first": served from the first call
# on, by the built-in table without its `earlier_calls`.
# Usage: measurements/come_and_go.sh [MPI [JOBS [ROUNDS [BYTES [KEPT [MAKE [CALL]]]]]]], for example: measurements/come_and_go.sh mpich 7 2000 4,
#     RANKS=2 measurements/come_and_go.sh openmpi 7 2000 8 0 split allreduce, measurements/come_and_go.sh openmpi 7 2000 8 0 dup bcast
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
mpi=${1:-openmpi} jobs=${2:-7} rounds=${3:-2000} bytes=${4:-4} kept=${5:-0} make=${6:-split} call=${7:-bcast}
ranks=${RANKS:-4}
library=${POLYCAST_LIBDIR:-$root/build/lib/polycast}/libpolycast-mpi.so
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
[ -e "$library" ] || { echo "$library does not exist; run \`make build\` first" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"mpicc.$mpi" -std=c17 -O2 -D_GNU_SOURCE -Wall -Wextra "$root/measurements/come_and_go.c" -o "$folder/come_and_go"

grep -v '^earlier_calls' "$root/tuning/default.toml" >"$folder/first.toml"

# launch with|without|first: prints the program's line.
launch() {
    local command=("mpiexec.$mpi" -n "$ranks")
    if [ "$mpi" = openmpi ]; then
        command+=(--oversubscribe --mca btl_base_warn_component_unused 0)
        [ "$1" = without ] || command+=(-x "LD_PRELOAD=$library")
        [ "$1" != first ] || command+=(-x "POLYCAST_TABLE=$folder/first.toml")
    else
        [ "$1" = without ] || command+=(-genv LD_PRELOAD "$library")
        [ "$1" != first ] || command+=(-genv POLYCAST_TABLE "$folder/first.toml")
    fi
    "${command[@]}" "$folder/come_and_go" "$rounds" "$bytes" "$kept" "$make" "$call" | grep '^[0-9]'
}

for ((job = 0; job < jobs; job++)); do
    # The order changes: the second process finds a warmer machine.
    if ((job % 2)); then turns="without with first"; else turns="first with without"; fi
    for turn in $turns; do launch "$turn" >>"$folder/$turn"; done
done

# median with|without|first FIELD
median() {
    cut -d ' ' -f "$2" "$folder/$1" | sort -n |
        awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

printf '%s, %s ranks, %s jobs of %s rounds, %s bytes, %s others; median us\n' "$mpi" "$ranks" "$jobs" "$rounds" "$bytes" "$kept"
printf '%-10s %10s %10s %8s %10s %8s\n' '' without with times first times
field=1
for part in round "$make" "$call" free; do
    echo "$part $(median without "$field") $(median with "$field") $(median first "$field")" |
        awk '{ printf "%-10s %10.2f %10.2f %8.2f %10.2f %8.2f\n", $1, $2, $3, $3 / $2, $4, $4 / $2 }'
    field=$((field + 1))
done
