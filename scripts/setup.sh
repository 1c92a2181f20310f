#!/bin/sh
# setup.sh build|demo|test|wheel: makes sure that what polycast is built, shown or tested with is there. Missing packages are
# installed when root on Debian; otherwise their names are told.
#   build   a C compiler, an mpicc of any MPI (or those of $MPICC), Rust
#   demo    and what emulates clusters
#   test    and what the lints and the tests use
#   wheel   a C compiler for build scripts, Python with pip, Rust: no MPI
set -eu
level=${1:-build}
case $level in build | demo | test | wheel) ;; *) echo "setup: expected build, demo, test or wheel, found $level" >&2; exit 2 ;; esac

# Level, command, its packages on Debian, Fedora, openSUSE and Arch; several are joined by commas. The tests call both MPIs
# by Debian's names.
needed='
build cc            gcc,libc6-dev                  gcc           gcc               gcc
build mpicc         openmpi-bin,libopenmpi-dev     openmpi-devel openmpi4-devel    openmpi
demo  ip            iproute2                       iproute       iproute2          iproute2
demo  tc            iproute2                       iproute-tc    iproute2          iproute2
demo  nft           nftables                       nftables      nftables          nftables
test  mpicc.openmpi openmpi-bin,libopenmpi-dev     openmpi-devel openmpi4-devel    openmpi
test  mpicc.mpich   mpich,libmpich-dev             mpich-devel   mpich-devel       mpich
test  ibverbs       libibverbs-dev,librdmacm-dev  rdma-core-devel rdma-core-devel rdma-core
test  gfortran      gfortran                       gcc-gfortran  gcc-fortran       gcc-fortran
test  clang-format  clang-format                   clang-tools-extra clang-tools   clang
test  nm            binutils                       binutils      binutils          binutils
test  ping          iputils-ping                   iputils       iputils           iputils
test  kill          procps                         procps-ng     procps            procps-ng
test  eu-stack      elfutils                       elfutils      elfutils          elfutils
test  setpriv       util-linux                     util-linux    util-linux        util-linux
test  python3       python3-venv,python3-dev       python3-devel python3-devel     python
'

# How packages are installed, and which column names them: by the system's own name, else by what it says it is like.
install=
column=
file=${OS_RELEASE:-/etc/os-release}
[ ! -r "$file" ] || for name in $(. "$file" && echo "${ID:-} ${ID_LIKE:-}"); do
    case $name in
    debian | ubuntu) column=1 install="apt-get install -y --no-install-recommends" && break ;;
    fedora | rhel | centos) column=2 install="dnf install" && break ;;
    *suse*) column=3 install="zypper install" && break ;;
    arch) column=4 install="pacman -S --needed" && break ;;
    esac
done

is_there() {
    case $1 in
    # The headers are a package of their own.
    cc) echo '#include <stdio.h>' | "${CC:-cc}" -E -o /dev/null - 2>/dev/null ;;
    mpicc)
        for mpicc in ${MPICC:-mpicc mpicc.openmpi mpicc.mpich}; do
            command -v "$mpicc" >/dev/null && return
        done
        return 1
        ;;
    # Headers and libraries, no command.
    ibverbs) echo '#include <rdma/rdma_cma.h>' | "${CC:-cc}" -x c -shared -fPIC -o /dev/null - -lrdmacm -libverbs 2>/dev/null ;;
    # The module is a package of its own on Debian, and python3 without it looks complete.
    python3) python3 -c 'import ensurepip' 2>/dev/null ;;
    *) PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null ;;
    esac
}

is_of_level() {
    case $level:$1:$2 in
    wheel:*:cc | wheel:*:nm | wheel:*:python3) ;;
    wheel:* | build:demo:* | build:test:* | demo:test:*) return 1 ;;
    esac
}

commands=
packages=
while read -r of command names; do
    [ -n "$of" ] && is_of_level "$of" "$command" && ! is_there "$command" || continue
    commands="$commands $command"
    # shellcheck disable=SC2086
    [ -z "$column" ] || packages="$packages $(echo $names | cut -d ' ' -f $column)"
done <<END
$needed
END
packages=$(echo "$packages" | tr ', ' '\n\n' | sort -u | tr '\n' ' ' | sed 's/^ *//; s/ *$//')

if [ -n "$commands" ]; then
    if [ "$column" != 1 ] || [ "$(id -u)" -ne 0 ]; then
        echo "setup: \`make $level\` needs commands that are not on PATH:$commands" >&2
        [ -z "$install" ] || echo "setup: as root: $install $packages" >&2
        case $column:$commands in
        1:* | *:*mpicc.*) ;;
        *mpicc*) echo "setup: an mpicc may have to be put on PATH (module load mpi) or named: make $level MPICC=/path/to/mpicc" >&2 ;;
        esac
        case $commands in
        *mpicc.*) [ "$column" = 1 ] || echo "setup: the tests call the MPIs as Debian does: mpicc.openmpi, mpiexec.mpich, …" >&2 ;;
        esac
        exit 1
    fi
    echo "setup: $install $packages"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # shellcheck disable=SC2086
    apt-get install -y -qq --no-install-recommends $packages >/dev/null
fi

least=$(sed -n 's/^rust-version = "1\.\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml")
found=$(cargo --version 2>/dev/null | sed -n 's/^cargo 1\.\([0-9]*\).*/\1/p')
if [ "${found:-0}" -lt "$least" ]; then
    echo "setup: polycast needs Rust 1.$least or newer, found ${found:+1.}${found:-none}: see https://rustup.rs" >&2
    exit 1
fi
[ "$level" = test ] || exit 0
for component in fmt clippy; do
    if ! cargo "$component" --version >/dev/null 2>&1; then
        echo "setup: cargo $component is missing: rustup component add rustfmt clippy" >&2
        exit 1
    fi
done
