#!/bin/sh
# Makes Debian packages of what `make build` has laid out:
#   packaging/debian/build.sh STAGE OUT [REVISION]
# polycast has the library and the tool; each MPI's door is a package of its own, so that nobody needs both.
set -eu
stage=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
revision=${3:-1}
sources=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$(dirname "$sources")")

missing=
for command in dpkg-deb dpkg-shlibdeps gzip; do
    command -v "$command" >/dev/null || missing="$missing $command"
done
if [ -n "$missing" ]; then
    echo "deb: not on PATH:$missing; on Debian, as root: apt-get install -y --no-install-recommends dpkg-dev" >&2
    exit 1
fi

version=$("$stage/bin/polycast" --version | cut -d ' ' -f 2)-$revision
architecture=$(dpkg --print-architecture)
date=$(date -R ${SOURCE_DATE_EPOCH:+-d "@$SOURCE_DATE_EPOCH"})
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

(cd "$root" && cargo tree --locked --offline -p polycast-cli -p polycast-runtime -e normal --prefix none --format '{p}: {l}') >"$work/tree"
# The packages of this project have no registry to come from.
grep -v '^polycast' "$work/tree" | sed 's/ (\*)$//; s/ (proc-macro)//; s/^/  /' | sort -u >"$work/licenses"

# PACKAGE FILE…: copies files of the stage to where Debian has them.
lay_out() {
    package=$1
    shift
    for file in "$@"; do
        case $file in
        lib/pkgconfig/*) to=share/pkgconfig/${file##*/} ;;
        share/zsh/site-functions/*) to=share/zsh/vendor-completions/${file##*/} ;;
        share/doc/polycast/CHANGELOG.md.gz) to=share/doc/polycast/changelog.gz ;;
        *) to=$file ;;
        esac
        mode=644
        [ ! -x "$stage/$file" ] || mode=755
        # Shared objects are not executed.
        case $file in *.so) mode=644 ;; esac
        target=$work/$package/usr/$to
        mkdir -p "$(dirname "$target")"
        if [ -L "$stage/$file" ]; then
            cp -P "$stage/$file" "$target"
            continue
        fi
        case $file:$to in
        *.gz:*) cp "$stage/$file" "$target" ;;
        *.md:*.md) sed 's/CHANGELOG\.md\.gz)/changelog.gz)/' "$stage/$file" >"$target" ;;
        *:*.gz) gzip -9nc "$stage/$file" >"$target" ;;
        *) cp "$stage/$file" "$target" ;;
        esac
        chmod "$mode" "$target"
    done
    documents=$work/$package/usr/share/doc/$package
    mkdir -p "$documents"
    {
        cat "$sources/copyright"
        echo
        echo "Comment:"
        echo " The programs contain these libraries, each under the license behind it; the text of"
        echo " Apache-2.0 is in /usr/share/common-licenses/Apache-2.0:"
        cat "$work/licenses"
    } >"$documents/copyright"
    printf 'polycast (%s) stable; urgency=medium\n\n  * See changelog.gz of the package polycast.\n\n -- The polycast developers <polycast@example.org>  %s\n' \
        "$version" "$date" | gzip -9nc >"$documents/changelog.Debian.gz"
    if [ -e "$sources/$package.lintian-overrides" ]; then
        mkdir -p "$work/$package/usr/share/lintian/overrides"
        cp "$sources/$package.lintian-overrides" "$work/$package/usr/share/lintian/overrides/$package"
    fi
}

# PACKAGE SUMMARY [FURTHER_DEPENDENCY]: the rest of the description comes on standard input.
make_package() {
    package=$1
    mkdir -p "$work/source/debian"
    printf 'Source: polycast\n\nPackage: %s\nArchitecture: any\n' "$package" >"$work/source/debian/control"
    # Who has no InfiniBand needs none of its libraries.
    objects=$(find "$work/$package" -type f \( -name '*.so' -o -perm -100 \) ! -name polycast-verbs.so)
    # What lies beside it is found by its own path, not as a package.
    # shellcheck disable=SC2086
    (cd "$work/source" && dpkg-shlibdeps -O --ignore-missing-info -l"$stage/lib/polycast" $objects >"$work/needs" 2>"$work/said") || {
        cat "$work/said" >&2
        exit 1
    }
    needed=$(sed -n 's/^shlibs:Depends=//p' "$work/needs")
    mkdir -p "$work/$package/DEBIAN"
    {
        echo "Package: $package"
        echo "Source: polycast"
        echo "Version: $version"
        echo "Architecture: $architecture"
        echo "Maintainer: The polycast developers <polycast@example.org>"
        echo "Section: net"
        echo "Priority: optional"
        echo "Installed-Size: $(du -sk --apparent-size "$work/$package/usr" | cut -f 1)"
        echo "Depends: $needed${3:+, $3}"
        [ "$package" != polycast ] || echo "Recommends: polycast-openmpi | polycast-mpich"
        [ "$package" != polycast ] || echo "Suggests: iproute2, nftables, libibverbs1, librdmacm1"
        echo "Description: $2"
        sed 's/^/ /'
    } >"$work/$package/DEBIAN/control"
    (cd "$work/$package" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$work/$package/DEBIAN/md5sums"
    find "$work/$package" -type d -exec chmod 755 {} +
    dpkg-deb --root-owner-group -Zxz --build "$work/$package" "$out" >/dev/null
    echo "deb: $out/${package}_${version}_$architecture.deb"
}

cd "$stage"
# shellcheck disable=SC2046
lay_out polycast $(find . ! -type d ! -path './lib/polycast/doors/*' ! -path './lib/polycast/openmpi*/*' ! -path './lib/polycast/bench/*' ! -path './lib/polycast/slurm/*' | cut -c 3-)
make_package polycast "MPI collectives at the speed of the wire" <<'END'
polycast slides under an MPI program when it starts and runs MPI_Bcast and
other collectives by reliable IP multicast, shared memory, and pipelined
trees computed from the switch topology. What it cannot serve, the MPI
below does.
.
This package has the library and the tool that starts, explains, measures and
emulates. Each MPI needs its door: polycast-openmpi or polycast-mpich.
END
for mpi in openmpi mpich abi; do
    door=lib/polycast/doors/polycast-door-$mpi.so
    [ -e "$door" ] || continue
    case $mpi in
    openmpi) name="Open MPI" ;;
    mpich) name=MPICH ;;
    abi) name="MPIs with the standard ABI" ;;
    esac
    component=
    for file in lib/polycast/"$mpi"*/mca_coll_polycast.so; do
        [ ! -e "$file" ] || component="$component $file"
    done
    lay_out "polycast-$mpi" "$door" $component "lib/polycast/bench/polycast-bench-$mpi"
    make_package "polycast-$mpi" "polycast for programs under $name" "polycast (= $version)" <<END
The door through which polycast serves programs under $name${component:+, a
component that Open MPI finds by mca_base_component_path}, and the program by
which \`polycast bench\` measures it.
END
done
