#!/bin/sh
# Stock MPI beside polycast on emulated clusters of 16 hosts: an unmodified MPI program, data verified.
set -eu
cd "$(dirname "$0")/.."
# Which the tool does not find from a target folder elsewhere.
export POLYCAST_LIBDIR="${POLYCAST_LIBDIR:-$PWD/build/lib/polycast}"
target=${CARGO_TARGET_DIR:-target}
polycast=$target/tool/polycast
trees=build/demo-trees.json
multicast=build/demo-multicast.json
traces=build/demo-traces
page=build/demo.html
# Where MPICH alone was found, its door is.
mpi=mpich
[ ! -e "$POLYCAST_LIBDIR/doors/polycast-door-openmpi.so" ] || mpi=openmpi
rm -f "$trees" "$multicast"

echo
echo "Two clusters of 16 hosts on one switch, emulated on this machine with network namespaces. The wire is what the"
echo "bytes and their headers need on one link. The links are as fast as this machine carries all of them at once, which is"
echo "measured first. Some minutes."
echo
echo "1. A network without multicast: pipelined trees."
echo
"$polycast" bench --lab hosts=16 --mpi "$mpi" --collective bcast --env POLYCAST_MULTICAST=off \
    --sizes 1KiB..4MiB:4 --variants stock,polycast --time 7s --format summary --json "$trees" --svg build/demo-trees.svg
echo
echo "A message is cut into segments, and each host sends on what it has while more arrives."
echo
echo "2. A network with multicast, whose links pass 64 KiB at once, so that the machine has less to do and they can be faster."
echo
"$polycast" bench --lab hosts=16,burst=64KiB --mpi "$mpi" --collective bcast \
    --sizes 1MiB,4MiB,16MiB --variants stock,polycast,blast --time 8s --format summary --json "$multicast" --svg build/demo-multicast.svg
echo
echo "The root sends every byte once and the switch copies it; what is lost on the way is repaired. A blast, which loses it,"
echo "is what the network can do at best: x blast says how near polycast comes."
echo
echo "3. Where the time goes: broadcasts that 16 ranks record, on the second network."
echo
rm -rf "$traces"
"$polycast" bench --lab hosts=16,burst=64KiB --mpi "$mpi" --collective bcast --sizes 1MiB --variants stock,polycast --time 1s \
    --env POLYCAST_TRACE="$PWD/$traces" --format summary
"$polycast" report "$traces" "$trees" "$multicast" -o "$page" >/dev/null
echo
echo "All data was verified. The measurements: $trees, $multicast; pictures beside them (.svg)"
echo "The same for your program: $polycast run -n 4 -- ./your-program"
echo "All of it on one page, with who waited for whom: $PWD/$page"
