#!/bin/sh
# The runtime over the fake door, and shared memory, under what finds mistakes that no result of a test shows:
#   ThreadSanitizer   races between threads
#   Miri              undefined behaviour in unsafe code: aliasing, memory that is used after it went, uninitialised bytes
# Both need a nightly toolchain, and two parts of it that are fetched here if they are missing. Units, protocol and core have no unsafe code
# and no threads (`forbid(unsafe_code)`), so what of them jobs run, runs here along with the runtime. Miri takes some thousand times as long,
# three quarters of an hour in all: one seed of tests whose jobs are small, with a shipped table without rules. What calls C cannot run there (the
# header's test, which asks a compiler; sockets of the network; tests of shared memory that ask the kernel say so), and jobs have no memfd.
# And the C programs of tests/mpi under MPIs from PyPI, on this machine and in labs, after `make build`:
#   mpis              Open MPI 5, MPICH 5, Intel MPI, the standard ABI under the last two
#   scripts/nightly.sh [thread|miri|mpis]
set -eu
cd "$(dirname "$0")/.."
what=${1:-all}
mpis() {
    cargo test --locked --workspace --test jobs -- --ignored more_mpis
}
# They need no nightly toolchain.
if [ "$what" = mpis ]; then
    mpis
    exit
fi
host=$(rustc +nightly -vV 2>/dev/null | sed -n 's/^host: //p')
if [ -z "$host" ]; then
    echo "nightly: needs a nightly toolchain: rustup toolchain install nightly" >&2
    exit 1
fi
rustup component add --toolchain nightly miri rust-src
target=${CARGO_TARGET_DIR:-target}

# The standard library is built along: else the sanitizer does not see how it synchronizes. Some twenty times as long.
thread() {
    RUSTFLAGS="-Zsanitizer=thread" CARGO_TARGET_DIR="$target/thread" FAKE_DOOR_SEEDS="${FAKE_DOOR_SEEDS:-20}" \
        cargo +nightly test --locked -Zbuild-std --target "$host" -p polycast-runtime --lib fake_door
    RUSTFLAGS="-Zsanitizer=thread" CARGO_TARGET_DIR="$target/thread" \
        cargo +nightly test --locked -Zbuild-std --target "$host" -p polycast-shm --lib
}

# Tables are read from files, so Miri lets through to the machine.
miri() {
    MIRIFLAGS="-Zmiri-disable-isolation" CARGO_TARGET_DIR="$target/miri" FAKE_DOOR_SEED="${FAKE_DOOR_SEED:-1}" \
        cargo +nightly miri test --locked -p polycast-runtime --lib -- fake_door::in_flight fake_door::multicast::ranks_with
    CARGO_TARGET_DIR="$target/miri" cargo +nightly miri test --locked -p polycast-shm --lib
}

case $what in
thread | miri) "$what" ;;
all)
    thread
    miri
    mpis
    ;;
*)
    echo "nightly: expected thread, miri or mpis, found $what" >&2
    exit 1
    ;;
esac
