#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# update.sh [BUILD_FOLDER]: after a change of the C ABI that is meant, rewrites symbols.txt from the public headers, builds the
# library, and writes libtutti.abi from it. Read the difference of both before committing it.
# The build folder (build/test, when none is named) must have debug information: types are compared through it.
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build/test}

list=packaging/abi/symbols.txt
ninja -C "$build" >/dev/null # public headers that are generated come first
{
    sed -n '/^#/p' "$list"
    python3 tests/checks/symbol_list.py --declared . "$build"
} >"$list.new"
mv "$list.new" "$list"
ninja -C "$build" lib/libtutti.so >/dev/null
python3 tests/checks/abi_baseline.py --write packaging/abi/libtutti.abi . "$build" "$build/lib/libtutti.so"
git --no-pager diff --stat -- packaging/abi 2>/dev/null || true
