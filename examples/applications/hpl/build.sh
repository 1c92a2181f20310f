#!/bin/sh
# Builds HPL with MPI_Bcast as a seventh broadcast, of the sources of Debian's hpcc: examples/applications/hpl/build.sh FOLDER [MPICC]
# The sources are fetched as the machine's own list of packages says; FOLDER/xhpl and its input hpccinf.txt are made. It needs a BLAS (libblas-dev).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
mpicc=${2:-mpicc}
lists=$folder/lists
mkdir -p "$lists/parts" "$lists/state/partial"
: >"$lists/sources.list"
# The same places, asked for sources.
[ ! -e /etc/apt/sources.list ] || sed 's/^deb /deb-src /' /etc/apt/sources.list >"$lists/sources.list"
for file in /etc/apt/sources.list.d/*.list; do
    [ ! -e "$file" ] || sed 's/^deb /deb-src /' "$file" >"$lists/parts/${file##*/}"
done
for file in /etc/apt/sources.list.d/*.sources; do
    [ ! -e "$file" ] || sed 's/^Types: .*/Types: deb-src/' "$file" >"$lists/parts/${file##*/}"
done
get() {
    apt-get -qq -o Dir::Etc::sourcelist="$lists/sources.list" -o Dir::Etc::sourceparts="$lists/parts" -o Dir::State::lists="$lists/state" "$@"
}
cd "$folder"
get -o APT::Sandbox::User=root update
get -o APT::Sandbox::User=root source --download-only --tar-only hpcc
rm -rf sources
mkdir sources
tar xf hpcc_*.orig.tar.* -C sources --strip-components=1
cd sources/hpl
patch -s -p1 <"$here/mpi-bcast.patch"
# shellcheck disable=SC2046
"$mpicc" -std=gnu89 -O2 -w -DAdd_ -DF77_INTEGER=int -DStringSunStyle -DHPL_NO_MPI_DATATYPE -Iinclude -I../include \
    $(find src testing -name '*.c') -lblas -lm -o "$folder/xhpl"
cp "$here/hpccinf.txt" "$folder"
