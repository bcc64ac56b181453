#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# pjrt.sh [--package NAME | --plugin FILE] [--topology NAME [--training]] [TEST...]: the tests of the backend pjrt, in a
# folder that tests/run.sh has built, on the devices of a PJRT plug-in: of a package of PyPI, which pip gets (default:
# lammps-jax-pjrt-cpu, a build of XLA's for processors), or of a file. Without the names of tests, all of them; they are
# those of the suite pjrt. With a topology, such as v5e:1x1 of libtpu.so, graphs are only compiled for its devices, which
# need not be here, and without a network (TUTTI_TESTED_CASES_PER_OP=N: N of each op); with --training the training steps
# of the benchmark networks, one replica on each device.
set -eu
cd "$(dirname "$0")/.."

package=lammps-jax-pjrt-cpu plugin='' topology='' training=''
while [ $# -gt 0 ]; do
    case $1 in
        --package) package=${2:?} && shift 2 ;;
        --plugin) plugin=$(readlink -f "${2:?}") && shift 2 ;;
        --topology) topology=${2:?} && shift 2 ;;
        --training) training=yes && shift ;;
        --help | -h) sed -n '4,9s/^# //p' "$0" && exit ;;
        -*) echo "pjrt.sh: unknown option '$1'; --help lists them" >&2 && exit 1 ;;
        *) break ;;
    esac
done
[ -f build/test/build.ninja ] || { echo "pjrt.sh: build/test is missing; tests/run.sh makes it" >&2 && exit 1; }

if [ -z "$plugin" ]; then
    folder=build/pjrt/$package
    if [ ! -d "$folder" ]; then
        packaging/install-deps.sh pjrt
        mkdir -p "$folder.new"
        python3 -m pip download --quiet --no-deps --dest "$folder.new" "$package"
        python3 -m zipfile -e "$folder.new"/*.whl "$folder.new"
        mv "$folder.new" "$folder"
    fi
    for file in $(find "$folder" -name '*.so' | sort); do
        if nm -D --defined-only "$file" 2>/dev/null | grep -q ' GetPjrtApi\(@.*\)\?$'; then plugin=$(readlink -f "$file"); fi
    done
    header=$(find "$folder" -name pjrt_c_api.h | head -n 1)
    if [ -n "$header" ]; then
        "${CXX:-c++}" -std=c++20 -fsyntax-only -Ilib -I"$(dirname "$header")" tests/backend/pjrt/abi_check.cc
        echo "the interface is declared as in $header"
    fi
    [ -n "$plugin" ] || { echo "pjrt.sh: $package has no library that exports GetPjrtApi" >&2 && exit 1; }
fi
echo "plug-in: $plugin"
export TUTTI_PJRT_PLUGIN="$plugin"
if [ -n "$topology" ]; then
    # Without these libtpu asks an address of Google's cloud for minutes, where there is one.
    export TPU_SKIP_MDS_QUERY=1 TPU_LOG_DIR=disabled ALLOW_MULTIPLE_LIBTPU_LOAD=1
    if [ -n "$training" ]; then
        ninja -C build/test tests/bench/training_compile >/dev/null
        export TUTTI_PLUGIN_PATH="$PWD/build/test/lib/backend/pjrt"
        exec unshare --map-root-user --net build/test/tests/bench/training_compile "$plugin" "$topology" "$@"
    fi
    export TUTTI_TESTED_OPTIONS="{\"pjrt_plugin\": \"$plugin\", \"pjrt_topology\": \"$topology\"}"
    exec unshare --map-root-user --net build/test/tests/conformance/conformance_tests backend_compile \
        "$PWD/build/test/lib/backend/pjrt/tutti-pjrt.so"
fi
[ $# -gt 0 ] || set -- --suite pjrt
exec meson test -C build/test --timeout-multiplier 4 "$@"
