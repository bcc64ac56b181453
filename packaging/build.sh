#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# build.sh KIND... [OUT]: builds packages from what is committed, into the folder OUT (build/packages):
#
#   deb      Debian packages of this release, and the source package
#   rpm      RPM packages, with Fedora's names
#   tarball  tutti-VERSION-linux-x86_64.tar.zst, which runs where it is unpacked, and the source archive
#   maven    a repository folder for Maven
#   nuget    NuGet packages
#   go       a module proxy folder for Go
#   all      all of them
#
# Installs what is missing (packaging/install-deps.sh). Only the distribution's packages are fetched. The same commit gives
# the same bytes: times are those of the commit, or of SOURCE_DATE_EPOCH. `packaging/check.sh` tries what was built.
#
# TUTTI_CUDA=enabled|disabled   GPU plug-ins; left out, they are built where CUDA's compiler is in /usr/local/cuda
# TUTTI_GPU_ARCHITECTURES=90    NVIDIA GPUs to compile for, instead of those of packaging/release.ini
set -eu
cd "$(dirname "$0")/.."

usage() {
    sed -n '4,12p' "$0" | sed 's/^# \{0,1\}//' >&2
    exit 2
}

kinds='' out=build/packages
for word in "$@"; do
    case $word in
    all) kinds='deb rpm tarball maven nuget go' ;;
    deb | rpm | tarball | maven | nuget | go) kinds="$kinds $word" ;;
    -*) usage ;;
    *) out=$word ;;
    esac
done
[ -n "$kinds" ] || usage

umask 022
root=$(pwd -P)
mkdir -p "$out"
out=$(cd "$out" && pwd)
version=$(sed -n "s/^  version: '\([0-9.]*\)',\$/\1/p" meson.build)
# A clone needs git to tell what is committed; an unpacked archive is taken as it lies here.
in_git=false
if [ -e .git ]; then
    in_git=true
    packaging/install-deps.sh git
    git rev-parse --verify HEAD >/dev/null
fi
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
    SOURCE_DATE_EPOCH=$($in_git && git log -1 --format=%ct || stat -c %Y meson.build)
fi
export SOURCE_DATE_EPOCH TZ=UTC LC_ALL=C.UTF-8
unset LANGUAGE
work=$root/build/packages-work
rm -rf "$work"
mkdir -p "$work"
# What is built there is a release, named by its version, and not the commit of the clone around it.
export GIT_CEILING_DIRECTORIES="$work"

cuda=${TUTTI_CUDA:-disabled}
if [ -z "${TUTTI_CUDA:-}" ] && [ -x /usr/local/cuda/bin/nvcc ]; then
    cuda=enabled
fi

# Unpacks the sources into a new folder: what is committed, or, where this is an unpacked archive, what lies here.
unpack_sources() {
    mkdir -p "$1"
    if $in_git; then
        git -c tar.umask=0022 archive HEAD | tar -x -C "$1"
    else
        tar -c --exclude=./build --mode=u+rw,go=rX . | tar -x -C "$1"
    fi
    find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

# An archive of a folder that has the same bytes each time: pack FOLDER ARCHIVE, by the archive's suffix.
pack() {
    case $2 in
    *.xz) compress='xz -6 -T1' ;;
    *.zst) compress='zstd -q -19 -T1' ;;
    *) compress='gzip -9 -n' ;;
    esac
    tar -c -C "$(dirname "$1")" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
        --mode=u+rw,go=rX --format=gnu "$(basename "$1")" | $compress >"$2"
}

# Builds a release once for all kinds that are not built by a distribution's own tools: in $release/build, installed below
# $release/root.
release=$work/release
build_release() {
    [ ! -d "$release" ] || return 0
    packaging/install-deps.sh build java csharp
    unpack_sources "$release/source"
    (
        cd "$release/source"
        meson setup ../build --native-file packaging/release.ini --prefix=/tutti --libdir=lib --unity=on \
            -Dunity_size=24 -Dtests=disabled -Dbench=disabled -Dgo=disabled -Djava=enabled -Dcsharp=enabled -Dcpu=enabled \
            -Dgloo=enabled -Dhttp=enabled -Djpeg=enabled -Dpng=enabled -Dyaml=enabled -Dcuda="$cuda" -Dhip=disabled \
            -Dpkgconfig.relocatable=true ${TUTTI_GPU_ARCHITECTURES:+"-Dgpu_architectures=$TUTTI_GPU_ARCHITECTURES"}
        ninja -C ../build
        DESTDIR="$release/root" meson install -C ../build --no-rebuild --quiet --strip
    )
}

for kind in $kinds; do
    # shellcheck source=/dev/null
    . "packaging/formats/$kind.sh"
done
rm -rf "$work"
echo "built in $out:"
(cd "$out" && find . -type f | sort | sed 's/^/  /')
