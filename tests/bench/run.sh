#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh [steps] [ARGUMENT...]    training steps against PyTorch (compare_steps.py; ARGUMENTs go there). Needs python3-torch
#                                 and libopenblas0-pthread, which it installs. Results also go to build/bench/steps.json.
# run.sh accuracy [NETWORK...]    mlp, cnn, resnet20 on Fashion-MNIST: the test accuracy each one reaches, and fails below
#                                 the one expected. The last takes ten minutes on two cores.
#
# Both build a release in build/bench first.
set -eu
cd "$(dirname "$0")/../.."

build=build/bench
build_target() {
    if [ ! -f "$build/build.ninja" ]; then
        mkdir -p "$build"
        meson setup "$build" --buildtype=release
    fi
    ninja -C "$build" "$1"
}

case ${1:-steps} in
accuracy)
    shift
    packaging/install-deps.sh build test
    build_target tests/bench/accuracy_bench
    [ $# -gt 0 ] || set -- mlp cnn resnet20
    status=0
    for network in "$@"; do
        "$build/tests/bench/accuracy_bench" /usr/share/datasets/fashion-mnist "$network" || status=1
    done
    exit "$status"
    ;;
*)
    [ "${1:-}" != steps ] || shift
    packaging/install-deps.sh build test
    for package in python3-torch libopenblas0-pthread; do
        dpkg -s "$package" >/dev/null 2>&1 ||
            apt-get -o DPkg::Lock::Timeout=600 install -qy --no-install-recommends "$package"
    done
    build_target tests/bench/step_bench
    exec /usr/bin/python3 tests/bench/compare_steps.py "$build/tests/bench/step_bench" --json "$build/steps.json" "$@"
    ;;
esac
