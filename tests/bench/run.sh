#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh [WHAT] [ARGUMENT...]: builds a release in build/bench and measures. WHAT:
#
#   steps       training steps against PyTorch, one thread (the default)
#   inference   predictions against frozen TorchScript and ONNX Runtime, one thread
#   threads     training on two cores against PyTorch, as one device with two threads and as two devices
#   memory      peak memory against PyTorch's, workspace against its lower bound, what a second device adds
#   overhead    microseconds of the executor; milliseconds of building training programs
#   profile     the most expensive kernels of each network
#   values      that PyTorch, from the same start, predicts and learns the same; fails when not
#   pipeline    how fast datasets deliver, and what must hold of them: shuffle, cache, overlap, automatic settings
#   accuracy    mlp, cnn, resnet20 on Fashion-MNIST: the test accuracy each one reaches, and fails below the one expected.
#               ARGUMENTs are networks; the last takes ten minutes on two cores.
#   all         every one of the above but accuracy and pipeline
#
# ARGUMENTs go to compare.py (its --help lists them): MODEL or MODEL:BATCH, --quadruples N, --seconds S, --bound B,
# --python PATH for each interpreter with a PyTorch (without any the system's, python3-torch, which is installed),
# --onnx-python PATH for one with ONNX Runtime. Results go to build/bench/<WHAT>.json and .md as well.
set -eu
cd "$(dirname "$0")/../.."

build=build/bench
build_target() {
    if [ ! -f "$build/build.ninja" ]; then
        mkdir -p "$build"
        meson setup "$build" --buildtype=release
    fi
    ninja -C "$build" "$@"
}

compare() {
    /usr/bin/python3 tests/bench/compare.py "$@" --programs "$build/tests/bench" --json "$build/$1.json" --markdown "$build/$1.md"
}

case ${1:-steps} in
-h | --help)
    sed -n '4,22{s/^# \{0,1\}//;p}' "$0"
    exit 0
    ;;
accuracy | pipeline | all | inference | threads | memory | overhead | profile | values | steps)
    what=${1:-steps}
    [ $# -eq 0 ] || shift
    ;;
*) what=steps ;;
esac

packaging/install-deps.sh build test
case $what in
pipeline)
    build_target tests/bench/pipeline_bench tests/bench/pipeline_gates
    "$build/tests/bench/pipeline_bench" "$@"
    exec "$build/tests/bench/pipeline_gates"
    ;;
accuracy)
    build_target tests/bench/accuracy_bench
    [ $# -gt 0 ] || set -- mlp cnn resnet20
    status=0
    for network in "$@"; do
        "$build/tests/bench/accuracy_bench" /usr/share/datasets/fashion-mnist "$network" || status=1
    done
    exit "$status"
    ;;
esac

case " $* " in
*" --python /usr/bin/python3"* | *" --python=/usr/bin/python3"*) system_torch=yes ;;
*" --python"*) system_torch=no ;;
*) system_torch=yes ;;
esac
if [ "$system_torch" = yes ]; then
    for package in python3-torch libopenblas0-pthread; do
        dpkg -s "$package" >/dev/null 2>&1 ||
            apt-get -o DPkg::Lock::Timeout=600 install -qy --no-install-recommends "$package"
    done
fi
build_target tests/bench/step_bench tests/bench/replica_bench
[ "$what" != all ] || what='values steps inference threads memory overhead profile'
for one in $what; do
    compare "$one" "$@"
done
