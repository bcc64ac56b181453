#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# release.sh [BUILD_FOLDER]: freezes the public headers in packaging/abi/X.Y/include, as they are installed, for the
# version X.Y.0 of meson.build. Until X.Y.0 is released, run it after each change of the interface that is meant, and
# once before the release. Afterwards it refuses: what is released never changes. The build folder (build/test, when
# none is named) is asked for the headers that are generated.
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build/test}

fail() {
    echo "release.sh: $1" >&2
    exit 1
}

version=$(sed -n "s/^  version: '\([0-9.]*\)',\$/\1/p" meson.build)
series=${version%.*}
folder=packaging/abi/$series
case $version in
*.0) ;;
*) fail "the version is $version: the headers of $series were released with $series.0 and never change" ;;
esac
if git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null 2>&1; then
    fail "$version is released (tag v$version): its headers never change"
fi

# Copies the headers of a tree, but not its build files.
copy_headers() {
    (cd "$1" && find tutti -name '*.h' -o -name '*.hpp') | sort | while read -r header; do
        mkdir -p "$(dirname "$folder/include/$header")"
        cp "$1/$header" "$folder/include/$header"
    done
}

ninja -C "$build" include/tutti/ops.h >/dev/null
rm -rf "$folder/include"
mkdir -p "$folder/include"
copy_headers include
copy_headers "$build/include"
find "$folder/include" -type f -exec chmod 644 {} +
echo "release.sh: the headers of $version are in $folder/include"
