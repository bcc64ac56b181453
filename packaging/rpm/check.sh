#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check.sh [FOLDER]: installs the RPM packages that packaging/build.sh rpm built into FOLDER (build/packages) by
# `rpm --root` into an empty folder, and tries what lies there; prints a line for each thing tried. Needs rpm, a C
# compiler, pkg-config, and on this system the libraries that the packages require.
set -eu
cd "$(dirname "$0")/../.."

folder=$(cd "${1:-build/packages}/rpm" && pwd)
program=$PWD/packaging/check/hello.c
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir "$root/installed" "$root/home"
installed=$root/installed
failures=0
packages=$(find "$folder" -name '*.rpm' ! -name '*.src.rpm' ! -name '*-debug*' | sort)

in_database() {
    rpm --root "$installed" --dbpath /var/lib/rpm "$@"
}

# try WHAT COMMAND...: a line with the last line that the command printed.
try() {
    what=$1
    shift
    if "$@" >"$root/log" 2>&1; then
        printf '%-52s %s\n' "rpm: $what" "$(tail -n 1 "$root/log")"
    else
        printf '%-52s %s\n' "rpm: $what" FAILED
        tail -n 20 "$root/log" | sed 's/^/    /'
        failures=$((failures + 1))
    fi
}

# Debian's database of packages does not tell rpm what is here: what the packages require is looked for below.
install_all() {
    # shellcheck disable=SC2086
    in_database --install --nodeps $packages && in_database --query --all | wc -l
}

# What each package has to bring, and nobody else: "PACKAGE PATH".
contents() {
    cat <<'END'
tutti /usr/bin/tutti
tutti /usr/share/man/man1/tutti.1.gz
tutti /usr/share/bash-completion/completions/tutti
tutti /usr/share/fish/vendor_completions.d/tutti.fish
tutti /usr/share/zsh/site-functions/_tutti
tutti-libs /usr/lib64/libtutti.so.0.1
tutti-libs /usr/share/licenses/tutti-libs*/LICENSE
tutti-gloo /usr/lib64/tutti/plugins-0.1/tutti-gloo.so
tutti-http /usr/lib64/tutti/plugins-0.1/tutti-http.so
tutti-pjrt /usr/lib64/tutti/plugins-0.1/tutti-pjrt.so
tutti-devel /usr/include/tutti/tutti.h
tutti-devel /usr/lib64/libtutti.so
tutti-devel /usr/lib64/pkgconfig/tutti.pc
tutti-devel /usr/lib64/cmake/tutti/tuttiConfig.cmake
tutti-doc /usr/share/doc/tutti-doc*/README.java.md
tutti-java /usr/share/java/tutti.jar
tutti-java /usr/lib64/libtuttijni.so
tutti-mono /usr/lib/mono/tutti-0.1/Tutti.dll
tutti-mono /usr/lib64/libtuttisharp.so
golang-tutti-devel /usr/share/gocode/src/tutti.org/tutti/go.mod
END
}

check_contents() {
    wrong=0
    contents >"$root/contents"
    while read -r package pattern; do
        found=$(cd "$installed" && find . -path ".$pattern" | sed 's/^\.//')
        owner=''
        [ -z "$found" ] || owner=$(in_database --query --file --queryformat '%{NAME}' "$found")
        [ "$owner" = "$package" ] || {
            echo "$pattern: found '$found', owned by '$owner', expected in $package"
            wrong=1
        }
    done <"$root/contents"
    # A file that belongs to two packages, or was changed while it was installed.
    in_database --verify --all --nodeps || wrong=1
    find "$installed/usr" ! -type d | wc -l
    return "$wrong"
}

# Each package is provided by one of these, by the libraries of this system, or is one of the run times of languages.
check_requires() {
    # shellcheck disable=SC2086
    rpm --query --package --provides $packages | sort -u >"$root/provides"
    # shellcheck disable=SC2086
    rpm --query --package --requires $packages | sort -u | grep -v -x -F -f "$root/provides" | grep -v '^rpmlib(' |
        grep -v -x -e 'rtld(GNU_HASH)' -e 'java-headless >= 17' -e 'mono-core' -e '/usr/bin/pkg-config' >"$root/others"
    sed -n 's/^\([^ ()]*\.so[^ ()]*\)(.*/\1/p' "$root/others" | sort -u >"$root/libraries"
    if grep -v '\.so[^ ()]*(' "$root/others"; then
        echo 'required above, and provided by nobody'
        return 1
    fi
    known=$(PATH=/usr/sbin:/sbin:$PATH ldconfig -p)
    while read -r library; do
        echo "$known" | grep -q -F "$library " || {
            echo "no $library on this system"
            return 1
        }
    done <"$root/libraries"
    echo "of other packages: $(wc -l <"$root/libraries") libraries"
}

# With what is installed there alone in front of this system's libraries.
run_installed() {
    (cd "$root/home" && env -i PATH=/usr/bin:/bin HOME="$root/home" LC_ALL=C.UTF-8 \
        LD_LIBRARY_PATH="$installed/usr/lib64" "$@")
}

compile() {
    # shellcheck disable=SC2046
    cc "$program" -o "$root/home/hello" $(PKG_CONFIG_SYSROOT_DIR=$installed PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 \
        PKG_CONFIG_LIBDIR=$installed/usr/lib64/pkgconfig pkg-config --cflags --libs tutti) && echo compiled
}

train_and_predict() {
    trained=$(run_installed ./hello train model) && predicted=$(run_installed ./hello predict model) &&
        echo "$trained" && [ "$trained" = "$predicted" ]
}

remove_all() {
    # shellcheck disable=SC2046
    in_database --erase $(in_database --query --all) && left=$(find "$installed" -name '*tutti*') &&
        if [ -z "$left" ]; then echo nothing; else echo "$left" && return 1; fi
}

try 'packages installed by rpm --root' install_all
try 'contents as expected, files' check_contents
try 'what they require is there' check_requires
try 'C by pkg-config, compiled' compile
try 'C, trained, then predicted by another process' train_and_predict
try 'two processes train together' run_installed "$installed/usr/bin/tutti" run -n 2 ./hello workers model2
try 'tutti version' run_installed "$installed/usr/bin/tutti" version
try 'removed, left behind' remove_all
[ "$failures" = 0 ]
