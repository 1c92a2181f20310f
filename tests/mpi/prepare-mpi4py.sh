#!/bin/sh
# Makes build/venv-mpi4py/openmpi and build/venv-mpi4py/mpich: Python environments as `pip install mpi4py` leaves them. The wheel
# opens libmpi.so: the system's in the first (Debian's Open MPI), that of `pip install mpich` in the second.
# Does nothing when they are there. Without a network, or without python3-venv, it says so and ends with status 1.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
environments=$root/build/venv-mpi4py

# Tests that run beside each other come here at the same time.
mkdir -p "$environments"
exec 9>"$environments/.lock"
flock 9

# prepare FAMILY PACKAGE…
prepare() {
    environment=$environments/$1
    shift
    [ ! -e "$environment/ready" ] || return 0
    rm -rf "$environment"
    python3 -m venv "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: "$@"
    touch "$environment/ready"
}

prepare openmpi 'mpi4py>=4.1,<5'
prepare mpich 'mpi4py>=4.1,<5' 'mpich>=5,<6'
