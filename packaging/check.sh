#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check.sh KIND... [--suite SUITE] [FOLDER]: tries packages that packaging/build.sh built into FOLDER (build/packages),
# each language in an empty Debian of this release, or of SUITE (trixie), that has nothing but the package and the
# language's compiler or run time: a program trains, saves, predicts on two devices; a second process predicts the same
# from the checkpoint; two processes train together. Then things are taken away or damaged: the error names them, and
# afterwards all is as before. Prints a line for each.
#
#   deb      C (pkg-config, CMake), C++, Go, Java, C# on Mono and CoreCLR; upgrade, purge, sizes, time to load
#   tarball  C and C++ where it is unpacked
#   maven    Java with the natives of the jar, also where no code runs in /tmp
#   nuget    C# on Mono and CoreCLR with the natives of the package; the tests of the binding on CoreCLR
#   go       the module from its proxy folder, over the archive and over the Debian packages
#   all      all of them
#
# As root; needs mmdebstrap and the network of apt. The base is kept in build/check. CoreCLR 3.1 is in the folder that
# TUTTI_CORECLR names; else in the wheel dotnetcore2, which pip fetches once into the user's cache. Without, its lines
# say "skipped".
set -eu
cd "$(dirname "$0")/.."

kinds='' folder=build/packages
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
usage() {
    sed -n '4,16p' "$0" | sed 's/^# \{0,1\}//' >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
    all) kinds='deb tarball maven nuget go' ;;
    deb | tarball | maven | nuget | go) kinds="$kinds $1" ;;
    --suite) [ $# -gt 1 ] || usage && codename=$2 && shift ;;
    -*) usage ;;
    *) folder=$1 ;;
    esac
    shift
done
[ -n "$kinds" ] || usage
folder=$(cd "$folder" && pwd)
programs=$PWD/packaging/check
packaging/install-deps.sh check
# shellcheck source=packaging/empty_root.sh
. packaging/empty_root.sh
store=$root_store
failures=0
passed=0

# An empty Debian, with these Debian packages in it.
begin_root() {
    new_root "$codename"
    [ $# = 0 ] || install_in_root "$@"
}

# The .deb files of packages, as paths in the root, where they are copied.
debs() {
    for name in "$@"; do
        file=$(cd "$folder/deb" && ls "${name}"_*.deb)
        cp "$folder/deb/$file" "$root/packages"
        echo "/packages/$file"
    done
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
        [ "$trained" = "$predicted" ] || { echo "$trained, then $predicted"; exit 1; }
        echo "$predicted" | tee predicted' check "$@"
}

# try_workers WHAT COMMAND...: two processes that the shell starts train together, and predict the same; "workers DIR"
# is added.
try_workers() {
    what=$1
    shift
    # shellcheck disable=SC2016
    try "$what" env MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 10000)) WORLD_SIZE=2 sh -c 'rm -rf together
        RANK=1 "$@" workers together >second & one=$!
        first=$(RANK=0 "$@" workers together) && wait "$one" || exit 1
        [ "$first" = "$(cat second)" ] || { echo "$first, and $(cat second)"; exit 1; }
        echo "$first"' check "$@"
}

# try_error WHAT TEXT COMMAND...: it ends by itself, with an error; prints the line of it that has TEXT.
try_error() {
    what=$1 text=$2
    shift 2
    # shellcheck disable=SC2016
    try "$what" sh -c 'text=$1 && shift
        said=$(timeout 60 "$@" 2>&1) && { echo "no error, but: $said"; exit 1; } || status=$?
        [ "$status" -lt 124 ] || [ "$status" = 127 ] || { echo "$said"; echo "status $status"; exit 1; }
        printf "%s\n" "$said" | grep -F -m 1 -- "$text" || { echo "$said"; exit 1; }' check "$text" "$@"
}

# Before a command: as a user who has no home, and may write nowhere but where it is told.
nobody='setpriv --reuid=65534 --regid=65534 --clear-groups env -u HOME'

# try_again WHAT COMMAND...: it predicts from `model` what it did after its training.
try_again() {
    what=$1
    shift
    # shellcheck disable=SC2016
    try "$what" sh -c 'again=$("$@" predict model) || exit 1
        [ "$again" = "$(cat predicted)" ] || { echo "$again, not $(cat predicted)"; exit 1; }
        echo "$again"' check "$@"
}

for kind in $kinds; do
    # shellcheck source=/dev/null
    . "packaging/check/$kind.sh"
done
leave_root
echo "$passed passed, $failures failed"
[ "$failures" = 0 ]
