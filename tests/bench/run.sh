#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh [ARGUMENT...]: builds a release and compares training steps with PyTorch (see compare_steps.py; ARGUMENTs go there).
# Needs python3-torch and libopenblas0-pthread, which it installs. Results also go to build/bench/steps.json.
set -eu
cd "$(dirname "$0")/../.."

packaging/install-deps.sh build
for package in python3-torch libopenblas0-pthread; do
    dpkg -s "$package" >/dev/null 2>&1 || apt-get -o DPkg::Lock::Timeout=600 install -qy --no-install-recommends "$package"
done
build=build/bench
if [ ! -f "$build/build.ninja" ]; then
    mkdir -p "$build"
    meson setup "$build" --buildtype=release
fi
ninja -C "$build" tests/bench/step_bench
exec /usr/bin/python3 tests/bench/compare_steps.py "$build/tests/bench/step_bench" --json "$build/steps.json" "$@"
