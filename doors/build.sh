#!/bin/sh
# Builds one door and one measuring program for each mpicc that is named, or found if none is.
#   doors/build.sh LIBRARY_DIR [MPICC…]
# LIBRARY_DIR holds libpolycast.so already, and gets libpolycast-mpi.so, doors/ and bench/.
#
# Doors are linked without libmpi: they are resolved in the one that the program has loaded, which need not be the one
# they were built with (Debian's MPICH and MPICH's own have different names for the same interface).
set -eu
library=$1
shift
is_named=$#
[ "$is_named" -ne 0 ] || set -- mpicc mpicc.openmpi mpicc.mpich
mkdir -p "$library/doors" "$library/bench"
library=$(cd "$library" && pwd)
# From here paths are relative, for that of the checkout may have spaces.
cd "$(dirname "$0")/.."
sources=doors
cc=${CC:-cc}
# Code beside data in a page saves some KB for each object.
compact=-Wl,-z,noseparate-code
# Only those of libc's functions are looked up that an object calls.
own_libc="$sources/libc/libc.S $sources/libc/find.c -Wl,--gc-sections"
# Small, but for what every call goes through (door.c, below).
flags="-std=c17 -Os -g -fPIC -fvisibility=hidden -Wall -Wextra -Werror -Iinclude -I$sources/common"
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT

# Written beside and renamed: a running program may have the old object mapped.
"$cc" $flags $compact -shared -o "$library/.new" "$sources/pmpi/preload.c" "$sources/pmpi/library.c" "$sources/pmpi/narrow.c" "$sources/pmpi/vote.c" "$sources/pmpi/patience.c" "$sources/pmpi/say.c" $own_libc -ldl -pthread
mv "$library/.new" "$library/libpolycast-mpi.so"

# What reports for a rank that ended early.
"$cc" -std=c17 -Os -g -Wall -Wextra -Werror $compact -o "$library/.new" "$sources/witness/witness.c"
mv "$library/.new" "$library/polycast-witness"

# Open MPI's component, where the headers of its insides are: its mpicc's, or in OPENMPI_HEADERS="FOLDER…", where PMIx's may be, too. They
# are another for each release line, and so is the component: openmpi/ is for 4, openmpi5/ for 5.
build_component() {
    line=$(echo 'OMPI_MAJOR_VERSION.OMPI_MINOR_VERSION' | "$1" -E -P -include mpi.h -x c - | tail -n 1 | tr -d ' ')
    for folder in ${OPENMPI_HEADERS:-} $("$1" --showme:incdirs); do
        inside=$folder/openmpi
        [ -e "$inside/ompi/mca/coll/coll.h" ] || continue
        of=$(sed -n 's/^#define OMPI_M[AI][JN]OR_VERSION //p' "$inside/opal_config.h" | paste -sd .)
        if [ "$of" != "$line" ]; then
            echo "doors: no component for the Open MPI $line of $1: $inside is of $of" >&2
            return
        fi
        case $of in
        4.*) name=openmpi absent= ;;
        5.*) name=openmpi5 absent="-isystem $sources/ompi-coll/absent-5 $(pkg-config --cflags-only-I pmix 2>/dev/null | sed 's/-I/-isystem /g')" ;;
        *)
            echo "doors: no component for the Open MPI of $1: it is for versions 4 and 5, found $of" >&2
            return
            ;;
        esac
        others=
        for other in ${OPENMPI_HEADERS:-}; do
            others="$others -isystem $other"
        done
        version=$(sed -n 's/^version = "\([0-9.]*\)"/\1/p' Cargo.toml | head -n 1)
        numbers=$(echo "$version" | sed 's/\(.*\)\.\(.*\)\.\(.*\)/-DPOLYCAST_MAJOR=\1 -DPOLYCAST_MINOR=\2 -DPOLYCAST_RELEASE=\3/')
        mkdir -p "$library/$name"
        "$1" $flags -std=gnu17 $numbers -isystem "$inside" $others -isystem "$sources/ompi-coll/absent" $absent -I"$sources/pmpi" -I"$sources/ompi-coll" $compact -shared -o "$library/$name/.new" \
            "$sources"/ompi-coll/component.c "$sources"/ompi-coll/beginning.c "$sources"/ompi-coll/module.c "$sources"/ompi-coll/requests.c "$sources"/ompi-coll/below.c "$sources"/pmpi/vote.c "$sources"/pmpi/patience.c $own_libc -pthread \
            -L"$library/doors" -l:polycast-door-openmpi.so -ldl -Wl,-z,nodelete -Wl,--disable-new-dtags,-rpath,'$ORIGIN/../doors'
        mv "$library/$name/.new" "$library/$name/mca_coll_polycast.so"
        echo "doors: a component for Open MPI $of"
        return
    done
    echo "doors: no component for Open MPI $line: $1 has no headers of its insides (Debian's libopenmpi-dev has)"
}

