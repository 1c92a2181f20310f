#!/usr/bin/env bash
# What polycast adds to a call that it leaves to the MPI library: nanoseconds per MPI_Bcast with and without it.
# Usage: measurements/passthrough.sh [MPI [ROUNDS [CALLS]]], for example: measurements/passthrough.sh mpich 7 5000000
# Processes with and without polycast take turns, so that a drift of the machine meets both; medians are compared.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
mpi=${1:-openmpi} rounds=${2:-7} calls=${3:-5000000}
library=${POLYCAST_LIBDIR:-$root/build/lib/polycast}/libpolycast-mpi.so
program=$root/build/tests/$mpi/bcast_passthrough
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

[ -e "$library" ] || { echo "$library does not exist; run \`make build\` first" >&2; exit 1; }
nothing=$root/build/tests/$mpi/nothing.so
make --silent -C "$root/tests/mpi" MPI="$mpi" "$program" "$nothing"

# launch RANKS WITH|WITHOUT: prints the program's line. Broadcasts on the whole world are left to stock, too.
launch() {
    local command=("mpiexec.$mpi" -n "$1")
    if [ "$mpi" = openmpi ]; then
        command+=(--oversubscribe --mca btl_base_warn_component_unused 0)
        [ "$2" = WITHOUT ] || command+=(-x "LD_PRELOAD=$library" -x POLYCAST_BCAST=stock)
    else
        [ "$2" = WITHOUT ] || command+=(-genv LD_PRELOAD "$library" -genv POLYCAST_BCAST stock)
    fi
    "${command[@]}" "$program" "$calls" | sed -n "s/^PASS /$2 /p"
}

# The same on two ranks by the table, with a library behind polycast whose MPI_Bcast does nothing: all that polycast does
# for a communicator that it knows is in the difference.
launch_with_nothing() {
    local preload=$nothing
    [ "$1" = WITHOUT ] || preload=$library:$nothing
    local command=("mpiexec.$mpi" -n 2)
    if [ "$mpi" = openmpi ]; then
        command+=(--oversubscribe --mca btl_base_warn_component_unused 0 -x "LD_PRELOAD=$preload")
    else
        command+=(-genv LD_PRELOAD "$preload")
    fi
    "${command[@]}" "$program" "$calls" nothing | sed -n "s/^PASS ranks=2/$1 ranks=nothing/p"
}

results=$(mktemp)
trap 'rm -f "$results"' EXIT
for ((round = 1; round <= rounds; round++)); do
    for ranks in 1 2; do
        # The order changes from round to round: the second process finds a warmer machine.
        if ((round % 2)); then turns="WITHOUT WITH"; else turns="WITH WITHOUT"; fi
        for turn in $turns; do launch "$ranks" "$turn" >>"$results"; done
    done
    for turn in $turns; do launch_with_nothing "$turn" >>"$results"; done
done

# median RANKS WITH|WITHOUT FIELD
median() {
    sed -n "s/^$2 ranks=$1 .*$3=\([0-9.]*\).*/\1/p" "$results" | sort -n |
        awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

printf '%s, %s rounds, %s calls; median ns per MPI_Bcast\n' "$mpi" "$rounds" "$calls"
printf '%-42s %10s %10s %10s\n' call without with added
row() {
    local without with
    without=$(median "$2" WITHOUT "$3")
    with=$(median "$2" WITH "$3")
    printf '%-42s %10.1f %10.1f %10.1f\n' "$1" "$without" "$with" "$(echo "$with $without" | awk '{ print $1 - $2 }')"
}
row '4 bytes, MPI_COMM_SELF' 1 self_ns
row '4 bytes, MPI_COMM_WORLD of 1 rank' 1 world_ns
row '0 bytes, MPI_COMM_WORLD of 1 rank' 1 empty_ns
row '0 bytes, MPI_COMM_WORLD of 2 ranks' 2 empty_ns
row '4 bytes, 2 ranks, a library of no cost' nothing world_ns
row '4 bytes, other memory was used before' nothing cold_ns
row '16 KiB, found to be faster by stock' nothing stays_ns
row '16 KiB, the same, other memory was used' nothing stays_cold_ns
