# For the scripts that run tests: each suite writes into a file of its own, says in a line how it went, and is counted.
#   suite NAME COMMAND…     run it; what it wrote is shown if it failed
#   total                   the closing line; status 1 if something failed
# Suites may run beside each other.

# Properties are tried with the same cases each time: what fails here failed before, or was changed. Another number tries other cases,
# and `cargo test` by itself draws new ones each time.
export PROPTEST_RNG_SEED="${PROPTEST_RNG_SEED:-1}"
logs=build/test-logs
rm -rf "$logs"
mkdir -p "$logs"

# WORD FILE…: how many tests are reported with this word by cargo's lines "test result: … 12 passed; 0 failed; …".
counted() {
    word=$1
    shift
    sed -n "s/^test result: .* \([0-9]*\) $word.*/\1/p" "$@" | awk '{ n += $1 } END { print n + 0 }'
}

# FOLDER…: what has cargo run the integration tests of the crates in these. Of the whole workspace, whose features are then those of all
# its crates: with `-p` each crate and what it needs is compiled once more with its own. Without any, cargo would run all tests.
tests_of() {
    for folder; do
        found=
        for file in "$folder"/tests/*.rs "$folder"/tests/*/main.rs; do
            [ -f "$file" ] || continue
            name=${file%/main.rs}
            name=${name##*/}
            found="$found --test ${name%.rs}"
        done
        echo "${found:---test no-tests-in-$folder}"
    done
}

suite() (
    name=$1
    shift
    log=$logs/$name
    began=$(date +%s)
    status=0
    "$@" >"$log" 2>&1 || status=$?
    took="$(($(date +%s) - began)) s"
    if [ "$status" -eq 0 ]; then
        printf '%-24s %6s  %s passed\n' "$name" "$took" "$(counted passed "$log")"
    else
        touch "$log.failed"
        # A suite that could not even be built has failed once.
        printf '%-24s %6s  FAILED\n' "$name" "$took"
        cat "$log"
    fi
)

total() {
    # shellcheck disable=SC2046
    failed=$(counted failed $(find "$logs" -type f ! -name '*.failed'))
    # shellcheck disable=SC2046
    passed=$(counted passed $(find "$logs" -type f ! -name '*.failed'))
    [ "$failed" -gt 0 ] || failed=$(find "$logs" -name '*.failed' | wc -l)
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}
