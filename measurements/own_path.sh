#!/bin/sh
# Where the time of polycast's own path goes, counted, after `make build`: see own_path.c. Open MPI's broadcast is its binomial tree.
#   measurements/own_path.sh [HOSTS [RATE [BYTES [CALLS [DELAY_US [SERVED…]]]]]]
# HOSTS core or none: two ranks on this machine, bound to a core each or not at all, with messages through shared memory.
# RATE 10gbit is more than this machine carries, so that links do not limit.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
hosts=${1:-4} rate=${2:-10gbit} bytes=${3:-8192} calls=${4:-400} delay=${5:-300}
[ $# -gt 5 ] && shift 5 || set -- stock binomial
polycast=${TOOL:-${CARGO_TARGET_DIR:-$root/target}/tool/polycast}
program=$(mktemp)
trap 'rm -f "$program"' EXIT
"${MPICC:-mpicc}" -std=c17 -O2 -D_GNU_SOURCE -Wall -Wextra -rdynamic "$root/measurements/own_path.c" -o "$program" -ldl -lm
numbers=
for call in raw_syscalls/sys_enter syscalls/sys_enter_poll syscalls/sys_enter_ppoll syscalls/sys_enter_epoll_wait \
    syscalls/sys_enter_sched_yield syscalls/sys_enter_clock_nanosleep syscalls/sys_enter_writev syscalls/sys_enter_readv \
    syscalls/sys_enter_recvfrom; do
    numbers="$numbers $(cat "/sys/kernel/tracing/events/$call/id" 2>/dev/null || echo 0)"
done
export POLYCAST_LIBDIR="${POLYCAST_LIBDIR:-$root/build/lib/polycast}" POLYCAST_TRIALS=off
case $hosts in
core | none)
    mpirun --allow-run-as-root --bind-to "$hosts" -n 2 -x LD_PRELOAD="$POLYCAST_LIBDIR/libpolycast-mpi.so" -x OWN_PATH_TRACE_POINTS="$numbers" \
        "$program" "$calls" "$delay" "$bytes" "$@"
    exit
    ;;
esac
"$polycast" lab run -n "$hosts" --hosts "$hosts" --rate "$rate" --burst 64KiB --polycast \
    --env "OWN_PATH_TRACE_POINTS=$numbers" --env "OWN_PATH_BURDEN=${OWN_PATH_BURDEN:-}" \
    --mpiexec-args "--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_bcast_algorithm 6" -- \
    "$program" "$calls" "$delay" "$bytes" "$@"
