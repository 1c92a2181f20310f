#!/usr/bin/env bash
# How long a job lasts whose rank is killed (kill -9), with polycast and without, after `make build`: from the kill to the launcher's end, of
# jobs of broadcasts and allreduces by turns, a random rank each at a random moment.
#   measurements/killed.sh [MPI [ROUNDS [HOSTS…]]]     for example: measurements/killed.sh mpich 20 1 4; HOSTS 1: four ranks on this machine, more: one on
#                                                 each host of a lab. SEED=N repeats the ranks and the moments.
# Ends with 1 if with polycast the median is more than a second above the MPI's, the longest more than a second and MARGIN_MS (2000: the machine
# may be busy) above the MPI's longest, or a process is left.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
mpi=${1:-openmpi} rounds=${2:-20}
[ $# -gt 2 ] && shift 2 || set -- 1 4
margin_ms=${MARGIN_MS:-2000} seed=${SEED:-$$}
polycast=${TOOL:-${CARGO_TARGET_DIR:-$root/target}/tool/polycast}
export POLYCAST_LIBDIR="${POLYCAST_LIBDIR:-$root/build/lib/polycast}" POLYCAST_CACHE=off
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
make --silent -C "$root/tests/mpi" MPI="$mpi" "$root/build/tests/$mpi/bcast_killed"
folder=$(mktemp -d) lab=
# Its path tells this run's processes from all others.
program=$folder/bcast_killed
cp "$root/build/tests/$mpi/bcast_killed" "$program"
trap '[ -z "$lab" ] || "$polycast" lab down "$lab"; rm -rf "$folder"' EXIT
RANDOM=$seed

ranks() {
    local process
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/exe" 2>/dev/null)" != "$program" ] || echo "${process#/proc/}"
    done
}

now_ms() { date +%s%3N; }

# launch HOSTS STOCK|POLYCAST: a job whose ranks go on for ever.
launch() {
    local arguments=("$program" -1 0 sums)
    if [ "$1" -gt 1 ]; then
        local with=()
        [ "$2" = STOCK ] || with=(--polycast)
        exec timeout 120 "$polycast" lab run --lab "$lab" --mpi "$mpi" -n "$1" "${with[@]}" -- "${arguments[@]}"
    fi
    local library=$POLYCAST_LIBDIR/libpolycast-mpi.so command=("mpiexec.$mpi" -n 4)
    case $mpi-$2 in
    openmpi-STOCK) command+=(--oversubscribe) ;;
    openmpi-*) command+=(--oversubscribe -x "LD_PRELOAD=$library" -x POLYCAST_CACHE) ;;
    *-POLYCAST) command+=(-genv LD_PRELOAD "$library") ;;
    esac
    exec timeout 120 "${command[@]}" "${arguments[@]}"
}

# killed HOSTS STOCK|POLYCAST RANK MOMENT_MS: prints the milliseconds from the kill to the end.
killed() {
    local job expected=$(($1 > 1 ? $1 : 4)) alive killed_at
    launch "$1" "$2" >"$folder/output" 2>&1 &
    job=$!
    until alive=($(ranks)) && [ ${#alive[@]} -ge "$expected" ]; do
        kill -0 "$job" 2>/dev/null || { cat "$folder/output" >&2; echo "the job ended before a rank was killed" >&2; exit 1; }
        sleep 0.02
    done
    sleep "$(printf '%d.%03d' $(($4 / 1000)) $(($4 % 1000)))"
    killed_at=$(now_ms)
    kill -9 "${alive[$3 % ${#alive[@]}]}"
    wait "$job" || true
    echo $(($(now_ms) - killed_at))
    sleep 0.5
    alive=($(ranks))
    [ ${#alive[@]} = 0 ] || { echo "$2: ${#alive[@]} processes are left" >&2; echo left >>"$folder/failed"; kill -9 "${alive[@]}" || true; }
}

# of FILE: median and longest.
of() { sort -n "$1" | awk '{ v[NR] = $1 } END { printf "%d %d\n", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2, v[NR] }'; }

echo "$mpi, $rounds kills each, seed $seed; milliseconds from the kill to the launcher's end"
printf '%-8s %14s %14s %14s %14s\n' hosts 'MPI median' longest 'with polycast' longest
for hosts; do
    if [ "$hosts" -gt 1 ]; then
        lab=killed$$
        "$polycast" lab up "$lab" --hosts "$hosts" --rate 100mbit --burst 4KiB >"$folder/output" 2>&1 ||
            { cat "$folder/output" >&2; exit 1; }
    fi
    for ((round = 1; round <= rounds; round++)); do
        rank=$RANDOM moment=$((RANDOM % 2000))
        if ((round % 2)); then turns="STOCK POLYCAST"; else turns="POLYCAST STOCK"; fi
        for turn in $turns; do killed "$hosts" "$turn" "$rank" "$moment" >>"$folder/$turn$hosts"; done
    done
    [ -z "$lab" ] || { "$polycast" lab down "$lab" >/dev/null; lab=; }
    read -r stock stock_most <<<"$(of "$folder/STOCK$hosts")"
    read -r mine mine_most <<<"$(of "$folder/POLYCAST$hosts")"
    printf '%-8s %14s %14s %14s %14s\n' "$hosts" "$stock" "$stock_most" "$mine" "$mine_most"
    if ((mine > stock + 1000 || mine_most > stock_most + 1000 + margin_ms)); then
        echo "with polycast it takes longer by more than a second" | tee -a "$folder/failed" >&2
    fi
done
[ ! -e "$folder/failed" ]
