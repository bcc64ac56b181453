#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# try_debian.sh WHAT... [--suite SUITE] [--out FOLDER] [FOLDER]: tries the Debian packages that packaging/build.sh deb
# built into FOLDER (build/packages), each time in an empty Debian of this release or of SUITE. Prints a line for each
# thing tried:
#
#   rebuild      builds the source package with its Build-Depends alone and without a network, and runs lintian. Compares
#                with the packages of FOLDER, or, with --out, leaves what was built there, as build.sh would
#   autopkgtest  runs debian/tests, by autopkgtest
#   cuda         installs libtutti0.1-cuda where there is no driver: nothing else changes
#
# As root; needs mmdebstrap and the network of apt.
set -eu
cd "$(dirname "$0")/.."

usage() {
    sed -n '4,13p' "$0" | sed 's/^# \{0,1\}//' >&2
    exit 2
}

tries='' folder=build/packages built=''
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
while [ $# -gt 0 ]; do
    case $1 in
    rebuild | autopkgtest | cuda) tries="$tries $1" ;;
    --suite) [ $# -gt 1 ] || usage && suite=$2 && shift ;;
    --out) [ $# -gt 1 ] || usage && mkdir -p "$2/deb" && built=$(cd "$2/deb" && pwd) && shift ;;
    -*) usage ;;
    *) folder=$1 ;;
    esac
    shift
done
[ -n "$tries" ] || usage
folder=$(cd "$folder/deb" && pwd)
programs=$PWD/packaging/check
packaging/install-deps.sh check
# shellcheck source=packaging/empty_root.sh
. packaging/empty_root.sh
failures=0

# say WHAT RESULT: a line of the table.
say() {
    printf '%-52s %s\n' "$1" "$2"
}

fail() {
    say "$1" "FAILED: $2"
    failures=$((failures + 1))
}

copy_packages() {
    for name in "$@"; do
        cp "$folder/${name}"_*.deb "$root/packages"
    done
}

# Packages are compared byte by byte.
compare_packages() {
    for package in "$folder"/*.deb; do
        name=$(basename "$package")
        case $name in
        *-cuda_* | *-cuda-* | *-hip_* | *-hip-*) say "rebuild: $name" 'not built: Debian lacks the toolkit' && continue ;;
        esac
        if [ ! -f "$root/root/$name" ]; then
            fail "rebuild: $name" 'was not built'
        elif cmp -s "$package" "$root/root/$name"; then
            say "rebuild: $name" "the same $(stat -c %s "$package") bytes"
        else
            mkdir -p "$root_store/differ"
            cp "$root/root/$name" "$root_store/differ"
            fail "rebuild: $name" "differs from $root_store/differ/$name"
        fi
    done
}

keep_or_compare() {
    if [ -n "$built" ]; then
        find "$root/root" -maxdepth 1 -type f -name 'tutti_*' -exec cp {} "$built" \;
        cp "$root"/root/*.deb "$built"
    else
        compare_packages
    fi
    install_in_root lintian
    if in_root sh -c 'lintian --allow-root --tag-display-limit 0 --suppress-tags initial-upload-closes-no-bugs \
        --fail-on error,warning tutti_*.changes' >"$root_store/lintian.log" 2>&1; then
        say 'rebuild: lintian' 'no errors, no warnings'
    else
        cat "$root_store/lintian.log"
        fail 'rebuild: lintian' "log: $root_store/lintian.log"
    fi
}

try_rebuild() {
    new_root "$suite"
    cp "$folder"/*.dsc "$folder"/*.orig.tar.* "$folder"/*.debian.tar.* "$root/root"
    # shellcheck disable=SC2016
    in_root sh -c 'DEB_BUILD_PROFILES=nocheck apt-get build-dep -qy --no-install-recommends ./tutti_*.dsc' \
        >"$root_store/apt.log" 2>&1 || {
        tail -n 20 "$root_store/apt.log"
        fail "rebuild: Build-Depends" 'cannot be installed'
        return 0
    }
    say 'rebuild: packages installed for Build-Depends' "$(grep -c '^Setting up' "$root_store/apt.log")"
    started=$(date +%s)
    # shellcheck disable=SC2016
    if in_root_alone sh -c 'dpkg-source --no-check -x tutti_*.dsc source && cd source &&
        DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" DEB_BUILD_PROFILES=nocheck dpkg-buildpackage -b -us -uc' \
        >"$root_store/rebuild.log" 2>&1; then
        say 'rebuild: built without a network, seconds' $(($(date +%s) - started))
        keep_or_compare
    else
        tail -n 30 "$root_store/rebuild.log"
        fail 'rebuild: dpkg-buildpackage' "log: $root_store/rebuild.log"
    fi
}

try_autopkgtest() {
    new_root "$suite"
    install_in_root autopkgtest dpkg-dev
    cp "$folder"/*.dsc "$folder"/*.orig.tar.* "$folder"/*.debian.tar.* "$folder"/*.deb "$root/packages"
    rm -f "$root"/packages/*-dbgsym_*.deb
    # This root is what is tested: the null runner runs everything in it.
    if in_root sh -c 'autopkgtest --no-built-binaries --summary-file=summary \
        /packages/*.deb /packages/*.dsc -- null' >"$root_store/autopkgtest.log" 2>&1; then
        while read -r name result; do
            say "autopkgtest: $name" "$result"
        done <"$root/root/summary"
    else
        tail -n 30 "$root_store/autopkgtest.log"
        fail 'autopkgtest' "$(tr '\n' ' ' <"$root/root/summary")log: $root_store/autopkgtest.log"
    fi
}

# What a program and the command say, but for the lines on CUDA.
behaviour() {
    # shellcheck disable=SC2016
    in_root sh -c 'rm -rf model && ./hello train model && ./hello predict model && tutti devices | grep -vi cuda' 2>&1
}

try_cuda() {
    new_root "$suite"
    install_in_root gcc libc6-dev pkg-config
    copy_packages libtutti0.1 libtutti-dev tutti
    in_root sh -c 'apt-get install -qy --no-install-recommends /packages/*.deb' >"$root_store/apt.log" 2>&1
    cp "$programs/hello.c" "$root/root"
    # shellcheck disable=SC2016
    in_root sh -c 'gcc hello.c -o hello $(pkg-config --cflags --libs tutti)'
    before=$(behaviour)
    say 'cuda: without the package' "$(in_root tutti devices | grep -i cuda | head -n 1)"
    copy_packages libtutti0.1-cuda
    in_root sh -c 'apt-get install -qy --no-install-recommends /packages/libtutti0.1-cuda_*.deb' \
        >"$root_store/apt.log" 2>&1
    say 'cuda: packages that came with it' "$(($(grep -c '^Setting up' "$root_store/apt.log") - 1))"
    grep '^Setting up' "$root_store/apt.log" | grep -v libtutti0.1-cuda || true
    say 'cuda: with the package, without a driver' "$(in_root tutti devices | grep -i cuda | head -n 1)"
    after=$(behaviour)
    if [ "$before" = "$after" ]; then
        say 'cuda: nothing else changes' "$(echo "$after" | head -n 1)"
    else
        echo "$before" >"$root_store/before"
        echo "$after" | diff "$root_store/before" - || true
        fail 'cuda: nothing else changes' 'other results'
    fi
}

for try in $tries; do
    "try_$try"
done
leave_root
[ "$failures" = 0 ] || say 'failures' "$failures"
[ "$failures" = 0 ]
