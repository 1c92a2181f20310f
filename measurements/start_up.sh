#!/usr/bin/env bash
# What polycast adds to the start of a job and to the memory of a rank, beside the MPI below, after `make build`: jobs by turns with and without it, on this
# node. Seconds from the launcher's start to its end of a job that only begins and ends; MiB of rank 0, resident and proportional, after MPI_Init and after
# 300 broadcasts of 64 KiB and allreduces of 4 bytes. Medians.
# Usage: measurements/start_up.sh [MPI [RANKS [JOBS]]], for example: measurements/start_up.sh mpich 8 11
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
mpi=${1:-openmpi} ranks=${2:-2} jobs=${3:-11}
library=${POLYCAST_LIBDIR:-$root/build/lib/polycast}/libpolycast-mpi.so
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 POLYCAST_CACHE=off
[ -e "$library" ] || { echo "$library does not exist; run \`make build\` first" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"mpicc.$mpi" -std=c17 -O2 -Wall -Wextra "$root/measurements/start_up.c" -o "$folder/start_up"

# launch with|without [calls]: prints the program's line.
launch() {
    local command=("mpiexec.$mpi" -n "$ranks")
    if [ "$mpi" = openmpi ]; then
        command+=(--oversubscribe --mca mpi_yield_when_idle 1 --mca btl_base_warn_component_unused 0)
        [ "$1" = without ] || command+=(-x "LD_PRELOAD=$library")
    else
        [ "$1" = without ] || command+=(-genv LD_PRELOAD "$library")
    fi
    "${command[@]}" "$folder/start_up" "${@:2}"
}

for ((job = 0; job < jobs; job++)); do
    # The order changes: the second process finds a warmer machine.
    if ((job % 2)); then turns="without with"; else turns="with without"; fi
    for turn in $turns; do
        begun=$(date +%s.%N)
        launch "$turn" >/dev/null
        echo "$begun $(date +%s.%N)" | awk '{ print $2 - $1 }' >>"$folder/$turn.seconds"
    done
done
for turn in without with; do
    for ((job = 0; job < 3; job++)); do launch "$turn" calls >>"$folder/$turn.memory"; done
done

# median FILE FIELD
median() {
    cut -d ' ' -f "$2" "$folder/$1" | sort -n |
        awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

printf '%s, %s ranks, %s jobs by turns, load %s; medians\n' "$mpi" "$ranks" "$jobs" "$(cut -d ' ' -f 1 /proc/loadavg)"
printf '%-32s %9s %9s %9s\n' '' without with more
row() {
    echo "$2 $3" | awk -v name="$1" -v by="$4" '{ printf "%-32s %9.3f %9.3f %+9.3f\n", name, $1 / by, $2 / by, ($2 - $1) / by }'
}
row 'job, s' "$(median without.seconds 1)" "$(median with.seconds 1)" 1
field=1
for what in 'resident after MPI_Init, MiB' 'proportional after MPI_Init, MiB' 'resident after calls, MiB' 'proportional after calls, MiB'; do
    row "$what" "$(median without.memory "$field")" "$(median with.memory "$field")" 1024
    field=$((field + 1))
done
