#!/bin/sh
# Makes build/venv-mpi4py: a Python environment with mpi4py, whose wheel works with any MPI of both ABI families.
# Does nothing when it is there. Without a network, or without python3-venv, it says so and ends with status 1.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
environment=$root/build/venv-mpi4py

if [ ! -e "$environment/ready" ]; then
    rm -rf "$environment"
    mkdir -p "$root/build"
    python3 -m venv "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: 'mpi4py>=4.1,<5'

    # The wheel looks for MPICH under its ABI name. Debian knows it as libmpich.so.12 only.
    mkdir "$environment/mpich-abi"
    mpich=$(ldconfig -p | sed -n 's/.*libmpich\.so\.12 .*=> //p' | head -n 1)
    if [ -n "$mpich" ]; then
        ln -s "$mpich" "$environment/mpich-abi/libmpi.so.12"
    fi
    touch "$environment/ready"
fi
