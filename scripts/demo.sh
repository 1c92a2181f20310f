#!/bin/sh
# Stock MPI beside polycast on emulated clusters of 16 hosts: an unmodified MPI program, data verified.
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
polycast=$target/release/polycast
trees=build/demo-trees.json
multicast=build/demo-multicast.json
rm -f "$trees" "$multicast"

echo
echo "Two clusters of 16 hosts on one switch, emulated on this machine with network namespaces. The wire is what the"
echo "bytes and their headers need on one link. About four minutes."
echo
echo "1. Links of 20 Mb/s, a network without multicast: pipelined trees."
echo
"$polycast" bench --lab hosts=16,rate=20mbit --mpi openmpi --collective bcast --env POLYCAST_MULTICAST=off \
    --sizes 1KiB..4MiB:4 --variants stock,polycast --time 7s --format summary --json "$trees"
echo
echo "A message is cut into segments, and each host sends on what it has while more arrives."
echo
echo "2. Links of 1 Gb/s, a network with multicast."
echo
"$polycast" bench --lab hosts=16,rate=1gbit,burst=64KiB --mpi openmpi --collective bcast \
    --sizes 1MiB,4MiB,16MiB --variants stock,polycast,blast --time 8s --format summary --json "$multicast"
echo
echo "The root sends every byte once and the switch copies it; what is lost on the way is repaired. A blast loses it."
echo
echo "All data was verified. The measurements: $trees, $multicast"
echo "The same for your program: $polycast run -n 4 -- ./your-program"
