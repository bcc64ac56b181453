#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# build_time.sh [PART...]: how long builds take on this machine, in seconds, from empty folders that are removed again.
# Everything that is to be installed must be. Parts:
#
#   quickstart  a release, as examples/quickstart.sh builds it, to the first step of training
#   tests       what tests/run.sh builds, then its tests
#   change      one source file of lib/ is touched: to the result of its test, in the folder of `tests`
#
# All three without arguments. Run nothing beside it.
set -eu
cd "$(dirname "$0")/../.."

folder=$(mktemp -d "${TMPDIR:-/tmp}/tutti-build-time.XXXXXX")
trap 'rm -rf "$folder"' EXIT
processors=$(nproc)
echo "processors: $processors; compiler: $(c++ --version | head -n 1)"

say() {
    printf '%-44s %6d s\n' "$1" "$2"
}

# Runs a command, its output in a log; how long it took is in seconds_taken afterwards.
timed() {
    begin=$(date +%s)
    if ! "$@" >"$folder/log" 2>&1; then
        tail -n 30 "$folder/log" >&2
        echo "failed: $*" >&2
        exit 1
    fi
    seconds_taken=$(($(date +%s) - begin))
}

first_step() {
    data=${TUTTI_FASHION_MNIST:-$(dirname "$(dpkg -L dataset-fashion-mnist | grep -m1 'train-images-idx3-ubyte')")}
    mkdir "$folder/model"
    # The program says how far it is from its first steps on.
    "$folder/release/examples/c/fashion_mnist" "$data" "$folder/model" 2>&1 | sed -n "/^step/{p;q}"
}

setup_tests() {
    meson setup "$folder/test" --buildtype=debugoptimized -Ddebug=false -Dtests=enabled -Dgpu_architectures=90 \
        --unity=on -Dunity_size=24
}

build_tests() {
    ninja -C "$folder/test" all meson-test-prereq
}

run_tests() {
    meson test -C "$folder/test" --no-rebuild --num-processes $((3 * processors))
}

for part in ${*:-quickstart tests change}; do
    case $part in
    quickstart)
        timed meson setup "$folder/release" --buildtype=release --unity=on -Dunity_size=24 -Dtests=disabled
        total=$seconds_taken
        timed ninja -C "$folder/release" examples/c/fashion_mnist
        say 'release: built' $((total + seconds_taken))
        timed first_step
        say 'release: from built to the first steps' "$seconds_taken"
        ;;
    tests)
        timed setup_tests
        total=$seconds_taken
        timed build_tests
        say 'tests: built' $((total + seconds_taken))
        timed run_tests
        say 'tests: run' "$seconds_taken"
        ;;
    change)
        if [ ! -d "$folder/test" ]; then
            timed setup_tests
            timed build_tests
        fi
        touch lib/data/transform/batch.cc
        timed ninja -C "$folder/test" tests/data/data_tests
        total=$seconds_taken
        timed meson test -C "$folder/test" --no-rebuild batch
        say 'a change: from a touched source to its test' $((total + seconds_taken))
        ;;
    *)
        echo "build_time.sh: no part '$part'; parts are quickstart, tests, change" >&2
        exit 2
        ;;
    esac
done
