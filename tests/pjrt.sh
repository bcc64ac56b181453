#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# pjrt.sh [--package NAME | --plugin FILE] [TEST...]: the tests of the backend pjrt, in a folder that tests/run.sh has
# built, on the devices of a PJRT plug-in: of a package of PyPI, which pip gets (default: lammps-jax-pjrt-cpu, a build of
# XLA's for processors), or of a file. Without the names of tests, all of them; they are those of the suite pjrt.
set -eu
cd "$(dirname "$0")/.."

package=lammps-jax-pjrt-cpu plugin=''
while [ $# -gt 0 ]; do
    case $1 in
        --package) package=${2:?} && shift 2 ;;
        --plugin) plugin=$(readlink -f "${2:?}") && shift 2 ;;
        --help | -h) sed -n '4,6s/^# //p' "$0" && exit ;;
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
        if nm -D --defined-only "$file" 2>/dev/null | grep -q ' GetPjrtApi$'; then plugin=$(readlink -f "$file"); fi
    done
    [ -n "$plugin" ] || { echo "pjrt.sh: $package has no library that exports GetPjrtApi" >&2 && exit 1; }
fi
echo "plug-in: $plugin"
export TUTTI_PJRT_PLUGIN="$plugin"
[ $# -gt 0 ] || set -- --suite pjrt
exec meson test -C build/test --timeout-multiplier 4 "$@"
