#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# update.sh [BUILD_FOLDER]: after a change of the C ABI that is meant, rewrites symbols.txt, libtutti.abi and
# constants.txt from the public headers. Read the difference before committing it, and run release.sh where the release
# is still to come. The build folder (build/test, when none is named) is asked for the headers that are generated.
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build/test}

list=packaging/abi/symbols.txt
ninja -C "$build" include/tutti/ops.h >/dev/null
{
    sed -n '/^#/p' "$list"
    python3 tests/checks/symbol_list.py --declared . "$build"
} >"$list.new"
mv "$list.new" "$list"
python3 tests/checks/abi_baseline.py --write packaging/abi . "$build" cc
git --no-pager diff --stat -- packaging/abi 2>/dev/null || true
