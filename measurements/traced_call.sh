#!/usr/bin/env bash
# What a trace costs: nanoseconds per MPI_Bcast that is left to a library of no cost, with nothing asked for, with a report, and with a trace, which counts like a
# report and records three events (called, chosen, returned), each with a reading of the clock.
# Usage: measurements/traced_call.sh [MPI [ROUNDS [CALLS]]], for example: measurements/traced_call.sh mpich 7 2000000
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
mpi=${1:-openmpi} rounds=${2:-7} calls=${3:-2000000}
library=${POLYCAST_LIBDIR:-$root/build/lib/polycast}/libpolycast-mpi.so
program=$root/build/tests/$mpi/bcast_passthrough
nothing=$root/build/tests/$mpi/nothing.so
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

[ -e "$library" ] || { echo "$library does not exist; run \`make build\` first" >&2; exit 1; }
make --silent -C "$root/tests/mpi" MPI="$mpi" "$program" "$nothing"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# launch WHAT VARIABLE=VALUE: one line of results.
launch() {
    local command=("mpiexec.$mpi" -n 2) setting=(-x "LD_PRELOAD=$library:$nothing" -x "$2")
    if [ "$mpi" = openmpi ]; then
        command+=(--oversubscribe --mca btl_base_warn_component_unused 0)
    else
        setting=(-genv LD_PRELOAD "$library:$nothing" -genv "${2%%=*}" "${2#*=}")
    fi
    "${command[@]}" "${setting[@]}" "$program" "$calls" nothing | sed -n "s/^PASS ranks=2.*world_ns=\([0-9.]*\).*/$1 \1/p"
}

for ((round = 1; round <= rounds; round++)); do
    launch off POLYCAST_REPORT=off
    launch report "POLYCAST_REPORT=$folder/report.json"
    launch trace "POLYCAST_TRACE=$folder/trace"
done >"$folder/results"

median() {
    sed -n "s/^$1 //p" "$folder/results" | sort -n |
        awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}
off=$(median off) report=$(median report) trace=$(median trace)
printf '%s, %s rounds, %s calls; median ns per MPI_Bcast\n' "$mpi" "$rounds" "$calls"
printf '%-12s %8.1f\n' off "$off" report "$report" trace "$trace"
awk -v trace="$trace" -v report="$report" -v off="$off" \
    'BEGIN { printf "%-12s %8.1f (of three; %.1f with what a report costs)\n", "per event", (trace - report) / 3, (trace - off) / 3 }'
