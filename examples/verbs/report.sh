#!/bin/sh
# What is worth telling about a run over InfiniBand or RoCE, in one file: versions, devices, their counters before and after, the
# doctor's findings, and short benchmarks over verbs, by IP multicast and without. It changes nothing, and takes two minutes.
#   sh report.sh HOST,HOST,… [FILE]
set -u
hosts=${1:?expected the hosts, with commas}
file=${2:-polycast-verbs.txt}
counters() {
    for counter in /sys/class/infiniband/*/ports/*/counters/* /sys/class/infiniband/*/ports/*/hw_counters/*; do
        [ ! -r "$counter" ] || echo "${counter#/sys/class/infiniband/} $(cat "$counter" 2>/dev/null)"
    done
}
# COMMAND…: its words and what it says, whatever becomes of it.
tell() {
    echo
    echo "== $*"
    "$@" 2>&1 || echo "(ended with $?)"
}
{
    echo "polycast over verbs, $(date -u +%Y-%m-%dT%H:%M:%SZ)"
    tell uname -srm
    tell polycast info
    tell ibv_devinfo -v
    tell rdma link
    tell sh -c 'ulimit -l'
    tell polycast doctor --hosts "$hosts"
    tell counters
    for multicast in verbs ipv4 off; do
        tell env POLYCAST_MULTICAST=$multicast POLYCAST_REPORT=1 \
            polycast bench --hosts "$hosts" --variants stock,multicast-pull,table --sizes 8,2KiB,64KiB,4MiB --time 10s
    done
    tell counters
} >"$file"
echo "written to $file: please look through it, and attach it to an issue"
