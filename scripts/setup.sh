#!/bin/sh
# Makes sure that what polycast is built and tested with is there: installs it when root on Debian, otherwise says how.
set -eu

# command  package(s)
needed='
cc gcc
mpicc.openmpi openmpi-bin libopenmpi-dev
mpicc.mpich mpich libmpich-dev
gfortran gfortran
ip iproute2
tc iproute2
nft nftables
clang-format clang-format
nm binutils
ping iputils-ping
kill procps
python3 python3-venv python3-dev
'

missing=$(echo "$needed" | while read -r command packages; do
    [ -z "$command" ] || command -v "$command" >/dev/null || PATH=$PATH:/usr/sbin:/sbin command -v "$command" >/dev/null || echo "$packages"
done | tr ' ' '\n' | sort -u | tr '\n' ' ')
# The module is a package of its own on Debian, and python3 without it looks complete.
if command -v python3 >/dev/null && ! python3 -c 'import ensurepip' 2>/dev/null; then
    missing="$missing python3-venv"
fi

if [ -n "${missing% }" ]; then
    line="apt-get install -y --no-install-recommends $missing"
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        echo "setup: these packages are missing; as root: $line" >&2
        exit 1
    fi
    echo "setup: $line"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # shellcheck disable=SC2086
    apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

if ! command -v cargo >/dev/null; then
    echo "setup: no Rust toolchain: see https://rustup.rs (Debian 12's own is too old: polycast needs Rust 1.88)" >&2
    exit 1
fi
for component in fmt clippy; do
    if ! cargo "$component" --version >/dev/null 2>&1; then
        echo "setup: cargo $component is missing: rustup component add rustfmt clippy" >&2
        exit 1
    fi
done
