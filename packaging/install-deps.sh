#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# install-deps.sh [GROUP...]: installs the Debian packages that tutti needs; without a group, all of them but hip, the
# backend for AMD GPUs. (For NVIDIA's Debian has no packages.)
# This is the one list. It asks apt only for what is missing, so a second call costs nothing.
# TUTTI_INSTALL_DEPS=no makes it do nothing: the caller has seen to the list.
set -eu

packages_of() {
    case $1 in
    build)
        echo build-essential meson ninja-build pkg-config python3 python3-yaml
        echo libdnnl-dev libhwy-dev libprotozero-dev nlohmann-json3-dev zlib1g-dev
        echo libcli11-dev libyaml-cpp-dev
        echo libjpeg62-turbo-dev libspng-dev
        echo libcurl4-openssl-dev
        echo libgloo-dev
        ;;
    test) echo libcmocka-dev abigail-tools dataset-fashion-mnist openssl ;;
    example) echo dataset-fashion-mnist ;;
    go) echo golang-go swig ;;
    java) echo default-jdk-headless junit4 swig ;;
    csharp) echo mono-mcs swig ;;
    hip) echo hipcc libamdhip64-dev ;;
    pjrt) echo python3-pip binutils ;;
    deb) echo debhelper dpkg-dev javahelper cli-common-dev mono-devel lintian xz-utils ;;
    rpm) echo rpm rpmlint ;;
    tarball) echo patchelf zstd ;;
    check) echo mmdebstrap mount python3-pip ;;
    git) echo git ;;
    *) echo "install-deps.sh: unknown group '$1'; known: build test example go java csharp hip deb rpm tarball check git pjrt" >&2 && return 1 ;;
    esac
}

# Installed where the release has them; what needs them is skipped elsewhere, and says so.
optional_packages_of() {
    case $1 in
    test) echo clang-format-14 valgrind iproute2 tidy ;;
    hip) echo librocblas-dev libmiopen-dev librccl-dev ;;
    esac
}

# The packages among the arguments that are not installed.
missing_of() {
    for package in "$@"; do
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
    done
}

# The packages among the arguments that apt could install. A release may list one and lack what that needs.
available_of() {
    for package in "$@"; do
        apt-cache policy "$package" 2>/dev/null | grep -q 'Candidate: [^(]' || continue
        if apt-get -s -o APT::Get::Show-User-Simulation-Note=no install --no-install-recommends "$package" >/dev/null 2>&1; then
            echo "$package"
        else
            echo "install-deps.sh: $package cannot be installed here: the release lacks what it needs" >&2
        fi
    done
    return 0
}

[ "${TUTTI_INSTALL_DEPS:-yes}" != no ] || exit 0
[ $# -gt 0 ] || set -- build test example go java csharp
required=$(for group in "$@"; do packages_of "$group" || exit 1; done)
optional=$(for group in "$@"; do optional_packages_of "$group"; done)

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "install-deps.sh: this is no Debian-like system. Install what these Debian 12 packages hold, then call again" >&2
    echo "with TUTTI_INSTALL_DEPS=no:" $required >&2
    exit 1
fi

missing=$(missing_of $required)
wanted=$(available_of $(missing_of $optional) 2>/dev/null)
[ -n "$missing$wanted" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        if [ -z "$missing" ]; then exit 0; fi
        echo "install-deps.sh: needs root or sudo for: apt-get install --no-install-recommends" $missing >&2
        exit 1
    fi
    as_root=sudo
fi
apt="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600"
echo "install-deps.sh: installing" $missing $wanted
$apt update
wanted=$(available_of $(missing_of $optional))
if ! $apt install -y --no-install-recommends $missing $wanted; then
    echo "install-deps.sh: apt could not install" $missing $wanted "- Debian 12 and 13 have them all" >&2
    exit 1
fi
