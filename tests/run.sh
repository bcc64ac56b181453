#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh [ARGUMENT...]: from a bare Debian 12 or 13 to tested: installs what is missing, builds in build/test, runs every
# test but those of the suite `long`. Arguments go to `meson test` (a test's name, --suite long, ...). The last line counts
# the results.
#
# TUTTI_BUILD_DIR    another build folder
# TUTTI_SETUP_ARGS   more arguments for `meson setup` when the folder is first configured, such as -Ddebug=true
set -eu
cd "$(dirname "$0")/.."

packaging/install-deps.sh build test go java csharp
build=${TUTTI_BUILD_DIR:-build/test}
if [ ! -f "$build/build.ninja" ]; then
    mkdir -p "$build"
    # Debug information would take a third of the time to build, and GPUs of more generations as much again for each.
    meson setup "$build" --buildtype=debugoptimized -Ddebug=false -Dtests=enabled -Dgpu_architectures=90 \
        --unity=on -Dunity_size=24 \
        ${TUTTI_SETUP_ARGS:-}
fi
# Newer versions of Meson leave what only tests use out of `all`.
ninja -C "$build" all meson-test-prereq

rm -f "$build"/meson-logs/testlog*.json
status=0
# Many tests wait, for other processes or for a deadline: three times as many at a time as there are processors.
meson test -C "$build" --no-rebuild --print-errorlogs --num-processes $((3 * $(nproc))) "$@" || status=$?
python3 tests/count_results.py "$build/meson-logs" || status=1
exit "$status"
