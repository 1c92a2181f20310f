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
sources=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$sources")
cc=${CC:-cc}
flags="-std=c17 -O2 -g -fPIC -fvisibility=hidden -Wall -Wextra -Werror -I$root/include -I$sources/common"
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
mkdir -p "$library/doors" "$library/bench"

# Written beside and renamed: a running program may have the old object mapped.
"$cc" $flags -shared -o "$library/.new" "$sources/pmpi/preload.c" "$sources/pmpi/library.c" "$sources/pmpi/vote.c" -ldl -pthread
mv "$library/.new" "$library/libpolycast-mpi.so"

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
        *) echo "doors: $mpicc left out: it belongs to $family, too, whose door is built already" >&2 ;;
        esac
        continue
        ;;
    esac
    for source in "$sources"/pmpi/door.c "$sources"/common/*.c; do
        "$mpicc" $flags -c -o "$objects/$(basename "$source" .c).o" "$source"
    done
    # The old kind of path, which goes before LD_LIBRARY_PATH: a door and its runtime belong together.
    "$cc" -shared -o "$library/doors/.new" "$objects"/*.o -L"$library" -lpolycast -Wl,--disable-new-dtags,-rpath,'$ORIGIN/..'
    mv "$library/doors/.new" "$library/doors/polycast-door-$family.so"
    rm "$objects"/*.o
    "$mpicc" -std=c17 -O2 -g -Wall -Wextra -o "$library/bench/.new" "$root"/bench/*.c -ldl -lm
    mv "$library/bench/.new" "$library/bench/polycast-bench-$family"
    built="$built $family"
    files="$files $file"
    echo "doors: $family, built with $mpicc"
done
if [ -z "$built" ]; then
    echo "doors: none built, found no mpicc that can be used. Name those of your MPIs: make doors MPICC=\"/opt/mpi/bin/mpicc …\"" >&2
    exit 1
fi
