#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# quickstart.sh [ARGUMENT...]: from a bare Debian 12 or 13 to a trained network: installs what is missing, builds a
# release in build/release, then runs examples/c/fashion_mnist.c: the Fashion-MNIST network on a mirrored strategy over
# all CPU devices, evaluated, and the 10,000 test images predicted. Files go to build/quickstart, with a page about the
# run, report.html. Arguments go to the program.
set -eu
cd "$(dirname "$0")/.."

packaging/install-deps.sh build example
build=build/release
if [ ! -f "$build/build.ninja" ]; then
    mkdir -p "$build"
    meson setup "$build" --buildtype=release --unity=on -Dunity_size=24 -Dtests=disabled
fi
ninja -C "$build" examples/c/fashion_mnist lib/tool/tutti

data=${TUTTI_FASHION_MNIST:-/usr/share/datasets/fashion-mnist}
if [ ! -d "$data" ] && command -v dpkg >/dev/null; then
    data=$(dirname "$(dpkg -L dataset-fashion-mnist | grep -m1 'train-images-idx3-ubyte')")
fi
# A model directory of an earlier run would be trained on from there.
rm -rf build/quickstart
mkdir -p build/quickstart
"$build/examples/c/fashion_mnist" "$data" build/quickstart "$@"
printf 'report of the run: '
"$build/lib/tool/tutti" report build/quickstart
