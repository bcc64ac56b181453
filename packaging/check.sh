#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check.sh KIND... [FOLDER]: tries packages that packaging/build.sh built into FOLDER (build/packages), each language in an
# empty Debian of this release that has nothing but the package and the language's compiler or run time: a program trains,
# saves, predicts on two devices; a second process predicts the same from the checkpoint. Two processes train together
# where the package has the plug-in for it. Prints a line for each.
#
#   deb      C (pkg-config, CMake), C++, Go, Java, C# on Mono; upgrade, purge, what is missing, sizes
#   tarball  C and C++ where it is unpacked
#   maven    Java with the natives of the jar, also where no code runs in /tmp
#   nuget    C# on Mono with the natives of the package
#
# As root; needs mmdebstrap and the network of apt. The base is kept in build/check.
set -eu
cd "$(dirname "$0")/.."

kinds='' folder=build/packages
for word in "$@"; do
    case $word in
    deb | tarball | maven | nuget) kinds="$kinds $word" ;;
    -*) sed -n '4,15p' "$0" | sed 's/^# \{0,1\}//' >&2 && exit 2 ;;
    *) folder=$word ;;
    esac
done
[ -n "$kinds" ] || { sed -n '4,15p' "$0" | sed 's/^# \{0,1\}//' >&2 && exit 2; }
folder=$(cd "$folder" && pwd)
programs=$PWD/packaging/check
packaging/install-deps.sh check
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
store=$PWD/build/check
base=$store/$codename.tar
mkdir -p "$store"
if [ ! -f "$base" ]; then
    apt-config dump Acquire >"$store/apt.conf"
    mmdebstrap --quiet --format=tar --variant=minbase --aptopt="$store/apt.conf" "$codename" "$base.new"
    mv "$base.new" "$base"
fi
root=''
failures=0
passed=0

leave_root() {
    [ -n "$root" ] || return 0
    umount "$root/tmp" "$root/proc" "$root/dev" 2>/dev/null || true
    rm -rf --one-file-system "$root"
    root=''
}
trap leave_root EXIT

# An empty Debian, with these Debian packages beside it.
new_root() {
    leave_root
    root=$(mktemp -d "$store/root.XXXXXX")
    tar -xf "$base" -C "$root"
    cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
    mkdir "$root/packages"
    in_root apt-get update -q >/dev/null
    [ $# = 0 ] || install_in_root "$@"
}

install_in_root() {
    in_root apt-get install -qy --no-install-recommends "$@" >"$store/apt.log" 2>&1 || {
        tail -n 20 "$store/apt.log" >&2
        return 1
    }
}

in_root() {
    chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive sh -c 'cd /root && exec "$@"' check "$@" </dev/null
}

# say WHAT RESULT: a line of the table.
say() {
    printf '%-52s %s\n' "$1" "$2"
}

# hold WHAT COMMAND...: runs it; a line of the table with the last line that it printed.
hold() {
    what=$1
    shift
    if "$@" >"$store/log" 2>&1; then
        say "$what" "$(tail -n 1 "$store/log")"
        passed=$((passed + 1))
    else
        say "$what" "FAILED: $*"
        tail -n 20 "$store/log" | sed 's/^/    /'
        failures=$((failures + 1))
    fi
}

# try WHAT COMMAND...: the same in the root.
try() {
    what=$1
    shift
    hold "$what" in_root "$@"
}

# The two processes of a language: try_program WHAT COMMAND...; "train DIR" and "predict DIR" are added.
try_program() {
    what=$1
    shift
    # shellcheck disable=SC2016
    try "$what" sh -c 'rm -rf model; trained=$("$@" train model) && predicted=$("$@" predict model) &&
        if [ "$trained" = "$predicted" ]; then echo "$predicted"; else echo "$trained, then $predicted"; exit 1; fi' \
        check "$@"
}

for kind in $kinds; do
    # shellcheck source=/dev/null
    . "packaging/check/$kind.sh"
done
leave_root
echo "$passed passed, $failures failed"
[ "$failures" = 0 ]
