#!/bin/sh
# Tests of each kind in this checkout, counted in the sources: for pages, which name this script in place of numbers.
#   scripts/count-tests.sh
set -eu
cd "$(dirname "$0")/.."
# A test of proptest! has its #[test], too.
tests_in() {
    find "$@" -name '*.rs' -exec cat {} + | grep -c '^[[:space:]]*#\[test\]' || true
}
for crate in crates/*/; do
    printf '%-40s %5d\n' "$crate" "$(tests_in "$crate")"
done
echo 'of these'
printf '%-40s %5d\n' 'fake_door: the runtime without an MPI' "$(tests_in crates/polycast-runtime/src/fake_door)"
printf '%-40s %5d\n' 'jobs: programs under MPIs' "$(tests_in crates/polycast-cli/tests/jobs)"
printf '%-40s %5d\n' 'tool: the command line' "$(tests_in crates/polycast-cli/tests/tool)"
echo 'and'
# Programs for ranks; what is preloaded, opened, or sends from a host beside them is not counted.
printf '%-40s %5d\n' 'tests/mpi: programs' "$(find tests/mpi -name 'bcast_*' -o -name 'collective_*.[cfp]*' | wc -l)"
printf '%-40s %5d\n' 'fuzz: targets' "$(find fuzz/fuzz_targets -name '*.rs' | wc -l)"