# Multicast over InfiniBand and RoCE, where its headers are (libibverbs-dev and librdmacm-dev, or rdma-core-devel).
verbs="-shared -Wl,-z,noseparate-code -lrdmacm -libverbs"
if echo '#include <rdma/rdma_cma.h>' | "$cc" -x c -shared -fPIC -o "$objects/verbs.so" - $verbs 2>/dev/null; then
    # Every datagram goes through it.
    "$cc" $flags -O2 "$sources"/verbs/*.c $own_libc -o "$library/.new" $verbs
    mv "$library/.new" "$library/polycast-verbs.so"
    echo "doors: polycast-verbs.so"
else
    rm -f "$library/polycast-verbs.so"
    echo "doors: no headers of libibverbs and librdmacm: without multicast over InfiniBand and RoCE"
fi

built=
files=
for mpicc in "$@"; do
    if ! command -v "$mpicc" >/dev/null; then
        [ "$is_named" -eq 0 ] || echo "doors: $mpicc is not installed, no door for it" >&2
        continue
    fi
    family=$("$mpicc" -E -P -x c "$sources/pmpi/family.h" | tail -n 1)
    if [ "$family" = unknown ] || [ -z "$family" ]; then
        echo "doors: $mpicc belongs to no MPI that polycast knows (Open MPI, MPICH and its kin, the MPI standard ABI)" >&2
        continue
    fi
    file=$(readlink -f "$(command -v "$mpicc")")
    case " $built " in
    *" $family "*)
        case " $files " in
        *" $file "*) ;; # Another name of the one that was used.
        *)
            # Of another release line perhaps.
            [ "$family" != openmpi ] || build_component "$mpicc"
            files="$files $file"
            echo "doors: $mpicc left out: it belongs to $family, too, whose door is built already" >&2
            ;;
        esac
        continue
        ;;
    esac
    also=
    [ "$family" != openmpi ] || also=$sources/ompi-coll/entrance.c
    for source in "$sources"/pmpi/door.c "$sources"/common/*.c $also; do
        case $source in */pmpi/door.c | */common/collective.c | */common/communicator.c | */common/datatype.c) fast=-O2 ;; *) fast= ;; esac
        "$mpicc" $flags $fast -I"$sources/pmpi" -c -o "$objects/$(basename "$source" .c).o" "$source"
    done
    # The old kind of path, which goes before LD_LIBRARY_PATH: a door and its runtime belong together.
    "$cc" $flags -shared $compact -o "$library/doors/.new" "$objects"/*.o $own_libc -L"$library" -lpolycast -Wl,--disable-new-dtags,-rpath,'$ORIGIN/..'
    mv "$library/doors/.new" "$library/doors/polycast-door-$family.so"
    rm "$objects"/*.o
    "$mpicc" -std=c17 -Os -g -Wall -Wextra $compact -o "$library/bench/.new" bench/*.c -ldl -lm
    mv "$library/bench/.new" "$library/bench/polycast-bench-$family"
    [ "$family" != openmpi ] || build_component "$mpicc"
    built="$built $family"
    files="$files $file"
    echo "doors: $family, built with $mpicc"
done
if [ -z "$built" ]; then
    echo "doors: none built, found no mpicc that can be used. Name those of your MPIs: make doors MPICC=\"/opt/mpi/bin/mpicc …\"" >&2
    exit 1
fi
