#!/bin/sh
# Stock MPI beside polycast on an emulated cluster of 16 hosts: an unmodified MPI program, data verified.
set -eu
cd "$(dirname "$0")/.."
results=build/demo.json
rm -f "$results"
echo
echo "16 hosts on one switch with 20 Mb/s links, emulated on this machine with network namespaces."
echo "The wire is what the bytes and their headers need on one link. About three minutes."
echo
target=${CARGO_TARGET_DIR:-target}
"$target/release/polycast" bench --lab hosts=16,rate=20mbit --mpi openmpi --collective bcast \
    --sizes 1KiB..4MiB:4 --variants stock,polycast --time 10s --format summary --json "$results"
echo
echo "All data was verified. The measurements: $results"
echo "The same for your program: target/release/polycast run -n 4 -- ./your-program"
