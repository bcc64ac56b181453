#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh [WHAT] [ARGUMENT...]: on a machine with an NVIDIA GPU, nvcc, Meson, Ninja and a Python with PyTorch: builds a
# release with the CUDA backend in build/gpu and runs
#
#   tests       the conformance suites, whole networks, several logical devices, on the GPU (first of all)
#   sanitize    the same small cases under compute-sanitizer: memcheck, racecheck
#   soak        1,000 training steps, with the device's free memory before and after
#   bench       training and prediction against PyTorch on the same GPU
#   all         these in order (the default); a step that fails does not keep the next from running
#
# ARGUMENTs go to `meson test` (tests) or to compare.py (bench). Results: build/gpu/results/*.md, *.json, *.log, or the
# folder that TUTTI_RESULTS names.
#
# TUTTI_PACKAGES   a folder with unpacked packages (carry.sh makes one) for machines without a package manager
# TUTTI_SETUP_ARGS more arguments for `meson setup`
set -eu
cd "$(dirname "$0")/../.."

build=build/gpu
results=${TUTTI_RESULTS:-$build/results}
packages=${TUTTI_PACKAGES:-}

if [ -n "$packages" ]; then
    packages=$(cd "$packages" && pwd)
    libraries=$packages/usr/lib/$(uname -m)-linux-gnu
    export PKG_CONFIG_PATH="$libraries/pkgconfig:$packages/usr/share/pkgconfig"
    export PKG_CONFIG_SYSROOT_DIR="$packages"
    export CPATH="$packages/usr/include" LIBRARY_PATH="$libraries${LIBRARY_PATH:+:$LIBRARY_PATH}"
    export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    export CMAKE_PREFIX_PATH="$packages/usr"
fi

build_everything() {
    if [ ! -f "$build/build.ninja" ]; then
        mkdir -p "$build"
        meson setup "$build" --buildtype=release -Dcuda=enabled -Dtests=enabled -Dgo=disabled -Djava=disabled \
            -Dcsharp=disabled -Dhttp=disabled ${TUTTI_SETUP_ARGS:-}
    fi
    ninja -C "$build" gpu-tests tests/bench/step_bench
}

# The plug-in lies in the build tree.
export TUTTI_PLUGIN_PATH="$PWD/$build/lib/backend/cuda"
plugin=$TUTTI_PLUGIN_PATH/tutti-cuda.so

run_tests() {
    status=0
    meson test -C "$build" --no-rebuild --suite gpu --print-errorlogs "$@" || status=$?
    cp "$build/meson-logs/testlog.txt" "$results/tests.log"
    return "$status"
}

run_sanitizer() {
    for tool in memcheck racecheck; do
        for program in backend_programs_test backend_trees_test; do
            compute-sanitizer --tool "$tool" --error-exitcode 9 "$build/tests/conformance/$program" "$plugin" \
                > "$results/sanitize-$tool-$program.log" 2>&1 || { echo "$tool: $program failed" && return 1; }
            echo "$tool: $program is clean"
        done
    done
}

run_soak() {
    free_memory() { nvidia-smi --query-gpu=memory.free --format=csv,noheader,nounits | head -1; }
    before=$(free_memory)
    "$build/tests/bench/step_bench" --backend cuda --loop 1000 cnn:64
    after=$(free_memory)
    echo "free memory of the GPU before: $before MiB, after 1000 steps: $after MiB" | tee "$results/soak.log"
    [ $((before - after)) -lt 64 ]
}

run_bench() {
    python3 tests/gpu/compare.py --programs "$build/tests/bench" --json "$results/bench.json" \
        --markdown "$results/bench.md" "$@"
}

what=${1:-all}
[ $# -eq 0 ] || shift
case $what in
-h | --help)
    sed -n '4,18{s/^# \{0,1\}//;p}' "$0"
    exit 0
    ;;
tests | sanitize | soak | bench | all) ;;
*) echo "run.sh: unknown word '$what': expected tests, sanitize, soak, bench or all" >&2 && exit 2 ;;
esac

command -v nvidia-smi >/dev/null && nvidia-smi -L || { echo "run.sh: this machine has no NVIDIA GPU" >&2 && exit 1; }
mkdir -p "$results"
build_everything
case $what in
tests) run_tests "$@" ;;
sanitize) run_sanitizer ;;
soak) run_soak ;;
bench) run_bench "$@" ;;
all)
    failed=
    for step in run_tests run_sanitizer run_soak run_bench; do
        $step || failed="$failed ${step#run_}"
    done
    [ -z "$failed" ] || { echo "failed:$failed" && exit 1; }
    ;;
esac
